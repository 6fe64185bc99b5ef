//! Where an agent's words are in what its client printed.
//!
//! Only what the agent said and what its commands printed is taken out; the names of JSON fields are nobody's words.

use serde::Serialize;
use serde_json::Value;

use super::block::{self, Block};
use crate::json::{self, list, text};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    #[default]
    Text,
    /// One JSON object.
    Object,
    /// Claude Code's, and that of clients that do as it does.
    Stream,
    Codex,
    Opencode,
    Cursor,
}

/// What was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    /// The last word.
    pub answer: String,
    /// Everything the agent said, the answer included.
    pub said: String,
    /// The commands it ran and what they printed.
    pub ran: String,
    pub denied: Vec<String>,
    pub session: Option<String>,
    /// A status that stands in fields of its own instead of a block.
    pub block: Option<Block>,
}

impl Shape {
    /// The shape that people mean by an agent's name; none: it can be any.
    pub fn named(agent: &str) -> Option<Shape> {
        Some(match agent {
            "codex" => Shape::Codex,
            "opencode" => Shape::Opencode,
            "cursor" | "cursor-agent" => Shape::Cursor,
            _ => return None,
        })
    }

    /// What it looks like.
    pub fn of(output: &str) -> Shape {
        let lines: Vec<Value> = objects(output).collect();
        let is = |line: &Value, types: &[&str]| types.iter().any(|name| text(line, "type") == *name);
        let any = |types: &[&str]| lines.iter().any(|line| is(line, types));
        if any(&["thread.started", "turn.started", "turn.completed", "turn.failed", "item.completed"]) {
            Shape::Codex
        } else if any(&["step_start", "step_finish"]) {
            Shape::Opencode
        } else if any(&["tool_call"]) {
            Shape::Cursor
        } else if any(&["assistant"]) || any(&["system"]) && any(&["result"]) {
            Shape::Stream
        } else if matches!(serde_json::from_str(output.trim()), Ok(Value::Object(_))) {
            Shape::Object
        } else {
            Shape::Text
        }
    }

    /// Takes the agent's words out of it.
    pub fn read(self, output: &str) -> Spoken {
        let mut spoken = Spoken::default();
        match self {
            Shape::Text => spoken.say(output),
            Shape::Object => match serde_json::from_str::<Value>(output.trim()) {
                Ok(object) => spoken.object(&object),
                Err(_) => spoken.say(output),
            },
            Shape::Stream | Shape::Cursor => objects(output).for_each(|line| spoken.stream(&line)),
            Shape::Codex => objects(output).for_each(|line| spoken.codex(&line)),
            Shape::Opencode => objects(output).for_each(|line| spoken.opencode(&line)),
        }
        spoken
    }
}

