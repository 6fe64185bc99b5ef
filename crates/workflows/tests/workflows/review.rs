//! The review workflow over simulated hosts: which effects it asks for, how it ends, and that it always ends.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};

use tribunal_engine::{
    fault::FaultKind,
    files::{Hunk, PatchRefusal},
    ids::{AgentName, DecisionId, FindingId},
    reason::{RunEnding, RunOutcome, RunReason},
    tier::ProcessTier,
};
use tribunal_testkit::{
    RandomWorld, ScriptedWorld,
    samples::{
        self, failed_task_reply, findings_reply, fixes_reply, flawed_text, frozen_reply, landed_reply, raised_flaw,
        unreadable_reply,
    },
    trial::{TrialOutcome, TrialRun, ordered_workflow as workflow, started_keys},
};
use tribunal_workflows::{
    findings::{
        counts::FindingCounts,
        finding::{DeferralReason, DismissalReason, Evidence, Finding, FindingStatus, Severity},
    },
    review::{ReviewState, event::ReviewEvent, level::ReviewGoal, order::ReviewOrder},
    runs::{
        effect::{AskAgent, AskOutcome, Effect, EffectKind, LandOutcome, LandedChange, Reply},
        kinds::WorkflowEvent,
        plan::RunPlan,
        settings::AgentSpec,
        types::{Requests, RunEvent, find_event},
        user_request::UserRequest,
        view::RunView,
    },
    tasks::{brief::AnswerContent, claims::ClaimStatus},
};

const F1: FindingId = FindingId(1);
const F2: FindingId = FindingId(2);

/// Returns settings with one reviewer, so that the scripts stay short.
fn single_reviewer_plan() -> RunPlan<ReviewOrder> {
    samples::sample_plan()
        .with_change(|plan| plan.order.level = Some(tribunal_workflows::review::level::ReviewLevel::Minimal))
}

fn one_iteration_plan() -> RunPlan<ReviewOrder> {
    let mut plan = single_reviewer_plan();
    plan.order.limits.fix_iterations = 1;
    plan
}

/// Round 1 raises flaw 1, the fix repairs it, and round 2 is dry.
fn world_that_gets_resolved() -> ScriptedWorld {
    let repaired_text = flawed_text(1).replace("flaw 1", "repaired");
    ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-1/review/adversarial", findings_reply(vec![raised_flaw(1, Severity::High)]))
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], true))
        .reply_on(
            "round-1/fix-1/fix/1/land",
            landed_reply(&repaired_text, vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
        )
        .reply_on("round-2/freeze", frozen_reply(&repaired_text))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(&repaired_text))
}

fn run_review(
    plan: RunPlan<ReviewOrder>,
    world: ScriptedWorld,
) -> (TrialOutcome<RunEnding>, RunView, TrialRun<ScriptedWorld>) {
    let mut trial = TrialRun::new(plan, world, 1);
    let life = trial.run_workflow(workflow, None);
    let view = RunView::from_entries(&trial.journal);
    (life, view, trial)
}

fn end_reason(life: &TrialOutcome<RunEnding>) -> RunReason {
    match life {
        TrialOutcome::Done(ending) | TrialOutcome::Parked(ending) => ending.reason,
        unexpected => panic!("{unexpected:?}"),
    }
}

#[test]
fn a_finding_is_raised_fixed_and_re_reviewed_before_it_is_resolved() {
    let (life, view, trial) = run_review(single_reviewer_plan(), world_that_gets_resolved());
    let expected_detail = "all findings fixed, and the last review found nothing new";
    assert_eq!(life, TrialOutcome::Done(RunEnding::new(RunReason::GoalMet, expected_detail)));
    assert_eq!(view.as_review().unwrap().findings[&F1].status, FindingStatus::Fixed);
    let keys: Vec<String> = started_keys(&trial.journal).iter().map(ToString::to_string).collect();
    assert_eq!(
        keys,
        [
            "round-1/dismissed",
            "round-1/inbox",
            "round-1/freeze",
            "round-1/review/adversarial",
            "round-1/challenge/1/1",
            "round-1/challenge/2/1",
            "round-1/tracker",
            "round-1/fix-1/inbox",
            "round-1/fix-1/fix/1",
            "round-1/fix-1/fix/1/preview",
            "round-1/fix-1/fix/1/judge/freeze",
            "round-1/fix-1/fix/1/judge",
            "round-1/fix-1/fix/1/land",
            "round-1/fix-1/tracker",
            "round-2/inbox",
            "round-2/freeze",
            "round-2/review/adversarial",
            "round-2/tracker",
            "end/look",
            "end/inbox",
            "end/tracker",
            "end/metrics",
            "end/confidence",
        ]
    );
}

