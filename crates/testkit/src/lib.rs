//! What tests are made of: hosts without a world, worlds that answer by script or at random, and a scripted agent that is a
//! real process (`scripted-agent`).
//!
//! [`trial`] drives any workflow over `core`'s own desk with a journal in memory, and can kill it at every single write.
//! Nothing in the product depends on this crate.

mod dice;
mod random;
pub mod samples;
mod scripted;
pub mod trial;

pub use dice::Dice;
pub use random::{RandomWorld, Temper};
pub use scripted::ScriptedWorld;
