//! Phrases for counts, costs, times and endings that the reporters of all kinds of runs share.

use tribunal_engine::{
    effect::{AwaitReset, WaitCause},
    files::PatchRefusal,
    ids::AgentName,
    limits::{AgentUsage, Cost, LimitShare, RemainingLimits, RunLimits, RunUsage},
    reason::RunReason,
    timestamp::Timestamp,
};
use tribunal_workflows::runs::types::RunSummary;

use crate::clean_line;

/// Describes what is left of each limit: `2 stories, 5 failures, 1 h 59 min, $4.50, 1M tokens`. The limits that only this
/// kind of run has come first, by their names.
pub(crate) fn describe_remaining(remaining: &RemainingLimits) -> String {
    let RemainingLimits { failures, seconds, cost, tokens, counts } = remaining;
    let mut limit_texts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{count} {}", name.replace('_', " "))).collect();
    limit_texts.push(format_count(*failures, "failure"));
    limit_texts.push(format_time_left(seconds.saturating_mul(1000)));
    limit_texts.push(format_cost(*cost));
    limit_texts.push(format!("{} tokens", abbreviate_count(*tokens)));
    limit_texts.join(", ")
}

/// Describes why a run ended or stopped, and whose limit was reached: `story cost limit reached ($10.00 of $10.00 spent)`. The owner is
/// empty if that needs no word.
pub(crate) fn describe_own_ending(limit_owner: &str, summary: &RunSummary) -> String {
    let ending_text = describe_ending(summary);
    match summary.reason {
        RunReason::Runtime | RunReason::Cost | RunReason::Tokens if !limit_owner.is_empty() => {
            format!("{limit_owner} {ending_text}")
        }
        _ => ending_text,
    }
}

/// Describes why a run ended or stopped, without its outcome.
pub(crate) fn describe_ending(summary: &RunSummary) -> String {
    describe_reason(summary.reason, &summary.detail)
}

/// Describes a reason with the details of this case.
pub(crate) fn describe_reason(reason: RunReason, detail: &str) -> String {
    let reason_text = reason.table_row().description;
    let detail_text = clean_line(detail);
    match reason {
        _ if detail_text.is_empty() || detail_text == reason_text => reason_text.to_string(),
        // These details say everything that the reason says.
        RunReason::GoalMet | RunReason::Environment | RunReason::CheckoutNotReady => detail_text,
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
        PatchRefusal::TooLarge { file: file_path, bytes, max_bytes } => {
            format!(
                "the fix makes {file_path} {bytes} bytes long; at most {max_bytes} are allowed \
                 (`tasks.max_file_growth`, `tasks.max_file_mb`)"
            )
        }
        PatchRefusal::AddsSecret { file: file_path, kinds } => {
            format!("the fix adds a secret to {file_path} ({})", kinds.join(", "))
        }
        PatchRefusal::RepairsNothing => "the fix repairs none of its findings".to_string(),
        PatchRefusal::Lost { detail } => detail.clone(),
    }
}

pub(crate) use tribunal_engine::text::format_count;

/// Describes the limits of a run, those that only its kind has first.
pub(crate) fn describe_limits(own_limits: &[String], limits: &RunLimits) -> String {
    let mut limit_texts = own_limits.to_vec();
    limit_texts.push(format!("{} in a row", format_count(limits.failures, "failure")));
    // What its parent lends a child is never more than what the child's own limits allow.
    limit_texts.push(describe_share(&limits.share.unwrap_or_else(|| limits.as_share())));
    // It is said once, by the run that the user started.
    if limits.share.is_none() {
        let calls_text = group_thousands(u64::from(limits.calls_per_hour));
        limit_texts.push(format!("{calls_text} calls per hour in all runs"));
    }
    limit_texts.join(", ")
}

