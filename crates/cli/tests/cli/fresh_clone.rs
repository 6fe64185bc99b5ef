//! What lands passes its checks in a fresh clone of the branch, also if the workspace has more than git commits.

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::{commit_all, loop_sandbox, prompt_of, run_git},
    sprint_runs::join_lines,
    story_sandbox::{session_prompt, story_sandbox, write_story_agent},
};

/// Runs every test of the project.
const CHECK: &str = "for test in tests/*.sh; do [ ! -e $test ] || sh $test || exit 1; done\n";
/// A test that needs a helper, which git ignores by its name.
const HIDDEN_HELPER: &str = "develop
mkdir -p tests/lib
echo 'ready=yes' > tests/lib/helper.local
printf '# AC1, AC2\\n. ./tests/lib/helper.local\\n' > tests/sift_test.sh
";

fn assert_exit(output: &CommandOutput, exit_code: i32) {
    assert_eq!(output.exit_code, Some(exit_code), "{}{}", output.stdout, output.stderr);
}

fn sandbox_with_check(agent_script: &str) -> Sandbox {
    let sandbox = story_sandbox(agent_script);
    sandbox.write_file(".gitignore", "*.local\nvendor/\nbuild/\n");
    sandbox.write_file("check.sh", CHECK);
    commit_all(&sandbox, "Run all tests");
    sandbox
}

/// Whether the checks pass in a clone that git makes of the branch.
fn passes_in_clone(sandbox: &Sandbox) -> bool {
    run_git(sandbox, &["clone", "-q", ".", "../fresh"]);
    std::process::Command::new("sh")
        .arg("check.sh")
        .current_dir(sandbox.path_of("../fresh"))
        .status()
        .unwrap()
        .success()
}

#[test]
fn a_story_whose_test_needs_an_ignored_file_is_sent_back() {
    for place in [&[][..], &["--in-place"]] {
        let repair = "printf '# AC1, AC2\\n. ./src/sift.sh\\n' > tests/sift_test.sh\n";
        let script = format!("if [ $n = 1 ]; then\n{HIDDEN_HELPER}\nelse\ndevelop\n{repair}fi\n");
        let sandbox = sandbox_with_check(&script);
        assert_exit(&sandbox.run_tribunal(&[&["sprint", "1-2", "--review", "off"], place].concat()), 0);
        let told = session_prompt(&sandbox, "develop-2");
        assert!(told.contains("in a fresh clone of the commit, which has only what git commits"), "{told}");
        assert!(told.contains("(only the workspace has tests/lib/"), "{told}");
        assert!(passes_in_clone(&sandbox));
    }
}

#[test]
fn a_story_that_is_never_green_in_a_clone_waits() {
    // A repository of its own in the work is no part of the commit.
    let script = "develop
git init -q lib/tool && echo ready=yes > lib/tool/tool.sh
printf '# AC1, AC2\\n. ./lib/tool/tool.sh\\n' > tests/sift_test.sh
";
    // Where the agent's git directory is while checks run.
    let in_git_dir = "develop
echo ready=yes > .git/helper.sh
printf '# AC1, AC2\\n. ../kept-agent-git/helper.sh\\n' > tests/sift_test.sh
";
    let line_ends = "develop\necho 'tests/*.sh text eol=crlf' > .gitattributes\n";
    for agent_script in [HIDDEN_HELPER, script, in_git_dir, line_ends] {
        let sandbox = sandbox_with_check(agent_script);
        let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off", "--set", "sprint.max_cycles=2"]);
        assert_exit(&output, 3);
        let said = join_lines(&output.stderr);
        assert!(
            said.contains("finished work was refused 2 times: `sh check.sh` failed with exit code 1 in a fresh clone"),
            "{said}"
        );
        assert_eq!(run_git(&sandbox, &["log", "--format=%s", "main"]), "Run all tests\nBegin\n");
        // The user can do without.
        write_story_agent(&sandbox, agent_script);
        assert_exit(&sandbox.run_tribunal(&["decisions", "D1", "agent"]), 0);
        assert_exit(&sandbox.run_tribunal(&["resume", "--reload", "--set", "workspace.fresh_clone=false"]), 0);
        assert!(!passes_in_clone(&sandbox));
    }
}

#[test]
fn a_clone_is_set_up_before_its_checks_run_with_what_the_commit_has() {
    let script = "develop\n[ $n = 1 ] && tool=own || tool=set-up\necho $tool > build/tool\n\
         echo \"# AC1, AC2\n[ \\$(cat build/tool) = $tool ]\" > tests/sift_test.sh\n";
    let sandbox = sandbox_with_check(script);
    sandbox.write_file("setup.sh", "mkdir -p build\necho set-up > build/tool\n");
    sandbox.write_file("check.sh", &format!("[ -e build/tool ] || exit 7\n{CHECK}"));
    commit_all(&sandbox, "Set up");
    let setup = ["--set", "workspace.setup=[\"sh setup.sh\"]"];
    assert_exit(&sandbox.run_tribunal(&[&["sprint", "1-2", "--review", "off"][..], &setup].concat()), 0);
    let told = session_prompt(&sandbox, "develop-2");
    assert!(told.contains("`sh check.sh` failed with exit code 1 in a fresh clone of the commit"), "{told}");
    // Work that breaks the set-up does not land either.
    let sandbox = sandbox_with_check("develop\necho 'exit 3' > setup.sh\n");
    sandbox.write_file("setup.sh", "mkdir -p build\necho set-up > build/tool\n");
    commit_all(&sandbox, "Set up");
    let cycles = ["--set", "sprint.max_cycles=1"];
    let output = sandbox.run_tribunal(&[&["sprint", "1-2", "--review", "off"][..], &setup, &cycles].concat());
    assert_exit(&output, 3);
    let said = join_lines(&output.stderr);
    assert!(said.contains("`sh setup.sh` failed with exit code 3 in a fresh clone of the commit"), "{said}");
}

