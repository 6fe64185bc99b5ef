//! Sessions of the user: answers of hooks, loops, and state files of other tools. No real client is started.

use std::{io::Write, process::Stdio};

use serde_json::{Value, json};

use crate::common::{Ran, Sandbox};

pub const OURS: &str = ".claude/review-loop-state.yaml";
const THEIRS: &str = ".claude/ralph-loop.local.md";
const DONE: &str = "<promise>DONE</promise>";

/// Builds the input that a client sends when a session wants to stop.
pub fn stops(session: &str, last: &str) -> Value {
    json!({ "session_id": session, "hook_event_name": "Stop", "stop_hook_active": true, "last_assistant_message": last })
}

pub fn hook(sandbox: &Sandbox, words: &[&str], says: &[u8]) -> Ran {
    let mut command = sandbox.command(&[&["hook"], words].concat());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A hook that has already answered may have closed its stdin.
    let _ = child.stdin.take().unwrap().write_all(says);
    Ran::of(child.wait_with_output().unwrap())
}

/// Runs a hook and returns its answer and stderr. A hook always answers, with exit code 0.
pub fn answer(sandbox: &Sandbox, event: &str, says: &Value) -> (Value, String) {
    let ran = hook(sandbox, &[event], says.to_string().as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let said = serde_json::from_str(&ran.out).unwrap_or_else(|cause| panic!("{cause}: {:?}", ran.out));
    (said, ran.err)
}

/// Returns what the model reads if the stop was refused.
pub fn refused(sandbox: &Sandbox, says: &Value) -> Option<String> {
    let (said, _) = answer(sandbox, "stop", says);
    (said["decision"] == "block").then(|| said["reason"].as_str().unwrap().to_string())
}

/// A directory with settings, so that no parent directory is taken for the project.
fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tribunal.yaml", "tier: 1\n");
    sandbox
}

/// Starts a loop and returns its id.
fn start(sandbox: &Sandbox, more: &[&str]) -> String {
    let words = [&["loop", "start", "Make it work", "--session", "s1"], more].concat();
    let document = sandbox.json(&words);
    document["loops"][0]["id"].as_str().unwrap_or_else(|| panic!("{document}")).to_string()
}

fn loops(sandbox: &Sandbox) -> Value {
    sandbox.json(&["loop", "status"])["loops"].clone()
}

#[test]
fn whatever_a_client_says_the_answer_is_json_and_the_exit_code_is_0() {
    let sandbox = project();
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
        for says in ["", "{", "[]", "null", "\u{0}", "{\"session_id\": 7, \"tool_input\": []}"] {
            for client in ["claude-code", "codex", "copilot", "gemini"] {
                let ran = hook(&sandbox, &[event, "--client", client], says.as_bytes());
                assert_eq!(
                    (ran.code, ran.out.as_str()),
                    (Some(0), "{}\n"),
                    "{event} {client} {says:?} {}",
                    ran.err
                );
            }
        }
    }
    for words in
        [&["nonsense"][..], &[], &["stop", "--client", "other"], &["stop", "--client"], &["stop", "--what"]]
    {
        let ran = hook(&sandbox, words, b"{}");
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "{}\n"), "{words:?}");
        assert!(ran.err.starts_with("tribunal hook: "), "{words:?}: {}", ran.err);
    }
    assert!(!sandbox.path(".tribunal").exists(), "a hook that holds nobody leaves nothing behind");
}

