//! Asking an agent for any kind of run: tasks without a subject, sessions, shares of the budget and postponed calls.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::cell::{Cell, RefCell};

use futures_util::FutureExt;
use tribunal_engine::{
    effect::{AwaitReset, Elapsed, WaitCause},
    fault::FaultKind,
    host::{Host, HostFuture},
    ids::{AgentName, Key},
    limits::{AgentUsage, Cost, RunUsage},
    run_types::AnyEffect,
    timestamp::Timestamp,
};
use tribunal_testkit::samples;
use tribunal_workflows::{
    runs::{
        effect::{AskAgent, AskOutcome, CallBooking, Effect, PostponedCall, Reply},
        settings::{AgentSpec, DriverSpec, Settings},
        types::{Kinds, RunEvent},
    },
    tasks::{
        asking::{AgentConsultation, consult_agent, find_unreadable},
        brief::{AgentSession, AgentTask, AnswerContent, WorkspaceKind},
        client::{JobDuty, JobKind, JobPriority, ModelSize},
        consult_outcome::{ConsultOutcome, KeptSession},
        instructions::InstructionBrief,
        purpose::{ExpectedAnswer, TaskPurpose},
        selection,
        status_report::{StatusReport, WorkStatus},
    },
};

/// A host that answers asks in order, and lets every wait end at its time.
struct OrderedHost {
    settings: Settings,
    replies: RefCell<Vec<Reply>>,
    requests: RefCell<Vec<(String, Effect)>>,
    wall_ms: Cell<u64>,
}

impl OrderedHost {
    fn new(replies: impl IntoIterator<Item = Reply>) -> OrderedHost {
        let mut replies: Vec<Reply> = replies.into_iter().collect();
        replies.reverse();
        OrderedHost {
            settings: samples::sample_settings(),
            replies: RefCell::new(replies),
            requests: RefCell::default(),
            wall_ms: Cell::new(1_000),
        }
    }

    fn consult(&self, task: AgentTask, parallel_tasks: usize) -> ConsultOutcome {
        self.consult_with(task, parallel_tasks, false)
    }

    fn consult_with(&self, task: AgentTask, parallel_tasks: usize, is_single_try: bool) -> ConsultOutcome {
        let (task_key, run_usage) = (Key::new("draft"), RunUsage::default());
        let escalated_size = Some(ModelSize::Large);
        let consultation = AgentConsultation {
            task_key: &task_key,
            task,
            run_usage: &run_usage,
            parallel_tasks,
            escalated_size,
            is_single_try,
        };
        consult_agent(self, consultation, find_unreadable).now_or_never().unwrap().unwrap()
    }

    fn requested_keys(&self) -> Vec<String> {
        self.requests.borrow().iter().map(|(key, _)| key.clone()).collect()
    }

    fn asked(&self) -> Vec<AskAgent> {
        let requests = self.requests.borrow();
        let asks = requests.iter().filter_map(|(_, effect)| match effect {
            Effect::Ask(ask_agent) => Some(ask_agent.clone()),
            _ => None,
        });
        asks.collect()
    }

    fn waits(&self) -> Vec<AwaitReset> {
        let requests = self.requests.borrow();
        let waits = requests.iter().filter_map(|(_, effect)| match effect {
            Effect::AwaitReset(wait) => Some(wait.clone()),
            _ => None,
        });
        waits.collect()
    }
}

impl Host<Kinds> for OrderedHost {
    fn start_effect(&self, effect_key: Key, effect: Effect) -> HostFuture<'_, Reply> {
        let mut requests = self.requests.borrow_mut();
        assert!(requests.iter().all(|(known, _)| known != effect_key.as_str()), "{effect_key} is requested twice");
        requests.push((effect_key.as_str().to_string(), effect.clone()));
        let reply = match effect {
            Effect::AwaitReset(wait) => {
                self.wall_ms.set(wait.until_ms);
                Reply::AwaitReset(Elapsed {})
            }
            Effect::Sleep(_) => Reply::Sleep(Elapsed {}),
            _ => self.replies.borrow_mut().pop().unwrap(),
        };
        Box::pin(async move { Ok(reply) })
    }

    fn record_boundary(&self, _: Key, _: serde_json::Value) -> HostFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn note_event(&self, _: RunEvent) {}

    fn last_timestamp(&self) -> Timestamp {
        Timestamp { wall_ms: self.wall_ms.get(), awake_ms: self.wall_ms.get() }
    }

    fn patched(&self, _: &'static str) -> bool {
        true
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }
}

fn story_task(place: WorkspaceKind) -> AgentTask {
    let purpose = TaskPurpose { job: JobKind::Develop, expects: ExpectedAnswer::Status };
    AgentTask::new(AgentName::new("sample"), purpose, InstructionBrief::new("Write the story."), place, 60_000)
}

fn private_task() -> AgentTask {
    story_task(WorkspaceKind::Private)
}

fn frozen_task() -> AgentTask {
    story_task(WorkspaceKind::Frozen { by: Key::new("freeze") })
}

fn status_reply(status: WorkStatus) -> Reply {
    samples::status_reply(StatusReport { status: Some(status), ..StatusReport::default() })
}

