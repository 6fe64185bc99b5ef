//! Settings through the binary: layers, origins, pasted blocks, and the schema for editors.

use std::fs;

use serde_json::Value;

use crate::common::{CommandOutput, Sandbox};

const NO_FINDINGS_SCRIPT: &str = "tasks: [{task: '*', steps: [{findings: []}]}]\n";

/// Returns the value and the origin of the setting at this path.
fn value_and_origin(document: &Value, setting_path: &str) -> (Value, String) {
    let all_settings = document["settings"].as_array().unwrap();
    let found_setting =
        all_settings.iter().find(|setting| setting["path"] == setting_path).unwrap_or_else(|| panic!("{setting_path}"));
    (found_setting["value"].clone(), found_setting["origin"].as_str().unwrap().to_string())
}

fn write_user_settings(sandbox: &Sandbox, settings_text: &str) -> String {
    let settings_path = sandbox.home_dir().join("config/tribunal/settings.yaml");
    fs::create_dir_all(settings_path.parent().unwrap()).unwrap();
    fs::write(&settings_path, settings_text).unwrap();
    settings_path.display().to_string()
}

#[test]
fn later_layers_win_and_every_value_keeps_its_origin() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    let user_settings =
        write_user_settings(&sandbox, "# mine\nlimits:\n  max_cost: 1\n  max_tokens: 2000\n  max_findings: 9\n");
    sandbox.write_file(
        "_bmad/bmm/config.yaml",
        "project_name: x\noutput_folder: out\nreview_loop:\n  limits:\n    max_total_issues: 8\n    max_review_rounds: 2\n",
    );
    sandbox.write_file(
        "tribunal.yaml",
        "limits:\n  max_review_rounds: 4\n  max_cost: 2\nagents: {scripted: {driver: replay, script: script.yaml}}\n",
    );
    let mut command = sandbox.tribunal_command(&["inspect", "settings", "--json"]);
    let output = command.env("TRIBUNAL_LIMITS__MAX_COST", "3.50").output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (setting_path, value, expected_origin) in [
        ("limits.max_cost", Value::from(3.5), "TRIBUNAL_LIMITS__MAX_COST".to_string()),
        ("limits.max_review_rounds", 4.into(), "tribunal.yaml:2".into()),
        ("limits.max_findings", 8.into(), "_bmad/bmm/config.yaml:5".into()),
        ("limits.max_tokens", 2000.into(), format!("{user_settings}:4")),
        ("limits.max_failures", 5.into(), "default".into()),
        ("level", Value::Null, "not set".into()),
    ] {
        assert_eq!(value_and_origin(&document, setting_path), (value, expected_origin), "{setting_path}");
    }
    let plan_document =
        sandbox.run_json(&["review", "plan.md", "--dry-run", "--set", "limits.max_cost=0.25", "--level", "dual"]);
    assert_eq!(plan_document["limits"]["cost"], 0.25);
    assert_eq!(plan_document["limits"]["rounds"], 4);
    assert_eq!(plan_document["level"], "dual");
}

#[test]
fn variables_and_flags_are_checked_like_files() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    let mut command =
        sandbox.tribunal_command(&["review", "plan.md", "--dry-run", "--set", "limits.max_cots=1", "--set", "tier=9"]);
    command.env("TRIBUNAL_LIMITS__MAX_COTS", "3").env("TRIBUNAL_TIER", "many").env("TRIBUNAL_SOMETHING", "else");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @"
    error: environment variable TRIBUNAL_LIMITS__MAX_COTS: unknown setting `limits.max_cots`
      Nothing was started.
      Other problems:
        TRIBUNAL_TIER: `tier` must be a whole number from 0 to 4; found `many`
        --set limits.max_cots: unknown setting `max_cots` under `limits:`
          did you mean `limits.max_cost`?
        --set tier: `tier` must be a whole number from 0 to 4; found `9`
      help: did you mean `TRIBUNAL_LIMITS__MAX_COST`?
    ");
    let command_output = sandbox.run_tribunal(&["review", "plan.md", "--set", "tier"]);
    assert_eq!(command_output.exit_code, Some(2));
    assert!(command_output.stderr.contains("missing value in `--set tier`"), "{}", command_output.stderr);
}

/// The settings of loops, between their heading and the next one.
fn loop_section(listed: &str) -> &str {
    let start = listed.find("\nloop:\n").unwrap() + 1;
    let end = listed[start + 1..].find("\nsprint:").unwrap() + start + 2;
    &listed[start..end]
}

