//! The writer of an open journal: a thread that commits everything queued in one transaction and then acknowledges all of it.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, Sender, channel},
    thread::JoinHandle,
};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use tribunal_engine::{
    event::EVENT_VERSION,
    ids::{Hash, RecordKey, RunId},
    timestamp::Timestamp,
};
use tribunal_workflows::runs::{
    effect::EffectKind,
    records::RecordKind,
    types::{EntryDraft, JournalEntry, RecordChange, RunEvent},
};

use crate::{
    chain::{RawEntry, chain_entry},
    error::StoreError,
    file_system::FileId,
    heads::{HeadWriter, NewHead},
    journal_file::file_damage,
    long_texts::{put_texts_back, take_long_texts},
    records::{remove_record, write_change},
    sync_mode::SyncMode,
};

/// The longest entry in bytes that is stored in its row; a longer one becomes a blob.
const MAX_INLINE_BYTES: usize = 64 << 10;

/// An entry to be recorded; the store gives it its number.
#[derive(Clone, Debug)]
pub struct NewEntry {
    pub run_id: RunId,
    pub timestamp: Timestamp,
    pub draft: EntryDraft,
}

/// A request to be put into the inbox of a run.
#[derive(Clone, Debug)]
pub struct NewRequest {
    pub run_id: RunId,
    pub request_json: String,
    /// The process that sends it, as text.
    pub sender: String,
}

/// Everything that is recorded together: all of it or nothing.
#[derive(Clone, Debug, Default)]
pub struct EntryBatch {
    pub sync: SyncMode,
    pub entries: Vec<NewEntry>,
    pub blobs: Vec<Vec<u8>>,
    /// The inbox numbers of the requests that these entries have taken.
    pub taken_requests: Vec<i64>,
    /// A request of the user to a run.
    pub new_request: Option<NewRequest>,
    /// What a run says to the senders of requests, by their inbox numbers: whether it accepts the request.
    pub receipts: Vec<(i64, bool)>,
    /// Changes of project records. They are written with the first entry of the batch, which tells the run and the time; so a
    /// record never changes without an entry that says so.
    pub record_changes: Vec<RecordChange>,
    /// A project record that the user removes, whether or not the run that wrote it still has a journal.
    pub removed_record: Option<(RecordKind, RecordKey)>,
}

type BatchCallback = Box<dyn FnOnce(Result<Vec<JournalEntry>, StoreError>) + Send>;
type WriteJob = (EntryBatch, BatchCallback);

/// The handle of the writer thread; dropping it waits until everything queued is written.
pub(crate) struct JournalWriter {
    queue: Option<Sender<WriteJob>>,
    thread: Option<JoinHandle<()>>,
}

impl JournalWriter {
    pub(crate) fn start(connection: Connection, journal_path: PathBuf) -> Result<JournalWriter, StoreError> {
        let (queue, jobs) = channel();
        let thread = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || run_writer(connection, &journal_path, &jobs))
            .map_err(|cause| StoreError::WriterStopped(cause.to_string()))?;
        Ok(JournalWriter { queue: Some(queue), thread: Some(thread) })
    }

    pub(crate) fn submit(&self, batch: EntryBatch, on_durable: BatchCallback) {
        // A failed send returns the job, so its callback can still be called.
        let send_result = match &self.queue {
            Some(queue) => queue.send((batch, on_durable)).map_err(|unsent| unsent.0.1),
            None => Err(on_durable),
        };
        if let Err(on_durable) = send_result {
            on_durable(Err(StoreError::WriterStopped("its thread has ended".into())));
        }
    }
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        // The thread ends when its queue is closed, so the sender must go before the join.
        self.queue.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Commits queued jobs until the queue is closed.
