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
use tribunal_engine::ids::{Hash, RunId};
use tribunal_workflows::runs::types::JournalEntry;

use crate::{
    chain::{ChainReader, RawEntry},
    damage::{DamagedRun, EntryProblem, GoodEntry, JournalDamage},
    entries::read_raw_entry,
    error::StoreError,
    heads::{NewHead, heads_dir, read_heads, replace_heads},
    journal_file::JOURNAL_FILE,
    long_texts::list_references,
    schema::{APPLICATION_ID, JOURNAL_FORMAT, migrate_schema},
    store::{BUSY_TIMEOUT, Store},
    sweep::find_hashes,
    writer::{EntryBatch, NewEntry, commit_batches, insert_entry, store_blob},
};

/// The names of our working files begin with these: the new journal while it is written, the complete one, and copies of the
/// damaged one.
const UNFINISHED_PREFIX: &str = "rebuilding-";
const REBUILT_PREFIX: &str = "rebuilt-";
const COPY_PREFIX: &str = "recovery-copy-";
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
    /// The copy from which the journal is read if its file is unusable.
    _copy: Option<JournalCopy>,
}

impl DamagedJournal {
    /// Opens what there is. An intact journal can be opened as well.
    pub fn open(directory: &Path) -> Result<DamagedJournal, StoreError> {
        let path = directory.join(JOURNAL_FILE);
        match Store::open_read_only_with_timeout(directory, BUSY_TIMEOUT) {
            Ok(store) => {
                let file_problem = find_file_problem(&store);
                let lost_runs = Vec::new();
                let journal = DamagedJournal { path, file_problem, lost_runs, store: Some(store), _copy: None };
                // A file that is too short is refused as a whole, although most of its pages are there.
                match journal.file_problem.is_some() {
                    true => Ok(journal.read_from_copy(directory)),
                    false => Ok(journal),
                }
            }
            Err(StoreError::Damaged(damage)) => {
                let JournalDamage { file_problem, runs: lost_runs, .. } = *damage;
                let journal = DamagedJournal { path, file_problem, lost_runs, store: None, _copy: None };
                Ok(journal.read_from_copy(directory))
            }
            Err(open_error) => Err(open_error),
        }
    }

    /// Reads from that copy of the damaged files which has the most entries, if any has some.
    fn read_from_copy(mut self, directory: &Path) -> DamagedJournal {
        for source in [CopySource::FileAndLog, CopySource::Log] {
            let Ok(copy) = JournalCopy::create(directory, source) else { continue };
            let Ok(store) = Store::open_read_only_with_timeout(&copy.directory, BUSY_TIMEOUT) else { continue };
            if count_good_entries(&store) > self.count_good_entries() {
                // The old store must go before its copy.
                self.store = Some(store);
                self._copy = Some(copy);
            }
        }
        self
    }

