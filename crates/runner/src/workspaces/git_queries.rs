//! The git queries of workspaces. [`start_git`] is the only place that starts git for them; `listing` and `stored_tree`
//! interpret the output.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Stdio},
};

use crate::git::git_command;

/// One record of `ls-files`.
pub(super) struct LsFilesEntry<'a> {
    pub path_bytes: &'a [u8],
    pub is_tracked: bool,
    /// Whether the path is the commit of another repository.
    pub is_submodule: bool,
}

/// One record of `ls-tree`.
pub(super) struct LsTreeEntry {
    pub file_mode: String,
    pub object_id: String,
    pub size: u64,
    pub path_bytes: Vec<u8>,
}

/// Where a repository keeps its data.
pub(super) struct RepositoryLayout {
    /// The root of the work tree.
    pub work_tree_top: PathBuf,
    /// The directory with HEAD and the index.
    pub git_dir: PathBuf,
    /// The directory with objects, refs and configuration; it differs from `git_dir` in a linked work tree.
    pub common_dir: PathBuf,
    pub object_format: String,
    pub head: HeadState,
}

pub(super) enum HeadState {
    Branch { ref_name: String, commit_id: String },
    Detached { commit_id: String },
    Unborn { ref_name: String },
}

/// Lists what git would track: committed, staged and new files, without ignored ones. The error says why git cannot tell.
pub(super) fn list_work_tree(project_root: &Path) -> Result<Vec<u8>, String> {
    run_query(project_root, &["ls-files", "-z", "-t", "--stage", "--cached", "--others", "--exclude-standard"])
}

pub(super) fn parse_ls_files(output: &[u8]) -> impl Iterator<Item = LsFilesEntry<'_>> {
    output.split(|byte| *byte == 0).filter_map(|record| match record.strip_prefix(b"? ") {
        Some(path_bytes) => Some(LsFilesEntry { path_bytes, is_tracked: false, is_submodule: false }),
        // The format is: H 100644 OBJECT 0<tab>path
        None => {
            let tab_position = record.iter().position(|byte| *byte == b'\t')?;
            let is_submodule = record.get(2..8) == Some(b"160000");
            Some(LsFilesEntry { path_bytes: &record[tab_position + 1..], is_tracked: true, is_submodule })
        }
    })
}

/// Reads the layout of a repository. Returns `None` if it is unusual.
pub(super) fn read_repository_layout(project_root: &Path) -> Option<RepositoryLayout> {
    let mut git_process = start_git(project_root, &LAYOUT_QUERY, Stdio::null()).ok()?;
    let mut output_text = String::new();
    let read_outcome = git_process.stdout.take()?.read_to_string(&mut output_text);
    git_process.wait().ok()?;
    read_outcome.ok()?;
    let lines: Vec<&str> = output_text.lines().collect();
    // Git fails at HEAD only after it has printed the other lines: this is a branch without a commit.
    let (&[work_tree_top, git_dir, common_dir, object_format, head_line], ref_lines) = lines.split_first_chunk()?;
    let git_dir = PathBuf::from(git_dir);
    let is_commit_id = matches!(head_line.len(), 40 | 64) && head_line.bytes().all(|byte| byte.is_ascii_hexdigit());
    let head = match (is_commit_id, ref_lines) {
        (true, ["HEAD"]) => HeadState::Detached { commit_id: head_line.to_string() },
        (true, [ref_name]) => {
            HeadState::Branch { ref_name: parse_branch_ref(ref_name)?, commit_id: head_line.to_string() }
        }
        // The branch name is not in the output then, so it is read from the HEAD file itself.
        (false, _) => {
            let head_text = fs::read_to_string(git_dir.join("HEAD")).ok()?;
            HeadState::Unborn { ref_name: parse_branch_ref(head_text.strip_prefix("ref: ")?.trim_end())? }
        }
        _ => return None,
    };
    Some(RepositoryLayout {
        work_tree_top: work_tree_top.into(),
        git_dir,
        common_dir: common_dir.into(),
        object_format: object_format.to_string(),
        head,
    })
}

const LAYOUT_QUERY: [&str; 9] = [
    "rev-parse",
    "--path-format=absolute",
    "--show-toplevel",
    "--git-dir",
    "--git-common-dir",
    "--show-object-format",
    "HEAD",
    "--symbolic-full-name",
    "HEAD",
];

/// Accepts a branch name only if it can be written as a file of its own.
fn parse_branch_ref(ref_name: &str) -> Option<String> {
    let is_valid_part =
        |ref_part: &str| !ref_part.is_empty() && !ref_part.starts_with('.') && !ref_part.ends_with(".lock");
    let is_valid = ref_name.starts_with("refs/heads/") && ref_name.split('/').all(is_valid_part);
    is_valid.then(|| ref_name.to_string())
}

