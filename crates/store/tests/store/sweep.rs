//! Tests that a sweep removes what no entry names, and nothing else.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use tribunal_core::{
    event::{Draft, Event},
    ids::{Hash, RunId},
    stamp::Stamp,
};
use tribunal_store::{Batch, FORMAT, NewEntry, Store, StoreError, Sweep, compact, sweep};

/// Records a blob of a run and an entry that names it; a long entry becomes a blob itself.
fn record(store: &Store, run: &str, id: &str, blob: &str, long: bool) {
    let text = format!(
        "{{{}}}{}",
        Hash::of(blob.as_bytes()),
        if long { "x".repeat(100_000) } else { String::new() }
    );
    let draft = Draft { id: id.into(), event: Event::Warned { text } };
    let entry = NewEntry { run: RunId::new(run), at: Stamp::default(), draft };
    store.append(Batch { entries: vec![entry], blobs: vec![blob.into()], ..Batch::default() }).unwrap();
}

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    record(&store, "old", "a", "only of the old one", false);
    record(&store, "old", "b", "of both", false);
    record(&store, "old", "c", "only of the old one, in a long entry", true);
    record(&store, "new", "a", "of both", false);
    record(&store, "new", "b", "only of the new one, in a long entry", true);
    store.append(Batch { blobs: vec![b"of nobody".to_vec()], ..Batch::default() }).unwrap();
    folder
}

fn has(folder: &Path, blob: &str) -> bool {
    Store::open_read_only(folder).unwrap().blob_bytes(&Hash::of(blob.as_bytes())).unwrap().is_some()
}

#[test]
fn blobs_that_no_entry_names_go() {
    let folder = project();
    let swept = sweep(folder.path(), &Sweep::default()).unwrap();
    assert_eq!((swept.entries, swept.blobs, swept.blob_bytes), (0, 1, 9));
    assert!(!has(folder.path(), "of nobody"));
    for kept in ["only of the old one", "of both", "only of the old one, in a long entry"] {
        assert!(has(folder.path(), kept), "{kept}");
    }
    let again = sweep(folder.path(), &Sweep::default()).unwrap();
    assert_eq!((again.entries, again.blobs), (0, 0));
}

#[test]
fn a_run_goes_with_its_blobs_and_leaves_those_of_others() {
    let folder = project();
    let kept = Store::open_read_only(folder.path()).unwrap().entries(&RunId::new("new"), 0).unwrap();
    let wish = Sweep { runs: vec![RunId::new("old")], dry: false };
    let swept = sweep(folder.path(), &wish).unwrap();
    // The run has three blobs of its own: two texts, and the long entry itself.
    assert_eq!((swept.entries, swept.blobs), (3, 1 + 3));
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.runs().unwrap(), [RunId::new("new")]);
    assert_eq!(store.entries(&RunId::new("new"), 0).unwrap(), kept);
    assert!(has(folder.path(), "of both") && has(folder.path(), "only of the new one, in a long entry"));
    assert!(
        !has(folder.path(), "only of the old one")
            && !has(folder.path(), "only of the old one, in a long entry")
    );
}

#[test]
fn a_trial_says_the_same_and_changes_nothing() {
    let folder = project();
    let runs = vec![RunId::new("old")];
    let said = sweep(folder.path(), &Sweep { runs: runs.clone(), dry: true }).unwrap();
    assert!(has(folder.path(), "of nobody"));
    let done = sweep(folder.path(), &Sweep { runs, dry: false }).unwrap();
    assert_eq!(
        (said.entries, said.entry_bytes, said.blobs, said.blob_bytes),
        (done.entries, done.entry_bytes, done.blobs, done.blob_bytes)
    );
}

#[test]
fn the_file_gets_shorter_only_where_that_is_quick() {
    let folder = project();
    let swept = sweep(folder.path(), &Sweep { runs: vec![RunId::new("old")], dry: false }).unwrap();
    let long = compact(folder.path(), swept.file_after - 1).unwrap();
    assert_eq!(long.bytes, swept.file_after, "too long to keep others waiting");
    let empty = long.put_off.unwrap();
    assert!(empty > 100_000, "{empty}");
    let short = compact(folder.path(), swept.file_after).unwrap();
    assert!(short.put_off.is_none() && short.bytes <= long.bytes - empty, "{short:?}");
    assert_eq!(compact(folder.path(), 0).unwrap(), short, "there is nothing left to give back");
}

#[test]
fn a_run_that_goes_on_meanwhile_can_write_afterwards() {
    let folder = project();
    let store = Store::open(folder.path()).unwrap();
    sweep(folder.path(), &Sweep { runs: vec![RunId::new("old")], ..Sweep::default() }).unwrap();
    record(&store, "new", "c", "of nobody", false);
    assert!(has(folder.path(), "of nobody"), "it is somebody's now");
}

#[test]
fn a_newer_file_is_left_alone() {
    let folder = project();
    let newer = format!("PRAGMA user_version = {}", FORMAT + 1);
    rusqlite::Connection::open(folder.path().join("journal.db")).unwrap().execute_batch(&newer).unwrap();
    assert!(matches!(sweep(folder.path(), &Sweep::default()), Err(StoreError::Newer { .. })));
}
