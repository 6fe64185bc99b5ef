//! The git of a workspace shows the user's history and cannot change it.

use super::*;

/// Returns what an agent would look at.
fn seen(folder: &Path) -> [String; 5] {
    [
        &["status", "--porcelain=v2", "--branch", "-uall"][..],
        &["log", "--format=%H %s"],
        &["diff"],
        &["diff", "--cached"],
        &["blame", "-s", "a.md"],
    ]
    .map(|args| git(folder, args))
}

/// Makes an uncommitted change of every kind.
fn stir(root: &Path) {
    write(&root.join("a.md"), "one\nchanged\n");
    write(&root.join("new.md"), "new\n");
    write(&root.join("b.md"), "staged\n");
    git(root, &["add", "b.md"]);
}

fn two_commits() -> Place {
    let place = Place::committed(&[("a.md", "one\n"), ("b.md", "b\n")]);
    place.write(&[("a.md", "one\ntwo\n")]);
    place.commit();
    place
}

#[track_caller]
fn assert_shows_the_same(root: &Path, to: &Path) -> Copy {
    stir(root);
    let (copy, made) = copy_of(root, to, &["a.md"]);
    assert_eq!(made.remarks, [""; 0]);
    assert!(copy.tree().join(".git").is_dir());
    assert_eq!(seen(&copy.tree()), seen(root));
    copy
}

#[test]
fn on_a_branch_it_shows_the_same() {
    let place = two_commits();
    place.git(&["checkout", "-q", "-b", "feature/one-2"]);
    let copy = assert_shows_the_same(&place.root(), &place.beside("copy"));
    assert_eq!(git(&copy.tree(), &["branch", "--show-current"]), "feature/one-2\n");
}

#[test]
fn with_packed_refs_and_objects_it_shows_the_same() {
    let place = two_commits();
    place.git(&["gc", "-q"]);
    assert_shows_the_same(&place.root(), &place.beside("copy"));
}

#[test]
fn with_a_detached_head_it_shows_the_same() {
    let place = two_commits();
    place.git(&["checkout", "-q", "--detach", "HEAD~"]);
    assert_shows_the_same(&place.root(), &place.beside("copy"));
}

#[test]
fn before_the_first_commit_it_shows_what_is_staged() {
    let place = Place::plain(&[("a.md", "a\n"), ("b.md", "b\n")]);
    place.git(&["init", "-q"]);
    for staged in [false, true] {
        if staged {
            place.git(&["add", "a.md"]);
        }
        let (copy, _) = place.copy(&["a.md"]);
        let status = ["status", "--porcelain=v2", "--branch"];
        assert_eq!(git(&copy.tree(), &status), place.git(&status));
    }
}

