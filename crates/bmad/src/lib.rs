//! Reads BMAD's files: takes text, gives types. Starts nothing, opens nothing, knows no agent.
//!
//! [`layout`] tells the eras apart and [`config`] where a project keeps what; [`board`] is the sprint's, [`keys`] names what
//! stands on it. [`yaml`] and [`page`] read the two formats with their places, so that an edit exchanges what it means and
//! nothing else. What cannot be read is a [`problem`], never a failure; files come from a [`shelf`].

pub mod board;
pub mod check;
pub mod commands;
pub mod config;
mod csv;
pub mod deferred;
pub mod documents;
pub mod epics;
pub mod field;
pub mod help;
pub mod keys;
pub mod layout;
pub mod manifest;
pub mod menu;
pub mod page;
pub mod paths;
pub mod problem;
pub mod quick;
pub mod retro;
pub mod roster;
pub mod shelf;
pub mod specs;
pub mod state;
pub mod story;
pub mod tier;
pub mod toml_tree;
pub mod verdict;
pub mod yaml;

pub use config::{CONFIG_PATH, OUTPUT_FOLDER, folder};
pub use roster::{Member, ROSTER_PATH, Roster, Unnamed, roster};
pub use story::{criteria, is_story};
