//! The stories of a sprint, one after the other. A boundary follows every story.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use crate::{
    development::workspace::DevelopmentPlace,
    runs::{
        kinds::RunOrder,
        types::{
            ChildNews, ChildOutcome, ChildReport, DecisionTopic, Requests, ReturnedChild, RunChild, RunHost, StartChild,
        },
        user_request::UserRequest,
    },
    sprint::{
        event::SprintEvent,
        facts::{PlanStory, PlannedStory, ReadSprint, SprintFacts, SprintReading, StoryPlanning},
        halting,
        order::SprintOrder,
        retrospective,
        selection::{LeftOut, LeftOutReason, NextStory, SprintProgress, choose_next, list_left_out},
        sprint_host::SprintHost,
        standing::StoryStanding,
        state::SprintState,
    },
    stages::{
        exit::{StageExit, Staged},
        run::{HaltQuestion, StageParts, StageState, StagedOrder, UserNews, apply_requests, hear_user, run_stages},
    },
    story::order::StoryOrder,
    workflows::{Workflow, WorkflowFuture},
};
use tribunal_engine::{
    answer::ChoiceKey,
    children::AwaitChild,
    fault::FaultKind,
    ids::{Key, RunId},
    limits::{LimitShare, check_limits, remaining_share},
    reason::{RunEnding, RunOutcome, RunReason},
};

impl Workflow for SprintOrder {
    type State = SprintState;

    fn run<'a>(host: &'a RunHost<'a>, order: &'a SprintOrder, state: SprintState) -> WorkflowFuture<'a> {
        Box::pin(run_stages(SprintHost::new(host, order), state))
    }
}

impl StageState for SprintState {
    fn parts(&mut self) -> StageParts<'_> {
        StageParts { waiting: &mut self.waiting, dialog: &mut self.dialog, spent: &mut self.spent }
    }
}

impl StagedOrder for SprintOrder {
    fn stage_key(&self, state: &mut SprintState) -> Key {
        state.stages += 1;
        Key::new(format!("story-{}", state.stages))
    }

    async fn run_stage(host: SprintHost<'_>, state: &mut SprintState, stage_key: &Key) -> Staged<()> {
        take_next_story(host, state, stage_key).await
    }

    fn settle_stage(host: SprintHost<'_>, state: &mut SprintState) {
        halting::continue_extended(host, state);
    }

    fn find_question(_host: SprintHost<'_>, state: &SprintState, ending: &RunEnding) -> Option<HaltQuestion> {
        halting::find_question(state, ending)
    }

    fn apply_request(host: SprintHost<'_>, state: &mut SprintState, request: UserRequest) -> Staged<()> {
        halting::apply_request(host, state, request)
    }

    fn apply_answer(
        _host: SprintHost<'_>,
        state: &mut SprintState,
        _topic: &DecisionTopic,
        choice: ChoiceKey,
    ) -> Staged<()> {
        halting::apply_answer(state, choice)
    }

    fn can_continue(_state: &SprintState, news: &UserNews) -> bool {
        news.is_answered || news.is_resumed() || news.is_child_answered()
    }

    fn continue_run(state: &mut SprintState, _ending: &RunEnding, news: &UserNews) {
        if news.is_resumed() {
            halting::continue_resumed(state, news);
        }
    }
}

/// Works on the story whose turn it is, or on the retrospective that is due before it.
async fn take_next_story(host: SprintHost<'_>, state: &mut SprintState, stage_key: &Key) -> Staged<()> {
    hear_user(host, state, stage_key).await?;
    let facts = match host.perform(stage_key.child_key("board"), read_sprint(host.order, state)).await? {
        SprintReading::Read(facts) => facts,
        SprintReading::Failed { fault } => return Err(StageExit::from_fault(&fault)),
    };
    if state.stages == 1 {
        host.note_own_event(SprintEvent::SprintBegun { open: facts.open_count, done: facts.done_count });
        facts.remarks.iter().for_each(|remark| host.note_warning(remark.clone()));
    }
    forget_done(host, state, &facts);
    leave_skipped(host, state);
    // The next epic is to know what the last one taught.
    if let Some(epic) = retrospective::find_due(host, state, &facts) {
        return retrospective::hold_retrospective(host, state, stage_key, &epic).await;
    }
    // What the user has answered goes on before anything new is begun.
    if let Some(key) = state.find_answered() {
        // Without anything left for it, the story would come back at once, and nothing would ask the user for more.
        check_before_story(host, state)?;
        host.note_own_event(SprintEvent::SprintStoryTaken { story: key.clone(), reason: String::from("it can go on") });
        return run_story(host, state, stage_key, StoryTurn { key: &key, facts: &facts }).await;
    }
    let progress = SprintProgress {
        standings: &state.standings,
        skipped: &state.wishes.skipped,
        begun: state.begun,
        goal: host.order.story.goal,
    };
    match choose_next(&facts, &host.order.scope, progress) {
        NextStory::Take { story, .. } if state.wishes.stop_after_story => {
            // What depends on the next story is not left out; only what was said before may be out of date.
            let mut left_out = list_left_out(&facts, &host.order.scope, progress);
            left_out.retain(|left_out| state.left_out.iter().any(|said| said.story == left_out.story));
            note_left_out(host, state, &left_out);
            Err(stop_sprint(state, &story.key))
        }
        NextStory::Take { story, reason } => {
            check_before_story(host, state)?;
            host.note_own_event(SprintEvent::SprintStoryTaken { story: story.key.clone(), reason });
            run_story(host, state, stage_key, StoryTurn { key: &story.key, facts: &facts }).await
        }
        NextStory::Nothing { left_out } => Err(finish_sprint(host, state, &left_out)),
    }
}

