//! The replay rule: a workflow that depends on which effect finishes first is killed at every write, and its replay never
//! asks for anything but what was recorded.

use std::{future::Future, pin::Pin};

use futures_util::stream::{FuturesUnordered, StreamExt};
use tribunal_engine::{
    effect::{Elapsed, Sleep},
    host::{ParkedRun, cross_boundary},
    ids::Key,
    reason::{RunEnding, RunReason},
    replayer::ReplayDivergence,
};
use tribunal_testkit::{
    samples,
    trial::{EffectResult, SimulatedWorld, TrialOutcome, TrialRun, started_keys},
};
use tribunal_workflows::runs::{
    effect::Reply,
    kinds::RunOrder,
    types::{JournalEntry, PendingEffect, ReplayHistory, Replayer, RunEvent, RunHost, WorkflowPoll},
};

const JOBS: u64 = 9;

/// Runs jobs in two slots. What a slot does next depends on the order in which the jobs have finished so far.
async fn two_slot_workflow(host: &RunHost<'_>, saved_state: Option<serde_json::Value>) -> Result<u64, ParkedRun> {
    let (mut next_job, mut history_hash): (u64, u64) = match saved_state {
        Some(state) => serde_json::from_value(state).unwrap_or_default(),
        None => (1, 7),
    };
    while next_job <= JOBS {
        let last_job = (next_job + 4).min(JOBS);
        let mut slots = FuturesUnordered::new();
        while next_job <= last_job || !slots.is_empty() {
            while slots.len() < 2 && next_job <= last_job {
                slots.push(run_job(host, next_job, history_hash));
                next_job += 1;
            }
            if let Some(finished_job) = slots.next().await {
                history_hash = history_hash.wrapping_mul(31).wrapping_add(finished_job?);
                host.note_event(RunEvent::Warned { text: format!("story {history_hash}") });
            }
        }
        cross_boundary(host, Key::new(format!("after-{last_job}")), &(next_job, history_hash)).await?;
    }
    Ok(history_hash)
}

async fn run_job(host: &RunHost<'_>, job_number: u64, history_hash: u64) -> Result<u64, ParkedRun> {
    host.perform(Key::new(format!("job-{job_number}")), Sleep { ms: history_hash % 1000 }).await?;
    // The second step makes the slots interleave.
    let ms = host.last_timestamp().awake_ms % 7;
    host.perform(Key::new(format!("job-{job_number}/rest")), Sleep { ms }).await?;
    Ok(job_number)
}

fn boxed_workflow<'a>(
    host: &'a RunHost<'a>,
    _: &'a RunOrder,
    saved_state: Option<serde_json::Value>,
) -> Pin<Box<dyn Future<Output = Result<u64, ParkedRun>> + 'a>> {
    Box::pin(two_slot_workflow(host, saved_state))
}

#[derive(Debug, Default)]
struct SleepingWorld {
    parks_once: bool,
}

impl SimulatedWorld for SleepingWorld {
    fn perform(&mut self, ask: &PendingEffect) -> EffectResult {
        if self.parks_once && ask.effect_key.as_str() == "job-3" {
            self.parks_once = false;
            return EffectResult::Park(RunEnding::from_reason(RunReason::Stopped));
        }
        EffectResult::Reply(Reply::Sleep(Elapsed {}))
    }
}

fn sleeping_trial(seed: u64) -> TrialRun<SleepingWorld> {
    TrialRun::new(samples::sample_plan(), SleepingWorld::default(), seed)
}

#[test]
fn a_replay_after_a_kill_at_any_write_asks_for_exactly_what_was_recorded() {
    let mut replay_count = 0;
    for seed in 0..40 {
        let mut uninterrupted_trial = sleeping_trial(seed);
        assert!(matches!(uninterrupted_trial.run_workflow(boxed_workflow, None), TrialOutcome::Done(_)));
        for kill_at in 0..uninterrupted_trial.write_count() {
            let mut killed_trial = sleeping_trial(seed);
            assert_eq!(killed_trial.run_workflow(boxed_workflow, Some(kill_at)), TrialOutcome::Killed);
            let recorded_keys = started_keys(&killed_trial.journal);
            let life_end = killed_trial.run_workflow(boxed_workflow, None);
            assert!(matches!(life_end, TrialOutcome::Done(_)), "seed {seed}, killed at {kill_at}: {life_end:?}");
            let mut all_keys = started_keys(&killed_trial.journal);
            assert!(all_keys.starts_with(&recorded_keys));
            all_keys.sort();
            all_keys.dedup();
            assert_eq!(all_keys.len() as u64, 2 * JOBS, "every job was asked for once");
            replay_count += 1;
        }
    }
    assert!(replay_count > 1000, "only {replay_count} replays");
}

