//! A recorded run as lines: piped, on a wide terminal, on a narrow one, in colour.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_core::{
    event::{Entry, Event},
    view::RunView,
};
use tribunal_report::{JsonLines, Lines, Mode, Reporter, Screen, tables};
use tribunal_testkit::{SAMPLE_JOURNAL, entries, samples};

fn drawn(screen: Screen) -> String {
    drawn_as(Mode::default(), screen)
}

fn drawn_as(mode: Mode, screen: Screen) -> String {
    let mut out = Vec::new();
    let mut lines = Lines::new(&mut out, screen, mode);
    for entry in entries(SAMPLE_JOURNAL) {
        lines.entry(&entry).unwrap();
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn piped() {
    insta::assert_snapshot!(drawn(Screen::default()));
}

/// The sample journal as a build that calculates confidence would have recorded it.
fn with_confidence() -> Vec<Entry> {
    let mut all = Vec::new();
    for entry in entries(SAMPLE_JOURNAL) {
        let ended = matches!(entry.event, Event::RoundEnded { .. }).then(|| entry.clone());
        all.push(entry);
        all.extend(ended.map(|ended| Entry {
            event: Event::ConfidenceCalculated { round: 1, confidence: samples::confidence() },
            ..ended
        }));
    }
    all
}

#[test]
fn confidence_is_told_with_its_parts_after_every_round_and_once_more_at_the_end() {
    let mut out = Vec::new();
    let mut lines = Lines::new(&mut out, Screen { width: Some(70), ..Screen::default() }, Mode::default());
    with_confidence().iter().for_each(|entry| lines.entry(entry).unwrap());
    let text = String::from_utf8(out).unwrap();
    let after_the_round: Vec<&str> =
        text.lines().skip_while(|line| !line.contains("to fix")).take(3).collect();
    insta::assert_snapshot!(after_the_round.join("\n"), @r"
    9 new; 9 findings: 1 critical, 3 high, 4 medium, 1 low to fix
    confidence 83: validation 35/35, reviewers 15/25; memory, party not
    consulted
    ");
    let end: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("resolved")).take(4).collect();
    insta::assert_snapshot!(end.join("\n"), @r"
    resolved · the goal is met: a pass over the final text was dry
      11 raised: 10 fixed, 1 dismissed · 3 rounds · 47,480 tokens · cost
      0.35 · 0:00 · confidence 83
      tracker: _bmad-output/reviews/prd-issues.md
    ");
    let view = RunView::of(&with_confidence());
    let standing = tables::Standing { view: &view, live: false };
    insta::assert_snapshot!(tables::status(&standing, &Screen::default()), @r"
    prd-86kc resolved · _bmad-output/planning-artifacts/prd.md
      the goal is met: a pass over the final text was dry
      11 raised: 10 fixed, 1 dismissed · 3 rounds · 47,480 tokens · cost 0.35 · 0:00
      confidence 83: validation 35/35, reviewers 15/25; memory, party not consulted; for gates 78, medium
      tracker: _bmad-output/reviews/prd-issues.md
      next: tribunal findings prd-86kc
            tribunal log prd-86kc
    ");
}

#[test]
fn silent_says_only_how_it_ended() {
    insta::assert_snapshot!(drawn_as(Mode::Silent, Screen::default()), @r"
    resolved · the goal is met: a pass over the final text was dry
      11 raised: 10 fixed, 1 dismissed · 3 rounds · 47,480 tokens · cost 0.35 · 0:00
      tracker: _bmad-output/reviews/prd-issues.md
      next: tribunal findings prd-86kc
            tribunal log prd-86kc
    ");
}

#[test]
fn in_summary_every_stage_is_a_line() {
    insta::assert_snapshot!(drawn_as(Mode::Summary, Screen::default()), @r"
    review of _bmad-output/planning-artifacts/prd.md · run prd-86kc
      round 1: 9 new; 9 findings: 1 critical, 3 high, 4 medium, 1 low to fix
      round 1, fix iteration 1: patches landed: 2 of 3; 6 fixed, 3 open
      round 1, fix iteration 2: patches landed: 1 of 1; 9 fixed, 0 open
      round 2: 1 new; 1 finding: 1 medium to fix
      round 2, fix iteration 1: patches landed: 1 of 1; 10 fixed, 0 open
      round 3: a dry pass: nothing new

    resolved · the goal is met: a pass over the final text was dry
      11 raised: 10 fixed, 1 dismissed · 3 rounds · 47,480 tokens · cost 0.35 · 0:00
      tracker: _bmad-output/reviews/prd-issues.md
      next: tribunal findings prd-86kc
            tribunal log prd-86kc
    ");
}

#[test]
fn verbose_adds_every_effect_to_what_is_said_anyway() {
    let text = drawn_as(Mode::Verbose, Screen::default());
    let (inner, said): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("  > "));
    assert_eq!(said.join("\n") + "\n", drawn(Screen::default()));
    insta::assert_snapshot!(inner[2..12].join("\n"), @r"
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
    let text = drawn(Screen { colour: false, width: Some(60), ..Screen::default() });
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 60).collect();
    assert_eq!(wide, Vec::<&str>::new());
    insta::assert_snapshot!(text);
}

#[test]
fn in_colour_it_says_the_same() {
    let coloured = drawn(Screen { colour: true, width: Some(100), ..Screen::default() });
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[rest.find('m').unwrap() + 1..];
    }
    plain.push_str(rest);
    assert_eq!(plain, drawn(Screen { colour: false, width: Some(100), ..Screen::default() }));
    assert_ne!(plain, coloured);
}

#[test]
fn for_programs_every_line_is_the_entry_itself() {
    let mut out = Vec::new();
    let mut lines = JsonLines::new(&mut out);
    let recorded = entries(SAMPLE_JOURNAL);
    for entry in &recorded {
        lines.entry(entry).unwrap();
    }
    assert!(entries(&String::from_utf8(out).unwrap()) == recorded);
}

#[test]
fn in_a_list_of_runs() {
    let view = RunView::of(&entries(SAMPLE_JOURNAL));
    let standing = tables::Standing { view: &view, live: false };
    let text = tables::runs(&[standing], &Screen::default());
    insta::assert_snapshot!(text + &tables::status(&standing, &Screen::default()));
}
