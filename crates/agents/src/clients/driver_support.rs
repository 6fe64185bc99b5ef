//! What the drivers of clients have in common: the choice of a model, the standing instructions, the usage of a
//! session, and faults at the end.

use tribunal_engine::{
    fault::{Fault, FaultKind},
    limits::{AgentUsage, Cost},
    text::truncate_chars,
};
use tribunal_workflows::{
    review::review_keys::ReviewKeys,
    runs::settings::AgentSpec,
    tasks::{
        client::ClientSpec,
        purpose::{AgentAccess, ExpectedAnswer},
    },
};

use crate::driver::{
    launch_request::{LaunchRequest, SessionMode},
    process_output::FinishedProcess,
};

const MAX_DENIALS: usize = 10;

/// Instructions that every client gets in addition to its task. Only a task that expects a question may ask one, and only a
/// developer may commit and install what it needs.
pub(super) fn standing_instructions(launch_request: &LaunchRequest<'_>) -> String {
    let who_answers = match launch_request.expects {
        ExpectedAnswer::Question => {
            "You are running unattended: no user can grant a permission. A question is answered only if it ends your \
             answer."
        }
        _ => {
            "You are running unattended: no user can answer a question or grant a permission, so make your own \
             decisions and continue."
        }
    };
    let what_is_allowed = match launch_request.access {
        AgentAccess::Read | AgentAccess::Write => {
            "The current directory is a private workspace made for this one task. Do what the task asks and nothing \
             else: do not commit, do not install anything, and do not touch anything outside this directory."
        }
        AgentAccess::Develop => {
            "Do what the task asks and nothing else: do not push, and do not touch anything outside the current \
             directory."
        }
    };
    format!("{who_answers} {what_is_allowed}")
}

/// Chooses the model that is set for the job, else for the seat, else for the agent, else for the size.
pub(super) fn choose_model<'a>(
    agent_spec: &'a AgentSpec,
    client_spec: &'a ClientSpec,
    launch_request: &LaunchRequest<'_>,
) -> Option<&'a str> {
    let role = launch_request.task_key.reviewer_role();
    let duty_model = agent_spec.find_duty(launch_request.job).and_then(|duty| duty.model_for_role(role));
    let size_model = || launch_request.size.and_then(|size| client_spec.models.for_size(size));
    duty_model.or(client_spec.model.as_deref()).or_else(size_model)
}

/// Computes what a task used and what its session has used by now, from what the client counted over the whole
/// session.
pub(super) fn usage_since_session(
    counted_usage: AgentUsage,
    session_mode: SessionMode<'_>,
) -> (AgentUsage, AgentUsage) {
    let Some(previous_usage) = session_mode.session().map(|session| session.total) else {
        return (counted_usage, counted_usage);
    };
    // A counter that went down is either a new count or the correction of an earlier estimate.
    let has_grown = counted_usage.input_tokens >= previous_usage.input_tokens
        && counted_usage.output_tokens >= previous_usage.output_tokens
        && counted_usage.cached_tokens >= previous_usage.cached_tokens
        && counted_usage.cost >= previous_usage.cost;
    if !has_grown && !previous_usage.estimated {
        // The client began to count anew, so its count is this task's alone.
        return (counted_usage, previous_usage.combined_with(counted_usage));
    }
    // If the count is lower than before, too much was estimated for an earlier task that was cut off. The difference
    // saturates at zero, so that nothing is charged twice.
    let task_cost = counted_usage.cost.map(|Cost(counted_cost)| {
        Cost(counted_cost.saturating_sub(previous_usage.cost.map_or(0, |Cost(previous_cost)| previous_cost)))
    });
    let task_usage = AgentUsage {
        input_tokens: counted_usage.input_tokens.saturating_sub(previous_usage.input_tokens),
        output_tokens: counted_usage.output_tokens.saturating_sub(previous_usage.output_tokens),
        cached_tokens: counted_usage.cached_tokens.saturating_sub(previous_usage.cached_tokens),
        cost: task_cost,
        ..counted_usage
    };
    (task_usage, counted_usage)
}

/// Estimates the cost of a task from what its session has cost so far; `None` if that is unknown.
pub(super) fn estimate_cost(task_usage: &AgentUsage, session_mode: SessionMode<'_>) -> Option<Cost> {
    let session_usage = session_mode.session()?.total;
    let (Cost(session_cost), session_tokens) = (session_usage.cost?, session_usage.weighted_tokens());
    // A session without tokens has no price per token.
    (session_tokens > 0).then(|| {
        Cost::from_amount(Cost(session_cost).amount() / session_tokens as f64 * task_usage.weighted_tokens() as f64)
    })
}

/// Remarks about what a client was denied. A few of them are enough to explain it.
pub(super) fn denial_remarks(denied: &[String]) -> Vec<String> {
    let shown_remarks =
        denied.iter().take(MAX_DENIALS).map(|denied_action| format!("permission denied: {denied_action}"));
    let hidden_count = denied.len().saturating_sub(MAX_DENIALS);
    shown_remarks.chain((hidden_count > 0).then(|| format!("permission denied: {hidden_count} more"))).collect()
}

/// Adds a value unless it is already known.
pub(super) fn push_unique(known_values: &mut Vec<String>, new_value: String) {
    if !known_values.contains(&new_value) {
        known_values.push(new_value);
    }
}

