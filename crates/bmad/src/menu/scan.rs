//! Scans one line: its keys in brackets, the text behind each, and what kind of line it is. Groups of lines are built in
//! `group`.

/// A key in brackets, such as `[A]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark<'t> {
    pub start: usize,
    pub end: usize,
    pub key: &'t str,
    pub kind: MarkKind,
}

/// What a pair of brackets is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkKind {
    Key,
    /// `[A](…)`.
    Link,
    /// `[1]: …` at the start of a line.
    Footnote,
}

/// Emphasis marks and quotes around a word.
pub(super) const AROUND: [char; 9] = ['*', '_', '"', '\'', '`', '“', '”', '‘', '’'];

/// The keys in brackets of a line, up to a limit.
pub(super) fn marks(line: &str, most: usize) -> Vec<Mark<'_>> {
    let bytes = line.as_bytes();
    let mut marks: Vec<Mark<'_>> = Vec::new();
    for (start, _) in line.match_indices('[') {
        if marks.len() == most {
            break;
        }
        let closed = |length: usize| bytes.get(start + 1 + length) == Some(&b']');
        let is = |at: usize, is: fn(&u8) -> bool| bytes.get(start + at).is_some_and(is);
        // A key is one letter or digit, or a number of two digits.
        let length = if is(1, u8::is_ascii_alphanumeric) && closed(1) {
            1
        } else if is(1, u8::is_ascii_digit) && is(2, u8::is_ascii_digit) && closed(2) {
            2
        } else {
            continue;
        };
        // `[Y][V][N]` are three keys; `rows[1][2]` has none.
        let before = line[..start].chars().next_back();
        let chained = before == Some(']') && marks.last().is_some_and(|mark| mark.end == start);
        if before.is_some_and(|c| c.is_alphanumeric() || "_])[\\!^$@{%".contains(c)) && !chained {
            continue;
        }
        let end = start + length + 2;
        let key = &line[start + 1..end - 1];
        let kind = match line[end..].chars().next() {
            Some('(') => MarkKind::Link,
            Some(':')
                if marks.is_empty()
                    && line[..start].trim().is_empty()
                    && key.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                MarkKind::Footnote
            }
            _ => MarkKind::Key,
        };
        marks.push(Mark { start, end, key, kind });
    }
    marks
}

/// The text before the first key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    /// Nothing, or a quote mark or emphasis.
    Start,
    /// The bullet or number of a list, where `[x]` is a check box.
    Bullet,
    /// A prompt: `Select an option:`.
    Prompt,
    /// A word that asks for a key: `Choose [1] …`.
    Word,
    /// Anything else: the key is only mentioned.
    Sentence,
}

const ASKING: [&str; 12] = [
    "select", "choose", "option", "options", "choice", "choices", "pick", "enter", "type", "press", "reply",
    "either",
];

/// Classifies the text before the first key of a line.
pub(super) fn lead(before: &str) -> Lead {
    let bare = before.trim().trim_start_matches('>').trim();
    let number = bare.trim_end_matches(AROUND).trim_end().strip_suffix(['.', ')']);
    // `1. [A] …` is a list item, however it is emphasized.
    let numbered = number.is_some_and(|number| number.len() < 3 && number.parse::<u32>().is_ok());
    if numbered || !bare.contains(char::is_alphanumeric) {
        let bullet = bare.starts_with(['-', '+', '•']) || bare.starts_with("* ") || bare == "*";
        return if bullet || numbered { Lead::Bullet } else { Lead::Start };
    }
    // Bold text before a key is a prompt even without a colon: `**Select an option** [A]`.
    if bare.ends_with("**") {
        return Lead::Prompt;
    }
    let bare = bare.trim_end_matches(AROUND).trim_end();
    if !bare.ends_with(char::is_alphanumeric) {
        return if bare.ends_with('(') { Lead::Sentence } else { Lead::Prompt };
    }
    let word = bare.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    if ASKING.contains(&word.as_str()) { Lead::Word } else { Lead::Sentence }
}

