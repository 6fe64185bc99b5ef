//! The files that a review writes for users.

use tribunal_json::{Deserialize, Serialize, schemars};

/// A file that Tribunal owns; its name is chosen by the runner's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "file", rename_all = "snake_case")]
pub enum OwnFile {
    /// Carries a stamp of its own content, so that edits by the user are noticed and kept.
    Tracker,
    Metrics {
        unix_seconds: u64,
    },
}
