//! What the user dismissed stays dismissed in the next run on the same file, until the user opens it again.

use crate::common::Sandbox;

const TRACKER: &str = ".tribunal/reviews/plan-issues.md";
const REVIEW: [&str; 3] = ["review", "plan.md", "--no-fix"];

/// Every run finds the same flaw.
const SCRIPT: &str = "tasks:
  - task: '*/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/challenge/*'
    steps: [{rulings: all_valid}]
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
