//! A round with disputed findings in every form: lines, live view, log and tables.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_engine::{
    fault::{Fault, FaultKind},
    ids::{FindingId, Key},
    progress::AgentProgress,
};
use tribunal_report::{
    DisplayMode, EntryFilter, LineReporter, LogQuery, Reporter, RulingIndex, Screen, VerboseReporter,
    calls::collect_calls,
    live::{LiveBoard, ViewControls},
    tables,
};
use tribunal_testkit::{COUNTER_QUOTE, SAMPLE_JOURNAL, challenged_journal, parse_entries};
use tribunal_workflows::{
    findings::finding::Finding,
    review::event::ReviewEvent,
    runs::{
        types::{JournalEntry, RunEvent, find_event},
        view::RunView,
    },
};

use crate::events::review_event_mut;

fn screen_of_width(columns: usize) -> Screen {
    Screen { max_columns: Some(columns), ..Screen::default() }
}

fn draw_lines(entries_to_draw: &[JournalEntry], mode: DisplayMode, screen: Screen) -> String {
    let mut written = Vec::new();
    let mut reporter = LineReporter::new(&mut written, screen, mode);
    entries_to_draw.iter().for_each(|journal_entry| reporter.report_entry(journal_entry).unwrap());
    String::from_utf8(written).unwrap()
}

