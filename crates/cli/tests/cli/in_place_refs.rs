//! Work in the user's checkout: what becomes of HEAD, branches, tags, stashes and files of the user's.

use std::os::unix::process::ExitStatusExt;

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::{commit_all, loop_sandbox, run_git},
    sprint_runs::{assert_exit, join_lines},
};

/// A checkout with another branch, a tag and two stashes.
fn checkout_with_refs(agent_script: &str) -> Sandbox {
    let sandbox = loop_sandbox(agent_script);
    run_git(&sandbox, &["branch", "release"]);
    sandbox.write_file("notes.txt", "notes\n");
    commit_all(&sandbox, "Take notes");
    run_git(&sandbox, &["tag", "v1"]);
    for text in ["old", "young"] {
        sandbox.write_file("notes.txt", text);
        run_git(&sandbox, &["stash", "push", "-q", "-m", text]);
    }
    sandbox
}

fn run_loop(sandbox: &Sandbox, more_arguments: &[&str]) -> CommandOutput {
    sandbox.run_tribunal(&[&["loop", "run", "-p", "Add a line.", "--in-place"], more_arguments].concat())
}

/// What the user has besides the branch with the work.
fn other_places(sandbox: &Sandbox) -> String {
    let refs =
        run_git(sandbox, &["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/release", "refs/tags"]);
    let head = run_git(sandbox, &["symbolic-ref", "HEAD"]);
    format!("{head}{refs}{}", run_git(sandbox, &["stash", "list", "--format=%H %gs"]))
}

const MOVE_EVERYTHING: &str = "echo two >> src/lib.txt\n\
git commit -qam 'By the agent' --amend\n\
git switch -q -c side\n\
git branch -q -D release main\n\
git tag -d v1 > /dev/null\n\
git stash clear\n\
git add src/lib.txt\n\
promise\n";

#[test]
fn an_agent_that_moves_everything_lands_only_its_work() {
    let sandbox = checkout_with_refs(MOVE_EVERYTHING);
    let before = other_places(&sandbox);
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 0);
    assert_eq!(other_places(&sandbox), before, "{}", output.stderr);
    assert_eq!(run_git(&sandbox, &["log", "--format=%s"]).lines().skip(1).collect::<Vec<_>>(), ["Take notes", "Begin"]);
    assert_eq!(sandbox.read_file("src/lib.txt"), "one\ntwo\n");
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), "");
    let report = sandbox.run_tribunal(&["report"]).stdout;
    let report = join_lines(&report);
    for expected in [
        "HEAD was switched from main to side while the agent worked, and put back",
        "refs/heads/main was deleted while the agent worked, and put back",
        "refs/tags/v1 was deleted while the agent worked, and put back",
        "2 stashes were dropped while the agent worked, and put back",
    ] {
        assert!(report.contains(expected), "{expected}: {report}");
    }
}

#[test]
fn a_kill_while_refs_are_put_back_leaves_none_of_them_away() {
    for fault_point in ["planned:ref-repairs", "between:ref-repairs"] {
        let sandbox = checkout_with_refs(MOVE_EVERYTHING);
        let before = other_places(&sandbox);
        let mut command = sandbox.tribunal_command(&["loop", "run", "-p", "Add a line.", "--in-place"]);
        let output = command.env("TRIBUNAL_FAULT", fault_point).output().unwrap();
        assert_eq!(output.status.signal(), Some(9), "{fault_point}: {output:?}");
        // The agent does nothing this time, so that only the first turn can have moved anything.
        crate::loop_sandbox::write_agent(&sandbox, "promise\n");
        let resumed = sandbox.run_tribunal(&["resume"]);
        assert_exit(&resumed, 0);
        assert_eq!(other_places(&sandbox), before, "{fault_point}: {}", resumed.stderr);
        assert_eq!(
            run_git(&sandbox, &["log", "--format=%s"]).lines().skip(1).collect::<Vec<_>>(),
            ["Take notes", "Begin"]
        );
    }
}

