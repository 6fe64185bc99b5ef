//! The children that work beside a run, and those that have come back and were not awaited yet.
//!
//! All of it follows from the journal: what was started and has not come back is under way, and what has come back and was not awaited
//! waits in the order in which it came back. So a process that resumes the run knows what the one before it knew.

use alloc::{
    collections::{BTreeMap, VecDeque},
    format,
    string::String,
};

use crate::{
    answer_to::AnswerTo,
    child_outcome::ReturnedChild,
    children::{AwaitChild, ChildNews, StartChild, StartedChild},
    effect_set::EffectSet,
    event::{EntryDraft, JournalEntry, RunEvent},
    ids::{Key, RunId, started_entry_id},
    run_types::AnyReply,
};

/// The name of [`AwaitChild`] in journals.
pub const AWAIT_CHILD: &str = "await_child";
/// The name of [`StartChild`] in journals.
pub const START_CHILD: &str = "start_child";

/// A child that was started and has not come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildUnderWay {
    pub run: RunId,
    /// The request, in the segment in which it was made. A run that is resumed finds in it what the child was asked to do.
    pub start_key: Key,
    pub segment: u32,
}

impl ChildUnderWay {
    /// The id of the entry with the request.
    pub fn start_entry_id(&self) -> String {
        started_entry_id(self.segment, &self.start_key)
    }
}

/// The children of a run that it does not wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildQueue<T: EffectSet> {
    under_way: BTreeMap<String, ChildUnderWay>,
    returned: VecDeque<ReturnedChild<T>>,
}

impl<T: EffectSet> Default for ChildQueue<T> {
    fn default() -> Self {
        ChildQueue { under_way: BTreeMap::new(), returned: VecDeque::new() }
    }
}

impl<T: EffectSet> ChildQueue<T> {
    pub fn from_entries<'e>(entries: impl IntoIterator<Item = &'e JournalEntry<T>>) -> ChildQueue<T> {
        let mut queue = ChildQueue::default();
        entries.into_iter().for_each(|entry| queue.apply_event(&entry.event));
        queue
    }

    /// Applies an event as it was recorded.
    pub fn apply_event(&mut self, event: &RunEvent<T>) {
        match event {
            RunEvent::EffectFinished { key, segment, reply } if reply.effect_name() == START_CHILD => {
                if let Some(StartedChild { name, run }) = outcome_of::<T, StartChild<T>>(reply) {
                    self.under_way.insert(name, ChildUnderWay { run, start_key: key.clone(), segment: *segment });
                }
            }
            RunEvent::EffectFinished { reply, .. } if reply.effect_name() == AWAIT_CHILD => {
                if let Some(ChildNews::Returned(_)) = outcome_of::<T, AwaitChild>(reply) {
                    self.returned.pop_front();
                }
            }
            RunEvent::ChildReturned(returned) => {
                self.under_way.remove(&returned.name);
                self.returned.push_back(returned.clone());
            }
            _ => {}
        }
    }

    /// The children that have not come back, by their names.
    pub fn under_way(&self) -> &BTreeMap<String, ChildUnderWay> {
        &self.under_way
    }

    /// The child that is awaited next.
    pub fn first_returned(&self) -> Option<&ReturnedChild<T>> {
        self.returned.front()
    }

    /// Makes the draft for a child that has come back; `None` if it is not under way.
    pub fn returned_draft(&self, returned: ReturnedChild<T>) -> Option<EntryDraft<T>> {
        let ChildUnderWay { start_key, segment, .. } = self.under_way.get(&returned.name)?;
        let id = format!("{segment}:child_returned:{start_key}");
        Some(EntryDraft { id, event: RunEvent::ChildReturned(returned) })
    }
}

/// Returns the outcome in a reply to this effect.
fn outcome_of<T: EffectSet, E>(reply: &T::Reply) -> Option<<T::Reply as AnswerTo<E>>::Outcome>
where
    T::Reply: AnswerTo<E>,
{
    AnswerTo::<E>::into_outcome(reply.clone())
}
