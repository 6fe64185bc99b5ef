//! An answer before it has the form of an interface, and the events in which all interfaces stream it.

use serde_json::{Value, json};

use super::{
    calls::{self, NoTool, ToolCall},
    chat, messages,
    request::{Api, Request},
    responses,
    scenario::{Step, Stop, Tokens},
};

/// The tool that a client adds for an answer to a schema.
const STRUCTURED: &str = "StructuredOutput";

#[derive(Debug)]
pub(super) struct Answer {
    /// The number of the request, which makes ids unique.
    pub number: usize,
    pub model: String,
    pub text: Option<String>,
    pub calls: Vec<ToolCall>,
    pub stop: Stop,
    pub tokens: Tokens,
}

/// One event of a stream.
#[derive(Debug)]
pub(super) struct Event {
    pub name: Option<String>,
    pub data: String,
}

impl Answer {
    pub(super) fn to(request: &Request, number: usize, step: &Step) -> Result<Answer, NoTool> {
        let mut calls =
            step.calls.iter().map(|call| calls::concrete(call, request)).collect::<Result<Vec<_>, _>>()?;
        let mut text = step.text.clone();
        match &step.structured {
            Some(value) if request.offers(STRUCTURED) => {
                calls.push(ToolCall::exact(STRUCTURED, value.clone()))
            }
            Some(value) => text = Some(value.to_string()),
            None => {}
        }
        Ok(Answer { number, model: request.model.clone(), text, calls, stop: step.stop, tokens: step.tokens })
    }

    pub(super) fn whole(&self, api: Api) -> Value {
        match api {
            Api::Messages => messages::whole(self),
            Api::Responses => responses::whole(self),
            Api::Chat => chat::whole(self),
        }
    }

    pub(super) fn stream(&self, api: Api) -> Vec<Event> {
        match api {
            Api::Messages => messages::stream(self),
            Api::Responses => responses::stream(self),
            Api::Chat => chat::stream(self),
        }
    }

    /// Splits a text into the pieces that a streaming client receives one by one.
    pub(super) fn pieces(text: &str) -> Vec<String> {
        let letters: Vec<char> = text.chars().collect();
        letters.chunks(120).map(|piece| piece.iter().collect()).collect()
    }
}

impl Event {
    /// An event whose name is the type in its data.
    pub(super) fn typed(kind: &str, mut data: Value) -> Event {
        if let Value::Object(fields) = &mut data {
            fields.insert("type".to_string(), json!(kind));
        }
        Event { name: Some(kind.to_string()), data: data.to_string() }
    }

    pub(super) fn plain(data: impl ToString) -> Event {
        Event { name: None, data: data.to_string() }
    }
}

/// The event by which an interface reports an error in the middle of a stream.
pub(super) fn stream_error(api: Api, kind: &str, message: &str) -> Event {
    match api {
        Api::Messages => Event::typed("error", messages::error(kind, message)),
        Api::Responses => responses::failed(kind, message),
        Api::Chat => Event::plain(chat::error(kind, message)),
    }
}

/// The body of an error answer.
pub(super) fn error(api: Api, kind: &str, message: &str) -> Value {
    match api {
        Api::Messages => messages::error(kind, message),
        Api::Responses | Api::Chat => chat::error(kind, message),
    }
}
