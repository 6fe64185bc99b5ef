//! Failures of reviews that are known from other tools. Each test is a scenario that must not happen here.

use tribunal_core::{
    brief::{Content, Said},
    effect::{AskOutcome, Effect, Reply, Sleep},
    event::Event,
    fault::FaultKind,
    files::Hunk,
    finding::{Severity, Status},
    ids::FindingId,
    level::Level,
    reason::{Outcome, Reason},
    settings::Settings,
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, failed, findings, fixes, flawed_text, frozen, landed, raised},
    trial::{Life, review_workflow as workflow, reviewed as live},
};

const F1: FindingId = FindingId(1);

fn alone() -> Settings {
    Settings { level: Some(Level::Minimal), ..samples::settings() }
}

fn raises_one() -> ScriptedWorld {
    ScriptedWorld::default()
        .on("round-1/freeze", frozen(&flawed_text(1)))
        .on("round-1/review/adversarial", findings(vec![raised(1, Severity::High)]))
}

/// Returns an answer that has text but no list of findings.
fn prose() -> Reply {
    let mut reply = findings(vec![]);
    if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
        answer.content = Content::Unreadable { message: "there is no list of findings".into() };
    }
    reply
}

// Tests of completion.

#[test]
fn a_promise_is_a_claim_and_open_findings_stay_open() {
    // The fixer claims that everything is done and has changed nothing.
    let mut settings = alone();
    settings.limits.fix_iterations = 2;
    let world = raises_one()
        .on("round-1/fix-1/fix/1", fixes(vec![(F1, Said::Fixed)], false))
        .on("round-1/fix-2/fix/1", prose())
        .on("round-1/fix-2/fix/1/again", prose());
    let (ending, view, _) = live(settings, world);
    assert_eq!(ending.reason, Reason::FixIterations);
    assert_eq!(view.findings[&F1].status, Status::Open);
}

#[test]
fn an_answer_without_a_word_is_no_dry_pass() {
    let (ending, _, trial) = live(
        alone(),
        ScriptedWorld::default()
            .on("round-1/freeze", frozen(&flawed_text(0)))
            .on("round-1/review/adversarial", prose())
            .on("round-1/review/adversarial/again", prose()),
    );
    assert_eq!(ending.reason.outcome(), Some(Outcome::Failed), "nobody answered, so there was no round");
    assert!(!trial.journal.iter().any(|entry| matches!(entry.event, Event::RoundEnded { .. })));
}

#[test]
fn half_a_panel_is_no_dry_pass() {
    let silent = |world: ScriptedWorld, round: u32, role: &str| {
        let key = format!("round-{round}/review/{role}");
        world.on(&format!("{key}/again"), failed(FaultKind::TimedOut)).on(&key, failed(FaultKind::TimedOut))
    };
    let mut world = ScriptedWorld::default();
    for round in 1..=3 {
        world = world
            .on(&format!("round-{round}/freeze"), frozen(&flawed_text(0)))
            .on(&format!("round-{round}/review/adversarial"), findings(vec![]));
        world = silent(silent(world, round, "party"), round, "elicitation");
    }
    let mut settings = samples::settings();
    settings.limits.failures = 50;
    let (ending, _, _) = live(settings, world);
    assert_eq!(ending.reason, Reason::Rounds, "{ending:?}");
}

// Tests of loop control.

#[test]
fn reviewers_who_can_always_find_something_small_do_not_keep_a_review_going() {
    let text = flawed_text(9);
    let world = ScriptedWorld::default()
        .on("round-1/freeze", frozen(&text))
        .on("round-1/review/adversarial", findings((1..=9).map(|n| raised(n, Severity::Low)).collect()))
        .on("end/look", frozen(&text));
    let (ending, view, trial) = live(Settings { fix: false, ..alone() }, world);
    assert_eq!((ending.reason, view.rounds), (Reason::ReviewOnly, 1));
    let dry = trial.journal.iter().find_map(|entry| match &entry.event {
        Event::RoundEnded { dry, .. } => Some(*dry),
        _ => None,
    });
    assert_eq!(dry, Some(true), "nothing of medium or higher was raised");
}

