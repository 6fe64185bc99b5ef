//! Stories over a scripted workspace: what counts as done, who is asked, what is charged, and what lands.

use std::collections::BTreeSet;

use tribunal_engine::{
    answer::ChoiceKey,
    ids::CommitId,
    reason::{RunEnding, RunReason},
};
use tribunal_testkit::{
    Dice, ReviewEnd, SessionDeed, StoryScript, StoryWorld, samples,
    trial::{TrialOutcome, TrialRun, ordered_workflow},
};
use tribunal_workflows::{
    development::{
        checks::{CheckSpec, ChecksOutcome, CommandLine},
        commits::IntegrateOutcome,
        parking::{ParkMode, ParkOutcome},
        workspace::{DevelopmentPlace, TargetBranch},
    },
    runs::{
        effect::{Effect, Reply},
        kinds::WorkflowEvent,
        plan::RunPlan,
        settings::{AgentSpec, DriverSpec},
        types::RunEvent,
        view::RunView,
    },
    story::{
        event::{SessionOutcome, StoryEvent},
        facts::{StoryName, StoryStage},
        order::{StoryGoal, StoryOrder},
    },
    tasks::instructions::TaskOpening,
};

fn sample_plan() -> RunPlan<StoryOrder> {
    let mut settings = samples::sample_settings();
    settings.agents.push(AgentSpec::new("second", DriverSpec::Command { argv: vec!["second".into()] }));
    settings.checks = vec![CheckSpec::new(CommandLine::from_shell_line("make test"))];
    settings.tasks.retry_after_ms = 0;
    let story = StoryName {
        board: Some("out/sprint-status.yaml".into()),
        bookkeeping: vec!["out".into()],
        ..StoryName::from_key("1-1-a")
    };
    let mut order = StoryOrder::new(story, TargetBranch { name: "main".into(), created_at: None });
    order.steps.develop = TaskOpening { commands: Vec::new(), text: "Develop it.".into() };
    RunPlan { settings, order }
}

fn with_sessions(sessions: &[SessionDeed]) -> StoryScript {
    StoryScript { sessions: sessions.to_vec(), ..StoryScript::default() }
}

fn run_story(plan: RunPlan<StoryOrder>, script: StoryScript) -> (TrialOutcome<RunEnding>, TrialRun<StoryWorld>) {
    let mut trial = TrialRun::new(plan, StoryWorld::new(script, 1), 1);
    (trial.run_workflow(ordered_workflow, None), trial)
}

fn reason_of(outcome: &TrialOutcome<RunEnding>) -> RunReason {
    match outcome {
        TrialOutcome::Done(ending) | TrialOutcome::Parked(ending) => ending.reason,
        other => panic!("{other:?}"),
    }
}

fn story_events(trial: &TrialRun<StoryWorld>) -> Vec<StoryEvent> {
    let events = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::Workflow(WorkflowEvent::Story(event)) => Some(event.clone()),
        _ => None,
    });
    events.collect()
}

fn session_outcomes(trial: &TrialRun<StoryWorld>) -> Vec<SessionOutcome> {
    let outcomes = story_events(trial).into_iter().filter_map(|event| match event {
        StoryEvent::StorySession { report, .. } => Some(report.outcome),
        _ => None,
    });
    outcomes.collect()
}

#[test]
fn honest_work_is_reviewed_and_lands() {
    let (outcome, trial) = run_story(sample_plan(), with_sessions(&[SessionDeed::Honest]));
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
    assert_eq!(session_outcomes(&trial), [SessionOutcome::Completed]);
    let view = RunView::from_entries(&trial.journal);
    let summary = &view.as_story().unwrap().summary;
    assert_eq!((summary.sessions, summary.reviews.len(), summary.landed_on.as_deref()), (1, 1, Some("main")));
    assert_eq!(trial.world.written.last().map(|write| write.stage), Some(StoryStage::Done));
    assert_eq!(trial.world.closed, 1);
}

