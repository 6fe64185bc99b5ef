//! Numbered lists that a question belongs to are menus, too; a list alone is none. The methods of advanced elicitation are
//! joined with their question here.

use super::{
    Choice, Refusal, SEEN,
    group::{Candidate, Layout, choice, is_placeholder, lead_of},
    push, scan,
};
use crate::page::{Kind, Line, Page};

/// A list with more items is something else.
const MOST: usize = 12;
/// How many lines a question may be away from its list.
const NEAR: usize = 4;

/// The groups of keys and the numbered lists, in the order of their lines.
pub(super) fn joined(page: &Page<'_>, groups: Vec<Candidate>) -> Vec<Candidate> {
    let mut lists = lists(page).into_iter().peekable();
    let mut all: Vec<Candidate> = Vec::with_capacity(groups.len());
    for group in groups {
        while let Some(list) = lists.next_if(|list| list.first < group.first) {
            all.push(list);
        }
        all.push(group);
    }
    all.extend(lists);
    // Neighbours are merged first, since the question about methods is what makes their list a menu.
    let mut out: Vec<Candidate> = Vec::with_capacity(all.len());
    for candidate in all {
        match out.last_mut() {
            Some(before) if belong(before, &candidate) => join(before, candidate),
            _ => out.push(candidate),
        }
    }
    // A list counts only if a question asks about it.
    out.retain(|candidate| candidate.layout != Layout::List || asked(page, candidate));
    out
}

/// Whether a question for a method and a list of methods belong together.
fn belong(before: &Candidate, next: &Candidate) -> bool {
    let kinds = (before.layout, next.layout);
    let fit = matches!(kinds, (Layout::Elicitation, Layout::List) | (Layout::List, Layout::Elicitation));
    fit && next.first <= before.last + NEAR
}

fn join(before: &mut Candidate, mut next: Candidate) {
    // The numbers come first, as they are shown.
    if before.layout == Layout::Elicitation {
        std::mem::swap(&mut before.options, &mut next.options);
        before.options.append(&mut next.options);
    } else {
        before.options.append(&mut next.options);
        before.lead = next.lead;
    }
    before.layout = Layout::Elicitation;
    // The methods in a template are still placeholders, but the question about them is a real one.
    before.refusals.append(&mut next.refusals);
    before.refusals.retain(|refusal| *refusal != Refusal::Placeholder);
    before.last = before.last.max(next.last);
}

/// Finds the numbered lists of a page, each from 1 without gaps.
fn lists(page: &Page<'_>) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut open: Option<Candidate> = None;
    let mut kind = Kind::Prose;
    let mut blank = 0;
    for (index, line) in page.lines.iter().enumerate() {
        let Some((number, item)) = item(line) else {
            blank = if line.is_blank() { blank + 1 } else { 0 };
            // One blank line may separate items, and an indented line continues one.
            let goes_on = line.is_blank() && blank < 2 || line.text.starts_with("  ");
            if !goes_on {
                keep(&mut found, open.take());
            }
            continue;
        };
        blank = 0;
        let next = open.as_ref().map_or(1, |list| list.options.len() + 1);
        // A wrong number or another kind of line ends the list; the line may begin a new one.
        if number != next || kind != line.kind {
            keep(&mut found, open.take());
        }
        match &mut open {
            Some(list) => {
                list.options.push(item);
                list.last = index;
            }
            None if number == 1 => {
                kind = line.kind;
                open = Some(Candidate {
                    layout: Layout::List,
                    options: vec![item],
                    first: index,
                    last: index,
                    lead: lead_of(page, index, ""),
                    refusals: Vec::new(),
                });
            }
            None => {}
        }
    }
    keep(&mut found, open);
    found
}

fn keep(found: &mut Vec<Candidate>, list: Option<Candidate>) {
    if let Some(mut list) = list.filter(|list| (2..=MOST).contains(&list.options.len())) {
        if is_placeholder(&list) {
            list.refusals.push(Refusal::Placeholder);
        }
        push(found, list, SEEN);
    }
}

/// Parses an item such as `1. **Fix them** - …` or `2) …`.
fn item(line: &Line<'_>) -> Option<(usize, Choice)> {
    let text = line.text.trim_start().trim_start_matches('>').trim_start().trim_start_matches('*');
    let (number, rest) = text.split_once(['.', ')'])?;
    let rest = rest.strip_prefix("**").unwrap_or(rest);
    // A list item with keys in brackets is an option of another menu.
    if number.len() > 2 || !rest.starts_with(' ') || !scan::marks(rest, 1).is_empty() {
        return None;
    }
    let said = scan::label(number, rest);
    (!said.label.is_empty()).then_some(())?;
    Some((number.parse().ok()?, choice(number, said.label, said.about, line.number)))
}

/// Whether a line just above or just below asks for one of the items.
fn asked(page: &Page<'_>, list: &Candidate) -> bool {
    let above = page.lines.get(list.first.saturating_sub(NEAR)..list.first).unwrap_or_default();
    let below = page.lines.get(list.last + 1..).unwrap_or_default();
    let above = above.iter().rev().filter(|line| !line.is_blank()).take(1);
    let below = below.iter().take(NEAR).filter(|line| !line.is_blank()).take(2);
    above.chain(below).any(|line| line.heading().is_none() && asks(line.text))
}

/// Whether a line asks which one, or prompts to take one. Many lists follow a colon: that alone asks for nothing.
pub(super) fn asks(line: &str) -> bool {
    const TAKE: [&str; 4] = ["choose", "select", "pick", "choice"];
    const WHICH: [&str; 5] = ["which", "option", "options", "choices", "prefer"];
    const PHRASES: [&str; 7] = [
        "would you like",
        "what should i",
        "what would you",
        "how would you",
        "how should i",
        "do you want",
        "enter a number",
    ];
    let said = line.split("</").next().unwrap_or(line);
    if !scan::is_prompt(said) {
        return false;
    }
    let lower = said.to_lowercase();
    let question = said.trim_end().trim_end_matches(scan::AROUND).ends_with('?');
    // Words such as `option` only count in a question; `choose` counts in any prompt.
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|word| TAKE.contains(&word) || question && WHICH.contains(&word))
        || PHRASES.iter().any(|phrase| lower.contains(phrase))
}
