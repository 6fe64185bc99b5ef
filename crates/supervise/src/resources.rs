//! Limits that the kernel puts on our resources.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit on open files before we raised it; children get it back.
static ORIGINAL_FILE_LIMIT: OnceLock<Option<u64>> = OnceLock::new();

/// Raises our own limit on open files as far as possible and returns it: a thousand agents need a few thousand pipes.
pub fn raise_file_limit() -> u64 {
    ORIGINAL_FILE_LIMIT.get_or_init(|| {
        let limit = getrlimit(Resource::Nofile);
        let raise_result = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        raise_result.ok().and(limit.current)
    });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The limit that a child should see: many programs close every possible descriptor one by one, which is slow with a high
/// limit.
pub(crate) fn child_file_limit() -> Option<u64> {
    ORIGINAL_FILE_LIMIT.get().copied().flatten()
}

/// Sets the limit on open files of this process.
pub(crate) fn set_file_limit(current: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // A failure is harmless: a child with a higher limit is slower, not wrong.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum });
}