#[test]
fn at_tier_zero_there_is_no_dry_pass() {
    let plan = single_reviewer_plan().with_change(|plan| plan.settings.tier = ProcessTier::new(0).unwrap());
    let (life, view, _) = run_review(plan, world_that_gets_resolved());
    assert_eq!(end_reason(&life), RunReason::GoalMet);
    assert_eq!(view.as_review().unwrap().rounds, 1);
}

#[test]
fn without_fixing_open_findings_wait_for_the_user() {
    let (life, view, _) =
        run_review(single_reviewer_plan().with_change(|plan| plan.order.fix = false), world_that_gets_resolved());
    assert_eq!(end_reason(&life), RunReason::ReviewOnly);
    assert_eq!(view.finding_counts().open, 1);
}

#[test]
fn a_claim_without_a_change_is_not_a_fix() {
    let world =
        world_that_gets_resolved().reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], false));
    let (life, view, _) = run_review(one_iteration_plan(), world);
    assert_eq!(end_reason(&life), RunReason::FixIterations);
    assert_eq!(view.as_review().unwrap().findings[&F1].status, FindingStatus::Open);
    let notes: Vec<&str> =
        view.as_review().unwrap().findings[&F1].history.iter().map(|step| step.note.as_str()).collect();
    assert!(notes.contains(&"claimed as fixed, but nothing was changed"), "{notes:?}");
}

#[test]
fn a_change_somewhere_else_is_not_a_fix() {
    let text_changed_elsewhere = flawed_text(1).replace("# Plan", "# The plan");
    let world = world_that_gets_resolved().reply_on(
        "round-1/fix-1/fix/1/land",
        landed_reply(&text_changed_elsewhere, vec![Hunk { old_start: 1, old_len: 1, new_len: 1 }]),
    );
    let (life, view, _) = run_review(one_iteration_plan(), world);
    assert_eq!(end_reason(&life), RunReason::FixIterations);
    assert_eq!(view.as_review().unwrap().findings[&F1].status, FindingStatus::Open);
}

#[test]
fn a_refused_patch_leaves_its_findings_open_and_the_next_fixer_gets_the_reason() {
    let refusal = PatchRefusal::Check { command: "make check".into(), output: "two tests fail".into() };
    let repaired_text = flawed_text(1).replace("flaw 1", "repaired");
    let world = world_that_gets_resolved()
        .reply_on("round-1/fix-1/fix/1/land", Reply::Land(LandOutcome::Refused { why: refusal }))
        .reply_on("round-1/fix-2/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], true))
        .reply_on(
            "round-1/fix-2/fix/1/land",
            landed_reply(&repaired_text, vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
        );
    let (life, _, trial) = run_review(single_reviewer_plan(), world);
    assert_eq!(end_reason(&life), RunReason::GoalMet);
    let second_attempt_note = trial.journal.iter().find_map(|entry| match &entry.event {
        RunEvent::EffectStarted { key, effect: Effect::Ask(AskAgent { task, .. }), .. }
            if key.as_str() == "round-1/fix-2/fix/1" =>
        {
            Some(task.brief.as_review().unwrap().assigned[0].last_try.clone())
        }
        _ => None,
    });
    assert_eq!(second_attempt_note.unwrap(), "rejected because `make check` failed: two tests fail");
}

#[test]
fn a_blocked_finding_waits_for_the_user_and_the_others_go_on() {
    let both_flaws = flawed_text(2);
    let repaired_text = both_flaws.replace("flaw 2", "repaired");
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&both_flaws))
        .reply_on(
            "round-1/review/adversarial",
            findings_reply(vec![raised_flaw(1, Severity::High), raised_flaw(2, Severity::Low)]),
        )
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Blocked), (F2, ClaimStatus::Fixed)], true))
        .reply_on(
            "round-1/fix-1/fix/1/land",
            landed_reply(&repaired_text, vec![Hunk { old_start: 9, old_len: 1, new_len: 1 }]),
        )
        .reply_on("round-2/freeze", frozen_reply(&repaired_text))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(&repaired_text));
    let (life, view, mut trial) = run_review(single_reviewer_plan(), world);
    assert_eq!(life, TrialOutcome::Parked(RunEnding::new(RunReason::Blocked, "1 finding blocked")));
    assert_eq!(view.as_review().unwrap().findings[&F2].status, FindingStatus::Fixed);
    let decision_ids: Vec<&str> = view.open_decisions().map(|decision| decision.id.as_str()).collect();
    assert_eq!(decision_ids, ["D1"]);

    let answer = tribunal_engine::answer::DecisionAnswer { choice: "dismiss".into(), note: "known and meant".into() };
    let request = UserRequest::Answer { decision: DecisionId::new("D1"), answer };
    trial.world = std::mem::take(&mut trial.world).reply_on("wait", Reply::Wait(Requests { requests: vec![request] }));
    assert_eq!(end_reason(&trial.run_workflow(workflow, None)), RunReason::GoalMet);
    let view = RunView::from_entries(&trial.journal);
    assert_eq!(
        view.as_review().unwrap().findings[&F1].status,
        FindingStatus::Dismissed { why: DismissalReason::Person }
    );
}

