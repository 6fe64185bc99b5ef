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
pub struct YamlNode {
    pub line: usize,
    pub column: usize,
    pub content: YamlContent,
    /// The bytes of the text that hold the value, quotes included; `None` where it came through an alias.
    pub span: Option<Range<usize>>,
}

/// The content of a node, with the words of YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum YamlContent {
    /// A key without a value.
    Null,
    /// The scalar as it is written, without quotes. Whether `2` is a number is decided by the setting that reads it.
    Scalar(String),
    Sequence(Vec<YamlNode>),
    Mapping(Vec<YamlEntry>),
}

/// One key of a mapping with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlEntry {
    pub key: String,
    /// The line of the key, not of its value.
    pub line: usize,
    pub column: usize,
    pub value: YamlNode,
}

/// Why a text is not valid YAML or TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    pub line: Option<usize>,
    pub column: Option<usize>,
    pub kind: YamlErrorKind,
    /// The message for users.
    pub message: String,
}

/// The kinds of syntax errors that callers treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YamlErrorKind {
    /// A key occurs twice in one mapping.
    DuplicateKey,
    /// The text has more than one document.
    SecondDocument,
    /// Anything else that cannot be read.
    Syntax,
}

/// Parses a text that holds one YAML document. A key that occurs twice is an error, since any choice between the two would be
/// a guess.
pub fn parse_yaml(yaml_text: &str) -> Result<YamlNode, YamlError> {
    // A file of comments only is an empty file, but the parser rejects it.
    if yaml_text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(YamlNode::from_content(YamlContent::Null));
    }
    // A commit hash such as `12e5678` reads like an infinite float, which the parser rejects by default. As a string it becomes
    // `.inf`, and `plain_scalar` puts what the file says in its place.
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
        // A board of 10 MB is still a board, so the limits for events and nodes are raised. The limits for aliases stay
        // as they are, since aliases can blow up a small file.
        budget: serde_saphyr::budget! { max_events: 4_000_000, max_nodes: 2_000_000 },
    };
    let raw_node: Spanned<RawYamlValue> =
        serde_saphyr::from_str_with_options(yaml_text, options).map_err(|error| to_yaml_error(&error))?;
    Ok(build_node(yaml_text, raw_node))
}

fn line_number(location: &Location) -> Option<usize> {
    usize::try_from(location.line()).ok().filter(|line| *line > 0)
}

fn column_number(location: &Location) -> Option<usize> {
    usize::try_from(location.column()).ok().filter(|column| *column > 0)
}

fn to_yaml_error(error: &Error) -> YamlError {
    // The snippet repeats lines of the file, which the message does not need.
    let error = error.without_snippet();
    let (error_kind, message) = match error {
        Error::DuplicateMappingKey { key: duplicate_key, .. } => {
            let duplicate_key = duplicate_key.as_deref().unwrap_or("?");
            (YamlErrorKind::DuplicateKey, format!("duplicate key `{duplicate_key}`"))
        }
        Error::MultipleDocuments { .. } => {
            (YamlErrorKind::SecondDocument, "a second document starts here (`---`); only one is supported".into())
        }
        syntax_error => (YamlErrorKind::Syntax, simplify_message(&syntax_error.to_string())),
    };
    let location = error.location();
    YamlError {
        line: location.and_then(|location| line_number(&location)),
        column: location.and_then(|location| column_number(&location)),
        kind: error_kind,
        message,
    }
}

/// The parser's message in plainer words where we have them.
fn simplify_message(message: &str) -> String {
    let first_line = message.lines().next().unwrap_or_default();
    // The position is reported apart from the message.
    let first_line = first_line.split(" at line ").next().unwrap_or(first_line).trim_start_matches("error: ");
    if first_line.starts_with("mapping values are not allowed") {
        return "invalid YAML: unexpected `key: value`; check the indentation and the quotes".into();
    }
    format!("invalid YAML: {first_line}")
}

