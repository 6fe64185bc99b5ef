//! What a change means for findings: the rules that tell whether it can have repaired them.
//!
//! | evidence | after the change | verdict |
//! | --- | --- | --- |
//! | quote | unchanged, and no line of it or next to it was changed | not repaired |
//! | quote | unchanged, and only a neighbouring line was changed | not repaired |
//! | quote | unchanged, and lines were added next to it | open |
//! | quote of a document | its lines are gone without replacement, and the finding does not ask for that | not repaired |
//! | quote | changed, or gone in another way | open |
//! | absence | what is missing is still missing | not repaired |
//! | absence | what is missing was added | open |
//! | check | | decided by the check |
//!
//! What is open is decided by a [judge](super::judge): a rule can see where the text changed, but not what it says now.

use alloc::{string::String, vec::Vec};

use crate::{
    findings::{
        finding::{Evidence, Finding, FindingPlace, QuoteMatchKind},
        subject::Subject,
    },
    review::ground::EvidenceScope,
};
use tribunal_engine::{
    files::{FilePart, Hunk, LandedFile},
    text::find_section,
};

/// How far a line may be from a quote to be its neighbour.
const NEAR_LINES: u32 = 1;

/// Beginnings of words in findings that ask to remove something. Words for contradictions are deliberately absent: a
/// contradiction asks which of two statements holds, and deleting one of them only hides the question.
const REMOVAL_WORDS: [&str; 14] = [
    "remov",
    "delet",
    "drop",
    "duplicat",
    "redundan",
    "obsolet",
    "unused",
    "dead",
    "superfluous",
    "unnecess",
    "outdated",
    "stale",
    "twice",
    "repeat",
];

/// What the rules say about a finding that a change was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepairSign {
    /// The change cannot have repaired it, for this reason.
    NotRepaired(&'static str),
    /// A judge has to look at it.
    Open,
    /// The check that failed decides.
    ByCheck,
}

/// A change that has landed, or that would land.
pub(super) struct LandingImpact<'l> {
    landed_files: &'l [LandedFile],
    /// The files after the landing.
    scope: Option<EvidenceScope<'l>>,
    is_one_file: bool,
    is_document: bool,
}

