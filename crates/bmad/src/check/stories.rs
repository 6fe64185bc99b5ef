//! Compares epics, the board and the story files. They are compared by number: in most eras agents named boards and files,
//! and a different slug is worth a note, not an alarm.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    material::{File, Material, is_inside, joined},
    papers::short,
};
use crate::{
    board::{Board, Entry, State},
    commands::Step,
    epics::EpicStory,
    keys::{Number, StoryKey, StoryStatus},
    layout::Era,
    page::{Line, Page},
    problem::{Problem, Weight},
};

pub(super) fn check(material: &Material<'_>, problems: &mut Vec<Problem>) {
    if let Some(board) = material.board {
        epics_and_board(material, board, problems);
        files_and_board(material, board, problems);
        without_file(material, board, problems);
    }
    one_file_each(material, problems);
    for file in material.stories.iter().filter(|file| !file.is_spec) {
        follow_ups(material, file, problems);
        all_ticked(material, file, problems);
        listed_files(material, file, problems);
    }
}

/// Reports a story that counts as done while its review's findings are open.
fn follow_ups(material: &Material<'_>, file: &File, problems: &mut Vec<Problem>) {
    let entry = file.story.key.as_ref().and_then(|key| material.entry(key));
    let is_done = entry.is_some_and(|entry| state_of(entry) == Some(StoryStatus::Done));
    let mut open = file.story.open_follow_ups();
    let Some(first) = open.next().filter(|_| is_done) else { return };
    let more = match open.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = format!("the story is done, and what a review left is not: {}{more}", first.text);
    let problem = Problem::warning("story-follow-ups-open", &file.path, what).at(first.line);
    problems.push(problem.todo("see to it, or tick it"));
}

/// Reports two files of one story: agents may take either.
fn one_file_each(material: &Material<'_>, problems: &mut Vec<Problem>) {
    let mut of_number: BTreeMap<Number, &File> = BTreeMap::new();
    let own = material.stories.iter().filter(|file| !file.is_spec);
    for (number, file) in own.filter_map(|file| Some((file.story.key.as_ref()?.number(), file))) {
        match of_number.get(&number) {
            Some(first) => {
                let what = format!("this is story {number}, as is {}", first.path);
                let problem = Problem::warning("story-two-files", &file.path, what);
                problems.push(problem.why("agents may work from either").todo("keep one of them"));
            }
            None => {
                of_number.insert(number, file);
            }
        }
    }
}

/// A number without the letter that a split story has.
fn whole(number: Number) -> Number {
    Number { letter: None, ..number }
}

fn state_of(entry: &Entry) -> Option<StoryStatus> {
    match entry.state {
        Some(State::Story(state)) => Some(state),
        _ => None,
    }
}

/// A story as it is on the board.
#[derive(Clone, Copy)]
struct OnBoard<'b> {
    key: &'b StoryKey,
    entry: &'b Entry,
}

fn by_number(board: &Board) -> BTreeMap<Number, OnBoard<'_>> {
    board.stories().map(|(key, entry)| (key.number(), OnBoard { key, entry })).collect()
}

/// Compares the stories of the epics with those of the board.
fn epics_and_board(material: &Material<'_>, board: &Board, problems: &mut Vec<Problem>) {
    let planned: BTreeMap<Number, &EpicStory> =
        material.epics.stories().map(|story| (story.number, story)).collect();
    let on_board = by_number(board);
    // One of the two is not written yet.
    if planned.is_empty() || on_board.is_empty() {
        return;
    }
    let whole_planned: BTreeSet<Number> = planned.keys().map(|number| whole(*number)).collect();
    let whole_on_board: BTreeSet<Number> = on_board.keys().map(|number| whole(*number)).collect();
    let planning = material.how(Step::SprintPlanning);
    for (number, story) in &planned {
        match on_board.get(number) {
            Some(on_board) => renamed(material, story, *on_board, problems),
            // A story that was split on the board covers its original.
            None if whole_on_board.contains(&whole(*number)) => {}
            None => problems.push(
                Problem::warning(
                    "story-not-on-board",
                    &story.path,
                    format!("story {number} is not on the board"),
                )
                .at(story.line)
                .why(format!("it is not in {}, and what is not there is not built", board.path))
                .todo(format!("plan the sprint again: {planning}")),
            ),
        }
    }
    // Epics may be archived once they are built, so only epics that still exist are compared.
    let epics: BTreeSet<u32> = whole_planned.iter().map(|number| number.epic).collect();
    for OnBoard { key, entry } in on_board.values() {
        if !epics.contains(&key.epic) || whole_planned.contains(&whole(key.number())) {
            continue;
        }
        let what = format!("`{key}` is on the board, and epic {} has no story {}", key.epic, key.number());
        problems.push(
            Problem::warning("story-not-in-epics", &board.path, what)
                .at(entry.line)
                .why("nothing says what it is about")
                .todo(format!("write it into the epic, or plan the sprint again: {planning}")),
        );
    }
    let known: BTreeSet<u32> = material.epics.epics.iter().map(|epic| epic.number).collect();
    let mut first: BTreeMap<u32, usize> = BTreeMap::new();
    for entry in &board.entries {
        first.entry(entry.key.epic()).or_insert(entry.line);
    }
    for (epic, line) in first.into_iter().filter(|(epic, _)| !known.contains(epic)) {
        let what = format!("epic {epic} is on the board and not among the epics");
        problems.push(Problem::note("epic-not-in-epics", &board.path, what).at(line));
    }
}