#[test]
fn a_fixer_cannot_freeze_a_severity_by_the_note_of_a_blocked_finding() {
    let both_flaws = flawed_text(2);
    let repaired_text = both_flaws.replace("flaw 2", "repaired");
    for blocked_note in ["severity set to low by the user", "in doubt, counted as low; 2 of 2 challengers"] {
        let mut blocked_reply = fixes_reply(vec![(F1, ClaimStatus::Blocked), (F2, ClaimStatus::Fixed)], true);
        if let Reply::Ask(AskOutcome::Answered(reply)) = &mut blocked_reply
            && let AnswerContent::Fixes { claims, .. } = &mut reply.content
        {
            claims[0].note = blocked_note.into();
        }
        let world = ScriptedWorld::default()
            .reply_on("round-1/freeze", frozen_reply(&both_flaws))
            .reply_on(
                "round-1/review/adversarial",
                findings_reply(vec![raised_flaw(1, Severity::Low), raised_flaw(2, Severity::High)]),
            )
            .reply_on("round-1/fix-1/fix/1", blocked_reply)
            .reply_on(
                "round-1/fix-1/fix/1/land",
                landed_reply(&repaired_text, vec![Hunk { old_start: 9, old_len: 1, new_len: 1 }]),
            )
            .reply_on("round-2/freeze", frozen_reply(&repaired_text))
            // The next reviewer rates the flaw as critical; the severity must follow.
            .reply_on("round-2/review/adversarial", findings_reply(vec![raised_flaw(1, Severity::Critical)]));
        let (_, view, _) = run_review(single_reviewer_plan(), world);
        assert_eq!(
            view.as_review().unwrap().findings[&F1].severity,
            Severity::Critical,
            "frozen by a fixer who said: {blocked_note}"
        );
    }
}

#[test]
fn a_fix_after_a_dry_pass_is_reviewed_again() {
    // The pass is dry because the finding is low, but its fix changes the text.
    let world = world_that_gets_resolved()
        .reply_on("round-1/review/adversarial", findings_reply(vec![raised_flaw(1, Severity::Low)]));
    let (life, view, _) = run_review(single_reviewer_plan(), world);
    assert_eq!((end_reason(&life), view.as_review().unwrap().rounds), (RunReason::GoalMet, 2));
}

#[test]
fn a_text_that_was_changed_after_the_dry_pass_is_reviewed_again() {
    let world = world_that_gets_resolved()
        .reply_on("end/look", frozen_reply("# Plan\n\nanother program wrote here\n"))
        .reply_on("round-3/freeze", frozen_reply("# Plan\n\nanother program wrote here\n"))
        .reply_on("round-3/review/adversarial", findings_reply(vec![]));
    let (life, view, trial) = run_review(single_reviewer_plan(), world);
    assert_eq!((end_reason(&life), view.as_review().unwrap().rounds), (RunReason::GoalMet, 3));
    assert!(
        trial.journal.iter().any(|entry| matches!(&entry.event, RunEvent::Warned { text } if text.contains("changed")))
    );
}

#[test]
fn at_tier_zero_the_final_text_is_not_read_again() {
    let plan = single_reviewer_plan().with_change(|plan| plan.settings.tier = ProcessTier::new(0).unwrap());
    let world = world_that_gets_resolved().reply_on("round-1/review/adversarial", findings_reply(vec![]));
    let (life, _, trial) = run_review(plan, world);
    assert_eq!(end_reason(&life), RunReason::GoalMet);
    assert!(!trial.world.performed_keys.iter().any(|key| key == "end/look"));
}

