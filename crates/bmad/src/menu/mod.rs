//! Menus in an agent's message: each found menu has its score and the reasons for it, and each rejected one has the reasons
//! against it.
//!
//! A menu has at least two options, each with its key, and is recognized by its structure, its place at the end, its shape
//! and the lack of marks against it. Code, quotes, examples and text under review contain no menus. A lone `[E] Exit …` of a
//! party is a menu, since the party shows nothing else; a lone `[C] Continue …` is not: it is rejected with its reason and
//! returned as a question with one answer, since the agent waits for it all the same. The meaning of an option is read from
//! its label: a `[C]` may exit or convert.
//!
//! Nothing is answered here and nothing is remembered: which option to take is a rule of the core, and confirmed mistakes
//! come with the [`MenuContext`].

mod group;
mod history;
mod known;
mod meaning;
mod numbered;
mod question;
mod scan;
#[cfg(test)]
mod tests;

use std::ops::Range;

use std::borrow::Cow;

use serde::Serialize;

use crate::page::{Kind, Page};
use group::Candidate;
pub use history::{Confirmed, History, Trace};
pub use meaning::Meaning;
pub use question::{Asked, Question};

/// The lowest score of a menu.
pub const ENOUGH: u32 = 70;
/// How many lines count as the end of a text.
pub const END: usize = 20;
/// How many menus of each kind are returned, the latest ones; a text of many megabytes may have any number of them.
const KEPT: usize = 200;
/// How many candidates are kept before they are judged.
const SEEN: usize = 10_000;

/// What is known about a message beside its text.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The lines of content under review, from 1, the end excluded.
    pub reviewed: Vec<Range<usize>>,
    /// The marks between which content under review stands, each on a line of its own.
    pub fences: Vec<(String, String)>,
    pub history: History,
}

/// What was found in a text, each list in the order of its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Detection {
    pub menus: Vec<Menu>,
    pub rejected: Vec<Rejected>,
    /// The questions at the end of the text that wait for an answer and are no menus.
    pub questions: Vec<Question>,
    /// How many earlier menus and rejected ones are left out, because there are too many.
    pub left_out: usize,
}

/// A menu with its score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Menu {
    pub options: Vec<Choice>,
    pub shape: Shape,
    /// The lines of the menu, from 1, the end excluded.
    pub lines: Range<usize>,
    pub score: u32,
    pub reasons: Vec<Reason>,
}

/// Text that looks like a menu and is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rejected {
    #[serde(flatten)]
    pub menu: Menu,
    pub because: Vec<Refusal>,
}

/// One option of a menu.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The key as it is written: a lower-case key is answered in lower case.
    pub key: String,
    pub label: String,
    /// The description behind the label.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    pub line: usize,
    pub meaning: Meaning,
}

/// How a menu is written and, where the form shows it, what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// One option on each line.
    Vertical,
    /// All options on one line.
    Horizontal,
    /// Numbers in brackets, or a numbered list with a question about it.
    Numbered,
    /// `[Y] [V] [N]`.
    Iteration,
    /// `[E] Exit Party Mode`.
    Exit,
    /// `[C]reate / [E]dit`.
    Glued,
    /// `Continue [c] or Edit [e]?`
    Trailing,
    /// `Choose a number (1-5), [r] to Reshuffle, …`
    Elicitation,
    /// A single option.
    Lone,
}

/// A part of the score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    pub points: i32,
    pub why: String,
}

/// Why a text is no menu, even with a high score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    OneOption,
    Code,
    Comment,
    FrontMatter,
    Quote,
    Example,
    Reviewed,
    Link,
    Footnote,
    Checkbox,
    Placeholder,
    Sentence,
    SameKeyTwice,
    Instruction,
    Many,
    Score,
}

impl Refusal {
    pub fn says(self) -> &'static str {
        match self {
            Refusal::OneOption => "it has one option; a menu has two",
            Refusal::Code => "it stands in a block of code",
            Refusal::Comment => "it stands in a comment",
            Refusal::FrontMatter => "it stands in the front matter",
            Refusal::Quote => "it is quoted (`>`)",
            Refusal::Example => "it follows `Example:`, `Sample:`, `Template:` or `Output:`",
            Refusal::Reviewed => "it belongs to what is under review",
            Refusal::Link => "its brackets are links",
            Refusal::Footnote => "its brackets are footnotes",
            Refusal::Checkbox => "its brackets are check boxes",
            Refusal::Placeholder => "its brackets are placeholders",
            Refusal::Sentence => "its keys are mentioned in a sentence",
            Refusal::SameKeyTwice => "a key stands in it twice",
            Refusal::Instruction => "it says what to do for a key, and offers nothing",
            Refusal::Many => "it has more than 40 options",
            Refusal::Score => "its score is below 70",
        }
    }
}

