//! Finds out whether this process was started, directly or through others, by a process that Tribunal keeps.
//!
//! A process can change its own environment, but neither the names of its ancestors nor the environments they were started
//! with. So the ancestors are looked at: a keeper is one of them for everything that an agent starts, also in sessions of its
//! own and after a double fork, because orphans are adopted by the keeper. What is not found is a process that was started by
//! something outside of the tree on the agent's request (a system service), or that killed its keeper first.

use rustix::process::{Pid, getpid};

use crate::{keeper::KEEPER_NAME, process_table, strays::MARK_VARIABLE};

/// The process of an agent, a check or a hook of a run, around this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnclosingAgent {
    /// The mark of the run it works for; `None` if it has none or it cannot be read.
    pub process_mark: Option<String>,
}

/// Looks for a keeper and for the mark of a run around this process. `own_mark` is the mark in our own environment, which is
/// all that counts on systems without a process table.
pub fn find_enclosing_agent(own_mark: Option<String>) -> Option<EnclosingAgent> {
    find_agent_around(getpid(), own_mark)
}

/// Looks for a keeper and for the mark of a run around any process.
pub(crate) fn find_agent_around(pid: Pid, own_mark: Option<String>) -> Option<EnclosingAgent> {
    let ancestor_pids = process_table::find_ancestors(pid);
    let keeper_pid = ancestor_pids.iter().copied().find(|pid| process_table::is_named(*pid, KEEPER_NAME));
    // An agent can give its children any mark, but its keeper was started by us, so that mark is believed first.
    let process_mark = keeper_pid
        .and_then(read_mark)
        .or_else(|| own_mark.filter(|own_mark| !own_mark.is_empty()))
        .or_else(|| ancestor_pids.into_iter().find_map(read_mark));
    (keeper_pid.is_some() || process_mark.is_some()).then_some(EnclosingAgent { process_mark })
}

pub(crate) fn read_mark(pid: Pid) -> Option<String> {
    process_table::read_env_values(pid, MARK_VARIABLE).into_iter().find(|process_mark| !process_mark.is_empty())
}
