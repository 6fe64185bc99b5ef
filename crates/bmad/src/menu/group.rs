//! Groups lines with keys in brackets into candidates for menus, and finds mistakes in their structure. Where a candidate
//! stands, and what that means, is judged by the caller.

use std::collections::HashSet;

use super::{
    Choice, Meaning, Refusal, SEEN, Shape, known, push,
    scan::{self, Lead, Mark, MarkKind},
};
use crate::page::{Kind, Line, Page};

/// A candidate with more options is something else, and the rest is not kept.
const MOST: usize = 40;

/// A group of options that may be a menu.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub layout: Layout,
    pub options: Vec<Choice>,
    /// The indexes of the first and the last line.
    pub first: usize,
    pub last: usize,
    /// The text that leads to it, on its line or on the one above.
    pub lead: String,
    pub refusals: Vec<Refusal>,
}

/// How the options of a candidate are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Vertical,
    Horizontal,
    Glued,
    Trailing,
    /// A numbered list `1. …`, `2. …`.
    List,
    Elicitation,
}

impl Candidate {
    pub fn shape(&self) -> Shape {
        match (self.layout, self.options.as_slice()) {
            (Layout::Elicitation, _) => Shape::Elicitation,
            (_, [only]) if is_exit(only) => Shape::Exit,
            (_, [_]) => Shape::Lone,
            (Layout::List, _) => Shape::Numbered,
            (Layout::Glued, _) => Shape::Glued,
            (Layout::Trailing, _) => Shape::Trailing,
            _ if known::sorted(self) == "NVY" => Shape::Iteration,
            (_, options) if options.iter().all(|option| option.key.parse::<u32>().is_ok()) => Shape::Numbered,
            (Layout::Horizontal, _) => Shape::Horizontal,
            (Layout::Vertical, _) => Shape::Vertical,
        }
    }
}

/// Whether an option leaves a party; nothing else with one option is a menu.
fn is_exit(option: &Choice) -> bool {
    option.key.eq_ignore_ascii_case("e") && option.meaning == Meaning::Exit
}

/// The candidates of a page in the order of their lines, and how many of the first ones were dropped because there are too
/// many.
pub(super) fn find(page: &Page<'_>) -> (Vec<Candidate>, usize) {
    let mut groups = Groups { page, done: Vec::new(), dropped: 0, open: None };
    for (index, line) in page.lines.iter().enumerate() {
        groups.take(index, line);
    }
    groups.close();
    (groups.done, groups.dropped)
}

/// Collects candidates line by line.
struct Groups<'p, 't> {
    page: &'p Page<'t>,
    done: Vec<Candidate>,
    dropped: usize,
    open: Option<Open>,
}

/// Options below each other whose end is not yet known.
struct Open {
    candidate: Candidate,
    keys: HashSet<String>,
    kind: Kind,
    quoted: bool,
    glued: bool,
    boxes: bool,
    /// The number of lines since the last option.
    between: usize,
}

/// Options on one line.
struct Row<'a, 't> {
    index: usize,
    line: &'a Line<'t>,
    marks: &'a [Mark<'t>],
    layout: Layout,
}

