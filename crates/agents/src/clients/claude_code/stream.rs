//! Decodes what the client prints: one JSON object per line.
//!
//! There may be several `result` lines, and the exit code may contradict the last one. An API error is a `success`
//! with `is_error`. What a model answered is never searched for errors.

use std::collections::BTreeMap;

use serde_json::Value;
use tribunal_engine::{
    fault::{Fault, FaultKind},
    limits::{AgentUsage, Cost},
    text::truncate_chars,
};
use tribunal_workflows::tasks::{brief::AgentSession, client::ClientSpec};

use crate::{
    clients::driver_support::{
        denial_remarks, estimate_cost, fault_without_result, first_message_line, push_unique, usage_since_session,
    },
    driver::process_output::{AgentEvent, DecodedOutput, FinishedProcess, LocalClock},
    faults::{classify_fault, fault_from_status},
    json_fields::{array_field, count_field, parse_json_lines, text_field},
    reset_times::epoch_to_ms,
    session_ids,
};

/// The model name under which the client inserts its own messages into the stream.
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// What was seen in the stream so far.
#[derive(Debug, Default)]
struct ClaudeStreamState {
    session_id: Option<String>,
    /// Whether a plan pays. Only a plan has its limits reported, and usage beyond them is paid by the token.
    is_plan_paid: bool,
    /// What the model said since its last tool call.
    answer_texts: Vec<String>,
    /// The answer in the form that was requested.
    structured_answer: Option<Value>,
    /// The last result of the task itself, and the last result of all: background agents have results of their own.
    task_result: Option<Value>,
    last_result: Option<Value>,
    /// The last reported retry, as long as no answer came after it.
    pending_retry: Option<Value>,
    /// When the limit that was hit resets.
    resets_at: Option<u64>,
    denied_actions: Vec<String>,
    /// MCP servers that did not start.
    failed_servers: Vec<String>,
    /// The usage of each answer, by the answer's id.
    model_calls: BTreeMap<String, ModelCall>,
}

/// One answer of the model.
#[derive(Debug, Default)]
struct ModelCall {
    /// The usage that all its lines report. It was counted before the answer was written.
    reported_usage: AgentUsage,
    /// The bytes of the answer that were seen.
    written_bytes: usize,
}

impl ModelCall {
    fn estimate_usage(&self) -> AgentUsage {
        // The reported output tokens are those at the start of the answer, so the text itself is the better measure.
        let seen_tokens = AgentUsage::estimate_from_bytes(0, self.written_bytes).output_tokens;
        AgentUsage { output_tokens: self.reported_usage.output_tokens.max(seen_tokens), ..self.reported_usage }
    }
}

pub(super) fn decode_output(client_spec: &ClientSpec, finished_process: &FinishedProcess<'_>) -> DecodedOutput {
    let mut stream_state = ClaudeStreamState::default();
    parse_json_lines(finished_process.stdout).for_each(|stream_line| stream_state.read_line(&stream_line));
    let (task_usage, session_usage) = stream_state.compute_usage(finished_process);
    let answer = stream_state.answer_text();
    let mut task_fault = stream_state.find_fault(finished_process);
    // An empty answer is valid, unless the model was denied a tool that it may have needed for a real one.
    if task_fault.is_none()
        && answer.trim().is_empty()
        && stream_state.task_result.is_some()
        && !stream_state.denied_actions.is_empty()
    {
        let denied_text = stream_state.denied_actions.join(", ");
        task_fault = Some(Fault::new(
            FaultKind::Denied,
            format!("gave no answer and was denied permission for {}", truncate_chars(&denied_text, 200)),
        ));
    }
    let denied_remarks = denial_remarks(&stream_state.denied_actions);
    let failed_remarks =
        stream_state.failed_servers.iter().map(|server_name| format!("MCP server `{server_name}` did not start"));
    // A session that the client did not persist cannot be resumed.
    let kept_session = stream_state.session_id.clone().filter(|_| !client_spec.fresh);
    DecodedOutput {
        usage: task_usage,
        session: kept_session.map(|session_id| AgentSession {
            id: session_id,
            total: session_usage,
            at_ms: finished_process.clock.now_ms,
        }),
        fault: task_fault,
        is_finished: stream_state.task_result.is_some(),
        // The model answered at least once, even if it was cut off later.
        did_work: !stream_state.model_calls.is_empty(),
        remarks: denied_remarks.into_iter().chain(failed_remarks).collect(),
        denied: stream_state.denied_actions.clone(),
        answer_text: answer,
    }
}

