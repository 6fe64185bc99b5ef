//! What the drivers of clients have in common: the choice of a model, the standing instructions, the usage of a
//! session, and faults at the end.

use tribunal_core::{
    client::ClientSpec,
    fault::{Fault, FaultKind},
    limits::{Cost, Usage},
    settings::AgentSpec,
    text::cut,
};

use crate::driver::{
    order::{Order, Talk},
    output::Finished,
};

const MOST_DENIALS: usize = 10;

/// Instructions that every client gets in addition to its task.
pub(super) const STANDING: &str = "You work unattended: nobody can answer a question or grant a permission, so decide for \
     yourself and go on. The current folder is a private copy that was made for this one task. Do what the task asks for and \
     nothing beside it: no commits, no installations, nothing outside of this folder.";

/// Chooses the model that is set for the job, else for the agent, else for the size.
pub(super) fn model<'a>(agent: &'a AgentSpec, client: &'a ClientSpec, order: &Order<'_>) -> Option<&'a str> {
    let duty = agent.duties.get(&order.job).and_then(|duty| duty.model.as_deref());
    let sized = || order.size.and_then(|size| client.models.of(size));
    duty.or(client.model.as_deref()).or_else(sized)
}

/// Computes what a task used and what its session has used by now, from what the client counted over the whole
/// session.
pub(super) fn since(counted: Usage, talk: Talk<'_>) -> (Usage, Usage) {
    let Some(before) = talk.session().map(|session| session.total) else { return (counted, counted) };
    // A counter that went down is either a new count or the correction of an earlier estimate.
    let grown = counted.input_tokens >= before.input_tokens
        && counted.output_tokens >= before.output_tokens
        && counted.cached_tokens >= before.cached_tokens
        && counted.cost >= before.cost;
    if !grown && !before.estimated {
        // The client began to count anew, so that its count is this task's alone.
        return (counted, before.plus(counted));
    }
    // If the count is lower than before, too much was estimated for an earlier task that was cut off. The difference
    // saturates at zero, so that nothing is charged twice.
    let cost =
        counted.cost.map(|Cost(now)| Cost(now.saturating_sub(before.cost.map_or(0, |Cost(cost)| cost))));
    let used = Usage {
        input_tokens: counted.input_tokens.saturating_sub(before.input_tokens),
        output_tokens: counted.output_tokens.saturating_sub(before.output_tokens),
        cached_tokens: counted.cached_tokens.saturating_sub(before.cached_tokens),
        cost,
        ..counted
    };
    (used, counted)
}

/// Estimates the cost of a task from what its session has cost so far; `None` if that is unknown.
pub(super) fn by_the_talk(used: &Usage, talk: Talk<'_>) -> Option<Cost> {
    let total = talk.session()?.total;
    let (Cost(cost), tokens) = (total.cost?, total.weighted());
    // A session without tokens has no price per token.
    (tokens > 0).then(|| Cost::of(Cost(cost).amount() / tokens as f64 * used.weighted() as f64))
}

/// Remarks about what a client was denied. A few of them are enough to explain it.
pub(super) fn denials(denied: &[String]) -> Vec<String> {
    let told = denied.iter().take(MOST_DENIALS).map(|denied| format!("was denied {denied}"));
    let more = denied.len().saturating_sub(MOST_DENIALS);
    told.chain((more > 0).then(|| format!("was denied {more} more"))).collect()
}

/// Adds a value unless it is already known.
pub(super) fn note(denied: &mut Vec<String>, what: String) {
    if !denied.contains(&what) {
        denied.push(what);
    }
}

/// The fault of a client that ended without its final line. `retry_fault` is the error for which it had been
/// retrying.
pub(super) fn cut_off(finished: &Finished<'_>, trying: Option<Fault>) -> Option<Fault> {
    let last = |text: &str| text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(String::from);
    // Output that is not from the client at all, such as a message of the shell, explains the failure.
    let foreign = || last(finished.stdout).filter(|line| !line.starts_with('{'));
    let last = last(finished.stderr).or_else(foreign).unwrap_or_default();
    let said = if last.is_empty() { String::new() } else { format!(": {}", short(&last)) };
    match finished.code {
        // We ended the process ourselves and know why; the error for which it kept retrying explains more than the
        // timeout does.
        None => trying,
        // Exit code 0 promises a result; without its final line the output is broken.
        Some(0) => Some(Fault::new(FaultKind::Malformed, format!("ended without a last word{said}"))),
        // 128 + 15: the client handled SIGTERM and exited in order.
        Some(143) => Some(Fault::new(FaultKind::Killed { signal: 15 }, "was asked to stop")),
        Some(code) => {
            Some(Fault::new(FaultKind::Exited { code }, format!("ended with exit code {code}{said}")))
        }
    }
}

/// The first line of a message, to be used as part of a sentence.
pub(super) fn short(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    cut(line.trim_end_matches('.'), 300)
}

#[cfg(test)]
mod tests {
    use tribunal_core::brief::Session;

    use super::*;

    fn usage(input_tokens: u64, cost: f64) -> Usage {
        Usage {
            input_tokens,
            output_tokens: input_tokens / 2,
            cost: Some(Cost::of(cost)),
            ..Usage::default()
        }
    }

    #[test]
    fn what_a_task_used_is_what_its_talk_grew_by() {
        let session = Session { id: "s".into(), total: usage(100, 0.5), at_ms: 0 };
        assert_eq!(since(usage(40, 0.2), Talk::New), (usage(40, 0.2), usage(40, 0.2)));
        for talk in [Talk::GoOn(&session), Talk::Branch(&session)] {
            assert_eq!(since(usage(160, 0.75), talk), (usage(60, 0.25), usage(160, 0.75)));
            assert_eq!(since(usage(100, 0.5), talk), (usage(0, 0.0), usage(100, 0.5)));
            // A client that counts anew is taken literally, and the sum of the session grows all the same.
            assert_eq!(since(usage(60, 0.25), talk), (usage(60, 0.25), usage(160, 0.75)));
        }
    }

    #[test]
    fn what_was_estimated_too_high_is_not_paid_again() {
        let total = Usage { estimated: true, ..usage(100, 0.5) };
        let session = Session { id: "s".into(), total, at_ms: 0 };
        assert_eq!(since(usage(90, 0.45), Talk::GoOn(&session)), (usage(0, 0.0), usage(90, 0.45)));
        assert_eq!(since(usage(110, 0.55), Talk::GoOn(&session)), (usage(10, 0.05), usage(110, 0.55)));
    }

    #[test]
    fn a_price_is_known_from_the_talk_or_not_at_all() {
        let session = |total| Session { id: "s".into(), total, at_ms: 0 };
        let used = usage(20, 0.0);
        assert_eq!(by_the_talk(&used, Talk::New), None);
        assert_eq!(by_the_talk(&used, Talk::GoOn(&session(usage(100, 0.5)))), Some(Cost::of(0.1)));
        assert_eq!(by_the_talk(&used, Talk::GoOn(&session(usage(0, 0.5)))), None);
        let untold = Usage { cost: None, ..usage(100, 0.5) };
        assert_eq!(by_the_talk(&used, Talk::GoOn(&session(untold))), None);
    }

    #[test]
    fn many_denials_are_a_few_lines() {
        let mut denied = Vec::new();
        (0..13).chain(0..13).for_each(|file| note(&mut denied, format!("Write {file}")));
        let remarks = denials(&denied);
        assert_eq!((remarks.len(), remarks[9].as_str()), (11, "was denied Write 9"));
        assert_eq!(remarks[10], "was denied 3 more");
        assert!(denials(&[]).is_empty());
    }
}
