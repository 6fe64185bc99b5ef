//! Crash safety of runs with child runs: a parent with three children (one gets resolved, one waits for the user, one fails) is
//! killed before and after the commit of journal events of all four runs, and resumed. It must reach the same end, pay for
//! nothing twice and leave nothing behind. A sample of the points is tried here; `cargo xtask crash` tries all.

use std::{collections::BTreeMap, process::Output};

use serde_json::Value;
use tribunal_workflows::toy::ToyStep;

use crate::{
    child_runs::{ROOT, record_start, three_children, toy_sandbox},
    common::Sandbox,
    crash_damage::KilledKind,
    crash_harness::{self, assert_nothing_left, is_killed, list_runs, name_of, resume_killed, run_with_fault},
    fault_points::{Coverage, try_fault_points},
};

/// What the tests of damaged journals need to know about runs with child runs.
pub(crate) const PARENT_KIND: KilledKind = KilledKind {
    name: "parent",
    new_sandbox: parent_to_kill,
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

fn parent_to_kill() -> Sandbox {
    let sandbox = toy_sandbox();
    record_start(&sandbox, three_children());
    sandbox
}

/// A parent that starts the same children two at a time, and crosses boundaries while they work.
fn pool_to_kill() -> Sandbox {
    let sandbox = toy_sandbox();
    let children = three_children().iter().flat_map(ToyStep::list_children).cloned().collect();
    record_start(&sandbox, vec![ToyStep::Pool { children, at_once: 2 }]);
    sandbox
}

fn collect_result(sandbox: &Sandbox) -> TreeResult {
    let outcome_of = |row: &Value| {
        let last = &row["last"];
        (row["state"].clone(), last["reason"].clone(), last["detail"].clone(), row["findings"].clone())
    };
    TreeResult {
        runs: list_runs(sandbox).iter().map(|row| (name_of(row), outcome_of(row))).collect(),
        files: ["plan.md", "law.md"].map(|path| sandbox.read_file(path)).to_vec(),
    }
}

fn resume_with_fault(sandbox: &Sandbox, fault_point: &str) -> Output {
    run_with_fault(sandbox.tribunal_command(&["resume", ROOT]), fault_point)
}

/// Runs with a kill at `fault_point`, resumes, and compares the result. Returns false if the run did not reach the fault
/// point.
fn survives_kill(new_sandbox: fn() -> Sandbox, fault_point: &str, reference: &TreeResult) -> bool {
    let sandbox = new_sandbox();
    let output = resume_with_fault(&sandbox, fault_point);
    let was_killed = is_killed(&output, 3, fault_point);
    if was_killed {
        resume_killed(&sandbox, "waiting", fault_point, || {
            let output = resume_with_fault(&sandbox, "");
            assert_eq!(output.status.code(), Some(3), "{fault_point}: {output:?}");
        });
    }
    assert_eq!(&collect_result(&sandbox), reference, "{fault_point}");
    assert_nothing_left(&sandbox, fault_point, |state| state == "waiting");
    was_killed
}

/// Lists the points before and after every event of the four runs, without the start of the root, which the test itself recorded.
fn list_fault_points(sandbox: &Sandbox) -> Vec<String> {
    let mut fault_points = crash_harness::list_fault_points(sandbox);
    fault_points.retain(|fault_point| !["before:run_started", "after:run_started"].contains(&fault_point.as_str()));
    // Only usage that has changed since the last boundary is noted, so it depends on the speed of the children whether there
    // is such an entry.
    fault_points.retain(|fault_point| !fault_point.contains(":child_usage:"));
    fault_points
}

fn try_points(new_sandbox: fn() -> Sandbox, coverage: Coverage) {
    let sandbox = new_sandbox();
    let output = resume_with_fault(&sandbox, "");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let reference = collect_result(&sandbox);
    assert_eq!(reference.runs.len(), 4, "{reference:?}");
    let fault_points = list_fault_points(&sandbox);
    try_fault_points(&fault_points, coverage, |fault_point| survives_kill(new_sandbox, fault_point, &reference));
}

#[test]
fn a_parent_killed_at_sampled_instants_reaches_the_same_end() {
    try_points(parent_to_kill, Coverage::Sample(16));
}

#[test]
#[ignore = "takes minutes; `cargo xtask crash` runs it"]
fn a_parent_killed_at_every_instant_reaches_the_same_end() {
    try_points(parent_to_kill, Coverage::All);
}

#[test]
fn a_parent_whose_children_outlive_boundaries_reaches_the_same_end_after_kills_at_sampled_instants() {
    try_points(pool_to_kill, Coverage::Sample(16));
}

#[test]
#[ignore = "takes minutes; `cargo xtask crash` runs it"]
fn a_parent_whose_children_outlive_boundaries_reaches_the_same_end_after_a_kill_at_every_instant() {
    try_points(pool_to_kill, Coverage::All);
}
