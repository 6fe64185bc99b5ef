//! What Tribunal decides: the vocabulary, the rules and the workflows.
//!
//! A workflow is plain `async` code over the [`host::Host`] trait; a rule is a plain function. Everything here is a
//! function of its inputs: given the same replies in the same order, a workflow requests the same effects. This is what
//! lets a run be killed at any instant and be resumed.
//!
//! Files, processes, clocks, databases and terminals are absent on purpose. The crate is `no_std` and its dependencies are
//! on an allow-list, so that it *cannot* use any of them. Effects are performed in `runner`, shown in `report` and stored in
//! `store`; the protocols of agents are translated in `agents`, the files of BMAD in `bmad`.
#![no_std]

extern crate alloc;

pub mod answer_words;
pub mod brief;
pub mod challenge;
pub mod client;
pub mod confidence;
pub mod counts;
pub mod decision;
pub mod effect;
pub mod event;
pub mod fail_threshold;
pub mod failure_cause;
pub mod fault;
pub mod files;
pub mod finding;
pub mod ground;
pub mod host;
pub mod ids;
pub mod keys;
pub mod level;
pub mod limits;
pub mod loops;
pub mod merge;
pub mod metrics;
pub mod plan;
pub mod progress;
pub mod prompt_context;
pub mod reason;
pub mod replayer;
pub mod review;
pub mod seating;
pub mod session;
pub mod settings;
pub mod sizing;
pub mod subject;
pub mod text;
pub mod timestamp;
pub mod tracker;
pub mod view;
pub mod waves;
