//! Grounding: checks that the evidence for a claim really occurs in the text.
//!
//! A quote is searched verbatim, then as a reader sees it (white space, list marks, typography), then in parts if it was
//! shortened by dots, then word by word near the line that the reviewer named. An absence needs its heading and none of its
//! terms. Evidence that cannot be found is not believed; the place where it was found is the finding's place, even if the
//! reviewer named another line.
//!
//! Every step reads the text once for each quote. Whether the claim *about* the place is right is not decided here: that
//! is the challengers' part.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::cell::OnceCell;

use crate::{
    brief::Raised,
    finding::{Evidence, Found, How, Place},
    text::{Section, find_section, section_at, sections, titled, words::negates},
};

mod absence;
pub mod change;
mod fold;
mod near;
mod scene;

use absence::Part;
use change::{Touched, is_touched};
use fold::{Folded, Markers, stands_alone};
pub use scene::Scene;

/// How many lines around the named one are searched word by word.
const NEAR_LINES: u32 = 10;
/// The most bytes between the parts of a shortened quote.
const GAP: usize = 1000;
/// The shortest part of a shortened quote: a shorter one could occur anywhere.
const SHORTEST_PART: usize = 8;

/// Finds evidence in one file, as it was when the panel read it.
#[derive(Clone, Debug)]
pub struct Ground<'a> {
    file: &'a str,
    /// The text with `\n` line ends, even if the file has others: agents quote what they see.
    text: String,
    /// The byte offset at which each line begins.
    starts: Vec<usize>,
    sections: Vec<Section>,
    /// The lines under review: all, or those of one section.
    lines: (u32, u32),
    /// The lines that the change under review touched, if it is one.
    touched: Option<Vec<Touched>>,
    /// Folded texts without and with line markers, and the stems of all words. They are computed on first use.
    bare: OnceCell<Folded>,
    marked: OnceCell<Folded>,
    stems: OnceCell<Vec<(String, u32)>>,
}

/// Evidence that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grounded {
    pub place: Place,
    /// How the quote was found; `None` if it was found verbatim and in one place only.
    pub found: Option<Found>,
    /// The text that is really there, if the quote only resembles it.
    pub instead: Option<String>,
    /// It was there before the change under review.
    pub pre_existing: bool,
}

/// One place where a quote was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hit {
    line: u32,
    end_line: u32,
}

impl Hit {
    fn distance(self, line: u32) -> u32 {
        if line < self.line { self.line - line } else { line.saturating_sub(self.end_line) }
    }
}

impl<'a> Ground<'a> {
    /// Makes a finder for a file, or for one of its sections. `None` if the section does not exist.
    pub fn new(file: &'a str, text: &str, section: Option<&str>) -> Option<Ground<'a>> {
        let lines = match section {
            None => (1, u32::MAX),
            Some(title) => find_section(text, title).map(|s| (s.line, s.end_line))?,
        };
        // The whole text is kept even for a section, so that line numbers are those of the file.
        Some(Ground { lines, ..Ground::whole(file, text, true) })
    }

    fn whole(file: &'a str, text: &str, has_headings: bool) -> Ground<'a> {
        let text = text.replace("\r\n", "\n");
        let after_newline = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = core::iter::once(0).chain(after_newline).collect();
        let (bare, marked, stems) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let sections = if has_headings { sections(&text) } else { Vec::new() };
        let lines = (1, u32::MAX);
        Ground { file, starts, sections, lines, text, touched: None, bare, marked, stems }
    }

    /// Marks the lines that a change touched: evidence away from them existed before the change.
    #[must_use]
    pub fn of_change(mut self, touched: Vec<Touched>) -> Ground<'a> {
        self.touched = Some(touched);
        self
    }

    /// Finds the evidence of a claim, or returns the reason why it was not found.
    pub fn find(&self, raised: &Raised) -> Result<Grounded, String> {
        let mut found = match &raised.evidence {
            Evidence::Quote { text } => self.quote(text, raised.line)?,
            Evidence::Absence { heading, terms } => self.absence(heading, terms, raised.line)?,
        };
        // A line that uses a changed symbol belongs to the change, however far away it is.
        let away =
            |touched: &Vec<Touched>| !is_touched(&found.place, touched) && !self.uses(&found.place, touched);
        found.pre_existing = self.touched.as_ref().is_some_and(away);
        Ok(found)
    }

    /// Whether the lines of a place name a symbol that the change defines.
    fn uses(&self, place: &Place, touched: &[Touched]) -> bool {
        let start = |line: u32| self.starts.get(line as usize).copied().unwrap_or(self.text.len());
        let lines =
            self.text.get(start(place.line.saturating_sub(1))..start(place.end_line)).unwrap_or_default();
        let mut words = lines.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| touched.iter().any(|one| one.symbols.iter().any(|symbol| symbol == word)))
    }

