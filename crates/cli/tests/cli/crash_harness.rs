//! What tests of crash safety have in common: a run is killed at a fault point and resumed, and must reach the result of a run that
//! nothing happened to, pay for nothing twice and leave nothing behind. The files `crash_*.rs` say which runs these are.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::Value;

use crate::{
    common::Sandbox,
    fault_points::{Coverage, try_fault_points},
    loop_sandbox::{commit_all, count_calls, run_git, workspaces_left},
};

/// A run in a git repository that is killed and resumed. The sandbox has uncommitted work of the user, which must stay as it is.
pub(crate) struct CrashScenario {
    pub(crate) new_sandbox: fn() -> Sandbox,
    pub(crate) start_args: &'static [&'static str],
    /// Returns what must be the same in the row of a run besides its state and its findings.
    pub(crate) compared_summary: fn(&Value) -> Value,
    /// The files of the user that the run changes.
    pub(crate) compared_files: &'static [&'static str],
    /// Checks that the run which is killed is the one that its test describes.
    pub(crate) assert_is_whole: fn(&Sandbox, &RepositoryResult),
}

/// What must be the same however often the program was killed.
#[derive(Debug, PartialEq)]
pub(crate) struct RepositoryResult {
    /// Name, state, findings and summary of each run, sorted. Runs below different parents may have the same name.
    pub(crate) runs: Vec<String>,
    /// The tree and the subject of every commit on the branch.
    pub(crate) commits: String,
    branches: String,
    pub(crate) files: Vec<String>,
}

impl RepositoryResult {
    /// Returns the name of every run; that of the root is `root`.
    pub(crate) fn run_names(&self) -> Vec<&str> {
        self.runs.iter().filter_map(|run| run.split(' ').next()).collect()
    }
}

impl CrashScenario {
    /// Starts the run, or resumes it if its start was recorded.
    pub(crate) fn run_with_fault(&self, sandbox: &Sandbox, fault_point: &str) -> Output {
        let root_id = find_root(sandbox).map(|row| row["run"].as_str().unwrap().to_string());
        let command = match &root_id {
            Some(root_id) => sandbox.tribunal_command(&["resume", root_id]),
            None => sandbox.tribunal_command(self.start_args),
        };
        run_with_fault(command, fault_point)
    }

    pub(crate) fn collect_result(&self, sandbox: &Sandbox) -> RepositoryResult {
        let describe_run = |row: &Value| {
            let (state, summary) = (row["state"].as_str().unwrap(), (self.compared_summary)(row));
            format!("{} {state} {} {summary}", name_of(row), row["findings"])
        };
        let mut runs: Vec<String> = list_runs(sandbox).iter().map(describe_run).collect();
        runs.sort();
        RepositoryResult {
            runs,
            commits: run_git(sandbox, &["log", "--format=%T%x09%s", "main"]),
            branches: run_git(sandbox, &["branch", "--format=%(refname)"]),
            files: self.compared_files.iter().map(|path| sandbox.read_file(path)).collect(),
        }
    }

    /// Kills the run at its fault points, each time in a sandbox of its own, and compares the results.
    pub(crate) fn try_points(&self, coverage: Coverage) {
        let sandbox = (self.new_sandbox)();
        let output = self.run_with_fault(&sandbox, "");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let reference = self.collect_result(&sandbox);
        (self.assert_is_whole)(&sandbox, &reference);
        try_fault_points(&list_fault_points(&sandbox), coverage, |fault_point| {
            self.survives_kill(fault_point, &reference)
        });
    }

    /// Runs with a kill at `fault_point`, resumes, and compares the result. Returns false if the run did not reach the fault
    /// point.
    fn survives_kill(&self, fault_point: &str, reference: &RepositoryResult) -> bool {
        let sandbox = (self.new_sandbox)();
        let work_before = uncommitted_work(&sandbox);
        let output = self.run_with_fault(&sandbox, fault_point);
        let was_killed = is_killed(&output, 0, fault_point);
        if was_killed {
            assert_eq!(uncommitted_work(&sandbox), work_before, "{fault_point}: after the kill");
            resume_killed(&sandbox, "resolved", fault_point, || {
                let output = self.run_with_fault(&sandbox, "");
                assert_eq!(output.status.code(), Some(0), "{fault_point}: {output:?}");
            });
        }
        assert_eq!(&self.collect_result(&sandbox), reference, "{fault_point}");
        assert_eq!(uncommitted_work(&sandbox), work_before, "{fault_point}");
        assert_nothing_left(&sandbox, fault_point, |_| false);
        assert_eq!(workspaces_left(&sandbox), Vec::<PathBuf>::new(), "{fault_point}");
        assert_no_git_lock(&sandbox, fault_point);
        was_killed
    }
}

