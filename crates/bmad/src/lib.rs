//! Reads BMAD's files: takes text, gives types. Starts nothing, opens nothing, knows no agent.
//!
//! So far it knows the one file that every era of BMAD has, `_bmad/bmm/config.yaml`, the list of a project's agents, and a
//! story's acceptance criteria. Boards, epics and menus come with the workflows that need them.

pub mod commands;
pub mod config;
mod csv;
pub mod help;
pub mod keys;
pub mod layout;
pub mod manifest;
pub mod page;
pub mod paths;
pub mod problem;
pub mod roster;
pub mod shelf;
mod story;
pub mod toml_tree;
pub mod yaml;

pub use config::{CONFIG_PATH, OUTPUT_FOLDER, folder};
pub use roster::{Member, ROSTER_PATH, Roster, Unnamed, roster};
pub use story::{criteria, is_story};
