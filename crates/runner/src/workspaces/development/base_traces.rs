//! What checks change on the untouched base: a check that also changes the same files there says nothing about the work.
//!
//! It is a file beside the clone, where no agent can write. Without it a check is only judged more strictly.

use std::{collections::BTreeMap, fs, io};

use tribunal_workflows::development::checks::CommandLine;

use super::{DevelopmentWorkspace, WithPath, WorkspaceError};
use crate::project::atomic_files;

const TRACES_FILE: &str = "base-traces.json";

impl DevelopmentWorkspace {
    /// Whether the frozen content is that of the commit with which the work began.
    pub(super) fn is_untouched(&self) -> bool {
        let base_tree = self.freeze_commit(&self.record.base).ok();
        base_tree.is_some() && base_tree == self.find_frozen_tree()
    }

    /// Remembers what a check changes on the untouched base.
    pub(super) fn remember_base_traces(&self, command: &CommandLine, paths: &[String]) -> Result<(), WorkspaceError> {
        let mut traces = self.read_base_traces();
        traces.insert(command.to_string(), paths.to_vec());
        let traces_path = self.directory.join(TRACES_FILE);
        let traces_text = serde_json::to_vec(&traces).map_err(io::Error::other).at_path(&traces_path)?;
        atomic_files::write_privately(&traces_path, &traces_text).at_path(&traces_path)
    }

    /// Lists what a check has changed on the untouched base.
    pub(super) fn list_base_traces(&self, command: &CommandLine) -> Vec<String> {
        self.read_base_traces().remove(&command.to_string()).unwrap_or_default()
    }

    fn read_base_traces(&self) -> BTreeMap<String, Vec<String>> {
        let traces_text = fs::read(self.directory.join(TRACES_FILE)).unwrap_or_default();
        serde_json::from_slice(&traces_text).unwrap_or_default()
    }
}
