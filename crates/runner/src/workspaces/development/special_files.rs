//! Files of a new clone that git alone would not write as they are in the user's checkout: submodules, and files with filters.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Path, PathBuf},
};

use super::{
    SealedFile, WithPath, WorkspaceError,
    control_git::ControlGit,
    user_repository::{UserRepository, add_settings, find_filtered_paths, join_with_nul},
};
use crate::{
    git::{run_checked, settings::GitLocations, to_trimmed_text},
    project::atomic_files,
    workspaces::git_queries::{list_work_tree, parse_ls_files},
};

/// One entry of an index.
pub(super) struct IndexEntry {
    pub mode: String,
    pub object_id: String,
    pub path: Vec<u8>,
    /// Whether a sparse checkout leaves it out.
    pub is_skipped: bool,
}

/// Whether git may store something else than a file contains. It does so only if there are attributes, or if `core.autocrlf`
/// is set.
pub(super) fn may_convert_content(
    repository: &UserRepository,
    control_git: &ControlGit,
    index_entries: &[IndexEntry],
) -> bool {
    repository.effective_setting("core.autocrlf").is_some_and(|value| !value.eq_ignore_ascii_case("false"))
        || may_have_attributes(repository, control_git, index_entries)
}

/// Whether anything may give attributes to files.
fn may_have_attributes(repository: &UserRepository, control_git: &ControlGit, index_entries: &[IndexEntry]) -> bool {
    // An older git cannot tell where these files would be.
    let has_common_attributes = || match GitLocations::find().and_then(|locations| locations.attributes_files) {
        Some(attributes_files) => attributes_files.iter().any(|path| path.exists()),
        None => true,
    };
    index_entries.iter().any(|entry| is_attributes_file(&entry.path))
        || control_git.git_dir.join("info/attributes").exists()
        || repository.effective_setting("core.attributesfile").is_some()
        || has_common_attributes()
}

pub(super) fn is_attributes_file(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next() == Some(b".gitattributes")
}

/// Parses the output of `ls-files -t --stage -z`: `H 100644 OBJECT 0<tab>path`.
pub(super) fn parse_index(output: &[u8]) -> Vec<IndexEntry> {
    let records = output.split(|byte| *byte == 0);
    records
        .filter_map(|record| {
            let tab = record.iter().position(|byte| *byte == b'\t')?;
            let header = to_trimmed_text(&record[..tab]);
            let mut words = header.split(' ');
            let (tag, mode, object_id) = (words.next()?, words.next()?, words.next()?);
            Some(IndexEntry {
                mode: mode.to_string(),
                object_id: object_id.to_string(),
                path: record[tab + 1..].to_vec(),
                is_skipped: tag.eq_ignore_ascii_case("S"),
            })
        })
        .collect()
}

/// Copies the files of initialised submodules from the user's checkout, without their repositories. Returns remarks.
pub(super) fn copy_submodules(
    repository: &UserRepository,
    index_entries: &[IndexEntry],
    tree: &Path,
) -> Result<Vec<String>, WorkspaceError> {
    let mut remarks = Vec::new();
    for entry in index_entries.iter().filter(|entry| entry.mode == "160000" && !entry.is_skipped) {
        let relative_path = Path::new(OsStr::from_bytes(&entry.path));
        let source_dir = repository.layout.work_tree_top.join(relative_path);
        let shown_path = relative_path.display();
        if fs::symlink_metadata(source_dir.join(".git")).is_err() {
            remarks.push(format!("the submodule `{shown_path}` is not initialised in your checkout"));
            continue;
        }
        copy_listed_files(&source_dir, &tree.join(relative_path))?;
        remarks.push(format!("the submodule `{shown_path}`: files of your checkout; changes in it are not committed"));
    }
    Ok(remarks)
}

