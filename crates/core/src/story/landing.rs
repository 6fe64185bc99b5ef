//! The commit of a story, and how it gets onto the branch.

use alloc::{format, string::String, vec::Vec};

use crate::{
    decisions::decision::{ChoiceKey, Decision, DecisionTopic, build_choices},
    development::{
        check_scripts::{ChangedScript, describe_changed_scripts},
        commits::{CommitOutcome, CommitWork, Integrate, IntegrateOutcome, RebaseOutcome, RebaseWork},
        workspace::{CloseOutcome, CloseWorkspace},
    },
    engine::{
        host::ParkedRun,
        ids::{CommitId, Key},
        kinds::WorkflowTopic,
        reason::{RunEnding, RunReason},
    },
    story::{
        event::StoryEvent,
        facts::{StoryPlace, StoryWriting, WriteStory},
        order::{StoryOrder, StoryStepName, StoryTopic},
        review_cycle, sessions,
        state::{StoryState, StoryStep, StoryWork},
        story_host::{StageEnd, StoryHost, WORKSPACE_NAME, environment_ending},
        verification::StoryProblem,
    },
    tasks::fault::Fault,
};

/// How often the work is rebased onto a branch that keeps moving before the user is asked.
const MAX_REBASES: u32 = 5;

/// Writes the story's files, commits everything as one commit with the user's hooks, and moves the branch to it.
pub(super) async fn land_work(
    host: StoryHost<'_>,
    state: &mut StoryState,
    stage_key: &Key,
) -> Result<StageEnd, ParkedRun> {
    state.landing.attempts += 1;
    let write = WriteStory {
        place: StoryPlace::Workspace { workspace: String::from(WORKSPACE_NAME) },
        story: host.order.story.clone(),
        stage: host.order.goal.final_stage(),
        follow_ups: review_cycle::list_follow_ups(state),
        take_over_from: None,
    };
    match host.host.perform(stage_key.child_key("files"), write).await? {
        StoryWriting::Written { remarks, .. } => remarks.into_iter().for_each(|remark| host.note_warning(remark)),
        StoryWriting::Failed { fault } => return Ok(StageEnd::Halted(environment_ending(&fault))),
    }
    // From now on the board in the workspace says what we wrote, also if a session has to follow.
    if let Some(work) = &mut state.work {
        work.board_stage = None;
    }
    let commit_work = CommitWork {
        workspace: String::from(WORKSPACE_NAME),
        message: render_message(host.order, state.work.as_ref()),
        run_hooks: true,
        squash: true,
    };
    match host.host.perform(stage_key.child_key("commit"), commit_work).await? {
        CommitOutcome::Committed(committed) => {
            set_tip(state, committed.commit);
            if !committed.rewritten.is_empty()
                && let Some(stage_end) = check_again(host, state, &stage_key.child_key("rewritten")).await?
            {
                return Ok(stage_end);
            }
        }
        CommitOutcome::Unchanged { tip } => set_tip(state, tip),
        CommitOutcome::Refused(result) => {
            let problem = StoryProblem::HookRefused { detail: result.describe() };
            state.tries.failed_checks = alloc::vec![result];
            return Ok(go_back(state, problem));
        }
        CommitOutcome::Failed { fault } => return Ok(StageEnd::Halted(environment_ending(&fault))),
    }
    integrate_work(host, state, stage_key).await
}

/// Fills the template of the message.
fn render_message(order: &StoryOrder, work: Option<&StoryWork>) -> String {
    let story_file = work.and_then(|work| work.story_file.as_deref()).unwrap_or_default();
    let title = if order.story.title.is_empty() { order.story.key.as_str() } else { order.story.title.as_str() };
    let message =
        order.message.replace("{key}", &order.story.key).replace("{title}", title).replace("{file}", story_file);
    format!("{}\n", message.trim_end())
}

fn set_tip(state: &mut StoryState, tip: CommitId) {
    if let Some(work) = &mut state.work {
        work.tip = tip;
        work.committed_content.clone_from(&work.content);
    }
}

