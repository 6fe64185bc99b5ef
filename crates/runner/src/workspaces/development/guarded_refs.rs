//! HEAD, branches, tags, stashes and the index of a checkout, kept as they were while something works there.
//!
//! What an agent has switched, moved, deleted or dropped goes back, each ref only from where it was seen, and what was there is kept under
//! `refs/tribunal/parked`. A commit that is not the agent's is never taken away: a branch that has one stays, and what has appeared on the
//! branch of the work is recorded, so that the user is asked before the work lands on top of it.
//!
//! What is to be put back is written down first, so that a process that is killed in between is continued. A process that was killed
//! while the agent worked leaves what the refs were: what the user did since then cannot be told from what the agent did, so nothing is
//! moved then, and the run says what differs and how it is put back.

use std::{fs, path::PathBuf};

use serde::{Deserialize, Serialize};
use tribunal_engine::{
    ids::{CommitId, RunId},
    text::shell_quote,
};
use tribunal_workflows::development::parking::name_files;

use super::{
    WithPath, WorkspaceError,
    agent_commits::agent_committer,
    checkout_refs::{CheckoutRefs, is_object_id, read_line},
    during_work::{CommitDuringWork, add_commits_during_work},
    file_component,
    new_commits::NewCommits,
    ref_moves::{
        RefMove, advise_store, advise_update, has_stash, head_target, move_ref_back, move_refs_back, short_id,
        show_head,
    },
    staged_entries::{IndexRepair, SavedIndex},
    stash_repair::StashRepair,
    user_repository::UserRepository,
};
use crate::{
    git::plain_files::read_regular_file,
    kill_points,
    project::atomic_files::{write_atomically, write_privately},
};

/// The file with what the refs were, in the directory of the workspace.
const TURN_FILE: &str = "turn.json";
const MAX_TURN_BYTES: u64 = 64 << 20;
/// So many refs are put back at once.
const MANY_REFS: usize = 20;

/// What is kept while something works in a checkout.
#[derive(Debug)]
pub(super) struct GuardedRefs {
    place: GuardedPlace,
    /// As it was opened at first: an agent may leave it in a state that git does not open.
    repository: UserRepository,
    before: CheckoutRefs,
    index: SavedIndex,
    /// What is said about a turn that an earlier process did not end.
    earlier_remarks: Vec<String>,
}

/// Which checkout is guarded, and for what.
#[derive(Clone, Debug)]
pub(crate) struct GuardedPlace {
    pub run_id: RunId,
    /// The branch on which the work is to land; empty if there is none.
    pub own_branch: String,
    /// A directory that agents cannot write, if there is one. Without it a turn leaves no record.
    pub record_dir: Option<PathBuf>,
    /// Where files are written for git.
    pub scratch_dir: PathBuf,
}

/// The record of a turn.
#[derive(Debug, Serialize, Deserialize)]
struct TurnRecord {
    before: CheckoutRefs,
    /// What is to be put back, once that is known.
    repairs: Option<RefRepairs>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct RefRepairs {
    /// HEAD comes first: a branch that is checked out cannot be taken for another one then.
    head: Option<RefMove>,
    refs: Vec<RefMove>,
    stashes: Option<StashRepair>,
    /// Commits that are kept.
    parked: Vec<String>,
}

/// What is to be done, and what is said about it.
#[derive(Default)]
struct RepairPlan {
    repairs: RefRepairs,
    remarks: Vec<String>,
    appeared: Vec<CommitDuringWork>,
    /// Whether the branch of the work keeps commits that are not the agent's.
    keeps_own_branch: bool,
}

impl GuardedRefs {
    /// Reads what is to be kept, and records it.
    pub fn begin_turn(place: GuardedPlace, repository: UserRepository) -> Result<GuardedRefs, WorkspaceError> {
        // What is to be said about an interrupted turn is said once, so it waits until the run can go on. A plan may put HEAD back itself.
        if place.read_record().is_none_or(|record| record.repairs.is_none()) {
            place.require_own_branch(&CheckoutRefs::read_from(&repository)?)?;
        }
        let earlier_remarks = place.finish_interrupted_turn(&repository)?;
        let before = CheckoutRefs::read_from(&repository)?;
        place.require_own_branch(&before)?;
        place.write_record(&TurnRecord { before: before.clone(), repairs: None })?;
        let index = SavedIndex::read_from(&repository, place.scratch_dir.join("tribunal-saved-index"));
        Ok(GuardedRefs { place, repository, before, index, earlier_remarks })
    }

