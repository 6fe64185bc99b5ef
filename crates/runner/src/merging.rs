//! Three-way merging of texts by lines, and what a merge changed.

use similar::{DiffOp, TextDiff, TextMerge};
use tribunal_core::effect::Hunk;

/// Brings the change from `base` to `theirs` into `ours`. Err: the line of `ours` where both sides changed something.
/// A change that is already there is no conflict.
pub(crate) fn three_way(base: &str, ours: &str, theirs: &str) -> Result<String, u32> {
    let merge = TextMerge::from_lines(base, ours, theirs);
    match merge.conflicts().next() {
        Some(conflict) => Err(conflict.ours_range().start as u32 + 1),
        None => Ok(merge.to_string()),
    }
}

/// What changed, in line numbers of `old`.
pub(crate) fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let diff = TextDiff::from_lines(old, new);
    let changed = diff.ops().iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    changed
        .map(|op| Hunk {
            old_start: op.old_range().start as u32 + 1,
            old_len: op.old_range().len() as u32,
            new_len: op.new_range().len() as u32,
        })
        .collect()
}

/// For people.
pub(crate) fn unified(path: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    diff.unified_diff().header(&format!("a/{path}"), &format!("b/{path}")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "1\n2\n3\n4\n5\n6\n";

    #[test]
    fn changes_in_different_places_join() {
        assert_eq!(
            three_way(BASE, "one\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\n5\nsix\nseven\n"),
            Ok("one\n2\n3\n4\n5\nsix\nseven\n".into())
        );
    }

    #[test]
    fn a_change_that_is_already_there_is_no_conflict() {
        let new = "1\n2\nthree\n4\n5\n6\n";
        assert_eq!(three_way(BASE, new, new), Ok(new.into()));
    }

    #[test]
    fn two_changes_of_one_line_are_a_conflict_at_that_line() {
        assert_eq!(three_way(BASE, "1\n2\nA\n4\n5\n6\n", "1\n2\nB\n4\n5\n6\n"), Err(3));
    }

    #[test]
    fn hunks_count_lines_of_the_old_text() {
        let found = hunks(BASE, "1\n2\nthree\n3b\n4\n6\n");
        let found: Vec<_> = found.iter().map(|h| (h.old_start, h.old_len, h.new_len)).collect();
        assert_eq!(found, [(3, 1, 2), (5, 1, 0)]);
    }
}
