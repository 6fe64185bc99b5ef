//! Parking: work in the user's checkout makes room for the user, or for the next story, and comes back later.
//!
//! The work is a commit under a ref of Tribunal's own. Only the files in the checkout move; HEAD, the index and the stash of the user
//! stay as they are. Work in a private clone is not in the way of anything, so it is never parked.

use alloc::{format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use tribunal_engine::{fault::Fault, ids::CommitId};

/// The most files that a message names.
const MAX_NAMED_FILES: usize = 6;

/// Takes the work of a workspace out of the user's checkout, or puts it there again. The work must be committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ParkWork {
    pub workspace: String,
    pub mode: ParkMode,
}

/// What happens to the files in the checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParkMode {
    /// They become what they were before the work began.
    Park,
    /// They get the parked work, on top of what the branch has got meanwhile. The checkout must be clean.
    Return,
    /// What the user has changed in the checkout takes the place of the parked work. Without such changes it is as with `Return`.
    TakeCheckout,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ParkOutcome {
    /// The checkout is without the work.
    Parked {
        commit: CommitId,
        /// Files that are not committed and were left in the checkout: they are not part of the work, or the user has edited them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<String>,
    },
    /// The checkout has the work.
    Returned {
        /// The commit that the work begins with now.
        base: CommitId,
        /// The last commit of the work, or `base`.
        commit: CommitId,
    },
    /// Files of the user would be overwritten. Nothing was changed.
    InTheWay { paths: Vec<String> },
    /// The branch has moved, and the work conflicts with it in these files. Nothing was changed.
    Conflict { paths: Vec<String> },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

/// Names the first files, and counts the others.
pub fn name_files(paths: &[String]) -> String {
    let named = paths.iter().take(MAX_NAMED_FILES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(MAX_NAMED_FILES) {
        0 => named,
        count => format!("{named} and {count} more"),
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn long_lists_of_files_are_cut() {
        let paths: Vec<String> = (1..=8).map(|number| number.to_string()).collect();
        assert_eq!(name_files(&paths[..2]), "1, 2");
        assert_eq!(name_files(&paths), "1, 2, 3, 4, 5, 6 and 2 more");
    }
}
