//! Changes a story's file: its status, the box of a task, the list of files, what a review leaves to do. Only the intended
//! bytes change; everything else keeps its line endings, tabs and spaces.
//!
//! Every change is read again before it is returned: if the file would not say what was intended, or anything else would
//! differ, nothing is changed and the reason is given. Doing the same twice changes nothing the second time. Whether a status
//! may follow another is decided by the board.

use super::{FollowUp, FollowUpKind, ReviewDialect, Story, agent_record, status, tasks};
use crate::{
    keys::StoryStatus,
    markdown::{MarkdownPage, MarkdownSection, apply_edits, escape_comments},
    problem::rules,
    specs::SpecStatus,
    yaml,
};

/// Why a file stays as it is, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryEditRefusal {
    pub reason: String,
    pub advice: String,
}

impl StoryEditRefusal {
    fn new(reason: impl Into<String>, advice: impl Into<String>) -> StoryEditRefusal {
        StoryEditRefusal { reason: reason.into(), advice: advice.into() }
    }
}

impl std::fmt::Display for StoryEditRefusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}; {}", self.reason, self.advice)
    }
}

impl std::error::Error for StoryEditRefusal {}

/// An item that a review leaves to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFollowUp {
    pub kind: FollowUpKind,
    /// The text on one line; line breaks become spaces.
    pub text: String,
    /// The place in the code, as `file:line`.
    pub place: Option<String>,
    /// Whether it is ticked at once, as deferred items are.
    pub done: bool,
}

type ByteEdit = (std::ops::Range<usize>, String);

/// Sets the status in the body, in the front matter, or in both where both have one.
pub fn set_status(story_text: &str, target_status: StoryStatus) -> Result<String, StoryEditRefusal> {
    let markdown = MarkdownPage::parse(story_text);
    let front_matter = markdown.front_matter().map(yaml::parse_yaml).transpose().map_err(|parse_error| {
        StoryEditRefusal::new(
            format!("the front matter cannot be read: {}", parse_error.message),
            "mend it and try again",
        )
    })?;
    let mut edits: Vec<ByteEdit> = Vec::new();
    let front_start = markdown.front_range.clone().map_or(0, |range| range.start);
    let front_status = front_matter.as_ref().and_then(|front_matter| front_matter.get("status"));
    if let (Some(front_matter), Some(node)) = (&front_matter, front_status) {
        // A spec has its own names for the states, and its tools stop at a name that they do not know.
        let status_word = if is_spec_front_matter(front_matter) {
            SpecStatus::from(target_status).as_str()
        } else {
            target_status.as_str()
        };
        edits.extend(edit_front_status(
            story_text,
            front_start,
            node,
            NewStatus { status: target_status, written_as: status_word },
        )?);
    }
    let body_spots = status::find_in_body(&markdown);
    match body_spots.as_slice() {
        [] if front_status.is_none() => edits.push(insert_status(&markdown, target_status.as_str())),
        [] => {}
        // Two statuses that contradict each other: replacing both would hide a mistake that only the user can resolve.
        [first_spot, other_spots @ ..] => {
            if let Some(conflicting_spot) = other_spots
                .iter()
                .find(|conflicting_spot| conflicting_spot.status_line.status != first_spot.status_line.status)
            {
                let reason = format!(
                    "lines {} and {} both have a status, and not the same",
                    first_spot.status_line.line, conflicting_spot.status_line.line
                );
                return Err(StoryEditRefusal::new(reason, "take one of them out"));
            }
            // A status that already has the value keeps its spelling.
            for status_spot in
                body_spots.iter().filter(|status_spot| status_spot.status_line.status != Some(target_status))
            {
                edits.push(edit_body_status(story_text, status_spot, target_status.as_str())?);
            }
        }
    }
    let edited_text = apply_edits(story_text, &edits);
    verify_edit(story_text, edited_text, |old_story, new_story| {
        let read_status = new_story.status.as_ref().and_then(|status_line| status_line.status);
        // Some states of a board have no name of their own in a spec.
        let as_spec =
            new_story.status.as_ref().and_then(|status_line| status_line.spec) == Some(SpecStatus::from(target_status));
        // The status is what was meant to change, so it is made equal before the rest is compared.
        old_story.status = new_story.status.clone();
        let differ = new_story.problems.iter().any(|problem| problem.rule == rules::STORY_STATUS_DIFFERS);
        (read_status == Some(target_status) || as_spec) && !differ
    })
}

