//! Headless loops over a scripted workspace: what ends them, what they tell the agent, and what they leave behind.

use std::collections::BTreeSet;

use tribunal_engine::{
    answer::ChoiceKey,
    ids::CommitId,
    reason::{RunEnding, RunOutcome, RunReason},
};
use tribunal_testkit::{
    Dice, LoopScript, LoopWorld, ScriptedTurn, samples,
    trial::{TrialOutcome, TrialRun, ordered_workflow},
};
use tribunal_workflows::{
    development::{
        check_scripts::ChangedScript,
        checks::{CheckSpec, CheckTime, CommandLine, FailureAction},
        commits::{ConflictSides, IntegrateOutcome, RebaseConflict, RebaseOutcome},
        workspace::TargetBranch,
    },
    findings::finding::Severity,
    loop_run::{
        breaker::{BreakerPhase, OpenAction},
        event::LoopEvent,
        order::{LoopOrder, ReviewMode},
    },
    runs::{
        effect::{AskOutcome, Effect, Reply},
        kinds::WorkflowEvent,
        plan::RunPlan,
        records::{ProjectRecord, RecordKind},
        types::RunEvent,
        view::RunView,
    },
};

const DONE: &str = "All done.\n<promise>COMPLETE</promise>";

fn sample_plan() -> RunPlan<LoopOrder> {
    let mut settings = samples::sample_settings();
    settings.checks = vec![CheckSpec::new(CommandLine::from_shell_line("make test"))];
    settings.tasks.retry_after_ms = 0;
    let branch = TargetBranch { name: "main".into(), created_at: None };
    RunPlan { settings, order: LoopOrder::new("Build the thing.", branch) }
}

fn run_loop(plan: RunPlan<LoopOrder>, script: LoopScript) -> (TrialOutcome<RunEnding>, TrialRun<LoopWorld>) {
    let mut trial = TrialRun::new(plan, LoopWorld::new(script, 1), 1);
    (trial.run_workflow(ordered_workflow, None), trial)
}

fn done_ending(outcome: TrialOutcome<RunEnding>) -> RunEnding {
    match outcome {
        TrialOutcome::Done(ending) => ending,
        other => panic!("{other:?}"),
    }
}

fn parked_ending(outcome: TrialOutcome<RunEnding>) -> RunEnding {
    match outcome {
        TrialOutcome::Parked(ending) => ending,
        other => panic!("{other:?}"),
    }
}

fn loop_events(trial: &TrialRun<LoopWorld>) -> Vec<LoopEvent> {
    let events = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::Workflow(WorkflowEvent::Loop(event)) => Some(event.clone()),
        _ => None,
    });
    events.collect()
}

fn refusals(trial: &TrialRun<LoopWorld>) -> Vec<String> {
    let events = loop_events(trial).into_iter();
    events
        .filter_map(|event| if let LoopEvent::PromiseRefused { why, .. } = event { Some(why) } else { None })
        .collect()
}

#[test]
fn a_promise_with_changes_and_green_checks_ends_the_loop_and_lands() {
    let turns = vec![ScriptedTurn::working("first step"), ScriptedTurn::working(DONE)];
    let (outcome, trial) = run_loop(sample_plan(), LoopScript::with_turns(turns));
    let ending = done_ending(outcome);
    assert_eq!((ending.reason, ending.detail.as_str()), (RunReason::GoalMet, "the task is done after 2 iterations"));
    assert_eq!((trial.world.opened, trial.world.closed), (1, 1));
    assert!(trial.world.prompts[0].starts_with("Build the thing."), "{}", trial.world.prompts[0]);
    let view = RunView::from_entries(&trial.journal);
    let summary = &view.as_loop().unwrap().summary;
    assert_eq!((summary.iterations, summary.commits, summary.landed_on.as_deref()), (2, 1, Some("main")));
}

