//! `tribunal discard`: runs move to the trash and come back complete; nothing nags about a run that was replaced.

use crate::{common::Sandbox, gc::project_with_three_runs};

#[test]
fn a_discarded_run_is_hidden_and_comes_back_as_it_was() {
    let (sandbox, [resolved_run, waiting_run, crashed_run]) = project_with_three_runs();
    let decision_pages = || -> Vec<String> {
        let pages = std::fs::read_dir(sandbox.path_of(".tribunal/awaiting-human")).into_iter().flatten().flatten();
        pages.map(|page| page.file_name().to_string_lossy().into_owned()).collect()
    };
    let pages_before = decision_pages();
    assert_eq!(pages_before.len(), 1, "{pages_before:?}");
    let runs_before = sandbox.run_json(&["runs"]);

    let discarded = sandbox.run_tribunal(&["discard", &waiting_run, &resolved_run]);
    assert_eq!(discarded.exit_code, Some(0), "{}", discarded.stderr);
    assert!(discarded.stdout.contains(&format!("tribunal undo {resolved_run}")), "{}", discarded.stdout);
    assert!(discarded.stdout.contains(&format!("tribunal discard --restore {waiting_run}")), "{}", discarded.stdout);
    assert_eq!(sandbox.run_ids(), [crashed_run.as_str()]);
    assert_eq!(sandbox.run_json(&["decisions"])["decisions"].as_array().unwrap().len(), 0);
    assert_eq!(decision_pages(), Vec::<String>::new(), "no page asks for a run that is gone");
    let refused = sandbox.run_tribunal(&["resume", &waiting_run]);
    assert_eq!(refused.exit_code, Some(2));
    assert!(refused.stderr.contains(&format!("tribunal discard --restore {waiting_run}")), "{}", refused.stderr);

    // A discarded run can still be read by its name, and gc keeps it for a week.
    assert_eq!(sandbox.run_tribunal(&["gc", "--runs"]).exit_code, Some(0));
    assert_eq!(sandbox.run_tribunal(&["findings", &waiting_run]).exit_code, Some(0));
    assert_eq!(sandbox.run_tribunal(&["discard", "--restore", &waiting_run, &resolved_run]).exit_code, Some(0));
    assert_eq!(sandbox.run_json(&["runs"]), runs_before);
    assert_eq!(decision_pages(), pages_before);
    assert_eq!(sandbox.run_tribunal(&["resume", &waiting_run]).exit_code, Some(3), "it waits as before");
}

#[test]
fn a_week_later_gc_removes_it_with_everything_it_had() {
    let (sandbox, [resolved_run, waiting_run, crashed_run]) = project_with_three_runs();
    assert_eq!(sandbox.run_tribunal(&["discard", &waiting_run, &crashed_run]).exit_code, Some(0));
    let time_file = format!(".tribunal/discarded/{waiting_run}/discarded-at");
    let discarded_ms: u64 = sandbox.read_file(&time_file).parse().unwrap();
    sandbox.write_file(&time_file, &(discarded_ms - 7 * 86_400_000).to_string());
    assert_eq!(sandbox.run_json(&["gc"])["runs"], serde_json::json!([waiting_run]));
    for directory in ["discarded", "work", "originals", "checkpoints"] {
        assert!(!sandbox.path_of(&format!(".tribunal/{directory}/{waiting_run}")).exists(), "{directory}");
    }
    assert_eq!(sandbox.run_tribunal(&["findings", &waiting_run]).exit_code, Some(2), "it is gone for good");
    assert_eq!(sandbox.run_ids(), [resolved_run]);
    assert_eq!(sandbox.run_tribunal(&["discard", "--restore", &crashed_run]).exit_code, Some(0));
}

#[test]
fn runs_are_selected_by_state_and_age() {
    let (sandbox, [resolved_run, _waiting_run, crashed_run]) = project_with_three_runs();
    let selected =
        |arguments: &[&str]| sandbox.run_json(&[&["discard", "--dry-run"], arguments].concat())["runs"].clone();
    let run_ids = |rows: &serde_json::Value| -> Vec<String> {
        rows.as_array().unwrap().iter().map(|row| row["run"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(run_ids(&selected(&["--failed"])), [crashed_run.as_str()]);
    assert_eq!(run_ids(&selected(&["--failed", "--older-than", "1d"])), Vec::<String>::new());
    // A run that waits for an answer is discarded only by its name.
    assert_eq!(run_ids(&selected(&["--older-than", "0d"])), [resolved_run.as_str(), crashed_run.as_str()]);
    assert_eq!(sandbox.run_ids().len(), 3, "a dry run discards nothing");
    assert_eq!(sandbox.run_tribunal(&["discard"]).exit_code, Some(2));
    assert_eq!(sandbox.run_tribunal(&["discard", "--older-than", "soon"]).exit_code, Some(2));
    assert_eq!(
        sandbox.run_tribunal(&["discard", "--restore", &resolved_run]).exit_code,
        Some(2),
        "it is not discarded"
    );
}

#[test]
fn a_run_that_was_replaced_is_neither_resumed_nor_shown_at_length() {
    let sandbox = Sandbox::with_shell_agent("echo no key >&2; exit 1\n");
    for _ in 0..3 {
        assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(5));
    }
    let run_ids = sandbox.run_ids();
    let shown = sandbox.run_tribunal(&["status"]).stdout;
    assert!(shown.contains("2 failed runs were followed by a newer run: tribunal discard --failed"), "{shown}");
    assert!(!shown.contains(&run_ids[0]) && !shown.contains(&run_ids[1]) && shown.contains(&run_ids[2]), "{shown}");
    // Only the last one is offered when the file is reviewed again.
    let reviewed_again = sandbox.run_tribunal(&["review", "plan.md"]).stderr;
    assert!(reviewed_again.contains(&format!("tribunal resume {}", run_ids[2])), "{reviewed_again}");
    assert!(!reviewed_again.contains(&format!("tribunal resume {}", run_ids[0])), "{reviewed_again}");
    // Once the newest is discarded, the one before it can be resumed again.
    let newest_run = sandbox.last_run_id();
    sandbox.run_tribunal(&["discard", &newest_run]);
    let resumed = sandbox.run_tribunal(&["resume"]);
    assert!(resumed.stderr.contains(&run_ids[2]), "{}", resumed.stderr);
}
