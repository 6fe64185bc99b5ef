//! Everything under review: one file, or the files of a change with the lines that it removed.
//!
//! Evidence is searched in the named file first, then in the others. Lines that a change removed can be quoted, too: their
//! place is where they were.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use super::{
    CHECK_IS_NO_CLAIM, EvidenceFinder, GroundedEvidence,
    diff::{RemovedLines, TouchedLines, is_place_touched, parse_diff},
};
use crate::{
    findings::{
        finding::{Evidence, FindingPlace, QuoteMatch, QuoteMatchKind},
        subject::Subject,
    },
    tasks::brief::RaisedFinding,
};
use tribunal_engine::files::FrozenFile;

/// The files in which evidence is searched.
#[derive(Clone, Debug)]
pub struct EvidenceScope<'a> {
    finders: Vec<EvidenceFinder<'a>>,
    /// The text that the change removed from each file; its lines count as if they were a file.
    removed_texts: Vec<(EvidenceFinder<'a>, RemovedLines)>,
}

impl<'a> From<EvidenceFinder<'a>> for EvidenceScope<'a> {
    fn from(finder: EvidenceFinder<'a>) -> Self {
        EvidenceScope { finders: vec![finder], removed_texts: Vec::new() }
    }
}

impl<'a> EvidenceScope<'a> {
    /// Makes the scope of a frozen subject from its text, or from its diff and files. `None` if its section does not exist.
    pub fn from_subject(
        subject: &'a Subject,
        subject_text: &str,
        files: &'a [FrozenFile],
    ) -> Option<EvidenceScope<'a>> {
        match subject.file_path() {
            Some(file_path) => {
                EvidenceFinder::new(file_path, subject_text, subject.section_title()).map(EvidenceScope::from)
            }
            // A change has no section, so this cannot fail.
            None => Some(EvidenceScope::from_change(subject, subject_text, files)),
        }
    }

    /// Makes the scope with the whole file even if only a section is under review.
    pub fn from_whole_subject(
        subject: &'a Subject,
        subject_text: &str,
        files: &'a [FrozenFile],
    ) -> Option<EvidenceScope<'a>> {
        match subject.file_path() {
            Some(file_path) => EvidenceFinder::new(file_path, subject_text, None).map(EvidenceScope::from),
            None => Some(EvidenceScope::from_change(subject, subject_text, files)),
        }
    }

    fn from_change(subject: &'a Subject, diff: &str, files: &'a [FrozenFile]) -> EvidenceScope<'a> {
        let file_diffs = parse_diff(diff);
        let diffs_of_path =
            |path: &'a str| file_diffs.iter().filter(move |file_diff| file_diff.touched.file_path == path);
        // A symbol that one file defines may be used in another, so all files get all symbols.
        let symbols = file_diffs.iter().flat_map(|file_diff| file_diff.touched.symbols.iter().cloned()).collect();
        let all_symbols = TouchedLines { symbols, ..TouchedLines::default() };
        let finders = files.iter().map(|file| {
            let own_touched = diffs_of_path(&file.path)
                .map(|file_diff| file_diff.touched.clone())
                .chain([all_symbols.clone()])
                .collect();
            EvidenceFinder::from_changed_file(&file.path, &file.text).with_touched_lines(own_touched)
        });
        // Deleted files are included: they are in the subject, but not among the frozen files.
        let removed_finders = subject.file_paths().into_iter().flat_map(|path| {
            let removed_parts = diffs_of_path(path)
                .map(|file_diff| &file_diff.removed)
                .filter(|removed_lines| !removed_lines.removed_text.is_empty());
            removed_parts.map(move |removed_lines| {
                (EvidenceFinder::from_changed_file(path, &removed_lines.removed_text), removed_lines.clone())
            })
        });
        EvidenceScope { finders: finders.collect(), removed_texts: removed_finders.collect() }
    }

    /// Makes a scope of files without knowledge of what changed in them.
    pub fn from_files(files: impl Iterator<Item = (&'a str, &'a str)>) -> EvidenceScope<'a> {
        EvidenceScope {
            finders: files
                .map(|(file_path, file_text)| EvidenceFinder::from_changed_file(file_path, file_text))
                .collect(),
            removed_texts: Vec::new(),
        }
    }

    fn is_one_file(&self) -> bool {
        self.finders.len() == 1 && self.finders[0].touched_lines.is_none()
    }

    /// Finds the evidence of a claim, or returns the reason why it was not found.
    pub fn find_evidence(&self, raised_finding: &RaisedFinding) -> Result<GroundedEvidence, String> {
        // A single file that is not a change needs neither file names nor removed lines.
        if self.is_one_file() {
            return self.finders[0].find_evidence(raised_finding);
        }
        match &raised_finding.evidence {
            Evidence::Quote { .. } => self.find_quote(raised_finding),
            Evidence::Absence { heading: heading_text, terms } => {
                let (finder, heading_text) = self.file_of_heading(heading_text, raised_finding);
                self.find_absence(finder, heading_text, terms, raised_finding.line)
            }
            Evidence::Check { .. } => Err(String::from(CHECK_IS_NO_CLAIM)),
        }
    }

    fn find_quote(&self, raised_finding: &RaisedFinding) -> Result<GroundedEvidence, String> {
        let is_named_file =
            |finder: &&EvidenceFinder<'_>| raised_finding.file.as_ref().is_some_and(|file| finder.is_named(file));
        if let Some(finder) = self.finders.iter().find(is_named_file) {
            match finder.find_evidence(raised_finding) {
                Ok(grounded) if !grounded.pre_existing => return Ok(grounded),
                // The quote is in an unchanged part, but the change may also have removed the same text elsewhere.
                Ok(grounded) => return Ok(self.find_in_removed(raised_finding).unwrap_or(grounded)),
                Err(_) => {}
            }
        }
        // The line belongs to the named file, so it means nothing in other files.
        let without_line = RaisedFinding { line: None, ..raised_finding.clone() };
        let names_no_file = !self.finders.iter().any(|finder| is_named_file(&finder));
        let searched = if names_no_file && self.finders.len() == 1 { raised_finding } else { &without_line };
        let mut matches = self.finders.iter().filter_map(|finder| finder.find_evidence(searched).ok());
        let first_match = matches.next();
        // A match in the changed lines beats removed text, and both beat an earlier match in unchanged lines.
        let match_in_change = first_match.iter().cloned().chain(matches).find(|grounded| !grounded.pre_existing);
        match_in_change
            .or_else(|| self.find_in_removed(raised_finding))
            .or(first_match)
            .ok_or_else(|| "quote not found in any file of the change".to_string())
    }

    /// Finds a quote in the removed lines; its place is where they were.
    fn find_in_removed(&self, raised_finding: &RaisedFinding) -> Option<GroundedEvidence> {
        let without_line = RaisedFinding { line: None, ..raised_finding.clone() };
        let is_named_file =
            |finder: &EvidenceFinder<'_>| raised_finding.file.as_ref().is_none_or(|file| finder.is_named(file));
        let (finder, removed) = self
            .removed_texts
            .iter()
            .filter(|(finder, _)| is_named_file(finder))
            // The named file comes first, the others follow.
            .chain(self.removed_texts.iter().filter(|(finder, _)| !is_named_file(finder)))
            .find(|(finder, _)| finder.find_evidence(&without_line).is_ok())?;
        let grounded = finder.find_evidence(&without_line).ok()?;
        // The finder numbers the removed lines themselves; the place needs the line of the new file.
        let original_line = |line: u32| removed.original_lines.get(line as usize - 1).copied().unwrap_or(1);
        let place = FindingPlace {
            line: original_line(grounded.place.line),
            end_line: original_line(grounded.place.end_line).max(original_line(grounded.place.line)),
            ..grounded.place
        };
        let quote_match = QuoteMatch { how: QuoteMatchKind::Removed, places: 1 };
        Some(GroundedEvidence { place, quote_match: Some(quote_match), ..grounded })
    }

    /// Returns the file that the heading or else the claim names, and the heading without the file's name.
    fn file_of_heading<'h>(
        &self,
        heading: &'h str,
        raised_finding: &RaisedFinding,
    ) -> (Option<&EvidenceFinder<'a>>, &'h str) {
        for finder in &self.finders {
            let remainder = finder.strip_file_name(heading);
            if remainder != heading.trim() {
                return (Some(finder), remainder);
            }
        }
        let is_named_file =
            |finder: &&EvidenceFinder<'_>| raised_finding.file.as_ref().is_some_and(|file| finder.is_named(file));
        (self.finders.iter().find(is_named_file), heading.trim())
    }

    fn find_absence(
        &self,
        named_finder: Option<&EvidenceFinder<'a>>,
        heading: &str,
        terms: &[String],
        named_line: Option<u32>,
    ) -> Result<GroundedEvidence, String> {
        if let Some(finder) = named_finder {
            return finder.find_absence_in_change(heading, terms, named_line);
        }
        if heading.is_empty() {
            // Without a heading the terms must be absent in every file of the change.
            let mut first_absence = None;
            for finder in &self.finders {
                let grounded = finder.find_absence_in_change("", terms, None)?;
                first_absence = first_absence.or(Some(grounded));
            }
            return first_absence.ok_or_else(|| "the change has no files".to_string());
        }
        let finder_with_heading = self.finders.iter().find(|finder| finder.lines_under(heading, named_line).is_ok());
        match finder_with_heading {
            Some(finder) => finder.find_absence_in_change(heading, terms, named_line),
            None => Err(format!("heading or file not found: `{heading}`")),
        }
    }

    /// Whether the evidence can be found in any file or, if it is a quote, in the lines that the change removed.
    pub fn has_evidence(&self, evidence: &Evidence) -> bool {
        self.finders.iter().any(|finder| finder.has_evidence(evidence))
            || self
                .removed_texts
                .iter()
                .any(|(finder, _)| matches!(evidence, Evidence::Quote { .. }) && finder.has_evidence(evidence))
    }

    /// Whether the evidence can be found in the file of the place. Without a place, or if that file is not in the scope, it may
    /// be in any file.
    pub fn has_evidence_in(&self, finding_place: Option<&FindingPlace>, evidence: &Evidence) -> bool {
        match finding_place
            .and_then(|finding_place| self.finders.iter().find(|finder| finder.file_path == finding_place.file))
        {
            Some(finder) => finder.has_evidence(evidence),
            None => self.finders.iter().any(|finder| finder.has_evidence(evidence)),
        }
    }

    /// Whether the scope contains this file.
    pub fn has_file(&self, file_path: &str) -> bool {
        self.finders.iter().any(|finder| finder.file_path == file_path)
    }

    /// Whether the missing text is there: under its heading, or in the file that the heading names.
    pub fn has_term_under(&self, heading: &str, terms: &[String]) -> bool {
        self.finders.iter().any(|finder| finder.has_term_under(heading, terms))
    }

    /// Whether one of the terms occurs in any file.
    pub fn has_term(&self, terms: &[String]) -> bool {
        self.finders.iter().any(|finder| finder.has_term_under("", terms))
    }
}

