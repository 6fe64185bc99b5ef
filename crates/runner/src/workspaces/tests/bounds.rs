//! A workspace that would be too large is made smaller, and says so.

use super::*;

fn five_files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("docs/a.md", "12345678"),
        ("docs/b.md", "12345678"),
        ("docs/deep/c.md", "12345678"),
        ("src/d.rs", "12345678"),
        ("e.md", "12345678"),
    ]
}

#[test]
fn beyond_the_limits_a_workspace_has_the_subject_folders_or_the_subject_alone() {
    let all = ["docs/a.md", "docs/b.md", "docs/deep/c.md", "e.md", "src/d.rs"];
    let directories = "workspaces have only the reviewed files and their directories, and no git history: ";
    let alone = "workspaces have only the reviewed files, and no git history: ";
    for (files, bytes, kept, expected_remark) in [
        (5, 40, &all[..], None),
        (4, 40, &all[..2], Some(format!("{directories}the project has 5 files (1 KB), the limit is 4 (1 KB)"))),
        (5, 39, &all[..2], Some(format!("{directories}the project has 5 files (1 KB), the limit is 5 (1 KB)"))),
        (5, 15, &all[..1], Some(format!("{alone}the project has 5 files (1 KB), the limit is 5 (1 KB)"))),
        (0, 0, &all[..1], Some(format!("{alone}the project has 5 files (1 KB), the limit is 0 (0 KB)"))),
    ] {
        let test_project = TestProject::with_commit(&five_files());
        for tree in [None, Some("HEAD")] {
            let limits = Some(CopyLimits { files, bytes });
            let (workspace, created) = test_project.create_workspace_from(&WorkspaceOptions {
                files: &["docs/a.md"],
                tree,
                bounds: limits,
                ..WorkspaceOptions::default()
            });
            assert_eq!(tree_names(&workspace), kept);
            assert_eq!(created.remarks, Vec::from_iter(expected_remark.clone()));
            // A history with most files missing would make an agent believe that they were deleted.
            assert_eq!(workspace.tree_dir().join(".git").exists(), expected_remark.is_none() && tree.is_none());
            assert_eq!(workspace.changed_files().unwrap(), BTreeMap::new());
        }
    }
}

#[test]
fn without_git_counting_stops_and_the_subject_folder_is_still_copied() {
    let test_project = TestProject::without_git(&five_files());
    for number in 0..20 {
        write_file(&test_project.project_root().join(format!("many-{number}/x")), "x");
    }
    let limits = Some(CopyLimits { files: 3, bytes: 1000 });
    let (workspace, created) = test_project.create_workspace_from(&WorkspaceOptions {
        files: &["docs/a.md"],
        bounds: limits,
        ..WorkspaceOptions::default()
    });
    assert_eq!(tree_names(&workspace), ["docs/a.md", "docs/b.md"]);
    assert!(created.remarks[0].contains("the project has more than "), "{created:?}");
}

#[test]
fn several_subjects_have_a_folder_each() {
    let test_project = TestProject::with_commit(&five_files());
    let limits = Some(CopyLimits { files: 4, bytes: 1000 });
    let files = ["docs/a.md", "src/d.rs", "gone/x.md"];
    let (workspace, _) = test_project.create_workspace_from(&WorkspaceOptions {
        files: &files,
        bounds: limits,
        ..WorkspaceOptions::default()
    });
    assert_eq!(tree_names(&workspace), ["docs/a.md", "docs/b.md", "src/d.rs"]);
}
