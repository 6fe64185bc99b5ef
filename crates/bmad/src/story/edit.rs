//! Changes a story's file: its status, the box of a task, the list of files, what a review leaves to do, what the operator has
//! confirmed. Only the intended bytes change; everything else keeps its line endings, tabs and spaces.
//!
//! Every change is read again before it is returned: if the file would not say what was intended, or anything else would
//! differ, nothing is changed and the reason is given. Doing the same twice changes nothing the second time. Whether a status
//! may follow another is decided by the board.

mod confirmation;
mod follow_ups;
mod status_line;

use super::{Story, agent_record, file_list, tasks};
use crate::markdown::{MarkdownPage, MarkdownSection, apply_edits};

pub use confirmation::confirm_actions;
pub use follow_ups::{NewFollowUp, add_follow_ups, choose_dialect};
pub use status_line::set_status;

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

/// A range of bytes and the text that replaces them.
type ByteEdit = (std::ops::Range<usize>, String);

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
            format!("unknown task {task_id}; the story has {task_count}"),
            "list the tasks: `tribunal story KEY`",
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
    let follow_ups = agent_record::read_follow_ups(&markdown);
    let Some(follow_up) = follow_ups.iter().find(|follow_up| follow_up.line == line_number) else {
        let reason = format!("no review item on line {line_number}");
        return Err(StoryEditRefusal::new(reason, "list the open items: `tribunal story KEY`"));
    };
    let mut edits = Vec::new();
    for repeated_line in agent_record::find_repeated_lines(&markdown, follow_up) {
        edits.extend(make_tick_edit(&markdown, repeated_line, is_done)?);
    }
    let edited_text = apply_edits(story_text, &edits);
    verify_edit(story_text, edited_text, |old_story, new_story| {
        old_story
            .follow_ups
            .iter_mut()
            .filter(|follow_up| follow_up.line == line_number)
            .for_each(|follow_up| follow_up.done = is_done);
        new_story.follow_ups.iter().any(|follow_up| follow_up.line == line_number && follow_up.done == is_done)
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
    let missing_box = || StoryEditRefusal::new(format!("line {line_number} has no checkbox"), "check the line number");
    let markdown_line = markdown.lines.get(line_number.saturating_sub(1)).ok_or_else(missing_box)?;
    let checkbox_item = tasks::parse_checkbox(markdown_line).ok_or_else(missing_box)?;
    let box_mark = if is_done { "x" } else { " " };
    Ok((checkbox_item.done != is_done)
        .then(|| (checkbox_item.box_range.0..checkbox_item.box_range.1, box_mark.to_string())))
}

/// Adds files to the list; files that it already has are left out. A missing list is created where the template has it.
pub fn add_files(story_text: &str, file_paths: &[&str]) -> Result<String, StoryEditRefusal> {
    let markdown = MarkdownPage::parse(story_text);
    let known_files = file_list::read_file_list(&markdown, true);
    let section = file_list::find_file_section(&markdown);
    let listed_lines = section.as_ref().map(|section| &markdown.lines[section.line_range.clone()]).unwrap_or_default();
    let mut new_files: Vec<&str> = Vec::new();
    for file_path in file_paths {
        // A path that could not be read back from the list is refused before anything is written.
        let is_invalid =
            file_path.trim() != *file_path || file_path.is_empty() || file_path.contains(['\n', '\r', '`']);
        if is_invalid || file_path.contains("://") {
            return Err(StoryEditRefusal::new(
                format!("{file_path:?} is not a path that can be listed"),
                "use the path of a file in the project",
            ));
        }
        // A name without an extension is no recognizable path, so the lines are compared as well.
        let is_listed = known_files.iter().any(|listed_file| listed_file.text == *file_path)
            || listed_lines.iter().any(|line| file_list::is_only_path(line, file_path));
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
    let last_index = lines.iter().rposition(|line| file_list::parse_file_line(line).is_some());
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
    let format_line = |file_path: &&str| match is_quoted || file_list::find_path(file_path) != Some(file_path) {
        true => format!("{line_prefix}`{file_path}`"),
        false => format!("{line_prefix}{file_path}"),
    };
    file_paths.iter().map(format_line).collect()
}

/// The edit that creates the list at the end of `Dev Agent Record`. If that section is missing, it is created as well, before the
/// change log and the review.
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
        "the edited file would not read back as intended",
        "edit the file by hand; its format is too unusual",
    ))
}

/// A story without line numbers, which may move, and without problems, which contain line numbers.
fn without_positions(mut story: Story) -> Story {
    story.problems.clear();
    tasks::visit_tasks_mut(&mut story.tasks, &mut |task| task.line = 0);
    story.criteria.iter_mut().for_each(|criterion| criterion.line = 0);
    story
        .files
        .iter_mut()
        .chain(&mut story.title)
        .chain(&mut story.outcome)
        .for_each(|located_text| located_text.line = 0);
    story.follow_ups.iter_mut().for_each(|follow_up| follow_up.line = 0);
    story.status.iter_mut().for_each(|status| status.line = 0);
    story
}
