//! How usage limits are shown, and costs that a subscription pays.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_engine::{
    effect::{AwaitReset, Elapsed, WaitCause},
    ids::{AgentName, Key},
    limits::{AgentUsage, Cost},
    run_types::AnyEffect,
    timestamp::Timestamp,
};
use tribunal_report::{
    DisplayMode, LineReporter, Reporter, Screen, list_active_work,
    live::{LiveBoard, ViewControls},
    tables::{RunDetails, RunStanding, render_runs, render_status},
};
use tribunal_testkit::{SAMPLE_JOURNAL, parse_entries};
use tribunal_workflows::runs::{
    effect::{AskOutcome, Effect, Reply},
    types::{JournalEntry, RunEvent},
    view::RunView,
};

/// 2026-11-15 14:47 UTC.
const NOW_MS: u64 = 1_794_754_020_000;
const HOUR_MS: u64 = 3_600_000;

/// The recorded run up to the middle of its panel, followed by a wait of 2 h 13 min for a usage limit.
fn journal_at_usage_limit() -> Vec<JournalEntry> {
    let mut entries_so_far: Vec<JournalEntry> = parse_entries(SAMPLE_JOURNAL).into_iter().take(12).collect();
    let last_entry = entries_so_far.last().unwrap().clone();
    let until_ms = NOW_MS + 2 * HOUR_MS + 13 * 60_000;
    let reason = "agent `claude-code` is at its usage limit".to_string();
    let (agent, cause) = (AgentName::new("claude-code"), WaitCause::UsageLimit);
    let effect = Effect::AwaitReset(AwaitReset { agent, until_ms, why: reason, cause });
    let wait_key = Key::new("round-1/review/adversarial/wait-1");
    let fingerprint = effect.compute_fingerprint().unwrap();
    let event = RunEvent::EffectStarted { key: wait_key, segment: 1, effect, fingerprint };
    entries_so_far.push(JournalEntry {
        seq: last_entry.seq + 1,
        at: Timestamp { wall_ms: NOW_MS, awake_ms: 20_000 },
        event,
        ..last_entry
    });
    entries_so_far
}

#[test]
fn a_wait_for_a_free_call_says_the_limit_and_the_time_in_every_mode() {
    let mut entries = journal_at_usage_limit();
    let RunEvent::EffectStarted { effect: Effect::AwaitReset(wait), .. } = &mut entries.last_mut().unwrap().event
    else {
        panic!()
    };
    wait.cause = WaitCause::CallsPerHour;
    wait.why = "limit of 100 calls per hour reached (`limits.calls_per_hour`)".into();
    for mode in DisplayMode::ALL {
        let mut written = Vec::new();
        let mut reporter = LineReporter::new(&mut written, Screen::default(), mode);
        entries.iter().for_each(|entry| reporter.report_entry(entry).unwrap());
        let drawn_text = String::from_utf8(written).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = "limit of 100 calls per hour reached (`limits.calls_per_hour`); waiting until 17:00 UTC";
        assert!(drawn_text.contains(expected), "{mode:?}: {drawn_text}");
    }
    // The agent itself is not limited, and `status` shows the wait as the work under way.
    assert_eq!(RunView::from_entries(&entries).limited_agents().count(), 0);
    let active_work = list_active_work(&entries);
    assert!(active_work.iter().any(|work| work.description.starts_with("limit of 100 calls")), "{active_work:?}");
    // A later wait is drawn, too, although its reason is the same.
    let mut later_entry = entries.last().unwrap().clone();
    later_entry.seq += 1;
    if let RunEvent::EffectStarted { key, effect: Effect::AwaitReset(wait), .. } = &mut later_entry.event {
        *key = Key::new("round-1/review/adversarial/wait-2");
        wait.until_ms += HOUR_MS;
    }
    entries.push(later_entry);
    let mut written = Vec::new();
    let mut reporter = LineReporter::new(&mut written, Screen::default(), DisplayMode::Summary);
    entries.iter().for_each(|entry| reporter.report_entry(entry).unwrap());
    let drawn_text = String::from_utf8(written).unwrap();
    assert_eq!(drawn_text.matches("limit of 100 calls").count(), 2, "{drawn_text}");
}

/// The journal after the limit has passed.
fn after_reset(mut entries_so_far: Vec<JournalEntry>) -> Vec<JournalEntry> {
    let last_entry = entries_so_far.last().unwrap().clone();
    let wait_key = Key::new("round-1/review/adversarial/wait-1");
    let event = RunEvent::EffectFinished { key: wait_key, segment: 1, reply: Reply::AwaitReset(Elapsed {}) };
    let timestamp = Timestamp { wall_ms: NOW_MS + 3 * HOUR_MS, awake_ms: 20_000 + 3 * HOUR_MS };
    entries_so_far.push(JournalEntry { seq: last_entry.seq + 1, at: timestamp, event, ..last_entry });
    entries_so_far
}

#[test]
fn a_wait_is_one_line_in_every_mode() {
    for mode in DisplayMode::ALL {
        let mut written = Vec::new();
        let mut reporter = LineReporter::new(&mut written, Screen::default(), mode);
        journal_at_usage_limit().iter().for_each(|entry| reporter.report_entry(entry).unwrap());
        let drawn_text = String::from_utf8(written).unwrap();
        let limit_lines: Vec<&str> = drawn_text.lines().filter(|line| line.contains("usage limit")).collect();
        assert_eq!(
            limit_lines,
            ["  warning: claude-code hit its usage limit; waiting until 17:00 UTC (2 h 13 min left)"],
            "{mode}"
        );
    }
}

