//! Lets an agent do a task: workspace, prompt, process, answer, patch. [`call_booking`] counts the calls of an hour,
//! [`agent_result`] reads what the process left behind.

mod agent_result;
mod agent_workspace;
pub(super) mod call_booking;
mod progress_lines;
mod questions;
mod recent_outputs;
mod sent_text;
mod start_faults;
#[cfg(test)]
mod tests;
mod usage_meter;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tribunal_agents::{
    driver::{DrivenAgent, LaunchRequest, SessionMode},
    prompt::{self, PromptMaterial},
};
use tribunal_engine::{
    fault::Fault,
    ids::{AgentName, Key},
    limits::AgentUsage,
};
use tribunal_supervise::{Deadlines, ExitReason, ProcessCommand};
use tribunal_workflows::{
    findings::subject::Subject,
    runs::effect::{AskAgent, AskOutcome},
    tasks::{
        brief::{AgentTask, ReviewBrief, TaskBrief, WorkspaceKind},
        purpose::AgentAccess,
    },
};

use agent_workspace::{AgentWorkspace, next_attempt_workspace};

use super::{
    EffectContext, PerformedEffect, change_diff,
    development::take_back_commits,
    environment_fault, freeze,
    stray_edits::{self, ProjectWatch},
};
use crate::{
    blocking_work::run_blocking,
    file_limits::MAX_SUBJECT_BYTES,
    masking::find_secret_variables,
    project::{atomic_files, subject::is_plain_path},
    sandbox::{PrivateTmp, SandboxPurpose},
    workspaces::{TaskWorkspace, WorkspaceSource},
};
use agent_result::AgentTraces;

use sent_text::SentText;
use usage_meter::{TaskShare, UsageMeter};

pub(crate) use recent_outputs::RecentOutputs;

/// The name of the directory in a task's directory that holds the files its client is pointed at.
const CLIENT_FILES_DIR: &str = "beside";

/// Lets an agent do a task. Returns `None` if the user ended it.
pub(super) async fn ask_agent(
    context: Arc<EffectContext>,
    task_key: Key,
    ask_request: AskAgent,
    unfinished_attempts: u32,
) -> Option<PerformedEffect<AskOutcome>> {
    let AskAgent { task: agent_task, booking } = ask_request;
    let driven_agent = match find_driven_agent(&context, &agent_task.agent) {
        Ok(driven_agent) => driven_agent,
        Err(fault) => return Some(AskOutcome::from(fault).into()),
    };
    if let Some(postponed_call) =
        call_booking::book_call(&context, &task_key, &driven_agent, booking, unfinished_attempts).await
    {
        return Some(AskOutcome::Postponed(postponed_call).into());
    }
    // What was begun before the task was postponed counts, too.
    let unfinished_attempts = unfinished_attempts + booking.map_or(0, |booking| booking.unfinished_attempts);
    match run_task(context, task_key, driven_agent, agent_task, unfinished_attempts).await {
        Ok(effect_result) => Some(effect_result),
        Err(AskFailure::Faulted(fault)) => Some(AskOutcome::from(fault).into()),
        Err(AskFailure::Stopped) => None,
    }
}

/// Why a task has no result of its agent.
enum AskFailure {
    /// The user stopped it, so it counts as never finished.
    Stopped,
    Faulted(Fault),
}

impl From<Fault> for AskFailure {
    fn from(fault: Fault) -> AskFailure {
        AskFailure::Faulted(fault)
    }
}

