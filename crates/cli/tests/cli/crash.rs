//! The proof of crash safety: the program is killed with SIGKILL before and after the commit of every single journal event of
//! a reference run, and resumed. It must reach the same findings, statuses, files and outcome, must not ask an agent again
//! whose reply was recorded, and must not leave a half-written file. It is also killed inside effects, around every rename. A
//! sample of the points is tried here; `cargo xtask crash` tries all.

use std::{collections::BTreeSet, os::unix::process::ExitStatusExt};

use serde_json::Value;

use crate::{
    common::{PRD, Sandbox},
    crash_damage::KilledKind,
    fault_points::{Coverage, try_fault_points},
    loop_sandbox::count_calls,
};

/// What the tests of damaged journals need to know about reviews.
pub(crate) const REVIEW_KIND: KilledKind = KilledKind {
    name: "review",
    new_sandbox: Sandbox::with_demo,
    start: |sandbox, fault_point| run_with_fault(sandbox, &["review", PRD, "--json"], fault_point),
    resume: |sandbox| run_with_fault(sandbox, &["resume", "--json"], ""),
    done_state: "resolved",
    describe_result: |sandbox| format!("{:?}", collect_result(sandbox)),
    list_fault_points,
};

/// What must be the same however often the program was killed.
#[derive(Debug, PartialEq)]
struct ReviewResult {
    outcome: Value,
    reason: Value,
    rounds: Value,
    findings: Vec<(Value, Value, Value, Value, Value)>,
    document: String,
    tracker: Vec<String>,
}

fn collect_result(sandbox: &Sandbox) -> ReviewResult {
    let runs = sandbox.run_json(&["runs"]);
    let last_summary = &runs["runs"][0]["last"];
    let findings = sandbox.run_json(&["findings"]);
    let mut tracker: Vec<String> = sandbox
        .read_file("_bmad-output/reviews/prd-issues.md")
        .lines()
        .filter(|line| {
            !line.starts_with("Generated:") && !line.contains("rev ") && !line.starts_with("<!-- tribunal: ")
        })
        // Which fixer made a fix depends on which one was faster.
        .map(|line| if line.contains("/fix/") { line.split(" (").next().unwrap() } else { line })
        .map(String::from)
        .collect();
    tracker.sort();
    ReviewResult {
        outcome: last_summary["outcome"].clone(),
        reason: last_summary["reason"].clone(),
        rounds: last_summary["rounds"].clone(),
        findings: findings["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| {
                let field_of = |field_name: &str| finding[field_name].clone();
                (field_of("id"), field_of("status"), field_of("severity"), field_of("place"), field_of("raisers"))
            })
            .collect(),
        document: sandbox.read_file(PRD),
        tracker,
    }
}

/// Returns the tasks whose reply is in the journal.
fn recorded_tasks(sandbox: &Sandbox) -> BTreeSet<String> {
    let Some(run_id) = sandbox.run_ids().pop() else { return BTreeSet::new() };
    let events = sandbox.run_events(&["log", &run_id]);
    let replies =
        events.iter().filter(|event| event["kind"] == "effect_finished" && event["reply"]["outcome"] == "answered");
    replies.map(|event| event["key"].as_str().unwrap().to_string()).collect()
}

fn run_with_fault(sandbox: &Sandbox, args: &[&str], fault_point: &str) -> std::process::Output {
    let mut command = sandbox.tribunal_command(args);
    command.env("TRIBUNAL_CALLS", sandbox.path_of("../calls")).env("TRIBUNAL_FAULT", fault_point).output().unwrap()
}

