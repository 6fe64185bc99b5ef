//! Reads BMAD's files: takes text, gives types. Starts nothing, opens nothing, knows no agent.
//!
//! | for | see |
//! | --- | --- |
//! | the two formats with their places, so that an edit exchanges what it means and nothing else | [`yaml`], [`page`], `toml_tree` |
//! | which era is installed, where it keeps what, what runs a step | [`layout`], [`manifest`], [`config`], [`commands`] |
//! | what comes next in planning | [`help`], [`paths`], [`state`]; how big a task is: [`field`], [`quick`], [`tier`] |
//! | the sprint | [`board`], [`keys`], [`story`], [`specs`], [`deferred`], [`retro`] |
//! | the plans | [`documents`] finds them, [`epics`] and [`verdict`] read them, [`check`] holds all against each other |
//! | agents | [`roster`]; what they ask: [`menu`]; what runs beside them: [`hooks`] |
//!
//! A reader gives a value and [`problem`]s and never fails; files come from a [`shelf`]. A new kind of file is a module of its
//! own with a `read`, its edits beside it; what it has to agree with is a rule in [`check`].

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
pub mod hooks;
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