#[test]
fn what_also_fails_in_a_clone_without_the_work_is_said_and_not_held_against_it() {
    let sandbox = sandbox_with_check("develop\n");
    sandbox.write_file("check.sh", "[ -e vendor/tool ]\n");
    commit_all(&sandbox, "Need a tool");
    sandbox.write_file("vendor/tool", "here\n");
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off", "--in-place"]);
    assert_exit(&output, 0);
    let said = join_lines(&output.stderr);
    assert!(said.contains("failed with exit code 1 in a fresh clone, and without the work as well"), "{said}");
    assert!(said.contains("name them in `workspace.seed`"), "{said}");
    assert_eq!(sandbox.run_json(&["report"])["stories"][0]["checks"][0]["in_fresh_clone"], false);
    // What is named there is in the clone.
    let sandbox = sandbox_with_check("develop\n");
    sandbox.write_file("check.sh", "[ -e vendor/tool ]\n");
    commit_all(&sandbox, "Need a tool");
    sandbox.write_file("vendor/tool", "here\n");
    let seed = ["--set", "workspace.seed=[vendor]"];
    let output = sandbox.run_tribunal(&[&["sprint", "1-2", "--review", "off", "--in-place"][..], &seed].concat());
    assert_exit(&output, 0);
    assert!(!output.stderr.contains("in a fresh clone"), "{}", output.stderr);
}

#[test]
fn a_check_that_only_warns_is_not_repeated_in_a_clone() {
    let sandbox = sandbox_with_check("develop\nmkdir -p vendor\necho here > vendor/tool\n");
    let checks = "checks=[{command: 'test -e vendor/tool || test ! -e src/sift.sh', on_failure: warn}]";
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--review", "off", "--set", checks]);
    assert_exit(&output, 0);
    assert!(!output.stderr.contains("exit code 1"), "{}", output.stderr);
    let check = sandbox.run_json(&["report"])["stories"][0]["checks"][0].clone();
    assert_eq!(
        (&check["passed"], &check["only_warns"], &check["in_fresh_clone"]),
        (&true.into(), &true.into(), &false.into())
    );
}

#[test]
fn a_loop_lands_only_what_passes_in_a_clone() {
    let sandbox = loop_sandbox(
        "mkdir -p tests\necho cache > cache.local\n[ $n = 1 ] && file=helper.local || file=helper.txt\n\
         echo yes > $file\necho \"cat $file\" > tests/work.sh\npromise\n",
    );
    sandbox.write_file(".gitignore", "*.local\n");
    sandbox.write_file("check.sh", "for test in tests/*.sh; do [ ! -e $test ] || sh $test || exit 1; done\n");
    commit_all(&sandbox, "Test");
    let checks = ["--set", "checks=[\"sh check.sh\"]"];
    let output =
        sandbox.run_tribunal(&[&["loop", "run", "-p", "Do it", "--max-iterations", "2"][..], &checks].concat());
    assert_exit(&output, 0);
    let told = prompt_of(&sandbox, 2);
    assert!(told.contains("`sh check.sh` failed with exit code 1 in a fresh clone of the commit"), "{told}");
    assert!(told.contains("(only the workspace has cache.local, helper.local)"), "{told}");
    assert!(passes_in_clone(&sandbox));
}

#[test]
fn the_report_has_every_warning_and_names_the_checked_tree() {
    let script = format!("if [ $n = 1 ]; then\n{HIDDEN_HELPER}\nelse\ndevelop\nfi\n");
    let sandbox = sandbox_with_check(&script);
    assert_exit(&sandbox.run_tribunal(&["sprint", "1-2", "--review", "off"]), 0);
    let report = sandbox.run_json(&["report"]);
    let check = &report["stories"][0]["checks"][0];
    let tree = run_git(&sandbox, &["rev-parse", "HEAD^{tree}"]);
    let checked = check["tree"].as_str().unwrap();
    assert_eq!(checked, tree.trim());
    assert_eq!(check["written_after"].as_array().unwrap().len(), 2, "{check}");
    assert_eq!(check["in_fresh_clone"], true);
    let texts: Vec<&str> =
        report["warnings"].as_array().unwrap().iter().map(|warning| warning["text"].as_str().unwrap()).collect();
    assert!(texts.iter().any(|text| text.contains("in a fresh clone of the commit")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("no rule reads tests like")), "{texts:?}");
    let shown = join_lines(&sandbox.run_tribunal(&["report"]).stdout);
    assert!(
        shown.contains(&format!(
            "1 check passed on tree {} (but for 2 files that Tribunal wrote), also in a fresh clone",
            &checked[..10]
        )),
        "{shown}"
    );
    assert!(texts.iter().all(|text| shown.contains(&text.split_whitespace().collect::<Vec<_>>().join(" ")[..60])));
}
