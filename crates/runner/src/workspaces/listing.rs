//! Lists what belongs into a workspace: the subject, what git would track (every ordinary file, where there is no git), and
//! ignored files that agents need. Nothing is copied here.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, Metadata},
    path::Path,
};

use super::{WorkspaceSource, git_queries, is_never_copied, omissions::OmissionRemarks};
use crate::{file_limits::TOOL_DIRECTORIES, project::subject::is_plain_path};

/// The number and size of files that are copied for a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyLimits {
    pub files: usize,
    pub bytes: u64,
}

/// How much of a project a workspace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyExtent {
    Everything,
    /// The directories of the subject's files, without their subdirectories.
    SubjectFolders,
    SubjectFiles,
}

impl CopyExtent {
    /// Returns the widest extent within the limits.
    pub fn widest_within<'a>(
        measured_files: impl Iterator<Item = (&'a str, u64)> + Clone,
        subject_files: &[String],
        limits: CopyLimits,
    ) -> CopyExtent {
        let fits_limits = |extent: &CopyExtent| {
            let CopyLimits { files: count, bytes: total_bytes } = measure_files(
                measured_files.clone().filter(|(relative_path, _)| extent.includes(relative_path, subject_files)),
            );
            count <= limits.files && total_bytes <= limits.bytes
        };
        [CopyExtent::Everything, CopyExtent::SubjectFolders]
            .into_iter()
            .find(fits_limits)
            .unwrap_or(CopyExtent::SubjectFiles)
    }

    pub fn includes(self, relative_path: &str, subject_files: &[String]) -> bool {
        match self {
            CopyExtent::Everything => true,
            CopyExtent::SubjectFolders => {
                subject_files.iter().any(|file| parent_directory(file) == parent_directory(relative_path))
            }
            CopyExtent::SubjectFiles => subject_files.iter().any(|file| file == relative_path),
        }
    }
}

/// Returns the number of files and their total size.
pub(super) fn measure_files<'a>(measured_files: impl Iterator<Item = (&'a str, u64)>) -> CopyLimits {
    let no_files = CopyLimits { files: 0, bytes: 0 };
    measured_files.fold(no_files, |total, (_, size)| CopyLimits { files: total.files + 1, bytes: total.bytes + size })
}

fn parent_directory(relative_path: &str) -> &str {
    relative_path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// The files that were found, by relative path.
#[derive(Default)]
pub(super) struct TreeListing {
    pub files: BTreeMap<String, Metadata>,
    /// Links that stay inside, with their targets.
    pub links: BTreeMap<String, String>,
    /// Whether git listed the files and all of them are included.
    pub is_complete: bool,
}

/// Scans the project, link by link and directory by directory.
struct TreeScanner<'a> {
    project_root: &'a Path,
    limits: CopyLimits,
    listing: TreeListing,
    /// Whether a path and all its parents are directories and not links.
    known_directories: HashMap<String, bool>,
    remarks: &'a mut OmissionRemarks,
}

pub(super) fn list_work_tree_files(
    source: &WorkspaceSource<'_>,
    limits: CopyLimits,
    remarks: &mut OmissionRemarks,
) -> TreeListing {
    let mut scanner = TreeScanner::new(source.project_root, limits, remarks);
    // Git knows best which files belong to the project; walking the directory is only the fallback.
    let listed_by_git = match git_queries::list_work_tree(source.project_root) {
        Ok(ls_files_output) => {
            scanner.add_listed_files(&ls_files_output);
            true
        }
        Err(reason) => {
            // Without a repository copying all files is normal and needs no remark.
            if source.project_root.join(".git").exists() {
                scanner.remarks.add_remark(format!(
                    "git could not tell which files are ignored, so all files are copied: {reason}"
                ));
            }
            scanner.walk_directory("", WalkKind::Context);
            // The walk stopped at the limit, so it may have missed the directories of the subject.
            if !scanner.remarks.counted_everything {
                scanner.add_siblings(source.subject_files);
            }
            false
        }
    };
    // The subject's files come before the limits apply, since they always have to be there.
    for subject_file in source.subject_files {
        scanner.add_path(subject_file);
    }
    let nothing_removed = scanner.narrow_to_limits(source.subject_files);
    scanner.add_seeds(source.seed_paths);
    scanner.listing.is_complete = listed_by_git && nothing_removed;
    scanner.listing
}

