//! Sprints over a board in memory: the order of stories, what holds what up, what the user says meanwhile, and that every sprint ends.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use tribunal_engine::{
    answer::ChoiceKey,
    limits::RunLimits,
    reason::{RunEnding, RunReason},
    tier::ProcessTier,
};
use tribunal_testkit::{
    BoardStory, Dice, STORY_TOKENS, SprintWorld, StoryEnd, samples,
    trial::{TrialOutcome, TrialRun, ordered_workflow},
};
use tribunal_workflows::{
    development::workspace::TargetBranch,
    runs::{
        effect::{Effect, Reply},
        kinds::{RunOrder, WorkflowEvent},
        plan::RunPlan,
        types::RunEvent,
        user_request::UserRequest,
        view::RunView,
    },
    sprint::{
        event::SprintEvent,
        order::SprintOrder,
        requests::{SprintCommand, names_story},
        standing::StoryStanding,
    },
    story::{facts::StoryName, order::StoryOrder},
    tasks::instructions::TaskOpening,
};

fn sample_plan() -> RunPlan<SprintOrder> {
    let story = StoryOrder::new(StoryName::from_key(""), TargetBranch { name: "main".into(), created_at: None });
    let story_share = RunLimits::for_development().as_share();
    let order = SprintOrder::new(story, story_share);
    RunPlan { settings: samples::sample_settings(), order }
}

fn run_sprint(stories: Vec<BoardStory>) -> (TrialOutcome<RunEnding>, TrialRun<SprintWorld>) {
    let mut trial = TrialRun::new(sample_plan(), SprintWorld::new(stories), 1);
    (trial.run_workflow(ordered_workflow, None), trial)
}

fn ending_of(outcome: &TrialOutcome<RunEnding>) -> (RunReason, String) {
    match outcome {
        TrialOutcome::Done(ending) | TrialOutcome::Parked(ending) => (ending.reason, ending.detail.clone()),
        other => panic!("{other:?}"),
    }
}

fn stories(ends: &[(&str, StoryEnd)]) -> Vec<BoardStory> {
    ends.iter().map(|(key, end)| BoardStory::new(key, *end)).collect()
}

#[test]
fn all_stories_are_done_in_the_order_of_the_board() {
    use StoryEnd::Done;
    let (outcome, trial) = run_sprint(stories(&[("1-1-a", Done), ("1-2-b", Done), ("2-1-c", Done)]));
    assert_eq!(ending_of(&outcome), (RunReason::GoalMet, "3 stories are done".into()));
    assert_eq!(trial.world.begun, ["1-1-a", "1-2-b", "2-1-c"]);
    let view = RunView::from_entries(&trial.journal);
    assert_eq!(view.as_sprint().unwrap().summary.done, 3);
}

#[test]
fn a_story_that_asks_is_parked_and_the_rest_goes_on() {
    use StoryEnd::{Asks, Done, Unplanned};
    let (outcome, trial) =
        run_sprint(stories(&[("1-1-a", Asks), ("1-2-b", Done), ("2-1-c", Unplanned), ("3-1-d", Done)]));
    let (reason, detail) = ending_of(&outcome);
    assert_eq!(reason, RunReason::Blocked);
    assert_eq!(detail, "1 story waits for you: 1-1-a; 1-2-b depends on 1-1-a, which is not done");
    assert_eq!(trial.world.begun, ["1-1-a", "3-1-d"]);
}

#[test]
fn a_broken_environment_ends_the_sprint_until_it_is_resumed() {
    use StoryEnd::{BreaksOnce, Done};
    let mut trial =
        TrialRun::new(sample_plan(), SprintWorld::new(stories(&[("1-1-a", BreaksOnce), ("2-1-b", Done)])), 1);
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::Environment);
    assert_eq!(trial.world.begun, ["1-1-a"]);
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::GoalMet);
    assert_eq!(trial.world.begun, ["1-1-a", "2-1-b"]);
}

