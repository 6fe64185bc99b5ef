//! One session of an agent, and what came of it. Whether the step is done, files, git and checks decide, not the agent.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::frozen_work::VerifiedWork,
    stages::exit::{StageExit, Staged},
    story::{
        event::{SessionOutcome, SessionReport, StoryEvent},
        facts::{StoryFacts, StoryFileFacts, StoryPlace, StoryStage, StoryWriting, WriteStory},
        order::{StoryGoal, StoryStepName},
        prompt,
        state::{CreatedStory, StoryState, StoryStep},
        story_host::{StoryHost, WORKSPACE_NAME},
        verification::{StoryMilestone, StoryProblem, StoryVerdict, find_replaced_file, verify_story},
    },
    tasks::{
        asking::{AgentConsultation, consult_agent},
        brief::{AgentTask, AnswerContent, WorkspaceKind},
        client::{JobKind, ModelSize},
        consult_outcome::ConsultOutcome,
        purpose::{ExpectedAnswer, TaskPurpose},
        selection,
    },
};
use tribunal_engine::{
    fault::{Fault, FaultKind},
    host::ParkedRun,
    ids::{AgentName, Key, TreeId},
    reason::RunReason,
    text::format_count,
};

/// Runs one session of the current step, verifies it, and decides what comes next.
pub(super) async fn run_session(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
    // What an earlier session wrote about the review does not count for it.
    if state.step == StoryStep::CodeReview && state.attempts.charged == 0 {
        reset_stage(host, stage_key.child_key("stage")).await?;
    }
    let is_by_hand = state.attempts.by_hand;
    let consulted = match is_by_hand {
        true => None,
        false => {
            state.landing.edits = 0;
            Some(ask_agent(host, state, stage_key).await?)
        }
    };
    if let Some(outcome) = &consulted {
        record_consultation(host, state, stage_key, outcome).await?;
    }
    state.attempts.total += 1;
    let fault = consulted.as_ref().and_then(|outcome| unanswered_fault(outcome));
    let tree = host.freeze_work(stage_key.child_key("freeze")).await?;
    let facts = host.read_story(state, stage_key.child_key("story"), Some(&tree)).await?;
    let mut verdict = verify_step(host, state, &facts);
    if verdict.problems.is_empty() {
        verdict.problems.extend(check_content(host, state, stage_key.child_key("checks"), &tree).await?);
    }
    note_verified(state, tree.clone(), &verdict);
    // Work that is finished counts, however its session ended.
    let outcome = match fault {
        _ if verdict.problems.is_empty() => SessionOutcome::Completed,
        Some(fault) => outcome_of_fault(fault),
        None => SessionOutcome::Incomplete,
    };
    let is_broken_environment =
        outcome != SessionOutcome::Completed && fault.is_some_and(|fault| fault.is_environment());
    let report = SessionReport {
        outcome,
        agent: state.attempts.last_agent.clone().filter(|_| consulted.is_some()),
        problems: verdict.problems.clone(),
        remarks: verdict.remarks.into_iter().chain(facts.remarks).collect(),
        fault: fault.map(|fault| fault.detail.clone()).unwrap_or_default(),
        changed_files: state.work.as_ref().map_or(0, |work| work.changed_files),
        claim: consulted.as_ref().map(find_claim).unwrap_or_default(),
    };
    let step = state.step.step_name();
    host.note_own_event(StoryEvent::StorySession { session: state.attempts.total, step, report });
    if outcome == SessionOutcome::Completed {
        keep_created_story(state, tree, facts.file.as_ref());
        finish_step(host, state, step);
        return Ok(());
    }
    state.attempts.problems = verdict.problems;
    if is_by_hand {
        state.attempts.by_hand = false;
        return Err(halt_unfinished(state));
    }
    if let (true, Some(fault)) = (is_broken_environment, fault) {
        // What the environment breaks is charged to no step.
        return Err(StageExit::from_fault(fault));
    }
    if let Some(fault) = fault.filter(|fault| fault.instant)
        && state.attempts.note_instant_failure(&fault.detail)
    {
        state.attempts.failed_at_once.clear();
        let detail = format!("{} (failed twice, each time immediately)", fault.detail);
        return Err(StageExit::halt_run(RunReason::Environment, detail));
    }
    state.attempts.charged += u32::from(outcome.is_charged());
    match state.attempts.charged >= allowed_sessions(host, state) {
        true => Err(halt_stuck(state, fault)),
        false => Ok(()),
    }
}

/// Remembers what a story names that this run has written: what later sessions make of the file does not count.
fn keep_created_story(state: &mut StoryState, tree: TreeId, file: Option<&StoryFileFacts>) {
    if state.step == StoryStep::Create {
        state.landing.created =
            file.map(|file| CreatedStory { tree, naming_text: file.naming_lines.join("\n"), owed: file.owed.clone() });
    }
}

