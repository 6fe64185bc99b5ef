//! Tests with real processes, from well-behaved to hostile.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;
mod enclosing_agents;
mod processes;
mod sandboxes;
mod spare_keepers;
mod trees;
