//! Three-way merges of texts by lines, and what a merge changed.

use std::ops::Range;

use similar::{DiffOp, MergeRegion, TextDiff, TextMerge};
use tribunal_core::engine::files::Hunk;

/// Applies the change from `base_text` to `their_text` to `our_text`. The error is the line of `our_text` where both sides
/// changed something.
/// A change that is already there is no conflict.
pub(crate) fn merge_texts(base_text: &str, our_text: &str, their_text: &str) -> Result<String, u32> {
    merge_or_all_conflicts(base_text, our_text, their_text)
        .map_err(|conflicts| conflicts.first().map_or(1, |lines| lines.first_line))
}

/// A place where both sides changed something, with the text of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MergeConflict {
    /// The line in `our_text`, from 1.
    pub line_number: u32,
    pub our_text: String,
    pub their_text: String,
}

impl MergeConflict {
    fn from_region(region: &MergeRegion, our_text: &str, their_text: &str) -> MergeConflict {
        let take_lines = |text: &str, line_range: Range<usize>| -> String {
            text.split_inclusive('\n').skip(line_range.start).take(line_range.len()).collect()
        };
        MergeConflict {
            line_number: region.ours_range().start as u32 + 1,
            our_text: take_lines(our_text, region.ours_range()),
            their_text: take_lines(their_text, region.theirs_range()),
        }
    }
}

/// Merges in the same way. The error is the first place where both sides changed something.
pub(crate) fn merge_or_first_conflict(
    base_text: &str,
    our_text: &str,
    their_text: &str,
) -> Result<String, MergeConflict> {
    let text_merge = TextMerge::from_lines(base_text, our_text, their_text);
    match text_merge.conflicts().next() {
        None => Ok(text_merge.to_string()),
        Some(region) => Err(MergeConflict::from_region(region, our_text, their_text)),
    }
}

/// Lists all places where both sides changed something in different ways.
pub(crate) fn list_conflicts(base_text: &str, our_text: &str, their_text: &str) -> Vec<MergeConflict> {
    let text_merge = TextMerge::from_lines(base_text, our_text, their_text);
    text_merge.conflicts().map(|region| MergeConflict::from_region(region, our_text, their_text)).collect()
}

/// Lines of a text, both ends included, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    pub first_line: u32,
    pub last_line: u32,
}

impl LineRange {
    fn from_indexes(range: Range<usize>) -> LineRange {
        let first_line = range.start as u32 + 1;
        // An empty range stands between two lines; it is reported as the line that follows.
        LineRange { first_line, last_line: (range.end as u32).max(first_line) }
    }
}

/// Merges in the same way. The error has all lines of `our_text` where both sides changed something.
pub(crate) fn merge_or_all_conflicts(
    base_text: &str,
    our_text: &str,
    their_text: &str,
) -> Result<String, Vec<LineRange>> {
    let text_merge = TextMerge::from_lines(base_text, our_text, their_text);
    let conflicts: Vec<LineRange> =
        text_merge.conflicts().map(|region| LineRange::from_indexes(region.ours_range())).collect();
    if conflicts.is_empty() { Ok(text_merge.to_string()) } else { Err(conflicts) }
}

/// Maps lines of `new_text` back to `old_text`; lines that are new there map to those they replaced.
pub(crate) fn map_to_old_lines(lines: LineRange, old_text: &str, new_text: &str) -> LineRange {
    let diff = TextDiff::from_lines(old_text, new_text);
    let wanted_range = lines.first_line as usize - 1..lines.last_line as usize;
    let touched_ranges = diff.ops().iter().filter_map(|op| {
        let (old_range, new_range) = (op.old_range(), op.new_range());
        // Only the overlap of this operation with the wanted lines counts.
        let (overlap_start, overlap_end) =
            (new_range.start.max(wanted_range.start), new_range.end.min(wanted_range.end));
        match op {
            _ if overlap_start >= overlap_end => None,
            DiffOp::Equal { .. } => {
                Some(old_range.start + overlap_start - new_range.start..old_range.start + overlap_end - new_range.start)
            }
            _ => Some(old_range),
        }
    });
    let covering_range = touched_ranges.reduce(|first_range, next_range| first_range.start..next_range.end);
    covering_range.map_or(lines, LineRange::from_indexes)
}

