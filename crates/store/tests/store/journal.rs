//! Tests of the journal: order, idempotency, blobs, readers beside a writer, migrations, newer files.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{path::Path, sync::mpsc::channel};

use tribunal_engine::{
    answer::DecisionAnswer,
    ids::{DecisionId, Hash, RunId},
    timestamp::Timestamp,
    user_remark::UserRemark,
};
use tribunal_store::{EntryBatch, JOURNAL_FORMAT, NewEntry, RequestStatus, Store, StoreError};
use tribunal_workflows::runs::{
    types::{EntryDraft, RunEvent},
    user_request::UserRequest,
};

fn sample_run_id() -> RunId {
    RunId::new("prd-k3f9")
}

fn warning_batch(id: &str, text: &str) -> EntryBatch {
    let draft = EntryDraft { id: id.into(), event: RunEvent::Warned { text: text.into() } };
    let entry = NewEntry { run_id: sample_run_id(), timestamp: Timestamp { wall_ms: 5, awake_ms: 1 }, draft };
    EntryBatch { entries: vec![entry], ..EntryBatch::default() }
}

fn recorded_texts(store: &Store) -> Vec<String> {
    let entries = store.read_entries(&sample_run_id(), 0).unwrap();
    entries
        .into_iter()
        .map(|entry| match entry.event {
            RunEvent::Warned { text } => text,
            other_event => other_event.kind_name().to_string(),
        })
        .collect()
}

/// Changes the file without the store, as another build would.
fn execute_sql(directory: &Path, sql: &str) {
    rusqlite::Connection::open(directory.join("journal.db")).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn entries_are_numbered_and_a_repeated_id_is_recorded_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    assert_eq!(store.append(warning_batch("a", "one")).unwrap()[0].seq, 1);
    assert_eq!(store.append(warning_batch("b", "two")).unwrap()[0].seq, 2);
    let repeated = store.append(warning_batch("a", "something else")).unwrap();
    assert_eq!(repeated[0].seq, 1);
    assert_eq!(repeated[0].event, RunEvent::Warned { text: "one".into() }, "what was recorded first holds");
    assert_eq!(recorded_texts(&store), ["one", "two"]);
    assert_eq!(store.list_runs().unwrap(), [sample_run_id()]);
}

#[test]
fn runs_are_found_by_the_beginning_of_their_names() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    for (run_name, wall_ms) in [("story-1-1-ab12", 3), ("story-1-1-zz99", 1), ("story-1-10-ab12", 2), ("prd-ab12", 4)] {
        let draft = EntryDraft { id: "a".into(), event: RunEvent::Warned { text: String::new() } };
        let timestamp = Timestamp { wall_ms, awake_ms: 1 };
        let entries = vec![NewEntry { run_id: RunId::new(run_name), timestamp, draft }];
        store.append(EntryBatch { entries, ..EntryBatch::default() }).unwrap();
    }
    let named_runs = |prefix: &str| -> Vec<String> {
        store.list_named_runs(prefix).unwrap().iter().map(ToString::to_string).collect()
    };
    assert_eq!(named_runs("story-1-1-"), ["story-1-1-zz99", "story-1-1-ab12"], "the oldest comes first");
    assert_eq!(named_runs("prd-"), ["prd-ab12"]);
    assert_eq!(named_runs("epic-"), [""; 0]);
    assert_eq!(named_runs("").len(), 4);
}

#[test]
fn queued_batches_are_committed_and_acknowledged_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let (sender, receiver) = channel();
    for number in 0..200 {
        let sender = sender.clone();
        store.submit(warning_batch(&number.to_string(), "x"), move |result| {
            sender.send(result.unwrap()[0].seq).unwrap();
        });
    }
    drop(sender);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), (1..=200).collect::<Vec<u64>>());
}

#[test]
fn readers_see_committed_entries_while_a_writer_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    store.append(warning_batch("a", "one")).unwrap();
    let reader = Store::open_read_only(directory.path()).unwrap();
    assert_eq!(recorded_texts(&reader), ["one"]);
    store.append(warning_batch("b", "two")).unwrap();
    assert_eq!(recorded_texts(&reader), ["one", "two"]);
    assert!(matches!(reader.append(warning_batch("c", "three")), Err(StoreError::WriterStopped(_))));
}

