//! Makes workspaces, and finds those that an earlier process made.

use std::fs;

use tribunal_engine::ids::{CommitId, RunId};
use tribunal_workflows::development::workspace::{DevelopmentPlace, OpenWorkspace, TargetBranch};

pub(crate) use super::seeding::SeedRequest;
use super::{
    DevelopmentWorkspace, WorkspaceError, WorkspaceHome, WorkspaceRecord, create_private_dir,
    own_git_files::{create_control_git, exclude_paths, replace_agent_git},
    remove_workspace_dir,
    seeding::{SeedTarget, copy_seeds},
    special_files::{copy_submodules, may_convert_content, parse_index, write_filtered_files},
    user_repository::{CommitRole, UserRepository, add_settings},
    work_ref,
};
use crate::git::{layout::HeadState, run_checked};

/// The most files that a message lists.
const MAX_SHOWN_FILES: usize = 10;

/// What is needed to make a workspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRequest<'a> {
    pub run_id: &'a RunId,
    pub open: &'a OpenWorkspace,
    pub seeds: SeedRequest<'a>,
    /// Directories and files that Tribunal writes, relative to the project's root. A directory ends with a slash; in the name of a file,
    /// a `*` stands for any text.
    pub own_files: &'a [String],
}

/// A workspace that lacks only its setup. It counts as incomplete until [`UnfinishedWorkspace::mark_complete`].
#[derive(Debug)]
pub(crate) struct UnfinishedWorkspace {
    workspace: DevelopmentWorkspace,
}

impl UnfinishedWorkspace {
    pub fn as_workspace(&self) -> &DevelopmentWorkspace {
        &self.workspace
    }

    /// Records the workspace as complete.
    pub fn mark_complete(self) -> Result<DevelopmentWorkspace, WorkspaceError> {
        self.workspace.save_record()?;
        Ok(self.workspace)
    }

    /// Removes the workspace.
    pub fn remove_directory(self) -> Result<(), WorkspaceError> {
        remove_workspace_dir(&self.workspace.directory)
    }
}

/// Makes a workspace. What an earlier process left incomplete is removed first.
pub(crate) fn create_workspace(
    home: &WorkspaceHome,
    request: OpenRequest<'_>,
) -> Result<UnfinishedWorkspace, WorkspaceError> {
    let repository = UserRepository::open_around(home.project.root())?;
    let OpenRequest { run_id, open, .. } = request;
    let base = find_base(&repository, &open.branch)?;
    let prefix = repository.project_prefix()?;
    let directory = home.workspace_dir(open.place, run_id, &open.workspace);
    let tree = match open.place {
        DevelopmentPlace::Clone => directory.join("tree"),
        DevelopmentPlace::InPlace => repository.layout.work_tree_top.clone(),
    };
    let own_files = request.own_files.iter().map(|own_file| format!("{prefix}{own_file}"));
    let record = WorkspaceRecord {
        run: run_id.clone(),
        name: open.workspace.clone(),
        place: open.place,
        project_root: home.project.root().to_path_buf(),
        tree,
        branch: open.branch.name.clone(),
        base,
        remarks: Vec::new(),
        sealed_files: Vec::new(),
        converts_content: true,
        own_prefixes: own_files.chain([format!("{prefix}.tribunal/")]).collect(),
        prefix,
    };
    if open.place == DevelopmentPlace::InPlace {
        require_clean_checkout(&repository, &record)?;
    }
    remove_workspace_dir(&directory)?;
    create_private_dir(&directory)?;
    let mut workspace = DevelopmentWorkspace { directory, record };
    let filled = match open.place {
        DevelopmentPlace::Clone => fill_clone(&repository, &mut workspace, request.seeds),
        DevelopmentPlace::InPlace => prepare_in_place(&repository, &mut workspace),
    };
    let unfinished = UnfinishedWorkspace { workspace };
    if let Err(cause) = filled {
        // The cause counts, not whether the rest could be removed; the next attempt removes it anyway.
        let _ = unfinished.remove_directory();
        return Err(cause);
    }
    // The ref keeps the objects that the workspace borrows, also if the user moves or deletes the branch meanwhile.
    let record = &unfinished.workspace.record;
    repository.set_own_ref(&work_ref(record.run.as_str(), &record.name), &record.base)?;
    Ok(unfinished)
}