#[test]
fn in_a_linked_work_tree_it_shows_the_same() {
    let place = two_commits();
    let linked = place.beside("linked");
    place.git(&["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap(), "HEAD~"]);
    assert!(linked.join(".git").is_file());
    assert_shows_the_same(&linked, &place.beside("copy"));
}

#[test]
fn in_a_shallow_clone_it_shows_the_same() {
    let place = two_commits();
    let clone = place.beside("clone");
    let from = format!("file://{}", place.root().display());
    git(place.folder.path(), &["clone", "-q", "--depth=1", &from, clone.to_str().unwrap()]);
    let (copy, _) = copy_of(&clone, &place.beside("copy"), &["a.md"]);
    assert_eq!(git(&copy.tree(), &["log", "--format=%H"]), git(&clone, &["log", "--format=%H"]));
    assert_eq!(git(&copy.tree(), &["log", "--format=%H"]).lines().count(), 1);
    assert_eq!(git(&copy.tree(), &["remote"]), "");
}

#[test]
fn in_a_submodule_it_shows_the_same() {
    let library = two_commits();
    let place = Place::committed(&[("x.md", "x\n")]);
    place.git(&["submodule", "add", "-q", library.root().to_str().unwrap(), "lib"]);
    let root = place.root().join("lib");
    git(&root, &["branch", "--unset-upstream"]);
    assert_shows_the_same(&root, &place.beside("copy"));
}

#[test]
fn with_longer_object_names_it_shows_the_same() {
    let place = Place::plain(&[("a.md", "one\n"), ("b.md", "b\n")]);
    place.git(&["init", "-q", "--object-format=sha256"]);
    place.commit();
    assert_shows_the_same(&place.root(), &place.beside("copy"));
}

#[test]
fn with_an_index_in_two_files_it_shows_the_same() {
    let place = two_commits();
    place.git(&["config", "splitIndex.maxPercentChange", "100"]);
    place.git(&["update-index", "--split-index"]);
    let shared = fs::read_dir(place.root().join(".git")).unwrap().flatten();
    assert!(shared.into_iter().any(|item| item.file_name().to_string_lossy().starts_with("sharedindex.")));
    assert_shows_the_same(&place.root(), &place.beside("copy"));
}

#[test]
fn with_another_index_format_and_caches_it_shows_the_same() {
    let place = two_commits();
    place.git(&["update-index", "--index-version=4", "--untracked-cache"]);
    place.git(&["status"]);
    let copy = assert_shows_the_same(&place.root(), &place.beside("copy"));
    let said = command(&copy.tree(), &["status"]).output().unwrap().stderr;
    assert_eq!(String::from_utf8_lossy(&said), "");
}

#[test]
fn what_the_person_ignores_on_their_own_is_ignored_in_it() {
    let place = two_commits();
    write(&place.root().join(".git/info/exclude"), "*.local\n");
    place.write(&[("x.local", "x\n")]);
    let (copy, _) = place.make(&Want { files: &["a.md"], seeds: &["x.local"], ..Want::default() });
    assert_eq!(names(&copy), ["a.md", "b.md", "x.local"]);
    assert_eq!(git(&copy.tree(), &["status", "--porcelain"]), "");
}

#[test]
fn what_an_agent_does_with_it_stays_in_the_copy() {
    let place = two_commits();
    let ran = place.beside("ran");
    let hook = place.root().join(".git/hooks/pre-commit");
    write(&hook, format!("#!/bin/sh\ntouch '{}'\n", ran.display()));
    make_executable(&hook);
    place.git(&["remote", "add", "origin", "https://example.org/x"]);
    place.git(&["tag", "v1"]);
    stir(&place.root());
    place.git(&["stash", "-q"]);
    stir(&place.root());
    let (before, files) = (everything(&place.root().join(".git")), things(&place.root()));
    let (copy, _) = place.copy(&["a.md"]);
    let tree = copy.tree();
    assert_eq!(git(&tree, &["remote"]), "");
    assert_eq!(git(&tree, &["stash", "list"]), "");
    git(&tree, &["commit", "-qam", "mine"]);
    write(&tree.join("a.md"), "more\n");
    git(&tree, &["stash", "-q"]);
    git(&tree, &["stash", "clear"]);
    git(&tree, &["reset", "-q", "--hard", "HEAD~2"]);
    git(&tree, &["clean", "-qfdx"]);
    git(&tree, &["config", "core.editor", "x"]);
    git(&tree, &["gc", "-q", "--prune=now"]);
    assert!(!ran.exists(), "the person's hook ran");
    assert_eq!(things(&place.root()), files);
    let after = everything(&place.root().join(".git"));
    // Git marks borrowed objects as in use, so their times may change.
    let aside =
        |all: BTreeMap<String, (Vec<u8>, SystemTime)>| -> BTreeMap<String, (Vec<u8>, Option<SystemTime>)> {
            let times = |path: &str, time| (!path.starts_with("objects/")).then_some(time);
            all.into_iter().map(|(path, (bytes, time))| (path.clone(), (bytes, times(&path, time)))).collect()
        };
    assert_eq!(aside(after), aside(before));
}

#[test]
fn where_something_is_unusual_a_copy_has_none() {
    // A HEAD that is not a branch.
    let place = two_commits();
    place.git(&["symbolic-ref", "HEAD", "refs/odd/one"]);
    let (copy, made) = place.copy(&["a.md"]);
    assert!(!copy.tree().join(".git").exists());
    assert_eq!(names(&copy), ["a.md", "b.md"]);
    assert_eq!(made.remarks, [""; 0]);
}

#[test]
fn a_copy_whose_changes_may_land_can_be_without_one() {
    let place = two_commits();
    let (copy, _) = place.copy(&["a.md"]);
    for _ in 0..2 {
        copy.forget_git().unwrap();
        assert!(!command(&copy.tree(), &["reset", "--hard"]).output().unwrap().status.success());
    }
    assert_eq!(copy.changes().unwrap(), BTreeMap::new());
}

#[test]
fn an_edit_that_only_the_time_of_the_index_gives_away_shows_in_it() {
    let place = Place::plain(&[("a.md", "one\n")]);
    let file = place.root().join("a.md");
    place.git(&["init", "-q"]);
    make_old(&file);
    place.commit();
    // The same size and second as git has recorded, and the index was written in that second.
    write(&file, "two\n");
    make_old(&file);
    make_old(&place.root().join(".git/index"));
    let (copy, _) = place.copy(&["a.md"]);
    assert_eq!(git(&copy.tree(), &["status", "--porcelain"]), " M a.md\n");
}
