//! A copy of a frozen workspace has what was frozen, and nothing that was written since.

use std::os::unix::fs::symlink;

use super::*;

fn frozen_project() -> (TestProject, TaskWorkspace) {
    let test_project = TestProject::with_commit(&[("a.md", "one\n"), ("docs/run.sh", "run\n"), ("b.md", "b\n")]);
    make_executable(&test_project.project_root().join("docs/run.sh"));
    make_old(&test_project.project_root().join("b.md"));
    symlink("docs/run.sh", test_project.project_root().join("link")).unwrap();
    test_project.commit_all();
    test_project.write_files(&[("a.md", "one\ntwo\n")]);
    let (frozen, _) = test_project.create_workspace(&["a.md"]);
    fs::write(frozen.directory().join("diff.txt"), "the diff\n").unwrap();
    (test_project, frozen)
}

#[test]
fn a_copy_has_files_links_modes_times_and_git_as_they_were_frozen() {
    let (test_project, frozen) = frozen_project();
    let copy = TaskWorkspace::from_directory(test_project.sibling_path("reader/1"));
    copy.copy_frozen(&frozen).unwrap();
    assert!(copy.is_complete());
    assert_eq!(tree_items(&copy.tree_dir()), tree_items(&test_project.project_root()));
    let modified =
        |workspace: &TaskWorkspace| fs::metadata(workspace.tree_dir().join("b.md")).unwrap().modified().unwrap();
    assert_eq!(modified(&copy), modified(&frozen));
    let status = |directory: &Path| run_git(directory, &["status", "--porcelain=v2", "--branch", "-uall"]);
    assert_eq!(status(&copy.tree_dir()), status(&test_project.project_root()));
    assert_eq!(copy.read_base("a.md").unwrap().as_deref(), Some(&b"one\ntwo\n"[..]));
    assert_eq!(fs::read_to_string(copy.directory().join("diff.txt")).unwrap(), "the diff\n");
    assert!(copy.changed_files().unwrap().is_empty());
}

#[test]
fn a_copy_is_made_again_without_what_was_written_into_it_or_into_the_original() {
    let (test_project, frozen) = frozen_project();
    let copy = TaskWorkspace::from_directory(test_project.sibling_path("reader/1"));
    copy.copy_frozen(&frozen).unwrap();
    for workspace in [&copy, &frozen] {
        write_file(&workspace.tree_dir().join("a.md"), "changed\n");
        write_file(&workspace.tree_dir().join("docs/new.md"), "new\n");
    }
    write_file(&copy.tree_dir().join("b.md"), "changed\n");
    copy.copy_frozen(&frozen).unwrap();
    assert_eq!(tree_items(&copy.tree_dir()), tree_items(&test_project.project_root()));
    // A process that is killed while it copies leaves no list behind.
    fs::remove_file(copy.directory().join("manifest.json")).unwrap();
    fs::remove_file(copy.tree_dir().join("b.md")).unwrap();
    assert!(!copy.is_complete());
    copy.copy_frozen(&frozen).unwrap();
    assert_eq!(tree_items(&copy.tree_dir()), tree_items(&test_project.project_root()));
}

#[test]
fn what_one_reader_does_with_git_stays_in_its_copy() {
    let (test_project, frozen) = frozen_project();
    let [first, second] =
        ["first/1", "second/1"].map(|name| TaskWorkspace::from_directory(test_project.sibling_path(name)));
    first.copy_frozen(&frozen).unwrap();
    run_git(&first.tree_dir(), &["add", "-A"]);
    run_git(&first.tree_dir(), &["commit", "-q", "-m", "mine"]);
    second.copy_frozen(&frozen).unwrap();
    let log = |directory: &Path| run_git(directory, &["log", "--format=%H"]);
    assert_ne!(log(&first.tree_dir()), log(&second.tree_dir()));
    assert_eq!(log(&second.tree_dir()), log(&test_project.project_root()));
}
