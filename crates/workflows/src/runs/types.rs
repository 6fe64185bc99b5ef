//! The engine's types with the types of the workflows.

use crate::{
    findings::reported_finding::LeftFindings,
    runs::{
        effect::{Effect, Reply},
        kinds::{EventOfKind, RunOrder, TopicOfKind, WorkflowEvent, WorkflowSummary, WorkflowTopic},
        records::ProjectRecord,
        settings::Settings,
        user_request::UserRequest,
    },
};

/// The kinds of runs that Tribunal has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds;

impl tribunal_engine::run_types::RunTypes for Kinds {
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

impl tribunal_engine::effect_set::EffectSet for Kinds {}

pub type RunHost<'h> = dyn tribunal_engine::host::Host<Kinds> + 'h;
pub type JournalEntry = tribunal_engine::event::JournalEntry<Kinds>;
pub type EntryDraft = tribunal_engine::event::EntryDraft<Kinds>;
pub type RunEvent = tribunal_engine::event::RunEvent<Kinds>;
pub type RunSummary = tribunal_engine::event::RunSummary<Kinds>;
pub type Replayer = tribunal_engine::replayer::Replayer<Kinds>;
pub type ReplayHistory = tribunal_engine::replayer::ReplayHistory<Kinds>;
pub type PendingEffect = tribunal_engine::replayer::PendingEffect<Kinds>;
pub type WorkflowPoll<V> = tribunal_engine::replayer::WorkflowPoll<Kinds, V>;
pub type RunChild = tribunal_engine::children::RunChild<Kinds>;
pub type ChildOutcome = tribunal_engine::child_outcome::ChildOutcome<Kinds>;
pub type ChildReport = tribunal_engine::child_outcome::ChildReport<Kinds>;
pub type StartChild = tribunal_engine::children::StartChild<Kinds>;
pub type ChildNews = tribunal_engine::children::ChildNews<Kinds>;
pub type ReturnedChild = tribunal_engine::child_outcome::ReturnedChild<Kinds>;
pub type ChildQueue = tribunal_engine::child_queue::ChildQueue<Kinds>;
pub type ChildStanding = tribunal_engine::children::ChildStanding<Kinds>;
pub type PostDecision = tribunal_engine::effect::PostDecision<Kinds>;
pub type Requests = tribunal_engine::effect::Requests<Kinds>;
pub type ReadRecords = tribunal_engine::effect::ReadRecords<Kinds>;
pub type WriteRecords = tribunal_engine::effect::WriteRecords<Kinds>;
pub type RecordList = tribunal_engine::effect::RecordList<Kinds>;
pub type StoredRecord = tribunal_engine::records::StoredRecord<Kinds>;
pub type RecordChange = tribunal_engine::records::RecordChange<Kinds>;
pub type Decision = tribunal_engine::decision::Decision<Kinds>;
pub type DecisionTopic = tribunal_engine::decision::DecisionTopic<Kinds>;
pub type UserDialog = tribunal_engine::dialog::user_dialog::UserDialog<Kinds>;
pub type CountedAnswer = tribunal_engine::dialog::user_dialog::CountedAnswer<Kinds>;

/// Returns the event of one kind of run, if that is what it is.
pub fn find_event<E: EventOfKind>(event: &RunEvent) -> Option<&E> {
    match event {
        RunEvent::Workflow(event) => E::from_event(event),
        _ => None,
    }
}

/// Returns what a question of one kind of run is about, if it is of that kind.
pub fn find_topic<P: TopicOfKind>(about: &DecisionTopic) -> Option<&P> {
    match about {
        DecisionTopic::Workflow(topic) => P::from_topic(topic),
        _ => None,
    }
}
