//! Bad input: each case has a message the user can act on and the right exit code, and nothing is lost.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::common::{CommandOutput, Sandbox, copy_tribunal};

const NO_FINDINGS_SCRIPT: &str = "tasks: [{task: '*', steps: [{findings: []}]}]\n";

fn assert_refused(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    let output = sandbox.run_tribunal(args);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(!sandbox.path_of(".tribunal").exists(), "nothing may be started");
    output
}

#[test]
fn a_missing_subject_is_refused() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    insta::assert_snapshot!(assert_refused(&sandbox, &["review", "docs/prd.md"]).stderr, @"
    error: docs/prd.md does not exist
      Nothing was started or changed.
      help: check the path; it is relative to the current directory
    ");
}

#[test]
fn one_mistyped_subject_of_several_starts_no_run() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    assert_refused(&sandbox, &["review", "plan.md", "paln.md"]);
}

#[test]
fn a_directory_without_documents_is_refused() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    fs::create_dir(sandbox.path_of("docs")).unwrap();
    insta::assert_snapshot!(assert_refused(&sandbox, &["review", "docs"]).stderr, @r"
    error: no documents to review in docs
      Documents are Markdown files. Hidden files and files that git ignores are left out.
      help: pass other files by name or pattern: `tribunal review 'docs/*.txt'`
    ");
}

#[test]
fn an_empty_subject_is_refused() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file("plan.md", " \n\n");
    insta::assert_snapshot!(assert_refused(&sandbox, &["review", "plan.md"]).stderr, @"
    error: plan.md is empty; nothing to review
      Nothing was started or changed.
      help: add some text first
    ");
}

#[test]
fn a_binary_subject_is_refused() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    fs::write(sandbox.path_of("plan.md"), b"PK\x03\x04\x00\x00").unwrap();
    insta::assert_snapshot!(assert_refused(&sandbox, &["review", "plan.md"]).stderr, @"
    error: plan.md is not text (contains NUL bytes)
      Nothing was started or changed.
      help: pass a text file (UTF-8)
    ");
    fs::write(sandbox.path_of("plan.md"), b"caf\xe9 in Latin-1").unwrap();
    assert!(assert_refused(&sandbox, &["review", "plan.md"]).stderr.contains("not valid UTF-8"));
}

#[test]
fn a_subject_that_is_too_large_is_refused() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    fs::File::create(sandbox.path_of("plan.md")).unwrap().set_len(50 << 20).unwrap();
    insta::assert_snapshot!(assert_refused(&sandbox, &["review", "plan.md"]).stderr, @"
    error: plan.md is too large (50.0 MB, limit 1.0 MB)
      Reviewers read the whole subject, and beyond 1 MB they are no longer thorough.
      help: split the file and review its parts
    ");
}

/// Returns whether permissions do not bind this user (root), so that the test has to change the user.
fn can_read_without_permission(sandbox: &Sandbox) -> bool {
    let probe_path = sandbox.path_of("probe");
    fs::write(&probe_path, "x").unwrap();
    fs::set_permissions(&probe_path, fs::Permissions::from_mode(0o000)).unwrap();
    fs::read(&probe_path).is_ok()
}

#[test]
fn an_unreadable_subject_is_an_environment_error() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    fs::set_permissions(sandbox.path_of("plan.md"), fs::Permissions::from_mode(0o000)).unwrap();
    let output = if can_read_without_permission(&sandbox) {
        run_unprivileged(&sandbox, &["review", "plan.md"])
    } else {
        sandbox.run_tribunal(&["review", "plan.md"])
    };
    let Some(output) = Some(output).filter(|output| output.exit_code != Some(125)) else { return };
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains("could not read plan.md: Permission denied"), "{}", output.stderr);
    assert!(output.stderr.contains("help: check its permissions: `ls -l plan.md`"), "{}", output.stderr);
}

