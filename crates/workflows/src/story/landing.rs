//! The commit of a story, and how it gets onto the branch.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        checks::CheckResult,
        commits::{CommitOutcome, CommitWork, FoundSolution, Integrate, RebaseConflict},
        concerns::{ConcernLog, LandingGate},
        frozen_work::VerifiedWork,
        land_work::{self, BranchMove, LandingOrder, LandingTopic, Refusal},
        landing::{self, LandedWork, RebaseAttempt},
    },
    runs::{
        kinds::WorkflowTopic,
        types::{Decision, DecisionTopic, find_topic},
    },
    stages::exit::{StageExit, Staged},
    story::{
        event::StoryEvent,
        facts::{RestoreBoard, StoryPlace, StoryStage, StoryWriting, WriteStory},
        order::{StoryGoal, StoryOrder, StoryStepName, StoryTopic},
        sessions,
        state::{StoryState, StoryStep, StoryWork},
        story_host::{StoryHost, WORKSPACE_NAME},
        verification::StoryProblem,
    },
};
use tribunal_engine::{
    answer::ChoiceKey,
    decision::build_choices,
    ids::{CommitId, Key, TreeId},
    reason::{RunEnding, RunReason},
    text::{format_count, truncate_chars},
};

/// The most characters of a title in the message of a commit.
const MAX_TITLE_CHARS: usize = 120;

/// Writes the story's files, commits everything as one commit with the user's hooks, and moves the branch to it.
pub(super) async fn land_work(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
    // Only the answer of the user goes on from here.
    if let Some(commit) = state.landing.landed.clone().filter(|_| state.landing.is_owing()) {
        return ask_about_owed(host, state, stage_key, &commit).await;
    }
    state.landing.attempts += 1;
    if state.landing.may_be_merged {
        return integrate_work(host, state, stage_key).await;
    }
    let tree = require_verified(host, state, stage_key).await?;
    let write = WriteStory {
        place: StoryPlace::Workspace { workspace: String::from(WORKSPACE_NAME) },
        story: host.order.story.clone(),
        stage: landed_stage(host.order, state),
        confirmed: list_confirmed(state),
        follow_ups: state.review.follow_ups.clone(),
        take_over_from: None,
        tree: Some(tree),
    };
    match host.perform(stage_key.child_key("files"), write).await? {
        StoryWriting::Written { remarks, paths, tree } => {
            remarks.into_iter().for_each(|remark| host.note_warning(remark));
            let verified = state.work.as_mut().and_then(|work| work.proof.verified.as_mut());
            if let (Some(verified), Some(tree)) = (verified, tree) {
                verified.note_writing(tree, paths);
            }
        }
        StoryWriting::Failed { fault } => return Err(StageExit::from_fault(&fault)),
    }
    // From now on the board in the workspace says what we wrote, also if a session has to follow.
    if let Some(work) = &mut state.work {
        work.board_stage = None;
    }
    let commit_work = CommitWork {
        workspace: String::from(WORKSPACE_NAME),
        message: commit_message(host.order, state),
        run_hooks: true,
        squash: true,
        keeps_ref: false,
        tree: None,
    };
    land_work::commit_result(host, state, stage_key, commit_work).await?;
    integrate_work(host, state, stage_key).await
}