/// The lines from the first answer of a challenger on.
fn from_first_challenger(drawn_text: &str) -> String {
    drawn_text.lines().skip_while(|line| !line.contains("challenger 1")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_refuted_finding_shows_who_refuted_it_with_which_words_of_the_text() {
    insta::assert_snapshot!(from_first_challenger(&draw_lines(&challenged_journal(), DisplayMode::Streaming, Screen::default())), @r"
    ✓ challenger 1  answered on F1 F2 F4 F5 F6 F7 F8 F9
    ✓ challenger 2  answered on F1 F2 F4 F5 F6 F7 F8 F9
    ✓ challenger 3  answered on F2 F5
        F2 dismissed: refuted by 2 of 3 challengers (first, third)
           the line under Out of Scope settles it
           “SMS and telephone calls, for responders as well as for subscribers”
        F4 in doubt, medium → low (2 ambiguous)
           a role may be named in another document
        F5 is critical and in doubt (1 valid, 1 invalid, 1 ambiguous), waiting for your decision
           the secret signs nothing yet
           “An owner can create webhooks”
           D1 needs an answer (product owner):
             tribunal decisions prd-86kc.D1 ANSWER  (uphold, dismiss, defer)
        upheld by challengers: F1 F6 F7 F8 F9
    8 new findings, 7 to fix (3 high, 2 medium, 2 low)
    ");
}

#[test]
fn on_a_narrow_terminal_nothing_against_a_finding_is_cut_off() {
    let drawn_text =
        from_first_challenger(&draw_lines(&challenged_journal(), DisplayMode::Streaming, screen_of_width(60)));
    let joined_text = drawn_text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined_text.contains(&format!("“{COUNTER_QUOTE}”")), "{drawn_text}");
    insta::assert_snapshot!(drawn_text, @r"
    ✓ challenger 1  answered on F1 F2 F4 F5 F6 F7 F8 F9
    ✓ challenger 2  answered on F1 F2 F4 F5 F6 F7 F8 F9
    ✓ challenger 3  answered on F2 F5
        F2 dismissed: refuted by 2 of 3 challengers (first,
           third)
           the line under Out of Scope settles it
           “SMS and telephone calls, for responders as well
           as for subscribers”
        F4 in doubt, medium → low (2 ambiguous)
           a role may be named in another document
        F5 is critical and in doubt (1 valid, 1 invalid, 1
           ambiguous), waiting for your decision
           the secret signs nothing yet
           “An owner can create webhooks”
           D1 needs an answer (product owner):
             tribunal decisions prd-86kc.D1 ANSWER
               (uphold, dismiss, defer)
        upheld by challengers: F1 F6 F7 F8 F9
    8 new findings, 7 to fix (3 high, 2 medium, 2 low)
    ");
}

#[test]
fn the_summary_mode_shows_a_challenge_in_one_line() {
    insta::assert_snapshot!(draw_lines(&challenged_journal(), DisplayMode::Summary, Screen::default()), @r"
    review of _bmad-output/planning-artifacts/prd.md · run prd-86kc
      round 1, challenged: 5 upheld, 1 refuted, 2 in doubt
      round 1: 8 new findings, 7 to fix (3 high, 2 medium, 2 low)
    ");
}

#[test]
fn a_round_with_nothing_to_dispute_says_nothing_about_challenges() {
    let sample_entries = parse_entries(SAMPLE_JOURNAL);
    for mode in DisplayMode::ALL {
        assert!(!draw_lines(&sample_entries, mode, Screen::default()).contains("challenge"), "{mode}");
    }
    let run_view = RunView::from_entries(&sample_entries);
    let findings_table = tables::render_findings(
        run_view.all_findings(),
        &RulingIndex::from_entries(&sample_entries),
        &Screen::default(),
    );
    assert!(!findings_table.contains("challenge"), "{findings_table}");
}

/// The journal up to the first entry for which `is_last` holds.
fn journal_until(is_last: impl Fn(&RunEvent) -> bool) -> Vec<JournalEntry> {
    let all_entries = challenged_journal();
    let last_index = all_entries.iter().position(|journal_entry| is_last(&journal_entry.event)).unwrap();
    all_entries[..=last_index].to_vec()
}

const CONTROLS_WITH_KEYS: ViewControls =
    ViewControls { mode: DisplayMode::Streaming, reads_keys: true, shows_help: false, is_stopping: false };

fn board_from(entries_to_show: &[JournalEntry]) -> LiveBoard {
    let mut live_board = LiveBoard::new(CONTROLS_WITH_KEYS);
    entries_to_show.iter().for_each(|journal_entry| live_board.track_entry(journal_entry));
    live_board
}

fn draw_frames(live_board: &LiveBoard) -> String {
    let titled_frame = |columns: usize| {
        format!("--- {columns} columns\n{}", live_board.draw_frame(&screen_of_width(columns), 16).join("\n"))
    };
    [120, 80, 30].map(titled_frame).join("\n")
}

#[test]
fn challengers_are_shown_side_by_side_with_their_findings() {
    let mut live_board = board_from(&journal_until(|event| {
        matches!(find_event::<ReviewEvent>(event), Some(ReviewEvent::ChallengerAnswered { .. }))
    }));
    live_board.advance_clock(9_000);
    let progress_text = "looking for the sentence that proves it wrong".into();
    let task_key = Key::new("round-1/challenge/2/1");
    live_board.note_progress(&AgentProgress { task_key, activity: progress_text, is_output: false });
    live_board.advance_clock(11_000);
    insta::assert_snapshot!(draw_frames(&live_board), @r"
    --- 120 columns
    ── review of _bmad-output/planning-artifacts/prd.md · run prd-86kc · streaming ────────────────────────────────────────
    round 1 of 3 challenging
    ✓ challenger 1 · first                                      ▸ challenger 2 · second 0:10
      F1 F2 F4 F5 F6 F7 F8 F9 · answered                          F1 F2 F4 F5 F6 F7 F8 F9 · looking for the sentence that
                                                                  proves it wrong
    fixed  critical ░ 0/1 · high ░░░ 0/3 · medium ░░░░ 0/4 · low ░ 0/1
    1k of 1M tokens · $0.10 of $5.00 · 0:11 of 2:00:00
    1-4 or v: detail level · s: stop · ?: help
    --- 80 columns
    ── review of _bmad-output/planning-artifacts/prd.md · run prd-86kc · streaming
    round 1 of 3 challenging
    ✓ challenger 1           F1 F2 F4 F5 F6 F7 F8 F9 · answered
    ▸ challenger 2     0:10  F1 F2 F4 F5 F6 F7 F8 F9 · looking for the sentence…
    fixed  critical ░ 0/1 · high ░░░ 0/3 · medium ░░░░ 0/4 · low ░ 0/1
    1k of 1M tokens · $0.10 of $5.00 · 0:11 of 2:00:00
    1-4 or v: detail level · s: stop · ?: help
    --- 30 columns
    ▸ round 1 challenging 1/2
    ");
}

#[test]
fn a_third_challenger_joins_the_two_and_its_decision_waits() {
    insta::assert_snapshot!(draw_frames(&board_from(&challenged_journal())), @r"
    --- 120 columns
    ── review of _bmad-output/planning-artifacts/prd.md · run prd-86kc · streaming ────────────────────────────────────────
    round 1 of 3 ●●●●●●●● 8 new
    ✓ challenger 1 · first                  ✓ challenger 2 · second                 ✓ challenger 3 · third
      F1 F2 F4 F5 F6 F7 F8 F9 · answered      F1 F2 F4 F5 F6 F7 F8 F9 · answered      F2 F5 · answered

    ? D1 needs an answer: F5: FR17 sends webhook signing secrets by e-mail in plain text. Anyone who can read that…
    fixed  critical – 0/1 · high ░░░ 0/3 · medium ░░ 0/2 · low ░░ 0/2 · 1 blocked
    3k of 1M tokens · $0.10 of $5.00 · 0:00 of 2:00:00
    1-4 or v: detail level · s: stop · ?: help
    --- 80 columns
    ── review of _bmad-output/planning-artifacts/prd.md · run prd-86kc · streaming
    round 1 of 3 ●●●●●●●● 8 new
    ✓ challenger 1           F1 F2 F4 F5 F6 F7 F8 F9 · answered
    ✓ challenger 2           F1 F2 F4 F5 F6 F7 F8 F9 · answered
    ✓ challenger 3           F2 F5 · answered
    ? D1 needs an answer: F5: FR17 sends webhook signing secrets by e-mail in…
    fixed  critical – 0/1 · high ░░░ 0/3 · medium ░░ 0/2 · low ░░ 0/2 · 1 blocked
    3k of 1M tokens · $0.10 of $5.00 · 0:00 of 2:00:00
    1-4 or v: detail level · s: stop · ?: help
    --- 30 columns
    ▸ round 1 challenging 3/3
    ");
}

#[test]
fn a_failed_challenger_is_marked_and_matches_the_problem_filter() {
    let mut entries_so_far =
        journal_until(|event| matches!(find_event::<ReviewEvent>(event), Some(ReviewEvent::ChallengerAnswered { .. })));
    let last_event = entries_so_far.last_mut().and_then(|entry| review_event_mut(&mut entry.event));
    if let Some(ReviewEvent::ChallengerAnswered { fault, .. }) = last_event {
        *fault = Some(Fault::new(FaultKind::Malformed, "first did not answer with verdicts"));
    }
    let drawn_text = draw_lines(&entries_so_far, DisplayMode::Streaming, Screen::default());
    let last_line = drawn_text.lines().last().unwrap();
    assert!(last_line.starts_with("  ✗ challenger 1  failed: "), "{last_line}");
    assert!(last_line.ends_with("first did not answer with verdicts"), "{last_line}");
    let frame_text = board_from(&entries_so_far).draw_frame(&screen_of_width(80), 16).join("\n");
    assert!(frame_text.contains("✗ challenger 1"), "{frame_text}");
    let mut problem_filter = EntryFilter::new(LogQuery { only_problems: true, ..LogQuery::default() });
    let problem_kinds: Vec<&str> = entries_so_far
        .iter()
        .filter(|candidate| problem_filter.matches_entry(candidate))
        .map(|candidate| candidate.event.kind_name())
        .collect();
    assert_eq!(problem_kinds, ["challenger_answered"]);
}

#[test]
fn progress_of_a_challenger_carries_its_name() {
    let mut written = Vec::new();
    let mut reporter = LineReporter::new(&mut written, Screen::default(), DisplayMode::Streaming);
    challenged_journal().iter().for_each(|entry| reporter.report_entry(entry).unwrap());
    for task_key in ["round-1/challenge/2/1", "round-1/challenge/3/1/again"] {
        let progress = AgentProgress { task_key: Key::new(task_key), activity: "reading".into(), is_output: false };
        reporter.report_progress(&progress).unwrap();
    }
    // A line of the answer itself is for the live view only.
    let task_key = Key::new("round-1/challenge/2/1");
    reporter.report_progress(&AgentProgress { task_key, activity: "I agree.".into(), is_output: true }).unwrap();
    let drawn_text = String::from_utf8(written).unwrap();
    assert!(drawn_text.ends_with("  · challenger 2  reading\n  · challenger 3  reading\n"), "{drawn_text}");
}

fn matching_entries(query: LogQuery) -> String {
    let mut filter = EntryFilter::new(query);
    let all_entries = challenged_journal();
    let matches = all_entries.iter().filter(|entry| filter.matches_entry(entry));
    matches
        .map(|entry| format!("{} {}", entry.event.kind_name(), entry.event.subject_name()))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_log_of_a_finding_has_its_challenge_and_its_decision() {
    insta::assert_snapshot!(matching_entries(LogQuery { finding_id: Some(FindingId(5)), ..LogQuery::default() }), @r"
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
fn a_key_matches_what_its_challenger_recorded() {
    insta::assert_snapshot!(matching_entries(LogQuery { key_part: Some("challenge/3".into()), ..LogQuery::default() }), @r"
    effect_started round-1/challenge/3/1
    effect_finished round-1/challenge/3/1
    challenger_answered round-1/challenge/3/1
    ");
}

#[test]
fn the_verbose_log_names_every_voice() {
    let mut written = Vec::new();
    let mut reporter = VerboseReporter::new(&mut written, screen_of_width(110));
    for entry in challenged_journal() {
        let is_verdict = matches!(
            find_event::<ReviewEvent>(&entry.event),
            Some(ReviewEvent::ChallengerAnswered { .. } | ReviewEvent::FindingRuled { .. })
        );
        if is_verdict { reporter.report_entry(&entry).unwrap() } else { reporter.note_past_entry(&entry) }
    }
    insta::assert_snapshot!(String::from_utf8(written).unwrap(), @r"
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
    let journal = challenged_journal();
    let agent_calls = collect_calls(&journal);
    let calls_table = tables::render_calls(&agent_calls, &|_| Some(1_000), &Screen::default());
    let challenger_lines: Vec<&str> = calls_table.lines().filter(|line| line.contains("challenge/")).collect();
    assert_eq!(challenger_lines.len(), 3, "{calls_table}");
    let last_columns: Vec<&str> = challenger_lines[2].split_whitespace().take(2).collect();
    assert_eq!(last_columns, ["round-1/challenge/3/1", "third"]);
}

#[test]
fn the_findings_table_shows_the_verdict_on_each() {
    let journal = challenged_journal();
    let run_view = RunView::from_entries(&journal);
    let is_early_finding = |finding: &&Finding| matches!(finding.id.0, 1..=5);
    let findings_table = tables::render_findings(
        run_view.all_findings().filter(is_early_finding),
        &RulingIndex::from_entries(&journal),
        &screen_of_width(100),
    );
    insta::assert_snapshot!(findings_table, @r"
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
         challenged: in doubt (1 valid, 1 invalid, 1 ambiguous), waiting for your decision: the secret
         signs nothing yet (“An owner can create webhooks”)
    ");
}

#[test]
fn the_status_names_refuted_findings_and_the_next_commands() {
    let run_view = RunView::from_entries(&challenged_journal());
    let run_standing = tables::RunStanding { run_view: &run_view, is_live: true };
    insta::assert_snapshot!(tables::render_status(&run_standing, &tables::RunDetails::default(), &Screen::default()), @r#"
    prd-86kc running · _bmad-output/planning-artifacts/prd.md
      1 round completed · 10 findings: 7 open, 1 blocked, 2 dismissed · 16k tokens, $0.10
      refuted by challengers: F2
      next: tribunal log prd-86kc --follow         (watch it)
            tribunal say prd-86kc "MESSAGE"        (tell its agents something)
            tribunal stop prd-86kc                 (it can be resumed)
            tribunal decisions prd-86kc.D1 ANSWER  (uphold, dismiss, defer)
            tribunal findings prd-86kc
    "#);
}
