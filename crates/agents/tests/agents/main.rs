//! What agents print and what it means; what they are started with.
//!
//! One binary for all of them: every further one would be linked against everything again.

mod analysis;
mod answers;
mod clients;
mod limits;
