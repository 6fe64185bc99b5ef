//! The fixers of the court: what they repair, what they only touch, and what they break.

use tribunal_engine::files::{Hunk, PatchRefusal};
use tribunal_workflows::{
    findings::finding::Evidence,
    runs::effect::{Land, LandOutcome, Reply},
    tasks::{
        brief::{AssignedFinding, ReviewBrief},
        claims::ClaimStatus,
    },
};

use super::{
    document::{DefectId, DefectKind, DocumentLine, LineEdits, LineKind},
    vocabulary::{GAPS, fill_template},
    world::{ClaimTruth, Courtroom, truth_key},
};
use crate::samples;

/// What a fixer does about a true finding, per thousand; the rest are repairs. A visible failure changes nothing.
const VISIBLE_FAILURE: usize = 75;
/// It edits the line after the defect.
const NEIGHBOUR: usize = 100;
/// It deletes the line with the defect.
const DELETION: usize = 100;
/// It changes the line, and the defect remains.
const LIE: usize = 100;
/// It repairs the defect and changes another line as well.
const RIDE_ALONG: usize = 100;
/// The percentage of fixes that add a new defect.
const BREAK_PERCENT: usize = 5;

/// The work of a fixer in its workspace.
#[derive(Debug, Default)]
pub(super) struct FixerWork {
    steps: Vec<FixStep>,
    /// Whether the checks fail with it.
    is_refused: bool,
    /// The edits, once they were looked at.
    edits: Option<LineEdits>,
}

#[derive(Clone, Debug)]
enum FixStep {
    Repair(DefectId),
    RepairAndMore(DefectId),
    EditNeighbour(DefectId),
    Delete(DefectId),
    /// A change at the defect, which remains.
    Touch(DefectId),
    /// A change for a false finding, at this line.
    Please(Evidence, usize),
}

impl FixerWork {
    /// Whether the work repairs a defect.
    pub fn repairs_defect(&self, defect_id: DefectId) -> bool {
        self.steps.iter().any(|step| {
            matches!(step, FixStep::Repair(repaired) | FixStep::RepairAndMore(repaired) if *repaired == defect_id)
        })
    }

    /// Whether each part of the change is one that no finding asks for.
    pub fn off_task_flags(&self) -> Vec<bool> {
        self.edits.as_ref().map(LineEdits::off_task_flags).unwrap_or_default()
    }
}

impl Courtroom {
    pub(super) fn fix_findings(&mut self, effect_key: &str, brief: &ReviewBrief) -> Reply {
        let mut work = FixerWork::default();
        let claimed_statuses = brief.assigned.iter().filter_map(|assigned| {
            let claim_status = self.try_fix(assigned, &mut work);
            claim_status.map(|claim_status| (assigned.id, claim_status))
        });
        let claims = claimed_statuses.collect();
        let changed = !work.steps.is_empty();
        self.pending_work.insert(effect_key.to_string(), work);
        samples::fixes_reply(claims, changed)
    }

    /// Tries to fix one finding. `None` means that the fixer does not mention it.
    fn try_fix(&mut self, assigned: &AssignedFinding, work: &mut FixerWork) -> Option<ClaimStatus> {
        let truth = self.truths.get(&truth_key(&assigned.description, &assigned.evidence)).copied();
        let Some(ClaimTruth::Defect(defect_id)) = truth else {
            let line_number = assigned.place.rsplit(':').next().and_then(|number_text| number_text.parse().ok());
            work.steps.push(FixStep::Please(assigned.evidence.clone(), line_number.unwrap_or(0)));
            return Some(ClaimStatus::Fixed);
        };
        if !self.document.defects[defect_id].is_present {
            // Another fix has repaired it already, so there is nothing to change.
            return Some(ClaimStatus::Fixed);
        }
        let mut roll = self.dice.roll(1000);
        let mut is_below = |rate: usize| {
            let is_chosen = roll < rate;
            roll = roll.saturating_sub(rate);
            // What was chosen is not asked for again.
            is_chosen
        };
        if is_below(VISIBLE_FAILURE) {
            return match self.dice.roll(5) {
                0 => Some(ClaimStatus::Blocked),
                1 => {
                    work.is_refused = true;
                    work.steps.push(FixStep::Touch(defect_id));
                    Some(ClaimStatus::Fixed)
                }
                2 => None,
                _ => Some(ClaimStatus::Fixed),
            };
        }
        work.steps.push(if is_below(NEIGHBOUR) {
            FixStep::EditNeighbour(defect_id)
        } else if is_below(DELETION) {
            FixStep::Delete(defect_id)
        } else if is_below(LIE) {
            FixStep::Touch(defect_id)
        } else if is_below(RIDE_ALONG) {
            FixStep::RepairAndMore(defect_id)
        } else {
            FixStep::Repair(defect_id)
        });
        Some(ClaimStatus::Fixed)
    }

