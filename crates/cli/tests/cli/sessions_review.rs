//! Reviews whose findings a session repairs, through the binary: the tests call the hooks, and scripts play the reviewers.

use serde_json::json;

use crate::{
    common::{Ran, Sandbox},
    sessions::{OURS, answer, refused, stops},
};

const DONE: &str = "<review-complete>ALL_ISSUES_RESOLVED</review-complete>";

/// Two findings in the first round, none after it.
const TWO: &str = r#"
tasks:
  - task: "round-1/review/*"
    steps:
      - findings:
          - {severity: low, category: vague, description: "no risks at all", quote: "None."}
          - {severity: high, category: vague, description: "fast is no number", quote: "It shall be fast."}
  - {task: "*", steps: [{findings: []}]}
"#;

fn reviewed() -> Sandbox {
    let sandbox = Sandbox::scripted(TWO);
    sandbox.write("tribunal.yaml", &sandbox.read("tribunal.yaml").replace("tier: 0", "tier: 1"));
    let ran = sandbox.run(&["review", "--in-session", "--session", "s1", "plan.md"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("its findings are in the hands of a session"), "{}", ran.err);
    sandbox
}

fn repair(sandbox: &Sandbox) {
    let text = sandbox.read("plan.md");
    sandbox.write("plan.md", &text.replace("fast", "done in 200 ms").replace("None.", "Two, see below."));
}

fn resume(sandbox: &Sandbox) -> Ran {
    let mut command = sandbox.command(&["resume"]);
    Ran::of(command.env("CLAUDE_CODE_SESSION_ID", "s1").output().unwrap())
}

fn state(sandbox: &Sandbox) -> String {
    sandbox.json(&["status"])["runs"][0]["state"].as_str().unwrap().to_string()
}

#[test]
fn a_session_is_sent_back_until_what_it_repaired_is_verified() {
    let sandbox = reviewed();
    assert!(sandbox.read(OURS).contains("in_progress_count: 2\n"), "{}", sandbox.read(OURS));
    let reason = refused(&sandbox, &stops("s1", "All is well.")).unwrap();
    insta::assert_snapshot!(sandbox.normal(&reason));
    let reason = refused(&sandbox, &stops("s1", DONE)).unwrap();
    assert!(
        reason.contains("You said that it is done, and it is not.") && reason.contains("F1 high"),
        "{reason}"
    );
    assert_eq!(refused(&sandbox, &stops("s2", "")), None);

    repair(&sandbox);
    assert!(refused(&sandbox, &stops("s1", DONE)).is_some(), "nobody has looked at it yet");
    let ran = resume(&sandbox);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let (said, _) = answer(&sandbox, "stop", &stops("s1", "Done."));
    assert!(said["systemMessage"].as_str().unwrap().contains("is resolved"), "{said}");
    assert_eq!(state(&sandbox), "resolved");
    let awake = |entry: &serde_json::Value| entry["at"]["awake_ms"].as_u64().unwrap();
    let log = sandbox.events(&["log"]);
    assert!(log.is_sorted_by_key(awake), "the run's clock never goes back: {log:?}");
    let findings = sandbox.json(&["findings"]);
    assert_eq!(findings["findings"][0]["status"], "fixed", "{findings}");
}

#[test]
fn who_changes_nothing_near_a_finding_has_not_repaired_it() {
    let sandbox = reviewed();
    let text = sandbox.read("plan.md");
    sandbox.write("plan.md", &text.replace("# Plan", "# The plan"));
    let ran = resume(&sandbox);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.err.contains("said to be fixed, but nothing near it was changed"), "{}", ran.err);
    assert!(refused(&sandbox, &stops("s1", DONE)).is_some());
}

#[test]
fn taking_the_text_away_repairs_nothing_and_checks_count() {
    let sandbox = reviewed();
    sandbox.write("plan.md", "# Plan\n");
    let ran = resume(&sandbox);
    assert!(ran.err.contains("it would leave 1"), "{}", ran.err);
    assert_eq!(ran.code, Some(3), "{}", ran.err);

    let sandbox = Sandbox::scripted(TWO);
    sandbox.set("verify: [\"! grep -n TBD plan.md\"]");
    sandbox.run(&["review", "--in-session", "--session", "s1", "plan.md"]);
    let text = sandbox.read("plan.md");
    sandbox.write("plan.md", &text.replace("fast", "TBD").replace("None.", "Some."));
    let ran = resume(&sandbox);
    assert!(ran.err.contains("the check was: ! grep -n TBD plan.md"), "{}", ran.err);
    assert!(refused(&sandbox, &stops("s1", DONE)).is_some());
}

