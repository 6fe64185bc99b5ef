//! Tests of the project records: they are written with an entry or not at all, and they outlive the runs.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use tribunal_engine::{
    ids::{FindingId, RecordKey, RunId},
    timestamp::Timestamp,
};
use tribunal_store::{EntryBatch, NewEntry, Store, SweepRequest, sweep_journal};
use tribunal_workflows::{
    findings::{
        finding::{Evidence, Severity},
        subject::Subject,
    },
    review::dismissed_finding::DismissedFinding,
    runs::{
        records::{ProjectRecord, RecordKind},
        types::{EntryDraft, RecordChange, RunEvent},
    },
};

fn sample_record(reason: &str) -> ProjectRecord {
    ProjectRecord::DismissedFinding(DismissedFinding {
        subject: Subject::from_path("plan.md", None),
        file: "plan.md".into(),
        severity: Severity::High,
        description: "fast is vague".into(),
        evidence: Evidence::Quote { text: "It shall be fast.".into() },
        reason: reason.into(),
        finding: FindingId(3),
        decided_in: None,
    })
}

fn put(key: &str, reason: &str) -> RecordChange {
    RecordChange::Put { key: RecordKey::new(key), record: sample_record(reason) }
}

fn remove(key: &str) -> RecordChange {
    RecordChange::Remove { kind: RecordKind::DismissedFinding, key: RecordKey::new(key) }
}

fn entry_of(run_name: &str, entry_id: &str) -> NewEntry {
    let draft = EntryDraft { id: entry_id.into(), event: RunEvent::Warned { text: String::new() } };
    NewEntry { run_id: RunId::new(run_name), timestamp: Timestamp { wall_ms: 7, awake_ms: 1 }, draft }
}

fn batch_with(entries: Vec<NewEntry>, record_changes: Vec<RecordChange>) -> EntryBatch {
    EntryBatch { entries, record_changes, ..EntryBatch::default() }
}

/// Returns the records below a prefix as `key by run: reason`.
fn stored_lines(store: &Store, key_prefix: &str) -> Vec<String> {
    let records = store.read_records(RecordKind::DismissedFinding, key_prefix).unwrap();
    let to_line = |record: tribunal_workflows::runs::types::StoredRecord| {
        let ProjectRecord::DismissedFinding(dismissed) = record.record else { panic!() };
        assert_eq!(record.wall_ms, 7);
        format!("{} by {}: {}", record.key, record.run, dismissed.reason)
    };
    records.into_iter().map(to_line).collect()
}

#[test]
fn records_are_read_by_prefix_replaced_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let changes = vec![put("a/2", "two"), put("a/1", "one"), put("ab/1", "of another subject")];
    store.append(batch_with(vec![entry_of("first", "1")], changes)).unwrap();
    assert_eq!(stored_lines(&store, "a/"), ["a/1 by first: one", "a/2 by first: two"]);

    let changes = vec![put("a/1", "changed"), remove("a/2"), remove("a/3")];
    store.append(batch_with(vec![entry_of("second", "1")], changes)).unwrap();
    assert_eq!(stored_lines(&store, "a/"), ["a/1 by second: changed"]);
    assert_eq!(stored_lines(&store, ""), ["a/1 by second: changed", "ab/1 by first: of another subject"]);
    assert_eq!(stored_lines(&store, "b"), [""; 0]);
}

#[test]
fn a_record_and_its_entry_are_written_together_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    // The trigger fails the entry, as a crash in the middle of the transaction would.
    execute_sql(
        directory.path(),
        "CREATE TRIGGER no_entries BEFORE INSERT ON events BEGIN SELECT raise(ABORT, 'no'); END",
    );
    assert!(store.append(batch_with(vec![entry_of("first", "1")], vec![put("a/1", "one")])).is_err());
    assert_eq!(stored_lines(&store, ""), [""; 0]);
    execute_sql(
        directory.path(),
        "DROP TRIGGER no_entries; CREATE TRIGGER no_records BEFORE INSERT ON records BEGIN SELECT raise(ABORT, 'no'); END",
    );
    assert!(store.append(batch_with(vec![entry_of("first", "1")], vec![put("a/1", "one")])).is_err());
    assert_eq!(store.read_entries(&RunId::new("first"), 0).unwrap(), []);
    // Without an entry it would be unknown which run wrote it, so nothing is written.
    execute_sql(directory.path(), "DROP TRIGGER no_records");
    store.append(batch_with(vec![], vec![put("a/1", "one")])).unwrap();
    assert_eq!(stored_lines(&store, ""), [""; 0]);
}

#[test]
fn records_stay_when_the_run_that_wrote_them_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    store.append(batch_with(vec![entry_of("first", "1")], vec![put("a/1", "one")])).unwrap();
    drop(store);
    let request = SweepRequest { run_ids: vec![RunId::new("first")], dry_run: false };
    assert_eq!(sweep_journal(directory.path(), &request).unwrap().entries, 1);
    let store = Store::open_read_only(directory.path()).unwrap();
    assert_eq!(stored_lines(&store, ""), ["a/1 by first: one"]);
}

#[test]
fn a_record_that_this_build_cannot_read_is_skipped_and_stays() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    store.append(batch_with(vec![entry_of("first", "1")], vec![put("a/1", "one"), put("a/2", "two")])).unwrap();
    execute_sql(directory.path(), r#"UPDATE records SET body = '{"record": "newer"}' WHERE key = 'a/1'"#);
    assert_eq!(stored_lines(&store, ""), ["a/2 by first: two"]);
    let row_count: u32 = rusqlite::Connection::open(directory.path().join("journal.db"))
        .unwrap()
        .query_row("SELECT count(*) FROM records", [], |row| row.get(0))
        .unwrap();
    assert_eq!(row_count, 2);
}

/// Changes the file without the store.
fn execute_sql(directory: &Path, sql: &str) {
    rusqlite::Connection::open(directory.join("journal.db")).unwrap().execute_batch(sql).unwrap();
}
