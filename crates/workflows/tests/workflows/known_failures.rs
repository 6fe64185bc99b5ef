//! Failures of reviews that are known from other tools. Each test is a scenario that must not happen here.

use tribunal_engine::{
    effect::Sleep,
    fault::FaultKind,
    files::Hunk,
    ids::FindingId,
    reason::{RunOutcome, RunReason},
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{
        self, failed_task_reply, findings_reply, fixes_reply, flawed_text, frozen_reply, landed_reply, raised_flaw,
    },
    trial::{TrialOutcome, ordered_workflow as workflow, run_first_review as live},
};
use tribunal_workflows::{
    findings::finding::{FindingStatus, Severity},
    review::{event::ReviewEvent, level::ReviewLevel, order::ReviewOrder},
    runs::{
        effect::{AskOutcome, Effect, Reply},
        plan::RunPlan,
        types::{RunEvent, find_event},
    },
    tasks::{brief::AnswerContent, claims::ClaimStatus},
};

const F1: FindingId = FindingId(1);

fn single_reviewer_plan() -> RunPlan<ReviewOrder> {
    samples::sample_plan().with_change(|plan| plan.order.level = Some(ReviewLevel::Minimal))
}

fn world_raising_one() -> ScriptedWorld {
    ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-1/review/adversarial", findings_reply(vec![raised_flaw(1, Severity::High)]))
}

/// Returns an answer that has text but no list of findings.
fn prose_reply() -> Reply {
    let mut reply = findings_reply(vec![]);
    if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
        answer.content = AnswerContent::Unreadable { message: "there is no list of findings".into() };
    }
    reply
}

// Tests of completion.

#[test]
fn claiming_a_fix_without_a_change_leaves_the_finding_open() {
    // The fixer claims that everything is done and has changed nothing.
    let mut plan = single_reviewer_plan();
    plan.order.limits.fix_iterations = 2;
    let world = world_raising_one()
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], false))
        .reply_on("round-1/fix-2/fix/1", prose_reply())
        .reply_on("round-1/fix-2/fix/1/again", prose_reply());
    let (ending, view, _) = live(plan, world);
    assert_eq!(ending.reason, RunReason::FixIterations);
    assert_eq!(view.as_review().unwrap().findings[&F1].status, FindingStatus::Open);
}

#[test]
fn an_answer_without_a_list_is_not_a_dry_pass() {
    let (ending, _, trial) = live(
        single_reviewer_plan(),
        ScriptedWorld::default()
            .reply_on("round-1/freeze", frozen_reply(&flawed_text(0)))
            .reply_on("round-1/review/adversarial", prose_reply())
            .reply_on("round-1/review/adversarial/again", prose_reply()),
    );
    assert_eq!(ending.reason.outcome(), Some(RunOutcome::Failed), "no agent answered, so there was no round");
    assert!(
        !trial
            .journal
            .iter()
            .any(|entry| matches!(find_event::<ReviewEvent>(&entry.event), Some(ReviewEvent::RoundEnded { .. })))
    );
}

#[test]
fn a_pass_that_half_of_the_panel_answered_is_not_dry() {
    let with_silent_seat = |world: ScriptedWorld, round: u32, role: &str| {
        let key = format!("round-{round}/review/{role}");
        world
            .reply_on(&format!("{key}/again"), failed_task_reply(FaultKind::TimedOut))
            .reply_on(&key, failed_task_reply(FaultKind::TimedOut))
    };
    let mut world = ScriptedWorld::default();
    for round in 1..=3 {
        world = world
            .reply_on(&format!("round-{round}/freeze"), frozen_reply(&flawed_text(0)))
            .reply_on(&format!("round-{round}/review/adversarial"), findings_reply(vec![]));
        world = with_silent_seat(with_silent_seat(world, round, "party"), round, "elicitation");
    }
    let mut plan = samples::sample_plan();
    plan.settings.limits.failures = 50;
    let (ending, _, _) = live(plan, world);
    assert_eq!(ending.reason, RunReason::Rounds, "{ending:?}");
}

// Tests of loop control.

#[test]
fn reviewers_that_keep_finding_minor_issues_do_not_keep_a_review_going() {
    let text = flawed_text(9);
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&text))
        .reply_on(
            "round-1/review/adversarial",
            findings_reply((1..=9).map(|flaw_number| raised_flaw(flaw_number, Severity::Low)).collect()),
        )
        .reply_on("end/look", frozen_reply(&text));
    let (ending, view, trial) = live(single_reviewer_plan().with_change(|plan| plan.order.fix = false), world);
    assert_eq!((ending.reason, view.as_review().unwrap().rounds), (RunReason::ReviewOnly, 1));
    let first_round_dry = trial.journal.iter().find_map(|entry| match find_event::<ReviewEvent>(&entry.event) {
        Some(ReviewEvent::RoundEnded { dry: first_round_dry, .. }) => Some(*first_round_dry),
        _ => None,
    });
    assert_eq!(first_round_dry, Some(true), "nothing of medium or higher was raised");
}

