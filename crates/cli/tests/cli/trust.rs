//! A project's commands run only after the user has trusted exactly these commands.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    process::{Command, Output, Stdio},
};

use crate::{
    common::{CommandOutput, Sandbox, TRIBUNAL},
    loop_sandbox::run_git,
    story_sandbox::{STORY, story_sandbox},
};

/// A project whose agent creates a trace file when it runs, and that has a check. Nothing is trusted yet.
fn untrusted_project() -> Sandbox {
    let sandbox = Sandbox::new().without_trust();
    sandbox.write_file("plan.md", "# Plan\n\nIt shall be fast.\n");
    write_settings(&sandbox, "findings: []");
    sandbox
}

fn write_settings(sandbox: &Sandbox, agent_answer: &str) {
    let trace_path = sandbox.home_dir().with_file_name("trace");
    let script = format!("touch {}; echo '{agent_answer}'", trace_path.display());
    sandbox.write_file(
        "tribunal.yaml",
        &format!(
            "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, -c, {script:?}]}}}}\n\
             verify: [\"true\"]\ntasks: {{required_issues: 0, retry_after: 0}}\n"
        ),
    );
}

fn has_run_commands(sandbox: &Sandbox) -> bool {
    sandbox.home_dir().with_file_name("trace").exists()
}

fn normalize_paths(sandbox: &Sandbox, text: &str) -> String {
    let parent_dir = sandbox.root_dir().parent().unwrap().display().to_string();
    sandbox.normalize_output(text).replace(&parent_dir, "[beside]")
}

