//! Child runs that a workflow goes on beside: they work on across its boundaries, and are awaited one by one.
//!
//! The journal says which of them are at work and which have come back, so a process that resumes the run drives the first on and
//! hands out the others. See [`tribunal_engine::child_queue`].

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use futures_util::stream::FuturesUnordered;
use tokio::{sync::watch, time::Instant};
use tribunal_engine::{
    child_queue::ChildUnderWay,
    children::StartedChild,
    ids::{Key, RunId},
    limits::UsageTotals,
    replayer::finished_draft,
};
use tribunal_store::{EntryBatch, SyncMode};
use tribunal_workflows::runs::{
    effect::{Effect, Reply},
    types::{
        ChildNews, ChildOutcome, ChildQueue, EntryDraft, JournalEntry, Replayer, ReturnedChild, RunEvent, StartChild,
    },
    user_request::UserRequest,
};

use super::{
    HostError, WorkflowHost,
    children::{ChildEnd, ChildFuture, ChildRequest},
    requests::RequestReading,
};
use crate::shared::stop_level::StopLevel;

/// How often a run that waits for its children looks at what the user has sent.
const LISTEN_INTERVAL: Duration = Duration::from_secs(1);
/// Looking takes at most this part of the time.
const LISTEN_SHARE: u32 = 50;

/// The child runs of a run, which are driven on its thread.
pub(crate) struct ChildRuns<'a> {
    /// Those that an effect waits for, each for its own.
    pub(super) waited_for: FuturesUnordered<ChildFuture<'a>>,
    /// Those that the run goes on beside.
    pub(super) beside: FuturesUnordered<ChildFuture<'a>>,
    /// What the journal says about those beside.
    queue: ChildQueue,
    /// The keys of the effects that wait for a child, in the order in which they were requested.
    waits: VecDeque<Key>,
    /// When to look at what the user has sent; `None` while no effect waits.
    pub(super) listen_at: Option<Instant>,
    /// Tells the children to stop because their parent ends or parks.
    parent_end: watch::Sender<StopLevel>,
    /// The children of whose answers the workflow was told while it waited. They stay in the inboxes of the children.
    told_children: BTreeSet<String>,
    /// The run comes to its end, so its children are left as they are.
    is_finishing: bool,
}

impl Default for ChildRuns<'_> {
    fn default() -> Self {
        ChildRuns {
            waited_for: FuturesUnordered::new(),
            beside: FuturesUnordered::new(),
            queue: ChildQueue::default(),
            waits: VecDeque::new(),
            listen_at: None,
            parent_end: watch::Sender::new(StopLevel::Continue),
            told_children: BTreeSet::new(),
            is_finishing: false,
        }
    }
}

impl ChildRuns<'_> {
    pub(super) fn parent_end(&self) -> watch::Receiver<StopLevel> {
        self.parent_end.subscribe()
    }

    /// Whether an effect waits for a child that is at work.
    pub(super) fn is_awaited(&self) -> bool {
        !self.waits.is_empty() && !self.beside.is_empty()
    }

    /// Tells the children to stop. Those of a run that comes to its end are never continued.
    pub(super) fn stop_all(&mut self, is_finishing: bool) {
        self.is_finishing = is_finishing;
        self.waits.clear();
        self.listen_at = None;
        if !self.beside.is_empty() {
            self.parent_end.send_replace(StopLevel::ParkRun);
        }
    }

    /// Drops the children whose answers the workflow knows of: a wait that told of them again would be over at once, for ever.
    pub(super) fn keep_untold(&mut self, requests: Vec<UserRequest>) -> Vec<UserRequest> {
        let is_untold = |request: &UserRequest| match request {
            UserRequest::ContinueChild { child } => self.told_children.insert(child.clone()),
            _ => true,
        };
        requests.into_iter().filter(is_untold).collect()
    }

    fn is_stopping(&self) -> bool {
        *self.parent_end.borrow() > StopLevel::Continue
    }
}

/// Waits until it is time to look at what the user has sent; forever if it never is.
pub(super) async fn wait_to_listen(listen_at: Option<Instant>) {
    match listen_at {
        Some(listen_at) => tokio::time::sleep_until(listen_at).await,
        None => std::future::pending().await,
    }
}

impl WorkflowHost<'_, '_> {
    /// Drives the children on that an earlier process had started and that have not come back.
    pub(super) fn continue_children(&mut self, entries: &[JournalEntry]) -> Result<(), HostError> {
        self.child_runs.queue = ChildQueue::from_entries(entries);
        for (name, child) in self.child_runs.queue.under_way().clone() {
            let entry = self.journal.find_entry(&child.start_entry_id())?;
            let ChildUnderWay { run, start_key, .. } = child;
            let Some(RunEvent::EffectStarted { effect: Effect::StartChild(StartChild { child }), .. }) =
                entry.map(|entry| entry.event)
            else {
                return Err(HostError::LostRequest { name });
            };
            let drive = self.drive_child(run, ChildRequest { key: start_key, run_child: child, resumed: true });
            self.child_runs.beside.push(drive);
        }
        Ok(())
    }

