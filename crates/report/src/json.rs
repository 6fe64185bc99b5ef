//! Writes one journal entry per line as JSON, for programs.

use std::io::{self, Write};

use tribunal_core::event::Entry;

use crate::{Reporter, escaped_json};

/// Writes entries as JSON lines.
#[derive(Debug)]
pub struct JsonLines<W> {
    out: W,
}

impl<W: Write> JsonLines<W> {
    pub fn new(out: W) -> JsonLines<W> {
        JsonLines { out }
    }
}

impl<W: Write> Reporter for JsonLines<W> {
    fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        // Agents' text inside the JSON must not control a terminal on which the stream is watched.
        writeln!(self.out, "{}", escaped_json(&serde_json::to_string(entry)?))?;
        // A reader at the other end of a pipe wants each entry as soon as it is recorded.
        self.out.flush()
    }
}
