//! The lines that a reporter has drawn and not yet written.
//!
//! Drawing cannot fail and writing can, so the two are apart: the reporters of all kinds of runs draw into this buffer, and
//! [`crate::LineReporter`] writes it out after every entry.

use tribunal_workflows::runs::types::ChildOutcome;

use crate::{
    child_runs::ChildResult,
    style::{LineMark, Screen, TextStyle},
};

/// Collects lines that fit the screen.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    pub screen: Screen,
    text: String,
    /// Whether anything was drawn yet; only then is a blank line useful as a separator.
    has_lines: bool,
}

impl LineBuffer {
    pub(crate) fn new(screen: Screen) -> LineBuffer {
        LineBuffer { screen, text: String::new(), has_lines: false }
    }

    /// Takes what was drawn since the last call.
    pub(crate) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Draws one line behind `indent` blanks.
    pub(crate) fn write_line(&mut self, indent: usize, line_text: &str) {
        let cut_line = self.screen.cut_lines(&format!("{:indent$}{line_text}", ""));
        self.write_whole_line(0, &cut_line);
    }

    /// Draws one line behind `indent` blanks and never cuts it, because the user copies what is in it.
    pub(crate) fn write_whole_line(&mut self, indent: usize, line_text: &str) {
        self.has_lines = true;
        self.text.push_str(&format!("{:indent$}{line_text}\n", ""));
    }

    /// Draws lines that are finished, with their line ends. They are never cut: most of them are commands.
    pub(crate) fn write_block(&mut self, finished_lines: &str) {
        self.text.push_str(finished_lines);
    }

    /// Draws text that is wrapped behind `indent` blanks; further lines are indented by two more.
    pub(crate) fn write_wrapped(&mut self, indent: usize, style: TextStyle, plain_text: &str) {
        let wrapped_text = self.screen.wrap_parts(indent, indent + 2, plain_text);
        let painted_text = self.screen.paint(style, &wrapped_text);
        self.write_line(0, &painted_text);
    }

    /// Draws a mark and text, wrapped behind `indent` blanks. Only the mark is painted.
    pub(crate) fn write_marked(&mut self, indent: usize, line_mark: LineMark, plain_text: &str) {
        let LineMark { style, symbol } = line_mark;
        let wrapped_text = self.screen.wrap_hanging(indent, indent + 2, &format!("{symbol} {plain_text}"));
        // The text is wrapped before its first word is painted, because colour codes have no width.
        let painted_text = wrapped_text.replacen(symbol, &self.screen.paint(style, symbol), 1);
        self.write_line(0, &painted_text);
    }

    /// Draws how a child run came back.
    pub(crate) fn write_child_end(&mut self, child_name: &str, outcome: &ChildOutcome) {
        let ChildResult { mark, text } = ChildResult::from_outcome(outcome);
        self.write_marked(2, mark, &format!("child run {child_name} {text}"));
    }

    /// Draws a blank line, unless it would be the first line of the output.
    pub(crate) fn write_gap(&mut self) {
        if self.has_lines {
            self.text.push('\n');
        }
    }

    /// Draws the line of one agent: mark, name, text.
    pub(crate) fn write_worker_line(&mut self, line_mark: LineMark, worker_name: &str, worker_text: &str) {
        let painted_symbol = self.screen.paint(line_mark.style, line_mark.symbol);
        // The user has to know all of a failure; anything else fits or can be cut.
        let worker_text = match line_mark {
            LineMark::FAILED => self.screen.wrap_text(18, worker_text).trim_start().to_string(),
            _ => self.screen.fit_text(19, worker_text),
        };
        self.write_line(2, &format!("{painted_symbol} {worker_name:<14}{worker_text}"));
    }
}
