//! The templates' small language: `{{name}}` and nothing else.
//!
//! Values are inserted once and never read again, so that no value can refer to another. There are no conditions and
//! no loops: what depends on the brief is worded in [`super`], and templates only say where it goes.

use thiserror::Error;

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    #[error("line {line}: there is no value `{{{{{name}}}}}`; there are {known}")]
    Unknown { name: String, line: usize, known: String },
    #[error("line {line}: `{{{{` is not followed by a name and `}}}}`")]
    Unclosed { line: usize },
    #[error("`{{{{{part}}}}}` is missing: the agent would not get {what}")]
    Missing { part: &'static str, what: &'static str },
    #[error("a NUL character stands in {part}")]
    Nul { part: String },
    #[error("it has {bytes} bytes, at most {most} are allowed")]
    TooLong { bytes: usize, most: usize },
}

/// The most bytes of a template.
pub const MOST_BYTES: usize = 64 * 1024;

/// The values by name, in the order in which errors list them.
pub(super) type Values = Vec<(&'static str, String)>;

/// A part of a template line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'t> {
    Text(&'t str),
    Value(&'t str),
}

/// Splits a line into plain text and names of values.
fn parts(line: &str, number: usize) -> Result<Vec<Part<'_>>, TemplateError> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("{{") {
        parts.push(Part::Text(&rest[..at]));
        let inner = &rest[at + 2..];
        let end = inner.find("}}").ok_or(TemplateError::Unclosed { line: number })?;
        let name = inner[..end].trim();
        // Anything but a plain name is a mistake: there are no expressions.
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(TemplateError::Unclosed { line: number });
        }
        parts.push(Part::Value(name));
        rest = &inner[end + 2..];
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

/// Fills a template with its values. A line that held nothing but empty values is dropped.
pub(super) fn fill(template: &str, values: &Values) -> Result<String, TemplateError> {
    if template.len() > MOST_BYTES {
        return Err(TemplateError::TooLong { bytes: template.len(), most: MOST_BYTES });
    }
    if template.contains('\0') {
        return Err(TemplateError::Nul { part: "the template".to_string() });
    }
    let mut out = String::new();
    for (index, line) in template.split_inclusive('\n').enumerate() {
        let mut filled = String::new();
        let mut empty = false;
        // A value may span several lines; it is inserted as it is and not searched for further names.
        for part in parts(line, index + 1)? {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Value(name) => {
                    let value = values.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
                    let value = value.ok_or_else(|| unknown(name, index + 1, values))?;
                    empty |= value.is_empty();
                    filled.push_str(value);
                }
            }
        }
        // A blank line of the template itself stays; only one that an empty value left behind goes.
        if !(empty && filled.trim().is_empty()) {
            out.push_str(&filled);
        }
    }
    Ok(out)
}

/// Whether a template uses a value.
pub(super) fn uses(template: &str, name: &str) -> bool {
    let values = template.lines().filter_map(|line| parts(line, 0).ok()).flatten();
    values.into_iter().any(|part| part == Part::Value(name))
}

fn unknown(name: &str, line: usize, values: &Values) -> TemplateError {
    let known: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    TemplateError::Unknown { name: name.to_string(), line, known: known.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str) -> Result<String, String> {
        let values = vec![("a", "1\n2".to_string()), ("b", "{{a}}".to_string()), ("none", String::new())];
        fill(template, &values).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_put_in_once() {
        assert_eq!(filled("x {{a}} y\n{{ b }}\n").unwrap(), "x 1\n2 y\n{{a}}\n");
    }

    #[test]
    fn a_line_of_nothing_but_an_empty_value_is_gone() {
        assert_eq!(filled("one\n{{none}}\n\ntwo {{none}}\n").unwrap(), "one\n\ntwo \n");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        insta::assert_snapshot!(filled("\n{{c}}").unwrap_err(), @"line 2: there is no value `{{c}}`; there are a, b, none");
        insta::assert_snapshot!(filled("x\n\n{{a} y").unwrap_err(), @"line 3: `{{` is not followed by a name and `}}`");
        insta::assert_snapshot!(filled("a\0").unwrap_err(), @"a NUL character stands in the template");
        let long = "x".repeat(MOST_BYTES + 1);
        insta::assert_snapshot!(filled(&long).unwrap_err(), @"it has 65537 bytes, at most 65536 are allowed");
    }
}