impl ClaudeStreamState {
    fn read_line(&mut self, stream_line: &Value) {
        // A forked session has a new id, so the last one counts.
        if let Some(session_id) = session_ids::find_session_id(stream_line) {
            self.session_id = Some(session_id.to_string());
        }
        match text_field(stream_line, "type") {
            "system" => self.read_system_line(stream_line),
            "assistant" => self.read_assistant_line(stream_line),
            "rate_limit_event" => {
                let limit_info = stream_line.get("rate_limit_info").unwrap_or(&Value::Null);
                // Usage beyond the plan is paid by the token, so its cost is real.
                self.is_plan_paid = limit_info.get("isUsingOverage").and_then(Value::as_bool) != Some(true);
                if text_field(limit_info, "status") == "rejected" {
                    self.resets_at = limit_info.get("resetsAt").and_then(Value::as_u64);
                }
            }
            "result" => self.read_result_line(stream_line),
            _ => {}
        }
    }

    fn read_system_line(&mut self, stream_line: &Value) {
        match text_field(stream_line, "subtype") {
            "init" => {
                // Any other status, such as pending, is no failure.
                let failed_entries = array_field(stream_line, "mcp_servers")
                    .iter()
                    .filter(|server_entry| text_field(server_entry, "status") == "failed");
                self.failed_servers =
                    failed_entries.map(|server_entry| text_field(server_entry, "name").to_string()).collect();
            }
            "api_retry" => self.pending_retry = Some(stream_line.clone()),
            _ => {}
        }
    }

    fn read_assistant_line(&mut self, stream_line: &Value) {
        let message = stream_line.get("message").unwrap_or(&Value::Null);
        if text_field(message, "model") == SYNTHETIC_MODEL {
            return;
        }
        // The model answers again, so the retry succeeded.
        self.pending_retry = None;
        // Sub-agents answer to the main agent. Their text is not part of the answer.
        if stream_line.get("parent_tool_use_id").is_some_and(|parent_id| !parent_id.is_null()) {
            return;
        }
        // One answer spreads over several lines with the same id, each with another content block.
        let model_call = self.model_calls.entry(text_field(message, "id").to_string()).or_default();
        model_call.reported_usage = message.get("usage").map(parse_usage).unwrap_or_default();
        for content_block in array_field(message, "content") {
            model_call.written_bytes += count_written_bytes(content_block);
            match text_field(content_block, "type") {
                "text" => self.answer_texts.push(text_field(content_block, "text").to_string()),
                // Text before a tool call is commentary on the work; the answer is what follows the last call.
                "tool_use" => self.answer_texts.clear(),
                _ => {}
            }
        }
    }

    fn read_result_line(&mut self, stream_line: &Value) {
        for denial in array_field(stream_line, "permission_denials") {
            let denied_target = describe_target(denial.get("tool_input").unwrap_or(&Value::Null));
            let denied_action = format!("{} {denied_target}", text_field(denial, "tool_name")).trim().to_string();
            push_unique(&mut self.denied_actions, denied_action);
        }
        if let Some(structured_output) =
            stream_line.get("structured_output").filter(|output_value| !output_value.is_null())
        {
            self.structured_answer = Some(structured_output.clone());
        }
        // A finished background task reports its own result, which must not replace the one of the main task.
        let is_background = stream_line
            .get("origin")
            .is_some_and(|result_origin| text_field(result_origin, "kind") == "task-notification");
        if !is_background || self.task_result.is_none() {
            self.task_result = Some(stream_line.clone());
        }
        self.last_result = Some(stream_line.clone());
    }

