//! Several subjects in one command: parallel runs, shared agents, interrupts, refusals, and grouped output.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, ChildStderr, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tribunal_engine::ids::Hash;

use crate::common::{CONFIRM_REPAIRS, CommandOutput, Sandbox};

pub const ANSWER_NOTHING: &str = "echo 'findings: []'\n";
const SIX_FILES: [&str; 6] = ["one.md", "two.md", "three.md", "four.md", "five.md", "six.md"];

/// A project with these documents and a shell script as the agent. A task that waits in vain times out.
pub fn sandbox_with_documents(files: &[&str], agent_script: &str) -> Sandbox {
    let sandbox = Sandbox::with_shell_agent(agent_script);
    let settings = sandbox.read_file("tribunal.yaml").replace("tasks: {", "tasks: {reviewer_timeout: 600, ");
    sandbox.write_file("tribunal.yaml", &settings);
    for file in files {
        sandbox.write_file(file, &format!("# {file}\n\nIt shall be fast.\n"));
    }
    sandbox
}

/// A named pipe in the project. It is open for reading and writing, so that neither side sees its end.
pub struct NamedPipe {
    pipe_path: PathBuf,
    pipe_file: fs::File,
}

impl NamedPipe {
    fn new(sandbox: &Sandbox, pipe_name: &str) -> NamedPipe {
        let pipe_path = sandbox.path_of(pipe_name);
        assert!(std::process::Command::new("mkfifo").arg(&pipe_path).status().unwrap().success());
        let pipe_file = fs::OpenOptions::new().read(true).write(true).open(&pipe_path).unwrap();
        NamedPipe { pipe_path, pipe_file }
    }

    /// Blocks until `line_count` lines have arrived.
    pub fn read_lines(&self, line_count: usize) -> Vec<String> {
        let mut lines = BufReader::new(&self.pipe_file).lines();
        (0..line_count).map(|_| lines.next().unwrap().unwrap()).collect()
    }

    pub fn release_agents(&mut self, agent_count: usize) {
        self.pipe_file.write_all("go\n".repeat(agent_count).as_bytes()).unwrap();
    }
}

/// A project whose agents report that they have started, and wait for a line before they answer.
pub fn sandbox_with_waiting_agents(files: &[&str]) -> (Sandbox, NamedPipe, NamedPipe) {
    let sandbox = sandbox_with_documents(files, "");
    let (arrived, release) = (NamedPipe::new(&sandbox, "here"), NamedPipe::new(&sandbox, "go"));
    let agent_script = format!(
        "cat >/dev/null\necho \"$TRIBUNAL_RUN\" >'{}'\nread word <'{}'\n{ANSWER_NOTHING}",
        arrived.pipe_path.display(),
        release.pipe_path.display()
    );
    sandbox.write_file("agent.sh", &agent_script);
    (sandbox, arrived, release)
}

pub fn spawn_tribunal(sandbox: &Sandbox, args: &[&str]) -> Child {
    sandbox.tribunal_command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub fn send_interrupt(child: &Child) {
    send_signal(child, Signal::INT);
}

pub fn send_signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
}

/// Reads what is printed until so many runs have said that they stop after their agents, and returns the beginnings of their
/// names, sorted. Before that an agent may still answer and its run may end as if there had been no interrupt.
pub fn read_stopping_runs(stderr_reader: &mut BufReader<ChildStderr>, run_count: usize) -> Vec<String> {
    let (mut line, mut stopping_runs) = (String::new(), Vec::new());
    while stopping_runs.len() < run_count {
        line.clear();
        assert!(stderr_reader.read_line(&mut line).unwrap() > 0, "it ended early");
        stopping_runs
            .extend(line.split_once("waiting for 1 agent to finish").map(|(run_label, _)| run_label[..3].to_string()));
    }
    stopping_runs.sort();
    stopping_runs
}

pub fn run_states(sandbox: &Sandbox) -> Vec<String> {
    let run_summaries = sandbox.run_json(&["runs"])["runs"].as_array().cloned().unwrap();
    run_summaries.iter().map(|run_summary| run_summary["state"].as_str().unwrap().to_string()).collect()
}

