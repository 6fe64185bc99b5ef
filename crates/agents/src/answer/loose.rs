//! A lenient reader of JSON and of YAML's flow style.
//!
//! It accepts too many or too few commas, comments, single and typographic quotation marks, bare words, raw line
//! breaks and stray quotation marks inside texts, and a text that ends in the middle; everything that is complete is
//! kept. Valid JSON is read as any other parser reads it. The reader looks at each character a bounded number of
//! times, so that hostile input cannot make it slow.

use super::node::Node;

/// Deeper nesting is noise, and recursion must not exhaust the stack.
const DEPTH: u32 = 48;
/// The longest key without quotation marks.
const KEY_BYTES: usize = 48;
/// The longest bare text with brackets in it.
const BARE_BYTES: usize = 400;

/// A cursor over the text, and what had to be forgiven so far.
#[derive(Debug)]
pub(super) struct Reader<'t> {
    text: &'t str,
    pub at: usize,
    depth: u32,
    /// Whether nothing had to be forgiven that changes what is read.
    pub clean: bool,
    /// Whether the text ended in the middle of a value.
    pub cut: bool,
}

/// Where a text stands. This decides what may follow its closing quotation mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Key,
    Map,
    List,
}

impl<'t> Reader<'t> {
    /// Starts reading at a `{` or `[`.
    pub fn new(text: &'t str, at: usize) -> Reader<'t> {
        Reader { text, at, depth: 0, clean: true, cut: false }
    }

    /// Reads one value; `None` if there is none.
    pub fn read(&mut self) -> Option<Node> {
        self.value(Inside::List)
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn step(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    /// Skips white space and comments of JavaScript, C and YAML.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            self.at += rest.len() - trimmed.len();
            let until = if trimmed.starts_with("//") || trimmed.starts_with('#') {
                trimmed.find('\n')
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map(|end| end + 2)
            } else {
                return;
            };
            self.at += until.unwrap_or(trimmed.len());
        }
    }

    fn value(&mut self, inside: Inside) -> Option<Node> {
        self.skip();
        match self.peek() {
            None => {
                self.cut = true;
                None
            }
            // The bracket is skipped instead of opened; what is in it is read as part of the outer value.
            Some('{' | '[') if self.depth == DEPTH => {
                self.clean = false;
                self.step();
                None
            }
            // `{{name}}` is a placeholder of a template, not a map inside of a map.
            Some('{') if inside == Inside::Map && self.rest().starts_with("{{") => Some(self.bare()),
            Some('{') => Some(self.nested(Self::map)),
            Some('[') => Some(self.nested(Self::list)),
            Some(c) if closers(c).is_some() => self.quoted(inside).map(Node::Text),
            // A separator in place of a value: the value is missing.
            Some(',' | ':' | '}' | ']') => None,
            Some(_) => Some(self.bare()),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Node) -> Node {
        self.depth += 1;
        self.step();
        let node = read(self);
        self.depth -= 1;
        node
    }

    /// Reads a list up to its bracket. Missing commas between items are accepted.
    fn list(&mut self) -> Node {
        let mut items = Vec::new();
        loop {
            self.skip();
            let before = self.at;
            match self.peek() {
                None => {
                    self.cut = true;
                    return Node::List(items);
                }
                Some(']') => {
                    self.step();
                    return Node::List(items);
                }
                Some(',') => self.step(),
                Some(_) => items.extend(self.value(Inside::List)),
            }
            // Something that cannot start a value must be skipped, or the loop would never end.
            if self.at == before {
                self.clean = false;
                self.step();
            }
        }
    }

    fn map(&mut self) -> Node {
        let mut pairs: Vec<(String, Node)> = Vec::new();
        loop {
            self.skip();
            let before = self.at;
            match self.peek() {
                None => {
                    self.cut = true;
                    return Node::Map(pairs);
                }
                Some('}') => {
                    self.step();
                    return Node::Map(pairs);
                }
                // The brace was forgotten; this bracket closes the surrounding list.
                Some(']') => {
                    self.clean = false;
                    return Node::Map(pairs);
                }
                Some(',') => self.step(),
                Some(_) => self.pair(&mut pairs),
            }
            if self.at == before {
                self.clean = false;
                self.step();
            }
        }
    }

    /// Reads one `key: value` pair; what is not one is appended to the previous text.
    fn pair(&mut self, pairs: &mut Vec<(String, Node)>) {
        // Whether a comma comes before it decides how a stray text is joined to the previous one.
        let comma = self.text[..self.at].trim_end().ends_with(',');
        let key = match self.peek() {
            Some(c) if closers(c).is_some() => match self.quoted(Inside::Key) {
                Some(key) => key,
                None => return,
            },
            _ => match bare_key(self.rest()) {
                Some(key) => {
                    self.at += key.len();
                    key.trim().to_string()
                }
                None => return self.stray(pairs, comma),
            },
        };
        self.skip();
        // A key without a colon has no value; the truncated end of a text looks the same.
        if self.peek() != Some(':') {
            self.clean = false;
            self.cut |= self.peek().is_none();
            return;
        }
        self.step();
        // A value that was cut off is dropped together with its key: half of a text may say the opposite.
        let cut_before = self.cut;
        match self.value(Inside::Map) {
            Some(value) => pairs.push((key, value)),
            None if self.cut && !cut_before => {}
            None => pairs.push((key, Node::Nothing)),
        }
    }

    /// Appends words where a key should be to the previous text, which contained a comma or a line break.
    fn stray(&mut self, pairs: &mut [(String, Node)], comma: bool) {
        self.clean = false;
        let Node::Text(more) = self.bare() else { return };
        if let Some((_, Node::Text(text))) = pairs.last_mut() {
            text.push_str(if comma { ", " } else { " " });
            text.push_str(&more);
        }
    }

    /// Reads up to the end of a bare word. A colon does not end it: bare texts are full of colons.
    fn bare(&mut self) -> Node {
        let rest = self.rest();
        let mut end = rest.find([',', '}', ']', '\n']).unwrap_or(rest.len());
        // A bracket that opens inside the text has to close inside it: `{{name}}`, `f[0]`.
        while unbalanced(&rest[..end]) {
            let near = rest[end..].bytes().take(BARE_BYTES).take_while(|b| *b != b'\n');
            let Some(more) = near.into_iter().position(|b| b == b'}' || b == b']') else { break };
            end += more + 1;
        }
        if let Some(comment) = rest[..end].find(" #") {
            end = comment;
        }
        self.at += end;
        match rest[..end].trim() {
            "null" | "~" | "None" | "" => Node::Nothing,
            word => Node::Text(word.to_string()),
        }
    }

    /// Reads a text in quotation marks. A text that is never closed is dropped: half of it may say the opposite.
    fn quoted(&mut self, inside: Inside) -> Option<String> {
        let open = self.peek()?;
        let close = closers(open)?;
        self.step();
        let mut out = String::new();
        let mut chars = self.rest().char_indices();
        let start = self.at;
        while let Some((index, c)) = chars.next() {
            let after = &self.text[start + index + c.len_utf8()..];
            // Single-quoted texts are YAML, in which a backslash is an ordinary character and `''` is a quote.
            if c == '\\' && open != '\'' {
                escape(&mut out, &mut chars);
            } else if (c == '\'' && open == '\'' && after.starts_with('\''))
                || (c == '\\' && after.starts_with('\''))
            {
                chars.next();
                out.push('\'');
            } else if close.contains(&c) && ends_here(after, inside) {
                self.at = start + index + c.len_utf8();
                return Some(out);
            } else if c == '\n' && (inside == Inside::Key || inside == Inside::Map && next_pair(after)) {
                // The closing mark was forgotten: the next line is already the next pair.
                self.clean = false;
                self.at = start + index;
                return Some(out.trim_end().trim_end_matches(',').to_string());
            } else {
                // A quotation mark inside the text was not escaped. The text is kept, but the reading is a guess.
                self.clean &= !close.contains(&c);
                out.push(c);
            }
        }
        self.at = self.text.len();
        self.cut = true;
        None
    }
}

/// The marks that can close a text, by its opening mark; `None` if the character opens no text.
fn closers(open: char) -> Option<&'static [char]> {
    match open {
        '"' => Some(&['"']),
        '\'' => Some(&['\'']),
        '“' | '„' | '”' => Some(&['”', '“', '"']),
        '‘' | '’' => Some(&['’', '\'']),
        _ => None,
    }
}

/// Whether more brackets are opened than closed. Long texts are not counted, to keep the reader linear.
fn unbalanced(text: &str) -> bool {
    let count = |set: [char; 2]| text.matches(set).count();
    text.len() <= BARE_BYTES && count(['{', '[']) > count(['}', ']'])
}

/// Whether a quotation mark before this text closes it, or only occurs inside it.
fn ends_here(after: &str, inside: Inside) -> bool {
    let after = after.trim_start_matches([' ', '\t']);
    match after.chars().next() {
        None | Some('}' | ']' | '\n' | '\r' | '#') => true,
        Some('/') => after.starts_with("//") || after.starts_with("/*"),
        // In a map, a comma must be followed by something that can start a pair. Otherwise it belongs to the text.
        Some(',') if inside == Inside::Map => {
            let next = after[1..].trim_start();
            let marks = ['"', '\'', '“', '”', '„', '‘', '’', '}', ']', '{', '#', '/', ','];
            next.is_empty() || next.starts_with(marks) || bare_key(next).is_some()
        }
        Some(',') => true,
        // Keys contain no quotation marks, so that any mark closes them.
        Some(_) => inside == Inside::Key,
    }
}

/// Finds a key without quotation marks: a word followed by a colon.
fn bare_key(text: &str) -> Option<&str> {
    let end =
        text.bytes().take(KEY_BYTES).position(|b| !(b.is_ascii_alphanumeric() || b"_- ".contains(&b)))?;
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    (starts && text.as_bytes()[end] == b':').then(|| &text[..end])
}

/// Whether a line begins with a key in quotation marks, or closes what is open.
fn next_pair(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t']);
    let Some(rest) = line.strip_prefix(['"', '\'', '“', '”']) else {
        return line.starts_with(['}', ']']);
    };
    let end = rest.bytes().take(KEY_BYTES).position(|b| !(b.is_ascii_alphanumeric() || b"_- ".contains(&b)));
    let Some(rest) = end.filter(|end| *end > 0).and_then(|end| rest.get(end..)) else { return false };
    let rest = rest.trim_start_matches(['"', '\'', '”', '“']);
    rest.trim_start_matches([' ', '\t']).starts_with(':')
}

/// Pushes the character that an escape stands for. An escape that JSON does not know is plain text: `\d`, `\_`.
fn escape(out: &mut String, chars: &mut std::str::CharIndices<'_>) {
    let Some((_, c)) = chars.next() else { return out.push('\\') };
    match c {
        'n' => out.push('\n'),
        't' => out.push('\t'),
        'r' => out.push('\r'),
        'b' => out.push('\u{8}'),
        'f' => out.push('\u{c}'),
        '"' | '\\' | '/' | '\'' | '“' | '”' => out.push(c),
        'u' => unicode(out, chars),
        other => out.extend(['\\', other]),
    }
}

/// Pushes the character of a `\u` escape, joining the two halves of a surrogate pair.
fn unicode(out: &mut String, chars: &mut std::str::CharIndices<'_>) {
    let Some(first) = four(chars.as_str()) else { return out.push_str("\\u") };
    take(chars, 4);
    let pair = (0xd800..0xdc00)
        .contains(&first)
        .then(|| chars.as_str().strip_prefix("\\u").and_then(four))
        .flatten();
    // Without its second half a surrogate is no character and becomes the replacement character below.
    let code = match pair {
        Some(second) if (0xdc00..0xe000).contains(&second) => {
            take(chars, 6);
            0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        }
        _ => first,
    };
    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
}

fn take(chars: &mut std::str::CharIndices<'_>, number: usize) {
    for _ in 0..number {
        chars.next();
    }
}

fn four(text: &str) -> Option<u32> {
    let digits = text.get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::node::Exact;

    fn read(text: &str) -> (Option<Node>, bool, bool) {
        let mut reader = Reader::new(text, 0);
        let node = reader.read();
        (node, reader.clean, reader.cut)
    }

    fn shown(text: &str) -> String {
        show(&read(text).0.unwrap())
    }

    fn show(node: &Node) -> String {
        match node {
            Node::Nothing => "-".into(),
            Node::Text(text) => text.replace('\n', "↵"),
            Node::List(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(" | ")),
            Node::Map(pairs) => {
                let pairs = pairs.iter().map(|(key, value)| format!("{key}={}", show(value)));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(" | "))
            }
        }
    }

