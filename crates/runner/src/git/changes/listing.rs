//! Lists which files a change touches, and which of them can be reviewed: by names, modes, sizes and what git takes for text.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, Read},
    path::Path,
    process::Command,
};

use tribunal_engine::own_folders::OwnFolders;

use super::{
    ChangeError, ChangeRequest, MAX_PART_BYTES, MAX_PART_FILES, MAX_PARTS, format_bytes, revisions::ChangeEndpoints,
    too_big_error,
};
use crate::{
    file_limits::{MAX_SUBJECT_BYTES, TOOL_DIRECTORIES},
    git::{GitReadExtent, GitRepository},
};

/// Inexact renames are detected among this many files at most; the time it takes grows with the square.
const RENAME_LIMIT_FLAG: &str = "-l400";
const LINK_MODE: &str = "120000";
const SUBMODULE_MODE: &str = "160000";
/// The size of the lines around a new file's content in a diff.
const DIFF_HEADER_BYTES: u64 = 160;

/// One file as git lists it.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangedEntry {
    pub relative_path: String,
    pub old_path: Option<String>,
    /// As in git's raw format; `?` for an untracked file.
    pub status_code: u8,
    file_modes: [String; 2],
    /// The contents before and after; `None` if there is none, or if it is only in the work tree.
    pub object_ids: [Option<String>; 2],
    /// The numbers of added and removed lines; `None` if the file is not text.
    line_counts: Option<(u64, u64)>,
    /// The size of its diff.
    pub diff_bytes: u64,
}

impl ChangedEntry {
    pub fn is_deleted(&self) -> bool {
        self.status_code == b'D'
    }

    /// Whether the file is new and empty.
    pub fn is_empty_and_new(&self, project_root: &Path) -> bool {
        match self.status_code {
            b'A' => self.line_counts == Some((0, 0)),
            b'?' => {
                fs::metadata(project_root.join(&self.relative_path)).is_ok_and(|file_metadata| file_metadata.len() == 0)
            }
            _ => false,
        }
    }

    /// Whether its content after the change exists only in the work tree.
    pub fn is_in_work_tree(&self) -> bool {
        !self.is_deleted() && self.object_ids[1].is_none()
    }
}

/// What can be reviewed so far, and why the other files cannot.
#[derive(Debug, Default)]
pub(super) struct SiftedFiles {
    pub reviewable: Vec<ChangedEntry>,
    pub omissions: Vec<String>,
    /// All tracked paths in git's order, with a change of type listed twice, as in a patch.
    diff_order: Vec<String>,
}

impl SiftedFiles {
    /// Leaves out files that do not belong to the change, with one reason for all of them.
    fn omit_group(&mut self, reason: &str, is_omitted: impl Fn(&ChangedEntry) -> bool) {
        let (omitted, reviewable): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.reviewable).into_iter().partition(is_omitted);
        self.reviewable = reviewable;
        if let [first_entry, other_entries @ ..] = omitted.as_slice() {
            let more_suffix =
                if other_entries.is_empty() { String::new() } else { format!(" (and {} more)", other_entries.len()) };
            self.omissions.push(format!("{}: {reason}{more_suffix}", first_entry.relative_path));
        }
    }

    /// Keeps the entries for which `find_reason` finds nothing.
    pub fn omit_entries(&mut self, mut find_reason: impl FnMut(&ChangedEntry) -> Option<String>) {
        let candidates = std::mem::take(&mut self.reviewable);
        for entry in candidates {
            match find_reason(&entry) {
                None => self.reviewable.push(entry),
                Some(reason) => self.omissions.push(format!("{}: {reason}", entry.relative_path)),
            }
        }
    }
}

/// Builds a diff command; lists and patches share its options, so that they have the same order.
fn diff_command(
    repository: &GitRepository,
    endpoints: &ChangeEndpoints,
    output_format: &[&str],
    path_filters: &[String],
) -> Command {
    let mut command = repository.new_command();
    // Git takes larger files for binary and prints nothing of them; those in the work tree are still hashed.
    command.args(["-c", &format!("core.bigFileThreshold={MAX_SUBJECT_BYTES}"), "-c", "diff.suppressBlankEmpty=false"]);
    command.args(["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--relative", "-M", RENAME_LIMIT_FLAG]);
    // The user's configuration could change prefixes, submodule format or order; the parser relies on these.
    command.args([
        "--submodule=short",
        "--ignore-submodules=dirty",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "-O/dev/null",
    ]);
    command.args(output_format).arg(&endpoints.compare_from).args(&endpoints.end_id).arg("--").args(path_filters);
    command
}