/// Whether front matter belongs to a spec, which has other names for states: `bmad-build-auto` stops at `review`. A type
/// counts only if there is a status as well.
fn is_spec_front_matter(front_matter: &yaml::YamlNode) -> bool {
    const SPEC_KEYS: [&str; 4] = ["review_loop_iteration", "followup_review_recommended", "route", "baseline_revision"];
    const SPEC_TYPES: [&str; 4] = ["feature", "bugfix", "refactor", "chore"];
    let text_of = |spec_key: &str| front_matter.get(spec_key).and_then(yaml::YamlNode::scalar_text).map(str::trim);
    let spec_status = text_of("status").and_then(SpecStatus::parse);
    let is_spec_only_status =
        matches!(spec_status, Some(SpecStatus::Draft | SpecStatus::InReview | SpecStatus::Blocked));
    let has_spec_type =
        text_of("type").is_some_and(|type_name| SPEC_TYPES.contains(&type_name)) && text_of("status").is_some();
    is_spec_only_status || has_spec_type || SPEC_KEYS.iter().any(|spec_key| front_matter.get(spec_key).is_some())
}

/// The refusal for a line whose text is no status: the text is a user's sentence, and it stays.
fn unknown_status_refusal(status_text: &str) -> StoryEditRefusal {
    let known_statuses: Vec<&str> = StoryStatus::ALL.into_iter().map(StoryStatus::as_str).collect();
    let status_text: String = status_text.chars().take(80).collect();
    StoryEditRefusal::new(
        format!("the status line says `{status_text}`, which is no status"),
        format!("write one of {} there", known_statuses.join(", ")),
    )
}

/// The edit that replaces the status word in the body, and nothing around it.
fn edit_body_status(
    story_text: &str,
    status_spot: &status::StatusSpot,
    status_word: &str,
) -> Result<ByteEdit, StoryEditRefusal> {
    if !status_spot.byte_range.is_empty() {
        return Ok((status_spot.byte_range.clone(), status_word.to_string()));
    }
    if !status_spot.status_line.said.is_empty() {
        return Err(unknown_status_refusal(&status_spot.status_line.said));
    }
    // An empty status gets spaces around it only where there are none yet.
    let is_blank = |neighbour: Option<char>| neighbour.is_none_or(char::is_whitespace);
    let space_before = if is_blank(story_text[..status_spot.byte_range.start].chars().next_back()) { "" } else { " " };
    let space_behind = if is_blank(story_text[status_spot.byte_range.end..].chars().next()) { "" } else { " " };
    Ok((status_spot.byte_range.clone(), format!("{space_before}{status_word}{space_behind}")))
}

/// A status and its name in this front matter: a spec has names of its own.
struct NewStatus {
    status: StoryStatus,
    written_as: &'static str,
}

/// The edit that replaces the status word in the front matter; `None` if it already says so.
fn edit_front_status(
    story_text: &str,
    front_start: usize,
    status_node: &yaml::YamlNode,
    new_status: NewStatus,
) -> Result<Option<ByteEdit>, StoryEditRefusal> {
    let not_plain_refusal =
        || StoryEditRefusal::new("the status in the front matter is no plain word", "write it as `status: done`");
    if matches!(status_node.content, yaml::YamlContent::Null) {
        return Err(StoryEditRefusal::new(
            "the front matter has `status:` and nothing behind it",
            "write a status there",
        ));
    }
    let status_text = status_node.scalar_text().ok_or_else(not_plain_refusal)?;
    // The value may continue behind the word, as in `in-progress, see Bob`; only the word is replaced.
    let word_range = status::find_status_word(status_text).ok_or_else(|| unknown_status_refusal(status_text))?;
    if status_text.get(word_range).and_then(StoryStatus::parse) == Some(new_status.status) {
        return Ok(None);
    }
    let span = status_node.span.clone().ok_or_else(not_plain_refusal)?;
    let (start, end) = (front_start + span.start, front_start + span.end);
    // A value over several lines or through an alias has no bytes of its own.
    let old_text =
        story_text.get(start..end).filter(|old_text| !old_text.contains('\n')).ok_or_else(not_plain_refusal)?;
    let word_in_source = status::find_status_word(old_text).ok_or_else(not_plain_refusal)?;
    Ok(Some((start + word_in_source.start..start + word_in_source.end, new_status.written_as.to_string())))
}

