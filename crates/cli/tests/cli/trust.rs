//! A project's commands run only after the user has trusted exactly these commands.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::common::{Sandbox, TRIBUNAL};

/// A project whose agent creates a trace file when it runs, and that has a check. Nothing is trusted yet.
fn wary() -> Sandbox {
    let sandbox = Sandbox::new().wary();
    sandbox.write("plan.md", "# Plan\n\nIt shall be fast.\n");
    settings(&sandbox, "findings: []");
    sandbox
}

fn settings(sandbox: &Sandbox, answer: &str) {
    let trace = sandbox.home().with_file_name("trace");
    let script = format!("touch {}; echo '{answer}'", trace.display());
    sandbox.write(
        "tribunal.yaml",
        &format!(
            "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, -c, {script:?}]}}}}\n\
             verify: [\"true\"]\ntasks: {{required_issues: 0, retry_after: 0}}\n"
        ),
    );
}

fn ran_something(sandbox: &Sandbox) -> bool {
    sandbox.home().with_file_name("trace").exists()
}

fn shown(sandbox: &Sandbox, text: &str) -> String {
    let beside = sandbox.root().parent().unwrap().display().to_string();
    sandbox.normal(text).replace(&beside, "[beside]")
}

#[test]
fn commands_that_came_with_a_project_are_shown_and_do_not_run() {
    let sandbox = wary();
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(!ran_something(&sandbox) && !sandbox.path(".tribunal").exists());
    insta::assert_snapshot!(shown(&sandbox, &ran.err), @r"
    [!] this project would run 2 commands that you have not trusted
          agent `mine`: sh -c 'touch [beside]/trace; echo '\''findings: []'\'''
          check: true
        They came with the project and would run with your rights. Nothing was started.
        1. if that is well: tribunal trust
    ");
    assert_eq!(sandbox.run(&["review", "plan.md", "--dry-run"]).code, Some(0), "a plan runs nothing");
}

#[test]
fn the_hint_names_the_project_as_it_was_named() {
    let sandbox = wary();
    let ran = sandbox.run(&["-C", ".", "review", "plan.md"]);
    assert!(ran.err.contains("if that is well: tribunal -C . trust"), "{}", ran.err);
}

#[test]
fn a_yes_is_kept_and_holds_for_these_commands_only() {
    let sandbox = wary();
    let trusted = sandbox.run(&["trust"]);
    assert_eq!(trusted.code, Some(0), "{}", trusted.err);
    insta::assert_snapshot!(shown(&sandbox, &trusted.out), @r"
    trusted      agent `mine`: sh -c 'touch [beside]/trace; echo '\''findings: []'\'''
    trusted      check: true
    2 newly trusted; a changed command asks again
    ");
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran_something(&sandbox));
    let book = sandbox.home().join("state/tribunal/trust.json");
    assert_eq!(fs::metadata(book).unwrap().permissions().mode() & 0o777, 0o600);

    settings(&sandbox, "findings:  []");
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(2), "a changed command asks again");
    assert!(ran.err.contains("would run a command that") && !ran.err.contains("check: true"), "{}", ran.err);
}

#[test]
fn a_yes_can_be_taken_back() {
    let sandbox = wary();
    sandbox.run(&["trust", "--yes"]);
    let listed = sandbox.json(&["trust", "--list"]);
    assert_eq!(listed["items"][1]["kind"], "check");
    assert_eq!(listed["items"][1]["trusted"], true);
    assert_eq!(sandbox.run(&["trust", "--forget"]).out, "2 commands are no longer trusted here\n");
    assert_eq!(sandbox.run(&["review", "plan.md"]).code, Some(2));
    assert_eq!(sandbox.json(&["trust", "--list"])["items"][0]["trusted"], false, "--list trusts nothing");
    assert_eq!(sandbox.run(&["review", "plan.md"]).code, Some(2));
}