    fn count_good_entries(&self) -> u64 {
        self.store.as_ref().map_or(0, count_good_entries)
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

fn count_good_entries(store: &Store) -> u64 {
    let runs = list_known_runs(store).into_iter();
    runs.map(|run_id| inspect_run(store, run_id, &mut |_| {}).good_entries()).sum()
}

/// Lets SQLite check the file: the tables and indexes beside the entries, which have their own checks.
fn find_file_problem(store: &Store) -> Option<String> {
    let verdict = store.reader.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    match verdict {
        Ok(verdict) if verdict == "ok" => None,
        Ok(problem) => Some(problem.lines().last().unwrap_or_default().to_string()),
        Err(cause) => Some(cause.to_string()),
    }
}

/// What a copy of a damaged journal is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopySource {
    /// The file with a new header, and its log.
    FileAndLog,
    /// The log alone, beside an empty file. While a journal is young, everything is in its log.
    Log,
}

/// A copy of a damaged journal in which what is the same in all journals is repaired.
#[derive(Debug)]
struct JournalCopy {
    directory: PathBuf,
}

/// The size of a page in our journals: SQLite's default.
const PAGE_BYTES: usize = 4096;

impl JournalCopy {
    fn create(directory: &Path, source: CopySource) -> io::Result<JournalCopy> {
        let copy_name = format!("{COPY_PREFIX}{}-{}", std::process::id(), source as u8);
        let copy = JournalCopy { directory: directory.join(copy_name) };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(heads_dir(&copy.directory))?;
        let log_name = format!("{JOURNAL_FILE}-wal");
        let log_copied = fs::copy(directory.join(&log_name), copy.directory.join(&log_name));
        let file_bytes = match source {
            CopySource::FileAndLog => repair_header(fs::read(directory.join(JOURNAL_FILE))?),
            CopySource::Log => {
                log_copied?;
                // SQLite ignores the log of a database without any page.
                vec![0; PAGE_BYTES]
            }
        };
        fs::write(copy.directory.join(JOURNAL_FILE), file_bytes)?;
        for head_file in fs::read_dir(heads_dir(directory)).into_iter().flatten().flatten() {
            let _ = fs::copy(head_file.path(), heads_dir(&copy.directory).join(head_file.file_name()));
        }
        Ok(copy)
    }
}

impl Drop for JournalCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Writes the constant parts of the header as SQLite describes them, and fills up the last page and missing ones with zeros.
fn repair_header(mut file_bytes: Vec<u8>) -> Vec<u8> {
    let recorded_pages = file_bytes.get(28..32).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
    let actual_pages = file_bytes.len().div_ceil(PAGE_BYTES).max(1);
    // A recorded size that is far off is itself damaged.
    let page_count = actual_pages.max((recorded_pages as usize).min(actual_pages * 2));
    file_bytes.resize(page_count * PAGE_BYTES, 0);
    let mut write_at = |offset: usize, bytes: &[u8]| file_bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    write_at(0, b"SQLite format 3\0");
    write_at(16, &[0x10, 0x00, 2, 2, 0, 64, 32, 32]);
    write_at(28, &u32::try_from(page_count).unwrap_or_default().to_be_bytes());
    write_at(44, &4_u32.to_be_bytes());
    write_at(56, &1_u32.to_be_bytes());
    write_at(60, &JOURNAL_FORMAT.to_be_bytes());
    write_at(68, &APPLICATION_ID.to_be_bytes());
    file_bytes
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
    // What an earlier attempt has read counts only if no run has recorded anything since.
    let rebuilt_path = directory.join(format!("{REBUILT_PREFIX}{}", fingerprint_heads(directory).short_hex()));
    let cannot_create = |cause: io::Error| StoreError::CannotCreate { path: rebuilt_path.clone(), cause };
    remove_working_files(directory, &rebuilt_path).map_err(cannot_create)?;
    let (mut runs, mut lost_texts) = (Vec::new(), 0);
    let is_resumed = rebuilt_path.is_file();
    if !is_resumed {
        let damaged_journal = DamagedJournal::open(directory)?;
        (runs, lost_texts) = write_new_journal(directory, &rebuilt_path, damaged_journal.store.as_ref(), close_run)?;
        if damaged_journal.store.is_none() {
            runs = damaged_journal.inspect_runs().runs;
        }
    }
    let cannot_replace = |cause: io::Error| StoreError::CannotCreate { path: directory.join(JOURNAL_FILE), cause };
    replace_journal(directory, &rebuilt_path, damaged_copy).map_err(cannot_replace)?;
    let new_store = Store::open_read_only_with_timeout(directory, BUSY_TIMEOUT)?;
    replace_heads(directory, list_heads(&new_store)).map_err(cannot_replace)?;
    if is_resumed {
        let kept_runs = list_known_runs(&new_store).into_iter();
        runs = kept_runs.map(|run_id| inspect_run(&new_store, run_id, &mut |_| {})).collect();
    }
    Ok(RebuildOutcome { runs, lost_texts, damaged_copy: damaged_copy.to_path_buf() })
}

/// A hash of all heads, which change with every entry.
fn fingerprint_heads(directory: &Path) -> Hash {
    let head_lines =
        read_heads(directory).into_iter().map(|(run_id, head)| format!("{run_id} {} {}\n", head.seq, head.chain));
    Hash::digest_of(head_lines.collect::<String>().as_bytes())
}

/// Removes what killed attempts left, apart from a new journal that is complete.
fn remove_working_files(directory: &Path, rebuilt_path: &Path) -> io::Result<()> {
    for item in fs::read_dir(directory)?.flatten() {
        let item_name = item.file_name().to_string_lossy().into_owned();
        let is_ours =
            [UNFINISHED_PREFIX, REBUILT_PREFIX, COPY_PREFIX].iter().any(|prefix| item_name.starts_with(prefix));
        let is_complete = item.path() == rebuilt_path && item.path().is_file();
        if is_ours && !is_complete {
            match item.file_type()?.is_dir() {
                true => fs::remove_dir_all(item.path())?,
                false => fs::remove_file(item.path())?,
            }
        }
    }
    Ok(())
}

/// Writes the new journal beside the damaged one. Returns the runs of the damaged one and the number of lost texts.
fn write_new_journal(
    directory: &Path,
    rebuilt_path: &Path,
    damaged_store: Option<&Store>,
    close_run: &dyn Fn(&DamagedRun, &[JournalEntry]) -> Option<NewEntry>,
) -> Result<(Vec<InspectedRun>, u64), StoreError> {
    let unfinished_path = directory.join(format!("{UNFINISHED_PREFIX}{}", std::process::id()));
    let cannot_create = |cause: io::Error| StoreError::CannotCreate { path: unfinished_path.clone(), cause };
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
    fs::rename(&unfinished_path, rebuilt_path).map_err(cannot_create)?;
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
fn replace_journal(directory: &Path, rebuilt_path: &Path, damaged_copy: &Path) -> io::Result<()> {
    fs::create_dir_all(damaged_copy)?;
    let journal_path = directory.join(JOURNAL_FILE);
    let side_paths = SIDE_FILES.map(|suffix| directory.join(format!("{JOURNAL_FILE}{suffix}")));
    for damaged_path in side_paths.iter().chain([&journal_path]) {
        let Some(file_name) = damaged_path.file_name() else { continue };
        match fs::symlink_metadata(damaged_path) {
            Ok(metadata) if metadata.is_file() => drop(fs::copy(damaged_path, damaged_copy.join(file_name))?),
            // A directory or a link is in the way of the new file.
            Ok(_) => fs::rename(damaged_path, damaged_copy.join(file_name))?,
            Err(_) => {}
        }
    }
    // SQLite would apply an old log to the new file, so the log goes first.
    for side_path in &side_paths {
        match fs::remove_file(side_path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
    }
    fs::rename(rebuilt_path, &journal_path)?;
    fs::File::open(directory)?.sync_all()
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
