//! Several subjects in one command: parallel runs, shared agents, interrupts, refusals, and grouped output.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tribunal_core::ids::Hash;

use crate::common::{Ran, Sandbox};

const NOTHING: &str = "echo 'findings: []'\n";
const SIX: [&str; 6] = ["one.md", "two.md", "three.md", "four.md", "five.md", "six.md"];

/// A project with these documents and a shell script as the agent. A task that waits in vain times out.
fn documents(files: &[&str], agent: &str) -> Sandbox {
    let sandbox = Sandbox::with_agent(agent);
    let settings = sandbox.read("tribunal.yaml").replace("tasks: {", "tasks: {reviewer_timeout: 60, ");
    sandbox.write("tribunal.yaml", &settings);
    for file in files {
        sandbox.write(file, &format!("# {file}\n\nIt shall be fast.\n"));
    }
    sandbox
}

/// A named pipe in the project. It is open for reading and writing, so that neither side sees its end.
struct Pipe {
    path: PathBuf,
    file: fs::File,
}

impl Pipe {
    fn new(sandbox: &Sandbox, name: &str) -> Pipe {
        let path = sandbox.path(name);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        Pipe { path, file }
    }

    /// Blocks until `line_count` lines have arrived.
    fn lines(&self, number: usize) -> Vec<String> {
        let mut lines = BufReader::new(&self.file).lines();
        (0..number).map(|_| lines.next().unwrap().unwrap()).collect()
    }

    fn write(&mut self, number: usize) {
        self.file.write_all("go\n".repeat(number).as_bytes()).unwrap();
    }
}

/// A project whose agents report that they have started, and wait for a line before they answer.
fn meeting(files: &[&str]) -> (Sandbox, Pipe, Pipe) {
    let sandbox = documents(files, "");
    let (here, go) = (Pipe::new(&sandbox, "here"), Pipe::new(&sandbox, "go"));
    let agent = format!(
        "cat >/dev/null\necho \"$TRIBUNAL_RUN\" >'{}'\nread word <'{}'\n{NOTHING}",
        here.path.display(),
        go.path.display()
    );
    sandbox.write("agent.sh", &agent);
    (sandbox, here, go)
}

fn start(sandbox: &Sandbox, args: &[&str]) -> Child {
    sandbox.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
}

fn states(sandbox: &Sandbox) -> Vec<String> {
    let runs = sandbox.json(&["runs"])["runs"].as_array().cloned().unwrap();
    runs.iter().map(|run| run["state"].as_str().unwrap().to_string()).collect()
}

/// Groups the lines by run, keeps the order within each run, and masks what differs in run ids.
fn by_run(sandbox: &Sandbox, text: &str) -> String {
    let mut text = text.to_string();
    for run in sandbox.runs() {
        // The dash is included because the four characters alone may occur in other words.
        let (_, tail) = run.rsplit_once('-').unwrap();
        text = text.replace(&format!("-{tail}"), "-xxxx");
    }
    let (mut labelled, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains(" │ "));
    labelled.sort_by_key(|line| line.split(" │ ").next());
    [labelled, rest].concat().join("\n")
}