/// Converts the parser's value and looks up the source text of every scalar.
fn build_node(yaml_text: &str, raw_node: Spanned<RawYamlValue>) -> YamlNode {
    let line = line_number(&raw_node.referenced).unwrap_or(1);
    let column = column_number(&raw_node.referenced).unwrap_or(1);
    // A value that came through an alias is defined elsewhere: replacing those bytes would change the anchor, too.
    let is_own_text = raw_node.referenced == raw_node.defined;
    let byte_span =
        byte_range(&raw_node.defined).filter(|byte_span| is_own_text && yaml_text.get(byte_span.clone()).is_some());
    let content = match raw_node.value {
        RawYamlValue::Null => YamlContent::Null,
        RawYamlValue::PlainText(scalar) => {
            YamlContent::Scalar(plain_scalar(yaml_text, &raw_node.defined).unwrap_or(scalar))
        }
        // The parser has turned the scalar into a number or a truth value; the user wants to read what the file says.
        RawYamlValue::TypedScalar(parsed_value) => {
            YamlContent::Scalar(trimmed_slice(yaml_text, &raw_node.defined).unwrap_or(parsed_value))
        }
        RawYamlValue::Sequence(raw_items) => {
            YamlContent::Sequence(raw_items.into_iter().map(|raw_item| build_node(yaml_text, raw_item)).collect())
        }
        RawYamlValue::Mapping(raw_entries) => YamlContent::Mapping(
            raw_entries.into_iter().map(|(key, value)| build_entry(yaml_text, key, value)).collect(),
        ),
    };
    YamlNode { line, column, content, span: byte_span }
}

/// The scalar as it is written, if it is plain and on one line: `12e5678` is a commit hash, not an infinite number.
fn plain_scalar(yaml_text: &str, location: &Location) -> Option<String> {
    let source_text = yaml_text.get(byte_range(location)?)?;
    // Quoted, block and multi-line scalars have to be read by the parser; their source text is not their value.
    let is_plain = !source_text.starts_with(['"', '\'', '|', '>']) && !source_text.contains(['\n', '\r']);
    Some(source_text.trim().to_string()).filter(|source_text| is_plain && !source_text.is_empty())
}

fn build_entry(yaml_text: &str, raw_key: Spanned<RawYamlValue>, raw_value: Spanned<RawYamlValue>) -> YamlEntry {
    let line = line_number(&raw_key.referenced).unwrap_or(1);
    let column = column_number(&raw_key.referenced).unwrap_or(1);
    // A key may be null, a sequence or a mapping in YAML. None of those can name a setting, so a mark stands for it.
    let key = match build_node(yaml_text, raw_key).content {
        YamlContent::Scalar(key) => key,
        YamlContent::Null => "~".to_string(),
        YamlContent::Sequence(_) | YamlContent::Mapping(_) => "?".to_string(),
    };
    YamlEntry { key, line, column, value: build_node(yaml_text, raw_value) }
}

/// The bytes of a location; `None` if the parser does not know them.
fn byte_range(location: &Location) -> Option<Range<usize>> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    Some(start..start.checked_add(usize::try_from(span.byte_len()?).ok()?)?)
}

fn trimmed_slice(yaml_text: &str, location: &Location) -> Option<String> {
    yaml_text
        .get(byte_range(location)?)
        .map(|source_text| source_text.trim().to_string())
        .filter(|source_text| !source_text.is_empty())
}

/// A value as the parser's visitor delivers it, before its source text is looked up.
enum RawYamlValue {
    Null,
    PlainText(String),
    TypedScalar(String),
    Sequence(Vec<Spanned<RawYamlValue>>),
    Mapping(Vec<(Spanned<RawYamlValue>, Spanned<RawYamlValue>)>),
}