#[test]
fn commands_of_an_untrusted_project_are_shown_and_do_not_run() {
    let sandbox = untrusted_project();
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(!has_run_commands(&sandbox) && !sandbox.path_of(".tribunal").exists());
    insta::assert_snapshot!(normalize_paths(&sandbox, &output.stderr), @r"
    error: this project would run 2 commands that you have not trusted
        agent `mine`: sh -c 'touch [beside]/trace; echo '\''findings: []'\'''
        check: true
      They came with the project and would run with your permissions. Nothing was started.
      help: to allow this: `tribunal trust`
    ");
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md", "--dry-run"]).exit_code, Some(0), "a plan runs nothing");
}

#[test]
fn the_hint_names_the_project_as_the_user_did() {
    let sandbox = untrusted_project();
    let output = sandbox.run_tribunal(&["-C", ".", "review", "plan.md"]);
    assert!(output.stderr.contains("to allow this: `tribunal -C . trust`"), "{}", output.stderr);
}

#[test]
fn trust_is_kept_and_holds_for_these_commands_only() {
    let sandbox = untrusted_project();
    let trust_output = sandbox.run_tribunal(&["trust", "--yes"]);
    assert_eq!(trust_output.exit_code, Some(0), "{}", trust_output.stderr);
    insta::assert_snapshot!(normalize_paths(&sandbox, &trust_output.stdout), @r"
    trusted      agent `mine`: sh -c 'touch [beside]/trace; echo '\''findings: []'\'''
    trusted      check: true
    2 newly trusted; you are asked again when a command changes
    ");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(has_run_commands(&sandbox));
    let trust_file = sandbox.home_dir().join("state/tribunal/trust.json");
    assert_eq!(fs::metadata(trust_file).unwrap().permissions().mode() & 0o777, 0o600);

    write_settings(&sandbox, "findings:  []");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(2), "a changed command asks again");
    assert!(
        output.stderr.contains("would run a command that") && !output.stderr.contains("check: true"),
        "{}",
        output.stderr
    );
}

#[test]
fn without_a_terminal_only_the_flag_grants_trust() {
    let sandbox = untrusted_project();
    for typed_text in ["n\n", "y\n", ""] {
        let mut command = sandbox.tribunal_command(&["trust"]);
        let output = CommandOutput::from_output(run_with_input(&mut command, typed_text));
        assert_eq!(output.exit_code, Some(2), "{typed_text:?}: {}", output.stderr);
        assert!(output.stderr.contains("to trust all of this: `tribunal trust --yes`"), "{}", output.stderr);
        assert!(output.stderr.contains("check: true\n  Nothing was trusted."), "{}", output.stderr);
    }
    let listing = sandbox.run_json(&["trust", "--list"]);
    assert!(listing["items"].as_array().unwrap().iter().all(|item| item["trusted"] == false), "{listing}");
}

/// Runs a command with a text as its standard input, through a pipe.
fn run_with_input(command: &mut Command, typed_text: &str) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    // A program that ends without reading closes the pipe first.
    let _ = child.stdin.take().unwrap().write_all(typed_text.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn a_sprint_commits_nothing_before_its_commands_are_trusted() {
    let sandbox = story_sandbox("develop\n").without_trust();
    sandbox.write_file(STORY, &format!("{}\nA remark.\n", sandbox.read_file(STORY)));
    let output = sandbox.run_tribunal(&["sprint", "1-2", "--yes"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("commands that you have not trusted"), "{}", output.stderr);
    assert_eq!(run_git(&sandbox, &["log", "--format=%s"]), "Begin\n");
    assert!(run_git(&sandbox, &["status", "--porcelain"]).contains(STORY));
}

#[test]
fn trust_can_be_withdrawn() {
    let sandbox = untrusted_project();
    sandbox.run_tribunal(&["trust", "--yes"]);
    let listing = sandbox.run_json(&["trust", "--list"]);
    assert_eq!(listing["items"][1]["kind"], "check");
    assert_eq!(listing["items"][1]["trusted"], true);
    assert_eq!(sandbox.run_tribunal(&["trust", "--forget"]).stdout, "2 commands are no longer trusted here\n");
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(2));
    assert_eq!(sandbox.run_json(&["trust", "--list"])["items"][0]["trusted"], false, "--list trusts nothing");
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(2));
}

#[test]
fn trust_holds_for_one_project() {
    let sandbox = untrusted_project();
    sandbox.run_tribunal(&["trust", "--yes"]);
    let project_copy = sandbox.home_dir().with_file_name("copy");
    fs::create_dir(&project_copy).unwrap();
    for file_name in ["plan.md", "tribunal.yaml"] {
        fs::copy(sandbox.path_of(file_name), project_copy.join(file_name)).unwrap();
    }
    let output = sandbox.run_tribunal(&[
        "-C",
        &project_copy.display().to_string(),
        "review",
        &project_copy.join("plan.md").display().to_string(),
    ]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("not trusted"), "{}", output.stderr);
}

#[test]
fn a_journal_that_came_with_a_clone_runs_no_untrusted_command() {
    let sandbox = untrusted_project();
    write_settings(&sandbox, "no answer at all");
    sandbox.run_tribunal(&["trust", "--yes"]);
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(5), "it waits to be resumed");
    sandbox.run_tribunal(&["trust", "--forget"]);
    fs::remove_file(sandbox.home_dir().with_file_name("trace")).unwrap();
    fs::remove_file(sandbox.path_of("tribunal.yaml")).unwrap();

    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("2 commands that you have not trusted"), "{}", output.stderr);
    assert!(!has_run_commands(&sandbox));
    assert_eq!(
        sandbox.run_tribunal(&["trust", "--yes"]).exit_code,
        Some(0),
        "the commands of unfinished runs can be trusted"
    );
    assert_eq!(sandbox.run_tribunal(&["resume"]).exit_code, Some(5));
    assert!(has_run_commands(&sandbox));
}

