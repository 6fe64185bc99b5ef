//! Crash safety of runs with child runs: a parent with three children (one gets resolved, one waits for the user, one fails) is
//! killed before and after the commit of journal events of all four runs, and resumed. It must reach the same end, pay for
//! nothing twice and leave nothing behind. A sample of the points is tried here; `cargo xtask crash` tries all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::process::ExitStatusExt,
};

use serde_json::Value;

use crate::{
    child_runs::{ROOT, record_start, three_children, toy_sandbox},
    common::Sandbox,
    crash_damage::KilledKind,
    fault_points::{Coverage, try_fault_points},
};

/// What the tests of damaged journals need to know about runs with child runs.
pub(crate) const PARENT_KIND: KilledKind = KilledKind {
    name: "parent",
    new_sandbox: || {
        let sandbox = toy_sandbox();
        record_start(&sandbox, three_children());
        sandbox
    },
    start: resume_with_fault,
    resume: |sandbox| resume_with_fault(sandbox, ""),
    done_state: "waiting",
    describe_result: |sandbox| format!("{:?}", collect_result(sandbox)),
    list_fault_points,
};

/// What must be the same however often the program was killed: by the name of the run, with the root as `root`.
#[derive(Debug, PartialEq)]
struct TreeResult {
    runs: BTreeMap<String, (Value, Value, Value, Value)>,
    files: Vec<String>,
}

fn name_of(row: &Value) -> String {
    row["parent"]["name"].as_str().unwrap_or("root").to_string()
}

fn collect_result(sandbox: &Sandbox) -> TreeResult {
    let runs = sandbox.run_json(&["runs"]);
    let rows = runs["runs"].as_array().unwrap();
    let outcome_of = |row: &Value| {
        let last = &row["last"];
        (row["state"].clone(), last["reason"].clone(), last["detail"].clone(), row["findings"].clone())
    };
    TreeResult {
        runs: rows.iter().map(|row| (name_of(row), outcome_of(row))).collect(),
        files: ["plan.md", "law.md"].map(|path| sandbox.read_file(path)).to_vec(),
    }
}

/// Returns how often an agent was started for each task of each run.
fn count_calls(sandbox: &Sandbox) -> BTreeMap<String, usize> {
    let mut call_counts = BTreeMap::new();
    for call in fs::read_to_string(sandbox.path_of("../calls")).unwrap_or_default().lines() {
        *call_counts.entry(call.to_string()).or_default() += 1;
    }
    call_counts
}

/// Returns the calls whose reply is in a journal.
fn recorded_calls(sandbox: &Sandbox) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for run_id in sandbox.run_ids() {
        let events = sandbox.run_events(&["log", &run_id]);
        let replies =
            events.iter().filter(|event| event["kind"] == "effect_finished" && event["reply"]["outcome"] == "answered");
        calls.extend(replies.map(|event| format!("{run_id} {}", event["key"].as_str().unwrap())));
    }
    calls
}

fn resume_with_fault(sandbox: &Sandbox, fault_point: &str) -> std::process::Output {
    let mut command = sandbox.tribunal_command(&["resume", ROOT]);
    command.env("TRIBUNAL_FAULT", fault_point).output().unwrap()
}

/// Checks that no process works on a run any more and that only runs that wait keep workspaces.
fn assert_nothing_left(sandbox: &Sandbox, fault_point: &str) {
    assert_eq!(sandbox.temporary_leftovers(), Vec::<std::path::PathBuf>::new(), "{fault_point}");
    let runs = sandbox.run_json(&["runs"]);
    for row in runs["runs"].as_array().unwrap() {
        let (state, run_id) = (row["state"].as_str().unwrap(), row["run"].as_str().unwrap());
        assert!(!["running", "crashed", "stopped"].contains(&state), "{fault_point}: {run_id} is {state}");
        let has_workspaces = sandbox.path_of(&format!(".tribunal/work/{run_id}")).exists();
        assert!(
            !has_workspaces || state == "waiting",
            "{fault_point}: workspaces of {run_id} are left, which is {state}"
        );
    }
    for lock_file in fs::read_dir(sandbox.path_of(".tribunal/locks")).unwrap().flatten() {
        let lock = fs::File::open(lock_file.path()).unwrap();
        assert!(lock.try_lock().is_ok(), "{fault_point}: {} is held", lock_file.path().display());
    }
}

/// Runs with a kill at `fault_point`, resumes, and compares the result. Returns false if the run did not reach the fault
/// point.
fn survives_kill(fault_point: &str, reference: &TreeResult) -> bool {
    let sandbox = toy_sandbox();
    record_start(&sandbox, three_children());
    let output = resume_with_fault(&sandbox, fault_point);
    let was_killed = output.status.signal() == Some(9);
    assert!(was_killed || output.status.code() == Some(3), "{fault_point}: {output:?}");
    if was_killed {
        let (calls_before, recorded) = (count_calls(&sandbox), recorded_calls(&sandbox));
        let root_state = |runs: &Value| {
            let rows = runs["runs"].as_array().unwrap();
            rows.iter().find(|row| name_of(row) == "root").map(|row| row["state"].clone())
        };
        // A run that was killed after its last commit waits already.
        if root_state(&sandbox.run_json(&["runs"])) != Some("waiting".into()) {
            let output = resume_with_fault(&sandbox, "");
            assert_eq!(output.status.code(), Some(3), "{fault_point}: {output:?}");
        }
        let calls_after = count_calls(&sandbox);
        for call in recorded {
            assert_eq!(calls_before.get(&call), calls_after.get(&call), "{fault_point}: {call} was paid for twice");
        }
    }
    assert_eq!(&collect_result(&sandbox), reference, "{fault_point}");
    assert_nothing_left(&sandbox, fault_point);
    was_killed
}

/// Lists the points before and after every event of the four runs.
fn list_fault_points(sandbox: &Sandbox) -> Vec<String> {
    let runs = sandbox.run_json(&["runs"]);
    let mut fault_points = Vec::new();
    for row in runs["runs"].as_array().unwrap() {
        let scope = row["parent"]["name"].as_str().map(|name| format!("{name}@")).unwrap_or_default();
        for event in sandbox.run_events(&["log", row["run"].as_str().unwrap()]) {
            let id = event["id"].as_str().unwrap();
            // The test itself recorded the start of the root.
            if id != "run_started" || !scope.is_empty() {
                fault_points.extend(["before", "after"].map(|moment| format!("{moment}:{scope}{id}")));
            }
        }
    }
    fault_points
}

fn try_points(coverage: Coverage) {
    let sandbox = toy_sandbox();
    record_start(&sandbox, three_children());
    let output = resume_with_fault(&sandbox, "");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let reference = collect_result(&sandbox);
    assert_eq!(reference.runs.len(), 4, "{reference:?}");
    try_fault_points(&list_fault_points(&sandbox), coverage, |fault_point| survives_kill(fault_point, &reference));
}

#[test]
fn a_parent_killed_at_sampled_instants_reaches_the_same_end() {
    try_points(Coverage::Sample(16));
}

#[test]
#[ignore = "takes minutes; `cargo xtask crash` runs it"]
fn a_parent_killed_at_every_instant_reaches_the_same_end() {
    try_points(Coverage::All);
}
