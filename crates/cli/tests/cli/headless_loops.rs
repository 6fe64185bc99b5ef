//! `tribunal loop run` from outside: what it prints, what it asks, what it leaves in the repository of the user.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;
use tribunal_engine::ids::RunId;
use tribunal_store::{EntryBatch, NewEntry, Store};
use tribunal_workflows::{
    loop_run::{breaker::BreakerPhase, event::LoopEvent},
    runs::types::{EntryDraft, RunEvent},
};

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::{commit_all, count_calls, loop_sandbox, prompt_of, run_git, workspaces_left, write_agent},
};

/// Writes a file in every iteration, and is done after the second.
const TWO_STEPS: &str = "echo \"line $n\" > out$n.txt\necho \"Wrote line $n.\"\n[ $n -lt 2 ] || promise\n";
/// Writes a file in every iteration and is never done.
const ENDLESS: &str = "echo \"line $n\" > out$n.txt\necho \"Wrote line $n.\"\n";

fn run_loop(sandbox: &Sandbox, more_args: &[&str]) -> CommandOutput {
    sandbox.run_tribunal(&[&["loop", "run", "-p", "Write two lines."], more_args].concat())
}

/// Replaces what differs from run to run: ids, commits, paths, times and tokens.
fn mask_output(sandbox: &Sandbox, text: &str) -> String {
    let mut masked = sandbox.normalize_output(text);
    for commit in run_git(sandbox, &["log", "--all", "--format=%h", "--abbrev=10"]).lines() {
        masked = masked.replace(commit, "[commit]");
    }
    let cache_dir = sandbox.home_dir().join("cache/tribunal/workspaces");
    for entry in fs::read_dir(&cache_dir).into_iter().flatten().flatten() {
        masked = masked.replace(&entry.path().display().to_string(), "[cache]");
    }
    masked.lines().map(|line| format!("{}\n", wrap_long_line(&mask_usage(line)))).collect()
}

/// Breaks a long line between its parts, so that a snapshot of it stays readable.
fn wrap_long_line(line: &str) -> String {
    if line.chars().count() > 120 { line.replace("; ", ";\n      ") } else { line.to_string() }
}

/// Replaces how many tokens something cost.
fn mask_usage(line: &str) -> String {
    let before_usage = line.split_once(" tokens · no cost reported · ").map(|(before_usage, _)| before_usage);
    match before_usage.and_then(|before_usage| before_usage.rsplit_once(" · ")) {
        Some((result, _)) => format!("{result} · [usage]"),
        None => line.to_string(),
    }
}

fn assert_exit(output: &CommandOutput, exit_code: i32) {
    assert_eq!(output.exit_code, Some(exit_code), "{}{}", output.stdout, output.stderr);
}

fn call_count(sandbox: &Sandbox) -> usize {
    count_calls(sandbox).values().sum()
}

fn subjects_of(sandbox: &Sandbox, branch: &str) -> Vec<String> {
    run_git(sandbox, &["log", "--format=%s", branch]).lines().map(String::from).collect()
}

/// Answers the first question of the last run and resumes it.
fn answer_and_resume(sandbox: &Sandbox, choice: &str) -> CommandOutput {
    answer_question(sandbox, "D1", choice)
}

/// Answers a question of the last run and resumes it.
fn answer_question(sandbox: &Sandbox, decision_id: &str, choice: &str) -> CommandOutput {
    let run_id = sandbox.last_run_id();
    let answered = sandbox.run_tribunal(&["decisions", &format!("{run_id}.{decision_id}"), choice]);
    assert_exit(&answered, 0);
    sandbox.run_tribunal(&["resume", &run_id])
}

