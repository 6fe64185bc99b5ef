//! The embedded host: it runs one workflow on one thread and its effects in parallel beside it, and records everything.

mod child_runs;
mod children;
mod requests;

mod user_words;

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use tokio::{
    sync::{mpsc::UnboundedReceiver, watch},
    task::{self, JoinError, JoinSet},
};
use tribunal_engine::{
    host::ParkedRun,
    ids::Key,
    progress::AgentProgress,
    reason::{RunEnding, RunReason},
    replayer::{ReplayDivergence, finished_draft},
};
use tribunal_store::{EntryBatch, NewEntry, StoreError, SyncMode};
use tribunal_workflows::{
    runs::{
        effect::{Effect, EffectKind, Reply, RoutedEffect},
        plan::RunPlan,
        types::{EntryDraft, JournalEntry, PendingEffect, ReplayHistory, Replayer, RunEvent, WorkflowPoll},
    },
    workflows::start_workflow,
};

use crate::{
    blocking_work::run_blocking,
    effects::{
        EffectContext, PerformedEffect, environment_fault, find_retained_workspaces, perform_effect, put_back_files,
        remove_decision_page,
    },
    engine::{
        journal::{RecordedReply, RunJournal},
        updates::{RunUpdate, UpdateSink},
    },
    shared::stop_level::StopLevel,
    workspaces,
};

#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("this build cannot resume the run: {0}")]
    Diverged(#[from] ReplayDivergence),
    #[error("could not read the last recorded state of the run: {0}")]
    UnreadableState(serde_json::Error),
    #[error("the workflow is stuck: it has nothing to wait for")]
    WaitsForNothing,
    #[error("the workflow started child run {name} again while it is at work. This is a bug")]
    ChildUnderWay { name: String },
    #[error("the journal has lost the request with which child run {name} was started")]
    LostRequest { name: String },
    #[error("`{key}` failed unexpectedly: {cause}")]
    EffectPanicked { key: Key, cause: String },
}

/// How long a run that failed waits for its agents to end. They have five seconds after SIGTERM.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// An effect that is running.
#[derive(Debug)]
pub(crate) struct RunningEffect {
    key: Key,
    kind: EffectKind,
}

use requests::RequestReading;

pub(crate) use child_runs::ChildRuns;
pub(crate) use children::{ChildDriver, ChildPlan};

/// What the host was woken up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostActivity {
    EffectFinished,
    /// Progress of an agent, or a request to stop.
    Other,
}

pub(crate) struct WorkflowHost<'h, 'a> {
    pub context: Arc<EffectContext>,
    pub child_driver: &'a dyn ChildDriver,
    pub journal: &'h mut RunJournal,
    pub progress: UnboundedReceiver<AgentProgress>,
    pub stop: watch::Receiver<StopLevel>,
    pub update_sink: &'a dyn UpdateSink,
    /// Tells running processes to end.
    pub end_processes: watch::Sender<bool>,
    pub running_tasks: JoinSet<Option<PerformedEffect>>,
    pub child_runs: ChildRuns<'a>,
    /// The effect that each task performs.
    pub task_effects: HashMap<task::Id, RunningEffect>,
    /// How often earlier processes started an effect that they never finished.
    pub unfinished_attempts_by_key: HashMap<Key, u32>,
    /// An effect was answered without waiting, so the workflow is polled again first.
    pub answered_at_once: bool,
}

/// Whether the host answers an effect from the journal itself.
fn is_answered_by_host(effect: &Effect) -> bool {
    matches!(effect, Effect::Inbox(_) | Effect::Wait(_) | Effect::ReadRecords(_) | Effect::WriteRecords(_))
}

/// Counts for every effect that was started since the last boundary and never finished how many processes have started it.
fn count_unfinished_effects(entries: &[JournalEntry]) -> HashMap<Key, u32> {
    let mut started_counts: HashMap<Key, u32> = HashMap::new();
    for journal_entry in entries {
        match &journal_entry.event {
            // Effects before a boundary are settled: no later replay asks for them again.
            RunEvent::Boundary { .. } => started_counts.clear(),
            RunEvent::EffectStarted { key: effect_key, .. } => {
                started_counts.insert(effect_key.clone(), 1);
            }
            RunEvent::EffectFinished { key: effect_key, .. } => {
                started_counts.remove(effect_key);
            }
            RunEvent::RunResumed { .. } => started_counts.values_mut().for_each(|start_count| *start_count += 1),
            _ => {}
        }
    }
    started_counts
}

