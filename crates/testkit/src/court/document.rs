//! A document with known defects, and edits of it that yield hunks.

use std::collections::{BTreeMap, BTreeSet};

use tribunal_engine::files::Hunk;
use tribunal_workflows::findings::finding::Severity;

use super::vocabulary::{FLAWS, GAPS, HEADINGS, INNOCENT, THINGS, fill_template, pick_word};
use crate::dice::Dice;

/// The number of providers, whether they are asked or not.
pub(super) const PROVIDERS: usize = 4;

/// The percentage of flaws that come in pairs from one template.
const TEMPLATED_PERCENT: usize = 25;

/// The index of a defect in [`CourtDocument::defects`].
pub(super) type DefectId = usize;

#[derive(Clone, Debug)]
pub(super) struct DocumentLine {
    pub text: String,
    pub line_kind: LineKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    Heading,
    /// A line without a defect, and the thing it is about.
    Innocent(&'static str),
    Defect(DefectId),
    Plain,
}

#[derive(Clone, Debug)]
pub(super) struct PlantedDefect {
    pub kind: DefectKind,
    pub severity: Severity,
    /// Whether the defect has not been repaired.
    pub is_present: bool,
    /// The providers that see it at their first look.
    pub seen_by: [bool; PROVIDERS],
    /// What each provider saw at its last look.
    pub last_looks: [Option<bool>; PROVIDERS],
    /// All the wordings in which it was ever raised.
    pub descriptions: BTreeSet<String>,
    /// A line next to it has the same flaw, and reviewers use the same words for both.
    pub is_templated: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum DefectKind {
    /// A line about a thing, by its index in [`FLAWS`].
    Flaw(usize, &'static str),
    /// Something missing under a heading, by its index in [`GAPS`].
    Gap(usize, &'static str),
}

#[derive(Clone, Debug)]
pub(super) struct CourtDocument {
    pub lines: Vec<DocumentLine>,
    pub defects: Vec<PlantedDefect>,
    /// The heading under review; `None` means the whole document.
    pub section: Option<&'static str>,
    /// The combinations used so far, so that no line occurs twice.
    used_lines: BTreeSet<(usize, &'static str)>,
}

impl CourtDocument {
    /// Creates a document of seven sections with 4 to 14 defects, a quarter of them gaps. Four of ten flaws come in pairs on
    /// neighbouring lines, from one template. In three of ten documents only one section is under review.
    pub fn new(dice: &mut Dice) -> CourtDocument {
        let section = dice.roll_percent(30).then(|| pick_word(dice, HEADINGS));
        let title = DocumentLine { text: "# Plan".into(), line_kind: LineKind::Plain };
        let mut document =
            CourtDocument { lines: vec![title], defects: Vec::new(), section, used_lines: BTreeSet::new() };
        for heading in HEADINGS {
            document.push_line("", LineKind::Plain);
            document.push_line(&format!("## {heading}"), LineKind::Heading);
            document.push_line("", LineKind::Plain);
            let line_count = if section == Some(*heading) { 20 } else { 4 + dice.roll(4) };
            for _ in 0..line_count {
                let (text, thing) = document.innocent_line(dice);
                document.push_line(&text, LineKind::Innocent(thing));
            }
        }
        let defect_count = 4 + dice.roll(11);
        while document.defects.len() < defect_count {
            let heading = section.unwrap_or_else(|| pick_word(dice, HEADINGS));
            if !dice.roll_percent(25) || !document.plant_gap(dice, heading) {
                document.plant_flaw(dice, heading);
            }
        }
        document
    }

    fn push_line(&mut self, text: &str, line_kind: LineKind) {
        self.lines.push(DocumentLine { text: text.into(), line_kind });
    }

    pub fn full_text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            text.push_str(&line.text);
            text.push('\n');
        }
        text
    }

    /// Picks a combination of template and thing that was not used before.
    fn pick_unused(&mut self, dice: &mut Dice, template_count: usize, offset: usize) -> (usize, &'static str) {
        loop {
            let (template, thing) = (dice.roll(template_count), pick_word(dice, THINGS));
            if self.used_lines.insert((offset + template, thing)) {
                return (template, thing);
            }
        }
    }

    fn innocent_line(&mut self, dice: &mut Dice) -> (String, &'static str) {
        let (template, thing) = self.pick_unused(dice, INNOCENT.len(), FLAWS.len());
        (format!("- {}", fill_template(INNOCENT[template], thing)), thing)
    }

    /// Plants a gap. The result is false if the same thing is already missing elsewhere.
    fn plant_gap(&mut self, dice: &mut Dice, heading: &'static str) -> bool {
        let gap_index = dice.roll(GAPS.len());
        let is_new =
            !self.defects.iter().any(|defect| matches!(defect.kind, DefectKind::Gap(known, _) if known == gap_index));
        if is_new {
            self.defects.push(PlantedDefect::new(dice, DefectKind::Gap(gap_index, heading)));
        }
        is_new
    }

    fn plant_flaw(&mut self, dice: &mut Dice, heading: &'static str) {
        let (first, last) = self.lines_under(heading);
        let line = self.new_flaw(dice);
        let line_index = first + dice.roll(last - first + 1);
        self.lines.insert(line_index, line);
        if dice.roll_percent(TEMPLATED_PERCENT) {
            self.plant_twin(dice, line_index + 1);
        }
    }

    /// Plants the flaw of the last defect once more, about another thing.
    fn plant_twin(&mut self, dice: &mut Dice, line_index: usize) {
        let Some(DefectKind::Flaw(flaw_index, _)) = self.defects.last().map(|defect| defect.kind) else { return };
        let thing = pick_word(dice, THINGS);
        if !self.used_lines.insert((flaw_index, thing)) {
            return;
        }
        self.defects.push(PlantedDefect::new(dice, DefectKind::Flaw(flaw_index, thing)));
        let twin_id = self.defects.len() - 1;
        for defect in &mut self.defects[twin_id - 1..] {
            defect.is_templated = true;
        }
        let text = format!("- {}", fill_template(FLAWS[flaw_index].line, thing));
        self.lines.insert(line_index, DocumentLine { text, line_kind: LineKind::Defect(twin_id) });
    }

    /// Creates a line with a new defect in it.
    pub fn new_flaw(&mut self, dice: &mut Dice) -> DocumentLine {
        let (flaw_index, thing) = self.pick_unused(dice, FLAWS.len(), 0);
        self.defects.push(PlantedDefect::new(dice, DefectKind::Flaw(flaw_index, thing)));
        DocumentLine {
            text: format!("- {}", fill_template(FLAWS[flaw_index].line, thing)),
            line_kind: LineKind::Defect(self.defects.len() - 1),
        }
    }

    /// The indices of the first line under a heading and of the line after its last one.
    pub fn lines_under(&self, heading: &str) -> (usize, usize) {
        let title = format!("## {heading}");
        let start = self.lines.iter().position(|line| line.text == title).map_or(0, |title_index| title_index + 2);
        let following_lines = self.lines.iter().skip(start);
        let line_count =
            following_lines.take_while(|line| line.line_kind != LineKind::Heading && !line.text.is_empty()).count();
        (start, start + line_count)
    }

    /// The indices of the lines under review.
    pub fn reviewed_lines(&self) -> (usize, usize) {
        self.section.map_or((0, self.lines.len()), |heading| self.lines_under(heading))
    }

    /// Whether what a gap misses is still missing.
    pub fn is_gap_open(&self, defect: DefectId) -> bool {
        match self.defects[defect].kind {
            DefectKind::Flaw(..) => false,
            DefectKind::Gap(gap, _) => {
                let supplied_text = format!("- {}", GAPS[gap].supplied);
                !self.lines.iter().any(|line| line.text == supplied_text)
            }
        }
    }

    pub fn find_defect_line(&self, defect: DefectId) -> Option<usize> {
        self.lines.iter().position(|line| line.line_kind == LineKind::Defect(defect))
    }

    /// Applies the edits except for some hunks; they name lines by their old indices. Returns the hunks of the others.
    pub fn apply_edits(&mut self, edits: &LineEdits, without: &[Hunk]) -> Vec<Hunk> {
        let kept_edits: Vec<(usize, &LineEdit)> = edits
            .0
            .iter()
            .map(|(index, edit)| (*index, edit))
            .filter(|(index, edit)| !without.contains(&edit.hunk_at(*index)))
            .collect();
        // From the end to the start, so that insertions do not move the lines that are still to be changed.
        for (line_index, edit) in kept_edits.iter().rev() {
            match &edit.change {
                LineChange::None => {}
                LineChange::Replace(line) => self.lines[*line_index] = line.clone(),
                LineChange::Delete => drop(self.lines.remove(*line_index)),
            }
            self.lines.splice(line_index..line_index, edit.inserted_lines.iter().cloned());
        }
        kept_edits.iter().map(|(line_index, edit)| edit.hunk_at(*line_index)).collect()
    }
}

impl PlantedDefect {
    fn new(dice: &mut Dice, kind: DefectKind) -> PlantedDefect {
        let severity = roll_severity(dice);
        PlantedDefect {
            kind,
            severity,
            is_present: true,
            seen_by: roll_finders(dice),
            last_looks: [None; PROVIDERS],
            descriptions: BTreeSet::new(),
            is_templated: false,
        }
    }
}

pub(super) fn roll_severity(dice: &mut Dice) -> Severity {
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
fn roll_finders(dice: &mut Dice) -> [bool; PROVIDERS] {
    const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
    let roll = dice.roll(100);
    match roll {
        0..11 => [false; PROVIDERS],
        11..67 => core::array::from_fn(|provider| provider == (roll - 11) / 14),
        67..91 => core::array::from_fn(|provider| PAIRS[(roll - 67) / 4].contains(&provider)),
        91..95 => core::array::from_fn(|provider| provider != roll - 91),
        _ => [true; PROVIDERS],
    }
}

/// Edits of lines, by index.
#[derive(Clone, Debug, Default)]
pub(super) struct LineEdits(BTreeMap<usize, LineEdit>);

#[derive(Clone, Debug, Default)]
struct LineEdit {
    inserted_lines: Vec<DocumentLine>,
    change: LineChange,
    /// No finding asks for it.
    is_off_task: bool,
}

#[derive(Clone, Debug, Default)]
enum LineChange {
    #[default]
    None,
    Replace(DocumentLine),
    Delete,
}

impl LineEdit {
    fn hunk_at(&self, line_index: usize) -> Hunk {
        let inserted_count = self.inserted_lines.len() as u32;
        let (old_len, new_len) = match self.change {
            LineChange::None => (0, inserted_count),
            LineChange::Replace(_) => (1, inserted_count + 1),
            LineChange::Delete => (1, inserted_count),
        };
        Hunk { old_start: line_index as u32 + 1, old_len, new_len }
    }
}

impl LineEdits {
    pub fn insert_before(&mut self, line_index: usize, line: DocumentLine) {
        self.0.entry(line_index).or_default().inserted_lines.push(line);
    }

    /// Replaces a line. The first change of a line counts, later ones are ignored.
    pub fn replace_line(&mut self, line_index: usize, line: DocumentLine) {
        self.change_line(line_index, LineChange::Replace(line));
    }

    pub fn delete_line(&mut self, line_index: usize) {
        self.change_line(line_index, LineChange::Delete);
    }

    /// Replaces a line that no finding is about, unless it is changed already.
    pub fn replace_off_task(&mut self, line_index: usize, line: DocumentLine) {
        if !self.0.contains_key(&line_index) {
            self.replace_line(line_index, line);
            self.0.entry(line_index).or_default().is_off_task = true;
        }
    }

    fn change_line(&mut self, line_index: usize, change: LineChange) {
        let edit = self.0.entry(line_index).or_default();
        if matches!(edit.change, LineChange::None) {
            edit.change = change;
        }
    }

    /// The hunks of all edits, in order.
    pub fn all_hunks(&self) -> Vec<Hunk> {
        self.0.iter().map(|(line_index, edit)| edit.hunk_at(*line_index)).collect()
    }

    /// Whether each hunk is one that no finding asks for, in the order of the hunks.
    pub fn off_task_flags(&self) -> Vec<bool> {
        self.0.values().map(|edit| edit.is_off_task).collect()
    }

    /// Whether a line is changed, and not only one before it inserted.
    pub fn changes_line(&self, line_index: usize) -> bool {
        self.0.get(&line_index).is_some_and(|edit| !matches!(edit.change, LineChange::None))
    }
}
