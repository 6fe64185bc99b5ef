//! The `codex` client: `codex exec`, one process a task.
//!
//! [`launch`] says how it is started, [`stream`] reads what it prints, [`servers`] finds what the person set up for it. What
//! it may write is its own sandbox's business; it has no list of tools.

mod launch;
mod servers;
mod stream;

pub(super) use launch::launch;
pub use servers::servers_in;
pub(super) use stream::{decode, events};