#[test]
fn files_in_the_way_of_a_story_hold_the_sprint_until_it_is_resumed() {
    use StoryEnd::{Done, MeetsFilesOnce};
    let mut trial =
        TrialRun::new(sample_plan(), SprintWorld::new(stories(&[("1-1-a", MeetsFilesOnce), ("2-1-b", Done)])), 1);
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::CheckoutNotReady);
    assert_eq!(trial.world.begun, ["1-1-a"]);
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::GoalMet);
    assert_eq!(trial.world.begun, ["1-1-a", "2-1-b"]);
}

#[test]
fn a_story_whose_commit_waits_elsewhere_is_not_begun_again() {
    use StoryEnd::{Done, LandsElsewhere};
    let (outcome, trial) = run_sprint(stories(&[("1-1-a", LandsElsewhere), ("1-2-b", Done), ("2-1-c", Done)]));
    assert_eq!(trial.world.begun, ["1-1-a", "2-1-c"]);
    let (reason, detail) = ending_of(&outcome);
    assert_eq!(reason, RunReason::StoriesLeft);
    assert_eq!(detail, "2 stories are done; 1-2-b depends on 1-1-a, which is not done");
}

#[test]
fn remarks_are_requests_or_go_to_the_agents() {
    use StoryEnd::Done;
    let names = [("1-1-a", Done), ("2-1-b", Done), ("3-1-c", Done), ("4-1-d", Done)];
    let mut world = SprintWorld::new(stories(&names));
    world.remarks = vec!["skip 2-1", "keep functions short", "stop after this story"];
    let mut trial = TrialRun::new(sample_plan(), world, 1);
    let (reason, detail) = ending_of(&trial.run_workflow(ordered_workflow, None));
    assert_eq!((reason, trial.world.begun.len()), (RunReason::Stopped, 2), "{detail}");
    assert_eq!(trial.world.begun, ["1-1-a", "3-1-c"]);
    assert_eq!(trial.world.said["3-1-c"], ["keep functions short"]);
}

#[test]
fn a_story_that_waits_can_be_skipped_also_after_its_answer() {
    use StoryEnd::{Asks, BreaksOnce, Done};
    let (outcome, mut trial) = run_sprint(stories(&[("1-1-a", Asks), ("2-1-b", Done)]));
    assert_eq!(ending_of(&outcome).1, "1 story waits for you: 1-1-a");
    trial.world.remarks = vec!["skip 1-1"];
    let (reason, detail) = ending_of(&trial.run_workflow(ordered_workflow, None));
    assert_eq!((reason, detail.as_str()), (RunReason::StoriesLeft, "1 story is done, 1 not"));
    let view = RunView::from_entries(&trial.journal);
    let row = view.as_sprint().unwrap().summary.stories.iter().find(|row| row.story == "1-1-a").unwrap().clone();
    assert_eq!((row.standing, row.detail.as_str()), (StoryStanding::Skipped, "you skipped it"));
    // Here the story would be continued next.
    let (outcome, mut trial) = run_sprint(stories(&[("1-1-a", BreaksOnce), ("2-1-b", Done)]));
    assert_eq!(ending_of(&outcome).0, RunReason::Environment);
    trial.world.remarks = vec!["skip 1-1"];
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::StoriesLeft);
    assert_eq!((trial.world.is_done("1-1-a"), trial.world.is_done("2-1-b")), (false, true));
}

/// What the last word of the sprint about stories that are left out is.
fn left_out_of(trial: &TrialRun<SprintWorld>) -> Vec<String> {
    let view = RunView::from_entries(&trial.journal);
    let sprint_view = view.as_sprint().unwrap();
    assert_eq!(sprint_view.summary.left_out as usize, sprint_view.left_out.len());
    sprint_view.left_out.iter().map(|left_out| left_out.describe()).collect()
}

