//! What the runs of one process share: permits for agents, the calls of an hour, the user's wish to stop, and which words are the user's.

pub(crate) mod permits;
pub(crate) mod rate_limit;
pub(crate) mod shared_state;
pub(crate) mod stop_level;
pub(crate) mod user_words;
