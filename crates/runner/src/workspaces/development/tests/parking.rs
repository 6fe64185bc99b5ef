//! Taking work out of the user's checkout and putting it back.

use std::os::unix::fs::symlink;

use tribunal_workflows::development::parking::{ParkMode, ParkOutcome};

use super::{
    super::{
        move_parked_work,
        parking::{PlannedMove, plan_move},
    },
    *,
};

const WORK_REF: &str = "refs/tribunal/work/loop-x1/dev";

/// A checkout with ignored files in it, in which an agent has changed, created, deleted and replaced files.
fn with_work() -> (UserProject, CommitId) {
    let project = UserProject::with_files(&[
        (".gitignore", "*.log\n"),
        ("a.txt", "a\n"),
        ("run.sh", "run\n"),
        ("old/gone.txt", "gone\n"),
        ("kind", "a file\n"),
        ("docs/kept.txt", "kept\n"),
    ]);
    project.write("docs/mine.log", "mine\n");
    let workspace = project.open_in_place();
    workspace.write("a.txt", "by the agent\n");
    workspace.write("new/b.txt", "new\n");
    workspace.write("new/agent.log", "ignored\n");
    make_executable(&project.root().join("run.sh"));
    fs::remove_dir_all(project.root().join("old")).unwrap();
    fs::remove_file(project.root().join("kind")).unwrap();
    workspace.write("kind/inner.txt", "now a directory\n");
    symlink("a.txt", project.root().join("link")).unwrap();
    let commit = workspace.commit("work in progress");
    (project, commit)
}

fn move_work(project: &UserProject, mode: ParkMode) -> ParkOutcome {
    move_parked_work(project.reopen(), mode).unwrap()
}

/// Leaves a move as it is when its record was written and no file has moved.
fn interrupt_move(project: &UserProject, mode: ParkMode) {
    let workspace = project.reopen();
    let tip = workspace.control_git().read_tip().unwrap();
    match plan_move(&workspace, mode, &tip).unwrap() {
        PlannedMove::Planned(record) => workspace.save_move(&record).unwrap(),
        PlannedMove::Stopped(outcome) => panic!("{outcome:?}"),
    }
}

fn parked(commit: &CommitId) -> ParkOutcome {
    ParkOutcome::Parked { commit: commit.clone(), left: Vec::new() }
}

fn status(project: &UserProject) -> String {
    project.git(&["status", "--porcelain"])
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).unwrap().permissions().mode() & 0o100 != 0
}

fn assert_has_work(project: &UserProject) {
    assert_eq!(project.read("a.txt"), "by the agent\n");
    assert_eq!(project.read("new/b.txt"), "new\n");
    assert_eq!(project.read("kind/inner.txt"), "now a directory\n");
    assert!(is_executable(&project.root().join("run.sh")));
    assert!(!project.root().join("old").exists());
    assert_eq!(fs::read_link(project.root().join("link")).unwrap(), Path::new("a.txt"));
}

fn assert_is_put_back(project: &UserProject) {
    assert_eq!(status(project), "");
    assert_eq!(project.read("a.txt"), "a\n");
    assert_eq!(project.read("old/gone.txt"), "gone\n");
    assert_eq!(project.read("kind"), "a file\n");
    assert!(!is_executable(&project.root().join("run.sh")));
    assert!(fs::symlink_metadata(project.root().join("link")).is_err());
    assert!(!project.root().join("new/b.txt").exists());
    // What git ignores is no part of the work.
    assert_eq!(project.read("docs/mine.log"), "mine\n");
    assert_eq!(project.read("new/agent.log"), "ignored\n");
}

