//! Adds what a review leaves to do, as items that can be read back.

use super::{ByteEdit, StoryEditRefusal, end_without_blanks, insert_lines, verify_edit, with_blank_line_before};
use crate::{
    layout::Era,
    markdown::{MarkdownPage, apply_edits, escape_comments},
    story::{FollowUp, FollowUpKind, ReviewDialect, agent_record, tasks},
};

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

/// Chooses the dialect that a story's file uses already, else that of its era.
pub fn choose_dialect(story_text: &str, era: Option<Era>) -> ReviewDialect {
    let follow_ups = agent_record::read_follow_ups(&MarkdownPage::parse(story_text));
    follow_ups.last().map(|last_item| last_item.dialect).unwrap_or(match era {
        Some(Era::A | Era::B | Era::C1) => ReviewDialect::AiReview,
        _ => ReviewDialect::Findings,
    })
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
        let is_known =
            |new_item: &FollowUp| old_story.follow_ups.iter().any(|known_item| is_same_follow_up(known_item, new_item));
        let (known_before, added): (Vec<FollowUp>, Vec<FollowUp>) =
            std::mem::take(&mut new_story.follow_ups).into_iter().partition(is_known);
        new_story.follow_ups = known_before;
        let expected = &known_items[known_items.len() - new_count..];
        added.len() == new_count
            && added.iter().zip(expected).all(|(added_item, expected_item)| {
                is_same_follow_up(added_item, expected_item) && added_item.dialect == dialect
            })
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
    if let Some(section) = markdown.find_section(|title| title.starts_with(title_start)) {
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
            let following_section =
                markdown.find_section(|title| agent_titles.iter().any(|agent_title| title.starts_with(agent_title)));
            let heading_level = if tasks::find_task_items(markdown).is_empty() { 3 } else { 2 };
            (heading_level, 0, following_section.map_or(markdown.lines.len(), |section| section.heading_index))
        }
    };
    new_lines.splice(0..0, [format!("{} {section_title}", "#".repeat(heading_level)), String::new()]);
    // A story with tasks gets no such section: tasks outside it would no longer be read as tasks.
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
        let parsed_item = agent_record::parse_follow_up_line(item_line)?;
        (!parsed_item.text.is_empty() && parsed_item.kind.as_ref() == Some(&new_item.kind)).then_some(parsed_item)
    };
    if let Some(parsed_item) =
        read_back(&item_line).filter(|parsed_item| new_item.place.is_none() || parsed_item.place == new_item.place)
    {
        return Ok((item_line, parsed_item));
    }
    let code_location = new_item.place.as_deref().map(str::trim).filter(|code_location| !code_location.is_empty());
    let text_with_location = code_location
        .map(|code_location| format!("{} ({code_location})", new_item.text))
        .filter(|_| !new_item.text.trim().is_empty());
    // Brackets in the text would be read as tags or places.
    let plain_text = text_with_location.unwrap_or_else(|| new_item.text.clone()).replace('[', "(").replace(']', ")");
    let plain_line = format_follow_up(dialect, &NewFollowUp { text: plain_text, place: None, ..new_item.clone() });
    let readable_line = read_back(&plain_line).map(|parsed_item| (plain_line, parsed_item));
    readable_line.ok_or_else(|| {
        let reason = format!("{item_line:?} would not read back as intended");
        StoryEditRefusal::new(reason, "use plain text, and give the location as file:line")
    })
}

fn format_follow_up(dialect: ReviewDialect, new_item: &NewFollowUp) -> String {
    let box_text = if new_item.done { "[x]" } else { "[ ]" };
    // The text must stay on one line and must not open a comment that would hide the rest of the file.
    let words: Vec<&str> = new_item.text.split_whitespace().collect();
    let item_text = escape_comments(&words.join(" "));
    let location_text = new_item.place.as_ref().map(|location| format!(" [{location}]")).unwrap_or_default();
    let review_tag = match dialect {
        ReviewDialect::AiReview => "AI-Review",
        ReviewDialect::Findings => "Review",
    };
    format!("- {box_text} [{review_tag}][{}] {}{location_text}", new_item.kind.label(), item_text)
}

/// The name of a kind, for users and files.
impl FollowUpKind {
    pub fn label(&self) -> String {
        match self {
            FollowUpKind::Decision => "Decision".into(),
            FollowUpKind::Patch => "Patch".into(),
            FollowUpKind::Defer => "Defer".into(),
            FollowUpKind::Other(kind_name) => kind_name.clone(),
            FollowUpKind::Severity(severity) => {
                let severity_name = severity.as_str();
                let first_letter = severity_name.chars().next().map(|character| character.to_ascii_uppercase());
                first_letter.into_iter().chain(severity_name.chars().skip(1)).collect()
            }
        }
    }
}
