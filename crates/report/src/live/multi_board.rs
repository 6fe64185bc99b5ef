//! The state of the live view of several runs: one row for each run of the command.
//!
//! Every row has the board of its run, which journal entries feed as in the view of a single run. [`super::multi_frame`]
//! draws the rows.

use tribunal_engine::{limits::Cost, progress::AgentProgress, reason::RunOutcome};
use tribunal_workflows::runs::types::JournalEntry;

use super::board::{LiveBoard, ViewControls};
use crate::{kind_reporter::ItemCounts, kind_table, terminal_text::clean_line};

/// How a row ended, if its run did not record an ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunRowEnding {
    /// The run recorded its ending, and the row shows that.
    Recorded,
    /// The run began and broke off.
    BrokeOff,
    /// The run never began.
    NotStarted,
}

/// What a row's run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunRowState {
    Queued,
    Working,
    Ended(RunRowEnding),
}

/// One run of several.
#[derive(Clone, Debug)]
pub(super) struct RunTableRow {
    /// The subject's title.
    pub subject_title: String,
    pub board: LiveBoard,
    pub state: RunRowState,
}

impl RunTableRow {
    /// Returns how the run ended according to its journal; `None` inside means that it was interrupted.
    pub(super) fn recorded_outcome(&self) -> Option<Option<RunOutcome>> {
        self.board.run_view.run_summary().map(|summary| summary.outcome)
    }

    /// Returns whether an agent of the run has not reported anything for long.
    pub(super) fn is_stalled(&self) -> bool {
        self.state == RunRowState::Working && self.board.workers.has_stalled(self.board.awake_ms)
    }

    /// The figures of this row; `None` as long as there is nothing to count.
    pub(super) fn to_figures(&self) -> Option<RunFigures> {
        let run_view = &self.board.run_view;
        let usage = run_view.total_usage().usage_totals();
        self.board.has_started().then(|| RunFigures {
            items: kind_table::find_result(run_view).and_then(|result| kind_table::count_items(&result)),
            tokens: usage.tokens,
            paid_cost: usage.paid_cost(),
            elapsed_ms: run_view.run_summary().map_or(self.board.awake_ms, |summary| summary.elapsed_ms),
        })
    }
}

/// The figures of one row, or of all rows together.
#[derive(Clone, Debug, Default)]
pub(super) struct RunFigures {
    /// What was found; `None` if runs of this kind have nothing to count.
    pub items: Option<ItemCounts>,
    pub tokens: u64,
    /// What was paid, without what a subscription covers.
    pub paid_cost: Cost,
    pub elapsed_ms: u64,
}

/// Everything that the live view of several runs shows.
#[derive(Clone, Debug)]
pub struct MultiRunBoard {
    pub controls: ViewControls,
    pub(super) rows: Vec<RunTableRow>,
    /// How long the command has been working.
    pub(super) elapsed_ms: u64,
}

impl MultiRunBoard {
    /// Makes a board on which every run is queued. Runs are addressed by their positions in `subject_titles`.
    pub fn new(controls: ViewControls, subject_titles: &[String]) -> MultiRunBoard {
        let make_row = |subject_title: &String| RunTableRow {
            // Titles contain file names, which may contain anything.
            subject_title: clean_line(subject_title),
            board: LiveBoard::new(controls),
            state: RunRowState::Queued,
        };
        MultiRunBoard { controls, rows: subject_titles.iter().map(make_row).collect(), elapsed_ms: 0 }
    }

    /// Sets the time that the command has been working.
    pub fn advance_clock(&mut self, elapsed_ms: u64) {
        self.elapsed_ms = self.elapsed_ms.max(elapsed_ms);
    }

    /// Sets the awake time of one run.
    pub fn advance_run_clock(&mut self, run_index: usize, awake_ms: u64) {
        if let Some(row) = self.rows.get_mut(run_index).filter(|row| row.state == RunRowState::Working) {
            row.board.advance_clock(awake_ms);
        }
    }

    /// Shows that a run's turn has come.
    pub fn start_run(&mut self, run_index: usize) {
        if let Some(row) = self.rows.get_mut(run_index) {
            row.state = RunRowState::Working;
        }
    }

    /// Shows that a run has ended, and how if its journal does not say so.
    pub fn end_run(&mut self, run_index: usize, ending: RunRowEnding) {
        if let Some(row) = self.rows.get_mut(run_index) {
            row.state = RunRowState::Ended(ending);
        }
    }

    /// Updates the row of a run with its next journal entry.
    pub fn track_entry(&mut self, run_index: usize, journal_entry: &JournalEntry) {
        if let Some(row) = self.rows.get_mut(run_index) {
            row.board.track_entry(journal_entry);
        }
    }

    /// Updates the row of a run with what one of its agents reports.
    pub fn note_progress(&mut self, run_index: usize, progress: &AgentProgress) {
        if let Some(row) = self.rows.get_mut(run_index) {
            row.board.note_progress(progress);
        }
    }

    /// Returns whether any run is queued or working.
    pub(super) fn is_running(&self) -> bool {
        self.rows.iter().any(|row| !matches!(row.state, RunRowState::Ended(_)))
    }

    /// Counts the rows in a state.
    pub(super) fn count_rows(&self, is_counted: impl Fn(RunRowState) -> bool) -> usize {
        self.rows.iter().filter(|row| is_counted(row.state)).count()
    }

    /// Adds up the figures of all rows. The time is that of the command: runs work side by side.
    pub(super) fn total_figures(&self) -> RunFigures {
        let mut items = ItemCounts::default();
        let mut total = RunFigures { elapsed_ms: self.elapsed_ms, ..RunFigures::default() };
        for figures in self.rows.iter().filter_map(RunTableRow::to_figures) {
            let row_items = figures.items.unwrap_or_default();
            items.found += row_items.found;
            items.fixed += row_items.fixed;
            items.open += row_items.open;
            total.tokens += figures.tokens;
            total.paid_cost += figures.paid_cost;
        }
        RunFigures { items: Some(items), ..total }
    }
}
