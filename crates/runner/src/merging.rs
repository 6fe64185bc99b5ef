//! Three-way merges of texts by lines, and what a merge changed.

use std::ops::Range;

use similar::{DiffOp, TextDiff, TextMerge};
use tribunal_core::files::Hunk;

/// Applies the change from `base_text` to `their_text` to `our_text`. The error is the line of `our_text` where both sides
/// changed something.
/// A change that is already there is no conflict.
pub(crate) fn three_way(base: &str, ours: &str, theirs: &str) -> Result<String, u32> {
    merged(base, ours, theirs).map_err(|conflicts| conflicts.first().map_or(1, |lines| lines.first))
}

/// A place where both sides changed something, with the text of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The line in `our_text`, from 1.
    pub line: u32,
    pub ours: String,
    pub theirs: String,
}

/// Merges in the same way. The error is the first place where both sides changed something.
pub(crate) fn merge(base: &str, ours: &str, theirs: &str) -> Result<String, Conflict> {
    let merge = TextMerge::from_lines(base, ours, theirs);
    let part = |text: &str, lines: Range<usize>| -> String {
        text.split_inclusive('\n').skip(lines.start).take(lines.len()).collect()
    };
    match merge.conflicts().next() {
        None => Ok(merge.to_string()),
        Some(region) => Err(Conflict {
            line: region.ours_range().start as u32 + 1,
            ours: part(ours, region.ours_range()),
            theirs: part(theirs, region.theirs_range()),
        }),
    }
}

/// Lines of a text, both ends included, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    pub first: u32,
    pub last: u32,
}

impl Lines {
    fn of(range: Range<usize>) -> Lines {
        let first = range.start as u32 + 1;
        // An empty range stands between two lines; it is reported as the line that follows.
        Lines { first, last: (range.end as u32).max(first) }
    }
}

/// Merges in the same way. The error has all lines of `our_text` where both sides changed something.
pub(crate) fn merged(base: &str, ours: &str, theirs: &str) -> Result<String, Vec<Lines>> {
    let merge = TextMerge::from_lines(base, ours, theirs);
    let conflicts: Vec<Lines> = merge.conflicts().map(|region| Lines::of(region.ours_range())).collect();
    if conflicts.is_empty() { Ok(merge.to_string()) } else { Err(conflicts) }
}

/// Maps lines of `new_text` back to `old_text`; lines that are new there map to those they replaced.
pub(crate) fn traced_back(lines: Lines, old: &str, new: &str) -> Lines {
    let diff = TextDiff::from_lines(old, new);
    let wanted = lines.first as usize - 1..lines.last as usize;
    let touched = diff.ops().iter().filter_map(|op| {
        let (old, new) = (op.old_range(), op.new_range());
        // Only the overlap of this operation with the wanted lines counts.
        let (from, to) = (new.start.max(wanted.start), new.end.min(wanted.end));
        match op {
            _ if from >= to => None,
            DiffOp::Equal { .. } => Some(old.start + from - new.start..old.start + to - new.start),
            _ => Some(old),
        }
    });
    let whole = touched.reduce(|one, next| one.start..next.end);
    whole.map_or(lines, Lines::of)
}

/// Counts added and removed lines.
pub(crate) fn counted(old: &str, new: &str) -> (u32, u32) {
    let hunks = hunks(old, new);
    (hunks.iter().map(|hunk| hunk.new_len).sum(), hunks.iter().map(|hunk| hunk.old_len).sum())
}

/// Returns what changed, in line numbers of `old_text`.
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

/// Renders a patch for display and for `patch`. `None` stands for a file that does not exist on that side.
pub(crate) fn patch(path: &str, old: Option<&str>, new: Option<&str>) -> String {
    let side = |side: &str, text: Option<&str>| match text {
        Some(_) => c_quoted(&format!("{side}/{path}")),
        None => "/dev/null".to_string(),
    };
    let diff = TextDiff::from_lines(old.unwrap_or_default(), new.unwrap_or_default());
    let text = diff.unified_diff().header(&side("a", old), &side("b", new)).to_string();
    let mode = match (old, new) {
        (None, Some(_)) => "new file mode 100644",
        (Some(_), None) => "deleted file mode 100644",
        _ => return text,
    };
    if !text.is_empty() {
        return text;
    }
    // An empty file that is created or deleted has no lines that could show it.
    let [a, b] = ["a", "b"].map(|side| c_quoted(&format!("{side}/{path}")));
    format!("diff --git {a} {b}\n{mode}\n")
}

/// Quotes a path as git does: unusual ones in quotes.
pub(crate) fn c_quoted(path: &str) -> String {
    let odd = |c: char| c.is_ascii_control() || c == '"' || c == '\\';
    if !path.contains(odd) {
        return path.to_string();
    }
    let mut quoted = String::from("\"");
    for c in path.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\{:03o}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Renders a diff of files with different names, or of one that did not exist (`/dev/null`).
pub(crate) fn unified_as(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    diff.unified_diff().header(old_name, new_name).to_string()
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
    fn a_conflict_shows_both_sides() {
        let conflict = merge(BASE, "1\n2\nA\nAA\n4\n5\n6\n", "1\n2\nB\n4\n5\n6\n").unwrap_err();
        assert_eq!(conflict, Conflict { line: 3, ours: "A\nAA\n".into(), theirs: "B\n".into() });
    }

    #[test]
    fn hunks_count_lines_of_the_old_text() {
        let found = hunks(BASE, "1\n2\nthree\n3b\n4\n6\n");
        let found: Vec<_> = found.iter().map(|h| (h.old_start, h.old_len, h.new_len)).collect();
        assert_eq!(found, [(3, 1, 2), (5, 1, 0)]);
    }

    #[test]
    fn odd_paths_are_written_as_git_does() {
        assert_eq!(c_quoted("a/ä b.md"), "a/ä b.md");
        assert_eq!(c_quoted("a\"b\\c\nd\te"), r#""a\"b\\c\012d\011e""#);
    }

    #[test]
    fn a_file_that_comes_or_goes_says_so() {
        assert_eq!(patch("n", None, Some("1\n")), "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+1\n");
        assert_eq!(patch("o", Some("1\n"), None), "--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n");
        assert_eq!(patch("e", None, Some("")), "diff --git a/e b/e\nnew file mode 100644\n");
        assert_eq!(patch("e", Some(""), None), "diff --git a/e b/e\ndeleted file mode 100644\n");
        assert_eq!(patch("e", Some(""), Some("")), "");
    }
}
