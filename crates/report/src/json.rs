//! One entry a line, for programs.

use std::io::{self, Write};

use tribunal_core::event::Entry;

use crate::{Reporter, escaped_json};

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
        writeln!(self.out, "{}", escaped_json(&serde_json::to_string(entry)?))?;
        self.out.flush()
    }
}
