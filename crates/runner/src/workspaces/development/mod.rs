//! Workspaces for development: agents work in one over many turns, and it survives the end of a process.
//!
//! A workspace is a clone outside the project, or the user's checkout itself. Everything of Tribunal's own uses a git directory
//! that no agent is told about, `control.git`, with its own index. A clone also has a `tree/.git` for the agent's use. An agent
//! can write anything into that one (hooks, filters, a link to another repository), so no git process of ours ever reads it: what
//! an agent commits, stages or resets counts only as content of the tree.
//!
//! ```text
//! ROOT/PROJECT-HASH/RUN/NAME/tree            where agents work
//! ROOT/PROJECT-HASH/RUN/NAME/control.git     HEAD and index are the base, refs/heads/work and commit-index the last commit
//! ROOT/PROJECT-HASH/RUN/NAME/workspace.json  written last: a directory without it is not complete
//! ROOT/PROJECT-HASH.in-place/RUN/NAME        the same without a tree, for work in the user's checkout
//! ROOT/PROJECT-HASH/RUN/NAME-fresh           a clone of a commit, while the checks run in it
//! ```
//!
//! [`opening`] makes a workspace, [`contents`] reads its state, [`frozen_work`] and [`check_traces`] keep it as it was verified,
//! [`commits`], [`rebase`] and [`integrate`] record and land the work. [`hand_merges`] finds what users did about a conflict. [`parking`]
//! takes work out of the user's checkout and puts it back, and [`agent_commits`] takes commits of agents back from it.
//! [`user_repository`] knows the user's repository, [`control_git`] ours. Running setup commands and hooks is up to `effects`.

pub(crate) mod agent_commits;
mod base_traces;
mod branch_checkout;
mod changed_scripts;
mod check_traces;
mod checkout_refs;
pub(crate) mod commits;
mod concerns;
mod conflict_sides;
pub(crate) mod contents;
mod control_git;
mod during_work;
pub(crate) mod fresh_clone;
pub(crate) mod frozen_work;
mod git_dir_state;
mod git_listings;
mod guarded_files;
mod guarded_refs;
mod hand_merges;
mod hidden_files;
mod hook_guard;
pub(crate) mod hooks;
mod ignore_rules;
pub(crate) mod integrate;
mod merge_trees;
mod merged_edits;
mod new_commits;
pub(crate) mod opening;
mod own_git_files;
mod parking;
mod rebase;
mod ref_moves;
mod reverted_commits;
mod seeding;
mod special_files;
mod staged_entries;
mod stash_repair;
mod story_losses;
#[cfg(test)]
mod tests;
mod tree_files;
mod user_repository;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tribunal_engine::{
    fault::{Fault, FaultKind, FaultRemedy},
    ids::{CommitId, Hash, RunId},
};
use tribunal_workflows::development::workspace::DevelopmentPlace;

use super::TaskWorkspace;
use crate::{
    git::{
        GitError, WORK_TIMEOUT,
        object_reader::{ObjectKind, ObjectReader},
    },
    project::{Project, atomic_files},
};
pub(crate) use changed_scripts::add_included_scripts;
pub(crate) use check_traces::{CheckTraces, JudgedTraces, WorkSnapshot};
use contents::BrokenSeal;
use control_git::ControlGit;
pub(crate) use guarded_files::GuardedFiles;
use guarded_refs::{GuardedPlace, parked_ref_prefix};
pub(crate) use parking::move_parked_work;
pub(crate) use rebase::rebase_workspace;
use user_repository::UserRepository;

/// The file whose presence means that a workspace is complete.
const RECORD_FILE: &str = "workspace.json";

/// Why something could not be done with a workspace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{path}: {cause}")]
    Io { path: String, cause: io::Error },
    /// The user has to do something first.
    #[error("{message}")]
    Refused { message: String, command: Option<&'static str> },
    /// The same, and what the user has to do is in the checkout: the run waits for that.
    #[error("{message}")]
    CheckoutNotReady { message: String },
}

impl WorkspaceError {
    pub fn new_refusal(message: impl Into<String>) -> WorkspaceError {
        WorkspaceError::Refused { message: message.into(), command: None }
    }