#[test]
fn a_loop_prints_each_iteration_and_lands_on_the_branch() {
    let sandbox = loop_sandbox(TWO_STEPS);
    sandbox.append_setting("checks: [\"test ! -e bad\"]");
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 0);
    insta::assert_snapshot!(mask_output(&sandbox, &output.stderr), @"
    loop of Write two lines. · run [run] · tribunal 0.1.0
    limits: 100 iterations, 5 failures in a row, 240 min, $10.00 (or 2M tokens if no cost is reported), 1,000 calls per hour in all runs
    agents: worker · tier 0 · until <promise>COMPLETE</promise> · clone, branch main
    workspace: [cache]/[run]/work/tree at [commit]
      ✓ checks pass on the untouched workspace (1 check, [time])
      ✓ iteration 1: 1 file changed in all · Wrote line 1.
      ✓ iteration 2: 2 files changed in all · Wrote line 2.
        commit [commit] after iteration 2
      ✓ main is at [commit] now, and your checkout with it

    resolved: the task is done after 2 iterations
      2 iterations, 2 files changed, 1 commit on main · [usage]
      next: tribunal log [run]
    ");
    assert_eq!(output.stdout, "");
    assert_eq!(subjects_of(&sandbox, "main"), ["Loop over Write two lines: done after 2 iterations", "Begin"]);
    assert_eq!(sandbox.read_file("out2.txt"), "line 2\n");
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), "");
    assert_eq!(workspaces_left(&sandbox), Vec::<PathBuf>::new());
    let run_id = sandbox.last_run_id();
    assert!(sandbox.run_tribunal(&["runs"]).stdout.contains("1 commit on main"));
    assert!(sandbox.run_tribunal(&["log", &run_id]).stdout.contains("main is at"));
    insta::assert_snapshot!(mask_output(&sandbox, &sandbox.run_tribunal(&["status"]).stdout), @"
    [run] resolved · Write two lines.
      the task is done after 2 iterations
      2 iterations, 2 files changed, 1 commit on main · [usage]
      iteration 2: 2 files changed in all · Wrote line 2.
      next: tribunal log [run]
    ");
}

#[test]
fn the_last_line_of_json_is_the_end_of_the_loop() {
    let sandbox = loop_sandbox(TWO_STEPS);
    let output = run_loop(&sandbox, &["--json"]);
    assert_exit(&output, 0);
    let last_event = output.parse_events().pop().unwrap();
    let summary = [&last_event["kind"], &last_event["reason"], &last_event["landed_on"]];
    assert_eq!(summary, ["run_finished", "goal_met", "main"], "{last_event}");
    assert_eq!(last_event["iterations"], 2);
}

#[test]
fn a_promise_with_a_red_check_is_refused_and_the_next_prompt_says_why() {
    let sandbox = loop_sandbox("case $n in 1) echo x > bad; promise ;; *) rm bad; echo y > good; promise ;; esac\n");
    sandbox.append_setting("checks: [\"if test -e bad; then echo the bad file is there; exit 3; fi\"]");
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 0);
    assert!(output.stderr.contains("the agent said that the task is done, but `if test -e bad;"), "{}", output.stderr);
    let prompt = prompt_of(&sandbox, 2);
    assert!(prompt.contains("You said that the task was done. It is not: `if test -e bad;"), "{prompt}");
    assert!(prompt.contains("\nthe bad file is there\n"), "{prompt}");
    assert!(!prompt_of(&sandbox, 1).contains("You said"));
}

#[test]
fn a_promise_without_any_change_is_refused() {
    let sandbox = loop_sandbox("[ $n = 1 ] || echo x > out.txt\npromise\n");
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 0);
    assert!(
        output.stderr.contains("the agent said that the task is done, but nothing was changed since the loop began"),
        "{}",
        output.stderr
    );
    assert!(prompt_of(&sandbox, 2).contains("It is not: nothing was changed since the loop began."));
}

#[test]
fn a_check_whose_program_is_missing_costs_no_call() {
    let sandbox = loop_sandbox(TWO_STEPS);
    sandbox.append_setting("checks: [[no-such-program-here, x]]");
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 5);
    assert!(output.stderr.contains("`no-such-program-here x` could not be run"), "{}", output.stderr);
    assert_eq!(call_count(&sandbox), 0);
}

#[test]
fn a_red_baseline_waits_until_the_user_has_repaired_it() {
    let sandbox = loop_sandbox(TWO_STEPS);
    sandbox.append_setting("checks: [\"echo looking for repaired; test -e repaired\"]");
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 3);
    insta::assert_snapshot!(mask_output(&sandbox, &output.stderr), @"
    loop of Write two lines. · run [run] · tribunal 0.1.0
    limits: 100 iterations, 5 failures in a row, 240 min, $10.00 (or 2M tokens if no cost is reported), 1,000 calls per hour in all runs
    agents: worker · tier 0 · until <promise>COMPLETE</promise> · clone, branch main
    workspace: [cache]/[run]/work/tree at [commit]
      ✗ `echo looking for repaired; test -e repaired` failed with exit code 1
        looking for repaired

    waiting: a check fails on the untouched project (`echo looking for repaired;
          test -e repaired` failed with exit code 1: looking for repaired;
          your checkout has what the workspace lacks: tribunal.yaml;
          repair it and resume, or start a new run with --skip-baseline)
      0 iterations, 0 files changed · [usage]
      workspace  [cache]/[run]/work/tree
      next: tribunal resume [run]                                (after you have repaired them; the checks run again)
            tribunal resume [run] --reload --set baseline=false  (go on without them, like `--skip-baseline`)
            tribunal discard [run]                               (give up this run)
    ");
    assert_eq!(call_count(&sandbox), 0);
    let run_id = sandbox.last_run_id();
    assert_exit(&sandbox.run_tribunal(&["resume", &run_id]), 3);
    sandbox.write_file("repaired", "");
    commit_all(&sandbox, "Repair");
    let output = sandbox.run_tribunal(&["resume", &run_id]);
    assert_exit(&output, 0);
    assert_eq!(subjects_of(&sandbox, "main")[1..], ["Repair", "Begin"], "it began with the repaired commit");
    assert_eq!(workspaces_left(&sandbox), Vec::<PathBuf>::new());
}

