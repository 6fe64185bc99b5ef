//! Commits of a loop, and how they get onto the branch.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        commits::{CommitOutcome, CommitWork, Integrate},
        concerns::{ConcernStep, LandingConcern, LandingGate, advise_agent},
        landing::{self, BranchConflict, LandedWork, LandingAttempt, LandingQuestion, RebaseAttempt},
    },
    loop_run::{
        event::LoopEvent,
        loop_host::{LoopHost, WORKSPACE_NAME},
        order::{LoopOrder, LoopTopic},
        state::{LoopStage, LoopState},
    },
    runs::{kinds::WorkflowTopic, run_kind::RunKind, types::DecisionTopic},
    stages::exit::{StageExit, Staged},
};
use tribunal_engine::{
    fault::Fault,
    host::ParkedRun,
    ids::{CommitId, Key},
    reason::{RunEnding, RunReason},
    text::format_count,
};

pub(super) fn checkpoint_message(order: &LoopOrder, iteration: u32) -> String {
    format!("{}: up to iteration {iteration}\n", subject_start(order))
}

fn result_message(order: &LoopOrder, iteration: u32) -> String {
    format!("{}: done after {}\n", subject_start(order), format_count(iteration, "iteration"))
}

/// Begins the subject of a commit. A task may end like a sentence; the subject goes on.
fn subject_start(order: &LoopOrder) -> String {
    format!("Loop over {}", order.title().trim_end_matches(['.', ':', '!', '?']))
}

/// Commits the content of the workspace without the user's hooks. Returns the fault if that failed.
pub(super) async fn commit_checkpoint(
    host: LoopHost<'_>,
    state: &mut LoopState,
    commit_key: &Key,
    message: String,
) -> Result<Option<Fault>, ParkedRun> {
    let commit_work = CommitWork {
        workspace: String::from(WORKSPACE_NAME),
        message,
        run_hooks: false,
        squash: false,
        keeps_ref: false,
    };
    match host.perform(commit_key.clone(), commit_work).await? {
        CommitOutcome::Committed(committed) => {
            note_commit(host, state, committed.commit);
            Ok(None)
        }
        CommitOutcome::Unchanged { .. } | CommitOutcome::Refused(_) => Ok(None),
        CommitOutcome::Failed { fault } => Ok(Some(fault)),
    }
}

fn note_commit(host: LoopHost<'_>, state: &mut LoopState, commit: CommitId) {
    if let Some(work) = &mut state.work {
        work.tip = commit.clone();
        work.committed_content.clone_from(&work.content);
    }
    let event = LoopEvent::LoopCommitted { iteration: state.iteration, commit };
    host.note_own_event(event);
}

