//! Crash safety of loops: a loop of six iterations with a refused promise, a commit in between and a review is killed before and
//! after the commit of journal events of the loop and of its review, and resumed. It must reach the same end with the same
//! commits, pay for nothing twice, leave the user's uncommitted work alone and leave nothing behind. A sample of the points is
//! tried here; `cargo xtask crash` tries all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::Output,
};

use serde_json::Value;

use crate::{
    common::Sandbox,
    crash_damage::KilledKind,
    fault_points::{Coverage, try_fault_points},
    loop_sandbox::{commit_all, count_calls, loop_sandbox, run_git, workspaces_left, write_review_script},
};

/// What the tests of damaged journals need to know about loops.
pub(crate) const LOOP_KIND: KilledKind = KilledKind {
    name: "loop",
    new_sandbox: six_iterations,
    start: run_with_fault,
    resume: |sandbox| run_with_fault(sandbox, ""),
    done_state: "resolved",
    describe_result: |sandbox| format!("{:?}", collect_result(sandbox)),
    list_fault_points,
};

/// Every iteration writes its file as a whole. The fourth one breaks the check and says that it is done.
const AGENT_SCRIPT: &str = "mkdir -p parts
echo \"part $n\" > parts/$n.txt
case $n in
4) echo broken > parts/4.txt; promise ;;
5) echo 'part 4' > parts/4.txt ;;
6) promise ;;
esac
echo \"Wrote part $n.\"
";

const REVIEW_SCRIPT: &str = "tasks:
  - task: '*/review/*'
    steps: [{findings: [{severity: medium, category: test, description: the second part is short, quote: part 2}]}]
  - task: '*'
    steps: [{findings: []}]
";

const LOOP_ARGS: [&str; 5] = ["loop", "run", "-p", "Write six parts.", "--review=enhanced"];

fn six_iterations() -> Sandbox {
    let sandbox = loop_sandbox(AGENT_SCRIPT);
    write_review_script(&sandbox, REVIEW_SCRIPT);
    sandbox.append_setting("checks: [\"! grep -rn broken parts\"]");
    sandbox.write_file("dirty.txt", "committed\n");
    sandbox.write_file("staged.txt", "committed\n");
    commit_all(&sandbox, "Add files of the user");
    sandbox.write_file("staged.txt", "staged by the user\n");
    run_git(&sandbox, &["add", "staged.txt"]);
    sandbox.write_file("dirty.txt", "not staged by the user\n");
    sandbox
}

/// What must be the same however often the program was killed.
#[derive(Debug, PartialEq)]
struct LoopResult {
    /// State, findings and result of each run, by its name; the loop is `root`.
    runs: BTreeMap<String, [Value; 3]>,
    /// The tree and the subject of every commit on the branch.
    commits: String,
    branches: String,
}

pub(crate) fn name_of(row: &Value) -> String {
    row["parent"]["name"].as_str().unwrap_or("root").to_string()
}

pub(crate) fn list_runs(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.run_json(&["runs"])["runs"].as_array().unwrap().clone()
}

/// Returns the loop's row of the list of runs, if its start was recorded.
pub(crate) fn find_root(sandbox: &Sandbox) -> Option<Value> {
    list_runs(sandbox).into_iter().find(|row| name_of(row) == "root")
}

fn collect_result(sandbox: &Sandbox) -> LoopResult {
    let outcome_of = |row: &Value| {
        let mut last = row["last"].clone();
        for changing_field in ["tip", "tokens", "elapsed_ms"] {
            // Commits have other hashes at another time (their trees are compared below), and a call that was lost has a price.
            last.as_object_mut().unwrap().remove(changing_field);
        }
        [row["state"].clone(), row["findings"].clone(), last]
    };
    LoopResult {
        runs: list_runs(sandbox).iter().map(|row| (name_of(row), outcome_of(row))).collect(),
        commits: run_git(sandbox, &["log", "--format=%T%x09%s", "main"]),
        branches: run_git(sandbox, &["branch", "--format=%(refname)"]),
    }
}

/// What the user has in the checkout and has not committed.
pub(crate) fn uncommitted_work(sandbox: &Sandbox) -> Vec<String> {
    let commands: [&[&str]; 4] = [
        &["diff", "--", "dirty.txt", "staged.txt"],
        &["diff", "--cached"],
        &["stash", "list"],
        &["status", "--porcelain"],
    ];
    commands.map(|args| run_git(sandbox, args)).to_vec()
}

/// Returns the calls whose reply is in a journal.
pub(crate) fn recorded_calls(sandbox: &Sandbox) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for run_id in sandbox.run_ids() {
        let events = sandbox.run_events(&["log", &run_id]);
        let replies =
            events.iter().filter(|event| event["kind"] == "effect_finished" && event["reply"]["outcome"] == "answered");
        calls.extend(replies.map(|event| format!("{run_id} {}", event["key"].as_str().unwrap())));
    }
    calls
}

/// Starts the loop, or resumes it if its start was recorded.
fn run_with_fault(sandbox: &Sandbox, fault_point: &str) -> Output {
    let root_id = find_root(sandbox).map(|row| row["run"].as_str().unwrap().to_string());
    let mut command = match &root_id {
        Some(root_id) => sandbox.tribunal_command(&["resume", root_id]),
        None => sandbox.tribunal_command(&LOOP_ARGS),
    };
    command.env("TRIBUNAL_FAULT", fault_point).output().unwrap()
}