/// The edit that inserts a status under the title, as the template has it; otherwise at the top.
fn insert_status(markdown: &MarkdownPage<'_>, status_word: &str) -> ByteEdit {
    let line_ending = markdown.line_ending();
    // A later heading of the first level is not the title.
    let first_heading = markdown.lines.iter().position(|line| line.heading().is_some());
    let is_title =
        |heading_index: &usize| markdown.lines[*heading_index].heading().is_some_and(|(level, _)| level == 1);
    if let Some(title_index) = first_heading.filter(is_title) {
        return insert_lines(markdown, title_index + 1, &[format!("{line_ending}Status: {status_word}")]);
    }
    let first_body_line = markdown
        .lines
        .iter()
        .position(|line| line.kind != crate::markdown::MarkdownLineKind::FrontMatter)
        .unwrap_or(markdown.lines.len());
    let blank_line = if markdown.lines.get(first_body_line).is_none_or(crate::markdown::MarkdownLine::is_blank) {
        ""
    } else {
        line_ending
    };
    let (range, inserted_text) = insert_lines(markdown, first_body_line, &[format!("Status: {status_word}")]);
    (range, format!("{inserted_text}{blank_line}"))
}

/// Ticks a task, or removes the tick.
pub fn tick_task(story_text: &str, task_id: &str, is_done: bool) -> Result<String, StoryEditRefusal> {
    let markdown = MarkdownPage::parse(story_text);
    let story_tasks = tasks::read_tasks(&markdown);
    let mut task_line = None;
    let mut task_count = 0;
    tasks::visit_tasks(&story_tasks, &mut |visited_task| {
        task_count += 1;
        if visited_task.id == task_id {
            task_line = Some(visited_task.line);
        }
    });
    let task_line = task_line.ok_or_else(|| {
        StoryEditRefusal::new(
            format!("there is no task {task_id}; the story has {task_count}"),
            "see them: tribunal story KEY",
        )
    })?;
    let edited_text = apply_tick(story_text, &markdown, task_line, is_done)?;
    // The task is made equal in the old reading; everything else must then be the same.
    verify_edit(story_text, edited_text, |old_story, new_story| {
        let mut is_ticked = false;
        tasks::visit_tasks_mut(&mut old_story.tasks, &mut |visited_task| {
            if visited_task.id == task_id {
                visited_task.done = is_done;
            }
        });
        tasks::visit_tasks(&new_story.tasks, &mut |visited_task| {
            is_ticked |= visited_task.id == task_id && visited_task.done == is_done
        });
        is_ticked
    })
}

/// Ticks an item that a review left, by its line; the same item in the review's own list is ticked with it.
pub fn tick_follow_up(story_text: &str, line_number: usize, is_done: bool) -> Result<String, StoryEditRefusal> {
    let markdown = MarkdownPage::parse(story_text);
    let previous = agent_record::read_follow_ups(&markdown);
    let Some(follow_up) = previous.iter().find(|follow_up| follow_up.line == line_number) else {
        let reason = format!("nothing that a review left stands on line {line_number}");
        return Err(StoryEditRefusal::new(reason, "see what is left: tribunal story KEY"));
    };
    let mut edits = Vec::new();
    for line_number in agent_record::find_repeated_lines(&markdown, follow_up) {
        edits.extend(make_tick_edit(&markdown, line_number, is_done)?);
    }
    let edited_text = apply_edits(story_text, &edits);
    verify_edit(story_text, edited_text, |previous, edited_story| {
        previous
            .follow_ups
            .iter_mut()
            .filter(|follow_up| follow_up.line == line_number)
            .for_each(|follow_up| follow_up.done = is_done);
        edited_story.follow_ups.iter().any(|follow_up| follow_up.line == line_number && follow_up.done == is_done)
    })
}

