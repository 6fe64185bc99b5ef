//! A Markdown text as BMAD's files use it: lines with their positions, front matter, headings, sections. Text inside a code
//! block or a comment means nothing, even if it looks like a heading or a list.
//!
//! Every line knows its bytes, so that one can be replaced while the others stay as they are. No tree is built: BMAD's own
//! readers work line by line, and so do the users and agents who write these files.

use std::ops::Range;

/// A text split into lines.
#[derive(Clone, Debug)]
pub struct MarkdownPage<'t> {
    pub text: &'t str,
    pub lines: Vec<MarkdownLine<'t>>,
    /// The YAML between `---` and `---` at the top, as a byte range of the text; `None` if there is no front matter.
    pub front_range: Option<Range<usize>>,
    /// The line of a code fence that is never closed: everything below it counts as code.
    pub open_fence_line: Option<usize>,
}

/// One line without its line ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkdownLine<'t> {
    /// The line number in the file, from 1.
    pub number: usize,
    /// The offset of the line's first byte.
    pub start_offset: usize,
    pub text: &'t str,
    pub kind: MarkdownLineKind,
}

/// What a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkdownLineKind {
    /// Front matter, including its `---` marks.
    FrontMatter,
    /// A code block, including its fences.
    Code,
    /// A line that lies entirely inside `<!-- … -->`. A comment that is never closed is not a comment, and neither is one in
    /// inline code.
    Comment,
    Prose,
}

/// A heading and the lines under it, up to the next heading of its level or above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownSection<'t> {
    pub level: usize,
    pub title: &'t str,
    /// The heading's index in [`MarkdownPage::lines`].
    pub heading_index: usize,
    /// The indexes of the lines under the heading, deeper headings included.
    pub line_range: Range<usize>,
}

impl<'t> MarkdownLine<'t> {
    /// The level and title, if the line is a heading.
    pub fn heading(&self) -> Option<(usize, &'t str)> {
        if self.kind != MarkdownLineKind::Prose {
            return None;
        }
        let level = self.text.bytes().take_while(|byte| *byte == b'#').count();
        // `#x` and `####### x` are not headings: Markdown wants a space behind the marks and knows six levels.
        let title = self.text.get(level..)?;
        let is_heading = (1..=6).contains(&level) && (title.is_empty() || title.starts_with([' ', '\t']));
        is_heading.then(|| (level, title.trim().trim_end_matches('#').trim_end()))
    }

    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    pub fn is_prose(&self) -> bool {
        self.kind == MarkdownLineKind::Prose
    }
}

impl<'t> MarkdownPage<'t> {
    pub fn parse(page_text: &'t str) -> MarkdownPage<'t> {
        let mut lines = split_lines(page_text);
        let front_range = mark_front_matter(page_text, &mut lines);
        let open_fence_line = mark_code_and_comments(&mut lines);
        MarkdownPage { text: page_text, lines, front_range, open_fence_line }
    }

    /// The YAML of the front matter; `None` if there is no front matter.
    pub fn front_matter(&self) -> Option<&'t str> {
        self.text.get(self.front_range.clone()?)
    }

    /// All sections in their order; a section comes before the sections inside it.
    pub fn sections(&self) -> Vec<MarkdownSection<'t>> {
        let headings: Vec<(usize, usize, &'t str)> = self
            .lines
            .iter()
            .enumerate()
            .filter_map(|(index, line)| line.heading().map(|(level, title)| (index, level, title)))
            .collect();
        // Walking from the last heading to the first, this holds where the next heading of each level or above is.
        let mut next_boundary = [self.lines.len(); 7];
        let mut sections: Vec<MarkdownSection<'t>> = Vec::with_capacity(headings.len());
        for (index, level, title) in headings.into_iter().rev() {
            sections.push(MarkdownSection {
                level,
                title,
                heading_index: index,
                line_range: index + 1..next_boundary[level],
            });
            // A heading ends every open section of its own level and of all deeper levels.
            next_boundary[level..].fill(index);
        }
        sections.reverse();
        sections
    }

    /// The first section whose title is accepted, by its normalized words ([`normalize_title`]).
    pub fn find_section(&self, is_wanted_title: impl Fn(&str) -> bool) -> Option<MarkdownSection<'t>> {
        self.sections().into_iter().find(|section| is_wanted_title(&normalize_title(section.title)))
    }

    /// The line ending of this text, taken from its first line.
    pub fn line_ending(&self) -> &'static str {
        let first_newline = self.text.find('\n');
        if first_newline.is_some_and(|newline_offset| self.text[..newline_offset].ends_with('\r')) {
            "\r\n"
        } else {
            "\n"
        }
    }
}

