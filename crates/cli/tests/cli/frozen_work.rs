//! What lands is what was checked: edits, hooks and kills between the checks and the commit change nothing of it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{
    common::{CommandOutput, Sandbox},
    crash_harness::run_with_fault,
    loop_sandbox::{commit_all, loop_sandbox, prompt_of, run_git},
    sprint_runs::join_lines,
    story_sandbox::{BOARD, STORY, session_prompt, story_sandbox, write_story_agent},
};

const SIFT: &str = "sift() { tr -d b; }\n";

fn assert_exit(output: &CommandOutput, exit_code: i32) {
    assert_eq!(output.exit_code, Some(exit_code), "{}{}", output.stdout, output.stderr);
}

/// Kills a story at a point, which must come up.
fn kill_story(sandbox: &Sandbox, arguments: &[&str], fault_point: &str) {
    let output = run_with_fault(sandbox.tribunal_command(arguments), fault_point);
    assert_eq!(output.status.code(), None, "{}", String::from_utf8_lossy(&output.stderr));
}

/// Finds the directory in which the agents of the only story work.
fn clone_of(sandbox: &Sandbox) -> PathBuf {
    let mut directories = vec![sandbox.home_dir().join("cache/tribunal/workspaces")];
    while let Some(directory) = directories.pop() {
        if directory.join("tree/src").is_dir() {
            return directory.join("tree");
        }
        directories
            .extend(fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
    }
    panic!("there is no clone");
}

fn add_hook(sandbox: &Sandbox, script: &str) {
    let hook_path = sandbox.path_of(".git/hooks/pre-commit");
    fs::create_dir_all(hook_path.parent().unwrap()).unwrap();
    fs::write(&hook_path, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(&hook_path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

#[test]
fn what_is_edited_in_a_clone_after_its_checks_is_put_back_and_named() {
    let sandbox = story_sandbox("develop\n");
    let arguments = ["sprint", "1-2", "--review", "off"];
    kill_story(&sandbox, &arguments, "before:3:started:landing-1/files");
    let clone = clone_of(&sandbox);
    write(&clone.join("src/sift.sh"), "evil\n");
    write(&clone.join("src/backdoor.sh"), "evil\n");
    let output = sandbox.run_tribunal(&["resume"]);
    assert_exit(&output, 0);
    let said = join_lines(&output.stderr);
    assert!(said.contains("these files had changed since the work was looked at"), "{said}");
    assert!(said.contains("src/sift.sh, src/backdoor.sh"), "{said}");
    assert_eq!(sandbox.read_file("src/sift.sh"), SIFT);
    assert!(!sandbox.path_of("src/backdoor.sh").exists());
    // What a killed process has written itself is no reason to say anything.
    let sandbox = story_sandbox("develop\n");
    kill_story(&sandbox, &arguments, "before:3:finished:landing-1/files");
    let output = sandbox.run_tribunal(&["resume"]);
    assert_exit(&output, 0);
    assert!(!output.stderr.contains("had changed since"), "{}", output.stderr);
    // Without a hook no process looks at the files any more when the commit is made.
    let sandbox = story_sandbox("develop\n");
    kill_story(&sandbox, &arguments, "before:3:started:landing-1/commit");
    write(&clone_of(&sandbox).join("src/sift.sh"), "evil\n");
    assert_exit(&sandbox.run_tribunal(&["resume"]), 0);
    assert_eq!(sandbox.read_file("src/sift.sh"), SIFT);
}

#[test]
fn what_the_user_edits_in_the_checkout_after_the_checks_stays_an_edit() {
    let sandbox = story_sandbox("develop\n");
    kill_story(&sandbox, &["sprint", "1-2", "--review", "off", "--in-place"], "before:3:started:landing-1/files");
    sandbox.write_file("src/sift.sh", "mine\n");
    sandbox.write_file("notes.txt", "mine\n");
    let output = sandbox.run_tribunal(&["resume"]);
    assert_exit(&output, 0);
    assert_eq!(run_git(&sandbox, &["show", "HEAD:src/sift.sh"]), SIFT);
    assert_eq!(
        (sandbox.read_file("src/sift.sh").as_str(), sandbox.read_file("notes.txt").as_str()),
        ("mine\n", "mine\n")
    );
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), " M src/sift.sh\n?? notes.txt\n");
}

#[test]
fn what_a_killed_process_has_written_in_the_checkout_lands() {
    for fault_point in ["before:3:finished:landing-1/files", "before:3:started:landing-1/commit"] {
        let sandbox = story_sandbox("develop\n");
        kill_story(&sandbox, &["sprint", "1-2", "--review", "off", "--in-place"], fault_point);
        assert_exit(&sandbox.run_tribunal(&["resume"]), 0);
        assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), "", "{fault_point}");
        assert!(sandbox.read_file(STORY).contains("Status: done"), "{fault_point}");
    }
}

