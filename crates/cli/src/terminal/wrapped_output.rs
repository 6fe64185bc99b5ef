//! Standard output and error for texts without colour: lines that are wider than the terminal are wrapped at words.
//!
//! Pipes and files get every line as it is. Texts with colour wrap themselves, because colour codes have no width.

use std::io::{self, StderrLock, StdoutLock, Write, stderr, stdout};

use tribunal_report::Screen;

use crate::context;

/// A writer that wraps whole lines.
pub(crate) struct WrappedOutput<W: Write> {
    screen: Screen,
    writer: W,
    /// The beginning of a line whose end is not written yet.
    unfinished_line: Vec<u8>,
}

pub(crate) fn wrapped_stdout() -> WrappedOutput<StdoutLock<'static>> {
    WrappedOutput::new(context::stdout_screen(), stdout().lock())
}

pub(crate) fn wrapped_stderr() -> WrappedOutput<StderrLock<'static>> {
    WrappedOutput::new(context::stderr_screen(), stderr().lock())
}

impl<W: Write> WrappedOutput<W> {
    fn new(screen: Screen, writer: W) -> WrappedOutput<W> {
        WrappedOutput { screen, writer, unfinished_line: Vec::new() }
    }

    fn write_wrapped(&mut self, byte_count: usize) -> io::Result<()> {
        let complete_lines: Vec<u8> = self.unfinished_line.drain(..byte_count).collect();
        let wrapped_lines = self.screen.wrap_block(&String::from_utf8_lossy(&complete_lines));
        self.writer.write_all(wrapped_lines.as_bytes())
    }
}

impl<W: Write> Write for WrappedOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Without a terminal nothing is wrapped, and bytes that are not UTF-8 stay as they are.
        if self.screen.max_columns.is_none() {
            return self.writer.write(bytes);
        }
        self.unfinished_line.extend_from_slice(bytes);
        if let Some(last_newline) = self.unfinished_line.iter().rposition(|byte| *byte == b'\n') {
            self.write_wrapped(last_newline + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_wrapped(self.unfinished_line.len())?;
        self.writer.flush()
    }
}

impl<W: Write> Drop for WrappedOutput<W> {
    fn drop(&mut self) {
        // Every text ends with a newline; should one not, its last words still appear.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_at_width(max_columns: Option<usize>, parts: &[&[u8]]) -> Vec<u8> {
        let mut written_bytes = Vec::new();
        let screen = Screen { max_columns, ..Screen::default() };
        let mut output = WrappedOutput::new(screen, &mut written_bytes);
        parts.iter().for_each(|part| output.write_all(part).unwrap());
        drop(output);
        written_bytes
    }

    #[test]
    fn lines_are_wrapped_once_they_are_complete() {
        let parts: [&[u8]; 3] = [b"  a line that is ", b"rather long\nshort\n", b"the last words have no end"];
        assert_eq!(
            String::from_utf8(written_at_width(Some(16), &parts)).unwrap(),
            "  a line that is\n    rather long\nshort\nthe last words\n  have no end"
        );
    }

    #[test]
    fn a_pipe_gets_the_bytes_as_they_are() {
        let parts: [&[u8]; 2] = [b"a line that is rather long ", b"and not text: \xff\n"];
        assert_eq!(written_at_width(None, &parts), parts.concat());
    }
}
