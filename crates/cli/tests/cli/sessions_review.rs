//! Reviews whose findings a session repairs, through the binary: the tests call the hooks, and scripts play the reviewers.

use serde_json::json;

use crate::{
    common::{CommandOutput, Sandbox},
    sessions::{STATE_FILE, hook_answer, stop_input, stop_refusal},
};

const DONE_PROMISE: &str = "<review-complete>ALL_ISSUES_RESOLVED</review-complete>";

/// Two findings in the first round, none after it.
const TWO_FINDINGS_SCRIPT: &str = r#"
tasks:
  - task: "round-1/review/*"
    steps:
      - findings:
          - {severity: low, category: vague, description: "no risks at all", quote: "None."}
          - {severity: high, category: vague, description: "fast is no number", quote: "It shall be fast."}
  - {task: "*", steps: [{findings: []}]}
"#;

fn review_in_session() -> Sandbox {
    let sandbox = Sandbox::with_script(TWO_FINDINGS_SCRIPT);
    sandbox.write_file("tribunal.yaml", &sandbox.read_file("tribunal.yaml").replace("tier: 0", "tier: 1"));
    let output = sandbox.run_tribunal(&["review", "--in-session", "--session", "s1", "plan.md"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("a session is working on its findings"), "{}", output.stderr);
    sandbox
}

fn repair_plan(sandbox: &Sandbox) {
    let plan_text = sandbox.read_file("plan.md");
    sandbox.write_file("plan.md", &plan_text.replace("fast", "done in 200 ms").replace("None.", "Two, see below."));
}

fn resume_in_session(sandbox: &Sandbox) -> CommandOutput {
    let mut command = sandbox.tribunal_command(&["resume"]);
    CommandOutput::from_output(command.env("CLAUDE_CODE_SESSION_ID", "s1").output().unwrap())
}

fn run_state(sandbox: &Sandbox) -> String {
    sandbox.run_json(&["status"])["runs"][0]["state"].as_str().unwrap().to_string()
}

#[test]
fn a_session_may_not_stop_until_its_repairs_are_verified() {
    let sandbox = review_in_session();
    assert!(sandbox.read_file(STATE_FILE).contains("in_progress_count: 2\n"), "{}", sandbox.read_file(STATE_FILE));
    let reason = stop_refusal(&sandbox, &stop_input("s1", "All is well.")).unwrap();
    insta::assert_snapshot!(sandbox.normalize_output(&reason));
    let reason = stop_refusal(&sandbox, &stop_input("s1", DONE_PROMISE)).unwrap();
    assert!(reason.contains("You said that it is done, but it is not.") && reason.contains("F1 high"), "{reason}");
    assert_eq!(stop_refusal(&sandbox, &stop_input("s2", "")), None);
    // The user is told the same tags as the session.
    let status_text = sandbox.run_tribunal(&["loop", "status"]).stdout;
    assert!(reason.contains(DONE_PROMISE) && status_text.contains(DONE_PROMISE), "{status_text}");
    assert!(!status_text.contains("<promise>"), "{status_text}");

    repair_plan(&sandbox);
    assert!(stop_refusal(&sandbox, &stop_input("s1", DONE_PROMISE)).is_some(), "it is not verified yet");
    let output = resume_in_session(&sandbox);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let (stop_answer, _) = hook_answer(&sandbox, "stop", &stop_input("s1", "Done."));
    assert!(stop_answer["systemMessage"].as_str().unwrap().contains("is resolved"), "{stop_answer}");
    assert_eq!(run_state(&sandbox), "resolved");
    let awake_time = |entry: &serde_json::Value| entry["at"]["awake_ms"].as_u64().unwrap();
    let log_entries = sandbox.run_events(&["log"]);
    assert!(log_entries.is_sorted_by_key(awake_time), "the run's clock never goes back: {log_entries:?}");
    let findings = sandbox.run_json(&["findings"]);
    assert_eq!(findings["findings"][0]["status"], "fixed", "{findings}");
}

#[test]
fn a_change_that_is_not_near_a_finding_does_not_repair_it() {
    let sandbox = review_in_session();
    let plan_text = sandbox.read_file("plan.md");
    sandbox.write_file("plan.md", &plan_text.replace("# Plan", "# The plan"));
    let output = resume_in_session(&sandbox);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("claimed as fixed, but nothing near it was changed"), "{}", output.stderr);
    assert!(stop_refusal(&sandbox, &stop_input("s1", DONE_PROMISE)).is_some());
}

#[test]
fn deleting_the_text_repairs_nothing_and_checks_must_pass() {
    let sandbox = review_in_session();
    sandbox.write_file("plan.md", "# Plan\n");
    let output = resume_in_session(&sandbox);
    assert!(output.stderr.contains("the fix would leave only 1 of "), "{}", output.stderr);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);

    let sandbox = Sandbox::with_script(TWO_FINDINGS_SCRIPT);
    sandbox.append_setting("verify: [\"! grep -n TBD plan.md\"]");
    sandbox.run_tribunal(&["review", "--in-session", "--session", "s1", "plan.md"]);
    let plan_text = sandbox.read_file("plan.md");
    sandbox.write_file("plan.md", &plan_text.replace("fast", "TBD").replace("None.", "Some."));
    let output = resume_in_session(&sandbox);
    assert!(output.stderr.contains("check: ! grep -n TBD plan.md"), "{}", output.stderr);
    assert!(stop_refusal(&sandbox, &stop_input("s1", DONE_PROMISE)).is_some());
}

