//! What `tribunal init` answers with `--json`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::documents::ChangedFile;

pub(super) const SCHEMA: &str = "tribunal.init/1";

/// `tribunal init`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Init {
    pub schema: &'static str,
    /// Whether something was written; otherwise this is what would be.
    pub done: bool,
    pub clients: Vec<ClientRow>,
    /// The files that change.
    pub files: Vec<ChangedFile>,
    /// The directory in which BMAD is installed.
    pub bmad: Option<String>,
    pub profile: Option<&'static str>,
    /// What keeps hooks from running in the current state.
    pub warnings: Vec<String>,
    pub notes: Vec<String>,
    pub by_hand: Vec<ByHand>,
}

/// A client with the number of its hooks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ClientRow {
    pub client: &'static str,
    /// The file in which its hooks are set.
    pub file: String,
    pub added: usize,
    /// Hooks that started another program before.
    pub updated: usize,
    pub removed: usize,
    /// Hooks that are as they should be.
    pub there: usize,
}

impl ClientRow {
    pub fn line(&self) -> String {
        let counts = [
            (self.added, "added"),
            (self.updated, "brought up to date"),
            (self.removed, "removed"),
            (self.there, "there already"),
        ];
        let said: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let said = if said.is_empty() { "none".to_string() } else { said.join(", ") };
        format!("{}: hooks in {}: {said}", self.client, self.file)
    }
}

/// An edit that the user has to make, because the file is not Tribunal's to write.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ByHand {
    pub file: String,
    pub why: String,
    /// The text that has to be in the file.
    pub text: String,
}