#[test]
fn a_promise_without_any_change_is_refused_and_said() {
    let turns = vec![ScriptedTurn::idle(DONE), ScriptedTurn::working(DONE)];
    let (outcome, trial) = run_loop(sample_plan(), LoopScript::with_turns(turns));
    assert_eq!(done_ending(outcome).reason, RunReason::GoalMet);
    assert_eq!(refusals(&trial), ["nothing was changed since the loop began"]);
    assert!(trial.world.prompts[1].contains("It is not: nothing was changed since the loop began."));
}

#[test]
fn a_promise_with_red_checks_is_refused_with_their_output() {
    let turns = vec![ScriptedTurn::working(DONE), ScriptedTurn::working(DONE)];
    let script = LoopScript { checks: vec![true, false, true], ..LoopScript::with_turns(turns) };
    let (outcome, trial) = run_loop(sample_plan(), script);
    assert_eq!(done_ending(outcome).detail, "the task is done after 2 iterations");
    assert_eq!(refusals(&trial), ["`make test` failed with exit code 2"]);
    assert!(trial.world.prompts[1].contains("A check fails: `make test` failed with exit code 2."));
}

#[test]
fn words_that_only_look_like_a_promise_end_nothing() {
    for answer in ["COMPLETE", "<promise>DONE</promise>", "`<promise>COMPLETE</promise>`", "LOOP_COMPLETE"] {
        let mut plan = sample_plan();
        plan.order.pacing.max_iterations = 2;
        let (outcome, _) = run_loop(plan, LoopScript::with_turns(vec![ScriptedTurn::working(answer)]));
        assert_eq!(parked_ending(outcome).reason, RunReason::Iterations, "{answer}");
    }
    let mut plan = sample_plan();
    plan.order.completion.accepts_word = true;
    let (outcome, _) =
        run_loop(plan, LoopScript::with_turns(vec![ScriptedTurn::working("Everything works. LOOP_COMPLETE")]));
    assert_eq!(done_ending(outcome).reason, RunReason::GoalMet);
}

#[test]
fn the_boxes_of_a_plan_decide() {
    let mut plan = sample_plan();
    plan.order.completion.plan_file = Some("@fix_plan.md".into());
    let ticking = |answer: &str| ScriptedTurn { ticks: 1, ..ScriptedTurn::working(answer) };
    let turns = vec![ticking(DONE), ticking("two"), ticking("three, and no promise")];
    let script = LoopScript { plan_total: 3, ..LoopScript::with_turns(turns) };
    let (outcome, trial) = run_loop(plan, script);
    assert_eq!(done_ending(outcome).detail, "the task is done after 3 iterations");
    assert_eq!(refusals(&trial), ["2 of 3 boxes in @fix_plan.md are not ticked"]);
    assert!(trial.world.prompts[1].contains("1 of 3 tasks of the plan are done; the next one is: task 2"));
}

#[test]
fn red_checks_before_the_first_iteration_cost_nothing() {
    let script = LoopScript { checks: vec![false], ..LoopScript::with_turns(vec![ScriptedTurn::working(DONE)]) };
    let (outcome, trial) = run_loop(sample_plan(), script);
    let ending = parked_ending(outcome);
    assert_eq!((ending.reason, ending.reason.exit_code()), (RunReason::Baseline, 3));
    assert!(ending.detail.contains("3 tests failed"), "{}", ending.detail);
    assert!(trial.world.prompts.is_empty());
    // With the option the loop begins all the same.
    let mut plan = sample_plan();
    plan.order.skip_baseline = true;
    let script = LoopScript { checks: vec![false, true], ..LoopScript::with_turns(vec![ScriptedTurn::working(DONE)]) };
    assert_eq!(done_ending(run_loop(plan, script).0).detail, "the task is done after 2 iterations");
}

#[test]
fn a_repaired_baseline_is_checked_again_by_a_resume() {
    let script = LoopScript { checks: vec![false, true], ..LoopScript::with_turns(vec![ScriptedTurn::working(DONE)]) };
    let (outcome, mut trial) = run_loop(sample_plan(), script);
    assert_eq!(parked_ending(outcome).reason, RunReason::Baseline);
    assert_eq!(done_ending(trial.run_workflow(ordered_workflow, None)).reason, RunReason::GoalMet);
    // The repair is on the branch, and only a new workspace has it.
    assert_eq!((trial.world.opened, trial.world.closed), (2, 2));
}