/// A review says who let go of its session and why: in its state, in its question and in the page of the question.
#[test]
fn the_user_is_told_why_a_session_was_released() {
    for (last_message, expected_text, exit_state) in [
        (
            "<review-blocked>there is no key</review-blocked>",
            "the session was released: it says that only you can continue (there is no key)",
            "waiting",
        ),
        (
            "<review-timeout>five hours</review-timeout>",
            "the session was released: it says that it ran out of time (five hours)",
            "halted",
        ),
    ] {
        let sandbox = review_in_session();
        let page = format!(".tribunal/awaiting-human/{}.D1.yaml", sandbox.last_run_id());
        assert!(sandbox.read_file(&page).contains("assigned to a session"), "{}", sandbox.read_file(&page));
        assert_eq!(stop_refusal(&sandbox, &stop_input("s1", last_message)), None);
        assert_eq!(run_state(&sandbox), exit_state);
        let status = sandbox.run_tribunal(&["status"]).stdout;
        assert!(status.contains(expected_text), "{status}");
        let question = format!("{expected_text}. Who should fix F1, F2?");
        let decisions = sandbox.run_json(&["decisions"]);
        assert_eq!(decisions["decisions"].as_array().unwrap().len(), 1, "{decisions}");
        assert_eq!(decisions["decisions"][0]["question"], question.as_str());
        assert!(sandbox.read_file(&page).contains(&question), "{}", sandbox.read_file(&page));
        // The session may still come back with its repairs.
        repair_plan(&sandbox);
        let output = sandbox.run_tribunal(&["resume"]);
        assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    }
}

/// The client would end a turn after eight refusals in a row and show nothing.
#[test]
fn the_user_is_told_that_the_client_would_have_ended_the_turn() {
    let sandbox = review_in_session();
    while stop_refusal(&sandbox, &stop_input("s1", "Done.")).is_some() {}
    let decisions = sandbox.run_json(&["decisions"]);
    let question = decisions["decisions"][0]["question"].as_str().unwrap();
    assert!(question.contains("the client was about to end the turn by itself, without a result"), "{question}");
}

