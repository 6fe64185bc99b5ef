//! Decoding the output of Codex, and launching it.

use serde_json::Value;
use tribunal_agents::driver::{DecodedOutput, SessionMode};
use tribunal_engine::{fault::FaultKind, limits::AgentUsage};
use tribunal_workflows::{
    runs::settings::{AgentSpec, DriverSpec},
    tasks::{
        client::{ClientSpec, JobKind, McpServer, ModelSize, SettingsInheritance},
        purpose::AgentAccess,
    },
};

use super::common::{
    NOW_MS, ProcessEnding, build_client_spec, build_launch, build_session, decode_ending, find_unknown_tools,
    launch_args, read_events, read_fixture, value_after,
};

fn decode_fixture(fixture_name: &str, exit_code: i32) -> DecodedOutput {
    let agent_stdout = read_fixture("codex", fixture_name);
    decode_ending(
        build_driver(ClientSpec::new("codex")),
        &ProcessEnding { exit_code: Some(exit_code), stdout: &agent_stdout, ..ProcessEnding::default() },
    )
}

fn build_driver(client_spec: ClientSpec) -> DriverSpec {
    DriverSpec::Client(client_spec)
}

fn build_agent(client_spec: ClientSpec) -> AgentSpec {
    AgentSpec::new("a", build_driver(client_spec))
}

/// The value of a setting on its command line.
fn config_value<'a>(arguments: &'a [String], setting_name: &str) -> Option<&'a str> {
    arguments.iter().find_map(|argument| argument.strip_prefix(setting_name)?.strip_prefix('='))
}

#[test]
fn every_error_has_its_fault_kind() {
    use FaultKind::{Connection, Limited, NoCredit, NoModel, NotSignedIn, Overflow, Overloaded, Rejected};
    let limited = |until_ms| Limited { until_ms };
    for (fixture_name, expected_kind) in [
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
        let decoded_output = decode_fixture(fixture_name, 1);
        let fault = decoded_output.fault.unwrap_or_else(|| panic!("{fixture_name} has no fault"));
        assert_eq!(fault.kind, expected_kind, "{fixture_name}: {fault}");
        assert!(!fault.detail.is_empty() && !fault.detail.starts_with('{'), "{fixture_name}: {fault}");
        assert!(decoded_output.is_finished && !decoded_output.did_work, "{fixture_name}");
    }
}

