//! Reports several runs on a terminal: their labelled lines above, and below them a region with one row for each run.

use std::io::{self, Write};

use tribunal_engine::progress::AgentProgress;
use tribunal_workflows::runs::types::JournalEntry;

use super::{
    LiveScreen, REPAINT_INTERVAL_MS,
    board::ViewControls,
    multi_board::{MultiRunBoard, RunRowEnding},
    region::TerminalRegion,
};
use crate::{DisplayMode, MultiRunReporter, Reporter, RunLabel, style::Screen};

/// The subject of one of several runs.
#[derive(Clone, Debug)]
pub struct MultiRunSubject {
    /// The title that its row shows.
    pub title: String,
    pub label: RunLabel,
}

/// Reports several runs on a terminal. A run is addressed by its position among the subjects.
#[derive(Debug)]
pub struct MultiLiveReporter<W> {
    region: TerminalRegion<W>,
    screen: Screen,
    /// The height of the terminal.
    screen_rows: usize,
    board: MultiRunBoard,
    /// The labelled lines of each run.
    run_reporters: Vec<MultiRunReporter<Vec<u8>>>,
    painted_ms: u64,
    is_stale: bool,
}

impl<W: Write> MultiLiveReporter<W> {
    pub fn new(
        writer: W,
        screen: Screen,
        screen_rows: usize,
        controls: ViewControls,
        subjects: &[MultiRunSubject],
    ) -> MultiLiveReporter<W> {
        let make_reporter = |subject: &MultiRunSubject| {
            MultiRunReporter::new(Vec::new(), screen.clone(), controls.mode, subject.label.clone())
        };
        let subject_titles: Vec<String> = subjects.iter().map(|subject| subject.title.clone()).collect();
        MultiLiveReporter {
            region: TerminalRegion::new(writer, screen.max_columns),
            run_reporters: subjects.iter().map(make_reporter).collect(),
            board: MultiRunBoard::new(controls, &subject_titles),
            screen,
            screen_rows,
            painted_ms: 0,
            is_stale: true,
        }
    }

    /// Shows that a run's turn has come.
    pub fn start_run(&mut self, run_index: usize) -> io::Result<()> {
        self.board.start_run(run_index);
        self.paint_region(&[])
    }

    /// Shows that a run has ended, and how if its journal does not say so.
    pub fn end_run(&mut self, run_index: usize, ending: RunRowEnding) -> io::Result<()> {
        self.board.end_run(run_index, ending);
        self.paint_region(&[])
    }

    /// Draws the next entry of a run.
    pub fn report_entry(&mut self, run_index: usize, journal_entry: &JournalEntry) -> io::Result<()> {
        self.board.track_entry(run_index, journal_entry);
        self.write_lines(run_index, |run_reporter| run_reporter.report_entry(journal_entry))
    }

    /// Takes note of an entry that an earlier process recorded.
    pub fn note_past_entry(&mut self, run_index: usize, journal_entry: &JournalEntry) {
        self.board.track_entry(run_index, journal_entry);
        if let Some(run_reporter) = self.run_reporters.get_mut(run_index) {
            run_reporter.note_past_entry(journal_entry);
        }
    }

    /// Shows what an agent of a run is doing.
    pub fn report_progress(&mut self, run_index: usize, progress: &AgentProgress) -> io::Result<()> {
        self.board.note_progress(run_index, progress);
        self.is_stale = true;
        // Lines for it are only for users who want everything.
        if self.board.controls.mode < DisplayMode::Verbose {
            return Ok(());
        }
        self.write_lines(run_index, |run_reporter| run_reporter.report_progress(progress))
    }

    /// Writes something about a run that is not in its journal.
    pub fn write_notice(&mut self, run_index: usize, notice_text: &str) -> io::Result<()> {
        self.write_lines(run_index, |run_reporter| run_reporter.write_wrapped_notice(notice_text))
    }

    /// Sets the awake time of one run; [`MultiLiveReporter::advance_clock`] repaints it.
    pub fn advance_run_clock(&mut self, run_index: usize, awake_ms: u64) {
        self.board.advance_run_clock(run_index, awake_ms);
    }

    /// Sets the time that the command has been working, and repaints what changed, if enough time has passed.
    pub fn advance_clock(&mut self, elapsed_ms: u64) -> io::Result<()> {
        let previous_ms = self.board.elapsed_ms;
        self.board.advance_clock(elapsed_ms);
        // Clocks in the region show whole seconds.
        self.is_stale |= previous_ms / 1_000 != self.board.elapsed_ms / 1_000;
        let is_due = self.region.is_blank() || self.board.elapsed_ms >= self.painted_ms + REPAINT_INTERVAL_MS;
        if self.is_stale && is_due { self.paint_region(&[]) } else { Ok(()) }
    }

    /// Lets the reporter of a run draw, and puts its lines above the region.
    fn write_lines(
        &mut self,
        run_index: usize,
        draw_lines: impl FnOnce(&mut MultiRunReporter<Vec<u8>>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.is_stale = true;
        let Some(run_reporter) = self.run_reporters.get_mut(run_index) else { return Ok(()) };
        draw_lines(run_reporter)?;
        let permanent_output = run_reporter.take_output();
        if permanent_output.is_empty() { Ok(()) } else { self.paint_region(&permanent_output) }
    }

    /// Writes the permanent lines, then the region below them.
    fn paint_region(&mut self, permanent_output: &[u8]) -> io::Result<()> {
        self.is_stale = false;
        self.painted_ms = self.board.elapsed_ms;
        if !self.region.is_paintable() {
            return self.region.write_permanent(permanent_output);
        }
        // A third of the screen is left for the lines above.
        let frame = self.board.draw_frame(&self.screen, (self.screen_rows * 2 / 3).max(1));
        self.region.paint_frame(permanent_output, frame)
    }
}

impl<W: Write> LiveScreen for MultiLiveReporter<W> {
    fn controls(&self) -> ViewControls {
        self.board.controls
    }

    fn set_controls(&mut self, controls: ViewControls) -> io::Result<()> {
        self.board.controls = controls;
        for run_reporter in &mut self.run_reporters {
            run_reporter.set_mode(controls.mode);
        }
        self.paint_region(&[])
    }

    fn resize(&mut self, screen: Screen, screen_rows: usize) -> io::Result<()> {
        for run_reporter in &mut self.run_reporters {
            run_reporter.set_screen(screen.clone());
        }
        self.region.set_columns(screen.max_columns);
        (self.screen, self.screen_rows) = (screen, screen_rows);
        self.paint_region(&[])
    }

    fn suspend_region(&mut self) -> io::Result<()> {
        self.region.suspend_painting()
    }

    fn restore_region(&mut self) -> io::Result<()> {
        self.region.forget_painted();
        if self.board.is_running() {
            self.region.resume_painting();
        }
        self.paint_region(&[])
    }

    fn disconnect(&mut self) {
        self.region.disconnect();
    }
}