/// Returns the content that is to land. What did not pass the checks as it is now is checked first.
async fn require_verified(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<TreeId> {
    if StoryOrder::find_verified(state).is_none() {
        // What the user confirms after a story has landed changes no code.
        match &state.landing.landed {
            Some(commit) => {
                let tree = host.freeze_commit(stage_key.child_key("landed"), commit).await?;
                StoryOrder::set_verified(state, Some(VerifiedWork::new(tree, true)));
            }
            None => land_work::check_again(host, state, &stage_key.child_key("unchecked")).await?,
        }
    }
    match StoryOrder::find_verified(state) {
        Some(verified) => Ok(verified.current_tree().clone()),
        None => Err(StageExit::halt_run(RunReason::Environment, "there is no workspace to land from")),
    }
}

impl LandingOrder for StoryOrder {
    const RUN_WORD: &'static str = "story";
    const LANDS_ONE_COMMIT: bool = true;

    fn branch_name(&self) -> &str {
        &self.branch.name
    }

    fn make_topic(topic: LandingTopic) -> WorkflowTopic {
        WorkflowTopic::Story(match topic {
            LandingTopic::Conflict { paths } => StoryTopic::StoryConflict { paths },
            LandingTopic::ChecksChanged { scripts } => StoryTopic::StoryChecksChanged { scripts },
            LandingTopic::Questionable { concerns } => StoryTopic::StoryQuestionable { concerns },
        })
    }

    fn find_landing_topic(topic: &DecisionTopic) -> Option<LandingTopic> {
        match find_topic::<StoryTopic>(topic)?.clone() {
            StoryTopic::StoryConflict { paths } => Some(LandingTopic::Conflict { paths }),
            StoryTopic::StoryChecksChanged { scripts } => Some(LandingTopic::ChecksChanged { scripts }),
            StoryTopic::StoryQuestionable { concerns } => Some(LandingTopic::Questionable { concerns }),
            StoryTopic::StoryHalted | StoryTopic::StoryStuck { .. } | StoryTopic::StoryOwes { .. } => None,
        }
    }

    fn concern_log(state: &mut StoryState) -> &mut ConcernLog {
        &mut state.landing.concerns
    }

    fn find_kept(state: &StoryState) -> Option<&CommitId> {
        state.work.as_ref().filter(|work| work.tip != work.base).map(|work| &work.tip)
    }

    fn set_tip(state: &mut StoryState, tip: CommitId) {
        if let Some(work) = &mut state.work {
            work.tip = tip;
            work.committed_content.clone_from(&work.content);
        }
    }

    fn find_verified(state: &StoryState) -> Option<&VerifiedWork> {
        state.work.as_ref()?.proof.verified.as_ref()
    }

    fn set_verified(state: &mut StoryState, verified: Option<VerifiedWork>) {
        if let Some(work) = &mut state.work {
            work.proof.checked_tree = verified.as_ref().map(|verified| verified.tree.clone());
            work.proof.fresh_tree =
                verified.as_ref().filter(|verified| verified.in_fresh_clone).map(|verified| verified.tree.clone());
            work.proof.verified = verified;
        }
    }

    fn failed_checks(state: &mut StoryState) -> &mut Vec<CheckResult> {
        &mut state.attempts.failed_checks
    }

    fn may_send_back(host: StoryHost<'_>, state: &StoryState) -> bool {
        // The last session that would be allowed is not worth a question that cannot be approved.
        state.landing.refusals + 1 < host.order.pacing.max_cycles.max(1)
    }

    /// A story that is refused again and again waits for the user: every session costs something.
    fn send_back(host: StoryHost<'_>, state: &mut StoryState, refusal: Refusal) -> StageExit {
        let problem = match refusal {
            Refusal::CheckFailed(result) => StoryProblem::CheckFailed { detail: result.describe() },
            Refusal::FailedInClone(failure) => StoryProblem::CheckFailed { detail: failure.describe() },
            Refusal::HookRefused(result) => StoryProblem::HookRefused { detail: result.describe() },
            Refusal::Questionable { advice } => StoryProblem::Questionable { detail: advice },
        };
        let failed_checks = core::mem::take(&mut state.attempts.failed_checks);
        let detail = problem.describe();
        host.note_warning(detail.clone());
        state.landing.refusals += 1;
        let allowed = host.order.pacing.max_cycles.max(1);
        repair_work(state, problem);
        state.attempts.failed_checks = failed_checks;
        if state.landing.refusals < allowed {
            return StageExit::Next;
        }
        state.landing.refusals = 0;
        let times = format_count(allowed, "time");
        StageExit::halt_run(RunReason::Blocked, format!("finished work was refused {times}: {detail}"))
    }

    fn take_back(state: &mut StoryState, wish: String) {
        repair_work(state, StoryProblem::Questionable { detail: wish });
    }

    fn note_question(host: StoryHost<'_>, state: &mut StoryState) {
        if let Some(work) = &state.work {
            host.note_own_event(StoryEvent::StoryKept { commit: work.tip.clone() });
        }
    }

    fn note_conflict(state: &mut StoryState) {
        // The user may merge the work and resume with or without an answer.
        state.landing.may_be_merged = true;
    }

    fn accept_scripts(state: &mut StoryState) {
        state.landing.accepted_content = state.work.as_ref().and_then(|work| work.content.clone());
    }

    fn apply_conflict_answer(state: &mut StoryState, choice: ChoiceKey) {
        state.attempts.by_hand = false;
        // What the user has merged is verified like the work of a session: in the checkout now, and on the branch when it lands.
        if choice == ChoiceKey::Hand && state.has_parked_work() {
            state.attempts.begin_step();
            state.attempts.by_hand = true;
            state.attempts.has_unkept_edits = true;
            state.landing.may_be_merged = false;
            state.step = state.step.min(StoryStep::Develop);
        }
    }
}

/// Has another session repair the work.
fn repair_work(state: &mut StoryState, problem: StoryProblem) {
    state.attempts.begin_step();
    state.attempts.problems = Vec::from([problem]);
    state.step = StoryStep::Develop;
}

/// The stage that the board has once the work has landed. A story that owes something is not done.
fn landed_stage(order: &StoryOrder, state: &StoryState) -> StoryStage {
    match order.goal.final_stage() {
        StoryStage::Done if state.landing.is_owing() => StoryStage::Review,
        stage => stage,
    }
}

fn list_confirmed(state: &StoryState) -> Vec<String> {
    if state.landing.is_confirmed { state.landing.owed.clone() } else { Vec::new() }
}

/// The message of the next commit: that of the story, or of what the user confirmed after it had landed.
fn commit_message(order: &StoryOrder, state: &StoryState) -> String {
    let message = render_message(order, state.work.as_ref());
    if state.landing.landed.is_none() {
        return message;
    }
    let subject = message.lines().next().unwrap_or_default();
    let actions: Vec<String> = state.landing.owed.iter().map(|action| format!("- {action}\n")).collect();
    format!("{subject} (confirmed)\n\n{}", actions.concat())
}

/// Fills the template of the message.
fn render_message(order: &StoryOrder, work: Option<&StoryWork>) -> String {
    let story_file = work.and_then(|work| work.story_file.as_deref()).unwrap_or_default();
    let title = if order.story.title.is_empty() { order.story.key.as_str() } else { order.story.title.as_str() };
    let title = clean_title(title);
    let message =
        order.texts.message.replace("{key}", &order.story.key).replace("{title}", &title).replace("{file}", story_file);
    format!("{}\n", message.trim_end())
}

/// A title for the subject of a commit: agents write titles, and terminals show subjects.
fn clean_title(title: &str) -> String {
    let is_hidden = |character: char| {
        character.is_control()
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let visible: String = title.chars().filter(|character| !is_hidden(*character)).collect();
    truncate_chars(visible.trim(), MAX_TITLE_CHARS)
}

async fn integrate_work(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
    let Some(work) = state.work.clone() else {
        return Err(StageExit::halt_run(RunReason::Environment, "there is no workspace to land from"));
    };
    let is_accepted = work.content.is_some() && state.landing.accepted_content == work.content;
    let integrate = Integrate {
        workspace: String::from(WORKSPACE_NAME),
        branch: host.order.branch.clone(),
        expected: work.base.clone(),
        commit: work.tip.clone(),
        unchanged_checks: landing::list_guarded_checks(host.settings(), is_accepted),
        verified: work.proof.verified.clone(),
        gate: build_gate(host.order, state),
        mergeable: host.order.list_mergeable_files(),
        // A commit that the user has merged is on the branch, whether or not its changes are.
        only_looks: state.landing.may_be_merged,
    };
    match land_work::move_branch(host, state, stage_key, integrate).await? {
        BranchMove::Landed(landed) => {
            host.note_own_event(StoryEvent::StoryLanded {
                commit: work.tip.clone(),
                branch: landed.branch.clone(),
                checkout_moved: landed.checkout_moved,
                in_the_way: landed.in_the_way.clone(),
                changed_controls: work.changed_controls.clone(),
                concerns: state.landing.concerns.accepted.clone(),
                verified: StoryOrder::find_verified(state).cloned(),
            });
            match state.landing.is_owing() && host.order.goal == StoryGoal::Done {
                true => await_owed(host, state, stage_key).await,
                false => finish_story(host, state, stage_key, &landed).await,
            }
        }
        BranchMove::Outdated(tip) => rebase_work(host, state, stage_key, tip).await,
        // The work is one commit.
        BranchMove::PastQuestionable => Ok(()),
    }
}

/// What the work of a story is compared with. What the user confirms after it has landed is written by us.
fn build_gate(order: &StoryOrder, state: &StoryState) -> LandingGate {
    if state.landing.landed.is_some() {
        return LandingGate::open();
    }
    let created = state.landing.created.as_ref();
    let work_file = state.work.as_ref().and_then(|work| work.story_file.clone());
    LandingGate {
        story: work_file.or_else(|| order.files.story_file.clone()),
        naming_text: created.map(|created| created.naming_text.clone()).unwrap_or_default(),
        created: created.map(|created| created.tree.clone()),
        accepted: state.landing.concerns.accepted.clone(),
        ..LandingGate::default()
    }
}

/// Rebases the work onto the branch and checks it again; then it lands anew. The board is left out of it: others move their stories
/// on it, and its line for this story is written again from where the branch is.
async fn rebase_work(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key, onto: CommitId) -> Staged<()> {
    state.landing.rebases += 1;
    if state.landing.rebases > landing::MAX_REBASES {
        state.landing.rebases = 0;
        return Err(StageExit::halt_run(
            RunReason::Environment,
            landing::describe_moving_branch(&host.order.branch.name),
        ));
    }
    let restore = RestoreBoard { workspace: String::from(WORKSPACE_NAME), story: host.order.story.clone() };
    if let StoryWriting::Failed { fault } = host.perform(stage_key.child_key("board"), restore).await? {
        return Err(StageExit::from_fault(&fault));
    }
    let commit_work = CommitWork {
        workspace: String::from(WORKSPACE_NAME),
        message: commit_message(host.order, state),
        run_hooks: false,
        squash: true,
        keeps_ref: false,
        tree: None,
    };
    match host.perform(stage_key.child_key("without-board"), commit_work).await? {
        CommitOutcome::Committed { commit } => StoryOrder::set_tip(state, commit),
        CommitOutcome::Unchanged { tip } => StoryOrder::set_tip(state, tip),
        // Only hooks refuse or rewrite, and none ran.
        CommitOutcome::Refused(_) | CommitOutcome::Rewritten { .. } | CommitOutcome::Edited { .. } => {}
        CommitOutcome::Failed { fault } => return Err(StageExit::from_fault(&fault)),
    }
    let tip = land_work::rebase_work(host, state, stage_key, &onto).await?;
    note_hand_merge(state, &tip, &onto);
    if let Some(work) = &mut state.work {
        (work.base, work.tip) = (onto, tip);
    }
    verify_hand_merge(host, state, stage_key).await?;
    land_work::check_again(host, state, stage_key).await
}

/// Remembers whether the branch has the work by a merge of the user. `commit` is the last one of the work after a rebase onto `onto`.
fn note_hand_merge(state: &mut StoryState, commit: &CommitId, onto: &CommitId) {
    // A branch that was moved to the work itself has exactly what the rules accepted.
    let is_the_work = state.work.as_ref().is_some_and(|work| work.tip == *onto && work.base != *onto);
    // What the user confirms after the work has landed is only bookkeeping, and would not pass as work.
    let is_verified = is_the_work || state.landing.landed.is_some();
    let is_merged = state.landing.may_be_merged || commit == onto;
    state.landing.may_be_merged = is_merged && !is_verified;
}

/// Applies the rules of a session to what the user has merged by hand: the merge may have dropped any part of the work. If they refuse
/// it, the user is asked again, because the branch is the user's to repair.
async fn verify_hand_merge(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
    if !state.landing.may_be_merged {
        return Ok(());
    }
    // However often the user repairs it, the branch does not move on its own.
    state.landing.rebases = 0;
    let facts = host.read_story(state, stage_key.child_key("merged"), None).await?;
    let Some(tip) = state.work.as_ref().map(|work| work.tip.clone()) else { return Ok(()) };
    // The workspace has followed the branch, so what was read is what is committed.
    StoryOrder::set_tip(state, tip.clone());
    let verdict = sessions::verify_step(host, state, &facts);
    if verdict.problems.is_empty() {
        state.landing.may_be_merged = false;
        return Ok(());
    }
    let reasons = verdict.problems.iter().map(StoryProblem::describe).collect();
    let found = Some(FoundSolution::Incomplete { reasons });
    let conflict = RebaseConflict { found, ..RebaseConflict::default() };
    Err(land_work::ask_about_conflict(host, state, stage_key, &tip, &conflict).await)
}

pub(super) fn is_about_owed(topic: &DecisionTopic) -> bool {
    matches!(topic, DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryOwes { .. })))
}