#[test]
fn a_commit_whose_author_hides_is_asked_about() {
    let sandbox = loop_sandbox(
        "echo evil > evil.txt\ngit add evil.txt\nenv -u GIT_COMMITTER_EMAIL git commit -qm 'Tidy up'\n\
         echo two >> src/lib.txt\npromise\n",
    );
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 3);
    let expected =
        "\"Tidy up\", which appeared on the branch while an agent worked in your checkout, and which is not checked";
    assert!(join_lines(&output.stderr).contains(expected), "{}", output.stderr);
    assert_eq!(run_git(&sandbox, &["log", "-1", "--format=%s"]), "Tidy up\n");
    // As the question says it: the commit goes, and what it did is a part of the work that is checked.
    let said = join_lines(&output.stderr);
    let command = said.split('`').find(|text| text.starts_with("git reset --soft ")).unwrap();
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    run_git(&sandbox, &arguments);
    let listed = sandbox.run_tribunal(&["decisions"]).stdout;
    assert!(listed.contains("retry") && !listed.contains("reject"), "{listed}");
    assert_exit(&sandbox.run_tribunal(&["decisions", "D1", "retry"]), 0);
    let resumed = sandbox.run_tribunal(&["resume"]);
    assert_exit(&resumed, 0);
    let subjects = run_git(&sandbox, &["log", "--format=%s"]);
    assert!(!subjects.contains("Tidy up") && subjects.lines().count() == 2, "{subjects}{}", resumed.stderr);
}

#[test]
fn a_file_whose_name_is_a_pattern_is_put_aside_alone() {
    let sandbox = loop_sandbox("echo $n >> src/lib.txt\n[ $n -lt 2 ] || promise\n");
    assert_exit(&run_loop(&sandbox, &["--max-iterations", "1"]), 4);
    let work = sandbox.read_file("src/lib.txt");
    sandbox.write_file("*", "mine\n");
    let refused = sandbox.run_tribunal(&["resume", "--reload", "--set", "loop.max_iterations=5"]);
    assert_exit(&refused, 3);
    let told = join_lines(&refused.stderr);
    assert!(told.contains("`git --literal-pathspecs stash push -u -- '*'`"), "{told}");
    run_git(&sandbox, &["--literal-pathspecs", "stash", "push", "-q", "-u", "--", "*"]);
    assert_eq!(sandbox.read_file("src/lib.txt"), work);
    assert_exit(&sandbox.run_tribunal(&["resume"]), 0);
    assert_eq!(run_git(&sandbox, &["ls-tree", "-r", "--name-only", "main"]), "src/lib.txt\n");
}

#[test]
fn a_file_that_the_user_makes_after_an_interrupt_is_not_committed() {
    // The first turn leaves work behind, and its run is stopped while it waits for that.
    let sandbox = loop_sandbox("echo $n >> src/lib.txt\necho made > made.txt\n[ $n -lt 2 ] || promise\n");
    let mut command = sandbox.tribunal_command(&["loop", "run", "-p", "Add a line.", "--in-place"]);
    let output = command.env("TRIBUNAL_FAULT", "after:2:finished:iteration-1/turn").output().unwrap();
    assert_eq!(output.status.signal(), Some(9), "{output:?}");
    sandbox.write_file("mine.txt", "mine\n");
    let refused = sandbox.run_tribunal(&["resume"]);
    assert_exit(&refused, 3);
    let told = join_lines(&refused.stderr);
    assert!(told.contains("while the run did not work: mine.txt;"), "{told}");
}

#[test]
fn a_file_that_the_user_makes_between_two_processes_is_not_committed() {
    let sandbox = loop_sandbox("echo $n >> src/lib.txt\n[ $n -lt 3 ] || promise\n");
    assert_exit(&run_loop(&sandbox, &["--max-iterations", "1"]), 4);
    sandbox.write_file("my notes.txt", "mine\n");
    sandbox.write_file("src/wanted.txt", "wanted\n");
    let resume = ["resume", "--reload", "--set", "loop.max_iterations=5"];
    let refused = sandbox.run_tribunal(&resume);
    assert_exit(&refused, 3);
    let told = join_lines(&refused.stderr);
    assert!(
        told.contains(
            "these files were made in your checkout while the run did not work: my notes.txt, src/wanted.txt"
        ),
        "{told}"
    );
    // As the message says it.
    assert!(told.contains("`git stash push -u -- 'my notes.txt' src/wanted.txt`"), "{told}");
    run_git(&sandbox, &["stash", "push", "-q", "-u", "--", "my notes.txt"]);
    run_git(&sandbox, &["add", "--", "src/wanted.txt"]);
    assert_exit(&sandbox.run_tribunal(&["resume"]), 0);
    assert_eq!(run_git(&sandbox, &["ls-tree", "-r", "--name-only", "main"]), "src/lib.txt\nsrc/wanted.txt\n");
    run_git(&sandbox, &["stash", "pop", "-q"]);
    assert_eq!(sandbox.read_file("my notes.txt"), "mine\n");
}
