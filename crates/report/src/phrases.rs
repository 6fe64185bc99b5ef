//! Phrases for counts, costs, times and endings that all reporters share.

use tribunal_core::{
    confidence::Confidence,
    counts::{FindingCounts, SeverityCounts},
    decision::Decision,
    event::RunSummary,
    files::PatchRefusal,
    finding::Severity,
    ids::{AgentName, FindingId, RunId},
    limits::{Cost, RemainingLimits, RunLimits, RunUsage},
    reason::{RunOutcome, RunReason},
    timestamp::Timestamp,
    view::{RunPhase, RunView},
};

/// Describes findings by severity: `9 findings: 1 critical, 3 high, 4 medium, 1 low`.
pub(crate) fn describe_findings(finding_count: u32, by_severity: &SeverityCounts) -> String {
    let severity_parts: Vec<String> = Severity::ALL
        .iter()
        .filter(|severity| by_severity.with_severity(**severity) > 0)
        .map(|severity| format!("{} {severity}", by_severity.with_severity(*severity)))
        .collect();
    if severity_parts.is_empty() {
        format_count(finding_count, "finding")
    } else {
        format!("{}: {}", format_count(finding_count, "finding"), severity_parts.join(", "))
    }
}

/// Describes findings by status: `11 raised: 9 fixed, 1 open, 1 dismissed`.
pub(crate) fn describe_counts(counts: &FindingCounts) -> String {
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
    // `total` leaves out dismissed findings, but they were raised, too.
    match counts.total + counts.dismissed {
        0 => "no findings".to_string(),
        raised_count => format!("{raised_count} raised: {}", status_parts.join(", ")),
    }
}

/// Describes the result of a review round.
pub(crate) fn describe_round(new_findings: u32, is_dry: bool, counts: &FindingCounts) -> String {
    match (new_findings, is_dry) {
        // A pass with findings of low severity alone still counts as dry.
        (0, true) => "a dry pass: nothing new".to_string(),
        (_, true) => format!("a dry pass: only {new_findings} of low severity"),
        _ => {
            format!("{new_findings} new; {} to fix", describe_findings(counts.open, &counts.open_by_severity))
        }
    }
}

/// Describes the score with its parts: `confidence 83: validation 35/35, reviewers 15/25; memory, party not consulted`.
pub(crate) fn describe_confidence(confidence: &Confidence) -> String {
    format!("confidence {}: {}", confidence.score, confidence.describe_all())
}

/// Describes how many findings one seat raised.
pub(crate) fn describe_raised(finding_count: u32) -> String {
    match finding_count {
        0 => "raised nothing".to_string(),
        raised_count => format!("raised {}", format_count(raised_count, "finding")),
    }
}

/// Describes what is left of each limit: `2 rounds, 1 fix iteration in this one, …`.
pub(crate) fn describe_remaining(remaining: &RemainingLimits) -> String {
    format!(
        "{}, {} in this one, {}, {} s, {}, {} in cost, {} tokens",
        format_count(remaining.rounds, "round"),
        format_count(remaining.fix_iterations, "fix iteration"),
        format_count(remaining.failures, "failure"),
        group_thousands(remaining.seconds),
        format_count(remaining.findings, "finding"),
        remaining.cost,
        group_thousands(remaining.tokens),
    )
}

/// Explains why a patch did not land.
pub(crate) fn describe_refusal(refusal: &PatchRefusal) -> String {
    match refusal {
        PatchRefusal::Outside { files } => format!("it changed {}, which it may not", files.join(", ")),
        // The file is named only in reviews of several files.
        PatchRefusal::Conflict { line: line_number, file: file_path, .. } if !file_path.is_empty() => {
            format!("{file_path}:{line_number} was changed outside this run")
        }
        PatchRefusal::Conflict { line: line_number, .. } => {
            format!("line {line_number} was changed outside this run")
        }
        // The output was already shortened when it was recorded.
        PatchRefusal::Check { output: check_output, .. } => {
            format!("a check failed: {}", check_output.trim())
        }
        PatchRefusal::Gutted { before: lines_before, after: lines_after } => {
            format!("of {lines_before} lines it would leave {lines_after}")
        }
        PatchRefusal::Lost { detail } => detail.clone(),
    }
}

/// Joins ids: `F1 F3`.
pub(crate) fn join_ids(finding_ids: &[FindingId]) -> String {
    finding_ids.iter().map(FindingId::to_string).collect::<Vec<_>>().join(" ")
}

pub(crate) use tribunal_core::text::format_count;

