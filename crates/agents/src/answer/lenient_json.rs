//! A lenient reader of JSON and of YAML's flow style.
//!
//! It accepts too many or too few commas, comments, single and typographic quotation marks, bare words, raw line
//! breaks and stray quotation marks inside texts, and a text that ends in the middle; everything that is complete is
//! kept. Valid JSON is read as any other parser reads it. The reader looks at each character a bounded number of
//! times, so that hostile input cannot make it slow.

use super::node::AnswerNode;

/// Deeper nesting is noise, and recursion must not exhaust the stack.
const MAX_DEPTH: u32 = 48;
/// The longest key without quotation marks.
const MAX_KEY_BYTES: usize = 48;
/// The longest bare text with brackets in it.
const MAX_BARE_BYTES: usize = 400;

/// A cursor over the text, and what had to be forgiven so far.
#[derive(Debug)]
pub(super) struct LenientJsonReader<'t> {
    source_text: &'t str,
    pub position: usize,
    depth: u32,
    /// Whether nothing had to be forgiven that changes what is read.
    pub is_clean: bool,
    /// Whether the text ended in the middle of a value.
    pub is_truncated: bool,
}

/// Where a text stands. This decides what may follow its closing quotation mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextContext {
    Key,
    Map,
    List,
}

impl<'t> LenientJsonReader<'t> {
    /// Starts reading at a `{` or `[`.
    pub fn new(source_text: &'t str, start_position: usize) -> LenientJsonReader<'t> {
        LenientJsonReader { source_text, position: start_position, depth: 0, is_clean: true, is_truncated: false }
    }

    /// Reads one value; `None` if there is none.
    pub fn read(&mut self) -> Option<AnswerNode> {
        self.read_value(TextContext::List)
    }

    fn remaining_text(&self) -> &'t str {
        self.source_text.get(self.position..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.remaining_text().chars().next()
    }

    fn advance(&mut self) {
        self.position += self.peek().map_or(0, char::len_utf8);
    }

    /// Skips white space and comments of JavaScript, C and YAML.
    fn skip_blanks(&mut self) {
        loop {
            let remaining = self.remaining_text();
            let after_blanks =
                remaining.trim_start_matches(|character: char| character.is_whitespace() || character == '\u{feff}');
            self.position += remaining.len() - after_blanks.len();
            let comment_end = if after_blanks.starts_with("//") || after_blanks.starts_with('#') {
                after_blanks.find('\n')
            } else if after_blanks.starts_with("/*") {
                after_blanks.find("*/").map(|comment_length| comment_length + 2)
            } else {
                return;
            };
            self.position += comment_end.unwrap_or(after_blanks.len());
        }
    }

    fn read_value(&mut self, text_context: TextContext) -> Option<AnswerNode> {
        self.skip_blanks();
        match self.peek() {
            None => {
                self.is_truncated = true;
                None
            }
            // The bracket is skipped instead of opened; what is in it is read as part of the outer value.
            Some('{' | '[') if self.depth == MAX_DEPTH => {
                self.is_clean = false;
                self.advance();
                None
            }
            // `{{name}}` is a placeholder of a template, not a map inside of a map.
            Some('{') if text_context == TextContext::Map && self.remaining_text().starts_with("{{") => {
                Some(self.read_bare_text())
            }
            Some('{') => Some(self.read_nested(Self::read_map)),
            Some('[') => Some(self.read_nested(Self::read_list)),
            Some(character) if closing_marks(character).is_some() => {
                self.read_quoted_text(text_context).map(AnswerNode::Text)
            }
            // A separator in place of a value: the value is missing.
            Some(',' | ':' | '}' | ']') => None,
            Some(_) => Some(self.read_bare_text()),
        }
    }

    fn read_nested(&mut self, read_contents: fn(&mut Self) -> AnswerNode) -> AnswerNode {
        self.depth += 1;
        self.advance();
        let nested_node = read_contents(self);
        self.depth -= 1;
        nested_node
    }

    /// Reads a list up to its bracket. Missing commas between items are accepted.
    fn read_list(&mut self) -> AnswerNode {
        let mut list_items = Vec::new();
        loop {
            self.skip_blanks();
            let position_before = self.position;
            match self.peek() {
                None => {
                    self.is_truncated = true;
                    return AnswerNode::List(list_items);
                }
                Some(']') => {
                    self.advance();
                    return AnswerNode::List(list_items);
                }
                Some(',') => self.advance(),
                Some(_) => list_items.extend(self.read_value(TextContext::List)),
            }
            // Something that cannot start a value must be skipped, or the loop would never end.
            if self.position == position_before {
                self.is_clean = false;
                self.advance();
            }
        }
    }

    fn read_map(&mut self) -> AnswerNode {
        let mut pairs: Vec<(String, AnswerNode)> = Vec::new();
        loop {
            self.skip_blanks();
            let position_before = self.position;
            match self.peek() {
                None => {
                    self.is_truncated = true;
                    return AnswerNode::Map(pairs);
                }
                Some('}') => {
                    self.advance();
                    return AnswerNode::Map(pairs);
                }
                // The brace was forgotten; this bracket closes the surrounding list.
                Some(']') => {
                    self.is_clean = false;
                    return AnswerNode::Map(pairs);
                }
                Some(',') => self.advance(),
                Some(_) => self.read_pair(&mut pairs),
            }
            if self.position == position_before {
                self.is_clean = false;
                self.advance();
            }
        }
    }

    /// Reads one `key: value` pair; what is not one is appended to the previous text.
    fn read_pair(&mut self, pairs: &mut Vec<(String, AnswerNode)>) {
        // Whether a comma comes before it decides how a stray text is joined to the previous one.
        let follows_comma = self.source_text[..self.position].trim_end().ends_with(',');
        let pair_key = match self.peek() {
            Some(character) if closing_marks(character).is_some() => match self.read_quoted_text(TextContext::Key) {
                Some(pair_key) => pair_key,
                None => return,
            },
            _ => match find_bare_key(self.remaining_text()) {
                Some(pair_key) => {
                    self.position += pair_key.len();
                    pair_key.trim().to_string()
                }
                None => return self.append_stray_text(pairs, follows_comma),
            },
        };
        self.skip_blanks();
        // A key without a colon has no value; the truncated end of a text looks the same.
        if self.peek() != Some(':') {
            self.is_clean = false;
            self.is_truncated |= self.peek().is_none();
            return;
        }
        self.advance();
        // A value that was cut off is dropped together with its key: half of a text may say the opposite.
        let was_truncated = self.is_truncated;
        match self.read_value(TextContext::Map) {
            Some(pair_value) => pairs.push((pair_key, pair_value)),
            None if self.is_truncated && !was_truncated => {}
            None => pairs.push((pair_key, AnswerNode::Nothing)),
        }
    }

    /// Appends words where a key should be to the previous text, which contained a comma or a line break.
    fn append_stray_text(&mut self, pairs: &mut [(String, AnswerNode)], follows_comma: bool) {
        self.is_clean = false;
        let AnswerNode::Text(stray_text) = self.read_bare_text() else { return };
        if let Some((_, AnswerNode::Text(previous_text))) = pairs.last_mut() {
            previous_text.push_str(if follows_comma { ", " } else { " " });
            previous_text.push_str(&stray_text);
        }
    }

    /// Reads up to the end of a bare word. A colon does not end it: bare texts are full of colons.
    fn read_bare_text(&mut self) -> AnswerNode {
        let remaining = self.remaining_text();
        let mut text_end = remaining.find([',', '}', ']', '\n']).unwrap_or(remaining.len());
        // A bracket that opens inside the text has to close inside it: `{{name}}`, `f[0]`.
        while has_unclosed_bracket(&remaining[..text_end]) {
            let nearby_bytes = remaining[text_end..].bytes().take(MAX_BARE_BYTES).take_while(|byte| *byte != b'\n');
            let Some(closing_offset) = nearby_bytes.into_iter().position(|byte| byte == b'}' || byte == b']') else {
                break;
            };
            text_end += closing_offset + 1;
        }
        if let Some(comment_start) = remaining[..text_end].find(" #") {
            text_end = comment_start;
        }
        self.position += text_end;
        match remaining[..text_end].trim() {
            "null" | "~" | "None" | "" => AnswerNode::Nothing,
            bare_text => AnswerNode::Text(bare_text.to_string()),
        }
    }

    /// Reads a text in quotation marks. A text that is never closed is dropped: half of it may say the opposite.
    fn read_quoted_text(&mut self, text_context: TextContext) -> Option<String> {
        let opening_mark = self.peek()?;
        let closing = closing_marks(opening_mark)?;
        self.advance();
        let mut unquoted = String::new();
        let mut char_indices = self.remaining_text().char_indices();
        let text_start = self.position;
        while let Some((char_offset, character)) = char_indices.next() {
            let following_text = &self.source_text[text_start + char_offset + character.len_utf8()..];
            // Single-quoted texts are YAML, in which a backslash is an ordinary character and `''` is a quote; `\'` is
            // accepted as a quote, too.
            if character == '\\' && opening_mark != '\'' {
                push_escape(&mut unquoted, &mut char_indices);
            } else if (character == '\'' && opening_mark == '\'' && following_text.starts_with('\''))
                || (character == '\\' && following_text.starts_with('\''))
            {
                char_indices.next();
                unquoted.push('\'');
            } else if closing.contains(&character) && closes_text(following_text, text_context) {
                self.position = text_start + char_offset + character.len_utf8();
                return Some(unquoted);
            } else if character == '\n'
                && (text_context == TextContext::Key
                    || text_context == TextContext::Map && starts_next_pair(following_text))
            {
                // The closing mark was forgotten: the next line is already the next pair.
                self.is_clean = false;
                self.position = text_start + char_offset;
                return Some(unquoted.trim_end().trim_end_matches(',').to_string());
            } else {
                // A quotation mark inside the text was not escaped. The text is kept, but the reading is a guess.
                self.is_clean &= !closing.contains(&character);
                unquoted.push(character);
            }
        }
        self.position = self.source_text.len();
        self.is_truncated = true;
        None
    }
}

/// The marks that can close a text, by its opening mark; `None` if the character opens no text.
fn closing_marks(opening_mark: char) -> Option<&'static [char]> {
    match opening_mark {
        '"' => Some(&['"']),
        '\'' => Some(&['\'']),
        '“' | '„' | '”' => Some(&['”', '“', '"']),
        '‘' | '’' => Some(&['’', '\'']),
        _ => None,
    }
}

