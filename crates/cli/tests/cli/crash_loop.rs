//! Crash safety of loops: a loop of six iterations with a refused promise, a commit in between and a review is killed before and
//! after the commit of journal events of the loop and of its review, and resumed. It must reach the same end with the same
//! commits, pay for nothing twice, leave the user's uncommitted work alone and leave nothing behind. A sample of the points is
//! tried here; `cargo xtask crash` tries all.

use crate::{
    common::Sandbox,
    crash_damage::KilledKind,
    crash_harness::{CrashScenario, RepositoryResult, add_uncommitted_work, find_root, list_fault_points},
    fault_points::Coverage,
    loop_sandbox::{loop_sandbox, write_review_script},
};

/// What the tests of damaged journals need to know about loops.
pub(crate) const LOOP_KIND: KilledKind = KilledKind {
    name: "loop",
    new_sandbox: six_iterations,
    start: |sandbox, fault_point| LOOP_SCENARIO.run_with_fault(sandbox, fault_point),
    resume: |sandbox| LOOP_SCENARIO.run_with_fault(sandbox, ""),
    done_state: "resolved",
    describe_result: |sandbox| format!("{:?}", LOOP_SCENARIO.collect_result(sandbox)),
    list_fault_points,
};

pub(crate) const LOOP_SCENARIO: CrashScenario = CrashScenario {
    new_sandbox: six_iterations,
    start_args: &["loop", "run", "-p", "Write six parts.", "--review=enhanced"],
    compared_summary: |row| {
        let mut last = row["last"].clone();
        for changing_field in ["tip", "tokens", "elapsed_ms"] {
            // Commits have other hashes at another time (their trees are compared), and a call that was lost has a price.
            last.as_object_mut().unwrap().remove(changing_field);
        }
        last
    },
    compared_files: &[],
    assert_is_whole,
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

fn six_iterations() -> Sandbox {
    let sandbox = loop_sandbox(AGENT_SCRIPT);
    write_review_script(&sandbox, REVIEW_SCRIPT);
    sandbox.append_setting("checks: [\"! grep -rn broken parts\"]");
    add_uncommitted_work(&sandbox, "Add files of the user");
    sandbox
}

/// Checks that the loop which is killed is the one that this file describes.
fn assert_is_whole(sandbox: &Sandbox, reference: &RepositoryResult) {
    let root_id = find_root(sandbox).unwrap()["run"].as_str().unwrap().to_string();
    let events = sandbox.run_events(&["log", &root_id]);
    let count_kind = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
    let kinds = ["iteration_ended", "promise_refused", "loop_committed", "loop_reviewed", "loop_landed"];
    assert_eq!(kinds.map(count_kind), [6, 1, 2, 1, 1], "{reference:?}");
    assert_eq!(reference.run_names(), ["review-1", "root"]);
    assert_eq!(reference.commits.lines().count(), 4, "{reference:?}");
}

#[test]
fn a_loop_killed_at_sampled_instants_reaches_the_same_end() {
    LOOP_SCENARIO.try_points(Coverage::Sample(16));
}

#[test]
#[ignore = "takes minutes; `cargo xtask crash` runs it"]
fn a_loop_killed_at_every_instant_reaches_the_same_end() {
    LOOP_SCENARIO.try_points(Coverage::All);
}
