//! Hosts workflows on this machine: records before and after every effect, performs effects in parallel, and recovers.
//!
//! [`run`] starts and resumes runs, [`host`] is the embedded host around the replayer of `core`, `effects` holds one module per
//! kind of effect, and [`journal`] is a run's only way into its journal (and so to every screen): it masks all text.
//!
//! This crate decides nothing (that is `core`), shows nothing (that is `report`) and reads neither the environment nor the
//! arguments (the binary passes them in).

mod atomic_files;
pub mod changes;
mod checkpoints;
pub mod discarded_runs;
pub mod document_search;
mod effects;
pub mod file_edits;
pub mod gc;
pub mod git;
pub mod host;
pub mod journal;
mod kill_points;
mod landing_repository;
pub mod landings;
pub mod locked_edit;
mod locks;
pub mod mask;
mod merging;
mod parked_files;
mod permits;
pub mod project;
pub mod project_files;
mod rate_limit;
pub mod run;
mod run_names;
pub mod session;
mod shared_state;
pub mod step_hooks;
mod stop_level;
pub mod subject;
pub mod undo;
mod workspaces;

pub use host::RunUpdate;
pub use merging::LineRange;
pub use project::Project;
pub use rate_limit::CallRate;
pub use run::{RunError, RunHold, Runner};
pub use run_names::new_batch_id;
pub use shared_state::SharedState;
pub use stop_level::StopLevel;