/// Lists everything in a commit or tree below the root.
pub(super) fn list_tree(project_root: &Path, tree_name: &str) -> Result<Vec<LsTreeEntry>, String> {
    // A name that starts with a dash would be taken for an option.
    if tree_name.starts_with('-') || tree_name.is_empty() {
        return Err(format!("`{tree_name}` is not a commit"));
    }
    let output = run_query(project_root, &["ls-tree", "-r", "-z", "-l", tree_name])?;
    let lines = output.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    lines
        .map(|line| parse_ls_tree_line(line).ok_or_else(|| "could not parse the output of `git ls-tree`".to_string()))
        .collect()
}

/// Returns the object ids of those paths that are files in a commit or tree.
pub(crate) fn find_blob_ids(
    project_root: &Path,
    tree_name: &str,
    relative_paths: &[String],
) -> Result<BTreeMap<String, String>, String> {
    if tree_name.starts_with('-') || tree_name.is_empty() {
        return Err(format!("`{tree_name}` is not a commit"));
    }
    let mut arguments = vec!["ls-tree", "-z", "-l", tree_name, "--"];
    arguments.extend(relative_paths.iter().map(String::as_str));
    let output = run_query(project_root, &arguments)?;
    let lines = output.split(|byte| *byte == 0).filter_map(parse_ls_tree_line);
    // Modes that start with 100 are ordinary files; links and submodules have others.
    let file_entries = lines.filter(|entry| entry.file_mode.starts_with("100"));
    Ok(file_entries.filter_map(|entry| Some((String::from_utf8(entry.path_bytes).ok()?, entry.object_id))).collect())
}

/// Parses a line of the form `100644 blob OBJECT SIZE<tab>path`.
fn parse_ls_tree_line(line: &[u8]) -> Option<LsTreeEntry> {
    let tab_position = line.iter().position(|byte| *byte == b'\t')?;
    let mut fields = std::str::from_utf8(&line[..tab_position]).ok()?.split_ascii_whitespace();
    let (file_mode, _, object_id) = (fields.next()?.to_string(), fields.next()?, fields.next()?.to_string());
    let size = fields.next()?.parse().unwrap_or(0);
    Some(LsTreeEntry { file_mode, object_id, size, path_bytes: line[tab_position + 1..].to_vec() })
}

/// Passes the raw bytes of each object to `consume`, in order.
pub(crate) fn read_objects(
    project_root: &Path,
    object_ids: &[&str],
    mut consume: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut git_process = start_git(project_root, &["cat-file", "--batch", "--buffer"], Stdio::piped())?;
    let (Some(mut request_stream), Some(response_stream)) = (git_process.stdin.take(), git_process.stdout.take())
    else {
        return Err(io::Error::other("could not connect to git's input and output"));
    };
    let request_lines =
        object_ids.iter().flat_map(|object_id| [object_id.as_bytes(), b"\n"]).collect::<Vec<_>>().concat();
    let read_outcome = std::thread::scope(|scope| {
        // The names are written on a separate thread: git answers while it reads, and either pipe may fill up.
        scope.spawn(move || request_stream.write_all(&request_lines));
        let mut response_stream = BufReader::new(response_stream);
        let mut bytes = Vec::new();
        object_ids.iter().try_for_each(|object_id| {
            read_next_object(&mut response_stream, object_id, &mut bytes)?;
            consume(&bytes)
        })
        // The read end closes here, so that git does not wait for a reader of its remaining output.
    });
    git_process.wait()?;
    read_outcome
}

/// Reads one answer: `OBJECT blob SIZE`, the bytes, a line end.
fn read_next_object(
    response_stream: &mut BufReader<ChildStdout>,
    object_id: &str,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    let mut header_line = String::new();
    response_stream.read_line(&mut header_line)?;
    let size = header_line
        .strip_prefix(object_id)
        .and_then(|after_id| after_id.strip_prefix(" blob ")?.trim_end().parse().ok());
    let size: usize = size.ok_or_else(|| io::Error::other(format!("git object {object_id} is missing")))?;
    bytes.clear();
    response_stream.by_ref().take(size as u64).read_to_end(bytes)?;
    let mut line_end = [0];
    response_stream.read_exact(&mut line_end)?;
    if bytes.len() == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Runs a query and returns its output; the error is git's own message.
fn run_query(project_root: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let output = start_git(project_root, arguments, Stdio::null())
        .and_then(Child::wait_with_output)
        .map_err(|cause| format!("could not start git: {cause}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr_text = String::from_utf8_lossy(&output.stderr);
    let first_line = stderr_text.lines().find(|line| !line.trim().is_empty()).unwrap_or("git gave no error message");
    Err(first_line.trim_start_matches("fatal: ").to_string())
}

fn start_git(project_root: &Path, arguments: &[&str], stdin: Stdio) -> io::Result<Child> {
    #[cfg(test)]
    super::tests::STARTED.with(|started| started.set(started.get() + 1));
    git_command(project_root).args(arguments).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}
