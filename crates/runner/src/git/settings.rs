//! The settings of git that count in a project, with who made them.
//!
//! Git is asked again only if one of the files with settings has changed since. Their contents are compared, not their times: users,
//! agents in the checkout, checks and hooks may change them at any moment. Settings that include other files are never kept.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use super::{
    GitError, git_command,
    plain_files::{PlainRepository, read_regular_file},
    run_checked,
};

/// Longer files are not kept.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A setting and who made it.
#[derive(Clone, Debug)]
pub(crate) struct ConfigEntry {
    /// Whether it comes from the repository itself, and not from the user or the system.
    pub is_from_repository: bool,
    /// A key that is not UTF-8 has other characters in the place of its bytes.
    pub key: String,
    pub value: String,
    pub raw_key: Vec<u8>,
}

/// Files of the user and of the system that git reads in every repository.
#[derive(Clone, Debug)]
pub(crate) struct GitLocations {
    config_files: Vec<PathBuf>,
    /// Files with attributes, if the settings name no other; `None` if these files are not known.
    pub attributes_files: Option<Vec<PathBuf>>,
}

/// What git said about the settings of a project, and the contents of the files that it read.
#[derive(Debug)]
struct KeptConfig {
    common_dir: PathBuf,
    files: ConfigContents,
    entries: Arc<[ConfigEntry]>,
}

type ConfigContents = Vec<(PathBuf, Option<Vec<u8>>)>;

static KEPT_CONFIG: Mutex<Option<KeptConfig>> = Mutex::new(None);

/// Reads the settings in the order in which git applies them.
pub(crate) fn read_config(project_root: &Path) -> Result<Arc<[ConfigEntry]>, GitError> {
    let repository = PlainRepository::find_at(project_root);
    let read_files = || read_contents(repository.as_ref()?.common_dir());
    let Some((repository, files)) = repository.as_ref().zip(read_files()) else { return query_config(project_root) };
    if let Some(kept) = &*KEPT_CONFIG.lock().unwrap_or_else(PoisonError::into_inner)
        && kept.common_dir == repository.common_dir()
        && kept.files == files
    {
        return Ok(kept.entries.clone());
    }
    let entries = query_config(project_root)?;
    let has_includes = entries.iter().any(|entry| entry.key.starts_with("include"));
    // A file may have changed while git read it.
    if !has_includes && read_files().is_some_and(|files_now| files_now == files) {
        let kept = KeptConfig { common_dir: repository.common_dir().to_path_buf(), files, entries: entries.clone() };
        *KEPT_CONFIG.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }
    Ok(entries)
}

fn query_config(project_root: &Path) -> Result<Arc<[ConfigEntry]>, GitError> {
    let mut command = git_command(project_root);
    command.args(["config", "--list", "--show-scope", "--null"]);
    let output = run_checked(command, None)?;
    let mut words = output.split(|byte| *byte == 0);
    let mut entries = Vec::new();
    // The output alternates between a scope and a setting, whose value follows its key after a line break.
    while let (Some(scope), Some(setting)) = (words.next(), words.next()) {
        // The scope `command` has the settings of our own command line.
        let is_from_repository = match scope {
            b"local" | b"worktree" => true,
            b"global" | b"system" => false,
            _ => continue,
        };
        let key_end = setting.iter().position(|byte| *byte == b'\n').unwrap_or(setting.len());
        let (raw_key, raw_value) = (&setting[..key_end], setting.get(key_end + 1..).unwrap_or(b"true"));
        let to_text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        entries.push(ConfigEntry {
            is_from_repository,
            key: to_text(raw_key),
            value: to_text(raw_value),
            raw_key: raw_key.to_vec(),
        });
    }
    Ok(entries.into())
}

/// Reads all files that may have settings; `None` if not all of them can be known or read.
fn read_contents(common_dir: &Path) -> Option<ConfigContents> {
    let own_files = ["config", "config.worktree"].map(|name| common_dir.join(name));
    let other_files = GitLocations::find()?.config_files;
    let mut contents = Vec::new();
    for path in own_files {
        let is_there = fs::symlink_metadata(&path).is_ok();
        let bytes = is_there.then(|| read_regular_file(&path, MAX_FILE_BYTES)).transpose().ok()?;
        contents.push((path, bytes));
    }
    for path in other_files {
        // The user's own files are often links.
        let bytes = match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() && metadata.len() < MAX_FILE_BYTES => Some(fs::read(&path).ok()?),
            Ok(_) => return None,
            Err(_) => None,
        };
        contents.push((path, bytes));
    }
    let is_whole = |bytes: &Option<Vec<u8>>| bytes.as_ref().is_none_or(|bytes| (bytes.len() as u64) < MAX_FILE_BYTES);
    contents.iter().all(|(_, bytes)| is_whole(bytes)).then_some(contents)
}

impl GitLocations {
    /// Returns the locations; `None` if this git cannot tell them. They depend on the program and on variables, so they are asked for once.
    pub fn find() -> Option<GitLocations> {
        static LOCATIONS: OnceLock<Option<GitLocations>> = OnceLock::new();
        // Tests choose the user's configuration for one thread.
        if cfg!(test) { GitLocations::query() } else { LOCATIONS.get_or_init(GitLocations::query).clone() }
    }

    fn query() -> Option<GitLocations> {
        // Outside of every project, so that none has a say in it.
        let mut command = git_command(Path::new("/"));
        command.args(["var", "-l"]);
        let output = run_checked(command, None).ok()?;
        let output_text = String::from_utf8(output).ok()?;
        let find_paths = |variable: &str| -> Vec<PathBuf> {
            let lines = output_text.lines().filter_map(|line| line.strip_prefix(variable)?.strip_prefix('='));
            lines.filter(|path| !path.is_empty()).map(PathBuf::from).collect()
        };
        let mut config_files = find_paths("GIT_CONFIG_SYSTEM");
        config_files.extend(find_paths("GIT_CONFIG_GLOBAL"));
        let attributes_files = [find_paths("GIT_ATTR_SYSTEM"), find_paths("GIT_ATTR_GLOBAL")].concat();
        let names_attributes = output_text.lines().any(|line| line.starts_with("core.attributesfile="));
        let is_known = !config_files.is_empty() && config_files.iter().all(|path| path.is_absolute());
        let attributes_files = (!names_attributes).then_some(attributes_files);
        is_known.then_some(GitLocations { config_files, attributes_files })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn find_value(root: &Path, key: &str) -> Option<String> {
        let entries = read_config(root).unwrap();
        entries.iter().rev().find(|entry| entry.key == key).map(|entry| entry.value.clone())
    }

    #[test]
    fn a_setting_that_changes_is_read_again_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let run_git = |arguments: &[&str]| {
            assert!(Command::new("git").args(arguments).current_dir(root).status().unwrap().success());
        };
        run_git(&["init", "-q"]);
        for value in ["one", "two", "six"] {
            run_git(&["config", "filter.x.clean", value]);
            // The second time it is known already.
            for _ in 0..2 {
                assert_eq!(find_value(root, "filter.x.clean").as_deref(), Some(value));
            }
        }
        let included_file = root.join("included");
        run_git(&["config", "include.path", included_file.to_str().unwrap()]);
        for value in ["a", "b"] {
            fs::write(&included_file, format!("[filter \"y\"]\n\tclean = {value}\n")).unwrap();
            assert_eq!(find_value(root, "filter.y.clean").as_deref(), Some(value));
        }
    }
}
