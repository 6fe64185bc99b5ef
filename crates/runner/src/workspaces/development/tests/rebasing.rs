//! Rebasing work onto a branch that has moved.

use tribunal_engine::fault::{Fault, FaultKind};
use tribunal_workflows::development::commits::{ConflictSides, FoundSolution, RebaseConflict, RebaseOutcome};

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
        found: None,
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
    let new_commit = workspace.commit("changed back");
    let onto = project.tip("main");
    assert_eq!(rebase_workspace(workspace, &onto).unwrap(), RebaseOutcome::Rebased { commit: onto.clone() });
    let workspace = project.reopen();
    assert_ne!(new_commit, merged_commit);
    assert_eq!(workspace.read("a.txt"), "mine, and one\n2\n3\n4\n5\n");
    assert_eq!(workspace.changes(), Vec::<String>::new());
    // What is written then, such as the board, lands as a commit of its own.
    workspace.write("b.txt", "done\n");
    let commit = workspace.commit("board");
    let outcome = project.integrate(&workspace, &onto, &commit);
    assert_eq!(outcome, IntegrateOutcome::Integrated { checkout_moved: true });
    assert_eq!(project.git(&["show", "--format=%s", "--name-only", "HEAD"]), "board\n\nb.txt");
}

/// Work that conflicts with a commit of the user's, which also changes a file that the work leaves alone.
fn with_conflict() -> (UserProject, CommitId) {
    let (project, workspace) = with_two_commits();
    project.write("a.txt", "mine\n2\n3\n4\n5\n");
    project.write("b.txt", "mine\n");
    let conflicting = project.commit_all("by the user");
    assert_eq!(rebase_again(&project), Err((vec!["a.txt".to_string()], None)));
    assert_ne!(workspace.base_commit(), &conflicting);
    (project, conflicting)
}

/// Rebases onto the branch where it is. Returns the last commit, or the files of the conflict with what was found of a solution.
fn rebase_again(project: &UserProject) -> Result<CommitId, (Vec<String>, Option<FoundSolution>)> {
    match rebase_workspace(project.reopen(), &project.tip("main")).unwrap() {
        RebaseOutcome::Rebased { commit } => Ok(commit),
        RebaseOutcome::Conflict(conflict) => Err((conflict.paths, conflict.found)),
        RebaseOutcome::Failed { fault } => panic!("{fault}"),
    }
}

fn work_commit(project: &UserProject) -> String {
    project.tip("refs/tribunal/work/loop-x1/dev").as_str().to_string()
}

#[test]
fn a_merge_that_drops_the_work_is_no_solution() {
    let (project, conflicting) = with_conflict();
    let base = project.reopen().base_commit().clone();
    project.git(&["merge", "-q", "--no-edit", "-s", "ours", &work_commit(&project)]);
    let dropped = Some(FoundSolution::WorkDropped { base });
    let paths = vec!["a.txt".to_string(), "new.txt".to_string()];
    assert_eq!(rebase_again(&project), Err((paths, dropped)));
    // What the work changed is added by another commit.
    project.write("a.txt", "mine, and one\n2\n3\n4\n5\n");
    project.write("new.txt", "agent\n");
    let onto = project.commit_all("take it after all");
    assert_eq!(rebase_again(&project), Ok(onto));
    // The merge is the first commit that has it in its history.
    assert_eq!(project.reopen().merged_into(), Some(conflicting));
}

#[test]
fn a_merge_that_drops_the_branch_is_no_solution() {
    let (project, conflicting) = with_conflict();
    project.git(&["checkout", "-q", &work_commit(&project), "--", "."]);
    project.commit_all("as in the work");
    let dropped = Some(FoundSolution::BranchDropped { before: conflicting });
    assert_eq!(rebase_again(&project), Err((vec!["b.txt".to_string()], dropped)));
}

#[test]
fn a_merge_with_marks_of_the_conflict_is_no_solution() {
    let (project, _) = with_conflict();
    let marked_text = "<<<<<<< HEAD\nmine\n=======\none\n>>>>>>> work\n2\n3\n4\n5\n";
    for option in ["--no-edit", "--squash"] {
        let before = project.tip("main");
        project.git(&["merge", "-q", option, "-X", "ours", &work_commit(&project)]);
        project.write("a.txt", marked_text);
        project.commit_all("not resolved");
        assert_eq!(
            rebase_again(&project),
            Err((vec!["a.txt".to_string()], Some(FoundSolution::MarksLeft))),
            "{option}"
        );
        if option == "--no-edit" {
            project.git(&["reset", "-q", "--hard", before.as_str()]);
        }
    }
    project.write("a.txt", "mine, and one\n2\n3\n4\n5\n");
    let onto = project.commit_all("resolved");
    assert_eq!(rebase_again(&project), Ok(onto));
}

