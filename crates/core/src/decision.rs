//! A question that only the user can answer. It waits in the journal, not in a process.

use alloc::{string::String, vec::Vec};
use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    files::{Patch, Stray},
    ids::{DecisionId, FindingId, Hash, Key},
    level::words,
};

/// What a decision is about. This also defines what its answers mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum About {
    /// A fixer could not repair this finding.
    Blocked { finding: FindingId },
    /// Challengers could not agree on this critical finding.
    Disputed { finding: FindingId },
    /// A patch waits for the user's approval.
    Patch {
        by: Key,
        patch: Hash,
        /// The masked difference for users, as a blob.
        diff: Hash,
        findings: Vec<FindingId>,
    },
    /// Files changed while agents were at work, and not by a landing.
    Strayed { strays: Vec<Stray> },
    /// The user's session was to repair these.
    Session { findings: Vec<FindingId> },
    /// A loop in a session was released before it was done.
    Loop,
    /// A limit ended the run before all work was done.
    Limit,
    /// All findings are settled, but the confidence is below the target.
    Confidence,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The text that the user types.
    pub key: ChoiceKey,
    pub label: String,
}

/// The answers that decisions offer, as the user types them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
});

impl ChoiceKey {
    const ALL: [ChoiceKey; 12] = [
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
    ];

    pub fn parse(text: &str) -> Option<ChoiceKey> {
        // Exact match only: an answer decides about the run, so it must not be guessed.
        ChoiceKey::ALL.into_iter().find(|key| key.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    pub id: DecisionId,
    pub about: About,
    /// Who should answer, for instance `product owner`.
    pub owner: String,
    pub question: String,
    pub choices: Vec<Choice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

/// The user's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    pub choice: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Replaces the answer of a withdrawn question. No decision offers this choice, so the user cannot choose it.
const WITHDRAWN: &str = "withdrawn";

impl Answer {
    /// Makes the answer of a question that was withdrawn.
    pub fn withdrawn(note: impl Into<String>) -> Answer {
        // The choice is plain text in the journal, so that journals with choices of other builds stay readable.
        Answer { choice: WITHDRAWN.into(), note: note.into() }
    }

    pub fn is_withdrawn(&self) -> bool {
        self.choice == WITHDRAWN
    }

    /// Returns the choice; `None` if it is not one that decisions offer.
    pub fn key(&self) -> Option<ChoiceKey> {
        ChoiceKey::parse(&self.choice)
    }
}

impl Decision {
    pub fn blocked(id: DecisionId, finding: FindingId, question: String) -> Decision {
        let choices = choices(&[
            (ChoiceKey::Retry, "let a fixer try once more, with your note if you give one"),
            (ChoiceKey::Dismiss, "it is not an issue"),
            (ChoiceKey::Defer, "it is one, but not now"),
        ]);
        Decision {
            id,
            about: About::Blocked { finding },
            owner: "product owner".into(),
            question,
            choices,
            answer: None,
        }
    }

    pub fn disputed(id: DecisionId, finding: FindingId, question: String) -> Decision {
        let choices = choices(&[
            (ChoiceKey::Uphold, "it is an issue: let a fixer repair it"),
            (ChoiceKey::Dismiss, "it is not an issue"),
            (ChoiceKey::Defer, "it is one, but not now"),
        ]);
        Decision {
            id,
            about: About::Disputed { finding },
            // Whether an issue is real is a question about the product, not about the code.
            owner: "product owner".into(),
            question,
            choices,
            answer: None,
        }
    }

    /// Asks whether a patch may land. `by` is the key of the task that made it.
    pub fn patch(
        id: DecisionId,
        by: &Key,
        patch: &Patch,
        findings: Vec<FindingId>,
        question: String,
    ) -> Decision {
        let choices = choices(&[
            (ChoiceKey::Approve, "let it land, if it still fits and the checks pass"),
            (ChoiceKey::Reject, "let a fixer try once more, with your note if you give one"),
            (ChoiceKey::Dismiss, "there is no issue"),
            (ChoiceKey::Defer, "there is one, but not now"),
        ]);
        // The hash fixes the exact patch: a later change of the workspace needs a new question.
        let about =
            About::Patch { by: by.clone(), patch: patch.hash.clone(), diff: patch.diff.clone(), findings };
        Decision { id, about, owner: "whoever set approve: each".into(), question, choices, answer: None }
    }

    pub fn strayed(id: DecisionId, strays: Vec<Stray>, question: String) -> Decision {
        let keep = (ChoiceKey::Keep, "it was you, or it is fine as it is");
        let restore = (ChoiceKey::Restore, "put back what was there; what is there now is kept aside");
        // Restoring is offered only if at least one previous content was kept.
        let choices = match strays.iter().any(|stray| stray.kept) {
            true => choices(&[keep, restore]),
            false => choices(&[keep]),
        };
        let owner = "whoever works in this folder".into();
        Decision { id, about: About::Strayed { strays }, owner, question, choices, answer: None }
    }

    pub fn confidence(id: DecisionId, question: String) -> Decision {
        let choices = choices(&[
            (ChoiceKey::Accept, "it is good enough: end the run"),
            (ChoiceKey::More, "hold another round; without further signals it comes to the same"),
        ]);
        Decision {
            id,
            about: About::Confidence,
            owner: "whoever set target_confidence".into(),
            question,
            choices,
            answer: None,
        }
    }

    pub fn session(id: DecisionId, findings: Vec<FindingId>, question: String) -> Decision {
        let choices = choices(&[
            (ChoiceKey::Fixers, "do not wait for the session: let fixers repair what is open"),
            (ChoiceKey::Accept, "defer what is open and end the run"),
        ]);
        let owner = "whoever has the session open".into();
        Decision { id, about: About::Session { findings }, owner, question, choices, answer: None }
    }

    pub fn of_loop(id: DecisionId, question: String) -> Decision {
        let choices = choices(&[
            // The loop itself is not part of a review, so its answers only concern the session.
            (ChoiceKey::More, "let it go on in its session, as often again"),
            (ChoiceKey::End, "leave it as it is"),
        ]);
        let owner = "whoever started the loop".into();
        Decision { id, about: About::Loop, owner, question, choices, answer: None }
    }

    pub fn limit(id: DecisionId, question: String) -> Decision {
        let choices = choices(&[
            (ChoiceKey::More, "go on: every limit is granted once more"),
            (ChoiceKey::Accept, "defer what is open and end the run"),
        ]);
        Decision {
            id,
            about: About::Limit,
            owner: "whoever sets the budget".into(),
            question,
            choices,
            answer: None,
        }
    }

    pub fn allows(&self, choice: &str) -> bool {
        // Compared as text, because an answer may come from a file that the user edited.
        self.choices.iter().any(|offered| offered.key.as_str() == choice)
    }
}

fn choices(of: &[(ChoiceKey, &str)]) -> Vec<Choice> {
    of.iter().map(|(key, label)| Choice { key: *key, label: (*label).into() }).collect()
}
