//! Parses what the user changed in a tracker.
//!
//! Every issue has a comment with its state when it was written. So an edit is compared with what the user saw, not with the
//! current state: an old copy that is saved late brings its own edits and reverts none of ours.
//!
//! | in the file | means |
//! | --- | --- |
//! | the box ticked, or unticked | fixed by the user; open again |
//! | the severity replaced | that severity |
//! | the status replaced by `open`, `dismissed: why`, `deferred: why`, `fixed` | that status |
//! | lines added below an issue | a remark, for the next briefs |
//! | a heading `### …` without a known id | a finding of the user |
//!
//! Other edits are reported as not understood, and the next write keeps this version under another name.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{ISSUES_END, ISSUES_START, SNAPSHOT_PREFIX, STAMP_PREFIX, stamp_value};
use crate::{
    findings::finding::Severity,
    runs::user_request::{FindingChange, FindingSnapshot, UserRequest},
};
use tribunal_engine::{
    ids::{FindingId, Hash},
    text::{sanitize_to_line, truncate_chars},
    user_remark::UserRemark,
};

/// The edits that were understood, and those that were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackerEdits {
    pub requests: Vec<UserRequest>,
    /// The edits that were not understood, one line each.
    pub unusable_edits: Vec<String>,
}

/// An issue as it is written in the file.
struct IssueBlock<'t> {
    line_number: usize,
    heading: &'t str,
    body_lines: Vec<&'t str>,
}

pub fn parse_edits(tracker_text: &str) -> TrackerEdits {
    let mut tracker_edits = TrackerEdits::default();
    let Some((start_line, end_line)) = find_markers(tracker_text) else {
        tracker_edits.unusable_edits.push(format!("the lines `{ISSUES_START}` and `{ISSUES_END}` are missing"));
        return tracker_edits;
    };
    let lines: Vec<&str> = tracker_text.lines().collect();
    let mut issue_blocks: Vec<IssueBlock<'_>> = Vec::new();
    for (line_index, line) in lines.iter().enumerate().take(end_line).skip(start_line + 1) {
        match (line.strip_prefix("### "), issue_blocks.last_mut()) {
            (Some(heading), _) => {
                issue_blocks.push(IssueBlock { line_number: line_index + 1, heading, body_lines: Vec::new() })
            }
            (None, Some(issue_block)) => issue_block.body_lines.push(line),
            // Empty lines between the marker and the first issue are ours.
            (None, None) if line.trim().is_empty() => {}
            (None, None) => {
                tracker_edits.unusable_edits.push(format!("line {} does not belong to an issue", line_index + 1))
            }
        }
    }
    for issue_block in &issue_blocks {
        read_issue(issue_block, &mut tracker_edits);
    }
    let (text_above, text_below) =
        tracker_text.split_at(tracker_text.rfind(STAMP_PREFIX).unwrap_or(tracker_text.len()));
    let text_after = text_below.split_once("-->").map_or("", |(_, text_after)| text_after);
    // Text outside the issues is generated, so an edit there would be lost with the next version.
    if stamp_value(tracker_text, "frame") != Some(frame_hash(text_above).as_str()) || !text_after.trim().is_empty() {
        tracker_edits
            .unusable_edits
            .push(String::from("lines outside the issues were changed, or an issue was removed"));
    }
    tracker_edits
}

/// Returns the lines of the two markers, from 0.
fn find_markers(tracker_text: &str) -> Option<(usize, usize)> {
    let start_line = tracker_text.lines().position(|line| line.trim_end() == ISSUES_START)?;
    let end_line = tracker_text.lines().position(|line| line.trim_end() == ISSUES_END)?;
    (start_line < end_line).then_some((start_line, end_line))
}

/// Hashes everything around the issues and the ids of the issues; issues that the user added do not count.
pub(super) fn frame_hash(tracker_text: &str) -> String {
    let (start_line, end_line) = find_markers(tracker_text).unwrap_or((usize::MAX, usize::MAX));
    let mut hashed_text = String::new();
    for (line_index, line) in tracker_text.lines().enumerate() {
        if line_index <= start_line || line_index >= end_line {
            hashed_text.push_str(line.trim_end());
            hashed_text.push('\n');
        // Of the issues only the ids count, so that an edited issue does not change the frame but a removed one does.
        } else if let Some(issue_id) =
            line.trim().strip_prefix(SNAPSHOT_PREFIX).and_then(|snapshot_text| snapshot_text.split(' ').next())
        {
            hashed_text.push_str(issue_id);
            hashed_text.push('\n');
        }
    }
    Hash::digest_of(hashed_text.as_bytes()).short_hex().to_string()
}

/// The parts of a heading such as `[x] F1 · high · dismissed: it is meant so`.
struct IssueHeading<'t> {
    is_ticked: bool,
    finding_id: Option<FindingId>,
    severity: Option<&'t str>,
    status: &'t str,
}

