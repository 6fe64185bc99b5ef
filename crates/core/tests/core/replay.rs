//! The replay rule: a workflow that depends on which effect finishes first is killed at every write, and its replay never
//! asks for anything but what was recorded.

use std::{future::Future, pin::Pin};

use futures_util::stream::{FuturesUnordered, StreamExt};
use tribunal_core::{
    desk::{Ask, Desk, Divergence, History, Turn},
    effect::{EffectKind, Elapsed, Reply, Sleep},
    event::{Entry, Event},
    host::{Host, Parked, boundary},
    ids::Key,
    reason::{Ending, Reason},
};
use tribunal_testkit::{
    samples,
    trial::{Life, Performed, Trial, World, started},
};

const JOBS: u64 = 9;

/// Runs jobs in two slots. What a slot does next depends on the order in which the jobs have finished so far.
async fn two_slots(host: &dyn Host, from: Option<serde_json::Value>) -> Result<u64, Parked> {
    let (mut next, mut story): (u64, u64) = match from {
        Some(state) => serde_json::from_value(state).unwrap_or_default(),
        None => (1, 7),
    };
    while next <= JOBS {
        let last = (next + 4).min(JOBS);
        let mut slots = FuturesUnordered::new();
        while next <= last || !slots.is_empty() {
            while slots.len() < 2 && next <= last {
                slots.push(job(host, next, story));
                next += 1;
            }
            if let Some(ended) = slots.next().await {
                story = story.wrapping_mul(31).wrapping_add(ended?);
                host.note(Event::Warned { text: format!("story {story}") });
            }
        }
        boundary(host, Key::new(format!("after-{last}")), &(next, story)).await?;
    }
    Ok(story)
}

async fn job(host: &dyn Host, number: u64, story: u64) -> Result<u64, Parked> {
    host.perform(Key::new(format!("job-{number}")), Sleep { ms: story % 1000 }).await?;
    // The second step makes the slots interleave.
    let ms = host.now().awake_ms % 7;
    host.perform(Key::new(format!("job-{number}/rest")), Sleep { ms }).await?;
    Ok(number)
}

fn workflow<'a>(
    host: &'a dyn Host,
    from: Option<serde_json::Value>,
) -> Pin<Box<dyn Future<Output = Result<u64, Parked>> + 'a>> {
    Box::pin(two_slots(host, from))
}

#[derive(Debug, Default)]
struct Sleeper {
    parks: bool,
}

impl World for Sleeper {
    fn perform(&mut self, ask: &Ask) -> Performed {
        if self.parks && ask.key.as_str() == "job-3" {
            self.parks = false;
            return Performed::Park(Ending::plain(Reason::Stopped));
        }
        Performed::Reply(Reply::Sleep(Elapsed {}))
    }
}

fn trial(seed: u64) -> Trial<Sleeper> {
    Trial::new(samples::settings(), Sleeper::default(), seed)
}

#[test]
fn killed_at_every_write_a_replay_asks_for_exactly_what_was_recorded() {
    let mut replays = 0;
    for seed in 0..40 {
        let mut whole = trial(seed);
        assert!(matches!(whole.live(workflow, None), Life::Done(_)));
        for kill_at in 0..whole.journal.len() {
            let mut run = trial(seed);
            assert_eq!(run.live(workflow, Some(kill_at)), Life::Killed);
            let recorded = started(&run.journal);
            let end = run.live(workflow, None);
            assert!(matches!(end, Life::Done(_)), "seed {seed}, killed at {kill_at}: {end:?}");
            let mut all = started(&run.journal);
            assert!(all.starts_with(&recorded));
            all.sort();
            all.dedup();
            assert_eq!(all.len() as u64, 2 * JOBS, "every job was asked for once");
            replays += 1;
        }
    }
    assert!(replays > 1000, "only {replays} replays");
}

#[test]
fn killed_again_and_again_it_still_ends() {
    for seed in 0..40 {
        let mut run = trial(seed);
        let mut lives = 0;
        let end = loop {
            lives += 1;
            match run.live(workflow, Some(3)) {
                Life::Killed => assert!(lives < 1000),
                other => break other,
            }
        };
        assert!(matches!(end, Life::Done(_)), "seed {seed}: {end:?}");
        assert!(lives > 5);
    }
}

#[test]
fn a_parked_run_drains_what_runs_and_goes_on_where_it_stopped() {
    for seed in 0..40 {
        let mut run = trial(seed);
        run.world.parks = true;
        assert_eq!(run.live(workflow, None), Life::Parked(Ending::plain(Reason::Stopped)));
        let end = run.live(workflow, None);
        assert!(matches!(end, Life::Done(_)), "seed {seed}: {end:?}");
        // Effects that were drained while parking replay like all others, so another start from the same journal works, too.
        let end = run.live(workflow, None);
        assert!(matches!(end, Life::Done(_)), "seed {seed}, again: {end:?}");
    }
}

