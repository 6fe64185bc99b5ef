//! Runs on this machine: starting and resuming them, the host that drives them, their journals, locks and shared limits.

pub mod host;
pub mod journal;
pub(crate) mod kill_points;
pub(crate) mod locks;
pub(crate) mod permits;
pub(crate) mod rate_limit;
pub mod request_sender;
pub mod run;
pub(crate) mod run_names;
pub(crate) mod shared_state;
pub(crate) mod stop_level;
pub mod updates;
pub(crate) mod user_words;