    pub fn new_not_ready(message: impl Into<String>) -> WorkspaceError {
        WorkspaceError::CheckoutNotReady { message: message.into() }
    }
}

impl From<WorkspaceError> for Fault {
    fn from(error: WorkspaceError) -> Fault {
        let remedy = match &error {
            WorkspaceError::Refused { command: Some(command), .. } => {
                Some(FaultRemedy::RunCommand { command: command.to_string() })
            }
            _ => None,
        };
        let kind = match &error {
            WorkspaceError::CheckoutNotReady { .. } => FaultKind::CheckoutNotReady,
            _ => FaultKind::World,
        };
        Fault::new(kind, error.to_string()).with_remedy(remedy)
    }
}

/// Adds the path to an error of the file system.
trait WithPath<T> {
    fn at_path(self, path: &Path) -> Result<T, WorkspaceError>;
}

impl<T> WithPath<T> for io::Result<T> {
    fn at_path(self, path: &Path) -> Result<T, WorkspaceError> {
        self.map_err(|cause| WorkspaceError::Io { path: path.display().to_string(), cause })
    }
}

/// Where the workspaces of a project are.
#[derive(Clone, Debug)]
pub(crate) struct WorkspaceHome {
    pub project: Project,
    /// The directory for the clones of all projects.
    pub clones_root: PathBuf,
}

impl WorkspaceHome {
    /// Returns the directory with the clones of this project. Two projects of the same name differ in the hash of their paths.
    pub fn project_dir(&self) -> PathBuf {
        let canonical_root = self.project.root().canonicalize().unwrap_or_else(|_| self.project.root().to_path_buf());
        let project_name = canonical_root.file_name().unwrap_or_default().to_string_lossy();
        let path_hash = Hash::digest_of(canonical_root.as_os_str().as_encoded_bytes());
        let slug: String = replace_special_chars(&project_name).chars().take(40).collect();
        self.clones_root.join(format!("{slug}-{}", path_hash.short_hex()))
    }

    /// Returns the directory with what belongs to workspaces in the user's checkout. It is outside of that checkout, in which
    /// agents can write: git runs what the files in this directory say.
    pub fn in_place_dir(&self) -> PathBuf {
        self.project_dir().with_added_extension("in-place")
    }

    /// Returns the directory of a workspace of this kind, whether it exists or not.
    pub fn workspace_dir(&self, place: DevelopmentPlace, run_id: &RunId, name: &str) -> PathBuf {
        let parent_dir = match place {
            DevelopmentPlace::Clone => self.project_dir(),
            DevelopmentPlace::InPlace => self.in_place_dir(),
        };
        parent_dir.join(file_component(run_id.as_str())).join(file_component(name))
    }

    /// Finds a complete workspace.
    pub fn find_workspace(&self, run_id: &RunId, name: &str) -> Result<Option<DevelopmentWorkspace>, WorkspaceError> {
        for place in [DevelopmentPlace::Clone, DevelopmentPlace::InPlace] {
            if let Some(workspace) = DevelopmentWorkspace::load(self.workspace_dir(place, run_id, name))? {
                return Ok(Some(workspace));
            }
        }
        Ok(None)
    }

    /// Finds a workspace that must be there.
    pub fn require_workspace(&self, run_id: &RunId, name: &str) -> Result<DevelopmentWorkspace, WorkspaceError> {
        self.find_workspace(run_id, name)?
            .ok_or_else(|| WorkspaceError::new_refusal(format!("the workspace `{name}` of run {run_id} is not open")))
    }
}

/// Returns a name that is a single component of a path and of a git ref. Two different names never become the same one.
fn file_component(name: &str) -> String {
    let plain_name = replace_special_chars(name);
    if plain_name == name && !name.is_empty() && name.len() <= 100 {
        return plain_name;
    }
    let short_name: String = plain_name.chars().take(60).collect();
    format!("{short_name}-{}", Hash::digest_of(name.as_bytes()).short_hex())
}

fn replace_special_chars(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' }).collect()
}