/// Reports a story whose title and key on the board no longer match.
fn renamed(material: &Material<'_>, story: &EpicStory, on_board: OnBoard<'_>, problems: &mut Vec<Problem>) {
    let (OnBoard { key, entry }, Some(board)) = (on_board, material.board) else { return };
    if story.key.slug == key.slug || story.key.slug.is_empty() {
        return;
    }
    // From era D on, a script makes the key from the title: a different key would be a different story to it.
    let weight = if material.layout.era == Some(Era::D) { Weight::Warning } else { Weight::Note };
    let what = format!(
        "story {} is `{key}` on the board ({}:{}), and its title makes it `{}`",
        story.number, board.path, entry.line, story.key
    );
    let problem = Problem::new(weight, "story-renamed", &story.path, what).at(story.line);
    let why = match weight {
        Weight::Note => "",
        _ => "sprint planning would add it anew and drop the old line with its state",
    };
    problems.push(problem.why(why).todo("if it was renamed, rename it on the board and its file as well"));
}

/// Compares the story files with the board, by key and then by number.
fn files_and_board(material: &Material<'_>, board: &Board, problems: &mut Vec<Problem>) {
    let by_number = by_number(board);
    if by_number.is_empty() {
        return;
    }
    let keys: BTreeSet<&StoryKey> =
        material.stories.iter().filter_map(|file| file.story.key.as_ref()).collect();
    for file in &material.stories {
        let Some(key) = &file.story.key else { continue };
        if let Some(entry) = material.entry(key) {
            status(board, file, OnBoard { key, entry }, problems);
            continue;
        }
        // The author of a spec chooses its name.
        if file.is_spec {
            continue;
        }
        match by_number.get(&key.number()) {
            // This is a second file about a story that has its own.
            Some(OnBoard { key: other, .. }) if keys.contains(other) => {}
            Some(OnBoard { key: other, entry }) => {
                let what = format!(
                    "the file is `{key}`, and the board has `{other}` ({}:{})",
                    board.path, entry.line
                );
                problems.push(
                    Problem::warning("story-file-renamed", &file.path, what)
                        .why("BMAD's workflows look for the file by the board's key")
                        .todo(format!("name it {other}.md, or change the key on the board")),
                );
            }
            None => problems.push(
                Problem::warning(
                    "story-file-not-on-board",
                    &file.path,
                    format!("`{key}` is not on the board"),
                )
                .why(format!("it is not in {}", board.path))
                .todo(format!("plan the sprint again: {}", material.how(Step::SprintPlanning))),
            ),
        }
    }
}

/// Compares the story's own status with the board's.
fn status(board: &Board, file: &File, on_board: OnBoard<'_>, problems: &mut Vec<Problem>) {
    let OnBoard { key, entry } = on_board;
    let Some(own) = &file.story.status else { return };
    // A blocked story is no contradiction to the board, but the agent will stop at it.
    if own.status.is_none() && own.said.trim().eq_ignore_ascii_case("blocked") {
        let what =
            format!("the story says blocked, the board {} ({}:{})", entry.said, board.path, entry.line);
        let problem = Problem::warning("story-blocked", &file.path, what).at(own.line);
        problems.push(
            problem
                .why("whoever develops it stops there at once")
                .todo("see its blocking condition, and decide"),
        );
        return;
    }
    let (Some(said), Some(state)) = (own.status, state_of(entry)) else { return };
    // A spec is done when it is built, and its story is then at review.
    let is_fine = file.is_spec && !(said == StoryStatus::Done && state < StoryStatus::Review);
    if said == state || is_fine {
        return;
    }
    let what = format!("the story says {said}, the board {state} ({}:{})", board.path, entry.line);
    let todo = format!(
        "write `Status: {state}` here; or, if the story is right: tribunal board move {key} {said} --anyway"
    );
    let problem = Problem::warning("story-status-not-board-s", &file.path, what).at(own.line);
    problems.push(problem.why("the board holds").todo(todo));
}

