//! Reviews whose findings a session repairs in the user's own files.

use tribunal_core::{
    decision::{About, Answer},
    effect::{Effect, LandOutcome, Reply, Request, Requests},
    event::Event,
    files::{FrozenFile, Refusal},
    finding::{Severity, Status},
    ids::{DecisionId, FindingId},
    level::Level,
    reason::Reason,
    settings::Settings,
    view::RunView,
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, findings, flawed_text, frozen, raised, taken_in},
    trial::{Life, Trial, review_workflow as workflow},
};

fn in_session() -> Settings {
    let mut settings = Settings { level: Some(Level::Minimal), ..samples::settings() };
    settings.tasks.writing.in_session = true;
    settings
}

/// Two flaws are found. After the session has been resumed, reviewers find nothing more.
fn two_flaws() -> ScriptedWorld {
    let text = flawed_text(2);
    let mut world = ScriptedWorld::default();
    world.resumes = true;
    world
        .on("round-1/freeze", frozen(&text))
        .on("round-1/review/adversarial", findings(vec![raised(1, Severity::High), raised(2, Severity::Low)]))
        .on("round-1/fix-1/before", frozen(&text))
        .on("round-2/review/adversarial", findings(Vec::new()))
}

fn before() -> Vec<FrozenFile> {
    vec![FrozenFile { path: "plan.md".into(), text: flawed_text(2) }]
}

fn status(trial: &Trial<ScriptedWorld>, id: u32) -> Status {
    RunView::of(&trial.journal).findings[&FindingId(id)].status.clone()
}

fn parked_reason<T>(life: &Life<T>) -> Option<Reason> {
    match life {
        Life::Parked(ending) => Some(ending.reason),
        _ => None,
    }
}

#[test]
fn findings_are_handed_to_the_session_and_the_run_waits_for_it() {
    let mut trial = Trial::new(in_session(), two_flaws(), 1);
    assert_eq!(parked_reason(&trial.live(workflow, None)), Some(Reason::InSession));
    assert_eq!(status(&trial, 1), Status::Assigned);
    let view = RunView::of(&trial.journal);
    let asked: Vec<_> = view.waiting().collect();
    assert!(matches!(&asked[..], [decision] if matches!(decision.about, About::Session { .. })), "{asked:?}");
    let fixers = trial
        .journal
        .iter()
        .filter(|entry| matches!(&entry.event, Event::EffectStarted { effect: Effect::Land(_), .. }));
    assert_eq!(fixers.count(), 0);
}

#[test]
fn what_the_session_repaired_is_verified_and_reviewed_again() {
    let repaired = flawed_text(2).replace("flaw 1", "better 1").replace("flaw 2", "better 2");
    let world = two_flaws()
        .on("round-1/fix-1/take-in", taken_in(&before(), &repaired))
        .on("round-2/freeze", frozen(&repaired))
        .on("end/look", frozen(&repaired));
    let mut trial = Trial::new(in_session(), world, 1);
    trial.live(workflow, None);
    let life = trial.live(workflow, None);
    assert!(matches!(&life, Life::Done(ending) if ending.reason == Reason::GoalMet), "{life:?}");
    assert_eq!(status(&trial, 1), Status::Fixed);
    assert!(RunView::of(&trial.journal).waiting().next().is_none(), "the question is withdrawn");
}

#[test]
fn who_comes_back_without_a_repair_is_handed_the_rest_again() {
    let half = flawed_text(2).replace("flaw 1", "better 1");
    let world = two_flaws()
        .on("round-1/fix-1/take-in", taken_in(&before(), &half))
        .on("round-1/fix-2/before", frozen(&half));
    let mut trial = Trial::new(in_session(), world, 1);
    trial.live(workflow, None);
    assert_eq!(parked_reason(&trial.live(workflow, None)), Some(Reason::InSession));
    assert_eq!(status(&trial, 1), Status::Fixed);
    assert_eq!(status(&trial, 2), Status::Assigned);
}

#[test]
fn what_the_checks_refuse_or_what_was_not_changed_stays_open() {
    let why = Refusal::Check { command: "make".into(), output: "no".into() };
    let refused = Reply::TakeIn(LandOutcome::Refused { why });
    for came in [refused, taken_in(&before(), &flawed_text(2))] {
        let world =
            two_flaws().on("round-1/fix-1/take-in", came).on("round-1/fix-2/before", frozen(&flawed_text(2)));
        let mut trial = Trial::new(in_session(), world, 1);
        trial.live(workflow, None);
        assert_eq!(parked_reason(&trial.live(workflow, None)), Some(Reason::InSession));
        let view = RunView::of(&trial.journal);
        assert_eq!(view.counts().fixed, 0);
        assert_eq!(view.counts().open, 2);
    }
}

#[test]
fn sessions_have_as_many_tries_as_fixers() {
    // The session changed something, but nothing near a finding.
    let beside = flawed_text(2).replace("# Plan", "# The plan");
    let mut world = two_flaws();
    for iteration in 1..=9 {
        world = world
            .on(&format!("round-1/fix-{iteration}/before"), frozen(&flawed_text(2)))
            .on(&format!("round-1/fix-{iteration}/take-in"), taken_in(&before(), &beside));
    }
    let mut trial = Trial::new(in_session(), world, 1);
    let most = trial.settings.limits.fix_iterations;
    for _ in 0..most {
        assert_eq!(parked_reason(&trial.live(workflow, None)), Some(Reason::InSession));
    }
    assert_eq!(parked_reason(&trial.live(workflow, None)), Some(Reason::FixIterations));
}

#[test]
fn who_only_looks_in_has_not_tried() {
    let mut world = two_flaws();
    world = world.on("round-1/fix-1/take-in", taken_in(&before(), &flawed_text(2)));
    let mut trial = Trial::new(in_session(), world, 1);
    for _ in 0..9 {
        assert_eq!(parked_reason(&trial.live(workflow, None)), Some(Reason::InSession));
    }
}

#[test]
fn a_person_may_leave_it_to_fixers_or_accept_it() {
    for (choice, expected) in [("fixers", None), ("accept", Some(Reason::Accepted))] {
        let answer = Answer { choice: choice.into(), note: String::new() };
        let request = Request::Answer { decision: DecisionId::new("D1"), answer };
        let world =
            two_flaws().on("round-1/fix-1/session", Reply::Wait(Requests { requests: vec![request] }));
        let mut trial = Trial::new(in_session(), world, 1);
        let life = trial.live(workflow, None);
        match expected {
            Some(reason) => {
                assert!(matches!(&life, Life::Done(ending) if ending.reason == reason), "{life:?}")
            }
            // The script has no fixers; the test only needs to see that one was asked for.
            None => assert!(trial.world.performed.iter().any(|key| key == "round-1/fix-1/fix/1"), "{life:?}"),
        }
    }
}
