//! Decodes what the client prints: one JSON object per line.
//!
//! Errors are messages only, without an HTTP status of their own. An item of the type `error` is a warning, and a
//! line of the type `error` that announces a reconnection is no failure either. What a model answered is never
//! searched for errors.

use serde_json::Value;
use tribunal_core::{
    brief::Session,
    client::ClientSpec,
    fault::{Fault, FaultKind},
    limits::Usage,
    text::cut,
};

use crate::{
    clients::shared::{cut_off, denials, note, short, since},
    driver::output::{AgentEvent, Clock, Decoded, Finished},
    faults::classify,
    json::{count, list, objects, text},
    sessions,
};

const RECONNECTING: &str = "Reconnecting...";

/// What was seen in the stream so far.
#[derive(Debug, Default)]
struct Seen {
    session: Option<String>,
    /// The last message of the agent.
    answer: String,
    counted: Option<Usage>,
    /// How the turn ended: successfully, or with an error message.
    end: Option<Option<String>>,
    /// The last error that has not ended the turn yet.
    error: Option<String>,
    /// The error for which it retries, as long as nothing came after it.
    trying: Option<String>,
    denied: Vec<String>,
    active: bool,
}

pub(super) fn decode(client: &ClientSpec, finished: &Finished<'_>) -> Decoded {
    let mut seen = Seen::default();
    objects(finished.stdout).for_each(|line| seen.take(&line));
    // A run without counts used nothing that is known; its session keeps its sum.
    let before = finished.talk.session().map(|session| session.total).unwrap_or_default();
    let (usage, total) =
        seen.counted.map_or((Usage::default(), before), |counted| since(counted, finished.talk));
    let mut fault = seen.fault(finished);
    // An empty answer is valid, unless the agent was denied what it needed for a real one.
    if fault.is_none() && seen.end.is_some() && seen.answer.trim().is_empty() && !seen.denied.is_empty() {
        let denied = seen.denied.join(", ");
        fault = Some(Fault::new(
            FaultKind::Denied,
            format!("gave no answer, and was denied {}", cut(&denied, 200)),
        ));
    }
    // A session that the client did not persist cannot be resumed.
    let kept = seen.session.filter(|_| !client.fresh);
    Decoded {
        usage,
        session: kept.map(|id| Session { id, total, at_ms: finished.clock.now_ms }),
        fault,
        finished: seen.end.is_some(),
        active: seen.active,
        remarks: denials(&seen.denied),
        text: seen.answer,
    }
}

impl Seen {
    fn take(&mut self, line: &Value) {
        if let Some(id) = sessions::id(line) {
            self.session = Some(id.to_string());
        }
        match text(line, "type") {
            "item.completed" => self.item(line.get("item").unwrap_or(&Value::Null)),
            "item.started" => self.works(),
            // A completed turn proves work even if no item was reported.
            "turn.completed" => {
                self.counted = line.get("usage").map(usage);
                self.end = Some(None);
                self.active = true;
            }
            "turn.failed" => {
                let error = line.get("error").unwrap_or(&Value::Null);
                self.end = Some(Some(text(error, "message").to_string()));
            }
            "error" => match retrying(line) {
                Some(why) => self.trying = Some(why.to_string()),
                None => self.error = Some(text(line, "message").to_string()),
            },
            _ => {}
        }
    }

    fn item(&mut self, item: &Value) {
        match text(item, "type") {
            // An item of this type is only a warning.
            "error" => return,
            "agent_message" if !text(item, "text").trim().is_empty() => {
                self.answer = text(item, "text").to_string()
            }
            _ => {}
        }
        self.works();
        if let Some(denied) = denied(item) {
            note(&mut self.denied, denied);
        }
    }

    /// Records that the model answers, so that earlier errors and retries are over.
    fn works(&mut self) {
        self.active = true;
        self.trying = None;
        self.error = None;
    }

    fn fault(&self, finished: &Finished<'_>) -> Option<Fault> {
        match (&self.end, &self.error) {
            (Some(None), _) => None,
            (Some(Some(message)), _) => Some(failure(message, finished)),
            // An error line without a failed turn counts only if the process failed, too.
            (None, Some(message)) if finished.code.is_some_and(|code| code != 0) => {
                Some(failure(message, finished))
            }
            (None, _) => cut_off(finished, self.trying.as_deref().map(|why| trying(why, finished.clock))),
        }
    }
}

