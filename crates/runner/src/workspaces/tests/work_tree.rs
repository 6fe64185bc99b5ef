//! A workspace has the bytes of the user's files, regardless of how git would convert them.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::*;
use crate::git::test_config::STARTED;

/// A filter that leaves a file behind when it runs.
fn configure_filter(test_project: &TestProject) -> PathBuf {
    let marker_file = test_project.sibling_path("ran");
    let clean = format!("touch '{}'; sed s/SMUDGED/clean/", marker_file.display());
    let smudge = format!("touch '{}'; sed s/clean/SMUDGED/", marker_file.display());
    test_project.run_git(&["config", "filter.big.clean", &clean]);
    test_project.run_git(&["config", "filter.big.smudge", &smudge]);
    test_project.run_git(&["config", "filter.big.required", "true"]);
    marker_file
}

#[test]
fn a_copy_is_the_work_tree_without_what_is_ignored() {
    let test_project = TestProject::with_commit(&[
        ("same.md", "same\n"),
        ("staged.md", "old\n"),
        ("edited.md", "old\n"),
        ("gone.md", "old\n"),
        ("unstaged-gone.md", "old\n"),
        (".gitignore", "*.log\n"),
    ]);
    test_project.write_files(&[("staged.md", "staged\n"), ("added.md", "added\n")]);
    test_project.run_git(&["add", "."]);
    test_project.run_git(&["rm", "-q", "gone.md"]);
    test_project.write_files(&[("edited.md", "edited\n"), ("added.md", "added and edited\n"), ("new/one.md", "new\n")]);
    test_project.write_files(&[("x.log", "no\n"), ("tool.sh", "#!/bin/sh\n"), ("empty", "")]);
    make_executable(&test_project.project_root().join("tool.sh"));
    fs::remove_file(test_project.project_root().join("unstaged-gone.md")).unwrap();
    let git = read_all_bytes(&test_project.project_root().join(".git"));

    let (workspace, created) = test_project.create_workspace(&["same.md"]);

    let mut expected = tree_items(&test_project.project_root());
    expected.remove("x.log");
    assert_eq!(tree_items(&workspace.tree_dir()), expected);
    assert_eq!(created.remarks, [""; 0]);
    assert_eq!(workspace.changed_files().unwrap(), BTreeMap::new());
    assert_eq!(read_all_bytes(&test_project.project_root().join(".git")), git, "the person's repository was touched");
}

#[test]
fn line_ends_are_those_of_the_work_tree() {
    let test_project = TestProject::with_commit(&[("a.md", "one\ntwo\n")]);
    test_project.run_git(&["config", "core.autocrlf", "true"]);
    fs::remove_file(test_project.project_root().join("a.md")).unwrap();
    test_project.run_git(&["checkout", "-q", "a.md"]);
    let (workspace, _) = test_project.create_workspace(&["a.md"]);
    assert_eq!(fs::read(workspace.tree_dir().join("a.md")).unwrap(), b"one\r\ntwo\r\n");
    assert_eq!(run_git(&workspace.tree_dir(), &["status", "--porcelain"]), "");
}

