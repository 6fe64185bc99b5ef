//! Translates between Tribunal's task briefs and the languages of agent command lines.
//!
//! [`prompt`] turns a brief into the text an agent reads. [`driver`] says how an agent is launched and how its output
//! is decoded. [`answer`] turns the output into typed findings and fixes, and [`analysis`] scores free text.
//! [`clients`] is the registry of coding clients, [`hook`] speaks with the sessions that users have open, and
//! [`replay`] plays scripts in place of a real agent.
//!
//! This crate starts no process: a launch is data that `runner` hands to `supervise`. It knows nothing of BMAD files
//! or journals, and it does not judge what an answer is worth; that is decided in `workflows`.

pub mod analysis;
pub mod answer;
pub mod clients;
pub mod driver;
pub mod faults;
pub mod hook;
mod json_fields;
pub mod jsonc;
pub mod prompt;
pub mod replay;
pub mod reset_times;
pub mod schema;
mod session_ids;