/// Checks whether the run could continue with other settings: replays what was recorded, and records nothing.
pub(crate) fn check_plan(plan: &RunPlan, entries: &[JournalEntry]) -> Result<(), HostError> {
    let history = ReplayHistory::from_entries(entries.iter().cloned());
    let recorded_state = history.state.clone();
    let replayer = Replayer::new(plan.settings.clone(), history);
    let mut workflow = start_workflow(&replayer, &plan.order, recorded_state).map_err(HostError::UnreadableState)?;
    match replayer.poll_workflow(&mut workflow) {
        WorkflowPoll::Diverged(divergence) => Err(divergence.into()),
        WorkflowPoll::Waiting { .. } | WorkflowPoll::Finished { .. } => Ok(()),
    }
}

impl WorkflowHost<'_, '_> {
    /// Runs the workflow from where the journal left it until it ends or parks. If it fails, its agents have ended when
    /// this returns; those of child runs are left to their keepers.
    pub async fn drive_workflow(&mut self, entries: Vec<JournalEntry>) -> Result<RunEnding, HostError> {
        let ending = self.poll_workflow(entries).await;
        if ending.is_err() {
            self.end_effects().await;
        }
        ending
    }

    async fn poll_workflow(&mut self, entries: Vec<JournalEntry>) -> Result<RunEnding, HostError> {
        self.unfinished_attempts_by_key = count_unfinished_effects(&entries);
        self.continue_children(&entries)?;
        let history = ReplayHistory::from_entries(entries);
        let recorded_state = history.state.clone();
        let context = self.context.clone();
        let replayer = Replayer::new(context.settings.clone(), history);
        let start_from = |recorded_state| {
            start_workflow(&replayer, &context.order, recorded_state).map_err(HostError::UnreadableState)
        };
        let mut workflow = start_from(recorded_state)?;
        loop {
            // The replayer delivers recorded replies first, so a resumed run catches up before anything new starts.
            match replayer.poll_workflow(&mut workflow) {
                WorkflowPoll::Diverged(divergence) => return Err(divergence.into()),
                WorkflowPoll::Waiting { drafts, effects: pending_effects } => {
                    // After a boundary the run continues from the recorded state, exactly as a resumed run would.
                    if let Some(boundary_state) = self.advance_workflow(&replayer, drafts, pending_effects).await? {
                        workflow = start_from(Some(boundary_state))?;
                    }
                }
                WorkflowPoll::Finished { drafts, value } => {
                    self.record_drafts(drafts, SyncMode::WithNext).await?;
                    return self.close_run(&replayer, value).await;
                }
            }
        }
    }

    /// Records what the workflow noted, starts the effects it asked for, and waits for one event. Returns the state of a boundary
    /// if one was crossed.
    async fn advance_workflow(
        &mut self,
        replayer: &Replayer,
        mut drafts: Vec<EntryDraft>,
        pending_effects: Vec<PendingEffect>,
    ) -> Result<Option<serde_json::Value>, HostError> {
        if *self.stop.borrow_and_update() > StopLevel::Continue {
            // The next process asks for everything that is not recorded here again.
            self.park_workflow(replayer);
            return Ok(None);
        }
        // A boundary is recorded last: all effects before it have to be finished first.
        let mut boundary = drafts.pop_if(|last_draft| matches!(last_draft.event, RunEvent::Boundary { .. }));
        if let Some(boundary) = boundary.take_if(|_| pending_effects.is_empty() && !self.has_running_effects()) {
            drafts.push(boundary);
            return self.cross_boundary(replayer, drafts).await.map(Some);
        }
        if let [PendingEffect { effect: Effect::Inbox(_), effect_key, .. }] = &pending_effects[..] {
            // Reading changes nothing, so its start is recorded together with its reply.
            self.answer_requests(replayer, effect_key, RequestReading::PollInbox, drafts).await?;
        } else {
            // Everything that led to an action outside the journal is safe before the action. The rest of what a workflow notes
            // follows from earlier entries, so after a power failure it is noted again.
            let acts_outside = pending_effects.iter().any(|pending| !is_answered_by_host(&pending.effect));
            self.record_drafts(drafts, if acts_outside { SyncMode::Now } else { SyncMode::WithNext }).await?;
            for pending_effect in pending_effects {
                self.start_effect(replayer, pending_effect).await?;
            }
        }
        if let Some(boundary) = boundary {
            return self.cross_boundary(replayer, vec![boundary]).await.map(Some);
        }
        // An effect that was answered at once lets the workflow advance, so there is nothing to wait for yet.
        if std::mem::take(&mut self.answered_at_once) {
            return Ok(None);
        }
        self.wait_for_event(replayer).await.map(|()| None)
    }

