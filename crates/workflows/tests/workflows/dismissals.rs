//! What the user dismissed stays dismissed in later runs on the same subject, while the quoted text stands.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_engine::{
    answer::DecisionAnswer,
    ids::{DecisionId, FindingId, RunId},
    reason::{RunEnding, RunReason},
};
use tribunal_testkit::{
    RecordTable, ScriptedWorld,
    samples::{self, findings_reply, fixes_reply, flawed_text, frozen_reply, raised_flaw},
    trial::{TrialOutcome, TrialRun, ordered_workflow as workflow, run_first_review, started_keys},
};
use tribunal_workflows::{
    findings::{
        finding::{DismissalReason, Evidence, FindingStatus, Severity, TransitionCause},
        subject::Subject,
    },
    review::{dismissed_finding::DismissedFinding, event::ReviewEvent, level::ReviewLevel, order::ReviewOrder},
    runs::{
        effect::{Effect, Reply, WriteOutcome},
        plan::RunPlan,
        records::ProjectRecord,
        types::{Requests, RunEvent, find_event},
        user_request::{FindingChange, UserRequest},
        view::RunView,
    },
    tasks::{
        brief::RaisedFinding,
        claims::{ChallengeVerdict, ClaimStatus},
    },
};

const F1: FindingId = FindingId(1);
const BY_USER: FindingStatus = FindingStatus::Dismissed { why: DismissalReason::Person };

fn single_reviewer_plan() -> RunPlan<ReviewOrder> {
    samples::sample_plan().with_change(|plan| plan.order.level = Some(ReviewLevel::Minimal))
}

/// A review that only reports, so that every finding is still there at its end.
fn review_only_plan() -> RunPlan<ReviewOrder> {
    single_reviewer_plan().with_change(|plan| plan.order.fix = false)
}

/// A world in which one round raises these claims about this text, and the records are those of an earlier run.
fn world_with(text: &str, raised: Vec<RaisedFinding>, records: &RecordTable) -> ScriptedWorld {
    ScriptedWorld::default()
        .with_records(records)
        .reply_on("round-1/freeze", frozen_reply(text))
        .reply_on("round-1/review/adversarial", findings_reply(raised))
        .reply_on("end/look", frozen_reply(text))
}

fn amend(finding: FindingId, change: FindingChange) -> UserRequest {
    UserRequest::Amend { finding, was: None, change }
}

fn dismissal() -> FindingChange {
    FindingChange::Dismissed { reason: "it is meant so".into() }
}

/// Runs a review of one flaw in whose tracker the user dismisses it, and returns the records.
fn records_of_first_run() -> RecordTable {
    let edited = Reply::Write(WriteOutcome::Edited { requests: vec![amend(F1, dismissal())] });
    let world = world_with(&flawed_text(2), vec![raised_flaw(1, Severity::High)], &RecordTable::default())
        .reply_once("round-1/tracker", edited);
    let (ending, view, trial) = run_first_review(review_only_plan(), world);
    assert_eq!(ending.reason, RunReason::GoalMet);
    assert_eq!(status_of(&view, F1), BY_USER);
    trial.world.records
}

fn status_of(view: &RunView, finding_id: FindingId) -> FindingStatus {
    view.as_review().unwrap().findings[&finding_id].status.clone()
}

fn kept_dismissals(trial: &TrialRun<ScriptedWorld>) -> Vec<(Vec<FindingId>, Vec<RunId>)> {
    let events = trial.journal.iter().filter_map(|entry| match find_event::<ReviewEvent>(&entry.event)? {
        ReviewEvent::DismissalsKept { findings, runs } => Some((findings.clone(), runs.clone())),
        _ => None,
    });
    events.collect()
}

fn dismissed_findings(records: &RecordTable) -> Vec<DismissedFinding> {
    let to_dismissed = |record: &tribunal_workflows::runs::types::StoredRecord| match record.record.clone() {
        ProjectRecord::DismissedFinding(dismissed) => Some(dismissed),
        _ => None,
    };
    records.list_records().into_iter().filter_map(to_dismissed).collect()
}

#[test]
fn a_dismissal_is_recorded_with_what_it_is_about() {
    let expected = DismissedFinding {
        subject: Subject::from_path("plan.md", None),
        file: "plan.md".into(),
        severity: Severity::High,
        description: "flaw 1 is a flaw".into(),
        evidence: Evidence::Quote { text: "flaw 1".into() },
        reason: "the user said: it is meant so".into(),
        finding: F1,
        decided_in: None,
    };
    assert_eq!(dismissed_findings(&records_of_first_run()), [expected]);
}