#[test]
fn the_last_message_is_the_answer_and_cached_tokens_are_counted_once() {
    let decoded_output = decode_fixture("answer", 0);
    assert_eq!((decoded_output.answer_text.as_str(), &decoded_output.fault), (r#"{"findings":[]}"#, &None));
    assert!(decoded_output.is_finished && decoded_output.did_work && decoded_output.remarks.is_empty());
    let expected_usage = AgentUsage { input_tokens: 60, output_tokens: 20, cached_tokens: 40, ..AgentUsage::default() };
    assert_eq!(decoded_output.usage, expected_usage);
    let session = decoded_output.session.unwrap();
    assert_eq!((session.total, session.at_ms), (expected_usage, NOW_MS));
    assert_eq!(decode_fixture("write", 0).answer_text, "DONE: both files written.");
    let fresh_driver = build_driver(build_client_spec("codex", |client| client.fresh = true));
    let stdout = read_fixture("codex", "answer");
    assert_eq!(
        decode_ending(fresh_driver, &ProcessEnding { stdout: &stdout, ..ProcessEnding::default() }).session,
        None
    );
}

#[test]
fn resuming_and_forking_use_the_difference() {
    let first_session = decode_fixture("first", 0).session.unwrap();
    let stdout = read_fixture("codex", "go-on");
    let session_mode = SessionMode::Resume(&first_session);
    let second_turn = decode_ending(
        build_driver(ClientSpec::new("codex")),
        &ProcessEnding { stdout: &stdout, session_mode, ..ProcessEnding::default() },
    );
    assert_eq!(
        (second_turn.usage.input_tokens, second_turn.usage.output_tokens, second_turn.usage.cached_tokens),
        (60, 20, 40)
    );
    let second_session = second_turn.session.unwrap();
    assert_eq!((second_session.id.as_str(), second_session.total.input_tokens), (first_session.id.as_str(), 240));
    let stdout = read_fixture("codex", "branch");
    let session_mode = SessionMode::Fork(&second_session);
    let third_turn = decode_ending(
        build_driver(ClientSpec::new("codex")),
        &ProcessEnding { stdout: &stdout, session_mode, ..ProcessEnding::default() },
    );
    assert_eq!(
        (third_turn.usage.input_tokens, third_turn.usage.output_tokens, third_turn.usage.cached_tokens),
        (180, 60, 120)
    );
}

#[test]
fn an_empty_answer_is_an_answer_and_a_denial_a_remark() {
    let decoded_output = decode_fixture("empty", 0);
    assert_eq!(
        (decoded_output.answer_text.as_str(), decoded_output.fault, decoded_output.is_finished),
        ("", None, true)
    );
    let decoded_output = decode_fixture("server-denied", 0);
    assert_eq!(decoded_output.remarks, ["permission denied: lab.lab_echo"]);
    assert_eq!(decoded_output.denied, ["lab.lab_echo"]);
    assert_eq!(decoded_output.fault, None);
    let silent_output = read_fixture("codex", "server-denied").replace("mcp done", " ");
    let decoded_output = decode_ending(
        build_driver(ClientSpec::new("codex")),
        &ProcessEnding { stdout: &silent_output, ..ProcessEnding::default() },
    );
    assert_eq!(decoded_output.fault.unwrap().kind, FaultKind::Denied);
    assert!(decode_fixture("server", 0).remarks.is_empty());
}

#[test]
fn a_missing_turn_end_is_a_fault_with_any_exit_code() {
    use FaultKind::{Exited, Killed, Malformed};
    let begun_output = r#"{"type":"thread.started","thread_id":"t"}"#;
    let lost_session = "Error: thread/resume: no rollout found for thread id t (code -32600)";
    for (exit_code, stdout, stderr, expected_kind) in [
        (0, begun_output, "", Malformed),
        (0, "", "", Malformed),
        (143, begun_output, "", Killed { signal: 15 }),
        (1, "", lost_session, Exited { code: 1 }),
    ] {
        let process_ending = ProcessEnding { exit_code: Some(exit_code), stdout, stderr, ..ProcessEnding::default() };
        let decoded_output = decode_ending(build_driver(ClientSpec::new("codex")), &process_ending);
        assert_eq!((decoded_output.fault.unwrap().kind, decoded_output.is_finished), (expected_kind, false));
    }
    let fatal_output =
        format!("{begun_output}\n{}", r#"{"type":"error","message":"unexpected status 401 Unauthorized: x"}"#);
    let decoded_output = decode_ending(
        build_driver(ClientSpec::new("codex")),
        &ProcessEnding { exit_code: Some(1), stdout: &fatal_output, ..ProcessEnding::default() },
    );
    assert_eq!(decoded_output.fault.unwrap().kind, FaultKind::NotSignedIn);
}

#[test]
fn a_process_ended_during_retries_reports_their_cause() {
    let stdout = read_fixture("codex", "retrying");
    let decoded_output = decode_ending(
        build_driver(ClientSpec::new("codex")),
        &ProcessEnding { exit_code: None, stdout: &stdout, ..ProcessEnding::default() },
    );
    let fault = decoded_output.fault.unwrap();
    assert_eq!(fault.kind, FaultKind::Overloaded);
    assert!(fault.detail.starts_with("kept retrying, last error: unexpected status 503"), "{fault}");
}

#[test]
fn a_failed_try_is_forgotten_once_the_model_answers() {
    let retry_line = r#"{"type":"error","message":"Reconnecting... 1/5 (unexpected status 429 Too Many Requests: x)"}"#;
    let item_line = |event_suffix: &str, item_kind: &str| {
        format!(r#"{{"type":"item.{event_suffix}","item":{{"type":"{item_kind}"}}}}"#)
    };
    let (command_started, message_completed) =
        (item_line("started", "command_execution"), item_line("completed", "agent_message"));
    let warning_item = item_line("completed", "error");
    let limited = || Some(FaultKind::Limited { until_ms: None });
    for (output_lines, expected_kind) in [
        (vec![retry_line], limited()),
        (vec![retry_line, &command_started], None),
        (vec![retry_line, &message_completed], None),
        (vec![retry_line, &warning_item], limited()),
        (vec![&command_started, retry_line], limited()),
    ] {
        let stdout = output_lines.join("\n");
        let process_ending = ProcessEnding { exit_code: None, stdout: &stdout, ..ProcessEnding::default() };
        let fault = decode_ending(build_driver(ClientSpec::new("codex")), &process_ending).fault;
        assert_eq!(fault.map(|fault| fault.kind), expected_kind, "{stdout}");
    }
}

#[test]
fn a_damaged_stream_is_read_as_far_as_possible() {
    let whole_output = read_fixture("codex", "write");
    let output_lines: Vec<&str> = whole_output.lines().collect();
    let last_lines = &output_lines[output_lines.len() - 2..];
    let damaged_output =
        format!("{}\n{{\"type\":\"item\n[... left out ...]\n{}\n{{\"ty", output_lines[0], last_lines.join("\n"));
    let decoded_output = decode_ending(
        build_driver(ClientSpec::new("codex")),
        &ProcessEnding { stdout: &damaged_output, ..ProcessEnding::default() },
    );
    assert_eq!((decoded_output.answer_text.as_str(), decoded_output.fault), ("DONE: both files written.", None));
    assert_eq!(decoded_output.usage.input_tokens, 180);
}

#[test]
fn an_answer_about_limits_and_keys_is_not_an_error() {
    let answer_words = "unexpected status 401 Unauthorized: usage limit, try again at 5pm. Reconnecting... 1/5 (x)";
    let stdout = read_fixture("codex", "answer").replace(r#"{\"findings\":[]}"#, answer_words);
    let decoded_output = decode_ending(
        build_driver(ClientSpec::new("codex")),
        &ProcessEnding { stdout: &stdout, ..ProcessEnding::default() },
    );
    assert_eq!((decoded_output.fault, decoded_output.answer_text.as_str()), (None, answer_words));
}

#[test]
fn progress_is_shown_in_single_lines() {
    let progress_lines = |fixture_name: &str| -> Vec<String> {
        let fixture_text = read_fixture("codex", fixture_name);
        let agent_events = fixture_text
            .lines()
            .flat_map(|output_line| read_events(&build_driver(ClientSpec::new("codex")), output_line));
        agent_events.filter_map(|agent_event| agent_event.progress_line()).collect()
    };
    assert_eq!(
        progress_lines("write"),
        [
            "I will write the file.",
            "running cat > /project/made_by_agent.txt <<'MOCKEOF'",
            "running echo shell-was-here > made_by_shell.txt; cat made_by_agent.txt",
            "DONE: both files written."
        ]
    );
    assert!(
        progress_lines("patch").contains(&"changed /project/patched.txt".to_string()),
        "{:?}",
        progress_lines("patch")
    );
    assert!(progress_lines("server-denied").contains(&"permission denied: lab.lab_echo".to_string()));
    assert!(progress_lines("status-401")[0].starts_with("retrying: unexpected status 401"));
}

#[test]
fn a_reviewer_can_only_read() {
    let agent_launch = build_launch(&build_agent(ClientSpec::new("codex")), JobKind::Review, |_| {});
    let arguments = launch_args(&agent_launch);
    assert_eq!(arguments[..3], ["exec", "--json", "--skip-git-repo-check"]);
    assert_eq!(arguments.last().unwrap(), "-", "the prompt comes by standard input");
    assert_eq!(agent_launch.stdin_text, "Look at it.");
    assert_eq!(config_value(&arguments, "sandbox_mode"), Some(r#""read-only""#));
    assert_eq!(config_value(&arguments, "approval_policy"), Some(r#""never""#));
    assert_eq!(config_value(&arguments, "features.unbounded_connection_retries"), Some("false"));
    assert_eq!(
        (config_value(&arguments, "notify"), config_value(&arguments, "features.hooks")),
        (Some("[]"), Some("false"))
    );
    let (schema_path, schema) = &agent_launch.input_files[0];
    assert_eq!(value_after(&arguments, "--output-schema"), schema_path.to_str());
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    for variable_name in ["CODEX_SANDBOX", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"] {
        assert!(agent_launch.removed_variables.iter().any(|without| without == variable_name), "{variable_name}");
    }
    assert!(!agent_launch.removed_variables.iter().any(|name| name.starts_with("OPENAI_") || name == "CODEX_API_KEY"));
    assert_eq!(config_value(&arguments, "shell_environment_policy.inherit"), Some(r#""core""#));
    assert_eq!(config_value(&arguments, "shell_environment_policy.ignore_default_excludes"), Some("false"));
}

#[test]
fn a_developer_has_a_place_for_temporary_files_and_no_network() {
    let arguments = launch_args(&build_launch(&build_agent(ClientSpec::new("codex")), JobKind::Develop, |request| {
        request.access = AgentAccess::Develop;
    }));
    assert_eq!(config_value(&arguments, "sandbox_mode"), Some(r#""workspace-write""#));
    assert_eq!(config_value(&arguments, "approval_policy"), Some(r#""never""#));
    for setting_name in ["exclude_slash_tmp", "exclude_tmpdir_env_var", "network_access"] {
        assert_eq!(config_value(&arguments, &format!("sandbox_workspace_write.{setting_name}")), Some("false"));
    }
    assert_eq!(config_value(&arguments, "sandbox_workspace_write.writable_roots"), Some("[]"));
    assert_eq!(config_value(&arguments, "shell_environment_policy.inherit"), Some(r#""all""#));
}

#[test]
fn commands_of_a_fixer_do_not_get_variables_with_secrets() {
    let secret_variables = ["DATABASE_URL".to_string()];
    let excluded_for = |access: AgentAccess| {
        let agent_launch = build_launch(&build_agent(ClientSpec::new("codex")), JobKind::Fix, |request| {
            request.access = access;
            request.secret_variables = &secret_variables;
        });
        config_value(&launch_args(&agent_launch), "shell_environment_policy.exclude").map(String::from)
    };
    assert_eq!(excluded_for(AgentAccess::Write).as_deref(), Some(r#"["DATABASE_URL"]"#));
    // Tests may need the database, and a reviewer's commands get only a few variables anyway.
    assert_eq!([AgentAccess::Develop, AgentAccess::Read].map(excluded_for), [None, None]);
}

#[test]
fn a_fixer_writes_in_its_workspace_and_leaves_the_sandbox_only_if_configured() {
    let default_arguments = launch_args(&build_launch(&build_agent(ClientSpec::new("codex")), JobKind::Fix, |_| {}));
    assert_eq!(config_value(&default_arguments, "sandbox_mode"), Some(r#""workspace-write""#));
    for setting_name in ["exclude_slash_tmp", "exclude_tmpdir_env_var"] {
        assert_eq!(config_value(&default_arguments, &format!("sandbox_workspace_write.{setting_name}")), Some("true"));
    }
    assert_eq!(config_value(&default_arguments, "sandbox_workspace_write.network_access"), Some("false"));
    assert_eq!(config_value(&default_arguments, "sandbox_workspace_write.writable_roots"), Some("[]"));
    assert_eq!(config_value(&default_arguments, "shell_environment_policy.inherit"), Some(r#""all""#));
    assert_eq!(config_value(&default_arguments, "shell_environment_policy.ignore_default_excludes"), Some("false"));
    let bypass_flag = "--dangerously-bypass-approvals-and-sandbox".to_string();
    let client_spec = build_client_spec("codex", |client_spec| client_spec.bypass = true);
    assert!(launch_args(&build_launch(&build_agent(client_spec.clone()), JobKind::Fix, |_| {})).contains(&bypass_flag));
    let review_arguments = launch_args(&build_launch(&build_agent(client_spec), JobKind::Review, |_| {}));
    assert!(
        !review_arguments.contains(&bypass_flag)
            && config_value(&review_arguments, "sandbox_mode") == Some(r#""read-only""#)
    );
}

#[test]
fn sessions_settings_models_and_servers_become_arguments() {
    let session = build_session(0, 0, 0, None);
    for (session_mode, subcommand) in [(SessionMode::Resume(&session), "resume"), (SessionMode::Fork(&session), "fork")]
    {
        let arguments =
            launch_args(&build_launch(&build_agent(ClientSpec::new("codex")), JobKind::Review, |launch_request| {
                launch_request.session_mode = session_mode
            }));
        assert_eq!(arguments[..2], ["exec", subcommand]);
        assert_eq!(arguments[arguments.len() - 2..], [session.id.as_str(), "-"]);
        assert!(config_value(&arguments, "sandbox_mode").is_some());
        assert!(arguments.contains(&"--ignore-rules".to_string()), "a rule lets a command out of the sandbox");
    }
    for (inherit, is_ignored, expected_limit) in [
        (SettingsInheritance::Nothing, true, Some("0")),
        (SettingsInheritance::User, false, Some("0")),
        (SettingsInheritance::Project, false, None),
    ] {
        let client_spec = build_client_spec("codex", |client_spec| client_spec.inherit = inherit);
        let arguments = launch_args(&build_launch(&build_agent(client_spec), JobKind::Review, |_| {}));
        assert_eq!(arguments.contains(&"--ignore-user-config".to_string()), is_ignored);
        assert!(arguments.contains(&"--ignore-rules".to_string()), "{inherit:?}");
        assert_eq!(config_value(&arguments, "project_doc_max_bytes"), expected_limit);
    }
    let client_spec = build_client_spec("codex", |client_spec| {
        client_spec.models.large = Some("big".into());
        client_spec.servers.push(McpServer::new("my.docs", vec!["node".into(), "a \"b\".js".into()]));
    });
    let arguments = launch_args(&build_launch(&build_agent(client_spec), JobKind::Review, |launch_request| {
        launch_request.size = Some(ModelSize::Large)
    }));
    assert_eq!(value_after(&arguments, "--model"), Some("big"));
    assert_eq!(config_value(&arguments, "mcp_servers.my_docs.command"), Some(r#""node""#));
    assert_eq!(config_value(&arguments, "mcp_servers.my_docs.args"), Some(r#"["a \"b\".js"]"#));
    let small_arguments = super::common::launch_args(&build_launch(
        &build_agent(ClientSpec::new("codex")),
        JobKind::Review,
        |launch_request| launch_request.size = Some(ModelSize::Small),
    ));
    assert_eq!(value_after(&small_arguments, "--model"), None);
}

#[test]
fn the_users_own_servers_are_disabled_by_name() {
    let disabled_servers = |client_spec: ClientSpec| {
        let arguments = launch_args(&build_launch(&build_agent(client_spec), JobKind::Review, |_| {}));
        config_value(&arguments, "mcp_servers").map(String::from)
    };
    let both_disabled = r#"{"mine"={enabled=false},"my.docs"={enabled=false}}"#;
    assert_eq!(disabled_servers(ClientSpec::new("codex")).as_deref(), Some(both_disabled));
    assert_eq!(
        disabled_servers(build_client_spec("codex", |client| client.inherit = SettingsInheritance::Project)).as_deref(),
        Some(both_disabled)
    );
    // Here the user's configuration is not read at all, and to name a server of it would be an error.
    assert_eq!(
        disabled_servers(build_client_spec("codex", |client| client.inherit = SettingsInheritance::Nothing)),
        None
    );
    let same_name =
        build_client_spec("codex", |client_spec| client_spec.servers.push(McpServer::new("mine", vec!["x".into()])));
    assert_eq!(disabled_servers(same_name.clone()).as_deref(), Some(r#"{"my.docs"={enabled=false}}"#));
    let arguments = launch_args(&build_launch(&build_agent(same_name), JobKind::Review, |_| {}));
    let argument_index =
        |argument_prefix: &str| arguments.iter().position(|argument| argument.starts_with(argument_prefix)).unwrap();
    assert!(
        argument_index("mcp_servers={") < argument_index("mcp_servers.mine.command="),
        "it would take ours out again"
    );
}

#[test]
fn every_allowed_tool_of_codex_is_unknown() {
    assert_eq!(
        find_unknown_tools(&build_driver(build_client_spec("codex", |client| client.allow = vec!["Bash".into()]))),
        ["Bash"]
    );
}
