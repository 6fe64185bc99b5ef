//! Colours and line widths. The binary asks the terminal for both and passes them in.

use crate::terminal_text::{clean_line, display_width, truncate_painted, truncate_to_width};

/// How to draw: with or without colour, and at most how many columns wide.
#[derive(Clone, Debug)]
pub struct Screen {
    /// The program name that hints show: `tribunal`, or `tribunal -C DIR`.
    pub program_name: String,
    pub use_colour: bool,
    /// The number of columns; `None` if the output is not a terminal, and then lines are not cut.
    pub max_columns: Option<usize>,
    /// Whether a line that is still too wide after wrapping is cut. Otherwise it runs over the edge.
    pub cuts_lines: bool,
}

impl Default for Screen {
    fn default() -> Self {
        Screen { program_name: "tribunal".into(), use_colour: false, max_columns: None, cuts_lines: false }
    }
}

/// What a piece of text means; the colour follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
    Plain,
    Bold,
    Dim,
    Success,
    Failure,
    Warning,
    /// The colour of the nth of several runs. These colours carry no other meaning and repeat after the sixth run.
    RunColour(usize),
}

/// A symbol in front of a line, with its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineMark {
    pub style: TextStyle,
    pub symbol: &'static str,
}

impl LineMark {
    pub const DONE: LineMark = LineMark { style: TextStyle::Success, symbol: "✓" };
    pub const FAILED: LineMark = LineMark { style: TextStyle::Failure, symbol: "✗" };
    pub const RETRIED: LineMark = LineMark { style: TextStyle::Warning, symbol: "↻" };
    pub const WARNING: LineMark = LineMark { style: TextStyle::Warning, symbol: "warning:" };
    pub const QUESTION: LineMark = LineMark { style: TextStyle::Warning, symbol: "?" };
    pub const STARTED: LineMark = LineMark { style: TextStyle::Bold, symbol: "▸" };
    /// Something that stopped and can go on.
    pub const PAUSED: LineMark = LineMark { style: TextStyle::Warning, symbol: "–" };
}

/// ANSI codes: cyan, magenta, blue, then their bright variants.
const RUN_COLOURS: [&str; 6] = ["36", "35", "34", "96", "95", "94"];

impl Screen {
    /// Wraps `plain_text` into the escape codes of `style`, or returns it unchanged if the screen has no colour.
    pub fn paint(&self, style: TextStyle, plain_text: &str) -> String {
        let colour_code = match style {
            _ if !self.use_colour => return plain_text.to_string(),
            TextStyle::Plain => return plain_text.to_string(),
            TextStyle::Bold => "1",
            TextStyle::Dim => "2",
            TextStyle::Success => "32",
            TextStyle::Failure => "31",
            TextStyle::Warning => "33",
            TextStyle::RunColour(run_index) => RUN_COLOURS[run_index % RUN_COLOURS.len()],
        };
        // Each line is painted by itself, so that text put in front of a line later does not take over its colour.
        let painted_lines: Vec<String> =
            plain_text.split('\n').map(|text_line| format!("\x1b[{colour_code}m{text_line}\x1b[0m")).collect();
        painted_lines.join("\n")
    }

    /// Breaks `plain_text` at blanks so that every line fits behind `indent` columns, and puts that indent before each line.
    pub fn wrap_text(&self, indent: usize, plain_text: &str) -> String {
        self.wrap_hanging(indent, indent, plain_text)
    }

    /// Wraps like [`Screen::wrap_text`]; all lines but the first are indented by `next_indent`.
    pub fn wrap_hanging(&self, first_indent: usize, next_indent: usize, plain_text: &str) -> String {
        let mut indent = first_indent;
        let mut used_columns = 0;
        let mut wrapped_text = " ".repeat(first_indent);
        for word in clean_line(plain_text).split_whitespace() {
            let word_columns = display_width(word);
            // A word that is longer than a whole line gets a line of its own and is not broken.
            if used_columns > 0 && used_columns + 1 + word_columns > self.columns_behind(indent) {
                indent = next_indent;
                used_columns = 0;
                wrapped_text.push('\n');
                wrapped_text.push_str(&" ".repeat(next_indent));
            } else if used_columns > 0 {
                used_columns += 1;
                wrapped_text.push(' ');
            }
            used_columns += word_columns;
            wrapped_text.push_str(word);
        }
        wrapped_text
    }

    /// Wraps those lines of a finished text that are wider than the screen, at blanks. What follows a break is indented a
    /// little further than its line. The text must not contain colour codes.
    pub fn wrap_block(&self, finished_text: &str) -> String {
        let Some(max_columns) = self.max_columns else { return finished_text.to_string() };
        let mut wrapped_text = String::new();
        for line in finished_text.split_inclusive('\n') {
            let (line_text, line_end) = line.strip_suffix('\n').map_or((line, ""), |line_text| (line_text, "\n"));
            wrapped_text.push_str(&wrap_line(line_text, max_columns));
            wrapped_text.push_str(line_end);
        }
        wrapped_text
    }

