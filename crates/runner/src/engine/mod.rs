//! Runs on this machine: starting and resuming them, the host that drives them, their journals and what they share.

pub mod host;
pub mod journal;
pub(crate) mod permits;
pub mod request_sender;
pub mod run;
pub(crate) mod shared_state;
pub(crate) mod stop_level;
pub mod updates;
pub(crate) mod user_words;
