//! Renders values as text in the style of their surroundings.

use super::Tree;

/// How a text is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dress {
    /// One level of indentation.
    pub unit: String,
    pub line_end: &'static str,
    /// Whether colons and commas are followed by a blank.
    pub spaced: bool,
}

impl Dress {
    /// Renders every item on its own line. `base_indent` is the indentation of the line on which the value begins.
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
        // Empty brackets stay on one line.
        if items.is_empty() {
            return format!("{open}{close}");
        }
        let line = format!("{}{inner}", self.line_end);
        format!("{open}{line}{}{}{indent}{close}", items.join(&format!(",{line}")), self.line_end)
    }

    /// Renders the value on one line.
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

    /// Renders a key and its value, which is already rendered.
    pub fn keyed(&self, key: &str, value: &str) -> String {
        let colon = if self.spaced { ": " } else { ":" };
        format!("{}{colon}{value}", quoted(key))
    }
}

/// Renders a file of its own, without the final line end.
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
            // The other control characters have no short escape.
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
