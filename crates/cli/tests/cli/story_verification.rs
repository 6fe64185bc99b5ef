//! `tribunal verify STORY`: the check of a run, made by hand, where the work is.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::{commit_all, run_git},
    sprint_runs::{landed_stories, sprint_run, sprint_sandbox},
    story_sandbox::{ENDLESS_REVIEW, STORY, story_sandbox, write_review},
};

fn assert_exit(output: &CommandOutput, exit_code: i32) {
    assert_eq!(output.exit_code, Some(exit_code), "{}{}", output.stdout, output.stderr);
}

/// The output without the line that names commits and directories.
fn shown_lines(output: &CommandOutput) -> String {
    output.stdout.lines().filter(|line| !line.contains("changes")).map(|line| format!("{line}\n")).collect()
}

/// A story whose agent writes the code and the test, but claims to have ticked the tasks.
fn waiting_story() -> Sandbox {
    let sandbox = story_sandbox("develop\nsed -i 's/- \\[x\\] Write tests/- [ ] Write tests/' $story\n");
    let output = sandbox.run_tribunal(&["sprint", "1.2", "--set", "sprint.max_cycles=1"]);
    assert_exit(&output, 3);
    sandbox
}

#[test]
fn the_checks_run_on_a_story_that_has_landed() {
    let sandbox = story_sandbox("develop\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1.2"]), 0);
    let output = sandbox.run_tribunal(&["verify", "1.2"]);
    assert_exit(&output, 0);
    insta::assert_snapshot!(shown_lines(&output), @"
    1-2-sift: verified, and done
      board       done
      story file  done
      ✓ `sh check.sh` passed
    ");
    sandbox.write_file("src/mill.sh", "broken\n");
    let output = sandbox.run_tribunal(&["verify", "1.2"]);
    assert_exit(&output, 3);
    insta::assert_snapshot!(shown_lines(&output), @"
    1-2-sift: not verified
      board       done
      story file  done
      ✗ `sh check.sh` failed with exit code 1: src/mill.sh:1:broken
    ");
    assert_exit(&sandbox.run_tribunal(&["verify", "1.2", "--skip-checks"]), 0);
    let document = sandbox.run_json(&["verify", "1.2"]);
    assert_eq!((&document["checks"][0]["passed"], &document["done"]), (&false.into(), &false.into()), "{document}");
}

#[test]
fn a_check_whose_program_is_missing_says_nothing_about_the_work() {
    let sandbox = story_sandbox("develop\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1.2"]), 0);
    let output = sandbox.run_tribunal(&["verify", "1.2", "--base", "HEAD^"]);
    assert_exit(&output, 0);
    sandbox.write_file("check.sh", "exec no-such-program-here\n");
    let output = sandbox.run_tribunal(&["verify", "1.2"]);
    assert_exit(&output, 5);
    assert!(output.stderr.contains("add `--skip-checks`"), "{}", output.stderr);
}

#[test]
fn a_story_that_waits_is_verified_in_its_clone() {
    let sandbox = waiting_story();
    let document = sandbox.run_json(&["verify", "1.2"]);
    assert_eq!(document["reasons"][0], "1 task not ticked, the first: Write tests (AC: 1, 2)", "{document}");
    let clone = document["workspace"].as_str().unwrap().to_string();
    // The user finishes it there by hand.
    let story_path = format!("{clone}/{STORY}");
    fs::write(&story_path, fs::read_to_string(&story_path).unwrap().replace("- [ ]", "- [x]")).unwrap();
    assert_exit(&sandbox.run_tribunal(&["verify", "1.2"]), 0);
    fs::write(format!("{clone}/src/sift.sh"), "broken\n").unwrap();
    assert_exit(&sandbox.run_tribunal(&["verify", "1.2"]), 3);
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), "");
}

#[test]
fn a_story_that_was_given_up_can_be_begun_anew() {
    let sandbox = waiting_story();
    let run_id = sandbox.run_json(&["runs"])["runs"][0]["run"].as_str().unwrap().to_string();
    let again = sandbox.run_tribunal(&["sprint", "1.2"]);
    assert!(again.stderr.contains(&format!("or give it up: `tribunal discard {run_id}`")), "{}", again.stderr);
    assert_exit(&sandbox.run_tribunal(&["discard", &run_id]), 0);
    let output = sandbox.run_tribunal(&["verify", "1.2"]);
    assert_exit(&output, 2);
    assert_exit(&sandbox.run_tribunal(&["sprint", "1.2", "--set", "sprint.max_cycles=1"]), 3);
    // A sprint takes it as well.
    let run_id = sandbox.run_json(&["runs"])["runs"][0]["run"].as_str().unwrap().to_string();
    assert_exit(&sandbox.run_tribunal(&["discard", &run_id]), 0);
    crate::story_sandbox::write_story_agent(&sandbox, "develop\n");
    let output = sandbox.run_tribunal(&["sprint", "--max-stories", "1"]);
    assert_exit(&output, 0);
    assert!(run_git(&sandbox, &["log", "--format=%s"]).contains("Story 1-2-sift"), "{}", output.stderr);
}

