//! The live view of a run on a terminal: permanent lines above, a region below them that is painted over and over.
//!
//! What is permanent is drawn by [`Lines`], so that the scrollback reads like the log of the run; the region is a [`Board`]'s
//! frame. Neither asks the terminal anything: how large it is and how late it is are handed in. Keys and signals are the
//! binary's.

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

/// Between two paintings of the region.
const PACE_MS: u64 = 100;

// All that happens between these is shown at once, by terminals that can; the cursor does not wander about meanwhile.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?2026l";
/// A terminal that takes a character for wider than we do cuts the line instead of breaking it.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
const ERASE_BELOW: &str = "\x1b[J";
const ERASE_RIGHT: &str = "\x1b[K";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// The region is ours to paint.
    Here,
    /// Permanent lines only: somebody else has the terminal, or the run has ended.
    Away,
    /// The terminal is gone.
    Gone,
}

/// Between two calls the cursor stands at the beginning of the region's last line.
#[derive(Debug)]
pub struct Live<W> {
    out: W,
    screen: Screen,
    /// Of the terminal.
    rows: usize,
    board: Board,
    lines: Lines<Vec<u8>>,
    /// The region as it stands on the screen.
    shown: Vec<String>,
    presence: Presence,
    painted_at: u64,
    stale: bool,
    /// What stands on the screen cannot be painted over line by line.
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

    /// The person chose something.
    pub fn control(&mut self, controls: Controls) -> io::Result<()> {
        self.board.controls = controls;
        self.lines.set_mode(controls.mode);
        self.paint(&[])
    }

    /// The run has been awake for so long: paints what changed, if it is time.
    pub fn tick(&mut self, awake_ms: u64) -> io::Result<()> {
        let before = self.board.now();
        self.board.tick(awake_ms);
        self.stale |= before / 1_000 != self.board.now() / 1_000;
        let due = self.shown.is_empty() || self.board.now() >= self.painted_at + PACE_MS;
        if self.stale && due {
            return self.paint(&[]);
        }
        Ok(())
    }

    /// The terminal has another size now.
    pub fn resize(&mut self, screen: Screen, rows: usize) -> io::Result<()> {
        self.lines.set_screen(screen.clone());
        (self.screen, self.rows) = (screen, rows);
        self.anew = true;
        self.paint(&[])
    }

    /// A line that is not in the journal, for whoever watches now.
    pub fn notice(&mut self, text: &str) -> io::Result<()> {
        let text = format!("{}\n", self.screen.wrap(0, text));
        self.paint(text.as_bytes())
    }

    /// Takes the region away: somebody else will write, or nothing more comes.
    pub fn leave(&mut self) -> io::Result<()> {
        let erase = self.erase();
        self.shown.clear();
        if self.presence == Presence::Here {
            self.presence = Presence::Away;
        }
        self.write(&erase)
    }

    /// Paints it again, from nothing: what stands on the screen is not ours.
    pub fn come_back(&mut self) -> io::Result<()> {
        self.shown.clear();
        if self.presence == Presence::Away && self.board.is_running() {
            self.presence = Presence::Here;
        }
        self.paint(&[])
    }

    /// The terminal is gone; the run is not.
    pub fn hang_up(&mut self) {
        self.presence = Presence::Gone;
    }

    /// To the region's first column and away with everything from there on.
    fn erase(&self) -> String {
        if self.shown.is_empty() {
            return String::new();
        }
        let columns = self.screen.width.unwrap_or(usize::MAX).max(1);
        // A terminal that became narrower has broken our lines: all common ones do.
        let rows = |line: &String| width_of(line).div_ceil(columns).max(1);
        let up: usize = self.shown[..self.shown.len() - 1].iter().map(rows).sum();
        format!("\r{}{ERASE_BELOW}", go_up(up))
    }

    /// Writes what is permanent, then the region below it: whole, or only those lines that changed.
    fn paint(&mut self, permanent: &[u8]) -> io::Result<()> {
        self.stale = false;
        self.painted_at = self.board.now();
        let above = String::from_utf8_lossy(permanent).replace('\n', "\r\n");
        if self.presence != Presence::Here || !self.board.has_begun() {
            return self.write(&above);
        }
        // Some of the log stays in sight.
        let frame = self.board.frame(&self.screen, (self.rows * 2 / 3).max(1));
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

    fn changed(&self, frame: &[String]) -> String {
        let mut painted = format!("\r{}{NO_WRAP}", go_up(frame.len().saturating_sub(1)));
        for (at, (new, old)) in frame.iter().zip(&self.shown).enumerate() {
            if at > 0 {
                painted.push_str("\r\n");
            }
            if new != old {
                painted.push_str(new);
                painted.push_str(ERASE_RIGHT);
            }
        }
        painted
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if self.presence == Presence::Gone || text.is_empty() {
            return Ok(());
        }
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        if written.is_err() {
            self.presence = Presence::Gone;
        }
        written
    }
}

fn go_up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\x1b[{rows}A") }
}

/// Columns of a line of ours; our own colours take none.
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
        // The region says it; lines of it are for those who want everything.
        if self.board.controls.mode < Mode::Verbose && self.presence == Presence::Here {
            return Ok(());
        }
        self.lines.progress(progress)?;
        let permanent = self.lines.take();
        if permanent.is_empty() { Ok(()) } else { self.paint(&permanent) }
    }
}
