//! Loops in sessions as runs: commands for runs list, show, stop and discard them, and their questions are answered.

use serde_json::{Value, json};

use crate::{
    common::{Sandbox, hide_times},
    sessions::{DONE_PROMISE, STATE_FILE, hook_answer, new_project, start_loop, stop_input, stop_refusal},
};

const BLOCKED_MESSAGE: &str = "<review-blocked>there is no key</review-blocked>";

/// Starts a loop whose session says that it is blocked.
fn blocked_loop(sandbox: &Sandbox) -> String {
    let loop_id = start_loop(sandbox, &["--promise", "DONE"]);
    assert_eq!(stop_refusal(sandbox, &stop_input("s1", BLOCKED_MESSAGE)), None);
    loop_id
}

/// Returns the row of the only run in `tribunal runs --json`.
fn only_run(sandbox: &Sandbox) -> Value {
    let document = sandbox.run_json(&["runs"]);
    let [run_row] = document["runs"].as_array().unwrap().as_slice() else { panic!("{document}") };
    run_row.clone()
}

/// Returns the ids of the open questions.
fn open_questions(sandbox: &Sandbox) -> Vec<String> {
    let document = sandbox.run_json(&["decisions"]);
    let decisions = document["decisions"].as_array().unwrap().iter();
    decisions
        .map(|decision| format!("{}.{}", decision["run"].as_str().unwrap(), decision["id"].as_str().unwrap()))
        .collect()
}

/// Runs a command that must succeed, and returns what it prints.
fn run_ok(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.run_tribunal(arguments);
    assert_eq!(output.exit_code, Some(0), "{arguments:?}: {}", output.stderr);
    output.stdout
}

/// Runs a command that must be refused, and returns the error.
fn run_refused(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.run_tribunal(arguments);
    assert_eq!(output.exit_code, Some(2), "{arguments:?}: {}", output.stdout);
    output.stderr
}

