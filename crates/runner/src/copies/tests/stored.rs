//! A commit, exactly as git stored it.

use std::os::unix::fs::symlink;

use super::*;

fn stored<'a>(files: &'a [&'a str], tree: &'a str) -> Want<'a> {
    Want { files, tree: Some(tree), ..Want::default() }
}

#[test]
fn a_commit_is_copied_whatever_the_work_tree_has() {
    let place = Place::plain(&[
        ("a.md", "one\r\n"),
        ("deep/-b c.md", "b\n"),
        ("ümlaut.md", "u\n"),
        ("tool", "#!/bin/sh\n"),
        ("empty", ""),
    ]);
    make_executable(&place.root().join("tool"));
    symlink("deep", place.root().join("link")).unwrap();
    place.git(&["init", "-q"]);
    place.commit();
    let expected = things(&place.root());
    symlink("/etc/passwd", place.root().join("out")).unwrap();
    place.commit();
    let commit = place.git(&["rev-parse", "HEAD"]);
    fs::remove_dir_all(place.root().join("deep")).unwrap();
    place.write(&[("a.md", "two\n"), ("new.md", "new\n")]);
    place.commit();
    let tree = place.git(&["rev-parse", &format!("{}^{{tree}}", commit.trim())]);
    let before = everything(&place.root().join(".git"));
    for name in [commit.trim(), tree.trim()] {
        let (copy, made) = place.make(&stored(&["a.md", "deep/-b c.md", "new.md"], name));
        assert_eq!(things(&copy.tree()), expected);
        assert_eq!(made.remarks, ["1 link left out, leading out of the project: out"]);
        assert_eq!(copy.base("a.md").unwrap().as_deref(), Some(&b"one\r\n"[..]));
        assert_eq!(copy.base("new.md").unwrap(), None);
        assert_eq!(copy.seen().unwrap(), BTreeMap::new());
        assert_eq!(copy.changes().unwrap(), BTreeMap::new());
        fs::write(copy.tree().join("deep/-b c.md"), "changed\n").unwrap();
        fs::write(copy.tree().join("new.md"), "added\n").unwrap();
        assert_eq!(copy.changes().unwrap().into_keys().collect::<Vec<_>>(), ["deep/-b c.md", "new.md"]);
        copy.restore().unwrap();
        assert_eq!(things(&copy.tree()), expected);
    }
    assert_eq!(everything(&place.root().join(".git")), before);
}

#[test]
fn a_project_below_the_top_gets_its_part_of_a_commit() {
    let place = Place::committed(&[("above.md", "no\n"), ("part/a.md", "a\n")]);
    let copy = Copy::at(place.beside("copy"));
    let root = place.root().join("part");
    let source = Source { root: &root, files: &["a.md".to_string()], tree: Some("HEAD"), seeds: &[] };
    copy.make(&source).unwrap();
    assert_eq!(names(&copy), ["a.md"]);
}

#[test]
fn a_stored_submodule_is_left_out_and_said() {
    let library = Place::committed(&[("lib.md", "library\n")]);
    let place = Place::committed(&[("a.md", "a\n")]);
    place.git(&["submodule", "add", "-q", library.root().to_str().unwrap(), "lib"]);
    place.commit();
    let (copy, made) = place.make(&stored(&["a.md"], "HEAD"));
    assert_eq!(names(&copy), [".gitmodules", "a.md"]);
    assert_eq!(made.remarks, ["1 submodule left out, being another repository's: lib"]);
}

#[test]
fn many_blobs_come_through_two_pipes_without_waiting_for_each_other() {
    let place = Place::plain(&[("a.md", "a\n")]);
    let long = "x".repeat(50_000);
    for number in 0..2_000 {
        let text = if number % 100 == 0 { format!("{number}{long}") } else { number.to_string() };
        write(&place.root().join(format!("{}/{number}", number % 7)), text);
    }
    place.git(&["init", "-q"]);
    place.commit();
    let (copy, _) = place.make(&stored(&["a.md"], "HEAD"));
    assert_eq!(things(&copy.tree()), things(&place.root()));
}

#[test]
fn what_is_no_commit_is_an_error_with_git_s_reason() {
    let place = Place::committed(&[("a.md", "a\n")]);
    for (name, why) in
        [("nothing", "Not a valid object name"), ("--help", "is no commit"), ("", "is no commit")]
    {
        let source = Source { root: &place.root(), files: &[], tree: Some(name), seeds: &[] };
        let copy = Copy::at(place.beside("copy"));
        let said = copy.make(&source).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
        assert!(!copy.is_complete());
    }
}
