//! The output of Claude Code for the analysis of free text. Other clients print the same lines.

use serde_json::Value;

use crate::{clients::client::OutputFormat, json_fields::text_field};

pub(super) const FORMAT: OutputFormat = OutputFormat {
    name: "stream",
    unique_types: &[],
    looks_alike: looks_like_stream,
    read_line: |spoken, line| spoken.read_stream_line(line),
};

/// Whether lines look like Claude Code's stream. No single line type is unique to it.
fn looks_like_stream(json_lines: &[Value]) -> bool {
    let has_type = |type_name: &str| json_lines.iter().any(|json_line| text_field(json_line, "type") == type_name);
    has_type("assistant") || has_type("system") && has_type("result")
}
