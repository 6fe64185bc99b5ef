//! `tribunal doctor` with shell scripts as clients: what it reports, what is missing, and the command that repairs it.

use std::fs;

use serde_json::Value;
use tribunal_agents::{
    clients::{AGENT_CLIENT_IDS, AgentClient, CLIENTS},
    driver::DRIVER_NAMES,
    hook::HookClient,
};

use crate::common::{CommandOutput, Sandbox, write_program};

/// A machine with only these programs on its path.
struct FakeMachine {
    sandbox: Sandbox,
    env_variables: Vec<(&'static str, &'static str)>,
    /// How many seconds a client may take to answer. The default is long, as the machine may be busy.
    timeout_seconds: &'static str,
}

const SIGNED_IN: &str = r#"case "$1" in
    --version) echo "2.1.325 (Claude Code)";;
    auth) echo '{"loggedIn": true, "authMethod": "claude.ai", "apiProvider": "firstParty", "subscriptionType": "max"}';;
esac"#;
const SIGNED_OUT: &str = r#"case "$1" in
    --version) echo "codex-cli 0.166.0";;
    login) echo "Not logged in" >&2; exit 1;;
esac"#;
const HANGING: &str = "exec /bin/sleep 1000";
const TOO_OLD: &str = "echo 'codex-cli 0.20.1'";
const GIT_VERSION: &str = "echo git version 2.40.1";

impl FakeMachine {
    fn new(settings: &str, programs: &[(&str, &str)]) -> FakeMachine {
        let sandbox = Sandbox::new().without_trust();
        sandbox.write_file("tribunal.yaml", settings);
        let machine = FakeMachine { sandbox, env_variables: Vec::new(), timeout_seconds: "60" };
        fs::create_dir_all(machine.sandbox.home_dir().join("bin")).unwrap();
        for (program_name, script) in programs {
            machine.add_program(&format!("../home/bin/{program_name}"), script);
        }
        machine
    }

    fn add_program(&self, program_path: &str, script: &str) {
        let program_path = self.sandbox.path_of(program_path);
        fs::create_dir_all(program_path.parent().unwrap()).unwrap();
        write_program(&program_path, &format!("#!/bin/sh\n{script}\n"));
    }

    fn run_doctor(&self, args: &[&str]) -> CommandOutput {
        self.run_command(&[&["doctor", "--timeout", self.timeout_seconds], args].concat())
    }

    fn run_command(&self, args: &[&str]) -> CommandOutput {
        let mut command = self.sandbox.tribunal_command(args);
        command.env_clear().env("PATH", self.sandbox.home_dir().join("bin"));
        self.sandbox.set_home_env(&mut command);
        command.envs(self.env_variables.iter().copied());
        CommandOutput::from_output(command.output().unwrap())
    }

    /// Returns the report as the user sees it, with the exit code.
    fn doctor_text(&self) -> String {
        let output = self.run_doctor(&[]);
        let home_dir = self.sandbox.home_dir().display().to_string();
        let normalized = self.sandbox.normalize_output(&output.stdout).replace(&home_dir, "[home]");
        // The longest line of all would not fit into this file.
        let normalized = normalized.replace("; to use another one", ";\n  to use another one");
        format!("{normalized}{}exit code {}", output.stderr, output.exit_code.unwrap_or(-1))
    }
}

/// A git that ignores these two files in every project.
const IGNORING_GIT: &str = r#"case "$*" in
    *check-ignore*) while read -r _; do :; done; printf '.env\0.nvmrc\0';;
    *) echo git version 2.40.1;;
esac"#;

/// The part of the report about workspaces.
fn workspace_text(report_text: &str) -> &str {
    let from_heading = report_text.split_once("workspaces for development\n").map_or("none", |(_, below)| below);
    from_heading.split("\n\n").next().unwrap_or(from_heading)
}

