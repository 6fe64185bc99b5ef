//! The only writer: a thread that commits everything queued in one transaction and then acknowledges all of it.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, Sender, channel},
    thread::JoinHandle,
};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use tribunal_core::{
    event::{Draft, EVENT_VERSION, Entry},
    ids::{Hash, RunId},
    stamp::Stamp,
};

use crate::{error::StoreError, place::FileId};

/// The longest entry in bytes that is stored in its row; a longer one becomes a blob.
const INLINE: usize = 64 << 10;

/// An entry to be recorded; the store gives it its number.
#[derive(Clone, Debug)]
pub struct NewEntry {
    pub run: RunId,
    pub at: Stamp,
    pub draft: Draft,
}

/// Everything that is recorded together: all of it or nothing.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub entries: Vec<NewEntry>,
    pub blobs: Vec<Vec<u8>>,
    /// The inbox numbers of the requests that these entries have taken.
    pub taken: Vec<i64>,
    /// A request of the user to a run.
    pub request: Option<(RunId, String)>,
}

type Done = Box<dyn FnOnce(Result<Vec<Entry>, StoreError>) + Send>;
type Job = (Batch, Done);

/// The handle of the writer thread; dropping it waits until everything queued is written.
pub(crate) struct Writer {
    queue: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, path: PathBuf) -> Result<Writer, StoreError> {
        let (queue, jobs) = channel();
        let thread = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || work(connection, &path, &jobs))
            .map_err(|cause| StoreError::Writer(cause.to_string()))?;
        Ok(Writer { queue: Some(queue), thread: Some(thread) })
    }

    pub(crate) fn submit(&self, batch: Batch, done: Done) {
        // A failed send returns the job, so its callback can still be called.
        let sent = match &self.queue {
            Some(queue) => queue.send((batch, done)).map_err(|unsent| unsent.0.1),
            None => Err(done),
        };
        if let Err(done) = sent {
            done(Err(StoreError::Writer("its thread is gone".into())));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The thread ends when its queue is closed, so the sender must go before the join.
        self.queue.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Commits queued jobs until the queue is closed.
fn work(connection: Connection, path: &Path, jobs: &Receiver<Job>) {
    let own = FileId::of(path).ok();
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        // Syncing is the expensive part of a commit: everything that arrived meanwhile shares one.
        group.extend(jobs.try_iter());
        let (batches, dones): (Vec<Batch>, Vec<Done>) = group.into_iter().unzip();
        // An open file outlives its name; nothing written to it after that could ever be read.
        if own.is_some_and(|own| !own.is_at(path)) {
            for done in dones {
                done(Err(StoreError::Gone { path: path.to_path_buf() }));
            }
            continue;
        }
        match commit(&connection, &batches) {
            Ok(written) => {
                for (done, entries) in dones.into_iter().zip(written) {
                    done(entries);
                }
            }
            Err(cause) => {
                // An error of SQLite cannot be cloned, so every batch gets its text.
                let full = cause.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull);
                let text = cause.to_string();
                for done in dones {
                    let path = path.to_path_buf();
                    done(Err(match full {
                        true => StoreError::Full { path },
                        false => StoreError::Writer(format!("{}: {text}", path.display())),
                    }));
                }
            }
        }
    }
}

pub(crate) type Written = Result<Vec<Entry>, StoreError>;

/// Commits a group of batches in one transaction; a batch that cannot be encoded does not affect the others.
pub(crate) fn commit(connection: &Connection, batches: &[Batch]) -> rusqlite::Result<Vec<Written>> {
    let mut transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let mut written = Vec::with_capacity(batches.len());
    for batch in batches {
        let savepoint = transaction.savepoint()?;
        match write(&savepoint, batch) {
            Ok(entries) => {
                savepoint.commit()?;
                written.push(Ok(entries));
            }
            Err(WriteError::Json(cause)) => {
                // Dropping the savepoint rolls this batch back.
                drop(savepoint);
                written.push(Err(StoreError::Unwritable(cause)));
            }
            // The transaction rolls back when it is dropped, so a failed statement fails the whole group.
            Err(WriteError::Sql(cause)) => return Err(cause),
        }
    }
    transaction.commit()?;
    Ok(written)
}

enum WriteError {
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
fn write(to: &Connection, batch: &Batch) -> Result<Vec<Entry>, WriteError> {
    for blob in &batch.blobs {
        put_blob(to, blob)?;
    }
    for id in &batch.taken {
        to.prepare_cached("UPDATE inbox SET taken = 1 WHERE id = ?1")?.execute([id])?;
    }
    if let Some((run, body)) = &batch.request {
        to.prepare_cached("INSERT INTO inbox (run, body) VALUES (?1, ?2)")?
            .execute(params![run.as_str(), body])?;
    }
    batch.entries.iter().map(|entry| write_entry(to, entry)).collect()
}

/// Selects the text of an entry by its idempotency id, from its row or from its blob.
const RECORDED: &str = "
    SELECT coalesce(cast(e.body AS BLOB), b.body)
    FROM events e LEFT JOIN blobs b ON b.hash = e.blob
    WHERE e.run = ?1 AND e.id = ?2";

/// Records an entry under the next number of its run.
fn write_entry(to: &Connection, new: &NewEntry) -> Result<Entry, WriteError> {
    let run = new.run.as_str();
    let known = to
        .prepare_cached(RECORDED)?
        .query_row(params![run, new.draft.id], |row| row.get::<_, Vec<u8>>(0))
        .optional()?;
    // The entry was recorded before, for example by a run that was killed before the acknowledgement: the first version counts.
    if let Some(body) = known {
        return Ok(serde_json::from_slice(&body)?);
    }
    // The transaction holds the write lock, so the number cannot be given twice.
    let last: u64 = to
        .prepare_cached("SELECT coalesce(max(seq), 0) FROM events WHERE run = ?1")?
        .query_row([run], |row| row.get(0))?;
    let seq = last + 1;
    let entry = Entry {
        v: EVENT_VERSION,
        run: new.run.clone(),
        seq,
        id: new.draft.id.clone(),
        at: new.at,
        event: new.draft.event.clone(),
    };
    let json = serde_json::to_string(&entry)?;
    // Long rows would slow down every scan of the table; a blob is read only when its entry is.
    let (body, blob) =
        if json.len() > INLINE { (None, Some(put_blob(to, json.as_bytes())?)) } else { (Some(json), None) };
    to.prepare_cached(
        "INSERT INTO events (run, seq, id, kind, wall_ms, body, blob) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        run,
        seq,
        entry.id,
        entry.event.kind(),
        i64::try_from(entry.at.wall_ms).unwrap_or(i64::MAX),
        body,
        blob.as_ref().map(Hash::as_str),
    ])?;
    Ok(entry)
}

/// Stores a blob under its hash; the same content is stored once.
fn put_blob(to: &Connection, body: &[u8]) -> Result<Hash, WriteError> {
    let hash = Hash::of(body);
    to.prepare_cached("INSERT OR IGNORE INTO blobs (hash, body) VALUES (?1, ?2)")?
        .execute(params![hash.as_str(), body])?;
    Ok(hash)
}
