//! What holds for every kind of run: the host, the replay rule, common effects and events, keys, limits, child runs.
//!
//! Nothing here names a kind of run. The types that only workflows know are those of [`run_types::RunTypes`].

pub mod answer_to;
pub mod children;
mod cost;
pub mod effect;
pub mod event;
pub mod failure_cause;
pub mod fault;
pub mod files;
pub mod host;
pub mod ids;
pub mod keys;
pub mod limits;
pub mod own_folders;
pub mod progress;
pub mod reason;
pub mod records;
pub mod replayer;
pub mod run_types;
pub mod sandbox;
pub mod tier;
pub mod timestamp;
