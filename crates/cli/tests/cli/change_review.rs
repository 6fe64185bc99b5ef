//! Reviewing a code change, up to what is written into the user's files.

use std::{fs, process::Command};

use serde_json::Value;

use crate::common::{CONFIRM_REPAIRS, CommandOutput, Sandbox};

const FILE_A: &str = "fn a() {\n    one();\n    todo_a();\n    three();\n}\n";
const FILE_B: &str = "fn b() {\n    one();\n    todo_b();\n    three();\n}\n";

/// The answers of the reviewers: two findings in round 1, none in later rounds.
const REVIEW_SCRIPT: &str = r#"
  round-1/review/*) echo 'findings:
- {severity: high, category: test, description: a is not done, quote: "todo_a();"}
- {severity: high, category: test, description: b is not done, quote: "todo_b();"}';;
  */review/*) echo 'findings: []';;
"#;
const FIXES_ANSWER: &str =
    "fixes: [{id: F1, status: FIXED, fix_description: done}, {id: F2, status: FIXED, fix_description: done}]";

/// A repository whose work tree changes `src/a.rs` and `src/b.rs`, with an agent that runs `fix_commands` in its workspace.
/// `$ROOT` is the real tree.
fn repository_with_change(fix_commands: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    for (path, text) in [("src/a.rs", FILE_A), ("src/b.rs", FILE_B)] {
        sandbox.write_file(path, &text.replace("todo", "two"));
    }
    sandbox.write_file("src/other.rs", "fn other() {}\n");
    write_agent(
        &sandbox,
        &format!(
            "case $TRIBUNAL_TASK in {REVIEW_SCRIPT} {CONFIRM_REPAIRS} */fix/*) {fix_commands}\necho '{FIXES_ANSWER}';; esac"
        ),
    );
    let path = sandbox.path_of("../agent.sh");
    sandbox.write_file(
        "tribunal.yaml",
        &format!(
            "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {path:?}]}}}}\n\
             tasks: {{retry_after: 0, required_issues: 0, max_concurrent_fixers: 1}}\n"
        ),
    );
    run_git(&sandbox, &["init", "-q", "-b", "main"]);
    commit_all(&sandbox);
    sandbox.write_file("src/a.rs", FILE_A);
    sandbox.write_file("src/b.rs", FILE_B);
    sandbox
}

fn write_agent(sandbox: &Sandbox, script: &str) {
    let root = sandbox.root_dir().display();
    sandbox.write_file("../agent.sh", &format!("ROOT='{root}'\ncat >/dev/null\n{script}\n"));
}

fn run_git(sandbox: &Sandbox, args: &[&str]) -> String {
    let mut git_command = Command::new("git");
    git_command.args(["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgSign=false"]).args(args);
    sandbox.set_home_env(&mut git_command);
    let output = git_command.current_dir(sandbox.root_dir()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn commit_all(sandbox: &Sandbox) {
    run_git(sandbox, &["add", "-A"]);
    run_git(sandbox, &["commit", "-q", "-m", "x"]);
}

/// Sets a check that runs `script` in the real tree first, as if the user worked while checks run.
fn edit_during_checks(sandbox: &Sandbox, script: &str) {
    let root = sandbox.root_dir().display();
    sandbox.write_file("../person.sh", &format!("cd '{root}'\n{script}\n"));
    sandbox
        .append_setting(&format!("baseline: false\nverify: [\"sh '{}'\"]", sandbox.path_of("../person.sh").display()));
    run_git(sandbox, &["commit", "-q", "-m", "x", "tribunal.yaml"]);
}

const FIX_BOTH: &str = "sed -i s/todo_/done_/ src/a.rs src/b.rs";

fn fixed_text(text: &str) -> String {
    text.replace("todo_", "done_")
}

fn review_change(sandbox: &Sandbox, expected_code: i32) -> CommandOutput {
    let output = sandbox.run_tribunal(&["review", "--work-tree"]);
    assert_eq!(output.exit_code, Some(expected_code), "{}{}", output.stdout, output.stderr);
    output
}

fn finding_statuses(sandbox: &Sandbox) -> Vec<String> {
    let findings = sandbox.run_json(&["findings"]);
    let finding_list = findings["findings"].as_array().unwrap().iter();
    finding_list.map(|finding| finding["status"].as_str().unwrap().to_string()).collect()
}

/// Returns the reasons why patches did not land.
fn refusal_events(sandbox: &Sandbox) -> Vec<Value> {
    let events = sandbox.run_events(&["log", &sandbox.last_run_id()]);
    events.iter().filter(|event| event["kind"] == "patch_refused").map(|event| event["why"].clone()).collect()
}

/// Returns the diff that reviewers get first.
fn first_shown_diff(sandbox: &Sandbox) -> String {
    let events = sandbox.run_events(&["log", &sandbox.last_run_id()]);
    let frozen =
        events.iter().find(|event| event["kind"] == "effect_finished" && event["key"] == "round-1/freeze").unwrap();
    frozen["reply"]["text"].as_str().unwrap().to_string()
}

fn answer_and_resume(sandbox: &Sandbox, choice: &str, expected_code: i32) -> CommandOutput {
    let output = sandbox.run_tribunal(&["decisions", "D1", choice]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(expected_code), "{}", output.stderr);
    output
}

#[test]
fn fixes_of_one_fixer_land_in_several_files_and_nowhere_else() {
    let sandbox = repository_with_change(FIX_BOTH);
    let index = fs::read(sandbox.path_of(".git/index")).unwrap();
    review_change(&sandbox, 0);
    assert_eq!(sandbox.read_file("src/a.rs"), fixed_text(FILE_A));
    assert_eq!(sandbox.read_file("src/b.rs"), fixed_text(FILE_B));
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), " M src/a.rs\n M src/b.rs\n");
    assert!(fs::read(sandbox.path_of(".git/index")).unwrap() == index, "the index is the person's");
    assert_eq!(finding_statuses(&sandbox), ["fixed", "fixed"]);
    assert!(sandbox.temporary_leftovers().is_empty());
}

#[test]
fn edits_of_the_user_while_checks_run_survive_beside_the_fix() {
    let sandbox = repository_with_change(FIX_BOTH);
    // The user appends to a file under repair, changes a file outside the change, and makes a third one executable.
    edit_during_checks(
        &sandbox,
        "grep -q mine src/a.rs || echo '// mine' >>src/a.rs\necho '// mine' >src/other.rs\nchmod +x src/b.rs",
    );
    review_change(&sandbox, 0);
    assert_eq!(sandbox.read_file("src/a.rs"), format!("{}// mine\n", fixed_text(FILE_A)));
    assert_eq!(sandbox.read_file("src/b.rs"), fixed_text(FILE_B));
    assert_eq!(sandbox.read_file("src/other.rs"), "// mine\n");
    assert!(run_git(&sandbox, &["diff", "--summary"]).contains("100644 => 100755 src/b.rs"));
    assert_eq!(finding_statuses(&sandbox), ["fixed", "fixed"]);
}

#[test]
fn a_patch_that_touches_other_paths_does_not_land_at_all() {
    let sandbox =
        repository_with_change(&format!("{FIX_BOTH}; echo '// theirs' >>src/other.rs; mkdir lib; touch lib/new.rs"));
    review_change(&sandbox, 3);
    let refused_patches = refusal_events(&sandbox);
    assert!(!refused_patches.is_empty());
    for refused_patch in refused_patches {
        assert_eq!(refused_patch["refused"], "outside", "{refused_patch}");
        assert_eq!(refused_patch["files"].to_string(), r#"["lib/new.rs","src/other.rs"]"#);
    }
    assert_eq!(
        (sandbox.read_file("src/a.rs"), sandbox.read_file("src/b.rs")),
        (FILE_A.to_string(), FILE_B.to_string())
    );
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), " M src/a.rs\n M src/b.rs\n");
    assert_eq!(finding_statuses(&sandbox), ["blocked", "blocked"]);
    let questions = sandbox.run_tribunal(&["decisions"]).stdout;
    assert!(questions.contains("F1: a is not done") && questions.contains("retry"), "{questions}");
}

#[test]
fn a_patch_that_breaks_a_check_does_not_land() {
    let sandbox = repository_with_change(FIX_BOTH);
    sandbox.append_setting("verify: [\"! grep -n done_b src/b.rs\"]");
    run_git(&sandbox, &["commit", "-q", "-m", "x", "tribunal.yaml"]);
    review_change(&sandbox, 3);
    let refused_patches = refusal_events(&sandbox);
    assert_eq!(refused_patches[0]["refused"], "check", "{refused_patches:?}");
    assert!(refused_patches[0]["output"].as_str().unwrap().contains("done_b();"), "{refused_patches:?}");
    assert_eq!(
        (sandbox.read_file("src/a.rs"), sandbox.read_file("src/b.rs")),
        (FILE_A.to_string(), FILE_B.to_string())
    );
}

#[test]
fn a_fix_that_conflicts_twice_with_the_user_is_asked_about_with_both_sides() {
    let sandbox = repository_with_change("sed -i 's/todo_.*/fixed();/' src/a.rs src/b.rs");
    // The user edits the same line of the same file again during each check.
    edit_during_checks(&sandbox, "sed -i 's|todo_b();|todo_b(); // mine|' src/b.rs");
    review_change(&sandbox, 3);
    let refused_patches = refusal_events(&sandbox);
    assert_eq!(refused_patches.iter().filter(|why| why["refused"] == "conflict").count(), 2, "{refused_patches:?}");
    assert_eq!((&refused_patches[0]["file"], &refused_patches[0]["line"]), (&"src/b.rs".into(), &3.into()));
    let questions = sandbox.run_tribunal(&["decisions"]).stdout;
    assert!(
        questions.contains("Current text:") && questions.contains("// mine") && questions.contains("fixed();"),
        "{questions}"
    );
    assert_eq!(sandbox.read_file("src/a.rs"), FILE_A, "nothing of a patch lands if a part of it cannot");
    assert_eq!(sandbox.read_file("src/b.rs"), FILE_B.replace("todo_b();", "todo_b(); // mine // mine"));
}

