//! The reviewers of the court: what they see, how they word it, and what they invent.

use tribunal_workflows::{
    findings::{
        agent_role::AgentRole,
        finding::{Evidence, Severity},
    },
    tasks::brief::{RaisedFinding, ReviewBrief},
};

use super::{
    document::{DefectId, DefectKind, LineKind, PlantedDefect, roll_severity},
    vocabulary::{
        FALSE_OBJECTIONS, FLAWS, GAP_WORDINGS, GAPS, HEADINGS, INVENTED, NEEDLESS_TOPICS, THINGS, fill_template,
        pick_word,
    },
    world::{ClaimTruth, Courtroom, RecordedClaim, truth_key},
};
use crate::dice::Dice;

/// The percentage of repeated looks that are independent of the first; in the others a provider sees what it saw before.
const FRESH_LOOK_PERCENT: usize = 25;
/// The percentage of defects that one independent look finds.
const FIND_PERCENT: usize = 34;
/// The percentage of answers that a reviewer gives twice.
const REPETITION_PERCENT: usize = 10;
/// The percentage of known defects that are raised again.
const REPEAT_PERCENT: usize = 10;
/// The number of false claims owed for a thousand true ones, so that about 35 % of all claims are false. Those that are still
/// owed at the end of a run are never raised.
const FALSE_PER_THOUSAND: usize = 550;
/// The percentage of false claims that come with the answer in which they are owed; the others come with a later one.
const IMMEDIATE_PERCENT: usize = 80;
/// The percentage of false claims whose evidence does not exist or is not under review.
const GROUNDLESS_PERCENT: usize = 60;

/// A reviewer's place in the panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CourtSeat {
    pub provider: usize,
    pub role: AgentRole,
    pub round: u32,
}

impl Courtroom {
    pub(super) fn review_document(&mut self, seat: CourtSeat, brief: &ReviewBrief) -> Vec<RaisedFinding> {
        let mut raised = Vec::new();
        for defect_id in 0..self.document.defects.len() {
            let is_deleted = matches!(self.document.defects[defect_id].kind, DefectKind::Flaw(..))
                && self.document.find_defect_line(defect_id).is_none();
            if !self.document.defects[defect_id].is_present || is_deleted || !self.sees_defect(seat.provider, defect_id)
            {
                continue;
            }
            if self.is_known_defect(defect_id, &brief.known) && !self.dice.roll_percent(REPEAT_PERCENT) {
                continue;
            }
            // Asked once more, a reviewer only adds what it has not said before.
            let is_repeated = |recorded_claim: &RecordedClaim| {
                recorded_claim.seat == seat && recorded_claim.truth == ClaimTruth::Defect(defect_id)
            };
            if self.claims.iter().any(is_repeated) {
                continue;
            }
            let raised_claim = self.describe_defect(seat, defect_id);
            self.document.defects[defect_id].descriptions.insert(raised_claim.description.clone());
            raised.push((raised_claim, ClaimTruth::Defect(defect_id)));
            self.owed_claims[seat.provider] += usize::from(self.dice.roll(1000) < FALSE_PER_THOUSAND);
        }
        let owed_claims = self.owed_claims[seat.provider];
        for _ in 0..owed_claims {
            if self.dice.roll_percent(IMMEDIATE_PERCENT) {
                self.owed_claims[seat.provider] -= 1;
                let (raised_claim, groundless) = self.invent_claim();
                raised.push((raised_claim, ClaimTruth::False { groundless }));
            }
        }
        for (raised_claim, truth) in &raised {
            let (description, evidence) = (raised_claim.description.clone(), raised_claim.evidence.clone());
            self.truths.entry(truth_key(&description, &evidence)).or_insert(*truth);
            self.claims.push(RecordedClaim { seat, description, evidence, truth: *truth });
        }
        let mut answer: Vec<RaisedFinding> = raised.into_iter().map(|(raised_claim, _)| raised_claim).collect();
        if self.dice.roll_percent(REPETITION_PERCENT) {
            // Some clients print their answer twice.
            let repeated = answer.clone();
            answer.extend(repeated);
        }
        answer
    }

