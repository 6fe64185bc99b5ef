//! A request as rules and tests see it, independent of its interface.

use serde::Deserialize;
use serde_json::Value;

use super::{chat, messages, responses};

/// An interface that the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    Messages,
    Responses,
    Chat,
}

impl Api {
    pub(super) fn of(method: &str, path: &str) -> Option<Api> {
        let path = path.split('?').next().unwrap_or_default();
        match (method, path) {
            ("POST", "/v1/messages") => Some(Api::Messages),
            ("POST", "/v1/responses") => Some(Api::Responses),
            ("POST", "/v1/chat/completions") => Some(Api::Chat),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    pub api: Api,
    pub model: String,
    pub stream: bool,
    /// Whether a key came along; its value does not matter.
    pub authorised: bool,
    pub system: String,
    /// The first text of the user, without the notes that clients add to it; `last_text` is the last one.
    pub first: String,
    pub last: String,
    /// The number of tool rounds since the last text of the user.
    pub rounds: usize,
    /// The results of the last tool round; empty if the last message is the user's.
    pub results: Vec<String>,
    pub(super) tools: Vec<Tool>,
    /// The rule that answered; `None` means that no rule of the scenario matches.
    pub rule: Option<usize>,
    pub body: Value,
}

/// A tool that the client offers.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub name: String,
    /// The group of the tool, for clients that group their tools.
    pub group: Option<String>,
    /// Whether its input is text instead of an object.
    pub free: bool,
    pub schema: Value,
}

/// A conversation as an interface reads it from a body.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub system: Vec<String>,
    pub turns: Vec<Turn>,
    pub tools: Vec<Tool>,
}

#[derive(Debug)]
pub(super) enum Turn {
    User(String),
    Model,
    Result(String),
}

impl Request {
    pub(super) fn read(api: Api, authorised: bool, body: Value) -> Request {
        let talk = match api {
            Api::Messages => messages::read(&body),
            Api::Responses => responses::read(&body),
            Api::Chat => chat::read(&body),
        };
        let (since, last) = talk.last().unwrap_or_default();
        let (rounds, results) = rounds(talk.turns.get(since..).unwrap_or_default());
        let first = talk.words().next().map(|(_, words)| words);
        Request {
            api,
            model: text_at(&body, "model").to_string(),
            stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
            authorised,
            system: talk.system.join("\n"),
            first: first.unwrap_or_default(),
            last,
            rounds,
            results,
            tools: talk.tools,
            rule: None,
            body,
        }
    }

    pub fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|offered| offered.name == tool)
    }

    /// The names of the tools offered.
    pub fn tools(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }
}

impl Conversation {
    /// The user's own texts with their turns, oldest first.
    fn words(&self) -> impl DoubleEndedIterator<Item = (usize, String)> + '_ {
        self.turns.iter().enumerate().filter_map(|(at, turn)| match turn {
            Turn::User(text) => Some((at, own_words(text))).filter(|(_, words)| !words.is_empty()),
            Turn::Model | Turn::Result(_) => None,
        })
    }

    fn last(&self) -> Option<(usize, String)> {
        self.words().next_back()
    }
}

/// Counts the tool rounds, and returns the results of the last one.
fn rounds(turns: &[Turn]) -> (usize, Vec<String>) {
    let (mut rounds, mut results) = (0, Vec::new());
    let mut after_model = true;
    for turn in turns {
        match turn {
            Turn::Result(text) => {
                if after_model {
                    rounds += 1;
                    results.clear();
                }
                results.push(text.clone());
                after_model = false;
            }
            Turn::Model => after_model = true,
            Turn::User(_) => {}
        }
    }
    (rounds, results)
}

/// Tags of the notes that clients add to the text of the user.
const NOTES: [(&str, &str); 2] =
    [("<system-reminder>", "</system-reminder>"), ("<environment_context>", "</environment_context>")];

fn own_words(text: &str) -> String {
    let mut own = text.to_string();
    for (open, close) in NOTES {
        while let Some(start) = own.find(open) {
            let Some(length) = own.get(start..).and_then(|rest| rest.find(close)) else { break };
            own.replace_range(start..start + length + close.len(), "");
        }
    }
    own.trim().to_string()
}

/// Extracts text in any form that the interfaces use: a string, an object with one, or a list of them.
pub(super) fn words_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let words: Vec<String> = parts.iter().map(words_of).filter(|text| !text.is_empty()).collect();
            words.join("\n")
        }
        Value::Object(part) => {
            let inner = ["text", "content", "output"].iter().find_map(|key| part.get(*key));
            inner.map(words_of).unwrap_or_default()
        }
        _ => String::new(),
    }
}

pub(super) fn text_at<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list_at<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages(messages: Value) -> Request {
        Request::read(Api::Messages, false, json!({"model": "m", "messages": messages}))
    }

    #[test]
    fn notes_of_the_client_are_not_the_users_words() {
        for (text, own) in [
            ("hello", "hello"),
            ("<system-reminder>a</system-reminder>\nhello\n<system-reminder>b</system-reminder>", "hello"),
            ("<environment_context>cwd</environment_context>", ""),
            ("<system-reminder>never closed", "<system-reminder>never closed"),
        ] {
            assert_eq!(own_words(text), own, "{text}");
        }
    }

    #[test]
    fn rounds_are_counted_since_the_last_words() {
        let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "Read", "input": {}}]});
        let result = |text: &str| json!({"type": "tool_result", "tool_use_id": "1", "content": text});
        let user = |content: Value| json!({"role": "user", "content": content});
        let request = messages(json!([
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
        assert_eq!((request.first.as_str(), request.last.as_str()), ("one", "two"));
        assert_eq!((request.rounds, request.results), (2, vec!["c".to_string()]));
        assert_eq!(request.system, "a note in between");
    }
}
