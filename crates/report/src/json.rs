//! Writes one journal entry per line as JSON, for programs.

use std::io::{self, Write};

use tribunal_workflows::runs::types::JournalEntry;

use crate::{Reporter, escape_json};

/// Writes entries as JSON lines.
#[derive(Debug)]
pub struct JsonReporter<W> {
    writer: W,
}

impl<W: Write> JsonReporter<W> {
    pub fn new(writer: W) -> JsonReporter<W> {
        JsonReporter { writer }
    }
}

impl<W: Write> Reporter for JsonReporter<W> {
    fn report_entry(&mut self, journal_entry: &JournalEntry) -> io::Result<()> {
        // Agents' text inside the JSON must not control a terminal on which the stream is watched.
        writeln!(self.writer, "{}", escape_json(&serde_json::to_string(journal_entry)?))?;
        // A reader at the other end of a pipe wants each entry as soon as it is recorded.
        self.writer.flush()
    }
}