fn run_writer(connection: Connection, journal_path: &Path, jobs: &Receiver<WriteJob>) {
    let opened_file = FileId::from_path(journal_path).ok();
    let mut current_sync = SyncMode::Now;
    let journal_dir = journal_path.parent().unwrap_or(journal_path);
    let mut head_writer = HeadWriter::new(journal_dir);
    while let Ok(first_job) = jobs.recv() {
        let mut job_group = vec![first_job];
        // Syncing is the expensive part of a commit: everything that arrived meanwhile shares one.
        job_group.extend(jobs.try_iter());
        let (batches, callbacks): (Vec<EntryBatch>, Vec<BatchCallback>) = job_group.into_iter().unzip();
        // An open file outlives its name; nothing written to it after that could ever be read.
        if opened_file.is_some_and(|opened_file| !opened_file.is_still_at(journal_path)) {
            for callback in callbacks {
                callback(Err(StoreError::FileGone { path: journal_path.to_path_buf() }));
            }
            continue;
        }
        let sync = batches.iter().map(|batch| batch.sync).find(|sync| *sync == SyncMode::Now);
        let committed = set_sync_mode(&connection, &mut current_sync, sync.unwrap_or(SyncMode::WithNext))
            .and_then(|()| commit_batches(&connection, &batches));
        match committed {
            Ok(committed_group) => {
                for (callback, batch_result) in callbacks.into_iter().zip(committed_group.batch_results) {
                    callback(batch_result);
                }
                head_writer.write_heads(committed_group.new_heads, current_sync);
            }
            Err(cause) => {
                // An error of SQLite cannot be cloned, so every batch gets its text.
                let error_code = cause.sqlite_error_code();
                let cause_text = cause.to_string();
                for callback in callbacks {
                    callback(Err(match error_code {
                        Some(rusqlite::ErrorCode::DiskFull) => {
                            StoreError::DiskFull { path: journal_path.to_path_buf() }
                        }
                        Some(rusqlite::ErrorCode::DatabaseCorrupt) => file_damage(journal_dir, cause_text.clone()),
                        _ => StoreError::WriterStopped(format!("{}: {cause_text}", journal_path.display())),
                    }));
                }
            }
        }
    }
}

