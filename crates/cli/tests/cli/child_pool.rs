//! Child runs that work on while their parent crosses boundaries, tried with a toy run that starts them and awaits them one by one.

use std::{fs, process::Command};

use serde_json::Value;
use tribunal_workflows::toy::ToyStep;

use crate::child_runs::{GatedTree, ROOT, child, id_of, is_ask_of, review_of, row_of, toy_order};

/// A review that waits at the gate, one that gets resolved, and a nap that begins when the second is back.
fn gated_pool() -> Vec<ToyStep> {
    let nap = toy_order("nap", vec![ToyStep::Sleep { ms: 1 }]);
    let children = vec![child("law", review_of("law.md")), child("fast", review_of("plan.md")), child("nap", nap)];
    vec![ToyStep::Pool { children, at_once: 2 }]
}

/// Starts the pool, and returns once the reviewer of `law` was asked and the parent has heard of both others.
fn start_pool() -> (GatedTree, Vec<Value>) {
    let mut tree = GatedTree::start_gated("law-", gated_pool());
    let (mut events, mut is_asked, mut heard_count) = (Vec::new(), false, 0);
    while !(is_asked && heard_count == 2) {
        let event = tree.next_event().unwrap();
        is_asked |= is_ask_of(&event, "law-");
        heard_count += u32::from(is_heard(&event));
        events.push(event);
    }
    (tree, events)
}

/// Whether the root is told of a child that has come back.
fn is_heard(event: &Value) -> bool {
    event["run"] == ROOT && event["reply"]["reply"] == "await_child" && event["reply"]["news"] == "returned"
}

/// Returns what the root does, without what happens beside it.
fn root_kinds(events: &[Value]) -> Vec<String> {
    let own_events = events.iter().filter(|event| event["run"] == ROOT);
    own_events
        .filter_map(|event| match event["kind"].as_str()? {
            kind @ "boundary" => Some(kind.to_string()),
            "effect_started" => match event["effect"]["effect"].as_str()? {
                effect @ ("start_child" | "await_child") => Some(effect.to_string()),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

fn open_gate(tree: &GatedTree) {
    fs::write(tree.sandbox.path_of("../open"), "").unwrap();
    fs::write(&tree.gate_path, "").unwrap();
}

#[test]
fn a_parent_goes_on_and_hears_its_user_while_a_child_works() {
    let (mut tree, mut events) = start_pool();
    let law_id = id_of(&tree.sandbox, "law");
    // The parent has started three children and crossed boundaries since the first began, which still works.
    let kinds = root_kinds(&events);
    let expected = "start_child boundary start_child boundary await_child boundary start_child boundary await_child";
    assert_eq!(kinds.join(" "), expected);
    assert_eq!(row_of(&tree.sandbox.run_json(&["runs"]), "law")["state"], "running");
    let said = tree.sandbox.run_tribunal(&["say", ROOT, "It is raining."]);
    assert_eq!(said.exit_code, Some(0), "{}", said.stderr);
    let is_word = |event: &Value| event["reply"]["reply"] == "await_child" && event["reply"]["news"] == "word";
    loop {
        let event = tree.next_event().unwrap();
        if is_word(&event) {
            assert!(event.to_string().contains("It is raining."), "{event}");
            break;
        }
        events.push(event);
    }
    open_gate(&tree);
    let (sandbox, exit_code, rest) = tree.finish();
    assert_eq!(exit_code, Some(3), "the child waits for the user: {rest:?}");
    let returned = rest.iter().find(|event| event["kind"] == "child_returned").unwrap();
    assert_eq!((returned["name"].as_str(), returned["outcome"]["run"].as_str()), (Some("law"), Some(law_id.as_str())));

    // An answer continues the child, and the parent counts what both have used.
    let answer = sandbox.run_tribunal(&["decisions", &format!("{law_id}.D1"), "dismiss"]);
    assert_eq!(answer.exit_code, Some(0), "{}", answer.stderr);
    let resumed = sandbox.run_tribunal(&["resume", ROOT]);
    assert_eq!(resumed.exit_code, Some(0), "{}", resumed.stderr);
    let runs = sandbox.run_json(&["runs"]);
    let tokens_of = |row: &Value| row["last"]["tokens"].as_u64().unwrap();
    let root = runs["runs"].as_array().unwrap().iter().find(|row| row["run"] == ROOT).unwrap();
    assert_eq!(root["last"]["detail"], "3 of 3 child runs resolved");
    assert_eq!(tokens_of(root), tokens_of(row_of(&runs, "law")) + tokens_of(row_of(&runs, "fast")));
    assert!(tokens_of(root) > 0);
}

#[test]
fn a_killed_parent_finds_its_children_again_behind_the_boundaries() {
    let (mut tree, _) = start_pool();
    tree.process.kill().unwrap();
    tree.process.wait().unwrap();
    let sandbox = tree.sandbox;
    let (law_id, fast_id) = (id_of(&sandbox, "law"), id_of(&sandbox, "fast"));
    // The agent at the gate has ended with its keeper.
    fs::write(sandbox.path_of("../open"), "").unwrap();
    let calls_before = sandbox.read_file("../calls");
    let resumed = sandbox.run_tribunal(&["resume", ROOT]);
    assert_eq!(resumed.exit_code, Some(3), "{}", resumed.stderr);
    let runs = sandbox.run_json(&["runs"]);
    assert_eq!(
        (row_of(&runs, "law")["state"].as_str(), row_of(&runs, "law")["run"].as_str()),
        (Some("waiting"), Some(law_id.as_str()))
    );
    assert_eq!(runs["runs"].as_array().unwrap().len(), 4, "no child was begun twice: {runs}");
    let new_calls = sandbox.read_file("../calls").replacen(&calls_before, "", 1);
    assert!(!new_calls.contains(&fast_id), "nothing is paid twice: {new_calls}");
}

#[test]
fn a_parent_that_is_stopped_stops_the_children_it_goes_on_beside_and_continues_them() {
    let (tree, _) = start_pool();
    let stopped = Command::new("kill").args(["-INT", &tree.process.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    open_gate(&tree);
    let (sandbox, exit_code, events) = tree.finish();
    assert_eq!(exit_code, Some(130), "{events:?}");
    assert!(!events.iter().any(|event| event["kind"] == "child_returned"), "{events:?}");
    let law_row = row_of(&sandbox.run_json(&["runs"]), "law").clone();
    assert_eq!(law_row["state"], "stopped");
    // What the child has used by then counts for its parent.
    let usage = events.iter().find(|event| event["kind"] == "child_usage").unwrap();
    assert_eq!(
        (usage["name"].as_str(), usage["used"]["tokens"].as_u64()),
        (Some("law"), law_row["last"]["tokens"].as_u64())
    );
    let resumed = sandbox.run_tribunal(&["resume", ROOT]);
    assert_eq!(resumed.exit_code, Some(3), "{}", resumed.stderr);
    assert_eq!(row_of(&sandbox.run_json(&["runs"]), "law")["state"], "waiting");
}
