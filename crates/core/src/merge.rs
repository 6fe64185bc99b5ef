//! Merging: what several reviewers raised becomes one list, the same whatever order their answers came in.
//!
//! Claims are sorted by place, raiser and ordinal; ids are given after the sort. A claim joins a finding that stands at
//! the same place and shows the same evidence or has the same category. A claim at the place of a finding that was
//! already fixed is never taken for the old one: it becomes a new finding that names it.

use alloc::{
    string::{String, ToString},
    vec,
    vec::Vec,
};

use crate::{
    brief::Raised,
    finding::{Dismissal, Evidence, Finding, Place, Raiser, Severity, Status},
    ground::Ground,
    ids::FindingId,
    stamp::Stamp,
    text::fold,
};

/// A claim with its raiser, grounded or not.
#[derive(Clone, Debug)]
struct Claimed {
    place: Result<Place, String>,
    raiser: Raiser,
    ordinal: usize,
    raised: Raised,
}

/// What merging did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    New(FindingId),
    /// An earlier finding was raised again or by one more reviewer.
    Joined {
        finding: FindingId,
        severity: Severity,
        raiser: Raiser,
    },
}

/// Grounds and merges one round's claims into `findings`.
pub fn merge(
    findings: &mut Vec<Finding>,
    answers: Vec<(Raiser, Vec<Raised>)>,
    ground: &Ground<'_>,
    at: Stamp,
) -> Vec<Merged> {
    let known = findings.len();
    let mut done = vec![];
    for claim in sorted(answers, ground) {
        match twin(findings, &claim) {
            Some(index) => {
                let finding = &mut findings[index];
                finding.severity = finding.severity.min(claim.raised.severity);
                if !finding.raisers.contains(&claim.raiser) {
                    finding.raisers.push(claim.raiser.clone());
                }
                let severity = finding.severity;
                done.push(Merged::Joined { finding: finding.id, severity, raiser: claim.raiser });
            }
            None => {
                let id = FindingId(findings.len() as u32 + 1);
                let old = findings[..known].iter().find(|old| was_here(old, &claim)).map(|old| old.id);
                findings.push(new_finding(id, old, claim, at));
                done.push(Merged::New(id));
            }
        }
    }
    done
}

fn sorted(answers: Vec<(Raiser, Vec<Raised>)>, ground: &Ground<'_>) -> Vec<Claimed> {
    let mut claims = vec![];
    for (raiser, raised) in answers {
        for (ordinal, raised) in raised.into_iter().enumerate() {
            claims.push(Claimed { place: ground.place(&raised), raiser: raiser.clone(), ordinal, raised });
        }
    }
    // Grounded ones first, so that the ids people see first are those that count.
    claims.sort_by(|a, b| {
        let place = |c: &Claimed| (c.place.is_err(), c.place.clone().ok());
        place(a).cmp(&place(b)).then_with(|| (&a.raiser, a.ordinal).cmp(&(&b.raiser, b.ordinal)))
    });
    claims
}

fn twin(findings: &[Finding], claim: &Claimed) -> Option<usize> {
    findings.iter().position(|finding| {
        if finding.status == Status::Fixed {
            return false;
        }
        match (&finding.place, &claim.place) {
            (Some(old), Ok(new)) => old.overlaps(new) && alike(finding, claim),
            (None, Err(_)) => {
                finding.evidence == claim.raised.evidence
                    && fold(&finding.description) == fold(&claim.raised.description)
            }
            _ => false,
        }
    })
}

fn alike(finding: &Finding, claim: &Claimed) -> bool {
    let same_kind = matches!(
        (&finding.evidence, &claim.raised.evidence),
        (Evidence::Quote { .. }, Evidence::Quote { .. })
            | (Evidence::Absence { .. }, Evidence::Absence { .. })
    );
    finding.evidence == claim.raised.evidence
        || (same_kind && fold(&finding.category) == fold(&claim.raised.category))
}

fn was_here(old: &Finding, claim: &Claimed) -> bool {
    match (&old.place, &claim.place) {
        (Some(place), Ok(new)) => old.status == Status::Fixed && place.overlaps(new),
        _ => false,
    }
}

fn new_finding(id: FindingId, maybe_same_as: Option<FindingId>, claim: Claimed, at: Stamp) -> Finding {
    let Claimed { place, raiser, raised, .. } = claim;
    let note = alloc::format!("raised by {} in round {}", raiser.role, raiser.round);
    let (place, ungrounded) = match place {
        Ok(place) => (Some(place), None),
        Err(why) => (None, Some(why)),
    };
    let mut finding = Finding {
        id,
        severity: raised.severity,
        category: raised.category,
        description: raised.description,
        evidence: raised.evidence,
        place,
        suggested_fix: raised.suggested_fix,
        raisers: vec![raiser],
        status: Status::Open,
        maybe_same_as,
        history: vec![],
    };
    finding.move_to(Status::Open, at, note);
    if let Some(why) = ungrounded {
        finding.move_to(Status::Dismissed { why: Dismissal::Ungrounded }, at, why);
    }
    finding
}

/// A line for briefs and logs.
pub fn headline(finding: &Finding) -> String {
    let place = finding.place.as_ref().map_or("no place".to_string(), ToString::to_string);
    alloc::format!("{} {} {place}: {}", finding.id, finding.severity, finding.description)
}
