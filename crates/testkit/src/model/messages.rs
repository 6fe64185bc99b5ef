//! The Anthropic Messages interface.

use serde_json::{Value, json};

use super::{
    model_answer::{ModelAnswer, StreamEvent},
    request::{ConversationTurn, ModelConversation, OfferedTool, array_field, extract_text, string_field},
    scenario::{AnswerStop, ScriptedTokens},
};

/// Reads the conversation. Claude Code also sends messages of role `system`, after those of the user.
pub(super) fn parse_conversation(body: &Value) -> ModelConversation {
    let mut conversation = ModelConversation::default();
    conversation.system_texts.extend(body.get("system").map(extract_text));
    for message in array_field(body, "messages") {
        let content = message.get("content").unwrap_or(&Value::Null);
        match string_field(message, "role") {
            "user" => push_turns(content, &mut conversation.turns),
            "assistant" => conversation.turns.push(ConversationTurn::Model),
            _ => conversation.system_texts.push(extract_text(content)),
        }
    }
    conversation.tools = array_field(body, "tools").iter().map(parse_tool).collect();
    conversation
}

/// Adds the turns of one message: its texts together are one turn, each tool result is a turn of its own.
fn push_turns(content: &Value, turns: &mut Vec<ConversationTurn>) {
    let Value::Array(blocks) = content else {
        return turns.push(ConversationTurn::User(extract_text(content)));
    };
    let is_result = |block: &&Value| string_field(block, "type") == "tool_result";
    turns.extend(blocks.iter().filter(is_result).map(|block| ConversationTurn::ToolResult(extract_text(block))));
    let texts: Vec<String> = blocks.iter().filter(|block| !is_result(block)).map(extract_text).collect();
    if !texts.is_empty() {
        turns.push(ConversationTurn::User(texts.join("\n")));
    }
}

fn parse_tool(tool: &Value) -> OfferedTool {
    let schema = tool.get("input_schema").cloned().unwrap_or_default();
    OfferedTool { name: string_field(tool, "name").to_string(), group: None, takes_text: false, schema }
}

pub(super) fn to_body(answer: &ModelAnswer) -> Value {
    message_object(answer, &content_blocks(answer), json!(stop_reason(answer)), &usage_object(answer.tokens))
}

pub(super) fn to_events(answer: &ModelAnswer) -> Vec<StreamEvent> {
    let blocks = content_blocks(answer);
    let initial_usage = usage_object(ScriptedTokens { output: 1, ..answer.tokens });
    let empty_message = message_object(answer, &[], Value::Null, &initial_usage);
    let mut events = vec![StreamEvent::with_type("message_start", json!({ "message": empty_message }))];
    for (block_index, block) in blocks.iter().enumerate() {
        let (opening, deltas) = open_block(block);
        let start_data = json!({"index": block_index, "content_block": opening});
        events.push(StreamEvent::with_type("content_block_start", start_data));
        for delta in deltas {
            events.push(StreamEvent::with_type("content_block_delta", json!({"index": block_index, "delta": delta})));
        }
        events.push(StreamEvent::with_type("content_block_stop", json!({ "index": block_index })));
    }
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    events.push(StreamEvent::with_type("message_delta", json!({"delta": delta, "usage": usage_object(answer.tokens)})));
    events.push(StreamEvent::with_type("message_stop", json!({})));
    events
}

/// A content block in its initial, empty form, and the deltas that fill it.
fn open_block(block: &Value) -> (Value, Vec<Value>) {
    let mut opening = block.clone();
    if let Some(text) = block.get("text").and_then(Value::as_str) {
        opening["text"] = json!("");
        let deltas =
            ModelAnswer::split_pieces(text).into_iter().map(|piece| json!({"type": "text_delta", "text": piece}));
        return (opening, deltas.collect());
    }
    opening["input"] = json!({});
    let input = block.get("input").cloned().unwrap_or_default().to_string();
    (opening, vec![json!({"type": "input_json_delta", "partial_json": input})])
}

fn message_object(answer: &ModelAnswer, content: &[Value], stop_reason: Value, usage: &Value) -> Value {
    json!({
        "id": format!("msg_{}", answer.request_number),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn content_blocks(answer: &ModelAnswer) -> Vec<Value> {
    let text_block = answer.text.iter().map(|text| json!({"type": "text", "text": text}));
    let call_blocks = answer.calls.iter().enumerate().map(|(call_index, call)| {
        let call_id = format!("toolu_{}_{call_index}", answer.request_number);
        json!({"type": "tool_use", "id": call_id, "name": call.name, "input": call.input})
    });
    text_block.chain(call_blocks).collect()
}

fn stop_reason(answer: &ModelAnswer) -> &'static str {
    match answer.stop {
        AnswerStop::Done if answer.calls.is_empty() => "end_turn",
        AnswerStop::Done => "tool_use",
        AnswerStop::MaxTokens => "max_tokens",
        AnswerStop::Refusal => "refusal",
    }
}

/// The reported usage; this interface does not include cached input in the input.
fn usage_object(tokens: ScriptedTokens) -> Value {
    json!({
        "input_tokens": tokens.input.saturating_sub(tokens.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output,
    })
}

pub(super) fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}
