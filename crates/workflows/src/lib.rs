//! What Tribunal decides: the vocabulary, the rules and the workflows.
//!
//! A workflow is plain `async` code over the [`engine::host::Host`] trait; a rule is a plain function. Everything here is a
//! function of its inputs: given the same replies in the same order, a workflow requests the same effects. This is what
//! lets a run be killed at any instant and be resumed.
//!
//! Files, processes, clocks, databases and terminals are absent on purpose. The crate is `no_std` and its dependencies are
//! on an allow-list, so that it *cannot* use any of them. Effects are performed in `runner`, shown in `report` and stored in
//! `store`; the protocols of agents are translated in `agents`, the files of BMAD in `bmad`.
#![no_std]

extern crate alloc;

pub mod development;

pub mod findings;
pub mod loop_run;
pub mod review;
pub mod runs;
pub mod session;
pub mod sprint;
mod stages;
pub mod story;
pub mod tasks;

#[cfg(feature = "toy-workflow")]
pub mod toy;
pub mod workflows;
