//! Renders runs as readable lines, JSON events and tables. Everything is drawn from journal entries, so a live run and a
//! recorded one look the same.
//!
//! The crate depends on `core`'s types and nothing else: it opens no file, asks no terminal for its size and knows no agent.
//! The caller passes in where to write, how wide the screen is and whether to use colour.

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
///
/// Implementations see every entry of a journal in order, because later entries are described with facts from earlier ones.
pub trait Reporter {
    fn entry(&mut self, entry: &Entry) -> io::Result<()>;

    /// Takes note of an entry that an earlier process of this run recorded: later lines may refer to it, but it is not drawn.
    fn past(&mut self, _: &Entry) {}

    /// Reports what an agent is doing right now. Progress is not in the journal, so a reporter may ignore it.
    fn progress(&mut self, _: &Progress) -> io::Result<()> {
        Ok(())
    }
}
