//! What follows from the fault of an agent: another attempt, a wait, another agent, or a pause for the user.

use tribunal_core::{
    brief::Session,
    effect::{AskAgent, AskOutcome, AwaitReset, Effect, FailedTask, Reply},
    event::Event,
    fault::{FaultKind, Rule},
    finding::Severity,
    ids::AgentName,
    level::Level,
    limits::{Limits, Waits},
    reason::Reason,
    review::Court,
    settings::{AgentSpec, DriverSpec, Settings},
    view::RunView,
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, failed, findings, flawed_text, frozen, raised},
    trial::{Life, Trial, review_workflow, reviewed, started},
};

const SEAT: &str = "round-1/review/adversarial";
/// A reset time that is after the start of the trial, whose clock starts at 1,000,000.
const SOON: u64 = 9_000_000;

fn alone() -> Settings {
    Settings { level: Some(Level::Minimal), fix: false, ..samples::settings() }
}

fn both() -> Settings {
    let agent = |name: &str| AgentSpec::new(name, DriverSpec::Command { argv: vec![name.into()] });
    Settings { agents: vec![agent("a"), agent("b")], ..alone() }
}

fn world() -> ScriptedWorld {
    ScriptedWorld::default().on("round-1/freeze", frozen(&flawed_text(1)))
}

fn one() -> Reply {
    findings(vec![raised(1, Severity::High)])
}

fn limited(until_ms: Option<u64>) -> Reply {
    failed(FaultKind::Limited { until_ms })
}

fn instant(kind: FaultKind) -> Reply {
    let mut reply = failed(kind);
    if let Reply::Ask(AskOutcome::Failed(FailedTask { fault, .. })) = &mut reply {
        fault.instant = true;
    }
    reply
}

/// Returns the state that the last boundary recorded.
fn court(trial: &Trial<ScriptedWorld>) -> Court {
    let states = trial.journal.iter().rev().filter_map(|entry| match &entry.event {
        Event::Boundary { state, .. } => serde_json::from_value(state.clone()).ok(),
        _ => None,
    });
    states.take(1).next().unwrap_or_default()
}

fn waits(trial: &Trial<ScriptedWorld>) -> Vec<u64> {
    let until = trial.journal.iter().filter_map(|entry| match &entry.event {
        Event::EffectStarted { effect: Effect::AwaitReset(AwaitReset { until_ms, .. }), .. } => {
            Some(*until_ms)
        }
        _ => None,
    });
    until.collect()
}

/// Returns which agent was asked for the seat, with the rest of the key.
fn asked(trial: &Trial<ScriptedWorld>) -> Vec<String> {
    let tasks = trial.journal.iter().filter_map(|entry| match &entry.event {
        Event::EffectStarted { key, effect: Effect::Ask(AskAgent { task }), .. } => {
            Some(format!("{} {}", key.as_str().strip_prefix(SEAT)?, task.agent))
        }
        _ => None,
    });
    tasks.collect()
}