#[test]
fn a_read_only_project_is_an_environment_error() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    let privileged = can_read_without_permission(&sandbox);
    fs::set_permissions(sandbox.root_dir(), fs::Permissions::from_mode(0o555)).unwrap();
    let output = if privileged {
        run_unprivileged(&sandbox, &["review", "plan.md"])
    } else {
        sandbox.run_tribunal(&["review", "plan.md"])
    };
    fs::set_permissions(sandbox.root_dir(), fs::Permissions::from_mode(0o755)).unwrap();
    let Some(output) = Some(output).filter(|output| output.exit_code != Some(125)) else { return };
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(
        output.stderr.contains("cannot write to ") && output.stderr.contains("project: Permission denied"),
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains("help: make the project directory writable"), "{}", output.stderr);
    assert!(!sandbox.path_of(".tribunal").exists());
}

/// Runs Tribunal as an unprivileged user. The exit code is 125 if that is not possible here.
fn run_unprivileged(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    use std::os::unix::process::CommandExt;
    // The unprivileged user must be able to reach the program.
    let program = sandbox.path_of("../").canonicalize().unwrap().join(format!("tribunal-{}", std::process::id()));
    copy_tribunal(&program);
    for directory in [sandbox.root_dir(), sandbox.root_dir().parent().unwrap()] {
        let traversable_mode = fs::metadata(directory).unwrap().permissions().mode() | 0o055;
        fs::set_permissions(directory, fs::Permissions::from_mode(traversable_mode)).unwrap();
    }
    let mut command = std::process::Command::new(&program);
    sandbox.set_home_env(&mut command);
    let output = command.args(args).current_dir(sandbox.root_dir()).uid(65534).gid(65534).output();
    let _ = fs::remove_file(&program);
    match output {
        Ok(output) => CommandOutput::from_output(output),
        Err(_) => CommandOutput { exit_code: Some(125), stdout: String::new(), stderr: String::new() },
    }
}

#[test]
fn a_subject_outside_the_project_is_refused() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    let other_sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    let other_path = other_sandbox.path_of("plan.md").display().to_string();
    let output = sandbox.run_tribunal(&["-C", ".", "review", &other_path]);
    assert_eq!(output.exit_code, Some(2));
    assert!(output.stderr.contains("is outside the project"), "{}", output.stderr);
}

#[test]
fn an_unknown_section_is_refused_with_the_headings() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    insta::assert_snapshot!(assert_refused(&sandbox, &["review", "plan.md", "--section", "Gaols"]).stderr, @"
    error: plan.md has no section `Gaols`
      Headings in the file: Plan · Goals · Risks
      help: did you mean `Goals`?
    ");
}

#[test]
fn misspelled_settings_are_refused_with_a_suggestion() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file("tribunal.yaml", "tier: 2\nagents:\n  use: [x]\nlimits:\n  max_review_round: 5\n");
    let output = assert_refused(&sandbox, &["review", "plan.md"]);
    insta::assert_snapshot!(sandbox.normalize_output(&output.stderr), @"
    error: [project]/tribunal.yaml, line 5: unknown setting `max_review_round` under `limits:`
      5 | max_review_round: 5
      Nothing was started.
      help: did you mean `max_review_rounds`?
    ");
}

#[test]
fn invalid_yaml_in_settings_is_refused_with_its_line() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file("tribunal.yaml", "tier: 2\nagents:\n  use: [x\nverify: []\n");
    let output = assert_refused(&sandbox, &["review", "plan.md"]);
    let error_text = sandbox.normalize_output(&output.stderr);
    assert!(error_text.starts_with("error: invalid YAML in [project]/tribunal.yaml, line "), "{error_text}");
    assert!(error_text.contains("help: check brackets, quotes and indentation"), "{error_text}");
}

#[test]
fn an_unknown_agent_and_no_agent_at_all_are_refused() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    let output = assert_refused(&sandbox, &["review", "plan.md", "--agent", "scriptde"]);
    assert!(output.stderr.contains("did you mean `scripted`?"), "{}", output.stderr);
    fs::remove_file(sandbox.path_of("tribunal.yaml")).unwrap();
    // This path has no client, even if the machine has some installed.
    let output = CommandOutput::from_output(
        sandbox.tribunal_command(&["review", "plan.md"]).env("PATH", sandbox.home_dir()).output().unwrap(),
    );
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(!sandbox.path_of(".tribunal").exists(), "nothing may be started");
    assert!(output.stderr.contains("error: no agent is set"), "{}", output.stderr);
    assert!(output.stderr.contains("tribunal demo"), "{}", output.stderr);
}

