//! Exports of findings: a page, a comment, SARIF. The tests that no text of an agent breaks out of them are in `inert.rs`.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::Value;
use tribunal_engine::ids::FindingId;
use tribunal_report::{FindingsExport, RulingIndex, tables::RunStanding};
use tribunal_testkit::{SAMPLE_JOURNAL, challenged_journal, parse_entries};
use tribunal_workflows::{
    findings::finding::{Evidence, Finding, FindingStatus, Severity},
    review::event::ReviewEvent,
    runs::{
        types::{JournalEntry, find_event},
        view::RunView,
    },
};

use crate::events::review_event_mut;

/// The README beside the file says where it came from.
const SARIF_SCHEMA: &str = include_str!("../fixtures/sarif-schema-2.1.0.json");

#[derive(Clone, Copy, Debug)]
enum ExportFormat {
    Page,
    Comment,
    Sarif,
}

fn sample_journal() -> Vec<JournalEntry> {
    parse_entries(SAMPLE_JOURNAL)
}

fn export_matching(
    journal: &[JournalEntry],
    export_format: ExportFormat,
    is_wanted: impl Fn(&Finding) -> bool,
) -> String {
    let (run_view, rulings) = (RunView::from_entries(journal), RulingIndex::from_entries(journal));
    let wanted_findings = run_view.all_findings().filter(|finding| is_wanted(finding)).collect();
    let export = FindingsExport {
        run_standing: RunStanding { run_view: &run_view, is_live: false },
        rulings: &rulings,
        findings: wanted_findings,
    };
    match export_format {
        ExportFormat::Page => export.to_markdown(),
        ExportFormat::Comment => export.to_comment(),
        ExportFormat::Sarif => export.to_sarif("0.1.0"),
    }
}

fn export_all(journal: &[JournalEntry], export_format: ExportFormat) -> String {
    export_matching(journal, export_format, |_| true)
}

/// The journal with every finding changed when it is raised.
fn change_findings(mut journal: Vec<JournalEntry>, change_finding: impl Fn(&mut Finding)) -> Vec<JournalEntry> {
    for journal_entry in &mut journal {
        if let Some(ReviewEvent::FindingRaised { finding }) = review_event_mut(&mut journal_entry.event) {
            change_finding(finding);
        }
    }
    journal
}

#[test]
fn a_page_has_every_finding_with_its_evidence_and_what_became_of_it() {
    insta::assert_snapshot!("page_of_a_resolved_run", export_all(&sample_journal(), ExportFormat::Page));
    insta::assert_snapshot!("page_of_a_challenged_round", export_all(&challenged_journal(), ExportFormat::Page));
}

#[test]
fn a_comment_shows_what_is_open_and_folds_the_rest() {
    insta::assert_snapshot!("comment_on_a_resolved_run", export_all(&sample_journal(), ExportFormat::Comment));
    insta::assert_snapshot!("comment_on_a_challenged_round", export_all(&challenged_journal(), ExportFormat::Comment));
}

#[test]
fn a_sarif_log_has_a_result_for_every_finding() {
    insta::assert_snapshot!("sarif_of_a_resolved_run", export_all(&sample_journal(), ExportFormat::Sarif));
    insta::assert_snapshot!("sarif_of_a_challenged_round", export_all(&challenged_journal(), ExportFormat::Sarif));
}

#[test]
fn an_export_of_selected_findings_says_so() {
    let is_blocked = |finding: &Finding| finding.status.as_str() == "blocked";
    let comment_text = export_matching(&challenged_journal(), ExportFormat::Comment, is_blocked);
    assert!(comment_text.contains("\n\nShown here: 1 of 10 findings.\n\n| | Severity |"), "{comment_text}");
    assert!(comment_text.contains("\n| F5 | ") && comment_text.matches("\n| F").count() == 1, "{comment_text}");
    let page_text = export_matching(&challenged_journal(), ExportFormat::Page, is_blocked);
    assert!(page_text.contains("- Shown here: 1 of 10 findings\n"), "{page_text}");
    assert_eq!(page_text.matches("\n### ").count(), 1, "{page_text}");
    let page_text = export_matching(&challenged_journal(), ExportFormat::Page, |_| false);
    assert!(page_text.ends_with("\n\nNo matching findings.\n"), "{page_text}");
    assert_eq!(parse_results(&export_matching(&challenged_journal(), ExportFormat::Sarif, is_blocked)).len(), 1);
}

