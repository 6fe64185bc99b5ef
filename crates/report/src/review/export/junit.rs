//! Renders JUnit XML, which GitLab, Jenkins and most other CI systems show as test results.
//!
//! A run is a test suite. Its first test case is the review itself: it passes if the review came to its end, so a run that a
//! limit halted or that failed does not look like one without findings. Every finding is a test case in its file. It fails
//! while the flaw is there, passes when it is fixed, and is skipped when it was dismissed.

use std::fmt::Write;

use tribunal_engine::{
    reason::{RunOutcome, RunReason},
    text::truncate_chars,
};
use tribunal_workflows::{
    findings::finding::{Evidence, Finding, FindingStatus},
    review::tracker,
};

use super::{FindingsExport, format_place};
use crate::{clean_block, clean_line, run_standing::RunState};

/// The maximum length of a test case's name.
const MAX_NAME_CHARS: usize = 160;

/// Renders the document.
pub(super) fn render_report(export: &FindingsExport<'_>) -> String {
    let mut test_cases = vec![review_case(export)];
    test_cases.extend(export.findings.iter().map(|finding| finding_case(finding, export)));
    let count_results =
        |wanted: fn(&CaseResult) -> bool| test_cases.iter().filter(|test_case| wanted(&test_case.result)).count();
    let totals = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\"",
        test_cases.len(),
        count_results(|result| matches!(result, CaseResult::Failed { .. })),
        count_results(|result| matches!(result, CaseResult::Broken { .. })),
        count_results(|result| matches!(result, CaseResult::Skipped { .. })),
        format_seconds(elapsed_ms(export)),
    );
    let run_view = export.run_standing.run_view;
    let mut rendered = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(rendered, "<testsuites name=\"tribunal\" {totals}>");
    let _ = writeln!(
        rendered,
        "  <testsuite name=\"{}\" {totals} timestamp=\"{}\">",
        escape_attribute(&format!("review of {}", export.subject_title())),
        // The format has no time zone; the time is UTC.
        run_view.start_time.format_utc().replace(' ', "T"),
    );
    let _ = writeln!(rendered, "    <properties>");
    for (property_name, property_value) in [
        ("run", export.run_id().to_string()),
        ("outcome", export.run_standing.state_name().to_string()),
        ("reason", export.state_reason()),
        ("spent", export.describe_spending()),
    ] {
        let property_value = escape_attribute(&property_value);
        let _ = writeln!(rendered, "      <property name=\"{property_name}\" value=\"{property_value}\"/>");
    }
    let _ = writeln!(rendered, "    </properties>");
    test_cases.iter().for_each(|test_case| rendered.push_str(&test_case.render()));
    rendered.push_str("  </testsuite>\n</testsuites>\n");
    rendered
}

/// One test case, with texts that are not escaped yet.
struct TestCase {
    class_name: String,
    case_name: String,
    /// The file and the line of a finding.
    place: Option<(String, u32)>,
    elapsed_ms: u64,
    result: CaseResult,
}

enum CaseResult {
    Passed,
    Failed {
        kind: &'static str,
        message: String,
        body: String,
    },
    /// The review itself did not come to its end.
    Broken {
        message: String,
    },
    Skipped {
        message: String,
    },
}

impl TestCase {
    fn render(&self) -> String {
        let place_attributes = match &self.place {
            Some((file_path, line_number)) => {
                format!(" file=\"{}\" line=\"{line_number}\"", escape_attribute(file_path))
            }
            None => String::new(),
        };
        let start_tag = format!(
            "    <testcase classname=\"{}\" name=\"{}\"{place_attributes} time=\"{}\"",
            escape_attribute(&self.class_name),
            escape_attribute(&self.case_name),
            format_seconds(self.elapsed_ms),
        );
        let result_element = match &self.result {
            CaseResult::Passed => return format!("{start_tag}/>\n"),
            CaseResult::Failed { kind, message, body } => format!(
                "<failure type=\"{kind}\" message=\"{}\">{}</failure>",
                escape_attribute(message),
                escape_text(body)
            ),
            CaseResult::Broken { message } => {
                format!("<error type=\"run\" message=\"{}\"/>", escape_attribute(message))
            }
            CaseResult::Skipped { message } => format!("<skipped message=\"{}\"/>", escape_attribute(message)),
        };
        format!("{start_tag}>\n      {result_element}\n    </testcase>\n")
    }
}

