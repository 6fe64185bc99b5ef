//! What checks change in the work is named and put back, however they hide it.

use tribunal_workflows::development::checks::CommandLine;

use super::*;
use crate::workspaces::development::{
    CheckTraces, WorkSnapshot,
    frozen_work::{FrozenContent, TreeHold},
};

fn begin(workspace: &DevelopmentWorkspace) -> WorkSnapshot {
    let (snapshot, left) = begin_after(workspace);
    assert!(left.changed.is_empty() && left.made.is_empty(), "{left:?}");
    snapshot
}

/// Freezes the work and prepares for checks. Returns also what interrupted checks had left.
fn begin_after(workspace: &DevelopmentWorkspace) -> (WorkSnapshot, CheckTraces) {
    let FrozenContent { tree, left, .. } = workspace.freeze_content(&Masker::new([])).unwrap();
    let TreeHold::Held(held) = workspace.hold_tree(&tree).unwrap() else { panic!("no user edits anything") };
    (workspace.begin_checks(held).unwrap(), left)
}

/// Runs a line for a shell in the workspace, as a check does, and returns what it left.
fn check(workspace: &DevelopmentWorkspace, snapshot: &mut WorkSnapshot, shell_line: &str) -> CheckTraces {
    let status = Command::new("sh").args(["-c", shell_line]).current_dir(workspace.agent_dir()).status().unwrap();
    assert!(status.success(), "{shell_line}");
    snapshot.restore_changes().unwrap()
}

fn project_with_work() -> (UserProject, DevelopmentWorkspace) {
    let project =
        UserProject::with_files(&[("src/a.sh", "echo a\n"), ("tests/a.sh", "true\n"), (".gitignore", "out/\n")]);
    let workspace = project.open();
    workspace.write("src/a.sh", "echo b\n");
    workspace.write("src/new.sh", "echo new\n");
    (project, workspace)
}

#[test]
fn every_change_of_the_work_is_put_back() {
    let (_project, workspace) = project_with_work();
    let state = workspace.state();
    for (shell_line, expected) in [
        ("echo evil > src/a.sh", vec!["src/a.sh"]),
        ("echo evil >> src/new.sh; rm tests/a.sh", vec!["src/new.sh", "tests/a.sh"]),
        ("chmod +x src/a.sh", vec!["src/a.sh"]),
        ("rm -r src; echo evil > src", vec!["src/a.sh", "src/new.sh"]),
        ("rm src/a.sh; mkdir src/a.sh; echo evil > src/a.sh/x", vec!["src/a.sh"]),
        ("mv src elsewhere; ln -s elsewhere src", vec!["src/a.sh", "src/new.sh"]),
        ("rm src/a.sh; ln -s /etc/passwd src/a.sh", vec!["src/a.sh"]),
        ("mkdir -p shut; echo evil > shut/x; echo evil > src/a.sh; chmod 0500 shut src", vec!["src/a.sh"]),
        ("echo evil > src/a.sh; chmod 0 src/a.sh; chmod 0 src", vec!["src/a.sh"]),
        ("echo 'src/' > .gitignore; rm src/new.sh", vec![".gitignore", "src/new.sh"]),
        // The same size, the same name, the old time.
        ("cp -p src/a.sh keep; printf 'echo c\\n' > src/a.sh; touch -r keep src/a.sh; rm keep", vec!["src/a.sh"]),
    ] {
        let mut snapshot = begin(&workspace);
        let traces = check(&workspace, &mut snapshot, shell_line);
        assert_eq!(traces.changed, expected, "{shell_line}");
        snapshot.finish().unwrap();
        assert_eq!(workspace.state(), state, "{shell_line}");
        assert_eq!(workspace.read("src/a.sh"), "echo b\n", "{shell_line}");
    }
}

#[test]
fn an_ignore_file_that_hides_itself_hides_nothing_of_the_work() {
    let (_project, workspace) = project_with_work();
    let state = workspace.state();
    let mut snapshot = begin(&workspace);
    let hide = "printf 'new.sh\\nevil.sh\\n.gitignore\\n' > src/.gitignore; echo evil > src/evil.sh";
    let traces = check(&workspace, &mut snapshot, hide);
    assert_eq!((traces.changed.len(), traces.made), (0, vec!["src/.gitignore".to_string(), "src/evil.sh".to_string()]));
    snapshot.finish().unwrap();
    assert_eq!(workspace.state(), state);
}

