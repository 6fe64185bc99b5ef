//! The embedded host: one workflow on one thread, effects in parallel beside it, everything recorded before and after.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use tokio::{
    sync::{mpsc::UnboundedReceiver, watch},
    task::{self, JoinError, JoinSet},
};
use tribunal_core::{
    desk::{Ask, Desk, Divergence, History, Turn, finished},
    effect::{Effect, Reply, Request},
    event::{Draft, Entry, Event},
    host::Parked,
    ids::{DecisionId, Key},
    progress::Progress,
    reason::{Ending, Reason},
    review::{Court, review},
};
use tribunal_store::StoreError;

use crate::{
    effects::{Performed, World, answers_in_files, perform, world_fault},
    journal::{Journal, split},
};

/// What a screen may draw.
#[derive(Debug)]
pub enum Seen<'a> {
    /// Recorded by an earlier life of the run.
    Past(&'a Entry),
    Entry(&'a Entry),
    Progress(&'a Progress),
}

/// What the person at the terminal wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    #[default]
    GoOn,
    /// Nothing new starts; what runs may finish.
    Park,
    /// End what runs, too.
    Now,
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
}

pub(crate) struct Host<'a> {
    pub world: Arc<World>,
    pub journal: &'a mut Journal,
    pub progress: UnboundedReceiver<Progress>,
    pub stop: watch::Receiver<Stop>,
    pub sink: &'a mut dyn FnMut(Seen<'_>),
    pub running: JoinSet<Performed>,
    /// Which task performs which key.
    pub keys: HashMap<task::Id, Key>,
    /// Something was answered without waiting: the workflow gets its turn first.
    pub answered_at_once: bool,
}

