//! Keepers that are kept for the next process.
#![cfg(target_os = "linux")]

use std::{
    fs::File,
    ops::ControlFlow,
    sync::{Arc, Mutex},
};

use tokio::runtime::{Builder, Runtime};
use tribunal_supervise::{ExitReason, KeeperSetup, MARK_VARIABLE, ProcessCommand, SpareKeeper, run_process};

use crate::common::{keeper_setup, shell_command};

fn test_runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn with_spare(command: ProcessCommand, spare: &Arc<SpareKeeper>) -> ProcessCommand {
    let keeper = keeper_setup().map(|setup| KeeperSetup { spare: Some(spare.clone()), ..setup });
    ProcessCommand { keeper, ..command }
}

/// Runs a script and returns what it printed.
fn run_script(runtime: &Runtime, command: ProcessCommand) -> String {
    let printed: Arc<Mutex<Vec<u8>>> = Arc::default();
    let sink = printed.clone();
    let mut command = command;
    command.output_limits.on_stdout = Some(Box::new(move |bytes| {
        sink.lock().unwrap().extend_from_slice(bytes);
        ControlFlow::Continue(())
    }));
    let outcome = runtime.block_on(run_process(command)).unwrap();
    assert_eq!(outcome.exit_reason, ExitReason::Exited(0));
    let printed = printed.lock().unwrap();
    String::from_utf8(printed.clone()).unwrap()
}

#[test]
fn each_process_gets_its_own_directory_environment_and_input() {
    let (runtime, spare) = (test_runtime(), Arc::new(SpareKeeper::default()));
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (number, directory) in directories.iter().enumerate() {
        let mut command = with_spare(shell_command("pwd; cat; echo; env | grep -c '^ONLY_' || :"), &spare);
        command.working_dir = directory.path().canonicalize().unwrap();
        command.stdin_bytes = format!("input {number}").into_bytes();
        // A variable of an earlier process must not reach a later one.
        command.extra_env.insert(format!("ONLY_{number}"), "1".into());
        let expected_text = format!("{}\ninput {number}\n1\n", command.working_dir.display());
        assert_eq!(run_script(&runtime, command), expected_text);
    }
    spare.close();
}

#[test]
fn processes_one_after_the_other_have_one_keeper() {
    let (runtime, spare) = (test_runtime(), Arc::new(SpareKeeper::default()));
    let keeper_of = |script: &str| run_script(&runtime, with_spare(shell_command(script), &spare));
    let first_keeper = keeper_of("echo $PPID");
    assert_eq!(keeper_of("echo $PPID"), first_keeper);
    // What a process leaves behind is ended, and does not write into the streams of the next one.
    assert_eq!(keeper_of("(trap '' TERM; sleep 600; echo late) & echo $PPID"), first_keeper);
    assert_eq!(keeper_of("setsid sh -c 'sleep 600; echo late' & echo $PPID"), first_keeper);
    assert_eq!(keeper_of("ps -o args= --ppid $PPID | grep -c '[s]leep 600'; echo $PPID"), format!("0\n{first_keeper}"));
    // A program that cannot be started costs the keeper.
    let missing = ProcessCommand { program: "/nonexistent/program".into(), ..with_spare(shell_command(""), &spare) };
    assert!(runtime.block_on(run_process(missing)).is_err());
    assert_ne!(keeper_of("echo $PPID"), first_keeper);
}

#[test]
fn a_keeper_that_was_told_to_end_its_tree_is_not_used_again() {
    let (runtime, spare) = (test_runtime(), Arc::new(SpareKeeper::default()));
    let keeper_of = |script: &str| run_script(&runtime, with_spare(shell_command(script), &spare));
    let first_keeper = keeper_of("echo $PPID");
    let mut endless = with_spare(shell_command("sleep 600"), &spare);
    let (stop_sender, stop_receiver) = tokio::sync::watch::channel(false);
    endless.stop_signal = Some(stop_receiver);
    endless.output_limits.on_stdout = None;
    stop_sender.send(true).unwrap();
    assert_eq!(runtime.block_on(run_process(endless)).unwrap().exit_reason, ExitReason::Stopped);
    assert_ne!(keeper_of("echo $PPID"), first_keeper);
}

