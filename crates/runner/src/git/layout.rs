//! Where a repository keeps its data, and what is checked out.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    QUERY_TIMEOUT, git_command,
    plain_files::{PlainRepository, is_plain_ref_name},
    run_git,
};

/// Where a repository keeps its data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RepositoryLayout {
    /// The root of the work tree.
    pub work_tree_top: PathBuf,
    /// The directory with HEAD and the index.
    pub git_dir: PathBuf,
    /// The directory with objects, refs and configuration; it differs from `git_dir` in a linked work tree.
    pub common_dir: PathBuf,
    pub object_format: String,
    pub head: HeadState,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeadState {
    Branch { ref_name: String, commit_id: String },
    Detached { commit_id: String },
    Unborn { ref_name: String },
}

impl HeadState {
    pub fn into_commit_id(self) -> Option<String> {
        match self {
            HeadState::Branch { commit_id, .. } | HeadState::Detached { commit_id } => Some(commit_id),
            HeadState::Unborn { .. } => None,
        }
    }
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

/// Reads the layout of the repository around a directory. Returns `None` if it is unusual, or if there is none.
pub(crate) fn read_layout(project_root: &Path) -> Option<RepositoryLayout> {
    let from_files = PlainRepository::find_at(project_root).and_then(|repository| repository.read_layout());
    from_files.or_else(|| query_layout(project_root))
}

/// Asks git about the layout.
pub(super) fn query_layout(project_root: &Path) -> Option<RepositoryLayout> {
    let mut command = git_command(project_root);
    command.args(LAYOUT_QUERY);
    let output = run_git(command, None, QUERY_TIMEOUT).ok()?;
    let output_text = String::from_utf8(output.stdout).ok()?;
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

/// Accepts a branch name only if it can be written as a file of its own.
fn parse_branch_ref(ref_name: &str) -> Option<String> {
    let is_valid = ref_name.starts_with("refs/heads/") && is_plain_ref_name(ref_name);
    is_valid.then(|| ref_name.to_string())
}