/// Returns the settings without what the tests themselves set.
fn inspect_settings(sandbox: &Sandbox) -> String {
    let mut command = sandbox.tribunal_command(&["inspect", "settings"]);
    CommandOutput::from_output(command.env_remove("TRIBUNAL_SANDBOX__WRITE").output().unwrap()).stdout
}

fn without_loop_section(listed: &str) -> String {
    listed.replace(loop_section(listed), "")
}

#[test]
fn the_settings_of_loops_read_well() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file("tribunal.yaml", "progress_display: {sound_alerts: true}\n");
    insta::assert_snapshot!(loop_section(&sandbox.run_tribunal(&["inspect", "settings"]).stdout), @"
    loop:
      max_iterations           100            default                  a whole number from 1 to 100000
      promise                  COMPLETE       default                  text
      accept_loop_complete     false          default                  true or false
      accept_task_complete     false          default                  true or false
      continue                 false          default                  true or false
      iteration_timeout        3600 s         default                  1 to 86400 seconds
      checkpoint_interval      5              default                  a whole number from 1 to 100
      review                   off            default                  one of off, enhanced, ultimate
      review_interval          5              default                  a whole number from 1 to 100
      breaker.no_progress      3              default                  a whole number from 1 to 100
      breaker.same_error       5              default                  a whole number from 1 to 100
      breaker.output_decline   70 %           default                  a percentage from 0 to 100
      breaker.denials          2              default                  a whole number from 1 to 100
      breaker.cooldown_minutes 30 min         default                  1 to 1440 minutes
      breaker.on_open          halt           default                  one of halt, wait
    ");
}

const SHORT_SETTINGS: &str = "tier: 1\nagents: {scripted: {driver: replay, script: script.yaml}}\nverify: [make test]\n\
                              progress_display: {mode: quiet, sound_alerts: true}\n";

fn sandbox_with_short_settings() -> Sandbox {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file("tribunal.yaml", SHORT_SETTINGS);
    sandbox
}

#[test]
fn the_settings_in_force_read_well() {
    insta::assert_snapshot!(without_loop_section(&inspect_settings(&sandbox_with_short_settings())));
}

#[test]
fn one_file_alone_is_explained_with_all_its_problems() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file("other.yaml", "tier: 1\nlimits:\n  max_cost: 0\nspeed: 3\nreview_loop:\n  enabled: no\n");
    let output = sandbox.run_tribunal(&["inspect", "settings", "other.yaml"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    insta::assert_snapshot!(output.stdout, @"
    line 1    tier                                         1
    line 6    review_loop.enabled                          false
    error: line 3: `limits.max_cost` must be an amount in dollars, more than 0; found `0`
      help: unlimited is not supported; set a number
    error: line 4: unknown setting `speed`
    settings: 2, problems: 2
    ");
    let document = sandbox.run_json(&["inspect", "settings", "other.yaml"]);
    assert_eq!(document["problems"][1]["line"], 4);
}

#[test]
fn a_run_takes_changed_settings_from_flags_when_it_is_resumed() {
    let sandbox = Sandbox::with_script("tasks: [{task: '*', steps: [{exit: 41}]}]\n");
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(5));
    sandbox.write_file("script.yaml", NO_FINDINGS_SCRIPT);
    let events = sandbox.run_events(&["resume", "--reload", "--set", "limits.max_cost=7"]);
    let events_text = serde_json::to_string(&events).unwrap();
    assert!(events_text.contains("\"cost\":7.0"), "{events_text}");
    assert_eq!(events.last().unwrap()["outcome"], "resolved");
}

#[test]
fn the_settings_schema_accepts_what_the_reader_accepts() {
    let sandbox = Sandbox::new();
    let schema = sandbox.run_json(&["schema", "settings"]);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let fits_schema = |settings_json: &str| validator.is_valid(&serde_json::from_str::<Value>(settings_json).unwrap());
    assert!(fits_schema(
        r#"{"tier": 2, "limits": {"max_cost": 2.5}, "agents": {"use": ["a"], "a": {"driver": "command", "argv": ["x"]}}}"#
    ));
    assert!(fits_schema(
        r#"{"automation": {"tier": "auto-suggest", "review_loop": {"tier_minimums": {"0": "dual"}}}, "limits": null}"#
    ));
    assert!(fits_schema(
        r#"{"agentConfig": {"defaultPrimary": "codex", "perTask": {"review": {"primary": "claude", "fallback": false}}}}"#
    ));
    for wrong_settings in [
        r#"{"tier": 7}"#,
        r#"{"limits": {"max_cots": 1}}"#,
        r#"{"agents": {"a": {"argvs": []}}}"#,
        r#"{"agentConfig": {"perTask": {"reviw": {}}}}"#,
        r#"{"defaults": {"auto_continue_threshold": 80}}"#,
    ] {
        assert!(!fits_schema(wrong_settings), "{wrong_settings}");
    }
}

/// Writes settings in which `fast` answers in one seat and fails in the other two, and `big` answers in all.
fn write_ladder_settings(sandbox: &Sandbox) {
    sandbox.write_file(
        "weak.yaml",
        "tasks: [{task: '*/review/party', steps: [{findings: []}]}, {task: '*', steps: [{exit: 41}]}]\n",
    );
    sandbox.write_file(
        "tribunal.yaml",
        "tier: 2\nagents:\n  use: [fast]\n  fast: {driver: replay, script: weak.yaml, provider: acme, stronger: big}\n  \
         big: {driver: replay, script: script.yaml, provider: acme}\ntasks: {retry_after: 0, required_issues: 0}\n",
    );
}

#[test]
fn a_stronger_agent_takes_over_from_one_that_failed_twice() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    write_ladder_settings(&sandbox);
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert!(output.stderr.contains("agents: fast · in reserve: big · tier 2"), "{}", output.stderr);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let calls = sandbox.run_tribunal(&["log", "--prompts"]).stdout;
    let mut calls_by_agent: Vec<String> = Vec::new();
    for line in calls.lines().skip(1) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        calls_by_agent.push(format!("{} {} {}", columns[0].split('/').next().unwrap(), columns[1], columns[2]));
    }
    calls_by_agent.sort();
    calls_by_agent.dedup();
    // The agent fails twice at once, so its stronger agent takes over its seats in the same round. Seats work side by side:
    // one may have been handed over before another begins.
    assert_eq!(calls_by_agent, ["round-1 big replay", "round-1 fast replay"], "{calls}");
}

