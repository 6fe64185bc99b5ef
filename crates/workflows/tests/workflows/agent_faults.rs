//! What follows from the fault of an agent: another attempt, a wait, another agent, or a pause for the user.

use tribunal_engine::{
    children::measure_waits,
    effect::{AwaitReset, WaitCause},
    fault::{FaultKind, FaultPolicy},
    ids::AgentName,
    limits::{RunLimits, WaitLimits},
    reason::RunReason,
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, failed_task_reply, findings_reply, flawed_text, frozen_reply, raised_flaw},
    trial::{TrialOutcome, TrialRun, ordered_workflow, run_first_review, started_keys},
};
use tribunal_workflows::{
    findings::finding::Severity,
    review::{ReviewState, level::ReviewLevel, order::ReviewOrder},
    runs::{
        effect::{AskAgent, AskOutcome, Effect, FailedTask, Reply},
        plan::RunPlan,
        settings::{AgentSpec, DriverSpec},
        types::RunEvent,
        view::RunView,
    },
    tasks::brief::AgentSession,
};

const SEAT_KEY: &str = "round-1/review/adversarial";
/// A reset time that is after the start of the trial, whose clock starts at 1,000,000.
const RESET_AT_MS: u64 = 9_000_000;

fn single_agent_plan() -> RunPlan<ReviewOrder> {
    samples::sample_plan().with_change(|plan| {
        plan.order.level = Some(ReviewLevel::Minimal);
        plan.order.fix = false;
    })
}

fn two_agent_plan() -> RunPlan<ReviewOrder> {
    let command_agent =
        |agent_name: &str| AgentSpec::new(agent_name, DriverSpec::Command { argv: vec![agent_name.into()] });
    single_agent_plan().with_change(|plan| plan.settings.agents = vec![command_agent("a"), command_agent("b")])
}

fn frozen_world() -> ScriptedWorld {
    ScriptedWorld::default().reply_on("round-1/freeze", frozen_reply(&flawed_text(1)))
}

fn one_finding() -> Reply {
    findings_reply(vec![raised_flaw(1, Severity::High)])
}

fn limited_reply(until_ms: Option<u64>) -> Reply {
    failed_task_reply(FaultKind::Limited { until_ms })
}

fn instant_failure(kind: FaultKind) -> Reply {
    let mut reply = failed_task_reply(kind);
    if let Reply::Ask(AskOutcome::Failed(FailedTask { fault, .. })) = &mut reply {
        fault.instant = true;
    }
    reply
}

/// Returns the state that the last boundary recorded.
fn last_state(trial: &TrialRun<ScriptedWorld>) -> ReviewState {
    let states = trial.journal.iter().rev().filter_map(|entry| match &entry.event {
        RunEvent::Boundary { state, .. } => serde_json::from_value(state.clone()).ok(),
        _ => None,
    });
    states.take(1).next().unwrap_or_default()
}

fn awaited_times(trial: &TrialRun<ScriptedWorld>) -> Vec<u64> {
    let awaited_until = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::EffectStarted { effect: Effect::AwaitReset(AwaitReset { until_ms, .. }), .. } => Some(*until_ms),
        _ => None,
    });
    awaited_until.collect()
}

/// Returns which agent was asked for the seat, with the rest of the key.
fn seat_calls(trial: &TrialRun<ScriptedWorld>) -> Vec<String> {
    let calls = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::EffectStarted { key, effect: Effect::Ask(AskAgent { task, .. }), .. } => {
            Some(format!("{} {}", key.as_str().strip_prefix(SEAT_KEY)?, task.agent))
        }
        _ => None,
    });
    calls.collect()
}