#[test]
fn lines_of_code_are_kept_between_fences() {
    let code_text = "if a {\n    ```\n}";
    let page_text = export_all(
        &change_findings(challenged_journal(), |changed_finding| {
            changed_finding.evidence = Evidence::Quote { text: code_text.into() }
        }),
        ExportFormat::Page,
    );
    assert!(page_text.contains("\n\n````text\nif a {\n    ```\n}\n````\n\n- "), "{page_text}");
}

/// A journal with the given number of findings, of all severities and statuses in turn, each with a long text.
fn journal_with_findings(finding_count: u32) -> Vec<JournalEntry> {
    let sample = sample_journal();
    let is_raised = |entry: &&JournalEntry| {
        matches!(find_event::<ReviewEvent>(&entry.event), Some(ReviewEvent::FindingRaised { .. }))
    };
    let template_entry = sample.iter().find(is_raised).unwrap().clone();
    let mut journal = vec![sample[0].clone()];
    for finding_number in 1..=finding_count {
        let mut entry = template_entry.clone();
        if let Some(ReviewEvent::FindingRaised { finding }) = review_event_mut(&mut entry.event) {
            finding.id = FindingId(finding_number);
            finding.severity = Severity::ALL[finding_number as usize % 4];
            finding.status = if finding_number % 3 == 0 { FindingStatus::Fixed } else { FindingStatus::Open };
            finding.description = "@all 審査 <b> ".repeat(40);
        }
        journal.push(entry);
    }
    journal
}

#[test]
fn a_comment_that_would_be_too_long_leaves_out_the_least_severe_and_counts_them() {
    let journal = journal_with_findings(600);
    let comment_text = export_all(&journal, ExportFormat::Comment);
    assert!(comment_text.chars().count() <= 65_000, "{}", comment_text.chars().count());
    assert!(comment_text.chars().count() > 60_000, "as much as fits: {}", comment_text.chars().count());
    let has_row = |finding_number: u32| comment_text.contains(&format!("\n| F{finding_number} | "));
    let (kept_ids, omitted_ids): (Vec<u32>, Vec<u32>) = (1..=600).partition(|finding_number| has_row(*finding_number));
    let severity_of = |finding_number: &u32| Severity::ALL[*finding_number as usize % 4];
    assert!(
        !kept_ids.is_empty() && kept_ids.iter().map(severity_of).max() <= omitted_ids.iter().map(severity_of).min()
    );
    let expected_end = format!(
        "\n{} findings of critical severity or lower omitted, because the comment would be too long. \
         Run <code>tribunal findings prd-86kc</code> to see all of them.\n",
        omitted_ids.len()
    );
    assert!(comment_text.ends_with(&expected_end), "{}", &comment_text[comment_text.len() - 300..]);
    assert!(!export_all(&journal_with_findings(20), ExportFormat::Comment).contains("left out"));
}

fn parse_results(sarif_text: &str) -> Vec<Value> {
    let sarif_log: Value = serde_json::from_str(sarif_text).unwrap();
    sarif_log["runs"][0]["results"].as_array().unwrap().clone()
}

/// The errors that the official schema reports for a log.
fn schema_errors(sarif_log: &Value) -> Vec<String> {
    // The schema's pattern for languages, which we do not use, has a bracket too many. Our validator rejects that.
    let schema = SARIF_SCHEMA.replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}?$");
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    validator.iter_errors(sarif_log).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn every_sarif_log_fits_the_official_schema() {
    let journals = std::iter::once(parse_entries(SAMPLE_JOURNAL));
    for journal in journals.chain([challenged_journal(), journal_with_findings(30)]) {
        for entry_count in [1, journal.len() / 2, journal.len()] {
            let sarif_log = serde_json::from_str(&export_all(&journal[..entry_count], ExportFormat::Sarif)).unwrap();
            assert_eq!(schema_errors(&sarif_log), Vec::<String>::new());
        }
    }
}