/// Commits the result with the user's hooks, moves the branch to it and ends the run. What stands in the way is told to the
/// next iteration, or to the user.
pub(super) async fn land_work(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Staged<()> {
    state.landing.attempts += 1;
    let is_checked =
        state.work.as_ref().is_some_and(|work| work.content.is_some() && work.content == work.checked_content);
    // The user may have accepted work that no check has seen.
    if !is_checked {
        check_again(host, state, &stage_key.child_key("accepted")).await?;
    }
    let commit_work = CommitWork {
        workspace: String::from(WORKSPACE_NAME),
        message: match state.landing.accepted {
            true => checkpoint_message(host.order, state.iteration),
            false => result_message(host.order, state.iteration),
        },
        run_hooks: true,
        squash: false,
        keeps_ref: false,
    };
    match host.perform(stage_key.child_key("commit"), commit_work).await? {
        CommitOutcome::Committed(committed) => {
            note_commit(host, state, committed.commit);
            if !committed.rewritten.is_empty() {
                check_again(host, state, &stage_key.child_key("rewritten")).await?;
            }
        }
        CommitOutcome::Unchanged { .. } => {}
        CommitOutcome::Refused(result) => {
            state.feedback.refused = format!("the commit hook `{}` {}", result.command, result.status);
            state.feedback.failed_checks = alloc::vec![result];
            return Err(continue_loop(host, state));
        }
        CommitOutcome::Failed { fault } => return Err(StageExit::from_fault(&fault)),
    }
    integrate_work(host, state, stage_key).await
}

/// Goes back to the iterations because the result is not good enough.
fn continue_loop(host: LoopHost<'_>, state: &mut LoopState) -> StageExit {
    let why = state.feedback.refused.clone();
    if state.landing.accepted {
        // The user took the work as it was; the agent has promised nothing that could be refused.
        host.note_warning(format!("the work cannot land: {why}"));
        state.feedback.refused.clear();
    } else {
        host.note_own_event(LoopEvent::PromiseRefused { iteration: state.iteration, why });
    }
    state.stage = LoopStage::Iterate;
    state.landing.accepted = false;
    StageExit::Next
}

/// Runs all checks on a content that differs from what they passed on. The loop goes on if one fails.
async fn check_again(host: LoopHost<'_>, state: &mut LoopState, checks_key: &Key) -> Staged<()> {
    let checks = host.settings().checks.clone();
    if checks.is_empty() {
        return Ok(());
    }
    let report = host.run_checks(checks_key.child_key("checks"), checks).await?;
    state.feedback.failed_checks = report.counting_failures().cloned().collect();
    if let Some(failure) = report.counting_failures().next() {
        state.feedback.refused = format!("`{}` {} on what is to land", failure.command, failure.status);
        return Err(continue_loop(host, state));
    }
    Ok(())
}

async fn integrate_work(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Staged<()> {
    for attempt in 1..=landing::MAX_REBASES {
        let attempt_key = stage_key.numbered_child("try", attempt);
        let Some(work) = state.work.clone() else { break };
        let is_accepted = state.landing.accepted_scripts.as_ref() == Some(&work.tip);
        let integrate = Integrate {
            workspace: String::from(WORKSPACE_NAME),
            branch: host.order.branch.clone(),
            expected: work.base.clone(),
            commit: work.tip.clone(),
            unchanged_checks: landing::list_guarded_checks(host.settings(), is_accepted),
            gate: LandingGate {
                naming_files: host.order.completion.plan_file.iter().cloned().collect(),
                naming_text: host.order.prompt.clone(),
                accepted: state.landing.concerns.accepted.clone(),
                ..LandingGate::default()
            },
            mergeable: Vec::new(),
            only_looks: false,
        };
        match landing::move_branch(host.run_host(), attempt_key.child_key("integrate"), integrate).await? {
            LandingAttempt::Landed(landed) => {
                let remark = landing::describe_waiting(&landed);
                let LandedWork { branch, checkout_moved, in_the_way } = landed;
                host.note_own_event(LoopEvent::LoopLanded {
                    commit: work.tip,
                    branch,
                    checkout_moved,
                    in_the_way,
                    concerns: state.landing.concerns.accepted.clone(),
                });
                return finish_loop(host, state, stage_key, remark).await;
            }
            LandingAttempt::Moved(tip) => {
                rebase_work(host, state, &attempt_key, tip).await?;
            }
            LandingAttempt::ChecksChanged(scripts) => {
                let about = LoopTopic::LoopChecksChanged { scripts: scripts.clone() };
                let question = landing_question(about, is_about_scripts);
                let ask_key = attempt_key.child_key("ask");
                let dialog = &mut state.dialog;
                return Err(landing::ask_about_scripts(host.run_host(), dialog, ask_key, question, &scripts).await);
            }
            LandingAttempt::Questionable(concerns) if concerns.iter().all(LandingConcern::is_past) => {
                // The result has no secret any more; commits on the way to it must not land.
                squash_work(host, state, &attempt_key.child_key("squash")).await?;
            }
            LandingAttempt::Questionable(concerns) => {
                return question_work(host, state, &attempt_key, &concerns).await;
            }
            LandingAttempt::Failed(fault) => return Err(StageExit::from_fault(&fault)),
        }
    }
    Err(StageExit::halt_run(RunReason::Environment, landing::describe_moving_branch(&host.order.branch.name)))
}

/// Makes one commit of all.
async fn squash_work(host: LoopHost<'_>, state: &mut LoopState, commit_key: &Key) -> Staged<()> {
    let commit_work = CommitWork {
        workspace: String::from(WORKSPACE_NAME),
        message: result_message(host.order, state.iteration),
        run_hooks: false,
        squash: true,
        keeps_ref: false,
    };
    match host.perform(commit_key.clone(), commit_work).await? {
        CommitOutcome::Committed(committed) => note_commit(host, state, committed.commit),
        CommitOutcome::Unchanged { .. } | CommitOutcome::Refused(_) => {}
        CommitOutcome::Failed { fault } => return Err(StageExit::from_fault(&fault)),
    }
    Ok(())
}

/// Has the next iteration repair what it can, or asks the user.
async fn question_work(
    host: LoopHost<'_>,
    state: &mut LoopState,
    attempt_key: &Key,
    concerns: &[LandingConcern],
) -> Staged<()> {
    // Work that the user has accepted is not handed to an agent again.
    if !state.landing.accepted && state.landing.concerns.choose_step(concerns) == ConcernStep::TellAgent {
        state.feedback.refused = advise_agent(concerns);
        return Err(continue_loop(host, state));
    }
    let question = landing_question(LoopTopic::LoopQuestionable { concerns: concerns.to_vec() }, is_about_concerns);
    let ask_key = attempt_key.child_key("ask");
    Err(landing::ask_about_concerns(host.run_host(), &mut state.dialog, ask_key, question, concerns).await)
}

/// Rebases the work onto the branch and checks it again.
async fn rebase_work(host: LoopHost<'_>, state: &mut LoopState, attempt_key: &Key, onto: CommitId) -> Staged<()> {
    match landing::rebase_onto(host.run_host(), attempt_key.child_key("rebase"), WORKSPACE_NAME, &onto).await? {
        RebaseAttempt::Rebased(commit) => {
            if let Some(work) = &mut state.work {
                work.base = onto;
                work.tip = commit;
            }
            check_again(host, state, attempt_key).await
        }
        RebaseAttempt::Conflict(conflict) => {
            let about = LoopTopic::LoopConflict { paths: conflict.paths.clone() };
            let question = landing_question(about, is_conflict);
            let tip = state.work.as_ref().map_or(onto, |work| work.tip.clone());
            let branch_name = &host.order.branch.name;
            let conflict = BranchConflict { branch_name, commit: &tip, conflict: &conflict };
            let ask_key = attempt_key.child_key("ask");
            Err(landing::ask_about_conflict(host.run_host(), &mut state.dialog, ask_key, question, conflict).await)
        }
        RebaseAttempt::Failed(fault) => Err(StageExit::from_fault(&fault)),
    }
}

fn landing_question(about: LoopTopic, is_same: fn(&DecisionTopic) -> bool) -> LandingQuestion {
    LandingQuestion { run_word: "loop", about: WorkflowTopic::Loop(about), is_same }
}

pub(super) fn is_about_scripts(topic: &DecisionTopic) -> bool {
    matches!(topic, DecisionTopic::Workflow(WorkflowTopic::Loop(LoopTopic::LoopChecksChanged { .. })))
}

fn is_about_concerns(topic: &DecisionTopic) -> bool {
    matches!(topic, DecisionTopic::Workflow(WorkflowTopic::Loop(LoopTopic::LoopQuestionable { .. })))
}

pub(super) fn is_conflict(topic: &DecisionTopic) -> bool {
    matches!(topic, DecisionTopic::Workflow(WorkflowTopic::Loop(LoopTopic::LoopConflict { .. })))
}

/// Removes the workspace, tells the user and ends the run.
async fn finish_loop(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key, remark: Option<String>) -> Staged<()> {
    host.close_workspace(stage_key.child_key("close")).await?;
    let iterations = format_count(state.iteration, "iteration");
    let done_text = match state.landing.accepted {
        true => format!("you accepted the work after {iterations}"),
        false => format!("the task is done after {iterations}"),
    };
    let detail = match remark {
        Some(remark) => format!("{done_text}; {remark}"),
        None => done_text,
    };
    host.notify_user(stage_key.child_key("notify"), &detail).await?;
    Err(StageExit::Ended(RunEnding::new(RunReason::GoalMet, detail)))
}
