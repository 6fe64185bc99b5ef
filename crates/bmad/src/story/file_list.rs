//! The list of files that a story changed: `File List` of BMAD's template, and the other headings that agents write for it.
//!
//! A line has the paths first and an explanation behind them. Groups that say that nothing was done to their files, or that it
//! will be done later, do not count.

use super::LocatedText;
use crate::markdown::{MarkdownLine, MarkdownLineKind, MarkdownPage, MarkdownSection, normalize_title};

/// The section `File List`, at any place.
pub(super) fn find_file_section<'t>(markdown: &MarkdownPage<'t>) -> Option<MarkdownSection<'t>> {
    markdown.find_section(is_file_list_title)
}

fn is_file_list_title(title: &str) -> bool {
    const FILE_LIST_TITLES: [&str; 8] = [
        "file list",
        "文件列表",
        "文件清单",
        "ファイルリスト",
        "liste des fichiers",
        "lista de archivos",
        "dateiliste",
        "список файлов",
    ];
    FILE_LIST_TITLES.iter().any(|list_title| title == *list_title || title.starts_with(&format!("{list_title} ")))
}

/// Whether a title names a record of changed files that is no `File List`.
fn is_record_title(title: &str) -> bool {
    let words: Vec<&str> = title.split(|character: char| !character.is_alphanumeric()).collect();
    let is_about_files = words.contains(&"files") || words.contains(&"file");
    let is_record =
        ["modified", "changed", "created", "added", "touched", "updated"].iter().any(|word| words.contains(word));
    (title == "files" || is_about_files && is_record) && !words.contains(&"to")
}

/// The paths of all lists, each once. In a story whose work is over, a list of what was to be done counts, too.
pub(super) fn read_file_list(markdown: &MarkdownPage<'_>, is_over: bool) -> Vec<LocatedText> {
    let mut listed_files: Vec<LocatedText> = Vec::new();
    let mut seen_paths = std::collections::BTreeSet::new();
    let mut read_until = 0;
    for section in find_list_sections(markdown) {
        // A section inside of another one was read with it.
        if section.heading_index < read_until {
            continue;
        }
        read_until = section.line_range.end;
        for listed_file in read_section(&markdown.lines[section.line_range], is_over) {
            if seen_paths.insert(listed_file.text.clone()) {
                listed_files.push(listed_file);
            }
        }
    }
    listed_files
}

/// The sections that list changed files. What stands in the notes before the work is a plan.
fn find_list_sections<'t>(markdown: &MarkdownPage<'t>) -> Vec<MarkdownSection<'t>> {
    const PLANNING_TITLES: [&str; 6] = ["dev notes", "technical", "design", "architecture", "tasks", "context"];
    let sections = markdown.sections();
    let mut list_sections: Vec<MarkdownSection<'t>> = Vec::new();
    for section in &sections {
        let title = normalize_title(section.title);
        let is_above = |outer: &&MarkdownSection<'_>| {
            outer.heading_index < section.heading_index && outer.line_range.contains(&section.heading_index)
        };
        let outer_titles: Vec<String> =
            sections.iter().filter(is_above).map(|outer| normalize_title(outer.title)).collect();
        let is_in_record = outer_titles.iter().any(|outer_title| outer_title.contains("dev agent record"));
        let is_in_plan = outer_titles
            .iter()
            .any(|outer_title| PLANNING_TITLES.iter().any(|planning_title| outer_title.contains(planning_title)));
        if is_file_list_title(&title) || is_record_title(&title) && (is_in_record || !is_in_plan) {
            list_sections.push(section.clone());
        }
    }
    list_sections
}

