//! A git repository in which headless loops run, with a shell script as the agent of every iteration.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::common::{Sandbox, scripted_agent_path};

/// Reads the prompt into `$prompt` and the number of the iteration into `$n`, and hands reviews to the scripted agent. The number
/// comes from the prompt: an iteration that was killed and is repeated then does the same again.
const AGENT_HEAD: &str = "prompt=$(cat)
echo \"$TRIBUNAL_RUN $TRIBUNAL_TASK\" >> CALLS
case $TRIBUNAL_TASK in
iteration-*) ;;
*) printf '%s' \"$prompt\" | exec SCRIPTED_AGENT REVIEW_SCRIPT ;;
esac
n=$(printf '%s\\n' \"$prompt\" | sed -n 's/^This is iteration \\([0-9]*\\) of at most.*/\\1/p' | tail -n 1)
printf '%s' \"$prompt\" > PROMPTS/$n
promise() { echo '<promise>COMPLETE</promise>'; }
";

/// Creates a repository with one commit on `main`, in which `agent_script` is the agent of loops. The script has `$n`, the
/// number of the iteration, and `promise`, which says that the task is done; its directory is the workspace.
pub(crate) fn loop_sandbox(agent_script: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    fs::create_dir_all(prompt_dir(&sandbox)).unwrap();
    fs::create_dir_all(sandbox.home_dir()).unwrap();
    write_agent(&sandbox, agent_script);
    write_review_script(&sandbox, "tasks: [{task: '*', steps: [{findings: []}]}]\n");
    sandbox.write_file(
        "tribunal.yaml",
        &format!(
            "tier: 0\nagents: {{use: [worker], worker: {{driver: command, argv: [sh, {:?}]}}}}\n\
             tasks: {{retry_after: 0}}\n",
            agent_path(&sandbox)
        ),
    );
    sandbox.write_file("src/lib.txt", "one\n");
    run_git(&sandbox, &["init", "-q", "-b", "main"]);
    run_git(&sandbox, &["config", "user.name", "n"]);
    run_git(&sandbox, &["config", "user.email", "e@e"]);
    run_git(&sandbox, &["config", "commit.gpgSign", "false"]);
    // The settings name the sandbox; without them all sandboxes have the same trees.
    sandbox.write_file(".git/info/exclude", "/tribunal.yaml\n");
    commit_all(&sandbox, "Begin");
    sandbox
}

fn agent_path(sandbox: &Sandbox) -> PathBuf {
    sandbox.path_of("../agent.sh")
}

fn prompt_dir(sandbox: &Sandbox) -> PathBuf {
    sandbox.path_of("../prompts")
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

/// Replaces what the agent does in an iteration.
pub(crate) fn write_agent(sandbox: &Sandbox, agent_script: &str) {
    let head = AGENT_HEAD
        .replace("CALLS", &quoted(&sandbox.path_of("../calls")))
        .replace("SCRIPTED_AGENT", &quoted(&scripted_agent_path()))
        .replace("REVIEW_SCRIPT", &quoted(&sandbox.path_of("../review.yaml")))
        .replace("PROMPTS", &quoted(&prompt_dir(sandbox)));
    fs::write(agent_path(sandbox), format!("{head}{agent_script}")).unwrap();
}

/// Replaces what reviewers of the changes say.
pub(crate) fn write_review_script(sandbox: &Sandbox, script: &str) {
    sandbox.write_file("../review.yaml", script);
}

/// Returns the prompt of an iteration.
pub(crate) fn prompt_of(sandbox: &Sandbox, iteration: u32) -> String {
    fs::read_to_string(prompt_dir(sandbox).join(iteration.to_string())).unwrap()
}

/// Returns how often an agent was started for each task of each run.
pub(crate) fn count_calls(sandbox: &Sandbox) -> BTreeMap<String, usize> {
    let mut call_counts = BTreeMap::new();
    for call in fs::read_to_string(sandbox.path_of("../calls")).unwrap_or_default().lines() {
        *call_counts.entry(call.to_string()).or_default() += 1;
    }
    call_counts
}

/// Runs git in the checkout of the user and returns what it prints.
pub(crate) fn run_git(sandbox: &Sandbox, args: &[&str]) -> String {
    let output = sandbox.isolated_command("git").args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn commit_all(sandbox: &Sandbox, message: &str) {
    run_git(sandbox, &["add", "-A"]);
    run_git(sandbox, &["commit", "-q", "-m", message]);
}

/// Returns the workspaces that are left under the user's cache directory.
pub(crate) fn workspaces_left(sandbox: &Sandbox) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![sandbox.home_dir().join("cache")];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for path in entries.flatten().map(|dir_entry| dir_entry.path()) {
            if path.join(".git").exists() {
                found.push(path);
            } else if path.is_dir() {
                directories.push(path);
            }
        }
    }
    found
}
