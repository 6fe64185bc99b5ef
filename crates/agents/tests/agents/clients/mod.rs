//! What real clients printed and what it means, and how they are launched. The outputs under `fixtures` were printed
//! by the real programs against a scripted provider; ids are masked and long lists left out.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod claude;
mod codex;
mod common;
mod garbage;
mod registry;