/// Reports stories that should have a file and have none.
fn without_file(material: &Material<'_>, board: &Board, problems: &mut Vec<Problem>) {
    if !material.creates() {
        return;
    }
    for (key, entry) in board.stories() {
        let weight = match state_of(entry) {
            None | Some(StoryStatus::Backlog) => continue,
            // Files of finished stories are often archived.
            Some(StoryStatus::Done) => Weight::Note,
            Some(_) => Weight::Warning,
        };
        if material.is_written(key.number()) {
            continue;
        }
        let path = joined(&material.config.folders.implementation, &format!("{key}.md"));
        // A file that cannot be read is another problem, which is already reported.
        if material.is_there(&path) {
            continue;
        }
        let what = format!("`{key}` is {}, and has no file", entry.said);
        let problem = Problem::new(weight, "story-no-file", &board.path, what)
            .at(entry.line)
            .why(format!("{path} is not there"));
        problems.push(match weight {
            Weight::Note => problem,
            _ => problem.todo(format!("write it: {}", material.how(Step::CreateStory))),
        });
    }
}

/// Reports a story in progress whose tasks are all ticked.
fn all_ticked(material: &Material<'_>, file: &File, problems: &mut Vec<Problem>) {
    let (done, all) = file.story.progress();
    let Some(status) = file.story.status.as_ref() else { return };
    let key = file.story.key.as_ref();
    let on_board = key.and_then(|key| material.entry(key)).and_then(state_of);
    let state = on_board.or(status.status);
    if all == 0 || done < all || state != Some(StoryStatus::InProgress) {
        return;
    }
    // What a review left is work, too.
    if file.story.open_follow_ups().next().is_some() || status.status != state {
        return;
    }
    let what = format!("all {all} tasks are ticked, and the story is still in-progress");
    let problem = Problem::warning("story-all-ticked", &file.path, what).at(status.line);
    let todo =
        key.map(|key| format!("if it is finished: tribunal board move {key} review")).unwrap_or_default();
    problems.push(problem.why("nobody reviews it while it is").todo(todo));
}

/// Reports files that a story lists and that do not exist.
fn listed_files(material: &Material<'_>, file: &File, problems: &mut Vec<Problem>) {
    let key = file.story.key.as_ref();
    let on_board = key.and_then(|key| material.entry(key)).and_then(state_of);
    let own = file.story.status.as_ref().and_then(|status| status.status);
    let weight = match on_board.or(own) {
        Some(StoryStatus::Review) => Weight::Warning,
        // Later stories move and delete what earlier ones made.
        Some(StoryStatus::Done) => Weight::Note,
        _ => return,
    };
    let page = Page::of(&file.text);
    let gone = gone_lines(&page.lines);
    // Patterns, placeholders and renames are no paths.
    let is_plain =
        |path: &str| is_inside(path) && !path.contains(['*', '{', '<', '…', '→']) && !path.contains("...");
    let lost: Vec<(&str, usize)> = file
        .story
        .files
        .iter()
        .filter(|said| !gone.contains(&said.line) && is_plain(&said.text) && !material.is_there(&said.text))
        .map(|said| (said.text.as_str(), said.line))
        .collect();
    let Some((_, line)) = lost.first() else { return };
    // Three names show what is meant; a list may be long.
    let names: Vec<&str> = lost.iter().take(3).map(|(name, _)| *name).collect();
    let more = if lost.len() > 3 { format!(" and {} more", lost.len() - 3) } else { String::new() };
    let what = format!("of the files it lists, these are not there: {}{more}", short(&names.join(", ")));
    let why = "what a story says it made is what a review looks at";
    problems.push(Problem::new(weight, "story-file-list", &file.path, what).at(*line).why(why));
}

/// The lines about files that were deleted or moved, by their own words or by the label above them.
fn gone_lines(lines: &[Line<'_>]) -> BTreeSet<usize> {
    let tells = |text: &str| {
        let text = text.to_lowercase();
        ["delet", "remov", "renam", "moved", "->"].iter().any(|word| text.contains(word))
    };
    let mut under = false;
    let mut gone = BTreeSet::new();
    for line in lines.iter().filter(|line| line.is_prose() && !line.is_blank()) {
        let text = line.text.trim();
        // A label such as `Deleted:` applies to all lines up to the next label.
        let is_label = line.heading().is_some() || text.trim_end_matches('*').ends_with(':');
        if is_label {
            under = tells(text);
        }
        if under || tells(text) {
            gone.insert(line.number);
        }
    }
    gone
}