/// Prepares a task, runs its agent and reads what the agent left behind.
async fn run_task(
    context: Arc<EffectContext>,
    task_key: Key,
    driven_agent: DrivenAgent,
    agent_task: AgentTask,
    unfinished_attempts: u32,
) -> Result<PerformedEffect<AskOutcome>, AskFailure> {
    // The permit comes before the workspace: a task that waits for it has neither a stale copy nor a running time limit.
    let permit = context.acquire_permit().await.ok_or(AskFailure::Stopped)?;
    let prepared_task = prepare_task_in_background(&context, &task_key, &agent_task).await?;
    let agent_spec = context.settings.find_agent(&agent_task.agent);
    let client = agent_spec.and_then(|agent_spec| Some(agent_spec.driver.client_spec()?.client.as_str()));
    let prompt = render_task_prompt(&agent_task, &prepared_task, client)?;
    let is_command = client.is_some_and(|client| agent_task.brief.has_command_for(client));
    let PreparedTask { mut agent_workspace, project_watch, .. } = prepared_task;
    let prompt_bytes = prompt.len();
    // The agent gets the prompt as it is; only the recorded copy is masked.
    let masked_prompt = context.masker.mask(&prompt).into_owned();
    let conversation = choose_conversation(&agent_task, unfinished_attempts);
    let share = TaskShare {
        tokens: agent_task.max_tokens.unwrap_or(context.settings.limits.task_tokens),
        turns: context.settings.limits.task_turns,
    };
    let usage_meter = Arc::new(UsageMeter::new(prompt_bytes, share));
    let agent_call = AgentInvocation {
        task_key: &task_key,
        task: &agent_task,
        prompt,
        is_command,
        conversation,
        usage_meter: usage_meter.clone(),
    };
    let (command, private_tmp) = build_command(&context, &driven_agent, &agent_workspace, agent_call)
        .map_err(|cause| environment_fault(format!("could not write the files for the agent: {cause}")))?;
    let endpoint = driven_agent.find_endpoint(&context.launch_env, &|variable_name| env::var(variable_name).ok());
    let process_end = tribunal_supervise::run_process(command).await;
    // The permit is returned before the output is read, so that the next agent starts meanwhile.
    drop(permit);
    drop(private_tmp);
    let process_end =
        process_end.map_err(|cause| start_faults::describe_start_fault(&driven_agent.agent_spec, &cause))?;
    if process_end.exit_reason == ExitReason::Stopped {
        let end_work = move || agent_workspace.end_work(&context);
        run_blocking(end_work).await.map_err(|panicked| environment_fault(panicked.to_string()))?;
        return Err(AskFailure::Stopped);
    }
    let read_result = move || {
        let request = agent_result::AgentRequest {
            agent: &driven_agent,
            task: &agent_task,
            usage_meter: &usage_meter,
            unfinished_attempts,
        };
        // This comes before anything is read: git would obey what the agent may have changed.
        let guard_remarks = agent_workspace.end_work(&context);
        // Edits of the user's project are looked for whether or not the agent succeeded.
        let strayed = project_watch
            .map(|watch| watch.find_stray_edits(&context, agent_workspace.task_copy()))
            .unwrap_or_default();
        let traces = AgentTraces { process_end, strayed };
        let effect_result = agent_result::read_agent_result(&context, request, &agent_workspace, traces);
        add_remarks(effect_result, guard_remarks)
    };
    let effect_result = run_blocking(read_result).await.map_err(|panicked| environment_fault(panicked.to_string()))?;
    // Every unfinished attempt must have read the prompt at least once.
    let earlier_usage = AgentUsage::estimate_from_bytes(prompt_bytes.saturating_mul(unfinished_attempts as usize), 0);
    let effect_result = add_earlier_usage(effect_result, unfinished_attempts, earlier_usage);
    Ok(sent_text::attach_sent_text(effect_result, SentText { prompt: masked_prompt, endpoint }))
}

/// Finds the agent in the settings, with the driver of its client.
fn find_driven_agent(context: &EffectContext, agent_name: &AgentName) -> Result<DrivenAgent, Fault> {
    let Some(agent_spec) = context.settings.find_agent(agent_name) else {
        return Err(environment_fault(format!("no agent named `{agent_name}` in the settings")));
    };
    // A journal may name a client that this build does not have. No other agent is asked in its place.
    DrivenAgent::new(agent_spec.clone())
        .map_err(|unknown| environment_fault(format!("agent `{agent_name}`: {unknown}")))
}

/// Prepares a task on a separate thread, since the workflow's thread must not block.
async fn prepare_task_in_background(
    context: &Arc<EffectContext>,
    task_key: &Key,
    agent_task: &AgentTask,
) -> Result<PreparedTask, Fault> {
    let (context, task_key, agent_task) = (context.clone(), task_key.clone(), agent_task.clone());
    let prepare = move || {
        if let WorkspaceKind::Development { workspace } = &agent_task.place {
            context.enter_checkout(&context.find_development_workspace(workspace)?)?;
        }
        let mut prepared_task = prepare_task(&context, &task_key, &agent_task).map_err(environment_fault)?;
        let agent_workspace = &prepared_task.agent_workspace;
        // From here on edits of the user's project count as made while the agent worked.
        if !agent_workspace.is_in_place() {
            prepared_task.project_watch = stray_edits::start_watch(&context, agent_workspace.task_copy())
                .map_err(|cause| environment_fault(format!("could not read the workspace: {cause}")))?;
        }
        Ok(prepared_task)
    };
    run_blocking(prepare).await.unwrap_or_else(|panicked| Err(environment_fault(panicked.to_string())))
}