#[test]
fn the_official_schema_rejects_broken_logs() {
    let sarif_log: Value = serde_json::from_str(&export_all(&sample_journal(), ExportFormat::Sarif)).unwrap();
    for (json_path, wrong_value) in [
        ("/version", Value::from("2.0")),
        ("/runs/0/results/0/level", "high".into()),
        ("/runs/0/results/0/message", Value::Null),
        ("/runs/0/results/0/locations/0/physicalLocation/region/startLine", 0.into()),
        ("/runs/0/results/0/locations/0/physicalLocation/artifactLocation/uri", "a b".into()),
        ("/runs/0/invocations/0/startTimeUtc", "yesterday".into()),
    ] {
        let mut broken_log = sarif_log.clone();
        *broken_log.pointer_mut(json_path).unwrap() = wrong_value;
        assert!(!schema_errors(&broken_log).is_empty(), "{json_path}");
    }
}

#[test]
fn the_level_of_a_result_comes_from_its_severity_and_a_fixed_one_passes() {
    for (severity, expected_level) in Severity::ALL.into_iter().zip(["error", "error", "warning", "note"]) {
        let journal = &change_findings(sample_journal(), |changed_finding| changed_finding.severity = severity);
        let raised_index = journal
            .iter()
            .position(|entry| {
                matches!(find_event::<ReviewEvent>(&entry.event), Some(ReviewEvent::FindingRaised { .. }))
            })
            .unwrap();
        let sarif_result = &parse_results(&export_all(&journal[..=raised_index], ExportFormat::Sarif))[0];
        assert_eq!((&sarif_result["level"], &sarif_result["kind"]), (&expected_level.into(), &"fail".into()));
        assert_eq!(sarif_result["suppressions"], Value::Array(Vec::new()));
    }
    for sarif_result in parse_results(&export_all(&sample_journal(), ExportFormat::Sarif)) {
        let is_fixed = sarif_result["properties"]["status"] == "fixed";
        assert_eq!(
            (sarif_result["kind"] == "pass", sarif_result["level"] == "none"),
            (is_fixed, is_fixed),
            "{sarif_result}"
        );
    }
}

