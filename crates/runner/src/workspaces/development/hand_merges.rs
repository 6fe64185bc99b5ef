//! What the user has done on the branch about work that conflicts with it: a merge of the work is found there, also a squashed one, and
//! a merge that lost one of its two sides, or that has marks of the conflict, is refused.
//!
//! For that a workspace remembers where the branch was when the work conflicted with it first: what was committed there later is the
//! solution. It also remembers into which commit the work was merged, because the work is measured from there if it has to be repaired.

use std::{collections::BTreeSet, fs, io};

use tribunal_engine::ids::CommitId;
use tribunal_json::{Deserialize, Serialize};
use tribunal_workflows::development::commits::FoundSolution;

use super::{
    DevelopmentWorkspace, WithPath, WorkspaceError, conflict_sides::MergeSides, git_listings::parse_raw_diff,
    merge_trees::merge_trees,
};
use crate::project::atomic_files;

/// The file in the directory of a workspace with what is remembered.
const MEMORY_FILE: &str = "conflicts.json";

/// What a workspace remembers about conflicts with its branch.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct ConflictMemory {
    /// Where the branch was when the work conflicted with it first.
    conflicting: Option<CommitId>,
    /// The commit of the branch into which the user has merged the work.
    merged_into: Option<CommitId>,
}

/// Work that is about to follow the branch.
pub(super) struct PendingWork<'a> {
    /// The last commit of the work.
    pub commit: &'a CommitId,
    /// The content of that commit.
    pub tree: &'a str,
    /// Where the branch is.
    pub onto: &'a CommitId,
}

/// What the branch has of the work.
pub(super) enum BranchStanding {
    /// Nothing that could be told: the work has to be replayed.
    Without,
    /// The user has merged it, so nothing is left to replay.
    Merged,
    /// The user has merged it, and in these files one side of the merge is lost, or the conflict is not resolved.
    Lost { solution: FoundSolution, paths: Vec<String> },
}

/// Whether a file has the lines with which git marks both ends of a conflict.
fn has_conflict_marks(content: &[u8]) -> bool {
    let has_line = |mark: &[u8]| content.split(|byte| *byte == b'\n').any(|line| line.starts_with(mark));
    has_line(b"<<<<<<< ") && has_line(b">>>>>>> ")
}

impl DevelopmentWorkspace {
    /// Looks for the work on the branch. What is found is remembered.
    pub(super) fn look_for_work(&self, work: &PendingWork<'_>) -> Result<BranchStanding, WorkspaceError> {
        let ConflictMemory { conflicting, .. } = self.read_memory();
        let Some(merged_commit) = self.find_merged_commit(work)? else {
            if let Some(conflicting) = conflicting
                && self.is_taken_over(work, &conflicting)?
            {
                if let Some(marked) = self.find_left_marks(work, &conflicting)? {
                    return Ok(marked);
                }
                self.remember_merge(Some(conflicting))?;
                return Ok(BranchStanding::Merged);
            }
            return Ok(BranchStanding::Without);
        };
        let merged_into = self.find_commit_before(&merged_commit, work.onto)?;
        // After a squashed merge the commit before a merge has the work already, so the older one is compared if it is known.
        if let Some(before) = conflicting.as_ref().or(merged_into.as_ref())
            && let Some(refused) = self.refuse_merge(work, before)?
        {
            return Ok(refused);
        }
        self.remember_merge(merged_into.or(conflicting))?;
        Ok(BranchStanding::Merged)
    }

    /// Finds a commit of the branch with exactly the content of the work. It may be an earlier one of the workspace, because every
    /// attempt to land makes a new one.
    fn find_merged_commit(&self, work: &PendingWork<'_>) -> Result<Option<CommitId>, WorkspaceError> {
        let range = format!("{}..{}", self.record.base, work.onto);
        let arguments = ["rev-list", "--no-commit-header", "--format=tformat:%H %T", &range];
        let listed = self.control_git().query_text(arguments)?;
        let found = listed.lines().filter_map(|line| line.split_once(' ')).find(|(_, tree)| *tree == work.tree);
        Ok(found.map(|(commit, _)| CommitId::new(commit)))
    }

