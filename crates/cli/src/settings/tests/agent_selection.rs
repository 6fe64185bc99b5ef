//! Which agents take part, how they are driven and which of them does what.

use std::path::Path;

use tribunal_agents::clients::AgentClient;
use tribunal_engine::{
    ids::{AgentName, ClientId},
    limits::WaitLimits,
};
use tribunal_workflows::{
    findings::{agent_role::AgentRole, subject::Subject},
    runs::settings::{AgentSpec, DriverSpec, Settings},
    tasks::client::{ClientSpec, JobKind, JobPriority, McpServer, ModelsBySize, SettingsInheritance},
};

use super::{AGENT_YAML, project_with_files};
use crate::{
    clients::installed_clients::InstalledClient,
    settings::{ResolvedSettings, RunInputs, layers::SETTINGS_FILE, resolve::resolve_settings},
    trust::trust_item::TrustItem,
};

fn try_resolve(yaml_text: &str, inputs: &RunInputs) -> Result<ResolvedSettings, String> {
    let directory = project_with_files(&[(SETTINGS_FILE, yaml_text), ("script.yaml", "")]);
    resolve_settings(directory.path(), Subject::from_path("plan.md", None), inputs)
        .map_err(|user_error| user_error.to_string().replace(&directory.path().display().to_string(), "[project]"))
}

fn resolve_or_panic(yaml_text: &str) -> ResolvedSettings {
    try_resolve(yaml_text, &RunInputs::default()).unwrap_or_else(|user_error| panic!("{user_error}"))
}

fn resolve_error(yaml_text: &str) -> String {
    try_resolve(yaml_text, &RunInputs::default()).unwrap_err()
}

/// Describes the agents of each job, `codex takes, claude stands by`, with models in brackets.
fn describe_duties(run_settings: &Settings) -> String {
    let job_line = |review_job: JobKind| {
        let agent_text = |agent_spec: &AgentSpec| {
            let agent_duty = agent_spec.duties.get(&review_job).cloned().unwrap_or_default();
            let part_text = match agent_duty.part {
                JobPriority::Takes => "takes",
                JobPriority::StandsBy => "stands by",
                JobPriority::LastResort => "last resort",
                JobPriority::Never => "never",
            };
            let model_text = agent_duty.model.map(|model_name| format!(" ({model_name})")).unwrap_or_default();
            format!("{} {part_text}{model_text}", agent_spec.name)
        };
        format!("{review_job}: {}", run_settings.agents.iter().map(agent_text).collect::<Vec<_>>().join(", "))
    };
    [JobKind::Review, JobKind::Fix].map(job_line).join("\n")
}

#[test]
fn a_client_needs_no_definition_and_its_vendor_is_its_provider() {
    let run_settings = resolve_or_panic("agents: {use: [claude-code, codex, claude]}\n").plan.settings;
    let agent_providers: Vec<String> = run_settings
        .agents
        .iter()
        .map(|agent_spec| format!("{} of {}", agent_spec.name, agent_spec.provider_name()))
        .collect();
    assert_eq!(agent_providers, ["claude-code of anthropic", "codex of openai", "claude of anthropic"]);
    assert_eq!(run_settings.agents[0].driver, DriverSpec::Client(ClientSpec::new("claude-code")));
    assert_eq!(run_settings.agents[1].driver, DriverSpec::Client(ClientSpec::new("codex")));
    assert_eq!(run_settings.agents[2].driver, run_settings.agents[0].driver);
    let run_settings = resolve_or_panic("agents: {codex: {model: m, provider: ' Azure '}}\n").plan.settings;
    assert_eq!(run_settings.agents[0].provider_name(), "azure");
    let client_spec = run_settings.agents[0].driver.client_spec().unwrap();
    assert_eq!((client_spec.client.as_str(), client_spec.model.as_deref()), ("codex", Some("m")));
}