    #[test]
    fn what_is_forgiven() {
        for (text, reads) in [
            (r#"{"a": 1.50, "b": [true, null, "x\ny"],}"#, "{a=1.50 | b=[true | - | x↵y]}"),
            ("{\"a\": 1, // why\n /* or */ 'b': 'it''s' # end\n}", "{a=1 | b=it's}"),
            ("{“a”: “x “y” z”, ‘b’: ‘q’}", "{a=x “y” z | b=q}"),
            (r#"{"a": "say "hi" now", "b": "c"}"#, r#"{a=say "hi" now | b=c}"#),
            (r#"{"a": "use "x", then y", "b": "c"}"#, r#"{a=use "x", then y | b=c}"#),
            ("{a: b: c, d: one, two, e: {{f}}}", "{a=b: c | d=one, two | e={{f}}}"),
            ("{\"a\": \"never closed,\n  \"b\": \"c\"}", "{a=never closed | b=c}"),
            ("[{\"a\": 1} {\"a\": 2}, , {\"a\": 3]", "[{a=1} | {a=2} | {a=3}]"),
            (
                "{\"a\": \"two\nlines\", \"r\": \"\\d+ \\u00e4 \\ud83d\\ude00\"}",
                "{a=two↵lines | r=\\d+ ä 😀}",
            ),
            ("{'path': 'C:\\dir', \"w\": \"C:\\\\dir\"}", "{path=C:\\dir | w=C:\\dir}"),
        ] {
            assert_eq!(shown(text), reads, "{text}");
        }
    }

    #[test]
    fn an_end_in_the_middle_keeps_what_is_whole() {
        let whole = r#"[{"a": "one", "b": "x"}, {"a": "two", "b": "y"}]"#;
        for end in (1..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            let (node, _, cut) = read(&whole[..end]);
            assert!(cut, "{end}");
            let Some(Node::List(items)) = node else { panic!("{end}") };
            let texts = items.iter().flat_map(|item| [item.text(&["a"]), item.text(&["b"])]).flatten();
            assert!(texts.into_iter().all(|text| ["one", "two", "x", "y"].contains(&text.as_str())), "{end}");
        }
    }

    #[test]
    fn good_json_is_read_as_everybody_reads_it_and_is_clean() {
        let text = r##"{"a": "x \"y\", \"z\": {", "b": ["", "#no comment", "//no", "}"], "c": {"d": "é"}}"##;
        let (node, clean, cut) = read(text);
        assert_eq!(node, serde_json::from_str::<Exact>(text).unwrap().0);
        assert!(clean && !cut);
    }

    #[test]
    fn depth_is_bounded() {
        let (node, clean, cut) = read(&"[".repeat(1_000_000));
        assert!(node.is_some() && !clean && cut);
    }
}
