//! Lists what changed between two commits, as a subject for reviews.

use tribunal_workflows::development::changes::{ChangeOutcome, ReadChange};

use super::{EffectContext, environment_fault};
use crate::git::changes::{ChangeError, ChangeRequest, ChangeScope, FoundChange, find_change};

/// Lists a change. One that is too large for a review is reviewed as far as one review can read it.
pub(super) fn list_change(context: &EffectContext, read_change: &ReadChange) -> ChangeOutcome {
    let request = ChangeRequest {
        selector: ChangeScope::Range(format!("{}..{}", read_change.base, read_change.end)),
        path_filters: Vec::new(),
        // What was committed cannot be repaired; the next commit can.
        needs_fixing: false,
        reviews_dir: context.settings.reviews.clone(),
        planning_dirs: Vec::new(),
        is_story: |_, _| false,
    };
    match find_change(context.project.root(), &request).and_then(FoundChange::into_parts) {
        Ok(parts) => {
            let Some(first_part) = parts.into_iter().next() else { return ChangeOutcome::Empty };
            let mut change = first_part.change;
            change.range.clone_from(&read_change.title);
            ChangeOutcome::Listed { change: Box::new(change) }
        }
        Err(ChangeError::EmptyChange { .. } | ChangeError::NothingReviewable { .. }) => ChangeOutcome::Empty,
        Err(cause) => environment_fault(cause.to_string()).into(),
    }
}
