//! Reads entries, and checks on the way that they are what was recorded.

use rusqlite::{OptionalExtension, Row, params, params_from_iter};
use serde::Deserialize;
use serde_json::Value;
use tribunal_engine::{
    event::UnknownEvent,
    ids::{Hash, RunId},
    timestamp::Timestamp,
};
use tribunal_workflows::runs::{
    types::{JournalEntry, RunEvent},
    view::RunView,
};

use crate::{
    chain::{ChainReader, RawEntry},
    damage::{DamagedRun, EntryProblem, GoodEntry},
    error::StoreError,
    heads::read_head,
    long_texts::put_texts_back,
    schema::JOURNAL_FORMAT,
    store::Store,
};

/// The kinds of entries that tell the state of runs. There is no index on the kind, so they are selected in one pass.
const OUTLINE_KINDS: &str = "'run_started', 'run_resumed', 'settings_changed', 'run_parked', 'run_finished', \
    'child_started', 'decision_posted', 'decision_answered', 'file_written', 'confidence_calculated'";
/// The kinds of entries that resuming needs only since the last boundary.
const KINDS_OF_STRETCH: [&str; 2] = ["boundary", "effect_started"];

impl Store {
    /// Reads the entries of a run after number `after_seq`, in order. Each one is checked to be what was recorded.
    pub fn read_entries(&self, run_id: &RunId, after_seq: u64) -> Result<Vec<JournalEntry>, StoreError> {
        let mut entries = Vec::new();
        self.visit_checked(run_id, after_seq, |_| true, |entry| entries.push(entry))?;
        Ok(entries)
    }

    /// Builds the view of a run from all of its entries. Only one of them is in memory at a time: a sprint has tens of thousands.
    pub fn read_view(&self, run_id: &RunId) -> Result<RunView, StoreError> {
        let mut run_view = RunView::default();
        self.visit_checked(run_id, 0, |_| true, |entry| run_view.apply_entry(&entry))?;
        Ok(run_view)
    }

    /// Whether a run waits for the user although nothing would continue it, because of the run that it belongs to.
    pub fn is_left_behind(&self, run_view: &RunView) -> Result<bool, StoreError> {
        let Some(parent) = &run_view.parent else { return Ok(false) };
        Ok(run_view.is_left_by(&self.read_view(&parent.run)?))
    }

    /// Reads what resuming a run needs of its journal: everything since the last boundary, and the earlier entries that a view
    /// is built from. Earlier states and started effects are most of a long journal, and they are not needed again; they are
    /// checked, but not decoded.
    pub fn entries_for_resume(&self, run_id: &RunId) -> Result<Vec<JournalEntry>, StoreError> {
        self.check_head(run_id)?;
        let boundary_sql = "SELECT coalesce(max(seq), 0) FROM events WHERE run = ?1 AND kind = 'boundary'";
        let boundary_seq: u64 = self
            .reader
            .prepare_cached(boundary_sql)
            .and_then(|mut statement| statement.query_row([run_id.as_str()], |row| row.get(0)))
            .map_err(|cause| self.database_error(cause))?;
        let is_wanted = |raw_entry: &RawEntry| {
            raw_entry.seq >= boundary_seq || !KINDS_OF_STRETCH.contains(&raw_entry.kind.as_str())
        };
        let mut entries = Vec::new();
        self.visit_checked(run_id, 0, is_wanted, |entry| entries.push(entry))?;
        Ok(entries)
    }

    /// Passes the entries of a run after number `after_seq` on, in order, if they are wanted. All of them are checked.
    fn visit_checked(
        &self,
        run_id: &RunId,
        after_seq: u64,
        is_wanted: impl Fn(&RawEntry) -> bool,
        mut visit_entry: impl FnMut(JournalEntry),
    ) -> Result<(), StoreError> {
        let mut chain_reader = self.start_chain(run_id, after_seq)?;
        let select_sql = format!("{} WHERE e.run = ?1 AND e.seq > ?2 ORDER BY e.seq", self.select_raw());
        let mut statement = self.reader.prepare_cached(&select_sql).map_err(|cause| self.database_error(cause))?;
        let mut rows = statement
            .query(params![run_id.as_str(), after_seq])
            .map_err(|cause| self.unreadable_entry(&chain_reader, cause))?;
        while let Some(row) = rows.next().map_err(|cause| self.unreadable_entry(&chain_reader, cause))? {
            let raw_entry = read_raw_entry(row).map_err(|cause| self.unreadable_entry(&chain_reader, cause))?;
            chain_reader.check_next(&raw_entry).map_err(|damaged| self.run_damage(damaged))?;
            if is_wanted(&raw_entry) {
                visit_entry(self.decode_entry(run_id, raw_entry)?);
            }
        }
        Ok(())
    }

