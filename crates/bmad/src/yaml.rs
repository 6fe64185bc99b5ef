//! A YAML text as a tree that knows its positions: the line and column of every value and key, and the bytes of every scalar,
//! so that one scalar can be replaced while every other byte stays as it is. What the keys mean is not known here.

use std::{fmt, ops::Range};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{DuplicateKeyPolicy, Error, Location, NonFiniteFloatPolicy, Spanned};

/// One value of a file and the position where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub line: usize,
    pub column: usize,
    pub form: Form,
    /// The bytes of the text that hold the value, quotes included; `None` where it came through an alias.
    pub span: Option<Range<usize>>,
}

/// The content of a node, with the words of YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// A key without a value.
    Nothing,
    /// The scalar as it is written, without quotes. Whether `2` is a number is decided by the setting that reads it.
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// One key of a mapping with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    /// The line of the key, not of its value.
    pub line: usize,
    pub column: usize,
    pub value: Node,
}

/// Why a text is not valid YAML or TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub line: Option<usize>,
    pub column: Option<usize>,
    pub kind: BrokenKind,
    /// The message for users.
    pub what: String,
}

/// The kinds of syntax errors that callers treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenKind {
    /// A key occurs twice in one mapping.
    DuplicateKey,
    /// The text has more than one document.
    SecondDocument,
    /// Anything else that cannot be read.
    Syntax,
}

/// Parses a text that holds one YAML document. A key that occurs twice is an error, since any choice between the two would be
/// a guess.
pub fn parse(text: &str) -> Result<Node, Broken> {
    // A file of comments only is an empty file, but the parser rejects it.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Node::of(Form::Nothing));
    }
    // The parser's default for infinite floats would turn a commit hash such as `12e5678` into `.inf`.
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
        // A board of 10 MB is still a board, so the limits for events and nodes are raised. The limits for aliases stay
        // narrow, since aliases can blow up a small file.
        budget: serde_saphyr::budget! { max_events: 4_000_000, max_nodes: 2_000_000 },
    };
    let raw: Spanned<Raw> =
        serde_saphyr::from_str_with_options(text, options).map_err(|cause| broken(&cause))?;
    Ok(node(text, raw))
}

fn line_of(at: &Location) -> Option<usize> {
    usize::try_from(at.line()).ok().filter(|line| *line > 0)
}

fn column_of(at: &Location) -> Option<usize> {
    usize::try_from(at.column()).ok().filter(|column| *column > 0)
}

fn broken(cause: &Error) -> Broken {
    // The snippet repeats lines of the file, which the message does not need.
    let cause = cause.without_snippet();
    let (kind, what) = match cause {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("?");
            (BrokenKind::DuplicateKey, format!("`{key}` stands here for the second time"))
        }
        Error::MultipleDocuments { .. } => {
            (BrokenKind::SecondDocument, "a second document begins here (`---`); one is read".into())
        }
        other => (BrokenKind::Syntax, plain(&other.to_string())),
    };
    let at = cause.location();
    Broken { line: at.and_then(|at| line_of(&at)), column: at.and_then(|at| column_of(&at)), kind, what }
}

/// The parser's message in plainer words where we have them.
fn plain(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    // The position is reported apart from the message.
    let first = first.split(" at line ").next().unwrap_or(first).trim_start_matches("error: ");
    if first.starts_with("mapping values are not allowed") {
        return "this is no YAML: a key stands where none can; look at the indentation and at quotes".into();
    }
    format!("this is no YAML: {first}")
}

/// Converts the parser's value and looks up the source text of every scalar.
fn node(text: &str, raw: Spanned<Raw>) -> Node {
    let line = line_of(&raw.referenced).unwrap_or(1);
    let column = column_of(&raw.referenced).unwrap_or(1);
    // A value that came through an alias is defined elsewhere: replacing those bytes would change the anchor, too.
    let own = raw.referenced == raw.defined;
    let span = bytes(&raw.defined).filter(|span| own && text.get(span.clone()).is_some());
    let form = match raw.value {
        Raw::Nothing => Form::Nothing,
        Raw::Text(scalar) => Form::Scalar(plain_word(text, &raw.defined).unwrap_or(scalar)),
        // The parser has turned the scalar into a number or a truth value; the user wants to read what the file says.
        Raw::Typed(typed) => Form::Scalar(slice(text, &raw.defined).unwrap_or(typed)),
        Raw::List(items) => Form::List(items.into_iter().map(|item| node(text, item)).collect()),
        Raw::Map(entries) => {
            Form::Map(entries.into_iter().map(|(key, value)| entry(text, key, value)).collect())
        }
    };
    Node { line, column, form, span }
}