/// Commits two files of the user with this message, and changes both: one change is staged, the other one is not.
pub(crate) fn add_uncommitted_work(sandbox: &Sandbox, message: &str) {
    sandbox.write_file("dirty.txt", "committed\n");
    sandbox.write_file("staged.txt", "committed\n");
    commit_all(sandbox, message);
    sandbox.write_file("staged.txt", "staged by the user\n");
    run_git(sandbox, &["add", "staged.txt"]);
    sandbox.write_file("dirty.txt", "not staged by the user\n");
}

/// What the user has in the checkout and has not committed.
fn uncommitted_work(sandbox: &Sandbox) -> Vec<String> {
    let commands: [&[&str]; 4] = [
        &["diff", "--", "dirty.txt", "staged.txt"],
        &["diff", "--cached"],
        &["stash", "list"],
        &["status", "--porcelain"],
    ];
    commands.map(|args| run_git(sandbox, args)).to_vec()
}

/// Runs a command that is killed at `fault_point`, or to its end if that is empty.
pub(crate) fn run_with_fault(mut command: Command, fault_point: &str) -> Output {
    command.env("TRIBUNAL_FAULT", fault_point).output().unwrap()
}

/// Returns whether the run was killed. If it was not, it must have ended with `exit_code`.
pub(crate) fn is_killed(output: &Output, exit_code: i32, fault_point: &str) -> bool {
    let was_killed = output.status.signal() == Some(9);
    assert!(was_killed || output.status.code() == Some(exit_code), "{fault_point}: {output:?}");
    was_killed
}

/// Resumes a killed run, and checks that no call is made again whose reply was recorded. A run that was killed after its last commit is
/// in `done_state` already, and is not resumed.
pub(crate) fn resume_killed(sandbox: &Sandbox, done_state: &str, fault_point: &str, resume: impl FnOnce()) {
    let (calls_before, recorded) = (count_calls(sandbox), recorded_calls(sandbox));
    if find_root(sandbox).is_none_or(|row| row["state"] != done_state) {
        resume();
    }
    let calls_after = count_calls(sandbox);
    for call in recorded {
        assert_eq!(calls_before.get(&call), calls_after.get(&call), "{fault_point}: {call} was paid for twice");
    }
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

/// Returns the name of a run in its row; that of the root is `root`.
pub(crate) fn name_of(row: &Value) -> String {
    row["parent"]["name"].as_str().unwrap_or("root").to_string()
}

pub(crate) fn list_runs(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.run_json(&["runs"])["runs"].as_array().unwrap().clone()
}

/// Returns the root's row of the list of runs, if its start was recorded.
pub(crate) fn find_root(sandbox: &Sandbox) -> Option<Value> {
    list_runs(sandbox).into_iter().find(|row| name_of(row) == "root")
}

/// Lists the points before and after every event of the runs, each one once: if two runs have the same name, a kill comes in the one
/// that gets there first.
pub(crate) fn list_fault_points(sandbox: &Sandbox) -> Vec<String> {
    let mut fault_points: Vec<String> = Vec::new();
    for row in list_runs(sandbox) {
        let scope = row["parent"]["name"].as_str().map(|name| format!("{name}@")).unwrap_or_default();
        for event in sandbox.run_events(&["log", row["run"].as_str().unwrap()]) {
            let id = event["id"].as_str().unwrap();
            fault_points.extend(["before", "after"].map(|moment| format!("{moment}:{scope}{id}")));
        }
    }
    let mut known_points = BTreeSet::new();
    fault_points.retain(|fault_point| known_points.insert(fault_point.clone()));
    fault_points
}

/// Checks that no process works on a run any more, that no temporary file is left, and that only runs in states that `keeps_workspaces`
/// selects have workspaces.
pub(crate) fn assert_nothing_left(sandbox: &Sandbox, fault_point: &str, keeps_workspaces: fn(&str) -> bool) {
    assert_eq!(sandbox.temporary_leftovers(), Vec::<PathBuf>::new(), "{fault_point}");
    for row in list_runs(sandbox) {
        let (state, run_id) = (row["state"].as_str().unwrap(), row["run"].as_str().unwrap());
        assert!(!["running", "crashed", "stopped"].contains(&state), "{fault_point}: {run_id} is {state}");
        let has_workspaces = sandbox.path_of(&format!(".tribunal/work/{run_id}")).exists();
        assert!(
            !has_workspaces || keeps_workspaces(state),
            "{fault_point}: workspaces of {run_id} are left, which is {state}"
        );
    }
    for lock_file in fs::read_dir(sandbox.path_of(".tribunal/locks")).unwrap().flatten() {
        let lock = fs::File::open(lock_file.path()).unwrap();
        assert!(lock.try_lock().is_ok(), "{fault_point}: {} is held", lock_file.path().display());
    }
}

fn assert_no_git_lock(sandbox: &Sandbox, fault_point: &str) {
    let git_locks: Vec<_> = fs::read_dir(sandbox.path_of(".git"))
        .unwrap()
        .flatten()
        .filter(|dir_entry| dir_entry.path().extension().is_some_and(|extension| extension == "lock"))
        .collect();
    assert!(git_locks.is_empty(), "{fault_point}: {git_locks:?}");
}