fn warnings(trial: &Trial<ScriptedWorld>) -> Vec<String> {
    let texts = trial.journal.iter().filter_map(|entry| match &entry.event {
        Event::Warned { text } => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_usage_limit_is_waited_out_and_then_the_same_agent_is_asked_again() {
    let world = world().on(SEAT, limited(Some(SOON))).on(&format!("{SEAT}/then-1"), one());
    let (ending, view, trial) = reviewed(alone(), world);
    assert_eq!(waits(&trial), [SOON + 2_000]);
    assert_eq!(asked(&trial), [" sample", "/then-1 sample"]);
    assert_eq!((ending.reason, view.findings.len()), (Reason::ReviewOnly, 1));
}

#[test]
fn waiting_charges_nothing_and_uses_up_no_time() {
    let day = 24 * 3_600_000;
    let waits = Waits { at_most_ms: 2 * day, first: true };
    let settings = Settings { limits: Limits { waits, ..Limits::default() }, ..alone() };
    let world = world().on(SEAT, limited(Some(day))).on(&format!("{SEAT}/then-1"), one());
    let (ending, _, trial) = reviewed(settings, world);
    assert!(trial.waited_ms > Limits::default().runtime_ms, "{}", trial.waited_ms);
    assert_eq!(ending.reason, Reason::ReviewOnly, "{}", ending.detail);
    assert_eq!(court(&trial).spent.failures_in_a_row, 0);
}

#[test]
fn without_a_time_the_waits_get_longer() {
    let mut world = world().on(SEAT, limited(None));
    for number in 1..=3 {
        world = world.on(&format!("{SEAT}/then-{number}"), limited(Some(1)));
    }
    let (_, _, trial) = reviewed(alone(), world.on(&format!("{SEAT}/then-4"), one()));
    let minutes: Vec<u64> = waits(&trial).windows(2).map(|two| (two[1] - two[0]) / 60_000).collect();
    assert_eq!(minutes, [2, 4, 8], "each from the end of the last");
}

#[test]
fn a_wait_that_was_cut_off_ends_when_it_would_have_ended() {
    let script = || world().on(SEAT, limited(Some(SOON))).on(&format!("{SEAT}/then-1"), one());
    let (whole, _, _) = reviewed(alone(), script());
    let mut trial = Trial::new(alone(), script(), 1);
    // Each life makes one write, until the wait has begun. Three more lives are killed before the wait ends.
    while waits(&trial).is_empty() {
        trial.live(review_workflow, Some(1));
    }
    for _ in 0..3 {
        assert_eq!(trial.live(review_workflow, Some(0)), Life::Killed);
    }
    assert_eq!(trial.live(review_workflow, None), Life::Done(whole));
    assert_eq!(waits(&trial), [SOON + 2_000], "asked for once, with the time it had");
}

#[test]
fn nobody_waits_longer_than_is_set_and_the_person_is_told_when() {
    let far = 1_000_000 + 13 * 3_600_000;
    let (ending, _, trial) = reviewed(alone(), world().on(SEAT, limited(Some(far))));
    assert!(waits(&trial).is_empty());
    assert_eq!(ending.reason, Reason::Environment);
    assert!(
        ending.detail.contains("sample may be asked again at 1970-01-01 13:16:40 UTC"),
        "{}",
        ending.detail
    );
}

#[test]
fn another_agent_is_asked_rather_than_waited_and_later_tasks_know() {
    let world = world().on(SEAT, limited(Some(SOON))).on(&format!("{SEAT}/other-1"), one());
    let (ending, _, trial) = reviewed(both(), world);
    assert_eq!((asked(&trial), waits(&trial)), (vec![" a".into(), "/other-1 b".into()], vec![]));
    assert_eq!(ending.reason, Reason::ReviewOnly);
    assert_eq!(court(&trial).spent.limited.get(&AgentName::new("a")), Some(&SOON));
    assert!(
        warnings(&trial).iter().any(|text| text.ends_with("b does it instead of a")),
        "{:?}",
        warnings(&trial)
    );
}

#[test]
fn where_the_other_cannot_work_the_limited_one_is_waited_for() {
    for kind in [FaultKind::NotSignedIn, FaultKind::Limited { until_ms: Some(SOON * 2) }] {
        let script = world().on(SEAT, limited(Some(SOON))).on(&format!("{SEAT}/other-1"), failed(kind));
        let (ending, _, trial) = reviewed(both(), script.on(&format!("{SEAT}/then-1"), one()));
        assert_eq!(asked(&trial), [" a", "/other-1 b", "/then-1 a"]);
        assert_eq!((waits(&trial), ending.reason), (vec![SOON + 2_000], Reason::ReviewOnly));
    }
}

#[test]
fn who_wants_to_wait_waits_although_there_is_another() {
    let waiting = Waits { first: true, ..Waits::default() };
    let settings = Settings { limits: Limits { waits: waiting, ..Limits::default() }, ..both() };
    let world = world().on(SEAT, limited(Some(SOON))).on(&format!("{SEAT}/then-1"), one());
    let (_, _, trial) = reviewed(settings, world);
    assert_eq!(asked(&trial), [" a", "/then-1 a"]);
}

#[test]
fn each_rule_leads_where_it_says() {
    let again = |kind: &FaultKind| match kind.row().rule {
        Rule::Retry | Rule::RetryThenFallBack => "/again",
        Rule::Wait => "/then-1",
        Rule::FallBack => "/other-1",
        Rule::Stop => "",
    };
    for kind in [
        FaultKind::NotInstalled,
        FaultKind::NotSignedIn,
        FaultKind::NoModel,
        FaultKind::NoCredit,
        FaultKind::NeverActive,
        FaultKind::Denied,
        FaultKind::Overflow,
        FaultKind::Refused,
        FaultKind::Rejected { status: 400 },
        FaultKind::Curtailed,
        FaultKind::Exited { code: 127 },
        FaultKind::Exited { code: 1 },
        FaultKind::TimedOut,
        FaultKind::Overloaded,
        FaultKind::Connection,
        FaultKind::World,
    ] {
        let next = again(&kind);
        let world = world().on(SEAT, failed(kind.clone())).on(&format!("{SEAT}{next}"), one());
        let world = if next.is_empty() { world.on(SEAT, failed(kind.clone())) } else { world };
        let (ending, _, trial) = reviewed(both(), world);
        let last = asked(&trial).last().cloned().unwrap_or_default();
        assert!(last.starts_with(&format!("{next} ")), "{kind:?}: {:?}", asked(&trial));
        let expected = if next.is_empty() { Reason::Environment } else { Reason::ReviewOnly };
        assert_eq!(ending.reason, expected, "{kind:?}: {}", ending.detail);
    }
}

#[test]
fn a_provider_in_trouble_is_asked_twice_and_then_another() {
    for kind in [FaultKind::Overloaded, FaultKind::Connection] {
        let script = world().on(SEAT, failed(kind.clone())).on(&format!("{SEAT}/again"), failed(kind));
        let (ending, _, trial) = reviewed(both(), script.on(&format!("{SEAT}/other-1"), one()));
        assert_eq!(asked(&trial), [" a", "/again a", "/other-1 b"]);
        assert_eq!(ending.reason, Reason::ReviewOnly);
    }
}

#[test]
fn a_fault_of_the_environment_is_nobodys_attempt_and_pauses_the_run_with_the_evidence() {
    let (ending, _, mut trial) = reviewed(alone(), world().once(SEAT, failed(FaultKind::NotSignedIn)));
    assert_eq!((ending.reason, court(&trial).spent.failures_in_a_row), (Reason::Environment, 0));
    assert!(ending.detail.starts_with("no reviewer answered: "), "{}", ending.detail);
    // The resume comes after the user has repaired the environment.
    trial.world = world().on(SEAT, one());
    trial.world.resumes = true;
    let (ending, _) = trial.review();
    assert_eq!(ending.reason, Reason::ReviewOnly, "{}", ending.detail);
}

#[test]
fn the_same_failure_at_once_twice_breaks_the_circuit() {
    let exited = || instant(FaultKind::Exited { code: 1 });
    let script = world().on(SEAT, exited()).on(&format!("{SEAT}/again"), exited());
    let (ending, _, trial) = reviewed(alone(), script);
    assert_eq!(
        (ending.reason, court(&trial).spent.failures_in_a_row),
        (Reason::Environment, 0),
        "{}",
        ending.detail
    );
    assert!(ending.detail.ends_with("twice, and at once each time"), "{}", ending.detail);
    assert_eq!(asked(&trial).len(), 2);

    let script = world().on(SEAT, exited()).on(&format!("{SEAT}/again"), exited());
    let (ending, _, trial) = reviewed(both(), script.on(&format!("{SEAT}/other-1"), one()));
    assert_eq!(asked(&trial), [" a", "/again a", "/other-1 b"]);
    assert_eq!(ending.reason, Reason::ReviewOnly);

    // A failure of an agent that had begun to work does count.
    let late = || failed(FaultKind::Exited { code: 1 });
    let (_, _, trial) = reviewed(alone(), world().on(SEAT, late()).on(&format!("{SEAT}/again"), late()));
    assert!(court(&trial).spent.failures_in_a_row > 0);
}

#[test]
fn when_no_challenger_can_be_asked_nothing_is_repaired_and_nothing_is_charged() {
    let script = world()
        .on(SEAT, one())
        .once("round-1/challenge/1/1", failed(FaultKind::NotSignedIn))
        .once("round-1/challenge/2/1", failed(FaultKind::NotSignedIn));
    let settings = Settings { fix: true, ..alone() };
    let (ending, _, trial) = reviewed(settings, script);
    assert_eq!(
        (ending.reason, court(&trial).spent.failures_in_a_row),
        (Reason::Environment, 0),
        "{}",
        ending.detail
    );
    assert!(!started(&trial.journal).iter().any(|key| key.as_str().contains("/fix-")));
}

#[test]
fn a_wait_that_goes_on_after_a_resume_is_still_to_be_seen() {
    let mut world = world().on(SEAT, limited(Some(SOON))).on(&format!("{SEAT}/then-1"), one());
    world.resumes = true;
    let mut trial = Trial::new(alone(), world, 1);
    // Each life makes one write.
    while waits(&trial).is_empty() {
        trial.live(review_workflow, Some(1));
    }
    let resumed_at = |wall_ms| {
        let mut entry = trial.journal[0].clone();
        entry.event = Event::RunResumed { life: 2 };
        entry.at.wall_ms = wall_ms;
        RunView::of(trial.journal.iter().chain([&entry])).awaited().count()
    };
    assert_eq!((resumed_at(SOON - 1), resumed_at(SOON * 2)), (1, 0));
}

/// Adds a session to the answer, as if the client had kept the conversation.
fn kept(mut reply: Reply, at_ms: u64) -> Reply {
    if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
        answer.session = Some(Box::new(Session { id: "talk".into(), total: answer.usage, at_ms }));
    }
    reply
}

/// Returns for each call of the seat the rest of its key and whether it continues an earlier session.
fn talks(trial: &Trial<ScriptedWorld>) -> Vec<(String, bool)> {
    let tasks = trial.journal.iter().filter_map(|entry| match &entry.event {
        Event::EffectStarted { key, effect: Effect::Ask(AskAgent { task }), .. } => {
            Some((key.as_str().strip_prefix(SEAT)?.to_string(), task.session.is_some()))
        }
        _ => None,
    });
    tasks.collect()
}

#[test]
fn what_was_wrong_with_an_answer_is_said_in_the_same_talk() {
    let first = || kept(samples::unreadable(), 1_000_000);
    let (_, _, trial) = reviewed(alone(), world().on(SEAT, first()).on(&format!("{SEAT}/again"), one()));
    assert_eq!(talks(&trial), [(String::new(), false), ("/again".into(), true)]);

    // Clients forget their sessions after a day.
    let stale = kept(samples::unreadable(), 0);
    let mut trial = Trial::new(alone(), world().on(SEAT, stale).on(&format!("{SEAT}/again"), one()), 1);
    trial.waited_ms = Session::EXPIRES_MS;
    trial.review();
    assert_eq!(talks(&trial), [(String::new(), false), ("/again".into(), false)]);
}

#[test]
fn a_talk_that_the_client_has_forgotten_is_begun_anew() {
    let script = world()
        .on(SEAT, kept(samples::unreadable(), 1_000_000))
        .on(&format!("{SEAT}/again"), failed(FaultKind::Exited { code: 1 }))
        .on(&format!("{SEAT}/anew"), one());
    let (ending, _, trial) = reviewed(alone(), script);
    assert_eq!(talks(&trial), [(String::new(), false), ("/again".into(), true), ("/anew".into(), false)]);
    assert_eq!(ending.reason, Reason::ReviewOnly);
}
