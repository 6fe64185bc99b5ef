//! A recorded run in part and in full: filters, a line for every entry, calls of agents.

use std::collections::BTreeSet;

use tribunal_core::{
    event::{Entry, Event},
    ids::FindingId,
    settings::DriverSpec,
};
use tribunal_report::{Filter, Reporter, Screen, Verbose, Wanted, calls::calls, tables};
use tribunal_testkit::{SAMPLE_JOURNAL, entries};

fn recorded() -> Vec<Entry> {
    entries(SAMPLE_JOURNAL)
}

fn filtered(wanted: Wanted) -> Vec<Entry> {
    let mut filter = Filter::new(wanted);
    recorded().into_iter().filter(|entry| filter.wants(entry)).collect()
}

fn names(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| format!("{} {}", entry.event.kind(), entry.event.about())).collect()
}

#[test]
fn without_a_wish_nothing_is_left_out() {
    assert_eq!(filtered(Wanted::default()), recorded());
}

#[test]
fn rounds_share_the_run_between_them() {
    let whole = recorded();
    let before: Vec<Entry> = filtered(Wanted { round: Some(0), ..Wanted::default() });
    let mut parts = before.len();
    for round in 1..=3 {
        let part = filtered(Wanted { round: Some(round), ..Wanted::default() });
        assert_eq!(part[0].event.kind(), "round_started");
        assert!(part.iter().any(|entry| entry.event.kind() == "round_ended"));
        parts += part.len();
    }
    assert_eq!(parts, whole.len());
}