#[test]
fn a_red_baseline_can_be_skipped() {
    let sandbox = loop_sandbox("echo x > repaired\npromise\n");
    sandbox.append_setting("checks: [\"test -e repaired\"]");
    assert_exit(&run_loop(&sandbox, &["--skip-baseline"]), 0);
}

#[test]
fn work_that_the_iteration_limit_halted_can_be_accepted() {
    let sandbox = loop_sandbox(ENDLESS);
    let output = run_loop(&sandbox, &["--max-iterations", "2"]);
    assert_exit(&output, 4);
    insta::assert_snapshot!(mask_output(&sandbox, &output.stderr), @"
    loop of Write two lines. · run [run] · tribunal 0.1.0
    limits: 2 iterations, 5 failures in a row, 240 min, $10.00 (or 2M tokens if no cost is reported), 1,000 calls per hour in all runs
    agents: worker · tier 0 · until <promise>COMPLETE</promise> · clone, branch main
    workspace: [cache]/[run]/work/tree at [commit]
      ✓ iteration 1: 1 file changed in all · Wrote line 1.
      ✓ iteration 2: 2 files changed in all · Wrote line 2.
        commit [commit] after iteration 2
      ? D1 needs an answer: iteration limit reached (2 iterations of at most 2)

    halted: iteration limit reached (2 iterations of at most 2)
      2 iterations, 2 files changed, work kept as [commit] · [usage]
      remaining: 0 iterations, 5 failures, [time], $10.00, 2M tokens
      workspace  [cache]/[run]/work/tree
      question D1: iteration limit reached (2 iterations of at most 2)
      next: tribunal decisions [run].D1 ANSWER  (more, accept, end)
            tribunal resume [run]
            tribunal log [run]                  (what each iteration did)
    ");
    assert_eq!(subjects_of(&sandbox, "main"), ["Begin"], "nothing lands by itself");
    let output = answer_and_resume(&sandbox, "accept");
    assert_exit(&output, 0);
    assert!(output.stderr.contains("resolved: you accepted the work after 2 iterations\n"), "{}", output.stderr);
    assert_eq!(subjects_of(&sandbox, "main"), ["Loop over Write two lines: up to iteration 2", "Begin"]);
    assert_eq!(workspaces_left(&sandbox), Vec::<PathBuf>::new());
}

#[test]
fn work_of_a_loop_that_was_ended_is_kept_as_a_commit() {
    let sandbox = loop_sandbox(ENDLESS);
    assert_exit(&run_loop(&sandbox, &["--max-iterations", "2"]), 4);
    let output = answer_and_resume(&sandbox, "end");
    let run_id = sandbox.last_run_id();
    let kept_commit = run_git(&sandbox, &["rev-parse", "--short=10", &format!("refs/tribunal/work/{run_id}/work")]);
    let advice = format!("take it with `git merge {}`", kept_commit.trim());
    assert!(output.stderr.contains(&advice), "{}", output.stderr);
    assert_eq!(workspaces_left(&sandbox), Vec::<PathBuf>::new());
    assert!(!output.stderr.contains("workspace  "), "{}", output.stderr);
    run_git(&sandbox, &["merge", "-q", kept_commit.trim()]);
    assert_eq!(sandbox.read_file("out2.txt"), "line 2\n");
}

#[test]
fn more_iterations_can_be_granted() {
    let sandbox = loop_sandbox("echo $n > out.txt\n[ $n -lt 3 ] || promise\n");
    assert_exit(&run_loop(&sandbox, &["--max-iterations", "2"]), 4);
    assert_exit(&sandbox.run_tribunal(&["resume", &sandbox.last_run_id()]), 4);
    assert_exit(&answer_and_resume(&sandbox, "more"), 0);
    assert!(prompt_of(&sandbox, 3).contains("This is iteration 3 of at most 4 of a loop"));
    assert_eq!(sandbox.read_file("out.txt"), "3\n");
}

#[test]
fn the_breaker_opens_after_idle_iterations_and_stops_later_loops() {
    let sandbox = loop_sandbox("echo \"I think about step $n.\"\n");
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 4);
    assert!(output.stderr.contains("circuit breaker open: 3 iterations in a row changed nothing"), "{}", output.stderr);
    assert_eq!(call_count(&sandbox), 3);
    let first_run = sandbox.last_run_id();
    let breaker_text = sandbox.run_tribunal(&["breaker"]).stdout;
    assert!(breaker_text.starts_with("open: 3 iterations in a row changed nothing\n"), "{breaker_text}");
    assert!(breaker_text.contains(&first_run), "{breaker_text}");
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 4);
    assert!(output.stderr.contains("to try again at once: `tribunal breaker reset`"), "{}", output.stderr);
    assert_eq!(call_count(&sandbox), 3, "no agent was asked");
    let second_run = sandbox.last_run_id();
    assert_exit(&sandbox.run_tribunal(&["breaker", "reset"]), 0);
    assert!(sandbox.run_tribunal(&["breaker"]).stdout.starts_with("closed"));
    write_agent(&sandbox, TWO_STEPS);
    assert_exit(&sandbox.run_tribunal(&["resume", &second_run]), 0);
}

