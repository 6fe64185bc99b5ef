//! The OpenAI Chat Completions interface.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Event},
    request::{Conversation, Tool, Turn, list_at, text_at, words_of},
    scenario::{Stop, Tokens},
};

pub(super) fn read(body: &Value) -> Conversation {
    let mut talk = Conversation::default();
    for message in list_at(body, "messages") {
        let words = message.get("content").map(words_of).unwrap_or_default();
        match text_at(message, "role") {
            "user" => talk.turns.push(Turn::User(words)),
            "assistant" => talk.turns.push(Turn::Model),
            "tool" => talk.turns.push(Turn::Result(words)),
            _ => talk.system.push(words),
        }
    }
    let functions = list_at(body, "tools").iter().filter_map(|tool| tool.get("function"));
    talk.tools = functions.map(tool).collect();
    talk
}

fn tool(function: &Value) -> Tool {
    let schema = function.get("parameters").cloned().unwrap_or_default();
    Tool { name: text_at(function, "name").to_string(), group: None, free: false, schema }
}

pub(super) fn whole(answer: &Answer) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text});
    if !answer.calls.is_empty() {
        message["tool_calls"] = json!(calls(answer));
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish(answer)});
    completion(answer, "chat.completion", &[choice], Some(usage(answer.tokens)))
}

pub(super) fn stream(answer: &Answer) -> Vec<Event> {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        Event::plain(completion(answer, "chat.completion.chunk", &[choice], None))
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    for piece in Answer::pieces(answer.text.as_deref().unwrap_or_default()) {
        events.push(chunk(json!({ "content": piece }), None));
    }
    for call in calls(answer) {
        events.push(chunk(json!({"tool_calls": [call]}), None));
    }
    events.push(chunk(json!({}), Some(finish(answer))));
    let usage = completion(answer, "chat.completion.chunk", &[], Some(usage(answer.tokens)));
    events.extend([Event::plain(usage), Event::plain("[DONE]")]);
    events
}

fn completion(answer: &Answer, object: &str, choices: &[Value], usage: Option<Value>) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.number),
        "object": object,
        "created": 0,
        "model": answer.model,
        "choices": choices,
        "usage": usage,
    })
}

fn calls(answer: &Answer) -> Vec<Value> {
    let call = |(at, call): (usize, &super::calls::ToolCall)| {
        json!({
            "index": at,
            "id": format!("call_{}_{at}", answer.number),
            "type": "function",
            "function": {"name": call.name, "arguments": call.input.to_string()},
        })
    };
    answer.calls.iter().enumerate().map(call).collect()
}

fn finish(answer: &Answer) -> &'static str {
    match answer.stop {
        Stop::Done if answer.calls.is_empty() => "stop",
        Stop::Done => "tool_calls",
        Stop::MaxTokens => "length",
        Stop::Refusal => "content_filter",
    }
}

fn usage(tokens: Tokens) -> Value {
    json!({
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    })
}

/// The body of an error; OpenAI uses the same form in all interfaces.
pub(super) fn error(kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "code": kind, "param": null}})
}
