//! A question that only the user can answer. It waits in the journal, not in a process.

use alloc::{string::String, vec::Vec};
use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    engine::{
        files::{Patch, StrayEdit},
        ids::{DecisionId, FindingId, Hash, Key},
    },
    review::level::words,
};

/// What a decision is about. This also defines what its answers mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum DecisionTopic {
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
        /// The decision in which the user rejected exactly this patch before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rejected_in: Option<DecisionId>,
    },
    /// Files changed while agents were at work, and not by a landing.
    Strayed { strays: Vec<StrayEdit> },
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
pub struct DecisionChoice {
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

    pub fn parse(choice_text: &str) -> Option<ChoiceKey> {
        // Exact match only: an answer decides about the run, so it must not be guessed.
        ChoiceKey::ALL.into_iter().find(|choice_key| choice_key.as_str() == choice_text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    pub id: DecisionId,
    pub about: DecisionTopic,
    /// Who should answer, for instance `product owner`.
    pub owner: String,
    pub question: String,
    pub choices: Vec<DecisionChoice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<DecisionAnswer>,
}

/// The user's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

impl Decision {
    pub fn for_blocked_finding(decision_id: DecisionId, finding: FindingId, question: String) -> Decision {
        let offered = build_choices(&[
            (ChoiceKey::Retry, "let a fixer try again (your note is passed on)"),
            (ChoiceKey::Dismiss, "not an issue"),
            (ChoiceKey::Defer, "a real issue, but not now"),
        ]);
        Decision {
            id: decision_id,
            about: DecisionTopic::Blocked { finding },
            owner: "product owner".into(),
            question,
            choices: offered,
            answer: None,
        }
    }

    pub fn for_disputed_finding(decision_id: DecisionId, finding: FindingId, question: String) -> Decision {
        let offered = build_choices(&[
            (ChoiceKey::Uphold, "a real issue; let a fixer fix it"),
            (ChoiceKey::Dismiss, "not an issue"),
            (ChoiceKey::Defer, "a real issue, but not now"),
        ]);
        Decision {
            id: decision_id,
            about: DecisionTopic::Disputed { finding },
            owner: "product owner".into(),
            question,
            choices: offered,
            answer: None,
        }
    }

    /// Asks whether a patch may land. `task_key` is the key of the task that made it. A patch that the user has rejected
    /// before is marked with [`Decision::mark_rejected_before`].
    pub fn for_patch(
        decision_id: DecisionId,
        task_key: &Key,
        patch: &Patch,
        findings: Vec<FindingId>,
        question: String,
    ) -> Decision {
        let offered = build_choices(&[
            (ChoiceKey::Approve, "apply the patch, if it still applies and the checks pass"),
            (ChoiceKey::Reject, "let a fixer try again (your note is passed on)"),
            (ChoiceKey::Dismiss, "not an issue"),
            (ChoiceKey::Defer, "a real issue, but not now"),
        ]);
        // The hash names the exact patch: landing refuses a workspace that has changed since.
        let topic = DecisionTopic::Patch {
            by: task_key.clone(),
            patch: patch.hash.clone(),
            diff: patch.diff.clone(),
            findings,
            rejected_in: None,
        };
        Decision {
            id: decision_id,
            about: topic,
            owner: "the user who set `approve: each`".into(),
            question,
            choices: offered,
            answer: None,
        }
    }

    /// Marks the patch as one that the user rejected in an earlier decision.
    pub fn mark_rejected_before(mut self, earlier_decision: Option<DecisionId>) -> Decision {
        if let DecisionTopic::Patch { rejected_in, .. } = &mut self.about {
            *rejected_in = earlier_decision;
        }
        self
    }

    /// Returns whether the user rejected exactly this patch here.
    pub fn has_rejected_patch(&self, patch_hash: &Hash) -> bool {
        let is_rejection = self.answer.as_ref().is_some_and(|answer| answer.choice_key() == Some(ChoiceKey::Reject));
        is_rejection && matches!(&self.about, DecisionTopic::Patch { patch, .. } if patch == patch_hash)
    }

    /// Asks about stray edits. Either all of them can be restored, or none.
    pub fn for_stray_edits(decision_id: DecisionId, edits: Vec<StrayEdit>, question: String) -> Decision {
        let keep_choice = (ChoiceKey::Keep, "keep the change (it was you, or it is fine as it is)");
        let restore_choice =
            (ChoiceKey::Restore, "restore the previous content (a copy of the current content is kept)");
        // An answer applies to all files of the question, so restoring is offered only if it is possible for all of them.
        let offered = match edits.iter().all(|stray_edit| stray_edit.kept) {
            true => build_choices(&[keep_choice, restore_choice]),
            false => build_choices(&[keep_choice]),
        };
        let owner = "the user of this directory".into();
        Decision {
            id: decision_id,
            about: DecisionTopic::Strayed { strays: edits },
            owner,
            question,
            choices: offered,
            answer: None,
        }
    }

    pub fn for_low_confidence(decision_id: DecisionId, question: String) -> Decision {
        let offered = build_choices(&[
            (ChoiceKey::Accept, "good enough; end the run"),
            (ChoiceKey::More, "review once more (without new signals the confidence will not change)"),
        ]);
        Decision {
            id: decision_id,
            about: DecisionTopic::Confidence,
            owner: "the user who set `target_confidence`".into(),
            question,
            choices: offered,
            answer: None,
        }
    }

    pub fn for_session(decision_id: DecisionId, findings: Vec<FindingId>, question: String) -> Decision {
        let offered = build_choices(&[
            (ChoiceKey::Fixers, "stop waiting for the session; let fixers fix what is open"),
            (ChoiceKey::Accept, "defer the open findings and end the run"),
        ]);
        let owner = "the user of the session".into();
        Decision {
            id: decision_id,
            about: DecisionTopic::Session { findings },
            owner,
            question,
            choices: offered,
            answer: None,
        }
    }

    pub fn for_loop(decision_id: DecisionId, question: String) -> Decision {
        let offered = build_choices(&[
            // A loop belongs to no review, so its answers only concern the session.
            (ChoiceKey::More, "let the session continue, with its limit granted once more"),
            (ChoiceKey::End, "stop here"),
        ]);
        let owner = "the user who started the loop".into();
        Decision { id: decision_id, about: DecisionTopic::Loop, owner, question, choices: offered, answer: None }
    }

    pub fn for_limit(decision_id: DecisionId, question: String) -> Decision {
        let offered = build_choices(&[
            (ChoiceKey::More, "continue, with every limit granted once more"),
            (ChoiceKey::Accept, "defer the open findings and end the run"),
        ]);
        Decision {
            id: decision_id,
            about: DecisionTopic::Limit,
            owner: "the user who sets the budget".into(),
            question,
            choices: offered,
            answer: None,
        }
    }

    pub fn offers_choice(&self, choice_text: &str) -> bool {
        // Compared as text, because an answer may come from a file that the user edited.
        self.choices.iter().any(|offered_choice| offered_choice.key.as_str() == choice_text)
    }
}

fn build_choices(labelled_keys: &[(ChoiceKey, &str)]) -> Vec<DecisionChoice> {
    labelled_keys
        .iter()
        .map(|(choice_key, label)| DecisionChoice { key: *choice_key, label: (*label).into() })
        .collect()
}
