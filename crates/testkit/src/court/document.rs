//! A document with known defects, and edits of it that yield hunks.

use std::collections::{BTreeMap, BTreeSet};

use tribunal_core::{files::Hunk, finding::Severity};

use super::vocabulary::{FLAWS, GAPS, HEADINGS, INNOCENT, THINGS, about, one_of};
use crate::dice::Dice;

/// The number of providers, whether they are asked or not.
pub(super) const PROVIDERS: usize = 4;

/// The index of a defect in [`CourtDocument::defects`].
pub(super) type DefectId = usize;

#[derive(Clone, Debug)]
pub(super) struct Line {
    pub text: String,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Heading,
    /// A line without a defect, and the thing it is about.
    Innocent(&'static str),
    Defect(DefectId),
    Plain,
}

#[derive(Clone, Debug)]
pub(super) struct Defect {
    pub kind: Kind,
    pub severity: Severity,
    /// Whether the defect has not been repaired.
    pub alive: bool,
    /// The providers that see it at their first look.
    pub seen_by: [bool; PROVIDERS],
    /// What each provider saw at its last look.
    pub looked: [Option<bool>; PROVIDERS],
    /// All the wordings in which it was ever raised.
    pub said: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A line about a thing, by its index in [`FLAWS`].
    Flaw(usize, &'static str),
    /// Something missing under a heading, by its index in [`GAPS`].
    Gap(usize, &'static str),
}

#[derive(Clone, Debug)]
pub(super) struct Document {
    pub lines: Vec<Line>,
    pub defects: Vec<Defect>,
    /// The heading under review; `None` means the whole document.
    pub section: Option<&'static str>,
    /// The combinations used so far, so that no line occurs twice.
    used: BTreeSet<(usize, &'static str)>,
}

impl Document {
    /// Creates a document of seven sections with 4 to 14 defects, a quarter of them gaps. In three of ten documents only one
    /// section is under review.
    pub fn new(dice: &mut Dice) -> Document {
        let section = dice.percent(30).then(|| one_of(dice, HEADINGS));
        let title = Line { text: "# Plan".into(), what: What::Plain };
        let mut document =
            Document { lines: vec![title], defects: Vec::new(), section, used: BTreeSet::new() };
        for heading in HEADINGS {
            document.push("", What::Plain);
            document.push(&format!("## {heading}"), What::Heading);
            document.push("", What::Plain);
            let lines = if section == Some(*heading) { 20 } else { 4 + dice.roll(4) };
            for _ in 0..lines {
                let (text, thing) = document.innocent(dice);
                document.push(&text, What::Innocent(thing));
            }
        }
        for _ in 0..4 + dice.roll(11) {
            let heading = section.unwrap_or_else(|| one_of(dice, HEADINGS));
            if !dice.percent(25) || !document.plant_gap(dice, heading) {
                document.plant_flaw(dice, heading);
            }
        }
        document
    }

    fn push(&mut self, text: &str, what: What) {
        self.lines.push(Line { text: text.into(), what });
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            text.push_str(&line.text);
            text.push('\n');
        }
        text
    }

    /// Picks a combination of template and thing that was not used before.
    fn fresh(&mut self, dice: &mut Dice, templates: usize, offset: usize) -> (usize, &'static str) {
        loop {
            let (template, thing) = (dice.roll(templates), one_of(dice, THINGS));
            if self.used.insert((offset + template, thing)) {
                return (template, thing);
            }
        }
    }

    fn innocent(&mut self, dice: &mut Dice) -> (String, &'static str) {
        let (template, thing) = self.fresh(dice, INNOCENT.len(), FLAWS.len());
        (format!("- {}", about(INNOCENT[template], thing)), thing)
    }

    /// Plants a gap. The result is false if the same thing is already missing elsewhere.
    fn plant_gap(&mut self, dice: &mut Dice, heading: &'static str) -> bool {
        let gap = dice.roll(GAPS.len());
        let fits =
            !self.defects.iter().any(|defect| matches!(defect.kind, Kind::Gap(known, _) if known == gap));
        if fits {
            self.defects.push(Defect::new(dice, Kind::Gap(gap, heading)));
        }
        fits
    }

    fn plant_flaw(&mut self, dice: &mut Dice, heading: &'static str) {
        let (first, last) = self.under(heading);
        let line = self.new_flaw(dice);
        self.lines.insert(first + dice.roll(last - first + 1), line);
    }

    /// Creates a line with a new defect in it.
    pub fn new_flaw(&mut self, dice: &mut Dice) -> Line {
        let (flaw, thing) = self.fresh(dice, FLAWS.len(), 0);
        self.defects.push(Defect::new(dice, Kind::Flaw(flaw, thing)));
        Line {
            text: format!("- {}", about(FLAWS[flaw].line, thing)),
            what: What::Defect(self.defects.len() - 1),
        }
    }

    /// The indices of the first line under a heading and of the line after its last one.
    pub fn under(&self, heading: &str) -> (usize, usize) {
        let title = format!("## {heading}");
        let start = self.lines.iter().position(|line| line.text == title).map_or(0, |at| at + 2);
        let rest = self.lines.iter().skip(start);
        let end = rest.take_while(|line| line.what != What::Heading && !line.text.is_empty()).count();
        (start, start + end)
    }

    /// The indices of the lines under review.
    pub fn scope(&self) -> (usize, usize) {
        self.section.map_or((0, self.lines.len()), |heading| self.under(heading))
    }

    pub fn line_of(&self, defect: DefectId) -> Option<usize> {
        self.lines.iter().position(|line| line.what == What::Defect(defect))
    }

    /// Applies all edits at once; they name lines by their old indices.
    pub fn apply(&mut self, edits: Edits) -> Vec<Hunk> {
        let mut hunks = Vec::new();
        for (at, edit) in &edits.0 {
            let old_len = u32::from(edit.instead.is_some());
            hunks.push(Hunk {
                old_start: *at as u32 + 1,
                old_len,
                new_len: old_len + edit.before.len() as u32,
            });
        }
        // From the end to the start, so that insertions do not move the lines that are still to be changed.
        for (at, edit) in edits.0.into_iter().rev() {
            if let Some(line) = edit.instead {
                self.lines[at] = line;
            }
            self.lines.splice(at..at, edit.before);
        }
        hunks
    }
}

impl Defect {
    fn new(dice: &mut Dice, kind: Kind) -> Defect {
        let severity = severity(dice);
        Defect {
            kind,
            severity,
            alive: true,
            seen_by: seen_by(dice),
            looked: [None; PROVIDERS],
            said: BTreeSet::new(),
        }
    }
}

pub(super) fn severity(dice: &mut Dice) -> Severity {
    match dice.roll(100) {
        0..5 => Severity::Critical,
        5..30 => Severity::High,
        30..75 => Severity::Medium,
        _ => Severity::Low,
    }
}

/// Decides which providers find a defect. Each provider alone finds 34 % of the defects, two together 57 %, three 75 %, all four
/// 89 %, in any combination.
///
/// For that no provider finds 11 %, exactly one 14 % each, exactly two 4 % per pair, exactly three 1 % each, and all four 5 %.
fn seen_by(dice: &mut Dice) -> [bool; PROVIDERS] {
    const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
    let roll = dice.roll(100);
    match roll {
        0..11 => [false; PROVIDERS],
        11..67 => core::array::from_fn(|one| one == (roll - 11) / 14),
        67..91 => core::array::from_fn(|one| PAIRS[(roll - 67) / 4].contains(&one)),
        91..95 => core::array::from_fn(|one| one != roll - 91),
        _ => [true; PROVIDERS],
    }
}

/// Edits of lines, by index.
#[derive(Debug, Default)]
pub(super) struct Edits(BTreeMap<usize, Edit>);

#[derive(Debug, Default)]
struct Edit {
    before: Vec<Line>,
    instead: Option<Line>,
}

impl Edits {
    pub fn insert(&mut self, before: usize, line: Line) {
        self.0.entry(before).or_default().before.push(line);
    }

    /// Replaces a line. The first replacement of a line counts, later ones are ignored.
    pub fn replace(&mut self, at: usize, line: Line) {
        self.0.entry(at).or_default().instead.get_or_insert(line);
    }
}