#[test]
fn what_the_user_dismissed_is_neither_challenged_nor_fixed_and_the_pass_is_dry() {
    let world = world_with(&flawed_text(2), vec![raised_flaw(1, Severity::Critical)], &records_of_first_run());
    let (ending, view, trial) = run_first_review(single_reviewer_plan(), world);
    assert_eq!(
        ending,
        RunEnding::new(RunReason::GoalMet, "nothing to fix: the last review raised nothing that is left to fix")
    );
    let finding = &view.as_review().unwrap().findings[&F1];
    assert_eq!(finding.status, BY_USER);
    let last_step = finding.history.last().unwrap();
    assert_eq!(last_step.cause, TransitionCause::DismissedBefore { run: RunId::new("trial") });
    assert_eq!(last_step.note, "dismissed in trial: the user said: it is meant so");
    assert_eq!(kept_dismissals(&trial), [(vec![F1], vec![RunId::new("trial")])]);
    let keys: Vec<String> = started_keys(&trial.journal).iter().map(ToString::to_string).collect();
    assert_eq!(
        keys,
        [
            "round-1/dismissed",
            "round-1/inbox",
            "round-1/freeze",
            "round-1/review/adversarial",
            "round-1/tracker",
            "end/look",
            "end/inbox",
            "end/tracker",
            "end/metrics",
            "end/confidence"
        ]
    );
    let is_dry =
        |event: &RunEvent| matches!(find_event::<ReviewEvent>(event), Some(ReviewEvent::RoundEnded { dry: true, .. }));
    assert!(trial.journal.iter().any(|entry| is_dry(&entry.event)));
}

#[test]
fn only_the_same_claim_about_the_same_text_stays_dismissed() {
    let records = records_of_first_run();
    let quote = |text: &str| Evidence::Quote { text: text.into() };
    let with = |description: &str, evidence: Evidence| RaisedFinding {
        description: description.into(),
        evidence,
        ..raised_flaw(1, Severity::High)
    };
    let moved_text = format!("{}\nflaw 1 as before\n", flawed_text(1).replace("## Part 1", "A new line.\n\n## Part 1"));
    for (what, text, raised, expected) in [
        ("the same", flawed_text(1), raised_flaw(1, Severity::Low), BY_USER),
        ("other line", moved_text, raised_flaw(1, Severity::Low), BY_USER),
        ("other words", flawed_text(1), with("this flaw 1 really is a flaw", quote("flaw 1")), BY_USER),
        ("other typography", flawed_text(1), with("flaw 1 is a flaw", quote("- flaw   1")), BY_USER),
        ("other claim", flawed_text(1), with("the deadline is missing", quote("flaw 1")), FindingStatus::Open),
        ("longer quote", flawed_text(1), with("flaw 1 is a flaw", quote("Part 1\n\nflaw 1")), FindingStatus::Open),
        (
            "changed text",
            flawed_text(1).replace("flaw 1", "flaw 1 changed"),
            with("flaw 1 is a flaw", quote("flaw 1 changed")),
            FindingStatus::Open,
        ),
        (
            "not grounded",
            flawed_text(1).replace("flaw 1", "repaired"),
            raised_flaw(1, Severity::High),
            FindingStatus::Dismissed { why: DismissalReason::Ungrounded },
        ),
    ] {
        let (_, view, trial) = run_first_review(review_only_plan(), world_with(&text, vec![raised], &records));
        assert_eq!(status_of(&view, F1), expected, "{what}");
        assert_eq!(kept_dismissals(&trial).len(), usize::from(expected == BY_USER), "{what}");
    }
}

#[test]
fn a_dismissed_absence_needs_the_same_heading_and_terms() {
    let absence = |heading: &str, terms: &[&str]| RaisedFinding {
        description: "there is no due date".into(),
        evidence: Evidence::Absence {
            heading: heading.into(),
            terms: terms.iter().map(|term| String::from(*term)).collect(),
        },
        ..raised_flaw(1, Severity::High)
    };
    let edited = Reply::Write(WriteOutcome::Edited { requests: vec![amend(F1, dismissal())] });
    let first_claim = absence("Part 1", &["deadline", "due date"]);
    let world =
        world_with(&flawed_text(2), vec![first_claim], &RecordTable::default()).reply_once("round-1/tracker", edited);
    let (_, _, first_trial) = run_first_review(review_only_plan(), world);
    for (raised, expected) in [
        (absence("part 1", &["Due date", "deadline"]), BY_USER),
        (absence("Part 1", &["deadline"]), FindingStatus::Open),
        (absence("Part 2", &["deadline", "due date"]), FindingStatus::Open),
    ] {
        let world = world_with(&flawed_text(2), vec![raised.clone()], &first_trial.world.records);
        let (_, view, _) = run_first_review(review_only_plan(), world);
        assert_eq!(status_of(&view, F1), expected, "{raised:?}");
    }
}

