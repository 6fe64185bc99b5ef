//! Keeps what must not be lost: the journal of every run, blobs by content hash, and what people sent to running runs.
//!
//! One SQLite file in `.tribunal/`, in WAL mode with `synchronous=FULL`: what was acknowledged survives kill -9 and power
//! loss. One writer thread commits everything that is queued in one transaction and then acknowledges all of it; readers go
//! on while a run writes. An entry has an idempotency id: written twice it is one entry.
//!
//! It opens the database, alone. It masks nothing (that door is in `runner`) and decides nothing.

mod error;
mod place;
mod schema;
mod store;
mod sweep;
mod writer;

pub use error::StoreError;
/// Of the database that is built in.
pub use rusqlite::version as sqlite_version;
pub use schema::FORMAT;
pub use store::{Store, StoredRequest};
pub use sweep::{Compacted, Sweep, Swept, compact, sweep};
pub use writer::{Batch, NewEntry};
