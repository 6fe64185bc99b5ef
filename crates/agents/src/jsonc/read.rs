//! Reads a text into a tree.

use std::collections::HashSet;

use super::{JsoncDocument, JsoncFrame, JsoncItem, JsoncKind, JsoncNode, JsoncProblem, line_and_column};

/// Deeper than any settings file. A text of nothing but brackets must not exhaust the stack.
const MAX_DEPTH: usize = 128;

/// Reads a text with one value and nothing else but comments.
pub fn read_document(document_text: &str) -> Result<JsoncDocument, JsoncProblem> {
    let mut jsonc_reader = JsoncReader { document_text, position: 0, non_json: None };
    // The mark is skipped here but stays in the text, so that all offsets are those of the file.
    if document_text.starts_with('\u{feff}') {
        jsonc_reader.position = '\u{feff}'.len_utf8();
    }
    let root_result = jsonc_reader.read_root();
    let to_problem = |(byte_offset, message): (usize, String)| {
        let (line_number, column_number) = line_and_column(document_text, byte_offset);
        JsoncProblem { line: line_number, column: column_number, message }
    };
    let non_json = jsonc_reader.non_json.map(|(byte_offset, message)| to_problem((byte_offset, message.to_string())));
    root_result.map(|root| JsoncDocument { root, non_json }).map_err(to_problem)
}

struct JsoncReader<'a> {
    document_text: &'a str,
    position: usize,
    non_json: Option<(usize, &'static str)>,
}

/// The byte offset of an error, and its description.
type OffsetMessage = (usize, String);

/// The white space and comments between two tokens.
struct TriviaSpan {
    /// Where the last comment ends, or where the span begins if there is none.
    space_start: usize,
    ends_with_line_comment: bool,
    has_comments: bool,
}