#[test]
fn a_commit_of_the_user_during_a_check_in_the_checkout_stays() {
    let project = UserProject::with_files(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let workspace = project.open_in_place();
    workspace.write("a.txt", "two\n");
    let mut snapshot = begin(&workspace);
    project.write("b.txt", "hotfix\n");
    project.write("c.txt", "new\n");
    project.git(&["add", "b.txt", "c.txt"]);
    project.git(&["commit", "-q", "-m", "Hotfix"]);
    let traces = snapshot.restore_changes().unwrap();
    assert_eq!((traces.changed.len(), traces.made.len(), traces.parked.len()), (0, 0, 0), "{traces:?}");
    // The process is killed here, and the user goes on.
    drop(snapshot);
    let (snapshot, left) = begin_after(&project.reopen());
    assert!(left.changed.is_empty() && left.made.is_empty(), "{left:?}");
    snapshot.finish().unwrap();
    assert_eq!(
        (project.read("a.txt"), project.read("b.txt"), project.read("c.txt")),
        ("two\n".into(), "hotfix\n".into(), "new\n".into())
    );
}

#[test]
fn a_repository_that_an_agent_made_in_its_clone_is_not_blamed_on_a_check() {
    let (_project, workspace) = project_with_work();
    workspace.write("vendor/x.txt", "x\n");
    Command::new("git").args(["init", "-q"]).current_dir(workspace.agent_dir().join("vendor")).status().unwrap();
    let mut snapshot = begin(&workspace);
    assert_eq!(check(&workspace, &mut snapshot, "true").made, Vec::<String>::new());
    snapshot.finish().unwrap();
    assert_eq!(workspace.read("vendor/x.txt"), "x\n");
}

#[test]
fn what_checks_make_stays_until_the_last_one_and_ignored_files_stay_for_good() {
    let (_project, workspace) = project_with_work();
    let mut snapshot = begin(&workspace);
    let traces =
        check(&workspace, &mut snapshot, "mkdir -p out cov; echo x > out/cache; echo y > cov/report; echo z > x.log");
    assert_eq!((traces.changed.len(), traces.made), (0, vec!["cov/report".to_string(), "x.log".to_string()]));
    let traces = check(&workspace, &mut snapshot, "test -f cov/report && echo more > y.log");
    assert_eq!(traces.made, ["y.log"]);
    assert_eq!(snapshot.finish().unwrap(), Vec::<String>::new());
    let left: Vec<bool> =
        ["cov/report", "x.log", "y.log", "out/cache"].map(|path| workspace.agent_dir().join(path).exists()).to_vec();
    assert_eq!(left, [false, false, false, true]);
}

#[test]
fn a_process_that_ends_during_checks_leaves_nothing_of_them_in_the_work() {
    let (project, workspace) = project_with_work();
    let state = workspace.state();
    let snapshot = begin(&workspace);
    workspace.write("src/a.sh", "echo evil\n");
    workspace.write("made.txt", "x\n");
    // The process is killed here.
    drop(snapshot);
    let (snapshot, left) = begin_after(&project.reopen());
    assert_eq!((left.changed, left.made), (vec!["src/a.sh".to_string()], vec!["made.txt".to_string()]));
    assert_eq!(left.parked.len(), 2, "nothing gets lost: {:?}", left.parked);
    assert_eq!(fs::read_to_string(&left.parked[0]).unwrap(), "echo evil\n");
    snapshot.finish().unwrap();
    assert_eq!(workspace.state(), state);
    // After checks that ended, the work may go on.
    workspace.write("src/a.sh", "echo c\n");
    begin(&workspace).finish().unwrap();
    assert_eq!(workspace.read("src/a.sh"), "echo c\n");
}

#[test]
fn in_the_checkout_what_is_replaced_is_kept() {
    let project = UserProject::with_files(&[("a.txt", "one\n")]);
    let workspace = project.open_in_place();
    workspace.write("a.txt", "two\n");
    let mut snapshot = begin(&workspace);
    let traces = check(&workspace, &mut snapshot, "echo three > a.txt; echo mine > notes.txt");
    assert_eq!((traces.changed, traces.made), (vec!["a.txt".to_string()], vec!["notes.txt".to_string()]));
    assert_eq!(project.read(&traces.parked[0]), "three\n");
    let parked = snapshot.finish().unwrap();
    assert_eq!((project.read(&parked[0]).as_str(), project.read("a.txt").as_str()), ("mine\n", "two\n"));
    assert!(!project.root().join("notes.txt").exists());
}

#[test]
fn lock_files_and_what_the_base_has_changed_as_well_do_not_count() {
    let project = UserProject::with_files(&[("Cargo.lock", "one\n"), ("stamp.txt", "one\n"), ("a.sh", "true\n")]);
    let workspace = project.open();
    let command = CommandLine::from_shell_line("sh check.sh");
    let judge = |shell_line: &str, command: &CommandLine| {
        let mut snapshot = begin(&workspace);
        let status = Command::new("sh").args(["-c", shell_line]).current_dir(workspace.agent_dir()).status().unwrap();
        assert!(status.success());
        let judged = snapshot.judge_changes(command).unwrap();
        snapshot.finish().unwrap();
        (judged.forbidden, judged.tolerated, judged.traces.diff)
    };
    // On the untouched base.
    let (forbidden, tolerated, _) = judge("echo two > stamp.txt", &command);
    assert_eq!((forbidden.len(), tolerated), (0, vec!["stamp.txt".to_string()]));
    workspace.write("a.sh", "echo work\n");
    let change_all = "echo two > stamp.txt; echo two > Cargo.lock; echo evil > a.sh";
    let (forbidden, tolerated, diff) = judge(change_all, &command);
    assert_eq!(forbidden, ["a.sh"]);
    assert_eq!(tolerated, ["Cargo.lock", "stamp.txt"]);
    assert!(diff.contains("-echo work\n+evil\n"), "{diff}");
    // Another check has not changed it before.
    let (forbidden, ..) = judge("echo two > stamp.txt", &CommandLine::from_shell_line("make"));
    assert_eq!(forbidden, ["stamp.txt"]);
    assert_eq!((workspace.read("stamp.txt"), workspace.read("a.sh")), ("one\n".to_string(), "echo work\n".to_string()));
}

#[test]
fn a_tree_is_held_in_a_clone_and_the_user_is_told_in_the_checkout() {
    let project = UserProject::with_files(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let workspace = project.open();
    workspace.write("a.txt", "two\n");
    let FrozenContent { tree, .. } = workspace.freeze_content(&Masker::new([])).unwrap();
    workspace.write("a.txt", "evil\n");
    workspace.write("new.txt", "evil\n");
    let TreeHold::Held(held) = workspace.hold_tree(&tree).unwrap() else { panic!("files of a clone are put back") };
    assert_eq!((held.put_back.changed, held.put_back.made), (vec!["a.txt".to_string()], vec!["new.txt".to_string()]));
    assert_eq!(workspace.read("a.txt"), "two\n");
    // Only named files are added to it, and the index is made anew where it is that of another tree.
    workspace.write("a.txt", "written\n");
    workspace.write("b.txt", "edited\n");
    let written = workspace.freeze_also(&tree, &["a.txt".to_string()]).unwrap();
    assert_eq!(workspace.list_differences(tree.as_str(), written.as_str()).unwrap(), ["a.txt"]);
    let TreeHold::Held(held) = workspace.hold_tree(&tree).unwrap() else { panic!("files of a clone are put back") };
    assert_eq!(held.put_back.changed, ["a.txt", "b.txt"]);
    // A process that ended while it changed the index has left no mark.
    workspace.write("a.txt", "written\n");
    let index_git = workspace.require_index(&tree).unwrap();
    fs::remove_file(workspace.directory.join("frozen.json")).unwrap();
    index_git.run(["update-index", "a.txt"]).unwrap();
    assert_eq!(workspace.freeze_also(&tree, &["a.txt".to_string()]).unwrap(), written);
    let in_place = UserProject::with_files(&[("a.txt", "one\n")]);
    let workspace = in_place.open_in_place();
    workspace.write("a.txt", "two\n");
    let FrozenContent { tree, .. } = workspace.freeze_content(&Masker::new([])).unwrap();
    workspace.write("mine.txt", "mine\n");
    assert!(matches!(workspace.hold_tree(&tree).unwrap(), TreeHold::Held(_)), "a new file is no part of the work");
    workspace.write("a.txt", "mine\n");
    assert!(matches!(workspace.hold_tree(&tree).unwrap(), TreeHold::Edited(paths) if paths == ["a.txt"]));
    assert_eq!((workspace.read("a.txt"), workspace.read("mine.txt")), ("mine\n".to_string(), "mine\n".to_string()));
}

#[test]
fn an_agent_has_its_git_directory_back_after_checks_and_after_a_kill_in_them() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let workspace = project.open();
    let tree = workspace.record.tree.clone();
    let agent_git = |arguments: &[&str]| project.git_in(&tree, arguments);
    agent_git(&["config", "alias.mine", "status"]);
    workspace.write("a.txt", "stashed\n");
    agent_git(&["stash", "push", "-q"]);
    workspace.write("a.txt", "work\n");
    agent_git(&["commit", "-qam", "by the agent"]);
    let before =
        (agent_git(&["log", "--format=%s"]), agent_git(&["stash", "list"]), agent_git(&["config", "alias.mine"]));
    for is_killed in [false, true] {
        let frozen = workspace.freeze_content(&Masker::new([])).unwrap().tree;
        let TreeHold::Held(held) = workspace.hold_tree(&frozen).unwrap() else { panic!("it is a clone") };
        let snapshot = workspace.begin_checks(held).unwrap();
        assert_eq!(agent_git(&["log", "--format=%s"]), "first");
        assert_eq!(agent_git(&["diff", "--name-only"]), "", "the index is the content that is checked");
        assert_eq!(agent_git(&["diff", "--name-only", "HEAD"]), "a.txt");
        assert!(!snapshot.stands_alone(), "the agent has changed its git directory");
        match is_killed {
            false => drop(snapshot.finish().unwrap()),
            true => drop(workspace.freeze_content(&Masker::new([])).unwrap()),
        }
        let after =
            (agent_git(&["log", "--format=%s"]), agent_git(&["stash", "list"]), agent_git(&["config", "alias.mine"]));
        assert_eq!(after, before, "{is_killed}");
        assert_eq!(workspace.read("a.txt"), "work\n");
    }
}
