//! Exports for CI: JUnit XML and GitHub workflow commands, with harmless and with hostile text.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use tribunal_engine::reason::{RunOutcome, RunReason};
use tribunal_report::{FindingsExport, RulingIndex, tables::RunStanding};
use tribunal_testkit::{SAMPLE_JOURNAL, challenged_journal, parse_entries};
use tribunal_workflows::{
    findings::finding::{Evidence, Finding, FindingPlace, FindingStatus, Severity},
    review::event::ReviewEvent,
    runs::{
        types::{JournalEntry, RunEvent},
        view::RunView,
    },
};

use crate::events::review_event_mut;

fn with_export<T>(journal: &[JournalEntry], use_export: impl FnOnce(&FindingsExport<'_>) -> T) -> T {
    let (run_view, rulings) = (RunView::from_entries(journal), RulingIndex::from_entries(journal));
    use_export(&FindingsExport {
        run_standing: RunStanding { run_view: &run_view, is_live: false },
        rulings: &rulings,
        findings: run_view.all_findings().collect(),
    })
}

fn junit_of(journal: &[JournalEntry]) -> String {
    with_export(journal, |export| export.to_junit())
}

fn commands_of(journal: &[JournalEntry]) -> String {
    with_export(journal, |export| export.to_workflow_commands())
}

fn change_findings(mut journal: Vec<JournalEntry>, change_finding: impl Fn(&mut Finding)) -> Vec<JournalEntry> {
    for journal_entry in &mut journal {
        if let Some(ReviewEvent::FindingRaised { finding }) = review_event_mut(&mut journal_entry.event) {
            change_finding(finding);
        }
    }
    journal
}

/// One element of an XML document: its name and its attributes. Elements that only end others have no attributes.
#[derive(Debug, PartialEq, Eq)]
struct XmlTag {
    name: String,
    attributes: Vec<(String, String)>,
}

/// Reads XML strictly and panics if it is not well-formed. Text between tags is decoded and returned as well.
fn parse_xml(document: &str) -> (Vec<XmlTag>, String) {
    let body = document.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    let is_allowed = |character: char| {
        matches!(character, '\n' | '\t') || !(character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}'))
    };
    assert!(body.chars().all(is_allowed), "{body:?}");
    let (mut tags, mut open_names, mut all_text) = (Vec::new(), Vec::new(), String::new());
    let mut rest = body;
    while let Some(tag_start) = rest.find('<') {
        all_text.push_str(&decode_xml(&rest[..tag_start]));
        let tag_end = rest.find('>').unwrap();
        let tag_text = &rest[tag_start + 1..tag_end];
        rest = &rest[tag_end + 1..];
        if let Some(closed_name) = tag_text.strip_prefix('/') {
            assert_eq!(open_names.pop().as_deref(), Some(closed_name));
            continue;
        }
        let (tag_text, is_empty) = tag_text.strip_suffix('/').map_or((tag_text, false), |inner| (inner, true));
        let (name, mut attribute_text) = tag_text.split_once(' ').unwrap_or((tag_text, ""));
        assert!(name.chars().all(|character| character.is_ascii_lowercase()), "{name}");
        let mut attributes = Vec::new();
        while let Some((attribute_name, after_name)) = attribute_text.trim_start().split_once("=\"") {
            let (value, after_value) = after_name.split_once('"').unwrap();
            attributes.push((attribute_name.to_string(), decode_xml(value)));
            attribute_text = after_value;
        }
        assert_eq!(attribute_text.trim(), "", "{tag_text}");
        if !is_empty {
            open_names.push(name.to_string());
        }
        tags.push(XmlTag { name: name.to_string(), attributes });
    }
    assert!(open_names.is_empty() && rest.trim().is_empty(), "{open_names:?} {rest:?}");
    (tags, all_text)
}

fn decode_xml(encoded: &str) -> String {
    let mut decoded = encoded.to_string();
    for (entity, character) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'")] {
        decoded = decoded.replace(entity, character);
    }
    let bare_ampersands = encoded.matches('&').count() - encoded.matches("&amp;").count();
    let entity_count: usize =
        ["&lt;", "&gt;", "&quot;", "&apos;"].iter().map(|entity| encoded.matches(entity).count()).sum();
    assert_eq!(bare_ampersands, entity_count, "{encoded}");
    decoded.replace("&amp;", "&")
}

