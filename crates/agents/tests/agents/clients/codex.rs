//! Decoding the output of Codex, and launching it.

use serde_json::Value;
use tribunal_agents::driver::{Decoded, Talk};
use tribunal_core::{
    client::{ClientSpec, Inherit, Job, Server, Size},
    fault::FaultKind,
    limits::Usage,
    settings::{AgentSpec, DriverSpec},
};

use super::common::{
    Ending, NOW_MS, after, args, decode, events, fixture, launch, session, spec, unknown_tools,
};

fn read(name: &str, code: i32) -> Decoded {
    let stdout = fixture("codex", name);
    decode(
        driver(ClientSpec::new("codex")),
        &Ending { code: Some(code), stdout: &stdout, ..Ending::default() },
    )
}

fn driver(client: ClientSpec) -> DriverSpec {
    DriverSpec::Client(client)
}

fn agent(client: ClientSpec) -> AgentSpec {
    AgentSpec::new("a", driver(client))
}

/// The value of a setting on its command line.
fn set<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
    args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='))
}

#[test]
fn every_error_has_its_class() {
    use FaultKind::{Connection, Limited, NoCredit, NoModel, NotSignedIn, Overflow, Overloaded, Rejected};
    let limited = |until_ms| Limited { until_ms };
    for (name, kind) in [
        ("status-400", Rejected { status: 400 }),
        ("status-401", NotSignedIn),
        ("status-403", NotSignedIn),
        ("status-404", NoModel),
        ("status-429", limited(None)),
        ("status-500", Overloaded),
        ("status-503", Overloaded),
        ("quota", NoCredit),
        ("usage-limit", limited(Some(1_794_780_000_000))),
        ("usage-week-limit", limited(Some(1_795_200_000_000))),
        ("overflow", Overflow),
        ("cut", Connection),
        ("connection-refused", Connection),
    ] {
        let decoded = read(name, 1);
        let fault = decoded.fault.unwrap_or_else(|| panic!("{name} has no fault"));
        assert_eq!(fault.kind, kind, "{name}: {fault}");
        assert!(!fault.detail.is_empty() && !fault.detail.starts_with('{'), "{name}: {fault}");
        assert!(decoded.finished && !decoded.active, "{name}");
    }
}