/// Returns the ref of the user's repository that keeps the work of a workspace.
fn work_ref(run_id: &str, name: &str) -> String {
    format!("{}{}", run_ref_prefix(run_id), file_component(name))
}

fn run_ref_prefix(run_id: &str) -> String {
    format!("refs/tribunal/work/{}/", file_component(run_id))
}

/// What is known about a complete workspace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkspaceRecord {
    pub run: RunId,
    pub name: String,
    pub place: DevelopmentPlace,
    /// The root of the project, in the user's checkout.
    pub project_root: PathBuf,
    /// The directory where the files are.
    pub tree: PathBuf,
    /// The project's root below that directory, with a slash at the end; empty if it is the same.
    pub prefix: String,
    /// The branch that the agent's own repository has checked out.
    pub branch: String,
    pub base: CommitId,
    pub remarks: Vec<String>,
    /// Files whose filter only the repository's own configuration defines, as they were: that filter never runs, so git cannot
    /// tell whether they have changed.
    pub sealed_files: Vec<SealedFile>,
    /// Whether git may store something else than a file contains: other line ends, or what a filter makes of it.
    pub converts_content: bool,
    /// Paths below the tree that never count as content: Tribunal's own files.
    pub own_prefixes: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SealedFile {
    /// The name may be any bytes.
    pub path: Vec<u8>,
    pub hash: Hash,
}

/// A complete workspace.
#[derive(Clone, Debug)]
pub(crate) struct DevelopmentWorkspace {
    directory: PathBuf,
    pub record: WorkspaceRecord,
}

impl DevelopmentWorkspace {
    /// Loads a workspace. Returns `None` if there is none, or only one that was never completed.
    fn load(directory: PathBuf) -> Result<Option<DevelopmentWorkspace>, WorkspaceError> {
        let record_path = directory.join(RECORD_FILE);
        let record_text = match fs::read(&record_path) {
            Ok(record_text) => record_text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(WorkspaceError::Io { path: record_path.display().to_string(), cause }),
        };
        let record: WorkspaceRecord =
            serde_json::from_slice(&record_text).map_err(io::Error::other).at_path(&record_path)?;
        let workspace = DevelopmentWorkspace { directory, record };
        // A link in place of the tree would lead to files that are not the workspace's.
        if !fs::symlink_metadata(&workspace.record.tree).is_ok_and(|metadata| metadata.is_dir()) {
            let shown_tree = workspace.record.tree.display();
            return Err(WorkspaceError::new_refusal(format!("the workspace's directory {shown_tree} is gone")));
        }
        // A process may have ended while hooks ran, or in the middle of a rebase, or while files were on their way.
        workspace.restore_git_settings()?;
        workspace.control_git().set_head(&workspace.record.base)?;
        let workspace = rebase::finish_interrupted_rebase(workspace)?;
        parking::finish_interrupted_move(workspace).map(Some)
    }

    fn control_git(&self) -> ControlGit {
        ControlGit::new(self.directory.join("control.git"), self.record.tree.clone())
    }

    /// Whether it is the user's checkout.
    pub fn is_in_place(&self) -> bool {
        self.record.place == DevelopmentPlace::InPlace
    }

    /// The commit with which the work began.
    pub fn base_commit(&self) -> &CommitId {
        &self.record.base
    }

    /// Returns the directory in which agents and checks run: the project's root in the workspace.
    pub fn agent_dir(&self) -> PathBuf {
        // Joining an empty prefix would end the path with a slash, which users and agents see.
        if self.record.prefix.is_empty() {
            return self.record.tree.clone();
        }
        self.record.tree.join(&self.record.prefix)
    }

    /// Reads what agents, checks and hooks must not change in the user's checkout. `None` if the workspace is another one.
    pub fn read_guarded_files(&self) -> Result<Option<GuardedFiles>, WorkspaceError> {
        if self.record.place != DevelopmentPlace::InPlace {
            return Ok(None);
        }
        let record = &self.record;
        let project = Project::from_root(&record.project_root);
        let repository = UserRepository::open_around(project.root())?;
        let place = GuardedPlace {
            run_id: record.run.clone(),
            own_branch: format!("refs/heads/{}", record.branch),
            record_dir: Some(self.directory.clone()),
            scratch_dir: self.directory.clone(),
        };
        GuardedFiles::read_from(project, place, repository).map(Some)
    }

