//! Three-way merges of texts by lines, and what a merge changed.

use std::ops::Range;

use tribunal_engine::files::Hunk;

use super::line_diff::{LineHunk, list_hunks, render_unified_diff, split_lines};

/// A place where at least one side changed the lines of the base.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChangedPlace {
    base: Range<usize>,
    ours: Range<usize>,
    theirs: Range<usize>,
    we_changed: bool,
    they_changed: bool,
}

/// Lists the places that either side changed. Changes of both without an unchanged line between them are one place.
fn list_changed_places(our_hunks: Vec<LineHunk>, their_hunks: Vec<LineHunk>) -> Vec<ChangedPlace> {
    let mut hunks: Vec<(LineHunk, bool)> = our_hunks.into_iter().map(|hunk| (hunk, true)).collect();
    hunks.extend(their_hunks.into_iter().map(|hunk| (hunk, false)));
    hunks.sort_unstable_by_key(|(hunk, is_ours)| (hunk.old.start, hunk.old.end, *is_ours));
    let mut places: Vec<ChangedPlace> = Vec::new();
    // The lines that each side has more than the base, up to the place.
    let (mut our_surplus, mut their_surplus) = (0, 0);
    for (LineHunk { old, new }, is_ours) in hunks {
        let at = |position: usize, surplus: isize| position.wrapping_add_signed(surplus);
        if places.last().is_none_or(|place| place.base.end < old.start) {
            let (our_start, their_start) = (at(old.start, our_surplus), at(old.start, their_surplus));
            places.push(ChangedPlace {
                base: old.start..old.start,
                ours: our_start..our_start,
                theirs: their_start..their_start,
                we_changed: false,
                they_changed: false,
            });
        }
        let Some(place) = places.last_mut() else { continue };
        let added_lines = new.len() as isize - old.len() as isize;
        if is_ours {
            our_surplus += added_lines;
            place.we_changed = true;
        } else {
            their_surplus += added_lines;
            place.they_changed = true;
        }
        place.base.end = place.base.end.max(old.end);
        place.ours.end = at(place.base.end, our_surplus);
        place.theirs.end = at(place.base.end, their_surplus);
    }
    places
}

/// Lines that both sides changed in different ways, counted from 0.
struct ConflictLines {
    ours: Range<usize>,
    theirs: Range<usize>,
}

/// Applies the change from the base to their lines to ours. A change that is already there is no conflict.
fn merge_lines(base_lines: &[&str], our_lines: &[&str], their_lines: &[&str]) -> Result<String, Vec<ConflictLines>> {
    let (mut merged_text, mut conflicts, mut position) = (String::new(), Vec::new(), 0);
    for place in list_changed_places(list_hunks(base_lines, our_lines), list_hunks(base_lines, their_lines)) {
        merged_text.extend(base_lines[position..place.base.start].iter().copied());
        position = place.base.end;
        let (ours, theirs) = (&our_lines[place.ours.clone()], &their_lines[place.theirs.clone()]);
        if place.we_changed && place.they_changed && ours != theirs {
            conflicts.push(ConflictLines { ours: place.ours, theirs: place.theirs });
        }
        merged_text.extend(if place.we_changed { ours } else { theirs }.iter().copied());
    }
    merged_text.extend(base_lines[position..].iter().copied());
    if conflicts.is_empty() { Ok(merged_text) } else { Err(conflicts) }
}

fn merge_by_lines(base_text: &str, our_text: &str, their_text: &str) -> Result<String, Vec<ConflictLines>> {
    merge_lines(&split_lines(base_text), &split_lines(our_text), &split_lines(their_text))
}

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

/// Merges in the same way. The error is the first place where both sides changed something.
pub(crate) fn merge_or_first_conflict(
    base_text: &str,
    our_text: &str,
    their_text: &str,
) -> Result<String, MergeConflict> {
    merge_or_list_conflicts(base_text, our_text, their_text).map_err(|mut conflicts| conflicts.swap_remove(0))
}