#[test]
fn the_lock_of_a_killed_process_is_no_part_of_the_work() {
    let sandbox = story_sandbox("develop\n");
    kill_story(&sandbox, &["sprint", "1-2", "--review", "off", "--in-place"], "before:3:started:landing-1/files");
    // No process has this number in that namespace.
    let lock_path = sandbox.path_of(&format!("{BOARD}.lock"));
    write(&lock_path, "tribunal\n999999999@1@1\n");
    // A lock that is younger than 30 seconds is never cleared.
    assert_exit(&sandbox.run_tribunal(&["resume"]), 5);
    let root = sandbox.run_json(&["runs"])["runs"][0]["run"].as_str().unwrap().to_string();
    let kept = run_git(&sandbox, &["ls-tree", "-r", "--name-only", &format!("refs/tribunal/work/{root}/story")]);
    assert!(kept.contains("src/sift.sh") && !kept.contains(".lock"), "{kept}");
    fs::remove_file(&lock_path).unwrap();
    assert_exit(&sandbox.run_tribunal(&["resume"]), 0);
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), "");
}

#[test]
fn tests_that_vanish_while_their_file_is_renamed_are_asked_about() {
    let sandbox = story_sandbox(
        "develop\ngit mv tests/test_mill.py tests/test_grind.py\nsed -i '/^def test_stops/,$d' tests/test_grind.py\n",
    );
    sandbox.write_file("tests/test_mill.py", TESTS);
    commit_all(&sandbox, "Test the mill");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off"]);
    assert_exit(&output, 3);
    let expected = "D1 needs an answer: the work removes the test `test_stops` in tests/test_mill.py";
    assert!(join_lines(&output.stderr).contains(expected), "{}", output.stderr);
}

#[test]
fn an_edit_in_the_checkout_that_a_hook_would_see_is_verified_first() {
    let sandbox = story_sandbox("develop\n");
    add_hook(&sandbox, "exit 0\n");
    let arguments = ["sprint", "1-2", "--review", "off", "--in-place"];
    kill_story(&sandbox, &arguments, "before:3:started:landing-1/commit");
    sandbox.write_file("src/sift.sh", "sift() { tr -d bran; }\n");
    let output = sandbox.run_tribunal(&["resume"]);
    assert_exit(&output, 0);
    let said = join_lines(&output.stderr);
    assert!(
        said.contains("you edited src/sift.sh while the work was verified; it is verified again with that"),
        "{said}"
    );
    assert_eq!(run_git(&sandbox, &["show", "HEAD:src/sift.sh"]), "sift() { tr -d bran; }\n");
    // What fails the checks does not land.
    let sandbox = story_sandbox("develop\n");
    add_hook(&sandbox, "exit 0\n");
    kill_story(&sandbox, &arguments, "before:3:started:landing-1/commit");
    sandbox.write_file("src/sift.sh", "sift() { broken; }\n");
    assert_exit(&sandbox.run_tribunal(&["resume"]), 3);
    assert_eq!(run_git(&sandbox, &["log", "--format=%s"]), "Begin\n");
}

/// A hook that formats a file, as often as it is not formatted.
const FORMATTER: &str = "grep -q formatted src/sift.sh || echo '# formatted' >> src/sift.sh\n";

