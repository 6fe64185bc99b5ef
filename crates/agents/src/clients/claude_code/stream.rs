//! Decodes what the client prints: one JSON object per line.
//!
//! There may be several `result` lines, and the exit code may contradict the last one. An API error is a `success`
//! with `is_error`. What a model answered is never searched for errors.

use std::collections::BTreeMap;

use serde_json::Value;
use tribunal_core::{
    brief::Session,
    client::ClientSpec,
    fault::{Fault, FaultKind},
    limits::{Cost, Usage},
    text::cut,
};

use crate::{
    clients::shared::{by_the_talk, cut_off, denials, note, short, since},
    driver::output::{AgentEvent, Clock, Decoded, Finished},
    faults::{by_status, classify},
    json::{count, list, objects, text},
    limits::epoch_ms,
    sessions,
};

/// The model name under which the client inserts its own messages into the stream.
const SYNTHETIC: &str = "<synthetic>";

/// What was seen in the stream so far.
#[derive(Debug, Default)]
struct Seen {
    session: Option<String>,
    /// Whether a plan pays. Only a plan has its limits reported, and usage beyond them is paid by the token.
    plan: bool,
    /// What the model said since its last tool call.
    said: Vec<String>,
    /// The answer in the form that was requested.
    structured: Option<Value>,
    /// The last result of the task itself, and the last result of all: background agents have results of their own.
    result: Option<Value>,
    last: Option<Value>,
    /// The last reported retry, as long as no answer came after it.
    retry: Option<Value>,
    /// When the limit that was hit resets.
    resets_at: Option<u64>,
    denied: Vec<String>,
    /// MCP servers that did not start.
    failed: Vec<String>,
    /// The usage of each answer, by the answer's id.
    calls: BTreeMap<String, Call>,
}

/// One answer of the model.
#[derive(Debug, Default)]
struct Call {
    /// The usage that all its lines report. It was counted before the answer was written.
    told: Usage,
    /// The bytes of the answer that were seen.
    bytes: usize,
}

impl Call {
    fn usage(&self) -> Usage {
        // The reported output tokens are those at the start of the answer, so that the text itself is the better
        // measure.
        let seen = Usage::estimate(0, self.bytes).output_tokens;
        Usage { output_tokens: self.told.output_tokens.max(seen), ..self.told }
    }
}

pub(super) fn decode(client: &ClientSpec, finished: &Finished<'_>) -> Decoded {
    let mut seen = Seen::default();
    objects(finished.stdout).for_each(|line| seen.take(&line));
    let (usage, total) = seen.usage(finished);
    let text = seen.text();
    let mut fault = seen.fault(finished);
    // An empty answer is valid, unless the model was denied the tools it needed for a real one.
    if fault.is_none() && text.trim().is_empty() && seen.result.is_some() && !seen.denied.is_empty() {
        let denied = seen.denied.join(", ");
        fault = Some(Fault::new(
            FaultKind::Denied,
            format!("gave no answer, and was denied {}", cut(&denied, 200)),
        ));
    }
    let denied = denials(&seen.denied);
    let failed = seen.failed.iter().map(|server| format!("its server `{server}` did not start"));
    // A session that the client did not persist cannot be resumed.
    let kept = seen.session.clone().filter(|_| !client.fresh);
    Decoded {
        usage,
        session: kept.map(|id| Session { id, total, at_ms: finished.clock.now_ms }),
        fault,
        finished: seen.result.is_some(),
        // The model answered at least once, even if it was cut off later.
        active: !seen.calls.is_empty(),
        remarks: denied.into_iter().chain(failed).collect(),
        text,
    }
}

