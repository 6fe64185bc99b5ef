//! Shows runs: readable lines, JSON events, tables. Everything is drawn from journal entries, so a live run and a recorded
//! one look the same.
//!
//! It sees `core`'s types and nothing else: it opens no file, asks no terminal for its size and knows no agent. Where to
//! write, how wide and in which colours is handed in.

mod beside;
pub mod calls;
mod columns;
mod export;
mod filter;
mod json;
mod lines;
pub mod live;
mod mode;
mod rulings;
pub mod session;
mod style;
pub mod tables;
mod verbose;
mod words;

pub use beside::{Beside, Came, Close, Label, close};
pub use columns::{clean, clean_block, escaped, escaped_json};
pub use export::Export;
pub use filter::{Filter, Wanted};
pub use json::JsonLines;
pub use lines::Lines;
pub use live::Live;
pub use mode::Mode;
pub use rulings::{Ruling, Rulings};
pub use style::{Screen, Style};
pub use verbose::Verbose;
pub use words::next_steps;

use std::io;

use tribunal_core::{event::Entry, progress::Progress};

/// Draws one run, entry by entry.
pub trait Reporter {
    fn entry(&mut self, entry: &Entry) -> io::Result<()>;

    /// An entry of an earlier life: to be known, not to be drawn.
    fn past(&mut self, _: &Entry) {}

    /// Volatile; a reporter may ignore it.
    fn progress(&mut self, _: &Progress) -> io::Result<()> {
        Ok(())
    }
}
