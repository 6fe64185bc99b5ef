//! The Anthropic Messages interface.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Event},
    request::{Conversation, Tool, Turn, list_at, text_at, words_of},
    scenario::{Stop, Tokens},
};

/// Reads the conversation. Claude Code also sends messages of role `system`, after those of the user.
pub(super) fn read(body: &Value) -> Conversation {
    let mut talk = Conversation::default();
    talk.system.extend(body.get("system").map(words_of));
    for message in list_at(body, "messages") {
        let content = message.get("content").unwrap_or(&Value::Null);
        match text_at(message, "role") {
            "user" => turns(content, &mut talk.turns),
            "assistant" => talk.turns.push(Turn::Model),
            _ => talk.system.push(words_of(content)),
        }
    }
    talk.tools = list_at(body, "tools").iter().map(tool).collect();
    talk
}

/// Adds the turns of one message: its texts together are one turn, each tool result is a turn of its own.
fn turns(content: &Value, turns: &mut Vec<Turn>) {
    let Value::Array(blocks) = content else { return turns.push(Turn::User(words_of(content))) };
    let is_result = |block: &&Value| text_at(block, "type") == "tool_result";
    turns.extend(blocks.iter().filter(is_result).map(|block| Turn::Result(words_of(block))));
    let texts: Vec<String> = blocks.iter().filter(|block| !is_result(block)).map(words_of).collect();
    if !texts.is_empty() {
        turns.push(Turn::User(texts.join("\n")));
    }
}

fn tool(tool: &Value) -> Tool {
    let schema = tool.get("input_schema").cloned().unwrap_or_default();
    Tool { name: text_at(tool, "name").to_string(), group: None, free: false, schema }
}

pub(super) fn whole(answer: &Answer) -> Value {
    message(answer, &blocks(answer), json!(stop_reason(answer)), &usage(answer.tokens))
}

pub(super) fn stream(answer: &Answer) -> Vec<Event> {
    let blocks = blocks(answer);
    let before = usage(Tokens { output: 1, ..answer.tokens });
    let start = message(answer, &[], Value::Null, &before);
    let mut events = vec![Event::typed("message_start", json!({ "message": start }))];
    for (index, block) in blocks.iter().enumerate() {
        let (opening, deltas) = opened(block);
        let start = json!({"index": index, "content_block": opening});
        events.push(Event::typed("content_block_start", start));
        for delta in deltas {
            events.push(Event::typed("content_block_delta", json!({"index": index, "delta": delta})));
        }
        events.push(Event::typed("content_block_stop", json!({ "index": index })));
    }
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    events.push(Event::typed("message_delta", json!({"delta": delta, "usage": usage(answer.tokens)})));
    events.push(Event::typed("message_stop", json!({})));
    events
}

/// A content block in its initial, empty form, and the deltas that fill it.
fn opened(block: &Value) -> (Value, Vec<Value>) {
    let mut opening = block.clone();
    if let Some(text) = block.get("text").and_then(Value::as_str) {
        opening["text"] = json!("");
        let deltas = Answer::pieces(text).into_iter().map(|text| json!({"type": "text_delta", "text": text}));
        return (opening, deltas.collect());
    }
    opening["input"] = json!({});
    let input = block.get("input").cloned().unwrap_or_default().to_string();
    (opening, vec![json!({"type": "input_json_delta", "partial_json": input})])
}

fn message(answer: &Answer, content: &[Value], stop_reason: Value, usage: &Value) -> Value {
    json!({
        "id": format!("msg_{}", answer.number),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn blocks(answer: &Answer) -> Vec<Value> {
    let text = answer.text.iter().map(|text| json!({"type": "text", "text": text}));
    let calls = answer.calls.iter().enumerate().map(|(at, call)| {
        let id = format!("toolu_{}_{at}", answer.number);
        json!({"type": "tool_use", "id": id, "name": call.name, "input": call.input})
    });
    text.chain(calls).collect()
}

fn stop_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Stop::Done if answer.calls.is_empty() => "end_turn",
        Stop::Done => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
    }
}

/// The reported usage; this interface does not include cached input in the input.
fn usage(tokens: Tokens) -> Value {
    json!({
        "input_tokens": tokens.input.saturating_sub(tokens.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output,
    })
}

pub(super) fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}