fn with_cost(mut reply: Reply, amount: f64) -> Reply {
    if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
        answer.usage.cost = Some(Cost::from_amount(amount));
    }
    reply
}

fn session_at(at_ms: u64) -> AgentSession {
    AgentSession { id: "talk".into(), total: AgentUsage::default(), at_ms }
}

fn with_session(mut reply: Reply, at_ms: u64) -> Reply {
    if let Reply::Ask(AskOutcome::Answered(answer)) = &mut reply {
        answer.session = Some(Box::new(session_at(at_ms)));
    }
    reply
}

fn postponed_until(start_ms: u64) -> Reply {
    let booking = CallBooking { start_ms, unfinished_attempts: 2 };
    Reply::Ask(AskOutcome::Postponed(PostponedCall { booking, why: "limit of 5 calls per hour reached".into() }))
}

#[test]
fn a_task_without_a_subject_is_asked_once_more_if_its_status_is_missing() {
    let host = OrderedHost::new([samples::unreadable_reply(), status_reply(WorkStatus::Complete)]);
    let outcome = host.consult(private_task(), 1);
    assert_eq!(host.requested_keys(), ["draft", "draft/again"]);
    let corrections: Vec<String> =
        host.asked().iter().map(|ask| ask.task.brief.correction_text().to_string()).collect();
    assert_eq!(corrections, ["", "the answer is empty"]);
    let Some(AnswerContent::Status(report)) = outcome.last_content() else { panic!("{outcome:?}") };
    assert!(report.is_done() && outcome.has_recovered);
}

#[test]
fn a_failed_task_is_recorded_for_every_kind_of_run_and_gets_the_larger_model() {
    let failure = || samples::failed_task_reply(FaultKind::TimedOut);
    let host = OrderedHost::new([failure(), failure()]);
    let outcome = host.consult(private_task(), 1);
    let sizes: Vec<Option<ModelSize>> = host.asked().iter().map(|ask| ask.task.size).collect();
    assert_eq!(sizes, [None, Some(ModelSize::Large)]);
    let mut run_usage = RunUsage::default();
    outcome.record_result(&host, &mut run_usage, false);
    assert_eq!(run_usage.failures_in_a_row, 1);
    assert_eq!(run_usage.failing.get(&AgentName::new("sample")), Some(&2));
    // An answer ends the row of failures.
    let host = OrderedHost::new([status_reply(WorkStatus::InProgress)]);
    host.consult(private_task(), 1).record_result(&host, &mut run_usage, true);
    assert_eq!((run_usage.failures_in_a_row, run_usage.failing.len()), (0, 0));
}

#[test]
fn a_single_try_repeats_what_the_environment_broke_and_nothing_else() {
    for (fault, expected) in [
        (FaultKind::Killed { signal: 9 }, &["draft"][..]),
        (FaultKind::TimedOut, &["draft"]),
        (FaultKind::Connection, &["draft", "draft/pause", "draft/again"]),
    ] {
        let host = OrderedHost::new([samples::failed_task_reply(fault.clone()), status_reply(WorkStatus::Complete)]);
        host.consult_with(private_task(), 1, true);
        assert_eq!(host.requested_keys(), expected, "{fault:?}");
    }
}

#[test]
fn a_job_without_a_duty_of_its_own_has_that_of_its_group() {
    let mut settings = samples::sample_settings();
    let mut other_agent = AgentSpec::new("other", DriverSpec::Command { argv: vec!["other".into()] });
    other_agent
        .duties
        .insert(JobKind::Fix, JobDuty { part: JobPriority::Never, model: Some("big".into()), ..JobDuty::default() });
    other_agent.duties.insert(JobKind::Judge, JobDuty { part: JobPriority::StandsBy, ..JobDuty::default() });
    settings.agents.insert(0, other_agent.clone());
    let chosen = |job| selection::agent_for_seat(&settings, job, 0, 0).as_str().to_string();
    assert_eq!([JobKind::Develop, JobKind::Step, JobKind::Judge].map(chosen), ["sample", "sample", "sample"]);
    assert_eq!([JobKind::Review, JobKind::Challenge, JobKind::Voice].map(chosen), ["other", "other", "other"]);
    assert_eq!(other_agent.find_duty(JobKind::CreateStory).unwrap().model.as_deref(), Some("big"));
    assert_eq!(other_agent.find_duty(JobKind::CodeReview), None);
}

#[test]
fn tasks_side_by_side_share_what_is_left_of_the_budget() {
    let host = OrderedHost::new([
        with_cost(samples::unreadable_reply(), 1.0),
        with_cost(status_reply(WorkStatus::Complete), 0.1),
    ]);
    host.consult(private_task(), 4);
    let budgets: Vec<Cost> = host.asked().iter().map(|ask| ask.task.budget.unwrap()).collect();
    assert_eq!(budgets, [Cost::from_amount(1.25), Cost::from_amount(0.25)]);

    // A share that is used up leaves nothing for a second attempt.
    let host = OrderedHost::new([with_cost(samples::unreadable_reply(), 1.25)]);
    let outcome = host.consult(private_task(), 4);
    assert_eq!(host.requested_keys(), ["draft"]);
    assert_eq!(outcome.fault.unwrap().kind, FaultKind::Malformed);

    let host = OrderedHost::new([status_reply(WorkStatus::Complete)]);
    host.consult(private_task(), 1);
    assert_eq!(host.asked()[0].task.budget, Some(Cost::from_amount(5.0)));
}

