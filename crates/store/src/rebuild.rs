//! Looks at a damaged journal, and makes a new one of what is left.
//!
//! A rebuilt journal has, of every run, the entries from the first one up to the damage. The damaged file is kept beside it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;
use tribunal_core::engine::{
    event::JournalEntry,
    ids::{Hash, RunId},
};

use crate::{
    chain::{ChainReader, RawEntry},
    damage::{DamagedRun, EntryProblem, GoodEntry},
    entries::read_raw_entry,
    error::StoreError,
    heads::{NewHead, heads_dir, read_heads, replace_heads},
    long_texts::list_references,
    schema::migrate_schema,
    store::{BUSY_TIMEOUT, JOURNAL_FILE, Store},
    sweep::find_hashes,
    writer::{EntryBatch, NewEntry, commit_batches, insert_entry, store_blob},
};

/// The new journal while it is written, and once it is complete.
const UNFINISHED_FILE: &str = "rebuilt.db.tmp";
const REBUILT_FILE: &str = "rebuilt.db";
/// What SQLite keeps beside a database.
const SIDE_FILES: [&str; 2] = ["-wal", "-shm"];

/// What a journal contains, as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalInspection {
    pub path: PathBuf,
    /// Why nothing of the file can be read, as the end of a sentence.
    pub file_problem: Option<String>,
    /// By run, also those of which only the head is left.
    pub runs: Vec<InspectedRun>,
}

/// A run as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedRun {
    pub run_id: RunId,
    pub last_good: Option<GoodEntry>,
    pub damage: Option<DamagedRun>,
}

impl InspectedRun {
    pub fn good_entries(&self) -> u64 {
        self.last_good.map_or(0, |good_entry| good_entry.seq)
    }
}

impl JournalInspection {
    pub fn damaged_runs(&self) -> impl Iterator<Item = &DamagedRun> {
        self.runs.iter().filter_map(|run| run.damage.as_ref())
    }

    pub fn is_damaged(&self) -> bool {
        self.file_problem.is_some() || self.damaged_runs().next().is_some()
    }
}

/// What a rebuilt journal has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebuildOutcome {
    pub runs: Vec<InspectedRun>,
    /// The number of texts that entries name and that are lost.
    pub lost_texts: u64,
    /// Where the damaged files are.
    pub damaged_copy: PathBuf,
}

/// A journal that is read as far as possible.
#[derive(Debug)]
pub struct DamagedJournal {
    path: PathBuf,
    file_problem: Option<String>,
    /// The runs that are known only by their heads.
    lost_runs: Vec<DamagedRun>,
    store: Option<Store>,
    /// A copy of the log, from which the journal is read if its file is unusable.
    _log_copy: Option<LogCopy>,
}

impl DamagedJournal {
    /// Opens what there is. An intact journal can be opened as well.
    pub fn open(directory: &Path) -> Result<DamagedJournal, StoreError> {
        let path = directory.join(JOURNAL_FILE);
        match Store::open_read_only_with_timeout(directory, BUSY_TIMEOUT) {
            Ok(store) => Ok(DamagedJournal {
                path,
                file_problem: None,
                lost_runs: Vec::new(),
                store: Some(store),
                _log_copy: None,
            }),
            Err(StoreError::Damaged(damage)) => {
                let log_copy = LogCopy::create(directory).ok();
                let store = log_copy
                    .as_ref()
                    .and_then(|log_copy| Store::open_read_only_with_timeout(&log_copy.directory, BUSY_TIMEOUT).ok());
                Ok(DamagedJournal {
                    path,
                    file_problem: damage.file_problem,
                    lost_runs: damage.runs,
                    store,
                    _log_copy: log_copy,
                })
            }
            Err(open_error) => Err(open_error),
        }
    }

    /// Reads all runs and reports what is wrong with them.
    pub fn inspect_runs(&self) -> JournalInspection {
        let runs = match &self.store {
            Some(store) => {
                list_known_runs(store).into_iter().map(|run_id| inspect_run(store, run_id, &mut |_| {})).collect()
            }
            None => {
                let lost_runs = self.lost_runs.iter().cloned();
                lost_runs
                    .map(|lost_run| InspectedRun {
                        run_id: lost_run.run_id.clone(),
                        last_good: None,
                        damage: Some(lost_run),
                    })
                    .collect()
            }
        };
        JournalInspection { path: self.path.clone(), file_problem: self.file_problem.clone(), runs }
    }

