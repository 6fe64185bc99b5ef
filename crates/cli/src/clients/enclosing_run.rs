//! The run inside of which this command was started, if any. Its agents, checks and hooks are not the user.

use std::{env, fmt};

use tribunal_engine::ids::RunId;
use tribunal_runner::Runner;
use tribunal_supervise::{MARK_VARIABLE, find_enclosing_agent};

/// A run that has started this process, directly or through others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnclosingRun {
    /// `None` if only its keeper was found.
    run_id: Option<RunId>,
}

impl fmt::Display for EnclosingRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.run_id {
            Some(run_id) => write!(formatter, "run {run_id}"),
            None => formatter.write_str("a run of Tribunal"),
        }
    }
}

/// Finds the run inside of which this process works. Its own environment alone does not decide: an agent can change it.
pub(crate) fn find_enclosing_run() -> Option<EnclosingRun> {
    let own_mark = env::var_os(MARK_VARIABLE).map(|own_mark| own_mark.to_string_lossy().into_owned());
    let enclosing_agent = find_enclosing_agent(own_mark)?;
    let run_id = enclosing_agent.process_mark.as_deref().and_then(Runner::run_of_mark);
    Some(EnclosingRun { run_id })
}
