//! Scans one line: its keys in brackets, the text behind each, and what kind of line it is. Groups of lines are built in
//! `group`.

/// A key in brackets, such as `[A]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyMark<'t> {
    pub start: usize,
    pub end: usize,
    pub key: &'t str,
    pub kind: KeyMarkKind,
}

/// What a pair of brackets is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyMarkKind {
    Key,
    /// `[A](…)`.
    Link,
    /// `[1]: …` at the start of a line.
    Footnote,
}

/// Emphasis marks and quotes around a word.
pub(super) const EMPHASIS_AND_QUOTES: [char; 9] = ['*', '_', '"', '\'', '`', '“', '”', '‘', '’'];

/// The keys in brackets of a line, up to a limit.
pub(super) fn find_marks(line_text: &str, max_marks: usize) -> Vec<KeyMark<'_>> {
    let bytes = line_text.as_bytes();
    let mut key_marks: Vec<KeyMark<'_>> = Vec::new();
    for (mark_start, _) in line_text.match_indices('[') {
        if key_marks.len() == max_marks {
            break;
        }
        let is_closed_after = |key_length: usize| bytes.get(mark_start + 1 + key_length) == Some(&b']');
        let is_byte =
            |byte_offset: usize, has_kind: fn(&u8) -> bool| bytes.get(mark_start + byte_offset).is_some_and(has_kind);
        // A key is one letter or digit, or a number of two digits. Agents greet with items of two or three letters, numbered:
        // `1. [MH] Redisplay Menu Help`.
        let word_length = line_text[mark_start + 1..].bytes().take_while(u8::is_ascii_uppercase).count();
        let key_length = if is_byte(1, u8::is_ascii_alphanumeric) && is_closed_after(1) {
            1
        } else if is_byte(1, u8::is_ascii_digit) && is_byte(2, u8::is_ascii_digit) && is_closed_after(2) {
            2
        } else if (2..=3).contains(&word_length)
            && is_closed_after(word_length)
            && is_item_number(&line_text[..mark_start])
        {
            word_length
        } else {
            continue;
        };
        // `[Y][V][N]` are three keys; `rows[1][2]` has none.
        let previous_character = line_text[..mark_start].chars().next_back();
        let follows_mark =
            previous_character == Some(']') && key_marks.last().is_some_and(|key_mark| key_mark.end == mark_start);
        if previous_character.is_some_and(|character| character.is_alphanumeric() || "_])[\\!^$@{%".contains(character))
            && !follows_mark
        {
            continue;
        }
        let mark_end = mark_start + key_length + 2;
        let mark_key = &line_text[mark_start + 1..mark_end - 1];
        let mark_kind = match line_text[mark_end..].chars().next() {
            Some('(') => KeyMarkKind::Link,
            Some(':')
                if key_marks.is_empty()
                    && line_text[..mark_start].trim().is_empty()
                    && mark_key.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                KeyMarkKind::Footnote
            }
            _ => KeyMarkKind::Key,
        };
        key_marks.push(KeyMark { start: mark_start, end: mark_end, key: mark_key, kind: mark_kind });
    }
    key_marks
}

