//! `tribunal doctor` with shell scripts as clients: what it reports, what is missing, and the command that repairs it.

use std::fs;

use serde_json::Value;
use tribunal_agents::{
    clients::{AGENT_CLIENT_IDS, AgentClient, CLIENTS},
    driver::DRIVER_NAMES,
    hook::HookClient,
};

use crate::common::{Ran, Sandbox, write_program};

/// A machine with only these programs on its path.
struct Machine {
    sandbox: Sandbox,
    variables: Vec<(&'static str, &'static str)>,
    /// How many seconds a client may take to answer. The default is long, as the machine may be busy.
    patience: &'static str,
}

const SIGNED_IN: &str = r#"case "$1" in
    --version) echo "2.1.325 (Claude Code)";;
    auth) echo '{"loggedIn": true, "authMethod": "claude.ai", "apiProvider": "firstParty", "subscriptionType": "max"}';;
esac"#;
const SIGNED_OUT: &str = r#"case "$1" in
    --version) echo "codex-cli 0.166.0";;
    login) echo "Not logged in" >&2; exit 1;;
esac"#;
const HANGS: &str = "exec /bin/sleep 60";
const TOO_OLD: &str = "echo 'codex-cli 0.20.1'";
const GIT: &str = "echo git version 2.40.1";

impl Machine {
    fn new(settings: &str, programs: &[(&str, &str)]) -> Machine {
        let sandbox = Sandbox::new().wary();
        sandbox.write("tribunal.yaml", settings);
        let machine = Machine { sandbox, variables: Vec::new(), patience: "60" };
        fs::create_dir_all(machine.sandbox.home().join("bin")).unwrap();
        for (name, script) in programs {
            machine.program(&format!("../home/bin/{name}"), script);
        }
        machine
    }

    fn program(&self, path: &str, script: &str) {
        let path = self.sandbox.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_program(&path, &format!("#!/bin/sh\n{script}\n"));
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.types(&[&["doctor", "--timeout", self.patience], args].concat())
    }

    fn types(&self, args: &[&str]) -> Ran {
        let mut command = self.sandbox.command(args);
        command.env_clear().env("PATH", self.sandbox.home().join("bin"));
        self.sandbox.at_home(&mut command);
        command.envs(self.variables.iter().copied());
        Ran::of(command.output().unwrap())
    }

    /// Returns the report as the user sees it, with the exit code.
    fn said(&self) -> String {
        let ran = self.run(&[]);
        let home = self.sandbox.home().display().to_string();
        let text = self.sandbox.normal(&ran.out).replace(&home, "[home]");
        format!("{text}{}exit code {}", ran.err, ran.code.unwrap_or(-1))
    }
}

