//! Commits of a loop, and how they get onto the branch.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        checks::CheckResult,
        commits::{CommitOutcome, CommitWork, Integrate},
        concerns::{ConcernLog, LandingGate},
        frozen_work::VerifiedWork,
        land_work::{self, BranchMove, LandingOrder, LandingTopic, Refusal},
        landing::{self, LandedWork},
    },
    loop_run::{
        event::LoopEvent,
        loop_host::{LoopHost, WORKSPACE_NAME},
        order::{LoopOrder, LoopTopic},
        review_pass,
        state::{LoopStage, LoopState},
    },
    runs::{
        kinds::WorkflowTopic,
        run_kind::RunKind,
        types::{DecisionTopic, find_topic},
    },
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
        tree: None,
    };
    match host.perform(commit_key.clone(), commit_work).await? {
        CommitOutcome::Committed { commit } => {
            take_commit(host, state, commit);
            Ok(None)
        }
        // Only hooks refuse or rewrite, and none ran.
        CommitOutcome::Unchanged { .. }
        | CommitOutcome::Refused(_)
        | CommitOutcome::Rewritten { .. }
        | CommitOutcome::Edited { .. } => Ok(None),
        CommitOutcome::Failed { fault } => Ok(Some(fault)),
    }
}

fn take_commit(host: LoopHost<'_>, state: &mut LoopState, commit: CommitId) {
    LoopOrder::set_tip(state, commit.clone());
    LoopOrder::note_commit(host, state, &commit);
}

