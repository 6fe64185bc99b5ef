//! The user's terminal: its size, whether we are in the foreground, and the keys that are pressed.
//!
//! [`crate::terminal::progress_display`] decides what keys mean, and [`crate::terminal::prompt`] asks for whole lines; nothing is drawn
//! here. While a run is shown and we are in the foreground, keys are read one by one and without echo; Ctrl-C and Ctrl-Z stay
//! signals. The terminal gets its original modes back at the end, when the run breaks off, and before we are suspended.

pub(crate) mod live_terminal;
pub(crate) mod multi_run_view;
pub(crate) mod progress_display;
pub(crate) mod prompt;
pub(crate) mod wrapped_output;

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, IsTerminal, PipeReader, PipeWriter, Read, Write, pipe, stderr, stdin},
    os::{fd::AsFd, unix::ffi::OsStrExt, unix::fs::OpenOptionsExt},
    thread::{self, JoinHandle},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::OFlags,
    process::{Signal, getpid, kill_process},
    termios::{
        LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetpgrp,
        tcgetwinsize, tcsetattr, ttyname,
    },
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tribunal_supervise::ProcessGroups;

/// The number of columns and rows.
pub(crate) fn screen_size() -> Option<(usize, usize)> {
    let window_size = tcgetwinsize(stderr()).ok()?;
    // A size of zero means that the terminal does not know its size.
    (window_size.ws_col > 0 && window_size.ws_row > 0)
        .then_some((usize::from(window_size.ws_col), usize::from(window_size.ws_row)))
}

/// Returns whether we, and not the shell, may paint on the terminal and read from it.
pub(crate) fn is_in_foreground() -> bool {
    let own_group = ProcessGroups::of_own_process().map(|groups| groups.group);
    tcgetpgrp(stderr()).is_ok_and(|process_group| Some(process_group.as_raw_nonzero().get()) == own_group)
}

