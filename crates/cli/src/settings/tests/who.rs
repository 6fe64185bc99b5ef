//! Which agents take part, how they are driven and which of them does what.

use std::path::Path;

use tribunal_agents::clients::AgentClient;
use tribunal_core::{
    client::{ClientSpec, Inherit, Job, Models, Part, Server},
    ids::ClientId,
    limits::Waits,
    settings::{AgentSpec, DriverSpec, Settings},
    subject::Subject,
};

use super::{AGENT, project};
use crate::{
    clients::Present,
    settings::{Resolved, Wishes, layers::FILE, resolve::resolve},
    trust_item::Item,
};

fn try_resolve(text: &str, wishes: &Wishes) -> Result<Resolved, String> {
    let folder = project(&[(FILE, text), ("script.yaml", "")]);
    resolve(folder.path(), Subject::at("plan.md", None), wishes)
        .map_err(|complaint| complaint.to_string().replace(&folder.path().display().to_string(), "[project]"))
}

fn resolved(text: &str) -> Resolved {
    try_resolve(text, &Wishes::default()).unwrap_or_else(|complaint| panic!("{complaint}"))
}

fn refused(text: &str) -> String {
    try_resolve(text, &Wishes::default()).unwrap_err()
}

/// Describes the agents of each job, `codex takes, claude stands by`, with models in brackets.
fn duties(settings: &Settings) -> String {
    let line = |job: Job| {
        let one = |agent: &AgentSpec| {
            let duty = agent.duties.get(&job).cloned().unwrap_or_default();
            let part = match duty.part {
                Part::Takes => "takes",
                Part::StandsBy => "stands by",
                Part::StandsBehind => "stands behind",
                Part::Never => "never",
            };
            let model = duty.model.map(|model| format!(" ({model})")).unwrap_or_default();
            format!("{} {part}{model}", agent.name)
        };
        format!("{job}: {}", settings.agents.iter().map(one).collect::<Vec<_>>().join(", "))
    };
    [Job::Review, Job::Fix].map(line).join("\n")
}

#[test]
fn a_client_needs_no_definition_and_has_its_vendor_for_a_provider() {
    let settings = resolved("agents: {use: [claude-code, codex, claude]}\n").settings;
    let shown: Vec<String> =
        settings.agents.iter().map(|agent| format!("{} of {}", agent.name, agent.provider())).collect();
    assert_eq!(shown, ["claude-code of anthropic", "codex of openai", "claude of anthropic"]);
    assert_eq!(settings.agents[0].driver, DriverSpec::Client(ClientSpec::new("claude-code")));
    assert_eq!(settings.agents[1].driver, DriverSpec::Client(ClientSpec::new("codex")));
    assert_eq!(settings.agents[2].driver, settings.agents[0].driver);
    let settings = resolved("agents: {codex: {model: m, provider: ' Azure '}}\n").settings;
    assert_eq!(settings.agents[0].provider(), "azure");
    let client = settings.agents[0].driver.client().unwrap();
    assert_eq!((client.client.as_str(), client.model.as_deref()), ("codex", Some("m")));
}

#[test]
fn every_key_of_a_client_is_pinned() {
    let text = "agents:
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
    let settings = resolved(text).settings;
    let servers = vec![Server { name: "lab".into(), argv: vec!["python3".into(), "lab.py".into()] }];
    let mine = ClientSpec {
        client: ClientId::new("claude-code"),
        program: Some("/opt/claude".into()),
        model: Some("opus".into()),
        models: Models { small: Some("a".into()), medium: Some("b".into()), large: Some("c".into()) },
        inherit: Inherit::Project,
        bypass: true,
        fresh: true,
        allow: vec!["Bash(git log:*)".into()],
        servers: servers.clone(),
    };
    assert_eq!(settings.agents[0].driver, DriverSpec::Client(mine));
    let other = ClientSpec { inherit: Inherit::Nothing, servers, ..ClientSpec::new("codex") };
    assert_eq!(settings.agents[1].driver, DriverSpec::Client(other));

    let afresh = resolved("agents: {use: [codex], continue: false}\n").settings;
    assert_eq!(afresh.agents[0].driver.client().map(|client| client.fresh), Some(true));
}