    fn sees_defect(&mut self, provider: usize, defect_id: DefectId) -> bool {
        let defect = &mut self.document.defects[defect_id];
        let is_seen = match defect.last_looks[provider] {
            None => defect.seen_by[provider],
            Some(_) if self.dice.roll_percent(FRESH_LOOK_PERCENT) => self.dice.roll_percent(FIND_PERCENT),
            Some(seen_before) => seen_before,
        };
        defect.last_looks[provider] = Some(is_seen);
        is_seen
    }

    /// Whether the brief lists the defect. A reviewer may raise a defect again that is listed as fixed but is not.
    fn is_known_defect(&self, defect_id: DefectId, known_lines: &[String]) -> bool {
        let PlantedDefect { descriptions, is_templated, .. } = &self.document.defects[defect_id];
        // Only the place tells flaws from one template apart.
        let line_number = self.document.find_defect_line(defect_id).map_or(0, |line_index| line_index + 1);
        let place_text = format!(" plan.md:{line_number}: ");
        let unfixed_lines = known_lines
            .iter()
            .filter(|known_line| !known_line.ends_with("[fixed]"))
            .filter(|known_line| !is_templated || known_line.contains(&place_text));
        unfixed_lines
            .into_iter()
            .any(|known_line| descriptions.iter().any(|description| known_line.contains(description.as_str())))
    }