fn apply_tick(
    story_text: &str,
    markdown: &MarkdownPage<'_>,
    line_number: usize,
    is_done: bool,
) -> Result<String, StoryEditRefusal> {
    let edit = make_tick_edit(markdown, line_number, is_done)?;
    Ok(apply_edits(story_text, edit.as_slice()))
}

/// The edit for one box; `None` if it already has that state.
fn make_tick_edit(
    markdown: &MarkdownPage<'_>,
    line_number: usize,
    is_done: bool,
) -> Result<Option<ByteEdit>, StoryEditRefusal> {
    let missing_box = || StoryEditRefusal::new(format!("line {line_number} has no box"), "read the file again");
    let markdown_line = markdown.lines.get(line_number.saturating_sub(1)).ok_or_else(missing_box)?;
    let checkbox_item = tasks::parse_checkbox(markdown_line).ok_or_else(missing_box)?;
    let box_mark = if is_done { "x" } else { " " };
    Ok((checkbox_item.done != is_done)
        .then(|| (checkbox_item.box_range.0..checkbox_item.box_range.1, box_mark.to_string())))
}

/// Adds files to the list; files that it already has are left out. A missing list is created where the template has it.
pub fn add_files(story_text: &str, file_paths: &[&str]) -> Result<String, StoryEditRefusal> {
    let markdown = MarkdownPage::parse(story_text);
    let known_files = agent_record::read_file_list(&markdown);
    let section = agent_record::find_file_section(&markdown);
    let listed_lines = section.as_ref().map(|section| &markdown.lines[section.line_range.clone()]).unwrap_or_default();
    let mut new_files: Vec<&str> = Vec::new();
    for file_path in file_paths {
        // A path that could not be read back from the list is refused before anything is written.
        let is_invalid =
            file_path.trim() != *file_path || file_path.is_empty() || file_path.contains(['\n', '\r', '`']);
        if is_invalid || file_path.contains("://") {
            return Err(StoryEditRefusal::new(
                format!("{file_path:?} is no path that a list can hold"),
                "name a file of the project",
            ));
        }
        // A name without an extension is no recognizable path, so the lines are compared as well.
        let is_listed = known_files.iter().any(|listed_file| listed_file.text == *file_path)
            || listed_lines.iter().any(|line| agent_record::is_only_path(line, file_path));
        if !is_listed && !new_files.contains(file_path) {
            new_files.push(file_path);
        }
    }
    if new_files.is_empty() {
        return Ok(story_text.to_string());
    }
    let edit = match section {
        Some(section) => append_to_list(&markdown, &section, &new_files),
        None => insert_file_list(&markdown, &new_files),
    };
    verify_edit(story_text, apply_edits(story_text, &[edit]), |old_story, new_story| {
        // The new files must be read back at the end of the list, in their order.
        let added_files = new_story.files.split_off(old_story.files.len().min(new_story.files.len()));
        added_files.iter().map(|listed_file| listed_file.text.as_str()).eq(new_files.iter().copied())
    })
}

/// The edit that adds files behind the last one, in its style.
fn append_to_list(markdown: &MarkdownPage<'_>, section: &MarkdownSection<'_>, file_paths: &[&str]) -> ByteEdit {
    let lines = &markdown.lines[section.line_range.clone()];
    let last_index = lines.iter().rposition(|line| agent_record::parse_file_line(line).is_some());
    let (insert_index, line_prefix, is_quoted) =
        match last_index.and_then(|last_index| Some((last_index, lines.get(last_index)?))) {
            Some((last_index, line)) => {
                // Indentation, bullet and backticks are taken from the last file of the list.
                let item_text = line.text.trim_start_matches([' ', '\t']);
                let indent = &line.text[..line.text.len() - item_text.len()];
                let bullet_mark =
                    item_text.chars().next().filter(|character| matches!(character, '-' | '*' | '+')).unwrap_or('-');
                (section.line_range.start + last_index + 1, format!("{indent}{bullet_mark} "), line.text.contains('`'))
            }
            None => {
                // Without files, the new ones follow the heading or a remark that there are none.
                let section_lines = lines.iter().take_while(|line| line.heading().is_none()).enumerate();
                let last_filled = section_lines.filter(|(_, line)| !line.is_blank()).map(|(index, _)| index + 1).last();
                let insert_index = section.line_range.start + last_filled.unwrap_or(0);
                return insert_lines(
                    markdown,
                    insert_index,
                    &with_blank_line_before(markdown, insert_index, format_file_lines(file_paths, "- ", false)),
                );
            }
        };
    insert_lines(markdown, insert_index, &format_file_lines(file_paths, &line_prefix, is_quoted))
}

