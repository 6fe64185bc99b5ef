//! Recognizes the form of what a client printed and finds the agent's words in it.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::spoken::Spoken;
use crate::{
    clients::{self, CLIENTS, OutputFormat},
    json::{self, text},
};

/// The form of a client's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    #[default]
    Text,
    /// The output is a single JSON object.
    Object,
    /// The output consists of the JSON lines of a client.
    Lines(&'static OutputFormat),
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Shape {
    /// The shape of a client's output by the client's name. `None` if it can have any shape: a client without line
    /// types of its own prints several forms.
    pub fn named(client: &str) -> Option<Shape> {
        clients::named(client)?.output.filter(|format| !format.marks.is_empty()).map(Shape::Lines)
    }

    pub fn name(self) -> &'static str {
        match self {
            Shape::Text => "text",
            Shape::Object => "object",
            Shape::Lines(format) => format.name,
        }
    }

    /// Detects the shape of an output.
    pub fn of(output: &str) -> Shape {
        let lines: Vec<Value> = objects(output).collect();
        let has = |mark: &&str| lines.iter().any(|line| text(line, "type") == *mark);
        let formats = || CLIENTS.iter().filter_map(|client| client.output);
        // A unique line type is certain. A mere resemblance may be a client that adopted another one's form, so it
        // comes second.
        let marked = formats().find(|format| format.marks.iter().any(has));
        if let Some(format) = marked.or_else(|| formats().find(|format| (format.resembles)(&lines))) {
            Shape::Lines(format)
        } else if matches!(serde_json::from_str(output.trim()), Ok(Value::Object(_))) {
            Shape::Object
        } else {
            Shape::Text
        }
    }

    /// Reads the agent's words out of the output.
    pub fn read(self, output: &str) -> Spoken {
        let mut spoken = Spoken::default();
        match self {
            Shape::Text => spoken.say(output),
            Shape::Object => match serde_json::from_str::<Value>(output.trim()) {
                Ok(object) => spoken.object(&object),
                // The shape may have been given by the user and be wrong; then the output is read as text.
                Err(_) => spoken.say(output),
            },
            Shape::Lines(format) => objects(output).for_each(|line| (format.read)(&mut spoken, &line)),
        }
        spoken
    }
}

/// Collects the lines that are JSON objects, or the objects of one array.
fn objects(output: &str) -> impl Iterator<Item = Value> {
    // Some clients print all their events as one array instead of lines.
    let list = match serde_json::from_str(output.trim()) {
        Ok(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let lines = if list.is_empty() { output } else { "" };
    list.into_iter().chain(json::objects(lines))
}