#[test]
fn a_panel_that_invents_quotes_is_replaced_for_one_round_and_then_the_run_halts() {
    let invented_findings = |quote_number: usize| {
        let mut claim = raised_flaw(1, Severity::High);
        claim.evidence = Evidence::Quote { text: format!("never written {quote_number}") };
        findings_reply(vec![claim])
    };
    let world = world_that_gets_resolved()
        .reply_on("round-1/review/adversarial", invented_findings(1))
        .reply_on("round-2/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-2/review/elicitation", invented_findings(2));
    let (life, view, trial) = run_review(single_reviewer_plan(), world);
    assert_eq!(end_reason(&life), RunReason::PanelDegraded);
    assert_eq!(view.as_review().unwrap().rounds, 2);
    let warning_text = "trying one more round with another panel";
    let events = trial.journal.iter().map(|entry| &entry.event);
    let warnings = events.filter(|event| matches!(event, RunEvent::Warned { text } if text.contains(warning_text)));
    assert_eq!(warnings.count(), 1);
}

#[test]
fn a_panel_whose_findings_get_more_severe_after_all_fixes_is_degraded() {
    let repaired_text = flawed_text(2).replace("flaw 1", "repaired");
    let world = world_that_gets_resolved()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(2)))
        .reply_on("round-1/review/adversarial", findings_reply(vec![raised_flaw(1, Severity::Medium)]))
        .reply_on(
            "round-1/fix-1/fix/1/land",
            landed_reply(&repaired_text, vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
        )
        .reply_on("round-2/freeze", frozen_reply(&repaired_text))
        .reply_on("round-2/review/adversarial", findings_reply(vec![raised_flaw(2, Severity::Critical)]));
    let (_, _, trial) = run_review(single_reviewer_plan(), world);
    assert!(trial.journal.iter().any(
        |entry| matches!(&entry.event, RunEvent::Warned { text } if text.contains("the panel may be unreliable"))
    ));
}

#[test]
fn a_retry_withdraws_an_acceptance() {
    let both_flaws = flawed_text(2);
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&both_flaws))
        .reply_on(
            "round-1/review/adversarial",
            findings_reply(vec![raised_flaw(1, Severity::High), raised_flaw(2, Severity::Low)]),
        )
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Blocked)], false));
    let (life, _, mut trial) = run_review(one_iteration_plan(), world);
    assert_eq!(end_reason(&life), RunReason::FixIterations);
    let answer_with = |decision: &str, choice: &str| UserRequest::Answer {
        decision: DecisionId::new(decision),
        answer: tribunal_engine::answer::DecisionAnswer { choice: choice.into(), note: String::new() },
    };
    let requests = vec![answer_with("D2", "accept"), answer_with("D1", "retry")];
    trial.world = std::mem::take(&mut trial.world)
        .reply_on("wait", Reply::Wait(Requests { requests }))
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], true))
        .reply_on(
            "round-1/fix-1/fix/1/land",
            landed_reply(
                &both_flaws.replace("flaw 1", "repaired"),
                vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }],
            ),
        );
    trial.world = std::mem::take(&mut trial.world)
        .reply_on("round-2/freeze", frozen_reply(&both_flaws.replace("flaw 1", "repaired")))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(&both_flaws.replace("flaw 1", "repaired")));
    // The second answer withdraws the acceptance: the reopened finding is fixed and reviewed again.
    assert_eq!(end_reason(&trial.run_workflow(workflow, None)), RunReason::GoalMet);
    let view = RunView::from_entries(&trial.journal);
    assert_eq!((view.finding_counts().open, view.finding_counts().fixed, view.finding_counts().deferred), (0, 1, 1));
}