#[test]
fn what_a_hook_rewrites_is_checked_before_it_is_committed_also_after_a_kill() {
    for fault_point in ["", "before:3:finished:landing-1/commit", "before:3:started:landing-1/rewritten-1/checks"] {
        let sandbox = story_sandbox("develop\n");
        sandbox.write_file("check.sh", "cat src/sift.sh >> ../checked 2>/dev/null || true\n");
        commit_all(&sandbox, "Show what is checked");
        add_hook(&sandbox, FORMATTER);
        let arguments = ["sprint", "1-2", "--review", "off"];
        if fault_point.is_empty() {
            let output = sandbox.run_tribunal(&arguments);
            assert_exit(&output, 0);
            assert!(join_lines(&output.stderr).contains("a commit hook changed src/sift.sh"), "{}", output.stderr);
        } else {
            kill_story(&sandbox, &arguments, fault_point);
            assert_exit(&sandbox.run_tribunal(&["resume"]), 0);
        }
        assert_eq!(sandbox.read_file("src/sift.sh"), format!("{SIFT}# formatted\n"), "{fault_point}");
        let events = sandbox.run_events(&["log"]);
        let checked_last = events.iter().rposition(|event| event["key"] == "landing-1/rewritten-1/checks").unwrap();
        let committed = events.iter().position(|event| event["key"] == "landing-1/commit-2").unwrap();
        assert!(checked_last < committed, "{fault_point}");
    }
}

#[test]
fn a_hook_that_breaks_the_work_or_never_ends_lands_nothing() {
    let breaking = "grep -q broken src/sift.sh || echo '# broken' >> src/sift.sh\n";
    let endless = "echo more >> src/sift.sh\n";
    let endless_text = "a commit hook changes files every time that it runs (src/sift.sh)";
    for (hook, expected) in [(breaking, "failed with exit code 1"), (endless, endless_text)] {
        let sandbox = story_sandbox("develop\n");
        add_hook(&sandbox, hook);
        let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off", "--set", "sprint.max_cycles=2"]);
        assert_exit(&output, 3);
        assert!(join_lines(&output.stderr).contains(expected), "{hook}: {}", output.stderr);
        assert_eq!(run_git(&sandbox, &["log", "--format=%s", "main"]), "Begin\n");
    }
}

#[test]
fn work_that_takes_back_a_commit_of_the_branch_is_told_and_asked() {
    let sandbox =
        story_sandbox("develop\ncp old_mill src/mill.sh 2>/dev/null || echo 'grind() { cat; }' > src/mill.sh\n");
    sandbox.write_file("src/mill.sh", "grind() { sort; }\n");
    commit_all(&sandbox, "Grind finer");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off"]);
    assert_exit(&output, 3);
    let commit = run_git(&sandbox, &["rev-parse", "HEAD"]);
    let expected = format!("the work takes back commit {} \"Grind finer\" (src/mill.sh)", &commit[..10]);
    assert!(session_prompt(&sandbox, "develop-2").contains(&expected), "{}", output.stderr);
    assert!(join_lines(&output.stderr).contains(&format!("needs an answer: {expected}")), "{}", output.stderr);
    assert_eq!(sandbox.read_file("src/mill.sh"), "grind() { sort; }\n");
    // A task that names the file may do so.
    let sandbox = loop_sandbox("echo one > src/lib.txt\npromise\n");
    sandbox.write_file("src/lib.txt", "two\n");
    commit_all(&sandbox, "Write two");
    assert_exit(&sandbox.run_tribunal(&["loop", "run", "-p", "Have src/lib.txt say one again"]), 0);
    assert_eq!(sandbox.read_file("src/lib.txt"), "one\n");
}

