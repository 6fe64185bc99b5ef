//! One entry a line, for programs.

use std::io::{self, Write};

use tribunal_core::event::Entry;

use crate::Reporter;

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
        serde_json::to_writer(&mut self.out, entry)?;
        writeln!(self.out)?;
        self.out.flush()
    }
}
