//! Lists the workspaces for development of a project, and removes those that no run needs any more.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tribunal_engine::ids::RunId;
use tribunal_workflows::development::workspace::DevelopmentPlace;

use crate::{
    project::Project,
    workspaces::development::{
        WorkspaceError, WorkspaceHome, close_workspace, delete_run_refs, read_workspace_record, remove_workspace_dir,
    },
};

/// A workspace for development on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedWorkspace {
    pub run_id: RunId,
    pub name: String,
    pub place: DevelopmentPlace,
    /// The directory of the workspace, with its files and what Tribunal keeps beside them.
    pub path: PathBuf,
    /// Whether it can be used; one that is not complete was being made or removed when a process ended.
    pub is_complete: bool,
}

/// Lists the workspaces of a project. `clones_root` is the directory for the clones of all projects.
pub fn list_workspaces(project: &Project, clones_root: Option<&Path>) -> Vec<ListedWorkspace> {
    let home = workspace_home(project, clones_root);
    if clones_root.is_none() {
        return Vec::new();
    }
    let mut listed = list_below(&home.project_dir(), DevelopmentPlace::Clone);
    listed.extend(list_below(&home.in_place_dir(), DevelopmentPlace::InPlace));
    listed.sort_by(|first, second| first.path.cmp(&second.path));
    listed
}

fn workspace_home(project: &Project, clones_root: Option<&Path>) -> WorkspaceHome {
    WorkspaceHome { project: project.clone(), clones_root: clones_root.unwrap_or(Path::new("")).to_path_buf() }
}

fn list_below(parent_dir: &Path, place: DevelopmentPlace) -> Vec<ListedWorkspace> {
    let run_dirs = list_directories(parent_dir).into_iter().flat_map(|run_dir| list_directories(&run_dir));
    let listed = run_dirs.filter_map(|path| {
        let record = read_workspace_record(&path);
        // Without a record only the names of the directories are known, which are almost always the same.
        let directory_name = |path: &Path| Some(path.file_name()?.to_str()?.to_string());
        let is_complete = record.is_some();
        let (run_id, name) = match record {
            Some(record) => (record.run, record.name),
            None => (RunId::new(directory_name(path.parent()?)?), directory_name(&path)?),
        };
        Some(ListedWorkspace { run_id, name, place, path, is_complete })
    });
    listed.collect()
}

/// Lists directories, but no links to any.
fn list_directories(directory: &Path) -> Vec<PathBuf> {
    let is_real_directory = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let dir_entries = fs::read_dir(directory).into_iter().flatten().flatten();
    dir_entries.map(|dir_entry| dir_entry.path()).filter(is_real_directory).collect()
}

/// Removes a workspace. The ref with its work stays unless a branch of the user's has the work.
pub(crate) fn remove_workspace(
    project: &Project,
    clones_root: Option<&Path>,
    workspace: &ListedWorkspace,
) -> Result<(), WorkspaceError> {
    // What was never complete has no commits.
    if !workspace.is_complete {
        return remove_workspace_dir(&workspace.path);
    }
    close_workspace(&workspace_home(project, clones_root), &workspace.run_id, &workspace.name)
}

/// Removes everything of runs that are removed themselves: their workspaces, and the refs with their work.
pub(crate) fn remove_run_workspaces(
    project: &Project,
    clones_root: Option<&Path>,
    run_ids: &[RunId],
) -> Result<(), WorkspaceError> {
    for workspace in list_workspaces(project, clones_root) {
        if run_ids.contains(&workspace.run_id) {
            remove_workspace_dir(&workspace.path)?;
        }
    }
    delete_run_refs(project.root(), run_ids)
}

#[cfg(test)]
mod tests {
    use tribunal_store::Store;

    use super::*;
    use crate::housekeeping::gc::{GcOptions, collect_garbage};

    #[test]
    fn workspaces_of_unknown_runs_are_listed_and_collected_and_other_directories_stay() {
        let temp_dir = tempfile::tempdir().unwrap();
        let project = Project::from_root(temp_dir.path().join("project"));
        project.prepare_home().unwrap();
        Store::open(&project.home_dir()).unwrap();
        let clones_root = temp_dir.path().join("cache");
        let home = workspace_home(&project, Some(&clones_root));
        let half_made = home.workspace_dir(DevelopmentPlace::Clone, &RunId::new("loop-x1"), "dev");
        fs::create_dir_all(half_made.join("tree")).unwrap();
        // A workspace of another project, and a link to what is not ours.
        fs::create_dir_all(clones_root.join("other-1234/loop-x1/dev")).unwrap();
        fs::create_dir_all(temp_dir.path().join("thesis/draft")).unwrap();
        std::os::unix::fs::symlink(temp_dir.path().join("thesis"), home.project_dir().join("link")).unwrap();
        let listed = list_workspaces(&project, Some(&clones_root));
        let expected = ListedWorkspace {
            run_id: RunId::new("loop-x1"),
            name: "dev".into(),
            place: DevelopmentPlace::Clone,
            path: half_made.clone(),
            is_complete: false,
        };
        assert_eq!(listed, [expected]);
        for dry_run in [true, false] {
            let options = GcOptions { clones_root: Some(clones_root.clone()), dry_run, ..GcOptions::default() };
            let report = collect_garbage(&project, &options).unwrap();
            let removed: Vec<&Path> = report.workspaces.iter().map(|item| item.relative_path.as_path()).collect();
            assert_eq!(removed, [half_made.as_path()]);
            assert_eq!(half_made.exists(), dry_run);
        }
        assert!(clones_root.join("other-1234/loop-x1/dev").exists() && temp_dir.path().join("thesis/draft").exists());
    }
}