#[test]
fn a_secret_in_the_project_settings_is_refused() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    let secret_token = format!("gh{}_{}", "p", "a1B2".repeat(9));
    sandbox.write_file(
        "tribunal.yaml",
        &format!("agents: {{use: [mine], mine: {{driver: command, argv: [agent, --token, {secret_token}]}}}}\n"),
    );
    let output = assert_refused(&sandbox, &["review", "plan.md"]);
    assert!(!output.stderr.contains(&secret_token), "{}", output.stderr);
    insta::assert_snapshot!(output.stderr, @"
    error: the settings contain what looks like a secret: agent `mine`: agent --token [masked:github]
      A command that cannot be shown in full cannot be trusted. Nothing was started.
      help: move it to an environment variable that the agent or the check reads itself
    ");
}

#[test]
fn a_secret_in_the_settings_of_the_user_is_refused() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    let secret_token = format!("gh{}_{}", "p", "a1B2".repeat(9));
    let output = assert_refused(&sandbox, &["review", "plan.md", "--set", &format!("verify=[check {secret_token}]")]);
    insta::assert_snapshot!(output.stderr, @"
    error: the settings appear to contain a secret: check [masked:github]
      Settings are recorded with the run, and secrets must not be recorded. Nothing was started.
      help: move it to an environment variable that the agent or the check reads itself
    ");
}

#[test]
fn an_unknown_command_is_refused_with_a_suggestion() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(assert_refused(&sandbox, &["reviw", "plan.md"]).stderr, @"
    error: unknown command `reviw`
      1. did you mean `review`?
      2. for all commands, try `tribunal --help`
    ");
    let document = sandbox.run_json(&["reviw"]);
    assert_eq!((&document["schema"], &document["exit"]), (&"tribunal.error/1".into(), &2.into()));
    assert_eq!(document["todo"][0], "did you mean `review`?");
    // Arguments after `--` are not options of Tribunal.
    assert_eq!(sandbox.run_tribunal(&["reviw", "--", "--json"]).stdout, "");
    let help = sandbox.run_tribunal(&["review", "--help"]);
    assert_eq!((help.exit_code, help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.contains("Usage: tribunal review"), "{}", help.stdout);
    let version = sandbox.run_json(&["--version"]);
    assert_eq!(version["schema"], "tribunal.version/1");
    assert!(sandbox.run_tribunal(&["-V"]).stdout.starts_with("tribunal "));
}

#[test]
fn errors_are_json_with_the_json_flag() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    let document = sandbox.run_json(&["review", "absent.md"]);
    assert_eq!(document["schema"], "tribunal.error/1");
    assert_eq!(document["exit"], 2);
}

#[test]
fn an_unknown_run_is_refused() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.run_tribunal(&["review", "plan.md"]);
    for args in [["log", "nope"], ["status", "nope"], ["findings", "nope"], ["resume", "nope"]] {
        let output = sandbox.run_tribunal(&args);
        assert_eq!(output.exit_code, Some(2), "{args:?}");
        assert!(
            output.stderr.contains(" named `nope` in this project") && output.stderr.contains("tribunal runs"),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn a_newer_journal_is_read_and_not_written() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.run_tribunal(&["review", "plan.md"]);
    // SQLite keeps the format number of the file in four bytes at offset 60.
    let journal_path = sandbox.path_of(".tribunal/journal.db");
    let mut bytes = fs::read(&journal_path).unwrap();
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&journal_path, bytes).unwrap();
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(2));
    assert!(output.stderr.contains("was written by a newer Tribunal (format 99"), "{}", output.stderr);
    let runs_output = sandbox.run_tribunal(&["runs"]);
    assert_eq!(runs_output.exit_code, Some(0));
    assert!(runs_output.stdout.contains("resolved"), "{}", runs_output.stdout);
}
