//! Reads fields of foreign JSON leniently: a field that is missing or has another type counts as empty.

use serde_json::Value;

/// Parses every line that is a JSON object. Other lines are skipped, and so is a last line that was cut off.
pub(crate) fn parse_json_lines(client_output: &str) -> impl Iterator<Item = Value> {
    // Most lines of noise are ruled out by their first character, without running the parser.
    let object_lines = client_output.lines().filter(|json_line| json_line.trim_start().starts_with('{'));
    object_lines.filter_map(|json_line| serde_json::from_str(json_line).ok())
}

/// Returns a text field, or an empty text.
pub(crate) fn text_field<'a>(object: &'a Value, field_name: &str) -> &'a str {
    object.get(field_name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns an array field, or an empty slice.
pub(crate) fn array_field<'a>(object: &'a Value, field_name: &str) -> &'a [Value] {
    object.get(field_name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns a field that counts something, or zero.
pub(crate) fn count_field(object: &Value, field_name: &str) -> u64 {
    object.get(field_name).and_then(Value::as_u64).unwrap_or_default()
}