    /// Starts or continues a child run, and does not wait for it.
    pub(super) async fn start_child(&mut self, replayer: &Replayer, request: ChildRequest) -> Result<(), HostError> {
        let name = request.run_child.name.clone();
        if self.child_runs.queue.under_way().contains_key(&name) {
            return Err(HostError::ChildUnderWay { name });
        }
        let (child_id, mut drafts) = self.name_child(&request)?;
        self.child_runs.told_children.remove(&name);
        let effect_key = request.key.clone();
        let reply = Reply::StartChild(StartedChild { name, run: child_id.clone() });
        drafts.push(finished_draft(&effect_key, replayer.current_segment(), reply));
        // From here on a resumed run drives the child, so the child begins only when that is recorded.
        let recorded = self.journal.record_reply(drafts, EntryBatch::default()).await?;
        self.apply_to_queue(&recorded.entries);
        self.deliver_at_once(replayer, &effect_key, recorded)?;
        let drive = self.drive_child(child_id, request);
        self.child_runs.beside.push(drive);
        Ok(())
    }

    /// Answers with a child that has come back, or with what the user has sent, or waits for either.
    pub(super) async fn await_child(&mut self, replayer: &Replayer, effect_key: Key) -> Result<(), HostError> {
        self.child_runs.waits.push_back(effect_key);
        self.hand_out_children(replayer).await?;
        if !self.child_runs.waits.is_empty() {
            self.listen_to_user(replayer).await?;
        }
        Ok(())
    }

    /// Records how a child came back, and hands it out if the workflow waits for one. If this run is to stop, nothing is recorded: the
    /// next process drives the child on.
    pub(super) async fn finish_started_child(
        &mut self,
        replayer: &Replayer,
        child_end: ChildEnd,
    ) -> Result<(), HostError> {
        let is_stopping = *self.stop.borrow() > StopLevel::Continue || self.child_runs.is_stopping();
        let name = child_end.name.clone();
        let outcome = self.judge_child(child_end)?;
        if is_stopping && !self.child_runs.is_finishing && !matches!(outcome, ChildOutcome::Ended(_)) {
            return Ok(());
        }
        let Some(draft) = self.child_runs.queue.returned_draft(ReturnedChild { name, outcome }) else {
            return Ok(());
        };
        let entries = self.record_drafts(vec![draft], SyncMode::Now).await?;
        self.apply_to_queue(&entries);
        self.hand_out_children(replayer).await
    }

    /// Answers the effects that wait with the children that have come back, the first with the first.
    async fn hand_out_children(&mut self, replayer: &Replayer) -> Result<(), HostError> {
        while let (Some(effect_key), Some(returned)) =
            (self.child_runs.waits.front().cloned(), self.child_runs.queue.first_returned().cloned())
        {
            let reply = Reply::AwaitChild(ChildNews::Returned(returned));
            let draft = finished_draft(&effect_key, replayer.current_segment(), reply);
            let batch = EntryBatch { sync: SyncMode::WithNext, ..EntryBatch::default() };
            let recorded = self.journal.record_reply(vec![draft], batch).await?;
            self.apply_to_queue(&recorded.entries);
            self.deliver_at_once(replayer, &effect_key, recorded)?;
            self.end_wait();
        }
        Ok(())
    }

    /// Answers the first effect that waits with what the user has sent, if there is something. Returns whether there was.
    pub(super) async fn listen_to_user(&mut self, replayer: &Replayer) -> Result<bool, HostError> {
        let Some(effect_key) = self.child_runs.waits.front().cloned() else { return Ok(false) };
        let begun_at = Instant::now();
        let others_answered = std::mem::take(&mut self.answered_at_once);
        self.answer_requests(replayer, &effect_key, RequestReading::AwaitChild, Vec::new()).await?;
        let pause = LISTEN_INTERVAL.max(begun_at.elapsed() * LISTEN_SHARE);
        self.child_runs.listen_at = Some(Instant::now() + pause);
        let is_answered = self.answered_at_once;
        self.answered_at_once |= others_answered;
        if is_answered {
            self.end_wait();
        }
        Ok(is_answered)
    }

    /// The first effect that waits has its answer.
    fn end_wait(&mut self) {
        self.child_runs.waits.pop_front();
        if self.child_runs.waits.is_empty() {
            self.child_runs.listen_at = None;
        }
    }

    fn apply_to_queue(&mut self, entries: &[JournalEntry]) {
        entries.iter().for_each(|entry| self.child_runs.queue.apply_event(&entry.event));
    }

    /// Notes what the children have used that are at work, if that is more than what the journal says. The entries are recorded together
    /// with the next ones; `moment` makes their ids unique.
    pub(super) fn note_child_usage(&mut self, moment: &str) -> Result<(), HostError> {
        let mut drafts = Vec::new();
        for (name, child) in self.child_runs.queue.under_way() {
            let used = self.usage_so_far(&child.run)?;
            if used != self.known_usage(&child.run) {
                let event = RunEvent::ChildUsage { name: name.clone(), used };
                drafts.push(EntryDraft { id: format!("{moment}:child_usage:{name}"), event });
            }
        }
        self.journal.defer_drafts(drafts)?;
        Ok(())
    }

    fn known_usage(&self, child_id: &RunId) -> UsageTotals {
        let mut standings = self.journal.run_view().children.values();
        standings.find(|standing| standing.run == *child_id).map(|standing| standing.usage).unwrap_or_default()
    }
}
