//! The answers to decisions.

use alloc::string::String;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::text::word_table::words;

/// The answers that decisions offer, as the user types them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKey {
    // For findings and patches.
    Retry,
    Uphold,
    Approve,
    Reject,
    Dismiss,
    Defer,
    // For stray edits.
    Keep,
    Restore,
    // For sessions, limits and the confidence.
    Fixers,
    Accept,
    More,
    End,
    // For stories.
    Hand,
    Agent,
    Skip,
    Done,
}

words!(ChoiceKey {
    Retry = "retry",
    Uphold = "uphold",
    Approve = "approve",
    Reject = "reject",
    Dismiss = "dismiss",
    Defer = "defer",
    Keep = "keep",
    Restore = "restore",
    Fixers = "fixers",
    Accept = "accept",
    More = "more",
    End = "end",
    Hand = "hand",
    Agent = "agent",
    Skip = "skip",
    Done = "done",
});

impl ChoiceKey {
    const ALL: [ChoiceKey; 16] = [
        ChoiceKey::Retry,
        ChoiceKey::Uphold,
        ChoiceKey::Approve,
        ChoiceKey::Reject,
        ChoiceKey::Dismiss,
        ChoiceKey::Defer,
        ChoiceKey::Keep,
        ChoiceKey::Restore,
        ChoiceKey::Fixers,
        ChoiceKey::Accept,
        ChoiceKey::More,
        ChoiceKey::End,
        ChoiceKey::Hand,
        ChoiceKey::Agent,
        ChoiceKey::Skip,
        ChoiceKey::Done,
    ];

    pub fn parse(choice_text: &str) -> Option<ChoiceKey> {
        // Exact match only: an answer decides about the run, so it must not be guessed.
        ChoiceKey::ALL.into_iter().find(|choice_key| choice_key.as_str() == choice_text)
    }
}

/// The user's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DecisionAnswer {
    pub choice: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Replaces the answer of a withdrawn question. No decision offers this choice, so the user cannot choose it.
const WITHDRAWN_CHOICE: &str = "withdrawn";

impl DecisionAnswer {
    /// Makes the answer of a question that was withdrawn.
    pub fn new_withdrawn(note_text: impl Into<String>) -> DecisionAnswer {
        // The choice is text and not a `ChoiceKey`, because this value must not be one that users can type.
        DecisionAnswer { choice: WITHDRAWN_CHOICE.into(), note: note_text.into() }
    }

    pub fn is_withdrawn(&self) -> bool {
        self.choice == WITHDRAWN_CHOICE
    }

    /// Returns the choice; `None` if it is not one that decisions offer.
    pub fn choice_key(&self) -> Option<ChoiceKey> {
        ChoiceKey::parse(&self.choice)
    }
}
