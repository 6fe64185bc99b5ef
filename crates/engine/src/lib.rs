//! What holds for every kind of run: the host, the replay rule, common effects and events, decisions, keys, limits, child runs.
//!
//! Nothing here names a kind of run. What only workflows know are the types of [`run_types::RunTypes`], which they choose once.
//!
//! Files, processes, clocks, databases and terminals are absent on purpose. The crate is `no_std` and its dependencies are on an
//! allow-list, so that it *cannot* use any of them: given the same replies in the same order, a workflow requests the same
//! effects. This is what lets a run be killed at any instant and be resumed.
#![no_std]

extern crate alloc;

pub mod answer;
pub mod answer_to;
pub mod child_outcome;
pub mod child_queue;
pub mod children;
mod cost;
pub mod decision;
pub mod dialog;
pub mod effect;
pub mod effect_set;
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
mod remaining;
pub mod replayer;
pub mod run_types;
pub mod sandbox;
pub mod text;
pub mod tier;
pub mod timestamp;
pub mod user_remark;
