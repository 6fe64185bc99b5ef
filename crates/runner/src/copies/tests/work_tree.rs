//! A workspace has the bytes of the user's files, regardless of how git would convert them.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::*;

/// A filter that leaves a file behind when it runs.
fn filter(place: &Place) -> PathBuf {
    let ran = place.beside("ran");
    let clean = format!("touch '{}'; sed s/SMUDGED/clean/", ran.display());
    let smudge = format!("touch '{}'; sed s/clean/SMUDGED/", ran.display());
    place.git(&["config", "filter.big.clean", &clean]);
    place.git(&["config", "filter.big.smudge", &smudge]);
    place.git(&["config", "filter.big.required", "true"]);
    ran
}

#[test]
fn a_copy_is_the_work_tree_without_what_is_ignored() {
    let place = Place::committed(&[
        ("same.md", "same\n"),
        ("staged.md", "old\n"),
        ("edited.md", "old\n"),
        ("gone.md", "old\n"),
        ("unstaged-gone.md", "old\n"),
        (".gitignore", "*.log\n"),
    ]);
    place.write(&[("staged.md", "staged\n"), ("added.md", "added\n")]);
    place.git(&["add", "."]);
    place.git(&["rm", "-q", "gone.md"]);
    place.write(&[("edited.md", "edited\n"), ("added.md", "added and edited\n"), ("new/one.md", "new\n")]);
    place.write(&[("x.log", "no\n"), ("tool.sh", "#!/bin/sh\n"), ("empty", "")]);
    make_executable(&place.root().join("tool.sh"));
    fs::remove_file(place.root().join("unstaged-gone.md")).unwrap();
    let git = everything(&place.root().join(".git"));

    let (copy, made) = place.copy(&["same.md"]);

    let mut expected = things(&place.root());
    expected.remove("x.log");
    assert_eq!(things(&copy.tree()), expected);
    assert_eq!(made.remarks, [""; 0]);
    assert_eq!(copy.changes().unwrap(), BTreeMap::new());
    assert_eq!(everything(&place.root().join(".git")), git, "the person's repository was touched");
}

#[test]
fn line_ends_are_those_of_the_work_tree() {
    let place = Place::committed(&[("a.md", "one\ntwo\n")]);
    place.git(&["config", "core.autocrlf", "true"]);
    fs::remove_file(place.root().join("a.md")).unwrap();
    place.git(&["checkout", "-q", "a.md"]);
    let (copy, _) = place.copy(&["a.md"]);
    assert_eq!(fs::read(copy.tree().join("a.md")).unwrap(), b"one\r\ntwo\r\n");
    assert_eq!(git(&copy.tree(), &["status", "--porcelain"]), "");
}

#[test]
fn a_filter_does_not_run_and_its_file_is_as_the_person_sees_it() {
    let place = Place::plain(&[(".gitattributes", "*.bin filter=big\n"), ("a.bin", "SMUDGED\n")]);
    place.git(&["init", "-q"]);
    let ran = filter(&place);
    make_old(&place.root().join("a.bin"));
    place.commit();
    assert_eq!(place.git(&["show", "HEAD:a.bin"]), "clean\n");
    fs::remove_file(&ran).unwrap();
    let (copy, _) = place.copy(&["a.bin"]);
    assert_eq!(fs::read(copy.tree().join("a.bin")).unwrap(), b"SMUDGED\n");
    // The workspace has no such filter, and still knows that nothing has changed.
    assert_eq!(git(&copy.tree(), &["status", "--porcelain"]), "");
    let (copy, _) = place.make(&Want { files: &["a.bin"], tree: Some("HEAD"), ..Want::default() });
    assert_eq!(fs::read(copy.tree().join("a.bin")).unwrap(), b"clean\n");
    assert!(!ran.exists(), "a filter ran");
}

#[test]
fn what_a_sparse_checkout_leaves_out_is_not_in_the_copy() {
    let place = Place::committed(&[("in/a.md", "in\n"), ("out/b.md", "out\n"), ("top.md", "top\n")]);
    place.git(&["sparse-checkout", "set", "--sparse-index", "in"]);
    let (copy, made) = place.copy(&["in/a.md"]);
    assert_eq!(names(&copy), ["in/a.md", "top.md"]);
    assert_eq!(made.remarks, [""; 0]);
    assert_eq!(git(&copy.tree(), &["status", "--porcelain"]), "");
    assert_eq!(git(&copy.tree(), &["show", "HEAD:out/b.md"]), "out\n");
}

