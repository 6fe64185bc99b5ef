//! Acts: hosts workflows on this machine. Records before and after every effect, performs effects in parallel, recovers.
//!
//! [`run`] starts and resumes runs, [`host`] is the embedded host around `core`'s desk, `effects` holds one module per kind
//! of effect, [`journal`] is the one door to the store (and so to every screen): whatever goes through it is masked first.
//!
//! It decides nothing (that is `core`), shows nothing (that is `report`) and reads neither the environment nor arguments
//! (the binary hands them in).

pub mod board;
pub mod changes;
mod checkpoints;
mod copies;
pub mod edits;
mod effects;
mod fault;
mod files;
pub mod gc;
pub mod git;
pub mod host;
pub mod journal;
pub mod landings;
mod locks;
pub mod mask;
mod merging;
mod names;
mod parking;
mod permits;
pub mod project;
mod rate;
mod refs;
pub mod run;
pub mod session;
mod shared;
pub mod shelf;
pub mod step_hooks;
mod stop;
pub mod subject;
pub mod undo;

pub use host::Seen;
pub use merging::Lines;
pub use project::Project;
pub use rate::Rate;
pub use run::{Hold, RunError, Runner};
pub use shared::Shared;
pub use stop::Stop;