#[test]
fn a_run_that_is_killed_again_and_again_still_ends() {
    for seed in 0..40 {
        let mut killed_trial = sleeping_trial(seed);
        let mut life_count = 0;
        let life_end = loop {
            life_count += 1;
            match killed_trial.run_workflow(boxed_workflow, Some(3)) {
                TrialOutcome::Killed => assert!(life_count < 1000),
                last_life => break last_life,
            }
        };
        assert!(matches!(life_end, TrialOutcome::Done(_)), "seed {seed}: {life_end:?}");
        assert!(life_count > 5);
    }
}

#[test]
fn a_parked_run_drains_running_effects_and_resumes_where_it_stopped() {
    for seed in 0..40 {
        let mut parked_trial = sleeping_trial(seed);
        parked_trial.world.parks_once = true;
        assert_eq!(
            parked_trial.run_workflow(boxed_workflow, None),
            TrialOutcome::Parked(RunEnding::from_reason(RunReason::Stopped))
        );
        let life_end = parked_trial.run_workflow(boxed_workflow, None);
        assert!(matches!(life_end, TrialOutcome::Done(_)), "seed {seed}: {life_end:?}");
        // Effects that were drained while parking replay like all others, so another start from the same journal works, too.
        let life_end = parked_trial.run_workflow(boxed_workflow, None);
        assert!(matches!(life_end, TrialOutcome::Done(_)), "seed {seed}, again: {life_end:?}");
    }
}

/// Reordered replies must not be replayed: the workflow would ask for other effects, and the replayer reports a divergence
/// instead of going on.
#[test]
fn a_journal_whose_replies_were_reordered_is_refused() {
    let mut refused_count = 0;
    for seed in 0..40 {
        let mut reordered_trial = sleeping_trial(seed);
        reordered_trial.run_workflow(boxed_workflow, Some(14));
        let replies: Vec<usize> = (0..reordered_trial.journal.len())
            .filter(|index| matches!(reordered_trial.journal[*index].event, RunEvent::EffectFinished { .. }))
            .collect();
        if let [first, second, ..] = replies.as_slice() {
            reordered_trial.journal.swap(*first, *second);
            if matches!(reordered_trial.run_workflow(boxed_workflow, None), TrialOutcome::Diverged(_)) {
                refused_count += 1;
            }
        }
    }
    assert!(refused_count > 10, "only {refused_count} of 40 were refused");
}

/// A workflow that takes no saved state.
type FreshWorkflow = for<'a> fn(&'a RunHost<'a>) -> Pin<Box<dyn Future<Output = Result<u64, ParkedRun>> + 'a>>;

fn poll_first_turn(entries: Vec<JournalEntry>, workflow: FreshWorkflow) -> WorkflowPoll<Result<u64, ParkedRun>> {
    let replayer = Replayer::new(samples::sample_settings(), ReplayHistory::from_entries(entries));
    let mut future = workflow(&replayer);
    replayer.poll_workflow(&mut future)
}

#[test]
fn another_effect_under_a_recorded_key_is_a_typed_error() {
    let mut recorded_trial = sleeping_trial(1);
    recorded_trial.run_workflow(boxed_workflow, Some(2));
    let turn = poll_first_turn(recorded_trial.journal.clone(), |host| {
        Box::pin(async move {
            host.perform(Key::new("job-1"), Sleep { ms: 999_999 }).await?;
            Ok(0)
        })
    });
    assert!(
        matches!(&turn, WorkflowPoll::Diverged(ReplayDivergence::Fingerprint { key, .. }) if key.as_str() == "job-1"),
        "{turn:?}"
    );
}

#[test]
fn a_key_used_twice_between_two_boundaries_is_a_typed_error() {
    let turn = poll_first_turn(Vec::new(), |host| {
        Box::pin(async move {
            let first_effect = host.perform(Key::new("job"), Sleep { ms: 1 });
            let second_effect = host.perform(Key::new("job"), Sleep { ms: 1 });
            first_effect.await?;
            second_effect.await?;
            Ok(0)
        })
    });
    assert!(matches!(turn, WorkflowPoll::Diverged(ReplayDivergence::DuplicateKey { .. })), "{turn:?}");
}