/// Returns the ending if a limit of the sprint is used up.
fn check_sprint_limits(host: SprintHost<'_>, state: &SprintState) -> Option<RunEnding> {
    check_limits(&host.settings().limits, &state.spent, host.last_timestamp().awake_ms)
}

/// Halts the sprint if one of its limits is used up. If none is, a question about one is out of date and is withdrawn.
fn check_before_story(host: SprintHost<'_>, state: &mut SprintState) -> Staged<()> {
    if let Some(ending) = check_sprint_limits(host, state) {
        return Err(StageExit::Halted(ending));
    }
    halting::withdraw_limit_question(host, state);
    Ok(())
}

fn read_sprint(order: &SprintOrder, state: &SprintState) -> ReadSprint {
    ReadSprint { branch: order.story.branch.name.clone(), watched: state.standings.keys().cloned().collect() }
}

/// Forgets what waits about stories that the board calls done: the user, or another run, has done them.
fn forget_done(host: SprintHost<'_>, state: &mut SprintState, facts: &SprintFacts) {
    let is_over = |key: &&String| facts.done.contains(key) || facts.gone.contains(key);
    let done: Vec<String> = state.standings.keys().filter(is_over).cloned().collect();
    for story in done {
        if state.standings.remove(&story) == Some(StoryStanding::Done) {
            continue;
        }
        let (standing, detail) = match facts.gone.contains(&story) {
            true => (StoryStanding::Skipped, "it is not on the board any more"),
            false => (StoryStanding::Done, "the board says that it is done"),
        };
        state.done += u32::from(standing == StoryStanding::Done);
        host.note_own_event(SprintEvent::SprintStoryLeft {
            story,
            standing,
            detail: String::from(detail),
            child: None,
        });
    }
}

/// Leaves the stories that wait, or could go on, and that the user has skipped meanwhile. Their runs are not continued.
fn leave_skipped(host: SprintHost<'_>, state: &mut SprintState) {
    for key in state.list_skipped() {
        let detail = String::from("you skipped it");
        leave_story(host, state, LeftStory { key: &key, standing: StoryStanding::Skipped, detail, child: None });
    }
}

/// A story whose turn it is, with the board as it was read for it.
#[derive(Clone, Copy)]
struct StoryTurn<'a> {
    key: &'a str,
    facts: &'a SprintFacts,
}

/// Runs a story, or continues it.
async fn run_story(host: SprintHost<'_>, state: &mut SprintState, stage_key: &Key, turn: StoryTurn<'_>) -> Staged<()> {
    let key = turn.key;
    let plan_story = PlanStory { story: String::from(key), tier: state.wishes.tier };
    let planned = match host.perform(stage_key.child_key("plan"), plan_story).await? {
        StoryPlanning::Planned(planned) => planned,
        StoryPlanning::Refused { detail } => {
            leave_story(host, state, LeftStory { key, standing: StoryStanding::Refused, detail, child: None });
            return Ok(());
        }
        StoryPlanning::Claimed { claimant } => {
            let detail = format!("run {claimant} works on it");
            leave_story(host, state, LeftStory { key, standing: StoryStanding::Claimed, detail, child: None });
            return Ok(());
        }
        StoryPlanning::Failed { fault } => return Err(StageExit::from_fault(&fault)),
    };
    if !state.standings.contains_key(key) {
        match state.ended.contains_key(key) {
            // It was done, and the board says that it is open again.
            true => state.done = state.done.saturating_sub(1),
            false => state.begun += 1,
        }
    }
    let child_name = state.child_name(key);
    let limits = &host.settings().limits;
    let remaining = remaining_share(limits, &state.spent, host.last_timestamp().awake_ms);
    let lendable = state.ledger.take_extension(&child_name).unwrap_or(host.order.story_share);
    let share = state.ledger.lend_share(&child_name, smaller_share(remaining, lendable), 1);
    let run_child = RunChild {
        name: child_name.clone(),
        order: RunOrder::Story(story_order(host.order, *planned, state, turn)),
        share,
        workspace: None,
        tier: state.wishes.tier,
    };
    host.perform(stage_key.child_key("run"), StartChild { child: run_child }).await?;
    await_story(host, state, stage_key, turn).await
}