#[test]
fn a_squashed_merge_is_found_by_its_content() {
    let (project, conflicting) = with_conflict();
    // What has nothing to do with the work is no solution.
    project.write("other.txt", "other\n");
    project.commit_all("something else");
    let missing = Some(FoundSolution::Missing { has_moved: true });
    assert_eq!(rebase_again(&project), Err((vec!["a.txt".to_string()], missing)));
    project.git(&["merge", "-q", "--squash", "-X", "ours", &work_commit(&project)]);
    project.write("a.txt", "mine, and one\n2\n3\n4\n5\n");
    let onto = project.commit_all("squashed");
    assert_eq!(rebase_again(&project), Ok(onto));
    let workspace = project.reopen();
    assert_eq!(workspace.changes(), Vec::<String>::new());
    assert_eq!(workspace.merged_into(), Some(conflicting));
}

#[test]
fn a_squashed_merge_of_nothing_but_conflicts_needs_a_word_of_the_user() {
    let project = UserProject::with_files(&[("a.txt", "1\n")]);
    let workspace = project.open();
    workspace.write("a.txt", "work\n");
    workspace.commit("work");
    project.write("a.txt", "mine\n");
    project.commit_all("by the user");
    let paths = vec!["a.txt".to_string()];
    assert_eq!(rebase_again(&project), Err((paths.clone(), None)));
    // Nothing was committed.
    let not_moved = Some(FoundSolution::Missing { has_moved: false });
    assert_eq!(rebase_again(&project), Err((paths.clone(), not_moved)));
    project.write("a.txt", "mine and work\n");
    project.commit_all("squashed");
    let missing = Some(FoundSolution::Missing { has_moved: true });
    assert_eq!(rebase_again(&project), Err((paths, missing)));
    project.git(&["merge", "-q", "--no-edit", "-s", "ours", &work_commit(&project)]);
    assert_eq!(rebase_again(&project), Ok(project.tip("main")));
    assert_eq!(project.reopen().read("a.txt"), "mine and work\n");
}

#[test]
fn what_is_not_committed_is_kept_beside_the_clone_and_not_rebased() {
    let (project, workspace) = with_two_commits();
    project.write("b.txt", "mine\n");
    let onto = project.commit_all("by the user");
    workspace.write("loose.txt", "not committed\n");
    assert!(matches!(rebase_workspace(workspace.clone(), &onto).unwrap(), RebaseOutcome::Rebased { .. }));
    assert!(!workspace.agent_dir().join("loose.txt").exists());
    let kept_file = workspace.directory.join("after-checks/1-loose.txt");
    assert_eq!(std::fs::read_to_string(kept_file).unwrap(), "not committed\n");
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

/// Commits a file in another work tree of the same branch, so that the checkout stays behind.
fn commit_elsewhere(project: &UserProject, path: &str, text: &str) -> CommitId {
    let other_tree = project.sibling("other-tree");
    project.git(&["worktree", "add", "-q", "-f", other_tree.to_str().unwrap(), "main"]);
    write_file(&other_tree.join(path), text);
    project.git_in(&other_tree, &["add", "-A"]);
    project.git_in(&other_tree, &["commit", "-q", "-m", "from another work tree"]);
    project.tip("main")
}

#[test]
fn a_commit_that_the_checkout_does_not_have_is_not_taken_back() {
    let project = UserProject::with_files(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let workspace = project.open_in_place();
    let begun_at = workspace.record.base.short_hex().to_string();
    workspace.write("a.txt", "agent\n");
    workspace.commit("work");
    let onto = commit_elsewhere(&project, "b.txt", "by the user\n");
    let refusal = rebase_workspace(workspace, &onto).unwrap_err();
    let expected_text = format!(
        "`main` was moved to {} without your checkout, which still has the old state of b.txt; update it with \
         `git read-tree -m -u {begun_at} HEAD`, then resume",
        onto.short_hex()
    );
    assert_eq!(refusal.to_string(), expected_text);
    assert_eq!(Fault::from(refusal).kind, FaultKind::CheckoutNotReady);
    project.git(&["read-tree", "-m", "-u", &begun_at, "HEAD"]);
    let outcome = rebase_workspace(project.reopen(), &onto).unwrap();
    let RebaseOutcome::Rebased { commit } = outcome else { panic!("a conflict") };
    let read_committed = |path: &str| project.git(&["show", &format!("{commit}:{path}")]);
    assert_eq!((read_committed("a.txt"), read_committed("b.txt")), ("agent".into(), "by the user".into()));
}

#[test]
fn a_file_that_the_work_and_a_commit_elsewhere_change_is_merged_by_hand() {
    let project = UserProject::with_files(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let workspace = project.open_in_place();
    workspace.write("a.txt", "agent\n");
    workspace.commit("work");
    let onto = commit_elsewhere(&project, "a.txt", "by the user\n");
    let refusal = rebase_workspace(workspace, &onto).unwrap_err().to_string();
    assert!(refusal.contains("the work has changed a.txt too"), "{refusal}");
    project.write("a.txt", "by both\n");
    project.git(&["restore", "--staged", "a.txt"]);
    let outcome = rebase_workspace(project.reopen(), &onto).unwrap();
    let RebaseOutcome::Rebased { commit } = outcome else { panic!("a conflict") };
    assert_eq!(project.git(&["show", &format!("{commit}:a.txt")]), "by both");
}
