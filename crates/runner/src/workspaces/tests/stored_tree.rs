//! A commit, exactly as git stored it.

use std::os::unix::fs::symlink;

use super::*;

fn create_from_commit<'a>(files: &'a [&'a str], tree: &'a str) -> WorkspaceOptions<'a> {
    WorkspaceOptions { files, tree: Some(tree), ..WorkspaceOptions::default() }
}

#[test]
fn a_commit_is_copied_as_stored_regardless_of_the_work_tree() {
    let test_project = TestProject::without_git(&[
        ("a.md", "one\r\n"),
        ("deep/-b c.md", "b\n"),
        ("ümlaut.md", "u\n"),
        ("tool", "#!/bin/sh\n"),
        ("empty", ""),
    ]);
    make_executable(&test_project.project_root().join("tool"));
    symlink("deep", test_project.project_root().join("link")).unwrap();
    test_project.run_git(&["init", "-q"]);
    test_project.commit_all();
    let expected = tree_items(&test_project.project_root());
    symlink("/etc/passwd", test_project.project_root().join("out")).unwrap();
    test_project.commit_all();
    let commit = test_project.run_git(&["rev-parse", "HEAD"]);
    fs::remove_dir_all(test_project.project_root().join("deep")).unwrap();
    test_project.write_files(&[("a.md", "two\n"), ("new.md", "new\n")]);
    test_project.commit_all();
    let tree = test_project.run_git(&["rev-parse", &format!("{}^{{tree}}", commit.trim())]);
    let before = read_all_bytes(&test_project.project_root().join(".git"));
    for name in [commit.trim(), tree.trim()] {
        let (workspace, created) =
            test_project.create_workspace_from(&create_from_commit(&["a.md", "deep/-b c.md", "new.md"], name));
        assert_eq!(tree_items(&workspace.tree_dir()), expected);
        assert_eq!(created.remarks, ["1 symlink left out (pointing outside the project): out"]);
        assert_eq!(workspace.read_base("a.md").unwrap().as_deref(), Some(&b"one\r\n"[..]));
        assert_eq!(workspace.read_base("new.md").unwrap(), None);
        assert_eq!(copied_hashes(&workspace), BTreeMap::new());
        assert_eq!(workspace.changed_files().unwrap(), BTreeMap::new());
        fs::write(workspace.tree_dir().join("deep/-b c.md"), "changed\n").unwrap();
        fs::write(workspace.tree_dir().join("new.md"), "added\n").unwrap();
        assert_eq!(workspace.changed_files().unwrap().into_keys().collect::<Vec<_>>(), ["deep/-b c.md", "new.md"]);
        workspace.restore_subject().unwrap();
        assert_eq!(tree_items(&workspace.tree_dir()), expected);
    }
    assert_eq!(read_all_bytes(&test_project.project_root().join(".git")), before);
}

#[test]
fn a_project_below_the_top_gets_its_part_of_a_commit() {
    let test_project = TestProject::with_commit(&[("above.md", "no\n"), ("part/a.md", "a\n")]);
    let workspace = TaskWorkspace::from_directory(test_project.sibling_path("copy"));
    let project_root = test_project.project_root().join("part");
    let source = WorkspaceSource {
        project_root: &project_root,
        subject_files: &["a.md".to_string()],
        stored_tree: Some("HEAD"),
        seed_paths: &[],
    };
    workspace.create(&source).unwrap();
    assert_eq!(tree_names(&workspace), ["a.md"]);
}

#[test]
fn a_stored_submodule_is_left_out_and_reported() {
    let library = TestProject::with_commit(&[("lib.md", "library\n")]);
    let test_project = TestProject::with_commit(&[("a.md", "a\n")]);
    test_project.run_git(&["submodule", "add", "-q", library.project_root().to_str().unwrap(), "lib"]);
    test_project.commit_all();
    let (workspace, created) = test_project.create_workspace_from(&create_from_commit(&["a.md"], "HEAD"));
    assert_eq!(tree_names(&workspace), [".gitmodules", "a.md"]);
    assert_eq!(created.remarks, ["1 submodule left out (files are in another repository): lib"]);
}

#[test]
fn many_blobs_come_through_two_pipes_without_waiting_for_each_other() {
    let test_project = TestProject::without_git(&[("a.md", "a\n")]);
    let long = "x".repeat(50_000);
    for number in 0..2_000 {
        let text = if number % 100 == 0 { format!("{number}{long}") } else { number.to_string() };
        write_file(&test_project.project_root().join(format!("{}/{number}", number % 7)), text);
    }
    test_project.run_git(&["init", "-q"]);
    test_project.commit_all();
    let (workspace, _) = test_project.create_workspace_from(&create_from_commit(&["a.md"], "HEAD"));
    assert_eq!(tree_items(&workspace.tree_dir()), tree_items(&test_project.project_root()));
}

#[test]
fn an_unknown_commit_is_an_error_with_the_reason_from_git() {
    let test_project = TestProject::with_commit(&[("a.md", "a\n")]);
    for (name, reason) in
        [("nothing", "Not a valid object name"), ("--help", "is not a commit"), ("", "is not a commit")]
    {
        let source = WorkspaceSource {
            project_root: &test_project.project_root(),
            subject_files: &[],
            stored_tree: Some(name),
            seed_paths: &[],
        };
        let workspace = TaskWorkspace::from_directory(test_project.sibling_path("copy"));
        let error_text = workspace.create(&source).unwrap_err().to_string();
        assert!(error_text.contains(reason), "{error_text}");
        assert!(!workspace.is_complete());
    }
}
