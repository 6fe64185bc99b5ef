//! What `tribunal init` answers with `--json`.

use tribunal_json::{Serialize, schemars};

use crate::messages::json_documents::ChangedFile;

pub(super) const INIT_SCHEMA: &str = "tribunal.init/1";

/// `tribunal init`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct InitReport {
    pub schema: &'static str,
    /// Whether something was written; otherwise this is what would be.
    pub done: bool,
    pub clients: Vec<InitClientRow>,
    /// The files that change.
    pub files: Vec<ChangedFile>,
    /// The directory in which BMAD is installed.
    pub bmad: Option<String>,
    pub profile: Option<&'static str>,
    /// What keeps hooks from running in the current state.
    pub warnings: Vec<String>,
    pub notes: Vec<String>,
    pub by_hand: Vec<ManualEdit>,
}

/// A client with the number of its hooks.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct InitClientRow {
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

impl InitClientRow {
    pub fn summary_line(&self) -> String {
        let counts =
            [(self.added, "added"), (self.updated, "updated"), (self.removed, "removed"), (self.there, "unchanged")];
        let phrases: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, participle)| format!("{count} {participle}"))
            .collect();
        let phrases = if phrases.is_empty() { "none".to_string() } else { phrases.join(", ") };
        format!("{}: hooks in {} ({phrases})", self.client, self.file)
    }
}

/// An edit that the user has to make, because the file is not Tribunal's to write.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct ManualEdit {
    pub file: String,
    pub why: String,
    /// The text that has to be in the file.
    pub text: String,
}