impl<'t> Groups<'_, 't> {
    /// Reads one line: it adds an option, is a row of options, or ends the open group.
    fn take(&mut self, index: usize, line: &Line<'t>) {
        let marks = scan::marks(line.text, MOST + 1);
        // A link or a footnote on the line decides for all of its brackets.
        if let Some(refusal) = broken(&marks) {
            self.close();
            return self.emit(Row { index, line, marks: &marks, layout: Layout::Horizontal }, vec![refusal]);
        }
        let lead = marks.first().map(|mark| scan::lead(&line.text[..mark.start]));
        match (marks.as_slice(), lead) {
            ([], _) | (_, None) => self.between(line),
            // A line that begins with its only key is one option of a vertical menu.
            ([one], Some(Lead::Start | Lead::Bullet)) => {
                self.option(index, line, *one, lead == Some(Lead::Bullet))
            }
            ([one], Some(Lead::Prompt)) => {
                self.close();
                // `stepsCompleted: [1]` offers nothing.
                if one.key.parse::<u32>().is_ok() {
                    return;
                }
                self.option(index, line, *one, false);
            }
            // A key in a sentence is only mentioned, and it ends the group above.
            ([_], Some(Lead::Word | Lead::Sentence)) => self.close(),
            (_, Some(lead)) => {
                self.close();
                self.row(index, line, &marks, lead);
            }
        }
    }

    /// A blank line may separate two options, and an indented line continues the last one.
    fn between(&mut self, line: &Line<'t>) {
        let Some(open) = &mut self.open else { return };
        open.between += 1;
        let goes_on = line.is_blank() || line.text.starts_with("  ") || line.text.starts_with('\t');
        if open.between > 1 || !goes_on {
            self.close();
        }
    }

    /// A line that begins with a key.
    fn option(&mut self, index: usize, line: &Line<'t>, mark: Mark<'t>, bullet: bool) {
        let said = scan::label(mark.key, &line.text[mark.end..]);
        let is_box = bullet && mark.key.eq_ignore_ascii_case("x");
        let quoted = scan::is_quoted(line.text);
        let mentioned = is_mentioned(&said.label);
        // A bracket without any text is no option on its own line.
        if said.label.is_empty() && said.about.is_empty() || mentioned {
            return self.close();
        }
        let fits = self.open.as_ref().is_some_and(|open| {
            let same = open.kind == line.kind && open.quoted == quoted;
            // `[X] Exit` follows other options; a ticked box is among boxes.
            let letters =
                open.keys.iter().all(|key| key.parse::<u32>().is_ok() == mark.key.parse::<u32>().is_ok());
            // A key that occurs again begins a new menu.
            same && letters && if open.boxes { is_box } else { !open.keys.contains(mark.key) }
        });
        if !fits {
            self.close();
        }
        let choice = choice(mark.key, said.label, said.about, line.number);
        let lead = || lead_of(self.page, index, &line.text[..mark.start]);
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(Open {
                candidate: Candidate {
                    layout: Layout::Vertical,
                    options: Vec::new(),
                    first: index,
                    last: index,
                    lead: lead(),
                    refusals: Vec::new(),
                },
                keys: HashSet::new(),
                kind: line.kind,
                quoted,
                glued: true,
                boxes: is_box,
                between: 0,
            }),
        };
        open.keys.insert(mark.key.to_string());
        // A group is glued only if all of its options are.
        open.glued &= said.glued;
        open.between = 0;
        if open.candidate.options.len() <= MOST {
            open.candidate.options.push(choice);
        }
        open.candidate.last = index;
    }

    /// Ends the open group and keeps it as a candidate.
    fn close(&mut self) {
        let Some(Open { mut candidate, glued, boxes, .. }) = self.open.take() else { return };
        if glued {
            candidate.layout = Layout::Glued;
        }
        if boxes {
            candidate.refusals.push(Refusal::Checkbox);
        }
        self.finish(candidate);
    }

    /// A line with several keys.
    fn row(&mut self, index: usize, line: &Line<'t>, marks: &[Mark<'t>], lead: Lead) {
        let text = line.text;
        let behind = marks.last().map_or("", |mark| &text[mark.end..]);
        let before = marks.first().map_or("", |mark| &text[..mark.start]);
        // `Continue [c] or Edit [e]?` names each key before its bracket, so the sentence is a menu.
        let named_before = matches!(lead, Lead::Sentence) && scan::ends(behind) && named_before(text, marks);
        let layout = match () {
            () if is_elicitation(marks, before) => Layout::Elicitation,
            () if named_before => Layout::Trailing,
            () => Layout::Horizontal,
        };
        let mut refusals = Vec::new();
        if lead == Lead::Sentence && !named_before {
            refusals.push(Refusal::Sentence);
        }
        self.emit(Row { index, line, marks, layout }, refusals);
    }

    /// Turns a row of options into a candidate.
    fn emit(&mut self, row: Row<'_, 't>, mut refusals: Vec<Refusal>) {
        let Row { index, line, marks, layout } = row;
        let mut glued = true;
        let mut options = Vec::with_capacity(marks.len());
        let mut from = 0;
        for (at, mark) in marks.iter().enumerate() {
            let until = marks.get(at + 1).map_or(line.text.len(), |next| next.start);
            if layout == Layout::Trailing {
                let label = scan::label_before(&line.text[from..mark.start]);
                options.push(choice(mark.key, label, String::new(), line.number));
            } else {
                let said = scan::label(mark.key, &line.text[mark.end..until]);
                glued &= said.glued;
                // A key in parentheses, or one that is followed by `option`, is only mentioned.
                if said.closed || is_mentioned(&said.label) {
                    refusals.push(Refusal::Sentence);
                }
                options.push(choice(mark.key, said.label, said.about, line.number));
            }
            from = mark.end;
        }
        let before = marks.first().map_or("", |mark| &line.text[..mark.start]);
        // `Choose [1], [2] or …` refers to a list; if there is one, the list is the menu.
        let is_reference = |mark: &Mark<'_>| {
            mark.key.parse::<u32>().is_ok() && line.text[mark.end..].starts_with([',', ')', ':'])
        };
        if before.contains(char::is_alphanumeric) && marks.iter().any(is_reference) {
            return;
        }
        let layout = if layout == Layout::Horizontal && glued { Layout::Glued } else { layout };
        let lead = lead_of(self.page, index, before);
        self.finish(Candidate { layout, options, first: index, last: index, lead, refusals });
    }

    /// Checks the structure of a candidate and keeps it, with its refusals.
    fn finish(&mut self, mut candidate: Candidate) {
        let distinct: HashSet<&str> = candidate.options.iter().map(|option| option.key.as_str()).collect();
        if candidate.options.len() > MOST {
            candidate.refusals.push(Refusal::Many);
        }
        let checkbox = candidate.refusals.contains(&Refusal::Checkbox);
        if distinct.len() < candidate.options.len() && !checkbox {
            candidate.refusals.push(Refusal::SameKeyTwice);
        }
        if candidate.options.len() < 2 {
            candidate.refusals.push(Refusal::OneOption);
        }
        if is_placeholder(&candidate) {
            candidate.refusals.push(Refusal::Placeholder);
        }
        if is_instruction(&candidate) {
            candidate.refusals.push(Refusal::Instruction);
        }
        // Keys without labels get their meaning last, since it depends on all keys of the menu.
        let keys = known::sorted(&candidate);
        for option in candidate.options.iter_mut().filter(|option| option.label.is_empty()) {
            option.meaning = Meaning::of_key(&option.key, &keys);
        }
        candidate.refusals.sort_unstable();
        candidate.refusals.dedup();
        self.dropped += push(&mut self.done, candidate, SEEN);
    }
}