/// Lists what has changed according to git.
pub(super) fn list_changed(
    repository: &GitRepository,
    endpoints: &ChangeEndpoints,
    path_filters: &[String],
) -> Result<Vec<ChangedEntry>, ChangeError> {
    let command = diff_command(repository, endpoints, &["--raw", "--numstat", "-z", "--no-abbrev"], path_filters);
    let git_output = repository.run_checked(command, None)?;
    let mut changed_entries = Vec::new();
    let mut line_counts: BTreeMap<String, Option<(u64, u64)>> = BTreeMap::new();
    let mut records =
        git_output.split(|byte| *byte == 0).map(|record| String::from_utf8(record.to_vec()).map_err(mark_undecodable));
    while let Some(record) = records.next() {
        // The output mixes both formats: raw records start with a colon, the others with line counts.
        let record = unwrap_name(record);
        let mut next_record = || records.next().map(unwrap_name).unwrap_or_default();
        if let Some(raw_record) = record.strip_prefix(':') {
            changed_entries.push(parse_raw_entry(raw_record, &mut next_record));
        } else if let Some((added, after_added)) = record.split_once('\t')
            && let Some((removed, changed_path)) = after_added.split_once('\t')
        {
            // A rename has an empty path here, followed by the old and the new one.
            let changed_path = if changed_path.is_empty() {
                [next_record(), next_record()][1].clone()
            } else {
                changed_path.to_string()
            };
            line_counts.insert(changed_path, added.parse().ok().zip(removed.parse().ok()));
        }
    }
    for changed_entry in &mut changed_entries {
        changed_entry.line_counts = line_counts.get(&changed_entry.relative_path).copied().flatten();
        // To detect a rename git hashes the file in the work tree, but it does not store the content under that hash.
        if endpoints.end_id.is_none() && changed_entry.old_path.is_some() {
            changed_entry.object_ids[1] = None;
        }
        if changed_entry.status_code == b'U' {
            return Err(ChangeError::UnresolvedConflicts { path: changed_entry.relative_path.clone() });
        }
    }
    Ok(changed_entries)
}

/// Marks a name that is not UTF-8 with a replacement character; the file is left out because of it.
fn mark_undecodable(undecodable: std::string::FromUtf8Error) -> String {
    format!("{}\u{fffd}", String::from_utf8_lossy(undecodable.as_bytes()))
}

fn unwrap_name(decoded_name: Result<String, String>) -> String {
    decoded_name.unwrap_or_else(|marked_name| marked_name)
}

/// Parses `100644 100644 OLD NEW M`, followed by the path or both paths.
fn parse_raw_entry(raw_record: &str, next_record: &mut dyn FnMut() -> String) -> ChangedEntry {
    let mut fields = raw_record.split(' ');
    let mut next_field = || fields.next().unwrap_or_default().to_string();
    let file_modes = [next_field(), next_field()];
    let object_ids = [next_field(), next_field()]
        .map(|object_id| Some(object_id).filter(|object_id| !object_id.bytes().all(|byte| byte == b'0')));
    let status_code = next_field().bytes().next().unwrap_or(b'M');
    let first_path = next_record();
    let (relative_path, old_path) =
        if matches!(status_code, b'R' | b'C') { (next_record(), Some(first_path)) } else { (first_path, None) };
    ChangedEntry { relative_path, old_path, status_code, file_modes, object_ids, ..ChangedEntry::default() }
}

/// Lists files that git does not track and would not ignore.
pub(super) fn list_untracked(
    repository: &GitRepository,
    path_filters: &[String],
) -> Result<Vec<ChangedEntry>, ChangeError> {
    let mut command = repository.new_command();
    command.args(["ls-files", "-z", "--others", "--exclude-standard", "--"]).args(path_filters);
    let git_output = repository.run_checked(command, None)?;
    let untracked_names = git_output.split(|byte| *byte == 0).filter(|name_bytes| !name_bytes.is_empty());
    let to_entry = |name_bytes: &[u8]| {
        let relative_path = unwrap_name(String::from_utf8(name_bytes.to_vec()).map_err(mark_undecodable));
        let metadata = fs::symlink_metadata(repository.work_tree_root().join(&relative_path));
        let file_mode = match &metadata {
            Ok(metadata) if metadata.is_symlink() => LINK_MODE,
            // A nested repository.
            _ if relative_path.ends_with('/') => SUBMODULE_MODE,
            _ => "100644",
        };
        let diff_bytes = metadata.map_or(0, |metadata| metadata.len()) + DIFF_HEADER_BYTES;
        let file_modes = ["000000".to_string(), file_mode.to_string()];
        ChangedEntry {
            relative_path,
            status_code: b'?',
            file_modes,
            line_counts: Some((0, 0)),
            diff_bytes,
            ..ChangedEntry::default()
        }
    };
    Ok(untracked_names.map(to_entry).collect())
}

