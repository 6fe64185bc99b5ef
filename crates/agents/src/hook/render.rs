//! What is said back, in the words of each client: one line of JSON, whatever was answered.
//!
//! An answer that means nothing at a moment, such as a refusal before a tool, becomes the harmless one: go on. Nothing is said
//! twice in different words, and "allow" is never said, since for the clients saying nothing is what allows.

use serde_json::{Value, json};

use super::{Answer, HookClient, HookEvent};

impl Answer {
    /// One line, with its end.
    pub fn render(&self, client: HookClient, event: HookEvent) -> String {
        let mut said = match self {
            Answer::Refuse { reason, .. } if refuses(client, event) => {
                // Gemini has this word for it.
                let decision = if client == HookClient::Gemini { "deny" } else { "block" };
                json!({"decision": decision, "reason": reason})
            }
            Answer::Deny { reason } if event == HookEvent::PreToolUse => denied(client, reason),
            Answer::Tell { context } => told(client, event, context),
            _ => json!({}),
        };
        let say = self.say().filter(|_| client != HookClient::Copilot);
        if let (Some(say), Some(fields)) = (say, said.as_object_mut()) {
            fields.insert("systemMessage".to_owned(), say.into());
        }
        format!("{said}\n")
    }

    fn say(&self) -> Option<&str> {
        match self {
            Answer::Allow { say } | Answer::Refuse { say, .. } => say.as_deref(),
            Answer::Deny { .. } | Answer::Tell { .. } => None,
        }
    }
}

/// Gemini has no moment at which a sub-agent stops.
fn refuses(client: HookClient, event: HookEvent) -> bool {
    event == HookEvent::Stop || (event == HookEvent::SubagentStop && client != HookClient::Gemini)
}

fn denied(client: HookClient, reason: &str) -> Value {
    match client {
        HookClient::ClaudeCode | HookClient::Codex => json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
        }}),
        HookClient::Copilot => json!({"permissionDecision": "deny", "permissionDecisionReason": reason}),
        HookClient::Gemini => json!({"decision": "deny", "reason": reason}),
    }
}

/// Nothing where the model would not come to know of it.
fn told(client: HookClient, event: HookEvent, context: &str) -> Value {
    let name = match (client, event) {
        (HookClient::Copilot, HookEvent::SessionStart) => return json!({"additionalContext": context}),
        (HookClient::Copilot, _) => return json!({}),
        (_, HookEvent::SessionStart) => "SessionStart",
        (HookClient::Gemini, HookEvent::UserPromptSubmit) => "BeforeAgent",
        (_, HookEvent::UserPromptSubmit) => "UserPromptSubmit",
        _ => return json!({}),
    };
    json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}})
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn answers() -> [(&'static str, Answer); 6] {
        let text = |text: &str| text.to_owned();
        [
            ("allow", Answer::Allow { say: None }),
            ("allow and say", Answer::Allow { say: Some(text("S")) }),
            ("refuse", Answer::Refuse { reason: text("R"), say: None }),
            ("refuse and say", Answer::Refuse { reason: text("R"), say: Some(text("S")) }),
            ("deny", Answer::Deny { reason: text("R") }),
            ("tell", Answer::Tell { context: text("C") }),
        ]
    }

    /// Who is told the same is on one line.
    #[test]
    fn every_answer_to_every_client_at_every_moment() {
        let mut table = String::new();
        for (name, answer) in answers() {
            table.push_str(&format!("{name}\n"));
            let mut same: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for client in HookClient::ALL {
                for event in HookEvent::ALL {
                    let said = answer.render(client, event);
                    let whom = format!("{} {}", client.word(), event.word());
                    same.entry(said).or_default().push(whom);
                }
            }
            let all = HookClient::ALL.len() * HookEvent::ALL.len();
            for (said, whom) in same {
                let whom = if whom.len() > all / 2 { "all others".to_owned() } else { whom.join(", ") };
                table.push_str(&format!("  {}\n    {whom}\n", said.trim_end()));
            }
        }
        insta::assert_snapshot!(table);
    }

    proptest! {
        #[test]
        fn it_is_one_line_of_json_whatever_is_said(text in any::<String>(), client in 0..4usize, event in 0..8usize) {
            let (client, event) = (HookClient::ALL[client], HookEvent::ALL[event]);
            let say = Some(text.clone());
            for answer in [
                Answer::Allow { say: say.clone() },
                Answer::Refuse { reason: text.clone(), say },
                Answer::Deny { reason: text.clone() },
                Answer::Tell { context: text.clone() },
            ] {
                let said = answer.render(client, event);
                prop_assert!(said.ends_with('\n') && said.matches('\n').count() == 1);
                let said: Value = serde_json::from_str(&said).unwrap();
                prop_assert!(said.is_object() && said["decision"] != "allow");
            }
            let refused: Value = serde_json::from_str(&Answer::Refuse { reason: text.clone(), say: None }
                .render(client, HookEvent::Stop)).unwrap();
            prop_assert_eq!(&refused["reason"], &Value::from(text));
        }
    }
}
