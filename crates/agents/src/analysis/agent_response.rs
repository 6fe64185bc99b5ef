//! Collects what an agent said from the lines its client printed.
//!
//! Only the agent's messages and the output of its commands are collected; names of JSON fields would be mistaken for
//! words. Which lines a client prints is defined in its own directory under `crate::clients`.

use serde_json::Value;
use tribunal_workflows::tasks::status_report::StatusReport;

use super::status_block;
use crate::json_fields::{array_field, text_field};

/// The words of an agent's response, separated by where they come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentResponse {
    /// The last message.
    pub answer: String,
    /// Everything the agent said, including the answer.
    pub all_text: String,
    /// The commands it ran and what they printed.
    pub command_text: String,
    pub denied_actions: Vec<String>,
    pub session_id: Option<String>,
    /// A status that came in JSON fields instead of a text block.
    pub status_block: Option<StatusReport>,
}

impl AgentResponse {
    /// Adds a message of the agent. Messages arrive in order, so the last one that is not blank is the answer.
    pub(crate) fn add_message(&mut self, message_text: &str) {
        if !message_text.trim().is_empty() {
            self.answer = message_text.to_string();
            append_line(&mut self.all_text, message_text);
        }
    }

    /// Adds a command that ran, or its output.
    pub(crate) fn add_command_text(&mut self, command_output: &str) {
        append_line(&mut self.command_text, command_output);
    }

    /// Records an action that the client denied, each one once.
    pub(crate) fn add_denial(&mut self, action: &str) {
        if !action.is_empty() && !self.denied_actions.iter().any(|known_action| known_action == action) {
            self.denied_actions.push(action.to_string());
        }
    }

    /// Records the session id of a line. Only the first one that is found is kept.
    pub(crate) fn record_session_id(&mut self, json_object: &Value) {
        if self.session_id.is_none() {
            self.session_id = crate::session_ids::find_session_id(json_object).map(Into::into);
        }
    }

    fn collect_denials(&mut self, result: &Value) {
        for denial in array_field(result, "permission_denials") {
            let tool_input = denial.get("tool_input").unwrap_or(&Value::Null);
            let target_candidates =
                ["command", "file_path", "path", "url"].map(|field_name| text_field(tool_input, field_name));
            let action_target =
                target_candidates.into_iter().find(|candidate_text| !candidate_text.is_empty()).unwrap_or_default();
            self.add_denial(format!("{} {action_target}", text_field(denial, "tool_name")).trim());
        }
    }

    /// Reads a single object: a client's envelope around the answer, or a status in fields.
    pub(super) fn read_object(&mut self, object: &Value) {
        self.record_session_id(object);
        self.collect_denials(object);
        // Wrappers put the answer under one of these names; the first one that is not empty counts.
        let message_fields = ["result", "response", "summary", "message", "text", "output"];
        if let Some(message_text) = message_fields
            .into_iter()
            .map(|field_name| text_field(object, field_name))
            .find(|field_text| !field_text.is_empty())
        {
            self.add_message(message_text);
        }
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        // Status fields stand at the top level or in `metadata`.
        let find_field = |field_name: &str| object.get(field_name).or_else(|| metadata.get(field_name));
        let status_value = find_field("status").or_else(|| metadata.get("completion_status"));
        let work_status = status_value.and_then(Value::as_str).and_then(status_block::parse_work_status);
        let exit_signal = find_field("exit_signal").and_then(Value::as_bool);
        if work_status.is_some() || exit_signal.is_some() {
            let file_count = find_field("files_modified").or_else(|| metadata.get("files_changed"));
            let files_modified = file_count.and_then(Value::as_u64).and_then(|count| count.try_into().ok());
            let work_type = find_field("work_type").and_then(Value::as_str).unwrap_or_default().to_string();
            self.status_block = Some(StatusReport {
                status: work_status,
                exit_signal,
                files_modified,
                work_type,
                ..StatusReport::default()
            });
        }
    }

    /// Reads a line in the form of Claude Code, which other clients adopted.
    pub(crate) fn read_stream_line(&mut self, stream_line: &Value) {
        self.record_session_id(stream_line);
        let content_blocks =
            stream_line.get("message").map(|message| array_field(message, "content")).unwrap_or_default();
        match text_field(stream_line, "type") {
            "assistant" => {
                for content_block in content_blocks {
                    match text_field(content_block, "type") {
                        "text" => self.add_message(text_field(content_block, "text")),
                        "tool_use" => {
                            self.add_command_text(
                                content_block
                                    .get("input")
                                    .map(|tool_input| text_field(tool_input, "command"))
                                    .unwrap_or_default(),
                            );
                        }
                        _ => {}
                    }
                }
            }
            "user" => content_blocks
                .iter()
                .for_each(|content_block| self.add_command_text(&tool_result_text(content_block.get("content")))),
            "result" => {
                self.collect_denials(stream_line);
                let result_text = text_field(stream_line, "result");
                // The result usually repeats the last message; it must not be collected twice.
                if !result_text.trim().is_empty() && result_text != self.answer {
                    self.add_message(result_text);
                }
            }
            _ => {}
        }
    }
}

/// The text of a tool's result, which is either a string or a list of text blocks.
fn tool_result_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(plain_text)) => plain_text.clone(),
        Some(Value::Array(content_blocks)) => {
            content_blocks.iter().map(|content_block| text_field(content_block, "text")).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn append_line(collected_text: &mut String, added_text: &str) {
    if added_text.is_empty() {
        return;
    }
    if !collected_text.is_empty() && !collected_text.ends_with('\n') {
        collected_text.push('\n');
    }
    collected_text.push_str(added_text);
}
