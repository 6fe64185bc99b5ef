//! The question about a loop that was released before it was done.

use alloc::string::String;

use crate::{
    runs::{
        kinds::WorkflowTopic,
        types::{Decision, DecisionTopic},
    },
    session::order::SessionTopic,
};
use tribunal_engine::{answer::ChoiceKey, decision::build_choices, ids::DecisionId};

pub fn ask_about_loop(decision_id: DecisionId, question: String) -> Decision {
    let offered = build_choices(&[
        // A loop belongs to no review, so its answers only concern the session.
        (ChoiceKey::More, "let the session continue, with its limit granted once more"),
        (ChoiceKey::End, "stop here"),
    ]);
    let owner = "the user who started the loop".into();
    Decision {
        id: decision_id,
        about: DecisionTopic::Workflow(WorkflowTopic::Session(SessionTopic::Loop)),
        owner,
        question,
        choices: offered,
        answer: None,
    }
}