#[test]
fn a_check_that_is_to_be_repaired_begins_as_feedback_and_one_that_warns_ends_nothing() {
    let mut plan = sample_plan();
    plan.settings.checks[0].on_failure = FailureAction::Fix;
    let script = LoopScript { checks: vec![false, true], ..LoopScript::with_turns(vec![ScriptedTurn::working(DONE)]) };
    let (outcome, trial) = run_loop(plan.clone(), script);
    assert_eq!(done_ending(outcome).reason, RunReason::GoalMet);
    assert!(trial.world.prompts[0].contains("A check fails"));
    plan.settings.checks[0].on_failure = FailureAction::Warn;
    let script = LoopScript { checks: vec![false], ..LoopScript::with_turns(vec![ScriptedTurn::working(DONE)]) };
    assert_eq!(done_ending(run_loop(plan, script).0).reason, RunReason::GoalMet);
}

#[test]
fn a_check_on_completion_runs_only_then() {
    let mut plan = sample_plan();
    plan.settings.checks[0].when = CheckTime::Completion;
    let turns = vec![ScriptedTurn::working("a"), ScriptedTurn::working("b"), ScriptedTurn::working(DONE)];
    let (outcome, trial) = run_loop(plan, LoopScript::with_turns(turns));
    assert_eq!(done_ending(outcome).reason, RunReason::GoalMet);
    let check_count = trial
        .journal
        .iter()
        .filter(|entry| matches!(&entry.event, RunEvent::EffectStarted { effect: Effect::Checks(_), .. }));
    // Once before the first iteration and once for the promise.
    assert_eq!(check_count.count(), 2);
}

#[test]
fn every_fifth_iteration_is_committed() {
    let mut turns = vec![ScriptedTurn::working("a step"); 11];
    turns.push(ScriptedTurn::working(DONE));
    let (outcome, trial) = run_loop(sample_plan(), LoopScript::with_turns(turns));
    assert_eq!(done_ending(outcome).reason, RunReason::GoalMet);
    let committed: Vec<u32> = loop_events(&trial)
        .into_iter()
        .filter_map(|event| match event {
            LoopEvent::LoopCommitted { iteration, .. } => Some(iteration),
            _ => None,
        })
        .collect();
    assert_eq!(committed, [5, 10, 12]);
}

#[test]
fn three_idle_iterations_open_the_breaker_for_later_loops_too() {
    let (outcome, trial) = run_loop(sample_plan(), LoopScript::with_turns(vec![ScriptedTurn::idle("thinking")]));
    let ending = parked_ending(outcome);
    assert_eq!((ending.reason, ending.reason.exit_code()), (RunReason::BreakerOpen, 4));
    assert!(ending.detail.starts_with("3 iterations in a row changed nothing"), "{}", ending.detail);
    let records = trial.world.records.clone();
    assert!(records.list_records().iter().any(|stored| {
        stored.record.record_kind() == RecordKind::CircuitBreaker
            && matches!(&stored.record, ProjectRecord::CircuitBreaker(breaker) if breaker.phase == BreakerPhase::Open)
    }));
    // The next loop asks no agent, and makes no workspace.
    let script = LoopScript { records, ..LoopScript::with_turns(vec![ScriptedTurn::working(DONE)]) };
    let (outcome, mut second_trial) = run_loop(sample_plan(), script);
    assert_eq!(parked_ending(outcome).reason, RunReason::BreakerOpen);
    assert_eq!((second_trial.world.opened, second_trial.world.prompts.len()), (0, 0));
    // After the cool-down it may try.
    second_trial.waited_ms += 31 * 60_000;
    assert_eq!(done_ending(second_trial.run_workflow(ordered_workflow, None)).reason, RunReason::GoalMet);
}

