//! What a review feeds into its confidence after every round, and where the result is recorded.

use tribunal_engine::{fault::FaultKind, files::Hunk, ids::FindingId};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{
        self, failed_task_reply, findings_reply, fixes_reply, flawed_text, frozen_reply, landed_reply, raised_flaw,
    },
    trial::{TrialRun, ordered_workflow as workflow},
};
use tribunal_workflows::{
    findings::finding::Severity,
    review::{event::ReviewEvent, order::ReviewOrder},
    runs::{
        effect::{Effect, Reply, WriteFile},
        plan::RunPlan,
        types::{JournalEntry, RunEvent, find_event},
        view::RunView,
    },
    tasks::claims::ClaimStatus,
};

const SEATS: [&str; 3] = ["party", "adversarial", "elicitation"];

fn repaired_text() -> String {
    flawed_text(1).replace("flaw 1", "repaired")
}

/// Scripts the answers of the three seats in a round, for the first and the second attempt alike.
fn add_seat_answers(world: ScriptedWorld, round: u32, answers: [Reply; 3]) -> ScriptedWorld {
    SEATS.iter().zip(answers).fold(world, |world, (seat, answer)| {
        world
            .reply_on(&format!("round-{round}/review/{seat}/again"), answer.clone())
            .reply_on(&format!("round-{round}/review/{seat}"), answer)
    })
}

fn no_findings() -> Reply {
    findings_reply(vec![])
}

fn real_flaw() -> Reply {
    findings_reply(vec![raised_flaw(1, Severity::High)])
}

fn invented_flaw() -> Reply {
    findings_reply(vec![raised_flaw(9, Severity::High)])
}

/// Round 1 gives these answers. If flaw 1 was raised, a fixer repairs it, and round 2 raises nothing.
fn world_with_answers(first_answers: [Reply; 3]) -> ScriptedWorld {
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(FindingId(1), ClaimStatus::Fixed)], true))
        .reply_on(
            "round-1/fix-1/fix/1/land",
            landed_reply(&repaired_text(), vec![Hunk { old_start: 5, old_len: 1, new_len: 1 }]),
        )
        .reply_on("round-2/freeze", frozen_reply(&repaired_text()))
        .reply_on("end/look", frozen_reply(&repaired_text()));
    let world = add_seat_answers(world, 1, first_answers);
    add_seat_answers(world, 2, [no_findings(), no_findings(), no_findings()])
}

/// Runs a review and returns its journal.
fn run_and_record(plan: RunPlan<ReviewOrder>, world: ScriptedWorld) -> Vec<JournalEntry> {
    let mut trial = TrialRun::new(plan, world, 1);
    trial.run_workflow(workflow, None);
    trial.journal
}

/// Returns the score and its parts after every round.
fn confidence_lines(journal: &[JournalEntry]) -> Vec<String> {
    let calculated_lines = journal.iter().filter_map(|entry| match find_event::<ReviewEvent>(&entry.event) {
        Some(ReviewEvent::ConfidenceCalculated { round, confidence }) => {
            Some(format!("{round}: {}: {}", confidence.score, confidence.describe_all()))
        }
        _ => None,
    });
    calculated_lines.collect()
}

fn first_round_confidence(answers: [Reply; 3]) -> String {
    confidence_lines(&run_and_record(samples::sample_plan(), world_with_answers(answers)))[0].clone()
}

fn checked_plan() -> RunPlan<ReviewOrder> {
    samples::sample_plan().with_change(|plan| plan.settings.checks = samples::sample_checks())
}

#[test]
fn without_checks_the_reviewers_are_the_only_source() {
    assert_eq!(
        confidence_lines(&run_and_record(
            samples::sample_plan(),
            world_with_answers([real_flaw(), real_flaw(), real_flaw()])
        )),
        [
            "1: 10: reviewers 5/25; only one source; validation, memory, party not consulted",
            "2: 50: reviewers 25/25; only one source; validation, memory, party not consulted",
        ]
    );
}