    pub(super) fn land_work(&mut self, landing: &Land) -> Reply {
        let fixer_key = landing.by.as_str();
        let mut work = self.pending_work.remove(fixer_key).unwrap_or_default();
        if work.edits.is_none() {
            work.edits = Some(self.prepare_edits(&work.steps));
        }
        let edits = work.edits.clone().unwrap_or_default();
        let dropped_hunks: Vec<Hunk> = landing.without.iter().map(|part| part.hunk).collect();
        if landing.preview {
            let mut previewed = self.document.clone();
            let hunks = previewed.apply_edits(&edits, &dropped_hunks);
            self.pending_work.insert(fixer_key.to_string(), work);
            return samples::preview_of(samples::landed_reply(&previewed.full_text(), hunks));
        }
        if work.is_refused {
            let why = PatchRefusal::Check { command: "check".into(), output: "no".into() };
            return Reply::Land(LandOutcome::Refused { why });
        }
        let off_task_flags = work.off_task_flags();
        let hunks = self.document.apply_edits(&edits, &dropped_hunks);
        // A flag is about the hunk at the same place in the whole patch.
        let all_hunks = edits.all_hunks();
        let is_landed_off_task = |(hunk, is_off_task): (&Hunk, &bool)| *is_off_task && !dropped_hunks.contains(hunk);
        self.landed_off_task +=
            all_hunks.iter().zip(&off_task_flags).filter(|pair| is_landed_off_task(*pair)).count() as u64;
        for defect_id in 0..self.document.defects.len() {
            // A defect whose line was not changed after all is still there.
            if work.repairs_defect(defect_id) {
                self.document.defects[defect_id].is_present =
                    self.document.find_defect_line(defect_id).is_some() || self.document.is_gap_open(defect_id);
            }
        }
        samples::landed_reply(&self.document.full_text(), hunks)
    }

    fn prepare_edits(&mut self, steps: &[FixStep]) -> LineEdits {
        let mut edits = LineEdits::default();
        for step in steps {
            let Some(changed_line) = self.apply_step(&mut edits, step) else { continue };
            if self.dice.roll_percent(BREAK_PERCENT) {
                let new_flaw_line = self.document.new_flaw(&mut self.dice);
                edits.insert_before(changed_line, new_flaw_line);
            }
        }
        edits
    }

    /// Applies one step and returns the index after the changed line. `None` means that there was nothing to change.
    fn apply_step(&mut self, edits: &mut LineEdits, step: &FixStep) -> Option<usize> {
        match step {
            FixStep::Repair(defect_id) => self.repair_defect(edits, *defect_id),
            FixStep::RepairAndMore(defect_id) => {
                let changed_line = self.repair_defect(edits, *defect_id);
                self.change_other_line(edits);
                changed_line
            }
            FixStep::EditNeighbour(defect_id) => {
                let next_line = self.document.find_defect_line(*defect_id)? + 1;
                let DocumentLine { text, line_kind } = self.document.lines.get(next_line)?.clone();
                let is_free = matches!(line_kind, LineKind::Innocent(_)) && !edits.changes_line(next_line);
                if is_free {
                    edits.replace_off_task(next_line, DocumentLine { text: format!("{text} See above."), line_kind });
                }
                is_free.then_some(next_line + 1)
            }
            FixStep::Delete(defect_id) => {
                let line_index = self.document.find_defect_line(*defect_id)?;
                edits.delete_line(line_index);
                Some(line_index + 1)
            }
            FixStep::Touch(defect_id) => self.touch_defect(edits, *defect_id),
            FixStep::Please(evidence, line_number) => self.satisfy_false_finding(edits, evidence, *line_number),
        }
    }

