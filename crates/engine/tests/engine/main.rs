//! The engine with a toy kind of run: what holds for every kind is tried here without any kind that Tribunal has.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod child_ledger;
mod kills;
mod memory_host;
mod replay;
mod toy;
mod toy_workflow;
mod trees;