    /// The answer in the requested form, else everything that the model said since its last tool call. The last message
    /// alone is not enough: asked for the form once more, a model may reply only that it has answered already.
    fn answer_text(&self) -> String {
        if let Some(structured_value) = &self.structured_answer {
            return structured_value.to_string();
        }
        let result_text = self
            .task_result
            .as_ref()
            .filter(|result_line| !is_error_result(result_line))
            .map(|result_line| text_field(result_line, "result"));
        let mut answer_parts: Vec<&str> =
            self.answer_texts.iter().map(String::as_str).filter(|answer_part| !answer_part.trim().is_empty()).collect();
        if let Some(result_text) =
            result_text.filter(|result_text| !result_text.trim().is_empty() && !answer_parts.contains(result_text))
        {
            answer_parts.push(result_text);
        }
        answer_parts.join("\n\n")
    }

    /// The usage of the task, and of the whole session.
    fn compute_usage(&self, finished_process: &FinishedProcess<'_>) -> (AgentUsage, AgentUsage) {
        let is_notional = self.is_plan_paid;
        let Some(last_line) = &self.last_result else {
            // The run was cut off: the input was reported, but the output was not and has to be estimated.
            let estimated_usage = self.model_calls.values().fold(AgentUsage::default(), |usage_sum, model_call| {
                usage_sum.combined_with(model_call.estimate_usage())
            });
            let is_estimated = !self.model_calls.is_empty();
            let estimated_cost =
                if is_estimated { estimate_cost(&estimated_usage, finished_process.session_mode) } else { None };
            let task_usage = AgentUsage {
                estimated: is_estimated,
                cost: estimated_cost,
                notional: is_estimated && is_notional,
                ..estimated_usage
            };
            return (
                task_usage,
                finished_process
                    .session_mode
                    .session()
                    .map_or(task_usage, |session| session.total.combined_with(task_usage)),
            );
        };
        let reported_cost = last_line.get("total_cost_usd").and_then(Value::as_f64).map(Cost::from_amount);
        // The sum by model is cumulative over the session; the plain `usage` below covers this run only.
        match last_line.get("modelUsage").and_then(Value::as_object).filter(|model_usages| !model_usages.is_empty()) {
            Some(model_usages) => {
                let usage_sum = model_usages.values().fold(AgentUsage::default(), |usage_sum, model_usage| {
                    usage_sum.combined_with(parse_model_usage(model_usage))
                });
                usage_since_session(
                    AgentUsage { cost: reported_cost, notional: is_notional, ..usage_sum },
                    finished_process.session_mode,
                )
            }
            None => {
                let own_usage = last_line.get("usage").map(parse_usage).unwrap_or_default();
                let previous_usage =
                    finished_process.session_mode.session().map(|session| session.total).unwrap_or_default();
                // Without any numbers, nothing is known about this run; the session keeps what it had.
                if own_usage == AgentUsage::default() {
                    return (own_usage, previous_usage);
                }
                let cost_difference =
                    |Cost(total_cost)| Cost(total_cost.saturating_sub(previous_usage.cost.unwrap_or_default().0));
                let task_usage =
                    AgentUsage { cost: reported_cost.map(cost_difference), notional: is_notional, ..own_usage };
                (task_usage, previous_usage.combined_with(task_usage))
            }
        }
    }

    fn find_fault(&self, finished_process: &FinishedProcess<'_>) -> Option<Fault> {
        match &self.task_result {
            Some(result_line) if is_error_result(result_line) => {
                Some(self.fault_from_result(result_line, finished_process))
            }
            Some(_) => None,
            None => fault_without_result(
                finished_process,
                self.pending_retry.as_ref().map(|retry_line| self.fault_from_retry(retry_line, finished_process.clock)),
            ),
        }
    }

