//! What a user learns about a run that works right now, and about messages that came too late for it.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
};

use tribunal_engine::{ids::RunId, user_remark::UserRemark};
use tribunal_store::Store;
use tribunal_workflows::runs::user_request::UserRequest;

use crate::common::{Sandbox, hide_times};

/// A review whose reviewer waits at a gate, a named pipe, until the test opens it.
struct GatedReview {
    sandbox: Sandbox,
    gate_path: PathBuf,
    child: Child,
    events: BufReader<ChildStdout>,
}

impl GatedReview {
    /// Returns once the reviewer was asked.
    fn start(flags: &[&str]) -> GatedReview {
        let sandbox = Sandbox::with_shell_agent("");
        let (gate_path, prompt_path) = (sandbox.path_of("../gate"), sandbox.path_of("../prompt"));
        assert!(Command::new("mkfifo").arg(&gate_path).status().unwrap().success());
        sandbox.write_file(
            "agent.sh",
            &format!(
                "case $TRIBUNAL_TASK in\n\
                 */fix/*) cat >'{}'; echo 'fixes: [{{id: F1, status: BLOCKED, fix_description: no}}]';;\n\
                 *) cat >/dev/null; cat '{}'; \
                 echo 'findings: [{{severity: high, description: vague, quote: It shall be fast.}}]';;\n\
                 esac\n",
                prompt_path.display(),
                gate_path.display()
            ),
        );
        let mut command = sandbox.tribunal_command(&[&["review", "plan.md", "--json"], flags].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut events = BufReader::new(child.stdout.take().unwrap());
        let mut event_line = String::new();
        while !event_line.contains("\"effect\":\"ask\"") {
            event_line.clear();
            assert!(events.read_line(&mut event_line).unwrap() > 0, "the run ended early");
        }
        GatedReview { sandbox, gate_path, child, events }
    }

    /// Lets the reviewer answer and waits for the end; returns the exit code and the events and messages until then.
    fn finish(mut self) -> (Sandbox, Option<i32>, String) {
        fs::write(&self.gate_path, "").unwrap();
        let mut output = String::new();
        self.events.read_to_string(&mut output).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut output).unwrap();
        (self.sandbox, self.child.wait().unwrap().code(), output)
    }
}

#[test]
fn the_status_of_a_running_run_says_who_works_on_what_and_what_to_type() {
    let review = GatedReview::start(&["--no-fix"]);
    let run_id = review.sandbox.last_run_id();
    let status_text = review.sandbox.run_tribunal(&["status", &run_id]).stdout;
    assert!(hide_times(&status_text).contains(" (mine) on round 1, for [time]\n"), "{status_text}");
    for command in ["log", "say", "stop"] {
        assert!(status_text.contains(&format!("tribunal {command} {run_id}")), "{status_text}");
    }
    // The overview without a name shows the same.
    let overview = review.sandbox.run_tribunal(&["status"]).stdout;
    assert!(hide_times(&overview).contains(" (mine) on round 1, for [time]\n"), "{overview}");
    let document = review.sandbox.run_json(&["status", &run_id]);
    let work_row = &document["runs"][0]["working"][0];
    assert_eq!((work_row["agent"].as_str(), work_row["findings"].as_array().unwrap().len()), (Some("mine"), 0));
    assert!(work_row["started_ms"].as_u64().unwrap() > 0 && work_row["role"].is_string(), "{work_row}");
    let (sandbox, exit_code, output) = review.finish();
    assert_eq!(exit_code, Some(3), "{output}");
    let status_text = sandbox.run_tribunal(&["status", &run_id]).stdout;
    assert!(!status_text.contains("working:") && !status_text.contains("tribunal stop"), "{status_text}");
}