/// Lists all places where both sides changed something in different ways.
pub(crate) fn list_conflicts(base_text: &str, our_text: &str, their_text: &str) -> Vec<MergeConflict> {
    merge_or_list_conflicts(base_text, our_text, their_text).err().unwrap_or_default()
}

fn merge_or_list_conflicts(base_text: &str, our_text: &str, their_text: &str) -> Result<String, Vec<MergeConflict>> {
    let (our_lines, their_lines) = (split_lines(our_text), split_lines(their_text));
    let describe_conflict = |conflict: ConflictLines| MergeConflict {
        line_number: conflict.ours.start as u32 + 1,
        our_text: our_lines[conflict.ours].concat(),
        their_text: their_lines[conflict.theirs].concat(),
    };
    merge_lines(&split_lines(base_text), &our_lines, &their_lines)
        .map_err(|conflicts| conflicts.into_iter().map(describe_conflict).collect())
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
    let describe_lines = |conflict: ConflictLines| LineRange::from_indexes(conflict.ours);
    merge_by_lines(base_text, our_text, their_text)
        .map_err(|conflicts| conflicts.into_iter().map(describe_lines).collect())
}

/// Maps lines of `new_text` back to `old_text`; lines that are new there map to those they replaced.
pub(crate) fn map_to_old_lines(lines: LineRange, old_text: &str, new_text: &str) -> LineRange {
    let wanted_range = lines.first_line as usize - 1..lines.last_line as usize;
    let (old_lines, new_lines) = (split_lines(old_text), split_lines(new_text));
    let (mut touched_ranges, mut old_position, mut new_position) = (Vec::new(), 0, 0);
    let mut hunks = list_hunks(&old_lines, &new_lines);
    hunks.push(LineHunk { old: old_lines.len()..old_lines.len(), new: new_lines.len()..new_lines.len() });
    for LineHunk { old, new } in hunks {
        // Of the lines that are unchanged before the hunk only the wanted ones count, of the hunk all that were replaced.
        let unchanged_start = wanted_range.start.max(new_position);
        let unchanged_end = wanted_range.end.min(new.start);
        if unchanged_start < unchanged_end {
            let to_old = |position: usize| position - new_position + old_position;
            touched_ranges.push(to_old(unchanged_start)..to_old(unchanged_end));
        }
        if wanted_range.start.max(new.start) < wanted_range.end.min(new.end) {
            touched_ranges.push(old.clone());
        }
        (old_position, new_position) = (old.end, new.end);
    }
    let covering_range = touched_ranges.into_iter().reduce(|first_range, next_range| first_range.start..next_range.end);
    covering_range.map_or(lines, LineRange::from_indexes)
}

/// Counts added and removed lines.
pub(crate) fn count_changed_lines(old_text: &str, new_text: &str) -> (u32, u32) {
    let hunks = diff_hunks(old_text, new_text);
    (hunks.iter().map(|hunk| hunk.new_len).sum(), hunks.iter().map(|hunk| hunk.old_len).sum())
}

/// Returns what changed, in line numbers of `old_text`.
pub(crate) fn diff_hunks(old_text: &str, new_text: &str) -> Vec<Hunk> {
    let hunks = list_hunks(&split_lines(old_text), &split_lines(new_text));
    let describe_hunk = |hunk: LineHunk| Hunk {
        old_start: hunk.old.start as u32 + 1,
        old_len: hunk.old.len() as u32,
        new_len: hunk.new.len() as u32,
    };
    hunks.into_iter().map(describe_hunk).collect()
}

