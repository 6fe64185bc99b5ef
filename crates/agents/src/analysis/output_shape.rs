//! Recognizes the form of what a client printed and finds the agent's words in it.

use serde_json::Value;
use tribunal_json::{Node, ToJson};

use super::agent_response::AgentResponse;
use crate::{
    clients::{self, CLIENTS, OutputFormat},
    json_fields::{self, text_field},
};

/// The form of a client's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputShape {
    #[default]
    PlainText,
    /// The output is a single JSON object.
    JsonObject,
    /// The output consists of the JSON lines of a client.
    ClientLines(&'static OutputFormat),
}

impl ToJson for OutputShape {
    fn to_node(&self) -> Node<'_> {
        self.name().to_node()
    }
}

tribunal_json::serialize_by_json!(OutputShape);

impl OutputShape {
    /// The shape of a client's output by the client's name. `None` where it has to be detected: for an unknown client,
    /// and for one without line types of its own, such as Claude Code.
    pub fn for_client(client_name: &str) -> Option<OutputShape> {
        clients::find_client(client_name)?
            .output_format
            .filter(|output_format| !output_format.unique_types.is_empty())
            .map(OutputShape::ClientLines)
    }

    pub fn name(self) -> &'static str {
        match self {
            OutputShape::PlainText => "text",
            OutputShape::JsonObject => "object",
            OutputShape::ClientLines(output_format) => output_format.name,
        }
    }

    /// Detects the shape of an output.
    pub fn detect(client_output: &str) -> OutputShape {
        let json_lines: Vec<Value> = collect_objects(client_output).collect();
        let has_type =
            |unique_type: &&str| json_lines.iter().any(|json_line| text_field(json_line, "type") == *unique_type);
        let known_formats = || CLIENTS.iter().filter_map(|known_client| known_client.output_format);
        // A unique line type is certain. A mere resemblance may be a client that adopted another one's form, so it
        // comes second.
        let marked_format = known_formats().find(|output_format| output_format.unique_types.iter().any(has_type));
        if let Some(output_format) =
            marked_format.or_else(|| known_formats().find(|output_format| (output_format.looks_alike)(&json_lines)))
        {
            OutputShape::ClientLines(output_format)
        } else if matches!(serde_json::from_str(client_output.trim()), Ok(Value::Object(_))) {
            OutputShape::JsonObject
        } else {
            OutputShape::PlainText
        }
    }

    /// Reads the agent's words out of the output.
    pub fn read_response(self, client_output: &str) -> AgentResponse {
        let mut agent_response = AgentResponse::default();
        match self {
            OutputShape::PlainText => agent_response.add_message(client_output),
            OutputShape::JsonObject => match serde_json::from_str::<Value>(client_output.trim()) {
                Ok(json_object) => agent_response.read_object(&json_object),
                // A caller may give this shape for an output that is no JSON; it is then read as text.
                Err(_) => agent_response.add_message(client_output),
            },
            OutputShape::ClientLines(output_format) => collect_objects(client_output)
                .for_each(|json_line| (output_format.read_line)(&mut agent_response, &json_line)),
        }
        agent_response
    }
}

/// Collects the lines that are JSON objects, or the objects of one array.
fn collect_objects(client_output: &str) -> impl Iterator<Item = Value> {
    // Some clients print all their events as one array instead of lines.
    let array_items = match serde_json::from_str(client_output.trim()) {
        Ok(Value::Array(array_items)) => array_items,
        _ => Vec::new(),
    };
    let line_output = if array_items.is_empty() { client_output } else { "" };
    array_items.into_iter().chain(json_fields::parse_json_lines(line_output))
}
