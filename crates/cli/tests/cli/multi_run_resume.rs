//! Runs that one command started are resumed together.
#![cfg(target_os = "linux")]

use std::io::{BufReader, Read};

use crate::{
    common::Sandbox,
    multi_run::{
        ANSWER_NOTHING, read_stopping_runs, run_states, sandbox_with_waiting_agents, send_interrupt, spawn_tribunal,
    },
};

/// A project in which one command was interrupted while it reviewed `one.md` and `two.md`.
fn sandbox_with_stopped_runs() -> Sandbox {
    let (sandbox, arrived, mut release) = sandbox_with_waiting_agents(&["one.md", "two.md", "three.md"]);
    let mut child = spawn_tribunal(&sandbox, &["review", "one.md", "two.md"]);
    arrived.read_lines(2);
    send_interrupt(&child);
    let mut stderr_reader = BufReader::new(child.stderr.take().unwrap());
    read_stopping_runs(&mut stderr_reader, 2);
    release.release_agents(2);
    let mut stderr_text = String::new();
    stderr_reader.read_to_string(&mut stderr_text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{stderr_text}");
    assert!(stderr_text.ends_with("  next: tribunal resume  (all 2 stopped runs)\n"), "{stderr_text}");
    assert_eq!(run_states(&sandbox), ["stopped", "stopped"]);
    sandbox.write_file("agent.sh", ANSWER_NOTHING);
    sandbox
}

#[test]
fn resume_without_a_name_continues_all_runs_of_the_command() {
    let sandbox = sandbox_with_stopped_runs();
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let run_ids = sandbox.run_ids();
    let notice = format!("note: resuming the 2 runs that one command started: {}\n", run_ids.join(", "));
    assert!(output.stderr.starts_with(&notice), "{}", output.stderr);
    assert!(output.stderr.contains("\n2 runs:\n"), "{}", output.stderr);
    assert_eq!(run_states(&sandbox), ["resolved", "resolved"]);
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.stderr, "note: nothing to resume; list all runs with `tribunal runs`\n");
}

#[test]
fn resume_with_a_name_continues_only_that_run() {
    let sandbox = sandbox_with_stopped_runs();
    let first_run = sandbox.run_ids().remove(0);
    let output = sandbox.run_tribunal(&["resume", &first_run]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let mut states = run_states(&sandbox);
    states.sort();
    assert_eq!(states, ["resolved", "stopped"]);
    // The other one is left, and needs no list.
    let output = sandbox.run_tribunal(&["resume"]);
    assert!(!output.stderr.contains("note: resuming"), "{}", output.stderr);
    assert_eq!(run_states(&sandbox), ["resolved", "resolved"]);
}

#[test]
fn a_later_run_of_another_command_is_resumed_alone() {
    let sandbox = sandbox_with_stopped_runs();
    sandbox.write_file("agent.sh", "cat >/dev/null; exit 7\n");
    assert_eq!(sandbox.run_tribunal(&["review", "three.md"]).exit_code, Some(5));
    sandbox.write_file("agent.sh", ANSWER_NOTHING);
    assert_eq!(sandbox.run_tribunal(&["resume"]).exit_code, Some(0));
    assert_eq!(run_states(&sandbox), ["stopped", "stopped", "resolved"]);
}

#[test]
fn a_failed_run_that_was_replaced_is_not_resumed_with_the_others() {
    let sandbox = crate::multi_run::sandbox_with_documents(&["one.md", "two.md"], "cat >/dev/null; exit 7\n");
    assert_eq!(sandbox.run_tribunal(&["review", "one.md", "two.md"]).exit_code, Some(5));
    sandbox.write_file("agent.sh", ANSWER_NOTHING);
    assert_eq!(sandbox.run_tribunal(&["review", "one.md"]).exit_code, Some(0));
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("review of two.md") && !output.stderr.contains("one.md"), "{}", output.stderr);
}

#[test]
fn runs_of_one_command_share_a_batch_and_single_runs_have_none() {
    let sandbox = crate::multi_run::sandbox_with_documents(&["one.md", "two.md"], ANSWER_NOTHING);
    let batch_of = |events: &[serde_json::Value]| -> Vec<serde_json::Value> {
        events.iter().filter(|event| event["kind"] == "run_started").map(|event| event["batch"].clone()).collect()
    };
    let batches = batch_of(&sandbox.run_events(&["review", "one.md", "two.md"]));
    assert_eq!(batches.len(), 2);
    assert!(batches[0].is_string() && batches[0] == batches[1], "{batches:?}");
    assert_eq!(batch_of(&sandbox.run_events(&["review", "one.md"])), [serde_json::Value::Null]);
}