impl<'l> LandingImpact<'l> {
    pub fn new(subject: &'l Subject, landed_files: &'l [LandedFile]) -> LandingImpact<'l> {
        let scope = match (subject.file_path(), landed_files) {
            (Some(_), [file]) => EvidenceScope::from_subject(subject, &file.text, &[]),
            (Some(_), _) => None,
            (None, _) => Some(EvidenceScope::from_files(
                landed_files.iter().map(|file| (file.path.as_str(), file.text.as_str())),
            )),
        };
        let is_one_file = subject.file_path().is_some();
        LandingImpact { landed_files, scope, is_one_file, is_document: subject.is_document() }
    }

    fn file_at(&self, finding_place: &FindingPlace) -> Option<&'l LandedFile> {
        self.landed_files.iter().find(|file| self.is_one_file || file.path == finding_place.file)
    }

    pub fn hunks_at(&self, finding_place: &FindingPlace) -> &'l [Hunk] {
        self.file_at(finding_place).map_or(&[], |file| &file.hunks)
    }

    /// Returns all parts of the change.
    pub fn all_parts(&self) -> Vec<FilePart> {
        let file_parts =
            |file: &'l LandedFile| file.hunks.iter().map(|hunk| FilePart { path: file.path.clone(), hunk: *hunk });
        self.landed_files.iter().flat_map(file_parts).collect()
    }

    /// Says by the table of this module whether the change can have repaired a finding.
    pub fn check_repair(&self, finding: &Finding) -> RepairSign {
        match &finding.evidence {
            Evidence::Check { .. } => RepairSign::ByCheck,
            Evidence::Absence { heading, terms } => match self.supplies_missing(heading, terms) {
                true => RepairSign::Open,
                false => RepairSign::NotRepaired("what is missing was not added"),
            },
            Evidence::Quote { text } => match &finding.place {
                Some(finding_place) => self.check_quote(finding, finding_place),
                // A finding of the user has no place. Its quote must be gone; without a quote any change may repair it.
                None if self.landed_files.iter().all(|file| file.hunks.is_empty()) => {
                    RepairSign::NotRepaired("nothing was changed")
                }
                None if !text.is_empty() && !self.removed_evidence(finding) => {
                    RepairSign::NotRepaired("the quoted text is unchanged")
                }
                None => RepairSign::Open,
            },
        }
    }

    fn check_quote(&self, finding: &Finding, finding_place: &FindingPlace) -> RepairSign {
        let hunks = self.hunks_at(finding_place);
        let is_at_quote = |hunk: &&Hunk| is_hunk_at(hunk, finding_place);
        if !self.removed_evidence(finding) {
            let is_near = |hunk: &Hunk| {
                hunk.old_start <= finding_place.end_line + NEAR_LINES
                    && finding_place.line <= last_line(hunk) + NEAR_LINES
            };
            return match hunks.iter().any(|hunk| is_at_quote(&hunk)) {
                true => RepairSign::Open,
                false if hunks.iter().any(is_near) => RepairSign::NotRepaired("only a neighbouring line was changed"),
                false => RepairSign::NotRepaired("nothing near it was changed"),
            };
        }
        let mut own_hunks = hunks.iter().filter(is_at_quote).peekable();
        let is_deletion = own_hunks.peek().is_some() && own_hunks.all(|hunk| hunk.new_len == 0);
        if is_deletion && self.is_document && !asks_for_removal(finding) {
            return RepairSign::NotRepaired("the quoted text was deleted, which does not repair it");
        }
        RepairSign::Open
    }

    /// Whether a part of the change is at the evidence of a finding.
    pub fn is_part_at(&self, part: &FilePart, finding: &Finding) -> bool {
        let Some(finding_place) = &finding.place else { return false };
        if !self.is_one_file && part.path != finding_place.file {
            return false;
        }
        match &finding.evidence {
            Evidence::Quote { .. } => is_hunk_at(&part.hunk, finding_place),
            // What is missing is added. A part that removes lines, such as the next heading, is something else.
            Evidence::Absence { heading, .. } => {
                part.hunk.new_len >= part.hunk.old_len && self.is_part_under(part, heading)
            }
            Evidence::Check { .. } => true,
        }
    }

    /// Whether a part changes nothing but the evidence of a finding: the quoted lines, or lines added at it.
    pub fn is_part_within(&self, part: &FilePart, finding: &Finding) -> bool {
        let is_inside = |place: &FindingPlace| {
            part.hunk.old_len == 0 || (place.line <= part.hunk.old_start && last_line(&part.hunk) <= place.end_line)
        };
        self.is_part_at(part, finding)
            && match &finding.evidence {
                Evidence::Quote { .. } => finding.place.as_ref().is_some_and(is_inside),
                Evidence::Absence { .. } | Evidence::Check { .. } => true,
            }
    }

    /// Whether the new lines of a part are under a heading.
    fn is_part_under(&self, part: &FilePart, heading: &str) -> bool {
        let Some(file) = self.landed_files.iter().find(|file| file.path == part.path) else { return false };
        let Some(section) = find_section(&file.text, heading) else { return false };
        let first_line = file.find_new_line(part.hunk);
        let last_line = first_line + part.hunk.new_len.max(1) - 1;
        section.heading_line <= first_line && last_line <= section.last_line
    }

    /// Whether the landing removed the evidence from a file that it changed. Text that a change had removed must be back again.
    fn removed_evidence(&self, finding: &Finding) -> bool {
        let Some(scope) = &self.scope else { return false };
        if quotes_removed_text(finding) {
            return finding.place.as_ref().is_some_and(|finding_place| scope.has_file(&finding_place.file))
                && scope.has_evidence_in(finding.place.as_ref(), &finding.evidence);
        }
        let finding_place = finding.place.as_ref();
        let is_changed_file =
            finding_place.is_none_or(|finding_place| self.is_one_file || scope.has_file(&finding_place.file));
        is_changed_file && !scope.has_evidence_in(finding_place, &finding.evidence)
    }

    /// Whether the missing text is there now. In a change it may be in another file: a test, for instance.
    fn supplies_missing(&self, heading: &str, terms: &[String]) -> bool {
        let Some(scope) = &self.scope else { return false };
        // Elsewhere counts only in a change: a document must say it under its heading.
        scope.has_term_under(heading, terms) || (!self.is_one_file && scope.has_term(terms))
    }

    /// Whether the quoted text is gone or the missing text was supplied. Evidence that was never found cannot be gone.
    pub fn resolves_evidence(&self, finding: &Finding) -> bool {
        finding.place.is_some()
            && match &finding.evidence {
                Evidence::Quote { text } => !text.is_empty() && self.removed_evidence(finding),
                Evidence::Absence { heading, terms } => {
                    self.scope.as_ref().is_some_and(|scope| scope.has_term_under(heading, terms))
                }
                Evidence::Check { .. } => false,
            }
    }
}

fn last_line(hunk: &Hunk) -> u32 {
    // A hunk without old lines is an insertion before its start; it counts as one line.
    hunk.old_start + hunk.old_len.max(1) - 1
}

/// Whether a hunk changes lines of a place, or adds lines within it or directly before or after it.
fn is_hunk_at(hunk: &Hunk, place: &FindingPlace) -> bool {
    match hunk.old_len {
        0 => place.line <= hunk.old_start && hunk.old_start <= place.end_line + 1,
        _ => hunk.old_start <= place.end_line && place.line <= last_line(hunk),
    }
}

/// Whether the finding quotes text that the change removed.
fn quotes_removed_text(finding: &Finding) -> bool {
    finding.found.is_some_and(|found| found.how == QuoteMatchKind::Removed)
}

/// Whether removing the quoted text may be what the finding asks for.
fn asks_for_removal(finding: &Finding) -> bool {
    let has_removal_word = |text: &str| {
        text.split(|character: char| !character.is_alphanumeric()).any(|word| {
            let word = word.to_lowercase();
            REMOVAL_WORDS.iter().any(|removal_word| word.starts_with(removal_word))
        })
    };
    has_removal_word(&finding.description) || has_removal_word(&finding.suggested_fix)
}