/// Finds menus and questions in an agent's message.
pub fn detect(text: &str, context: &Context) -> Detection {
    let text = &uncoloured(text);
    let page = Page::of(text);
    // Blank lines at the end do not push a menu away from the end.
    let end = page.lines.iter().rposition(|line| !line.is_blank()).map_or(0, |index| index + 1);
    let looked = Looked { page: &page, end, reviewed: reviewed(&page, context), context };
    let mut found = Detection::default();
    let (candidates, left_out) = candidates(&page);
    found.left_out = left_out;
    for candidate in candidates {
        let (menu, because) = looked.judge(candidate);
        // Candidates with a refusal are returned, too, so that the user can see why a menu was not recognized.
        if because.is_empty() {
            found.left_out += push(&mut found.menus, menu, KEPT);
        } else {
            found.left_out += push(&mut found.rejected, Rejected { menu, because }, KEPT);
        }
    }
    found.left_out += trim(&mut found.menus, KEPT) + trim(&mut found.rejected, KEPT);
    // Questions come last, since a line of a menu must not be asked again.
    found.questions = question::find(&page, end, &found, &looked.reviewed);
    found
}

/// A text without terminal colours: agents print them around the very keys that are searched. Line breaks stay.
fn uncoloured(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' if rest.next_if_eq(&'[').is_some() => {
                // The sequence ends with a letter; a broken one must not swallow the next line.
                while let Some(c) = rest.next_if(|c| *c != '\n') {
                    if c.is_ascii_alphabetic() {
                        break;
                    }
                }
            }
            '\u{1b}' => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Everything with the structure of a menu, in any place: BMAD's own step files show menus in code, in quotes and in the
/// middle. Mistakes in the structure itself are reported.
pub fn shapes(text: &str) -> Vec<Rejected> {
    let page = Page::of(text);
    let seen = candidates(&page).0.into_iter().map(|candidate| {
        let because = candidate.refusals.clone();
        Rejected { menu: menu_of(&page, candidate), because }
    });
    seen.collect()
}

/// The candidates of a page, and how many earlier ones were dropped.
fn candidates(page: &Page<'_>) -> (Vec<Candidate>, usize) {
    let (groups, dropped) = group::find(page);
    (numbered::joined(page, groups), dropped)
}

fn menu_of(page: &Page<'_>, candidate: Candidate) -> Menu {
    let number = |index: usize| page.lines.get(index).map_or(0, |line| line.number);
    Menu {
        shape: candidate.shape(),
        lines: number(candidate.first)..number(candidate.last) + 1,
        options: candidate.options,
        score: 0,
        reasons: Vec::new(),
    }
}

/// Adds an item; the list grows to twice the limit before it is cut, so that cutting costs little.
fn push<T>(list: &mut Vec<T>, item: T, keep: usize) -> usize {
    list.push(item);
    if list.len() < 2 * keep { 0 } else { trim(list, keep) }
}

fn trim<T>(list: &mut Vec<T>, keep: usize) -> usize {
    list.drain(..list.len().saturating_sub(keep)).count()
}

/// Judges candidates with everything that is known about the page.
struct Looked<'p, 't> {
    page: &'p Page<'t>,
    /// The index behind the last line that is not blank.
    end: usize,
    /// Whether each line is under review.
    reviewed: Vec<bool>,
    context: &'p Context,
}

impl Looked<'_, '_> {
    /// Scores a candidate and collects the reasons why it is no menu.
    fn judge(&self, candidate: Candidate) -> (Menu, Vec<Refusal>) {
        let mut because = candidate.refusals.clone();
        because.extend(self.placed(&candidate));
        // Numbered references with addresses look exactly like a numbered menu.
        let is_address =
            |option: &Choice| ["http://", "https://"].iter().any(|start| option.label.starts_with(start));
        if candidate.options.iter().any(is_address) && !because.contains(&Refusal::Footnote) {
            because.push(Refusal::Footnote);
        }
        // An agent that waits for an answer shows its menu last.
        let at_end = candidate.last + END >= self.end;
        let against = self.marks_against(&candidate);
        let known = known::is_known(&candidate);
        let lead = candidate.lead.clone();
        let mut menu = menu_of(self.page, candidate);
        // The exit of a party is the only menu with a single option.
        if menu.shape == Shape::Exit {
            because.retain(|refusal| *refusal != Refusal::OneOption);
        }
        let structure = !because.contains(&Refusal::OneOption);
        // Every part of the score is listed, also with zero points, so that the user can follow the sum.
        let mut add = |points: i32, why: String| menu.reasons.push(Reason { points, why });
        match structure {
            true => add(40, "keys in brackets, each with its option".into()),
            false => add(0, "no structure of a menu".into()),
        }
        match at_end {
            true => add(30, format!("in the last {END} lines")),
            false => add(0, format!("not in the last {END} lines")),
        }
        match known {
            true => add(20, "a known shape".into()),
            false => add(0, "a shape that is not known".into()),
        }
        match against {
            None if because.is_empty() => add(10, "no mark against it".into()),
            None => add(0, "marks against it".into()),
            Some(mark) => add(0, mark.into()),
        }
        // A confirmed mistake costs points, so that the same false menu is not found again.
        let trace = Trace::of(&menu, &lead);
        let cost = self.context.history.cost(&trace);
        if cost > 0 {
            menu.reasons.push(Reason {
                points: -i32::try_from(cost).unwrap_or(i32::MAX),
                why: "what looked like it was none".into(),
            });
        }
        let sum: i32 = menu.reasons.iter().fold(0, |sum, reason| sum.saturating_add(reason.points));
        menu.score = u32::try_from(sum).unwrap_or(0);
        // A refusal explains more than a low score, so the score is only named if there is none.
        if because.is_empty() && menu.score < ENOUGH {
            because.push(Refusal::Score);
        }
        because.sort_unstable();
        because.dedup();
        (menu, because)
    }

    /// The refusals that follow from where the candidate stands.
    fn placed(&self, candidate: &Candidate) -> Vec<Refusal> {
        let mut because = Vec::new();
        let lines = self.page.lines.get(candidate.first..=candidate.last).unwrap_or_default();
        for line in lines.iter().filter(|line| !line.is_blank()) {
            because.extend(match line.kind {
                Kind::Code => Some(Refusal::Code),
                Kind::Comment => Some(Refusal::Comment),
                Kind::Front => Some(Refusal::FrontMatter),
                Kind::Prose => scan::is_quoted(line.text).then_some(Refusal::Quote),
            });
        }
        // A single line under review is enough: the menu may be quoted in part.
        let flags = self.reviewed.get(candidate.first..=candidate.last).unwrap_or_default();
        if flags.contains(&true) {
            because.push(Refusal::Reviewed);
        }
        if scan::is_example(&candidate.lead) || self.follows_example(candidate.first) {
            because.push(Refusal::Example);
        }
        because
    }

    /// Whether the lines above say that an example follows. The search goes up over blank lines and prompts; any other line
    /// ends it.
    fn follows_example(&self, first: usize) -> bool {
        let above = self.page.lines.get(..first).unwrap_or_default();
        for line in above.iter().rev().take(6).filter(|line| !line.is_blank()) {
            let title = line.heading().map(|(_, title)| title);
            if scan::is_example(title.unwrap_or(line.text)) {
                return true;
            }
            if title.is_some() || line.kind == Kind::Code || !scan::is_prompt(line.text) {
                return false;
            }
        }
        false
    }

    /// A mark against the candidate that costs points but does not decide.
    fn marks_against(&self, candidate: &Candidate) -> Option<&'static str> {
        let lines = self.page.lines.get(candidate.first..=candidate.last).unwrap_or_default();
        if lines.iter().filter(|line| !line.is_blank()).all(|line| line.text.trim_start().starts_with('|')) {
            return Some("it stands in a table");
        }
        // A few lines may follow a menu, such as a hint how to answer; more text means that the agent went on.
        let behind = self.page.lines.get(candidate.last + 1..).unwrap_or_default();
        let goes_on = behind.iter().filter(|line| !line.is_blank()).take(6).count();
        if goes_on > 5 {
            return Some("the text goes on behind it");
        }
        let bare = candidate.options.iter().all(|option| option.label.is_empty());
        (bare && !known::is_known(candidate)).then_some("its options have no labels")
    }
}

/// Whether each line is under review.
fn reviewed(page: &Page<'_>, context: &Context) -> Vec<bool> {
    let mut flags = vec![false; page.lines.len()];
    // Ranges come from other programs and may be out of bounds or reversed.
    for range in &context.reviewed {
        let start = range.start.saturating_sub(1).min(flags.len());
        let end = range.end.saturating_sub(1).clamp(start, flags.len());
        flags[start..end].fill(true);
    }
    for (open, close) in context.fences.iter().filter(|(open, _)| !open.trim().is_empty()) {
        let mut inside = false;
        for (line, flag) in page.lines.iter().zip(&mut flags) {
            // If the same mark opens and closes, it does so in turns.
            let said = line.text.trim();
            let opens = !inside && said == open.trim();
            let closes = inside && said == close.trim();
            *flag |= inside || opens;
            inside = (inside || opens) && !closes;
        }
    }
    flags
}
