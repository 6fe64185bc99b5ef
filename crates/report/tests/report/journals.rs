//! Journals that tests write themselves.

use tribunal_engine::{event::ParentRun, ids::RunId, timestamp::Timestamp};
use tribunal_workflows::runs::{
    kinds::RunOrder,
    settings::Settings,
    types::{JournalEntry, RunEvent},
};

/// Makes a journal of these events, a second apart.
pub(crate) fn journal_of(run_id: &str, events: Vec<RunEvent>) -> Vec<JournalEntry> {
    let make_entry = |(index, event): (usize, RunEvent)| JournalEntry {
        v: 1,
        run: RunId::new(run_id),
        seq: index as u64 + 1,
        id: format!("e{index}"),
        at: Timestamp { wall_ms: 1_794_754_020_000 + index as u64 * 1_000, awake_ms: index as u64 * 1_000 },
        event,
    };
    events.into_iter().enumerate().map(make_entry).collect()
}

/// The start of a run.
pub(crate) fn run_started(settings: Settings, order: impl Into<RunOrder>, parent: Option<ParentRun>) -> RunEvent {
    RunEvent::RunStarted {
        version: 1,
        build: "tribunal 0.1.0".into(),
        settings,
        order: order.into(),
        parent,
        batch: None,
    }
}
