//! Merging: what several reviewers raised becomes one list, the same whatever order their answers came in.
//!
//! Claims are sorted by place, raiser and ordinal; ids are given after the sort and never change. A claim joins the first
//! finding at its place that means the same ([`alike`]), unless the same reviewer raised both in one answer: it meant two
//! things. It is compared with what the finding was first raised as, so that joining cannot wander off. What is fixed is
//! never joined, and what a person has settled only by a claim of the same category. Everything else is new; where nobody
//! can be sure, it names the finding that it may be. Better two findings too many than one lost.

use alloc::{
    string::{String, ToString},
    vec,
    vec::Vec,
};

use crate::{
    brief::Raised,
    finding::{Cause, Deferral, Dismissal, Evidence, Finding, Raiser, Severity, Status, Transition},
    ground::{Grounded, Scene},
    ids::FindingId,
    stamp::Stamp,
    text::fold,
};

mod alike;

use alike::{Likeness, Said, likeness, overlap};

/// A claim with its raiser, grounded or not.
#[derive(Clone, Debug)]
struct Claimed {
    ground: Result<Grounded, String>,
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
        /// The claim shows the same words as the finding, not only the same place.
        overlaps: bool,
    },
}

/// Grounds and merges one round's claims into `findings`.
pub fn merge(
    findings: &mut Vec<Finding>,
    answers: Vec<(Raiser, Vec<Raised>)>,
    scene: &Scene<'_>,
    at: Stamp,
) -> Vec<Merged> {
    let mut done = vec![];
    for claim in sorted(answers, scene) {
        match belongs(findings, &claim) {
            Belongs::To(index) => {
                let finding = &mut findings[index];
                if !is_weighed(finding) {
                    finding.severity = finding.severity.min(weight(&claim.raised));
                }
                finding.raisers.push(claim.raiser.clone());
                let severity = finding.severity;
                let overlaps = overlap(&finding.evidence, &claim.raised.evidence);
                done.push(Merged::Joined { finding: finding.id, severity, raiser: claim.raiser, overlaps });
            }
            Belongs::Nowhere { maybe } => {
                let id = FindingId(findings.len() as u32 + 1);
                findings.push(new_finding(id, maybe, claim, at));
                done.push(Merged::New(id));
            }
        }
    }
    done
}

/// Challengers or a person have said how severe it is: one more claim does not change that.
fn is_weighed(finding: &Finding) -> bool {
    finding.history.iter().any(|step| step.cause.settles_severity())
}

/// How severe a claim is. The one place where more than the raiser's own word can count, such as a party's votes.
fn weight(raised: &Raised) -> Severity {
    raised.severity
}

fn sorted(answers: Vec<(Raiser, Vec<Raised>)>, scene: &Scene<'_>) -> Vec<Claimed> {
    let mut claims = vec![];
    for (raiser, raised) in answers {
        for (ordinal, mut raised) in raised.into_iter().enumerate() {
            let mut ground = scene.find(&raised);
            if let Some(text) = ground.as_mut().ok().and_then(|found| found.instead.take()) {
                // What really stands there is the evidence from now on.
                raised.evidence = Evidence::Quote { text };
            }
            claims.push(Claimed { ground, raiser: raiser.clone(), ordinal, raised });
        }
    }
    // Grounded ones first, so that the ids people see first are those that count.
    claims.sort_by(|a, b| {
        let place = |c: &Claimed| (c.ground.is_err(), c.ground.clone().ok().map(|found| found.place));
        let word = |c: &Claimed| (c.ordinal, c.raised.severity, c.raised.description.clone());
        place(a).cmp(&place(b)).then_with(|| a.raiser.cmp(&b.raiser)).then_with(|| word(a).cmp(&word(b)))
    });
    claims
}

enum Belongs {
    /// The finding at this index is meant.
    To(usize),
    Nowhere {
        maybe: Option<FindingId>,
    },
}

fn belongs(findings: &[Finding], claim: &Claimed) -> Belongs {
    let mut maybe = None;
    for (index, finding) in findings.iter().enumerate() {
        if finding.raisers.contains(&claim.raiser) {
            continue;
        }
        match compare(finding, claim) {
            Likeness::Same if may_join(finding, claim) => return Belongs::To(index),
            Likeness::Same | Likeness::Unsure => maybe = maybe.or(Some(finding.id)),
            Likeness::Apart => {}
        }
    }
    Belongs::Nowhere { maybe }
}

fn compare(finding: &Finding, claim: &Claimed) -> Likeness {
    match (&finding.place, &claim.ground) {
        (Some(place), Ok(found)) => likeness(
            Said { place, evidence: &finding.evidence, description: &finding.description },
            Said {
                place: &found.place,
                evidence: &claim.raised.evidence,
                description: &claim.raised.description,
            },
        ),
        // Without a place there is nothing to go by but the words themselves.
        (None, Err(_))
            if finding.evidence == claim.raised.evidence
                && fold(&finding.description) == fold(&claim.raised.description) =>
        {
            Likeness::Same
        }
        _ => Likeness::Apart,
    }
}

fn may_join(finding: &Finding, claim: &Claimed) -> bool {
    match finding.status {
        // It was repaired: this is a new flaw, or the repair was none.
        Status::Fixed => false,
        Status::Dismissed { why: Dismissal::Person } | Status::Deferred { why: Deferral::Person } => {
            fold(&finding.category) == fold(&claim.raised.category)
        }
        _ => true,
    }
}

fn new_finding(id: FindingId, maybe_same_as: Option<FindingId>, claim: Claimed, at: Stamp) -> Finding {
    let Claimed { ground, raiser, raised, .. } = claim;
    let note = alloc::format!("raised by {} in round {}", raiser.role, raiser.round);
    let severity = weight(&raised);
    let (grounded, ungrounded) = match ground {
        Ok(grounded) => (Some(grounded), None),
        Err(why) => (None, Some(why)),
    };
    let pre_existing = grounded.as_ref().is_some_and(|grounded| grounded.pre_existing);
    let mut finding = Finding {
        id,
        severity,
        category: raised.category,
        description: raised.description,
        evidence: raised.evidence,
        found: grounded.as_ref().and_then(|grounded| grounded.found),
        place: grounded.map(|grounded| grounded.place),
        suggested_fix: raised.suggested_fix,
        raisers: vec![raiser],
        status: Status::Open,
        maybe_same_as,
        history: vec![],
    };
    finding.apply(Transition::new(Status::Open, Cause::Raised, note), at);
    if let Some(why) = ungrounded {
        let to = Status::Dismissed { why: Dismissal::Ungrounded };
        finding.apply(Transition::new(to, Cause::Ungrounded, why), at);
    } else if pre_existing {
        let note = "it stands away from the changed lines";
        let to = Status::Deferred { why: Deferral::PreExisting };
        finding.apply(Transition::new(to, Cause::PreExisting, note), at);
    }
    finding
}

/// A line for briefs and logs.
pub fn headline(finding: &Finding) -> String {
    let place = finding.place.as_ref().map_or("no place".to_string(), ToString::to_string);
    alloc::format!("{} {} {place}: {}", finding.id, finding.severity, finding.description)
}