/// Reordered replies must not be replayed: the workflow would ask for other effects, and the replayer reports a divergence
/// instead of going on.
#[test]
fn a_journal_in_another_order_is_refused() {
    let mut refused = 0;
    for seed in 0..40 {
        let mut run = trial(seed);
        run.live(workflow, Some(14));
        let replies: Vec<usize> = (0..run.journal.len())
            .filter(|index| matches!(run.journal[*index].event, Event::EffectFinished { .. }))
            .collect();
        if let [first, second, ..] = replies.as_slice() {
            run.journal.swap(*first, *second);
            if matches!(run.live(workflow, None), Life::Diverged(_)) {
                refused += 1;
            }
        }
    }
    assert!(refused > 10, "only {refused} of 40 were refused");
}

/// A workflow that takes no saved state.
type Fresh = for<'a> fn(&'a dyn Host) -> Pin<Box<dyn Future<Output = Result<u64, Parked>> + 'a>>;

fn first_turn(entries: Vec<Entry>, workflow: Fresh) -> Turn<Result<u64, Parked>> {
    let desk = Desk::open(samples::settings(), History::of(entries));
    let mut future = workflow(&desk);
    desk.turn(&mut future)
}

#[test]
fn another_effect_under_a_recorded_key_is_a_typed_error() {
    let mut run = trial(1);
    run.live(workflow, Some(2));
    let turn = first_turn(run.journal.clone(), |host| {
        Box::pin(async move {
            host.perform(Key::new("job-1"), Sleep { ms: 999_999 }).await?;
            Ok(0)
        })
    });
    assert!(
        matches!(&turn, Turn::Diverged(Divergence::Fingerprint { key, .. }) if key.as_str() == "job-1"),
        "{turn:?}"
    );
}

#[test]
fn a_key_asked_twice_in_a_stretch_is_a_typed_error() {
    let turn = first_turn(Vec::new(), |host| {
        Box::pin(async move {
            let first = host.perform(Key::new("job"), Sleep { ms: 1 });
            let second = host.perform(Key::new("job"), Sleep { ms: 1 });
            first.await?;
            second.await?;
            Ok(0)
        })
    });
    assert!(matches!(turn, Turn::Diverged(Divergence::KeyTwice { .. })), "{turn:?}");
}

#[test]
fn an_effect_is_scheduled_when_asked_for_and_dropping_its_future_does_not_lose_it() {
    let turn = first_turn(Vec::new(), |host| {
        Box::pin(async move {
            drop(host.perform(Key::new("dropped"), Sleep { ms: 1 }));
            let (one, two) = (
                host.perform(Key::new("one"), Sleep { ms: 1 }),
                host.perform(Key::new("two"), Sleep { ms: 1 }),
            );
            one.await?;
            two.await?;
            Ok(0)
        })
    });
    let Turn::Waiting { asks, .. } = turn else { panic!("{turn:?}") };
    let keys: Vec<&str> = asks.iter().map(|ask| ask.key.as_str()).collect();
    assert_eq!(keys, ["dropped", "one", "two"]);
}

#[test]
fn a_change_holds_from_the_first_stretch_that_reaches_it() {
    fn old<'a>(
        host: &'a dyn Host,
        _: Option<serde_json::Value>,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Parked>> + 'a>> {
        Box::pin(async move {
            host.perform(Key::new("a"), Sleep { ms: 1 }).await?;
            host.perform(Key::new("b"), Sleep { ms: 1 }).await?;
            Ok(0)
        })
    }
    fn new<'a>(
        host: &'a dyn Host,
        _: Option<serde_json::Value>,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Parked>> + 'a>> {
        Box::pin(async move {
            let patched = host.patched("sleep longer");
            let ms = if patched { 2 } else { 1 };
            host.perform(Key::new("a"), Sleep { ms }).await?;
            host.perform(Key::new("b"), Sleep { ms }).await?;
            Ok(u64::from(patched))
        })
    }
    // A new run has the change, even if it is killed and resumed.
    let mut run = trial(1);
    assert_eq!(run.live(new, Some(3)), Life::Killed);
    assert_eq!(run.live(new, None), Life::Done(1));
    // A run that an older build has started goes on without the change.
    let mut run = trial(1);
    assert_eq!(run.live(old, Some(2)), Life::Killed);
    assert_eq!(run.live(new, None), Life::Done(0));
}

#[test]
fn a_reply_of_another_kind_is_a_divergence_and_never_reaches_the_workflow() {
    struct Confused;
    impl World for Confused {
        fn perform(&mut self, _: &Ask) -> Performed {
            Performed::Reply(samples::frozen("text"))
        }
    }
    fn sleeper<'a>(
        host: &'a dyn Host,
        _: Option<serde_json::Value>,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Parked>> + 'a>> {
        Box::pin(async move {
            host.perform(Key::new("nap"), Sleep { ms: 1 }).await?;
            Ok(1)
        })
    }
    let mut trial = Trial::new(samples::settings(), Confused, 1);
    let life = trial.live(sleeper, None);
    let Life::Diverged(Divergence::WrongReply { key, asked, replied }) = life else { panic!("{life:?}") };
    assert_eq!((key.as_str(), asked, replied), ("nap", EffectKind::Sleep, EffectKind::Freeze));
    // The wrong reply was recorded, so a resumed run diverges in the same way.
    let life = trial.live(sleeper, None);
    assert!(matches!(life, Life::Diverged(Divergence::WrongReply { .. })), "{life:?}");
}