#[test]
fn what_is_said_to_be_left_out_follows_the_board() {
    use StoryEnd::{Asks, Done};
    let board = || stories(&[("1-1-a", Asks), ("1-2-b", Done), ("1-3-c", Done)]);
    let (_, mut trial) = run_sprint(board());
    let said = ["1-2-b depends on 1-1-a, which is not done", "1-3-c depends on 1-1-a, which is not done"];
    assert_eq!(left_out_of(&trial), said);
    // The user has done the first story and stops the sprint: only the last one still has an obstacle.
    trial.world.finish_by_hand("1-1-a");
    trial.world.remarks = vec!["stop after this story"];
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::Stopped);
    assert_eq!(left_out_of(&trial), ["1-3-c depends on 1-2-b, which is not done"]);
    // All of them are done by the user.
    let (_, mut trial) = run_sprint(board());
    ["1-1-a", "1-2-b", "1-3-c"].into_iter().for_each(|key| trial.world.finish_by_hand(key));
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::GoalMet);
    assert_eq!(left_out_of(&trial), Vec::<String>::new());
}

#[test]
fn the_limits_of_the_sprint_halt_it_between_stories() {
    use StoryEnd::Done;
    let mut plan = sample_plan();
    // Every story uses 100 tokens.
    plan.settings.limits.tokens = 150;
    let mut trial =
        TrialRun::new(plan, SprintWorld::new(stories(&[("1-1-a", Done), ("1-2-b", Done), ("1-3-c", Done)])), 1);
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::Tokens);
    assert_eq!(trial.world.begun.len(), 2);
}

#[test]
fn a_question_about_a_limit_is_withdrawn_when_the_limit_was_raised_by_other_means() {
    use StoryEnd::Done;
    let mut plan = sample_plan();
    plan.settings.limits.tokens = STORY_TOKENS;
    let mut trial = TrialRun::new(plan, SprintWorld::new(stories(&[("1-1-a", Done), ("1-2-b", Done)])), 1);
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::Tokens);
    assert_eq!(RunView::from_entries(&trial.journal).open_decisions().count(), 1);
    trial.plan.settings.limits.tokens = 10 * STORY_TOKENS;
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::GoalMet);
    assert_eq!(RunView::from_entries(&trial.journal).open_decisions().count(), 0);
}

/// Changes what one story may use, as settings that are read again do.
fn set_story_tokens(trial: &mut TrialRun<SprintWorld>, tokens: u64) {
    let RunOrder::Sprint(order) = &mut trial.plan.order else { panic!("the trial is of a sprint") };
    order.story_share.tokens = tokens;
}

#[test]
fn a_story_that_waits_at_its_own_limit_continues_when_the_limit_was_raised() {
    use StoryEnd::Done;
    let world = SprintWorld::new(stories(&[("1-1-a", Done), ("1-2-b", Done)]));
    let mut trial = TrialRun::new(sample_plan(), world, 1);
    set_story_tokens(&mut trial, 0);
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::Blocked);
    assert_eq!(trial.world.used_tokens(), 0);
    // Resuming alone, or with the same limit, continues nothing.
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::Blocked);
    assert_eq!(trial.world.begun, ["1-1-a"]);
    set_story_tokens(&mut trial, STORY_TOKENS);
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::GoalMet);
    assert_eq!(trial.world.begun, ["1-1-a", "1-2-b"]);
    let lent_tokens = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::EffectStarted { effect: Effect::StartChild(start), .. } => Some(start.child.share.tokens),
        _ => None,
    });
    assert_eq!(lent_tokens.collect::<Vec<u64>>(), [0, STORY_TOKENS, STORY_TOKENS]);
}

#[test]
fn a_story_that_can_go_on_waits_for_the_limit_of_the_sprint() {
    let mut plan = sample_plan();
    plan.settings.limits.tokens = STORY_TOKENS;
    let mut trial = TrialRun::new(plan, SprintWorld::new(stories(&[("1-1-a", StoryEnd::BreaksOnce)])), 1);
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::Environment);
    // The environment is repaired, but there is nothing left for the story: the sprint asks for more.
    assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::Tokens);
    assert_eq!(trial.world.used_tokens(), STORY_TOKENS);
}

