//! The output of Cursor Agent for the analysis of free text: Claude Code's lines, and tool calls in a form of its
//! own.

use serde_json::Value;

use crate::{analysis::agent_response::AgentResponse, clients::client::OutputFormat, json_fields::text_field};

pub(super) const FORMAT: OutputFormat =
    OutputFormat { name: "cursor", unique_types: &["tool_call"], looks_alike: |_| false, read_line };

fn read_line(agent_response: &mut AgentResponse, json_line: &Value) {
    agent_response.read_stream_line(json_line);
    if text_field(json_line, "type") == "tool_call" {
        read_tool_call(agent_response, json_line);
    }
}

/// Reads `{"type":"tool_call","tool_call":{"shellToolCall":{"args":{…},"result":{"success":{…}}}}}`.
fn read_tool_call(agent_response: &mut AgentResponse, json_line: &Value) {
    // The key is the name of the tool, so the values of all keys are read.
    let tool_calls = json_line
        .get("tool_call")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|calls_by_tool| calls_by_tool.values());
    for tool_call in tool_calls {
        let command_text = tool_call.get("args").map(|call_args| text_field(call_args, "command")).unwrap_or_default();
        agent_response.add_command_text(command_text);
        let Some(call_result) = tool_call.get("result") else { continue };
        if call_result.get("rejected").is_some() {
            agent_response.add_denial(if command_text.is_empty() { "a tool" } else { command_text });
        }
        if let Some(success_result) = call_result.get("success") {
            agent_response.add_command_text(text_field(success_result, "stdout"));
            agent_response.add_command_text(text_field(success_result, "stderr"));
        }
    }
}