#[test]
fn an_edit_that_git_was_told_to_overlook_is_in_the_copy() {
    let place = Place::committed(&[("a.md", "old\n"), ("b.md", "old\n")]);
    place.git(&["update-index", "--skip-worktree", "a.md"]);
    place.git(&["update-index", "--assume-unchanged", "b.md"]);
    place.write(&[("a.md", "mine\n"), ("b.md", "mine too\n")]);
    let (copy, _) = place.copy(&["a.md"]);
    assert_eq!(fs::read(copy.tree().join("a.md")).unwrap(), b"mine\n");
    assert_eq!(fs::read(copy.tree().join("b.md")).unwrap(), b"mine too\n");
}

#[test]
fn a_file_in_conflict_is_there_once_with_its_markers() {
    let place = Place::committed(&[("a.md", "base\n")]);
    place.git(&["checkout", "-q", "-b", "other"]);
    place.write(&[("a.md", "theirs\n")]);
    place.commit();
    place.git(&["checkout", "-q", "main"]);
    place.write(&[("a.md", "ours\n")]);
    place.commit();
    assert!(!command(&place.root(), &["merge", "-q", "other"]).output().unwrap().status.success());
    let (copy, _) = place.copy(&["a.md"]);
    assert_eq!(things(&copy.tree()), things(&place.root()));
    assert_eq!(git(&copy.tree(), &["status", "--porcelain"]), "UU a.md\n");
}

#[test]
fn of_submodules_those_that_are_checked_out_are_in_the_copy() {
    let library = Place::committed(&[("lib.md", "library\n")]);
    let place = Place::committed(&[("a.md", "a\n")]);
    let from = library.root();
    for name in ["deep/here", "absent"] {
        place.git(&["submodule", "add", "-q", from.to_str().unwrap(), name]);
    }
    place.commit();
    place.git(&["submodule", "deinit", "-q", "-f", "absent"]);
    place.write(&[("deep/here/edited.md", "in it\n")]);
    let (copy, made) = place.copy(&["a.md"]);
    assert_eq!(names(&copy), [".gitmodules", "a.md", "deep/here/edited.md", "deep/here/lib.md"]);
    assert!(!copy.tree().join("deep/here/.git").exists());
    assert_eq!(made.remarks, [""; 0]);
}

#[test]
fn another_repository_inside_is_left_out_and_said() {
    let place = Place::committed(&[("a.md", "a\n")]);
    place.write(&[("tools/x/b.md", "b\n")]);
    git(&place.root().join("tools/x"), &["init", "-q"]);
    let (copy, made) = place.copy(&["a.md"]);
    assert_eq!(names(&copy), ["a.md"]);
    assert_eq!(made.remarks, ["1 repository left out, being no submodule: tools/x"]);
}

#[test]
fn names_that_are_no_text_are_left_out_and_counted_once() {
    for with_git in [false, true] {
        let place = Place::plain(&[("a.md", "a\n")]);
        for name in [&b"\xff.md"[..], b"\xfe.md"] {
            write(&place.root().join(OsStr::from_bytes(name)), "odd\n");
        }
        if with_git {
            place.git(&["init", "-q"]);
            place.git(&["add", "a.md"]);
        }
        let (copy, made) = place.copy(&["a.md"]);
        assert_eq!(names(&copy), ["a.md"]);
        assert_eq!(made.remarks, ["2 files left out, their names are no UTF-8"]);
    }
}

#[test]
fn without_git_every_ordinary_file_is_in_the_copy() {
    let place = Place::plain(&[
        ("docs/prd.md", "one\n"),
        ("docs/deep/er/other.md", "two\n"),
        ("node_modules/x.js", "no"),
        (".tribunal/j", "no"),
        (".hidden", "yes"),
    ]);
    let (copy, made) = place.copy(&["docs/prd.md"]);
    assert_eq!(names(&copy), [".hidden", "docs/deep/er/other.md", "docs/prd.md"]);
    assert!(!copy.tree().join(".git").exists() && !copy.tree().join(".tribunal").exists());
    assert_eq!(made.remarks, [""; 0]);
}

#[test]
fn where_git_cannot_say_what_is_ignored_that_is_said() {
    let place = Place::plain(&[("a.md", "a\n"), (".git", "gitdir: nowhere\n")]);
    let (copy, made) = place.copy(&["a.md"]);
    assert_eq!(names(&copy), ["a.md"]);
    assert_eq!(made.remarks.len(), 1);
    assert!(
        made.remarks[0].starts_with("git cannot say what is ignored, so all files are copied: "),
        "{made:?}"
    );
}

