//! The kinds of runs as the journal names them: which kind an event belongs to, and what is unknown or damaged.
//!
//! The names are compared with the JSON Schema, because the derive macros of serde and schemars read the same attributes: a new
//! variant that a list of names lacks fails here.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tribunal_engine::{
    fault::{Fault, FaultKind},
    files::{FilePart, Hunk},
    ids::{AgentName, FindingId, Key, RunId},
    limits::AgentUsage,
    reason::RunReason,
    run_types::AnyOrder,
    timestamp::Timestamp,
};
use tribunal_json::schemars::{JsonSchema, schema_for};
use tribunal_testkit::{ScriptedWorld, samples, trial::TrialRun};
use tribunal_workflows::{
    development::checks::ChecksReport,
    findings::{
        agent_role::AgentRole,
        counts::FindingCounts,
        finding::{Evidence, Finding, FindingRaiser, FindingStatus, Severity, StatusTransition, TransitionCause},
    },
    review::{
        challenge_rules::{ChallengeResult, ChallengerVoice},
        event::ReviewEvent,
        level::ReviewLevel,
        own_file::OwnFile,
    },
    runs::{
        kinds::{RunOrder, WorkflowEvent, WorkflowSummary, WorkflowTopic},
        plan::RunPlan,
        run_kind::KindEvent,
        types::{DecisionTopic, JournalEntry, RunEvent},
    },
    session::SessionAssignment,
    tasks::claims::ChallengeVerdict,
};

const F1: FindingId = FindingId(1);

/// Returns the fixed values of a property, for instance of `kind`, in all variants of an enum.
fn tag_values<T: JsonSchema>(property: &str) -> Vec<String> {
    fn collect_values(schema: &Value, property: &str, found_values: &mut Vec<String>) {
        match schema {
            Value::Object(members) => {
                let tag_value = &schema["properties"][property]["const"];
                found_values.extend(tag_value.as_str().map(String::from));
                members.values().for_each(|member| collect_values(member, property, found_values));
            }
            Value::Array(elements) => {
                elements.iter().for_each(|element| collect_values(element, property, found_values));
            }
            _ => {}
        }
    }
    let mut found_values = Vec::new();
    collect_values(schema_for!(T).as_value(), property, &mut found_values);
    found_values
}

/// Collects the names of the fields of all variants, without the fields inside them.
fn collect_fields(schema: &Value, definitions: &Value, found_fields: &mut BTreeSet<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        found_fields.extend(properties.keys().cloned());
    }
    if let Some(definition) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        collect_fields(&definitions[definition], definitions, found_fields);
    }
    for list_name in ["oneOf", "anyOf", "allOf"] {
        for variant in schema[list_name].as_array().into_iter().flatten() {
            collect_fields(variant, definitions, found_fields);
        }
    }
}

#[test]
fn no_event_has_a_field_of_the_entry_around_it() {
    let schema = schema_for!(RunEvent);
    let mut event_fields = BTreeSet::new();
    collect_fields(schema.as_value(), &schema.as_value()["$defs"], &mut event_fields);
    assert!(["kind", "iteration", "finding", "segment"].iter().all(|name| event_fields.contains(*name)));
    // The entry is written with the fields of both; a second one of the same name could not be read again.
    for entry_field in ["v", "run", "seq", "id", "at"] {
        assert!(!event_fields.contains(entry_field), "an event has a field `{entry_field}`");
    }
}

fn sample_finding() -> Finding {
    Finding {
        id: F1,
        severity: Severity::High,
        category: "sample".into(),
        description: "flaw 1 is a flaw".into(),
        evidence: Evidence::Quote { text: "flaw 1".into() },
        place: None,
        found: None,
        suggested_fix: String::new(),
        raisers: vec![sample_raiser()],
        status: FindingStatus::Open,
        maybe_same_as: None,
        history: Vec::new(),
    }
}

fn sample_raiser() -> FindingRaiser {
    FindingRaiser { round: 1, role: AgentRole::Adversarial, agent: AgentName::new("sample") }
}