#[test]
fn the_text_of_a_long_entry_is_stored_as_a_blob() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let long_text = "ä".repeat(100_000);
    store.append(warning_batch("a", &long_text)).unwrap();
    assert_eq!(recorded_texts(&store), [long_text]);
    let row_length: i64 = rusqlite::Connection::open(directory.path().join("journal.db"))
        .unwrap()
        .query_row("SELECT length(body) FROM events", [], |row| row.get(0))
        .unwrap();
    assert!(row_length < 1000, "{row_length}");
}

#[test]
fn blobs_are_found_by_their_hash() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    store.append(EntryBatch { blobs: vec![b"text".to_vec(), b"text".to_vec()], ..EntryBatch::default() }).unwrap();
    assert_eq!(store.read_blob(&Hash::digest_of(b"text")).unwrap(), b"text");
    assert!(matches!(store.read_blob(&Hash::digest_of(b"other")), Err(StoreError::MissingBlob { .. })));
}

#[test]
fn a_request_is_pending_until_the_entry_that_took_it_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let answer = DecisionAnswer { choice: "retry".into(), note: String::new() };
    let request = UserRequest::Answer { decision: DecisionId::new("D1"), answer };
    store.send_request(&sample_run_id(), &request, "", Vec::new()).unwrap();
    let pending = store.pending_requests(&sample_run_id()).unwrap();
    assert_eq!(pending[0].request, request);
    assert_eq!(store.pending_requests(&RunId::new("other")).unwrap(), []);
    store.append(EntryBatch { taken_requests: vec![pending[0].inbox_id], ..warning_batch("a", "took it") }).unwrap();
    assert_eq!(store.pending_requests(&sample_run_id()).unwrap(), []);
}

#[test]
fn a_replaced_request_is_no_longer_pending() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let answer_with = |choice: &str| UserRequest::Answer {
        decision: DecisionId::new("D1"),
        answer: DecisionAnswer { choice: choice.into(), note: String::new() },
    };
    store.send_request(&sample_run_id(), &answer_with("retry"), "", Vec::new()).unwrap();
    let replaced_ids = store.pending_requests(&sample_run_id()).unwrap().iter().map(|stored| stored.inbox_id).collect();
    store.send_request(&sample_run_id(), &answer_with("defer"), "", replaced_ids).unwrap();
    let pending = store.pending_requests(&sample_run_id()).unwrap();
    assert_eq!(pending.into_iter().map(|stored| stored.request).collect::<Vec<_>>(), [answer_with("defer")]);
}

#[test]
fn a_sender_learns_what_became_of_its_requests() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let send = |text: &str| {
        let request = UserRequest::Say(UserRemark::new(text));
        store.send_request(&sample_run_id(), &request, "1@2@3", Vec::new()).unwrap();
    };
    let give_receipt = |is_accepted: bool| {
        let inbox_id = store.pending_requests(&sample_run_id()).unwrap().last().unwrap().inbox_id;
        store.append(EntryBatch { receipts: vec![(inbox_id, is_accepted)], ..EntryBatch::default() }).unwrap();
    };
    let status = || store.request_status(&sample_run_id(), "1@2@3").unwrap();
    send("one");
    assert_eq!(status(), RequestStatus::Waiting);
    assert_eq!(store.pending_requests(&sample_run_id()).unwrap()[0].sender, "1@2@3");
    give_receipt(true);
    assert_eq!(status(), RequestStatus::Accepted);
    assert_eq!(store.pending_requests(&sample_run_id()).unwrap().len(), 1, "it still waits to be read");
    send("two");
    give_receipt(false);
    assert_eq!(status(), RequestStatus::Refused);
    assert_eq!(store.pending_requests(&sample_run_id()).unwrap().len(), 1, "a refused one is over");
    assert_eq!(store.request_status(&sample_run_id(), "other").unwrap(), RequestStatus::Accepted);
}

