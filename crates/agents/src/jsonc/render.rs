//! From what a value says to text, in the dress of its surroundings.

use super::Tree;

/// How a text is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dress {
    /// One step inwards.
    pub unit: String,
    pub line_end: &'static str,
    /// A blank behind colons and commas.
    pub spaced: bool,
}

impl Dress {
    /// Every item on its own line; `indent` is that of the line on which the value begins.
    pub fn lines(&self, value: &Tree, indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        let (brackets, items): ([char; 2], Vec<String>) = match value {
            Tree::List(items) => (['[', ']'], items.iter().map(|item| self.lines(item, &inner)).collect()),
            Tree::Map(items) => {
                let line = |(key, value): &(String, Tree)| self.keyed(key, &self.lines(value, &inner));
                (['{', '}'], items.iter().map(line).collect())
            }
            plain => return self.inline(plain),
        };
        let [open, close] = brackets;
        if items.is_empty() {
            return format!("{open}{close}");
        }
        let line = format!("{}{inner}", self.line_end);
        format!("{open}{line}{}{}{indent}{close}", items.join(&format!(",{line}")), self.line_end)
    }

    /// On one line.
    pub fn inline(&self, value: &Tree) -> String {
        let comma = if self.spaced { ", " } else { "," };
        match value {
            Tree::Null => "null".to_string(),
            Tree::Flag(flag) => flag.to_string(),
            Tree::Number(number) => number.clone(),
            Tree::Text(text) => quoted(text),
            Tree::List(items) => {
                let items: Vec<String> = items.iter().map(|item| self.inline(item)).collect();
                format!("[{}]", items.join(comma))
            }
            Tree::Map(items) => {
                let item = |(key, value): &(String, Tree)| self.keyed(key, &self.inline(value));
                format!("{{{}}}", items.iter().map(item).collect::<Vec<_>>().join(comma))
            }
        }
    }

    pub fn keyed(&self, key: &str, value: &str) -> String {
        let colon = if self.spaced { ": " } else { ":" };
        format!("{}{colon}{value}", quoted(key))
    }
}

/// As a file of its own would have it, without the last line end.
pub fn pretty(value: &Tree) -> String {
    Dress { unit: "  ".into(), line_end: "\n", spaced: true }.lines(value, "")
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