/// Copies what git would track in a directory, with the submodules in it.
fn copy_listed_files(source_dir: &Path, target_dir: &Path) -> Result<(), WorkspaceError> {
    let listing = list_work_tree(source_dir)?;
    for listed_file in parse_ls_files(&listing) {
        let relative_path = Path::new(OsStr::from_bytes(listed_file.path_bytes));
        let (source_path, target_path) = (source_dir.join(relative_path), target_dir.join(relative_path));
        let Ok(metadata) = fs::symlink_metadata(&source_path) else { continue };
        if listed_file.is_submodule {
            if source_path.join(".git").exists() {
                copy_listed_files(&source_path, &target_path)?;
            }
            continue;
        }
        fs::create_dir_all(target_path.parent().unwrap_or(target_dir)).at_path(&target_path)?;
        if metadata.is_symlink() {
            let link_target = fs::read_link(&source_path).at_path(&source_path)?;
            symlink(link_target, &target_path).at_path(&target_path)?;
        } else if metadata.is_file() {
            fs::copy(&source_path, &target_path).at_path(&source_path)?;
        }
    }
    Ok(())
}

/// What was done about files with filters.
#[derive(Default)]
pub(super) struct FilteredFiles {
    pub sealed_files: Vec<SealedFile>,
    pub remarks: Vec<String>,
    /// Whether there are any: then the index does not know yet that they are unchanged.
    pub has_written: bool,
}

/// Gives files with filters the bytes that they have in the user's checkout, so that no filter has to run and nothing has to be
/// downloaded. Only files that are modified or missing there are written by the filter of the user's own configuration.
pub(super) fn write_filtered_files(
    repository: &UserRepository,
    control_git: &ControlGit,
    index_entries: &[IndexEntry],
) -> Result<FilteredFiles, WorkspaceError> {
    let mut outcome = FilteredFiles::default();
    if !repository.has_filters() || !may_have_attributes(repository, control_git, index_entries) {
        return Ok(outcome);
    }
    let files = index_entries.iter().filter(|entry| entry.mode.starts_with("100") && !entry.is_skipped);
    let object_ids: BTreeMap<&[u8], &str> =
        files.map(|entry| (entry.path.as_slice(), entry.object_id.as_str())).collect();
    let all_paths: Vec<Vec<u8>> = object_ids.keys().map(|path| path.to_vec()).collect();
    let filtered_paths = find_filtered_paths(control_git.new_command(), &all_paths)?;
    outcome.has_written = !filtered_paths.is_empty();
    let repository_filters = repository.repository_filters();
    let unmodified_paths = find_unmodified_paths(repository, &filtered_paths, &object_ids)?;
    let mut smudged_paths = Vec::new();
    for (path, filter_name) in &filtered_paths {
        let is_sealed = repository_filters.contains(filter_name.as_str());
        let tree_path = tree_path(&control_git.work_tree, path);
        if unmodified_paths.contains(path) {
            let source_path = tree_path_of_user(repository, path);
            fs::copy(&source_path, &tree_path).at_path(&source_path)?;
        } else if is_sealed {
            let shown_path = String::from_utf8_lossy(path);
            outcome.remarks.push(format!(
                "`{shown_path}` is as git stores it: only the repository's own configuration defines its filter \
                 `{filter_name}`, and that one does not run"
            ));
        } else {
            smudged_paths.push(path.clone());
        }
        if is_sealed {
            let hash = atomic_files::hash_file(&tree_path).at_path(&tree_path)?;
            outcome.sealed_files.push(SealedFile { path: path.clone(), hash });
        }
    }
    if let Err(cause) = smudge_files(repository, control_git, &smudged_paths) {
        let shown_paths: Vec<_> = smudged_paths.iter().map(|path| String::from_utf8_lossy(path)).collect();
        outcome.remarks.push(format!("could not apply a filter to {}: {cause}", shown_paths.join(", ")));
    }
    seal_in_index(control_git, &outcome.sealed_files)?;
    Ok(outcome)
}