#[test]
fn a_loop_sends_its_session_back_until_it_says_that_it_is_done() {
    let sandbox = project();
    let run = start(&sandbox, &["--promise", "DONE", "--max-iterations", "5"]);
    let reason = refused(&sandbox, &stops("s1", "I am done.")).unwrap();
    insta::assert_snapshot!(reason.replace(&run, "[loop]"), @r"
    Make it work

    Tribunal loop [loop]: sent back 1 of at most 5.
    When it is done, and only if that is true, say exactly: <promise>DONE</promise>
    If only a person can go on, say so and you may stop: <review-blocked>REASON</review-blocked>
    ");
    assert!(sandbox.read(OURS).contains("current_round: 1\n"));
    assert!(refused(&sandbox, &stops("s1", "<promise>OTHER</promise>")).is_some(), "of another loop");
    assert!(refused(&sandbox, &stops("s1", "")).is_some(), "only tools were called");
    assert!(refused(&sandbox, &stops("s2", "")).is_none(), "another session is free");
    assert!(sandbox.read(OURS).contains("current_round: 3\n"), "and counts for nothing");
    assert_eq!(refused(&sandbox, &stops("s1", &format!("Well: {DONE} at last."))), None);
    assert!(
        !sandbox.path(OURS).exists() && sandbox.path(".tribunal/sessions/1-review-loop-state.yaml").exists()
    );
    assert_eq!(refused(&sandbox, &stops("s1", "again")), None);
    assert_eq!(loops(&sandbox)[0]["let_go"], "complete");
}

#[test]
fn a_loop_is_always_finite() {
    let sandbox = project();
    for wrong in ["0", "-1", "1001", "infinite"] {
        let ran = sandbox.run(&["loop", "start", "x", "--session", "s1", "--max-iterations", wrong]);
        assert_eq!(ran.code, Some(2), "{wrong}: {}", ran.out);
    }
    let run = start(&sandbox, &["--max-iterations", "2"]);
    let says = |n: u32| {
        let mut says = stops("s1", DONE);
        says["stop_hook_active"] = (n > 0).into();
        says
    };
    assert!(refused(&sandbox, &says(0)).is_some() && refused(&sandbox, &says(0)).is_some());
    let (said, _) = answer(&sandbox, "stop", &says(0));
    let told = said["systemMessage"].as_str().unwrap();
    assert!(told.contains("2 of 2") && told.contains(&format!("tribunal decisions {run}.D1")), "{told}");
    let ran = sandbox.run(&["decisions", "D1", "more"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(refused(&sandbox, &says(0)).is_some(), "it goes on");
    let ran = sandbox.run(&["loop", "cancel"]);
    assert!(ran.out.contains("the session is free"), "{}", ran.out);
    assert_eq!(refused(&sandbox, &says(0)), None);
    assert_eq!(loops(&sandbox)[0]["let_go"], "person");
}

/// Claude Code ends a turn after 8 refusals in a row, with an empty result.
#[test]
fn a_session_is_let_go_before_its_client_ends_the_turn() {
    let sandbox = project();
    start(&sandbox, &["--promise", "DONE"]);
    let mut first = stops("s1", "no");
    first["stop_hook_active"] = false.into();
    assert!(refused(&sandbox, &first).is_some());
    for _ in 2..=7 {
        assert!(refused(&sandbox, &stops("s1", "no")).is_some());
    }
    let (said, _) = answer(&sandbox, "stop", &stops("s1", "no"));
    assert!(said["systemMessage"].as_str().unwrap().contains("7 refusals in a row"), "{said}");
    let asked = sandbox.run(&["decisions"]).out;
    assert!(asked.contains("Is it to go on?"), "{asked}");
}

#[test]
fn whoever_uses_tools_or_is_spoken_to_in_between_is_not_near_the_clients_end() {
    let sandbox = project();
    start(&sandbox, &["--promise", "DONE", "--max-iterations", "30"]);
    for round in 0..20 {
        assert!(refused(&sandbox, &stops("s1", "no")).is_some(), "{round}");
        if round % 5 == 4 {
            let event = if round % 2 == 0 { "post-tool-use" } else { "user-prompt-submit" };
            answer(&sandbox, event, &json!({ "session_id": "s1", "tool_name": "Bash", "prompt": "go on" }));
        }
    }
    assert_eq!(loops(&sandbox)[0]["refusals"], 20);
}

#[test]
fn who_says_blocked_or_out_of_time_may_stop_and_a_person_is_asked() {
    for (last, word) in [
        ("<review-blocked>there is no key</review-blocked>", "blocked"),
        ("<review-timeout>five hours</review-timeout>", "timed_out"),
    ] {
        let sandbox = project();
        start(&sandbox, &["--promise", "DONE"]);
        assert_eq!(refused(&sandbox, &stops("s1", last)), None);
        assert_eq!(loops(&sandbox)[0]["let_go"], word);
        assert_eq!(sandbox.json(&["decisions"])["decisions"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn the_next_session_that_is_spoken_to_takes_a_loop_that_belongs_to_nobody() {
    let sandbox = project();
    let ran = sandbox.run(&["loop", "start", "x", "--promise", "DONE"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("not typed in one") && ran.err.contains("--next"), "{}", ran.err);
    assert_eq!(sandbox.run(&["loop", "start", "x", "--promise", "DONE", "--next"]).code, Some(0));
    assert_eq!(refused(&sandbox, &stops("s8", "")), None, "who only stops has said nothing");
    let (told, _) = answer(&sandbox, "user-prompt-submit", &json!({ "session_id": "s7", "prompt": "hello" }));
    assert_eq!(refused(&sandbox, &stops("s8", "")), None);
    assert!(refused(&sandbox, &stops("s7", "")).is_some());
    assert_eq!(told["hookSpecificOutput"]["hookEventName"], "UserPromptSubmit", "{told}");
    assert_eq!(loops(&sandbox)[0]["session"], "s7");
}

#[test]
fn one_loop_at_a_time_and_what_holds_nobody_makes_room() {
    let sandbox = project();
    let run = start(&sandbox, &[]);
    let ran = sandbox.run(&["loop", "start", "y", "--session", "s2"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains(&format!("tribunal loop cancel {run}")), "{}", ran.err);
    sandbox.write(OURS, "no state at all: [");
    assert_eq!(sandbox.run(&["loop", "start", "y", "--session", "s2"]).code, Some(0));
    assert!(refused(&sandbox, &stops("s2", "")).is_some());
}

/// Edits of the user in the state file take effect.
#[test]
fn the_state_file_may_be_edited_and_deleted() {
    let sandbox = project();
    start(&sandbox, &["--promise", "DONE", "--max-iterations", "9"]);
    let edited = sandbox
        .read(OURS)
        .replace("max_rounds: 9", "max_rounds: 2")
        .replace("completion_promise: \"DONE\"", "completion_promise: 'all *[good]*'")
        .replace("\nMake it work\n", "\nMake it *good*\n\n---\nor leave it\n");
    sandbox.write(OURS, &edited);
    let reason = refused(&sandbox, &stops("s1", DONE)).unwrap();
    assert!(reason.starts_with("Make it *good*\n\n---\nor leave it\n\nTribunal loop"), "{reason}");
    assert!(
        reason.contains("sent back 1 of at most 2") && reason.contains("<promise>all *[good]*</promise>")
    );
    sandbox.write(OURS, &sandbox.read(OURS).replace("active: true", "active: false"));
    let (said, err) = answer(&sandbox, "stop", &stops("s1", ""));
    assert_eq!(said["decision"], Value::Null);
    assert!(err.contains("it is not active; nobody is held (kept as .tribunal/sessions/1-"), "{err}");
    assert_eq!(loops(&sandbox)[0]["let_go"], "person");

    start(&sandbox, &[]);
    std::fs::remove_file(sandbox.path(OURS)).unwrap();
    assert_eq!(refused(&sandbox, &stops("s1", "")), None);
    let status = sandbox.run(&["loop", "status"]).out;
    assert!(status.contains("free: its state file is gone, or cannot be read"), "{status}");
}

#[test]
fn what_cannot_be_read_is_put_aside_and_holds_nobody() {
    for broken in [
        "",
        "---\nactive: true\n",
        "---\nactive: [\n---\n",
        "\u{0}\u{1}",
        "---\nactive: true\nmax_rounds: lots\n---\n",
    ] {
        let sandbox = project();
        start(&sandbox, &[]);
        sandbox.write(OURS, broken);
        let (said, err) = answer(&sandbox, "stop", &stops("s1", ""));
        assert!(said["systemMessage"].as_str().unwrap().contains("nobody is held"), "{broken:?}: {said}");
        assert!(err.contains("nobody is held (kept as .tribunal/sessions/1-"), "{broken:?}: {err}");
        assert_eq!(sandbox.read(".tribunal/sessions/1-review-loop-state.yaml"), broken);
        assert!(!sandbox.path(OURS).exists());
    }
    let sandbox = project();
    start(&sandbox, &[]);
    sandbox.write(".tribunal/journal.db", &"garbage ".repeat(2000));
    let (said, err) = answer(&sandbox, "stop", &stops("s1", ""));
    assert_eq!(said["decision"], Value::Null);
    assert!(err.contains("the journal cannot be read, so nobody is held"), "{err}");
}

#[test]
fn a_stale_state_expires_and_is_reported() {
    let sandbox = project();
    sandbox.write(
        OURS,
        "---\nactive: true\nsession_id: s1\ncurrent_round: 1\nmax_rounds: 3\npending_count: 2\n\
         last_updated: \"2026-01-01T00:00:00Z\"\n---\nx\n",
    );
    let (said, err) = answer(&sandbox, "session-start", &json!({ "session_id": "s1", "source": "resume" }));
    let told = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(told.contains("nothing was heard of it for") && err.contains("nobody is held"), "{told} {err}");
    assert_eq!(refused(&sandbox, &stops("s1", "")), None);
}

/// A state file that a workflow wrote and no journal knows is judged by its own counts.
#[test]
fn a_state_file_of_a_workflow_is_understood() {
    let sandbox = project();
    let text = "# a\n# b\n# c\n---\nactive: true\ncurrent_round: 1\nmax_rounds: 3\npending_count: 2\n\
                completion_promise: \"ALL_ISSUES_RESOLVED\"\n---\n# Original Prompt (again)\nFix it.\n";
    sandbox.write(OURS, text);
    let done = "<review-complete>ALL_ISSUES_RESOLVED</review-complete>";
    let reason = refused(&sandbox, &stops("s1", done)).unwrap();
    assert!(
        reason.starts_with("Fix it.\n\nTribunal review: sent back 2 of at most 3. You said that it is done"),
        "{reason}"
    );
    assert!(reason.contains("2 findings still open"), "{reason}");
    let now = sandbox.read(OURS);
    assert!(now.starts_with("# a\n# b\n# c\n---\nactive: true\ncurrent_round: 2\n"), "{now}");
    assert!(now.contains("session_id: \"s1\"\n"), "{now}");
    sandbox.write(OURS, &now.replace("pending_count: 2", "pending_count: 0"));
    assert_eq!(refused(&sandbox, &stops("s1", done)), None);
}

fn ralph(prompt: &str, promise: &str) -> String {
    format!(
        "---\nactive: true\niteration: 1\nmax_iterations: 5\ncompletion_promise: {promise}\n\
         started_at: \"{}\"\n---\n\n{prompt}\n",
        jiff::Timestamp::now()
    )
}

/// A loop of another tool continues, with our hook in place of the tool's own.
#[test]
fn a_ralph_loop_is_understood() {
    let sandbox = project();
    let prompt = "Fix *.rs and [all] of it\n---\nthen stop";
    sandbox.write(THEIRS, &ralph(prompt, "\"all [x] * done\""));
    let reason = refused(&sandbox, &stops("s1", "<promise>all y done</promise>")).unwrap();
    assert!(reason.starts_with(&format!("{prompt}\n\n")), "{reason}");
    assert!(
        sandbox.read(THEIRS).contains("iteration: 2\n")
            && sandbox.read(THEIRS).contains("session_id: \"s1\"")
    );
    assert_eq!(refused(&sandbox, &stops("s2", "")), None, "it is the first one's now");
    assert_eq!(refused(&sandbox, &stops("", "")), None, "nobody knows whose that is");
    assert!(refused(&sandbox, &stops("s1", "as `<promise>all [x] * done</promise>` said")).is_some());
    assert_eq!(refused(&sandbox, &stops("s1", "so:\n<promise>\n all [x]  * done\n</promise>\nbye")), None);
    assert!(!sandbox.path(THEIRS).exists());

    sandbox.write(THEIRS, &ralph("go", "null").replace("max_iterations: 5", "max_iterations: 0"));
    let reason = refused(&sandbox, &stops("s1", "<promise>null</promise>")).unwrap();
    assert!(reason.contains("sent back 2 of at most 50"), "what was without end has one: {reason}");
}

#[test]
fn without_the_clients_own_word_the_end_of_the_transcript_counts() {
    let sandbox = project();
    let message = |id: &str, block: Value| json!({"id": id, "role": "assistant", "content": [block]});
    let assistant = |id: &str, block: Value| json!({"type": "assistant", "message": message(id, block)});
    let text = |text: &str| json!({"type": "text", "text": text});
    let tool = json!({"type": "tool_use", "name": "Bash", "input": {}});
    let said = assistant("m1", text(DONE));
    for (name, lines, free) in [
        ("the promise", vec![said.clone()], true),
        ("only a tool call comes last", vec![said.clone(), assistant("m2", tool)], false),
        (
            "of a sub-agent",
            vec![
                assistant("m1", text("no")),
                json!({"type": "assistant", "isSidechain": true,
            "message": {"id": "m2", "role": "assistant", "content": [text(DONE)]}}),
            ],
            false,
        ),
        ("nothing", vec![json!({"type": "user", "message": {"role": "user", "content": DONE}})], false),
    ] {
        sandbox.write(THEIRS, &ralph("go", "DONE"));
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        sandbox.write("t.jsonl", &(lines.join("\n") + "\n{\"type\":\"assistant\",\"mess"));
        let says = json!({ "session_id": "s1", "transcript_path": sandbox.path("t.jsonl") });
        assert_eq!(refused(&sandbox, &says).is_none(), free, "{name}");
        let _ = std::fs::remove_file(sandbox.path(THEIRS));
    }
    sandbox.write(THEIRS, &ralph("go", "DONE"));
    let (said, err) =
        answer(&sandbox, "stop", &json!({ "session_id": "s1", "transcript_path": "/nowhere.jsonl" }));
    assert_eq!(said["decision"], Value::Null, "who cannot be heard is not held: {err}");
    assert!(err.contains("/nowhere.jsonl cannot be read"), "{err}");
}

#[test]
fn sessions_are_kept_from_what_is_tribunals_and_held_ones_from_more() {
    let sandbox = project();
    let denied = |session: &str, tool: &str, input: Value| {
        let says =
            json!({ "session_id": session, "cwd": sandbox.root(), "tool_name": tool, "tool_input": input });
        let (said, _) = answer(&sandbox, "pre-tool-use", &says);
        let out = &said["hookSpecificOutput"];
        (out["permissionDecision"] == "deny").then(|| out["permissionDecisionReason"].to_string())
    };
    assert_eq!(
        denied("s1", "Write", json!({ "file_path": ".tribunal/x" })),
        None,
        "nothing is Tribunal's yet"
    );
    start(&sandbox, &[]);
    for session in ["s1", "s2"] {
        assert!(denied(session, "Write", json!({ "file_path": ".tribunal/journal.db" })).is_some());
        assert!(denied(session, "Bash", json!({ "command": "rm .claude/review-loop-state.yaml" })).is_some());
        assert_eq!(denied(session, "Write", json!({ "file_path": "src/main.rs" })), None);
    }
    let reset = json!({ "command": "git reset --hard HEAD~3" });
    assert!(denied("s1", "Bash", reset.clone()).unwrap().contains("not committed"));
    assert_eq!(denied("s2", "Bash", reset), None, "whoever has taken nothing on does as they like");
    assert!(denied("s1", "Edit", json!({ "file_path": "/etc/hosts" })).is_some());
    let shown = sandbox.run(&["loop", "status", loops(&sandbox)[0]["id"].as_str().unwrap()]).out;
    assert!(shown.contains("was kept from Bash: Refused: `git reset --hard`"), "{shown}");
}

/// A refusal that cannot be counted in the file is counted in the journal; otherwise the loop could run forever.
#[test]
fn limits_hold_though_a_counter_cannot_be_written() {
    let sandbox = project();
    start(&sandbox, &["--max-iterations", "2"]);
    // This edit makes the file impossible to update, so the journal has to count.
    sandbox.write(OURS, &sandbox.read(OURS).replace("last_updated: \"", "last_updated: [x]\nformer: \""));
    assert!(refused(&sandbox, &stops("s1", "")).is_some() && refused(&sandbox, &stops("s1", "")).is_some());
    assert_eq!(refused(&sandbox, &stops("s1", "")), None);
}

#[test]
fn what_lies_above_a_project_or_is_no_file_holds_nobody() {
    let sandbox = project();
    sandbox.write("inner/tribunal.yaml", "tier: 1\n");
    start(&sandbox, &[]);
    let mut inside = stops("s1", "");
    inside["cwd"] = json!(sandbox.path("inner"));
    assert_eq!(refused(&sandbox, &inside), None, "another project");
    std::fs::create_dir_all(sandbox.path("src/deep")).unwrap();
    inside["cwd"] = json!(sandbox.path("src/deep"));
    assert!(refused(&sandbox, &inside).is_some(), "the same one");

    let sandbox = project();
    for name in [OURS, "t.jsonl"] {
        std::fs::create_dir_all(sandbox.path(".claude")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(sandbox.path("pipe")).status().unwrap();
        assert!(made.success());
        std::os::unix::fs::symlink(sandbox.path("pipe"), sandbox.path(name)).unwrap();
        let says = json!({ "session_id": "s1", "transcript_path": sandbox.path("t.jsonl") });
        answer(&sandbox, "stop", &says);
        std::fs::remove_file(sandbox.path("pipe")).unwrap();
        sandbox.write(THEIRS, &ralph("go", "DONE"));
    }
}

#[test]
fn a_loop_of_another_tool_is_let_go_before_its_client_ends_the_turn() {
    let sandbox = project();
    sandbox.write(THEIRS, &ralph("go", "DONE").replace("max_iterations: 5", "max_iterations: 40"));
    let refusals = (0..20).take_while(|_| refused(&sandbox, &stops("s1", "no")).is_some()).count();
    assert_eq!(refusals, 7);
}

#[test]
fn prompts_and_promises_that_cannot_work_are_refused() {
    let sandbox = project();
    for promise in ["", " ", "<promise>DONE</promise>", "null", "`DONE`"] {
        let ran = sandbox.run(&["loop", "start", "x", "--session", "s1", "--promise", promise]);
        assert_eq!(ran.code, Some(2), "{promise:?}");
        assert!(ran.err.contains("cannot be promised"), "{promise:?}: {}", ran.err);
    }
    let long = "x".repeat(70_000);
    let ran = sandbox.run(&["loop", "start", &long, "--session", "s1"]);
    assert!(ran.code == Some(2) && ran.err.contains("the prompt is longer than 64 KB"), "{}", ran.err);
    start(&sandbox, &[]);
    let ran = sandbox.run(&["loop", "cancel", "nope"]);
    assert!(ran.code == Some(2) && ran.err.contains("no session holds nope here"), "{}", ran.err);
}

#[test]
fn of_two_that_start_at_once_one_is_told() {
    let sandbox = project();
    let spawn = |session: &str| {
        let mut command = sandbox.command(&["loop", "start", "x", "--session", session]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = ["a", "b", "c"].map(spawn).into();
    let codes: Vec<_> =
        children.into_iter().map(|child| child.wait_with_output().unwrap().status.code()).collect();
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
}

const STEP: &str = "---\nstep: 8a\nhooks:\n  SessionStart:\n    - command: echo begun >> trace; echo mind the gap\n      once: true\n  \
                    PreToolUse:\n    - command: echo \"pre $TOOL_NAME $TOOL_ARGS\" >> trace\n  PostToolUse:\n    \
                    - command: echo post >> trace; exit 3\n  Stop:\n    - command: echo stop >> trace\n---\n# Step\n";

fn tool(sandbox: &Sandbox, event: &str, input: Value) -> Value {
    let says = json!({ "session_id": "s1", "cwd": sandbox.root(), "tool_name": "Bash", "tool_input": input });
    answer(sandbox, event, &says).0
}

#[test]
fn hooks_of_a_step_run_in_their_order_and_only_if_they_are_trusted() {
    let sandbox = project().wary();
    sandbox.write("step.md", STEP);
    let words = ["loop", "start", "x", "--session", "s1", "--step", "step.md"];
    let ran = sandbox.run(&words);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("have not trusted") && ran.err.contains("trust --step step.md"), "{}", ran.err);
    assert_eq!(sandbox.run(&["trust", "--yes", "--step", "step.md"]).code, Some(0));
    assert_eq!(sandbox.run(&words).code, Some(0));
    // Text of an agent reaches the hook through the environment and is never part of the command.
    tool(&sandbox, "pre-tool-use", json!({ "command": "ls; $(touch hacked) \"x\"" }));
    tool(&sandbox, "pre-tool-use", json!({ "command": "true" }));
    tool(&sandbox, "post-tool-use", json!({ "command": "true" }));
    assert!(refused(&sandbox, &stops("s1", "")).is_some());
    let trace = sandbox.read("trace");
    insta::assert_snapshot!(trace, @r#"
    begun
    pre Bash {"command":"ls; $(touch hacked) \"x\""}
    pre Bash {"command":"true"}
    post
    stop
    "#);
    assert!(!sandbox.path("hacked").exists());
    let shown = sandbox.run(&["loop", "status", loops(&sandbox)[0]["id"].as_str().unwrap()]).out;
    assert!(shown.contains("exit code 3") && shown.contains("mind the gap"), "{shown}");
    // A changed command does not run until it is trusted again.
    sandbox.write("step.md", &STEP.replace("echo stop", "touch hacked; echo stop"));
    assert!(refused(&sandbox, &stops("s1", "")).is_some());
    assert!(!sandbox.path("hacked").exists() && sandbox.read("trace") == trace);
}

#[test]
fn a_critical_hook_that_fails_ends_the_step_and_a_person_is_asked() {
    let sandbox = project();
    sandbox.write("step.md", "---\nhooks:\n  PreToolUse:\n    - {command: exit 4, critical: true}\n---\n");
    assert_eq!(sandbox.run(&["trust", "--yes", "--step", "step.md"]).code, Some(0));
    start(&sandbox, &["--step", "step.md"]);
    let said = tool(&sandbox, "pre-tool-use", json!({ "command": "true" }));
    let reason = said["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("the critical hook `exit 4` failed: exit code 4"), "{reason}");
    assert_eq!(refused(&sandbox, &stops("s1", "")), None);
    assert_eq!(sandbox.json(&["decisions"])["decisions"].as_array().unwrap().len(), 1);
}
