//! The live view of a run on a terminal: permanent lines above, and below them a region that is repainted.
//!
//! Permanent lines are drawn by [`LineReporter`], so that the scrollback reads like the log of the run. The region is a frame
//! of the [`LiveBoard`]. Neither asks the terminal anything: its size and the time are passed in. Keys and signals are handled
//! by the binary.

mod board;
mod frame;
mod row;
mod worker;
mod workers;

pub use board::{LiveBoard, ViewControls};

use std::io::{self, Write};

use tribunal_core::{
    event::{JournalEntry, RunEvent},
    progress::AgentProgress,
};

use crate::{DisplayMode, LineReporter, Reporter, style::Screen, terminal_text::display_width};

/// The shortest time after which the clock alone repaints the region.
const REPAINT_INTERVAL_MS: u64 = 100;

// A terminal that supports synchronized output shows everything between these two at once. The cursor is hidden meanwhile.
const BEGIN_FRAME: &str = "\x1b[?2026h\x1b[?25l";
const END_FRAME: &str = "\x1b[?25h\x1b[?2026l";
/// Turns wrapping off: if the terminal takes a character for wider than we do, it cuts the line instead of breaking it.
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";
const ERASE_BELOW: &str = "\x1b[J";
const ERASE_RIGHT: &str = "\x1b[K";

/// Whether the region may be painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegionState {
    /// The region is on the screen and may be painted.
    Painted,
    /// Only permanent lines are written: another program has the terminal, or the run has ended.
    Suspended,
    /// The terminal is gone.
    Disconnected,
}

/// Reports a run on a terminal. Between two calls the cursor is at the beginning of the region's last line.
#[derive(Debug)]
pub struct LiveReporter<W> {
    writer: W,
    screen: Screen,
    /// The height of the terminal.
    screen_rows: usize,
    board: LiveBoard,
    line_reporter: LineReporter<Vec<u8>>,
    /// The region as it is on the screen.
    shown_lines: Vec<String>,
    region_state: RegionState,
    painted_ms: u64,
    is_stale: bool,
    /// Whether the region must be repainted as a whole, because the screen no longer shows what we painted.
    must_repaint: bool,
}

impl<W: Write> LiveReporter<W> {
    pub fn new(writer: W, screen: Screen, screen_rows: usize, controls: ViewControls) -> LiveReporter<W> {
        let line_reporter = LineReporter::new(Vec::new(), screen.clone(), controls.mode);
        let board = LiveBoard::new(controls);
        let (shown_lines, region_state) = (Vec::new(), RegionState::Painted);
        LiveReporter {
            writer,
            screen,
            screen_rows,
            board,
            line_reporter,
            shown_lines,
            region_state,
            painted_ms: 0,
            is_stale: false,
            must_repaint: false,
        }
    }

    pub fn controls(&self) -> ViewControls {
        self.board.controls
    }

    /// Applies a choice of the user.
    pub fn set_controls(&mut self, controls: ViewControls) -> io::Result<()> {
        self.board.controls = controls;
        self.line_reporter.set_mode(controls.mode);
        self.paint_region(&[])
    }

    /// Sets the run's awake time and repaints what changed, if enough time has passed.
    pub fn advance_clock(&mut self, awake_ms: u64) -> io::Result<()> {
        let previous_ms = self.board.awake_ms();
        self.board.advance_clock(awake_ms);
        // Clocks in the region show whole seconds.
        self.is_stale |= previous_ms / 1_000 != self.board.awake_ms() / 1_000;
        let is_due = self.shown_lines.is_empty() || self.board.awake_ms() >= self.painted_ms + REPAINT_INTERVAL_MS;
        if self.is_stale && is_due {
            return self.paint_region(&[]);
        }
        Ok(())
    }

    /// Adapts to a new size of the terminal.
    pub fn resize(&mut self, screen: Screen, screen_rows: usize) -> io::Result<()> {
        self.line_reporter.set_screen(screen.clone());
        (self.screen, self.screen_rows) = (screen, screen_rows);
        self.must_repaint = true;
        self.paint_region(&[])
    }

    /// Writes a line that is not in the journal, for the user who is watching.
    pub fn write_notice(&mut self, notice_text: &str) -> io::Result<()> {
        let notice_text = format!("{}\n", self.screen.wrap_text(0, notice_text));
        self.paint_region(notice_text.as_bytes())
    }

    /// Removes the region, because another program will write or because nothing more follows.
    pub fn suspend_region(&mut self) -> io::Result<()> {
        let erase_codes = self.erase_region_codes();
        self.shown_lines.clear();
        if self.region_state == RegionState::Painted {
            self.region_state = RegionState::Suspended;
        }
        self.write_terminal(&erase_codes)
    }