#[test]
fn a_story_whose_run_breaks_off_is_continued_and_counted_once() {
    use StoryEnd::{CrashesOnce, Done, StopsOnce};
    let (outcome, mut trial) = run_sprint(stories(&[("1-1-a", CrashesOnce), ("2-1-b", StopsOnce), ("3-1-c", Done)]));
    assert_eq!(ending_of(&outcome).0, RunReason::Environment);
    assert_eq!(trial.world.begun, ["1-1-a"]);
    let (reason, detail) = ending_of(&trial.run_workflow(ordered_workflow, None));
    assert_eq!((reason, detail.as_str()), (RunReason::Blocked, "1 story waits for you: 2-1-b"));
    assert_eq!(trial.world.count_verified_runs(), 2);
}

#[test]
fn a_retrospective_that_an_earlier_sprint_could_not_hold_is_tried_once_more() {
    let tried_epics = |missed: &[&str]| {
        let mut plan = sample_plan();
        plan.order.retrospective = Some(TaskOpening::default());
        plan.order.missed_retrospectives = missed.iter().map(ToString::to_string).collect();
        let mut board = stories(&[("1-1-a", StoryEnd::Done), ("2-1-b", StoryEnd::Done)]);
        board[0].is_done = true;
        let mut trial = TrialRun::new(plan, SprintWorld::new(board), 1);
        assert_eq!(ending_of(&trial.run_workflow(ordered_workflow, None)).0, RunReason::GoalMet);
        let epics = trial.journal.iter().filter_map(|entry| match &entry.event {
            RunEvent::Workflow(WorkflowEvent::Sprint(SprintEvent::SprintRetrospective { epic, .. })) => {
                Some(epic.clone())
            }
            _ => None,
        });
        epics.collect::<Vec<String>>()
    };
    // This world has no agents, so every attempt fails; the sprint goes on. An old epic alone gets none.
    assert_eq!(tried_epics(&[]), ["2"]);
    assert_eq!(tried_epics(&["1"]), ["1", "2"]);
}

/// What a journal says about a sprint so far.
#[derive(Default)]
struct SprintAudit {
    begun: BTreeSet<String>,
    skipped: Vec<String>,
    tier: Option<ProcessTier>,
    /// Nothing may be begun.
    is_stopped: bool,
    /// The user has just resumed the sprint, so what was said before does not stop it.
    is_resumed: bool,
    /// How often the user has granted every limit once more.
    grants: u64,
    /// The child runs that were started: a story that cannot be planned is none.
    children: BTreeSet<String>,
}

impl SprintAudit {
    /// Reads a journal, and panics where something is begun against the word of the user.
    fn from_journal(trial: &TrialRun<SprintWorld>, seed: u64) -> SprintAudit {
        let mut audit = SprintAudit::default();
        for entry in &trial.journal {
            match &entry.event {
                RunEvent::Workflow(WorkflowEvent::Sprint(event)) => audit.apply_event(event, seed),
                RunEvent::Boundary { .. } => audit.is_resumed = false,
                RunEvent::EffectFinished { reply: Reply::Wait(inbox), .. } => {
                    audit.is_resumed = inbox.requests.contains(&UserRequest::Resume);
                    audit.is_stopped &= !audit.is_resumed;
                }
                RunEvent::EffectStarted { effect: Effect::StartChild(start), .. } => {
                    let child = &start.child;
                    assert_eq!(child.tier, audit.tier, "seed {seed}: {}", child.name);
                    audit.children.insert(child.name.clone());
                }
                RunEvent::DecisionAnswered { answer, .. } if answer.choice_key() == Some(ChoiceKey::More) => {
                    audit.grants += 1;
                }
                _ => {}
            }
        }
        audit
    }