    /// Whether the evidence can still be found.
    pub fn holds(&self, evidence: &Evidence) -> bool {
        match evidence {
            Evidence::Quote { text } => self.quote(text, None).is_ok(),
            Evidence::Absence { heading, terms } => self.absence(heading, terms, None).is_ok(),
        }
    }

    /// Whether the heading exists and one of the terms occurs under it.
    pub fn says(&self, heading: &str, terms: &[String]) -> bool {
        self.under(heading, None).is_ok_and(|(first, last)| self.find_term(first, last, terms).is_some())
    }

    fn quote(&self, quote: &str, named: Option<u32>) -> Result<Grounded, String> {
        let quote = quote.replace("\r\n", "\n");
        let quote = quote.trim();
        if quote.is_empty() {
            return Err("the quote is empty".to_string());
        }
        let bare = Folded::new(quote, Markers::Dropped).text;
        // From the strictest to the loosest search; the first one with a hit wins. The searches are lazy because the
        // folded texts are expensive to make.
        let steps: [(How, &dyn Fn() -> Vec<Hit>); 4] = [
            (How::Exact, &|| self.exactly(quote)),
            (How::Folded, &|| self.folded(self.bare(), &bare)),
            (How::Folded, &|| self.folded(self.marked(), &Folded::new(quote, Markers::Kept).text)),
            (How::Parts, &|| self.parts(&bare)),
        ];
        for (how, hits) in steps {
            if let Some(found) = self.choose(how, &hits(), named) {
                return Ok(found);
            }
        }
        // Similarity is the last resort, and only near a line that the reviewer named.
        self.similar(&bare, named).ok_or_else(|| "the quote does not stand in the text".to_string())
    }

    /// Chooses the hit nearest to the named line, else the first.
    fn choose(&self, how: How, hits: &[Hit], named: Option<u32>) -> Option<Grounded> {
        // `min_by_key` returns the first of equally near hits.
        let hit = match named {
            Some(line) => hits.iter().min_by_key(|hit| hit.distance(line)),
            None => hits.first(),
        }?;
        let found = Found { how, places: u32::try_from(hits.len()).unwrap_or(u32::MAX) };
        // The usual case is left out of the journal.
        let found = (found != Found::PLAIN).then_some(found);
        Some(Grounded { place: self.at(*hit), found, instead: None, pre_existing: false })
    }

    fn exactly(&self, quote: &str) -> Vec<Hit> {
        let found = self.text.match_indices(quote).map(|(at, _)| (at, at + quote.len()));
        let whole = found.filter(|(start, end)| stands_alone(&self.text, *start, *end));
        // The number of lines that start at or before the offset is the line number, from 1.
        let line = |at: usize| self.starts.partition_point(|start| *start <= at) as u32;
        let hits = whole.map(|(start, end)| Hit { line: line(start), end_line: line(end - 1) });
        hits.filter(|hit| self.covers(*hit)).collect()
    }

    fn folded(&self, text: &Folded, quote: &str) -> Vec<Hit> {
        if quote.is_empty() {
            return vec![];
        }
        self.hits(text, &occurrences(&text.text, quote))
    }

    fn hits(&self, text: &Folded, spans: &[Span]) -> Vec<Hit> {
        let hits =
            spans.iter().map(|span| Hit { line: text.line(span.start), end_line: text.line(span.end - 1) });
        hits.filter(|hit| self.covers(*hit)).collect()
    }

    /// Finds a shortened quote: its parts occur in order and near each other, and no text between them negates them.
    fn parts(&self, quote: &str) -> Vec<Hit> {
        let trim =
            |part: &'_ str| -> String { part.trim_matches(['.', '[', ']', '(', ')', ' ']).to_string() };
        let parts: Vec<String> = quote.split("...").map(trim).filter(|part| !part.is_empty()).collect();
        if !quote.contains("...") || parts.is_empty() || parts.iter().any(|part| part.len() < SHORTEST_PART) {
            return vec![];
        }
        let text = self.bare();
        // From the last part to the first, so that each part is joined with the nearest complete chain behind it.
        let mut chains: Option<Vec<Span>> = None;
        for part in parts.iter().rev() {
            let here = occurrences(&text.text, part);
            chains = Some(match chains {
                None => here,
                Some(rest) => here.into_iter().filter_map(|one| chain(&text.text, one, &rest)).collect(),
            });
        }
        self.hits(text, &chains.unwrap_or_default())
    }

