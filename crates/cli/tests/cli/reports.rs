//! `tribunal report`, and the file that a sprint or a story leaves: the same facts in every form, and an exit code.

use std::fs;

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::run_git,
    sprint_runs::sprint_sandbox,
    story_sandbox::{CRITICAL_REVIEW, story_sandbox, write_review},
};

fn assert_exit(output: &CommandOutput, exit_code: i32) {
    assert_eq!(output.exit_code, Some(exit_code), "{}{}", output.stdout, output.stderr);
}

fn find_run(sandbox: &Sandbox, prefix: &str) -> String {
    sandbox.run_ids().into_iter().find(|run_id| run_id.starts_with(prefix)).unwrap()
}

#[test]
fn a_story_that_landed_has_a_report_with_its_commit() {
    let sandbox = story_sandbox("develop\n");
    sandbox.append_setting("output_folder: _bmad-output");
    write_review(&sandbox, CRITICAL_REVIEW);
    let output = sandbox.run_tribunal(&["sprint", "1.2"]);
    assert_exit(&output, 0);
    let run_id = find_run(&sandbox, "story-");
    let report_file = format!("_bmad-output/reports/tribunal-{run_id}.md");
    assert!(output.stderr.contains(&format!("report: {report_file}\n")), "{}", output.stderr);
    let commit = run_git(&sandbox, &["rev-parse", "HEAD"]);
    let tree = run_git(&sandbox, &["rev-parse", "HEAD^{tree}"]);
    let verdict = format!("merged on main as {}; 1 check passed on tree {}", &commit[..10], &tree[..10]);
    let document = sandbox.read_file(&report_file);
    assert!(document.contains(&verdict), "{document}");
    assert!(document.contains("| 1-2-sift: Sift the flour | merged | "), "{document}");
    let report = sandbox.run_tribunal(&["report"]);
    assert_exit(&report, 0);
    assert!(report.stdout.contains(&verdict), "{}", report.stdout);
    assert!(report.stdout.contains("1 finding fixed, 1 left for later"), "{}", report.stdout);
    assert_eq!(sandbox.run_tribunal(&["report", &run_id, "--markdown"]).stdout, document);
    let json = sandbox.run_json(&["report"]);
    assert_eq!(json["stories"][0]["commit"], commit.trim());
    let changed_files = run_git(&sandbox, &["diff", "--name-only", "HEAD^", "HEAD"]).lines().count();
    assert_eq!(json["stories"][0]["change"]["files"], changed_files, "{json}");
}

#[test]
fn a_story_that_waits_has_its_question_in_the_report() {
    let sandbox = story_sandbox("echo 'I cannot.'\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1.2", "--set", "sprint.max_cycles=1"]), 3);
    let run_id = find_run(&sandbox, "story-");
    let question_id = format!("{run_id}.D1");
    let report = sandbox.run_tribunal(&["report"]);
    assert_exit(&report, 3);
    assert!(report.stdout.contains(&format!("? {question_id} (1-2-sift): ")), "{}", report.stdout);
    let document = sandbox.read_file(&format!(".tribunal/reports/tribunal-{run_id}.md"));
    assert!(document.contains(&format!("tribunal decisions {question_id} ANSWER")), "{document}");
    assert_eq!(sandbox.run_json(&["report"])["waiting"][0]["id"], *question_id);
    // An answer that the run has not read yet is no question any more.
    assert_exit(&sandbox.run_tribunal(&["decisions", &question_id, "skip"]), 0);
    let json = sandbox.run_json(&["report"]);
    assert_eq!((json["waiting"].as_array().map(Vec::len), &json["exit_code"]), (Some(0), &3.into()), "{json}");
    assert_exit(&sandbox.run_tribunal(&["resume", &run_id]), 0);
    let report = sandbox.run_tribunal(&["report"]);
    assert_exit(&report, 0);
    assert!(report.stdout.contains("skipped: you ended it for good"), "{}", report.stdout);
}

#[test]
fn a_sprint_has_one_report_about_all_of_its_stories() {
    let sandbox = sprint_sandbox("case $key in 1-2-sift) echo 'I cannot.' ;; *) develop_any ;; esac\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "--set", "sprint.max_cycles=1"]), 3);
    let report_files: Vec<_> = fs::read_dir(sandbox.path_of(".tribunal/reports")).unwrap().flatten().collect();
    assert_eq!(report_files.len(), 1, "{report_files:?}");
    let json = sandbox.run_json(&["report"]);
    assert_eq!((&json["kind"], &json["exit_code"]), (&"sprint".into(), &3.into()), "{json}");
    let verdicts: Vec<String> = json["stories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|story| format!("{}: {}", story["story"].as_str().unwrap(), story["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(verdicts, ["1-2-sift: waiting", "2-1-sell: merged", "2-2-bill: merged"]);
    assert_eq!(json["left_out"][0]["story"], "1-3-pack");
    let document = fs::read_to_string(report_files[0].path()).unwrap();
    assert!(document.contains("2 stories done, 1 waiting, 1 left out"), "{document}");
    assert!(document.contains("- 1-3-pack depends on 1-2-sift, which is not done"), "{document}");
    // The story has a report of its own, for who asks.
    let story_run = find_run(&sandbox, "story-2-1");
    assert_exit(&sandbox.run_tribunal(&["report", &story_run]), 0);
}

#[test]
fn the_report_of_a_discarded_run_says_so() {
    let sandbox = story_sandbox("echo 'I cannot.'\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1.2", "--set", "sprint.max_cycles=1"]), 3);
    let run_id = find_run(&sandbox, "story-");
    assert_eq!(sandbox.run_json(&["report", &run_id])["discarded"], false);
    assert_exit(&sandbox.run_tribunal(&["discard", &run_id]), 0);
    let json = sandbox.run_json(&["report", &run_id]);
    assert_eq!((&json["discarded"], json["waiting"].as_array().map(Vec::len)), (&true.into(), Some(0)), "{json}");
    let report = sandbox.run_tribunal(&["report", &run_id]);
    assert!(report.stdout.starts_with(&format!("{run_id} waiting, discarded · ")), "{}", report.stdout);
    assert!(report.stdout.contains(&format!("next: tribunal discard --restore {run_id}")), "{}", report.stdout);
    assert_exit(&sandbox.run_tribunal(&["discard", "--restore", &run_id]), 0);
    assert_eq!(sandbox.run_json(&["report", &run_id])["discarded"], false);
}

#[test]
fn a_report_that_cannot_be_written_is_a_warning() {
    let sandbox = story_sandbox("develop\n");
    sandbox.write_file(".tribunal/reports", "not a folder\n");
    let output = sandbox.run_tribunal(&["sprint", "1.2"]);
    assert_exit(&output, 0);
    assert!(output.stderr.contains("warning: could not write the report of story-"), "{}", output.stderr);
    assert_eq!(sandbox.read_file(".tribunal/reports"), "not a folder\n");
}
