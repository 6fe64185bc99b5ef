//! How work gets from a workspace onto the user's branch, in all kinds of runs that develop: the branch moves, or the work is
//! rebased first, or the user is asked.

use alloc::{format, string::String, vec::Vec};

use crate::{
    development::{
        check_scripts::ChangedScript,
        checks::CommandLine,
        commits::{
            ConflictSides, FoundSolution, Integrate, IntegrateOutcome, RebaseConflict, RebaseOutcome, RebaseWork,
        },
        concerns::LandingConcern,
    },
    runs::{settings::Settings, types::RunHost},
};
use tribunal_engine::{
    fault::Fault,
    host::ParkedRun,
    ids::{CommitId, Key},
};

/// How often work is rebased onto a branch that keeps moving before the run waits.
pub const MAX_REBASES: u32 = 5;

/// Work that is on a branch of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedWork {
    pub branch: String,
    pub checkout_moved: bool,
    /// The files of the checkout that kept the intended branch from moving.
    pub in_the_way: Vec<String>,
}

/// What came of an attempt to move the branch.
#[derive(Debug)]
pub enum LandingAttempt {
    Landed(LandedWork),
    /// The branch has moved to this commit: the work has to be rebased first.
    Moved(CommitId),
    /// The work changes what a check runs.
    ChecksChanged(Vec<ChangedScript>),
    /// Something about the work is questionable.
    Questionable(Vec<LandingConcern>),
    Failed(Fault),
}

/// Moves the branch to the work, if the branch is where it should be.
pub async fn move_branch(
    host: &RunHost<'_>,
    integrate_key: Key,
    integrate: Integrate,
) -> Result<LandingAttempt, ParkedRun> {
    let intended_branch = integrate.branch.name.clone();
    Ok(match host.perform(integrate_key, integrate).await? {
        IntegrateOutcome::Integrated { checkout_moved } => {
            LandingAttempt::Landed(LandedWork { branch: intended_branch, checkout_moved, in_the_way: Vec::new() })
        }
        IntegrateOutcome::Waits { branch, paths } => {
            LandingAttempt::Landed(LandedWork { branch, checkout_moved: false, in_the_way: paths })
        }
        IntegrateOutcome::Moved { tip } => LandingAttempt::Moved(tip),
        IntegrateOutcome::ChecksChanged { scripts } => LandingAttempt::ChecksChanged(scripts),
        IntegrateOutcome::Questionable { concerns } => LandingAttempt::Questionable(concerns),
        IntegrateOutcome::Failed { fault } => LandingAttempt::Failed(fault),
    })
}

/// What came of a rebase.
#[derive(Debug)]
pub enum RebaseAttempt {
    /// The last commit of the work is this one now.
    Rebased(CommitId),
    Conflict(RebaseConflict),
    Failed(Fault),
}

/// Replays the work onto the branch.
pub async fn rebase_onto(
    host: &RunHost<'_>,
    rebase_key: Key,
    workspace_name: &str,
    onto: &CommitId,
) -> Result<RebaseAttempt, ParkedRun> {
    let rebase = RebaseWork { workspace: String::from(workspace_name), onto: onto.clone() };
    Ok(match host.perform(rebase_key, rebase).await? {
        RebaseOutcome::Rebased { commit } => RebaseAttempt::Rebased(commit),
        RebaseOutcome::Conflict(conflict) => RebaseAttempt::Conflict(conflict),
        RebaseOutcome::Failed { fault } => RebaseAttempt::Failed(fault),
    })
}

/// The checks whose own scripts must not have changed; none if the user agreed to that.
pub fn list_guarded_checks(settings: &Settings, is_accepted: bool) -> Vec<CommandLine> {
    match is_accepted {
        true => Vec::new(),
        false => settings.checks.iter().map(|check| check.command.clone()).collect(),
    }
}

/// Says that work could not land because its branch moved too often.
pub fn describe_moving_branch(branch_name: &str) -> String {
    format!("{branch_name} moved {MAX_REBASES} times while the work was about to land")
}

/// Says where work is that waits on a branch of its own; `None` if it is where it should be.
pub fn describe_waiting(landed: &LandedWork) -> Option<String> {
    let branch = &landed.branch;
    (!landed.in_the_way.is_empty()).then(|| {
        format!(
            "your uncommitted changes are in the way ({}), so the work is on the branch {branch}: take it with `git merge {branch}`",
            landed.in_the_way.join(", ")
        )
    })
}

