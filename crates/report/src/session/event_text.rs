//! Describes the events between a coding session and the review that it has taken on.

use tribunal_workflows::session::{SessionEvent, SessionEventKind};

use crate::phrases;

/// Describes one event in one line, without colours. Text from outside is not escaped yet.
pub fn describe_session_event(event: &SessionEvent) -> String {
    let session_tally = &event.tally;
    match &event.what {
        SessionEventKind::Bound { bound: binding } => {
            format!(
                "attached to {}, which can be sent back up to {}",
                describe_holder(&binding.session),
                phrases::format_count(binding.max_refusals, "time")
            )
        }
        SessionEventKind::Claimed { session: session_name } => format!("picked up by session {session_name}"),
        SessionEventKind::Refused { open: open_findings, claimed } => {
            let claimed_note = if *claimed { ", although it claimed to be done" } else { "" };
            let open_note =
                if open_findings.is_empty() { String::new() } else { format!("; open: {}", open_findings.join(", ")) };
            format!("tried to stop and was sent back ({} so far){claimed_note}{open_note}", session_tally.refusals)
        }
        SessionEventKind::Used { tool: tool_name } => format!("used {tool_name}"),
        SessionEventKind::Denied { tool: tool_name, reason } => {
            format!("not allowed to use {tool_name}: {reason}")
        }
        SessionEventKind::Hooked { command, fault, output } => {
            let hook_result = if fault.is_empty() { "ran" } else { fault };
            // One line is enough here; the journal has the whole output.
            let output_note = output.lines().next().map(|first_line| format!(": {first_line}")).unwrap_or_default();
            format!("hook `{command}` {hook_result}{output_note}")
        }
        SessionEventKind::Noted { text: note_text } => note_text.clone(),
        SessionEventKind::LetGo { why: release_reason, detail } => {
            let detail_text = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
            format!("released: {}{detail_text}", release_reason.as_phrase())
        }
    }
}

/// Names the session that has an assignment.
pub(super) fn describe_holder(session_name: &str) -> String {
    match session_name {
        // An empty name binds the first session in this directory that reports to a hook.
        "" => "the next session in this directory".to_string(),
        session_name => format!("session {session_name}"),
    }
}
