//! An answer before it has the form of an interface, and the events in which all interfaces stream it.

use serde_json::{Value, json};

use super::{
    chat, messages,
    request::{ModelApi, ModelRequest},
    responses,
    scenario::{AnswerStep, AnswerStop, ScriptedTokens},
    tool_calls::{self, NoToolOffered, ToolCall},
};

/// The tool that a client adds for an answer to a schema.
const STRUCTURED_TOOL: &str = "StructuredOutput";

#[derive(Debug)]
pub(super) struct ModelAnswer {
    /// The number of the request, which makes ids unique.
    pub request_number: usize,
    pub model: String,
    pub text: Option<String>,
    pub calls: Vec<ToolCall>,
    pub stop: AnswerStop,
    pub tokens: ScriptedTokens,
}

/// One event of a stream.
#[derive(Debug)]
pub(super) struct StreamEvent {
    pub name: Option<String>,
    pub data: String,
}

impl ModelAnswer {
    pub(super) fn from_step(
        request: &ModelRequest,
        request_number: usize,
        step: &AnswerStep,
    ) -> Result<ModelAnswer, NoToolOffered> {
        let mut calls =
            step.calls.iter().map(|call| tool_calls::resolve_call(call, request)).collect::<Result<Vec<_>, _>>()?;
        let mut text = step.text.clone();
        match &step.structured {
            Some(value) if request.offers_tool(STRUCTURED_TOOL) => {
                calls.push(ToolCall::from_name(STRUCTURED_TOOL, value.clone()))
            }
            Some(value) => text = Some(value.to_string()),
            None => {}
        }
        Ok(ModelAnswer {
            request_number,
            model: request.model.clone(),
            text,
            calls,
            stop: step.stop,
            tokens: step.tokens,
        })
    }

    pub(super) fn to_body(&self, api: ModelApi) -> Value {
        match api {
            ModelApi::Messages => messages::to_body(self),
            ModelApi::Responses => responses::to_body(self),
            ModelApi::Chat => chat::to_body(self),
        }
    }

    pub(super) fn to_events(&self, api: ModelApi) -> Vec<StreamEvent> {
        match api {
            ModelApi::Messages => messages::to_events(self),
            ModelApi::Responses => responses::to_events(self),
            ModelApi::Chat => chat::to_events(self),
        }
    }

    /// Splits a text into the pieces that a streaming client receives one by one.
    pub(super) fn split_pieces(text: &str) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        characters.chunks(120).map(|piece| piece.iter().collect()).collect()
    }
}

impl StreamEvent {
    /// An event whose name is the type in its data.
    pub(super) fn with_type(kind: &str, mut data: Value) -> StreamEvent {
        if let Value::Object(fields) = &mut data {
            fields.insert("type".to_string(), json!(kind));
        }
        StreamEvent { name: Some(kind.to_string()), data: data.to_string() }
    }

    pub(super) fn without_name(data: impl ToString) -> StreamEvent {
        StreamEvent { name: None, data: data.to_string() }
    }
}

/// The event by which an interface reports an error in the middle of a stream.
pub(super) fn stream_error_event(api: ModelApi, kind: &str, message: &str) -> StreamEvent {
    match api {
        ModelApi::Messages => StreamEvent::with_type("error", messages::error_body(kind, message)),
        ModelApi::Responses => responses::failed_event(kind, message),
        ModelApi::Chat => StreamEvent::without_name(chat::error_body(kind, message)),
    }
}

/// The body of an error answer.
pub(super) fn error_body(api: ModelApi, kind: &str, message: &str) -> Value {
    match api {
        ModelApi::Messages => messages::error_body(kind, message),
        ModelApi::Responses | ModelApi::Chat => chat::error_body(kind, message),
    }
}