/// Commits the result with the user's hooks, moves the branch to it and ends the run. What stands in the way is told to the
/// next iteration, or to the user.
pub(super) async fn land_work(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Staged<()> {
    state.landing.attempts += 1;
    let is_checked =
        state.work.as_ref().is_some_and(|work| work.content.is_some() && work.content == work.checked_content);
    let has_passed = is_checked && state.work.as_ref().is_some_and(|work| work.verified.is_some());
    // The user may have accepted work that no check has seen.
    if !has_passed {
        land_work::check_again(host, state, &stage_key.child_key("accepted")).await?;
    }
    commit_result(host, state, stage_key).await?;
    integrate_work(host, state, stage_key).await
}

async fn commit_result(host: LoopHost<'_>, state: &mut LoopState, stage_key: &Key) -> Staged<()> {
    let commit_work = CommitWork {
        workspace: String::from(WORKSPACE_NAME),
        message: match state.landing.accepted {
            true => checkpoint_message(host.order, state.iteration),
            false => result_message(host.order, state.iteration),
        },
        run_hooks: true,
        squash: false,
        keeps_ref: false,
        tree: None,
    };
    land_work::commit_result(host, state, stage_key, commit_work).await
}

impl LandingOrder for LoopOrder {
    const RUN_WORD: &'static str = "loop";
    const LANDS_ONE_COMMIT: bool = false;

    fn branch_name(&self) -> &str {
        &self.branch.name
    }

    fn make_topic(topic: LandingTopic) -> WorkflowTopic {
        WorkflowTopic::Loop(match topic {
            LandingTopic::Conflict { paths } => LoopTopic::LoopConflict { paths },
            LandingTopic::ChecksChanged { scripts } => LoopTopic::LoopChecksChanged { scripts },
            LandingTopic::Questionable { concerns } => LoopTopic::LoopQuestionable { concerns },
        })
    }

    fn find_landing_topic(topic: &DecisionTopic) -> Option<LandingTopic> {
        match find_topic::<LoopTopic>(topic)?.clone() {
            LoopTopic::LoopHalted => None,
            LoopTopic::LoopConflict { paths } => Some(LandingTopic::Conflict { paths }),
            LoopTopic::LoopChecksChanged { scripts } => Some(LandingTopic::ChecksChanged { scripts }),
            LoopTopic::LoopQuestionable { concerns } => Some(LandingTopic::Questionable { concerns }),
        }
    }

    fn concern_log(state: &mut LoopState) -> &mut ConcernLog {
        &mut state.landing.concerns
    }

    fn find_kept(state: &LoopState) -> Option<&CommitId> {
        state.work.as_ref().filter(|work| work.tip != work.base).map(|work| &work.tip)
    }

    fn set_tip(state: &mut LoopState, tip: CommitId) {
        if let Some(work) = &mut state.work {
            work.tip = tip;
            work.committed_content.clone_from(&work.content);
        }
    }

    fn note_commit(host: LoopHost<'_>, state: &LoopState, commit: &CommitId) {
        host.note_own_event(LoopEvent::LoopCommitted { iteration: state.iteration, commit: commit.clone() });
    }

    fn find_verified(state: &LoopState) -> Option<&VerifiedWork> {
        state.work.as_ref()?.verified.as_ref()
    }

    fn set_verified(state: &mut LoopState, verified: Option<VerifiedWork>) {
        if let Some(work) = &mut state.work {
            work.verified = verified;
        }
    }

    fn failed_checks(state: &mut LoopState) -> &mut Vec<CheckResult> {
        &mut state.feedback.failed_checks
    }

    fn may_send_back(_host: LoopHost<'_>, state: &LoopState) -> bool {
        // Work that the user has accepted is not handed to an agent again.
        !state.landing.accepted
    }

    fn send_back(host: LoopHost<'_>, state: &mut LoopState, refusal: Refusal) -> StageExit {
        let why = match refusal {
            Refusal::CheckFailed(CheckResult { command, status, .. }) => {
                format!("`{command}` {status} on what is to land")
            }
            Refusal::FailedInClone(failure) => failure.describe(),
            Refusal::HookRefused(CheckResult { command, status, .. }) => {
                format!("the commit hook `{command}` {status}")
            }
            Refusal::Questionable { advice } => advice,
        };
        if state.landing.accepted {
            // The user took the work as it was; the agent has promised nothing that could be refused.
            host.note_warning(format!("the work cannot land: {why}"));
            state.feedback.refused.clear();
            continue_loop(state);
        } else {
            host.note_own_event(LoopEvent::PromiseRefused { iteration: state.iteration, why: why.clone() });
            Self::take_back(state, why);
        }
        StageExit::Next
    }

    fn take_back(state: &mut LoopState, wish: String) {
        state.feedback.refused = wish;
        continue_loop(state);
    }

    fn accept_scripts(state: &mut LoopState) {
        state.landing.accepted_scripts = state.work.as_ref().map(|work| work.tip.clone());
    }
}

/// Goes back to the iterations because the result is not good enough.
fn continue_loop(state: &mut LoopState) {
    state.stage = LoopStage::Iterate;
    state.landing.accepted = false;
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
            verified: work.verified.clone(),
            gate: LandingGate {
                naming_files: host.order.completion.plan_file.iter().cloned().collect(),
                naming_text: host.order.prompt.clone(),
                accepted: state.landing.concerns.accepted.clone(),
                ..LandingGate::default()
            },
            mergeable: Vec::new(),
            only_looks: false,
        };
        match land_work::move_branch(host, state, &attempt_key, integrate).await? {
            BranchMove::Landed(landed) => {
                if let Some(unreviewed) = review_pass::describe_unreviewed(host.order, state) {
                    host.note_warning(unreviewed);
                }
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
            BranchMove::Outdated(onto) => {
                let tip = land_work::rebase_work(host, state, &attempt_key, &onto).await?;
                if let Some(work) = &mut state.work {
                    (work.base, work.tip) = (onto, tip);
                }
                land_work::check_again(host, state, &attempt_key).await?;
                // The user may have edited the checkout since the rebase. Without that there is nothing to commit.
                commit_result(host, state, &attempt_key).await?;
            }
            // The result has no secret any more; commits on the way to it must not land.
            BranchMove::PastQuestionable => squash_work(host, state, &attempt_key.child_key("squash")).await?,
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
        tree: state.work.as_ref().and_then(|work| work.verified.as_ref()).map(|verified| verified.tree.clone()),
    };
    match host.perform(commit_key.clone(), commit_work).await? {
        CommitOutcome::Committed { commit } => take_commit(host, state, commit),
        CommitOutcome::Unchanged { .. }
        | CommitOutcome::Refused(_)
        | CommitOutcome::Rewritten { .. }
        | CommitOutcome::Edited { .. } => {}
        CommitOutcome::Failed { fault } => return Err(StageExit::from_fault(&fault)),
    }
    Ok(())
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