/// Has another session repair the work.
fn go_back(state: &mut StoryState, problem: StoryProblem) -> StageEnd {
    let failed_checks = core::mem::take(&mut state.tries.failed_checks);
    state.tries.begin_step();
    state.tries.problems = alloc::vec![problem];
    state.tries.failed_checks = failed_checks;
    state.step = StoryStep::Develop;
    StageEnd::Continue
}

/// Runs all checks on a content that differs from what they passed on. Returns how the stage ends if one fails.
async fn check_again(
    host: StoryHost<'_>,
    state: &mut StoryState,
    checks_key: &Key,
) -> Result<Option<StageEnd>, ParkedRun> {
    if let Some(work) = &mut state.work {
        work.checked_content = None;
    }
    Ok(match sessions::check_content(host, state, checks_key.child_key("checks")).await? {
        Ok(problems) => problems.into_iter().next().map(|problem| go_back(state, problem)),
        Err(ending) => Some(StageEnd::Halted(ending)),
    })
}

async fn integrate_work(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Result<StageEnd, ParkedRun> {
    for attempt in 1..=MAX_REBASES {
        let attempt_key = stage_key.numbered_child("try", attempt);
        let Some(work) = state.work.clone() else { break };
        let accepts_scripts = work.content.is_some() && state.landing.accepted_content == work.content;
        let integrate = Integrate {
            workspace: String::from(WORKSPACE_NAME),
            branch: host.order.branch.clone(),
            expected: work.base.clone(),
            commit: work.tip.clone(),
            unchanged_checks: match accepts_scripts {
                true => Vec::new(),
                false => host.host.settings().checks.iter().map(|check| check.command.clone()).collect(),
            },
        };
        let (branch, checkout_moved, in_the_way) =
            match host.host.perform(attempt_key.child_key("integrate"), integrate).await? {
                IntegrateOutcome::Integrated { checkout_moved } => {
                    (host.order.branch.name.clone(), checkout_moved, Vec::new())
                }
                IntegrateOutcome::Waits { branch, paths } => (branch, false, paths),
                IntegrateOutcome::Moved { tip } => match rebase_work(host, state, &attempt_key, tip).await? {
                    Some(stage_end) => return Ok(stage_end),
                    None => continue,
                },
                IntegrateOutcome::ChecksChanged { scripts } => {
                    return ask_about_scripts(host, state, &attempt_key, scripts).await;
                }
                IntegrateOutcome::Failed { fault } => return Ok(StageEnd::Halted(environment_ending(&fault))),
            };
        host.note_event(StoryEvent::StoryLanded {
            commit: work.tip.clone(),
            branch: branch.clone(),
            checkout_moved,
            in_the_way: in_the_way.clone(),
            changed_controls: work.changed_controls.clone(),
        });
        return finish_story(host, state, stage_key, &branch, &in_the_way).await;
    }
    let detail = format!("{} moved {MAX_REBASES} times while the work was about to land", host.order.branch.name);
    Ok(StageEnd::Halted(RunEnding::new(RunReason::Environment, detail)))
}

/// Rebases the work onto the branch and checks it again. Returns how the stage ends if it cannot land now.
async fn rebase_work(
    host: StoryHost<'_>,
    state: &mut StoryState,
    attempt_key: &Key,
    onto: CommitId,
) -> Result<Option<StageEnd>, ParkedRun> {
    let rebase = RebaseWork { workspace: String::from(WORKSPACE_NAME), onto: onto.clone() };
    match host.host.perform(attempt_key.child_key("rebase"), rebase).await? {
        RebaseOutcome::Rebased { commit } => {
            if let Some(work) = &mut state.work {
                work.base = onto;
                work.tip = commit;
            }
            check_again(host, state, attempt_key).await
        }
        RebaseOutcome::Conflict { paths } => {
            let question = format!(
                "{} has moved, and the story conflicts with it in {}",
                host.order.branch.name,
                paths.join(", ")
            );
            if !state.dialog.open_decisions().any(|decision| is_conflict(&decision.about)) {
                let decision = Decision {
                    id: state.dialog.next_decision_id(),
                    about: DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryConflict { paths })),
                    owner: String::from("the user of this repository"),
                    question: question.clone(),
                    choices: build_choices(&[
                        (ChoiceKey::Retry, "try to rebase once more (after you changed the branch)"),
                        (ChoiceKey::Keep, "end the story; its commit stays under refs/tribunal/work"),
                    ]),
                    answer: None,
                };
                state.dialog.post_decision(host.host, &attempt_key.child_key("ask"), decision).await?;
            }
            Ok(Some(StageEnd::Halted(RunEnding::new(RunReason::Blocked, question))))
        }
        RebaseOutcome::Failed { fault } => Ok(Some(StageEnd::Halted(environment_ending(&fault)))),
    }
}

