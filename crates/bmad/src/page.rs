//! A Markdown text as BMAD's files use it: lines with their places, front matter, headings, sections. What stands in a block
//! of code or in a comment means nothing, whatever it looks like.
//!
//! Every line knows its bytes, so that one can be exchanged and the rest stays as it is. No tree is built: BMAD's own readers
//! go by lines, and so do the people and agents who write these files.

use std::ops::Range;

/// A text cut into lines.
#[derive(Clone, Debug)]
pub struct Page<'t> {
    pub text: &'t str,
    pub lines: Vec<Line<'t>>,
    /// The YAML between `---` and `---` at the top, as bytes of the text; none: there is no front matter.
    pub front: Option<Range<usize>>,
}

/// One line, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'t> {
    /// From 1, in the file.
    pub number: usize,
    /// Its first byte.
    pub start: usize,
    pub text: &'t str,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Front matter, its marks among it.
    Front,
    /// A block of code, its fences among it.
    Code,
    /// Wholly inside `<!-- … -->`. One that is never closed is none, and neither is one in code within a line.
    Comment,
    Prose,
}

/// A heading and what stands under it, up to the next heading of its level or above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'t> {
    pub level: usize,
    pub title: &'t str,
    /// The heading's index in [`Page::lines`].
    pub heading: usize,
    /// Indexes of what stands under it, deeper headings among them.
    pub lines: Range<usize>,
}

impl<'t> Line<'t> {
    /// Level and title, if it is a heading.
    pub fn heading(&self) -> Option<(usize, &'t str)> {
        if self.kind != Kind::Prose {
            return None;
        }
        let level = self.text.bytes().take_while(|byte| *byte == b'#').count();
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

    /// The YAML of the front matter; none: there is no front matter.
    pub fn front_matter(&self) -> Option<&'t str> {
        self.text.get(self.front.clone()?)
    }

    /// All sections, in their order, a section before those in it.
    pub fn sections(&self) -> Vec<Section<'t>> {
        let headings: Vec<(usize, usize, &'t str)> = self
            .lines
            .iter()
            .enumerate()
            .filter_map(|(index, line)| line.heading().map(|(level, title)| (index, level, title)))
            .collect();
        // From the last to the first: where the next heading of each level or above is.
        let mut next = [self.lines.len(); 7];
        let mut sections: Vec<Section<'t>> = Vec::with_capacity(headings.len());
        for (index, level, title) in headings.into_iter().rev() {
            sections.push(Section { level, title, heading: index, lines: index + 1..next[level] });
            next[level..].fill(index);
        }
        sections.reverse();
        sections
    }

    /// The first section whose title is meant, by its plain words ([`plain`]).
    pub fn section(&self, is_meant: impl Fn(&str) -> bool) -> Option<Section<'t>> {
        self.sections().into_iter().find(|section| is_meant(&plain(section.title)))
    }

    /// How this text ends its lines: as its first line does.
    pub fn line_end(&self) -> &'static str {
        let first = self.text.find('\n');
        if first.is_some_and(|at| self.text[..at].ends_with('\r')) { "\r\n" } else { "\n" }
    }
}