/// The fault that an error message describes.
fn failure(message: &str, finished: &Finished<'_>) -> Fault {
    let (said, rejected) = unpack(message);
    // The provider's JSON contains more recognizable phrases than the sentence for the user.
    let kind = classify(message, None, finished.clock).or(rejected).unwrap_or(match finished.code {
        Some(code) if code != 0 => FaultKind::Exited { code },
        _ => FaultKind::Malformed,
    });
    let detail = if said.is_empty() { "its turn failed without a word".to_string() } else { short(&said) };
    Fault::new(kind, detail)
}

/// The fault for which the client was retrying.
fn trying(why: &str, clock: &Clock) -> Fault {
    let kind = classify(why, None, clock).unwrap_or(FaultKind::Connection);
    Fault::new(kind, format!("tried again and again: {}", short(why)))
}

/// Unpacks a rejected request, which is passed on as the provider's JSON.
fn unpack(message: &str) -> (String, Option<FaultKind>) {
    let body: Option<Value> = serde_json::from_str(message).ok();
    match body.as_ref().and_then(|body| body.get("error")) {
        Some(error) => {
            let rejected = text(error, "type") == "invalid_request_error";
            (text(error, "message").to_string(), rejected.then_some(FaultKind::Rejected { status: 400 }))
        }
        None => (message.to_string(), None),
    }
}

/// The reason in `Reconnecting... 1/5 (reason)`.
fn retrying(line: &Value) -> Option<&str> {
    let rest = text(line, "message").strip_prefix(RECONNECTING)?;
    let why = rest.split_once('(').map_or(rest, |(_, why)| why.trim_end().trim_end_matches(')'));
    Some(why.trim())
}

/// What the client was denied. A command that the sandbox stops is not reported here; only the model sees that.
fn denied(item: &Value) -> Option<String> {
    match text(item, "type") {
        "mcp_tool_call" => {
            let error = item.get("error").map(|error| text(error, "message")).unwrap_or_default();
            let name = format!("{}.{}", text(item, "server"), text(item, "tool"));
            error.contains("approval").then_some(name)
        }
        _ if text(item, "status") == "declined" => Some(command(item)),
        _ => None,
    }
}

/// Parses the usage. The client counts cached tokens as input, too.
fn usage(usage: &Value) -> Usage {
    let cached_tokens = count(usage, "cached_input_tokens");
    Usage {
        input_tokens: count(usage, "input_tokens").saturating_sub(cached_tokens),
        output_tokens: count(usage, "output_tokens"),
        cached_tokens,
        ..Usage::default()
    }
}

/// The command without the shell around it, in one line.
fn command(item: &Value) -> String {
    let line = text(item, "command");
    let inner = line.split_once(" -lc ").map_or(line, |(_, inner)| inner.trim_matches(['\'', '"']));
    cut(inner.lines().next().unwrap_or_default(), 120)
}

/// The events of one line.
pub(super) fn events(line: &str) -> Vec<AgentEvent> {
    let Some(line) = objects(line).next() else { return Vec::new() };
    let item = line.get("item").unwrap_or(&Value::Null);
    match (text(&line, "type"), text(item, "type")) {
        ("item.started", "command_execution") => {
            vec![AgentEvent::Tool { name: "runs".to_string(), about: command(item) }]
        }
        ("item.started", "mcp_tool_call") => {
            let name = format!("{}.{}", text(item, "server"), text(item, "tool"));
            vec![AgentEvent::Tool { name, about: String::new() }]
        }
        ("item.completed", "agent_message") => {
            vec![AgentEvent::Text { text: text(item, "text").to_string() }]
        }
        ("item.completed", "file_change") if text(item, "status") == "completed" => {
            let changed = |change: &Value| AgentEvent::Changed { path: text(change, "path").to_string() };
            list(item, "changes").iter().map(changed).collect()
        }
        ("item.completed", _) => denied(item).map(|tool| AgentEvent::Denied { tool }).into_iter().collect(),
        ("error", _) => {
            retrying(&line).map(|why| AgentEvent::Retrying { why: short(why) }).into_iter().collect()
        }
        ("turn.failed", _) => {
            let message = line.get("error").map(|error| text(error, "message")).unwrap_or_default();
            vec![AgentEvent::Failed { why: short(&unpack(message).0) }]
        }
        _ => Vec::new(),
    }
}
