//! Grounding: checks that the evidence for a claim really occurs in the text.
//!
//! A quote is searched verbatim, then as a reader sees it (white space, list marks, typography), then in parts if it was
//! shortened by dots, then word by word near the line that the reviewer named. An absence needs its heading and none of its
//! terms. Evidence that cannot be found is not believed; the place where it was found is the finding's place, even if the
//! reviewer named another line.
//!
//! No step reads the text more than once for each quote or part of a quote. Whether the claim *about* the place is right
//! is not decided here: that is the challengers' part.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::cell::OnceCell;

use crate::{
    findings::finding::{Evidence, FindingPlace, QuoteMatch, QuoteMatchKind},
    tasks::brief::RaisedFinding,
};
use tribunal_engine::text::{
    TextSection, find_section, parse_sections, section_title_at, sections_titled, words::is_negation,
};

mod absence;
pub mod diff;
mod fold;
mod near_match;
mod scope;

use absence::TextPart;
use diff::{TouchedLines, is_place_touched};
use fold::{FoldedText, LineMarkers, is_whole_words};
pub use scope::EvidenceScope;

/// How many lines around the named one are searched word by word.
const NEARBY_LINES: u32 = 10;
/// The most bytes between the parts of a shortened quote.
const MAX_GAP_BYTES: usize = 1000;
/// The shortest part of a shortened quote: a shorter one could occur anywhere.
const MIN_PART_BYTES: usize = 8;
/// Why a claim with the output of a check as its evidence is refused: only Tribunal itself runs checks.
const CHECK_IS_NO_CLAIM: &str = "a reviewer cannot report a check";

/// Folds a quote to what a reader sees: two quotes that fold to the same text quote the same.
pub(super) fn fold_quote(quote: &str) -> String {
    FoldedText::new(quote, LineMarkers::Dropped).folded_text
}

/// Finds evidence in one text of one file.
#[derive(Clone, Debug)]
pub struct EvidenceFinder<'a> {
    file_path: &'a str,
    /// The text with `\n` line ends, even if the file has others: agents quote what they see.
    file_text: String,
    /// The byte offset at which each line begins.
    line_starts: Vec<usize>,
    sections: Vec<TextSection>,
    /// The lines under review: all, or those of one section.
    reviewed_lines: (u32, u32),
    /// The lines that the change under review touched, if it is one.
    touched_lines: Option<Vec<TouchedLines>>,
    /// Folded texts without and with line markers, and the stems of all words. They are computed on first use.
    without_markers: OnceCell<FoldedText>,
    with_markers: OnceCell<FoldedText>,
    word_stems: OnceCell<Vec<(String, u32)>>,
}

/// Evidence that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroundedEvidence {
    pub place: FindingPlace,
    /// How the quote was found; `None` if it was found verbatim and in one place only.
    pub quote_match: Option<QuoteMatch>,
    /// The text that is really there, if the quote only resembles it.
    pub actual_text: Option<String>,
    /// It was there before the change under review.
    pub pre_existing: bool,
}

/// One place where a quote was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QuoteHit {
    first_line: u32,
    last_line: u32,
}

impl QuoteHit {
    fn distance_to(self, named_line: u32) -> u32 {
        if named_line < self.first_line {
            self.first_line - named_line
        } else {
            named_line.saturating_sub(self.last_line)
        }
    }
}

