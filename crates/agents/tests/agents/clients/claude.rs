//! Decoding the output of Claude Code, and launching it.

use serde_json::{Value, json};
use tribunal_agents::driver::{AgentEvent, Decoded, Talk};
use tribunal_core::{
    client::{ClientSpec, Duty, Inherit, Job, Server, Size},
    fault::FaultKind,
    limits::{Cost, Usage},
    settings::{AgentSpec, DriverSpec},
};

use super::common::{
    Ending, NOW_MS, after, args, decode, events, fixture, launch, launch_with, session, spec, unknown_tools,
};

fn read(name: &str, code: i32) -> Decoded {
    let stdout = fixture("claude", name);
    decode(
        driver(ClientSpec::new("claude-code")),
        &Ending { code: Some(code), stdout: &stdout, ..Ending::default() },
    )
}

fn driver(client: ClientSpec) -> DriverSpec {
    DriverSpec::Client(client)
}

fn agent(client: ClientSpec) -> AgentSpec {
    AgentSpec::new("a", driver(client))
}

#[test]
fn every_error_has_its_class() {
    use FaultKind::{
        Connection, Curtailed, Exited, Limited, Malformed, NoCredit, NoModel, NotSignedIn, Overflow,
        Overloaded, Refused, Rejected,
    };
    let limited = |until_ms| Limited { until_ms };
    for (name, kind, active) in [
        ("status-400", Rejected { status: 400 }, false),
        ("status-401", NotSignedIn, false),
        ("status-403", NotSignedIn, false),
        ("status-404", NoModel, false),
        ("status-413", Overflow, false),
        ("status-429", limited(None), false),
        ("status-500", Overloaded, false),
        ("status-529", Overloaded, false),
        ("overflow", Overflow, false),
        ("credit", NoCredit, false),
        ("usage-limit", limited(Some(1_794_780_000_000)), false),
        ("plan-limit", limited(Some(1_794_780_000_000)), false),
        ("plan-week-limit", limited(Some(1_795_200_000_000)), false),
        ("plan-busy", limited(None), false),
        ("plan-expired", NotSignedIn, false),
        ("no-key", NotSignedIn, false),
        ("not-json", Malformed, false),
        ("closed", Connection, false),
        ("connection-refused", Connection, false),
        ("api-timeout", Connection, false),
        ("refusal", Refused, true),
        ("output-limit", Curtailed, true),
        ("max-turns", Curtailed, true),
        ("no-session", Exited { code: 1 }, false),
    ] {
        let decoded = read(name, 1);
        let fault = decoded.fault.unwrap_or_else(|| panic!("{name} has no fault"));
        assert_eq!(fault.kind, kind, "{name}: {fault}");
        assert!(!fault.detail.is_empty() && !fault.detail.contains('\n'), "{name}: {fault}");
        assert!(decoded.finished, "{name}");
        assert_eq!(decoded.active, active, "{name}");
    }
}

#[test]
fn a_limit_is_known_by_its_words_alone_too() {
    let words: Vec<String> = fixture("claude", "plan-week-limit")
        .lines()
        .filter(|line| !line.contains("rate_limit_event"))
        .map(Into::into)
        .collect();
    let stdout = words.join("\n");
    let decoded = decode(
        driver(ClientSpec::new("claude-code")),
        &Ending { code: Some(1), stdout: &stdout, ..Ending::default() },
    );
    assert_eq!(decoded.fault.unwrap().kind, FaultKind::Limited { until_ms: Some(1_795_200_000_000) });
}

