//! Translates between Tribunal's briefs and the languages of agent command lines.
//!
//! [`prompt`] turns a brief into the text an agent reads, [`driver`] says how an agent is launched and how its output is
//! read, [`answer`] turns its words into typed findings and fixes, [`analysis`] weighs free text, [`clients`] knows what is
//! to be known of each client, [`hook`] speaks with sessions that people have open, [`replay`] plays scripts where no real
//! agent is wanted.
//!
//! It starts nothing: a launch is data that `runner` hands to `supervise`. It knows nothing of BMAD files, journals or
//! what an answer is worth; the last is `core`'s business.

pub mod analysis;
pub mod answer;
pub mod clients;
pub mod driver;
pub mod faults;
pub mod hook;
mod json;
pub mod jsonc;
pub mod limits;
pub mod prompt;
pub mod replay;
mod schema;
mod sessions;