#[test]
fn set_up_of_workspaces_is_suggested_from_lock_files() {
    let machine = FakeMachine::new("", &[("claude", SIGNED_IN), ("git", IGNORING_GIT)]);
    assert_eq!(workspace_text(&machine.doctor_text()), "none");
    machine.sandbox.write_file("package-lock.json", "{}\n");
    insta::assert_snapshot!(workspace_text(&machine.doctor_text()), @"
    · package-lock.json found; to set up a fresh clone: npm ci
        to use this, add to tribunal.yaml:
        workspace:
          setup:
            - npm ci
    ");

    let machine = FakeMachine::new("", &[("claude", SIGNED_IN), ("git", IGNORING_GIT)]);
    for file_name in ["requirements.txt", ".env", ".nvmrc", ".python-version"] {
        machine.sandbox.write_file(file_name, "x\n");
    }
    insta::assert_snapshot!(workspace_text(&machine.doctor_text()), @"
    · requirements.txt found; to set up a fresh clone: python3 -m venv .venv && .venv/bin/pip install -r requirements.txt
    · .env is ignored by git, so a fresh clone lacks it
        add it to workspace.seed only if the checks need it: agents can read it there
    · .nvmrc is ignored by git, so a fresh clone lacks it
        to use this, add to tribunal.yaml:
        workspace:
          setup:
            - python3 -m venv .venv && .venv/bin/pip install -r requirements.txt
          seed:
            - .nvmrc
    ");

    let machine = FakeMachine::new("", &[("claude", SIGNED_IN), ("git", IGNORING_GIT)]);
    machine.sandbox.write_file("Cargo.lock", "version = 4\n");
    machine.sandbox.write_file("web/pnpm-lock.yaml", "x: 1\n");
    insta::assert_snapshot!(workspace_text(&machine.doctor_text()), @"
    · web/pnpm-lock.yaml found; to set up a fresh clone: (cd web && pnpm install --frozen-lockfile)
    · Cargo.lock found; to set up a fresh clone: cargo fetch --locked
        builds start from nothing in each clone; CARGO_TARGET_DIR, or `target` in workspace.seed, saves that time
        to use this, add to tribunal.yaml:
        workspace:
          setup:
            - (cd web && pnpm install --frozen-lockfile)
            - cargo fetch --locked
    ");
    let document: Value = serde_json::from_str(&machine.run_doctor(&["--json"]).stdout).unwrap();
    assert_eq!(document["workspace"]["setup"][1]["command"], "cargo fetch --locked");
    assert_eq!(document["workspace"]["setup"][0]["lock_file"], "web/pnpm-lock.yaml");
    assert_eq!(document["workspace"]["settings"][0], "workspace:");
}

#[test]
fn installed_clients_are_listed_and_one_that_is_not_signed_in_is_reported() {
    let programs = [("claude", SIGNED_IN), ("codex", SIGNED_OUT), ("gemini", "exit 1"), ("git", GIT_VERSION)];
    let machine = FakeMachine::new("agents: {use: [claude-code, codex]}\n", &programs);
    machine.sandbox.write_file("_bmad/bmm/config.yaml", "project_name: x\n");
    insta::assert_snapshot!(machine.doctor_text(), @"
    clients
      ✓ claude-code: ready, version 2.1.325, signed in with claude.ai, max (subscription)
          [home]/bin/claude
          can: read-only reviewers, fixers, structured answers, sessions, model sizes, tool permissions, MCP servers, cost
      ✗ codex: not signed in, version 0.166.0
          [home]/bin/codex
          to fix it: codex login
      · gemini: found at [home]/bin/gemini, but not supported yet

    agents
      ✓ claude-code: ready (claude-code claude, provider anthropic); used for review and fix
      ✗ codex: not signed in (codex codex, provider openai); used for review and fix

    environment
      ✓ project [project]
      ✓ BMAD: found; parties use the built-in personas
      ✓ git 2.40.1

    warnings
    warning: agent `codex`: Codex is not signed in
      help: sign in: `codex login`

    ready: a review can run here
    exit code 0
    ");
}

#[test]
fn a_client_that_hangs_and_one_that_is_too_old_keep_a_review_from_running() {
    let programs = [("claude", HANGING), ("codex", TOO_OLD)];
    let mut machine = FakeMachine::new("agents: {use: [claude-code, codex]}\n", &programs);
    // The client that does answer needs some of this time, too. On a busy machine it may be too short; then it gets more.
    let report_within = |seconds: &'static str| {
        machine.timeout_seconds = seconds;
        let report =
            machine.doctor_text().replace(&format!("no answer within {seconds} s"), "no answer within [limit]");
        Some(report).filter(|report| report.contains("codex: too old, version"))
    };
    insta::assert_snapshot!(["5", "20", "80"].into_iter().find_map(report_within).unwrap(), @"
    clients
      ✗ claude-code: does not work
          [home]/bin/claude
          no answer within [limit]
          to fix it: npm install -g @anthropic-ai/claude-code
      ✗ codex: too old, version 0.20.1, requires at least 0.147.0
          [home]/bin/codex
          to fix it: npm install -g @openai/codex

    agents
      ✗ claude-code: does not work (claude-code claude, provider anthropic); used for review and fix
      ✗ codex: too old (codex codex, provider openai); used for review and fix

    environment
      ✓ project [project]
      · BMAD: not found; trackers and metrics go to .tribunal
      ? git: not found; files can be reviewed, changes cannot

    errors
    error: agent `claude-code`: Claude Code ([home]/bin/claude) does not work: no answer within [limit]
      help: reinstall it: `npm install -g @anthropic-ai/claude-code`
    error: agent `codex`: Codex 0.20.1 is too old; 0.147.0 or newer is required ([home]/bin/codex)
      help: update it: `npm install -g @openai/codex`

    not ready: fix the 2 errors above first
    exit code 5
    ");
}

#[test]
fn an_api_key_signs_in_and_without_settings_the_first_ready_client_is_used() {
    let mut machine = FakeMachine::new("tier: 1\n", &[("codex", SIGNED_OUT), ("git", GIT_VERSION)]);
    machine.env_variables.push(("CODEX_API_KEY", "sk-test"));
    insta::assert_snapshot!(machine.doctor_text(), @"
    clients
      · claude-code: not installed
          to install it: npm install -g @anthropic-ai/claude-code
      ✓ codex: ready, version 0.166.0, signed in with CODEX_API_KEY (pay per token)
          [home]/bin/codex
          can: read-only reviewers, fixers, structured answers, sessions, MCP servers, cost

    agents
      ✓ codex: ready (codex codex, provider openai); used for review and fix

    environment
      ✓ project [project]
      · BMAD: not found; trackers and metrics go to .tribunal
      ✓ git 2.40.1

    note: no agent is set; using codex, the first client that is installed and signed in (CODEX_API_KEY);
      to use another one, pass `--agent NAME`

    ready: a review can run here
    exit code 0
    ");
}

#[test]
fn an_empty_machine_shows_what_to_install() {
    insta::assert_snapshot!(FakeMachine::new("", &[]).doctor_text(), @"
    clients
      · claude-code: not installed
          to install it: npm install -g @anthropic-ai/claude-code
      · codex: not installed
          to install it: npm install -g @openai/codex

    agents
      ✗ none

    environment
      ✓ project [project]
      · BMAD: not found; trackers and metrics go to .tribunal
      ? git: not found; files can be reviewed, changes cannot

    errors
    error: no agent is set, and no client is ready to use
      1. install a client, for example: `npm install -g @anthropic-ai/claude-code`
      2. or use a command of your own; add to [project]/tribunal.yaml: `agents: {mine: {driver: command, argv: [my-agent]}}`
      3. or try Tribunal without an agent: `tribunal demo`

    not ready: fix the error above first
    exit code 5
    ");
}

#[test]
fn settings_that_cannot_work_are_reported_as_faults() {
    let machine = FakeMachine::new("tier: 9\n", &[("claude", SIGNED_IN), ("git", GIT_VERSION)]);
    let report: Value = serde_json::from_str(&machine.run_doctor(&["--json"]).stdout).unwrap();
    assert_eq!(report["ready"], false);
    let fault_text = report["faults"][0]["what"].as_str().unwrap();
    assert!(
        fault_text.contains("tribunal.yaml, line 1: `tier` must be a whole number from 0 to 4; found `9`"),
        "{fault_text}"
    );
    assert_eq!(report["clients"][0]["state"], "ready", "the clients are looked at all the same");

    machine.sandbox.write_file("tribunal.yaml", "agents:\n  use: [cluade-code]\n");
    let report: Value = serde_json::from_str(&machine.run_doctor(&["--json"]).stdout).unwrap();
    let faults = report["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0]["mend"][0], "did you mean `claude-code`?");
}

#[test]
fn a_program_named_by_the_project_is_not_started_before_it_is_trusted() {
    let settings = "agents: {use: [claude-code], claude-code: {program: ./tools/claude}}\n";
    let machine = FakeMachine::new(settings, &[("git", GIT_VERSION)]);
    machine
        .add_program("tools/claude", &format!("echo ran >> {}\n{SIGNED_IN}", machine.sandbox.path_of("ran").display()));
    insta::assert_snapshot!(machine.doctor_text(), @"
    clients
      · claude-code: not installed
          to install it: npm install -g @anthropic-ai/claude-code
      · codex: not installed
          to install it: npm install -g @openai/codex
      ✗ claude-code: not trusted
          [project]/./tools/claude
          to fix it: tribunal trust

    agents
      ✗ claude-code: not trusted (claude-code ./tools/claude, provider anthropic); used for review and fix

    environment
      ✓ project [project]
      · BMAD: not found; trackers and metrics go to .tribunal
      ✓ git 2.40.1

    errors
    error: not trusted yet: client of agent `claude-code`: ./tools/claude
      help: review and allow it: `tribunal trust`

    not ready: fix the error above first
    exit code 5
    ");
    assert!(!machine.sandbox.path_of("ran").exists());

    assert_eq!(machine.sandbox.run_tribunal(&["trust", "--yes"]).exit_code, Some(0));
    let report: Value = serde_json::from_str(&machine.run_doctor(&["--json"]).stdout).unwrap();
    assert_eq!((&report["ready"], &report["agents"][0]["state"]), (&Value::Bool(true), &"ready".into()));
    assert!(machine.sandbox.path_of("ran").exists());
}

#[test]
fn a_missing_command_is_reported_and_no_command_is_started() {
    let settings = "agents:\n  use: [mine, other]\n  mine: {driver: command, argv: [my-agent, -p]}\n  \
                    other: {driver: command, argv: [absent]}\n";
    let machine = FakeMachine::new(settings, &[("my-agent", "echo > ran"), ("git", GIT_VERSION)]);
    assert_eq!(machine.sandbox.run_tribunal(&["trust", "--yes"]).exit_code, Some(0));
    insta::assert_snapshot!(machine.doctor_text(), @"
    clients
      · claude-code: not installed
          to install it: npm install -g @anthropic-ai/claude-code
      · codex: not installed
          to install it: npm install -g @openai/codex

    agents
      ✓ mine: ready (command my-agent, provider mine); used for review and fix
      ✗ other: not installed (command absent, provider other); used for review and fix

    environment
      ✓ project [project]
      · BMAD: not found; trackers and metrics go to .tribunal
      ✓ git 2.40.1

    warnings
    warning: agent `other`: program `absent` not found on PATH
      help: install `absent`, or fix `agents.other.argv`

    ready: a review can run here
    exit code 0
    ");
    assert!(!machine.sandbox.path_of("ran").exists());
}

#[test]
fn the_report_fits_its_schema() {
    let programs = [("claude", SIGNED_IN), ("codex", TOO_OLD), ("opencode", ""), ("git", GIT_VERSION)];
    let machine = FakeMachine::new("agents: {use: [claude-code, codex]}\n", &programs);
    let report: Value = serde_json::from_str(&machine.run_doctor(&["--json"]).stdout).unwrap();
    let schema = machine.sandbox.run_tribunal(&["schema", "doctor"]).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let schema_errors: Vec<String> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
    assert!(schema_errors.is_empty(), "{schema_errors:?}");
    assert_eq!(report["schema"], "tribunal.doctor/1");
    assert_eq!(report["clients"][0]["signed_in"]["subscription"], true);
    assert_eq!(report["others"][0]["id"], "opencode");
}

/// A client is named only in its directory and its registry row, so every list of clients must contain all of them.
#[test]
fn every_client_of_the_registry_is_listed_everywhere() {
    let programs: Vec<(&str, &str)> = CLIENTS.iter().map(|client| (client.program, "exit 1")).collect();
    let machine = FakeMachine::new("", &programs);
    machine.sandbox.write_file("plan.md", "# Plan\n");
    let report: Value = serde_json::from_str(&machine.run_doctor(&["--json"]).stdout).unwrap();
    let ids_in = |list_name: &str| -> Vec<&str> {
        report[list_name].as_array().unwrap().iter().map(|client_row| client_row["id"].as_str().unwrap()).collect()
    };
    assert_eq!(ids_in("clients"), AGENT_CLIENT_IDS);
    let other_ids: Vec<&str> =
        CLIENTS.iter().filter(|client| client.agent_facts.is_none()).map(|client| client.id).collect();
    assert_eq!(ids_in("others"), other_ids);

    let schema: Value = serde_json::from_str(&machine.run_command(&["schema", "settings"]).stdout).unwrap();
    let schema = schema.to_string();
    for driver_name in DRIVER_NAMES {
        assert!(schema.contains(&format!("\"{driver_name}\"")), "{driver_name}");
    }
    for client in AgentClient::all() {
        let output = machine.run_command(&["review", "plan.md", "--dry-run", "--agent", client.id]);
        assert_eq!(output.exit_code, Some(0), "--agent {}: {}", client.id, output.stderr);
    }
    for (args, command_name) in [(["hook", "--help"], "hook"), (["init", "--help"], "init")] {
        let help = machine.run_command(&args).stdout;
        for client_name in HookClient::all_ids() {
            assert!(help.contains(client_name), "{command_name} does not name {client_name}: {help}");
        }
    }
}

#[test]
fn a_review_does_not_start_with_a_client_that_is_too_old() {
    let machine = FakeMachine::new("agents: {use: [codex]}\n", &[("codex", TOO_OLD), ("git", GIT_VERSION)]);
    machine.sandbox.write_file("plan.md", "# Plan\n");
    let output = machine.run_command(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains("Codex 0.20.1 is too old"), "{}", output.stderr);
    assert!(output.stderr.contains("npm install -g @openai/codex"), "{}", output.stderr);
    assert_eq!(machine.run_command(&["runs"]).exit_code, Some(0));
}

#[test]
fn a_client_is_asked_whether_it_is_signed_in_when_nothing_else_shows_it() {
    // Neither the environment nor the home directory shows the sign-in; only the client itself does.
    let machine = FakeMachine::new("", &[("claude", SIGNED_IN), ("git", GIT_VERSION)]);
    machine.sandbox.write_file("plan.md", "# Plan\n");
    let output = machine.run_command(&["review", "plan.md", "--dry-run"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(
        output.stderr.contains("using claude-code, the first client that is installed and signed in (claude.ai, max)"),
        "{}",
        output.stderr
    );
    let machine = FakeMachine::new("", &[("codex", SIGNED_OUT), ("git", GIT_VERSION)]);
    machine.sandbox.write_file("plan.md", "# Plan\n");
    let output = machine.run_command(&["review", "plan.md", "--dry-run"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains("1. sign in: `codex login`"), "{}", output.stderr);
}

#[test]
fn a_missing_mcp_server_is_a_warning_and_does_not_prevent_reviews() {
    let settings = "agents: {use: [claude-code]}\nmcp: {docs: {argv: [no-such-server, --stdio]}}\n";
    let machine = FakeMachine::new(settings, &[("claude", SIGNED_IN), ("git", GIT_VERSION)]);
    machine.run_command(&["trust", "--yes"]);
    let report: Value = serde_json::from_str(&machine.run_doctor(&["--json"]).stdout).unwrap();
    assert_eq!(report["ready"], true, "{report}");
    assert_eq!(report["warnings"][0]["what"], "MCP server `docs`: program `no-such-server` not found on PATH");
}
