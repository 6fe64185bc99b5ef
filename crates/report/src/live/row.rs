//! One line of the live view: pieces are put side by side, and none goes beyond the edge.

use crate::{
    columns::{cut, may_show, width},
    style::{Screen, Style},
};

/// Builds one line from styled pieces.
#[derive(Debug)]
pub(super) struct Row<'a> {
    screen: &'a Screen,
    /// The number of columns that the line may take.
    limit: usize,
    used: usize,
    text: String,
}

impl<'a> Row<'a> {
    pub(super) fn new(screen: &'a Screen, limit: usize) -> Row<'a> {
        Row { screen, limit, used: 0, text: String::new() }
    }

    /// Appends a piece, cut to the room that is left.
    pub(super) fn put(self, style: Style, piece: &str) -> Row<'a> {
        let room = self.limit - self.used;
        self.put_within(room, style, piece)
    }

    /// Appends a piece that takes at most `max_columns` columns.
    pub(super) fn put_within(mut self, room: usize, style: Style, piece: &str) -> Row<'a> {
        // Control characters are dropped here as well, so no caller can forget it.
        let harmless: String = piece.chars().filter(|c| may_show(*c)).collect();
        let piece = cut(&harmless, room.min(self.limit - self.used));
        if !piece.is_empty() {
            self.used += width(&piece);
            self.text.push_str(&self.screen.paint(style, &piece));
        }
        self
    }

    /// Fills the rest with a horizontal line, if there is room for one.
    pub(super) fn rule(self, style: Style) -> Row<'a> {
        // One column goes to the blank before the line.
        match self.limit - self.used {
            0..2 => self,
            rest => self.put(Style::Plain, " ").put(style, &"─".repeat(rest - 1)),
        }
    }

    /// Moves on to a column. Text that is already beyond it stays.
    pub(super) fn at(mut self, column: usize) -> Row<'a> {
        let column = column.min(self.limit);
        if column > self.used {
            self.text.push_str(&" ".repeat(column - self.used));
            self.used = column;
        }
        self
    }

    /// Ends the line, without blanks at its end.
    pub(super) fn done(self) -> String {
        self.text.trim_end().to_string()
    }
}

/// Returns the first form that fits. Forms go from the fullest to the shortest; if none fits, the last is returned to be cut.
pub(super) fn fitting(room: usize, forms: impl IntoIterator<Item = String>) -> String {
    let mut last = String::new();
    for form in forms {
        if width(&form) <= room {
            return form;
        }
        last = form;
    }
    last
}
