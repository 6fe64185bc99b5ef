//! Merging: the claims of several reviewers become one list, independent of the order in which their answers arrived.
//!
//! Claims are sorted by place, raiser and ordinal; ids are given after the sort and never change. A claim joins the first
//! finding whose evidence overlaps its own and that means the same ([`likeness`]), unless the same reviewer raised both in
//! one answer: then it meant two things, except where it repeats itself word for word. A claim is compared with the finding
//! as it was first raised, so that joining cannot drift. Fixed findings are never joined, and findings that the user has
//! settled only by a claim of the same category. Everything else is new; where merging cannot be sure, the new finding names
//! the one that it may repeat. Two findings too many are better than one lost.

use alloc::{
    string::{String, ToString},
    vec,
    vec::Vec,
};

use crate::{
    findings::finding::{
        DeferralReason, DismissalReason, Evidence, Finding, FindingRaiser, FindingStatus, QuoteMatch, Severity,
        StatusTransition, TransitionCause,
    },
    review::{
        dismissed_finding::DismissedFinding,
        ground::{EvidenceScope, GroundedEvidence},
    },
    tasks::brief::RaisedFinding,
};
use tribunal_engine::{ids::FindingId, text::fold_case_and_spaces, timestamp::Timestamp};

mod likeness;

use likeness::{ClaimLikeness, ComparedClaim, compare_claims, compare_meaning, evidence_overlaps};

/// A claim with its raiser and the result of grounding.
#[derive(Clone, Debug)]
struct GroundedClaim {
    grounding: Result<GroundedEvidence, String>,
    raiser: FindingRaiser,
    ordinal: usize,
    raised: RaisedFinding,
}

/// What merging did with one claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    NewFinding(FindingId),
    /// An earlier finding was raised again, or by one more reviewer.
    Joined {
        finding: FindingId,
        severity: Severity,
        raiser: FindingRaiser,
        /// The claim shows the same words as the finding, not only the same place.
        overlaps: bool,
    },
}

/// Grounds and merges the claims of one round into `findings`.
pub fn merge_claims(
    findings: &mut Vec<Finding>,
    seat_answers: Vec<(FindingRaiser, Vec<RaisedFinding>)>,
    scope: &EvidenceScope<'_>,
    timestamp: Timestamp,
) -> Vec<MergeOutcome> {
    let mut outcomes = vec![];
    for grounded_claim in drop_repetitions(ground_and_sort(seat_answers, scope)) {
        match find_target(findings, &grounded_claim) {
            ClaimTarget::Existing(index) => {
                let finding = &mut findings[index];
                if !has_settled_severity(finding) {
                    // The smaller value is the more severe one: a further claim can only raise the severity.
                    finding.severity = finding.severity.min(claim_severity(&grounded_claim.raised));
                }
                finding.raisers.push(grounded_claim.raiser.clone());
                let severity = finding.severity;
                let overlaps = evidence_overlaps(&finding.evidence, &grounded_claim.raised.evidence);
                outcomes.push(MergeOutcome::Joined {
                    finding: finding.id,
                    severity,
                    raiser: grounded_claim.raiser,
                    overlaps,
                });
            }
            ClaimTarget::NewFinding { maybe_same_as: possible_duplicate } => {
                let new_id = FindingId(findings.len() as u32 + 1);
                findings.push(new_finding(new_id, possible_duplicate, grounded_claim, timestamp));
                outcomes.push(MergeOutcome::NewFinding(new_id));
            }
        }
    }
    outcomes
}

/// Whether challengers or the user decided the severity, so that another claim must not change it.
fn has_settled_severity(finding: &Finding) -> bool {
    finding.history.iter().any(|step| step.cause.settles_severity())
}

/// Returns the severity of a claim. Anything that should count besides the raiser's own severity belongs here.
fn claim_severity(raised_finding: &RaisedFinding) -> Severity {
    raised_finding.severity
}