fn parse_heading(heading_text: &str) -> IssueHeading<'_> {
    let heading_text = heading_text.trim();
    let is_ticked = ["[x]", "[X]"].iter().any(|checkbox| heading_text.starts_with(checkbox));
    let after_box = heading_text
        .strip_prefix(['['])
        .and_then(|after_bracket| after_bracket.split_once(']'))
        .map_or(heading_text, |(_, after_box)| after_box);
    let mut fields = after_box.splitn(3, '·').map(str::trim);
    // A heading without an id is an issue that the user added.
    let finding_id = fields.next().and_then(|id_text| id_text.strip_prefix('F')?.parse().ok()).map(FindingId);
    let severity = fields.next();
    IssueHeading { is_ticked, finding_id, severity, status: fields.next().unwrap_or_default() }
}

fn read_issue(issue_block: &IssueBlock<'_>, tracker_edits: &mut TrackerEdits) {
    let heading_now = parse_heading(issue_block.heading);
    let has_snapshot = issue_block.body_lines.iter().any(|body_line| body_line.trim().starts_with(SNAPSHOT_PREFIX));
    let Some(finding_id) = heading_now.finding_id else {
        // With a comment of ours it is an edited issue, without one a new issue.
        if has_snapshot {
            tracker_edits
                .unusable_edits
                .push(format!("line {}: the id of the issue is missing", issue_block.line_number));
        } else {
            read_added_issue(issue_block, tracker_edits);
        }
        return;
    };
    let snapshot_text = issue_block
        .body_lines
        .iter()
        .find_map(|body_line| body_line.trim().strip_prefix(SNAPSHOT_PREFIX)?.strip_suffix(" -->"));
    // Without the original state it cannot be told what was edited.
    let Some(snapshot) =
        snapshot_text.and_then(IssueSnapshot::parse).filter(|snapshot| snapshot.finding_id == finding_id)
    else {
        let line_number = issue_block.line_number;
        tracker_edits.unusable_edits.push(format!(
            "line {line_number}: the `was:` comment of {finding_id} is missing or belongs to another issue"
        ));
        return;
    };
    // Severity and status are independent: one edit may change both.
    match heading_now.severity.and_then(Severity::parse) {
        Some(new_severity) if new_severity != snapshot.severity => {
            tracker_edits.requests.push(snapshot.to_request(FindingChange::Severity { to: new_severity }));
        }
        Some(_) => {}
        None => tracker_edits
            .unusable_edits
            .push(format!("line {}: {finding_id} has no valid severity", issue_block.line_number)),
    }
    if heading_now.status != snapshot.status || heading_now.is_ticked != snapshot.was_ticked() {
        match status_change(&heading_now, &snapshot) {
            Some(change) => tracker_edits.requests.push(snapshot.to_request(change)),
            None => tracker_edits
                .unusable_edits
                .push(format!("line {}: unknown status `{}`", issue_block.line_number, heading_now.status)),
        }
    }
    read_remarks(issue_block, finding_id, &snapshot, tracker_edits);
}

/// Returns the change of the status. Words win over ticks: `dismissed` says more than a tick.
fn status_change(heading_now: &IssueHeading<'_>, snapshot: &IssueSnapshot<'_>) -> Option<FindingChange> {
    // Only the box was changed.
    if heading_now.status == snapshot.status {
        return Some(if heading_now.is_ticked { FindingChange::Fixed } else { FindingChange::Open });
    }
    // The first word is the status, everything behind it the reason.
    let keyword_end =
        heading_now.status.find(|character: char| !character.is_alphanumeric()).unwrap_or(heading_now.status.len());
    let (keyword, reason_text) = heading_now.status.split_at(keyword_end);
    let reason = reason_text
        .trim_matches(|character: char| character.is_whitespace() || ":,;-–()".contains(character))
        .to_string();
    match keyword.to_lowercase().as_str() {
        "open" | "reopened" => Some(FindingChange::Open),
        "fixed" | "done" => Some(FindingChange::Fixed),
        "dismissed" | "dismiss" | "invalid" | "wontfix" => Some(FindingChange::Dismissed { reason }),
        "deferred" | "defer" | "later" => Some(FindingChange::Deferred { reason }),
        _ => None,
    }
}

