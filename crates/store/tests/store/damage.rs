//! Tests of damaged journals: every kind of damage is noticed, and what is left can be read and rebuilt.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use tribunal_engine::{
    ids::{Hash, RunId},
    timestamp::Timestamp,
};
use tribunal_store::{
    DamagedJournal, DamagedRun, EntryBatch, EntryProblem, JournalInspection, NewEntry, Store, StoreError, SweepRequest,
    rebuild_journal, sweep_journal,
};
use tribunal_workflows::runs::types::{EntryDraft, JournalEntry, RunEvent};

const ENTRY_COUNT: u64 = 60;

fn inspect_journal(directory: &Path) -> JournalInspection {
    DamagedJournal::open(directory).unwrap().inspect_runs()
}

fn new_entry(run_name: &str, number: u64) -> NewEntry {
    // Texts of different lengths: in rows, in blobs of entries, and in blobs of their own.
    let text = match number % 20 {
        7 => "long ".repeat(20_000),
        _ => format!("entry {number} {}", "x".repeat(300)),
    };
    let draft = EntryDraft { id: number.to_string(), event: RunEvent::Warned { text } };
    NewEntry { run_id: RunId::new(run_name), timestamp: Timestamp { wall_ms: number, awake_ms: 1 }, draft }
}

/// A journal whose writer was killed: everything is in the log, and nothing was checkpointed at the end.
fn killed_journal() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let live_dir = directory.path().join("live");
    let store = Store::open(&live_dir).unwrap();
    for number in 1..=ENTRY_COUNT {
        let entries = vec![new_entry("first", number), new_entry("second", number)];
        store.append(EntryBatch { entries, ..EntryBatch::default() }).unwrap();
    }
    // A copy of the files of an open journal is what a killed process leaves.
    let killed_dir = directory.path().join("killed");
    copy_directory(&live_dir, &killed_dir);
    drop(store);
    directory
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for item in fs::read_dir(from).unwrap().map(Result::unwrap) {
        match item.file_type().unwrap().is_dir() {
            true => copy_directory(&item.path(), &to.join(item.file_name())),
            false => drop(fs::copy(item.path(), to.join(item.file_name())).unwrap()),
        }
    }
}

type DamageAction = fn(&Path);

fn overwrite(file_path: PathBuf, from: u64, bytes: &[u8]) {
    fs::OpenOptions::new().write(true).open(file_path).unwrap().write_all_at(bytes, from).unwrap();
}

fn truncate_to(file_path: PathBuf, divisor: u64) {
    let file = fs::OpenOptions::new().write(true).open(file_path).unwrap();
    file.set_len(file.metadata().unwrap().len() / divisor).unwrap();
}

/// Kinds of damage to a journal whose entries are all in its log.
const LOG_DAMAGES: [(&str, DamageAction); 5] = [
    ("the log is deleted", |directory| fs::remove_file(directory.join("journal.db-wal")).unwrap()),
    ("the log is empty", |directory| truncate_to(directory.join("journal.db-wal"), u64::MAX)),
    ("the log is cut in half", |directory| truncate_to(directory.join("journal.db-wal"), 2)),
    ("a page of the log is zero", |directory| overwrite(directory.join("journal.db-wal"), 100_000, &[0; 4096])),
    ("the log is zero", |directory| {
        let length = fs::metadata(directory.join("journal.db-wal")).unwrap().len();
        overwrite(directory.join("journal.db-wal"), 0, &vec![0; usize::try_from(length).unwrap()]);
    }),
];

/// Kinds of damage to the file itself.
const FILE_DAMAGES: [(&str, DamageAction); 6] = [
    ("the file is empty", |directory| truncate_to(directory.join("journal.db"), u64::MAX)),
    ("the file is cut in half", |directory| truncate_to(directory.join("journal.db"), 2)),
    ("the file is gone", |directory| fs::remove_file(directory.join("journal.db")).unwrap()),
    ("the file is a directory", |directory| {
        fs::remove_file(directory.join("journal.db")).unwrap();
        fs::create_dir(directory.join("journal.db")).unwrap();
    }),
    ("the file is something else", |directory| {
        fs::write(directory.join("journal.db"), "notes\n".repeat(5000)).unwrap()
    }),
    ("a part of the file is zero", |directory| overwrite(directory.join("journal.db"), 20_000, &[0; 50_000])),
];

fn close_run(damaged_run: &DamagedRun, entries: &[JournalEntry]) -> Option<NewEntry> {
    assert_eq!(entries.len() as u64, damaged_run.good_entries());
    let draft = EntryDraft { id: "closed".into(), event: RunEvent::Warned { text: "closed".into() } };
    let entry = NewEntry { run_id: damaged_run.run_id.clone(), timestamp: entries.last()?.at, draft };
    Some(entry)
}

