//! What an agent without a sandbox changes in the user's project is noticed, asked about and put back.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt, symlink},
    process::{Command, Stdio},
};

use serde_json::Value;
use tribunal_supervise::probe_sandbox;

use crate::{
    common::{CommandOutput, Sandbox},
    loop_sandbox::{loop_sandbox, run_git, write_agent},
};

const OFF: [(&str, &str); 1] = [("TRIBUNAL_SANDBOX__MODE", "off")];

/// Runs a command with nothing opened for the tests, and with these variables.
fn run_with(sandbox: &Sandbox, args: &[&str], variables: &[(&str, &str)]) -> CommandOutput {
    let mut command = sandbox.tribunal_command(args);
    command.env_remove("TRIBUNAL_SANDBOX__WRITE").envs(variables.iter().copied());
    CommandOutput::from_output(command.output().unwrap())
}

/// A repository with a document, some ignored files, and a reviewer that runs `commands` in the user's project.
fn sandbox_with_reviewer(commands: &str) -> Sandbox {
    let sandbox = Sandbox::with_shell_agent("");
    sandbox.write_file(".gitignore", "node_modules\n.env\ntarget\n");
    sandbox.write_file("src/lib.rs", "fn lib() {}\n");
    sandbox.write_file("node_modules/.bin/jest", "#!/bin/sh\n");
    sandbox.write_file(".env", "KEY=mine\n");
    sandbox.write_file("target/debug/app", "app\n");
    symlink("src/lib.rs", sandbox.path_of("current")).unwrap();
    let root = sandbox.root_dir().display().to_string();
    sandbox.write_file("agent.sh", &format!("cat > /dev/null\n(cd '{root}'\n{commands}\n)\necho 'findings: []'\n"));
    run_git(&sandbox, &["init", "-q", "-b", "main"]);
    run_git(&sandbox, &["add", "-A"]);
    sandbox
}

fn review(sandbox: &Sandbox) -> CommandOutput {
    run_with(sandbox, &["review", "plan.md", "--no-fix"], &OFF)
}

/// Returns the questions about stray edits.
fn stray_decisions(sandbox: &Sandbox) -> Vec<Value> {
    let decisions = sandbox.run_json(&["decisions"]);
    let all_decisions = decisions["decisions"].as_array().unwrap().iter();
    all_decisions.filter(|decision| decision["about"]["about"] == "strayed").cloned().collect()
}

/// Lets an unsandboxed reviewer run the commands, and returns the one question that follows.
fn ask_about(commands: &str) -> (Sandbox, String) {
    let sandbox = sandbox_with_reviewer(commands);
    let output = review(&sandbox);
    assert_eq!(output.exit_code, Some(3), "{}{}", output.stdout, output.stderr);
    let decisions = stray_decisions(&sandbox);
    let [decision] = decisions.as_slice() else { panic!("{decisions:?}") };
    let question = decision["question"].as_str().unwrap().to_string();
    (sandbox, question)
}

/// Answers that the user did not do it.
fn restore(sandbox: &Sandbox) -> CommandOutput {
    assert_eq!(sandbox.run_tribunal(&["decisions", "D1", "restore"]).exit_code, Some(0));
    // The agent does no more harm.
    sandbox.write_file("agent.sh", "cat > /dev/null\necho 'findings: []'\n");
    let output = run_with(sandbox, &["resume"], &OFF);
    assert_eq!(output.exit_code, Some(0), "{}{}", output.stdout, output.stderr);
    output
}

fn is_missing(sandbox: &Sandbox, path: &str) -> bool {
    fs::symlink_metadata(sandbox.path_of(path)).is_err()
}