/// Records what the session of an agent has used, and asks about what it changed elsewhere.
async fn record_consultation(
    host: StoryHost<'_>,
    state: &mut StoryState,
    stage_key: &Key,
    outcome: &ConsultOutcome,
) -> Result<(), ParkedRun> {
    let is_answered = outcome.last_content().is_some();
    outcome.record_result(host.run_host(), &mut state.spent, is_answered);
    state.dialog.ask_about_strays(host.run_host(), stage_key, &outcome.strayed).await?;
    state.attempts.last_agent = outcome.last_agent().cloned();
    outcome.list_remarks().into_iter().for_each(|remark| host.note_warning(remark));
    Ok(())
}

/// Has the board and the story's file say that the story waits for its review.
async fn reset_stage(host: StoryHost<'_>, write_key: Key) -> Staged<()> {
    let write = WriteStory {
        place: StoryPlace::Workspace { workspace: String::from(WORKSPACE_NAME) },
        story: host.order.story.clone(),
        stage: StoryStage::Review,
        confirmed: Vec::new(),
        follow_ups: Vec::new(),
        take_over_from: None,
        tree: None,
    };
    match host.perform(write_key, write).await? {
        StoryWriting::Written { .. } => Ok(()),
        StoryWriting::Failed { fault } => Err(StageExit::from_fault(&fault)),
    }
}

/// How many sessions the current step may have, with what the user granted.
pub(super) fn allowed_sessions(host: StoryHost<'_>, state: &StoryState) -> u32 {
    host.order.pacing.max_cycles.max(1).saturating_mul(state.attempts.grants + 1)
}

/// Halts a story whose step has failed as often as it may. What ended the last session early is the likely cause.
fn halt_stuck(state: &StoryState, last_fault: Option<&Fault>) -> StageExit {
    let step = state.step.step_name();
    let sessions_text = format_count(state.attempts.charged, "session");
    let first_problem = state.attempts.problems.first().map(StoryProblem::describe);
    let mut detail = match first_problem {
        Some(problem) => format!("{sessions_text} did not complete the step `{step}`: {problem}"),
        None => format!("{sessions_text} did not complete the step `{step}`"),
    };
    if let Some(fault) = last_fault {
        detail.push_str(&format!("; the last session failed: {}", fault.detail));
    }
    StageExit::halt_run(RunReason::Blocked, detail)
}

/// Halts a story whose step is not complete after the user worked on it. All reasons are named: no agent is told about them.
fn halt_unfinished(state: &StoryState) -> StageExit {
    let step = state.step.step_name();
    let problems: Vec<String> = state.attempts.problems.iter().map(StoryProblem::describe).collect();
    let detail = format!("your work does not complete the step `{step}` yet: {}", problems.join("; "));
    StageExit::halt_run(RunReason::Blocked, detail)
}

