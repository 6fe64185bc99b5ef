//! The output of Codex for the analysis of free text: items.

use serde_json::Value;

use crate::{analysis::spoken::Spoken, clients::client::OutputFormat, json::text};

pub(super) const FORMAT: OutputFormat = OutputFormat {
    name: "codex",
    marks: &["thread.started", "turn.started", "turn.completed", "turn.failed", "item.completed"],
    resembles: |_| false,
    read,
};

fn read(spoken: &mut Spoken, line: &Value) {
    spoken.session(line);
    // Items are also reported when they start and while they change; only the completed one is final.
    let Some(item) = line.get("item").filter(|_| text(line, "type") == "item.completed") else { return };
    match text(item, "type") {
        "agent_message" => spoken.say(text(item, "text")),
        "command_execution" => {
            spoken.run(text(item, "command"));
            spoken.run(text(item, "aggregated_output"));
            if text(item, "status") == "declined" {
                spoken.deny(text(item, "command"));
            }
        }
        _ => {}
    }
}
