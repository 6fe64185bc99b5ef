//! Rules and workflows over hosts without a world, one module a subject.
//!
//! One binary for all of them: every further one would be linked against everything again.

mod challenge;
mod change;
mod confidence;
mod consent;
mod ground;
mod guards;
mod loops;
mod merge;
mod peers;
mod replay;
mod review;
mod rules;
mod session;
mod signals;
mod tracker;
mod waits;
