//! A text as lines and sections: what grounding, fix waves and trackers need to know about Markdown, and no more. Words are
//! handled in [`words`].

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

pub mod words;

/// Formats a count for users: `1 line`, `2 lines`.
pub fn count(number: u32, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A heading with the lines that it covers, down to the next heading of the same or a higher rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub title: String,
    /// 1 for `#`, 2 for `##`, …
    pub rank: u8,
    /// The line of the heading itself, from 1.
    pub line: u32,
    pub end_line: u32,
}

impl Section {
    pub fn contains(&self, line: u32) -> bool {
        (self.line..=self.end_line).contains(&line)
    }
}

/// Parses all sections in the order of their headings; `#` inside code fences and front matter is not a heading.
pub fn sections(text: &str) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut front_matter = text.starts_with("---\n") || text.starts_with("---\r\n");
    let mut last = 0;
    for (index, line) in text.lines().enumerate() {
        let number = index as u32 + 1;
        last = number;
        let trimmed = line.trim_end();
        if front_matter {
            // The first line opens the front matter, the next `---` closes it.
            front_matter = index == 0 || trimmed != "---";
            continue;
        }
        let start = trimmed.trim_start();
        // Inside a fence only the same kind of mark ends it.
        if let Some(mark) = fence {
            if start.starts_with(mark) {
                fence = None;
            }
            continue;
        }
        fence = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        if fence.is_none()
            && let Some((rank, title)) = heading(trimmed)
        {
            close(&mut found, rank, number - 1);
            // The end is not known yet; the next heading of the same or a higher rank sets it.
            found.push(Section { title, rank, line: number, end_line: u32::MAX });
        }
    }
    // Rank 1 closes every section that is still open.
    close(&mut found, 1, last);
    found
}

fn heading(line: &str) -> Option<(u8, String)> {
    let rank = line.bytes().take_while(|b| *b == b'#').count();
    let rest = line.get(rank..)?;
    if !(1..=6).contains(&rank) || !rest.starts_with([' ', '\t']) {
        return None;
    }
    // Markdown allows closing marks: `## Title ##`.
    let title = rest.trim().trim_end_matches('#').trim();
    (!title.is_empty()).then(|| (rank as u8, title.to_string()))
}

fn close(found: &mut [Section], rank: u8, end_line: u32) {
    for open in found.iter_mut().filter(|s| s.end_line == u32::MAX && s.rank >= rank) {
        open.end_line = end_line;
    }
}

/// Finds the section with this title, the first if there are several.
pub fn find_section(text: &str, title: &str) -> Option<Section> {
    let all = sections(text);
    titled(&all, title).next().cloned()
}

/// Finds the sections with this title. Case, `#` and markup do not matter, and a number before it only distinguishes titles
/// that would be the same without it.
pub fn titled<'s>(sections: &'s [Section], title: &str) -> impl Iterator<Item = &'s Section> {
    let wanted = heading_key(title.trim().trim_start_matches('#'));
    // Numbers count only if a section matches with its number.
    let numbered = sections.iter().any(|section| heading_key(&section.title) == wanted);
    let key = move |title: &str| {
        let key = heading_key(title);
        if numbered { key } else { unnumbered(&key).to_string() }
    };
    let wanted = if numbered { wanted } else { unnumbered(&wanted).to_string() };
    sections.iter().filter(move |section| !wanted.is_empty() && key(&section.title) == wanted)
}

/// Strips the markup of a heading: `**Goals** and [scope](#s):` becomes `goals and scope`.
fn heading_key(title: &str) -> String {
    let mut out = String::new();
    let mut rest = title;
    // Links keep their text and lose their target; the brackets are removed below.
    while let Some(open) = rest.find("](") {
        let Some(close) = rest[open..].find(')') else { break };
        out.push_str(&rest[..open]);
        rest = &rest[open + close + 1..];
    }
    out.push_str(rest);
    // An explicit anchor such as `{#limits}` is not part of the title.
    let anchor = out.rfind("{#").filter(|_| out.trim_end().ends_with('}'));
    out.truncate(anchor.unwrap_or(out.len()));
    out.retain(|c| !matches!(c, '*' | '_' | '`' | '[' | ']'));
    let key: String = fold(&out).chars().map(plain_char).collect();
    key.trim_end_matches([':', '.', ' ']).to_string()
}