#[test]
fn checks_count_once_the_reviewed_text_has_passed_them() {
    assert_eq!(
        confidence_lines(&run_and_record(checked_plan(), world_with_answers([real_flaw(), real_flaw(), real_flaw()]))),
        [
            "1: 10: reviewers 5/25; only one source; validation, memory, party not consulted",
            "2: 100: validation 35/35, reviewers 25/25; memory, party not consulted",
        ]
    );
}

#[test]
fn checks_do_not_count_for_a_text_that_was_changed_since() {
    let world = world_with_answers([real_flaw(), real_flaw(), real_flaw()])
        .reply_on("round-2/freeze", frozen_reply("# Another\n"));
    assert_eq!(
        confidence_lines(&run_and_record(checked_plan(), world))[1],
        "2: 50: reviewers 25/25; only one source; validation, memory, party not consulted"
    );
}

#[test]
fn the_share_of_the_reviewers_follows_how_many_are_content() {
    let failed_seat = || failed_task_reply(FaultKind::TimedOut);
    for (answers, share) in [
        ([no_findings(), no_findings(), no_findings()], "reviewers 25/25"),
        ([no_findings(), real_flaw(), no_findings()], "reviewers 15/25"),
        ([real_flaw(), real_flaw(), no_findings()], "reviewers 5/25"),
        // A reviewer that did not answer does not count.
        ([failed_seat(), no_findings(), no_findings()], "reviewers 25/25"),
        ([failed_seat(), real_flaw(), no_findings()], "reviewers 5/25"),
        ([failed_seat(), failed_seat(), no_findings()], "reviewers 10/25"),
        ([failed_seat(), failed_seat(), real_flaw()], "reviewers 5/25"),
        // A reviewer whose quotes are not in the text does not count either.
        ([invented_flaw(), no_findings(), no_findings()], "reviewers 25/25"),
        ([invented_flaw(), real_flaw(), no_findings()], "reviewers 5/25"),
        ([invented_flaw(), invented_flaw(), invented_flaw()], "no signals; reviewers gave no signal"),
    ] {
        let confidence_line = first_round_confidence(answers);
        assert!(confidence_line.contains(share), "{share} is expected: {confidence_line}");
    }
}

#[test]
fn a_reviewer_with_only_low_findings_is_content() {
    let low_finding = findings_reply(vec![raised_flaw(1, Severity::Low)]);
    assert!(
        first_round_confidence([low_finding.clone(), low_finding.clone(), low_finding]).contains("reviewers 25/25")
    );
}

#[test]
fn a_reviewer_that_raises_an_open_finding_again_is_not_content() {
    let world = world_with_answers([real_flaw(), real_flaw(), real_flaw()])
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(FindingId(1), ClaimStatus::Blocked)], false))
        .reply_on("round-2/freeze", frozen_reply(&flawed_text(1)));
    let world = add_seat_answers(world, 2, [real_flaw(), no_findings(), no_findings()]);
    let lines = confidence_lines(&run_and_record(samples::sample_plan(), world));
    assert!(lines[1].contains("reviewers 15/25"), "{lines:?}");
}

#[test]
fn view_tracker_and_metrics_show_the_last_confidence() {
    let journal = run_and_record(checked_plan(), world_with_answers([real_flaw(), real_flaw(), real_flaw()]));
    assert_eq!(RunView::from_entries(&journal).as_review().unwrap().confidence.as_ref().unwrap().score, 100);
    let written_texts: Vec<&str> = journal
        .iter()
        .filter_map(|entry| match &entry.event {
            RunEvent::EffectStarted { effect: Effect::Write(WriteFile { text, .. }), .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let headers: Vec<&str> =
        written_texts.iter().filter_map(|text| text.lines().find(|line| line.starts_with("Confidence:"))).collect();
    let first_header = "Confidence: 10 (reviewers 5/25; only one source; validation, memory, party not consulted); \
                 for gates 5, low";
    let last_header =
        "Confidence: 100 (validation 35/35, reviewers 25/25; memory, party not consulted); for gates 95, high";
    // The tracker is written after round 1, after its fix iteration, after round 2 and at the end.
    assert_eq!(headers, [first_header, first_header, last_header, last_header]);
    let metrics: serde_json::Value = serde_json::from_str(written_texts.last().unwrap()).unwrap();
    assert_eq!(metrics["final_confidence"], 100);
}
