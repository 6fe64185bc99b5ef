//! Reviewing a code change, up to what is written into the user's files.

use std::{fs, process::Command};

use serde_json::Value;

use crate::common::{Ran, Sandbox};

const A: &str = "fn a() {\n    one();\n    todo_a();\n    three();\n}\n";
const B: &str = "fn b() {\n    one();\n    todo_b();\n    three();\n}\n";

/// The answers of the reviewers: two findings in round 1, none in later rounds.
const REVIEWS: &str = r#"
  round-1/review/*) echo 'findings:
- {severity: high, category: test, description: a is not done, quote: "todo_a();"}
- {severity: high, category: test, description: b is not done, quote: "todo_b();"}';;
  */review/*) echo 'findings: []';;
"#;
const DONE: &str =
    "fixes: [{id: F1, status: FIXED, fix_description: done}, {id: F2, status: FIXED, fix_description: done}]";

/// A repository whose work tree changes `src/a.rs` and `src/b.rs`, with an agent that runs `fix_commands` in its workspace.
/// `$ROOT` is the real tree.
fn changed(fix: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    for (path, text) in [("src/a.rs", A), ("src/b.rs", B)] {
        sandbox.write(path, &text.replace("todo", "two"));
    }
    sandbox.write("src/other.rs", "fn other() {}\n");
    agent(&sandbox, &format!("case $TRIBUNAL_TASK in {REVIEWS} */fix/*) {fix}\necho '{DONE}';; esac"));
    let path = sandbox.path("../agent.sh");
    sandbox.write(
        "tribunal.yaml",
        &format!(
            "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {path:?}]}}}}\n\
             tasks: {{retry_after: 0, required_issues: 0, max_concurrent_fixers: 1}}\n"
        ),
    );
    git(&sandbox, &["init", "-q", "-b", "main"]);
    commit(&sandbox);
    sandbox.write("src/a.rs", A);
    sandbox.write("src/b.rs", B);
    sandbox
}

fn agent(sandbox: &Sandbox, script: &str) {
    let root = sandbox.root().display();
    sandbox.write("../agent.sh", &format!("ROOT='{root}'\ncat >/dev/null\n{script}\n"));
}

fn git(sandbox: &Sandbox, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgSign=false"]).args(args);
    sandbox.at_home(&mut git);
    let output = git.current_dir(sandbox.root()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn commit(sandbox: &Sandbox) {
    git(sandbox, &["add", "-A"]);
    git(sandbox, &["commit", "-q", "-m", "x"]);
}

/// Sets a check that runs `script` in the real tree first, as if the user worked while checks run.
fn meanwhile(sandbox: &Sandbox, script: &str) {
    let root = sandbox.root().display();
    sandbox.write("../person.sh", &format!("cd '{root}'\n{script}\n"));
    sandbox.set(&format!("verify: [\"sh '{}'\"]", sandbox.path("../person.sh").display()));
    git(sandbox, &["commit", "-q", "-m", "x", "tribunal.yaml"]);
}

const FIX_BOTH: &str = "sed -i s/todo_/done_/ src/a.rs src/b.rs";

fn done(text: &str) -> String {
    text.replace("todo_", "done_")
}

fn review(sandbox: &Sandbox, code: i32) -> Ran {
    let ran = sandbox.run(&["review", "--work-tree"]);
    assert_eq!(ran.code, Some(code), "{}{}", ran.out, ran.err);
    ran
}

fn statuses(sandbox: &Sandbox) -> Vec<String> {
    let findings = sandbox.json(&["findings"]);
    let all = findings["findings"].as_array().unwrap().iter();
    all.map(|finding| finding["status"].as_str().unwrap().to_string()).collect()
}

/// Returns the reasons why patches did not land.
fn refusals(sandbox: &Sandbox) -> Vec<Value> {
    let events = sandbox.events(&["log", &sandbox.last_run()]);
    events.iter().filter(|event| event["kind"] == "patch_refused").map(|event| event["why"].clone()).collect()
}

/// Returns the diff that reviewers get first.
fn shown(sandbox: &Sandbox) -> String {
    let events = sandbox.events(&["log", &sandbox.last_run()]);
    let frozen = events
        .iter()
        .find(|event| event["kind"] == "effect_finished" && event["key"] == "round-1/freeze")
        .unwrap();
    frozen["reply"]["text"].as_str().unwrap().to_string()
}

fn answer(sandbox: &Sandbox, choice: &str, code: i32) -> Ran {
    let ran = sandbox.run(&["decisions", "D1", choice]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(code), "{}", ran.err);
    ran
}

#[test]
fn fixes_of_one_fixer_land_in_several_files_and_nowhere_else() {
    let sandbox = changed(FIX_BOTH);
    let index = fs::read(sandbox.path(".git/index")).unwrap();
    review(&sandbox, 0);
    assert_eq!(sandbox.read("src/a.rs"), done(A));
    assert_eq!(sandbox.read("src/b.rs"), done(B));
    assert_eq!(git(&sandbox, &["status", "--porcelain"]), " M src/a.rs\n M src/b.rs\n");
    assert!(fs::read(sandbox.path(".git/index")).unwrap() == index, "the index is the person's");
    assert_eq!(statuses(&sandbox), ["fixed", "fixed"]);
    assert!(sandbox.litter().is_empty());
}

#[test]
fn what_a_person_writes_while_checks_run_survives_beside_the_fix() {
    let sandbox = changed(FIX_BOTH);
    // The user appends to a file under repair, changes a file outside the change, and makes a third one executable.
    meanwhile(
        &sandbox,
        "grep -q mine src/a.rs || echo '// mine' >>src/a.rs\necho '// mine' >src/other.rs\nchmod +x src/b.rs",
    );
    review(&sandbox, 0);
    assert_eq!(sandbox.read("src/a.rs"), format!("{}// mine\n", done(A)));
    assert_eq!(sandbox.read("src/b.rs"), done(B));
    assert_eq!(sandbox.read("src/other.rs"), "// mine\n");
    assert!(git(&sandbox, &["diff", "--summary"]).contains("100644 => 100755 src/b.rs"));
    assert_eq!(statuses(&sandbox), ["fixed", "fixed"]);
}

#[test]
fn a_patch_that_leaves_its_paths_does_not_land_at_all() {
    let sandbox =
        changed(&format!("{FIX_BOTH}; echo '// theirs' >>src/other.rs; mkdir lib; touch lib/new.rs"));
    review(&sandbox, 3);
    let why = refusals(&sandbox);
    assert!(!why.is_empty());
    for why in why {
        assert_eq!(why["refused"], "outside", "{why}");
        assert_eq!(why["files"].to_string(), r#"["lib/new.rs","src/other.rs"]"#);
    }
    assert_eq!((sandbox.read("src/a.rs"), sandbox.read("src/b.rs")), (A.to_string(), B.to_string()));
    assert_eq!(git(&sandbox, &["status", "--porcelain"]), " M src/a.rs\n M src/b.rs\n");
    assert_eq!(statuses(&sandbox), ["blocked", "blocked"]);
    let asked = sandbox.run(&["decisions"]).out;
    assert!(asked.contains("F1: a is not done") && asked.contains("retry"), "{asked}");
}

#[test]
fn a_patch_that_breaks_a_check_does_not_land() {
    let sandbox = changed(FIX_BOTH);
    sandbox.set("verify: [\"! grep -n done_b src/b.rs\"]");
    git(&sandbox, &["commit", "-q", "-m", "x", "tribunal.yaml"]);
    review(&sandbox, 3);
    let why = refusals(&sandbox);
    assert_eq!(why[0]["refused"], "check", "{why:?}");
    assert!(why[0]["output"].as_str().unwrap().contains("done_b();"), "{why:?}");
    assert_eq!((sandbox.read("src/a.rs"), sandbox.read("src/b.rs")), (A.to_string(), B.to_string()));
}

#[test]
fn who_meets_a_person_s_edit_twice_asks_with_both_sides() {
    let sandbox = changed("sed -i 's/todo_.*/fixed();/' src/a.rs src/b.rs");
    // The user edits the same line of the same file again during each check.
    meanwhile(&sandbox, "sed -i 's|todo_b();|todo_b(); // mine|' src/b.rs");
    review(&sandbox, 3);
    let why = refusals(&sandbox);
    assert_eq!(why.iter().filter(|why| why["refused"] == "conflict").count(), 2, "{why:?}");
    assert_eq!((&why[0]["file"], &why[0]["line"]), (&"src/b.rs".into(), &3.into()));
    let asked = sandbox.run(&["decisions"]).out;
    assert!(
        asked.contains("There stands:") && asked.contains("// mine") && asked.contains("fixed();"),
        "{asked}"
    );
    assert_eq!(sandbox.read("src/a.rs"), A, "nothing of a patch lands if a part of it cannot");
    assert_eq!(sandbox.read("src/b.rs"), B.replace("todo_b();", "todo_b(); // mine // mine"));
}