/// Checks that no process works on a run any more and that no workspace and no temporary file is left.
pub(crate) fn assert_nothing_left(sandbox: &Sandbox, fault_point: &str) {
    assert_eq!(sandbox.temporary_leftovers(), Vec::<PathBuf>::new(), "{fault_point}");
    assert_eq!(workspaces_left(sandbox), Vec::<PathBuf>::new(), "{fault_point}");
    for row in list_runs(sandbox) {
        let (state, run_id) = (row["state"].as_str().unwrap(), row["run"].as_str().unwrap());
        assert!(!["running", "crashed", "stopped"].contains(&state), "{fault_point}: {run_id} is {state}");
        let has_workspaces = sandbox.path_of(&format!(".tribunal/work/{run_id}")).exists();
        assert!(!has_workspaces, "{fault_point}: workspaces of {run_id} are left");
    }
    for lock_file in fs::read_dir(sandbox.path_of(".tribunal/locks")).unwrap().flatten() {
        let lock = fs::File::open(lock_file.path()).unwrap();
        assert!(lock.try_lock().is_ok(), "{fault_point}: {} is held", lock_file.path().display());
    }
    let git_locks: Vec<_> = fs::read_dir(sandbox.path_of(".git"))
        .unwrap()
        .flatten()
        .filter(|dir_entry| dir_entry.path().extension().is_some_and(|extension| extension == "lock"))
        .collect();
    assert!(git_locks.is_empty(), "{fault_point}: {git_locks:?}");
}

/// Runs with a kill at `fault_point`, resumes, and compares the result. Returns false if the run did not reach the fault
/// point.
fn survives_kill(fault_point: &str, reference: &LoopResult) -> bool {
    let sandbox = six_iterations();
    let work_before = uncommitted_work(&sandbox);
    let output = run_with_fault(&sandbox, fault_point);
    let was_killed = output.status.signal() == Some(9);
    assert!(was_killed || output.status.code() == Some(0), "{fault_point}: {output:?}");
    if was_killed {
        assert_eq!(uncommitted_work(&sandbox), work_before, "{fault_point}: after the kill");
        let (calls_before, recorded) = (count_calls(&sandbox), recorded_calls(&sandbox));
        // A run that was killed after its last commit has ended already.
        if find_root(&sandbox).is_none_or(|row| row["state"] != "resolved") {
            let output = run_with_fault(&sandbox, "");
            assert_eq!(output.status.code(), Some(0), "{fault_point}: {output:?}");
        }
        let calls_after = count_calls(&sandbox);
        for call in recorded {
            assert_eq!(calls_before.get(&call), calls_after.get(&call), "{fault_point}: {call} was paid for twice");
        }
    }
    assert_eq!(&collect_result(&sandbox), reference, "{fault_point}");
    assert_eq!(uncommitted_work(&sandbox), work_before, "{fault_point}");
    assert_nothing_left(&sandbox, fault_point);
    was_killed
}

/// Lists the points before and after every event of the loop and of its review.
pub(crate) fn list_fault_points(sandbox: &Sandbox) -> Vec<String> {
    let mut fault_points = Vec::new();
    for row in list_runs(sandbox) {
        let scope = row["parent"]["name"].as_str().map(|name| format!("{name}@")).unwrap_or_default();
        for event in sandbox.run_events(&["log", row["run"].as_str().unwrap()]) {
            let id = event["id"].as_str().unwrap();
            fault_points.extend(["before", "after"].map(|moment| format!("{moment}:{scope}{id}")));
        }
    }
    fault_points
}

/// Checks that the loop which is killed is the one that this file describes.
fn assert_is_whole(sandbox: &Sandbox, reference: &LoopResult) {
    let root_id = find_root(sandbox).unwrap()["run"].as_str().unwrap().to_string();
    let events = sandbox.run_events(&["log", &root_id]);
    let count_kind = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
    let kinds = ["iteration_ended", "promise_refused", "loop_committed", "loop_reviewed", "loop_landed"];
    assert_eq!(kinds.map(count_kind), [6, 1, 2, 1, 1], "{reference:?}");
    assert_eq!(reference.runs.keys().map(String::as_str).collect::<Vec<_>>(), ["review-1", "root"]);
    assert_eq!(reference.commits.lines().count(), 4, "{reference:?}");
}

fn try_points(coverage: Coverage) {
    let sandbox = six_iterations();
    let output = run_with_fault(&sandbox, "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let reference = collect_result(&sandbox);
    assert_is_whole(&sandbox, &reference);
    try_fault_points(&list_fault_points(&sandbox), coverage, |fault_point| survives_kill(fault_point, &reference));
}

#[test]
fn a_loop_killed_at_sampled_instants_reaches_the_same_end() {
    try_points(Coverage::Sample(16));
}

#[test]
#[ignore = "takes minutes; `cargo xtask crash` runs it"]
fn a_loop_killed_at_every_instant_reaches_the_same_end() {
    try_points(Coverage::All);
}
