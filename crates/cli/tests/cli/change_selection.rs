//! Selecting a code change on the command line, up to the start of its run.

use std::{fs, process::Command};

use crate::common::{CommandOutput, Sandbox};

const NO_FINDINGS_SCRIPT: &str = "tasks: [{task: '*', steps: [{findings: []}]}]\n";

/// A repository with one commit, and a change in its work tree.
fn repository_with_change() -> Sandbox {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file("src/main.rs", "fn main() {}\n");
    run_git(&sandbox, &["init", "-q", "-b", "main"]);
    commit_all(&sandbox);
    sandbox.write_file("src/main.rs", "fn main() {\n    run();\n}\n");
    sandbox.write_file("src/run.rs", "pub fn run() {}\n");
    sandbox
}

fn run_git(sandbox: &Sandbox, args: &[&str]) {
    let mut git_command = Command::new("git");
    git_command.args(["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgSign=false"]).args(args);
    sandbox.set_home_env(&mut git_command);
    let output = git_command.current_dir(sandbox.root_dir()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn commit_all(sandbox: &Sandbox) {
    run_git(sandbox, &["add", "-A"]);
    run_git(sandbox, &["commit", "-q", "-m", "x"]);
}

fn refusal_text(sandbox: &Sandbox, args: &[&str]) -> String {
    let CommandOutput { exit_code, stderr, .. } = sandbox.run_tribunal(&[&["review"], args].concat());
    assert_eq!(exit_code, Some(2), "{stderr}");
    assert!(!sandbox.path_of(".tribunal").exists(), "nothing may be started");
    sandbox.normalize_output(&stderr)
}

#[test]
fn a_dry_run_shows_files_size_story_and_skipped_files() {
    let sandbox = repository_with_change();
    sandbox.write_file("logo.png", "\0");
    sandbox.write_file("docs/1-2-run.md", "# Story 1.2\n\n## Acceptance Criteria\n\n1. It runs.\n");
    let output = sandbox.run_tribunal(&["review", "--work-tree", "--dry-run"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    insta::assert_snapshot!(output.stderr, @"
    note: checking against the acceptance criteria of docs/1-2-run.md
    note: not reviewed: logo.png: binary
    ");
    insta::assert_snapshot!(output.stdout, @"
    would review change work tree (dry run, nothing was started)
      change:   3 files with 1 KB of diff
                docs/1-2-run.md
                src/main.rs
                src/run.rs
      story:    docs/1-2-run.md
      level:    minimal (tier 0)
      reviewer: adversarial by scripted
      prompts:  about 701 tokens in round 1
      limits:   3 rounds, 3 fix iterations a round, 50 findings, 120 min, $5.00 or 1000000 tokens
    ");
    let plan_document = sandbox.run_json(&["review", "--work-tree", "--dry-run", "src"]);
    assert_eq!(plan_document["subject"]["range"], "work tree in src");
    assert_eq!(plan_document["subject"]["files"].as_array().unwrap().len(), 2);
    assert!(plan_document["diff_bytes"].as_u64().unwrap() > 100, "{plan_document}");
}

#[test]
fn a_big_change_is_split_into_several_runs_and_announced() {
    let sandbox = repository_with_change();
    for file_number in 0..450 {
        sandbox.write_file(&format!("gen/{}/f{file_number:03}.rs", file_number / 150), &format!("// {file_number}\n"));
    }
    let output = sandbox.run_tribunal(&["review", "--work-tree", "--dry-run"]);
    let titles: Vec<&str> = output.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    insta::assert_snapshot!(titles.join("\n"), @"
    would review change work tree (part 1 of 3) (dry run, nothing was started)
    would review change work tree (part 2 of 3) (dry run, nothing was started)
    would review change work tree (part 3 of 3) (dry run, nothing was started)
    3 runs, 3 in parallel; at most 6 agents at a time
    ");
    insta::assert_snapshot!(output.stderr, @"
    note: splitting 452 files with 74 KB of diff into 3 parts of at most 200 files and 256 KB
    note: each part is a separate run; reviewers see only their part
    ");
}

#[test]
fn a_change_that_is_too_big_is_refused_with_directories_to_narrow_it() {
    let sandbox = repository_with_change();
    for file_number in 0..2_100 {
        sandbox.write_file(&format!("gen/{}/f{file_number}.rs", file_number % 2), "x\n");
    }
    insta::assert_snapshot!(refusal_text(&sandbox, &["--work-tree"]), @"
    error: work tree is too large for one review: 2102 files
      A review has at most 10 parts, each with up to 200 files and 256 KB of diff.
      Nothing was started or changed. Narrow it to directories. The largest are:
      1. `tribunal review --work-tree gen/0/` (1050 files)
      2. `tribunal review --work-tree gen/1/` (1050 files)
      3. `tribunal review --work-tree src/` (2 files)
    ");
}

#[test]
fn a_range_that_is_not_checked_out_can_only_be_reviewed_without_fixing() {
    let sandbox = repository_with_change();
    commit_all(&sandbox);
    sandbox.write_file("src/main.rs", "fn main() { other() }\n");
    insta::assert_snapshot!(refusal_text(&sandbox, &["--diff", "main~1..main"]), @"
    error: the work tree differs from main~1..main in src/main.rs
      Fixes are applied to the work tree, so it must match what is reviewed. Nothing was started or changed.
      1. stash your own changes (`git stash`) and check out the end of the range (`git switch`)
      2. review without fixing: `tribunal review --diff 'main~1..main' --no-fix`
    ");
    let plan_document = sandbox.run_json(&["review", "--commit", "HEAD", "--no-fix", "--dry-run"]);
    assert!(plan_document["subject"]["end"].is_string(), "{plan_document}");
}

#[test]
fn mistyped_ranges_are_refused_with_the_command_to_type() {
    let sandbox = repository_with_change();
    insta::assert_snapshot!(refusal_text(&sandbox, &["--diff", "main"]), @"
    error: `main` is not a range
      Nothing was started or changed.
      1. review everything from there to HEAD: `tribunal review --diff main..HEAD`
      2. review only that commit: `tribunal review --commit main`
    ");
    insta::assert_snapshot!(refusal_text(&sandbox, &["--diff", "mian..HEAD"]), @"
    error: unknown revision `mian`
      Nothing was started or changed.
      1. list revisions: `git branch --all`, `git tag` or `git log --oneline`
      2. if it only exists on a remote: `git fetch`
    ");
    insta::assert_snapshot!(refusal_text(&sandbox, &["--work-tree", "scr"]), @"
    error: scr does not exist
      Nothing was started or changed.
      help: check the path; it is relative to the current directory
    ");
    insta::assert_snapshot!(refusal_text(&sandbox, &["--work-tree", ".."]), @"
    error: .. is outside the project [project]
      Nothing was started or changed.
      help: run Tribunal in the project that contains the file, or pass that project with `-C DIR`
    ");
    insta::assert_snapshot!(refusal_text(&sandbox, &["--work-tree", "--staged"]), @"
    error: `--work-tree` cannot be used with `--staged`
      help: for more information, try `tribunal review --help`
    ");
    insta::assert_snapshot!(refusal_text(&sandbox, &["--work-tree", "--section", "Goals"]), @"
    error: `--section` cannot be used with `--diff`, `--staged`, `--work-tree`, `--commit`
      help: for more information, try `tribunal review --help`
    ");
    insta::assert_snapshot!(refusal_text(&sandbox, &["--story", "plan.md", "plan.md"]), @"
    error: plan.md has no acceptance criteria
      There is nothing to check its change against.
      1. add numbered criteria under a heading `Acceptance Criteria`
      2. or review only the file: `tribunal review plan.md`
    ");
}

#[test]
fn outside_a_repository_a_change_is_refused_and_files_are_offered() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    insta::assert_snapshot!(refusal_text(&sandbox, &["--work-tree"]), @"
    error: [project] is not in a git repository
      Nothing was started or changed.
      1. change to the project directory, or pass it: `tribunal -C DIR review …`
      2. review files, which works without git: `tribunal review FILE`
    ");
}

#[test]
fn an_empty_change_is_nothing_to_review() {
    let sandbox = repository_with_change();
    let notice_for = |args: &[&str]| {
        let output = sandbox.run_tribunal(&[&["review"], args].concat());
        assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
        output.stderr
    };
    insta::assert_snapshot!(notice_for(&["--staged"]), @"note: nothing is staged; nothing to review");
    insta::assert_snapshot!(
        notice_for(&["--work-tree", "plan.md"]),
        @"note: no changes in work tree in plan.md; nothing to review"
    );
}

#[test]
fn a_story_that_is_named_must_have_criteria() {
    let sandbox = repository_with_change();
    insta::assert_snapshot!(refusal_text(&sandbox, &["--work-tree", "--story", "plan.md"]), @"
    error: plan.md has no acceptance criteria
      Headings in the file: Plan · Goals · Risks
      1. add numbered criteria under a heading `Acceptance Criteria`
      2. or leave out `--story`
    ");
    for story_number in [1, 2] {
        sandbox.write_file(&format!("docs/1-{story_number}-x.md"), "## Acceptance Criteria\n\n1. a\n");
    }
    let output = sandbox.run_tribunal(&["review", "--work-tree", "--dry-run"]);
    insta::assert_snapshot!(
        output.stderr,
        @"note: the change touches several stories (docs/1-1-x.md, docs/1-2-x.md); choose one with `--story FILE`"
    );
    let plan_document = sandbox.run_json(&["review", "--work-tree", "--dry-run", "--story", "docs/1-2-x.md"]);
    assert_eq!(plan_document["subject"]["story"], "docs/1-2-x.md");
}

#[test]
fn the_repository_of_the_user_is_not_written() {
    let sandbox = repository_with_change();
    run_git(&sandbox, &["add", "src/run.rs"]);
    let index = fs::read(sandbox.path_of(".git/index")).unwrap();
    for selection in [&["--staged"][..], &["--work-tree"], &["--commit", "HEAD"]] {
        let output = sandbox.run_tribunal(&[&["review", "--dry-run", "--no-fix"], selection].concat());
        assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    }
    assert!(fs::read(sandbox.path_of(".git/index")).unwrap() == index);
}
