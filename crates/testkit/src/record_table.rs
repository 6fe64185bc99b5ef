//! The project records of a simulated world. They can be handed on to the world of the next run.

use std::collections::BTreeMap;

use tribunal_engine::{
    effect::RecordsWritten,
    ids::{RecordKey, RunId},
};
use tribunal_workflows::runs::{
    effect::Reply,
    records::RecordKind,
    types::{ReadRecords, RecordChange, RecordList, StoredRecord, WriteRecords},
};

/// The records by kind and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordTable {
    rows: BTreeMap<(RecordKind, RecordKey), StoredRecord>,
}

impl RecordTable {
    pub fn read_records(&self, request: &ReadRecords) -> Reply {
        let is_wanted = |record: &&StoredRecord| {
            record.record.record_kind() == request.kind && record.key.as_str().starts_with(&request.key_prefix)
        };
        Reply::ReadRecords(RecordList { records: self.list_records().into_iter().filter(is_wanted).cloned().collect() })
    }

    /// Applies the changes as the run `writer_run`.
    pub fn write_records(&mut self, request: &WriteRecords, writer_run: &str) -> Reply {
        for record_change in &request.changes {
            match record_change.clone() {
                RecordChange::Put { key, record } => {
                    let stored = StoredRecord { key: key.clone(), run: RunId::new(writer_run), wall_ms: 0, record };
                    self.rows.insert((stored.record.record_kind(), key), stored);
                }
                RecordChange::Remove { kind, key } => {
                    self.rows.remove(&(kind, key));
                }
            }
        }
        Reply::WriteRecords(RecordsWritten {})
    }

    pub fn list_records(&self) -> Vec<&StoredRecord> {
        self.rows.values().collect()
    }
}