/// Runs with a kill at `fault_point`, resumes, and compares the result. Returns false if the run did not reach the fault
/// point.
fn survives_kill(fault_point: &str, reference: &ReviewResult) -> bool {
    let sandbox = Sandbox::with_demo();
    let output = run_with_fault(&sandbox, &["review", PRD, "--json"], fault_point);
    let was_killed = output.status.signal() == Some(9);
    assert!(was_killed || output.status.success(), "{fault_point}: {output:?}");
    if was_killed {
        let (calls_before, recorded_keys) = (count_calls(&sandbox), recorded_tasks(&sandbox));
        let resume_args: &[&str] =
            if sandbox.run_ids().is_empty() { &["review", PRD, "--json"] } else { &["resume", "--json"] };
        // A run that was killed after its last commit has ended, so there is nothing to resume.
        if sandbox.run_json(&["runs"])["runs"][0]["state"] != "resolved" {
            let output = run_with_fault(&sandbox, resume_args, "");
            assert!(output.status.success(), "{fault_point}: {output:?}");
        }
        let calls_after = count_calls(&sandbox);
        for task in recorded_keys {
            assert_eq!(
                calls_before.get(&task),
                calls_after.get(&task),
                "{fault_point}: {task} was recorded and asked again"
            );
        }
    }
    assert_eq!(&collect_result(&sandbox), reference, "{fault_point}");
    assert_eq!(sandbox.temporary_leftovers(), Vec::<std::path::PathBuf>::new(), "{fault_point}");
    was_killed
}

/// Lists points before and after every event, and around the rename of every file, which is in the middle of an effect.
fn list_fault_points(sandbox: &Sandbox) -> Vec<String> {
    let events = sandbox.run_events(&["log", &sandbox.last_run_id()]);
    let event_ids = events.iter().map(|event| event["id"].as_str().unwrap().to_string());
    let files = ["prd.md", "landing.json", "prd-issues.md", "manifest.json"].map(|file| format!("write:{file}"));
    // The text of the subject is also written to the originals; this one is the user's own file.
    let places = event_ids.chain(files).chain([String::from("landing")]);
    places.flat_map(|place| ["before", "after"].map(|moment| format!("{moment}:{place}"))).collect()
}

fn try_points(coverage: Coverage) {
    let sandbox = Sandbox::with_demo();
    let output = run_with_fault(&sandbox, &["review", PRD, "--json"], "");
    assert!(output.status.success(), "{output:?}");
    let reference = collect_result(&sandbox);
    assert!(recorded_tasks(&sandbox).len() > 10, "the journal's answers are found");
    try_fault_points(&list_fault_points(&sandbox), coverage, |fault_point| survives_kill(fault_point, &reference));
}

#[test]
fn a_review_killed_at_sampled_instants_reaches_the_same_result() {
    try_points(Coverage::Sample(32));
}

#[test]
#[ignore = "takes minutes; `cargo xtask crash` runs it"]
fn a_review_killed_at_every_instant_reaches_the_same_result() {
    try_points(Coverage::All);
}

/// Returns the input tokens that the journal records for a task.
fn recorded_input_tokens(sandbox: &Sandbox, key: &str) -> u64 {
    let events = sandbox.run_events(&["log", &sandbox.last_run_id()]);
    let reply = events.iter().find(|event| event["kind"] == "effect_finished" && event["key"] == key);
    reply.unwrap()["reply"]["usage"]["input_tokens"].as_u64().unwrap()
}

#[test]
fn a_killed_attempt_is_charged_for_its_prompt() {
    let key = "round-1/review/party";
    let uninterrupted = Sandbox::with_demo();
    assert!(run_with_fault(&uninterrupted, &["review", PRD, "--json"], "").status.success());
    let interrupted = Sandbox::with_demo();
    // The prompts of the running agents were paid for, even if their answers were lost. The checks before the first round
    // have a segment of their own.
    let output = run_with_fault(&interrupted, &["review", PRD, "--json"], &format!("before:1:finished:{key}"));
    assert_eq!(output.status.signal(), Some(9));
    assert!(run_with_fault(&interrupted, &["resume", "--json"], "").status.success());
    let (tokens_once, tokens_twice) =
        (recorded_input_tokens(&uninterrupted, key), recorded_input_tokens(&interrupted, key));
    assert!(tokens_twice > tokens_once + 1_000, "{tokens_once} tokens, and {tokens_twice} after a try that was lost");
}
