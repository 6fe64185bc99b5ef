//! The proof of crash safety: the program is killed with SIGKILL before and after the commit of every single journal event of
//! a reference run, and resumed. It must reach the same findings, statuses, files and outcome, must not ask an agent again
//! whose reply was recorded, and must not leave a half-written file. It is also killed inside effects, around every rename.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::process::ExitStatusExt,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;

use crate::common::{PRD, Sandbox};

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

/// Returns the number of agent calls so far, by task.
fn calls_by_task(sandbox: &Sandbox) -> BTreeMap<String, usize> {
    let mut call_counts = BTreeMap::new();
    for task in std::fs::read_to_string(sandbox.path_of("../calls")).unwrap_or_default().lines() {
        *call_counts.entry(task.to_string()).or_default() += 1;
    }
    call_counts
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
        let (calls_before, recorded_keys) = (calls_by_task(&sandbox), recorded_tasks(&sandbox));
        let resume_args: &[&str] =
            if sandbox.run_ids().is_empty() { &["review", PRD, "--json"] } else { &["resume", "--json"] };
        // A run that was killed after its last commit has ended, so there is nothing to resume.
        if sandbox.run_json(&["runs"])["runs"][0]["state"] != "resolved" {
            let output = run_with_fault(&sandbox, resume_args, "");
            assert!(output.status.success(), "{fault_point}: {output:?}");
        }
        let calls_after = calls_by_task(&sandbox);
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

#[test]
fn a_review_killed_at_any_instant_reaches_the_same_result() {
    let sandbox = Sandbox::with_demo();
    let output = run_with_fault(&sandbox, &["review", PRD, "--json"], "");
    assert!(output.status.success(), "{output:?}");
    let reference_result = collect_result(&sandbox);
    assert!(recorded_tasks(&sandbox).len() > 10, "the journal's answers are found");
    let events = sandbox.run_events(&["log", &sandbox.last_run_id()]);
    let mut fault_points = Vec::new();
    for event in &events {
        for moment in ["before", "after"] {
            fault_points.push((format!("{moment}:{}", event["id"].as_str().unwrap()), event["kind"].as_str().unwrap()));
        }
    }

    // The program is also killed in the middle of effects, around the rename of every file it writes.
    for file in ["prd.md", "landing.json", "prd-issues.md", "manifest.json"] {
        for moment in ["before", "after"] {
            fault_points.push((format!("{moment}:write:{file}"), "write"));
        }
    }

    // The text of the subject is also written to the originals; these points are around the user's own file.
    fault_points.extend(["before:landing", "after:landing"].map(|landing_point| (landing_point.to_string(), "write")));

    let next_index = AtomicUsize::new(0);
    let reached_kinds: Mutex<BTreeSet<(&str, bool)>> = Mutex::default();
    let missed_count = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((fault_point, event_kind)) = fault_points.get(next_index.fetch_add(1, Ordering::Relaxed))
                {
                    if survives_kill(fault_point, &reference_result) {
                        reached_kinds.lock().unwrap().insert((event_kind, fault_point.starts_with("before")));
                    } else {
                        missed_count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });

    let expected_kinds: BTreeSet<(&str, bool)> =
        fault_points.iter().flat_map(|(_, event_kind)| [(*event_kind, true), (*event_kind, false)]).collect();
    assert_eq!(reached_kinds.into_inner().unwrap(), expected_kinds, "every kind of event was cut on both sides");
    let missed_count = missed_count.into_inner();
    assert_eq!(missed_count, 0, "{missed_count} of {} fault points did not come up", fault_points.len());
    println!("killed at {} points", fault_points.len());
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
    // have a stretch of their own.
    let output = run_with_fault(&interrupted, &["review", PRD, "--json"], &format!("before:1:finished:{key}"));
    assert_eq!(output.status.signal(), Some(9));
    assert!(run_with_fault(&interrupted, &["resume", "--json"], "").status.success());
    let (tokens_once, tokens_twice) =
        (recorded_input_tokens(&uninterrupted, key), recorded_input_tokens(&interrupted, key));
    assert!(tokens_twice > tokens_once + 1_000, "{tokens_once} tokens, and {tokens_twice} after a try that was lost");
}
