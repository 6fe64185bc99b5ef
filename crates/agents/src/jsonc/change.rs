//! Edits a text: every change is made twice, as patches of its bytes and on its content, and both results are
//! compared.

use std::ops::Range;

use super::{Frame, Item, Kind, Node, Problem, Tree, read, render::Dress};

/// One change, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path from the root, in the text before any of the changes.
    pub at: Vec<Step>,
    pub what: What,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Key(String),
    At(usize),
}

/// What is changed at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Adds members to the end of an object.
    Add(Vec<(String, Tree)>),
    /// Appends items to a list.
    Push(Vec<Tree>),
    /// Removes these items of a list or an object, by their positions.
    Remove(Vec<usize>),
    /// Replaces the value.
    Put(Tree),
}

/// Why a text was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The text cannot be read.
    Broken(Problem),
    /// There is nothing at this place that could be changed like this.
    Misplaced,
    /// The result does not contain exactly the old values and the change.
    Unsure,
}

/// Applies all of the changes, or none. No two of them may concern the same place.
pub fn edit(text: &str, changes: &[Change]) -> Result<String, Refusal> {
    let root = read(text).map_err(Refusal::Broken)?.root;
    // The style is taken from the text as a whole; single lines may deviate from it.
    let writer = Writer { text, dress: dress(text, &root), one_line: is_one_line(text, &root) };
    let mut patches = Vec::new();
    let mut expected = root.tree();
    let mut placed = Vec::with_capacity(changes.len());
    for change in changes {
        let node = change.at.iter().try_fold(&root, step).ok_or(Refusal::Misplaced)?;
        writer.patch(node, &change.what, &mut patches).ok_or(Refusal::Misplaced)?;
        placed.push((node.span.start, change));
    }
    // Inner values begin later in the text. They are changed first, so that the positions of outer items stay valid.
    placed.sort_by_key(|(start, _)| std::cmp::Reverse(*start));
    for (_, change) in placed {
        let there = change.at.iter().try_fold(&mut expected, inside).ok_or(Refusal::Misplaced)?;
        carry_out(there, &change.what).ok_or(Refusal::Misplaced)?;
    }
    // The text is read again: a patch at a wrong offset could otherwise go unnoticed.
    let new = apply(text, patches).ok_or(Refusal::Misplaced)?;
    match read(&new) {
        Ok(document) if document.root.tree() == expected => Ok(new),
        _ => Err(Refusal::Unsure),
    }
}

/// Follows one step of a path in the tree.
fn step<'a>(node: &'a Node, step: &Step) -> Option<&'a Node> {
    match step {
        Step::Key(key) => node.get(key),
        Step::At(index) => node.items().get(*index).map(|item| &item.value),
    }
}

/// Follows one step of a path in the content.
fn inside<'a>(tree: &'a mut Tree, step: &Step) -> Option<&'a mut Tree> {
    match (tree, step) {
        (Tree::Map(items), Step::Key(key)) => {
            items.iter_mut().find(|(known, _)| known == key).map(|(_, value)| value)
        }
        (Tree::Map(items), Step::At(index)) => items.get_mut(*index).map(|(_, value)| value),
        (Tree::List(items), Step::At(index)) => items.get_mut(*index),
        _ => None,
    }
}

/// Applies a change to the content.
fn carry_out(tree: &mut Tree, what: &What) -> Option<()> {
    match (tree, what) {
        (Tree::Map(items), What::Add(new)) => items.extend(new.iter().cloned()),
        (Tree::List(items), What::Push(new)) => items.extend(new.iter().cloned()),
        (Tree::Map(items), What::Remove(gone)) => keep(items, gone),
        (Tree::List(items), What::Remove(gone)) => keep(items, gone),
        (tree, What::Put(new)) => *tree = new.clone(),
        _ => return None,
    }
    Some(())
}

fn keep<T>(items: &mut Vec<T>, gone: &[usize]) {
    let mut index = 0;
    items.retain(|_| {
        index += 1;
        !gone.contains(&(index - 1))
    });
}

