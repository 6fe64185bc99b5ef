//! The OpenAI Responses interface.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Event},
    calls::ToolCall,
    request::{Conversation, Tool, Turn, list_at, text_at, words_of},
    scenario::{Stop, Tokens},
};

/// Reads the conversation. For models it knows, Codex offers its tools in an item of the conversation, and in groups.
pub(super) fn read(body: &Value) -> Conversation {
    let mut talk = Conversation::default();
    talk.system.extend(body.get("instructions").map(words_of));
    tools(body, &mut talk.tools);
    if let Some(Value::String(words)) = body.get("input") {
        talk.turns.push(Turn::User(words.clone()));
    }
    for item in list_at(body, "input") {
        let kind = text_at(item, "type");
        match (kind, text_at(item, "role")) {
            ("additional_tools", _) => tools(item, &mut talk.tools),
            ("" | "message", "user") => talk.turns.push(Turn::User(words_of(item))),
            ("" | "message", "assistant") => talk.turns.push(Turn::Model),
            ("" | "message", _) => talk.system.push(words_of(item)),
            (kind, _) if kind.ends_with("_output") => talk.turns.push(Turn::Result(words_of(item))),
            _ => talk.turns.push(Turn::Model),
        }
    }
    talk
}

fn tools(from: &Value, tools: &mut Vec<Tool>) {
    for offered in list_at(from, "tools") {
        let group = text_at(offered, "name");
        match text_at(offered, "type") {
            "namespace" => {
                tools.extend(list_at(offered, "tools").iter().map(|inner| tool(inner, Some(group))))
            }
            _ => tools.push(tool(offered, None)),
        }
    }
}

fn tool(tool: &Value, group: Option<&str>) -> Tool {
    let kind = text_at(tool, "type");
    let name = Some(text_at(tool, "name")).filter(|name| !name.is_empty()).unwrap_or(kind);
    let schema = tool.get("parameters").cloned().unwrap_or_default();
    Tool { name: name.to_string(), group: group.map(str::to_string), free: kind == "custom", schema }
}

pub(super) fn whole(answer: &Answer) -> Value {
    response(answer, ended(answer), &items(answer), &usage(answer.tokens))
}

pub(super) fn stream(answer: &Answer) -> Vec<Event> {
    let items = items(answer);
    let start = response(answer, "in_progress", &[], &Value::Null);
    let mut events = vec![("response.created", json!({ "response": start }))];
    for (at, item) in items.iter().enumerate() {
        events.push(("response.output_item.added", json!({"output_index": at, "item": opened(item)})));
        if text_at(item, "type") == "message" {
            for piece in Answer::pieces(answer.text.as_deref().unwrap_or_default()) {
                let delta =
                    json!({"item_id": item["id"], "output_index": at, "content_index": 0, "delta": piece});
                events.push(("response.output_text.delta", delta));
            }
        }
        events.push(("response.output_item.done", json!({"output_index": at, "item": item})));
    }
    let name = if ended(answer) == "completed" { "response.completed" } else { "response.incomplete" };
    events.push((name, json!({ "response": whole(answer) })));
    let numbered = events.into_iter().enumerate().map(|(at, (name, mut data))| {
        data["sequence_number"] = json!(at);
        Event::typed(name, data)
    });
    numbered.collect()
}

pub(super) fn failed(kind: &str, message: &str) -> Event {
    let response = json!({
        "id": "resp_failed",
        "object": "response",
        "status": "failed",
        "output": [],
        "error": {"code": kind, "message": message},
    });
    Event::typed("response.failed", json!({ "response": response }))
}

/// An output item in its initial, empty form.
fn opened(item: &Value) -> Value {
    let mut opening = item.clone();
    opening["status"] = json!("in_progress");
    for (key, empty) in [("content", json!([])), ("arguments", json!("")), ("input", json!(""))] {
        if item.get(key).is_some() {
            opening[key] = empty;
        }
    }
    opening
}

fn response(answer: &Answer, status: &str, output: &[Value], usage: &Value) -> Value {
    let reason = match answer.stop {
        Stop::Done => None,
        Stop::MaxTokens => Some("max_output_tokens"),
        Stop::Refusal => Some("content_filter"),
    };
    json!({
        "id": format!("resp_{}", answer.number),
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": answer.model,
        "output": output,
        "usage": usage,
        "error": null,
        "incomplete_details": reason.filter(|_| status == "incomplete").map(|reason| json!({ "reason": reason })),
    })
}

fn ended(answer: &Answer) -> &'static str {
    if answer.stop == Stop::Done { "completed" } else { "incomplete" }
}

fn items(answer: &Answer) -> Vec<Value> {
    let text = answer.text.iter().map(|text| {
        json!({
            "type": "message",
            "id": format!("msg_{}", answer.number),
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        })
    });
    let calls =
        answer.calls.iter().enumerate().map(|(at, call)| item(call, &format!("{}_{at}", answer.number)));
    text.chain(calls).collect()
}

fn item(call: &ToolCall, id: &str) -> Value {
    let mut item = json!({"call_id": format!("call_{id}"), "name": call.name, "status": "completed"});
    if call.free {
        item["type"] = json!("custom_tool_call");
        item["id"] = json!(format!("ctc_{id}"));
        item["input"] = call.input.clone();
    } else {
        item["type"] = json!("function_call");
        item["id"] = json!(format!("fc_{id}"));
        item["arguments"] = json!(call.input.to_string());
    }
    if let Some(group) = &call.group {
        item["namespace"] = json!(group);
    }
    item
}

/// The reported usage; this interface includes cached input in the input.
fn usage(tokens: Tokens) -> Value {
    json!({
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    })
}
