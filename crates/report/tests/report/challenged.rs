//! A round with disputed findings in every form: lines, live view, log and tables.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_core::{
    event::{Entry, Event},
    fault::{Fault, FaultKind},
    finding::Finding,
    ids::{FindingId, Key},
    progress::Progress,
    view::RunView,
};
use tribunal_report::{
    Filter, Lines, Mode, Reporter, Rulings, Screen, Verbose, Wanted,
    calls::calls,
    live::{Board, Controls},
    tables,
};
use tribunal_testkit::{COUNTER, SAMPLE_JOURNAL, challenged, entries};

fn screen(columns: usize) -> Screen {
    Screen { width: Some(columns), ..Screen::default() }
}

fn drawn(journal: &[Entry], mode: Mode, screen: Screen) -> String {
    let mut out = Vec::new();
    let mut lines = Lines::new(&mut out, screen, mode);
    journal.iter().for_each(|entry| lines.entry(entry).unwrap());
    String::from_utf8(out).unwrap()
}

/// The lines from the first answer of a challenger on.
fn sitting(text: &str) -> String {
    text.lines().skip_while(|line| !line.contains("challenger 1")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_refuted_finding_shows_who_refuted_it_with_which_words_of_the_text() {
    insta::assert_snapshot!(sitting(&drawn(&challenged(), Mode::Streaming, Screen::default())), @r"
    ✓ challenger 1  answered on F1 F2 F4 F5 F6 F7 F8 F9
    ✓ challenger 2  answered on F1 F2 F4 F5 F6 F7 F8 F9
    ✓ challenger 3  answered on F2 F5
        F2 dismissed, invalid: refuted by 2 of 3 challengers (first, third)
           the line under Out of Scope settles it
           “SMS and telephone calls, for responders as well as for subscribers”
        F4 in doubt, medium → low (2 ambiguous)
           a role may be named in another document
        F5 is critical and in doubt (1 valid, 1 invalid, 1 ambiguous), for a person to decide
           the secret signs nothing yet
           “An owner can create webhooks”
           D1 waits for product owner:
             tribunal decisions prd-86kc.D1 ANSWER    (uphold, dismiss, defer)
        upheld by challengers: F1 F6 F7 F8 F9
    8 new; 7 findings: 3 high, 2 medium, 2 low to fix
    ");
}

#[test]
fn on_a_narrow_terminal_nothing_against_a_finding_is_cut_off() {
    let text = sitting(&drawn(&challenged(), Mode::Streaming, screen(60)));
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(&format!("“{COUNTER}”")), "{text}");
    insta::assert_snapshot!(text, @r"
    ✓ challenger 1  answered on F1 F2 F4 F5 F6 F7 F8 F9
    ✓ challenger 2  answered on F1 F2 F4 F5 F6 F7 F8 F9
    ✓ challenger 3  answered on F2 F5
        F2 dismissed, invalid: refuted by 2 of 3 challengers
        (first, third)
           the line under Out of Scope settles it
           “SMS and telephone calls, for responders as well
           as for subscribers”
        F4 in doubt, medium → low (2 ambiguous)
           a role may be named in another document
        F5 is critical and in doubt (1 valid, 1 invalid, 1
        ambiguous), for a person to decide
           the secret signs nothing yet
           “An owner can create webhooks”
           D1 waits for product owner:
             tribunal decisions prd-86kc.D1 ANSWER    (uphold, dismiss, defer)
        upheld by challengers: F1 F6 F7 F8 F9
    8 new; 7 findings: 3 high, 2 medium, 2 low to fix
    ");
}

#[test]
fn in_summary_a_sitting_is_a_line() {
    insta::assert_snapshot!(drawn(&challenged(), Mode::Summary, Screen::default()), @r"
    review of _bmad-output/planning-artifacts/prd.md · run prd-86kc
      round 1, challenged: 5 upheld, 1 refuted, 2 in doubt
      round 1: 8 new; 7 findings: 3 high, 2 medium, 2 low to fix
    ");
}

#[test]
fn a_round_with_nothing_to_dispute_says_nothing_about_challenges() {
    let recorded = entries(SAMPLE_JOURNAL);
    for mode in Mode::ALL {
        assert!(!drawn(&recorded, mode, Screen::default()).contains("challenge"), "{mode}");
    }
    let view = RunView::of(&recorded);
    let findings = tables::findings(view.findings.values(), &Rulings::of(&recorded), &Screen::default());
    assert!(!findings.contains("challenge"), "{findings}");
}

/// The journal up to the first entry for which `is_last` holds.
fn upto(ends: impl Fn(&Event) -> bool) -> Vec<Entry> {
    let all = challenged();
    let at = all.iter().position(|entry| ends(&entry.event)).unwrap();
    all[..=at].to_vec()
}

const KEYS: Controls = Controls { mode: Mode::Streaming, keys: true, help: false, stopping: false };

fn board(journal: &[Entry]) -> Board {
    let mut board = Board::new(KEYS);
    journal.iter().for_each(|entry| board.see(entry));
    board
}

fn frames(board: &Board) -> String {
    let frame =
        |columns: usize| format!("--- {columns} columns\n{}", board.frame(&screen(columns), 16).join("\n"));
    [120, 80, 30].map(frame).join("\n")
}

#[test]
fn challengers_stand_side_by_side_with_what_they_dispute() {
    let mut board = board(&upto(|event| matches!(event, Event::ChallengerAnswered { .. })));
    board.tick(9_000);
    let text = "looking for the sentence that proves it wrong".into();
    board.progress(&Progress { key: Key::new("round-1/challenge/2/1"), text });
    board.tick(11_000);
    insta::assert_snapshot!(frames(&board), @r"
    --- 120 columns
    ── review of _bmad-output/planning-artifacts/prd.md · run prd-86kc · streaming ────────────────────────────────────────
    round 1 of 3 challenging
    ✓ challenger 1 · first                                      ▸ challenger 2 · second 0:10
      F1 F2 F4 F5 F6 F7 F8 F9 · answered                          F1 F2 F4 F5 F6 F7 F8 F9 · looking for the sentence that
                                                                  proves it wrong
    fixed  critical ░ 0/1 · high ░░░ 0/3 · medium ░░░░ 0/4 · low ░ 0/1
    1k of 1M tokens · cost 0.10 of 5.00 · 0:11 of 2:00:00
    1-4 or v: show less or more · s stop · ? help
    --- 80 columns
    ── review of _bmad-output/planning-artifacts/prd.md · run prd-86kc · streaming
    round 1 of 3 challenging
    ✓ challenger 1           F1 F2 F4 F5 F6 F7 F8 F9 · answered
    ▸ challenger 2     0:10  F1 F2 F4 F5 F6 F7 F8 F9 · looking for the sentence th…
    fixed  critical ░ 0/1 · high ░░░ 0/3 · medium ░░░░ 0/4 · low ░ 0/1
    1k of 1M tokens · cost 0.10 of 5.00 · 0:11 of 2:00:00
    1-4 or v: show less or more · s stop · ? help
    --- 30 columns
    ▸ round 1 challenging 1/2
    ");
}

#[test]
fn a_third_voice_joins_the_two_and_its_decision_waits() {
    insta::assert_snapshot!(frames(&board(&challenged())), @r"
    --- 120 columns
    ── review of _bmad-output/planning-artifacts/prd.md · run prd-86kc · streaming ────────────────────────────────────────
    round 1 of 3 ●●●●●●●● 8 new
    ✓ challenger 1 · first                  ✓ challenger 2 · second                 ✓ challenger 3 · third
      F1 F2 F4 F5 F6 F7 F8 F9 · answered      F1 F2 F4 F5 F6 F7 F8 F9 · answered      F2 F5 · answered

    ? D1 waits for product owner: F5: FR17 sends webhook signing secrets by e-mail in plain text. Anyone who can read that…
    fixed  critical – 0/1 · high ░░░ 0/3 · medium ░░ 0/2 · low ░░ 0/2 · 1 blocked
    3k of 1M tokens · cost 0.10 of 5.00 · 0:00 of 2:00:00
    1-4 or v: show less or more · s stop · ? help
    --- 80 columns
    ── review of _bmad-output/planning-artifacts/prd.md · run prd-86kc · streaming
    round 1 of 3 ●●●●●●●● 8 new
    ✓ challenger 1           F1 F2 F4 F5 F6 F7 F8 F9 · answered
    ✓ challenger 2           F1 F2 F4 F5 F6 F7 F8 F9 · answered
    ✓ challenger 3           F2 F5 · answered
    ? D1 waits for product owner: F5: FR17 sends webhook signing secrets by e-mail…
    fixed  critical – 0/1 · high ░░░ 0/3 · medium ░░ 0/2 · low ░░ 0/2 · 1 blocked
    3k of 1M tokens · cost 0.10 of 5.00 · 0:00 of 2:00:00
    1-4 or v: show less or more · s stop · ? help
    --- 30 columns
    ▸ round 1 challenging 3/3
    ");
}

#[test]
fn a_challenger_that_failed_is_marked_and_found_among_what_went_wrong() {
    let mut journal = upto(|event| matches!(event, Event::ChallengerAnswered { .. }));
    if let Some(Event::ChallengerAnswered { fault, .. }) = journal.last_mut().map(|entry| &mut entry.event) {
        *fault = Some(Fault::new(FaultKind::Malformed, "first did not answer with verdicts"));
    }
    let text = drawn(&journal, Mode::Streaming, Screen::default());
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("  ✗ challenger 1  incomplete: "), "{last}");
    assert!(last.ends_with("first did not answer with verdicts"), "{last}");
    let frame = board(&journal).frame(&screen(80), 16).join("\n");
    assert!(frame.contains("✗ challenger 1"), "{frame}");
    let mut filter = Filter::new(Wanted { warnings: true, ..Wanted::default() });
    let wrong: Vec<&str> = journal.iter().filter(|e| filter.wants(e)).map(|e| e.event.kind()).collect();
    assert_eq!(wrong, ["challenger_answered"]);
}

#[test]
fn what_a_challenger_says_on_its_way_carries_its_name() {
    let mut out = Vec::new();
    let mut lines = Lines::new(&mut out, Screen::default(), Mode::Streaming);
    challenged().iter().for_each(|entry| lines.entry(entry).unwrap());
    for key in ["round-1/challenge/2/1", "round-1/challenge/3/1/again"] {
        lines.progress(&Progress { key: Key::new(key), text: "reading".into() }).unwrap();
    }
    let text = String::from_utf8(out).unwrap();
    assert!(text.ends_with("  · challenger 2  reading\n  · challenger 3  reading\n"), "{text}");
}

fn names(wanted: Wanted) -> String {
    let mut filter = Filter::new(wanted);
    let all = challenged();
    let found = all.iter().filter(|entry| filter.wants(entry));
    found
        .map(|entry| format!("{} {}", entry.event.kind(), entry.event.about()))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_log_of_a_finding_has_its_challenge_and_its_decision() {
    insta::assert_snapshot!(names(Wanted { finding: Some(FindingId(5)), ..Wanted::default() }), @r"
    finding_raised F5
    effect_started round-1/challenge/1/1
    effect_started round-1/challenge/2/1
    effect_finished round-1/challenge/1/1
    challenger_answered round-1/challenge/1/1
    effect_finished round-1/challenge/2/1
    challenger_answered round-1/challenge/2/1
    effect_started round-1/challenge/3/1
    effect_finished round-1/challenge/3/1
    challenger_answered round-1/challenge/3/1
    finding_ruled F5
    decision_posted D1
    finding_moved F5
    ");
}

#[test]
fn a_key_brings_what_its_challenger_noted() {
    insta::assert_snapshot!(names(Wanted { key: Some("challenge/3".into()), ..Wanted::default() }), @r"
    effect_started round-1/challenge/3/1
    effect_finished round-1/challenge/3/1
    challenger_answered round-1/challenge/3/1
    ");
}

#[test]
fn in_full_every_voice_is_told() {
    let mut out = Vec::new();
    let mut verbose = Verbose::new(&mut out, screen(110));
    for entry in challenged() {
        let spoke = matches!(entry.event, Event::ChallengerAnswered { .. } | Event::FindingRuled { .. });
        if spoke { verbose.entry(&entry).unwrap() } else { verbose.past(&entry) }
    }
    insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
    31   0:00.038  challenger_answered   round-1/challenge/1/1: first on 8 findings · 1,000 tokens
    33   0:00.038  challenger_answered   round-1/challenge/2/1: second on 8 findings · 1,000 tokens
    36   0:00.038  challenger_answered   round-1/challenge/3/1: third on 2 findings · 1,000 tokens
    37   0:00.038  finding_ruled         F1: valid, medium: first valid, second valid
    38   0:00.038  finding_ruled         F2: invalid, medium: first invalid, second valid, third invalid
    40   0:00.038  finding_ruled         F4: ambiguous, low: first ambiguous, second ambiguous
    42   0:00.038  finding_ruled         F5: ambiguous, critical: first valid, second ambiguous, third invalid
    45   0:00.038  finding_ruled         F6: valid, low: first valid, second valid
    46   0:00.038  finding_ruled         F7: valid, high: first valid, second valid
    47   0:00.038  finding_ruled         F8: valid, medium: first valid, second valid
    48   0:00.038  finding_ruled         F9: valid, high: first valid, second valid
    ");
}

#[test]
fn calls_of_challengers_are_listed_like_all_others() {
    let journal = challenged();
    let calls = calls(&journal);
    let text = tables::calls(&calls, &|_| Some(1_000));
    let challengers: Vec<&str> = text.lines().filter(|line| line.contains("challenge/")).collect();
    assert_eq!(challengers.len(), 3, "{text}");
    let last: Vec<&str> = challengers[2].split_whitespace().take(2).collect();
    assert_eq!(last, ["round-1/challenge/3/1", "third"]);
}

#[test]
fn a_table_of_findings_tells_what_challengers_made_of_each() {
    let journal = challenged();
    let view = RunView::of(&journal);
    let some = |finding: &&Finding| matches!(finding.id.0, 1..=5);
    let text = tables::findings(view.findings.values().filter(some), &Rulings::of(&journal), &screen(100));
    insta::assert_snapshot!(text, @r"
    F1   medium    open  _bmad-output/planning-artifacts/prd.md:33
         This success criterion has no number, no deadline and no definition of adoption. After launch
         nobody can say whether it was reached.
         “Most teams adopt Lantern quickly.”
         challenged: upheld by 2 of 2 challengers (first, second)
    F2   medium    dismissed (invalid)  _bmad-output/planning-artifacts/prd.md:43
         SMS is part of the MVP in this line and excluded for responders under Out of Scope. A
         developer cannot tell whether to build it; FR6 names only the two other channels.
         “Alerts to the on-call responder by e-mail, webhook and SMS”
         challenged: refuted by 2 of 3 challengers (first, third): the line under Out of Scope settles
         it (“SMS and telephone calls, for responders as well as for subscribers”)
    F3   high      open  _bmad-output/planning-artifacts/prd.md:85
         The alert cannot be sent within 15 seconds of the start of the outage, because checks run only
         every 60 seconds (FR2) and an incident needs two failures in a row (FR4). No implementation
         can keep this promise.
         “FR7: The alert is sent within 15 seconds of the start of the outage.”
    F4   low       open  _bmad-output/planning-artifacts/prd.md:91
         Who is the duty steward? The table in Users and Roles has owner, responder, viewer and
         subscriber. As written, nobody has the right to resolve an incident.
         “FR11: Only a duty steward can set an incident to resolved.”
         challenged: in doubt, medium → low (2 ambiguous): a role may be named in another document
    F5   critical  blocked (D1)  _bmad-output/planning-artifacts/prd.md:99
         FR17 sends webhook signing secrets by e-mail in plain text. Anyone who can read that mailbox,
         now or later, can sign calls that look as if Lantern had sent them.
         “FR17: The signing secret of a new webhook is e-mailed to the owner in plain text.”
         challenged: in doubt (1 valid, 1 invalid, 1 ambiguous), for a person to decide: the secret
         signs nothing yet (“An owner can create webhooks”)
    ");
}

#[test]
fn a_status_names_what_was_refuted_and_what_to_type_for_the_rest() {
    let view = RunView::of(&challenged());
    let standing = tables::Standing { view: &view, live: true };
    insta::assert_snapshot!(tables::status(&standing, &Screen::default()), @r"
    prd-86kc running · _bmad-output/planning-artifacts/prd.md
      1 round held · 10 raised: 7 open, 1 blocked, 2 dismissed · 15k tokens, 0.10
      refuted by challengers: F2
      next: tribunal decisions prd-86kc.D1 ANSWER    (uphold, dismiss, defer)
            tribunal findings prd-86kc
    ");
}
