//! Bad input: each case has a message the user can act on and the right exit code, and nothing is lost.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::common::{Ran, Sandbox, copy_tribunal};

const QUIET: &str = "tasks: [{task: '*', steps: [{findings: []}]}]\n";

fn refused(sandbox: &Sandbox, args: &[&str]) -> Ran {
    let ran = sandbox.run(args);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(!sandbox.path(".tribunal").exists(), "nothing may be started");
    ran
}

#[test]
fn a_missing_subject() {
    let sandbox = Sandbox::scripted(QUIET);
    insta::assert_snapshot!(refused(&sandbox, &["review", "docs/prd.md"]).err, @r"
    [!] docs/prd.md does not exist
        Nothing was started and nothing was changed.
        1. check the path; it is looked up from the folder you are in
    ");
}

#[test]
fn a_slip_in_the_last_of_several_subjects_starts_none() {
    let sandbox = Sandbox::scripted(QUIET);
    refused(&sandbox, &["review", "plan.md", "paln.md"]);
}

#[test]
fn a_folder() {
    let sandbox = Sandbox::scripted(QUIET);
    fs::create_dir(sandbox.path("docs")).unwrap();
    insta::assert_snapshot!(refused(&sandbox, &["review", "docs"]).err, @r"
    [!] docs is a folder; a review is of one file
        Nothing was started and nothing was changed.
        1. name the files: tribunal review docs/FILE.md …
    ");
}

#[test]
fn an_empty_subject() {
    let sandbox = Sandbox::scripted(QUIET);
    sandbox.write("plan.md", " \n\n");
    insta::assert_snapshot!(refused(&sandbox, &["review", "plan.md"]).err, @r"
    [!] plan.md is empty; there is nothing to review
        Nothing was started and nothing was changed.
        1. write something first
    ");
}

#[test]
fn a_binary_subject() {
    let sandbox = Sandbox::scripted(QUIET);
    fs::write(sandbox.path("plan.md"), b"PK\x03\x04\x00\x00").unwrap();
    insta::assert_snapshot!(refused(&sandbox, &["review", "plan.md"]).err, @r"
    [!] plan.md is not text (it contains NUL bytes)
        Nothing was started and nothing was changed.
        1. name a text file (UTF-8)
    ");
    fs::write(sandbox.path("plan.md"), b"caf\xe9 in Latin-1").unwrap();
    assert!(refused(&sandbox, &["review", "plan.md"]).err.contains("it is no UTF-8"));
}

#[test]
fn a_subject_of_fifty_megabytes() {
    let sandbox = Sandbox::scripted(QUIET);
    fs::File::create(sandbox.path("plan.md")).unwrap().set_len(50 << 20).unwrap();
    insta::assert_snapshot!(refused(&sandbox, &["review", "plan.md"]).err, @r"
    [!] plan.md has 50.0 MB and a subject may have 1.0 MB
        Reviewers read the whole subject; beyond 1 MB none does it with care.
        1. split the file and review the parts
    ");
}

/// Returns whether permissions do not bind this user (root), so that the test has to change the user.
fn may_read_anything(sandbox: &Sandbox) -> bool {
    let path = sandbox.path("probe");
    fs::write(&path, "x").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    fs::read(&path).is_ok()
}

#[test]
fn an_unreadable_subject() {
    let sandbox = Sandbox::scripted(QUIET);
    fs::set_permissions(sandbox.path("plan.md"), fs::Permissions::from_mode(0o000)).unwrap();
    let ran = if may_read_anything(&sandbox) {
        as_nobody(&sandbox, &["review", "plan.md"])
    } else {
        sandbox.run(&["review", "plan.md"])
    };
    let Some(ran) = Some(ran).filter(|ran| ran.code != Some(125)) else { return };
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains("plan.md cannot be read: Permission denied"), "{}", ran.err);
    assert!(ran.err.contains("1. look at its permissions: ls -l plan.md"), "{}", ran.err);
}

#[test]
fn a_read_only_project() {
    let sandbox = Sandbox::scripted(QUIET);
    let privileged = may_read_anything(&sandbox);
    fs::set_permissions(sandbox.root(), fs::Permissions::from_mode(0o555)).unwrap();
    let ran = if privileged {
        as_nobody(&sandbox, &["review", "plan.md"])
    } else {
        sandbox.run(&["review", "plan.md"])
    };
    fs::set_permissions(sandbox.root(), fs::Permissions::from_mode(0o755)).unwrap();
    let Some(ran) = Some(ran).filter(|ran| ran.code != Some(125)) else { return };
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains(".tribunal: Permission denied"), "{}", ran.err);
    assert!(ran.err.contains("1. make the project's folder writable"), "{}", ran.err);
    assert!(!sandbox.path(".tribunal").exists());
}

/// Runs Tribunal as an unprivileged user. The exit code is 125 if that is not possible here.
fn as_nobody(sandbox: &Sandbox, args: &[&str]) -> Ran {
    use std::os::unix::process::CommandExt;
    // The unprivileged user must be able to reach the program.
    let program =
        sandbox.path("../").canonicalize().unwrap().join(format!("tribunal-{}", std::process::id()));
    copy_tribunal(&program);
    for folder in [sandbox.root(), sandbox.root().parent().unwrap()] {
        let traversable = fs::metadata(folder).unwrap().permissions().mode() | 0o055;
        fs::set_permissions(folder, fs::Permissions::from_mode(traversable)).unwrap();
    }
    let mut command = std::process::Command::new(&program);
    sandbox.at_home(&mut command);
    let output = command.args(args).current_dir(sandbox.root()).uid(65534).gid(65534).output();
    let _ = fs::remove_file(&program);
    match output {
        Ok(output) => Ran::of(output),
        Err(_) => Ran { code: Some(125), out: String::new(), err: String::new() },
    }
}

#[test]
fn a_subject_outside_the_project() {
    let sandbox = Sandbox::scripted(QUIET);
    let other = Sandbox::scripted(QUIET);
    let path = other.path("plan.md").display().to_string();
    let ran = sandbox.run(&["-C", ".", "review", &path]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("is outside the project"), "{}", ran.err);
}

#[test]
fn a_section_that_is_not_there() {
    let sandbox = Sandbox::scripted(QUIET);
    insta::assert_snapshot!(refused(&sandbox, &["review", "plan.md", "--section", "Gaols"]).err, @r"
    [!] plan.md has no section `Gaols`
        Its headings: Plan · Goals · Risks
        1. did you mean `Goals`?
    ");
}

#[test]
fn misspelt_settings() {
    let sandbox = Sandbox::scripted(QUIET);
    sandbox.write("tribunal.yaml", "tier: 2\nagents:\n  use: [x]\nlimits:\n  max_review_round: 5\n");
    let ran = refused(&sandbox, &["review", "plan.md"]);
    insta::assert_snapshot!(sandbox.normal(&ran.err), @r"
    [!] [project]/tribunal.yaml, line 5: `limits:` has no setting `max_review_round`
        It stands in: max_review_round: 5
        Nothing was started.
        1. did you mean `max_review_rounds`?
    ");
}

#[test]
fn broken_settings() {
    let sandbox = Sandbox::scripted(QUIET);
    sandbox.write("tribunal.yaml", "tier: 2\nagents:\n  use: [x\nverify: []\n");
    let ran = refused(&sandbox, &["review", "plan.md"]);
    let said = sandbox.normal(&ran.err);
    assert!(said.starts_with("[!] [project]/tribunal.yaml, line "), "{said}");
    assert!(said.contains("1. see what is allowed: tribunal schema settings"), "{said}");
}

#[test]
fn no_agent_or_an_unknown_one() {
    let sandbox = Sandbox::scripted(QUIET);
    let ran = refused(&sandbox, &["review", "plan.md", "--agent", "scriptde"]);
    assert!(ran.err.contains("did you mean `scripted`?"), "{}", ran.err);
    fs::remove_file(sandbox.path("tribunal.yaml")).unwrap();
    // This path has no client, even if the machine has some installed.
    let ran = Ran::of(sandbox.command(&["review", "plan.md"]).env("PATH", sandbox.home()).output().unwrap());
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(!sandbox.path(".tribunal").exists(), "nothing may be started");
    assert!(ran.err.contains("[!] no agent is set"), "{}", ran.err);
    assert!(ran.err.contains("tribunal demo"), "{}", ran.err);
}

#[test]
fn a_secret_in_the_settings() {
    let sandbox = Sandbox::scripted(QUIET);
    let token = format!("gh{}_{}", "p", "a1B2".repeat(9));
    sandbox.write(
        "tribunal.yaml",
        &format!("agents: {{use: [mine], mine: {{driver: command, argv: [agent, --token, {token}]}}}}\n"),
    );
    let ran = refused(&sandbox, &["review", "plan.md"]);
    assert!(!ran.err.contains(&token), "{}", ran.err);
    insta::assert_snapshot!(ran.err, @r"
    [!] the settings contain what looks like a secret: agent `mine`: agent --token [masked:github]
        What cannot be shown cannot be trusted. Nothing was started.
        1. put it into an environment variable that the agent or the check reads itself
    ");
}

#[test]
fn a_secret_in_the_person_s_own_settings() {
    let sandbox = Sandbox::scripted(QUIET);
    let token = format!("gh{}_{}", "p", "a1B2".repeat(9));
    let ran = refused(&sandbox, &["review", "plan.md", "--set", &format!("verify=[check {token}]")]);
    insta::assert_snapshot!(ran.err, @r"
    [!] the settings contain what looks like a secret: check [masked:github]
        Settings are recorded with the run, and nothing secret is ever recorded. Nothing was started.
        1. put it into an environment variable that the agent or the check reads itself
    ");
}

#[test]
fn a_command_that_is_not_there() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(refused(&sandbox, &["reviw", "plan.md"]).err, @r"
    [!] there is no command `reviw`
        1. did you mean `review`?
        2. see what can be typed: tribunal --help
    ");
    let document = sandbox.json(&["reviw"]);
    assert_eq!((&document["schema"], &document["exit"]), (&"tribunal.error/1".into(), &2.into()));
    assert_eq!(document["todo"][0], "did you mean `review`?");
    // Arguments after `--` are not options of Tribunal.
    assert_eq!(sandbox.run(&["reviw", "--", "--json"]).out, "");
    let help = sandbox.run(&["review", "--help"]);
    assert_eq!((help.code, help.err.as_str()), (Some(0), ""));
    assert!(help.out.contains("Usage: tribunal review"), "{}", help.out);
    let version = sandbox.json(&["--version"]);
    assert_eq!(version["schema"], "tribunal.version/1");
    assert!(sandbox.run(&["-V"]).out.starts_with("tribunal "));
}

#[test]
fn errors_are_json_too_when_asked_for() {
    let sandbox = Sandbox::scripted(QUIET);
    let document = sandbox.json(&["review", "absent.md"]);
    assert_eq!(document["schema"], "tribunal.error/1");
    assert_eq!(document["exit"], 2);
}

#[test]
fn a_run_that_is_not_there() {
    let sandbox = Sandbox::scripted(QUIET);
    sandbox.run(&["review", "plan.md"]);
    for args in [["log", "nope"], ["status", "nope"], ["findings", "nope"], ["resume", "nope"]] {
        let ran = sandbox.run(&args);
        assert_eq!(ran.code, Some(2), "{args:?}");
        assert!(
            ran.err.contains("there is no run nope in this project") && ran.err.contains("tribunal runs"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_newer_journal_is_read_and_not_written() {
    let sandbox = Sandbox::scripted(QUIET);
    sandbox.run(&["review", "plan.md"]);
    // SQLite keeps the format number of the file in four bytes at offset 60.
    let path = sandbox.path(".tribunal/journal.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&path, bytes).unwrap();
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("was written by a newer Tribunal (format 99"), "{}", ran.err);
    let runs = sandbox.run(&["runs"]);
    assert_eq!(runs.code, Some(0));
    assert!(runs.out.contains("resolved"), "{}", runs.out);
}
