//! Real processes, from the tame to the hostile.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;
mod processes;
mod trees;
