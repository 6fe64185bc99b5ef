//! Renders an answer in the form of any client: always one line of JSON.
//!
//! An answer that means nothing at an event, such as a refusal before a tool call, becomes the harmless one:
//! continue. "Allow" is never said explicitly, because clients take silence as permission.

use serde_json::json;

use super::{Answer, HookClient, HookEvent};

impl Answer {
    /// Renders one line, including its line end.
    pub fn render(&self, client: HookClient, event: HookEvent) -> String {
        let hooks = client.hooks;
        let said = match self {
            Answer::Refuse { reason, .. } => hooks.refuse(event, reason),
            // Only the event before a tool call can be denied; afterwards the tool has already run.
            Answer::Deny { reason } if event == HookEvent::PreToolUse => Some(hooks.deny(reason)),
            Answer::Tell { context } => hooks.tell(event, context),
            Answer::Deny { .. } | Answer::Allow { .. } => None,
        };
        // An empty object is the neutral answer of every client.
        let mut said = said.unwrap_or_else(|| json!({}));
        let say = self.say().filter(|_| hooks.shows_messages());
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::Value;

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

    /// Clients and events with the same answer are on one line.
    #[test]
    fn every_answer_to_every_client_at_every_moment() {
        let mut table = String::new();
        for (name, answer) in answers() {
            table.push_str(&format!("{name}\n"));
            let mut same: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for client in HookClient::all() {
                for event in HookEvent::ALL {
                    let said = answer.render(client, event);
                    let whom = format!("{} {}", client.word(), event.word());
                    same.entry(said).or_default().push(whom);
                }
            }
            let all = HookClient::all().count() * HookEvent::ALL.len();
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
            let (client, event) = (HookClient::all().nth(client).unwrap(), HookEvent::ALL[event]);
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
