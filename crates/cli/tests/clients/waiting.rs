//! Usage limits: a run waits until the announced time, and a wait survives the end of the process.

use std::collections::BTreeMap;

use serde_json::Value;
use tribunal_testkit::model::{
    Failure, Rule, Step, When,
    parts::{finding, findings_of, reviewer},
};

use crate::common::{Bench, Client, VAGUE, with_each_client, word};

with_each_client!(
    a_usage_limit_is_waited_out,
    a_wait_survives_the_end_of_the_process,
    somebody_else_takes_over,
    a_limit_is_waited_out_where_nobody_else_can,
);

/// Longer than a client takes to give up after the announcement, and no longer than needed.
const AHEAD_SECONDS: u64 = 15;
/// The gate that a test opens when the provider may be asked again.
const OVER: &str = "the limit is over";

/// Builds a rate limit as each client's provider words it, with the time in the message.
fn limit(client: Client) -> Failure {
    match client {
        Client::Claude => {
            let message = format!("Claude AI usage limit reached|{{now+{AHEAD_SECONDS}}}");
            Failure::status(429, "rate_limit_error", &message)
        }
        Client::Codex => {
            let message = format!("Rate limit reached. Please try again in {AHEAD_SECONDS}s.");
            Failure::StreamError { kind: "rate_limit_exceeded".to_string(), message }
        }
    }
}

/// Builds the usage limit of a plan. Codex reports its end to the minute, so this one ends with a minute.
fn plan_limit(client: Client) -> Failure {
    if client == Client::Claude {
        return limit(client);
    }
    let body = format!(
        r#"{{"error": {{"type": "usage_limit_reached", "message": "x", "plan_type": "plus", "resets_at": {{minute+{AHEAD_SECONDS}}}}}}}"#
    );
    let body = Some(body);
    Failure::Status { code: 429, kind: String::new(), message: String::new(), headers: BTreeMap::new(), body }
}

fn asked() -> When {
    When { last: Some("You are one reviewer".into()), ..When::default() }
}

/// Creates a project whose provider is at a limit until the gate is open, and then answers.
fn limited(client: Client, failure: Failure) -> Bench {
    let over = Step::structured(findings_of(&[]));
    let rules = [Rule::when(asked(), [Step::fail(failure)]).until(OVER), Rule::when(asked(), [over])];
    Bench::new(&[client], rules)
}

fn is_wait(event: &Value) -> bool {
    event["kind"] == "effect_started" && event["effect"]["effect"] == "await_reset"
}

/// Expects that the first try hit a limit, and returns when that ends.
fn until_ms(bench: &Bench) -> u64 {
    let reply = bench.reply("round-1/review/adversarial");
    assert_eq!(reply["fault"], "limited", "{reply}");
    reply["until_ms"].as_u64().unwrap_or_else(|| panic!("no time in {reply}"))
}

fn a_usage_limit_is_waited_out(client: Client) {
    let bench = limited(client, limit(client));
    let run = bench.start(&["review", "plan.md"], is_wait);
    bench.server.open(OVER);
    assert_eq!(run.end(), Some(0));
    let again = bench.reply("round-1/review/adversarial/then-1");
    assert_eq!(word(&again, "answer"), "findings");
    let journal = bench.journal();
    let asked = journal.iter().find(|entry| entry["key"] == "round-1/review/adversarial/then-1").unwrap();
    assert!(asked["at"]["wall_ms"].as_u64().unwrap() >= until_ms(&bench), "asked before its time");
}

fn a_wait_survives_the_end_of_the_process(client: Client) {
    let bench = limited(client, plan_limit(client));
    bench.start(&["review", "plan.md"], is_wait).kill();
    let before = bench.server.tally().requests.len();
    bench.server.open(OVER);
    bench.expect(&["resume"], 0);
    assert_eq!(bench.server.tally().requests.len(), before + 1, "asked once more, and once only");
    let journal = bench.journal();
    let of_the_wait = |kind: &str| {
        journal
            .iter()
            .filter(|event| event["kind"] == kind && word(event, "key").ends_with("/wait-1"))
            .count()
    };
    assert_eq!(
        [of_the_wait("effect_started"), of_the_wait("effect_finished")],
        [1, 1],
        "begun by one, ended by the other"
    );
    until_ms(&bench);
}

/// Returns the other client of the two.
fn other(client: Client) -> Client {
    if client == Client::Claude { Client::Codex } else { Client::Claude }
}

fn a_limit_is_waited_out_where_nobody_else_can(client: Client) {
    let other = other(client);
    let of = |client: Client| When { api: Some(client.api()), ..asked() };
    let keyless = Failure::status(401, "authentication_error", "invalid x-api-key");
    let rules = [
        Rule::when(of(client), [Step::fail(limit(client))]).until(OVER),
        Rule::when(of(client), [Step::structured(findings_of(&[]))]),
        Rule::when(of(other), [Step::fail(keyless)]),
    ];
    let bench = Bench::new(&[client, other], rules);
    let run = bench.start(&["review", "plan.md"], is_wait);
    bench.server.open(OVER);
    assert_eq!(run.end(), Some(0));
    assert_eq!(word(&bench.reply("round-1/review/adversarial/then-1"), "answer"), "findings");
}

fn somebody_else_takes_over(client: Client) {
    let other = other(client);
    let refused = Rule::when(When { api: Some(client.api()), ..asked() }, [Step::fail(limit(client))]);
    let bench =
        Bench::new(&[client, other], [refused, reviewer(1, &[finding("high", "fast is vague", VAGUE)])]);
    bench.look();
    let journal = bench.journal();
    let warned = journal.iter().filter(|event| event["kind"] == "warned");
    let warnings: Vec<&str> = warned.map(|event| word(event, "text")).collect();
    let said = format!("{} does it instead of {}", other.agent(), client.agent());
    assert!(warnings.iter().any(|text| text.contains(&said)), "{warnings:?}");
    assert_eq!(word(&bench.reply("round-1/review/adversarial/other-1"), "answer"), "findings");
    assert_eq!(bench.findings(), ["F1 open"]);
}