impl<'a> EvidenceFinder<'a> {
    /// Makes a finder for a file, or for one of its sections. `None` if the section does not exist.
    pub fn new(file_path: &'a str, file_text: &str, section_title: Option<&str>) -> Option<EvidenceFinder<'a>> {
        let line_range = match section_title {
            None => (1, u32::MAX),
            Some(title) => find_section(file_text, title)
                .map(|found_section| (found_section.heading_line, found_section.last_line))?,
        };
        // The whole text is kept even for a section, so that line numbers are those of the file.
        Some(EvidenceFinder { reviewed_lines: line_range, ..EvidenceFinder::from_text(file_path, file_text, true) })
    }

    fn from_text(file_path: &'a str, file_text: &str, has_headings: bool) -> EvidenceFinder<'a> {
        let file_text = file_text.replace("\r\n", "\n");
        let after_newline = file_text.match_indices('\n').map(|(newline, _)| newline + 1);
        let line_starts = core::iter::once(0).chain(after_newline).collect();
        let (without_markers, with_markers, word_stems) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        let sections = if has_headings { parse_sections(&file_text) } else { Vec::new() };
        let reviewed_lines = (1, u32::MAX);
        EvidenceFinder {
            file_path,
            line_starts,
            sections,
            reviewed_lines,
            file_text,
            touched_lines: None,
            without_markers,
            with_markers,
            word_stems,
        }
    }

    /// Marks the lines that a change touched: evidence away from them existed before the change.
    #[must_use]
    pub fn with_touched_lines(mut self, changed_lines: Vec<TouchedLines>) -> EvidenceFinder<'a> {
        self.touched_lines = Some(changed_lines);
        self
    }

    /// Finds the evidence of a claim, or returns the reason why it was not found.
    pub fn find_evidence(&self, raised_finding: &RaisedFinding) -> Result<GroundedEvidence, String> {
        let mut grounded = match &raised_finding.evidence {
            Evidence::Quote { text: quote_text } => self.find_quote(quote_text, raised_finding.line)?,
            Evidence::Absence { heading, terms } => self.find_absence(heading, terms, raised_finding.line)?,
            Evidence::Check { .. } => return Err(String::from(CHECK_IS_NO_CLAIM)),
        };
        // A line that uses a changed symbol belongs to the change, however far away it is.
        let is_outside_change = |changed_lines: &Vec<TouchedLines>| {
            !is_place_touched(&grounded.place, changed_lines)
                && !self.names_changed_symbol(&grounded.place, changed_lines)
        };
        grounded.pre_existing = self.touched_lines.as_ref().is_some_and(is_outside_change);
        Ok(grounded)
    }

    /// Whether the lines of a place name a symbol that the change defines.
    fn names_changed_symbol(&self, finding_place: &FindingPlace, changed_lines: &[TouchedLines]) -> bool {
        let start_of_line = |line: u32| self.line_starts.get(line as usize).copied().unwrap_or(self.file_text.len());
        let place_text = self
            .file_text
            .get(start_of_line(finding_place.line.saturating_sub(1))..start_of_line(finding_place.end_line))
            .unwrap_or_default();
        let mut words = place_text.split(|character: char| !character.is_alphanumeric() && character != '_');
        words
            .any(|word| changed_lines.iter().any(|file_change| file_change.symbols.iter().any(|symbol| symbol == word)))
    }

    /// Whether the evidence can still be found.
    pub fn has_evidence(&self, evidence: &Evidence) -> bool {
        match evidence {
            Evidence::Quote { text } => self.find_quote(text, None).is_ok(),
            Evidence::Absence { heading, terms } => self.find_absence(heading, terms, None).is_ok(),
            // Only running the check again can tell.
            Evidence::Check { .. } => true,
        }
    }

    /// Whether the heading exists and one of the terms occurs under it.
    pub fn has_term_under(&self, heading: &str, terms: &[String]) -> bool {
        self.lines_under(heading, None)
            .is_ok_and(|(first_line, last_line)| self.find_term(first_line, last_line, terms).is_some())
    }

    fn find_quote(&self, quote_text: &str, named_line: Option<u32>) -> Result<GroundedEvidence, String> {
        let quote_text = quote_text.replace("\r\n", "\n");
        let quote_text = quote_text.trim();
        if quote_text.is_empty() {
            return Err("the quote is empty".to_string());
        }
        let bare_quote = FoldedText::new(quote_text, LineMarkers::Dropped).folded_text;
        // From the strictest to the loosest search; the first one with a hit wins. The searches are lazy because the
        // folded texts are expensive to make.
        let search_steps: [(QuoteMatchKind, &dyn Fn() -> Vec<QuoteHit>); 4] = [
            (QuoteMatchKind::Exact, &|| self.find_exact(quote_text)),
            (QuoteMatchKind::Folded, &|| self.find_folded(self.text_without_markers(), &bare_quote)),
            (QuoteMatchKind::Folded, &|| {
                self.find_folded(self.text_with_markers(), &FoldedText::new(quote_text, LineMarkers::Kept).folded_text)
            }),
            (QuoteMatchKind::Parts, &|| self.find_parts(&bare_quote)),
        ];
        for (match_kind, find_hits) in search_steps {
            if let Some(grounded) = self.choose_hit(match_kind, &find_hits(), named_line) {
                return Ok(grounded);
            }
        }
        // Similarity is the last resort, and only near a line that the reviewer named.
        self.find_similar(&bare_quote, named_line).ok_or_else(|| match self.file_path {
            "" => "quote not found".to_string(),
            // The name alone: a long path would not fit into a line of a narrow terminal.
            file_path => format!("quote not found in {}", file_path.rsplit('/').next().unwrap_or(file_path)),
        })
    }

    /// Chooses the hit nearest to the named line, else the first.
    fn choose_hit(
        &self,
        match_kind: QuoteMatchKind,
        hits: &[QuoteHit],
        named_line: Option<u32>,
    ) -> Option<GroundedEvidence> {
        // `min_by_key` returns the first of equally near hits.
        let hit = match named_line {
            Some(line) => hits.iter().min_by_key(|hit| hit.distance_to(line)),
            None => hits.first(),
        }?;
        let quote_match = QuoteMatch { how: match_kind, places: u32::try_from(hits.len()).unwrap_or(u32::MAX) };
        // The usual case is left out of the journal.
        let quote_match = (quote_match != QuoteMatch::EXACT_AND_UNIQUE).then_some(quote_match);
        Some(GroundedEvidence { place: self.place_of_hit(*hit), quote_match, actual_text: None, pre_existing: false })
    }

    fn find_exact(&self, quote_text: &str) -> Vec<QuoteHit> {
        let byte_ranges =
            self.file_text.match_indices(quote_text).map(|(offset, _)| (offset, offset + quote_text.len()));
        let whole_words = byte_ranges.filter(|(start, end)| is_whole_words(&self.file_text, *start, *end));
        // The number of lines that start at or before the offset is the line number, from 1.
        let line_at = |offset: usize| self.line_starts.partition_point(|start| *start <= offset) as u32;
        let hits = whole_words.map(|(start, end)| QuoteHit { first_line: line_at(start), last_line: line_at(end - 1) });
        hits.filter(|hit| self.is_reviewed(*hit)).collect()
    }

    fn find_folded(&self, folded_text: &FoldedText, folded_quote: &str) -> Vec<QuoteHit> {
        if folded_quote.is_empty() {
            return vec![];
        }
        self.hits_from_spans(folded_text, &find_occurrences(&folded_text.folded_text, folded_quote))
    }

    fn hits_from_spans(&self, folded_text: &FoldedText, spans: &[ByteSpan]) -> Vec<QuoteHit> {
        let quote_hits = spans.iter().map(|span| QuoteHit {
            first_line: folded_text.line_at(span.start),
            last_line: folded_text.line_at(span.end - 1),
        });
        quote_hits.filter(|hit| self.is_reviewed(*hit)).collect()
    }

    /// Finds a shortened quote: its parts occur in order and near each other, and no text between them negates them.
    fn find_parts(&self, folded_quote: &str) -> Vec<QuoteHit> {
        let trim_part = |part: &'_ str| -> String { part.trim_matches(['.', '[', ']', '(', ')', ' ']).to_string() };
        let quote_parts: Vec<String> =
            folded_quote.split("...").map(trim_part).filter(|part| !part.is_empty()).collect();
        if !folded_quote.contains("...")
            || quote_parts.is_empty()
            || quote_parts.iter().any(|part| part.len() < MIN_PART_BYTES)
        {
            return vec![];
        }
        let folded_text = self.text_without_markers();
        // From the last part to the first, so that each part is joined with the nearest complete chain behind it.
        let mut chains: Option<Vec<ByteSpan>> = None;
        for part in quote_parts.iter().rev() {
            let part_spans = find_occurrences(&folded_text.folded_text, part);
            chains = Some(match chains {
                None => part_spans,
                Some(later_chains) => part_spans
                    .into_iter()
                    .filter_map(|span| extend_chain(&folded_text.folded_text, span, &later_chains))
                    .collect(),
            });
        }
        self.hits_from_spans(folded_text, &chains.unwrap_or_default())
    }

    /// Finds a text near the named line that almost equals the quote.
    fn find_similar(&self, folded_quote: &str, named_line: Option<u32>) -> Option<GroundedEvidence> {
        let named_line = named_line?;
        let folded_text = self.text_without_markers();
        let first_line = named_line.saturating_sub(NEARBY_LINES).max(self.reviewed_lines.0);
        let last_line = named_line.saturating_add(NEARBY_LINES).min(self.reviewed_lines.1);
        // Aligning words is expensive, so only a window around the line is compared.
        let byte_range = folded_text.line_byte_range(first_line, last_line);
        let window = folded_text.folded_text.get(byte_range.clone())?;
        let nearest = near_match::find_near_match(folded_quote, window)?;
        let line_at = |offset: usize| folded_text.line_at(byte_range.start + offset);
        let quote_hit =
            QuoteHit { first_line: line_at(nearest.byte_range.start), last_line: line_at(nearest.byte_range.end - 1) };
        let quote_match = QuoteMatch { how: QuoteMatchKind::Similar { percent: nearest.percent }, places: 1 };
        let actual_text = window.get(nearest.byte_range).map(String::from);
        Some(GroundedEvidence {
            place: self.place_of_hit(quote_hit),
            quote_match: Some(quote_match),
            actual_text,
            pre_existing: false,
        })
    }

    fn find_absence(
        &self,
        heading: &str,
        terms: &[String],
        named_line: Option<u32>,
    ) -> Result<GroundedEvidence, String> {
        let (first_line, last_line) = self.lines_under(heading, named_line)?;
        if terms.iter().all(|term| term.trim().is_empty()) {
            return Err("no search terms given".to_string());
        }
        match self.find_term(first_line, last_line, terms) {
            Some((term, line_number)) => Err(format!("found `{term}` in line {line_number}")),
            None => {
                // An absence is placed at its heading, or at the beginning if it has none.
                let line_number = first_line.saturating_sub(u32::from(!heading.trim().is_empty())).max(1);
                let finding_place = self.place_of_hit(QuoteHit { first_line: line_number, last_line: line_number });
                Ok(GroundedEvidence { place: finding_place, quote_match: None, actual_text: None, pre_existing: false })
            }
        }
    }

    /// Returns the lines under a heading, including subsections; without a heading everything under review.
    fn lines_under(&self, heading: &str, named_line: Option<u32>) -> Result<(u32, u32), String> {
        let (first_line, last_line) = self.reviewed_lines;
        let title = self.strip_file_name(heading);
        if title.is_empty() {
            return Ok(self.reviewed_lines);
        }
        // The heading is also tried as written: a title may itself begin with a file name.
        let matching_sections: Vec<&TextSection> = [title, heading]
            .into_iter()
            .flat_map(|title| sections_titled(&self.sections, title))
            .filter(|section| (first_line..=last_line).contains(&section.heading_line))
            .collect();
        // Several sections may have the same title; the named line tells which one is meant.
        let enclosing = matching_sections.iter().find(|section| named_line.is_some_and(|line| section.contains(line)));
        match enclosing.or(matching_sections.first()) {
            Some(section) => Ok((section.heading_line + 1, section.last_line)),
            None => Err(format!("heading not found: `{}`", heading.trim())),
        }
    }

    /// Strips this file's name from a heading such as `docs/prd.md: Goals` or `prd.md#Goals`.
    fn strip_file_name<'h>(&self, heading_text: &'h str) -> &'h str {
        let heading_text = heading_text.trim();
        // The heading may name the file without its directory.
        let file_name = self.file_path.rsplit('/').next().unwrap_or(self.file_path);
        let file_names = [self.file_path, file_name].into_iter().filter(|name| !name.is_empty());
        let remainder = file_names.filter_map(|name| heading_text.strip_prefix(name)).next();
        match remainder.map(str::trim_start) {
            Some(remainder) if remainder.is_empty() || remainder.starts_with([':', '#', '§', '>']) => {
                remainder.trim_start_matches([':', '#', '§', '>', ' '])
            }
            _ => heading_text,
        }
    }

    fn find_term<'t>(&self, first_line: u32, last_line: u32, terms: &'t [String]) -> Option<(&'t str, u32)> {
        let start_of_line = |line: u32| self.line_starts.get(line as usize).copied().unwrap_or(self.file_text.len());
        let (start_byte, end_byte) = (start_of_line(first_line.saturating_sub(1)), start_of_line(last_line));
        let all_stems = self.word_stems.get_or_init(|| absence::stem_words(&self.file_text));
        // Stems are sorted by line, so the ones of a range of lines are found without a scan.
        let stems_up_to = |line: u32| all_stems.partition_point(|(_, stem_line)| *stem_line <= line);
        let (first_stem, end_stem) = (stems_up_to(first_line.saturating_sub(1)), stems_up_to(last_line));
        let text_part = TextPart {
            first_line,
            part_text: self.file_text.get(start_byte..end_byte)?,
            word_stems: all_stems.get(first_stem..end_stem)?,
        };
        absence::find_term(text_part, terms)
    }

    fn is_reviewed(&self, hit: QuoteHit) -> bool {
        // Evidence must lie completely within the section under review.
        self.reviewed_lines.0 <= hit.first_line && hit.last_line <= self.reviewed_lines.1
    }

    fn text_without_markers(&self) -> &FoldedText {
        self.without_markers.get_or_init(|| FoldedText::new(&self.file_text, LineMarkers::Dropped))
    }

    fn text_with_markers(&self) -> &FoldedText {
        self.with_markers.get_or_init(|| FoldedText::new(&self.file_text, LineMarkers::Kept))
    }

    fn place_of_hit(&self, quote_hit: QuoteHit) -> FindingPlace {
        let section = section_title_at(&self.sections, quote_hit.first_line).to_string();
        FindingPlace {
            file: self.file_path.to_string(),
            line: quote_hit.first_line,
            end_line: quote_hit.last_line,
            section,
        }
    }
}

