//! Renders GitHub workflow commands, `::error file=src/pay.py,line=3::message`, which become annotations of a pull request.
//!
//! The runner reads one command per line of a step's output. Untrusted text can neither end its line nor its property: what
//! has a meaning there is written as `%` and its number, as `@actions/core` does it.

use std::fmt::Write;

use tribunal_engine::text::truncate_chars;
use tribunal_workflows::findings::finding::{Finding, Severity};

use super::FindingsExport;
use crate::{clean_block, clean_line};

/// The maximum length of a message; GitHub cuts messages of 64 KB, and a reader sees far less.
const MAX_MESSAGE_CHARS: usize = 4000;

/// Renders one line per finding, the most severe first, because GitHub shows only the first ten of a kind per step.
pub(super) fn render_commands(export: &FindingsExport<'_>) -> String {
    let mut ranked_findings: Vec<&Finding> = export.findings.clone();
    ranked_findings.sort_by_key(|finding| (finding.severity, finding.id));
    let mut rendered = String::new();
    for finding in ranked_findings {
        rendered.push_str(&render_command(finding, export));
    }
    rendered
}

fn render_command(finding: &Finding, export: &FindingsExport<'_>) -> String {
    let command_name = match finding.severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "notice",
    };
    let mut properties = String::new();
    if let Some((file_path, line_number)) = export.annotated_place(finding) {
        let _ = write!(properties, "file={},line={line_number},", escape_property(&file_path));
        if let Some(end_line) = finding.place.as_ref().map(|place| place.end_line).filter(|end| *end > line_number) {
            let _ = write!(properties, "endLine={end_line},");
        }
    }
    let category = clean_line(&finding.category);
    let category_suffix = if category.is_empty() { String::new() } else { format!(", {category}") };
    let title = format!("Tribunal {}: {}{category_suffix}", finding.id, finding.severity);
    let mut message = clean_block(finding.description.trim()).replace("\r\n", "\n");
    let suggested_fix = clean_line(&finding.suggested_fix);
    if !suggested_fix.is_empty() {
        let _ = write!(message, "\nSuggested fix: {suggested_fix}");
    }
    // The runner ignores a command without a message.
    let message = if message.is_empty() { "No description.".to_string() } else { message };
    format!(
        "::{command_name} {properties}title={}::{}\n",
        escape_property(&title),
        escape_data(&truncate_chars(&message, MAX_MESSAGE_CHARS))
    )
}

/// Escapes the message of a command.
fn escape_data(message_text: &str) -> String {
    message_text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property: a comma would begin the next one, and colons the message.
fn escape_property(property_value: &str) -> String {
    escape_data(property_value).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_for_the_runner_is_written_as_numbers() {
        assert_eq!(escape_data("100%\r\n::set-output name=x::y, z"), "100%25%0D%0A::set-output name=x::y, z");
        assert_eq!(escape_property("a,line=1::b%0A\n"), "a%2Cline=1%3A%3Ab%250A%0A");
    }
}