#[test]
fn the_run_that_advised_to_reset_the_breaker_goes_on_after_that() {
    let sandbox = loop_sandbox("echo \"I think about step $n.\"\n");
    let open_breaker = || {
        write_agent(&sandbox, "echo \"I think about step $n.\"\n");
        let output = run_loop(&sandbox, &[]);
        assert_exit(&output, 4);
        assert!(output.stderr.contains("`tribunal breaker reset`"), "{}", output.stderr);
        assert_exit(&sandbox.run_tribunal(&["breaker", "reset"]), 0);
        write_agent(&sandbox, "echo $n >> out.txt\npromise\n");
        sandbox.last_run_id()
    };
    let run_id = open_breaker();
    let entry_count = read_entries(&sandbox, &run_id).len();
    assert_exit(&sandbox.run_tribunal(&["breaker", "reset"]), 0);
    assert_eq!(read_entries(&sandbox, &run_id).len(), entry_count, "nothing is written into its journal");
    assert_exit(&sandbox.run_tribunal(&["resume", &run_id]), 0);
    assert_eq!(sandbox.run_json(&["decisions"])["decisions"].as_array().unwrap().len(), 0, "the question is withdrawn");
    open_breaker();
    assert_exit(&answer_and_resume(&sandbox, "more"), 0);
    open_breaker();
    let ended = answer_and_resume(&sandbox, "end");
    assert_exit(&ended, 0);
    assert!(!ended.stderr.contains("this build does not request"), "{}", ended.stderr);
    assert_eq!(subjects_of(&sandbox, "main").len(), 3);
}

/// Versions of Tribunal before the first release wrote the reset into the journal of the run.
#[test]
fn a_run_whose_journal_has_a_reset_of_the_breaker_is_resumed() {
    let sandbox = loop_sandbox("echo \"I think about step $n.\"\n");
    assert_exit(&run_loop(&sandbox, &[]), 4);
    let run_id = sandbox.last_run_id();
    let store = Store::open(&sandbox.path_of(".tribunal")).unwrap();
    let timestamp = store.last_timestamp(&RunId::new(run_id.as_str())).unwrap().unwrap();
    let (phase, detail) = (BreakerPhase::Closed, String::from("you reset it"));
    let event = RunEvent::from_workflow(LoopEvent::BreakerMoved { phase, cause: None, detail });
    let draft = EntryDraft { id: format!("breaker_reset:{}", timestamp.wall_ms), event };
    let entry = NewEntry { run_id: RunId::new(run_id.as_str()), timestamp, draft };
    store.append(EntryBatch { entries: vec![entry], ..EntryBatch::default() }).unwrap();
    drop(store);
    assert_exit(&sandbox.run_tribunal(&["breaker", "reset"]), 0);
    write_agent(&sandbox, "echo $n > out.txt\npromise\n");
    assert_exit(&sandbox.run_tribunal(&["resume", &run_id]), 0);
    assert_eq!(subjects_of(&sandbox, "main").len(), 2);
}