/// Applies the changes from one text to another except for some hunks. `None` if one of these is not among the changes.
pub(crate) fn merge_without(old_text: &str, new_text: &str, dropped_hunks: &[Hunk]) -> Option<String> {
    let hunks = diff_hunks(old_text, new_text);
    if !dropped_hunks.iter().all(|dropped_hunk| hunks.contains(dropped_hunk)) {
        return None;
    }
    let (old_lines, new_lines) = (split_lines(old_text), split_lines(new_text));
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
    let (old_name, new_name) = (header_name("a", old_text), header_name("b", new_text));
    let patch_text =
        render_unified_diff(&old_name, &new_name, old_text.unwrap_or_default(), new_text.unwrap_or_default());
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    #[test]
    fn changes_without_an_unchanged_line_between_them_are_one_place() {
        // A line added next to a line that the other side changed: their order is unknown.
        assert_eq!(merge_texts(BASE, "1\n2\nours\n3\n4\n5\n6\n", "1\n2\nthree\n4\n5\n6\n"), Err(3));
        assert_eq!(
            merge_texts(BASE, "1\n2\nours\n3\n4\n5\n6\n", "1\n2\n3\nfour\n5\n6\n"),
            Ok("1\n2\nours\n3\nfour\n5\n6\n".into())
        );
        // A change of theirs joins two of ours.
        let conflicts = list_conflicts(BASE, "1\ntwo\n3\nfour\n5\n6\n", "1\n2b\n3b\n4b\n5\n6\n");
        let conflict_texts: Vec<_> =
            conflicts.iter().map(|it| (it.our_text.as_str(), it.their_text.as_str())).collect();
        assert_eq!(conflict_texts, [("two\n3\nfour\n", "2b\n3b\n4b\n")]);
    }

    /// Ten lines, each of them kept, deleted, replaced or followed by a new one. All lines differ, so there is only one
    /// way to compare two texts.
    fn edit_lines(side: char, edits: &[u8]) -> String {
        let edit_line = |(index, edit): (usize, &u8)| match edit {
            0 => String::new(),
            1 => format!("{side}{index}\n"),
            2 => format!("{index}\n{side}{index}\n"),
            _ => format!("{index}\n"),
        };
        edits.iter().enumerate().map(edit_line).collect()
    }

    /// What git makes of three texts; `None` if it finds a conflict.
    fn merge_by_git(base: &str, ours: &str, theirs: &str) -> Option<String> {
        let temp_dir = tempfile::tempdir().unwrap();
        let [our_path, base_path, their_path] =
            [("ours", ours), ("base", base), ("theirs", theirs)].map(|(name, text)| {
                let path = temp_dir.path().join(name);
                std::fs::write(&path, text).unwrap();
                path
            });
        let output = std::process::Command::new("git")
            .args(["merge-file", "--stdout"])
            .args([our_path, base_path, their_path])
            .output()
            .unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn git_merges_to_the_same_text(
            our_edits in proptest::collection::vec(0..9u8, 10),
            their_edits in proptest::collection::vec(0..9u8, 10),
        ) {
            let base = edit_lines('b', &[9; 10]);
            let (ours, theirs) = (edit_lines('o', &our_edits), edit_lines('t', &their_edits));
            prop_assert_eq!(merge_texts(&base, &ours, &theirs).ok(), merge_by_git(&base, &ours, &theirs));
        }
    }

    proptest! {
        #[test]
        fn merging_has_no_favourite_side(base in "[abc\n]{0,30}", ours in "[abc\n]{0,30}", theirs in "[abc\n]{0,30}") {
            prop_assert_eq!(merge_texts(&base, &base, &theirs), Ok(theirs.clone()));
            prop_assert_eq!(merge_texts(&base, &ours, &base), Ok(ours.clone()));
            prop_assert_eq!(merge_texts(&base, &ours, &ours), Ok(ours.clone()));
            let swap = |conflict: MergeConflict| (conflict.their_text, conflict.our_text);
            let keep = |conflict: MergeConflict| (conflict.our_text, conflict.their_text);
            let merged = merge_or_list_conflicts(&base, &ours, &theirs);
            let merged_backwards = merge_or_list_conflicts(&base, &theirs, &ours);
            prop_assert_eq!(
                merged.map_err(|conflicts| conflicts.into_iter().map(keep).collect::<Vec<_>>()),
                merged_backwards.map_err(|conflicts| conflicts.into_iter().map(swap).collect::<Vec<_>>())
            );
        }
    }
}
