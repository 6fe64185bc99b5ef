//! The subject is restored as it was, and only files that may have changed are read.

use std::os::unix::fs::symlink;

use tribunal_engine::ids::Hash;

use super::{
    super::{
        CopiedFile,
        file_stamps::{FileStamp, HashCache},
        hash_unless_unchanged,
    },
    *,
};

fn three_files() -> (TestProject, TaskWorkspace) {
    let test_project = TestProject::without_git(&[("docs/a.md", "a\n"), ("docs/b.sh", "b\n"), ("c.md", "c\n")]);
    make_executable(&test_project.project_root().join("docs/b.sh"));
    let (workspace, _) = test_project.create_workspace(&["docs/a.md", "docs/b.sh", "docs/new.md"]);
    (test_project, workspace)
}

#[test]
fn every_file_of_the_subject_is_put_back_and_no_other() {
    let (test_project, workspace) = three_files();
    let tree = workspace.tree_dir();
    fs::write(tree.join("docs/a.md"), "changed\n").unwrap();
    fs::remove_file(tree.join("docs/b.sh")).unwrap();
    fs::write(tree.join("docs/new.md"), "added\n").unwrap();
    fs::write(tree.join("c.md"), "context\n").unwrap();
    workspace.restore_subject().unwrap();
    let mut expected = tree_items(&test_project.project_root());
    expected.insert("c.md".to_string(), TreeItem::File { bytes: b"context\n".to_vec(), executable: false });
    assert_eq!(tree_items(&tree), expected);
    assert_eq!(workspace.changed_files().unwrap().into_keys().collect::<Vec<_>>(), ["c.md"]);
}

#[test]
fn the_subject_is_put_back_where_it_was_and_not_where_a_link_leads() {
    let (test_project, workspace) = three_files();
    let tree = workspace.tree_dir();
    let (user_file, before) = (test_project.project_root().join("docs"), tree_items(&test_project.project_root()));
    fs::remove_dir_all(tree.join("docs")).unwrap();
    symlink(&user_file, tree.join("docs")).unwrap();
    fs::write(user_file.join("new.md"), "the person's\n").unwrap();
    workspace.restore_subject().unwrap();
    assert_eq!(fs::read(user_file.join("new.md")).unwrap(), b"the person's\n");
    fs::remove_file(user_file.join("new.md")).unwrap();
    assert_eq!(tree_items(&test_project.project_root()), before);
    assert_eq!(tree_items(&tree), before);
    // A link or a directory in place of a file.
    fs::remove_file(tree.join("docs/a.md")).unwrap();
    symlink(user_file.join("a.md"), tree.join("docs/a.md")).unwrap();
    fs::remove_file(tree.join("docs/b.sh")).unwrap();
    write_file(&tree.join("docs/b.sh/deep.md"), "x");
    symlink("/etc/passwd", tree.join("docs/new.md")).unwrap();
    workspace.restore_subject().unwrap();
    assert_eq!(tree_items(&tree), before);
}

#[test]
fn a_link_of_the_subject_is_put_back_as_a_link() {
    let test_project = TestProject::without_git(&[("a.md", "a\n"), ("b.md", "b\n")]);
    symlink("a.md", test_project.project_root().join("link")).unwrap();
    let (workspace, _) = test_project.create_workspace(&["link"]);
    fs::remove_file(workspace.tree_dir().join("link")).unwrap();
    symlink("b.md", workspace.tree_dir().join("link")).unwrap();
    workspace.restore_subject().unwrap();
    assert_eq!(tree_items(&workspace.tree_dir()), tree_items(&test_project.project_root()));
    assert_eq!(workspace.read_base("link").unwrap(), None);
}

#[test]
fn the_texts_as_they_were_are_kept_byte_by_byte() {
    let (_place, workspace) = three_files();
    fs::write(workspace.tree_dir().join("docs/a.md"), "changed\n").unwrap();
    assert_eq!(workspace.read_base("docs/a.md").unwrap().as_deref(), Some(&b"a\n"[..]));
    assert_eq!(workspace.read_base("docs/new.md").unwrap(), None);
    assert!(workspace.read_base("c.md").is_err(), "no file of the subject");
}

