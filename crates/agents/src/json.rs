//! Foreign JSON: what is there is taken, what is not there is nothing.

use serde_json::Value;

/// Lines that are objects. Anything else in between is overlooked, and so is a last line that was cut off.
pub(crate) fn objects(output: &str) -> impl Iterator<Item = Value> {
    let lines = output.lines().filter(|line| line.trim_start().starts_with('{'));
    lines.filter_map(|line| serde_json::from_str(line).ok())
}

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn count(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or_default()
}