impl Host<'_> {
    /// Runs the workflow from where the journal left it to its end or to where it parks.
    pub async fn drive(&mut self, entries: Vec<Entry>) -> Result<Ending, HostError> {
        let history = History::of(entries);
        let court: Court = match &history.state {
            Some(state) => serde_json::from_value(state.clone()).map_err(HostError::State)?,
            None => Court::default(),
        };
        let desk = Desk::open(self.world.settings.clone(), history);
        let mut workflow: std::pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(review(&desk, court));
        loop {
            match desk.turn(&mut workflow) {
                Turn::Diverged(divergence) => return Err(divergence.into()),
                Turn::Waiting { drafts, asks } => {
                    self.take_turn(&desk, drafts, asks).await?;
                }
                Turn::Done { drafts, value } => {
                    self.record(drafts).await?;
                    return self.close(&desk, value).await;
                }
            }
        }
    }

    /// Records what the workflow said, starts what it asked for, waits for one thing to happen.
    async fn take_turn(
        &mut self,
        desk: &Desk,
        mut drafts: Vec<Draft>,
        asks: Vec<Ask>,
    ) -> Result<(), HostError> {
        let boundary = drafts.pop_if(|last| matches!(last.event, Event::Boundary { .. }));
        let crossing = boundary.is_some();
        self.record(drafts).await?;
        for ask in asks {
            self.start(desk, ask).await?;
        }
        if let Some(boundary) = boundary {
            while let Some(done) = self.running.join_next_with_id().await {
                self.finish(desk, done, true).await?;
            }
            let entries = self.record(vec![boundary]).await?;
            desk.crossed(entries.last().map_or_else(|| self.journal.now(), |entry| entry.at));
        }
        if crossing || self.answered_at_once {
            self.answered_at_once = false;
            return Ok(());
        }
        self.wait(desk).await
    }

    async fn wait(&mut self, desk: &Desk) -> Result<(), HostError> {
        loop {
            let stop = *self.stop.borrow_and_update();
            if stop > Stop::GoOn {
                desk.park(Ending::plain(Reason::Stopped));
                return Ok(());
            }
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

    /// What concerns the run itself is answered here; the rest goes to a task.
    async fn start(&mut self, desk: &Desk, ask: Ask) -> Result<(), HostError> {
        match &ask.effect {
            Effect::Inbox => self.answer_requests(desk, &ask.key, None).await,
            Effect::Wait { ending } => {
                let ending = ending.clone();
                self.answer_requests(desk, &ask.key, Some((ending, ask.again))).await
            }
            _ => {
                let key = ask.key.clone();
                let task = self.running.spawn(perform(self.world.clone(), ask));
                self.keys.insert(task.id(), key);
                Ok(())
            }
        }
    }

    /// `waiting`: park with this ending if nobody said anything. A wait that was there before is answered by the very
    /// fact that a person resumed the run.
    async fn answer_requests(
        &mut self,
        desk: &Desk,
        key: &Key,
        waiting: Option<(Ending, bool)>,
    ) -> Result<(), HostError> {
        let (taken, mut requests) = split(self.journal.requests()?);
        let files = self.answers_in_files();
        requests.extend(files.iter().map(|(_, request)| request.clone()));
        if let Some((ending, again)) = waiting {
            if again {
                requests.push(Request::Resume);
            }
            if requests.is_empty() {
                desk.park(ending);
                self.answered_at_once = true;
                return Ok(());
            }
        }
        let draft = finished(key, desk.stretch(), Reply::Requests { requests });
        let (entry, reply) = self.journal.record_reply(draft, Vec::new(), taken).await?;
        for (path, _) in files {
            // Taken in and recorded; a file that stays would only be pointed out as answered already.
            let _ = std::fs::remove_file(path);
        }
        (self.sink)(Seen::Entry(&entry));
        desk.deliver(key, entry.at, reply)?;
        self.answered_at_once = true;
        Ok(())
    }

    fn answers_in_files(&self) -> Vec<(PathBuf, Request)> {
        let open: Vec<DecisionId> = self.journal.view().waiting().map(|d| d.id.clone()).collect();
        answers_in_files(&self.world.project, &self.world.run, &self.world.settings, &open)
    }

    async fn record(&mut self, drafts: Vec<Draft>) -> Result<Vec<Entry>, HostError> {
        let entries = self.journal.record(drafts).await?;
        for entry in &entries {
            (self.sink)(Seen::Entry(entry));
        }
        Ok(entries)
    }

    /// Records a reply and, unless the workflow has already unwound, hands it over.
    async fn finish(
        &mut self,
        desk: &Desk,
        done: Result<(task::Id, Performed), JoinError>,
        deliver: bool,
    ) -> Result<(), HostError> {
        let (id, performed) = match done {
            Ok(done) => done,
            // Ended by us on the person's word: it never finished, so there is nothing to record.
            Err(ended) if ended.is_cancelled() => return Ok(()),
            Err(broke) => (broke.id(), world_fault(format!("a bug: {broke}")).into()),
        };
        let Some(key) = self.keys.remove(&id) else { return Ok(()) };
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

    /// Drains what still runs, then writes the last line.
    async fn close(&mut self, desk: &Desk, value: Result<Ending, Parked>) -> Result<Ending, HostError> {
        loop {
            if *self.stop.borrow_and_update() == Stop::Now {
                self.running.shutdown().await;
            }
            tokio::select! {
                done = self.running.join_next_with_id() => match done {
                    Some(done) => self.finish(desk, done, false).await?,
                    None => break,
                },
                Ok(()) = self.stop.changed() => {}
            }
        }
        let (ending, id, finished) = match value {
            Ok(ending) => (ending, "run_finished".to_string(), true),
            Err(Parked { ending }) => (ending, format!("run_parked:{}", self.journal.view().lives), false),
        };
        let summary = self.journal.summary(&ending);
        let event = if finished { Event::RunFinished(summary) } else { Event::RunParked(summary) };
        self.record(vec![Draft { id, event }]).await?;
        Ok(ending)
    }
}
