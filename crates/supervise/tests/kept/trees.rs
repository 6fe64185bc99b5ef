//! Agents that try everything to outlive their task and do not succeed.
#![cfg(target_os = "linux")]

use std::{
    fs::File,
    io::{BufRead, BufReader},
    sync::Arc,
    time::Duration,
};

use crate::common::{Held, go, shell};
use tribunal_supervise::{How, MARK, sweep_strays};

/// A daemon in a session of its own, twice forked, that ignores requests to end.
const DAEMON: &str = "(setsid sh -c \"trap '' TERM HUP INT; sleep 1000 & while :; do sleep 1000; done\" &)";
/// A program that keeps starting processes in sessions of their own.
const SPAWNER: &str = "(setsid sh -c \"trap '' TERM; while :; do (setsid sleep 1000 &) ; done\" &)";

#[test]
fn nothing_is_left_when_the_agent_ends_and_its_exit_code_stays_true() {
    let held = Held::new();
    let ended = go(shell(&held.script(&format!("{DAEMON}; {DAEMON}; echo answer; exit 5")))).unwrap();
    assert_eq!((ended.how, ended.stdout.text(), ended.left), (How::Exited(5), "answer\n".into(), 0));
    assert_eq!(held.until_gone(), "");
}

#[test]
fn a_background_child_that_holds_the_output_open_does_not_hold_us() {
    let ended = go(shell("echo done; (setsid sleep 1000 &); exit 0")).unwrap();
    assert_eq!((ended.how, ended.stdout.text()), (How::Exited(0), "done\n".into()));
}

#[test]
fn a_child_that_is_asked_to_end_may_say_its_last_word() {
    let script = "(trap 'echo late; exit' TERM; echo up >&3; while :; do sleep 0.01; done) 3>ready & read up <ready; exit 0";
    let folder = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("ready")).status().unwrap();
    assert!(made.success());
    let mut command = shell(script);
    command.folder = folder.path().to_path_buf();
    // The time is generous: the child ends once it has printed.
    command.grace = Duration::from_secs(60);
    assert_eq!(go(command).unwrap().stdout.text(), "late\n");
}

#[test]
fn nothing_is_left_when_the_deadline_passes() {
    let held = Held::new();
    let script = format!("trap '' TERM; {DAEMON}; {DAEMON}; while :; do sleep 1000; done");
    let mut command = shell(&held.script(&script));
    command.deadlines.total = Duration::from_millis(500);
    let ended = go(command).unwrap();
    assert_eq!((ended.how, ended.left), (How::TimedOut, 0));
    held.until_gone();
}

#[test]
fn nothing_is_left_of_one_that_keeps_spawning() {
    let held = Held::new();
    let mut command = shell(&held.script(&format!("{SPAWNER}; sleep 1000")));
    command.deadlines.total = Duration::from_millis(300);
    let ended = go(command).unwrap();
    assert_eq!((ended.how, ended.left), (How::TimedOut, 0));
    held.until_gone();
}

#[test]
fn a_stopped_process_is_ended_too() {
    let held = Held::new();
    let mut command = shell(&held.script("kill -STOP $$"));
    command.deadlines.idle = Duration::from_millis(300);
    assert_eq!(go(command).unwrap().how, How::Silent);
    held.until_gone();
}

#[test]
fn nothing_is_left_when_whoever_waited_walks_away() {
    let held = Held::new();
    let command = shell(&held.script(&format!("{DAEMON}; echo up; sleep 1000")));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (send, mut up) = tokio::sync::mpsc::unbounded_channel();
    let mut command = command;
    command.output.seen = Some(Box::new(move |_| send.send(()).unwrap()));
    runtime.block_on(async {
        let running = tokio::spawn(tribunal_supervise::run(command));
        up.recv().await.unwrap();
        running.abort();
    });
    drop(runtime);
    held.until_gone();
}

#[test]
fn a_lock_stays_held_until_the_last_process_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let lock = Arc::new(File::create(&path).unwrap());
    lock.try_lock().unwrap();
    let held = Held::new();
    let (send, mut up) = tokio::sync::mpsc::unbounded_channel();
    let mut command = shell(&held.script("echo up; ls -l /proc/self/fd >&3; exec sleep 1000"));
    command.hold = vec![lock.clone()];
    command.output.seen = Some(Box::new(move |_| send.send(()).unwrap()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let running = tokio::spawn(tribunal_supervise::run(command));
        up.recv().await.unwrap();
        // Our own handle of the lock is gone; the keeper's is not.
        drop(lock);
        let other = File::open(&path).unwrap();
        assert!(other.try_lock().is_err(), "the keeper lost the lock");
        running.abort();
    });
    drop(runtime);
    let descriptors = held.until_gone();
    assert!(!descriptors.contains("lock"), "the agent must not hold it: {descriptors}");
    // Blocks until the keeper has ended, too.
    File::open(&path).unwrap().lock().unwrap();
}

#[test]
fn what_a_killed_keeper_left_is_found_by_its_mark() {
    let held = Held::new();
    // The agent kills its own keeper; the kernel then ends the agent, but not the daemon.
    let mut command = shell(&held.script(&format!("{DAEMON}; echo up >&3; kill -9 $PPID; sleep 1000")));
    let mark = format!("test-{}", std::process::id());
    command.env.insert(MARK.into(), mark.into());
    assert_eq!(go(command).unwrap().how, How::Lost);
    assert_eq!(held.until_gone(), "up\n");
}

#[test]
fn an_agent_that_stops_its_keeper_gains_nothing() {
    let held = Held::new();
    let mut command = shell(&held.script(&format!("{DAEMON}; kill -STOP $PPID; sleep 1000")));
    command.env.insert(MARK.into(), format!("stopped-{}", std::process::id()).into());
    command.deadlines.idle = Duration::from_millis(300);
    assert_eq!(go(command).unwrap().how, How::Silent);
    held.until_gone();
}

#[test]
fn strays_are_ended_by_their_mark_alone() {
    let (ours, other) = (Held::new(), Held::new());
    let start = |held: &Held, mark: &str| {
        let script = held.script("trap '' TERM; echo up; while :; do sleep 1000; done");
        let mut command = std::process::Command::new("setsid");
        command.args(["sh", "-c", &script]).env(MARK, mark).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        // While a process becomes another program, its environment cannot be read.
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        child
    };
    let mark = |name: &str| format!("strays-{}/{name}", std::process::id());
    let mut stray = start(&ours, &mark("one"));
    let mut bystander = start(&other, &mark("two"));
    assert!(sweep_strays(|found| found == mark("one")) >= 1);
    stray.wait().unwrap();
    ours.until_gone();
    assert!(bystander.try_wait().unwrap().is_none());
    assert!(sweep_strays(|found| found == mark("two")) >= 1);
    bystander.wait().unwrap();
    other.until_gone();
}
