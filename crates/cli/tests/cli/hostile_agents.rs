//! Agents that hang, fall silent, flood, print garbage or try to outlive their run; and a Tribunal that is killed.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::Sandbox;

/// Starts a daemon that has its own session, is forked twice, ignores signals, and holds descriptor 3.
const START_DAEMON: &str = "(setsid sh -c \"trap '' TERM HUP INT; while :; do sleep 1000; done\" &)\n";

/// A named pipe that is closed when the last process that holds it has ended.
struct LifetimePipe {
    path: PathBuf,
    /// Keeps the pipe from being closed before the test waits for that, even if no process ever opens it.
    own_handle: fs::File,
    end_receiver: Receiver<String>,
}

impl LifetimePipe {
    fn new(sandbox: &Sandbox) -> LifetimePipe {
        let pipe_path = sandbox.path_of("held");
        assert!(std::process::Command::new("mkfifo").arg(&pipe_path).status().unwrap().success());
        // This handle is open for both directions, so that neither waits for the other side.
        let own_handle = fs::OpenOptions::new().read(true).write(true).open(&pipe_path).unwrap();
        let mut reader = fs::File::open(&pipe_path).unwrap();
        let (sender, end_receiver) = channel();
        std::thread::spawn(move || {
            let mut written_text = String::new();
            reader.read_to_string(&mut written_text).unwrap();
            sender.send(written_text)
        });
        LifetimePipe { path: pipe_path, own_handle, end_receiver }
    }

    fn wait_until_closed(self) -> String {
        drop(self.own_handle);
        self.end_receiver.recv_timeout(Duration::from_secs(600)).unwrap_or_else(|_| panic!("a process is still there"))
    }
}

