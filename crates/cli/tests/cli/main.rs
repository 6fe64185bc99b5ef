//! The binary from outside: its commands, their output and their exit codes.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod agents;
mod bad_input;
mod changes;
mod changes_run;
mod common;
mod contracts;
mod crash;
mod crash_change;
mod demo;
mod doctor;
mod gc;
mod hostile;
mod init;
mod live;
mod log;
mod menus;
mod out;
mod people;
mod projects;
mod responses;
mod screens;
mod sessions;
mod sessions_review;
mod settings;
mod several;
mod sprint;
mod stories;
mod trust;
mod undo;
mod undo_several;
mod validate;
mod worlds;
