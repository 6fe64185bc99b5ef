//! Sets the status of a story, in the body and in the front matter.

use super::{ByteEdit, StoryEditRefusal, insert_lines, verify_edit};
use crate::{
    markdown::{MarkdownPage, apply_edits},
    problem::rules,
    specs::SpecStatus,
    states::StoryStatus,
    story::status,
    yaml,
};

/// Sets the status in the body, in the front matter, or in both where both have one.
pub fn set_status(story_text: &str, target_status: StoryStatus) -> Result<String, StoryEditRefusal> {
    let markdown = MarkdownPage::parse(story_text);
    let front_matter = markdown.front_matter().map(yaml::parse_yaml).transpose().map_err(|parse_error| {
        StoryEditRefusal::new(format!("{} (in the front matter)", parse_error.message), "fix the YAML and try again")
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
    if body_spots.is_empty() && front_status.is_none() {
        edits.push(insert_status(&markdown, target_status.as_str()));
    }
    edits.extend(edit_body_statuses(story_text, &body_spots, target_status)?);
    let edited_text = apply_edits(story_text, &edits);
    verify_edit(story_text, edited_text, |old_story, new_story| {
        let read_status = new_story.status.as_ref().and_then(|status_line| status_line.status);
        // `draft`, which a spec has for `backlog`, is no state of a board and is compared as a spec's status.
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
    let text_of = |field_name: &str| front_matter.get(field_name).and_then(yaml::YamlNode::scalar_text).map(str::trim);
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
        format!("unknown status `{status_text}`"),
        format!("use one of {}", known_statuses.join(", ")),
    )
}

/// The edits of all statuses in the body, which must agree with each other.
fn edit_body_statuses(
    story_text: &str,
    body_spots: &[status::StatusSpot],
    target_status: StoryStatus,
) -> Result<Vec<ByteEdit>, StoryEditRefusal> {
    let Some((first_spot, other_spots)) = body_spots.split_first() else { return Ok(Vec::new()) };
    // Two statuses that contradict each other: replacing both would hide a mistake that only the user can resolve.
    if let Some(conflicting_spot) =
        other_spots.iter().find(|conflicting_spot| conflicting_spot.status_line.status != first_spot.status_line.status)
    {
        let reason = format!(
            "lines {} and {} have different statuses",
            first_spot.status_line.line, conflicting_spot.status_line.line
        );
        return Err(StoryEditRefusal::new(reason, "remove one of them"));
    }
    // A status that already has the value keeps its spelling.
    let changed_spots = body_spots.iter().filter(|status_spot| status_spot.status_line.status != Some(target_status));
    changed_spots.map(|status_spot| edit_body_status(story_text, status_spot, target_status.as_str())).collect()
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
        || StoryEditRefusal::new("the status in the front matter is not a plain word", "write it as `status: done`");
    if matches!(status_node.content, yaml::YamlContent::Null) {
        return Err(StoryEditRefusal::new("`status:` in the front matter is empty", "add a status"));
    }
    let status_text = status_node.scalar_text().ok_or_else(not_plain_refusal)?;
    // The value may continue behind the word, as in `in-progress, see Bob`; only the word is replaced.
    let word_range = status::find_status_word(status_text).ok_or_else(|| unknown_status_refusal(status_text))?;
    if status_text.get(word_range).and_then(StoryStatus::parse) == Some(new_status.status) {
        return Ok(None);
    }
    // A value that came through an alias has no span, and one over several lines is not edited.
    let span = status_node.span.clone().ok_or_else(not_plain_refusal)?;
    let (start, end) = (front_start + span.start, front_start + span.end);
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