#[test]
fn a_loop_that_waits_for_the_breaker_tries_once_more_by_itself() {
    let mut plan = sample_plan();
    plan.order.breaker.on_open = OpenAction::Wait;
    let mut turns = vec![ScriptedTurn::idle("thinking"); 3];
    turns.push(ScriptedTurn::working(DONE));
    let (outcome, trial) = run_loop(plan, LoopScript::with_turns(turns));
    assert_eq!(done_ending(outcome).reason, RunReason::GoalMet);
    assert!(trial.journal.iter().any(|entry| {
        matches!(&entry.event, RunEvent::EffectStarted { effect: Effect::AwaitReset(wait), .. }
            if wait.why.contains("3 iterations in a row changed nothing"))
    }));
}

#[test]
fn a_used_up_limit_keeps_the_work_and_asks() {
    let mut plan = sample_plan();
    plan.order.pacing.max_iterations = 2;
    let script =
        LoopScript { answers: vec!["more", "accept"], ..LoopScript::with_turns(vec![ScriptedTurn::working("a step")]) };
    let (outcome, trial) = run_loop(plan, script);
    // The first answer grants two more iterations, the second takes the work as it is.
    assert_eq!(done_ending(outcome).detail, "you accepted the work after 4 iterations");
    assert!(trial.world.prompts[2].contains("This is iteration 3 of at most 4"));
    assert!(loop_events(&trial).iter().any(|event| matches!(event, LoopEvent::LoopCommitted { iteration: 2, .. })));
}

#[test]
fn an_ended_loop_keeps_its_commits() {
    let mut plan = sample_plan();
    plan.order.pacing.max_iterations = 1;
    let script = LoopScript { answers: vec!["end"], ..LoopScript::with_turns(vec![ScriptedTurn::working("a step")]) };
    let (outcome, trial) = run_loop(plan, script);
    let ending = done_ending(outcome);
    assert_eq!(ending.reason.outcome(), Some(RunOutcome::Cancelled));
    assert_eq!(ending.detail, "its work is kept as commit commit1: take it with `git merge commit1`");
    assert_eq!(trial.world.closed, 1, "the commit is in the repository of the user");
    let kept = Some(CommitId::new("commit1"));
    assert!(loop_events(&trial).contains(&LoopEvent::LoopClosed { iteration: 1, kept }));
}

#[test]
fn work_on_a_branch_that_moved_is_rebased_and_checked_again() {
    let moved = IntegrateOutcome::Moved { tip: CommitId::new("newer") };
    let integrations = vec![moved.clone(), IntegrateOutcome::Integrated { checkout_moved: false }];
    let script = LoopScript { integrations, ..LoopScript::with_turns(vec![ScriptedTurn::working(DONE)]) };
    assert_eq!(done_ending(run_loop(sample_plan(), script).0).reason, RunReason::GoalMet);
    // A conflict is a question; the work stays.
    let sides = ConflictSides { file: "a.txt".into(), line: 3, on_branch: "mine\n".into(), in_work: String::new() };
    let rebase = Some(RebaseOutcome::Conflict(RebaseConflict {
        sides: vec![sides],
        ..RebaseConflict::from_paths(vec!["a.txt".into()])
    }));
    let script =
        LoopScript { integrations: vec![moved], rebase, ..LoopScript::with_turns(vec![ScriptedTurn::working(DONE)]) };
    let (outcome, trial) = run_loop(sample_plan(), script);
    let ending = parked_ending(outcome);
    assert_eq!((ending.reason, ending.reason.exit_code()), (RunReason::Blocked, 3));
    assert_eq!(ending.detail, "main has moved, and the work of the loop conflicts with it in a.txt");
    assert_eq!(trial.world.closed, 0);
    let view = RunView::from_entries(&trial.journal);
    let decision = view.open_decisions().next().unwrap();
    let sides_text = "a.txt:3: main has \"mine\\n\", and the work has nothing.";
    assert_eq!(decision.question, format!("{}.\n{sides_text}", ending.detail));
    let hand = decision.choices.iter().find(|choice| choice.key == ChoiceKey::Hand).unwrap();
    assert!(hand.label.contains("in a checkout of main run `git merge commit"), "{}", hand.label);
}