#[test]
fn a_finding_from_its_raising_to_its_end() {
    let found = filtered(Wanted { finding: Some(FindingId(11)), ..Wanted::default() });
    insta::assert_snapshot!(names(&found).join("\n"), @r"
    finding_raised F11
    fixers_dealt 1.1
    finding_moved F11
    effect_started round-2/fix-1/fix/1
    effect_finished round-2/fix-1/fix/1
    effect_started round-2/fix-1/fix/1/land
    effect_finished round-2/fix-1/fix/1/land
    patch_landed round-2/fix-1/fix/1
    finding_moved F11
    ");
}

#[test]
fn a_key_brings_its_effects_and_nothing_else() {
    let found = filtered(Wanted { key: Some("review/party".into()), ..Wanted::default() });
    assert_eq!(found.len(), 6, "asked and answered in three rounds: {:?}", names(&found));
}

#[test]
fn warnings_are_what_went_wrong() {
    let found = filtered(Wanted { warnings: true, ..Wanted::default() });
    insta::assert_snapshot!(names(&found).join("\n"), @r"
    effect_finished round-1/fix-1/fix/2/land
    patch_refused round-1/fix-1/fix/2
    ");
}

#[test]
fn kinds_and_times_narrow_together() {
    let moved = filtered(Wanted { kinds: vec!["finding_moved".into()], ..Wanted::default() });
    let since_ms = Some(moved[moved.len() / 2].at.wall_ms);
    let late = filtered(Wanted { kinds: vec!["finding_moved".into()], since_ms, ..Wanted::default() });
    assert!(!late.is_empty() && late.len() < moved.len());
    assert!(late.iter().all(|entry| Some(entry.at.wall_ms) >= since_ms));
}

#[test]
fn in_full_every_entry_has_a_line() {
    let mut out = Vec::new();
    let mut verbose = Verbose::new(&mut out, Screen { width: Some(110), ..Screen::default() });
    for entry in recorded() {
        match entry.event {
            // The entries in between contain names and times of this one recording only.
            _ if entry.seq <= 36 || entry.seq > 150 => verbose.entry(&entry).unwrap(),
            _ => verbose.past(&entry),
        }
    }
    insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r#"
      1   0:00.000  run_started           review 1 of _bmad-output/planning-artifacts/prd.md by tribunal 0.1.0
      2   0:00.005  level_chosen          full: tier 2, no confidence signal yet
      3   0:00.005  round_started         1: of at most 3
      4   0:00.005  effect_started        round-1/inbox: look into the inbox
      5   0:00.006  effect_finished       round-1/inbox: 0 requests · 1 ms
      6   0:00.006  effect_started        round-1/freeze: freeze _bmad-output/planning-artifacts/prd.md
      7   0:00.016  effect_finished       round-1/freeze: 6,049 bytes · 10 ms
      8   0:00.017  effect_started        round-1/review/party: ask scripted as party
      9   0:00.017  effect_started        round-1/review/adversarial: ask scripted as adversarial
     10   0:00.017  effect_started        round-1/review/elicitation: ask scripted as elicitation
     11   0:00.031  effect_finished       round-1/review/elicitation: 3 findings · 14 ms · 3,490 tokens · 0.03…
     12   0:00.034  seat_answered         elicitation: scripted raised 3 · 3,490 tokens · 0.03 in cost
     13   0:00.034  effect_finished       round-1/review/adversarial: 4 findings · 17 ms · 3,920 tokens · 0.03…
     14   0:00.035  seat_answered         adversarial: scripted raised 4 · 3,920 tokens · 0.03 in cost
     15   0:00.036  effect_finished       round-1/review/party: 4 findings · 19 ms · 5,350 tokens · 0.04 in cost
     16   0:00.038  seat_answered         party: scripted raised 4 · 5,350 tokens · 0.04 in cost
     17   0:00.038  finding_raised        F1: medium: This success criterion has no number, no deadline and no…
     18   0:00.038  finding_raised        F2: medium: SMS is part of the MVP in this line and excluded for resp…
     19   0:00.038  finding_raised        F3: high: The alert cannot be sent within 15 seconds of the start of…
     20   0:00.038  finding_joined        F3: high, also by adversarial
     21   0:00.038  finding_raised        F4: medium: Who is the duty steward? The table in Users and Roles has…
     22   0:00.038  finding_raised        F5: critical: FR17 sends webhook signing secrets by e-mail in plain t…
     23   0:00.038  finding_raised        F6: low: "Fast" cannot be tested. NFR1 names no time, no device and n…
     24   0:00.038  finding_raised        F7: high: 99.99 % of a month allows about 4 minutes of downtime, main…
     25   0:00.038  finding_raised        F8: medium: NFR9 drops incidents after 30 days, while FR12 lists the…
     26   0:00.038  finding_raised        F9: high: The PRD claims GDPR compliance but never says how a person…
     27   0:00.038  finding_raised        F10: medium: The offline mode of the mobile app is not specified: not…
     28   0:00.038  round_ended           1: 9 new, 10 raised: 9 open, 1 dismissed
     29   0:00.038  effect_started        round-1/tracker: write 5,774 bytes
     30   0:00.043  effect_finished       round-1/tracker: _bmad-output/reviews/prd-issues.md · 5 ms
     31   0:00.043  file_written          _bmad-output/reviews/prd-issues.md
     32   0:00.044  boundary              round-1
     33   0:00.045  effect_started        round-1/fix-1/inbox: look into the inbox
     34   0:00.045  effect_finished       round-1/fix-1/inbox: 0 requests · 0 ms
     35   0:00.046  fixers_dealt          1.1: F5 F9 F4 | F3 F1 F8 | F7 F2 F6
     36   0:00.046  finding_moved         F5: assigned: given to fixer 1
    151   0:00.342  file_written          _bmad-output/reviews/review-metrics-1794715038.json
    152   0:00.342  run_finished          resolved · a pass over the final text was dry · 3 rounds · 47,480 tok…
    "#);
}

#[test]
fn a_provider_that_is_called_nobody_is_no_script() {
    let mut journal = recorded();
    let first_line = |journal: &[Entry]| {
        let text = tables::sent(&calls(journal), &|_| Some(7), &Screen::default());
        text.lines().next().unwrap().to_string()
    };
    assert_eq!(first_line(&journal), "nobody: played from a script");
    let Event::RunStarted { settings, .. } = &mut journal[0].event else {
        panic!("it begins with its start")
    };
    settings.agents[0].driver = DriverSpec::Command { argv: vec!["agent".into()] };
    settings.agents[0].provider = "nobody".into();
    assert_eq!(first_line(&journal), "to nobody");
}

#[test]
fn every_call_of_an_agent_names_what_was_sent_and_what_came_back() {
    let entries = recorded();
    let calls = calls(&entries);
    let asked = entries.iter().filter(|entry| {
        matches!(&entry.event, Event::EffectStarted { effect: tribunal_core::effect::Effect::Ask { .. }, .. })
    });
    assert_eq!(calls.len(), asked.count());
    assert!(
        calls
            .iter()
            .all(|call| call.driver == "replay" && call.prompt().is_some() && call.output().is_some())
    );
    let prompts: BTreeSet<_> = calls.iter().map(|call| call.prompt()).collect();
    assert_eq!(prompts.len(), calls.len(), "no two were sent the same");
    assert!(calls.iter().all(|call| call.answered > Some(call.asked) && call.usage().weighted() > 0));
}
