//! Decisions that wait for the user, and what follows from the answers, edits and signals of the user.

use std::{
    io::{BufRead, BufReader, Read},
    process::{ChildStdout, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Sandbox, hold_run_lock};

const BLOCKED_SCRIPT: &str = "tasks:
  - task: 'round-1/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/fix/*'
    fix: [{match: fast, blocked: how fast must it be}]
";

fn waiting_sandbox() -> Sandbox {
    let sandbox = Sandbox::with_script(BLOCKED_SCRIPT);
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("waiting: your decision is needed"), "{}", output.stderr);
    sandbox
}

#[test]
fn a_blocked_finding_becomes_a_decision_that_waits() {
    let sandbox = waiting_sandbox();
    let output = sandbox.run_tribunal(&["decisions"]);
    insta::assert_snapshot!(sandbox.normalize_output(&output.stdout), @"
    [run].D1 (product owner)
      F1: fast is vague (how fast must it be)
      retry    let a fixer try again (your note is passed on)
      dismiss  not an issue
      defer    a real issue, but not now
    ");
    // Resuming without an answer changes nothing and reports the decision again.
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
}

#[test]
fn a_new_review_points_out_the_run_that_still_waits() {
    let sandbox = waiting_sandbox();
    let first_run = sandbox.last_run_id();
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    let notice = format!("is waiting for you; resume it with `tribunal resume {first_run}`");
    assert!(output.stderr.contains(&notice), "{}", output.stderr);
    assert_eq!(sandbox.run_ids().len(), 2);
}

#[test]
fn an_answer_is_applied_when_the_run_resumes() {
    let sandbox = waiting_sandbox();
    let output = sandbox.run_tribunal(&["decisions", "D1", "defer", "--note", "after the pilot"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let second_answer = sandbox.run_tribunal(&["decisions", "D1", "dismiss"]);
    assert_eq!(second_answer.exit_code, Some(2));
    assert!(second_answer.stderr.contains("D1 is already answered"), "{}", second_answer.stderr);
    assert!(sandbox.run_tribunal(&["decisions"]).stdout.contains("answered, not applied yet"));

    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let findings = sandbox.run_json(&["findings"]);
    assert_eq!(findings["findings"][0]["status"], "deferred");
    assert_eq!(findings["findings"][0]["why"], "person");
    assert_eq!(sandbox.run_tribunal(&["decisions"]).stdout, "nothing is waiting for you\n");
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(
        (output.exit_code, output.stderr.as_str()),
        (Some(0), "note: nothing to resume; list all runs with `tribunal runs`\n")
    );
}

#[test]
fn an_answer_can_be_changed_until_the_run_has_used_it() {
    let sandbox = waiting_sandbox();
    let run_id = sandbox.last_run_id();
    let full_name = format!("{run_id}.D1");
    let too_early = sandbox.run_tribunal(&["decisions", "D1", "--change", "defer"]);
    assert_eq!(too_early.exit_code, Some(2));
    assert!(too_early.stderr.contains("has no answer yet"), "{}", too_early.stderr);

    sandbox.run_tribunal(&["decisions", "D1", "defer", "--note", "after the pilot"]);
    let second_answer = sandbox.run_tribunal(&["decisions", &full_name, "dismiss"]);
    assert_eq!(second_answer.exit_code, Some(2));
    assert!(second_answer.stderr.contains(&format!("{full_name} is already answered with `defer`")));
    assert!(second_answer.stderr.contains(&format!("`tribunal decisions {full_name} --change ANSWER`")));
    let wrong_answer = sandbox.run_tribunal(&["decisions", &full_name, "--change", "dismis"]);
    assert_eq!(wrong_answer.exit_code, Some(2), "{}", wrong_answer.stderr);
    let changed = sandbox.run_tribunal(&["decisions", &full_name, "--change", "dismiss", "--note", "we know"]);
    assert_eq!(changed.exit_code, Some(0), "{}", changed.stderr);
    assert_eq!(changed.stdout, format!("answer changed; next: tribunal resume {run_id}\n"));
    let shown = sandbox.run_tribunal(&["decisions", "D1"]).stdout;
    assert!(shown.contains("answered with `dismiss`, not applied yet"), "{shown}");

    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(!output.stderr.contains("ignored the answer"), "{}", output.stderr);
    let findings = sandbox.run_json(&["findings"]);
    assert_eq!(findings["findings"][0]["status"], "dismissed");
    assert!(findings.to_string().contains("we know") && !findings.to_string().contains("after the pilot"));
    let too_late = sandbox.run_tribunal(&["decisions", &full_name, "--change", "retry"]);
    assert_eq!(too_late.exit_code, Some(2));
    let used_text = format!("{full_name} was answered with `dismiss`, and the run has already used the answer");
    assert!(too_late.stderr.contains(&used_text), "{}", too_late.stderr);
}

#[test]
fn a_used_answer_of_a_run_that_goes_on_is_corrected_by_a_message() {
    let sandbox = waiting_sandbox();
    let run_id = sandbox.last_run_id();
    sandbox.run_tribunal(&["decisions", "D1", "retry"]);
    // The fixer is blocked again, so the run asks another question.
    assert_eq!(sandbox.run_tribunal(&["resume"]).exit_code, Some(3));
    let too_late = sandbox.run_tribunal(&["decisions", "D1", "--change", "dismiss"]);
    assert_eq!(too_late.exit_code, Some(2));
    assert!(too_late.stderr.contains(&format!("`tribunal say {run_id} \"MESSAGE\"`")), "{}", too_late.stderr);
}

#[test]
fn an_answer_in_the_file_of_the_decision_can_be_changed_too() {
    let sandbox = waiting_sandbox();
    let decision_file = format!(".tribunal/awaiting-human/{}.D1.yaml", sandbox.last_run_id());
    let empty_page = sandbox.read_file(&decision_file);
    sandbox.write_file(&decision_file, &empty_page.replace("answer: \"\"", "answer: retry"));
    let second_answer = sandbox.run_tribunal(&["decisions", "D1", "dismiss"]);
    assert_eq!(second_answer.exit_code, Some(2));
    assert!(second_answer.stderr.contains("--change"), "{}", second_answer.stderr);
    let changed = sandbox.run_tribunal(&["decisions", "D1", "--change", "dismiss"]);
    assert_eq!(changed.exit_code, Some(0), "{}", changed.stderr);
    assert_eq!(sandbox.read_file(&decision_file), empty_page, "the question is still explained there");
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(!output.stderr.contains("ignored the answer"), "{}", output.stderr);
    assert_eq!(sandbox.run_json(&["findings"])["findings"][0]["status"], "dismissed");
}

#[test]
fn a_retry_brings_the_note_to_the_next_fixer() {
    let sandbox = waiting_sandbox();
    sandbox.run_tribunal(&["decisions", "D1", "retry", "--note", "two hundred milliseconds"]);
    sandbox.write_file(
        "script.yaml",
        "tasks:
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/fix/*'
    fix: [{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}]
",
    );
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(sandbox.read_file("plan.md").contains("200 ms"));
    let logged_events = sandbox.run_events(&["log", &sandbox.last_run_id()]);
    let briefs: Vec<&serde_json::Value> = logged_events
        .iter()
        .filter(|event_entry| event_entry["kind"] == "effect_started" && event_entry["effect"]["effect"] == "ask")
        .collect();
    assert_eq!(briefs.last().unwrap()["effect"]["task"]["brief"]["said"][0], "two hundred milliseconds");
}

#[test]
fn a_note_has_a_maximum_length_and_secrets_in_it_are_masked() {
    let sandbox = waiting_sandbox();
    let output = sandbox.run_tribunal(&["decisions", "D1", "retry", "--note", &"x".repeat(2001)]);
    assert_eq!(output.exit_code, Some(2));
    insta::assert_snapshot!(output.stderr, @"
    error: the text is longer than 2000 characters
      It is added to every further prompt, next to the subject.
      help: put it into a file of the project and refer to that file
    ");
    let secret_token = format!("gh{}_{}", "p", "a1B2".repeat(9));
    let output =
        sandbox.run_tribunal(&["decisions", "D1", "retry", "--note", &format!("{secret_token} {}", "x".repeat(1900))]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let journal = std::fs::read(sandbox.path_of(".tribunal/journal.db")).unwrap();
    let write_ahead_log = std::fs::read(sandbox.path_of(".tribunal/journal.db-wal")).unwrap_or_default();
    let recorded_text = String::from_utf8_lossy(&[journal, write_ahead_log].concat()).into_owned();
    assert!(recorded_text.contains("[masked:github] xxx") && !recorded_text.contains(&secret_token));
}

#[test]
fn an_answer_may_be_written_into_the_file_of_the_decision() {
    let sandbox = waiting_sandbox();
    let decision_file = format!(".tribunal/awaiting-human/{}.D1.yaml", sandbox.last_run_id());
    let decision_page = sandbox.read_file(&decision_file);
    assert!(
        decision_page.contains("how fast must it be") && decision_page.contains("dismiss: not an issue"),
        "{decision_page}"
    );
    sandbox.write_file(&decision_file, &decision_page.replace("answer: \"\"", "answer: dismiss"));
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(!sandbox.path_of(&decision_file).exists());
    assert_eq!(sandbox.run_json(&["findings"])["findings"][0]["status"], "dismissed");
}

#[test]
fn a_decision_whose_file_cannot_be_written_is_warned_about_and_answered_by_id() {
    let sandbox = Sandbox::with_script(BLOCKED_SCRIPT);
    sandbox.write_file(".tribunal/awaiting-human", "not a folder\n");
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("could not write the file for D1: "), "{}", output.stderr);
    assert_eq!(sandbox.read_file(".tribunal/awaiting-human"), "not a folder\n");
    assert_eq!(sandbox.run_tribunal(&["decisions", "D1", "dismiss"]).exit_code, Some(0));
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
}

#[test]
fn an_invalid_answer_stays_in_its_file_and_is_warned_about() {
    let sandbox = waiting_sandbox();
    let decision_file = format!(".tribunal/awaiting-human/{}.D1.yaml", sandbox.last_run_id());
    for (wrong_answer, reason) in [("answer: dismis", "`dismis` is not one of the choices"), ("answer: [", "")] {
        let decision_page = sandbox
            .read_file(&decision_file)
            .replace("answer: \"\"", wrong_answer)
            .replace("answer: dismis", wrong_answer);
        sandbox.write_file(&decision_file, &decision_page);
        let output = sandbox.run_tribunal(&["resume"]);
        assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
        assert!(
            output.stderr.contains("warning: ignoring an unusable answer") && output.stderr.contains(reason),
            "{}",
            output.stderr
        );
        assert_eq!(sandbox.read_file(&decision_file), decision_page);
    }
}

#[test]
fn a_wrong_answer_is_refused_with_the_choices() {
    let sandbox = waiting_sandbox();
    let output = sandbox.run_tribunal(&["decisions", "D1", "dismis"]);
    assert_eq!(output.exit_code, Some(2));
    insta::assert_snapshot!(output.stderr, @"
    error: `dismis` is not a valid answer to D1
      Valid answers: retry, dismiss, defer.
      help: did you mean `dismiss`?
    ");
    assert_eq!(sandbox.run_tribunal(&["decisions", "D7", "retry"]).exit_code, Some(2));
}

#[test]
fn a_halted_run_offers_more_iterations_and_goes_on_with_them() {
    let stubborn_script = "tasks:
  - task: '*/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/fix/*'
    steps: [{text: 'fixes: []'}]
";
    let sandbox = Sandbox::with_script(stubborn_script);
    let output = sandbox.run_tribunal(&["review", "plan.md", "--set", "limits.max_fix_iterations=1"]);
    assert_eq!(output.exit_code, Some(4), "{}", output.stderr);
    let halted_line = "fix iteration limit of the round reached (1 finding open after 1 fix iteration)";
    assert!(output.stderr.contains(halted_line), "{}", output.stderr);
    assert_eq!(sandbox.run_tribunal(&["decisions", "D1", "more"]).exit_code, Some(0));
    // The fixer gives the same output again, so the run stops instead of spending more.
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("repeated fixes made no progress"), "{}", output.stderr);
    assert_eq!(sandbox.run_tribunal(&["decisions", "D2", "defer", "--note", "good enough"]).exit_code, Some(0));
    assert_eq!(sandbox.run_tribunal(&["resume"]).exit_code, Some(0));
    assert_eq!(sandbox.run_json(&["runs"])["runs"][0]["state"], "resolved");
}

#[test]
fn edits_in_the_tracker_are_applied() {
    let sandbox = waiting_sandbox();
    let tracker = ".tribunal/reviews/plan-issues.md";
    let tracker_text = sandbox.read_file(tracker);
    let heading = tracker_text.lines().find(|line| line.contains("· blocked (D1)")).unwrap();
    let dismissed_heading = heading.replace("blocked (D1)", "dismissed: we know");
    let added_issue = "### [ ] new · low\n\nNobody says who pays.\n\n<!-- ISSUES_END -->";
    sandbox.write_file(
        tracker,
        &tracker_text.replace(heading, &dismissed_heading).replace("<!-- ISSUES_END -->", added_issue),
    );
    let output = sandbox.run_tribunal(&["resume"]);
    assert!(output.stderr.contains("dismissed: the user said: we know"), "{}", output.stderr);
    assert!(output.stderr.contains("Nobody says who pays."), "{}", output.stderr);
    let text_now = sandbox.read_file(tracker);
    assert!(text_now.contains("· dismissed (by the user)") && text_now.contains("- Raised by: the user"), "{text_now}");
    assert!(!sandbox.path_of(".tribunal/reviews/plan-issues.edited-1.md").exists(), "all of it was understood");
}

#[test]
fn tracker_edits_that_are_not_understood_are_kept_in_a_copy() {
    let sandbox = waiting_sandbox();
    let tracker = ".tribunal/reviews/plan-issues.md";
    let edited_text = sandbox.read_file(tracker).replace("fast is vague", "fast is vague (we know)");
    sandbox.write_file(tracker, &edited_text);
    let output = sandbox.run_tribunal(&["resume"]);
    assert!(output.stderr.contains("plan-issues.edited-1.md"), "{}", output.stderr);
    assert_eq!(sandbox.read_file(".tribunal/reviews/plan-issues.edited-1.md"), edited_text);
    assert!(sandbox.read_file(tracker).contains("<!-- ISSUES_START -->"));
}

/// Starts a review whose agent never ends; returns once the agent is running.
pub fn start_hanging_review() -> (Sandbox, std::process::Child, BufReader<ChildStdout>) {
    let sandbox = Sandbox::with_script("tasks: [{task: '*', steps: [{hang: true}]}]\n");
    let mut child = sandbox
        .tribunal_command(&["review", "plan.md", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut event_line = String::new();
    while !event_line.contains("\"effect\":\"ask\"") {
        event_line.clear();
        assert!(lines.read_line(&mut event_line).unwrap() > 0, "the run ended early");
    }
    (sandbox, child, lines)
}

fn send_signal(child: &std::process::Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
}

#[test]
fn the_first_interrupt_lets_agents_finish_and_the_second_ends_them() {
    let (sandbox, mut child, mut lines) = start_hanging_review();
    let mut notice_reader = BufReader::new(child.stderr.take().unwrap());
    send_signal(&child, Signal::INT);
    let mut notice = String::new();
    // The first line is about the sandbox.
    notice_reader.read_line(&mut String::new()).unwrap();
    notice_reader.read_line(&mut notice).unwrap();
    assert_eq!(notice, "note: waiting for 1 agent to finish before stopping; press Ctrl-C again to stop now\n");
    send_signal(&child, Signal::INT);
    let mut remaining_output = String::new();
    lines.read_to_string(&mut remaining_output).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let last_event: serde_json::Value = serde_json::from_str(remaining_output.lines().last().unwrap()).unwrap();
    assert_eq!((&last_event["kind"], &last_event["reason"]), (&"run_parked".into(), &"stopped".into()));

    sandbox.write_file("script.yaml", "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    assert_eq!(sandbox.run_tribunal(&["resume"]).exit_code, Some(0));
}

#[test]
fn a_hang_up_is_ignored_and_a_termination_request_parks_the_run_at_once() {
    let (sandbox, mut child, _lines) = start_hanging_review();
    send_signal(&child, Signal::HUP);
    send_signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let status = sandbox.run_tribunal(&["status"]);
    assert!(status.stdout.contains("stopped") && status.stdout.contains("tribunal resume plan-"), "{}", status.stdout);
}

#[test]
fn stopping_a_run_that_is_not_running_reports_its_state() {
    let sandbox = waiting_sandbox();
    let run_id = sandbox.last_run_id();
    assert_eq!(sandbox.run_tribunal(&["stop"]).stdout, "nothing is running here\n");
    for args in [&["stop", &run_id][..], &["stop", &run_id, "--now"]] {
        let output = sandbox.run_tribunal(args);
        assert_eq!(
            (output.exit_code, output.stdout),
            (Some(0), format!("run {run_id} has stopped (waiting); resume it with `tribunal resume {run_id}`\n"))
        );
    }
    assert!(sandbox.run_json(&["stop", &run_id])["stopping"].is_null());
    // The lock looks as if the process had been killed and its keepers had not finished yet.
    let held_lock = hold_run_lock(&sandbox, &run_id, &format!("{run_id}\n1@1@0\n"));
    let output = sandbox.run_tribunal(&["stop"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("its remaining agents are being terminated"), "{}", output.stdout);
    drop(held_lock);
    // The lock looks as if a Tribunal with another lock format had taken it.
    let _held = hold_run_lock(&sandbox, &run_id, "another process\n");
    let output = sandbox.run_tribunal(&["stop"]);
    assert_eq!(output.exit_code, Some(5), "{}", output.stdout);
    insta::assert_snapshot!(sandbox.normalize_output(&output.stderr), @"
    error: run [run] is in progress, but its process could not be reached
      Its lock does not say in a known way which process holds it. The run was not stopped.
      help: stop it where it was started, as the same user: `tribunal stop [run]`
    ");
}

#[test]
fn reloaded_settings_that_do_not_fit_the_started_run_are_refused() {
    let (sandbox, mut child, _lines) = start_hanging_review();
    send_signal(&child, Signal::TERM);
    child.wait().unwrap();
    // The recorded call that was under way names the old agent.
    let settings = sandbox.read_file("tribunal.yaml");
    sandbox.write_file("tribunal.yaml", &settings.replace("scripted", "other"));
    sandbox.write_file("script.yaml", "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    let output = sandbox.run_tribunal(&["resume", "--reload"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    assert!(
        output.stderr.contains("the changed settings conflict with") && output.stderr.contains("tribunal resume plan-"),
        "{}",
        output.stderr
    );
    assert_eq!(sandbox.run_tribunal(&["resume"]).exit_code, Some(0));
}

/// Both challengers doubt one finding. On the other one, which is critical, no two of three verdicts agree.
const DISPUTED_SCRIPT: &str = "tasks:
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
fn a_critical_finding_in_dispute_waits_for_the_user_with_the_command_to_type() {
    let sandbox = Sandbox::with_script(DISPUTED_SCRIPT);
    let settings = sandbox.read_file("tribunal.yaml").replace("tier: 0", "tier: 1\nlevel: minimal");
    sandbox.write_file("tribunal.yaml", &settings);
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    let review_text = sandbox.normalize_output(&output.stderr);
    let challenge_lines: Vec<&str> =
        review_text.lines().skip_while(|line| !line.contains("answered on")).skip(3).take(8).collect();
    insta::assert_snapshot!(challenge_lines.join("\n"), @"
        F1 in doubt, high → medium (2 ambiguous)
           fast for whom?
        F2 is critical and in doubt (1 valid, 1 invalid, 1 ambiguous), waiting for your decision
           speed is the risk
           “It shall be fast.”
           D1 needs an answer (product owner):
             tribunal decisions [run].D1 ANSWER  (uphold, dismiss, defer)
    2 new findings, 1 to fix (1 medium)
    ");
    assert_eq!(sandbox.run_tribunal(&["decisions", "D1", "uphold"]).exit_code, Some(0));
    let output = sandbox.run_tribunal(&["resume"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let findings = sandbox.run_tribunal(&["findings", "--status", "fixed"]).stdout;
    let challenged_lines: Vec<&str> = findings.lines().filter(|line| line.contains("challenged:")).collect();
    insta::assert_snapshot!(challenged_lines.join("\n"), @"
    challenged: in doubt, high → medium (2 ambiguous): fast for whom?
    challenged: in doubt (1 valid, 1 invalid, 1 ambiguous), waiting for your decision: speed is the risk (“It shall be fast.”)
    ");
    let tracker = sandbox.read_file(".tribunal/reviews/plan-issues.md");
    assert!(tracker.contains("- Challenged: in doubt, counted as medium; 2 ambiguous: fast for whom?"), "{tracker}");
    assert!(tracker.contains("- Challenged: challengers could not settle this critical finding"), "{tracker}");
}

#[test]
fn status_does_not_ask_again_for_answered_decisions() {
    let sandbox = waiting_sandbox();
    assert!(sandbox.run_tribunal(&["status"]).stdout.contains(".D1 ANSWER"));
    assert_eq!(sandbox.run_tribunal(&["decisions", "D1", "dismiss"]).exit_code, Some(0));
    let status_text = sandbox.run_tribunal(&["status"]).stdout;
    assert!(!status_text.contains("ANSWER") && status_text.contains("tribunal resume "), "{status_text}");
}