/// Returns our directory with the files that an agent is pointed at.
fn scratch_dir(context: &EffectContext, task_key: &Key) -> PathBuf {
    context.project.task_dir(&context.run_id, task_key).join(CLIENT_FILES_DIR)
}

/// Renders the prompt of a task. A continued conversation has the subject already, so the agent gets only what is new.
fn render_task_prompt(
    agent_task: &AgentTask,
    prepared_task: &PreparedTask,
    client: Option<&str>,
) -> Result<String, Fault> {
    let PreparedTask { subject_text, criteria, prompt_template, .. } = prepared_task;
    let is_continued = agent_task.session.is_some();
    let rendered = match &agent_task.brief {
        TaskBrief::Review(brief) if is_continued => prompt::render_follow_up(brief),
        TaskBrief::Review(brief) => {
            prompt::render_prompt(brief, PromptMaterial { subject_text, criteria }, prompt_template.as_deref())
        }
        TaskBrief::Instructions(brief) if is_continued => {
            prompt::render_instruction_follow_up(brief, agent_task.expects)
        }
        TaskBrief::Instructions(brief) => {
            prompt::render_instructions(brief, agent_task.expects, agent_task.workspace_access(), client)
        }
    };
    rendered.map_err(|problem| {
        let worker = agent_task.worker_name();
        let template_name = match &agent_task.brief {
            TaskBrief::Review(brief) => format!(" ({})", prompt::template_file_name(brief.role)),
            TaskBrief::Instructions(_) => String::new(),
        };
        environment_fault(format!("could not render the prompt for the {worker}{template_name}: {problem}"))
    })
}

/// Adds what the user should know to an outcome.
fn add_remarks(mut effect_result: PerformedEffect<AskOutcome>, remarks: Vec<String>) -> PerformedEffect<AskOutcome> {
    match &mut effect_result.reply {
        AskOutcome::Answered(reply) => reply.remarks.extend(remarks),
        AskOutcome::Failed(failed_task) => {
            let fault = &mut failed_task.fault;
            fault.detail = [fault.detail.clone()].into_iter().chain(remarks).collect::<Vec<_>>().join("; ");
        }
        AskOutcome::Postponed(_) => {}
    }
    effect_result
}

/// Adds what earlier, unfinished attempts must have cost at least.
fn add_earlier_usage(
    mut effect_result: PerformedEffect<AskOutcome>,
    unfinished_attempts: u32,
    earlier_usage: AgentUsage,
) -> PerformedEffect<AskOutcome> {
    if unfinished_attempts > 0 {
        match &mut effect_result.reply {
            AskOutcome::Answered(reply) => reply.usage = reply.usage.combined_with(earlier_usage),
            AskOutcome::Failed(failed_task) => failed_task.usage = failed_task.usage.combined_with(earlier_usage),
            // A postponed call keeps the number of the attempts in its booking.
            AskOutcome::Postponed(_) => {}
        }
    }
    effect_result
}

struct PreparedTask {
    agent_workspace: AgentWorkspace,
    /// The user's project as it was when the agent began; `None` if the agent cannot write there.
    project_watch: Option<ProjectWatch>,
    /// The text of the subject in the workspace; empty if the task has none.
    subject_text: String,
    /// The acceptance criteria that the subject has to meet.
    criteria: Vec<String>,
    /// The project's own prompt template for the role.
    prompt_template: Option<String>,
}

