//! Tests of what agents print, what it means, and how agents are launched.
//!
//! All of them are one binary, because every further one would have to be linked again.

mod analysis;
mod answers;
mod clients;
mod reset_times;
