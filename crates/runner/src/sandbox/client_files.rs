//! What a client writes outside of the workspace: its sessions, logs and credentials, but never what defines its later sessions.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::{DirBuilderExt, symlink},
    path::{Path, PathBuf},
};

use tribunal_agents::clients::{AgentClient, SandboxDir};

/// What a client may use of its own files.
pub(super) struct ClientAccess {
    pub writable_paths: Vec<PathBuf>,
    /// The directory that the client has to be pointed at.
    pub private_dir: Option<PathBuf>,
}

/// Prepares the files of a client for a task in this workspace.
pub(super) fn prepare_client_files(
    client: AgentClient,
    client_dir: &Path,
    workspace: &Path,
    private_tmp: &Path,
) -> io::Result<ClientAccess> {
    let writable_paths = list_writable(client, client_dir, workspace);
    let private_dir = match client.facts.client_files.sandbox_dir {
        SandboxDir::UserDir => None,
        SandboxDir::PrivateDir { unlinked_words } => {
            let private_dir = private_tmp.join(client.id);
            fs::DirBuilder::new().mode(0o700).create(&private_dir)?;
            link_entries(client_dir, &private_dir, unlinked_words)?;
            Some(private_dir)
        }
    };
    Ok(ClientAccess { writable_paths, private_dir })
}

/// Lists what a client may write below its directory. Directories that are missing are created, since a rule needs something
/// that exists.
fn list_writable(client: AgentClient, client_dir: &Path, workspace: &Path) -> Vec<PathBuf> {
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

/// Links the entries of the user's directory, so that a client finds its settings and sessions. What it replaces by files of
/// its own goes with the private directory.
fn link_entries(client_dir: &Path, private_dir: &Path, unlinked_words: &[&str]) -> io::Result<()> {
    let is_linked = |name: &OsString| {
        let name = name.to_string_lossy();
        !unlinked_words.iter().any(|word| name.contains(word))
    };
    for entry in fs::read_dir(client_dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if is_linked(&name) {
            symlink(entry.path(), private_dir.join(name))?;
        }
    }
    Ok(())
}

/// Returns the name under which Claude Code keeps the sessions of a directory.
fn session_dir_name(workspace: &Path) -> String {
    let real_path = workspace.canonicalize().unwrap_or_else(|_| workspace.to_path_buf());
    real_path.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