#[test]
fn parked_work_leaves_the_checkout_and_comes_back() {
    let (project, commit) = with_work();
    let base = project.tip("HEAD");
    project.write("stashed.txt", "stashed\n");
    project.git(&["stash", "push", "-q", "-u", "--", "stashed.txt"]);
    let stash = project.git(&["stash", "list", "--format=%H"]);
    assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
    assert_is_put_back(&project);
    assert_eq!(project.tip(WORK_REF), commit);
    assert_eq!((project.tip("HEAD"), project.git(&["stash", "list", "--format=%H"])), (base.clone(), stash));
    // Asked again, it is done.
    assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
    let returned = ParkOutcome::Returned { base, commit };
    assert_eq!(move_work(&project, ParkMode::Return), returned);
    assert_has_work(&project);
    assert_eq!(move_work(&project, ParkMode::Return), returned);
    let expected = [
        "modified a.txt",
        "deleted kind",
        "added kind/inner.txt",
        "added link",
        "added new/b.txt",
        "deleted old/gone.txt",
        "modified run.sh",
    ];
    assert_eq!(project.reopen().changes(), expected);
    assert_eq!(project.git(&["diff", "--cached", "--name-only"]), "", "the index stays as it is");
}

#[test]
fn edits_of_the_user_stay_and_are_named() {
    let (project, _) = with_work();
    project.write("a.txt", "by the user\n");
    project.write("notes.txt", "by the user\n");
    assert_eq!(move_work(&project, ParkMode::Park), ParkOutcome::InTheWay { paths: vec!["a.txt".into()] });
    assert_eq!(project.read("a.txt"), "by the user\n");
    assert_eq!(project.read("new/b.txt"), "new\n");
    assert!(!project.reopen().directory.join("parked").exists());
}

#[test]
fn files_beside_the_work_do_not_keep_it_from_being_parked() {
    let (project, commit) = with_work();
    project.write("notes.txt", "by the user\n");
    let outcome = ParkOutcome::Parked { commit, left: vec!["notes.txt".into()] };
    assert_eq!(move_work(&project, ParkMode::Park), outcome);
    assert_eq!(status(&project), "?? notes.txt");
    // It would count as work.
    let in_the_way = ParkOutcome::InTheWay { paths: vec!["notes.txt".into()] };
    assert_eq!(move_work(&project, ParkMode::Return), in_the_way);
    assert_eq!(project.read("a.txt"), "a\n");
}

#[test]
fn commits_of_the_user_are_not_put_back() {
    let (project, commit) = with_work();
    project.git(&["commit", "-q", "-m", "mine", "a.txt"]);
    assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
    assert_eq!(project.read("a.txt"), "by the agent\n");
    assert_eq!(status(&project), "");
}

#[test]
fn what_was_staged_meanwhile_is_part_of_the_work() {
    let (project, commit) = with_work();
    project.git(&["add", "-A"]);
    assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
    assert_eq!(status(&project), "");
}

#[test]
fn an_ignored_file_of_the_user_is_not_overwritten() {
    let project = UserProject::with_files(&[("a.txt", "a\n")]);
    let workspace = project.open_in_place();
    workspace.write("run.log", "by the agent\n");
    let commit = workspace.commit("work");
    assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
    assert!(!project.root().join("run.log").exists());
    project.write(".git/info/exclude", "*.log\n");
    project.write("run.log", "by the user\n");
    let in_the_way = ParkOutcome::InTheWay { paths: vec!["run.log".into()] };
    assert_eq!(move_work(&project, ParkMode::Return), in_the_way);
    assert_eq!(project.read("run.log"), "by the user\n");
}

#[test]
fn files_that_the_work_no_longer_ignores_stay_the_users() {
    for rules in ["", "ign/\n!ign/\n"] {
        let project = UserProject::with_files(&[(".gitignore", "ign/\n"), ("a.txt", "a\n")]);
        project.write("ign/s", "secret\n");
        let workspace = project.open_in_place();
        workspace.write(".gitignore", rules);
        workspace.write("a.txt", "by the agent\n");
        let commit = workspace.commit("work");
        assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
        assert_eq!((project.read("ign/s"), status(&project)), ("secret\n".into(), String::new()));
        let returned = ParkOutcome::Returned { base: project.tip("HEAD"), commit };
        assert_eq!(move_work(&project, ParkMode::Return), returned);
        assert_eq!(project.read("ign/s"), "secret\n");
        assert_eq!(project.reopen().changes(), ["modified .gitignore", "modified a.txt"]);
    }
}

