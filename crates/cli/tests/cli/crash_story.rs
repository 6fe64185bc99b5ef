//! Crash safety of stories: a story with a lying session, a review whose critical finding is fixed in the workspace, and a commit is
//! killed before and after journal events of the story and of its review, and resumed. It must reach the same end with the same
//! commit, pay for nothing twice, and leave the user's uncommitted work alone. A sample of the points is tried here;
//! `cargo xtask crash` tries all.

use std::{collections::BTreeMap, os::unix::process::ExitStatusExt, process::Output};

use serde_json::Value;

use crate::{
    common::Sandbox,
    crash_loop::{
        assert_nothing_left, find_root, list_fault_points, list_runs, name_of, recorded_calls, uncommitted_work,
    },
    fault_points::{Coverage, try_fault_points},
    loop_sandbox::{commit_all, count_calls, run_git},
    story_sandbox::{BOARD, CRITICAL_REVIEW, story_sandbox, write_review},
};

/// The first session ticks the tasks and does nothing; the second one is honest.
const AGENT_SCRIPT: &str = "case $n in
1) sed -i 's/- \\[ \\]/- [x]/' $story; echo 'All done.' ;;
*) develop ;;
esac
";

fn story_to_kill() -> Sandbox {
    let sandbox = story_sandbox(AGENT_SCRIPT);
    write_review(&sandbox, CRITICAL_REVIEW);
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
struct StoryResult {
    /// State and findings of each run, by its name.
    runs: BTreeMap<String, [Value; 2]>,
    /// The tree and the subject of every commit on the branch.
    commits: String,
    branches: String,
    board: String,
}

fn collect_result(sandbox: &Sandbox) -> StoryResult {
    let outcome_of = |row: &Value| [row["state"].clone(), row["findings"].clone()];
    StoryResult {
        runs: list_runs(sandbox).iter().map(|row| (name_of(row), outcome_of(row))).collect(),
        commits: run_git(sandbox, &["log", "--format=%T%x09%s", "main"]),
        branches: run_git(sandbox, &["branch", "--format=%(refname)"]),
        board: sandbox.read_file(BOARD),
    }
}

/// Starts the story, or resumes it if its start was recorded.
fn run_with_fault(sandbox: &Sandbox, fault_point: &str) -> Output {
    let root_id = find_root(sandbox).map(|row| row["run"].as_str().unwrap().to_string());
    let mut command = match &root_id {
        Some(root_id) => sandbox.tribunal_command(&["resume", root_id]),
        None => sandbox.tribunal_command(&["sprint", "1-2"]),
    };
    command.env("TRIBUNAL_FAULT", fault_point).output().unwrap()
}

/// Runs with a kill at `fault_point`, resumes, and compares the result. Returns false if the run did not reach the fault
/// point.
fn survives_kill(fault_point: &str, reference: &StoryResult) -> bool {
    let sandbox = story_to_kill();
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

fn try_points(coverage: Coverage) {
    let sandbox = story_to_kill();
    let output = run_with_fault(&sandbox, "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let reference = collect_result(&sandbox);
    assert_eq!(reference.runs.keys().map(String::as_str).collect::<Vec<_>>(), ["review-1", "root"], "{reference:?}");
    assert_eq!(reference.commits.lines().count(), 3, "{reference:?}");
    assert!(run_git(&sandbox, &["show", "HEAD:src/sift.sh"]).contains("tr -d bran"), "the fix is part of the commit");
    try_fault_points(&list_fault_points(&sandbox), coverage, |fault_point| survives_kill(fault_point, &reference));
}

#[test]
fn a_story_killed_at_sampled_instants_reaches_the_same_end() {
    try_points(Coverage::Sample(12));
}

#[test]
#[ignore = "takes minutes; `cargo xtask crash` runs it"]
fn a_story_killed_at_every_instant_reaches_the_same_end() {
    try_points(Coverage::All);
}
