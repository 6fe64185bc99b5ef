//! Asking real processes for tasks without a subject, and counting their calls.

use std::{num::NonZeroUsize, path::Path};

use tribunal_workflows::{
    review::order::ReviewOrder,
    runs::{
        effect::{AskAgent, CallBooking},
        settings::DriverSpec,
    },
    tasks::{
        brief::{AgentReply, AnswerContent},
        client::JobKind,
        instructions::InstructionBrief,
        purpose::{ExpectedAnswer, TaskPurpose},
        status_report::WorkStatus,
    },
};

use super::*;
use crate::{
    effects::{current_wall_ms, test_context::new_effect_context},
    project::Project,
    shared::rate_limit::{CallRate, HOUR_MS},
};

/// A project with one file and one agent: a shell that writes its prompt into `prompt.txt` and then runs a script.
struct AskScene {
    directory: tempfile::TempDir,
    context: Arc<EffectContext>,
}

impl AskScene {
    fn new(script: &str, calls_per_hour: Option<usize>) -> AskScene {
        let directory = tempfile::tempdir().unwrap();
        let project = Project::from_root(directory.path().join("project"));
        project.prepare_home().unwrap();
        fs::write(project.root().join("notes.md"), "keep this\n").unwrap();
        let order = ReviewOrder::new(Subject::from_path("notes.md", None));
        let mut context = new_effect_context(project, order);
        let prompt_path = directory.path().join("prompt.txt");
        let command_line = format!("cat > '{}'; {script}", prompt_path.display());
        let argv = vec!["/bin/sh".into(), "-c".into(), command_line];
        context.settings.agents[0].driver = DriverSpec::Command { argv };
        if let Some(calls_per_hour) = calls_per_hour.and_then(NonZeroUsize::new) {
            let state_file = directory.path().join("calls");
            context.shared = context.shared.with_rate_limit(CallRate { state_file, calls_per_hour });
        }
        AskScene { directory, context: Arc::new(context) }
    }

    fn ask(&self, job: JobKind, expects: ExpectedAnswer, booking: Option<CallBooking>) -> AskOutcome {
        let brief = InstructionBrief::new("Write the story.");
        let purpose = TaskPurpose { job, expects };
        let agent = self.context.settings.agents[0].name.clone();
        let task = AgentTask::new(agent, purpose, brief, WorkspaceKind::Private, 60_000);
        self.perform(AskAgent { task, booking }, 0)
    }

    fn perform(&self, ask_request: AskAgent, unfinished_attempts: u32) -> AskOutcome {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let task_key = Key::new("draft");
        runtime.block_on(ask_agent(self.context.clone(), task_key, ask_request, unfinished_attempts)).unwrap().reply
    }

    fn answer(&self, job: JobKind, expects: ExpectedAnswer) -> AgentReply {
        match self.ask(job, expects, None) {
            AskOutcome::Answered(reply) => reply,
            other => panic!("{other:?}"),
        }
    }

    fn root(&self) -> &Path {
        self.context.project.root()
    }
}

const STATUS_SCRIPT: &str = "cat notes.md; echo 'a story' > story.md; \
     printf -- '---RALPH_STATUS---\\nSTATUS: COMPLETE\\nEXIT_SIGNAL: true\\n---END_RALPH_STATUS---\\n'";

#[test]
fn a_task_without_a_subject_works_in_a_copy_of_the_project_and_reports_its_status() {
    let scene = AskScene::new(STATUS_SCRIPT, None);
    let reply = scene.answer(JobKind::CreateStory, ExpectedAnswer::Status);
    let AnswerContent::Status(report) = &reply.content else { panic!("{:?}", reply.content) };
    assert_eq!((report.status, report.exit_signal), (Some(WorkStatus::Complete), Some(true)));
    assert_eq!(reply.patch.unwrap().files, ["story.md"]);
    assert!(!scene.root().join("story.md").exists());
    let prompt = fs::read_to_string(scene.directory.path().join("prompt.txt")).unwrap();
    assert!(prompt.contains("Write the story.") && prompt.contains("private workspace"), "{prompt}");
    assert!(prompt.contains("---RALPH_STATUS---"), "{prompt}");
}