    /// Puts back what differs now. Returns what the user should know.
    pub fn put_back(self) -> Vec<String> {
        let mut remarks = self.earlier_remarks.clone();
        match self.try_put_back() {
            Ok(found) => remarks.extend(found),
            Err(cause) => remarks.push(format!("branches, HEAD and stashes could not be compared: {cause}")),
        }
        remarks
    }

    fn try_put_back(&self) -> Result<Vec<String>, WorkspaceError> {
        let repository = &self.repository;
        let broken_head = self.restore_broken_head()?;
        let current = CheckoutRefs::read_from(repository)?;
        let plan = self.place.plan_repairs(repository, &self.before, &current)?;
        let mut remarks: Vec<String> = broken_head.into_iter().chain(plan.remarks).collect();
        self.place.record_appeared(&plan.appeared)?;
        if plan.repairs != RefRepairs::default() {
            self.place
                .write_record(&TurnRecord { before: self.before.clone(), repairs: Some(plan.repairs.clone()) })?;
            kill_points::kill_if_requested("ref-repairs", "planned");
            remarks.extend(self.place.apply_repairs(repository, &plan.repairs)?);
        }
        // Where the user has committed, the index goes with that.
        if !plan.keeps_own_branch {
            remarks.extend(self.put_index_back(repository)?);
        }
        self.place.remove_record()?;
        Ok(remarks)
    }

    /// Git takes a directory for no repository at all if its HEAD is neither a ref nor a commit.
    fn restore_broken_head(&self) -> Result<Option<String>, WorkspaceError> {
        let head_file = self.repository.layout.git_dir.join("HEAD");
        let head = read_line(&head_file).unwrap_or_default();
        if self.before.head.is_empty() || head.starts_with("ref: refs/") || is_object_id(&head) {
            return Ok(None);
        }
        let head_text = format!("{}\n", self.before.head);
        write_atomically(&head_file, head_text.as_bytes()).at_path(&head_file)?;
        Ok(Some("HEAD was made unreadable while the agent worked, and put back".to_string()))
    }

    fn put_index_back(&self, repository: &UserRepository) -> Result<Vec<String>, WorkspaceError> {
        let IndexRepair { changed_tree, overlooked } = self.index.put_back(repository)?;
        let mut remarks = Vec::new();
        if let Some(tree) = changed_tree {
            let message = "What was staged while an agent worked";
            let commit = repository.query_text(["commit-tree", "-m", message, "-p", "HEAD", &tree])?;
            let parked_ref = self.place.park_commit(repository, &commit)?;
            remarks.push(format!(
                "what was staged while the agent worked is not staged any more; it is kept as {parked_ref}"
            ));
        }
        if !overlooked.is_empty() {
            let (shown, more) = (overlooked.iter().take(3).cloned().collect::<Vec<_>>(), overlooked.len() > 3);
            remarks.push(format!(
                "git was told to overlook changes of {}{} while the agent worked; it looks at them again",
                shown.join(", "),
                if more { " and more" } else { "" }
            ));
        }
        Ok(remarks)
    }
}

impl GuardedPlace {
    /// Continues what a killed process was about to put back. If it was killed earlier, says what is not as it was.
    fn finish_interrupted_turn(&self, repository: &UserRepository) -> Result<Vec<String>, WorkspaceError> {
        let Some(record) = self.read_record() else { return Ok(Vec::new()) };
        let remarks = match &record.repairs {
            Some(repairs) => self.apply_repairs(repository, repairs)?,
            None => self.describe_interrupted_turn(repository, &record.before)?,
        };
        self.remove_record()?;
        Ok(remarks)
    }