#[test]
fn a_yes_is_for_one_project() {
    let sandbox = wary();
    sandbox.run(&["trust"]);
    let copy = sandbox.home().with_file_name("copy");
    fs::create_dir(&copy).unwrap();
    for file in ["plan.md", "tribunal.yaml"] {
        fs::copy(sandbox.path(file), copy.join(file)).unwrap();
    }
    let ran = sandbox.run(&[
        "-C",
        &copy.display().to_string(),
        "review",
        &copy.join("plan.md").display().to_string(),
    ]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("not trusted"), "{}", ran.err);
}

#[test]
fn a_journal_that_came_with_a_clone_runs_nothing_either() {
    let sandbox = wary();
    settings(&sandbox, "no answer at all");
    sandbox.run(&["trust"]);
    assert_eq!(sandbox.run(&["review", "plan.md"]).code, Some(5), "it waits to be resumed");
    sandbox.run(&["trust", "--forget"]);
    fs::remove_file(sandbox.home().with_file_name("trace")).unwrap();
    fs::remove_file(sandbox.path("tribunal.yaml")).unwrap();

    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("2 commands that you have not trusted"), "{}", ran.err);
    assert!(!ran_something(&sandbox));
    assert_eq!(sandbox.run(&["trust"]).code, Some(0), "the commands of unfinished runs can be trusted");
    assert_eq!(sandbox.run(&["resume"]).code, Some(5));
    assert!(ran_something(&sandbox));
}

