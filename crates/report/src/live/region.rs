//! Paints a region at the bottom of the terminal and keeps permanent lines above it.
//!
//! What the region shows is decided elsewhere: [`super::frame`] draws one run, [`super::multi_frame`] several.

use std::io::{self, Write};

use crate::terminal_text::painted_width;

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

/// The repainted region. Between two calls the cursor is at the beginning of its last line.
#[derive(Debug)]
pub(super) struct TerminalRegion<W> {
    writer: W,
    /// The width of the terminal; `None` if it is unknown.
    max_columns: Option<usize>,
    /// The region as it is on the screen.
    shown_lines: Vec<String>,
    region_state: RegionState,
    /// Whether the region must be repainted as a whole, because the screen no longer shows what we painted.
    must_repaint: bool,
}

impl<W: Write> TerminalRegion<W> {
    pub(super) fn new(writer: W, max_columns: Option<usize>) -> TerminalRegion<W> {
        let (shown_lines, region_state) = (Vec::new(), RegionState::Painted);
        TerminalRegion { writer, max_columns, shown_lines, region_state, must_repaint: false }
    }

    /// Returns whether frames are painted, and not only permanent lines.
    pub(super) fn is_paintable(&self) -> bool {
        self.region_state == RegionState::Painted
    }

    /// Returns whether nothing of the region is on the screen.
    pub(super) fn is_blank(&self) -> bool {
        self.shown_lines.is_empty()
    }

    /// Adapts to a new width; the next frame is painted as a whole.
    pub(super) fn set_columns(&mut self, max_columns: Option<usize>) {
        self.max_columns = max_columns;
        self.must_repaint = true;
    }

    /// Removes the region, because another program will write or because nothing more follows.
    pub(super) fn suspend_painting(&mut self) -> io::Result<()> {
        let erase_codes = self.erase_codes();
        self.shown_lines.clear();
        if self.region_state == RegionState::Painted {
            self.region_state = RegionState::Suspended;
        }
        self.write_terminal(&erase_codes)
    }

    /// Forgets what was painted, because the screen now shows another program's output, which must not be erased.
    pub(super) fn forget_painted(&mut self) {
        self.shown_lines.clear();
    }

    /// Lets frames be painted again after they were suspended.
    pub(super) fn resume_painting(&mut self) {
        if self.region_state == RegionState::Suspended {
            self.region_state = RegionState::Painted;
        }
    }

    /// Stops writing: the terminal is gone.
    pub(super) fn disconnect(&mut self) {
        self.region_state = RegionState::Disconnected;
    }

    /// Writes permanent lines where there is no region to keep below them.
    pub(super) fn write_permanent(&mut self, permanent_output: &[u8]) -> io::Result<()> {
        self.write_terminal(&to_terminal_lines(permanent_output))
    }

    /// Writes the permanent lines, then the frame below them: all of it, or only the lines that changed.
    pub(super) fn paint_frame(&mut self, permanent_output: &[u8], frame: Vec<String>) -> io::Result<()> {
        // Permanent lines move the region down, so it cannot be repainted in place.
        let needs_repaint = std::mem::take(&mut self.must_repaint) || !permanent_output.is_empty();
        let is_in_place = !needs_repaint && frame.len() == self.shown_lines.len();
        if is_in_place && frame == self.shown_lines {
            return Ok(());
        }
        let painted = if is_in_place {
            self.repaint_changed_lines(&frame)
        } else {
            let permanent_text = to_terminal_lines(permanent_output);
            format!("{}{permanent_text}{WRAP_OFF}{}", self.erase_codes(), frame.join("\r\n"))
        };
        self.shown_lines = frame;
        self.write_terminal(&format!("{BEGIN_FRAME}{painted}\r{WRAP_ON}{END_FRAME}"))
    }

    /// The escape codes that move the cursor to the region's first column and erase everything from there on.
    fn erase_codes(&self) -> String {
        if self.shown_lines.is_empty() {
            return String::new();
        }
        let screen_columns = self.max_columns.unwrap_or(usize::MAX).max(1);
        // If the terminal became narrower, it is assumed to have wrapped our lines, as most terminals do.
        let line_rows = |shown_line: &String| painted_width(shown_line).div_ceil(screen_columns).max(1);
        let rows_up: usize = self.shown_lines[..self.shown_lines.len() - 1].iter().map(line_rows).sum();
        format!("\r{}{ERASE_BELOW}", cursor_up_code(rows_up))
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

/// A line feed alone need not return to the first column, depending on the terminal's modes.
fn to_terminal_lines(permanent_output: &[u8]) -> String {
    String::from_utf8_lossy(permanent_output).replace('\n', "\r\n")
}

/// The escape code that moves the cursor up. Zero rows need none: terminals read `0A` as one row.
fn cursor_up_code(row_count: usize) -> String {
    if row_count == 0 { String::new() } else { format!("\x1b[{row_count}A") }
}