    /// Finds the commit of the branch into which another one was merged; `None` if the branch was moved to that one instead.
    fn find_commit_before(&self, merged: &CommitId, onto: &CommitId) -> Result<Option<CommitId>, WorkspaceError> {
        let control_git = self.control_git();
        let followers_text = control_git.query_text(["rev-list", "--ancestry-path", &format!("{merged}..{onto}")])?;
        let followers: BTreeSet<&str> = followers_text.lines().collect();
        let range = format!("{}..{onto}", self.record.base);
        let own_commits = control_git.query_text(["rev-list", "--first-parent", &range])?;
        Ok(match own_commits.lines().find(|commit| !followers.contains(commit)) {
            Some(commit) if commit == merged.as_str() => None,
            Some(commit) => Some(CommitId::new(commit)),
            None => Some(self.record.base.clone()),
        })
    }

    /// Whether the branch has the work in another form, for instance as a squashed merge: every file that git can merge has exactly the
    /// merged content, and every file with a conflict has changed since. A file without a conflict must be among those that have
    /// changed: the others may have been changed by commits that have nothing to do with the work.
    fn is_taken_over(&self, work: &PendingWork<'_>, conflicting: &CommitId) -> Result<bool, WorkspaceError> {
        let control_git = self.control_git();
        let arguments = ["merge-base", "--is-ancestor", conflicting.as_str(), work.onto.as_str()];
        if conflicting == work.onto || !control_git.run_unchecked(arguments)?.succeeded {
            return Ok(false);
        }
        let base = self.record.base.as_str();
        let sides = MergeSides { base, on_branch: conflicting.as_str(), in_work: work.commit.as_str() };
        let merged = merge_trees(&control_git, &sides)?;
        let in_conflict = self.show_paths(&merged.conflicts);
        let beside_merge = self.collect_differences(&merged.tree, work.onto.as_str())?;
        let changed_since = self.collect_differences(conflicting.as_str(), work.onto.as_str())?;
        let of_work = self.collect_differences(base, work.commit.as_str())?;
        let is_there = |path: &String| match in_conflict.contains(path) {
            true => changed_since.contains(path),
            false => !beside_merge.contains(path),
        };
        let is_proof = |path: &String| !in_conflict.contains(path) && changed_since.contains(path);
        Ok(of_work.iter().all(is_there) && of_work.iter().any(is_proof))
    }

    /// Returns what is wrong with a merge. `before` is the branch without the work.
    fn refuse_merge(
        &self,
        work: &PendingWork<'_>,
        before: &CommitId,
    ) -> Result<Option<BranchStanding>, WorkspaceError> {
        match self.find_lost_side(work, before)? {
            Some(lost) => Ok(Some(lost)),
            None => self.find_left_marks(work, before),
        }
    }

