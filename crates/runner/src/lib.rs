//! Hosts workflows on this machine: records before and after every effect, performs effects in parallel, and recovers.
//!
//! [`run`] starts and resumes runs, [`host`] is the embedded host around the replayer of `core`, `effects` holds one module per
//! kind of effect, and [`journal`] is a run's only way into its journal (and so to every screen): it masks all text.
//!
//! This crate decides nothing (that is `core`), shows nothing (that is `report`) and reads neither the environment nor the
//! arguments (the binary passes them in).

mod blocking_work;
mod effects;
pub mod engine;
pub mod git;
pub mod housekeeping;
pub mod landing;
pub mod masking;
pub mod project;
pub mod sandbox;
pub mod session;
mod workspaces;

pub use effects::BaseCheck;
pub use engine::rate_limit::CallRate;
pub use engine::run::{InspectedStory, RunError, RunHold, Runner, StoryInspection};
pub use engine::run_names::new_batch_id;
pub use engine::shared_state::SharedState;
pub use engine::stop_level::StopLevel;
pub use engine::updates::{RunUpdate, UpdateCallback, UpdateSink};
pub use landing::merging::LineRange;
pub use project::Project;
pub use workspaces::development::hooks::{CommitHook, CommitHookFile, list_commit_hooks};