/// Checks that a damage is reported by everything that opens the journal or reads it, and that it can be rebuilt.
fn check_damage(directory: &Path, name: &str) {
    let read_all = |store: Store| -> Result<(), StoreError> {
        for run_id in store.list_runs()? {
            store.read_entries(&run_id, 0)?;
        }
        Ok(())
    };
    for opened in [Store::open_read_only(directory), Store::open(directory)] {
        let read_result = opened.and_then(read_all);
        assert!(matches!(read_result, Err(StoreError::Damaged(_))), "{name}: {read_result:?}");
    }
    let inspection = inspect_journal(directory);
    assert!(inspection.is_damaged(), "{name}");
    assert_eq!(inspection.runs.len(), 2, "{name}: {:?}", inspection.runs);
    let damaged_copy = directory.join("damaged");
    let rebuilt = rebuild_journal(directory, &damaged_copy, &close_run).unwrap();
    assert_eq!(rebuilt.runs, inspection.runs, "{name}");
    let store = Store::open(directory).unwrap_or_else(|cause| panic!("{name}: {cause}"));
    for run in &inspection.runs {
        let entries = store.read_entries(&run.run_id, 0).unwrap();
        let closing_count = u64::from(run.damage.is_some() && run.last_good.is_some());
        assert_eq!(entries.len() as u64, run.good_entries() + closing_count, "{name}");
        for (entry, number) in entries.iter().zip(1..=run.good_entries()) {
            assert_eq!(entry.event, new_entry("", number).draft.event, "{name}");
        }
    }
    assert!(!inspect_journal(directory).is_damaged(), "{name}");
    store.append(EntryBatch { entries: vec![new_entry("third", 1)], ..EntryBatch::default() }).unwrap();
    assert!(damaged_copy.is_dir());
}

#[test]
fn every_damage_of_the_log_is_noticed() {
    for (name, damage) in LOG_DAMAGES {
        let journal = killed_journal();
        let directory = journal.path().join("killed");
        assert!(Store::open_read_only(&directory).is_ok());
        damage(&directory);
        let _ = fs::remove_file(directory.join("journal.db-shm"));
        check_damage(&directory, name);
    }
}

#[test]
fn every_damage_of_the_file_is_noticed() {
    for (name, damage) in FILE_DAMAGES {
        let journal = killed_journal();
        // The last writer has moved everything into the file.
        let directory = journal.path().join("live");
        assert!(!directory.join("journal.db-wal").exists());
        damage(&directory);
        check_damage(&directory, name);
    }
}

#[test]
fn a_lost_file_is_rebuilt_from_its_log() {
    for (name, damage) in FILE_DAMAGES {
        let journal = killed_journal();
        let directory = journal.path().join("killed");
        let _ = fs::remove_file(directory.join("journal.db-shm"));
        damage(&directory);
        let _ = rebuild_journal(&directory, &directory.join("damaged"), &|_, _| None).unwrap();
        let store = Store::open(&directory).unwrap_or_else(|cause| panic!("{name}: {cause}"));
        assert_eq!(store.read_entries(&RunId::new("first"), 0).unwrap().len() as u64, ENTRY_COUNT, "{name}");
        assert!(fs::read_dir(&directory).unwrap().flatten().all(|item| !item.path().ends_with("log-copy")), "{name}");
    }
}

#[test]
fn a_changed_byte_of_any_entry_is_noticed() {
    let journal = killed_journal();
    let directory = journal.path().join("live");
    let file_bytes = fs::read(directory.join("journal.db")).unwrap();
    let entry_text = format!("entry 31 {}", "x".repeat(300));
    let position = file_bytes.windows(entry_text.len()).position(|bytes| bytes == entry_text.as_bytes()).unwrap();
    overwrite(directory.join("journal.db"), position as u64 + 100, b"y");
    // The ends of the runs are there, so only reading the run tells.
    let store = Store::open_read_only(&directory).unwrap();
    let damages: Vec<StoreError> =
        ["first", "second"].iter().filter_map(|run| store.read_entries(&RunId::new(*run), 0).err()).collect();
    let [StoreError::Damaged(damage)] = damages.as_slice() else { panic!("{damages:?}") };
    assert_eq!(damage.runs[0].problem, EntryProblem::Changed { seq: 31 });
    assert_eq!(damage.runs[0].good_entries(), 30);
    let damaged_run = &damage.runs[0].run_id;
    assert!(matches!(store.entries_for_resume(damaged_run), Err(StoreError::Damaged(_))));
    assert!(store.read_run_end(damaged_run, "session").is_ok(), "a hook looks at the last entry only");
    drop(store);
    check_damage(&directory, "a changed byte");
}