/// Waits for the story, and hears the user meanwhile.
async fn await_story(
    host: SprintHost<'_>,
    state: &mut SprintState,
    stage_key: &Key,
    turn: StoryTurn<'_>,
) -> Staged<()> {
    let mut await_count = 0;
    loop {
        await_count += 1;
        let await_key = stage_key.child_key(&format!("await-{await_count}"));
        match host.perform(await_key, AwaitChild {}).await? {
            // Only one story is at work at a time.
            ChildNews::Returned(returned) => return settle_story(host, state, turn, returned),
            ChildNews::Word(Requests { requests }) => apply_requests(host, state, requests)?,
        }
    }
}

/// Counts what the story has used, and decides whether the sprint can go on.
fn settle_story(
    host: SprintHost<'_>,
    state: &mut SprintState,
    turn: StoryTurn<'_>,
    returned: ReturnedChild,
) -> Staged<()> {
    let ReturnedChild { name, outcome } = returned;
    let used = state.ledger.settle_account(&name, &outcome);
    state.spent.add_child(&used);
    if matches!(outcome, ChildOutcome::Ended(_)) {
        // A sprint may have hundreds of stories; what has ended needs no account.
        state.ledger.forget_account(&name);
        *state.ended.entry(String::from(turn.key)).or_default() += 1;
    }
    judge_story(host, state, turn, outcome)
}

fn smaller_share(first: LimitShare, second: LimitShare) -> LimitShare {
    LimitShare {
        runtime_ms: first.runtime_ms.min(second.runtime_ms),
        cost: first.cost.min(second.cost),
        tokens: first.tokens.min(second.tokens),
    }
}

fn story_order(order: &SprintOrder, planned: PlannedStory, state: &SprintState, turn: StoryTurn<'_>) -> StoryOrder {
    let mut story_order = (*order.story).clone();
    story_order.story = planned.name;
    story_order.files = planned.files;
    story_order.steps = Box::new(planned.steps);
    story_order.size = Some(planned.size);
    story_order.texts.said = state.dialog.remark_lines();
    story_order.texts.lessons = retrospective::list_lessons(state, turn.facts, turn.key);
    story_order.branch = order.story_branch(state.done > 0);
    story_order
}

/// Records what became of a story, and decides whether the sprint can go on.
fn judge_story(
    host: SprintHost<'_>,
    state: &mut SprintState,
    turn: StoryTurn<'_>,
    outcome: ChildOutcome,
) -> Staged<()> {
    let key = turn.key;
    let (report, has_ended) = match outcome {
        ChildOutcome::Ended(report) => (report, true),
        ChildOutcome::Waiting(report) => (report, false),
        // Another run was faster. In the checkout every other story would meet the same run.
        ChildOutcome::Failed(failed)
            if failed.fault.kind == FaultKind::SubjectBusy && host.order.story.place == DevelopmentPlace::Clone =>
        {
            let left = LeftStory { key, standing: StoryStanding::Claimed, detail: failed.fault.detail, child: None };
            leave_story(host, state, left);
            return Ok(());
        }
        ChildOutcome::Failed(failed) => {
            // It is begun anew, or continued, when the sprint is resumed.
            state.standings.insert(String::from(key), StoryStanding::Answered);
            return Err(StageExit::from_fault(&failed.fault));
        }
    };
    let ChildReport { run, outcome, reason, detail, .. } = report;
    let child = Some(run.clone());
    match (has_ended, outcome) {
        (true, Some(RunOutcome::Resolved)) => {
            state.done += 1;
            state.epics.worked_on.extend(turn.facts.find_story(key).map(|story| story.epic.clone()));
            leave_story(host, state, LeftStory { key, standing: StoryStanding::Done, detail, child });
        }
        // Its work is on a branch of its own, which the user has to take.
        (true, Some(RunOutcome::Waiting)) => {
            leave_story(host, state, LeftStory { key, standing: StoryStanding::Waiting, detail, child });
        }
        (true, _) => leave_story(host, state, LeftStory { key, standing: StoryStanding::Skipped, detail, child }),
        // The same would happen to every other story.
        (false, Some(RunOutcome::Failed)) => {
            state.standings.insert(String::from(key), StoryStanding::Answered);
            return Err(StageExit::halt_run(reason, format!("story {key} ({run}): {detail}")));
        }
        // Every other story would begin in the same checkout.
        (false, _) if reason == RunReason::CheckoutNotReady => {
            state.standings.insert(String::from(key), StoryStanding::Answered);
            return Err(StageExit::halt_run(reason, format!("story {key} ({run}): {detail}")));
        }
        (false, _) if reason == RunReason::Baseline => {
            state.standings.insert(String::from(key), StoryStanding::Answered);
            return Err(StageExit::halt_run(reason, detail));
        }
        // What the story lacks the sprint lacks as well; the story goes on when the user grants more.
        (false, Some(RunOutcome::Halted)) if check_sprint_limits(host, state).is_some() => {
            leave_story(host, state, LeftStory { key, standing: StoryStanding::Answered, detail, child });
        }
        (false, None) => {
            leave_story(host, state, LeftStory { key, standing: StoryStanding::Stopped, detail, child });
            // A story that was stopped in the middle has its work in the checkout, where the next one would begin.
            if host.order.story.place == DevelopmentPlace::InPlace {
                let detail = format!("story {key} ({run}) was stopped, and its work is in your checkout");
                return Err(StageExit::halt_run(RunReason::Stopped, detail));
            }
        }
        (false, Some(outcome)) => {
            if outcome == RunOutcome::Halted {
                let child_name = state.child_name(key);
                state.ledger.note_reached(&child_name, reason, host.order.story_share);
            }
            leave_story(host, state, LeftStory { key, standing: StoryStanding::Waiting, detail, child });
        }
    }
    Ok(())
}