/// Keeps the workspace of work that has landed until the user has done what only a person can do. What the confirmation changes
/// is a commit of its own: the workspace begins anew with the one that landed.
async fn await_owed(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key) -> Staged<()> {
    let Some(commit) = state.work.as_ref().map(|work| work.tip.clone()) else { return Ok(()) };
    write_ignored(host, state, stage_key).await?;
    match landing::rebase_onto(host.run_host(), stage_key.child_key("begin-anew"), WORKSPACE_NAME, &commit).await? {
        RebaseAttempt::Rebased(tip) => {
            if let Some(work) = &mut state.work {
                work.base = commit.clone();
                work.tip = tip;
                work.proof.verified = None;
            }
        }
        // The work is compared with itself.
        RebaseAttempt::Conflict(_) => {}
        RebaseAttempt::Failed(fault) => return Err(StageExit::from_fault(&fault)),
    }
    state.review.follow_ups.clear();
    state.landing.landed = Some(commit.clone());
    ask_about_owed(host, state, stage_key, &commit).await
}

async fn ask_about_owed(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key, commit: &CommitId) -> Staged<()> {
    let actions = state.landing.owed.clone();
    let detail = format!(
        "commit {} is on {}; it waits for what only you can do: {}",
        commit.short_hex(),
        host.order.branch.name,
        actions.join("; ")
    );
    if !state.dialog.open_decisions().any(|decision| is_about_owed(&decision.about)) {
        let decision = Decision {
            id: state.dialog.next_decision_id(),
            about: DecisionTopic::Workflow(WorkflowTopic::Story(StoryTopic::StoryOwes { actions })),
            owner: String::from("the user who can do it"),
            question: format!("story {}: {detail}", host.order.story.key),
            choices: build_choices(&[
                (ChoiceKey::Done, "it is done: the story is marked as done"),
                (ChoiceKey::Skip, "leave it; the commit stays, and the board keeps its state"),
            ]),
            answer: None,
        };
        state.dialog.post_decision(host.run_host(), &stage_key.child_key("ask"), decision).await?;
    }
    Err(StageExit::halt_run(RunReason::Blocked, detail))
}

