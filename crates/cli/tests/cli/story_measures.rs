//! What the work on a story is measured by is not its agent's to change.

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::{commit_all, run_git},
    sprint_runs::join_lines,
    story_sandbox::{STORY, session_prompt, story_sandbox},
};

fn assert_exit(output: &CommandOutput, exit_code: i32) {
    assert_eq!(output.exit_code, Some(exit_code), "{}{}", output.stdout, output.stderr);
}

/// Puts front matter above the story, and commits it.
fn add_front_matter(sandbox: &Sandbox, fields: &str) {
    sandbox.write_file(STORY, &format!("---\n{fields}---\n{}", sandbox.read_file(STORY)));
    commit_all(sandbox, "Add front matter");
}

/// The copy is found before the story itself, and asks for less.
#[test]
fn another_file_of_the_story_is_not_what_the_work_is_measured_by() {
    let copy_dir = "_bmad-output/implementation-artifacts/0";
    let copy = format!("{copy_dir}/1-2-sift.md");
    let sandbox = story_sandbox(&format!(
        "develop\ncase $n in\n1) mkdir -p {copy_dir}; sed '/^2. Flour/d' $story > {copy} ;;\n\
         *) rm -rf {copy_dir} ;;\nesac\n"
    ));
    let output = sandbox.run_tribunal(&["sprint", "1-2"]);
    assert_exit(&output, 0);
    let expected = format!("the story's file is {STORY}: put it back there, and remove {copy}");
    let prompt = session_prompt(&sandbox, "develop-2");
    assert!(prompt.contains(&expected), "{prompt}");
    assert!(!run_git(&sandbox, &["ls-tree", "-r", "--name-only", "main"]).contains(&copy));
    assert!(sandbox.read_file(STORY).contains("Status: done"));
}

#[test]
fn a_checkpoint_that_the_work_removes_is_a_question() {
    let sandbox = story_sandbox("develop\nsed -i '/^done_checkpoint/d' $story\n");
    add_front_matter(&sandbox, "owner: miller\ndone_checkpoint: true\n");
    let output = sandbox.run_tribunal(&["sprint", "1-2"]);
    assert_exit(&output, 3);
    let question = "D1 needs an answer: the work changes `done_checkpoint` of its story from \"true\" to nothing";
    assert!(join_lines(&output.stderr).contains(question), "{}", output.stderr);
    assert_eq!(run_git(&sandbox, &["log", "--format=%s", "main"]), "Add front matter\nBegin\n");
}

#[test]
fn a_checkpoint_that_stays_is_no_question() {
    let sandbox = story_sandbox("develop\n");
    add_front_matter(&sandbox, "done_checkpoint: true\nmax_cost: 5\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2"]), 0);
    assert!(sandbox.read_file(STORY).starts_with("---\ndone_checkpoint: true\nmax_cost: 5\n---\n"));
}