    fn apply_event(&mut self, event: &SprintEvent, seed: u64) {
        match event {
            SprintEvent::SprintRequested { command: SprintCommand::Skip { story } } => self.skipped.push(story.clone()),
            SprintEvent::SprintRequested { command: SprintCommand::StopAfterStory } => {
                self.is_stopped |= !self.is_resumed;
            }
            SprintEvent::SprintRequested { command: SprintCommand::ChangeTier { tier } } => self.tier = Some(*tier),
            SprintEvent::SprintStoryTaken { story, .. } if self.begun.insert(story.clone()) => {
                assert!(!self.is_stopped, "seed {seed}: {story} is begun after the user asked to stop");
                let is_skipped = self.skipped.iter().any(|typed| names_story(typed, story));
                assert!(!is_skipped, "seed {seed}: {story} is begun, but the user skipped it");
            }
            _ => {}
        }
    }
}

/// Checks what must hold whenever a sprint waits or has ended.
fn assert_sound(trial: &TrialRun<SprintWorld>, plan: &RunPlan<SprintOrder>, seed: u64) {
    let audit = SprintAudit::from_journal(trial, seed);
    let world = &trial.world;
    let view = RunView::from_entries(&trial.journal);
    for row in view.as_sprint().into_iter().flat_map(|view| &view.summary.stories) {
        let is_true = row.standing != StoryStanding::Done || world.is_verified(&row.story);
        assert!(is_true, "seed {seed}: {} is called done, and no run has verified it", row.story);
    }
    let most_tokens = plan.settings.limits.tokens * (audit.grants + 1) + STORY_TOKENS;
    assert!(world.used_tokens() <= most_tokens, "seed {seed}: {} of {most_tokens} tokens", world.used_tokens());
    let max_stories = plan.order.scope.max_stories.unwrap_or(u32::MAX);
    assert!(audit.children.len() <= max_stories as usize, "seed {seed}: more than {max_stories} stories were begun");
}

/// Checks that what a sprint says at its end is true.
fn assert_true_end(ending: &RunEnding, trial: &TrialRun<SprintWorld>, seed: u64) {
    let (view, world) = (RunView::from_entries(&trial.journal), &trial.world);
    let done_count = view.as_sprint().map(|view| view.summary.done as usize);
    let counted = ending.detail.split(' ').next().and_then(|word| word.parse::<usize>().ok());
    assert_eq!(counted, done_count, "seed {seed}: {}", ending.detail);
    // Behind the semicolon is what the user left out.
    if ending.reason == RunReason::GoalMet && !ending.detail.contains(';') {
        assert_eq!(world.list_unverified(), Vec::<&str>::new(), "seed {seed}: {}", ending.detail);
    }
}

/// The world panics if a story is begun before what it needs is done, or after it is done.
#[test]
fn every_random_sprint_ends_within_its_limits_and_says_what_is_true() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..300 {
        let mut dice = Dice::new(seed);
        let mut plan = sample_plan();
        plan.settings.limits.tokens = 200 + dice.roll(3_000) as u64;
        plan.order.scope.max_stories = dice.roll_percent(20).then(|| 1 + dice.roll(6) as u32);
        let mut trial = TrialRun::new(plan.clone(), SprintWorld::random(seed), seed);
        let mut ended = false;
        for life in 0..200 {
            let kill_at = dice.roll_percent(30).then(|| dice.roll(40));
            match trial.run_workflow(ordered_workflow, kill_at) {
                TrialOutcome::Done(ending) => {
                    assert_sound(&trial, &plan, seed);
                    assert_true_end(&ending, &trial, seed);
                    outcomes.insert(ending.reason.code());
                    ended = true;
                    break;
                }
                TrialOutcome::Parked(ending) => {
                    assert_sound(&trial, &plan, seed);
                    outcomes.insert(ending.reason.code());
                    trial.waited_ms += 31 * 60_000;
                }
                TrialOutcome::Killed => {}
                unexpected => panic!("seed {seed}, life {life}: {unexpected:?}"),
            }
        }
        assert!(ended, "seed {seed} has not ended");
    }
    for expected in ["goal_met", "blocked", "stories_left", "environment", "tokens", "abandoned"] {
        assert!(outcomes.contains(expected), "{expected} is missing in {outcomes:?}");
    }
}