#[test]
fn a_newer_file_is_read_but_not_written() {
    let directory = tempfile::tempdir().unwrap();
    Store::open(directory.path()).unwrap().append(warning_batch("a", "one")).unwrap();
    execute_sql(directory.path(), &format!("PRAGMA user_version = {}", JOURNAL_FORMAT + 1));
    let unknown_event =
        r#"{"v":9,"run":"prd-k3f9","seq":2,"id":"b","at":{"wall_ms":0,"awake_ms":0},"kind":"dreamt","of":"sheep"}"#;
    execute_sql(
        directory.path(),
        &format!(
            "INSERT INTO events (run, seq, id, kind, wall_ms, body, chain, has_texts) \
             VALUES ('prd-k3f9', 2, 'b', 'dreamt', 0, '{unknown_event}', '', 0)"
        ),
    );
    let unknown_effect =
        unknown_event.replace("dreamt", "effect_started").replace("\"b\"", "\"c\"").replace(":2", ":3");
    execute_sql(
        directory.path(),
        &format!(
            "INSERT INTO events (run, seq, id, kind, wall_ms, body, chain, has_texts) \
             VALUES ('prd-k3f9', 3, 'c', 'x', 0, '{unknown_effect}', '', 0)"
        ),
    );
    let error = Store::open(directory.path()).unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { .. }), "{error}");
    assert!(error.to_string().contains("newer Tribunal"), "{error}");
    let reader = Store::open_read_only(directory.path()).unwrap();
    assert!(reader.newer_format_error().is_some());
    assert_eq!(recorded_texts(&reader), ["one", "dreamt", "effect_started"]);
}

#[test]
fn an_empty_journal_file_is_reported_and_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("journal.db"), "").unwrap();
    assert!(matches!(Store::open_read_only(directory.path()), Err(StoreError::Empty { .. })));
    Store::open(directory.path()).unwrap().append(warning_batch("a", "one")).unwrap();
    assert_eq!(recorded_texts(&Store::open_read_only(directory.path()).unwrap()), ["one"]);
}

#[test]
fn a_file_that_is_not_a_journal_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("journal.db"), "this is no database, but it is long enough to be read as one")
        .unwrap();
    assert!(matches!(Store::open(directory.path()), Err(StoreError::NotAJournal { .. })));

    let foreign_dir = tempfile::tempdir().unwrap();
    execute_sql(foreign_dir.path(), "PRAGMA user_version = 3; CREATE TABLE theirs (x)");
    assert!(matches!(Store::open(foreign_dir.path()), Err(StoreError::NotAJournal { .. })));
}

#[test]
fn resuming_reads_the_same_state_as_the_whole_journal() {
    use tribunal_workflows::runs::{types::ReplayHistory, view::RunView};
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let recorded = tribunal_testkit::parse_entries(tribunal_testkit::SAMPLE_JOURNAL);
    let run_id = recorded[0].run.clone();
    for length in [1, 10, 40, 80, 120, recorded.len()] {
        let entries = recorded[..length].iter().map(|entry| NewEntry {
            run_id: run_id.clone(),
            timestamp: entry.at,
            draft: EntryDraft { id: entry.id.clone(), event: entry.event.clone() },
        });
        store.append(EntryBatch { entries: entries.collect(), ..EntryBatch::default() }).unwrap();
        let (all_entries, resume_entries) =
            (store.read_entries(&run_id, 0).unwrap(), store.entries_for_resume(&run_id).unwrap());
        let (full_view, resume_view) = (RunView::from_entries(&all_entries), RunView::from_entries(&resume_entries));
        assert_eq!(
            (full_view.finding_counts(), full_view.usage, full_view.phase),
            (resume_view.finding_counts(), resume_view.usage, resume_view.phase)
        );
        assert_eq!(
            format!("{:?}", ReplayHistory::from_entries(all_entries)),
            format!("{:?}", ReplayHistory::from_entries(resume_entries))
        );
    }
}