#[test]
fn an_effect_is_scheduled_when_asked_for_and_dropping_its_future_does_not_lose_it() {
    let turn = poll_first_turn(Vec::new(), |host| {
        Box::pin(async move {
            drop(host.perform(Key::new("dropped"), Sleep { ms: 1 }));
            let (first_effect, second_effect) =
                (host.perform(Key::new("one"), Sleep { ms: 1 }), host.perform(Key::new("two"), Sleep { ms: 1 }));
            first_effect.await?;
            second_effect.await?;
            Ok(0)
        })
    });
    let WorkflowPoll::Waiting { effects: asks, .. } = turn else { panic!("{turn:?}") };
    let keys: Vec<&str> = asks.iter().map(|ask| ask.effect_key.as_str()).collect();
    assert_eq!(keys, ["dropped", "one", "two"]);
}

#[test]
fn a_workflow_change_does_not_apply_to_runs_that_an_older_build_started() {
    fn old_workflow<'a>(
        host: &'a RunHost<'a>,
        _: &'a RunOrder,
        _: Option<serde_json::Value>,
    ) -> Pin<Box<dyn Future<Output = Result<u64, ParkedRun>> + 'a>> {
        Box::pin(async move {
            host.perform(Key::new("a"), Sleep { ms: 1 }).await?;
            host.perform(Key::new("b"), Sleep { ms: 1 }).await?;
            Ok(0)
        })
    }
    fn new_workflow<'a>(
        host: &'a RunHost<'a>,
        _: &'a RunOrder,
        _: Option<serde_json::Value>,
    ) -> Pin<Box<dyn Future<Output = Result<u64, ParkedRun>> + 'a>> {
        Box::pin(async move {
            let patched = host.patched("sleep longer");
            let ms = if patched { 2 } else { 1 };
            host.perform(Key::new("a"), Sleep { ms }).await?;
            host.perform(Key::new("b"), Sleep { ms }).await?;
            Ok(u64::from(patched))
        })
    }
    // A new run has the change, even if it is killed and resumed.
    let mut patched_trial = sleeping_trial(1);
    assert_eq!(patched_trial.run_workflow(new_workflow, Some(3)), TrialOutcome::Killed);
    assert_eq!(patched_trial.run_workflow(new_workflow, None), TrialOutcome::Done(1));
    // A run that an older build has started goes on without the change.
    let mut patched_trial = sleeping_trial(1);
    assert_eq!(patched_trial.run_workflow(old_workflow, Some(2)), TrialOutcome::Killed);
    assert_eq!(patched_trial.run_workflow(new_workflow, None), TrialOutcome::Done(0));
}

#[test]
fn a_reply_of_another_kind_is_a_divergence_and_never_reaches_the_workflow() {
    struct WrongReplyWorld;
    impl SimulatedWorld for WrongReplyWorld {
        fn perform(&mut self, _: &PendingEffect) -> EffectResult {
            EffectResult::Reply(samples::frozen_reply("text"))
        }
    }
    fn sleeping_workflow<'a>(
        host: &'a RunHost<'a>,
        _: &'a RunOrder,
        _: Option<serde_json::Value>,
    ) -> Pin<Box<dyn Future<Output = Result<u64, ParkedRun>> + 'a>> {
        Box::pin(async move {
            host.perform(Key::new("nap"), Sleep { ms: 1 }).await?;
            Ok(1)
        })
    }
    let mut trial = TrialRun::new(samples::sample_plan(), WrongReplyWorld, 1);
    let life = trial.run_workflow(sleeping_workflow, None);
    let TrialOutcome::Diverged(ReplayDivergence::WrongReplyKind { key, asked, replied }) = life else {
        panic!("{life:?}")
    };
    assert_eq!((key.as_str(), asked, replied), ("nap", "sleep", "freeze"));
    // The wrong reply was recorded, so a resumed run diverges in the same way.
    let life = trial.run_workflow(sleeping_workflow, None);
    assert!(matches!(life, TrialOutcome::Diverged(ReplayDivergence::WrongReplyKind { .. })), "{life:?}");
}
