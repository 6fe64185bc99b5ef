//! Decodes what the client prints: one JSON object per line.
//!
//! Errors are messages only, without an HTTP status of their own. An item of the type `error` is a warning, and a
//! line of the type `error` that announces a reconnection is no failure either. What a model answered is never
//! searched for errors.

use serde_json::Value;
use tribunal_engine::{
    fault::{Fault, FaultKind},
    limits::AgentUsage,
    text::truncate_chars,
};
use tribunal_workflows::tasks::{brief::AgentSession, client::ClientSpec};

use crate::{
    clients::driver_support::{
        denial_remarks, fault_without_result, first_message_line, push_unique, usage_since_session,
    },
    driver::process_output::{AgentEvent, DecodedOutput, FinishedProcess, LocalClock},
    faults::classify_fault,
    json_fields::{array_field, count_field, parse_json_lines, text_field},
    session_ids,
};

const RECONNECTING_PREFIX: &str = "Reconnecting...";

/// What was seen in the stream so far.
#[derive(Debug, Default)]
struct CodexStreamState {
    session_id: Option<String>,
    /// The last message of the agent.
    last_answer: String,
    counted_usage: Option<AgentUsage>,
    /// How the turn ended: successfully, or with an error message.
    turn_end: Option<Option<String>>,
    /// The last error that has not ended the turn yet.
    pending_error: Option<String>,
    /// The error for which it retries, as long as nothing came after it.
    retry_reason: Option<String>,
    denied_actions: Vec<String>,
    did_work: bool,
}

pub(super) fn decode_output(client_spec: &ClientSpec, finished_process: &FinishedProcess<'_>) -> DecodedOutput {
    let mut stream_state = CodexStreamState::default();
    parse_json_lines(finished_process.stdout).for_each(|stream_line| stream_state.read_line(&stream_line));
    // A run without counts used nothing that is known; its session keeps its sum.
    let previous_usage = finished_process.session_mode.session().map(|session| session.total).unwrap_or_default();
    let (task_usage, session_usage) =
        stream_state.counted_usage.map_or((AgentUsage::default(), previous_usage), |counted| {
            usage_since_session(counted, finished_process.session_mode)
        });
    let mut task_fault = stream_state.find_fault(finished_process);
    // An empty answer is valid, unless the agent was denied something that it may have needed for a real one.
    if task_fault.is_none()
        && stream_state.turn_end.is_some()
        && stream_state.last_answer.trim().is_empty()
        && !stream_state.denied_actions.is_empty()
    {
        let denied_text = stream_state.denied_actions.join(", ");
        task_fault = Some(Fault::new(
            FaultKind::Denied,
            format!("gave no answer and was denied permission for {}", truncate_chars(&denied_text, 200)),
        ));
    }
    // A session that the client did not persist cannot be resumed.
    let kept_session = stream_state.session_id.filter(|_| !client_spec.fresh);
    DecodedOutput {
        usage: task_usage,
        session: kept_session.map(|session_id| AgentSession {
            id: session_id,
            total: session_usage,
            at_ms: finished_process.clock.now_ms,
        }),
        fault: task_fault,
        is_finished: stream_state.turn_end.is_some(),
        did_work: stream_state.did_work,
        remarks: denial_remarks(&stream_state.denied_actions),
        denied: stream_state.denied_actions,
        answer_text: stream_state.last_answer,
    }
}

impl CodexStreamState {
    fn read_line(&mut self, stream_line: &Value) {
        if let Some(session_id) = session_ids::find_session_id(stream_line) {
            self.session_id = Some(session_id.to_string());
        }
        match text_field(stream_line, "type") {
            "item.completed" => self.read_item(stream_line.get("item").unwrap_or(&Value::Null)),
            "item.started" => self.record_activity(),
            // A completed turn proves work even if no item was reported.
            "turn.completed" => {
                self.counted_usage = stream_line.get("usage").map(parse_usage);
                self.turn_end = Some(None);
                self.did_work = true;
            }
            "turn.failed" => {
                let turn_error = stream_line.get("error").unwrap_or(&Value::Null);
                self.turn_end = Some(Some(text_field(turn_error, "message").to_string()));
            }
            "error" => match parse_retry_reason(stream_line) {
                Some(reason) => self.retry_reason = Some(reason.to_string()),
                None => self.pending_error = Some(text_field(stream_line, "message").to_string()),
            },
            _ => {}
        }
    }

    fn read_item(&mut self, completed_item: &Value) {
        match text_field(completed_item, "type") {
            // An item of this type is only a warning.
            "error" => return,
            "agent_message" if !text_field(completed_item, "text").trim().is_empty() => {
                self.last_answer = text_field(completed_item, "text").to_string()
            }
            _ => {}
        }
        self.record_activity();
        if let Some(denied_text) = denied_action(completed_item) {
            push_unique(&mut self.denied_actions, denied_text);
        }
    }

    /// Records that the model answers, which means that earlier errors and retries are over.
    fn record_activity(&mut self) {
        self.did_work = true;
        self.retry_reason = None;
        self.pending_error = None;
    }

    fn find_fault(&self, finished_process: &FinishedProcess<'_>) -> Option<Fault> {
        match (&self.turn_end, &self.pending_error) {
            (Some(None), _) => None,
            (Some(Some(error_message)), _) => Some(fault_from_error(error_message, finished_process)),
            // An error line without a failed turn counts only if the process failed, too.
            (None, Some(error_message)) if finished_process.exit_code.is_some_and(|code| code != 0) => {
                Some(fault_from_error(error_message, finished_process))
            }
            (None, _) => fault_without_result(
                finished_process,
                self.retry_reason.as_deref().map(|reason| fault_from_retry(reason, finished_process.clock)),
            ),
        }
    }
}

