//! A workspace that would be too large is made smaller, and says so.

use super::*;

fn five() -> Vec<(&'static str, &'static str)> {
    vec![
        ("docs/a.md", "12345678"),
        ("docs/b.md", "12345678"),
        ("docs/deep/c.md", "12345678"),
        ("src/d.rs", "12345678"),
        ("e.md", "12345678"),
    ]
}

#[test]
fn beyond_the_bounds_a_copy_has_the_subject_s_folders_or_the_subject_alone() {
    let all = ["docs/a.md", "docs/b.md", "docs/deep/c.md", "e.md", "src/d.rs"];
    let folders = "the copy has the subject's files and what else is in their folders, and no history: ";
    let alone = "the copy has the subject's files alone, and no history: ";
    for (files, bytes, kept, said) in [
        (5, 40, &all[..], None),
        (4, 40, &all[..2], Some(format!("{folders}the project has 5 files (1 KB), a copy at most 4 (1 KB)"))),
        (5, 39, &all[..2], Some(format!("{folders}the project has 5 files (1 KB), a copy at most 5 (1 KB)"))),
        (5, 15, &all[..1], Some(format!("{alone}the project has 5 files (1 KB), a copy at most 5 (1 KB)"))),
        (0, 0, &all[..1], Some(format!("{alone}the project has 5 files (1 KB), a copy at most 0 (0 KB)"))),
    ] {
        let place = Place::committed(&five());
        for tree in [None, Some("HEAD")] {
            let bounds = Some(Bounds { files, bytes });
            let (copy, made) = place.make(&Want { files: &["docs/a.md"], tree, bounds, ..Want::default() });
            assert_eq!(names(&copy), kept);
            assert_eq!(made.remarks, Vec::from_iter(said.clone()));
            // A history with most files missing would make an agent believe that they were deleted.
            assert_eq!(copy.tree().join(".git").exists(), said.is_none() && tree.is_none());
            assert_eq!(copy.changes().unwrap(), BTreeMap::new());
        }
    }
}

#[test]
fn without_git_counting_stops_and_the_subject_s_folder_is_still_there() {
    let place = Place::plain(&five());
    for number in 0..20 {
        write(&place.root().join(format!("many-{number}/x")), "x");
    }
    let bounds = Some(Bounds { files: 3, bytes: 1000 });
    let (copy, made) = place.make(&Want { files: &["docs/a.md"], bounds, ..Want::default() });
    assert_eq!(names(&copy), ["docs/a.md", "docs/b.md"]);
    assert!(made.remarks[0].contains("the project has more than "), "{made:?}");
}

#[test]
fn several_subjects_have_a_folder_each() {
    let place = Place::committed(&five());
    let bounds = Some(Bounds { files: 4, bytes: 1000 });
    let files = ["docs/a.md", "src/d.rs", "gone/x.md"];
    let (copy, _) = place.make(&Want { files: &files, bounds, ..Want::default() });
    assert_eq!(names(&copy), ["docs/a.md", "docs/b.md", "src/d.rs"]);
}