#[test]
fn every_key_of_a_client_is_pinned() {
    let yaml_text = "agents:
  use: [mine, other]
  continue: true
  mine:
    driver: claude
    program: /opt/claude
    model: opus
    models: {small: a, medium: b, large: c}
    inherit: project
    bypass: true
    allow: ['Bash(git log:*)']
    fresh: true
  other: {driver: codex, inherit: nothing}
mcp:
  lab: {argv: [python3, lab.py]}
";
    let run_settings = resolve_or_panic(yaml_text).plan.settings;
    let servers = vec![McpServer::new("lab", vec!["python3".into(), "lab.py".into()])];
    let expected_client = ClientSpec {
        client: ClientId::new("claude-code"),
        program: Some("/opt/claude".into()),
        model: Some("opus".into()),
        models: ModelsBySize { small: Some("a".into()), medium: Some("b".into()), large: Some("c".into()) },
        inherit: SettingsInheritance::Project,
        bypass: true,
        fresh: true,
        allow: vec!["Bash(git log:*)".into()],
        servers: servers.clone(),
    };
    assert_eq!(run_settings.agents[0].driver, DriverSpec::Client(expected_client));
    let other_client = ClientSpec { inherit: SettingsInheritance::Nothing, servers, ..ClientSpec::new("codex") };
    assert_eq!(run_settings.agents[1].driver, DriverSpec::Client(other_client));

    let fresh_settings = resolve_or_panic("agents: {use: [codex], continue: false}\n").plan.settings;
    assert_eq!(fresh_settings.agents[0].driver.client_spec().map(|client| client.fresh), Some(true));
}