    /// Reads the entries of a run up to the first one that is damaged.
    pub fn read_good_entries(&self, run_id: &RunId) -> Vec<JournalEntry> {
        self.store.as_ref().map(|store| read_good_entries(store, run_id)).unwrap_or_default()
    }
}

fn read_good_entries(store: &Store, run_id: &RunId) -> Vec<JournalEntry> {
    let mut raw_entries = Vec::new();
    inspect_run(store, run_id.clone(), &mut |raw_entry| raw_entries.push(raw_entry.clone()));
    raw_entries.into_iter().map_while(|raw_entry| store.decode_entry(run_id, raw_entry).ok()).collect()
}

/// A copy of a journal's log, beside an empty database. While a journal is young, everything is in its log.
#[derive(Debug)]
struct LogCopy {
    directory: PathBuf,
}

impl LogCopy {
    fn create(directory: &Path) -> io::Result<LogCopy> {
        let log_copy = LogCopy { directory: directory.join(format!("log-copy-{}", std::process::id())) };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(heads_dir(&log_copy.directory))?;
        let log_name = format!("{JOURNAL_FILE}-wal");
        fs::copy(directory.join(&log_name), log_copy.directory.join(&log_name))?;
        // SQLite ignores the log of a database without any page.
        fs::write(log_copy.directory.join(JOURNAL_FILE), [0; 4096])?;
        for head_file in fs::read_dir(heads_dir(directory))? {
            let head_file = head_file?;
            fs::copy(head_file.path(), heads_dir(&log_copy.directory).join(head_file.file_name()))?;
        }
        Ok(log_copy)
    }
}

impl Drop for LogCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The runs that have entries or heads.
fn list_known_runs(store: &Store) -> BTreeSet<RunId> {
    let mut run_ids: BTreeSet<RunId> = read_heads(store.directory()).into_iter().map(|(run_id, _)| run_id).collect();
    if let Ok(mut statement) = store.reader.prepare("SELECT DISTINCT run FROM events") {
        let listed_runs = statement.query_map([], |row| row.get::<_, String>(0)).into_iter().flatten();
        run_ids.extend(listed_runs.map_while(Result::ok).map(RunId::new));
    }
    run_ids
}

/// Follows the chain of a run to its end or to the first damaged entry, and hands over the good ones.
fn inspect_run(store: &Store, run_id: RunId, on_good_entry: &mut dyn FnMut(&RawEntry)) -> InspectedRun {
    let mut chain_reader = ChainReader::start_after(&run_id, 0, None);
    let mut damage = follow_chain(store, &run_id, &mut chain_reader, on_good_entry).err();
    if damage.is_none() {
        let last_good = chain_reader.last_good();
        damage = store.find_cut_run(&run_id).ok().flatten().map(|damaged| DamagedRun { last_good, ..damaged });
    }
    let last_good = damage.as_ref().map_or(chain_reader.last_good(), |damaged| damaged.last_good);
    InspectedRun { run_id, last_good, damage }
}

fn follow_chain(
    store: &Store,
    run_id: &RunId,
    chain_reader: &mut ChainReader,
    on_good_entry: &mut dyn FnMut(&RawEntry),
) -> Result<(), DamagedRun> {
    let unreadable_next =
        |chain_reader: &ChainReader| chain_reader.damage_at(EntryProblem::Changed { seq: chain_reader.last_seq() + 1 });
    let select_sql = format!("{} WHERE e.run = ?1 ORDER BY e.seq", store.select_raw());
    let mut statement = store.reader.prepare(&select_sql).map_err(|_| unreadable_next(chain_reader))?;
    let mut rows = statement.query([run_id.as_str()]).map_err(|_| unreadable_next(chain_reader))?;
    loop {
        let raw_entry = match rows.next() {
            Ok(None) => return Ok(()),
            Ok(Some(row)) => read_raw_entry(row).map_err(|_| unreadable_next(chain_reader))?,
            Err(_) => return Err(unreadable_next(chain_reader)),
        };
        // An entry whose long texts are lost cannot be read either.
        if raw_entry.has_texts && store.decode_entry(run_id, raw_entry.clone()).is_err() {
            return Err(unreadable_next(chain_reader));
        }
        chain_reader.check_next(&raw_entry)?;
        on_good_entry(&raw_entry);
    }
}

