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
struct Result {
    outcome: Value,
    reason: Value,
    rounds: Value,
    findings: Vec<(Value, Value, Value, Value, Value)>,
    document: String,
    tracker: Vec<String>,
}

fn result(sandbox: &Sandbox) -> Result {
    let runs = sandbox.json(&["runs"]);
    let last = &runs["runs"][0]["last"];
    let findings = sandbox.json(&["findings"]);
    let mut tracker: Vec<String> = sandbox
        .read("_bmad-output/reviews/prd-issues.md")
        .lines()
        .filter(|line| {
            !line.starts_with("Generated:") && !line.contains("rev ") && !line.starts_with("<!-- tribunal: ")
        })
        // Which fixer made a fix depends on which one was faster.
        .map(|line| if line.contains("/fix/") { line.split(" (").next().unwrap() } else { line })
        .map(String::from)
        .collect();
    tracker.sort();
    Result {
        outcome: last["outcome"].clone(),
        reason: last["reason"].clone(),
        rounds: last["rounds"].clone(),
        findings: findings["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| {
                let field = |name: &str| f[name].clone();
                (field("id"), field("status"), field("severity"), field("place"), field("raisers"))
            })
            .collect(),
        document: sandbox.read(PRD),
        tracker,
    }
}

/// Returns the number of agent calls so far, by task.
fn calls(sandbox: &Sandbox) -> BTreeMap<String, usize> {
    let mut calls = BTreeMap::new();
    for task in std::fs::read_to_string(sandbox.path("../calls")).unwrap_or_default().lines() {
        *calls.entry(task.to_string()).or_default() += 1;
    }
    calls
}

/// Returns the tasks whose reply is in the journal.
fn recorded(sandbox: &Sandbox) -> BTreeSet<String> {
    let Some(run) = sandbox.runs().pop() else { return BTreeSet::new() };
    let events = sandbox.events(&["log", &run]);
    let replies = events
        .iter()
        .filter(|event| event["kind"] == "effect_finished" && event["reply"]["outcome"] == "answered");
    replies.map(|event| event["key"].as_str().unwrap().to_string()).collect()
}

fn review(sandbox: &Sandbox, args: &[&str], fault: &str) -> std::process::Output {
    let mut command = sandbox.command(args);
    command.env("TRIBUNAL_CALLS", sandbox.path("../calls")).env("TRIBUNAL_FAULT", fault).output().unwrap()
}

/// Runs with a kill at `fault_point`, resumes, and compares the result. Returns false if the run did not reach the fault
/// point.
fn survive(fault: &str, reference: &Result) -> bool {
    let sandbox = Sandbox::demo();
    let output = review(&sandbox, &["review", PRD, "--json"], fault);
    let killed = output.status.signal() == Some(9);
    assert!(killed || output.status.success(), "{fault}: {output:?}");
    if killed {
        let (before, recorded) = (calls(&sandbox), recorded(&sandbox));
        let again: &[&str] =
            if sandbox.runs().is_empty() { &["review", PRD, "--json"] } else { &["resume", "--json"] };
        // A run that was killed after its last commit has ended, so there is nothing to resume.
        if sandbox.json(&["runs"])["runs"][0]["state"] != "resolved" {
            let output = review(&sandbox, again, "");
            assert!(output.status.success(), "{fault}: {output:?}");
        }
        let after = calls(&sandbox);
        for task in recorded {
            assert_eq!(before.get(&task), after.get(&task), "{fault}: {task} was recorded and asked again");
        }
    }
    assert_eq!(&result(&sandbox), reference, "{fault}");
    assert_eq!(sandbox.litter(), Vec::<std::path::PathBuf>::new(), "{fault}");
    killed
}

#[test]
fn killed_at_any_instant_the_review_comes_to_the_same_end() {
    let sandbox = Sandbox::demo();
    let output = review(&sandbox, &["review", PRD, "--json"], "");
    assert!(output.status.success(), "{output:?}");
    let reference = result(&sandbox);
    assert!(recorded(&sandbox).len() > 10, "the journal's answers are found");
    let events = sandbox.events(&["log", &sandbox.last_run()]);
    let mut points = Vec::new();
    for event in &events {
        for when in ["before", "after"] {
            points
                .push((format!("{when}:{}", event["id"].as_str().unwrap()), event["kind"].as_str().unwrap()));
        }
    }

    // The program is also killed in the middle of effects, around the rename of every file it writes.
    for file in ["prd.md", "landing.json", "prd-issues.md", "manifest.json"] {
        for when in ["before", "after"] {
            points.push((format!("{when}:write:{file}"), "write"));
        }
    }

    // The text of the subject is also written to the originals; these points are around the user's own file.
    points.extend(["before:landing", "after:landing"].map(|point| (point.to_string(), "write")));

    let next = AtomicUsize::new(0);
    let reached: Mutex<BTreeSet<(&str, bool)>> = Mutex::default();
    let missed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((fault, kind)) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if survive(fault, &reference) {
                        reached.lock().unwrap().insert((kind, fault.starts_with("before")));
                    } else {
                        missed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });

    let kinds: BTreeSet<(&str, bool)> =
        points.iter().flat_map(|(_, kind)| [(*kind, true), (*kind, false)]).collect();
    assert_eq!(reached.into_inner().unwrap(), kinds, "every kind of event was cut on both sides");
    let missed = missed.into_inner();
    assert_eq!(missed, 0, "{missed} of {} fault points did not come up", points.len());
    println!("killed at {} points", points.len());
}

/// Returns the input tokens that the journal records for a task.
fn tokens(sandbox: &Sandbox, key: &str) -> u64 {
    let events = sandbox.events(&["log", &sandbox.last_run()]);
    let reply = events.iter().find(|event| event["kind"] == "effect_finished" && event["key"] == key);
    reply.unwrap()["reply"]["usage"]["input_tokens"].as_u64().unwrap()
}

#[test]
fn a_try_that_was_killed_is_charged_for_what_it_was_sent() {
    let key = "round-1/review/party";
    let whole = Sandbox::demo();
    assert!(review(&whole, &["review", PRD, "--json"], "").status.success());
    let cut = Sandbox::demo();
    // The prompts of the running agents were paid for, even if their answers were lost.
    let output = review(&cut, &["review", PRD, "--json"], &format!("before:0:finished:{key}"));
    assert_eq!(output.status.signal(), Some(9));
    assert!(review(&cut, &["resume", "--json"], "").status.success());
    let (once, twice) = (tokens(&whole, key), tokens(&cut, key));
    assert!(twice > once + 1_000, "{once} tokens, and {twice} after a try that was lost");
}
