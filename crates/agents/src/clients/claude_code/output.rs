//! What it prints, for whoever weighs free text: lines that others print as well.

use serde_json::Value;

use crate::{clients::client::OutputFormat, json::text};

pub(super) const FORMAT: OutputFormat =
    OutputFormat { name: "stream", marks: &[], resembles, read: |spoken, line| spoken.stream(line) };

fn resembles(lines: &[Value]) -> bool {
    let any = |name: &str| lines.iter().any(|line| text(line, "type") == name);
    any("assistant") || any("system") && any("result")
}
