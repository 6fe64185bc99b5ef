//! The only way to the journal, and so to every log and screen: everything that passes through it is masked first.
//!
//! The journal also keeps the run's clock (wall time, and the time the run was awake in all its processes) and the view that
//! summaries are made from.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::sync::oneshot;
use tribunal_core::{
    effect::{Reply, Request},
    event::{Draft, Entry, Event, Summary},
    ids::RunId,
    reason::Ending,
    stamp::Stamp,
    view::RunView,
};
use tribunal_store::{Batch, NewEntry, Store, StoreError, StoredRequest};

use crate::{fault, mask::Masker};

/// A run's journal, open for writing.
#[derive(Debug)]
pub struct Journal {
    store: Store,
    run: RunId,
    masker: Masker,
    view: RunView,
    /// The time that earlier processes of the run were awake.
    slept_at_ms: u64,
    woken: Instant,
}

impl Journal {
    /// Opens the journal; `earlier_entries` are those that earlier processes of the run recorded.
    pub fn new(store: Store, run: RunId, masker: Masker, before: &[Entry]) -> Journal {
        let view = RunView::of(before);
        let slept_at_ms = view.last.awake_ms;
        Journal { store, run, masker, view, slept_at_ms, woken: Instant::now() }
    }

    pub fn now(&self) -> Stamp {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let awake = u64::try_from(self.woken.elapsed().as_millis()).unwrap_or(u64::MAX);
        Stamp {
            wall_ms: u64::try_from(wall).unwrap_or(u64::MAX),
            awake_ms: self.slept_at_ms.saturating_add(awake),
        }
    }

    pub fn view(&self) -> &RunView {
        &self.view
    }

    pub fn requests(&self) -> Result<Vec<StoredRequest>, StoreError> {
        self.store.requests(&self.run)
    }

    /// Records entries and returns once they are durable.
    pub async fn record(&mut self, drafts: Vec<Draft>) -> Result<Vec<Entry>, StoreError> {
        self.commit(drafts, Batch::default()).await
    }

    /// Records a reply with the blobs it names and the requests it contains. Returns the reply as it was recorded, since that is
    /// what the workflow must see.
    pub async fn record_reply(
        &mut self,
        draft: Draft,
        blobs: Vec<Vec<u8>>,
        taken: Vec<i64>,
    ) -> Result<(Entry, Reply), StoreError> {
        let batch = Batch { blobs, taken, ..Batch::default() };
        let entries = self.commit(vec![draft], batch).await?;
        let entry = entries.into_iter().next();
        // The reply is taken from the entry, since masking may have changed it.
        let reply = entry.as_ref().and_then(|entry| match &entry.event {
            Event::EffectFinished { reply, .. } => Some(reply.clone()),
            _ => None,
        });
        entry.zip(reply).ok_or_else(|| StoreError::Writer("a reply was not recorded as one".into()))
    }

    async fn commit(&mut self, drafts: Vec<Draft>, mut batch: Batch) -> Result<Vec<Entry>, StoreError> {
        if drafts.is_empty() {
            return Ok(Vec::new());
        }
        // All entries of one batch get the same timestamp, since they become durable together.
        let at = self.now();
        for draft in drafts {
            let event = self.masked(draft.event)?;
            let draft = Draft { id: draft.id, event };
            fault::point(&draft.id, "before");
            batch.entries.push(NewEntry { run: self.run.clone(), at, draft });
        }
        // The store writes on a thread of its own and reports back once the batch is durable.
        let (tell, told) = oneshot::channel();
        self.store.submit(batch, move |result| {
            let _ = tell.send(result);
        });
        let entries = told.await.map_err(|gone| StoreError::Writer(gone.to_string()))??;
        for entry in &entries {
            // The view is updated only now: it must never show an entry that a crash could still lose.
            fault::point(&entry.id, "after");
            self.view.see(entry);
        }
        Ok(entries)
    }

    fn masked(&self, event: Event) -> Result<Event, StoreError> {
        // Masking works on the JSON form, which has every string of an event in one uniform shape.
        let mut value = serde_json::to_value(&event).map_err(StoreError::Unwritable)?;
        if !mask_all(&self.masker, &mut value) {
            return Ok(event);
        }
        serde_json::from_value(value).map_err(StoreError::Unwritable)
    }

    /// Summarizes the run for its last entry.
    pub fn summary(&self, ending: &Ending) -> Summary {
        Summary {
            outcome: ending.reason.outcome(),
            reason: ending.reason,
            detail: ending.detail.clone(),
            rounds: self.view.rounds,
            findings: self.view.counts(),
            cost: self.view.spent.cost,
            notional: self.view.spent.notional,
            tokens: self.view.spent.tokens,
            elapsed_ms: self.now().awake_ms,
            left: ending.left.clone(),
        }
    }
}

/// Masks every string in a value and returns whether something was masked. Keys are ours and stay.
pub(crate) fn mask_all(masker: &Masker, value: &mut Value) -> bool {
    match value {
        Value::String(text) => match masker.mask(text) {
            std::borrow::Cow::Borrowed(_) => false,
            std::borrow::Cow::Owned(masked) => {
                let changed = masked != *text;
                *text = masked;
                changed
            }
        },
        // Every item has to be visited, so `any`, which stops at the first, is not used.
        Value::Array(items) => {
            items.iter_mut().filter_map(|item| mask_all(masker, item).then_some(())).count() > 0
        }
        Value::Object(map) => {
            map.values_mut().filter_map(|item| mask_all(masker, item).then_some(())).count() > 0
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Splits stored requests into their ids, which are marked as taken, and the requests for a reply.
pub(crate) fn split(stored: Vec<StoredRequest>) -> (Vec<i64>, Vec<Request>) {
    stored.into_iter().map(|stored| (stored.id, stored.request)).unzip()
}
