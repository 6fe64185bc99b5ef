//! One line of the live view: pieces are put side by side, and none goes beyond the edge.

use crate::{
    style::{Screen, TextStyle},
    terminal_text::{display_width, is_displayable, truncate_to_width},
};

/// Builds one line from styled pieces.
#[derive(Debug)]
pub(super) struct RowBuilder<'a> {
    screen: &'a Screen,
    /// The number of columns that the line may take.
    max_columns: usize,
    used_columns: usize,
    row_text: String,
}

impl<'a> RowBuilder<'a> {
    pub(super) fn new(screen: &'a Screen, max_columns: usize) -> RowBuilder<'a> {
        RowBuilder { screen, max_columns, used_columns: 0, row_text: String::new() }
    }

    /// Appends a piece, cut to the room that is left.
    pub(super) fn append(self, style: TextStyle, piece_text: &str) -> RowBuilder<'a> {
        let columns_left = self.max_columns - self.used_columns;
        self.append_within(columns_left, style, piece_text)
    }

    /// Appends a piece that takes at most `max_columns` columns.
    pub(super) fn append_within(mut self, max_columns: usize, style: TextStyle, piece_text: &str) -> RowBuilder<'a> {
        // Control characters are dropped here as well, so no caller can forget it.
        let displayable: String = piece_text.chars().filter(|character| is_displayable(*character)).collect();
        let piece_text = truncate_to_width(&displayable, max_columns.min(self.max_columns - self.used_columns));
        if !piece_text.is_empty() {
            self.used_columns += display_width(&piece_text);
            self.row_text.push_str(&self.screen.paint(style, &piece_text));
        }
        self
    }

    /// Fills the rest with a horizontal line, if there is room for one.
    pub(super) fn fill_with_rule(self, style: TextStyle) -> RowBuilder<'a> {
        // One column goes to the blank before the line.
        match self.max_columns - self.used_columns {
            0..2 => self,
            columns_left => self.append(TextStyle::Plain, " ").append(style, &"─".repeat(columns_left - 1)),
        }
    }

    /// Moves on to a column. Text that is already beyond it stays.
    pub(super) fn move_to_column(mut self, target_column: usize) -> RowBuilder<'a> {
        let target_column = target_column.min(self.max_columns);
        if target_column > self.used_columns {
            self.row_text.push_str(&" ".repeat(target_column - self.used_columns));
            self.used_columns = target_column;
        }
        self
    }

    /// Ends the line, without blanks at its end.
    pub(super) fn finish(self) -> String {
        self.row_text.trim_end().to_string()
    }
}

/// Returns the first form that fits. Forms go from the fullest to the shortest; if none fits, the last is returned to be cut.
pub(super) fn first_fitting(max_columns: usize, text_forms: impl IntoIterator<Item = String>) -> String {
    let mut shortest_form = String::new();
    for text_form in text_forms {
        if display_width(&text_form) <= max_columns {
            return text_form;
        }
        shortest_form = text_form;
    }
    shortest_form
}