fn format_file_lines(file_paths: &[&str], line_prefix: &str, is_quoted: bool) -> Vec<String> {
    // A path with a space cannot be read back without backticks.
    let format_line = |file_path: &&str| match is_quoted || agent_record::find_path(file_path) != Some(file_path) {
        true => format!("{line_prefix}`{file_path}`"),
        false => format!("{line_prefix}{file_path}"),
    };
    file_paths.iter().map(format_line).collect()
}

/// The edit that creates the list at the end of `Dev Agent Record`; without that section, before what reviews add behind it.
fn insert_file_list(markdown: &MarkdownPage<'_>, file_paths: &[&str]) -> ByteEdit {
    let mut new_lines = format_file_lines(file_paths, "- ", false);
    let prepend_heading = |new_lines: &mut Vec<String>, title: &str| {
        new_lines.splice(0..0, [title.to_string(), String::new()]);
    };
    if let Some(record_section) = markdown.find_section(|title| title == "dev agent record") {
        prepend_heading(&mut new_lines, &format!("{} File List", "#".repeat((record_section.level + 1).min(6))));
        let insert_index = end_without_blanks(markdown, record_section.line_range.start, record_section.line_range.end);
        return insert_lines(markdown, insert_index, &with_blank_line_before(markdown, insert_index, new_lines));
    }
    prepend_heading(&mut new_lines, "### File List");
    prepend_heading(&mut new_lines, "## Dev Agent Record");
    let following_section =
        markdown.find_section(|title| title.starts_with("change log") || title.starts_with("senior developer review"));
    let section_end = following_section.map_or(markdown.lines.len(), |section| section.heading_index);
    let insert_index = end_without_blanks(markdown, 0, section_end);
    insert_lines(markdown, insert_index, &with_blank_line_before(markdown, insert_index, new_lines))
}

/// Adds what a review leaves to do, in its dialect; an item that already exists, ticked or not, is not added again.
pub fn add_follow_ups(
    story_text: &str,
    dialect: ReviewDialect,
    new_items: &[NewFollowUp],
) -> Result<String, StoryEditRefusal> {
    let markdown = MarkdownPage::parse(story_text);
    let mut known_items = agent_record::read_follow_ups(&markdown);
    let mut new_lines = Vec::new();
    for new_item in new_items {
        // Each line is read back first, so that an item is compared in the form in which it will be found later.
        let (item_line, parsed_item) = format_readable_line(dialect, new_item)?;
        if !known_items
            .iter()
            .any(|known_item| known_item.text == parsed_item.text && known_item.place == parsed_item.place)
        {
            known_items.push(parsed_item);
            new_lines.push(item_line);
        }
    }
    if new_lines.is_empty() {
        return Ok(story_text.to_string());
    }
    let new_count = new_lines.len();
    let insertion_edit = insert_follow_ups(&markdown, dialect, new_lines);
    verify_edit(story_text, apply_edits(story_text, &[insertion_edit]), |old_story, new_story| {
        // Old items are kept in the comparison; the rest must be exactly the new ones, in their order.
        let known_before =
            |new_item: &FollowUp| old_story.follow_ups.iter().any(|known_item| is_same_follow_up(known_item, new_item));
        let (known_before, added): (Vec<FollowUp>, Vec<FollowUp>) =
            std::mem::take(&mut new_story.follow_ups).into_iter().partition(known_before);
        new_story.follow_ups = known_before;
        let expected = &known_items[known_items.len() - new_count..];
        added.len() == new_count
            && added
                .iter()
                .zip(expected)
                .all(|(added, expected)| is_same_follow_up(added, expected) && added.dialect == dialect)
    })
}

fn is_same_follow_up(left_item: &FollowUp, right_item: &FollowUp) -> bool {
    left_item.text == right_item.text && left_item.place == right_item.place && left_item.kind == right_item.kind
}

