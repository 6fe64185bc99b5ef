//! The output of OpenCode for the analysis of free text: steps with their parts.

use serde_json::Value;

use crate::{analysis::agent_response::AgentResponse, clients::client::OutputFormat, json_fields::text_field};

pub(super) const FORMAT: OutputFormat =
    OutputFormat { name: "opencode", unique_types: &["step_start", "step_finish"], looks_alike: |_| false, read_line };

fn read_line(agent_response: &mut AgentResponse, json_line: &Value) {
    // The id is spelled `sessionID`, which the shared lookup does not know.
    if agent_response.session_id.is_none() {
        agent_response.session_id =
            Some(text_field(json_line, "sessionID")).filter(|session_id| !session_id.is_empty()).map(Into::into);
    }
    let line_part = json_line.get("part").unwrap_or(&Value::Null);
    match text_field(json_line, "type") {
        "text" => agent_response.add_message(text_field(line_part, "text")),
        "tool_use" => {
            let tool_state = line_part.get("state").unwrap_or(&Value::Null);
            agent_response.add_command_text(
                tool_state.get("input").map(|tool_input| text_field(tool_input, "command")).unwrap_or_default(),
            );
            agent_response.add_command_text(text_field(tool_state, "output"));
            // A denied tool is only recognizable by the text of its error.
            let error_text = text_field(tool_state, "error");
            if error_text.contains("permission") || error_text.contains("denied") {
                agent_response.add_denial(text_field(line_part, "tool"));
            }
        }
        _ => {}
    }
}
