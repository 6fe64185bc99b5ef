//! JSON as users keep it in settings files: with comments, trailing commas, a byte order mark, any indentation and
//! any line ends.
//!
//! [`read_document`] returns a tree that knows the bytes of every value; [`edit_document`] adds, removes or replaces
//! values and leaves every other byte as it is. An edited text is read again, and it is only returned if it contains
//! the old values and the change, and nothing else. Duplicate keys are refused: readers disagree on which of them
//! counts.
//!
//! This is our own implementation because no crate leaves all other bytes alone. `jsonc-parser` 0.34 (`cst`) was
//! tried on the tests of this module: adding to an object on one line spreads it over several lines, and removing the
//! entry again does not restore the line; a comment before the closing bracket is moved; removing an entry also
//! removes the comment behind it; a byte order mark is refused; duplicate keys, single quotes and missing commas are
//! accepted.
//!
//! This module does not know what the keys mean, writes no files and does not reformat. A list or object that an edit
//! empties becomes `[]` or `{}`, unless there are comments in it.

mod change;
mod read;
mod render;
#[cfg(test)]
mod tests;

use std::{fmt, ops::Range};

pub use change::{Change, Refusal, Step, What, edit};
pub use read::read;
pub use render::pretty;

/// A text that could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub root: Node,
    /// The first extension of JSON in the text. Many programs do not read such a file at all.
    pub loose: Option<Problem>,
}

/// One value, and the bytes it occupies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub span: Range<usize>,
    pub kind: Kind,
}

/// The kind of a value, with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Flag(bool),
    /// The number as it was written.
    Number(String),
    Text(String),
    List(Vec<Item>, Frame),
    Map(Vec<Item>, Frame),
}

/// An item of a list or a member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The key; empty in a list.
    pub key: String,
    /// Where the item begins, including its key.
    pub start: usize,
    pub value: Node,
    /// Where the white space before it begins.
    space: usize,
    /// Whether a line comment ends right before that white space, so that its line end must stay.
    after_line: bool,
}

/// What surrounds the items of a list or object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The offsets of the commas, one behind each item; the last item may have none.
    commas: Vec<usize>,
    /// Where the last thing before the closing bracket ends.
    tail: usize,
    /// Whether that thing is a line comment, so that its line end must stay.
    tail_is_line: bool,
    has_comments: bool,
}

/// The content of a value, without its place in the text. Objects keep their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    Null,
    Flag(bool),
    Number(String),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

/// What is wrong in a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub line: usize,
    pub column: usize,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

impl Node {
    /// The items of a list or an object; a scalar has none.
    pub fn items(&self) -> &[Item] {
        match &self.kind {
            Kind::List(items, _) | Kind::Map(items, _) => items,
            _ => &[],
        }
    }

    pub fn is_map(&self) -> bool {
        matches!(self.kind, Kind::Map(..))
    }

    pub fn is_list(&self) -> bool {
        matches!(self.kind, Kind::List(..))
    }

    /// The value of a key, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let found = self.items().iter().find(|item| self.is_map() && item.key == key);
        found.map(|item| &item.value)
    }

    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn tree(&self) -> Tree {
        match &self.kind {
            Kind::Null => Tree::Null,
            Kind::Flag(flag) => Tree::Flag(*flag),
            Kind::Number(number) => Tree::Number(number.clone()),
            Kind::Text(text) => Tree::Text(text.clone()),
            Kind::List(items, _) => Tree::List(items.iter().map(|item| item.value.tree()).collect()),
            Kind::Map(items, _) => {
                Tree::Map(items.iter().map(|item| (item.key.clone(), item.value.tree())).collect())
            }
        }
    }
}

impl Tree {
    pub fn text(text: impl Into<String>) -> Tree {
        Tree::Text(text.into())
    }

    pub fn number(number: u32) -> Tree {
        Tree::Number(number.to_string())
    }

    pub fn map<const N: usize>(items: [(&str, Tree); N]) -> Tree {
        Tree::Map(items.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
    }
}

/// The line and column of a byte, both counted from 1. Columns are characters.
pub fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    // Editors do not show a byte order mark as a column.
    let mark = usize::from(line == 1 && text.starts_with('\u{feff}') && column > 1);
    (line, column - mark)
}