/// The paths of one section.
fn read_section(lines: &[MarkdownLine<'_>], is_over: bool) -> Vec<LocatedText> {
    let mut listed_files = Vec::new();
    let mut is_group_skipped = false;
    for line in lines.iter().filter(|line| !line.is_blank()) {
        // In a code block only lines that are paths count.
        if line.kind == MarkdownLineKind::Code {
            let paths = find_paths(strip_list_mark(line.text.trim())).into_iter().filter(|_| !is_group_skipped);
            listed_files.extend(paths.map(|path| LocatedText { text: path.to_string(), line: line.number }));
        }
        if !line.is_prose() {
            continue;
        }
        if let Some((_, title)) = line.heading() {
            is_group_skipped = is_skipped_label(title, is_over);
            continue;
        }
        let (label, item_text) = split_label(line.text);
        if let Some(label) = label {
            let is_skipped = is_skipped_label(label, is_over);
            // A label in front of paths applies to its own line only.
            if item_text.is_empty() {
                is_group_skipped = is_skipped;
                continue;
            }
            if is_skipped {
                continue;
            }
        }
        if !is_group_skipped {
            let paths = find_paths(item_text).into_iter();
            listed_files.extend(paths.map(|path| LocatedText { text: path.to_string(), line: line.number }));
        }
    }
    listed_files
}

/// Splits `**New:** src/a.rs` into its label and the rest. An item that begins with a path has no label.
fn split_label(line_text: &str) -> (Option<&str>, &str) {
    let item_text = strip_list_mark(line_text.trim());
    let is_label_text = |label: &str| !label.contains('`') || label.starts_with("**");
    match item_text.split_once(':') {
        Some((label, rest))
            if is_label_text(label)
                && find_first_path(label).is_none()
                && (rest.is_empty() || rest.starts_with([' ', '*', '_'])) =>
        {
            (Some(label), rest.trim_start_matches(['*', ' ', '\t']).trim_start_matches("_ "))
        }
        _ => (None, item_text),
    }
}

/// Whether a label says that its files were not changed, or not yet.
fn is_skipped_label(label: &str, is_over: bool) -> bool {
    const UNCHANGED_WORDS: [&str; 11] = [
        "verified",
        "verify",
        "untouched",
        "unchanged",
        "not committed",
        "gitignored",
        "already",
        "obsolete",
        "reference",
        "検証済み",
        "no change",
    ];
    const PLANNED_WORDS: [&str; 5] = ["to create", "to modify", "to change", "to be ", "to update"];
    let label = label.to_lowercase();
    // A remark in parentheses is about something else, unless it says that nothing had to be done.
    let (bare_label, remark) = label.split_once('(').unwrap_or((&label, ""));
    let contains_any = |words: &[&str]| words.iter().any(|word| bare_label.contains(word));
    contains_any(&UNCHANGED_WORDS)
        || remark.starts_with("already")
        || remark.starts_with("no change")
        || !is_over && contains_any(&PLANNED_WORDS)
}

/// Whether a line of the list consists of this path only.
pub(super) fn is_only_path(markdown_line: &MarkdownLine<'_>, file_path: &str) -> bool {
    markdown_line.is_prose()
        && strip_list_mark(markdown_line.text.trim()).trim_matches(['*', '`', '"', '\'', ' ']) == file_path
}

/// The first path in a line of the list.
pub(super) fn parse_file_line<'t>(markdown_line: &MarkdownLine<'t>) -> Option<&'t str> {
    if !markdown_line.is_prose() || markdown_line.heading().is_some() {
        return None;
    }
    find_path(markdown_line.text)
}

/// The first path in a line's text.
pub(super) fn find_path(line_text: &str) -> Option<&str> {
    find_paths(split_label(line_text).1).into_iter().next()
}

/// The paths at the start of an item: `` `a.rs` (new) · `b.rs` — both were split ``. What explains them does not count.
fn find_paths(item_text: &str) -> Vec<&str> {
    // Only the first cell of a row names files.
    if let Some(row_text) = item_text.strip_prefix('|') {
        return find_paths(row_text.split('|').next().unwrap_or_default());
    }
    let mut paths = Vec::new();
    for (part_index, part_text) in split_parts(item_text).into_iter().enumerate() {
        let Some(path) = find_first_path(part_text) else {
            // Behind the first part only further paths count.
            if part_index == 0 {
                return paths;
            }
            continue;
        };
        paths.push(path);
    }
    paths
}

