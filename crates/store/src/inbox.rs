//! The inbox: what users, and other processes for them, ask of a run while it works.

use rusqlite::params_from_iter;
use tribunal_engine::ids::RunId;
use tribunal_workflows::runs::user_request::UserRequest;

use crate::{
    error::StoreError,
    store::Store,
    writer::{EntryBatch, NewRequest},
};

/// A request of the user with its number in the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRequest {
    pub inbox_id: i64,
    pub request: UserRequest,
    /// The process that claims to have sent it; empty if none does.
    pub sender: String,
}

/// What became of the requests of one sender to one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStatus {
    /// The run has not looked at all of them.
    Waiting,
    /// The run has taken them, or knows their sender and takes them with its next step.
    Accepted,
    Refused,
}

impl Store {
    /// Reads the requests that users sent to a run and that no run has taken yet.
    pub fn pending_requests(&self, run_id: &RunId) -> Result<Vec<StoredRequest>, StoreError> {
        let requests = self.select_requests("run = ?1", &[run_id.as_str()])?;
        Ok(requests.into_iter().map(|(_, stored)| stored).collect())
    }

    /// Reads the requests to all runs that no run has taken yet.
    pub fn all_pending_requests(&self) -> Result<Vec<(RunId, StoredRequest)>, StoreError> {
        self.select_requests("1", &[])
    }

    fn select_requests(&self, condition: &str, parameters: &[&str]) -> Result<Vec<(RunId, StoredRequest)>, StoreError> {
        // Taken requests stay in the table as a record; only the others are pending.
        let select_sql = format!(
            "SELECT run, id, body, coalesce(sender, '') FROM inbox WHERE {condition} AND taken = 0 ORDER BY id"
        );
        let mut statement = self.reader.prepare_cached(&select_sql).map_err(|cause| self.database_error(cause))?;
        let rows: Vec<(String, i64, String, String)> = statement
            .query_map(params_from_iter(parameters), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .and_then(Iterator::collect)
            .map_err(|cause| self.database_error(cause))?;
        // This build cannot decode a request of a newer one; the request stays in the inbox.
        let understood = rows.into_iter().filter_map(|(run, id, body, sender)| {
            let request = serde_json::from_str(&body).ok()?;
            Some((RunId::new(run), StoredRequest { inbox_id: id, request, sender }))
        });
        Ok(understood.collect())
    }

    /// Sends a request to a run, in place of earlier ones that the run has not read yet. `sender` identifies this process.
    pub fn send_request(
        &self,
        run_id: &RunId,
        request: &UserRequest,
        sender: &str,
        replaced_ids: Vec<i64>,
    ) -> Result<(), StoreError> {
        let request_json = serde_json::to_string(request).map_err(StoreError::UnwritableEntry)?;
        // Both happen in one transaction. A run that has read an earlier request just now finds the new one as well, and
        // says that it came too late.
        let new_request = Some(NewRequest { run_id: run_id.clone(), request_json, sender: sender.to_string() });
        self.append(EntryBatch { taken_requests: replaced_ids, new_request, ..EntryBatch::default() }).map(|_| ())
    }

    /// Finds out what became of the requests that a process sent to a run.
    pub fn request_status(&self, run_id: &RunId, sender: &str) -> Result<RequestStatus, StoreError> {
        let select_sql = "SELECT coalesce(max(receipt = 0), 0), coalesce(max(taken = 0 AND receipt IS NULL), 0)
            FROM inbox WHERE run = ?1 AND sender = ?2";
        let (is_refused, is_waiting): (bool, bool) = self
            .reader
            .prepare_cached(select_sql)
            .and_then(|mut statement| {
                statement.query_row([run_id.as_str(), sender], |row| Ok((row.get(0)?, row.get(1)?)))
            })
            .map_err(|cause| self.database_error(cause))?;
        Ok(match (is_refused, is_waiting) {
            (true, _) => RequestStatus::Refused,
            (false, true) => RequestStatus::Waiting,
            (false, false) => RequestStatus::Accepted,
        })
    }
}