#[test]
fn reviewers_who_always_find_something_grave_come_to_the_last_round_and_the_rest_is_listed() {
    // Every round finds a new flaw and every fix lands. The run must end at the round limit, because the findings never end.
    let mut text = flawed_text(9);
    let mut world = ScriptedWorld::default();
    for round in 1..=3_usize {
        world = world
            .on(&format!("round-{round}/freeze"), frozen(&text))
            .on(&format!("round-{round}/review/adversarial"), findings(vec![raised(round, Severity::High)]))
            .on(
                &format!("round-{round}/fix-1/fix/1"),
                fixes(vec![(FindingId(round as u32), Said::Fixed)], true),
            );
        text = text.replace(&format!("flaw {round}\n"), "repaired\n");
        let line = round as u32 * 4 + 1;
        let hunks = vec![Hunk { old_start: line, old_len: 1, new_len: 1 }];
        world = world.on(&format!("round-{round}/fix-1/fix/1/land"), landed(&text, hunks));
    }
    let (ending, view, _) = live(alone(), world);
    assert_eq!((ending.reason, view.rounds), (Reason::Rounds, 3));
    assert!(ending.detail.contains("verified but were not reviewed again"), "{}", ending.detail);
    assert_eq!((view.counts().fixed, view.counts().open), (3, 0));
    assert_eq!(view.waiting().count(), 1, "a person is asked whether to go on");
}

#[test]
fn a_panel_that_asks_for_one_more_look_at_itself_gets_it_once() {
    let invented = |n: usize| {
        let mut claim = raised(1, Severity::High);
        claim.evidence = tribunal_core::finding::Evidence::Quote { text: format!("never written {n}") };
        findings(vec![claim])
    };
    let world = (1..=3).fold(ScriptedWorld::default(), |world, round| {
        world
            .on(&format!("round-{round}/freeze"), frozen(&flawed_text(1)))
            .on(&format!("round-{round}/review/adversarial"), invented(round))
            .on(&format!("round-{round}/review/elicitation"), invented(round))
    });
    let (ending, view, _) = live(alone(), world);
    assert_eq!((ending.reason, view.rounds), (Reason::PanelDegraded, 2));
}

#[test]
fn backoff_starts_anew_after_a_success() {
    // Three fixers fail one after the other, then one answers, then one fails again.
    let mut settings = alone();
    settings.tasks.retry_after_ms = 1;
    settings.limits.fix_iterations = 5;
    settings.limits.failures = 9;
    let mut world = raises_one();
    for iteration in [1, 2, 3, 5] {
        let key = format!("round-1/fix-{iteration}/fix/1");
        world = world
            .on(&key, failed(FaultKind::TimedOut))
            .on(&format!("{key}/again"), failed(FaultKind::TimedOut));
    }
    let (_, _, trial) = live(settings, world.on("round-1/fix-4/fix/1", fixes(vec![], false)));
    let pauses = trial.journal.iter().filter_map(|entry| match &entry.event {
        Event::EffectStarted { effect: Effect::Sleep(Sleep { ms }), .. } => Some(*ms),
        _ => None,
    });
    assert_eq!(
        pauses.collect::<Vec<_>>(),
        [1, 2_000, 4_000, 1],
        "the last one pays nothing for the first three"
    );
}

#[test]
fn one_failing_agent_is_data_and_the_run_goes_on() {
    let repaired = flawed_text(1).replace("flaw 1", "repaired");
    let world = raises_one()
        .on("round-1/fix-1/fix/1", failed(FaultKind::Exited { code: 2 }))
        .on("round-1/fix-1/fix/1/again", failed(FaultKind::Flood))
        .on("round-1/fix-2/fix/1", fixes(vec![(F1, Said::Fixed)], true))
        .on(
            "round-1/fix-2/fix/1/land",
            landed(&repaired, vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
        )
        .on("round-2/freeze", frozen(&repaired))
        .on("round-2/review/adversarial", findings(vec![]))
        .on("end/look", frozen(&repaired));
    let (ending, view, _) = live(alone(), world);
    assert_eq!(ending.reason, Reason::GoalMet);
    let failures = view.findings[&F1].history.iter().filter(|step| step.note.contains("failed")).count();
    assert_eq!(failures, 1, "and why it took two tries is kept");
}

#[test]
fn an_environment_that_is_broken_charges_no_attempt() {
    let world = raises_one().on("round-1/fix-1/fix/1", failed(FaultKind::Exited { code: 127 }));
    let (ending, view, mut trial) = live(alone(), world);
    assert_eq!(ending.reason, Reason::Environment);
    assert_eq!(view.findings[&F1].status, Status::Open);
    // The environment is repaired and the run resumed: it repeats the same iteration, and all three iterations are left.
    trial.world.resumes = true;
    let vain = || fixes(vec![(F1, Said::Fixed)], false);
    let mut world = std::mem::take(&mut trial.world);
    for iteration in 1..=3 {
        world = world.on(&format!("round-1/fix-{iteration}/fix/1"), vain());
    }
    trial.world = world;
    let Life::Parked(ending) = trial.live(workflow, None) else { panic!("it ended otherwise") };
    assert_eq!(
        (ending.reason, ending.detail.as_str()),
        (Reason::FixIterations, "1 open after 3 fix iterations")
    );
    assert!(trial.world.performed.iter().any(|key| key == "round-1/fix-3/fix/1"));
    let left = ending.left.unwrap();
    assert_eq!(left.failures, 5, "nothing was charged");
}
