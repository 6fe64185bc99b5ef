//! Hosts workflows on this machine: records before and after every effect, performs effects in parallel, and recovers.
//!
//! [`run`] starts and resumes runs, [`host`] is the embedded host around the replayer of `core`, `effects` holds one module per
//! kind of effect, and [`journal`] is the only way to the store (and so to every screen): it masks all text that passes it.
//!
//! This crate decides nothing (that is `core`), shows nothing (that is `report`) and reads neither the environment nor the
//! arguments (the binary passes them in).

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
