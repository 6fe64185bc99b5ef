//! What a review feeds into its confidence after every round, and where the result is recorded.

use tribunal_core::{
    brief::Said,
    effect::{Effect, Reply, WriteFile},
    event::{Entry, Event},
    fault::FaultKind,
    files::Hunk,
    finding::Severity,
    ids::FindingId,
    settings::Settings,
    view::RunView,
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, failed, findings, fixes, flawed_text, frozen, landed, raised},
    trial::{Trial, review_workflow as workflow},
};

const SEATS: [&str; 3] = ["party", "adversarial", "elicitation"];

fn repaired() -> String {
    flawed_text(1).replace("flaw 1", "repaired")
}

/// Scripts the answers of the three seats in a round, for the first and the second attempt alike.
fn seats(world: ScriptedWorld, round: u32, answers: [Reply; 3]) -> ScriptedWorld {
    SEATS.iter().zip(answers).fold(world, |world, (seat, answer)| {
        world
            .on(&format!("round-{round}/review/{seat}/again"), answer.clone())
            .on(&format!("round-{round}/review/{seat}"), answer)
    })
}

fn nothing() -> Reply {
    findings(vec![])
}

fn flaw() -> Reply {
    findings(vec![raised(1, Severity::High)])
}

fn invented() -> Reply {
    findings(vec![raised(9, Severity::High)])
}

/// Round 1 gives these answers. If flaw 1 was raised, a fixer repairs it, and round 2 raises nothing.
fn world(first: [Reply; 3]) -> ScriptedWorld {
    let world = ScriptedWorld::default()
        .on("round-1/freeze", frozen(&flawed_text(1)))
        .on("round-1/fix-1/fix/1", fixes(vec![(FindingId(1), Said::Fixed)], true))
        .on(
            "round-1/fix-1/fix/1/land",
            landed(&repaired(), vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
        )
        .on("round-2/freeze", frozen(&repaired()))
        .on("end/look", frozen(&repaired()));
    let world = seats(world, 1, first);
    seats(world, 2, [nothing(), nothing(), nothing()])
}

/// Runs a review and returns its journal.
fn live(settings: Settings, world: ScriptedWorld) -> Vec<Entry> {
    let mut trial = Trial::new(settings, world, 1);
    trial.live(workflow, None);
    trial.journal
}

/// Returns the score and its parts after every round.
fn said(journal: &[Entry]) -> Vec<String> {
    let said = journal.iter().filter_map(|entry| match &entry.event {
        Event::ConfidenceCalculated { round, confidence } => {
            Some(format!("{round}: {}: {}", confidence.score, confidence.parts()))
        }
        _ => None,
    });
    said.collect()
}

fn first_round(answers: [Reply; 3]) -> String {
    said(&live(samples::settings(), world(answers)))[0].clone()
}

fn checked() -> Settings {
    Settings { verify: vec!["make check".into()], ..samples::settings() }
}

#[test]
fn without_checks_the_reviewers_are_the_only_source() {
    assert_eq!(
        said(&live(samples::settings(), world([flaw(), flaw(), flaw()]))),
        [
            "1: 10: reviewers 5/25; one source only; validation, memory, party not consulted",
            "2: 50: reviewers 25/25; one source only; validation, memory, party not consulted",
        ]
    );
}

#[test]
fn checks_count_once_the_text_that_was_read_has_passed_them() {
    assert_eq!(
        said(&live(checked(), world([flaw(), flaw(), flaw()]))),
        [
            "1: 10: reviewers 5/25; one source only; validation, memory, party not consulted",
            "2: 100: validation 35/35, reviewers 25/25; memory, party not consulted",
        ]
    );
}

#[test]
fn checks_do_not_speak_for_a_text_that_somebody_has_changed_since() {
    let world = world([flaw(), flaw(), flaw()]).on("round-2/freeze", frozen("# Another\n"));
    assert_eq!(
        said(&live(checked(), world))[1],
        "2: 50: reviewers 25/25; one source only; validation, memory, party not consulted"
    );
}

#[test]
fn most_reviewers_half_of_them_and_one_alone() {
    let failed = || failed(FaultKind::TimedOut);
    for (answers, share) in [
        ([nothing(), nothing(), nothing()], "reviewers 25/25"),
        ([nothing(), flaw(), nothing()], "reviewers 15/25"),
        ([flaw(), flaw(), nothing()], "reviewers 5/25"),
        // A reviewer that did not answer does not count.
        ([failed(), nothing(), nothing()], "reviewers 25/25"),
        ([failed(), flaw(), nothing()], "reviewers 5/25"),
        ([failed(), failed(), nothing()], "reviewers 10/25"),
        ([failed(), failed(), flaw()], "reviewers 5/25"),
        // A reviewer whose quotes are not in the text does not count either.
        ([invented(), nothing(), nothing()], "reviewers 25/25"),
        ([invented(), flaw(), nothing()], "reviewers 5/25"),
        ([invented(), invented(), invented()], "no signal; reviewers had nothing"),
    ] {
        let said = first_round(answers);
        assert!(said.contains(share), "{share} is expected: {said}");
    }
}

#[test]
fn a_low_finding_leaves_a_reviewer_content() {
    let low = findings(vec![raised(1, Severity::Low)]);
    assert!(first_round([low.clone(), low.clone(), low]).contains("reviewers 25/25"));
}

#[test]
fn who_raises_again_what_still_stands_is_not_content() {
    let world = world([flaw(), flaw(), flaw()])
        .on("round-1/fix-1/fix/1", fixes(vec![(FindingId(1), Said::Blocked)], false))
        .on("round-2/freeze", frozen(&flawed_text(1)));
    let world = seats(world, 2, [flaw(), nothing(), nothing()]);
    let said = said(&live(samples::settings(), world));
    assert!(said[1].contains("reviewers 15/25"), "{said:?}");
}

#[test]
fn people_tracker_and_metrics_are_told_the_last_one() {
    let journal = live(checked(), world([flaw(), flaw(), flaw()]));
    assert_eq!(RunView::of(&journal).confidence.unwrap().score, 100);
    let written: Vec<&str> = journal
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::EffectStarted { effect: Effect::Write(WriteFile { text, .. }), .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let headers: Vec<&str> =
        written.iter().filter_map(|text| text.lines().find(|line| line.starts_with("Confidence:"))).collect();
    let first = "Confidence: 10 (reviewers 5/25; one source only; validation, memory, party not consulted); \
                 for gates 5, low";
    let last = "Confidence: 100 (validation 35/35, reviewers 25/25; memory, party not consulted); for gates 95, high";
    // The tracker is written after round 1, after its fix iteration, after round 2 and at the end.
    assert_eq!(headers, [first, first, last, last]);
    let metrics: serde_json::Value = serde_json::from_str(written.last().unwrap()).unwrap();
    assert_eq!(metrics["final_confidence"], 100);
}
