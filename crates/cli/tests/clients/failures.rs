//! Failures of the provider, and how the journal classifies them. Each case is one run with one client.

use std::thread;

use serde_json::Value;
use tribunal_testkit::model::{Call, Failure, Rule, Step, Stop, Tokens, When};

use crate::common::{Bench, Client, with_each_client, word};

with_each_client!(faults_have_their_class, a_model_that_never_answers, a_provider_that_is_not_there);

/// What the provider does, and the fault that each client makes of it.
struct Row {
    name: &'static str,
    step: Step,
    claude: &'static str,
    codex: &'static str,
    /// Whether the agent is charged with a failed attempt; the provider's failures are not the agent's fault.
    charged: bool,
}

fn row(name: &'static str, step: Step, claude: &'static str, codex: &'static str) -> Row {
    Row { name, step, claude, codex, charged: ["refused", "overflow"].contains(&codex) }
}

fn status(code: u16, kind: &str, message: &str) -> Step {
    Step::fail(Failure::status(code, kind, message))
}

fn rows() -> Vec<Row> {
    let overflow = |code: u16| {
        status(code, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum")
    };
    let quota = || status(429, "insufficient_quota", "You exceeded your current quota");
    let credit = || status(400, "invalid_request_error", "Your credit balance is too low to access the API");
    let streamed = |kind: &str, message: &str| {
        Step::fail(Failure::StreamError { kind: kind.to_string(), message: message.to_string() })
    };
    vec![
        row(
            "401",
            status(401, "authentication_error", "invalid x-api-key"),
            "not_signed_in",
            "not_signed_in",
        ),
        row("403", status(403, "permission_error", "not allowed"), "not_signed_in", "not_signed_in"),
        row("404", status(404, "not_found_error", "The model `x` does not exist"), "no_model", "no_model"),
        row("429", status(429, "rate_limit_error", "too many requests"), "limited", "limited"),
        row("quota", quota(), "no_credit", "no_credit"),
        row("credit", credit(), "no_credit", "no_credit"),
        row("500", status(500, "api_error", "internal"), "overloaded", "overloaded"),
        row("529", status(529, "overloaded_error", "Overloaded"), "overloaded", "overloaded"),
        row("503", status(503, "api_error", "busy"), "overloaded", "overloaded"),
        row("413", status(413, "request_too_large", "too large"), "overflow", "overflow"),
        row("cut", Step::fail(Failure::Cut), "connection", "connection"),
        row("hung up", Step::fail(Failure::HangUp), "connection", "connection"),
        row("refusal", Step::text("").stopping(Stop::Refusal), "refused", "refused"),
        row("overflow", overflow(400), "overflow", "overflow"),
        row(
            "overflow in the stream",
            streamed("context_length_exceeded", "Your input exceeds the context window of this model"),
            "overflow",
            "overflow",
        ),
        row("not JSON", Step::fail(Failure::NotJson("<html>busy</html>".into())), "malformed", "connection"),
    ]
}

/// The provider is asked at most this often for one task: only the client itself retries.
const MOST_REQUESTS: usize = 8;

fn faults_have_their_class(client: Client) {
    let rows = rows();
    let judged: Vec<String> = rows.chunks(4).flat_map(|rows| side_by_side(client, rows)).collect();
    assert!(judged.is_empty(), "{}", judged.join("\n"));
}

/// Runs cases at the same time. Clients mostly wait before they retry, so a few of them share the machine well.
fn side_by_side(client: Client, rows: &[Row]) -> Vec<String> {
    thread::scope(|scope| {
        let runs: Vec<_> = rows.iter().map(|row| scope.spawn(move || judge(client, row))).collect();
        runs.into_iter().filter_map(|run| run.join().unwrap()).collect()
    })
}

/// Runs one case and describes what differs from it; `None` if nothing does.
fn judge(client: Client, row: &Row) -> Option<String> {
    let when = When { first: Some("You are one reviewer".into()), ..When::default() };
    let bench = Bench::new(&[client], [Rule::when(when, [row.step.clone()])]);
    // Without this limit a rate-limited run would wait instead of ending.
    bench.sandbox.set("limits: {max_wait: 0}");
    let ran = bench.run(&["review", "plan.md"]);
    let faults = faults(&bench);
    let expected = if client == Client::Claude { row.claude } else { row.codex };
    let requests = bench.server.tally().requests.len();
    let per_task = requests.div_ceil(faults.len().max(1));
    let said = format!("{client:?}, {}: {faults:?}, {requests} requests, exit {:?}", row.name, ran.code);
    let well = !faults.is_empty()
        && faults.iter().all(|fault| word(fault, "fault") == expected)
        && per_task <= MOST_REQUESTS
        && charged(&bench) == row.charged
        && ran.code == Some(5);
    (!well).then(|| format!("{said}; {}", ran.err))
}

/// Reads all faults of agents in the last run.
fn faults(bench: &Bench) -> Vec<Value> {
    let journal = bench.journal();
    let failed = journal.iter().filter(|entry| entry["reply"]["outcome"] == "failed");
    failed.map(|entry| entry["reply"].clone()).collect()
}

/// Returns whether the run counts a failed attempt.
fn charged(bench: &Bench) -> bool {
    let journal = bench.journal();
    // The last metrics file has the final counts.
    let metrics = journal.iter().rfind(|entry| entry["effect"]["file"]["file"] == "metrics").unwrap();
    let metrics: Value = serde_json::from_str(word(&metrics["effect"], "text")).unwrap();
    metrics["failures"].as_u64().unwrap() > 0
}

fn a_model_that_never_answers(client: Client) {
    let bench = Bench::new(&[client], [Rule::always([Step::fail(Failure::Silence)])]);
    bench.settle("tasks: {", "tasks: {idle_timeout: 8, ");
    bench.expect(&["review", "plan.md"], 5);
    let faults = faults(&bench);
    assert!(!faults.is_empty() && faults.iter().all(|fault| fault["fault"] == "silent"), "{faults:?}");
    bench.server.wait_until("the client to be gone", |tally| tally.live == 0);
}

fn a_provider_that_is_not_there(client: Client) {
    let mut bench = Bench::new(&[client], []);
    bench.desert();
    bench.expect(&["review", "plan.md"], 5);
    let faults = faults(&bench);
    assert!(!faults.is_empty() && faults.iter().all(|fault| fault["fault"] == "connection"), "{faults:?}");
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn a_client_that_knows_prices_stops_at_what_is_left_to_spend() {
    let dear = Tokens { input: 400_000, cached: 0, output: 20_000, reasoning: 0 };
    let look = Step::calls([Call::Read("plan.md".into())]).using(dear);
    let bench = Bench::new(&[Client::Claude], [Rule::always([look.clone(), look.clone(), look])]);
    bench.sandbox.set("limits: {max_cost: 0.50}");
    bench.run(&["review", "plan.md"]);
    let faults = faults(&bench);
    assert_eq!(faults.first().map(|fault| word(fault, "fault")), Some("curtailed"), "{faults:?}");
    assert_eq!(bench.server.tally().requests.len(), 1, "the first answer took it all");
}
