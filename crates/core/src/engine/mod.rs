//! What holds for every kind of run: the host, the replay rule, effects, common events, keys, limits and the view of a run.

pub mod children;
mod cost;
pub mod effect;
mod effect_faults;
pub mod event;
pub mod failure_log;
pub mod files;
pub mod host;
pub mod ids;
pub mod keys;
pub mod kind_view;
pub mod kinds;
pub mod limits;
pub mod own_folders;
pub mod plan;
pub mod progress;
pub mod reason;
pub mod records;
pub mod replayer;
pub mod run_kind;
pub mod sandbox;
pub mod settings;
pub mod tier;
pub mod timestamp;
pub mod view;
