//! Exports of findings: a page, a comment, SARIF. The tests that no text of an agent breaks out of them are in `inert.rs`.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::Value;
use tribunal_core::{
    event::{Entry, Event},
    finding::{Evidence, Finding, Severity, Status},
    ids::FindingId,
    view::RunView,
};
use tribunal_report::{Export, Rulings, tables::Standing};
use tribunal_testkit::{SAMPLE_JOURNAL, challenged, entries};

/// The README beside the file says where it came from.
const SCHEMA: &str = include_str!("../fixtures/sarif-schema-2.1.0.json");

#[derive(Clone, Copy, Debug)]
enum Form {
    Page,
    Comment,
    Sarif,
}

fn recorded() -> Vec<Entry> {
    entries(SAMPLE_JOURNAL)
}

fn some(journal: &[Entry], form: Form, wanted: impl Fn(&Finding) -> bool) -> String {
    let (view, rulings) = (RunView::of(journal), Rulings::of(journal));
    let findings = view.findings.values().filter(|finding| wanted(finding)).collect();
    let export = Export { standing: Standing { view: &view, live: false }, rulings: &rulings, findings };
    match form {
        Form::Page => export.markdown(),
        Form::Comment => export.comment(),
        Form::Sarif => export.sarif("0.1.0"),
    }
}

fn all(journal: &[Entry], form: Form) -> String {
    some(journal, form, |_| true)
}

/// The journal with every finding changed when it is raised.
fn with(mut journal: Vec<Entry>, change: impl Fn(&mut Finding)) -> Vec<Entry> {
    for entry in &mut journal {
        if let Event::FindingRaised { finding } = &mut entry.event {
            change(finding);
        }
    }
    journal
}

#[test]
fn a_page_has_every_finding_with_its_evidence_and_what_became_of_it() {
    insta::assert_snapshot!("page_of_a_resolved_run", all(&recorded(), Form::Page));
    insta::assert_snapshot!("page_of_a_challenged_round", all(&challenged(), Form::Page));
}

#[test]
fn a_comment_shows_what_is_open_and_folds_the_rest() {
    insta::assert_snapshot!("comment_on_a_resolved_run", all(&recorded(), Form::Comment));
    insta::assert_snapshot!("comment_on_a_challenged_round", all(&challenged(), Form::Comment));
}

#[test]
fn a_sarif_log_has_a_result_for_every_finding() {
    insta::assert_snapshot!("sarif_of_a_resolved_run", all(&recorded(), Form::Sarif));
    insta::assert_snapshot!("sarif_of_a_challenged_round", all(&challenged(), Form::Sarif));
}

#[test]
fn whoever_asks_for_a_part_is_told_that_it_is_one() {
    let blocked = |finding: &Finding| finding.status.word() == "blocked";
    let comment = some(&challenged(), Form::Comment, blocked);
    assert!(comment.contains("\n\nShown here: 1 of the run's 10 findings.\n\n| | Severity |"), "{comment}");
    assert!(comment.contains("\n| F5 | ") && comment.matches("\n| F").count() == 1, "{comment}");
    let page = some(&challenged(), Form::Page, blocked);
    assert!(page.contains("- On this page: 1 of the run's 10 findings\n"), "{page}");
    assert_eq!(page.matches("\n### ").count(), 1, "{page}");
    let page = some(&challenged(), Form::Page, |_| false);
    assert!(page.ends_with("\n\nThere are no such findings.\n"), "{page}");
    assert_eq!(results(&some(&challenged(), Form::Sarif, blocked)).len(), 1);
}

#[test]
fn lines_of_code_stand_as_they_are_between_fences() {
    let text = "if a {\n    ```\n}";
    let page = all(&with(challenged(), |it| it.evidence = Evidence::Quote { text: text.into() }), Form::Page);
    assert!(page.contains("\n\n````text\nif a {\n    ```\n}\n````\n\n- "), "{page}");
}