/// A title's words in lower case, without numbering, marks of emphasis and a colon at the end.
pub fn plain(title: &str) -> String {
    const MARKS: [char; 4] = ['*', '_', ':', ' '];
    let title = title.trim().trim_matches(MARKS);
    let rest = title.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = rest.strip_prefix(['.', ')']).filter(|_| rest.len() < title.len());
    let unnumbered = numbered.filter(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
    unnumbered.unwrap_or(title).trim_matches(MARKS).to_lowercase()
}

/// The text with these bytes exchanged. Edits are in order and do not overlap; others are left out.
#[must_use]
pub fn spliced(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len() + edits.iter().map(|(_, with)| with.len()).sum::<usize>());
    let mut at = 0;
    for (range, with) in edits {
        if range.start < at || range.end < range.start {
            continue;
        }
        let (Some(before), Some(_)) = (text.get(at..range.start), text.get(range.clone())) else { continue };
        out.push_str(before);
        out.push_str(with);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Lines as `str::lines` has them, a byte order mark left out of the first.
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

/// Only a mark at the very start of a line closes it: one inside a value does not.
fn mark_front(text: &str, lines: &mut [Line<'_>]) -> Option<Range<usize>> {
    let is_mark = |line: &Line<'_>| line.text.trim_end() == "---";
    lines.first().filter(|line| is_mark(line))?;
    let close = 1 + lines.iter().skip(1).position(is_mark)?;
    let range = lines[1].start..lines[close].start;
    lines[..=close].iter_mut().for_each(|line| line.kind = Kind::Front);
    text.get(range.clone()).map(|_| range)
}

/// An opened fence: its character and how many of them.
type Fence = (u8, usize);

fn mark_code_and_comments(lines: &mut [Line<'_>]) {
    let mut fence: Option<Fence> = None;
    let mut comment = false;
    // What is opened behind the last end of a comment is never closed, and so it is no comment.
    let last = lines.iter().rfind(|line| line.kind == Kind::Prose && line.text.contains("-->"));
    let last = last.map_or(0, |line| line.number);
    for line in lines.iter_mut().filter(|line| line.kind == Kind::Prose) {
        if comment {
            line.kind = Kind::Comment;
            if let Some((_, behind)) = line.text.split_once("-->") {
                comment = line.number < last && opened(behind).is_some();
            }
            continue;
        }
        let own = fence_of(line.text);
        match (fence, own) {
            (None, None) => {
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
                if own.is_some_and(|((other, length), bare)| bare && other == mark && length >= count) {
                    fence = None;
                }
            }
        }
    }
}

/// Where a comment begins that the line does not close.
fn opened(line: &str) -> Option<usize> {
    let mut open = line.find("<!--")?;
    let runs = backticks(line);
    let (mut at, mut index) = (0, 0);
    loop {
        if open < at {
            open = at + line[at..].find("<!--")?;
        }
        match runs.get(index).filter(|run| run.start < open) {
            // What a comment has of them opens nothing.
            Some(run) if run.start < at => index += 1,
            Some(run) => match run.close.and_then(|close| Some((close, runs.get(close)?))) {
                Some((close, last)) => (at, index) = (last.end, close + 1),
                None => index += 1,
            },
            // `<!-->` is a whole comment.
            None => match line[open + 2..].find("-->") {
                Some(close) => at = open + 2 + close + 3,
                None => return Some(open),
            },
        }
    }
}

/// The text with `<!--` opening no comment; in code within the line it opens none anyway.
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

/// The code within a line, its backticks among it.
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

/// Backticks in a row.
struct Backticks {
    start: usize,
    end: usize,
    /// The index of the next ones that are as many: they close what these open.
    close: Option<usize>,
}

fn backticks(line: &str) -> Vec<Backticks> {
    let mut runs: Vec<Backticks> = Vec::new();
    for (at, _) in line.match_indices('`') {
        match runs.last_mut().filter(|run| run.end == at) {
            Some(run) => run.end += 1,
            // One behind a backslash is a character like others.
            None if line[..at].ends_with('\\') => {}
            None => runs.push(Backticks { start: at, end: at + 1, close: None }),
        }
    }
    // From the last to the first: where the next run of each length is.
    let mut next = std::collections::HashMap::new();
    for (index, run) in runs.iter_mut().enumerate().rev() {
        run.close = next.insert(run.end - run.start, index);
    }
    runs
}

/// The fence a line is, and whether nothing follows it.
fn fence_of(line: &str) -> Option<(Fence, bool)> {
    let line = line.trim_start();
    let mark = *line.as_bytes().first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let count = line.bytes().take_while(|byte| *byte == mark).count();
    let rest = &line[count..];
    // A line such as ```` ```x``` ```` is code within a line.
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