/// Describes what may be used: `240 min, $10.00 (or 2M tokens if no cost is reported)`.
pub(crate) fn describe_share(share: &LimitShare) -> String {
    let LimitShare { runtime_ms, cost, tokens } = *share;
    let token_text = format!("or {} tokens if no cost is reported", abbreviate_count(tokens));
    // The limit is stored in milliseconds; a part of a minute is not shown.
    format!("{} min, {} ({token_text})", runtime_ms / 60_000, format_cost(cost))
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

/// Describes what a run has spent when it ends: `2 rounds · 31k tokens · $0.31 · 0:14`. The caller says what the run has done
/// in the terms of its kind; that may be empty.
pub(crate) fn describe_spending(effort: &str, summary: &RunSummary) -> String {
    let cost_text = describe_cost(summary.cost, summary.notional).unwrap_or_else(|| "no cost reported".to_string());
    let tokens_text = format!("{} tokens", abbreviate_count(summary.tokens));
    join_parts([effort, &tokens_text, &cost_text, &format_duration(summary.elapsed_ms)])
}

/// Joins the parts of a line that are not empty: `2 rounds · 31k tokens`.
pub(crate) fn join_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// The most names that are listed in a line.
pub(crate) const MAX_LISTED_NAMES: usize = 8;

/// Lists names: `a, b, c`. Of a long list the first ones are named and the others counted.
pub(crate) fn list_names(names: &[String]) -> String {
    match names.split_at_checked(MAX_LISTED_NAMES) {
        Some((first_names, others)) if !others.is_empty() => {
            format!("{} and {} more", first_names.join(", "), others.len())
        }
        _ => names.join(", "),
    }
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

/// Describes the usage of one call, or nothing if the agent reported none.
pub(crate) fn describe_call_usage(usage: &AgentUsage) -> String {
    if *usage == AgentUsage::default() {
        return String::new();
    }
    let estimate_prefix = if usage.estimated { "about " } else { "" };
    let cost_text = usage.cost.map(|cost| format!(" · {}", format_cost(cost))).unwrap_or_default();
    format!(" · {estimate_prefix}{} tokens{cost_text}", group_thousands(usage.weighted_tokens()))
}

/// Describes the usage of a run under way, even if it is still zero.
pub(crate) fn describe_usage_so_far(spent: &RunUsage) -> String {
    match describe_usage(spent.tokens, spent.cost, spent.notional) {
        empty_text if empty_text.is_empty() => "0 tokens".to_string(),
        usage_text => usage_text,
    }
}

/// Describes a wait with its reason.
pub(crate) fn describe_wait(wait: &AwaitReset, now_ms: u64) -> String {
    match wait.cause {
        WaitCause::UsageLimit => describe_usage_limit(&wait.agent, wait.until_ms, now_ms),
        WaitCause::CallsPerHour | WaitCause::CircuitBreaker | WaitCause::Overload => {
            format!("{}; {}", clean_line(&wait.why), describe_time(wait.until_ms, now_ms))
        }
    }
}

/// Describes a wait: `claude-code hit its usage limit; waiting until 17:00 UTC (2 h 13 min left)`.
pub(crate) fn describe_usage_limit(agent_name: &AgentName, until_ms: u64, now_ms: u64) -> String {
    format!("{agent_name} hit its usage limit; {}", describe_time(until_ms, now_ms))
}

fn describe_time(until_ms: u64, now_ms: u64) -> String {
    let until_utc = Timestamp { wall_ms: until_ms, awake_ms: 0 }.format_utc();
    let now_utc = Timestamp { wall_ms: now_ms, awake_ms: 0 }.format_utc();
    // The format is `2026-11-15 17:00:25`. The day is shown only if it is not today.
    let shown_time = if until_utc[..10] == now_utc[..10] { &until_utc[11..16] } else { &until_utc[..16] };
    let time_left = format_time_left(until_ms.saturating_sub(now_ms));
    format!("waiting until {shown_time} UTC ({time_left} left)")
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
    fn of_a_long_list_the_first_names_are_listed() {
        let names: Vec<String> = (1..=11).map(|number| format!("f{number}")).collect();
        assert_eq!(list_names(&names[..2]), "f1, f2");
        assert_eq!(list_names(&names[..8]), "f1, f2, f3, f4, f5, f6, f7, f8");
        assert_eq!(list_names(&names), "f1, f2, f3, f4, f5, f6, f7, f8 and 3 more");
        assert_eq!(list_names(&[]), "");
    }

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