#[test]
fn an_answer_is_read_as_what_the_task_expects() {
    let scene = AskScene::new("printf 'What next?\\n\\n[A] Add a test\\n[C] Continue\\n'", None);
    let content = scene.answer(JobKind::Step, ExpectedAnswer::Question).content;
    let AnswerContent::Question(question) = content else { panic!("{content:?}") };
    assert_eq!(question.options.len(), 2);
    let content = scene.answer(JobKind::Judge, ExpectedAnswer::Text).content;
    assert!(matches!(&content, AnswerContent::Text { text } if text.starts_with("What next?")), "{content:?}");
    let prompt = fs::read_to_string(scene.directory.path().join("prompt.txt")).unwrap();
    assert!(prompt.contains("Only read"), "a judge does not write: {prompt}");
    let content = scene.answer(JobKind::Develop, ExpectedAnswer::Status).content;
    assert!(matches!(&content, AnswerContent::Unreadable { .. }), "{content:?}");
}

/// What an agent that runs a script shows while it works.
fn list_activities(script: &str) -> Vec<String> {
    let (progress_sender, mut progress_receiver) = tokio::sync::mpsc::unbounded_channel();
    let mut scene = AskScene::new(script, None);
    Arc::get_mut(&mut scene.context).unwrap().progress = progress_sender;
    scene.answer(JobKind::Judge, ExpectedAnswer::Text);
    let mut activities = Vec::new();
    while let Ok(progress) = progress_receiver.try_recv() {
        assert!(progress.is_output, "{progress:?}");
        activities.push(progress.activity);
    }
    activities
}

#[test]
fn the_last_line_of_a_command_is_shown_while_it_works_and_secrets_in_it_are_not() {
    let token = format!("ghp_{}", "aB3dE6gH9".repeat(4));
    let activities =
        list_activities(&format!("echo 'I begin'; echo; echo '  signing in with {token}'; echo; printf half"));
    assert!(activities.last().is_some_and(|activity| activity.starts_with("signing in with ")), "{activities:?}");
    assert!(!activities.iter().any(|activity| activity.contains(&token) || activity.contains('\n')), "{activities:?}");
    // An answer in its final form is not progress.
    let activities = list_activities("echo 'reading src/a.py'; printf '{\n  \"findings\": []\n}\n'");
    assert_eq!(activities, ["reading src/a.py"]);
}

#[test]
fn a_call_too_many_is_postponed_at_once_and_its_booking_is_used() {
    let scene = AskScene::new("echo done", Some(1));
    let ask_with = |booking| scene.ask(JobKind::Develop, ExpectedAnswer::Text, booking);
    assert!(matches!(ask_with(None), AskOutcome::Answered(_)), "commands are counted, and the first call is free");
    let begun_ms = current_wall_ms();
    let AskOutcome::Postponed(postponed_call) = ask_with(None) else { panic!() };
    assert_eq!(postponed_call.why, "limit of 1 calls per hour in all runs reached (`limits.calls_per_hour`)");
    let booking = postponed_call.booking;
    assert!(booking.start_ms > begun_ms && booking.start_ms <= begun_ms + HOUR_MS, "{booking:?}");
    // The wait is over.
    let booked_calls = fs::read_to_string(scene.directory.path().join("calls")).unwrap();
    assert!(matches!(ask_with(Some(booking)), AskOutcome::Answered(_)));
    assert_eq!(fs::read_to_string(scene.directory.path().join("calls")).unwrap(), booked_calls);
    // A booking that is an hour old is forgotten, so the call is counted anew.
    let old_booking = CallBooking { start_ms: begun_ms - HOUR_MS, unfinished_attempts: 3 };
    let AskOutcome::Postponed(postponed_call) = ask_with(Some(old_booking)) else { panic!() };
    assert_eq!(postponed_call.booking.unfinished_attempts, 3);
}

#[test]
fn what_was_begun_before_a_call_was_postponed_is_counted_in_its_usage() {
    let scene = AskScene::new("echo done", Some(1));
    let first_reply = scene.answer(JobKind::Develop, ExpectedAnswer::Text);
    let booking = CallBooking { start_ms: current_wall_ms(), unfinished_attempts: 2 };
    let AskOutcome::Answered(reply) = scene.ask(JobKind::Develop, ExpectedAnswer::Text, Some(booking)) else {
        panic!()
    };
    assert!(reply.usage.input_tokens >= 3 * first_reply.usage.input_tokens - 2, "{:?}", reply.usage);
}

#[test]
fn scripted_agents_are_not_counted() {
    let scene = AskScene::new("echo done", Some(1));
    let mut agent_spec = scene.context.settings.agents[0].clone();
    agent_spec.driver = DriverSpec::Replay { script: "demo.yaml".into(), paced: false };
    let driven_agent = DrivenAgent::new(agent_spec).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let task_key = Key::new("draft");
    for _ in 0..3 {
        let booked = call_booking::book_call(&scene.context, &task_key, &driven_agent, None, 0);
        assert_eq!(runtime.block_on(booked), None);
    }
    assert!(!scene.directory.path().join("calls").exists());
}
