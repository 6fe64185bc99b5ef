//! A host in memory: it performs effects at once, journals like a real host, and dies where it is told to.

use std::collections::BTreeMap;

use tribunal_engine::{
    answer::{ChoiceKey, DecisionAnswer},
    child_outcome::{ChildOutcome, ChildReport, ReturnedChild},
    child_queue::ChildQueue,
    children::{ChildNews, RunChild, StartedChild},
    effect::{Elapsed, PostOutcome, RecordList, RecordsWritten, Requests, RestoreOutcome},
    event::{EntryDraft, JournalEntry, RunEvent, RunSummary},
    host::ParkedRun,
    ids::{Hash, Key, RunId},
    limits::{Cost, UsageTotals},
    reason::RunEnding,
    replayer::{PendingEffect, ReplayHistory, Replayer, WorkflowPoll, finished_draft},
    timestamp::Timestamp,
};

use crate::{
    toy::{Toy, ToyEffect, ToyOrder, ToyReply, ToyRequest, ToySettings, ToySummary},
    toy_workflow::start_toy,
};

/// A run with its journal. The children are runs like it.
#[derive(Debug, Default)]
pub struct MemoryRun {
    pub order: ToyOrder,
    pub journal: Vec<JournalEntry<Toy>>,
    pub children: BTreeMap<String, MemoryRun>,
    /// The keys of the effects that were performed, in order, with those whose reply was lost.
    pub performed: Vec<String>,
    /// A number that decides which of several effects is performed first.
    pub seed: u64,
    /// The children that it does not wait for, as its journal tells.
    queue: ChildQueue<Toy>,
    clock_ms: u64,
}

/// Why a process of a run came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifeEnd {
    Finished(RunEnding),
    Parked(RunEnding),
    Killed,
}

/// How many entries the tree of runs may still write.
#[derive(Debug)]
pub struct EntryBudget(pub Option<usize>);

/// The process is gone.
#[derive(Debug)]
struct Killed;

/// What is under way in a process.
#[derive(Debug, Default)]
struct UnderWay {
    effects: Vec<PendingEffect<Toy>>,
    /// The children that the run does not wait for, each with whether an earlier process had asked for it.
    children: Vec<(RunChild<Toy>, bool)>,
    /// The keys of those who wait for a child.
    waits: Vec<Key>,
    /// The workflow waits until it is recorded.
    boundary: Option<EntryDraft<Toy>>,
}

impl UnderWay {
    fn add_effects(&mut self, effects: Vec<PendingEffect<Toy>>) {
        for pending in effects {
            match pending.effect {
                ToyEffect::AwaitChild(_) => self.waits.push(pending.effect_key),
                _ => self.effects.push(pending),
            }
        }
    }
}

/// What happens next in a process.
enum Turn {
    Perform(usize),
    Drive(usize),
    Await(Key),
    Cross,
}

