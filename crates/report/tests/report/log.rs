//! A recorded run in part and in full: filters, a line for every entry, calls of agents.

use std::collections::BTreeSet;

use tribunal_engine::ids::FindingId;
use tribunal_report::{EntryFilter, LogQuery, Reporter, Screen, VerboseReporter, calls::collect_calls, tables};
use tribunal_testkit::{SAMPLE_JOURNAL, parse_entries};
use tribunal_workflows::runs::{
    settings::DriverSpec,
    types::{JournalEntry, RunEvent},
};

fn sample_journal() -> Vec<JournalEntry> {
    parse_entries(SAMPLE_JOURNAL)
}

fn filter_sample(query: LogQuery) -> Vec<JournalEntry> {
    let mut filter = EntryFilter::new(query);
    sample_journal().into_iter().filter(|entry| filter.matches_entry(entry)).collect()
}

fn entry_names(entries: &[JournalEntry]) -> Vec<String> {
    entries.iter().map(|entry| format!("{} {}", entry.event.kind_name(), entry.event.subject_name())).collect()
}

#[test]
fn an_empty_query_matches_everything() {
    assert_eq!(filter_sample(LogQuery::default()), sample_journal());
}

#[test]
fn every_entry_belongs_to_exactly_one_round() {
    let all_entries = sample_journal();
    let before_rounds: Vec<JournalEntry> = filter_sample(LogQuery { round_number: Some(0), ..LogQuery::default() });
    let mut matched_count = before_rounds.len();
    for round_number in 1..=3 {
        let round_entries = filter_sample(LogQuery { round_number: Some(round_number), ..LogQuery::default() });
        assert_eq!(round_entries[0].event.kind_name(), "round_started");
        assert!(round_entries.iter().any(|entry| entry.event.kind_name() == "round_ended"));
        matched_count += round_entries.len();
    }
    assert_eq!(matched_count, all_entries.len());
}

