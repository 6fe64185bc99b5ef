//! Usage limits: a run waits until the announced time, and a wait survives the end of the process.

use std::collections::BTreeMap;

use serde_json::Value;
use tribunal_testkit::model::{
    AnswerFailure, AnswerStep, RuleCondition, ScenarioRule,
    review_rules::{finding_json, findings_json, reviewer_rule},
};

use crate::common::{Client, ClientTestbed, VAGUE_SENTENCE, str_field, with_each_client};

with_each_client!(
    a_usage_limit_is_waited_out,
    a_wait_survives_the_end_of_the_process,
    another_agent_takes_over_at_a_limit,
    a_limit_is_waited_out_if_no_other_agent_can_take_over,
);

/// Longer than a client takes to give up after the announcement, and no longer than needed.
const LIMIT_SECONDS: u64 = 15;
/// The gate that a test opens when the provider may be asked again.
const LIMIT_OVER_GATE: &str = "the limit is over";

/// Builds a rate limit as each client's provider words it, with the time in the message.
fn usage_limit(client: Client) -> AnswerFailure {
    match client {
        Client::Claude => {
            let message = format!("Claude AI usage limit reached|{{now+{LIMIT_SECONDS}}}");
            AnswerFailure::from_status(429, "rate_limit_error", &message)
        }
        Client::Codex => {
            let message = format!("Rate limit reached. Please try again in {LIMIT_SECONDS}s.");
            AnswerFailure::StreamError { kind: "rate_limit_exceeded".to_string(), message }
        }
    }
}

/// Builds the usage limit of a plan. Codex reports its end to the minute, so this one ends with a minute.
fn plan_limit(client: Client) -> AnswerFailure {
    if client == Client::Claude {
        return usage_limit(client);
    }
    let response_body = format!(
        r#"{{"error": {{"type": "usage_limit_reached", "message": "x", "plan_type": "plus", "resets_at": {{minute+{LIMIT_SECONDS}}}}}}}"#
    );
    let response_body = Some(response_body);
    AnswerFailure::Status {
        code: 429,
        kind: String::new(),
        message: String::new(),
        headers: BTreeMap::new(),
        body: response_body,
    }
}

fn reviewer_request() -> RuleCondition {
    RuleCondition { last: Some("You are one reviewer".into()), ..RuleCondition::default() }
}

/// Creates a project whose provider is at a limit until the gate is open, and then answers.
fn limited_testbed(client: Client, failure: AnswerFailure) -> ClientTestbed {
    let answer_step = AnswerStep::from_structured(findings_json(&[]));
    let rules = [
        ScenarioRule::on_condition(reviewer_request(), [AnswerStep::from_failure(failure)]).until_gate(LIMIT_OVER_GATE),
        ScenarioRule::on_condition(reviewer_request(), [answer_step]),
    ];
    ClientTestbed::new(&[client], rules)
}

fn is_wait_started(run_event: &Value) -> bool {
    run_event["kind"] == "effect_started" && run_event["effect"]["effect"] == "await_reset"
}

/// Expects that the first try hit a limit, and returns when that ends.
fn read_limit_end(testbed: &ClientTestbed) -> u64 {
    let first_reply = testbed.find_reply("round-1/review/adversarial");
    assert_eq!(first_reply["fault"], "limited", "{first_reply}");
    first_reply["until_ms"].as_u64().unwrap_or_else(|| panic!("no time in {first_reply}"))
}

fn a_usage_limit_is_waited_out(client: Client) {
    let testbed = limited_testbed(client, usage_limit(client));
    let started_review = testbed.start_until(&["review", "plan.md"], is_wait_started);
    testbed.server.open_gate(LIMIT_OVER_GATE);
    assert_eq!(started_review.wait_for_end(), Some(0));
    let second_reply = testbed.find_reply("round-1/review/adversarial/then-1");
    assert_eq!(str_field(&second_reply, "answer"), "findings");
    let run_journal = testbed.last_journal();
    let second_request =
        run_journal.iter().find(|journal_entry| journal_entry["key"] == "round-1/review/adversarial/then-1").unwrap();
    assert!(second_request["at"]["wall_ms"].as_u64().unwrap() >= read_limit_end(&testbed), "asked before its time");
}