#[test]
fn work_comes_back_on_top_of_what_landed_meanwhile() {
    let (project, commit) = with_work();
    assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
    project.write("docs/kept.txt", "the next story\n");
    let onto = project.commit_all("the next story");
    let ParkOutcome::Returned { base, commit } = move_work(&project, ParkMode::Return) else { panic!("not returned") };
    assert_eq!(base, onto);
    assert_has_work(&project);
    assert_eq!(project.read("docs/kept.txt"), "the next story\n");
    assert_eq!(project.tip(&format!("{commit}^")), onto);
    assert_eq!(project.tip(WORK_REF), commit);
    let workspace = project.reopen();
    assert_eq!(workspace.changes().len(), 7, "{:?}", workspace.changes());
    // It lands like any other work.
    let outcome = project.integrate(&workspace, &onto, &commit);
    assert_eq!(outcome, IntegrateOutcome::Integrated { checkout_moved: true });
    assert_eq!(status(&project), "");
}

#[test]
fn work_that_conflicts_stays_parked_until_the_user_has_merged_it() {
    let (project, commit) = with_work();
    assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
    project.write("a.txt", "by the user\n");
    let onto = project.commit_all("mine");
    assert_eq!(move_work(&project, ParkMode::Return), ParkOutcome::Conflict { paths: vec!["a.txt".into()] });
    assert_eq!(status(&project), "");
    // What the user merges takes the place of the work, and the old commit is kept.
    project.write("a.txt", "by both\n");
    let returned = ParkOutcome::Returned { base: onto.clone(), commit: onto.clone() };
    assert_eq!(move_work(&project, ParkMode::TakeCheckout), returned);
    assert_eq!(project.reopen().changes(), ["modified a.txt"]);
    assert_eq!(project.tip(WORK_REF), onto);
    assert_eq!(project.tip(&format!("{WORK_REF}-{}", commit.short_hex())), commit);
}

#[test]
fn the_edits_of_the_user_are_the_work_if_the_user_says_so() {
    let (project, commit) = with_work();
    let base = project.tip("HEAD");
    assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
    // As the question tells the user to do it.
    project.git(&["merge", "-q", "--squash", commit.short_hex()]);
    let refusal = move_parked_work(project.reopen(), ParkMode::TakeCheckout).unwrap_err().to_string();
    assert!(refusal.contains("`git reset`"), "{refusal}");
    project.git(&["reset", "-q"]);
    project.write("a.txt", "by both\n");
    assert_eq!(move_work(&project, ParkMode::TakeCheckout), ParkOutcome::Returned { base, commit });
    assert_eq!(project.read("a.txt"), "by both\n");
    assert_eq!(project.reopen().changes().len(), 7);
}

#[test]
fn without_edits_of_the_user_the_parked_work_is_taken() {
    let (project, commit) = with_work();
    let base = project.tip("HEAD");
    assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
    assert_eq!(move_work(&project, ParkMode::TakeCheckout), ParkOutcome::Returned { base, commit });
    assert_has_work(&project);
}

#[test]
fn an_interrupted_move_is_finished_by_the_next_process() {
    for mode in [ParkMode::Park, ParkMode::Return] {
        let (project, commit) = with_work();
        if mode == ParkMode::Return {
            assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
        }
        let directory = project.reopen().directory;
        interrupt_move(&project, mode);
        // Some of the files have moved.
        if mode == ParkMode::Park {
            fs::remove_file(project.root().join("new/b.txt")).unwrap();
            project.write("a.txt", "a\n");
        } else {
            fs::remove_file(project.root().join("kind")).unwrap();
            project.write("new/b.txt", "new\n");
        }
        project.reopen();
        assert!(!directory.join("parking.json").exists() && !directory.join("parking-files").exists());
        match mode {
            ParkMode::Park => {
                assert_is_put_back(&project);
                assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
            }
            _ => {
                assert_has_work(&project);
                let returned = ParkOutcome::Returned { base: project.tip("HEAD"), commit };
                assert_eq!(move_work(&project, ParkMode::Return), returned);
            }
        }
    }
}