/// The scalar as it is written, if it is plain and on one line: `12e5678` is a commit hash, not an infinite number.
fn plain_word(text: &str, at: &Location) -> Option<String> {
    let piece = text.get(bytes(at)?)?;
    // Quoted, block and multi-line scalars have to be read by the parser; their source text is not their value.
    let is_plain = !piece.starts_with(['"', '\'', '|', '>']) && !piece.contains(['\n', '\r']);
    Some(piece.trim().to_string()).filter(|piece| is_plain && !piece.is_empty())
}

fn entry(text: &str, key: Spanned<Raw>, value: Spanned<Raw>) -> Entry {
    let line = line_of(&key.referenced).unwrap_or(1);
    let column = column_of(&key.referenced).unwrap_or(1);
    // A key may be null, a sequence or a mapping in YAML. None of those can name a setting, so a mark stands for it.
    let key = match node(text, key).form {
        Form::Scalar(key) => key,
        Form::Nothing => "~".to_string(),
        Form::List(_) | Form::Map(_) => "?".to_string(),
    };
    Entry { key, line, column, value: node(text, value) }
}

/// The bytes of a location; `None` if the parser does not know them.
fn bytes(at: &Location) -> Option<Range<usize>> {
    let span = at.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    Some(start..start.checked_add(usize::try_from(span.byte_len()?).ok()?)?)
}

fn slice(text: &str, at: &Location) -> Option<String> {
    text.get(bytes(at)?).map(|piece| piece.trim().to_string()).filter(|piece| !piece.is_empty())
}

/// A value as the parser's visitor delivers it, before its source text is looked up.
enum Raw {
    Nothing,
    Text(String),
    Typed(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<Raw>, Spanned<Raw>)>),
}