fn ground_and_sort(
    seat_answers: Vec<(FindingRaiser, Vec<RaisedFinding>)>,
    scope: &EvidenceScope<'_>,
) -> Vec<GroundedClaim> {
    let mut grounded_claims = vec![];
    for (raiser, raised) in seat_answers {
        for (ordinal, mut raised) in raised.into_iter().enumerate() {
            // Grounding comes before sorting, because the place is the first key.
            let mut grounding = scope.find_evidence(&raised);
            if let Some(actual_text) = grounding.as_mut().ok().and_then(|grounded| grounded.actual_text.take()) {
                // From now on the evidence is the text that is really there.
                raised.evidence = Evidence::Quote { text: actual_text };
            }
            grounded_claims.push(GroundedClaim { grounding, raiser: raiser.clone(), ordinal, raised });
        }
    }
    // Grounded claims come first, so that the lowest ids belong to findings that count. The remaining keys make the order
    // independent of the order in which the answers arrived.
    grounded_claims.sort_by(|left, right| {
        let place_key = |claim: &GroundedClaim| {
            (claim.grounding.is_err(), claim.grounding.clone().ok().map(|grounded| grounded.place))
        };
        let claim_key =
            |claim: &GroundedClaim| (claim.ordinal, claim.raised.severity, claim.raised.description.clone());
        place_key(left)
            .cmp(&place_key(right))
            .then_with(|| left.raiser.cmp(&right.raiser))
            .then_with(|| claim_key(left).cmp(&claim_key(right)))
    });
    grounded_claims
}

enum ClaimTarget {
    /// The claim belongs to the finding at this index.
    Existing(usize),
    NewFinding {
        maybe_same_as: Option<FindingId>,
    },
}

fn find_target(findings: &[Finding], grounded_claim: &GroundedClaim) -> ClaimTarget {
    let mut possible_duplicate = None;
    for (index, finding) in findings.iter().enumerate() {
        // One reviewer that raises two findings in one answer means two different things.
        if finding.raisers.contains(&grounded_claim.raiser) {
            continue;
        }
        match compare_claim(finding, grounded_claim) {
            ClaimLikeness::Same if can_join(finding, grounded_claim) => return ClaimTarget::Existing(index),
            // A finding names at most one possible duplicate, the first.
            ClaimLikeness::Same | ClaimLikeness::Unsure => possible_duplicate = possible_duplicate.or(Some(finding.id)),
            ClaimLikeness::Apart => {}
        }
    }
    ClaimTarget::NewFinding { maybe_same_as: possible_duplicate }
}

/// Drops what one reviewer says twice in the same words about the same text, as a client does that repeats its answer. The
/// higher severity counts.
fn drop_repetitions(grounded_claims: Vec<GroundedClaim>) -> Vec<GroundedClaim> {
    let mut distinct_claims: Vec<GroundedClaim> = vec![];
    for grounded_claim in grounded_claims {
        match distinct_claims.iter_mut().find(|earlier| is_repetition(earlier, &grounded_claim)) {
            Some(earlier) => earlier.raised.severity = earlier.raised.severity.min(grounded_claim.raised.severity),
            None => distinct_claims.push(grounded_claim),
        }
    }
    distinct_claims
}

fn is_repetition(earlier: &GroundedClaim, later: &GroundedClaim) -> bool {
    let place_of = |claim: &GroundedClaim| claim.grounding.as_ref().ok().map(|grounded| grounded.place.clone());
    earlier.raiser == later.raiser
        && earlier.raised.evidence == later.raised.evidence
        && place_of(earlier) == place_of(later)
        && fold_case_and_spaces(&earlier.raised.description) == fold_case_and_spaces(&later.raised.description)
}

/// Whether a reviewer that was asked twice means the same with two claims: about the same evidence, in similar words.
pub(super) fn is_same_claim(earlier: &RaisedFinding, later: &RaisedFinding) -> bool {
    earlier.evidence == later.evidence
        && compare_meaning(&earlier.evidence, &earlier.description, &later.description) == ClaimLikeness::Same
}

fn has_several_places(quote_match: Option<QuoteMatch>) -> bool {
    quote_match.is_some_and(|quote_match| quote_match.places > 1)
}

