//! The user's terminal: its size, whether we are in the foreground, and the keys that are pressed.
//!
//! [`crate::progress_display`] decides what keys mean; nothing is drawn here. Keys are read one by one and without echo, but
//! only while a run is shown and we are in the foreground; Ctrl-C and Ctrl-Z stay signals. The terminal gets its original
//! modes back at the end, when the run breaks off, and before we are suspended.

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
    process::{Signal, getpgrp, getpid, getsid, kill_process},
    termios::{
        LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize,
        tcsetattr, ttyname,
    },
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The number of columns and rows.
pub(crate) fn size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(stderr()).ok()?;
    // Some terminals report a size of zero before they are ready.
    (size.ws_col > 0 && size.ws_row > 0).then_some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Returns whether we, and not the shell, may paint on the terminal and read from it.
pub(crate) fn in_foreground() -> bool {
    tcgetpgrp(stderr()).is_ok_and(|group| group == getpgrp())
}

/// Suspends this process as Ctrl-Z would. Without a shell that could continue it, nothing happens.
pub(crate) fn stop_here() {
    // A process in the session leader's own group has no shell above it that would ever continue it.
    let shell = getsid(None).is_ok_and(|session| session != getpgrp());
    if shell {
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

/// Reads keys as they are pressed. Once dropped, it leaves further input to other programs.
#[derive(Debug)]
pub(crate) struct Keyboard {
    before: Termios,
    typed: UnboundedReceiver<Vec<u8>>,
    /// The pipe to the reader thread; dropping it ends the thread.
    orders: Option<PipeWriter>,
    reader: Option<JoinHandle<()>>,
}

const GO: u8 = b'g';
const PAUSE: u8 = b'p';

impl Keyboard {
    /// Starts reading keys. `None` if standard input is not a terminal or we are in the background.
    pub fn open() -> Option<Keyboard> {
        if !stdin().is_terminal() || !in_foreground() {
            return None;
        }
        let before = tcgetattr(stdin()).ok()?;
        let keys = own_terminal().ok()?;
        let (obeys, orders) = pipe().ok()?;
        let (send, typed) = unbounded_channel();
        // Reading a terminal blocks, so a thread of its own does it.
        let reader = thread::Builder::new().name("keys".into());
        let reader = reader.spawn(move || read_keys(keys, obeys, &send)).ok()?;
        let keyboard = Keyboard { before, typed, orders: Some(orders), reader: Some(reader) };
        keyboard.go_on();
        Some(keyboard)
    }

    /// The next bytes that were typed. `None` if the terminal is gone.
    pub async fn typed(&mut self) -> Option<Vec<u8>> {
        self.typed.recv().await
    }

    /// Switches to single keys without echo.
    pub fn go_on(&self) {
        let mut raw = self.before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // A read returns as soon as one byte is there.
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        set(&raw);
        self.order(GO);
    }

    /// Gives the terminal its original modes back.
    pub fn pause(&self) {
        // The reader stops first, or it could take input that is meant for the shell.
        self.order(PAUSE);
        set(&self.before);
    }

    /// Sends an order to the reader thread.
    fn order(&self, order: u8) {
        if let Some(mut orders) = self.orders.as_ref() {
            let _ = orders.write_all(&[order]);
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.orders = None;
        // Joined before the modes are restored, so that the reader takes no more input.
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        set(&self.before);
    }
}

/// Sets the terminal's modes, if we are in the foreground.
fn set(modes: &Termios) {
    // From the background this call would suspend us, and the shell has its own modes there anyway.
    if in_foreground() {
        let _ = tcsetattr(stdin(), OptionalActions::Now, modes);
    }
}

/// Opens the same terminal again: non-blocking reads are a property of the open file, and the file that we were given is
/// shared with the shell.
fn own_terminal() -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let open = |path: &OsStr| File::options().read(true).custom_flags(flags.cast_signed()).open(path);
    let name = ttyname(stdin(), Vec::new())?;
    // After `su` the terminal may belong to another user and cannot be opened by its name.
    open(OsStr::from_bytes(name.as_bytes())).or_else(|_| open(OsStr::new("/dev/tty")))
}

/// Reads keys until the terminal is gone or the order pipe is closed.
fn read_keys(mut keys: File, mut obeys: PipeReader, send: &UnboundedSender<Vec<u8>>) {
    let mut reading = false;
    let mut chunk = [0; 64];
    loop {
        let (ordered, pressed) = match ready(&keys, &obeys, reading) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        };
        if ordered {
            // Several orders may have piled up; only the last one counts.
            match obeys.read(&mut chunk) {
                Ok(0) | Err(_) => return,
                Ok(length) => reading = chunk[length - 1] == GO,
            }
        } else if pressed && !in_foreground() {
            // The input is for another program now, and reading it would suspend us.
            reading = false;
        } else if pressed {
            match keys.read(&mut chunk) {
                Ok(length @ 1..) if send.send(chunk[..length].to_vec()).is_ok() => {}
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
                _ => return,
            }
        }
    }
}

/// Waits for an order or, while reading, for a key. Returns which of the two is there.
fn ready(keys: &File, obeys: &PipeReader, reading: bool) -> rustix::io::Result<(bool, bool)> {
    let wanted = if reading { PollFlags::IN } else { PollFlags::empty() };
    let mut both = [
        PollFd::from_borrowed_fd(obeys.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(keys.as_fd(), wanted),
    ];
    // While paused the terminal is not polled at all: typed keys would wake us without end.
    let watched = if reading { 2 } else { 1 };
    poll(&mut both[..watched], None)?;
    Ok((!both[0].revents().is_empty(), reading && !both[1].revents().is_empty()))
}
