//! Grounding: is what a reviewer shows for its claim really there?
//!
//! A quote is looked up as it is, then as a reader sees it (white space, list marks, typography), then in parts where it
//! was shortened by dots, then word by word near the line that the reviewer named. An absence needs its heading and none
//! of its terms. What cannot be found is not believed; where it was found is the finding's true place, whatever line was
//! named.
//!
//! Every step goes over the text once for a quote, whatever the quote is. What is said *about* the place is not judged
//! here: that is the challengers' business.

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

/// So many lines before and after the named one a quote may be looked for word by word.
const NEAR_LINES: u32 = 10;
/// The parts of a quote that was shortened by dots stand at most so many bytes apart.
const GAP: usize = 1000;
/// A part of fewer characters could stand anywhere.
const SHORTEST_PART: usize = 8;

/// The subject's text as it stood when the panel read it.
#[derive(Clone, Debug)]
pub struct Ground<'a> {
    file: &'a str,
    /// With plain line ends, whatever the file has: agents quote what they see.
    text: String,
    /// Where each line begins.
    starts: Vec<usize>,
    sections: Vec<Section>,
    /// The lines under review: all, or those of one section.
    lines: (u32, u32),
    /// What the change under review touched, if it is one.
    touched: Option<Vec<Touched>>,
    /// Made when first needed: without and with the marks in front of lines, and the stems of all words.
    bare: OnceCell<Folded>,
    marked: OnceCell<Folded>,
    stems: OnceCell<Vec<(String, u32)>>,
}

/// Evidence that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grounded {
    pub place: Place,
    /// None: as quoted, and only there.
    pub found: Option<Found>,
    /// What really stands there, if the quote only resembles it.
    pub instead: Option<String>,
    /// It was there before the change under review.
    pub pre_existing: bool,
}