fn warning_texts(trial: &TrialRun<ScriptedWorld>) -> Vec<String> {
    let texts = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::Warned { text } => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_usage_limit_is_waited_out_and_then_the_same_agent_is_asked_again() {
    let world = frozen_world()
        .reply_on(SEAT_KEY, limited_reply(Some(RESET_AT_MS)))
        .reply_on(&format!("{SEAT_KEY}/then-1"), one_finding());
    let (ending, view, trial) = run_first_review(single_agent_plan(), world);
    assert_eq!(awaited_times(&trial), [RESET_AT_MS + 2_000]);
    assert_eq!(seat_calls(&trial), [" sample", "/then-1 sample"]);
    assert_eq!((ending.reason, view.all_findings().count()), (RunReason::ReviewOnly, 1));
}

#[test]
fn waiting_is_not_charged_and_uses_up_no_run_time() {
    let day_ms = 24 * 3_600_000;
    let wait_limits = WaitLimits { at_most_ms: 2 * day_ms, first: true };
    let plan = single_agent_plan()
        .with_change(|plan| plan.settings.limits = RunLimits { waits: wait_limits, ..RunLimits::default() });
    let world = frozen_world()
        .reply_on(SEAT_KEY, limited_reply(Some(day_ms)))
        .reply_on(&format!("{SEAT_KEY}/then-1"), one_finding());
    let (ending, _, trial) = run_first_review(plan, world);
    assert!(trial.waited_ms > RunLimits::default().runtime_ms, "{}", trial.waited_ms);
    assert_eq!(ending.reason, RunReason::ReviewOnly, "{}", ending.detail);
    assert_eq!(last_state(&trial).spent.failures_in_a_row, 0);
    // A parent is told how long the run waited; the clock of the trial also moves a little with every entry.
    let measured_ms = measure_waits(&trial.journal);
    assert!((trial.waited_ms..trial.waited_ms + 100).contains(&measured_ms), "{measured_ms}");
}

#[test]
fn without_a_reset_time_the_waits_get_longer() {
    let mut world = frozen_world().reply_on(SEAT_KEY, limited_reply(None));
    for attempt in 1..=3 {
        world = world.reply_on(&format!("{SEAT_KEY}/then-{attempt}"), limited_reply(Some(1)));
    }
    let (_, _, trial) =
        run_first_review(single_agent_plan(), world.reply_on(&format!("{SEAT_KEY}/then-4"), one_finding()));
    let minutes: Vec<u64> =
        awaited_times(&trial).windows(2).map(|neighbours| (neighbours[1] - neighbours[0]) / 60_000).collect();
    assert_eq!(minutes, [2, 4, 8], "each from the end of the last");
}

#[test]
fn a_wait_that_was_cut_off_ends_when_it_would_have_ended() {
    let script = || {
        frozen_world()
            .reply_on(SEAT_KEY, limited_reply(Some(RESET_AT_MS)))
            .reply_on(&format!("{SEAT_KEY}/then-1"), one_finding())
    };
    let (uninterrupted_end, _, _) = run_first_review(single_agent_plan(), script());
    let mut trial = TrialRun::new(single_agent_plan(), script(), 1);
    // Each life makes one write, until the wait has begun. Three more lives are killed before the wait ends.
    while awaited_times(&trial).is_empty() {
        trial.run_workflow(ordered_workflow, Some(1));
    }
    for _ in 0..3 {
        assert_eq!(trial.run_workflow(ordered_workflow, Some(0)), TrialOutcome::Killed);
    }
    assert_eq!(trial.run_workflow(ordered_workflow, None), TrialOutcome::Done(uninterrupted_end));
    assert_eq!(awaited_times(&trial), [RESET_AT_MS + 2_000], "asked for once, with the time it had");
}

#[test]
fn a_wait_beyond_the_limit_pauses_the_run_and_names_the_reset_time() {
    let distant_reset = 1_000_000 + 13 * 3_600_000;
    let (ending, _, trial) =
        run_first_review(single_agent_plan(), frozen_world().reply_on(SEAT_KEY, limited_reply(Some(distant_reset))));
    assert!(awaited_times(&trial).is_empty());
    assert_eq!(ending.reason, RunReason::Environment);
    assert!(ending.detail.contains("sample is available again at 1970-01-01 13:16:40 UTC"), "{}", ending.detail);
}

#[test]
fn another_agent_is_asked_instead_of_waiting_and_later_tasks_know_the_limit() {
    let world = frozen_world()
        .reply_on(SEAT_KEY, limited_reply(Some(RESET_AT_MS)))
        .reply_on(&format!("{SEAT_KEY}/other-1"), one_finding());
    let (ending, _, trial) = run_first_review(two_agent_plan(), world);
    assert_eq!((seat_calls(&trial), awaited_times(&trial)), (vec![" a".into(), "/other-1 b".into()], vec![]));
    assert_eq!(ending.reason, RunReason::ReviewOnly);
    assert_eq!(last_state(&trial).spent.limited.get(&AgentName::new("a")), Some(&RESET_AT_MS));
    assert!(
        warning_texts(&trial).iter().any(|text| text.ends_with("using b instead of a")),
        "{:?}",
        warning_texts(&trial)
    );
}

#[test]
fn if_the_other_agent_cannot_work_the_limited_one_is_waited_for() {
    for kind in [FaultKind::NotSignedIn, FaultKind::Limited { until_ms: Some(RESET_AT_MS * 2) }] {
        let script = frozen_world()
            .reply_on(SEAT_KEY, limited_reply(Some(RESET_AT_MS)))
            .reply_on(&format!("{SEAT_KEY}/other-1"), failed_task_reply(kind));
        let (ending, _, trial) =
            run_first_review(two_agent_plan(), script.reply_on(&format!("{SEAT_KEY}/then-1"), one_finding()));
        assert_eq!(seat_calls(&trial), [" a", "/other-1 b", "/then-1 a"]);
        assert_eq!((awaited_times(&trial), ending.reason), (vec![RESET_AT_MS + 2_000], RunReason::ReviewOnly));
    }
}

#[test]
fn with_wait_first_the_run_waits_although_another_agent_is_free() {
    let wait_limits = WaitLimits { first: true, ..WaitLimits::default() };
    let plan = two_agent_plan()
        .with_change(|plan| plan.settings.limits = RunLimits { waits: wait_limits, ..RunLimits::default() });
    let world = frozen_world()
        .reply_on(SEAT_KEY, limited_reply(Some(RESET_AT_MS)))
        .reply_on(&format!("{SEAT_KEY}/then-1"), one_finding());
    let (_, _, trial) = run_first_review(plan, world);
    assert_eq!(seat_calls(&trial), [" a", "/then-1 a"]);
}

#[test]
fn every_fault_leads_to_the_call_its_rule_names() {
    let next_key_suffix = |kind: &FaultKind| match kind.table_row().policy {
        FaultPolicy::Retry | FaultPolicy::RetryThenFallBack => "/again",
        FaultPolicy::Wait => "/then-1",
        FaultPolicy::FallBack => "/other-1",
        FaultPolicy::Stop => "",
    };
    for kind in [
        FaultKind::NotInstalled,
        FaultKind::NotSignedIn,
        FaultKind::NoModel,
        FaultKind::NoCredit,
        FaultKind::NeverActive,
        FaultKind::Denied,
        FaultKind::Overflow,
        FaultKind::Refused,
        FaultKind::Rejected { status: 400 },
        FaultKind::Curtailed,
        FaultKind::Exited { code: 127 },
        FaultKind::Exited { code: 1 },
        FaultKind::TimedOut,
        FaultKind::Overloaded,
        FaultKind::Connection,
        FaultKind::World,
    ] {
        let key_suffix = next_key_suffix(&kind);
        let world = frozen_world()
            .reply_on(SEAT_KEY, failed_task_reply(kind.clone()))
            .reply_on(&format!("{SEAT_KEY}{key_suffix}"), one_finding());
        let world =
            if key_suffix.is_empty() { world.reply_on(SEAT_KEY, failed_task_reply(kind.clone())) } else { world };
        let (ending, _, trial) = run_first_review(two_agent_plan(), world);
        let last_call = seat_calls(&trial).last().cloned().unwrap_or_default();
        assert!(last_call.starts_with(&format!("{key_suffix} ")), "{kind:?}: {:?}", seat_calls(&trial));
        let expected = if key_suffix.is_empty() { RunReason::Environment } else { RunReason::ReviewOnly };
        assert_eq!(ending.reason, expected, "{kind:?}: {}", ending.detail);
    }
}

#[test]
fn a_failing_provider_is_asked_twice_and_then_another_agent() {
    for kind in [FaultKind::Overloaded, FaultKind::Connection] {
        let script = frozen_world()
            .reply_on(SEAT_KEY, failed_task_reply(kind.clone()))
            .reply_on(&format!("{SEAT_KEY}/again"), failed_task_reply(kind));
        let (ending, _, trial) =
            run_first_review(two_agent_plan(), script.reply_on(&format!("{SEAT_KEY}/other-1"), one_finding()));
        assert_eq!(seat_calls(&trial), [" a", "/again a", "/other-1 b"]);
        assert_eq!(ending.reason, RunReason::ReviewOnly);
    }
}

/// The waits for an overloaded provider, in milliseconds.
fn overload_waits(trial: &TrialRun<ScriptedWorld>) -> Vec<u64> {
    let waits = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::EffectStarted { effect: Effect::AwaitReset(wait), .. } if wait.cause == WaitCause::Overload => {
            Some(wait.until_ms - entry.at.wall_ms)
        }
        _ => None,
    });
    waits.collect()
}

