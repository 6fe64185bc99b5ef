//! The `codex` client: `codex exec`, one process a task.
//!
//! [`launch`] says how it is started, [`stream`] reads what it prints. What it may write is its own sandbox's business; it
//! has no list of tools.

mod launch;
mod stream;

pub(super) use launch::launch;
pub(super) use stream::{decode, events};
