//! What an agent can do between two steps of ours: while checks run, in the history of its clone, in what setup and notices run, in the
//! tests and the story that it is measured by.

use tribunal_supervise::probe_sandbox;

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::{commit_all, loop_sandbox, prompt_of, run_git, workspaces_left, write_agent},
    sprint_runs::{join_lines, sprint_sandbox},
    story_sandbox::{STORY, session_prompt, story_sandbox, write_story_agent},
};

fn assert_exit(output: &CommandOutput, exit_code: i32) {
    assert_eq!(output.exit_code, Some(exit_code), "{}{}", output.stdout, output.stderr);
}

/// Returns the run that the user started.
fn root_run(sandbox: &Sandbox) -> String {
    let document = sandbox.run_json(&["runs"]);
    let root = document["runs"].as_array().unwrap().iter().find(|row| row["parent"].is_null()).unwrap();
    root["run"].as_str().unwrap().to_string()
}

fn answer(sandbox: &Sandbox, decision_id: &str, choice: &str) -> CommandOutput {
    let root = root_run(sandbox);
    assert_exit(&sandbox.run_tribunal(&["decisions", &format!("{root}.{decision_id}"), choice]), 0);
    sandbox.run_tribunal(&["resume", &root])
}

/// A test that rewrites the code while the check runs it.
const REWRITING_TEST: &str =
    "printf '# AC1, AC2\\nfor f in src/sift.sh; do echo evil > $f; done\\n' > tests/sift_test.sh\n";
/// The check of the user runs all tests.
const TEST_RUNNER: &str = "for file in tests/*.sh; do [ ! -e $file ] || sh $file || exit 1; done\n";

fn rewriting_sandbox() -> Sandbox {
    let sandbox = story_sandbox(&format!("develop\n{REWRITING_TEST}"));
    sandbox.write_file("check.sh", TEST_RUNNER);
    commit_all(&sandbox, "Run all tests");
    sandbox
}

#[test]
fn a_check_that_rewrites_the_work_fails_and_the_work_does_not_land() {
    for place in [&["--review", "off"][..], &["--in-place"]] {
        let sandbox = rewriting_sandbox();
        let output = sandbox.run_tribunal(&[&["sprint", "1-2", "--set", "sprint.max_cycles=2"], place].concat());
        assert_exit(&output, 3);
        let expected = "`sh check.sh` changed files of the work: src/sift.sh (put back)";
        assert!(join_lines(&output.stderr).contains(expected), "{}", output.stderr);
        assert!(session_prompt(&sandbox, "develop-2").contains(expected));
        assert_eq!(run_git(&sandbox, &["log", "-1", "--format=%s"]), "Run all tests\n");
        assert!(!run_git(&sandbox, &["log", "--all", "-p"]).contains("evil\n"), "no commit has the rewritten file");
    }
}

#[test]
fn a_loop_does_not_land_what_its_check_has_rewritten() {
    let sandbox = loop_sandbox("echo good > out.txt\nprintf 'echo evil > out.txt\\n' > test.sh\npromise\n");
    sandbox.append_setting("checks: [\"[ ! -e test.sh ] || sh test.sh\"]");
    let output = sandbox.run_tribunal(&["loop", "run", "-p", "Write out.txt", "--max-iterations", "2"]);
    assert_exit(&output, 4);
    assert!(join_lines(&output.stderr).contains("changed files of the work: out.txt (put back)"), "{}", output.stderr);
    assert!(prompt_of(&sandbox, 2).contains("out.txt (put back)"));
    assert_eq!(run_git(&sandbox, &["log", "--format=%s", "main"]), "Begin\n");
}