/// Finds the branch in the text of [`describe_waiting`], which ends with it. `None` if the text is another one.
pub fn find_waiting_branch(detail: &str) -> Option<&str> {
    let (_, branch) = detail.strip_suffix('`')?.rsplit_once(": take it with `git merge ")?;
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
    (!branch.starts_with('-') && branch.chars().all(is_plain)).then_some(branch)
}

/// Work that conflicts with its branch.
#[derive(Clone, Copy, Debug)]
pub struct BranchConflict<'a> {
    pub branch_name: &'a str,
    /// The last commit of the work.
    pub commit: &'a CommitId,
    pub conflict: &'a RebaseConflict,
}

impl BranchConflict<'_> {
    /// Lists the conflicts with the texts of both sides, one in each line, and says where the work is.
    pub fn describe_sides(&self) -> String {
        let show_text = |text: &str| if text.is_empty() { String::from("nothing") } else { format!("{text:?}") };
        let mut described: String = self
            .conflict
            .sides
            .iter()
            .map(|ConflictSides { file, line, on_branch, in_work }| {
                let (on_branch, in_work) = (show_text(on_branch), show_text(in_work));
                format!("\n{file}:{line}: {} has {on_branch}, and the work has {in_work}.", self.branch_name)
            })
            .collect();
        if !self.conflict.directory.is_empty() {
            described.push_str(&format!("\nThe work is in {}.", self.conflict.directory));
        }
        described
    }

    /// Says what is wrong in one sentence, with what is missing of a solution by hand.
    pub fn summarize(&self, run_word: &str, is_asked_again: bool) -> String {
        let BranchConflict { branch_name, commit, conflict } = *self;
        let commit = commit.short_hex();
        let paths = conflict.paths.join(", ");
        let still_conflicts =
            format!("{branch_name} has moved, and the work of the {run_word} conflicts with it in {paths}");
        match &conflict.found {
            Some(FoundSolution::WorkDropped { base }) => format!(
                "{branch_name} has the work of the {run_word} in its history, but none of its changes of {paths}: take them with \
                 `git cherry-pick {}..{commit}` in a checkout of {branch_name}, resolve the conflict and `git commit`",
                base.short_hex()
            ),
            Some(FoundSolution::BranchDropped { before }) => format!(
                "{branch_name} has the work of the {run_word}, but its own changes of {paths} are gone: go back with `git reset --keep \
                 {}` in a checkout of {branch_name}, and merge once more with `git merge {commit}`",
                before.short_hex()
            ),
            Some(FoundSolution::MarksLeft) => format!(
                "{branch_name} has the work of the {run_word}, but marks of the conflict (`<<<<<<<`) are left in {paths}: resolve it \
                 there, and `git commit`"
            ),
            Some(FoundSolution::Incomplete { reasons }) => format!(
                "your merge does not have all of the work: {}; repair that with a commit on {branch_name}",
                reasons.join("; ")
            ),
            Some(FoundSolution::Missing { has_moved: true }) => format!(
                "{still_conflicts}; commit {commit} is not in its history: if {branch_name} has the work in another form, for instance \
                 after a squashed merge, say so with `git merge -s ours {commit}` in a checkout of {branch_name}"
            ),
            // A process that was killed may have found the first conflict before.
            Some(FoundSolution::Missing { has_moved: false }) if is_asked_again => {
                format!("{still_conflicts}; nothing was committed on {branch_name} since you were asked")
            }
            Some(FoundSolution::Missing { has_moved: false }) | None => still_conflicts,
        }
    }

    /// Says how the user can solve it by hand.
    pub fn describe_solution(&self) -> String {
        let BranchConflict { branch_name, commit, conflict } = *self;
        match conflict.found {
            Some(
                FoundSolution::WorkDropped { .. }
                | FoundSolution::BranchDropped { .. }
                | FoundSolution::MarksLeft
                | FoundSolution::Incomplete { .. },
            ) => String::from("repair the merge by hand, as the question says; then answer this"),
            _ => format!(
                "solve it by hand: in a checkout of {branch_name} run `git merge {}`, resolve the conflict and `git commit`; then \
                 answer this",
                commit.short_hex()
            ),
        }
    }
}