#[test]
fn a_changed_text_is_noticed() {
    let journal = killed_journal();
    let directory = journal.path().join("live");
    let long_text = "long ".repeat(20_000);
    let hash = Hash::digest_of(long_text.as_bytes());
    let connection = rusqlite::Connection::open(directory.join("journal.db")).unwrap();
    connection.execute("UPDATE blobs SET body = x'6f' WHERE hash = ?1", [hash.as_str()]).unwrap();
    drop(connection);
    let store = Store::open_read_only(&directory).unwrap();
    assert!(matches!(store.read_blob(&hash), Err(StoreError::MissingBlob { .. })));
    assert!(matches!(store.read_entries(&RunId::new("first"), 0), Err(StoreError::MissingBlob { .. })));
    let inspection = inspect_journal(&directory);
    assert_eq!(inspection.runs[0].good_entries(), 6, "entry 7 has the text");
}

#[test]
fn the_end_of_a_run_that_was_cut_off_is_named() {
    let journal = killed_journal();
    let directory = journal.path().join("live");
    let connection = rusqlite::Connection::open(directory.join("journal.db")).unwrap();
    connection.execute("DELETE FROM events WHERE run = 'second' AND seq > 41", []).unwrap();
    drop(connection);
    let cause = Store::open_read_only(&directory).unwrap_err();
    let journal_path = directory.join("journal.db");
    let expected_text =
        format!("{} is damaged: run second ends with entry 41, but 60 were recorded", journal_path.display());
    assert_eq!(cause.to_string(), expected_text);
    let hook_store = Store::open_read_only_with_timeout(&directory, std::time::Duration::ZERO).unwrap();
    assert!(matches!(hook_store.read_run_end(&RunId::new("second"), "session"), Err(StoreError::Damaged(_))));
    assert!(hook_store.read_run_end(&RunId::new("first"), "session").is_ok());
}

#[test]
fn a_removed_run_is_not_a_lost_one() {
    let journal = killed_journal();
    let directory = journal.path().join("killed");
    let request = SweepRequest { run_ids: vec![RunId::new("first")], dry_run: false };
    sweep_journal(&directory, &request).unwrap();
    assert_eq!(Store::open_read_only(&directory).unwrap().list_runs().unwrap(), [RunId::new("second")]);
}

/// The complete new journal that a killed rebuild left.
fn find_rebuilt(directory: &Path) -> Option<PathBuf> {
    let mut items = fs::read_dir(directory).unwrap().flatten().map(|item| item.path());
    items.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("rebuilt-"))
}

#[test]
fn an_interrupted_rebuild_is_completed_unless_a_run_went_on_meanwhile() {
    let journal = killed_journal();
    let directory = journal.path().join("killed");
    truncate_to(directory.join("journal.db-wal"), 2);
    fs::remove_file(directory.join("journal.db-shm")).unwrap();
    let good_entries = inspect_journal(&directory).runs[0].good_entries();
    // The target of the copies is a file, so the first attempt fails when it has read everything.
    fs::write(directory.join("damaged"), "in the way").unwrap();
    assert!(rebuild_journal(&directory, &directory.join("damaged"), &close_run).is_err());
    assert!(find_rebuilt(&directory).is_some());
    let stale_dir = journal.path().join("stale");
    copy_directory(&directory, &stale_dir);
    // A kill may come when the old log is removed already.
    fs::remove_file(directory.join("journal.db-wal")).unwrap();
    rebuild_journal(&directory, &directory.join("damaged-2"), &close_run).unwrap();
    let store = Store::open(&directory).unwrap();
    assert_eq!(store.read_entries(&RunId::new("first"), 0).unwrap().len() as u64, good_entries + 1);
    assert_eq!(find_rebuilt(&directory), None);
    // The journal was restored from elsewhere, and a run has recorded more: the earlier attempt does not count.
    for file_name in ["journal.db", "journal.db-wal"] {
        let intact_file = journal.path().join("live").join(file_name);
        let _ = fs::remove_file(stale_dir.join(file_name));
        let _ = fs::copy(intact_file, stale_dir.join(file_name));
    }
    let store = Store::open(&stale_dir).unwrap();
    store.append(EntryBatch { entries: vec![new_entry("third", 1)], ..EntryBatch::default() }).unwrap();
    drop(store);
    let connection = rusqlite::Connection::open(stale_dir.join("journal.db")).unwrap();
    connection.execute("DELETE FROM events WHERE run = 'second' AND seq > 41", []).unwrap();
    drop(connection);
    rebuild_journal(&stale_dir, &stale_dir.join("damaged-2"), &close_run).unwrap();
    let store = Store::open(&stale_dir).unwrap();
    let count_of = |run_name: &str| store.read_entries(&RunId::new(run_name), 0).unwrap().len() as u64;
    assert_eq!([count_of("first"), count_of("second"), count_of("third")], [ENTRY_COUNT, 42, 1]);
}

