//! Agents that work in the user's checkout and try to have git, or Tribunal itself, act outside of it.

use std::{fs, path::PathBuf};

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::loop_sandbox,
};

/// A checkout with a hook of the user, and a directory of the user's beside it.
fn checkout_with_hook(agent_script: &str) -> (Sandbox, PathBuf) {
    let sandbox = loop_sandbox(agent_script);
    sandbox.write_file(".git/hooks/pre-push", "mine\n");
    sandbox.write_file("../other/pre-push", "another\n");
    let other_dir = sandbox.path_of("../other");
    (sandbox, other_dir)
}

fn run_in_place(sandbox: &Sandbox) -> CommandOutput {
    let mut command = sandbox.tribunal_command(&["loop", "run", "-p", "Add a line.", "--in-place"]);
    command.env_remove("TRIBUNAL_SANDBOX__WRITE").env("OTHER", sandbox.path_of("../other"));
    let output = CommandOutput::from_output(command.output().unwrap());
    assert_eq!(output.exit_code, Some(0), "{}{}", output.stdout, output.stderr);
    output
}

fn names_in(directory: PathBuf) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn what_is_put_back_does_not_go_through_a_link() {
    let (sandbox, other_dir) =
        checkout_with_hook("echo two >> src/lib.txt\nrm -rf .git/hooks\nln -s \"$OTHER\" .git/hooks\npromise\n");
    let hooks_before = names_in(sandbox.path_of(".git/hooks"));
    let output = run_in_place(&sandbox);
    assert_eq!(fs::read_to_string(other_dir.join("pre-push")).unwrap(), "another\n");
    assert_eq!(names_in(other_dir), ["pre-push"]);
    assert!(!sandbox.path_of(".git/hooks").is_symlink());
    assert_eq!(sandbox.read_file(".git/hooks/pre-push"), "mine\n");
    assert_eq!(names_in(sandbox.path_of(".git/hooks")), hooks_before);
    assert!(output.stderr.contains(".git/hooks/pre-push was changed while the agent worked"), "{}", output.stderr);
}

#[test]
fn a_link_of_the_user_is_put_back_and_what_it_leads_to_stays() {
    let (sandbox, other_dir) = checkout_with_hook(
        "echo two >> src/lib.txt\nrm .git/hooks\nmkdir .git/hooks\necho evil > .git/hooks/pre-push\npromise\n",
    );
    fs::remove_dir_all(sandbox.path_of(".git/hooks")).unwrap();
    std::os::unix::fs::symlink(&other_dir, sandbox.path_of(".git/hooks")).unwrap();
    let output = run_in_place(&sandbox);
    assert_eq!(fs::read_link(sandbox.path_of(".git/hooks")).unwrap(), other_dir, "{}", output.stderr);
    assert_eq!(sandbox.read_file(".git/hooks/pre-push"), "another\n");
    assert_eq!(names_in(other_dir), ["pre-push"]);
}

#[test]
fn a_directory_without_rights_hides_nothing() {
    let (sandbox, _) = checkout_with_hook(
        "echo two >> src/lib.txt\necho evil > .git/hooks/post-commit\nrm .git/hooks/pre-push\nchmod 100 .git/hooks\npromise\n",
    );
    run_in_place(&sandbox);
    assert!(!sandbox.path_of(".git/hooks/post-commit").exists());
    assert_eq!(sandbox.read_file(".git/hooks/pre-push"), "mine\n");
}

#[test]
fn the_repository_cannot_be_redirected() {
    let (sandbox, _) = checkout_with_hook(
        "echo two >> src/lib.txt\ncp -r .git evil.git\ngit --git-dir=evil.git config core.fsmonitor 'touch ran'\n\
         echo ../evil.git > .git/commondir\npromise\n",
    );
    let output = run_in_place(&sandbox);
    assert!(!sandbox.path_of(".git/commondir").exists());
    let remark = ".git/commondir was changed while the agent worked, and put back";
    assert!(output.stderr.contains(remark), "{}", output.stderr);
    assert!(!sandbox.path_of("ran").exists());
}

#[test]
fn pipes_among_the_refs_hold_nothing_up() {
    let (sandbox, _) = checkout_with_hook(
        "echo two >> src/lib.txt\nmkfifo .git/refs/heads/pipe .git/packed-refs\nln -s loop .git/refs/heads/loop\npromise\n",
    );
    let output = run_in_place(&sandbox);
    assert!(output.stderr.contains(".git/refs/heads/pipe was made while the agent worked"), "{}", output.stderr);
    assert_eq!(sandbox.read_file("src/lib.txt"), "one\ntwo\n");
}
