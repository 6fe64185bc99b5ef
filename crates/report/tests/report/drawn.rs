//! A recorded run as lines: piped, on a wide terminal, on a narrow one, in colour.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_report::{
    DisplayMode, JsonReporter, LineReporter, Reporter, RulingIndex, Screen, calls::collect_calls, tables,
};
use tribunal_testkit::{SAMPLE_JOURNAL, challenged_journal, parse_entries, samples};
use tribunal_workflows::{
    review::event::ReviewEvent,
    runs::{
        types::{JournalEntry, RunEvent, find_event},
        view::RunView,
    },
};

fn draw_default(screen: Screen) -> String {
    draw_in_mode(DisplayMode::default(), screen)
}

fn draw_in_mode(mode: DisplayMode, screen: Screen) -> String {
    let mut written = Vec::new();
    let mut reporter = LineReporter::new(&mut written, screen, mode);
    for journal_entry in parse_entries(SAMPLE_JOURNAL) {
        reporter.report_entry(&journal_entry).unwrap();
    }
    String::from_utf8(written).unwrap()
}

#[test]
fn piped() {
    insta::assert_snapshot!(draw_default(Screen::default()));
}

/// The sample journal as a build that calculates confidence would have recorded it.
fn journal_with_confidence() -> Vec<JournalEntry> {
    let mut all_entries = Vec::new();
    for entry in parse_entries(SAMPLE_JOURNAL) {
        let round_end = matches!(find_event::<ReviewEvent>(&entry.event), Some(ReviewEvent::RoundEnded { .. }))
            .then(|| entry.clone());
        all_entries.push(entry);
        all_entries.extend(round_end.map(|round_end| JournalEntry {
            event: RunEvent::from_workflow(ReviewEvent::ConfidenceCalculated {
                round: 1,
                confidence: samples::sample_confidence(),
            }),
            ..round_end
        }));
    }
    all_entries
}

