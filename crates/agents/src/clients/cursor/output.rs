//! The output of Cursor Agent for the analysis of free text: Claude Code's lines, and tool calls in a form of its
//! own.

use serde_json::Value;

use crate::{analysis::spoken::Spoken, clients::client::OutputFormat, json::text};

pub(super) const FORMAT: OutputFormat =
    OutputFormat { name: "cursor", marks: &["tool_call"], resembles: |_| false, read };

fn read(spoken: &mut Spoken, line: &Value) {
    spoken.stream(line);
    if text(line, "type") == "tool_call" {
        read_tool_call(spoken, line);
    }
}

/// Reads `{"type":"tool_call","tool_call":{"shellToolCall":{"args":{…},"result":{"success":{…}}}}}`.
fn read_tool_call(spoken: &mut Spoken, line: &Value) {
    // The name of the tool is a key of its own, so that all values are looked at.
    let calls = line.get("tool_call").and_then(Value::as_object).into_iter().flat_map(|call| call.values());
    for call in calls {
        let command = call.get("args").map(|args| text(args, "command")).unwrap_or_default();
        spoken.run(command);
        let Some(result) = call.get("result") else { continue };
        if result.get("rejected").is_some() {
            spoken.deny(if command.is_empty() { "a tool" } else { command });
        }
        if let Some(success) = result.get("success") {
            spoken.run(text(success, "stdout"));
            spoken.run(text(success, "stderr"));
        }
    }
}