/// Asks whether work may land that changes what a check runs.
async fn ask_about_scripts(
    host: StoryHost<'_>,
    state: &mut StoryState,
    attempt_key: &Key,
    scripts: Vec<ChangedScript>,
) -> Result<StageEnd, ParkedRun> {
    let question = format!("the story changes {}", describe_changed_scripts(&scripts));
    if !state.dialog.open_decisions().any(|decision| is_about_scripts(&decision.about)) {
        let decision = Decision {
            id: state.dialog.next_decision_id(),
            about: DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryChecksChanged { scripts })),
            owner: String::from("the user of this repository"),
            question: question.clone(),
            choices: build_choices(&[
                (ChoiceKey::Approve, "the change is right: land the story"),
                (ChoiceKey::Reject, "another session is told to undo that change"),
                (ChoiceKey::Keep, "end the story; its commit stays under refs/tribunal/work"),
            ]),
            answer: None,
        };
        state.dialog.post_decision(host.host, &attempt_key.child_key("ask"), decision).await?;
    }
    Ok(StageEnd::Halted(RunEnding::new(RunReason::Blocked, question)))
}

pub(super) fn is_about_scripts(topic: &DecisionTopic) -> bool {
    matches!(topic, DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryChecksChanged { .. })))
}

pub(super) fn is_conflict(topic: &DecisionTopic) -> bool {
    matches!(topic, DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryConflict { .. })))
}

/// Writes what git ignores into the checkout, removes the workspace, tells the user and ends the run.
async fn finish_story(
    host: StoryHost<'_>,
    state: &mut StoryState,
    stage_key: &Key,
    branch: &str,
    in_the_way: &[String],
) -> Result<StageEnd, ParkedRun> {
    let files = &host.order.files;
    let stage = host.order.goal.final_stage();
    if files.board_is_ignored || files.stories_are_ignored {
        let write = WriteStory {
            place: StoryPlace::Checkout,
            story: host.order.story.clone(),
            stage,
            follow_ups: review_cycle::list_follow_ups(state),
            take_over_from: Some(String::from(WORKSPACE_NAME)),
        };
        match host.host.perform(stage_key.child_key("ignored"), write).await? {
            StoryWriting::Written { remarks, .. } => remarks.into_iter().for_each(|remark| host.note_warning(remark)),
            StoryWriting::Failed { fault } => return Ok(StageEnd::Halted(environment_ending(&fault))),
        }
    }
    host.note_event(StoryEvent::StoryMoved { stage });
    host.note_event(StoryEvent::StoryStepDone { step: StoryStepName::Land });
    let close = CloseWorkspace { workspace: String::from(WORKSPACE_NAME) };
    if let CloseOutcome::Failed { fault } = host.host.perform(stage_key.child_key("close"), close).await? {
        // The work is on the branch; `gc` removes what is left.
        host.note_warning(describe_leftover(&fault));
    }
    let commit = state.work.as_ref().map(|work| String::from(work.tip.short_hex())).unwrap_or_default();
    let mut detail = format!("the story is {stage}: commit {commit} on {branch}");
    if !in_the_way.is_empty() {
        detail.push_str(&format!(
            "; your uncommitted changes are in the way ({}): take it with `git merge {branch}`",
            in_the_way.join(", ")
        ));
    }
    host.notify_user(stage_key.child_key("notify"), &detail).await?;
    Ok(StageEnd::Ended(RunEnding::new(RunReason::GoalMet, detail)))
}

pub(super) fn describe_leftover(fault: &Fault) -> String {
    format!("could not remove the workspace: {}", fault.detail)
}