/// A title's words in lower case, without numbering, emphasis marks and a colon at the end.
pub fn normalize_title(title: &str) -> String {
    const TITLE_MARKS: [char; 4] = ['*', '_', ':', ' '];
    let title = title.trim().trim_matches(TITLE_MARKS);
    // `3. Tasks` loses its number; `1.2 x` keeps it, since that number is part of the title.
    let after_digits = title.trim_start_matches(|character: char| character.is_ascii_digit());
    let after_number = after_digits.strip_prefix(['.', ')']).filter(|_| after_digits.len() < title.len());
    let unnumbered =
        after_number.filter(|after_number| !after_number.starts_with(|character: char| character.is_ascii_digit()));
    unnumbered.unwrap_or(title).trim_matches(TITLE_MARKS).to_lowercase()
}

/// The text with these byte ranges replaced. Edits must be in order and must not overlap; an edit that does is left out.
#[must_use]
pub fn apply_edits(page_text: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut edited_text =
        String::with_capacity(page_text.len() + edits.iter().map(|(_, replacement)| replacement.len()).sum::<usize>());
    let mut copied_until = 0;
    for (range, replacement) in edits {
        if range.start < copied_until || range.end < range.start {
            continue;
        }
        // A range that does not lie on character boundaries is left out as well: it came from another text.
        let (Some(unchanged_text), Some(_)) = (page_text.get(copied_until..range.start), page_text.get(range.clone()))
        else {
            continue;
        };
        edited_text.push_str(unchanged_text);
        edited_text.push_str(replacement);
        copied_until = range.end;
    }
    edited_text.push_str(&page_text[copied_until..]);
    edited_text
}

/// Splits a text as `str::lines` does; a byte order mark is left out of the first line.
fn split_lines(page_text: &str) -> Vec<MarkdownLine<'_>> {
    let mut lines = Vec::new();
    let mut start_offset = if page_text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    for (index, full_line) in page_text[start_offset..].split_inclusive('\n').enumerate() {
        let line = full_line.strip_suffix('\n').map_or(full_line, |line| line.strip_suffix('\r').unwrap_or(line));
        lines.push(MarkdownLine { number: index + 1, start_offset, text: line, kind: MarkdownLineKind::Prose });
        start_offset += full_line.len();
    }
    lines
}