    /// Waits for running effects, records entries that end with the boundary, and removes its workspaces. Returns the state as
    /// recorded.
    async fn cross_boundary(
        &mut self,
        replayer: &Replayer,
        drafts: Vec<EntryDraft>,
    ) -> Result<serde_json::Value, HostError> {
        // Replies that arrive before the boundary still belong to the segment it ends.
        while self.has_running_effects() {
            self.end_if_requested();
            self.wait_for_activity(replayer, true).await?;
        }
        self.note_child_usage(&replayer.current_segment().to_string())?;
        // The recorded state counts, not the one in memory: masking may have changed it.
        // A crash that loses it loses nothing else: all replies before it are safe, and lead to the same state again.
        let last_entry = self.journal.defer_drafts(drafts)?.pop();
        let Some(NewEntry { timestamp: boundary_time, draft: EntryDraft { event, .. }, .. }) = last_entry else {
            return Err(HostError::WaitsForNothing);
        };
        let RunEvent::Boundary { state: boundary_state, .. } = event else { return Err(HostError::WaitsForNothing) };
        replayer.begin_next_segment(boundary_time);
        let work_dir = self.context.project.work_dir(&self.context.run_id);
        // No effect of a later segment refers to these workspaces, except to those that are retained.
        if work_dir.exists() {
            // The view must know every decision that retains one.
            self.record_deferred().await?;
            let (context, decisions) = (self.context.clone(), self.journal.run_view().decisions.clone());
            let clear_workspaces = move || {
                workspaces::clear_workspaces(&work_dir, &find_retained_workspaces(&context, &decisions));
            };
            let _ = run_blocking(clear_workspaces).await;
        }
        Ok(boundary_state)
    }

    /// Records and shows what was deferred.
    async fn record_deferred(&mut self) -> Result<(), HostError> {
        let entries = self.journal.record_deferred().await?;
        self.send_entries(&entries);
        Ok(())
    }

    async fn wait_for_event(&mut self, replayer: &Replayer) -> Result<(), HostError> {
        // This may take long, and nothing should be missing on the screen meanwhile.
        self.record_deferred().await?;
        loop {
            let stop = *self.stop.borrow_and_update();
            if stop > StopLevel::Continue {
                self.park_workflow(replayer);
                return Ok(());
            }
            // Without a running effect, or a child that it waits for, nothing can ever wake the workflow again.
            if !self.has_running_effects() && !self.child_runs.is_awaited() {
                return Err(HostError::WaitsForNothing);
            }
            if self.wait_for_activity(replayer, true).await? == HostActivity::EffectFinished {
                return Ok(());
            }
        }
    }

    fn has_running_effects(&self) -> bool {
        !self.running_tasks.is_empty() || !self.child_runs.waited_for.is_empty()
    }

