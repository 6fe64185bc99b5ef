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

pub use board::{Board, Controls};

use std::io::{self, Write};

use tribunal_core::{
    event::{Entry, Event},
    progress::Progress,
};

use crate::{Lines, Mode, Reporter, columns::width, style::Screen};

/// The time between two repaints of the region.
const PACE_MS: u64 = 100;

// A terminal that supports synchronized output shows everything between these two at once. The cursor is hidden meanwhile.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?2026l";
/// Turns wrapping off: if the terminal takes a character for wider than we do, it cuts the line instead of breaking it.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
const ERASE_BELOW: &str = "\x1b[J";
const ERASE_RIGHT: &str = "\x1b[K";

/// Whether the region may be painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// The region is on the screen and may be painted.
    Here,
    /// Only permanent lines are written: another program has the terminal, or the run has ended.
    Away,
    /// The terminal is gone.
    Gone,
}

/// Reports a run on a terminal. Between two calls the cursor is at the beginning of the region's last line.
#[derive(Debug)]
pub struct Live<W> {
    out: W,
    screen: Screen,
    /// The height of the terminal.
    rows: usize,
    board: Board,
    lines: Lines<Vec<u8>>,
    /// The region as it is on the screen.
    shown: Vec<String>,
    presence: Presence,
    painted_at: u64,
    stale: bool,
    /// Whether the region must be repainted as a whole, because the screen no longer shows what we painted.
    anew: bool,
}

impl<W: Write> Live<W> {
    pub fn new(out: W, screen: Screen, rows: usize, controls: Controls) -> Live<W> {
        let lines = Lines::new(Vec::new(), screen.clone(), controls.mode);
        let board = Board::new(controls);
        let (shown, presence) = (Vec::new(), Presence::Here);
        Live { out, screen, rows, board, lines, shown, presence, painted_at: 0, stale: false, anew: false }
    }

    pub fn controls(&self) -> Controls {
        self.board.controls
    }

    /// Applies a choice of the user.
    pub fn control(&mut self, controls: Controls) -> io::Result<()> {
        self.board.controls = controls;
        self.lines.set_mode(controls.mode);
        self.paint(&[])
    }

    /// Sets the run's awake time and repaints what changed, if enough time has passed.
    pub fn tick(&mut self, awake_ms: u64) -> io::Result<()> {
        let before = self.board.now();
        self.board.tick(awake_ms);
        // Clocks in the region show whole seconds.
        self.stale |= before / 1_000 != self.board.now() / 1_000;
        let due = self.shown.is_empty() || self.board.now() >= self.painted_at + PACE_MS;
        if self.stale && due {
            return self.paint(&[]);
        }
        Ok(())
    }

    /// Adapts to a new size of the terminal.
    pub fn resize(&mut self, screen: Screen, rows: usize) -> io::Result<()> {
        self.lines.set_screen(screen.clone());
        (self.screen, self.rows) = (screen, rows);
        self.anew = true;
        self.paint(&[])
    }

    /// Writes a line that is not in the journal, for the user who is watching.
    pub fn notice(&mut self, text: &str) -> io::Result<()> {
        let text = format!("{}\n", self.screen.wrap(0, text));
        self.paint(text.as_bytes())
    }

    /// Removes the region, because another program will write or because nothing more follows.
    pub fn leave(&mut self) -> io::Result<()> {
        let erase = self.erase();
        self.shown.clear();
        if self.presence == Presence::Here {
            self.presence = Presence::Away;
        }
        self.write(&erase)
    }

    /// Paints the region from scratch, because the screen now shows another program's output.
    pub fn come_back(&mut self) -> io::Result<()> {
        // What is on the screen now must not be erased.
        self.shown.clear();
        if self.presence == Presence::Away && self.board.is_running() {
            self.presence = Presence::Here;
        }
        self.paint(&[])
    }

    /// Stops writing: the terminal is gone, but the run goes on.
    pub fn hang_up(&mut self) {
        self.presence = Presence::Gone;
    }

