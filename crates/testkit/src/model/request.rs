//! A request as rules and tests see it, independent of its interface.

use serde::Deserialize;
use serde_json::Value;

use super::{chat, messages, responses};

/// An interface that the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelApi {
    Messages,
    Responses,
    Chat,
}

impl ModelApi {
    pub(super) fn from_route(method: &str, route: &str) -> Option<ModelApi> {
        let route = route.split('?').next().unwrap_or_default();
        match (method, route) {
            ("POST", "/v1/messages") => Some(ModelApi::Messages),
            ("POST", "/v1/responses") => Some(ModelApi::Responses),
            ("POST", "/v1/chat/completions") => Some(ModelApi::Chat),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct ModelRequest {
    pub api: ModelApi,
    pub model: String,
    pub is_streaming: bool,
    /// Whether a key came along; its value does not matter.
    pub has_api_key: bool,
    pub system_text: String,
    /// The first text of the user, without the notes that clients add to it; `last_text` is the last one.
    pub first_text: String,
    pub last_text: String,
    /// The number of tool rounds since the last text of the user.
    pub tool_rounds: usize,
    /// The results of the last tool round; empty if the last message is the user's.
    pub tool_results: Vec<String>,
    pub(super) offered_tools: Vec<OfferedTool>,
    /// The rule that answered; `None` means that no rule of the scenario matches.
    pub rule_index: Option<usize>,
    pub body: Value,
}

/// A tool that the client offers.
#[derive(Clone, Debug)]
pub(super) struct OfferedTool {
    pub name: String,
    /// The group of the tool, for clients that group their tools.
    pub group: Option<String>,
    /// Whether its input is text instead of an object.
    pub takes_text: bool,
    pub schema: Value,
}

/// A conversation as an interface reads it from a body.
#[derive(Debug, Default)]
pub(super) struct ModelConversation {
    pub system_texts: Vec<String>,
    pub turns: Vec<ConversationTurn>,
    pub tools: Vec<OfferedTool>,
}

#[derive(Debug)]
pub(super) enum ConversationTurn {
    User(String),
    Model,
    ToolResult(String),
}

impl ModelRequest {
    pub(super) fn parse(api: ModelApi, has_api_key: bool, body: Value) -> ModelRequest {
        let conversation = match api {
            ModelApi::Messages => messages::parse_conversation(&body),
            ModelApi::Responses => responses::parse_conversation(&body),
            ModelApi::Chat => chat::parse_conversation(&body),
        };
        let (last_turn, last_text) = conversation.last_user_text().unwrap_or_default();
        let (tool_rounds, tool_results) = count_tool_rounds(conversation.turns.get(last_turn..).unwrap_or_default());
        let first_text = conversation.user_texts().next().map(|(_, words)| words);
        ModelRequest {
            api,
            model: string_field(&body, "model").to_string(),
            is_streaming: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
            has_api_key,
            system_text: conversation.system_texts.join("\n"),
            first_text: first_text.unwrap_or_default(),
            last_text,
            tool_rounds,
            tool_results,
            offered_tools: conversation.tools,
            rule_index: None,
            body,
        }
    }

    pub fn offers_tool(&self, tool_name: &str) -> bool {
        self.offered_tools.iter().any(|offered| offered.name == tool_name)
    }

    /// The names of the tools offered.
    pub fn tool_names(&self) -> Vec<&str> {
        self.offered_tools.iter().map(|tool| tool.name.as_str()).collect()
    }
}

impl ModelConversation {
    /// The user's own texts with their turns, oldest first.
    fn user_texts(&self) -> impl DoubleEndedIterator<Item = (usize, String)> + '_ {
        self.turns.iter().enumerate().filter_map(|(turn_index, turn)| match turn {
            ConversationTurn::User(text) => {
                Some((turn_index, strip_client_notes(text))).filter(|(_, own_text)| !own_text.is_empty())
            }
            ConversationTurn::Model | ConversationTurn::ToolResult(_) => None,
        })
    }

    fn last_user_text(&self) -> Option<(usize, String)> {
        self.user_texts().next_back()
    }
}

/// Counts the tool rounds, and returns the results of the last one.
fn count_tool_rounds(turns: &[ConversationTurn]) -> (usize, Vec<String>) {
    let (mut round_count, mut results) = (0, Vec::new());
    let mut after_model = true;
    for turn in turns {
        match turn {
            ConversationTurn::ToolResult(text) => {
                if after_model {
                    round_count += 1;
                    results.clear();
                }
                results.push(text.clone());
                after_model = false;
            }
            ConversationTurn::Model => after_model = true,
            ConversationTurn::User(_) => {}
        }
    }
    (round_count, results)
}

/// Tags of the notes that clients add to the text of the user.
const CLIENT_NOTES: [(&str, &str); 2] =
    [("<system-reminder>", "</system-reminder>"), ("<environment_context>", "</environment_context>")];

fn strip_client_notes(text: &str) -> String {
    let mut own_text = text.to_string();
    for (opening_tag, closing_tag) in CLIENT_NOTES {
        while let Some(start) = own_text.find(opening_tag) {
            let Some(length) = own_text.get(start..).and_then(|remaining_text| remaining_text.find(closing_tag)) else {
                break;
            };
            own_text.replace_range(start..start + length + closing_tag.len(), "");
        }
    }
    own_text.trim().to_string()
}

/// Extracts text in any form that the interfaces use: a string, an object with one, or a list of them.
pub(super) fn extract_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let part_texts: Vec<String> = parts.iter().map(extract_text).filter(|text| !text.is_empty()).collect();
            part_texts.join("\n")
        }
        Value::Object(part) => {
            let nested_text = ["text", "content", "output"].iter().find_map(|key| part.get(*key));
            nested_text.map(extract_text).unwrap_or_default()
        }
        _ => String::new(),
    }
}

pub(super) fn string_field<'a>(value: &'a Value, field_name: &str) -> &'a str {
    value.get(field_name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn array_field<'a>(value: &'a Value, field_name: &str) -> &'a [Value] {
    value.get(field_name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages_request(messages: Value) -> ModelRequest {
        ModelRequest::parse(ModelApi::Messages, false, json!({"model": "m", "messages": messages}))
    }

    #[test]
    fn notes_of_the_client_are_not_user_text() {
        for (text, user_text) in [
            ("hello", "hello"),
            ("<system-reminder>a</system-reminder>\nhello\n<system-reminder>b</system-reminder>", "hello"),
            ("<environment_context>cwd</environment_context>", ""),
            ("<system-reminder>never closed", "<system-reminder>never closed"),
        ] {
            assert_eq!(strip_client_notes(text), user_text, "{text}");
        }
    }

    #[test]
    fn tool_rounds_are_counted_since_the_last_user_text() {
        let call =
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "Read", "input": {}}]});
        let result = |text: &str| json!({"type": "tool_result", "tool_use_id": "1", "content": text});
        let user = |content: Value| json!({"role": "user", "content": content});
        let request = messages_request(json!([
            user(json!("one")),
            call,
            user(json!([result("old")])),
            {"role": "assistant", "content": "done"},
            user(json!([{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": "two"}])),
            {"role": "system", "content": "a note in between"},
            call,
            user(json!([result("a"), result("b")])),
            call,
            user(json!([result("c"), {"type": "text", "text": "<system-reminder>y</system-reminder>"}])),
        ]));
        assert_eq!((request.first_text.as_str(), request.last_text.as_str()), ("one", "two"));
        assert_eq!((request.tool_rounds, request.tool_results), (2, vec!["c".to_string()]));
        assert_eq!(request.system_text, "a note in between");
    }
}
