//! Compares epics, the board and the story files. They are compared by number: in most eras agents named boards and files,
//! and a different slug is worth a note, not an alarm.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    material::{CheckMaterial, StoryDocument, is_inside_project, join_path},
    planning_documents::truncate_text,
};
use crate::{
    board::{Board, BoardEntry, BoardEntryState},
    commands::BmadStep,
    epic_id::EpicId,
    epics::EpicStory,
    keys::{StoryKey, StoryNumber},
    layout::Era,
    markdown::{MarkdownLine, MarkdownPage},
    problem::{FileProblem, ProblemWeight},
    states::StoryStatus,
};

pub(super) fn check_stories(check_material: &CheckMaterial<'_>, problems: &mut Vec<FileProblem>) {
    if let Some(board) = check_material.board {
        compare_epics_and_board(check_material, board, problems);
        compare_files_and_board(check_material, board, problems);
        check_missing_files(check_material, board, problems);
    }
    check_duplicate_files(check_material, problems);
    for story_file in check_material.stories.iter().filter(|story_file| !story_file.is_spec) {
        check_follow_ups(check_material, story_file, problems);
        check_all_ticked(check_material, story_file, problems);
        check_listed_files(check_material, story_file, problems);
        check_open_fence(story_file, problems);
    }
}

/// Reports a code fence that is never closed: what is below it is not read.
fn check_open_fence(story_file: &StoryDocument, problems: &mut Vec<FileProblem>) {
    let Some(fence_line) = MarkdownPage::parse(&story_file.text).open_fence_line else { return };
    problems.push(
        FileProblem::warning("story-open-fence", &story_file.path, "the code block that begins here is never closed")
            .at_line(fence_line)
            .with_reason("Everything below it is read as code, so tasks, criteria and files there do not count.")
            .with_advice("close it with the same fence"),
    );
}

/// Reports a story that counts as done while its review's findings are open.
fn check_follow_ups(check_material: &CheckMaterial<'_>, story_file: &StoryDocument, problems: &mut Vec<FileProblem>) {
    let board_entry = story_file.story.key.as_ref().and_then(|key| check_material.board_entry(key));
    let is_done = board_entry.is_some_and(|board_entry| story_state(board_entry) == Some(StoryStatus::Done));
    let mut open_items = story_file.story.open_follow_ups();
    let Some(first_open) = open_items.next().filter(|_| is_done) else { return };
    let more = match open_items.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!("the story is done, but review items are still open: {}{more}", first_open.text);
    let problem = FileProblem::warning("story-follow-ups-open", &story_file.path, message).at_line(first_open.line);
    problems.push(problem.with_advice("fix it, or tick it off"));
}

/// Reports two files of one story: agents may take either.
fn check_duplicate_files(check_material: &CheckMaterial<'_>, problems: &mut Vec<FileProblem>) {
    let mut first_by_number: BTreeMap<&StoryNumber, &StoryDocument> = BTreeMap::new();
    let story_files = check_material.stories.iter().filter(|story_file| !story_file.is_spec);
    for (story_number, story_file) in
        story_files.filter_map(|story_file| Some((story_file.story.key.as_ref()?.story_number()?, story_file)))
    {
        match first_by_number.get(story_number) {
            Some(first_file) => {
                let message = format!("second file for story {story_number} (the first is {})", first_file.path);
                let problem = FileProblem::warning("story-two-files", &story_file.path, message);
                problems.push(
                    problem.with_reason("Agents may work from either file.").with_advice("keep only one of them"),
                );
            }
            None => {
                first_by_number.insert(story_number, story_file);
            }
        }
    }
}

/// A number without the letter that a split story has.
fn without_letter(story_number: &StoryNumber) -> StoryNumber {
    StoryNumber { letter: None, ..story_number.clone() }
}

fn story_state(board_entry: &BoardEntry) -> Option<StoryStatus> {
    match board_entry.state {
        Some(BoardEntryState::Story(state)) => Some(state),
        _ => None,
    }
}

/// A story as it is on the board.
#[derive(Clone, Copy)]
struct BoardStory<'b> {
    key: &'b StoryKey,
    entry: &'b BoardEntry,
}

fn stories_by_number(board: &Board) -> BTreeMap<&StoryNumber, BoardStory<'_>> {
    board.stories().filter_map(|(key, entry)| Some((key.story_number()?, BoardStory { key, entry }))).collect()
}

