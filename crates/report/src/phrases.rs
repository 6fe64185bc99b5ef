//! Phrases for counts, costs, times and endings that all reporters share.

use tribunal_core::{
    engine::{
        event::RunSummary,
        files::PatchRefusal,
        ids::{AgentName, FindingId},
        limits::{Cost, RemainingLimits, RunLimits, RunUsage},
        reason::RunReason,
        timestamp::Timestamp,
    },
    review::{confidence::Confidence, counts::FindingCounts, finding::Severity},
};

use crate::clean_line;

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

/// Describes the result of a review round.
pub(crate) fn describe_round(new_findings: u32, is_dry: bool, counts: &FindingCounts) -> String {
    match (new_findings, is_dry) {
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
pub(crate) fn describe_confidence(confidence: &Confidence) -> String {
    format!("{} ({})", describe_score(confidence), confidence.describe_all())
}

/// Describes how many findings one seat raised.
pub(crate) fn describe_raised(finding_count: u32) -> String {
    match finding_count {
        0 => "no findings".to_string(),
        raised_count => format_count(raised_count, "finding"),
    }
}

/// Describes what is left of each limit: `2 rounds, 1 fix iteration in this round, …`.
pub(crate) fn describe_remaining(remaining: &RemainingLimits) -> String {
    format!(
        "{}, {} in this round, {}, {}, {}, {}, {} tokens",
        format_count(remaining.rounds, "round"),
        format_count(remaining.fix_iterations, "fix iteration"),
        format_count(remaining.failures, "failure"),
        format_time_left(remaining.seconds.saturating_mul(1000)),
        format_count(remaining.findings, "finding"),
        format_cost(remaining.cost),
        abbreviate_count(remaining.tokens),
    )
}

/// Describes why a run ended or stopped, without its outcome.
pub(crate) fn describe_ending(summary: &RunSummary) -> String {
    let reason_text = summary.reason.table_row().description;
    let detail_text = clean_line(&summary.detail);
    match summary.reason {
        _ if detail_text.is_empty() || detail_text == reason_text => reason_text.to_string(),
        // These details say everything that the reason says.
        RunReason::GoalMet | RunReason::Environment => detail_text,
        // These are sentences, the others are short.
        RunReason::Rounds | RunReason::PanelDegraded => format!("{reason_text}; {detail_text}"),
        _ if detail_text.contains('(') => format!("{reason_text}; {detail_text}"),
        _ => format!("{reason_text} ({detail_text})"),
    }
}

/// Explains why a patch was not applied.
pub(crate) fn describe_refusal(refusal: &PatchRefusal) -> String {
    match refusal {
        PatchRefusal::Outside { files } => {
            format!("the fix also changed {}; only the reviewed files may change", files.join(", "))
        }
        // The file is named only in reviews of several files.
        PatchRefusal::Conflict { line: line_number, file: file_path, .. } if !file_path.is_empty() => {
            format!("the fix conflicts with another change at {file_path}:{line_number}")
        }
        PatchRefusal::Conflict { line: line_number, .. } => {
            format!("the fix conflicts with another change in line {line_number}")
        }
        // The output was already shortened when it was recorded.
        PatchRefusal::Check { output: check_output, .. } => {
            format!("check failed ({})", check_output.trim())
        }
        PatchRefusal::Gutted { before: lines_before, after: lines_after } => {
            format!("the fix would leave only {lines_after} of {lines_before} lines")
        }
        PatchRefusal::Lost { detail } => detail.clone(),
    }
}

/// Joins ids: `F1 F3`.
pub(crate) fn join_ids(finding_ids: &[FindingId]) -> String {
    finding_ids.iter().map(FindingId::to_string).collect::<Vec<_>>().join(" ")
}

pub(crate) use tribunal_core::text::format_count;

/// Counts patches: `1 patch`, `3 patches`.
pub(crate) fn format_patches(patch_count: u32) -> String {
    if patch_count == 1 { "1 patch".to_string() } else { format!("{patch_count} patches") }
}

/// Describes the limits of a run.
pub(crate) fn describe_limits(limits: &RunLimits) -> String {
    format!(
        "{}, {} per round, {}, {} in a row, {} min, {} (or {} tokens if no cost is reported)",
        format_count(limits.rounds, "round"),
        format_count(limits.fix_iterations, "fix iteration"),
        format_count(limits.findings, "finding"),
        format_count(limits.failures, "failure"),
        // The limit is stored in milliseconds; a part of a minute is not shown.
        limits.runtime_ms / 60_000,
        format_cost(limits.cost),
        abbreviate_count(limits.tokens),
    )
}

/// Formats a duration as a clock does: `0:14`, `12:05`, `2:00:00`.
pub(crate) fn format_duration(elapsed_ms: u64) -> String {
    let seconds = elapsed_ms / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Formats a time with thousandths: `0:00.016` are minutes, seconds and milliseconds.
pub(crate) fn format_moment(elapsed_ms: u64) -> String {
    format!("{}.{:03}", format_duration(elapsed_ms), elapsed_ms % 1000)
}

/// Groups digits: `1,000,000`.
pub(crate) fn group_thousands(amount: u64) -> String {
    let digits = amount.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Abbreviates a count for a glance: `950`, `3.8k`, `31k`, `1.2M`.
pub(crate) fn abbreviate_count(amount: u64) -> String {
    // The limits between the forms leave room for rounding: 9,960 is `10k` and not `10.0k`.
    match amount {
        0..1_000 => amount.to_string(),
        1_000..9_950 => format!("{}k", format_tenths(amount, 1_000)),
        9_950..999_500 => format!("{}k", (amount + 500) / 1_000),
        _ => format!("{}M", format_tenths(amount, 1_000_000)),
    }
}

/// Divides with one rounded decimal place, which is left out if it is zero: `3.8`, `3`.
fn format_tenths(amount: u64, unit: u64) -> String {
    let tenths = amount.saturating_add(unit / 20) / (unit / 10);
    if tenths.is_multiple_of(10) { format!("{}", tenths / 10) } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

/// Formats an amount of money: `$0.16`.
pub(crate) fn format_cost(cost: Cost) -> String {
    format!("${cost}")
}

/// Describes what a run has spent when it ends.
pub(crate) fn describe_spending(summary: &RunSummary) -> String {
    let cost_text = describe_cost(summary.cost, summary.notional).unwrap_or_else(|| "no cost reported".to_string());
    let rounds_text = format_count(summary.rounds, "round");
    format!(
        "{rounds_text} · {} tokens · {cost_text} · {}",
        abbreviate_count(summary.tokens),
        format_duration(summary.elapsed_ms)
    )
}

/// Describes the money: `$0.16`, or the list price where a subscription paid. `None` if no agent reported a cost.
pub(crate) fn describe_cost(cost: Cost, notional_cost: Cost) -> Option<String> {
    // The recorded cost includes the notional part, which no bill will ever show.
    let paid_cost = Cost(cost.0.saturating_sub(notional_cost.0));
    match (paid_cost.0, notional_cost.0) {
        (0, 0) => None,
        (_, 0) => Some(format_cost(paid_cost)),
        (0, _) => Some(format!("{} at list price (covered by the subscription)", format_cost(notional_cost))),
        _ => Some(format!(
            "{} plus {} at list price (covered by the subscription)",
            format_cost(paid_cost),
            format_cost(notional_cost)
        )),
    }
}

/// Describes usage for a table cell: `31k tokens`, with the money if any was spent.
pub(crate) fn describe_usage(tokens: u64, cost: Cost, notional_cost: Cost) -> String {
    let paid_cost = Cost(cost.0.saturating_sub(notional_cost.0));
    match (tokens, paid_cost.0, notional_cost.0) {
        (0, 0, 0) => String::new(),
        (_, 0, 0) => format!("{} tokens", abbreviate_count(tokens)),
        (_, 0, _) => format!("{} tokens, subscription", abbreviate_count(tokens)),
        _ => format!("{} tokens, {}", abbreviate_count(tokens), format_cost(paid_cost)),
    }
}

/// Describes the usage of a run under way, even if it is still zero.
pub(crate) fn describe_usage_so_far(spent: &RunUsage) -> String {
    match describe_usage(spent.tokens, spent.cost, spent.notional) {
        empty_text if empty_text.is_empty() => "0 tokens".to_string(),
        usage_text => usage_text,
    }
}

/// Describes a wait: `claude-code hit its usage limit; waiting until 17:00 UTC (2 h 13 min left)`.
pub(crate) fn describe_wait(agent_name: &AgentName, until_ms: u64, now_ms: u64) -> String {
    let until_utc = Timestamp { wall_ms: until_ms, awake_ms: 0 }.format_utc();
    let now_utc = Timestamp { wall_ms: now_ms, awake_ms: 0 }.format_utc();
    // The format is `2026-11-15 17:00:25`. The day is shown only if it is not today.
    let shown_time = if until_utc[..10] == now_utc[..10] { &until_utc[11..16] } else { &until_utc[..16] };
    let time_left = format_time_left(until_ms.saturating_sub(now_ms));
    format!("{agent_name} hit its usage limit; waiting until {shown_time} UTC ({time_left} left)")
}

/// Formats the time until a reset: `2 h 13 min`, `13 min`, `40 s`.
pub(crate) fn format_time_left(remaining_ms: u64) -> String {
    // The time is rounded up, so that a wait never shows zero seconds before it is over.
    let seconds = remaining_ms.div_ceil(1000);
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_rounded_to_what_a_glance_can_take_in() {
        for (amount, expected_text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (3_789, "3.8k"),
            (9_949, "9.9k"),
            (9_950, "10k"),
            (31_499, "31k"),
            (47_500, "48k"),
            (999_499, "999k"),
            (999_500, "1M"),
            (1_249_999, "1.2M"),
            (12_300_000, "12.3M"),
            (u64::MAX, "18446744073709.5M"),
        ] {
            assert_eq!(abbreviate_count(amount), expected_text);
        }
    }
}
