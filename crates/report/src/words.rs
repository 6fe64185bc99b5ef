//! Phrases for counts, costs, times and endings that all reporters share.

use tribunal_core::{
    confidence::Confidence,
    counts::{BySeverity, Counts},
    decision::Decision,
    event::Summary,
    files::Refusal,
    finding::Severity,
    ids::{AgentName, FindingId, RunId},
    limits::{Cost, Left, Limits, Spent},
    reason::{Outcome, Reason},
    stamp::Stamp,
    view::{Phase, RunView},
};

/// Describes findings by severity: `9 findings: 1 critical, 3 high, 4 medium, 1 low`.
pub(crate) fn findings(number: u32, by: &BySeverity) -> String {
    let parts: Vec<String> = Severity::ALL
        .iter()
        .filter(|severity| by.of(**severity) > 0)
        .map(|severity| format!("{} {severity}", by.of(*severity)))
        .collect();
    if parts.is_empty() {
        count(number, "finding")
    } else {
        format!("{}: {}", count(number, "finding"), parts.join(", "))
    }
}

/// Describes findings by status: `11 raised: 9 fixed, 1 open, 1 dismissed`.
pub(crate) fn tally(counts: &Counts) -> String {
    let parts = [
        (counts.fixed, "fixed"),
        (counts.open, "open"),
        (counts.blocked, "blocked"),
        (counts.deferred, "deferred"),
        (counts.dismissed, "dismissed"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    // `total` leaves out dismissed findings, but they were raised, too.
    match counts.total + counts.dismissed {
        0 => "no findings".to_string(),
        raised => format!("{raised} raised: {}", parts.join(", ")),
    }
}

/// Describes the result of a review round.
pub(crate) fn round(new: u32, dry: bool, counts: &Counts) -> String {
    match (new, dry) {
        // A pass with findings of low severity alone still counts as dry.
        (0, true) => "a dry pass: nothing new".to_string(),
        (_, true) => format!("a dry pass: only {new} of low severity"),
        _ => format!("{new} new; {} to fix", findings(counts.open, &counts.open_by_severity)),
    }
}

/// Describes the score with its parts: `confidence 83: validation 35/35, reviewers 15/25; memory, party not consulted`.
pub(crate) fn confidence(confidence: &Confidence) -> String {
    format!("confidence {}: {}", confidence.score, confidence.parts())
}

/// Describes how many findings one seat raised.
pub(crate) fn raised(number: u32) -> String {
    match number {
        0 => "raised nothing".to_string(),
        some => format!("raised {}", count(some, "finding")),
    }
}

/// Describes what is left of each limit: `2 rounds, 1 fix iteration, …`.
pub(crate) fn left(left: &Left) -> String {
    format!(
        "{}, {} in this one, {}, {} s, {}, {} in cost, {} tokens",
        count(left.rounds, "round"),
        count(left.fix_iterations, "fix iteration"),
        count(left.failures, "failure"),
        thousands(left.seconds),
        count(left.findings, "finding"),
        left.cost,
        thousands(left.tokens),
    )
}

/// Explains why a patch did not land.
pub(crate) fn refused(why: &Refusal) -> String {
    match why {
        Refusal::Outside { files } => format!("it changed {}, which it may not", files.join(", ")),
        // The file is named only in reviews of several files.
        Refusal::Conflict { line, file, .. } if !file.is_empty() => {
            format!("{file}:{line} was changed by somebody else")
        }
        Refusal::Conflict { line, .. } => format!("line {line} was changed by somebody else"),
        // The output was already shortened when it was recorded.
        Refusal::Check { output, .. } => format!("a check failed: {}", output.trim()),
        Refusal::Gutted { before, after } => format!("of {before} lines it would leave {after}"),
        Refusal::Lost { detail } => detail.clone(),
    }
}

/// Joins ids: `F1 F3`.
pub(crate) fn ids(findings: &[FindingId]) -> String {
    findings.iter().map(FindingId::to_string).collect::<Vec<_>>().join(" ")
}

pub(crate) use tribunal_core::text::count;

/// Describes the limits of a run.
pub(crate) fn limits(limits: &Limits) -> String {
    format!(
        "{}, {} a round, {}, {} in a row, {} min, {} in cost (or {} tokens where no cost is reported)",
        count(limits.rounds, "round"),
        count(limits.fix_iterations, "fix iteration"),
        count(limits.findings, "finding"),
        count(limits.failures, "failure"),
        // The limit is stored in milliseconds; settings give it in whole minutes.
        limits.runtime_ms / 60_000,
        limits.cost,
        thousands(limits.tokens),
    )
}

/// Formats a duration as a clock does: `0:14`, `12:05`, `2:00:00`.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Formats a time with thousandths: `0:00.016` are minutes, seconds and milliseconds.
pub(crate) fn moment(ms: u64) -> String {
    format!("{}.{:03}", duration(ms), ms % 1000)
}

/// Groups digits: `1,000,000`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Abbreviates a count for a glance: `950`, `31k`, `1.2M`.
pub(crate) fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}k", number / 1_000),
        // `1.0M` would claim a precision that the figure does not have.
        _ if number % 1_000_000 < 100_000 => format!("{}M", number / 1_000_000),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// Describes what a run has spent when it ends.
pub(crate) fn spent(summary: &Summary) -> String {
    let money = money(summary.cost, summary.notional).unwrap_or_else(|| "no cost reported".to_string());
    let rounds = count(summary.rounds, "round");
    format!("{rounds} · {} tokens · {money} · {}", thousands(summary.tokens), duration(summary.elapsed_ms))
}

/// Describes the money: `cost 0.16`, or the list price where a subscription paid. `None` if no agent reported a cost.
pub(crate) fn money(cost: Cost, notional: Cost) -> Option<String> {
    // The recorded cost includes the notional part, which no bill will ever show.
    let paid = Cost(cost.0.saturating_sub(notional.0));
    match (paid.0, notional.0) {
        (0, 0) => None,
        (_, 0) => Some(format!("cost {paid}")),
        (0, _) => Some(format!("{notional} at list price, paid by the subscription")),
        _ => Some(format!("cost {paid}, and {notional} at list price, paid by the subscription")),
    }
}

/// Describes usage for a table cell: `31k tokens`, with the money if any was spent.
pub(crate) fn used(tokens: u64, cost: Cost, notional: Cost) -> String {
    let paid = Cost(cost.0.saturating_sub(notional.0));
    match (tokens, paid.0, notional.0) {
        (0, 0, 0) => String::new(),
        (_, 0, 0) => format!("{} tokens", short(tokens)),
        (_, 0, _) => format!("{} tokens, by plan", short(tokens)),
        _ => format!("{} tokens, {paid}", short(tokens)),
    }
}

/// Describes the usage of a run under way, even if it is still zero.
pub(crate) fn used_up(spent: &Spent) -> String {
    match used(spent.tokens, spent.cost, spent.notional) {
        nothing if nothing.is_empty() => "0 tokens".to_string(),
        some => some,
    }
}

/// Describes a wait: `claude-code is at its usage limit; waiting until 17:00 UTC (2 h 13 min left)`.
pub(crate) fn awaited(agent: &AgentName, until_ms: u64, now_ms: u64) -> String {
    let until = Stamp { wall_ms: until_ms, awake_ms: 0 }.utc();
    let today = Stamp { wall_ms: now_ms, awake_ms: 0 }.utc();
    // The format is `2026-11-15 17:00:25`. The day is shown only if it is not today.
    let shown = if until[..10] == today[..10] { &until[11..16] } else { &until[..16] };
    let left = left_over(until_ms.saturating_sub(now_ms));
    format!("{agent} is at its usage limit; waiting until {shown} UTC ({left} left)")
}

/// Formats the time until a reset: `2 h 13 min`, `13 min`, `40 s`.
pub(crate) fn left_over(ms: u64) -> String {
    // Rounded up, so that a wait never shows zero seconds before it is over.
    let seconds = ms.div_ceil(1000);
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// The command with which the user answers: `tribunal decisions RUN.D1 ANSWER    (uphold, dismiss, defer)`.
pub(crate) fn answering(run: &RunId, decision: &Decision, program: &str) -> String {
    let keys: Vec<&str> = decision.choices.iter().map(|choice| choice.key.as_str()).collect();
    format!("{program} decisions {run}.{} ANSWER    ({})", decision.id, keys.join(", "))
}

/// Suggests the commands that the user is likely to type next.
pub fn next_steps(view: &RunView, program: &str) -> Vec<String> {
    let Some(run) = &view.run else { return Vec::new() };
    let mut steps: Vec<String> = Vec::new();
    // Open decisions come first: a resume without an answer would stop at the same question again.
    for decision in view.waiting() {
        steps.push(answering(run, decision, program));
    }
    match &view.phase {
        Phase::Parked(summary) if summary.outcome == Some(Outcome::Failed) => {
            steps.push(format!("{program} doctor    (what is missing, and what mends it)"));
            steps.push(format!("{program} resume {run}    (--reload, if you changed tribunal.yaml)"));
        }
        Phase::Parked(summary) if summary.reason == Reason::InSession => {
            // Usually the session comes back by itself; the decision above is for the case that it does not.
            steps
                .insert(0, format!("{program} resume {run}    (when the session has repaired what is open)"));
        }
        Phase::Parked(_) => steps.push(format!("{program} resume {run}")),
        // A running or finished run needs no command to go on.
        Phase::Running | Phase::Finished(_) => {}
    }
    let open = view.counts().open > 0;
    match view.summary().and_then(|summary| summary.outcome) {
        // Even without open findings the user may want to see what was fixed.
        Some(Outcome::Resolved) => {
            steps.push(format!("{program} findings {run}"));
            steps.push(format!("{program} log {run}"));
        }
        _ if open => steps.push(format!("{program} findings {run}")),
        _ => {}
    }
    steps
}
