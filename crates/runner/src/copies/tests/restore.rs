//! The subject is restored as it was, and only files that may have changed are read.

use std::os::unix::fs::symlink;

use tribunal_core::ids::Hash;

use super::{
    super::{
        Kept, hash_of,
        stamps::{Seen, Stamp},
    },
    *,
};

fn three() -> (Place, Copy) {
    let place = Place::plain(&[("docs/a.md", "a\n"), ("docs/b.sh", "b\n"), ("c.md", "c\n")]);
    make_executable(&place.root().join("docs/b.sh"));
    let (copy, _) = place.copy(&["docs/a.md", "docs/b.sh", "docs/new.md"]);
    (place, copy)
}

#[test]
fn every_file_of_the_subject_is_put_back_and_no_other() {
    let (place, copy) = three();
    let tree = copy.tree();
    fs::write(tree.join("docs/a.md"), "changed\n").unwrap();
    fs::remove_file(tree.join("docs/b.sh")).unwrap();
    fs::write(tree.join("docs/new.md"), "added\n").unwrap();
    fs::write(tree.join("c.md"), "context\n").unwrap();
    copy.restore().unwrap();
    let mut expected = things(&place.root());
    expected.insert("c.md".to_string(), Thing::File { bytes: b"context\n".to_vec(), executable: false });
    assert_eq!(things(&tree), expected);
    assert_eq!(copy.changes().unwrap().into_keys().collect::<Vec<_>>(), ["c.md"]);
}

#[test]
fn the_subject_is_put_back_where_it_was_and_not_where_a_link_leads() {
    let (place, copy) = three();
    let tree = copy.tree();
    let (person, before) = (place.root().join("docs"), things(&place.root()));
    fs::remove_dir_all(tree.join("docs")).unwrap();
    symlink(&person, tree.join("docs")).unwrap();
    fs::write(person.join("new.md"), "the person's\n").unwrap();
    copy.restore().unwrap();
    assert_eq!(fs::read(person.join("new.md")).unwrap(), b"the person's\n");
    fs::remove_file(person.join("new.md")).unwrap();
    assert_eq!(things(&place.root()), before);
    assert_eq!(things(&tree), before);
    // A link or a directory in place of a file.
    fs::remove_file(tree.join("docs/a.md")).unwrap();
    symlink(person.join("a.md"), tree.join("docs/a.md")).unwrap();
    fs::remove_file(tree.join("docs/b.sh")).unwrap();
    write(&tree.join("docs/b.sh/deep.md"), "x");
    symlink("/etc/passwd", tree.join("docs/new.md")).unwrap();
    copy.restore().unwrap();
    assert_eq!(things(&tree), before);
}

#[test]
fn a_link_of_the_subject_is_put_back_as_a_link() {
    let place = Place::plain(&[("a.md", "a\n"), ("b.md", "b\n")]);
    symlink("a.md", place.root().join("link")).unwrap();
    let (copy, _) = place.copy(&["link"]);
    fs::remove_file(copy.tree().join("link")).unwrap();
    symlink("b.md", copy.tree().join("link")).unwrap();
    copy.restore().unwrap();
    assert_eq!(things(&copy.tree()), things(&place.root()));
    assert_eq!(copy.base("link").unwrap(), None);
}

#[test]
fn the_texts_as_they_were_are_kept_byte_by_byte() {
    let (_place, copy) = three();
    fs::write(copy.tree().join("docs/a.md"), "changed\n").unwrap();
    assert_eq!(copy.base("docs/a.md").unwrap().as_deref(), Some(&b"a\n"[..]));
    assert_eq!(copy.base("docs/new.md").unwrap(), None);
    assert!(copy.base("c.md").is_err(), "no file of the subject");
}

#[test]
fn a_file_is_read_again_only_if_it_may_have_changed() {
    let place = Place::plain(&[("a.md", "a\n")]);
    let path = place.root().join("a.md");
    let meta = fs::metadata(&path).unwrap();
    let (stamp, kept, read) = (Stamp::of(&meta), Hash::new("kept"), Hash::of(b"a\n"));
    let was = Kept { stamp, hash: kept.clone(), link: false };
    assert_eq!(hash_of(&path, &meta, Some(&was), i64::MAX).unwrap(), kept);
    // The workspace was completed in the same tick in which the file was written: a later write would go unnoticed.
    assert_eq!(hash_of(&path, &meta, Some(&was), stamp.moment()).unwrap(), read);
    assert_eq!(hash_of(&path, &meta, None, i64::MAX).unwrap(), read);
    // Another file in its place, of the same size and time.
    fs::write(place.root().join("b.md"), "b\n").unwrap();
    fs::rename(place.root().join("b.md"), &path).unwrap();
    super::super::own_git::keep_time(&meta, &path).unwrap();
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(hash_of(&path, &meta, Some(&was), i64::MAX).unwrap(), Hash::of(b"b\n"));
}

#[test]
fn an_edit_that_keeps_size_and_time_is_still_a_change() {
    let (_place, copy) = three();
    let path = copy.tree().join("c.md");
    let meta = fs::metadata(&path).unwrap();
    fs::write(&path, "d\n").unwrap();
    super::super::own_git::keep_time(&meta, &path).unwrap();
    assert_eq!(copy.changes().unwrap()["c.md"], Some(Hash::of(b"d\n")));
}

#[test]
fn hashes_of_settled_files_are_remembered_and_those_of_fresh_ones_are_not() {
    let place = Place::plain(&[("a.md", "a\n")]);
    let path = place.root().join(".tribunal/work/seen.json");
    let stamp = Stamp::of(&fs::metadata(place.root().join("a.md")).unwrap());
    let hash = Hash::new("known");
    let remember = |begun: i64| {
        let mut seen = Seen::of(&place.root(), begun);
        seen.keep("a.md", stamp, &hash);
        seen.save().unwrap();
        Seen::of(&place.root(), begun).hash("a.md", &stamp)
    };
    // Where there is no directory of ours, none is created.
    assert_eq!(remember(i64::MAX), None);
    assert!(!place.root().join(".tribunal").exists());
    fs::create_dir_all(place.root().join(".tribunal")).unwrap();
    assert_eq!(remember(stamp.moment() + 2_000_000_000), None);
    assert_eq!(remember(i64::MAX), Some(hash.clone()));
    fs::write(&path, "{\"a.md\": 3").unwrap();
    assert_eq!(remember(stamp.moment()), None);
    // The cache is used until the file changes.
    assert_eq!(remember(i64::MAX), Some(hash.clone()));
    let (copy, _) = place.copy(&["a.md"]);
    assert_eq!(copy.seen().unwrap(), BTreeMap::from([("a.md".to_string(), hash)]));
    fs::write(place.root().join("a.md"), "b\n").unwrap();
    let (copy, _) = place.copy(&["a.md"]);
    assert_eq!(copy.seen().unwrap(), BTreeMap::from([("a.md".to_string(), Hash::of(b"b\n"))]));
}

#[test]
fn a_half_made_copy_is_none_and_a_removed_one_is_gone() {
    let (place, copy) = three();
    assert!(copy.is_complete());
    fs::remove_file(copy.folder().join("manifest.json")).unwrap();
    assert!(!copy.is_complete());
    place.copy(&["c.md"]);
    assert!(copy.is_complete());
    fs::set_permissions(copy.tree().join("docs"), fs::Permissions::from_mode(0o500)).unwrap();
    copy.remove().unwrap();
    assert!(!copy.folder().exists());
    copy.remove().unwrap();
}