/// A journal with the given number of findings, of all severities and statuses in turn, each with a long text.
fn crowd(number: u32) -> Vec<Entry> {
    let recorded = recorded();
    let raised = |entry: &&Entry| matches!(entry.event, Event::FindingRaised { .. });
    let model = recorded.iter().find(raised).unwrap().clone();
    let mut journal = vec![recorded[0].clone()];
    for id in 1..=number {
        let mut entry = model.clone();
        if let Event::FindingRaised { finding } = &mut entry.event {
            finding.id = FindingId(id);
            finding.severity = Severity::ALL[id as usize % 4];
            finding.status = if id % 3 == 0 { Status::Fixed } else { Status::Open };
            finding.description = "@all 審査 <b> ".repeat(40);
        }
        journal.push(entry);
    }
    journal
}

#[test]
fn a_comment_that_would_be_too_long_leaves_out_the_least_severe_and_counts_them() {
    let journal = crowd(600);
    let comment = all(&journal, Form::Comment);
    assert!(comment.chars().count() <= 65_000, "{}", comment.chars().count());
    assert!(comment.chars().count() > 60_000, "as much as fits: {}", comment.chars().count());
    let row = |id: u32| comment.contains(&format!("\n| F{id} | "));
    let (kept, left): (Vec<u32>, Vec<u32>) = (1..=600).partition(|id| row(*id));
    let severity = |id: &u32| Severity::ALL[*id as usize % 4];
    assert!(!kept.is_empty() && kept.iter().map(severity).max() <= left.iter().map(severity).min());
    let end = format!(
        "\n{} findings left out, of critical severity at most: the comment would be too long. \
         <code>tribunal findings prd-86kc</code> shows all of them.\n",
        left.len()
    );
    assert!(comment.ends_with(&end), "{}", &comment[comment.len() - 300..]);
    assert!(!all(&crowd(20), Form::Comment).contains("left out"));
}

fn results(sarif: &str) -> Vec<Value> {
    let log: Value = serde_json::from_str(sarif).unwrap();
    log["runs"][0]["results"].as_array().unwrap().clone()
}

/// The errors that the official schema reports for a log.
fn objections(log: &Value) -> Vec<String> {
    // The schema's pattern for languages, which we do not use, has a bracket too many. Our validator rejects that.
    let schema = SCHEMA.replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}?$");
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    validator.iter_errors(log).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn every_sarif_log_fits_the_official_schema() {
    let journals = std::iter::once(entries(SAMPLE_JOURNAL));
    for journal in journals.chain([challenged(), crowd(30)]) {
        for end in [1, journal.len() / 2, journal.len()] {
            let log = serde_json::from_str(&all(&journal[..end], Form::Sarif)).unwrap();
            assert_eq!(objections(&log), Vec::<String>::new());
        }
    }
}

#[test]
fn the_official_schema_objects_to_what_is_no_sarif() {
    let log: Value = serde_json::from_str(&all(&recorded(), Form::Sarif)).unwrap();
    for (path, wrong) in [
        ("/version", Value::from("2.0")),
        ("/runs/0/results/0/level", "high".into()),
        ("/runs/0/results/0/message", Value::Null),
        ("/runs/0/results/0/locations/0/physicalLocation/region/startLine", 0.into()),
        ("/runs/0/results/0/locations/0/physicalLocation/artifactLocation/uri", "a b".into()),
        ("/runs/0/invocations/0/startTimeUtc", "yesterday".into()),
    ] {
        let mut broken = log.clone();
        *broken.pointer_mut(path).unwrap() = wrong;
        assert!(!objections(&broken).is_empty(), "{path}");
    }
}

#[test]
fn a_result_s_level_comes_from_its_severity_and_a_fixed_one_passes() {
    for (severity, level) in Severity::ALL.into_iter().zip(["error", "error", "warning", "note"]) {
        let journal = &with(recorded(), |it| it.severity = severity);
        let raised =
            journal.iter().position(|entry| matches!(entry.event, Event::FindingRaised { .. })).unwrap();
        let result = &results(&all(&journal[..=raised], Form::Sarif))[0];
        assert_eq!((&result["level"], &result["kind"]), (&level.into(), &"fail".into()));
        assert_eq!(result["suppressions"], Value::Array(Vec::new()));
    }
    for result in results(&all(&recorded(), Form::Sarif)) {
        let fixed = result["properties"]["status"] == "fixed";
        assert_eq!((result["kind"] == "pass", result["level"] == "none"), (fixed, fixed), "{result}");
    }
}

