//! Rebasing work onto a branch that has moved.

use tribunal_core::development::commits::{ConflictSides, RebaseConflict, RebaseOutcome};

use super::{super::rebase_workspace, *};

fn with_two_commits() -> (UserProject, DevelopmentWorkspace) {
    let project = UserProject::with_files(&[("a.txt", "1\n2\n3\n4\n5\n"), ("b.txt", "b\n"), ("old/c.txt", "c\n")]);
    let workspace = project.open();
    workspace.write("a.txt", "one\n2\n3\n4\n5\n");
    workspace.commit("first work");
    workspace.write("new.txt", "agent\n");
    workspace.commit("second work\n\nWith a body.");
    (project, workspace)
}

#[test]
fn commits_are_replayed_with_their_files_and_messages() {
    let (project, workspace) = with_two_commits();
    project.write("a.txt", "1\n2\n3\n4\nfive\n");
    project.git(&["rm", "-q", "old/c.txt"]);
    project.write("dir/d.txt", "d\n");
    let onto = project.commit_all("by the user");
    project.write("b.txt", "uncommitted\n");
    let RebaseOutcome::Rebased { commit } = rebase_workspace(workspace, &onto).unwrap() else { panic!("a conflict") };
    let workspace = project.reopen();
    assert_eq!(workspace.read("a.txt"), "one\n2\n3\n4\nfive\n");
    assert_eq!(workspace.read("dir/d.txt"), "d\n");
    assert!(!workspace.record.tree.join("old").exists());
    assert_eq!(workspace.changes(), ["modified a.txt", "added new.txt"]);
    assert_eq!(project.git(&["log", "--format=%s", commit.as_str()]), "second work\nfirst work\nby the user\nfirst");
    assert_eq!(project.git(&["log", "-1", "--format=%b", commit.as_str()]), "With a body.");
    assert_eq!(project.tip("refs/tribunal/work/loop-x1/dev"), commit);
    assert_eq!(project.git_in(&workspace.record.tree, &["status", "--porcelain"]), "");
    // Asked again, it is done; and then it can be integrated.
    assert_eq!(rebase_workspace(project.reopen(), &onto).unwrap(), RebaseOutcome::Rebased { commit: commit.clone() });
    let outcome = project.integrate(&workspace, &onto, &commit);
    assert_eq!(outcome, IntegrateOutcome::Integrated { checkout_moved: true });
    assert_eq!(project.git(&["status", "--porcelain"]), " M b.txt");
}

#[test]
fn a_conflict_changes_nothing() {
    let (project, workspace) = with_two_commits();
    project.write("a.txt", "mine\n2\n3\n4\n5\n");
    let onto = project.commit_all("by the user");
    let state = workspace.state();
    let conflict = RebaseOutcome::Conflict(RebaseConflict {
        paths: vec!["a.txt".into()],
        sides: vec![new_sides("a.txt", 1, "mine\n", "one\n")],
        directory: workspace.agent_dir().display().to_string(),
    });
    assert_eq!(rebase_workspace(workspace.clone(), &onto).unwrap(), conflict);
    assert_eq!(project.reopen().state(), state);
    assert_eq!(workspace.read("a.txt"), "one\n2\n3\n4\n5\n");
}

fn new_sides(file: &str, line: u32, on_branch: &str, in_work: &str) -> ConflictSides {
    ConflictSides { file: file.into(), line, on_branch: on_branch.into(), in_work: in_work.into() }
}

#[test]
fn a_conflict_shows_the_first_places_with_the_texts_of_both_sides() {
    let lines: String = (1..=9).map(|number| format!("{number}\n")).collect();
    let files = [("a.txt", lines.as_str()), ("binary", "a\0b\n"), ("gone.txt", "old\n"), ("z.txt", "z\n")];
    let project = UserProject::with_files(&files);
    let workspace = project.open();
    workspace.write("a.txt", &lines.replace("2\n", "work 2\n").replace("8\n", &"w".repeat(700)));
    workspace.write("binary", "a\0work\n");
    workspace.write("gone.txt", "work\n");
    workspace.write("z.txt", "work\n");
    workspace.commit("work");
    project.write("a.txt", &lines.replace("2\n", "new\n2 mine\n").replace("8\n", "8 mine\n"));
    project.write("binary", "a\0mine\n");
    fs::remove_file(project.root().join("gone.txt")).unwrap();
    project.write("z.txt", "mine\n");
    let onto = project.commit_all("by the user");
    let RebaseOutcome::Conflict(conflict) = rebase_workspace(workspace, &onto).unwrap() else { panic!("no conflict") };
    assert_eq!(conflict.paths, ["a.txt", "binary", "gone.txt", "z.txt"]);
    let long_side = format!("{}…", "w".repeat(600));
    let sides = [
        new_sides("a.txt", 2, "new\n2 mine\n", "work 2\n"),
        new_sides("a.txt", 9, "8 mine\n9\n", &long_side),
        new_sides("gone.txt", 1, "", "work\n"),
    ];
    assert_eq!(conflict.sides, sides);
}

