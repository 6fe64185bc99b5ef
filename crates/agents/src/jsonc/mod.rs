//! JSON as people keep it in settings files: with comments, trailing commas, a byte order mark, any indentation and line ends.
//!
//! [`read`] gives a tree that knows the bytes of every value; [`edit`] adds, takes out or exchanges values and leaves every
//! other byte as it is. An edited text is read again, and is only given away if it says the old things and the change. Keys
//! that stand twice are refused: readers disagree on which of them holds.
//!
//! Ours, because no crate leaves all other bytes alone. `jsonc-parser` 0.34 (`cst`) was tried on the tests of this module: adding
//! to an object that stands on one line spreads it over several, and taking the entry out again does not bring the line
//! back; a comment before the closing bracket is moved; taking out an entry takes the comment behind it along; a byte order mark
//! is refused; keys that stand twice, single quotes and missing commas pass.
//!
//! It does not know what the keys mean, writes no files, and does not make a text prettier. A list or object that an edit
//! empties is `[]` or `{}` afterwards, unless there are comments in it.

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
    /// The first thing in it that JSON itself does not have: many programs do not read such a file at all.
    pub loose: Option<Problem>,
}

/// One value, and the bytes it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub span: Range<usize>,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Null,
    Flag(bool),
    /// As it was written.
    Number(String),
    Text(String),
    List(Vec<Item>, Frame),
    Map(Vec<Item>, Frame),
}

/// What stands in a list or an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Empty in a list.
    pub key: String,
    /// Where it begins, with its key.
    pub start: usize,
    pub value: Node,
    /// Where the white space before it begins.
    space: usize,
    /// Right before that white space a comment ends that needs its line end.
    after_line: bool,
}

/// What stands around the items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// One behind each item; the last item may have none.
    commas: Vec<usize>,
    /// Where the last thing before the closing bracket ends.
    tail: usize,
    /// That thing needs its line end.
    tail_is_line: bool,
    has_comments: bool,
}

/// What a value says, without where it stands. Objects keep their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    Null,
    Flag(bool),
    Number(String),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

/// What is wrong, and where.
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
    /// The items of a list or an object; a plain value has none.
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

/// The line and column of a byte, both from 1; columns are characters.
pub fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    // A byte order mark is no column that an editor shows.
    let mark = usize::from(line == 1 && text.starts_with('\u{feff}') && column > 1);
    (line, column - mark)
}
