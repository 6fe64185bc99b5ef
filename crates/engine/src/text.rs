//! A text as lines and sections: what grounding, fix waves and trackers need to know about Markdown, and no more. Words are
//! handled in [`words`].

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

pub mod word_table;
pub mod words;

/// Formats a count for users: `1 line`, `2 lines`, `2 stories`.
pub fn format_count(amount: u32, noun: &str) -> String {
    match noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        _ if amount == 1 => format!("1 {noun}"),
        Some(stem) => format!("{amount} {stem}ies"),
        None => format!("{amount} {noun}s"),
    }
}

/// A heading with the lines that it covers, down to the next heading of the same or a higher rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSection {
    pub title: String,
    /// 1 for `#`, 2 for `##`, …
    pub rank: u8,
    /// The line of the heading itself, from 1.
    pub heading_line: u32,
    pub last_line: u32,
}

impl TextSection {
    pub fn contains(&self, line_number: u32) -> bool {
        (self.heading_line..=self.last_line).contains(&line_number)
    }
}

/// Parses all sections in the order of their headings; `#` inside code fences and front matter is not a heading.
pub fn parse_sections(markdown: &str) -> Vec<TextSection> {
    let mut sections_found: Vec<TextSection> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut in_front_matter = markdown.starts_with("---\n") || markdown.starts_with("---\r\n");
    let mut last_line = 0;
    for (line_index, line_text) in markdown.lines().enumerate() {
        let line_number = line_index as u32 + 1;
        last_line = line_number;
        let trimmed = line_text.trim_end();
        if in_front_matter {
            // The first line opens the front matter, the next `---` closes it.
            in_front_matter = line_index == 0 || trimmed != "---";
            continue;
        }
        let line_start = trimmed.trim_start();
        // Inside a fence only the same kind of mark ends it.
        if let Some(fence_mark) = fence {
            if line_start.starts_with(fence_mark) {
                fence = None;
            }
            continue;
        }
        fence = ["```", "~~~"].into_iter().find(|fence_mark| line_start.starts_with(fence_mark));
        if fence.is_none()
            && let Some((rank, title)) = parse_heading(trimmed)
        {
            close_sections(&mut sections_found, rank, line_number - 1);
            // The end is not known yet; the next heading of the same or a higher rank sets it.
            sections_found.push(TextSection { title, rank, heading_line: line_number, last_line: u32::MAX });
        }
    }
    // Rank 1 closes every section that is still open.
    close_sections(&mut sections_found, 1, last_line);
    sections_found
}

fn parse_heading(heading_line: &str) -> Option<(u8, String)> {
    let rank = heading_line.bytes().take_while(|byte| *byte == b'#').count();
    let after_marks = heading_line.get(rank..)?;
    if !(1..=6).contains(&rank) || !after_marks.starts_with([' ', '\t']) {
        return None;
    }
    // Markdown allows closing marks: `## Title ##`.
    let title = after_marks.trim().trim_end_matches('#').trim();
    (!title.is_empty()).then(|| (rank as u8, title.to_string()))
}

fn close_sections(sections_found: &mut [TextSection], rank: u8, end_line: u32) {
    for open_section in
        sections_found.iter_mut().filter(|section| section.last_line == u32::MAX && section.rank >= rank)
    {
        open_section.last_line = end_line;
    }
}

/// Finds the section with this title, the first if there are several.
pub fn find_section(markdown: &str, title: &str) -> Option<TextSection> {
    let all_sections = parse_sections(markdown);
    sections_titled(&all_sections, title).next().cloned()
}

/// Finds the sections with this title. Case, `#` and markup do not matter, and a number before it only distinguishes titles
/// that would be the same without it.
pub fn sections_titled<'s>(sections: &'s [TextSection], title: &str) -> impl Iterator<Item = &'s TextSection> {
    let wanted_key = normalize_heading(title.trim().trim_start_matches('#'));
    // Numbers count only if a section matches with its number.
    let matches_with_number = sections.iter().any(|section| normalize_heading(&section.title) == wanted_key);
    let section_key = move |title: &str| {
        let title_key = normalize_heading(title);
        if matches_with_number { title_key } else { strip_number(&title_key).to_string() }
    };
    let wanted_key = if matches_with_number { wanted_key } else { strip_number(&wanted_key).to_string() };
    sections.iter().filter(move |section| !wanted_key.is_empty() && section_key(&section.title) == wanted_key)
}

