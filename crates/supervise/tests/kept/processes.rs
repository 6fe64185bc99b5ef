//! Tests of single processes: exit codes, signals, deadlines, output. Tests of whole trees are in `trees.rs`.

use std::{sync::mpsc, time::Duration};

use crate::common::{go, shell};
use tribunal_supervise::{How, StartError};

#[test]
fn exit_code_and_both_streams_are_true() {
    let ended = go(shell("echo out; echo err >&2; exit 7")).unwrap();
    assert_eq!(ended.how, How::Exited(7));
    assert_eq!((ended.stdout.text(), ended.stderr.text()), ("out\n".into(), "err\n".into()));
    assert_eq!(ended.left, 0);
}

#[test]
fn a_signal_is_told_apart_from_an_exit_code() {
    assert_eq!(go(shell("kill -9 $$")).unwrap().how, How::Killed(9));
    assert_eq!(go(shell("exit 137")).unwrap().how, How::Exited(137));
}

#[test]
fn without_a_keeper_a_process_group_does_the_same_for_all_that_stays_in_it() {
    let mut command = shell("echo out; sleep 1000 & exit 7");
    command.keeper = None;
    let ended = go(command).unwrap();
    assert_eq!((ended.how, ended.stdout.text()), (How::Exited(7), "out\n".into()));
    let mut command = shell("trap '' TERM; while :; do sleep 1000; done");
    command.keeper = None;
    command.deadlines.total = Duration::from_millis(300);
    assert_eq!(go(command).unwrap().how, How::TimedOut);
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
fn a_hung_process_ends_at_its_deadline_though_it_keeps_talking() {
    let said = with_longer_windows(|window| {
        let mut command = shell("while :; do echo alive; sleep 0.02; done");
        command.deadlines.total = window;
        command.deadlines.idle = Duration::from_secs(600);
        let ended = go(command).unwrap();
        assert_eq!(ended.how, How::TimedOut);
        // On a busy machine the process may not have printed anything yet.
        Some(ended.stdout.text()).filter(|text| !text.is_empty())
    });
    assert!(said.unwrap().starts_with("alive\n"));
}

/// Returns the first result of an attempt, with half a second and then longer and longer windows: what must happen within a
/// window happens in one of them, however busy the machine is.
fn with_longer_windows<T>(within: impl FnMut(Duration) -> Option<T>) -> Option<T> {
    [500, 2_000, 8_000, 32_000].map(Duration::from_millis).into_iter().find_map(within)
}

#[test]
fn a_silent_process_ends_before_its_deadline() {
    let mut command = shell("sleep 1000");
    command.deadlines.idle = Duration::from_millis(200);
    assert_eq!(go(command).unwrap().how, How::Silent);
}

#[test]
fn what_is_printed_on_standard_error_is_a_sign_of_life() {
    let how = with_longer_windows(|window| {
        // The whole takes longer than the window, so only its output keeps the process alive.
        let step = window.as_secs_f64() / 8.0;
        let steps = "1 2 3 4 5 6 7 8 9 10 11 12";
        let mut command = shell(&format!("for i in {steps}; do echo . >&2; sleep {step}; done; exit 3"));
        command.deadlines.idle = window;
        let how = go(command).unwrap().how;
        (how != How::Silent).then_some(how)
    });
    assert_eq!(how, Some(How::Exited(3)));
}

#[test]
fn a_flood_is_ended_and_its_head_and_tail_are_kept() {
    let mut command = shell("echo first; exec yes");
    command.output.flood = 40 << 20;
    let ended = go(command).unwrap();
    assert_eq!(ended.how, How::Flooded);
    let text = ended.stdout.text();
    assert!(text.starts_with("first\ny\n") && text.contains("bytes left out"));
    assert!(ended.stdout.total() > 40 << 20 && text.len() < 17 << 20);
}

#[test]
fn garbage_is_no_fault_of_the_reader() {
    let ended = go(shell("printf '\\377\\000\\303'; exit 0")).unwrap();
    assert_eq!(ended.how, How::Exited(0));
    assert_eq!(ended.stdout.text(), "\u{fffd}\0\u{fffd}");
}

#[test]
fn output_is_seen_while_it_comes() {
    let (send, seen) = mpsc::channel();
    let (say, stop) = tokio::sync::watch::channel(false);
    let mut command = shell("echo ready; sleep 1000");
    command.output.seen = Some(Box::new(move |bytes| send.send(bytes.to_vec()).unwrap()));
    command.stop = Some(stop);
    let running = std::thread::spawn(|| go(command).unwrap());
    assert_eq!(seen.recv().unwrap(), b"ready\n");
    say.send_replace(true);
    assert_eq!(running.join().unwrap().how, How::Stopped);
}

#[test]
fn what_cannot_be_started_is_named() {
    for keeper in [crate::common::keeper(), None] {
        let mut command = shell("");
        command.keeper = keeper.clone();
        command.program = "surely-not-installed".into();
        let error = go(command).unwrap_err();
        assert!(matches!(error, StartError::NotFound { .. }), "{error}");
        assert_eq!(error.to_string(), "`surely-not-installed` was not found");

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plain");
        std::fs::write(&file, "no program").unwrap();
        let mut command = shell("");
        command.keeper = keeper.clone();
        command.program = file.into_os_string();
        assert!(matches!(go(command).unwrap_err(), StartError::NotExecutable { .. }));

        let mut command = shell("");
        command.keeper = keeper;
        command.folder = folder.path().join("gone");
        let error = go(command).unwrap_err().to_string();
        assert!(error.contains("its folder") && error.contains("is gone"), "{error}");
    }
}
