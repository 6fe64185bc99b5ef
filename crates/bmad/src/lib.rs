//! Reads and edits BMAD's files: it takes text and gives types. It starts no process, opens no file and knows no agent.
//!
//! | for | see |
//! | --- | --- |
//! | formats with the positions of their parts, for edits of one value | [`yaml`], [`markdown`], `toml_tree` |
//! | which era is installed, its files, what runs a step | [`layout`], [`manifest`], [`config`], [`commands`] |
//! | what comes next in planning | [`help`], [`workflow_paths`], [`project_state`] |
//! | how big a task is | [`field_type`], [`quick_dev`], [`tier`] |
//! | the sprint | [`board`], [`keys`], [`story`], [`specs`], [`deferred_work`], [`retrospective`] |
//! | the plans | [`documents`] finds them, [`epics`] and [`verdict`] read them, [`check`] compares all of them |
//! | projects of ralph-orchestrator and bmalph | [`ralph`] |
//! | agents | [`roster`]; their questions: [`menu`]; the commands that run beside them: [`hooks`] |
//!
//! A reader gives a value and [`problem`]s and never fails; files come from [`project_files`]. A new kind of file is a module
//! of its own with a `read_…` function and its edits beside it; what the file has to agree with is a rule in [`check`].

pub mod board;
pub mod check;
pub mod commands;
pub mod config;
mod csv;
pub mod deferred_work;
pub mod documents;
pub mod epic_id;
pub mod epics;
pub mod field_type;
pub mod help;
pub mod hooks;
pub mod keys;
pub mod layout;
pub mod manifest;
pub mod markdown;
pub mod menu;
pub mod problem;
pub mod project_files;
pub mod project_state;
pub mod quick_dev;
pub mod ralph;
pub mod retrospective;
pub mod roster;
pub mod specs;
pub mod states;
mod steps;
pub mod story;
pub mod story_files;
pub mod tier;
pub mod toml_tree;
pub mod verdict;
pub mod workflow_paths;
pub mod yaml;

pub use config::{CONFIG_PATH, OUTPUT_FOLDER, normalize_folder};
pub use roster::{AgentNameError, CUSTOM_ROSTER_PATH, ROSTER_PATH, Roster, RosterMember, parse_roster};
pub use story::{is_story_file, read_criteria};