/// Strips the markup of a heading: `**Goals** and [scope](#s):` becomes `goals and scope`.
fn normalize_heading(title: &str) -> String {
    let mut plain_title = String::new();
    let mut remainder = title;
    // Links keep their text and lose their target; the brackets are removed below.
    while let Some(link_middle) = remainder.find("](") {
        let Some(link_end) = remainder[link_middle..].find(')') else { break };
        plain_title.push_str(&remainder[..link_middle]);
        remainder = &remainder[link_middle + link_end + 1..];
    }
    plain_title.push_str(remainder);
    // An explicit anchor such as `{#limits}` is not part of the title.
    let anchor_start = plain_title.rfind("{#").filter(|_| plain_title.trim_end().ends_with('}'));
    plain_title.truncate(anchor_start.unwrap_or(plain_title.len()));
    plain_title.retain(|character| !matches!(character, '*' | '_' | '`' | '[' | ']'));
    let folded: String = fold_case_and_spaces(&plain_title).chars().map(plain_char).collect();
    folded.trim_end_matches([':', '.', ' ']).to_string()
}

/// Strips a number in front: `2.1 goals`, `2) goals`, `§ 2 goals` become `goals`. A number alone stays.
fn strip_number(title_key: &str) -> &str {
    let remainder = title_key
        .trim_start_matches(['§', ' '])
        .trim_start_matches(|character: char| character.is_ascii_digit() || character == '.');
    let has_number = remainder.len() < title_key.len();
    let remainder = remainder.trim_start_matches([')', ':', '-', ' ']);
    if has_number && !remainder.is_empty() { remainder } else { title_key }
}

/// Replaces typographic quotes and dashes by the ones on a keyboard.
pub fn plain_char(character: char) -> char {
    match character {
        '‘' | '’' | '‚' | '‛' | '′' => '\'',
        '“' | '”' | '„' | '‟' | '″' | '«' | '»' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => '-',
        unchanged => unchanged,
    }
}

/// Returns the title of the innermost section around a line.
pub fn section_title_at(sections: &[TextSection], line_number: u32) -> &str {
    let enclosing = sections.iter().filter(|section| section.contains(line_number));
    // Of nested sections the innermost one starts last.
    enclosing.max_by_key(|section| section.heading_line).map_or("", |section| section.title.as_str())
}

/// Folds white space to single blanks and letters to lower case.
pub fn fold_case_and_spaces(raw_text: &str) -> String {
    let mut folded = String::new();
    for word in raw_text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.extend(word.chars().flat_map(char::to_lowercase));
    }
    folded
}

/// Folds a text to one line with visible escapes for characters that act, so that untrusted text is safe on a screen or in a list.
pub fn sanitize_to_line(raw_text: &str) -> String {
    let words: Vec<String> = raw_text.split_whitespace().map(escape_active_chars).collect();
    words.join(" ")
}

