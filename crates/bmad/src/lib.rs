//! Reads BMAD's files: takes text, gives types. Starts nothing, opens nothing, knows no agent.
//!
//! So far it knows the one file that every era of BMAD has, `_bmad/bmm/config.yaml`, the list of a project's agents, and a
//! story's acceptance criteria. Boards, epics and menus come with the workflows that need them.

mod config;
mod csv;
pub mod keys;
pub mod menu;
pub mod page;
pub mod problem;
mod roster;
pub mod shelf;
mod story;
pub mod yaml;

pub use config::{CONFIG_PATH, OUTPUT_FOLDER, folder};
pub use roster::{ROSTER_PATH, Roster, roster};
pub use story::{criteria, is_story};