struct LeftStory<'a> {
    key: &'a str,
    standing: StoryStanding,
    detail: String,
    child: Option<RunId>,
}

fn leave_story(host: SprintHost<'_>, state: &mut SprintState, left: LeftStory<'_>) {
    let LeftStory { key, standing, detail, child } = left;
    // A story that is done is forgotten when the board says so: until then it must not be begun again.
    state.standings.insert(String::from(key), standing);
    host.note_own_event(SprintEvent::SprintStoryLeft { story: String::from(key), standing, detail, child });
}

/// Says what is left out, if that was not said before. An empty list counts as well: what was left out may be done by now.
fn note_left_out(host: SprintHost<'_>, state: &mut SprintState, left_out: &[LeftOut]) {
    if left_out != state.left_out {
        host.note_own_event(SprintEvent::SprintLeftOut { stories: left_out.to_vec() });
        state.left_out = left_out.to_vec();
    }
}

/// Ends the sprint, or has it wait for the stories that do.
fn finish_sprint(host: SprintHost<'_>, state: &mut SprintState, left_out: &[LeftOut]) -> StageExit {
    note_left_out(host, state, left_out);
    let waiting = state.list_waiting();
    if waiting.is_empty() {
        return StageExit::Ended(describe_end(state, left_out));
    }
    let detail = format!(
        "{} for you: {}{}",
        match waiting.len() {
            1 => String::from("1 story waits"),
            count => format!("{count} stories wait"),
        },
        waiting.join(", "),
        describe_left(left_out)
    );
    StageExit::halt_run(RunReason::Blocked, detail)
}

/// Stops the sprint because the user said so.
fn stop_sprint(state: &SprintState, next_key: &str) -> StageExit {
    let remark = format!("you asked to stop after a story; {next_key} would be next");
    let detail = format!("{}; {remark}", describe_end(state, &[]).detail);
    // It can be resumed like any run that was stopped.
    StageExit::halt_run(RunReason::Stopped, detail)
}

fn describe_left(left_out: &[LeftOut]) -> String {
    match left_out {
        [] => String::new(),
        [only] => format!("; {}", only.describe()),
        [first, ..] => format!("; {} stories are left out, the first: {}", left_out.len(), first.describe()),
    }
}

/// The ending of a sprint with which nothing waits.
fn describe_end(state: &SprintState, left_out: &[LeftOut]) -> RunEnding {
    let unfinished = state.standings.values().filter(|standing| **standing != StoryStanding::Done).count();
    let mut detail = match state.done {
        1 => String::from("1 story is done"),
        count => format!("{count} stories are done"),
    };
    if unfinished > 0 {
        detail.push_str(&format!(", {unfinished} not"));
    }
    detail.push_str(&describe_left(left_out));
    // What the user left out is not missing.
    let is_wanted = |left_out: &LeftOut| matches!(left_out.reason, LeftOutReason::Skipped | LeftOutReason::MaxStories);
    let is_whole = unfinished == 0 && left_out.iter().all(is_wanted);
    let reason = if is_whole { RunReason::GoalMet } else { RunReason::StoriesLeft };
    RunEnding::new(reason, detail)
}