#[test]
fn a_reserve_agent_must_be_trusted_before_anything_runs() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT).without_trust();
    write_ladder_settings(&sandbox);
    let settings = sandbox
        .read_file("tribunal.yaml")
        .replace("big: {driver: replay, script: script.yaml", "big: {driver: command, argv: [touch, trace]");
    sandbox.write_file("tribunal.yaml", &settings);
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("agent `big`: touch trace"), "{}", output.stderr);
    assert!(!sandbox.path_of(".tribunal").exists());
}

#[test]
fn a_dry_run_seats_agents_of_different_providers_like_the_run() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    let agent_settings = |agent_name: &str, provider: &str| {
        format!("  {agent_name}: {{driver: replay, script: script.yaml, provider: {provider}}}\n")
    };
    let settings = format!(
        "tier: 2\nagents:\n  use: [one, two, other]\n{}{}{}",
        agent_settings("one", "Acme"),
        agent_settings("two", "acme"),
        agent_settings("other", "globex")
    );
    sandbox.write_file("tribunal.yaml", &settings);
    let plan_document = sandbox.run_json(&["review", "plan.md", "--dry-run"]);
    let agent_names: Vec<&str> =
        plan_document["panel"].as_array().unwrap().iter().map(|seat| seat["agent"].as_str().unwrap()).collect();
    assert_eq!(agent_names, ["one", "other", "two"]);
}

const AGENT_MANIFEST: &str = "_bmad/_config/agent-manifest.csv";
const TEAM_CSV: &str = "name,displayName,title,icon,role,identity,communicationStyle,principles,module,path\r\n\
    \"bmad-master\",\"M\",\"BMad Master\",\"x\",\"Runs it all\",\"i\",\"c\",\"p\",\"core\",\"a.md\"\r\n\
    \"clerk\",\"Ada\",\"Billing Clerk\",\"x\",\"Invoices &amp; refunds\",\"i\",\"c\",\"p\",\"bmm\",\"b.md\"\r\n\
    \"cook\",\"Ben\",\"Ship&apos;s Cook\",\"x\",\"Food, and who eats it\",\"i\",\"c\",\"p\",\"bmm\",\"c.md\"\r\n\
    \"pilot\",\"Cid\",\"Pilot\",\"x\",\"Says \"\"no\"\" to reefs\",\"i\",\"c\",\"p\",\"bmm\",\"d.md\"\r\n";