#[test]
fn keys_that_do_not_fit_the_driver_are_refused_where_they_stand() {
    let said = |agent: &str| {
        let said = refused(&format!("agents:\n  mine: {{{agent}}}\n"));
        assert!(said.contains("It stands in [project]/tribunal.yaml:2. Nothing was started."), "{said}");
        said.lines().next().unwrap_or_default().to_string()
    };
    let all = [
        "driver: command, argv: [x], model: opus",
        "driver: replay, script: script.yaml, models: {small: x}",
        "driver: codex, argv: [x]",
        "driver: claude-code, script: script.yaml",
        "driver: command",
        "driver: replay",
        "model: opus",
    ]
    .map(said);
    insta::assert_snapshot!(all.join("\n"), @r"
    [!] agent `mine`: a `command` agent has `argv`, not `model`
    [!] agent `mine`: a `replay` agent has `script`, not `models.small`
    [!] agent `mine`: a `codex` agent is a client and has `program` and `model`, not `argv`
    [!] agent `mine`: a `claude-code` agent is a client and has `program` and `model`, not `script`
    [!] agent `mine`: a `command` agent needs `argv`
    [!] agent `mine`: a `replay` agent needs `script`
    [!] agent `mine`: it has no `driver`; write driver: claude-code, codex, command or replay
    ");
    let tools = [
        "claude-code, allow: [Raed]",
        "claude-code, allow: [Read, 'Bash(make:*)', mcp__lab__x, Nope]",
        "codex, allow: [Read]",
    ];
    insta::assert_snapshot!(tools.map(|tools| said(&format!("driver: {tools}"))).join("\n"), @r"
    [!] agent `mine`: claude-code has no tool `Raed` that could be allowed
    [!] agent `mine`: claude-code has no tool `mcp__lab__x` that could be allowed
    [!] agent `mine`: codex has no tool `Read` that could be allowed
    ");
    insta::assert_snapshot!(refused("agents: {use: [codex]}\nmcp: {lab: {argv: []}}\n"), @r"
    [!] [project]/tribunal.yaml, line 2: `mcp.lab.argv` is empty
        Nothing was started.
        1. write the program and its arguments, or remove the server
    ");
}

#[test]
fn the_agent_block_says_who_does_what() {
    let block = "agentConfig:\n  defaultPrimary: \"codex\"\n  defaultFallback: \"claude\"\n  perTask:\n    review:\n      \
                 primary: \"claude\" # for reviews\n      fallback: false # none\n";
    insta::assert_snapshot!(duties(&resolved(block).settings), @r"
    review: codex never, claude takes
    fix: codex takes, claude stands by
    ");
    // Agents under `use` take part; they win over the block's default agent.
    let both = format!("agents: {{use: [codex, claude]}}\n{block}");
    insta::assert_snapshot!(duties(&resolved(&both).settings), @r"
    review: codex never, claude takes
    fix: codex takes, claude takes
    ");
}

#[test]
fn parts_follow_from_the_table() {
    let said = |used: &str, config: &str| {
        let text = format!("agents: {{use: [{used}]}}\nagentConfig: {{{config}}}\n");
        format!("use: [{used}] {config}\n{}", duties(&resolved(&text).settings))
    };
    let cases = [
        ("codex, claude", "perTask: {fix: {primary: claude}}"),
        ("codex, claude", "perTask: {fix: {primary: claude, fallback: false}}"),
        ("codex", "perTask: {fix: {primary: claude, model: opus}}"),
        ("codex", "defaultFallback: claude"),
        ("codex, claude", "defaultFallback: claude-code, perTask: {review: {primary: codex}}"),
        ("codex", "perTask: {review: {primary: codex, fallback: claude}, fix: {primary: claude-code}}"),
    ];
    insta::assert_snapshot!(cases.map(|(used, config)| said(used, config)).join("\n\n"), @r"
    use: [codex, claude] perTask: {fix: {primary: claude}}
    review: codex takes, claude takes
    fix: codex stands behind, claude takes

    use: [codex, claude] perTask: {fix: {primary: claude, fallback: false}}
    review: codex takes, claude takes
    fix: codex never, claude takes

    use: [codex] perTask: {fix: {primary: claude, model: opus}}
    review: codex takes, claude never
    fix: codex stands behind, claude takes (opus)

    use: [codex] defaultFallback: claude
    review: codex takes, claude stands by
    fix: codex takes, claude stands by

    use: [codex, claude] defaultFallback: claude-code, perTask: {review: {primary: codex}}
    review: codex takes, claude stands behind, claude-code stands by
    fix: codex takes, claude takes, claude-code stands by

    use: [codex] perTask: {review: {primary: codex, fallback: claude}, fix: {primary: claude-code}}
    review: codex takes, claude-code never, claude stands by
    fix: codex stands behind, claude-code takes, claude never
    ");
}

#[test]
fn complexity_wins_over_the_task_and_the_task_over_the_default() {
    let said = |tier: u8| {
        let text = format!(
            "tier: {tier}
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
        format!("tier {tier}\n{}", duties(&resolved(&text).settings))
    };
    insta::assert_snapshot!([1, 2, 3, 4].map(said).join("\n\n"), @r"
    tier 1
    review: codex takes
    fix: codex takes

    tier 2
    review: codex stands behind, claude takes (sonnet)
    fix: codex takes, claude never

    tier 3
    review: codex stands behind, claude takes (three)
    fix: codex takes, claude never

    tier 4
    review: codex stands behind, claude takes (opus)
    fix: codex stands behind, claude takes (best)
    ");
}

#[test]
fn a_model_is_for_one_kind_of_client() {
    let both = "agents: {use: [codex, claude]}\nagentConfig:\n  perTask:\n    review: {model: sonnet}\n";
    insta::assert_snapshot!(refused(both).replace(", and ", ",\n    and "), @r"
    [!] [project]/tribunal.yaml, line 4: `agentConfig.perTask.review.model` is `sonnet`,
        and clients of different vendors take it: `codex`, `claude`
        Nothing was started.
        1. name the agent it is for beside it as `primary`, or set `agents.NAME.model`
    ");
    let command = format!("{AGENT}agentConfig: {{perTask: {{review: {{model: sonnet}}}}}}\n");
    assert_eq!(
        resolved(&command).warnings,
        [
            "`agentConfig.perTask.review.model` is `sonnet`, and nobody who takes it is a client: it is not used"
        ]
    );
    let fixers = "agents: {use: [codex, claude]}\nreview_loop: {subagents: {fixer: {model: sonnet}}}\n";
    insta::assert_snapshot!(duties(&resolved(fixers).settings), @r"
    review: codex takes, claude takes
    fix: codex takes, claude takes (sonnet)
    ");
    let none = fixers.replace("[codex, claude]", "[codex]");
    assert_eq!(
        resolved(&none).warnings,
        ["`tasks.fixer_model` is `sonnet`, and no fixer is Claude Code: it is not used"]
    );
}

#[test]
fn an_agent_that_only_the_block_names_must_exist() {
    let text = "agents: {use: [codex]}
agentConfig:
  defaultFallback: cluade
  perTask:
    review: {primary: nobody}
    dev: {primary: whoever}
";
    insta::assert_snapshot!(refused(text), @r"
    [!] [project]/tribunal.yaml, line 3: `agentConfig.defaultFallback` is `cluade`, and there is no such agent
        Nothing was started.
        Also wrong:
          line 5: `agentConfig.perTask.review.primary` is `nobody`, and there is no such agent
            name claude-code or codex, or define it in tribunal.yaml: agents: {nobody: {driver: command, argv: […]}}
        1. did you mean `claude-code`?
    ");
}

#[test]
fn who_is_named_on_the_command_line_is_alone() {
    let text =
        "agentConfig: {defaultPrimary: codex, defaultFallback: claude, perTask: {fix: {primary: claude}}}\n";
    let wishes = Wishes::default().flag("--agent", "agents.use", Some("codex".into()));
    assert_eq!(
        duties(&try_resolve(text, &wishes).unwrap().settings),
        "review: codex takes\nfix: codex takes"
    );
}

/// Inputs with these clients installed and signed in.
fn machine(there: &[&str], signed_in: &[&str]) -> Wishes {
    let present = |client: AgentClient| Present {
        client,
        path: there.contains(&client.id).then(|| Path::new("/opt/bin").join(client.program)),
        signed_in: signed_in.contains(&client.id).then(|| "a key".to_string()),
    };
    Wishes { clients: AgentClient::all().map(present).collect(), ..Wishes::default() }
}

#[test]
fn where_nobody_is_named_the_first_client_that_is_ready_takes_part() {
    let taken = |there: &[&str], signed_in: &[&str]| {
        let resolved = try_resolve("tier: 1\n", &machine(there, signed_in)).unwrap();
        (duties(&resolved.settings), resolved.notes.concat())
    };
    let both = ["claude-code", "codex"];
    insta::assert_snapshot!(taken(&both, &both).1.replace(", ", ",\n"), @r"
    no agent is set: claude-code takes part,
    the first client that is installed and signed in (a key); another one: --agent NAME
    ");
    assert_eq!(taken(&both, &["codex"]).0, "review: codex takes\nfix: codex takes");
    assert_eq!(taken(&["codex"], &both).0, "review: codex takes\nfix: codex takes");
    let named = try_resolve(AGENT, &machine(&both, &both)).unwrap();
    assert_eq!(
        (duties(&named.settings).as_str(), named.notes.len()),
        ("review: mine takes\nfix: mine takes", 0)
    );

    let none = |there: &[&str]| try_resolve("tier: 1\n", &machine(there, &[])).unwrap_err();
    insta::assert_snapshot!(none(&["codex"]), @r"
    [!] no agent is set, and no client can be used as it is
        Nothing was started. A review needs an agent.
          claude-code: the program `claude` is not on the path
          codex: /opt/bin/codex is there, and nobody is signed in
        1. sign in: codex login
        2. or name a command of yours in [project]/tribunal.yaml: agents: {mine: {driver: command, argv: [my-agent]}}
        3. see what is missing: tribunal doctor
        4. or see it work without an agent: tribunal demo
    ");
    insta::assert_snapshot!(none(&[]), @r"
    [!] no agent is set, and no client can be used as it is
        Nothing was started. A review needs an agent.
          claude-code: the program `claude` is not on the path
          codex: the program `codex` is not on the path
        1. install one, for instance: npm install -g @anthropic-ai/claude-code
        2. or name a command of yours in [project]/tribunal.yaml: agents: {mine: {driver: command, argv: [my-agent]}}
        3. see what is missing: tribunal doctor
        4. or see it work without an agent: tribunal demo
    ");
}

#[test]
fn what_happens_at_a_usage_limit_can_be_set() {
    let waits = |text: &str| resolved(&format!("{AGENT}{text}")).settings.limits.waits;
    assert_eq!(waits(""), Waits { at_most_ms: 43_200_000, first: false });
    assert_eq!(waits("limits: {max_wait: 60}\n"), Waits { at_most_ms: 60_000, first: false });
    let text = "agents: {use: [codex], on_limit: wait}\n";
    assert!(resolved(text).settings.limits.waits.first);
}

#[test]
fn what_a_project_lets_a_client_do_needs_a_yes() {
    let text = "agents:
  use: [claude-code, codex]
  claude-code: {program: ./tools/claude, bypass: true, allow: ['Bash(make:*)'], inherit: project}
  codex: {model: m}
mcp:
  lab: {argv: [python3, lab server.py]}
";
    let shown = |items: &[Item]| {
        let masker = tribunal_runner::mask::Masker::new([]);
        items.iter().map(|item| item.shown(&masker)).collect::<Vec<_>>().join("\n")
    };
    let items = resolved(text).items;
    insta::assert_snapshot!(shown(&items), @r"
    agent `claude-code`, its client: ./tools/claude
    agent `claude-code` may work without its own permission checks
    agent `claude-code` may take the project's own settings for it
    agent `claude-code` may use Bash(make:*)
    MCP server `lab`: python3 'lab server.py'
    ");
    let all = crate::settings::items_of_text(FILE, text);
    assert!(items.iter().all(|item| all.contains(item)) && all.len() == items.len(), "{all:?}");
    let hashes: std::collections::BTreeSet<_> = all.iter().map(Item::hash).collect();
    assert_eq!(hashes.len(), all.len());
    assert_eq!(
        resolved("agents: {use: [claude-code]}\n").items,
        [],
        "the client's own program is the person's"
    );
    let typed = Wishes::default().set(&["agents.codex.bypass=true".into()]).unwrap();
    assert_eq!(try_resolve("agents: {use: [codex]}\n", &typed).unwrap().items, []);
}
