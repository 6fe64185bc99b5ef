//! What a client writes outside of the workspace: its sessions, logs and credentials, but never what defines its later sessions.

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use tribunal_agents::clients::AgentClient;

/// Lists what a client may write below its directory, for a task in this workspace. Directories that are missing are created,
/// since a rule needs something that exists.
pub(super) fn list_writable(client: AgentClient, client_dir: &Path, workspace: &Path) -> Vec<PathBuf> {
    let working_files = client.facts.client_files.working_files;
    let names = working_files.iter().map(|name| name.replace("{workspace}", &session_dir_name(workspace)));
    let mut writable_paths = Vec::new();
    for name in names {
        let path = client_dir.join(name.trim_end_matches('/'));
        if name.ends_with('/') {
            // A failure shows when the client needs the directory.
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        }
        // A link could lead to what the client must not write.
        if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_symlink()) {
            writable_paths.push(path);
        }
    }
    writable_paths
}

/// Returns the name under which Claude Code keeps the sessions of a directory.
fn session_dir_name(workspace: &Path) -> String {
    let real_path = workspace.canonicalize().unwrap_or_else(|_| workspace.to_path_buf());
    real_path.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