#[test]
fn a_missing_check_stops_the_run_before_more_fixers_are_asked() {
    let world =
        world_that_gets_resolved().reply_on("round-1/fix-1/fix/1/land", samples::failed_effect_reply(EffectKind::Land));
    let (life, _, mut trial) = run_review(single_reviewer_plan(), world);
    assert_eq!(end_reason(&life), RunReason::Environment);
    let fixer_calls = trial.world.performed_keys.iter().filter(|key| key.ends_with("/fix/1")).count();
    assert_eq!(fixer_calls, 1);
    // After the repair of the environment the resumed run repeats the same iteration.
    let repaired_text = flawed_text(1).replace("flaw 1", "repaired");
    trial.world.resumes_waits = true;
    trial.world = std::mem::take(&mut trial.world).reply_on(
        "round-1/fix-1/fix/1/land",
        landed_reply(&repaired_text, vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
    );
    assert_eq!(end_reason(&trial.run_workflow(workflow, None)), RunReason::GoalMet);
}

#[test]
fn environment_faults_do_not_count_as_attempts() {
    let world =
        world_that_gets_resolved().reply_on("round-1/review/adversarial", failed_task_reply(FaultKind::NotInstalled));
    let (_, _, mut trial) = run_review(single_reviewer_plan(), world);
    trial.world.resumes_waits = true;
    // The run is resumed more often than failures are allowed, and no failure is counted.
    for _ in 0..7 {
        assert_eq!(end_reason(&trial.run_workflow(workflow, None)), RunReason::Environment);
    }
    let installed_reply = findings_reply(vec![raised_flaw(1, Severity::High)]);
    trial.world = std::mem::take(&mut trial.world).reply_on("round-1/review/adversarial", installed_reply);
    assert_eq!(end_reason(&trial.run_workflow(workflow, None)), RunReason::GoalMet);
}

#[test]
fn a_deferred_finding_that_turns_out_critical_is_fixed() {
    let plan = single_reviewer_plan().with_change(|plan| plan.order.goal = ReviewGoal::CriticalOnly);
    let text = flawed_text(1);
    let repaired_text = text.replace("flaw 1", "repaired");
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&text))
        .reply_on("round-1/review/adversarial", findings_reply(vec![raised_flaw(1, Severity::Medium)]))
        .reply_on("round-2/freeze", frozen_reply(&text))
        .reply_on("round-2/review/adversarial", findings_reply(vec![raised_flaw(1, Severity::Critical)]))
        .reply_on("round-2/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed)], true))
        .reply_on(
            "round-2/fix-1/fix/1/land",
            landed_reply(&repaired_text, vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
        )
        .reply_on("round-3/freeze", frozen_reply(&repaired_text))
        .reply_on("round-3/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_reply(&repaired_text));
    let (life, view, _) = run_review(plan, world);
    assert_eq!(end_reason(&life), RunReason::GoalMet);
    assert_eq!(view.as_review().unwrap().findings[&F1].status, FindingStatus::Fixed);
}

#[test]
fn a_finding_claimed_both_blocked_and_fixed_is_blocked() {
    let world = world_that_gets_resolved()
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Fixed), (F1, ClaimStatus::Blocked)], true))
        .reply_on("round-2/freeze", frozen_reply(&flawed_text(1)));
    let (life, view, _) = run_review(one_iteration_plan(), world);
    assert_eq!(end_reason(&life), RunReason::Blocked);
    assert!(matches!(view.as_review().unwrap().findings[&F1].status, FindingStatus::Blocked { .. }));
}

#[test]
fn a_decision_whose_file_cannot_be_written_is_warned_about_and_still_waits() {
    let world = world_that_gets_resolved()
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Blocked)], false))
        .reply_on("round-1/fix-1/fix/1/ask-F1", samples::failed_effect_reply(EffectKind::Post))
        .reply_on("round-2/freeze", frozen_reply(&flawed_text(1)));
    let (life, view, trial) = run_review(one_iteration_plan(), world);
    assert_eq!(end_reason(&life), RunReason::Blocked);
    assert_eq!(view.open_decisions().map(|decision| decision.id.as_str()).collect::<Vec<_>>(), ["D1"]);
    let is_warned = trial.journal.iter().any(|entry| {
        matches!(&entry.event, RunEvent::Warned { text } if text == "could not write the file for D1: the disk is full")
    });
    assert!(is_warned, "{:?}", trial.journal);
}

#[test]
fn unreadable_answers_and_failed_tasks_are_tried_once_more() {
    for first_reply in [unreadable_reply(), failed_task_reply(FaultKind::Exited { code: 1 })] {
        let world = world_that_gets_resolved()
            .reply_on("round-1/review/adversarial", first_reply)
            .reply_on("round-1/review/adversarial/again", findings_reply(vec![raised_flaw(1, Severity::High)]));
        let (life, view, _) = run_review(single_reviewer_plan(), world);
        assert_eq!(end_reason(&life), RunReason::GoalMet);
        assert_eq!(view.all_findings().count(), 1);
    }
}

#[test]
fn an_agent_that_is_not_installed_is_not_asked_twice() {
    let world =
        world_that_gets_resolved().reply_on("round-1/review/adversarial", failed_task_reply(FaultKind::NotInstalled));
    let (life, _, trial) = run_review(single_reviewer_plan(), world);
    assert_eq!(end_reason(&life), RunReason::Environment);
    assert!(!trial.world.performed_keys.iter().any(|key| key.ends_with("/again")));
}