impl Seen {
    fn take(&mut self, line: &Value) {
        // Every line names the session. A forked session has a new id, so that the last one counts.
        if let Some(id) = sessions::id(line) {
            self.session = Some(id.to_string());
        }
        match text(line, "type") {
            "system" => self.system(line),
            "assistant" => self.assistant(line),
            "rate_limit_event" => {
                let info = line.get("rate_limit_info").unwrap_or(&Value::Null);
                // Usage beyond the plan is paid by the token, so that its cost is real.
                self.plan = info.get("isUsingOverage").and_then(Value::as_bool) != Some(true);
                if text(info, "status") == "rejected" {
                    self.resets_at = info.get("resetsAt").and_then(Value::as_u64);
                }
            }
            "result" => self.result(line),
            _ => {}
        }
    }

    fn system(&mut self, line: &Value) {
        match text(line, "subtype") {
            "init" => {
                // Any other status, such as pending, is no failure.
                let failed =
                    list(line, "mcp_servers").iter().filter(|server| text(server, "status") == "failed");
                self.failed = failed.map(|server| text(server, "name").to_string()).collect();
            }
            "api_retry" => self.retry = Some(line.clone()),
            _ => {}
        }
    }

    fn assistant(&mut self, line: &Value) {
        let message = line.get("message").unwrap_or(&Value::Null);
        if text(message, "model") == SYNTHETIC {
            return;
        }
        // The model answers again, so that the retry succeeded.
        self.retry = None;
        // Sub-agents answer to the main agent. Their text is not part of the answer.
        if line.get("parent_tool_use_id").is_some_and(|parent| !parent.is_null()) {
            return;
        }
        // One answer spreads over several lines with the same id, each with another content block.
        let call = self.calls.entry(text(message, "id").to_string()).or_default();
        call.told = message.get("usage").map(run).unwrap_or_default();
        for block in list(message, "content") {
            call.bytes += written(block);
            match text(block, "type") {
                "text" => self.said.push(text(block, "text").to_string()),
                // Text before a tool call is commentary on the work; the answer is what follows the last call.
                "tool_use" => self.said.clear(),
                _ => {}
            }
        }
    }

    fn result(&mut self, line: &Value) {
        for denial in list(line, "permission_denials") {
            let about = about(denial.get("tool_input").unwrap_or(&Value::Null));
            let denied = format!("{} {about}", text(denial, "tool_name")).trim().to_string();
            note(&mut self.denied, denied);
        }
        if let Some(structured) = line.get("structured_output").filter(|value| !value.is_null()) {
            self.structured = Some(structured.clone());
        }
        // A finished background task reports its own result, which must not replace the one of the main task.
        let aside = line.get("origin").is_some_and(|origin| text(origin, "kind") == "task-notification");
        if !aside || self.result.is_none() {
            self.result = Some(line.clone());
        }
        self.last = Some(line.clone());
    }

    /// The answer in the requested form, else everything that was said last. When it is asked for the form once more,
    /// a model may only reply that it has answered already.
    fn text(&self) -> String {
        if let Some(structured) = &self.structured {
            return structured.to_string();
        }
        let result =
            self.result.as_ref().filter(|result| !is_error(result)).map(|result| text(result, "result"));
        let mut said: Vec<&str> =
            self.said.iter().map(String::as_str).filter(|said| !said.trim().is_empty()).collect();
        if let Some(result) = result.filter(|result| !result.trim().is_empty() && !said.contains(result)) {
            said.push(result);
        }
        said.join("\n\n")
    }