#[test]
fn what_a_check_rewrites_after_a_rebase_does_not_land() {
    let root_of = |sandbox: &Sandbox| sandbox.root_dir().display().to_string();
    let sandbox = loop_sandbox("");
    // The test rewrites the file only once the branch has moved: in the check after the rebase.
    write_agent(
        &sandbox,
        &format!(
            "echo good > out.txt\nprintf '[ ! -e moved.txt ] || echo evil > out.txt\\n' > test.sh\n\
             [ $n -gt 1 ] || (cd {0} && echo x > moved.txt && git add moved.txt && git commit -q -m Moved)\npromise\n",
            root_of(&sandbox)
        ),
    );
    sandbox.append_setting("checks: [\"[ ! -e test.sh ] || sh test.sh\"]");
    // The agent could have made the commit, so the user is asked first.
    assert_exit(&sandbox.run_tribunal(&["loop", "run", "-p", "Write out.txt", "--max-iterations", "2"]), 3);
    let output = answer(&sandbox, "D1", "keep");
    assert_exit(&output, 4);
    assert!(join_lines(&output.stderr).contains("changed files of the work on what is to land"), "{}", output.stderr);
    assert_eq!(run_git(&sandbox, &["log", "--format=%s", "main"]), "Moved\nBegin\n");
}

#[test]
fn files_that_a_check_makes_are_named_and_do_not_land() {
    let sandbox = story_sandbox("develop\n");
    sandbox.write_file("check.sh", "echo report > coverage.xml\n");
    commit_all(&sandbox, "Measure the coverage");
    let output = sandbox.run_tribunal(&["sprint", "1-2"]);
    assert_exit(&output, 0);
    let expected = "`sh check.sh` made files that are not part of the work and that git does not ignore; they were removed: coverage.xml";
    assert!(join_lines(&output.stderr).contains(expected), "{}", output.stderr);
    assert!(!run_git(&sandbox, &["ls-files"]).contains("coverage.xml"));
}

/// A clone whose history was reset lacks the files of the user's last commits.
fn project_with_later_commits(sandbox: &Sandbox) {
    for name in ["one", "two"] {
        sandbox.write_file(&format!("src/{name}.sh"), &format!("{name}() {{ cat; }}\n"));
        commit_all(sandbox, &format!("Add {name}"));
    }
}

#[test]
fn a_clone_that_was_reset_does_not_take_back_commits_of_the_user() {
    let sandbox = story_sandbox("git reset -q --hard $(git rev-list --max-parents=0 HEAD)\ndevelop\n");
    project_with_later_commits(&sandbox);
    let output = sandbox.run_tribunal(&["sprint", "1-2"]);
    assert_exit(&output, 3);
    let lost = "the work deletes what its task does not name: src/one.sh, src/two.sh";
    let told = session_prompt(&sandbox, "develop-2");
    assert!(told.contains(lost), "{told}{}", output.stderr);
    assert!(join_lines(&output.stderr).contains(&format!("? D1 needs an answer: {lost}")), "{}", output.stderr);
    assert_eq!(run_git(&sandbox, &["log", "-1", "--format=%s"]), "Add two\n");
    // An agent that is told to puts them back.
    let restore = "for name in one two; do echo \"$name() { cat; }\" > src/$name.sh; done\ndevelop\n";
    write_story_agent(&sandbox, restore);
    assert_exit(&answer(&sandbox, "D1", "reject"), 0);
    assert!(
        session_prompt(&sandbox, "develop-3")
            .contains("the user wants this taken back: the work deletes what its task does not name: src/one.sh")
    );
    assert_eq!(run_git(&sandbox, &["diff", "--name-only", "--diff-filter=D", "HEAD~1"]), "");
}

#[test]
fn an_agent_that_puts_lost_files_back_lands_without_a_question() {
    let sandbox = story_sandbox(
        "case $n in 1) cp src/one.sh ../one; rm src/one.sh ;; *) cp ../one src/one.sh ;; esac\ndevelop\n",
    );
    project_with_later_commits(&sandbox);
    let output = sandbox.run_tribunal(&["sprint", "1-2"]);
    assert_exit(&output, 0);
    assert!(sandbox.path_of("src/one.sh").exists());
    assert_eq!(run_git(&sandbox, &["diff", "--name-only", "--diff-filter=D", "HEAD~1"]), "");
}

