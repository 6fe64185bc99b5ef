//! The commands that the user is likely to type next. [`crate::step_list`] draws them.

use tribunal_engine::reason::{RunOutcome, RunReason};
use tribunal_workflows::runs::{
    types::{ChildOutcome, ChildStanding},
    view::{RunPhase, RunView},
};

use crate::{
    cause_advice::advise_on_causes,
    kind_table,
    run_standing::{RunStanding, RunState, is_driven_by_session},
    step_list::{NextStep, answer_step},
};

/// Suggests the commands that the user is likely to type next, each with its explanation in parentheses.
pub fn suggest_next_steps(run_standing: &RunStanding<'_>, program_name: &str) -> Vec<String> {
    collect_standing_steps(run_standing, program_name).iter().map(NextStep::to_line).collect()
}

/// Collects the commands that follow from the journal, and those that follow from whether a process works on the run.
pub(crate) fn collect_standing_steps(run_standing: &RunStanding<'_>, program_name: &str) -> Vec<NextStep> {
    let run_view = run_standing.run_view;
    let mut suggested_steps = match run_standing.run_state() {
        RunState::Running if is_driven_by_session(run_view) => held_loop_steps(run_view, program_name),
        RunState::Stopped if run_view.phase == RunPhase::Running => lost_loop_steps(run_view, program_name),
        RunState::Crashed => crash_steps(run_view, program_name),
        RunState::Running => running_steps(run_view, program_name),
        RunState::Stopped | RunState::Ended(_) => Vec::new(),
    };
    suggested_steps.extend(collect_next_steps(run_view, program_name));
    suggested_steps
}

/// Collects the commands that the user is likely to type next.
pub(crate) fn collect_next_steps(run_view: &RunView, program_name: &str) -> Vec<NextStep> {
    let Some(run_id) = &run_view.run_id else { return Vec::new() };
    let run_step =
        |command: &str, explanation: &str| NextStep::new(format!("{program_name} {command} {run_id}"), explanation);
    // Open decisions come first: a resume without an answer would stop at the same question again.
    let open_decisions = run_view.open_decisions();
    let mut steps = kind_table::list_merge_steps(run_view);
    steps.extend(open_decisions.map(|decision| answer_step(run_id, decision, program_name)));
    if run_view.children.values().any(|standing| is_asking_child(run_view, standing)) {
        steps.push(NextStep::new(format!("{program_name} decisions"), "what its child runs ask you"));
    }
    if is_driven_by_session(run_view) {
        // Its session continues it, so there is nothing to resume.
        steps.push(run_step("loop status", ""));
        return steps;
    }
    // A child run goes on when the run that the user started does.
    let resumed_id = run_view.parent.as_ref().map_or(run_id, |parent| &parent.root);
    let resume_step = |explanation: &str| NextStep::new(format!("{program_name} resume {resumed_id}"), explanation);
    match &run_view.phase {
        RunPhase::Parked(summary) if summary.reason == RunReason::InSession => {
            // Usually the session comes back by itself; the open decision is for the case that it does not.
            steps.insert(0, resume_step("once the session has fixed the open findings"));
        }
        RunPhase::Parked(summary) if summary.reason == RunReason::Baseline => {
            steps.push(resume_step("after you have repaired them; the checks run again"));
            steps.push(NextStep::new(
                format!("{program_name} resume {resumed_id} --reload --set baseline=false"),
                "go on without them, like `--skip-baseline`",
            ));
            if run_view.parent.is_none() {
                steps.push(run_step("discard", "give up this run"));
            }
        }
        RunPhase::Parked(summary) if summary.reason == RunReason::CheckoutNotReady => {
            steps.push(resume_step("once your checkout is ready"));
        }
        RunPhase::Parked(summary) => {
            let has_failed = summary.outcome == Some(RunOutcome::Failed);
            let cause_advice = advise_on_causes(run_id, &summary.causes, program_name);
            // Without a known cause the doctor may find one.
            if has_failed && (cause_advice.steps.is_empty() && cause_advice.resume_note.is_empty()) {
                steps.push(NextStep::new(format!("{program_name} doctor"), "check agents and environment"));
            }
            steps.extend(cause_advice.steps);
            let resume_note = match (cause_advice.resume_note.as_str(), has_failed) {
                ("", true) => "add --reload for changed settings",
                (resume_note, _) => resume_note,
            };
            steps.push(resume_step(resume_note));
            if has_failed && run_view.parent.is_none() {
                steps.push(run_step("discard", "give up this run"));
            }
        }
        // A running or finished run needs no command to go on.
        RunPhase::Running | RunPhase::Finished(_) => {}
    }
    for result_command in kind_table::list_result_commands(run_view) {
        steps.push(run_step(result_command.command, result_command.explanation));
    }
    if run_view.run_summary().is_some_and(|summary| summary.outcome == Some(RunOutcome::Resolved)) {
        steps.push(run_step("log", ""));
    }
    steps
}

/// Whether a child run waits for an answer of the user.
fn is_asking_child(run_view: &RunView, standing: &ChildStanding) -> bool {
    let Some(ChildOutcome::Waiting(report)) = &standing.outcome else { return false };
    match report.outcome {
        // These wait for something else than an answer.
        Some(RunOutcome::Waiting) => !matches!(
            report.reason,
            RunReason::Baseline | RunReason::InSession | RunReason::OnOwnBranch | RunReason::CheckoutNotReady
        ),
        // A limit may be the parent's matter.
        Some(RunOutcome::Halted) => run_view.order.as_ref().is_some_and(kind_table::children_ask_about_limits),
        _ => false,
    }
}

/// The commands for a run that has crashed. Only its lock tells that, so the journal's own suggestions leave them out.
fn crash_steps(run_view: &RunView, program_name: &str) -> Vec<NextStep> {
    let Some(run_id) = &run_view.run_id else { return Vec::new() };
    if let Some(parent) = &run_view.parent {
        return vec![NextStep::new(format!("{program_name} resume {}", parent.root), "")];
    }
    vec![
        NextStep::new(format!("{program_name} resume {run_id}"), ""),
        NextStep::new(format!("{program_name} discard {run_id}"), "give up this run"),
    ]
}

/// The commands for a loop that holds its session. What the user has to say, they type in the session itself.
fn held_loop_steps(run_view: &RunView, program_name: &str) -> Vec<NextStep> {
    let Some(run_id) = &run_view.run_id else { return Vec::new() };
    vec![NextStep::new(format!("{program_name} stop {run_id}"), "release its session")]
}

/// The commands for a loop whose state file is gone, so that it holds no session and its journal has no ending.
fn lost_loop_steps(run_view: &RunView, program_name: &str) -> Vec<NextStep> {
    let Some(run_id) = &run_view.run_id else { return Vec::new() };
    vec![NextStep::new(format!("{program_name} stop {run_id}"), "end it; its state file is gone")]
}

/// The commands for a run that a process works on. Its lock tells that, and not its journal.
fn running_steps(run_view: &RunView, program_name: &str) -> Vec<NextStep> {
    let Some(run_id) = &run_view.run_id else { return Vec::new() };
    vec![
        NextStep::new(format!("{program_name} log {run_id} --follow"), "watch it"),
        NextStep::new(format!("{program_name} say {run_id} \"MESSAGE\""), "tell its agents something"),
        NextStep::new(format!("{program_name} stop {run_id}"), "it can be resumed"),
    ]
}