fn read_entries(sandbox: &Sandbox, run_id: &str) -> Vec<Value> {
    sandbox.run_events(&["log", run_id])
}

/// A call that was booked for later starts at once when the limit is raised.
#[test]
fn a_raised_limit_of_calls_ends_the_wait_for_the_next_hour() {
    let sandbox = loop_sandbox("echo $n > out.txt\n[ $n -lt 2 ] || promise\n");
    let mut command = sandbox.tribunal_command(&["loop", "run", "-p", "Write", "--set", "limits.calls_per_hour=1"]);
    let mut waiting = command.stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(waiting.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut seen: Vec<String> = Vec::new();
    for line in lines {
        let is_waiting = line.contains("limit of 1 calls per hour in all runs reached");
        seen.push(line);
        if is_waiting {
            break;
        }
    }
    let seen_text = seen.join("\n");
    assert!(seen_text.contains("1 calls per hour in all runs"), "{seen_text}");
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    let run_id = sandbox.last_run_id();
    assert_exit(&sandbox.run_tribunal(&["resume", &run_id, "--reload", "--set", "limits.calls_per_hour=5"]), 0);
    assert_eq!((call_count(&sandbox), sandbox.read_file("out.txt").as_str()), (2, "2\n"));
}

#[test]
fn a_checkout_without_a_branch_is_refused_with_advice() {
    let sandbox = loop_sandbox(TWO_STEPS);
    run_git(&sandbox, &["switch", "-q", "--detach"]);
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 2);
    assert!(output.stderr.contains("HEAD is detached") && output.stderr.contains("--branch NAME"), "{}", output.stderr);
    run_git(&sandbox, &["switch", "-q", "--orphan", "empty"]);
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 2);
    assert!(output.stderr.contains("the branch empty has no commit yet"), "{}", output.stderr);
    assert!(output.stderr.contains("git commit"), "{}", output.stderr);
    assert_eq!((call_count(&sandbox), sandbox.run_ids().len()), (0, 0));
}

#[test]
fn a_new_branch_gets_the_result_and_the_checkout_stays() {
    let sandbox = loop_sandbox(TWO_STEPS);
    let output = run_loop(&sandbox, &["--branch", "new"]);
    assert_exit(&output, 0);
    assert_eq!(subjects_of(&sandbox, "new").len(), 2);
    assert_eq!(subjects_of(&sandbox, "main"), ["Begin"]);
    assert_eq!(run_git(&sandbox, &["branch", "--show-current"]), "main\n");
    assert!(!sandbox.path_of("out1.txt").exists());
    assert_exit(&run_loop(&sandbox, &["--branch", "not..valid"]), 2);
}

#[test]
fn a_result_that_meets_uncommitted_changes_waits_on_a_branch_of_its_own() {
    let sandbox = loop_sandbox("echo 'by the agent' > src/lib.txt\npromise\n");
    sandbox.write_file("src/lib.txt", "by the user\n");
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 0);
    let branch = format!("tribunal/{}", sandbox.last_run_id());
    assert!(output.stderr.contains(&format!("take it with `git merge {branch}`")), "{}", output.stderr);
    assert!(output.stderr.contains("your uncommitted changes are in the way (src/lib.txt)"), "{}", output.stderr);
    assert_eq!(sandbox.read_file("src/lib.txt"), "by the user\n");
    assert_eq!(run_git(&sandbox, &["show", &format!("{branch}:src/lib.txt")]), "by the agent\n");
    assert_eq!(subjects_of(&sandbox, "main"), ["Begin"]);
}

/// An agent during whose turn another process commits `path` to the branch.
fn agent_beside_a_commit(sandbox: &Sandbox, path: &str) -> String {
    format!(
        "echo 'by the agent' > out.txt\npromise\ncd '{}'\necho 'by somebody' > {path}\ngit add {path}\n\
         git commit -q -m Meanwhile\n",
        sandbox.root_dir().display()
    )
}

#[test]
fn work_is_rebased_onto_a_branch_that_moved() {
    let sandbox = loop_sandbox("");
    write_agent(&sandbox, &agent_beside_a_commit(&sandbox, "other.txt"));
    // The agent could have made that commit, so the user is asked first.
    assert_exit(&run_loop(&sandbox, &[]), 3);
    assert_exit(&answer_and_resume(&sandbox, "keep"), 0);
    let subjects = ["Loop over Write two lines: done after 1 iteration", "Meanwhile", "Begin"];
    assert_eq!(subjects_of(&sandbox, "main"), subjects);
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), "");
}