/// The edit that adds items behind the last one of their section; a missing section is created at the end of the tasks.
fn insert_follow_ups(markdown: &MarkdownPage<'_>, dialect: ReviewDialect, mut new_lines: Vec<String>) -> ByteEdit {
    let (title_start, section_title) = match dialect {
        ReviewDialect::AiReview => ("review follow", "Review Follow-ups (AI)"),
        ReviewDialect::Findings => ("review finding", "Review Findings"),
    };
    if let Some(section) = markdown.find_section(|section_title| section_title.starts_with(title_start)) {
        let section_lines = &markdown.lines[section.line_range.clone()];
        let last_box = section_lines.iter().rposition(|line| tasks::parse_checkbox(line).is_some());
        let insert_index = section.line_range.start + last_box.map_or(0, |last_box| last_box + 1);
        let new_lines =
            if last_box.is_some() { new_lines } else { with_blank_line_before(markdown, insert_index, new_lines) };
        return insert_lines(markdown, insert_index, &new_lines);
    }
    let section = markdown.sections().into_iter().find(|section| tasks::is_tasks_title(section.title));
    let (heading_level, first_line, section_end) = match &section {
        Some(section) => ((section.level + 1).min(6), section.line_range.start, section.line_range.end),
        // The section comes before what agents write about their work; without any of that, at the end.
        None => {
            let agent_titles = ["dev notes", "dev agent record", "change log", "senior developer review"];
            let following_section = markdown.find_section(|section_title| {
                agent_titles.iter().any(|title_start| section_title.starts_with(title_start))
            });
            let heading_level = if tasks::find_task_items(markdown).is_empty() { 3 } else { 2 };
            (heading_level, 0, following_section.map_or(markdown.lines.len(), |section| section.heading_index))
        }
    };
    new_lines.splice(0..0, [format!("{} {section_title}", "#".repeat(heading_level)), String::new()]);
    // Beside a section with that name, tasks elsewhere would no longer be read as tasks.
    if section.is_none() && heading_level == 3 {
        new_lines.splice(0..0, ["## Tasks / Subtasks".to_string(), String::new()]);
    }
    let insert_index = end_without_blanks(markdown, first_line, section_end);
    insert_lines(markdown, insert_index, &with_blank_line_before(markdown, insert_index, new_lines))
}

/// The line for an item that can be read back as intended. A place that cannot be goes into the text: the finding matters
/// more than its form.
fn format_readable_line(
    dialect: ReviewDialect,
    new_item: &NewFollowUp,
) -> Result<(String, FollowUp), StoryEditRefusal> {
    let item_line = format_follow_up(dialect, new_item);
    let read_back = |item_line: &str| {
        let read_back = agent_record::parse_follow_up_line(item_line)?;
        (!read_back.text.is_empty() && read_back.kind.as_ref() == Some(&new_item.kind)).then_some(read_back)
    };
    if let Some(read_back) =
        read_back(&item_line).filter(|read_back| new_item.place.is_none() || read_back.place == new_item.place)
    {
        return Ok((item_line, read_back));
    }
    let code_location = new_item.place.as_deref().map(str::trim).filter(|code_location| !code_location.is_empty());
    let text_with_location = code_location
        .map(|code_location| format!("{} ({code_location})", new_item.text))
        .filter(|_| !new_item.text.trim().is_empty());
    // Brackets in the text would be read as tags or places.
    let plain_text = text_with_location.unwrap_or_else(|| new_item.text.clone()).replace('[', "(").replace(']', ")");
    let plain_line = format_follow_up(dialect, &NewFollowUp { text: plain_text, place: None, ..new_item.clone() });
    let readable_line = read_back(&plain_line).map(|read_back| (plain_line, read_back));
    readable_line.ok_or_else(|| {
        let reason = format!("{item_line:?} would not be read again as it is meant");
        StoryEditRefusal::new(reason, "say it in plain words, and the place as file:line")
    })
}

