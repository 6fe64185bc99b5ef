//! Renders findings as a list.

use std::fmt::Write;

use tribunal_engine::text::keep_last_chars;
use tribunal_workflows::{
    findings::finding::{Evidence, Finding},
    review::{challenge_rules, tracker},
};

use super::{
    rulings::{Ruling, RulingIndex},
    severity_style,
};
use crate::{
    clean_line,
    style::{Screen, TextStyle},
    terminal_text::display_width,
};

/// Renders findings with their evidence, the verdict of challengers and the last thing that happened to them.
pub fn render_findings<'a>(
    findings: impl IntoIterator<Item = &'a Finding>,
    rulings: &RulingIndex,
    screen: &Screen,
) -> String {
    let mut rendered = String::new();
    for finding in findings {
        let place_text = finding.place.as_ref().map(|place| clean_line(&place.to_string())).unwrap_or_default();
        let match_kind = finding.found.map(|match_kind| format!("  ({match_kind})")).unwrap_or_default();
        let finding_head = format!("{:<4} {:<9}", finding.id.to_string(), finding.severity.as_str());
        let status_text = clean_line(&tracker::format_status(&finding.status));
        let place_text = format!("{place_text}{match_kind}");
        let line_columns = display_width(&finding_head) + display_width(&status_text) + display_width(&place_text);
        let finding_head = screen.paint(severity_style(finding.severity), &finding_head);
        // A place that does not fit behind the status goes below it.
        let _ = if screen.fits_line(line_columns + 3) {
            writeln!(rendered, "{}", format!("{finding_head} {status_text}  {place_text}").trim_end())
        } else {
            writeln!(rendered, "{finding_head} {status_text}\n{}", screen.wrap_text(5, &place_text))
        };
        let _ = writeln!(rendered, "{}", screen.wrap_text(5, &finding.description));
        let evidence_text = match &finding.evidence {
            Evidence::Quote { text: quoted_text } => format!("“{quoted_text}”"),
            Evidence::Absence { heading, terms } => {
                format!("nothing about {} under “{heading}”", terms.join(", "))
            }
            Evidence::Check { command, output } => {
                format!("output of {command}: {}", keep_last_chars(output.trim(), 400))
            }
        };
        let _ = writeln!(rendered, "{}", screen.paint(TextStyle::Dim, &screen.wrap_text(5, &evidence_text)));
        let ruling = rulings.find_ruling(finding.id);
        if let Some(ruling) = ruling {
            let _ = writeln!(rendered, "{}", screen.wrap_text(5, &describe_challenge(ruling)));
        }
        // The last note is left out if the ruling already says it.
        let is_told_by_ruling =
            ruling.is_some() && challenge_rules::challenge_note(finding) == Some(finding.last_note());
        // The first note only records that the finding was raised.
        if finding.history.len() > 1 && !is_told_by_ruling {
            let _ = writeln!(rendered, "{}", screen.wrap_text(5, &format!("latest: {}", finding.last_note())));
        }
        if let Some(other_finding) = finding.maybe_same_as {
            let duplicate_text = format!("possibly a duplicate of {other_finding}");
            let _ = writeln!(rendered, "{}", screen.wrap_text(5, &duplicate_text));
        }
    }
    rendered
}

/// Describes a ruling: `challenged: refuted by 2 of 2 challengers: it is excluded (“…”)`.
fn describe_challenge(ruling: &Ruling) -> String {
    let (objection_note, counter_quote) = ruling.strongest_objection().unwrap_or_default();
    let objection_note = if objection_note.is_empty() { String::new() } else { format!(": {objection_note}") };
    let counter_quote = if counter_quote.is_empty() { String::new() } else { format!(" (“{counter_quote}”)") };
    format!("challenged: {}{objection_note}{counter_quote}", ruling.describe())
}