/// The fault that an error message describes.
fn fault_from_error(error_message: &str, finished_process: &FinishedProcess<'_>) -> Fault {
    let (error_text, rejected_kind) = unpack_error(error_message);
    // The provider's JSON contains more recognizable phrases than the sentence for the user.
    let fault_kind =
        classify_fault(error_message, None, finished_process.clock).or(rejected_kind).unwrap_or(match finished_process
            .exit_code
        {
            Some(exit_code) if exit_code != 0 => FaultKind::Exited { code: exit_code },
            _ => FaultKind::Malformed,
        });
    let fault_detail = if error_text.is_empty() {
        "failed without an error message".to_string()
    } else {
        first_message_line(&error_text)
    };
    Fault::new(fault_kind, fault_detail)
}

/// The fault for which the client was retrying.
fn fault_from_retry(reason: &str, clock: &LocalClock) -> Fault {
    let fault_kind = classify_fault(reason, None, clock).unwrap_or(FaultKind::Connection);
    Fault::new(fault_kind, format!("kept retrying, last error: {}", first_message_line(reason)))
}

/// Unpacks a rejected request, which is passed on as the provider's JSON.
fn unpack_error(error_message: &str) -> (String, Option<FaultKind>) {
    let error_body: Option<Value> = serde_json::from_str(error_message).ok();
    match error_body.as_ref().and_then(|error_body| error_body.get("error")) {
        Some(error_object) => {
            let is_rejected = text_field(error_object, "type") == "invalid_request_error";
            (
                text_field(error_object, "message").to_string(),
                is_rejected.then_some(FaultKind::Rejected { status: 400 }),
            )
        }
        None => (error_message.to_string(), None),
    }
}

/// The reason in `Reconnecting... 1/5 (reason)`.
fn parse_retry_reason(stream_line: &Value) -> Option<&str> {
    let after_prefix = text_field(stream_line, "message").strip_prefix(RECONNECTING_PREFIX)?;
    let reason = after_prefix
        .split_once('(')
        .map_or(after_prefix, |(_, after_bracket)| after_bracket.trim_end().trim_end_matches(')'));
    Some(reason.trim())
}

/// What the client was denied. A command that the sandbox stops is not reported here; only the model sees that.
fn denied_action(completed_item: &Value) -> Option<String> {
    match text_field(completed_item, "type") {
        "mcp_tool_call" => {
            let error_text =
                completed_item.get("error").map(|error_object| text_field(error_object, "message")).unwrap_or_default();
            let tool_name = format!("{}.{}", text_field(completed_item, "server"), text_field(completed_item, "tool"));
            error_text.contains("approval").then_some(tool_name)
        }
        _ if text_field(completed_item, "status") == "declined" => Some(describe_command(completed_item)),
        _ => None,
    }
}

/// Parses the usage. The client counts cached tokens as input, too.
fn parse_usage(usage_object: &Value) -> AgentUsage {
    let cached_tokens = count_field(usage_object, "cached_input_tokens");
    AgentUsage {
        input_tokens: count_field(usage_object, "input_tokens").saturating_sub(cached_tokens),
        output_tokens: count_field(usage_object, "output_tokens"),
        cached_tokens,
        ..AgentUsage::default()
    }
}

/// The command without the shell around it, in one line.
fn describe_command(command_item: &Value) -> String {
    let command_line = text_field(command_item, "command");
    let inner_command = command_line
        .split_once(" -lc ")
        .map_or(command_line, |(_, quoted_command)| quoted_command.trim_matches(['\'', '"']));
    truncate_chars(inner_command.lines().next().unwrap_or_default(), 120)
}

/// The events of one line.
pub(super) fn read_events(stream_line: &str) -> Vec<AgentEvent> {
    let Some(event_line) = parse_json_lines(stream_line).next() else { return Vec::new() };
    let event_item = event_line.get("item").unwrap_or(&Value::Null);
    match (text_field(&event_line, "type"), text_field(event_item, "type")) {
        ("item.started", "command_execution") => {
            vec![AgentEvent::ToolUsed { tool_name: "running".to_string(), target: describe_command(event_item) }]
        }
        ("item.started", "mcp_tool_call") => {
            let tool_name = format!("{}.{}", text_field(event_item, "server"), text_field(event_item, "tool"));
            vec![AgentEvent::ToolUsed { tool_name, target: String::new() }]
        }
        ("item.completed", "agent_message") => {
            vec![AgentEvent::Text { text: text_field(event_item, "text").to_string() }]
        }
        ("item.completed", "file_change") if text_field(event_item, "status") == "completed" => {
            let change_event = |file_change: &Value| AgentEvent::FileChanged {
                file_path: text_field(file_change, "path").to_string(),
            };
            array_field(event_item, "changes").iter().map(change_event).collect()
        }
        ("item.completed", _) => denied_action(event_item)
            .map(|denied_tool| AgentEvent::ToolDenied { tool_name: denied_tool })
            .into_iter()
            .collect(),
        ("error", _) => parse_retry_reason(&event_line)
            .map(|reason| AgentEvent::Retrying { reason: first_message_line(reason) })
            .into_iter()
            .collect(),
        ("turn.failed", _) => {
            let error_message =
                event_line.get("error").map(|turn_error| text_field(turn_error, "message")).unwrap_or_default();
            vec![AgentEvent::Failed { reason: first_message_line(&unpack_error(error_message).0) }]
        }
        _ => Vec::new(),
    }
}