/// Returns the commit that the work begins with.
fn find_base(repository: &UserRepository, branch: &TargetBranch) -> Result<CommitId, WorkspaceError> {
    if let Some(tip) = repository.find_commit(&format!("refs/heads/{}", branch.name))? {
        return Ok(tip);
    }
    let Some(created_at) = &branch.created_at else {
        return Err(WorkspaceError::new_refusal(format!("there is no branch `{}`", branch.name)));
    };
    repository
        .find_commit(created_at.as_str())?
        .ok_or_else(|| WorkspaceError::new_refusal(format!("there is no commit {}", created_at.short_hex())))
}

/// Refuses to work in a checkout of something else, or in one with uncommitted files.
fn require_clean_checkout(repository: &UserRepository, record: &WorkspaceRecord) -> Result<(), WorkspaceError> {
    require_branch(repository, record)?;
    let dirty_paths = list_uncommitted(repository, record)?;
    if dirty_paths.is_empty() {
        return Ok(());
    }
    let shown_paths = dirty_paths.iter().take(MAX_SHOWN_FILES).cloned().collect::<Vec<_>>().join(", ");
    let more = match dirty_paths.len().saturating_sub(MAX_SHOWN_FILES) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Err(WorkspaceError::new_not_ready(format!(
        "your checkout has uncommitted changes ({shown_paths}{more}); commit them, or put them aside with `git stash -u`, then resume"
    )))
}

/// Refuses to work in a checkout of something else than the branch.
pub(super) fn require_branch(repository: &UserRepository, record: &WorkspaceRecord) -> Result<(), WorkspaceError> {
    let wanted_ref = format!("refs/heads/{}", record.branch);
    match &repository.layout.head {
        HeadState::Branch { ref_name, .. } if *ref_name == wanted_ref => Ok(()),
        HeadState::Detached { .. } => {
            let branch_name = &record.branch;
            let message =
                format!("HEAD is detached; check out the branch with `git switch {branch_name}`, then resume");
            Err(WorkspaceError::new_not_ready(message))
        }
        HeadState::Branch { ref_name, .. } | HeadState::Unborn { ref_name } => {
            let current_branch = ref_name.trim_start_matches("refs/heads/");
            let message = format!(
                "`{current_branch}` is checked out, and not `{}`; check that out with `git switch {}`, then resume",
                record.branch, record.branch
            );
            Err(WorkspaceError::new_not_ready(message))
        }
    }
}

/// Lists the files of the checkout that are not committed, without Tribunal's own.
pub(super) fn list_uncommitted(
    repository: &UserRepository,
    record: &WorkspaceRecord,
) -> Result<Vec<String>, WorkspaceError> {
    let mut command = repository.checkout_command(&repository.layout.work_tree_top);
    command.env("GIT_OPTIONAL_LOCKS", "0");
    // Only the commits of submodules are compared: a git process in one would read its configuration, which may name programs.
    command.args([
        "status",
        "--porcelain=v2",
        "-z",
        "--untracked-files=all",
        "--no-renames",
        "--ignore-submodules=dirty",
    ]);
    let output = run_checked(command, None)?;
    let status_entries = super::git_listings::parse_status(&output);
    let dirty_entries = status_entries.iter().filter(|entry| !record.is_own_file(&entry.path));
    Ok(dirty_entries.map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect())
}

