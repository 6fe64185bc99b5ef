//! Real processes: exit codes, signals, deadlines, groups, output.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{collections::BTreeMap, time::Duration};

use tribunal_supervise::{Command, Ended, How, StartError, run};

fn shell(script: &str) -> Command {
    Command {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        folder: std::env::temp_dir(),
        env: BTreeMap::new(),
        without: Vec::new(),
        input: Vec::new(),
        deadline: Duration::from_secs(60),
        grace: Duration::from_millis(200),
        on_output: None,
    }
}

fn go(command: Command) -> Result<Ended, StartError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run(command))
}

#[test]
fn exit_code_and_both_streams_are_true() {
    let ended = go(shell("echo out; echo err >&2; exit 7")).unwrap();
    assert_eq!(ended.how, How::Exited(7));
    assert_eq!((ended.stdout.text(), ended.stderr.text()), ("out\n".into(), "err\n".into()));
}

#[test]
fn a_signal_is_told_apart_from_an_exit_code() {
    assert_eq!(go(shell("kill -9 $$")).unwrap().how, How::Killed(9));
}

#[test]
fn input_reaches_the_process_and_an_unread_input_is_no_fault() {
    let mut command = shell("cat");
    command.input = vec![b'x'; 1 << 20];
    assert_eq!(go(command).unwrap().stdout.total(), 1 << 20);
    let mut deaf = shell("exit 0");
    deaf.input = vec![b'x'; 1 << 20];
    assert_eq!(go(deaf).unwrap().how, How::Exited(0));
}

#[test]
fn a_deadline_ends_the_whole_group_even_if_it_ignores_being_asked() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("held");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut command =
        shell(&format!("trap '' TERM; (trap '' TERM; sleep 1000) 3>'{}' & sleep 1000", fifo.display()));
    command.deadline = Duration::from_secs(2);
    // The pipe ends when the last process that holds it is gone.
    let last_one = std::thread::spawn(move || std::fs::read(fifo).unwrap());
    assert_eq!(go(command).unwrap().how, How::TimedOut);
    assert_eq!(last_one.join().unwrap(), b"");
}

#[test]
fn a_background_child_that_holds_the_output_open_does_not_hold_us() {
    let ended = go(shell("echo done; sleep 1000 & exit 0")).unwrap();
    assert_eq!(ended.how, How::Exited(0));
    assert_eq!(ended.stdout.text(), "done\n");
}

#[test]
fn missing_programs_are_named() {
    let mut command = shell("");
    command.program = "surely-not-installed".into();
    let error = go(command).unwrap_err();
    assert!(matches!(error, StartError::NotFound { .. }), "{error}");
    assert_eq!(error.to_string(), "`surely-not-installed` was not found");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plain");
    std::fs::write(&file, "no program").unwrap();
    let mut command = shell("");
    command.program = file.display().to_string();
    assert!(matches!(go(command).unwrap_err(), StartError::NotExecutable { .. }));
}
