//! Describes the events between a coding session and the review that it has taken on.

use tribunal_core::session::{SessionEvent, What};

use crate::words;

/// Describes one event in one line, without colours. Text from outside is not escaped yet.
pub fn says(event: &SessionEvent) -> String {
    let tally = &event.tally;
    match &event.what {
        What::Bound { bound } => {
            // An empty name binds the first session in this directory that reports to a hook.
            let session = match bound.session.as_str() {
                "" => "the next session here that says something".to_string(),
                session => format!("session {session}"),
            };
            format!("bound to {session}, sent back at most {}", words::count(bound.max_refusals, "time"))
        }
        What::Claimed { session } => format!("taken on by session {session}"),
        What::Refused { open, claimed } => {
            let said = if *claimed { ", though it said that it was done" } else { "" };
            let open = if open.is_empty() { String::new() } else { format!("; open: {}", open.join(", ")) };
            format!("wanted to stop and was sent back ({}){said}{open}", tally.refusals)
        }
        What::Used { tool } => format!("used {tool}"),
        What::Denied { tool, reason } => format!("was kept from {tool}: {reason}"),
        What::Hooked { command, fault, output } => {
            let how = if fault.is_empty() { "ran" } else { fault };
            // One line is enough here; the journal has the whole output.
            let said = output.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
            format!("hook `{command}` {how}{said}")
        }
        What::Noted { text } => text.clone(),
        What::LetGo { why, detail } => {
            let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
            format!("let go, {}{detail}", why.says())
        }
    }
}
