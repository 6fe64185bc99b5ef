//! Runs of every kind: a loop in a session, child runs, lists of several kinds.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_engine::{
    event::ParentRun,
    ids::{Hash, Key, RunId},
    limits::{Cost, LimitShare, UsageTotals},
    reason::RunReason,
};
use tribunal_report::{
    DisplayMode, EntryFilter, LineReporter, LogQuery, Reporter, Screen, VerboseReporter, list_active_work,
    list_child_lines,
    live::{LiveBoard, ViewControls},
    suggest_next_steps,
    tables::{RunDetails, RunStanding, render_runs, render_status},
};
use tribunal_testkit::{SAMPLE_JOURNAL, parse_entries};
use tribunal_workflows::{
    findings::reported_finding::LeftFindings,
    runs::{
        effect::{Effect, Reply},
        kinds::{RunOrder, WorkflowSummary},
        settings::Settings,
        types::{ChildOutcome, ChildReport, JournalEntry, RunChild, RunEvent, RunSummary},
        view::RunView,
    },
    session::{
        ReleaseReason, SessionAssignment, SessionEvent, SessionEventKind, SessionTally, order::SessionSummary,
        wrap_session_event,
    },
};

use crate::journals::{journal_of, run_started};

fn draw_lines(journal: &[JournalEntry], mode: DisplayMode) -> String {
    let mut written = Vec::new();
    let mut reporter = LineReporter::new(&mut written, Screen::default(), mode);
    journal.iter().for_each(|entry| reporter.report_entry(entry).unwrap());
    String::from_utf8(written).unwrap()
}

fn session_event(what: SessionEventKind, refusals: u32) -> RunEvent {
    let tally = SessionTally { refusals, total: refusals, tools: 4, ..SessionTally::default() };
    wrap_session_event(SessionEvent { what, tally })
}

fn assignment() -> SessionAssignment {
    SessionAssignment {
        session: "s1".into(),
        prompt: "Make it good.\nAnd fast.".into(),
        max_refusals: 5,
        ..SessionAssignment::default()
    }
}

fn started(order: impl Into<RunOrder>, parent: Option<ParentRun>) -> RunEvent {
    run_started(Settings::default(), order, parent)
}

fn loop_journal() -> Vec<JournalEntry> {
    let released = SessionEventKind::LetGo { why: ReleaseReason::Complete, detail: String::new() };
    journal_of(
        "loop-a1",
        vec![
            started(assignment(), None),
            session_event(SessionEventKind::Bound { bound: assignment() }, 0),
            session_event(SessionEventKind::Refused { open: Vec::new(), claimed: false }, 1),
            session_event(released, 1),
        ],
    )
}

