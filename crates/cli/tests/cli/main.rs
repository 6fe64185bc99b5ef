//! The binary from outside: its commands, their output and their exit codes.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod agents;
mod bad_input;
mod change_review;
mod change_selection;
mod common;
mod contracts;
mod crash;
mod crash_change;
mod decisions;
mod demo;
mod discard;
mod doctor;
mod exports;
mod gc;
mod hostile_agents;
mod hostile_environment;
mod init;
mod log;
mod menus;
mod multi_run;
mod progress_display;
mod projects;
mod responses;
mod sessions;
mod sessions_review;
mod settings;
mod sprint;
mod stories;
mod terminal_escapes;
mod terminal_questions;
mod trust;
mod undo;
mod undo_multi_file;
mod validate;