#[test]
fn a_panel_goes_on_without_a_silent_seat() {
    let world = world_that_gets_resolved()
        .reply_on("round-1/review/party", failed_task_reply(FaultKind::TimedOut))
        .reply_on("round-1/review/party/again", failed_task_reply(FaultKind::TimedOut))
        .reply_on("round-1/review/elicitation", findings_reply(vec![]))
        .reply_on("round-2/review/party", findings_reply(vec![]))
        .reply_on("round-2/review/elicitation", findings_reply(vec![]));
    let (life, _, trial) = run_review(samples::sample_plan(), world);
    assert_eq!(end_reason(&life), RunReason::GoalMet);
    let incomplete_seats = trial
        .journal
        .iter()
        .filter(|entry| matches!(find_event::<ReviewEvent>(&entry.event), Some(ReviewEvent::SeatIncomplete { .. })));
    assert_eq!(incomplete_seats.count(), 1);
}

#[test]
fn too_few_findings_in_round_one_are_asked_for_once_more() {
    let mut plan = single_reviewer_plan();
    plan.order.panel.required_issues = 3;
    let world = || world_that_gets_resolved().reply_on("round-1/review/adversarial/again", findings_reply(vec![]));
    // A short text may be flawless, so nothing is required of its reviewers.
    let (_, _, trial) = run_review(plan.clone(), world());
    assert!(!trial.world.performed_keys.iter().any(|key| key == "round-1/review/adversarial/again"));
    let long_text = |text: String| format!("{text}\n## More\n\n{}", "One more line.\n".repeat(30));
    let world = world().reply_on("round-1/freeze", frozen_reply(&long_text(flawed_text(1))));
    let (life, view, trial) = run_review(plan, world);
    assert_eq!(end_reason(&life), RunReason::GoalMet);
    assert_eq!(view.all_findings().count(), 1, "what was found first is kept");
    assert!(trial.world.performed_keys.iter().any(|key| key == "round-1/review/adversarial/again"));
    assert!(!trial.world.performed_keys.iter().any(|key| key == "round-2/review/adversarial/again"));
}

#[test]
fn with_the_goal_critical_only_other_findings_are_deferred() {
    let plan = single_reviewer_plan().with_change(|plan| plan.order.goal = ReviewGoal::CriticalOnly);
    let same_text = frozen_reply(&flawed_text(1));
    let world =
        world_that_gets_resolved().reply_on("round-2/freeze", same_text.clone()).reply_on("end/look", same_text);
    let (life, view, _) = run_review(plan, world);
    assert_eq!(end_reason(&life), RunReason::GoalMet);
    assert_eq!(view.as_review().unwrap().findings[&F1].status, FindingStatus::Deferred { why: DeferralReason::Goal });
}

#[test]
fn an_exhausted_budget_halts_the_run_until_the_user_answers() {
    let mut plan = single_reviewer_plan();
    plan.settings.limits.tokens = 100;
    let (life, view, mut trial) = run_review(plan, world_that_gets_resolved());
    assert_eq!(end_reason(&life), RunReason::Tokens);
    assert_eq!(view.open_decisions().count(), 1);
    let answer = tribunal_engine::answer::DecisionAnswer { choice: "accept".into(), note: String::new() };
    let request = UserRequest::Answer { decision: DecisionId::new("D1"), answer };
    trial.world = std::mem::take(&mut trial.world).reply_on("wait", Reply::Wait(Requests { requests: vec![request] }));
    assert_eq!(end_reason(&trial.run_workflow(workflow, None)), RunReason::Accepted);
    let view = RunView::from_entries(&trial.journal);
    assert_eq!(view.as_review().unwrap().findings[&F1].status, FindingStatus::Deferred { why: DeferralReason::Person });
}

