//! Reads fields of foreign JSON leniently: a field that is missing or has another type counts as empty.

use serde_json::Value;

/// Parses every line that is a JSON object. Other lines are skipped, and so is a last line that was cut off.
pub(crate) fn objects(output: &str) -> impl Iterator<Item = Value> {
    // Most lines of noise are ruled out by their first character, without running the parser.
    let lines = output.lines().filter(|line| line.trim_start().starts_with('{'));
    lines.filter_map(|line| serde_json::from_str(line).ok())
}

/// Returns a text field, or an empty text.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns an array field, or an empty slice.
pub(crate) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns a field that counts something, or zero.
pub(crate) fn count(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or_default()
}