/// Writes what git ignores into the checkout.
async fn write_ignored(host: StoryHost<'_>, state: &StoryState, stage_key: &Key) -> Staged<()> {
    let files = &host.order.files;
    let stage = landed_stage(host.order, state);
    if files.board_is_ignored || files.stories_are_ignored {
        let write = WriteStory {
            place: StoryPlace::Checkout,
            story: host.order.story.clone(),
            stage,
            confirmed: list_confirmed(state),
            follow_ups: state.review.follow_ups.clone(),
            take_over_from: Some(String::from(WORKSPACE_NAME)),
            tree: None,
        };
        match host.perform(stage_key.child_key("ignored"), write).await? {
            StoryWriting::Written { remarks, .. } => remarks.into_iter().for_each(|remark| host.note_warning(remark)),
            StoryWriting::Failed { fault } => return Err(StageExit::from_fault(&fault)),
        }
    }
    host.note_own_event(StoryEvent::StoryMoved { stage });
    Ok(())
}

/// Writes what git ignores into the checkout, removes the workspace, tells the user and ends the run.
async fn finish_story(host: StoryHost<'_>, state: &mut StoryState, stage_key: &Key, landed: &LandedWork) -> Staged<()> {
    write_ignored(host, state, stage_key).await?;
    host.note_own_event(StoryEvent::StoryStepDone { step: StoryStepName::Land });
    host.close_workspace(stage_key.child_key("close")).await?;
    let commit = state.work.as_ref().map(|work| String::from(work.tip.short_hex())).unwrap_or_default();
    let stage_text = match host.order.goal {
        StoryGoal::Done => "done",
        StoryGoal::Review => "ready for review",
    };
    let (reason, detail) = match landing::describe_waiting(landed) {
        Some(remark) => (RunReason::OnOwnBranch, format!("commit {commit}; {remark}")),
        None => (RunReason::GoalMet, format!("the story is {stage_text}: commit {commit} on {}", landed.branch)),
    };
    host.notify_user(stage_key.child_key("notify"), &detail).await?;
    Err(StageExit::Ended(RunEnding::new(reason, detail)))
}