/// Asserts what must hold for every behaviour of the world.
fn assert_invariants(life: &TrialOutcome<RunEnding>, trial: &TrialRun<RandomWorld>, seed: u64) {
    let view = RunView::from_entries(&trial.journal);
    let counts = FindingCounts::from_findings(view.all_findings());
    let ending = match life {
        TrialOutcome::Done(ending) | TrialOutcome::Parked(ending) => ending,
        unexpected => panic!("seed {seed}: {unexpected:?}"),
    };
    // Every claim of a reviewer is kept by a finding that names the reviewer, even if several claims were merged.
    if ending.reason != RunReason::Environment {
        for ((round, role), claimed_evidence) in recorded_claims(trial) {
            let is_raised_by_role = |known_finding: &&Finding| {
                known_finding
                    .raisers
                    .iter()
                    .any(|raiser| (format!("round-{}", raiser.round), raiser.role.as_str()) == (round.clone(), &role))
            };
            let kept_count = view.all_findings().filter(is_raised_by_role).count();
            assert!(
                kept_count >= claimed_evidence.len(),
                "seed {seed}: of {} claims of {role} in {round} {kept_count} are kept",
                claimed_evidence.len()
            );
        }
    }
    // The findings in the last recorded state are those that the user sees.
    let last_state = trial.journal.iter().rev().find_map(|entry| match &entry.event {
        RunEvent::Boundary { state, .. } => serde_json::from_value::<ReviewState>(state.clone()).ok(),
        _ => None,
    });
    for finding in last_state.iter().flat_map(|last_state| &last_state.findings) {
        assert!(
            view.as_review().unwrap().findings.contains_key(&finding.id),
            "seed {seed}: {} is unknown to people",
            finding.id
        );
    }
    if ending.reason.outcome() == Some(RunOutcome::Resolved) {
        assert_eq!((counts.open, counts.blocked), (0, 0), "seed {seed}: resolved with something open");
        assert_eq!(view.open_decisions().count(), 0, "seed {seed}: resolved, and still asking");
    }
    assert!(ending.reason.outcome().is_some(), "seed {seed}: {ending:?}");
    let review_order = trial.plan.order.as_review().unwrap();
    if ending.reason == RunReason::GoalMet && trial.plan.settings.tier.number() > 0 && review_order.fix {
        assert!(was_last_pass_dry(trial), "seed {seed}: resolved without a dry pass over the final text");
    }
    assert_sections_have_one_fixer(trial, seed);
    if review_order.fixers.approve_each {
        assert_landings_were_approved(trial, &view, seed);
    }
    // Limits hold, except for calls that were under way when the limit was reached.
    let (limits, spent) = (&trial.plan.settings.limits, &view.usage);
    let grant_count = view
        .decisions
        .iter()
        .filter(|decision| decision.answer.as_ref().is_some_and(|answer| answer.choice == "more"))
        .count();
    let tokens_under_way = 120 * 2 * 12;
    assert!(
        spent.tokens <= limits.tokens * (grant_count as u64 + 1) + tokens_under_way,
        "seed {seed}: {} tokens of {} and {grant_count} grants",
        spent.tokens,
        limits.tokens
    );
}

fn assert_landings_were_approved(trial: &TrialRun<RandomWorld>, view: &RunView, seed: u64) {
    let approvals = view
        .decisions
        .iter()
        .filter(|decision| decision.answer.as_ref().is_some_and(|answer| answer.choice == "approve"));
    let landings = trial
        .journal
        .iter()
        .filter(|entry| matches!(find_event::<ReviewEvent>(&entry.event), Some(ReviewEvent::PatchLanded { .. })));
    assert!(landings.count() <= approvals.count(), "seed {seed}: a patch landed without a person's yes");
}

/// Returns whether the last pass was dry and the text has not changed since then: nothing landed, and the user marked nothing
/// as fixed.
fn was_last_pass_dry(trial: &TrialRun<RandomWorld>) -> bool {
    let (mut is_dry, mut is_touched) = (false, false);
    for entry in &trial.journal {
        match &entry.event {
            RunEvent::Workflow(WorkflowEvent::Review(ReviewEvent::RoundEnded { .. })) => is_touched = false,
            RunEvent::Boundary { state, .. } => is_dry = state["last_pass"]["dry"] == true,
            RunEvent::EffectFinished { reply: Reply::Land(LandOutcome::Landed(landed)), .. } => {
                let LandedChange { hunks, files, .. } = landed;
                is_touched |= !hunks.is_empty() || files.iter().any(|file| !file.hunks.is_empty());
            }
            // A fixer that claims a fix without a change leaves the reviewed text as it is.
            RunEvent::Workflow(WorkflowEvent::Review(ReviewEvent::FindingMoved { transition, .. }))
                if transition.to == FindingStatus::Fixed =>
            {
                is_touched |= transition.cause.is_by_user();
            }
            _ => {}
        }
    }
    is_dry && !is_touched
}

fn assert_sections_have_one_fixer(trial: &TrialRun<RandomWorld>, seed: u64) {
    let mut view = RunView::default();
    for entry in &trial.journal {
        view.apply_entry(entry);
        let Some(ReviewEvent::FixersDealt { hands, .. }) = find_event::<ReviewEvent>(&entry.event) else { continue };
        let mut held_sections = BTreeSet::new();
        for fixer_findings in hands {
            let places =
                fixer_findings.iter().map(|finding_id| view.as_review().unwrap().findings[finding_id].place.as_ref());
            let sections: BTreeSet<_> = places
                .map(|place| place.map(|known_place| (known_place.file.clone(), known_place.section.clone())))
                .collect();
            for section in sections {
                // A finding without a place could be in any section, so its fixer must be the only one.
                assert!(section.is_some() || hands.len() == 1, "seed {seed}: {hands:?}");
                assert!(held_sections.insert(section.clone()), "seed {seed}: {section:?} has two fixers: {hands:?}");
            }
        }
    }
}