impl XmlTag {
    fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(attribute_name, _)| attribute_name == name);
        found.map_or_else(|| panic!("{name}: {self:?}"), |(_, value)| value.as_str())
    }
}

#[test]
fn a_junit_report_has_a_test_case_for_every_finding_and_counts_them() {
    for journal in [parse_entries(SAMPLE_JOURNAL), challenged_journal()] {
        let run_view = RunView::from_entries(&journal);
        let (tags, all_text) = parse_xml(&junit_of(&journal));
        let count_tags = |name: &str| tags.iter().filter(|tag| tag.name == name).count();
        let count_statuses = |is_wanted: fn(&FindingStatus) -> bool| {
            run_view.all_findings().filter(|finding| is_wanted(&finding.status)).count()
        };
        assert_eq!(count_tags("testcase"), run_view.all_findings().count() + 1);
        assert_eq!(count_tags("failure"), count_statuses(FindingStatus::is_unresolved));
        let dismissed_count = count_statuses(|status| matches!(status, FindingStatus::Dismissed { .. }));
        assert!(dismissed_count > 0 && count_tags("skipped") >= dismissed_count);
        let suite = tags.iter().find(|tag| tag.name == "testsuite").unwrap();
        for (attribute, tag_name) in
            [("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")]
        {
            assert_eq!(suite.attribute(attribute), count_tags(tag_name).to_string(), "{attribute}");
        }
        for finding in run_view.all_findings().filter(|finding| finding.status.is_unresolved()) {
            assert!(all_text.contains(&finding.description), "{}", finding.description);
        }
        let placed_finding = run_view.all_findings().find(|finding| finding.place.is_some()).unwrap();
        let place = placed_finding.place.as_ref().unwrap();
        let starts_with_id = |tag: &&XmlTag| {
            tag.name == "testcase"
                && tag.attribute("name").starts_with(&format!("{} {}: ", placed_finding.id, placed_finding.severity))
        };
        let test_case = tags.iter().find(starts_with_id).unwrap();
        assert_eq!(
            (test_case.attribute("file"), test_case.attribute("classname"), test_case.attribute("line")),
            (place.file.as_str(), place.file.as_str(), place.line.to_string().as_str())
        );
    }
}

#[test]
fn a_review_that_did_not_come_to_its_end_is_an_error_and_not_a_success() {
    let with_ending = |outcome: Option<RunOutcome>, reason: RunReason| {
        let mut journal = parse_entries(SAMPLE_JOURNAL);
        let Some(RunEvent::RunFinished(summary)) = journal.last_mut().map(|entry| &mut entry.event) else {
            panic!("the sample has an ending")
        };
        (summary.outcome, summary.reason, summary.detail) = (outcome, reason, String::new());
        junit_of(&journal)
    };
    for (outcome, reason, has_error) in [
        (Some(RunOutcome::Resolved), RunReason::GoalMet, false),
        (Some(RunOutcome::Waiting), RunReason::ReviewOnly, false),
        (Some(RunOutcome::Waiting), RunReason::Blocked, true),
        (Some(RunOutcome::Halted), RunReason::Cost, true),
        (Some(RunOutcome::Failed), RunReason::Environment, true),
        (None, RunReason::Stopped, true),
    ] {
        let (tags, _) = parse_xml(&with_ending(outcome, reason));
        assert_eq!(tags.iter().any(|tag| tag.name == "error"), has_error, "{reason}");
    }
    let crashed_journal: Vec<JournalEntry> = parse_entries(SAMPLE_JOURNAL).into_iter().take(5).collect();
    let (tags, _) = parse_xml(&junit_of(&crashed_journal));
    assert_eq!(tags.iter().find(|tag| tag.name == "error").unwrap().attribute("message"), "crashed");
}

/// A command as GitHub's runner reads it from a line: name, properties and message.
fn parse_command(line: &str) -> (String, Vec<(String, String)>, String) {
    let decode_data = |text: &str| text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%");
    let after_prefix = line.strip_prefix("::").unwrap_or_else(|| panic!("not a command: {line}"));
    let (head, message) = after_prefix.split_once("::").unwrap();
    let (name, property_text) = head.split_once(' ').unwrap();
    let decode_property = |pair: &str| {
        let (property_name, value) = pair.split_once('=').unwrap();
        (property_name.to_string(), decode_data(&value.replace("%3A", ":").replace("%2C", ",")))
    };
    (name.to_string(), property_text.split(',').map(decode_property).collect(), decode_data(message))
}

