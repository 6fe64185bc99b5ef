//! Tests that a sweep removes what no entry names, and nothing else.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use tribunal_engine::{
    ids::{Hash, RunId},
    timestamp::Timestamp,
};
use tribunal_store::{
    EntryBatch, JOURNAL_FORMAT, NewEntry, Store, StoreError, SweepRequest, compact_journal, sweep_journal,
};
use tribunal_workflows::runs::types::{EntryDraft, RunEvent};

/// Records a blob of a run and an entry that names it; a long entry becomes a blob itself.
fn record_blob(store: &Store, run_name: &str, entry_id: &str, blob: &str, is_long: bool) {
    let entry_text = format!(
        "{{{}}}{}",
        Hash::digest_of(blob.as_bytes()),
        if is_long { "x".repeat(100_000) } else { String::new() }
    );
    let draft = EntryDraft { id: entry_id.into(), event: RunEvent::Warned { text: entry_text } };
    let entry = NewEntry { run_id: RunId::new(run_name), timestamp: Timestamp::default(), draft };
    store.append(EntryBatch { entries: vec![entry], blobs: vec![blob.into()], ..EntryBatch::default() }).unwrap();
}

fn sample_project() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    record_blob(&store, "old", "a", "only of the old one", false);
    record_blob(&store, "old", "b", "of both", false);
    record_blob(&store, "old", "c", "only of the old one, in a long entry", true);
    record_blob(&store, "new", "a", "of both", false);
    record_blob(&store, "new", "b", "only of the new one, in a long entry", true);
    store.append(EntryBatch { blobs: vec![b"unreferenced".to_vec()], ..EntryBatch::default() }).unwrap();
    directory
}

fn has_blob(directory: &Path, blob: &str) -> bool {
    Store::open_read_only(directory).unwrap().blob_size(&Hash::digest_of(blob.as_bytes())).unwrap().is_some()
}

#[test]
fn blobs_that_no_entry_names_are_removed() {
    let directory = sample_project();
    let outcome = sweep_journal(directory.path(), &SweepRequest::default()).unwrap();
    assert_eq!((outcome.entries, outcome.blobs, outcome.blob_bytes), (0, 1, 12));
    assert!(!has_blob(directory.path(), "unreferenced"));
    for kept_blob in ["only of the old one", "of both", "only of the old one, in a long entry"] {
        assert!(has_blob(directory.path(), kept_blob), "{kept_blob}");
    }
    let second_outcome = sweep_journal(directory.path(), &SweepRequest::default()).unwrap();
    assert_eq!((second_outcome.entries, second_outcome.blobs), (0, 0));
}

#[test]
fn a_run_is_removed_with_its_own_blobs_only() {
    let directory = sample_project();
    let kept_entries = Store::open_read_only(directory.path()).unwrap().read_entries(&RunId::new("new"), 0).unwrap();
    let request = SweepRequest { run_ids: vec![RunId::new("old")], dry_run: false };
    let outcome = sweep_journal(directory.path(), &request).unwrap();
    // The run has three blobs of its own: two texts, and the text of the long entry.
    assert_eq!((outcome.entries, outcome.blobs), (3, 1 + 3));
    let store = Store::open(directory.path()).unwrap();
    assert_eq!(store.list_runs().unwrap(), [RunId::new("new")]);
    assert_eq!(store.read_entries(&RunId::new("new"), 0).unwrap(), kept_entries);
    assert!(
        has_blob(directory.path(), "of both") && has_blob(directory.path(), "only of the new one, in a long entry")
    );
    assert!(
        !has_blob(directory.path(), "only of the old one")
            && !has_blob(directory.path(), "only of the old one, in a long entry")
    );
}

#[test]
fn a_dry_run_reports_the_same_and_changes_nothing() {
    let directory = sample_project();
    let run_ids = vec![RunId::new("old")];
    let predicted = sweep_journal(directory.path(), &SweepRequest { run_ids: run_ids.clone(), dry_run: true }).unwrap();
    assert!(has_blob(directory.path(), "unreferenced"));
    let outcome = sweep_journal(directory.path(), &SweepRequest { run_ids, dry_run: false }).unwrap();
    assert_eq!(
        (predicted.entries, predicted.entry_bytes, predicted.blobs, predicted.blob_bytes),
        (outcome.entries, outcome.entry_bytes, outcome.blobs, outcome.blob_bytes)
    );
}

#[test]
fn the_file_is_compacted_only_up_to_the_size_limit() {
    let directory = sample_project();
    let outcome =
        sweep_journal(directory.path(), &SweepRequest { run_ids: vec![RunId::new("old")], dry_run: false }).unwrap();
    let postponed = compact_journal(directory.path(), outcome.file_after - 1).unwrap();
    assert_eq!(postponed.file_bytes, outcome.file_after, "too long to keep others waiting");
    let empty_bytes = postponed.postponed_bytes.unwrap();
    assert!(empty_bytes > 100_000, "{empty_bytes}");
    let compacted = compact_journal(directory.path(), outcome.file_after).unwrap();
    assert!(
        compacted.postponed_bytes.is_none() && compacted.file_bytes <= postponed.file_bytes - empty_bytes,
        "{compacted:?}"
    );
    assert_eq!(compact_journal(directory.path(), 0).unwrap(), compacted, "there is nothing left to give back");
}

#[test]
fn an_open_run_can_write_after_a_sweep() {
    let directory = sample_project();
    let store = Store::open(directory.path()).unwrap();
    sweep_journal(directory.path(), &SweepRequest { run_ids: vec![RunId::new("old")], ..SweepRequest::default() })
        .unwrap();
    record_blob(&store, "new", "c", "unreferenced", false);
    assert!(has_blob(directory.path(), "unreferenced"), "it is referenced now");
}

#[test]
fn a_newer_file_is_left_alone() {
    let directory = sample_project();
    let newer_format_sql = format!("PRAGMA user_version = {}", JOURNAL_FORMAT + 1);
    rusqlite::Connection::open(directory.path().join("journal.db")).unwrap().execute_batch(&newer_format_sql).unwrap();
    assert!(matches!(sweep_journal(directory.path(), &SweepRequest::default()), Err(StoreError::NewerFormat { .. })));
}