impl<'a> EvidenceFinder<'a> {
    /// Makes a finder for a file of a change. Headings exist only in prose: in code `#` begins a comment or an attribute.
    fn from_changed_file(file_path: &'a str, file_text: &str) -> EvidenceFinder<'a> {
        EvidenceFinder::from_text(file_path, file_text, crate::findings::subject::is_prose(file_path))
    }

    /// Whether a name such as `src/a.rs`, `a/src/a.rs`, `./src/a.rs` or `a.rs` can mean this file.
    fn is_named(&self, named_path: &str) -> bool {
        let named_path = named_path.trim().trim_start_matches("./");
        let is_suffix_of = |long_path: &str, short_path: &str| {
            long_path.strip_suffix(short_path).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('/'))
        };
        // Agents leave directories out or put some in front, such as the `a/` of a diff, so either may be the longer path.
        !named_path.is_empty() && (is_suffix_of(self.file_path, named_path) || is_suffix_of(named_path, self.file_path))
    }

    /// Finds an absence in a changed file. Without a heading it always belongs to the change.
    fn find_absence_in_change(
        &self,
        heading: &str,
        terms: &[String],
        named_line: Option<u32>,
    ) -> Result<GroundedEvidence, String> {
        let mut grounded = self.find_absence(heading, terms, named_line)?;
        let touched_ranges = self.touched_lines.iter().flatten().flat_map(|touched_file| &touched_file.line_ranges);
        // Without a heading the first changed line is a better place than the beginning of the file.
        if let (true, Some((first_line, _))) = (heading.is_empty(), touched_ranges.into_iter().next()) {
            (grounded.place.line, grounded.place.end_line) = (*first_line, *first_line);
        }
        let is_outside_change = |touched_files: &Vec<_>| !is_place_touched(&grounded.place, touched_files);
        grounded.pre_existing = !heading.is_empty() && self.touched_lines.as_ref().is_some_and(is_outside_change);
        Ok(grounded)
    }
}
