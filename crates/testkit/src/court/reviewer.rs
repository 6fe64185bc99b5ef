//! The reviewers of the court: what they see, how they word it, and what they invent.

use tribunal_core::{
    brief::{Brief, Raised},
    finding::{Evidence, Severity},
    level::Role,
};

use super::{
    document::{DefectId, Kind, What, severity},
    vocabulary::{FANCIES, FLAWS, GAP_SAYS, GAPS, HEADINGS, INVENTED, SLANDER, THINGS, about, one_of},
    world::{Claimed, Courtroom, Truth},
};
use crate::dice::Dice;

/// The percentage of repeated looks that are independent of the first; in the others a provider sees what it saw before.
const LOOKS_ANEW: usize = 25;
/// The percentage of defects that one independent look finds.
const FINDS: usize = 34;
/// The percentage of known defects that are raised again.
const REPEATS: usize = 10;
/// The number of false claims owed for a thousand true ones: 35 to 65 in total, where some owed at the end are never raised.
const FALSE_A_THOUSAND: usize = 550;
/// The percentage of false claims that come with the answer in which they are owed; the others come with a later one.
const AT_ONCE: usize = 80;
/// The percentage of false claims whose evidence does not exist or is not under review.
const GROUNDLESS: usize = 60;

/// A reviewer's place in the panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub provider: usize,
    pub role: Role,
    pub round: u32,
}

impl Courtroom {
    pub(super) fn review(&mut self, seat: Seat, brief: &Brief) -> Vec<Raised> {
        let mut raised = Vec::new();
        for id in 0..self.document.defects.len() {
            if !self.document.defects[id].alive || !self.sees(seat.provider, id) {
                continue;
            }
            if self.is_known(id, &brief.known) && !self.dice.percent(REPEATS) {
                continue;
            }
            // Asked once more, a reviewer only adds what it has not said before.
            let mine = |claim: &Claimed| claim.seat == seat && claim.truth == Truth::Defect(id);
            if self.claims.iter().any(mine) {
                continue;
            }
            let claim = self.describe(seat, id);
            self.document.defects[id].said.insert(claim.description.clone());
            raised.push((claim, Truth::Defect(id)));
            self.owed[seat.provider] += usize::from(self.dice.roll(1000) < FALSE_A_THOUSAND);
        }
        let owed = self.owed[seat.provider];
        for _ in 0..owed {
            if self.dice.percent(AT_ONCE) {
                self.owed[seat.provider] -= 1;
                let (claim, groundless) = self.make_up();
                raised.push((claim, Truth::False { groundless }));
            }
        }
        for (claim, truth) in &raised {
            self.claims.push(Claimed { seat, description: claim.description.clone(), truth: *truth });
            self.truths.entry(claim.description.clone()).or_insert(*truth);
        }
        raised.into_iter().map(|(claim, _)| claim).collect()
    }

    fn sees(&mut self, provider: usize, id: DefectId) -> bool {
        let defect = &mut self.document.defects[id];
        let sees = match defect.looked[provider] {
            None => defect.seen_by[provider],
            Some(_) if self.dice.percent(LOOKS_ANEW) => self.dice.percent(FINDS),
            Some(saw) => saw,
        };
        defect.looked[provider] = Some(sees);
        sees
    }

    /// Whether the brief lists the defect. A reviewer may raise a defect again that is listed as fixed but is not.
    fn is_known(&self, id: DefectId, known: &[String]) -> bool {
        let said = &self.document.defects[id].said;
        let standing = known.iter().filter(|line| !line.ends_with("[fixed]"));
        standing.into_iter().any(|line| said.iter().any(|said| line.contains(said.as_str())))
    }