/// Lists the ignored files that agents need, for a workspace from a stored tree.
pub(super) fn list_seed_files(
    source: &WorkspaceSource<'_>,
    limits: CopyLimits,
    remarks: &mut OmissionRemarks,
) -> TreeListing {
    let mut scanner = TreeScanner::new(source.project_root, limits, remarks);
    scanner.add_seeds(source.seed_paths);
    scanner.listing
}

/// What a walk leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkKind {
    /// Leaves out what tools leave behind.
    Context,
    /// Leaves out other repositories, such as work trees that agents created.
    Seed,
}

impl<'a> TreeScanner<'a> {
    fn new(project_root: &'a Path, limits: CopyLimits, remarks: &'a mut OmissionRemarks) -> TreeScanner<'a> {
        let known_directories = HashMap::from([(String::new(), true)]);
        TreeScanner { project_root, limits, listing: TreeListing::default(), known_directories, remarks }
    }

    fn add_listed_files(&mut self, ls_files_output: &[u8]) {
        for entry in git_queries::parse_ls_files(ls_files_output) {
            let Ok(relative_path) = std::str::from_utf8(entry.path_bytes) else {
                self.remarks.undecodable_names += 1;
                continue;
            };
            let path_parts = || relative_path.split('/');
            if !is_plain_path(relative_path) || is_never_copied(relative_path) {
                continue;
            }
            if entry.is_submodule {
                // A submodule that is not checked out is an empty directory.
                let is_checked_out = self.is_real_directory(relative_path)
                    && self.project_root.join(relative_path).join(".git").exists();
                if is_checked_out {
                    self.walk_directory(relative_path, WalkKind::Context);
                }
            } else if let Some(nested_repository) = relative_path.strip_suffix('/') {
                // Git lists a nested repository as a directory with a slash at its end.
                self.remarks.nested_repositories.push(nested_repository.to_string());
            } else if entry.is_tracked || !path_parts().any(|part| TOOL_DIRECTORIES.contains(&part)) {
                self.add_path(relative_path);
            }
        }
    }

    /// Adds an ordinary file, or a link that stays inside; nothing else.
    fn add_path(&mut self, relative_path: &str) {
        // What lies behind a linked directory is not part of the project.
        if !self.is_real_directory(parent_directory(relative_path)) {
            return;
        }
        let Ok(metadata) = fs::symlink_metadata(self.project_root.join(relative_path)) else { return };
        if metadata.is_file() {
            self.listing.files.insert(relative_path.to_string(), metadata);
        } else if metadata.is_symlink() {
            let target = fs::read_link(self.project_root.join(relative_path)).ok();
            let read_link_target = |relative_path: &str| {
                Some(fs::read_link(self.project_root.join(relative_path)).ok()?.to_string_lossy().into_owned())
            };
            match target.as_deref().and_then(Path::to_str) {
                Some(target) if link_stays_inside(relative_path, target, &read_link_target) => {
                    self.listing.links.insert(relative_path.to_string(), target.to_string());
                }
                _ => self.remarks.outside_links.push(relative_path.to_string()),
            }
        }
    }

    fn is_real_directory(&mut self, relative_path: &str) -> bool {
        if let Some(known) = self.known_directories.get(relative_path) {
            return *known;
        }
        let is_directory = |relative_path: &str| {
            fs::symlink_metadata(self.project_root.join(relative_path)).is_ok_and(|metadata| metadata.is_dir())
        };
        let result = is_directory(relative_path) && self.is_real_directory(parent_directory(relative_path));
        self.known_directories.insert(relative_path.to_string(), result);
        result
    }

    /// Adds everything below a directory until the limit is exceeded.
    fn walk_directory(&mut self, start_directory: &str, walk_kind: WalkKind) {
        let mut directories = vec![start_directory.to_string()];
        let max_files = self.listing.files.len() + self.limits.files;
        while let Some(directory) = directories.pop() {
            for dir_entry in fs::read_dir(self.project_root.join(&directory)).into_iter().flatten().flatten() {
                let Ok(file_name) = dir_entry.file_name().into_string() else {
                    self.remarks.undecodable_names += 1;
                    continue;
                };
                if is_never_copied(&file_name)
                    || (walk_kind == WalkKind::Context && TOOL_DIRECTORIES.contains(&file_name.as_str()))
                {
                    continue;
                }
                let relative_path = if directory.is_empty() { file_name } else { format!("{directory}/{file_name}") };
                if !dir_entry.file_type().is_ok_and(|file_type| file_type.is_dir()) {
                    self.add_path(&relative_path);
                } else if walk_kind == WalkKind::Seed && dir_entry.path().join(".git").exists() {
                    self.remarks.nested_repositories.push(relative_path);
                } else {
                    directories.push(relative_path);
                }
            }
            if self.listing.files.len() > max_files {
                self.remarks.counted_everything = false;
                return;
            }
        }
    }

    /// Adds the files beside the subject, which a walk that stopped early may have missed.
    fn add_siblings(&mut self, subject_files: &[String]) {
        for directory in subject_files.iter().map(|subject_file| parent_directory(subject_file)) {
            for dir_entry in fs::read_dir(self.project_root.join(directory)).into_iter().flatten().flatten() {
                if let Ok(file_name) = dir_entry.file_name().into_string() {
                    self.add_path(&if directory.is_empty() { file_name } else { format!("{directory}/{file_name}") });
                }
            }
        }
    }

    /// Removes what exceeds the limits. Returns whether nothing had to be removed.
    fn narrow_to_limits(&mut self, subject_files: &[String]) -> bool {
        let measured_files =
            self.listing.files.iter().map(|(relative_path, metadata)| (relative_path.as_str(), metadata.len()));
        let extent = CopyExtent::widest_within(measured_files.clone(), subject_files, self.limits);
        if extent != CopyExtent::Everything {
            self.remarks.report_narrowing(measure_files(measured_files), self.limits, extent);
            self.listing.files.retain(|relative_path, _| extent.includes(relative_path, subject_files));
            self.listing.links.retain(|relative_path, _| extent.includes(relative_path, subject_files));
        }
        extent == CopyExtent::Everything
    }

    /// Adds the seeds. They have limits of their own: without them an agent may not work at all.
    fn add_seeds(&mut self, seed_paths: &[String]) {
        // The seeds are listed separately, so that the context does not count towards their limit.
        let context_listing = std::mem::take(&mut self.listing);
        for seed in seed_paths {
            let seed_path = seed.trim_end_matches('/');
            if seed_path.is_empty() || !is_plain_path(seed_path) || is_never_copied(seed_path) {
                self.remarks
                    .add_remark(format!("`{seed}` is not copied: it is not a file or directory of the project"));
                continue;
            }
            let files_before = self.listing.files.clone();
            if self.is_real_directory(seed_path) {
                self.walk_directory(seed_path, WalkKind::Seed);
            } else {
                self.add_path(seed_path);
            }
            let measured_files =
                self.listing.files.iter().map(|(relative_path, metadata)| (relative_path.as_str(), metadata.len()));
            let CopyLimits { files: count, bytes } = measure_files(measured_files);
            // A seed that exceeds the limit is dropped as a whole: a part of it would be useless.
            if count > self.limits.files || bytes > self.limits.bytes {
                self.listing.files = files_before;
                self.remarks.add_remark(format!(
                    "`{seed}` is not copied: with the other files for agents, it exceeds the limit"
                ));
            }
        }
        self.listing.files.extend(context_listing.files);
        self.listing.links.extend(context_listing.links);
    }
}

