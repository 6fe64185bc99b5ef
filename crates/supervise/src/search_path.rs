//! The directories in which programs are searched for. Entries of `PATH` that depend on the current directory (`.`, empty and
//! other relative ones) do not count: programs are started in directories with files of a project or an agent, and a file
//! called `git` there must not be taken for git.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
    process::Command,
};

/// The variable with the search path.
const PATH_VARIABLE: &str = "PATH";
/// The search path if no entry is left. An empty one would mean the current directory.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Splits a search path into the directories that count.
pub fn search_dirs(search_path: &OsStr) -> impl Iterator<Item = PathBuf> {
    env::split_paths(search_path).filter(|search_dir| search_dir.is_absolute())
}

/// Makes a command search for its program only in directories that count; what it starts does so, too.
pub fn secure_search_path(command: &mut Command) {
    let own_value = command.get_envs().find(|(variable_name, _)| *variable_name == PATH_VARIABLE);
    let search_path = match own_value {
        Some((_, own_path)) => own_path.map(OsStr::to_os_string),
        None => env::var_os(PATH_VARIABLE),
    };
    // A path without such entries is not set again: the standard library can start processes faster then.
    if let Some(secure_path) = search_path.and_then(|search_path| remove_relative_dirs(&search_path)) {
        command.env(PATH_VARIABLE, secure_path);
    }
}

/// Returns the search path without relative entries; `None` if it has none.
fn remove_relative_dirs(search_path: &OsStr) -> Option<OsString> {
    if env::split_paths(search_path).all(|search_dir| search_dir.is_absolute()) {
        return None;
    }
    match env::join_paths(search_dirs(search_path)) {
        Ok(secure_path) if !secure_path.is_empty() => Some(secure_path),
        // Parts of a split path can always be joined, so this is a path without any directory that counts.
        _ => Some(DEFAULT_PATH.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_directories_count() {
        for (search_path, secure_path) in [
            ("/usr/bin:/bin", None),
            ("/usr/bin:.", Some("/usr/bin")),
            (".:/usr/bin:/bin", Some("/usr/bin:/bin")),
            (":/usr/bin", Some("/usr/bin")),
            ("/usr/bin:", Some("/usr/bin")),
            ("/usr/bin::/bin", Some("/usr/bin:/bin")),
            ("./node_modules/.bin:bin:../bin:/usr/bin:~/bin", Some("/usr/bin")),
            ("", Some(DEFAULT_PATH)),
            (".", Some(DEFAULT_PATH)),
        ] {
            let found_path = remove_relative_dirs(OsStr::new(search_path));
            assert_eq!(found_path.as_deref(), secure_path.map(OsStr::new), "{search_path:?}");
        }
    }

    #[test]
    fn the_search_path_of_the_command_itself_counts() {
        let set_path = |search_path: &str| {
            let mut command = Command::new("program");
            command.env(PATH_VARIABLE, search_path);
            secure_search_path(&mut command);
            let values: Vec<_> = command.get_envs().filter_map(|(_, value)| Some(value?.to_os_string())).collect();
            values
        };
        assert_eq!(set_path(".:/theirs"), ["/theirs"]);
        assert_eq!(set_path("/theirs"), ["/theirs"]);
    }
}