#[test]
fn a_message_that_came_too_late_is_reported_where_the_user_looks() {
    let review = GatedReview::start(&["--no-fix"]);
    // The only prompt was sent already, and without fixing there is no other.
    let say_output = review.sandbox.run_tribunal(&["say", "plan", "mind the budget"]);
    assert_eq!(say_output.exit_code, Some(0), "{}", say_output.stderr);
    let status_text = review.sandbox.run_tribunal(&["status"]).stdout;
    assert!(status_text.contains("your message “mind the budget” is delivered with the next prompt"), "{status_text}");
    let (sandbox, exit_code, output) = review.finish();
    assert_eq!(exit_code, Some(3), "{output}");
    assert!(output.contains("came too late to reach an agent: mind the budget"), "{output}");
    let status_text = sandbox.run_tribunal(&["status"]).stdout;
    assert!(
        status_text.contains("your message “mind the budget” was not delivered, because the run had already ended"),
        "{status_text}"
    );
    assert_eq!(sandbox.run_json(&["status"])["runs"][0]["undelivered"][0], "mind the budget");

    let say_output = sandbox.run_tribunal(&["say", "plan", "hello?"]);
    assert_eq!(say_output.exit_code, Some(2));
    assert!(say_output.stderr.contains("has ended, so the message cannot be delivered"), "{}", say_output.stderr);
    assert!(!sandbox.run_tribunal(&["status"]).stdout.contains("hello?"), "a refused message is not kept");
}

#[test]
fn a_message_that_an_ended_run_never_read_is_reported() {
    let (sandbox, _, _) = GatedReview::start(&["--no-fix"]).finish();
    // It arrived between the last look into the inbox and the last entry.
    let run_id = RunId::new(sandbox.last_run_id());
    let store = Store::open(&sandbox.path_of(".tribunal")).unwrap();
    store.send_request(&run_id, &UserRequest::Say(UserRemark::new("one moment")), "", Vec::new()).unwrap();
    drop(store);
    let expected_text = "your message “one moment” was not delivered, because the run had already ended";
    let status_text = sandbox.run_tribunal(&["status"]).stdout;
    assert!(status_text.contains(expected_text), "{status_text}");
}

#[test]
fn a_run_that_was_stopped_before_it_read_a_message_says_so_at_its_end() {
    let review = GatedReview::start(&[]);
    assert_eq!(review.sandbox.run_tribunal(&["say", "plan", "200 ms is fast"]).exit_code, Some(0));
    assert_eq!(review.sandbox.run_tribunal(&["stop", "plan"]).exit_code, Some(0));
    let (sandbox, exit_code, output) = review.finish();
    assert_eq!(exit_code, Some(130), "{output}");
    let expected_text = "your message “200 ms is fast” was not delivered yet; resuming the run delivers it";
    assert!(output.contains(&format!("warning: {expected_text}")), "{output}");
    assert!(sandbox.run_tribunal(&["status"]).stdout.contains(expected_text));
    // The reviewer finished before the run stopped, so only the fixer is left to be asked.
    assert_eq!(sandbox.run_tribunal(&["resume"]).exit_code, Some(3));
    assert!(sandbox.read_file("../prompt").contains("200 ms is fast"), "{}", sandbox.read_file("../prompt"));
}

#[test]
fn a_message_to_a_waiting_run_is_shown_until_resuming_delivers_it() {
    let (sandbox, exit_code, output) = GatedReview::start(&[]).finish();
    assert_eq!(exit_code, Some(3), "{output}");
    assert_eq!(sandbox.run_tribunal(&["say", "plan", "200 ms is fast"]).exit_code, Some(0));
    let status_text = sandbox.run_tribunal(&["status"]).stdout;
    assert!(
        status_text.contains("your message “200 ms is fast” was not delivered yet; resuming the run delivers it"),
        "{status_text}"
    );
    assert_eq!(sandbox.run_tribunal(&["decisions", "D1", "retry"]).exit_code, Some(0));
    assert_eq!(sandbox.run_tribunal(&["resume"]).exit_code, Some(3));
    assert!(sandbox.read_file("../prompt").contains("200 ms is fast"), "{}", sandbox.read_file("../prompt"));
    let status_text = sandbox.run_tribunal(&["status"]).stdout;
    assert!(!status_text.contains("your message"), "{status_text}");
}
