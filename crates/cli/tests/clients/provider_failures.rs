//! Failures of the provider, and how the journal classifies them. Each case is one run with one client.

use std::thread;

use serde_json::Value;
use tribunal_testkit::model::{
    AnswerFailure, AnswerStep, AnswerStop, RuleCondition, ScenarioCall, ScenarioRule, ScriptedTokens,
    review_rules::reviewer_rule,
};

use crate::common::{Client, ClientTestbed, str_field, with_each_client};

with_each_client!(
    provider_failures_get_the_right_fault_class,
    a_model_that_never_answers_is_a_silent_fault,
    an_unreachable_provider_is_a_connection_fault,
    an_overloaded_provider_is_waited_for,
    an_agent_that_never_stops_calling_tools_is_ended
);

/// What the provider does, and the fault that each client makes of it.
struct FaultCase {
    case_name: &'static str,
    model_step: AnswerStep,
    claude_fault: &'static str,
    codex_fault: &'static str,
    /// Whether the agent is charged with a failed attempt; the provider's failures are not the agent's fault.
    is_charged: bool,
}

fn new_case(
    case_name: &'static str,
    model_step: AnswerStep,
    claude_fault: &'static str,
    codex_fault: &'static str,
) -> FaultCase {
    FaultCase {
        case_name,
        model_step,
        claude_fault,
        codex_fault,
        is_charged: ["refused", "overflow"].contains(&codex_fault),
    }
}

fn status_failure(code: u16, error_kind: &str, message: &str) -> AnswerStep {
    AnswerStep::from_failure(AnswerFailure::from_status(code, error_kind, message))
}

