//! The terminal a person sits at: its size, whose turn it is there, and the keys they press.
//!
//! What keys mean for a run is [`crate::view`]'s business; nothing is drawn here. Keys are read one by one and without echo
//! only while a run is shown and we are in the foreground; Ctrl-C and Ctrl-Z stay signals. The terminal is put back as it was
//! found: at the end, when the run breaks, and before we are stopped.

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

/// Columns and rows.
pub(crate) fn size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(stderr()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Whether the terminal is ours to paint on and to read from, or the shell's.
pub(crate) fn in_foreground() -> bool {
    tcgetpgrp(stderr()).is_ok_and(|group| group == getpgrp())
}

/// Stops this process, as Ctrl-Z would have. Without a shell that could let it go on, nothing happens.
pub(crate) fn stop_here() {
    // The group of the session's first process has nobody above it who would ever continue it.
    let shell = getsid(None).is_ok_and(|session| session != getpgrp());
    if shell {
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

/// Keys as they are pressed. Dropped, it leaves what is typed from then on to others.
#[derive(Debug)]
pub(crate) struct Keyboard {
    before: Termios,
    typed: UnboundedReceiver<Vec<u8>>,
    /// None: the reader is to end.
    orders: Option<PipeWriter>,
    reader: Option<JoinHandle<()>>,
}

const GO: u8 = b'g';
const PAUSE: u8 = b'p';

impl Keyboard {
    /// None: there is nobody at the keyboard, or it is not ours.
    pub fn open() -> Option<Keyboard> {
        if !stdin().is_terminal() || !in_foreground() {
            return None;
        }
        let before = tcgetattr(stdin()).ok()?;
        let keys = own_terminal().ok()?;
        let (obeys, orders) = pipe().ok()?;
        let (send, typed) = unbounded_channel();
        let reader = thread::Builder::new().name("keys".into());
        let reader = reader.spawn(move || read_keys(keys, obeys, &send)).ok()?;
        let keyboard = Keyboard { before, typed, orders: Some(orders), reader: Some(reader) };
        keyboard.go_on();
        Some(keyboard)
    }

    /// What was typed, as it came. None: the terminal is gone.
    pub async fn typed(&mut self) -> Option<Vec<u8>> {
        self.typed.recv().await
    }

    /// Keys one by one, without echo.
    pub fn go_on(&self) {
        let mut raw = self.before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        set(&raw);
        self.order(GO);
    }

    /// The terminal as it was found.
    pub fn pause(&self) {
        self.order(PAUSE);
        set(&self.before);
    }

    fn order(&self, order: u8) {
        if let Some(mut orders) = self.orders.as_ref() {
            let _ = orders.write_all(&[order]);
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        set(&self.before);
    }
}

fn set(modes: &Termios) {
    // From the background this would stop us; the shell keeps its own modes there.
    if in_foreground() {
        let _ = tcsetattr(stdin(), OptionalActions::Now, modes);
    }
}

/// The same terminal, opened once more: not to wait in a read is a property of the opening, and the one that we were given
/// is shared with the shell.
fn own_terminal() -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let open = |path: &OsStr| File::options().read(true).custom_flags(flags.cast_signed()).open(path);
    let name = ttyname(stdin(), Vec::new())?;
    // Whoever became another user may not open it by its name.
    open(OsStr::from_bytes(name.as_bytes())).or_else(|_| open(OsStr::new("/dev/tty")))
}

/// Until the terminal is gone or nobody wants keys any more.
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
            match obeys.read(&mut chunk) {
                Ok(0) | Err(_) => return,
                Ok(length) => reading = chunk[length - 1] == GO,
            }
        } else if pressed && !in_foreground() {
            // What is typed now is for somebody else, and asking for it would stop us.
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

/// Waits for an order or, while reading, for a key.
fn ready(keys: &File, obeys: &PipeReader, reading: bool) -> rustix::io::Result<(bool, bool)> {
    let wanted = if reading { PollFlags::IN } else { PollFlags::empty() };
    let mut both = [
        PollFd::from_borrowed_fd(obeys.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(keys.as_fd(), wanted),
    ];
    let watched = if reading { 2 } else { 1 };
    poll(&mut both[..watched], None)?;
    Ok((!both[0].revents().is_empty(), reading && !both[1].revents().is_empty()))
}
