//! The coding clients on this machine: which are installed, what they can do, which session runs this command.

pub(crate) mod agent_session;
pub(crate) mod client_probe;
pub(crate) mod enclosing_run;
pub(crate) mod installed_clients;
pub(crate) mod programs;