/// Chooses whether the next commits are synced. A sync of the log covers everything that was written to it before.
fn set_sync_mode(connection: &Connection, current_sync: &mut SyncMode, sync: SyncMode) -> rusqlite::Result<()> {
    if *current_sync != sync {
        let level = match sync {
            SyncMode::Now => "FULL",
            SyncMode::WithNext => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", level)?;
        *current_sync = sync;
    }
    Ok(())
}

pub(crate) type BatchResult = Result<Vec<JournalEntry>, StoreError>;

/// What became of a group of batches.
pub(crate) struct CommittedGroup {
    pub(crate) batch_results: Vec<BatchResult>,
    /// The last entries of the runs that the group has written to.
    pub(crate) new_heads: Vec<NewHead>,
}

/// Commits a group of batches in one transaction; a batch that cannot be encoded does not affect the others.
pub(crate) fn commit_batches(connection: &Connection, batches: &[EntryBatch]) -> rusqlite::Result<CommittedGroup> {
    let mut transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let mut batch_results = Vec::with_capacity(batches.len());
    let mut new_heads = Vec::new();
    if let [batch] = batches {
        // Dropping the transaction rolls it back.
        match write_batch(&transaction, batch, &mut new_heads) {
            Ok(entries) => batch_results.push(Ok(entries)),
            Err(WriteError::Json(cause)) => {
                let batch_results = vec![Err(StoreError::UnwritableEntry(cause))];
                return Ok(CommittedGroup { batch_results, new_heads: Vec::new() });
            }
            Err(WriteError::Sql(cause)) => return Err(cause),
        }
        transaction.commit()?;
        return Ok(CommittedGroup { batch_results, new_heads });
    }
    for batch in batches {
        let savepoint = transaction.savepoint()?;
        let mut batch_heads = Vec::new();
        match write_batch(&savepoint, batch, &mut batch_heads) {
            Ok(entries) => {
                savepoint.commit()?;
                batch_results.push(Ok(entries));
                batch_heads.into_iter().for_each(|new_head| add_head(&mut new_heads, new_head));
            }
            Err(WriteError::Json(cause)) => {
                // Dropping the savepoint rolls this batch back.
                drop(savepoint);
                batch_results.push(Err(StoreError::UnwritableEntry(cause)));
            }
            // The transaction rolls back when it is dropped, so a failed statement fails the whole group.
            Err(WriteError::Sql(cause)) => return Err(cause),
        }
    }
    transaction.commit()?;
    Ok(CommittedGroup { batch_results, new_heads })
}

/// Adds a head, in place of an earlier one of the same run.
fn add_head(new_heads: &mut Vec<NewHead>, new_head: NewHead) {
    match new_heads.iter_mut().find(|earlier_head| earlier_head.run_id == new_head.run_id) {
        Some(earlier_head) => {
            let is_synced = earlier_head.is_synced || new_head.is_synced;
            *earlier_head = NewHead { is_synced, ..new_head };
        }
        None => new_heads.push(new_head),
    }
}

pub(crate) enum WriteError {
    Sql(rusqlite::Error),
    Json(serde_json::Error),
}

impl From<rusqlite::Error> for WriteError {
    fn from(cause: rusqlite::Error) -> Self {
        WriteError::Sql(cause)
    }
}

impl From<serde_json::Error> for WriteError {
    fn from(cause: serde_json::Error) -> Self {
        WriteError::Json(cause)
    }
}

/// Writes one batch. Blobs come before the entries that name them.
fn write_batch(
    connection: &Connection,
    batch: &EntryBatch,
    new_heads: &mut Vec<NewHead>,
) -> Result<Vec<JournalEntry>, WriteError> {
    for blob in &batch.blobs {
        store_blob(connection, blob)?;
    }
    for inbox_id in &batch.taken_requests {
        connection.prepare_cached("UPDATE inbox SET taken = 1 WHERE id = ?1")?.execute([inbox_id])?;
    }
    if let Some((kind, key)) = &batch.removed_record {
        remove_record(connection, *kind, key)?;
    }
    if let Some(NewRequest { run_id, request_json, sender }) = &batch.new_request {
        connection.prepare_cached("INSERT INTO inbox (run, body, sender) VALUES (?1, ?2, ?3)")?.execute(params![
            run_id.as_str(),
            request_json,
            sender
        ])?;
    }
    for (inbox_id, is_accepted) in &batch.receipts {
        // A refused request is over; an accepted one still waits to be read.
        connection
            .prepare_cached("UPDATE inbox SET receipt = ?2, taken = max(taken, ?3) WHERE id = ?1")?
            .execute(params![inbox_id, is_accepted, !is_accepted])?;
    }
    if let Some(entry) = batch.entries.first() {
        for record_change in &batch.record_changes {
            write_change(connection, record_change, entry)?;
        }
    }
    batch.entries.iter().map(|entry| write_entry(connection, entry, new_heads)).collect()
}

/// Records an entry under the next number of its run.
fn write_entry(
    connection: &Connection,
    new_entry: &NewEntry,
    new_heads: &mut Vec<NewHead>,
) -> Result<JournalEntry, WriteError> {
    let run_id = &new_entry.run_id;
    // The entry was recorded before, for example by a run that was killed before the acknowledgement: the first version counts.
    if let Some(recorded_entry) = find_recorded(connection, run_id, &new_entry.draft.id)? {
        return Ok(recorded_entry);
    }
    // The transaction holds the write lock, so the number cannot be given twice.
    let (last_seq, last_chain): (u64, Option<String>) = connection
        .prepare_cached("SELECT seq, chain FROM events WHERE run = ?1 ORDER BY seq DESC LIMIT 1")?
        .query_row([run_id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .unwrap_or_default();
    let entry = JournalEntry {
        v: EVENT_VERSION,
        run: run_id.clone(),
        seq: last_seq + 1,
        id: new_entry.draft.id.clone(),
        at: new_entry.timestamp,
        event: new_entry.draft.event.clone(),
    };
    let mut body = serde_json::to_string(&entry)?;
    let mut has_texts = false;
    if body.len() > MAX_INLINE_BYTES
        && let Some(shortened_entry) = take_long_texts(&body)
    {
        for text in &shortened_entry.texts {
            store_blob(connection, text.as_bytes())?;
        }
        (body, has_texts) = (shortened_entry.body, true);
    }
    let kind = entry.event.kind_name();
    let last_chain = last_chain.as_deref().unwrap_or(run_id.as_str());
    let chain = chain_entry(last_chain, &entry.id, kind, body.as_bytes());
    let is_synced = is_landmark(&entry.event);
    let raw_entry = RawEntry {
        seq: entry.seq,
        id: entry.id.clone(),
        kind: kind.to_string(),
        wall_ms: i64::try_from(entry.at.wall_ms).unwrap_or(i64::MAX),
        body: Some(body.into_bytes()),
        chain: Some(chain.to_string()),
        has_texts,
    };
    insert_entry(connection, run_id, &raw_entry)?;
    let is_end = matches!(entry.event, RunEvent::RunParked(_) | RunEvent::RunFinished(_));
    add_head(new_heads, NewHead { run_id: run_id.clone(), seq: entry.seq, chain, is_synced, is_end });
    Ok(entry)
}

/// Whether the head of a run is synced with this event: at its start, its boundaries, its landings and its end.
fn is_landmark(event: &RunEvent) -> bool {
    match event {
        RunEvent::RunStarted { .. } | RunEvent::Boundary { .. } | RunEvent::RunParked(_) | RunEvent::RunFinished(_) => {
            true
        }
        RunEvent::EffectFinished { reply, .. } => matches!(reply.kind(), EffectKind::Land | EffectKind::Commit),
        _ => false,
    }
}

/// Finds an entry by its idempotency id.
fn find_recorded(connection: &Connection, run_id: &RunId, entry_id: &str) -> Result<Option<JournalEntry>, WriteError> {
    let select_sql = "
        SELECT coalesce(cast(e.body AS BLOB), b.body), e.has_texts
        FROM events e LEFT JOIN blobs b ON b.hash = e.blob
        WHERE e.run = ?1 AND e.id = ?2";
    let recorded: Option<(Vec<u8>, bool)> = connection
        .prepare_cached(select_sql)?
        .query_row(params![run_id.as_str(), entry_id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((body, has_texts)) = recorded else { return Ok(None) };
    if !has_texts {
        return Ok(Some(serde_json::from_slice(&body)?));
    }
    let mut entry = serde_json::from_slice(&body)?;
    put_texts_back(&mut entry, &mut |hash| {
        connection
            .prepare_cached("SELECT cast(body AS TEXT) FROM blobs WHERE hash = ?1")?
            .query_row([hash.as_str()], |row| row.get(0))
    })?;
    Ok(Some(serde_json::from_value(entry)?))
}

/// Inserts an entry as it is stored.
pub(crate) fn insert_entry(connection: &Connection, run_id: &RunId, raw_entry: &RawEntry) -> rusqlite::Result<()> {
    let body = raw_entry.body.as_deref().unwrap_or_default();
    // Long rows would slow down every scan of the table; a blob is read only when its entry is.
    let (body, blob_hash) = if body.len() > MAX_INLINE_BYTES {
        (None, Some(store_blob(connection, body)?))
    } else {
        (Some(std::str::from_utf8(body).map_err(|cause| rusqlite::Error::Utf8Error(0, cause))?), None)
    };
    let insert_sql = "
        INSERT INTO events (run, seq, id, kind, wall_ms, body, blob, chain, has_texts)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    connection.prepare_cached(insert_sql)?.execute(params![
        run_id.as_str(),
        raw_entry.seq,
        raw_entry.id,
        raw_entry.kind,
        raw_entry.wall_ms,
        body,
        blob_hash.as_ref().map(Hash::as_str),
        raw_entry.chain,
        raw_entry.has_texts,
    ])?;
    Ok(())
}

/// Stores a blob under its hash; the same content is stored once.
pub(crate) fn store_blob(connection: &Connection, blob_body: &[u8]) -> rusqlite::Result<Hash> {
    let hash = Hash::digest_of(blob_body);
    connection
        .prepare_cached("INSERT OR IGNORE INTO blobs (hash, body) VALUES (?1, ?2)")?
        .execute(params![hash.as_str(), blob_body])?;
    Ok(hash)
}
