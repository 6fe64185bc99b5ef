//! Crash safety of stories: a story with a lying session, a review whose critical finding is fixed in the workspace, and a commit is
//! killed before and after journal events of the story and of its review, and resumed. It must reach the same end with the same
//! commit, pay for nothing twice, and leave the user's uncommitted work alone. A sample of the points is tried here;
//! `cargo xtask crash` tries all.

use serde_json::Value;

use crate::{
    common::Sandbox,
    crash_harness::{CrashScenario, RepositoryResult, add_uncommitted_work},
    fault_points::Coverage,
    loop_sandbox::run_git,
    story_sandbox::{BOARD, CRITICAL_REVIEW, story_sandbox, write_review},
};

pub(crate) const STORY_SCENARIO: CrashScenario = CrashScenario {
    new_sandbox: story_to_kill,
    start_args: &["sprint", "1-2"],
    compared_summary: |_| Value::Null,
    compared_files: &[BOARD],
    assert_is_whole,
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
    add_uncommitted_work(&sandbox, "Add files of the user");
    sandbox
}

/// Checks that the story which is killed is the one that this file describes.
fn assert_is_whole(sandbox: &Sandbox, reference: &RepositoryResult) {
    assert_eq!(reference.run_names(), ["review-1", "root"], "{reference:?}");
    assert_eq!(reference.commits.lines().count(), 3, "{reference:?}");
    assert!(run_git(sandbox, &["show", "HEAD:src/sift.sh"]).contains("tr -d bran"), "the fix is part of the commit");
}

#[test]
fn a_story_killed_at_sampled_instants_reaches_the_same_end() {
    STORY_SCENARIO.try_points(Coverage::Sample(12));
}

#[test]
#[ignore = "takes minutes; `cargo xtask crash` runs it"]
fn a_story_killed_at_every_instant_reaches_the_same_end() {
    STORY_SCENARIO.try_points(Coverage::All);
}