/// Counts added and removed lines.
pub(crate) fn count_changed_lines(old_text: &str, new_text: &str) -> (u32, u32) {
    let hunks = diff_hunks(old_text, new_text);
    (hunks.iter().map(|hunk| hunk.new_len).sum(), hunks.iter().map(|hunk| hunk.old_len).sum())
}

/// Returns what changed, in line numbers of `old_text`.
pub(crate) fn diff_hunks(old_text: &str, new_text: &str) -> Vec<Hunk> {
    let diff = TextDiff::from_lines(old_text, new_text);
    let changed_ops = diff.ops().iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    changed_ops
        .map(|op| Hunk {
            old_start: op.old_range().start as u32 + 1,
            old_len: op.old_range().len() as u32,
            new_len: op.new_range().len() as u32,
        })
        .collect()
}

/// Applies the changes from one text to another except for some hunks. `None` if one of these is not among the changes.
pub(crate) fn merge_without(old_text: &str, new_text: &str, dropped_hunks: &[Hunk]) -> Option<String> {
    let hunks = diff_hunks(old_text, new_text);
    if !dropped_hunks.iter().all(|dropped_hunk| hunks.contains(dropped_hunk)) {
        return None;
    }
    let old_lines: Vec<&str> = old_text.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new_text.split_inclusive('\n').collect();
    let (mut merged_text, mut old_index, mut new_index) = (String::new(), 0, 0);
    for hunk in &hunks {
        let hunk_start = hunk.old_start as usize - 1;
        merged_text.push_str(&old_lines[old_index..hunk_start].concat());
        new_index += hunk_start - old_index;
        let (old_end, new_end) = (hunk_start + hunk.old_len as usize, new_index + hunk.new_len as usize);
        match dropped_hunks.contains(hunk) {
            true => merged_text.push_str(&old_lines[hunk_start..old_end].concat()),
            false => merged_text.push_str(&new_lines[new_index..new_end].concat()),
        }
        (old_index, new_index) = (old_end, new_end);
    }
    merged_text.push_str(&old_lines[old_index..].concat());
    Some(merged_text)
}

/// Renders a patch for display and for `patch`. `None` stands for a file that does not exist on that side.
pub(crate) fn render_patch(relative_path: &str, old_text: Option<&str>, new_text: Option<&str>) -> String {
    let header_name = |side_name: &str, side_text: Option<&str>| match side_text {
        Some(_) => quote_path(&format!("{side_name}/{relative_path}")),
        None => "/dev/null".to_string(),
    };
    let diff = TextDiff::from_lines(old_text.unwrap_or_default(), new_text.unwrap_or_default());
    let patch_text = diff.unified_diff().header(&header_name("a", old_text), &header_name("b", new_text)).to_string();
    let mode_line = match (old_text, new_text) {
        (None, Some(_)) => "new file mode 100644",
        (Some(_), None) => "deleted file mode 100644",
        _ => return patch_text,
    };
    if !patch_text.is_empty() {
        return patch_text;
    }
    // An empty file that is created or deleted has no lines that could show it.
    let [old_header, new_header] = ["a", "b"].map(|side_name| quote_path(&format!("{side_name}/{relative_path}")));
    format!("diff --git {old_header} {new_header}\n{mode_line}\n")
}

/// Quotes a path as git does: unusual ones in quotes.
pub(crate) fn quote_path(relative_path: &str) -> String {
    let needs_quoting = |character: char| character.is_ascii_control() || character == '"' || character == '\\';
    if !relative_path.contains(needs_quoting) {
        return relative_path.to_string();
    }
    let mut quoted = String::from("\"");
    for character in relative_path.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_ascii_control() => quoted.push_str(&format!("\\{:03o}", character as u32)),
            character => quoted.push(character),
        }
    }
    quoted + "\""
}

