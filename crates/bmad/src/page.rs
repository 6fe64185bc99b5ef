//! A Markdown text as BMAD's files use it: lines with their positions, front matter, headings, sections. Text inside a code
//! block or a comment means nothing, even if it looks like a heading or a list.
//!
//! Every line knows its bytes, so that one can be replaced while the others stay as they are. No tree is built: BMAD's own
//! readers work line by line, and so do the users and agents who write these files.

use std::ops::Range;

/// A text split into lines.
#[derive(Clone, Debug)]
pub struct Page<'t> {
    pub text: &'t str,
    pub lines: Vec<Line<'t>>,
    /// The YAML between `---` and `---` at the top, as a byte range of the text; `None` if there is no front matter.
    pub front: Option<Range<usize>>,
}

/// One line without its line ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'t> {
    /// The line number in the file, from 1.
    pub number: usize,
    /// The offset of the line's first byte.
    pub start: usize,
    pub text: &'t str,
    pub kind: Kind,
}

/// What a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Front matter, including its `---` marks.
    Front,
    /// A code block, including its fences.
    Code,
    /// A line that lies entirely inside `<!-- … -->`. A comment that is never closed is not a comment, and neither is one in
    /// inline code.
    Comment,
    Prose,
}

/// A heading and the lines under it, up to the next heading of its level or above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'t> {
    pub level: usize,
    pub title: &'t str,
    /// The heading's index in [`MarkdownPage::lines`].
    pub heading: usize,
    /// The indexes of the lines under the heading, deeper headings included.
    pub lines: Range<usize>,
}

impl<'t> Line<'t> {
    /// The level and title, if the line is a heading.
    pub fn heading(&self) -> Option<(usize, &'t str)> {
        if self.kind != Kind::Prose {
            return None;
        }
        let level = self.text.bytes().take_while(|byte| *byte == b'#').count();
        // `#x` and `####### x` are not headings: Markdown wants a space behind the marks and knows six levels.
        let title = self.text.get(level..)?;
        let is_one = (1..=6).contains(&level) && (title.is_empty() || title.starts_with([' ', '\t']));
        is_one.then(|| (level, title.trim().trim_end_matches('#').trim_end()))
    }

    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    pub fn is_prose(&self) -> bool {
        self.kind == Kind::Prose
    }
}

impl<'t> Page<'t> {
    pub fn of(text: &'t str) -> Page<'t> {
        let mut lines = cut(text);
        let front = mark_front(text, &mut lines);
        mark_code_and_comments(&mut lines);
        Page { text, lines, front }
    }

    /// The YAML of the front matter; `None` if there is no front matter.
    pub fn front_matter(&self) -> Option<&'t str> {
        self.text.get(self.front.clone()?)
    }

    /// All sections in their order; a section comes before the sections inside it.
    pub fn sections(&self) -> Vec<Section<'t>> {
        let headings: Vec<(usize, usize, &'t str)> = self
            .lines
            .iter()
            .enumerate()
            .filter_map(|(index, line)| line.heading().map(|(level, title)| (index, level, title)))
            .collect();
        // Walking from the last heading to the first, this holds where the next heading of each level or above is.
        let mut next = [self.lines.len(); 7];
        let mut sections: Vec<Section<'t>> = Vec::with_capacity(headings.len());
        for (index, level, title) in headings.into_iter().rev() {
            sections.push(Section { level, title, heading: index, lines: index + 1..next[level] });
            // A heading ends every open section of its own level and of all deeper levels.
            next[level..].fill(index);
        }
        sections.reverse();
        sections
    }

    /// The first section whose title is accepted, by its normalized words ([`normalize_title`]).
    pub fn section(&self, is_meant: impl Fn(&str) -> bool) -> Option<Section<'t>> {
        self.sections().into_iter().find(|section| is_meant(&plain(section.title)))
    }

    /// The line ending of this text, taken from its first line.
    pub fn line_end(&self) -> &'static str {
        let first = self.text.find('\n');
        if first.is_some_and(|at| self.text[..at].ends_with('\r')) { "\r\n" } else { "\n" }
    }
}