#[test]
fn a_held_loop_is_a_run_under_way() {
    let sandbox = new_project();
    let loop_id = start_loop(&sandbox, &["--promise", "DONE"]);
    let run_row = only_run(&sandbox);
    assert_eq!([&run_row["run"], &run_row["kind"], &run_row["title"]], [loop_id.as_str(), "session", "Make it work"]);
    assert_eq!([&run_row["state"], &run_row["last"]], [&json!("running"), &Value::Null]);
    assert!(run_ok(&sandbox, &["runs", "--live"]).contains(&loop_id));
    let status_text = run_ok(&sandbox, &["status", &loop_id]);
    insta::assert_snapshot!(status_text.replace(&loop_id, "[loop]"), @"
    [loop] running · Make it work
      sent back 0 times, 0 tools used
      belongs to session s1
      next: tribunal stop [loop]  (release its session)
            tribunal loop status [loop]
    ");
    assert_eq!(run_ok(&sandbox, &["status"]), status_text, "the last run is shown, and nothing crashed");
    let (start_answer, _) = hook_answer(&sandbox, "session-start", &json!({ "session_id": "s9" }));
    assert_eq!(start_answer, json!({}), "another session is told nothing about a crash");
    let collected = sandbox.run_json(&["gc", "--runs", "--keep-days", "0"]);
    assert_eq!((&collected["runs"], &collected["live"]), (&json!([]), &json!([loop_id])));
}

#[test]
fn a_loop_that_kept_its_promise_is_resolved() {
    let sandbox = new_project();
    let loop_id = start_loop(&sandbox, &["--promise", "DONE"]);
    assert!(stop_refusal(&sandbox, &stop_input("s1", "")).is_some());
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", DONE_PROMISE)), None);
    let run_row = only_run(&sandbox);
    assert_eq!([&run_row["state"], &run_row["last"]["reason"]], ["resolved", "goal_met"]);
    assert_eq!((&run_row["last"]["refusals"], &run_row["last"]["released"]), (&json!(1), &json!("complete")));
    assert!(open_questions(&sandbox).is_empty());
    let error_text = run_refused(&sandbox, &["resume", &loop_id]);
    assert!(error_text.contains("It has ended.") && error_text.contains("tribunal loop run"), "{error_text}");
    assert!(sandbox.run_tribunal(&["resume"]).stderr.contains("nothing to resume"));
    let collected = sandbox.run_json(&["gc", "--runs", "--keep-days", "0"]);
    assert_eq!(collected["runs"], json!([loop_id]), "an ended loop may go like any other run");
}

#[test]
fn a_loop_waits_for_an_answer_and_continues_with_more() {
    let sandbox = new_project();
    let loop_id = blocked_loop(&sandbox);
    let run_row = only_run(&sandbox);
    assert_eq!([&run_row["state"], &run_row["last"]["reason"]], ["waiting", "blocked"]);
    assert_eq!(open_questions(&sandbox), [format!("{loop_id}.D1")]);
    assert!(run_ok(&sandbox, &["runs", "--waiting"]).contains(&loop_id));
    let status_text = run_ok(&sandbox, &["status", &loop_id]);
    insta::assert_snapshot!(hide_times(&status_text).replace(&loop_id, "[loop]"), @"
    [loop] waiting · Make it work
      your decision is needed; it says that only you can continue (there is no key)
      sent back 0 times, 0 tools used · [time]
      next: tribunal decisions [loop].D1 ANSWER  (more, end)
            tribunal loop status [loop]
    ");
    let error_text = run_refused(&sandbox, &["resume", &loop_id]);
    assert!(error_text.contains("which only its session can continue"), "{error_text}");
    assert!(error_text.contains(&format!("tribunal decisions {loop_id}.D1 more")), "{error_text}");
    assert!(run_ok(&sandbox, &["stop", &loop_id]).contains(&format!("tribunal decisions {loop_id}.D1 more")));

    let answer_text = run_ok(&sandbox, &["decisions", "D1", "more"]);
    assert_eq!(answer_text, format!("{loop_id}: continues in session s1; sent back at most 50 times\n"));
    assert_eq!(only_run(&sandbox)["state"], "running");
    assert!(stop_refusal(&sandbox, &stop_input("s1", "")).is_some(), "the session is held again");
    // A loop that is released once more asks a question of its own.
    let (stop_answer, _) = hook_answer(&sandbox, "stop", &stop_input("s1", BLOCKED_MESSAGE));
    let message = stop_answer["systemMessage"].as_str().unwrap();
    assert!(message.contains(&format!("tribunal decisions {loop_id}.D2")), "{message}");
    assert_eq!(open_questions(&sandbox), [format!("{loop_id}.D2")]);
    let events = sandbox.run_events(&["log", &loop_id, "--kind", "run_resumed"]);
    assert_eq!(events.iter().map(|event| &event["life"]).collect::<Vec<_>>(), [2]);
    let clock_times: Vec<u64> =
        sandbox.run_events(&["log", &loop_id]).iter().map(|event| event["at"]["awake_ms"].as_u64().unwrap()).collect();
    assert!(clock_times.is_sorted(), "{clock_times:?}");
}

#[test]
fn a_loop_ends_for_good_with_the_answer_end() {
    let sandbox = new_project();
    let loop_id = blocked_loop(&sandbox);
    let answer_text = run_ok(&sandbox, &["decisions", &format!("{loop_id}.D1"), "end"]);
    assert_eq!(answer_text, format!("{loop_id}: ended; the changes of its session are kept\n"));
    let run_row = only_run(&sandbox);
    assert_eq!([&run_row["state"], &run_row["last"]["reason"]], ["cancelled", "abandoned"]);
    assert_eq!(run_row["last"]["released"], "blocked", "what its session did stays known");
    assert!(open_questions(&sandbox).is_empty());
    assert!(run_refused(&sandbox, &["decisions", "D1", "more"]).contains("already used"));
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", "")), None);
}

/// The session can write every file of the project, so an answer in a file could be its own.
#[test]
fn answers_in_files_do_not_extend_a_loop() {
    let sandbox = new_project();
    let loop_id = blocked_loop(&sandbox);
    sandbox.write_file(&format!(".tribunal/awaiting-human/{loop_id}.D1.yaml"), "answer: more\n");
    assert_eq!(sandbox.run_json(&["decisions"])["decisions"][0]["answered"], false);
    run_ok(&sandbox, &["decisions", "D1", "end"]);
}

#[test]
fn stopping_a_loop_releases_its_session() {
    let sandbox = new_project();
    // Without a name it is the only run under way that is stopped.
    for with_name in [true, false] {
        let loop_id = start_loop(&sandbox, &[]);
        let stop_args = if with_name { vec!["stop", &loop_id] } else { vec!["stop"] };
        let document = sandbox.run_json(&stop_args);
        assert_eq!([&document["stopping"], &document["state"]], [loop_id.as_str(), "cancelled"]);
        assert_eq!(document["next"], Value::Null);
        assert_eq!(stop_refusal(&sandbox, &stop_input("s1", "")), None);
        assert!(!sandbox.path_of(STATE_FILE).exists());
        assert_eq!(run_ok(&sandbox, &["stop", &loop_id]), format!("run {loop_id} has finished: cancelled\n"));
    }
    assert_eq!(run_ok(&sandbox, &["stop"]), "nothing is running here\n");
    start_loop(&sandbox, &[]);
    run_ok(&sandbox, &["loop", "cancel"]);
    let states = sandbox.run_json(&["runs"]);
    let states: Vec<&str> =
        states["runs"].as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["cancelled"; 3]);
    assert!(open_questions(&sandbox).is_empty());
}

#[test]
fn a_loop_without_its_state_file_is_stopped_and_can_be_ended() {
    let sandbox = new_project();
    let loop_id = start_loop(&sandbox, &[]);
    std::fs::remove_file(sandbox.path_of(STATE_FILE)).unwrap();
    assert_eq!(only_run(&sandbox)["state"], "stopped");
    let error_text = run_refused(&sandbox, &["resume", &loop_id]);
    assert!(error_text.contains(&format!("tribunal stop {loop_id}")), "{error_text}");
    assert_eq!(run_ok(&sandbox, &["stop", &loop_id]), format!("run {loop_id} has finished: cancelled\n"));
    assert_eq!(sandbox.run_json(&["loop", "status"])["loops"][0]["let_go"], "person");
}

#[test]
fn a_loop_is_discarded_and_restored_but_not_while_it_holds_its_session() {
    let sandbox = new_project();
    let loop_id = start_loop(&sandbox, &["--promise", "DONE"]);
    let error_text = run_refused(&sandbox, &["discard", &loop_id]);
    assert!(error_text.contains(&format!("tribunal stop {loop_id}")), "{error_text}");
    assert!(stop_refusal(&sandbox, &stop_input("s1", "")).is_some(), "it is still held");
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", BLOCKED_MESSAGE)), None);
    run_ok(&sandbox, &["discard", &loop_id]);
    assert!(sandbox.run_ids().is_empty() && open_questions(&sandbox).is_empty());
    let restored_text = run_ok(&sandbox, &["discard", "--restore", &loop_id]);
    assert!(!restored_text.contains("tribunal resume"), "{restored_text}");
    assert_eq!((sandbox.run_ids(), open_questions(&sandbox)), (vec![loop_id.clone()], vec![format!("{loop_id}.D1")]));
}

#[test]
fn commands_for_findings_and_agents_say_that_a_loop_has_none() {
    let sandbox = Sandbox::with_script("tasks:\n  - {task: \"*\", steps: [{findings: []}]}\n");
    let review_output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(review_output.exit_code, Some(0), "{}", review_output.stderr);
    let review_id = sandbox.last_run_id();
    let loop_id = start_loop(&sandbox, &[]);
    assert_eq!(
        run_ok(&sandbox, &["findings", &loop_id]),
        format!("loop {loop_id} has no findings; see its log: `tribunal log {loop_id}`\n")
    );
    assert_eq!(sandbox.run_json(&["findings", &loop_id])["findings"], json!([]));
    assert!(run_refused(&sandbox, &["say", &loop_id, "hurry"]).contains("is a loop, which has no agents"));
    // Without a name these commands mean the last run that can have findings or changes.
    assert_eq!(sandbox.run_json(&["findings"])["run"], review_id.as_str());
    assert_eq!(sandbox.run_json(&["diff"])["run"], review_id.as_str());
    assert_eq!(sandbox.run_events(&["log"])[0]["run"], loop_id.as_str());
    let table = run_ok(&sandbox, &["runs"]);
    assert!(table.contains("review of plan.md") && table.contains("loop of Make it work"), "{table}");
    for export_flag in ["--markdown", "--pr-comment", "--sarif", "--junit", "--github"] {
        run_ok(&sandbox, &["findings", &loop_id, export_flag]);
    }
}
