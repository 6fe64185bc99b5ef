//! The live view of a run on a terminal: permanent lines above, and below them a region that is repainted.
//!
//! Permanent lines are drawn by [`LineReporter`], so that the scrollback reads like the log of the run. The region is a frame
//! of the [`LiveBoard`]. Neither asks the terminal anything: its size and the time are passed in. Keys and signals are handled
//! by the binary.

mod board;
mod child_boards;
mod figure_columns;
mod frame;
mod multi_board;
mod multi_frame;
mod multi_reporter;
mod region;
mod row;
pub(crate) mod worker;
pub(crate) mod worker_list;
mod workers;

pub use board::{LiveBoard, ViewControls};
pub use multi_board::{MultiRunBoard, RunRowEnding};
pub use multi_reporter::{MultiLiveReporter, MultiRunSubject};

use std::io::{self, Write};

use tribunal_engine::{ids::RunId, progress::AgentProgress};
use tribunal_workflows::runs::types::{JournalEntry, RunEvent};

use crate::{DisplayMode, LineReporter, Reporter, style::Screen};
use region::TerminalRegion;

/// The shortest time after which the clock alone repaints the region.
const REPAINT_INTERVAL_MS: u64 = 100;

/// A view on a terminal that is repainted. The binary passes on what happens to the terminal, whichever view it is.
pub trait LiveScreen {
    fn controls(&self) -> ViewControls;

    /// Applies a choice of the user.
    fn set_controls(&mut self, controls: ViewControls) -> io::Result<()>;

    /// Adapts to a new size of the terminal.
    fn resize(&mut self, screen: Screen, screen_rows: usize) -> io::Result<()>;

    /// Removes the region, because another program will write or because nothing more follows.
    fn suspend_region(&mut self) -> io::Result<()>;

    /// Paints the region from scratch, because the screen now shows another program's output.
    fn restore_region(&mut self) -> io::Result<()>;

    /// Stops writing: the terminal is gone, but what is shown goes on.
    fn disconnect(&mut self);
}

/// Reports a run on a terminal. Between two calls the cursor is at the beginning of the region's last line.
#[derive(Debug)]
pub struct LiveReporter<W> {
    region: TerminalRegion<W>,
    screen: Screen,
    /// The height of the terminal.
    screen_rows: usize,
    board: LiveBoard,
    line_reporter: LineReporter<Vec<u8>>,
    painted_ms: u64,
    is_stale: bool,
}

impl<W: Write> LiveReporter<W> {
    pub fn new(writer: W, screen: Screen, screen_rows: usize, controls: ViewControls) -> LiveReporter<W> {
        let line_reporter = LineReporter::new(Vec::new(), screen.clone(), controls.mode);
        let (region, board) = (TerminalRegion::new(writer, screen.max_columns), LiveBoard::new(controls));
        LiveReporter { region, screen, screen_rows, board, line_reporter, painted_ms: 0, is_stale: false }
    }

    /// Sets the run's awake time and repaints what changed, if enough time has passed.
    pub fn advance_clock(&mut self, awake_ms: u64) -> io::Result<()> {
        let previous_ms = self.board.awake_ms();
        self.board.advance_clock(awake_ms);
        // Clocks in the region show whole seconds.
        self.is_stale |= previous_ms / 1_000 != self.board.awake_ms() / 1_000;
        let is_due = self.region.is_blank() || self.board.awake_ms() >= self.painted_ms + REPAINT_INTERVAL_MS;
        if self.is_stale && is_due {
            return self.paint_region(&[]);
        }
        Ok(())
    }

    /// Writes a line that is not in the journal, for the user who is watching.
    pub fn write_notice(&mut self, notice_text: &str) -> io::Result<()> {
        let notice_text = format!("{}\n", self.screen.wrap_text(0, notice_text));
        self.paint_region(notice_text.as_bytes())
    }

    /// The screen as it is now.
    pub fn current_screen(&self) -> &Screen {
        &self.screen
    }

    /// Writes lines that are drawn already, for instance those of a child run, above the region.
    pub fn write_lines(&mut self, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() { Ok(()) } else { self.paint_region(lines) }
    }

    /// Takes note of an entry of a child run, which the region shows from the next repaint on.
    pub fn track_child_entry(&mut self, journal_entry: &JournalEntry) {
        self.board.track_child_entry(journal_entry);
        self.is_stale = true;
    }

    /// Takes note of what an agent of a child run does.
    pub fn note_child_progress(&mut self, child_id: &RunId, progress: &AgentProgress) {
        self.board.note_child_progress(child_id, progress);
        self.is_stale = true;
    }

    /// Writes the permanent lines, then the region below them.
    fn paint_region(&mut self, permanent_output: &[u8]) -> io::Result<()> {
        self.is_stale = false;
        self.painted_ms = self.board.awake_ms();
        if !self.region.is_paintable() || !self.board.has_started() {
            return self.region.write_permanent(permanent_output);
        }
        // A third of the screen is left for the log.
        let frame = self.board.draw_frame(&self.screen, (self.screen_rows * 2 / 3).max(1));
        self.region.paint_frame(permanent_output, frame)
    }
}

impl<W: Write> LiveScreen for LiveReporter<W> {
    fn controls(&self) -> ViewControls {
        self.board.controls
    }

    fn set_controls(&mut self, controls: ViewControls) -> io::Result<()> {
        self.board.controls = controls;
        self.line_reporter.set_mode(controls.mode);
        self.paint_region(&[])
    }

    fn resize(&mut self, screen: Screen, screen_rows: usize) -> io::Result<()> {
        self.line_reporter.set_screen(screen.clone());
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

impl<W: Write> Reporter for LiveReporter<W> {
    fn report_entry(&mut self, journal_entry: &JournalEntry) -> io::Result<()> {
        self.board.track_entry(journal_entry);
        self.line_reporter.report_entry(journal_entry)?;
        let permanent_output = self.line_reporter.take_output();
        // The region goes before the ending is written, so that the ending is the last thing on the screen.
        if matches!(journal_entry.event, RunEvent::RunParked(_) | RunEvent::RunFinished(_)) {
            self.suspend_region()?;
        }
        self.is_stale = true;
        if permanent_output.is_empty() { Ok(()) } else { self.paint_region(&permanent_output) }
    }

    fn note_past_entry(&mut self, journal_entry: &JournalEntry) {
        self.board.track_entry(journal_entry);
        self.line_reporter.note_past_entry(journal_entry);
    }

    fn report_progress(&mut self, progress: &AgentProgress) -> io::Result<()> {
        self.board.note_progress(progress);
        self.is_stale = true;
        // The region already shows progress; lines for it are only for users who want everything.
        if self.board.controls.mode < DisplayMode::Verbose && self.region.is_paintable() {
            return Ok(());
        }
        self.line_reporter.report_progress(progress)?;
        let permanent_output = self.line_reporter.take_output();
        if permanent_output.is_empty() { Ok(()) } else { self.paint_region(&permanent_output) }
    }
}