#[test]
fn every_finding_becomes_one_annotation_the_most_severe_first() {
    let journal = challenged_journal();
    let run_view = RunView::from_entries(&journal);
    let commands: Vec<_> = commands_of(&journal).lines().map(parse_command).collect();
    assert_eq!(commands.len(), run_view.all_findings().count());
    let mut expected: Vec<&Finding> = run_view.all_findings().collect();
    expected.sort_by_key(|finding| (finding.severity, finding.id));
    for ((name, properties, message), finding) in commands.iter().zip(expected) {
        let expected_name = match finding.severity {
            Severity::Critical | Severity::High => "error",
            Severity::Medium => "warning",
            Severity::Low => "notice",
        };
        assert_eq!(name, expected_name, "{}", finding.id);
        let (title_name, title) = properties.last().unwrap();
        assert_eq!(title_name, "title");
        assert!(title.starts_with(&format!("Tribunal {}: {}", finding.id, finding.severity)), "{title}");
        assert!(message.starts_with(&finding.description), "{message}");
        if let Some(place) = &finding.place {
            assert_eq!(properties[0], ("file".to_string(), place.file.clone()));
            assert_eq!(properties[1], ("line".to_string(), place.line.to_string()));
        }
    }
}

#[test]
fn no_text_of_an_agent_becomes_markup_or_a_command() {
    const HOSTILE_TEXTS: &[&str] = &[
        "\n::set-env name=PATH::/tmp",
        "\r\n::add-mask::x\r",
        "%0A::stop-commands::x",
        "a::b,line=1,title=x",
        "##[error]x",
        "]]></failure></testcase><testcase name=\"x\">",
        "\"/><system-out>x</system-out>",
        "<!-- & &lt; <![CDATA[ -->",
        "&evil; &#0; '",
        "\u{0}\u{1b}[2J\u{fffe}\u{ffff}\u{202e}\u{2028}::error::x",
    ];
    for hostile_text in HOSTILE_TEXTS {
        let harmless = change_findings(challenged_journal(), |finding| fill_finding(finding, "plain"));
        let hostile = change_findings(challenged_journal(), |finding| fill_finding(finding, hostile_text));
        let tag_names = |journal: &[JournalEntry]| {
            let (tags, _) = parse_xml(&junit_of(journal));
            tags.into_iter().map(|tag| tag.name).collect::<Vec<_>>()
        };
        assert_eq!(tag_names(&hostile), tag_names(&harmless), "{hostile_text:?}");
        let command_shapes = |journal: &[JournalEntry]| {
            let shape = |line: &str| {
                let (name, properties, _) = parse_command(line);
                (name, properties.into_iter().map(|(property_name, _)| property_name).collect::<Vec<_>>())
            };
            // GitHub also ends a line at a carriage return.
            commands_of(journal).trim_end().split(['\n', '\r']).map(shape).collect::<Vec<_>>()
        };
        assert_eq!(command_shapes(&hostile), command_shapes(&harmless), "{hostile_text:?}");
    }
}

fn fill_finding(finding: &mut Finding, text: &str) {
    finding.description = format!("before {text} after");
    finding.category = text.to_string();
    finding.suggested_fix = text.to_string();
    finding.evidence = Evidence::Quote { text: text.to_string() };
    finding.place = Some(FindingPlace {
        file: format!("src{text}x").replace('/', ""),
        line: 3,
        end_line: 5,
        section: text.to_string(),
    });
    finding.history.iter_mut().for_each(|history_step| history_step.note = text.to_string());
}

#[test]
fn a_path_that_leads_out_of_the_project_is_not_annotated() {
    let journal = change_findings(challenged_journal(), |finding| {
        finding.place = Some(FindingPlace { file: "../x".into(), line: 3, end_line: 3, section: String::new() });
    });
    assert!(!commands_of(&journal).contains("file="), "{}", commands_of(&journal));
    assert!(!junit_of(&journal).contains("file="));
}
