//! Tests of the test kit itself: its agent, its model server, its simulated court.
//!
//! All tests are one binary, because every further one would be linked against everything again.

mod agent;
mod court;
mod model;
mod random_trees;