    /// Finds a text near the named line that almost equals the quote.
    fn similar(&self, quote: &str, named: Option<u32>) -> Option<Grounded> {
        let named = named?;
        let text = self.bare();
        let first = named.saturating_sub(NEAR_LINES).max(self.lines.0);
        let last = named.saturating_add(NEAR_LINES).min(self.lines.1);
        // Aligning words is expensive, so only a window around the line is compared.
        let bytes = text.range(first, last);
        let window = text.text.get(bytes.clone())?;
        let near = near::find(quote, window)?;
        let place = |at: usize| text.line(bytes.start + at);
        let hit = Hit { line: place(near.bytes.start), end_line: place(near.bytes.end - 1) };
        let found = Found { how: How::Similar { percent: near.percent }, places: 1 };
        let instead = window.get(near.bytes).map(String::from);
        Some(Grounded { place: self.at(hit), found: Some(found), instead, pre_existing: false })
    }

    fn absence(&self, heading: &str, terms: &[String], named: Option<u32>) -> Result<Grounded, String> {
        let (first, last) = self.under(heading, named)?;
        if terms.iter().all(|term| term.trim().is_empty()) {
            return Err("no terms were given that could be searched for".to_string());
        }
        match self.find_term(first, last, terms) {
            Some((term, line)) => Err(format!("`{term}` stands there, in line {line}")),
            None => {
                // An absence is placed at its heading, or at the beginning if it has none.
                let line = first.saturating_sub(u32::from(!heading.trim().is_empty())).max(1);
                let place = self.at(Hit { line, end_line: line });
                Ok(Grounded { place, found: None, instead: None, pre_existing: false })
            }
        }
    }

    /// Returns the lines under a heading, including subsections; without a heading everything under review.
    fn under(&self, heading: &str, named: Option<u32>) -> Result<(u32, u32), String> {
        let (first, last) = self.lines;
        let title = self.without_file(heading);
        if title.is_empty() {
            return Ok(self.lines);
        }
        // The heading is also tried as written: a title may itself begin with a file name.
        let inside: Vec<&Section> = [title, heading]
            .into_iter()
            .flat_map(|title| titled(&self.sections, title))
            .filter(|section| (first..=last).contains(&section.line))
            .collect();
        // Several sections may have the same title; the named line tells which one is meant.
        let around = inside.iter().find(|section| named.is_some_and(|line| section.contains(line)));
        match around.or(inside.first()) {
            Some(section) => Ok((section.line + 1, section.end_line)),
            None => Err(format!("there is no heading `{}`", heading.trim())),
        }
    }

    /// Strips this file's name from a heading such as `docs/prd.md: Goals` or `prd.md#Goals`.
    fn without_file<'h>(&self, heading: &'h str) -> &'h str {
        let heading = heading.trim();
        // Agents often leave out the directory.
        let name = self.file.rsplit('/').next().unwrap_or(self.file);
        let file = [self.file, name].into_iter().filter(|file| !file.is_empty());
        let rest = file.filter_map(|file| heading.strip_prefix(file)).next();
        match rest.map(str::trim_start) {
            Some(rest) if rest.is_empty() || rest.starts_with([':', '#', '§', '>']) => {
                rest.trim_start_matches([':', '#', '§', '>', ' '])
            }
            _ => heading,
        }
    }

    fn find_term<'t>(&self, first: u32, last: u32, terms: &'t [String]) -> Option<(&'t str, u32)> {
        let start = |line: u32| self.starts.get(line as usize).copied().unwrap_or(self.text.len());
        let (from, to) = (start(first.saturating_sub(1)), start(last));
        let stems = self.stems.get_or_init(|| absence::stems(&self.text));
        // Stems are sorted by line, so the ones of a range of lines are found without a scan.
        let upto = |line: u32| stems.partition_point(|(_, at)| *at <= line);
        let (skip, end) = (upto(first.saturating_sub(1)), upto(last));
        let part = Part { line: first, text: self.text.get(from..to)?, stems: stems.get(skip..end)? };
        absence::find_term(part, terms)
    }

    fn covers(&self, hit: Hit) -> bool {
        // Evidence must lie completely within the section under review.
        self.lines.0 <= hit.line && hit.end_line <= self.lines.1
    }

    fn bare(&self) -> &Folded {
        self.bare.get_or_init(|| Folded::new(&self.text, Markers::Dropped))
    }

    fn marked(&self) -> &Folded {
        self.marked.get_or_init(|| Folded::new(&self.text, Markers::Kept))
    }

    fn at(&self, hit: Hit) -> Place {
        let section = section_at(&self.sections, hit.line).to_string();
        Place { file: self.file.to_string(), line: hit.line, end_line: hit.end_line, section }
    }
}