/// Whether a character does something where it is shown: control characters, and those that change the direction of the text
/// around them or end a line.
fn is_active(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces characters that do something where they are shown by visible escapes such as `\u{1b}`. Line ends and tabs stay.
pub fn escape_active_chars(raw_text: &str) -> String {
    let mut escaped_text = String::with_capacity(raw_text.len());
    for character in raw_text.chars() {
        match character {
            '\n' | '\t' => escaped_text.push(character),
            '\r' => escaped_text.push_str("\\r"),
            _ if is_active(character) => escaped_text.extend(character.escape_unicode()),
            _ => escaped_text.push(character),
        }
    }
    escaped_text
}

/// Escapes characters that do something where they are shown in a line of JSON; its value stays the same.
pub fn escape_json_chars(json_line: &str) -> String {
    let mut escaped_line = String::with_capacity(json_line.len());
    for character in json_line.chars() {
        match is_active(character) {
            // They are all in the basic plane, so each is one escape.
            true => escaped_line.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => escaped_line.push(character),
        }
    }
    escaped_line
}

/// Returns the first `max_chars` characters, with an ellipsis if something was cut off.
pub fn truncate_chars(full_text: &str, max_chars: usize) -> String {
    match full_text.char_indices().nth(max_chars) {
        None => full_text.to_string(),
        Some((cut_offset, _)) => {
            let mut truncated = full_text[..cut_offset].trim_end().to_string();
            truncated.push('…');
            truncated
        }
    }
}

/// Returns the last `max_chars` characters, with an ellipsis if something was cut off.
pub fn keep_last_chars(full_text: &str, max_chars: usize) -> String {
    let cut_chars = full_text.chars().count().saturating_sub(max_chars);
    if cut_chars == 0 {
        return full_text.to_string();
    }
    let mut kept_text = String::from("…");
    kept_text.extend(full_text.chars().skip(cut_chars));
    kept_text
}

/// Quotes a word for a shell, if it needs that.
pub fn shell_quote(word: &str) -> String {
    if is_plain_shell_word(word) { word.to_string() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Whether a shell takes a word as it is, without quotes.
pub fn is_plain_shell_word(word: &str) -> bool {
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+=:@%".contains(character);
    !word.is_empty() && word.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "---\ntitle: x\n# no heading\n---\n# One\nintro\n## Two ##\nbody\n```\n# code\n```\n## Three\nend\n";

    #[test]
    fn a_word_is_quoted_only_if_a_shell_would_take_it_apart() {
        for plain_word in ["src/main.rs", "--set=a.b=1", "grün.md", "user@host:/x", "50%"] {
            assert_eq!(shell_quote(plain_word), plain_word);
        }
        for (word, quoted) in
            [("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$HOME;ls", "'$HOME;ls'"), ("~", "'~'")]
        {
            assert_eq!(shell_quote(word), quoted);
        }
    }

    #[test]
    fn sections_cover_their_lines_and_skip_code_and_front_matter() {
        let parsed: Vec<_> = parse_sections(TEXT)
            .into_iter()
            .map(|section| (section.title, section.rank, section.heading_line, section.last_line))
            .collect();
        assert_eq!(parsed, [("One".into(), 1, 5, 13), ("Two".to_string(), 2, 7, 11), ("Three".to_string(), 2, 12, 13)]);
    }

    #[test]
    fn the_innermost_section_names_a_line() {
        let parsed = parse_sections(TEXT);
        assert_eq!(section_title_at(&parsed, 6), "One");
        assert_eq!(section_title_at(&parsed, 10), "Two");
        assert_eq!(section_title_at(&parsed, 2), "");
    }

    #[test]
    fn a_section_is_found_regardless_of_its_marks_and_case() {
        assert_eq!(find_section(TEXT, "##  two").map(|s| s.heading_line), Some(7));
        assert_eq!(find_section(TEXT, "four"), None);
        assert_eq!(find_section(TEXT, ""), None);
    }

    #[test]
    fn numbers_and_markup_of_a_heading_matter_only_to_tell_two_apart() {
        let markdown = "# 1. **Goals** & [Scope](#x)\n## 2.1 Limits: {#limits}\n## 3 Risks\n## 4 Risks\n## 2026\n";
        let line_of = |title: &str| find_section(markdown, title).map(|section| section.heading_line);
        assert_eq!(
            (line_of("goals & scope"), line_of("# Goals & Scope"), line_of("7. goals & `scope`")),
            (Some(1), Some(1), Some(1))
        );
        assert_eq!((line_of("limits"), line_of("Limits:"), line_of("2.1 Limits")), (Some(2), Some(2), Some(2)));
        assert_eq!((line_of("Risks"), line_of("4 risks"), line_of("5 risks")), (Some(3), Some(4), Some(3)));
        assert_eq!((line_of("2026"), line_of("2027")), (Some(5), None));
        assert_eq!(sections_titled(&parse_sections(markdown), "risks").count(), 2);
    }

    #[test]
    fn a_folded_line_cannot_control_a_terminal() {
        let hostile_text = "a\x1b]0;x\x07 b\r\n\tc\u{9b}31m \u{202e}d";
        assert_eq!(sanitize_to_line(hostile_text), r"a\u{1b}]0;x\u{7} b c\u{9b}31m \u{202e}d");
        assert_eq!(escape_json_chars("{\"a\": \"\u{9b}\u{202e}é\"}"), r#"{"a": "\u009b\u202eé"}"#);
        assert_eq!(escape_active_chars("a\rb\r\n\u{2066}c\té ⚠\u{fe0f}"), "a\\rb\\r\n\\u{2066}c\té ⚠\u{fe0f}");
    }

    #[test]
    fn cutting_keeps_whole_characters() {
        assert_eq!(truncate_chars("äöüß", 2), "äö…");
        assert_eq!(truncate_chars("äö", 2), "äö");
    }
}