    /// Describes a defect; a seat words the same defect always in the same way.
    fn describe_defect(&mut self, seat: CourtSeat, defect_id: DefectId) -> RaisedFinding {
        let seat_bits = (seat.provider as u64 + 1) << 40 | (seat.role as u64 + 1) << 48 | defect_id as u64;
        let mut style = Dice::new(self.seed ^ seat_bits.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let defect = &self.document.defects[defect_id];
        let severity = vary_severity(&mut style, defect.severity);
        let line_index = self.document.find_defect_line(defect_id);
        let is_templated = defect.is_templated;
        let quote_text = line_index.map(|line_index| match &self.document.lines[line_index].text {
            // A part of the line could be that of its neighbour.
            text if is_templated => text.trim_start_matches("- ").to_string(),
            text => quote_line(&mut style, text),
        });
        let (evidence, description) = match (defect.kind, quote_text) {
            (DefectKind::Flaw(flaw, thing), quote_text) => {
                let quote = Evidence::Quote { text: quote_text.unwrap_or_default() };
                let thing = if is_templated { "feature" } else { thing };
                (quote, fill_template(pick_word(&mut style, &FLAWS[flaw].wordings), thing))
            }
            (DefectKind::Gap(gap, heading), quote_text) => {
                let [term, second_term] = GAPS[gap].terms;
                let mut terms = vec![term.to_string()];
                terms.extend(style.roll_percent(50).then(|| second_term.to_string()));
                // There is a line to quote only if a fixer has added one that merely mentions the missing thing.
                let quote = quote_text.map(|text| Evidence::Quote { text });
                let absence = Evidence::Absence { heading: heading.into(), terms };
                (quote.unwrap_or(absence), style.pick(&GAP_WORDINGS)(term, heading))
            }
        };
        RaisedFinding { severity, description, evidence, line: name_line(&mut style, line_index), ..blank_claim() }
    }

    /// Invents a false claim, and tells whether its evidence is missing.
    fn invent_claim(&mut self) -> (RaisedFinding, bool) {
        let is_groundless = self.dice.roll_percent(GROUNDLESS_PERCENT);
        let (evidence, description, line_index) =
            if is_groundless { self.groundless_claim() } else { self.plausible_claim() };
        let severity = roll_severity(&mut self.dice);
        let line_number = name_line(&mut self.dice, line_index);
        (RaisedFinding { severity, description, evidence, line: line_number, ..blank_claim() }, is_groundless)
    }

    fn groundless_claim(&mut self) -> (Evidence, String, Option<usize>) {
        let thing = pick_word(&mut self.dice, THINGS);
        let description = fill_template(pick_word(&mut self.dice, FALSE_OBJECTIONS), thing);
        let outside_lines = self.innocent_lines(false);
        let quote = match self.dice.roll(100) {
            0..50 if !outside_lines.is_empty() => {
                let (line_index, thing) = *self.dice.pick(&outside_lines);
                let line_text = self.document.lines[line_index].text.clone();
                let objection = fill_template(pick_word(&mut self.dice, FALSE_OBJECTIONS), thing);
                return (Evidence::Quote { text: quote_line(&mut self.dice, &line_text) }, objection, Some(line_index));
            }
            0..85 => fill_template(pick_word(&mut self.dice, INVENTED), thing),
            _ => {
                let terms = vec![pick_word(&mut self.dice, NEEDLESS_TOPICS).to_string()];
                return (Evidence::Absence { heading: "Appendix C".into(), terms }, description, None);
            }
        };
        let random_line = self.dice.roll(self.document.lines.len());
        (Evidence::Quote { text: quote }, description, Some(random_line))
    }

    fn plausible_claim(&mut self) -> (Evidence, String, Option<usize>) {
        let reviewed_lines = self.innocent_lines(true);
        if reviewed_lines.is_empty() || self.dice.roll_percent(20) {
            let heading = self.document.section.unwrap_or_else(|| pick_word(&mut self.dice, HEADINGS));
            let fancy = pick_word(&mut self.dice, NEEDLESS_TOPICS);
            let terms = vec![fancy.to_string()];
            let objection = self.dice.pick(&GAP_WORDINGS)(fancy, heading);
            return (Evidence::Absence { heading: heading.into(), terms }, objection, None);
        }
        let (line_index, thing) = *self.dice.pick(&reviewed_lines);
        let text = quote_line(&mut self.dice, &self.document.lines[line_index].text);
        (Evidence::Quote { text }, fill_template(pick_word(&mut self.dice, FALSE_OBJECTIONS), thing), Some(line_index))
    }

    /// The lines without defects, inside or outside the part under review.
    fn innocent_lines(&self, in_scope: bool) -> Vec<(usize, &'static str)> {
        let (first, last) = self.document.reviewed_lines();
        let lines = self.document.lines.iter().enumerate();
        let wanted = lines.filter(|(line_index, _)| (first..last).contains(line_index) == in_scope);
        let innocent = wanted.filter_map(|(line_index, line)| match line.line_kind {
            LineKind::Innocent(thing) => Some((line_index, thing)),
            _ => None,
        });
        innocent.collect()
    }
}

fn blank_claim() -> RaisedFinding {
    RaisedFinding {
        severity: Severity::Medium,
        category: "simulated".into(),
        description: String::new(),
        evidence: Evidence::Quote { text: String::new() },
        file: None,
        line: None,
        suggested_fix: String::new(),
    }
}

/// Returns the severity, in some cases one step off.
fn vary_severity(dice: &mut Dice, severity: Severity) -> Severity {
    let severity_index = severity as usize;
    match dice.roll(10) {
        0 => Severity::ALL[severity_index.saturating_sub(1)],
        1 => Severity::ALL[(severity_index + 1).min(3)],
        _ => severity,
    }
}

/// Quotes a line without its list mark: all of it, its beginning or its end.
fn quote_line(dice: &mut Dice, line: &str) -> String {
    let line_words: Vec<&str> = line.trim_start_matches("- ").split(' ').collect();
    match dice.roll(100) {
        0..25 => line_words[..line_words.len() * 3 / 5].join(" "),
        25..40 => line_words[line_words.len() / 5..].join(" "),
        _ => line_words.join(" "),
    }
}

/// The number of a line as a reviewer gives it: right, slightly off, or not at all.
fn name_line(dice: &mut Dice, line_index: Option<usize>) -> Option<u32> {
    let line_number = line_index? as u32 + 1;
    match dice.roll(10) {
        0..6 => Some(line_number),
        6..8 => Some(line_number + dice.roll(4) as u32),
        _ => None,
    }
}
