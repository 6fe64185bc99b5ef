//! Renders one Markdown page with everything that is known about the findings.

use std::fmt::Write;

use tribunal_workflows::{
    findings::{
        finding::{Evidence, Finding, FindingRaiser, FindingStatus, Severity},
        subject::Subject,
    },
    review::{challenge_rules, tracker},
};

use super::{FindingsExport, StatusGroup, count_by_severity, format_place};
use crate::{
    markdown_escape::{escape_prose, fenced_block, inline_code},
    review::{phrases, rulings::Ruling},
};

/// Renders the whole page.
pub(super) fn render_page(export: &FindingsExport<'_>) -> String {
    let mut rendered = format!("# Review of {}\n\n{}", escape_prose(&export.subject_title()), render_head(export));
    if export.findings.is_empty() {
        rendered.push_str("\nNo matching findings.\n");
        return rendered;
    }
    let _ = write!(rendered, "\n{}", render_counts_table(export));
    // Groups come in the order of their importance.
    for group in StatusGroup::ALL {
        let mut findings = export.findings_in_group(group).peekable();
        if findings.peek().is_some() {
            let _ = writeln!(rendered, "\n## {}", group.title());
        }
        for finding in findings {
            let _ = write!(rendered, "\n{}", render_section(finding, export));
        }
    }
    rendered
}

/// Renders the list at the top: the run, its state, its results and its cost.
fn render_head(export: &FindingsExport<'_>) -> String {
    let run_view = export.run_standing.run_view;
    let reason_suffix = export.state_reason();
    let reason_suffix =
        if reason_suffix.is_empty() { String::new() } else { format!(": {}", escape_prose(&reason_suffix)) };
    let mut rendered = String::new();
    let _ =
        writeln!(rendered, "- Run: {}, started {} UTC", inline_code(export.run_id()), run_view.start_time.format_utc());
    let _ = writeln!(rendered, "- Outcome: **{}**{reason_suffix}", export.run_standing.state_name());
    let _ = writeln!(rendered, "- Findings: {}", phrases::describe_counts(&run_view.finding_counts()));
    let _ = writeln!(rendered, "- Spent: {}", export.describe_spending());
    if let Some(score_card) = run_view.as_review().and_then(|review_view| review_view.confidence.as_ref()) {
        let _ = writeln!(
            rendered,
            "- Confidence: {} of 100 ({})",
            score_card.score,
            escape_prose(&score_card.describe_all())
        );
    }
    if let Some(selection_text) = export.describe_selection() {
        let _ = writeln!(rendered, "- Shown here: {selection_text}");
    }
    rendered
}

/// Renders how many findings there are by severity and status. A status that no finding has gets no column.
fn render_counts_table(export: &FindingsExport<'_>) -> String {
    let group_counts = StatusGroup::ALL.map(|group| (group, count_by_severity(export.findings_in_group(group))));
    let shown_columns: Vec<(StatusGroup, [usize; 4])> =
        group_counts.into_iter().filter(|(_, counts)| counts.iter().sum::<usize>() > 0).collect();
    let column_titles: String = shown_columns.iter().map(|(group, _)| format!(" {} |", group.title())).collect();
    let mut rendered = format!("| Severity |{column_titles} All |\n|:--|{}\n", "--:|".repeat(shown_columns.len() + 1));
    for (severity_index, severity) in Severity::ALL.iter().enumerate() {
        let row_cells: Vec<usize> = shown_columns.iter().map(|(_, counts)| counts[severity_index]).collect();
        let _ = writeln!(rendered, "| {severity} |{}", render_number_cells(&row_cells));
    }
    let column_sums: Vec<usize> = shown_columns.iter().map(|(_, counts)| counts.iter().sum()).collect();
    let _ = writeln!(rendered, "| **all** |{}", render_number_cells(&column_sums));
    rendered
}

/// Renders the cells of a row and their sum.
fn render_number_cells(row_cells: &[usize]) -> String {
    let row_sum = row_cells.iter().sum::<usize>();
    row_cells.iter().chain([&row_sum]).map(|cell_value| format!(" {cell_value} |")).collect()
}

