//! What was seen when work was frozen, for the effect that comes next: it would see the same.

use std::sync::{Mutex, PoisonError};

use tribunal_engine::ids::TreeId;

use crate::workspaces::development::contents::StateReading;

/// The last reading, until another effect begins.
#[derive(Debug, Default)]
pub(crate) struct FrozenReadings(Mutex<Option<KnownReading>>);

#[derive(Debug)]
struct KnownReading {
    workspace: String,
    tree: TreeId,
    reading: StateReading,
}

impl FrozenReadings {
    pub fn remember_reading(&self, workspace: &str, tree: &TreeId, reading: StateReading) {
        let reading = KnownReading { workspace: workspace.to_string(), tree: tree.clone(), reading };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reading);
    }

    /// Returns what was seen of this tree, once.
    pub fn take_reading(&self, workspace: &str, tree: &TreeId) -> Option<StateReading> {
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = remembered.take().filter(|reading| reading.workspace == workspace && reading.tree == *tree)?;
        Some(reading.reading)
    }

    /// Another effect begins, which may change the files.
    pub fn forget_reading(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