#[test]
fn a_loop_is_drawn_with_what_its_session_does() {
    insta::assert_snapshot!(draw_lines(&loop_journal(), DisplayMode::Streaming), @"
    loop of Make it good. · run loop-a1 · tribunal 0.1.0
      session: attached to session s1, which can be sent back up to 5 times
      session: tried to stop and was sent back (1 so far)
      session: released: it is done
    ");
    insta::assert_snapshot!(draw_lines(&loop_journal(), DisplayMode::Summary), @"loop of Make it good. · run loop-a1");
}

#[test]
fn the_status_of_a_loop_names_no_command_for_processes() {
    let run_view = RunView::from_entries(&loop_journal()[..3]);
    let run_standing = RunStanding { run_view: &run_view, is_live: true };
    insta::assert_snapshot!(render_status(&run_standing, &RunDetails::default(), &Screen::default()), @"
    loop-a1 running · Make it good.
      sent back 1 time, 4 tools used
      belongs to session s1
      next: tribunal stop loop-a1  (release its session)
            tribunal loop status loop-a1
    ");
    // The user has deleted the state file, so nothing holds the session any more.
    let run_standing = RunStanding { run_view: &run_view, is_live: false };
    assert_eq!(run_standing.state_name(), "stopped");
    assert_eq!(
        suggest_next_steps(&run_standing, "tribunal"),
        ["tribunal stop loop-a1    (end it; its state file is gone)", "tribunal loop status loop-a1"]
    );
}

#[test]
fn the_ending_of_a_loop_says_what_came_of_it() {
    let result = SessionSummary { refusals: 2, tools: 7, released: Some(ReleaseReason::Complete) };
    let mut journal = loop_journal();
    journal.push(JournalEntry {
        seq: 5,
        event: RunEvent::RunFinished(RunSummary {
            outcome: RunReason::GoalMet.outcome(),
            reason: RunReason::GoalMet,
            detail: String::new(),
            result: WorkflowSummary::Session(result),
            cost: Cost(0),
            notional: Cost(0),
            tokens: 0,
            elapsed_ms: 65_000,
            left: None,
            causes: Vec::new(),
        }),
        ..journal[0].clone()
    });
    let drawn_text = draw_lines(&journal, DisplayMode::Silent);
    insta::assert_snapshot!(drawn_text, @"
    resolved: goal met
      sent back 2 times, 7 tools used · 1:05
      next: tribunal loop status loop-a1
    ");
}

/// A run that has a child called `docs`, up to its reply.
fn journal_with_child(outcome: Option<ChildOutcome>) -> Vec<JournalEntry> {
    let sample_journal = parse_entries(SAMPLE_JOURNAL);
    let RunEvent::RunStarted { order, .. } = &sample_journal[0].event else { panic!("it begins with its start") };
    let share = LimitShare { runtime_ms: 60_000, cost: Cost(1), tokens: 1 };
    let effect =
        Effect::RunChild(RunChild { name: "docs".into(), order: order.clone(), share, workspace: None, tier: None });
    let key = Key::new("docs/run");
    let fingerprint = Hash::digest_of(b"child");
    let mut events = vec![
        started(order.clone(), None),
        RunEvent::EffectStarted { key: key.clone(), segment: 1, fingerprint, effect },
        RunEvent::ChildStarted { key: key.clone(), name: "docs".into(), child: RunId::new("prd-k3f9") },
    ];
    events.extend(outcome.map(|outcome| RunEvent::EffectFinished { key, segment: 1, reply: Reply::RunChild(outcome) }));
    journal_of("epic-a1", events)
}

fn child_report(reason: RunReason, detail: &str) -> ChildReport {
    ChildReport {
        run: RunId::new("prd-k3f9"),
        outcome: reason.outcome(),
        reason,
        detail: detail.into(),
        used: UsageTotals { cost: Cost::from_amount(0.31), tokens: 31_000, ..UsageTotals::default() },
        worked_ms: 245_000,
        result: LeftFindings::default(),
    }
}

fn waiting_child() -> ChildOutcome {
    ChildOutcome::Waiting(child_report(RunReason::Blocked, "F5 is critical and disputed"))
}

#[test]
fn a_child_is_shown_when_it_starts_and_when_it_ends() {
    let drawn_text = draw_lines(&journal_with_child(Some(waiting_child())), DisplayMode::Streaming);
    let child_lines: Vec<&str> = drawn_text.lines().skip(3).collect();
    insta::assert_snapshot!(child_lines.join("\n"), @"
    ▸ child run docs: prd-k3f9
    ? child run docs waits for you: your decision is needed (F5 is critical and disputed) · 31k tokens, $0.31 · 4:05
    ");
    let summary_text = draw_lines(&journal_with_child(Some(waiting_child())), DisplayMode::Summary);
    assert_eq!(summary_text.lines().skip(1).collect::<Vec<_>>(), child_lines);
}

#[test]
fn a_child_that_waited_continues_under_its_name() {
    let mut journal = journal_with_child(Some(waiting_child()));
    let RunEvent::EffectStarted { fingerprint, effect, .. } = journal[1].event.clone() else { unreachable!() };
    let event = RunEvent::EffectStarted { key: Key::new("docs/run-2"), segment: 2, fingerprint, effect };
    journal.push(JournalEntry { seq: 5, event, ..journal[3].clone() });
    let drawn_text = draw_lines(&journal, DisplayMode::Streaming);
    assert!(drawn_text.ends_with("\n  ▸ child run docs continues: prd-k3f9\n"), "{drawn_text}");
}

#[test]
fn the_verbose_log_of_a_run_names_its_children() {
    let mut written = Vec::new();
    let mut reporter = VerboseReporter::new(&mut written, Screen::default());
    let ended = ChildOutcome::Ended(child_report(RunReason::GoalMet, "all findings fixed"));
    journal_with_child(Some(ended)).iter().skip(1).for_each(|entry| reporter.report_entry(entry).unwrap());
    insta::assert_snapshot!(String::from_utf8(written).unwrap(), @"
        2   0:01.000  effect_started        docs/run: run child docs: review of _bmad-output/planning-artifacts/prd.md
        3   0:02.000  child_started         docs/run: docs, run prd-k3f9
        4   0:03.000  effect_finished       docs/run: resolved: all findings fixed · 31k tokens, $0.31 · 4:05 · 2000 ms
    ");
    let mut key_filter = EntryFilter::new(LogQuery { key_part: Some("docs/".into()), ..LogQuery::default() });
    let journal = journal_with_child(None);
    assert_eq!(journal.iter().filter(|entry| key_filter.matches_entry(entry)).count(), 2);
}

#[test]
fn the_status_of_a_run_lists_its_children_with_what_they_used() {
    let status_of = |journal: &[JournalEntry]| {
        let run_view = RunView::from_entries(journal);
        let run_details = RunDetails {
            child_lines: list_child_lines(&RunStanding { run_view: &run_view, is_live: true }, &|_| None),
            ..RunDetails::default()
        };
        let run_standing = RunStanding { run_view: &run_view, is_live: true };
        let status_text = render_status(&run_standing, &run_details, &Screen::default());
        status_text.lines().skip(1).take(2).map(String::from).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(status_of(&journal_with_child(None)), @"
      0 rounds completed · no findings
      child run docs: prd-k3f9 · running
    ");
    insta::assert_snapshot!(status_of(&journal_with_child(Some(waiting_child()))), @"
      0 rounds completed · no findings · 31k tokens, $0.31
      child run docs: prd-k3f9 · waits for you: your decision is needed (F5 is critical and disputed) · 31k tokens, $0.31 · 4:05
    ");
    let active_work = list_active_work(&journal_with_child(None));
    let descriptions: Vec<&str> = active_work.iter().map(|work| work.description.as_str()).collect();
    assert_eq!(descriptions, ["child run docs (review of _bmad-output/planning-artifacts/prd.md)"]);
    assert!(list_active_work(&journal_with_child(Some(waiting_child()))).is_empty());
}

#[test]
fn the_live_view_shows_a_child_as_long_as_it_takes() {
    let screen = Screen { max_columns: Some(80), ..Screen::default() };
    let child_line = |outcome: Option<ChildOutcome>| {
        let mut live_board = LiveBoard::new(ViewControls::default());
        journal_with_child(outcome).iter().for_each(|entry| live_board.track_entry(entry));
        // A child reports to a view of its own, so no output for long is no warning here.
        live_board.advance_clock(602_000);
        live_board.draw_frame(&screen, 16).into_iter().find(|line| line.contains(" docs ")).unwrap()
    };
    assert_eq!(child_line(None), "▸ docs            10:00  prd-k3f9");
    let waiting_line = child_line(Some(waiting_child()));
    assert_eq!(waiting_line, "? docs                   waits for you: your decision is needed (F5 is…");
    let ended = ChildOutcome::Ended(child_report(RunReason::GoalMet, "all findings fixed"));
    let ended_line = child_line(Some(ended));
    assert_eq!(ended_line, "✓ docs                   resolved: all findings fixed · 31k tokens, $0.31 ·…");
}

#[test]
fn a_child_names_its_parent_and_is_resumed_with_the_root() {
    let parent = ParentRun { run: RunId::new("epic-a1"), root: RunId::new("sprint-b2"), name: "docs".into(), depth: 2 };
    let sample_journal = parse_entries(SAMPLE_JOURNAL);
    let RunEvent::RunStarted { order, .. } = &sample_journal[0].event else { panic!("it begins with its start") };
    let stopped = RunSummary {
        outcome: None,
        reason: RunReason::Stopped,
        detail: String::new(),
        result: RunView::from_entries(&sample_journal[..1]).detail.unwrap().build_summary(),
        cost: Cost(0),
        notional: Cost(0),
        tokens: 0,
        elapsed_ms: 0,
        left: None,
        causes: Vec::new(),
    };
    let journal = journal_of("prd-k3f9", vec![started(order.clone(), Some(parent)), RunEvent::RunParked(stopped)]);
    let drawn_text = draw_lines(&journal, DisplayMode::Summary);
    insta::assert_snapshot!(drawn_text, @"
    review of _bmad-output/planning-artifacts/prd.md · run prd-k3f9 · child of epic-a1

    stopped: interrupted; its state is saved
      no findings · 0 rounds · 0 tokens · no cost reported · 0:00
      next: tribunal resume sprint-b2
    ");
}

#[test]
fn a_list_of_several_kinds_names_the_kind_of_each_run() {
    let (review_view, loop_view) =
        (RunView::from_entries(&parse_entries(SAMPLE_JOURNAL)), RunView::from_entries(&loop_journal()));
    let standings = [&review_view, &loop_view].map(|run_view| RunStanding { run_view, is_live: true });
    insta::assert_snapshot!(render_runs(&standings, &Screen::default()), @"
    RUN       STATE     STARTED (UTC)     RESULT                 USAGE              SUBJECT
    prd-86kc  resolved  2026-11-15 03:57  10 fixed, 1 dismissed  47k tokens, $0.35  review of _bmad-output/planning-artifacts/prd.md
    loop-a1   running   2026-11-15 14:47  sent back 1 time                          loop of Make it good.
    ");
}
