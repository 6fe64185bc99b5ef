//! Decoding the output of Claude Code, and launching it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tribunal_agents::driver::{AgentEvent, DecodedOutput, DrivenAgent, LaunchEnv, SessionMode};
use tribunal_engine::{
    fault::FaultKind,
    ids::Key,
    limits::{AgentUsage, Cost},
};
use tribunal_workflows::{
    findings::agent_role::AgentRole,
    review::review_keys::ReviewKeys,
    runs::settings::{AgentSpec, DriverSpec},
    tasks::{
        client::{ClientSpec, JobDuty, JobKind, McpServer, ModelSize, SettingsInheritance},
        purpose::{AgentAccess, ExpectedAnswer},
    },
};

use super::common::{
    NOW_MS, ProcessEnding, build_client_spec, build_launch, build_launch_with, build_session, decode_ending,
    find_unknown_tools, launch_args, read_events, read_fixture, value_after,
};

fn decode_fixture(fixture_name: &str, exit_code: i32) -> DecodedOutput {
    let agent_stdout = read_fixture("claude", fixture_name);
    decode_ending(
        build_driver(ClientSpec::new("claude-code")),
        &ProcessEnding { exit_code: Some(exit_code), stdout: &agent_stdout, ..ProcessEnding::default() },
    )
}

fn build_driver(client_spec: ClientSpec) -> DriverSpec {
    DriverSpec::Client(client_spec)
}

fn build_agent(client_spec: ClientSpec) -> AgentSpec {
    AgentSpec::new("a", build_driver(client_spec))
}

#[test]
fn every_error_has_its_fault_kind() {
    use FaultKind::{
        Connection, Curtailed, Exited, Limited, Malformed, NoCredit, NoModel, NotSignedIn, Overflow, Overloaded,
        Refused, Rejected,
    };
    let limited = |until_ms| Limited { until_ms };
    for (fixture_name, expected_kind, did_work) in [
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
        let decoded_output = decode_fixture(fixture_name, 1);
        let fault = decoded_output.fault.unwrap_or_else(|| panic!("{fixture_name} has no fault"));
        assert_eq!(fault.kind, expected_kind, "{fixture_name}: {fault}");
        assert!(!fault.detail.is_empty() && !fault.detail.contains('\n'), "{fixture_name}: {fault}");
        assert!(decoded_output.is_finished, "{fixture_name}");
        assert_eq!(decoded_output.did_work, did_work, "{fixture_name}");
    }
}

#[test]
fn a_limit_is_recognized_by_its_words_alone() {
    let kept_lines: Vec<String> = read_fixture("claude", "plan-week-limit")
        .lines()
        .filter(|output_line| !output_line.contains("rate_limit_event"))
        .map(Into::into)
        .collect();
    let stdout = kept_lines.join("\n");
    let decoded_output = decode_ending(
        build_driver(ClientSpec::new("claude-code")),
        &ProcessEnding { exit_code: Some(1), stdout: &stdout, ..ProcessEnding::default() },
    );
    assert_eq!(decoded_output.fault.unwrap().kind, FaultKind::Limited { until_ms: Some(1_795_200_000_000) });
}