/// Whether more brackets are opened than closed. Long texts are not counted, to keep the reader linear.
fn has_unclosed_bracket(bare_text: &str) -> bool {
    let count_chars = |bracket_set: [char; 2]| bare_text.matches(bracket_set).count();
    bare_text.len() <= MAX_BARE_BYTES && count_chars(['{', '[']) > count_chars(['}', ']'])
}

/// Whether a quotation mark before this text closes it, or only occurs inside it.
fn closes_text(following_text: &str, text_context: TextContext) -> bool {
    let following_text = following_text.trim_start_matches([' ', '\t']);
    match following_text.chars().next() {
        None | Some('}' | ']' | '\n' | '\r' | '#') => true,
        Some('/') => following_text.starts_with("//") || following_text.starts_with("/*"),
        // In a map, a comma must be followed by something that can start a pair. Otherwise it belongs to the text.
        Some(',') if text_context == TextContext::Map => {
            let after_comma = following_text[1..].trim_start();
            let start_marks = ['"', '\'', '“', '”', '„', '‘', '’', '}', ']', '{', '#', '/', ','];
            after_comma.is_empty() || after_comma.starts_with(start_marks) || find_bare_key(after_comma).is_some()
        }
        Some(',') => true,
        // Keys contain no quotation marks, so any mark closes them.
        Some(_) => text_context == TextContext::Key,
    }
}

