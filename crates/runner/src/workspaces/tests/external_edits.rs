//! Which edits that bypass a workspace are noticed.

use super::*;
use tribunal_core::engine::ids::Hash;

/// Returns for each edit the path, whether the file existed before, and whether it exists now.
fn find_edits_during(test_project: &TestProject, agent_work: impl FnOnce()) -> Vec<(String, bool, bool)> {
    let (workspace, _) = test_project.create_workspace(&["plan.md"]);
    let work_tree_watch = workspace.watch_work_tree(&test_project.project_root()).unwrap();
    // Agents can do anything to what lies beside their workspace.
    workspace.remove().unwrap();
    agent_work();
    let moved = work_tree_watch.find_external_edits(&test_project.project_root()).into_iter();
    moved.map(|edit| (edit.relative_path, edit.hash_before.is_some(), edit.hash_after.is_some())).collect()
}

fn committed_project() -> TestProject {
    TestProject::with_commit(&[("plan.md", "a\n"), ("src/a.rs", "a\n"), ("src/b.rs", "b\n"), (".gitignore", "*.log\n")])
}

#[test]
fn what_is_changed_deleted_or_new_is_noticed_and_the_rest_is_not() {
    let test_project = committed_project();
    test_project.write_files(&[("src/new-before.rs", "mine\n")]);
    let edits = find_edits_during(&test_project, || {
        test_project.write_files(&[("src/a.rs", "other\n"), ("notes.md", "new\n"), (".envrc", "export A=1\n")]);
        test_project.write_files(&[("a.log", "ignored\n"), ("src/.a.rs.swp", "passing\n"), ("plan.md", "a\n")]);
        fs::remove_file(test_project.project_root().join("src/b.rs")).unwrap();
    });
    let described_edits: Vec<(&str, bool, bool)> =
        edits.iter().map(|(path, existed_before, exists_now)| (path.as_str(), *existed_before, *exists_now)).collect();
    assert_eq!(
        described_edits,
        [("src/a.rs", true, true), ("src/b.rs", true, false), (".envrc", false, true), ("notes.md", false, true)]
    );
}

#[test]
fn what_changed_before_the_agent_began_is_not_reported() {
    let test_project = committed_project();
    let (workspace, _) = test_project.create_workspace(&["plan.md"]);
    test_project.write_files(&[("src/a.rs", "mine\n")]);
    fs::remove_file(test_project.project_root().join("src/b.rs")).unwrap();
    let work_tree_watch = workspace.watch_work_tree(&test_project.project_root()).unwrap();
    assert_eq!(work_tree_watch.find_external_edits(&test_project.project_root()), []);
}

#[test]
fn an_unreadable_file_counts_as_changed() {
    let test_project = committed_project();
    let unreadable = super::super::external_edits::current_hash(&test_project.project_root(), "src");
    assert_eq!(unreadable, Hash::new("unreadable"));
}