#[test]
fn work_that_conflicts_with_the_branch_waits_for_the_user() {
    let sandbox = loop_sandbox("");
    write_agent(&sandbox, &agent_beside_a_commit(&sandbox, "out.txt"));
    assert_exit(&run_loop(&sandbox, &[]), 3);
    let output = answer_and_resume(&sandbox, "keep");
    assert_exit(&output, 3);
    assert!(
        output
            .stderr
            .contains("D2 needs an answer: main has moved, and the work of the loop conflicts with it in out.txt"),
        "{}",
        output.stderr
    );
    assert_eq!(subjects_of(&sandbox, "main"), ["Meanwhile", "Begin"]);
    // The user takes the other commit back, and the work fits again.
    run_git(&sandbox, &["reset", "-q", "--hard", "HEAD~1"]);
    assert_exit(&answer_question(&sandbox, "D2", "retry"), 0);
    assert_eq!(sandbox.read_file("out.txt"), "by the agent\n");
}

#[test]
fn in_place_needs_a_clean_checkout() {
    let sandbox = loop_sandbox(TWO_STEPS);
    sandbox.write_file("src/lib.txt", "two\n");
    let output = run_loop(&sandbox, &["--in-place"]);
    assert_exit(&output, 2);
    assert!(output.stderr.contains("your checkout has uncommitted changes: src/lib.txt"), "{}", output.stderr);
    assert_eq!((call_count(&sandbox), sandbox.run_ids().len()), (0, 0));
    run_git(&sandbox, &["checkout", "-q", "src/lib.txt"]);
    assert_exit(&run_loop(&sandbox, &["--in-place"]), 0);
    assert_eq!(subjects_of(&sandbox, "main"), ["Loop over Write two lines: done after 2 iterations", "Begin"]);
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), "");
}

/// Creates a named pipe on which an agent and the test meet.
pub(crate) fn make_pipe(sandbox: &Sandbox, name: &str) -> PathBuf {
    let pipe_path = sandbox.path_of(&format!("../{name}"));
    assert!(Command::new("mkfifo").arg(&pipe_path).status().unwrap().success());
    pipe_path
}

#[test]
fn a_running_loop_is_shown_told_something_stopped_and_resumed() {
    let sandbox = loop_sandbox("");
    let (ready_pipe, gate_pipe) = (make_pipe(&sandbox, "ready"), make_pipe(&sandbox, "gate"));
    // Both iterations wait for the test. The loop is asked to stop during the second one.
    write_agent(
        &sandbox,
        &format!(
            "echo \"line $n\" > out$n.txt\necho $n > '{}'\nread word < '{}'\necho \"Wrote line $n.\"\n",
            ready_pipe.display(),
            gate_pipe.display()
        ),
    );
    let mut child = sandbox
        .tribunal_command(&["loop", "run", "-p", "Write two lines."])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(fs::read_to_string(&ready_pipe).unwrap(), "1\n");
    let run_id = sandbox.last_run_id();
    let row: Value = sandbox.run_json(&["runs"])["runs"][0].clone();
    assert_eq!([&row["state"], &row["kind"]], ["running", "loop"]);
    let status_text = sandbox.run_tribunal(&["status", &run_id]).stdout;
    assert!(status_text.starts_with(&format!("{run_id} running")), "{status_text}");
    assert!(sandbox.run_tribunal(&["log", &run_id]).stdout.contains("\nworkspace: "));
    assert_exit(&sandbox.run_tribunal(&["say", &run_id, "Use British spelling."]), 0);
    fs::write(&gate_pipe, "go\n").unwrap();
    assert_eq!(fs::read_to_string(&ready_pipe).unwrap(), "2\n");
    assert!(prompt_of(&sandbox, 2).contains("Use British spelling."), "{}", prompt_of(&sandbox, 2));
    assert_exit(&sandbox.run_tribunal(&["stop", &run_id]), 0);
    // A turn that has begun is paid for, so the loop stops after it.
    fs::write(&gate_pipe, "go\n").unwrap();
    let stderr_lines: Vec<String> = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap).collect();
    let exit_status = child.wait().unwrap();
    assert_eq!(exit_status.code(), Some(130), "{stderr_lines:?}");
    write_agent(&sandbox, TWO_STEPS);
    let output = sandbox.run_tribunal(&["resume", &run_id]);
    assert_exit(&output, 0);
    assert!(output.stderr.contains("resolved: the task is done after 3 iterations"), "{}", output.stderr);
    assert_eq!(call_count(&sandbox), 3, "no iteration was repeated");
    assert_eq!(subjects_of(&sandbox, "main").len(), 2);
}

