//! Translates between Tribunal's briefs and the languages of agent command lines.
//!
//! [`prompt`] turns a brief into the text an agent reads, [`driver`] says how an agent is launched and how its output is
//! read, [`answer`] turns its words into typed findings and fixes, [`replay`] plays scripts where no real agent is wanted.
//!
//! It starts nothing: a launch is data that `runner` hands to `supervise`. It knows nothing of BMAD files, journals or
//! what an answer is worth; the last is `core`'s business.

pub mod answer;
pub mod driver;
pub mod prompt;
pub mod replay;
