//! Reviews whose findings a session repairs in the user's own files.

use tribunal_engine::{
    answer::DecisionAnswer,
    files::{FrozenFile, PatchRefusal},
    ids::{DecisionId, FindingId},
    reason::RunReason,
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, findings_reply, flawed_text, frozen_reply, raised_flaw, taken_in_reply},
    trial::{TrialOutcome, TrialRun, ordered_workflow as workflow},
};
use tribunal_workflows::{
    findings::finding::{FindingStatus, Severity},
    review::{level::ReviewLevel, order::ReviewOrder, topic::ReviewTopic},
    runs::{
        effect::{Effect, LandOutcome, Reply},
        plan::RunPlan,
        types::{Requests, RunEvent, find_topic},
        user_request::UserRequest,
        view::RunView,
    },
};

fn in_session_plan() -> RunPlan<ReviewOrder> {
    let mut plan = samples::sample_plan().with_change(|plan| plan.order.level = Some(ReviewLevel::Minimal));
    plan.order.fixers.in_session = true;
    plan
}

/// Two flaws are found. After the session has been resumed, reviewers find nothing more.
fn world_with_two_flaws() -> ScriptedWorld {
    let text = flawed_text(2);
    let mut world = ScriptedWorld::default();
    world.resumes_waits = true;
    world
        .reply_on("round-1/freeze", frozen_reply(&text))
        .reply_on(
            "round-1/review/adversarial",
            findings_reply(vec![raised_flaw(1, Severity::High), raised_flaw(2, Severity::Low)]),
        )
        .reply_on("round-1/fix-1/before", frozen_reply(&text))
        .reply_on("round-2/review/adversarial", findings_reply(Vec::new()))
}

fn files_before() -> Vec<FrozenFile> {
    vec![FrozenFile { path: "plan.md".into(), text: flawed_text(2) }]
}

fn finding_status(trial: &TrialRun<ScriptedWorld>, finding_number: u32) -> FindingStatus {
    let view = RunView::from_entries(&trial.journal);
    let finding = view.all_findings().find(|finding| finding.id == FindingId(finding_number));
    finding.map_or_else(|| panic!("there is no F{finding_number}"), |finding| finding.status.clone())
}

fn parked_reason<T>(life: &TrialOutcome<T>) -> Option<RunReason> {
    match life {
        TrialOutcome::Parked(ending) => Some(ending.reason),
        _ => None,
    }
}

#[test]
fn findings_are_handed_to_the_session_and_the_run_waits_for_it() {
    let mut trial = TrialRun::new(in_session_plan(), world_with_two_flaws(), 1);
    assert_eq!(parked_reason(&trial.run_workflow(workflow, None)), Some(RunReason::InSession));
    assert_eq!(finding_status(&trial, 1), FindingStatus::Assigned);
    let view = RunView::from_entries(&trial.journal);
    let topics: Vec<_> = view.open_decisions().map(|decision| find_topic::<ReviewTopic>(&decision.about)).collect();
    assert!(matches!(topics[..], [Some(ReviewTopic::Session { .. })]), "{topics:?}");
    let landings = trial
        .journal
        .iter()
        .filter(|entry| matches!(&entry.event, RunEvent::EffectStarted { effect: Effect::Land(_), .. }));
    assert_eq!(landings.count(), 0);
}

#[test]
fn repairs_of_the_session_are_verified_and_reviewed_again() {
    let repaired_text = flawed_text(2).replace("flaw 1", "better 1").replace("flaw 2", "better 2");
    let world = world_with_two_flaws()
        .reply_on("round-1/fix-1/take-in", taken_in_reply(&files_before(), &repaired_text))
        .reply_on("round-2/freeze", frozen_reply(&repaired_text))
        .reply_on("end/look", frozen_reply(&repaired_text));
    let mut trial = TrialRun::new(in_session_plan(), world, 1);
    trial.run_workflow(workflow, None);
    let life = trial.run_workflow(workflow, None);
    assert!(matches!(&life, TrialOutcome::Done(ending) if ending.reason == RunReason::GoalMet), "{life:?}");
    assert_eq!(finding_status(&trial, 1), FindingStatus::Fixed);
    assert!(RunView::from_entries(&trial.journal).open_decisions().next().is_none(), "the question is withdrawn");
}