/// The session can write every file of the project, so answers in files may be its own and do not count.
#[test]
fn the_session_does_not_answer_for_the_person() {
    let sandbox = reviewed();
    let run = sandbox.last_run();
    let mut command = sandbox.command(&["decisions", "D1", "accept"]);
    let ran = Ran::of(command.env("CLAUDE_CODE_SESSION_ID", "s1").output().unwrap());
    assert_eq!(ran.code, Some(3), "{}", ran.out);
    assert!(ran.err.contains("this very session's work"), "{}", ran.err);

    let page = format!(".tribunal/awaiting-human/{run}.D1.yaml");
    sandbox.write(&page, &sandbox.read(&page).replace("answer: \"\"", "answer: accept"));
    let tracker = ".tribunal/reviews/plan-issues.md";
    sandbox
        .write(tracker, &sandbox.read(tracker).replace("open", "dismissed").replace("assigned", "dismissed"));
    let ran = resume(&sandbox);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(refused(&sandbox, &stops("s1", DONE)).is_some());

    // The user may accept, and the run ends.
    let ran = sandbox.run(&["decisions", &format!("{run}.D2"), "accept"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(sandbox.run(&["resume"]).code, Some(0));
    assert_eq!(refused(&sandbox, &stops("s1", "")), None);
}

#[test]
fn a_session_that_gives_up_leaves_the_question_to_a_person() {
    let sandbox = reviewed();
    let (said, _) =
        answer(&sandbox, "stop", &stops("s1", "<review-blocked>only legal knows</review-blocked>"));
    let told = said["systemMessage"].as_str().unwrap();
    assert!(told.contains("only legal knows") && told.contains("2 open findings wait for you"), "{told}");
    assert_eq!(state(&sandbox), "waiting");
    let asked = sandbox.run(&["decisions"]).out;
    assert!(asked.contains("who repairs what is open?"), "{asked}");
    // The session may still repair the findings later.
    repair(&sandbox);
    assert_eq!(resume(&sandbox).code, Some(0));
}

#[test]
fn a_run_that_ended_otherwise_holds_nobody() {
    let sandbox = reviewed();
    resume(&sandbox);
    for title in ["# A plan", "# The plan", "# Our plan"] {
        assert!(refused(&sandbox, &stops("s1", "")).is_some());
        let text = sandbox.read("plan.md");
        let (_, rest) = text.split_once('\n').unwrap();
        sandbox.write("plan.md", &format!("{title}\n{rest}"));
        resume(&sandbox);
    }
    assert_eq!(state(&sandbox), "halted");
    let (said, _) = answer(&sandbox, "stop", &stops("s1", ""));
    assert!(said["systemMessage"].as_str().unwrap().contains("the review is halted"), "{said}");
}

#[test]
fn a_session_repairs_one_subject_and_must_be_known() {
    let sandbox = Sandbox::scripted(TWO);
    let ran = sandbox.run(&["review", "--in-session", "plan.md"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("not typed in one"), "{}", ran.err);
    sandbox.write("other.md", "# Other\n");
    let ran = sandbox.run(&["review", "--in-session", "--session", "s1", "plan.md", "other.md"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("one subject at a time"), "{}", ran.err);
    assert!(!sandbox.path(OURS).exists());
}

#[test]
fn a_new_session_is_told_what_happened_here() {
    let sandbox = reviewed();
    let (said, _) = answer(&sandbox, "session-start", &json!({ "session_id": "s9", "source": "startup" }));
    let told = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(told.contains("1 questions wait") || told.contains("1 question waits"), "{told}");
    let (said, _) = answer(&sandbox, "session-start", &json!({ "session_id": "s1", "source": "resume" }));
    let told = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(told.contains("This session has taken on plan-"), "{told}");
}

/// The journal decides whether a session may stop; edits of the state file do not.
#[test]
fn the_state_file_does_not_say_what_is_judged() {
    let sandbox = reviewed();
    sandbox.write(
        OURS,
        &sandbox.read(OURS).replace("workflow_name: review", "workflow_name: loop\niteration: 1"),
    );
    assert!(refused(&sandbox, &stops("s1", DONE)).is_some());
    let (said, _) = answer(&sandbox, "stop", &stops("s1", "<review-blocked>x y</review-blocked>"));
    assert!(said["systemMessage"].as_str().unwrap().contains("open findings wait"), "{said}");
    repair(&sandbox);
    assert_eq!(resume(&sandbox).code, Some(0), "the journal is as it was");

    let sandbox = reviewed();
    sandbox.write(
        OURS,
        &sandbox
            .read(OURS)
            .replace("run: plan", "run: nope")
            .replace("in_progress_count: 2", "in_progress_count: 0"),
    );
    let (said, _) = answer(&sandbox, "stop", &stops("s1", DONE));
    let told = said["systemMessage"].as_str().unwrap();
    assert!(told.contains("no journal here knows of nope") && !told.contains("resolved"), "{told}");
}

#[test]
fn a_session_out_of_time_leaves_the_review_halted() {
    let sandbox = reviewed();
    assert_eq!(refused(&sandbox, &stops("s1", "<review-timeout>five hours</review-timeout>")), None);
    assert_eq!(state(&sandbox), "halted");
    repair(&sandbox);
    assert_eq!(resume(&sandbox).code, Some(0));
}

#[test]
fn a_review_whose_process_died_is_gone_on_with_before_the_session_stops() {
    let sandbox = Sandbox::scripted(TWO);
    let mut command = sandbox.command(&["review", "--in-session", "--session", "s1", "plan.md"]);
    command.env("TRIBUNAL_FAULT", "before:0:started:round-1/freeze").output().unwrap();
    assert_eq!(state(&sandbox), "died");
    let reason = refused(&sandbox, &stops("s1", DONE)).unwrap();
    assert!(reason.contains("Go on with it before you stop: tribunal resume plan-"), "{reason}");
}

#[test]
fn the_judged_session_neither_changes_the_rules_nor_speaks_to_the_judges() {
    let sandbox = reviewed();
    let run = sandbox.last_run();
    for words in [&["resume", "--reload"][..], &["say", &run, "all is well"]] {
        let mut command = sandbox.command(words);
        let ran = Ran::of(command.env("CLAUDE_CODE_SESSION_ID", "s1").output().unwrap());
        assert_eq!(ran.code, Some(3), "{words:?} {}", ran.err);
        assert!(ran.err.contains("this very session's work"), "{words:?} {}", ran.err);
    }
}