    /// Keeps what is gone, and says how it comes back. New commits on the branch of the work are recorded as in every turn.
    fn describe_interrupted_turn(
        &self,
        repository: &UserRepository,
        before: &CheckoutRefs,
    ) -> Result<Vec<String>, WorkspaceError> {
        let current = CheckoutRefs::read_from(repository)?;
        let plan = self.plan_repairs(repository, before, &current)?;
        self.record_appeared(&plan.appeared)?;
        let mut advice = Vec::new();
        if let Some(head_ref) = plan.repairs.head.and_then(|moved| moved.wanted).and_then(|head| head_target(&head)) {
            advice.push(format!("HEAD was at {head_ref}: `git symbolic-ref HEAD {}`", shell_quote(&head_ref)));
        }
        for RefMove { name, wanted, .. } in plan.repairs.refs {
            let Some(wanted) = wanted.filter(|wanted| is_object_id(wanted)) else { continue };
            let _ = self.park_commit(repository, &wanted);
            advice.push(format!("{name} was at {}: `{}`", short_id(&wanted), advise_update(&name, &wanted)));
        }
        // The oldest comes first, so that they are in their order in the end.
        let gone = before.stashes.iter().rev().filter(|entry| !current.stashes.contains(entry));
        for entry in gone.filter(|entry| has_stash(repository, entry)) {
            let _ = self.park_commit(repository, &entry.commit);
            advice.push(format!("a stash is gone: `{}`", advise_store(entry)));
        }
        if advice.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![format!(
            "Tribunal was killed while an agent worked in your checkout, and since then something has moved; if that was not you, put it \
             back: {}",
            advice.join("; ")
        )])
    }

    /// Compares the refs and says what has to go back.
    fn plan_repairs(
        &self,
        repository: &UserRepository,
        before: &CheckoutRefs,
        current: &CheckoutRefs,
    ) -> Result<RepairPlan, WorkspaceError> {
        let mut plan = RepairPlan::default();
        let new_commits = NewCommits::new(repository, before, agent_committer(&self.run_id));
        if before.head != current.head && !before.head.is_empty() {
            let wanted = Some(before.head.clone());
            let seen = Some(current.head.clone()).filter(|head| !head.is_empty());
            let (old, new) = (show_head(&before.head), show_head(&current.head));
            // A detached HEAD may be all that keeps its commits.
            if is_object_id(&current.head) && !new_commits.list_commits(&current.head)?.is_empty() {
                plan.repairs.parked.push(current.head.clone());
            }
            let said = format!("HEAD was switched from {old} to {new} while the agent worked");
            plan.repairs.head = Some(RefMove { name: "HEAD".into(), seen, wanted, said, kept: String::new() });
        }
        let names = before.refs.keys().chain(current.refs.keys().filter(|name| !before.refs.contains_key(*name)));
        let is_moved = |name: &&String| before.refs.get(*name) != current.refs.get(*name);
        for name in names.filter(is_moved) {
            let (wanted, seen) = (before.refs.get(name), current.refs.get(name));
            self.plan_ref(&new_commits, &RefPlace { name, seen, wanted }, &mut plan)?;
        }
        self.remove_what_is_in_the_way(current, &mut plan);
        // What goes makes room: a branch cannot be where there is a directory of others.
        plan.repairs.refs.sort_by_key(|moved| moved.wanted.is_some());
        let is_agents = |commit: &str| new_commits.is_agents(commit);
        if let Some(repair) = StashRepair::plan_repair(&before.stashes, &current.stashes, &is_agents) {
            plan.remarks.extend(repair.describe());
            plan.repairs.parked.extend(repair.list_removed());
            plan.repairs.stashes = Some(repair);
        }
        Ok(plan)
    }

