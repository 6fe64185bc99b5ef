//! Landed changes can be shown and undone, and later edits of the user stay.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::common::{CommandOutput, PRD, Sandbox, hold_run_lock};

const PLAN_TEXT: &str = "# Plan\n\n## Goals\n\nIt shall be fast.\n\n## Risks\n\nNone.\n\n## Team\n\nWe are three.\n";
const FIXED_TEXT: &str =
    "# Plan\n\n## Goals\n\nIt answers in 200 ms.\n\n## Risks\n\nNone.\n\n## Team\n\nWe are three.\n";

/// A review with two findings that need separate changes; `second_fix` says whether the second one is blocked or fixed.
fn review_script(second_fix: &str) -> String {
    format!(
        "tasks:
  - task: 'round-1/review/*'
    steps:
      - findings:
          - {{severity: high, category: test, description: fast is vague, quote: It shall be fast.}}
          - {{severity: high, category: test, description: team is small, quote: We are three.}}
  - task: '*/review/*'
    steps: [{{findings: []}}]
  - task: '*/fix/*'
    fix:
      - {{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}}
      - {{match: team, {second_fix}}}
"
    )
}

const ALSO_FIXED: &str = "replace: We are three., with: We are four., description: one more";

/// A run that has fixed F1 and waits for the user because of F2.
fn waiting_run(plan_text: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::with_script(&review_script("blocked: who pays"));
    sandbox.write_file("plan.md", plan_text);
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(3), "{}", output.stderr);
    let run_id = sandbox.last_run_id();
    (sandbox, run_id)
}