    /// Begins to follow the chain of a run after an entry that was read before.
    fn start_chain(&self, run_id: &RunId, after_seq: u64) -> Result<ChainReader, StoreError> {
        if after_seq == 0 || !self.has_chains() {
            return Ok(ChainReader::start_after(run_id, after_seq, None));
        }
        let select_sql = "SELECT chain FROM events WHERE run = ?1 AND seq = ?2";
        let chain = self
            .reader
            .prepare_cached(select_sql)
            .and_then(|mut statement| {
                statement.query_row(params![run_id.as_str(), after_seq], |row| row.get(0)).optional()
            })
            .map_err(|cause| self.database_error(cause))?;
        Ok(ChainReader::start_after(run_id, after_seq, chain.flatten()))
    }

    /// An entry that SQLite cannot read is a damaged one, unless it is another kind of error.
    fn unreadable_entry(&self, chain_reader: &ChainReader, cause: rusqlite::Error) -> StoreError {
        match self.database_error(cause) {
            StoreError::Damaged(_) => {
                let problem = EntryProblem::Changed { seq: chain_reader.last_seq() + 1 };
                self.run_damage(chain_reader.damage_at(problem))
            }
            other_error => other_error,
        }
    }

    /// The beginning of a query for whole entries.
    pub(crate) fn select_raw(&self) -> &'static str {
        match self.format {
            ..=JOURNAL_FORMAT => {
                "SELECT e.run, e.seq, e.id, e.kind, e.wall_ms, coalesce(cast(e.body AS BLOB), b.body), e.chain, e.has_texts
                 FROM events e LEFT JOIN blobs b ON b.hash = e.blob"
            }
            // A newer build may chain entries in another way.
            _ => {
                "SELECT e.run, e.seq, e.id, e.kind, e.wall_ms, coalesce(cast(e.body AS BLOB), b.body), NULL, e.has_texts
                 FROM events e LEFT JOIN blobs b ON b.hash = e.blob"
            }
        }
    }

    /// Whether this build knows how the entries are chained.
    fn has_chains(&self) -> bool {
        self.format <= JOURNAL_FORMAT
    }

    /// Decodes a stored entry.
    pub(crate) fn decode_entry(&self, run_id: &RunId, raw_entry: RawEntry) -> Result<JournalEntry, StoreError> {
        let seq = raw_entry.seq;
        let changed_entry = || {
            let problem = EntryProblem::Changed { seq };
            self.run_damage(DamagedRun { run_id: run_id.clone(), problem, last_good: None })
        };
        let Some(mut body) = raw_entry.body else { return Err(changed_entry()) };
        let unreadable_entry = |cause| StoreError::UnreadableEntry { run: run_id.to_string(), seq, cause };
        if raw_entry.has_texts {
            let mut entry: Value = serde_json::from_slice(&body).map_err(unreadable_entry)?;
            put_texts_back(&mut entry, &mut |hash| {
                String::from_utf8(self.read_blob(hash)?).map_err(|_| changed_entry())
            })?;
            body = serde_json::to_vec(&entry).map_err(unreadable_entry)?;
        }
        match serde_json::from_slice::<JournalEntry>(&body) {
            Ok(entry) if entry.run != *run_id => Err(changed_entry()),
            Ok(entry) => Ok(entry),
            // A newer build may have written an event that this one does not know; the envelope is still readable.
            Err(_) => serde_json::from_slice::<EntryEnvelope>(&body)
                .map(|EntryEnvelope { v, run: run_id, seq, id, at, kind }| JournalEntry {
                    v,
                    run: run_id,
                    seq,
                    id,
                    at,
                    event: RunEvent::Unknown(UnknownEvent { kind, ..UnknownEvent::default() }),
                })
                .map_err(unreadable_entry),
        }
    }

    /// Reads the last entry of a run that is of one of these kinds. The primary key lets SQLite search backwards from the end of
    /// the run, so an entry near the end is found quickly however long the journal is.
    pub fn last_entry_of(&self, run_id: &RunId, kinds: &[&str]) -> Result<Option<JournalEntry>, StoreError> {
        // `?1` is the run, so the placeholders of the kinds begin with `?2`.
        let placeholders: Vec<String> = (0..kinds.len()).map(|kind_index| format!("?{}", kind_index + 2)).collect();
        let condition = format!("AND e.kind IN ({})", placeholders.join(", "));
        self.select_last(run_id, &condition, kinds)
    }

    /// Reads the entry of a run with an id.
    pub fn find_entry(&self, run_id: &RunId, entry_id: &str) -> Result<Option<JournalEntry>, StoreError> {
        self.select_last(run_id, "AND e.id = ?2", &[entry_id])
    }

    /// When the last entry of a run was recorded.
    pub fn last_timestamp(&self, run_id: &RunId) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.select_last(run_id, "", &[])?.map(|entry| entry.at))
    }

    fn select_last(&self, run_id: &RunId, condition: &str, kinds: &[&str]) -> Result<Option<JournalEntry>, StoreError> {
        let select_sql = format!("{} WHERE e.run = ?1 {condition} ORDER BY e.seq DESC LIMIT 1", self.select_raw());
        let parameters = [run_id.as_str()].into_iter().chain(kinds.iter().copied());
        let raw_entry = self
            .reader
            .prepare_cached(&select_sql)
            .and_then(|mut statement| statement.query_row(params_from_iter(parameters), read_raw_entry).optional())
            .map_err(|cause| self.database_error(cause))?;
        raw_entry.map(|last_entry| self.decode_entry(run_id, last_entry)).transpose()
    }

    /// Reads the entries of all runs that tell their state: starts, ends, decisions, files; by run, in order. Entries in
    /// between are left out, so listing a thousand runs does not read all of their journals.
    pub fn read_outline(&self) -> Result<Vec<JournalEntry>, StoreError> {
        let select_sql = format!("{} WHERE e.kind IN ({OUTLINE_KINDS}) ORDER BY e.run, e.seq", self.select_raw());
        let mut statement = self.reader.prepare_cached(&select_sql).map_err(|cause| self.database_error(cause))?;
        let outline_rows = statement
            .query_map([], |row| Ok((RunId::new(row.get::<_, String>(0)?), read_raw_entry(row)?)))
            .and_then(Iterator::collect::<rusqlite::Result<Vec<(RunId, RawEntry)>>>)
            .map_err(|cause| self.database_error(cause))?;
        outline_rows.into_iter().map(|(run_id, raw_entry)| self.decode_entry(&run_id, raw_entry)).collect()
    }

    /// Reads the end of a run for a hook, and checks that the last entry is what was recorded and that the run does not end too
    /// early. It takes the same time however long the run is.
    pub fn read_run_end(&self, run_id: &RunId, kind: &str) -> Result<LastEntries, StoreError> {
        // The head is read first: what it names was recorded before.
        let head = read_head(self.directory(), run_id);
        let select_sql = format!("{} WHERE e.run = ?1 ORDER BY e.seq DESC LIMIT 2", self.select_raw());
        let mut last_entries: Vec<RawEntry> = self
            .reader
            .prepare_cached(&select_sql)
            .and_then(|mut statement| statement.query_map([run_id.as_str()], read_raw_entry)?.collect())
            .map_err(|cause| self.database_error(cause))?;
        let previous_entry = if last_entries.len() > 1 { last_entries.pop() } else { None };
        let last_entry = last_entries.pop();
        let is_at_head = match (&head, &last_entry) {
            (Some(head), Some(entry)) => entry.seq == head.seq && entry.chain.as_deref() == Some(head.chain.as_str()),
            _ => false,
        };
        if !is_at_head {
            self.check_head(run_id)?;
        }
        let Some(last_entry) = last_entry else { return Ok(LastEntries::default()) };
        self.check_link(run_id, previous_entry.as_ref(), &last_entry)?;
        let is_wanted = last_entry.kind == kind;
        let last_entry = self.decode_entry(run_id, last_entry)?;
        let last_time = Some(last_entry.at);
        let last_of_kind = if is_wanted { Some(last_entry) } else { self.last_entry_of(run_id, &[kind])? };
        Ok(LastEntries { last_of_kind, last_time })
    }

    fn check_link(
        &self,
        run_id: &RunId,
        previous_entry: Option<&RawEntry>,
        last_entry: &RawEntry,
    ) -> Result<(), StoreError> {
        let previous_seq = previous_entry.map_or(0, |entry| entry.seq);
        let previous_chain = previous_entry.and_then(|entry| entry.chain.clone());
        let mut chain_reader = ChainReader::start_after(run_id, previous_seq, previous_chain);
        chain_reader.check_next(last_entry).map(|_| ()).map_err(|damaged| {
            let last_good = previous_entry
                .map(|entry| GoodEntry { seq: entry.seq, wall_ms: u64::try_from(entry.wall_ms).unwrap_or_default() });
            self.run_damage(DamagedRun { last_good, ..damaged })
        })
    }

    /// Checks that a run does not end before its head.
    pub(crate) fn check_head(&self, run_id: &RunId) -> Result<(), StoreError> {
        match self.find_cut_run(run_id)? {
            Some(damaged) => Err(self.run_damage(damaged)),
            None => Ok(()),
        }
    }

    /// Compares a run with its head, and looks for its first entry. The head is read first: what it names was recorded before.
    pub(crate) fn find_cut_run(&self, run_id: &RunId) -> Result<Option<DamagedRun>, StoreError> {
        let directory = self.directory();
        let Some(head) = read_head(directory, run_id).filter(|_| self.has_chains()) else { return Ok(None) };
        let select_sql = "SELECT chain FROM events WHERE run = ?1 AND seq = ?2";
        let chain_at = |seq: u64| -> Result<Option<Option<String>>, StoreError> {
            self.reader
                .prepare_cached(select_sql)
                .and_then(|mut statement| {
                    statement.query_row(params![run_id.as_str(), seq], |row| row.get(0)).optional()
                })
                .map_err(|cause| self.database_error(cause))
        };
        // Without its first entry a run is not even listed.
        let has_start = head.seq == 1 || chain_at(1)?.is_some();
        let problem = match chain_at(head.seq)? {
            Some(chain) if chain.as_deref() == Some(head.chain.as_str()) && has_start => return Ok(None),
            Some(_) if !has_start => EntryProblem::Missing { seq: 1 },
            Some(_) => EntryProblem::Changed { seq: head.seq },
            None => EntryProblem::CutOff { recorded: head.seq },
        };
        // Another process may have removed the run meanwhile, or was just writing the head.
        if read_head(directory, run_id).as_ref() != Some(&head) {
            return self.find_cut_run(run_id);
        }
        let last_good = self.find_last_good(run_id);
        // If all entries are as they were recorded, it is the head that is damaged.
        let is_head_damaged = last_good.is_some_and(|good_entry| good_entry.seq >= head.seq);
        Ok((!is_head_damaged).then(|| DamagedRun { run_id: run_id.clone(), problem, last_good }))
    }

    /// Finds the last entry of a run up to which everything is as it was recorded.
    fn find_last_good(&self, run_id: &RunId) -> Option<GoodEntry> {
        let mut chain_reader = ChainReader::start_after(run_id, 0, None);
        let select_sql = format!("{} WHERE e.run = ?1 ORDER BY e.seq", self.select_raw());
        let mut statement = self.reader.prepare_cached(&select_sql).ok()?;
        let mut rows = statement.query([run_id.as_str()]).ok()?;
        while let Ok(Some(row)) = rows.next() {
            let Ok(raw_entry) = read_raw_entry(row) else { break };
            if chain_reader.check_next(&raw_entry).is_err() {
                break;
            }
        }
        chain_reader.last_good()
    }

    /// Reads a blob; a missing one is an error, and so is one that is not what was recorded.
    pub fn read_blob(&self, hash: &Hash) -> Result<Vec<u8>, StoreError> {
        let select_sql = "SELECT body FROM blobs WHERE hash = ?1";
        let blob_body: Option<Vec<u8>> = self
            .reader
            .prepare_cached(select_sql)
            .and_then(|mut statement| statement.query_row([hash.as_str()], |row| row.get(0)).optional())
            .map_err(|cause| self.database_error(cause))?;
        let missing_blob =
            || StoreError::MissingBlob { path: self.journal_path().to_path_buf(), hash: hash.to_string() };
        blob_body.filter(|blob_body| Hash::digest_of(blob_body) == *hash).ok_or_else(missing_blob)
    }

    /// The length of a blob, without reading it. `None` means that there is no such blob.
    pub fn blob_size(&self, hash: &Hash) -> Result<Option<u64>, StoreError> {
        let select_sql = "SELECT length(body) FROM blobs WHERE hash = ?1";
        let mut statement = self.reader.prepare_cached(select_sql).map_err(|cause| self.database_error(cause))?;
        let body_length = statement.query_row([hash.as_str()], |row| row.get(0)).optional();
        body_length.map_err(|cause| self.database_error(cause))
    }
}

/// The end of a run, as a hook needs it.
#[derive(Clone, Debug, Default)]
pub struct LastEntries {
    /// The last entry of the wanted kind.
    pub last_of_kind: Option<JournalEntry>,
    /// When the last entry of any kind was recorded.
    pub last_time: Option<Timestamp>,
}

/// An entry without its event, which even an unknown event leaves readable.
#[derive(Deserialize)]
struct EntryEnvelope {
    v: u16,
    run: RunId,
    seq: u64,
    id: String,
    at: Timestamp,
    #[serde(default)]
    kind: String,
}

/// Reads a row of [`Store::select_raw`].
pub(crate) fn read_raw_entry(row: &Row<'_>) -> rusqlite::Result<RawEntry> {
    Ok(RawEntry {
        seq: row.get(1)?,
        id: row.get(2)?,
        kind: row.get(3)?,
        wall_ms: row.get(4)?,
        body: row.get(5)?,
        chain: row.get(6)?,
        has_texts: row.get(7)?,
    })
}