#[test]
fn another_subject_has_other_dismissals() {
    let mut plan = review_only_plan();
    plan.order.subject = Subject::from_path("plan.md", Some("Part 1".into()));
    let world = world_with(&flawed_text(2), vec![raised_flaw(1, Severity::High)], &records_of_first_run());
    let (_, view, _) = run_first_review(plan, world);
    assert_eq!(status_of(&view, F1), FindingStatus::Open);
}

#[test]
fn opening_it_in_the_same_run_removes_the_record() {
    let edit = |change: FindingChange| Reply::Write(WriteOutcome::Edited { requests: vec![amend(F1, change)] });
    for change in [FindingChange::Open, FindingChange::Deferred { reason: String::new() }] {
        let world = world_with(&flawed_text(2), vec![raised_flaw(1, Severity::High)], &RecordTable::default())
            .reply_once("round-1/tracker", edit(dismissal()))
            .reply_once("round-1/tracker-2", edit(change));
        let (_, view, trial) = run_first_review(review_only_plan(), world);
        assert_ne!(status_of(&view, F1), BY_USER);
        assert_eq!(dismissed_findings(&trial.world.records), []);
    }
}

#[test]
fn opening_it_in_a_later_run_removes_the_record_and_no_round_dismisses_it_again() {
    let records = records_of_first_run();
    // The second run raises the claim in other words; the record to remove is that of the first.
    let raised = RaisedFinding { description: "this flaw 1 really is a flaw".into(), ..raised_flaw(1, Severity::High) };
    let edited = Reply::Write(WriteOutcome::Edited { requests: vec![amend(F1, FindingChange::Open)] });
    let world = world_with(&flawed_text(2), vec![raised], &records).reply_once("round-1/tracker", edited);
    let (ending, view, trial) = run_first_review(review_only_plan(), world);
    assert_eq!((ending.reason, status_of(&view, F1)), (RunReason::ReviewOnly, FindingStatus::Open));
    assert_eq!(dismissed_findings(&trial.world.records), []);
}

#[test]
fn an_answer_to_a_decision_is_a_dismissal_but_a_refutation_is_not() {
    // A fixer is blocked, and the user answers `dismiss`.
    let world = world_with(&flawed_text(1), vec![raised_flaw(1, Severity::High)], &RecordTable::default())
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(F1, ClaimStatus::Blocked)], false))
        .reply_on("round-2/freeze", frozen_reply(&flawed_text(1)))
        .reply_on("round-2/review/adversarial", findings_reply(vec![]));
    let (_, _, mut trial) = run_first_review(single_reviewer_plan(), world);
    assert_eq!(dismissed_findings(&trial.world.records), []);
    let answer = DecisionAnswer { choice: "dismiss".into(), note: "known and meant".into() };
    let request = UserRequest::Answer { decision: DecisionId::new("D1"), answer };
    trial.world = std::mem::take(&mut trial.world).reply_on("wait", Reply::Wait(Requests { requests: vec![request] }));
    let (ending, _) = trial.run_order();
    assert_eq!(ending.reason, RunReason::GoalMet);
    let dismissed = dismissed_findings(&trial.world.records);
    assert_eq!(dismissed.iter().map(|dismissed| dismissed.reason.as_str()).collect::<Vec<_>>(), ["known and meant"]);

    // Challengers refute the finding.
    let refuted = samples::rulings_reply(vec![(F1, ChallengeVerdict::Invalid)]);
    let world = world_with(&flawed_text(1), vec![raised_flaw(1, Severity::Medium)], &RecordTable::default())
        .reply_on("round-1/challenge/1/1", refuted.clone())
        .reply_on("round-1/challenge/2/1", refuted);
    let (_, view, trial) = run_first_review(review_only_plan(), world);
    assert_eq!(status_of(&view, F1), FindingStatus::Dismissed { why: DismissalReason::Invalid });
    assert_eq!(dismissed_findings(&trial.world.records), []);
}