/// Finds a key without quotation marks: a word followed by a colon.
fn find_bare_key(source_text: &str) -> Option<&str> {
    let key_end = source_text
        .bytes()
        .take(MAX_KEY_BYTES)
        .position(|byte| !(byte.is_ascii_alphanumeric() || b"_- ".contains(&byte)))?;
    let starts_like_key =
        source_text.starts_with(|character: char| character.is_ascii_alphanumeric() || character == '_');
    (starts_like_key && source_text.as_bytes()[key_end] == b':').then(|| &source_text[..key_end])
}

/// Whether a line begins with a key in quotation marks, or closes what is open.
fn starts_next_pair(next_line: &str) -> bool {
    let next_line = next_line.trim_start_matches([' ', '\t']);
    let Some(after_mark) = next_line.strip_prefix(['"', '\'', '“', '”']) else {
        return next_line.starts_with(['}', ']']);
    };
    let key_end = after_mark
        .bytes()
        .take(MAX_KEY_BYTES)
        .position(|byte| !(byte.is_ascii_alphanumeric() || b"_- ".contains(&byte)));
    let Some(after_key) = key_end.filter(|key_end| *key_end > 0).and_then(|key_end| after_mark.get(key_end..)) else {
        return false;
    };
    let after_key = after_key.trim_start_matches(['"', '\'', '”', '“']);
    after_key.trim_start_matches([' ', '\t']).starts_with(':')
}

