//! What a toy run was asked to do.

use alloc::{boxed::Box, string::String, vec, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    runs::{kinds::RunOrder, run_kind::RunKind},
    tasks::{client::JobKind, purpose::ExpectedAnswer},
    toy::event::ToyEvent,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToyOrder {
    pub name: String,
    pub steps: Vec<ToyStep>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum ToyStep {
    Sleep {
        ms: u64,
    },
    /// Ask an agent, without a subject. The run fails if no agent gives an answer of this form.
    Ask {
        text: String,
        expects: ExpectedAnswer,
    },
    /// Ask the user, and continue with any answer.
    Question {
        text: String,
    },
    /// Run these side by side. Children that wait are waited for after the last step.
    Children {
        children: Vec<ToyChild>,
    },
    /// Run these, at most so many at once, and go on to a boundary whenever one begins or comes back. Children that wait are waited for
    /// after the last step.
    Pool {
        children: Vec<ToyChild>,
        at_once: u32,
    },
    /// End the run as failed.
    Fail {
        detail: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToyChild {
    pub name: String,
    pub order: Box<RunOrder>,
}

impl ToyStep {
    /// The child runs of the step.
    pub fn list_children(&self) -> &[ToyChild] {
        match self {
            ToyStep::Children { children } | ToyStep::Pool { children, .. } => children,
            ToyStep::Sleep { .. } | ToyStep::Ask { .. } | ToyStep::Question { .. } | ToyStep::Fail { .. } => &[],
        }
    }
}

impl RunKind for ToyOrder {
    const NAME: &'static str = "toy";
    const VERSION: u32 = 1;
    type Event = ToyEvent;
    type Summary = ToySummary;
    type Topic = ToyTopic;

    fn title(&self) -> String {
        self.name.clone()
    }

    fn file_slug(&self) -> String {
        self.name.clone()
    }

    fn needed_jobs(&self) -> Vec<JobKind> {
        let asks_agent = self.steps.iter().any(|step| matches!(step, ToyStep::Ask { .. }));
        if asks_agent { vec![JobKind::Step] } else { Vec::new() }
    }
}

/// What a toy run has to say at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToySummary {
    pub steps_done: u32,
}

/// What the questions of a toy run are about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum ToyTopic {
    ToyStep { step: u32 },
}
