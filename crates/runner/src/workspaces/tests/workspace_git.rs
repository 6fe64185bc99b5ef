//! The git of a workspace shows the user's history and cannot change it.

use super::*;

/// Returns what an agent would look at.
fn git_views(directory: &Path) -> [String; 5] {
    [
        &["status", "--porcelain=v2", "--branch", "-uall"][..],
        &["log", "--format=%H %s"],
        &["diff"],
        &["diff", "--cached"],
        &["blame", "-s", "a.md"],
    ]
    .map(|arguments| run_git(directory, arguments))
}

/// Makes an uncommitted change of every kind.
fn make_uncommitted_changes(project_root: &Path) {
    write_file(&project_root.join("a.md"), "one\nchanged\n");
    write_file(&project_root.join("new.md"), "new\n");
    write_file(&project_root.join("b.md"), "staged\n");
    run_git(project_root, &["add", "b.md"]);
}

fn project_with_two_commits() -> TestProject {
    let test_project = TestProject::with_commit(&[("a.md", "one\n"), ("b.md", "b\n")]);
    test_project.write_files(&[("a.md", "one\ntwo\n")]);
    test_project.commit_all();
    test_project
}

#[track_caller]
fn assert_shows_the_same(project_root: &Path, target_dir: &Path) -> TaskWorkspace {
    make_uncommitted_changes(project_root);
    let (workspace, created) = create_workspace_at(project_root, target_dir, &["a.md"]);
    assert_eq!(created.remarks, [""; 0]);
    assert!(workspace.tree_dir().join(".git").is_dir());
    assert_eq!(git_views(&workspace.tree_dir()), git_views(project_root));
    workspace
}

#[test]
fn on_a_branch_it_shows_the_same() {
    let test_project = project_with_two_commits();
    test_project.run_git(&["checkout", "-q", "-b", "feature/one-2"]);
    let workspace = assert_shows_the_same(&test_project.project_root(), &test_project.sibling_path("copy"));
    assert_eq!(run_git(&workspace.tree_dir(), &["branch", "--show-current"]), "feature/one-2\n");
}

#[test]
fn with_packed_refs_and_objects_it_shows_the_same() {
    let test_project = project_with_two_commits();
    test_project.run_git(&["gc", "-q"]);
    assert_shows_the_same(&test_project.project_root(), &test_project.sibling_path("copy"));
}

#[test]
fn with_a_detached_head_it_shows_the_same() {
    let test_project = project_with_two_commits();
    test_project.run_git(&["checkout", "-q", "--detach", "HEAD~"]);
    assert_shows_the_same(&test_project.project_root(), &test_project.sibling_path("copy"));
}

#[test]
fn before_the_first_commit_it_shows_what_is_staged() {
    let test_project = TestProject::without_git(&[("a.md", "a\n"), ("b.md", "b\n")]);
    test_project.run_git(&["init", "-q"]);
    for staged in [false, true] {
        if staged {
            test_project.run_git(&["add", "a.md"]);
        }
        let (workspace, _) = test_project.create_workspace(&["a.md"]);
        let status = ["status", "--porcelain=v2", "--branch"];
        assert_eq!(run_git(&workspace.tree_dir(), &status), test_project.run_git(&status));
    }
}

