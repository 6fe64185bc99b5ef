//! The `claude` client: Claude Code, one process a task.
//!
//! [`launch`] says how it is started, [`personal`] sorts the person's own settings, [`stream`] reads what it prints,
//! [`tools`] knows its tools by name. It is never asked to run anything in the background, and none of its hooks are relied
//! on.

mod launch;
mod personal;
mod stream;
mod tools;

pub(super) use launch::launch;
pub(super) use stream::{decode, events};
pub(super) use tools::unknown;
