//! What the kinds of runs make together: the enums over all of them, the settings and the view of a run.

pub mod child_events;
pub mod effect;
mod effect_faults;
pub mod failure_log;
pub mod incidents;
pub mod kind_host;
pub mod kind_view;
pub mod kinds;
pub mod plan;
pub mod records;
pub mod run_kind;
pub mod settings;
pub mod types;
pub mod user_request;
pub mod view;
