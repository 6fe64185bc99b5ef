//! Renders a comment for a pull request: open findings first, the others folded away.
//!
//! Forges limit the length of a comment. Findings that do not fit are left out, the least severe first, and counted.

use std::fmt::Write;

use tribunal_engine::text::truncate_chars;
use tribunal_workflows::{
    findings::{finding::Finding, subject::Subject},
    review::tracker,
};

use super::{FindingsExport, StatusGroup, format_place};
use crate::{
    clean_line,
    markdown_escape::{escape_prose, inline_code},
    phrases::format_count,
    review::phrases,
};

/// GitHub takes 65,536 characters; the difference leaves room for text that is put around the comment.
const MAX_COMMENT_UNITS: usize = 65_000;
/// The maximum length of one finding's text: enough to know what it is about.
const MAX_TEXT_CHARS: usize = 300;
/// The maximum length of paths and statuses.
const MAX_PLACE_CHARS: usize = 200;

/// Renders the comment with as many findings as fit.
pub(super) fn render_comment(export: &FindingsExport<'_>) -> String {
    let mut ranked_findings: Vec<&Finding> = export.findings.clone();
    ranked_findings.sort_by_key(|finding| (finding.severity, StatusGroup::from_status(&finding.status), finding.id));
    // Leaving findings out makes the comment shorter, so a binary search finds how many fit.
    let fits_limit = |finding_count: usize| {
        utf16_length(&render_with_count(export, &ranked_findings, finding_count)) <= MAX_COMMENT_UNITS
    };
    // The lower bound always fits: without findings there are only the head and the line that counts what is left out.
    let (mut fitting_count, mut too_many) = (0, ranked_findings.len() + 1);
    while too_many - fitting_count > 1 {
        let middle_count = fitting_count + (too_many - fitting_count) / 2;
        if fits_limit(middle_count) { fitting_count = middle_count } else { too_many = middle_count }
    }
    render_with_count(export, &ranked_findings, fitting_count)
}

/// The length in UTF-16 units, which is never less than the number of characters.
fn utf16_length(comment_text: &str) -> usize {
    comment_text.encode_utf16().count()
}

/// Renders the comment with the given number of findings, which are sorted by severity.
fn render_with_count(export: &FindingsExport<'_>, ranked_findings: &[&Finding], finding_count: usize) -> String {
    let (kept_findings, omitted_findings) = ranked_findings.split_at(finding_count);
    let mut rendered = render_head(export);
    // What needs work is shown at once; what is settled stays folded.
    let is_in_groups =
        |finding: &&&Finding, groups: &[StatusGroup]| groups.contains(&StatusGroup::from_status(&finding.status));
    let findings_of = |groups: &[StatusGroup]| {
        kept_findings.iter().filter(|finding| is_in_groups(finding, groups)).copied().collect::<Vec<_>>()
    };
    let urgent_findings = findings_of(&[StatusGroup::Open, StatusGroup::Blocked]);
    if !urgent_findings.is_empty() {
        let _ = write!(rendered, "\n{}", render_table(&urgent_findings, export));
    }
    for group in [StatusGroup::Fixed, StatusGroup::Deferred, StatusGroup::Dismissed] {
        let folded_findings = findings_of(&[group]);
        if !folded_findings.is_empty() {
            let summary_line = format!("{} {}", folded_findings.len(), group.title().to_lowercase());
            let folded_table = render_table(&folded_findings, export);
            let _ = write!(rendered, "\n<details>\n<summary>{summary_line}</summary>\n\n{folded_table}\n</details>\n");
        }
    }
    // The findings are sorted, so the first one that was left out is the worst of them.
    if let [worst_omitted, ..] = omitted_findings {
        let _ = writeln!(
            rendered,
            "\n{} of {} severity or lower omitted, because the comment would be too long. Run {} to see all of them.",
            format_count(omitted_findings.len() as u32, "finding"),
            worst_omitted.severity,
            inline_code(&format!("tribunal findings {}", export.run_id())),
        );
    }
    rendered
}

/// Renders the summary in one line, and which part of the findings is shown.
fn render_head(export: &FindingsExport<'_>) -> String {
    let reason_suffix = export.state_reason();
    let reason_suffix = if reason_suffix.is_empty() {
        String::new()
    } else {
        format!(", {}", escape_prose(&truncate_chars(&reason_suffix, MAX_TEXT_CHARS)))
    };
    let subject_code = inline_code(&truncate_chars(&clean_line(&export.subject_title()), MAX_PLACE_CHARS));
    let counts_text = phrases::describe_counts(&export.run_standing.run_view.finding_counts());
    let mut rendered = format!(
        "**Tribunal: {}**{reason_suffix} · {subject_code} · {counts_text} · {}\n",
        export.run_standing.state_name(),
        export.describe_spending()
    );
    if let Some(selection_text) = export.describe_selection() {
        let _ = write!(rendered, "\nShown here: {selection_text}.\n");
    }
    rendered
}

/// Renders the table of findings.
fn render_table(findings: &[&Finding], export: &FindingsExport<'_>) -> String {
    let mut rendered = "| | Severity | Status | Finding | Place |\n|:--|:--|:--|:--|:--|\n".to_string();
    for finding in findings {
        let _ = writeln!(
            rendered,
            "| {} | {} | {} | {} | {} |",
            finding.id,
            finding.severity,
            // Escaping makes text longer, so it is cut first; otherwise an entity could be cut in half.
            escape_prose(&truncate_chars(&tracker::format_status(&finding.status), MAX_PLACE_CHARS)),
            escape_prose(&truncate_chars(&clean_line(&finding.description), MAX_TEXT_CHARS)),
            place_cell(finding, export),
        );
    }
    rendered
}

/// The place of a finding: `line 33` in the file under review, which the head names, or the file with its line.
fn place_cell(finding: &Finding, export: &FindingsExport<'_>) -> String {
    let reviewed_file = export.subject().and_then(Subject::file_path);
    match &finding.place {
        None => String::new(),
        Some(known_place) if reviewed_file == Some(known_place.file.as_str()) => {
            format!("line {}", known_place.line)
        }
        Some(_) => inline_code(&truncate_chars(&format_place(finding), MAX_PLACE_CHARS)),
    }
}
