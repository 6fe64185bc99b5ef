//! Agents that try everything to outlive their task and do not succeed.
#![cfg(target_os = "linux")]

use std::{
    fs::File,
    io::{BufRead, BufReader},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

use crate::common::{HeldPipe, keeper_setup, run_to_end, shell_command};
use tribunal_supervise::{ExitReason, KeeperSetup, MARK_VARIABLE, sweep_strays};

/// A daemon in a session of its own, twice forked, that ignores requests to end.
const DAEMON: &str = "(setsid sh -c \"trap '' TERM HUP INT; sleep 1000 & while :; do sleep 1000; done\" &)";
/// A program that keeps starting processes in sessions of their own.
const SPAWNER: &str = "(setsid sh -c \"trap '' TERM; while :; do (setsid sleep 1000 &) ; done\" &)";

#[test]
fn no_process_is_left_when_the_agent_ends_and_its_exit_code_is_reported() {
    let held_pipe = HeldPipe::new();
    let outcome =
        run_to_end(shell_command(&held_pipe.wrap_script(&format!("{DAEMON}; {DAEMON}; echo answer; exit 5")))).unwrap();
    assert_eq!(
        (outcome.exit_reason, outcome.stdout.to_text(), outcome.survivors),
        (ExitReason::Exited(5), "answer\n".into(), 0)
    );
    assert_eq!(held_pipe.wait_until_closed(), "");
}

#[test]
fn a_background_child_that_keeps_the_output_open_does_not_block_the_run() {
    let outcome = run_to_end(shell_command("echo done; (setsid sleep 1000 &); exit 0")).unwrap();
    assert_eq!((outcome.exit_reason, outcome.stdout.to_text()), (ExitReason::Exited(0), "done\n".into()));
}

#[test]
fn a_child_that_is_asked_to_end_may_still_print() {
    let script =
        "(trap 'echo late; exit' TERM; echo up >&3; while :; do sleep 0.01; done) 3>ready & read up <ready; exit 0";
    let directory = tempfile::tempdir().unwrap();
    let mkfifo_status = std::process::Command::new("mkfifo").arg(directory.path().join("ready")).status().unwrap();
    assert!(mkfifo_status.success());
    let mut command = shell_command(script);
    command.working_dir = directory.path().to_path_buf();
    // The time is generous: the child ends once it has printed.
    command.deadlines.grace = Duration::from_secs(60);
    assert_eq!(run_to_end(command).unwrap().stdout.to_text(), "late\n");
}

#[test]
fn no_process_is_left_when_the_deadline_passes() {
    let held_pipe = HeldPipe::new();
    let script = format!("trap '' TERM; {DAEMON}; {DAEMON}; while :; do sleep 1000; done");
    let mut command = shell_command(&held_pipe.wrap_script(&script));
    command.deadlines.total = Duration::from_millis(500);
    let outcome = run_to_end(command).unwrap();
    assert_eq!((outcome.exit_reason, outcome.survivors), (ExitReason::TimedOut, 0));
    held_pipe.wait_until_closed();
}

#[test]
fn no_process_is_left_of_an_agent_that_keeps_spawning() {
    let held_pipe = HeldPipe::new();
    let mut command = shell_command(&held_pipe.wrap_script(&format!("{SPAWNER}; sleep 1000")));
    command.deadlines.total = Duration::from_millis(300);
    let outcome = run_to_end(command).unwrap();
    assert_eq!((outcome.exit_reason, outcome.survivors), (ExitReason::TimedOut, 0));
    held_pipe.wait_until_closed();
}

#[test]
fn a_stopped_process_is_ended_too() {
    let held_pipe = HeldPipe::new();
    let mut command = shell_command(&held_pipe.wrap_script("kill -STOP $$"));
    command.deadlines.idle = Duration::from_millis(300);
    assert_eq!(run_to_end(command).unwrap().exit_reason, ExitReason::Silent);
    held_pipe.wait_until_closed();
}

#[test]
fn no_process_is_left_when_the_waiting_future_is_dropped() {
    let held_pipe = HeldPipe::new();
    let command = shell_command(&held_pipe.wrap_script(&format!("{DAEMON}; echo up; sleep 1000")));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (sender, mut first_output) = tokio::sync::mpsc::unbounded_channel();
    let mut command = command;
    command.output_limits.on_stdout = Some(Box::new(move |_| {
        sender.send(()).unwrap();
        ControlFlow::Continue(())
    }));
    runtime.block_on(async {
        let run_task = tokio::spawn(tribunal_supervise::run_process(command));
        first_output.recv().await.unwrap();
        run_task.abort();
    });
    drop(runtime);
    held_pipe.wait_until_closed();
}

#[test]
fn a_lock_stays_held_until_the_last_process_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let lock_path = directory.path().join("lock");
    let lock = Arc::new(File::create(&lock_path).unwrap());
    lock.try_lock().unwrap();
    let held_pipe = HeldPipe::new();
    let (sender, mut first_output) = tokio::sync::mpsc::unbounded_channel();
    let mut command = shell_command(&held_pipe.wrap_script("echo up; ls -l /proc/self/fd >&3; exec sleep 1000"));
    command.keeper = keeper_setup().map(|setup| KeeperSetup { held_locks: vec![lock.clone()], ..setup });
    command.output_limits.on_stdout = Some(Box::new(move |_| {
        sender.send(()).unwrap();
        ControlFlow::Continue(())
    }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let run_task = tokio::spawn(tribunal_supervise::run_process(command));
        first_output.recv().await.unwrap();
        // Our own handle of the lock is gone; the keeper's is not.
        drop(lock);
        let second_handle = File::open(&lock_path).unwrap();
        assert!(second_handle.try_lock().is_err(), "the keeper lost the lock");
        run_task.abort();
    });
    drop(runtime);
    let descriptors = held_pipe.wait_until_closed();
    assert!(!descriptors.contains("lock"), "the agent must not hold it: {descriptors}");
    // Blocks until the keeper has ended, too.
    File::open(&lock_path).unwrap().lock().unwrap();
}

