//! The output of OpenCode for the analysis of free text: steps with their parts.

use serde_json::Value;

use crate::{analysis::spoken::Spoken, clients::client::OutputFormat, json::text};

pub(super) const FORMAT: OutputFormat =
    OutputFormat { name: "opencode", marks: &["step_start", "step_finish"], resembles: |_| false, read };

fn read(spoken: &mut Spoken, line: &Value) {
    // The id is spelled `sessionID`, which the shared lookup does not know.
    if spoken.session.is_none() {
        spoken.session = Some(text(line, "sessionID")).filter(|id| !id.is_empty()).map(Into::into);
    }
    let part = line.get("part").unwrap_or(&Value::Null);
    match text(line, "type") {
        "text" => spoken.say(text(part, "text")),
        "tool_use" => {
            let state = part.get("state").unwrap_or(&Value::Null);
            spoken.run(state.get("input").map(|input| text(input, "command")).unwrap_or_default());
            spoken.run(text(state, "output"));
            // A denied tool is only recognizable by the text of its error.
            let error = text(state, "error");
            if error.contains("permission") || error.contains("denied") {
                spoken.deny(text(part, "tool"));
            }
        }
        _ => {}
    }
}