/// A reviewed change whose agent wrote outside its workspace.
fn change_with_strays() -> Sandbox {
    let sandbox =
        repository_with_change(&format!("{FIX_BOTH}; echo '// past' >>$ROOT/src/other.rs; echo x >$ROOT/appeared.txt"));
    review_change(&sandbox, 3);
    assert_eq!(finding_statuses(&sandbox), ["fixed", "fixed"], "the work goes on");
    let questions = sandbox.run_tribunal(&["decisions"]).stdout;
    insta::allow_duplicates! {
        insta::assert_snapshot!(sandbox.normalize_output(&questions), @"
        [run].D1 (the user of this directory)
          src/other.rs was changed, appeared.txt appeared while agents were running, but not by applying a patch. Was that you?
          keep     it was you, or it is fine: keep everything as it is now
          restore  it was not you: put back everything as it was (what is there now is kept in .tribunal/parked)
        ");
    }
    sandbox
}

#[test]
fn writes_outside_the_workspace_can_be_kept() {
    let sandbox = change_with_strays();
    answer_and_resume(&sandbox, "keep", 0);
    assert_eq!(sandbox.read_file("src/other.rs"), "fn other() {}\n// past\n");
    assert_eq!(sandbox.read_file("appeared.txt"), "x\n");
}

#[test]
fn writes_outside_the_workspace_can_be_undone() {
    let sandbox = change_with_strays();
    let output = answer_and_resume(&sandbox, "restore", 0);
    assert!(output.stderr.contains("restored src/other.rs (the changed version is kept as"), "{}", output.stderr);
    assert_eq!(sandbox.read_file("src/other.rs"), "fn other() {}\n");
    assert!(!sandbox.path_of("appeared.txt").exists());
    assert_eq!(
        (sandbox.read_file("src/a.rs"), sandbox.read_file("src/b.rs")),
        (fixed_text(FILE_A), fixed_text(FILE_B)),
        "what landed stays"
    );
}

#[test]
fn writes_of_a_failing_agent_outside_its_workspace_are_noticed_too() {
    let sandbox = repository_with_change("");
    write_agent(&sandbox, "echo '// past' >$ROOT/src/other.rs; exit 1");
    let output = sandbox.run_tribunal(&["review", "--work-tree"]);
    assert_ne!(output.exit_code, Some(0));
    let questions = sandbox.run_tribunal(&["decisions"]).stdout;
    assert!(questions.contains("src/other.rs was changed while agents were running"), "{questions}{}", output.stderr);
}

#[test]
fn a_file_comes_back_where_a_link_has_taken_its_place() {
    let sandbox = repository_with_change("");
    write_agent(&sandbox, "ln -sf a.rs $ROOT/src/other.rs; exit 1");
    assert_ne!(sandbox.run_tribunal(&["review", "--work-tree"]).exit_code, Some(0));
    let questions = sandbox.run_tribunal(&["decisions"]).stdout;
    assert!(questions.contains("src/other.rs became a symlink to a.rs while agents were running"), "{questions}");
    let decisions = sandbox.run_json(&["decisions"]);
    let all_decisions = decisions["decisions"].as_array().unwrap();
    let decision = all_decisions.iter().find(|decision| decision["about"]["about"] == "strayed").unwrap();
    let decision_id = decision["id"].as_str().unwrap();
    assert_eq!(sandbox.run_tribunal(&["decisions", decision_id, "restore"]).exit_code, Some(0));
    write_agent(&sandbox, "exit 1");
    sandbox.run_tribunal(&["resume"]);
    assert!(!sandbox.path_of("src/other.rs").is_symlink());
    assert_eq!(sandbox.read_file("src/other.rs"), "fn other() {}\n");
}

fn change_awaiting_approval() -> Sandbox {
    let sandbox = repository_with_change(FIX_BOTH);
    let output = sandbox.run_tribunal(&["review", "--work-tree", "--approve", "each"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert_eq!(
        (sandbox.read_file("src/a.rs"), sandbox.read_file("src/b.rs")),
        (FILE_A.to_string(), FILE_B.to_string())
    );
    let decision_page = sandbox.read_file(&format!(".tribunal/awaiting-human/{}.D1.yaml", sandbox.last_run_id()));
    for line in ["--- a/src/a.rs", "+    done_a();", "-    todo_b();"] {
        assert!(decision_page.contains(line), "{decision_page}");
    }
    sandbox
}

#[test]
fn with_approve_each_a_patch_lands_when_the_user_approves_it() {
    let sandbox = change_awaiting_approval();
    // What the user wrote meanwhile stays.
    sandbox.write_file("src/a.rs", &format!("{FILE_A}// mine\n"));
    answer_and_resume(&sandbox, "approve", 0);
    assert_eq!(sandbox.read_file("src/a.rs"), format!("{}// mine\n", fixed_text(FILE_A)));
    assert_eq!(sandbox.read_file("src/b.rs"), fixed_text(FILE_B));
    assert_eq!(finding_statuses(&sandbox), ["fixed", "fixed"]);
}

#[test]
fn an_approved_patch_outlives_a_fault_of_the_environment() {
    let sandbox = change_awaiting_approval();
    // A program behind `&&` is not looked for before the run starts.
    sandbox.append_setting("verify: [cd . && no-such-command-anywhere]");
    sandbox.run_tribunal(&["trust", "--yes"]);
    sandbox.run_tribunal(&["resume", "--reload"]);
    answer_and_resume(&sandbox, "approve", 5);
    assert_eq!(sandbox.read_file("src/a.rs"), FILE_A);
    // The command exists now; the fixer is not asked again.
    let settings = sandbox.read_file("tribunal.yaml").replace("cd . && no-such-command-anywhere", "'true'");
    sandbox.write_file("tribunal.yaml", &settings);
    sandbox.run_tribunal(&["trust", "--yes"]);
    let output = sandbox.run_tribunal(&["resume", "--reload"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(sandbox.read_file("src/a.rs"), fixed_text(FILE_A));
    assert!(!output.stderr.contains("fixer for"), "{}", output.stderr);
}

#[test]
fn with_approve_each_a_rejected_patch_does_not_land() {
    let sandbox = change_awaiting_approval();
    // The patch of the next fixer waits for approval, too.
    answer_and_resume(&sandbox, "reject", 3);
    assert_eq!(
        (sandbox.read_file("src/a.rs"), sandbox.read_file("src/b.rs")),
        (FILE_A.to_string(), FILE_B.to_string())
    );
    assert!(sandbox.run_tribunal(&["decisions"]).stdout.contains(".D2 "));
}

#[test]
fn landed_changes_can_be_shown_and_undone_and_earlier_edits_stay() {
    let sandbox = repository_with_change(FIX_BOTH);
    review_change(&sandbox, 0);
    let run_id = sandbox.last_run_id();
    insta::assert_snapshot!(sandbox.run_tribunal(&["diff", &run_id]).stdout, @r"
    --- a/src/a.rs
    +++ b/src/a.rs
    @@ -1,5 +1,5 @@
     fn a() {
         one();
    -    todo_a();
    +    done_a();
         three();
     }
    --- a/src/b.rs
    +++ b/src/b.rs
    @@ -1,5 +1,5 @@
     fn b() {
         one();
    -    todo_b();
    +    done_b();
         three();
     }
    ");
    let output = sandbox.run_tribunal(&["undo", &run_id, "--yes"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(
        (sandbox.read_file("src/a.rs"), sandbox.read_file("src/b.rs")),
        (FILE_A.to_string(), FILE_B.to_string())
    );
}

#[test]
fn a_range_that_is_not_checked_out_is_reviewed_and_nothing_is_touched() {
    let sandbox = repository_with_change(FIX_BOTH);
    commit_all(&sandbox);
    run_git(&sandbox, &["switch", "-q", "--detach", "main~1"]);
    sandbox.write_file("src/a.rs", "mine\n");
    let output = sandbox.run_tribunal(&["review", "--diff", "main~1..main", "--no-fix"]);
    assert_eq!(finding_statuses(&sandbox), ["open", "open"], "{}", output.stderr);
    assert!(first_shown_diff(&sandbox).contains("+    todo_a();"));
    assert_eq!(sandbox.read_file("src/a.rs"), "mine\n");
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), " M src/a.rs\n");
}

#[test]
fn deleted_and_renamed_files_are_part_of_a_change() {
    let sandbox = repository_with_change(FIX_BOTH.replace("src/b.rs", "src/c.rs").as_str());
    run_git(&sandbox, &["mv", "src/b.rs", "src/c.rs"]);
    run_git(&sandbox, &["rm", "-q", "src/other.rs"]);
    review_change(&sandbox, 0);
    insta::assert_snapshot!(first_shown_diff(&sandbox), @r"
    --- a/src/a.rs
    +++ b/src/a.rs
    @@ -1,5 +1,5 @@
     fn a() {
         one();
    -    two_a();
    +    todo_a();
         three();
     }
    --- a/src/b.rs
    +++ b/src/c.rs
    @@ -1,5 +1,5 @@
     fn b() {
         one();
    -    two_b();
    +    todo_b();
         three();
     }
    --- a/src/other.rs
    +++ /dev/null
    @@ -1 +0,0 @@
    -fn other() {}
    ");
    assert_eq!(
        (sandbox.read_file("src/a.rs"), sandbox.read_file("src/c.rs")),
        (fixed_text(FILE_A), fixed_text(FILE_B))
    );
    assert!(!sandbox.path_of("src/b.rs").exists() && !sandbox.path_of("src/other.rs").exists());
}

#[test]
fn line_endings_that_git_converts_are_no_change_and_stay_as_they_are() {
    let sandbox = repository_with_change(FIX_BOTH);
    run_git(&sandbox, &["config", "core.autocrlf", "true"]);
    let to_crlf = |text: &str| text.replace('\n', "\r\n");
    sandbox.write_file("src/a.rs", &to_crlf(FILE_A));
    sandbox.write_file("src/b.rs", &to_crlf(FILE_B));
    review_change(&sandbox, 0);
    let changed_lines: Vec<String> =
        first_shown_diff(&sandbox).lines().filter(|line| line.starts_with(['+', '-'])).map(String::from).collect();
    insta::assert_snapshot!(changed_lines.join("\n"), @r"
    --- a/src/a.rs
    +++ b/src/a.rs
    -    two_a();
    +    todo_a();
    --- a/src/b.rs
    +++ b/src/b.rs
    -    two_b();
    +    todo_b();
    ");
    assert_eq!(
        (sandbox.read_file("src/a.rs"), sandbox.read_file("src/b.rs")),
        (to_crlf(&fixed_text(FILE_A)), to_crlf(&fixed_text(FILE_B)))
    );
}

#[test]
fn ignored_build_products_are_not_part_of_a_fix() {
    let sandbox = repository_with_change(&format!(
        "{FIX_BOTH}; printf '\\000' > src/a.o; echo new > src/old.o; mkdir dist; echo x > dist/x"
    ));
    sandbox.write_file(".gitignore", "*.o\ndist/\n");
    sandbox.write_file("src/old.o", "mine\n");
    review_change(&sandbox, 0);
    assert_eq!(
        (sandbox.read_file("src/a.rs"), sandbox.read_file("src/b.rs")),
        (fixed_text(FILE_A), fixed_text(FILE_B))
    );
    assert_eq!(sandbox.read_file("src/old.o"), "mine\n");
    assert!(!sandbox.path_of("src/a.o").exists() && !sandbox.path_of("dist").exists());
}

#[test]
fn a_new_file_does_not_land_through_a_symlink() {
    let sandbox = repository_with_change(&format!(
        "{FIX_BOTH}; mkdir -p tests; echo echo OWNED > tests/pre-commit; chmod +x tests/pre-commit"
    ));
    std::os::unix::fs::symlink(".git/hooks", sandbox.path_of("tests")).unwrap();
    review_change(&sandbox, 3);
    assert!(!sandbox.path_of(".git/hooks/pre-commit").exists());
    assert_eq!(sandbox.read_file("src/a.rs"), FILE_A);
}

#[test]
fn a_named_pipe_in_the_workspace_of_a_fixer_blocks_nothing() {
    let sandbox = repository_with_change(&format!("{FIX_BOTH}; mkfifo src/pipe"));
    review_change(&sandbox, 3);
    assert_eq!(sandbox.read_file("src/a.rs"), FILE_A);
}

#[test]
fn a_mistyped_path_is_refused_and_a_deleted_one_is_not() {
    let sandbox = repository_with_change(FIX_BOTH);
    fs::remove_file(sandbox.path_of("src/other.rs")).unwrap();
    let output = sandbox.run_tribunal(&["review", "--work-tree", "src/a.rs", "srcc", "--dry-run"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stdout);
    assert!(output.stderr.contains("srcc does not exist"), "{}", output.stderr);
    let output = sandbox.run_tribunal(&["review", "--work-tree", "src/a.rs", "src/other.rs", "--dry-run"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
}

#[test]
fn an_empty_new_file_is_left_out_with_the_reason() {
    let sandbox = repository_with_change(FIX_BOTH);
    run_git(&sandbox, &["checkout", "-q", "."]);
    sandbox.write_file("pkg/__init__.py", "");
    let output = sandbox.run_tribunal(&["review", "--work-tree"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("pkg/__init__.py: empty file"), "{}", output.stderr);
}