#[test]
fn in_a_linked_work_tree_it_shows_the_same() {
    let test_project = project_with_two_commits();
    let linked = test_project.sibling_path("linked");
    test_project.run_git(&["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap(), "HEAD~"]);
    assert!(linked.join(".git").is_file());
    assert_shows_the_same(&linked, &test_project.sibling_path("copy"));
}

#[test]
fn in_a_shallow_clone_it_shows_the_same() {
    let test_project = project_with_two_commits();
    let clone = test_project.sibling_path("clone");
    let from = format!("file://{}", test_project.project_root().display());
    run_git(test_project.temp_dir.path(), &["clone", "-q", "--depth=1", &from, clone.to_str().unwrap()]);
    let (workspace, _) = create_workspace_at(&clone, &test_project.sibling_path("copy"), &["a.md"]);
    assert_eq!(run_git(&workspace.tree_dir(), &["log", "--format=%H"]), run_git(&clone, &["log", "--format=%H"]));
    assert_eq!(run_git(&workspace.tree_dir(), &["log", "--format=%H"]).lines().count(), 1);
    assert_eq!(run_git(&workspace.tree_dir(), &["remote"]), "");
}

#[test]
fn in_a_submodule_it_shows_the_same() {
    let library = project_with_two_commits();
    let test_project = TestProject::with_commit(&[("x.md", "x\n")]);
    test_project.run_git(&["submodule", "add", "-q", library.project_root().to_str().unwrap(), "lib"]);
    let project_root = test_project.project_root().join("lib");
    run_git(&project_root, &["branch", "--unset-upstream"]);
    assert_shows_the_same(&project_root, &test_project.sibling_path("copy"));
}

#[test]
fn with_longer_object_names_it_shows_the_same() {
    let test_project = TestProject::without_git(&[("a.md", "one\n"), ("b.md", "b\n")]);
    test_project.run_git(&["init", "-q", "--object-format=sha256"]);
    test_project.commit_all();
    assert_shows_the_same(&test_project.project_root(), &test_project.sibling_path("copy"));
}

#[test]
fn with_an_index_in_two_files_it_shows_the_same() {
    let test_project = project_with_two_commits();
    test_project.run_git(&["config", "splitIndex.maxPercentChange", "100"]);
    test_project.run_git(&["update-index", "--split-index"]);
    let shared = fs::read_dir(test_project.project_root().join(".git")).unwrap().flatten();
    assert!(shared.into_iter().any(|item| item.file_name().to_string_lossy().starts_with("sharedindex.")));
    assert_shows_the_same(&test_project.project_root(), &test_project.sibling_path("copy"));
}

#[test]
fn with_another_index_format_and_caches_it_shows_the_same() {
    let test_project = project_with_two_commits();
    test_project.run_git(&["update-index", "--index-version=4", "--untracked-cache"]);
    test_project.run_git(&["status"]);
    let workspace = assert_shows_the_same(&test_project.project_root(), &test_project.sibling_path("copy"));
    let stderr_bytes = git_command(&workspace.tree_dir(), &["status"]).output().unwrap().stderr;
    assert_eq!(String::from_utf8_lossy(&stderr_bytes), "");
}

#[test]
fn what_the_user_excludes_privately_is_ignored_in_it() {
    let test_project = project_with_two_commits();
    write_file(&test_project.project_root().join(".git/info/exclude"), "*.local\n");
    test_project.write_files(&[("x.local", "x\n")]);
    let (workspace, _) = test_project.create_workspace_from(&WorkspaceOptions {
        files: &["a.md"],
        seeds: &["x.local"],
        ..WorkspaceOptions::default()
    });
    assert_eq!(tree_names(&workspace), ["a.md", "b.md", "x.local"]);
    assert_eq!(run_git(&workspace.tree_dir(), &["status", "--porcelain"]), "");
}

#[test]
fn what_an_agent_does_with_it_stays_in_the_copy() {
    let test_project = project_with_two_commits();
    let hook_marker = test_project.sibling_path("ran");
    let hook = test_project.project_root().join(".git/hooks/pre-commit");
    write_file(&hook, format!("#!/bin/sh\ntouch '{}'\n", hook_marker.display()));
    make_executable(&hook);
    test_project.run_git(&["remote", "add", "origin", "https://example.org/x"]);
    test_project.run_git(&["tag", "v1"]);
    make_uncommitted_changes(&test_project.project_root());
    test_project.run_git(&["stash", "-q"]);
    make_uncommitted_changes(&test_project.project_root());
    let (before, files) =
        (read_all_bytes(&test_project.project_root().join(".git")), tree_items(&test_project.project_root()));
    let (workspace, _) = test_project.create_workspace(&["a.md"]);
    let tree = workspace.tree_dir();
    assert_eq!(run_git(&tree, &["remote"]), "");
    assert_eq!(run_git(&tree, &["stash", "list"]), "");
    run_git(&tree, &["commit", "-qam", "mine"]);
    write_file(&tree.join("a.md"), "more\n");
    run_git(&tree, &["stash", "-q"]);
    run_git(&tree, &["stash", "clear"]);
    run_git(&tree, &["reset", "-q", "--hard", "HEAD~2"]);
    run_git(&tree, &["clean", "-qfdx"]);
    run_git(&tree, &["config", "core.editor", "x"]);
    run_git(&tree, &["gc", "-q", "--prune=now"]);
    assert!(!hook_marker.exists(), "the person's hook ran");
    assert_eq!(tree_items(&test_project.project_root()), files);
    let after = read_all_bytes(&test_project.project_root().join(".git"));
    // Git marks borrowed objects as in use, so their times may change.
    let aside = |commands: BTreeMap<String, (Vec<u8>, SystemTime)>| -> BTreeMap<String, (Vec<u8>, Option<SystemTime>)> {
        let times = |path: &str, time| (!path.starts_with("objects/")).then_some(time);
        commands.into_iter().map(|(path, (bytes, time))| (path.clone(), (bytes, times(&path, time)))).collect()
    };
    assert_eq!(aside(after), aside(before));
}

#[test]
fn an_unusual_repository_gives_a_workspace_without_git() {
    // A HEAD that is not a branch.
    let test_project = project_with_two_commits();
    test_project.run_git(&["symbolic-ref", "HEAD", "refs/odd/one"]);
    let (workspace, created) = test_project.create_workspace(&["a.md"]);
    assert!(!workspace.tree_dir().join(".git").exists());
    assert_eq!(tree_names(&workspace), ["a.md", "b.md"]);
    assert_eq!(created.remarks, [""; 0]);
}

#[test]
fn a_workspace_whose_changes_may_land_can_be_without_git() {
    let test_project = project_with_two_commits();
    let (workspace, _) = test_project.create_workspace(&["a.md"]);
    for _ in 0..2 {
        workspace.remove_git().unwrap();
        assert!(!git_command(&workspace.tree_dir(), &["reset", "--hard"]).output().unwrap().status.success());
    }
    assert_eq!(workspace.changed_files().unwrap(), BTreeMap::new());
}

#[test]
fn an_edit_that_only_the_time_of_the_index_gives_away_shows_in_it() {
    let test_project = TestProject::without_git(&[("a.md", "one\n")]);
    let file = test_project.project_root().join("a.md");
    test_project.run_git(&["init", "-q"]);
    make_old(&file);
    test_project.commit_all();
    // The same size and second as git has recorded, and the index was written in that second.
    write_file(&file, "two\n");
    make_old(&file);
    make_old(&test_project.project_root().join(".git/index"));
    let (workspace, _) = test_project.create_workspace(&["a.md"]);
    assert_eq!(run_git(&workspace.tree_dir(), &["status", "--porcelain"]), " M a.md\n");
}
