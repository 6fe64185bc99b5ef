//! Differences of texts by lines.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

/// Lines that were replaced, and the lines that stand there now, counted from 0. Between two hunks a line is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LineHunk {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

pub(super) fn split_lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Lists what changed, in the order of the lines.
pub(super) fn list_hunks(old_lines: &[&str], new_lines: &[&str]) -> Vec<LineHunk> {
    let mut input = InternedInput::default();
    input.update_before(old_lines.iter().copied());
    input.update_after(new_lines.iter().copied());
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    // A change that could stand at several places stands where git shows it.
    diff.postprocess_lines(&input);
    let make_range = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks().map(|hunk| LineHunk { old: make_range(hunk.before), new: make_range(hunk.after) }).collect()
}

/// The lines around a change that a patch shows.
const CONTEXT_LINES: usize = 3;

/// Renders the difference of two texts as `diff -u` does; the empty text if there is none.
pub(crate) fn render_unified_diff(old_name: &str, new_name: &str, old_text: &str, new_text: &str) -> String {
    let (old_lines, new_lines) = (split_lines(old_text), split_lines(new_text));
    let hunks = list_hunks(&old_lines, &new_lines);
    let mut patch_text = String::new();
    if !hunks.is_empty() {
        patch_text.push_str(&format!("--- {old_name}\n+++ {new_name}\n"));
    }
    // Hunks whose context would touch stand together.
    for group in hunks.chunk_by(|hunk, next_hunk| next_hunk.old.start - hunk.old.end <= 2 * CONTEXT_LINES) {
        push_hunks(&mut patch_text, &old_lines, &new_lines, group);
    }
    patch_text
}

fn push_hunks(patch_text: &mut String, old_lines: &[&str], new_lines: &[&str], hunks: &[LineHunk]) {
    let [first_hunk, ..] = hunks else { return };
    let lines_before = first_hunk.old.start.min(CONTEXT_LINES);
    let mut old_position = first_hunk.old.start - lines_before;
    let (mut old_count, mut new_count, mut group_text) = (0, 0, String::new());
    let mut push_lines = |sign: char, lines: &[&str]| {
        old_count += if sign == '+' { 0 } else { lines.len() };
        new_count += if sign == '-' { 0 } else { lines.len() };
        for line in lines {
            let line_end = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
            group_text.extend([sign.encode_utf8(&mut [0; 4]), *line, line_end]);
        }
    };
    for hunk in hunks {
        push_lines(' ', &old_lines[old_position..hunk.old.start]);
        push_lines('-', &old_lines[hunk.old.clone()]);
        push_lines('+', &new_lines[hunk.new.clone()]);
        old_position = hunk.old.end;
    }
    push_lines(' ', &old_lines[old_position..old_lines.len().min(old_position + CONTEXT_LINES)]);
    let old_header = format_range(first_hunk.old.start - lines_before, old_count);
    let new_header = format_range(first_hunk.new.start - lines_before, new_count);
    patch_text.push_str(&format!("@@ -{old_header} +{new_header} @@\n{group_text}"));
}

/// Formats the lines of a hunk as patches name them. A place without lines is that behind the line it names.
fn format_range(start: usize, count: usize) -> String {
    match count {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{count}", start + 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbered_text(count: u32) -> String {
        (1..=count).map(|number| format!("{number}\n")).collect()
    }

    #[test]
    fn near_changes_stand_under_one_header() {
        let old_text = numbered_text(30);
        let new_text = old_text.replace("\n5\n", "\nfive\n").replace("\n12\n", "\n").replace("\n30\n", "\n30");
        assert_eq!(
            render_unified_diff("a/x", "b/x", &old_text, &new_text),
            "--- a/x\n+++ b/x\n@@ -2,14 +2,13 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n 10\n 11\n-12\n 13\n 14\n 15\n\
             @@ -27,4 +26,4 @@\n 27\n 28\n 29\n-30\n+30\n\\ No newline at end of file\n"
        );
        assert_eq!(render_unified_diff("a", "b", &old_text, &old_text), "");
    }

    proptest! {
        #[test]
        fn hunks_turn_the_old_lines_into_the_new_ones(old in "[ab\n]{0,24}", new in "[ab\n]{0,24}") {
            let (old_lines, new_lines) = (split_lines(&old), split_lines(&new));
            let (mut lines, mut position) = (Vec::<&str>::new(), 0);
            for hunk in list_hunks(&old_lines, &new_lines) {
                // Between two hunks there is an unchanged line.
                prop_assert!(position == 0 || position < hunk.old.start);
                prop_assert_eq!(hunk.new.start, lines.len() + hunk.old.start - position);
                lines.extend(&old_lines[position..hunk.old.start]);
                lines.extend(&new_lines[hunk.new]);
                position = hunk.old.end;
            }
            lines.extend(&old_lines[position..]);
            prop_assert_eq!(lines, new_lines);
        }
    }
}
