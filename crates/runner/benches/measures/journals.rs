//! Measures how long reading journals takes.

use std::{hint::black_box, path::Path};

use tribunal_engine::{ids::RunId, timestamp::Timestamp};
use tribunal_store::{EntryBatch, NewEntry, Store};
use tribunal_testkit::{SAMPLE_JOURNAL, parse_entries};
use tribunal_workflows::runs::{
    types::{EntryDraft, JournalEntry, ReplayHistory},
    view::RunView,
};

use crate::{BenchResult, cpu::CpuTime, print_figure};

/// Records the entries of a real run under another name; `copy_number` makes their ids unique.
fn record_copy(store: &Store, run_id: &RunId, copy_number: usize, entries: &[JournalEntry]) -> BenchResult<()> {
    let entries = entries.iter().map(|entry| NewEntry {
        run_id: run_id.clone(),
        timestamp: Timestamp { wall_ms: entry.at.wall_ms + copy_number as u64, ..entry.at },
        draft: EntryDraft { id: format!("{copy_number}:{}", entry.id), event: entry.event.clone() },
    });
    store.append(EntryBatch { entries: entries.collect(), ..EntryBatch::default() })?;
    Ok(())
}

/// Measures what resuming reads: entries from the store, the view folded from them, and the history that the replayer needs.
/// The journal is a recorded review many times over, including its boundaries.
pub fn measure_replay(event_count: usize) -> BenchResult<()> {
    let directory = tempfile::tempdir()?;
    let recorded = parse_entries(SAMPLE_JOURNAL);
    let run_id = RunId::new("long");
    let store = Store::open(directory.path())?;
    for copy_number in 0..event_count.div_ceil(recorded.len()) {
        record_copy(&store, &run_id, copy_number, &recorded)?;
    }
    let cpu_before = CpuTime::measure_now()?;
    let read_entries = store.entries_for_resume(&run_id)?;
    let view = RunView::from_entries(&read_entries);
    let last_timestamp = read_entries.last().map_or(0, |entry| entry.seq);
    black_box(ReplayHistory::from_entries(read_entries));
    let spent = CpuTime::measure_now()?.time_since(cpu_before).own_ms;
    if last_timestamp < event_count as u64 {
        return Err(format!("{last_timestamp} entries instead of {event_count}").into());
    }
    if view.all_findings().count() != RunView::from_entries(&recorded).all_findings().count() {
        return Err("the view is not the one of all entries".into());
    }
    print_figure("replay-events", event_count as f64)?;
    print_figure("replay", spent)
}

/// Fills a project's `.tribunal` with so many runs, for listing them from outside.
pub fn create_many_runs(directory: &Path, run_count: usize) -> BenchResult<()> {
    let recorded = parse_entries(SAMPLE_JOURNAL);
    let store = Store::open(directory)?;
    for number in 0..run_count {
        record_copy(&store, &RunId::new(format!("prd-{number:04}")), number, &recorded)?;
    }
    print_figure("many-runs", run_count as f64)
}
