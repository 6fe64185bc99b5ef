//! The events of a session at which a client calls us.

use std::str::FromStr;

/// An event, under Tribunal's own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HookEvent {
    Stop,
    SubagentStop,
    SessionStart,
    SessionEnd,
    PreToolUse,
    PostToolUse,
    PreCompact,
    UserPromptSubmit,
}

impl HookEvent {
    pub const ALL: [HookEvent; 8] = [
        HookEvent::Stop,
        HookEvent::SubagentStop,
        HookEvent::SessionStart,
        HookEvent::SessionEnd,
        HookEvent::PreToolUse,
        HookEvent::PostToolUse,
        HookEvent::PreCompact,
        HookEvent::UserPromptSubmit,
    ];

    pub fn name(self) -> &'static str {
        match self {
            HookEvent::Stop => "stop",
            HookEvent::SubagentStop => "subagent-stop",
            HookEvent::SessionStart => "session-start",
            HookEvent::SessionEnd => "session-end",
            HookEvent::PreToolUse => "pre-tool-use",
            HookEvent::PostToolUse => "post-tool-use",
            HookEvent::PreCompact => "pre-compact",
            HookEvent::UserPromptSubmit => "user-prompt-submit",
        }
    }

    /// Whether a session or a sub-agent wants to stop.
    pub fn is_stop(self) -> bool {
        matches!(self, HookEvent::Stop | HookEvent::SubagentStop)
    }
}

impl FromStr for HookEvent {
    type Err = String;

    fn from_str(event_name: &str) -> Result<HookEvent, String> {
        // The names are exact: a misspelt one is reported and not guessed.
        HookEvent::ALL.into_iter().find(|hook_event| hook_event.name() == event_name).ok_or_else(|| {
            let known_names: Vec<&str> = HookEvent::ALL.iter().map(|hook_event| hook_event.name()).collect();
            format!("unknown hook `{event_name}` (known: {})", known_names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_name_parses_back_and_an_unknown_one_lists_the_known_ones() {
        for hook_event in HookEvent::ALL {
            assert_eq!(hook_event.name().parse(), Ok(hook_event));
        }
        let parse_error = "Stop".parse::<HookEvent>().unwrap_err();
        assert!(parse_error.starts_with("unknown hook `Stop` (known: stop, subagent-stop, "), "{parse_error}");
    }
}