#[test]
fn a_finding_is_followed_from_its_raising_to_its_end() {
    let matching = filter_sample(LogQuery { finding_id: Some(FindingId(11)), ..LogQuery::default() });
    insta::assert_snapshot!(entry_names(&matching).join("\n"), @r"
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
fn a_key_matches_its_effects_and_nothing_else() {
    let matching = filter_sample(LogQuery { key_part: Some("review/party".into()), ..LogQuery::default() });
    assert_eq!(matching.len(), 6, "asked and answered in three rounds: {:?}", entry_names(&matching));
}

#[test]
fn the_problem_filter_matches_refusals() {
    let matching = filter_sample(LogQuery { only_problems: true, ..LogQuery::default() });
    insta::assert_snapshot!(entry_names(&matching).join("\n"), @r"
    effect_finished round-1/fix-1/fix/2/land
    patch_refused round-1/fix-1/fix/2
    ");
}

#[test]
fn kinds_and_times_must_both_match() {
    let moved_entries = filter_sample(LogQuery { event_kinds: vec!["finding_moved".into()], ..LogQuery::default() });
    let since_ms = Some(moved_entries[moved_entries.len() / 2].at.wall_ms);
    let late_entries =
        filter_sample(LogQuery { event_kinds: vec!["finding_moved".into()], since_ms, ..LogQuery::default() });
    assert!(!late_entries.is_empty() && late_entries.len() < moved_entries.len());
    assert!(late_entries.iter().all(|entry| Some(entry.at.wall_ms) >= since_ms));
}

#[test]
fn the_verbose_log_has_a_line_for_every_entry() {
    let mut written = Vec::new();
    let mut reporter = VerboseReporter::new(&mut written, Screen { max_columns: Some(110), ..Screen::default() });
    for entry in sample_journal() {
        match entry.event {
            // The entries in between contain names and times of this one recording only.
            _ if entry.seq <= 36 || entry.seq > 150 => reporter.report_entry(&entry).unwrap(),
            _ => reporter.note_past_entry(&entry),
        }
    }
    insta::assert_snapshot!(String::from_utf8(written).unwrap(), @r#"
      1   0:00.000  run_started           review 1 of _bmad-output/planning-artifacts/prd.md by tribunal 0.1.0
      2   0:00.005  level_chosen          full: tier 2, no confidence signal yet
      3   0:00.005  round_started         1: of at most 3
      4   0:00.005  effect_started        round-1/inbox: check the inbox
      5   0:00.006  effect_finished       round-1/inbox: 0 requests · 1 ms
      6   0:00.006  effect_started        round-1/freeze: snapshot _bmad-output/planning-artifacts/prd.md
      7   0:00.016  effect_finished       round-1/freeze: 6,049 bytes · 10 ms
      8   0:00.017  effect_started        round-1/review/party: ask scripted as party
      9   0:00.017  effect_started        round-1/review/adversarial: ask scripted as adversarial
     10   0:00.017  effect_started        round-1/review/elicitation: ask scripted as elicitation
     11   0:00.031  effect_finished       round-1/review/elicitation: 3 findings · 14 ms · 3,490 tokens · $0.03
     12   0:00.034  seat_answered         elicitation: 3 findings, scripted · 3,490 tokens · $0.03
     13   0:00.034  effect_finished       round-1/review/adversarial: 4 findings · 17 ms · 3,920 tokens · $0.03
     14   0:00.035  seat_answered         adversarial: 4 findings, scripted · 3,920 tokens · $0.03
     15   0:00.036  effect_finished       round-1/review/party: 4 findings · 19 ms · 5,350 tokens · $0.04
     16   0:00.038  seat_answered         party: 4 findings, scripted · 5,350 tokens · $0.04
     17   0:00.038  finding_raised        F1: medium: This success criterion has no number, no deadline and no…
     18   0:00.038  finding_raised        F2: medium: SMS is part of the MVP in this line and excluded for…
     19   0:00.038  finding_raised        F3: high: The alert cannot be sent within 15 seconds of the start of…
     20   0:00.038  finding_joined        F3: high, also by adversarial
     21   0:00.038  finding_raised        F4: medium: Who is the duty steward? The table in Users and Roles has…
     22   0:00.038  finding_raised        F5: critical: FR17 sends webhook signing secrets by e-mail in plain…
     23   0:00.038  finding_raised        F6: low: "Fast" cannot be tested. NFR1 names no time, no device and…
     24   0:00.038  finding_raised        F7: high: 99.99 % of a month allows about 4 minutes of downtime,…
     25   0:00.038  finding_raised        F8: medium: NFR9 drops incidents after 30 days, while FR12 lists the…
     26   0:00.038  finding_raised        F9: high: The PRD claims GDPR compliance but never says how a person…
     27   0:00.038  finding_raised        F10: medium: The offline mode of the mobile app is not specified:…
     28   0:00.038  round_ended           1: 9 new findings, 9 to fix (1 critical, 3 high, 4 medium, 1 low) ·…
     29   0:00.038  effect_started        round-1/tracker: write 5,763 bytes
     30   0:00.043  effect_finished       round-1/tracker: _bmad-output/reviews/prd-issues.md · 5 ms
     31   0:00.043  file_written          _bmad-output/reviews/prd-issues.md
     32   0:00.044  boundary              round-1
     33   0:00.045  effect_started        round-1/fix-1/inbox: check the inbox
     34   0:00.045  effect_finished       round-1/fix-1/inbox: 0 requests · 0 ms
     35   0:00.046  fixers_dealt          1.1: F5 F9 F4 | F3 F1 F8 | F7 F2 F6
     36   0:00.046  finding_moved         F5: assigned: assigned to fixer 1
    151   0:00.342  file_written          _bmad-output/reviews/review-metrics-1794715038.json
    152   0:00.342  run_finished          resolved, all findings fixed, and the last review found nothing new ·…
    "#);
}

#[test]
fn a_provider_named_like_the_script_vendor_is_not_a_script() {
    let mut journal = sample_journal();
    let first_line = |journal: &[JournalEntry]| {
        let sent_text = tables::render_sent_texts(&collect_calls(journal), &|_| Some(7), &Screen::default());
        sent_text.lines().next().unwrap().to_string()
    };
    assert_eq!(first_line(&journal), "no vendor: replayed from a script");
    let RunEvent::RunStarted { settings, .. } = &mut journal[0].event else { panic!("it begins with its start") };
    settings.agents[0].driver = DriverSpec::Command { argv: vec!["agent".into()] };
    settings.agents[0].provider = "none".into();
    assert_eq!(first_line(&journal), "to none");
}

#[test]
fn every_agent_call_names_its_prompt_and_its_output() {
    let entries = sample_journal();
    let agent_calls = collect_calls(&entries);
    let ask_entries = entries.iter().filter(|entry| {
        matches!(
            &entry.event,
            RunEvent::EffectStarted { effect: tribunal_workflows::runs::effect::Effect::Ask { .. }, .. }
        )
    });
    assert_eq!(agent_calls.len(), ask_entries.count());
    assert!(
        agent_calls
            .iter()
            .all(|call| call.driver_name == "replay" && call.prompt_hash().is_some() && call.output_hash().is_some())
    );
    let prompts: BTreeSet<_> = agent_calls.iter().map(|agent_call| agent_call.prompt_hash()).collect();
    assert_eq!(prompts.len(), agent_calls.len(), "no two were sent the same");
    assert!(
        agent_calls.iter().all(|call| call.answered_seq > Some(call.asked_seq) && call.usage().weighted_tokens() > 0)
    );
}