#[test]
fn an_answer_comes_in_its_form_with_its_cost() {
    let decoded_output = decode_fixture("answer", 0);
    assert_eq!(decoded_output.answer_text, r#"{"findings":[]}"#);
    assert!(
        decoded_output.is_finished
            && decoded_output.did_work
            && decoded_output.fault.is_none()
            && decoded_output.remarks.is_empty()
    );
    let expected_usage = AgentUsage {
        input_tokens: 110,
        output_tokens: 20,
        cached_tokens: 50,
        cost: Some(Cost::from_amount(0.00086)),
        ..AgentUsage::default()
    };
    assert_eq!(decoded_output.usage, expected_usage);
    let session = decoded_output.session.unwrap();
    assert_eq!((session.total, session.at_ms), (expected_usage, NOW_MS));
    assert_eq!(session.id, "00000000-0000-4000-8000-000000000001");
}

#[test]
fn resuming_and_forking_cost_the_difference() {
    for (fixture_name, earlier_turns, is_fork) in [("go-on", 1, false), ("branch", 2, true)] {
        let session = build_session(
            110 * earlier_turns,
            20 * earlier_turns,
            50 * earlier_turns,
            Some(0.00086 * earlier_turns as f64),
        );
        let session_mode = if is_fork { SessionMode::Fork(&session) } else { SessionMode::Resume(&session) };
        let stdout = read_fixture("claude", fixture_name);
        let decoded_output = decode_ending(
            build_driver(ClientSpec::new("claude-code")),
            &ProcessEnding { stdout: &stdout, session_mode, ..ProcessEnding::default() },
        );
        assert_eq!(
            (decoded_output.usage.input_tokens, decoded_output.usage.output_tokens),
            (110, 20),
            "{fixture_name}"
        );
        assert_eq!(
            (decoded_output.usage.cached_tokens, decoded_output.usage.cost),
            (50, Some(Cost::from_amount(0.00086))),
            "{fixture_name}"
        );
        let session_usage = decoded_output.session.unwrap().total;
        assert_eq!(session_usage.input_tokens, 110 * (earlier_turns + 1), "{fixture_name}");
    }
}

#[test]
fn usage_without_a_sum_by_model_is_taken_as_reported() {
    let session = build_session(110, 20, 50, Some(0.00086));
    let stdout = read_fixture("claude", "go-on").replace("modelUsage", "otherUsage");
    let session_mode = SessionMode::Resume(&session);
    let decoded_output = decode_ending(
        build_driver(ClientSpec::new("claude-code")),
        &ProcessEnding { stdout: &stdout, session_mode, ..ProcessEnding::default() },
    );
    assert_eq!((decoded_output.usage.input_tokens, decoded_output.usage.cost), (110, Some(Cost::from_amount(0.00086))));
    assert_eq!(decoded_output.session.unwrap().total.input_tokens, 220);
}

#[test]
fn costs_that_a_plan_covers_are_notional() {
    let plan_output = read_fixture("claude", "plan");
    let is_notional = |stdout: &str| {
        let process_ending = ProcessEnding { stdout, ..ProcessEnding::default() };
        decode_ending(build_driver(ClientSpec::new("claude-code")), &process_ending).usage.notional
    };
    assert!(is_notional(&plan_output));
    assert!(!is_notional(&read_fixture("claude", "plain")));
    // Usage beyond the limits of a plan is paid by the token.
    assert!(!is_notional(&plan_output.replace(r#""isUsingOverage":false"#, r#""isUsingOverage":true"#)));
    // A token for a gateway and Bedrock come without a key, too, but there is no plan.
    let without_limits: Vec<&str> =
        plan_output.lines().filter(|output_line| !output_line.contains("rate_limit_event")).collect();
    assert!(!is_notional(&without_limits.join("\n")));
}

#[test]
fn an_answer_outside_of_the_form_loses_no_text() {
    let decoded_output = decode_fixture("form-not-kept", 0);
    assert_eq!(decoded_output.answer_text, "first: findings: []\n\nsecond reply");
    assert!(decoded_output.fault.is_none());
}

#[test]
fn background_results_do_not_replace_the_answer() {
    let decoded_output = decode_fixture("background", 0);
    assert!(
        decoded_output.answer_text.starts_with("findings: []   # the real answer"),
        "{}",
        decoded_output.answer_text
    );
    assert!(!decoded_output.answer_text.contains("sub says hi"));
    assert_eq!(decoded_output.usage.cost, Some(Cost::from_amount(0.0032)));
}

#[test]
fn denials_are_remarks_and_a_fault_only_without_an_answer() {
    let decoded_output = decode_fixture("tools", 0);
    assert_eq!((decoded_output.answer_text.as_str(), decoded_output.fault), ("findings: []", None));
    assert_eq!(decoded_output.remarks, ["permission denied: Write /etc/outside.txt"]);
    assert_eq!(decoded_output.denied, ["Write /etc/outside.txt"]);
    let silent_output = read_fixture("claude", "tools").replace(r#""findings: []""#, r#""""#);
    let decoded_output = decode_ending(
        build_driver(ClientSpec::new("claude-code")),
        &ProcessEnding { stdout: &silent_output, ..ProcessEnding::default() },
    );
    assert_eq!(decoded_output.fault.unwrap().kind, FaultKind::Denied);
    assert_eq!(decode_fixture("denied-reads", 0).remarks.len(), 3);
}

#[test]
fn an_empty_answer_is_an_answer() {
    let decoded_output = decode_fixture("empty", 0);
    assert_eq!(
        (decoded_output.answer_text.as_str(), decoded_output.fault, decoded_output.is_finished),
        ("", None, true)
    );
}

#[test]
fn the_result_line_decides_and_not_the_exit_code() {
    assert_eq!(decode_fixture("plain", 1).fault, None);
    let aborted_result = concat!(
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","#,
        r#""errors":["Error: Request was aborted."],"session_id":"s"}"#
    );
    let decoded_output = decode_ending(
        build_driver(ClientSpec::new("claude-code")),
        &ProcessEnding { stdout: aborted_result, ..ProcessEnding::default() },
    );
    assert_eq!(decoded_output.fault.unwrap().kind, FaultKind::Killed { signal: 2 });
}

#[test]
fn a_missing_result_line_is_a_fault_with_any_exit_code() {
    use FaultKind::{Exited, Killed, Malformed};
    let (begun_output, interrupted_output) =
        (read_fixture("claude", "terminated"), read_fixture("claude", "interrupted"));
    for (exit_code, stdout, stderr, expected_kind, expected_detail) in [
        (0, begun_output.as_str(), "", Malformed, "exited without a final result"),
        (0, interrupted_output.as_str(), "", Malformed, "exited without a final result"),
        (0, "", "", Malformed, "exited without a final result"),
        (143, begun_output.as_str(), "", Killed { signal: 15 }, "was stopped (SIGTERM)"),
        (
            1,
            "",
            "noise\nError: Invalid session ID\n\n",
            Exited { code: 1 },
            "exited with code 1: Error: Invalid session ID",
        ),
    ] {
        let process_ending = ProcessEnding { exit_code: Some(exit_code), stdout, stderr, ..ProcessEnding::default() };
        let decoded_output = decode_ending(build_driver(ClientSpec::new("claude-code")), &process_ending);
        let fault = decoded_output.fault.unwrap();
        assert_eq!(
            (fault.kind, fault.detail.as_str(), decoded_output.is_finished),
            (expected_kind, expected_detail, false)
        );
    }
}

#[test]
fn a_process_ended_during_retries_reports_their_cause() {
    let fault_when_ended = |stdout: &str| {
        let decoded_output = decode_ending(
            build_driver(ClientSpec::new("claude-code")),
            &ProcessEnding { exit_code: None, stdout, ..ProcessEnding::default() },
        );
        decoded_output.fault.map(|fault| fault.kind)
    };
    let fault_while_retrying = |fixture_name: &str| {
        let fixture_text = read_fixture("claude", fixture_name);
        let retry_lines: Vec<&str> = fixture_text
            .lines()
            .filter(|output_line| !output_line.contains(r#""type":"result""#) && !output_line.contains("<synthetic>"))
            .collect();
        fault_when_ended(&retry_lines.join("\n"))
    };
    assert_eq!(fault_while_retrying("status-401"), Some(FaultKind::NotSignedIn));
    assert_eq!(fault_while_retrying("status-429"), Some(FaultKind::Limited { until_ms: None }));
    assert_eq!(fault_while_retrying("status-529"), Some(FaultKind::Overloaded));
    assert_eq!(fault_while_retrying("connection-refused"), Some(FaultKind::Connection));
    assert_eq!(fault_when_ended(&read_fixture("claude", "terminated")), None);
}

#[test]
fn a_failed_try_is_forgotten_once_the_model_answers() {
    let tools_output = read_fixture("claude", "tools");
    let answer_lines: Vec<&str> =
        tools_output.lines().filter(|output_line| output_line.contains(r#""type":"assistant""#)).collect();
    let retry_line = r#"{"type":"system","subtype":"api_retry","attempt":1,"error_status":429,"error":"rate_limit"}"#;
    let synthetic_line = r#"{"type":"assistant","message":{"id":"x","model":"<synthetic>","content":[]}}"#;
    let limited = || Some(FaultKind::Limited { until_ms: None });
    for (output_lines, expected_kind) in [
        (vec![retry_line], limited()),
        (vec![retry_line, answer_lines[0]], None),
        (vec![retry_line, answer_lines[0], answer_lines[1]], None),
        (vec![retry_line, answer_lines[0], retry_line], limited()),
        (vec![answer_lines[0], retry_line], limited()),
        (vec![retry_line, synthetic_line], limited()),
    ] {
        let stdout = output_lines.join("\n");
        let process_ending = ProcessEnding { exit_code: None, stdout: &stdout, ..ProcessEnding::default() };
        let fault = decode_ending(build_driver(ClientSpec::new("claude-code")), &process_ending).fault;
        assert_eq!(fault.map(|fault| fault.kind), expected_kind, "{stdout}");
    }
}

#[test]
fn the_usage_of_a_truncated_run_is_estimated_from_its_output() {
    let assistant_line = |message_id: &str, content_block: Value| {
        let usage = json!({"input_tokens": 1_000, "output_tokens": 1});
        let message = json!({"id": message_id, "model": "m", "content": [content_block], "usage": usage});
        json!({"type": "assistant", "message": message}).to_string()
    };
    let stdout = [
        assistant_line("one", json!({"type": "text", "text": "x".repeat(400)})),
        assistant_line("one", json!({"type": "tool_use", "name": "Write", "input": {"content": "y".repeat(4_000)}})),
        assistant_line("two", json!({"type": "text", "text": ""})),
    ];
    let stdout = stdout.join("\n");
    let usage_in = |session_mode| {
        let process_ending =
            ProcessEnding { exit_code: None, stdout: &stdout, session_mode, ..ProcessEnding::default() };
        decode_ending(build_driver(ClientSpec::new("claude-code")), &process_ending).usage
    };
    let new_usage = usage_in(SessionMode::New);
    assert!(new_usage.estimated && new_usage.input_tokens == 2_000, "{new_usage:?}");
    assert!((1_100..1_120).contains(&new_usage.output_tokens), "{new_usage:?}");
    assert_eq!(new_usage.cost, None, "its price is unknown");
    let session = build_session(900, 100, 0, Some(0.01));
    let dollars = usage_in(SessionMode::Resume(&session)).cost.unwrap().amount();
    assert!((0.031..0.0312).contains(&dollars), "{dollars}");
}

#[test]
fn a_damaged_stream_is_read_as_far_as_possible() {
    let whole_output = read_fixture("claude", "tools");
    let output_lines: Vec<&str> = whole_output.lines().collect();
    // The middle is lost, something else is printed in between, and the last line is cut off.
    let (first_line, last_line) = (output_lines[0], output_lines[output_lines.len() - 1]);
    let damaged_output = format!(
        "{first_line}\n{{\"type\":\"assist\n[... 3 MB left out ...]\nWarning: x\n{last_line}\n{{\"type\":\"res"
    );
    let decoded_output = decode_ending(
        build_driver(ClientSpec::new("claude-code")),
        &ProcessEnding { stdout: &damaged_output, ..ProcessEnding::default() },
    );
    assert_eq!((decoded_output.answer_text.as_str(), decoded_output.is_finished), ("findings: []", true));
    assert_eq!(decoded_output.usage.cost, Some(Cost::from_amount(0.0032)));
    // Without the last line, the input is known and the output is not.
    let truncated_output = output_lines[..output_lines.len() - 1].join("\n");
    let decoded_output = decode_ending(
        build_driver(ClientSpec::new("claude-code")),
        &ProcessEnding { exit_code: None, stdout: &truncated_output, ..ProcessEnding::default() },
    );
    assert!(decoded_output.usage.estimated && decoded_output.did_work && !decoded_output.is_finished);
    assert_eq!(decoded_output.usage.input_tokens, 400);
}

#[test]
fn an_answer_about_limits_and_keys_is_not_an_error() {
    let answer_words = "401 Unauthorized: rate limit reached, resets 5pm. Credit balance is too low. Not logged in.";
    let stdout = read_fixture("claude", "plain").replace("Hello.", answer_words);
    let decoded_output = decode_ending(
        build_driver(ClientSpec::new("claude-code")),
        &ProcessEnding { stdout: &stdout, ..ProcessEnding::default() },
    );
    assert_eq!((decoded_output.fault, decoded_output.answer_text.as_str()), (None, answer_words));
}

#[test]
fn a_session_that_is_not_kept_is_not_returned() {
    let stdout = read_fixture("claude", "plain");
    let fresh_driver = build_driver(build_client_spec("claude-code", |client| client.fresh = true));
    assert_eq!(
        decode_ending(fresh_driver, &ProcessEnding { stdout: &stdout, ..ProcessEnding::default() }).session,
        None
    );
}

#[test]
fn progress_is_shown_in_single_lines() {
    let progress_lines = |fixture_name: &str| -> Vec<String> {
        let fixture_text = read_fixture("claude", fixture_name);
        let agent_events = fixture_text
            .lines()
            .flat_map(|output_line| read_events(&build_driver(ClientSpec::new("claude-code")), output_line));
        agent_events.filter_map(|agent_event| agent_event.progress_line()).collect()
    };
    assert_eq!(
        progress_lines("tools"),
        [
            "I look at it.",
            "Read seed.txt",
            "Edit seed.txt",
            "changed seed.txt",
            "Write /etc/outside.txt",
            "permission denied: Write",
            "findings: []"
        ]
    );
    assert_eq!(progress_lines("status-401")[0], "retrying: authentication_failed (401)");
    assert_eq!(progress_lines("connection-refused")[0], "retrying: no connection");
    assert_eq!(progress_lines("plan-limit"), ["You've hit your 5-hour limit · resets 10pm (UTC)"]);
    assert_eq!(
        read_events(&build_driver(ClientSpec::new("claude-code")), r#"{"type":"assist"#),
        Vec::<AgentEvent>::new()
    );
}

#[test]
fn a_reviewer_can_only_read() {
    let agent_launch = build_launch(&build_agent(ClientSpec::new("claude-code")), JobKind::Review, |_| {});
    let arguments = launch_args(&agent_launch);
    assert_eq!(arguments[..4], ["-p", "--output-format", "stream-json", "--verbose"]);
    assert_eq!(value_after(&arguments, "--tools"), Some("Read,Grep,Glob"));
    assert_eq!(value_after(&arguments, "--permission-mode"), Some("dontAsk"));
    assert_eq!(value_after(&arguments, "--model"), None);
    assert_eq!(value_after(&arguments, "--setting-sources"), Some(""));
    assert_eq!(value_after(&arguments, "--settings"), Some(r#"{"disableAllHooks":true}"#));
    assert_eq!(value_after(&arguments, "--max-budget-usd"), None);
    assert!(arguments.contains(&"--strict-mcp-config".to_string()) && !arguments.contains(&"--mcp-config".to_string()));
    assert!(!arguments.iter().any(|arg| arg.contains("Look at it.")), "the prompt is no argument");
    assert_eq!(agent_launch.stdin_text, "Look at it.");
    let schema: Value = serde_json::from_str(value_after(&arguments, "--json-schema").unwrap()).unwrap();
    assert!(schema["properties"]["findings"].is_object());
    for variable_name in ["CLAUDECODE", "OPENAI_API_KEY"] {
        assert!(agent_launch.removed_variables.iter().any(|without| without == variable_name), "{variable_name}");
    }
    assert!(!agent_launch.removed_variables.iter().any(|name| name.starts_with("ANTHROPIC_")));
    assert_eq!(agent_launch.env["CLAUDE_CODE_DISABLE_ATTACHMENTS"], "1");
}

#[test]
fn a_fixer_writes_and_bypasses_checks_only_if_configured() {
    let mode_and_tools = |client_spec: ClientSpec| {
        let arguments = launch_args(&build_launch(&build_agent(client_spec), JobKind::Fix, |_| {}));
        (
            value_after(&arguments, "--permission-mode").unwrap().to_string(),
            value_after(&arguments, "--tools").unwrap().to_string(),
        )
    };
    let (default_mode, default_tools) = mode_and_tools(ClientSpec::new("claude-code"));
    assert_eq!(
        (default_mode.as_str(), default_tools.as_str()),
        ("acceptEdits", "Read,Grep,Glob,Edit,Write,NotebookEdit")
    );
    assert_eq!(mode_and_tools(build_client_spec("claude-code", |client| client.bypass = true)).0, "bypassPermissions");
    let review_arguments = launch_args(&build_launch(
        &build_agent(build_client_spec("claude-code", |client_spec| client_spec.bypass = true)),
        JobKind::Review,
        |_| {},
    ));
    assert_eq!(value_after(&review_arguments, "--permission-mode"), Some("dontAsk"));
}

#[test]
fn a_developer_may_run_commands_without_a_question() {
    let develop = |client_spec: ClientSpec| {
        launch_args(&build_launch(&build_agent(client_spec), JobKind::Loop, |request| {
            request.access = AgentAccess::Develop;
            request.expects = ExpectedAnswer::Turn;
        }))
    };
    let arguments = develop(ClientSpec::new("claude-code"));
    assert_eq!(value_after(&arguments, "--permission-mode"), Some("acceptEdits"));
    let expected_tools = "Read,Grep,Glob,Edit,Write,NotebookEdit,Bash,TodoWrite,Agent,Task";
    assert_eq!(value_after(&arguments, "--tools"), Some(expected_tools));
    let allowed_from = arguments.iter().position(|argument| argument == "--allowedTools").unwrap() + 1;
    assert_eq!(arguments[allowed_from..allowed_from + 4], ["Bash", "TodoWrite", "Agent", "Task"]);
    assert!(!arguments.contains(&"--json-schema".to_string()));
    let arguments = develop(build_client_spec("claude-code", |client| client.bypass = true));
    assert_eq!(value_after(&arguments, "--permission-mode"), Some("bypassPermissions"));
    assert_eq!(value_after(&arguments, "--tools"), Some(expected_tools));
}

#[test]
fn a_seat_of_a_panel_can_have_a_model_of_its_own() {
    let mut agent_spec =
        build_agent(build_client_spec("claude-code", |client_spec| client_spec.model = Some("mine".into())));
    let seat_models = BTreeMap::from([(AgentRole::Party, "opus".to_string())]);
    agent_spec.duties.insert(JobKind::Review, JobDuty { seat_models, ..JobDuty::default() });
    let model_of = |agent_spec: &AgentSpec, task_key: &Key| {
        let launch = build_launch(agent_spec, JobKind::Review, |launch_request| {
            launch_request.task_key = Box::leak(Box::new(task_key.clone()));
        });
        value_after(&launch_args(&launch), "--model").map(String::from)
    };
    let (party_key, other_key) =
        (Key::for_round(1).reviewer_key(AgentRole::Party), Key::for_round(1).reviewer_key(AgentRole::Adversarial));
    assert_eq!(model_of(&agent_spec, &party_key).as_deref(), Some("opus"));
    assert_eq!(model_of(&agent_spec, &party_key.child_key("again")).as_deref(), Some("opus"));
    assert_eq!(model_of(&agent_spec, &other_key).as_deref(), Some("mine"));
    // The model for the task wins.
    if let Some(duty) = agent_spec.duties.get_mut(&JobKind::Review) {
        duty.model = Some("task".into());
    }
    assert_eq!(model_of(&agent_spec, &party_key).as_deref(), Some("task"));
}

#[test]
fn the_endpoint_is_the_one_that_the_client_would_use() {
    let endpoint = |settings: &str, variables: &[(&str, &str)]| {
        let agent = DrivenAgent::new(build_agent(ClientSpec::new("claude-code"))).unwrap();
        let launch_env = LaunchEnv {
            settings_by_client: BTreeMap::from([("claude-code", settings.to_string())]),
            ..LaunchEnv::default()
        };
        agent.find_endpoint(&launch_env, &|name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_string())
        })
    };
    assert_eq!(endpoint("", &[]), None);
    let gateway = ("ANTHROPIC_BASE_URL", "https://user:key@gateway.example/v1/");
    assert_eq!(endpoint("", &[gateway]).as_deref(), Some("https://gateway.example/v1"));
    let own_settings = r#"{"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}}"#;
    assert_eq!(endpoint(own_settings, &[gateway]).as_deref(), Some("http://127.0.0.1:9"));
    assert_eq!(endpoint("", &[gateway, ("CLAUDE_CODE_USE_BEDROCK", "1")]).as_deref(), Some("Amazon Bedrock"));
}

#[test]
fn the_model_is_chosen_by_job_then_agent_then_size() {
    let chosen_model = |client_spec: &ClientSpec, duty_model: Option<&str>, size: Option<ModelSize>| {
        let mut agent_spec = build_agent(client_spec.clone());
        if let Some(model_name) = duty_model {
            agent_spec.duties.insert(JobKind::Review, JobDuty { model: Some(model_name.into()), ..JobDuty::default() });
        }
        let arguments =
            launch_args(&build_launch(&agent_spec, JobKind::Review, |launch_request| launch_request.size = size));
        value_after(&arguments, "--model").map(String::from)
    };
    let default_client = ClientSpec::new("claude-code");
    let sized_client = build_client_spec("claude-code", |client_spec| client_spec.models.large = Some("big".into()));
    let named_client = build_client_spec("claude-code", |client_spec| client_spec.model = Some("mine".into()));
    for (client_spec, duty_model, size, expected_model) in [
        (&default_client, None, None, None),
        (&default_client, None, Some(ModelSize::Small), Some("haiku")),
        (&default_client, None, Some(ModelSize::Medium), Some("sonnet")),
        (&default_client, None, Some(ModelSize::Large), Some("opus")),
        (&sized_client, None, Some(ModelSize::Large), Some("big")),
        (&sized_client, None, Some(ModelSize::Small), Some("haiku")),
        (&named_client, None, Some(ModelSize::Large), Some("mine")),
        (&named_client, Some("duty"), Some(ModelSize::Large), Some("duty")),
    ] {
        assert_eq!(chosen_model(client_spec, duty_model, size).as_deref(), expected_model);
    }
}

/// The user's own settings of the client: a model, a key, and permissions.
const USER_SETTINGS: &str = concat!(
    r#"{"model": "theirs", "apiKeyHelper": "get-key", "permissions": {"allow": ["Edit"], "additionalDirectories": ["/"]}, "#,
    r#""env": {"ANTHROPIC_BASE_URL": "http://localhost", "API_TIMEOUT_MS": "1", "CLAUDECODE": "1", "OPENAI_API_KEY": "x"}}"#
);

#[test]
fn user_settings_pass_on_the_sign_in_but_no_permissions() {
    let launch_inheriting = |inherit| {
        let client_spec = build_client_spec("claude-code", |client_spec| client_spec.inherit = inherit);
        build_launch_with(&build_agent(client_spec), USER_SETTINGS, |launch_request| {
            launch_request.size = Some(ModelSize::Small)
        })
    };
    let user_launch = launch_inheriting(SettingsInheritance::User);
    let (settings_path, settings_json) = &user_launch.input_files[0];
    let user_arguments = launch_args(&user_launch);
    assert_eq!(
        (value_after(&user_arguments, "--settings"), settings_path.starts_with("/beside")),
        (settings_path.to_str(), true)
    );
    let settings_json: Value = serde_json::from_str(settings_json).unwrap();
    assert_eq!(
        settings_json,
        json!({"disableAllHooks": true, "apiKeyHelper": "get-key", "model": "theirs"}),
        "no permissions, and no variables, which may be secrets"
    );
    assert_eq!(user_launch.env["ANTHROPIC_BASE_URL"], "http://localhost");
    assert_eq!(user_launch.env["API_TIMEOUT_MS"], "300000", "ours hold");
    assert!(!user_launch.env.contains_key("CLAUDECODE") && !user_launch.env.contains_key("OPENAI_API_KEY"));
    assert!(user_arguments.iter().all(|arg| !arg.contains("get-key")), "arguments can be seen by everybody");

    let bare_launch = launch_inheriting(SettingsInheritance::Nothing);
    assert!(bare_launch.input_files.is_empty() && !bare_launch.env.contains_key("ANTHROPIC_BASE_URL"));
    assert_eq!(value_after(&launch_args(&bare_launch), "--model"), Some("haiku"));

    // The client reads all of the settings itself; our variables hold nevertheless.
    let project_launch = launch_inheriting(SettingsInheritance::Project);
    assert!(project_launch.input_files.is_empty() && !project_launch.env.contains_key("ANTHROPIC_BASE_URL"));
    let settings_json: Value =
        serde_json::from_str(value_after(&launch_args(&project_launch), "--settings").unwrap()).unwrap();
    assert_eq!(settings_json["env"]["CLAUDE_CODE_DISABLE_ATTACHMENTS"], "1");
    assert_eq!(settings_json["disableAllHooks"], true);
}

#[test]
fn the_users_own_model_comes_before_sizes_and_after_all_settings() {
    let chosen_model = |client_spec: ClientSpec| {
        let agent_launch = build_launch_with(&build_agent(client_spec), USER_SETTINGS, |launch_request| {
            launch_request.size = Some(ModelSize::Small)
        });
        value_after(&launch_args(&agent_launch), "--model").map(String::from)
    };
    assert_eq!(chosen_model(ClientSpec::new("claude-code")).as_deref(), Some("theirs"));
    assert_eq!(
        chosen_model(build_client_spec("claude-code", |client| client.inherit = SettingsInheritance::Project))
            .as_deref(),
        Some("theirs")
    );
    assert_eq!(
        chosen_model(build_client_spec("claude-code", |client| client.model = Some("set".into()))).as_deref(),
        Some("set")
    );
    assert_eq!(
        chosen_model(build_client_spec("claude-code", |client| client.models.small = Some("set".into()))).as_deref(),
        Some("set")
    );
    assert_eq!(
        chosen_model(build_client_spec("claude-code", |client| client.models.large = Some("big".into()))).as_deref(),
        Some("haiku")
    );
}

#[test]
fn the_cost_limit_of_a_task_is_passed_on() {
    for (budget_left, expected_argument) in
        [(Cost::from_amount(1.25), "1.25"), (Cost::from_amount(5.0), "5"), (Cost(0), "0.01")]
    {
        let arguments = launch_args(&build_launch(
            &build_agent(ClientSpec::new("claude-code")),
            JobKind::Review,
            |launch_request| launch_request.budget = Some(budget_left),
        ));
        assert_eq!(value_after(&arguments, "--max-budget-usd"), Some(expected_argument));
    }
}

#[test]
fn sessions_settings_and_servers_become_arguments() {
    let session = build_session(0, 0, 0, None);
    let resume_arguments =
        launch_args(&build_launch(&build_agent(ClientSpec::new("claude-code")), JobKind::Review, |launch_request| {
            launch_request.session_mode = SessionMode::Resume(&session)
        }));
    assert_eq!(value_after(&resume_arguments, "--resume"), Some(session.id.as_str()));
    assert!(!resume_arguments.contains(&"--fork-session".to_string()));
    let fork_arguments =
        launch_args(&build_launch(&build_agent(ClientSpec::new("claude-code")), JobKind::Review, |launch_request| {
            launch_request.session_mode = SessionMode::Fork(&session)
        }));
    assert!(fork_arguments.contains(&"--fork-session".to_string()));
    for (inherit, expected_sources) in [
        (SettingsInheritance::Nothing, ""),
        (SettingsInheritance::User, ""),
        (SettingsInheritance::Project, "user,project,local"),
    ] {
        let client_spec = build_client_spec("claude-code", |client_spec| client_spec.inherit = inherit);
        assert_eq!(
            value_after(
                &launch_args(&build_launch(&build_agent(client_spec), JobKind::Review, |_| {})),
                "--setting-sources"
            ),
            Some(expected_sources)
        );
    }
    let mcp_server = McpServer::new("docs", vec!["node".into(), "docs.js".into()]);
    let client_spec = build_client_spec("claude-code", |client_spec| client_spec.servers.push(mcp_server));
    let arguments = launch_args(&build_launch(&build_agent(client_spec), JobKind::Review, |_| {}));
    assert_eq!(
        value_after(&arguments, "--mcp-config"),
        Some(r#"{"mcpServers":{"docs":{"args":["docs.js"],"command":"node"}}}"#)
    );
    assert_eq!(value_after(&arguments, "--allowedTools"), Some("mcp__docs__*"));
}

#[test]
fn a_prompt_that_begins_with_a_slash_is_not_a_command() {
    let agent_spec = build_agent(ClientSpec::new("claude-code"));
    let agent_launch =
        build_launch(&agent_spec, JobKind::Review, |launch_request| launch_request.prompt = "/help me".into());
    assert_eq!(agent_launch.stdin_text, "\n/help me");
}

#[test]
fn unknown_tools_are_reported() {
    let client_spec =
        build_client_spec("claude-code", |client_spec| client_spec.allow = vec!["Bash(make:*)".into(), "Bahs".into()]);
    assert_eq!(find_unknown_tools(&build_driver(client_spec)), ["Bahs"]);
}