#[test]
fn a_loop_asks_before_it_loses_files_that_its_task_does_not_name() {
    let sandbox =
        loop_sandbox("git reset -q --hard $(git rev-list --max-parents=0 HEAD)\necho $n > out.txt\npromise\n");
    sandbox.write_file("src/users.txt", "of the user\n");
    sandbox.write_file("src/old.txt", "old\n");
    commit_all(&sandbox, "Add mine");
    let output = sandbox.run_tribunal(&["loop", "run", "-p", "Write out.txt and delete src/old.txt"]);
    assert_exit(&output, 3);
    let lost = "the work deletes what its task does not name: src/users.txt";
    assert!(prompt_of(&sandbox, 2).contains(lost));
    assert!(join_lines(&output.stderr).contains(&format!("needs an answer: {lost}")), "{}", output.stderr);
    assert_exit(&answer(&sandbox, "D1", "approve"), 0);
    assert!(!sandbox.path_of("src/users.txt").exists());
    let report = join_lines(&sandbox.run_tribunal(&["report"]).stdout);
    assert!(report.contains(&format!("look at: {lost} (you accepted that)")), "{report}");
}

/// A script that tries to leave a file beside the project, and does not fail if it cannot.
fn planting_script(sandbox: &Sandbox, name: &str) -> String {
    format!("(echo planted > {}) 2>/dev/null || true\n", sandbox.path_of(&format!("../{name}")).display())
}

/// Runs a command with nothing writable but what every process of a run may write.
fn run_strictly(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    let mut command = sandbox.tribunal_command(args);
    CommandOutput::from_output(command.env_remove("TRIBUNAL_SANDBOX__WRITE").output().unwrap())
}

#[test]
fn what_an_agent_wrote_into_setup_and_notices_runs_behind_the_kernel() {
    if !probe_sandbox().is_available() {
        return;
    }
    let sandbox = sprint_sandbox("");
    let (setup, notice) = (planting_script(&sandbox, "by-setup"), planting_script(&sandbox, "by-notice"));
    sandbox.write_file("setup.sh", "true\n");
    sandbox.write_file("tools/boot.sh", "true\n");
    sandbox.write_file("boot.sh", "sh tools/boot.sh && echo ready > ready.txt\n");
    sandbox.write_file("notify.sh", "true\n");
    sandbox.write_file(".gitignore", "ready.txt\n");
    commit_all(&sandbox, "Add scripts");
    // The first story rewrites them; the second one opens a clone, and notices follow.
    let agent =
        sandbox.read_file("../agent.sh").replace(" >> '", " 2>/dev/null >> '").replace(" > '", " 2>/dev/null > '");
    let rewrite = format!(
        "develop_any\ncat > setup.sh <<'EOF'\n{setup}EOF\ncp setup.sh tools/boot.sh\ncat > notify.sh <<'EOF'\n{notice}EOF\n"
    );
    sandbox.write_file("../agent.sh", &format!("{agent}{rewrite}"));
    sandbox
        .append_setting("workspace: {setup: [\"sh setup.sh\", \"sh boot.sh\"]}\nnotify: {command: \"sh notify.sh\"}");
    let output = run_strictly(&sandbox, &["sprint", "1-2", "2-1", "--review", "off"]);
    assert_exit(&output, 0);
    assert!(sandbox.read_file("setup.sh").contains("planted"), "the script has landed");
    for name in ["by-setup", "by-notice"] {
        assert!(!sandbox.path_of(&format!("../{name}")).exists(), "{name}: {}", output.stderr);
    }
    // What runs no file of the project is the user's own.
    sandbox.append_setting("limits: {max_cost: 4}");
    let told = sandbox.path_of("../told");
    let notify = format!("notify.command=echo told > {}", told.display());
    assert_exit(&run_strictly(&sandbox, &["sprint", "1-3", "--review", "off", "--set", &notify]), 0);
    assert!(told.exists());
}

/// A token as GitHub makes them, which no file of this repository contains.
fn token() -> String {
    format!("gh{}_{}", "p", "a1B2".repeat(9))
}

#[test]
fn a_commit_with_a_token_does_not_land() {
    let sandbox = story_sandbox(&format!("develop\necho 'call with {}' >> src/sift.sh\n", token()));
    let output = sandbox.run_tribunal(&["sprint", "1-2"]);
    assert_exit(&output, 3);
    let expected = "the work adds what looks like a secret (github) in src/sift.sh";
    assert!(session_prompt(&sandbox, "develop-2").contains(expected));
    assert!(join_lines(&output.stderr).contains(&format!("needs an answer: {expected}")), "{}", output.stderr);
    assert!(!output.stderr.contains(&token()));
    assert_eq!(run_git(&sandbox, &["log", "--format=%s", "main"]), "Begin\n");
}