/// Pushes the character that an escape stands for. An escape that JSON does not know is plain text: `\d`, `\_`.
fn push_escape(unescaped: &mut String, char_indices: &mut std::str::CharIndices<'_>) {
    let Some((_, escaped)) = char_indices.next() else { return unescaped.push('\\') };
    match escaped {
        'n' => unescaped.push('\n'),
        't' => unescaped.push('\t'),
        'r' => unescaped.push('\r'),
        'b' => unescaped.push('\u{8}'),
        'f' => unescaped.push('\u{c}'),
        '"' | '\\' | '/' | '\'' | '“' | '”' => unescaped.push(escaped),
        'u' => push_unicode_escape(unescaped, char_indices),
        other_char => unescaped.extend(['\\', other_char]),
    }
}

/// Pushes the character of a `\u` escape, joining the two halves of a surrogate pair.
fn push_unicode_escape(unescaped: &mut String, char_indices: &mut std::str::CharIndices<'_>) {
    let Some(first_unit) = parse_four_hex_digits(char_indices.as_str()) else {
        return unescaped.push_str("\\u");
    };
    skip_chars(char_indices, 4);
    let second_unit = (0xd800..0xdc00)
        .contains(&first_unit)
        .then(|| char_indices.as_str().strip_prefix("\\u").and_then(parse_four_hex_digits))
        .flatten();
    // Without its second half a surrogate is no character and becomes the replacement character below.
    let code_point = match second_unit {
        Some(low_surrogate) if (0xdc00..0xe000).contains(&low_surrogate) => {
            skip_chars(char_indices, 6);
            0x10000 + ((first_unit - 0xd800) << 10) + (low_surrogate - 0xdc00)
        }
        _ => first_unit,
    };
    unescaped.push(char::from_u32(code_point).unwrap_or(char::REPLACEMENT_CHARACTER));
}

fn skip_chars(char_indices: &mut std::str::CharIndices<'_>, skip_count: usize) {
    for _ in 0..skip_count {
        char_indices.next();
    }
}

