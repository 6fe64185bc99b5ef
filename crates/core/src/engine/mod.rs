//! What holds for every kind of run: the host, the replay rule, effects, common events, keys, limits and the view of a run.

pub mod effect;
pub mod event;
pub mod files;
pub mod host;
pub mod ids;
pub mod keys;
pub mod limits;
pub mod progress;
pub mod reason;
pub mod replayer;
pub mod settings;
pub mod timestamp;
pub mod view;
