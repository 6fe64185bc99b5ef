//! Phrases about findings, rounds and confidence.

use tribunal_engine::{
    files::FilePart,
    ids::{FindingId, RunId},
    limits::RemainingLimits,
};
use tribunal_workflows::{
    findings::{counts::FindingCounts, finding::Severity},
    review::{
        confidence::Confidence,
        event::ReviewEvent,
        order::{ReviewLimits, ReviewSummary},
    },
};

use crate::phrases::{abbreviate_count, format_cost, format_count, format_time_left};

/// Describes open findings by severity: `9 to fix (1 critical, 3 high, 4 medium, 1 low)`.
fn describe_open_findings(counts: &FindingCounts) -> String {
    let by_severity = &counts.open_by_severity;
    let severity_parts: Vec<String> = Severity::ALL
        .iter()
        .filter(|severity| by_severity.with_severity(**severity) > 0)
        .map(|severity| format!("{} {severity}", by_severity.with_severity(*severity)))
        .collect();
    match (counts.open, severity_parts.is_empty()) {
        (0, _) => "nothing to fix".to_string(),
        (open_count, true) => format!("{open_count} to fix"),
        (open_count, false) => format!("{open_count} to fix ({})", severity_parts.join(", ")),
    }
}

/// Describes findings by status: `11 findings: 9 fixed, 1 open, 1 dismissed`.
pub(crate) fn describe_counts(counts: &FindingCounts) -> String {
    // `total` leaves out dismissed findings, but they were raised, too.
    match counts.total + counts.dismissed {
        0 => describe_statuses(counts),
        raised_count => format!("{}: {}", format_count(raised_count, "finding"), describe_statuses(counts)),
    }
}

/// Describes findings by status where it is clear that they are findings: `9 fixed, 1 open, 1 dismissed`.
pub(crate) fn describe_statuses(counts: &FindingCounts) -> String {
    let status_counts = [
        (counts.fixed, "fixed"),
        (counts.open, "open"),
        (counts.blocked, "blocked"),
        (counts.deferred, "deferred"),
        (counts.dismissed, "dismissed"),
    ];
    let status_parts: Vec<String> = status_counts
        .iter()
        .filter(|(status_count, _)| *status_count > 0)
        .map(|(status_count, status_name)| format!("{status_count} {status_name}"))
        .collect();
    if status_parts.is_empty() { "no findings".to_string() } else { status_parts.join(", ") }
}

/// The result of a review round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundNumbers<'c> {
    pub new_findings: u32,
    pub is_dry: bool,
    /// The number of claims that were not believed.
    pub unbelieved: u32,
    pub counts: &'c FindingCounts,
}

/// Describes the result of a review round.
pub(crate) fn describe_round(round_result: RoundNumbers<'_>) -> String {
    let RoundNumbers { new_findings, is_dry, unbelieved, counts } = round_result;
    match (new_findings, is_dry) {
        (0, true) if unbelieved > 0 => format!("{} raised and dismissed", format_count(unbelieved, "claim")),
        (0, false) if unbelieved > 0 => format!(
            "{} raised and dismissed: too few valid answers to be sure; {}",
            format_count(unbelieved, "claim"),
            describe_open_findings(counts)
        ),
        (0, true) => "no new findings".to_string(),
        // A pass with findings of low severity alone still counts as dry.
        (_, true) => format!("no new findings except {new_findings} of low severity"),
        // Too many reviewers did not answer, or most of what they said was refuted.
        (0, false) => {
            format!("no new findings, but too few valid answers to be sure; {}", describe_open_findings(counts))
        }
        _ => format!("{}, {}", format_count(new_findings, "new finding"), describe_open_findings(counts)),
    }
}

/// Describes the score: `confidence 83 of 100`.
pub(crate) fn describe_score(confidence: &Confidence) -> String {
    format!("confidence {} of 100", confidence.score)
}

/// Describes the score with its parts: `confidence 83 of 100 (validation 35/35, reviewers 15/25; memory not consulted)`.
pub fn describe_confidence(confidence: &Confidence) -> String {
    format!("{} ({})", describe_score(confidence), confidence.describe_all())
}

/// Describes how many findings one seat raised.
pub(crate) fn describe_raised(finding_count: u32) -> String {
    match finding_count {
        0 => "no findings".to_string(),
        raised_count => format_count(raised_count, "finding"),
    }
}

/// Describes which findings stay dismissed because the user dismissed them in these earlier runs.
pub(crate) fn describe_kept_dismissals(finding_ids: &[FindingId], runs: &[RunId]) -> String {
    let (verb, pronoun) = if finding_ids.len() == 1 { ("stays", "it") } else { ("stay", "them") };
    let run_names: Vec<&str> = runs.iter().map(RunId::as_str).collect();
    format!(
        "{} {verb} dismissed, as you decided in {}: {} (set {pronoun} to open in the tracker to change that)",
        format_count(finding_ids.len() as u32, "finding"),
        run_names.join(", "),
        join_ids(finding_ids)
    )
}