/// Applies patches to the text; `None` if two of them overlap.
fn apply(text: &str, mut patches: Vec<(Range<usize>, String)>) -> Option<String> {
    patches.sort_by_key(|(range, _)| range.start);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, new) in patches {
        out.push_str(text.get(at..range.start)?);
        out.push_str(&new);
        at = range.end;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

/// Detects the style of a text from its first item.
fn dress(text: &str, root: &Node) -> Dress {
    let first = root.items().first();
    let indent = first.map(|item| indent(text, item.start)).unwrap_or_default();
    Dress {
        unit: if indent.is_empty() { "  ".to_string() } else { indent.to_string() },
        line_end: if text.contains("\r\n") { "\r\n" } else { "\n" },
        // A text on several lines is spaced by convention; on one line, only its own spaces tell.
        spaced: !is_one_line(text, root) || text.contains(": ") || text.contains(", "),
    }
}

/// Whether a text with items is written on a single line.
fn is_one_line(text: &str, root: &Node) -> bool {
    !root.items().is_empty() && !text.get(root.span.clone()).unwrap_or_default().contains('\n')
}

/// The white space at the beginning of the line of a byte.
fn indent(text: &str, byte: usize) -> &str {
    let start = text.get(..byte).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let line = text.get(start..byte).unwrap_or_default();
    let end = line.find(|c| c != ' ' && c != '\t').unwrap_or(line.len());
    line.get(..end).unwrap_or_default()
}

struct Writer<'a> {
    text: &'a str,
    dress: Dress,
    one_line: bool,
}

type Patches = Vec<(Range<usize>, String)>;

/// A list or an object that is changed.
struct Container<'a> {
    node: &'a Node,
    items: &'a [Item],
    frame: &'a Frame,
}

