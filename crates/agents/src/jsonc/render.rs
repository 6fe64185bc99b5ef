//! Renders values as text in the style of their surroundings.

use super::JsoncValue;

/// How a text is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsoncStyle {
    /// One level of indentation.
    pub indent_unit: String,
    pub line_end: &'static str,
    /// Whether colons and commas are followed by a blank.
    pub has_spaces: bool,
}

impl JsoncStyle {
    /// Renders every item on its own line. `base_indent` is the indentation of the line on which the value begins.
    pub fn render_lines(&self, jsonc_value: &JsoncValue, base_indent: &str) -> String {
        let inner_indent = format!("{base_indent}{}", self.indent_unit);
        let (brackets, rendered_items): ([char; 2], Vec<String>) = match jsonc_value {
            JsoncValue::List(list_items) => (
                ['[', ']'],
                list_items.iter().map(|child_value| self.render_lines(child_value, &inner_indent)).collect(),
            ),
            JsoncValue::Map(members) => {
                let render_pair = |(member_key, member_value): &(String, JsoncValue)| {
                    self.render_member(member_key, &self.render_lines(member_value, &inner_indent))
                };
                (['{', '}'], members.iter().map(render_pair).collect())
            }
            scalar_value => return self.render_inline(scalar_value),
        };
        let [open_bracket, close_bracket] = brackets;
        // Empty brackets stay on one line.
        if rendered_items.is_empty() {
            return format!("{open_bracket}{close_bracket}");
        }
        let line_start = format!("{}{inner_indent}", self.line_end);
        format!(
            "{open_bracket}{line_start}{}{}{base_indent}{close_bracket}",
            rendered_items.join(&format!(",{line_start}")),
            self.line_end
        )
    }

    /// Renders the value on one line.
    pub fn render_inline(&self, jsonc_value: &JsoncValue) -> String {
        let separator = if self.has_spaces { ", " } else { "," };
        match jsonc_value {
            JsoncValue::Null => "null".to_string(),
            JsoncValue::Flag(boolean) => boolean.to_string(),
            JsoncValue::Number(number_text) => number_text.clone(),
            JsoncValue::Text(text_value) => quote_text(text_value),
            JsoncValue::List(list_items) => {
                let rendered_items: Vec<String> =
                    list_items.iter().map(|child_value| self.render_inline(child_value)).collect();
                format!("[{}]", rendered_items.join(separator))
            }
            JsoncValue::Map(members) => {
                let render_pair = |(member_key, member_value): &(String, JsoncValue)| {
                    self.render_member(member_key, &self.render_inline(member_value))
                };
                format!("{{{}}}", members.iter().map(render_pair).collect::<Vec<_>>().join(separator))
            }
        }
    }

    /// Renders a key and its value, which is already rendered.
    pub fn render_member(&self, member_key: &str, rendered_value: &str) -> String {
        let colon = if self.has_spaces { ": " } else { ":" };
        format!("{}{colon}{rendered_value}", quote_text(member_key))
    }
}

/// Renders a file of its own, without the final line end.
pub fn render_pretty(jsonc_value: &JsoncValue) -> String {
    JsoncStyle { indent_unit: "  ".into(), line_end: "\n", has_spaces: true }.render_lines(jsonc_value, "")
}

fn quote_text(plain_text: &str) -> String {
    let mut quoted_text = String::with_capacity(plain_text.len() + 2);
    quoted_text.push('"');
    for character in plain_text.chars() {
        match character {
            '"' => quoted_text.push_str("\\\""),
            '\\' => quoted_text.push_str("\\\\"),
            '\n' => quoted_text.push_str("\\n"),
            '\r' => quoted_text.push_str("\\r"),
            '\t' => quoted_text.push_str("\\t"),
            // The other control characters have no short escape.
            character if character < ' ' => quoted_text.push_str(&format!("\\u{:04x}", u32::from(character))),
            character => quoted_text.push(character),
        }
    }
    quoted_text.push('"');
    quoted_text
}