#[test]
fn a_lying_agent_is_told_what_is_missing_and_another_one_is_asked() {
    use SessionDeed::{Honest, MovesBoard, NoTests, Nothing, TicksOnly};
    let (outcome, trial) = run_story(sample_plan(), with_sessions(&[Nothing, TicksOnly, MovesBoard, NoTests, Honest]));
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
    assert_eq!(session_outcomes(&trial)[..4], [SessionOutcome::Incomplete; 4]);
    assert_eq!(trial.world.agents, ["sample", "second", "sample", "second", "sample"]);
    let prompts = &trial.world.prompts;
    assert!(!prompts[0].contains("The last session left these problems"), "{}", prompts[0]);
    assert!(prompts[1].contains("- nothing was changed since the work began"), "{}", prompts[1]);
    assert!(prompts[2].contains("- tasks are ticked, but the file list is empty"), "{}", prompts[2]);
    assert!(prompts[4].contains("- no test and no reason for AC1"), "{}", prompts[4]);
}

#[test]
fn every_outcome_charges_what_it_should() {
    use SessionDeed::{Crashes, FinishesAndCrashes, GoesSilent, Honest, NeverActs, TimesOut};
    let (outcome, trial) = run_story(sample_plan(), with_sessions(&[FinishesAndCrashes]));
    assert_eq!(reason_of(&outcome), RunReason::GoalMet, "work that is finished counts, however its session ended");
    assert_eq!(session_outcomes(&trial), [SessionOutcome::Completed]);
    for (deed, expected) in
        [(Crashes, SessionOutcome::Crashed), (GoesSilent, SessionOutcome::Stuck), (TimesOut, SessionOutcome::TimedOut)]
    {
        // What a session left is looked at before another one is paid for, so each of them counts.
        let (_, trial) = run_story(sample_plan(), with_sessions(&[deed, deed, Honest]));
        assert_eq!(session_outcomes(&trial), [expected, expected, SessionOutcome::Completed], "{deed:?}");
    }
    let (outcome, trial) = run_story(sample_plan(), with_sessions(&[NeverActs]));
    assert_eq!(reason_of(&outcome), RunReason::Environment);
    assert_eq!(session_outcomes(&trial), [SessionOutcome::NeverActive]);
}

#[test]
fn a_story_that_is_stuck_says_what_its_last_session_failed_of() {
    let mut plan = sample_plan();
    plan.order.pacing.max_cycles = 1;
    let (outcome, _) = run_story(plan, with_sessions(&[SessionDeed::Crashes]));
    let TrialOutcome::Parked(ending) = &outcome else { panic!("{outcome:?}") };
    assert_eq!(ending.reason, RunReason::Blocked);
    assert!(ending.detail.ends_with("; the last session failed: the agent failed"), "{}", ending.detail);
}

#[test]
fn failing_checks_send_the_story_back_with_their_output() {
    let script = StoryScript { checks: vec![true, false, true], ..with_sessions(&[SessionDeed::Honest]) };
    let (outcome, trial) = run_story(sample_plan(), script);
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
    assert_eq!(session_outcomes(&trial), [SessionOutcome::Incomplete, SessionOutcome::Completed]);
    assert!(trial.world.prompts[1].contains("`make test` failed with exit code 2"), "{}", trial.world.prompts[1]);
}