fn fault_cases() -> Vec<FaultCase> {
    let overflow_failure =
        |code: u16| status_failure(code, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum");
    let quota_failure = || status_failure(429, "insufficient_quota", "You exceeded your current quota");
    let credit_failure =
        || status_failure(400, "invalid_request_error", "Your credit balance is too low to access the API");
    let streamed_failure = |error_kind: &str, message: &str| {
        AnswerStep::from_failure(AnswerFailure::StreamError {
            kind: error_kind.to_string(),
            message: message.to_string(),
        })
    };
    vec![
        new_case(
            "401",
            status_failure(401, "authentication_error", "invalid x-api-key"),
            "not_signed_in",
            "not_signed_in",
        ),
        new_case("403", status_failure(403, "permission_error", "not allowed"), "not_signed_in", "not_signed_in"),
        new_case("404", status_failure(404, "not_found_error", "The model `x` does not exist"), "no_model", "no_model"),
        new_case("429", status_failure(429, "rate_limit_error", "too many requests"), "limited", "limited"),
        new_case("quota", quota_failure(), "no_credit", "no_credit"),
        new_case("credit", credit_failure(), "no_credit", "no_credit"),
        new_case("500", status_failure(500, "api_error", "internal"), "overloaded", "overloaded"),
        new_case("529", status_failure(529, "overloaded_error", "Overloaded"), "overloaded", "overloaded"),
        new_case("503", status_failure(503, "api_error", "busy"), "overloaded", "overloaded"),
        new_case("413", status_failure(413, "request_too_large", "too large"), "overflow", "overflow"),
        new_case("cut", AnswerStep::from_failure(AnswerFailure::Cut), "connection", "connection"),
        new_case("hung up", AnswerStep::from_failure(AnswerFailure::HangUp), "connection", "connection"),
        new_case("refusal", AnswerStep::from_text("").with_stop(AnswerStop::Refusal), "refused", "refused"),
        new_case("overflow", overflow_failure(400), "overflow", "overflow"),
        new_case(
            "overflow in the stream",
            streamed_failure("context_length_exceeded", "Your input exceeds the context window of this model"),
            "overflow",
            "overflow",
        ),
        new_case(
            "not JSON",
            AnswerStep::from_failure(AnswerFailure::NotJson("<html>busy</html>".into())),
            "malformed",
            "connection",
        ),
    ]
}

/// The provider is asked at most this often for one task: only the client itself retries.
const MAX_REQUESTS_PER_TASK: usize = 8;

fn provider_failures_get_the_right_fault_class(client: Client) {
    let cases = fault_cases();
    let deviations: Vec<String> =
        cases.chunks(4).flat_map(|case_chunk| run_cases_concurrently(client, case_chunk)).collect();
    assert!(deviations.is_empty(), "{}", deviations.join("\n"));
}

/// Runs cases at the same time. Clients mostly wait before they retry, so a few of them share the machine well.
fn run_cases_concurrently(client: Client, cases: &[FaultCase]) -> Vec<String> {
    thread::scope(|scope| {
        let case_threads: Vec<_> =
            cases.iter().map(|fault_case| scope.spawn(move || run_case(client, fault_case))).collect();
        case_threads.into_iter().filter_map(|case_thread| case_thread.join().unwrap()).collect()
    })
}

/// Runs one case and describes what differs from it; `None` if nothing does.
fn run_case(client: Client, fault_case: &FaultCase) -> Option<String> {
    let condition = RuleCondition { first: Some("You are one reviewer".into()), ..RuleCondition::default() };
    let testbed =
        ClientTestbed::new(&[client], [ScenarioRule::on_condition(condition, [fault_case.model_step.clone()])]);
    // Without this limit a rate-limited run would wait instead of ending.
    testbed.sandbox.append_setting("limits: {max_wait: 0}");
    let command_output = testbed.run_tribunal(&["review", "plan.md"]);
    let recorded_faults = read_faults(&testbed);
    let expected_fault = if client == Client::Claude { fault_case.claude_fault } else { fault_case.codex_fault };
    let request_count = testbed.server.request_log().requests.len();
    let requests_per_task = request_count.div_ceil(recorded_faults.len().max(1));
    let summary = format!(
        "{client:?}, {}: {recorded_faults:?}, {request_count} requests, exit {:?}",
        fault_case.case_name, command_output.exit_code
    );
    let is_as_expected = !recorded_faults.is_empty()
        && recorded_faults.iter().all(|fault| str_field(fault, "fault") == expected_fault)
        && requests_per_task <= MAX_REQUESTS_PER_TASK
        && counts_failures(&testbed) == fault_case.is_charged
        && command_output.exit_code == Some(5);
    (!is_as_expected).then(|| format!("{summary}; {}", command_output.stderr))
}

/// Reads all faults of agents in the last run.
fn read_faults(testbed: &ClientTestbed) -> Vec<Value> {
    let run_journal = testbed.last_journal();
    let failed_entries = run_journal.iter().filter(|journal_entry| journal_entry["reply"]["outcome"] == "failed");
    failed_entries.map(|journal_entry| journal_entry["reply"].clone()).collect()
}

/// Returns whether the run counts a failed attempt.
fn counts_failures(testbed: &ClientTestbed) -> bool {
    let run_journal = testbed.last_journal();
    // The last metrics file has the final counts.
    let metrics =
        run_journal.iter().rfind(|journal_entry| journal_entry["effect"]["file"]["file"] == "metrics").unwrap();
    let metrics: Value = serde_json::from_str(str_field(&metrics["effect"], "text")).unwrap();
    metrics["failures"].as_u64().unwrap() > 0
}

fn a_model_that_never_answers_is_a_silent_fault(client: Client) {
    let testbed =
        ClientTestbed::new(&[client], [ScenarioRule::always([AnswerStep::from_failure(AnswerFailure::Silence)])]);
    testbed.replace_in_settings("tasks: {", "tasks: {idle_timeout: 8, ");
    testbed.run_expecting(&["review", "plan.md"], 5);
    let recorded_faults = read_faults(&testbed);
    assert!(
        !recorded_faults.is_empty() && recorded_faults.iter().all(|fault| fault["fault"] == "silent"),
        "{recorded_faults:?}"
    );
    testbed.server.wait_until("the client to be gone", |server_tally| server_tally.live_requests == 0);
}

fn an_overloaded_provider_is_waited_for(client: Client) {
    // The client tries again by itself a few times, and so does Tribunal before it waits.
    const FAILED_REQUESTS: usize = 3 * MAX_REQUESTS_PER_TASK;
    let condition = RuleCondition { first: Some("You are one reviewer".into()), ..RuleCondition::default() };
    let overload = status_failure(529, "overloaded_error", "Overloaded");
    let testbed = ClientTestbed::new(
        &[client],
        [ScenarioRule::on_condition(condition, [overload]).limited_to(FAILED_REQUESTS), reviewer_rule(1, &[])],
    );
    testbed.run_expecting(&["review", "plan.md"], 0);
    let run_journal = testbed.last_journal();
    let waits = run_journal.iter().filter(|journal_entry| journal_entry["effect"]["cause"] == "overload");
    assert!(waits.count() > 0, "{run_journal:?}");
    assert!(!counts_failures(&testbed), "an outage is not the agent's failure");
}

/// The client reports nothing until it ends, so its turns are counted while it works.
fn an_agent_that_never_stops_calling_tools_is_ended(client: Client) {
    const MAX_TURNS: usize = 6;
    let read_step = AnswerStep::from_calls([ScenarioCall::Read("plan.md".into())]);
    let testbed = ClientTestbed::new(&[client], [ScenarioRule::always(vec![read_step; 200])]);
    testbed.sandbox.append_setting(&format!("limits: {{task_turns: {MAX_TURNS}, max_failures: 2}}"));
    testbed.run_tribunal(&["review", "plan.md"]);
    let recorded_faults = read_faults(&testbed);
    assert!(
        !recorded_faults.is_empty() && recorded_faults.iter().all(|fault| fault["fault"] == "curtailed"),
        "{recorded_faults:?}"
    );
    // A turn is a message or a call of a tool, so there is about one request for each, and one that was under way.
    let request_count = testbed.server.request_log().requests.len();
    assert!(request_count <= (MAX_TURNS + 2) * recorded_faults.len(), "{request_count} requests, {recorded_faults:?}");
    let usage = &testbed.last_journal().into_iter().rfind(|entry| entry["reply"]["outcome"] == "failed").unwrap()["reply"]
        ["usage"];
    assert_eq!(usage["estimated"], true, "{usage}");
}

fn an_unreachable_provider_is_a_connection_fault(client: Client) {
    let mut testbed = ClientTestbed::new(&[client], []);
    testbed.point_at_dead_port();
    testbed.run_expecting(&["review", "plan.md"], 5);
    let recorded_faults = read_faults(&testbed);
    assert!(
        !recorded_faults.is_empty() && recorded_faults.iter().all(|fault| fault["fault"] == "connection"),
        "{recorded_faults:?}"
    );
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_client_that_knows_prices_stops_at_the_remaining_budget() {
    let expensive_usage = ScriptedTokens { input: 400_000, cached: 0, output: 20_000, reasoning: 0 };
    let read_step = AnswerStep::from_calls([ScenarioCall::Read("plan.md".into())]).with_tokens(expensive_usage);
    let testbed = ClientTestbed::new(
        &[Client::Claude],
        [ScenarioRule::always([read_step.clone(), read_step.clone(), read_step])],
    );
    testbed.sandbox.append_setting("limits: {max_cost: 0.50}");
    testbed.run_tribunal(&["review", "plan.md"]);
    let recorded_faults = read_faults(&testbed);
    assert_eq!(
        recorded_faults.first().map(|fault| str_field(fault, "fault")),
        Some("curtailed"),
        "{recorded_faults:?}"
    );
    assert_eq!(testbed.server.request_log().requests.len(), 1, "the first answer took it all");
}