#[test]
fn confidence_is_shown_after_every_round_and_at_the_end_and_with_its_parts_in_the_status() {
    let mut written = Vec::new();
    let mut reporter =
        LineReporter::new(&mut written, Screen { max_columns: Some(70), ..Screen::default() }, DisplayMode::default());
    journal_with_confidence().iter().for_each(|entry| reporter.report_entry(entry).unwrap());
    let drawn_text = String::from_utf8(written).unwrap();
    let after_the_round: Vec<&str> = drawn_text.lines().skip_while(|line| !line.contains("to fix")).take(3).collect();
    insta::assert_snapshot!(after_the_round.join("\n"), @r"
    9 new findings, 9 to fix (1 critical, 3 high, 4 medium, 1 low)
    confidence 83 of 100
    fix iteration 1: 3 fixers for F5 F9 F4 | F3 F1 F8 | F7 F2 F6
    ");
    let ending_lines: Vec<&str> = drawn_text.lines().skip_while(|line| !line.starts_with("resolved")).take(4).collect();
    insta::assert_snapshot!(ending_lines.join("\n"), @"
    resolved: all findings fixed, and the last review found nothing new
      11 findings: 10 fixed, 1 dismissed · 3 rounds · 47k tokens · $0.35
        0:00 · confidence 83 of 100
      tracker: _bmad-output/reviews/prd-issues.md
    ");
    let run_view = RunView::from_entries(&journal_with_confidence());
    let run_standing = tables::RunStanding { run_view: &run_view, is_live: false };
    insta::assert_snapshot!(tables::render_status(&run_standing, &tables::RunDetails::default(), &Screen::default()), @"
    prd-86kc resolved · _bmad-output/planning-artifacts/prd.md
      all findings fixed, and the last review found nothing new
      11 findings: 10 fixed, 1 dismissed · 3 rounds · 47k tokens · $0.35 · 0:00
      confidence 83 of 100 (78 for gates, medium): validation 35/35, reviewers 15/25; memory, party not consulted
      tracker: _bmad-output/reviews/prd-issues.md
      next: tribunal findings prd-86kc
            tribunal diff prd-86kc
            tribunal undo prd-86kc  (preview; add --yes to undo)
            tribunal log prd-86kc
    ");
}

#[test]
fn the_silent_mode_shows_only_the_ending() {
    insta::assert_snapshot!(draw_in_mode(DisplayMode::Silent, Screen::default()), @"
    resolved: all findings fixed, and the last review found nothing new
      11 findings: 10 fixed, 1 dismissed · 3 rounds · 47k tokens · $0.35 · 0:00
      tracker: _bmad-output/reviews/prd-issues.md
      next: tribunal findings prd-86kc
            tribunal diff prd-86kc
            tribunal undo prd-86kc  (preview; add --yes to undo)
            tribunal log prd-86kc
    ");
}

#[test]
fn the_summary_mode_shows_one_line_per_stage() {
    insta::assert_snapshot!(draw_in_mode(DisplayMode::Summary, Screen::default()), @"
    review of _bmad-output/planning-artifacts/prd.md · run prd-86kc
      round 1: 9 new findings, 9 to fix (1 critical, 3 high, 4 medium, 1 low)
      round 1, fix iteration 1: 2 of 3 patches applied; 6 fixed, 3 open
      round 1, fix iteration 2: 1 of 1 patch applied; 9 fixed, 0 open
      round 2: 1 new finding, 1 to fix (1 medium)
      round 2, fix iteration 1: 1 of 1 patch applied; 10 fixed, 0 open
      round 3: no new findings

    resolved: all findings fixed, and the last review found nothing new
      11 findings: 10 fixed, 1 dismissed · 3 rounds · 47k tokens · $0.35 · 0:00
      tracker: _bmad-output/reviews/prd-issues.md
      next: tribunal findings prd-86kc
            tribunal diff prd-86kc
            tribunal undo prd-86kc  (preview; add --yes to undo)
            tribunal log prd-86kc
    ");
}

#[test]
fn the_verbose_mode_adds_a_line_for_every_effect() {
    let drawn_text = draw_in_mode(DisplayMode::Verbose, Screen::default());
    let (effect_lines, other_lines): (Vec<&str>, Vec<&str>) =
        drawn_text.lines().partition(|line| line.starts_with("  > "));
    assert_eq!(other_lines.join("\n") + "\n", draw_default(Screen::default()));
    insta::assert_snapshot!(effect_lines[2..12].join("\n"), @r"
      > started     round-1/freeze
      > done        round-1/freeze
      > started     round-1/review/party
      > started     round-1/review/adversarial
      > started     round-1/review/elicitation
      > answered    round-1/review/elicitation
      > answered    round-1/review/adversarial
      > answered    round-1/review/party
      > started     round-1/tracker
      > done        round-1/tracker
    ");
}

#[test]
fn on_a_narrow_terminal_no_line_is_wider_than_it() {
    let drawn_text = draw_default(Screen { use_colour: false, max_columns: Some(60), ..Screen::default() });
    let too_wide: Vec<&str> = drawn_text.lines().filter(|line| line.chars().count() > 60).collect();
    assert_eq!(too_wide, Vec::<&str>::new());
    insta::assert_snapshot!(drawn_text);
}

#[test]
fn coloured_lines_have_the_same_text() {
    let coloured = draw_default(Screen { use_colour: true, max_columns: Some(100), ..Screen::default() });
    let mut stripped = String::new();
    let mut remaining_text = coloured.as_str();
    while let Some(escape_offset) = remaining_text.find('\x1b') {
        stripped.push_str(&remaining_text[..escape_offset]);
        remaining_text = &remaining_text[escape_offset..];
        remaining_text = &remaining_text[remaining_text.find('m').unwrap() + 1..];
    }
    stripped.push_str(remaining_text);
    assert_eq!(stripped, draw_default(Screen { use_colour: false, max_columns: Some(100), ..Screen::default() }));
    assert_ne!(stripped, coloured);
}

#[test]
fn every_json_line_is_one_entry() {
    let mut written = Vec::new();
    let mut reporter = JsonReporter::new(&mut written);
    let sample_entries = parse_entries(SAMPLE_JOURNAL);
    for entry in &sample_entries {
        reporter.report_entry(entry).unwrap();
    }
    assert!(parse_entries(&String::from_utf8(written).unwrap()) == sample_entries);
}

#[test]
fn in_a_list_of_runs() {
    let run_view = RunView::from_entries(&parse_entries(SAMPLE_JOURNAL));
    let run_standing = tables::RunStanding { run_view: &run_view, is_live: false };
    let runs_table = tables::render_runs(&[run_standing], &Screen::default());
    insta::assert_snapshot!(
        runs_table + &tables::render_status(&run_standing, &tables::RunDetails::default(), &Screen::default())
    );
}

#[test]
fn a_narrow_list_of_runs_moves_what_does_not_fit_to_a_second_line() {
    let all_entries = parse_entries(SAMPLE_JOURNAL);
    let (ended_view, crashed_view) = (RunView::from_entries(&all_entries), RunView::from_entries(&all_entries[..30]));
    let standings = [&ended_view, &crashed_view].map(|run_view| tables::RunStanding { run_view, is_live: false });
    let render_at =
        |columns| tables::render_runs(&standings, &Screen { max_columns: Some(columns), ..Screen::default() });
    insta::assert_snapshot!(render_at(120), @r"
    RUN       STATE     STARTED (UTC)     FINDINGS               USAGE              SUBJECT
    prd-86kc  resolved  2026-11-15 03:57  10 fixed, 1 dismissed  47k tokens, $0.35  _bmad-output/planning-artifacts/prd.md
    prd-86kc  crashed   2026-11-15 03:57  9 open, 1 dismissed    13k tokens, $0.10  _bmad-output/planning-artifacts/prd.md
    ");
    insta::assert_snapshot!(render_at(80), @r"
    RUN       STATE     STARTED (UTC)     FINDINGS               USAGE
    prd-86kc  resolved  2026-11-15 03:57  10 fixed, 1 dismissed  47k tokens, $0.35
      _bmad-output/planning-artifacts/prd.md
    prd-86kc  crashed   2026-11-15 03:57  9 open, 1 dismissed    13k tokens, $0.10
      _bmad-output/planning-artifacts/prd.md
    ");
    insta::assert_snapshot!(render_at(60), @r"
    RUN       STATE     STARTED (UTC)     FINDINGS
    prd-86kc  resolved  2026-11-15 03:57  10 fixed, 1 dismissed
      47k tokens, $0.35
      _bmad-output/planning-artifacts/prd.md
    prd-86kc  crashed   2026-11-15 03:57  9 open, 1 dismissed
      13k tokens, $0.10
      _bmad-output/planning-artifacts/prd.md
    ");
}

#[test]
fn a_crashed_run_can_be_resumed_or_discarded() {
    let run_view = RunView::from_entries(&parse_entries(SAMPLE_JOURNAL)[..30]);
    let run_standing = tables::RunStanding { run_view: &run_view, is_live: false };
    let narrow_screen = Screen { max_columns: Some(60), ..Screen::default() };
    insta::assert_snapshot!(tables::render_status(&run_standing, &tables::RunDetails::default(), &narrow_screen), @r"
    prd-86kc crashed · _bmad-output/planning-artifacts/prd.md
      1 round completed · 10 findings: 9 open, 1 dismissed
        13k tokens, $0.10
      next: tribunal resume prd-86kc
            tribunal discard prd-86kc  (give up this run)
            tribunal findings prd-86kc
    ");
}

#[test]
fn no_line_of_a_table_is_wider_than_its_screen() {
    for journal in [parse_entries(SAMPLE_JOURNAL), journal_with_confidence(), challenged_journal()] {
        let run_view = RunView::from_entries(&journal);
        let run_standing = tables::RunStanding { run_view: &run_view, is_live: false };
        let agent_calls = collect_calls(&journal);
        for columns in [60, 80] {
            let screen = Screen { max_columns: Some(columns), ..Screen::default() };
            let rendered_tables = [
                tables::render_runs(&[run_standing], &screen),
                tables::render_status(&run_standing, &tables::RunDetails::default(), &screen),
                tables::render_findings(run_view.all_findings(), &RulingIndex::from_entries(&journal), &screen),
                tables::render_calls(&agent_calls, &|_| Some(12_345), &screen),
                tables::render_sent_texts(&agent_calls, &|_| None, &screen),
                tables::render_decisions([&run_view], &screen),
            ];
            for line in rendered_tables.iter().flat_map(|table_text| table_text.lines()) {
                assert!(line.chars().count() < columns, "{columns} columns: {line}");
            }
        }
    }
}