async fn ask_agent(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Result<ConsultOutcome, ParkedRun> {
    let settings = host.settings();
    let job = match state.step {
        StoryStep::Create => JobKind::CreateStory,
        _ => JobKind::Develop,
    };
    let agent = choose_agent(host, state, job);
    let purpose = TaskPurpose { job, expects: ExpectedAnswer::Turn };
    let place = WorkspaceKind::Development { workspace: String::from(WORKSPACE_NAME) };
    let brief = match &state.work {
        Some(work) => prompt::build_brief(host.order, settings, state, work),
        None => Default::default(),
    };
    let mut task = AgentTask::new(agent, purpose, brief, place, host.order.pacing.timeout_ms);
    task.size = host.order.size;
    // A story that failed once is worth a larger model.
    if state.attempts.charged > 0 {
        task.size = task.size.map(next_size);
    }
    let task_key = stage_key.child_key("session");
    let consultation = AgentConsultation {
        task_key: &task_key,
        task,
        run_usage: &state.spent,
        parallel_tasks: 1,
        escalated_size: None,
        is_single_try: true,
    };
    // Any answer is accepted: what it is worth shows in the workspace.
    consult_agent(host.run_host(), consultation, |_| None).await
}

fn next_size(size: ModelSize) -> ModelSize {
    match size {
        ModelSize::Small => ModelSize::Medium,
        ModelSize::Medium | ModelSize::Large => ModelSize::Large,
    }
}

/// Chooses the agent of the next session: from the second one of a step on, another than the last.
fn choose_agent(host: StoryHost<'_>, state: &StoryState, job: JobKind) -> AgentName {
    let settings = host.settings();
    match &state.attempts.last_agent {
        Some(last_agent) if state.attempts.charged > 0 => {
            selection::other_agent(settings, job, last_agent, &state.spent.failing)
        }
        _ => {
            let first_agent = selection::agent_for_seat(settings, job, 0, 0);
            selection::stand_in(settings, job, &first_agent, &state.spent.failing)
        }
    }
}

/// Returns the fault of a session that gave no answer.
fn unanswered_fault(outcome: &ConsultOutcome) -> Option<&Fault> {
    outcome.fault.as_ref().filter(|_| outcome.last_content().is_none())
}

fn outcome_of_fault(fault: &Fault) -> SessionOutcome {
    match fault.kind {
        FaultKind::TimedOut => SessionOutcome::TimedOut,
        FaultKind::Silent => SessionOutcome::Stuck,
        FaultKind::NeverActive => SessionOutcome::NeverActive,
        _ => SessionOutcome::Crashed,
    }
}

fn find_claim(outcome: &ConsultOutcome) -> String {
    match outcome.last_content() {
        Some(AnswerContent::Turn(report)) => prompt::summarize_line(&report.text),
        _ => String::new(),
    }
}

/// Applies the rules of the current step.
pub(super) fn verify_step(host: StoryHost<'_>, state: &StoryState, facts: &StoryFacts) -> StoryVerdict {
    let board_before = state.work.as_ref().and_then(|work| work.board_stage);
    let milestone = match state.step {
        StoryStep::Create => StoryMilestone::Written,
        _ => StoryMilestone::Developed,
    };
    let mut verdict = verify_story(&host.order.story, facts, milestone, board_before, host.order.rules);
    let story_file = state.work.as_ref().and_then(|work| work.story_file.as_deref());
    verdict.problems.extend(find_replaced_file(story_file, facts));
    // BMAD's own review is done when the board or the story's file says so.
    if state.step == StoryStep::CodeReview && verdict.problems.is_empty() {
        let file_status = facts.file.as_ref().and_then(|file| file.status.as_ref());
        let is_done =
            [facts.board.as_ref(), file_status].into_iter().flatten().any(|fact| fact.stage == Some(StoryStage::Done));
        if !is_done {
            let status = file_status.map(|fact| fact.word.clone()).unwrap_or_default();
            verdict.problems.push(StoryProblem::StatusBehind { status, expected: StoryStage::Done });
        }
    }
    verdict
}

/// Remembers what has passed the rules and all checks.
pub(super) fn note_verified(state: &mut StoryState, tree: TreeId, verdict: &StoryVerdict) {
    if let Some(work) = &mut state.work {
        let in_fresh_clone = work.proof.fresh_tree.as_ref() == Some(&tree);
        work.proof.verified = verdict.problems.is_empty().then(|| VerifiedWork::new(tree, in_fresh_clone));
    }
}

/// Runs all checks on the frozen content. Returns the failures that count.
pub(super) async fn check_content(
    host: StoryHost<'_>,
    state: &mut StoryState,
    checks_key: Key,
    tree: &TreeId,
) -> Staged<Vec<StoryProblem>> {
    state.attempts.failed_checks.clear();
    let checks = host.settings().checks.clone();
    let is_checked = state.work.as_ref().is_some_and(|work| work.proof.checked_tree.as_ref() == Some(tree));
    // A story file alone breaks no check.
    if checks.is_empty() || is_checked || state.step == StoryStep::Create {
        return Ok(Vec::new());
    }
    let report = host.run_checks(checks_key, checks, tree).await?;
    for result in report.list_warnings() {
        host.note_warning(result.describe());
    }
    state.attempts.failed_checks = report.counting_failures().cloned().collect();
    if let (true, Some(work)) = (state.attempts.failed_checks.is_empty(), &mut state.work) {
        work.proof.checked_tree = Some(tree.clone());
        if report.stands_alone {
            work.proof.fresh_tree = Some(tree.clone());
        }
    }
    let failures = state.attempts.failed_checks.iter();
    Ok(failures.map(|result| StoryProblem::CheckFailed { detail: result.describe() }).collect())
}

/// Ends the current step.
pub(super) fn finish_step(host: StoryHost<'_>, state: &mut StoryState, step: StoryStepName) {
    host.note_own_event(StoryEvent::StoryStepDone { step });
    state.attempts.begin_step();
    let mode = host.order.review.mode;
    let is_reviewed = host.order.goal == StoryGoal::Done;
    state.step = match state.step {
        StoryStep::Create => StoryStep::Develop,
        StoryStep::Develop if is_reviewed && mode.has_bmad_review() && host.order.steps.code_review.is_some() => {
            StoryStep::CodeReview
        }
        StoryStep::Develop | StoryStep::CodeReview if is_reviewed && mode.has_panel() => StoryStep::Review,
        _ => StoryStep::Land,
    };
}
