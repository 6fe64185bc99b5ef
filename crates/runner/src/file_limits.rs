//! What of a project is too large to be reviewed, and which directories belong to tools.

/// A longer subject cannot be reviewed with care.
pub const MAX_SUBJECT_BYTES: u64 = 1 << 20;

/// Directories that tools leave behind. Of these, only files of the subject can be part of a patch, and what is copied is
/// only what git tracks or what is requested.
pub(crate) const TOOL_DIRECTORIES: [&str; 7] =
    [".git", ".tribunal", "node_modules", "target", "__pycache__", ".pytest_cache", ".venv"];
