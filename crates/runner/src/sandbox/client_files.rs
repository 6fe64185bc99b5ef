//! What a client writes outside of the workspace: its sessions, logs and credentials, but never what defines its later sessions.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::{DirBuilderExt, symlink},
    path::{Path, PathBuf},
};

use tribunal_agents::{clients::AgentClient, driver::UserDirs};

/// What a client may use of its own files.
pub(super) struct ClientAccess {
    pub writable_paths: Vec<PathBuf>,
    /// The user's own directory of the client, to which the private one has links.
    pub readable_path: PathBuf,
    /// The variable that names the private directory.
    pub dir_variable: (&'static str, PathBuf),
}

/// Prepares the files of a client for a task in this workspace. `None` if it is not known where the user has them.
pub(super) fn prepare_client_files(
    client: AgentClient,
    user_dirs: &UserDirs,
    workspace: &Path,
    private_tmp: &Path,
) -> io::Result<Option<ClientAccess>> {
    let Some(client_dir) = user_dirs.by_client.get(client.id) else { return Ok(None) };
    let client_files = &client.facts.client_files;
    let writable_paths = list_writable(client, client_dir, workspace);
    let private_dir = private_tmp.join(client.id);
    fs::DirBuilder::new().mode(0o700).create(&private_dir)?;
    link_entries(client_dir, &private_dir, client_files.sandbox_dir.unlinked_names)?;
    if let Some(home_file) = client_files.sandbox_dir.home_file {
        // With a variable the file is in the directory already, and otherwise beside it.
        let candidates = [Some(client_dir.join(home_file)), user_dirs.home.as_ref().map(|home| home.join(home_file))];
        let source_path = candidates.into_iter().flatten().find(|path| path.is_file());
        source_path.map(|source_path| fs::copy(source_path, private_dir.join(home_file))).transpose()?;
    }
    let dir_variable = (client_files.dir_variable, private_dir);
    Ok(Some(ClientAccess { writable_paths, readable_path: client_dir.clone(), dir_variable }))
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
fn link_entries(client_dir: &Path, private_dir: &Path, unlinked_names: &[&str]) -> io::Result<()> {
    let is_linked = |name: &OsString| {
        let name = name.to_string_lossy();
        !unlinked_names.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *pattern,
        })
    };
    for entry in fs::read_dir(client_dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if is_linked(&name) {
            symlink(entry.path(), private_dir.join(name))?;
        }
    }
    Ok(())
}

/// Removes what clients keep about sessions in the workspaces below a directory, which is about to be removed itself.
pub(crate) fn remove_session_dirs(user_dirs: &UserDirs, workspaces_dir: &Path) {
    let name_start = format!("{}-", session_dir_name(workspaces_dir));
    for client in AgentClient::all() {
        let Some(client_dir) = user_dirs.by_client.get(client.id) else { continue };
        let session_parents = client.facts.client_files.working_files.iter().filter_map(|name| {
            let (parent, _) = name.split_once("{workspace}")?;
            Some(client_dir.join(parent))
        });
        for session_parent in session_parents {
            for entry in fs::read_dir(session_parent).into_iter().flatten().flatten() {
                let is_directory = entry.file_type().is_ok_and(|file_type| file_type.is_dir());
                if is_directory && entry.file_name().to_string_lossy().starts_with(&name_start) {
                    // What cannot be removed is only a directory too many.
                    let _ = fs::remove_dir_all(entry.path());
                }
            }
        }
    }
}

/// Returns the name under which Claude Code keeps the sessions of a directory.
fn session_dir_name(workspace: &Path) -> String {
    let real_path = workspace.canonicalize().unwrap_or_else(|_| workspace.to_path_buf());
    real_path.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_client_finds_its_settings_in_a_private_directory_and_can_write_only_its_sessions() {
        let temp_dir = tempfile::tempdir().unwrap();
        let (home_dir, private_tmp) = (temp_dir.path().join("home"), temp_dir.path().join("private"));
        let (client_dir, workspace) = (home_dir.join(".claude"), temp_dir.path().join("work.1"));
        for directory in [&client_dir.join("shell-snapshots"), &client_dir.join("skills"), &private_tmp, &workspace] {
            fs::create_dir_all(directory).unwrap();
        }
        for (name, text) in
            [("settings.json", "{}"), (".credentials.json", "{}"), ("history.jsonl", ""), ("guidelines.md", "")]
        {
            fs::write(client_dir.join(name), text).unwrap();
        }
        fs::write(home_dir.join(".claude.json"), "account").unwrap();
        let user_dirs = UserDirs {
            home: Some(home_dir),
            by_client: BTreeMap::from([("claude-code", client_dir.clone())]),
            ..UserDirs::default()
        };
        let client = AgentClient::find("claude-code").unwrap();
        let access = prepare_client_files(client, &user_dirs, &workspace, &private_tmp).unwrap().unwrap();
        let session_dir = client_dir.join("projects").join(session_dir_name(&workspace));
        assert!(session_dir.is_dir() && session_dir.to_string_lossy().ends_with("-work-1"), "{session_dir:?}");
        assert_eq!(access.writable_paths, [session_dir, client_dir.join(".credentials.json")]);
        let (variable, private_dir) = access.dir_variable;
        assert_eq!(variable, "CLAUDE_CONFIG_DIR");
        let link_target = |name: &str| fs::read_link(private_dir.join(name)).ok();
        for name in ["settings.json", "skills", ".credentials.json", "projects", "guidelines.md"] {
            assert_eq!(link_target(name), Some(client_dir.join(name)));
        }
        assert!(!private_dir.join("shell-snapshots").exists() && !private_dir.join("history.jsonl").exists());
        // What the client writes into the copy does not reach the user's file.
        assert!(link_target(".claude.json").is_none());
        assert_eq!(fs::read_to_string(private_dir.join(".claude.json")).unwrap(), "account");
    }

    #[test]
    fn sessions_of_removed_workspaces_are_removed_and_no_others() {
        let temp_dir = tempfile::tempdir().unwrap();
        let (client_dir, work_dir) = (temp_dir.path().join(".claude"), temp_dir.path().join("project/work/plan-1"));
        let workspace = work_dir.join("round-1/1/tree");
        fs::create_dir_all(&workspace).unwrap();
        let session_dir = client_dir.join("projects").join(session_dir_name(&workspace));
        let other_dir = client_dir.join("projects").join(session_dir_name(temp_dir.path()));
        fs::create_dir_all(&session_dir).unwrap();
        fs::create_dir_all(&other_dir).unwrap();
        fs::write(session_dir.join("x.jsonl"), "{}").unwrap();
        let by_client = BTreeMap::from([("claude-code", client_dir.clone())]);
        remove_session_dirs(&UserDirs { by_client, ..UserDirs::default() }, &work_dir);
        assert!(!session_dir.exists() && other_dir.exists());
    }
}
