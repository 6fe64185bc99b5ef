//! Executes runs: one or several, in the foreground or detached, to an exit code.

pub(crate) mod detach;
pub(crate) mod engine;
pub(crate) mod multi_run;
pub(crate) mod run_reports;
pub(crate) mod run_verdict;
pub(crate) mod user_requests;