/// Compares the stories of the epics with those of the board.
fn compare_epics_and_board(check_material: &CheckMaterial<'_>, board: &Board, problems: &mut Vec<FileProblem>) {
    let planned_stories: BTreeMap<&StoryNumber, &EpicStory> =
        check_material.epics.stories().map(|story| (&story.number, story)).collect();
    let on_board = stories_by_number(board);
    // If one of the two is not written yet, there is nothing to compare.
    if planned_stories.is_empty() || on_board.is_empty() {
        return;
    }
    let planned_numbers: BTreeSet<StoryNumber> =
        planned_stories.keys().map(|story_number| without_letter(story_number)).collect();
    let board_numbers: BTreeSet<StoryNumber> =
        on_board.keys().map(|story_number| without_letter(story_number)).collect();
    let planning_command = check_material.command_for_step(BmadStep::SprintPlanning);
    for (story_number, story) in &planned_stories {
        match on_board.get(story_number) {
            Some(on_board) => check_renamed(check_material, story, *on_board, problems),
            // A story that was split on the board covers its original.
            None if board_numbers.contains(&without_letter(story_number)) => {}
            None => problems.push(
                FileProblem::warning(
                    "story-not-on-board",
                    &story.path,
                    format!("story {story_number} is not on the board"),
                )
                .at_line(story.line)
                .with_reason(format!("It is missing from {}, so it will not be built.", board.path))
                .with_advice(format!("run sprint planning again: {planning_command}")),
            ),
        }
    }
    // Epics may be archived once they are built, so only epics that still exist are compared.
    let compared_epics: BTreeSet<&EpicId> = planned_numbers.iter().map(|story_number| &story_number.epic).collect();
    for (story_number, BoardStory { key: story_key, entry: board_entry }) in &on_board {
        if !compared_epics.contains(&story_number.epic) || planned_numbers.contains(&without_letter(story_number)) {
            continue;
        }
        let message =
            format!("`{story_key}` is on the board, but epic {} has no story {story_number}", story_number.epic);
        problems.push(
            FileProblem::warning("story-not-in-epics", &board.path, message)
                .at_line(board_entry.line)
                .with_reason("No epic describes this story.")
                .with_advice(format!("add it to the epic, or run sprint planning again: {planning_command}")),
        );
    }
    let known_epics: BTreeSet<&EpicId> = check_material.epics.epics.iter().map(|epic| &epic.number).collect();
    let mut first_lines: BTreeMap<&EpicId, usize> = BTreeMap::new();
    for board_entry in &board.entries {
        if let Some(epic) = &board_entry.epic {
            first_lines.entry(epic).or_insert(board_entry.line);
        }
    }
    for (epic, line_number) in first_lines.into_iter().filter(|(epic, _)| !known_epics.contains(epic)) {
        let message = format!("epic {epic} is on the board but not in the epics document");
        problems.push(FileProblem::note("epic-not-in-epics", &board.path, message).at_line(line_number));
    }
}

/// Reports a story whose title and key on the board no longer match.
fn check_renamed(
    check_material: &CheckMaterial<'_>,
    story: &EpicStory,
    board_story: BoardStory<'_>,
    problems: &mut Vec<FileProblem>,
) {
    let (BoardStory { key, entry }, Some(board)) = (board_story, check_material.board) else { return };
    if story.key.slug_text() == key.slug_text() || story.key.slug_text().is_empty() {
        return;
    }
    // From era D on, a script makes the key from the title: a different key would be a different story to it.
    let problem_weight =
        if check_material.layout.era == Some(Era::D) { ProblemWeight::Warning } else { ProblemWeight::Note };
    let message = format!(
        "story {} is `{key}` on the board ({}:{}), but its title makes it `{}`",
        story.number, board.path, entry.line, story.key
    );
    let problem = FileProblem::new(problem_weight, "story-renamed", &story.path, message).at_line(story.line);
    let reason = match problem_weight {
        ProblemWeight::Note => "",
        _ => "Sprint planning would add it as a new story and drop the old entry with its state.",
    };
    problems.push(
        problem
            .with_reason(reason)
            .with_advice("if you renamed the story, rename its board entry and its file as well"),
    );
}

