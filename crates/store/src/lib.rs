//! Stores what must not be lost: the journal of every run, blobs by content hash, requests that users sent to running runs, and
//! the records of a project, which outlive the runs that wrote them.
//!
//! There is one SQLite file in `.tribunal/`, in WAL mode: what was acknowledged survives kill -9. It survives a power failure as
//! well, unless the caller asked for [`SyncMode::WithNext`]: such a batch is synced together with the next one. One writer thread
//! commits everything that is queued in one transaction and then acknowledges all of it; readers continue while a run writes. An
//! entry has an idempotency id: if it is written twice, it is recorded once.
//!
//! No other crate opens the database. This one masks nothing (that happens in `runner`) and decides nothing.

mod chain;
mod damage;
mod entries;
mod error;
mod file_system;
mod heads;
mod inbox;
mod journal_file;
mod long_texts;
mod rebuild;
mod records;
mod schema;
mod store;
mod sweep;
mod sync_mode;
mod writer;

pub use damage::{DamagedRun, EntryProblem, GoodEntry, JournalDamage};
pub use entries::LastEntries;
pub use error::StoreError;
pub use inbox::{RequestStatus, StoredRequest};
pub use rebuild::{DamagedJournal, InspectedRun, JournalInspection, RebuildOutcome, rebuild_journal};
/// The version of the built-in SQLite library.
pub use rusqlite::version as sqlite_version;
pub use schema::JOURNAL_FORMAT;
pub use store::Store;
pub use sweep::{CompactOutcome, SweepOutcome, SweepRequest, compact_journal, sweep_journal};
pub use sync_mode::SyncMode;
pub use writer::{EntryBatch, NewEntry, NewRequest};
