//! Puts stashes back that were dropped while something worked in a checkout, in their order.

use std::fs;

use serde::{Deserialize, Serialize};

use super::{
    WorkspaceError,
    checkout_refs::{CheckoutRefs, STASH_REF, StashEntry},
    user_repository::UserRepository,
};
use crate::git::run_checked;

/// Stashes as they were seen, and as they are to be. The newest comes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StashRepair {
    seen: Vec<StashEntry>,
    wanted: Vec<StashEntry>,
}

impl StashRepair {
    /// Compares stashes. New ones stay on top, unless an agent made them: a `git stash pop` of the user's would take them.
    pub fn plan_repair(
        before: &[StashEntry],
        current: &[StashEntry],
        is_agents: &dyn Fn(&str) -> bool,
    ) -> Option<StashRepair> {
        let is_kept = |entry: &&StashEntry| !before.contains(entry) && !is_agents(&entry.commit);
        let wanted: Vec<StashEntry> = match before == current {
            true => return None,
            false => current.iter().filter(is_kept).chain(before).cloned().collect(),
        };
        (wanted != current).then(|| StashRepair { seen: current.to_vec(), wanted })
    }

    pub fn describe(&self) -> Vec<String> {
        let dropped = self.wanted.iter().filter(|entry| !self.seen.contains(entry)).count();
        let made = self.list_removed().len();
        let mut remarks = Vec::new();
        match dropped {
            0 => {}
            1 => remarks.push("a stash was dropped while the agent worked, and put back".to_string()),
            count => remarks.push(format!("{count} stashes were dropped while the agent worked, and put back")),
        }
        match made {
            0 => {}
            1 => remarks
                .push("the agent made a stash; it is kept under refs/tribunal/parked, and not among yours".to_string()),
            count => remarks.push(format!(
                "the agent made {count} stashes; they are kept under refs/tribunal/parked, and not among yours"
            )),
        }
        if remarks.is_empty() {
            remarks.push("the order of the stashes was changed while the agent worked, and put back".to_string());
        }
        remarks
    }

    /// Lists the commits of stashes that go.
    pub fn list_removed(&self) -> Vec<String> {
        let removed = self.seen.iter().filter(|entry| !self.wanted.contains(entry));
        removed.map(|entry| entry.commit.clone()).collect()
    }

    /// Sets the stashes, unless another program has changed them since. An earlier process may have done a part of it. Returns those that
    /// could not be put back, the oldest first.
    pub fn put_back_stashes(&self, repository: &UserRepository) -> Result<Vec<StashEntry>, WorkspaceError> {
        let now = CheckoutRefs::read_from(repository)?.stashes;
        let list_missing =
            || -> Vec<StashEntry> { self.wanted.iter().rev().filter(|entry| !now.contains(entry)).cloned().collect() };
        // Stashes are taken from the top, and put on top: in between there are always the oldest ones of either list.
        if !self.seen.ends_with(&now) && !self.wanted.ends_with(&now) {
            return Ok(list_missing());
        }
        let kept_count =
            now.iter().rev().zip(self.wanted.iter().rev()).take_while(|(now, wanted)| now == wanted).count();
        for _ in kept_count..now.len() {
            if repository.query(["reflog", "delete", "--rewrite", "--updateref", "stash@{0}"]).is_err() {
                return Ok(list_missing());
            }
        }
        if kept_count == 0 && !now.is_empty() {
            // The ref stays where it was when its last entry goes.
            repository.query(["update-ref", "-d", STASH_REF])?;
        }
        if now.is_empty() {
            // Where only the ref is gone, git would go on writing into the old log.
            let _ = fs::remove_file(repository.layout.common_dir.join("logs").join(STASH_REF));
        }
        let mut lost = Vec::new();
        for entry in self.wanted.iter().rev().skip(kept_count) {
            let mut store = repository.checkout_command(repository.project_root());
            store.args(["stash", "store", "-q", "-m", &entry.message, &entry.commit]);
            // Its objects may have been pruned, or something may be in the way.
            if run_checked(store, None).is_err() {
                lost.push(entry.clone());
            }
        }
        Ok(lost)
    }
}
