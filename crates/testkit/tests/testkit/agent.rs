//! Tests of the scripted agent as a process.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    fs,
    process::{Command, Output},
};

fn play_script(script: &str, task: &str) -> (Output, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("script.yaml"), script).unwrap();
    fs::write(directory.path().join("a.md"), "old text\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_scripted-agent"))
        .arg("script.yaml")
        .current_dir(directory.path())
        .env("TRIBUNAL_TASK", task)
        .env("TRIBUNAL_CALLS", directory.path().join("calls"))
        .output()
        .unwrap();
    (output, directory)
}

#[test]
fn the_agent_prints_edits_and_exits_as_scripted() {
    let script = "tasks:
  - task: \"round-*/x\"
    steps:
      - text: hello
      - edit: {file: a.md, replace: old, with: new}
      - write: {file: sub/b.md, text: made}
      - complain: not happy
      - exit: 3
";
    let (output, directory) = play_script(script, "round-2/x");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "not happy\n");
    assert_eq!(fs::read_to_string(directory.path().join("a.md")).unwrap(), "new text\n");
    assert_eq!(fs::read_to_string(directory.path().join("sub/b.md")).unwrap(), "made");
    assert_eq!(fs::read_to_string(directory.path().join("calls")).unwrap(), "round-2/x\n");
}

#[test]
fn a_script_without_a_matching_task_or_with_an_impossible_edit_fails() {
    let (output, _) = play_script("tasks: []\n", "y");
    assert_eq!(output.status.code(), Some(70));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no entry for task `y`"));

    let (output, _) = play_script("tasks: [{task: y, steps: [{edit: {file: a.md, replace: absent, with: b}}]}]\n", "y");
    assert_eq!(output.status.code(), Some(70));
    assert!(String::from_utf8_lossy(&output.stderr).contains("0 times"));

    let (output, _) = play_script("tasks: [{task: y, steps: [{delete: ../a.md}]}]\n", "y");
    assert_eq!(output.status.code(), Some(70));
    assert!(String::from_utf8_lossy(&output.stderr).contains("can only change files in its working directory"));
}