#[test]
fn two_runs_are_at_work_at_the_same_time() {
    let sandbox = documents(&["one.md", "two.md"], "");
    let meet = Pipe::new(&sandbox, "meet");
    // An agent that runs alone has no partner at the other end of the pipe and is ended by its timeout.
    drop(meet.file);
    let agent = format!(
        "cat >/dev/null\ncase $TRIBUNAL_RUN in one-*) echo hello >'{0}';; *) read word <'{0}';; esac\n{NOTHING}",
        meet.path.display()
    );
    sandbox.write("agent.sh", &agent);
    let ran = sandbox.run(&["review", "one.md", "two.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(states(&sandbox), ["resolved", "resolved"]);
}

#[test]
fn six_runs_write_one_journal_at_once() {
    let (sandbox, here, mut go) = meeting(&SIX);
    let child = start(&sandbox, &[&["review", "--jobs", "6", "--json"], &SIX[..]].concat());
    let mut there = here.lines(6);
    there.sort();
    there.dedup();
    assert_eq!(there.len(), 6, "six runs have an agent each");
    go.write(6);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(states(&sandbox), ["resolved"; 6]);
    // The printed events are the recorded ones: all entries of every run, in order.
    for run in there {
        let shown = ran.events().into_iter().filter(|event| event["run"] == *run);
        let numbers: Vec<u64> = shown.map(|event| event["seq"].as_u64().unwrap()).collect();
        let recorded = sandbox.events(&["log", &run]);
        let recorded: Vec<u64> = recorded.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(numbers, recorded, "{run}");
    }
}

#[test]
fn one_agent_at_a_time_is_one_of_all_runs_together() {
    let sandbox = documents(&SIX, "");
    let agent = format!(
        "cat >/dev/null\ncd '{}'\nmkdir busy || touch overlap\nseq 1 50000 | sort -R | sort -n >/dev/null\nrmdir busy\n{NOTHING}",
        sandbox.root().display()
    );
    sandbox.write("agent.sh", &agent);
    let ran = sandbox.run(&[&["review", "--jobs=6", "--set", "agents.at_once=1"], &SIX[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(states(&sandbox), ["resolved"; 6]);
    assert!(!sandbox.path("overlap").exists());
}

#[test]
fn what_one_run_lands_is_no_stranger_s_doing_to_another() {
    let sandbox = documents(&["one.md", "two.md"], "");
    let agent = format!(
        "cat >/dev/null\ncase $TRIBUNAL_TASK in */fix/*)\n\
         echo 'In 20 ms.' >>one.md; echo 'fixes: [{{id: F1, status: FIXED, fix_description: done}}]'; exit;; esac\n\
         case $TRIBUNAL_RUN in\n\
         one-*) echo 'findings: [{{severity: high, description: vague, quote: It shall be fast.}}]';;\n\
         *) until grep -q 20 '{}'; do sleep 0.02; done; {NOTHING} ;; esac\n",
        sandbox.path("one.md").display()
    );
    sandbox.write("agent.sh", &agent);
    for args in [&["init", "-q"][..], &["add", "-A"]] {
        assert!(sandbox.wrapped("git").args(args).status().unwrap().success());
    }
    let ran = sandbox.run(&["review", "two.md", "one.md", "--json"]);
    assert!(sandbox.read("one.md").contains("In 20 ms."), "{}", ran.err);
    let asked: Vec<_> = ran.events().into_iter().filter(|event| event["kind"] == "decision_posted").collect();
    assert_eq!(asked, [] as [serde_json::Value; 0]);
}

#[test]
fn an_interrupt_lets_all_agents_finish_and_no_further_run_starts() {
    let (sandbox, here, mut go) = meeting(&["one.md", "two.md", "three.md"]);
    let mut child = start(&sandbox, &["review", "one.md", "two.md", "three.md", "--jobs", "2"]);
    here.lines(2);
    interrupt(&child);
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let (mut line, mut told) = (String::new(), Vec::new());
    while told.len() < 2 {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended early");
        told.extend(line.split_once("stopping: 1 agent may finish").map(|(run, _)| run[..3].to_string()));
    }
    told.sort();
    assert_eq!(told, ["one", "two"]);
    go.write(2);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(states(&sandbox), ["stopped", "stopped"]);
    assert!(rest.contains("not started  three.md · stopped before its turn"), "{rest}");
}

#[test]
fn a_second_interrupt_ends_all_also_those_who_wait_for_an_agent() {
    let (sandbox, here, _go) = meeting(&["one.md", "two.md"]);
    let args = ["review", "one.md", "two.md", "--set", "agents.at_once=1"];
    let mut child = start(&sandbox, &args);
    let at_work = here.lines(1).remove(0);
    interrupt(&child);
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !(line.starts_with(&at_work) && line.contains("stopping: 1 agent may finish")) {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended early");
    }
    interrupt(&child);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(states(&sandbox), ["stopped", "stopped"], "{rest}");

    sandbox.write("agent.sh", NOTHING);
    for run in sandbox.runs() {
        assert_eq!(sandbox.run(&["resume", &run]).code, Some(0));
    }
}

/// Takes the lock of a subject as a run of another process would.
fn busy(sandbox: &Sandbox, subject: &str) -> fs::File {
    let name = format!(".tribunal/locks/{}.lock", Hash::of(format!("subject {subject}").as_bytes()).short());
    sandbox.write(&name, "other-abcd\n");
    let file = fs::File::open(sandbox.path(&name)).unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn a_busy_subject_is_said_and_the_others_are_reviewed() {
    let sandbox = documents(&["one.md", "two.md"], NOTHING);
    let _held = busy(&sandbox, "one.md");
    let ran = sandbox.run(&["review", "one.md", "two.md", "--progress", "summary"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    insta::assert_snapshot!(without_figures(&by_run(&sandbox, &ran.err)), @r"
    one      │ [!] one.md is already under review by run other-abcd
    one      │     Two runs on one subject would undo each other's work.
    one      │     1. watch the other one: tribunal status other-abcd
    one      │     2. or wait until it has ended
    two-xxxx │ review of two.md · run two-xxxx
    two-xxxx │   round 1: a dry pass: nothing new
    two-xxxx │ resolved · the goal is met: a pass over the final text was dry
    two-xxxx │   no findings · 1 round · […]
    two-xxxx │   tracker: .tribunal/reviews/two-issues.md
    two-xxxx │   next: tribunal findings two-xxxx
    two-xxxx │         tribunal log two-xxxx

    2 runs:
      -         not started  one.md is already under review by run other-abcd
      two-xxxx  resolved     two.md · no findings
    ");
    // One job at a time gives the same result.
    let ran = sandbox.run(&["review", "one.md", "two.md", "--jobs", "1", "--progress", "summary"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    insta::assert_snapshot!(without_figures(&by_run(&sandbox, &ran.err)), @r"
    [!] one.md is already under review by run other-abcd
        Two runs on one subject would undo each other's work.
        1. watch the other one: tribunal status other-abcd
        2. or wait until it has ended
    review of two.md · run two-xxxx
      round 1: a dry pass: nothing new

    resolved · the goal is met: a pass over the final text was dry
      no findings · 1 round · […]
      tracker: .tribunal/reviews/two-issues.md
      next: tribunal findings two-xxxx
            tribunal log two-xxxx

    2 runs:
      -         not started  one.md is already under review by run other-abcd
      two-xxxx  resolved     two.md · no findings
    ");
    // The JSON output has the error among the events of the other runs.
    let ran = sandbox.run(&["review", "one.md", "two.md", "--json"]);
    let events = ran.events();
    let complaint = events.iter().find(|event| event["schema"] == "tribunal.error/1").unwrap();
    assert_eq!(complaint["exit"], 2);
    assert_eq!(events.iter().filter(|event| event["kind"] == "run_finished").count(), 1);
}

/// Masks limits, durations and token counts.
fn without_figures(text: &str) -> String {
    let line = |line: &str| {
        let used = line.find(" tokens · no cost reported").and_then(|at| line[..at].rfind(" · "));
        match used.or_else(|| line.find(" 3 rounds, ")) {
            Some(at) if line[at..].starts_with(" ·") => format!("{} · […]", &line[..at]),
            Some(at) => format!("{} […]", &line[..at]),
            None => line.to_string(),
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n").replace("and at once each time", "[…]")
}

#[test]
fn the_worst_exit_code_counts_and_every_line_has_its_run() {
    let agent = "cat >/dev/null\ncase $TRIBUNAL_RUN in one-*) exit 7;; esac\necho 'findings: []'\n";
    let sandbox = documents(&["one.md", "a-rather-long-name-of-a-file.md"], agent);
    let ran = sandbox.run(&["review", "a-rather-long-name-of-a-file.md", "one.md"]);
    assert_eq!(ran.code, Some(5), "{}", ran.err);
    insta::assert_snapshot!(without_figures(&by_run(&sandbox, &ran.err)), @r"
    a-rather-lon…-xxxx │ review of a-rather-long-name-of-a-file.md · run a-rather-long-name-of-a-xxxx · tribunal 0.1.0
    a-rather-lon…-xxxx │ limits: […]
    a-rather-lon…-xxxx │ agents: mine · tier 0 · goal zero-open
    a-rather-lon…-xxxx │ panel: adversarial (minimal: tier 0)
    a-rather-lon…-xxxx │ round 1 of at most 3
    a-rather-lon…-xxxx │   ✓ adversarial   raised nothing
    a-rather-lon…-xxxx │   a dry pass: nothing new
    a-rather-lon…-xxxx │   confidence 20: reviewers 10/25; one source only; validation, memory, party not consulted
    a-rather-lon…-xxxx │ resolved · the goal is met: a pass over the final text was dry
    a-rather-lon…-xxxx │   no findings · 1 round · […]
    a-rather-lon…-xxxx │   tracker: .tribunal/reviews/a-rather-long-name-of-a-file-issues.md
    a-rather-lon…-xxxx │   next: tribunal findings a-rather-long-name-of-a-xxxx
    a-rather-lon…-xxxx │         tribunal log a-rather-long-name-of-a-xxxx
    one-xxxx           │ review of one.md · run one-xxxx · tribunal 0.1.0
    one-xxxx           │ limits: […]
    one-xxxx           │ agents: mine · tier 0 · goal zero-open
    one-xxxx           │ panel: adversarial (minimal: tier 0)
    one-xxxx           │ round 1 of at most 3
    one-xxxx           │   ↻ adversarial   tried once more: agent `mine` ended with exit code 7
    one-xxxx           │   ✗ adversarial   incomplete: agent `mine` ended with exit code 7; twice, […]
    one-xxxx           │ failed · an agent or the environment failed: no reviewer answered: agent `mine` ended with exit code 7; twice, […]
    one-xxxx           │   no findings · 0 rounds · […]
    one-xxxx           │   tracker: .tribunal/reviews/one-issues.md
    one-xxxx           │   next: tribunal doctor    (what is missing, and what mends it)
    one-xxxx           │         tribunal resume one-xxxx    (--reload, if you changed tribunal.yaml)

    2 runs:
      a-rather-long-name-of-a-xxxx  resolved     a-rather-long-name-of-a-file.md · no findings
      one-xxxx                      failed       one.md · no findings
    ");
}

#[test]
fn what_is_named_twice_is_reviewed_once() {
    let sandbox = documents(&["one.md"], NOTHING);
    let ran = sandbox.run(&["review", "one.md", "./one.md"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.starts_with("[i] one.md is named more than once; it is reviewed once\n"), "{}", ran.err);
    assert_eq!(sandbox.runs().len(), 1);
}

#[test]
fn files_of_one_name_have_a_tracker_each() {
    let (sandbox, here, mut go) = meeting(&["a/index.md", "b/index.md"]);
    let child = start(&sandbox, &["review", "a/index.md", "b/index.md", "--json"]);
    here.lines(2);
    go.write(2);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let mut titles: Vec<String> = sandbox.json(&["runs"])["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| sandbox.read(run["tracker"].as_str().unwrap()).lines().next().unwrap().to_string())
        .collect();
    titles.sort();
    assert!(titles[0].ends_with("a/index.md") && titles[1].ends_with("b/index.md"), "{titles:?}");
}

#[test]
fn a_dry_run_says_how_many_would_work_at_once() {
    let sandbox = documents(&SIX, NOTHING);
    let said = |args: &[&str]| {
        let ran = sandbox.run(&[&["review", "--dry-run"], args, &SIX[..]].concat());
        ran.out.lines().last().unwrap().to_string()
    };
    assert_eq!(said(&[]), "6 runs, 3 at once; at most 6 agents at a time");
    assert_eq!(said(&["--jobs", "1"]), "6 runs, one after the other; at most 6 agents at a time");
    assert_eq!(
        said(&["--jobs", "9", "--set", "agents.at_once=1"]),
        "6 runs, 6 at once; at most 1 agent at a time"
    );
    let plans = sandbox.run(&["review", "--dry-run", "--json", "one.md", "two.md"]).out;
    let plans = serde_json::Deserializer::from_str(&plans).into_iter::<serde_json::Value>();
    let plans: Vec<_> = plans.map(Result::unwrap).collect();
    assert_eq!(plans.len(), 2);
    assert!(plans.iter().all(|plan| plan["runs_at_once"] == 2 && plan["agents_at_once"] == 6), "{plans:?}");
    let refused = sandbox.run(&["review", "one.md", "--jobs", "0"]);
    assert_eq!(refused.code, Some(2), "{}", refused.out);
    assert!(refused.err.contains("--jobs"), "{}", refused.err);
}

#[test]
fn several_that_are_detached_work_side_by_side_and_what_cannot_start_is_said() {
    let (sandbox, here, mut go) = meeting(&["one.md", "two.md", "three.md"]);
    let _held = busy(&sandbox, "three.md");
    let said = sandbox.run(&["review", "one.md", "two.md", "three.md", "--detach"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.out.contains("2 more subjects follow, at most 3 at once"), "{}", said.out);
    here.lines(2);
    go.write(2);
    for run in sandbox.runs() {
        // Following the log ends with the run.
        sandbox.run(&["log", &run, "--follow"]);
    }
    assert_eq!(states(&sandbox), ["resolved", "resolved"]);
    // This line is written last, after all runs have ended.
    while !sandbox.read(".tribunal/logs/detached.log").contains("2. or wait until it has ended\n") {}
    let log = sandbox.read(".tribunal/logs/detached.log");
    assert!(log.contains("three      │ [!] three.md is already under review by run other-abcd"), "{log}");
}