#[test]
fn work_that_the_user_merged_by_hand_is_not_replayed() {
    let (project, workspace) = with_two_commits();
    project.write("a.txt", "mine\n2\n3\n4\n5\n");
    project.commit_all("by the user");
    // Another attempt to land makes another commit of the same content.
    let merged_commit = project.tip("refs/tribunal/work/loop-x1/dev");
    project.git(&["merge", "-q", "--no-edit", "-X", "ours", merged_commit.as_str()]);
    project.write("a.txt", "mine, and one\n2\n3\n4\n5\n");
    project.git(&["commit", "-q", "-a", "--amend", "--no-edit"]);
    workspace.write("new.txt", "changed\n");
    workspace.commit("changed");
    workspace.write("new.txt", "agent\n");
    let new_commit = workspace.commit("changed back").commit;
    let onto = project.tip("main");
    assert_eq!(rebase_workspace(workspace, &onto).unwrap(), RebaseOutcome::Rebased { commit: onto.clone() });
    let workspace = project.reopen();
    assert_ne!(new_commit, merged_commit);
    assert_eq!(workspace.read("a.txt"), "mine, and one\n2\n3\n4\n5\n");
    assert_eq!(workspace.changes(), Vec::<String>::new());
    // What is written then, such as the board, lands as a commit of its own.
    workspace.write("b.txt", "done\n");
    let commit = workspace.commit("board").commit;
    let outcome = project.integrate(&workspace, &onto, &commit);
    assert_eq!(outcome, IntegrateOutcome::Integrated { checkout_moved: true });
    assert_eq!(project.git(&["show", "--format=%s", "--name-only", "HEAD"]), "board\n\nb.txt");
}

#[test]
fn uncommitted_work_is_not_rebased() {
    let (project, workspace) = with_two_commits();
    project.write("b.txt", "mine\n");
    let onto = project.commit_all("by the user");
    workspace.write("new.txt", "not committed\n");
    let refusal = rebase_workspace(workspace.clone(), &onto).unwrap_err().to_string();
    assert!(refusal.contains("not committed"), "{refusal}");
    assert_eq!(workspace.read("new.txt"), "not committed\n");
}

#[test]
fn an_interrupted_rebase_is_finished_by_the_next_process() {
    for files_written in [false, true] {
        let (project, workspace) = with_two_commits();
        project.write("b.txt", "mine\n");
        let onto = project.commit_all("by the user");
        let old_tip = workspace.control_git().read_tip().unwrap();
        let (old_base, old_record) =
            (workspace.record.base.clone(), fs::read(workspace.directory.join("workspace.json")).unwrap());
        let RebaseOutcome::Rebased { commit } = rebase_workspace(workspace.clone(), &onto).unwrap() else { panic!() };
        // Takes back what comes after the record of the rebase.
        let control_git = workspace.control_git();
        control_git.run(["update-ref", "refs/heads/work", old_tip.as_str()]).unwrap();
        control_git.set_head(&old_base).unwrap();
        control_git.run(["read-tree", old_base.as_str()]).unwrap();
        control_git.with_commit_index().run(["read-tree", old_tip.as_str()]).unwrap();
        if !files_written {
            workspace.write("b.txt", "b\n");
        }
        fs::write(workspace.directory.join("workspace.json"), old_record).unwrap();
        let record = format!(r#"{{"old_tip":"{old_tip}","onto":"{onto}","new_tip":"{commit}"}}"#);
        fs::write(workspace.directory.join("rebase.json"), record).unwrap();
        let workspace = project.reopen();
        assert_eq!(workspace.record.base, onto);
        assert_eq!(workspace.read("b.txt"), "mine\n");
        assert_eq!(workspace.changes(), ["modified a.txt", "added new.txt"]);
        assert!(!workspace.directory.join("rebase.json").exists());
    }
}