impl JsoncReader<'_> {
    fn read_root(&mut self) -> Result<JsoncNode, OffsetMessage> {
        self.skip_trivia()?;
        if self.peek().is_none() {
            return Err((self.position, "the file has no JSON value".into()));
        }
        let root_node = self.read_value(0)?;
        self.skip_trivia()?;
        match self.peek() {
            None => Ok(root_node),
            Some(_) => Err((self.position, "unexpected text after the end of the JSON value".into())),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.document_text.as_bytes().get(self.position).copied()
    }

    fn remaining_text(&self) -> &str {
        self.document_text.get(self.position..).unwrap_or_default()
    }

    /// Remembers the first extension of JSON; later ones are of no interest.
    fn note_non_json(&mut self, byte_offset: usize, message: &'static str) {
        self.non_json.get_or_insert((byte_offset, message));
    }

    fn error_here<T>(&self, message: impl Into<String>) -> Result<T, OffsetMessage> {
        Err((self.position, message.into()))
    }

    /// Skips white space and comments.
    fn skip_trivia(&mut self) -> Result<TriviaSpan, OffsetMessage> {
        let mut trivia_span =
            TriviaSpan { space_start: self.position, ends_with_line_comment: false, has_comments: false };
        loop {
            while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
                self.position += 1;
            }
            let remaining = self.remaining_text();
            let comment_length = if remaining.starts_with("//") {
                // The line end counts as white space, so that an edit can tell it from the comment.
                let comment_line = remaining.split('\n').next().unwrap_or_default();
                comment_line.strip_suffix('\r').unwrap_or(comment_line).len()
            } else if remaining.starts_with("/*") {
                match remaining.get(2..).and_then(|comment_text| comment_text.find("*/")) {
                    Some(body_length) => body_length + 4,
                    None => return self.error_here("unclosed comment"),
                }
            } else {
                return Ok(trivia_span);
            };
            // Only the last comment matters: it decides whether the following line end may be removed.
            trivia_span.ends_with_line_comment = remaining.starts_with("//");
            trivia_span.has_comments = true;
            self.note_non_json(self.position, "comment");
            self.position += comment_length;
            trivia_span.space_start = self.position;
        }
    }

    fn read_value(&mut self, depth: usize) -> Result<JsoncNode, OffsetMessage> {
        let value_start = self.position;
        let node_kind = match self.peek() {
            // The first byte decides the kind of the value: JSON needs no further lookahead.
            Some(b'{') => {
                self.read_items(b'}', depth).map(|(child_items, frame)| JsoncKind::Map(child_items, frame))?
            }
            Some(b'[') => {
                self.read_items(b']', depth).map(|(child_items, frame)| JsoncKind::List(child_items, frame))?
            }
            Some(b'"') => JsoncKind::Text(self.read_string()?),
            Some(b'-' | b'0'..=b'9') => JsoncKind::Number(self.read_number()?),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$') => self.read_keyword()?,
            Some(_) => return self.error_here("expected a value"),
            None => return self.error_here("unexpected end of file, expected a value"),
        };
        Ok(JsoncNode { span: value_start..self.position, kind: node_kind })
    }

    /// Reads the inside of a list or an object, with its brackets.
    fn read_items(&mut self, closing_byte: u8, depth: usize) -> Result<(Vec<JsoncItem>, JsoncFrame), OffsetMessage> {
        if depth >= MAX_DEPTH {
            return self.error_here(format!("nested more than {MAX_DEPTH} levels deep"));
        }
        let open_offset = self.position;
        self.position += 1;
        let mut child_items: Vec<JsoncItem> = Vec::new();
        let mut frame = JsoncFrame { tail_offset: self.position, ..JsoncFrame::default() };
        let mut known_keys = HashSet::new();
        loop {
            let trivia_span = self.skip_trivia()?;
            frame.has_comments |= trivia_span.has_comments;
            // The tail is updated before every token. At the closing bracket it is what follows the last item.
            frame.tail_offset = trivia_span.space_start;
            frame.tail_is_line_comment = trivia_span.ends_with_line_comment;
            // As many commas as items: either nothing was read yet, or the last item has its comma.
            let has_comma = frame.comma_offsets.len() == child_items.len();
            match self.peek() {
                Some(next_byte) if next_byte == closing_byte => {
                    // A trailing comma is an extension of JSON.
                    if let Some(last_comma) =
                        frame.comma_offsets.last().filter(|_| has_comma && !child_items.is_empty())
                    {
                        self.note_non_json(*last_comma, "trailing comma");
                    }
                    self.position += 1;
                    return Ok((child_items, frame));
                }
                None => {
                    // The opening bracket is the place that helps the user; the end of the file does not.
                    let open_bracket = if closing_byte == b'}' { "{" } else { "[" };
                    return Err((open_offset, format!("unclosed `{open_bracket}`")));
                }
                Some(b',') if !has_comma => {
                    frame.comma_offsets.push(self.position);
                    self.position += 1;
                }
                Some(_) if !has_comma => return self.error_here("expected a comma or a closing bracket"),
                Some(_) => {
                    let read_pair = self.read_item(closing_byte == b'}', &trivia_span, depth)?;
                    frame.has_comments |= read_pair.1;
                    // Readers disagree on which of two equal keys counts, so an edit could have no effect.
                    if closing_byte == b'}' && !known_keys.insert(read_pair.0.key.clone()) {
                        return Err((read_pair.0.start, format!("duplicate key `{}`", read_pair.0.key)));
                    }
                    child_items.push(read_pair.0);
                }
            }
        }
    }

    /// Reads one item, and returns whether there are comments between its key and its value.
    fn read_item(
        &mut self,
        has_key: bool,
        trivia_before: &TriviaSpan,
        depth: usize,
    ) -> Result<(JsoncItem, bool), OffsetMessage> {
        let item_start = self.position;
        let (mut item_key, mut is_commented) = (String::new(), false);
        if has_key {
            if self.peek() != Some(b'"') {
                return self.error_here("expected a key in double quotes");
            }
            item_key = self.read_string()?;
            is_commented |= self.skip_trivia()?.has_comments;
            if self.peek() != Some(b':') {
                return self.error_here(format!("expected a colon after `{item_key}`"));
            }
            self.position += 1;
            is_commented |= self.skip_trivia()?.has_comments;
        }
        let item_value = self.read_value(depth + 1)?;
        let jsonc_item = JsoncItem {
            key: item_key,
            start: item_start,
            value: item_value,
            space_start: trivia_before.space_start,
            follows_line_comment: trivia_before.ends_with_line_comment,
        };
        Ok((jsonc_item, is_commented))
    }

    fn read_keyword(&mut self) -> Result<JsoncKind, OffsetMessage> {
        let is_keyword_char =
            |character: char| character.is_ascii_alphanumeric() || character == '_' || character == '$';
        let remaining = self.remaining_text();
        let keyword = remaining.split(|character| !is_keyword_char(character)).next().unwrap_or_default();
        let node_kind = match keyword {
            "null" => JsoncKind::Null,
            "true" => JsoncKind::Flag(true),
            "false" => JsoncKind::Flag(false),
            // The usual mistake is a text without quotes.
            other_word => {
                return self
                    .error_here(format!("`{other_word}` is not a JSON value; strings must be in double quotes"));
            }
        };
        self.position += keyword.len();
        Ok(node_kind)
    }

    fn read_number(&mut self) -> Result<String, OffsetMessage> {
        let number_start = self.position;
        self.skip_byte(b'-');
        let integer_digits = self.skip_digits();
        let digit_text =
            self.document_text.get(number_start..self.position).unwrap_or_default().trim_start_matches('-');
        // A leading zero is only allowed if it is the only digit.
        let mut is_valid = integer_digits > 0 && (integer_digits == 1 || !digit_text.starts_with('0'));
        if self.skip_byte(b'.') {
            is_valid &= self.skip_digits() > 0;
        }
        if self.skip_byte(b'e') || self.skip_byte(b'E') {
            let _ = self.skip_byte(b'-') || self.skip_byte(b'+');
            is_valid &= self.skip_digits() > 0;
        }
        match self.document_text.get(number_start..self.position) {
            Some(number_text) if is_valid => Ok(number_text.to_string()),
            _ => Err((number_start, "invalid number".into())),
        }
    }

    fn skip_byte(&mut self, expected_byte: u8) -> bool {
        let is_present = self.peek() == Some(expected_byte);
        self.position += usize::from(is_present);
        is_present
    }

    fn skip_digits(&mut self) -> usize {
        let digits_start = self.position;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.position += 1;
        }
        self.position - digits_start
    }

    /// Reads a text, including its quotes. One that is not closed is reported at its opening quote.
    fn read_string(&mut self) -> Result<String, OffsetMessage> {
        let open_offset = self.position;
        self.position += 1;
        let mut unquoted = String::new();
        loop {
            let remaining = self.remaining_text();
            // Everything up to the next special byte is copied at once.
            let plain_length = remaining.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < b' ');
            let Some(plain_length) = plain_length else {
                return Err((open_offset, "unclosed string".into()));
            };
            unquoted.push_str(remaining.get(..plain_length).unwrap_or_default());
            let stop_byte = remaining.as_bytes().get(plain_length).copied();
            self.position += plain_length;
            match stop_byte {
                Some(b'"') => {
                    self.position += 1;
                    return Ok(unquoted);
                }
                Some(b'\\') => unquoted.push(self.read_escape()?),
                Some(b'\n' | b'\r') => {
                    return Err((open_offset, "string is not closed on the same line".into()));
                }
                _ => return self.error_here("control character in a string"),
            }
        }
    }

    fn read_escape(&mut self) -> Result<char, OffsetMessage> {
        let escape_start = self.position;
        let escaped_byte = self.document_text.as_bytes().get(self.position + 1).copied();
        self.position += 2;
        Ok(match escaped_byte {
            Some(literal_byte @ (b'"' | b'\\' | b'/')) => char::from(literal_byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.read_unicode_escape(escape_start),
            _ => return Err((escape_start, "invalid escape sequence".into())),
        })
    }

    /// Reads `\u` with four digits, or two of them for one character.
    fn read_unicode_escape(&mut self, escape_start: usize) -> Result<char, OffsetMessage> {
        let invalid_escape = || (escape_start, "escape sequence is not a valid character".to_string());
        let high_unit = self.read_hex_digits().ok_or_else(invalid_escape)?;
        // Not a high surrogate: the escape is a character by itself. `from_u32` refuses a lone low surrogate.
        if !(0xD800..0xDC00).contains(&high_unit) {
            return char::from_u32(high_unit).ok_or_else(invalid_escape);
        }
        if !(self.skip_byte(b'\\') && self.skip_byte(b'u')) {
            return Err(invalid_escape());
        }
        let low_unit = self.read_hex_digits().filter(|low_unit| (0xDC00..0xE000).contains(low_unit));
        let low_unit = low_unit.ok_or_else(invalid_escape)?;
        char::from_u32(0x10000 + ((high_unit - 0xD800) << 10) + (low_unit - 0xDC00)).ok_or_else(invalid_escape)
    }

    fn read_hex_digits(&mut self) -> Option<u32> {
        let hex_digits = self.document_text.get(self.position..self.position + 4)?;
        // `from_str_radix` would also accept a sign.
        let is_hexadecimal = hex_digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.position += 4;
        u32::from_str_radix(hex_digits, 16).ok().filter(|_| is_hexadecimal)
    }
}
