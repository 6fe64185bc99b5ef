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
const DAEMON: &str = "(setsid sh -c \"trap '' TERM HUP INT; while :; do sleep 1000; done\" &)\n";

/// A named pipe that is closed when the last process that holds it has ended.
struct Held {
    path: PathBuf,
    reader: Receiver<String>,
}

impl Held {
    fn new(sandbox: &Sandbox) -> Held {
        let path = sandbox.path("held");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let from = path.clone();
        let (send, reader) = channel();
        std::thread::spawn(move || send.send(fs::read_to_string(from).unwrap()));
        Held { reader, path }
    }

    fn until_gone(self) -> String {
        // If no process ever opened the pipe for writing, the reader thread still waits for one.
        drop(fs::OpenOptions::new().read(true).write(true).open(&self.path).unwrap());
        self.reader
            .recv_timeout(Duration::from_secs(120))
            .unwrap_or_else(|_| panic!("a process is still there"))
    }
}

/// Starts a review whose agent starts a daemon and then hangs; returns once both are running.
fn with_a_daemon() -> (Sandbox, Held, Child) {
    let sandbox = Sandbox::with_agent("");
    let held = Held::new(&sandbox);
    let up = sandbox.path("up");
    assert!(std::process::Command::new("mkfifo").arg(&up).status().unwrap().success());
    // The trap comes before any other command, because child processes inherit ignored signals.
    let script = format!(
        "trap '' TERM\nexec 3>'{}'\n{DAEMON}echo up >'{}'\nwhile :; do sleep 1000; done\n",
        held.path.display(),
        up.display()
    );
    sandbox.write("agent.sh", &script);
    let child =
        sandbox.command(&["review", "plan.md"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(fs::read_to_string(up).unwrap(), "up\n");
    (sandbox, held, child)
}

fn good_agent(sandbox: &Sandbox) {
    sandbox.write("agent.sh", "cat >/dev/null\necho 'findings: []'\n");
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

/// Returns the keepers that a Tribunal process has started.
fn keepers(child: &Child) -> Vec<Pid> {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let keeper = |number: &str| {
        let name = fs::read_to_string(format!("/proc/{number}/cmdline")).unwrap_or_default();
        assert!(name.starts_with("tribunal-keeper\0"), "{name}");
        Pid::from_raw(number.parse().unwrap()).unwrap()
    };
    children.split_whitespace().map(keeper).collect()
}

#[test]
fn killed_tribunal_leaves_nothing_and_a_quick_resume_waits_for_that() {
    let (sandbox, held, mut child) = with_a_daemon();
    let keepers = keepers(&child);
    // The stopped keepers cannot end anything before the resume has met them.
    for keeper in &keepers {
        kill_process(*keeper, Signal::STOP).unwrap();
    }
    kill_process(pid(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    good_agent(&sandbox);
    let mut resume =
        sandbox.command(&["resume"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(resume.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("agents of an earlier start are still ending; waiting") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it did not wait");
    }
    for keeper in keepers {
        kill_process(keeper, Signal::CONT).unwrap();
    }
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(resume.wait().unwrap().code(), Some(0), "{rest}");
    held.until_gone();
}

#[test]
fn what_survived_tribunal_and_its_keeper_is_ended_by_the_next_start() {
    let (sandbox, held, mut child) = with_a_daemon();
    let keepers = keepers(&child);
    // Tribunal is stopped first, so that neither it nor its keepers can end anything.
    kill_process(pid(&child), Signal::STOP).unwrap();
    for keeper in keepers {
        kill_process(keeper, Signal::KILL).unwrap();
    }
    kill_process(pid(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    good_agent(&sandbox);
    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("that an earlier start had left behind"), "{}", ran.err);
    held.until_gone();
}

#[test]
fn a_second_interrupt_ends_the_whole_tree_and_says_how_to_go_on() {
    let (sandbox, held, mut child) = with_a_daemon();
    let mut notices = BufReader::new(child.stderr.take().unwrap());
    kill_process(pid(&child), Signal::INT).unwrap();
    let mut line = String::new();
    while !line.contains("stopping: 1 agent") {
        line.clear();
        assert!(notices.read_line(&mut line).unwrap() > 0);
    }
    kill_process(pid(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    notices.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(rest.contains("ending 1 agent") && rest.contains("tribunal resume plan-"), "{rest}");
    held.until_gone();
    assert!(sandbox.json(&["runs"])["runs"][0]["state"] == "stopped");
}

#[test]
fn stop_reaches_a_running_run() {
    let (sandbox, held, mut child) = with_a_daemon();
    let said = sandbox.run(&["stop"]);
    assert_eq!(said.code, Some(0));
    assert!(said.out.contains("stops as soon as its agents have finished"), "{}", said.out);
    let said = sandbox.run(&["stop", "plan", "--now"]);
    assert!(said.out.contains("has stopped; to go on: tribunal resume plan-"), "{}", said.out);
    // `stop --now` returned, so no process may be left.
    assert_eq!(child.wait().unwrap().code(), Some(130));
    held.until_gone();
    let said = sandbox.run(&["stop"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "nothing is running here\n"));
}

/// Returns the faults of the seats, as the journal records them.
fn faults(sandbox: &Sandbox) -> Vec<String> {
    let events = sandbox.events(&["log"]);
    let seats = events.iter().filter(|event| event["kind"] == "seat_incomplete");
    seats.map(|event| event["fault"]["fault"].as_str().unwrap_or_default().to_string()).collect()
}

fn fails_as(sandbox: &Sandbox, fault: &str, says: &str) {
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    assert!(ran.err.contains(says), "{}", ran.err);
    assert_eq!(faults(sandbox), [fault], "{}", ran.err);
}

#[test]
fn a_hung_agent_is_a_fault_of_its_own() {
    let sandbox = Sandbox::with_agent("while :; do echo busy; sleep 0.05; done\n");
    sandbox.set("limits: {max_runtime_minutes: 1}");
    sandbox.write(
        "tribunal.yaml",
        &sandbox.read("tribunal.yaml").replace("retry", "reviewer_timeout: 1, retry"),
    );
    fails_as(&sandbox, "timed_out", "was not done after 1 s");
}

#[test]
fn a_silent_agent_is_a_fault_of_its_own() {
    let after = |seconds: u32, script: &str| {
        let sandbox = Sandbox::with_agent(script);
        let settings =
            sandbox.read("tribunal.yaml").replace("retry", &format!("idle_timeout: {seconds}, retry"));
        sandbox.write("tribunal.yaml", &settings);
        let ran = sandbox.run(&["review", "plan.md"]);
        assert_eq!(ran.code, Some(5), "{}", ran.err);
        let says = format!("gave no sign of life for {seconds} s (tasks.idle_timeout)");
        assert!(ran.err.contains(&says), "{}", ran.err);
        faults(&sandbox)
    };
    assert_eq!(after(1, "sleep 1000\n"), ["never_active"]);
    // On a busy machine the agent may not get to print its line in time; then it gets more time.
    let spoke =
        |seconds: u32| Some(after(seconds, "echo now; sleep 1000\n")).filter(|f| f != &["never_active"]);
    assert_eq!([1, 4, 16].into_iter().find_map(spoke).unwrap(), ["silent"]);
}

#[test]
fn a_flooding_agent_is_a_fault_of_its_own() {
    let sandbox = Sandbox::with_agent("exec yes 'an answer that never ends, in lines of some length'\n");
    // Printed output counts as tokens; the high limit lets the flood end the agent first.
    sandbox.set("limits: {max_tokens: 100000000}");
    fails_as(&sandbox, "flood", "printed without end (10");
}

#[test]
fn a_babbling_agent_is_a_fault_of_its_own() {
    let sandbox = Sandbox::with_agent("head -c 100000 /dev/urandom\n");
    fails_as(&sandbox, "malformed", "in a form that cannot be read");
}

/// Reviewers raise one finding once the gate is open. Fixers save their prompt and give up.
fn gated() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::with_agent("");
    let (gate, prompt) = (sandbox.path("gate"), sandbox.path("prompt"));
    let script = format!(
        "case $TRIBUNAL_TASK in\n\
         */fix/*) cat >'{}'; echo 'fixes: [{{id: F1, status: BLOCKED, fix_description: no}}]';;\n\
         *) cat >/dev/null; while [ ! -e '{}' ]; do sleep 0.02; done\n\
         echo 'findings: [{{severity: high, description: vague, quote: It shall be fast.}}]';;\n\
         esac\n",
        prompt.display(),
        gate.display()
    );
    sandbox.write("agent.sh", &script);
    (sandbox, gate)
}

/// Starts a review and returns once its agent is running.
fn start(sandbox: &Sandbox, file: &str) -> (Child, BufReader<ChildStdout>) {
    let mut review = sandbox.command(&["review", file, "--json"]);
    let mut child = review.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    until(&mut lines, "\"effect\":\"ask\"");
    (child, lines)
}

#[test]
fn what_a_person_says_reaches_the_next_brief_and_the_log() {
    let (sandbox, gate) = gated();
    let (mut child, mut lines) = start(&sandbox, "plan.md");
    let told = "the budget is 200 ms, see RFC 7";
    let said = sandbox.run(&["say", "plan", told]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("will tell its agents from the next brief on"), "{}", said.out);
    open_for(&gate);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{rest}");
    assert!(sandbox.read("prompt").contains(told), "{}", sandbox.read("prompt"));
    assert!(sandbox.run(&["log"]).out.contains(told));

    let said =
        sandbox.run(&["say", "plan", "token", "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyzABCDEF"]);
    assert!(
        said.out.contains("kept for run plan-") && said.out.contains("tribunal resume plan-"),
        "{}",
        said.out
    );
    assert_eq!(sandbox.run(&["say", "plan", " "]).code, Some(2));
    assert_eq!(sandbox.run(&["say", "plan", &"x".repeat(2001)]).code, Some(2));
    assert_eq!(sandbox.run(&["say", "nosuch", "x"]).code, Some(2));
}

#[test]
fn a_detached_run_goes_on_without_us() {
    let (sandbox, gate) = gated();
    let said = sandbox.run(&["review", "plan.md", "--detach"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("goes on in the background (process "), "{}", said.out);
    assert!(said.out.contains("log plan-") && said.out.contains("--follow"), "{}", said.out);
    assert_eq!(sandbox.json(&["runs"])["runs"][0]["state"], "running");
    open_for(&gate);
    // Following the log ends with the run.
    let run = sandbox.last_run();
    assert!(sandbox.run(&["log", &run, "--follow"]).out.contains("waiting · "));
    assert_eq!(sandbox.json(&["status", &run])["runs"][0]["state"], "waiting");

    // All arguments after `--` are files, and several files are several runs.
    sandbox.write("--detach", "# Odd\n\nIt shall be fast.\n");
    let said = sandbox.run(&["review", "--detach", "--", "plan.md", "--detach"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("1 more subject follows, at most 2 at once"), "{}", said.out);
    while sandbox.runs().len() < 3 || sandbox.json(&["runs"]).to_string().contains("\"running\"") {}
    let runs = sandbox.json(&["runs"])["runs"].as_array().cloned().unwrap();
    assert!(runs.iter().any(|run| run["subject"]["path"] == "--detach"), "{runs:?}");

    let refused = sandbox.run(&["review", "nosuch.md", "--detach"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("nosuch.md"), "{}", refused.err);
}

/// Reads the events of a run until a line contains `expected_text`.
fn until(lines: &mut BufReader<ChildStdout>, wanted: &str) {
    let mut line = String::new();
    while !line.contains(wanted) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the run ended early");
    }
}

#[test]
fn runs_on_two_subjects_go_on_side_by_side_and_one_subject_has_one() {
    let (sandbox, gate) = gated();
    sandbox.write("other.md", "# Other\n\nIt shall be fast.\n");
    let start = |file: &str| start(&sandbox, file);
    let (one, two) = (start("plan.md"), start("other.md"));
    let states = sandbox.json(&["runs"]);
    let states: Vec<_> = states["runs"].as_array().unwrap().iter().map(|run| run["state"].clone()).collect();
    assert_eq!(states, ["running", "running"]);
    let ran = sandbox.run(&["stop"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("several runs are running"), "{}", ran.err);
    let busy = sandbox.run(&["review", "plan.md"]);
    assert_eq!(busy.code, Some(2));
    assert!(busy.err.contains("plan.md is already under review by run plan-"), "{}", busy.err);
    open_for(&gate);
    for (mut child, mut lines) in [one, two] {
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(3), "{rest}");
    }
}

/// Lets all agents continue that wait at the gate.
fn open_for(gate: &Path) {
    fs::write(gate, "").unwrap();
}

#[test]
fn a_killed_keeper_costs_its_own_task_one_try_and_nobody_elses() {
    let sandbox = Sandbox::with_agent("");
    let gate = sandbox.path("gate");
    let script = format!(
        "cat >/dev/null\n\
         role=${{TRIBUNAL_TASK#round-1/review/}}\n\
         echo up >'{}'/up-${{role%%/*}}\n\
         while [ ! -e '{}' ]; do sleep 0.02; done\n\
         echo 'findings: []'\n",
        sandbox.path(".").display(),
        gate.display()
    );
    sandbox.write("agent.sh", &script);
    let up = ["party", "adversarial"].map(|role| sandbox.path(&format!("up-{role}")));
    for fifo in &up {
        assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
    }
    let mut review = sandbox.command(&["review", "plan.md", "--json", "--level", "dual", "--no-fix"]);
    let mut child = review.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    for fifo in &up {
        assert_eq!(fs::read_to_string(fifo).unwrap(), "up\n");
        // The next attempt writes to a plain file instead of the pipe.
        fs::remove_file(fifo).unwrap();
    }
    let children = |of: &str| -> Vec<String> {
        let all = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
        all.split_whitespace().map(String::from).collect()
    };
    let keeps_party = |keeper: &&String| {
        let agents = children(keeper);
        agents.iter().any(|agent| {
            let environment = fs::read(format!("/proc/{agent}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains("TRIBUNAL_TASK=round-1/review/party")
        })
    };
    let keepers = children(&child.id().to_string());
    let keeper = keepers.iter().find(keeps_party).unwrap();
    kill_process(Pid::from_raw(keeper.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    // The gate opens only after the loss has been noticed.
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    until(&mut lines, "its keeper was killed");
    open_for(&gate);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
    let run = sandbox.last_run();
    let events = sandbox.events(&["log", &run]);
    let asked =
        |wanted: &str| events.iter().filter(|e| e["kind"] == "effect_started" && e["key"] == wanted).count();
    assert_eq!(asked("round-1/review/party/again"), 1);
    assert_eq!(asked("round-1/review/adversarial/again"), 0);
}