/// One event of every variant, with all optional fields.
fn sample_events() -> Vec<ReviewEvent> {
    let (role, agent, key) = (AgentRole::Adversarial, AgentName::new("sample"), Key::new("round-1/fix-1/fix/1"));
    let (usage, fault) = (AgentUsage::default(), Fault::new(FaultKind::World, "the disk is full"));
    let counts = FindingCounts::from_findings(&[sample_finding()]);
    let voice = ChallengerVoice {
        agent: agent.clone(),
        provider: "provider".into(),
        holds: ChallengeVerdict::Valid,
        note: "it is".into(),
        counter: String::new(),
    };
    vec![
        ReviewEvent::LevelChosen { level: ReviewLevel::Minimal, why: "tier 0".into(), panel: vec![role] },
        ReviewEvent::BaselineChecked { report: ChecksReport::default() },
        ReviewEvent::RoundStarted { round: 1, of: 3, why: Some(RunReason::PanelDegraded) },
        ReviewEvent::SeatAnswered { round: 1, role, agent: agent.clone(), raised: 2, usage },
        ReviewEvent::SeatIncomplete { round: 1, role, agent: agent.clone(), fault: fault.clone() },
        ReviewEvent::FindingRaised { finding: sample_finding() },
        ReviewEvent::FindingJoined { finding: F1, severity: Severity::Low, raiser: sample_raiser() },
        ReviewEvent::FindingMoved {
            finding: F1,
            transition: StatusTransition::new(FindingStatus::Fixed, TransitionCause::Repaired, "landed"),
        },
        ReviewEvent::DismissalsKept { findings: vec![F1], runs: vec![RunId::new("prd-k3f9")] },
        ReviewEvent::ChallengerAnswered {
            key: key.clone(),
            agent: agent.clone(),
            findings: 1,
            usage,
            silent: vec![F1],
            fault: Some(fault.clone()),
        },
        ReviewEvent::FindingRuled {
            finding: F1,
            ruled: ChallengeResult::Valid,
            severity: Severity::High,
            voices: vec![voice],
        },
        ReviewEvent::FixersDealt {
            round: 1,
            iteration: 1,
            wave: 1,
            hands: vec![vec![F1]],
            why: Some(RunReason::FixIterations),
        },
        ReviewEvent::FixerFailed { key: key.clone(), agent, fault },
        ReviewEvent::PatchLanded { key: key.clone(), findings: vec![F1], lines: 1 },
        ReviewEvent::JudgeAnswered {
            key: key.clone(),
            agent: AgentName::new("sample"),
            findings: vec![F1],
            repaired: vec![F1],
            unrelated: vec![FilePart { path: "plan.md".into(), hunk: Hunk { old_start: 3, old_len: 2, new_len: 0 } }],
            usage,
            fault: None,
        },
        ReviewEvent::PatchRefused { key, findings: vec![F1], why: samples::conflict_refusal(3) },
        ReviewEvent::RoundEnded { round: 1, new: 1, dry: false, counts, unbelieved: 2 },
        ReviewEvent::ConfidenceCalculated { round: 1, confidence: samples::sample_confidence() },
        ReviewEvent::FileWritten { file: OwnFile::Metrics { unix_seconds: 1 }, path: "metrics.json".into() },
    ]
}

/// Reads an entry whose event has these fields.
fn read_entry(event_json: &Value) -> Result<JournalEntry, serde_json::Error> {
    let mut entry_json = json!({ "v": 1, "run": "trial", "seq": 1, "id": "1", "at": { "wall_ms": 1, "awake_ms": 1 } });
    for (field_name, field_json) in event_json.as_object().into_iter().flatten() {
        entry_json[field_name] = field_json.clone();
    }
    serde_json::from_str(&entry_json.to_string())
}

/// Returns an event as it is recorded.
fn event_json(event: RunEvent) -> Value {
    serde_json::to_value(event).unwrap_or_else(|cause| panic!("{cause}"))
}

/// Returns `run_started` of a review as it is recorded.
fn started_json() -> Value {
    let RunPlan { settings, order } = samples::sample_plan().into_run();
    let (version, build) = (order.workflow_version(), "trial".to_string());
    event_json(RunEvent::RunStarted { version, build, settings, order, parent: None, batch: None })
}

#[test]
fn the_kind_of_every_event_of_a_review_is_listed_and_written() {
    for event in sample_events() {
        assert_eq!(event_json(RunEvent::from_workflow(event.clone()))["kind"], event.kind_name());
        assert!(ReviewEvent::KIND_NAMES.contains(&event.kind_name()), "{}", event.kind_name());
    }
    let sample_names: Vec<&str> = sample_events().iter().map(KindEvent::kind_name).collect();
    assert_eq!(sample_names, ReviewEvent::KIND_NAMES);
    assert_eq!(tag_values::<ReviewEvent>("kind"), ReviewEvent::KIND_NAMES);
}

#[test]
fn every_event_of_a_review_is_read_back_as_it_was_written() {
    for event in sample_events() {
        let entry = JournalEntry {
            v: 1,
            run: RunId::new("trial"),
            seq: 1,
            id: "1".into(),
            at: Timestamp { wall_ms: 1, awake_ms: 1 },
            event: RunEvent::from_workflow(event),
        };
        let entry_text = serde_json::to_string(&entry).unwrap();
        let read_back: JournalEntry = serde_json::from_str(&entry_text).unwrap();
        assert_eq!(read_back, entry, "{entry_text}");
    }
}

