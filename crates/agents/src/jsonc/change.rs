//! Changing a text: patches for its bytes beside the same change of what it says, and the one held against the other.

use std::ops::Range;

use super::{Frame, Item, Kind, Node, Problem, Tree, read, render::Dress};

/// One change, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// From the root; as the text was before any of the changes.
    pub at: Vec<Step>,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Key(String),
    At(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// To an object, behind what it has.
    Add(Vec<(String, Tree)>),
    /// To a list, behind what it has.
    Push(Vec<Tree>),
    /// These items of a list or an object, by their numbers.
    Remove(Vec<usize>),
    /// Instead of what stands there.
    Put(Tree),
}

/// Why a text was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It cannot be read.
    Broken(Problem),
    /// There is nothing there that could be changed like this.
    Misplaced,
    /// What came out does not say exactly the old things and the change.
    Unsure,
}

/// All of the changes, or none. No two of them may be about the same place.
pub fn edit(text: &str, changes: &[Change]) -> Result<String, Refusal> {
    let root = read(text).map_err(Refusal::Broken)?.root;
    let writer = Writer { text, dress: dress(text, &root), one_line: is_one_line(text, &root) };
    let mut patches = Vec::new();
    let mut expected = root.tree();
    let mut placed = Vec::with_capacity(changes.len());
    for change in changes {
        let node = change.at.iter().try_fold(&root, step).ok_or(Refusal::Misplaced)?;
        writer.patch(node, &change.what, &mut patches).ok_or(Refusal::Misplaced)?;
        placed.push((node.span.start, change));
    }
    // What stands further inside begins later; numbers of items stay right as long as it is changed first.
    placed.sort_by_key(|(start, _)| std::cmp::Reverse(*start));
    for (_, change) in placed {
        let there = change.at.iter().try_fold(&mut expected, inside).ok_or(Refusal::Misplaced)?;
        carry_out(there, &change.what).ok_or(Refusal::Misplaced)?;
    }
    let new = apply(text, patches).ok_or(Refusal::Misplaced)?;
    match read(&new) {
        Ok(document) if document.root.tree() == expected => Ok(new),
        _ => Err(Refusal::Unsure),
    }
}

fn step<'a>(node: &'a Node, step: &Step) -> Option<&'a Node> {
    match step {
        Step::Key(key) => node.get(key),
        Step::At(index) => node.items().get(*index).map(|item| &item.value),
    }
}

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

/// None: two patches are about the same bytes.
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

fn dress(text: &str, root: &Node) -> Dress {
    let first = root.items().first();
    let indent = first.map(|item| indent(text, item.start)).unwrap_or_default();
    Dress {
        unit: if indent.is_empty() { "  ".to_string() } else { indent.to_string() },
        line_end: if text.contains("\r\n") { "\r\n" } else { "\n" },
        spaced: !is_one_line(text, root) || text.contains(": ") || text.contains(", "),
    }
}

/// A text with something in it that has no line ends in it.
fn is_one_line(text: &str, root: &Node) -> bool {
    !root.items().is_empty() && !text.get(root.span.clone()).unwrap_or_default().contains('\n')
}

/// The white space at the beginning of the line on which a byte stands.
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
    /// None: that cannot be done to such a value.
    fn patch(&self, node: &Node, what: &What, patches: &mut Patches) -> Option<()> {
        match (&node.kind, what) {
            (Kind::Map(items, frame), What::Add(new)) => {
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
            if !slice(frame.tail..close).contains('\n') {
                patches.push((frame.tail..close, format!("{end}{base}")));
            }
            return;
        };
        let has_comma = frame.commas.len() == items.len();
        if !has_comma {
            patches.push((last.value.span.end..last.value.span.end, ",".to_string()));
        }
        let on_own_lines = slice(node.span.start..first.start).contains('\n');
        let mut text = if on_own_lines || frame.tail_is_line {
            let inner = match on_own_lines {
                true => indent(self.text, last.start).to_string(),
                false => format!("{}{}", indent(self.text, close), self.dress.unit),
            };
            self.lines(new, &inner)
        } else {
            let blank = if self.dress.spaced { " " } else { "" };
            let like_the_last = slice(last.space..last.start);
            let blank = if items.len() < 2 || like_the_last.contains('\n') { blank } else { like_the_last };
            format!("{blank}{}", self.inline(new, blank))
        };
        if has_comma {
            text.push(',');
        }
        patches.push((frame.tail..frame.tail, text));
    }

    /// Each on a line of its own, with the line end before it.
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
        if last_kept.is_none() && !frame.has_comments {
            patches.push((node.span.start + 1..node.span.end - 1, String::new()));
            return Some(());
        }
        let mut index = 0;
        while let Some(first) = items.get(index) {
            index += 1;
            if is_gone.get(index - 1) != Some(&true) {
                continue;
            }
            let mut last = first;
            let end =
                |index: usize, last: &Item| frame.commas.get(index).map_or(last.value.span.end, |at| at + 1);
            // What stands behind it without a comment between them goes in one piece.
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
            if end > piece.end {
                patches.push((end - 1..end, String::new()));
            }
            if behind > 0 {
                patches.push((end..end + behind, String::new()));
            }
        }
        // The comma behind what is the last one now was there for what is gone.
        let had_comma = frame.commas.len() == items.len();
        if let Some(kept) = last_kept.filter(|kept| *kept + 1 < items.len() && !had_comma) {
            let comma = *frame.commas.get(kept)?;
            patches.push((comma..comma + 1, String::new()));
        }
        Some(())
    }

    /// Where the white space begins that goes with a piece, and how much goes behind it. `item` is its first one; `next` says
    /// whether the one behind it is gone as well.
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
        // Lines that are empty stay.
        let start = match before.rfind('\n') {
            Some(at) if slice(item.space..item.space + at).ends_with('\r') => item.space + at - 1,
            Some(at) => item.space + at,
            None => item.space,
        };
        // The only line end behind a comment goes if another one takes its place.
        let replaced = line_ends && next != Some(true) && end - piece.end <= 1;
        let needed = item.after_line && start == item.space && !replaced;
        let first_on_its_line = start == item.start && next == Some(false) && !line_ends;
        match (needed, next) {
            (true, Some(false)) if !line_ends => (item.start, blanks),
            (true, _) => (item.start, 0),
            (false, _) if first_on_its_line => (item.start, blanks),
            (false, _) => (start, 0),
        }
    }
}
