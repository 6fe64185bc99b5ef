//! The embedded host: it runs one workflow on one thread and its effects in parallel beside it, and records everything.

use std::{collections::HashMap, pin::Pin, sync::Arc};

use tokio::{
    sync::{mpsc::UnboundedReceiver, watch},
    task::{self, JoinError, JoinSet},
};
use tribunal_core::{
    decision::Decision,
    desk::{Ask, Desk, Divergence, History, Turn, finished},
    effect::{Effect, EffectKind, Reply, Request, Requests},
    event::{Draft, Entry, Event},
    host::Parked,
    ids::Key,
    progress::Progress,
    reason::{Ending, Reason},
    review::{Court, review},
    settings::Settings,
};
use tribunal_store::StoreError;

use crate::{
    copies,
    effects::{
        Performed, World, answers_in_files, edits_in_tracker, let_go, perform, remove_page, world_fault,
    },
    journal::{Journal, split},
    stop::Stop,
};

/// What a screen may draw while a run is going on.
#[derive(Debug)]
pub enum Seen<'a> {
    /// An entry that was recorded before this process continued the run.
    Past(&'a Entry),
    Entry(&'a Entry),
    Progress(&'a Progress),
    /// The user wants to stop; this many effects are still running.
    Stopping(usize),
    /// The user wants to stop immediately: this many effects are being ended.
    Ending(usize),
    /// This many processes that an earlier process of the run had left were found and ended.
    Swept(usize),
    /// The host waits until processes that an earlier process of the run left have ended.
    Waiting,
}

#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("this build cannot go on with the run: {0}")]
    Diverged(#[from] Divergence),
    #[error("the state at the last boundary cannot be read: {0}")]
    State(serde_json::Error),
    #[error("the workflow waits for nothing")]
    Stuck,
    #[error("`{key}` broke off, which is a bug: {cause}")]
    Broke { key: Key, cause: String },
}

/// An effect that is running.
#[derive(Debug)]
pub(crate) struct Started {
    key: Key,
    kind: EffectKind,
}

/// The reason why the user's requests are read.
enum Reading {
    Inbox,
    /// The run parks with this ending unless there is a request. A wait that an earlier process had begun (`resumed`) is answered
    /// by the very fact that the user resumed the run.
    Wait {
        ending: Ending,
        again: bool,
    },
}

pub(crate) struct Host<'a> {
    pub world: Arc<World>,
    pub journal: &'a mut Journal,
    pub progress: UnboundedReceiver<Progress>,
    pub stop: watch::Receiver<Stop>,
    pub sink: &'a mut dyn FnMut(Seen<'_>),
    /// Tells running processes to end.
    pub ending: watch::Sender<bool>,
    pub running: JoinSet<Option<Performed>>,
    /// The effect that each task performs.
    pub tasks: HashMap<task::Id, Started>,
    /// How often earlier processes started an effect that they never finished.
    pub lost: HashMap<Key, u32>,
    /// An effect was answered without waiting, so the workflow is polled again first.
    pub answered_at_once: bool,
}

type Workflow<'a> = Pin<Box<dyn Future<Output = Result<Ending, Parked>> + 'a>>;

/// Starts the workflow from a recorded state, or from the beginning.
fn enter<'a>(desk: &'a Desk, state: Option<serde_json::Value>) -> Result<Workflow<'a>, HostError> {
    let court: Court = match state {
        Some(state) => serde_json::from_value(state).map_err(HostError::State)?,
        None => Court::default(),
    };
    Ok(Box::pin(review(desk, court)))
}

/// Counts for every effect that was started since the last boundary and never finished how many processes have started it.
fn lost(entries: &[Entry]) -> HashMap<Key, u32> {
    let mut begun: HashMap<Key, u32> = HashMap::new();
    for entry in entries {
        match &entry.event {
            // Effects before a boundary are settled: no later replay asks for them again.
            Event::Boundary { .. } => begun.clear(),
            Event::EffectStarted { key, .. } => {
                begun.insert(key.clone(), 1);
            }
            Event::EffectFinished { key, .. } => {
                begun.remove(key);
            }
            Event::RunResumed { .. } => begun.values_mut().for_each(|times| *times += 1),
            _ => {}
        }
    }
    begun
}

/// Checks whether the run could continue with other settings: replays what was recorded, and records nothing.
pub(crate) fn check_settings(settings: &Settings, entries: &[Entry]) -> Result<(), HostError> {
    // The replay records nothing: it only compares what the workflow asks for with what the journal has.
    let history = History::of(entries.iter().cloned());
    let state = history.state.clone();
    let desk = Desk::open(settings.clone(), history);
    match desk.turn(&mut enter(&desk, state)?) {
        Turn::Diverged(divergence) => Err(divergence.into()),
        Turn::Waiting { .. } | Turn::Done { .. } => Ok(()),
    }
}