#[test]
fn a_story_that_owes_something_lands_and_is_done_when_the_user_says_so() {
    let script = StoryScript { owed: vec!["buy the domain"], ..with_sessions(&[SessionDeed::Honest]) };
    let (outcome, mut trial) = run_story(sample_plan(), script);
    let TrialOutcome::Parked(ending) = &outcome else { panic!("{outcome:?}") };
    assert_eq!(ending.reason, RunReason::Blocked);
    assert!(ending.detail.ends_with("only you can do: buy the domain"), "{}", ending.detail);
    assert_eq!(trial.world.written.last().map(|write| write.stage), Some(StoryStage::Review));
    // A resume without an answer asks the same again, and nothing lands twice.
    assert_eq!(reason_of(&trial.run_workflow(ordered_workflow, None)), RunReason::Blocked);
    assert_eq!(trial.world.written.len(), 1);
    trial.world.add_answer("done");
    assert_eq!(reason_of(&trial.run_workflow(ordered_workflow, None)), RunReason::GoalMet);
    let last_write = trial.world.written.last().unwrap();
    assert_eq!(
        (last_write.stage, last_write.confirmed.as_slice()),
        (StoryStage::Done, &["buy the domain".to_string()][..])
    );
    let landed = story_events(&trial).into_iter().filter_map(|event| match event {
        StoryEvent::StoryLanded { commit, .. } => Some(commit),
        _ => None,
    });
    let landed: Vec<CommitId> = landed.collect();
    assert_eq!((landed.len(), trial.world.closed), (2, 1));
    // The first commit has the work.
    let view = RunView::from_entries(&trial.journal);
    let summary = &view.as_story().unwrap().summary;
    assert_eq!((summary.commit.as_ref(), summary.confirmation.as_ref()), (landed.first(), landed.last()));
}

#[test]
fn what_a_story_owes_can_be_left() {
    let script =
        StoryScript { owed: vec!["buy the domain"], answers: vec!["skip"], ..with_sessions(&[SessionDeed::Honest]) };
    let (outcome, trial) = run_story(sample_plan(), script);
    assert_eq!(reason_of(&outcome), RunReason::Abandoned);
    assert_eq!(trial.world.written.last().map(|write| write.stage), Some(StoryStage::Review));
    assert_eq!(trial.world.closed, 1);
}

#[test]
fn a_story_in_review_is_reviewed_and_not_developed_again() {
    let mut plan = sample_plan();
    plan.order.files.begun_at = Some(CommitId::new("earlier"));
    let script = StoryScript { is_developed: true, ..with_sessions(&[SessionDeed::Nothing]) };
    let (outcome, trial) = run_story(plan.clone(), script);
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
    assert_eq!(trial.world.prompts.len(), 0);
    // What files and git do not show is developed first.
    let (outcome, trial) = run_story(plan, with_sessions(&[SessionDeed::Honest]));
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
    assert!(
        trial.world.prompts[0].contains("- nothing was changed since the work began"),
        "{}",
        trial.world.prompts[0]
    );
}

#[test]
fn a_refusing_hook_sends_the_story_back() {
    let script = StoryScript { commit_refusals: 1, ..with_sessions(&[SessionDeed::Honest]) };
    let (outcome, trial) = run_story(sample_plan(), script);
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
    assert!(trial.world.prompts[1].contains("the commit hook refused the work"), "{}", trial.world.prompts[1]);
}

#[test]
fn after_the_last_session_the_user_decides() {
    let stuck = |answers: Vec<&'static str>, last: SessionDeed| {
        let mut sessions = vec![SessionDeed::Nothing; 5];
        sessions.push(last);
        run_story(sample_plan(), StoryScript { answers, ..with_sessions(&sessions) })
    };
    let (outcome, trial) = stuck(Vec::new(), SessionDeed::Nothing);
    assert_eq!(reason_of(&outcome), RunReason::Blocked);
    assert_eq!(trial.world.prompts.len(), 5);
    let (outcome, trial) = stuck(vec!["agent"], SessionDeed::Honest);
    assert_eq!((reason_of(&outcome), trial.world.prompts.len()), (RunReason::GoalMet, 6));
    let (outcome, trial) = stuck(vec!["skip"], SessionDeed::Nothing);
    assert_eq!((reason_of(&outcome), trial.world.prompts.len()), (RunReason::Abandoned, 5));
    // By hand no agent is asked: the work is only looked at again. Here the user has done nothing.
    let (outcome, trial) = stuck(vec!["hand"], SessionDeed::Honest);
    assert_eq!((reason_of(&outcome), trial.world.prompts.len()), (RunReason::Blocked, 5));
    assert_eq!(session_outcomes(&trial)[5], SessionOutcome::Incomplete, "the work of the user is verified, too");
}