#[test]
fn the_live_view_counts_down_to_the_reset() {
    let limit_lines = |awake_ms: u64, columns: usize| {
        let mut live_board = LiveBoard::new(ViewControls::default());
        journal_at_usage_limit().iter().for_each(|entry| live_board.track_entry(entry));
        live_board.advance_clock(awake_ms);
        let frame_lines = live_board.draw_frame(&Screen { max_columns: Some(columns), ..Screen::default() }, 16);
        let matching = frame_lines.into_iter().filter(|line| line.contains("limit"));
        matching.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(limit_lines(20_000, 80), @r"
    ○ adversarial            waiting for its usage limit to reset
    ! claude-code hit its usage limit; waiting until 17:00 UTC (2 h 13 min left)
    ");
    insta::assert_snapshot!(limit_lines(20_000 + 2 * HOUR_MS, 80), @r"
    ○ adversarial            waiting for its usage limit to reset
    ! claude-code hit its usage limit; waiting until 17:00 UTC (13 min left)
    ");
    let near_the_end = limit_lines(20_000 + 2 * HOUR_MS + 12 * 60_000 + 20_000, 50);
    insta::assert_snapshot!(near_the_end, @"! claude-code hit its usage limit; 0:40 left");

    let mut live_board = LiveBoard::new(ViewControls::default());
    after_reset(journal_at_usage_limit()).iter().for_each(|entry| live_board.track_entry(entry));
    let frame_lines = live_board.draw_frame(&Screen { max_columns: Some(80), ..Screen::default() }, 16).join("\n");
    assert!(!frame_lines.contains("waiting until"), "{frame_lines}");
}

#[test]
fn a_live_run_that_waits_says_so_in_its_status() {
    let status_lines = |entries: &[JournalEntry], is_live| {
        let run_view = RunView::from_entries(entries);
        let status_text =
            render_status(&RunStanding { run_view: &run_view, is_live }, &RunDetails::default(), &Screen::default());
        status_text.lines().filter(|line| line.contains("limit")).map(String::from).collect::<Vec<_>>().join("\n")
    };
    let live_status = status_lines(&journal_at_usage_limit(), true);
    insta::assert_snapshot!(live_status, @"  claude-code hit its usage limit; waiting until 2026-11-15 17:00:00 UTC");
    assert_eq!(status_lines(&journal_at_usage_limit(), false), "", "an ended run does not wait");
    assert_eq!(status_lines(&after_reset(journal_at_usage_limit()), true), "");
}

/// The recorded run, with the cost of every nth reply marked as paid by a subscription.
fn journal_paid_by_plan(every_nth: usize) -> Vec<JournalEntry> {
    let mut all_entries = parse_entries(SAMPLE_JOURNAL);
    let mut spent_costs = (Cost(0), Cost(0));
    let mut replies = 0;
    for entry in &mut all_entries {
        match &mut entry.event {
            RunEvent::EffectFinished { reply: Reply::Ask(AskOutcome::Answered(agent_reply)), .. } => {
                replies += 1;
                let AgentUsage { cost: Some(cost), .. } = agent_reply.usage else { continue };
                agent_reply.usage.notional = replies % every_nth == 0;
                spent_costs.0 += cost;
                spent_costs.1 += if agent_reply.usage.notional { cost } else { Cost(0) };
            }
            RunEvent::RunFinished(summary) => summary.notional = spent_costs.1,
            _ => {}
        }
    }
    assert!(spent_costs.1.0 > 0, "{spent_costs:?}");
    all_entries
}

#[test]
fn tokens_come_first_and_costs_of_a_subscription_are_not_billed() {
    let usage_lines = |entries: &[JournalEntry]| {
        let run_view = RunView::from_entries(entries);
        let run_standing = RunStanding { run_view: &run_view, is_live: false };
        let status_text = render_status(&run_standing, &RunDetails::default(), &Screen::default());
        let line = status_text.lines().find(|line| line.contains("tokens")).unwrap_or_default();
        let runs_table = render_runs(&[run_standing], &Screen::default());
        let run_row = runs_table.lines().nth(1).unwrap_or_default();
        format!("{line}\n{}", run_row.replace("_bmad-output/planning-artifacts/", ""))
    };
    insta::assert_snapshot!(usage_lines(&parse_entries(SAMPLE_JOURNAL)), @r"
      11 findings: 10 fixed, 1 dismissed · 3 rounds · 47k tokens · $0.35 · 0:00
    prd-86kc  resolved  2026-11-15 03:57  10 fixed, 1 dismissed  47k tokens, $0.35  prd.md
    ");
    insta::assert_snapshot!(usage_lines(&journal_paid_by_plan(1)), @r"
      11 findings: 10 fixed, 1 dismissed · 3 rounds · 47k tokens · $0.35 at list price (covered by the subscription) · 0:00
    prd-86kc  resolved  2026-11-15 03:57  10 fixed, 1 dismissed  47k tokens, subscription  prd.md
    ");
    insta::assert_snapshot!(usage_lines(&journal_paid_by_plan(2)), @r"
      11 findings: 10 fixed, 1 dismissed · 3 rounds · 47k tokens · $0.17 plus $0.18 at list price (covered by the subscription) · 0:00
    prd-86kc  resolved  2026-11-15 03:57  10 fixed, 1 dismissed  47k tokens, $0.17  prd.md
    ");
}