#[test]
fn a_postponed_call_is_waited_for_and_then_uses_its_booking() {
    let host = OrderedHost::new([postponed_until(90_000), status_reply(WorkStatus::Complete)]);
    let outcome = host.consult(private_task(), 1);
    assert_eq!(host.requested_keys(), ["draft", "draft/wait-1", "draft/then-1"]);
    let wait = host.waits().remove(0);
    assert_eq!((wait.until_ms, wait.cause), (90_000, WaitCause::CallsPerHour));
    assert_eq!(wait.why, "limit of 5 calls per hour reached");
    let bookings: Vec<Option<CallBooking>> = host.asked().iter().map(|ask| ask.booking).collect();
    assert_eq!(bookings, [None, Some(CallBooking { start_ms: 90_000, unfinished_attempts: 2 })]);
    // It is the user's own limit: the agent is not limited, has not failed, and the wait costs no runtime.
    let mut run_usage = RunUsage::default();
    outcome.record_result(&host, &mut run_usage, true);
    assert_eq!((run_usage.limited.len(), run_usage.waited.ms), (0, 89_000));
    assert_eq!(outcome.call_count(), 1);
    // The booking is no part of the request: a resumed run that books anew asks for the same thing.
    let mut asks = host.asked().into_iter().map(Effect::Ask);
    assert!(asks.next().unwrap().is_same_request(&asks.next().unwrap()));
}

#[test]
fn a_call_that_is_free_too_late_is_not_waited_for() {
    let mut host = OrderedHost::new([postponed_until(90_000_000)]);
    host.settings.limits.waits.at_most_ms = 3_600_000;
    let outcome = host.consult(private_task(), 1);
    assert_eq!(host.requested_keys(), ["draft"]);
    let fault = outcome.fault.unwrap();
    assert_eq!(fault.kind, FaultKind::Limited { until_ms: Some(90_000_000) });
    assert_eq!(fault.detail, "limit of 5 calls per hour reached; the next call is free at 1970-01-02 01:00:00 UTC");
    // A host that postpones forever does not keep a task forever.
    let host = OrderedHost::new((0..100).map(|_| postponed_until(1)));
    assert!(host.consult(private_task(), 1).fault.is_some());
    assert_eq!(host.waits().len(), 12);
}

#[test]
fn a_task_continues_the_session_of_its_agent_and_passes_it_on() {
    let host = OrderedHost::new([with_session(status_reply(WorkStatus::InProgress), 500)]);
    let mut task = private_task();
    let kept_session = KeptSession { agent: AgentName::new("sample"), session: session_at(400) };
    KeptSession { agent: AgentName::new("other"), ..kept_session.clone() }.continue_in(&mut task);
    assert_eq!(task.session, None);
    kept_session.continue_in(&mut task);
    let outcome = host.consult(task, 1);
    assert_eq!(host.asked()[0].task.session, Some(Box::new(session_at(400))));
    assert_eq!(outcome.session, Some(KeptSession { agent: AgentName::new("sample"), session: session_at(500) }));
}

#[test]
fn a_session_that_expired_before_or_during_a_wait_is_not_continued() {
    let mut task = private_task();
    task.session = Some(Box::new(session_at(0)));
    let host = OrderedHost::new([status_reply(WorkStatus::Complete)]);
    host.wall_ms.set(AgentSession::MAX_AGE_MS);
    host.consult(task.clone(), 1);
    assert_eq!(host.asked()[0].task.session, None);

    let mut host = OrderedHost::new([postponed_until(AgentSession::MAX_AGE_MS), status_reply(WorkStatus::Complete)]);
    host.settings.limits.waits.at_most_ms = 2 * AgentSession::MAX_AGE_MS;
    host.consult(task, 1);
    let continued: Vec<bool> = host.asked().iter().map(|ask| ask.task.session.is_some()).collect();
    assert_eq!(continued, [true, false]);
}

#[test]
fn a_lost_session_is_replaced_by_a_new_one_also_in_the_correction() {
    let lost = || samples::failed_task_reply(FaultKind::Exited { code: 1 });
    let host = OrderedHost::new([
        lost(),
        with_session(samples::unreadable_reply(), 900),
        lost(),
        status_reply(WorkStatus::Complete),
    ]);
    let mut task = frozen_task();
    task.session = Some(Box::new(session_at(400)));
    let outcome = host.consult(task, 1);
    assert_eq!(host.requested_keys(), ["draft", "draft/anew", "draft/again", "draft/again/anew"]);
    let continued: Vec<bool> = host.asked().iter().map(|ask| ask.task.session.is_some()).collect();
    assert_eq!(continued, [true, false, true, false]);
    assert!(matches!(outcome.last_content(), Some(AnswerContent::Status(_))));
}
