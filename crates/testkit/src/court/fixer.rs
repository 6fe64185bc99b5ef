//! The fixers of the court: what they repair, what they only touch, and what they break.

use tribunal_core::{
    engine::{
        effect::{LandOutcome, Reply},
        files::PatchRefusal,
    },
    review::finding::Evidence,
    tasks::{
        brief::{AssignedFinding, ReviewBrief},
        claims::ClaimStatus,
    },
};

use super::{
    document::{DefectId, DefectKind, DocumentLine, LineEdits, LineKind},
    vocabulary::{GAPS, fill_template},
    world::{ClaimTruth, Courtroom},
};
use crate::samples;

/// The rate of successful fixes per thousand findings. A visible failure changes nothing, a silent one adds a line near the
/// defect.
const SUCCESS_PER_THOUSAND: usize = 850;
const VISIBLE_FAILURE_PER_THOUSAND: usize = 75;
/// The percentage of fixes that add a new defect.
const BREAK_PERCENT: usize = 5;

/// The work of a fixer in its workspace.
#[derive(Debug, Default)]
pub(super) struct FixerWork {
    steps: Vec<FixStep>,
    /// Whether the checks fail with it.
    is_refused: bool,
}

#[derive(Debug)]
enum FixStep {
    Repair(DefectId),
    /// A change near the defect, which remains.
    Touch(DefectId),
    /// A change for a false finding, at this line.
    Please(Evidence, usize),
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
        let Some(ClaimTruth::Defect(defect_id)) = self.truths.get(&assigned.description).copied() else {
            let line_number = assigned.place.rsplit(':').next().and_then(|number_text| number_text.parse().ok());
            work.steps.push(FixStep::Please(assigned.evidence.clone(), line_number.unwrap_or(0)));
            return Some(ClaimStatus::Fixed);
        };
        if !self.document.defects[defect_id].is_present {
            // Another fix has repaired it already, so there is nothing to change.
            return Some(ClaimStatus::Fixed);
        }
        match self.dice.roll(1000) {
            roll if roll < SUCCESS_PER_THOUSAND => work.steps.push(FixStep::Repair(defect_id)),
            roll if roll < SUCCESS_PER_THOUSAND + VISIBLE_FAILURE_PER_THOUSAND => {
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
            _ => work.steps.push(FixStep::Touch(defect_id)),
        }
        Some(ClaimStatus::Fixed)
    }

    pub(super) fn land_work(&mut self, fixer_key: &str) -> Reply {
        let work = self.pending_work.remove(fixer_key).unwrap_or_default();
        if work.is_refused {
            let why = PatchRefusal::Check { command: "check".into(), output: "no".into() };
            return Reply::Land(LandOutcome::Refused { why });
        }
        let mut edits = LineEdits::default();
        for step in work.steps {
            let Some(changed_line) = self.apply_step(&mut edits, step) else { continue };
            if self.dice.roll_percent(BREAK_PERCENT) {
                let new_flaw_line = self.document.new_flaw(&mut self.dice);
                edits.insert_before(changed_line, new_flaw_line);
            }
        }
        let hunks = self.document.apply_edits(edits);
        samples::landed_reply(&self.document.full_text(), hunks)
    }

    /// Applies one step and returns the index after the changed line. `None` means that there was nothing to change.
    fn apply_step(&mut self, edits: &mut LineEdits, step: FixStep) -> Option<usize> {
        match step {
            FixStep::Repair(defect_id) | FixStep::Touch(defect_id) if !self.document.defects[defect_id].is_present => {
                None
            }
            FixStep::Repair(defect_id) => {
                self.document.defects[defect_id].is_present = false;
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
            FixStep::Touch(defect_id) => {
                let nearby_line = |line_kind| {
                    let text = format!("- Point {defect_id} of the list is looked at in the next meeting.");
                    DocumentLine { text, line_kind }
                };
                match (self.document.find_defect_line(defect_id), self.document.defects[defect_id].kind) {
                    (Some(line_index), _) => {
                        edits.insert_before(line_index + 1, nearby_line(LineKind::Plain));
                        Some(line_index + 1)
                    }
                    (None, DefectKind::Gap(gap, heading)) => {
                        let (first_line, _) = self.document.lines_under(heading);
                        let text = format!("- The {} is to be decided later by somebody.", GAPS[gap].terms[0]);
                        edits.insert_before(first_line, DocumentLine { text, line_kind: LineKind::Defect(defect_id) });
                        Some(first_line)
                    }
                    (None, DefectKind::Flaw(..)) => None,
                }
            }
            FixStep::Please(evidence, line_number) => self.satisfy_false_finding(edits, &evidence, line_number),
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
