//! How a run gets into the journal, and so to every log and screen: everything that passes through here is masked first.
//! Entries of sessions and loops are appended by [`crate::session`], with texts that the binary has masked.
//!
//! The journal also keeps the run's clock (wall time, and the time the run was awake in all its processes) and the view that
//! summaries are made from.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::sync::oneshot;
use tribunal_engine::{
    failure_cause::FailureCause,
    ids::{FindingId, RunId},
    reason::{RunEnding, RunOutcome},
    timestamp::Timestamp,
};
use tribunal_store::{EntryBatch, NewEntry, Store, StoreError, StoredRequest, SyncMode};
use tribunal_workflows::{
    findings::finding::FindingStatus,
    runs::{
        effect::Reply,
        failure_log::FailureLog,
        types::{EntryDraft, JournalEntry, ReadRecords, RecordChange, RunEvent, RunSummary, StoredRecord},
        user_request::UserRequest,
        view::RunView,
    },
};

use crate::{kill_points, masking::Masker};

/// A run's journal, open for writing.
#[derive(Debug)]
pub struct RunJournal {
    store: Store,
    run_id: RunId,
    masker: Masker,
    view: RunView,
    /// What went wrong in this run, for its summary.
    failure_log: FailureLog,
    /// The time that earlier processes of the run were awake.
    earlier_awake_ms: u64,
    started_at: Instant,
    /// The name that the parent gave this run, if it is a child.
    child_name: Option<String>,
    /// Entries that are recorded together with the next ones.
    deferred_entries: Vec<NewEntry>,
}

/// A reply as it was recorded.
#[derive(Debug)]
pub(crate) struct RecordedReply {
    /// The new entries; that of the reply is the last one.
    pub entries: Vec<JournalEntry>,
    pub at: Timestamp,
    pub reply: Reply,
}

/// Returns the reply of an entry, if it is the end of an effect.
pub(crate) fn recorded_reply(event: &RunEvent) -> Option<Reply> {
    match event {
        RunEvent::EffectFinished { reply, .. } => Some(reply.clone()),
        _ => None,
    }
}

impl RunJournal {
    /// Opens the journal; `earlier_entries` are those that earlier processes of the run recorded.
    pub fn new(store: Store, run_id: RunId, masker: Masker, earlier_entries: &[JournalEntry]) -> RunJournal {
        let view = RunView::from_entries(earlier_entries);
        let slept_at_ms = view.last_time.awake_ms;
        let mut failure_log = FailureLog::default();
        earlier_entries.iter().for_each(|entry| failure_log.apply_event(&entry.event));
        let started_at = Instant::now();
        let child_name = view.parent.as_ref().map(|parent| parent.name.clone());
        RunJournal {
            store,
            run_id,
            masker,
            view,
            failure_log,
            earlier_awake_ms: slept_at_ms,
            started_at,
            child_name,
            deferred_entries: Vec::new(),
        }
    }

