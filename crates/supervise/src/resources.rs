//! What the kernel lets us have.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many files could be open before we asked for more: what a child gets back.
static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// A thousand agents are a few thousand pipes: raises our own limit on open files as far as we may, and says how far.
pub fn allow_many_files() -> u64 {
    BEFORE.get_or_init(|| {
        let limit = getrlimit(Resource::Nofile);
        let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        raised.ok().and(limit.current)
    });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The limit that a child should see: many programs close every file they could have, one by one.
pub(crate) fn files_of_a_child() -> Option<u64> {
    BEFORE.get().copied().flatten()
}

pub(crate) fn set_files(current: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // A child with a longer table is slower, not wrong.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum });
}