/// Suspends this process as Ctrl-Z would. Without a shell that could continue it, nothing happens.
pub(crate) fn suspend_process() {
    // A process in the session leader's own group has no shell above it that would ever continue it.
    let has_shell = ProcessGroups::of_own_process().is_some_and(|groups| groups.session != groups.group);
    if has_shell {
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

/// Reads keys as they are pressed, or whole lines. Once dropped, it leaves further input to other programs.
#[derive(Debug)]
pub(crate) struct Keyboard {
    original_modes: Termios,
    /// The modes while we read.
    reading_modes: Termios,
    typed_keys: UnboundedReceiver<Vec<u8>>,
    /// The pipe to the reader thread; dropping it ends the thread.
    order_writer: Option<PipeWriter>,
    reader_thread: Option<JoinHandle<()>>,
}

const RESUME_ORDER: u8 = b'g';
const PAUSE_ORDER: u8 = b'p';

impl Keyboard {
    /// Starts reading single keys without echo. `None` if standard input is not a terminal or we are in the background.
    pub fn open_raw() -> Option<Keyboard> {
        Keyboard::open_with(|modes| {
            modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            // A read returns as soon as one byte is there.
            modes.special_codes[SpecialCodeIndex::VMIN] = 1;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        })
    }

    /// Starts reading lines, which the terminal lets the user edit. What was typed earlier is dropped: it cannot be meant as
    /// the answer to a question that was not asked yet.
    pub fn open_lines() -> Option<Keyboard> {
        let keyboard = Keyboard::open_with(|modes| {
            modes.local_modes.insert(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        })?;
        let _ = tcflush(stdin(), QueueSelector::IFlush);
        Some(keyboard)
    }

    fn open_with(change_modes: impl FnOnce(&mut Termios)) -> Option<Keyboard> {
        if !stdin().is_terminal() || !is_in_foreground() {
            return None;
        }
        let original_modes = tcgetattr(stdin()).ok()?;
        let mut reading_modes = original_modes.clone();
        change_modes(&mut reading_modes);
        let key_file = open_own_terminal().ok()?;
        let (order_reader, order_writer) = pipe().ok()?;
        let (key_sender, typed_keys) = unbounded_channel();
        // Reading a terminal blocks, so a thread of its own does it.
        let thread_builder = thread::Builder::new().name("keys".into());
        let reader_thread = thread_builder.spawn(move || read_keys(key_file, order_reader, &key_sender)).ok()?;
        let keyboard = Keyboard {
            original_modes,
            reading_modes,
            typed_keys,
            order_writer: Some(order_writer),
            reader_thread: Some(reader_thread),
        };
        keyboard.resume();
        Some(keyboard)
    }

    /// The next bytes that were typed. `None` if the terminal is gone.
    pub async fn next_keys(&mut self) -> Option<Vec<u8>> {
        self.typed_keys.recv().await
    }

    /// Switches to the modes for reading, and reads.
    pub fn resume(&self) {
        set_modes(&self.reading_modes);
        self.send_order(RESUME_ORDER);
    }

    /// Gives the terminal its original modes back.
    pub fn pause(&self) {
        // The reader stops first, or it could take input that is meant for the shell.
        self.send_order(PAUSE_ORDER);
        set_modes(&self.original_modes);
    }

    /// Sends an order to the reader thread.
    fn send_order(&self, order_byte: u8) {
        if let Some(mut order_writer) = self.order_writer.as_ref() {
            let _ = order_writer.write_all(&[order_byte]);
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.order_writer = None;
        // The thread is joined before the modes are restored, so that it takes no more input.
        if let Some(reader_thread) = self.reader_thread.take() {
            let _ = reader_thread.join();
        }
        set_modes(&self.original_modes);
    }
}

/// Sets the terminal's modes, if we are in the foreground.
fn set_modes(terminal_modes: &Termios) {
    // From the background this call would suspend us, and the shell has its own modes there anyway.
    if is_in_foreground() {
        let _ = tcsetattr(stdin(), OptionalActions::Now, terminal_modes);
    }
}

/// Opens the same terminal again: non-blocking reads are a property of the open file, and the file that we were given is
/// shared with the shell.
fn open_own_terminal() -> io::Result<File> {
    let open_flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let open_path =
        |terminal_path: &OsStr| File::options().read(true).custom_flags(open_flags.cast_signed()).open(terminal_path);
    let terminal_name = ttyname(stdin(), Vec::new())?;
    // After `su` the terminal may belong to another user and cannot be opened by its name.
    open_path(OsStr::from_bytes(terminal_name.as_bytes())).or_else(|_| open_path(OsStr::new("/dev/tty")))
}

/// Reads keys until the terminal is gone or the order pipe is closed.
fn read_keys(mut key_file: File, mut order_reader: PipeReader, key_sender: &UnboundedSender<Vec<u8>>) {
    let mut is_reading = false;
    let mut chunk = [0; 64];
    loop {
        let (has_order, has_key) = match wait_for_input(&key_file, &order_reader, is_reading) {
            Ok(readiness) => readiness,
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        };
        if has_order {
            // Several orders may have piled up; only the last one counts.
            match order_reader.read(&mut chunk) {
                Ok(0) | Err(_) => return,
                Ok(length) => is_reading = chunk[length - 1] == RESUME_ORDER,
            }
        } else if has_key && !is_in_foreground() {
            // The input is for another program now, and reading it would suspend us.
            is_reading = false;
        } else if has_key {
            match key_file.read(&mut chunk) {
                Ok(length @ 1..) if key_sender.send(chunk[..length].to_vec()).is_ok() => {}
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
                _ => return,
            }
        }
    }
}

/// Waits for an order or, while reading, for a key. Returns which of the two is there.
fn wait_for_input(key_file: &File, order_reader: &PipeReader, is_reading: bool) -> rustix::io::Result<(bool, bool)> {
    let key_flags = if is_reading { PollFlags::IN } else { PollFlags::empty() };
    let mut poll_fds = [
        PollFd::from_borrowed_fd(order_reader.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(key_file.as_fd(), key_flags),
    ];
    // While paused the terminal is not polled at all: typed keys would wake us without end.
    let watched_count = if is_reading { 2 } else { 1 };
    poll(&mut poll_fds[..watched_count], None)?;
    Ok((!poll_fds[0].revents().is_empty(), is_reading && !poll_fds[1].revents().is_empty()))
}
