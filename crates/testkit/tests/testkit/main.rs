//! The test kit itself: its agent, its model server, its simulated court.
//!
//! One binary for all of them: every further one would be linked against everything again.

mod agent;
mod court;
mod model;
