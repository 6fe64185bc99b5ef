//! The types of toy runs: an order is a list of steps.

use std::fmt;

use tribunal_engine::{
    answer::DecisionAnswer,
    answer_to::AnswerTo,
    child_outcome::ChildOutcome,
    children::{AwaitChild, ChildNews, RunChild, StartChild, StartedChild},
    effect::{
        AwaitReset, Elapsed, PostDecision, PostOutcome, ReadInbox, ReadRecords, RecordList, RecordsWritten, Requests,
        Restore, RestoreOutcome, Sleep, WaitForUser, WriteRecords,
    },
    effect_set::EffectSet,
    ids::DecisionId,
    run_types::{AnyEffect, AnyEvent, AnyOrder, AnyRecord, AnyReply, AnyRequest, RunTypes},
    user_remark::{DialogRequest, UserRemark},
};
use tribunal_json::{Deserialize, FromJson, JsonError, Serialize, schemars};

/// The types of all toy runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toy;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToySettings {}

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
    /// Ask the user, and continue with any answer.
    Question {
        text: String,
    },
    /// Run these side by side, and ask for each again as long as it waits.
    Children {
        orders: Vec<ToyOrder>,
    },
    /// Run these, at most so many at once, with a boundary after each that starts or comes back.
    Pool {
        orders: Vec<ToyOrder>,
        at_once: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToyEvent {
    StepDone {
        step: u32,
        text: String,
    },
    /// Something that no workflow records.
    Overheard {
        text: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToySummary {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum ToyTopic {
    Step { step: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum ToyRequest {
    Answer { decision: DecisionId, answer: DecisionAnswer },
    Say(UserRemark),
    Resume,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToyRecord {
    pub text: String,
}

/// The one kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub enum ToyRecordKind {
    Text,
}

impl fmt::Display for ToyRecordKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text")
    }
}

impl AnyRecord for ToyRecord {
    type Kind = ToyRecordKind;
}

macro_rules! toy_effects {
    ($($kind:ident = $name:literal: $effect:ty => $outcome:ty;)*) => {
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(tag = "effect", rename_all = "snake_case")]
        pub enum ToyEffect {
            $($kind($effect),)*
        }

        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(tag = "reply", rename_all = "snake_case")]
        pub enum ToyReply {
            $($kind($outcome),)*
        }

        impl AnyEffect for ToyEffect {
            fn effect_name(&self) -> &'static str {
                match self { $(ToyEffect::$kind(_) => $name,)* }
            }

            fn is_same_request(&self, recorded_effect: &ToyEffect) -> bool {
                self == recorded_effect
            }

            fn awaits_agent(&self) -> bool {
                matches!(self, ToyEffect::AwaitReset(_))
            }
        }

        impl AnyReply for ToyReply {
            fn effect_name(&self) -> &'static str {
                match self { $(ToyReply::$kind(_) => $name,)* }
            }
        }

        $(
            impl From<$effect> for ToyEffect {
                fn from(effect: $effect) -> ToyEffect {
                    ToyEffect::$kind(effect)
                }
            }

            impl AnswerTo<$effect> for ToyReply {
                type Outcome = $outcome;

                fn into_outcome(self) -> Option<$outcome> {
                    match self {
                        ToyReply::$kind(outcome) => Some(outcome),
                        _ => None,
                    }
                }
            }
        )*
    };
}

toy_effects! {
    Sleep = "sleep": Sleep => Elapsed;
    AwaitReset = "await_reset": AwaitReset => Elapsed;
    Inbox = "inbox": ReadInbox => Requests<Toy>;
    Wait = "wait": WaitForUser => Requests<Toy>;
    Restore = "restore": Restore => RestoreOutcome;
    Post = "post": PostDecision<Toy> => PostOutcome;
    ReadRecords = "read_records": ReadRecords<Toy> => RecordList<Toy>;
    WriteRecords = "write_records": WriteRecords<Toy> => RecordsWritten;
    RunChild = "run_child": RunChild<Toy> => ChildOutcome<Toy>;
    StartChild = "start_child": StartChild<Toy> => StartedChild;
    AwaitChild = "await_child": AwaitChild => ChildNews<Toy>;
}

impl RunTypes for Toy {
    type Settings = ToySettings;
    type Order = ToyOrder;
    type Event = ToyEvent;
    type Summary = ToySummary;
    type ChildResult = ToySummary;
    type Topic = ToyTopic;
    type Request = ToyRequest;
    type Record = ToyRecord;
    type Effect = ToyEffect;
    type Reply = ToyReply;
}

impl EffectSet for Toy {}

impl AnyOrder for ToyOrder {
    fn kind_names() -> Vec<&'static str> {
        vec!["toy"]
    }
}

impl AnyEvent for ToyEvent {
    fn kind_name(&self) -> &'static str {
        match self {
            ToyEvent::StepDone { .. } => "step_done",
            ToyEvent::Overheard { .. } => "overheard",
        }
    }

    fn subject_name(&self) -> String {
        match self {
            ToyEvent::StepDone { step, .. } => step.to_string(),
            ToyEvent::Overheard { .. } => String::new(),
        }
    }

    fn is_from_outside(&self) -> bool {
        matches!(self, ToyEvent::Overheard { .. })
    }

    fn read_event(_: &str, json: serde_json::Value) -> Result<ToyEvent, JsonError> {
        ToyEvent::from_value(json)
    }

    fn all_kind_names() -> Vec<&'static str> {
        vec!["step_done", "overheard"]
    }

    fn has_kind_name(kind_name: &str) -> bool {
        ToyEvent::all_kind_names().contains(&kind_name)
    }
}

impl AnyRequest for ToyRequest {
    fn into_dialog(self) -> Result<DialogRequest, ToyRequest> {
        match self {
            ToyRequest::Answer { decision, answer } => Ok(DialogRequest::Answer { decision, answer }),
            ToyRequest::Say(remark) => Ok(DialogRequest::Say(remark)),
            ToyRequest::Resume => Err(ToyRequest::Resume),
        }
    }
}
