//! Reads a text into a tree.

use std::collections::HashSet;

use super::{Document, Frame, Item, Kind, Node, Problem, place};

/// Deeper than any settings file. A text of nothing but brackets must not exhaust the stack.
const DEEPEST: usize = 128;

/// Reads a text with one value and nothing else but comments.
pub fn read(text: &str) -> Result<Document, Problem> {
    let mut reader = Reader { text, at: 0, loose: None };
    // The mark is skipped here but stays in the text, so that all offsets are those of the file.
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    let found = reader.document();
    let place = |(at, what): (usize, String)| {
        let (line, column) = place(text, at);
        Problem { line, column, what }
    };
    let loose = reader.loose.map(|(at, what)| place((at, what.to_string())));
    found.map(|root| Document { root, loose }).map_err(place)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    loose: Option<(usize, &'static str)>,
}

/// The byte offset of an error, and its description.
type Slip = (usize, String);

/// The white space and comments between two tokens.
struct Between {
    /// Where the last comment ends, or where the span begins if there is none.
    space: usize,
    after_line: bool,
    has_comments: bool,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Node, Slip> {
        self.between()?;
        if self.peek().is_none() {
            return Err((self.at, "the file has no value in it".into()));
        }
        let root = self.value(0)?;
        self.between()?;
        match self.peek() {
            None => Ok(root),
            Some(_) => Err((self.at, "there is more behind the end".into())),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Remembers the first extension of JSON; later ones are of no interest.
    fn note(&mut self, at: usize, what: &'static str) {
        self.loose.get_or_insert((at, what));
    }

    fn wrong<T>(&self, what: impl Into<String>) -> Result<T, Slip> {
        Err((self.at, what.into()))
    }

    /// Skips white space and comments.
    fn between(&mut self) -> Result<Between, Slip> {
        let mut between = Between { space: self.at, after_line: false, has_comments: false };
        loop {
            while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
                self.at += 1;
            }
            let rest = self.rest();
            let length = if rest.starts_with("//") {
                // The line end counts as white space, so that an edit can tell it from the comment.
                let line = rest.split('\n').next().unwrap_or_default();
                line.strip_suffix('\r').unwrap_or(line).len()
            } else if rest.starts_with("/*") {
                match rest.get(2..).and_then(|inside| inside.find("*/")) {
                    Some(length) => length + 4,
                    None => return self.wrong("a comment is not closed"),
                }
            } else {
                return Ok(between);
            };
            // Only the last comment matters: it decides whether the following line end may be removed.
            between.after_line = rest.starts_with("//");
            between.has_comments = true;
            self.note(self.at, "a comment");
            self.at += length;
            between.space = self.at;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Slip> {
        let start = self.at;
        let kind = match self.peek() {
            // The byte alone decides the kind of the value: JSON needs no further lookahead.
            Some(b'{') => self.items(b'}', depth).map(|(items, frame)| Kind::Map(items, frame))?,
            Some(b'[') => self.items(b']', depth).map(|(items, frame)| Kind::List(items, frame))?,
            Some(b'"') => Kind::Text(self.quoted()?),
            Some(b'-' | b'0'..=b'9') => Kind::Number(self.number()?),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$') => self.word()?,
            Some(_) => return self.wrong("a value is missing"),
            None => return self.wrong("the file ends in the middle of a value"),
        };
        Ok(Node { span: start..self.at, kind })
    }

    /// Reads the inside of a list or an object, with its brackets.
    fn items(&mut self, close: u8, depth: usize) -> Result<(Vec<Item>, Frame), Slip> {
        if depth >= DEEPEST {
            return self.wrong(format!("there are more than {DEEPEST} brackets in one another"));
        }
        let open = self.at;
        self.at += 1;
        let mut items: Vec<Item> = Vec::new();
        let mut frame = Frame { tail: self.at, ..Frame::default() };
        let mut known = HashSet::new();
        loop {
            let between = self.between()?;
            frame.has_comments |= between.has_comments;
            // The tail is updated before every token. At the closing bracket it is what follows the last item.
            frame.tail = between.space;
            frame.tail_is_line = between.after_line;
            // As many commas as items: either nothing was read yet, or the last item has its comma.
            let has_comma = frame.commas.len() == items.len();
            match self.peek() {
                Some(byte) if byte == close => {
                    // A trailing comma is an extension of JSON.
                    if let Some(comma) = frame.commas.last().filter(|_| has_comma && !items.is_empty()) {
                        self.note(*comma, "a comma before a closing bracket");
                    }
                    self.at += 1;
                    return Ok((items, frame));
                }
                None => {
                    // The opening bracket is the place that helps the user; the end of the file does not.
                    let bracket = if close == b'}' { "{" } else { "[" };
                    return Err((open, format!("this {bracket} is not closed")));
                }
                Some(b',') if !has_comma => {
                    frame.commas.push(self.at);
                    self.at += 1;
                }
                Some(_) if !has_comma => return self.wrong("a comma or a closing bracket is missing"),
                Some(_) => {
                    let item = self.item(close == b'}', &between, depth)?;
                    frame.has_comments |= item.1;
                    // Readers disagree on which of two equal keys counts, so that any edit could have no effect.
                    if close == b'}' && !known.insert(item.0.key.clone()) {
                        return Err((item.0.start, format!("`{}` stands here twice", item.0.key)));
                    }
                    items.push(item.0);
                }
            }
        }
    }

    /// Reads one item, and returns whether there are comments between its key and its value.
    fn item(&mut self, keyed: bool, before: &Between, depth: usize) -> Result<(Item, bool), Slip> {
        let start = self.at;
        let (mut key, mut commented) = (String::new(), false);
        if keyed {
            if self.peek() != Some(b'"') {
                return self.wrong("a key in quotes is missing");
            }
            key = self.quoted()?;
            commented |= self.between()?.has_comments;
            if self.peek() != Some(b':') {
                return self.wrong(format!("a colon behind `{key}` is missing"));
            }
            self.at += 1;
            commented |= self.between()?.has_comments;
        }
        let value = self.value(depth + 1)?;
        let item = Item { key, start, value, space: before.space, after_line: before.after_line };
        Ok((item, commented))
    }

    fn word(&mut self) -> Result<Kind, Slip> {
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let rest = self.rest();
        let word = rest.split(|c| !letters(c)).next().unwrap_or_default();
        let kind = match word {
            "null" => Kind::Null,
            "true" => Kind::Flag(true),
            "false" => Kind::Flag(false),
            // The usual mistake is a text without quotes.
            other => return self.wrong(format!("`{other}` is no value; texts stand in quotes")),
        };
        self.at += word.len();
        Ok(kind)
    }

    fn number(&mut self) -> Result<String, Slip> {
        let start = self.at;
        self.skip(b'-');
        let whole = self.digits();
        let zeros = self.text.get(start..self.at).unwrap_or_default().trim_start_matches('-');
        // A leading zero is only allowed if it is the only digit.
        let mut good = whole > 0 && (whole == 1 || !zeros.starts_with('0'));
        if self.skip(b'.') {
            good &= self.digits() > 0;
        }
        if self.skip(b'e') || self.skip(b'E') {
            let _ = self.skip(b'-') || self.skip(b'+');
            good &= self.digits() > 0;
        }
        match self.text.get(start..self.at) {
            Some(number) if good => Ok(number.to_string()),
            _ => Err((start, "this is no number".into())),
        }
    }

    fn skip(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    /// Reads a text, including its quotes. Errors point to the opening quote.
    fn quoted(&mut self) -> Result<String, Slip> {
        let open = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            // Everything up to the next special byte is copied at once.
            let plain = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < b' ');
            let Some(plain) = plain else { return Err((open, "this text is not closed".into())) };
            out.push_str(rest.get(..plain).unwrap_or_default());
            let stop = rest.as_bytes().get(plain).copied();
            self.at += plain;
            match stop {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(b'\n' | b'\r') => return Err((open, "this text is not closed on its line".into())),
                _ => return self.wrong("a control character stands in a text"),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Slip> {
        let start = self.at;
        let escaped = self.text.as_bytes().get(self.at + 1).copied();
        self.at += 2;
        Ok(match escaped {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(start),
            _ => return Err((start, "this is no escape that JSON knows".into())),
        })
    }

    /// Reads `\u` with four digits, or two of them for one character.
    fn unicode(&mut self, start: usize) -> Result<char, Slip> {
        let wrong = || (start, "this escape is no character".to_string());
        let first = self.hexadecimal().ok_or_else(wrong)?;
        // Not a high surrogate: the escape stands for itself. A lone low surrogate is refused by `from_u32`.
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first).ok_or_else(wrong);
        }
        if !(self.skip(b'\\') && self.skip(b'u')) {
            return Err(wrong());
        }
        let second = self.hexadecimal().filter(|second| (0xDC00..0xE000).contains(second));
        let second = second.ok_or_else(wrong)?;
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)).ok_or_else(wrong)
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        // `from_str_radix` would also accept a sign.
        let good = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.at += 4;
        u32::from_str_radix(digits, 16).ok().filter(|_| good)
    }
}