fn parse_four_hex_digits(digits_text: &str) -> Option<u32> {
    let hex_digits =
        digits_text.get(..4).filter(|hex_digits| hex_digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u32::from_str_radix(hex_digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::list_finder::parse_strict_yaml;

    fn read_source(source_text: &str) -> (Option<AnswerNode>, bool, bool) {
        let mut reader = LenientJsonReader::new(source_text, 0);
        let node = reader.read();
        (node, reader.is_clean, reader.is_truncated)
    }

    fn render_source(source_text: &str) -> String {
        render_node(&read_source(source_text).0.unwrap())
    }

    fn render_node(shown_node: &AnswerNode) -> String {
        match shown_node {
            AnswerNode::Nothing => "-".into(),
            AnswerNode::Text(node_text) => node_text.replace('\n', "↵"),
            AnswerNode::List(list_items) => {
                format!("[{}]", list_items.iter().map(render_node).collect::<Vec<_>>().join(" | "))
            }
            AnswerNode::Map(pairs) => {
                let pairs =
                    pairs.iter().map(|(pair_key, pair_value)| format!("{pair_key}={}", render_node(pair_value)));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(" | "))
            }
        }
    }

    #[test]
    fn common_json_mistakes_are_forgiven() {
        for (source_text, expected) in [
            (r#"{"a": 1.50, "b": [true, null, "x\ny"],}"#, "{a=1.50 | b=[true | - | x↵y]}"),
            ("{\"a\": 1, // why\n /* or */ 'b': 'it''s' # end\n}", "{a=1 | b=it's}"),
            ("{“a”: “x “y” z”, ‘b’: ‘q’}", "{a=x “y” z | b=q}"),
            (r#"{"a": "say "hi" now", "b": "c"}"#, r#"{a=say "hi" now | b=c}"#),
            (r#"{"a": "use "x", then y", "b": "c"}"#, r#"{a=use "x", then y | b=c}"#),
            ("{a: b: c, d: one, two, e: {{f}}}", "{a=b: c | d=one, two | e={{f}}}"),
            ("{\"a\": \"never closed,\n  \"b\": \"c\"}", "{a=never closed | b=c}"),
            ("[{\"a\": 1} {\"a\": 2}, , {\"a\": 3]", "[{a=1} | {a=2} | {a=3}]"),
            ("{\"a\": \"two\nlines\", \"r\": \"\\d+ \\u00e4 \\ud83d\\ude00\"}", "{a=two↵lines | r=\\d+ ä 😀}"),
            ("{'path': 'C:\\dir', \"w\": \"C:\\\\dir\"}", "{path=C:\\dir | w=C:\\dir}"),
        ] {
            assert_eq!(render_source(source_text), expected, "{source_text}");
        }
    }

    #[test]
    fn a_truncated_text_keeps_its_whole_values() {
        let whole_json = r#"[{"a": "one", "b": "x"}, {"a": "two", "b": "y"}]"#;
        for cut_offset in (1..whole_json.len()).filter(|cut_offset| whole_json.is_char_boundary(*cut_offset)) {
            let (node, _, is_truncated) = read_source(&whole_json[..cut_offset]);
            assert!(is_truncated, "{cut_offset}");
            let Some(AnswerNode::List(list_items)) = node else { panic!("{cut_offset}") };
            let item_texts = list_items
                .iter()
                .flat_map(|list_item| [list_item.get_text(&["a"]), list_item.get_text(&["b"])])
                .flatten();
            assert!(
                item_texts.into_iter().all(|text| ["one", "two", "x", "y"].contains(&text.as_str())),
                "{cut_offset}"
            );
        }
    }

    #[test]
    fn valid_json_is_read_exactly_and_counts_as_clean() {
        let source_text = r##"{"a": "x \"y\", \"z\": {", "b": ["", "#no comment", "//no", "}"], "c": {"d": "é"}}"##;
        let (node, is_clean, is_truncated) = read_source(source_text);
        // JSON is YAML, too.
        assert_eq!(node, Some(parse_strict_yaml(source_text).unwrap()));
        assert!(is_clean && !is_truncated);
    }

    #[test]
    fn depth_is_bounded() {
        let (node, is_clean, is_truncated) = read_source(&"[".repeat(1_000_000));
        assert!(node.is_some() && !is_clean && is_truncated);
    }
}