/// Renders a diff of files with different names, or of one that did not exist (`/dev/null`).
pub(crate) fn render_unified_diff(old_name: &str, new_name: &str, old_text: &str, new_text: &str) -> String {
    let diff = TextDiff::from_lines(old_text, new_text);
    diff.unified_diff().header(old_name, new_name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "1\n2\n3\n4\n5\n6\n";

    #[test]
    fn changes_in_different_places_join() {
        assert_eq!(
            merge_texts(BASE, "one\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\n5\nsix\nseven\n"),
            Ok("one\n2\n3\n4\n5\nsix\nseven\n".into())
        );
    }

    #[test]
    fn hunks_can_be_left_out() {
        let new_text = "one\n2\n3\n5\n6\nseven";
        let hunks = diff_hunks(BASE, new_text);
        assert_eq!(hunks.len(), 3);
        assert_eq!(merge_without(BASE, new_text, &[]).as_deref(), Some(new_text));
        assert_eq!(merge_without(BASE, new_text, &hunks).as_deref(), Some(BASE));
        assert_eq!(merge_without(BASE, new_text, &hunks[1..2]).as_deref(), Some("one\n2\n3\n4\n5\n6\nseven"));
        assert_eq!(merge_without(BASE, new_text, &hunks[..1]).as_deref(), Some("1\n2\n3\n5\n6\nseven"));
        let other_hunk = Hunk { old_start: 2, old_len: 1, new_len: 1 };
        assert_eq!(merge_without(BASE, new_text, &[other_hunk]), None);
    }

    #[test]
    fn a_change_that_is_already_there_is_no_conflict() {
        let new_text = "1\n2\nthree\n4\n5\n6\n";
        assert_eq!(merge_texts(BASE, new_text, new_text), Ok(new_text.into()));
    }

    #[test]
    fn two_changes_of_one_line_are_a_conflict_at_that_line() {
        assert_eq!(merge_texts(BASE, "1\n2\nA\n4\n5\n6\n", "1\n2\nB\n4\n5\n6\n"), Err(3));
    }

    #[test]
    fn a_conflict_shows_both_sides() {
        let conflict = merge_or_first_conflict(BASE, "1\n2\nA\nAA\n4\n5\n6\n", "1\n2\nB\n4\n5\n6\n").unwrap_err();
        assert_eq!(conflict, MergeConflict { line_number: 3, our_text: "A\nAA\n".into(), their_text: "B\n".into() });
    }

    #[test]
    fn hunks_count_lines_of_the_old_text() {
        let found = diff_hunks(BASE, "1\n2\nthree\n3b\n4\n6\n");
        let found: Vec<_> = found.iter().map(|hunk| (hunk.old_start, hunk.old_len, hunk.new_len)).collect();
        assert_eq!(found, [(3, 1, 2), (5, 1, 0)]);
    }

    #[test]
    fn odd_paths_are_written_as_git_does() {
        assert_eq!(quote_path("a/ä b.md"), "a/ä b.md");
        assert_eq!(quote_path("a\"b\\c\nd\te"), r#""a\"b\\c\012d\011e""#);
    }

    #[test]
    fn a_file_that_comes_or_goes_says_so() {
        assert_eq!(render_patch("n", None, Some("1\n")), "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+1\n");
        assert_eq!(render_patch("o", Some("1\n"), None), "--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n");
        assert_eq!(render_patch("e", None, Some("")), "diff --git a/e b/e\nnew file mode 100644\n");
        assert_eq!(render_patch("e", Some(""), None), "diff --git a/e b/e\ndeleted file mode 100644\n");
        assert_eq!(render_patch("e", Some(""), Some("")), "");
    }
}