    /// Reads a file of the project as it was in the commit that the work began with; `None` if that has none.
    pub fn read_base_file(&self, project_path: &str) -> Option<Vec<u8>> {
        self.read_base_files(&[project_path]).pop().flatten()
    }

    /// Reads several files as they were in that commit.
    pub fn read_base_files(&self, project_paths: &[&str]) -> Vec<Option<Vec<u8>>> {
        let control_git = self.control_git();
        let mut objects = ObjectReader::new(|| control_git.new_command(), WORK_TIMEOUT);
        let read_file = |project_path: &&str| {
            let object_name = format!("{}:{}{project_path}", self.record.base, self.record.prefix);
            objects.read(ObjectKind::Blob, &object_name, u64::MAX).ok().flatten()
        };
        project_paths.iter().map(read_file).collect()
    }

    /// Returns a file that was written when the workspace was made, and never since.
    pub fn creation_mark(&self) -> PathBuf {
        self.directory.join("control.git/config")
    }

    fn save_record(&self) -> Result<(), WorkspaceError> {
        let record_path = self.directory.join(RECORD_FILE);
        let record_text = serde_json::to_vec_pretty(&self.record).map_err(io::Error::other).at_path(&record_path)?;
        atomic_files::write_privately(&record_path, &record_text).at_path(&record_path)
    }

    fn work_ref(&self) -> String {
        work_ref(self.record.run.as_str(), &self.record.name)
    }

    /// Returns the path of a file that belongs to the workspace, relative to the project's root.
    fn shown_path(&self, tree_path: &[u8]) -> String {
        let tree_path = String::from_utf8_lossy(tree_path);
        if let Some(project_path) = tree_path.strip_prefix(&self.record.prefix) {
            return project_path.to_string();
        }
        "../".repeat(self.record.prefix.matches('/').count()) + &tree_path
    }
}

/// Reads what checks must not change in the user's checkout, if they run there without a workspace.
pub(crate) fn read_guarded_checkout(project: &Project, run_id: &RunId) -> Result<GuardedFiles, WorkspaceError> {
    let repository = UserRepository::open_around(project.root())?;
    let place = GuardedPlace {
        run_id: run_id.clone(),
        own_branch: String::new(),
        record_dir: None,
        scratch_dir: repository.layout.git_dir.clone(),
    };
    GuardedFiles::read_from(project.clone(), place, repository)
}

/// Removes a workspace's directory, even if an agent changed permissions in it. Nothing happens if there is none.
pub(crate) fn remove_workspace_dir(directory: &Path) -> Result<(), WorkspaceError> {
    // Without its record it counts as incomplete, so a removal that is interrupted is continued later.
    match fs::remove_file(directory.join(RECORD_FILE)) {
        Err(cause) if !matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(WorkspaceError::Io { path: directory.display().to_string(), cause });
        }
        _ => {}
    }
    TaskWorkspace::from_directory(directory.to_path_buf()).remove().at_path(directory)?;
    // The directory of the run goes with its last workspace; the call fails as long as there is another one.
    let _ = directory.parent().map(fs::remove_dir);
    Ok(())
}

/// Removes a workspace, and the ref with its work unless only that ref has it. Nothing happens if there is none.
pub(crate) fn close_workspace(home: &WorkspaceHome, run_id: &RunId, name: &str) -> Result<(), WorkspaceError> {
    let (mut base, mut branch) = (None, None);
    for place in [DevelopmentPlace::Clone, DevelopmentPlace::InPlace] {
        let directory = home.workspace_dir(place, run_id, name);
        // A workspace that is damaged is removed all the same.
        if let Some(record) = read_workspace_record(&directory).filter(|_| base.is_none()) {
            (base, branch) = (Some(record.base), Some(record.branch));
        }
        remove_workspace_dir(&directory)?;
    }
    // Without a repository there are no refs either.
    let Ok(repository) = UserRepository::open_around(home.project.root()) else { return Ok(()) };
    let work_ref = work_ref(run_id.as_str(), name);
    match repository.find_commit(&work_ref)? {
        Some(commit) if Some(&commit) == base.as_ref() || is_on_branch(&repository, branch.as_deref(), &commit)? => {
            repository.delete_own_ref(&work_ref)
        }
        _ => Ok(()),
    }
}

