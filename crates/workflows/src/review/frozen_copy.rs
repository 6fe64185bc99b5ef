//! The subject as it is in one frozen copy.

use alloc::{format, string::String, vec::Vec};

use crate::{
    review::{ReviewState, ground::EvidenceScope, order::ReviewOrder, review_host::ReviewHost, run_stage::ReviewExit},
    runs::effect::{Freeze, FreezeOutcome, FrozenSubject},
};
use tribunal_engine::{
    files::FrozenFile,
    ids::{Hash, Key},
    reason::{RunEnding, RunReason},
    text::find_section,
};

pub(super) struct FrozenCopy {
    pub freeze_key: Key,
    /// The text of the one file, or the diff of the change.
    pub subject_text: String,
    pub subject_hash: Hash,
    pub frozen_files: Vec<FrozenFile>,
    /// What agents will not find in the copy, one line each.
    pub remarks: Vec<String>,
}

/// Freezes the subject. If this fails, the stage ends.
pub(super) async fn freeze_subject(
    host: &ReviewHost<'_>,
    state: &ReviewState,
    freeze_key: Key,
) -> Result<FrozenCopy, ReviewExit> {
    // Files that repairs have added are frozen as well.
    let subject = state.reviewed_subject(host.order);
    match host.perform(freeze_key.clone(), Freeze { subject }).await? {
        FreezeOutcome::Frozen(FrozenSubject { text, hash, files, remarks }) => {
            Ok(FrozenCopy { freeze_key, subject_text: text, subject_hash: hash, frozen_files: files, remarks })
        }
        FreezeOutcome::Failed { fault } => Err(RunEnding::new(RunReason::Environment, fault.detail).into()),
    }
}

impl FrozenCopy {
    /// Returns what is under review. `Err` if its section no longer exists.
    pub fn review_scope<'s>(&'s self, order: &'s ReviewOrder) -> Result<EvidenceScope<'s>, RunEnding> {
        let subject = &order.subject;
        EvidenceScope::from_subject(subject, &self.subject_text, &self.frozen_files).ok_or_else(|| {
            // Only a document has a section, so a path is known here.
            let (path, section) =
                (subject.file_path().unwrap_or_default(), subject.section_title().unwrap_or_default());
            RunEnding::new(RunReason::Environment, format!("section `{section}` no longer exists in {path}"))
        })
    }

    /// Counts the lines under review that have text: those of the document or its section, or those that a change has added
    /// or removed.
    pub fn count_reviewed_lines(&self, order: &ReviewOrder) -> u32 {
        let has_text = |line: &&str| !line.trim().is_empty();
        let section = order.subject.section_title().and_then(|title| find_section(&self.subject_text, title));
        let line_count = match (order.subject.code_change(), section) {
            (Some(_), _) => self.subject_text.lines().filter(|line| is_changed_line(line)).count(),
            (None, Some(section)) => {
                let (first_line, last_line) = (section.heading_line as usize, section.last_line as usize);
                let section_lines = self.subject_text.lines().take(last_line).skip(first_line.saturating_sub(1));
                section_lines.filter(has_text).count()
            }
            (None, None) => self.subject_text.lines().filter(has_text).count(),
        };
        u32::try_from(line_count).unwrap_or(u32::MAX)
    }

    /// Returns the whole file even if only a section is under review: counter-evidence may be anywhere.
    pub fn full_scope<'s>(&'s self, order: &'s ReviewOrder) -> Option<EvidenceScope<'s>> {
        EvidenceScope::from_whole_subject(&order.subject, &self.subject_text, &self.frozen_files)
    }
}

/// Whether a line of a diff was added or removed.
fn is_changed_line(line: &str) -> bool {
    let is_file_name = line.starts_with("+++ ") || line.starts_with("--- ");
    line.starts_with(['+', '-']) && !is_file_name
}