#[test]
fn the_names_of_events_and_questions_are_unique() {
    let common_names = common_event_names();
    let workflow_names = tag_values::<WorkflowEvent>("kind");
    let all_names: BTreeSet<&String> = common_names.iter().chain(&workflow_names).collect();
    assert_eq!(all_names.len(), common_names.len() + workflow_names.len(), "{all_names:?}");
    assert!(common_names.contains(&"run_started".into()) && workflow_names.contains(&"finding_raised".into()));

    // The schema of a question contains that of the topics of all kinds.
    let topic_names = tag_values::<DecisionTopic>("about");
    let distinct_topics: BTreeSet<&String> = topic_names.iter().collect();
    assert_eq!(distinct_topics.len(), topic_names.len(), "{topic_names:?}");
    assert!(tag_values::<WorkflowTopic>("about").iter().all(|name| distinct_topics.contains(name)));
}

/// Returns the kinds of the events that every run has.
fn common_event_names() -> Vec<String> {
    let workflow_names = tag_values::<WorkflowEvent>("kind");
    let mut common_names = tag_values::<RunEvent>("kind");
    // The schema of all events contains each event of a workflow once. A common event of the same name is kept.
    for workflow_name in &workflow_names {
        match common_names.iter().position(|name| name == workflow_name) {
            Some(position) => common_names.remove(position),
            None => panic!("the schema of events lacks `{workflow_name}`"),
        };
    }
    common_names
}

#[test]
fn orders_and_summaries_are_written_with_the_name_of_their_kind() {
    assert_eq!(tag_values::<RunOrder>("workflow"), RunOrder::kind_names());
    assert_eq!(tag_values::<WorkflowSummary>("workflow"), RunOrder::kind_names());
    assert_eq!(started_json()["workflow"], "review");
    assert!(matches!(read_entry(&started_json()).unwrap().event, RunEvent::RunStarted { .. }));
}

#[test]
fn an_event_of_an_unknown_kind_is_read_as_unknown() {
    let event = read_entry(&json!({ "kind": "verdict_sealed", "finding": "F1" })).unwrap().event;
    assert!(matches!(&event, RunEvent::Unknown(unknown) if unknown.kind == "verdict_sealed"), "{event:?}");
    assert_eq!(event.kind_name(), "verdict_sealed");
}

#[test]
fn a_damaged_event_of_a_known_kind_is_an_error() {
    let raised_json = event_json(RunEvent::from_workflow(ReviewEvent::FindingRaised { finding: sample_finding() }));
    assert!(read_entry(&raised_json).is_ok());
    let mut damaged_json = raised_json;
    damaged_json.as_object_mut().unwrap().remove("finding");
    assert!(read_entry(&damaged_json).is_err(), "a finding that was lost is not an event of a newer build");

    for known_name in tag_values::<RunEvent>("kind") {
        let event = read_entry(&json!({ "kind": known_name }));
        assert!(event.is_err(), "{known_name} without its fields: {event:?}");
    }
    assert!(read_entry(&json!({})).is_err(), "an entry without an event");
}

#[test]
fn a_run_of_an_unknown_workflow_is_unknown_and_one_without_its_settings_is_an_error() {
    let mut foreign_json = started_json();
    foreign_json["workflow"] = "appeal".into();
    let event = read_entry(&foreign_json).unwrap().event;
    assert!(matches!(&event, RunEvent::Unknown(unknown) if unknown.kind == "run_started"), "{event:?}");

    // The order of another workflow need not look like that of a review.
    foreign_json["order"] = json!({ "court": "supreme" });
    let event = read_entry(&foreign_json).unwrap().event;
    assert!(matches!(event, RunEvent::Unknown(_)), "{event:?}");

    for damaged_field in ["settings", "order", "workflow"] {
        let mut damaged_json = started_json();
        damaged_json.as_object_mut().unwrap().remove(damaged_field);
        let event = read_entry(&damaged_json);
        assert!(event.is_err(), "without {damaged_field}: {event:?}");
    }
}

#[test]
fn a_loop_in_a_session_is_not_driven_by_a_host() {
    let order = SessionAssignment { prompt: "make it pass\nthen stop".into(), ..SessionAssignment::default() };
    let plan = RunPlan { settings: samples::sample_settings(), order };
    let (ending, view) = TrialRun::new(plan, ScriptedWorld::default(), 1).run_order();
    assert_eq!(ending.reason, RunReason::InSession);
    assert_eq!((view.kind_name(), view.title().as_str()), ("session", "make it pass"));
    assert!(view.as_review().is_none() && view.all_findings().next().is_none());
}