    fn repair_defect(&mut self, edits: &mut LineEdits, defect_id: DefectId) -> Option<usize> {
        let plain_line = |text: String| DocumentLine { text, line_kind: LineKind::Plain };
        match (self.document.find_defect_line(defect_id), self.document.defects[defect_id].kind) {
            (Some(line_index), DefectKind::Flaw(_, thing)) => {
                let text = format!("- Rule {defect_id} for the {thing} is agreed, written down and tested.");
                edits.replace_line(line_index, plain_line(text));
                Some(line_index + 1)
            }
            (Some(line_index), DefectKind::Gap(gap, _)) => {
                edits.replace_line(line_index, plain_line(format!("- {}", GAPS[gap].supplied)));
                Some(line_index + 1)
            }
            (None, DefectKind::Gap(gap, heading)) => {
                let (first_line, _) = self.document.lines_under(heading);
                edits.insert_before(first_line, plain_line(format!("- {}", GAPS[gap].supplied)));
                Some(first_line)
            }
            (None, DefectKind::Flaw(..)) => None,
        }
    }

    /// Changes an innocent line that no finding is about.
    fn change_other_line(&mut self, edits: &mut LineEdits) {
        let innocent = self.document.lines.iter().enumerate();
        let innocent: Vec<usize> = innocent
            .filter(|(_, line)| matches!(line.line_kind, LineKind::Innocent(_)))
            .map(|(index, _)| index)
            .collect();
        if !innocent.is_empty() {
            let line_index = *self.dice.pick(&innocent);
            let DocumentLine { text, line_kind } = self.document.lines[line_index].clone();
            edits.replace_off_task(
                line_index,
                DocumentLine { text: format!("{text} Anybody may change it."), line_kind },
            );
        }
    }

    /// Changes the text at a defect so that the defect remains.
    fn touch_defect(&mut self, edits: &mut LineEdits, defect_id: DefectId) -> Option<usize> {
        match (self.document.find_defect_line(defect_id), self.document.defects[defect_id].kind) {
            (Some(line_index), _) => {
                let text = format!("{} As agreed in point {defect_id}.", self.document.lines[line_index].text);
                edits.replace_line(line_index, DocumentLine { text, line_kind: LineKind::Defect(defect_id) });
                Some(line_index + 1)
            }
            (None, DefectKind::Gap(gap, heading)) => {
                let (first_line, _) = self.document.lines_under(heading);
                let text = format!("- The {} is to be decided later.", GAPS[gap].terms[0]);
                edits.insert_before(first_line, DocumentLine { text, line_kind: LineKind::Defect(defect_id) });
                Some(first_line)
            }
            (None, DefectKind::Flaw(..)) => None,
        }
    }

    fn satisfy_false_finding(
        &mut self,
        edits: &mut LineEdits,
        evidence: &Evidence,
        line_number: usize,
    ) -> Option<usize> {
        match evidence {
            Evidence::Quote { text: quote_text } => {
                let lines = self.document.lines.iter().enumerate();
                let quoted_lines =
                    lines.filter(|(_, line)| line.text.contains(quote_text.as_str())).map(|(line_index, _)| line_index);
                let line_index = quoted_lines.min_by_key(|line_index| (line_index + 1).abs_diff(line_number))?;
                let DocumentLine { text, line_kind } = self.document.lines[line_index].clone();
                edits.replace_line(line_index, DocumentLine { text: format!("{text} This is on purpose."), line_kind });
                Some(line_index + 1)
            }
            Evidence::Absence { heading, terms } => {
                let term = terms.first().map_or("", String::as_str);
                let (first_line, _) = self.document.lines_under(heading);
                let text = fill_template("- There is no need of {} here.", term);
                edits.insert_before(first_line, DocumentLine { text, line_kind: LineKind::Plain });
                Some(first_line)
            }
            // The simulated court has no checks.
            Evidence::Check { .. } => None,
        }
    }
}
