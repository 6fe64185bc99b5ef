//! Colours and widths, as the binary found them.

use tribunal_core::finding::Severity;

use crate::columns::{clean, cut, width};

/// How to draw: with or without colour, at most so wide.
#[derive(Clone, Debug)]
pub struct Screen {
    /// How hints call us: `tribunal`, or `tribunal -C DIR`.
    pub program: String,
    pub colour: bool,
    /// None: not a terminal, lines are as long as they are.
    pub width: Option<usize>,
}

impl Default for Screen {
    fn default() -> Self {
        Screen { program: "tribunal".into(), colour: false, width: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Warn,
    /// The nth of several runs: colours that say nothing else, in turn.
    Run(usize),
}

/// A sign before a line, in its colour.
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

/// Cyan, magenta, blue; then the same, bright.
const RUNS: [&str; 6] = ["36", "35", "34", "96", "95", "94"];

impl Screen {
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
        // Line by line: what is put before a line must not take its colour.
        let lines: Vec<String> = text.split('\n').map(|line| format!("\x1b[{code}m{line}\x1b[0m")).collect();
        lines.join("\n")
    }

    pub fn severity(&self, severity: Severity, text: &str) -> String {
        let style = match severity {
            Severity::Critical => Style::Bad,
            Severity::High => Style::Warn,
            Severity::Medium => Style::Plain,
            Severity::Low => Style::Dim,
        };
        self.paint(style, text)
    }

    /// Breaks `text` at blanks so that every line fits behind `indent` columns, which are put before it.
    pub fn wrap(&self, indent: usize, text: &str) -> String {
        let room = self.width.map_or(usize::MAX, |columns| columns.saturating_sub(indent + 1).max(20));
        let mut lines = vec![String::new()];
        for word in clean(text).split_whitespace() {
            let last = lines.len() - 1;
            let used = width(&lines[last]);
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

    /// Cuts `text` so that it fits behind `used` columns.
    pub fn fit(&self, used: usize, text: &str) -> String {
        let one_line = clean(text);
        match self.width {
            Some(columns) => cut(&one_line, columns.saturating_sub(used).max(20)),
            None => one_line,
        }
    }
}