    /// Waits until something happens. An effect that has finished is recorded, and delivered if the workflow still waits for it.
    async fn wait_for_activity(&mut self, replayer: &Replayer, deliver: bool) -> Result<HostActivity, HostError> {
        tokio::select! {
            Some(done) = self.running_tasks.join_next_with_id() => {
                self.finish_effect(replayer, done, deliver).await?;
                Ok(HostActivity::EffectFinished)
            }
            Some(child_end) = self.child_runs.waited_for.next() => {
                self.finish_child(replayer, child_end, deliver).await?;
                Ok(HostActivity::EffectFinished)
            }
            Some(child_end) = self.child_runs.beside.next() => {
                self.finish_started_child(replayer, child_end).await?;
                Ok(HostActivity::EffectFinished)
            }
            () = child_runs::wait_to_listen(self.child_runs.listen_at) => {
                let is_answered = self.listen_to_user(replayer).await?;
                Ok(if is_answered { HostActivity::EffectFinished } else { HostActivity::Other })
            }
            Some(progress) = self.progress.recv() => {
                self.send_update(RunUpdate::Progress(&progress));
                Ok(HostActivity::Other)
            }
            Ok(()) = self.stop.changed() => Ok(HostActivity::Other),
            () = user_words::wait_for_inspection(&self.context) => {
                self.inspect_user_words().await?;
                Ok(HostActivity::Other)
            }
        }
    }

    fn send_update(&self, update: RunUpdate<'_>) {
        self.update_sink.send_update(&self.context.run_id, update);
    }

    /// Tells running processes to end if the user asked for that. Effects that have ended are still recorded: they were paid for.
    fn end_if_requested(&mut self) {
        if *self.stop.borrow_and_update() == StopLevel::EndNow && !self.end_processes.send_replace(true) {
            self.send_update(RunUpdate::EndingNow(self.running_tasks.len()));
        }
    }

    /// Ends what still runs, for a run that cannot continue, and waits until its agents are gone: a user who frees the
    /// disk and resumes the run at once must not meet them.
    async fn end_effects(&mut self) {
        self.end_processes.send_replace(true);
        let all_ended = async { while self.running_tasks.join_next().await.is_some() {} };
        // An effect that does not end is left to the keepers.
        let _ = tokio::time::timeout(END_PATIENCE, all_ended).await;
    }

    /// Parks the workflow: nothing new starts from here on.
    fn park_workflow(&mut self, replayer: &Replayer) {
        replayer.park_run(RunEnding::from_reason(RunReason::Stopped));
        // Tasks that still wait for an agent permit are not running.
        let running_count = self.running_tasks.len().saturating_sub(self.context.permit_lane.count_waiting());
        self.send_update(RunUpdate::StoppingAfter(running_count));
    }

    /// Starts an effect. Effects that concern the run itself are answered here; all others go to a task.
    async fn start_effect(&mut self, replayer: &Replayer, pending_effect: PendingEffect) -> Result<(), HostError> {
        let PendingEffect { effect_key, effect, resumed } = pending_effect;
        let effect_kind = effect.kind();
        let world_effect = match effect.into_routed() {
            RoutedEffect::Host(host_effect) => {
                return self.answer_effect(replayer, effect_key, host_effect, resumed).await;
            }
            RoutedEffect::World(world_effect) => world_effect,
        };
        // The count applies only to an effect that an earlier process had asked for.
        let unfinished_attempts = self.unfinished_attempts_by_key.remove(&effect_key).filter(|_| resumed).unwrap_or(0);
        let task_handle = self.running_tasks.spawn(perform_effect(
            self.context.clone(),
            effect_key.clone(),
            world_effect,
            replayer.current_segment(),
            unfinished_attempts,
        ));
        self.task_effects.insert(task_handle.id(), RunningEffect { key: effect_key, kind: effect_kind });
        Ok(())
    }

    /// Delivers a reply that the host itself gave and recorded.
    fn deliver_at_once(
        &mut self,
        replayer: &Replayer,
        effect_key: &Key,
        recorded: RecordedReply,
    ) -> Result<(), HostError> {
        self.send_entries(&recorded.entries);
        replayer.deliver_reply(effect_key, recorded.at, recorded.reply)?;
        self.answered_at_once = true;
        Ok(())
    }

    pub(super) async fn record_drafts(
        &mut self,
        drafts: Vec<EntryDraft>,
        sync: SyncMode,
    ) -> Result<Vec<JournalEntry>, HostError> {
        let entries = self.journal.record_drafts(drafts, sync).await?;
        self.send_entries(&entries);
        Ok(entries)
    }

