//! Tests of the binary with the real clients against a scripted model: what users run, without a model and without a
//! network.
//!
//! `cargo xtask clients` installs the clients and runs these tests; `cargo xtask test` skips them.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod client_isolation;
mod common;
mod doctor;
mod fixers;
mod full_reviews;
mod inherited_settings;
mod loops;
mod provider_failures;
mod reviewers;
#[path = "../cli/common.rs"]
#[expect(dead_code, reason = "made for the tests of the binary alone; these need less of it")]
mod sandbox;
mod sessions;
mod sprints;
mod stories;
mod usage_limits;