/// Leaves out what can be recognized without reading it.
pub(super) fn sift_entries(
    repository: &GitRepository,
    changed_entries: Vec<ChangedEntry>,
    request: &ChangeRequest,
) -> Result<SiftedFiles, ChangeError> {
    let patch_count = |entry: &ChangedEntry| if entry.status_code == b'T' { 2 } else { 1 };
    let tracked_entries = changed_entries.iter().filter(|entry| entry.status_code != b'?');
    let diff_order = tracked_entries
        .flat_map(|entry| std::iter::repeat_n(entry.relative_path.clone(), patch_count(entry)))
        .collect();
    let object_sizes = read_object_sizes(repository, &changed_entries)?;
    let mut sifted_files = SiftedFiles { reviewable: changed_entries, omissions: Vec::new(), diff_order };
    sifted_files.omit_group("written by Tribunal", |entry| is_own_file(&entry.relative_path, &request.reviews_dir));
    let is_planning_file = |entry: &ChangedEntry| {
        request.planning_dirs.iter().any(|planning_dir| Path::new(&entry.relative_path).starts_with(planning_dir))
    };
    sifted_files.omit_group("planning file", is_planning_file);
    // A modified file with the same text and mode has no change to review.
    sifted_files.reviewable.retain(|entry| {
        entry.status_code != b'M' || entry.line_counts != Some((0, 0)) || entry.file_modes[0] != entry.file_modes[1]
    });
    // Group omissions come first, so that such files do not get a reason each.
    sifted_files.omit_entries(|entry| omission_reason(repository, entry, &object_sizes));
    Ok(sifted_files)
}

/// Whether Tribunal wrote this file outside its own directory.
fn is_own_file(relative_path: &str, reviews_dir: &str) -> bool {
    let own_folders = OwnFolders::beside_reviews(reviews_dir);
    let is_tracker_file =
        Path::new(relative_path).strip_prefix(reviews_dir).ok().and_then(Path::to_str).is_some_and(|file_name| {
            file_name.ends_with("-issues.md")
                || (file_name.starts_with("review-metrics-") && file_name.ends_with(".json"))
        });
    is_tracker_file
        || own_folders.is_report(relative_path)
        || Path::new(relative_path).starts_with(own_folders.decisions)
}

fn omission_reason(
    repository: &GitRepository,
    entry: &ChangedEntry,
    object_sizes: &BTreeMap<String, Option<u64>>,
) -> Option<String> {
    // Names and modes come first, sizes and line counts last: the first reason that applies is reported.
    if entry.relative_path.contains(char::REPLACEMENT_CHARACTER) {
        return Some("name is not valid UTF-8".into());
    }
    if entry
        .relative_path
        .chars()
        .chain(entry.old_path.iter().flat_map(|old_path| old_path.chars()))
        .any(char::is_control)
    {
        return Some("name contains control characters".into());
    }
    if let Some(tool_directory) = entry.relative_path.split('/').find(|path_part| TOOL_DIRECTORIES.contains(path_part))
    {
        return Some(format!("files in {tool_directory} are not reviewed"));
    }
    if entry.file_modes.iter().any(|file_mode| file_mode == SUBMODULE_MODE) {
        return Some("submodule".into());
    }
    if entry.file_modes.iter().any(|file_mode| file_mode == LINK_MODE) {
        return Some("symlink".into());
    }
    let stored_sizes =
        entry.object_ids.iter().flatten().map(|object_id| object_sizes.get(object_id).copied().flatten());
    let work_tree_size = entry.is_in_work_tree().then(|| {
        fs::metadata(repository.work_tree_root().join(&entry.relative_path))
            .ok()
            .map(|file_metadata| file_metadata.len())
    });
    let mut largest_size = 0;
    // Every version has to be readable: a reviewer sees both sides of the diff.
    for content_size in stored_sizes.chain(work_tree_size) {
        let Some(content_size) = content_size else { return Some("contents are not available".into()) };
        largest_size = largest_size.max(content_size);
    }
    if largest_size > MAX_SUBJECT_BYTES {
        return Some(format!("too large ({}, limit {})", format_bytes(largest_size), format_bytes(MAX_SUBJECT_BYTES)));
    }
    match entry.line_counts {
        None => Some("binary, or marked as binary in .gitattributes".into()),
        Some((0, 0)) if entry.status_code == b'M' => Some("only the file mode changed".into()),
        _ => None,
    }
}

