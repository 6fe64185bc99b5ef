//! Renders an answer in the form of any client: always one line of JSON.
//!
//! An answer that means nothing at an event, such as a refusal before a tool call, becomes the harmless one:
//! continue. "Allow" is never said explicitly, because clients take silence as permission.

use serde_json::json;

use super::{HookAnswer, HookClient, HookEvent};

impl HookAnswer {
    /// Renders one line, including its line end.
    pub fn render(&self, hook_client: HookClient, hook_event: HookEvent) -> String {
        let client_hooks = hook_client.hooks;
        let answer_value = match self {
            HookAnswer::Refuse { reason, .. } => client_hooks.render_refusal(hook_event, reason),
            // A tool can be denied only before it is used; afterwards it has already run.
            HookAnswer::Deny { reason } if hook_event == HookEvent::PreToolUse => {
                Some(client_hooks.render_denial(reason))
            }
            HookAnswer::AddContext { context } => client_hooks.render_context(hook_event, context),
            HookAnswer::Deny { .. } | HookAnswer::Allow { .. } => None,
        };
        // An empty object is the neutral answer of every client.
        let mut answer_value = answer_value.unwrap_or_else(|| json!({}));
        let message = self.user_message().filter(|_| client_hooks.shows_messages());
        if let (Some(message), Some(fields)) = (message, answer_value.as_object_mut()) {
            fields.insert("systemMessage".to_owned(), message.into());
        }
        format!("{answer_value}\n")
    }

    fn user_message(&self) -> Option<&str> {
        match self {
            HookAnswer::Allow { user_message: message } | HookAnswer::Refuse { user_message: message, .. } => {
                message.as_deref()
            }
            HookAnswer::Deny { .. } | HookAnswer::AddContext { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn all_answers() -> [(&'static str, HookAnswer); 6] {
        let owned_text = |text: &str| text.to_owned();
        [
            ("allow", HookAnswer::Allow { user_message: None }),
            ("allow and say", HookAnswer::Allow { user_message: Some(owned_text("S")) }),
            ("refuse", HookAnswer::Refuse { reason: owned_text("R"), user_message: None }),
            ("refuse and say", HookAnswer::Refuse { reason: owned_text("R"), user_message: Some(owned_text("S")) }),
            ("deny", HookAnswer::Deny { reason: owned_text("R") }),
            ("tell", HookAnswer::AddContext { context: owned_text("C") }),
        ]
    }

    /// Clients and events with the same answer are on one line.
    #[test]
    fn every_answer_to_every_client_at_every_moment() {
        let mut table = String::new();
        for (answer_name, answer) in all_answers() {
            table.push_str(&format!("{answer_name}\n"));
            let mut recipients_by_answer: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for hook_client in HookClient::all() {
                for hook_event in HookEvent::ALL {
                    let answer_line = answer.render(hook_client, hook_event);
                    let recipient = format!("{} {}", hook_client.client_id(), hook_event.name());
                    recipients_by_answer.entry(answer_line).or_default().push(recipient);
                }
            }
            let total_count = HookClient::all().count() * HookEvent::ALL.len();
            for (answer_line, recipients) in recipients_by_answer {
                let recipients_text =
                    if recipients.len() > total_count / 2 { "all others".to_owned() } else { recipients.join(", ") };
                table.push_str(&format!("  {}\n    {recipients_text}\n", answer_line.trim_end()));
            }
        }
        insta::assert_snapshot!(table);
    }

    proptest! {
        #[test]
        fn every_answer_is_one_line_of_json(text in any::<String>(), client in 0..4usize, event in 0..8usize) {
            let (client, event) = (HookClient::all().nth(client).unwrap(), HookEvent::ALL[event]);
            let say = Some(text.clone());
            for answer in [
                HookAnswer::Allow { user_message: say.clone() },
                HookAnswer::Refuse { reason: text.clone(), user_message: say },
                HookAnswer::Deny { reason: text.clone() },
                HookAnswer::AddContext { context: text.clone() },
            ] {
                let said = answer.render(client, event);
                prop_assert!(said.ends_with('\n') && said.matches('\n').count() == 1);
                let said: Value = serde_json::from_str(&said).unwrap();
                prop_assert!(said.is_object() && said["decision"] != "allow");
            }
            let refused: Value = serde_json::from_str(&HookAnswer::Refuse { reason: text.clone(), user_message: None }
                .render(client, HookEvent::Stop)).unwrap();
            prop_assert_eq!(&refused["reason"], &Value::from(text));
        }
    }
}