#[test]
fn a_loop_that_takes_a_token_back_lands_without_the_commit_that_had_it() {
    let agent = format!("case $n in 1) echo {} > out.txt ;; *) echo clean > out.txt ;; esac\npromise\n", token());
    let sandbox = loop_sandbox(&agent);
    let output = sandbox.run_tribunal(&["loop", "run", "-p", "Write out.txt"]);
    assert_exit(&output, 0);
    assert!(prompt_of(&sandbox, 2).contains("adds what looks like a secret (github) in out.txt"));
    assert_eq!(sandbox.read_file("out.txt"), "clean\n");
    assert!(!run_git(&sandbox, &["log", "-p", "main"]).contains(&token()), "{}", output.stderr);
}

#[test]
fn deleted_tests_and_criteria_are_a_question_and_a_line_in_the_report() {
    let sandbox = story_sandbox("develop\nrm tests/old_test.sh\nsed -i '/^2. Flour/d; /Write tests/d' $story\n");
    sandbox.write_file("tests/old_test.sh", "true\n");
    sandbox
        .write_file(STORY, &sandbox.read_file(STORY).replace("I want to sift.", "I want tests/old_test.sh to pass."));
    commit_all(&sandbox, "Add a test");
    let output = sandbox.run_tribunal(&["sprint", "1-2"]);
    assert_exit(&output, 3);
    let question = "the work deletes tests: tests/old_test.sh; removes the criterion \"Flour is kept.\" from its story; removes the \
                    task \"Write tests (AC: 1, 2)\" from its story";
    assert!(join_lines(&output.stderr).contains(&format!("D1 needs an answer: {question}")), "{}", output.stderr);
    assert!(sandbox.path_of("tests/old_test.sh").exists());
    assert_exit(&answer(&sandbox, "D1", "approve"), 0);
    assert!(!sandbox.path_of("tests/old_test.sh").exists());
    let report = join_lines(&sandbox.run_tribunal(&["report"]).stdout);
    assert!(report.contains("look at: the work deletes tests: tests/old_test.sh; removes the criterion"), "{report}");
}

#[test]
fn verify_runs_a_check_that_became_a_link_as_it_was() {
    let sandbox = story_sandbox(
        "develop\necho broken >> src/sift.sh\necho true > src/ok.sh\nrm check.sh\nln -s src/ok.sh check.sh\n",
    );
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2", "--review", "off"]), 3);
    let verified = sandbox.run_tribunal(&["verify", "1-2"]);
    assert_exit(&verified, 3);
    let said = join_lines(&verified.stdout);
    assert!(said.contains("src/sift.sh") && said.contains("(with check.sh as before the work)"), "{said}");
    assert!(!said.contains("src/ok.sh:"), "the old script is not written through the link: {said}");
}

/// A directory that a check has closed hides neither what it rewrote nor what the work has.
#[test]
fn a_check_that_closes_a_directory_hides_nothing() {
    let closing_test = "printf '# AC1, AC2\\necho evil > src/sift.sh; chmod 0 src\\n' > tests/sift_test.sh\n";
    let sandbox = story_sandbox(&format!("develop\n{closing_test}"));
    sandbox.write_file("check.sh", TEST_RUNNER);
    commit_all(&sandbox, "Run all tests");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off", "--set", "sprint.max_cycles=1"]);
    assert_exit(&output, 3);
    assert!(
        join_lines(&output.stderr).contains("changed files of the work: src/sift.sh (put back)"),
        "{}",
        output.stderr
    );
}