fn prepare_task(context: &EffectContext, task_key: &Key, agent_task: &AgentTask) -> Result<PreparedTask, String> {
    let review_brief = agent_task.brief.as_review();
    if let WorkspaceKind::Development { workspace: workspace_name } = &agent_task.place {
        // A review shows its subject as it was frozen, which a workspace that agents change cannot do.
        if review_brief.is_some() {
            return Err("a review does not take place in a workspace for development".to_string());
        }
        let workspace =
            context.find_development_workspace(workspace_name).map_err(|fault| fault.to_string()).map(Box::new)?;
        // A process that was killed may have left commits of its agent.
        take_back_commits(context, &workspace).map(drop).map_err(|fault| fault.to_string())?;
        let guarded_files = workspace.read_guarded_files().map_err(|cause| cause.to_string())?.map(Box::new);
        if workspace.is_in_place() {
            workspace.mark_unfrozen().map_err(|cause| cause.to_string())?;
        }
        return Ok(PreparedTask {
            agent_workspace: AgentWorkspace::Development { workspace, guarded_files },
            project_watch: None,
            subject_text: String::new(),
            criteria: Vec::new(),
            prompt_template: None,
        });
    }
    let workspace = open_workspace(context, task_key, agent_task)?;
    let (subject_text, prompt_template) = match review_brief {
        Some(ReviewBrief { subject, role, .. }) => {
            let subject_text = read_subject_text(&workspace, subject)
                .map_err(|cause| format!("could not read {} in its workspace: {cause}", subject.title()))?;
            (subject_text, context.project.read_template(&prompt::template_file_name(*role))?)
        }
        None => (String::new(), None),
    };
    // The acceptance criteria are optional: a story that cannot be read never makes a task fail.
    let criteria =
        review_brief.map(|brief| read_acceptance_criteria(&workspace, context, &brief.subject)).unwrap_or_default();
    Ok(PreparedTask {
        criteria,
        agent_workspace: AgentWorkspace::Copy { workspace },
        project_watch: None,
        subject_text,
        prompt_template,
    })
}

/// Creates the workspace of a task: a copy of a frozen one, or of the project as it is.
fn open_workspace(context: &EffectContext, task_key: &Key, agent_task: &AgentTask) -> Result<TaskWorkspace, String> {
    let subject = agent_task.brief.as_review().map(|brief| &brief.subject);
    let workspace = match &agent_task.place {
        WorkspaceKind::Frozen { by: frozen_key } => {
            let frozen = TaskWorkspace::from_directory(context.project.task_dir(&context.run_id, frozen_key));
            if !frozen.is_complete() {
                return Err(format!("the workspace {} is gone", frozen.directory().display()));
            }
            let workspace = reader_workspace(context, task_key);
            workspace.copy_frozen(&frozen).map_err(|cause| format!("could not copy the workspace: {cause}"))?;
            workspace
        }
        WorkspaceKind::Private => {
            // A private workspace gets no git: a `git reset` in it would become part of the patch.
            let workspace = next_attempt_workspace(context.project.task_dir(&context.run_id, task_key));
            let creation = create_private_workspace(context, &workspace, subject).and_then(|()| workspace.remove_git());
            creation.map_err(|cause| format!("could not create a workspace: {cause}"))?;
            workspace
        }
        WorkspaceKind::Development { workspace } => return Err(format!("`{workspace}` is no copy of the project")),
    };
    if !workspace.is_complete() {
        return Err(format!("the workspace {} is gone", workspace.directory().display()));
    }
    Ok(workspace)
}

/// Creates a private copy of the project. A task without a subject gets as much of the project as fits.
fn create_private_workspace(
    context: &EffectContext,
    workspace: &TaskWorkspace,
    subject: Option<&Subject>,
) -> io::Result<()> {
    if let Some(change) = subject.and_then(Subject::code_change) {
        freeze::create_change_workspace(context, workspace, change)?;
        let diff_text = change_diff::diff_change(context, workspace, change)?;
        return fs::write(workspace.directory().join(change_diff::DIFF_FILE), diff_text);
    }
    let subject_files: Vec<String> = subject.into_iter().flat_map(Subject::file_paths).map(String::from).collect();
    let project_root = context.project.tree_root();
    workspace
        .create(&WorkspaceSource {
            project_root,
            subject_files: &subject_files,
            stored_tree: None,
            seed_paths: &context.seed_paths(),
        })
        .map(drop)
}

/// Reads the story's acceptance criteria from the workspace; a story that git ignores is read from the project.
fn read_acceptance_criteria(workspace: &TaskWorkspace, context: &EffectContext, subject: &Subject) -> Vec<String> {
    let Some(story_path) = subject.code_change().and_then(|change| change.story.as_ref()) else {
        return Vec::new();
    };
    if !is_plain_path(story_path) {
        return Vec::new();
    }
    // The path comes from the journal, so it could lead to a link, a device or a huge file by now. Those are not read.
    let is_readable_file = |story_file: &Path| {
        fs::symlink_metadata(story_file).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_SUBJECT_BYTES)
    };
    let read_story = |directory: &Path| {
        Some(directory.join(story_path)).filter(|story_file| is_readable_file(story_file)).map(fs::read_to_string)?.ok()
    };
    let story_text = read_story(&workspace.tree_dir()).or_else(|| read_story(context.project.tree_root()));
    story_text.map(|story_text| tribunal_bmad::read_criteria(&story_text)).unwrap_or_default()
}

