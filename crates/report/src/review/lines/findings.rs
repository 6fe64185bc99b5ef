//! Draws a raised finding: its head, its description, and who raised it or why it was dismissed at once.

use tribunal_workflows::{
    findings::finding::{DismissalReason, Finding, FindingStatus, TransitionCause},
    runs::view::RunView,
};

use crate::{
    clean_line, line_buffer::LineBuffer, review::severity_style, style::TextStyle, terminal_text::display_width,
};

/// The column at which the description of a finding begins, if its place is short.
const FINDING_HEAD_COLUMNS: usize = 27;
/// A description with less room than this gets a line of its own.
const MIN_DESCRIPTION_COLUMNS: usize = 28;

/// Draws a raised finding, and below it who else raised it or why it was dismissed at once.
pub(super) fn write_finding(finding: &Finding, run_view: &RunView, lines: &mut LineBuffer) {
    // One line tells of all findings that stay dismissed.
    if finding.history.iter().any(|step| matches!(step.cause, TransitionCause::DismissedBefore { .. })) {
        return;
    }
    // In a review of one document the line number is enough; in a change the file has to be named.
    let order = run_view.review_order();
    let is_change_set = order.is_some_and(|order| order.subject.file_path().is_none());
    let place_text = match &finding.place {
        Some(place) if is_change_set => format!("{}  ", clean_line(&place.to_string())),
        Some(place) => format!("line {}", place.line),
        None => String::new(),
    };
    let line_head = format!("{:<4}{:<9}{place_text:<10}", finding.id.to_string(), finding.severity.as_str());
    let head_columns = 4 + display_width(&line_head);
    let head_style = severity_style(finding.severity);
    let has_room = lines.screen.fits_line(head_columns + MIN_DESCRIPTION_COLUMNS);
    // Text below the head starts at the column of the description, or further left if there is no room for it there.
    let indent = if has_room {
        let fitted_text = lines.screen.fit_text(head_columns, &finding.description);
        let line_head = lines.screen.paint(head_style, &line_head);
        lines.write_line(4, &format!("{line_head}{fitted_text}"));
        FINDING_HEAD_COLUMNS
    } else {
        let line_head = lines.screen.paint(head_style, line_head.trim_end());
        lines.write_line(4, &line_head);
        let fitted_text = lines.screen.fit_text(8, &finding.description);
        lines.write_line(8, &fitted_text);
        8
    };
    let raiser_roles: Vec<&str> = finding.raisers.iter().map(|raiser| raiser.role.as_str()).collect();
    let second_text = match &finding.status {
        FindingStatus::Dismissed { why: DismissalReason::Ungrounded } => {
            format!("dismissed: {}", finding.last_note())
        }
        _ if raiser_roles.len() > 1 => format!("raised by {}", raiser_roles.join(" and ")),
        _ => return,
    };
    let second_text = lines.screen.paint(TextStyle::Dim, &lines.screen.wrap_text(indent, &second_text));
    lines.write_line(0, &second_text);
}
