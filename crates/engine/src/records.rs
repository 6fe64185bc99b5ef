//! Project records: what outlives a run, for instance a decision of the user that later runs respect.
//!
//! They are in a table of the journal's database. A run reads them with an effect, so a replay sees what the run saw, and
//! writes them with an effect: the store writes them together with the entry that ends it.

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    ids::{RecordKey, RunId},
    run_types::{AnyRecord, RunTypes},
};

/// A record as the store has it. The store adds which run wrote it, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(bound = "")]
pub struct StoredRecord<T: RunTypes> {
    pub key: RecordKey,
    pub run: RunId,
    pub wall_ms: u64,
    #[serde(flatten)]
    pub record: T::Record,
}

/// One change of the project records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
#[schemars(bound = "")]
pub enum RecordChange<T: RunTypes> {
    /// Writes a record, in place of one with the same kind and key.
    Put {
        key: RecordKey,
        #[serde(flatten)]
        record: T::Record,
    },
    /// Removes a record; does nothing if there is none.
    Remove { kind: <T::Record as AnyRecord>::Kind, key: RecordKey },
}