#[test]
fn an_outage_is_waited_out_by_a_single_agent() {
    let overloaded = || failed_task_reply(FaultKind::Overloaded);
    let world_after = |failed_waits: u32| {
        let script =
            frozen_world().reply_on(SEAT_KEY, overloaded()).reply_on(&format!("{SEAT_KEY}/again"), overloaded());
        let script = (1..=failed_waits)
            .fold(script, |script, number| script.reply_on(&format!("{SEAT_KEY}/then-{number}"), overloaded()));
        script.reply_on(&format!("{SEAT_KEY}/then-{}", failed_waits + 1), one_finding())
    };
    // About an hour: one second, two seconds and so on, then five minutes each.
    let (ending, _, trial) = run_first_review(single_agent_plan(), world_after(20));
    assert_eq!(ending.reason, RunReason::ReviewOnly, "{}", ending.detail);
    let waits = overload_waits(&trial);
    assert_eq!(waits.len(), 21);
    for (number, wait_ms) in waits.iter().enumerate() {
        let longest_ms = (1_000_u64 << number).min(300_000);
        assert!((longest_ms * 3 / 4..=longest_ms).contains(wait_ms), "{number}: {wait_ms}");
    }
    assert!(waits.iter().sum::<u64>() > 3_000_000, "{waits:?}");
    assert_eq!(last_state(&trial).spent.failures_in_a_row, 0);

    let plan = single_agent_plan().with_change(|plan| plan.settings.limits.waits.at_most_ms = 1_500);
    let (ending, _, trial) = run_first_review(plan, world_after(20));
    assert_eq!((ending.reason, overload_waits(&trial).len()), (RunReason::Environment, 1));
    assert!(ending.detail.starts_with("no reviewer answered: "), "{}", ending.detail);
}