/// A reviewed change whose agent wrote outside its workspace.
fn stray() -> Sandbox {
    let sandbox =
        changed(&format!("{FIX_BOTH}; echo '// past' >>$ROOT/src/other.rs; echo x >$ROOT/appeared.txt"));
    review(&sandbox, 3);
    assert_eq!(statuses(&sandbox), ["fixed", "fixed"], "the work goes on");
    let asked = sandbox.run(&["decisions"]).out;
    insta::allow_duplicates! {
        insta::assert_snapshot!(sandbox.normal(&asked), @r"
        [run].D1 for whoever works in this folder
          src/other.rs was changed while agents were at work, and not by a landing: was that you?
          keep     it was you, or it is fine as it is
          restore  put back what was there; what is there now is kept aside
        [run].D2 for whoever works in this folder
          appeared.txt appeared while agents were at work, and not by a landing: was that you?
          keep     it was you, or it is fine as it is
          restore  put back what was there; what is there now is kept aside
        ");
    }
    sandbox
}

#[test]
fn what_an_agent_writes_past_its_copy_may_be_kept() {
    let sandbox = stray();
    assert_eq!(sandbox.run(&["decisions", "D2", "keep"]).code, Some(0));
    answer(&sandbox, "keep", 0);
    assert_eq!(sandbox.read("src/other.rs"), "fn other() {}\n// past\n");
    assert_eq!(sandbox.read("appeared.txt"), "x\n");
}

#[test]
fn what_an_agent_writes_past_its_copy_may_be_put_back() {
    let sandbox = stray();
    assert_eq!(sandbox.run(&["decisions", "D2", "restore"]).code, Some(0));
    let ran = answer(&sandbox, "restore", 0);
    assert!(
        ran.err.contains("src/other.rs was put back as it was; what stood there is kept as"),
        "{}",
        ran.err
    );
    assert_eq!(sandbox.read("src/other.rs"), "fn other() {}\n");
    assert!(!sandbox.path("appeared.txt").exists());
    assert_eq!((sandbox.read("src/a.rs"), sandbox.read("src/b.rs")), (done(A), done(B)), "what landed stays");
}

#[test]
fn an_agent_that_fails_is_watched_as_well() {
    let sandbox = changed("");
    agent(&sandbox, "echo '// past' >$ROOT/src/other.rs; exit 1");
    let ran = sandbox.run(&["review", "--work-tree"]);
    assert_ne!(ran.code, Some(0));
    let asked = sandbox.run(&["decisions"]).out;
    assert!(asked.contains("src/other.rs was changed while agents were at work"), "{asked}{}", ran.err);
}

fn approving() -> Sandbox {
    let sandbox = changed(FIX_BOTH);
    let ran = sandbox.run(&["review", "--work-tree", "--approve", "each"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert_eq!((sandbox.read("src/a.rs"), sandbox.read("src/b.rs")), (A.to_string(), B.to_string()));
    let page = sandbox.read(&format!(".tribunal/awaiting-human/{}.D1.yaml", sandbox.last_run()));
    for line in ["--- a/src/a.rs", "+    done_a();", "-    todo_b();"] {
        assert!(page.contains(line), "{page}");
    }
    sandbox
}

#[test]
fn with_approve_each_a_patch_lands_on_a_person_s_word() {
    let sandbox = approving();
    // What the user wrote meanwhile stays.
    sandbox.write("src/a.rs", &format!("{A}// mine\n"));
    answer(&sandbox, "approve", 0);
    assert_eq!(sandbox.read("src/a.rs"), format!("{}// mine\n", done(A)));
    assert_eq!(sandbox.read("src/b.rs"), done(B));
    assert_eq!(statuses(&sandbox), ["fixed", "fixed"]);
}

#[test]
fn an_approved_patch_outlives_a_fault_of_the_environment() {
    let sandbox = approving();
    sandbox.set("verify: [no-such-command-anywhere]");
    sandbox.run(&["trust", "--yes"]);
    sandbox.run(&["resume", "--reload"]);
    answer(&sandbox, "approve", 5);
    assert_eq!(sandbox.read("src/a.rs"), A);
    // The command exists now; the fixer is not asked again.
    let settings = sandbox.read("tribunal.yaml").replace("no-such-command-anywhere", "'true'");
    sandbox.write("tribunal.yaml", &settings);
    sandbox.run(&["trust", "--yes"]);
    let ran = sandbox.run(&["resume", "--reload"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(sandbox.read("src/a.rs"), done(A));
    assert!(!ran.err.contains("fixer for"), "{}", ran.err);
}

#[test]
fn with_approve_each_a_rejected_patch_does_not_land() {
    let sandbox = approving();
    // The patch of the next fixer waits for approval, too.
    answer(&sandbox, "reject", 3);
    assert_eq!((sandbox.read("src/a.rs"), sandbox.read("src/b.rs")), (A.to_string(), B.to_string()));
    assert!(sandbox.run(&["decisions"]).out.contains(".D2 "));
}

#[test]
fn what_landed_is_shown_and_taken_back_and_what_was_changed_before_stays() {
    let sandbox = changed(FIX_BOTH);
    review(&sandbox, 0);
    let run = sandbox.last_run();
    insta::assert_snapshot!(sandbox.run(&["diff", &run]).out, @r"
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
    let ran = sandbox.run(&["undo", &run, "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!((sandbox.read("src/a.rs"), sandbox.read("src/b.rs")), (A.to_string(), B.to_string()));
}

#[test]
fn a_range_that_is_not_checked_out_is_reviewed_and_nothing_is_touched() {
    let sandbox = changed(FIX_BOTH);
    commit(&sandbox);
    git(&sandbox, &["switch", "-q", "--detach", "main~1"]);
    sandbox.write("src/a.rs", "mine\n");
    let ran = sandbox.run(&["review", "--diff", "main~1..main", "--no-fix"]);
    assert_eq!(statuses(&sandbox), ["open", "open"], "{}", ran.err);
    assert!(shown(&sandbox).contains("+    todo_a();"));
    assert_eq!(sandbox.read("src/a.rs"), "mine\n");
    assert_eq!(git(&sandbox, &["status", "--porcelain"]), " M src/a.rs\n");
}

#[test]
fn deleted_and_renamed_files_are_part_of_a_change() {
    let sandbox = changed(FIX_BOTH.replace("src/b.rs", "src/c.rs").as_str());
    git(&sandbox, &["mv", "src/b.rs", "src/c.rs"]);
    git(&sandbox, &["rm", "-q", "src/other.rs"]);
    review(&sandbox, 0);
    insta::assert_snapshot!(shown(&sandbox), @r"
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
    assert_eq!((sandbox.read("src/a.rs"), sandbox.read("src/c.rs")), (done(A), done(B)));
    assert!(!sandbox.path("src/b.rs").exists() && !sandbox.path("src/other.rs").exists());
}

#[test]
fn line_ends_that_git_converts_are_no_change_and_stay_as_they_are() {
    let sandbox = changed(FIX_BOTH);
    git(&sandbox, &["config", "core.autocrlf", "true"]);
    let crlf = |text: &str| text.replace('\n', "\r\n");
    sandbox.write("src/a.rs", &crlf(A));
    sandbox.write("src/b.rs", &crlf(B));
    review(&sandbox, 0);
    let changed: Vec<String> =
        shown(&sandbox).lines().filter(|line| line.starts_with(['+', '-'])).map(String::from).collect();
    insta::assert_snapshot!(changed.join("\n"), @r"
    --- a/src/a.rs
    +++ b/src/a.rs
    -    two_a();
    +    todo_a();
    --- a/src/b.rs
    +++ b/src/b.rs
    -    two_b();
    +    todo_b();
    ");
    assert_eq!((sandbox.read("src/a.rs"), sandbox.read("src/b.rs")), (crlf(&done(A)), crlf(&done(B))));
}

#[test]
fn what_a_build_leaves_where_git_does_not_look_is_no_part_of_a_repair() {
    let sandbox = changed(&format!(
        "{FIX_BOTH}; printf '\\000' > src/a.o; echo new > src/old.o; mkdir dist; echo x > dist/x"
    ));
    sandbox.write(".gitignore", "*.o\ndist/\n");
    sandbox.write("src/old.o", "mine\n");
    review(&sandbox, 0);
    assert_eq!((sandbox.read("src/a.rs"), sandbox.read("src/b.rs")), (done(A), done(B)));
    assert_eq!(sandbox.read("src/old.o"), "mine\n");
    assert!(!sandbox.path("src/a.o").exists() && !sandbox.path("dist").exists());
}

#[test]
fn a_new_file_does_not_land_through_a_link() {
    let sandbox = changed(&format!(
        "{FIX_BOTH}; mkdir -p tests; echo echo OWNED > tests/pre-commit; chmod +x tests/pre-commit"
    ));
    std::os::unix::fs::symlink(".git/hooks", sandbox.path("tests")).unwrap();
    review(&sandbox, 3);
    assert!(!sandbox.path(".git/hooks/pre-commit").exists());
    assert_eq!(sandbox.read("src/a.rs"), A);
}

#[test]
fn a_pipe_in_a_fixer_s_copy_hangs_nobody() {
    let sandbox = changed(&format!("{FIX_BOTH}; mkfifo src/pipe"));
    review(&sandbox, 3);
    assert_eq!(sandbox.read("src/a.rs"), A);
}

#[test]
fn a_mistyped_path_is_pointed_out_and_a_deleted_one_is_not() {
    let sandbox = changed(FIX_BOTH);
    fs::remove_file(sandbox.path("src/other.rs")).unwrap();
    let ran = sandbox.run(&["review", "--work-tree", "src/a.rs", "srcc", "--dry-run"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("srcc does not exist"), "{}", ran.err);
    let ran = sandbox.run(&["review", "--work-tree", "src/a.rs", "src/other.rs", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn an_empty_new_file_is_left_out_with_the_reason() {
    let sandbox = changed(FIX_BOTH);
    git(&sandbox, &["checkout", "-q", "."]);
    sandbox.write("pkg/__init__.py", "");
    let ran = sandbox.run(&["review", "--work-tree"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("pkg/__init__.py: it is empty"), "{}", ran.err);
}