#[test]
fn a_file_is_read_again_only_if_it_may_have_changed() {
    let test_project = TestProject::without_git(&[("a.md", "a\n")]);
    let path = test_project.project_root().join("a.md");
    let meta = fs::metadata(&path).unwrap();
    let (stamp, kept, read) = (FileStamp::from_metadata(&meta), Hash::new("kept"), Hash::digest_of(b"a\n"));
    let was = CopiedFile { stamp, hash: kept.clone(), link: false };
    assert_eq!(hash_unless_unchanged(&path, &meta, Some(&was), i64::MAX).unwrap(), kept);
    // The workspace was completed in the same tick in which the file was written: a later write would go unnoticed.
    assert_eq!(hash_unless_unchanged(&path, &meta, Some(&was), stamp.earliest_time_ns()).unwrap(), read);
    assert_eq!(hash_unless_unchanged(&path, &meta, None, i64::MAX).unwrap(), read);
    // Another file in its place, of the same size and time.
    fs::write(test_project.project_root().join("b.md"), "b\n").unwrap();
    fs::rename(test_project.project_root().join("b.md"), &path).unwrap();
    super::super::workspace_git::copy_modification_time(&meta, &path).unwrap();
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(hash_unless_unchanged(&path, &meta, Some(&was), i64::MAX).unwrap(), Hash::digest_of(b"b\n"));
}

#[test]
fn an_edit_that_keeps_size_and_time_is_still_a_change() {
    let (_place, workspace) = three_files();
    let path = workspace.tree_dir().join("c.md");
    let meta = fs::metadata(&path).unwrap();
    fs::write(&path, "d\n").unwrap();
    super::super::workspace_git::copy_modification_time(&meta, &path).unwrap();
    assert_eq!(workspace.changed_files().unwrap()["c.md"], Some(Hash::digest_of(b"d\n")));
}

#[test]
fn hashes_of_settled_files_are_remembered_and_those_of_fresh_ones_are_not() {
    let test_project = TestProject::without_git(&[("a.md", "a\n")]);
    let path = test_project.project_root().join(".tribunal/work/seen.json");
    let stamp = FileStamp::from_metadata(&fs::metadata(test_project.project_root().join("a.md")).unwrap());
    let content_hash = Hash::new("known");
    let remember = |started_at: i64| {
        let mut seen = HashCache::load(&test_project.project_root(), started_at);
        seen.remember_hash("a.md", stamp, &content_hash);
        seen.save_if_changed().unwrap();
        HashCache::load(&test_project.project_root(), started_at).find_hash("a.md", &stamp)
    };
    // Where there is no directory of ours, none is created.
    assert_eq!(remember(i64::MAX), None);
    assert!(!test_project.project_root().join(".tribunal").exists());
    fs::create_dir_all(test_project.project_root().join(".tribunal")).unwrap();
    assert_eq!(remember(stamp.earliest_time_ns() + 2_000_000_000), None);
    assert_eq!(remember(i64::MAX), Some(content_hash.clone()));
    fs::write(&path, "{\"a.md\": 3").unwrap();
    assert_eq!(remember(stamp.earliest_time_ns()), None);
    // The cache is used until the file changes.
    assert_eq!(remember(i64::MAX), Some(content_hash.clone()));
    let (workspace, _) = test_project.create_workspace(&["a.md"]);
    assert_eq!(copied_hashes(&workspace), BTreeMap::from([("a.md".to_string(), content_hash)]));
    fs::write(test_project.project_root().join("a.md"), "b\n").unwrap();
    let (workspace, _) = test_project.create_workspace(&["a.md"]);
    assert_eq!(copied_hashes(&workspace), BTreeMap::from([("a.md".to_string(), Hash::digest_of(b"b\n"))]));
}

#[test]
fn an_unfinished_workspace_does_not_count_and_a_removed_one_is_gone() {
    let (test_project, workspace) = three_files();
    assert!(workspace.is_complete());
    fs::remove_file(workspace.directory().join("manifest.json")).unwrap();
    assert!(!workspace.is_complete());
    test_project.create_workspace(&["c.md"]);
    assert!(workspace.is_complete());
    fs::set_permissions(workspace.tree_dir().join("docs"), fs::Permissions::from_mode(0o500)).unwrap();
    workspace.remove().unwrap();
    assert!(!workspace.directory().exists());
    workspace.remove().unwrap();
}
