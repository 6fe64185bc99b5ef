//! No link leads out of a workspace.

use std::os::unix::fs::symlink;

use super::{super::listing::leads_inside, *};

#[test]
fn links_that_stay_inside_are_kept_and_others_said() {
    let place = Place::plain(&[("docs/a.md", "a\n"), ("b.md", "b\n")]);
    write(&place.beside("outside.md"), "secret\n");
    let root = place.root();
    for (path, target) in [
        ("docs/up", "../b.md"),
        ("docs/folder", "../docs"),
        ("dangling", "docs/nothing.md"),
        ("out", "../outside.md"),
        ("docs/absolute", root.join("b.md").to_str().unwrap()),
        ("docs/through", "folder/../../outside.md"),
        ("circle", "circle"),
        ("into-git", ".git/config"),
    ] {
        symlink(target, root.join(path)).unwrap();
    }
    for with_git in [false, true] {
        if with_git {
            place.git(&["init", "-q"]);
            place.commit();
        }
        let (copy, made) = place.copy(&["b.md"]);
        let links = ["dangling", "docs/folder", "docs/up"];
        let mut expected = vec!["b.md", "docs/a.md"];
        expected.extend(links);
        expected.sort_unstable();
        assert_eq!(names(&copy), expected);
        for link in links {
            assert_eq!(things(&copy.tree())[link], things(&root)[link]);
        }
        assert_eq!(made.remarks.len(), 1, "{made:?}");
        assert!(made.remarks[0].starts_with("5 links left out, leading out of the project: "), "{made:?}");
        assert_eq!(copy.changes().unwrap(), BTreeMap::new());
    }
}

#[test]
fn a_link_in_the_place_of_a_tracked_folder_leads_nowhere() {
    let place = Place::committed(&[("a.md", "a\n"), ("docs/b.md", "b\n")]);
    write(&place.beside("elsewhere/b.md"), "secret\n");
    fs::remove_dir_all(place.root().join("docs")).unwrap();
    symlink("../elsewhere", place.root().join("docs")).unwrap();
    let (copy, made) = place.copy(&["a.md", "docs/b.md"]);
    assert_eq!(names(&copy), ["a.md"]);
    assert_eq!(made.remarks, ["1 link left out, leading out of the project: docs"]);
    assert_eq!(copy.base("docs/b.md").unwrap(), None);
}

#[test]
fn a_link_that_an_agent_changes_or_makes_is_a_change() {
    let place = Place::plain(&[("a.md", "a\n"), ("b.md", "b\n")]);
    symlink("a.md", place.root().join("link")).unwrap();
    symlink("a.md", place.root().join("other")).unwrap();
    let (copy, _) = place.copy(&["a.md"]);
    assert_eq!(copy.changes().unwrap(), BTreeMap::new());
    for (path, target) in [("link", "b.md"), ("way-out", "/etc")] {
        let _ = fs::remove_file(copy.tree().join(path));
        symlink(target, copy.tree().join(path)).unwrap();
    }
    // A file with the text of the link's target is not a link.
    fs::remove_file(copy.tree().join("other")).unwrap();
    fs::write(copy.tree().join("other"), "a.md").unwrap();
    assert_eq!(copy.changes().unwrap().into_keys().collect::<Vec<_>>(), ["link", "other", "way-out"]);
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
        assert_eq!(leads_inside(path, target, &link), inside, "{path} -> {target}");
    }
}