#[test]
fn a_fault_of_the_environment_is_not_an_attempt_and_pauses_the_run_with_the_evidence() {
    let (ending, _, mut trial) = run_first_review(
        single_agent_plan(),
        frozen_world().reply_once(SEAT_KEY, failed_task_reply(FaultKind::NotSignedIn)),
    );
    assert_eq!((ending.reason, last_state(&trial).spent.failures_in_a_row), (RunReason::Environment, 0));
    assert!(ending.detail.starts_with("no reviewer answered: "), "{}", ending.detail);
    // The resume comes after the user has repaired the environment.
    trial.world = frozen_world().reply_on(SEAT_KEY, one_finding());
    trial.world.resumes_waits = true;
    let (ending, _) = trial.run_order();
    assert_eq!(ending.reason, RunReason::ReviewOnly, "{}", ending.detail);
}

#[test]
fn reviewers_that_had_too_little_time_left_halt_the_run_at_its_limit() {
    let review_within = |runtime_ms: u64| {
        let plan = single_agent_plan().with_change(|plan| plan.settings.limits.runtime_ms = runtime_ms);
        let timed_out = || failed_task_reply(FaultKind::TimedOut);
        let script = frozen_world().reply_on(SEAT_KEY, timed_out()).reply_on(&format!("{SEAT_KEY}/again"), timed_out());
        let (ending, _, trial) = run_first_review(plan, script);
        (ending.reason, !seat_calls(&trial).is_empty())
    };
    assert_eq!(review_within(3_600_000), (RunReason::Environment, true));
    // The limit is used up before, while or after the agent was asked.
    let halted_after_asking = (1..100).filter(|runtime_ms| review_within(*runtime_ms) == (RunReason::Runtime, true));
    assert!(halted_after_asking.count() > 0);
}

#[test]
fn two_identical_instant_failures_stop_further_attempts() {
    let instant_exit = || instant_failure(FaultKind::Exited { code: 1 });
    let script =
        frozen_world().reply_on(SEAT_KEY, instant_exit()).reply_on(&format!("{SEAT_KEY}/again"), instant_exit());
    let (ending, _, trial) = run_first_review(single_agent_plan(), script);
    assert_eq!(
        (ending.reason, last_state(&trial).spent.failures_in_a_row),
        (RunReason::Environment, 0),
        "{}",
        ending.detail
    );
    assert!(ending.detail.ends_with("(failed twice, each time immediately)"), "{}", ending.detail);
    assert_eq!(seat_calls(&trial).len(), 2);

    let script =
        frozen_world().reply_on(SEAT_KEY, instant_exit()).reply_on(&format!("{SEAT_KEY}/again"), instant_exit());
    let (ending, _, trial) =
        run_first_review(two_agent_plan(), script.reply_on(&format!("{SEAT_KEY}/other-1"), one_finding()));
    assert_eq!(seat_calls(&trial), [" a", "/again a", "/other-1 b"]);
    assert_eq!(ending.reason, RunReason::ReviewOnly);

    // A failure of an agent that had begun to work does count.
    let late_exit = || failed_task_reply(FaultKind::Exited { code: 1 });
    let (_, _, trial) = run_first_review(
        single_agent_plan(),
        frozen_world().reply_on(SEAT_KEY, late_exit()).reply_on(&format!("{SEAT_KEY}/again"), late_exit()),
    );
    assert!(last_state(&trial).spent.failures_in_a_row > 0);
}