/// Whether a text is only the number of a list item: `1. `, `**2)** `.
fn is_item_number(text_before: &str) -> bool {
    let number_text = text_before.trim().trim_matches('*').trim().strip_suffix(['.', ')']);
    number_text
        .is_some_and(|number_text| !number_text.is_empty() && number_text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The text before the first key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineLead {
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

const ASKING_WORDS: [&str; 12] =
    ["select", "choose", "option", "options", "choice", "choices", "pick", "enter", "type", "press", "reply", "either"];

/// Classifies the text before the first key of a line.
pub(super) fn classify_lead(text_before: &str) -> LineLead {
    let unmarked_text = text_before.trim().trim_start_matches('>').trim();
    let number_prefix = unmarked_text.trim_end_matches(EMPHASIS_AND_QUOTES).trim_end().strip_suffix(['.', ')']);
    // `1. [A] …` is a list item, however it is emphasized.
    let is_numbered =
        number_prefix.is_some_and(|number_prefix| number_prefix.len() < 3 && number_prefix.parse::<u32>().is_ok());
    if is_numbered || !unmarked_text.contains(char::is_alphanumeric) {
        let is_bullet =
            unmarked_text.starts_with(['-', '+', '•']) || unmarked_text.starts_with("* ") || unmarked_text == "*";
        return if is_bullet || is_numbered { LineLead::Bullet } else { LineLead::Start };
    }
    // Bold text before a key is a prompt even without a colon: `**Select an option** [A]`.
    if unmarked_text.ends_with("**") {
        return LineLead::Prompt;
    }
    let unmarked_text = unmarked_text.trim_end_matches(EMPHASIS_AND_QUOTES).trim_end();
    if !unmarked_text.ends_with(char::is_alphanumeric) {
        return if unmarked_text.ends_with('(') { LineLead::Sentence } else { LineLead::Prompt };
    }
    let last_word =
        unmarked_text.rsplit(|character: char| !character.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    if ASKING_WORDS.contains(&last_word.as_str()) { LineLead::Word } else { LineLead::Sentence }
}

/// The text behind a key: its label and a description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OptionLabel {
    pub label: String,
    pub about: String,
    /// Whether the key is the first letter of its label: `[C]reate`.
    pub is_glued: bool,
    /// Whether the key stands in parentheses: `([t] or [w])`.
    pub is_closed: bool,
}

/// Parses the text behind a key, up to the next key or the end of the line.
pub(super) fn parse_label(option_key: &str, after_key: &str) -> OptionLabel {
    let after_key = after_key.split("</").next().unwrap_or(after_key);
    let is_glued = after_key.starts_with(|character: char| character.is_lowercase())
        && option_key.starts_with(|character: char| character.is_ascii_alphabetic());
    let is_closed = after_key.starts_with(')');
    let label_text = if is_glued { format!("{option_key}{after_key}") } else { after_key.to_string() };
    // Emphasis may begin before the key and end behind the label.
    let label_text = label_text.replace(['*', '`'], "");
    let (label_head, about) = split_label(
        label_text.trim_start_matches(|character: char| !character.is_alphanumeric() && !"[{(<".contains(character)),
    );
    OptionLabel { label: trim_label(label_head), about: trim_label(about), is_glued, is_closed }
}

/// Splits a text at the first dash, colon or arrow.
fn split_label(label_text: &str) -> (&str, &str) {
    const SEPARATORS: [&str; 6] = [" - ", " – ", " — ", ": ", " → ", " -- "];
    let first_separator = SEPARATORS
        .iter()
        .filter_map(|separator| label_text.find(separator).map(|separator_offset| (separator_offset, separator.len())))
        .min();
    first_separator.map_or((label_text, ""), |(separator_offset, length)| {
        (&label_text[..separator_offset], &label_text[separator_offset + length..])
    })
}

/// The text without separators and words that join it to its neighbours.
fn trim_label(label_text: &str) -> String {
    let is_edge_character = |character: char| {
        character.is_whitespace() || EMPHASIS_AND_QUOTES.contains(&character) || "|/,;:.·•?!—–-→(".contains(character)
    };
    let mut trimmed_text = label_text.trim_matches(is_edge_character);
    for joining_word in [" or", " and"] {
        trimmed_text =
            trimmed_text.strip_suffix(joining_word).unwrap_or(trimmed_text).trim_end_matches(is_edge_character);
    }
    for joining_word in ["or ", "and ", "to "] {
        trimmed_text = trimmed_text.strip_prefix(joining_word).unwrap_or(trimmed_text);
    }
    if ["or", "and", "to"].contains(&trimmed_text) { String::new() } else { trimmed_text.to_string() }
}

/// The text before a key that names it: `Review it. Continue [c] or Edit [e]?`
pub(super) fn parse_label_before(text_before: &str) -> String {
    let plain_text = text_before.replace(['*', '`'], "");
    let last_phrase = plain_text.rsplit(['.', ':', '?', '!', ',', ';', '>', '"']).next().unwrap_or_default();
    trim_label(last_phrase.trim())
}

/// Whether nothing but the end of a sentence follows the last key.
pub(super) fn is_sentence_end(after_key: &str) -> bool {
    let after_key = after_key.split("</").next().unwrap_or(after_key);
    !after_key.contains(char::is_alphanumeric)
}

pub(super) fn is_quoted(line_text: &str) -> bool {
    line_text.trim_start().starts_with('>')
}

/// Whether a line leads to what follows, by its last character.
pub(super) fn is_prompt(line_text: &str) -> bool {
    line_text.trim_end().trim_end_matches(EMPHASIS_AND_QUOTES).ends_with([':', '?'])
}

/// Whether a line or title announces an example: `Example:`, `**Sample menu:**`, `Template`.
pub(super) fn is_example(line_text: &str) -> bool {
    const EXAMPLE_WORDS: [&str; 8] =
        ["example", "examples", "sample", "samples", "template", "templates", "output", "outputs"];
    let line_text = line_text.trim().trim_matches(|character: char| {
        !character.is_alphanumeric() && character != ':' && !EMPHASIS_AND_QUOTES.contains(&character)
    });
    let unmarked_text = line_text.trim_matches(EMPHASIS_AND_QUOTES);
    let Some(title_text) =
        unmarked_text.trim_end_matches(EMPHASIS_AND_QUOTES).strip_suffix(':').or(Some(unmarked_text))
    else {
        return false;
    };
    // Only a few words count: a sentence that ends with an example announces nothing.
    let mut title_words =
        title_text.split(|character: char| !character.is_alphanumeric()).filter(|title_word| !title_word.is_empty());
    let (Some(first_word), following_words) = (title_words.next(), title_words.by_ref().take(4).collect::<Vec<_>>())
    else {
        return false;
    };
    let is_example_word = |title_word: &str| EXAMPLE_WORDS.contains(&title_word.to_lowercase().as_str());
    let starts_as_example = is_example_word(first_word)
        || (first_word.eq_ignore_ascii_case("for")
            && following_words.first().is_some_and(|title_word| is_example_word(title_word)));
    starts_as_example
        && following_words.len() < 4
        && (unmarked_text.trim_end_matches(EMPHASIS_AND_QUOTES).ends_with(':') || following_words.is_empty())
}