    /// The fault that an error result describes.
    fn fault_from_result(&self, result_line: &Value, finished_process: &FinishedProcess<'_>) -> Fault {
        let error_texts: Vec<&str> = array_field(result_line, "errors").iter().filter_map(Value::as_str).collect();
        let result_text = text_field(result_line, "result");
        let message = if result_text.is_empty() { error_texts.join("; ") } else { result_text.to_string() };
        let error_status = result_line
            .get("api_error_status")
            .and_then(Value::as_u64)
            .and_then(|error_status| error_status.try_into().ok());
        // The structured reasons are certain; the message is classified only where they say nothing.
        let fault_kind = match (text_field(result_line, "subtype"), text_field(result_line, "terminal_reason")) {
            ("error_max_turns" | "error_max_budget_usd", _) => Some(FaultKind::Curtailed),
            (_, terminal_reason) if terminal_reason.starts_with("aborted_") => Some(FaultKind::Killed { signal: 2 }),
            (_, "prompt_too_long") => Some(FaultKind::Overflow),
            _ if text_field(result_line, "stop_reason") == "refusal" => Some(FaultKind::Refused),
            _ => classify_fault(&message, error_status, finished_process.clock),
        };
        let fault_kind = fault_kind.unwrap_or(match finished_process.exit_code {
            Some(exit_code) if exit_code != 0 => FaultKind::Exited { code: exit_code },
            _ => FaultKind::Malformed,
        });
        let fault_detail = if message.is_empty() {
            "reported an error without a message".to_string()
        } else {
            first_message_line(&message)
        };
        Fault::new(self.with_reset_time(fault_kind, finished_process.clock), fault_detail)
    }

    /// The fault for which the client was retrying when it was ended.
    fn fault_from_retry(&self, retry_line: &Value, clock: &LocalClock) -> Fault {
        let (error_name, error_status) =
            (text_field(retry_line, "error"), retry_line.get("error_status").and_then(Value::as_u64));
        let fault_kind = match error_name {
            "authentication_failed" => FaultKind::NotSignedIn,
            "rate_limit" => FaultKind::Limited { until_ms: None },
            "overloaded" | "server_error" => FaultKind::Overloaded,
            _ => error_status
                .and_then(|error_status| fault_from_status(error_status.try_into().ok()?))
                .unwrap_or(FaultKind::Connection),
        };
        Fault::new(
            self.with_reset_time(fault_kind, clock),
            format!("kept retrying, last error: {}", retry_reason(retry_line)),
        )
    }

    /// Adds the reset time. The number in the stream is more reliable than the message.
    fn with_reset_time(&self, fault_kind: FaultKind, clock: &LocalClock) -> FaultKind {
        match (fault_kind, self.resets_at.and_then(|epoch| epoch_to_ms(epoch, clock))) {
            (FaultKind::Limited { .. }, Some(reset_ms)) => FaultKind::Limited { until_ms: Some(reset_ms) },
            (fault_kind, _) => fault_kind,
        }
    }
}

/// Whether a result is an error. A line without `is_error` is judged by its subtype.
fn is_error_result(result_line: &Value) -> bool {
    result_line
        .get("is_error")
        .and_then(Value::as_bool)
        .unwrap_or_else(|| text_field(result_line, "subtype") != "success")
}

fn retry_reason(retry_line: &Value) -> String {
    let error_name = match text_field(retry_line, "error") {
        "" | "unknown" => "no connection",
        error_name => error_name,
    };
    match retry_line.get("error_status").and_then(Value::as_u64) {
        Some(error_status) => format!("{error_name} ({error_status})"),
        None => error_name.to_string(),
    }
}

/// The tokens of one run or one answer.
fn parse_usage(usage_object: &Value) -> AgentUsage {
    AgentUsage {
        // Tokens that are written to the cache count as input.
        input_tokens: count_field(usage_object, "input_tokens")
            .saturating_add(count_field(usage_object, "cache_creation_input_tokens")),
        output_tokens: count_field(usage_object, "output_tokens"),
        cached_tokens: count_field(usage_object, "cache_read_input_tokens"),
        ..AgentUsage::default()
    }
}