impl Node {
    /// A value that does not come from a file.
    pub fn of(form: Form) -> Node {
        Node { line: 1, column: 1, form, span: None }
    }

    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The text, if this is a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.form {
            Form::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// The entries, if this is a mapping; otherwise none.
    pub fn entries(&self) -> &[Entry] {
        match &self.form {
            Form::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items, if this is a sequence; otherwise none.
    pub fn items(&self) -> &[Node] {
        match &self.form {
            Form::List(items) => items,
            _ => &[],
        }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

/// Receives the parser's values. It accepts every type, since no schema is known here.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys and values")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(pair) = map.next_entry()? {
            entries.push(pair);
        }
        Ok(Raw::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders one line for every leaf: `path: text (line)`.
    fn draw(text: &str) -> String {
        fn walk(node: &Node, path: &str, out: &mut Vec<String>) {
            match &node.form {
                Form::Nothing => out.push(format!("{path}: nothing ({})", node.line)),
                Form::Scalar(text) => out.push(format!("{path}: {text} ({})", node.line)),
                Form::List(items) => items.iter().for_each(|item| walk(item, &format!("{path}[]"), out)),
                Form::Map(entries) => entries.iter().for_each(|entry| {
                    walk(&entry.value, &format!("{path}.{}@{}", entry.key, entry.line), out)
                }),
            }
        }
        let mut out = Vec::new();
        walk(&parse(text).unwrap(), "", &mut out);
        out.join("\n")
    }

    #[test]
    fn every_key_and_value_knows_its_line_and_its_text() {
        let text = "# top\nlimits:\n  max_cost: 0.80   # money\n  infinite: .inf\n  on: yes\n  none:\n\
                    tier_minimums: {0: minimal, 01: \"2\"}\nverify:\n  - a\n  - 'b c'\n  - |\n    two\n    lines\n\
                    long: 0x10\nbig: 99999999999999999999999999\nwhen: 2024-01-01\n";
        insta::assert_snapshot!(draw(text), @r"
        .limits@2.max_cost@3: 0.80 (3)
        .limits@2.infinite@4: .inf (4)
        .limits@2.on@5: yes (5)
        .limits@2.none@6: nothing (6)
        .tier_minimums@7.0@7: minimal (7)
        .tier_minimums@7.01@7: 2 (7)
        .verify@8[]: a (9)
        .verify@8[]: b c (10)
        .verify@8[]: two
        lines
         (12)
        .long@14: 0x10 (14)
        .big@15: 99999999999999999999999999 (15)
        .when@16: 2024-01-01 (16)
        ");
    }

    #[test]
    fn an_anchor_is_followed() {
        insta::assert_snapshot!(draw("a: &x\n  n: 1.50\nb: *x\nc:\n  <<: *x\n  m: 2\n"), @r"
        .a@1.n@2: 1.50 (2)
        .b@3.n@3: 1.50 (3)
        .c@4.m@6: 2 (6)
        .c@4.n@5: 1.50 (5)
        ");
    }

    #[test]
    fn what_is_broken_has_a_kind_whatever_its_words_are() {
        let kind = |text: &str| parse(text).expect_err(text).kind;
        assert_eq!(kind("a: 1\na: 2\n"), BrokenKind::DuplicateKey);
        assert_eq!(kind("? [a]\n: 1\n? [a]\n: 2\n"), BrokenKind::DuplicateKey);
        assert_eq!(kind("a: 1\n---\na: 2\n"), BrokenKind::SecondDocument);
        assert_eq!(kind("a: *for the second time\n"), BrokenKind::Syntax);
        assert_eq!(kind("a: [\n"), BrokenKind::Syntax);
    }

    #[test]
    fn what_is_broken_is_named_with_its_line() {
        let said = |text: &str| {
            let broken = parse(text).expect_err(text);
            format!("{:?} {}", broken.line, broken.what)
        };
        let all: Vec<String> = [
            "tier: 2\nverify: [\n",
            "a: 1\nb: 2\na: 3\n",
            "tier: 2\n  review_loop:\n    enabled: true\n",
            "a: b: c\n",
            "a: *no\n",
            "a: 'x\n",
            "---\na: 1\n---\nb: 2\n",
        ]
        .iter()
        .map(|text| said(text))
        .collect();
        insta::assert_snapshot!(all.join("\n"), @r"
        Some(2) this is no YAML: unclosed bracket '['
        Some(3) `a` stands here for the second time
        Some(2) this is no YAML: a key stands where none can; look at the indentation and at quotes
        Some(1) this is no YAML: a key stands where none can; look at the indentation and at quotes
        Some(1) this is no YAML: alias references unknown anchor
        Some(2) this is no YAML: invalid indentation in multiline quoted scalar
        Some(4) a second document begins here (`---`); one is read
        ");
    }

    /// Renders every scalar with its bytes.
    fn spans(text: &str) -> String {
        fn walk(text: &str, node: &Node, out: &mut Vec<String>) {
            if let Form::Scalar(scalar) = &node.form {
                let bytes = node.span.clone().map(|span| &text[span]);
                out.push(format!("{}:{} {scalar} {bytes:?}", node.line, node.column));
            }
            node.items().iter().for_each(|item| walk(text, item, out));
            node.entries().iter().for_each(|entry| walk(text, &entry.value, out));
        }
        let mut out = Vec::new();
        walk(text, &parse(text).unwrap(), &mut out);
        out.join("\n")
    }

    #[test]
    fn every_scalar_knows_its_bytes() {
        let text = "\u{feff}# ä\r\na:   done   # x\r\nb: \"q\"\r\nc: 'it''s' \r\nd: {e: f, g: 1}\r\nh: &i yes\r\n\
            j: *i\r\nk: |\r\n  t\r\nö: ü\r\n";
        insta::assert_snapshot!(spans(text), @r#"
        2:6 done Some("done")
        3:4 q Some("\"q\"")
        4:4 it's Some("'it''s'")
        5:8 f Some("f")
        5:14 1 Some("1")
        6:7 yes Some("yes")
        7:4 yes None
        9:3 t
         Some("t\r\n")
        10:4 ü Some("ü")
        "#);
    }

    #[test]
    fn a_word_that_looks_like_a_number_stays_as_it_was_written() {
        for word in ["12e5678", ".inf", "-.INF", "1_000", "0o17", "1e400", "~x", "2024-01-01"] {
            let tree = parse(&format!("a: {word} # c\n")).unwrap();
            assert_eq!(tree.get("a").and_then(Node::text), Some(word));
        }
        let lines = parse("a: one\n  two\n").unwrap();
        assert_eq!(lines.get("a").and_then(Node::text), Some("one two"));
    }

    #[test]
    fn an_empty_file_is_nothing() {
        for text in ["", "# nothing yet\n", "\n\n"] {
            assert_eq!(parse(text).unwrap().form, Form::Nothing);
        }
    }
}