    pub fn current_timestamp(&self) -> Timestamp {
        let wall_time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis());
        let awake_time = u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        Timestamp {
            wall_ms: u64::try_from(wall_time).unwrap_or(u64::MAX),
            awake_ms: self.earlier_awake_ms.saturating_add(awake_time),
        }
    }

    pub fn run_view(&self) -> &RunView {
        &self.view
    }

    pub fn pending_requests(&self) -> Result<Vec<StoredRequest>, StoreError> {
        self.store.pending_requests(&self.run_id)
    }

    /// Returns what the user sent to another run, for instance to a child of this one.
    pub(crate) fn requests_of(&self, run_id: &RunId) -> Result<Vec<StoredRequest>, StoreError> {
        self.store.pending_requests(run_id)
    }

    /// Returns what the user sent to all runs.
    pub(crate) fn requests_of_all(&self) -> Result<Vec<(RunId, StoredRequest)>, StoreError> {
        self.store.all_pending_requests()
    }

    /// Tells the senders of requests whether these are accepted.
    pub(crate) async fn send_receipts(&self, receipts: Vec<(i64, bool)>) -> Result<(), StoreError> {
        let (result_sender, result_receiver) = oneshot::channel();
        self.store.submit(EntryBatch { receipts, ..EntryBatch::default() }, move |result| {
            let _ = result_sender.send(result);
        });
        let written = result_receiver.await;
        written.map_err(|closed_channel| StoreError::WriterStopped(closed_channel.to_string()))?.map(drop)
    }

    /// Reads the entry of this run with an id.
    pub(crate) fn find_entry(&self, entry_id: &str) -> Result<Option<JournalEntry>, StoreError> {
        self.store.find_entry(&self.run_id, entry_id)
    }

    /// Reads what a view of another run is built from.
    pub(crate) fn entries_of(&self, run_id: &RunId) -> Result<Vec<JournalEntry>, StoreError> {
        self.store.entries_for_resume(run_id)
    }

    /// Reads everything that another run has recorded.
    pub(crate) fn all_entries_of(&self, run_id: &RunId) -> Result<Vec<JournalEntry>, StoreError> {
        self.store.read_entries(run_id, 0)
    }

    pub(crate) fn list_runs(&self) -> Result<Vec<RunId>, StoreError> {
        self.store.list_runs()
    }

    /// Records that the run is resumed. Requests to stop it are over with that.
    pub(crate) async fn record_resume(&mut self, drafts: Vec<EntryDraft>) -> Result<Vec<JournalEntry>, StoreError> {
        let is_stop = |stored: &StoredRequest| matches!(stored.request, UserRequest::Stop { .. });
        let stop_requests = self.pending_requests()?.into_iter().filter(is_stop);
        let taken_requests = stop_requests.map(|stored| stored.inbox_id).collect();
        self.commit_drafts(drafts, EntryBatch { taken_requests, ..EntryBatch::default() }).await
    }

    /// Keeps entries until the next ones are recorded, in the same transaction. This is for entries that follow from earlier ones:
    /// a killed process that has lost them notes them again. Returns them as they will be recorded.
    pub(crate) fn defer_drafts(&mut self, drafts: Vec<EntryDraft>) -> Result<Vec<NewEntry>, StoreError> {
        // All of them get the same timestamp, since they are recorded together.
        let timestamp = self.current_timestamp();
        let masked_entries = drafts.into_iter().map(|draft| self.mask_draft(draft, timestamp));
        let new_entries = masked_entries.collect::<Result<Vec<NewEntry>, StoreError>>()?;
        self.deferred_entries.extend(new_entries.iter().cloned());
        Ok(new_entries)
    }

    /// Records what was deferred.
    pub(crate) async fn record_deferred(&mut self) -> Result<Vec<JournalEntry>, StoreError> {
        if self.deferred_entries.is_empty() {
            return Ok(Vec::new());
        }
        self.commit_deferred(EntryBatch { sync: SyncMode::WithNext, ..EntryBatch::default() }).await
    }

    /// Records entries, and returns once a killed process could no longer lose them. Deferred entries come first.
    pub async fn record_drafts(
        &mut self,
        drafts: Vec<EntryDraft>,
        sync: SyncMode,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        self.commit_drafts(drafts, EntryBatch { sync, ..EntryBatch::default() }).await
    }

    /// Reads the project records of one kind whose keys begin with a prefix.
    pub(crate) fn read_records(&self, request: &ReadRecords) -> Result<Vec<StoredRecord>, StoreError> {
        self.store.read_records(request.kind, &request.key_prefix)
    }

    /// Records the reply to a change of project records together with the change itself: a crash leaves both or neither.
    pub(crate) async fn record_record_changes(
        &mut self,
        draft: EntryDraft,
        changes: &[RecordChange],
    ) -> Result<RecordedReply, StoreError> {
        let mut changes_json = serde_json::to_value(changes).map_err(StoreError::UnwritableEntry)?;
        mask_json_strings(&self.masker, &mut changes_json);
        let record_changes = serde_json::from_value(changes_json).map_err(StoreError::UnwritableEntry)?;
        self.record_reply(vec![draft], EntryBatch { record_changes, ..EntryBatch::default() }).await
    }

    /// Records drafts of which the last one is a reply, with the rest of their batch: the blobs they name, and the requests that
    /// the reply contains. Returns all new entries, and the reply as it was recorded, since that is what the workflow must see.
    pub(crate) async fn record_reply(
        &mut self,
        drafts: Vec<EntryDraft>,
        batch: EntryBatch,
    ) -> Result<RecordedReply, StoreError> {
        let entries = self.commit_drafts(drafts, batch).await?;
        // The reply is taken from the entry, since masking may have changed it.
        let recorded_reply = entries.last().and_then(|entry| Some((entry.at, recorded_reply(&entry.event)?)));
        let recorded = recorded_reply.map(|(at, reply)| RecordedReply { entries, at, reply });
        recorded.ok_or_else(|| StoreError::WriterStopped("a reply was recorded as a different event".into()))
    }

    async fn commit_drafts(
        &mut self,
        drafts: Vec<EntryDraft>,
        batch: EntryBatch,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        if drafts.is_empty() {
            return Ok(Vec::new());
        }
        self.defer_drafts(drafts)?;
        self.commit_deferred(batch).await
    }

    /// Records the deferred entries, and what else is in the batch.
    async fn commit_deferred(&mut self, mut batch: EntryBatch) -> Result<Vec<JournalEntry>, StoreError> {
        batch.entries = std::mem::take(&mut self.deferred_entries);
        for NewEntry { draft, .. } in &batch.entries {
            if let RunEvent::RunStarted { parent: Some(parent), .. } = &draft.event {
                self.child_name = Some(parent.name.clone());
            }
            kill_points::kill_if_requested(&kill_points::entry_name(self.child_name.as_deref(), &draft.id), "before");
        }
        // The store writes on a thread of its own and reports back once the batch is recorded.
        let (result_sender, result_receiver) = oneshot::channel();
        self.store.submit(batch, move |result| {
            let _ = result_sender.send(result);
        });
        let entries =
            result_receiver.await.map_err(|closed_channel| StoreError::WriterStopped(closed_channel.to_string()))??;
        for entry in &entries {
            // The view is updated only now: it must never show an entry that a killed process could still lose.
            kill_points::kill_if_requested(&kill_points::entry_name(self.child_name.as_deref(), &entry.id), "after");
            self.view.apply_entry(entry);
            self.failure_log.apply_event(&entry.event);
        }
        Ok(entries)
    }

    fn mask_draft(&self, draft: EntryDraft, timestamp: Timestamp) -> Result<NewEntry, StoreError> {
        let draft = EntryDraft { id: draft.id, event: self.mask_event(draft.event)? };
        Ok(NewEntry { run_id: self.run_id.clone(), timestamp, draft })
    }

    fn mask_event(&self, event: RunEvent) -> Result<RunEvent, StoreError> {
        // Masking works on the JSON form, which has every string of an event in one uniform shape.
        let mut event_json = serde_json::to_value(&event).map_err(StoreError::UnwritableEntry)?;
        if !mask_json_strings(&self.masker, &mut event_json) {
            return Ok(event);
        }
        serde_json::from_value(event_json).map_err(StoreError::UnwritableEntry)
    }

    /// Summarizes the run for its last entry.
    /// `None` if the run has not started.
    pub fn run_summary(&self, ending: &RunEnding) -> Option<RunSummary> {
        let usage = self.view.total_usage();
        let result = self.view.build_result()?;
        Some(RunSummary {
            outcome: ending.reason.outcome(),
            reason: ending.reason,
            detail: ending.detail.clone(),
            result,
            cost: usage.cost,
            notional: usage.notional,
            tokens: usage.tokens,
            elapsed_ms: self.current_timestamp().awake_ms,
            left: ending.left.clone(),
            causes: self.remaining_causes(ending),
        })
    }

    /// Returns why tasks came to nothing, for a run that has not reached its goal.
    fn remaining_causes(&self, ending: &RunEnding) -> Vec<FailureCause> {
        let needs_fix = |finding_id: FindingId| {
            let finding = self.view.as_review().and_then(|review| review.findings.get(&finding_id));
            matches!(
                finding.map(|finding| &finding.status),
                Some(FindingStatus::Open | FindingStatus::Assigned | FindingStatus::Blocked { .. })
            )
        };
        match ending.reason.outcome() {
            Some(RunOutcome::Failed | RunOutcome::Halted | RunOutcome::Waiting) => {
                self.failure_log.remaining_causes(needs_fix)
            }
            Some(RunOutcome::Resolved | RunOutcome::Cancelled) | None => Vec::new(),
        }
    }
}

/// Masks every string in a value and returns whether something was masked. Keys are ours and stay.
pub(crate) fn mask_json_strings(masker: &Masker, json_value: &mut Value) -> bool {
    match json_value {
        Value::String(text) => match masker.mask(text) {
            std::borrow::Cow::Borrowed(_) => false,
            std::borrow::Cow::Owned(masked_text) => {
                let changed = masked_text != *text;
                *text = masked_text;
                changed
            }
        },
        // Every item has to be visited, so `any`, which stops at the first, is not used.
        Value::Array(array_items) => {
            array_items.iter_mut().filter_map(|item| mask_json_strings(masker, item).then_some(())).count() > 0
        }
        Value::Object(map) => {
            map.values_mut().filter_map(|item| mask_json_strings(masker, item).then_some(())).count() > 0
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Splits stored requests into their ids, which are marked as taken, and the requests for a reply.
pub(crate) fn split_requests(stored_requests: Vec<StoredRequest>) -> (Vec<i64>, Vec<UserRequest>) {
    stored_requests.into_iter().map(|stored_request| (stored_request.inbox_id, stored_request.request)).unzip()
}