#[test]
fn verify_runs_a_replaced_check_as_it_was_and_says_both() {
    let sandbox = story_sandbox("develop\necho 'broken' >> src/sift.sh\necho true > check.sh\n");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off"]);
    assert_exit(&output, 3);
    let question = "the work changes check.sh, which the check `sh check.sh` runs; `sh check.sh` failed with exit code 1 with check.sh as \
                    on main";
    assert!(join_lines(&output.stderr).contains(question), "{}", output.stderr);
    let report = join_lines(&sandbox.run_tribunal(&["report"]).stdout);
    assert!(report.contains("failed with exit code 1 with check.sh as on main"), "{report}");
    let verified = sandbox.run_tribunal(&["verify", "1-2"]);
    assert_exit(&verified, 3);
    let said = join_lines(&verified.stdout);
    assert!(said.contains("✓ `sh check.sh` passed"), "{said}");
    assert!(
        said.contains("✗ `sh check.sh` failed with exit code 1") && said.contains("(with check.sh as before the work)"),
        "{said}"
    );
    // After the user has approved it, the same holds for the checkout.
    assert_exit(&answer(&sandbox, "D1", "approve"), 0);
    let document = sandbox.run_json(&["verify", "1-2"]);
    assert_eq!(document["verified"], false, "{document}");
    assert_eq!(document["checks"][1]["with_base_scripts"][0], "check.sh");
}

#[test]
fn without_fresh_clones_the_question_about_a_script_says_nothing_of_the_old_one() {
    let sandbox = story_sandbox("develop\necho true > check.sh\n");
    let arguments = ["sprint", "1-2", "--review", "off", "--set", "workspace.fresh_clone=false"];
    let output = sandbox.run_tribunal(&arguments);
    assert_exit(&output, 3);
    let said = join_lines(&output.stderr);
    assert!(
        said.contains("the work changes check.sh, which the check `sh check.sh` runs") && !said.contains("as on main"),
        "{said}"
    );
}

/// What a script includes is a script of the check as well.
#[test]
fn an_included_script_is_run_as_it_was_by_the_run_and_by_verify() {
    let sandbox = story_sandbox("develop\necho broken >> src/sift.sh\necho true > ci/common.sh\n");
    sandbox.write_file("ci/common.sh", "for f in src/*.sh; do sh -n $f && sh -e $f || exit 1; done\n");
    sandbox.write_file("check.sh", ". ./ci/common.sh\n");
    commit_all(&sandbox, "Include a script");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off"]);
    assert_exit(&output, 3);
    let said = join_lines(&output.stderr);
    assert!(said.contains("`sh check.sh` failed with exit code 1 with ci/common.sh as on main"), "{said}");
    assert_exit(&answer(&sandbox, "D1", "approve"), 0);
    let document = sandbox.run_json(&["verify", "1-2"]);
    assert_eq!(document["verified"], false, "{document}");
    assert_eq!(document["checks"][1]["with_base_scripts"][0], "ci/common.sh");
}

/// Git in a check knows the work and nothing that the agent has told its own git.
#[test]
fn what_an_agent_tells_its_git_hides_nothing_from_a_check() {
    let hide = "git config core.fsmonitor 'touch ../ran; true'\n\
                git update-index --assume-unchanged src/mill.sh\necho '* -diff' > .git/info/attributes\n\
                mkdir -p .git/hooks; echo 'touch ../ran' > .git/hooks/post-index-change; chmod +x .git/hooks/post-index-change\n\
                rm -f ../ran\n";
    let sandbox = story_sandbox(&format!("develop\necho '# worse' >> src/mill.sh\n{hide}"));
    sandbox.write_file(
        "check.sh",
        "git status --porcelain > /dev/null; git diff HEAD -- src/mill.sh | grep -q worse && echo 'mill is worse' && exit 1\n\
         git diff --exit-code > /dev/null || { echo 'not staged'; exit 2; }\n",
    );
    commit_all(&sandbox, "Look at the mill");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off", "--set", "sprint.max_cycles=1"]);
    assert_exit(&output, 3);
    assert!(join_lines(&output.stderr).contains("failed with exit code 1: mill is worse"), "{}", output.stderr);
    let clones = workspaces_left(&sandbox);
    let [clone] = clones.as_slice() else { panic!("{clones:?}") };
    assert!(!clone.join("../ran").exists() && !clone.with_file_name("kept-agent-git").exists());
}