#[test]
fn one_file_that_is_as_it_was_is_a_line_of_the_report() {
    let sandbox = loop_sandbox("echo one > src/lib.txt\npromise\n");
    sandbox.write_file("src/lib.txt", "two\n");
    sandbox.write_file("src/other.txt", "two\n");
    commit_all(&sandbox, "Write two");
    assert_exit(&sandbox.run_tribunal(&["loop", "run", "-p", "Repair the numbers"]), 0);
    let commit = run_git(&sandbox, &["rev-parse", "HEAD~1"]);
    let report = join_lines(&sandbox.run_tribunal(&["report"]).stdout);
    let expected = format!("look at: the work has src/lib.txt as it was before commit {}", &commit[..10]);
    assert!(report.contains(&expected), "{report}");
}

/// Tests for pytest, which no check runs here.
const TESTS: &str =
    "def test_grinds():\n    assert grind(1)\n    assert grind(2)\n\n\ndef test_stops():\n    assert stop()\n";

#[test]
fn tests_that_are_removed_skipped_or_emptied_are_asked_about() {
    let weaken = |text: &str| format!("develop\ncat > tests/test_mill.py <<'EOF'\n{text}EOF\n");
    let cases = [
        (
            TESTS.replace("def test_stops():\n    assert stop()\n", ""),
            "the work removes the test `test_stops` in tests/test_mill.py",
        ),
        (
            TESTS.replace("def test_stops", "@pytest.mark.skip\ndef test_stops"),
            "the work skips the test `test_stops` in tests/test_mill.py",
        ),
        (TESTS.replace("assert stop()", "pass"), "the work empties the test `test_stops` in tests/test_mill.py"),
    ];
    for (weakened, expected) in cases {
        let sandbox = story_sandbox(&weaken(&weakened));
        sandbox.write_file("tests/test_mill.py", TESTS);
        commit_all(&sandbox, "Test the mill");
        let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off"]);
        assert_exit(&output, 3);
        assert!(join_lines(&output.stderr).contains(&format!("D1 needs an answer: {expected}")), "{}", output.stderr);
        assert_eq!(sandbox.read_file("tests/test_mill.py"), TESTS);
    }
    // One that asserts less lands, and the report says so.
    let sandbox = story_sandbox(&weaken(&TESTS.replace("    assert grind(2)\n", "")));
    sandbox.write_file("tests/test_mill.py", TESTS);
    commit_all(&sandbox, "Test the mill");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2", "--review", "off"]), 0);
    let report = join_lines(&sandbox.run_tribunal(&["report"]).stdout);
    let expected =
        "look at: the work has fewer assertions in the test `test_grinds` in tests/test_mill.py: 1 instead of 2";
    assert!(report.contains(expected), "{report}");
}

#[test]
fn a_story_cannot_renumber_its_criteria_or_drop_what_it_depends_on() {
    let sandbox = story_sandbox(
        "develop\nsed -i 's/^1. Bran is removed./1. Flour is kept./; s/^2. Flour is kept./2. Bran is removed./; \
         s/^depends_on.*/depends_on: []/' $story\n",
    );
    let story = sandbox.read_file(STORY);
    sandbox.write_file(STORY, &format!("---\ndepends_on: [1-1]\n---\n{story}"));
    commit_all(&sandbox, "Say what it depends on");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off", "--set", "sprint.tolerate_untested=true"]);
    assert_exit(&output, 3);
    let said = join_lines(&output.stderr);
    assert!(said.contains("changes `depends_on` of its story from \"1-1\" to nothing"), "{said}");
    assert!(
        said.contains("changes the number of the criterion \"Bran is removed.\" of its story from \"1\" to \"2\""),
        "{said}"
    );
}

#[test]
fn ticking_a_plan_or_writing_notes_is_no_work_of_a_loop() {
    let sandbox = loop_sandbox(
        "mkdir -p .agent\necho note > .ralph/n.md\necho note > .agent/n.md\nsed -i 's/\\[ \\]/[x]/' .ralph/@fix_plan.md\npromise\n",
    );
    sandbox.write_file(".ralph/PROMPT.md", "Do the plan.\n");
    sandbox.write_file(".ralph/@fix_plan.md", "- [ ] Write out.txt\n");
    commit_all(&sandbox, "Plan");
    let output = sandbox.run_tribunal(&["loop", "run", "--max-iterations", "2"]);
    assert_exit(&output, 4);
    assert!(prompt_of(&sandbox, 2).contains("nothing was changed since the loop began"));
    assert_eq!(run_git(&sandbox, &["log", "--format=%s", "main"]), "Plan\nBegin\n");
}