/// Reads what the prompt shows: the text of the one file, or the diff of the change.
fn read_subject_text(workspace: &TaskWorkspace, subject: &Subject) -> io::Result<String> {
    let Some(subject_path) = subject.file_path() else { return change_diff::read_stored_diff(workspace) };
    let bytes =
        workspace.read_base(subject_path)?.ok_or_else(|| io::Error::other(format!("{subject_path} is missing")))?;
    change_diff::decode_utf8(subject_path, bytes)
}

/// Returns the workspace of a task that only reads. All attempts have the same directory, because clients find a session by
/// it; each attempt gets new content, so that no agent finds what the one before it wrote.
fn reader_workspace(context: &EffectContext, attempt_key: &Key) -> TaskWorkspace {
    let task_dir = context.project.task_dir(&context.run_id, &attempt_key.task_key());
    TaskWorkspace::from_directory(task_dir.join("1"))
}

/// A single call of an agent.
struct AgentInvocation<'c> {
    task_key: &'c Key,
    task: &'c AgentTask,
    prompt: String,
    /// Whether the prompt begins with a command of the client.
    is_command: bool,
    conversation: SessionMode<'c>,
    usage_meter: Arc<UsageMeter>,
}

fn build_command(
    context: &EffectContext,
    driven_agent: &DrivenAgent,
    agent_workspace: &AgentWorkspace,
    agent_call: AgentInvocation<'_>,
) -> io::Result<(ProcessCommand, Option<PrivateTmp>)> {
    let AgentInvocation { task_key, task: agent_task, prompt, is_command, conversation, usage_meter } = agent_call;
    let directory = agent_workspace.directory();
    let scratch_dir = scratch_dir(context, task_key);
    let secret_variables = find_secret_variables(&context.masker, text_variables());
    let order = LaunchRequest {
        task_key,
        prompt,
        is_command,
        expects: agent_task.expects,
        job: agent_task.job,
        access: agent_task.workspace_access(),
        size: agent_task.size,
        budget: agent_task.budget,
        is_sandboxed: context.sandbox_policy().is_enforced(),
        secret_variables: &secret_variables.names,
        scratch_dir: &scratch_dir,
        session_mode: conversation,
    };
    let launch = driven_agent.build_launch(order, &context.launch_env);
    for (file_path, file_text) in &launch.input_files {
        fs::create_dir_all(file_path.parent().unwrap_or(file_path))?;
        // A client's settings may contain credentials.
        atomic_files::write_privately(file_path, file_text.as_bytes())?;
    }
    let mut command = context.new_command(launch.program, launch.args, directory.clone());
    command.extra_env.extend(launch.env.into_iter().map(|(variable, value)| (variable, value.into())));
    command.extra_env.extend(agent_workspace.committer_variable());
    command.removed_env.extend(launch.removed_variables);
    // Agents that review or repair run neither the software nor its tests.
    if agent_task.workspace_access() < AgentAccess::Develop {
        command.removed_env.extend(secret_variables.service_names);
    }
    command.stdin_bytes = launch.stdin_text.into_bytes();
    command.deadlines = Deadlines {
        total: Duration::from_millis(agent_task.timeout_ms),
        idle: Duration::from_millis(context.settings.tasks.idle_timeout_ms),
        ..command.deadlines
    };
    command.output_limits.on_stdout =
        Some(progress_lines::watch_output(context, driven_agent, task_key, &directory, usage_meter));
    let purpose = SandboxPurpose::Agent {
        access: agent_task.workspace_access(),
        workspace: &agent_workspace.writable_dir(),
        scratch_dir: &scratch_dir,
        client: driven_agent.client(),
    };
    let private_tmp = context.sandbox_policy().restrict_command(&mut command, purpose)?;
    Ok((command, private_tmp))
}

/// The environment that processes inherit from this one, as far as it is text.
fn text_variables() -> impl Iterator<Item = (String, String)> {
    env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Chooses how to continue a conversation. One that an earlier process had begun to continue may have moved on, so it is
/// branched and left as it is.
fn choose_conversation(agent_task: &AgentTask, unfinished_attempts: u32) -> SessionMode<'_> {
    match &agent_task.session {
        None => SessionMode::New,
        Some(session) if unfinished_attempts > 0 => SessionMode::Fork(session),
        Some(session) => SessionMode::Resume(session),
    }
}
