//! Processes that ask whether they run inside an agent, and agents that try to hide it from them.
#![cfg(target_os = "linux")]

use std::process::Command;

use crate::common::{run_to_end, shell_command};
use tribunal_supervise::MARK_VARIABLE;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bare-keeper");

/// Runs a script as an agent with the mark `real`, or with none. `$P` prints what it finds around itself.
fn run_agent(script: &str, mark: Option<&str>) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut command = shell_command(&format!("P='{PROGRAM}'\n{script}"));
    command.working_dir = directory.path().to_path_buf();
    command.extra_env.extend(mark.map(|mark| (MARK_VARIABLE.to_string(), mark.into())));
    let outcome = run_to_end(command).unwrap();
    format!("{}{}", outcome.stdout.to_text(), outcome.stderr.to_text())
}

/// Runs a script without a keeper.
fn run_outside(script: &str, mark: Option<&str>) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("P", PROGRAM).env_remove(MARK_VARIABLE);
    command.envs(mark.map(|mark| (MARK_VARIABLE, mark)));
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// A process in a session of its own whose parent has ended, before it looks around.
const ORPHAN: &str = "mkfifo go answer
    (setsid sh -c \"read go <go; exec env -i '$P' >answer\" &)
    echo go >go
    cat answer";

#[test]
fn whatever_an_agent_starts_is_inside_of_it() {
    for script in
        ["$P", "unset TRIBUNAL_MARK; $P", "env -i \"$P\"", "TRIBUNAL_MARK= $P", "TRIBUNAL_MARK=faked $P", ORPHAN]
    {
        assert_eq!(run_agent(script, Some("real")), "inside real\n", "{script}");
    }
    // A keeper alone is enough.
    assert_eq!(run_agent("$P", None), "inside\n");
    assert_eq!(run_agent(ORPHAN, None), "inside\n");
}

#[test]
fn a_mark_counts_without_a_keeper() {
    assert_eq!(run_outside("$P", Some("mine")), "inside mine\n");
    // The shell still has the mark that it was started with.
    assert_eq!(run_outside("unset TRIBUNAL_MARK; $P; true", Some("theirs")), "inside theirs\n");
    assert_eq!(run_outside("env -i \"$P\"; true", Some("theirs")), "inside theirs\n");
}

#[test]
fn nothing_else_counts() {
    assert_eq!(run_outside("$P", None), "outside\n");
    assert_eq!(run_outside("$P", Some("")), "outside\n");
    assert_eq!(run_outside("TRIBUNAL_MARKS=1 $P", None), "outside\n");
}
