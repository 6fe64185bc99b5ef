//! Sessions of the user: answers of hooks, loops, and state files of other tools. No real client is started.

use std::{io::Write, process::Stdio};

use serde_json::{Value, json};

use crate::common::{CommandOutput, Sandbox, hide_times};

pub const STATE_FILE: &str = ".claude/review-loop-state.yaml";
const RALPH_STATE_FILE: &str = ".claude/ralph-loop.local.md";
pub const DONE_PROMISE: &str = "<promise>DONE</promise>";

/// Builds the input that a client sends when a session wants to stop.
pub fn stop_input(session: &str, last_message: &str) -> Value {
    json!({ "session_id": session, "hook_event_name": "Stop", "stop_hook_active": true, "last_assistant_message": last_message })
}

pub fn run_hook(sandbox: &Sandbox, hook_args: &[&str], stdin_bytes: &[u8]) -> CommandOutput {
    let mut command = sandbox.tribunal_command(&[&["hook"], hook_args].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A hook that has already answered may have closed its stdin.
    let _ = child.stdin.take().unwrap().write_all(stdin_bytes);
    CommandOutput::from_output(child.wait_with_output().unwrap())
}

/// Runs a hook and returns its answer and stderr. A hook always answers, with exit code 0.
pub fn hook_answer(sandbox: &Sandbox, event: &str, hook_input: &Value) -> (Value, String) {
    let output = run_hook(sandbox, &[event], hook_input.to_string().as_bytes());
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let answer_json =
        serde_json::from_str(&output.stdout).unwrap_or_else(|parse_error| panic!("{parse_error}: {:?}", output.stdout));
    (answer_json, output.stderr)
}

/// Returns what the model reads if the stop was refused.
pub fn stop_refusal(sandbox: &Sandbox, hook_input: &Value) -> Option<String> {
    let (stop_answer, _) = hook_answer(sandbox, "stop", hook_input);
    (stop_answer["decision"] == "block").then(|| stop_answer["reason"].as_str().unwrap().to_string())
}

/// A directory with settings, so that no parent directory is taken for the project.
pub fn new_project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_file("tribunal.yaml", "tier: 1\n");
    sandbox
}

/// Starts a loop and returns its id.
pub fn start_loop(sandbox: &Sandbox, more_args: &[&str]) -> String {
    let start_args = [&["loop", "run", "--in-session", "-p", "Make it work", "--session", "s1"], more_args].concat();
    let document = sandbox.run_json(&start_args);
    document["loops"][0]["id"].as_str().unwrap_or_else(|| panic!("{document}")).to_string()
}

fn listed_loops(sandbox: &Sandbox) -> Value {
    sandbox.run_json(&["loop", "status"])["loops"].clone()
}

#[test]
fn a_hook_always_answers_json_with_exit_code_0() {
    let sandbox = new_project();
    let events = [
        "stop",
        "subagent-stop",
        "session-start",
        "session-end",
        "pre-tool-use",
        "post-tool-use",
        "pre-compact",
        "user-prompt-submit",
    ];
    for event in events {
        for stdin_text in ["", "{", "[]", "null", "\u{0}", "{\"session_id\": 7, \"tool_input\": []}"] {
            for client in ["claude-code", "codex", "copilot", "gemini"] {
                let output = run_hook(&sandbox, &[event, "--client", client], stdin_text.as_bytes());
                assert_eq!(
                    (output.exit_code, output.stdout.as_str()),
                    (Some(0), "{}\n"),
                    "{event} {client} {stdin_text:?} {}",
                    output.stderr
                );
            }
        }
    }
    for hook_args in
        [&["nonsense"][..], &[], &["stop", "--client", "other"], &["stop", "--client"], &["stop", "--what"]]
    {
        let output = run_hook(&sandbox, hook_args, b"{}");
        assert_eq!((output.exit_code, output.stdout.as_str()), (Some(0), "{}\n"), "{hook_args:?}");
        assert!(output.stderr.starts_with("tribunal hook: "), "{hook_args:?}: {}", output.stderr);
    }
    assert!(!sandbox.path_of(".tribunal").exists(), "a hook that holds no session leaves nothing behind");
}

