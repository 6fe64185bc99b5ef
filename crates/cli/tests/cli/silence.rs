//! `--progress silent` and `--quiet` print only errors, also if the run fails or is interrupted.
#![cfg(target_os = "linux")]

use rustix::process::Signal;

use crate::{
    common::Sandbox,
    multi_run::{
        ANSWER_NOTHING, sandbox_with_documents, sandbox_with_waiting_agents, send_interrupt, send_signal,
        spawn_tribunal,
    },
};

#[test]
fn nothing_is_printed_and_the_exit_code_tells_the_outcome() {
    let sandbox = sandbox_with_documents(&["one.md", "two.md"], ANSWER_NOTHING);
    for args in [
        &["review", "one.md", "--quiet"][..],
        // A file that is named twice usually gets a note.
        &["review", "one.md", "two.md", "two.md", "-q"],
        &["review", "one.md", "two.md", "--progress", "silent", "--jobs", "1"],
        // So does a directory, and an earlier run that failed.
        &["review", ".", "-q"],
        &["resume", "-q"],
        &["review", "one.md", "--set", "progress.mode=silent"],
        &["demo", "-q"],
    ] {
        let output = sandbox.run_tribunal(args);
        assert_eq!((output.exit_code, output.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert_eq!(output.stdout, "", "{args:?}");
    }
    sandbox.write_file("agent.sh", "cat >/dev/null; exit 7\n");
    for args in [&["review", "one.md", "-q"][..], &["review", "one.md", "two.md", "-q"]] {
        let output = sandbox.run_tribunal(args);
        assert_eq!((output.exit_code, output.stderr.as_str()), (Some(5), ""), "{args:?}");
    }
}

#[test]
fn a_warning_before_the_start_is_left_out() {
    let sandbox = Sandbox::with_script("tasks: [{task: '*', steps: [{findings: []}]}]\n");
    let settings = sandbox.read_file("tribunal.yaml");
    let with_missing_agent = settings
        .replace("use: [scripted]", "use: [scripted, absent]")
        .replace("script.yaml}}", "script.yaml}, absent: {driver: command, argv: [no-such-agent]}}");
    sandbox.write_file("tribunal.yaml", &with_missing_agent);
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert!(output.stderr.contains("warning: ") && output.stderr.contains("no-such-agent"), "{}", output.stderr);
    let output = sandbox.run_tribunal(&["review", "plan.md", "-q"]);
    assert_eq!(output.stderr, "");
}

#[test]
fn errors_and_events_are_still_printed() {
    let sandbox = sandbox_with_documents(&["one.md", "two.md"], ANSWER_NOTHING);
    let output = sandbox.run_tribunal(&["review", "gone.md", "-q"]);
    assert_eq!(output.exit_code, Some(2));
    assert!(output.stderr.starts_with("error: gone.md does not exist\n"), "{}", output.stderr);
    let output = sandbox.run_tribunal(&["review", "one.md", "two.md", "-q", "--json"]);
    assert_eq!(output.stderr, "");
    assert_eq!(output.parse_events().iter().filter(|event| event["kind"] == "run_finished").count(), 2);
    let output = sandbox.run_tribunal(&["review", "one.md", "-q", "--progress", "verbose"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
}

#[test]
fn an_interrupted_silent_run_says_nothing_either() {
    let (sandbox, arrived, _release) = sandbox_with_waiting_agents(&["one.md", "two.md"]);
    let child = spawn_tribunal(&sandbox, &["review", "one.md", "two.md", "-q"]);
    arrived.read_lines(2);
    // Nothing printed tells when an interrupt was taken, so the agents are not released, and a second signal ends them. It is
    // another one: of two interrupts the system may deliver only one.
    send_interrupt(&child);
    send_signal(&child, Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(130), ""));
}

#[test]
fn the_setting_of_the_project_is_silent_too() {
    let sandbox = Sandbox::with_shell_agent(ANSWER_NOTHING);
    sandbox.append_setting("progress: {mode: silent}");
    let output = sandbox.run_tribunal(&["review", "plan.md", "plan.md"]);
    assert_eq!((output.exit_code, output.stderr.as_str()), (Some(0), ""));
    let output = sandbox.run_tribunal(&["review", "plan.md", "--progress", "summary"]);
    assert!(output.stderr.contains("resolved: "), "an argument wins over the setting: {}", output.stderr);
}
