//! When an agent of a benchmark began and ended.

use std::{
    io,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::append_line;

/// The moment at which an agent began.
#[derive(Clone, Copy, Debug)]
pub struct SessionStamp {
    began_at: u128,
}

impl SessionStamp {
    pub fn begin_session() -> SessionStamp {
        SessionStamp { began_at: current_nanoseconds() }
    }

    /// Appends the beginning and this moment to a file, in nanoseconds since 1970.
    pub fn append_to(self, stamps_path: &Path) -> io::Result<()> {
        append_line(stamps_path, &format!("{} {}", self.began_at, current_nanoseconds()))
    }
}

fn current_nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}