/// Returns the evidence of all recorded answers, by round and role.
fn recorded_claims(trial: &TrialRun<RandomWorld>) -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut claims: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for entry in &trial.journal {
        let RunEvent::EffectFinished { key, reply: Reply::Ask(AskOutcome::Answered(reply)), .. } = &entry.event else {
            continue;
        };
        let AnswerContent::Findings { raised } = &reply.content else { continue };
        let key_parts: Vec<&str> = key.as_str().split('/').collect();
        let [round, "review", role, ..] = key_parts[..] else { continue };
        let evidence_texts = raised.iter().map(|finding| format!("{:?}", finding.evidence));
        claims.entry((round.into(), role.into())).or_default().extend(evidence_texts);
    }
    claims
}

fn random_trial(seed: u64) -> TrialRun<RandomWorld> {
    let mut plan = samples::sample_plan();
    plan.settings.tier = ProcessTier::new((seed % 5) as u8).unwrap();
    plan.order.panel.required_issues = (seed % 4) as u32;
    if seed.is_multiple_of(3) {
        plan.order.goal = ReviewGoal::CriticalOnly;
    }
    plan.order.fix = !seed.is_multiple_of(11);
    plan.order.fixers.in_session = seed.is_multiple_of(9);
    plan.order.fixers.approve_each = seed.is_multiple_of(6) && !seed.is_multiple_of(9);
    plan.order.target_confidence = seed.is_multiple_of(7).then_some(60);
    if seed.is_multiple_of(5) {
        plan.settings.limits.tokens = 4_000;
    }
    if seed.is_multiple_of(2) {
        plan.settings.checks = samples::checks_of_every_action();
    }
    let first_agent = plan.settings.agents[0].clone();
    let agent_named = |agent_name: &str| AgentSpec { name: AgentName::new(agent_name), ..first_agent.clone() };
    plan.settings.agents.extend(["b", "c"].iter().take(seed as usize % 3).map(|agent_name| agent_named(agent_name)));
    if seed.is_multiple_of(4) {
        plan.settings.reserves = vec![agent_named("strong")];
        plan.settings.agents[0].stronger = Some(AgentName::new("strong"));
    }
    let mut trial = TrialRun::new(plan, RandomWorld::new(seed), seed);
    // This mask changes its own output again. No real masker does that, so replay must survive it.
    if seed.is_multiple_of(4) {
        trial.mask_text = |text| text.replace("secret", "secret*");
    }
    trial
}

#[test]
fn every_run_ends_keeps_all_findings_and_is_never_resolved_with_open_ones() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..800 {
        let mut trial = random_trial(seed);
        let mut life = trial.run_workflow(workflow, None);
        // The user resumes a few times; a run that gets no answer stays parked.
        for _ in 0..4 {
            assert_invariants(&life, &trial, seed);
            if matches!(life, TrialOutcome::Done(_)) {
                break;
            }
            life = trial.run_workflow(workflow, None);
        }
        let view = RunView::from_entries(&trial.journal);
        assert_invariants(&life, &trial, seed);
        let limits = &trial.plan.order.as_review().unwrap().limits;
        let grant_count = view
            .decisions
            .iter()
            .filter(|decision| decision.answer.as_ref().is_some_and(|answer| answer.choice == "more"))
            .count();
        assert!(view.as_review().unwrap().rounds <= limits.rounds * (grant_count as u32 + 1), "seed {seed}");
        outcomes.insert(end_reason(&life).outcome().map(RunOutcome::as_str));
    }
    let all_outcomes = ["cancelled", "failed", "halted", "resolved", "waiting"].map(Some);
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), all_outcomes, "the random world reaches every outcome");
}

#[test]
fn a_random_review_killed_at_any_write_never_diverges() {
    for seed in 0..8 {
        let mut uninterrupted_trial = random_trial(seed);
        uninterrupted_trial.run_workflow(workflow, None);
        for kill_at in (0..uninterrupted_trial.write_count()).step_by(1 + seed as usize % 3) {
            let mut trial = random_trial(seed);
            assert_eq!(trial.run_workflow(workflow, Some(kill_at)), TrialOutcome::Killed);
            let life = trial.run_workflow(workflow, None);
            assert_invariants(&life, &trial, seed);
        }
    }
}
