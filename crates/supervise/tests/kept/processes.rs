//! Tests of single processes: exit codes, signals, deadlines, output. Tests of whole trees are in `trees.rs`.

use std::{ops::ControlFlow, sync::mpsc, time::Duration};

use crate::common::{run_to_end, shell_command};
use tribunal_supervise::{ExitReason, ProcessCommand, StartError};

#[test]
fn exit_code_and_both_streams_are_reported() {
    let outcome = run_to_end(shell_command("echo out; echo err >&2; exit 7")).unwrap();
    assert_eq!(outcome.exit_reason, ExitReason::Exited(7));
    assert_eq!((outcome.stdout.to_text(), outcome.stderr.to_text()), ("out\n".into(), "err\n".into()));
    assert_eq!(outcome.survivors, 0);
}

#[test]
fn a_signal_is_distinguished_from_an_exit_code() {
    assert_eq!(run_to_end(shell_command("kill -9 $$")).unwrap().exit_reason, ExitReason::Killed(9));
    assert_eq!(run_to_end(shell_command("exit 137")).unwrap().exit_reason, ExitReason::Exited(137));
}

#[test]
fn without_a_keeper_the_whole_process_group_is_ended() {
    let mut command = shell_command("echo out; sleep 1000 & exit 7");
    command.keeper = None;
    let outcome = run_to_end(command).unwrap();
    assert_eq!((outcome.exit_reason, outcome.stdout.to_text()), (ExitReason::Exited(7), "out\n".into()));
    let mut command = shell_command("trap '' TERM; while :; do sleep 1000; done");
    command.keeper = None;
    command.deadlines.total = Duration::from_millis(300);
    assert_eq!(run_to_end(command).unwrap().exit_reason, ExitReason::TimedOut);
}

#[test]
fn input_reaches_the_process_and_unread_input_is_not_an_error() {
    let mut command = shell_command("cat");
    command.stdin_bytes = vec![b'x'; 1 << 20];
    assert_eq!(run_to_end(command).unwrap().stdout.total_bytes(), 1 << 20);
    let mut ignoring_command = shell_command("exit 0");
    ignoring_command.stdin_bytes = vec![b'x'; 1 << 20];
    assert_eq!(run_to_end(ignoring_command).unwrap().exit_reason, ExitReason::Exited(0));
}

#[test]
fn a_process_that_keeps_printing_ends_at_its_deadline() {
    let printed = retry_with_longer_windows(|window| {
        let mut command = shell_command("while :; do echo alive; sleep 0.02; done");
        command.deadlines.total = window;
        command.deadlines.idle = Duration::from_secs(600);
        let outcome = run_to_end(command).unwrap();
        assert_eq!(outcome.exit_reason, ExitReason::TimedOut);
        // On a busy machine the process may not have printed anything yet.
        Some(outcome.stdout.to_text()).filter(|text| !text.is_empty())
    });
    assert!(printed.unwrap().starts_with("alive\n"));
}

/// Returns the first result of an attempt, with half a second and then longer and longer windows: what must happen within a
/// window happens in one of them, however busy the machine is.
fn retry_with_longer_windows<T>(attempt: impl FnMut(Duration) -> Option<T>) -> Option<T> {
    [500, 2_000, 8_000, 32_000].map(Duration::from_millis).into_iter().find_map(attempt)
}

#[test]
fn a_silent_process_ends_before_its_deadline() {
    let mut command = shell_command("sleep 1000");
    command.deadlines.idle = Duration::from_millis(200);
    assert_eq!(run_to_end(command).unwrap().exit_reason, ExitReason::Silent);
}

#[test]
fn output_on_standard_error_restarts_the_idle_window() {
    let exit_reason = retry_with_longer_windows(|window| {
        // The whole takes longer than the window, so only its output keeps the process alive.
        let step_seconds = window.as_secs_f64() / 8.0;
        let steps = "1 2 3 4 5 6 7 8 9 10 11 12";
        let mut command =
            shell_command(&format!("for i in {steps}; do echo . >&2; sleep {step_seconds}; done; exit 3"));
        command.deadlines.idle = window;
        let exit_reason = run_to_end(command).unwrap().exit_reason;
        (exit_reason != ExitReason::Silent).then_some(exit_reason)
    });
    assert_eq!(exit_reason, Some(ExitReason::Exited(3)));
}

#[test]
fn a_flood_is_ended_and_its_head_and_tail_are_kept() {
    let mut command = shell_command("echo first; exec yes");
    command.output_limits.max_stream_bytes = 40 << 20;
    let outcome = run_to_end(command).unwrap();
    assert_eq!(outcome.exit_reason, ExitReason::Flooded);
    let kept_text = outcome.stdout.to_text();
    assert!(kept_text.starts_with("first\ny\n") && kept_text.contains("bytes left out"));
    assert!(outcome.stdout.total_bytes() > 40 << 20 && kept_text.len() < 17 << 20);
}

#[test]
fn invalid_utf8_does_not_stop_the_reader() {
    let outcome = run_to_end(shell_command("printf '\\377\\000\\303'; exit 0")).unwrap();
    assert_eq!(outcome.exit_reason, ExitReason::Exited(0));
    assert_eq!(outcome.stdout.to_text(), "\u{fffd}\0\u{fffd}");
}