/// A range of bytes in a text.
#[derive(Clone, Copy)]
struct ByteSpan {
    start: usize,
    end: usize,
}

/// Finds the quote in the text as whole words. Both are folded.
fn find_occurrences(folded_text: &str, folded_quote: &str) -> Vec<ByteSpan> {
    let spans =
        folded_text.match_indices(folded_quote).map(|(start, _)| ByteSpan { start, end: start + folded_quote.len() });
    spans.filter(|span| is_whole_words(folded_text, span.start, span.end)).collect()
}

/// Joins a part with the nearest chain behind it, if it is near and no text between them negates them.
fn extend_chain(folded_text: &str, part_span: ByteSpan, later_spans: &[ByteSpan]) -> Option<ByteSpan> {
    let next_span = later_spans.get(later_spans.partition_point(|span| span.start < part_span.end))?;
    let gap = folded_text.get(part_span.end..next_span.start).filter(|gap| gap.len() <= MAX_GAP_BYTES)?;
    // Only the sentences that touch the parts can negate them; those in between are about something else.
    let mut sentences = gap.split_inclusive(['.', '!', '?']);
    let first_sentence = sentences.next().unwrap_or_default();
    let last_sentence = sentences.next_back().unwrap_or_default();
    let has_negation = |sentence: &str| {
        sentence.split(|character: char| !character.is_alphanumeric() && character != '\'').any(is_negation)
    };
    (!has_negation(first_sentence) && !has_negation(last_sentence))
        .then_some(ByteSpan { start: part_span.start, end: next_span.end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::finding::Severity;

    const TEXT: &str = "# A\nsame line\n## B\nsame line\nother\n## C\nempty\n";

    fn raised_finding(evidence: Evidence, line: Option<u32>) -> RaisedFinding {
        RaisedFinding {
            severity: Severity::High,
            category: "x".into(),
            description: "x".into(),
            evidence,
            file: None,
            line,
            suggested_fix: String::new(),
        }
    }

    fn find_place(evidence: Evidence, line: Option<u32>, section: Option<&str>) -> Result<(u32, u32), String> {
        let finder = EvidenceFinder::new("a.md", TEXT, section).unwrap();
        finder
            .find_evidence(&raised_finding(evidence, line))
            .map(|grounded| (grounded.place.line, grounded.place.end_line))
    }

    fn quote_evidence(text: &str) -> Evidence {
        Evidence::Quote { text: text.into() }
    }

    fn absence_evidence(heading: &str, terms: &[&str]) -> Evidence {
        let terms: Vec<String> = terms.iter().map(|t| t.to_string()).collect();
        Evidence::Absence { heading: heading.into(), terms }
    }

    #[test]
    fn the_place_of_a_quote_is_where_it_was_found_not_the_named_line() {
        assert_eq!(find_place(quote_evidence("other"), Some(99), None), Ok((5, 5)));
        assert_eq!(find_place(quote_evidence("line\n## B"), None, None), Ok((2, 3)));
    }

    #[test]
    fn of_several_places_the_one_nearest_to_the_named_line_counts() {
        assert_eq!(find_place(quote_evidence("same line"), None, None), Ok((2, 2)));
        assert_eq!(find_place(quote_evidence("same line"), Some(5), None), Ok((4, 4)));
    }

    #[test]
    fn a_quote_outside_the_section_under_review_does_not_count() {
        assert_eq!(find_place(quote_evidence("same line"), Some(2), Some("B")), Ok((4, 4)));
        assert!(find_place(quote_evidence("empty"), None, Some("B")).is_err());
    }

    #[test]
    fn line_ends_do_not_matter() {
        let finder = EvidenceFinder::new("a.md", "one\r\ntwo\r\nthree\r\n", None).unwrap();
        let place = finder.find_evidence(&raised_finding(quote_evidence("two\nthree"), None)).unwrap().place;
        assert_eq!((place.line, place.end_line), (2, 3));
    }

    #[test]
    fn a_missing_term_is_supplied_when_it_occurs_under_its_heading() {
        let finder = EvidenceFinder::new("a.md", TEXT, None).unwrap();
        let terms = ["Empty".to_string()];
        assert!(finder.has_term_under("C", &terms));
        assert!(!finder.has_term_under("B", &terms) && !finder.has_term_under("D", &terms));
    }

    #[test]
    fn an_invented_or_empty_quote_is_not_believed() {
        assert!(find_place(quote_evidence("never written"), None, None).is_err());
        assert!(find_place(quote_evidence("  "), None, None).is_err());
    }

    #[test]
    fn an_absence_needs_its_heading_and_none_of_its_terms() {
        assert_eq!(find_place(absence_evidence("C", &["deletion"]), None, None), Ok((6, 6)));
        assert!(find_place(absence_evidence("C", &["Empty"]), None, None).unwrap_err().contains("line 7"));
        assert!(find_place(absence_evidence("D", &["deletion"]), None, None).is_err());
        assert!(find_place(absence_evidence("C", &[]), None, None).is_err());
        assert!(find_place(absence_evidence("C", &[" "]), None, None).is_err());
    }
}
