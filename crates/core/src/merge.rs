//! Merging: what several reviewers raised becomes one list, the same whatever order their answers came in.
//!
//! Claims are sorted by place, raiser and ordinal; ids are given after the sort. A claim joins a finding that stands at
//! the same place and shows overlapping evidence, unless the same reviewer raised both in one answer: it meant two things.
//! What a person has settled is only joined by a claim of the same kind. Everything else is new; where it stands at the
//! place of an older finding, it names it. Better two findings too many than one lost.

use alloc::{
    string::{String, ToString},
    vec,
    vec::Vec,
};

use crate::{
    brief::Raised,
    finding::{Deferral, Dismissal, Evidence, Finding, Place, Raiser, Severity, Status},
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
                finding.raisers.push(claim.raiser.clone());
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
        if finding.status == Status::Fixed || finding.raisers.contains(&claim.raiser) {
            return false;
        }
        let same_kind = fold(&finding.category) == fold(&claim.raised.category);
        match (&finding.place, &claim.place) {
            (Some(old), Ok(new)) => {
                let settled = matches!(
                    finding.status,
                    Status::Dismissed { why: Dismissal::Person } | Status::Deferred { why: Deferral::Person }
                );
                old.overlaps(new)
                    && alike(&finding.evidence, &claim.raised.evidence)
                    && (same_kind || !settled)
            }
            (None, Err(_)) => {
                finding.evidence == claim.raised.evidence
                    && fold(&finding.description) == fold(&claim.raised.description)
            }
            _ => false,
        }
    })
}

/// One quote within the other, or the same heading with a common term.
fn alike(one: &Evidence, other: &Evidence) -> bool {
    match (one, other) {
        (Evidence::Quote { text: one }, Evidence::Quote { text: other }) => {
            let (one, other) = (fold(one), fold(other));
            one.contains(&other) || other.contains(&one)
        }
        (
            Evidence::Absence { heading: one, terms: ours },
            Evidence::Absence { heading: other, terms: theirs },
        ) => {
            let common = |term: &String| theirs.iter().any(|their| fold(their) == fold(term));
            fold(one) == fold(other) && ours.iter().any(common)
        }
        _ => false,
    }
}

fn was_here(old: &Finding, claim: &Claimed) -> bool {
    match (&old.place, &claim.place) {
        (Some(place), Ok(new)) => place.overlaps(new),
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
        found: None,
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