#[test]
fn what_is_dismissed_or_deferred_is_suppressed_with_the_reason() {
    let results = results(&all(&challenged(), Form::Sarif));
    let suppressed = results.iter().filter(|result| result["suppressions"] != Value::Array(Vec::new()));
    let why = |result: &Value| {
        let why =
            result["suppressions"][0]["justification"].as_str().unwrap().chars().take(68).collect::<String>();
        format!("{}: {why}", result["properties"]["finding"].as_str().unwrap())
    };
    insta::assert_snapshot!(suppressed.map(why).collect::<Vec<_>>().join("\n"), @r"
    F2: dismissed (invalid): 2 of 3 challengers: the line under Out of Scope
    F10: dismissed (ungrounded): the quote does not stand in the text
    ");
}

fn fingerprints(journal: &[Entry]) -> Vec<String> {
    let print =
        |result: &Value| result["partialFingerprints"]["tribunalEvidence/v1"].as_str().unwrap().to_string();
    results(&all(journal, Form::Sarif)).iter().map(print).collect()
}

#[test]
fn a_fingerprint_outlives_lines_rounds_and_words_but_not_the_evidence() {
    let before = fingerprints(&recorded());
    let moved = with(recorded(), |it| {
        it.description = "in other words".into();
        it.category = format!(" {}", it.category.to_uppercase());
        it.severity = Severity::Low;
        it.raisers.clear();
        if let Some(place) = &mut it.place {
            (place.line, place.end_line) = (place.line + 40, place.end_line + 41);
        }
        match &mut it.evidence {
            Evidence::Quote { text } => *text = text.replace(' ', "\n  ").to_uppercase(),
            Evidence::Absence { terms, .. } => terms.reverse(),
        }
    });
    assert_eq!(fingerprints(&moved), before);
    let other = with(recorded(), |it| match &mut it.evidence {
        Evidence::Quote { text } => text.push('x'),
        Evidence::Absence { heading, .. } => heading.push('x'),
    });
    let categories = with(recorded(), |it| it.category.push('x'));
    for changed in [other, categories] {
        assert!(fingerprints(&changed).iter().zip(&before).all(|(after, before)| after != before));
    }
    let mut different = before.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), before.len());
}

#[test]
fn a_place_is_a_relative_reference_below_the_project_or_none() {
    for (file, uri) in [
        ("docs/prd.md", Some("docs/prd.md")),
        ("./docs/my plan (1).md", Some("docs/my%20plan%20%281%29.md")),
        ("c:/naïve?.md", Some("c%3A/na%C3%AFve%3F.md")),
        ("a\\b\n%41.md", Some("a%5Cb%0A%2541.md")),
        ("../secret", None),
        ("/etc/passwd", None),
        ("//host/share", None),
        ("", None),
    ] {
        let journal = with(challenged(), |it| {
            if let Some(place) = &mut it.place {
                (place.file, place.line, place.end_line) = (file.into(), 0, 0);
            }
        });
        let log = all(&journal, Form::Sarif);
        assert_eq!(objections(&serde_json::from_str(&log).unwrap()), Vec::<String>::new());
        let at = &results(&log)[0]["locations"][0]["physicalLocation"];
        assert_eq!(at["artifactLocation"]["uri"].as_str(), uri, "{file}");
        let line = uri.map(|_| 1);
        assert_eq!((at["region"]["startLine"].as_u64(), at["region"]["endLine"].as_u64()), (line, line));
    }
}

#[test]
fn a_finding_whose_place_is_not_known_stands_at_the_file_under_review() {
    let ungrounded = |finding: &Finding| finding.place.is_none();
    let results = results(&some(&challenged(), Form::Sarif, ungrounded));
    let at = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(at["artifactLocation"]["uri"], "_bmad-output/planning-artifacts/prd.md");
    assert_eq!(at.get("region"), None);
}

#[test]
fn a_message_has_text_and_no_link() {
    for (text, said) in [
        ("see [here](https://a.example)\r\nand there", "see [here] (https://a.example)\nand there"),
        ("\x1b[2J", "\\u{1b}[2J"),
        (" \n", "It has no description."),
    ] {
        let journal = with(challenged(), |it| it.description = text.into());
        let results = results(&all(&journal, Form::Sarif));
        assert_eq!(results[0]["message"]["text"], said);
    }
}
