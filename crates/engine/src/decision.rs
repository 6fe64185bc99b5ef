//! A question that only the user can answer. It waits in the journal, not in a process.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    answer::{ChoiceKey, DecisionAnswer},
    files::StrayEdit,
    ids::DecisionId,
    run_types::RunTypes,
};

/// What a decision is about. This also defines what its answers mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
#[schemars(bound = "", rename = "DecisionTopic")]
pub enum DecisionTopic<T: RunTypes> {
    /// Files changed while agents were at work, and not by a landing.
    Strayed { strays: Vec<StrayEdit> },
    /// A limit ended the run before all work was done.
    Limit,
    /// A question that only this kind of run asks.
    #[serde(untagged)]
    Workflow(T::Topic),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DecisionChoice {
    /// The text that the user types.
    pub key: ChoiceKey,
    pub label: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "", rename = "Decision")]
pub struct Decision<T: RunTypes> {
    pub id: DecisionId,
    pub about: DecisionTopic<T>,
    /// Who should answer, for instance `product owner`.
    pub owner: String,
    pub question: String,
    pub choices: Vec<DecisionChoice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<DecisionAnswer>,
}

impl<T: RunTypes> Decision<T> {
    /// Asks about stray edits. An answer applies to all of them, as far as they can be put back.
    pub fn for_stray_edits(decision_id: DecisionId, edits: Vec<StrayEdit>, question: String) -> Decision<T> {
        let keep_choice = (ChoiceKey::Keep, "it was you, or it is fine: keep everything as it is now");
        let restore_label = match edits.iter().all(|stray_edit| stray_edit.kept) {
            true => "it was not you: put back everything as it was (what is there now is kept in .tribunal/parked)",
            false => "it was not you: put back what can be put back (what is there now is kept in .tribunal/parked)",
        };
        let offered = match edits.iter().any(|stray_edit| stray_edit.kept) {
            true => build_choices(&[keep_choice, (ChoiceKey::Restore, restore_label)]),
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

    pub fn for_limit(decision_id: DecisionId, question: String) -> Decision<T> {
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

pub fn build_choices(labelled_keys: &[(ChoiceKey, &str)]) -> Vec<DecisionChoice> {
    labelled_keys
        .iter()
        .map(|(choice_key, label)| DecisionChoice { key: *choice_key, label: (*label).into() })
        .collect()
}