#[test]
fn a_loop_refuses_to_stop_until_the_session_makes_its_promise() {
    let sandbox = new_project();
    let loop_id = start_loop(&sandbox, &["--promise", "DONE", "--max-iterations", "5"]);
    let reason = stop_refusal(&sandbox, &stop_input("s1", "I am done.")).unwrap();
    insta::assert_snapshot!(reason.replace(&loop_id, "[loop]"), @"
    Make it work

    Tribunal loop [loop]: sent back 1 of at most 5.
    When it is done, and only then, say exactly: <promise>DONE</promise>
    If only the user can continue, say so and you may stop: <review-blocked>REASON</review-blocked>
    ");
    assert!(sandbox.read_file(STATE_FILE).contains("current_round: 1\n"));
    assert!(stop_refusal(&sandbox, &stop_input("s1", "<promise>OTHER</promise>")).is_some(), "of another loop");
    assert!(stop_refusal(&sandbox, &stop_input("s1", "")).is_some(), "only tools were called");
    assert!(stop_refusal(&sandbox, &stop_input("s2", "")).is_none(), "another session is free");
    assert!(sandbox.read_file(STATE_FILE).contains("current_round: 3\n"), "and counts for nothing");
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", &format!("Well: {DONE_PROMISE} at last."))), None);
    assert!(
        !sandbox.path_of(STATE_FILE).exists()
            && sandbox.path_of(".tribunal/sessions/1-review-loop-state.yaml").exists()
    );
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", "again")), None);
    assert_eq!(listed_loops(&sandbox)[0]["let_go"], "complete");
}

#[test]
fn the_log_of_a_loop_shows_its_session_events() {
    let sandbox = new_project();
    let loop_id = start_loop(&sandbox, &["--promise", "DONE", "--max-iterations", "5"]);
    let status_text = sandbox.run_tribunal(&["loop", "status"]).stdout;
    assert!(status_text.contains(DONE_PROMISE) && status_text.contains("Make it work"), "{status_text}");
    stop_refusal(&sandbox, &stop_input("s1", "not yet")).unwrap();
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", DONE_PROMISE)), None);
    let log_lines = format!(
        "loop of Make it work · run {loop_id} · tribunal {}\n  session: attached to session s1, which can be sent back up to 5 times\n  \
         session: tried to stop and was sent back (1 so far)\n  session: released: it is done\n\n\
         resolved: the session says that it is done\n  sent back 1 time, 0 tools used · [time]\n  \
         next: tribunal loop status {loop_id}\n",
        env!("CARGO_PKG_VERSION")
    );
    for log_args in [&["log", &loop_id][..], &["log", &loop_id, "--follow"]] {
        let output = sandbox.run_tribunal(log_args);
        assert_eq!((output.exit_code, hide_times(&output.stdout)), (Some(0), log_lines.clone()), "{}", output.stderr);
    }
    let entries = sandbox.run_events(&["log", &loop_id]);
    let entry_kinds: Vec<&str> = entries.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(entry_kinds, ["run_started", "session", "session", "session", "run_finished"]);
}

#[test]
fn following_a_loop_ends_when_its_state_file_is_gone() {
    let sandbox = new_project();
    let loop_id = start_loop(&sandbox, &[]);
    std::fs::remove_file(sandbox.path_of(STATE_FILE)).unwrap();
    let output = sandbox.run_tribunal(&["log", &loop_id, "--follow"]);
    let expected_text = format!("warning: {loop_id} is no longer active: its state file is missing or unreadable\n");
    assert_eq!((output.exit_code, output.stderr), (Some(0), expected_text));
}

#[test]
fn a_loop_is_always_finite() {
    let sandbox = new_project();
    for wrong_limit in ["0", "-1", "1001", "infinite"] {
        let output = sandbox.run_tribunal(&[
            "loop",
            "run",
            "--in-session",
            "-p",
            "x",
            "--session",
            "s1",
            "--max-iterations",
            wrong_limit,
        ]);
        assert_eq!(output.exit_code, Some(2), "{wrong_limit}: {}", output.stdout);
    }
    let loop_id = start_loop(&sandbox, &["--max-iterations", "2"]);
    let stop_after = |refusal_count: u32| {
        let mut hook_input = stop_input("s1", DONE_PROMISE);
        hook_input["stop_hook_active"] = (refusal_count > 0).into();
        hook_input
    };
    assert!(stop_refusal(&sandbox, &stop_after(0)).is_some() && stop_refusal(&sandbox, &stop_after(0)).is_some());
    let (stop_answer, _) = hook_answer(&sandbox, "stop", &stop_after(0));
    let message = stop_answer["systemMessage"].as_str().unwrap();
    assert!(message.contains("2 of 2") && message.contains(&format!("tribunal decisions {loop_id}.D1")), "{message}");
    let output = sandbox.run_tribunal(&["decisions", "D1", "more"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(stop_refusal(&sandbox, &stop_after(0)).is_some(), "it goes on");
    let output = sandbox.run_tribunal(&["loop", "cancel"]);
    assert!(output.stdout.contains("session released"), "{}", output.stdout);
    assert_eq!(stop_refusal(&sandbox, &stop_after(0)), None);
    assert_eq!(listed_loops(&sandbox)[0]["let_go"], "person");
}

/// Claude Code ends a turn after 8 refusals in a row, with an empty result.
#[test]
fn a_session_is_released_before_its_client_ends_the_turn() {
    let sandbox = new_project();
    start_loop(&sandbox, &["--promise", "DONE"]);
    let mut first_stop = stop_input("s1", "no");
    first_stop["stop_hook_active"] = false.into();
    assert!(stop_refusal(&sandbox, &first_stop).is_some());
    for _ in 2..=7 {
        assert!(stop_refusal(&sandbox, &stop_input("s1", "no")).is_some());
    }
    let (stop_answer, _) = hook_answer(&sandbox, "stop", &stop_input("s1", "no"));
    assert!(stop_answer["systemMessage"].as_str().unwrap().contains("7 refusals in a row"), "{stop_answer}");
    let questions = sandbox.run_tribunal(&["decisions"]).stdout;
    assert!(questions.contains("Resume the loop?"), "{questions}");
}

#[test]
fn tool_uses_and_prompts_reset_the_count_of_refusals_in_a_row() {
    let sandbox = new_project();
    start_loop(&sandbox, &["--promise", "DONE", "--max-iterations", "30"]);
    for round in 0..20 {
        assert!(stop_refusal(&sandbox, &stop_input("s1", "no")).is_some(), "{round}");
        if round % 5 == 4 {
            let event = if round % 2 == 0 { "post-tool-use" } else { "user-prompt-submit" };
            hook_answer(&sandbox, event, &json!({ "session_id": "s1", "tool_name": "Bash", "prompt": "go on" }));
        }
    }
    assert_eq!(listed_loops(&sandbox)[0]["refusals"], 20);
}

#[test]
fn a_session_that_is_blocked_or_out_of_time_may_stop_and_the_user_is_asked() {
    for (last_message, release_reason) in [
        ("<review-blocked>there is no key</review-blocked>", "blocked"),
        ("<review-timeout>five hours</review-timeout>", "timed_out"),
    ] {
        let sandbox = new_project();
        start_loop(&sandbox, &["--promise", "DONE"]);
        assert_eq!(stop_refusal(&sandbox, &stop_input("s1", last_message)), None);
        assert_eq!(listed_loops(&sandbox)[0]["let_go"], release_reason);
        assert_eq!(sandbox.run_json(&["decisions"])["decisions"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn the_next_session_that_gets_a_prompt_takes_an_unbound_loop() {
    let sandbox = new_project();
    let output = sandbox.run_tribunal(&["loop", "run", "--in-session", "-p", "x", "--promise", "DONE"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stdout);
    assert!(output.stderr.contains("not run inside an agent") && output.stderr.contains("--next"), "{}", output.stderr);
    assert_eq!(
        sandbox.run_tribunal(&["loop", "run", "--in-session", "-p", "x", "--promise", "DONE", "--next"]).exit_code,
        Some(0)
    );
    assert_eq!(stop_refusal(&sandbox, &stop_input("s8", "")), None, "who only stops has said nothing");
    let (prompt_answer, _) =
        hook_answer(&sandbox, "user-prompt-submit", &json!({ "session_id": "s7", "prompt": "hello" }));
    assert_eq!(stop_refusal(&sandbox, &stop_input("s8", "")), None);
    assert!(stop_refusal(&sandbox, &stop_input("s7", "")).is_some());
    assert_eq!(prompt_answer["hookSpecificOutput"]["hookEventName"], "UserPromptSubmit", "{prompt_answer}");
    assert_eq!(listed_loops(&sandbox)[0]["session"], "s7");
}

#[test]
fn there_is_one_loop_at_a_time_and_an_unreadable_one_is_replaced() {
    let sandbox = new_project();
    let loop_id = start_loop(&sandbox, &[]);
    let output = sandbox.run_tribunal(&["loop", "run", "--in-session", "-p", "y", "--session", "s2"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stdout);
    assert!(output.stderr.contains(&format!("tribunal loop cancel {loop_id}")), "{}", output.stderr);
    sandbox.write_file(STATE_FILE, "no state at all: [");
    assert_eq!(sandbox.run_tribunal(&["loop", "run", "--in-session", "-p", "y", "--session", "s2"]).exit_code, Some(0));
    assert!(stop_refusal(&sandbox, &stop_input("s2", "")).is_some());
}

/// Edits of the user in the state file take effect.
#[test]
fn the_state_file_may_be_edited_and_deleted() {
    let sandbox = new_project();
    start_loop(&sandbox, &["--promise", "DONE", "--max-iterations", "9"]);
    let edited_state = sandbox
        .read_file(STATE_FILE)
        .replace("max_rounds: 9", "max_rounds: 2")
        .replace("completion_promise: \"DONE\"", "completion_promise: 'all *[good]*'")
        .replace("\nMake it work\n", "\nMake it *good*\n\n---\nor leave it\n");
    sandbox.write_file(STATE_FILE, &edited_state);
    let reason = stop_refusal(&sandbox, &stop_input("s1", DONE_PROMISE)).unwrap();
    assert!(reason.starts_with("Make it *good*\n\n---\nor leave it\n\nTribunal loop"), "{reason}");
    assert!(reason.contains("sent back 1 of at most 2") && reason.contains("<promise>all *[good]*</promise>"));
    sandbox.write_file(STATE_FILE, &sandbox.read_file(STATE_FILE).replace("active: true", "active: false"));
    let (stop_answer, hook_stderr) = hook_answer(&sandbox, "stop", &stop_input("s1", ""));
    assert_eq!(stop_answer["decision"], Value::Null);
    assert!(
        hook_stderr.contains("`active` is false; the session may stop (kept as .tribunal/sessions/1-"),
        "{hook_stderr}"
    );
    assert_eq!(listed_loops(&sandbox)[0]["let_go"], "person");

    start_loop(&sandbox, &[]);
    std::fs::remove_file(sandbox.path_of(STATE_FILE)).unwrap();
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", "")), None);
    let status = sandbox.run_tribunal(&["loop", "status"]).stdout;
    assert!(status.contains("released: its state file is missing or unreadable"), "{status}");
}

#[test]
fn an_unreadable_state_file_is_moved_aside_and_holds_no_session() {
    for broken_state in
        ["", "---\nactive: true\n", "---\nactive: [\n---\n", "\u{0}\u{1}", "---\nactive: true\nmax_rounds: lots\n---\n"]
    {
        let sandbox = new_project();
        start_loop(&sandbox, &[]);
        sandbox.write_file(STATE_FILE, broken_state);
        let (stop_answer, hook_stderr) = hook_answer(&sandbox, "stop", &stop_input("s1", ""));
        assert!(
            stop_answer["systemMessage"].as_str().unwrap().contains("the session may stop"),
            "{broken_state:?}: {stop_answer}"
        );
        assert!(
            hook_stderr.contains("the session may stop (kept as .tribunal/sessions/1-"),
            "{broken_state:?}: {hook_stderr}"
        );
        assert_eq!(sandbox.read_file(".tribunal/sessions/1-review-loop-state.yaml"), broken_state);
        assert!(!sandbox.path_of(STATE_FILE).exists());
    }
    let sandbox = new_project();
    start_loop(&sandbox, &[]);
    sandbox.write_file(".tribunal/journal.db", &"garbage ".repeat(2000));
    let (stop_answer, hook_stderr) = hook_answer(&sandbox, "stop", &stop_input("s1", ""));
    assert_eq!(stop_answer["decision"], Value::Null);
    assert!(hook_stderr.contains("could not read the journal, so the session may stop"), "{hook_stderr}");
}

#[test]
fn a_stale_state_expires_and_is_reported() {
    let sandbox = new_project();
    sandbox.write_file(
        STATE_FILE,
        "---\nactive: true\nsession_id: s1\ncurrent_round: 1\nmax_rounds: 3\npending_count: 2\n\
         last_updated: \"2026-01-01T00:00:00Z\"\n---\nx\n",
    );
    let (start_answer, hook_stderr) =
        hook_answer(&sandbox, "session-start", &json!({ "session_id": "s1", "source": "resume" }));
    let message = start_answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(
        message.contains("no activity for") && hook_stderr.contains("the session may stop"),
        "{message} {hook_stderr}"
    );
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", "")), None);
}

/// A state file that a workflow wrote and no journal knows is judged by its own counts.
#[test]
fn a_state_file_of_a_workflow_is_understood() {
    let sandbox = new_project();
    let state_text = "# a\n# b\n# c\n---\nactive: true\ncurrent_round: 1\nmax_rounds: 3\npending_count: 2\n\
                completion_promise: \"ALL_ISSUES_RESOLVED\"\n---\n# Original Prompt (again)\nFix it.\n";
    sandbox.write_file(STATE_FILE, state_text);
    let done_message = "<review-complete>ALL_ISSUES_RESOLVED</review-complete>";
    let reason = stop_refusal(&sandbox, &stop_input("s1", done_message)).unwrap();
    assert!(
        reason.starts_with("Fix it.\n\nTribunal review: sent back 2 of at most 3. You said that it is done"),
        "{reason}"
    );
    assert!(reason.contains("2 findings still open"), "{reason}");
    let state_now = sandbox.read_file(STATE_FILE);
    assert!(state_now.starts_with("# a\n# b\n# c\n---\nactive: true\ncurrent_round: 2\n"), "{state_now}");
    assert!(state_now.contains("session_id: \"s1\"\n"), "{state_now}");
    sandbox.write_file(STATE_FILE, &state_now.replace("pending_count: 2", "pending_count: 0"));
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", done_message)), None);
}

fn ralph_state(prompt: &str, promise: &str) -> String {
    format!(
        "---\nactive: true\niteration: 1\nmax_iterations: 5\ncompletion_promise: {promise}\n\
         started_at: \"{}\"\n---\n\n{prompt}\n",
        jiff::Timestamp::now()
    )
}

/// A loop of another tool continues, with our hook in place of the tool's own.
#[test]
fn a_ralph_loop_is_understood() {
    let sandbox = new_project();
    let prompt = "Fix *.rs and [all] of it\n---\nthen stop";
    sandbox.write_file(RALPH_STATE_FILE, &ralph_state(prompt, "\"all [x] * done\""));
    let reason = stop_refusal(&sandbox, &stop_input("s1", "<promise>all y done</promise>")).unwrap();
    assert!(reason.starts_with(&format!("{prompt}\n\n")), "{reason}");
    assert!(
        sandbox.read_file(RALPH_STATE_FILE).contains("iteration: 2\n")
            && sandbox.read_file(RALPH_STATE_FILE).contains("session_id: \"s1\"")
    );
    assert_eq!(stop_refusal(&sandbox, &stop_input("s2", "")), None, "it is the first one's now");
    assert_eq!(stop_refusal(&sandbox, &stop_input("", "")), None, "its owner is unknown");
    assert!(stop_refusal(&sandbox, &stop_input("s1", "as `<promise>all [x] * done</promise>` said")).is_some());
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", "so:\n<promise>\n all [x]  * done\n</promise>\nbye")), None);
    assert!(!sandbox.path_of(RALPH_STATE_FILE).exists());

    sandbox.write_file(RALPH_STATE_FILE, &ralph_state("go", "null").replace("max_iterations: 5", "max_iterations: 0"));
    let reason = stop_refusal(&sandbox, &stop_input("s1", "<promise>null</promise>")).unwrap();
    assert!(reason.contains("sent back 2 of at most 50"), "what was without end has one: {reason}");
}

#[test]
fn without_a_last_message_the_end_of_the_transcript_counts() {
    let sandbox = new_project();
    let message_with = |message_id: &str, content_block: Value| json!({"id": message_id, "role": "assistant", "content": [content_block]});
    let assistant_line = |message_id: &str, content_block: Value| {
        let message = message_with(message_id, content_block);
        json!({"type": "assistant", "message": message})
    };
    let text_block = |text: &str| json!({"type": "text", "text": text});
    let tool_block = json!({"type": "tool_use", "name": "Bash", "input": {}});
    let promise_line = assistant_line("m1", text_block(DONE_PROMISE));
    for (case_name, transcript_lines, may_stop) in [
        ("the promise", vec![promise_line.clone()], true),
        ("only a tool call comes last", vec![promise_line.clone(), assistant_line("m2", tool_block)], false),
        (
            "of a sub-agent",
            vec![
                assistant_line("m1", text_block("no")),
                json!({"type": "assistant", "isSidechain": true,
            "message": {"id": "m2", "role": "assistant", "content": [text_block(DONE_PROMISE)]}}),
            ],
            false,
        ),
        ("nothing", vec![json!({"type": "user", "message": {"role": "user", "content": DONE_PROMISE}})], false),
    ] {
        sandbox.write_file(RALPH_STATE_FILE, &ralph_state("go", "DONE"));
        let json_lines: Vec<String> = transcript_lines.iter().map(Value::to_string).collect();
        sandbox.write_file("t.jsonl", &(json_lines.join("\n") + "\n{\"type\":\"assistant\",\"mess"));
        let hook_input = json!({ "session_id": "s1", "transcript_path": sandbox.path_of("t.jsonl") });
        assert_eq!(stop_refusal(&sandbox, &hook_input).is_none(), may_stop, "{case_name}");
        let _ = std::fs::remove_file(sandbox.path_of(RALPH_STATE_FILE));
    }
    sandbox.write_file(RALPH_STATE_FILE, &ralph_state("go", "DONE"));
    let (stop_answer, hook_stderr) =
        hook_answer(&sandbox, "stop", &json!({ "session_id": "s1", "transcript_path": "/nowhere.jsonl" }));
    assert_eq!(stop_answer["decision"], Value::Null, "who cannot be heard is not held: {hook_stderr}");
    assert!(hook_stderr.contains("/nowhere.jsonl cannot be read"), "{hook_stderr}");
}

#[test]
fn sessions_may_not_write_files_of_tribunal_and_bound_ones_have_more_limits() {
    let sandbox = new_project();
    let denial_reason = |session_id: &str, tool_name: &str, tool_input: Value| {
        let hook_input = json!({ "session_id": session_id, "cwd": sandbox.root_dir(), "tool_name": tool_name, "tool_input": tool_input });
        let (tool_answer_json, _) = hook_answer(&sandbox, "pre-tool-use", &hook_input);
        let hook_output = &tool_answer_json["hookSpecificOutput"];
        (hook_output["permissionDecision"] == "deny").then(|| hook_output["permissionDecisionReason"].to_string())
    };
    assert_eq!(denial_reason("s1", "Write", json!({ "file_path": ".tribunal/x" })), None, "nothing is Tribunal's yet");
    start_loop(&sandbox, &[]);
    for session_id in ["s1", "s2"] {
        assert!(denial_reason(session_id, "Write", json!({ "file_path": ".tribunal/journal.db" })).is_some());
        assert!(denial_reason(session_id, "Bash", json!({ "command": "rm .claude/review-loop-state.yaml" })).is_some());
        assert_eq!(denial_reason(session_id, "Write", json!({ "file_path": "src/main.rs" })), None);
    }
    let reset_command = json!({ "command": "git reset --hard HEAD~3" });
    assert!(denial_reason("s1", "Bash", reset_command.clone()).unwrap().contains("uncommitted"));
    assert_eq!(denial_reason("s2", "Bash", reset_command), None, "a session without a task is not guarded");
    assert!(denial_reason("s1", "Edit", json!({ "file_path": "/etc/hosts" })).is_some());
    let status_text =
        sandbox.run_tribunal(&["loop", "status", listed_loops(&sandbox)[0]["id"].as_str().unwrap()]).stdout;
    assert!(status_text.contains("not allowed to use Bash: Refused: `git reset --hard`"), "{status_text}");
}

/// A refusal that cannot be counted in the file is counted in the journal; otherwise the loop could run forever.
#[test]
fn limits_hold_even_if_a_counter_cannot_be_written() {
    let sandbox = new_project();
    start_loop(&sandbox, &["--max-iterations", "2"]);
    // This edit makes the file impossible to update, so the journal has to count.
    sandbox.write_file(
        STATE_FILE,
        &sandbox.read_file(STATE_FILE).replace("last_updated: \"", "last_updated: [x]\nformer: \""),
    );
    assert!(
        stop_refusal(&sandbox, &stop_input("s1", "")).is_some()
            && stop_refusal(&sandbox, &stop_input("s1", "")).is_some()
    );
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", "")), None);
}

#[test]
fn state_of_an_outer_project_and_pipes_hold_no_session() {
    let sandbox = new_project();
    sandbox.write_file("inner/tribunal.yaml", "tier: 1\n");
    start_loop(&sandbox, &[]);
    let mut stop_inside = stop_input("s1", "");
    stop_inside["cwd"] = json!(sandbox.path_of("inner"));
    assert_eq!(stop_refusal(&sandbox, &stop_inside), None, "another project");
    std::fs::create_dir_all(sandbox.path_of("src/deep")).unwrap();
    stop_inside["cwd"] = json!(sandbox.path_of("src/deep"));
    assert!(stop_refusal(&sandbox, &stop_inside).is_some(), "the same one");

    let sandbox = new_project();
    for file_name in [STATE_FILE, "t.jsonl"] {
        std::fs::create_dir_all(sandbox.path_of(".claude")).unwrap();
        let mkfifo_status = std::process::Command::new("mkfifo").arg(sandbox.path_of("pipe")).status().unwrap();
        assert!(mkfifo_status.success());
        std::os::unix::fs::symlink(sandbox.path_of("pipe"), sandbox.path_of(file_name)).unwrap();
        let hook_input = json!({ "session_id": "s1", "transcript_path": sandbox.path_of("t.jsonl") });
        hook_answer(&sandbox, "stop", &hook_input);
        std::fs::remove_file(sandbox.path_of("pipe")).unwrap();
        sandbox.write_file(RALPH_STATE_FILE, &ralph_state("go", "DONE"));
    }
}

#[test]
fn a_loop_of_another_tool_is_released_before_its_client_ends_the_turn() {
    let sandbox = new_project();
    sandbox.write_file(RALPH_STATE_FILE, &ralph_state("go", "DONE").replace("max_iterations: 5", "max_iterations: 40"));
    let refusals = (0..20).take_while(|_| stop_refusal(&sandbox, &stop_input("s1", "no")).is_some()).count();
    assert_eq!(refusals, 7);
}

#[test]
fn prompts_and_promises_that_cannot_work_are_refused() {
    let sandbox = new_project();
    for promise in ["", " ", "<promise>DONE</promise>", "null", "`DONE`"] {
        let output =
            sandbox.run_tribunal(&["loop", "run", "--in-session", "-p", "x", "--session", "s1", "--promise", promise]);
        assert_eq!(output.exit_code, Some(2), "{promise:?}");
        assert!(output.stderr.contains("cannot be used as a promise"), "{promise:?}: {}", output.stderr);
    }
    let long_prompt = "x".repeat(70_000);
    let output = sandbox.run_tribunal(&["loop", "run", "--in-session", "-p", &long_prompt, "--session", "s1"]);
    assert!(
        output.exit_code == Some(2) && output.stderr.contains("the prompt is longer than 64 KB"),
        "{}",
        output.stderr
    );
    start_loop(&sandbox, &[]);
    let output = sandbox.run_tribunal(&["loop", "cancel", "nope"]);
    assert!(output.exit_code == Some(2) && output.stderr.contains("named `nope`"), "{}", output.stderr);
}

#[test]
fn of_several_loops_started_at_once_only_one_starts() {
    let sandbox = new_project();
    let spawn_loop = |session_id: &str| {
        let mut command =
            sandbox.tribunal_command(&["loop", "run", "--in-session", "-p", "x", "--session", session_id]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = ["a", "b", "c"].map(spawn_loop).into();
    let exit_codes: Vec<_> =
        children.into_iter().map(|child| child.wait_with_output().unwrap().status.code()).collect();
    assert_eq!(exit_codes.iter().filter(|code| **code == Some(0)).count(), 1, "{exit_codes:?}");
}

const STEP_WITH_HOOKS: &str = "---\nstep: 8a\nhooks:\n  SessionStart:\n    - command: echo begun >> trace; echo mind the gap\n      \
                    once: true\n  \
                    PreToolUse:\n    - command: echo \"pre $TOOL_NAME $TOOL_ARGS\" >> trace\n  PostToolUse:\n    \
                    - command: echo post >> trace; exit 3\n  Stop:\n    - command: echo stop >> trace\n---\n# Step\n";

fn tool_answer(sandbox: &Sandbox, event: &str, tool_input: Value) -> Value {
    let hook_input =
        json!({ "session_id": "s1", "cwd": sandbox.root_dir(), "tool_name": "Bash", "tool_input": tool_input });
    hook_answer(sandbox, event, &hook_input).0
}

#[test]
fn hooks_of_a_step_run_in_their_order_and_only_if_they_are_trusted() {
    let sandbox = new_project().without_trust();
    sandbox.write_file("step.md", STEP_WITH_HOOKS);
    let start_args = ["loop", "run", "--in-session", "-p", "x", "--session", "s1", "--step", "step.md"];
    let output = sandbox.run_tribunal(&start_args);
    assert_eq!(output.exit_code, Some(2), "{}", output.stdout);
    assert!(
        output.stderr.contains("have not trusted") && output.stderr.contains("trust --step step.md"),
        "{}",
        output.stderr
    );
    assert_eq!(sandbox.run_tribunal(&["trust", "--yes", "--step", "step.md"]).exit_code, Some(0));
    assert_eq!(sandbox.run_tribunal(&start_args).exit_code, Some(0));
    // Text of an agent reaches the hook through the environment and is never part of the command.
    tool_answer(&sandbox, "pre-tool-use", json!({ "command": "ls; $(touch hacked) \"x\"" }));
    tool_answer(&sandbox, "pre-tool-use", json!({ "command": "true" }));
    tool_answer(&sandbox, "post-tool-use", json!({ "command": "true" }));
    assert!(stop_refusal(&sandbox, &stop_input("s1", "")).is_some());
    let trace = sandbox.read_file("trace");
    insta::assert_snapshot!(trace, @r#"
    begun
    pre Bash {"command":"ls; $(touch hacked) \"x\""}
    pre Bash {"command":"true"}
    post
    stop
    "#);
    assert!(!sandbox.path_of("hacked").exists());
    let status_text =
        sandbox.run_tribunal(&["loop", "status", listed_loops(&sandbox)[0]["id"].as_str().unwrap()]).stdout;
    assert!(status_text.contains("exit code 3") && status_text.contains("mind the gap"), "{status_text}");
    // A changed command does not run until it is trusted again.
    sandbox.write_file("step.md", &STEP_WITH_HOOKS.replace("echo stop", "touch hacked; echo stop"));
    assert!(stop_refusal(&sandbox, &stop_input("s1", "")).is_some());
    assert!(!sandbox.path_of("hacked").exists() && sandbox.read_file("trace") == trace);
}

#[test]
fn a_critical_hook_that_fails_ends_the_step_and_asks_the_user() {
    let sandbox = new_project();
    sandbox.write_file("step.md", "---\nhooks:\n  PreToolUse:\n    - {command: exit 4, critical: true}\n---\n");
    assert_eq!(sandbox.run_tribunal(&["trust", "--yes", "--step", "step.md"]).exit_code, Some(0));
    start_loop(&sandbox, &["--step", "step.md"]);
    let denied_answer = tool_answer(&sandbox, "pre-tool-use", json!({ "command": "true" }));
    let reason = denied_answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("the critical hook `exit 4` failed: exit code 4"), "{reason}");
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", "")), None);
    assert_eq!(sandbox.run_json(&["decisions"])["decisions"].as_array().unwrap().len(), 1);
}