/// Describes the limits of a run.
pub(crate) fn describe_limits(limits: &RunLimits) -> String {
    format!(
        "{}, {} a round, {}, {} in a row, {} min, {} in cost (or {} tokens where no cost is reported)",
        format_count(limits.rounds, "round"),
        format_count(limits.fix_iterations, "fix iteration"),
        format_count(limits.findings, "finding"),
        format_count(limits.failures, "failure"),
        // The limit is stored in milliseconds; a part of a minute is not shown.
        limits.runtime_ms / 60_000,
        limits.cost,
        group_thousands(limits.tokens),
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

/// Abbreviates a count for a glance: `950`, `31k`, `1.2M`.
pub(crate) fn abbreviate_count(amount: u64) -> String {
    match amount {
        0..1_000 => amount.to_string(),
        1_000..1_000_000 => format!("{}k", amount / 1_000),
        // `1M` says the same as `1.0M`.
        _ if amount % 1_000_000 < 100_000 => format!("{}M", amount / 1_000_000),
        _ => format!("{}.{}M", amount / 1_000_000, amount % 1_000_000 / 100_000),
    }
}

/// Describes what a run has spent when it ends.
pub(crate) fn describe_spending(summary: &RunSummary) -> String {
    let cost_text = describe_cost(summary.cost, summary.notional).unwrap_or_else(|| "no cost reported".to_string());
    let rounds_text = format_count(summary.rounds, "round");
    format!(
        "{rounds_text} · {} tokens · {cost_text} · {}",
        group_thousands(summary.tokens),
        format_duration(summary.elapsed_ms)
    )
}

/// Describes the money: `cost 0.16`, or the list price where a subscription paid. `None` if no agent reported a cost.
pub(crate) fn describe_cost(cost: Cost, notional_cost: Cost) -> Option<String> {
    // The recorded cost includes the notional part, which no bill will ever show.
    let paid_cost = Cost(cost.0.saturating_sub(notional_cost.0));
    match (paid_cost.0, notional_cost.0) {
        (0, 0) => None,
        (_, 0) => Some(format!("cost {paid_cost}")),
        (0, _) => Some(format!("{notional_cost} at list price, paid by the subscription")),
        _ => Some(format!("cost {paid_cost}, and {notional_cost} at list price, paid by the subscription")),
    }
}

/// Describes usage for a table cell: `31k tokens`, with the money if any was spent.
pub(crate) fn describe_usage(tokens: u64, cost: Cost, notional_cost: Cost) -> String {
    let paid_cost = Cost(cost.0.saturating_sub(notional_cost.0));
    match (tokens, paid_cost.0, notional_cost.0) {
        (0, 0, 0) => String::new(),
        (_, 0, 0) => format!("{} tokens", abbreviate_count(tokens)),
        (_, 0, _) => format!("{} tokens, by plan", abbreviate_count(tokens)),
        _ => format!("{} tokens, {paid_cost}", abbreviate_count(tokens)),
    }
}

/// Describes the usage of a run under way, even if it is still zero.
pub(crate) fn describe_usage_so_far(spent: &RunUsage) -> String {
    match describe_usage(spent.tokens, spent.cost, spent.notional) {
        empty_text if empty_text.is_empty() => "0 tokens".to_string(),
        usage_text => usage_text,
    }
}

/// Describes a wait: `claude-code is at its usage limit; waiting until 17:00 UTC (2 h 13 min left)`.
pub(crate) fn describe_wait(agent_name: &AgentName, until_ms: u64, now_ms: u64) -> String {
    let until_utc = Timestamp { wall_ms: until_ms, awake_ms: 0 }.format_utc();
    let now_utc = Timestamp { wall_ms: now_ms, awake_ms: 0 }.format_utc();
    // The format is `2026-11-15 17:00:25`. The day is shown only if it is not today.
    let shown_time = if until_utc[..10] == now_utc[..10] { &until_utc[11..16] } else { &until_utc[..16] };
    let time_left = format_time_left(until_ms.saturating_sub(now_ms));
    format!("{agent_name} is at its usage limit; waiting until {shown_time} UTC ({time_left} left)")
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

/// The command with which the user answers: `tribunal decisions RUN.D1 ANSWER    (uphold, dismiss, defer)`.
pub(crate) fn answer_command(run_id: &RunId, decision: &Decision, program_name: &str) -> String {
    let choice_keys: Vec<&str> = decision.choices.iter().map(|choice| choice.key.as_str()).collect();
    format!("{program_name} decisions {run_id}.{} ANSWER    ({})", decision.id, choice_keys.join(", "))
}

/// Suggests the commands that the user is likely to type next.
pub fn suggest_next_steps(run_view: &RunView, program_name: &str) -> Vec<String> {
    let Some(run_id) = &run_view.run_id else { return Vec::new() };
    let mut steps: Vec<String> = Vec::new();
    // Open decisions come first: a resume without an answer would stop at the same question again.
    for decision in run_view.open_decisions() {
        steps.push(answer_command(run_id, decision, program_name));
    }
    match &run_view.phase {
        RunPhase::Parked(summary) if summary.outcome == Some(RunOutcome::Failed) => {
            steps.push(format!("{program_name} doctor    (what is missing, and what mends it)"));
            steps.push(format!("{program_name} resume {run_id}    (--reload, if you changed tribunal.yaml)"));
        }
        RunPhase::Parked(summary) if summary.reason == RunReason::InSession => {
            // Usually the session comes back by itself; the open decision is for the case that it does not.
            steps.insert(0, format!("{program_name} resume {run_id}    (when the session has repaired what is open)"));
        }
        RunPhase::Parked(_) => steps.push(format!("{program_name} resume {run_id}")),
        // A running or finished run needs no command to go on.
        RunPhase::Running | RunPhase::Finished(_) => {}
    }
    let has_open_findings = run_view.finding_counts().open > 0;
    match run_view.run_summary().and_then(|summary| summary.outcome) {
        // Even without open findings the user may want to see what was fixed.
        Some(RunOutcome::Resolved) => {
            steps.push(format!("{program_name} findings {run_id}"));
            steps.push(format!("{program_name} log {run_id}"));
        }
        _ if has_open_findings => steps.push(format!("{program_name} findings {run_id}")),
        _ => {}
    }
    steps
}