#[test]
fn a_filter_does_not_run_and_its_file_is_as_the_user_sees_it() {
    let test_project = TestProject::without_git(&[(".gitattributes", "*.bin filter=big\n"), ("a.bin", "SMUDGED\n")]);
    test_project.run_git(&["init", "-q"]);
    let marker_file = configure_filter(&test_project);
    make_old(&test_project.project_root().join("a.bin"));
    test_project.commit_all();
    assert_eq!(test_project.run_git(&["show", "HEAD:a.bin"]), "clean\n");
    fs::remove_file(&marker_file).unwrap();
    let (workspace, _) = test_project.create_workspace(&["a.bin"]);
    assert_eq!(fs::read(workspace.tree_dir().join("a.bin")).unwrap(), b"SMUDGED\n");
    // The workspace has no such filter, and still knows that nothing has changed.
    assert_eq!(run_git(&workspace.tree_dir(), &["status", "--porcelain"]), "");
    let (workspace, _) = test_project.create_workspace_from(&WorkspaceOptions {
        files: &["a.bin"],
        tree: Some("HEAD"),
        ..WorkspaceOptions::default()
    });
    assert_eq!(fs::read(workspace.tree_dir().join("a.bin")).unwrap(), b"clean\n");
    assert!(!marker_file.exists(), "a filter ran");
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_in_the_copy() {
    let test_project = TestProject::with_commit(&[("in/a.md", "in\n"), ("out/b.md", "out\n"), ("top.md", "top\n")]);
    test_project.run_git(&["sparse-checkout", "set", "--sparse-index", "in"]);
    let (workspace, created) = test_project.create_workspace(&["in/a.md"]);
    assert_eq!(tree_names(&workspace), ["in/a.md", "top.md"]);
    assert_eq!(created.remarks, [""; 0]);
    assert_eq!(run_git(&workspace.tree_dir(), &["status", "--porcelain"]), "");
    assert_eq!(run_git(&workspace.tree_dir(), &["show", "HEAD:out/b.md"]), "out\n");
}

#[test]
fn an_edit_that_git_was_told_to_overlook_is_in_the_copy() {
    let test_project = TestProject::with_commit(&[("a.md", "old\n"), ("b.md", "old\n")]);
    test_project.run_git(&["update-index", "--skip-worktree", "a.md"]);
    test_project.run_git(&["update-index", "--assume-unchanged", "b.md"]);
    test_project.write_files(&[("a.md", "mine\n"), ("b.md", "mine too\n")]);
    let (workspace, _) = test_project.create_workspace(&["a.md"]);
    assert_eq!(fs::read(workspace.tree_dir().join("a.md")).unwrap(), b"mine\n");
    assert_eq!(fs::read(workspace.tree_dir().join("b.md")).unwrap(), b"mine too\n");
}

#[test]
fn a_file_in_conflict_is_there_once_with_its_markers() {
    let test_project = TestProject::with_commit(&[("a.md", "base\n")]);
    test_project.run_git(&["checkout", "-q", "-b", "other"]);
    test_project.write_files(&[("a.md", "theirs\n")]);
    test_project.commit_all();
    test_project.run_git(&["checkout", "-q", "main"]);
    test_project.write_files(&[("a.md", "ours\n")]);
    test_project.commit_all();
    assert!(!git_command(&test_project.project_root(), &["merge", "-q", "other"]).output().unwrap().status.success());
    let (workspace, _) = test_project.create_workspace(&["a.md"]);
    assert_eq!(tree_items(&workspace.tree_dir()), tree_items(&test_project.project_root()));
    assert_eq!(run_git(&workspace.tree_dir(), &["status", "--porcelain"]), "UU a.md\n");
}

#[test]
fn of_submodules_those_that_are_checked_out_are_in_the_copy() {
    let library = TestProject::with_commit(&[("lib.md", "library\n")]);
    let test_project = TestProject::with_commit(&[("a.md", "a\n")]);
    let from = library.project_root();
    for name in ["deep/here", "absent"] {
        test_project.run_git(&["submodule", "add", "-q", from.to_str().unwrap(), name]);
    }
    test_project.commit_all();
    test_project.run_git(&["submodule", "deinit", "-q", "-f", "absent"]);
    test_project.write_files(&[("deep/here/edited.md", "in it\n")]);
    let (workspace, created) = test_project.create_workspace(&["a.md"]);
    assert_eq!(tree_names(&workspace), [".gitmodules", "a.md", "deep/here/edited.md", "deep/here/lib.md"]);
    assert!(!workspace.tree_dir().join("deep/here/.git").exists());
    assert_eq!(created.remarks, [""; 0]);
}

#[test]
fn a_nested_repository_is_left_out_and_reported() {
    let test_project = TestProject::with_commit(&[("a.md", "a\n")]);
    test_project.write_files(&[("tools/x/b.md", "b\n")]);
    run_git(&test_project.project_root().join("tools/x"), &["init", "-q"]);
    let (workspace, created) = test_project.create_workspace(&["a.md"]);
    assert_eq!(tree_names(&workspace), ["a.md"]);
    assert_eq!(created.remarks, ["1 repository left out (not registered as a submodule): tools/x"]);
}

#[test]
fn names_that_are_no_text_are_left_out_and_counted_once() {
    for with_git in [false, true] {
        let test_project = TestProject::without_git(&[("a.md", "a\n")]);
        for name in [&b"\xff.md"[..], b"\xfe.md"] {
            write_file(&test_project.project_root().join(OsStr::from_bytes(name)), "odd\n");
        }
        if with_git {
            test_project.run_git(&["init", "-q"]);
            test_project.run_git(&["add", "a.md"]);
        }
        let (workspace, created) = test_project.create_workspace(&["a.md"]);
        assert_eq!(tree_names(&workspace), ["a.md"]);
        assert_eq!(created.remarks, ["2 files left out (invalid UTF-8 in the name)"]);
    }
}

#[test]
fn without_git_every_ordinary_file_is_in_the_copy() {
    let test_project = TestProject::without_git(&[
        ("docs/prd.md", "one\n"),
        ("docs/deep/er/other.md", "two\n"),
        ("node_modules/x.js", "no"),
        (".tribunal/j", "no"),
        (".hidden", "yes"),
    ]);
    let (workspace, created) = test_project.create_workspace(&["docs/prd.md"]);
    assert_eq!(tree_names(&workspace), [".hidden", "docs/deep/er/other.md", "docs/prd.md"]);
    assert!(!workspace.tree_dir().join(".git").exists() && !workspace.tree_dir().join(".tribunal").exists());
    assert_eq!(created.remarks, [""; 0]);
}

#[test]
fn it_is_reported_if_git_cannot_say_what_is_ignored() {
    let test_project = TestProject::without_git(&[("a.md", "a\n"), (".git", "gitdir: nowhere\n")]);
    let (workspace, created) = test_project.create_workspace(&["a.md"]);
    assert_eq!(tree_names(&workspace), ["a.md"]);
    assert_eq!(created.remarks.len(), 1);
    assert!(
        created.remarks[0].starts_with("git could not tell which files are ignored, so all files are copied: "),
        "{created:?}"
    );
}

#[test]
fn a_project_below_the_top_of_a_repository_is_copied_alone() {
    let test_project =
        TestProject::with_commit(&[("above.md", "no\n"), ("part/a.md", "a\n"), (".gitignore", "*.log\n")]);
    test_project.write_files(&[("part/x.log", "no\n"), ("part/new.md", "new\n")]);
    let (workspace, _) =
        create_workspace_at(&test_project.project_root().join("part"), &test_project.sibling_path("copy"), &["a.md"]);
    assert_eq!(tree_names(&workspace), ["a.md", "new.md"]);
    assert!(!workspace.tree_dir().join(".git").exists());
}

#[test]
fn what_tools_leave_behind_is_copied_only_if_git_tracks_it() {
    let test_project = TestProject::with_commit(&[("a.md", "a\n"), ("src/target/kept.rs", "kept\n")]);
    test_project.write_files(&[("node_modules/x.js", "no\n"), ("src/target/new.rs", "no\n")]);
    let (workspace, _) = test_project.create_workspace(&["a.md"]);
    assert_eq!(tree_names(&workspace), ["a.md", "src/target/kept.rs"]);
    fs::write(workspace.tree_dir().join("src/target/kept.rs"), "built\n").unwrap();
    assert_eq!(workspace.changed_files().unwrap(), BTreeMap::new());
}

#[test]
fn an_ignored_subject_is_in_the_copy_wherever_it_is_and_its_changes_count() {
    let test_project = TestProject::with_commit(&[(".gitignore", "docs/\nnode_modules/\n")]);
    test_project.write_files(&[
        ("docs/prd.md", "one\n"),
        ("docs/other.md", "two\n"),
        ("node_modules/x/y.md", "three\n"),
    ]);
    let (workspace, _) = test_project.create_workspace(&["docs/prd.md", "node_modules/x/y.md"]);
    assert_eq!(tree_names(&workspace), [".gitignore", "docs/prd.md", "node_modules/x/y.md"]);
    assert_eq!(workspace.changed_files().unwrap(), BTreeMap::new());
    fs::write(workspace.tree_dir().join("node_modules/x/y.md"), "changed\n").unwrap();
    fs::write(workspace.tree_dir().join("node_modules/x/z.md"), "left behind\n").unwrap();
    assert_eq!(workspace.changed_files().unwrap().into_keys().collect::<Vec<_>>(), ["node_modules/x/y.md"]);
    fs::remove_dir_all(workspace.tree_dir().join("node_modules")).unwrap();
    assert_eq!(workspace.changed_files().unwrap()["node_modules/x/y.md"], None);
}

#[test]
fn a_copy_takes_one_process_and_one_of_a_stored_tree_two() {
    let test_project = TestProject::with_commit(&[("a.md", "a\n"), ("part/b.md", "b\n")]);
    STARTED.set(0);
    test_project.create_workspace(&["a.md"]);
    assert_eq!(STARTED.get(), 1);
    create_workspace_at(&test_project.project_root().join("part"), &test_project.sibling_path("copy"), &["b.md"]);
    assert_eq!(STARTED.get(), 2);
    test_project.create_workspace_from(&WorkspaceOptions {
        files: &["a.md"],
        tree: Some("HEAD"),
        ..WorkspaceOptions::default()
    });
    assert_eq!(STARTED.get(), 4);
}

#[test]
fn an_untrusted_repository_cannot_run_programs() {
    let test_project = TestProject::with_commit(&[("docs/prd.md", "one\n")]);
    let marker_file = test_project.sibling_path("owned");
    let watcher_command = format!("touch '{}'", marker_file.display());
    test_project.run_git(&["config", "core.fsmonitor", &watcher_command]);
    // The other way round: a committed directory that looks like a repository of its own.
    let fake = test_project.project_root().join("docs");
    for directory in ["objects", "refs"] {
        fs::create_dir_all(fake.join(directory)).unwrap();
    }
    write_file(&fake.join("HEAD"), "ref: refs/heads/main\n");
    let config = format!("[core]\nrepositoryformatversion = 0\nworktree = ..\nfsmonitor = \"{watcher_command}\"\n");
    write_file(&fake.join("config"), config);
    let (workspace, _) = test_project.create_workspace(&["docs/prd.md"]);
    assert!(tree_names(&workspace).contains(&"docs/prd.md".to_string()));
    let (workspace, _) = create_workspace_at(&fake, &test_project.sibling_path("copy"), &["prd.md"]);
    assert!(tree_names(&workspace).contains(&"prd.md".to_string()));
    run_git(&test_project.create_workspace(&["docs/prd.md"]).0.tree_dir(), &["status"]);
    assert!(!marker_file.exists(), "the project's own configuration ran a program");
}

#[test]
fn files_of_git_or_tribunal_cannot_be_a_subject() {
    let test_project = TestProject::with_commit(&[("a.md", "a\n")]);
    for path in [".git/config", ".tribunal/journal.db", "deep/.GIT/x", "../a.md", "/etc/passwd", ""] {
        let source = WorkspaceSource {
            project_root: &test_project.project_root(),
            subject_files: &[path.to_string()],
            stored_tree: None,
            seed_paths: &[],
        };
        assert!(TaskWorkspace::from_directory(test_project.sibling_path("copy")).create(&source).is_err(), "{path}");
    }
}
