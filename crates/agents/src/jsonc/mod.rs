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

mod edit;
mod read;
mod render;
#[cfg(test)]
mod tests;

use std::{fmt, ops::Range};

pub use edit::{EditRefusal, JsoncChange, JsoncEdit, PathStep, edit_document};
pub use read::read_document;
pub use render::render_pretty;

/// A text that could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsoncDocument {
    pub root: JsoncNode,
    /// The first extension of JSON in the text. Many programs do not read such a file at all.
    pub non_json: Option<JsoncProblem>,
}

/// One value, and the bytes it occupies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsoncNode {
    pub span: Range<usize>,
    pub kind: JsoncKind,
}

/// The kind of a value, with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsoncKind {
    Null,
    Flag(bool),
    /// The number as it was written.
    Number(String),
    Text(String),
    List(Vec<JsoncItem>, JsoncFrame),
    Map(Vec<JsoncItem>, JsoncFrame),
}

/// An item of a list or a member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsoncItem {
    /// The key; empty in a list.
    pub key: String,
    /// Where the item begins, including its key.
    pub start: usize,
    pub value: JsoncNode,
    /// Where the white space before it begins.
    space_start: usize,
    /// Whether a line comment ends right before that white space, so that its line end must stay.
    follows_line_comment: bool,
}

/// What surrounds the items of a list or object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsoncFrame {
    /// The offsets of the commas, one behind each item; the last item may have none.
    comma_offsets: Vec<usize>,
    /// Where the last thing before the closing bracket ends.
    tail_offset: usize,
    /// Whether that thing is a line comment, so that its line end must stay.
    tail_is_line_comment: bool,
    has_comments: bool,
}

/// The content of a value, without its place in the text. Objects keep their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsoncValue {
    Null,
    Flag(bool),
    Number(String),
    Text(String),
    List(Vec<JsoncValue>),
    Map(Vec<(String, JsoncValue)>),
}

/// What is wrong in a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsoncProblem {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl fmt::Display for JsoncProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl JsoncNode {
    /// The items of a list or an object; a scalar has none.
    pub fn items(&self) -> &[JsoncItem] {
        match &self.kind {
            JsoncKind::List(child_items, _) | JsoncKind::Map(child_items, _) => child_items,
            _ => &[],
        }
    }

    pub fn is_map(&self) -> bool {
        matches!(self.kind, JsoncKind::Map(..))
    }

    pub fn is_list(&self) -> bool {
        matches!(self.kind, JsoncKind::List(..))
    }

    /// The value of a key, if this is an object that has it.
    pub fn get(&self, member_key: &str) -> Option<&JsoncNode> {
        let found_item = self.items().iter().find(|item| self.is_map() && item.key == member_key);
        found_item.map(|item| &item.value)
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            JsoncKind::Text(text_value) => Some(text_value),
            _ => None,
        }
    }

    pub fn to_value(&self) -> JsoncValue {
        match &self.kind {
            JsoncKind::Null => JsoncValue::Null,
            JsoncKind::Flag(boolean) => JsoncValue::Flag(*boolean),
            JsoncKind::Number(number_text) => JsoncValue::Number(number_text.clone()),
            JsoncKind::Text(text_value) => JsoncValue::Text(text_value.clone()),
            JsoncKind::List(child_items, _) => {
                JsoncValue::List(child_items.iter().map(|child_item| child_item.value.to_value()).collect())
            }
            JsoncKind::Map(child_items, _) => JsoncValue::Map(
                child_items.iter().map(|child_item| (child_item.key.clone(), child_item.value.to_value())).collect(),
            ),
        }
    }
}

impl JsoncValue {
    pub fn from_text(text_value: impl Into<String>) -> JsoncValue {
        JsoncValue::Text(text_value.into())
    }

    pub fn from_number(number_value: u32) -> JsoncValue {
        JsoncValue::Number(number_value.to_string())
    }

    pub fn from_members<const N: usize>(members: [(&str, JsoncValue); N]) -> JsoncValue {
        JsoncValue::Map(
            members.into_iter().map(|(member_key, member_value)| (member_key.to_string(), member_value)).collect(),
        )
    }
}

/// The line and column of a byte, both counted from 1. Columns are characters.
pub fn line_and_column(document_text: &str, byte_offset: usize) -> (usize, usize) {
    let text_before = document_text.get(..byte_offset).unwrap_or(document_text);
    let line_number = text_before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column_number = text_before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    // Editors do not show a byte order mark as a column.
    let mark_width = usize::from(line_number == 1 && document_text.starts_with('\u{feff}') && column_number > 1);
    (line_number, column_number - mark_width)
}