#[test]
fn processes_at_the_same_time_have_their_own_keepers() {
    let (runtime, spare) = (test_runtime(), Arc::new(SpareKeeper::default()));
    for _ in 0..3 {
        let directory = tempfile::tempdir().unwrap();
        // Each waits for the other one.
        let script = |own: &str, other: &str| {
            let mut command = with_spare(shell_command(&format!("echo x > {own} & cat {other}; wait")), &spare);
            command.working_dir = directory.path().to_path_buf();
            command
        };
        create_pipes(&directory);
        let (first, second) =
            runtime.block_on(async { tokio::join!(run_process(script("a", "b")), run_process(script("b", "a"))) });
        assert_eq!(first.unwrap().exit_reason, ExitReason::Exited(0));
        assert_eq!(second.unwrap().exit_reason, ExitReason::Exited(0));
    }
    spare.close();
}

/// Creates the pipes by which two processes wait for each other.
fn create_pipes(directory: &tempfile::TempDir) {
    let status = std::process::Command::new("mkfifo").args(["a", "b"]).current_dir(directory.path()).status();
    assert!(status.unwrap().success());
}

/// It does not fit into the buffer of the channel, so it arrives in parts.
#[test]
fn a_large_environment_arrives_whole() {
    let (runtime, spare) = (test_runtime(), Arc::new(SpareKeeper::default()));
    let mut command = with_spare(shell_command("env | grep -c '^LARGE_'"), &spare);
    for number in 0..12 {
        command.extra_env.insert(format!("LARGE_{number}"), "x".repeat(100_000).into());
    }
    assert_eq!(run_script(&runtime, command), "12\n");
}

#[test]
fn a_removed_variable_is_not_inherited() {
    let (runtime, spare) = (test_runtime(), Arc::new(SpareKeeper::default()));
    for _ in 0..2 {
        let mut command = with_spare(shell_command("echo ${HOME-none} $EXTRA"), &spare);
        command.removed_env = vec!["HOME".into()];
        command.extra_env.insert("EXTRA".into(), "two words".into());
        assert_eq!(run_script(&runtime, command), "none two words\n");
    }
}

#[test]
fn a_spare_keeper_that_was_killed_is_replaced() {
    let (runtime, spare) = (test_runtime(), Arc::new(SpareKeeper::default()));
    let mut command = with_spare(shell_command("echo first"), &spare);
    let mark = format!("spare-{}", std::process::id());
    command.extra_env.insert(MARK_VARIABLE.into(), mark.clone().into());
    assert_eq!(run_script(&runtime, command), "first\n");
    let killed_count = wait_for_spare(|| tribunal_supervise::sweep_strays(|found_mark| found_mark == mark));
    assert_eq!(killed_count, 1, "the spare keeper has the mark of the process before it");
    assert_eq!(run_script(&runtime, with_spare(shell_command("echo second"), &spare)), "second\n");
}

/// Repeats until the keeper that is started in the background is found.
fn wait_for_spare(mut sweep: impl FnMut() -> usize) -> usize {
    loop {
        match sweep() {
            0 => std::thread::yield_now(),
            swept_count => return swept_count,
        }
    }
}

#[test]
fn locks_are_free_once_it_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let lock_path = directory.path().join("lock");
    let lock = Arc::new(File::create(&lock_path).unwrap());
    lock.try_lock().unwrap();
    let (runtime, spare) = (test_runtime(), Arc::new(SpareKeeper::default()));
    for _ in 0..20 {
        let mut command = with_spare(shell_command(":"), &spare);
        command.keeper = command.keeper.map(|setup| KeeperSetup { held_locks: vec![lock.clone()], ..setup });
        runtime.block_on(run_process(command)).unwrap();
    }
    drop(lock);
    spare.close();
    File::open(&lock_path).unwrap().try_lock().unwrap();
}