/// Writes files once more, with the filters of the user's own configuration.
fn smudge_files(
    repository: &UserRepository,
    control_git: &ControlGit,
    paths: &[Vec<u8>],
) -> Result<(), WorkspaceError> {
    if paths.is_empty() {
        return Ok(());
    }
    // Git would leave alone what it has written before.
    for path in paths {
        let file_path = tree_path(&control_git.work_tree, path);
        fs::remove_file(&file_path).at_path(&file_path)?;
    }
    let arguments = ["checkout-index", "--force", "-u", "-z", "--stdin"];
    let smudged = control_git.run_with_input(arguments, Some(join_with_nul(paths)));
    if smudged.is_err() {
        // Files as git stores them are better than no files, which would count as deleted.
        let mut command = control_git.new_command();
        command.args(arguments);
        add_settings(&mut command, &repository.settings_without_filters());
        run_checked(command, Some(join_with_nul(paths)))?;
    }
    smudged.map(drop)
}

/// Records the files of the user's checkout whose filter only the repository's own configuration defines.
pub(super) fn seal_checked_out_files(
    repository: &UserRepository,
    control_git: &ControlGit,
    index_entries: &[IndexEntry],
) -> Result<Vec<SealedFile>, WorkspaceError> {
    let repository_filters = repository.repository_filters();
    if repository_filters.is_empty() {
        return Ok(Vec::new());
    }
    let files = index_entries.iter().filter(|entry| entry.mode.starts_with("100") && !entry.is_skipped);
    let all_paths: Vec<Vec<u8>> = files.map(|entry| entry.path.clone()).collect();
    let mut sealed_files = Vec::new();
    for (path, filter_name) in find_filtered_paths(control_git.new_command(), &all_paths)? {
        if repository_filters.contains(filter_name.as_str()) {
            let file_path = tree_path(&control_git.work_tree, &path);
            let hash = atomic_files::hash_file(&file_path).at_path(&file_path)?;
            sealed_files.push(SealedFile { path, hash });
        }
    }
    seal_in_index(control_git, &sealed_files)?;
    Ok(sealed_files)
}

/// Makes git take the sealed files for unchanged.
fn seal_in_index(control_git: &ControlGit, sealed_files: &[SealedFile]) -> Result<(), WorkspaceError> {
    if sealed_files.is_empty() {
        return Ok(());
    }
    let paths: Vec<Vec<u8>> = sealed_files.iter().map(|sealed_file| sealed_file.path.clone()).collect();
    let arguments = ["update-index", "--assume-unchanged", "-z", "--stdin"];
    control_git.run_with_input(arguments, Some(join_with_nul(&paths))).map(drop)
}

/// Returns the paths that have the content of the commit in the user's checkout.
fn find_unmodified_paths(
    repository: &UserRepository,
    filtered_paths: &BTreeMap<Vec<u8>, String>,
    object_ids: &BTreeMap<&[u8], &str>,
) -> Result<BTreeSet<Vec<u8>>, WorkspaceError> {
    if filtered_paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let top_command = || repository.checkout_command(&repository.layout.work_tree_top);
    let mut listing = top_command();
    listing.args(["ls-files", "-t", "--stage", "-z"]);
    let user_entries = parse_index(&run_checked(listing, None)?);
    let mut comparison = top_command();
    comparison.args(["diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules=all"]);
    let modified_output = run_checked(comparison, None)?;
    let modified_paths: BTreeSet<&[u8]> = modified_output.split(|byte| *byte == 0).collect();
    let unmodified = user_entries.into_iter().filter(|entry| {
        filtered_paths.contains_key(&entry.path)
            && object_ids.get(entry.path.as_slice()) == Some(&entry.object_id.as_str())
            && !modified_paths.contains(entry.path.as_slice())
            && fs::symlink_metadata(tree_path_of_user(repository, &entry.path)).is_ok_and(|metadata| metadata.is_file())
    });
    Ok(unmodified.map(|entry| entry.path).collect())
}

fn tree_path_of_user(repository: &UserRepository, path: &[u8]) -> PathBuf {
    tree_path(&repository.layout.work_tree_top, path)
}

/// Returns the path of a file below a tree. Names may be any bytes.
pub(super) fn tree_path(tree: &Path, path: &[u8]) -> PathBuf {
    tree.join(OsStr::from_bytes(path))
}