#[test]
fn a_damaged_header_or_a_missing_last_page_costs_little() {
    let damages: [(&str, DamageAction); 5] = [
        ("format number", |directory| overwrite(directory.join("journal.db"), 63, &[0])),
        ("application", |directory| overwrite(directory.join("journal.db"), 68, &[0xff])),
        ("magic", |directory| overwrite(directory.join("journal.db"), 0, b"x")),
        ("page size", |directory| overwrite(directory.join("journal.db"), 16, &[0x7f])),
        ("last page", |directory| {
            let file = fs::OpenOptions::new().write(true).open(directory.join("journal.db")).unwrap();
            file.set_len(file.metadata().unwrap().len() - 4096).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let journal = killed_journal();
        let directory = journal.path().join("live");
        damage(&directory);
        assert!(matches!(Store::open(&directory), Err(StoreError::Damaged(_))), "{name}");
        let rebuilt = rebuild_journal(&directory, &directory.join("damaged"), &close_run).unwrap();
        let kept: u64 = rebuilt.runs.iter().map(tribunal_store::InspectedRun::good_entries).sum();
        assert!(kept > ENTRY_COUNT / 2, "{name}: {kept} of {}", 2 * ENTRY_COUNT);
        assert!(!inspect_journal(&directory).is_damaged(), "{name}");
    }
}

#[test]
fn entries_under_another_name_and_a_missing_first_entry_are_noticed() {
    for sql in
        ["UPDATE events SET run = 'third' WHERE run = 'first'", "DELETE FROM events WHERE run = 'first' AND seq = 1"]
    {
        let journal = killed_journal();
        let directory = journal.path().join("live");
        rusqlite::Connection::open(directory.join("journal.db")).unwrap().execute(sql, []).unwrap();
        assert!(matches!(Store::open_read_only(&directory), Err(StoreError::Damaged(_))), "{sql}");
        rebuild_journal(&directory, &directory.join("damaged"), &close_run).unwrap();
        assert_eq!(Store::open(&directory).unwrap().list_runs().unwrap(), [RunId::new("second")], "{sql}");
    }
}

#[test]
fn damage_beside_the_entries_is_repaired_and_a_wrong_head_is_no_damage() {
    let journal = killed_journal();
    let directory = journal.path().join("live");
    let connection = rusqlite::Connection::open(directory.join("journal.db")).unwrap();
    let select_sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'inbox_of_run'";
    let root_page: u64 = connection.query_row(select_sql, [], |row| row.get(0)).unwrap();
    drop(connection);
    let head_file = directory.join("heads/first");
    let head_text = fs::read_to_string(&head_file).unwrap();
    fs::write(&head_file, head_text.replace("0060 ", "0059 ")).unwrap();
    assert!(Store::open_read_only(&directory).is_ok(), "all entries are there");
    overwrite(directory.join("journal.db"), (root_page - 1) * 4096, &[0; 4096]);
    assert!(inspect_journal(&directory).is_damaged());
    let rebuilt = rebuild_journal(&directory, &directory.join("damaged"), &close_run).unwrap();
    assert!(rebuilt.runs.iter().all(|run| run.damage.is_none() && run.good_entries() == ENTRY_COUNT));
    assert!(!inspect_journal(&directory).is_damaged());
}

#[test]
fn a_text_that_is_in_many_entries_is_stored_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let long_text = "a line of a file\n".repeat(50_000);
    for number in 0..20_u64 {
        let text = format!("{long_text}{}", if number % 2 == 0 { "" } else { "more" });
        let draft = EntryDraft { id: number.to_string(), event: RunEvent::Warned { text } };
        let timestamp = Timestamp { wall_ms: number, awake_ms: 1 };
        let entries = vec![NewEntry { run_id: RunId::new("r"), timestamp, draft }];
        store.append(EntryBatch { entries, ..EntryBatch::default() }).unwrap();
    }
    assert_eq!(store.read_entries(&RunId::new("r"), 0).unwrap().len(), 20);
    drop(store);
    let file_length = fs::metadata(directory.path().join("journal.db")).unwrap().len();
    assert!(file_length < 3 * long_text.len() as u64, "{file_length}");
    let swept = sweep_journal(directory.path(), &SweepRequest::default()).unwrap();
    assert_eq!(swept.blobs, 0, "the texts are named by the entries");
}