#[test]
fn a_session_that_repaired_only_a_part_gets_the_remaining_findings_again() {
    let half_repaired = flawed_text(2).replace("flaw 1", "better 1");
    let world = world_with_two_flaws()
        .reply_on("round-1/fix-1/take-in", taken_in_reply(&files_before(), &half_repaired))
        .reply_on("round-1/fix-2/before", frozen_reply(&half_repaired));
    let mut trial = TrialRun::new(in_session_plan(), world, 1);
    trial.run_workflow(workflow, None);
    assert_eq!(parked_reason(&trial.run_workflow(workflow, None)), Some(RunReason::InSession));
    assert_eq!(finding_status(&trial, 1), FindingStatus::Fixed);
    assert_eq!(finding_status(&trial, 2), FindingStatus::Assigned);
}

#[test]
fn findings_stay_open_when_the_checks_refuse_or_nothing_changed() {
    let refusal = PatchRefusal::Check { command: "make".into(), output: "no".into() };
    let refused_reply = Reply::TakeIn(LandOutcome::Refused { why: refusal });
    for take_in_reply in [refused_reply, taken_in_reply(&files_before(), &flawed_text(2))] {
        let world = world_with_two_flaws()
            .reply_on("round-1/fix-1/take-in", take_in_reply)
            .reply_on("round-1/fix-2/before", frozen_reply(&flawed_text(2)));
        let mut trial = TrialRun::new(in_session_plan(), world, 1);
        trial.run_workflow(workflow, None);
        assert_eq!(parked_reason(&trial.run_workflow(workflow, None)), Some(RunReason::InSession));
        let view = RunView::from_entries(&trial.journal);
        assert_eq!(view.finding_counts().fixed, 0);
        assert_eq!(view.finding_counts().open, 2);
    }
}

#[test]
fn sessions_have_as_many_attempts_as_fixers() {
    // The session changed something, but nothing near a finding.
    let text_changed_elsewhere = flawed_text(2).replace("# Plan", "# The plan");
    let mut world = world_with_two_flaws();
    for iteration in 1..=9 {
        world = world.reply_on(&format!("round-1/fix-{iteration}/before"), frozen_reply(&flawed_text(2))).reply_on(
            &format!("round-1/fix-{iteration}/take-in"),
            taken_in_reply(&files_before(), &text_changed_elsewhere),
        );
    }
    let mut trial = TrialRun::new(in_session_plan(), world, 1);
    let max_iterations = trial.plan.order.as_review().unwrap().limits.fix_iterations;
    for _ in 0..max_iterations {
        assert_eq!(parked_reason(&trial.run_workflow(workflow, None)), Some(RunReason::InSession));
    }
    assert_eq!(parked_reason(&trial.run_workflow(workflow, None)), Some(RunReason::FixIterations));
}

#[test]
fn a_resume_without_changes_is_not_an_attempt() {
    let mut world = world_with_two_flaws();
    world = world.reply_on("round-1/fix-1/take-in", taken_in_reply(&files_before(), &flawed_text(2)));
    let mut trial = TrialRun::new(in_session_plan(), world, 1);
    for _ in 0..9 {
        assert_eq!(parked_reason(&trial.run_workflow(workflow, None)), Some(RunReason::InSession));
    }
}

#[test]
fn the_user_may_hand_findings_to_fixers_or_accept_them() {
    for (choice, expected_reason) in [("fixers", None), ("accept", Some(RunReason::Accepted))] {
        let answer = DecisionAnswer { choice: choice.into(), note: String::new() };
        let request = UserRequest::Answer { decision: DecisionId::new("D1"), answer };
        let world =
            world_with_two_flaws().reply_on("round-1/fix-1/session", Reply::Wait(Requests { requests: vec![request] }));
        let mut trial = TrialRun::new(in_session_plan(), world, 1);
        let life = trial.run_workflow(workflow, None);
        match expected_reason {
            Some(reason) => {
                assert!(matches!(&life, TrialOutcome::Done(ending) if ending.reason == reason), "{life:?}")
            }
            // The script has no fixers; the test only needs to see that one was asked for.
            None => {
                assert!(trial.world.performed_keys.iter().any(|key| key == "round-1/fix-1/fix/1"), "{life:?}")
            }
        }
    }
}