#[test]
fn work_whose_new_checks_cannot_run_lands_only_after_they_have() {
    let moved = IntegrateOutcome::Moved { tip: CommitId::new("newer") };
    let script = LoopScript {
        integrations: vec![moved, IntegrateOutcome::Integrated { checkout_moved: false }],
        // The checks run on the untouched workspace, after the turn and after the rebase.
        broken_checks: vec![2],
        ..LoopScript::with_turns(vec![ScriptedTurn::working(DONE)])
    };
    let (outcome, mut trial) = run_loop(sample_plan(), script);
    let ending = parked_ending(outcome);
    assert_eq!((ending.reason, ending.detail.as_str()), (RunReason::Environment, "no space left on device"));
    // The world refuses work that was rebased and not checked since.
    let ending = done_ending(trial.run_workflow(ordered_workflow, None));
    assert_eq!((ending.reason, ending.detail.as_str()), (RunReason::GoalMet, "the task is done after 1 iteration"));
}

#[test]
fn work_that_the_user_merged_by_hand_is_found_on_the_branch() {
    let moved = IntegrateOutcome::Moved { tip: CommitId::new("newer") };
    let script = LoopScript {
        answers: vec!["hand"],
        integrations: vec![moved, IntegrateOutcome::Integrated { checkout_moved: true }],
        rebase: Some(RebaseOutcome::Conflict(RebaseConflict::from_paths(vec!["a.txt".into()]))),
        ..LoopScript::with_turns(vec![ScriptedTurn::working(DONE)])
    };
    assert_eq!(done_ending(run_loop(sample_plan(), script).0).reason, RunReason::GoalMet);
}

#[test]
fn work_that_changes_a_check_script_waits_for_the_user() {
    let scripts = vec![ChangedScript { path: "check.sh".into(), command: CommandLine::from_shell_line("sh check.sh") }];
    let stopped = IntegrateOutcome::ChecksChanged { scripts };
    let integrated = IntegrateOutcome::Integrated { checkout_moved: true };
    let script_with = |answers: Vec<&'static str>| LoopScript {
        answers,
        integrations: vec![stopped.clone(), integrated.clone()],
        ..LoopScript::with_turns(vec![ScriptedTurn::working(DONE)])
    };
    let ending = parked_ending(run_loop(sample_plan(), script_with(vec![])).0);
    assert_eq!(ending.reason, RunReason::Blocked);
    assert_eq!(ending.detail, "the work changes check.sh, which the check `sh check.sh` runs");
    let ending = done_ending(run_loop(sample_plan(), script_with(vec!["approve"])).0);
    assert_eq!(ending.detail, "the task is done after 1 iteration");
    let (outcome, trial) = run_loop(sample_plan(), script_with(vec!["reject"]));
    assert_eq!(done_ending(outcome).detail, "the task is done after 2 iterations");
    assert!(
        trial.world.prompts[1].contains("the user wants this change undone: check.sh"),
        "{}",
        trial.world.prompts[1]
    );
    let ending = done_ending(run_loop(sample_plan(), script_with(vec!["keep"])).0);
    assert_eq!(ending.reason.outcome(), Some(RunOutcome::Cancelled));
}

#[test]
fn a_commit_hook_that_refuses_sends_the_agent_back() {
    let script = LoopScript { commit_refusals: 1, ..LoopScript::with_turns(vec![ScriptedTurn::working(DONE)]) };
    let (outcome, trial) = run_loop(sample_plan(), script);
    assert_eq!(done_ending(outcome).detail, "the task is done after 2 iterations");
    assert!(trial.world.prompts[1].contains("the commit hook `pre-commit` failed with exit code 1"));
}

#[test]
fn a_review_tells_the_next_iteration_what_it_found_until_one_succeeds() {
    let mut plan = sample_plan();
    plan.order.review.mode = ReviewMode::Enhanced;
    let mut turns = vec![ScriptedTurn::working("a step"); 5];
    turns.push(ScriptedTurn { fails: true, ..ScriptedTurn::default() });
    // A failed task is tried once more, which fails, too.
    turns.push(ScriptedTurn { fails: true, ..ScriptedTurn::default() });
    turns.extend([ScriptedTurn::working("fixed"), ScriptedTurn::working(DONE)]);
    let script = LoopScript { findings: vec![(Severity::High, "sum is wrong")], ..LoopScript::with_turns(turns) };
    let (outcome, trial) = run_loop(plan, script);
    assert_eq!(done_ending(outcome).reason, RunReason::GoalMet);
    let told: Vec<usize> = (0..trial.world.prompts.len())
        .filter(|index| trial.world.prompts[*index].contains("A review of the changes found problems"))
        .collect();
    // The sixth and its retry failed, so the seventh is told once more.
    assert_eq!(told, [5, 6, 7]);
}

