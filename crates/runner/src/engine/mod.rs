//! Runs on this machine: starting and resuming them, the host that drives them, their journals and what they share.

pub mod host;
pub mod journal;
pub mod request_sender;
pub mod run;
pub mod updates;
