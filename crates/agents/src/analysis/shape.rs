//! Where an agent's words are in what its client printed.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::spoken::Spoken;
use crate::{
    clients::{self, CLIENTS, OutputFormat},
    json::{self, text},
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    #[default]
    Text,
    /// One JSON object.
    Object,
    /// Lines of a client.
    Lines(&'static OutputFormat),
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Shape {
    /// The shape of a client's output, by the client's name; none: it can be any. Without a mark of its own a client has
    /// several forms.
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

    /// What it looks like.
    pub fn of(output: &str) -> Shape {
        let lines: Vec<Value> = objects(output).collect();
        let has = |mark: &&str| lines.iter().any(|line| text(line, "type") == *mark);
        let formats = || CLIENTS.iter().filter_map(|client| client.output);
        // A mark is sure; what only resembles a client may be one that took over its form.
        let marked = formats().find(|format| format.marks.iter().any(has));
        if let Some(format) = marked.or_else(|| formats().find(|format| (format.resembles)(&lines))) {
            Shape::Lines(format)
        } else if matches!(serde_json::from_str(output.trim()), Ok(Value::Object(_))) {
            Shape::Object
        } else {
            Shape::Text
        }
    }

    /// Takes the agent's words out of it.
    pub fn read(self, output: &str) -> Spoken {
        let mut spoken = Spoken::default();
        match self {
            Shape::Text => spoken.say(output),
            Shape::Object => match serde_json::from_str::<Value>(output.trim()) {
                Ok(object) => spoken.object(&object),
                Err(_) => spoken.say(output),
            },
            Shape::Lines(format) => objects(output).for_each(|line| (format.read)(&mut spoken, &line)),
        }
        spoken
    }
}

/// Every line that is an object, or the objects of one array.
fn objects(output: &str) -> impl Iterator<Item = Value> {
    let list = match serde_json::from_str(output.trim()) {
        Ok(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let lines = if list.is_empty() { output } else { "" };
    list.into_iter().chain(json::objects(lines))
}