/// Every line that is an object, or the objects of one array.
fn objects(output: &str) -> impl Iterator<Item = Value> {
    let list = match serde_json::from_str(output.trim()) {
        Ok(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let lines = if list.is_empty() { output } else { "" };
    list.into_iter().chain(json::objects(lines))
}

impl Spoken {
    fn say(&mut self, words: &str) {
        if !words.trim().is_empty() {
            self.answer = words.to_string();
            push(&mut self.said, words);
        }
    }

    fn deny(&mut self, what: &str) {
        if !what.is_empty() && !self.denied.iter().any(|known| known == what) {
            self.denied.push(what.to_string());
        }
    }

    fn session(&mut self, value: &Value) {
        if self.session.is_none() {
            self.session = crate::sessions::id(value).map(Into::into);
        }
    }

    fn denials(&mut self, result: &Value) {
        for denial in list(result, "permission_denials") {
            let input = denial.get("tool_input").unwrap_or(&Value::Null);
            let about = ["command", "file_path", "path", "url"].map(|name| text(input, name));
            let about = about.into_iter().find(|about| !about.is_empty()).unwrap_or_default();
            self.deny(format!("{} {about}", text(denial, "tool_name")).trim());
        }
    }

    /// One object: a client's envelope around the answer, or a status in fields.
    fn object(&mut self, object: &Value) {
        self.session(object);
        self.denials(object);
        let words = ["result", "response", "summary", "message", "text", "output"];
        if let Some(words) = words.into_iter().map(|name| text(object, name)).find(|words| !words.is_empty())
        {
            self.say(words);
        }
        let beside = object.get("metadata").unwrap_or(&Value::Null);
        let field = |name: &str| object.get(name).or_else(|| beside.get(name));
        let status = field("status").or_else(|| beside.get("completion_status"));
        let status = status.and_then(Value::as_str).and_then(block::status);
        let exit_signal = field("exit_signal").and_then(Value::as_bool);
        if status.is_some() || exit_signal.is_some() {
            let files = field("files_modified").or_else(|| beside.get("files_changed"));
            let files_modified = files.and_then(Value::as_u64).and_then(|number| number.try_into().ok());
            let work_type = field("work_type").and_then(Value::as_str).unwrap_or_default().to_string();
            self.block = Some(Block { status, exit_signal, files_modified, work_type, ..Block::default() });
        }
    }

    fn stream(&mut self, line: &Value) {
        self.session(line);
        let blocks = line.get("message").map(|message| list(message, "content")).unwrap_or_default();
        match text(line, "type") {
            "assistant" => {
                for block in blocks {
                    match text(block, "type") {
                        "text" => self.say(text(block, "text")),
                        "tool_use" => {
                            push(
                                &mut self.ran,
                                block.get("input").map(|i| text(i, "command")).unwrap_or_default(),
                            );
                        }
                        _ => {}
                    }
                }
            }
            "user" => blocks.iter().for_each(|block| push(&mut self.ran, &words(block.get("content")))),
            "tool_call" => self.tool_call(line),
            "result" => {
                self.denials(line);
                let result = text(line, "result");
                if !result.trim().is_empty() && result != self.answer {
                    self.say(result);
                }
            }
            _ => {}
        }
    }

    /// Cursor: `{"type":"tool_call","tool_call":{"shellToolCall":{"args":{…},"result":{"success":{…}}}}}`.
    fn tool_call(&mut self, line: &Value) {
        let calls =
            line.get("tool_call").and_then(Value::as_object).into_iter().flat_map(|call| call.values());
        for call in calls {
            let command = call.get("args").map(|args| text(args, "command")).unwrap_or_default();
            push(&mut self.ran, command);
            let Some(result) = call.get("result") else { continue };
            if result.get("rejected").is_some() {
                self.deny(if command.is_empty() { "a tool" } else { command });
            }
            if let Some(success) = result.get("success") {
                push(&mut self.ran, text(success, "stdout"));
                push(&mut self.ran, text(success, "stderr"));
            }
        }
    }

    fn codex(&mut self, line: &Value) {
        self.session(line);
        let Some(item) = line.get("item").filter(|_| text(line, "type") == "item.completed") else { return };
        match text(item, "type") {
            "agent_message" => self.say(text(item, "text")),
            "command_execution" => {
                push(&mut self.ran, text(item, "command"));
                push(&mut self.ran, text(item, "aggregated_output"));
                if text(item, "status") == "declined" {
                    self.deny(text(item, "command"));
                }
            }
            _ => {}
        }
    }

    fn opencode(&mut self, line: &Value) {
        if self.session.is_none() {
            self.session = Some(text(line, "sessionID")).filter(|id| !id.is_empty()).map(Into::into);
        }
        let part = line.get("part").unwrap_or(&Value::Null);
        match text(line, "type") {
            "text" => self.say(text(part, "text")),
            "tool_use" => {
                let state = part.get("state").unwrap_or(&Value::Null);
                push(
                    &mut self.ran,
                    state.get("input").map(|input| text(input, "command")).unwrap_or_default(),
                );
                push(&mut self.ran, text(state, "output"));
                let error = text(state, "error");
                if error.contains("permission") || error.contains("denied") {
                    self.deny(text(part, "tool"));
                }
            }
            _ => {}
        }
    }
}

/// A tool's result: a text, or blocks of text.
fn words(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(words)) => words.clone(),
        Some(Value::Array(blocks)) => {
            blocks.iter().map(|block| text(block, "text")).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn push(to: &mut String, words: &str) {
    if words.is_empty() {
        return;
    }
    if !to.is_empty() && !to.ends_with('\n') {
        to.push('\n');
    }
    to.push_str(words);
}