/// Describes what a judge said: `repairs F1; does not repair F2; plan.md:12 repairs no finding and does not land`.
pub(crate) fn describe_judgement(event: &ReviewEvent) -> String {
    let ReviewEvent::JudgeAnswered { findings, repaired, unrelated, .. } = event else { return String::new() };
    let unrepaired: Vec<FindingId> = findings.iter().filter(|id| !repaired.contains(id)).copied().collect();
    let mut parts = Vec::new();
    if !repaired.is_empty() {
        parts.push(format!("repairs {}", join_ids(repaired)));
    }
    if !unrepaired.is_empty() {
        parts.push(format!("does not repair {}", join_ids(&unrepaired)));
    }
    if !unrelated.is_empty() {
        parts.push(describe_unrelated(unrelated));
    }
    parts.join("; ")
}

/// Describes the parts of a change that a judge could not connect with any finding.
pub(crate) fn describe_unrelated(unrelated: &[FilePart]) -> String {
    /// The most places that are named.
    const MAX_PLACES: usize = 6;
    let verbs = if unrelated.len() == 1 { "repairs no finding and does" } else { "repair no finding and do" };
    let places: Vec<String> = unrelated.iter().take(MAX_PLACES).map(ToString::to_string).collect();
    let others = match unrelated.len().saturating_sub(MAX_PLACES) {
        0 => String::new(),
        other_count => format!(" and {}", format_count(other_count as u32, "other place")),
    };
    format!("{}{others} {verbs} not land", places.join(", "))
}

/// Joins ids: `F1 F3`.
pub(crate) fn join_ids(finding_ids: &[FindingId]) -> String {
    finding_ids.iter().map(FindingId::to_string).collect::<Vec<_>>().join(" ")
}

/// Counts patches: `1 patch`, `3 patches`.
pub(crate) fn format_patches(patch_count: u32) -> String {
    if patch_count == 1 { "1 patch".to_string() } else { format!("{patch_count} patches") }
}

/// Describes how much a review has done: `2 rounds`.
pub(crate) fn describe_effort(summary: &ReviewSummary) -> String {
    format_count(summary.rounds, "round")
}

/// Lists the limits that only a review has.
pub(crate) fn list_limits(limits: &ReviewLimits) -> Vec<String> {
    vec![
        format_count(limits.rounds, "round"),
        format!("{} per round", format_count(limits.fix_iterations, "fix iteration")),
        format_count(limits.findings, "finding"),
    ]
}

/// Describes what is left of each limit: `2 rounds, 1 fix iteration in this round, …`.
pub(crate) fn describe_remaining(remaining: &RemainingLimits) -> String {
    // Every review records these three.
    let count_left =
        |name: &str, unit: &str| format_count(remaining.counts.get(name).copied().unwrap_or_default(), unit);
    format!(
        "{}, {} in this round, {}, {}, {}, {}, {} tokens",
        count_left("rounds", "round"),
        count_left("fix_iterations", "fix iteration"),
        format_count(remaining.failures, "failure"),
        format_time_left(remaining.seconds.saturating_mul(1000)),
        count_left("findings", "finding"),
        format_cost(remaining.cost),
        abbreviate_count(remaining.tokens),
    )
}

#[cfg(test)]
mod tests {
    use tribunal_engine::limits::{RunLimits, RunUsage};

    use super::*;
    use crate::phrases::describe_limits;

    #[test]
    fn the_limits_of_a_review_begin_with_its_own() {
        assert_eq!(
            describe_limits(&list_limits(&ReviewLimits::default()), &RunLimits::default()),
            "3 rounds, 3 fix iterations per round, 50 findings, 5 failures in a row, 120 min, $5.00 (or 1M tokens if no \
             cost is reported), 1,000 calls per hour in all runs"
        );
    }

    #[test]
    fn what_is_left_is_told_in_the_order_of_the_work() {
        let remaining = RemainingLimits::calculate(&RunLimits::default(), &RunUsage::default(), 60_000)
            .with_count("rounds", 1)
            .with_count("fix_iterations", 2)
            .with_count("findings", 41);
        assert_eq!(
            describe_remaining(&remaining),
            "1 round, 2 fix iterations in this round, 5 failures, 1 h 59 min, 41 findings, $5.00, 1M tokens"
        );
        assert_eq!(
            crate::phrases::describe_remaining(&remaining),
            "41 findings, 2 fix iterations, 1 rounds, 5 failures, 1 h 59 min, $5.00, 1M tokens"
        );
    }
}
