//! The words for clients and moments, and what is known of how patient a client is.
//!
//! What is said at those moments is read in [`super::input`].

use std::str::FromStr;

use super::{HookClient, HookEvent};

/// So many stops in a row may Claude Code be refused; at the next one it ends the turn with an empty result.
const CLAUDE_CAP: u32 = 8;
/// Codex honoured all of fifteen, and nobody counted how often the others put up with it. Who answers so often without using a
/// tool does not get further by being asked again.
const UNKNOWN_CAP: u32 = 8;

impl HookClient {
    pub const ALL: [HookClient; 4] =
        [HookClient::ClaudeCode, HookClient::Codex, HookClient::Copilot, HookClient::Gemini];

    pub fn word(self) -> &'static str {
        match self {
            HookClient::ClaudeCode => "claude-code",
            HookClient::Codex => "codex",
            HookClient::Copilot => "copilot",
            HookClient::Gemini => "gemini",
        }
    }

    /// How many stops in a row may be refused before the client ends the turn by itself; none: it never does.
    ///
    /// `env` is what CLAUDE_CODE_STOP_HOOK_BLOCK_CAP says. Measured for Claude Code; for the others
    /// it is ours.
    pub fn refusal_cap(self, env: Option<&str>) -> Option<u32> {
        if self != HookClient::ClaudeCode {
            return Some(UNKNOWN_CAP);
        }
        match env.and_then(|cap| cap.trim().parse().ok()) {
            Some(0) => None,
            Some(cap) => Some(cap),
            None => Some(CLAUDE_CAP),
        }
    }
}

impl FromStr for HookClient {
    type Err = String;

    fn from_str(word: &str) -> Result<HookClient, String> {
        let word = if word == "claude" { "claude-code" } else { word };
        HookClient::ALL.into_iter().find(|client| client.word() == word).ok_or_else(|| {
            let known: Vec<&str> = HookClient::ALL.iter().map(|client| client.word()).collect();
            format!("there is no client `{word}`, only {}", known.join(", "))
        })
    }
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

    pub fn word(self) -> &'static str {
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

    /// A session or a sub-agent wants to stop.
    pub fn is_stop(self) -> bool {
        matches!(self, HookEvent::Stop | HookEvent::SubagentStop)
    }
}

impl FromStr for HookEvent {
    type Err = String;

    fn from_str(word: &str) -> Result<HookEvent, String> {
        HookEvent::ALL.into_iter().find(|event| event.word() == word).ok_or_else(|| {
            let known: Vec<&str> = HookEvent::ALL.iter().map(|event| event.word()).collect();
            format!("there is no hook `{word}`, only {}", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_understood_again() {
        for client in HookClient::ALL {
            assert_eq!(client.word().parse(), Ok(client));
        }
        for event in HookEvent::ALL {
            assert_eq!(event.word().parse(), Ok(event));
        }
        assert_eq!("claude".parse(), Ok(HookClient::ClaudeCode));
    }

    #[test]
    fn what_is_not_known_is_named_with_what_is() {
        let client = "cursor".parse::<HookClient>().unwrap_err();
        assert_eq!(client, "there is no client `cursor`, only claude-code, codex, copilot, gemini");
        let event = "Stop".parse::<HookEvent>().unwrap_err();
        assert!(event.starts_with("there is no hook `Stop`, only stop, subagent-stop, "), "{event}");
    }

    #[test]
    fn a_client_is_patient_for_so_long() {
        let claude = |env| HookClient::ClaudeCode.refusal_cap(env);
        assert_eq!([claude(None), claude(Some("3")), claude(Some("0"))], [Some(8), Some(3), None]);
        assert_eq!([claude(Some("")), claude(Some("-1")), claude(Some("many"))], [Some(8); 3]);
        for other in [HookClient::Codex, HookClient::Copilot, HookClient::Gemini] {
            assert_eq!(other.refusal_cap(Some("0")), Some(8), "{other:?} does not know that variable");
        }
    }
}