#[test]
fn clients_that_are_there_and_one_that_nobody_is_signed_in_to() {
    let programs = [("claude", SIGNED_IN), ("codex", SIGNED_OUT), ("gemini", "exit 1"), ("git", GIT)];
    let machine = Machine::new("agents: {use: [claude-code, codex]}\n", &programs);
    machine.sandbox.write("_bmad/bmm/config.yaml", "project_name: x\n");
    insta::assert_snapshot!(machine.said(), @r"
    clients
      ✓ claude-code: ready, version 2.1.325, signed in by claude.ai, max (a plan pays)
          [home]/bin/claude
          can: reviewers read only, fixers write, answer form, sessions, sizes, tools, servers, cost
      ✗ codex: not signed in, version 0.166.0
          [home]/bin/codex
          to mend it: codex login
      · gemini: [home]/bin/gemini is there, and has no driver yet

    agents
      ✓ claude-code: ready (claude-code claude, of anthropic); takes review and fix
      ✗ codex: not signed in (codex codex, of openai); takes review and fix

    here
      ✓ project [project]
      ✓ BMAD: its settings are here; parties have the built-in personas
      ✓ git 2.40.1

    worth knowing
    [W] agent `codex`: not signed in
        1. codex login

    a review can run here
    exit code 0
    ");
}

#[test]
fn a_client_that_hangs_and_one_that_is_too_old_keep_a_review_from_running() {
    let programs = [("claude", HANGS), ("codex", TOO_OLD)];
    let mut machine = Machine::new("agents: {use: [claude-code, codex]}\n", &programs);
    // The client that does answer needs some of this time, too.
    machine.patience = "5";
    insta::assert_snapshot!(machine.said(), @r"
    clients
      ✗ claude-code: does not work
          [home]/bin/claude
          no answer within 5 s
          to mend it: npm install -g @anthropic-ai/claude-code
      ✗ codex: too old, version 0.20.1, at least 0.147.0 is needed
          [home]/bin/codex
          to mend it: npm install -g @openai/codex

    agents
      ✗ claude-code: does not work (claude-code claude, of anthropic); takes review and fix
      ✗ codex: too old (codex codex, of openai); takes review and fix

    here
      ✓ project [project]
      · no BMAD here: trackers and metrics go to .tribunal
      ? git is not there: files can be reviewed, changes cannot

    what keeps a review from running
    [!] agent `claude-code`: does not work
        1. npm install -g @anthropic-ai/claude-code
    [!] agent `codex`: too old
        1. npm install -g @openai/codex

    a review cannot run here yet: 2 things are missing
    exit code 5
    ");
}

#[test]
fn a_key_signs_in_and_without_settings_the_first_client_that_is_ready_takes_part() {
    let mut machine = Machine::new("tier: 1\n", &[("codex", SIGNED_OUT), ("git", GIT)]);
    machine.variables.push(("CODEX_API_KEY", "sk-test"));
    insta::assert_snapshot!(machine.said(), @r"
    clients
      · claude-code: not installed
          to install it: npm install -g @anthropic-ai/claude-code
      ✓ codex: ready, version 0.166.0, signed in by CODEX_API_KEY (paid by the token)
          [home]/bin/codex
          can: reviewers read only, fixers write, answer form, sessions, servers, cost

    agents
      ✓ codex: ready (codex codex, of openai); takes review and fix

    here
      ✓ project [project]
      · no BMAD here: trackers and metrics go to .tribunal
      ✓ git 2.40.1

    [i] no agent is set: codex takes part, the first client that is installed and signed in (CODEX_API_KEY); another one: --agent NAME

    a review can run here
    exit code 0
    ");
}

#[test]
fn an_empty_machine_is_told_what_to_install() {
    insta::assert_snapshot!(Machine::new("", &[]).said(), @r"
    clients
      · claude-code: not installed
          to install it: npm install -g @anthropic-ai/claude-code
      · codex: not installed
          to install it: npm install -g @openai/codex

    agents
      ✗ none

    here
      ✓ project [project]
      · no BMAD here: trackers and metrics go to .tribunal
      ? git is not there: files can be reviewed, changes cannot

    what keeps a review from running
    [!] no agent is set, and no client can be used as it is
        1. install one, for instance: npm install -g @anthropic-ai/claude-code
        2. or name a command of yours in [project]/tribunal.yaml: agents: {mine: {driver: command, argv: [my-agent]}}
        3. or see it work without an agent: tribunal demo

    a review cannot run here yet: 1 thing is missing
    exit code 5
    ");
}

#[test]
fn settings_that_lead_nowhere_are_faults() {
    let machine = Machine::new("tier: 9\n", &[("claude", SIGNED_IN), ("git", GIT)]);
    let report: Value = serde_json::from_str(&machine.run(&["--json"]).out).unwrap();
    assert_eq!(report["ready"], false);
    let what = report["faults"][0]["what"].as_str().unwrap();
    assert!(what.contains("tribunal.yaml, line 1: `tier` is `9`"), "{what}");
    assert_eq!(report["clients"][0]["state"], "ready", "the clients are looked at all the same");

    machine.sandbox.write("tribunal.yaml", "agents:\n  use: [cluade-code]\n");
    let report: Value = serde_json::from_str(&machine.run(&["--json"]).out).unwrap();
    let faults = report["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0]["mend"][0], "did you mean `claude-code`?");
}

#[test]
fn a_program_that_the_project_names_is_not_started_before_somebody_said_yes() {
    let settings = "agents: {use: [claude-code], claude-code: {program: ./tools/claude}}\n";
    let machine = Machine::new(settings, &[("git", GIT)]);
    machine.program(
        "tools/claude",
        &format!("echo ran >> {}\n{SIGNED_IN}", machine.sandbox.path("ran").display()),
    );
    insta::assert_snapshot!(machine.said(), @r"
    clients
      · claude-code: not installed
          to install it: npm install -g @anthropic-ai/claude-code
      · codex: not installed
          to install it: npm install -g @openai/codex
      ✗ claude-code: not trusted
          [project]/./tools/claude
          to mend it: tribunal trust

    agents
      ✗ claude-code: not trusted (claude-code ./tools/claude, of anthropic); takes review and fix

    here
      ✓ project [project]
      · no BMAD here: trackers and metrics go to .tribunal
      ✓ git 2.40.1

    what keeps a review from running
    [!] not trusted yet: agent `claude-code`, its client: ./tools/claude
        1. look at it and say yes: tribunal trust

    a review cannot run here yet: 1 thing is missing
    exit code 5
    ");
    assert!(!machine.sandbox.path("ran").exists());

    assert_eq!(machine.sandbox.run(&["trust", "--yes"]).code, Some(0));
    let report: Value = serde_json::from_str(&machine.run(&["--json"]).out).unwrap();
    assert_eq!((&report["ready"], &report["agents"][0]["state"]), (&Value::Bool(true), &"ready".into()));
    assert!(machine.sandbox.path("ran").exists());
}

#[test]
fn a_command_that_is_not_there_is_told_and_no_command_is_started() {
    let settings = "agents:\n  use: [mine, other]\n  mine: {driver: command, argv: [my-agent, -p]}\n  \
                    other: {driver: command, argv: [absent]}\n";
    let machine = Machine::new(settings, &[("my-agent", "echo > ran"), ("git", GIT)]);
    assert_eq!(machine.sandbox.run(&["trust", "--yes"]).code, Some(0));
    insta::assert_snapshot!(machine.said(), @r"
    clients
      · claude-code: not installed
          to install it: npm install -g @anthropic-ai/claude-code
      · codex: not installed
          to install it: npm install -g @openai/codex

    agents
      ✓ mine: ready (command my-agent, of mine); takes review and fix
      ✗ other: not installed (command absent, of other); takes review and fix

    here
      ✓ project [project]
      · no BMAD here: trackers and metrics go to .tribunal
      ✓ git 2.40.1

    worth knowing
    [W] agent `other`: not installed
        1. install `absent`, or correct `argv` of agent `other`

    a review can run here
    exit code 0
    ");
    assert!(!machine.sandbox.path("ran").exists());
}

#[test]
fn the_report_fits_its_schema() {
    let programs = [("claude", SIGNED_IN), ("codex", TOO_OLD), ("opencode", ""), ("git", GIT)];
    let machine = Machine::new("agents: {use: [claude-code, codex]}\n", &programs);
    let report: Value = serde_json::from_str(&machine.run(&["--json"]).out).unwrap();
    let schema = machine.sandbox.run(&["schema", "doctor"]).out;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<String> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(report["schema"], "tribunal.doctor/1");
    assert_eq!(report["clients"][0]["signed_in"]["subscription"], true);
    assert_eq!(report["others"][0]["id"], "opencode");
}

/// A client is named only in its directory and its registry row, so every list of clients must contain all of them.
#[test]
fn every_client_of_the_registry_is_reached() {
    let programs: Vec<(&str, &str)> = CLIENTS.iter().map(|client| (client.program, "exit 1")).collect();
    let machine = Machine::new("", &programs);
    machine.sandbox.write("plan.md", "# Plan\n");
    let report: Value = serde_json::from_str(&machine.run(&["--json"]).out).unwrap();
    let ids = |list: &str| -> Vec<&str> {
        report[list].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect()
    };
    assert_eq!(ids("clients"), AGENT_CLIENT_IDS);
    let others: Vec<&str> =
        CLIENTS.iter().filter(|client| client.agent.is_none()).map(|client| client.id).collect();
    assert_eq!(ids("others"), others);

    let schema: Value = serde_json::from_str(&machine.types(&["schema", "settings"]).out).unwrap();
    let schema = schema.to_string();
    for name in DRIVER_NAMES {
        assert!(schema.contains(&format!("\"{name}\"")), "{name}");
    }
    for client in AgentClient::all() {
        let ran = machine.types(&["review", "plan.md", "--dry-run", "--agent", client.id]);
        assert_eq!(ran.code, Some(0), "--agent {}: {}", client.id, ran.err);
    }
    for (args, kind) in [(["hook", "--help"], "hook"), (["init", "--help"], "init")] {
        let help = machine.types(&args).out;
        for word in HookClient::words() {
            assert!(help.contains(word), "{kind} does not name {word}: {help}");
        }
    }
}

#[test]
fn a_review_starts_with_no_client_that_is_too_old_for_its_flags() {
    let machine = Machine::new("agents: {use: [codex]}\n", &[("codex", TOO_OLD), ("git", GIT)]);
    machine.sandbox.write("plan.md", "# Plan\n");
    let ran = machine.types(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains("Codex 0.20.1 is too old"), "{}", ran.err);
    assert!(ran.err.contains("npm install -g @openai/codex"), "{}", ran.err);
    assert_eq!(machine.types(&["runs"]).code, Some(0));
}

#[test]
fn a_sign_in_that_shows_nowhere_is_asked_for_before_nobody_is_taken() {
    // Neither the environment nor the home directory shows the sign-in; only the client itself does.
    let machine = Machine::new("", &[("claude", SIGNED_IN), ("git", GIT)]);
    machine.sandbox.write("plan.md", "# Plan\n");
    let ran = machine.types(&["review", "plan.md", "--dry-run"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.err.contains(
            "claude-code takes part, the first client that is installed and signed in (claude.ai, max)"
        ),
        "{}",
        ran.err
    );
    let machine = Machine::new("", &[("codex", SIGNED_OUT), ("git", GIT)]);
    machine.sandbox.write("plan.md", "# Plan\n");
    let ran = machine.types(&["review", "plan.md", "--dry-run"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains("1. sign in: codex login"), "{}", ran.err);
}

#[test]
fn a_server_that_is_not_there_is_pointed_out_and_keeps_nobody_from_working() {
    let settings = "agents: {use: [claude-code]}\nmcp: {docs: {argv: [no-such-server, --stdio]}}\n";
    let machine = Machine::new(settings, &[("claude", SIGNED_IN), ("git", GIT)]);
    machine.types(&["trust", "--yes"]);
    let report: Value = serde_json::from_str(&machine.run(&["--json"]).out).unwrap();
    assert_eq!(report["ready"], true, "{report}");
    assert_eq!(report["warnings"][0]["what"], "server `docs`: the program `no-such-server` is not there");
}