#[test]
fn work_that_waits_for_an_approval_is_not_done_and_can_be_looked_at() {
    let sandbox = story_sandbox("develop\necho true > check.sh\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1.2"]), 3);
    let document = sandbox.run_json(&["verify", "1.2"]);
    let fields = ["verified", "done", "sprint_status"].map(|field| document[field].to_string());
    assert_eq!(fields, ["true", "false", "\"ready-for-dev\""], "{document}");
    let remarks = document["remarks"].as_array().unwrap().iter().filter_map(serde_json::Value::as_str);
    let waiting = remarks.into_iter().find(|remark| remark.starts_with("nothing has landed: run story-1-2-sift-"));
    assert!(waiting.unwrap().contains("the work changes check.sh"), "{document}");
    let run_id = sandbox.run_json(&["runs"])["runs"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|row| row["run"].as_str().filter(|run_id| run_id.starts_with("story-")).map(String::from));
    let diff = sandbox.run_tribunal(&["diff", &run_id.unwrap()]);
    assert!(diff.stdout.contains("check.sh"), "{}{}", diff.stdout, diff.stderr);
}

#[test]
fn a_story_whose_files_are_gone_is_not_verified() {
    let sandbox = story_sandbox("develop\n");
    assert_exit(&sandbox.run_tribunal(&["sprint", "1.2"]), 0);
    fs::remove_file(sandbox.path_of("src/sift.sh")).unwrap();
    let output = sandbox.run_tribunal(&["verify", "1.2"]);
    assert_exit(&output, 3);
    assert!(
        output.stdout.contains("files of its commit are gone from your checkout: src/sift.sh"),
        "{}",
        output.stdout
    );
}

#[test]
fn critical_findings_that_the_review_left_open_are_reasons() {
    let sandbox = story_sandbox("develop\n");
    write_review(&sandbox, ENDLESS_REVIEW);
    assert_exit(&sandbox.run_tribunal(&["sprint", "1.2"]), 3);
    let output = sandbox.run_tribunal(&["verify", "1.2"]);
    assert_exit(&output, 3);
    assert!(output.stdout.starts_with("1-2-sift: not verified\n"), "{}", output.stdout);
    let document = sandbox.run_json(&["verify", "1.2"]);
    let reasons: Vec<&str> =
        document["reasons"].as_array().unwrap().iter().filter_map(serde_json::Value::as_str).collect();
    assert_eq!((reasons.is_empty(), &document["verified"]), (false, &false.into()), "{document}");
    let expected = "is open: critical (src/sift.sh:1): only the letter b is removed";
    assert!(reasons.iter().all(|reason| reason.starts_with('F') && reason.contains(expected)), "{document}");
}

#[test]
fn a_sprint_that_is_resumed_meanwhile_waits_for_the_verification() {
    let sandbox = sprint_sandbox("case $key-$n in 1-2-sift-1) echo 'I cannot.' ;; *) develop_any ;; esac\n");
    // As long as there is a gate, the check says that it has begun and waits until the gate is opened.
    let (gate_path, begun_path) = (sandbox.path_of("../gate"), sandbox.path_of("../begun"));
    let check =
        format!("[ ! -p '{0}' ] || {{ echo > '{1}'; cat '{0}'; }}\n", gate_path.display(), begun_path.display());
    sandbox.write_file("check.sh", &check);
    commit_all(&sandbox, "Check slowly");
    assert_exit(&sandbox.run_tribunal(&["sprint", "--epic", "1", "--set", "sprint.max_cycles=1"]), 3);
    let story_run = sandbox.run_ids().into_iter().find(|run_id| run_id.starts_with("story-1-2")).unwrap();
    assert_exit(&sandbox.run_tribunal(&["decisions", &format!("{story_run}.D1"), "agent"]), 0);
    assert!(Command::new("mkfifo").args([&gate_path, &begun_path]).status().unwrap().success());
    let mut verify_command = sandbox.tribunal_command(&["verify", "1.2"]);
    let mut verification = verify_command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    fs::read(&begun_path).unwrap();
    let mut resume_command = sandbox.tribunal_command(&["resume", &sprint_run(&sandbox)]);
    let mut resumed = resume_command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log_lines = BufReader::new(resumed.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(log_lines.any(|line| line.contains("waiting for `tribunal verify`")), "the sprint did not wait");
    let gate = fs::OpenOptions::new().write(true).open(&gate_path).unwrap();
    fs::remove_file(&gate_path).unwrap();
    drop(gate);
    let rest_of_log: Vec<String> = log_lines.collect();
    assert_eq!(resumed.wait().unwrap().code(), Some(0), "{rest_of_log:?}");
    assert_eq!(verification.wait().unwrap().code(), Some(3));
    assert_eq!(landed_stories(&sandbox), ["1-2-sift", "1-3-pack"]);
}