#[test]
fn the_last_message_is_the_answer_and_cached_tokens_are_counted_once() {
    let decoded = read("answer", 0);
    assert_eq!((decoded.text.as_str(), &decoded.fault), (r#"{"findings":[]}"#, &None));
    assert!(decoded.finished && decoded.active && decoded.remarks.is_empty());
    let usage = Usage { input_tokens: 60, output_tokens: 20, cached_tokens: 40, ..Usage::default() };
    assert_eq!(decoded.usage, usage);
    let session = decoded.session.unwrap();
    assert_eq!((session.total, session.at_ms), (usage, NOW_MS));
    assert_eq!(read("write", 0).text, "DONE: both files written.");
    let fresh = driver(spec("codex", |client| client.fresh = true));
    let stdout = fixture("codex", "answer");
    assert_eq!(decode(fresh, &Ending { stdout: &stdout, ..Ending::default() }).session, None);
}

#[test]
fn going_on_and_branching_off_use_the_difference() {
    let first = read("first", 0).session.unwrap();
    let stdout = fixture("codex", "go-on");
    let talk = Talk::GoOn(&first);
    let second =
        decode(driver(ClientSpec::new("codex")), &Ending { stdout: &stdout, talk, ..Ending::default() });
    assert_eq!(
        (second.usage.input_tokens, second.usage.output_tokens, second.usage.cached_tokens),
        (60, 20, 40)
    );
    let second = second.session.unwrap();
    assert_eq!((second.id.as_str(), second.total.input_tokens), (first.id.as_str(), 240));
    let stdout = fixture("codex", "branch");
    let talk = Talk::Branch(&second);
    let third =
        decode(driver(ClientSpec::new("codex")), &Ending { stdout: &stdout, talk, ..Ending::default() });
    assert_eq!(
        (third.usage.input_tokens, third.usage.output_tokens, third.usage.cached_tokens),
        (180, 60, 120)
    );
}

#[test]
fn an_empty_answer_is_an_answer_and_a_denial_a_remark() {
    let decoded = read("empty", 0);
    assert_eq!((decoded.text.as_str(), decoded.fault, decoded.finished), ("", None, true));
    let decoded = read("server-denied", 0);
    assert_eq!(decoded.remarks, ["was denied lab.lab_echo"]);
    assert_eq!(decoded.fault, None);
    let silent = fixture("codex", "server-denied").replace("mcp done", " ");
    let decoded = decode(driver(ClientSpec::new("codex")), &Ending { stdout: &silent, ..Ending::default() });
    assert_eq!(decoded.fault.unwrap().kind, FaultKind::Denied);
    assert!(read("server", 0).remarks.is_empty());
}

#[test]
fn without_a_last_word_it_is_a_fault_whatever_the_exit_code() {
    use FaultKind::{Exited, Killed, Malformed};
    let begun = r#"{"type":"thread.started","thread_id":"t"}"#;
    let lost = "Error: thread/resume: no rollout found for thread id t (code -32600)";
    for (code, stdout, stderr, kind) in [
        (0, begun, "", Malformed),
        (0, "", "", Malformed),
        (143, begun, "", Killed { signal: 15 }),
        (1, "", lost, Exited { code: 1 }),
    ] {
        let ending = Ending { code: Some(code), stdout, stderr, ..Ending::default() };
        let decoded = decode(driver(ClientSpec::new("codex")), &ending);
        assert_eq!((decoded.fault.unwrap().kind, decoded.finished), (kind, false));
    }
    let fatal =
        format!("{begun}\n{}", r#"{"type":"error","message":"unexpected status 401 Unauthorized: x"}"#);
    let decoded = decode(
        driver(ClientSpec::new("codex")),
        &Ending { code: Some(1), stdout: &fatal, ..Ending::default() },
    );
    assert_eq!(decoded.fault.unwrap().kind, FaultKind::NotSignedIn);
}

#[test]
fn who_was_ended_while_trying_again_says_what_for() {
    let stdout = fixture("codex", "retrying");
    let decoded = decode(
        driver(ClientSpec::new("codex")),
        &Ending { code: None, stdout: &stdout, ..Ending::default() },
    );
    let fault = decoded.fault.unwrap();
    assert_eq!(fault.kind, FaultKind::Overloaded);
    assert!(fault.detail.starts_with("tried again and again: unexpected status 503"), "{fault}");
}

#[test]
fn a_try_that_failed_is_forgotten_when_the_model_answers() {
    let retry =
        r#"{"type":"error","message":"Reconnecting... 1/5 (unexpected status 429 Too Many Requests: x)"}"#;
    let item = |step: &str, kind: &str| format!(r#"{{"type":"item.{step}","item":{{"type":"{kind}"}}}}"#);
    let (ran, said) = (item("started", "command_execution"), item("completed", "agent_message"));
    let warned = item("completed", "error");
    let limited = || Some(FaultKind::Limited { until_ms: None });
    for (lines, kind) in [
        (vec![retry], limited()),
        (vec![retry, &ran], None),
        (vec![retry, &said], None),
        (vec![retry, &warned], limited()),
        (vec![&ran, retry], limited()),
    ] {
        let stdout = lines.join("\n");
        let ending = Ending { code: None, stdout: &stdout, ..Ending::default() };
        let fault = decode(driver(ClientSpec::new("codex")), &ending).fault;
        assert_eq!(fault.map(|fault| fault.kind), kind, "{stdout}");
    }
}

#[test]
fn a_stream_with_holes_is_read_as_far_as_it_goes() {
    let whole = fixture("codex", "write");
    let lines: Vec<&str> = whole.lines().collect();
    let tail = &lines[lines.len() - 2..];
    let holed = format!("{}\n{{\"type\":\"item\n[... left out ...]\n{}\n{{\"ty", lines[0], tail.join("\n"));
    let decoded = decode(driver(ClientSpec::new("codex")), &Ending { stdout: &holed, ..Ending::default() });
    assert_eq!((decoded.text.as_str(), decoded.fault), ("DONE: both files written.", None));
    assert_eq!(decoded.usage.input_tokens, 180);
}

#[test]
fn what_a_model_says_of_limits_and_keys_is_no_error() {
    let said = "unexpected status 401 Unauthorized: usage limit, try again at 5pm. Reconnecting... 1/5 (x)";
    let stdout = fixture("codex", "answer").replace(r#"{\"findings\":[]}"#, said);
    let decoded = decode(driver(ClientSpec::new("codex")), &Ending { stdout: &stdout, ..Ending::default() });
    assert_eq!((decoded.fault, decoded.text.as_str()), (None, said));
}

#[test]
fn progress_as_people_read_it() {
    let told = |name: &str| -> Vec<String> {
        let lines = fixture("codex", name);
        let all = lines.lines().flat_map(|line| events(&driver(ClientSpec::new("codex")), line));
        all.filter_map(|event| event.shown()).collect()
    };
    assert_eq!(
        told("write"),
        [
            "I will write the file.",
            "runs cat > /project/made_by_agent.txt <<'MOCKEOF'",
            "runs echo shell-was-here > made_by_shell.txt; cat made_by_agent.txt",
            "DONE: both files written."
        ]
    );
    assert!(told("patch").contains(&"changed /project/patched.txt".to_string()), "{:?}", told("patch"));
    assert!(told("server-denied").contains(&"was denied lab.lab_echo".to_string()));
    assert!(told("status-401")[0].starts_with("tries again: unexpected status 401"));
}

#[test]
fn a_reviewer_can_only_read() {
    let launch = launch(&agent(ClientSpec::new("codex")), Job::Review, |_| {});
    let args = args(&launch);
    assert_eq!(args[..3], ["exec", "--json", "--skip-git-repo-check"]);
    assert_eq!(args.last().unwrap(), "-", "the prompt comes by standard input");
    assert_eq!(launch.input, "Look at it.");
    assert_eq!(set(&args, "sandbox_mode"), Some(r#""read-only""#));
    assert_eq!(set(&args, "approval_policy"), Some(r#""never""#));
    assert_eq!(set(&args, "features.unbounded_connection_retries"), Some("false"));
    assert_eq!((set(&args, "notify"), set(&args, "features.hooks")), (Some("[]"), Some("false")));
    let (path, schema) = &launch.files[0];
    assert_eq!(after(&args, "--output-schema"), path.to_str());
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    for name in ["CODEX_SANDBOX", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"] {
        assert!(launch.without.iter().any(|without| without == name), "{name}");
    }
    assert!(!launch.without.iter().any(|name| name.starts_with("OPENAI_") || name == "CODEX_API_KEY"));
    assert_eq!(set(&args, "shell_environment_policy.inherit"), Some(r#""core""#));
    assert_eq!(set(&args, "shell_environment_policy.ignore_default_excludes"), Some("false"));
}

#[test]
fn a_fixer_writes_in_its_copy_alone_and_without_a_sandbox_only_when_that_was_set() {
    let plain = args(&launch(&agent(ClientSpec::new("codex")), Job::Fix, |_| {}));
    assert_eq!(set(&plain, "sandbox_mode"), Some(r#""workspace-write""#));
    for name in ["exclude_slash_tmp", "exclude_tmpdir_env_var"] {
        assert_eq!(set(&plain, &format!("sandbox_workspace_write.{name}")), Some("true"));
    }
    assert_eq!(set(&plain, "sandbox_workspace_write.network_access"), Some("false"));
    assert_eq!(set(&plain, "sandbox_workspace_write.writable_roots"), Some("[]"));
    assert_eq!(set(&plain, "shell_environment_policy.inherit"), Some(r#""all""#));
    assert_eq!(set(&plain, "shell_environment_policy.ignore_default_excludes"), Some("false"));
    let bypass = "--dangerously-bypass-approvals-and-sandbox".to_string();
    let client = spec("codex", |client| client.bypass = true);
    assert!(args(&launch(&agent(client.clone()), Job::Fix, |_| {})).contains(&bypass));
    let review = args(&launch(&agent(client), Job::Review, |_| {}));
    assert!(!review.contains(&bypass) && set(&review, "sandbox_mode") == Some(r#""read-only""#));
}

#[test]
fn talks_settings_models_and_servers() {
    let session = session(0, 0, 0, None);
    for (talk, word) in [(Talk::GoOn(&session), "resume"), (Talk::Branch(&session), "fork")] {
        let args = args(&launch(&agent(ClientSpec::new("codex")), Job::Review, |order| order.talk = talk));
        assert_eq!(args[..2], ["exec", word]);
        assert_eq!(args[args.len() - 2..], [session.id.as_str(), "-"]);
        assert!(set(&args, "sandbox_mode").is_some());
        assert!(args.contains(&"--ignore-rules".to_string()), "a rule lets a command out of the sandbox");
    }
    for (inherit, ignored, own) in [
        (Inherit::Nothing, true, Some("0")),
        (Inherit::User, false, Some("0")),
        (Inherit::Project, false, None),
    ] {
        let client = spec("codex", |client| client.inherit = inherit);
        let args = args(&launch(&agent(client), Job::Review, |_| {}));
        assert_eq!(args.contains(&"--ignore-user-config".to_string()), ignored);
        assert!(args.contains(&"--ignore-rules".to_string()), "{inherit:?}");
        assert_eq!(set(&args, "project_doc_max_bytes"), own);
    }
    let client = spec("codex", |client| {
        client.models.large = Some("big".into());
        client
            .servers
            .push(Server { name: "my.docs".into(), argv: vec!["node".into(), "a \"b\".js".into()] });
    });
    let args = args(&launch(&agent(client), Job::Review, |order| order.size = Some(Size::Large)));
    assert_eq!(after(&args, "--model"), Some("big"));
    assert_eq!(set(&args, "mcp_servers.my_docs.command"), Some(r#""node""#));
    assert_eq!(set(&args, "mcp_servers.my_docs.args"), Some(r#"["a \"b\".js"]"#));
    let small = super::common::args(&launch(&agent(ClientSpec::new("codex")), Job::Review, |order| {
        order.size = Some(Size::Small)
    }));
    assert_eq!(after(&small, "--model"), None);
}

#[test]
fn the_person_s_own_servers_are_left_out_by_name() {
    let off = |client: ClientSpec| {
        let args = args(&launch(&agent(client), Job::Review, |_| {}));
        set(&args, "mcp_servers").map(String::from)
    };
    let both = r#"{"mine"={enabled=false},"my.docs"={enabled=false}}"#;
    assert_eq!(off(ClientSpec::new("codex")).as_deref(), Some(both));
    assert_eq!(off(spec("codex", |client| client.inherit = Inherit::Project)).as_deref(), Some(both));
    // Here the user's configuration is not read at all, and to name a server of it would be an error.
    assert_eq!(off(spec("codex", |client| client.inherit = Inherit::Nothing)), None);
    let same =
        spec("codex", |client| client.servers.push(Server { name: "mine".into(), argv: vec!["x".into()] }));
    assert_eq!(off(same.clone()).as_deref(), Some(r#"{"my.docs"={enabled=false}}"#));
    let args = args(&launch(&agent(same), Job::Review, |_| {}));
    let at = |start: &str| args.iter().position(|arg| arg.starts_with(start)).unwrap();
    assert!(at("mcp_servers={") < at("mcp_servers.mine.command="), "it would take ours out again");
}

#[test]
fn it_has_no_list_of_tools() {
    assert_eq!(unknown_tools(&driver(spec("codex", |client| client.allow = vec!["Bash".into()]))), ["Bash"]);
}
