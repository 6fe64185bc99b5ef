//! The journal on disk.
//!
//! One binary for all of them: every further one would be linked against everything again.

mod journal;
mod sweep;