#[test]
fn a_check_may_update_a_lock_file_and_the_session_sees_what_it_must_not_change() {
    let sandbox = story_sandbox("develop\nprintf '# AC1, AC2\\necho evil > src/mill.sh\\n' > tests/sift_test.sh\n");
    sandbox.write_file("Cargo.lock", "one\n");
    sandbox
        .write_file("check.sh", "echo two > Cargo.lock\nfor file in tests/*.sh; do [ ! -e $file ] || sh $file; done\n");
    commit_all(&sandbox, "Run all tests");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off", "--set", "sprint.max_cycles=2"]);
    assert_exit(&output, 3);
    let said = join_lines(&output.stderr);
    assert!(said.contains("`sh check.sh` changes Cargo.lock, which was put back"), "{said}");
    let told = session_prompt(&sandbox, "develop-2");
    assert!(told.contains("-grind() { cat; }\n+evil\n") && told.contains("src/mill.sh (put back)"), "{told}");
    // Alone it is no reason to refuse the work.
    write_story_agent(&sandbox, "develop\n");
    let output = sandbox.run_tribunal(&["decisions", "D1", "agent"]);
    assert_exit(&output, 0);
    assert_exit(&sandbox.run_tribunal(&["resume"]), 0);
    assert_eq!(sandbox.read_file("Cargo.lock"), "one\n");
}

#[test]
fn work_that_replaces_what_a_check_runs_is_asked_about_however_the_check_names_it() {
    for (check, file, text) in [
        ("nice -n 5 bash -e check.sh", "check.sh", "true"),
        ("S=check.sh; sh $S", "check.sh", "true"),
        ("for t in ci/*.sh; do sh $t || exit 1; done", "ci/lint.sh", "true"),
        ("ls ci/*.sh | xargs -n1 sh", "ci/lint.sh", "true"),
        ("find ci -name '*.sh' -exec sh {} +", "ci/lint.sh", "true"),
        ("make check", "check", ""),
        ("make check", "check/nothing.txt", ""),
        ("make check", "check.sh", "true"),
        ("for t in ci/*.sh; do . ./$t; done", "ci/lint.sh", "true"),
        ("sh check.sh", "ci/common.sh", "true"),
        ("sh check.sh", "unittest.py", ""),
        ("python3 -m unittest -q; true", "conftest.py", ""),
    ] {
        let sandbox = story_sandbox(&format!("develop\nmkdir -p ci $(dirname {file})\nprintf '{text}' > {file}\n"));
        sandbox.write_file("ci/lint.sh", "sh -n src/mill.sh\n");
        sandbox.write_file("ci/common.sh", "sh -n src/mill.sh\n");
        sandbox.write_file("check.sh", ". ./ci/common.sh\n");
        sandbox.write_file("Makefile", "check:\n\tsh check.sh\n");
        commit_all(&sandbox, "Set up checks");
        let checks = format!("checks=[{}]", serde_json::to_string(check).unwrap());
        let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off", "--set", &checks]);
        assert_exit(&output, 3);
        let said = join_lines(&output.stderr);
        assert!(said.contains(&format!("the work changes {file}, which the check")), "{check}: {said}");
    }
}

#[test]
fn a_new_file_of_another_story_is_named() {
    let other = "_bmad-output/implementation-artifacts/1-3-pack.md";
    let sandbox = story_sandbox(&format!("develop\nprintf '# Story 1.3\\n\\nStatus: review\\n' > {other}\n"));
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2", "--review", "off"]), 0);
    let report = join_lines(&sandbox.run_tribunal(&["report"]).stdout);
    assert!(report.contains(&format!("{other} is the file of another story")), "{report}");
}
