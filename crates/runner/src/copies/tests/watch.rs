//! Which edits that bypass a workspace are noticed.

use super::*;
use tribunal_core::ids::Hash;

/// Returns for each edit the path, whether the file existed before, and whether it exists now.
fn moved(place: &Place, done: impl FnOnce()) -> Vec<(String, bool, bool)> {
    let (copy, _) = place.copy(&["plan.md"]);
    let watch = copy.watch(&place.root()).unwrap();
    // Agents can do anything to what lies beside their workspace.
    copy.remove().unwrap();
    done();
    let moved = watch.moved(&place.root()).into_iter();
    moved.map(|it| (it.path, it.before.is_some(), it.after.is_some())).collect()
}

fn project() -> Place {
    Place::committed(&[
        ("plan.md", "a\n"),
        ("src/a.rs", "a\n"),
        ("src/b.rs", "b\n"),
        (".gitignore", "*.log\n"),
    ])
}

#[test]
fn what_is_changed_deleted_or_new_is_noticed_and_the_rest_is_not() {
    let place = project();
    place.write(&[("src/new-before.rs", "mine\n")]);
    let seen = moved(&place, || {
        place.write(&[("src/a.rs", "other\n"), ("notes.md", "new\n"), (".envrc", "export A=1\n")]);
        place.write(&[("a.log", "ignored\n"), ("src/.a.rs.swp", "passing\n"), ("plan.md", "a\n")]);
        fs::remove_file(place.root().join("src/b.rs")).unwrap();
    });
    let told: Vec<(&str, bool, bool)> =
        seen.iter().map(|(path, was, is)| (path.as_str(), *was, *is)).collect();
    assert_eq!(
        told,
        [
            ("src/a.rs", true, true),
            ("src/b.rs", true, false),
            (".envrc", false, true),
            ("notes.md", false, true)
        ]
    );
}

#[test]
fn what_changed_before_an_agent_began_is_nobody_s() {
    let place = project();
    let (copy, _) = place.copy(&["plan.md"]);
    place.write(&[("src/a.rs", "mine\n")]);
    fs::remove_file(place.root().join("src/b.rs")).unwrap();
    let watch = copy.watch(&place.root()).unwrap();
    assert_eq!(watch.moved(&place.root()), []);
}

#[test]
fn what_cannot_be_read_any_more_hides_nothing() {
    let place = project();
    let unreadable = super::super::since::hash_now(&place.root(), "src");
    assert_eq!(unreadable, Hash::new("unreadable"));
}