/// Counts the commits that get a ref of their own.
fn count_kept_commits(trial: &TrialRun<StoryWorld>) -> usize {
    let is_kept = |event: &RunEvent| matches!(event, RunEvent::EffectStarted { effect: Effect::Commit(work), .. } if work.keeps_ref);
    trial.journal.iter().filter(|entry| is_kept(&entry.event)).count()
}

#[test]
fn work_by_hand_that_does_not_do_is_asked_about_again_and_kept_before_an_agent_works() {
    let script = StoryScript { answers: vec!["hand"], ..with_sessions(&[SessionDeed::Nothing]) };
    let (outcome, mut trial) = run_story(sample_plan(), script);
    let TrialOutcome::Parked(ending) = &outcome else { panic!("{outcome:?}") };
    let expected = "your work does not complete the step `develop` yet: nothing was changed since the work began";
    assert!(ending.detail.starts_with(expected), "{}", ending.detail);
    let view = RunView::from_entries(&trial.journal);
    let question = view.open_decisions().next().unwrap();
    assert!(question.question.contains(expected), "{}", question.question);
    let agent = question.choices.iter().find(|choice| choice.key == ChoiceKey::Agent).unwrap();
    assert_eq!(agent.label, "have agents try again, in up to 5 more sessions");
    assert_eq!((trial.world.prompts.len(), count_kept_commits(&trial)), (5, 1));
    // To resume is no answer.
    assert_eq!(reason_of(&trial.run_workflow(ordered_workflow, None)), RunReason::Blocked);
    assert_eq!(trial.world.prompts.len(), 5);
    trial.world.add_answer("agent");
    assert_eq!(reason_of(&trial.run_workflow(ordered_workflow, None)), RunReason::Blocked);
    assert_eq!((trial.world.prompts.len(), count_kept_commits(&trial)), (10, 2));
}

#[test]
fn critical_findings_keep_a_story_from_landing_and_the_others_become_follow_ups() {
    let reviewed = |reviews: &[ReviewEnd], answers: Vec<&'static str>| {
        let script = StoryScript { reviews: reviews.to_vec(), answers, ..with_sessions(&[SessionDeed::Honest]) };
        run_story(sample_plan(), script)
    };
    let (outcome, trial) = reviewed(&[ReviewEnd::Deferred], Vec::new());
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
    let follow_ups = &trial.world.written.last().unwrap().follow_ups;
    assert_eq!(follow_ups.iter().map(|item| item.describe()).collect::<Vec<_>>(), ["medium (src/a.rs:1): it leaks"]);
    let (outcome, trial) = reviewed(&[ReviewEnd::Critical], Vec::new());
    assert_eq!(reason_of(&outcome), RunReason::Blocked);
    assert_eq!(trial.world.written.len(), 0, "nothing is marked as done");
    // Another agent is told what the review found; then the panel looks again.
    let (outcome, trial) = reviewed(&[ReviewEnd::Critical, ReviewEnd::Clean], vec!["agent"]);
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
    assert!(trial.world.prompts[1].contains("- critical (src/a.rs:1): it leaks"), "{}", trial.world.prompts[1]);
    // A review that waits for the user is continued after the answer.
    let (outcome, _) = reviewed(&[ReviewEnd::Waiting, ReviewEnd::Clean], Vec::new());
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
}

#[test]
fn a_story_file_is_written_first_only_if_there_is_none() {
    let mut plan = sample_plan();
    plan.order.steps.create = Some(TaskOpening { commands: Vec::new(), text: "Write it.".into() });
    let script = StoryScript { lacks_file: true, ..with_sessions(&[SessionDeed::Honest]) };
    let (outcome, trial) = run_story(plan.clone(), script);
    assert_eq!((reason_of(&outcome), trial.world.prompts.len()), (RunReason::GoalMet, 2));
    assert!(trial.world.prompts[0].contains("Write only the story's file"), "{}", trial.world.prompts[0]);
    let (_, trial) = run_story(plan, with_sessions(&[SessionDeed::Honest]));
    assert_eq!(trial.world.prompts.len(), 1);
}