fn a_wait_survives_the_end_of_the_process(client: Client) {
    let testbed = limited_testbed(client, plan_limit(client));
    testbed.start_until(&["review", "plan.md"], is_wait_started).kill();
    let earlier_count = testbed.server.request_log().requests.len();
    testbed.server.open_gate(LIMIT_OVER_GATE);
    testbed.run_expecting(&["resume"], 0);
    assert_eq!(testbed.server.request_log().requests.len(), earlier_count + 1, "asked once more, and once only");
    let run_journal = testbed.last_journal();
    let count_wait_entries = |entry_kind: &str| {
        run_journal
            .iter()
            .filter(|journal_entry| {
                journal_entry["kind"] == entry_kind && str_field(journal_entry, "key").ends_with("/wait-1")
            })
            .count()
    };
    assert_eq!(
        [count_wait_entries("effect_started"), count_wait_entries("effect_finished")],
        [1, 1],
        "begun by one, ended by the other"
    );
    read_limit_end(&testbed);
}

/// Returns the other client of the two.
fn other_client(client: Client) -> Client {
    if client == Client::Claude { Client::Codex } else { Client::Claude }
}

fn a_limit_is_waited_out_if_no_other_agent_can_take_over(client: Client) {
    let fallback_client = other_client(client);
    let request_of = |client: Client| RuleCondition { api: Some(client.model_api()), ..reviewer_request() };
    let auth_failure = AnswerFailure::from_status(401, "authentication_error", "invalid x-api-key");
    let rules = [
        ScenarioRule::on_condition(request_of(client), [AnswerStep::from_failure(usage_limit(client))])
            .until_gate(LIMIT_OVER_GATE),
        ScenarioRule::on_condition(request_of(client), [AnswerStep::from_structured(findings_json(&[]))]),
        ScenarioRule::on_condition(request_of(fallback_client), [AnswerStep::from_failure(auth_failure)]),
    ];
    let testbed = ClientTestbed::new(&[client, fallback_client], rules);
    let started_review = testbed.start_until(&["review", "plan.md"], is_wait_started);
    testbed.server.open_gate(LIMIT_OVER_GATE);
    assert_eq!(started_review.wait_for_end(), Some(0));
    assert_eq!(str_field(&testbed.find_reply("round-1/review/adversarial/then-1"), "answer"), "findings");
}

fn another_agent_takes_over_at_a_limit(client: Client) {
    let fallback_client = other_client(client);
    let limited_rule = ScenarioRule::on_condition(
        RuleCondition { api: Some(client.model_api()), ..reviewer_request() },
        [AnswerStep::from_failure(usage_limit(client))],
    );
    let testbed = ClientTestbed::new(
        &[client, fallback_client],
        [limited_rule, reviewer_rule(1, &[finding_json("high", "fast is vague", VAGUE_SENTENCE)])],
    );
    testbed.review_without_fixing();
    let run_journal = testbed.last_journal();
    let warning_entries = run_journal.iter().filter(|journal_entry| journal_entry["kind"] == "warned");
    let warnings: Vec<&str> = warning_entries.map(|journal_entry| str_field(journal_entry, "text")).collect();
    let expected_warning = format!("using {} instead of {}", fallback_client.agent_name(), client.agent_name());
    assert!(warnings.iter().any(|text| text.contains(&expected_warning)), "{warnings:?}");
    assert_eq!(str_field(&testbed.find_reply("round-1/review/adversarial/other-1"), "answer"), "findings");
    assert_eq!(testbed.list_findings(), ["F1 open"]);
}
