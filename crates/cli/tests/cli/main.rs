//! The binary from outside: what people type, what they read, what it exits with.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../common/mod.rs"]
mod common;

mod agents;
mod bad_input;
mod contracts;
mod demo;
mod people;
