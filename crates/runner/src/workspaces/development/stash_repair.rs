//! Puts stashes back that were dropped while something worked in a checkout, in their order.

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

    /// Sets the stashes, unless another program has changed them since. An earlier process may have done a part of it. Returns what could
    /// not be done.
    pub fn put_back_stashes(&self, repository: &UserRepository) -> Result<Option<String>, WorkspaceError> {
        let now = CheckoutRefs::read_from(repository)?.stashes;
        // Stashes are taken from the top, and put on top: in between there are always the oldest ones of either list.
        let is_expected = self.seen.ends_with(&now) || self.wanted.ends_with(&now);
        if !is_expected {
            return Ok(Some("stashes could not be put back, since they have changed again".to_string()));
        }
        let kept_count =
            now.iter().rev().zip(self.wanted.iter().rev()).take_while(|(now, wanted)| now == wanted).count();
        for _ in kept_count..now.len() {
            repository.query(["reflog", "delete", "--rewrite", "--updateref", "stash@{0}"])?;
        }
        if kept_count == 0 && !now.is_empty() {
            // The ref stays where it was when its last entry goes.
            repository.query(["update-ref", "-d", STASH_REF])?;
        }
        let mut lost_count = 0;
        for entry in self.wanted.iter().rev().skip(kept_count) {
            let mut store = repository.checkout_command(repository.project_root());
            store.args(["stash", "store", "-q", "-m", &entry.message, &entry.commit]);
            // Its objects may have been pruned.
            lost_count += usize::from(run_checked(store, None).is_err());
        }
        Ok(match lost_count {
            0 => None,
            count => {
                Some(format!("of the dropped stashes, {count} could not be put back: git does not have them any more"))
            }
        })
    }
}