#[test]
fn processes_of_a_killed_keeper_are_found_by_their_mark() {
    let held_pipe = HeldPipe::new();
    // The agent kills its own keeper; the kernel then ends the agent, but not the daemon.
    let mut command =
        shell_command(&held_pipe.wrap_script(&format!("{DAEMON}; echo up >&3; kill -9 $PPID; sleep 1000")));
    let mark = format!("test-{}", std::process::id());
    command.extra_env.insert(MARK_VARIABLE.into(), mark.into());
    assert_eq!(run_to_end(command).unwrap().exit_reason, ExitReason::Lost);
    assert_eq!(held_pipe.wait_until_closed(), "up\n");
}

/// Without its mark, only its parent tells that a process belonged to the agent.
#[test]
fn processes_of_a_killed_keeper_are_ended_without_their_mark_too() {
    let held_pipe = HeldPipe::new();
    let script = "env -i setsid sh -c 'env -i setsid sleep 1000 & sleep 1000' & echo up >&3; kill -9 $PPID; sleep 1000";
    assert_eq!(run_to_end(shell_command(&held_pipe.wrap_script(script))).unwrap().exit_reason, ExitReason::Lost);
    assert_eq!(held_pipe.wait_until_closed(), "up\n");
}

#[test]
fn an_agent_that_stops_its_keeper_is_ended_too() {
    let held_pipe = HeldPipe::new();
    let mut command = shell_command(&held_pipe.wrap_script(&format!("{DAEMON}; kill -STOP $PPID; sleep 1000")));
    command.extra_env.insert(MARK_VARIABLE.into(), format!("stopped-{}", std::process::id()).into());
    command.deadlines.idle = Duration::from_millis(300);
    assert_eq!(run_to_end(command).unwrap().exit_reason, ExitReason::Silent);
    held_pipe.wait_until_closed();
}

#[test]
fn only_strays_with_a_matching_mark_are_ended() {
    let (stray_pipe, bystander_pipe) = (HeldPipe::new(), HeldPipe::new());
    let start_marked = |held_pipe: &HeldPipe, mark: &str| {
        let script = held_pipe.wrap_script("trap '' TERM; echo up; while :; do sleep 1000; done");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).env(MARK_VARIABLE, mark).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        // While a process becomes another program, its environment cannot be read.
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        child
    };
    let mark = |name: &str| format!("strays-{}/{name}", std::process::id());
    let mut stray = start_marked(&stray_pipe, &mark("one"));
    let mut bystander = start_marked(&bystander_pipe, &mark("two"));
    assert!(sweep_strays(|found| found == mark("one")) >= 1);
    stray.wait().unwrap();
    stray_pipe.wait_until_closed();
    assert!(bystander.try_wait().unwrap().is_none());
    assert!(sweep_strays(|found| found == mark("two")) >= 1);
    bystander.wait().unwrap();
    bystander_pipe.wait_until_closed();
}
