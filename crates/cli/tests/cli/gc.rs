//! `tribunal gc`: it removes what is no longer needed and keeps everything that may be needed complete.

use serde_json::Value;

use crate::{
    common::{FIXING_SCRIPT, Sandbox, hold_run_lock},
    decisions::start_hanging_review,
};

/// A project with one resolved run, one that waits for the user, and one that was killed.
pub fn project_with_three_runs() -> (Sandbox, [String; 3]) {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    sandbox.write_file("other.md", "# Other\n\nIt shall be fast.\n");
    sandbox.write_file("third.md", "# Third\n\nIt shall be fast.\n");
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(0));
    let resolved_run = sandbox.last_run_id();
    sandbox.write_file(
        "script.yaml",
        &FIXING_SCRIPT.replace(
            "replace: It shall be fast., with: It answers in 200 ms., description: number",
            "blocked: how fast",
        ),
    );
    assert_eq!(sandbox.run_tribunal(&["review", "other.md"]).exit_code, Some(3));
    let waiting_run = sandbox.last_run_id();
    let killed_review =
        sandbox.tribunal_command(&["review", "third.md"]).env("TRIBUNAL_FAULT", "after:0:round_ended:1#1").output();
    assert!(!killed_review.unwrap().status.success());
    let died_run = sandbox.last_run_id();
    (sandbox, [resolved_run, waiting_run, died_run])
}

/// Adds workspace files of a run that is not in the journal.
fn add_orphaned_copy(sandbox: &Sandbox) {
    for file in ["tree/plan.md", "base", "manifest.json"] {
        sandbox.write_file(&format!(".tribunal/work/gone-0000/round-1.freeze/{file}"), "a copy\n");
    }
}

/// Returns everything the user can read of a run: its entries and every text they name.
fn readable_record(sandbox: &Sandbox, run_id: &str) -> (Vec<Value>, Value) {
    let prompt_texts = sandbox.run_json(&["log", run_id, "--prompts", "--key", "/"]);
    for call in prompt_texts["calls"].as_array().unwrap() {
        assert!(call["prompt"]["text"].is_string() && call["answer"]["text"].is_string(), "{call}");
    }
    (sandbox.run_events(&["log", run_id]), prompt_texts)
}

