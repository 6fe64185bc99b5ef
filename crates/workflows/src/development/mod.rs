//! What runs need that develop software: workspaces that are kept over many turns, checks, and commits.
//!
//! Everything here is common to all kinds of runs that develop. The effects are performed in `runner`.

mod base_scripts;
pub mod changes;
pub mod check_scripts;
pub mod checks;
pub mod commits;
pub mod concerns;
pub mod frozen_work;
pub(crate) mod land_work;
pub mod landing;
pub mod makefiles;
pub mod notices;
pub mod parking;
pub(crate) mod performing;
mod runner_files;
mod shell_words;
pub mod test_functions;
pub mod weakened_tests;
pub mod workspace;
