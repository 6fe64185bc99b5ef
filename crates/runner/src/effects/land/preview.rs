//! Looks at a patch before it lands, and leaves out what was not wanted after the look.

use std::io;

use tribunal_engine::files::{FilePart, Hunk, PatchRefusal};
use tribunal_workflows::runs::effect::LandOutcome;

use super::{LandingAttempt, LandingCandidate, landed_outcome, merge_candidate};
use crate::{
    effects::EffectContext,
    landing::merging::{diff_hunks, merge_without},
};

/// Tells what a patch would change in the files as they are now.
pub(super) fn preview_landing(context: &EffectContext, candidate: &LandingCandidate) -> io::Result<LandOutcome> {
    let mut merged_files = match merge_candidate(context, candidate)? {
        LandingAttempt::Decided(outcome) => return Ok(*outcome),
        LandingAttempt::Merged(merged_files) => merged_files,
    };
    for merged_file in &mut merged_files {
        let current_text = merged_file.current_text.as_deref().unwrap_or_default();
        merged_file.landed_hunks = Some(diff_hunks(current_text, &merged_file.merged_text));
    }
    Ok(match landed_outcome(context, &merged_files, Vec::new()) {
        LandOutcome::Landed(change) => LandOutcome::Previewed(change),
        other_outcome => other_outcome,
    })
}

/// Leaves parts out of a change. They were named for the file as a preview has shown it.
pub(super) fn drop_parts(
    relative_path: &str,
    current_text: Option<&str>,
    merged_text: String,
    without: &[FilePart],
) -> Result<String, PatchRefusal> {
    let dropped_hunks: Vec<Hunk> =
        without.iter().filter(|part| part.path == relative_path).map(|part| part.hunk).collect();
    if dropped_hunks.is_empty() {
        return Ok(merged_text);
    }
    let remaining_text = merge_without(current_text.unwrap_or_default(), &merged_text, &dropped_hunks);
    remaining_text.ok_or_else(|| PatchRefusal::Lost {
        detail: format!("{relative_path} was edited while its fix was being judged"),
    })
}
