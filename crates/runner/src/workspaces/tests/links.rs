//! No link leads out of a workspace.

use std::os::unix::fs::symlink;

use super::{super::listing::link_stays_inside, *};

#[test]
fn links_that_stay_inside_are_copied_and_others_are_reported() {
    let test_project = TestProject::without_git(&[("docs/a.md", "a\n"), ("b.md", "b\n")]);
    write_file(&test_project.sibling_path("outside.md"), "secret\n");
    let project_root = test_project.project_root();
    for (path, target) in [
        ("docs/up", "../b.md"),
        ("docs/folder", "../docs"),
        ("dangling", "docs/nothing.md"),
        ("out", "../outside.md"),
        ("docs/absolute", project_root.join("b.md").to_str().unwrap()),
        ("docs/through", "folder/../../outside.md"),
        ("circle", "circle"),
        ("into-git", ".git/config"),
    ] {
        symlink(target, project_root.join(path)).unwrap();
    }
    for with_git in [false, true] {
        if with_git {
            test_project.run_git(&["init", "-q"]);
            test_project.commit_all();
        }
        let (workspace, created) = test_project.create_workspace(&["b.md"]);
        let links = ["dangling", "docs/folder", "docs/up"];
        let mut expected = vec!["b.md", "docs/a.md"];
        expected.extend(links);
        expected.sort_unstable();
        assert_eq!(tree_names(&workspace), expected);
        for link in links {
            assert_eq!(tree_items(&workspace.tree_dir())[link], tree_items(&project_root)[link]);
        }
        assert_eq!(created.remarks.len(), 1, "{created:?}");
        assert!(created.remarks[0].starts_with("5 symlinks left out (pointing outside the project): "), "{created:?}");
        assert_eq!(workspace.changed_files().unwrap(), BTreeMap::new());
    }
}

#[test]
fn a_link_in_place_of_a_tracked_folder_is_not_followed() {
    let test_project = TestProject::with_commit(&[("a.md", "a\n"), ("docs/b.md", "b\n")]);
    write_file(&test_project.sibling_path("elsewhere/b.md"), "secret\n");
    fs::remove_dir_all(test_project.project_root().join("docs")).unwrap();
    symlink("../elsewhere", test_project.project_root().join("docs")).unwrap();
    let (workspace, created) = test_project.create_workspace(&["a.md", "docs/b.md"]);
    assert_eq!(tree_names(&workspace), ["a.md"]);
    assert_eq!(created.remarks, ["1 symlink left out (pointing outside the project): docs"]);
    assert_eq!(workspace.read_base("docs/b.md").unwrap(), None);
}

#[test]
fn a_link_that_an_agent_changes_or_makes_is_a_change() {
    let test_project = TestProject::without_git(&[("a.md", "a\n"), ("b.md", "b\n")]);
    symlink("a.md", test_project.project_root().join("link")).unwrap();
    symlink("a.md", test_project.project_root().join("other")).unwrap();
    let (workspace, _) = test_project.create_workspace(&["a.md"]);
    assert_eq!(workspace.changed_files().unwrap(), BTreeMap::new());
    for (path, target) in [("link", "b.md"), ("way-out", "/etc")] {
        let _ = fs::remove_file(workspace.tree_dir().join(path));
        symlink(target, workspace.tree_dir().join(path)).unwrap();
    }
    // A file with the text of the link's target is not a link.
    fs::remove_file(workspace.tree_dir().join("other")).unwrap();
    fs::write(workspace.tree_dir().join("other"), "a.md").unwrap();
    assert_eq!(workspace.changed_files().unwrap().into_keys().collect::<Vec<_>>(), ["link", "other", "way-out"]);
}

#[test]
fn where_a_link_leads_is_followed_through_other_links() {
    let links = BTreeMap::from([("deep/er/up", "../../x"), ("loop/a", "b"), ("loop/b", "a"), ("x", "y")]);
    let link = |path: &str| links.get(path).map(|target| target.to_string());
    for (path, target, inside) in [
        ("a", "b", true),
        ("a", "./b//c/../d", true),
        ("a", "..", false),
        ("a/b", "..", true),
        ("a/b", "../..", false),
        ("a", "/b", false),
        ("a", "deep/er/up/../../z", false),
        ("a", "deep/er/up/../z", true),
        ("a", "loop/a", false),
        ("a", ".tribunal/journal.db", false),
        ("a", "b/.git", false),
        // A link below a link is somewhere else than its path says.
        ("x/b/c", "../..", false),
    ] {
        assert_eq!(link_stays_inside(path, target, &link), inside, "{path} -> {target}");
    }
}
