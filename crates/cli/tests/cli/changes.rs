//! Selecting a code change on the command line, up to the start of its run.

use std::{fs, process::Command};

use crate::common::{Ran, Sandbox};

const QUIET: &str = "tasks: [{task: '*', steps: [{findings: []}]}]\n";

/// A repository with one commit, and a change in its work tree.
fn changed() -> Sandbox {
    let sandbox = Sandbox::scripted(QUIET);
    sandbox.write("src/main.rs", "fn main() {}\n");
    git(&sandbox, &["init", "-q", "-b", "main"]);
    commit(&sandbox);
    sandbox.write("src/main.rs", "fn main() {\n    run();\n}\n");
    sandbox.write("src/run.rs", "pub fn run() {}\n");
    sandbox
}

fn git(sandbox: &Sandbox, args: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgSign=false"]).args(args);
    sandbox.at_home(&mut git);
    let output = git.current_dir(sandbox.root()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn commit(sandbox: &Sandbox) {
    git(sandbox, &["add", "-A"]);
    git(sandbox, &["commit", "-q", "-m", "x"]);
}

fn refused(sandbox: &Sandbox, args: &[&str]) -> String {
    let Ran { code, err, .. } = sandbox.run(&[&["review"], args].concat());
    assert_eq!(code, Some(2), "{err}");
    assert!(!sandbox.path(".tribunal").exists(), "nothing may be started");
    sandbox.normal(&err)
}

#[test]
fn a_dry_run_shows_files_size_story_and_what_is_left_out() {
    let sandbox = changed();
    sandbox.write("logo.png", "\0");
    sandbox.write("docs/1-2-run.md", "# Story 1.2\n\n## Acceptance Criteria\n\n1. It runs.\n");
    let ran = sandbox.run(&["review", "--work-tree", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    insta::assert_snapshot!(ran.err, @r"
    [i] it has to meet the acceptance criteria of docs/1-2-run.md
    [i] left out: logo.png: binary
    ");
    insta::assert_snapshot!(ran.out, @r"
    change work tree would be reviewed; nothing was started
      change:   3 files with 1 KB of diff
                docs/1-2-run.md
                src/main.rs
                src/run.rs
      story:    docs/1-2-run.md
      level:    minimal (tier 0)
      reviewer: adversarial by scripted
      prompts:  about 684 tokens in round 1
      limits:   3 rounds, 3 fix iterations a round, 50 findings, 120 min, 5.00 in cost or 1000000 tokens
    ");
    let plan = sandbox.json(&["review", "--work-tree", "--dry-run", "src"]);
    assert_eq!(plan["subject"]["range"], "work tree in src");
    assert_eq!(plan["subject"]["files"].as_array().unwrap().len(), 2);
    assert!(plan["diff_bytes"].as_u64().unwrap() > 100, "{plan}");
}

#[test]
fn a_big_change_is_several_runs_and_says_so_first() {
    let sandbox = changed();
    for n in 0..450 {
        sandbox.write(&format!("gen/{}/f{n:03}.rs", n / 150), &format!("// {n}\n"));
    }
    let ran = sandbox.run(&["review", "--work-tree", "--dry-run"]);
    let titles: Vec<&str> = ran.out.lines().filter(|line| !line.starts_with(' ')).collect();
    insta::assert_snapshot!(titles.join("\n"), @r"
    change work tree (part 1 of 3) would be reviewed; nothing was started
    change work tree (part 2 of 3) would be reviewed; nothing was started
    change work tree (part 3 of 3) would be reviewed; nothing was started
    3 runs, 3 at once; at most 6 agents at a time
    ");
    insta::assert_snapshot!(ran.err, @r"
    [i] 452 files with 74 KB of diff are 3 parts of at most 200 files and 256 KB
    [i] each part is a run of its own; nobody looks across parts
    ");
}

#[test]
fn a_change_that_is_too_big_names_folders_to_narrow_it_to() {
    let sandbox = changed();
    for n in 0..2_100 {
        sandbox.write(&format!("gen/{}/f{n}.rs", n % 2), "x\n");
    }
    insta::assert_snapshot!(refused(&sandbox, &["--work-tree"]), @r"
    [!] work tree is too big for one review: 2102 files
        A review has at most 10 parts of 200 files and 256 KB of diff. Nothing was started and nothing was changed.
        Narrow it to folders; the biggest are:
        1. tribunal review --work-tree gen/0/    (1050 files)
        2. tribunal review --work-tree gen/1/    (1050 files)
        3. tribunal review --work-tree src/    (2 files)
    ");
}

#[test]
fn what_the_work_tree_does_not_have_is_only_reviewed() {
    let sandbox = changed();
    commit(&sandbox);
    sandbox.write("src/main.rs", "fn main() { other() }\n");
    insta::assert_snapshot!(refused(&sandbox, &["--diff", "main~1..main"]), @r"
    [!] the work tree has something else than main~1..main in src/main.rs
        Fixes land in the work tree, so it must have what is reviewed. Nothing was started and nothing was changed.
        1. check out what it ends in, without changes of your own: git stash, git switch
        2. review only: tribunal review --diff 'main~1..main' --no-fix
    ");
    let plan = sandbox.json(&["review", "--commit", "HEAD", "--no-fix", "--dry-run"]);
    assert!(plan["subject"]["end"].is_string(), "{plan}");
}

#[test]
fn slips_in_a_range_say_what_to_type() {
    let sandbox = changed();
    insta::assert_snapshot!(refused(&sandbox, &["--diff", "main"]), @r"
    [!] `main` is no range
        Nothing was started and nothing was changed.
        1. from there to HEAD: tribunal review --diff main..HEAD
        2. that commit alone: tribunal review --commit main
    ");
    insta::assert_snapshot!(refused(&sandbox, &["--diff", "mian..HEAD"]), @r"
    [!] there is no revision `mian` in this repository
        Nothing was started and nothing was changed.
        1. see which there are: git branch --all, git tag, git log --oneline
        2. if it is on a server: git fetch
    ");
    insta::assert_snapshot!(refused(&sandbox, &["--work-tree", "scr"]), @r"
    [!] scr does not exist
        Nothing was started and nothing was changed.
        1. check the path; it is looked up from the folder you are in
    ");
    insta::assert_snapshot!(refused(&sandbox, &["--work-tree", ".."]), @r"
    [!] .. is outside the project [project]
        Nothing was started and nothing was changed.
        1. run Tribunal in the project that the file belongs to, or name it with -C DIR
    ");
    insta::assert_snapshot!(refused(&sandbox, &["--work-tree", "--staged"]), @r"
    [!] `--work-tree` cannot be used together with `--staged`
        1. see what can be typed: tribunal review --help
    ");
    insta::assert_snapshot!(refused(&sandbox, &["--work-tree", "--section", "Goals"]), @r"
    [!] `--section <SECTION>` cannot be used together with `--diff <RANGE>`, `--staged`, `--work-tree`, `--commit <REV>`
        1. see what can be typed: tribunal review --help
    ");
    insta::assert_snapshot!(refused(&sandbox, &["--story", "plan.md", "plan.md"]), @r"
    [!] plan.md has no acceptance criteria
        Its change would be held against nothing.
        1. put them under a heading `Acceptance Criteria`, numbered
        2. or review the file alone: tribunal review plan.md
    ");
}

#[test]
fn outside_of_a_repository_files_can_still_be_reviewed() {
    let sandbox = Sandbox::scripted(QUIET);
    insta::assert_snapshot!(refused(&sandbox, &["--work-tree"]), @r"
    [!] [project] is not in a git repository
        Nothing was started and nothing was changed.
        1. go to the project, or name it: tribunal -C DIR review …
        2. without git, review files: tribunal review FILE
    ");
}

#[test]
fn nothing_changed_is_nothing_to_do() {
    let sandbox = changed();
    let says = |args: &[&str]| {
        let ran = sandbox.run(&[&["review"], args].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.err
    };
    insta::assert_snapshot!(says(&["--staged"]), @"[i] nothing is staged; there is nothing to review");
    insta::assert_snapshot!(
        says(&["--work-tree", "plan.md"]),
        @"[i] nothing changed in work tree in plan.md; there is nothing to review"
    );
}

#[test]
fn a_story_that_is_named_must_have_criteria() {
    let sandbox = changed();
    insta::assert_snapshot!(refused(&sandbox, &["--work-tree", "--story", "plan.md"]), @r"
    [!] plan.md has no acceptance criteria
        Its headings: Plan · Goals · Risks
        1. put them under a heading `Acceptance Criteria`, numbered
        2. or leave out --story
    ");
    for n in [1, 2] {
        sandbox.write(&format!("docs/1-{n}-x.md"), "## Acceptance Criteria\n\n1. a\n");
    }
    let ran = sandbox.run(&["review", "--work-tree", "--dry-run"]);
    insta::assert_snapshot!(
        ran.err,
        @"[i] it changes several stories (docs/1-1-x.md, docs/1-2-x.md); to hold it against one: --story FILE"
    );
    let plan = sandbox.json(&["review", "--work-tree", "--dry-run", "--story", "docs/1-2-x.md"]);
    assert_eq!(plan["subject"]["story"], "docs/1-2-x.md");
}

#[test]
fn nothing_of_the_person_s_repository_is_written() {
    let sandbox = changed();
    git(&sandbox, &["add", "src/run.rs"]);
    let index = fs::read(sandbox.path(".git/index")).unwrap();
    for which in [&["--staged"][..], &["--work-tree"], &["--commit", "HEAD"]] {
        let ran = sandbox.run(&[&["review", "--dry-run", "--no-fix"], which].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    }
    assert!(fs::read(sandbox.path(".git/index")).unwrap() == index);
}