impl Writer<'_> {
    /// Adds the patches of one change; `None` if such a value cannot be changed like this.
    fn patch(&self, node: &Node, what: &What, patches: &mut Patches) -> Option<()> {
        match (&node.kind, what) {
            (Kind::Map(items, frame), What::Add(new)) => {
                // A key that exists already would become a duplicate.
                if new.iter().any(|(key, _)| items.iter().any(|item| item.key == *key)) {
                    return None;
                }
                let new: Vec<(Option<&str>, &Tree)> =
                    new.iter().map(|(key, value)| (Some(key.as_str()), value)).collect();
                self.add(&Container { node, items, frame }, &new, patches);
            }
            (Kind::List(items, frame), What::Push(new)) => {
                let new: Vec<(Option<&str>, &Tree)> = new.iter().map(|value| (None, value)).collect();
                self.add(&Container { node, items, frame }, &new, patches);
            }
            (Kind::Map(items, frame) | Kind::List(items, frame), What::Remove(gone)) => {
                self.remove(&Container { node, items, frame }, gone, patches)?;
            }
            // A replaced value keeps the style of the whole text, not its own: it may have been on one line by
            // chance.
            (_, What::Put(new)) => {
                let indent = indent(self.text, node.span.start);
                let new = if self.one_line { self.dress.inline(new) } else { self.dress.lines(new, indent) };
                patches.push((node.span.clone(), new));
            }
            _ => return None,
        }
        Some(())
    }

    fn add(&self, container: &Container<'_>, new: &[(Option<&str>, &Tree)], patches: &mut Patches) {
        let &Container { node, items, frame } = container;
        if new.is_empty() {
            return;
        }
        let close = node.span.end - 1;
        let slice = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        let base = indent(self.text, node.span.start);
        // The container is empty: there is no item whose layout could be followed.
        let (Some(first), Some(last)) = (items.first(), items.last()) else {
            if self.one_line && !frame.tail_is_line {
                patches.push((
                    frame.tail..frame.tail,
                    self.inline(new, if self.dress.spaced { " " } else { "" }),
                ));
                return;
            }
            let end = self.dress.line_end;
            let inner = format!("{base}{}", self.dress.unit);
            patches.push((frame.tail..frame.tail, self.lines(new, &inner)));
            // The closing bracket moves to a line of its own, unless it is on one already.
            if !slice(frame.tail..close).contains('\n') {
                patches.push((frame.tail..close, format!("{end}{base}")));
            }
            return;
        };
        let has_comma = frame.commas.len() == items.len();
        // The comma goes directly behind the last value, before any comment that follows it.
        if !has_comma {
            patches.push((last.value.span.end..last.value.span.end, ",".to_string()));
        }
        let on_own_lines = slice(node.span.start..first.start).contains('\n');
        // Behind a line comment nothing can be added on the same line.
        let mut text = if on_own_lines || frame.tail_is_line {
            let inner = match on_own_lines {
                true => indent(self.text, last.start).to_string(),
                false => format!("{}{}", indent(self.text, close), self.dress.unit),
            };
            self.lines(new, &inner)
        } else {
            let blank = if self.dress.spaced { " " } else { "" };
            // With only one item there is no separator to follow yet.
            let like_the_last = slice(last.space..last.start);
            let blank = if items.len() < 2 || like_the_last.contains('\n') { blank } else { like_the_last };
            format!("{blank}{}", self.inline(new, blank))
        };
        // A list with a trailing comma keeps having one.
        if has_comma {
            text.push(',');
        }
        patches.push((frame.tail..frame.tail, text));
    }

    /// Renders each item on a line of its own, with the line end before it.
    fn lines(&self, new: &[(Option<&str>, &Tree)], indent: &str) -> String {
        let line = |(key, value): &(Option<&str>, &Tree)| {
            let value = self.dress.lines(value, indent);
            let item = key.map_or_else(|| value.clone(), |key| self.dress.keyed(key, &value));
            format!("{}{indent}{item}", self.dress.line_end)
        };
        new.iter().map(line).collect::<Vec<_>>().join(",")
    }

    fn inline(&self, new: &[(Option<&str>, &Tree)], blank: &str) -> String {
        let item = |(key, value): &(Option<&str>, &Tree)| {
            let value = self.dress.inline(value);
            key.map_or_else(|| value.clone(), |key| self.dress.keyed(key, &value))
        };
        new.iter().map(item).collect::<Vec<_>>().join(&format!(",{blank}"))
    }

    fn remove(&self, container: &Container<'_>, gone: &[usize], patches: &mut Patches) -> Option<()> {
        let &Container { node, items, frame } = container;
        if gone.iter().any(|index| *index >= items.len()) {
            return None;
        }
        let is_gone: Vec<bool> = (0..items.len()).map(|index| gone.contains(&index)).collect();
        let last_kept = is_gone.iter().rposition(|gone| !gone);
        // Nothing is left, not even a comment: only the brackets stay.
        if last_kept.is_none() && !frame.has_comments {
            patches.push((node.span.start + 1..node.span.end - 1, String::new()));
            return Some(());
        }
        let mut index = 0;
        // Adjacent items are removed together, so that the white space between them goes, too.
        while let Some(first) = items.get(index) {
            index += 1;
            if is_gone.get(index - 1) != Some(&true) {
                continue;
            }
            let mut last = first;
            let end =
                |index: usize, last: &Item| frame.commas.get(index).map_or(last.value.span.end, |at| at + 1);
            // Items that follow without a comment between them are removed in one piece.
            while let Some(next) = items.get(index).filter(|_| is_gone.get(index) == Some(&true)) {
                let between = self.text.get(last.value.span.end..next.start).unwrap_or_default();
                if !between.trim_start_matches(',').trim().is_empty() {
                    break;
                }
                last = next;
                index += 1;
            }
            let end = end(index - 1, last);
            let piece = first.start..last.value.span.end;
            let (start, behind) = self.white_space(first, &piece, end, is_gone.get(index).copied());
            patches.push((start..piece.end, String::new()));
            // The comma may be separated from the value by a comment, so that it is a patch of its own.
            if end > piece.end {
                patches.push((end - 1..end, String::new()));
            }
            if behind > 0 {
                patches.push((end..end + behind, String::new()));
            }
        }
        // The comma behind the item that is now the last one belonged to what was removed.
        let had_comma = frame.commas.len() == items.len();
        if let Some(kept) = last_kept.filter(|kept| *kept + 1 < items.len() && !had_comma) {
            let comma = *frame.commas.get(kept)?;
            patches.push((comma..comma + 1, String::new()));
        }
        Some(())
    }

    /// Where the white space begins that is removed with a piece, and how much is removed behind it. `first_item` is
    /// the first item of the piece; `next_is_removed` says whether the item behind it is removed as well.
    fn white_space(
        &self,
        item: &Item,
        piece: &Range<usize>,
        end: usize,
        next: Option<bool>,
    ) -> (usize, usize) {
        let slice = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        let before = slice(item.space..item.start);
        let after = self.text.get(end..).unwrap_or_default();
        let behind = after.trim_start_matches([' ', '\t']);
        let blanks = after.len() - behind.len();
        let line_ends = behind.starts_with(['\r', '\n']);
        // Empty lines before it stay: only the last line end is removed.
        let start = match before.rfind('\n') {
            Some(at) if slice(item.space..item.space + at).ends_with('\r') => item.space + at - 1,
            Some(at) => item.space + at,
            None => item.space,
        };
        // The only line end behind a comment may go if another one takes its place.
        let replaced = line_ends && next != Some(true) && end - piece.end <= 1;
        let needed = item.after_line && start == item.space && !replaced;
        let first_on_its_line = start == item.start && next == Some(false) && !line_ends;
        // The four cases: the line end must stay with or without an item following on the same line, or it may go.
        match (needed, next) {
            (true, Some(false)) if !line_ends => (item.start, blanks),
            (true, _) => (item.start, 0),
            (false, _) if first_on_its_line => (item.start, blanks),
            (false, _) => (start, 0),
        }
    }
}
