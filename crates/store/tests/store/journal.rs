//! Tests of the journal: order, idempotency, blobs, readers beside a writer, migrations, newer files.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{path::Path, sync::mpsc::channel};

use tribunal_core::{
    decision::Answer,
    effect::Request,
    event::{Draft, Event},
    ids::{DecisionId, Hash, RunId},
    stamp::Stamp,
};
use tribunal_store::{Batch, FORMAT, NewEntry, Store, StoreError};

fn run() -> RunId {
    RunId::new("prd-k3f9")
}

fn note(id: &str, text: &str) -> Batch {
    let draft = Draft { id: id.into(), event: Event::Warned { text: text.into() } };
    let entry = NewEntry { run: run(), at: Stamp { wall_ms: 5, awake_ms: 1 }, draft };
    Batch { entries: vec![entry], ..Batch::default() }
}

fn texts(store: &Store) -> Vec<String> {
    let entries = store.entries(&run(), 0).unwrap();
    entries
        .into_iter()
        .map(|entry| match entry.event {
            Event::Warned { text } => text,
            other => other.kind().to_string(),
        })
        .collect()
}

/// Changes the file without the store, as another build would.
fn poke(folder: &Path, sql: &str) {
    rusqlite::Connection::open(folder.join("journal.db")).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn entries_are_numbered_and_one_written_twice_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.append(note("a", "one")).unwrap()[0].seq, 1);
    assert_eq!(store.append(note("b", "two")).unwrap()[0].seq, 2);
    let again = store.append(note("a", "something else")).unwrap();
    assert_eq!(again[0].seq, 1);
    assert_eq!(again[0].event, Event::Warned { text: "one".into() }, "what was recorded first holds");
    assert_eq!(texts(&store), ["one", "two"]);
    assert_eq!(store.runs().unwrap(), [run()]);
}

#[test]
fn all_that_is_queued_is_committed_and_acknowledged_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let (tell, told) = channel();
    for number in 0..200 {
        let tell = tell.clone();
        store.submit(note(&number.to_string(), "x"), move |result| {
            tell.send(result.unwrap()[0].seq).unwrap();
        });
    }
    drop(tell);
    assert_eq!(told.iter().collect::<Vec<_>>(), (1..=200).collect::<Vec<u64>>());
}

#[test]
fn readers_see_what_is_committed_while_a_writer_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.append(note("a", "one")).unwrap();
    let reader = Store::open_read_only(folder.path()).unwrap();
    assert_eq!(texts(&reader), ["one"]);
    store.append(note("b", "two")).unwrap();
    assert_eq!(texts(&reader), ["one", "two"]);
    assert!(matches!(reader.append(note("c", "three")), Err(StoreError::Writer(_))));
}

#[test]
fn a_long_entry_goes_through_a_blob_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let long = "ä".repeat(100_000);
    store.append(note("a", &long)).unwrap();
    assert_eq!(texts(&store), [long]);
    let inline: i64 = rusqlite::Connection::open(folder.path().join("journal.db"))
        .unwrap()
        .query_row("SELECT count(*) FROM events WHERE body IS NOT NULL", [], |row| row.get(0))
        .unwrap();
    assert_eq!(inline, 0);
}

#[test]
fn blobs_are_found_by_their_hash() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.append(Batch { blobs: vec![b"text".to_vec(), b"text".to_vec()], ..Batch::default() }).unwrap();
    assert_eq!(store.blob(&Hash::of(b"text")).unwrap(), b"text");
    assert!(matches!(store.blob(&Hash::of(b"other")), Err(StoreError::NoBlob(_))));
}

#[test]
fn a_request_is_there_until_the_entry_that_took_it_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let answer = Answer { choice: "retry".into(), note: String::new() };
    let request = Request::Answer { decision: DecisionId::new("D1"), answer };
    store.request(&run(), &request).unwrap();
    let waiting = store.requests(&run()).unwrap();
    assert_eq!(waiting[0].request, request);
    assert_eq!(store.requests(&RunId::new("other")).unwrap(), []);
    store.append(Batch { taken: vec![waiting[0].id], ..note("a", "took it") }).unwrap();
    assert_eq!(store.requests(&run()).unwrap(), []);
}

#[test]
fn a_newer_file_is_read_but_not_written() {
    let folder = tempfile::tempdir().unwrap();
    Store::open(folder.path()).unwrap().append(note("a", "one")).unwrap();
    poke(folder.path(), &format!("PRAGMA user_version = {}", FORMAT + 1));
    let future = r#"{"v":9,"run":"prd-k3f9","seq":2,"id":"b","at":{"wall_ms":0,"awake_ms":0},"kind":"dreamt","of":"sheep"}"#;
    poke(
        folder.path(),
        &format!(
            "INSERT INTO events (run, seq, id, kind, wall_ms, body) VALUES ('prd-k3f9', 2, 'b', 'dreamt', 0, '{future}')"
        ),
    );
    let nested = future.replace("dreamt", "effect_started").replace("\"b\"", "\"c\"").replace(":2", ":3");
    poke(
        folder.path(),
        &format!(
            "INSERT INTO events (run, seq, id, kind, wall_ms, body) VALUES ('prd-k3f9', 3, 'c', 'x', 0, '{nested}')"
        ),
    );
    let error = Store::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::Newer { .. }), "{error}");
    assert!(error.to_string().contains("newer Tribunal"), "{error}");
    let reader = Store::open_read_only(folder.path()).unwrap();
    assert!(reader.is_newer().is_some());
    assert_eq!(texts(&reader), ["one", "unknown", "unknown"]);
}

#[test]
fn a_journal_whose_first_writer_was_killed_at_once_is_empty_and_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("journal.db"), "").unwrap();
    assert!(matches!(Store::open_read_only(folder.path()), Err(StoreError::Empty { .. })));
    Store::open(folder.path()).unwrap().append(note("a", "one")).unwrap();
    assert_eq!(texts(&Store::open_read_only(folder.path()).unwrap()), ["one"]);
}

#[test]
fn a_file_that_is_not_ours_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("journal.db"),
        "this is no database, but it is long enough to be read as one",
    )
    .unwrap();
    assert!(matches!(Store::open(folder.path()), Err(StoreError::Foreign { .. })));

    let other = tempfile::tempdir().unwrap();
    poke(other.path(), "PRAGMA user_version = 3; CREATE TABLE theirs (x)");
    assert!(matches!(Store::open(other.path()), Err(StoreError::Foreign { .. })));
}

#[test]
fn going_on_reads_the_same_story_as_the_whole_journal() {
    use tribunal_core::{desk::History, view::RunView};
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let recorded = tribunal_testkit::entries(tribunal_testkit::SAMPLE_JOURNAL);
    let run = recorded[0].run.clone();
    for length in [1, 10, 40, 80, 120, recorded.len()] {
        let entries = recorded[..length].iter().map(|entry| NewEntry {
            run: run.clone(),
            at: entry.at,
            draft: Draft { id: entry.id.clone(), event: entry.event.clone() },
        });
        store.append(Batch { entries: entries.collect(), ..Batch::default() }).unwrap();
        let (all, some) = (store.entries(&run, 0).unwrap(), store.entries_to_go_on(&run).unwrap());
        let (view, same) = (RunView::of(&all), RunView::of(&some));
        assert_eq!((view.counts(), view.spent, view.phase), (same.counts(), same.spent, same.phase));
        assert_eq!(format!("{:?}", History::of(all)), format!("{:?}", History::of(some)));
    }
}