/// The session can write every file of the project, so answers in files may be its own and do not count.
#[test]
fn a_session_cannot_answer_for_the_user() {
    let sandbox = review_in_session();
    let run_id = sandbox.last_run_id();
    let mut command = sandbox.tribunal_command(&["decisions", "D1", "accept"]);
    let output = CommandOutput::from_output(command.env("CLAUDE_CODE_SESSION_ID", "s1").output().unwrap());
    assert_eq!(output.exit_code, Some(3), "{}", output.stdout);
    assert!(output.stderr.contains("this session's own work"), "{}", output.stderr);

    let decision_file = format!(".tribunal/awaiting-human/{run_id}.D1.yaml");
    sandbox.write_file(&decision_file, &sandbox.read_file(&decision_file).replace("answer: \"\"", "answer: accept"));
    let tracker = ".tribunal/reviews/plan-issues.md";
    sandbox
        .write_file(tracker, &sandbox.read_file(tracker).replace("open", "dismissed").replace("assigned", "dismissed"));
    let output = resume_in_session(&sandbox);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(stop_refusal(&sandbox, &stop_input("s1", DONE_PROMISE)).is_some());

    // The user may accept, and the run ends.
    let output = sandbox.run_tribunal(&["decisions", &format!("{run_id}.D2"), "accept"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(sandbox.run_tribunal(&["resume"]).exit_code, Some(0));
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", "")), None);
}

#[test]
fn a_session_that_gives_up_leaves_the_decision_to_the_user() {
    let sandbox = review_in_session();
    let (stop_answer, _) =
        hook_answer(&sandbox, "stop", &stop_input("s1", "<review-blocked>only legal knows</review-blocked>"));
    let message = stop_answer["systemMessage"].as_str().unwrap();
    assert!(
        message.contains("only legal knows") && message.contains("2 open findings are waiting for you"),
        "{message}"
    );
    assert_eq!(run_state(&sandbox), "waiting");
    let questions = sandbox.run_tribunal(&["decisions"]).stdout;
    assert!(questions.contains("(only legal knows). Who should fix F1, F2?"), "{questions}");
    // The session may still repair the findings later.
    repair_plan(&sandbox);
    assert_eq!(resume_in_session(&sandbox).exit_code, Some(0));
}

#[test]
fn a_halted_run_holds_no_session() {
    let sandbox = review_in_session();
    resume_in_session(&sandbox);
    for title in ["# A plan", "# The plan", "# Our plan"] {
        assert!(stop_refusal(&sandbox, &stop_input("s1", "")).is_some());
        let plan_text = sandbox.read_file("plan.md");
        let (_, remaining_lines) = plan_text.split_once('\n').unwrap();
        sandbox.write_file("plan.md", &format!("{title}\n{remaining_lines}"));
        resume_in_session(&sandbox);
    }
    assert_eq!(run_state(&sandbox), "halted");
    let (stop_answer, _) = hook_answer(&sandbox, "stop", &stop_input("s1", ""));
    assert!(stop_answer["systemMessage"].as_str().unwrap().contains("the review is halted"), "{stop_answer}");
}

#[test]
fn a_review_in_a_session_has_one_subject_and_needs_the_session() {
    let sandbox = Sandbox::with_script(TWO_FINDINGS_SCRIPT);
    let output = sandbox.run_tribunal(&["review", "--in-session", "plan.md"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("was not run inside an agent session"), "{}", output.stderr);
    sandbox.write_file("other.md", "# Other\n");
    let output = sandbox.run_tribunal(&["review", "--in-session", "--session", "s1", "plan.md", "other.md"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("one subject at a time"), "{}", output.stderr);
    assert!(!sandbox.path_of(STATE_FILE).exists());
}

#[test]
fn a_new_session_gets_the_state_of_the_project() {
    let sandbox = review_in_session();
    let (start_answer, _) = hook_answer(&sandbox, "session-start", &json!({ "session_id": "s9", "source": "startup" }));
    let message = start_answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(message.contains("1 questions wait") || message.contains("1 question waits"), "{message}");
    let (start_answer, _) = hook_answer(&sandbox, "session-start", &json!({ "session_id": "s1", "source": "resume" }));
    let message = start_answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(message.contains("This session works on plan-"), "{message}");
}

/// The journal decides whether a session may stop; edits of the state file do not.
#[test]
fn the_state_file_does_not_decide_whether_a_session_may_stop() {
    let sandbox = review_in_session();
    sandbox.write_file(
        STATE_FILE,
        &sandbox.read_file(STATE_FILE).replace("workflow_name: review", "workflow_name: loop\niteration: 1"),
    );
    assert!(stop_refusal(&sandbox, &stop_input("s1", DONE_PROMISE)).is_some());
    let (stop_answer, _) = hook_answer(&sandbox, "stop", &stop_input("s1", "<review-blocked>x y</review-blocked>"));
    assert!(stop_answer["systemMessage"].as_str().unwrap().contains("open findings are waiting"), "{stop_answer}");
    repair_plan(&sandbox);
    assert_eq!(resume_in_session(&sandbox).exit_code, Some(0), "the journal is as it was");

    let sandbox = review_in_session();
    sandbox.write_file(
        STATE_FILE,
        &sandbox
            .read_file(STATE_FILE)
            .replace("run: plan", "run: nope")
            .replace("in_progress_count: 2", "in_progress_count: 0"),
    );
    let (stop_answer, _) = hook_answer(&sandbox, "stop", &stop_input("s1", DONE_PROMISE));
    let message = stop_answer["systemMessage"].as_str().unwrap();
    assert!(message.contains("is not in the journal of this project") && !message.contains("resolved"), "{message}");
}

#[test]
fn a_session_out_of_time_leaves_the_review_halted() {
    let sandbox = review_in_session();
    assert_eq!(stop_refusal(&sandbox, &stop_input("s1", "<review-timeout>five hours</review-timeout>")), None);
    assert_eq!(run_state(&sandbox), "halted");
    repair_plan(&sandbox);
    assert_eq!(resume_in_session(&sandbox).exit_code, Some(0));
}

#[test]
fn a_review_whose_process_died_must_be_resumed_before_the_session_stops() {
    let sandbox = Sandbox::with_script(TWO_FINDINGS_SCRIPT);
    let mut command = sandbox.tribunal_command(&["review", "--in-session", "--session", "s1", "plan.md"]);
    command.env("TRIBUNAL_FAULT", "before:0:started:round-1/freeze").output().unwrap();
    assert_eq!(run_state(&sandbox), "crashed");
    let reason = stop_refusal(&sandbox, &stop_input("s1", DONE_PROMISE)).unwrap();
    assert!(reason.contains("Resume it before you stop: `tribunal resume plan-"), "{reason}");
}

#[test]
fn a_session_under_review_cannot_reload_settings_or_message_reviewers() {
    let sandbox = review_in_session();
    let run_id = sandbox.last_run_id();
    for arguments in [&["resume", "--reload"][..], &["say", &run_id, "all is well"]] {
        let mut command = sandbox.tribunal_command(arguments);
        let output = CommandOutput::from_output(command.env("CLAUDE_CODE_SESSION_ID", "s1").output().unwrap());
        assert_eq!(output.exit_code, Some(3), "{arguments:?} {}", output.stderr);
        assert!(output.stderr.contains("this session's own work"), "{arguments:?} {}", output.stderr);
    }
}