    /// Describes a defect; a seat words the same defect always in the same way.
    fn describe(&mut self, seat: Seat, id: DefectId) -> Raised {
        let whose = (seat.provider as u64 + 1) << 40 | (seat.role as u64 + 1) << 48 | id as u64;
        let mut style = Dice::new(self.seed ^ whose.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let defect = &self.document.defects[id];
        let severity = voted(&mut style, defect.severity);
        let at = self.document.line_of(id);
        let quote = at.map(|at| quoted(&mut style, &self.document.lines[at].text));
        let (evidence, description) = match (defect.kind, quote) {
            (Kind::Flaw(flaw, thing), quote) => {
                let quote = Evidence::Quote { text: quote.unwrap_or_default() };
                (quote, about(one_of(&mut style, &FLAWS[flaw].says), thing))
            }
            (Kind::Gap(gap, heading), quote) => {
                let [term, other] = GAPS[gap].terms;
                let mut terms = vec![term.to_string()];
                terms.extend(style.percent(50).then(|| other.to_string()));
                // A fixer has added a line that only mentions the missing thing.
                let quote = quote.map(|text| Evidence::Quote { text });
                let absence = Evidence::Absence { heading: heading.into(), terms };
                (quote.unwrap_or(absence), style.pick(&GAP_SAYS)(term, heading))
            }
        };
        Raised { severity, description, evidence, line: named(&mut style, at), ..blank() }
    }

    /// Invents a false claim, and tells whether its evidence is missing.
    fn make_up(&mut self) -> (Raised, bool) {
        let groundless = self.dice.percent(GROUNDLESS);
        let (evidence, description, at) = if groundless { self.groundless() } else { self.plausible() };
        let severity = severity(&mut self.dice);
        let line = named(&mut self.dice, at);
        (Raised { severity, description, evidence, line, ..blank() }, groundless)
    }

    fn groundless(&mut self) -> (Evidence, String, Option<usize>) {
        let thing = one_of(&mut self.dice, THINGS);
        let description = about(one_of(&mut self.dice, SLANDER), thing);
        let outside = self.innocent_lines(false);
        let text = match self.dice.roll(100) {
            0..50 if !outside.is_empty() => {
                let (at, thing) = *self.dice.pick(&outside);
                let text = self.document.lines[at].text.clone();
                let said = about(one_of(&mut self.dice, SLANDER), thing);
                return (Evidence::Quote { text: quoted(&mut self.dice, &text) }, said, Some(at));
            }
            0..85 => about(one_of(&mut self.dice, INVENTED), thing),
            _ => {
                let terms = vec![one_of(&mut self.dice, FANCIES).to_string()];
                return (Evidence::Absence { heading: "Appendix C".into(), terms }, description, None);
            }
        };
        let somewhere = self.dice.roll(self.document.lines.len());
        (Evidence::Quote { text }, description, Some(somewhere))
    }

    fn plausible(&mut self) -> (Evidence, String, Option<usize>) {
        let inside = self.innocent_lines(true);
        if inside.is_empty() || self.dice.percent(20) {
            let heading = self.document.section.unwrap_or_else(|| one_of(&mut self.dice, HEADINGS));
            let fancy = one_of(&mut self.dice, FANCIES);
            let terms = vec![fancy.to_string()];
            let said = self.dice.pick(&GAP_SAYS)(fancy, heading);
            return (Evidence::Absence { heading: heading.into(), terms }, said, None);
        }
        let (at, thing) = *self.dice.pick(&inside);
        let text = quoted(&mut self.dice, &self.document.lines[at].text);
        (Evidence::Quote { text }, about(one_of(&mut self.dice, SLANDER), thing), Some(at))
    }

    /// The lines without defects, inside or outside the part under review.
    fn innocent_lines(&self, inside: bool) -> Vec<(usize, &'static str)> {
        let (first, last) = self.document.scope();
        let lines = self.document.lines.iter().enumerate();
        let wanted = lines.filter(|(at, _)| (first..last).contains(at) == inside);
        let innocent = wanted.filter_map(|(at, line)| match line.what {
            What::Innocent(thing) => Some((at, thing)),
            _ => None,
        });
        innocent.collect()
    }
}

fn blank() -> Raised {
    Raised {
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
fn voted(dice: &mut Dice, severity: Severity) -> Severity {
    let at = severity as usize;
    match dice.roll(10) {
        0 => Severity::ALL[at.saturating_sub(1)],
        1 => Severity::ALL[(at + 1).min(3)],
        _ => severity,
    }
}

/// Quotes a line without its list mark: all of it, its beginning or its end.
fn quoted(dice: &mut Dice, line: &str) -> String {
    let words: Vec<&str> = line.trim_start_matches("- ").split(' ').collect();
    match dice.roll(100) {
        0..25 => words[..words.len() * 3 / 5].join(" "),
        25..40 => words[words.len() / 5..].join(" "),
        _ => words.join(" "),
    }
}

/// The number of a line as a reviewer gives it: right, slightly off, or not at all.
fn named(dice: &mut Dice, at: Option<usize>) -> Option<u32> {
    let line = at? as u32 + 1;
    match dice.roll(10) {
        0..6 => Some(line),
        6..8 => Some(line + dice.roll(4) as u32),
        _ => None,
    }
}