#[test]
fn a_crash_at_any_moment_loses_no_dismissal() {
    let edited = || Reply::Write(WriteOutcome::Edited { requests: vec![amend(F1, dismissal())] });
    let new_trial = || {
        let world = world_with(&flawed_text(2), vec![raised_flaw(1, Severity::High)], &RecordTable::default())
            .reply_once("round-1/tracker", edited());
        TrialRun::new(review_only_plan(), world, 1)
    };
    let mut unharmed = new_trial();
    assert!(matches!(unharmed.run_workflow(workflow, None), TrialOutcome::Done(_)));
    let mut writes_between = 0;
    for kill_at in 0..unharmed.write_count() {
        let mut trial = new_trial();
        assert_eq!(trial.run_workflow(workflow, Some(kill_at)), TrialOutcome::Killed);
        let is_noted =
            |event: &RunEvent| matches!(find_event::<ReviewEvent>(event), Some(ReviewEvent::FindingMoved { .. }));
        let is_written =
            |event: &RunEvent| matches!(event, RunEvent::EffectFinished { reply: Reply::WriteRecords(_), .. });
        let has_entry = |test: &dyn Fn(&RunEvent) -> bool| trial.journal.iter().any(|entry| test(&entry.event));
        let is_dismissed = has_entry(&is_noted);
        writes_between += usize::from(is_dismissed && !has_entry(&is_written));
        // An edit that was read is in the journal; one that was lost with the crash is still in the file.
        if !has_entry(&|event| matches!(event, RunEvent::EffectFinished { reply: Reply::Write(_), .. })) {
            trial.world = trial.world.reply_once("round-1/tracker", edited());
        }
        assert!(matches!(trial.run_workflow(workflow, None), TrialOutcome::Done(_)), "killed at {kill_at}");
        assert_eq!(trial.world.records, unharmed.world.records, "killed at {kill_at}");
    }
    assert!(writes_between >= 2, "a crash between the dismissal and its record was tried");
}

#[test]
fn a_resumed_run_sees_the_records_that_it_has_read_before() {
    let world = world_with(&flawed_text(2), vec![raised_flaw(1, Severity::High)], &records_of_first_run());
    let mut trial = TrialRun::new(review_only_plan(), world, 1);
    // The records are gone when the run is resumed, but it had read them.
    let read_at = 1 + count_writes_until(&trial, "round-1/dismissed");
    assert_eq!(trial.run_workflow(workflow, Some(read_at)), TrialOutcome::Killed);
    trial.world.records = RecordTable::default();
    let (_, view) = trial.run_order();
    assert_eq!(status_of(&view, F1), BY_USER);
}

/// Counts the writes of a run like this one until the reply to an effect is recorded.
fn count_writes_until(trial: &TrialRun<ScriptedWorld>, effect_key: &str) -> usize {
    let world = world_with(&flawed_text(2), vec![raised_flaw(1, Severity::High)], &trial.world.records);
    let mut whole_trial = TrialRun::new(review_only_plan(), world, 1);
    whole_trial.run_order();
    let is_reply =
        |event: &RunEvent| matches!(event, RunEvent::EffectFinished { key, .. } if key.as_str() == effect_key);
    whole_trial.journal.iter().skip(1).position(|entry| is_reply(&entry.event)).unwrap()
}

#[test]
fn edits_of_the_tracker_of_an_ended_run_count_for_the_next_one() {
    // The first run ends with the finding open; the user dismisses it in the tracker afterwards.
    let world = world_with(&flawed_text(2), vec![raised_flaw(1, Severity::High)], &RecordTable::default());
    let (ending, view, trial) = run_first_review(review_only_plan(), world);
    assert_eq!(ending.reason, RunReason::ReviewOnly);
    let next_world = |view: &RunView, records: &RecordTable, change: FindingChange| {
        let finding = Box::new(view.as_review().unwrap().findings[&F1].clone());
        let request = UserRequest::AmendEarlier { run: RunId::new("earlier"), finding, change };
        // The same edit is read twice, as after a crash.
        world_with(&flawed_text(2), vec![raised_flaw(1, Severity::High)], records)
            .reply_once("round-1/inbox", Reply::Inbox(Requests { requests: vec![request.clone(), request] }))
    };
    let (ending, view, trial) =
        run_first_review(review_only_plan(), next_world(&view, &trial.world.records, dismissal()));
    assert_eq!((ending.reason, status_of(&view, F1)), (RunReason::GoalMet, BY_USER));
    assert_eq!(kept_dismissals(&trial), [(vec![F1], vec![RunId::new("earlier")])]);
    let written: Vec<usize> = trial.journal.iter().filter_map(|entry| written_changes(&entry.event)).collect();
    assert_eq!(written, [1], "one record, once");

    // The next run names the run in which the user decided, and another edit takes it back.
    let world = world_with(&flawed_text(2), vec![raised_flaw(1, Severity::High)], &trial.world.records);
    let (_, view, trial) = run_first_review(review_only_plan(), world);
    assert_eq!(kept_dismissals(&trial), [(vec![F1], vec![RunId::new("earlier")])]);
    let (_, view, trial) =
        run_first_review(review_only_plan(), next_world(&view, &trial.world.records, FindingChange::Open));
    assert_eq!((status_of(&view, F1), kept_dismissals(&trial)), (FindingStatus::Open, vec![]));
    assert_eq!(dismissed_findings(&trial.world.records), []);
}

fn written_changes(event: &RunEvent) -> Option<usize> {
    match event {
        RunEvent::EffectStarted { effect: Effect::WriteRecords(request), key, .. }
            if !key.as_str().ends_with("confidence") =>
        {
            Some(request.changes.len())
        }
        _ => None,
    }
}