    /// Wraps like [`Screen::wrap_hanging`], but breaks lines between parts that ` · ` separates, where that is possible.
    pub(crate) fn wrap_parts(&self, first_indent: usize, next_indent: usize, plain_text: &str) -> String {
        let line_indent = |line_index: usize| if line_index == 0 { first_indent } else { next_indent };
        let mut part_lines: Vec<String> = Vec::new();
        for text_part in clean_line(plain_text).split(" · ") {
            let max_columns = self.columns_behind(line_indent(part_lines.len().saturating_sub(1)));
            match part_lines.last_mut() {
                Some(last_line) if display_width(last_line) + 3 + display_width(text_part) <= max_columns => {
                    last_line.push_str(" · ");
                    last_line.push_str(text_part);
                }
                _ => part_lines.push(text_part.to_string()),
            }
        }
        // A part that is longer than a line is still broken between its words.
        let wrap_line = |(line_index, part_line): (usize, &String)| {
            self.wrap_hanging(line_indent(line_index), next_indent, part_line)
        };
        part_lines.iter().enumerate().map(wrap_line).collect::<Vec<_>>().join("\n")
    }

    /// The number of columns that text behind `used_columns` columns may take.
    pub(crate) fn columns_behind(&self, used_columns: usize) -> usize {
        // One column stays free, because some terminals wrap as soon as the last column is filled. Twenty columns are kept
        // even on tiny screens: one word per line would be unreadable.
        self.max_columns.map_or(usize::MAX, |columns| columns.saturating_sub(used_columns + 1).max(20))
    }

    /// Returns whether a line of this width fits on the screen.
    pub(crate) fn fits_line(&self, line_columns: usize) -> bool {
        self.max_columns.is_none_or(|columns| line_columns < columns)
    }

    /// Cuts the lines of a finished text that are wider than the screen, if this screen does that. Colour codes take no columns.
    pub(crate) fn cut_lines(&self, finished_text: &str) -> String {
        let Some(max_columns) = self.max_columns.filter(|_| self.cuts_lines) else { return finished_text.to_string() };
        // One column stays free, as in wrapped lines.
        let cut_line = |text_line: &str| truncate_painted(text_line, max_columns.saturating_sub(1));
        finished_text.split('\n').map(cut_line).collect::<Vec<_>>().join("\n")
    }

    /// Cuts `plain_text` to one line that fits behind `used_columns` columns.
    pub fn fit_text(&self, used_columns: usize, plain_text: &str) -> String {
        let single_line = clean_line(plain_text);
        match self.max_columns {
            Some(columns) => truncate_to_width(&single_line, columns.saturating_sub(used_columns).max(20)),
            None => single_line,
        }
    }
}

/// Wraps one line at blanks. A word that is wider than the screen is not broken.
fn wrap_line(line_text: &str, max_columns: usize) -> String {
    if display_width(line_text) <= max_columns {
        return line_text.to_string();
    }
    let indent = line_text.len() - line_text.trim_start_matches(' ').len();
    let mut wrapped_text = String::new();
    let mut used_columns = 0;
    // The blanks before a word belong to it, so that columns inside a line stay as they are.
    for word in line_text[indent..].split_inclusive(' ').flat_map(|part| [part.trim_end_matches(' '), " "]) {
        let word_columns = display_width(word);
        if !word.trim().is_empty() && used_columns > 0 && indent + used_columns + word_columns > max_columns {
            wrapped_text.truncate(wrapped_text.trim_end_matches(' ').len());
            wrapped_text.push('\n');
            wrapped_text.push_str(&" ".repeat(indent + 2));
            used_columns = 2;
        }
        wrapped_text.push_str(word);
        used_columns += word_columns;
    }
    format!("{}{}", " ".repeat(indent), wrapped_text.trim_end_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_at_blanks_and_short_ones_stay() {
        let screen = Screen { max_columns: Some(24), ..Screen::default() };
        let finished_text = "error: the disk is full and nothing was written\n  a  b   c\n  help: \
                             free_some_space_on_the_disk_first now\n\n";
        let expected_text = "error: the disk is full\n  and nothing was\n  written\n  a  b   c\n  help:\n    \
                             free_some_space_on_the_disk_first\n    now\n\n";
        assert_eq!(screen.wrap_block(finished_text), expected_text);
        assert_eq!(Screen::default().wrap_block(finished_text), finished_text, "a pipe has no width");
    }
}
