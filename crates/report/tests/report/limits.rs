//! How usage limits are shown, and costs that a subscription pays.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_core::{
    effect::{AskOutcome, AwaitReset, Effect, Elapsed, Reply},
    event::{Entry, Event},
    ids::{AgentName, Key},
    limits::{Cost, Usage},
    stamp::Stamp,
    view::RunView,
};
use tribunal_report::{
    Lines, Mode, Reporter, Screen,
    live::{Board, Controls},
    tables::{Standing, runs, status},
};
use tribunal_testkit::{SAMPLE_JOURNAL, entries};

/// 2026-11-15 14:47 UTC.
const NOW: u64 = 1_794_754_020_000;
const HOUR: u64 = 3_600_000;

/// The recorded run up to the middle of its panel, followed by a wait of 2 h 13 min for a usage limit.
fn at_a_limit() -> Vec<Entry> {
    let mut all: Vec<Entry> = entries(SAMPLE_JOURNAL).into_iter().take(12).collect();
    let last = all.last().unwrap().clone();
    let until_ms = NOW + 2 * HOUR + 13 * 60_000;
    let why = "agent `claude-code` is at its usage limit".to_string();
    let effect = Effect::AwaitReset(AwaitReset { agent: AgentName::new("claude-code"), until_ms, why });
    let key = Key::new("round-1/review/adversarial/wait-1");
    let fingerprint = effect.fingerprint().unwrap();
    let event = Event::EffectStarted { key, stretch: 1, effect, fingerprint };
    all.push(Entry { seq: last.seq + 1, at: Stamp { wall_ms: NOW, awake_ms: 20_000 }, event, ..last });
    all
}

/// The journal after the limit has passed.
fn passed(mut all: Vec<Entry>) -> Vec<Entry> {
    let last = all.last().unwrap().clone();
    let key = Key::new("round-1/review/adversarial/wait-1");
    let event = Event::EffectFinished { key, stretch: 1, reply: Reply::AwaitReset(Elapsed {}) };
    let at = Stamp { wall_ms: NOW + 3 * HOUR, awake_ms: 20_000 + 3 * HOUR };
    all.push(Entry { seq: last.seq + 1, at, event, ..last });
    all
}

#[test]
fn a_wait_is_one_line_in_every_mode() {
    for mode in Mode::ALL {
        let mut out = Vec::new();
        let mut lines = Lines::new(&mut out, Screen::default(), mode);
        at_a_limit().iter().for_each(|entry| lines.entry(entry).unwrap());
        let text = String::from_utf8(out).unwrap();
        let told: Vec<&str> = text.lines().filter(|line| line.contains("usage limit")).collect();
        assert_eq!(
            told,
            ["  [W] claude-code is at its usage limit; waiting until 17:00 UTC (2 h 13 min left)"],
            "{mode}"
        );
    }
}

#[test]
fn the_live_view_counts_down_to_it() {
    let shown = |awake_ms: u64, columns: usize| {
        let mut board = Board::new(Controls::default());
        at_a_limit().iter().for_each(|entry| board.see(entry));
        board.tick(awake_ms);
        let frame = board.frame(&Screen { width: Some(columns), ..Screen::default() }, 16);
        let told = frame.into_iter().filter(|line| line.contains("limit"));
        told.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(shown(20_000, 80), @r"
    ○ adversarial            waits for its usage limit to pass
    ! claude-code is at its usage limit; waiting until 17:00 UTC (2 h 13 min left)
    ");
    insta::assert_snapshot!(shown(20_000 + 2 * HOUR, 80), @r"
    ○ adversarial            waits for its usage limit to pass
    ! claude-code is at its usage limit; waiting until 17:00 UTC (13 min left)
    ");
    insta::assert_snapshot!(shown(20_000 + 2 * HOUR + 12 * 60_000 + 20_000, 50), @"! claude-code is at its usage limit; 0:40 left");

    let mut board = Board::new(Controls::default());
    passed(at_a_limit()).iter().for_each(|entry| board.see(entry));
    let frame = board.frame(&Screen { width: Some(80), ..Screen::default() }, 16).join("\n");
    assert!(!frame.contains("waiting until"), "{frame}");
}

#[test]
fn a_live_run_that_waits_says_so_in_its_status() {
    let said = |entries: &[Entry], live| {
        let view = RunView::of(entries);
        let text = status(&Standing { view: &view, live }, &Screen::default());
        text.lines().filter(|line| line.contains("limit")).map(String::from).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(said(&at_a_limit(), true), @"  claude-code is at its usage limit; the run waits until 2026-11-15 17:00:00 UTC");
    assert_eq!(said(&at_a_limit(), false), "", "nobody waits for anything");
    assert_eq!(said(&passed(at_a_limit()), true), "");
}

/// The recorded run, with the cost of every nth reply marked as paid by a subscription.
fn by_plan(every: usize) -> Vec<Entry> {
    let mut all = entries(SAMPLE_JOURNAL);
    let mut spent = (Cost(0), Cost(0));
    let mut replies = 0;
    for entry in &mut all {
        match &mut entry.event {
            Event::EffectFinished { reply: Reply::Ask(AskOutcome::Answered(reply)), .. } => {
                replies += 1;
                let Usage { cost: Some(cost), .. } = reply.usage else { continue };
                reply.usage.notional = replies % every == 0;
                spent.0 += cost;
                spent.1 += if reply.usage.notional { cost } else { Cost(0) };
            }
            Event::RunFinished(summary) => summary.notional = spent.1,
            _ => {}
        }
    }
    assert!(spent.1.0 > 0, "{spent:?}");
    all
}

#[test]
fn tokens_come_first_and_what_a_subscription_paid_is_no_bill() {
    let said = |entries: &[Entry]| {
        let view = RunView::of(entries);
        let standing = Standing { view: &view, live: false };
        let whole = status(&standing, &Screen::default());
        let line = whole.lines().find(|line| line.contains("tokens")).unwrap_or_default();
        let list = runs(&[standing], &Screen::default());
        format!("{line}\n{}", list.trim_end().replace("_bmad-output/planning-artifacts/", ""))
    };
    insta::assert_snapshot!(said(&entries(SAMPLE_JOURNAL)), @r"
      11 raised: 10 fixed, 1 dismissed · 3 rounds · 47,480 tokens · cost 0.35 · 0:00
    prd-86kc             resolved  2026-11-15 03:57:18  11 raised: 10 fixed, 1 dismissed 47k tokens, 0.35    prd.md
    ");
    insta::assert_snapshot!(said(&by_plan(1)), @r"
      11 raised: 10 fixed, 1 dismissed · 3 rounds · 47,480 tokens · 0.35 at list price, paid by the subscription · 0:00
    prd-86kc             resolved  2026-11-15 03:57:18  11 raised: 10 fixed, 1 dismissed 47k tokens, by plan prd.md
    ");
    insta::assert_snapshot!(said(&by_plan(2)), @r"
      11 raised: 10 fixed, 1 dismissed · 3 rounds · 47,480 tokens · cost 0.17, and 0.18 at list price, paid by the subscription · 0:00
    prd-86kc             resolved  2026-11-15 03:57:18  11 raised: 10 fixed, 1 dismissed 47k tokens, 0.17    prd.md
    ");
}