/// A title's words in lower case, without numbering, emphasis marks and a colon at the end.
pub fn plain(title: &str) -> String {
    const MARKS: [char; 4] = ['*', '_', ':', ' '];
    let title = title.trim().trim_matches(MARKS);
    // `3. Tasks` loses its number; `1.2 x` keeps it, since that number is part of the title.
    let rest = title.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = rest.strip_prefix(['.', ')']).filter(|_| rest.len() < title.len());
    let unnumbered = numbered.filter(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
    unnumbered.unwrap_or(title).trim_matches(MARKS).to_lowercase()
}

/// The text with these byte ranges replaced. Edits must be in order and must not overlap; an edit that does is left out.
#[must_use]
pub fn spliced(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len() + edits.iter().map(|(_, with)| with.len()).sum::<usize>());
    let mut at = 0;
    for (range, with) in edits {
        if range.start < at || range.end < range.start {
            continue;
        }
        // A range that does not lie on character boundaries is left out as well: it came from another text.
        let (Some(before), Some(_)) = (text.get(at..range.start), text.get(range.clone())) else { continue };
        out.push_str(before);
        out.push_str(with);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Splits a text as `str::lines` does; a byte order mark is left out of the first line.
fn cut(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    for (index, whole) in text[start..].split_inclusive('\n').enumerate() {
        let line = whole.strip_suffix('\n').map_or(whole, |line| line.strip_suffix('\r').unwrap_or(line));
        lines.push(Line { number: index + 1, start, text: line, kind: Kind::Prose });
        start += whole.len();
    }
    lines
}

/// Marks the front matter and returns its byte range. Only a mark at the very start of a line closes it: one inside a value
/// does not.
fn mark_front(text: &str, lines: &mut [Line<'_>]) -> Option<Range<usize>> {
    let is_mark = |line: &Line<'_>| line.text.trim_end() == "---";
    lines.first().filter(|line| is_mark(line))?;
    let close = 1 + lines.iter().skip(1).position(is_mark)?;
    let range = lines[1].start..lines[close].start;
    lines[..=close].iter_mut().for_each(|line| line.kind = Kind::Front);
    text.get(range.clone()).map(|_| range)
}

/// An opened code fence: its character and how many of them.
type Fence = (u8, usize);

/// Marks the lines of code blocks and comments. Both span lines, so one pass keeps what is open.
fn mark_code_and_comments(lines: &mut [Line<'_>]) {
    let mut fence: Option<Fence> = None;
    let mut comment = false;
    // A comment that opens behind the last `-->` is never closed, so it is not a comment.
    let last = lines.iter().rfind(|line| line.kind == Kind::Prose && line.text.contains("-->"));
    let last = last.map_or(0, |line| line.number);
    for line in lines.iter_mut().filter(|line| line.kind == Kind::Prose) {
        if comment {
            // A comment hides fences, so nothing but its end counts inside it.
            line.kind = Kind::Comment;
            if let Some((_, behind)) = line.text.split_once("-->") {
                // The same line may open the next comment behind the end of this one.
                comment = line.number < last && opened(behind).is_some();
            }
            continue;
        }
        let own = fence_of(line.text);
        match (fence, own) {
            (None, None) => {
                // A line is a comment only if nothing but the comment stands on it; text before `<!--` stays prose.
                let trimmed = line.text.trim();
                let open = opened(trimmed);
                comment = line.number < last && open.is_some();
                let is_closed = open.is_none() && trimmed.ends_with("-->");
                let whole = trimmed.starts_with("<!--") && (comment || is_closed);
                line.kind = if whole { Kind::Comment } else { Kind::Prose };
            }
            (None, Some((open, _))) => {
                fence = Some(open);
                line.kind = Kind::Code;
            }
            (Some((mark, count)), own) => {
                line.kind = Kind::Code;
                // A fence closes with at least as many of the same character and nothing behind them.
                if own.is_some_and(|((other, length), bare)| bare && other == mark && length >= count) {
                    fence = None;
                }
            }
        }
    }
}

/// The offset of a comment that the line opens and does not close.
fn opened(line: &str) -> Option<usize> {
    let mut open = line.find("<!--")?;
    let runs = backticks(line);
    // Comments and inline code hide each other: whichever begins first wins, so both are followed from left to right.
    let (mut at, mut index) = (0, 0);
    loop {
        if open < at {
            open = at + line[at..].find("<!--")?;
        }
        match runs.get(index).filter(|run| run.start < open) {
            // Backticks inside a comment open no inline code.
            Some(run) if run.start < at => index += 1,
            Some(run) => match run.close.and_then(|close| Some((close, runs.get(close)?))) {
                Some((close, last)) => (at, index) = (last.end, close + 1),
                None => index += 1,
            },
            // `<!-->` is a complete comment, so the search for the end begins inside the opening mark.
            None => match line[open + 2..].find("-->") {
                Some(close) => at = open + 2 + close + 3,
                None => return Some(open),
            },
        }
    }
}

/// The text with every `<!--` escaped that would open a comment; inline code opens none anyway.
pub(crate) fn without_comments(line: &str) -> String {
    let mut edits = Vec::new();
    let mut spans = code_spans(line).into_iter().peekable();
    for (at, open) in line.match_indices("<!--") {
        while spans.next_if(|span| span.end <= at).is_some() {}
        if spans.peek().is_none_or(|span| span.start > at) {
            edits.push((at..at + open.len(), "&lt;!--".to_string()));
        }
    }
    spliced(line, &edits)
}

/// The byte ranges of inline code, backticks included.
fn code_spans(line: &str) -> Vec<Range<usize>> {
    let runs = backticks(line);
    let mut spans = Vec::new();
    let mut index = 0;
    while let Some(run) = runs.get(index) {
        match run.close.and_then(|close| Some((close, runs.get(close)?))) {
            Some((close, last)) => {
                spans.push(run.start..last.end);
                index = close + 1;
            }
            None => index += 1,
        }
    }
    spans
}

/// A run of backticks.
struct Backticks {
    start: usize,
    end: usize,
    /// The index of the next run of the same length, which closes the inline code that this run opens.
    close: Option<usize>,
}

/// Finds the runs of backticks and which run closes which, in one pass: a line may consist of backticks.
fn backticks(line: &str) -> Vec<Backticks> {
    let mut runs: Vec<Backticks> = Vec::new();
    for (at, _) in line.match_indices('`') {
        match runs.last_mut().filter(|run| run.end == at) {
            Some(run) => run.end += 1,
            // A backtick behind a backslash is an ordinary character.
            None if line[..at].ends_with('\\') => {}
            None => runs.push(Backticks { start: at, end: at + 1, close: None }),
        }
    }
    // Walking from the last run to the first, this holds where the next run of each length is.
    let mut next = std::collections::HashMap::new();
    for (index, run) in runs.iter_mut().enumerate().rev() {
        run.close = next.insert(run.end - run.start, index);
    }
    runs
}

/// The fence that a line consists of, and whether nothing follows it.
fn fence_of(line: &str) -> Option<(Fence, bool)> {
    let line = line.trim_start();
    let mark = *line.as_bytes().first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let count = line.bytes().take_while(|byte| *byte == mark).count();
    let rest = &line[count..];
    // A line such as ```` ```x``` ```` is inline code, not a fence.
    (count >= 3 && !(mark == b'`' && rest.contains('`'))).then(|| ((mark, count), rest.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(text: &str) -> String {
        let page = Page::of(text);
        let kinds = page.lines.iter().map(|line| match line.kind {
            Kind::Front => 'f',
            Kind::Code => 'c',
            Kind::Comment => '-',
            Kind::Prose if line.heading().is_some() => '#',
            Kind::Prose => '.',
        });
        kinds.collect()
    }

    #[test]
    fn what_is_code_comment_or_front_matter_is_no_prose() {
        for (text, kinds) in [
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
            assert_eq!(drawn(text), kinds, "{text:?}");
        }
    }

    #[test]
    fn sections_hold_what_is_deeper() {
        let page = Page::of("# A\na\n## B\nb\n### C\n## D\n# E\ne\n");
        let drawn: Vec<String> = page
            .sections()
            .iter()
            .map(|section| format!("{}{} {:?}", section.level, section.title, section.lines))
            .collect();
        assert_eq!(drawn, ["1A 1..6", "2B 3..5", "3C 5..5", "2D 6..6", "1E 7..8"]);
    }

    #[test]
    fn titles_are_known_by_their_plain_words() {
        for (title, words) in [
            ("3. **Tasks / Subtasks:**", "tasks / subtasks"),
            ("2FA", "2fa"),
            ("1.2 x", "1.2 x"),
            (" File List ", "file list"),
        ] {
            assert_eq!(plain(title), words);
        }
    }

    #[test]
    fn ten_megabytes_of_backticks_are_cut_in_one_go() {
        let runs: String = (1..4_000).map(|length| format!("{} ", "`".repeat(length))).collect();
        let text = format!("{runs}<!--\n{}\n# x\n", "<!-- `".repeat(500_000));
        assert_eq!(drawn(&text), "..#");
    }

    proptest! {
        #[test]
        fn every_byte_stands_in_one_line(text in "(?s)(\u{feff})?([-# `~a<!>\r\n]|---\n|```\n|<!--|-->){0,40}") {
            let page = Page::of(&text);
            for (index, line) in page.lines.iter().enumerate() {
                let end = line.start + line.text.len();
                prop_assert_eq!(&text[line.start..end], line.text);
                prop_assert_eq!(line.number, index + 1);
                prop_assert!(page.lines.get(index + 1).is_none_or(|next| next.start >= end));
            }
            let joined: usize = page.lines.iter().map(|line| line.text.trim_end_matches('\r').len()).sum();
            prop_assert!(joined <= text.len());
            prop_assert_eq!(page.lines.len(), text.trim_start_matches('\u{feff}').lines().count());
            let _ = page.sections();
        }
    }
}