/// Replaces a damaged journal by a new one with everything that can still be read. `close_run` makes the last entry of a run
/// that was cut off. No other process may work on a run meanwhile. If this is interrupted, it can be called again.
pub fn rebuild_journal(
    directory: &Path,
    damaged_copy: &Path,
    close_run: &dyn Fn(&DamagedRun, &[JournalEntry]) -> Option<NewEntry>,
) -> Result<RebuildOutcome, StoreError> {
    let rebuilt_path = directory.join(REBUILT_FILE);
    let cannot_create = |cause: io::Error| StoreError::CannotCreate { path: rebuilt_path.clone(), cause };
    let damaged_journal = DamagedJournal::open(directory)?;
    let (runs, lost_texts) = if rebuilt_path.exists() {
        // An earlier attempt was interrupted when it had read everything. Nothing was recorded since: the journal is damaged.
        (damaged_journal.inspect_runs().runs, 0)
    } else {
        let (copied_runs, lost_texts) = write_new_journal(directory, damaged_journal.store.as_ref(), close_run)?;
        let has_any = damaged_journal.store.is_some();
        (if has_any { copied_runs } else { damaged_journal.inspect_runs().runs }, lost_texts)
    };
    drop(damaged_journal);
    replace_journal(directory, damaged_copy).map_err(cannot_create)?;
    let new_heads = list_heads(&Store::open_read_only_with_timeout(directory, BUSY_TIMEOUT)?);
    replace_heads(directory, new_heads).map_err(cannot_create)?;
    Ok(RebuildOutcome { runs, lost_texts, damaged_copy: damaged_copy.to_path_buf() })
}

/// Writes the new journal beside the damaged one. Returns the runs of the damaged one and the number of lost texts.
fn write_new_journal(
    directory: &Path,
    damaged_store: Option<&Store>,
    close_run: &dyn Fn(&DamagedRun, &[JournalEntry]) -> Option<NewEntry>,
) -> Result<(Vec<InspectedRun>, u64), StoreError> {
    let unfinished_path = directory.join(UNFINISHED_FILE);
    let cannot_create = |cause: io::Error| StoreError::CannotCreate { path: unfinished_path.clone(), cause };
    remove_if_present(&unfinished_path).map_err(cannot_create)?;
    let database_error = |cause| StoreError::Database { path: unfinished_path.clone(), cause };
    let mut connection = Connection::open(&unfinished_path).map_err(database_error)?;
    // A file that is thrown away if it is not complete needs no log of its own.
    connection.pragma_update(None, "journal_mode", "MEMORY").map_err(database_error)?;
    migrate_schema(&mut connection).map_err(database_error)?;
    let mut inspected_runs = Vec::new();
    let mut lost_texts = 0;
    if let Some(store) = damaged_store {
        for run_id in list_known_runs(store) {
            let (inspected_run, lost) = copy_run(store, &connection, run_id).map_err(database_error)?;
            lost_texts += lost;
            if let Some(damaged_run) = &inspected_run.damage {
                let entries = read_good_entries(store, &inspected_run.run_id);
                let closing_entries = close_run(damaged_run, &entries).into_iter().collect();
                let closing_batch = EntryBatch { entries: closing_entries, ..EntryBatch::default() };
                commit_batches(&connection, &[closing_batch]).map_err(database_error)?;
            }
            inspected_runs.push(inspected_run);
        }
        copy_side_tables(store, &connection);
    }
    connection.close().map_err(|(_, cause)| database_error(cause))?;
    fs::File::open(&unfinished_path).and_then(|file| file.sync_all()).map_err(cannot_create)?;
    fs::rename(&unfinished_path, directory.join(REBUILT_FILE)).map_err(cannot_create)?;
    Ok((inspected_runs, lost_texts))
}

