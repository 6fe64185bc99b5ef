//! The OpenAI Responses interface.

use serde_json::{Value, json};

use super::{
    model_answer::{ModelAnswer, StreamEvent},
    request::{ConversationTurn, ModelConversation, OfferedTool, array_field, extract_text, string_field},
    scenario::{AnswerStop, ScriptedTokens},
    tool_calls::ToolCall,
};

/// Reads the conversation. For models it knows, Codex offers its tools in an item of the conversation, and in groups.
pub(super) fn parse_conversation(body: &Value) -> ModelConversation {
    let mut conversation = ModelConversation::default();
    conversation.system_texts.extend(body.get("instructions").map(extract_text));
    push_tools(body, &mut conversation.tools);
    if let Some(Value::String(words)) = body.get("input") {
        conversation.turns.push(ConversationTurn::User(words.clone()));
    }
    for item in array_field(body, "input") {
        let kind = string_field(item, "type");
        match (kind, string_field(item, "role")) {
            ("additional_tools", _) => push_tools(item, &mut conversation.tools),
            ("" | "message", "user") => conversation.turns.push(ConversationTurn::User(extract_text(item))),
            ("" | "message", "assistant") => conversation.turns.push(ConversationTurn::Model),
            ("" | "message", _) => conversation.system_texts.push(extract_text(item)),
            (kind, _) if kind.ends_with("_output") => {
                conversation.turns.push(ConversationTurn::ToolResult(extract_text(item)))
            }
            _ => conversation.turns.push(ConversationTurn::Model),
        }
    }
    conversation
}

fn push_tools(container: &Value, tools: &mut Vec<OfferedTool>) {
    for offered in array_field(container, "tools") {
        let group = string_field(offered, "name");
        match string_field(offered, "type") {
            "namespace" => tools
                .extend(array_field(offered, "tools").iter().map(|grouped_tool| parse_tool(grouped_tool, Some(group)))),
            _ => tools.push(parse_tool(offered, None)),
        }
    }
}

fn parse_tool(tool: &Value, group: Option<&str>) -> OfferedTool {
    let kind = string_field(tool, "type");
    let name = Some(string_field(tool, "name")).filter(|name| !name.is_empty()).unwrap_or(kind);
    let schema = tool.get("parameters").cloned().unwrap_or_default();
    OfferedTool { name: name.to_string(), group: group.map(str::to_string), takes_text: kind == "custom", schema }
}

pub(super) fn to_body(answer: &ModelAnswer) -> Value {
    response_object(answer, final_status(answer), &output_items(answer), &usage_object(answer.tokens))
}

pub(super) fn to_events(answer: &ModelAnswer) -> Vec<StreamEvent> {
    let items = output_items(answer);
    let started_response = response_object(answer, "in_progress", &[], &Value::Null);
    let mut events = vec![("response.created", json!({ "response": started_response }))];
    for (output_index, item) in items.iter().enumerate() {
        events.push(("response.output_item.added", json!({"output_index": output_index, "item": open_item(item)})));
        if string_field(item, "type") == "message" {
            for piece in ModelAnswer::split_pieces(answer.text.as_deref().unwrap_or_default()) {
                let delta =
                    json!({"item_id": item["id"], "output_index": output_index, "content_index": 0, "delta": piece});
                events.push(("response.output_text.delta", delta));
            }
        }
        events.push(("response.output_item.done", json!({"output_index": output_index, "item": item})));
    }
    let name = if final_status(answer) == "completed" { "response.completed" } else { "response.incomplete" };
    events.push((name, json!({ "response": to_body(answer) })));
    let numbered = events.into_iter().enumerate().map(|(sequence_number, (name, mut data))| {
        data["sequence_number"] = json!(sequence_number);
        StreamEvent::with_type(name, data)
    });
    numbered.collect()
}

pub(super) fn failed_event(kind: &str, message: &str) -> StreamEvent {
    let response = json!({
        "id": "resp_failed",
        "object": "response",
        "status": "failed",
        "output": [],
        "error": {"code": kind, "message": message},
    });
    StreamEvent::with_type("response.failed", json!({ "response": response }))
}

/// An output item in its initial, empty form.
fn open_item(item: &Value) -> Value {
    let mut opening = item.clone();
    opening["status"] = json!("in_progress");
    for (key, empty) in [("content", json!([])), ("arguments", json!("")), ("input", json!(""))] {
        if item.get(key).is_some() {
            opening[key] = empty;
        }
    }
    opening
}

fn response_object(answer: &ModelAnswer, status: &str, output: &[Value], usage: &Value) -> Value {
    let reason = match answer.stop {
        AnswerStop::Done => None,
        AnswerStop::MaxTokens => Some("max_output_tokens"),
        AnswerStop::Refusal => Some("content_filter"),
    };
    json!({
        "id": format!("resp_{}", answer.request_number),
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

fn final_status(answer: &ModelAnswer) -> &'static str {
    if answer.stop == AnswerStop::Done { "completed" } else { "incomplete" }
}

fn output_items(answer: &ModelAnswer) -> Vec<Value> {
    let message_item = answer.text.iter().map(|text| {
        json!({
            "type": "message",
            "id": format!("msg_{}", answer.request_number),
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        })
    });
    let call_items = answer
        .calls
        .iter()
        .enumerate()
        .map(|(call_index, call)| call_item(call, &format!("{}_{call_index}", answer.request_number)));
    message_item.chain(call_items).collect()
}

fn call_item(call: &ToolCall, call_id: &str) -> Value {
    let mut item = json!({"call_id": format!("call_{call_id}"), "name": call.name, "status": "completed"});
    if call.takes_text {
        item["type"] = json!("custom_tool_call");
        item["id"] = json!(format!("ctc_{call_id}"));
        item["input"] = call.input.clone();
    } else {
        item["type"] = json!("function_call");
        item["id"] = json!(format!("fc_{call_id}"));
        item["arguments"] = json!(call.input.to_string());
    }
    if let Some(group) = &call.group {
        item["namespace"] = json!(group);
    }
    item
}

/// The reported usage; this interface includes cached input in the input.
fn usage_object(tokens: ScriptedTokens) -> Value {
    json!({
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.input + tokens.output,
    })
}
