//! The templates' small language: `{{name}}` and nothing else.
//!
//! Values are inserted once and never read again, so no value can refer to another. There are no conditions and no
//! loops: what depends on the brief is worded in [`super`], and templates only say where it goes.

use thiserror::Error;

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    #[error("unknown placeholder `{{{{{name}}}}}` in line {line} (known: {known})")]
    Unknown { name: String, line: usize, known: String },
    #[error("`{{{{` in line {line} is not followed by a name and `}}}}`")]
    Unclosed { line: usize },
    #[error("`{{{{{part}}}}}` is missing, so the agent would not get {what}")]
    Missing { part: &'static str, what: &'static str },
    #[error("NUL character in {part}")]
    Nul { part: String },
    #[error("the template has {bytes} bytes, the limit is {most}")]
    TooLong { bytes: usize, most: usize },
}

/// The most bytes of a template.
pub const MAX_TEMPLATE_BYTES: usize = 64 * 1024;

/// The values by name, in the order in which errors list them.
pub(super) type TemplateValues = Vec<(&'static str, String)>;

/// A part of a template line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TemplatePart<'t> {
    Text(&'t str),
    Value(&'t str),
}

/// Splits a line into plain text and names of values.
fn split_template_line(template_line: &str, line_number: usize) -> Result<Vec<TemplatePart<'_>>, TemplateError> {
    let mut line_parts = Vec::new();
    let mut remaining_text = template_line;
    while let Some(brace_offset) = remaining_text.find("{{") {
        line_parts.push(TemplatePart::Text(&remaining_text[..brace_offset]));
        let after_brace = &remaining_text[brace_offset + 2..];
        let name_end = after_brace.find("}}").ok_or(TemplateError::Unclosed { line: line_number })?;
        let value_name = after_brace[..name_end].trim();
        // Anything but a plain name is a mistake: there are no expressions.
        if value_name.is_empty()
            || !value_name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        {
            return Err(TemplateError::Unclosed { line: line_number });
        }
        line_parts.push(TemplatePart::Value(value_name));
        remaining_text = &after_brace[name_end + 2..];
    }
    line_parts.push(TemplatePart::Text(remaining_text));
    Ok(line_parts)
}

/// Fills a template with its values. A line that held nothing but empty values is dropped.
pub(super) fn fill_template(template_text: &str, template_values: &TemplateValues) -> Result<String, TemplateError> {
    if template_text.len() > MAX_TEMPLATE_BYTES {
        return Err(TemplateError::TooLong { bytes: template_text.len(), most: MAX_TEMPLATE_BYTES });
    }
    if template_text.contains('\0') {
        return Err(TemplateError::Nul { part: "the template".to_string() });
    }
    let mut filled_text = String::new();
    for (line_index, template_line) in template_text.split_inclusive('\n').enumerate() {
        let mut filled_line = String::new();
        let mut has_empty_value = false;
        // A value may span several lines; it is inserted as it is and not searched for further names.
        for line_part in split_template_line(template_line, line_index + 1)? {
            match line_part {
                TemplatePart::Text(plain_text) => filled_line.push_str(plain_text),
                TemplatePart::Value(value_name) => {
                    let found_value = template_values
                        .iter()
                        .find(|(known_name, _)| *known_name == value_name)
                        .map(|(_, found_value)| found_value);
                    let found_value =
                        found_value.ok_or_else(|| unknown_value(value_name, line_index + 1, template_values))?;
                    has_empty_value |= found_value.is_empty();
                    filled_line.push_str(found_value);
                }
            }
        }
        // A blank line of the template itself stays; only one that an empty value left behind goes.
        if !(has_empty_value && filled_line.trim().is_empty()) {
            filled_text.push_str(&filled_line);
        }
    }
    Ok(filled_text)
}

/// Whether a template uses a value.
pub(super) fn uses_value(template_text: &str, value_name: &str) -> bool {
    let line_parts =
        template_text.lines().filter_map(|template_line| split_template_line(template_line, 0).ok()).flatten();
    line_parts.into_iter().any(|line_part| line_part == TemplatePart::Value(value_name))
}

fn unknown_value(value_name: &str, line_number: usize, template_values: &TemplateValues) -> TemplateError {
    let known_names: Vec<&str> = template_values.iter().map(|(known_name, _)| *known_name).collect();
    TemplateError::Unknown { name: value_name.to_string(), line: line_number, known: known_names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill_sample(template_text: &str) -> Result<String, String> {
        let sample_values = vec![("a", "1\n2".to_string()), ("b", "{{a}}".to_string()), ("none", String::new())];
        fill_template(template_text, &sample_values).map_err(|template_error| template_error.to_string())
    }

    #[test]
    fn values_are_inserted_only_once() {
        assert_eq!(fill_sample("x {{a}} y\n{{ b }}\n").unwrap(), "x 1\n2 y\n{{a}}\n");
    }

    #[test]
    fn a_line_with_only_an_empty_value_is_dropped() {
        assert_eq!(fill_sample("one\n{{none}}\n\ntwo {{none}}\n").unwrap(), "one\n\ntwo \n");
    }

    #[test]
    fn template_errors_name_their_line() {
        insta::assert_snapshot!(fill_sample("\n{{c}}").unwrap_err(), @"unknown placeholder `{{c}}` in line 2 (known: a, b, none)");
        insta::assert_snapshot!(fill_sample("x\n\n{{a} y").unwrap_err(), @"`{{` in line 3 is not followed by a name and `}}`");
        insta::assert_snapshot!(fill_sample("a\0").unwrap_err(), @"NUL character in the template");
        let long_template = "x".repeat(MAX_TEMPLATE_BYTES + 1);
        insta::assert_snapshot!(fill_sample(&long_template).unwrap_err(), @"the template has 65537 bytes, the limit is 65536");
    }
}