#[test]
fn dismissed_and_deferred_findings_are_suppressed_with_the_reason() {
    let sarif_results = parse_results(&export_all(&challenged_journal(), ExportFormat::Sarif));
    let suppressed =
        sarif_results.iter().filter(|sarif_result| sarif_result["suppressions"] != Value::Array(Vec::new()));
    let render_suppression = |sarif_result: &Value| {
        let justification =
            sarif_result["suppressions"][0]["justification"].as_str().unwrap().chars().take(68).collect::<String>();
        format!("{}: {justification}", sarif_result["properties"]["finding"].as_str().unwrap())
    };
    insta::assert_snapshot!(suppressed.map(render_suppression).collect::<Vec<_>>().join("\n"), @"
    F2: dismissed (invalid): 2 of 3 challengers (first, third): the line und
    F10: dismissed (evidence not found): quote not found in prd.md
    ");
}

fn export_fingerprints(journal: &[JournalEntry]) -> Vec<String> {
    let fingerprint_of =
        |sarif_result: &Value| sarif_result["partialFingerprints"]["tribunalEvidence/v1"].as_str().unwrap().to_string();
    parse_results(&export_all(journal, ExportFormat::Sarif)).iter().map(fingerprint_of).collect()
}

#[test]
fn a_fingerprint_depends_on_the_evidence_but_not_on_lines_rounds_or_wording() {
    let original = export_fingerprints(&sample_journal());
    let moved_journal = change_findings(sample_journal(), |changed_finding| {
        changed_finding.description = "in other words".into();
        changed_finding.category = format!(" {}", changed_finding.category.to_uppercase());
        changed_finding.severity = Severity::Low;
        changed_finding.raisers.clear();
        if let Some(place) = &mut changed_finding.place {
            (place.line, place.end_line) = (place.line + 40, place.end_line + 41);
        }
        match &mut changed_finding.evidence {
            Evidence::Quote { text: quoted_text } => *quoted_text = quoted_text.replace(' ', "\n  ").to_uppercase(),
            Evidence::Absence { terms, .. } => terms.reverse(),
            Evidence::Check { output, .. } => output.push('x'),
        }
    });
    assert_eq!(export_fingerprints(&moved_journal), original);
    let other_evidence = change_findings(sample_journal(), |changed_finding| match &mut changed_finding.evidence {
        Evidence::Quote { text: quoted_text } => quoted_text.push('x'),
        Evidence::Absence { heading, .. } => heading.push('x'),
        Evidence::Check { command, .. } => command.push('x'),
    });
    let other_categories = change_findings(sample_journal(), |changed_finding| changed_finding.category.push('x'));
    for changed_journal in [other_evidence, other_categories] {
        assert!(export_fingerprints(&changed_journal).iter().zip(&original).all(|(after, before)| after != before));
    }
    let mut unique_prints = original.clone();
    unique_prints.sort();
    unique_prints.dedup();
    assert_eq!(unique_prints.len(), original.len());
}

#[test]
fn a_place_is_a_relative_reference_below_the_project_or_none() {
    for (file_path, expected_uri) in [
        ("docs/prd.md", Some("docs/prd.md")),
        ("./docs/my plan (1).md", Some("docs/my%20plan%20%281%29.md")),
        ("c:/naïve?.md", Some("c%3A/na%C3%AFve%3F.md")),
        ("a\\b\n%41.md", Some("a%5Cb%0A%2541.md")),
        ("../secret", None),
        ("/etc/passwd", None),
        ("//host/share", None),
        ("", None),
    ] {
        let journal = change_findings(challenged_journal(), |changed_finding| {
            if let Some(place) = &mut changed_finding.place {
                (place.file, place.line, place.end_line) = (file_path.into(), 0, 0);
            }
        });
        let sarif_text = export_all(&journal, ExportFormat::Sarif);
        assert_eq!(schema_errors(&serde_json::from_str(&sarif_text).unwrap()), Vec::<String>::new());
        let sarif_location = &parse_results(&sarif_text)[0]["locations"][0]["physicalLocation"];
        assert_eq!(sarif_location["artifactLocation"]["uri"].as_str(), expected_uri, "{file_path}");
        let expected_line = expected_uri.map(|_| 1);
        assert_eq!(
            (sarif_location["region"]["startLine"].as_u64(), sarif_location["region"]["endLine"].as_u64()),
            (expected_line, expected_line)
        );
    }
}

#[test]
fn a_finding_without_a_place_is_located_at_the_file_under_review() {
    let has_no_place = |finding: &Finding| finding.place.is_none();
    let sarif_results = parse_results(&export_matching(&challenged_journal(), ExportFormat::Sarif, has_no_place));
    let sarif_location = &sarif_results[0]["locations"][0]["physicalLocation"];
    assert_eq!(sarif_location["artifactLocation"]["uri"], "_bmad-output/planning-artifacts/prd.md");
    assert_eq!(sarif_location.get("region"), None);
}

#[test]
fn a_message_has_text_and_no_link() {
    for (description, expected_text) in [
        ("see [here](https://a.example)\r\nand there", "see [here] (https://a.example)\nand there"),
        ("\x1b[2J", "\\u{1b}[2J"),
        (" \n", "No description."),
    ] {
        let journal =
            change_findings(challenged_journal(), |changed_finding| changed_finding.description = description.into());
        let sarif_results = parse_results(&export_all(&journal, ExportFormat::Sarif));
        assert_eq!(sarif_results[0]["message"]["text"], expected_text);
    }
}
