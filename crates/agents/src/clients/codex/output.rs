//! The output of Codex for the analysis of free text: items.

use serde_json::Value;

use crate::{analysis::agent_response::AgentResponse, clients::client::OutputFormat, json_fields::text_field};

pub(super) const FORMAT: OutputFormat = OutputFormat {
    name: "codex",
    unique_types: &["thread.started", "turn.started", "turn.completed", "turn.failed", "item.completed"],
    looks_alike: |_| false,
    read_line,
};

fn read_line(agent_response: &mut AgentResponse, json_line: &Value) {
    agent_response.record_session_id(json_line);
    // Items are also reported when they start and while they change; only the completed one is final.
    let Some(completed_item) = json_line.get("item").filter(|_| text_field(json_line, "type") == "item.completed")
    else {
        return;
    };
    match text_field(completed_item, "type") {
        "agent_message" => agent_response.add_message(text_field(completed_item, "text")),
        "command_execution" => {
            agent_response.add_command_text(text_field(completed_item, "command"));
            agent_response.add_command_text(text_field(completed_item, "aggregated_output"));
            if text_field(completed_item, "status") == "declined" {
                agent_response.add_denial(text_field(completed_item, "command"));
            }
        }
        _ => {}
    }
}