/// A resolved run in which one fixer repaired both findings.
fn resolved_run() -> (Sandbox, String) {
    let sandbox = Sandbox::with_script(&review_script(ALSO_FIXED));
    sandbox.write_file("plan.md", PLAN_TEXT);
    let output = sandbox.run_tribunal(&["review", "plan.md"]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let run_id = sandbox.last_run_id();
    (sandbox, run_id)
}

fn parked_files(sandbox: &Sandbox, run_id: &str) -> Vec<PathBuf> {
    let items = fs::read_dir(sandbox.path_of(&format!(".tribunal/parked/{run_id}"))).into_iter().flatten().flatten();
    items.map(|dir_entry| dir_entry.path()).collect()
}

/// Runs a command that is killed at `fault_point`.
fn run_killed_at(sandbox: &Sandbox, args: &[&str], fault_point: &str) {
    let output = sandbox.tribunal_command(args).env("TRIBUNAL_FAULT", fault_point).output().unwrap();
    assert!(!output.status.success(), "{fault_point} did not come up");
}

/// Asserts that undo is refused with this exit code and that neither the file nor anything else was changed.
fn assert_undo_refused(sandbox: &Sandbox, undo_target: &str, expected_code: i32) -> CommandOutput {
    let (text_before, run_id) = (fs::read(sandbox.path_of("plan.md")).ok(), sandbox.last_run_id());
    let output = sandbox.run_tribunal(&["undo", undo_target, "--yes"]);
    assert_eq!(output.exit_code, Some(expected_code), "{}{}", output.stdout, output.stderr);
    assert_eq!(fs::read(sandbox.path_of("plan.md")).ok(), text_before);
    assert_eq!(parked_files(sandbox, &run_id), Vec::<PathBuf>::new());
    output
}

#[test]
fn after_an_undo_no_confidence_counts_even_for_the_same_text() {
    let (sandbox, run_id) = resolved_run();
    let level_line = || {
        let plan = sandbox.run_tribunal(&["review", "plan.md", "--dry-run", "--set", "tier=2"]).stdout;
        plan.lines().find(|line| line.trim_start().starts_with("level:")).unwrap_or(&plan).trim().to_string()
    };
    assert!(level_line().contains(&format!("in {run_id}")), "{}", level_line());
    let reviewed_text = sandbox.read_file("plan.md");
    assert_eq!(sandbox.run_tribunal(&["undo", &run_id, "--yes"]).exit_code, Some(0));
    assert_eq!(level_line(), "level:    full (tier 2, not reviewed before)");
    sandbox.write_file("plan.md", &reviewed_text);
    assert_eq!(level_line(), "level:    full (tier 2, not reviewed before)");
}

fn finding_status(sandbox: &Sandbox, finding_number: usize) -> Value {
    sandbox.run_json(&["findings"])["findings"][finding_number - 1]["status"].clone()
}

#[test]
fn a_whole_review_can_be_shown_and_undone() {
    let sandbox = Sandbox::with_demo();
    let text_before = sandbox.read_file(PRD);
    assert_eq!(sandbox.run_tribunal(&["review", PRD]).exit_code, Some(0));
    let (run_id, text_after) = (sandbox.last_run_id(), sandbox.read_file(PRD));
    let diff_output = sandbox.run_tribunal(&["diff", &run_id]);
    assert!(
        diff_output.stdout.starts_with(&format!("--- a/{PRD}\n+++ b/{PRD}\n@@ ")) && diff_output.stderr.is_empty(),
        "{}",
        diff_output.stdout
    );
    let undo_preview = sandbox.run_tribunal(&["undo", &run_id]);
    assert_eq!(
        (undo_preview.exit_code, sandbox.read_file(PRD)),
        (Some(0), text_after.clone()),
        "a preview changes nothing"
    );
    assert!(
        undo_preview.stdout.ends_with(&format!("to undo it, run `tribunal undo {run_id} --yes`\n")),
        "{}",
        undo_preview.stdout
    );
    let undo_output = sandbox.run_tribunal(&["undo", &run_id, "--yes"]);
    assert_eq!((undo_output.exit_code, sandbox.read_file(PRD)), (Some(0), text_before), "{}", undo_output.stderr);
    let parked_paths = parked_files(&sandbox, &run_id);
    assert_eq!(fs::read_to_string(&parked_paths[0]).unwrap(), text_after);
    assert_eq!(fs::metadata(&parked_paths[0]).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(sandbox.temporary_leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn every_landing_is_counted_as_a_checkpoint() {
    let (sandbox, _) = resolved_run();
    let review_files = fs::read_dir(sandbox.path_of(".tribunal/reviews")).unwrap().flatten();
    let metrics_path = review_files
        .map(|dir_entry| dir_entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "json"));
    let metrics_value: Value = serde_json::from_slice(&fs::read(metrics_path.unwrap()).unwrap()).unwrap();
    assert_eq!((&metrics_value["checkpoints"], &metrics_value["rollbacks"]), (&1.into(), &0.into()));
}

#[test]
fn a_diff_can_be_applied_by_git() {
    let (sandbox, run_id) = resolved_run();
    sandbox.write_file("run.patch", &sandbox.run_tribunal(&["diff", &run_id]).stdout);
    let run_git = |args: &[&str]| sandbox.isolated_command("git").args(args).output().unwrap();
    let apply_output = run_git(&["apply", "-R", "run.patch"]);
    assert!(apply_output.status.success(), "{apply_output:?}");
    assert_eq!(sandbox.read_file("plan.md"), PLAN_TEXT);
}

#[test]
fn undo_shows_its_plan_and_its_result() {
    let (sandbox, run_id) = waiting_run(PLAN_TEXT);
    let undo_preview = sandbox.run_tribunal(&["undo", &run_id]).stdout.replace(" \n", "\n");
    insta::assert_snapshot!(sandbox.normalize_output(&undo_preview), @"
    --- a/plan.md
    +++ b/plan.md
    @@ -2,7 +2,7 @@

     ## Goals

    -It answers in 200 ms.
    +It shall be fast.

     ## Risks

    1 change to undo in plan.md (diff above)
    F1 would be reopened when run [run] is resumed
    nothing was changed; to undo it, run `tribunal undo [run] --yes`
    ");
    insta::assert_snapshot!(sandbox.normalize_output(&sandbox.run_tribunal(&["diff", &run_id, "--stat"]).stdout), @"
    plan.md: 1 line added, 1 removed in 1 change
      round-1/fix-1/fix/1 fixed F1
    ");
    insta::assert_snapshot!(sandbox.normalize_output(&sandbox.run_tribunal(&["undo", "f1", "--yes"]).stdout), @"
    undid 1 change in plan.md; later edits were kept
    saved the previous version as .tribunal/parked/[run]/1-plan.md; restore it with `cp .tribunal/parked/[run]/1-plan.md plan.md`
    F1 will be reopened when run [run] is resumed
    next: tribunal resume [run]
    ");
    let undone = sandbox.run_tribunal(&["undo", &run_id, "--yes"]);
    insta::assert_snapshot!(sandbox.normalize_output(&undone.stdout), @"all changes of run [run] were undone");
    let output = sandbox.run_tribunal(&["diff", &run_id]);
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(0), ""));
    insta::assert_snapshot!(sandbox.normalize_output(&output.stderr), @"note: all changes of run [run] were undone");
    let diff_of_f2 = sandbox.run_tribunal(&["diff", &run_id, "F2"]);
    insta::assert_snapshot!(sandbox.normalize_output(&diff_of_f2.stderr), @"note: run [run] has no fix for F2");
    insta::assert_snapshot!(sandbox.normalize_output(&sandbox.run_tribunal(&["diff", &run_id, "F9"]).stderr), @"
    error: run [run] has no finding F9
      help: list its findings: `tribunal findings [run]`
    ");
}

#[test]
fn an_undone_finding_is_open_again_and_is_fixed_by_the_run() {
    let (sandbox, run_id) = waiting_run(PLAN_TEXT);
    assert_eq!(sandbox.read_file("plan.md"), FIXED_TEXT);
    assert_eq!(sandbox.run_tribunal(&["undo", &format!("{run_id}.F1"), "--yes"]).exit_code, Some(0));
    assert_eq!(sandbox.read_file("plan.md"), PLAN_TEXT);
    sandbox.run_tribunal(&["resume", &run_id]);
    let events = sandbox.run_events(&["log", &run_id]);
    let moves: Vec<&Value> =
        events.iter().filter(|event| event["kind"] == "finding_moved" && event["finding"] == "F1").collect();
    assert!(moves.iter().any(|event| event["note"] == "reopened by the user"), "{moves:?}");
    assert_eq!((finding_status(&sandbox, 1), sandbox.read_file("plan.md")), ("fixed".into(), FIXED_TEXT.into()));
    // The second fix is a landing of its own, although it made the same change, and it can be undone, too.
    let landings = sandbox.run_json(&["diff", &run_id])["landings"].clone();
    let undone: Vec<&Value> = landings.as_array().unwrap().iter().map(|landing| &landing["undone"]).collect();
    assert_eq!(undone, [true, false]);
    let second_undo = sandbox.run_json(&["undo", &run_id, "--yes"]);
    assert_eq!((&second_undo["done"], &second_undo["findings"][0]), (&true.into(), &"F1".into()));
    assert_eq!(sandbox.read_file("plan.md"), PLAN_TEXT);
    assert_eq!(parked_files(&sandbox, &run_id).len(), 2);
}

#[test]
fn findings_fixed_by_one_change_are_undone_together() {
    let (sandbox, run_id) = resolved_run();
    let text_after = sandbox.read_file("plan.md");
    let first_finding = format!("{run_id}.F1");
    let undo_preview = sandbox.run_tribunal(&["undo", &first_finding]);
    assert!(
        undo_preview.stdout.contains("the change that fixed F1 also fixed F2; they can only be undone together\n"),
        "{}",
        undo_preview.stdout
    );
    insta::assert_snapshot!(sandbox.normalize_output(&assert_undo_refused(&sandbox, &first_finding, 2).stderr), @"
    error: the change that fixed F1 also fixed F2
      They can only be undone together. Nothing was changed.
      1. show what that would do: `tribunal undo [run].F1`
      2. undo all of them: `tribunal undo [run].F1 --together --yes`
    ");
    assert_eq!(sandbox.read_file("plan.md"), text_after);
    let undo_output = sandbox.run_tribunal(&["undo", &first_finding, "--together", "--yes"]);
    assert!(undo_output.stdout.contains("its journal still lists F1, F2 as fixed\n"), "{}", undo_output.stdout);
    assert_eq!(sandbox.read_file("plan.md"), PLAN_TEXT);
    assert_eq!(finding_status(&sandbox, 1), "fixed", "the journal of a run that has ended stays as it is");
}

#[test]
fn later_edits_stay_and_conflicting_ones_prevent_the_undo() {
    let (sandbox, run_id) = waiting_run(PLAN_TEXT);
    sandbox.write_file("plan.md", &FIXED_TEXT.replace("None.", "One:\n\ntime").replace("200 ms", "300 ms"));
    insta::assert_snapshot!(sandbox.normalize_output(&assert_undo_refused(&sandbox, &format!("{run_id}.F1"), 3).stderr), @"
    error: plan.md was changed later in the same place: line 5
      Undoing the change would lose later edits in the same place. Nothing was changed.
      help: undo it by hand; show the change with `tribunal diff [run] F1`
    ");
    sandbox.write_file("plan.md", &FIXED_TEXT.replace("None.", "One:\n\ntime").replace("# Plan", "# The plan\r"));
    assert_eq!(sandbox.run_tribunal(&["undo", &run_id, "--yes"]).exit_code, Some(0));
    assert_eq!(
        sandbox.read_file("plan.md"),
        PLAN_TEXT.replace("None.", "One:\n\ntime").replace("# Plan", "# The plan\r")
    );
}

/// Lets a fixer repair the second finding in a change of its own, after the user has answered.
fn fix_second_finding(sandbox: &Sandbox, run_id: &str) {
    sandbox.write_file("script.yaml", &review_script(ALSO_FIXED));
    assert_eq!(sandbox.run_tribunal(&["decisions", "D1", "retry"]).exit_code, Some(0));
    let output = sandbox.run_tribunal(&["resume", run_id]);
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
}

#[test]
fn one_fix_can_be_undone_and_the_others_stay() {
    let (sandbox, run_id) = waiting_run(PLAN_TEXT);
    fix_second_finding(&sandbox, &run_id);
    assert_eq!(sandbox.read_file("plan.md"), FIXED_TEXT.replace("three", "four"));
    let finding_diff = sandbox.run_tribunal(&["diff", &format!("{run_id}.F2")]).stdout;
    assert!(finding_diff.contains("+We are four.") && !finding_diff.contains("+It answers"), "{finding_diff}");
    assert_eq!(sandbox.run_tribunal(&["undo", "F1", "--yes"]).exit_code, Some(0));
    assert_eq!(sandbox.read_file("plan.md"), PLAN_TEXT.replace("three", "four"));
    let remaining_diff = sandbox.run_tribunal(&["diff", &run_id]).stdout;
    assert!(remaining_diff.contains("+We are four.") && !remaining_diff.contains("+It answers"), "{remaining_diff}");
}

#[test]
fn edits_between_two_fixes_are_not_shown_as_changes_of_the_run_and_stay() {
    let (sandbox, run_id) = waiting_run(PLAN_TEXT);
    sandbox.write_file("plan.md", &FIXED_TEXT.replace("None.", "One."));
    fix_second_finding(&sandbox, &run_id);
    let diff_output = sandbox.run_tribunal(&["diff", &run_id]);
    assert!(
        diff_output.stdout.contains("+We are four.") && diff_output.stdout.contains("+It answers"),
        "{}",
        diff_output.stdout
    );
    assert!(
        !diff_output.stdout.contains("+One.") && diff_output.stderr.is_empty(),
        "{}{}",
        diff_output.stdout,
        diff_output.stderr
    );
    assert_eq!(sandbox.run_tribunal(&["undo", &run_id, "--yes"]).exit_code, Some(0));
    assert_eq!(sandbox.read_file("plan.md"), PLAN_TEXT.replace("None.", "One."));
}

#[test]
fn a_conflict_names_what_can_be_undone_instead() {
    let (sandbox, run_id) = waiting_run(PLAN_TEXT);
    fix_second_finding(&sandbox, &run_id);
    sandbox.write_file("plan.md", &sandbox.read_file("plan.md").replace("200 ms", "300 ms"));
    insta::assert_snapshot!(sandbox.normalize_output(&assert_undo_refused(&sandbox, &run_id, 3).stderr), @"
    error: plan.md was changed later in the same place: line 5
      Undoing the change would lose later edits in the same place. Nothing was changed.
      1. undo it by hand; show the change with `tribunal diff [run]`
      2. undo findings one by one where possible: `tribunal undo [run].FINDING`
    ");
    assert_eq!(sandbox.run_tribunal(&["undo", &format!("{run_id}.F2"), "--yes"]).exit_code, Some(0));
    assert_eq!(sandbox.read_file("plan.md"), FIXED_TEXT.replace("200 ms", "300 ms"));
}

#[test]
fn line_endings_and_a_missing_last_newline_are_restored() {
    let crlf_text = PLAN_TEXT.replace('\n', "\r\n");
    for plan_text in [crlf_text.trim_end(), PLAN_TEXT.trim_end(), &crlf_text] {
        let (sandbox, run_id) = waiting_run(plan_text);
        assert_ne!(sandbox.read_file("plan.md"), plan_text);
        assert_eq!(sandbox.run_tribunal(&["undo", &run_id, "--yes"]).exit_code, Some(0));
        assert_eq!(sandbox.read_file("plan.md"), plan_text);
    }
}

#[test]
fn a_file_that_is_no_longer_a_text_file_is_left_alone() {
    let (sandbox, run_id) = waiting_run(PLAN_TEXT);
    let plan_path = sandbox.path_of("plan.md");
    fs::write(&plan_path, b"# Plan\n\xff\n").unwrap();
    assert!(assert_undo_refused(&sandbox, &run_id, 2).stderr.contains("plan.md is not text (not valid UTF-8)"));
    fs::remove_file(&plan_path).unwrap();
    insta::assert_snapshot!(assert_undo_refused(&sandbox, &run_id, 2).stderr, @"
    error: plan.md does not exist
      Nothing was changed.
      help: restore the file as a text file inside the project, then try again
    ");
    let outside_file = sandbox.home_dir().with_file_name("outside.md");
    for link_target in [outside_file.as_path(), Path::new("other.md")] {
        fs::write(&outside_file, FIXED_TEXT).unwrap();
        sandbox.write_file("other.md", FIXED_TEXT);
        symlink(link_target, &plan_path).unwrap();
        assert!(assert_undo_refused(&sandbox, &run_id, 2).stderr.contains("error: plan.md is a link now\n"));
        assert_eq!(fs::read_to_string(&outside_file).unwrap(), FIXED_TEXT);
        assert_eq!(sandbox.read_file("other.md"), FIXED_TEXT);
        fs::remove_file(&plan_path).unwrap();
    }
    fs::create_dir(&plan_path).unwrap();
    assert!(assert_undo_refused(&sandbox, &run_id, 2).stderr.contains("`plan.md` is a directory"));
}

#[test]
fn a_file_that_cannot_be_parked_is_not_changed() {
    let (sandbox, run_id) = waiting_run(PLAN_TEXT);
    sandbox.write_file(".tribunal/parked", "in the way");
    assert!(
        assert_undo_refused(&sandbox, &run_id, 5)
            .stderr
            .contains("error: plan.md could not be saved before the undo: ")
    );
    fs::remove_file(sandbox.path_of(".tribunal/parked")).unwrap();
    let outside_dir = sandbox.home_dir().with_file_name("outside");
    fs::create_dir_all(&outside_dir).unwrap();
    symlink(&outside_dir, sandbox.path_of(".tribunal/parked")).unwrap();
    assert!(assert_undo_refused(&sandbox, &run_id, 2).stderr.contains(".tribunal/parked points outside the project"));
    assert_eq!(fs::read_dir(&outside_dir).unwrap().count(), 0);
}

#[test]
fn a_damaged_checkpoint_is_reported() {
    let (sandbox, run_id) = waiting_run(PLAN_TEXT);
    let texts_dir = sandbox.path_of(&format!(".tribunal/checkpoints/{run_id}/texts"));
    for dir_entry in fs::read_dir(texts_dir).unwrap().flatten() {
        fs::write(dir_entry.path(), "something else\n").unwrap();
    }
    assert!(
        assert_undo_refused(&sandbox, &run_id, 5)
            .stderr
            .contains(&format!("could not use a checkpoint of run {run_id}"))
    );
    assert_eq!(sandbox.run_tribunal(&["diff", &run_id]).exit_code, Some(5));
}

#[test]
fn a_running_run_is_left_alone() {
    let (sandbox, run_id) = waiting_run(PLAN_TEXT);
    let _held = hold_run_lock(&sandbox, &run_id, &format!("{run_id}\n1@1@0\n"));
    assert!(assert_undo_refused(&sandbox, &run_id, 2).stderr.contains("is already running in another process"));
    assert_eq!(sandbox.run_tribunal(&["undo", &run_id]).exit_code, Some(2));
}

#[test]
fn a_kill_between_checkpoint_and_landing_lands_nothing_until_the_resume() {
    let sandbox = Sandbox::with_script(&review_script("blocked: who pays"));
    sandbox.write_file("plan.md", PLAN_TEXT);
    run_killed_at(&sandbox, &["review", "plan.md"], "before:landing");
    let run_id = sandbox.last_run_id();
    assert!(sandbox.path_of(&format!(".tribunal/checkpoints/{run_id}")).exists());
    assert_eq!(sandbox.read_file("plan.md"), PLAN_TEXT);
    let output = sandbox.run_tribunal(&["undo", &run_id, "--yes"]);
    assert_eq!((output.exit_code, output.stdout), (Some(0), format!("run {run_id} has not changed anything\n")));
    // An edit before the resume makes the landing a different one; the checkpoint of the first attempt must not affect it.
    let edited_text = PLAN_TEXT.replace("None.", "One.");
    sandbox.write_file("plan.md", &edited_text);
    assert_eq!(sandbox.run_tribunal(&["resume", &run_id]).exit_code, Some(3));
    assert_eq!(sandbox.read_file("plan.md"), FIXED_TEXT.replace("None.", "One."));
    assert_eq!(sandbox.run_tribunal(&["undo", &run_id, "--yes"]).exit_code, Some(0));
    assert_eq!(sandbox.read_file("plan.md"), edited_text);
}

#[test]
fn a_kill_after_landing_can_be_undone_after_the_resume() {
    let sandbox = Sandbox::with_script(&review_script("blocked: who pays"));
    sandbox.write_file("plan.md", PLAN_TEXT);
    run_killed_at(&sandbox, &["review", "plan.md"], "after:landing");
    let run_id = sandbox.last_run_id();
    insta::assert_snapshot!(sandbox.normalize_output(&assert_undo_refused(&sandbox, &run_id, 2).stderr), @"
    error: run [run] was killed while it applied a change
      Resuming the run determines whether the change landed. Nothing was changed.
      help: resume it: `tribunal resume [run]`
    ");
    // Because of the edit the run cannot recognise the file as its own work.
    sandbox.write_file("plan.md", &FIXED_TEXT.replace("None.", "One."));
    assert_eq!(sandbox.run_tribunal(&["resume", &run_id]).exit_code, Some(3));
    assert_eq!(sandbox.run_tribunal(&["undo", &run_id, "--yes"]).exit_code, Some(0));
    assert_eq!(sandbox.read_file("plan.md"), PLAN_TEXT.replace("None.", "One."));
}

#[test]
fn a_killed_undo_is_completed_by_the_same_command() {
    for fault_point in ["before:write:plan.md", "after:write:plan.md", "after:write:1-plan.md"] {
        let (sandbox, run_id) = waiting_run(PLAN_TEXT);
        run_killed_at(&sandbox, &["undo", &run_id, "--yes"], fault_point);
        let text_now = sandbox.read_file("plan.md");
        assert!(text_now == PLAN_TEXT || text_now == FIXED_TEXT, "{fault_point}: {text_now}");
        let undo_output = sandbox.run_json(&["undo", &run_id, "--yes"]);
        assert_eq!((&undo_output["done"], &undo_output["findings"][0]), (&true.into(), &"F1".into()), "{fault_point}");
        assert_eq!(sandbox.read_file("plan.md"), PLAN_TEXT, "{fault_point}");
        assert_eq!(fs::read_to_string(&parked_files(&sandbox, &run_id)[0]).unwrap(), FIXED_TEXT, "{fault_point}");
        sandbox.run_tribunal(&["resume", &run_id]);
        assert_eq!(
            sandbox.read_file("plan.md"),
            FIXED_TEXT,
            "{fault_point}: it was open again, and was repaired again"
        );
        assert_eq!(sandbox.temporary_leftovers(), Vec::<PathBuf>::new(), "{fault_point}");
    }
}

#[test]
fn checkpoints_are_removed_with_their_run_and_not_before() {
    let (sandbox, run_id) = resolved_run();
    let checkpoint_dir = sandbox.path_of(&format!(".tribunal/checkpoints/{run_id}"));
    assert_eq!(sandbox.run_tribunal(&["gc"]).exit_code, Some(0));
    assert!(checkpoint_dir.exists(), "the run is there, and can be taken back");
    assert_eq!(sandbox.run_tribunal(&["undo", &run_id, "--yes"]).exit_code, Some(0));
    let recent_only = sandbox.run_json(&["gc", "--runs", "--keep-days", "1"]);
    assert_eq!(recent_only["originals"].as_array().unwrap().len(), 0);
    let gc_report = sandbox.run_json(&["gc", "--runs", "--keep-days", "0"]);
    let removed: Vec<&str> = gc_report["originals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|removed_item| removed_item["path"].as_str().unwrap())
        .collect();
    let expected_paths =
        ["originals", "checkpoints", "parked"].map(|dir_name| format!(".tribunal/{dir_name}/{run_id}"));
    assert_eq!(removed, expected_paths);
    assert!(!checkpoint_dir.exists() && parked_files(&sandbox, &run_id).is_empty());
}

#[test]
fn agents_cannot_read_checkpoints() {
    let sandbox = Sandbox::with_shell_agent("");
    sandbox.write_file("agent.sh", &format!("find . >> {:?}\n", sandbox.path_of("seen")));
    sandbox.write_file(".tribunal/checkpoints/old-0000/texts/abc", "a secret\n");
    sandbox.write_file(".tribunal/parked/old-0000/1-plan.md", "a secret\n");
    sandbox.run_tribunal(&["review", "plan.md", "--no-fix"]);
    let seen_files = sandbox.read_file("seen");
    assert!(seen_files.contains("./plan.md\n"), "{seen_files}");
    assert!(!seen_files.contains("old-0000"), "{seen_files}");
}

#[test]
fn documents_fit_their_schema() {
    let (sandbox, run_id) = waiting_run(PLAN_TEXT);
    for (args, name) in
        [(&["diff", &run_id][..], "diff"), (&["undo", &run_id], "undo"), (&["undo", &run_id, "--yes"], "undo")]
    {
        let document = sandbox.run_json(args);
        assert_eq!(document["schema"], format!("tribunal.{name}/1"));
        let schema = sandbox.run_json(&["schema", name]);
        assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&document), "{document}");
    }
}

#[test]
fn in_a_repository_git_can_show_what_landed_until_the_run_is_collected() {
    let sandbox = Sandbox::with_script(&review_script("blocked: who pays"));
    sandbox.write_file("plan.md", PLAN_TEXT);
    let run_git =
        |args: &[&str]| CommandOutput::from_output(sandbox.isolated_command("git").args(args).output().unwrap()).stdout;
    let run_landings_git = |args: &[&str]| run_git(&[&["--git-dir=.tribunal/landings.git"], args].concat());
    run_git(&["init", "-q", "-b", "main"]);
    run_git(&["config", "user.email", "p@x"]);
    run_git(&["config", "user.name", "P"]);
    run_git(&["add", "plan.md"]);
    run_git(&["commit", "-qm", "mine"]);
    let (head_before, status_before) =
        (run_git(&["rev-parse", "HEAD"]), run_git(&["status", "--porcelain=v2", "--branch"]));
    assert_eq!(sandbox.run_tribunal(&["review", "plan.md"]).exit_code, Some(3));
    let run_id = sandbox.last_run_id();
    insta::assert_snapshot!(run_landings_git(&["log", "--reverse", "--format=%B", &run_id]), @r"
    The files before round-1/fix-1/fix/1

    Landing round-1/fix-1/fix/1

    For F1, F2.

    Tribunal-Landing: 1 round-1/fix-1/fix/1
    ");
    assert_eq!(run_landings_git(&["show", &format!("{run_id}~1:plan.md")]), PLAN_TEXT);
    assert_eq!(run_landings_git(&["show", &format!("{run_id}:plan.md")]), FIXED_TEXT);
    let undo_preview = sandbox.run_tribunal(&["undo", &run_id]).stdout;
    let log_command = format!("git --git-dir=.tribunal/landings.git log -p {run_id}");
    assert!(undo_preview.contains(&format!("\nto see each landing: {log_command}\n")), "{undo_preview}");
    assert_eq!(sandbox.run_json(&["undo", &run_id])["log_command"], log_command.as_str());
    assert_eq!(run_git(&["log", "--all", "--format=%s"]), "mine\n", "the user's own history has no landings");
    assert_eq!(sandbox.run_tribunal(&["undo", &run_id, "--yes"]).exit_code, Some(0));
    assert_eq!(
        (run_git(&["rev-parse", "HEAD"]), run_git(&["status", "--porcelain=v2", "--branch"])),
        (head_before, status_before)
    );
    // The run can be collected only after the other finding is settled, too.
    sandbox.write_file("script.yaml", &review_script(ALSO_FIXED));
    sandbox.run_tribunal(&["decisions", "D1", "retry"]);
    assert_eq!(sandbox.run_tribunal(&["resume", &run_id]).exit_code, Some(0));
    assert_eq!(
        run_landings_git(&["log", "--format=%s", &run_id]).lines().count(),
        4,
        "the second repair found the first gone"
    );
    assert_eq!(sandbox.run_json(&["gc", "--runs", "--keep-days", "0", "--dry-run"])["runs"][0], run_id.as_str());
    assert!(sandbox.path_of(".tribunal/landings.git").exists());
    assert_eq!(sandbox.run_tribunal(&["gc", "--runs", "--keep-days", "0"]).exit_code, Some(0));
    assert!(!sandbox.path_of(".tribunal/landings.git").exists());
}

#[test]
fn without_a_repository_git_is_not_mentioned() {
    let (sandbox, run_id) = waiting_run(PLAN_TEXT);
    let undo_preview = sandbox.run_tribunal(&["undo", &run_id]).stdout;
    assert!(!undo_preview.contains("landings.git"), "{undo_preview}");
}