/// Reads the sizes of all stored contents; `None` if git does not have one.
fn read_object_sizes(
    repository: &GitRepository,
    changed_entries: &[ChangedEntry],
) -> Result<BTreeMap<String, Option<u64>>, ChangeError> {
    let is_file_entry = |entry: &&ChangedEntry| !entry.file_modes.iter().any(|mode| mode == SUBMODULE_MODE);
    let object_ids: BTreeSet<&String> =
        changed_entries.iter().filter(is_file_entry).flat_map(|entry| entry.object_ids.iter().flatten()).collect();
    if object_ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut command = repository.new_command();
    command.args(["cat-file", "--buffer", "--batch-check=%(objectname) %(objectsize)"]);
    let request_lines: String = object_ids.iter().map(|object_id| format!("{object_id}\n")).collect();
    let git_output = repository.run_checked(command, Some(request_lines.into_bytes()))?;
    let git_output = String::from_utf8_lossy(&git_output);
    let parse_size =
        |line: &str| line.split_once(' ').map(|(object_id, size_text)| (object_id.to_string(), size_text.parse().ok()));
    Ok(git_output.lines().filter_map(parse_size).collect())
}

/// Measures the diff of every file as git prints it. Nothing of it is kept.
pub(super) fn measure_diffs(
    repository: &GitRepository,
    endpoints: &ChangeEndpoints,
    path_filters: &[String],
    sifted_files: &mut SiftedFiles,
) -> Result<(), ChangeError> {
    let mut bytes_by_path: BTreeMap<&str, u64> = BTreeMap::new();
    let diff_order = &sifted_files.diff_order;
    let mut next_index = 0;
    let mut count_diff_bytes = |git_output: &mut dyn BufRead| {
        let mut diff_line = Vec::new();
        let mut current_path = "";
        while Read::take(&mut *git_output, MAX_SUBJECT_BYTES).read_until(b'\n', &mut diff_line)? > 0 {
            // A path in the header may be quoted or ambiguous, so it is searched for among the next paths in order.
            if diff_line.starts_with(b"diff --git ") {
                let header = String::from_utf8_lossy(&diff_line);
                let remaining_paths = diff_order.iter().skip(next_index);
                let skipped =
                    remaining_paths.clone().position(|path| header.trim_end().ends_with(path.as_str())).unwrap_or(0);
                current_path = diff_order.get(next_index + skipped).map_or("", String::as_str);
                next_index += skipped + 1;
            }
            *bytes_by_path.entry(current_path).or_default() += diff_line.len() as u64;
            diff_line.clear();
        }
        Ok(GitReadExtent::Complete)
    };
    if !diff_order.is_empty() {
        repository.stream_output(
            diff_command(repository, endpoints, &["--patch"], path_filters),
            None,
            &mut count_diff_bytes,
        )?;
    }
    for entry in sifted_files.reviewable.iter_mut().filter(|entry| entry.status_code != b'?') {
        entry.diff_bytes = bytes_by_path.get(entry.relative_path.as_str()).copied().unwrap_or_default();
    }
    sifted_files.omit_entries(|entry| {
        (entry.diff_bytes > MAX_PART_BYTES).then(|| {
            let (diff_size, max_size) = (format_bytes(entry.diff_bytes), format_bytes(MAX_PART_BYTES));
            format!("diff too large ({diff_size}, limit {max_size}); to review it on its own: `tribunal review FILE`")
        })
    });
    Ok(())
}

/// Refuses a change that is larger than all parts together could be.
pub(super) fn ensure_fits(range_name: &str, reviewable: &[ChangedEntry]) -> Result<(), ChangeError> {
    let total_bytes: u64 = reviewable.iter().map(|entry| entry.diff_bytes).sum();
    if reviewable.len() > MAX_PARTS * MAX_PART_FILES || total_bytes > MAX_PARTS as u64 * MAX_PART_BYTES {
        return Err(too_big_error(range_name.to_string(), reviewable, Some(total_bytes)));
    }
    Ok(())
}