/// Groups the lines by run, keeps the order within each run, and masks what differs in run ids.
fn group_lines_by_run(sandbox: &Sandbox, normalized: &str) -> String {
    let mut normalized = normalized.to_string();
    for run_id in sandbox.run_ids() {
        // The dash is included because the four characters alone may occur in other words.
        let (_, id_suffix) = run_id.rsplit_once('-').unwrap();
        normalized = normalized.replace(&format!("-{id_suffix}"), "-xxxx");
    }
    let (mut labelled_lines, other_lines): (Vec<&str>, Vec<&str>) =
        normalized.lines().partition(|line| line.contains(" │ "));
    labelled_lines.sort_by_key(|line| line.split(" │ ").next());
    [labelled_lines, other_lines].concat().join("\n")
}

#[test]
fn two_runs_work_at_the_same_time() {
    let sandbox = sandbox_with_documents(&["one.md", "two.md"], "");
    let meeting_pipe = NamedPipe::new(&sandbox, "meet");
    // An agent that runs alone has no partner at the other end of the pipe and is ended by its timeout.
    drop(meeting_pipe.pipe_file);
    let agent_script = format!(
        "cat >/dev/null\ncase $TRIBUNAL_RUN in one-*) echo hello >'{0}';; *) read word <'{0}';; esac\n{ANSWER_NOTHING}",
        meeting_pipe.pipe_path.display()
    );
    sandbox.write_file("agent.sh", &agent_script);
    let output = sandbox.run_tribunal(&["review", "one.md", "two.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(run_states(&sandbox), ["resolved", "resolved"]);
}

#[test]
fn six_runs_write_one_journal_at_once() {
    let (sandbox, arrived, mut release) = sandbox_with_waiting_agents(&SIX_FILES);
    let child = spawn_tribunal(&sandbox, &[&["review", "--jobs", "6", "--json"], &SIX_FILES[..]].concat());
    let mut arrived_runs = arrived.read_lines(6);
    arrived_runs.sort();
    arrived_runs.dedup();
    assert_eq!(arrived_runs.len(), 6, "six runs have an agent each");
    release.release_agents(6);
    let output = CommandOutput::from_output(child.wait_with_output().unwrap());
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(run_states(&sandbox), ["resolved"; 6]);
    // The printed events are the recorded ones: all entries of every run, in order.
    for run_id in arrived_runs {
        let shown_events = output.parse_events().into_iter().filter(|event| event["run"] == *run_id);
        let shown_numbers: Vec<u64> = shown_events.map(|event| event["seq"].as_u64().unwrap()).collect();
        let recorded_events = sandbox.run_events(&["log", &run_id]);
        let recorded_numbers: Vec<u64> = recorded_events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(shown_numbers, recorded_numbers, "{run_id}");
    }
}

#[test]
fn the_limit_of_one_agent_holds_for_all_runs_together() {
    let sandbox = sandbox_with_documents(&SIX_FILES, "");
    let agent_script = format!(
        "cat >/dev/null\ncd '{}'\nmkdir busy || touch overlap\nseq 1 50000 | sort -R | sort -n >/dev/null\nrmdir busy\n{ANSWER_NOTHING}",
        sandbox.root_dir().display()
    );
    sandbox.write_file("agent.sh", &agent_script);
    let output = sandbox.run_tribunal(&[&["review", "--jobs=6", "--set", "agents.at_once=1"], &SIX_FILES[..]].concat());
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert_eq!(run_states(&sandbox), ["resolved"; 6]);
    assert!(!sandbox.path_of("overlap").exists());
}

#[test]
fn changes_landed_by_one_run_are_not_stray_changes_for_another() {
    let sandbox = sandbox_with_documents(&["one.md", "two.md"], "");
    let agent_script = format!(
        "cat >/dev/null\ncase $TRIBUNAL_TASK in {CONFIRM_REPAIRS} */fix/*)\n\
         sed -i 's/fast/fast: 20 ms/' one.md; echo 'fixes: [{{id: F1, status: FIXED, fix_description: done}}]'; exit;; esac\n\
         case $TRIBUNAL_RUN in\n\
         one-*) echo 'findings: [{{severity: high, description: vague, quote: It shall be fast.}}]';;\n\
         *) until grep -q 20 '{}'; do sleep 0.02; done; {ANSWER_NOTHING} ;; esac\n",
        sandbox.path_of("one.md").display()
    );
    sandbox.write_file("agent.sh", &agent_script);
    for args in [&["init", "-q"][..], &["add", "-A"]] {
        assert!(sandbox.isolated_command("git").args(args).status().unwrap().success());
    }
    let output = sandbox.run_tribunal(&["review", "two.md", "one.md", "--json"]);
    assert!(sandbox.read_file("one.md").contains("fast: 20 ms"), "{}", output.stderr);
    let posted_decisions: Vec<_> =
        output.parse_events().into_iter().filter(|event| event["kind"] == "decision_posted").collect();
    assert_eq!(posted_decisions, [] as [serde_json::Value; 0]);
}

#[test]
fn an_interrupt_lets_all_agents_finish_and_no_further_run_starts() {
    let (sandbox, arrived, mut release) = sandbox_with_waiting_agents(&["one.md", "two.md", "three.md"]);
    let mut child = spawn_tribunal(&sandbox, &["review", "one.md", "two.md", "three.md", "--jobs", "2"]);
    arrived.read_lines(2);
    send_interrupt(&child);
    let mut stderr_reader = BufReader::new(child.stderr.take().unwrap());
    assert_eq!(read_stopping_runs(&mut stderr_reader, 2), ["one", "two"]);
    release.release_agents(2);
    let mut remaining_output = String::new();
    stderr_reader.read_to_string(&mut remaining_output).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(run_states(&sandbox), ["stopped", "stopped"]);
    assert!(remaining_output.contains("not started  three.md · stopped before it started"), "{remaining_output}");
}

#[test]
fn a_second_interrupt_ends_all_runs_also_those_that_wait_for_an_agent() {
    let (sandbox, arrived, _go) = sandbox_with_waiting_agents(&["one.md", "two.md"]);
    let args = ["review", "one.md", "two.md", "--set", "agents.at_once=1"];
    let mut child = spawn_tribunal(&sandbox, &args);
    let working_run = arrived.read_lines(1).remove(0);
    send_interrupt(&child);
    let mut stderr_reader = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !(line.starts_with(&working_run) && line.contains("waiting for 1 agent to finish")) {
        line.clear();
        assert!(stderr_reader.read_line(&mut line).unwrap() > 0, "it ended early");
    }
    send_interrupt(&child);
    let mut remaining_output = String::new();
    stderr_reader.read_to_string(&mut remaining_output).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(run_states(&sandbox), ["stopped", "stopped"], "{remaining_output}");

    sandbox.write_file("agent.sh", ANSWER_NOTHING);
    for run_id in sandbox.run_ids() {
        assert_eq!(sandbox.run_tribunal(&["resume", &run_id]).exit_code, Some(0));
    }
}

/// Takes the lock of a subject as a run of another process would.
fn hold_subject_lock(sandbox: &Sandbox, subject: &str) -> fs::File {
    let lock_name =
        format!(".tribunal/locks/{}.lock", Hash::digest_of(format!("subject {subject}").as_bytes()).short_hex());
    sandbox.write_file(&lock_name, "other-abcd\n");
    let lock_file = fs::File::open(sandbox.path_of(&lock_name)).unwrap();
    lock_file.lock().unwrap();
    lock_file
}

#[test]
fn a_busy_subject_is_reported_and_the_others_are_reviewed() {
    let sandbox = sandbox_with_documents(&["one.md", "two.md"], ANSWER_NOTHING);
    let _held = hold_subject_lock(&sandbox, "one.md");
    let output = sandbox.run_tribunal(&["review", "one.md", "two.md", "--progress", "summary"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    insta::assert_snapshot!(mask_figures(&group_lines_by_run(&sandbox, &output.stderr)), @"
    one      │ error: one.md is already being worked on by run other-abcd
    one      │   Two runs on the same subject would overwrite each other's work.
    one      │   1. check the other run: `tribunal status other-abcd`
    one      │   2. or wait until it has ended
    two-xxxx │ review of two.md · run two-xxxx
    two-xxxx │   round 1: no new findings
    two-xxxx │ resolved: the review found nothing to fix
    two-xxxx │   no findings · 1 round · […]
    two-xxxx │   tracker: .tribunal/reviews/two-issues.md
    two-xxxx │   next: tribunal findings two-xxxx
    two-xxxx │         tribunal log two-xxxx

    2 runs:
      -         not started  one.md is already being worked on by run other-abcd
      two-xxxx  resolved     two.md · no findings
    ");
    // One job at a time gives the same result.
    let output = sandbox.run_tribunal(&["review", "one.md", "two.md", "--jobs", "1", "--progress", "summary"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    insta::assert_snapshot!(mask_figures(&group_lines_by_run(&sandbox, &output.stderr)), @"
    error: one.md is already being worked on by run other-abcd
      Two runs on the same subject would overwrite each other's work.
      1. check the other run: `tribunal status other-abcd`
      2. or wait until it has ended
    review of two.md · run two-xxxx
      round 1: no new findings

    resolved: the review found nothing to fix
      no findings · 1 round · […]
      tracker: .tribunal/reviews/two-issues.md
      next: tribunal findings two-xxxx
            tribunal log two-xxxx

    2 runs:
      -         not started  one.md is already being worked on by run other-abcd
      two-xxxx  resolved     two.md · no findings
    ");
    // The JSON output has the error among the events of the other runs.
    let output = sandbox.run_tribunal(&["review", "one.md", "two.md", "--json"]);
    let events = output.parse_events();
    let error_event = events.iter().find(|event| event["schema"] == "tribunal.error/1").unwrap();
    assert_eq!(error_event["exit"], 2);
    assert_eq!(events.iter().filter(|event| event["kind"] == "run_finished").count(), 1);
}

/// Masks limits, durations and token counts.
fn mask_figures(text: &str) -> String {
    let mask_line = |line: &str| {
        let figures_start = line.find(" tokens · no cost reported").and_then(|position| line[..position].rfind(" · "));
        match figures_start.or_else(|| line.find(" 3 rounds, ")) {
            Some(position) if line[position..].starts_with(" ·") => {
                format!("{} · […]", &line[..position])
            }
            Some(position) => format!("{} […]", &line[..position]),
            None => line.to_string(),
        }
    };
    text.lines().map(mask_line).collect::<Vec<_>>().join("\n").replace("and at once each time", "[…]")
}

#[test]
fn the_worst_exit_code_counts_and_every_line_names_its_run() {
    let agent = "cat >/dev/null\ncase $TRIBUNAL_RUN in one-*) exit 7;; esac\necho 'findings: []'\n";
    let sandbox = sandbox_with_documents(&["one.md", "a-rather-long-name-of-a-file.md"], agent);
    let output = sandbox.run_tribunal(&["review", "a-rather-long-name-of-a-file.md", "one.md"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stderr);
    insta::assert_snapshot!(mask_figures(&group_lines_by_run(&sandbox, &output.stderr)), @"
    a-rather-lon…-xxxx │ review of a-rather-long-name-of-a-file.md · run a-rather-long-name-of-a-xxxx · tribunal 0.1.0
    a-rather-lon…-xxxx │ limits: […]
    a-rather-lon…-xxxx │ agents: mine · tier 0 · goal zero-open
    a-rather-lon…-xxxx │ panel: adversarial (minimal: tier 0)
    a-rather-lon…-xxxx │ round 1 of at most 3
    a-rather-lon…-xxxx │   ✓ adversarial   no findings
    a-rather-lon…-xxxx │   no new findings
    a-rather-lon…-xxxx │   confidence 20 of 100
    a-rather-lon…-xxxx │ resolved: the review found nothing to fix
    a-rather-lon…-xxxx │   no findings · 1 round · […]
    a-rather-lon…-xxxx │   tracker: .tribunal/reviews/a-rather-long-name-of-a-file-issues.md
    a-rather-lon…-xxxx │   next: tribunal findings a-rather-long-name-of-a-xxxx
    a-rather-lon…-xxxx │         tribunal log a-rather-long-name-of-a-xxxx
    one-xxxx           │ review of one.md · run one-xxxx · tribunal 0.1.0
    one-xxxx           │ limits: […]
    one-xxxx           │ agents: mine · tier 0 · goal zero-open
    one-xxxx           │ panel: adversarial (minimal: tier 0)
    one-xxxx           │ round 1 of at most 3
    one-xxxx           │   ↻ adversarial   retrying: agent `mine` exited with code 7
    one-xxxx           │   ✗ adversarial   failed: agent `mine` exited with code 7 (failed twice, each time immediately)
    one-xxxx           │ failed: no reviewer answered: agent `mine` exited with code 7 (failed twice, each time immediately)
    one-xxxx           │   no findings · 0 rounds · […]
    one-xxxx           │   tracker: .tribunal/reviews/one-issues.md
    one-xxxx           │   next: tribunal inspect transcript one-xxxx round-1/review/adversarial/again  (what mine printed)
    one-xxxx           │         tribunal resume one-xxxx                                               (add --reload for changed settings)
    one-xxxx           │         tribunal discard one-xxxx                                              (give up this run)

    2 runs:
      a-rather-long-name-of-a-xxxx  resolved     a-rather-long-name-of-a-file.md · no findings
      one-xxxx                      failed       one.md · no findings
    ");
}

#[test]
fn a_subject_that_is_named_twice_is_reviewed_once() {
    let sandbox = sandbox_with_documents(&["one.md"], ANSWER_NOTHING);
    let output = sandbox.run_tribunal(&["review", "one.md", "./one.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(
        output.stderr.starts_with("note: one.md was given more than once; reviewing it once\n"),
        "{}",
        output.stderr
    );
    assert_eq!(sandbox.run_ids().len(), 1);
}

#[test]
fn files_with_the_same_name_have_a_tracker_each() {
    let (sandbox, arrived, mut release) = sandbox_with_waiting_agents(&["a/index.md", "b/index.md"]);
    let child = spawn_tribunal(&sandbox, &["review", "a/index.md", "b/index.md", "--json"]);
    arrived.read_lines(2);
    release.release_agents(2);
    let output = CommandOutput::from_output(child.wait_with_output().unwrap());
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let mut titles: Vec<String> = sandbox.run_json(&["runs"])["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run_summary| {
            sandbox.read_file(run_summary["tracker"].as_str().unwrap()).lines().next().unwrap().to_string()
        })
        .collect();
    titles.sort();
    assert!(titles[0].ends_with("a/index.md") && titles[1].ends_with("b/index.md"), "{titles:?}");
}

#[test]
fn a_dry_run_shows_how_many_runs_would_work_at_once() {
    let sandbox = sandbox_with_documents(&SIX_FILES, ANSWER_NOTHING);
    let last_line = |args: &[&str]| {
        let output = sandbox.run_tribunal(&[&["review", "--dry-run"], args, &SIX_FILES[..]].concat());
        output.stdout.lines().last().unwrap().to_string()
    };
    assert_eq!(last_line(&[]), "6 runs, 3 in parallel; at most 6 agents at a time");
    assert_eq!(last_line(&["--jobs", "1"]), "6 runs, one at a time; at most 6 agents at a time");
    assert_eq!(
        last_line(&["--jobs", "9", "--set", "agents.at_once=1"]),
        "6 runs, 6 in parallel; at most 1 agent at a time"
    );
    let plans = sandbox.run_tribunal(&["review", "--dry-run", "--json", "one.md", "two.md"]).stdout;
    let plans = serde_json::Deserializer::from_str(&plans).into_iter::<serde_json::Value>();
    let plans: Vec<_> = plans.map(Result::unwrap).collect();
    assert_eq!(plans.len(), 2);
    assert!(plans.iter().all(|plan| plan["runs_at_once"] == 2 && plan["agents_at_once"] == 6), "{plans:?}");
    let refused_output = sandbox.run_tribunal(&["review", "one.md", "--jobs", "0"]);
    assert_eq!(refused_output.exit_code, Some(2), "{}", refused_output.stdout);
    assert!(refused_output.stderr.contains("--jobs"), "{}", refused_output.stderr);
}

#[test]
fn detached_runs_work_side_by_side_and_a_run_that_cannot_start_is_reported() {
    let (sandbox, arrived, mut release) = sandbox_with_waiting_agents(&["one.md", "two.md", "three.md"]);
    let _held = hold_subject_lock(&sandbox, "three.md");
    let review_output = sandbox.run_tribunal(&["review", "one.md", "two.md", "three.md", "--detach"]);
    assert_eq!(review_output.exit_code, Some(0), "{}", review_output.stderr);
    assert!(review_output.stdout.contains("2 more subjects follow, at most 3 at a time"), "{}", review_output.stdout);
    arrived.read_lines(2);
    release.release_agents(2);
    for run_id in sandbox.run_ids() {
        // Following the log ends with the run.
        sandbox.run_tribunal(&["log", &run_id, "--follow"]);
    }
    assert_eq!(run_states(&sandbox), ["resolved", "resolved"]);
    // This line is written last, after all runs have ended.
    while !sandbox.read_file(".tribunal/logs/detached.log").contains("2. or wait until it has ended\n") {}
    let detached_log = sandbox.read_file(".tribunal/logs/detached.log");
    assert!(
        detached_log.contains("three      │ error: three.md is already being worked on by run other-abcd"),
        "{detached_log}"
    );
}