    /// The escape codes that move the cursor to the region's first column and erase everything from there on.
    fn erase(&self) -> String {
        if self.shown.is_empty() {
            return String::new();
        }
        let columns = self.screen.width.unwrap_or(usize::MAX).max(1);
        // If the terminal became narrower, it has wrapped our lines. All common terminals do so.
        let rows = |line: &String| width_of(line).div_ceil(columns).max(1);
        let up: usize = self.shown[..self.shown.len() - 1].iter().map(rows).sum();
        format!("\r{}{ERASE_BELOW}", go_up(up))
    }

    /// Writes the permanent lines, then the region below them: all of it, or only the lines that changed.
    fn paint(&mut self, permanent: &[u8]) -> io::Result<()> {
        self.stale = false;
        self.painted_at = self.board.now();
        // A line feed alone need not return to the first column, depending on the terminal's modes.
        let above = String::from_utf8_lossy(permanent).replace('\n', "\r\n");
        if self.presence != Presence::Here || !self.board.has_begun() {
            return self.write(&above);
        }
        // A third of the screen is left for the log.
        let frame = self.board.frame(&self.screen, (self.rows * 2 / 3).max(1));
        // Permanent lines move the region down, so it cannot be repainted in place.
        let anew = std::mem::take(&mut self.anew) || !permanent.is_empty();
        let over = !anew && frame.len() == self.shown.len();
        if over && frame == self.shown {
            return Ok(());
        }
        let painted = if over {
            self.changed(&frame)
        } else {
            format!("{}{above}{NO_WRAP}{}", self.erase(), frame.join("\r\n"))
        };
        self.shown = frame;
        self.write(&format!("{BEGIN}{painted}\r{WRAP}{END}"))
    }

    /// The escape codes that repaint only the lines that differ from the screen.
    fn changed(&self, frame: &[String]) -> String {
        let mut painted = format!("\r{}{NO_WRAP}", go_up(frame.len().saturating_sub(1)));
        for (at, (new, old)) in frame.iter().zip(&self.shown).enumerate() {
            if at > 0 {
                painted.push_str("\r\n");
            }
            if new != old {
                painted.push_str(new);
                painted.push_str(ERASE_RIGHT);
                // A shorter line leaves the end of the old one behind.
            }
        }
        painted
    }

    /// Writes to the terminal, and gives up on it after the first error.
    fn write(&mut self, text: &str) -> io::Result<()> {
        if self.presence == Presence::Gone || text.is_empty() {
            return Ok(());
        }
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        // A broken terminal must not end the run.
        if written.is_err() {
            self.presence = Presence::Gone;
        }
        written
    }
}

/// The escape code that moves the cursor up. Zero rows need none: terminals read `0A` as one row.
fn go_up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\x1b[{rows}A") }
}

/// The width of a line that we painted; our own colour codes take no columns.
fn width_of(line: &str) -> usize {
    let mut parts = line.split('\x1b');
    let first = parts.next().map_or(0, width);
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, text)| width(text))).sum::<usize>()
}

impl<W: Write> Reporter for Live<W> {
    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        self.board.see(entry);
        self.lines.entry(entry)?;
        let permanent = self.lines.take();
        // The region goes before the ending is written, so that the ending is the last thing on the screen.
        if matches!(entry.event, Event::RunParked(_) | Event::RunFinished(_)) {
            self.leave()?;
        }
        self.stale = true;
        if permanent.is_empty() { Ok(()) } else { self.paint(&permanent) }
    }

    fn past(&mut self, entry: &Entry) {
        self.board.see(entry);
        self.lines.past(entry);
    }

    fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        self.board.progress(progress);
        self.stale = true;
        // The region already shows progress; lines for it are only for users who want everything.
        if self.board.controls.mode < Mode::Verbose && self.presence == Presence::Here {
            return Ok(());
        }
        self.lines.progress(progress)?;
        let permanent = self.lines.take();
        if permanent.is_empty() { Ok(()) } else { self.paint(&permanent) }
    }
}
