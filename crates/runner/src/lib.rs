//! Hosts workflows on this machine: records before and after every effect, performs effects in parallel, and recovers.
//!
//! [`run`] starts and resumes runs, [`host`] is the embedded host around the replayer of `engine`, `effects` holds one module per
//! kind of effect, and [`journal`] is a run's only way into its journal (and so to every screen): it masks all text.
//!
//! This crate decides nothing (that is `workflows`), shows nothing (that is `report`) and reads neither the environment nor the
//! arguments (the binary passes them in).

mod blocking_work;
mod effects;
pub mod engine;
mod file_limits;
pub mod git;
pub mod housekeeping;
mod kill_points;
pub mod landing;
mod locks;
pub mod masking;
pub mod project;
mod run_names;
pub mod sandbox;
pub mod session;
mod shared;
mod workspaces;

pub use effects::BaseCheck;
pub use engine::run::{InspectedStory, RunError, RunHold, Runner, StoryInspection};
pub use engine::updates::{RunUpdate, UpdateCallback, UpdateSink};
pub use file_limits::MAX_SUBJECT_BYTES;
pub use landing::merging::LineRange;
pub use project::Project;
pub use run_names::new_batch_id;
pub use shared::rate_limit::CallRate;
pub use shared::shared_state::SharedState;
pub use shared::stop_level::StopLevel;
pub use workspaces::development::hooks::{CommitHook, CommitHookFile, list_commit_hooks};