fn compare_claim(finding: &Finding, grounded_claim: &GroundedClaim) -> ClaimLikeness {
    match (&finding.place, &grounded_claim.grounding) {
        (Some(finding_place), Ok(grounded)) => compare_claims(
            ComparedClaim {
                place: finding_place,
                evidence: &finding.evidence,
                description: &finding.description,
                is_ambiguous: has_several_places(finding.found),
            },
            ComparedClaim {
                place: &grounded.place,
                evidence: &grounded_claim.raised.evidence,
                description: &grounded_claim.raised.description,
                is_ambiguous: has_several_places(grounded.quote_match),
            },
        ),
        // Without a place only identical claims are the same.
        (None, Err(_))
            if finding.evidence == grounded_claim.raised.evidence
                && fold_case_and_spaces(&finding.description)
                    == fold_case_and_spaces(&grounded_claim.raised.description) =>
        {
            ClaimLikeness::Same
        }
        _ => ClaimLikeness::Apart,
    }
}

/// Whether a finding makes the same claim as one that the user dismissed, given that both have the same evidence.
pub(super) fn is_claim_about(finding: &Finding, dismissed: &DismissedFinding) -> bool {
    let Some(place) = &finding.place else { return false };
    // Lines move between two runs. With the same evidence both claims are about the place where it is now.
    let likeness = compare_claims(
        ComparedClaim { place, evidence: &finding.evidence, description: &finding.description, is_ambiguous: false },
        ComparedClaim {
            place,
            evidence: &dismissed.evidence,
            description: &dismissed.description,
            is_ambiguous: false,
        },
    );
    likeness == ClaimLikeness::Same
}

fn can_join(finding: &Finding, grounded_claim: &GroundedClaim) -> bool {
    match finding.status {
        // The finding was repaired: this is a new issue, or the repair did not work.
        FindingStatus::Fixed => false,
        // A decision of the user covers only the same kind of issue.
        FindingStatus::Dismissed { why: DismissalReason::Person }
        | FindingStatus::Deferred { why: DeferralReason::Person } => {
            fold_case_and_spaces(&finding.category) == fold_case_and_spaces(&grounded_claim.raised.category)
        }
        _ => true,
    }
}

fn new_finding(
    finding_id: FindingId,
    maybe_same_as: Option<FindingId>,
    grounded_claim: GroundedClaim,
    timestamp: Timestamp,
) -> Finding {
    let GroundedClaim { grounding, raiser, raised, .. } = grounded_claim;
    let note_text = alloc::format!("raised by {} in round {}", raiser.role, raiser.round);
    let severity = claim_severity(&raised);
    let (grounded, ungrounded) = match grounding {
        Ok(grounded) => (Some(grounded), None),
        Err(ungrounded_reason) => (None, Some(ungrounded_reason)),
    };
    let pre_existing = grounded.as_ref().is_some_and(|grounded| grounded.pre_existing);
    let mut finding = Finding {
        id: finding_id,
        severity,
        category: raised.category,
        description: raised.description,
        evidence: raised.evidence,
        found: grounded.as_ref().and_then(|grounded| grounded.quote_match),
        place: grounded.map(|grounded| grounded.place),
        suggested_fix: raised.suggested_fix,
        raisers: vec![raiser],
        status: FindingStatus::Open,
        maybe_same_as,
        history: vec![],
    };
    finding.apply_transition(StatusTransition::new(FindingStatus::Open, TransitionCause::Raised, note_text), timestamp);
    if let Some(ungrounded_reason) = ungrounded {
        let new_status = FindingStatus::Dismissed { why: DismissalReason::Ungrounded };
        finding.apply_transition(
            StatusTransition::new(new_status, TransitionCause::Ungrounded, ungrounded_reason),
            timestamp,
        );
    // The issue may be real, but it is not one of this change.
    } else if pre_existing {
        let note_text = "not in the changed lines";
        let new_status = FindingStatus::Deferred { why: DeferralReason::PreExisting };
        finding.apply_transition(StatusTransition::new(new_status, TransitionCause::PreExisting, note_text), timestamp);
    }
    finding
}

/// Returns the finding in one line for briefs and logs.
pub fn finding_headline(finding: &Finding) -> String {
    let place_text = finding.place.as_ref().map_or("no location".to_string(), ToString::to_string);
    alloc::format!("{} {} {place_text}: {}", finding.id, finding.severity, finding.description)
}