impl WorkspaceRecord {
    /// Whether a path below the tree is a file of Tribunal's own.
    pub fn is_own_file(&self, tree_path: &[u8]) -> bool {
        self.own_prefixes.iter().any(|own_path| match own_path.rsplit_once('*') {
            _ if own_path.ends_with('/') => tree_path.starts_with(own_path.as_bytes()),
            Some((name_start, name_end)) => {
                let rest = tree_path.strip_prefix(name_start.as_bytes());
                let any_text = rest.and_then(|rest| rest.strip_suffix(name_end.as_bytes()));
                any_text.is_some_and(|any_text| !any_text.contains(&b'/'))
            }
            None => tree_path == own_path.as_bytes(),
        })
    }
}

pub(super) fn fill_clone(
    repository: &UserRepository,
    workspace: &mut DevelopmentWorkspace,
    seeds: SeedRequest<'_>,
) -> Result<(), WorkspaceError> {
    let control_git = workspace.control_git();
    let base = workspace.record.base.clone();
    create_private_dir(&workspace.record.tree)?;
    create_control_git(repository, &control_git, &base)?;
    // Filters are left out at first: what they would have to download or decrypt is in the user's checkout already.
    let mut checkout = control_git.new_command();
    checkout.args(["read-tree", "-m", "-u", base.as_str()]);
    add_settings(&mut checkout, &repository.settings_without_filters());
    run_checked(checkout, None)?;
    let index_entries = parse_index(&control_git.run(["ls-files", "-t", "--stage", "-z"])?);
    let mut remarks = copy_submodules(repository, &index_entries, &workspace.record.tree)?;
    let filtered_files = write_filtered_files(repository, &control_git, &index_entries)?;
    remarks.extend(filtered_files.remarks);
    workspace.record.sealed_files = filtered_files.sealed_files;
    workspace.record.converts_content = may_convert_content(repository, &control_git, &index_entries);
    let WorkspaceRecord { tree, prefix, .. } = &workspace.record;
    let seeded = copy_seeds(repository, seeds, &SeedTarget { tree, prefix, index_entries: &index_entries })?;
    remarks.extend(seeded.remarks);
    exclude_paths(&control_git, &seeded.tree_paths)?;
    // The agent's directory must exist even if the commit does not have it.
    create_private_dir(&workspace.agent_dir())?;
    remarks.extend(describe_identity(repository));
    workspace.record.remarks = remarks;
    // The index of the agent is a copy of this one. What git has written itself is known in it already.
    if filtered_files.has_written {
        control_git.remember_unchanged_files()?;
    }
    replace_agent_git(repository, &control_git, &workspace.record, &base)
}

fn prepare_in_place(repository: &UserRepository, workspace: &mut DevelopmentWorkspace) -> Result<(), WorkspaceError> {
    let control_git = workspace.control_git();
    create_control_git(repository, &control_git, &workspace.record.base)?;
    let base = workspace.record.base.as_str();
    // The user's index knows which files are unchanged. One that consists of several files cannot be copied as one.
    let own_index = control_git.git_dir.join("index");
    let is_copied = fs::copy(repository.layout.git_dir.join("index"), &own_index).is_ok();
    if !is_copied || control_git.run(["read-tree", "-m", base]).is_err() {
        let _ = fs::remove_file(&own_index);
        control_git.run(["read-tree", base])?;
    }
    let index_entries = parse_index(&control_git.run(["ls-files", "-t", "--stage", "-z"])?);
    let sealed = super::special_files::seal_checked_out_files(repository, &control_git, &index_entries)?;
    workspace.record.sealed_files = sealed;
    workspace.record.converts_content = may_convert_content(repository, &control_git, &index_entries);
    workspace.record.remarks = describe_identity(repository).into_iter().collect();
    Ok(())
}

fn describe_identity(repository: &UserRepository) -> Option<String> {
    let has_identity = repository.read_identity(CommitRole::Author).is_some();
    (!has_identity).then(|| {
        "git does not know your name, so commits are made by `Tribunal <tribunal@localhost>`; set `user.name` and \
         `user.email` with `git config`"
            .to_string()
    })
}
