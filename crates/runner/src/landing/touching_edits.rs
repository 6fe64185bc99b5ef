//! Three-way merges of files that are lists of lines, such as the board and the ledger of deferred work.
//!
//! [`super::merging`] is for texts, in which a change is best looked at with the lines around it. Here every line stands for itself:
//! edits of neighboring lines are no conflict, and lines that both sides add at the same place are all kept.

use super::line_diff::{LineHunk, list_hunks, split_lines};

/// Lines of the base that one side replaced, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LineEdit<'t> {
    start: usize,
    end: usize,
    new_lines: Vec<&'t str>,
}

impl<'t> LineEdit<'t> {
    /// Takes an edit apart in which each line replaces one line.
    fn split_by_line(self) -> Vec<LineEdit<'t>> {
        if self.end - self.start != self.new_lines.len() {
            return vec![self];
        }
        let numbered_lines = (self.start..self.end).zip(self.new_lines);
        numbered_lines.map(|(start, line)| LineEdit { start, end: start + 1, new_lines: vec![line] }).collect()
    }

    /// Whether this edit has made the other one as well.
    fn includes(&self, other: &LineEdit<'_>) -> bool {
        let has_new_lines = match other.new_lines.len() {
            0 => self.new_lines.is_empty(),
            count => self.new_lines.windows(count).any(|lines| lines == other.new_lines.as_slice()),
        };
        has_new_lines && self.start <= other.start && other.end <= self.end
    }

    /// Whether both change the same lines, or add items of the same name.
    fn conflicts_with(&self, other: &LineEdit<'_>) -> bool {
        let names_same_item = || {
            let mut names = self.new_lines.iter().filter_map(|line| find_item_name(line));
            names.any(|name| other.new_lines.iter().any(|line| find_item_name(line) == Some(name)))
        };
        self.start < other.end && other.start < self.end || names_same_item()
    }
}

/// Returns the name of a numbered item: `DW-3` of `### DW-3: …`.
fn find_item_name(line: &str) -> Option<&str> {
    let heading = line.strip_prefix('#')?.trim_start_matches('#').trim_start();
    heading.split_whitespace().next()?.strip_suffix(':')
}

/// Applies the change from `base_text` to `their_text` to `our_text`. Returns `None` if both sides changed the same lines in
/// different ways. Merging the result once more changes nothing.
pub(crate) fn merge_touching_edits(base_text: &str, our_text: &str, their_text: &str) -> Option<String> {
    let [base_lines, our_lines, their_lines] = [base_text, our_text, their_text].map(split_lines);
    let (our_edits, their_edits) = (list_edits(&base_lines, &our_lines), list_edits(&base_lines, &their_lines));
    let is_missing = |their_edit: &&LineEdit<'_>| !our_edits.iter().any(|our_edit| our_edit.includes(their_edit));
    let missing_edits: Vec<&LineEdit<'_>> = their_edits.iter().filter(is_missing).collect();
    if missing_edits.iter().any(|their_edit| our_edits.iter().any(|our_edit| our_edit.conflicts_with(their_edit))) {
        return None;
    }
    // At the same place our lines follow theirs, because the order is kept.
    let mut edits: Vec<&LineEdit<'_>> = missing_edits.into_iter().chain(&our_edits).collect();
    edits.sort_by_key(|edit| (edit.start, edit.end));
    let mut merged_lines: Vec<&str> = Vec::new();
    let mut position = 0;
    for edit in edits {
        merged_lines.extend(base_lines.get(position..edit.start)?);
        merged_lines.extend(&edit.new_lines);
        position = edit.end;
    }
    merged_lines.extend(base_lines.get(position..)?);
    // A last line without a line break must not run into another one.
    let is_complete = merged_lines.iter().rev().skip(1).all(|line| line.ends_with('\n'));
    is_complete.then(|| merged_lines.concat())
}