    /// Finds files of the work in which the user has committed marks of a conflict. Marks that one of the two sides had belong there.
    fn find_left_marks(
        &self,
        work: &PendingWork<'_>,
        before: &CommitId,
    ) -> Result<Option<BranchStanding>, WorkspaceError> {
        let control_git = self.control_git();
        let list_paths = |old_tree: &CommitId, new_tree: &CommitId| -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
            let arguments = ["diff-tree", "-r", "--raw", "-z", "--no-renames", old_tree.as_str(), new_tree.as_str()];
            Ok(parse_raw_diff(&control_git.run(arguments)?).into_iter().map(|change| change.path).collect())
        };
        let has_marks = |commit: &CommitId, path: &[u8]| {
            let Ok(path_text) = std::str::from_utf8(path) else { return false };
            // A side that does not have the file has no marks in it.
            let object_name = format!("{commit}:{path_text}");
            has_conflict_marks(&control_git.run(["cat-file", "blob", &object_name]).unwrap_or_default())
        };
        let of_work = list_paths(&self.record.base, work.commit)?;
        let beside_work = list_paths(work.commit, work.onto)?;
        let marked_paths: Vec<String> = of_work
            .intersection(&beside_work)
            .filter(|path| has_marks(work.onto, path) && !has_marks(work.commit, path) && !has_marks(before, path))
            .map(|path| self.shown_path(path))
            .collect();
        Ok(match marked_paths.is_empty() {
            true => None,
            false => Some(BranchStanding::Lost { solution: FoundSolution::MarksLeft, paths: marked_paths }),
        })
    }

    /// Compares a merge with its two sides. `before` is the branch without the work.
    fn find_lost_side(
        &self,
        work: &PendingWork<'_>,
        before: &CommitId,
    ) -> Result<Option<BranchStanding>, WorkspaceError> {
        let base = self.record.base.as_str();
        let between_sides = self.collect_differences(before.as_str(), work.commit.as_str())?;
        let of_work = self.collect_differences(base, work.commit.as_str())?;
        let changed_since = self.collect_differences(before.as_str(), work.onto.as_str())?;
        let work_paths: Vec<String> = of_work.intersection(&between_sides).cloned().collect();
        if !work_paths.is_empty() && !work_paths.iter().any(|path| changed_since.contains(path)) {
            let solution = FoundSolution::WorkDropped { base: self.record.base.clone() };
            return Ok(Some(BranchStanding::Lost { solution, paths: work_paths }));
        }
        let sides = MergeSides { base, on_branch: before.as_str(), in_work: work.commit.as_str() };
        // In a file with a conflict the user may well have preferred the work.
        let in_conflict = self.show_paths(&merge_trees(&self.control_git(), &sides)?.conflicts);
        let of_branch = self.collect_differences(base, before.as_str())?;
        let beside_work = self.collect_differences(work.commit.as_str(), work.onto.as_str())?;
        let is_clean = |path: &&String| !in_conflict.contains(*path);
        let branch_paths: Vec<String> = of_branch.intersection(&between_sides).filter(is_clean).cloned().collect();
        if !branch_paths.is_empty() && !branch_paths.iter().any(|path| beside_work.contains(path)) {
            let solution = FoundSolution::BranchDropped { before: before.clone() };
            return Ok(Some(BranchStanding::Lost { solution, paths: branch_paths }));
        }
        Ok(None)
    }

    fn collect_differences(&self, old_tree: &str, new_tree: &str) -> Result<BTreeSet<String>, WorkspaceError> {
        Ok(self.list_differences(old_tree, new_tree)?.into_iter().collect())
    }

    fn show_paths(&self, tree_paths: &[Vec<u8>]) -> BTreeSet<String> {
        tree_paths.iter().map(|tree_path| self.shown_path(tree_path)).collect()
    }

    /// Remembers that the work conflicts with the branch where it is. Returns what is missing if it did so before.
    pub(super) fn remember_conflict(&self, onto: &CommitId) -> Result<Option<FoundSolution>, WorkspaceError> {
        let memory = self.read_memory();
        if let Some(conflicting) = &memory.conflicting {
            return Ok(Some(FoundSolution::Missing { has_moved: conflicting != onto }));
        }
        self.write_memory(&ConflictMemory { conflicting: Some(onto.clone()), ..memory })?;
        Ok(None)
    }

    /// Forgets where the branch was: the work follows it now.
    pub(super) fn forget_conflict(&self) -> Result<(), WorkspaceError> {
        let memory = self.read_memory();
        if memory.conflicting.is_none() {
            return Ok(());
        }
        self.write_memory(&ConflictMemory { conflicting: None, ..memory })
    }

    fn remember_merge(&self, merged_into: Option<CommitId>) -> Result<(), WorkspaceError> {
        self.write_memory(&ConflictMemory { conflicting: None, merged_into })
    }

    /// Forgets everything: other work begins.
    pub(super) fn forget_merge(&self) -> Result<(), WorkspaceError> {
        let memory_path = self.directory.join(MEMORY_FILE);
        match fs::remove_file(&memory_path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause).at_path(&memory_path),
            _ => Ok(()),
        }
    }

    /// The commit of the branch into which the user has merged the work, if that is why the branch has it.
    pub fn merged_into(&self) -> Option<CommitId> {
        self.read_memory().merged_into
    }

    fn read_memory(&self) -> ConflictMemory {
        let memory_text = fs::read(self.directory.join(MEMORY_FILE)).unwrap_or_default();
        serde_json::from_slice(&memory_text).unwrap_or_default()
    }

    fn write_memory(&self, memory: &ConflictMemory) -> Result<(), WorkspaceError> {
        let memory_path = self.directory.join(MEMORY_FILE);
        let memory_text = serde_json::to_vec(memory).map_err(io::Error::other).at_path(&memory_path)?;
        atomic_files::write_privately(&memory_path, &memory_text).at_path(&memory_path)
    }
}