#[test]
fn keys_that_do_not_fit_the_driver_are_refused_with_their_line() {
    let first_error_line = |agent_yaml: &str| {
        let error_text = resolve_error(&format!("agents:\n  mine: {{{agent_yaml}}}\n"));
        assert!(error_text.contains("It is set in [project]/tribunal.yaml:2. Nothing was started."), "{error_text}");
        error_text.lines().next().unwrap_or_default().to_string()
    };
    let error_lines = [
        "driver: command, argv: [x], model: opus",
        "driver: replay, script: script.yaml, models: {small: x}",
        "driver: codex, argv: [x]",
        "driver: claude-code, script: script.yaml",
        "driver: command",
        "driver: replay",
        "model: opus",
    ]
    .map(first_error_line);
    insta::assert_snapshot!(error_lines.join("\n"), @"
    error: agent `mine`: `model` is not allowed for driver `command`, which takes `argv`
    error: agent `mine`: `models.small` is not allowed for driver `replay`, which takes `script`
    error: agent `mine`: `argv` is not allowed for driver `codex`, which is a client and takes `program` and `model`
    error: agent `mine`: `script` is not allowed for driver `claude-code`, which is a client and takes `program` and `model`
    error: agent `mine`: a `command` agent requires `argv`
    error: agent `mine`: a `replay` agent requires `script`
    error: agent `mine`: missing `driver` (one of claude-code, codex, command, replay)
    ");
    let driver_lines = [
        "claude-code, allow: [Raed]",
        "claude-code, allow: [Read, 'Bash(make:*)', mcp__lab__x, Nope]",
        "codex, allow: [Read]",
    ];
    insta::assert_snapshot!(driver_lines.map(|driver_line| first_error_line(&format!("driver: {driver_line}"))).join("\n"), @"
    error: agent `mine`: `Raed` in `allow` is not a known tool of claude-code
    error: agent `mine`: `mcp__lab__x` in `allow` is not a known tool of claude-code
    error: agent `mine`: `Read` in `allow` is not a known tool of codex
    ");
    insta::assert_snapshot!(resolve_error("agents: {use: [codex]}\nmcp: {lab: {argv: []}}\n"), @"
    error: [project]/tribunal.yaml, line 2: `mcp.lab.argv` is empty
      Nothing was started.
      help: add the program and its arguments, or remove the server
    ");
}

#[test]
fn the_agent_block_assigns_jobs_to_agents() {
    let agent_block = "agentConfig:\n  defaultPrimary: \"codex\"\n  defaultFallback: \"claude\"\n  perTask:\n    review:\n      \
                 primary: \"claude\" # for reviews\n      fallback: false # none\n";
    insta::assert_snapshot!(describe_duties(&resolve_or_panic(agent_block).plan.settings), @r"
    review: codex never, claude takes
    fix: codex takes, claude stands by
    ");
    // Agents under `use` take part; they win over the block's default agent.
    let combined_yaml = format!("agents: {{use: [codex, claude]}}\n{agent_block}");
    insta::assert_snapshot!(describe_duties(&resolve_or_panic(&combined_yaml).plan.settings), @r"
    review: codex never, claude takes
    fix: codex takes, claude takes
    ");
}

#[test]
fn parts_follow_from_the_table() {
    let described_case = |used_agents: &str, agent_config: &str| {
        let yaml_text = format!("agents: {{use: [{used_agents}]}}\nagentConfig: {{{agent_config}}}\n");
        format!("use: [{used_agents}] {agent_config}\n{}", describe_duties(&resolve_or_panic(&yaml_text).plan.settings))
    };
    let cases = [
        ("codex, claude", "perTask: {fix: {primary: claude}}"),
        ("codex, claude", "perTask: {fix: {primary: claude, fallback: false}}"),
        ("codex", "perTask: {fix: {primary: claude, model: opus}}"),
        ("codex", "defaultFallback: claude"),
        ("codex, claude", "defaultFallback: claude-code, perTask: {review: {primary: codex}}"),
        ("codex", "perTask: {review: {primary: codex, fallback: claude}, fix: {primary: claude-code}}"),
    ];
    insta::assert_snapshot!(cases.map(|(used, config)| described_case(used, config)).join("\n\n"), @r"
    use: [codex, claude] perTask: {fix: {primary: claude}}
    review: codex takes, claude takes
    fix: codex last resort, claude takes

    use: [codex, claude] perTask: {fix: {primary: claude, fallback: false}}
    review: codex takes, claude takes
    fix: codex never, claude takes

    use: [codex] perTask: {fix: {primary: claude, model: opus}}
    review: codex takes, claude never
    fix: codex last resort, claude takes (opus)

    use: [codex] defaultFallback: claude
    review: codex takes, claude stands by
    fix: codex takes, claude stands by

    use: [codex, claude] defaultFallback: claude-code, perTask: {review: {primary: codex}}
    review: codex takes, claude last resort, claude-code stands by
    fix: codex takes, claude takes, claude-code stands by

    use: [codex] perTask: {review: {primary: codex, fallback: claude}, fix: {primary: claude-code}}
    review: codex takes, claude-code never, claude stands by
    fix: codex last resort, claude-code takes, claude never
    ");
}

#[test]
fn complexity_wins_over_the_task_and_the_task_over_the_default() {
    let described_tier = |review_tier: u8| {
        let yaml_text = format!(
            "tier: {review_tier}
agentConfig:
  defaultPrimary: codex
  perTask:
    review: {{primary: claude, model: sonnet}}
  complexityOverrides:
    low: {{primary: codex, fallback: false}}
    high:
      model: opus
      perTask: {{fix: {{primary: claude, model: best}}}}
    3: {{perTask: {{review: {{model: three}}}}}}
"
        );
        format!("tier {review_tier}\n{}", describe_duties(&resolve_or_panic(&yaml_text).plan.settings))
    };
    insta::assert_snapshot!([1, 2, 3, 4].map(described_tier).join("\n\n"), @r"
    tier 1
    review: codex takes
    fix: codex takes

    tier 2
    review: codex last resort, claude takes (sonnet)
    fix: codex takes, claude never

    tier 3
    review: codex last resort, claude takes (three)
    fix: codex takes, claude never

    tier 4
    review: codex last resort, claude takes (opus)
    fix: codex last resort, claude takes (best)
    ");
}

#[test]
fn a_model_is_for_one_kind_of_client() {
    let mixed_yaml = "agents: {use: [codex, claude]}\nagentConfig:\n  perTask:\n    review: {model: sonnet}\n";
    insta::assert_snapshot!(resolve_error(mixed_yaml).replace(", but ", ",\n  but "), @"
    error: [project]/tribunal.yaml, line 4: `agentConfig.perTask.review.model` is `sonnet`,
      but clients of different vendors do this task: `codex`, `claude`
      Nothing was started.
      help: add `primary` beside it to name one agent, or set `agents.NAME.model`
    ");
    let command_yaml = format!("{AGENT_YAML}agentConfig: {{perTask: {{review: {{model: sonnet}}}}}}\n");
    assert_eq!(
        resolve_or_panic(&command_yaml).warnings,
        ["`agentConfig.perTask.review.model` (`sonnet`) is ignored because no agent for this task is a client"]
    );
    let fixer_yaml = "agents: {use: [codex, claude]}\nreview_loop: {subagents: {fixer: {model: sonnet}}}\n";
    insta::assert_snapshot!(describe_duties(&resolve_or_panic(fixer_yaml).plan.settings), @r"
    review: codex takes, claude takes
    fix: codex takes, claude takes (sonnet)
    ");
    let seats_yaml = "agents: {use: [codex, claude]}\nreview_loop: {subagents: {adversarial: {model: sonnet}, party: {model: opus}}}\n";
    let seat_settings = resolve_or_panic(seats_yaml).plan.settings;
    let seat_models = |agent_name: &str, role: AgentRole| {
        let agent_spec = seat_settings.find_agent(&AgentName::new(agent_name))?;
        agent_spec.find_duty(JobKind::Review)?.model_for_role(Some(role)).map(String::from)
    };
    assert_eq!(seat_models("claude", AgentRole::Party).as_deref(), Some("opus"));
    assert_eq!(seat_models("claude", AgentRole::Elicitation).as_deref(), Some("sonnet"));
    assert_eq!((seat_models("claude", AgentRole::Fixer), seat_models("codex", AgentRole::Party)), (None, None));
    let no_fixer_yaml = fixer_yaml.replace("[codex, claude]", "[codex]");
    assert_eq!(
        resolve_or_panic(&no_fixer_yaml).warnings,
        ["`tasks.fixer_model` (`sonnet`) is ignored because no fixer is Claude Code"]
    );
}

#[test]
fn an_agent_that_only_the_block_names_must_exist() {
    let yaml_text = "agents: {use: [codex]}
agentConfig:
  defaultFallback: cluade
  perTask:
    review: {primary: nobody}
    dev: {primary: whoever}
";
    insta::assert_snapshot!(resolve_error(yaml_text), @"
    error: [project]/tribunal.yaml, line 3: `agentConfig.defaultFallback` names an unknown agent, `cluade`
      Nothing was started.
      Other problems:
        line 5: `agentConfig.perTask.review.primary` names an unknown agent, `nobody`
          use claude-code or codex, or define it in tribunal.yaml: `agents: {nobody: {driver: command, argv: […]}}`
      help: did you mean `claude-code`?
    ");
}

#[test]
fn an_agent_named_on_the_command_line_works_alone() {
    let yaml_text =
        "agentConfig: {defaultPrimary: codex, defaultFallback: claude, perTask: {fix: {primary: claude}}}\n";
    let inputs = RunInputs::default().with_flag("--agent", "agents.use", Some("codex".into()));
    assert_eq!(
        describe_duties(&try_resolve(yaml_text, &inputs).unwrap().plan.settings),
        "review: codex takes\nfix: codex takes"
    );
}

/// Inputs with these clients installed and signed in.
fn inputs_with_clients(installed_ids: &[&str], signed_in_ids: &[&str]) -> RunInputs {
    let client_state = |client: AgentClient| InstalledClient {
        client,
        program_path: installed_ids.contains(&client.id).then(|| Path::new("/opt/bin").join(client.program)),
        sign_in: signed_in_ids.contains(&client.id).then(|| "a key".to_string()),
    };
    RunInputs { clients: AgentClient::all().map(client_state).collect(), ..RunInputs::default() }
}

#[test]
fn without_a_named_agent_the_first_ready_client_takes_part() {
    let duties_and_notes = |installed_ids: &[&str], signed_in_ids: &[&str]| {
        let resolution = try_resolve("tier: 1\n", &inputs_with_clients(installed_ids, signed_in_ids)).unwrap();
        (describe_duties(&resolution.plan.settings), resolution.notes.concat())
    };
    let both_clients = ["claude-code", "codex"];
    insta::assert_snapshot!(duties_and_notes(&both_clients, &both_clients).1.replace(", ", ",\n"), @"
    no agent is set; using claude-code,
    the first client that is installed and signed in (a key); to use another one,
    pass `--agent NAME`
    ");
    assert_eq!(duties_and_notes(&both_clients, &["codex"]).0, "review: codex takes\nfix: codex takes");
    assert_eq!(duties_and_notes(&["codex"], &both_clients).0, "review: codex takes\nfix: codex takes");
    let named_result = try_resolve(AGENT_YAML, &inputs_with_clients(&both_clients, &both_clients)).unwrap();
    assert_eq!(
        (describe_duties(&named_result.plan.settings).as_str(), named_result.notes.len()),
        ("review: mine takes\nfix: mine takes", 0)
    );

    let error_without =
        |installed_ids: &[&str]| try_resolve("tier: 1\n", &inputs_with_clients(installed_ids, &[])).unwrap_err();
    insta::assert_snapshot!(error_without(&["codex"]), @"
    error: no agent is set, and no client is ready to use
      A review needs an agent. Nothing was started.
        claude-code: `claude` not found in PATH
        codex: /opt/bin/codex is installed but not signed in
      1. sign in: `codex login`
      2. or use a command of your own; add to [project]/tribunal.yaml: `agents: {mine: {driver: command, argv: [my-agent]}}`
      3. find out what is missing: `tribunal doctor`
      4. or try Tribunal without an agent: `tribunal demo`
    ");
    insta::assert_snapshot!(error_without(&[]), @"
    error: no agent is set, and no client is ready to use
      A review needs an agent. Nothing was started.
        claude-code: `claude` not found in PATH
        codex: `codex` not found in PATH
      1. install a client, for example: `npm install -g @anthropic-ai/claude-code`
      2. or use a command of your own; add to [project]/tribunal.yaml: `agents: {mine: {driver: command, argv: [my-agent]}}`
      3. find out what is missing: `tribunal doctor`
      4. or try Tribunal without an agent: `tribunal demo`
    ");
}

#[test]
fn the_behaviour_at_a_usage_limit_can_be_set() {
    let waits_of = |yaml_text: &str| resolve_or_panic(&format!("{AGENT_YAML}{yaml_text}")).plan.settings.limits.waits;
    assert_eq!(waits_of(""), WaitLimits { at_most_ms: 43_200_000, first: false });
    assert_eq!(waits_of("limits: {max_wait: 60}\n"), WaitLimits { at_most_ms: 60_000, first: false });
    let yaml_text = "agents: {use: [codex], on_limit: wait}\n";
    assert!(resolve_or_panic(yaml_text).plan.settings.limits.waits.first);
}

#[test]
fn permissions_that_a_project_gives_a_client_need_trust() {
    let yaml_text = "agents:
  use: [claude-code, codex]
  claude-code: {program: ./tools/claude, bypass: true, allow: ['Bash(make:*)'], inherit: project}
  codex: {model: m}
mcp:
  lab: {argv: [python3, lab server.py]}
";
    let describe_items = |trust_list: &[TrustItem]| {
        let masker = tribunal_runner::masking::Masker::new([]);
        trust_list.iter().map(|trust_item| trust_item.describe_masked(&masker)).collect::<Vec<_>>().join("\n")
    };
    let trust_list = resolve_or_panic(yaml_text).items;
    insta::assert_snapshot!(describe_items(&trust_list), @"
    client of agent `claude-code`: ./tools/claude
    agent `claude-code` may skip the client's own permission checks
    agent `claude-code` may load the client's settings that came with this project
    agent `claude-code` may use the tool Bash(make:*)
    MCP server `lab`: python3 'lab server.py'
    ");
    let all_items_of_text = crate::settings::items_of_text(SETTINGS_FILE, yaml_text);
    assert!(
        trust_list.iter().all(|item| all_items_of_text.contains(item)) && all_items_of_text.len() == trust_list.len(),
        "{all_items_of_text:?}"
    );
    let hashes: std::collections::BTreeSet<_> = all_items_of_text.iter().map(TrustItem::content_hash).collect();
    assert_eq!(hashes.len(), all_items_of_text.len());
    assert_eq!(
        resolve_or_panic("agents: {use: [claude-code]}\n").items,
        [],
        "the client's own program is the person's"
    );
    let typed_inputs = RunInputs::default().with_set_flags(&["agents.codex.bypass=true".into()]).unwrap();
    assert_eq!(try_resolve("agents: {use: [codex]}\n", &typed_inputs).unwrap().items, []);
}
