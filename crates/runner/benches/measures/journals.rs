//! Measures how long reading journals takes.

use std::{hint::black_box, path::Path};

use tribunal_core::{
    desk::History,
    event::{Draft, Entry},
    ids::RunId,
    stamp::Stamp,
    view::RunView,
};
use tribunal_store::{Batch, NewEntry, Store};
use tribunal_testkit::{SAMPLE_JOURNAL, entries};

use crate::{Outcome, cpu::Cpu, say};

const EVENTS: usize = 100_000;
const RUNS: usize = 1_000;

/// Records the entries of a real run under another name; `copy_number` makes their ids unique.
fn record(store: &Store, run: &RunId, copy: usize, entries: &[Entry]) -> Outcome<()> {
    let entries = entries.iter().map(|entry| NewEntry {
        run: run.clone(),
        at: Stamp { wall_ms: entry.at.wall_ms + copy as u64, ..entry.at },
        draft: Draft { id: format!("{copy}:{}", entry.id), event: entry.event.clone() },
    });
    store.append(Batch { entries: entries.collect(), ..Batch::default() })?;
    Ok(())
}

/// Measures what resuming reads: entries from the store, the view folded from them, and the history that the replayer needs.
/// The journal is a recorded review many times over, including its boundaries.
pub fn replay() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let recorded = entries(SAMPLE_JOURNAL);
    let run = RunId::new("long");
    let store = Store::open(folder.path())?;
    for copy in 0..EVENTS.div_ceil(recorded.len()) {
        record(&store, &run, copy, &recorded)?;
    }
    let before = Cpu::now()?;
    let read = store.entries_to_go_on(&run)?;
    let view = RunView::of(&read);
    let last = read.last().map_or(0, |entry| entry.seq);
    black_box(History::of(read));
    let spent = Cpu::now()?.since(before).own;
    if last < EVENTS as u64 {
        return Err(format!("{last} entries instead of {EVENTS}").into());
    }
    if view.findings.len() != RunView::of(&recorded).findings.len() {
        return Err("the view is not the one of all entries".into());
    }
    say("replay", spent)
}

/// Fills a project's `.tribunal` with a thousand runs, for listing them from outside.
pub fn many_runs(folder: &Path) -> Outcome<()> {
    let recorded = entries(SAMPLE_JOURNAL);
    let store = Store::open(folder)?;
    for number in 0..RUNS {
        record(&store, &RunId::new(format!("prd-{number:04}")), number, &recorded)?;
    }
    say("many-runs", (RUNS * recorded.len()) as f64)
}
