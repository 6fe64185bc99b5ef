//! The OpenAI Chat Completions interface.

use serde_json::{Value, json};

use super::{
    model_answer::{ModelAnswer, StreamEvent},
    request::{ConversationTurn, ModelConversation, OfferedTool, array_field, extract_text, string_field},
    scenario::{AnswerStop, ScriptedTokens},
};

pub(super) fn parse_conversation(body: &Value) -> ModelConversation {
    let mut conversation = ModelConversation::default();
    for message in array_field(body, "messages") {
        let message_text = message.get("content").map(extract_text).unwrap_or_default();
        match string_field(message, "role") {
            "user" => conversation.turns.push(ConversationTurn::User(message_text)),
            "assistant" => conversation.turns.push(ConversationTurn::Model),
            "tool" => conversation.turns.push(ConversationTurn::ToolResult(message_text)),
            _ => conversation.system_texts.push(message_text),
        }
    }
    let functions = array_field(body, "tools").iter().filter_map(|tool| tool.get("function"));
    conversation.tools = functions.map(parse_tool).collect();
    conversation
}

fn parse_tool(function: &Value) -> OfferedTool {
    let schema = function.get("parameters").cloned().unwrap_or_default();
    OfferedTool { name: string_field(function, "name").to_string(), group: None, takes_text: false, schema }
}

pub(super) fn to_body(answer: &ModelAnswer) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text});
    if !answer.calls.is_empty() {
        message["tool_calls"] = json!(tool_calls(answer));
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(answer)});
    completion_object(answer, "chat.completion", &[choice], Some(usage_object(answer.tokens)))
}

pub(super) fn to_events(answer: &ModelAnswer) -> Vec<StreamEvent> {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        StreamEvent::without_name(completion_object(answer, "chat.completion.chunk", &[choice], None))
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    for piece in ModelAnswer::split_pieces(answer.text.as_deref().unwrap_or_default()) {
        events.push(chunk(json!({ "content": piece }), None));
    }
    for call in tool_calls(answer) {
        events.push(chunk(json!({"tool_calls": [call]}), None));
    }
    events.push(chunk(json!({}), Some(finish_reason(answer))));
    let usage = completion_object(answer, "chat.completion.chunk", &[], Some(usage_object(answer.tokens)));
    events.extend([StreamEvent::without_name(usage), StreamEvent::without_name("[DONE]")]);
    events
}

fn completion_object(answer: &ModelAnswer, object: &str, choices: &[Value], usage: Option<Value>) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.request_number),
        "object": object,
        "created": 0,
        "model": answer.model,
        "choices": choices,
        "usage": usage,
    })
}

fn tool_calls(answer: &ModelAnswer) -> Vec<Value> {
    let call = |(call_index, call): (usize, &super::tool_calls::ToolCall)| {
        json!({
            "index": call_index,
            "id": format!("call_{}_{call_index}", answer.request_number),
            "type": "function",
            "function": {"name": call.name, "arguments": call.input.to_string()},
        })
    };
    answer.calls.iter().enumerate().map(call).collect()
}

fn finish_reason(answer: &ModelAnswer) -> &'static str {
    match answer.stop {
        AnswerStop::Done if answer.calls.is_empty() => "stop",
        AnswerStop::Done => "tool_calls",
        AnswerStop::MaxTokens => "length",
        AnswerStop::Refusal => "content_filter",
    }
}

fn usage_object(tokens: ScriptedTokens) -> Value {
    json!({
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    })
}

/// The body of an error; OpenAI uses the same form in all interfaces.
pub(super) fn error_body(kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "code": kind, "param": null}})
}