/// One place of a quote.
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
    /// None when the section does not exist.
    pub fn new(file: &'a str, text: &str, section: Option<&str>) -> Option<Ground<'a>> {
        let lines = match section {
            None => (1, u32::MAX),
            Some(title) => find_section(text, title).map(|s| (s.line, s.end_line))?,
        };
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

    /// The same, for a change: what stands away from the lines it touched was there before.
    #[must_use]
    pub fn of_change(mut self, touched: Vec<Touched>) -> Ground<'a> {
        self.touched = Some(touched);
        self
    }

    /// Where a claim's evidence stands and how it was found, or why it was not.
    pub fn find(&self, raised: &Raised) -> Result<Grounded, String> {
        let mut found = match &raised.evidence {
            Evidence::Quote { text } => self.quote(text, raised.line)?,
            Evidence::Absence { heading, terms } => self.absence(heading, terms, raised.line)?,
        };
        let away =
            |touched: &Vec<Touched>| !is_touched(&found.place, touched) && !self.uses(&found.place, touched);
        found.pre_existing = self.touched.as_ref().is_some_and(away);
        Ok(found)
    }

    /// Whether the lines of a place name something that the change defines.
    fn uses(&self, place: &Place, touched: &[Touched]) -> bool {
        let start = |line: u32| self.starts.get(line as usize).copied().unwrap_or(self.text.len());
        let lines =
            self.text.get(start(place.line.saturating_sub(1))..start(place.end_line)).unwrap_or_default();
        let mut words = lines.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| touched.iter().any(|one| one.symbols.iter().any(|symbol| symbol == word)))
    }

    /// Whether the evidence still stands.
    pub fn holds(&self, evidence: &Evidence) -> bool {
        match evidence {
            Evidence::Quote { text } => self.quote(text, None).is_ok(),
            Evidence::Absence { heading, terms } => self.absence(heading, terms, None).is_ok(),
        }
    }

    /// Whether the heading is there and one of the terms stands under it.
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
        self.similar(&bare, named).ok_or_else(|| "the quote does not stand in the text".to_string())
    }

    /// Of several places the one nearest to the named line, else the first.
    fn choose(&self, how: How, hits: &[Hit], named: Option<u32>) -> Option<Grounded> {
        // The first of equals, as the text goes.
        let hit = match named {
            Some(line) => hits.iter().min_by_key(|hit| hit.distance(line)),
            None => hits.first(),
        }?;
        let found = Found { how, places: u32::try_from(hits.len()).unwrap_or(u32::MAX) };
        let found = (found != Found::PLAIN).then_some(found);
        Some(Grounded { place: self.at(*hit), found, instead: None, pre_existing: false })
    }

    fn exactly(&self, quote: &str) -> Vec<Hit> {
        let found = self.text.match_indices(quote).map(|(at, _)| (at, at + quote.len()));
        let whole = found.filter(|(start, end)| stands_alone(&self.text, *start, *end));
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

    /// A quote that was shortened: its parts stand in order and near each other, and nothing between them turns round
    /// what they say.
    fn parts(&self, quote: &str) -> Vec<Hit> {
        let trim =
            |part: &'_ str| -> String { part.trim_matches(['.', '[', ']', '(', ')', ' ']).to_string() };
        let parts: Vec<String> = quote.split("...").map(trim).filter(|part| !part.is_empty()).collect();
        if !quote.contains("...") || parts.is_empty() || parts.iter().any(|part| part.len() < SHORTEST_PART) {
            return vec![];
        }
        let text = self.bare();
        // From the last part to the first, so that every part knows the nearest good rest behind it.
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

    /// Almost as quoted, near the named line.
    fn similar(&self, quote: &str, named: Option<u32>) -> Option<Grounded> {
        let named = named?;
        let text = self.bare();
        let first = named.saturating_sub(NEAR_LINES).max(self.lines.0);
        let last = named.saturating_add(NEAR_LINES).min(self.lines.1);
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
                // The heading itself; without one, the beginning.
                let line = first.saturating_sub(u32::from(!heading.trim().is_empty())).max(1);
                let place = self.at(Hit { line, end_line: line });
                Ok(Grounded { place, found: None, instead: None, pre_existing: false })
            }
        }
    }

    /// The lines under a heading, subsections and all; no heading: all that is under review.
    fn under(&self, heading: &str, named: Option<u32>) -> Result<(u32, u32), String> {
        let (first, last) = self.lines;
        let title = self.without_file(heading);
        if title.is_empty() {
            return Ok(self.lines);
        }
        let inside: Vec<&Section> = [title, heading]
            .into_iter()
            .flat_map(|title| titled(&self.sections, title))
            .filter(|section| (first..=last).contains(&section.line))
            .collect();
        let around = inside.iter().find(|section| named.is_some_and(|line| section.contains(line)));
        match around.or(inside.first()) {
            Some(section) => Ok((section.line + 1, section.end_line)),
            None => Err(format!("there is no heading `{}`", heading.trim())),
        }
    }

    /// `docs/prd.md: Goals` and `prd.md#Goals` mean the heading, if they mean this file.
    fn without_file<'h>(&self, heading: &'h str) -> &'h str {
        let heading = heading.trim();
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
        let upto = |line: u32| stems.partition_point(|(_, at)| *at <= line);
        let (skip, end) = (upto(first.saturating_sub(1)), upto(last));
        let part = Part { line: first, text: self.text.get(from..to)?, stems: stems.get(skip..end)? };
        absence::find_term(part, terms)
    }

    fn covers(&self, hit: Hit) -> bool {
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

/// A part of a text, in bytes.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
}

/// Where `quote` stands in `text` as whole words.
fn occurrences(text: &str, quote: &str) -> Vec<Span> {
    let found = text.match_indices(quote).map(|(start, _)| Span { start, end: start + quote.len() });
    found.filter(|span| stands_alone(text, span.start, span.end)).collect()
}

/// A part with the nearest rest behind it, if that is near and the words between do not turn it round.
fn chain(text: &str, one: Span, rest: &[Span]) -> Option<Span> {
    let next = rest.get(rest.partition_point(|span| span.start < one.end))?;
    let gap = text.get(one.end..next.start).filter(|gap| gap.len() <= GAP)?;
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