fn format_follow_up(dialect: ReviewDialect, new_item: &NewFollowUp) -> String {
    // The text must stay on one line and must not open a comment that would hide the rest of the file.
    let box_text = if new_item.done { "[x]" } else { "[ ]" };
    let item_text: Vec<&str> = new_item.text.split_whitespace().collect();
    let item_text = escape_comments(&item_text.join(" "));
    let location_text = new_item.place.as_ref().map(|location_text| format!(" [{location_text}]")).unwrap_or_default();
    let review_tag = match dialect {
        ReviewDialect::AiReview => "AI-Review",
        ReviewDialect::Findings => "Review",
    };
    format!("- {box_text} [{review_tag}][{}] {}{location_text}", new_item.kind.label(), item_text)
}

/// The index behind the last line that is not blank.
fn end_without_blanks(markdown: &MarkdownPage<'_>, first_index: usize, end_index: usize) -> usize {
    let section_lines = markdown.lines.get(first_index..end_index).unwrap_or_default();
    first_index + section_lines.iter().rposition(|line| !line.is_blank()).map_or(0, |last_filled| last_filled + 1)
}

/// The lines with a blank line before them, if the line before is not blank.
fn with_blank_line_before(markdown: &MarkdownPage<'_>, insert_index: usize, mut new_lines: Vec<String>) -> Vec<String> {
    if insert_index
        .checked_sub(1)
        .and_then(|previous_index| markdown.lines.get(previous_index))
        .is_some_and(|line| !line.is_blank())
    {
        new_lines.insert(0, String::new());
    }
    new_lines
}

/// The edit that inserts whole lines before a line; the last line of the file gets the line ending that it lacks.
fn insert_lines(markdown: &MarkdownPage<'_>, line_index: usize, new_lines: &[String]) -> ByteEdit {
    let line_ending = markdown.line_ending();
    let byte_offset = markdown.lines.get(line_index).map_or(markdown.text.len(), |line| line.start_offset);
    let lacks_line_ending = byte_offset == markdown.text.len()
        && !markdown.text.is_empty()
        && !markdown.text.ends_with('\n')
        && line_index > 0;
    let mut inserted_text = new_lines.join(line_ending);
    if lacks_line_ending {
        inserted_text.insert_str(0, line_ending);
    } else {
        inserted_text.push_str(line_ending);
    }
    (byte_offset..byte_offset, inserted_text)
}

/// Returns the new text if it says what was intended and is otherwise the same as the old one. `accept_changes` makes the two
/// readings equal where they are meant to differ, and returns whether the intended change is there.
fn verify_edit(
    old_text: &str,
    new_text: String,
    accept_changes: impl FnOnce(&mut Story, &mut Story) -> bool,
) -> Result<String, StoryEditRefusal> {
    let mut old_story = super::read_story("", old_text);
    let mut new_story = super::read_story("", &new_text);
    let is_intended = accept_changes(&mut old_story, &mut new_story);
    if is_intended && without_positions(old_story) == without_positions(new_story) {
        return Ok(new_text);
    }
    Err(StoryEditRefusal::new(
        "the changed file would not say what was meant",
        "change it by hand; its form is too unusual",
    ))
}

/// A story without line numbers, which may move, and without problems, which contain line numbers.
fn without_positions(mut story: Story) -> Story {
    story.problems.clear();
    tasks::visit_tasks_mut(&mut story.tasks, &mut |task| task.line = 0);
    story.criteria.iter_mut().for_each(|positioned| positioned.line = 0);
    story
        .files
        .iter_mut()
        .chain(&mut story.title)
        .chain(&mut story.outcome)
        .for_each(|located_text| located_text.line = 0);
    story.follow_ups.iter_mut().for_each(|positioned| positioned.line = 0);
    story.status.iter_mut().for_each(|status| status.line = 0);
    story
}

/// The name of a kind, for users and files.
impl FollowUpKind {
    pub fn label(&self) -> String {
        match self {
            FollowUpKind::Decision => "Decision".into(),
            FollowUpKind::Patch => "Patch".into(),
            FollowUpKind::Defer => "Defer".into(),
            FollowUpKind::Other(severity_name) => severity_name.clone(),
            FollowUpKind::Severity(severity) => {
                let severity_name = severity.as_str();
                let first_letter = severity_name.chars().next().map(|character| character.to_ascii_uppercase());
                first_letter.into_iter().chain(severity_name.chars().skip(1)).collect()
            }
        }
    }
}