fn list_edits<'t>(base_lines: &[&'t str], new_lines: &[&'t str]) -> Vec<LineEdit<'t>> {
    let make_edit = |LineHunk { old, new }: LineHunk| LineEdit {
        start: old.start,
        end: old.end,
        new_lines: new_lines[new].to_vec(),
    };
    list_hunks(base_lines, new_lines).into_iter().map(make_edit).flat_map(LineEdit::split_by_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "1-1: done\n1-2: ready\n1-3: backlog\n1-4: backlog\n";
    const THEIRS: &str = "1-1: done\n1-2: done\n1-3: backlog\n1-4: backlog\n";

    /// Merges, and checks that merging once more changes nothing and that the merge can be taken back.
    fn merge(base_text: &str, our_text: &str, their_text: &str) -> Option<String> {
        let merged_text = merge_touching_edits(base_text, our_text, their_text)?;
        assert_eq!(merge_touching_edits(base_text, &merged_text, their_text).as_deref(), Some(merged_text.as_str()));
        assert_eq!(merge_touching_edits(their_text, &merged_text, base_text).as_deref(), Some(our_text));
        Some(merged_text)
    }

    #[test]
    fn edits_of_neighboring_lines_join() {
        for (our_text, expected) in [
            ("1-1: done\n1-2: ready\n1-3: ready\n1-4: backlog\n", "1-1: done\n1-2: done\n1-3: ready\n1-4: backlog\n"),
            (
                "1-1: review\n1-2: ready\n1-3: ready\n1-4: backlog\n",
                "1-1: review\n1-2: done\n1-3: ready\n1-4: backlog\n",
            ),
            (
                "1-1: done\n1-2: ready\n# mine\n1-3: backlog\n1-4: backlog\n",
                "1-1: done\n1-2: done\n# mine\n1-3: backlog\n1-4: backlog\n",
            ),
            (
                "1-1: done\n# mine\n1-2: ready\n1-3: backlog\n1-4: backlog\n",
                "1-1: done\n# mine\n1-2: done\n1-3: backlog\n1-4: backlog\n",
            ),
            ("1-1: done\n1-2: ready\n1-4: backlog\n", "1-1: done\n1-2: done\n1-4: backlog\n"),
            (BASE, THEIRS),
        ] {
            assert_eq!(merge(BASE, our_text, THEIRS).as_deref(), Some(expected));
        }
    }

    #[test]
    fn two_edits_of_one_line_are_a_conflict() {
        for our_text in [
            "1-1: done\n1-2: review\n1-3: backlog\n1-4: backlog\n",
            "1-1: done\n1-3: backlog\n1-4: backlog\n",
            "1-1: done\n1-2: review\n# mine\n1-3: backlog\n1-4: backlog\n",
        ] {
            assert_eq!(merge_touching_edits(BASE, our_text, THEIRS), None, "{our_text}");
        }
        assert_eq!(merge_touching_edits(BASE, THEIRS, THEIRS).as_deref(), Some(THEIRS));
    }

    #[test]
    fn items_that_both_sides_append_are_kept_unless_they_have_the_same_name() {
        let base_text = "# Deferred\n\n- one\n";
        let merged_text = merge(base_text, "# Deferred\n\n- one\n- mine\n", "# Deferred\n\n- one\n- theirs\n");
        assert_eq!(merged_text.as_deref(), Some("# Deferred\n\n- one\n- theirs\n- mine\n"));
        let [our_text, their_text] = ["mine", "theirs"].map(|title| format!("{base_text}\n### DW-3: {title}\n"));
        assert_eq!(merge_touching_edits(base_text, &our_text, &their_text), None);
        let our_text = our_text.replace("DW-3", "DW-4");
        let expected = format!("{base_text}\n### DW-3: theirs\n\n### DW-4: mine\n");
        assert_eq!(merge_touching_edits(base_text, &our_text, &their_text), Some(expected));
    }

    #[test]
    fn lines_never_run_into_each_other() {
        assert_eq!(merge_touching_edits("a\n", "a\nmine\n", "a\ntheirs"), None);
        assert_eq!(merge_touching_edits("a\n", "a\nmine", "a\ntheirs\n").as_deref(), Some("a\ntheirs\nmine"));
        assert_eq!(merge_touching_edits("a\r\nb\r\n", "a\r\nB\r\n", "A\r\nb\r\n").as_deref(), Some("A\r\nB\r\n"));
    }
}