impl YamlNode {
    /// A value that does not come from a file.
    pub fn from_content(content: YamlContent) -> YamlNode {
        YamlNode { line: 1, column: 1, content, span: None }
    }

    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&YamlNode> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The text, if this is a scalar.
    pub fn scalar_text(&self) -> Option<&str> {
        match &self.content {
            YamlContent::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// The entries, if this is a mapping; otherwise none.
    pub fn entries(&self) -> &[YamlEntry] {
        match &self.content {
            YamlContent::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// The items, if this is a sequence; otherwise none.
    pub fn items(&self) -> &[YamlNode] {
        match &self.content {
            YamlContent::Sequence(items) => items,
            _ => &[],
        }
    }
}

impl<'de> Deserialize<'de> for RawYamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawYamlVisitor)
    }
}

/// Receives the parser's values. It accepts every type, since no schema is known here.
struct RawYamlVisitor;

impl<'de> Visitor<'de> for RawYamlVisitor {
    type Value = RawYamlValue;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("keys and values")
    }

    fn visit_unit<E>(self) -> Result<RawYamlValue, E> {
        Ok(RawYamlValue::Null)
    }

    fn visit_none<E>(self) -> Result<RawYamlValue, E> {
        Ok(RawYamlValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawYamlValue, E> {
        Ok(RawYamlValue::TypedScalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawYamlValue, E> {
        Ok(RawYamlValue::TypedScalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<RawYamlValue, E> {
        Ok(RawYamlValue::TypedScalar(value.to_string()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<RawYamlValue, E> {
        Ok(RawYamlValue::TypedScalar(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<RawYamlValue, E> {
        Ok(RawYamlValue::TypedScalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawYamlValue, E> {
        Ok(RawYamlValue::TypedScalar(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<RawYamlValue, E> {
        Ok(RawYamlValue::PlainText(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<RawYamlValue, A::Error> {
        let mut raw_items = Vec::new();
        while let Some(raw_item) = sequence.next_element()? {
            raw_items.push(raw_item);
        }
        Ok(RawYamlValue::Sequence(raw_items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut mapping: A) -> Result<RawYamlValue, A::Error> {
        let mut raw_entries = Vec::new();
        while let Some(raw_entry) = mapping.next_entry()? {
            raw_entries.push(raw_entry);
        }
        Ok(RawYamlValue::Mapping(raw_entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders one line for every leaf: `path: text (line)`.
    fn render_leaves(yaml_text: &str) -> String {
        fn collect_leaves(node: &YamlNode, key_path: &str, leaves: &mut Vec<String>) {
            match &node.content {
                YamlContent::Null => leaves.push(format!("{key_path}: nothing ({})", node.line)),
                YamlContent::Scalar(scalar) => leaves.push(format!("{key_path}: {scalar} ({})", node.line)),
                YamlContent::Sequence(items) => {
                    items.iter().for_each(|item| collect_leaves(item, &format!("{key_path}[]"), leaves))
                }
                YamlContent::Mapping(entries) => entries.iter().for_each(|entry| {
                    collect_leaves(&entry.value, &format!("{key_path}.{}@{}", entry.key, entry.line), leaves)
                }),
            }
        }
        let mut leaves = Vec::new();
        collect_leaves(&parse_yaml(yaml_text).unwrap(), "", &mut leaves);
        leaves.join("\n")
    }

    #[test]
    fn every_key_and_value_knows_its_line_and_its_text() {
        let yaml_text = "# top\nlimits:\n  max_cost: 0.80   # money\n  infinite: .inf\n  on: yes\n  none:\n\
                    tier_minimums: {0: minimal, 01: \"2\"}\nverify:\n  - a\n  - 'b c'\n  - |\n    two\n    lines\n\
                    long: 0x10\nbig: 99999999999999999999999999\nwhen: 2024-01-01\n";
        insta::assert_snapshot!(render_leaves(yaml_text), @r"
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
        insta::assert_snapshot!(render_leaves("a: &x\n  n: 1.50\nb: *x\nc:\n  <<: *x\n  m: 2\n"), @r"
        .a@1.n@2: 1.50 (2)
        .b@3.n@3: 1.50 (3)
        .c@4.m@6: 2 (6)
        .c@4.n@5: 1.50 (5)
        ");
    }

    #[test]
    fn a_parse_error_has_a_kind_that_does_not_depend_on_its_message() {
        let error_kind = |yaml_text: &str| parse_yaml(yaml_text).expect_err(yaml_text).kind;
        assert_eq!(error_kind("a: 1\na: 2\n"), YamlErrorKind::DuplicateKey);
        assert_eq!(error_kind("? [a]\n: 1\n? [a]\n: 2\n"), YamlErrorKind::DuplicateKey);
        assert_eq!(error_kind("a: 1\n---\na: 2\n"), YamlErrorKind::SecondDocument);
        assert_eq!(error_kind("a: *for the second time\n"), YamlErrorKind::Syntax);
        assert_eq!(error_kind("a: [\n"), YamlErrorKind::Syntax);
    }

    #[test]
    fn a_parse_error_is_named_with_its_line() {
        let describe_error = |yaml_text: &str| {
            let parse_error = parse_yaml(yaml_text).expect_err(yaml_text);
            format!("{:?} {}", parse_error.line, parse_error.message)
        };
        let descriptions: Vec<String> = [
            "tier: 2\nverify: [\n",
            "a: 1\nb: 2\na: 3\n",
            "tier: 2\n  review_loop:\n    enabled: true\n",
            "a: b: c\n",
            "a: *no\n",
            "a: 'x\n",
            "---\na: 1\n---\nb: 2\n",
        ]
        .iter()
        .map(|yaml_text| describe_error(yaml_text))
        .collect();
        insta::assert_snapshot!(descriptions.join("\n"), @"
        Some(2) invalid YAML: unclosed bracket '['
        Some(3) duplicate key `a`
        Some(2) invalid YAML: unexpected `key: value`; check the indentation and the quotes
        Some(1) invalid YAML: unexpected `key: value`; check the indentation and the quotes
        Some(1) invalid YAML: alias references unknown anchor
        Some(2) invalid YAML: invalid indentation in multiline quoted scalar
        Some(4) a second document starts here (`---`); only one is supported
        ");
    }

    /// Renders every scalar with its bytes.
    fn render_spans(yaml_text: &str) -> String {
        fn collect_spans(yaml_text: &str, node: &YamlNode, rendered: &mut Vec<String>) {
            if let YamlContent::Scalar(scalar) = &node.content {
                let source_text = node.span.clone().map(|span| &yaml_text[span]);
                rendered.push(format!("{}:{} {scalar} {source_text:?}", node.line, node.column));
            }
            node.items().iter().for_each(|item| collect_spans(yaml_text, item, rendered));
            node.entries().iter().for_each(|entry| collect_spans(yaml_text, &entry.value, rendered));
        }
        let mut rendered = Vec::new();
        collect_spans(yaml_text, &parse_yaml(yaml_text).unwrap(), &mut rendered);
        rendered.join("\n")
    }

    #[test]
    fn every_scalar_knows_its_bytes() {
        let yaml_text = "\u{feff}# ä\r\na:   done   # x\r\nb: \"q\"\r\nc: 'it''s' \r\nd: {e: f, g: 1}\r\nh: &i yes\r\n\
            j: *i\r\nk: |\r\n  t\r\nö: ü\r\n";
        insta::assert_snapshot!(render_spans(yaml_text), @r#"
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
        for scalar in ["12e5678", ".inf", "-.INF", "1_000", "0o17", "1e400", "~x", "2024-01-01"] {
            let root_node = parse_yaml(&format!("a: {scalar} # c\n")).unwrap();
            assert_eq!(root_node.get("a").and_then(YamlNode::scalar_text), Some(scalar));
        }
        let folded_scalar = parse_yaml("a: one\n  two\n").unwrap();
        assert_eq!(folded_scalar.get("a").and_then(YamlNode::scalar_text), Some("one two"));
    }

    #[test]
    fn an_empty_file_is_null() {
        for yaml_text in ["", "# nothing yet\n", "\n\n"] {
            assert_eq!(parse_yaml(yaml_text).unwrap().content, YamlContent::Null);
        }
    }
}