    /// The usage of the task, and of the whole session.
    fn usage(&self, finished: &Finished<'_>) -> (Usage, Usage) {
        let notional = self.plan;
        let Some(last) = &self.last else {
            // The run was cut off: the input was reported, but the output was not and has to be estimated.
            let used = self.calls.values().fold(Usage::default(), |sum, call| sum.plus(call.usage()));
            let estimated = !self.calls.is_empty();
            let cost = if estimated { by_the_talk(&used, finished.talk) } else { None };
            let used = Usage { estimated, cost, notional: estimated && notional, ..used };
            return (used, finished.talk.session().map_or(used, |session| session.total.plus(used)));
        };
        let cost = last.get("total_cost_usd").and_then(Value::as_f64).map(Cost::of);
        // The sum by model is cumulative over the session; the plain `usage` below covers this run only.
        match last.get("modelUsage").and_then(Value::as_object).filter(|models| !models.is_empty()) {
            Some(models) => {
                let sum = models.values().fold(Usage::default(), |sum, model| sum.plus(of_model(model)));
                since(Usage { cost, notional, ..sum }, finished.talk)
            }
            None => {
                let own = last.get("usage").map(run).unwrap_or_default();
                let before = finished.talk.session().map(|session| session.total).unwrap_or_default();
                // Without any numbers, nothing is known about this run; the session keeps what it had.
                if own == Usage::default() {
                    return (own, before);
                }
                let spent = |Cost(now)| Cost(now.saturating_sub(before.cost.unwrap_or_default().0));
                let used = Usage { cost: cost.map(spent), notional, ..own };
                (used, before.plus(used))
            }
        }
    }

    fn fault(&self, finished: &Finished<'_>) -> Option<Fault> {
        match &self.result {
            Some(result) if is_error(result) => Some(self.failure(result, finished)),
            Some(_) => None,
            None => cut_off(finished, self.retry.as_ref().map(|retry| self.trying(retry, finished.clock))),
        }
    }

    /// The fault that an error result describes.
    fn failure(&self, result: &Value, finished: &Finished<'_>) -> Fault {
        let errors: Vec<&str> = list(result, "errors").iter().filter_map(Value::as_str).collect();
        let said = text(result, "result");
        let message = if said.is_empty() { errors.join("; ") } else { said.to_string() };
        let status =
            result.get("api_error_status").and_then(Value::as_u64).and_then(|status| status.try_into().ok());
        // The structured reasons are certain; the message is classified only where they say nothing.
        let kind = match (text(result, "subtype"), text(result, "terminal_reason")) {
            ("error_max_turns" | "error_max_budget_usd", _) => Some(FaultKind::Curtailed),
            (_, reason) if reason.starts_with("aborted_") => Some(FaultKind::Killed { signal: 2 }),
            (_, "prompt_too_long") => Some(FaultKind::Overflow),
            _ if text(result, "stop_reason") == "refusal" => Some(FaultKind::Refused),
            _ => classify(&message, status, finished.clock),
        };
        let kind = kind.unwrap_or(match finished.code {
            Some(code) if code != 0 => FaultKind::Exited { code },
            _ => FaultKind::Malformed,
        });
        let detail = if message.is_empty() {
            "reported an error without a word on it".to_string()
        } else {
            short(&message)
        };
        Fault::new(self.timed(kind, finished.clock), detail)
    }

    /// The fault for which the client was retrying when it was ended.
    fn trying(&self, retry: &Value, clock: &Clock) -> Fault {
        let (error, status) = (text(retry, "error"), retry.get("error_status").and_then(Value::as_u64));
        let kind = match error {
            "authentication_failed" => FaultKind::NotSignedIn,
            "rate_limit" => FaultKind::Limited { until_ms: None },
            "overloaded" | "server_error" => FaultKind::Overloaded,
            _ => {
                status.and_then(|status| by_status(status.try_into().ok()?)).unwrap_or(FaultKind::Connection)
            }
        };
        Fault::new(self.timed(kind, clock), format!("tried again and again: {}", why(retry)))
    }

    /// Adds the reset time. The number in the stream is more reliable than the message.
    fn timed(&self, kind: FaultKind, clock: &Clock) -> FaultKind {
        match (kind, self.resets_at.and_then(|at| epoch_ms(at, clock))) {
            (FaultKind::Limited { .. }, Some(at)) => FaultKind::Limited { until_ms: Some(at) },
            (kind, _) => kind,
        }
    }
}