pub(super) fn choice(key: &str, label: String, about: String, line: usize) -> Choice {
    Choice { key: key.to_string(), meaning: Meaning::of(&label), label, about, line }
}

/// The text before the first key, otherwise the nearest line above.
pub(super) fn lead_of(page: &Page<'_>, index: usize, before: &str) -> String {
    if before.contains(char::is_alphanumeric) {
        return short(before);
    }
    let above = page.lines.get(..index).unwrap_or_default();
    let nearest = above.iter().rev().take(3).find(|line| !line.is_blank());
    nearest.map(|line| short(line.text)).unwrap_or_default()
}

fn short(text: &str) -> String {
    text.trim().chars().take(200).collect()
}

/// The refusal for brackets that are no keys.
fn broken(marks: &[Mark<'_>]) -> Option<Refusal> {
    let first = marks.iter().find(|mark| mark.kind != MarkKind::Key)?;
    Some(if first.kind == MarkKind::Link { Refusal::Link } else { Refusal::Footnote })
}

/// Whether a label shows that its key is only mentioned: `[C] continue option presented`.
fn is_mentioned(label: &str) -> bool {
    let mut words = label.split_whitespace();
    let first_lower = label.starts_with(char::is_lowercase);
    first_lower && words.by_ref().take(2).any(|word| matches!(word, "option" | "options"))
}

/// Whether every key has a short name before it.
fn named_before(text: &str, marks: &[Mark<'_>]) -> bool {
    let mut from = 0;
    marks.iter().all(|mark| {
        let label = scan::label_before(&text[from..mark.start]);
        from = mark.end;
        let words = label.split_whitespace().count();
        (1..=4).contains(&words) && label.starts_with(|c: char| c.is_uppercase() || c.is_numeric())
    })
}

/// Whether a row asks for one of BMAD's elicitation methods: a number or one of these keys.
fn is_elicitation(marks: &[Mark<'_>], before: &str) -> bool {
    let has = |key: &str| marks.iter().any(|mark| mark.key.eq_ignore_ascii_case(key));
    marks.len() <= 4 && has("r") && has("x") && before.contains("(1-")
}

/// Whether the options are placeholders: `[X] words across [Y] sections`, `[A] [Action]`.
pub(super) fn is_placeholder(candidate: &Candidate) -> bool {
    let options = &candidate.options;
    let unknown = |option: &Choice| "NXYZ".contains(option.key.as_str());
    let says_nothing = |option: &Choice| matches!(option.meaning, Meaning::Other(_));
    let letters =
        options.iter().all(|option| unknown(option) && says_nothing(option) && !option.label.is_empty());
    let filled = |option: &Choice| option.label.starts_with(['[', '{', '<']);
    // One placeholder may be a mistake of the agent; most of the options make it a template.
    letters || options.iter().filter(|option| filled(option)).count() * 2 > options.len()
}

/// Whether the options are instructions of a step file to the agent: `- **[a]**: Load and execute …`.
fn is_instruction(candidate: &Candidate) -> bool {
    const VERBS: [&str; 9] =
        ["Load", "Direct", "Execute", "Verify", "Ask", "Invoke", "Read", "Display", "Exit workflow"];
    let tells = |option: &Choice| {
        let said = if option.about.is_empty() { &option.label } else { &option.about };
        VERBS.iter().any(|verb| said.starts_with(verb) || option.label.starts_with(verb))
    };
    candidate.layout == Layout::Vertical
        && candidate.options.len() >= 2
        && candidate.options.iter().filter(|option| tells(option)).count() * 2 > candidate.options.len()
}
