//! What `tribunal init` answers with `--json`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::documents::ChangedFile;

pub(super) const SCHEMA: &str = "tribunal.init/1";

/// `tribunal init`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Init {
    pub schema: &'static str,
    /// Whether something was written; else this is what would be.
    pub done: bool,
    pub clients: Vec<ClientRow>,
    /// Files that change.
    pub files: Vec<ChangedFile>,
    /// The folder that BMAD is in.
    pub bmad: Option<String>,
    pub profile: Option<&'static str>,
    /// What keeps hooks from running as things are.
    pub warnings: Vec<String>,
    pub notes: Vec<String>,
    pub by_hand: Vec<ByHand>,
}

/// A client and its hooks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ClientRow {
    pub client: &'static str,
    /// Where its hooks are set.
    pub file: String,
    pub added: usize,
    /// They started another program before.
    pub updated: usize,
    pub removed: usize,
    /// As they should be.
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

/// What a person has to write, because it is not ours to write.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ByHand {
    pub file: String,
    pub why: String,
    /// What has to stand there.
    pub text: String,
}
