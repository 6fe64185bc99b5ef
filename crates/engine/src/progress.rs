//! What an agent is doing right now: for screens only. It is never journaled and no workflow ever sees it.

use alloc::string::String;

use crate::ids::Key;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentProgress {
    pub task_key: Key,
    pub activity: String,
    /// Whether this is a line of the answer itself, from an agent that reports nothing else. A live view shows the last one; in a log
    /// such lines would be the answer once more.
    pub is_output: bool,
}
