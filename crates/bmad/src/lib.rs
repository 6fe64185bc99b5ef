//! Reads BMAD's files: takes text, gives types. Starts nothing, opens nothing, knows no agent.
//!
//! So far it knows the one file that every era of BMAD has, `_bmad/bmm/config.yaml`. Boards, stories, epics and menus come
//! with the workflows that need them.

mod config;

pub use config::{CONFIG_PATH, OUTPUT_FOLDER, folder};
