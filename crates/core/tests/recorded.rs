//! Journals that released builds wrote: this build must go on from every single line of them.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{collections::BTreeMap, future::Future, pin::Pin};

use tribunal_core::{
    desk::Ask,
    effect::Reply,
    event::{Entry, Event},
    host::{Host, Parked},
    ids::Key,
    reason::{Ending, Reason},
    review::review,
    view::RunView,
};
use tribunal_testkit::{
    RECORDED, entries,
    trial::{Life, Performed, Trial, World},
};

/// Answers as was answered then.
struct AsRecorded(BTreeMap<Key, Reply>);

impl World for AsRecorded {
    fn perform(&mut self, ask: &Ask) -> Performed {
        match self.0.get(&ask.key) {
            Some(reply) => Performed::Reply(reply.clone()),
            None => panic!("{} was never asked for", ask.key),
        }
    }
}

fn workflow<'a>(
    host: &'a dyn Host,
    from: Option<serde_json::Value>,
) -> Pin<Box<dyn Future<Output = Result<Ending, Parked>> + 'a>> {
    let court = from.map(|state| serde_json::from_value(state).unwrap()).unwrap_or_default();
    Box::pin(review(host, court))
}

fn replies(journal: &[Entry]) -> BTreeMap<Key, Reply> {
    let replies = journal.iter().filter_map(|entry| match &entry.event {
        Event::EffectFinished { key, reply, .. } => Some((key.clone(), reply.clone())),
        _ => None,
    });
    replies.collect()
}

#[test]
fn every_recorded_journal_can_be_gone_on_with_from_every_line() {
    for (release, journal) in RECORDED {
        let whole = entries(journal);
        let then = RunView::of(&whole);
        // The last entry says that the run has ended; whatever comes before it can be resumed.
        for cut in 1..whole.len() {
            let world = AsRecorded(replies(&whole));
            let mut trial = Trial::new(then.settings.clone().unwrap(), world, cut as u64);
            trial.journal = whole[..cut].to_vec();
            let life = trial.live(workflow, None);
            let resolved = matches!(&life, Life::Done(ending) if ending.reason == Reason::GoalMet);
            assert!(resolved, "{release}, cut after line {cut}: {life:?}");
            let now = RunView::of(&trial.journal);
            assert_eq!(now.counts(), then.counts(), "{release}, cut after line {cut}");
        }
    }
}