impl Host<'_> {
    /// Runs the workflow from where the journal left it until it ends or parks.
    pub async fn drive(&mut self, entries: Vec<Entry>) -> Result<Ending, HostError> {
        self.lost = lost(&entries);
        let history = History::of(entries);
        let state = history.state.clone();
        let desk = Desk::open(self.world.settings.clone(), history);
        let mut workflow = enter(&desk, state)?;
        loop {
            // The replayer delivers recorded replies first, so a resumed run catches up before anything new starts.
            match desk.turn(&mut workflow) {
                Turn::Diverged(divergence) => return Err(divergence.into()),
                Turn::Waiting { drafts, asks } => {
                    // After a boundary the run continues from the recorded state, exactly as a resumed run would.
                    if let Some(recorded) = self.take_turn(&desk, drafts, asks).await? {
                        workflow = enter(&desk, Some(recorded))?;
                    }
                }
                Turn::Done { drafts, value } => {
                    self.record(drafts).await?;
                    return self.close(&desk, value).await;
                }
            }
        }
    }

    /// Records what the workflow noted, starts the effects it asked for, and waits for one event. Returns the state of a boundary
    /// if one was crossed.
    async fn take_turn(
        &mut self,
        desk: &Desk,
        mut drafts: Vec<Draft>,
        asks: Vec<Ask>,
    ) -> Result<Option<serde_json::Value>, HostError> {
        if *self.stop.borrow_and_update() > Stop::GoOn {
            // The next process asks for everything that is not recorded here again.
            self.park(desk);
            return Ok(None);
        }
        // A boundary is recorded last: all effects before it have to be finished first.
        let boundary = drafts.pop_if(|last| matches!(last.event, Event::Boundary { .. }));
        self.record(drafts).await?;
        for ask in asks {
            self.start(desk, ask).await?;
        }
        if let Some(boundary) = boundary {
            return self.cross(desk, boundary).await.map(Some);
        }
        // An effect that was answered at once lets the workflow advance, so there is nothing to wait for yet.
        if std::mem::take(&mut self.answered_at_once) {
            return Ok(None);
        }
        self.wait(desk).await.map(|()| None)
    }

    /// Waits for running effects, records the boundary and removes its workspaces. Returns the state as recorded.
    async fn cross(&mut self, desk: &Desk, boundary: Draft) -> Result<serde_json::Value, HostError> {
        while !self.running.is_empty() {
            self.end_if_told();
            tokio::select! {
                // Replies that arrive before the boundary still belong to the stretch it ends.
                Some(done) = self.running.join_next_with_id() => self.finish(desk, done, true).await?,
                Some(progress) = self.progress.recv() => (self.sink)(Seen::Progress(&progress)),
                Ok(()) = self.stop.changed() => {}
            }
        }
        // The recorded state counts, not the one in memory: masking may have changed it.
        let entries = self.record(vec![boundary]).await?;
        let Some(Entry { at, event: Event::Boundary { state, .. }, .. }) = entries.into_iter().next() else {
            return Err(HostError::Stuck);
        };
        desk.crossed(at);
        let work = self.world.project.work(&self.world.run);
        // No effect of a later stretch refers to these workspaces.
        let _ = task::spawn_blocking(move || copies::clear(&work)).await;
        Ok(state)
    }

    async fn wait(&mut self, desk: &Desk) -> Result<(), HostError> {
        loop {
            let stop = *self.stop.borrow_and_update();
            if stop > Stop::GoOn {
                self.park(desk);
                return Ok(());
            }
            // Without a running effect nothing can ever wake the workflow again.
            if self.running.is_empty() {
                return Err(HostError::Stuck);
            }
            tokio::select! {
                Some(done) = self.running.join_next_with_id() => {
                    return self.finish(desk, done, true).await;
                }
                Some(progress) = self.progress.recv() => (self.sink)(Seen::Progress(&progress)),
                Ok(()) = self.stop.changed() => {}
            }
        }
    }

    /// Tells running processes to end if the user asked for that. Effects that have ended are still recorded: they were paid for.
    fn end_if_told(&mut self) {
        if *self.stop.borrow_and_update() == Stop::Now && !self.ending.send_replace(true) {
            (self.sink)(Seen::Ending(self.running.len()));
        }
    }

    /// Parks the workflow: nothing new starts from here on.
    fn park(&mut self, desk: &Desk) {
        desk.park(Ending::plain(Reason::Stopped));
        // Tasks that still wait for an agent permit are not running.
        let running = self.running.len().saturating_sub(self.world.lane.waiting());
        (self.sink)(Seen::Stopping(running));
    }

    /// Starts an effect. Effects that concern the run itself are answered here; all others go to a task.
    async fn start(&mut self, desk: &Desk, ask: Ask) -> Result<(), HostError> {
        match &ask.effect {
            Effect::Inbox(_) => self.answer_requests(desk, &ask.key, Reading::Inbox).await,
            Effect::Wait(wait) => {
                let reading = Reading::Wait { ending: wait.ending.clone(), again: ask.again };
                self.answer_requests(desk, &ask.key, reading).await
            }
            _ => {
                let (key, kind) = (ask.key.clone(), ask.effect.kind());
                // The count applies only to an effect that an earlier process had asked for.
                let lost = self.lost.remove(&key).filter(|_| ask.again).unwrap_or(0);
                let task = self.running.spawn(perform(self.world.clone(), ask, desk.stretch(), lost));
                self.tasks.insert(task.id(), Started { key, kind });
                Ok(())
            }
        }
    }

    async fn answer_requests(&mut self, desk: &Desk, key: &Key, reading: Reading) -> Result<(), HostError> {
        let (taken, mut requests) = split(self.journal.requests()?);
        let open: Vec<Decision> = self.journal.view().waiting().cloned().collect();
        // A session edits the same tree, so an answer in a file there could be the agent's own statement about its own work.
        if !self.world.settings.tasks.writing.in_session {
            requests.extend(answers_in_files(&self.world, &open));
        }
        requests.extend(edits_in_tracker(&self.world));
        let reply = match reading {
            Reading::Inbox => Reply::Inbox(Requests { requests }),
            Reading::Wait { ending, again } => {
                // A wait that is being resumed never parks again at once: resuming the run is the user's answer to it.
                if again {
                    requests.push(Request::Resume);
                }
                if requests.is_empty() {
                    desk.park(ending);
                    self.answered_at_once = true;
                    return Ok(());
                }
                Reply::Wait(Requests { requests })
            }
        };
        let draft = finished(key, desk.stretch(), reply);
        // The reply and the requests it contains are recorded together, so no request is lost or answered twice.
        let (entry, reply) = self.journal.record_reply(draft, Vec::new(), taken).await?;
        if let Reply::Inbox(said) | Reply::Wait(said) = &reply {
            for request in &said.requests {
                if let Request::Answer { decision, answer } = request {
                    remove_page(&self.world, decision);
                    // A patch that was not approved no longer has to be kept.
                    let asked = self.journal.view().decisions.iter().find(|asked| asked.id == *decision);
                    asked.into_iter().for_each(|asked| let_go(&self.world, asked, answer));
                }
            }
        }
        (self.sink)(Seen::Entry(&entry));
        desk.deliver(key, entry.at, reply)?;
        self.answered_at_once = true;
        Ok(())
    }

    async fn record(&mut self, drafts: Vec<Draft>) -> Result<Vec<Entry>, HostError> {
        let entries = self.journal.record(drafts).await?;
        for entry in &entries {
            (self.sink)(Seen::Entry(entry));
        }
        Ok(entries)
    }

    /// Records a reply and delivers it to the workflow, unless the workflow has already returned.
    async fn finish(
        &mut self,
        desk: &Desk,
        done: Result<(task::Id, Option<Performed>), JoinError>,
        deliver: bool,
    ) -> Result<(), HostError> {
        let id = done.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let Some(Started { key, kind }) = self.tasks.remove(&id) else { return Ok(()) };
        let performed = match done {
            Ok((_, Some(performed))) => performed,
            // The user ended it before it was done, so there is nothing to record.
            Ok((_, None)) => return Ok(()),
            // A panic becomes a failed reply where the effect has one, so the workflow can go on with its other tasks.
            Err(broke) => match Reply::failed(kind, world_fault(format!("a bug: {broke}"))) {
                Some(reply) => reply.into(),
                None => return Err(HostError::Broke { key, cause: broke.to_string() }),
            },
        };
        // Progress that is still queued belongs before the entry that ends its effect.
        while let Ok(progress) = self.progress.try_recv() {
            (self.sink)(Seen::Progress(&progress));
        }
        let draft = finished(&key, desk.stretch(), performed.reply);
        let (entry, reply) = self.journal.record_reply(draft, performed.blobs, Vec::new()).await?;
        (self.sink)(Seen::Entry(&entry));
        if deliver {
            desk.deliver(&key, entry.at, reply)?;
        }
        Ok(())
    }

    /// Waits for what still runs, then records the last entry of the run.
    async fn close(&mut self, desk: &Desk, value: Result<Ending, Parked>) -> Result<Ending, HostError> {
        loop {
            self.end_if_told();
            tokio::select! {
                done = self.running.join_next_with_id() => match done {
                    Some(done) => self.finish(desk, done, false).await?,
                    None => break,
                },
                Some(progress) = self.progress.recv() => (self.sink)(Seen::Progress(&progress)),
                Ok(()) = self.stop.changed() => {}
            }
        }
        let (ending, id, finished) = match value {
            Ok(ending) => (ending, "run_finished".to_string(), true),
            Err(Parked { ending }) => (ending, format!("run_parked:{}", self.journal.view().lives), false),
        };
        // A finished run asks no questions any more; a parked one still waits for their answers.
        if finished {
            let asked: Vec<_> =
                self.journal.view().decisions.iter().map(|decision| decision.id.clone()).collect();
            for decision in asked {
                remove_page(&self.world, &decision);
            }
        }
        let summary = self.journal.summary(&ending);
        let event = if finished { Event::RunFinished(summary) } else { Event::RunParked(summary) };
        self.record(vec![Draft { id, event }]).await?;
        Ok(ending)
    }
}