    fn send_entries(&self, entries: &[JournalEntry]) {
        entries.iter().for_each(|entry| self.send_update(RunUpdate::NewEntry(entry)));
    }

    /// Records a reply and delivers it to the workflow, unless the workflow has already returned.
    async fn finish_effect(
        &mut self,
        replayer: &Replayer,
        finished_task: Result<(task::Id, Option<PerformedEffect>), JoinError>,
        deliver: bool,
    ) -> Result<(), HostError> {
        let task_id = finished_task.as_ref().map_or_else(JoinError::id, |(task_id, _)| *task_id);
        let Some(RunningEffect { key: effect_key, kind: effect_kind }) = self.task_effects.remove(&task_id) else {
            return Ok(());
        };
        let performed = match finished_task {
            Ok((_, Some(performed))) => performed,
            // The user ended it before it was done, so there is nothing to record.
            Ok((_, None)) => return Ok(()),
            // A panic becomes a failed reply where the effect has one, so the workflow can go on with its other tasks.
            Err(join_error) => {
                match Reply::from_fault(effect_kind, environment_fault(format!("internal error: {join_error}"))) {
                    Some(reply) => reply.into(),
                    None => {
                        return Err(HostError::EffectPanicked { key: effect_key, cause: join_error.to_string() });
                    }
                }
            }
        };
        self.record_performed(replayer, &effect_key, performed, deliver).await
    }

    /// Records the reply of an effect, and delivers it if the workflow still waits for it.
    pub(super) async fn record_performed(
        &mut self,
        replayer: &Replayer,
        effect_key: &Key,
        performed: PerformedEffect,
        deliver: bool,
    ) -> Result<(), HostError> {
        // Progress that is still queued belongs before the entry that ends its effect.
        while let Ok(progress) = self.progress.try_recv() {
            self.send_update(RunUpdate::Progress(&progress));
        }
        let draft = finished_draft(effect_key, replayer.current_segment(), performed.reply);
        // If nothing else runs, the workflow goes on at once, and what it does next is synced together with this reply.
        let sync = if self.has_running_effects() { SyncMode::Now } else { SyncMode::WithNext };
        let batch = EntryBatch { sync, blobs: performed.blobs, ..EntryBatch::default() };
        let recorded = self.journal.record_reply(vec![draft], batch).await?;
        self.send_entries(&recorded.entries);
        if deliver {
            replayer.deliver_reply(effect_key, recorded.at, recorded.reply)?;
        }
        Ok(())
    }

    /// Waits for what still runs, then records the last entry of the run.
    async fn close_run(
        &mut self,
        replayer: &Replayer,
        workflow_result: Result<RunEnding, ParkedRun>,
    ) -> Result<RunEnding, HostError> {
        self.child_runs.stop_all(workflow_result.is_ok());
        while self.has_running_effects() || !self.child_runs.beside.is_empty() {
            self.end_if_requested();
            self.wait_for_activity(replayer, false).await?;
        }
        self.note_child_usage(&format!("life-{}", self.journal.run_view().incidents.life_count))?;
        self.record_deferred().await?;
        let (ending, entry_id, is_finished) = match workflow_result {
            Ok(ending) => (ending, "run_finished".to_string(), true),
            Err(ParkedRun { ending }) => {
                (ending, format!("run_parked:{}", self.journal.run_view().incidents.life_count), false)
            }
        };
        // A finished run asks no questions any more; a parked one still waits for their answers.
        if is_finished {
            let decision_ids: Vec<_> =
                self.journal.run_view().decisions.iter().map(|decision| decision.id.clone()).collect();
            for decision_id in decision_ids {
                remove_decision_page(&self.context, &decision_id);
            }
        }
        // No agent of this run is at work any more.
        put_back_files(&self.context);
        self.inspect_user_words().await?;
        let Some(summary) = self.journal.run_summary(&ending) else { return Err(HostError::WaitsForNothing) };
        let event = if is_finished { RunEvent::RunFinished(summary) } else { RunEvent::RunParked(summary) };
        self.record_drafts(vec![EntryDraft { id: entry_id, event }], SyncMode::Now).await?;
        Ok(ending)
    }
}
