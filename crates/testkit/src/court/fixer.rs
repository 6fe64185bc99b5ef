//! The fixers of the court: what they repair, what they only touch, and what they break.

use tribunal_core::{
    brief::{Assigned, Brief, Said},
    effect::{LandOutcome, Reply},
    files::Refusal,
    finding::Evidence,
};

use super::{
    document::{DefectId, Edits, Kind, Line, What},
    vocabulary::{GAPS, about},
    world::{Courtroom, Truth},
};
use crate::samples;

/// The rate of successful fixes per thousand findings. A visible failure changes nothing, a silent one changes a line near the
/// defect.
const SUCCEEDS: usize = 850;
const FAILS_VISIBLY: usize = 75;
/// The percentage of fixes that add a new defect.
const BREAKS: usize = 5;

/// The work of a fixer in its workspace.
#[derive(Debug, Default)]
pub(super) struct Work {
    steps: Vec<Step>,
    /// Whether the checks fail with it.
    refused: bool,
}

#[derive(Debug)]
enum Step {
    Repair(DefectId),
    /// A change near the defect, which remains.
    Touch(DefectId),
    /// A change for a false finding, at this line.
    Please(Evidence, usize),
}

impl Courtroom {
    pub(super) fn fix(&mut self, key: &str, brief: &Brief) -> Reply {
        let mut work = Work::default();
        let said = brief.assigned.iter().filter_map(|assigned| {
            let said = self.try_one(assigned, &mut work);
            said.map(|said| (assigned.id, said))
        });
        let claims = said.collect();
        let changed = !work.steps.is_empty();
        self.work.insert(key.to_string(), work);
        samples::fixes(claims, changed)
    }

    /// Tries to fix one finding. `None` means that the fixer does not mention it.
    fn try_one(&mut self, assigned: &Assigned, work: &mut Work) -> Option<Said> {
        let Some(Truth::Defect(id)) = self.truths.get(&assigned.description).copied() else {
            let line = assigned.place.rsplit(':').next().and_then(|line| line.parse().ok());
            work.steps.push(Step::Please(assigned.evidence.clone(), line.unwrap_or(0)));
            return Some(Said::Fixed);
        };
        if !self.document.defects[id].alive {
            // Another fix has repaired it already, so there is nothing to change.
            return Some(Said::Fixed);
        }
        match self.dice.roll(1000) {
            roll if roll < SUCCEEDS => work.steps.push(Step::Repair(id)),
            roll if roll < SUCCEEDS + FAILS_VISIBLY => {
                return match self.dice.roll(5) {
                    0 => Some(Said::Blocked),
                    1 => {
                        work.refused = true;
                        work.steps.push(Step::Touch(id));
                        Some(Said::Fixed)
                    }
                    2 => None,
                    _ => Some(Said::Fixed),
                };
            }
            _ => work.steps.push(Step::Touch(id)),
        }
        Some(Said::Fixed)
    }

    pub(super) fn land(&mut self, by: &str) -> Reply {
        let work = self.work.remove(by).unwrap_or_default();
        if work.refused {
            let why = Refusal::Check { command: "check".into(), output: "no".into() };
            return Reply::Land(LandOutcome::Refused { why });
        }
        let mut edits = Edits::default();
        for step in work.steps {
            let Some(at) = self.take(&mut edits, step) else { continue };
            if self.dice.percent(BREAKS) {
                let broken = self.document.new_flaw(&mut self.dice);
                edits.insert(at, broken);
            }
        }
        let hunks = self.document.apply(edits);
        samples::landed(&self.document.text(), hunks)
    }

    /// Applies one step and returns the index after the changed line. `None` means that there was nothing to change.
    fn take(&mut self, edits: &mut Edits, step: Step) -> Option<usize> {
        match step {
            Step::Repair(id) | Step::Touch(id) if !self.document.defects[id].alive => None,
            Step::Repair(id) => {
                self.document.defects[id].alive = false;
                let line = |text: String| Line { text, what: What::Plain };
                match (self.document.line_of(id), self.document.defects[id].kind) {
                    (Some(at), Kind::Flaw(_, thing)) => {
                        let text = format!("- Rule {id} for the {thing} is agreed, written down and tested.");
                        edits.replace(at, line(text));
                        Some(at + 1)
                    }
                    (Some(at), Kind::Gap(gap, _)) => {
                        edits.replace(at, line(format!("- {}", GAPS[gap].supplied)));
                        Some(at + 1)
                    }
                    (None, Kind::Gap(gap, heading)) => {
                        let (first, _) = self.document.under(heading);
                        edits.insert(first, line(format!("- {}", GAPS[gap].supplied)));
                        Some(first)
                    }
                    (None, Kind::Flaw(..)) => None,
                }
            }
            Step::Touch(id) => {
                let beside = |what| {
                    let text = format!("- Point {id} of the list is looked at in the next meeting.");
                    Line { text, what }
                };
                match (self.document.line_of(id), self.document.defects[id].kind) {
                    (Some(at), _) => {
                        edits.insert(at + 1, beside(What::Plain));
                        Some(at + 1)
                    }
                    (None, Kind::Gap(gap, heading)) => {
                        let (first, _) = self.document.under(heading);
                        let text =
                            format!("- The {} is to be decided later by somebody.", GAPS[gap].terms[0]);
                        edits.insert(first, Line { text, what: What::Defect(id) });
                        Some(first)
                    }
                    (None, Kind::Flaw(..)) => None,
                }
            }
            Step::Please(evidence, line) => self.please(edits, &evidence, line),
        }
    }

    fn please(&mut self, edits: &mut Edits, evidence: &Evidence, line: usize) -> Option<usize> {
        match evidence {
            Evidence::Quote { text } => {
                let lines = self.document.lines.iter().enumerate();
                let quoted = lines.filter(|(_, line)| line.text.contains(text.as_str())).map(|(at, _)| at);
                let at = quoted.min_by_key(|at| (at + 1).abs_diff(line))?;
                let Line { text, what } = self.document.lines[at].clone();
                edits.replace(at, Line { text: format!("{text} This is on purpose."), what });
                Some(at + 1)
            }
            Evidence::Absence { heading, terms } => {
                let term = terms.first().map_or("", String::as_str);
                let (first, _) = self.document.under(heading);
                let text = about("- There is no need of {} here.", term);
                edits.insert(first, Line { text, what: What::Plain });
                Some(first)
            }
        }
    }
}
