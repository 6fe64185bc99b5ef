//! Crash safety of sprints: a sprint of two stories, of which the first one has a lying session, is killed before and after journal
//! events of the sprint, of its stories and of their reviews, and resumed. It must reach the same end with the same two commits in the
//! same order and the same board, pay for nothing twice, and leave the user's uncommitted work alone. A sample of the points is tried
//! here; `cargo xtask crash` tries all.

use std::{collections::BTreeSet, os::unix::process::ExitStatusExt, process::Output};

use crate::{
    common::Sandbox,
    crash_loop::{
        assert_nothing_left, find_root, list_fault_points, list_runs, name_of, recorded_calls, uncommitted_work,
    },
    fault_points::{Coverage, try_fault_points},
    loop_sandbox::{commit_all, count_calls, run_git},
    story_sandbox::{BOARD, STORY, story_sandbox},
};

const SECOND_STORY: &str = "_bmad-output/implementation-artifacts/1-3-pack.md";
const SPRINT_ARGS: [&str; 3] = ["sprint", "--epic", "1"];

/// The first session of the first story ticks the tasks and does nothing; all others are honest.
const AGENT_SCRIPT: &str = "case $TRIBUNAL_RUN-$n in
story-1-3-pack-*)
  mkdir -p src tests
  echo 'pack() { cat; }' > src/pack.sh
  printf '# AC1, AC2\\n. ./src/pack.sh\\n' > tests/pack_test.sh
  story=_bmad-output/implementation-artifacts/1-3-pack.md
  sed -i 's/- \\[ \\]/- [x]/; s/^Status: .*/Status: review/' $story
  printf '%s\\n' '- src/pack.sh' '- tests/pack_test.sh' >> $story
  echo 'Packing works.' ;;
*-1) sed -i 's/- \\[ \\]/- [x]/' $story; echo 'All done.' ;;
*) develop ;;
esac
";

fn sprint_to_kill() -> Sandbox {
    let sandbox = story_sandbox(AGENT_SCRIPT);
    let board = sandbox.read_file(BOARD).replace("1-3-pack: backlog", "1-3-pack: ready-for-dev");
    sandbox.write_file(BOARD, &board);
    let second_story = sandbox.read_file(STORY).replace("Story 1.2: Sift the flour", "Story 1.3: Pack the flour");
    sandbox.write_file(SECOND_STORY, &second_story);
    sandbox.write_file("dirty.txt", "committed\n");
    sandbox.write_file("staged.txt", "committed\n");
    commit_all(&sandbox, "Plan the sprint");
    sandbox.write_file("staged.txt", "staged by the user\n");
    run_git(&sandbox, &["add", "staged.txt"]);
    sandbox.write_file("dirty.txt", "not staged by the user\n");
    sandbox
}

/// What must be the same however often the program was killed.
#[derive(Debug, PartialEq)]
struct SprintResult {
    /// Name, state and findings of each run. Both reviews have the same name.
    runs: Vec<String>,
    /// The tree and the subject of every commit on the branch.
    commits: String,
    branches: String,
    board: String,
}

fn collect_result(sandbox: &Sandbox) -> SprintResult {
    let mut runs: Vec<String> = list_runs(sandbox)
        .iter()
        .map(|row| format!("{} {} {}", name_of(row), row["state"].as_str().unwrap(), row["findings"]))
        .collect();
    runs.sort();
    SprintResult {
        runs,
        commits: run_git(sandbox, &["log", "--format=%T%x09%s", "main"]),
        branches: run_git(sandbox, &["branch", "--format=%(refname)"]),
        board: sandbox.read_file(BOARD),
    }
}

/// Starts the sprint, or resumes it if its start was recorded.
fn run_with_fault(sandbox: &Sandbox, fault_point: &str) -> Output {
    let root_id = find_root(sandbox).map(|row| row["run"].as_str().unwrap().to_string());
    let mut command = match &root_id {
        Some(root_id) => sandbox.tribunal_command(&["resume", root_id]),
        None => sandbox.tribunal_command(&SPRINT_ARGS),
    };
    command.env("TRIBUNAL_FAULT", fault_point).output().unwrap()
}

/// Runs with a kill at `fault_point`, resumes, and compares the result. Returns false if the run did not reach the fault
/// point.
fn survives_kill(fault_point: &str, reference: &SprintResult) -> bool {
    let sandbox = sprint_to_kill();
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

/// Checks that the sprint which is killed is the one that this file describes.
fn assert_is_whole(sandbox: &Sandbox, reference: &SprintResult) {
    let names: Vec<&str> = reference.runs.iter().filter_map(|run| run.split(' ').next()).collect();
    assert_eq!(names, ["review-1", "review-1", "root", "story-1-2-sift", "story-1-3-pack"], "{reference:?}");
    let subjects: Vec<&str> = reference.commits.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    let expected = ["Story 1-3-pack: Pack the flour", "Story 1-2-sift: Sift the flour", "Plan the sprint", "Begin"];
    assert_eq!(subjects, expected);
    for key in ["1-2-sift", "1-3-pack"] {
        assert!(reference.board.contains(&format!("  {key}: done\n")), "{}", reference.board);
    }
    let sessions = count_calls(sandbox).into_keys().filter(|call| call.contains(" develop-")).count();
    assert_eq!(sessions, 3, "{:?}", count_calls(sandbox));
}

fn try_points(coverage: Coverage) {
    let sandbox = sprint_to_kill();
    let output = run_with_fault(&sandbox, "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let reference = collect_result(&sandbox);
    assert_is_whole(&sandbox, &reference);
    let mut fault_points = list_fault_points(&sandbox);
    // A kill in a review comes in that of the first story that gets there.
    let mut known_points = BTreeSet::new();
    fault_points.retain(|fault_point| known_points.insert(fault_point.clone()));
    try_fault_points(&fault_points, coverage, |fault_point| survives_kill(fault_point, &reference));
}

#[test]
fn a_sprint_killed_at_sampled_instants_reaches_the_same_end() {
    try_points(Coverage::Sample(12));
}

#[test]
#[ignore = "takes minutes; `cargo xtask crash` runs it"]
fn a_sprint_killed_at_every_instant_reaches_the_same_end() {
    try_points(Coverage::All);
}