/// Whether a result is an error. A line without `is_error` is judged by its subtype.
fn is_error(result: &Value) -> bool {
    result.get("is_error").and_then(Value::as_bool).unwrap_or_else(|| text(result, "subtype") != "success")
}

fn why(retry: &Value) -> String {
    let error = match text(retry, "error") {
        "" | "unknown" => "no connection",
        error => error,
    };
    match retry.get("error_status").and_then(Value::as_u64) {
        Some(status) => format!("{error} ({status})"),
        None => error.to_string(),
    }
}

/// The tokens of one run or one answer.
fn run(usage: &Value) -> Usage {
    Usage {
        // Tokens that are written to the cache count as input.
        input_tokens: count(usage, "input_tokens")
            .saturating_add(count(usage, "cache_creation_input_tokens")),
        output_tokens: count(usage, "output_tokens"),
        cached_tokens: count(usage, "cache_read_input_tokens"),
        ..Usage::default()
    }
}

/// All tokens that one model was used for.
fn of_model(usage: &Value) -> Usage {
    Usage {
        input_tokens: count(usage, "inputTokens").saturating_add(count(usage, "cacheCreationInputTokens")),
        output_tokens: count(usage, "outputTokens"),
        cached_tokens: count(usage, "cacheReadInputTokens"),
        ..Usage::default()
    }
}

/// How many bytes of a block the model wrote.
fn written(block: &Value) -> usize {
    match text(block, "type") {
        "text" => text(block, "text").len(),
        "thinking" => text(block, "thinking").len(),
        "tool_use" => {
            let input = block.get("input").map(|input| input.to_string().len());
            text(block, "name").len() + input.unwrap_or_default()
        }
        _ => 0,
    }
}

/// What a tool is used on, in one line.
fn about(input: &Value) -> String {
    let names = ["file_path", "notebook_path", "command", "pattern", "path", "url", "query", "description"];
    let found =
        names.into_iter().map(|name| text(input, name)).find(|about| !about.is_empty()).unwrap_or_default();
    cut(found.lines().next().unwrap_or_default(), 120)
}

/// The events of one line.
pub(super) fn events(line: &str) -> Vec<AgentEvent> {
    let Some(line) = objects(line).next() else { return Vec::new() };
    match (text(&line, "type"), text(&line, "subtype")) {
        ("system", "api_retry") => vec![AgentEvent::Retrying { why: why(&line) }],
        ("system", "permission_denied") => {
            vec![AgentEvent::Denied { tool: text(&line, "tool_name").to_string() }]
        }
        ("assistant", _) => {
            let message = line.get("message").unwrap_or(&Value::Null);
            if text(message, "model") == SYNTHETIC {
                return Vec::new();
            }
            list(message, "content").iter().filter_map(told).collect()
        }
        ("user", _) => {
            // Only edits have a structured patch; other tool results are not changes.
            let changed =
                line.get("tool_use_result").filter(|result| result.get("structuredPatch").is_some());
            let path = changed.map(|result| text(result, "filePath")).filter(|path| !path.is_empty());
            path.map(|path| AgentEvent::Changed { path: path.to_string() }).into_iter().collect()
        }
        ("result", _) if is_error(&line) => {
            let said = text(&line, "result");
            let errors = list(&line, "errors").iter().filter_map(Value::as_str).next().unwrap_or_default();
            vec![AgentEvent::Failed { why: short(if said.is_empty() { errors } else { said }) }]
        }
        _ => Vec::new(),
    }
}

fn told(block: &Value) -> Option<AgentEvent> {
    match text(block, "type") {
        "text" => Some(AgentEvent::Text { text: text(block, "text").to_string() }),
        // The answer itself is delivered as a tool call.
        "tool_use" if text(block, "name") == "StructuredOutput" => None,
        "tool_use" => {
            let about = about(block.get("input").unwrap_or(&Value::Null));
            Some(AgentEvent::Tool { name: text(block, "name").to_string(), about })
        }
        _ => None,
    }
}
