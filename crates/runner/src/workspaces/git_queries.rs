//! The git queries of workspaces; `listing` and `stored_tree` interpret the output.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Read},
    path::Path,
};

use crate::git::{GitError, GitReadExtent, WORK_TIMEOUT, git_command, run_checked, stream_output};

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

/// Lists what git would track: committed, staged and new files, without ignored ones. The error says why git cannot tell.
pub(super) fn list_work_tree(project_root: &Path) -> Result<Vec<u8>, GitError> {
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

/// Lists everything in a commit or tree below the root.
pub(super) fn list_tree(project_root: &Path, tree_name: &str) -> Result<Vec<LsTreeEntry>, GitError> {
    require_tree_name(tree_name)?;
    let output = run_query(project_root, &["ls-tree", "-r", "-z", "-l", tree_name])?;
    let lines = output.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    let unreadable = || ls_tree_error("its output could not be parsed".to_string());
    lines.map(|line| parse_ls_tree_line(line).ok_or_else(unreadable)).collect()
}

/// Refuses a name that git would take for an option.
fn require_tree_name(tree_name: &str) -> Result<(), GitError> {
    match tree_name.starts_with('-') || tree_name.is_empty() {
        true => Err(ls_tree_error(format!("`{tree_name}` is not a commit"))),
        false => Ok(()),
    }
}

fn ls_tree_error(said: String) -> GitError {
    GitError::CommandFailed { what: "ls-tree".to_string(), said }
}

/// Returns the object ids of those paths that are files in a commit or tree.
pub(crate) fn find_blob_ids(
    project_root: &Path,
    tree_name: &str,
    relative_paths: &[String],
) -> Result<BTreeMap<String, String>, GitError> {
    require_tree_name(tree_name)?;
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
    let mut command = git_command(project_root);
    command.args(["cat-file", "--batch", "--buffer"]);
    let request_lines =
        object_ids.iter().flat_map(|object_id| [object_id.as_bytes(), b"\n"]).collect::<Vec<_>>().concat();
    let mut read_outcome = Ok(());
    let streamed = stream_output(command, Some(request_lines), WORK_TIMEOUT, &mut |output| {
        let mut bytes = Vec::new();
        read_outcome = object_ids.iter().try_for_each(|object_id| {
            read_next_object(output, object_id, &mut bytes)?;
            consume(&bytes)
        });
        // Git does not wait for a reader of its remaining output.
        Ok(GitReadExtent::StoppedEarly)
    });
    read_outcome?;
    streamed.map_err(io::Error::other)
}

/// Reads one answer: `OBJECT blob SIZE`, the bytes, a line end.
fn read_next_object(response_stream: &mut dyn BufRead, object_id: &str, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut header_line = String::new();
    response_stream.read_line(&mut header_line)?;
    let size = header_line
        .strip_prefix(object_id)
        .and_then(|after_id| after_id.strip_prefix(" blob ")?.trim_end().parse().ok());
    let size: usize = size.ok_or_else(|| io::Error::other(format!("git object {object_id} is missing")))?;
    bytes.clear();
    Read::take(&mut *response_stream, size as u64).read_to_end(bytes)?;
    let mut line_end = [0];
    response_stream.read_exact(&mut line_end)?;
    if bytes.len() == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn run_query(project_root: &Path, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
    let mut command = git_command(project_root);
    command.args(arguments);
    run_checked(command, None)
}