#[test]
fn what_a_person_set_outside_the_project_needs_no_yes() {
    let sandbox = wary();
    let file = sandbox.home().join("config/tribunal/settings.yaml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::rename(sandbox.path("tribunal.yaml"), &file).unwrap();
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(!sandbox.home().join("state").exists(), "nothing had to be recorded");
    let ran = sandbox.run(&["review", "plan.md", "--set", "verify=[make it so]"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    // The journal does not record who set the commands, but the user's own settings still contain them.
    let settings = fs::read_to_string(&file).unwrap();
    fs::write(&file, settings.replace("findings: []", "no answer")).unwrap();
    assert_eq!(sandbox.run(&["review", "plan.md"]).code, Some(5));
    assert_eq!(sandbox.run(&["resume"]).code, Some(5));
}

#[test]
fn the_demo_asks_nothing_and_needs_no_home() {
    let sandbox = Sandbox::new().wary();
    let demo = |args: &[&str]| {
        let mut command = std::process::Command::new(TRIBUNAL);
        let command = command.args(args).current_dir(sandbox.root()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap()
    };
    let output = demo(&["demo", "--dir", "."]);
    assert!(output.status.success(), "{output:?}");
    let output = demo(&["review", crate::common::PRD, "--no-fix"]);
    assert_ne!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn without_a_place_to_keep_it_nothing_runs() {
    let sandbox = wary();
    let mut command = sandbox.command(&["review", "plan.md"]);
    let output = command.env_remove("HOME").env_remove("XDG_STATE_HOME").output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @r"
    [!] there is no place for what you trusted: HOME is not set
        It is kept outside the project, so that no project can say of itself that it is trusted. Nothing was started.
        1. name a folder: export XDG_STATE_HOME=/path/to/a/folder
    ");

    sandbox.run(&["trust"]);
    fs::write(sandbox.home().join("state/tribunal/trust.json"), "{").unwrap();
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains("trust.json cannot be read") && !ran_something(&sandbox), "{}", ran.err);
}

/// This command is shown as `password= '[masked:secret]'` and would run the text behind the mask.
const DISGUISED: &str = "[sh, -c, 'eval \"$1\"', 'password=', 'touch TRACE']";

fn disguise(sandbox: &Sandbox) {
    let trace = sandbox.home().with_file_name("trace").display().to_string();
    let argv = DISGUISED.replace("TRACE", &trace);
    sandbox.write(
        "tribunal.yaml",
        &format!(
            "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: {argv}}}}}\n\
             verify: [\"true\"]\ntasks: {{required_issues: 0, retry_after: 0}}\n"
        ),
    );
}

#[test]
fn a_command_that_cannot_be_shown_cannot_be_trusted() {
    let sandbox = wary();
    disguise(&sandbox);
    for args in [&["trust", "--yes"][..], &["trust"], &["review", "plan.md"]] {
        let ran = sandbox.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.err);
        assert!(
            ran.err.starts_with("[!] the settings contain what looks like a secret: agent `mine`: "),
            "{}",
            ran.err
        );
    }
    insta::assert_snapshot!(shown(&sandbox, &sandbox.run(&["trust"]).err), @r#"
    [!] the settings contain what looks like a secret: agent `mine`: sh -c 'eval "$1"' password= '[masked:secret]'
        What cannot be shown cannot be trusted. Nothing was started.
        1. put it into an environment variable that the agent or the check reads itself
    "#);
    let listed = sandbox.json(&["trust", "--list"]);
    let trusted: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| &item["trusted"]).collect();
    assert_eq!(trusted, [false, true], "the other one could be shown");
    assert!(!ran_something(&sandbox));
}

#[test]
fn nor_one_that_a_run_was_pinned_to() {
    let sandbox = wary();
    // In the user's own file the command needs no trust. After the file is removed, only the journal has it.
    disguise(&sandbox);
    let file = sandbox.home().join("config/tribunal/settings.yaml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::rename(sandbox.path("tribunal.yaml"), &file).unwrap();
    assert_eq!(sandbox.run(&["review", "plan.md"]).code, Some(5), "it waits to be resumed");
    fs::remove_file(&file).unwrap();
    fs::remove_file(sandbox.home().with_file_name("trace")).unwrap();
    for args in [&["resume"][..], &["trust", "--yes"], &["resume"]] {
        let ran = sandbox.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("what looks like a secret"), "{}", ran.err);
    }
    assert!(!ran_something(&sandbox));
}

#[test]
fn what_a_person_typed_themselves_is_not_asked_for_when_the_run_goes_on() {
    let sandbox = Sandbox::scripted("tasks: [{task: '*', steps: [{exit: 41}]}]\n").wary();
    let ran = sandbox.run(&["review", "plan.md", "--set", "verify=[\"true\"]"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    sandbox.write("script.yaml", "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn hooks_of_a_step_are_trusted_by_name_of_their_file() {
    let sandbox = Sandbox::new().wary();
    sandbox.write("tribunal.yaml", "tier: 0\n");
    sandbox.write(
        "step.md",
        "---\nhooks:\n  Stop:\n    - make lint\n    - ''\n  Stopp: make never\n---\n# Step\n",
    );
    let listed = sandbox.run(&["trust", "--list", "--step", "step.md"]);
    insta::assert_snapshot!(format!("{}{}", listed.out, listed.err), @r"
    not trusted  hook of `step.md`: make lint
    1 not trusted; to trust: tribunal trust
    [W] step.md:5: an empty command
    [W] step.md:6: there is no hook event `Stopp`
    ");
    assert_eq!(sandbox.run(&["trust", "--step", "step.md"]).code, Some(0));
    let json = sandbox.run(&["trust", "--list", "--step", "step.md", "--json"]).out;
    assert!(json.contains("\"kind\": \"hook\"") || json.contains("\"kind\":\"hook\""), "{json}");
    assert!(json.contains("\"trusted\": true") || json.contains("\"trusted\":true"), "{json}");
    // A changed command needs new trust, even in the same file.
    sandbox.write("step.md", "---\nhooks: {Stop: make lint all}\n---\n");
    let listed = sandbox.run(&["trust", "--list", "--step", "step.md"]);
    assert!(listed.out.contains("not trusted  hook of `step.md`: make lint all"), "{}", listed.out);
    let missing = sandbox.run(&["trust", "--step", "none.md"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.starts_with("[!] none.md cannot be read"), "{}", missing.err);
}
