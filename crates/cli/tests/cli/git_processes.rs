//! How many git processes a story starts. Each one costs milliseconds, in large repositories many more.

use std::{env, fs, os::unix::fs::PermissionsExt, path::PathBuf};

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::run_git,
    story_sandbox::{STORY, story_sandbox},
};

/// The limit that the benchmarks have as well, where every raise has its reason.
const MAX_GIT_PROCESSES: usize = 32;
const LOGGING_GIT: &str = "#!/bin/sh\nprintf '%s\\n' \"$*\" >> LOG\nexec GIT \"$@\"\n";

/// Creates a project with a story, no checks, and an agent that develops it at once.
fn project_without_checks() -> Sandbox {
    let sandbox = story_sandbox("develop\n");
    let settings = sandbox.read_file("tribunal.yaml").replace("checks: [\"sh check.sh\"]\n", "");
    sandbox.write_file("tribunal.yaml", &settings);
    sandbox
}

/// Runs a command that must succeed, and returns the command lines of the git processes that it started.
fn list_git_processes(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let (bin_dir, log_file) = (sandbox.path_of("../git-bin"), sandbox.path_of("../git-log"));
    let search_path = env::var_os("PATH").unwrap();
    let mut directories: Vec<PathBuf> = env::split_paths(&search_path).collect();
    let real_git = directories.iter().map(|directory| directory.join("git")).find(|path| path.is_file()).unwrap();
    let quote = |path: &PathBuf| format!("'{}'", path.display());
    fs::create_dir_all(&bin_dir).unwrap();
    fs::write(bin_dir.join("git"), LOGGING_GIT.replace("LOG", &quote(&log_file)).replace("GIT", &quote(&real_git)))
        .unwrap();
    fs::set_permissions(bin_dir.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = sandbox.tribunal_command(arguments);
    directories.insert(0, bin_dir);
    command.env("PATH", env::join_paths(directories).unwrap());
    let output = CommandOutput::from_output(command.output().unwrap());
    assert_eq!(output.exit_code, Some(0), "{}{}", output.stdout, output.stderr);
    let logged = fs::read_to_string(log_file);
    let logged =
        logged.unwrap_or_else(|error| panic!("no git was logged ({error}): {}{}", output.stdout, output.stderr));
    logged.lines().map(str::to_string).collect()
}

#[test]
fn a_story_starts_few_git_processes() {
    let sandbox = project_without_checks();
    let started = list_git_processes(&sandbox, &["sprint", "1.2", "--review", "off"]);
    assert!(sandbox.read_file(STORY).contains("Status: done"));
    assert!(started.len() <= MAX_GIT_PROCESSES, "{}: {started:#?}", started.len());
}

#[test]
fn a_story_finds_the_same_where_nothing_can_be_read_from_the_files_of_git() {
    let sandbox = project_without_checks();
    // The branch has no file of its own, and the layout is one that only git knows.
    run_git(&sandbox, &["config", "extensions.worktreeConfig", "true"]);
    run_git(&sandbox, &["pack-refs", "--all"]);
    let started = list_git_processes(&sandbox, &["sprint", "1.2", "--review", "off"]);
    assert!(started.len() > MAX_GIT_PROCESSES, "git was not asked");
    assert_eq!(run_git(&sandbox, &["log", "--format=%s", "-1"]), "Story 1-2-sift: Sift the flour\n");
    assert_eq!(run_git(&sandbox, &["status", "--porcelain"]), "");
    assert_eq!(run_git(&sandbox, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main\n");
}
