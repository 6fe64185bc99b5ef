//! Colours and line widths. The binary asks the terminal for both and passes them in.

use tribunal_core::finding::Severity;

use crate::columns::{clean, cut, width};

/// How to draw: with or without colour, and at most how many columns wide.
#[derive(Clone, Debug)]
pub struct Screen {
    /// The program name that hints show: `tribunal`, or `tribunal -C DIR`.
    pub program: String,
    pub colour: bool,
    /// The number of columns; `None` if the output is not a terminal, and then lines are not cut.
    pub width: Option<usize>,
}

impl Default for Screen {
    fn default() -> Self {
        Screen { program: "tribunal".into(), colour: false, width: None }
    }
}

/// What a piece of text means; the colour follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Warn,
    /// The colour of the nth of several runs. These colours carry no other meaning and repeat after the sixth run.
    Run(usize),
}

/// A symbol in front of a line, with its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sign {
    pub style: Style,
    pub mark: &'static str,
}

impl Sign {
    pub const DONE: Sign = Sign { style: Style::Good, mark: "✓" };
    pub const FAILED: Sign = Sign { style: Style::Bad, mark: "✗" };
    pub const AGAIN: Sign = Sign { style: Style::Warn, mark: "↻" };
}

/// ANSI codes: cyan, magenta, blue, then their bright variants.
const RUNS: [&str; 6] = ["36", "35", "34", "96", "95", "94"];

impl Screen {
    /// Wraps `plain_text` into the escape codes of `style`, or returns it unchanged if the screen has no colour.
    pub fn paint(&self, style: Style, text: &str) -> String {
        let code = match style {
            _ if !self.colour => return text.to_string(),
            Style::Plain => return text.to_string(),
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Good => "32",
            Style::Bad => "31",
            Style::Warn => "33",
            Style::Run(nth) => RUNS[nth % RUNS.len()],
        };
        // Each line is painted by itself, so that text put in front of a line later does not take over its colour.
        let lines: Vec<String> = text.split('\n').map(|line| format!("\x1b[{code}m{line}\x1b[0m")).collect();
        lines.join("\n")
    }

    /// Paints `plain_text` in the colour of its severity.
    pub fn severity(&self, severity: Severity, text: &str) -> String {
        let style = match severity {
            Severity::Critical => Style::Bad,
            Severity::High => Style::Warn,
            Severity::Medium => Style::Plain,
            Severity::Low => Style::Dim,
        };
        self.paint(style, text)
    }

    /// Breaks `plain_text` at blanks so that every line fits behind `indent` columns, and puts that indent before each line.
    pub fn wrap(&self, indent: usize, text: &str) -> String {
        // One column stays free, because some terminals wrap as soon as the last column is filled. Twenty columns are kept
        // even on tiny screens: one word per line would be unreadable.
        let room = self.width.map_or(usize::MAX, |columns| columns.saturating_sub(indent + 1).max(20));
        let mut lines = vec![String::new()];
        for word in clean(text).split_whitespace() {
            let last = lines.len() - 1;
            let used = width(&lines[last]);
            // A word that is longer than a whole line gets a line of its own and is not broken.
            if used > 0 && used + 1 + width(word) > room {
                lines.push(word.to_string());
            } else {
                if used > 0 {
                    lines[last].push(' ');
                }
                lines[last].push_str(word);
            }
        }
        let lead = " ".repeat(indent);
        lines.iter().map(|line| format!("{lead}{line}")).collect::<Vec<_>>().join("\n")
    }

    /// Cuts `plain_text` to one line that fits behind `used_columns` columns.
    pub fn fit(&self, used: usize, text: &str) -> String {
        let one_line = clean(text);
        match self.width {
            Some(columns) => cut(&one_line, columns.saturating_sub(used).max(20)),
            None => one_line,
        }
    }
}
