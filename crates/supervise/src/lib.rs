//! Runs one process as a task: with deadlines, with bounded output, and with no process of its tree left afterwards.
//!
//! The crate knows no agent and no journal: a [`ProcessCommand`] comes in, a [`ProcessOutcome`] goes out. It is the only crate
//! that may use `unsafe`.
//!
//! Between Tribunal and the process stands a [`keeper`]: a small process of our own that adopts everything the process leaves
//! behind (own sessions, double forks) and ends all of it when the process ends, when the parent asks for it, and when the
//! parent is gone. What a killed keeper leaves behind comes to us and is ended as [`orphans`]; if keeper and parent are both
//! killed, the next start finds what is left and ends it through [`strays`]. On
//! systems whose kernel cannot adopt processes (macOS) there is only a process group: a process that leaves it survives.
//!
//! A [`sandbox`] keeps a tree from writing anywhere but where it may, with the help of the kernel.
//!
//! The crate does not decide how long anything may take, does not retry, and kills nothing by name.

mod capture;
mod deadlines;
mod detached;
mod enclosing_agent;
mod identity;
mod keeper;
mod keeper_process;
mod orphans;
mod output_rate;
mod process;
mod process_table;
mod process_tree;
mod resources;
mod sandbox;
mod search_path;
mod senders;
mod strays;

pub use capture::CapturedOutput;
pub use deadlines::Deadlines;
pub use detached::start_detached;
pub use enclosing_agent::{EnclosingAgent, find_enclosing_agent};
pub use identity::ProcessIdentity;
pub use keeper::{enter_if_keeper as enter_keeper, own_program};
pub use keeper_process::{KeeperSetup, SpareKeeper};
pub use process::{ExitReason, OutputCallback, OutputLimits, ProcessCommand, ProcessOutcome, StartError, run_process};
pub use process_table::ProcessGroups;
pub use resources::raise_file_limit;
pub use sandbox::{NetworkRule, SOCKET_GAP, SandboxRules, SandboxSupport, probe_sandbox};
pub use search_path::{search_dirs, secure_search_path};
pub use senders::{SenderProof, can_verify_senders, verify_sender};
pub use strays::{MARK_VARIABLE, sweep_by_mark as sweep_strays};