/// Lists the names of what was moved aside.
fn parked_names(sandbox: &Sandbox) -> Vec<String> {
    let parked_dir = sandbox.path_of(&format!(".tribunal/parked/{}", sandbox.last_run_id()));
    let mut names: Vec<String> = fs::read_dir(parked_dir)
        .unwrap()
        .map(|dir_entry| dir_entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_new_symlink_is_asked_about_and_moved_aside() {
    let (sandbox, question) = ask_about("ln -s /etc/passwd src/planted");
    assert!(question.starts_with("src/planted appeared (a symlink to /etc/passwd) while agents"), "{question}");
    restore(&sandbox);
    assert!(is_missing(&sandbox, "src/planted"));
    assert_eq!(parked_names(&sandbox), ["1-planted"]);
}

#[test]
fn a_retargeted_symlink_gets_its_old_target_back() {
    let (sandbox, question) = ask_about("ln -sfn /etc/passwd current");
    assert!(question.starts_with("current points to /etc/passwd (before: src/lib.rs) while"), "{question}");
    restore(&sandbox);
    assert_eq!(fs::read_link(sandbox.path_of("current")).unwrap().to_str(), Some("src/lib.rs"));
}

#[test]
fn a_new_repository_and_a_directory_that_ignores_itself_are_asked_about_and_moved_aside() {
    let (sandbox, question) = ask_about(
        "git init -q planted && echo x > planted/x\n\
         mkdir hidden && echo '*' > hidden/.gitignore && for n in 1 2 3 4 5 6; do echo $n > hidden/$n; done",
    );
    assert!(question.contains("hidden/ appeared (7 files)") && question.contains("planted/ appeared ("), "{question}");
    restore(&sandbox);
    assert!(is_missing(&sandbox, "planted") && is_missing(&sandbox, "hidden"));
    assert_eq!(parked_names(&sandbox), ["1-hidden", "1-planted"]);
}

#[test]
fn backups_and_temporary_files_are_asked_about() {
    let (sandbox, question) = ask_about("for name in a.bak a.tmp .a.swp a~ a.part; do echo x > src/$name; done");
    for name in ["src/a.bak", "src/a.tmp", "src/.a.swp", "src/a~", "src/a.part"] {
        assert!(question.contains(&format!("{name} appeared")), "{question}");
    }
    restore(&sandbox);
    assert_eq!(fs::read_dir(sandbox.path_of("src")).unwrap().count(), 1);
}

#[test]
fn a_fifo_is_asked_about_and_moved_aside() {
    let (sandbox, question) = ask_about("mkfifo src/pipe");
    assert!(question.starts_with("src/pipe appeared (a FIFO, socket or device) while"), "{question}");
    restore(&sandbox);
    assert!(is_missing(&sandbox, "src/pipe"));
}

#[test]
fn a_changed_mode_is_asked_about_and_put_back() {
    let (sandbox, question) = ask_about("chmod 755 src/lib.rs");
    assert!(question.starts_with("src/lib.rs has the mode 755 (before: 6"), "{question}");
    restore(&sandbox);
    let mode = fs::metadata(sandbox.path_of("src/lib.rs")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0);
    assert_eq!(sandbox.read_file("src/lib.rs"), "fn lib() {}\n");
}

#[test]
fn ignored_files_are_asked_about_and_named_as_lost_in_the_same_question() {
    let (sandbox, question) = ask_about(
        "echo evil >> node_modules/.bin/jest; echo KEY=theirs > .env; echo evil > node_modules/.bin/new\n\
         echo evil >> src/lib.rs",
    );
    for description in ["node_modules/.bin/jest was changed", ".env was changed", "node_modules/.bin/new appeared"] {
        assert!(question.contains(description), "{question}");
    }
    assert!(question.ends_with("What cannot be put back: .env, node_modules/.bin/jest."), "{question}");
    let output = restore(&sandbox);
    assert!(output.stderr.contains(".env stays as it is: its previous state was not kept"), "{}", output.stderr);
    assert!(is_missing(&sandbox, "node_modules/.bin/new"));
    assert_eq!(sandbox.read_file("src/lib.rs"), "fn lib() {}\n");
}

#[test]
fn build_output_is_one_item_of_the_question() {
    let (_sandbox, question) = ask_about(
        "mkdir -p target/debug/deps; for n in $(seq 312); do echo $n > target/debug/deps/$n; done\n\
         echo other > target/debug/app",
    );
    assert!(question.starts_with("target/debug/ was changed (313 files) while agents were running"), "{question}");
}

#[test]
fn new_files_are_asked_about_where_there_is_no_git() {
    let sandbox = Sandbox::with_shell_agent("");
    let root = sandbox.root_dir().display().to_string();
    sandbox.write_file("agent.sh", &format!("cat > /dev/null\necho x > '{root}/planted.sh'\necho 'findings: []'\n"));
    let output = review(&sandbox);
    assert_eq!(output.exit_code, Some(3), "{}{}", output.stdout, output.stderr);
    let decisions = stray_decisions(&sandbox);
    assert!(decisions[0]["question"].as_str().unwrap().starts_with("planted.sh appeared while"), "{decisions:?}");
    restore(&sandbox);
    assert!(is_missing(&sandbox, "planted.sh"));
}

#[test]
fn an_edit_that_the_user_confirms_stays() {
    let (sandbox, _) = ask_about("echo mine >> src/lib.rs; ln -s lib.rs src/planted");
    assert_eq!(sandbox.run_tribunal(&["decisions", "D1", "keep"]).exit_code, Some(0));
    let output = run_with(&sandbox, &["resume"], &OFF);
    assert_eq!(output.exit_code, Some(0), "{}{}", output.stdout, output.stderr);
    assert_eq!(sandbox.read_file("src/lib.rs"), "fn lib() {}\nmine\n");
    assert!(!is_missing(&sandbox, "src/planted"));
}

/// Adds a line in its clone and runs commands in the user's checkout, then says that the task is done.
fn loop_with_strays(commands: &str) -> Sandbox {
    let sandbox = loop_sandbox("");
    let root = sandbox.root_dir().display().to_string();
    write_agent(&sandbox, &format!("echo two >> src/lib.txt\n(cd '{root}'\n{commands}\n)\npromise\n"));
    sandbox
}

fn run_loop(sandbox: &Sandbox, more_args: &[&str]) -> CommandOutput {
    run_with(sandbox, &[&["loop", "run", "-p", "Add a line."], more_args].concat(), &OFF)
}

#[test]
fn a_loop_does_not_land_before_stray_edits_are_answered_for() {
    let sandbox = loop_with_strays("echo evil > planted; echo evil >> notes.txt; chmod 755 src/lib.txt");
    sandbox.write_file("notes.txt", "my own words\n");
    let output = run_loop(&sandbox, &[]);
    assert_eq!(output.exit_code, Some(3), "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("3 files changed outside this run"), "{}", output.stderr);
    assert_eq!(run_git(&sandbox, &["log", "--format=%s", "main"]), "Begin\n");
    let decisions = stray_decisions(&sandbox);
    assert_eq!(decisions.len(), 1, "{decisions:?}");
    assert_eq!(sandbox.run_tribunal(&["decisions", "D1", "restore"]).exit_code, Some(0));
    let output = run_with(&sandbox, &["resume"], &OFF);
    assert_eq!(output.exit_code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(is_missing(&sandbox, "planted"));
    assert_eq!(sandbox.read_file("notes.txt"), "my own words\n");
    assert_eq!(sandbox.read_file("src/lib.txt"), "one\ntwo\n", "the work landed");
    assert_eq!(fs::metadata(sandbox.path_of("src/lib.txt")).unwrap().permissions().mode() & 0o111, 0);
}

#[test]
fn a_loop_in_place_asks_nothing_about_its_own_workspace() {
    let sandbox = loop_with_strays("echo more > more.txt");
    let output = run_loop(&sandbox, &["--in-place"]);
    assert_eq!(output.exit_code, Some(0), "{}{}", output.stdout, output.stderr);
    assert_eq!(stray_decisions(&sandbox), [] as [Value; 0]);
}

/// Lets the user edit a file while a reviewer works, which waits for it.
fn edit_during_review(variables: &[(&str, &str)]) -> (Sandbox, CommandOutput) {
    let sandbox = sandbox_with_reviewer("");
    let gate = sandbox.path_of("../gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let script = format!("cat > /dev/null\nread word < '{}'\necho 'findings: []'\n", gate.display());
    sandbox.write_file("agent.sh", &script);
    let mut command = sandbox.tribunal_command(&["review", "plan.md", "--no-fix"]);
    command.env_remove("TRIBUNAL_SANDBOX__WRITE").envs(variables.iter().copied());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Opening the pipe waits for the agent.
    let mut gate_file = fs::OpenOptions::new().write(true).open(&gate).unwrap();
    sandbox.write_file("src/lib.rs", "fn mine() {}\n");
    sandbox.write_file("new.md", "mine\n");
    gate_file.write_all(b"go\n").unwrap();
    drop(gate_file);
    let output = CommandOutput::from_output(child.wait_with_output().unwrap());
    (sandbox, output)
}

#[test]
fn with_the_sandbox_the_users_edits_are_the_users_and_nothing_is_asked() {
    if !probe_sandbox().is_available() {
        return;
    }
    let (sandbox, output) = edit_during_review(&[]);
    assert_eq!(output.exit_code, Some(0), "{}{}", output.stdout, output.stderr);
    assert_eq!(stray_decisions(&sandbox), [] as [Value; 0]);
}

#[test]
fn without_the_sandbox_the_same_edits_are_asked_about() {
    let (sandbox, output) = edit_during_review(&OFF);
    assert_eq!(output.exit_code, Some(3), "{}{}", output.stdout, output.stderr);
    assert_eq!(stray_decisions(&sandbox).len(), 1);
}

#[test]
fn an_agent_that_may_write_the_project_in_its_sandbox_is_watched() {
    if !probe_sandbox().is_available() {
        return;
    }
    let sandbox = sandbox_with_reviewer("echo evil > src/planted");
    let writable = format!("[{:?}]", sandbox.path_of("src"));
    let output = run_with(&sandbox, &["review", "plan.md", "--no-fix"], &[("TRIBUNAL_SANDBOX__WRITE", &writable)]);
    assert_eq!(output.exit_code, Some(3), "{}{}", output.stdout, output.stderr);
    assert_eq!(stray_decisions(&sandbox).len(), 1);
}