/// The fault of a client that ended without its final line. `retry_fault` is the error for which it had been
/// retrying.
pub(super) fn fault_without_result(
    finished_process: &FinishedProcess<'_>,
    retry_fault: Option<Fault>,
) -> Option<Fault> {
    let find_last_line = |stream_text: &str| {
        stream_text.lines().map(str::trim).rfind(|stream_line| !stream_line.is_empty()).map(String::from)
    };
    // Output that is not from the client at all, such as a message of the shell, explains the failure.
    let foreign_line = || find_last_line(finished_process.stdout).filter(|stream_line| !stream_line.starts_with('{'));
    let last_line = find_last_line(finished_process.stderr).or_else(foreign_line).unwrap_or_default();
    let detail_suffix =
        if last_line.is_empty() { String::new() } else { format!(": {}", first_message_line(&last_line)) };
    match finished_process.exit_code {
        // The process was killed, and the caller knows how. The error for which it kept retrying explains more than a
        // timeout does.
        None => retry_fault,
        // Exit code 0 promises a result; without its final line the output is broken.
        Some(0) => Some(Fault::new(FaultKind::Malformed, format!("exited without a final result{detail_suffix}"))),
        // 128 + 15: the client handled SIGTERM and exited in order.
        Some(143) => Some(Fault::new(FaultKind::Killed { signal: 15 }, "was stopped (SIGTERM)")),
        Some(exit_code) => Some(Fault::new(
            FaultKind::Exited { code: exit_code },
            format!("exited with code {exit_code}{detail_suffix}"),
        )),
    }
}

/// The first line of a message, to be used as part of a sentence.
pub(super) fn first_message_line(message: &str) -> String {
    let first_line = message.lines().map(str::trim).find(|message_line| !message_line.is_empty()).unwrap_or_default();
    truncate_chars(first_line.trim_end_matches('.'), 300)
}

#[cfg(test)]
mod tests {
    use tribunal_workflows::tasks::brief::AgentSession;

    use super::*;

    fn build_usage(input_tokens: u64, dollars: f64) -> AgentUsage {
        AgentUsage {
            input_tokens,
            output_tokens: input_tokens / 2,
            cost: Some(Cost::from_amount(dollars)),
            ..AgentUsage::default()
        }
    }

    #[test]
    fn a_task_used_what_its_session_grew_by() {
        let session = AgentSession { id: "s".into(), total: build_usage(100, 0.5), at_ms: 0 };
        assert_eq!(
            usage_since_session(build_usage(40, 0.2), SessionMode::New),
            (build_usage(40, 0.2), build_usage(40, 0.2))
        );
        for session_mode in [SessionMode::Resume(&session), SessionMode::Fork(&session)] {
            assert_eq!(
                usage_since_session(build_usage(160, 0.75), session_mode),
                (build_usage(60, 0.25), build_usage(160, 0.75))
            );
            assert_eq!(
                usage_since_session(build_usage(100, 0.5), session_mode),
                (build_usage(0, 0.0), build_usage(100, 0.5))
            );
            // A client that counts anew is taken literally, and the sum of the session grows all the same.
            assert_eq!(
                usage_since_session(build_usage(60, 0.25), session_mode),
                (build_usage(60, 0.25), build_usage(160, 0.75))
            );
        }
    }

    #[test]
    fn an_estimate_that_was_too_high_is_not_charged_again() {
        let estimated_total = AgentUsage { estimated: true, ..build_usage(100, 0.5) };
        let session = AgentSession { id: "s".into(), total: estimated_total, at_ms: 0 };
        assert_eq!(
            usage_since_session(build_usage(90, 0.45), SessionMode::Resume(&session)),
            (build_usage(0, 0.0), build_usage(90, 0.45))
        );
        assert_eq!(
            usage_since_session(build_usage(110, 0.55), SessionMode::Resume(&session)),
            (build_usage(10, 0.05), build_usage(110, 0.55))
        );
    }

    #[test]
    fn a_cost_is_estimated_from_the_session_or_not_at_all() {
        let build_session = |session_usage| AgentSession { id: "s".into(), total: session_usage, at_ms: 0 };
        let task_usage = build_usage(20, 0.0);
        assert_eq!(estimate_cost(&task_usage, SessionMode::New), None);
        assert_eq!(
            estimate_cost(&task_usage, SessionMode::Resume(&build_session(build_usage(100, 0.5)))),
            Some(Cost::from_amount(0.1))
        );
        assert_eq!(estimate_cost(&task_usage, SessionMode::Resume(&build_session(build_usage(0, 0.5)))), None);
        let usage_without_cost = AgentUsage { cost: None, ..build_usage(100, 0.5) };
        assert_eq!(estimate_cost(&task_usage, SessionMode::Resume(&build_session(usage_without_cost))), None);
    }

    #[test]
    fn many_denials_are_shortened_to_a_few_lines() {
        let mut denied_actions = Vec::new();
        (0..13).chain(0..13).for_each(|file_number| push_unique(&mut denied_actions, format!("Write {file_number}")));
        let remarks = denial_remarks(&denied_actions);
        assert_eq!((remarks.len(), remarks[9].as_str()), (11, "permission denied: Write 9"));
        assert_eq!(remarks[10], "permission denied: 3 more");
        assert!(denial_remarks(&[]).is_empty());
    }
}