/// Strips a number in front: `2.1 goals`, `2) goals`, `§ 2 goals` become `goals`. A number alone stays.
fn unnumbered(key: &str) -> &str {
    let rest =
        key.trim_start_matches(['§', ' ']).trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let counted = rest.len() < key.len();
    let rest = rest.trim_start_matches([')', ':', '-', ' ']);
    if counted && !rest.is_empty() { rest } else { key }
}

/// Replaces typographic quotes and dashes by the ones on a keyboard.
pub fn plain_char(c: char) -> char {
    match c {
        '‘' | '’' | '‚' | '‛' | '′' => '\'',
        '“' | '”' | '„' | '‟' | '″' | '«' | '»' => '"',
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' => '-',
        other => other,
    }
}

/// Returns the title of the innermost section around a line.
pub fn section_at(sections: &[Section], line: u32) -> &str {
    let around = sections.iter().filter(|section| section.contains(line));
    // Of nested sections the innermost one starts last.
    around.max_by_key(|section| section.line).map_or("", |section| section.title.as_str())
}

/// Folds white space to single blanks and letters to lower case.
pub fn fold(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    out
}

/// Folds a text to one line without control characters, so that untrusted text is safe on a screen or in a list.
pub fn fold_line(text: &str) -> String {
    let words =
        text.split_whitespace().map(|word| word.chars().filter(|c| !c.is_control()).collect::<String>());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns the first `limit` characters, with an ellipsis if something was cut off.
pub fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_string(),
        Some((at, _)) => {
            let mut out = text[..at].trim_end().to_string();
            out.push('…');
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "---\ntitle: x\n# no heading\n---\n# One\nintro\n## Two ##\nbody\n```\n# code\n```\n## Three\nend\n";

    #[test]
    fn sections_cover_their_lines_and_skip_code_and_front_matter() {
        let found: Vec<_> =
            sections(TEXT).into_iter().map(|s| (s.title, s.rank, s.line, s.end_line)).collect();
        assert_eq!(
            found,
            [("One".into(), 1, 5, 13), ("Two".to_string(), 2, 7, 11), ("Three".to_string(), 2, 12, 13)]
        );
    }

    #[test]
    fn the_innermost_section_names_a_line() {
        let all = sections(TEXT);
        assert_eq!(section_at(&all, 6), "One");
        assert_eq!(section_at(&all, 10), "Two");
        assert_eq!(section_at(&all, 2), "");
    }

    #[test]
    fn a_section_is_found_as_people_write_it() {
        assert_eq!(find_section(TEXT, "##  two").map(|s| s.line), Some(7));
        assert_eq!(find_section(TEXT, "four"), None);
        assert_eq!(find_section(TEXT, ""), None);
    }

    #[test]
    fn numbers_and_markup_of_a_heading_matter_only_where_they_tell_two_apart() {
        let text =
            "# 1. **Goals** & [Scope](#x)\n## 2.1 Limits: {#limits}\n## 3 Risks\n## 4 Risks\n## 2026\n";
        let line = |title: &str| find_section(text, title).map(|section| section.line);
        assert_eq!(
            (line("goals & scope"), line("# Goals & Scope"), line("7. goals & `scope`")),
            (Some(1), Some(1), Some(1))
        );
        assert_eq!((line("limits"), line("Limits:"), line("2.1 Limits")), (Some(2), Some(2), Some(2)));
        assert_eq!((line("Risks"), line("4 risks"), line("5 risks")), (Some(3), Some(4), Some(3)));
        assert_eq!((line("2026"), line("2027")), (Some(5), None));
        assert_eq!(titled(&sections(text), "risks").count(), 2);
    }

    #[test]
    fn a_line_from_a_stranger_cannot_steer_a_terminal() {
        assert_eq!(fold_line("a\x1b]0;x\x07 b\r\n\tc\u{9b}31m"), "a]0;x b c31m");
    }

    #[test]
    fn cutting_keeps_whole_characters() {
        assert_eq!(cut("äöüß", 2), "äö…");
        assert_eq!(cut("äö", 2), "äö");
    }
}