#[test]
fn a_file_that_the_user_edits_after_a_crash_stays() {
    let (project, commit) = with_work();
    interrupt_move(&project, ParkMode::Park);
    project.write("a.txt", "by the user\n");
    let outcome = ParkOutcome::Parked { commit, left: vec!["a.txt".into()] };
    assert_eq!(move_work(&project, ParkMode::Park), outcome);
    assert_eq!(status(&project), " M a.txt");
    assert_eq!(project.read("a.txt"), "by the user\n");
}

/// A checkout with ignored files of the user, in which an agent has hidden others.
fn with_hidden_files() -> (UserProject, CommitId) {
    let project =
        UserProject::with_files(&[(".gitignore", "*.log\n"), ("a.txt", "a\n"), ("sub/.gitignore", "kept.tmp\n")]);
    project.home().project.prepare_home().unwrap();
    project.write("build/mine.log", "mine\n");
    project.write("sub/kept.tmp", "mine\n");
    // Git ignores a directory also by a rule in it that is not committed.
    project.write("venv/.gitignore", "*\n");
    project.write("venv/mine.py", "mine\n");
    let workspace = project.open_in_place();
    workspace.write(".gitignore", "*.log\n*.tmp\nbuild/\nnode_modules/\nvenv/\n");
    workspace.write("sub/new.tmp", "new\n");
    workspace.write("build/deep/new.o", "new\n");
    workspace.write("node_modules/x/new.js", "new\n");
    workspace.write("visible.txt", "visible\n");
    let commit = workspace.commit("work in progress");
    (project, commit)
}

const HIDDEN_FILES: [&str; 3] = ["sub/new.tmp", "build/deep/new.o", "node_modules/x/new.js"];

fn assert_hidden_files_wait(project: &UserProject) {
    assert_eq!(status(project), "");
    for path in HIDDEN_FILES.into_iter().chain(["build/deep", "node_modules"]) {
        assert!(!project.root().join(path).exists(), "{path}");
    }
    for path in ["build/mine.log", "sub/kept.tmp", "venv/mine.py"] {
        assert_eq!(project.read(path), "mine\n", "{path} was ignored before the work began");
    }
}

fn assert_hidden_files_are_back(project: &UserProject) {
    assert_eq!(status(project), " M .gitignore\n?? visible.txt");
    for path in HIDDEN_FILES {
        assert_eq!(project.read(path), "new\n", "{path}");
    }
}

#[test]
fn files_that_only_the_work_hides_from_git_wait_with_it() {
    let (project, commit) = with_hidden_files();
    let returned = ParkOutcome::Returned { base: project.tip("HEAD"), commit: commit.clone() };
    for _ in 0..2 {
        assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
        assert_hidden_files_wait(&project);
        assert_eq!(move_work(&project, ParkMode::Return), returned);
        assert_hidden_files_are_back(&project);
        assert!(!project.root().join(".tribunal/parked/loop-x1/hidden-files-1").exists());
    }
    // A file that another one has taken the place of stays where it waits.
    assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
    project.write("node_modules/x/mine.log", "mine\n");
    assert_eq!(move_work(&project, ParkMode::Return), returned);
    assert_eq!(project.read("node_modules/x/mine.log"), "mine\n");
    assert!(!project.root().join("node_modules/x/new.js").exists());
    assert_eq!(project.read(".tribunal/parked/loop-x1/hidden-files-1/node_modules/x/new.js"), "new\n");
}

#[test]
fn an_interrupted_move_takes_hidden_files_along() {
    let (project, commit) = with_hidden_files();
    interrupt_move(&project, ParkMode::Park);
    // Some of it was done.
    project.write(".gitignore", "*.log\n");
    project.reopen();
    assert_hidden_files_wait(&project);
    assert_eq!(move_work(&project, ParkMode::Park), parked(&commit));
    interrupt_move(&project, ParkMode::Return);
    project.reopen();
    assert_hidden_files_are_back(&project);
}