/// Splits an item at its separators and leaves out its explanation and what is in parentheses.
fn split_parts(item_text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut part_start, mut depth, mut is_quoted) = (0, 0_u32, false);
    for (index, character) in item_text.char_indices() {
        let rest = &item_text[index..];
        match character {
            '`' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            // `(+ tests a.rs, b.rs)` lists more paths.
            '(' | '[' | '{' if !rest.starts_with("(+") => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            // Both names of a renamed file were changed.
            ' ' if [" → ", " -> "]
                .iter()
                .any(|arrow| rest.strip_prefix(arrow).is_some_and(|new_name| find_first_path(new_name).is_some())) =>
            {
                parts.push(&item_text[part_start..index]);
                part_start = index + rest[1..].find(' ').map_or(1, |arrow_length| 1 + arrow_length);
            }
            ' ' if [" — ", " – ", " - ", " -- ", " → ", " -> "].iter().any(|dash| rest.starts_with(dash)) => {
                parts.push(&item_text[part_start..index]);
                return parts;
            }
            ',' | '·' | ';' | '+' | '&' => {
                parts.push(&item_text[part_start..index]);
                part_start = index + character.len_utf8();
            }
            ' ' if rest.starts_with(" and ") => {
                parts.push(&item_text[part_start..index]);
                part_start = index + " and".len();
            }
            _ => {}
        }
    }
    parts.push(&item_text[part_start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// The path at the start of a part, behind the words that say what happened to it.
fn find_first_path(part_text: &str) -> Option<&str> {
    let mut rest = part_text.trim_start_matches(['(', '+', ' ', '\t']);
    // In `(+ co-located `a.test.ts`)` a word stands before the path.
    if part_text.trim_start().starts_with("(+") {
        rest = rest.find('`').map_or(rest, |quote_start| &rest[quote_start..]);
    }
    loop {
        rest = rest.trim_start();
        // A box, or a tag such as `[NEW]`, stands before the path.
        if let Some((content, after_bracket)) = rest.strip_prefix('[').and_then(|text| text.split_once(']')) {
            match after_bracket.strip_prefix('(').and_then(|target| target.split_once(')')) {
                Some((target, _)) => {
                    return Some(content.trim_matches('`'))
                        .filter(|text| looks_like_path(text))
                        .or(Some(target).filter(|target| looks_like_path(target)));
                }
                None => {
                    rest = after_bracket;
                    continue;
                }
            }
        }
        // A path in backticks may contain spaces.
        let unmarked = rest.trim_start_matches(['*', '"', '\'']);
        if let Some((quoted_text, _)) = unmarked.strip_prefix('`').and_then(|text| text.split_once('`')) {
            return Some(strip_lines(quoted_text.trim())).filter(|quoted_path| looks_like_path(quoted_path));
        }
        let word_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let word = trim_word(&rest[..word_end]);
        match word {
            "" if word_end >= rest.len() => return None,
            word if word.is_empty() || is_change_word(word) => rest = &rest[word_end..],
            word => return Some(word).filter(|word| looks_like_path(word)),
        }
    }
}

/// A word without the marks around it. An underscore belongs to the path, unless there is one on both sides.
fn trim_word(word: &str) -> &str {
    const AROUND: [char; 9] = ['*', ',', ';', ':', '(', ')', ']', '"', '\''];
    let word = word.trim_matches(AROUND).trim_end_matches('.').trim_matches(AROUND);
    strip_lines(word.strip_prefix('_').and_then(|inner| inner.strip_suffix('_')).unwrap_or(word))
}

/// A path without the lines behind it: `src/a.rs:10-20`.
fn strip_lines(path: &str) -> &str {
    let is_lines = |text: &str| {
        let is_line_char = |character: char| character.is_ascii_digit() || matches!(character, '-' | '–' | ',' | 'L');
        text.starts_with(|character: char| character.is_ascii_digit() || character == 'L')
            && text.chars().all(is_line_char)
    };
    path.rsplit_once(':').filter(|(_, lines)| is_lines(lines)).map_or(path, |(path, _)| path)
}

fn is_change_word(candidate: &str) -> bool {
    const CHANGE_WORDS: [&str; 18] = [
        "new", "added", "add", "created", "create", "modified", "modify", "updated", "update", "deleted", "removed",
        "renamed", "edited", "m", "a", "d", "r", "file",
    ];
    CHANGE_WORDS.iter().any(|change_word| candidate.eq_ignore_ascii_case(change_word))
        // Marks such as `✅` and `~`.
        || !candidate.chars().any(char::is_alphanumeric)
}

/// The text without its bullet or number.
fn strip_list_mark(line_text: &str) -> &str {
    let after_digits = line_text.trim_start_matches(|character: char| character.is_ascii_digit());
    let list_marks: &[char] = if after_digits.len() < line_text.len() { &['.', ')'] } else { &['-', '*', '+', '•'] };
    let item_text = after_digits.strip_prefix(list_marks).filter(|item_text| item_text.starts_with([' ', '\t']));
    item_text.unwrap_or(line_text).trim_start()
}

/// Whether a text has a directory or an extension, and is neither an address, a package nor the last word of a sentence.
pub(super) fn looks_like_path(candidate: &str) -> bool {
    let file_name = candidate.rsplit('/').next().unwrap_or(candidate);
    // An extension is short and in small letters, so that neither two sentences without a space between them nor
    // `Type.Member` are paths.
    let has_extension = file_name.rsplit_once('.').is_some_and(|(stem, extension)| {
        let is_extension_char = |character: char| {
            character.is_ascii_lowercase() || character.is_ascii_digit() || matches!(character, '_' | '-')
        };
        (1..=12).contains(&extension.len())
            && (extension.chars().all(is_extension_char)
                || extension.chars().all(|character| character.is_ascii_uppercase()))
            && !stem.ends_with(' ')
    });
    let has_letter = candidate.chars().any(char::is_alphanumeric);
    let has_directory = candidate.contains('/') && !candidate.contains(' ') && !candidate.starts_with('@');
    has_letter
        && !candidate.eq_ignore_ascii_case("n/a")
        && !candidate.contains("://")
        && !candidate.contains(['(', '=', '<', ';'])
        && (has_extension || has_directory || FILES_WITHOUT_EXTENSION.contains(&candidate))
}

/// Names of files that have no extension.
const FILES_WITHOUT_EXTENSION: [&str; 20] = [
    "Makefile",
    "GNUmakefile",
    "makefile",
    "Dockerfile",
    "Containerfile",
    "Procfile",
    "Gemfile",
    "Rakefile",
    "Justfile",
    "justfile",
    "Jenkinsfile",
    "Vagrantfile",
    "Brewfile",
    "Podfile",
    "Fastfile",
    "Caddyfile",
    "LICENSE",
    "NOTICE",
    "CODEOWNERS",
    "CHANGELOG",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn listed_paths(section: &str) -> Vec<String> {
        let story_text = format!("# S\n\n## Dev Agent Record\n\n### File List\n\n{section}\n");
        read_file_list(&MarkdownPage::parse(&story_text), false).into_iter().map(|file| file.text).collect()
    }

    #[test]
    fn paths_are_read_as_people_write_them() {
        for (line, expected) in [
            ("- _bmad-output/x.md", vec!["_bmad-output/x.md"]),
            ("- src/lib.rs (registered `x`, see `y.rs`)", vec!["src/lib.rs"]),
            ("- [a.rs](../a.rs)", vec!["a.rs"]),
            ("- [the module](../a.rs) - new", vec!["../a.rs"]),
            ("- M src/d.rs", vec!["src/d.rs"]),
            ("- [x] src/c.rs", vec!["src/c.rs"]),
            ("- **New:** `src/e.rs` — like `f.rs`", vec!["src/e.rs"]),
            ("- `a.ts` (new) · `b.ts` (modified), c.ts and d.ts", vec!["a.ts", "b.ts", "c.ts", "d.ts"]),
            ("1. **src/g.py** (lines 1-9)\n   - Added `LIMIT` to `reset()`", vec!["src/g.py"]),
            ("| File | Change |\n|---|---|\n| `h.rs` | new |\n| i.rs | old |", vec!["h.rs", "i.rs"]),
            ("- docs/s.yaml (MODIFIED - status: done)", vec!["docs/s.yaml"]),
            ("- `@scope/package` was installed", vec![]),
            ("None", vec![]),
            ("- N/A", vec![]),
            ("- src/a.rs → src/b.rs (renamed)", vec!["src/a.rs", "src/b.rs"]),
            ("- src/a.rs -> the old form stays", vec!["src/a.rs"]),
            ("- src/m.rs:10-20", vec!["src/m.rs"]),
            ("- `src/n.rs:7` (new)", vec!["src/n.rs"]),
            ("```\nsrc/o.rs\nM src/p.rs\n```", vec!["src/o.rs", "src/p.rs"]),
        ] {
            assert_eq!(listed_paths(line), expected, "{line}");
        }
    }

    #[test]
    fn groups_that_changed_nothing_do_not_count() {
        let section = "**New:**\n- a.rs\n\n**Files verified:**\n- b.rs\n\nModified (verified in Task 8):\n- c.rs\n\n\
                       **Not committed (gitignored):** `dist/`\n\nFiles to modify: `d.rs`";
        assert_eq!(listed_paths(section), ["a.rs", "c.rs"]);
    }

    #[test]
    fn records_under_other_headings_count_and_plans_do_not() {
        let story_text = "# S\n## Dev Notes\n### Files to Create\n- a.rs\n### Files Changed\n- b.rs\n## Dev Agent Record\n\
                          ### Files Modified\n- c.rs\n## Files Created\n- d.rs\n";
        let files = read_file_list(&MarkdownPage::parse(story_text), false);
        assert_eq!(files.iter().map(|file| file.text.as_str()).collect::<Vec<_>>(), ["c.rs", "d.rs"]);
    }
}