    fn plan_ref(
        &self,
        new_commits: &NewCommits<'_>,
        moved: &RefPlace<'_>,
        plan: &mut RepairPlan,
    ) -> Result<(), WorkspaceError> {
        let RefPlace { name, seen, wanted } = *moved;
        let is_own = *name == self.own_branch;
        if name.starts_with("refs/tribunal/") {
            // Other runs move these refs as well, so that only what is gone is certain. What a run does not need any more is not missed.
            if let (None, Some(wanted)) = (seen, wanted) {
                let said = format!("{name} was deleted while the agent worked");
                let (name, wanted) = (name.clone(), Some(wanted.clone()));
                plan.repairs.refs.push(RefMove { name, seen: None, wanted, said, kept: String::new() });
            }
            return Ok(());
        }
        let new = match seen {
            Some(seen) if is_object_id(seen) => new_commits.list_commits(seen)?,
            _ => Vec::new(),
        };
        // A replacement changes what git shows of everything, so no commit makes it the user's.
        let is_replacement = name.starts_with("refs/replace/");
        let has_foreign = !is_replacement && new.iter().any(|commit| !commit.is_agents);
        if has_foreign {
            if is_own {
                plan.keeps_own_branch = true;
                // The last ones of the agent are taken back.
                let before = wanted.map(|wanted| CommitId::new(wanted.as_str()));
                let others = new.into_iter().skip_while(|commit| commit.is_agents);
                plan.appeared = others.map(|commit| CommitDuringWork { before: before.clone(), ..commit }).collect();
            } else if let Some(wanted) = wanted {
                let mut said = format!("{name} was moved while the agent worked");
                // What it was may be in no other ref.
                if !new_commits.has_moved_on(seen, Some(wanted))? && is_object_id(wanted) {
                    plan.repairs.parked.push(wanted.clone());
                    said =
                        format!("{said}; it was at {}, which is kept as {}", short_id(wanted), self.parked_ref(wanted));
                }
                plan.remarks.push(said);
            } else {
                plan.remarks.push(format!("{name} was made while the agent worked"));
            }
            return Ok(());
        }
        // A new branch or tag that leads to nothing new may be the user's, and does no harm. A replacement changes what git shows.
        let leads_nowhere = seen.is_some_and(|seen| is_object_id(seen) && !new_commits.has_object(seen));
        if wanted.is_none() && new.is_empty() && !is_replacement && !leads_nowhere {
            plan.remarks.push(format!("{name} was made while the agent worked"));
            return Ok(());
        }
        let kept = match seen {
            Some(seen) if !new.is_empty() || wanted.is_none() => {
                plan.repairs.parked.push(seen.clone());
                format!(" (what was there is {})", self.parked_ref(seen))
            }
            _ => String::new(),
        };
        // Commits on top of the branch are described by those who take them back, as the work that they are. They take no merges.
        let is_extended =
            is_own && !new.iter().any(|commit| commit.is_merge) && new_commits.has_moved_on(seen, wanted)?;
        if !is_extended {
            let what = match (seen, wanted) {
                (None, _) => "deleted",
                (_, None) => "made",
                _ => "moved",
            };
            let said = format!("{name} was {what} while the agent worked");
            let (seen, wanted) = (seen.cloned(), wanted.cloned());
            plan.repairs.refs.push(RefMove { name: name.clone(), seen, wanted, said, kept });
        }
        Ok(())
    }

    /// Has new branches go that are where another one was: of `a` and `a/b` only one can be.
    fn remove_what_is_in_the_way(&self, current: &CheckoutRefs, plan: &mut RepairPlan) {
        let wanted_names: Vec<String> =
            plan.repairs.refs.iter().filter(|moved| moved.seen.is_none()).map(|moved| moved.name.clone()).collect();
        let is_in_the_way = |name: &str| {
            let is_above =
                |above: &str, below: &str| below.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
            wanted_names.iter().any(|wanted| is_above(name, wanted) || is_above(wanted, name))
        };
        let planned: Vec<String> = plan.repairs.refs.iter().map(|moved| moved.name.clone()).collect();
        for (name, seen) in current.refs.iter().filter(|(name, _)| is_in_the_way(name) && !planned.contains(name)) {
            let said = format!("{name} was made while the agent worked, where another one was");
            plan.repairs.parked.push(seen.clone());
            let kept = format!(" (what was there is {})", self.parked_ref(seen));
            plan.repairs.refs.push(RefMove { name: name.clone(), seen: Some(seen.clone()), wanted: None, said, kept });
        }
    }

    /// Puts everything back, each from where it was seen. Returns what the user should know.
    fn apply_repairs(&self, repository: &UserRepository, repairs: &RefRepairs) -> Result<Vec<String>, WorkspaceError> {
        let mut remarks = Vec::new();
        for commit in &repairs.parked {
            // What an agent has written into a ref may be no object at all.
            let _ = self.park_commit(repository, commit);
        }
        // Each on its own would read all refs once more. What does not work at once is tried one by one.
        let are_moved = repairs.refs.len() >= MANY_REFS && move_refs_back(repository, &repairs.refs).is_ok();
        if are_moved {
            let names: Vec<String> = repairs.refs.iter().map(|moved| moved.name.clone()).collect();
            let kept = match repairs.refs.iter().any(|moved| !moved.kept.is_empty()) {
                true => format!(" (what was there is below {})", parked_ref_prefix(&self.run_id).trim_end_matches('/')),
                false => String::new(),
            };
            remarks.push(format!("{} were changed while the agent worked, and put back{kept}", name_files(&names)));
        }
        let single_moves = if are_moved { &[][..] } else { &repairs.refs };
        for moved in repairs.head.iter().chain(single_moves) {
            let RefMove { name, wanted, said, kept, .. } = moved;
            remarks.push(match (move_ref_back(repository, moved), wanted) {
                (Ok(()), Some(_)) => format!("{said}, and put back{kept}"),
                (Ok(()), None) => format!("{said}, and removed{kept}"),
                (Err(cause), Some(wanted)) if is_object_id(wanted) => {
                    let _ = self.park_commit(repository, wanted);
                    let command = advise_update(name, wanted);
                    format!(
                        "{said}, and could not be put back: {cause}; when that is out of the way, `{command}` does it"
                    )
                }
                (Err(cause), _) => format!("{said}, and could not be put back: {cause}"),
            });
        }
        kill_points::kill_if_requested("ref-repairs", "between");
        for entry in repairs
            .stashes
            .iter()
            .map(|stashes| stashes.put_back_stashes(repository))
            .collect::<Result<Vec<_>, _>>()?
            .concat()
        {
            remarks.push(match has_stash(repository, &entry) {
                true => {
                    let _ = self.park_commit(repository, &entry.commit);
                    let command = advise_store(&entry);
                    format!("a stash could not be put back; when nothing is in the way of that any more, `{command}` does it")
                }
                false => format!(
                    "the stash {} could not be put back: git does not have it any more",
                    short_id(&entry.commit)
                ),
            });
        }
        Ok(remarks)
    }

