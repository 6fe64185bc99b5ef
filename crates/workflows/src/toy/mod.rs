//! A small kind of run for tests of the engine. It takes the steps of its order one after the other: questions, pauses, child runs.

pub mod event;
pub mod order;
pub mod state;
pub mod view;
mod workflow;

pub use order::{ToyChild, ToyOrder, ToyStep};