/// Copies the good entries of a run, with the texts that they name. Returns also how many of these are lost.
fn copy_run(store: &Store, new_journal: &Connection, run_id: RunId) -> rusqlite::Result<(InspectedRun, u64)> {
    let transaction = new_journal.unchecked_transaction()?;
    let mut copied = Ok(());
    let mut named_texts: BTreeSet<Hash> = BTreeSet::new();
    let mut required_texts: BTreeSet<Hash> = BTreeSet::new();
    let copied_run_id = run_id.clone();
    let inspected_run = inspect_run(store, run_id, &mut |raw_entry| {
        let body = raw_entry.body.as_deref().unwrap_or_default();
        named_texts.extend(find_hashes(body));
        if raw_entry.has_texts {
            let entry = serde_json::from_slice::<Value>(body).unwrap_or_default();
            for hash in list_references(&entry) {
                // A long text may name others.
                named_texts.extend(find_hashes(&store.read_blob(&hash).unwrap_or_default()));
                required_texts.insert(hash);
            }
        }
        if copied.is_ok() {
            copied = insert_entry(new_journal, &copied_run_id, raw_entry);
        }
    });
    copied?;
    let mut lost_texts = 0;
    for hash in named_texts.union(&required_texts) {
        match store.read_blob(hash) {
            Ok(text) => drop(store_blob(new_journal, &text)?),
            // Not everything that looks like a hash is one of a text.
            Err(_) if store.blob_size(hash).is_ok_and(|size| size.is_none()) => {}
            Err(_) => lost_texts += 1,
        }
    }
    transaction.commit()?;
    Ok((inspected_run, lost_texts))
}

/// Copies the inbox and the records of the project as far as they can be read.
fn copy_side_tables(store: &Store, new_journal: &Connection) {
    for table_name in ["inbox", "records"] {
        let Ok(mut statement) = store.reader.prepare(&format!("SELECT * FROM {table_name}")) else { continue };
        let column_names: Vec<String> = statement.column_names().map(String::from).collect();
        let placeholders = vec!["?"; column_names.len()].join(", ");
        let insert_sql =
            format!("INSERT OR IGNORE INTO {table_name} ({}) VALUES ({placeholders})", column_names.join(", "));
        let Ok(mut rows) = statement.query([]) else { continue };
        while let Ok(Some(row)) = rows.next() {
            let values: rusqlite::Result<Vec<rusqlite::types::Value>> =
                (0..column_names.len()).map(|column| row.get(column)).collect();
            let Ok(values) = values else { break };
            let _ = new_journal.execute(&insert_sql, rusqlite::params_from_iter(values));
        }
    }
}

/// Keeps the damaged files under another name and puts the new journal in their place. Until the last step the journal still
/// counts as damaged, so an interrupted attempt is repeated.
fn replace_journal(directory: &Path, damaged_copy: &Path) -> io::Result<()> {
    fs::create_dir_all(damaged_copy)?;
    let journal_path = directory.join(JOURNAL_FILE);
    let side_path = |suffix: &str| directory.join(format!("{JOURNAL_FILE}{suffix}"));
    let side_paths = SIDE_FILES.map(side_path);
    for kept_path in side_paths.iter().chain([&journal_path]) {
        let Some(file_name) = kept_path.file_name() else { continue };
        if fs::symlink_metadata(kept_path).is_ok_and(|metadata| metadata.is_file()) {
            fs::copy(kept_path, damaged_copy.join(file_name))?;
        }
    }
    // A directory or a link in the place of the journal is moved, since nothing can be renamed over a directory.
    if fs::symlink_metadata(&journal_path).is_ok_and(|metadata| !metadata.is_file()) {
        fs::rename(&journal_path, damaged_copy.join(JOURNAL_FILE))?;
    }
    // SQLite would apply an old log to the new file, so the log goes first.
    for side_path in &side_paths {
        remove_if_present(side_path)?;
    }
    fs::rename(directory.join(REBUILT_FILE), &journal_path)?;
    fs::File::open(directory)?.sync_all()
}

fn remove_if_present(file_path: &Path) -> io::Result<()> {
    match fs::remove_file(file_path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(cause),
        _ => Ok(()),
    }
}

/// The heads of the runs of a journal.
fn list_heads(store: &Store) -> Vec<NewHead> {
    let select_sql = "SELECT seq, chain FROM events WHERE run = ?1 ORDER BY seq DESC LIMIT 1";
    let mut heads = BTreeMap::new();
    for run_id in store.list_runs().unwrap_or_default() {
        let last_entry: rusqlite::Result<Option<(u64, Option<String>)>> = store
            .reader
            .query_row(select_sql, params![run_id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional();
        if let Ok(Some((seq, Some(chain)))) = last_entry {
            heads.insert(run_id, (seq, Hash::new(chain)));
        }
    }
    let new_heads = heads.into_iter();
    new_heads.map(|(run_id, (seq, chain))| NewHead { run_id, seq, chain, is_synced: true, is_end: true }).collect()
}