impl EntryBudget {
    fn take_one(&mut self) -> Result<(), Killed> {
        match &mut self.0 {
            Some(0) => Err(Killed),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl MemoryRun {
    pub fn new(order: ToyOrder, seed: u64) -> MemoryRun {
        MemoryRun { order, seed, ..MemoryRun::default() }
    }

    /// Returns the events of the run and of its children without their times.
    pub fn list_facts(&self) -> Vec<String> {
        let is_fact = |entry: &&JournalEntry<Toy>| !matches!(entry.event, RunEvent::RunResumed { .. });
        let to_fact =
            |entry: &JournalEntry<Toy>| format!("{} {}", entry.id, serde_json::to_string(&entry.event).unwrap());
        let own_facts = self.journal.iter().filter(is_fact).map(to_fact);
        let child_facts = self.children.values().flat_map(MemoryRun::list_facts);
        own_facts.chain(child_facts).collect()
    }

    /// Counts the replies that were recorded: what the run has cost, however often it lived.
    fn count_answers(&self) -> u64 {
        self.journal.iter().filter(|entry| matches!(entry.event, RunEvent::EffectFinished { .. })).count() as u64
    }

    /// Counts the entries of the whole tree.
    pub fn count_entries(&self) -> usize {
        self.journal.len() + self.children.values().map(MemoryRun::count_entries).sum::<usize>()
    }

    /// Runs until the end, until the run parks, or until the budget of entries is used up.
    pub fn live_once(&mut self, budget: &mut EntryBudget) -> LifeEnd {
        match self.drive(budget) {
            Ok(Ok(ending)) => LifeEnd::Finished(ending),
            Ok(Err(ParkedRun { ending })) => LifeEnd::Parked(ending),
            Err(Killed) => LifeEnd::Killed,
        }
    }

    fn drive(&mut self, budget: &mut EntryBudget) -> Result<Result<RunEnding, ParkedRun>, Killed> {
        if let Some(JournalEntry { event: RunEvent::RunFinished(summary), .. }) = self.journal.last() {
            return Ok(Ok(RunEnding::new(summary.reason, summary.detail.clone())));
        }
        if self.journal.is_empty() {
            let start = RunEvent::RunStarted {
                version: 1,
                build: String::from("toy"),
                settings: ToySettings {},
                order: self.order.clone(),
                parent: None,
                batch: None,
            };
            self.record(budget, EntryDraft { id: String::from("run_started"), event: start })?;
        } else {
            let life = self.journal.iter().filter(|entry| matches!(entry.event, RunEvent::RunResumed { .. })).count();
            let life = life as u32 + 2;
            let event = RunEvent::RunResumed { life };
            self.record(budget, EntryDraft { id: format!("run_resumed:{life}"), event })?;
        }
        let order = self.order.clone();
        let history = ReplayHistory::from_entries(self.journal.iter().cloned());
        let recorded_state = history.state.clone();
        let replayer = Replayer::new(ToySettings {}, history);
        let mut workflow = start_toy(&replayer, &order, recorded_state);
        self.queue = ChildQueue::from_entries(&self.journal);
        let mut under_way = UnderWay { children: self.children_to_continue(), ..UnderWay::default() };
        loop {
            match replayer.poll_workflow(&mut workflow) {
                WorkflowPoll::Diverged(divergence) => panic!("{}: {divergence}", self.order.name),
                WorkflowPoll::Finished { drafts, value } => {
                    self.record_all(budget, drafts)?;
                    self.record_end(budget, &value)?;
                    return Ok(value);
                }
                WorkflowPoll::Waiting { mut drafts, effects } => {
                    let boundary = drafts.pop_if(|draft| matches!(draft.event, RunEvent::Boundary { .. }));
                    under_way.boundary = boundary.or(under_way.boundary);
                    self.record_all(budget, drafts)?;
                    under_way.add_effects(effects);
                    let turn = self.choose_next(&under_way);
                    let turn = turn.unwrap_or_else(|| panic!("{} waits for nothing", self.order.name));
                    if let Some(state) = self.take_turn(budget, &replayer, &mut under_way, turn)? {
                        workflow = start_toy(&replayer, &order, Some(state));
                    }
                }
            }
        }
    }

    /// Returns the state of a boundary, if one was crossed.
    fn take_turn(
        &mut self,
        budget: &mut EntryBudget,
        replayer: &Replayer<Toy>,
        under_way: &mut UnderWay,
        turn: Turn,
    ) -> Result<Option<serde_json::Value>, Killed> {
        match turn {
            Turn::Await(effect_key) => {
                under_way.waits.retain(|wait| *wait != effect_key);
                let returned = self.queue.first_returned().cloned().unwrap();
                let reply = ToyReply::AwaitChild(ChildNews::Returned(returned));
                self.finish(budget, replayer, &effect_key, reply)?;
            }
            Turn::Perform(index) => {
                let effect = under_way.effects.remove(index);
                if let ToyEffect::StartChild(start) = &effect.effect {
                    let (name, run) = (start.child.name.clone(), RunId::new(start.child.name.clone()));
                    let reply = ToyReply::StartChild(StartedChild { name, run });
                    self.finish(budget, replayer, &effect.effect_key, reply)?;
                    under_way.children.push((start.child.clone(), effect.resumed));
                    return Ok(None);
                }
                match self.perform(budget, &effect)? {
                    Some(reply) => self.finish(budget, replayer, &effect.effect_key, reply)?,
                    None => replayer.park_run(waiting_ending(&effect.effect)),
                }
            }
            Turn::Drive(index) => {
                let (child, resumed) = under_way.children.remove(index);
                let outcome = self.run_child(budget, &child, resumed)?;
                let draft = self.queue.returned_draft(ReturnedChild { name: child.name, outcome }).unwrap();
                self.record(budget, draft)?;
            }
            Turn::Cross => {
                let boundary = under_way.boundary.take().unwrap();
                let RunEvent::Boundary { state, .. } = boundary.event.clone() else { unreachable!() };
                let boundary_time = self.record(budget, boundary)?;
                replayer.begin_next_segment(boundary_time);
                return Ok(Some(state));
            }
        }
        Ok(None)
    }

    /// Returns the children that an earlier process had started and that have not come back.
    fn children_to_continue(&self) -> Vec<(RunChild<Toy>, bool)> {
        let request_of = |entry_id: String| {
            let entry = self.journal.iter().find(|entry| entry.id == entry_id).unwrap();
            match &entry.event {
                RunEvent::EffectStarted { effect: ToyEffect::StartChild(start), .. } => (start.child.clone(), true),
                other => panic!("{other:?} starts no child"),
            }
        };
        self.queue.under_way().values().map(|child| request_of(child.start_entry_id())).collect()
    }

    /// Chooses what happens next. It is the same in every life of the run.
    fn choose_next(&self, under_way: &UnderWay) -> Option<Turn> {
        if let (Some(wait), Some(_)) = (under_way.waits.first(), self.queue.first_returned()) {
            return Some(Turn::Await(wait.clone()));
        }
        let rank = |name: &str| Hash::digest_of(format!("{}{name}", self.seed).as_bytes()).to_string();
        let effects = under_way.effects.iter().enumerate();
        let effects = effects.map(|(index, effect)| (rank(effect.effect_key.as_str()), Turn::Perform(index)));
        let children = under_way.children.iter().enumerate();
        let children = children.map(|(index, (child, _))| (rank(&child.name), Turn::Drive(index)));
        // A boundary waits for effects, and for no child.
        let boundary = under_way.boundary.iter().filter(|_| under_way.effects.is_empty());
        let boundary = boundary.map(|draft| (rank(&draft.id), Turn::Cross));
        let turns = effects.chain(children).chain(boundary);
        turns.min_by_key(|(rank, _)| rank.clone()).map(|(_, turn)| turn)
    }

    fn finish(
        &mut self,
        budget: &mut EntryBudget,
        replayer: &Replayer<Toy>,
        effect_key: &Key,
        reply: ToyReply,
    ) -> Result<(), Killed> {
        let at = self.record(budget, finished_draft(effect_key, replayer.current_segment(), reply.clone()))?;
        replayer.deliver_reply(effect_key, at, reply).unwrap();
        Ok(())
    }

    /// Performs an effect; `None` if it waits for the user.
    fn perform(&mut self, budget: &mut EntryBudget, pending: &PendingEffect<Toy>) -> Result<Option<ToyReply>, Killed> {
        self.performed.push(pending.effect_key.to_string());
        Ok(Some(match &pending.effect {
            ToyEffect::Sleep(sleep) => {
                self.clock_ms += sleep.ms;
                ToyReply::Sleep(Elapsed {})
            }
            ToyEffect::AwaitReset(_) => ToyReply::AwaitReset(Elapsed {}),
            ToyEffect::Inbox(_) => ToyReply::Inbox(Requests::default()),
            ToyEffect::Wait(_) => match self.answer_question() {
                Some(request) => ToyReply::Wait(Requests { requests: vec![request] }),
                None => return Ok(None),
            },
            ToyEffect::Restore(_) => ToyReply::Restore(RestoreOutcome::Restored { parked: None }),
            ToyEffect::Post(_) => ToyReply::Post(PostOutcome::Posted),
            ToyEffect::ReadRecords(_) => ToyReply::ReadRecords(RecordList::default()),
            ToyEffect::WriteRecords(_) => ToyReply::WriteRecords(RecordsWritten {}),
            ToyEffect::RunChild(child) => ToyReply::RunChild(self.run_child(budget, child, pending.resumed)?),
            ToyEffect::StartChild(_) | ToyEffect::AwaitChild(_) => unreachable!("it is answered from the queue"),
        }))
    }

    /// The user answers every question, but only once the run has parked.
    fn answer_question(&self) -> Option<ToyRequest> {
        let has_parked = matches!(
            self.journal.iter().rev().find(|entry| !matches!(entry.event, RunEvent::RunResumed { .. })),
            Some(JournalEntry { event: RunEvent::RunParked(_), .. })
        );
        let posted = self.journal.iter().rev().find_map(|entry| match &entry.event {
            RunEvent::DecisionPosted { decision } => Some(decision.id.clone()),
            _ => None,
        })?;
        let answer = DecisionAnswer { choice: ChoiceKey::Accept.to_string(), note: String::new() };
        has_parked.then_some(ToyRequest::Answer { decision: posted, answer })
    }

    fn run_child(
        &mut self,
        budget: &mut EntryBudget,
        child: &RunChild<Toy>,
        resumed: bool,
    ) -> Result<ChildOutcome<Toy>, Killed> {
        let seed = self.seed;
        let is_known_park = |entry: &&JournalEntry<Toy>| {
            let (RunEvent::EffectFinished { reply: ToyReply::RunChild(ChildOutcome::Waiting(report)), .. }
            | RunEvent::ChildReturned(ReturnedChild { outcome: ChildOutcome::Waiting(report), .. })) = &entry.event
            else {
                return false;
            };
            report.run.as_str() == child.name
        };
        let known_parks = self.journal.iter().filter(is_known_park).count();
        let run = self.children.entry(child.name.clone()).or_insert_with(|| MemoryRun::new(child.order.clone(), seed));
        // A park that the parent has not heard of: it was lost with the parent's process.
        let park_count = run.journal.iter().filter(|entry| matches!(entry.event, RunEvent::RunParked(_))).count();
        let end = match run.journal.last().map(|entry| &entry.event) {
            Some(RunEvent::RunParked(summary)) if resumed && park_count > known_parks => {
                Err(ParkedRun { ending: RunEnding::new(summary.reason, summary.detail.clone()) })
            }
            _ => run.drive(budget)?,
        };
        let used = UsageTotals { cost: Cost(run.count_answers()), ..UsageTotals::default() };
        let (ending, is_over) = match end {
            Ok(ending) => (ending, true),
            Err(ParkedRun { ending }) => (ending, false),
        };
        let report = ChildReport {
            run: RunId::new(child.name.clone()),
            outcome: ending.reason.outcome(),
            reason: ending.reason,
            detail: ending.detail,
            used,
            worked_ms: 0,
            result: ToySummary {},
        };
        Ok(if is_over { ChildOutcome::Ended(report) } else { ChildOutcome::Waiting(report) })
    }

    fn record_all(&mut self, budget: &mut EntryBudget, drafts: Vec<EntryDraft<Toy>>) -> Result<(), Killed> {
        drafts.into_iter().try_for_each(|draft| self.record(budget, draft).map(|_| ()))
    }

    fn record_end(&mut self, budget: &mut EntryBudget, end: &Result<RunEnding, ParkedRun>) -> Result<(), Killed> {
        let (ending, is_over) = match end {
            Ok(ending) => (ending, true),
            Err(ParkedRun { ending }) => (ending, false),
        };
        let summary = RunSummary {
            outcome: ending.reason.outcome(),
            reason: ending.reason,
            detail: ending.detail.clone(),
            result: ToySummary {},
            cost: Cost::default(),
            notional: Cost::default(),
            tokens: 0,
            elapsed_ms: 0,
            left: None,
            causes: Vec::new(),
        };
        let (id, event) = match is_over {
            true => (String::from("run_finished"), RunEvent::RunFinished(summary)),
            false => (format!("run_parked:{}", self.journal.len()), RunEvent::RunParked(summary)),
        };
        self.record(budget, EntryDraft { id, event }).map(|_| ())
    }

    fn record(&mut self, budget: &mut EntryBudget, draft: EntryDraft<Toy>) -> Result<Timestamp, Killed> {
        budget.take_one()?;
        self.clock_ms += 1;
        let at = Timestamp { wall_ms: self.clock_ms, awake_ms: self.clock_ms };
        let seq = self.journal.len() as u64 + 1;
        // What is recorded is what a later process reads.
        let entry =
            JournalEntry { v: 1, run: RunId::new(self.order.name.clone()), seq, id: draft.id, at, event: draft.event };
        let line = serde_json::to_string(&entry).unwrap();
        let entry: JournalEntry<Toy> = serde_json::from_str(&line).unwrap();
        assert!(self.journal.iter().all(|known| known.id != entry.id), "{} is recorded twice", entry.id);
        self.queue.apply_event(&entry.event);
        self.journal.push(entry);
        Ok(at)
    }
}

fn waiting_ending(effect: &ToyEffect) -> RunEnding {
    match effect {
        ToyEffect::Wait(wait) => wait.ending.clone(),
        other => panic!("{other:?} has no ending to wait with"),
    }
}