/// Returns what is recorded about a workspace, if it is complete.
pub(crate) fn read_workspace_record(directory: &Path) -> Option<WorkspaceRecord> {
    serde_json::from_slice(&fs::read(directory.join(RECORD_FILE)).ok()?).ok()
}

/// Deletes the refs with the work of runs, whether or not a branch has it.
pub(crate) fn delete_run_refs(project_root: &Path, run_ids: &[RunId]) -> Result<(), WorkspaceError> {
    // Most projects are looked at without any such run; git need not be started for that.
    if run_ids.is_empty() {
        return Ok(());
    }
    let Ok(repository) = UserRepository::open_around(project_root) else { return Ok(()) };
    let refs =
        repository.query_text(["for-each-ref", "--format=%(refname)", "refs/tribunal/work", "refs/tribunal/parked"])?;
    let prefixes: Vec<String> =
        run_ids.iter().flat_map(|run_id| [run_ref_prefix(run_id.as_str()), parked_ref_prefix(run_id)]).collect();
    for ref_name in refs.lines().filter(|ref_name| prefixes.iter().any(|prefix| ref_name.starts_with(prefix))) {
        repository.delete_own_ref(ref_name)?;
    }
    Ok(())
}

/// Lists the refs with agents' work in the user's repository, by run.
pub(crate) fn list_work_refs(project_root: &Path) -> BTreeMap<RunId, Vec<String>> {
    let mut refs_of_runs: BTreeMap<RunId, Vec<String>> = BTreeMap::new();
    let Ok(repository) = UserRepository::open_around(project_root) else { return refs_of_runs };
    let refs = repository.query_text(["for-each-ref", "--format=%(refname)", "refs/tribunal/work"]).unwrap_or_default();
    for ref_name in refs.lines() {
        let run_name = ref_name.strip_prefix("refs/tribunal/work/").and_then(|path| path.split('/').next());
        refs_of_runs.entry(RunId::new(run_name.unwrap_or_default())).or_default().push(ref_name.to_string());
    }
    refs_of_runs
}

/// Writes the work of a run that no branch of the user's has to a file that git can fetch from. Returns whether there is any.
pub(crate) fn export_work_refs(project_root: &Path, run_id: &RunId, bundle_path: &Path) -> io::Result<bool> {
    let repository = UserRepository::open_around(project_root).map_err(io::Error::other)?;
    let run_refs = format!("--glob={}*", run_ref_prefix(run_id.as_str()));
    let new_commits = repository
        .query_text(["rev-list", "--max-count=1", &run_refs, "--not", "--branches"])
        .map_err(io::Error::other)?;
    if new_commits.is_empty() {
        return Ok(false);
    }
    let bundle_text = bundle_path.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
    let bundle_arguments = ["bundle", "create", "--quiet", bundle_text, &run_refs, "--not", "--branches"];
    repository.query_text(bundle_arguments).map(|_| true).map_err(io::Error::other)
}

/// Whether any branch of the user's has a commit.
fn is_on_branch(
    repository: &UserRepository,
    likely_branch: Option<&str>,
    commit: &CommitId,
) -> Result<bool, WorkspaceError> {
    // The work has usually just landed.
    if let Some(branch_name) = likely_branch
        && repository.find_commit(&format!("refs/heads/{branch_name}"))?.as_ref() == Some(commit)
    {
        return Ok(true);
    }
    let contains = format!("--contains={commit}");
    repository
        .query_text(["for-each-ref", "--count=1", "--format=%(refname)", &contains, "refs/heads", "refs/remotes"])
        .map(|refs| !refs.is_empty())
}

/// Creates a directory that only the user may enter.
fn create_private_dir(directory: &Path) -> Result<(), WorkspaceError> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).at_path(directory)
}
