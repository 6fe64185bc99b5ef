//! Collects what an agent said from the lines its client printed.
//!
//! Only the agent's messages and the output of its commands are collected; names of JSON fields would be mistaken for
//! words. Which lines a client prints is defined in its own directory under `crate::clients`.

use serde_json::Value;

use super::block::{self, Block};
use crate::json::{list, text};

/// The words of an agent's response, separated by where they come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    /// The last message.
    pub answer: String,
    /// Everything the agent said, including the answer.
    pub said: String,
    /// The commands it ran and what they printed.
    pub ran: String,
    pub denied: Vec<String>,
    pub session: Option<String>,
    /// A status that came in JSON fields instead of a text block.
    pub block: Option<Block>,
}

impl Spoken {
    /// Adds a message of the agent. Messages arrive in order, so that the last one that is not blank is the answer.
    pub(crate) fn say(&mut self, words: &str) {
        if !words.trim().is_empty() {
            self.answer = words.to_string();
            push(&mut self.said, words);
        }
    }

    /// Adds a command that ran, or its output.
    pub(crate) fn run(&mut self, words: &str) {
        push(&mut self.ran, words);
    }

    /// Records an action that the client denied, each one once.
    pub(crate) fn deny(&mut self, what: &str) {
        if !what.is_empty() && !self.denied.iter().any(|known| known == what) {
            self.denied.push(what.to_string());
        }
    }

    /// Records the session id of a line. Only the first one that is found is kept.
    pub(crate) fn session(&mut self, value: &Value) {
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

    /// Reads a single object: a client's envelope around the answer, or a status in fields.
    pub(super) fn object(&mut self, object: &Value) {
        self.session(object);
        self.denials(object);
        // The names under which wrappers put the answer, the most specific one first.
        let words = ["result", "response", "summary", "message", "text", "output"];
        if let Some(words) = words.into_iter().map(|name| text(object, name)).find(|words| !words.is_empty())
        {
            self.say(words);
        }
        let beside = object.get("metadata").unwrap_or(&Value::Null);
        // Status fields stand at the top level or in `metadata`.
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

    /// Reads a line in the form of Claude Code, which other clients adopted.
    pub(crate) fn stream(&mut self, line: &Value) {
        self.session(line);
        let blocks = line.get("message").map(|message| list(message, "content")).unwrap_or_default();
        match text(line, "type") {
            "assistant" => {
                for block in blocks {
                    match text(block, "type") {
                        "text" => self.say(text(block, "text")),
                        "tool_use" => {
                            self.run(block.get("input").map(|i| text(i, "command")).unwrap_or_default());
                        }
                        _ => {}
                    }
                }
            }
            "user" => blocks.iter().for_each(|block| self.run(&words(block.get("content")))),
            "result" => {
                self.denials(line);
                let result = text(line, "result");
                // The result usually repeats the last message; it must not be collected twice.
                if !result.trim().is_empty() && result != self.answer {
                    self.say(result);
                }
            }
            _ => {}
        }
    }
}

/// The text of a tool's result, which is either a string or a list of text blocks.
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
