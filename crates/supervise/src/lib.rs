//! Runs one process as a task: deadlines, bounded output, and nothing of its tree left afterwards.
//!
//! It knows no agent and no journal: a [`Command`] comes in, an [`Ended`] goes out. It is the only crate that may say
//! `unsafe`.
//!
//! Between us and the process stands a [`keeper`]: a small process of our own that adopts whatever the process leaves behind
//! (sessions of its own, double forks) and ends all of it when the process ends, when it is told to, and when we are gone.
//! What only the next start can find, because keeper and parent were both killed, is ended by [`strays`]. Where the kernel
//! knows no adopting (macOS), a process group is all there is: what leaves it, survives.
//!
//! It does not decide how long anything may take, does not retry, and kills nothing by name.

mod capture;
mod deadlines;
mod detach;
mod identity;
mod keeper;
mod pace;
mod process;
mod resources;
mod strays;
mod table;
mod tree;

pub use capture::Captured;
pub use deadlines::Deadlines;
pub use detach::start_detached;
pub use identity::Identity;
pub use keeper::{enter as enter_keeper, own_program};
pub use process::{Command, Ended, How, OnOutput, Output, StartError, run};
pub use resources::allow_many_files;
pub use strays::{MARK, sweep as sweep_strays};