#[test]
fn a_branch_that_moved_gets_the_story_after_a_rebase_and_new_checks() {
    let moved = IntegrateOutcome::Moved { tip: CommitId::new("other") };
    let integrations = vec![moved, IntegrateOutcome::Integrated { checkout_moved: true }];
    let script = StoryScript { integrations, ..with_sessions(&[SessionDeed::Honest]) };
    let (outcome, _) = run_story(sample_plan(), script);
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
}

#[test]
fn work_whose_new_checks_cannot_run_lands_only_after_they_have() {
    let moved = IntegrateOutcome::Moved { tip: CommitId::new("other") };
    let integrations = vec![moved, IntegrateOutcome::Integrated { checkout_moved: true }];
    // The checks run on the untouched workspace, after the session, after the review and after the rebase.
    let script = StoryScript { integrations, broken_checks: vec![2], ..with_sessions(&[SessionDeed::Honest]) };
    let mut trial = TrialRun::new(sample_plan(), StoryWorld::new(script, 1), 1);
    let outcome = trial.run_workflow(ordered_workflow, None);
    let TrialOutcome::Parked(ending) = &outcome else { panic!("{outcome:?}") };
    assert_eq!((ending.reason, ending.detail.as_str()), (RunReason::Environment, "no space left on device"));
    assert!(trial.journal.iter().any(|entry| format!("{:?}", entry.event).contains("rebased")), "it broke too early");
    assert_eq!(reason_of(&trial.run_workflow(ordered_workflow, None)), RunReason::GoalMet);
    let has_failed_first = |failed: Vec<bool>| failed.last() == Some(&false) && failed.contains(&true);
    let checks = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::EffectFinished { reply: Reply::Checks(outcome), .. } => {
            Some(matches!(outcome, ChecksOutcome::Failed { .. }))
        }
        _ => None,
    });
    assert!(has_failed_first(checks.collect()), "they ran once more");
}

#[test]
fn a_merge_by_hand_that_lacks_the_tests_is_asked_about_and_starts_no_agent() {
    let merged = |merges: &[bool], answers: &[&'static str]| {
        let moved = IntegrateOutcome::Moved { tip: CommitId::new("other") };
        let integrations = vec![moved, IntegrateOutcome::Integrated { checkout_moved: true }];
        let (merges, answers) = (merges.to_vec(), answers.to_vec());
        run_story(sample_plan(), StoryScript { integrations, merges, answers, ..with_sessions(&[SessionDeed::Honest]) })
    };
    let (outcome, _) = merged(&[true], &[]);
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
    let (outcome, trial) = merged(&[false], &[]);
    let TrialOutcome::Parked(ending) = &outcome else { panic!("{outcome:?}") };
    let expected =
        "your merge does not have all of the work: no test and no reason for AC1; repair that with a commit on main";
    assert_eq!((ending.reason, ending.detail.as_str()), (RunReason::Blocked, expected));
    assert_eq!(RunView::from_entries(&trial.journal).open_decisions().count(), 1);
    let (outcome, trial) = merged(&[false, false, true], &["hand", "hand"]);
    assert_eq!((reason_of(&outcome), trial.world.prompts.len()), (RunReason::GoalMet, 1));
}

#[test]
fn the_user_is_warned_once_when_most_of_the_budget_is_used() {
    let mut plan = sample_plan();
    // Every session uses 120 tokens.
    plan.settings.limits.tokens = 350;
    let (_, trial) = run_story(plan, with_sessions(&[SessionDeed::Nothing]));
    let is_warning = |event: &RunEvent| matches!(event, RunEvent::Warned { text } if text == "80 % of the tokens for this story is used");
    assert_eq!(trial.journal.iter().filter(|entry| is_warning(&entry.event)).count(), 1);
}