#[test]
fn reviewers_that_keep_finding_severe_issues_are_stopped_by_the_round_limit() {
    // Every round finds a new flaw and every fix lands. The run must end at the round limit, because the findings never end.
    let mut text = flawed_text(9);
    let mut world = ScriptedWorld::default();
    for round in 1..=3_usize {
        world = world
            .reply_on(&format!("round-{round}/freeze"), frozen_reply(&text))
            .reply_on(
                &format!("round-{round}/review/adversarial"),
                findings_reply(vec![raised_flaw(round, Severity::High)]),
            )
            .reply_on(
                &format!("round-{round}/fix-1/fix/1"),
                fixes_reply(vec![(FindingId(round as u32), ClaimStatus::Fixed)], true),
            );
        text = text.replace(&format!("flaw {round}\n"), "repaired\n");
        let line = round as u32 * 4 + 1;
        let hunks = vec![Hunk { old_start: line, old_len: 1, new_len: 1 }];
        world = world.reply_on(&format!("round-{round}/fix-1/fix/1/land"), landed_reply(&text, hunks));
    }
    let (ending, view, _) = live(single_reviewer_plan(), world);
    assert_eq!((ending.reason, view.as_review().unwrap().rounds), (RunReason::Rounds, 3));
    assert!(ending.detail.contains("verified, but not reviewed again"), "{}", ending.detail);
    assert_eq!((view.finding_counts().fixed, view.finding_counts().open), (3, 0));
    assert_eq!(view.open_decisions().count(), 1, "a person is asked whether to go on");
}

#[test]
fn a_degraded_panel_gets_one_more_round() {
    let invented_findings = |round_number: usize| {
        let mut claim = raised_flaw(1, Severity::High);
        claim.evidence =
            tribunal_workflows::findings::finding::Evidence::Quote { text: format!("never written {round_number}") };
        findings_reply(vec![claim])
    };
    let world = (1..=3).fold(ScriptedWorld::default(), |world, round| {
        world
            .reply_on(&format!("round-{round}/freeze"), frozen_reply(&flawed_text(1)))
            .reply_on(&format!("round-{round}/review/adversarial"), invented_findings(round))
            .reply_on(&format!("round-{round}/review/elicitation"), invented_findings(round))
    });
    let (ending, view, _) = live(single_reviewer_plan(), world);
    assert_eq!((ending.reason, view.as_review().unwrap().rounds), (RunReason::PanelDegraded, 2));
}

#[test]
fn backoff_starts_anew_after_a_success() {
    // Three fixers fail one after the other, then one answers, then one fails again.
    let mut plan = single_reviewer_plan();
    plan.settings.tasks.retry_after_ms = 1;
    plan.order.limits.fix_iterations = 5;
    plan.settings.limits.failures = 9;
    let mut world = world_raising_one();
    for iteration in [1, 2, 3, 5] {
        let key = format!("round-1/fix-{iteration}/fix/1");
        world = world
            .reply_on(&key, failed_task_reply(FaultKind::TimedOut))
            .reply_on(&format!("{key}/again"), failed_task_reply(FaultKind::TimedOut));
    }
    let (_, _, trial) = live(plan, world.reply_on("round-1/fix-4/fix/1", fixes_reply(vec![], false)));
    let pauses_ms = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::EffectStarted { effect: Effect::Sleep(Sleep { ms }), .. } => Some(*ms),
        _ => None,
    });
    assert_eq!(pauses_ms.collect::<Vec<_>>(), [1, 2_000, 4_000, 1], "the last one pays nothing for the first three");
}

#[test]
fn a_failing_agent_is_recorded_and_the_run_goes_on() {
    let repaired_text = flawed_text(1).replace("flaw 1", "repaired");
    let world = world_raising_one()
        .reply_on("round-1/fix-1/fix/1", failed_task_reply(FaultKind::Exited { code: 2 }))
        .reply_on("round-1/fix-1/fix/1/again", failed_task_reply(FaultKind::Flood))
        .reply_on("round-1/fix-2/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], true))
        .reply_on(
            "round-1/fix-2/fix/1/land",
            landed_reply(&repaired_text, vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
        )
        .reply_on("round-2/freeze", frozen_reply(&repaired_text))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(&repaired_text));
    let (ending, view, _) = live(single_reviewer_plan(), world);
    assert_eq!(ending.reason, RunReason::GoalMet);
    let failure_notes =
        view.as_review().unwrap().findings[&F1].history.iter().filter(|step| step.note.contains("failed")).count();
    assert_eq!(failure_notes, 1, "and why it took two attempts is kept");
}

#[test]
fn a_broken_environment_does_not_count_as_an_attempt() {
    let world = world_raising_one().reply_on("round-1/fix-1/fix/1", failed_task_reply(FaultKind::Exited { code: 127 }));
    let (ending, view, mut trial) = live(single_reviewer_plan(), world);
    assert_eq!(ending.reason, RunReason::Environment);
    assert_eq!(view.as_review().unwrap().findings[&F1].status, FindingStatus::Open);
    // The environment is repaired and the run resumed: it repeats the same iteration, and all three iterations are left.
    trial.world.resumes_waits = true;
    let fix_without_change = || fixes_reply(vec![(F1, ClaimStatus::Fixed)], false);
    let mut world = std::mem::take(&mut trial.world);
    for iteration in 1..=3 {
        world = world.reply_on(&format!("round-1/fix-{iteration}/fix/1"), fix_without_change());
    }
    trial.world = world;
    let TrialOutcome::Parked(ending) = trial.run_workflow(workflow, None) else { panic!("it ended otherwise") };
    assert_eq!(
        (ending.reason, ending.detail.as_str()),
        (RunReason::FixIterations, "1 finding open after 3 fix iterations")
    );
    assert!(trial.world.performed_keys.iter().any(|key| key == "round-1/fix-3/fix/1"));
    let limits_left = ending.left.unwrap();
    assert_eq!(limits_left.failures, 5, "nothing was charged");
}