    /// Refuses to let an agent work where another branch is checked out: what it commits there would be on that one.
    fn require_own_branch(&self, before: &CheckoutRefs) -> Result<(), WorkspaceError> {
        let is_own = head_target(&before.head).is_some_and(|head_ref| head_ref == self.own_branch);
        if self.own_branch.is_empty() || before.head.is_empty() || is_own {
            return Ok(());
        }
        let (branch, head) = (self.own_branch.trim_start_matches("refs/heads/"), show_head(&before.head));
        let command = format!("git symbolic-ref HEAD {}", shell_quote(&self.own_branch));
        Err(WorkspaceError::new_not_ready(format!(
            "HEAD is at {head}, and not on {branch}; put it back with `{command}`, which leaves your files as they are, then resume"
        )))
    }

    fn parked_ref(&self, commit: &str) -> String {
        format!("{}{}", parked_ref_prefix(&self.run_id), short_id(commit))
    }

    /// Keeps an object under a ref of ours. Returns the ref.
    fn park_commit(&self, repository: &UserRepository, commit: &str) -> Result<String, WorkspaceError> {
        let parked_ref = self.parked_ref(commit);
        let store = || repository.query(["update-ref", "--no-deref", "-m", "tribunal", &parked_ref, commit]);
        if store().is_err() {
            // A ref where the directory has to be is not ours.
            for above in
                ["refs/tribunal", "refs/tribunal/parked", parked_ref_prefix(&self.run_id).trim_end_matches('/')]
            {
                let _ = repository.query(["update-ref", "--no-deref", "-d", above]);
            }
            store()?;
        }
        Ok(parked_ref)
    }

    fn record_appeared(&self, appeared: &[CommitDuringWork]) -> Result<(), WorkspaceError> {
        match &self.record_dir {
            Some(record_dir) if !appeared.is_empty() => add_commits_during_work(record_dir, appeared),
            _ => Ok(()),
        }
    }

    fn turn_file(&self) -> Option<PathBuf> {
        Some(self.record_dir.as_ref()?.join(TURN_FILE))
    }

    fn read_record(&self) -> Option<TurnRecord> {
        serde_json::from_slice(&read_regular_file(&self.turn_file()?, MAX_TURN_BYTES).ok()?).ok()
    }

    fn write_record(&self, record: &TurnRecord) -> Result<(), WorkspaceError> {
        let Some(turn_file) = self.turn_file() else { return Ok(()) };
        let record_text = serde_json::to_vec(record).map_err(std::io::Error::other).at_path(&turn_file)?;
        write_privately(&turn_file, &record_text).at_path(&turn_file)
    }

    fn remove_record(&self) -> Result<(), WorkspaceError> {
        let Some(turn_file) = self.turn_file() else { return Ok(()) };
        fs::remove_file(&turn_file).at_path(&turn_file)
    }
}

/// Returns the beginning of the refs that keep what was put aside for a run.
pub(super) fn parked_ref_prefix(run_id: &RunId) -> String {
    format!("refs/tribunal/parked/{}/", file_component(run_id.as_str()))
}

/// A ref that is not where it was.
#[derive(Clone, Copy)]
struct RefPlace<'a> {
    name: &'a String,
    seen: Option<&'a String>,
    wanted: Option<&'a String>,
}
