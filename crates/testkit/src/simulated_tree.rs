//! The files of a simulated workspace, frozen trees of them, and what has passed the checks.

use tribunal_engine::ids::{CommitId, Key, TreeId};
use tribunal_workflows::{
    development::{
        checks::{CheckPlace, FailureAction, RunChecks},
        commits::{CommitOutcome, CommitWork, Integrate},
        frozen_work::{FreezeWork, WorkFreezing},
    },
    runs::{effect::Reply, types::PendingEffect},
};

use crate::dice::Dice;

/// The files, as a number for each content. It panics if something lands that has not passed the checks.
#[derive(Debug, Default)]
pub(crate) struct SimulatedTree {
    /// What is there.
    files: u32,
    /// The highest number that a content has.
    last_files: u32,
    /// The trees on which all checks have passed last.
    passed: Vec<TreeId>,
    /// Those on which they have passed as in a fresh clone, or no check could block them.
    fresh: Vec<TreeId>,
    /// Trees that differ from another one only in our own bookkeeping, with that one.
    written: Vec<(TreeId, TreeId)>,
    /// The commits, with their trees.
    commits: Vec<(CommitId, TreeId)>,
    /// The last commit, with the effect that made it.
    last_commit: Option<(Key, CommitId)>,
    /// How often the user's hook has changed files in a row.
    rewritings: u32,
}

impl SimulatedTree {
    fn tree(&self) -> TreeId {
        TreeId::new(format!("tree{}", self.files))
    }

    /// Something changes files.
    pub fn change_files(&mut self) {
        self.last_files += 1;
        self.files = self.last_files;
    }

    pub fn freeze(&self, request: &FreezeWork) -> Reply {
        let tree = match &request.commit {
            Some(commit) => self.tree_of(commit),
            None => self.tree(),
        };
        Reply::FreezeWork(WorkFreezing::Frozen { tree, remarks: Vec::new() })
    }

    fn tree_of(&self, commit: &CommitId) -> TreeId {
        let known = self.commits.iter().find(|(known, _)| known == commit);
        known.map_or_else(|| self.tree(), |(_, tree)| tree.clone())
    }

    /// Puts the files back to a tree.
    fn hold(&mut self, tree: &TreeId) {
        if let Some(number) = tree.as_str().strip_prefix("tree").and_then(|number| number.parse().ok()) {
            self.files = number;
        }
    }

    /// The user edits files of the checkout, after which neither checks nor hooks run on a tree that was frozen before.
    pub fn edit_by_user(&mut self) -> Vec<String> {
        self.change_files();
        vec!["src/a.rs".into()]
    }

    /// Notes what checks said about what they ran on. In a workspace there may be nothing but that.
    pub fn note_checks(&mut self, request: &RunChecks, passes: bool, stands_alone: bool) {
        // Such checks only help the user to decide.
        if let CheckPlace::BaseScripts { .. } = request.place {
            return;
        }
        let is_harmless = request.checks.iter().all(|check| check.on_failure == FailureAction::Warn);
        let passes = passes || is_harmless;
        let (tree, is_fresh) = match &request.place {
            CheckPlace::Workspace { tree: Some(tree), .. } => {
                self.hold(tree);
                (tree.clone(), stands_alone || is_harmless)
            }
            CheckPlace::FreshClone { commit, .. } => (self.tree_of(commit), true),
            place => panic!("checks run on any content: {place:?}"),
        };
        let is_workspace = matches!(request.place, CheckPlace::Workspace { .. });
        if is_workspace {
            self.passed.retain(|passed| *passed != tree);
            self.passed.extend(passes.then(|| tree.clone()));
        }
        self.fresh.extend((passes && is_fresh).then_some(tree));
    }

    /// Writes our bookkeeping into a tree.
    pub fn write_into(&mut self, tree: &TreeId) -> TreeId {
        self.hold(tree);
        self.change_files();
        self.written.push((self.tree(), tree.clone()));
        self.tree()
    }

    /// Whether the commit of an earlier process is found.
    pub fn find_made(&self, ask: &PendingEffect) -> Option<CommitId> {
        let made = self.last_commit.as_ref().filter(|(key, _)| ask.resumed && *key == ask.effect_key);
        made.map(|(_, commit)| commit.clone())
    }

    /// Commits a tree, or what is there; a hook may change it first.
    pub fn commit(&mut self, ask: &PendingEffect, request: &CommitWork, rewriting: Option<&mut Dice>) -> CommitOutcome {
        if let Some(tree) = &request.tree {
            self.hold(tree);
        }
        // A hook that changes files accepts what it has made of them.
        let may_rewrite = request.run_hooks && self.rewritings == 0;
        self.rewritings = 0;
        if may_rewrite && rewriting.is_some_and(|dice| dice.roll_percent(10)) {
            self.rewritings = 1;
            self.change_files();
            return CommitOutcome::Rewritten { tree: self.tree(), paths: vec!["src/a.rs".into()] };
        }
        let commit = CommitId::new(format!("commit{}", self.commits.len() + 1));
        self.commits.push((commit.clone(), self.tree()));
        self.last_commit = Some((ask.effect_key.clone(), commit.clone()));
        CommitOutcome::Committed { commit }
    }

    /// Whether what is to be committed is the last commit, or the base if there is none.
    pub fn is_committed(&self, request: &CommitWork) -> bool {
        let tree = request.tree.clone().unwrap_or_else(|| self.tree());
        self.commits.last().is_none_or(|(_, committed)| *committed == tree)
    }

    /// The last commit of the work.
    pub fn find_tip(&self) -> CommitId {
        self.commits.last().map_or_else(|| CommitId::new("commit0"), |(commit, _)| commit.clone())
    }

    /// The work is on another commit now, so that its files have changed.
    pub fn rebase_to(&mut self, commit: &CommitId) {
        self.change_files();
        self.commits.retain(|(known, _)| known != commit);
        self.commits.push((commit.clone(), self.tree()));
    }

    /// What lands must have passed the checks, up to our own bookkeeping.
    pub fn expect_verified(&self, request: &Integrate, has_checks: bool) {
        let verified = request.verified.as_ref().unwrap_or_else(|| panic!("unverified work lands: {request:?}"));
        let mut landed = self.tree_of(&request.commit);
        let mut is_fresh = !has_checks || self.fresh.contains(&landed);
        while landed != verified.tree {
            let origin = self.written.iter().find(|(written, _)| *written == landed).map(|(_, origin)| origin.clone());
            landed = origin.unwrap_or_else(|| {
                panic!("{} lands, which is not what was verified: {request:?} {self:?}", self.tree_of(&request.commit))
            });
            is_fresh |= self.fresh.contains(&landed);
        }
        assert!(is_fresh, "{landed} lands, which was checked in no fresh clone: {self:?}");
        assert!(!has_checks || self.passed.contains(&verified.tree), "{} has not passed: {self:?}", verified.tree);
    }
}
