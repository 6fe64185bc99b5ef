//! Crash safety of sprints: a sprint of two stories, of which the first one has a lying session, is killed before and after journal
//! events of the sprint, of its stories and of their reviews, and resumed. It must reach the same end with the same two commits in the
//! same order and the same board, pay for nothing twice, and leave the user's uncommitted work alone. A sample of the points is tried
//! here; `cargo xtask crash` tries all.

use serde_json::Value;

use crate::{
    common::Sandbox,
    crash_harness::{CrashScenario, RepositoryResult, add_uncommitted_work},
    fault_points::Coverage,
    loop_sandbox::count_calls,
    story_sandbox::{BOARD, STORY, story_sandbox},
};

pub(crate) const SPRINT_SCENARIO: CrashScenario = CrashScenario {
    new_sandbox: sprint_to_kill,
    start_args: &["sprint", "--epic", "1"],
    compared_summary: |_| Value::Null,
    compared_files: &[BOARD],
    assert_is_whole,
};

const SECOND_STORY: &str = "_bmad-output/implementation-artifacts/1-3-pack.md";

/// The first session of the first story ticks the tasks and does nothing; all others are honest.
const AGENT_SCRIPT: &str = "case $TRIBUNAL_RUN-$n in
story-1-3-pack-*)
  mkdir -p src tests
  echo 'pack() { cat; }' > src/pack.sh
  printf '# AC1, AC2\\n. ./src/pack.sh\\n' > tests/pack_test.sh
  story=_bmad-output/implementation-artifacts/1-3-pack.md
  sed -i 's/- \\[ \\]/- [x]/; s/^Status: .*/Status: review/' $story
  grep -q '^- src/pack.sh' $story || printf '%s\\n' '- src/pack.sh' '- tests/pack_test.sh' >> $story
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
    add_uncommitted_work(&sandbox, "Plan the sprint");
    sandbox
}

/// Checks that the sprint which is killed is the one that this file describes.
fn assert_is_whole(sandbox: &Sandbox, reference: &RepositoryResult) {
    assert_eq!(
        reference.run_names(),
        ["review-1", "review-1", "root", "story-1-2-sift", "story-1-3-pack"],
        "{reference:?}"
    );
    let subjects: Vec<&str> = reference.commits.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    let expected = ["Story 1-3-pack: Pack the flour", "Story 1-2-sift: Sift the flour", "Plan the sprint", "Begin"];
    assert_eq!(subjects, expected);
    for key in ["1-2-sift", "1-3-pack"] {
        assert!(reference.files[0].contains(&format!("  {key}: done\n")), "{}", reference.files[0]);
    }
    let sessions = count_calls(sandbox).into_keys().filter(|call| call.contains(" develop-")).count();
    assert_eq!(sessions, 3, "{:?}", count_calls(sandbox));
}

#[test]
fn a_sprint_killed_at_sampled_instants_reaches_the_same_end() {
    SPRINT_SCENARIO.try_points(Coverage::Sample(12));
}

#[test]
#[ignore = "takes minutes; `cargo xtask crash` runs it"]
fn a_sprint_killed_at_every_instant_reaches_the_same_end() {
    SPRINT_SCENARIO.try_points(Coverage::All);
}
