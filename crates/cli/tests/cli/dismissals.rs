//! What the user dismissed stays dismissed in the next run on the same file, until the user opens it again.

use tribunal_store::Store;
use tribunal_workflows::runs::records::RecordKind;

use crate::common::Sandbox;

const TRACKER: &str = ".tribunal/reviews/plan-issues.md";
const REVIEW: [&str; 3] = ["review", "plan.md", "--no-fix"];

/// Every run finds the same flaw.
const SCRIPT: &str = "tasks:
  - task: '*/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/fix/*'
    fix: [{match: fast, blocked: how fast must it be}]
";

fn edit_tracker(sandbox: &Sandbox, status: &str, new_status: &str) {
    let tracker_text = sandbox.read_file(TRACKER);
    assert!(tracker_text.contains(status), "{tracker_text}");
    sandbox.write_file(TRACKER, &tracker_text.replacen(status, new_status, 1));
}

fn kept_lines(progress_text: &str) -> Vec<&str> {
    progress_text.lines().filter(|line| line.contains("dismissed, as you decided in")).map(str::trim).collect()
}

#[test]
fn a_dismissal_in_the_tracker_lasts_until_it_is_opened_again() {
    let sandbox = Sandbox::with_script(SCRIPT);
    let first = sandbox.run_tribunal(&REVIEW);
    assert_eq!(sandbox.run_json(&["findings"])["findings"][0]["status"], "open", "{}", first.stderr);
    let first_run = sandbox.last_run_id();

    // The run has ended, so the next one takes the edit from its tracker.
    edit_tracker(&sandbox, "high · open", "high · dismissed: we know");
    let second = sandbox.run_tribunal(&REVIEW);
    assert_eq!(second.exit_code, Some(0), "{}", second.stderr);
    let kept_line = format!(
        "1 finding stays dismissed, as you decided in {first_run}: F1 (set it to open in the tracker to change that)"
    );
    assert_eq!(kept_lines(&second.stderr), [kept_line.as_str()], "{}", second.stderr);
    assert!(!second.stderr.contains("fast is vague"), "one line, not one for each finding: {}", second.stderr);
    assert!(!second.stderr.contains("warning"), "all of the edit was used: {}", second.stderr);
    let findings = sandbox.run_json(&["findings"]);
    assert_eq!(findings["findings"][0]["status"], "dismissed");
    assert_eq!(findings["findings"][0]["history"][1]["cause"]["dismissed_before"]["run"], first_run.as_str());

    // The records stay when the runs that wrote them are removed.
    assert_eq!(sandbox.run_tribunal(&["discard", &first_run]).exit_code, Some(0));
    let third = sandbox.run_tribunal(&REVIEW);
    assert_eq!(kept_lines(&third.stderr), [kept_line.as_str()], "{}", third.stderr);

    edit_tracker(&sandbox, "high · dismissed (by the user)", "high · open");
    for _ in 0..2 {
        let opened = sandbox.run_tribunal(&REVIEW);
        assert!(kept_lines(&opened.stderr).is_empty(), "{}", opened.stderr);
        assert_eq!(sandbox.run_json(&["findings"])["findings"][0]["status"], "open");
    }
}

/// Answers the question of a waiting run with `dismiss`, which the next resume applies.
fn answered_sandbox() -> Sandbox {
    let sandbox = Sandbox::with_script(SCRIPT);
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(3));
    assert_eq!(sandbox.run_tribunal(&["decisions", "D1", "dismiss", "--note", "we know"]).exit_code, Some(0));
    sandbox
}

fn count_records(sandbox: &Sandbox) -> usize {
    let store = Store::open_read_only(&sandbox.path_of(".tribunal")).unwrap();
    store.read_records(RecordKind::DismissedFinding, "").unwrap().len()
}

#[test]
fn a_kill_leaves_the_record_and_its_entry_or_neither() {
    let reference = answered_sandbox();
    assert_eq!(reference.run_tribunal(&["resume"]).exit_code, Some(0));
    assert_eq!(count_records(&reference), 1);
    let log_text = reference.run_tribunal(&["log", "--json"]).stdout;
    let entries = log_text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let is_write = |entry: &serde_json::Value| {
        entry["reply"]["reply"] == "write_records" && !entry["key"].as_str().unwrap().ends_with("/confidence")
    };
    let entry_id = entries.into_iter().find(is_write).unwrap()["id"].as_str().unwrap().to_string();

    for (moment, recorded_count) in [("before", 0), ("after", 1)] {
        let sandbox = answered_sandbox();
        let fault_point = format!("{moment}:{entry_id}");
        let killed = sandbox.tribunal_command(&["resume"]).env("TRIBUNAL_FAULT", &fault_point).output().unwrap();
        assert_eq!(killed.status.code(), None, "{fault_point}: {killed:?}");
        assert_eq!(count_records(&sandbox), recorded_count, "{fault_point}");
        assert_eq!(sandbox.run_tribunal(&["resume"]).exit_code, Some(0));
        assert_eq!(count_records(&sandbox), 1, "{fault_point}");
        // The next run on the same file keeps it dismissed.
        let next = sandbox.run_tribunal(&["review", "plan.md"]);
        assert_eq!((next.exit_code, kept_lines(&next.stderr).len()), (Some(0), 1), "{}", next.stderr);
    }
}
