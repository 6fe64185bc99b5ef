//! Grounding: is what a reviewer shows for its claim really there?
//!
//! A quote is looked up in the subject, an absence is checked. What cannot be found is not believed; where it was found
//! is the finding's true place, whatever line the reviewer named.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    brief::Raised,
    finding::{Evidence, Place},
    text::{Section, find_section, fold, section_at, sections},
};

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
}

impl<'a> Ground<'a> {
    /// None when the section does not exist.
    pub fn new(file: &'a str, text: &str, section: Option<&str>) -> Option<Ground<'a>> {
        let lines = match section {
            None => (1, u32::MAX),
            Some(title) => find_section(text, title).map(|s| (s.line, s.end_line))?,
        };
        let text = text.replace("\r\n", "\n");
        let after_newline = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = core::iter::once(0).chain(after_newline).collect();
        Some(Ground { file, starts, sections: sections(&text), lines, text })
    }

    /// The place of a claim's evidence, or why there is none.
    pub fn place(&self, raised: &Raised) -> Result<Place, String> {
        match &raised.evidence {
            Evidence::Quote { text } => self.quote(text, raised.line),
            Evidence::Absence { heading, terms } => self.absence(heading, terms),
        }
    }

    /// Whether the evidence still stands.
    pub fn holds(&self, evidence: &Evidence) -> bool {
        match evidence {
            Evidence::Quote { text } => self.quote(text, None).is_ok(),
            Evidence::Absence { heading, terms } => self.absence(heading, terms).is_ok(),
        }
    }

    /// Whether the heading is there and one of the terms stands under it.
    pub fn says(&self, heading: &str, terms: &[String]) -> bool {
        self.section(heading).is_some_and(|section| self.find_term(section, terms).is_some())
    }

    fn quote(&self, quote: &str, named: Option<u32>) -> Result<Place, String> {
        let quote = quote.replace("\r\n", "\n");
        let quote = quote.trim();
        if quote.is_empty() {
            return Err("the quote is empty".to_string());
        }
        let extra = quote.matches('\n').count() as u32;
        let mut best: Option<u32> = None;
        for (offset, _) in self.text.match_indices(quote) {
            let line = self.starts.partition_point(|start| *start <= offset) as u32;
            if line < self.lines.0 || line.saturating_add(extra) > self.lines.1 {
                continue;
            }
            let nearer = |old: u32| named.is_some_and(|named| line.abs_diff(named) < old.abs_diff(named));
            if best.is_none_or(nearer) {
                best = Some(line);
            }
        }
        let line = best.ok_or_else(|| "the quote does not stand in the text".to_string())?;
        Ok(self.at(line, line + extra))
    }

    fn absence(&self, heading: &str, terms: &[String]) -> Result<Place, String> {
        let section =
            self.section(heading).ok_or_else(|| alloc::format!("there is no heading `{heading}`"))?;
        if terms.iter().all(|term| term.trim().is_empty()) {
            return Err("no terms were given that could be searched for".to_string());
        }
        match self.find_term(section, terms) {
            Some((term, line)) => Err(alloc::format!("`{term}` stands there, in line {line}")),
            None => Ok(self.at(section.line, section.line)),
        }
    }

    /// The section of that title among the lines under review.
    fn section(&self, heading: &str) -> Option<&Section> {
        let wanted = fold(heading.trim_start_matches('#'));
        let (first, last) = self.lines;
        let mut inside = self.sections.iter().filter(|section| (first..=last).contains(&section.line));
        inside.find(|section| fold(&section.title) == wanted)
    }

    /// The first term that stands in the section's body, with its line.
    fn find_term<'t>(&self, section: &Section, terms: &'t [String]) -> Option<(&'t str, usize)> {
        let lines = self.text.lines().enumerate();
        let body = lines.skip(section.line as usize).take((section.end_line - section.line) as usize);
        for (index, line) in body {
            let line = line.to_lowercase();
            let said = terms.iter().map(|term| term.trim()).filter(|term| !term.is_empty());
            if let Some(term) = said.clone().find(|term| line.contains(&term.to_lowercase())) {
                return Some((term, index + 1));
            }
        }
        None
    }

    fn at(&self, line: u32, end_line: u32) -> Place {
        let section = section_at(&self.sections, line).to_string();
        Place { file: self.file.to_string(), line, end_line, section }
    }
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
            line,
            suggested_fix: String::new(),
        }
    }

    fn place(evidence: Evidence, line: Option<u32>, section: Option<&str>) -> Result<(u32, u32), String> {
        let ground = Ground::new("a.md", TEXT, section).unwrap();
        ground.place(&raised(evidence, line)).map(|p| (p.line, p.end_line))
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
        let place = ground.place(&raised(quote("two\nthree"), None)).unwrap();
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