fn list_warnings(trial: &TrialRun<LoopWorld>) -> Vec<&str> {
    let texts = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::Warned { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn what_no_review_has_seen_is_said_when_it_lands() {
    let land_after = |iterations: usize, mode: ReviewMode| {
        let mut plan = sample_plan();
        plan.order.review.mode = mode;
        let mut turns = vec![ScriptedTurn::working("a step"); iterations - 1];
        turns.push(ScriptedTurn::working(DONE));
        let (outcome, trial) = run_loop(plan, LoopScript::with_turns(turns));
        assert_eq!(done_ending(outcome).reason, RunReason::GoalMet);
        list_warnings(&trial)
            .into_iter()
            .filter(|text| text.contains("no review"))
            .map(str::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(land_after(2, ReviewMode::Enhanced), ["no review has looked at this work"]);
    assert_eq!(land_after(7, ReviewMode::Enhanced), ["no review has looked at what iterations 6 to 7 changed"]);
    assert_eq!(land_after(2, ReviewMode::Off), [""; 0]);
}

#[test]
fn tools_that_the_client_denied_are_a_warning() {
    let turns = vec![ScriptedTurn { denied: true, ..ScriptedTurn::working("a step") }, ScriptedTurn::working(DONE)];
    let (_, trial) = run_loop(sample_plan(), LoopScript::with_turns(turns));
    let denials = list_warnings(&trial).into_iter().filter(|text| text.starts_with("the client denied its agent "));
    assert_eq!(denials.count(), 1);
}

#[test]
fn the_mode_ultimate_reviews_when_a_task_of_the_plan_is_done_but_never_first() {
    let mut plan = sample_plan();
    plan.order.review.mode = ReviewMode::Ultimate;
    plan.order.completion.plan_file = Some("plan.md".into());
    let ticking = ScriptedTurn { ticks: 1, ..ScriptedTurn::working("ticked") };
    let turns = vec![
        ticking.clone(),
        ScriptedTurn::working("no tick"),
        ticking.clone(),
        ScriptedTurn::working("none"),
        ticking,
    ];
    let script = LoopScript { plan_total: 3, ..LoopScript::with_turns(turns) };
    let (outcome, trial) = run_loop(plan, script);
    assert_eq!(done_ending(outcome).reason, RunReason::GoalMet);
    let reviewed: Vec<u32> = loop_events(&trial)
        .into_iter()
        .filter_map(|event| if let LoopEvent::LoopReviewed { iteration, .. } = event { Some(iteration) } else { None })
        .collect();
    // The first tick was in iteration 1, which is never reviewed; its review is due in the next one.
    assert_eq!(reviewed, [2, 3]);
}

#[test]
fn killed_at_every_write_a_loop_comes_to_the_same_end_and_pays_nothing_twice() {
    let mut plan = sample_plan();
    plan.order.review.mode = ReviewMode::Enhanced;
    let script = || {
        let mut turns = vec![ScriptedTurn::working("a step"); 3];
        turns.push(ScriptedTurn::idle(DONE));
        turns.extend([ScriptedTurn::working("a step"), ScriptedTurn::working(DONE)]);
        LoopScript { checks: vec![true, true, true, true, false, true], ..LoopScript::with_turns(turns) }
    };
    let (outcome, reference) = run_loop(plan.clone(), script());
    let expected = done_ending(outcome);
    for kill_at in 0..reference.write_count() {
        let mut trial = TrialRun::new(plan.clone(), LoopWorld::new(script(), 1), 1);
        assert_eq!(trial.run_workflow(ordered_workflow, Some(kill_at)), TrialOutcome::Killed, "{kill_at}");
        let answered_before = count_answers(&trial);
        assert_eq!(done_ending(trial.run_workflow(ordered_workflow, None)).reason, expected.reason, "{kill_at}");
        // Only a turn whose answer was not recorded is asked for again.
        assert!(trial.world.prompts.len() <= count_answers(&trial) + 1, "{kill_at}: {answered_before}");
    }
}

fn count_answers(trial: &TrialRun<LoopWorld>) -> usize {
    let is_answer = |event: &RunEvent| {
        matches!(
            event,
            RunEvent::EffectFinished { reply: Reply::Ask(AskOutcome::Answered(_) | AskOutcome::Failed(_)), .. }
        )
    };
    trial.journal.iter().filter(|entry| is_answer(&entry.event)).count()
}

#[test]
fn every_loop_ends_within_its_limits_in_random_worlds() {
    let mut outcomes: BTreeSet<&str> = BTreeSet::new();
    for seed in 0..150 {
        let mut dice = Dice::new(seed);
        let mut plan = sample_plan();
        plan.order.pacing.max_iterations = 1 + dice.roll(12) as u32;
        plan.order.review.mode = [ReviewMode::Off, ReviewMode::Enhanced, ReviewMode::Ultimate][dice.roll(3)];
        plan.order.completion.plan_file = dice.roll_percent(40).then(|| "plan.md".to_string());
        plan.order.breaker.on_open = if dice.roll_percent(30) { OpenAction::Wait } else { OpenAction::Halt };
        let max_iterations = plan.order.pacing.max_iterations;
        let mut trial =
            TrialRun::new(plan, LoopWorld::new(LoopScript { plan_total: 4, ..LoopScript::default() }, seed), seed);
        let reasons = trial.run_random_lives(&mut dice, 60);
        outcomes.extend(reasons.unwrap_or_else(|problem| panic!("seed {seed}: {problem}")));
        let is_grant =
            |event: &RunEvent| matches!(event, RunEvent::DecisionAnswered { answer, .. } if answer.choice == "more");
        let grants = trial.journal.iter().filter(|entry| is_grant(&entry.event)).count() as u32;
        let iterations = RunView::from_entries(&trial.journal).as_loop().unwrap().summary.iterations;
        assert!(iterations <= max_iterations * (grants + 1), "seed {seed}: {iterations} iterations, {grants} grants");
    }
    for expected in ["goal_met", "iterations", "breaker_open", "baseline", "abandoned", "environment", "blocked"] {
        assert!(outcomes.contains(expected), "{expected} is missing in {outcomes:?}");
    }
}

#[test]
fn a_failure_of_another_content_is_forgotten_with_a_content_that_has_passed() {
    // The second turn goes wrong, the third goes back to what had passed before.
    let turns = vec![
        ScriptedTurn::working("first"),
        ScriptedTurn::working("wrong"),
        ScriptedTurn { reverts: true, ..ScriptedTurn::idle(DONE) },
    ];
    let script = LoopScript { checks: vec![true, true, false], ..LoopScript::with_turns(turns) };
    let (outcome, trial) = run_loop(sample_plan(), script);
    assert_eq!(done_ending(outcome).detail, "the task is done after 3 iterations");
    assert_eq!(refusals(&trial), [""; 0]);
}

#[test]
fn accepted_work_with_red_checks_is_not_called_a_promise() {
    let mut plan = sample_plan();
    plan.order.pacing.max_iterations = 1;
    let turns = vec![ScriptedTurn::working("a step")];
    let script = LoopScript { checks: vec![true, false], answers: vec!["accept"], ..LoopScript::with_turns(turns) };
    let (outcome, trial) = run_loop(plan, script);
    assert_eq!(parked_ending(outcome).reason, RunReason::Iterations);
    assert_eq!(refusals(&trial), [""; 0]);
    let warning = "the work cannot land: `make test` failed with exit code 2 on what is to land";
    assert!(trial.journal.iter().any(|entry| matches!(&entry.event, RunEvent::Warned { text } if text == warning)));
}