/// A range of bytes in a text.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
}

/// Finds `quote` in `text` as whole words.
fn occurrences(text: &str, quote: &str) -> Vec<Span> {
    let found = text.match_indices(quote).map(|(start, _)| Span { start, end: start + quote.len() });
    found.filter(|span| stands_alone(text, span.start, span.end)).collect()
}

/// Joins a part with the nearest chain behind it, if it is near and no text between them negates them.
fn chain(text: &str, one: Span, rest: &[Span]) -> Option<Span> {
    let next = rest.get(rest.partition_point(|span| span.start < one.end))?;
    let gap = text.get(one.end..next.start).filter(|gap| gap.len() <= GAP)?;
    // Only the sentences that touch the parts can negate them; those in between are about something else.
    let mut sentences = gap.split_inclusive(['.', '!', '?']);
    let first = sentences.next().unwrap_or_default();
    let last = sentences.next_back().unwrap_or_default();
    let turned = |sentence: &str| sentence.split(|c: char| !c.is_alphanumeric() && c != '\'').any(negates);
    (!turned(first) && !turned(last)).then_some(Span { start: one.start, end: next.end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    const TEXT: &str = "# A\nsame line\n## B\nsame line\nother\n## C\nempty\n";

    fn raised(evidence: Evidence, line: Option<u32>) -> Raised {
        Raised {
            severity: Severity::High,
            category: "x".into(),
            description: "x".into(),
            evidence,
            file: None,
            line,
            suggested_fix: String::new(),
        }
    }

    fn place(evidence: Evidence, line: Option<u32>, section: Option<&str>) -> Result<(u32, u32), String> {
        let ground = Ground::new("a.md", TEXT, section).unwrap();
        ground.find(&raised(evidence, line)).map(|found| (found.place.line, found.place.end_line))
    }

    fn quote(text: &str) -> Evidence {
        Evidence::Quote { text: text.into() }
    }

    fn absence(heading: &str, terms: &[&str]) -> Evidence {
        let terms: Vec<String> = terms.iter().map(|t| t.to_string()).collect();
        Evidence::Absence { heading: heading.into(), terms }
    }

    #[test]
    fn a_quote_is_where_it_stands_not_where_it_is_said_to_stand() {
        assert_eq!(place(quote("other"), Some(99), None), Ok((5, 5)));
        assert_eq!(place(quote("line\n## B"), None, None), Ok((2, 3)));
    }

    #[test]
    fn of_several_places_the_one_nearest_to_the_named_line_counts() {
        assert_eq!(place(quote("same line"), None, None), Ok((2, 2)));
        assert_eq!(place(quote("same line"), Some(5), None), Ok((4, 4)));
    }

    #[test]
    fn a_quote_outside_the_section_under_review_does_not_count() {
        assert_eq!(place(quote("same line"), Some(2), Some("B")), Ok((4, 4)));
        assert!(place(quote("empty"), None, Some("B")).is_err());
    }

    #[test]
    fn line_ends_do_not_matter() {
        let ground = Ground::new("a.md", "one\r\ntwo\r\nthree\r\n", None).unwrap();
        let place = ground.find(&raised(quote("two\nthree"), None)).unwrap().place;
        assert_eq!((place.line, place.end_line), (2, 3));
    }

    #[test]
    fn what_was_missing_is_there_when_its_heading_and_a_term_are() {
        let ground = Ground::new("a.md", TEXT, None).unwrap();
        let terms = ["Empty".to_string()];
        assert!(ground.says("C", &terms));
        assert!(!ground.says("B", &terms) && !ground.says("D", &terms));
    }

    #[test]
    fn an_invented_or_empty_quote_is_not_believed() {
        assert!(place(quote("never written"), None, None).is_err());
        assert!(place(quote("  "), None, None).is_err());
    }

    #[test]
    fn an_absence_needs_its_heading_and_none_of_its_terms() {
        assert_eq!(place(absence("C", &["deletion"]), None, None), Ok((6, 6)));
        assert!(place(absence("C", &["Empty"]), None, None).unwrap_err().contains("line 7"));
        assert!(place(absence("D", &["deletion"]), None, None).is_err());
        assert!(place(absence("C", &[]), None, None).is_err());
        assert!(place(absence("C", &[" "]), None, None).is_err());
    }
}
