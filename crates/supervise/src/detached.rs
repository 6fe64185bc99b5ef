//! Starts a process that goes on without us and without our terminal.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command},
};

use rustix::process::setsid;

/// Starts a command in a session of its own, so that it does not end with our terminal.
pub fn start_detached(mut command: Command) -> io::Result<Child> {
    // SAFETY: between fork and exec one system call is made; it allocates nothing and takes no lock.
    #[expect(unsafe_code, reason = "the only door to run something between fork and exec")]
    unsafe {
        command.pre_exec(|| setsid().map(|_| ()).map_err(io::Error::from));
    }
    command.spawn()
}
