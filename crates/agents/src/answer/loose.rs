//! A reader of JSON and of YAML's flow form that forgives.
//!
//! Commas too many or too few, comments, single and typographic quotation marks, bare words, raw line breaks and stray
//! quotation marks inside texts, and an end in the middle: what is whole is kept. On JSON that is right it reads what
//! everybody reads. It looks at each character a bounded number of times, whatever the text.

use super::node::Node;

/// Deeper nesting is noise.
const DEPTH: u32 = 48;
/// A key without quotation marks is at most so long.
const KEY_BYTES: usize = 48;
/// And a bare text with braces in it.
const BARE_BYTES: usize = 400;

#[derive(Debug)]
pub(super) struct Reader<'t> {
    text: &'t str,
    pub at: usize,
    depth: u32,
    /// Nothing had to be forgiven that changes what is read.
    pub clean: bool,
    /// The text ended in the middle.
    pub cut: bool,
}

/// Where a text stands: what may follow it depends on that.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Key,
    Map,
    List,
}

impl<'t> Reader<'t> {
    /// Reads from a `{` or `[`.
    pub fn new(text: &'t str, at: usize) -> Reader<'t> {
        Reader { text, at, depth: 0, clean: true, cut: false }
    }

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
            Some('{' | '[') if self.depth == DEPTH => {
                self.clean = false;
                self.step();
                None
            }
            // A template's placeholder, not a map in a map.
            Some('{') if inside == Inside::Map && self.rest().starts_with("{{") => Some(self.bare()),
            Some('{') => Some(self.nested(Self::map)),
            Some('[') => Some(self.nested(Self::list)),
            Some(c) if closers(c).is_some() => self.quoted(inside).map(Node::Text),
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
                // The brace was forgotten; the bracket belongs to the list around.
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

    fn pair(&mut self, pairs: &mut Vec<(String, Node)>) {
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
        if self.peek() != Some(':') {
            self.clean = false;
            self.cut |= self.peek().is_none();
            return;
        }
        self.step();
        let cut_before = self.cut;
        match self.value(Inside::Map) {
            Some(value) => pairs.push((key, value)),
            None if self.cut && !cut_before => {}
            None => pairs.push((key, Node::Nothing)),
        }
    }

    /// Words where a key should be: the rest of the text before, which had a comma or a line break in it.
    fn stray(&mut self, pairs: &mut [(String, Node)], comma: bool) {
        self.clean = false;
        let Node::Text(more) = self.bare() else { return };
        if let Some((_, Node::Text(text))) = pairs.last_mut() {
            text.push_str(if comma { ", " } else { " " });
            text.push_str(&more);
        }
    }

    /// Up to what ends a bare word in a flow. A colon does not: bare texts are full of them.
    fn bare(&mut self) -> Node {
        let rest = self.rest();
        let mut end = rest.find([',', '}', ']', '\n']).unwrap_or(rest.len());
        // A brace that opens inside of it has to close inside of it: `{{name}}`, `f[0]`.
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

    /// A text in quotation marks. One that never ends is dropped: half of it may say the opposite.
    fn quoted(&mut self, inside: Inside) -> Option<String> {
        let open = self.peek()?;
        let close = closers(open)?;
        self.step();
        let mut out = String::new();
        let mut chars = self.rest().char_indices();
        let start = self.at;
        while let Some((index, c)) = chars.next() {
            let after = &self.text[start + index + c.len_utf8()..];
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
                // The closing mark was forgotten: the next line is the next pair.
                self.clean = false;
                self.at = start + index;
                return Some(out.trim_end().trim_end_matches(',').to_string());
            } else {
                self.clean &= !close.contains(&c);
                out.push(c);
            }
        }
        self.at = self.text.len();
        self.cut = true;
        None
    }
}

fn closers(open: char) -> Option<&'static [char]> {
    match open {
        '"' => Some(&['"']),
        '\'' => Some(&['\'']),
        '“' | '„' | '”' => Some(&['”', '“', '"']),
        '‘' | '’' => Some(&['’', '\'']),
        _ => None,
    }
}

fn unbalanced(text: &str) -> bool {
    let count = |set: [char; 2]| text.matches(set).count();
    text.len() <= BARE_BYTES && count(['{', '[']) > count(['}', ']'])
}

/// Whether a quotation mark before this ends the text, or only stands in it.
fn ends_here(after: &str, inside: Inside) -> bool {
    let after = after.trim_start_matches([' ', '\t']);
    match after.chars().next() {
        None | Some('}' | ']' | '\n' | '\r' | '#') => true,
        Some('/') => after.starts_with("//") || after.starts_with("/*"),
        Some(',') if inside == Inside::Map => {
            let next = after[1..].trim_start();
            let marks = ['"', '\'', '“', '”', '„', '‘', '’', '}', ']', '{', '#', '/', ','];
            next.is_empty() || next.starts_with(marks) || bare_key(next).is_some()
        }
        Some(',') => true,
        // Keys have no quotation marks in them.
        Some(_) => inside == Inside::Key,
    }
}

/// A word and a colon: a key without quotation marks.
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

/// What stands after a backslash. An escape that JSON does not know is text: `\d`, `\_`.
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

fn unicode(out: &mut String, chars: &mut std::str::CharIndices<'_>) {
    let Some(first) = four(chars.as_str()) else { return out.push_str("\\u") };
    take(chars, 4);
    let pair = (0xd800..0xdc00)
        .contains(&first)
        .then(|| chars.as_str().strip_prefix("\\u").and_then(four))
        .flatten();
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
