//! The table of project records: what outlives the runs that wrote it. A sweep of runs leaves it alone.

use rusqlite::{Connection, Row, params};
use tribunal_engine::ids::{RecordKey, RunId};
use tribunal_workflows::runs::{
    records::{ProjectRecord, RecordKind},
    types::{RecordChange, StoredRecord},
};

use crate::writer::{NewEntry, WriteError};

/// Writes one change within the transaction that records this entry.
pub(crate) fn write_change(
    connection: &Connection,
    record_change: &RecordChange,
    entry: &NewEntry,
) -> Result<(), WriteError> {
    match record_change {
        RecordChange::Put { key, record } => {
            let upsert_sql =
                "INSERT OR REPLACE INTO records (kind, key, body, run, wall_ms) VALUES (?1, ?2, ?3, ?4, ?5)";
            connection.prepare_cached(upsert_sql)?.execute(params![
                record.record_kind().as_str(),
                key.as_str(),
                serde_json::to_string(record)?,
                entry.run_id.as_str(),
                i64::try_from(entry.timestamp.wall_ms).unwrap_or(i64::MAX),
            ])?;
        }
        RecordChange::Remove { kind, key } => remove_record(connection, *kind, key)?,
    }
    Ok(())
}

/// Removes a record; does nothing if there is none.
pub(crate) fn remove_record(connection: &Connection, kind: RecordKind, key: &RecordKey) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM records WHERE kind = ?1 AND key = ?2")?
        .execute(params![kind.as_str(), key.as_str()])
        .map(drop)
}

/// Selects the records of a kind whose keys begin with a prefix.
pub(crate) fn select_records(
    connection: &Connection,
    kind: RecordKind,
    key_prefix: &str,
) -> rusqlite::Result<Vec<StoredRecord>> {
    // The first comparison lets SQLite start at the right place of the primary key.
    let select_sql = "SELECT key, body, run, wall_ms FROM records
        WHERE kind = ?1 AND key >= ?2 AND substr(key, 1, length(?2)) = ?2 ORDER BY key";
    let mut statement = connection.prepare_cached(select_sql)?;
    let rows = statement.query_map(params![kind.as_str(), key_prefix], decode_record)?;
    // A newer build may have written a record that this one does not know; it stays where it is.
    rows.filter_map(rusqlite::Result::transpose).collect()
}

/// Decodes a row; `None` if this build does not know what the record says.
fn decode_record(row: &Row<'_>) -> rusqlite::Result<Option<StoredRecord>> {
    let Ok(record) = serde_json::from_str::<ProjectRecord>(&row.get::<_, String>(1)?) else { return Ok(None) };
    let wall_ms = u64::try_from(row.get::<_, i64>(3)?).unwrap_or(0);
    let key = RecordKey::new(row.get::<_, String>(0)?);
    Ok(Some(StoredRecord { key, run: RunId::new(row.get::<_, String>(2)?), wall_ms, record }))
}