/// Whether a link at `relative_path` stays inside the project, following links on the way. `read_link_target` resolves them.
pub(super) fn link_stays_inside(
    relative_path: &str,
    target: &str,
    read_link_target: &dyn Fn(&str) -> Option<String>,
) -> bool {
    const MAX_LINKS: usize = 40;
    let mut current_parts: Vec<String> = parent_directory(relative_path)
        .split('/')
        .filter(|path_part| !path_part.is_empty())
        .map(String::from)
        .collect();
    // A link below a linked directory is not at the place its path suggests.
    if (1..=current_parts.len()).any(|depth| read_link_target(&current_parts[..depth].join("/")).is_some()) {
        return false;
    }
    let mut pending_parts: Vec<String> = Vec::new();
    let mut next_target = Some(target.to_string());
    for _ in 0..MAX_LINKS {
        let Some(target) = next_target.take() else { return true };
        if target.starts_with('/') {
            return false;
        }
        // Components are kept in reverse order, so that the next one is at the end.
        pending_parts.extend(target.split('/').rev().map(String::from));
        while let Some(path_part) = pending_parts.pop() {
            match path_part.as_str() {
                "" | "." => {}
                ".." => {
                    if current_parts.pop().is_none() {
                        return false;
                    }
                }
                name if is_never_copied(name) => return false,
                _ => {
                    current_parts.push(path_part);
                    next_target = read_link_target(&current_parts.join("/"));
                    // The target of this link replaces the component, and the rest of the path follows it.
                    if next_target.is_some() {
                        current_parts.pop();
                        break;
                    }
                }
            }
        }
    }
    // More links than the kernel itself would follow: this is a loop.
    false
}