/// The text behind a key: its label and a description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Label {
    pub label: String,
    pub about: String,
    /// Whether the key is the first letter of its label: `[C]reate`.
    pub glued: bool,
    /// Whether the key stands in parentheses: `([t] or [w])`.
    pub closed: bool,
}

/// Parses the text behind a key, up to the next key or the end of the line.
pub(super) fn label(key: &str, behind: &str) -> Label {
    let behind = behind.split("</").next().unwrap_or(behind);
    let glued =
        behind.starts_with(|c: char| c.is_lowercase()) && key.starts_with(|c: char| c.is_ascii_alphabetic());
    let closed = behind.starts_with(')');
    let text = if glued { format!("{key}{behind}") } else { behind.to_string() };
    // Emphasis may begin before the key and end behind the label.
    let text = text.replace(['*', '`'], "");
    let (head, about) = split(text.trim_start_matches(|c: char| !c.is_alphanumeric() && !"[{(<".contains(c)));
    Label { label: trimmed(head), about: trimmed(about), glued, closed }
}

/// Splits a text at the first dash, colon or arrow.
fn split(text: &str) -> (&str, &str) {
    const BETWEEN: [&str; 6] = [" - ", " – ", " — ", ": ", " → ", " -- "];
    let at = BETWEEN.iter().filter_map(|mark| text.find(mark).map(|at| (at, mark.len()))).min();
    at.map_or((text, ""), |(at, length)| (&text[..at], &text[at + length..]))
}

/// The text without separators and words that join it to its neighbours.
fn trimmed(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || AROUND.contains(&c) || "|/,;:.·•?!—–-→(".contains(c);
    let mut text = text.trim_matches(ends);
    for word in [" or", " and"] {
        text = text.strip_suffix(word).unwrap_or(text).trim_end_matches(ends);
    }
    for word in ["or ", "and ", "to "] {
        text = text.strip_prefix(word).unwrap_or(text);
    }
    if ["or", "and", "to"].contains(&text) { String::new() } else { text.to_string() }
}

/// The text before a key that names it: `Review it. Continue [c] or Edit [e]?`
pub(super) fn label_before(before: &str) -> String {
    let text = before.replace(['*', '`'], "");
    let last = text.rsplit(['.', ':', '?', '!', ',', ';', '>', '"']).next().unwrap_or_default();
    trimmed(last.trim())
}

/// Whether nothing but the end of a sentence follows the last key.
pub(super) fn ends(behind: &str) -> bool {
    let behind = behind.split("</").next().unwrap_or(behind);
    !behind.contains(char::is_alphanumeric)
}

pub(super) fn is_quoted(line: &str) -> bool {
    line.trim_start().starts_with('>')
}

/// Whether a line leads to what follows, by its last character.
pub(super) fn is_prompt(line: &str) -> bool {
    line.trim_end().trim_end_matches(AROUND).ends_with([':', '?'])
}

/// Whether a line or title announces an example: `Example:`, `**Sample menu:**`, `Template`.
pub(super) fn is_example(line: &str) -> bool {
    const WORDS: [&str; 8] =
        ["example", "examples", "sample", "samples", "template", "templates", "output", "outputs"];
    let line = line.trim().trim_matches(|c: char| !c.is_alphanumeric() && c != ':' && !AROUND.contains(&c));
    let bare = line.trim_matches(AROUND);
    let Some(said) = bare.trim_end_matches(AROUND).strip_suffix(':').or(Some(bare)) else { return false };
    // Only a few words count: a sentence that ends with an example announces nothing.
    let mut words = said.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let (Some(first), rest) = (words.next(), words.by_ref().take(4).collect::<Vec<_>>()) else {
        return false;
    };
    let is_word = |word: &str| WORDS.contains(&word.to_lowercase().as_str());
    let starts = is_word(first)
        || (first.eq_ignore_ascii_case("for") && rest.first().is_some_and(|word| is_word(word)));
    starts && rest.len() < 4 && (bare.trim_end_matches(AROUND).ends_with(':') || rest.is_empty())
}
