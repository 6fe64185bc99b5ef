//! The state of the live view of several runs: one row for each run of the command.
//!
//! Every row has the board of its run, which journal entries feed as in the view of a single run. [`super::multi_frame`]
//! draws the rows.

use tribunal_core::{
    engine::{event::JournalEntry, limits::Cost, progress::AgentProgress, reason::RunOutcome},
    review::counts::FindingCounts,
};

use super::{
    board::{LiveBoard, LiveStage, ViewControls},
    worker::WorkerState,
};
use crate::terminal_text::clean_line;

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

    /// Counts the agents that work right now.
    pub(super) fn count_working_agents(&self) -> usize {
        let is_working =
            |state: &WorkerState| matches!(state, WorkerState::Working { .. } | WorkerState::Landing { .. });
        self.board.workers.iter().filter(|worker| is_working(&worker.state)).count()
    }

    /// Returns whether an agent of the run has not reported anything for long.
    pub(super) fn is_stalled(&self) -> bool {
        self.state == RunRowState::Working
            && self.board.workers.iter().any(|worker| worker.stalled_ms(self.board.awake_ms).is_some())
    }

    /// The number of the round that is under way or was the last one; 0 before the first.
    pub(super) fn round_number(&self) -> u32 {
        self.board.round_strip.last().map_or(0, |last_round| last_round.round_number)
    }

    /// The word for the stage.
    pub(super) fn stage_word(&self) -> &'static str {
        match self.board.current_stage {
            LiveStage::Starting => "starting",
            LiveStage::Reviewing => "reviewing",
            LiveStage::Challenging => "challenging",
            LiveStage::Fixing(_) => "fixing",
        }
    }

    /// The figures of this row; `None` as long as there is nothing to count.
    pub(super) fn to_figures(&self) -> Option<RunFigures> {
        let run_view = &self.board.run_view;
        self.board.has_started().then(|| RunFigures {
            counts: run_view.finding_counts(),
            tokens: run_view.usage.tokens,
            paid_cost: Cost(run_view.usage.cost.0.saturating_sub(run_view.usage.notional.0)),
            elapsed_ms: run_view.run_summary().map_or(self.board.awake_ms, |summary| summary.elapsed_ms),
        })
    }
}

/// The figures of one row, or of all rows together.
#[derive(Clone, Debug, Default)]
pub(super) struct RunFigures {
    pub counts: FindingCounts,
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
        let mut total = RunFigures { elapsed_ms: self.elapsed_ms, ..RunFigures::default() };
        for figures in self.rows.iter().filter_map(RunTableRow::to_figures) {
            total.counts.total += figures.counts.total;
            total.counts.fixed += figures.counts.fixed;
            total.counts.open += figures.counts.open;
            total.tokens += figures.tokens;
            total.paid_cost = Cost(total.paid_cost.0.saturating_add(figures.paid_cost.0));
        }
        total
    }
}
