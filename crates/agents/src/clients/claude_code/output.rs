//! The output of Claude Code for the analysis of free text. Other clients print the same lines.

use serde_json::Value;

use crate::{clients::client::OutputFormat, json::text};

pub(super) const FORMAT: OutputFormat =
    OutputFormat { name: "stream", marks: &[], resembles, read: |spoken, line| spoken.stream(line) };

/// Whether lines look like Claude Code's stream. No single line type is unique to it.
fn resembles(lines: &[Value]) -> bool {
    let any = |name: &str| lines.iter().any(|line| text(line, "type") == name);
    any("assistant") || any("system") && any("result")
}