#[test]
fn a_question_about_a_limit_is_withdrawn_when_the_limit_was_raised_by_other_means() {
    let mut plan = sample_plan();
    // Every session uses 120 tokens.
    plan.settings.limits.tokens = 200;
    let sessions = [SessionDeed::Nothing, SessionDeed::Nothing, SessionDeed::Honest];
    let (outcome, mut trial) = run_story(plan, with_sessions(&sessions));
    let count_open = |trial: &TrialRun<StoryWorld>| RunView::from_entries(&trial.journal).open_decisions().count();
    assert_eq!((reason_of(&outcome), count_open(&trial)), (RunReason::Tokens, 1));
    // A resume alone raises nothing, so the question stays.
    assert_eq!(reason_of(&trial.run_workflow(ordered_workflow, None)), RunReason::Tokens);
    assert_eq!(count_open(&trial), 1);
    trial.plan.settings.limits.tokens = 100_000;
    assert_eq!(reason_of(&trial.run_workflow(ordered_workflow, None)), RunReason::GoalMet);
    assert_eq!(count_open(&trial), 0);
}

#[test]
fn a_review_that_fails_by_its_environment_is_continued_later() {
    let script = StoryScript {
        reviews: vec![ReviewEnd::Unreachable, ReviewEnd::Clean],
        ..with_sessions(&[SessionDeed::Honest])
    };
    let mut trial = TrialRun::new(sample_plan(), StoryWorld::new(script, 1), 1);
    assert_eq!(reason_of(&trial.run_workflow(ordered_workflow, None)), RunReason::Environment);
    assert_eq!(reason_of(&trial.run_workflow(ordered_workflow, None)), RunReason::GoalMet);
    assert_eq!(trial.world.prompts.len(), 1, "no further session was paid for");
}

#[test]
fn a_story_can_stop_at_review() {
    let mut plan = sample_plan();
    plan.order.goal = StoryGoal::Review;
    plan.order.review.mode = tribunal_workflows::story::order::StoryReviewMode::Off;
    let mut trial = TrialRun::new(plan, StoryWorld::new(with_sessions(&[SessionDeed::Honest]), 1), 1);
    trial.world.expects_no_review();
    assert_eq!(reason_of(&trial.run_workflow(ordered_workflow, None)), RunReason::GoalMet);
    assert_eq!(trial.world.written.last().map(|write| write.stage), Some(StoryStage::Review));
}

/// Counts the effects that move work out of the checkout and back.
fn count_moves(trial: &TrialRun<StoryWorld>) -> (usize, usize) {
    let modes: Vec<ParkMode> = trial
        .journal
        .iter()
        .filter_map(|entry| match &entry.event {
            RunEvent::EffectStarted { effect: Effect::ParkWork(park), .. } => Some(park.mode),
            _ => None,
        })
        .collect();
    let parked = modes.iter().filter(|mode| **mode == ParkMode::Park).count();
    (parked, modes.len() - parked)
}

fn plan_in_place() -> RunPlan<StoryOrder> {
    let mut plan = sample_plan();
    plan.order.place = DevelopmentPlace::InPlace;
    plan.order.pacing.max_cycles = 1;
    plan
}

/// The world panics if anything uses the files while the work is parked.
#[test]
fn work_in_the_checkout_is_parked_while_the_story_waits() {
    let sessions = [SessionDeed::NoTests, SessionDeed::Honest];
    let answered =
        |answers: Vec<&'static str>| run_story(plan_in_place(), StoryScript { answers, ..with_sessions(&sessions) });
    let (outcome, trial) = answered(Vec::new());
    assert_eq!((reason_of(&outcome), count_moves(&trial)), (RunReason::Blocked, (1, 0)));
    let (outcome, trial) = answered(vec!["agent"]);
    assert_eq!((reason_of(&outcome), count_moves(&trial)), (RunReason::GoalMet, (1, 1)));
    let (outcome, trial) = answered(vec!["skip"]);
    assert_eq!((reason_of(&outcome), count_moves(&trial)), (RunReason::Abandoned, (1, 0)));
    let (_, trial) = run_story(sample_plan(), with_sessions(&[SessionDeed::Nothing]));
    assert_eq!(count_moves(&trial), (0, 0), "a clone is never parked");
}

