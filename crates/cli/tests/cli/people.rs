//! Decisions that wait for the user, and what follows from the answers, edits and signals of the user.

use std::{
    io::{BufRead, BufReader, Read},
    process::{ChildStdout, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Sandbox, hold};

const BLOCKED: &str = "tasks:
  - task: 'round-1/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/fix/*'
    fix: [{match: fast, blocked: how fast must it be}]
";

fn waiting() -> Sandbox {
    let sandbox = Sandbox::scripted(BLOCKED);
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("waiting · findings wait for a person to decide"), "{}", ran.err);
    sandbox
}

#[test]
fn a_blocked_finding_becomes_a_decision_that_waits() {
    let sandbox = waiting();
    let ran = sandbox.run(&["decisions"]);
    insta::assert_snapshot!(sandbox.normal(&ran.out), @r"
    [run].D1 for product owner
      F1: fast is vague (how fast must it be)
      retry    let a fixer try once more, with your note if you give one
      dismiss  it is not an issue
      defer    it is one, but not now
    ");
    // Resuming without an answer changes nothing and reports the decision again.
    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
}

#[test]
fn a_new_review_points_out_the_run_that_still_waits() {
    let sandbox = waiting();
    let first = sandbox.last_run();
    let ran = sandbox.run(&["review", "plan.md"]);
    let notice = format!("is waiting; to go on with it: tribunal resume {first}");
    assert!(ran.err.contains(&notice), "{}", ran.err);
    assert_eq!(sandbox.runs().len(), 2);
}

#[test]
fn an_answer_is_taken_in_when_the_run_goes_on() {
    let sandbox = waiting();
    let ran = sandbox.run(&["decisions", "D1", "defer", "--note", "after the pilot"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let again = sandbox.run(&["decisions", "D1", "dismiss"]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("D1 is answered already"), "{}", again.err);
    assert!(sandbox.run(&["decisions"]).out.contains("answered, not yet taken in"));

    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let findings = sandbox.json(&["findings"]);
    assert_eq!(findings["findings"][0]["status"], "deferred");
    assert_eq!(findings["findings"][0]["why"], "person");
    assert_eq!(sandbox.run(&["decisions"]).out, "nothing waits for a person\n");
    let ran = sandbox.run(&["resume"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(0), "[i] nothing waits to go on; all runs have ended: tribunal runs\n")
    );
}

#[test]
fn a_retry_brings_the_note_to_the_next_fixer() {
    let sandbox = waiting();
    sandbox.run(&["decisions", "D1", "retry", "--note", "two hundred milliseconds"]);
    sandbox.write(
        "script.yaml",
        "tasks:
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/fix/*'
    fix: [{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}]
",
    );
    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(sandbox.read("plan.md").contains("200 ms"));
    let asked = sandbox.events(&["log", &sandbox.last_run()]);
    let briefs: Vec<&serde_json::Value> =
        asked.iter().filter(|e| e["kind"] == "effect_started" && e["effect"]["effect"] == "ask").collect();
    assert_eq!(briefs.last().unwrap()["effect"]["task"]["brief"]["said"][0], "two hundred milliseconds");
}

#[test]
fn a_note_is_as_long_as_a_brief_allows_and_nothing_secret_in_it_is_kept() {
    let sandbox = waiting();
    let ran = sandbox.run(&["decisions", "D1", "retry", "--note", &"x".repeat(2001)]);
    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.err, @r"
    [!] that is longer than 2000 characters
        It goes into every brief from here on, beside the subject.
        1. put it into a file of the project and name that file
    ");
    let token = format!("gh{}_{}", "p", "a1B2".repeat(9));
    let ran = sandbox.run(&["decisions", "D1", "retry", "--note", &format!("{token} {}", "x".repeat(1900))]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let journal = std::fs::read(sandbox.path(".tribunal/journal.db")).unwrap();
    let log = std::fs::read(sandbox.path(".tribunal/journal.db-wal")).unwrap_or_default();
    let kept = String::from_utf8_lossy(&[journal, log].concat()).into_owned();
    assert!(kept.contains("[masked:github] xxx") && !kept.contains(&token));
}

#[test]
fn an_answer_may_be_written_into_the_decision_s_file() {
    let sandbox = waiting();
    let file = format!(".tribunal/awaiting-human/{}.D1.yaml", sandbox.last_run());
    let page = sandbox.read(&file);
    assert!(page.contains("how fast must it be") && page.contains("dismiss: it is not an issue"), "{page}");
    sandbox.write(&file, &page.replace("answer: \"\"", "answer: dismiss"));
    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(!sandbox.path(&file).exists());
    assert_eq!(sandbox.json(&["findings"])["findings"][0]["status"], "dismissed");
}

#[test]
fn a_decision_whose_file_cannot_be_written_is_warned_about_and_answered_by_id() {
    let sandbox = Sandbox::scripted(BLOCKED);
    sandbox.write(".tribunal/awaiting-human", "not a folder\n");
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("[W] the file of D1 was not written: "), "{}", ran.err);
    assert_eq!(sandbox.read(".tribunal/awaiting-human"), "not a folder\n");
    assert_eq!(sandbox.run(&["decisions", "D1", "dismiss"]).code, Some(0));
    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn what_is_no_answer_stays_in_its_file_and_is_pointed_out() {
    let sandbox = waiting();
    let file = format!(".tribunal/awaiting-human/{}.D1.yaml", sandbox.last_run());
    for (wrong, why) in [("answer: dismis", "`dismis` is none of its choices"), ("answer: [", "")] {
        let page = sandbox.read(&file).replace("answer: \"\"", wrong).replace("answer: dismis", wrong);
        sandbox.write(&file, &page);
        let ran = sandbox.run(&["resume"]);
        assert_eq!(ran.code, Some(3), "{}", ran.err);
        assert!(
            ran.err.contains("[W] an answer cannot be used and stays where it is") && ran.err.contains(why),
            "{}",
            ran.err
        );
        assert_eq!(sandbox.read(&file), page);
    }
}

#[test]
fn a_wrong_answer_is_refused_with_the_choices() {
    let sandbox = waiting();
    let ran = sandbox.run(&["decisions", "D1", "dismis"]);
    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.err, @r"
    [!] `dismis` is no answer to D1
        Its choices are retry, dismiss, defer.
        1. did you mean `dismiss`?
    ");
    assert_eq!(sandbox.run(&["decisions", "D7", "retry"]).code, Some(2));
}

#[test]
fn a_halted_run_offers_more_and_goes_on_with_it() {
    let stubborn = "tasks:
  - task: '*/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/fix/*'
    steps: [{text: 'fixes: []'}]
";
    let sandbox = Sandbox::scripted(stubborn);
    let ran = sandbox.run(&["review", "plan.md", "--set", "limits.max_fix_iterations=1"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    let halted = "halted · the fix iterations of the round are used up: 1 open after 1 fix iteration\n";
    assert!(ran.err.contains(halted), "{}", ran.err);
    assert_eq!(sandbox.run(&["decisions", "D1", "more"]).code, Some(0));
    // The fixer gives the same output again, so the run stops instead of spending more.
    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("fixers go in circles about it"), "{}", ran.err);
    assert_eq!(sandbox.run(&["decisions", "D2", "defer", "--note", "good enough"]).code, Some(0));
    assert_eq!(sandbox.run(&["resume"]).code, Some(0));
    assert_eq!(sandbox.json(&["runs"])["runs"][0]["state"], "resolved");
}

#[test]
fn what_is_edited_in_the_tracker_holds() {
    let sandbox = waiting();
    let tracker = ".tribunal/reviews/plan-issues.md";
    let text = sandbox.read(tracker);
    let heading = text.lines().find(|line| line.contains("· blocked (D1)")).unwrap();
    let dismissed = heading.replace("blocked (D1)", "dismissed: we know");
    let added = "### [ ] new · low\n\nNobody says who pays.\n\n<!-- ISSUES_END -->";
    sandbox.write(tracker, &text.replace(heading, &dismissed).replace("<!-- ISSUES_END -->", added));
    let ran = sandbox.run(&["resume"]);
    assert!(ran.err.contains("dismissed: a person said: we know"), "{}", ran.err);
    assert!(ran.err.contains("Nobody says who pays."), "{}", ran.err);
    let now = sandbox.read(tracker);
    assert!(now.contains("· dismissed (by a person)") && now.contains("- Raised by: a person"), "{now}");
    assert!(!sandbox.path(".tribunal/reviews/plan-issues.edited-1.md").exists(), "all of it was understood");
}

#[test]
fn what_is_not_understood_in_an_edited_tracker_is_kept_aside_never_overwritten() {
    let sandbox = waiting();
    let tracker = ".tribunal/reviews/plan-issues.md";
    let edited = sandbox.read(tracker).replace("fast is vague", "fast is vague (we know)");
    sandbox.write(tracker, &edited);
    let ran = sandbox.run(&["resume"]);
    assert!(ran.err.contains("plan-issues.edited-1.md"), "{}", ran.err);
    assert_eq!(sandbox.read(".tribunal/reviews/plan-issues.edited-1.md"), edited);
    assert!(sandbox.read(tracker).contains("<!-- ISSUES_START -->"));
}

/// Starts a review whose agent never ends; returns once the agent is running.
pub fn hanging() -> (Sandbox, std::process::Child, BufReader<ChildStdout>) {
    let sandbox = Sandbox::scripted("tasks: [{task: '*', steps: [{hang: true}]}]\n");
    let mut child = sandbox
        .command(&["review", "plan.md", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"effect\":\"ask\"") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the run ended early");
    }
    (sandbox, child, lines)
}

fn signal(child: &std::process::Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
}

#[test]
fn the_first_interrupt_lets_agents_finish_and_the_second_ends_them() {
    let (sandbox, mut child, mut lines) = hanging();
    let mut notices = BufReader::new(child.stderr.take().unwrap());
    signal(&child, Signal::INT);
    let mut notice = String::new();
    notices.read_line(&mut notice).unwrap();
    assert_eq!(notice, "[i] stopping: 1 agent may finish; Ctrl-C again to end now\n");
    signal(&child, Signal::INT);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let last: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!((&last["kind"], &last["reason"]), (&"run_parked".into(), &"stopped".into()));

    sandbox.write("script.yaml", "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    assert_eq!(sandbox.run(&["resume"]).code, Some(0));
}

#[test]
fn a_hang_up_is_survived_and_a_request_to_terminate_parks_the_run_at_once() {
    let (sandbox, mut child, _lines) = hanging();
    signal(&child, Signal::HUP);
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let status = sandbox.run(&["status"]);
    assert!(status.out.contains("stopped") && status.out.contains("tribunal resume plan-"), "{}", status.out);
}

#[test]
fn a_run_that_nobody_works_on_is_not_stopped_but_told_of() {
    let sandbox = waiting();
    let run = sandbox.last_run();
    assert_eq!(sandbox.run(&["stop"]).out, "nothing is running here\n");
    for args in [&["stop", &run][..], &["stop", &run, "--now"]] {
        let ran = sandbox.run(args);
        assert_eq!(
            (ran.code, ran.out),
            (Some(0), format!("run {run} has ended: waiting; to go on: tribunal resume {run}\n"))
        );
    }
    assert!(sandbox.json(&["stop", &run])["stopping"].is_null());
    // The lock looks as if the process had been killed and its keepers had not finished yet.
    let held = hold(&sandbox, &run, &format!("{run}\n1@1@0\n"));
    let ran = sandbox.run(&["stop"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("what is left of its agents is being ended"), "{}", ran.out);
    drop(held);
    // The lock looks as if a Tribunal with another lock format had taken it.
    let _held = hold(&sandbox, &run, "somebody else\n");
    let ran = sandbox.run(&["stop"]);
    assert_eq!(ran.code, Some(5), "{}", ran.out);
    insta::assert_snapshot!(sandbox.normal(&ran.err), @r"
    [!] run [run] is being worked on, but could not be reached
        Who works on it did not say so in a way that is understood here. It was not stopped.
        1. where it was started, as the user who did: tribunal stop [run]
    ");
}

#[test]
fn settings_that_do_not_fit_what_was_begun_are_refused_and_change_nothing() {
    let (sandbox, mut child, _lines) = hanging();
    signal(&child, Signal::TERM);
    child.wait().unwrap();
    // The recorded call that was under way names the old agent.
    let settings = sandbox.read("tribunal.yaml");
    sandbox.write("tribunal.yaml", &settings.replace("scripted", "other"));
    sandbox.write("script.yaml", "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    let ran = sandbox.run(&["resume", "--reload"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("do not fit") && ran.err.contains("tribunal resume plan-"), "{}", ran.err);
    assert_eq!(sandbox.run(&["resume"]).code, Some(0));
}

/// Both challengers doubt one finding. On the other one, which is critical, no two of three verdicts agree.
const DISPUTED: &str = "tasks:
  - task: 'round-1/review/*'
    steps:
      - findings:
          - {severity: critical, category: test, description: risks are hidden, quote: None.}
          - {severity: high, category: test, description: fast is vague, quote: It shall be fast.}
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/challenge/1/*'
    rule:
      - {match: risks, verdict: INVALID, reason: speed is the risk, counter_evidence: It shall be fast.}
      - {match: fast, verdict: AMBIGUOUS, reason: fast for whom?}
  - task: '*/challenge/2/*'
    rule:
      - {match: risks, verdict: AMBIGUOUS, reason: hard to say}
      - {match: fast, verdict: INVALID, reason: it is defined, counter_evidence: not in the text}
  - task: '*/fix/*'
    fix:
      - {match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}
      - {match: risks, replace: None., with: Load., description: risk}
";

#[test]
fn a_critical_finding_that_challengers_do_not_agree_on_waits_for_a_person_who_is_told_what_to_type() {
    let sandbox = Sandbox::scripted(DISPUTED);
    let settings = sandbox.read("tribunal.yaml").replace("tier: 0", "tier: 1\nlevel: minimal");
    sandbox.write("tribunal.yaml", &settings);
    let ran = sandbox.run(&["review", "plan.md"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    let said = sandbox.normal(&ran.err);
    let sitting: Vec<&str> =
        said.lines().skip_while(|line| !line.contains("answered on")).skip(3).take(8).collect();
    insta::assert_snapshot!(sitting.join("\n"), @r"
          F1 in doubt, high → medium (2 ambiguous)
             fast for whom?
          F2 is critical and in doubt (1 valid, 1 invalid, 1 ambiguous), for a person to decide
             speed is the risk
             “It shall be fast.”
             D1 waits for product owner:
               tribunal decisions [run].D1 ANSWER    (uphold, dismiss, defer)
      2 new; 1 finding: 1 medium to fix
    ");
    assert_eq!(sandbox.run(&["decisions", "D1", "uphold"]).code, Some(0));
    let ran = sandbox.run(&["resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let findings = sandbox.run(&["findings", "--status", "fixed"]).out;
    let challenged: Vec<&str> = findings.lines().filter(|line| line.contains("challenged:")).collect();
    insta::assert_snapshot!(challenged.join("\n"), @r"
     challenged: in doubt, high → medium (2 ambiguous): fast for whom?
     challenged: in doubt (1 valid, 1 invalid, 1 ambiguous), for a person to decide: speed is the risk (“It shall be fast.”)
    ");
    let tracker = sandbox.read(".tribunal/reviews/plan-issues.md");
    assert!(
        tracker.contains("- Challenged: in doubt, taken as medium; 2 ambiguous: fast for whom?"),
        "{tracker}"
    );
    assert!(tracker.contains("- Challenged: challengers do not agree on something critical"), "{tracker}");
}

#[test]
fn status_does_not_ask_again_for_what_was_answered() {
    let sandbox = waiting();
    assert!(sandbox.run(&["status"]).out.contains(".D1 ANSWER"));
    assert_eq!(sandbox.run(&["decisions", "D1", "dismiss"]).code, Some(0));
    let said = sandbox.run(&["status"]).out;
    assert!(!said.contains("ANSWER") && said.contains("tribunal resume "), "{said}");
}