    /// Paints the region from scratch, because the screen now shows another program's output.
    pub fn restore_region(&mut self) -> io::Result<()> {
        // What is on the screen now must not be erased.
        self.shown_lines.clear();
        if self.region_state == RegionState::Suspended && self.board.is_running() {
            self.region_state = RegionState::Painted;
        }
        self.paint_region(&[])
    }

    /// Stops writing: the terminal is gone, but the run goes on.
    pub fn disconnect(&mut self) {
        self.region_state = RegionState::Disconnected;
    }

    /// The escape codes that move the cursor to the region's first column and erase everything from there on.
    fn erase_region_codes(&self) -> String {
        if self.shown_lines.is_empty() {
            return String::new();
        }
        let screen_columns = self.screen.max_columns.unwrap_or(usize::MAX).max(1);
        // If the terminal became narrower, it is assumed to have wrapped our lines, as most terminals do.
        let line_rows = |shown_line: &String| painted_width(shown_line).div_ceil(screen_columns).max(1);
        let rows_up: usize = self.shown_lines[..self.shown_lines.len() - 1].iter().map(line_rows).sum();
        format!("\r{}{ERASE_BELOW}", cursor_up_code(rows_up))
    }

    /// Writes the permanent lines, then the region below them: all of it, or only the lines that changed.
    fn paint_region(&mut self, permanent_output: &[u8]) -> io::Result<()> {
        self.is_stale = false;
        self.painted_ms = self.board.awake_ms();
        // A line feed alone need not return to the first column, depending on the terminal's modes.
        let permanent_text = String::from_utf8_lossy(permanent_output).replace('\n', "\r\n");
        if self.region_state != RegionState::Painted || !self.board.has_started() {
            return self.write_terminal(&permanent_text);
        }
        // A third of the screen is left for the log.
        let frame = self.board.draw_frame(&self.screen, (self.screen_rows * 2 / 3).max(1));
        // Permanent lines move the region down, so it cannot be repainted in place.
        let needs_repaint = std::mem::take(&mut self.must_repaint) || !permanent_output.is_empty();
        let is_in_place = !needs_repaint && frame.len() == self.shown_lines.len();
        if is_in_place && frame == self.shown_lines {
            return Ok(());
        }
        let painted = if is_in_place {
            self.repaint_changed_lines(&frame)
        } else {
            format!("{}{permanent_text}{WRAP_OFF}{}", self.erase_region_codes(), frame.join("\r\n"))
        };
        self.shown_lines = frame;
        self.write_terminal(&format!("{BEGIN_FRAME}{painted}\r{WRAP_ON}{END_FRAME}"))
    }

    /// The escape codes that repaint only the lines that differ from the screen.
    fn repaint_changed_lines(&self, new_frame: &[String]) -> String {
        let mut painted = format!("\r{}{WRAP_OFF}", cursor_up_code(new_frame.len().saturating_sub(1)));
        for (line_index, (new_line, old_line)) in new_frame.iter().zip(&self.shown_lines).enumerate() {
            if line_index > 0 {
                painted.push_str("\r\n");
            }
            if new_line != old_line {
                painted.push_str(new_line);
                // A shorter line would leave the end of the old one behind.
                painted.push_str(ERASE_RIGHT);
            }
        }
        painted
    }

    /// Writes to the terminal, and gives up on it after the first error.
    fn write_terminal(&mut self, output_text: &str) -> io::Result<()> {
        if self.region_state == RegionState::Disconnected || output_text.is_empty() {
            return Ok(());
        }
        let write_result = self.writer.write_all(output_text.as_bytes()).and_then(|()| self.writer.flush());
        // A broken terminal must not end the run.
        if write_result.is_err() {
            self.region_state = RegionState::Disconnected;
        }
        write_result
    }
}

/// The escape code that moves the cursor up. Zero rows need none: terminals read `0A` as one row.
fn cursor_up_code(row_count: usize) -> String {
    if row_count == 0 { String::new() } else { format!("\x1b[{row_count}A") }
}

/// The width of a line that we painted; our own colour codes take no columns.
fn painted_width(painted_line: &str) -> usize {
    let mut escape_parts = painted_line.split('\x1b');
    let first_width = escape_parts.next().map_or(0, display_width);
    first_width
        + escape_parts
            .map(|escape_part| escape_part.split_once('m').map_or(0, |(_, visible_text)| display_width(visible_text)))
            .sum::<usize>()
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
        if self.board.controls.mode < DisplayMode::Verbose && self.region_state == RegionState::Painted {
            return Ok(());
        }
        self.line_reporter.report_progress(progress)?;
        let permanent_output = self.line_reporter.take_output();
        if permanent_output.is_empty() { Ok(()) } else { self.paint_region(&permanent_output) }
    }
}
