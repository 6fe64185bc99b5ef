//! The questions that a review asks the user, with the answers they offer.

use alloc::{string::String, vec::Vec};

use crate::{
    review::topic::ReviewTopic,
    runs::{
        kinds::WorkflowTopic,
        types::{Decision, DecisionTopic, find_topic},
        user_request::UserRequest,
    },
};
use tribunal_engine::{
    answer::ChoiceKey,
    decision::build_choices,
    files::Patch,
    ids::{DecisionId, FindingId, Hash, Key},
};

fn review_topic(topic: ReviewTopic) -> DecisionTopic {
    DecisionTopic::Workflow(WorkflowTopic::Review(topic))
}

pub fn ask_about_blocked_finding(decision_id: DecisionId, finding: FindingId, question: String) -> Decision {
    let offered = build_choices(&[
        (ChoiceKey::Retry, "let a fixer try again (your note is passed on)"),
        (ChoiceKey::Dismiss, "not an issue"),
        (ChoiceKey::Defer, "a real issue, but not now"),
    ]);
    Decision {
        id: decision_id,
        about: review_topic(ReviewTopic::Blocked { finding }),
        owner: "product owner".into(),
        question,
        choices: offered,
        answer: None,
    }
}

pub fn ask_about_disputed_finding(decision_id: DecisionId, finding: FindingId, question: String) -> Decision {
    let offered = build_choices(&[
        (ChoiceKey::Uphold, "a real issue; let a fixer fix it"),
        (ChoiceKey::Dismiss, "not an issue"),
        (ChoiceKey::Defer, "a real issue, but not now"),
    ]);
    Decision {
        id: decision_id,
        about: review_topic(ReviewTopic::Disputed { finding }),
        owner: "product owner".into(),
        question,
        choices: offered,
        answer: None,
    }
}

/// Asks whether a patch may land. `task_key` is the key of the task that made it. A patch that the user has rejected
/// before is marked with [`mark_rejected_before`].
pub fn ask_about_patch(
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
    let topic = ReviewTopic::Patch {
        by: task_key.clone(),
        patch: patch.hash.clone(),
        diff: patch.diff.clone(),
        findings,
        rejected_in: None,
    };
    Decision {
        id: decision_id,
        about: review_topic(topic),
        owner: "the user of this directory".into(),
        question,
        choices: offered,
        answer: None,
    }
}

/// Marks the patch as one that the user rejected in an earlier decision.
pub fn mark_rejected_before(mut decision: Decision, earlier_decision: Option<DecisionId>) -> Decision {
    if let DecisionTopic::Workflow(WorkflowTopic::Review(ReviewTopic::Patch { rejected_in, .. })) = &mut decision.about
    {
        *rejected_in = earlier_decision;
    }
    decision
}

/// Returns whether the user rejected exactly this patch here.
pub fn has_rejected_patch(decision: &Decision, patch_hash: &Hash) -> bool {
    let is_rejection = decision.answer.as_ref().is_some_and(|answer| answer.choice_key() == Some(ChoiceKey::Reject));
    is_rejection
        && matches!(find_topic::<ReviewTopic>(&decision.about), Some(ReviewTopic::Patch { patch, .. }) if patch == patch_hash)
}

pub fn ask_about_low_confidence(decision_id: DecisionId, question: String) -> Decision {
    let offered = build_choices(&[
        (ChoiceKey::Accept, "good enough; end the run"),
        (ChoiceKey::More, "review once more (without new signals the confidence will not change)"),
    ]);
    Decision {
        id: decision_id,
        about: review_topic(ReviewTopic::Confidence),
        owner: "the user who set `target_confidence`".into(),
        question,
        choices: offered,
        answer: None,
    }
}

/// Asks whether the user made these edits of the tracker.
pub fn ask_about_tracker_edits(decision_id: DecisionId, requests: Vec<UserRequest>, question: String) -> Decision {
    let offered = build_choices(&[
        (ChoiceKey::Keep, "it was you; apply these edits"),
        (ChoiceKey::Restore, "it was not you, or they are not wanted; ignore them"),
    ]);
    Decision {
        id: decision_id,
        about: review_topic(ReviewTopic::Tracker { requests }),
        owner: "the user of this directory".into(),
        question,
        choices: offered,
        answer: None,
    }
}

pub fn ask_about_session(decision_id: DecisionId, findings: Vec<FindingId>, question: String) -> Decision {
    let offered = build_choices(&[
        (ChoiceKey::Fixers, "stop waiting for the session; let fixers fix what is open"),
        (ChoiceKey::Accept, "defer the open findings and end the run"),
    ]);
    let owner = "the user of the session".into();
    Decision {
        id: decision_id,
        about: review_topic(ReviewTopic::Session { findings }),
        owner,
        question,
        choices: offered,
        answer: None,
    }
}
