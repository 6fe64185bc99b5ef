//! The engine's types with the types of the workflows.

use crate::{
    decisions, engine,
    review::reported_finding::LeftFindings,
    runs::{
        effect::{Effect, Reply},
        kinds::{RunOrder, WorkflowEvent, WorkflowSummary, WorkflowTopic},
        records::ProjectRecord,
        settings::Settings,
        user_request::UserRequest,
    },
};

/// The kinds of runs that Tribunal has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds;

impl engine::run_types::RunTypes for Kinds {
    type Settings = Settings;
    type Order = RunOrder;
    type Event = WorkflowEvent;
    type Summary = WorkflowSummary;
    type ChildResult = LeftFindings;
    type Topic = WorkflowTopic;
    type Request = UserRequest;
    type Record = ProjectRecord;
    type Effect = Effect;
    type Reply = Reply;
}

pub type RunHost<'h> = dyn engine::host::Host<Kinds> + 'h;
pub type JournalEntry = engine::event::JournalEntry<Kinds>;
pub type EntryDraft = engine::event::EntryDraft<Kinds>;
pub type RunEvent = engine::event::RunEvent<Kinds>;
pub type RunSummary = engine::event::RunSummary<Kinds>;
pub type Replayer = engine::replayer::Replayer<Kinds>;
pub type ReplayHistory = engine::replayer::ReplayHistory<Kinds>;
pub type PendingEffect = engine::replayer::PendingEffect<Kinds>;
pub type WorkflowPoll<V> = engine::replayer::WorkflowPoll<Kinds, V>;
pub type RunChild = engine::children::RunChild<Kinds>;
pub type ChildOutcome = engine::children::ChildOutcome<Kinds>;
pub type ChildReport = engine::children::ChildReport<Kinds>;
pub type ChildStanding = engine::children::ChildStanding<Kinds>;
pub type PostDecision = engine::effect::PostDecision<Kinds>;
pub type Requests = engine::effect::Requests<Kinds>;
pub type ReadRecords = engine::effect::ReadRecords<Kinds>;
pub type WriteRecords = engine::effect::WriteRecords<Kinds>;
pub type RecordList = engine::effect::RecordList<Kinds>;
pub type StoredRecord = engine::records::StoredRecord<Kinds>;
pub type RecordChange = engine::records::RecordChange<Kinds>;
pub type Decision = decisions::decision::Decision<Kinds>;
pub type DecisionTopic = decisions::decision::DecisionTopic<Kinds>;
pub type UserDialog = decisions::dialog::UserDialog<Kinds>;
pub type CountedAnswer = decisions::dialog::CountedAnswer<Kinds>;
