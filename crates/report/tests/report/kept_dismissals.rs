//! Findings that stay dismissed, as the user decided in an earlier run: one line, not one for each finding.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_engine::{
    ids::{FindingId, RunId},
    timestamp::Timestamp,
};
use tribunal_report::{DisplayMode, LineReporter, Reporter, Screen, VerboseReporter};
use tribunal_testkit::{SAMPLE_JOURNAL, parse_entries};
use tribunal_workflows::{
    findings::finding::{DismissalReason, FindingStatus, StatusTransition, TransitionCause},
    review::event::ReviewEvent,
    runs::types::{JournalEntry, RunEvent},
};

use crate::events::review_event_mut;

/// The sample journal as if the user had dismissed its first two findings in earlier runs.
fn journal_with_dismissals(runs: &[&str]) -> Vec<JournalEntry> {
    let mut entries = parse_entries(SAMPLE_JOURNAL);
    let mut kept_ids: Vec<FindingId> = Vec::new();
    let mut last_index = 0;
    for (index, entry) in entries.iter_mut().enumerate() {
        if let Some(ReviewEvent::FindingRaised { finding }) = review_event_mut(&mut entry.event)
            && kept_ids.len() < 2
        {
            let transition = StatusTransition::new(
                FindingStatus::Dismissed { why: DismissalReason::Person },
                TransitionCause::DismissedBefore { run: RunId::new(runs[0]) },
                format!("dismissed in {}: we know", runs[0]),
            );
            finding.description = "a finding that the user knows".into();
            finding.apply_transition(transition, Timestamp::default());
            kept_ids.push(finding.id);
            last_index = index;
        }
    }
    let runs = runs.iter().map(|run| RunId::new(*run)).collect();
    let event = RunEvent::from_workflow(ReviewEvent::DismissalsKept { findings: kept_ids, runs });
    entries.insert(last_index + 1, JournalEntry { event, ..entries[last_index].clone() });
    entries
}

fn draw_lines(entries: &[JournalEntry], mode: DisplayMode) -> String {
    let mut written = Vec::new();
    let mut reporter = LineReporter::new(&mut written, Screen::default(), mode);
    entries.iter().for_each(|entry| reporter.report_entry(entry).unwrap());
    String::from_utf8(written).unwrap()
}

const ONE_RUN: &str = "2 findings stay dismissed, as you decided in prd-k3f9: F1 F2 (set them to open in the tracker to \
                       change that)";

#[test]
fn one_line_names_the_findings_and_the_run_in_which_the_user_decided() {
    let entries = journal_with_dismissals(&["prd-k3f9"]);
    for mode in [DisplayMode::Streaming, DisplayMode::Summary] {
        let drawn = draw_lines(&entries, mode);
        let kept_lines: Vec<&str> = drawn.lines().filter(|line| line.contains("dismissed, as you")).collect();
        assert_eq!(kept_lines.iter().map(|line| line.trim()).collect::<Vec<_>>(), [ONE_RUN], "{drawn}");
        assert!(!drawn.contains("a finding that the user knows"), "{drawn}");
    }
    let drawn = draw_lines(&journal_with_dismissals(&["prd-k3f9", "prd-x2y1"]), DisplayMode::Streaming);
    assert!(drawn.contains("as you decided in prd-k3f9, prd-x2y1: F1 F2 ("), "{drawn}");
}

#[test]
fn the_verbose_log_has_the_findings_and_the_line() {
    let mut written = Vec::new();
    let mut reporter = VerboseReporter::new(&mut written, Screen::default());
    journal_with_dismissals(&["prd-k3f9"]).iter().for_each(|entry| reporter.report_entry(entry).unwrap());
    let drawn = String::from_utf8(written).unwrap();
    assert!(drawn.contains(ONE_RUN) && drawn.contains("a finding that the user knows"), "{drawn}");
}