#[test]
fn a_party_uses_the_team_of_the_project_as_personas() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file(AGENT_MANIFEST, TEAM_CSV);
    let shown_text = sandbox.run_tribunal(&["inspect", "settings"]).stdout;
    let roster_line = "party personas from _bmad/_config/agent-manifest.csv: Billing Clerk, Ship's Cook, Pilot\n";
    assert!(shown_text.ends_with(roster_line), "{shown_text}");
    let document = sandbox.run_json(&["inspect", "settings"]);
    assert_eq!(document["roster"]["origin"], AGENT_MANIFEST);
    assert_eq!(document["roster"]["names"][2], "Pilot");

    sandbox.run_tribunal(&["review", "plan.md", "--level", "dual", "--no-fix"]);
    // The run uses the recorded personas, even after the file is gone.
    fs::remove_file(sandbox.path_of(AGENT_MANIFEST)).unwrap();
    let events = serde_json::to_string(&sandbox.run_events(&["log", &sandbox.last_run_id()])).unwrap();
    for persona in [
        r#"{"focus":"Invoices & refunds","name":"Billing Clerk"}"#,
        r#"{"focus":"Says \"no\" to reefs","name":"Pilot"}"#,
    ] {
        assert!(events.contains(persona), "{persona}: {events}");
    }
    assert!(events.contains(r#""plan":"party""#) && !events.contains("product manager"), "{events}");
}

#[test]
fn a_team_that_cannot_be_read_is_warned_about_and_the_review_goes_on() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file(AGENT_MANIFEST, "no,team\n");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let warning = "warning: _bmad/_config/agent-manifest.csv has no column `title`, `displayName` or `name`; parties use the \
                   built-in personas\n";
    assert!(output.stderr.starts_with(warning), "{}", output.stderr);
    let inspected = sandbox.run_tribunal(&["inspect", "settings"]);
    assert!(inspected.exit_code == Some(0) && inspected.stdout.ends_with(warning), "{}", inspected.stdout);
    assert_eq!(sandbox.run_json(&["inspect", "settings"])["roster"], Value::Null);
}

#[test]
fn undefined_agents_are_reported_as_problems() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    sandbox.write_file(
        "tribunal.yaml",
        "agents:\n  use: [nope]\n  scripted: {driver: replay, script: script.yaml, stronger: scriptde}\n  \
         scripted-2: {driver: replay, script: script.yaml}\n",
    );
    let output = sandbox.run_tribunal(&["inspect", "settings"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    let (_, problems) = output.stdout.split_once("`--all`.\n").unwrap();
    insta::assert_snapshot!(problems, @"
    error: tribunal.yaml, line 2: unknown agent `nope`
      help: define it under `agents:`, or use one of scripted, scripted-2
    error: tribunal.yaml, line 3: `agents.scripted.stronger` names an unknown agent, `scriptde`
      help: did you mean `scripted-2`?
    ");
    assert!(output.stdout.contains("* use                      [nope]         tribunal.yaml:2"), "{}", output.stdout);
    let document = sandbox.run_json(&["inspect", "settings"]);
    assert_eq!(document["problems"][1]["line"], 3);
    assert_eq!(document["problems"][1]["place"], "tribunal.yaml, line 3");
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(2));
}

#[test]
fn settings_with_the_short_ending_are_read_unless_there_are_both() {
    let sandbox = Sandbox::with_script(NO_FINDINGS_SCRIPT);
    let settings_text = sandbox.read_file("tribunal.yaml");
    fs::rename(sandbox.path_of("tribunal.yaml"), sandbox.path_of("tribunal.yml")).unwrap();
    let tier_origin = || value_and_origin(&sandbox.run_json(&["inspect", "settings"]), "tier").1;
    assert_eq!(tier_origin(), "tribunal.yml:1");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(!output.stderr.contains("ignored"), "{}", output.stderr);
    // Advice names the file that is there; another one beside it would switch it off.
    sandbox.write_file("tribunal.yml", "agents: {use: [absent]}\n");
    let output = sandbox.run_tribunal(&["inspect", "settings"]);
    assert!(output.stdout.contains("define it in tribunal.yml"), "{}", output.stdout);

    sandbox.write_file("tribunal.yaml", &settings_text);
    assert_eq!(tier_origin(), "tribunal.yaml:1");
    let warning =
        "tribunal.yml is ignored because tribunal.yaml exists; move its settings to tribunal.yaml and delete it";
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert!(output.stderr.contains(&format!("warning: {warning}\n")), "{}", output.stderr);
    assert_eq!(sandbox.run_json(&["inspect", "settings"])["warnings"][0], warning);
    let validation = sandbox.run_tribunal(&["validate"]);
    assert!(validation.stdout.contains(warning), "{}", validation.stdout);
}

#[test]
fn init_leaves_settings_with_the_short_ending_alone() {
    let sandbox = Sandbox::new();
    sandbox.write_file("tribunal.yml", "tier: 1\n");
    let output = sandbox.run_tribunal(&["init", "--yes", "--profile", "team"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("tribunal.yml exists and is not changed"), "{}", output.stderr);
    assert!(!sandbox.path_of("tribunal.yaml").exists());
}