#[test]
fn settings_outside_the_project_need_no_trust() {
    let sandbox = untrusted_project();
    let user_settings_path = sandbox.home_dir().join("config/tribunal/settings.yaml");
    fs::create_dir_all(user_settings_path.parent().unwrap()).unwrap();
    fs::rename(sandbox.path_of("tribunal.yaml"), &user_settings_path).unwrap();
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(!sandbox.home_dir().join("state/tribunal/trust.json").exists(), "nothing had to be recorded");
    let output = sandbox.run_tribunal(&["review", "plan.md", "--set", "verify=[make it so]", "--skip-baseline"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    // The journal does not record who set the commands, but the user's own settings still contain them.
    let settings = fs::read_to_string(&user_settings_path).unwrap();
    fs::write(&user_settings_path, settings.replace("findings: []", "no answer")).unwrap();
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(5));
    assert_eq!(sandbox.run_tribunal(&["resume"]).exit_code, Some(5));
}

#[test]
fn the_demo_needs_no_trust_and_no_home() {
    let sandbox = Sandbox::new().without_trust();
    let run_without_home = |args: &[&str]| {
        let mut command = std::process::Command::new(TRIBUNAL);
        let command = command.args(args).current_dir(sandbox.root_dir()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap()
    };
    let output = run_without_home(&["demo", "--dir", "."]);
    assert!(output.status.success(), "{output:?}");
    let output = run_without_home(&["review", crate::common::PRD, "--no-fix"]);
    assert_ne!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn without_a_place_for_the_trust_file_nothing_runs() {
    let sandbox = untrusted_project();
    let mut command = sandbox.tribunal_command(&["review", "plan.md"]);
    let output = command.env_remove("HOME").env_remove("XDG_STATE_HOME").output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @"
    error: cannot find out where trust is stored: HOME is not set
      Trust is stored outside the project, so that no project can declare itself trusted. Nothing was started.
      help: set a directory: `export XDG_STATE_HOME=/path/to/a/directory`
    ");

    sandbox.run_tribunal(&["trust", "--yes"]);
    fs::write(sandbox.home_dir().join("state/tribunal/trust.json"), "{").unwrap();
    let command_output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(command_output.exit_code, Some(5), "{}", command_output.stderr);
    assert!(
        command_output.stderr.contains("trust.json cannot be read") && !has_run_commands(&sandbox),
        "{}",
        command_output.stderr
    );
}

/// This command is shown as `password= '[masked:secret]'` and would run the text behind the mask.
const DISGUISED_ARGV: &str = "[sh, -c, 'eval \"$1\"', 'password=', 'touch TRACE']";

fn write_disguised_agent(sandbox: &Sandbox) {
    let trace_path = sandbox.home_dir().with_file_name("trace").display().to_string();
    let argv = DISGUISED_ARGV.replace("TRACE", &trace_path);
    sandbox.write_file(
        "tribunal.yaml",
        &format!(
            "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: {argv}}}}}\n\
             verify: [\"true\"]\ntasks: {{required_issues: 0, retry_after: 0}}\n"
        ),
    );
}

#[test]
fn a_command_that_cannot_be_shown_cannot_be_trusted() {
    let sandbox = untrusted_project();
    write_disguised_agent(&sandbox);
    for args in [&["trust", "--yes"][..], &["trust"], &["review", "plan.md"]] {
        let output = sandbox.run_tribunal(args);
        assert_eq!(output.exit_code, Some(2), "{args:?}: {}", output.stderr);
        assert!(
            output.stderr.starts_with("error: the settings contain what looks like a secret: agent `mine`: "),
            "{}",
            output.stderr
        );
    }
    insta::assert_snapshot!(normalize_paths(&sandbox, &sandbox.run_tribunal(&["trust", "--yes"]).stderr), @r#"
    error: the settings contain what looks like a secret: agent `mine`: sh -c 'eval "$1"' password= '[masked:secret]'
      A command that cannot be shown in full cannot be trusted. Nothing was started.
      help: move it to an environment variable that the agent or the check reads itself
    "#);
    let listing = sandbox.run_json(&["trust", "--list"]);
    let trusted: Vec<_> =
        listing["items"].as_array().unwrap().iter().map(|trust_item| &trust_item["trusted"]).collect();
    assert_eq!(trusted, [false, true], "the other one could be shown");
    assert!(!has_run_commands(&sandbox));
}

#[test]
fn a_hidden_command_of_a_recorded_run_cannot_be_trusted_either() {
    let sandbox = untrusted_project();
    // In the user's own file the command needs no trust. After the file is removed, only the journal has it.
    write_disguised_agent(&sandbox);
    let user_settings_path = sandbox.home_dir().join("config/tribunal/settings.yaml");
    fs::create_dir_all(user_settings_path.parent().unwrap()).unwrap();
    fs::rename(sandbox.path_of("tribunal.yaml"), &user_settings_path).unwrap();
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(5), "it waits to be resumed");
    fs::remove_file(&user_settings_path).unwrap();
    fs::remove_file(sandbox.home_dir().with_file_name("trace")).unwrap();
    for args in [&["resume"][..], &["trust", "--yes"], &["resume"]] {
        let output = sandbox.run_tribunal(args);
        assert_eq!(output.exit_code, Some(2), "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains("what looks like a secret"), "{}", output.stderr);
    }
    assert!(!has_run_commands(&sandbox));
}

#[test]
fn a_check_that_the_user_typed_needs_no_trust_on_resume() {
    let sandbox = Sandbox::with_script("tasks: [{task: '*', steps: [{exit: 41}]}]\n").without_trust();
    let output = sandbox.run_tribunal(&["review", "plan.md", "--set", "verify=[\"true\"]"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    sandbox.write_file("script.yaml", "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
}

#[test]
fn a_check_that_the_user_types_on_resume_needs_no_trust() {
    let sandbox = Sandbox::with_script("tasks: [{task: '*', steps: [{exit: 41}]}]\n").without_trust();
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(5));
    let output = sandbox.run_tribunal(&["resume", "--reload", "--set", "verify=[\"test -d .\"]"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    // The run is pinned to the check now, and nothing is asked again.
    sandbox.write_file("script.yaml", "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let events = sandbox.run_events(&["log"]);
    assert!(events.iter().any(|event| event["settings"]["checks"][0]["command"] == "test -d ."), "{events:?}");
}

#[test]
fn a_finished_run_that_is_resumed_grants_no_trust() {
    let sandbox = Sandbox::with_script("tasks: [{task: '*', steps: [{findings: []}]}]\n").without_trust();
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(0));
    // The check came with the project, for instance by `git pull`.
    sandbox.append_setting("verify: [\"test -d .\"]");
    sandbox.run_tribunal(&["resume", &sandbox.last_run_id(), "--reload"]);
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("check: test -d ."), "{}", output.stderr);
}

#[test]
fn hooks_of_a_step_are_trusted_by_the_name_of_their_file() {
    let sandbox = Sandbox::new().without_trust();
    sandbox.write_file("tribunal.yaml", "tier: 0\n");
    sandbox
        .write_file("step.md", "---\nhooks:\n  Stop:\n    - make lint\n    - ''\n  Stopp: make never\n---\n# Step\n");
    let listing = sandbox.run_tribunal(&["trust", "--list", "--step", "step.md"]);
    insta::assert_snapshot!(format!("{}{}", listing.stdout, listing.stderr), @"
    not trusted  hook of `step.md`: make lint
    1 not trusted; to allow them: `tribunal trust`
    warning: step.md:5: the command is empty
    warning: step.md:6: unknown hook event `Stopp`
    ");
    assert_eq!(sandbox.run_tribunal(&["trust", "--yes", "--step", "step.md"]).exit_code, Some(0));
    let listing_json = sandbox.run_tribunal(&["trust", "--list", "--step", "step.md", "--json"]).stdout;
    assert!(
        listing_json.contains("\"kind\": \"hook\"") || listing_json.contains("\"kind\":\"hook\""),
        "{listing_json}"
    );
    assert!(listing_json.contains("\"trusted\": true") || listing_json.contains("\"trusted\":true"), "{listing_json}");
    // A changed command needs new trust, even in the same file.
    sandbox.write_file("step.md", "---\nhooks: {Stop: make lint all}\n---\n");
    let listing = sandbox.run_tribunal(&["trust", "--list", "--step", "step.md"]);
    assert!(listing.stdout.contains("not trusted  hook of `step.md`: make lint all"), "{}", listing.stdout);
    let missing_step = sandbox.run_tribunal(&["trust", "--step", "none.md"]);
    assert_eq!(missing_step.exit_code, Some(2));
    assert!(missing_step.stderr.starts_with("error: none.md cannot be read"), "{}", missing_step.stderr);
}