/// Marks the front matter and returns its byte range. Only a mark at the very start of a line closes it: one inside a value
/// does not.
fn mark_front_matter(page_text: &str, lines: &mut [MarkdownLine<'_>]) -> Option<Range<usize>> {
    let is_mark = |line: &MarkdownLine<'_>| line.text.trim_end() == "---";
    lines.first().filter(|line| is_mark(line))?;
    let closing_index = 1 + lines.iter().skip(1).position(is_mark)?;
    let range = lines[1].start_offset..lines[closing_index].start_offset;
    lines[..=closing_index].iter_mut().for_each(|line| line.kind = MarkdownLineKind::FrontMatter);
    page_text.get(range.clone()).map(|_| range)
}

/// An opened code fence: its character and how many of them.
type MarkdownFence = (u8, usize);

/// Marks the lines of code blocks and comments. Both span lines, so one pass keeps what is open. Returns the line of a fence
/// that is never closed.
fn mark_code_and_comments(lines: &mut [MarkdownLine<'_>]) -> Option<usize> {
    let mut open_line = 0;
    let mut open_fence: Option<MarkdownFence> = None;
    let mut in_comment = false;
    // A comment that opens behind the last `-->` is never closed, so it is not a comment.
    let closing_line = lines.iter().rfind(|line| line.kind == MarkdownLineKind::Prose && line.text.contains("-->"));
    let last_comment_end = closing_line.map_or(0, |line| line.number);
    for line in lines.iter_mut().filter(|line| line.kind == MarkdownLineKind::Prose) {
        if in_comment {
            // A comment hides fences, so nothing but its end counts inside it.
            line.kind = MarkdownLineKind::Comment;
            if let Some((_, after_comment)) = line.text.split_once("-->") {
                // The same line may open the next comment behind the end of this one.
                in_comment = line.number < last_comment_end && find_open_comment(after_comment).is_some();
            }
            continue;
        }
        let line_fence = parse_fence(line.text);
        match (open_fence, line_fence) {
            (None, None) => {
                // A line is a comment only if nothing but the comment stands on it; text before `<!--` stays prose.
                let trimmed = line.text.trim();
                let comment_start = find_open_comment(trimmed);
                in_comment = line.number < last_comment_end && comment_start.is_some();
                let is_closed = comment_start.is_none() && trimmed.ends_with("-->");
                let is_whole_comment = trimmed.starts_with("<!--") && (in_comment || is_closed);
                line.kind = if is_whole_comment { MarkdownLineKind::Comment } else { MarkdownLineKind::Prose };
            }
            (None, Some((new_fence, _))) => {
                open_fence = Some(new_fence);
                open_line = line.number;
                line.kind = MarkdownLineKind::Code;
            }
            (Some((fence_byte, fence_length)), line_fence) => {
                line.kind = MarkdownLineKind::Code;
                // A fence closes with at least as many of the same character and nothing behind them.
                if line_fence.is_some_and(|((own_byte, own_length), is_bare)| {
                    is_bare && own_byte == fence_byte && own_length >= fence_length
                }) {
                    open_fence = None;
                }
            }
        }
    }
    open_fence.map(|_| open_line)
}

/// The offset of a comment that the line opens and does not close.
fn find_open_comment(line: &str) -> Option<usize> {
    let mut comment_start = line.find("<!--")?;
    let backtick_runs = find_backtick_runs(line);
    // Comments and inline code hide each other: whichever begins first wins, so both are followed from left to right.
    let (mut scanned_until, mut index) = (0, 0);
    loop {
        if comment_start < scanned_until {
            comment_start = scanned_until + line[scanned_until..].find("<!--")?;
        }
        match backtick_runs.get(index).filter(|backtick_run| backtick_run.start < comment_start) {
            // Backticks inside a comment open no inline code.
            Some(backtick_run) if backtick_run.start < scanned_until => index += 1,
            Some(backtick_run) => match backtick_run
                .closing_run
                .and_then(|closing_index| Some((closing_index, backtick_runs.get(closing_index)?)))
            {
                Some((closing_index, closing_run)) => (scanned_until, index) = (closing_run.end, closing_index + 1),
                None => index += 1,
            },
            // `<!-->` is a complete comment, so the search for the end begins inside the opening mark.
            None => match line[comment_start + 2..].find("-->") {
                Some(closing_offset) => scanned_until = comment_start + 2 + closing_offset + 3,
                None => return Some(comment_start),
            },
        }
    }
}

/// The text with every `<!--` escaped that would open a comment; inline code opens none anyway.
pub(crate) fn escape_comments(line: &str) -> String {
    let mut edits = Vec::new();
    let mut code_ranges = find_code_spans(line).into_iter().peekable();
    for (comment_start, comment_mark) in line.match_indices("<!--") {
        while code_ranges.next_if(|span| span.end <= comment_start).is_some() {}
        if code_ranges.peek().is_none_or(|span| span.start > comment_start) {
            edits.push((comment_start..comment_start + comment_mark.len(), "&lt;!--".to_string()));
        }
    }
    apply_edits(line, &edits)
}

/// The byte ranges of inline code, backticks included.
fn find_code_spans(line: &str) -> Vec<Range<usize>> {
    let backtick_runs = find_backtick_runs(line);
    let mut spans = Vec::new();
    let mut index = 0;
    while let Some(backtick_run) = backtick_runs.get(index) {
        match backtick_run
            .closing_run
            .and_then(|closing_index| Some((closing_index, backtick_runs.get(closing_index)?)))
        {
            Some((closing_index, closing_run)) => {
                spans.push(backtick_run.start..closing_run.end);
                index = closing_index + 1;
            }
            None => index += 1,
        }
    }
    spans
}

/// A run of backticks.
struct BacktickRun {
    start: usize,
    end: usize,
    /// The index of the next run of the same length, which closes the inline code that this run opens.
    closing_run: Option<usize>,
}

/// Finds the runs of backticks and which run closes which, in one pass: a line may consist of backticks.
fn find_backtick_runs(line: &str) -> Vec<BacktickRun> {
    let mut runs: Vec<BacktickRun> = Vec::new();
    for (backtick_offset, _) in line.match_indices('`') {
        match runs.last_mut().filter(|backtick_run| backtick_run.end == backtick_offset) {
            Some(backtick_run) => backtick_run.end += 1,
            // A backtick behind a backslash is an ordinary character.
            None if line[..backtick_offset].ends_with('\\') => {}
            None => runs.push(BacktickRun { start: backtick_offset, end: backtick_offset + 1, closing_run: None }),
        }
    }
    // Walking from the last run to the first, this holds where the next run of each length is.
    let mut next_of_length = std::collections::HashMap::new();
    for (index, backtick_run) in runs.iter_mut().enumerate().rev() {
        backtick_run.closing_run = next_of_length.insert(backtick_run.end - backtick_run.start, index);
    }
    runs
}

/// The fence that a line consists of, and whether nothing follows it.
fn parse_fence(line: &str) -> Option<(MarkdownFence, bool)> {
    let line = line.trim_start();
    let fence_byte = *line.as_bytes().first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let fence_length = line.bytes().take_while(|byte| *byte == fence_byte).count();
    let info_string = &line[fence_length..];
    // A line such as ```` ```x``` ```` is inline code, not a fence.
    (fence_length >= 3 && !(fence_byte == b'`' && info_string.contains('`')))
        .then(|| ((fence_byte, fence_length), info_string.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn render_line_kinds(page_text: &str) -> String {
        let markdown = MarkdownPage::parse(page_text);
        let line_kinds = markdown.lines.iter().map(|line| match line.kind {
            MarkdownLineKind::FrontMatter => 'f',
            MarkdownLineKind::Code => 'c',
            MarkdownLineKind::Comment => '-',
            MarkdownLineKind::Prose if line.heading().is_some() => '#',
            MarkdownLineKind::Prose => '.',
        });
        line_kinds.collect()
    }

    #[test]
    fn code_comments_and_front_matter_are_not_prose() {
        for (page_text, kinds) in [
            ("---\na: 1\n---\n# x\n", "fff#"),
            ("---\na: |\n  ---\n  # no\nb: '--- x'\n---\n# x\n", "ffffff#"),
            ("---\nnever closed\n# x\n", "..#"),
            ("\u{feff}---\r\na: 1\r\n---\r\n# x\r\n", "fff#"),
            ("# a\n```\n# no\n````\n# b\n", "#ccc#"),
            ("~~~md\n```\n# no\n```\n~~~\n# yes", "ccccc#"),
            ("````\n```\n# no\n```\n````\n#", "ccccc#"),
            ("```x``` in line\n# yes\n", ".#"),
            ("<!-- one -->\n# a\n<!-- two\n# no\n-->\n# b\ntext <!-- c\n# no\n--> d\n# e", "-#---#.--#"),
            ("a `<!--` b\n# yes\n-->\n", ".#."),
            ("``a ` <!-- b`` <!-- `c\n# no\n-->\n# yes", ".--#"),
            ("\\`<!-- `\n# no\n-->\n", ".--"),
            ("` <!--\n# no\n-->\n", ".--"),
            ("<!-- ` --> `<!--`\n# yes\n-->", ".#."),
            ("<!-- never closed\n# yes\n", ".#"),
            ("a <!--\n# no\n--> b <!-- never closed\n# yes\n", ".--#"),
            ("<!-- a\n--> <!-- b\n# no\n-->\n# yes\n", "----#"),
            ("<!-->\n# yes\n-->\n", "-#."),
            ("#no\n####### no\n# yes #\n", "..#"),
        ] {
            assert_eq!(render_line_kinds(page_text), kinds, "{page_text:?}");
        }
    }

    #[test]
    fn sections_contain_deeper_sections() {
        let markdown = MarkdownPage::parse("# A\na\n## B\nb\n### C\n## D\n# E\ne\n");
        let rendered: Vec<String> = markdown
            .sections()
            .iter()
            .map(|section| format!("{}{} {:?}", section.level, section.title, section.line_range))
            .collect();
        assert_eq!(rendered, ["1A 1..6", "2B 3..5", "3C 5..5", "2D 6..6", "1E 7..8"]);
    }

    #[test]
    fn titles_are_compared_by_their_normalized_words() {
        for (title, words) in [
            ("3. **Tasks / Subtasks:**", "tasks / subtasks"),
            ("2FA", "2fa"),
            ("1.2 x", "1.2 x"),
            (" File List ", "file list"),
        ] {
            assert_eq!(normalize_title(title), words);
        }
    }

    #[test]
    fn ten_megabytes_of_backticks_are_scanned_in_one_pass() {
        let runs: String = (1..4_000).map(|length| format!("{} ", "`".repeat(length))).collect();
        let page_text = format!("{runs}<!--\n{}\n# x\n", "<!-- `".repeat(500_000));
        assert_eq!(render_line_kinds(&page_text), "..#");
    }

    proptest! {
        #[test]
        fn every_byte_stands_in_one_line(text in "(?s)(\u{feff})?([-# `~a<!>\r\n]|---\n|```\n|<!--|-->){0,40}") {
            let page = MarkdownPage::parse(&text);
            for (index, line) in page.lines.iter().enumerate() {
                let end = line.start_offset + line.text.len();
                prop_assert_eq!(&text[line.start_offset..end], line.text);
                prop_assert_eq!(line.number, index + 1);
                prop_assert!(page.lines.get(index + 1).is_none_or(|next| next.start_offset >= end));
            }
            let joined: usize = page.lines.iter().map(|line| line.text.trim_end_matches('\r').len()).sum();
            prop_assert!(joined <= text.len());
            prop_assert_eq!(page.lines.len(), text.trim_start_matches('\u{feff}').lines().count());
            let _ = page.sections();
        }
    }
}