#[test]
fn kept_runs_read_as_before_and_can_resume() {
    let (sandbox, [resolved_run, waiting_run, died_run]) = project_with_three_runs();
    let records_before: Vec<_> =
        [&resolved_run, &waiting_run, &died_run].map(|run_id| readable_record(&sandbox, run_id)).into();
    let output = sandbox.run_tribunal(&["gc"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let records_after: Vec<_> =
        [&resolved_run, &waiting_run, &died_run].map(|run_id| readable_record(&sandbox, run_id)).into();
    assert_eq!(records_after, records_before);
    assert!(sandbox.path_of(&format!(".tribunal/originals/{resolved_run}")).exists());

    assert_eq!(sandbox.run_tribunal(&["gc", "--runs", "--keep-days", "0"]).exit_code, Some(0));
    assert_eq!(sandbox.run_ids(), [waiting_run.clone(), died_run.clone()], "only what came to a good end may go");
    assert_eq!(
        vec![readable_record(&sandbox, &waiting_run), readable_record(&sandbox, &died_run)],
        records_before[1..]
    );
    assert!(!sandbox.path_of(&format!(".tribunal/originals/{resolved_run}")).exists());
    assert_eq!(
        sandbox.run_tribunal(&["resume", &died_run]).exit_code,
        Some(3),
        "it goes on as if nothing had happened"
    );
    assert_eq!(sandbox.run_tribunal(&["resume", &waiting_run]).exit_code, Some(3));
}

#[test]
fn leftovers_are_removed_and_unfinished_runs_keep_their_copies() {
    let (sandbox, [resolved_run, waiting_run, died_run]) = project_with_three_runs();
    let copies_dir = |run_id: &str| sandbox.path_of(&format!(".tribunal/work/{run_id}"));
    sandbox.write_file(&format!(".tribunal/work/{resolved_run}/round-1.freeze/tree/plan.md"), "a copy\n");
    add_orphaned_copy(&sandbox);
    sandbox.write_file(".tribunal/work/foreign/thesis.md", "not ours\n");
    sandbox.write_file(".tribunal-tmp-999999999@1@0-abc", "half a file");
    sandbox.write_file(".tribunal-tmp-mine", "not ours");
    for run_id in [&waiting_run, &died_run] {
        sandbox.write_file(&format!(".tribunal/work/{run_id}/round-1.fix.1/1/base"), "a copy\n");
    }
    let planned = sandbox.run_json(&["gc", "--dry-run"]);
    assert_eq!(planned["copies"].as_array().unwrap().len(), 2);
    assert!(copies_dir(&resolved_run).exists() && sandbox.path_of(".tribunal-tmp-999999999@1@0-abc").exists());
    let removed = sandbox.run_json(&["gc"]);
    assert_eq!(
        (&planned["bytes"], &planned["copies"], &planned["temporary"]),
        (&removed["bytes"], &removed["copies"], &removed["temporary"])
    );
    assert!(!copies_dir(&resolved_run).exists() && !copies_dir("gone-0000").exists());
    assert!(copies_dir(&waiting_run).exists() && copies_dir(&died_run).exists());
    assert!(
        sandbox.path_of(".tribunal-tmp-mine").exists() && sandbox.path_of(".tribunal/work/foreign/thesis.md").exists()
    );
    assert_eq!(sandbox.temporary_leftovers().len(), 1);
    assert_eq!(sandbox.run_tribunal(&["gc"]).stdout, "nothing to remove\n");
}

#[test]
fn a_recent_run_stays_and_a_project_without_runs_is_left_alone() {
    let (sandbox, _) = project_with_three_runs();
    let output = sandbox.run_tribunal(&["gc", "--runs"]);
    assert_eq!((output.exit_code, sandbox.run_ids().len()), (Some(0), 3));
    let empty_sandbox = Sandbox::new();
    assert_eq!(empty_sandbox.run_tribunal(&["gc"]).stdout, "nothing to remove\n");
    assert!(!empty_sandbox.path_of(".tribunal").exists());
}

#[test]
fn a_live_run_is_left_alone() {
    let (sandbox, mut child, _lines) = start_hanging_review();
    let run_id = sandbox.last_run_id();
    assert_eq!(sandbox.run_json(&["runs", "--live"])["runs"][0]["run"], run_id.as_str());
    let output = sandbox.run_tribunal(&["gc", "--runs", "--keep-days", "0"]);
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(0), "nothing to remove\n"));
    assert!(output.stderr.contains(&format!("note: run {run_id} is in progress")), "{}", output.stderr);
    assert!(sandbox.path_of(&format!(".tribunal/work/{run_id}/round-1.freeze/tree/plan.md")).exists());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn removed_things_are_listed() {
    let (sandbox, _) = project_with_three_runs();
    add_orphaned_copy(&sandbox);
    let listing = sandbox.run_tribunal(&["gc", "--runs", "--keep-days", "0", "--dry-run"]).stdout;
    let listing = sandbox.normalize_output(&listing);
    // The sizes change with every word of the prompts, so the snapshot leaves them out.
    let lines = listing.lines().map(|line| line.split(" (").next().unwrap());
    let lines: Vec<&str> = lines.map(|line| line.split(" KB in total").next().unwrap()).collect();
    insta::assert_snapshot!(lines[..4].join("\n"), @"
    would remove 1 workspace directory
    would remove 6 unreferenced texts
    would remove 1 run
      [run]
    ");
}

#[test]
fn a_symlink_in_place_of_the_work_directory_is_refused() {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(0));
    let scratch_dir = sandbox.home_dir().with_file_name("scratch");
    std::fs::create_dir_all(scratch_dir.join("thesis")).unwrap();
    let work_dir = sandbox.path_of(".tribunal/work");
    let _ = std::fs::remove_dir_all(&work_dir);
    std::os::unix::fs::symlink(&scratch_dir, &work_dir).unwrap();
    let output = sandbox.run_tribunal(&["gc"]);
    assert_eq!(output.exit_code, Some(2), "{}", output.stderr);
    insta::assert_snapshot!(output.stderr, @"
    error: .tribunal/work is a link
      It may lead to files that do not belong to Tribunal. Nothing was removed.
      1. check where it leads: `ls -ld .tribunal/work`
      2. replace it with a directory, then run `tribunal gc` again
    ");
    assert!(scratch_dir.join("thesis").exists());
}

#[test]
fn a_run_whose_processes_are_still_ending_is_left_alone() {
    let sandbox = Sandbox::with_script(FIXING_SCRIPT);
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(0));
    let run_id = sandbox.last_run_id();
    // The lock looks as if the process had been killed and its keepers had not finished yet.
    let _held = hold_run_lock(&sandbox, &run_id, &format!("{run_id}\n1@1@0\n"));
    let removed = sandbox.run_json(&["gc", "--runs", "--keep-days", "0"]);
    assert_eq!((&removed["live"][0], removed["runs"].as_array().unwrap().len()), (&run_id.as_str().into(), 0));
    assert_eq!(sandbox.run_ids(), [run_id]);
}

#[test]
fn what_a_killed_gc_left_is_removed_by_the_next_one() {
    let (sandbox, [resolved_run, ..]) = project_with_three_runs();
    let remaining_dirs = || {
        let directories = ["originals", "checkpoints"].map(|name| format!(".tribunal/{name}/{resolved_run}"));
        directories.into_iter().filter(|directory| sandbox.path_of(directory).exists()).collect::<Vec<_>>()
    };
    assert_eq!(remaining_dirs().len(), 2);
    let mut killed_gc = sandbox.tribunal_command(&["gc", "--runs", "--keep-days", "0"]);
    let killed = killed_gc.env("TRIBUNAL_FAULT", "between:gc").output().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&killed.status), Some(9), "{killed:?}");
    assert!(!sandbox.run_ids().contains(&resolved_run), "the journal was swept first");
    assert_eq!(remaining_dirs().len(), 2);
    assert_eq!(sandbox.run_tribunal(&["gc"]).exit_code, Some(0));
    assert_eq!(remaining_dirs(), Vec::<String>::new());
    assert!(!sandbox.path_of(".tribunal/removing-runs").exists());
}
