//! Merging: the claims of several reviewers become one list, independent of the order in which their answers arrived.
//!
//! Claims are sorted by place, raiser and ordinal; ids are given after the sort and never change. A claim joins the first
//! finding at its place that means the same ([`likeness`]), unless the same reviewer raised both in one answer: then it
//! meant two things. A claim is compared with the finding as it was first raised, so that joining cannot drift. Fixed
//! findings are never joined, and findings that the user has settled only by a claim of the same category. Everything else
//! is new; where merging cannot be sure, the new finding names the one that it may repeat. Two findings too many are better
//! than one lost.

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

/// A claim with its raiser and the result of grounding.
#[derive(Clone, Debug)]
struct Claimed {
    ground: Result<Grounded, String>,
    raiser: Raiser,
    ordinal: usize,
    raised: Raised,
}

/// What merging did with one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    New(FindingId),
    /// An earlier finding was raised again, or by one more reviewer.
    Joined {
        finding: FindingId,
        severity: Severity,
        raiser: Raiser,
        /// The claim shows the same words as the finding, not only the same place.
        overlaps: bool,
    },
}

/// Grounds and merges the claims of one round into `findings`.
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
                    // The smaller value is the more severe one: a further claim can only raise the severity.
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

/// Whether challengers or the user decided the severity, so that another claim must not change it.
fn is_weighed(finding: &Finding) -> bool {
    finding.history.iter().any(|step| step.cause.settles_severity())
}

/// Returns the severity of a claim. Anything that should count besides the raiser's own severity belongs here.
fn weight(raised: &Raised) -> Severity {
    raised.severity
}

fn sorted(answers: Vec<(Raiser, Vec<Raised>)>, scene: &Scene<'_>) -> Vec<Claimed> {
    let mut claims = vec![];
    for (raiser, raised) in answers {
        for (ordinal, mut raised) in raised.into_iter().enumerate() {
            // Grounding comes before sorting, because the place is the first key.
            let mut ground = scene.find(&raised);
            if let Some(text) = ground.as_mut().ok().and_then(|found| found.instead.take()) {
                // From now on the evidence is the text that is really there.
                raised.evidence = Evidence::Quote { text };
            }
            claims.push(Claimed { ground, raiser: raiser.clone(), ordinal, raised });
        }
    }
    // Grounded claims come first, so that the lowest ids belong to findings that count. The remaining keys make the order
    // independent of the order in which the answers arrived.
    claims.sort_by(|a, b| {
        let place = |c: &Claimed| (c.ground.is_err(), c.ground.clone().ok().map(|found| found.place));
        let word = |c: &Claimed| (c.ordinal, c.raised.severity, c.raised.description.clone());
        place(a).cmp(&place(b)).then_with(|| a.raiser.cmp(&b.raiser)).then_with(|| word(a).cmp(&word(b)))
    });
    claims
}

enum Belongs {
    /// The claim belongs to the finding at this index.
    To(usize),
    Nowhere {
        maybe: Option<FindingId>,
    },
}

fn belongs(findings: &[Finding], claim: &Claimed) -> Belongs {
    let mut maybe = None;
    for (index, finding) in findings.iter().enumerate() {
        // One reviewer that raises two findings in one answer means two different things.
        if finding.raisers.contains(&claim.raiser) {
            continue;
        }
        match compare(finding, claim) {
            Likeness::Same if may_join(finding, claim) => return Belongs::To(index),
            // The first possible duplicate is named; a later one would be no more certain.
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
        // Without a place only identical claims are the same.
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
        // The finding was repaired: this is a new issue, or the repair did not work.
        Status::Fixed => false,
        // A decision of the user covers only the same kind of issue.
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
    // A real issue, but not one of this change.
    } else if pre_existing {
        let note = "it stands away from the changed lines";
        let to = Status::Deferred { why: Deferral::PreExisting };
        finding.apply(Transition::new(to, Cause::PreExisting, note), at);
    }
    finding
}

/// Returns the finding in one line for briefs and logs.
pub fn headline(finding: &Finding) -> String {
    let place = finding.place.as_ref().map_or("no place".to_string(), ToString::to_string);
    alloc::format!("{} {} {place}: {}", finding.id, finding.severity, finding.description)
}
