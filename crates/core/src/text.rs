//! A text as lines and sections: what grounding, dealing and trackers need to know of Markdown, and no more.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

/// A heading with the lines it covers, down to the next heading of the same or a higher rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub title: String,
    /// 1 for `#`, 2 for `##`, …
    pub rank: u8,
    /// The heading's own line, from 1.
    pub line: u32,
    pub end_line: u32,
}

impl Section {
    pub fn contains(&self, line: u32) -> bool {
        (self.line..=self.end_line).contains(&line)
    }
}

/// All sections in the order of their headings; `#` inside code fences and front matter is not a heading.
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
            front_matter = index == 0 || trimmed != "---";
            continue;
        }
        let start = trimmed.trim_start();
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
            found.push(Section { title, rank, line: number, end_line: u32::MAX });
        }
    }
    close(&mut found, 1, last);
    found
}

fn heading(line: &str) -> Option<(u8, String)> {
    let rank = line.bytes().take_while(|b| *b == b'#').count();
    let rest = line.get(rank..)?;
    if !(1..=6).contains(&rank) || !rest.starts_with([' ', '\t']) {
        return None;
    }
    let title = rest.trim().trim_end_matches('#').trim();
    (!title.is_empty()).then(|| (rank as u8, title.to_string()))
}

fn close(found: &mut [Section], rank: u8, end_line: u32) {
    for open in found.iter_mut().filter(|s| s.end_line == u32::MAX && s.rank >= rank) {
        open.end_line = end_line;
    }
}

/// The section with this title (case and `#` do not matter), the first if there are several.
pub fn find_section(text: &str, title: &str) -> Option<Section> {
    let wanted = fold(title.trim_start_matches('#'));
    sections(text).into_iter().find(|section| fold(&section.title) == wanted)
}

/// The title of the innermost section around a line.
pub fn section_at(sections: &[Section], line: u32) -> &str {
    let around = sections.iter().filter(|section| section.contains(line));
    around.max_by_key(|section| section.line).map_or("", |section| section.title.as_str())
}

/// White space folded to single blanks, in lower case.
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

/// One line without control characters: what may stand on a screen or in a list, whoever wrote it.
pub fn fold_line(text: &str) -> String {
    let words =
        text.split_whitespace().map(|word| word.chars().filter(|c| !c.is_control()).collect::<String>());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The first `limit` characters, marked when something was cut.
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