#[test]
fn without_a_reachable_challenger_nothing_is_fixed_and_nothing_is_charged() {
    let script = frozen_world()
        .reply_on(SEAT_KEY, one_finding())
        .reply_once("round-1/challenge/1/1", failed_task_reply(FaultKind::NotSignedIn))
        .reply_once("round-1/challenge/2/1", failed_task_reply(FaultKind::NotSignedIn));
    let plan = single_agent_plan().with_change(|plan| plan.order.fix = true);
    let (ending, _, trial) = run_first_review(plan, script);
    assert_eq!(
        (ending.reason, last_state(&trial).spent.failures_in_a_row),
        (RunReason::Environment, 0),
        "{}",
        ending.detail
    );
    assert!(!started_keys(&trial.journal).iter().any(|key| key.as_str().contains("/fix-")));
}

#[test]
fn a_wait_that_continues_after_a_resume_is_still_shown() {
    let mut world = frozen_world()
        .reply_on(SEAT_KEY, limited_reply(Some(RESET_AT_MS)))
        .reply_on(&format!("{SEAT_KEY}/then-1"), one_finding());
    world.resumes_waits = true;
    let mut trial = TrialRun::new(single_agent_plan(), world, 1);
    // Each life makes one write.
    while awaited_times(&trial).is_empty() {
        trial.run_workflow(ordered_workflow, Some(1));
    }
    let awaited_count_at = |wall_ms| {
        let mut entry = trial.journal[0].clone();
        entry.event = RunEvent::RunResumed { life: 2 };
        entry.at.wall_ms = wall_ms;
        RunView::from_entries(trial.journal.iter().chain([&entry])).limited_agents().count()
    };
    assert_eq!((awaited_count_at(RESET_AT_MS - 1), awaited_count_at(RESET_AT_MS * 2)), (1, 0));
}

/// Adds a session to the answer, as if the client had kept the conversation.
fn with_session(mut reply: Reply, timestamp_ms: u64) -> Reply {
    if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
        answer.session = Some(Box::new(AgentSession { id: "talk".into(), total: answer.usage, at_ms: timestamp_ms }));
    }
    reply
}

/// Returns for each call of the seat the rest of its key and whether it continues an earlier session.
fn resumed_sessions(trial: &TrialRun<ScriptedWorld>) -> Vec<(String, bool)> {
    let calls = trial.journal.iter().filter_map(|entry| match &entry.event {
        RunEvent::EffectStarted { key, effect: Effect::Ask(AskAgent { task, .. }), .. } => {
            Some((key.as_str().strip_prefix(SEAT_KEY)?.to_string(), task.session.is_some()))
        }
        _ => None,
    });
    calls.collect()
}

#[test]
fn the_correction_of_an_answer_is_sent_in_the_same_session() {
    let first_answer = || with_session(samples::unreadable_reply(), 1_000_000);
    let (_, _, trial) = run_first_review(
        single_agent_plan(),
        frozen_world().reply_on(SEAT_KEY, first_answer()).reply_on(&format!("{SEAT_KEY}/again"), one_finding()),
    );
    assert_eq!(resumed_sessions(&trial), [(String::new(), false), ("/again".into(), true)]);

    // Clients forget their sessions after a day.
    let stale_answer = with_session(samples::unreadable_reply(), 0);
    let mut trial = TrialRun::new(
        single_agent_plan(),
        frozen_world().reply_on(SEAT_KEY, stale_answer).reply_on(&format!("{SEAT_KEY}/again"), one_finding()),
        1,
    );
    trial.waited_ms = AgentSession::MAX_AGE_MS;
    trial.run_order();
    assert_eq!(resumed_sessions(&trial), [(String::new(), false), ("/again".into(), false)]);
}

#[test]
fn a_session_that_the_client_has_forgotten_is_started_anew() {
    let script = frozen_world()
        .reply_on(SEAT_KEY, with_session(samples::unreadable_reply(), 1_000_000))
        .reply_on(&format!("{SEAT_KEY}/again"), failed_task_reply(FaultKind::Exited { code: 1 }))
        .reply_on(&format!("{SEAT_KEY}/anew"), one_finding());
    let (ending, _, trial) = run_first_review(single_agent_plan(), script);
    assert_eq!(resumed_sessions(&trial), [(String::new(), false), ("/again".into(), true), ("/anew".into(), false)]);
    assert_eq!(ending.reason, RunReason::ReviewOnly);
}