#[test]
fn a_bmalph_project_runs_as_it_is_until_every_box_is_ticked() {
    let sandbox = loop_sandbox(
        "echo $n > out.txt\nsed -i '0,/- \\[ \\]/s//- [x]/' .ralph/@fix_plan.md\necho \"Ticked box $n.\"\n",
    )
    .without_trust();
    sandbox.write_file(".ralph/PROMPT.md", "Do the plan.\n");
    sandbox.write_file(".ralph/@fix_plan.md", "# Plan\n\n- [x] zero\n- [ ] one\n- [ ] two\n");
    sandbox.write_file(
        ".ralph/.ralphrc",
        "QUALITY_GATES=\"test ! -e bad\"\nSOME_THING=1\nPROJECT_NAME=\"$(touch executed)\"\n",
    );
    commit_all(&sandbox, "Add the plan");
    let output = sandbox.run_tribunal(&["loop", "run"]);
    assert_exit(&output, 2);
    assert!(output.stderr.contains("check: test ! -e bad"), "{}", output.stderr);
    assert_exit(&sandbox.run_tribunal(&["trust", "--yes"]), 0);
    let output = sandbox.run_tribunal(&["loop", "run"]);
    assert_exit(&output, 0);
    for expected in [
        ".ralph/.ralphrc:2: SOME_THING is not a setting that Tribunal uses; ignored",
        ".ralph/.ralphrc:3: not read: it has a command substitution (nothing is executed)",
        "until every box in .ralph/@fix_plan.md is ticked",
        "iteration 1: 2 files changed in all · 2/3 tasks · Ticked box 1.",
        "checks pass on the untouched workspace (1 check",
    ] {
        assert!(output.stderr.contains(expected), "{expected}: {}", output.stderr);
    }
    assert!(!sandbox.path_of("executed").exists() && !sandbox.path_of(".ralph/executed").exists());
    assert_eq!(sandbox.read_file(".ralph/@fix_plan.md"), "# Plan\n\n- [x] zero\n- [x] one\n- [x] two\n");
    assert!(prompt_of(&sandbox, 2).contains("2 of 3 tasks of the plan are done; the next one is: two"));
}

#[test]
fn a_project_of_ralph_orchestrator_ends_on_its_word() {
    let sandbox = loop_sandbox("echo $n > out.txt\n[ $n -lt 2 ] || echo LOOP_COMPLETE\n");
    sandbox.write_file("PROMPT.md", "Write two lines.\n");
    sandbox.write_file("ralph.yml", "agent: auto\nprompt_file: PROMPT.md\nmax_iterations: 7\n");
    commit_all(&sandbox, "Add the task");
    let output = sandbox.run_tribunal(&["loop", "run"]);
    assert_exit(&output, 0);
    assert!(output.stderr.contains("limits: 7 iterations,"), "{}", output.stderr);
    assert!(output.stderr.contains("resolved: the task is done after 2 iterations"), "{}", output.stderr);
}

#[test]
fn a_completion_word_in_the_task_ends_nothing() {
    // The agent repeats its task, as some do.
    let sandbox = loop_sandbox("echo $n > out.txt\necho 'Say LOOP_COMPLETE when done.'\n[ $n -lt 2 ] || promise\n");
    sandbox.append_setting("loop: {accept_loop_complete: true}");
    let output = sandbox.run_tribunal(&["loop", "run", "-p", "Say LOOP_COMPLETE when done."]);
    assert_exit(&output, 0);
    assert_eq!(sandbox.read_file("out.txt"), "2\n");
}

#[test]
fn an_agent_that_keeps_crashing_halts_the_loop() {
    // It works before it fails: an agent that fails at once would be a fault of the environment.
    let sandbox = loop_sandbox("echo $n > out.txt\necho working\nexit 3\n");
    sandbox.append_setting("loop: {breaker: {same_error: 50}}");
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 4);
    assert!(output.stderr.contains("5 failures in a row"), "{}", output.stderr);
}

#[test]
fn an_agent_that_cannot_even_start_is_a_fault_of_the_environment() {
    let sandbox = loop_sandbox("exit 3\n");
    let output = run_loop(&sandbox, &[]);
    assert_exit(&output, 5);
    assert!(output.stderr.contains("failed twice, each time immediately"), "{}", output.stderr);
    assert_eq!(call_count(&sandbox), 2);
}

