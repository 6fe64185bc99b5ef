//! Runs one process as a task: own process group, a deadline, bounded output, and nothing of the group left afterwards.
//!
//! It knows no agent and no journal: a [`Command`] comes in, an [`Ended`] goes out. It is the only crate that may say
//! `unsafe`. What it does not do yet: processes that leave their group (sessions of their own, double forks) are only ended
//! by the kernel when they are children of ours; the keeper that sweeps them is described in `docs/roadmap.md`.

mod capture;
mod process;

pub use capture::Captured;
pub use process::{Command, Ended, How, StartError, run};