/// Reads lines that the user added. They are understood if the remaining lines are exactly what was written.
fn read_remarks(
    issue_block: &IssueBlock<'_>,
    finding_id: FindingId,
    snapshot: &IssueSnapshot<'_>,
    tracker_edits: &mut TrackerEdits,
) {
    if hash_body(issue_block.body_lines.iter().copied()) == snapshot.body_hash {
        return;
    }
    let body_lines: Vec<&str> = issue_block.body_lines.iter().copied().filter(|line| !line.trim().is_empty()).collect();
    let is_ours =
        |line: &str| (line.starts_with("- ") && line.contains(": ")) || line.trim().starts_with(SNAPSHOT_PREFIX);
    // One of the lines that do not look generated is the description; the others are the user's, if without them everything
    // is as it was written. Otherwise it cannot be told which lines are the user's and which an agent's.
    let free_lines: Vec<usize> = (0..body_lines.len()).filter(|line_index| !is_ours(body_lines[*line_index])).collect();
    let lines_with_only = |description_line: usize| {
        body_lines.iter().enumerate().filter(move |(line_index, line)| *line_index == description_line || is_ours(line))
    };
    let Some(description_line) = free_lines.iter().find(|candidate_line| {
        hash_body(lines_with_only(**candidate_line).map(|(_, line)| *line)) == snapshot.body_hash
    }) else {
        let line_number = issue_block.line_number;
        tracker_edits.unusable_edits.push(format!("line {line_number}: generated lines of {finding_id} were changed"));
        return;
    };
    let added_lines: Vec<&str> = free_lines
        .iter()
        .filter(|line_index| *line_index != description_line)
        .map(|line_index| body_lines[*line_index])
        .collect();
    if !added_lines.is_empty() {
        let remark_text = truncate_chars(&sanitize_to_line(&added_lines.join(" ")), 1_000);
        tracker_edits.requests.push(UserRequest::Say(UserRemark { about: Some(finding_id), text: remark_text }));
    }
}

fn read_added_issue(issue_block: &IssueBlock<'_>, tracker_edits: &mut TrackerEdits) {
    let mut heading_parts = issue_block.heading.split('·').skip(1).map(str::trim);
    // The first part is the box and the word `new`; the severity follows.
    let severity_text = heading_parts.next();
    let severity = severity_text.and_then(Severity::parse).unwrap_or(Severity::Medium);
    if let Some(severity_text) = severity_text.filter(|severity_text| Severity::parse(severity_text).is_none()) {
        tracker_edits.unusable_edits.push(format!(
            "line {}: unknown severity `{}`, using medium",
            issue_block.line_number,
            truncate_chars(severity_text, 40)
        ));
    }
    let body_lines = issue_block.body_lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    let (quote_lines, text_lines): (Vec<&str>, Vec<&str>) = body_lines.partition(|line| line.starts_with("- Quote:"));
    let quoted_text = quote_lines.first().map(|line| line.trim_start_matches("- Quote:").trim());
    let quoted_text = quoted_text.map(|quoted_text| quoted_text.trim_matches(['“', '”', '"'])).unwrap_or_default();
    // The text is the description; without one it is the heading without its box, marks and severity.
    let heading_text = issue_block.heading.trim_start_matches("[ ]").trim_start_matches("[x]");
    let title_parts: Vec<&str> = heading_text
        .split('·')
        .map(str::trim)
        .filter(|heading_part| Severity::parse(heading_part).is_none() && *heading_part != "new")
        .collect();
    let description = if text_lines.is_empty() { title_parts.join(" ") } else { text_lines.join(" ") };
    let description = truncate_chars(&sanitize_to_line(&description), 2_000);
    if description.trim().is_empty() {
        tracker_edits.unusable_edits.push(format!("line {}: the new issue has no text", issue_block.line_number));
        return;
    }
    tracker_edits.requests.push(UserRequest::Add { severity, description, quote: quoted_text.into() });
}

/// The state of an issue when it was written.
struct IssueSnapshot<'t> {
    finding_id: FindingId,
    severity: Severity,
    body_hash: &'t str,
    status: &'t str,
}

impl<'t> IssueSnapshot<'t> {
    fn to_request(&self, finding_change: FindingChange) -> UserRequest {
        let finding_snapshot = FindingSnapshot { status: self.status.into(), severity: self.severity };
        UserRequest::Amend { finding: self.finding_id, was: Some(finding_snapshot), change: finding_change }
    }

    fn parse(comment_text: &'t str) -> Option<IssueSnapshot<'t>> {
        let mut fields = comment_text.splitn(4, ' ');
        let finding_id = FindingId(fields.next()?.strip_prefix('F')?.parse().ok()?);
        let severity = Severity::parse(fields.next()?)?;
        let body_hash = fields.next()?;
        Some(IssueSnapshot { finding_id, severity, body_hash, status: fields.next()? })
    }

    fn was_ticked(&self) -> bool {
        self.status == "fixed"
    }
}

/// Makes the comment below an issue.
pub(super) fn snapshot_comment(finding_id: FindingId, severity: Severity, status: &str, issue_body: &str) -> String {
    format!("{SNAPSHOT_PREFIX}{finding_id} {severity} {} {status} -->", hash_body(issue_body.lines()))
}

/// Hashes the visible lines; empty ones and the comment itself do not count.
fn hash_body<'l>(body_lines: impl Iterator<Item = &'l str>) -> String {
    let body_lines = body_lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(SNAPSHOT_PREFIX));
    let hashed_lines: Vec<&str> = body_lines.collect();
    // Twelve digits keep the comment short and are enough to notice an edit.
    Hash::digest_of(hashed_lines.join("\n").as_bytes()).short_hex().to_string()
}