#[test]
fn a_project_below_the_top_of_a_repository_is_copied_alone() {
    let place = Place::committed(&[("above.md", "no\n"), ("part/a.md", "a\n"), (".gitignore", "*.log\n")]);
    place.write(&[("part/x.log", "no\n"), ("part/new.md", "new\n")]);
    let (copy, _) = copy_of(&place.root().join("part"), &place.beside("copy"), &["a.md"]);
    assert_eq!(names(&copy), ["a.md", "new.md"]);
    assert!(!copy.tree().join(".git").exists());
}

#[test]
fn what_tools_leave_behind_is_copied_only_if_git_tracks_it() {
    let place = Place::committed(&[("a.md", "a\n"), ("src/target/kept.rs", "kept\n")]);
    place.write(&[("node_modules/x.js", "no\n"), ("src/target/new.rs", "no\n")]);
    let (copy, _) = place.copy(&["a.md"]);
    assert_eq!(names(&copy), ["a.md", "src/target/kept.rs"]);
    fs::write(copy.tree().join("src/target/kept.rs"), "built\n").unwrap();
    assert_eq!(copy.changes().unwrap(), BTreeMap::new());
}

#[test]
fn an_ignored_subject_is_in_the_copy_wherever_it_is_and_its_changes_count() {
    let place = Place::committed(&[(".gitignore", "docs/\nnode_modules/\n")]);
    place.write(&[("docs/prd.md", "one\n"), ("docs/other.md", "two\n"), ("node_modules/x/y.md", "three\n")]);
    let (copy, _) = place.copy(&["docs/prd.md", "node_modules/x/y.md"]);
    assert_eq!(names(&copy), [".gitignore", "docs/prd.md", "node_modules/x/y.md"]);
    assert_eq!(copy.changes().unwrap(), BTreeMap::new());
    fs::write(copy.tree().join("node_modules/x/y.md"), "changed\n").unwrap();
    fs::write(copy.tree().join("node_modules/x/z.md"), "left behind\n").unwrap();
    assert_eq!(copy.changes().unwrap().into_keys().collect::<Vec<_>>(), ["node_modules/x/y.md"]);
    fs::remove_dir_all(copy.tree().join("node_modules")).unwrap();
    assert_eq!(copy.changes().unwrap()["node_modules/x/y.md"], None);
}

#[test]
fn a_copy_of_the_work_tree_takes_two_processes_and_without_a_repository_of_its_own_one() {
    let place = Place::committed(&[("a.md", "a\n"), ("part/b.md", "b\n")]);
    STARTED.set(0);
    place.copy(&["a.md"]);
    assert_eq!(STARTED.get(), 2);
    copy_of(&place.root().join("part"), &place.beside("copy"), &["b.md"]);
    assert_eq!(STARTED.get(), 3);
    place.make(&Want { files: &["a.md"], tree: Some("HEAD"), ..Want::default() });
    assert_eq!(STARTED.get(), 5);
}

#[test]
fn a_stranger_s_repository_gets_nothing_to_run() {
    let place = Place::committed(&[("docs/prd.md", "one\n")]);
    let own = place.beside("owned");
    let watcher = format!("touch '{}'", own.display());
    place.git(&["config", "core.fsmonitor", &watcher]);
    // The other way round: a committed directory that looks like a repository of its own.
    let fake = place.root().join("docs");
    for folder in ["objects", "refs"] {
        fs::create_dir_all(fake.join(folder)).unwrap();
    }
    write(&fake.join("HEAD"), "ref: refs/heads/main\n");
    let config = format!("[core]\nrepositoryformatversion = 0\nworktree = ..\nfsmonitor = \"{watcher}\"\n");
    write(&fake.join("config"), config);
    let (copy, _) = place.copy(&["docs/prd.md"]);
    assert!(names(&copy).contains(&"docs/prd.md".to_string()));
    let (copy, _) = copy_of(&fake, &place.beside("copy"), &["prd.md"]);
    assert!(names(&copy).contains(&"prd.md".to_string()));
    git(&place.copy(&["docs/prd.md"]).0.tree(), &["status"]);
    assert!(!own.exists(), "the project's own configuration ran a program");
}

#[test]
fn what_is_git_s_or_ours_is_no_subject() {
    let place = Place::committed(&[("a.md", "a\n")]);
    for path in [".git/config", ".tribunal/journal.db", "deep/.GIT/x", "../a.md", "/etc/passwd", ""] {
        let source = Source { root: &place.root(), files: &[path.to_string()], tree: None, seeds: &[] };
        assert!(Copy::at(place.beside("copy")).make(&source).is_err(), "{path}");
    }
}