/// All tokens that one model was used for.
fn parse_model_usage(usage_object: &Value) -> AgentUsage {
    AgentUsage {
        input_tokens: count_field(usage_object, "inputTokens")
            .saturating_add(count_field(usage_object, "cacheCreationInputTokens")),
        output_tokens: count_field(usage_object, "outputTokens"),
        cached_tokens: count_field(usage_object, "cacheReadInputTokens"),
        ..AgentUsage::default()
    }
}

/// How many bytes of a block the model wrote.
fn count_written_bytes(content_block: &Value) -> usize {
    match text_field(content_block, "type") {
        "text" => text_field(content_block, "text").len(),
        "thinking" => text_field(content_block, "thinking").len(),
        "tool_use" => {
            let input_length = content_block.get("input").map(|tool_input| tool_input.to_string().len());
            text_field(content_block, "name").len() + input_length.unwrap_or_default()
        }
        _ => 0,
    }
}

/// What a tool is used on, in one line.
fn describe_target(tool_input: &Value) -> String {
    let target_fields = ["file_path", "notebook_path", "command", "pattern", "path", "url", "query", "description"];
    let target_text = target_fields
        .into_iter()
        .map(|field_name| text_field(tool_input, field_name))
        .find(|field_text| !field_text.is_empty())
        .unwrap_or_default();
    truncate_chars(target_text.lines().next().unwrap_or_default(), 120)
}

/// The events of one line.
pub(super) fn read_events(stream_line: &str) -> Vec<AgentEvent> {
    let Some(event_line) = parse_json_lines(stream_line).next() else { return Vec::new() };
    match (text_field(&event_line, "type"), text_field(&event_line, "subtype")) {
        ("system", "api_retry") => vec![AgentEvent::Retrying { reason: retry_reason(&event_line) }],
        ("system", "permission_denied") => {
            vec![AgentEvent::ToolDenied { tool_name: text_field(&event_line, "tool_name").to_string() }]
        }
        ("assistant", _) => {
            let message = event_line.get("message").unwrap_or(&Value::Null);
            if text_field(message, "model") == SYNTHETIC_MODEL {
                return Vec::new();
            }
            array_field(message, "content").iter().filter_map(event_from_block).collect()
        }
        ("user", _) => {
            // Only edits have a structured patch; other tool results are not changes.
            let file_result =
                event_line.get("tool_use_result").filter(|tool_result| tool_result.get("structuredPatch").is_some());
            let file_path = file_result
                .map(|tool_result| text_field(tool_result, "filePath"))
                .filter(|file_path| !file_path.is_empty());
            file_path
                .map(|file_path| AgentEvent::FileChanged { file_path: file_path.to_string() })
                .into_iter()
                .collect()
        }
        ("result", _) if is_error_result(&event_line) => {
            let result_text = text_field(&event_line, "result");
            let first_error =
                array_field(&event_line, "errors").iter().filter_map(Value::as_str).next().unwrap_or_default();
            vec![AgentEvent::Failed {
                reason: first_message_line(if result_text.is_empty() { first_error } else { result_text }),
            }]
        }
        _ => Vec::new(),
    }
}

fn event_from_block(content_block: &Value) -> Option<AgentEvent> {
    match text_field(content_block, "type") {
        "text" => Some(AgentEvent::Text { text: text_field(content_block, "text").to_string() }),
        // The answer itself is delivered as a tool call.
        "tool_use" if text_field(content_block, "name") == "StructuredOutput" => None,
        "tool_use" => {
            let tool_target = describe_target(content_block.get("input").unwrap_or(&Value::Null));
            Some(AgentEvent::ToolUsed { tool_name: text_field(content_block, "name").to_string(), target: tool_target })
        }
        _ => None,
    }
}