#[test]
fn settings_that_an_unfinished_turn_depends_on_are_refused_and_nothing_is_lost() {
    let sandbox = loop_sandbox(TWO_STEPS);
    let mut start = sandbox.tribunal_command(&["loop", "run", "-p", "Write two lines."]);
    let killed = start.env("TRIBUNAL_FAULT", "after:2:started:iteration-1/turn").output().unwrap();
    assert_eq!(killed.status.code(), None, "{killed:?}");
    let run_id = sandbox.last_run_id();
    // The prompt of the turn says how many iterations there are.
    let output = sandbox.run_tribunal(&["resume", &run_id, "--reload", "--set", "loop.max_iterations=9"]);
    assert_exit(&output, 2);
    insta::assert_snapshot!(output.stderr.replace(&run_id, "RUN"), @r"
    error: the changed settings conflict with work that run RUN has already started
      A task that is not finished depends on them. The run keeps its settings.
      1. resume it with its current settings: `tribunal resume RUN`
      2. or start a new run with the changed settings
    ");
    let events = sandbox.run_events(&["log", &run_id]);
    assert!(!events.iter().any(|event| event["kind"] == "settings_changed"), "{events:?}");
    assert_exit(&sandbox.run_tribunal(&["resume", &run_id]), 0);
}

#[test]
fn settings_that_are_read_again_change_only_what_is_set() {
    let sandbox = loop_sandbox(TWO_STEPS);
    let output = run_loop(&sandbox, &["--max-iterations", "1"]);
    assert_exit(&output, 4);
    let run_id = sandbox.last_run_id();
    let set = ["--set", "loop.max_iterations=5", "--set", "loop.promise=READY"];
    let output = sandbox.run_tribunal(&[&["resume", &run_id, "--reload"][..], &set].concat());
    assert_exit(&output, 0);
    let kept = "what is fixed when a run starts stays as it was: `loop.promise` is COMPLETE and not READY";
    assert!(output.stderr.contains(kept), "{}", output.stderr);
    let events = sandbox.run_events(&["log", &run_id]);
    let changed = events.iter().find(|event| event["kind"] == "settings_changed").unwrap();
    assert_eq!(changed["order"]["max_iterations"], 5);
    // The defaults of a loop are larger than those of a review, and stay.
    assert_eq!(changed["settings"]["limits"]["runtime_ms"], 4 * 3_600_000);
    assert_eq!(changed["settings"]["limits"]["cost"], 10.0);
}

#[test]
fn the_loop_settings_of_a_project_are_read_again_and_need_trust_again() {
    let sandbox = loop_sandbox(
        "echo $n > out.txt\nsed -i '0,/- \\[ \\]/s//- [x]/' .ralph/@fix_plan.md\necho \"Ticked box $n.\"\n",
    )
    .without_trust();
    sandbox.write_file(".ralph/PROMPT.md", "Do the plan.\n");
    sandbox.write_file(".ralph/@fix_plan.md", "# Plan\n\n- [ ] one\n- [ ] two\n");
    sandbox.write_file(".ralph/.ralphrc", "QUALITY_GATES=\"test ! -e bad\"\n");
    commit_all(&sandbox, "Add the plan");
    assert_exit(&sandbox.run_tribunal(&["trust", "--yes"]), 0);
    assert_exit(&sandbox.run_tribunal(&["loop", "run", "--max-iterations", "1"]), 4);
    let run_id = sandbox.last_run_id();
    // What is new came with the project, perhaps by a landing.
    sandbox.write_file(".ralph/.ralphrc", "QUALITY_GATES=\"test ! -e worse\"\nSESSION_CONTINUITY=true\n");
    let resume = ["resume", &run_id, "--reload", "--set", "loop.max_iterations=5"];
    let output = sandbox.run_tribunal(&resume);
    assert_exit(&output, 2);
    assert!(output.stderr.contains("check: test ! -e worse"), "{}", output.stderr);
    assert_exit(&sandbox.run_tribunal(&["trust", "--yes"]), 0);
    let output = sandbox.run_tribunal(&resume);
    assert_exit(&output, 0);
    let kept = "what is fixed when a loop starts stays as it was, also where .ralph/.ralphrc says something else";
    assert!(output.stderr.contains(kept), "{}", output.stderr);
    let events = sandbox.run_events(&["log", &run_id]);
    let changed = events.iter().find(|event| event["kind"] == "settings_changed").unwrap();
    assert_eq!(changed["settings"]["checks"][0]["command"], "test ! -e worse");
    assert_eq!(changed["order"]["max_iterations"], 5);
}