/// Renders the section of one finding.
fn render_section(finding: &Finding, export: &FindingsExport<'_>) -> String {
    let status_text = escape_prose(&tracker::format_status(&finding.status));
    let mut rendered = format!("### {} · {} · {status_text}\n\n", finding.id, finding.severity);
    let _ = writeln!(rendered, "{}\n", render_lead(finding));
    let _ = writeln!(rendered, "{}\n", escape_prose(&finding.description));
    // Only documents are quoted as prose; code keeps its lines.
    let is_document = export.subject().is_some_and(Subject::is_document);
    let _ = writeln!(rendered, "{}", render_evidence(finding, is_document));
    let ruling = export.rulings.find_ruling(finding.id);
    if !finding.suggested_fix.trim().is_empty() {
        let _ = writeln!(rendered, "- Suggested fix: {}", escape_prose(&finding.suggested_fix));
    }
    if let Some(ruling) = ruling {
        let _ = writeln!(rendered, "- Challenged: {}", describe_challenge(ruling));
    }
    // The note is not repeated if the ruling already says it.
    let is_told_by_ruling = ruling.is_some() && challenge_rules::challenge_note(finding) == Some(finding.last_note());
    // An open finding with a single note has only been raised.
    let has_moved = finding.history.len() > 1 || finding.status != FindingStatus::Open;
    if has_moved && !is_told_by_ruling && !finding.last_note().is_empty() {
        let _ = writeln!(rendered, "- Latest: {}", escape_prose(finding.last_note()));
    }
    if let Some(similar_finding) = finding.maybe_same_as {
        let _ = writeln!(rendered, "- Possibly a duplicate of {similar_finding}");
    }
    // Evidence ends with a blank line, which stays at the end if no list follows; sections are separated by exactly one.
    rendered.truncate(rendered.trim_end().len());
    rendered.push('\n');
    rendered
}

/// The first line of a section: `prd.md:33 (as quoted), under “Goals” · scope · raised by party (codex, round 1)`.
fn render_lead(finding: &Finding) -> String {
    let mut lead_parts = Vec::new();
    if let Some(known_place) = &finding.place {
        // How well the quote matched is shown beside the place.
        let match_kind = finding.found.map(|match_kind| format!(" ({match_kind})")).unwrap_or_default();
        let section_suffix = if known_place.section.is_empty() {
            String::new()
        } else {
            format!(", under “{}”", escape_prose(&known_place.section))
        };
        lead_parts.push(format!("{}{match_kind}{section_suffix}", inline_code(&format_place(finding))));
    }
    if !finding.category.trim().is_empty() {
        lead_parts.push(escape_prose(&finding.category));
    }
    let describe_raiser = |raised_by: &FindingRaiser| {
        format!("{} ({}, round {})", raised_by.role, escape_prose(raised_by.agent.as_str()), raised_by.round)
    };
    let raiser_texts: Vec<String> = finding.raisers.iter().map(describe_raiser).collect();
    if !raiser_texts.is_empty() {
        lead_parts.push(format!("raised by {}", raiser_texts.join(", ")));
    }
    // The untrusted text of a category may come first, so it was escaped for the start of a line, too.
    lead_parts.join(" · ")
}

/// Renders the evidence. One line of a document is a block quote, so that it wraps; code and longer texts keep their lines.
fn render_evidence(finding: &Finding, is_document: bool) -> String {
    match &finding.evidence {
        Evidence::Quote { text: quoted_text } if is_document && quoted_text.trim().lines().count() <= 1 => {
            format!("> {}\n", escape_prose(quoted_text))
        }
        Evidence::Quote { text: quoted_text } => fenced_block(quoted_text),
        Evidence::Absence { heading, terms } => {
            format!("> Nothing about {} under “{}”\n", escape_prose(&terms.join(", ")), escape_prose(heading))
        }
        Evidence::Check { command, output } => fenced_block(&format!("$ {command}\n{}", output.trim_end())),
    }
}

/// Describes the verdict with the objection and the evidence for it.
fn describe_challenge(ruling: &Ruling) -> String {
    let (objection_note, counter_quote) = ruling.strongest_objection().unwrap_or_default();
    let objection_note = if objection_note.is_empty() { String::new() } else { format!(": {objection_note}") };
    let counter_quote = if counter_quote.is_empty() { String::new() } else { format!(" (“{counter_quote}”)") };
    escape_prose(&format!("{}{objection_note}{counter_quote}", ruling.describe()))
}
