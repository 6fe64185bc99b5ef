//! Rules and workflows over simulated hosts, one module per subject.
//!
//! All of them are in one binary, because each further binary would have to be linked against everything again.

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