/// Compares the story files with the board, by key and then by number.
fn compare_files_and_board(check_material: &CheckMaterial<'_>, board: &Board, problems: &mut Vec<FileProblem>) {
    let board_by_number = stories_by_number(board);
    if board_by_number.is_empty() {
        return;
    }
    let file_keys: BTreeSet<&StoryKey> =
        check_material.stories.iter().filter_map(|story_file| story_file.story.key.as_ref()).collect();
    for story_file in &check_material.stories {
        let Some(key) = &story_file.story.key else { continue };
        if let Some(entry) = check_material.board_entry(key) {
            compare_status(board, story_file, BoardStory { key, entry }, problems);
            continue;
        }
        // The author of a spec chooses its name.
        if story_file.is_spec {
            continue;
        }
        match key.story_number().and_then(|story_number| board_by_number.get(story_number)) {
            // This is a second file about a story that has its own.
            Some(BoardStory { key: board_key, .. }) if file_keys.contains(board_key) => {}
            Some(BoardStory { key: board_key, entry }) => {
                let message = format!(
                    "the file is named `{key}`, but the board has `{board_key}` ({}:{})",
                    board.path, entry.line
                );
                problems.push(
                    FileProblem::warning("story-file-renamed", &story_file.path, message)
                        .with_reason("BMAD's workflows find the file by its key on the board.")
                        .with_advice(format!("rename it to {board_key}.md, or change the key on the board")),
                );
            }
            None => problems.push(
                FileProblem::warning(
                    "story-file-not-on-board",
                    &story_file.path,
                    format!("`{key}` is not on the board"),
                )
                .with_reason(format!("It is missing from {}.", board.path))
                .with_advice(format!(
                    "run sprint planning again: {}",
                    check_material.command_for_step(BmadStep::SprintPlanning)
                )),
            ),
        }
    }
}

/// Compares the story's own status with the board's.
fn compare_status(
    board: &Board,
    story_file: &StoryDocument,
    board_story: BoardStory<'_>,
    problems: &mut Vec<FileProblem>,
) {
    let BoardStory { key, entry } = board_story;
    let Some(own_status) = &story_file.story.status else { return };
    // A blocked story is no contradiction to the board, but the agent will stop at it.
    if own_status.status.is_none() && own_status.said.trim().eq_ignore_ascii_case("blocked") {
        let message =
            format!("the story says blocked, but the board says {} ({}:{})", entry.raw_state, board.path, entry.line);
        let problem = FileProblem::warning("story-blocked", &story_file.path, message).at_line(own_status.line);
        problems.push(
            problem
                .with_reason("Development of a blocked story stops immediately.")
                .with_advice("check its blocking condition and decide how to proceed"),
        );
        return;
    }
    let (Some(file_state), Some(board_state)) = (own_status.status, story_state(entry)) else { return };
    // A spec is done when it is built, and its story is then at review.
    let is_expected = story_file.is_spec && !(file_state == StoryStatus::Done && board_state < StoryStatus::Review);
    if file_state == board_state || is_expected {
        return;
    }
    let message =
        format!("the story says {file_state}, but the board says {board_state} ({}:{})", board.path, entry.line);
    let advice = format!(
        "write `Status: {board_state}` here, or if the story is right: `tribunal board move {key} {file_state} --anyway`"
    );
    let problem = FileProblem::warning("story-status-not-board-s", &story_file.path, message).at_line(own_status.line);
    problems.push(problem.with_reason("The board takes precedence.").with_advice(advice));
}

/// Reports stories that should have a file and have none.
fn check_missing_files(check_material: &CheckMaterial<'_>, board: &Board, problems: &mut Vec<FileProblem>) {
    if !check_material.creates_story_files() {
        return;
    }
    for (story_key, board_entry) in board.stories() {
        let problem_weight = match story_state(board_entry) {
            None | Some(StoryStatus::Backlog) => continue,
            // The files of finished stories may have been archived.
            Some(StoryStatus::Done) => ProblemWeight::Note,
            Some(_) => ProblemWeight::Warning,
        };
        if check_material.has_story_file(story_key) {
            continue;
        }
        let expected_path = join_path(&check_material.config.folders.implementation, &format!("{story_key}.md"));
        // A file that cannot be read is another problem, which is already reported.
        if check_material.path_exists(&expected_path) {
            continue;
        }
        let message = format!("`{story_key}` is {} but has no story file", board_entry.raw_state);
        let problem = FileProblem::new(problem_weight, "story-no-file", &board.path, message)
            .at_line(board_entry.line)
            .with_reason(format!("{expected_path} does not exist."));
        problems.push(match problem_weight {
            ProblemWeight::Note => problem,
            _ => problem.with_advice(format!("create it: {}", check_material.command_for_step(BmadStep::CreateStory))),
        });
    }
}