#[test]
fn an_answer_in_its_form_with_what_it_cost() {
    let decoded = read("answer", 0);
    assert_eq!(decoded.text, r#"{"findings":[]}"#);
    assert!(decoded.finished && decoded.active && decoded.fault.is_none() && decoded.remarks.is_empty());
    let usage = Usage {
        input_tokens: 110,
        output_tokens: 20,
        cached_tokens: 50,
        cost: Some(Cost::of(0.00086)),
        ..Usage::default()
    };
    assert_eq!(decoded.usage, usage);
    let session = decoded.session.unwrap();
    assert_eq!((session.total, session.at_ms), (usage, NOW_MS));
    assert_eq!(session.id, "00000000-0000-4000-8000-000000000001");
}

#[test]
fn going_on_and_branching_off_cost_the_difference() {
    for (name, before, branch) in [("go-on", 1, false), ("branch", 2, true)] {
        let session = session(110 * before, 20 * before, 50 * before, Some(0.00086 * before as f64));
        let talk = if branch { Talk::Branch(&session) } else { Talk::GoOn(&session) };
        let stdout = fixture("claude", name);
        let decoded = decode(
            driver(ClientSpec::new("claude-code")),
            &Ending { stdout: &stdout, talk, ..Ending::default() },
        );
        assert_eq!((decoded.usage.input_tokens, decoded.usage.output_tokens), (110, 20), "{name}");
        assert_eq!(
            (decoded.usage.cached_tokens, decoded.usage.cost),
            (50, Some(Cost::of(0.00086))),
            "{name}"
        );
        let total = decoded.session.unwrap().total;
        assert_eq!(total.input_tokens, 110 * (before + 1), "{name}");
    }
}

#[test]
fn a_client_that_does_not_sum_up_by_model_is_taken_at_its_word() {
    let session = session(110, 20, 50, Some(0.00086));
    let stdout = fixture("claude", "go-on").replace("modelUsage", "otherUsage");
    let talk = Talk::GoOn(&session);
    let decoded = decode(
        driver(ClientSpec::new("claude-code")),
        &Ending { stdout: &stdout, talk, ..Ending::default() },
    );
    assert_eq!((decoded.usage.input_tokens, decoded.usage.cost), (110, Some(Cost::of(0.00086))));
    assert_eq!(decoded.session.unwrap().total.input_tokens, 220);
}

#[test]
fn what_a_plan_paid_for_is_only_notional() {
    let plan = fixture("claude", "plan");
    let notional = |stdout: &str| {
        let ending = Ending { stdout, ..Ending::default() };
        decode(driver(ClientSpec::new("claude-code")), &ending).usage.notional
    };
    assert!(notional(&plan));
    assert!(!notional(&fixture("claude", "plain")));
    // Usage beyond the limits of a plan is paid by the token.
    assert!(!notional(&plan.replace(r#""isUsingOverage":false"#, r#""isUsingOverage":true"#)));
    // A token for a gateway and Bedrock come without a key, too, but there is no plan.
    let other: Vec<&str> = plan.lines().filter(|line| !line.contains("rate_limit_event")).collect();
    assert!(!notional(&other.join("\n")));
}

#[test]
fn a_form_that_the_model_does_not_keep_loses_nothing_it_said() {
    let decoded = read("form-not-kept", 0);
    assert_eq!(decoded.text, "first: findings: []\n\nsecond reply");
    assert!(decoded.fault.is_none());
}

#[test]
fn words_of_the_background_do_not_take_the_answers_place() {
    let decoded = read("background", 0);
    assert!(decoded.text.starts_with("findings: []   # the real answer"), "{}", decoded.text);
    assert!(!decoded.text.contains("sub says hi"));
    assert_eq!(decoded.usage.cost, Some(Cost::of(0.0032)));
}

#[test]
fn denials_are_remarks_and_a_fault_only_where_nothing_came() {
    let decoded = read("tools", 0);
    assert_eq!((decoded.text.as_str(), decoded.fault), ("findings: []", None));
    assert_eq!(decoded.remarks, ["was denied Write /etc/outside.txt"]);
    let silent = fixture("claude", "tools").replace(r#""findings: []""#, r#""""#);
    let decoded =
        decode(driver(ClientSpec::new("claude-code")), &Ending { stdout: &silent, ..Ending::default() });
    assert_eq!(decoded.fault.unwrap().kind, FaultKind::Denied);
    assert_eq!(read("denied-reads", 0).remarks.len(), 3);
}

#[test]
fn an_empty_answer_is_an_answer() {
    let decoded = read("empty", 0);
    assert_eq!((decoded.text.as_str(), decoded.fault, decoded.finished), ("", None, true));
}

#[test]
fn the_last_word_decides_and_not_the_exit_code() {
    assert_eq!(read("plain", 1).fault, None);
    let aborted = concat!(
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","#,
        r#""errors":["Error: Request was aborted."],"session_id":"s"}"#
    );
    let decoded =
        decode(driver(ClientSpec::new("claude-code")), &Ending { stdout: aborted, ..Ending::default() });
    assert_eq!(decoded.fault.unwrap().kind, FaultKind::Killed { signal: 2 });
}

#[test]
fn without_a_last_word_it_is_a_fault_whatever_the_exit_code() {
    use FaultKind::{Exited, Killed, Malformed};
    let (begun, interrupted) = (fixture("claude", "terminated"), fixture("claude", "interrupted"));
    for (code, stdout, stderr, kind, detail) in [
        (0, begun.as_str(), "", Malformed, "ended without a last word"),
        (0, interrupted.as_str(), "", Malformed, "ended without a last word"),
        (0, "", "", Malformed, "ended without a last word"),
        (143, begun.as_str(), "", Killed { signal: 15 }, "was asked to stop"),
        (
            1,
            "",
            "noise\nError: Invalid session ID\n\n",
            Exited { code: 1 },
            "ended with exit code 1: Error: Invalid session ID",
        ),
    ] {
        let ending = Ending { code: Some(code), stdout, stderr, ..Ending::default() };
        let decoded = decode(driver(ClientSpec::new("claude-code")), &ending);
        let fault = decoded.fault.unwrap();
        assert_eq!((fault.kind, fault.detail.as_str(), decoded.finished), (kind, detail, false));
    }
}

#[test]
fn who_was_ended_while_trying_again_says_what_for() {
    let ended = |stdout: &str| {
        let decoded = decode(
            driver(ClientSpec::new("claude-code")),
            &Ending { code: None, stdout, ..Ending::default() },
        );
        decoded.fault.map(|fault| fault.kind)
    };
    let trying = |name: &str| {
        let lines = fixture("claude", name);
        let lines: Vec<&str> = lines
            .lines()
            .filter(|line| !line.contains(r#""type":"result""#) && !line.contains("<synthetic>"))
            .collect();
        ended(&lines.join("\n"))
    };
    assert_eq!(trying("status-401"), Some(FaultKind::NotSignedIn));
    assert_eq!(trying("status-429"), Some(FaultKind::Limited { until_ms: None }));
    assert_eq!(trying("status-529"), Some(FaultKind::Overloaded));
    assert_eq!(trying("connection-refused"), Some(FaultKind::Connection));
    assert_eq!(ended(&fixture("claude", "terminated")), None);
}

#[test]
fn a_try_that_failed_is_forgotten_when_the_model_answers() {
    let tools = fixture("claude", "tools");
    let worked: Vec<&str> = tools.lines().filter(|line| line.contains(r#""type":"assistant""#)).collect();
    let retry =
        r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":429,"error":"rate_limit"}"#;
    let synthetic = r#"{"type":"assistant","message":{"id":"x","model":"<synthetic>","content":[]}}"#;
    let limited = || Some(FaultKind::Limited { until_ms: None });
    for (lines, kind) in [
        (vec![retry], limited()),
        (vec![retry, worked[0]], None),
        (vec![retry, worked[0], worked[1]], None),
        (vec![retry, worked[0], retry], limited()),
        (vec![worked[0], retry], limited()),
        (vec![retry, synthetic], limited()),
    ] {
        let stdout = lines.join("\n");
        let ending = Ending { code: None, stdout: &stdout, ..Ending::default() };
        let fault = decode(driver(ClientSpec::new("claude-code")), &ending).fault;
        assert_eq!(fault.map(|fault| fault.kind), kind, "{stdout}");
    }
}

#[test]
fn what_was_cut_off_has_written_what_was_seen_of_it() {
    let line = |id: &str, block: Value| {
        let usage = json!({"input_tokens": 1_000, "output_tokens": 1});
        let message = json!({"id": id, "model": "m", "content": [block], "usage": usage});
        json!({"type": "assistant", "message": message}).to_string()
    };
    let stdout = [
        line("one", json!({"type": "text", "text": "x".repeat(400)})),
        line("one", json!({"type": "tool_use", "name": "Write", "input": {"content": "y".repeat(4_000)}})),
        line("two", json!({"type": "text", "text": ""})),
    ];
    let stdout = stdout.join("\n");
    let used = |talk| {
        let ending = Ending { code: None, stdout: &stdout, talk, ..Ending::default() };
        decode(driver(ClientSpec::new("claude-code")), &ending).usage
    };
    let new = used(Talk::New);
    assert!(new.estimated && new.input_tokens == 2_000, "{new:?}");
    assert!((1_100..1_120).contains(&new.output_tokens), "{new:?}");
    assert_eq!(new.cost, None, "nobody knows its price");
    let session = session(900, 100, 0, Some(0.01));
    let cost = used(Talk::GoOn(&session)).cost.unwrap().amount();
    assert!((0.031..0.0312).contains(&cost), "{cost}");
}

#[test]
fn a_stream_with_holes_is_read_as_far_as_it_goes() {
    let whole = fixture("claude", "tools");
    let lines: Vec<&str> = whole.lines().collect();
    // The middle is lost, something else is printed in between, and the last line is cut off.
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    let holed = format!(
        "{first}\n{{\"type\":\"assist\n[... 3 MB left out ...]\nWarning: x\n{last}\n{{\"type\":\"res"
    );
    let decoded =
        decode(driver(ClientSpec::new("claude-code")), &Ending { stdout: &holed, ..Ending::default() });
    assert_eq!((decoded.text.as_str(), decoded.finished), ("findings: []", true));
    assert_eq!(decoded.usage.cost, Some(Cost::of(0.0032)));
    // Without the last line, the input is known and the output is not.
    let cut = lines[..lines.len() - 1].join("\n");
    let decoded = decode(
        driver(ClientSpec::new("claude-code")),
        &Ending { code: None, stdout: &cut, ..Ending::default() },
    );
    assert!(decoded.usage.estimated && decoded.active && !decoded.finished);
    assert_eq!(decoded.usage.input_tokens, 400);
}

#[test]
fn what_a_model_says_of_limits_and_keys_is_no_error() {
    let said = "401 Unauthorized: rate limit reached, resets 5pm. Credit balance is too low. Not logged in.";
    let stdout = fixture("claude", "plain").replace("Hello.", said);
    let decoded =
        decode(driver(ClientSpec::new("claude-code")), &Ending { stdout: &stdout, ..Ending::default() });
    assert_eq!((decoded.fault, decoded.text.as_str()), (None, said));
}

#[test]
fn a_talk_that_is_not_kept_is_not_gone_on_with() {
    let stdout = fixture("claude", "plain");
    let fresh = driver(spec("claude-code", |client| client.fresh = true));
    assert_eq!(decode(fresh, &Ending { stdout: &stdout, ..Ending::default() }).session, None);
}

#[test]
fn progress_as_people_read_it() {
    let told = |name: &str| -> Vec<String> {
        let lines = fixture("claude", name);
        let all = lines.lines().flat_map(|line| events(&driver(ClientSpec::new("claude-code")), line));
        all.filter_map(|event| event.shown()).collect()
    };
    assert_eq!(
        told("tools"),
        [
            "I look at it.",
            "Read seed.txt",
            "Edit seed.txt",
            "changed seed.txt",
            "Write /etc/outside.txt",
            "was denied Write",
            "findings: []"
        ]
    );
    assert_eq!(told("status-401")[0], "tries again: authentication_failed (401)");
    assert_eq!(told("connection-refused")[0], "tries again: no connection");
    assert_eq!(told("plan-limit"), ["You've hit your 5-hour limit · resets 10pm (UTC)"]);
    assert_eq!(
        events(&driver(ClientSpec::new("claude-code")), r#"{"type":"assist"#),
        Vec::<AgentEvent>::new()
    );
}

#[test]
fn a_reviewer_can_only_read() {
    let launch = launch(&agent(ClientSpec::new("claude-code")), Job::Review, |_| {});
    let args = args(&launch);
    assert_eq!(args[..4], ["-p", "--output-format", "stream-json", "--verbose"]);
    assert_eq!(after(&args, "--tools"), Some("Read,Grep,Glob"));
    assert_eq!(after(&args, "--permission-mode"), Some("dontAsk"));
    assert_eq!(after(&args, "--model"), None);
    assert_eq!(after(&args, "--setting-sources"), Some(""));
    assert_eq!(after(&args, "--settings"), Some(r#"{"disableAllHooks":true}"#));
    assert_eq!(after(&args, "--max-budget-usd"), None);
    assert!(args.contains(&"--strict-mcp-config".to_string()) && !args.contains(&"--mcp-config".to_string()));
    assert!(!args.iter().any(|arg| arg.contains("Look at it.")), "the prompt is no argument");
    assert_eq!(launch.input, "Look at it.");
    let schema: Value = serde_json::from_str(after(&args, "--json-schema").unwrap()).unwrap();
    assert!(schema["properties"]["findings"].is_object());
    for name in ["CLAUDECODE", "OPENAI_API_KEY"] {
        assert!(launch.without.iter().any(|without| without == name), "{name}");
    }
    assert!(!launch.without.iter().any(|name| name.starts_with("ANTHROPIC_")));
    assert_eq!(launch.env["CLAUDE_CODE_DISABLE_ATTACHMENTS"], "1");
}

#[test]
fn a_fixer_writes_and_is_without_checks_only_when_that_was_set() {
    let mode = |client: ClientSpec| {
        let args = args(&launch(&agent(client), Job::Fix, |_| {}));
        (after(&args, "--permission-mode").unwrap().to_string(), after(&args, "--tools").unwrap().to_string())
    };
    let (plain, tools) = mode(ClientSpec::new("claude-code"));
    assert_eq!((plain.as_str(), tools.as_str()), ("acceptEdits", "Read,Grep,Glob,Edit,Write,NotebookEdit"));
    assert_eq!(mode(spec("claude-code", |client| client.bypass = true)).0, "bypassPermissions");
    let review =
        args(&launch(&agent(spec("claude-code", |client| client.bypass = true)), Job::Review, |_| {}));
    assert_eq!(after(&review, "--permission-mode"), Some("dontAsk"));
}

#[test]
fn models_by_job_then_agent_then_size() {
    let model = |client: &ClientSpec, duty: Option<&str>, size: Option<Size>| {
        let mut agent = agent(client.clone());
        if let Some(model) = duty {
            agent.duties.insert(Job::Review, Duty { model: Some(model.into()), ..Duty::default() });
        }
        let args = args(&launch(&agent, Job::Review, |order| order.size = size));
        after(&args, "--model").map(String::from)
    };
    let plain = ClientSpec::new("claude-code");
    let sized = spec("claude-code", |client| client.models.large = Some("big".into()));
    let named = spec("claude-code", |client| client.model = Some("mine".into()));
    for (client, duty, size, expected) in [
        (&plain, None, None, None),
        (&plain, None, Some(Size::Small), Some("haiku")),
        (&plain, None, Some(Size::Medium), Some("sonnet")),
        (&plain, None, Some(Size::Large), Some("opus")),
        (&sized, None, Some(Size::Large), Some("big")),
        (&sized, None, Some(Size::Small), Some("haiku")),
        (&named, None, Some(Size::Large), Some("mine")),
        (&named, Some("duty"), Some(Size::Large), Some("duty")),
    ] {
        assert_eq!(model(client, duty, size).as_deref(), expected);
    }
}

/// The user's own settings of the client: a model, a key, and permissions.
const OWN: &str = concat!(
    r#"{"model": "theirs", "apiKeyHelper": "get-key", "permissions": {"allow": ["Edit"], "additionalDirectories": ["/"]}, "#,
    r#""env": {"ANTHROPIC_BASE_URL": "http://localhost", "API_TIMEOUT_MS": "1", "CLAUDECODE": "1", "OPENAI_API_KEY": "x"}}"#
);

#[test]
fn of_the_person_s_settings_it_gets_what_signs_in_and_nothing_that_permits() {
    let launched = |inherit| {
        let client = spec("claude-code", |client| client.inherit = inherit);
        launch_with(&agent(client), OWN, |order| order.size = Some(Size::Small))
    };
    let user = launched(Inherit::User);
    let (path, settings) = &user.files[0];
    let own = args(&user);
    assert_eq!((after(&own, "--settings"), path.starts_with("/beside")), (path.to_str(), true));
    let settings: Value = serde_json::from_str(settings).unwrap();
    assert_eq!(
        settings,
        json!({"disableAllHooks": true, "apiKeyHelper": "get-key", "model": "theirs"}),
        "no permissions, and no variables, which may be secrets"
    );
    assert_eq!(user.env["ANTHROPIC_BASE_URL"], "http://localhost");
    assert_eq!(user.env["API_TIMEOUT_MS"], "300000", "ours hold");
    assert!(!user.env.contains_key("CLAUDECODE") && !user.env.contains_key("OPENAI_API_KEY"));
    assert!(own.iter().all(|arg| !arg.contains("get-key")), "arguments can be seen by everybody");

    let nothing = launched(Inherit::Nothing);
    assert!(nothing.files.is_empty() && !nothing.env.contains_key("ANTHROPIC_BASE_URL"));
    assert_eq!(after(&args(&nothing), "--model"), Some("haiku"));

    // The client reads all of the settings itself; our variables hold nevertheless.
    let project = launched(Inherit::Project);
    assert!(project.files.is_empty() && !project.env.contains_key("ANTHROPIC_BASE_URL"));
    let settings: Value = serde_json::from_str(after(&args(&project), "--settings").unwrap()).unwrap();
    assert_eq!(settings["env"]["CLAUDE_CODE_DISABLE_ATTACHMENTS"], "1");
    assert_eq!(settings["disableAllHooks"], true);
}

#[test]
fn the_person_s_own_model_comes_before_our_sizes_and_after_all_that_was_set() {
    let model = |client: ClientSpec| {
        let launch = launch_with(&agent(client), OWN, |order| order.size = Some(Size::Small));
        after(&args(&launch), "--model").map(String::from)
    };
    assert_eq!(model(ClientSpec::new("claude-code")).as_deref(), Some("theirs"));
    assert_eq!(
        model(spec("claude-code", |client| client.inherit = Inherit::Project)).as_deref(),
        Some("theirs")
    );
    assert_eq!(
        model(spec("claude-code", |client| client.model = Some("set".into()))).as_deref(),
        Some("set")
    );
    assert_eq!(
        model(spec("claude-code", |client| client.models.small = Some("set".into()))).as_deref(),
        Some("set")
    );
    assert_eq!(
        model(spec("claude-code", |client| client.models.large = Some("big".into()))).as_deref(),
        Some("haiku")
    );
}

#[test]
fn what_a_task_may_cost_is_told() {
    for (left, told) in [(Cost::of(1.25), "1.25"), (Cost::of(5.0), "5"), (Cost(0), "0.01")] {
        let args = args(&launch(&agent(ClientSpec::new("claude-code")), Job::Review, |order| {
            order.budget = Some(left)
        }));
        assert_eq!(after(&args, "--max-budget-usd"), Some(told));
    }
}

#[test]
fn talks_settings_and_servers() {
    let session = session(0, 0, 0, None);
    let go_on = args(&launch(&agent(ClientSpec::new("claude-code")), Job::Review, |order| {
        order.talk = Talk::GoOn(&session)
    }));
    assert_eq!(after(&go_on, "--resume"), Some(session.id.as_str()));
    assert!(!go_on.contains(&"--fork-session".to_string()));
    let branch = args(&launch(&agent(ClientSpec::new("claude-code")), Job::Review, |order| {
        order.talk = Talk::Branch(&session)
    }));
    assert!(branch.contains(&"--fork-session".to_string()));
    for (inherit, sources) in
        [(Inherit::Nothing, ""), (Inherit::User, ""), (Inherit::Project, "user,project,local")]
    {
        let client = spec("claude-code", |client| client.inherit = inherit);
        assert_eq!(
            after(&args(&launch(&agent(client), Job::Review, |_| {})), "--setting-sources"),
            Some(sources)
        );
    }
    let server = Server { name: "docs".into(), argv: vec!["node".into(), "docs.js".into()] };
    let client = spec("claude-code", |client| client.servers.push(server));
    let args = args(&launch(&agent(client), Job::Review, |_| {}));
    assert_eq!(
        after(&args, "--mcp-config"),
        Some(r#"{"mcpServers":{"docs":{"args":["docs.js"],"command":"node"}}}"#)
    );
    assert_eq!(after(&args, "--allowedTools"), Some("mcp__docs__*"));
}

#[test]
fn a_prompt_that_begins_like_a_command_is_none() {
    let agent = agent(ClientSpec::new("claude-code"));
    let launch = launch(&agent, Job::Review, |order| order.prompt = "/help me".into());
    assert_eq!(launch.input, "\n/help me");
}

#[test]
fn tools_that_are_none_are_told() {
    let client = spec("claude-code", |client| client.allow = vec!["Bash(make:*)".into(), "Bahs".into()]);
    assert_eq!(unknown_tools(&driver(client)), ["Bahs"]);
}
