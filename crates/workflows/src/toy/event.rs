//! What a toy run records, besides what every run records.

use alloc::{format, string::String};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::runs::run_kind::KindEvent;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToyEvent {
    ToyStepDone { step: u32, text: String },
}

impl KindEvent for ToyEvent {
    const KIND_NAMES: &'static [&'static str] = &["toy_step_done"];

    fn kind_name(&self) -> &'static str {
        match self {
            ToyEvent::ToyStepDone { .. } => "toy_step_done",
        }
    }

    fn subject_name(&self) -> String {
        match self {
            ToyEvent::ToyStepDone { step, .. } => format!("{step}"),
        }
    }
}
