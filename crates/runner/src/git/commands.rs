//! Builds the commands that start git: nothing of a foreign configuration runs, and no variable leads to another repository.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use tribunal_supervise::secure_search_path;

/// Environment variables that would lead git to a repository other than the one of its working directory.
pub(crate) const REDIRECTING_VARIABLES: [&str; 11] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_SHALLOW_FILE",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
];
/// Environment variables that would change the form of git's output.
const OUTPUT_VARIABLES: [&str; 3] = ["GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS", "GIT_TRACE"];

/// Returns a git command for a directory that ignores all configuration which could run a program. Filters need a look at
/// the repository first: see [`GitRepository`].
pub(crate) fn git_command(project_root: &Path) -> Command {
    let mut command = index_writing_command(project_root);
    // Same as the option `--no-optional-locks`: a query must not write to the user's index.
    command.env("GIT_OPTIONAL_LOCKS", "0");
    command
}

/// Returns the same command for work that may write to the index, for instance to remember that files are unchanged.
pub(crate) fn index_writing_command(project_root: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("--no-pager");
    // These settings take precedence over the repository's own configuration, which may name programs to run.
    for setting in [
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
        "core.pager=cat",
        "core.quotePath=false",
        "safe.bareRepository=explicit",
        "protocol.allow=never",
        "color.ui=false",
    ] {
        command.args(["-c", setting]);
    }
    for variable in REDIRECTING_VARIABLES.iter().chain(&OUTPUT_VARIABLES) {
        command.env_remove(variable);
    }
    command
        .current_dir(project_root)
        // Error messages are compared with English text, so the locale is fixed.
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        // A partial clone must not contact its remote to fetch missing objects.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env_remove("GIT_OPTIONAL_LOCKS")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    // A file called `git` in the project is not git.
    secure_search_path(&mut command);
    #[cfg(test)]
    test_config::apply_global_config(&mut command);
    command
}

/// Returns a git command that does what the user would do by hand, with the configuration of the repository.
pub(super) fn user_command(project_root: &Path) -> Command {
    let mut command = Command::new("git");
    for variable in REDIRECTING_VARIABLES {
        command.env_remove(variable);
    }
    command.current_dir(project_root).env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    secure_search_path(&mut command);
    #[cfg(test)]
    test_config::apply_global_config(&mut command);
    command
}

/// Lets a test choose the user's global configuration, for the commands that its own thread starts, and count these commands.
#[cfg(test)]
pub(crate) mod test_config {
    use std::{
        cell::{Cell, RefCell},
        path::PathBuf,
        process::Command,
    };

    thread_local! {
        pub static STARTED: Cell<u32> = const { Cell::new(0) };
        pub static GLOBAL_CONFIG: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
    }

    pub fn apply_global_config(command: &mut Command) {
        if let Some(config_file) = GLOBAL_CONFIG.with_borrow(Clone::clone) {
            command.env("GIT_CONFIG_GLOBAL", config_file).env("GIT_CONFIG_NOSYSTEM", "1");
        }
    }
}