/// Starts a review whose agent starts a daemon and then hangs; returns once both are running.
fn review_with_daemon() -> (Sandbox, LifetimePipe, Child) {
    let sandbox = Sandbox::with_shell_agent("");
    let lifetime_pipe = LifetimePipe::new(&sandbox);
    let ready_pipe = sandbox.path_of("up");
    assert!(std::process::Command::new("mkfifo").arg(&ready_pipe).status().unwrap().success());
    // The trap comes before any other command, because child processes inherit ignored signals.
    let script = format!(
        "trap '' TERM\nexec 3>'{}'\n{START_DAEMON}echo up >'{}'\nwhile :; do sleep 1000; done\n",
        lifetime_pipe.path.display(),
        ready_pipe.display()
    );
    sandbox.write_file("agent.sh", &script);
    let child =
        sandbox.tribunal_command(&["review", "plan.md"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(fs::read_to_string(ready_pipe).unwrap(), "up\n");
    (sandbox, lifetime_pipe, child)
}

fn write_good_agent(sandbox: &Sandbox) {
    sandbox.write_file("agent.sh", "cat >/dev/null\necho 'findings: []'\n");
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

/// Returns the keepers that a Tribunal process has started.
fn keeper_pids(child: &Child) -> Vec<Pid> {
    let child_pids = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let checked_pid = |pid_text: &str| {
        let command_line = fs::read_to_string(format!("/proc/{pid_text}/cmdline")).unwrap_or_default();
        assert!(command_line.starts_with("tribunal-keeper\0"), "{command_line}");
        Pid::from_raw(pid_text.parse().unwrap()).unwrap()
    };
    child_pids.split_whitespace().map(checked_pid).collect()
}

#[test]
fn a_killed_tribunal_leaves_no_process_and_a_quick_resume_waits_for_the_end() {
    let (sandbox, lifetime_pipe, mut child) = review_with_daemon();
    let keepers = keeper_pids(&child);
    // The stopped keepers cannot end anything before the resume has met them.
    for keeper in &keepers {
        kill_process(*keeper, Signal::STOP).unwrap();
    }
    kill_process(pid_of(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    write_good_agent(&sandbox);
    let mut resumed =
        sandbox.tribunal_command(&["resume"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut resume_stderr = BufReader::new(resumed.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("waiting for agents of an earlier attempt to exit") {
        line.clear();
        assert!(resume_stderr.read_line(&mut line).unwrap() > 0, "it did not wait");
    }
    for keeper in keepers {
        // The resume ends keepers that it has waited for in vain, so on a busy machine one may be gone already.
        let _ = kill_process(keeper, Signal::CONT);
    }
    let mut remaining_output = String::new();
    resume_stderr.read_to_string(&mut remaining_output).unwrap();
    assert_eq!(resumed.wait().unwrap().code(), Some(0), "{remaining_output}");
    lifetime_pipe.wait_until_closed();
}

#[test]
fn processes_that_outlive_tribunal_and_keeper_are_ended_by_the_next_start() {
    let (sandbox, lifetime_pipe, mut child) = review_with_daemon();
    let keepers = keeper_pids(&child);
    // Tribunal is stopped first, so that neither it nor its keepers can end anything.
    kill_process(pid_of(&child), Signal::STOP).unwrap();
    for keeper in keepers {
        kill_process(keeper, Signal::KILL).unwrap();
    }
    kill_process(pid_of(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    write_good_agent(&sandbox);
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stderr.contains("left behind by an earlier attempt"), "{}", output.stderr);
    lifetime_pipe.wait_until_closed();
}

#[test]
fn a_second_interrupt_ends_the_whole_process_tree_and_names_the_resume_command() {
    let (sandbox, lifetime_pipe, mut child) = review_with_daemon();
    let mut notices = BufReader::new(child.stderr.take().unwrap());
    kill_process(pid_of(&child), Signal::INT).unwrap();
    let mut line = String::new();
    while !line.contains("waiting for 1 agent to finish") {
        line.clear();
        assert!(notices.read_line(&mut line).unwrap() > 0);
    }
    kill_process(pid_of(&child), Signal::INT).unwrap();
    let mut remaining_output = String::new();
    notices.read_to_string(&mut remaining_output).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        remaining_output.contains("stopping 1 agent now") && remaining_output.contains("tribunal resume plan-"),
        "{remaining_output}"
    );
    lifetime_pipe.wait_until_closed();
    assert!(sandbox.run_json(&["runs"])["runs"][0]["state"] == "stopped");
}

#[test]
fn stop_reaches_a_running_run() {
    let (sandbox, lifetime_pipe, mut child) = review_with_daemon();
    let stop_output = sandbox.run_tribunal(&["stop"]);
    assert_eq!(stop_output.exit_code, Some(0));
    assert!(stop_output.stdout.contains("stops as soon as its agents have finished"), "{}", stop_output.stdout);
    let stop_output = sandbox.run_tribunal(&["stop", "plan", "--now"]);
    assert!(stop_output.stdout.contains("stopped; resume it with `tribunal resume plan-"), "{}", stop_output.stdout);
    // `stop --now` returned, so no process may be left.
    assert_eq!(child.wait().unwrap().code(), Some(130));
    lifetime_pipe.wait_until_closed();
    let stop_output = sandbox.run_tribunal(&["stop"]);
    assert_eq!((stop_output.exit_code, stop_output.stdout.as_str()), (Some(0), "nothing is running here\n"));
}

/// Returns the faults of the seats, as the journal records them.
fn seat_faults(sandbox: &Sandbox) -> Vec<String> {
    let events = sandbox.run_events(&["log"]);
    let seats = events.iter().filter(|event| event["kind"] == "seat_incomplete");
    seats.map(|event| event["fault"]["fault"].as_str().unwrap_or_default().to_string()).collect()
}

fn assert_fails_with(sandbox: &Sandbox, expected_fault: &str, expected_message: &str) {
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    assert!(output.stderr.contains(expected_message), "{}", output.stderr);
    assert_eq!(seat_faults(sandbox), [expected_fault], "{}", output.stderr);
}

#[test]
fn a_hung_agent_is_reported_as_timed_out() {
    let sandbox = Sandbox::with_shell_agent("while :; do echo busy; sleep 0.05; done\n");
    sandbox.append_setting("limits: {max_runtime_minutes: 1}");
    sandbox.write_file(
        "tribunal.yaml",
        &sandbox.read_file("tribunal.yaml").replace("retry", "reviewer_timeout: 1, retry"),
    );
    assert_fails_with(&sandbox, "timed_out", "timed out after 1 s");
}

#[test]
fn a_silent_agent_is_reported_as_silent() {
    let faults_after_idle = |seconds: u32, script: &str| {
        let sandbox = Sandbox::with_shell_agent(script);
        let settings = sandbox.read_file("tribunal.yaml").replace("retry", &format!("idle_timeout: {seconds}, retry"));
        sandbox.write_file("tribunal.yaml", &settings);
        let output = sandbox.run_tribunal(&["review", "plan.md"]);
        assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
        let expected_message = format!("printed nothing for {seconds} s (`tasks.idle_timeout`)");
        assert!(output.stderr.contains(&expected_message), "{}", output.stderr);
        seat_faults(&sandbox)
    };
    assert_eq!(faults_after_idle(1, "sleep 1000\n"), ["never_active"]);
    // On a busy machine the agent may not get to print its line in time; then it gets more time.
    let faults_after_output = |seconds: u32| {
        Some(faults_after_idle(seconds, "echo now; sleep 1000\n")).filter(|seat_fault| seat_fault != &["never_active"])
    };
    assert_eq!([1, 4, 16, 64].into_iter().find_map(faults_after_output).unwrap(), ["silent"]);
}

#[test]
fn a_flooding_agent_is_reported_as_flood() {
    let sandbox = Sandbox::with_shell_agent("exec yes 'an answer that never ends, in lines of some length'\n");
    // Printed output counts as tokens; the high limit lets the flood end the agent first.
    sandbox.append_setting("limits: {max_tokens: 100000000}");
    assert_fails_with(&sandbox, "flood", "its answer is longer than 1 MB (`tasks.max_answer_mb`)");
}

#[test]
fn an_agent_with_unreadable_output_is_reported_as_malformed() {
    let sandbox = Sandbox::with_shell_agent("head -c 100000 /dev/urandom\n");
    assert_fails_with(&sandbox, "malformed", "could not read the answer of");
}

/// Reviewers raise one finding once the gate is open. Fixers save their prompt and give up.
fn sandbox_with_gate() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::with_shell_agent("");
    let (gate_path, prompt_path) = (sandbox.path_of("gate"), sandbox.path_of("prompt"));
    let script = format!(
        "case $TRIBUNAL_TASK in\n\
         */fix/*) cat >'{}'; echo 'fixes: [{{id: F1, status: BLOCKED, fix_description: no}}]';;\n\
         *) cat >/dev/null; while [ ! -e '{}' ]; do sleep 0.02; done\n\
         echo 'findings: [{{severity: high, description: vague, quote: It shall be fast.}}]';;\n\
         esac\n",
        prompt_path.display(),
        gate_path.display()
    );
    sandbox.write_file("agent.sh", &script);
    (sandbox, gate_path)
}

/// Starts a review and returns once its agent is running.
fn start_review(sandbox: &Sandbox, subject_file: &str) -> (Child, BufReader<ChildStdout>) {
    let mut review_command = sandbox.tribunal_command(&["review", subject_file, "--json"]);
    let mut child = review_command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    read_until(&mut lines, "\"effect\":\"ask\"");
    (child, lines)
}

#[test]
fn a_message_of_the_user_reaches_the_next_brief_and_the_log() {
    let (sandbox, gate_path) = sandbox_with_gate();
    let (mut child, mut lines) = start_review(&sandbox, "plan.md");
    let user_message = "the budget is 200 ms, see RFC 7";
    let say_output = sandbox.run_tribunal(&["say", "plan", user_message]);
    assert_eq!(say_output.exit_code, Some(0), "{}", say_output.stderr);
    assert!(say_output.stdout.contains("its agents see it from their next prompt on"), "{}", say_output.stdout);
    open_gate(&gate_path);
    let mut remaining_output = String::new();
    lines.read_to_string(&mut remaining_output).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{remaining_output}");
    assert!(sandbox.read_file("prompt").contains(user_message), "{}", sandbox.read_file("prompt"));
    assert!(sandbox.run_tribunal(&["log"]).stdout.contains(user_message));

    let say_output =
        sandbox.run_tribunal(&["say", "plan", "token", "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyzABCDEF"]);
    assert!(
        say_output.stdout.contains("saved for run plan-") && say_output.stdout.contains("tribunal resume plan-"),
        "{}",
        say_output.stdout
    );
    assert_eq!(sandbox.run_tribunal(&["say", "plan", " "]).exit_code, Some(2));
    assert_eq!(sandbox.run_tribunal(&["say", "plan", &"x".repeat(2001)]).exit_code, Some(2));
    assert_eq!(sandbox.run_tribunal(&["say", "nosuch", "x"]).exit_code, Some(2));
}

#[test]
fn a_detached_run_continues_in_the_background() {
    let (sandbox, gate_path) = sandbox_with_gate();
    let review_output = sandbox.run_tribunal(&["review", "plan.md", "--detach"]);
    assert_eq!(review_output.exit_code, Some(0), "{}", review_output.stderr);
    assert!(review_output.stdout.contains("is running in the background (process "), "{}", review_output.stdout);
    assert!(
        review_output.stdout.contains("log plan-") && review_output.stdout.contains("--follow"),
        "{}",
        review_output.stdout
    );
    assert_eq!(sandbox.run_json(&["runs"])["runs"][0]["state"], "running");
    open_gate(&gate_path);
    // Following the log ends with the run.
    let run = sandbox.last_run_id();
    assert!(sandbox.run_tribunal(&["log", &run, "--follow"]).stdout.contains("waiting: "));
    assert_eq!(sandbox.run_json(&["status", &run])["runs"][0]["state"], "waiting");

    // All arguments after `--` are files, and several files are several runs.
    sandbox.write_file("--detach", "# Odd\n\nIt shall be fast.\n");
    let review_output = sandbox.run_tribunal(&["review", "--detach", "--", "plan.md", "--detach"]);
    assert_eq!(review_output.exit_code, Some(0), "{}", review_output.stderr);
    assert!(review_output.stdout.contains("1 more subject follows, at most 2 at a time"), "{}", review_output.stdout);
    while sandbox.run_ids().len() < 3 || sandbox.run_json(&["runs"]).to_string().contains("\"running\"") {}
    let run_summaries = sandbox.run_json(&["runs"])["runs"].as_array().cloned().unwrap();
    assert!(run_summaries.iter().any(|run| run["subject"]["path"] == "--detach"), "{run_summaries:?}");

    let refused_output = sandbox.run_tribunal(&["review", "nosuch.md", "--detach"]);
    assert_eq!(refused_output.exit_code, Some(2));
    assert!(refused_output.stderr.contains("nosuch.md"), "{}", refused_output.stderr);
}

/// Reads the events of a run until a line contains `expected_text`.
fn read_until(lines: &mut BufReader<ChildStdout>, expected_text: &str) {
    let mut line = String::new();
    while !line.contains(expected_text) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the run ended early");
    }
}

#[test]
fn two_subjects_can_be_reviewed_at_once_and_one_subject_only_once() {
    let (sandbox, gate_path) = sandbox_with_gate();
    sandbox.write_file("other.md", "# Other\n\nIt shall be fast.\n");
    let start_on = |subject_file: &str| start_review(&sandbox, subject_file);
    let (first_review, second_review) = (start_on("plan.md"), start_on("other.md"));
    let states = sandbox.run_json(&["runs"]);
    let states: Vec<_> =
        states["runs"].as_array().unwrap().iter().map(|run_summary| run_summary["state"].clone()).collect();
    assert_eq!(states, ["running", "running"]);
    let output = sandbox.run_tribunal(&["stop"]);
    assert_eq!(output.exit_code, Some(2));
    assert!(output.stderr.contains("several runs are running"), "{}", output.stderr);
    let busy_output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(busy_output.exit_code, Some(2));
    assert!(busy_output.stderr.contains("plan.md is already being worked on by run plan-"), "{}", busy_output.stderr);
    open_gate(&gate_path);
    for (mut child, mut lines) in [first_review, second_review] {
        let mut remaining_output = String::new();
        lines.read_to_string(&mut remaining_output).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(3), "{remaining_output}");
    }
}

/// Lets all agents continue that wait at the gate.
fn open_gate(gate_path: &Path) {
    fs::write(gate_path, "").unwrap();
}

#[test]
fn a_killed_keeper_costs_only_its_own_task_one_attempt() {
    let sandbox = Sandbox::with_shell_agent("");
    let gate_path = sandbox.path_of("../gate");
    let script = format!(
        "cat >/dev/null\n\
         role=${{TRIBUNAL_TASK#round-1/review/}}\n\
         echo up >'{}'/up-${{role%%/*}}\n\
         while [ ! -e '{}' ]; do sleep 0.02; done\n\
         echo 'findings: []'\n",
        sandbox.path_of("..").display(),
        gate_path.display()
    );
    sandbox.write_file("agent.sh", &script);
    let ready_pipes = ["party", "adversarial"].map(|role| sandbox.path_of(&format!("../up-{role}")));
    for fifo in &ready_pipes {
        assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
    }
    let mut review_command = sandbox.tribunal_command(&["review", "plan.md", "--json", "--level", "dual", "--no-fix"]);
    let mut child = review_command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    for fifo in &ready_pipes {
        assert_eq!(fs::read_to_string(fifo).unwrap(), "up\n");
        // The next attempt writes to a plain file instead of the pipe.
        fs::remove_file(fifo).unwrap();
    }
    let children_of = |parent_pid: &str| -> Vec<String> {
        let child_pids =
            fs::read_to_string(format!("/proc/{parent_pid}/task/{parent_pid}/children")).unwrap_or_default();
        child_pids.split_whitespace().map(String::from).collect()
    };
    let keeps_party = |keeper_pid: &&String| {
        let agents = children_of(keeper_pid);
        agents.iter().any(|agent| {
            let environment = fs::read(format!("/proc/{agent}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains("TRIBUNAL_TASK=round-1/review/party")
        })
    };
    let keepers = children_of(&child.id().to_string());
    let keeper_pid = keepers.iter().find(keeps_party).unwrap();
    kill_process(Pid::from_raw(keeper_pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    // The gate opens only after the loss has been noticed.
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    read_until(&mut lines, "its supervisor process was killed");
    open_gate(&gate_path);
    let mut remaining_output = String::new();
    lines.read_to_string(&mut remaining_output).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{remaining_output}");
    let run_id = sandbox.last_run_id();
    let events = sandbox.run_events(&["log", &run_id]);
    let call_count = |call_key: &str| {
        events
            .iter()
            .filter(|event_entry| event_entry["kind"] == "effect_started" && event_entry["key"] == call_key)
            .count()
    };
    assert_eq!(call_count("round-1/review/party/again"), 1);
    assert_eq!(call_count("round-1/review/adversarial/again"), 0);
}