#[test]
fn output_is_delivered_while_the_process_runs() {
    let (sender, received) = mpsc::channel();
    let (stop_sender, stop_signal) = tokio::sync::watch::channel(false);
    let mut command = shell_command("echo ready; sleep 1000");
    command.output_limits.on_stdout = Some(Box::new(move |bytes| {
        sender.send(bytes.to_vec()).unwrap();
        ControlFlow::Continue(())
    }));
    command.stop_signal = Some(stop_signal);
    let run_thread = std::thread::spawn(|| run_to_end(command).unwrap());
    assert_eq!(received.recv().unwrap(), b"ready\n");
    stop_sender.send_replace(true);
    assert_eq!(run_thread.join().unwrap().exit_reason, ExitReason::Stopped);
}

#[test]
fn a_failed_start_names_the_program_and_the_cause() {
    for keeper_setup in [crate::common::keeper_setup(), None] {
        let mut command = shell_command("");
        command.keeper = keeper_setup.clone();
        command.program = "surely-not-installed".into();
        let error = run_to_end(command).unwrap_err();
        assert!(matches!(error, StartError::NotFound { .. }), "{error}");
        assert_eq!(error.to_string(), "command `surely-not-installed` not found");

        let directory = tempfile::tempdir().unwrap();
        let plain_file = directory.path().join("plain");
        std::fs::write(&plain_file, "no program").unwrap();
        let mut command = shell_command("");
        command.keeper = keeper_setup.clone();
        command.program = plain_file.into_os_string();
        assert!(matches!(run_to_end(command).unwrap_err(), StartError::NotExecutable { .. }));

        let mut command = shell_command("");
        command.keeper = keeper_setup;
        command.working_dir = directory.path().join("gone");
        let error = run_to_end(command).unwrap_err().to_string();
        assert!(error.contains("its working directory") && error.contains("no longer exists"), "{error}");
    }
}

#[test]
fn relative_entries_of_the_search_path_are_not_searched() {
    let directory = tempfile::tempdir().unwrap();
    let write_tool = |tool_dir: &str, answer: &str| {
        // Another process writes the file: one that we have open for writing cannot be executed.
        let script = format!(
            "mkdir -p {tool_dir} && printf '#!/bin/sh\necho {answer}\n' >{tool_dir}/tool && chmod 755 {tool_dir}/tool"
        );
        assert!(
            std::process::Command::new("sh")
                .args(["-c", &script])
                .current_dir(directory.path())
                .status()
                .unwrap()
                .success()
        );
    };
    write_tool(".", "trap");
    write_tool("good", "good");
    let run_tool = |mut command: ProcessCommand, search_path: &str| {
        command.working_dir = directory.path().to_path_buf();
        command.extra_env.insert("PATH".to_string(), search_path.into());
        run_to_end(command).map(|outcome| outcome.stdout.to_text())
    };
    let tool_command = || {
        let mut command = shell_command("");
        (command.program, command.args) = ("tool".into(), Vec::new());
        command
    };
    let good_dir = directory.path().join("good").display().to_string();
    for relative_dir in [".", "", "./", "../."] {
        let search_path = format!("{relative_dir}:{good_dir}:/usr/bin:/bin");
        assert_eq!(run_tool(tool_command(), &search_path).unwrap(), "good\n", "{search_path}");
        // What the process starts by name is searched for in the same way.
        assert_eq!(run_tool(shell_command("tool"), &search_path).unwrap(), "good\n", "{search_path}");
        let without_keeper = ProcessCommand { keeper: None, ..tool_command() };
        assert_eq!(run_tool(without_keeper, &search_path).unwrap(), "good\n", "{search_path}");
    }
    for search_path in ["", ".", ".:good"] {
        let start_error = run_tool(tool_command(), search_path).unwrap_err();
        assert!(matches!(start_error, StartError::NotFound { .. }), "{search_path}: {start_error}");
    }
}

/// A shell that starts Tribunal may have files open, which are none of the agent's business.
#[cfg(target_os = "linux")]
#[test]
fn descriptors_that_we_have_inherited_are_closed() {
    use std::os::fd::AsRawFd;
    let file = tempfile::tempfile().unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let script = format!("test -e /proc/self/fd/{} && exit 3; exit 0", file.as_raw_fd());
    assert_eq!(run_to_end(shell_command(&script)).unwrap().exit_reason, ExitReason::Exited(0));
}

#[test]
fn a_process_is_ended_when_the_reader_of_its_output_has_had_enough() {
    let mut command = shell_command("while :; do echo line; done");
    let (sender, receiver) = mpsc::channel();
    command.output_limits.on_stdout = Some(Box::new(move |bytes| {
        sender.send(bytes.len()).unwrap();
        ControlFlow::Break(())
    }));
    let outcome = run_to_end(command).unwrap();
    assert_eq!(outcome.exit_reason, ExitReason::Flooded);
    assert!(receiver.iter().next().is_some());
}
