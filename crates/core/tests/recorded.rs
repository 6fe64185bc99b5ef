//! Journals that released builds wrote: this build must go on from every single line of them.

use std::collections::BTreeMap;

use tribunal_core::{
    desk::Ask,
    effect::{Effect, Reply},
    event::{Entry, Event},
    ids::Key,
    level::Role,
    view::RunView,
};
use tribunal_testkit::{
    RECORDED, RECORDED_BESIDES, entries, samples,
    trial::{Life, Performed, Trial, World, review_workflow as workflow},
};

/// Answers as was answered then.
struct AsRecorded(BTreeMap<Key, Reply>);

impl World for AsRecorded {
    fn perform(&mut self, ask: &Ask) -> Performed {
        match self.0.get(&ask.key) {
            Some(reply) => Performed::Reply(reply.clone()),
            // Newer builds look more often; nobody had said anything.
            None if ask.effect == Effect::Inbox => Performed::Reply(Reply::Requests { requests: Vec::new() }),
            None => match &ask.effect {
                // Newer builds ask challengers, too.
                Effect::Ask { task } if task.brief.role == Role::Challenger => {
                    Performed::Reply(samples::upheld(&task.brief))
                }
                Effect::Wait { ending } => Performed::Park(ending.clone()),
                _ => panic!("{} was never asked for", ask.key),
            },
        }
    }
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
    for (release, journal) in RECORDED.into_iter().chain(RECORDED_BESIDES) {
        let whole = entries(journal);
        let then = RunView::of(&whole);
        // The last entry says that the run has ended; whatever comes before it can be resumed.
        for cut in 1..whole.len() {
            let world = AsRecorded(replies(&whole));
            let mut trial = Trial::new(then.settings.clone().unwrap(), world, cut as u64);
            trial.journal = whole[..cut].to_vec();
            let life = trial.live(workflow, None);
            let (Life::Done(ending) | Life::Parked(ending)) = &life else {
                panic!("{release}, cut after line {cut}: {life:?}");
            };
            let reason = then.summary().map(|summary| summary.reason);
            assert_eq!(Some(ending.reason), reason, "{release}, cut after line {cut}");
            let now = RunView::of(&trial.journal);
            assert_eq!(now.counts(), then.counts(), "{release}, cut after line {cut}");
        }
    }
}