/// The test case that stands for the review as a whole.
fn review_case(export: &FindingsExport<'_>) -> TestCase {
    let run_standing = &export.run_standing;
    let state_text = match export.state_reason() {
        reason_text if reason_text.is_empty() => run_standing.state_name().to_string(),
        reason_text => format!("{}: {reason_text}", run_standing.state_name()),
    };
    let is_review_only =
        run_standing.run_view.run_summary().is_some_and(|summary| summary.reason == RunReason::ReviewOnly);
    let result = match run_standing.run_state() {
        RunState::Ended(RunOutcome::Resolved) => CaseResult::Passed,
        // The findings fail by themselves.
        RunState::Ended(RunOutcome::Waiting) if is_review_only => CaseResult::Passed,
        RunState::Running | RunState::Ended(RunOutcome::Cancelled) => CaseResult::Skipped { message: state_text },
        RunState::Crashed
        | RunState::Stopped
        | RunState::Ended(RunOutcome::Waiting | RunOutcome::Halted | RunOutcome::Failed) => {
            CaseResult::Broken { message: state_text }
        }
    };
    TestCase {
        class_name: "tribunal".into(),
        case_name: format!("review of {}", clean_line(&export.subject_title())),
        place: None,
        elapsed_ms: elapsed_ms(export),
        result,
    }
}

fn finding_case(finding: &Finding, export: &FindingsExport<'_>) -> TestCase {
    let description = clean_line(&finding.description);
    let place = export.annotated_place(finding);
    let status_text = tracker::format_status(&finding.status);
    let result = match &finding.status {
        FindingStatus::Fixed => CaseResult::Passed,
        FindingStatus::Dismissed { .. } => {
            let last_note = clean_line(finding.last_note());
            let note_suffix = if last_note.is_empty() { String::new() } else { format!(": {last_note}") };
            CaseResult::Skipped { message: format!("{status_text}{note_suffix}") }
        }
        FindingStatus::Open
        | FindingStatus::Assigned
        | FindingStatus::Blocked { .. }
        | FindingStatus::Deferred { .. } => CaseResult::Failed {
            kind: finding.severity.as_str(),
            message: description.clone(),
            body: describe_failure(finding, &status_text),
        },
    };
    TestCase {
        class_name: place.as_ref().map_or_else(|| "tribunal".to_string(), |(file_path, _)| file_path.clone()),
        case_name: truncate_chars(&format!("{} {}: {description}", finding.id, finding.severity), MAX_NAME_CHARS),
        place,
        elapsed_ms: 0,
        result,
    }
}

/// The text of a failure: what is wrong, where, and how it could be fixed.
fn describe_failure(finding: &Finding, status_text: &str) -> String {
    let mut body = clean_block(finding.description.trim()).replace("\r\n", "\n");
    let evidence_text = match &finding.evidence {
        Evidence::Quote { text: quoted_text } => clean_block(quoted_text.trim()).replace("\r\n", "\n"),
        Evidence::Absence { heading, terms } => {
            format!("nothing about {} under “{}”", clean_line(&terms.join(", ")), clean_line(heading))
        }
        Evidence::Check { command, output } => {
            format!("output of {}:\n{}", clean_line(command), clean_block(output.trim()).replace("\r\n", "\n"))
        }
    };
    let labelled_lines = [
        ("severity", finding.severity.to_string()),
        ("status", clean_line(status_text)),
        ("place", format_place(finding)),
        ("evidence", evidence_text),
        ("suggested fix", clean_line(&finding.suggested_fix)),
    ];
    for (label, line_text) in labelled_lines.into_iter().filter(|(_, line_text)| !line_text.is_empty()) {
        let _ = write!(body, "\n{label}: {line_text}");
    }
    body
}

/// The working time of the run.
fn elapsed_ms(export: &FindingsExport<'_>) -> u64 {
    let run_view = export.run_standing.run_view;
    run_view.run_summary().map_or(run_view.last_time.awake_ms, |summary| summary.elapsed_ms)
}

fn format_seconds(elapsed_ms: u64) -> String {
    format!("{}.{:03}", elapsed_ms / 1000, elapsed_ms % 1000)
}

/// Escapes untrusted text for an attribute. It becomes one line, because parsers turn line ends in attributes into blanks.
fn escape_attribute(untrusted_text: &str) -> String {
    escape_text(&clean_line(untrusted_text))
}

/// Escapes text for XML and replaces what XML 1.0 cannot contain. Control characters are gone already, except tabs and line
/// ends in texts of several lines.
fn escape_text(cleaned_text: &str) -> String {
    let mut escaped = String::with_capacity(cleaned_text.len());
    for character in cleaned_text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\n' | '\t' => escaped.push(character),
            // XML has no spelling for these, not even as a number.
            _ if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text_and_forbidden_characters_are_replaced() {
        for (hostile_text, escaped) in [
            ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
            (
                "]]></failure><testcase name=\"x'y\"/>",
                "]]&gt;&lt;/failure&gt;&lt;testcase name=&quot;x&apos;y&quot;/&gt;",
            ),
            (
                "two\nlines\tand\u{0}\u{1b}\u{fffe}\u{ffff}\u{85}",
                "two\nlines\tand\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
        ] {
            assert_eq!(escape_text(hostile_text), escaped);
        }
        assert_eq!(escape_attribute("two\nlines\u{1b}[31m"), "two lines[31m");
    }
}
