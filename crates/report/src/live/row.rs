//! One line of the live view: pieces put side by side, none of them ever beyond the edge.

use crate::{
    columns::{cut, may_show, width},
    style::{Screen, Style},
};

#[derive(Debug)]
pub(super) struct Row<'a> {
    screen: &'a Screen,
    /// It ends here.
    limit: usize,
    used: usize,
    text: String,
}

impl<'a> Row<'a> {
    pub(super) fn new(screen: &'a Screen, limit: usize) -> Row<'a> {
        Row { screen, limit, used: 0, text: String::new() }
    }

    /// Puts a piece at the end, cut to what room is left.
    pub(super) fn put(self, style: Style, piece: &str) -> Row<'a> {
        let room = self.limit - self.used;
        self.put_within(room, style, piece)
    }

    /// Puts a piece at the end that takes at most so many columns.
    pub(super) fn put_within(mut self, room: usize, style: Style, piece: &str) -> Row<'a> {
        let harmless: String = piece.chars().filter(|c| may_show(*c)).collect();
        let piece = cut(&harmless, room.min(self.limit - self.used));
        if !piece.is_empty() {
            self.used += width(&piece);
            self.text.push_str(&self.screen.paint(style, &piece));
        }
        self
    }

    /// Fills the rest with a line, if there is room for one.
    pub(super) fn rule(self, style: Style) -> Row<'a> {
        match self.limit - self.used {
            0..2 => self,
            rest => self.put(Style::Plain, " ").put(style, &"─".repeat(rest - 1)),
        }
    }

    /// Goes on at this column.
    pub(super) fn at(mut self, column: usize) -> Row<'a> {
        let column = column.min(self.limit);
        if column > self.used {
            self.text.push_str(&" ".repeat(column - self.used));
            self.used = column;
        }
        self
    }

    pub(super) fn done(self) -> String {
        self.text.trim_end().to_string()
    }
}

/// The first of these, from the fullest to the shortest, that fits; else the last, to be cut.
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
