//! Child runs, tried with a toy run that starts them: a review that gets resolved, one that waits for the user, and one that
//! fails. The toy kind exists only in test builds; every command treats it like any other run.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tribunal_core::{
    engine::{
        event::{EntryDraft, RunEvent},
        ids::RunId,
        kinds::RunOrder,
        settings::{AgentSpec, DriverSpec, Settings},
        tier::ProcessTier,
        timestamp::Timestamp,
    },
    review::{level::ReviewLevel, order::ReviewOrder, subject::Subject},
    toy::{ToyChild, ToyOrder, ToyStep},
};
use tribunal_store::{EntryBatch, NewEntry, Store};

use crate::common::{Sandbox, scripted_agent_path};

/// One reviewer raises what it finds in both documents; the finding about the speed is fixed, the one about the owner blocked.
pub(crate) const SCRIPT: &str = "tasks:
  - task: 'round-1/review/*'
    steps: [{findings: [
      {severity: high, category: test, description: fast is vague, quote: It shall be fast.},
      {severity: high, category: test, description: the owner is missing, quote: Somebody decides.}]}]
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/challenge/*'
    steps: [{verdicts: []}]
  - task: '*/fix/*'
    fix:
      - {match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}
      - {match: owner, blocked: who decides}
";

pub(crate) const ROOT: &str = "toy-root";

pub(crate) fn toy_sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_file("plan.md", "# Plan\n\n## Goals\n\nIt shall be fast.\n");
    sandbox.write_file("law.md", "# Law\n\n## Order\n\nSomebody decides.\n");
    sandbox.write_file("script.yaml", SCRIPT);
    // The agent notes for which run and task it was started.
    sandbox.write_file(
        "agent.sh",
        &format!(
            "echo \"$TRIBUNAL_RUN $TRIBUNAL_TASK\" >> {:?}\nexec {:?} {:?}\n",
            sandbox.path_of("../calls"),
            scripted_agent_path(),
            sandbox.path_of("script.yaml"),
        ),
    );
    sandbox
}

fn toy_settings(sandbox: &Sandbox) -> Settings {
    let argv = vec!["sh".to_string(), sandbox.path_of("agent.sh").display().to_string()];
    let mut settings = Settings {
        tier: ProcessTier::new(0).unwrap(),
        agents: vec![AgentSpec::new("scripted", DriverSpec::Command { argv })],
        reviews: ".tribunal/reviews".to_string(),
        ..Settings::default()
    };
    settings.tasks.retry_after_ms = 0;
    settings
}

pub(crate) fn review_of(path: &str) -> RunOrder {
    let mut order = ReviewOrder::new(Subject::from_path(path, None));
    order.level = Some(ReviewLevel::Minimal);
    order.panel.required_issues = 0;
    order.into()
}

fn toy_order(name: &str, steps: Vec<ToyStep>) -> RunOrder {
    ToyOrder { name: name.to_string(), steps }.into()
}

fn child(name: &str, order: RunOrder) -> ToyChild {
    ToyChild { name: name.to_string(), order: Box::new(order) }
}

/// A review that gets resolved, one that waits for the user, and a run that fails.
pub(crate) fn three_children() -> Vec<ToyStep> {
    let failing = toy_order("broken", vec![ToyStep::Fail { detail: "the disk is gone".to_string() }]);
    vec![ToyStep::Children {
        children: vec![child("fast", review_of("plan.md")), child("law", review_of("law.md")), child("lost", failing)],
    }]
}

/// Records the start of a toy run, as its command would; `tribunal resume` then runs it.
pub(crate) fn record_start(sandbox: &Sandbox, steps: Vec<ToyStep>) {
    let store = Store::open(&sandbox.path_of(".tribunal")).unwrap();
    let event = RunEvent::RunStarted {
        version: 1,
        build: "test".to_string(),
        settings: toy_settings(sandbox),
        order: toy_order("night", steps),
        parent: None,
        batch: None,
    };
    let entry = NewEntry {
        run_id: RunId::new(ROOT),
        timestamp: Timestamp { wall_ms: 1_763_000_000_000, awake_ms: 0 },
        draft: EntryDraft { id: "run_started".to_string(), event },
    };
    store.append(EntryBatch { entries: vec![entry], ..EntryBatch::default() }).unwrap();
}

fn row_of<'a>(runs: &'a Value, name: &str) -> &'a Value {
    let rows = runs["runs"].as_array().unwrap();
    rows.iter().find(|row| row["parent"]["name"] == name).unwrap_or_else(|| panic!("no {name} in {runs}"))
}

fn id_of(sandbox: &Sandbox, name: &str) -> String {
    row_of(&sandbox.run_json(&["runs"]), name)["run"].as_str().unwrap().to_string()
}

#[test]
fn a_parent_runs_its_children_waits_for_one_and_goes_on_after_the_answer() {
    let sandbox = toy_sandbox();
    record_start(&sandbox, three_children());
    let output = sandbox.run_tribunal(&["resume", ROOT]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("1 child run waiting"), "{}", output.stderr);

    let runs = sandbox.run_json(&["runs"]);
    let states: BTreeMap<&str, &str> = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["parent"]["name"].as_str().unwrap_or("root"), row["state"].as_str().unwrap()))
        .collect();
    assert_eq!(
        states,
        BTreeMap::from([("root", "waiting"), ("fast", "resolved"), ("law", "waiting"), ("lost", "failed")])
    );
    let (law_id, fast_id) = (id_of(&sandbox, "law"), id_of(&sandbox, "fast"));
    assert!(sandbox.read_file("plan.md").contains("200 ms"));

    // A child is named by its id or as PARENT/name, and has findings of its own.
    assert_eq!(sandbox.run_json(&["findings", "toy-root/fast"])["run"], json!(fast_id));
    assert_eq!(sandbox.run_json(&["findings", &law_id])["findings"][0]["status"]["status"], "blocked");
    let no_child = sandbox.run_tribunal(&["findings", "toy-root/slow"]);
    assert_eq!(no_child.exit_code, Some(2));
    assert!(no_child.stderr.contains("run toy-root has no child run named `slow`"), "{}", no_child.stderr);

    // The answer reaches the child, and the parent asks for the child again.
    let answer = sandbox.run_tribunal(&["decisions", "answer", &law_id, "D1", "dismiss"]);
    assert_eq!(answer.exit_code, Some(0), "{}", answer.stderr);
    let resumed = sandbox.run_tribunal(&["resume", &law_id]);
    assert_eq!(resumed.exit_code, Some(0), "{}", resumed.stderr);
    assert!(resumed.stderr.contains(&format!("{law_id} is a child run of toy-root, which is resumed")));
    let runs = sandbox.run_json(&["runs"]);
    assert_eq!(row_of(&runs, "law")["state"], "resolved");
    let root = runs["runs"].as_array().unwrap().iter().find(|row| row["run"] == ROOT).unwrap();
    assert_eq!((root["state"].as_str(), root["kind"].as_str()), (Some("resolved"), Some("toy")));
    assert_eq!(root["last"]["detail"], "2 of 3 child runs resolved");
    // What the children used is part of what the root used.
    let tokens_of = |row: &Value| row["last"]["tokens"].as_u64().unwrap();
    assert!(tokens_of(root) > 0);
    assert_eq!(tokens_of(root), tokens_of(row_of(&runs, "law")) + tokens_of(row_of(&runs, "fast")));
}

#[test]
fn runs_and_status_draw_the_tree() {
    let sandbox = toy_sandbox();
    record_start(&sandbox, three_children());
    sandbox.run_tribunal(&["resume", ROOT]);
    let ids = ["fast", "law", "lost"].map(|name| (name, id_of(&sandbox, name)));
    let normalize = |text: String| {
        let named = ids.iter().fold(text, |text, (name, id)| text.replace(id.as_str(), &format!("{name}-xxxx")));
        let times = named.lines().map(|line| {
            let words =
                line.split(' ').map(|word| if word.starts_with("20") && word.contains('-') { "DATE" } else { word });
            words.filter(|word| !(word.len() == 5 && word.contains(':'))).collect::<Vec<_>>().join(" ")
        });
        times.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(normalize(sandbox.run_tribunal(&["runs"]).stdout));
    insta::assert_snapshot!(normalize(sandbox.run_tribunal(&["status"]).stdout));
    insta::assert_snapshot!(normalize(sandbox.run_tribunal(&["log", ROOT]).stdout));
}

#[test]
fn runs_are_nested_three_levels_deep_at_most() {
    let sandbox = toy_sandbox();
    let nest = |name: &str, inner: RunOrder| {
        let inner_child = vec![child(name, inner)];
        toy_order(name, vec![ToyStep::Children { children: inner_child }])
    };
    let deepest = toy_order("leaf", Vec::new());
    let steps =
        vec![ToyStep::Children { children: vec![child("one", nest("two", nest("three", nest("four", deepest))))] }];
    record_start(&sandbox, steps);
    let output = sandbox.run_tribunal(&["resume", ROOT]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let runs = sandbox.run_json(&["runs"]);
    let names: Vec<&str> =
        runs["runs"].as_array().unwrap().iter().filter_map(|row| row["parent"]["name"].as_str()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(output.stderr.contains("nested 4 levels deep, but at most 3 are allowed"), "{}", output.stderr);
    let status = sandbox.run_tribunal(&["status", ROOT]).stdout;
    assert!(status.contains("      child run three: "), "{status}");
}

#[test]
fn a_tree_is_discarded_as_a_whole_and_restored() {
    let sandbox = toy_sandbox();
    record_start(&sandbox, three_children());
    sandbox.run_tribunal(&["resume", ROOT]);
    let law_id = id_of(&sandbox, "law");
    let refused = sandbox.run_tribunal(&["discard", &law_id]);
    assert_eq!(refused.exit_code, Some(2));
    assert!(refused.stderr.contains(&format!("{law_id} is a child run of toy-root")), "{}", refused.stderr);
    assert_eq!(sandbox.run_tribunal(&["discard", ROOT]).exit_code, Some(0));
    assert_eq!(sandbox.run_json(&["runs"])["runs"], json!([]));
    assert_eq!(sandbox.run_json(&["runs", "--discarded"])["runs"].as_array().unwrap().len(), 4);
    assert_eq!(sandbox.run_tribunal(&["discard", "--restore", ROOT]).exit_code, Some(0));
    assert_eq!(sandbox.run_json(&["runs"])["runs"].as_array().unwrap().len(), 4);
}

#[test]
fn a_question_of_a_toy_run_is_asked_answered_and_its_run_ends() {
    let sandbox = toy_sandbox();
    record_start(&sandbox, vec![ToyStep::Question { text: "Shall it rain?".to_string() }]);
    assert_eq!(sandbox.run_tribunal(&["resume", ROOT]).exit_code, Some(3));
    let decisions = sandbox.run_tribunal(&["decisions"]);
    assert!(decisions.stdout.contains("Shall it rain?"), "{}", decisions.stdout);
    assert_eq!(sandbox.run_tribunal(&["decisions", "answer", ROOT, "D1", "accept"]).exit_code, Some(0));
    assert_eq!(sandbox.run_tribunal(&["resume", ROOT]).exit_code, Some(0));
    assert_eq!(sandbox.run_json(&["runs"])["runs"][0]["state"], "resolved");
}
