//! The types that the engine leaves open: the workflows choose them, once, for all kinds of runs.

use alloc::{string::String, vec::Vec};
use core::fmt::{Debug, Display};

use tribunal_json::{FromJson, JsonError, Serialize, ToJson, schemars};

use crate::{ids::Hash, user_remark::DialogRequest};

/// What a journal can hold.
pub trait Recorded:
    Clone + Debug + PartialEq + Eq + ToJson + FromJson + Serialize + schemars::JsonSchema + 'static
{
}

impl<T: Clone + Debug + PartialEq + Eq + ToJson + FromJson + Serialize + schemars::JsonSchema + 'static> Recorded
    for T
{
}

/// The types of all runs of a program.
pub trait RunTypes: Copy + Debug + Default + PartialEq + Eq + 'static {
    /// What a run is pinned to.
    type Settings: Recorded;
    /// What a run was asked to do.
    type Order: AnyOrder;
    /// What a workflow notes as it proceeds.
    type Event: AnyEvent;
    /// What only one kind of run has to say at its end.
    type Summary: Recorded;
    /// What a child reports to its parent besides how it ended.
    type ChildResult: Recorded;
    /// What a question is about, if only one kind of run asks it.
    type Topic: Recorded;
    /// What the user can request from a run.
    type Request: AnyRequest;
    /// What outlives a run.
    type Record: AnyRecord;
    /// What a workflow can request: the effects of the engine, and those of the workflows.
    type Effect: AnyEffect;
    /// The results of effects.
    type Reply: AnyReply;
}

/// The orders of all kinds of runs.
pub trait AnyOrder: Recorded {
    /// The names of all kinds that this build has.
    fn kind_names() -> Vec<&'static str>;
}

/// The events of all kinds of runs.
pub trait AnyEvent: Recorded {
    /// The `kind` as JSON has it.
    fn kind_name(&self) -> &'static str;

    /// Names what the event is about. Together with the kind it forms a name that does not depend on other events.
    fn subject_name(&self) -> String;

    /// Whether something else than the workflow records the event, at any time: a replay does not expect it.
    fn is_from_outside(&self) -> bool;

    /// Reads an event by its `kind`.
    fn read_event(kind_name: &str, json: serde_json::Value) -> Result<Self, JsonError>;

    /// The `kind` of every event.
    fn all_kind_names() -> Vec<&'static str>;

    /// Whether some kind of run has an event of this name.
    fn has_kind_name(kind_name: &str) -> bool;
}

/// The effects that workflows can request.
pub trait AnyEffect: Recorded {
    /// The name in the journal.
    fn effect_name(&self) -> &'static str;

    /// Whether both effects request the same thing, although they may differ in what the user can change before a resume.
    fn is_same_request(&self, recorded_effect: &Self) -> bool;

    /// Whether the effect waits until an agent may be asked again.
    fn awaits_agent(&self) -> bool;

    /// Returns a hash that is equal for equal effects, on every machine and in every release that writes the same JSON.
    fn compute_fingerprint(&self) -> Result<Hash, serde_json::Error> {
        serde_json::to_vec(self).map(|bytes| Hash::digest_of(&bytes))
    }
}

/// The results of effects.
pub trait AnyReply: Recorded {
    /// The name of the effect in the journal.
    fn effect_name(&self) -> &'static str;
}

/// What users can request from runs.
pub trait AnyRequest: Recorded {
    /// Takes the request as a part of the dialog that every run has with its user; `Err` gives back all others.
    fn into_dialog(self) -> Result<DialogRequest, Self>;
}

/// The project records of all kinds.
pub trait AnyRecord: Recorded {
    type Kind: Recorded + Copy + Ord + Display;
}