/// Reports a story in progress whose tasks are all ticked.
fn check_all_ticked(check_material: &CheckMaterial<'_>, story_file: &StoryDocument, problems: &mut Vec<FileProblem>) {
    let (done_count, total_count) = story_file.story.task_progress();
    let Some(status_line) = story_file.story.status.as_ref() else { return };
    let story_key = story_file.story.key.as_ref();
    let board_state = story_key.and_then(|story_key| check_material.board_entry(story_key)).and_then(story_state);
    let effective_state = board_state.or(status_line.status);
    if total_count == 0 || done_count < total_count || effective_state != Some(StoryStatus::InProgress) {
        return;
    }
    // What a review left is work, too.
    if story_file.story.open_follow_ups().next().is_some() || status_line.status != effective_state {
        return;
    }
    let message = format!("all {total_count} tasks are ticked, but the story is still in-progress");
    let problem = FileProblem::warning("story-all-ticked", &story_file.path, message).at_line(status_line.line);
    let advice = story_key
        .map(|story_key| format!("if it is finished: `tribunal board move {story_key} review`"))
        .unwrap_or_default();
    problems.push(problem.with_reason("It will not be reviewed in this state.").with_advice(advice));
}

/// Reports files that a story lists and that do not exist.
fn check_listed_files(check_material: &CheckMaterial<'_>, story_file: &StoryDocument, problems: &mut Vec<FileProblem>) {
    let story_key = story_file.story.key.as_ref();
    let board_state = story_key.and_then(|story_key| check_material.board_entry(story_key)).and_then(story_state);
    let own_state = story_file.story.status.as_ref().and_then(|status| status.status);
    let problem_weight = match board_state.or(own_state) {
        Some(StoryStatus::Review) => ProblemWeight::Warning,
        // Later stories move and delete what earlier ones made.
        Some(StoryStatus::Done) => ProblemWeight::Note,
        _ => return,
    };
    let markdown = MarkdownPage::parse(&story_file.text);
    let removed_lines = find_removed_lines(&markdown.lines);
    // Patterns, placeholders and renames are no paths.
    let is_plain_path = |listed_path: &str| {
        is_inside_project(listed_path)
            && !listed_path.contains(['*', '{', '<', '…', '→'])
            && !listed_path.contains("...")
    };
    let missing_files: Vec<(&str, usize)> = story_file
        .story
        .files
        .iter()
        .filter(|listed_file| {
            !removed_lines.contains(&listed_file.line)
                && is_plain_path(&listed_file.text)
                && !check_material.path_exists(&listed_file.text)
        })
        .map(|listed_file| (listed_file.text.as_str(), listed_file.line))
        .collect();
    let Some((_, line_number)) = missing_files.first() else { return };
    // Three names show what is meant; a list may be long.
    let first_names: Vec<&str> = missing_files.iter().take(3).map(|(missing_name, _)| *missing_name).collect();
    let more_text =
        if missing_files.len() > 3 { format!(" and {} more", missing_files.len() - 3) } else { String::new() };
    let message = format!("listed files not found: {}{more_text}", truncate_text(&first_names.join(", ")));
    let reason = "A review looks at the files that the story lists.";
    problems.push(
        FileProblem::new(problem_weight, "story-file-list", &story_file.path, message)
            .at_line(*line_number)
            .with_reason(reason),
    );
}

/// The lines about files that were deleted or moved, by their own words or by the label above them.
fn find_removed_lines(lines: &[MarkdownLine<'_>]) -> BTreeSet<usize> {
    let mentions_removal = |line_text: &str| {
        let line_text = line_text.to_lowercase();
        ["delet", "remov", "renam", "moved", "->"].iter().any(|removal_word| line_text.contains(removal_word))
    };
    let mut below_removal_label = false;
    let mut removed_lines = BTreeSet::new();
    for line in lines.iter().filter(|line| line.is_prose() && !line.is_blank()) {
        let line_text = line.text.trim();
        // A label such as `Deleted:` applies to all lines up to the next label.
        let is_label = line.heading().is_some() || line_text.trim_end_matches('*').ends_with(':');
        if is_label {
            below_removal_label = mentions_removal(line_text);
        }
        if below_removal_label || mentions_removal(line_text) {
            removed_lines.insert(line.number);
        }
    }
    removed_lines
}