#[test]
fn work_that_cannot_be_put_back_waits() {
    let paths = || vec![String::from("a.txt")];
    let returned = |outcome: ParkOutcome, answers: Vec<&'static str>| {
        let returns = vec![outcome];
        let sessions = with_sessions(&[SessionDeed::NoTests, SessionDeed::Honest]);
        run_story(plan_in_place(), StoryScript { answers, returns, ..sessions })
    };
    let (outcome, mut trial) = returned(ParkOutcome::InTheWay { paths: paths() }, vec!["agent"]);
    let TrialOutcome::Parked(ending) = &outcome else { panic!("{outcome:?}") };
    assert_eq!((ending.reason, ending.reason.exit_code()), (RunReason::CheckoutNotReady, 3));
    assert!(ending.detail.contains("in the way of the parked work: a.txt;"), "{}", ending.detail);
    assert_eq!(RunView::from_entries(&trial.journal).open_decisions().count(), 0, "a resume is enough");
    assert_eq!(reason_of(&trial.run_workflow(ordered_workflow, None)), RunReason::GoalMet);
    let conflict = || ParkOutcome::Conflict { paths: paths() };
    let (outcome, trial) = returned(conflict(), vec!["agent"]);
    assert_eq!((reason_of(&outcome), count_moves(&trial)), (RunReason::Blocked, (1, 1)));
    let (outcome, _) = returned(conflict(), vec!["agent", "keep"]);
    assert_eq!(reason_of(&outcome), RunReason::Abandoned);
    let (outcome, _) = returned(conflict(), vec!["agent", "retry"]);
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
    // What the user merged is verified, not believed: tests are still missing.
    let (outcome, trial) = returned(conflict(), vec!["agent", "hand"]);
    assert_eq!(reason_of(&outcome), RunReason::Blocked);
    assert_eq!(session_outcomes(&trial), [SessionOutcome::Incomplete; 2]);
}

#[test]
fn killed_at_every_write_a_story_comes_to_the_same_end() {
    let script = || StoryScript {
        reviews: vec![ReviewEnd::Deferred],
        ..with_sessions(&[SessionDeed::Nothing, SessionDeed::Honest])
    };
    let (outcome, reference) = run_story(sample_plan(), script());
    assert_eq!(reason_of(&outcome), RunReason::GoalMet);
    for kill_at in 0..reference.write_count() {
        let mut trial = TrialRun::new(sample_plan(), StoryWorld::new(script(), 1), 1);
        assert_eq!(trial.run_workflow(ordered_workflow, Some(kill_at)), TrialOutcome::Killed, "{kill_at}");
        let outcome = trial.run_workflow(ordered_workflow, None);
        assert_eq!(reason_of(&outcome), RunReason::GoalMet, "{kill_at}");
    }
}

/// The world panics if work lands that is not done, not checked or not reviewed.
#[test]
fn every_story_ends_within_its_limits_in_random_worlds_and_never_lands_unverified() {
    let mut outcomes: BTreeSet<&str> = BTreeSet::new();
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let mut plan = sample_plan();
        plan.order.pacing.max_cycles = 1 + dice.roll(5) as u32;
        plan.order.place = if dice.roll_percent(50) { DevelopmentPlace::InPlace } else { DevelopmentPlace::Clone };
        // Every session uses 120 tokens.
        plan.settings.limits.tokens = 300 + dice.roll(3_000) as u64;
        let lacks_file = dice.roll_percent(40);
        if lacks_file {
            plan.order.steps.create = Some(TaskOpening::default());
        }
        let script = StoryScript { lacks_file, ..StoryScript::default() };
        let mut trial = TrialRun::new(plan, StoryWorld::new(script, seed), seed);
        let reasons = trial.run_random_lives(&mut dice, 120);
        outcomes.extend(reasons.unwrap_or_else(|problem| panic!("seed {seed}: {problem}")));
    }
    for expected in ["goal_met", "blocked", "abandoned", "environment", "baseline", "tokens"] {
        assert!(outcomes.contains(expected), "{expected} is missing in {outcomes:?}");
    }
}
