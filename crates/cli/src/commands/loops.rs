//! `tribunal loop run|plan|status|cancel`: gives an agent the same task again and again, until it is done or a limit is reached.
//! [`headless`] starts agents of its own; with `--in-session` the task goes to a session that the user has open. A loop always
//! ends. [`plan`] makes the task of a BMAD project's stories, and [`board_sync`] moves the board when they are ticked.

mod board_sync;
mod headless;
mod plan;
mod plan_commit;
mod plan_files;
mod plan_stories;
mod ralph_project;
mod status;

use std::{
    io::{Read, Write, stdin},
    path::Path,
};

use tribunal_agents::clients::clients_with_sessions;
use tribunal_engine::{ids::RunId, text::truncate_chars};
use tribunal_report::escape_line;
use tribunal_runner::{
    Project,
    session::{
        self, SessionLookup,
        loop_runs::{self, LoopStart},
        state_file,
    },
};
use tribunal_workflows::session::{
    DEFAULT_MAX_REFUSALS, MAX_REFUSALS_LIMIT, ReleaseReason, SessionAssignment, SessionWork,
};

use super::session_loops::{describe_session, is_stop_hook_installed, load_stale_age};
use crate::{
    build_info,
    clients::{agent_session, installed_clients::join_names},
    commands::deferred::Deferred,
    context::CommandContext,
    messages::{
        json_documents::{self, LoopRow, LoopsDocument},
        user_errors::UserError,
    },
    settings::{SettingSources, resolve_reviews_dir},
    terminal::wrapped_output::wrapped_stdout,
    trust::{self, trust_item::TrustItem},
};

pub(super) use board_sync::report_plan_progress;
pub(crate) use headless::LoopRunArguments;
pub(crate) use plan::LoopPlanArguments;
#[cfg(test)]
pub(crate) use plan::LoopPlanDocument;
pub(super) use ralph_project::{LoopProject, loop_trust_items};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum LoopCommand {
    /// Run a loop until the task is done and the checks pass
    Run(Deferred<Box<LoopRunArguments>>),
    /// Write the stories of a BMAD project into a plan that `loop run` works on; run it again when stories change
    Plan(Deferred<LoopPlanArguments>),
    /// Show loops and session reviews, and their state
    Status(LoopStatusArguments),
    /// Cancel a loop and release its session
    Cancel(LoopCancelArguments),
}

#[derive(Debug, clap::Args)]
pub(crate) struct LoopStatusArguments {
    /// Loop or session review to show, with its history
    name: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LoopCancelArguments {
    /// Loop or session review to cancel (default: all that are active here)
    name: Option<String>,
}

pub(crate) fn run(loop_command: LoopCommand, context: &CommandContext) -> Result<u8, UserError> {
    match loop_command {
        LoopCommand::Run(arguments) if arguments.session.in_session => start_session_loop(*arguments.0, context),
        LoopCommand::Run(arguments) => headless::run_loop(*arguments.0, context),
        LoopCommand::Plan(plan_arguments) => plan::run_plan(&plan_arguments, context),
        LoopCommand::Status(status_arguments) => status::print_status(status_arguments.name.as_deref(), context),
        LoopCommand::Cancel(cancel_arguments) => cancel_loop(&cancel_arguments, context),
    }
}

/// Holds a session of the user to a task.
fn start_session_loop(arguments: LoopRunArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let session_flags = arguments.session;
    let session_id = match (session_flags.session, session_flags.next) {
        (Some(session_id), _) => session_id,
        // An empty id means the next session; it is filled in when that session sends its first prompt.
        (None, true) => String::new(),
        (None, false) => agent_session::current_session(context).ok_or_else(explain_missing_session)?,
    };
    let max_refusals = match arguments.max_iterations.unwrap_or(DEFAULT_MAX_REFUSALS) {
        max_refusals @ ..=MAX_REFUSALS_LIMIT => max_refusals,
        too_many => {
            return Err(UserError::usage(format!("a session can be sent back at most {MAX_REFUSALS_LIMIT} times"))
                .with_reason(format!("`--max-iterations {too_many}` was given.")));
        }
    };
    let prompt = match (&arguments.prompt, &arguments.prompt_file) {
        (Some(typed_prompt), _) => read_prompt(std::slice::from_ref(typed_prompt))?,
        (None, Some(prompt_file)) => headless::read_task_file(&project, &context.resolve_path(prompt_file))?.prompt,
        (None, None) => {
            return Err(UserError::usage("no task for the loop")
                .with_step("type it: `tribunal loop run --in-session -p \"Make all tests pass\"`"));
        }
    };
    // Everything is checked before the state file is written: a loop that starts must be able to run.
    check_prompt(&prompt)?;
    let promise = arguments.promise.map(|promise| check_promise(&promise)).transpose()?;
    let step_path = match session_flags.step {
        Some(step_path) => Some(check_step(&project, &step_path, context)?),
        None => None,
    };
    // The prompt is stored in the journal and in the state file, so secrets are masked first.
    let assignment = SessionAssignment {
        session: session_id,
        work: SessionWork::Loop,
        prompt: context.secret_masker().mask(&prompt).into_owned(),
        promise,
        max_refusals,
        step: step_path,
    };
    let stale_age = load_stale_age(&project)?;
    // A loop writes no files for the user, so settings that cannot be read are no reason to refuse it.
    let reviews_dir = resolve_reviews_dir(project.root(), &SettingSources::from_environment())
        .unwrap_or_else(|_| ".tribunal/reviews".to_string());
    let loop_start =
        LoopStart { assignment: assignment.clone(), reviews_dir, build: format!("tribunal {}", build_info::VERSION) };
    let run_id = loop_runs::start_loop(&project, loop_start, stale_age)?;
    if context.wants_json {
        // A loop that has just started is held by definition.
        let loop_row = LoopRow { held: true, ..build_row(&run_id, &assignment) };
        json_documents::print_document(&LoopsDocument { schema: "tribunal.loops/1", loops: vec![loop_row] })?;
        return Ok(0);
    }
    print_started_loop(&project, &run_id, &assignment)?;
    Ok(0)
}

/// Reads the prompt from the command line, or from standard input if it is `-` there.
fn read_prompt(prompt_words: &[String]) -> Result<String, UserError> {
    let mut prompt = prompt_words.join(" ");
    if prompt == "-" {
        prompt.clear();
        let mut prompt_bytes = Vec::new();
        // One byte more than allowed is read, so that a longer prompt is refused and not cut.
        stdin().lock().take(MAX_PROMPT_BYTES as u64 + 1).read_to_end(&mut prompt_bytes)?;
        prompt = String::from_utf8(prompt_bytes).map_err(|_| UserError::usage("the prompt is not valid UTF-8"))?;
    }
    Ok(prompt.trim().to_string())
}

/// Prints which session is held, what ends the loop and where its state is.
fn print_started_loop(project: &Project, run_id: &RunId, assignment: &SessionAssignment) -> Result<(), UserError> {
    let mut output = wrapped_stdout();
    let session_text = describe_session(&assignment.session);
    writeln!(output, "started loop {run_id} in {}", escape_line(&session_text))?;
    writeln!(output, "  limit    sent back at most {} times, then released", assignment.max_refusals)?;
    match &assignment.promise {
        Some(promise) => writeln!(output, "  promise  {}", escape_line(&assignment.work.tag_promise(promise)))?,
        None => writeln!(output, "  promise  none; only the limit ends it (set one with --promise TEXT)")?,
    }
    writeln!(output, "  prompt   {}", escape_line(&truncate_chars(&assignment.prompt, 300)))?;
    writeln!(output, "  state    {}", state_file::OWN_STATE_FILE)?;
    writeln!(output, "to end it sooner: tribunal loop cancel")?;
    // Without the hook the session is never sent back, and the user would wait for nothing.
    if !is_stop_hook_installed(project) {
        writeln!(output, "warning: Tribunal's stop hook is not installed here; install it with `tribunal init`")?;
    }
    Ok(())
}

/// The longest prompt; a model reads it each time it is sent back.
const MAX_PROMPT_BYTES: usize = 64 << 10;

fn check_prompt(prompt: &str) -> Result<(), UserError> {
    if prompt.is_empty() {
        return Err(
            UserError::usage("the prompt is empty").with_reason("A loop sends the session back to work with it.")
        );
    }
    if prompt.len() > MAX_PROMPT_BYTES {
        return Err(UserError::usage(format!("the prompt is longer than {} KB", MAX_PROMPT_BYTES >> 10))
            .with_reason("The session reads it in full each time it is sent back.")
            .with_step("write it into a file of the project and refer to that file in the prompt"));
    }
    Ok(())
}

/// Checks that a promise can be written between two tags.
fn check_promise(promise: &str) -> Result<String, UserError> {
    let promise = promise.trim();
    // `null` and `~` would be read back from the state file as no promise at all.
    if promise.is_empty() || promise.contains(['<', '>', '`']) || matches!(promise, "null" | "~") {
        return Err(UserError::usage(format!("`{promise}` cannot be used as a promise"))
            .with_reason("The text between <promise> and </promise> must be a few words without tags.")
            .with_step("for example: `--promise DONE`"));
    }
    Ok(promise.to_string())
}

/// Checks that a file has hooks and that they may run here.
fn check_step(project: &Project, typed_path: &Path, context: &CommandContext) -> Result<String, UserError> {
    let step_path =
        tribunal_runner::project::subject::relative_to_root(project.root(), &context.resolve_path(typed_path))?;
    let step_text = tribunal_runner::project::subject::load_subject(project.root(), &step_path)?;
    let hooks = tribunal_bmad::hooks::read_hooks(&step_path, &step_text);
    // With a broken front matter it is unknown which hooks were meant, so the loop is refused as a whole.
    if let Some(problem) = hooks.problems.first() {
        return Err(UserError::usage(problem.to_string()).with_reason("No loop was started."));
    }
    if hooks.hooks.is_empty() {
        return Err(UserError::usage(format!("{step_path} has no hooks in its front matter"))
            .with_reason("`--step` expects a file whose hooks run in the session.")
            .with_step("leave out `--step`, or add hooks to the file: `hooks: {PreToolUse: [{command: …}]}`"));
    }
    // Trust is asked for now: while the hook runs, there is no terminal to ask on.
    trust::require_trust(context, project.root(), &TrustItem::from_hooks(&step_path, &hooks))?;
    Ok(step_path)
}

fn explain_missing_session() -> UserError {
    UserError::usage("this command was not run inside an agent session")
        .with_reason(format!(
            "{} tell the commands they run which session they belong to; a plain terminal does not.",
            join_names(&clients_with_sessions(), "and")
        ))
        .with_step("run it inside the session (in Claude Code: `! tribunal loop run --in-session …`)")
        .with_step("or name the session: `--session ID`")
        .with_step("or use the next session in which you type something here: `--next`")
}

fn build_row(run_id: &RunId, assignment: &SessionAssignment) -> LoopRow {
    LoopRow {
        id: run_id.clone(),
        work: assignment.work,
        session: assignment.session.clone(),
        held: false,
        let_go: None,
        detail: String::new(),
        refusals: 0,
        max_refusals: assignment.max_refusals,
        tools: 0,
        last: String::new(),
    }
}

fn cancel_loop(arguments: &LoopCancelArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let stale_age = load_stale_age(&project)?;
    let mut released_names = Vec::new();
    for state_name in [state_file::OWN_STATE_FILE, state_file::RALPH_STATE_FILE] {
        let Ok(state_text) = std::fs::read_to_string(project.root().join(state_name)) else { continue };
        let file_state = state_file::StateFile::parse_state(&state_text).ok();
        let loop_name = file_state.as_ref().and_then(|file_state| file_state.run_id.as_ref()).map(ToString::to_string);
        // With a name only that loop is cancelled, without one all that is held here.
        if let (Some(wanted_name), loop_name) = (&arguments.name, &loop_name)
            && loop_name.as_ref() != Some(wanted_name)
        {
            continue;
        }
        // A broken file has no session id; `look_up_session` then moves it away and reports that it holds no session.
        let session_id = file_state.map(|file_state| file_state.session_id).unwrap_or_default();
        match session::look_up_session(&project, &session_id, session::current_wall_ms(), stale_age) {
            SessionLookup::HeldHere(mut bound_session) if bound_session.state_file == state_name => {
                bound_session.release_session(
                    &project,
                    ReleaseReason::Person,
                    "tribunal loop cancel",
                    session::current_wall_ms(),
                )?;
                released_names.push(loop_name.unwrap_or_else(|| state_name.to_string()));
            }
            // The file is broken or stale. `look_up_session` has moved it away already, unless it could not be read.
            SessionLookup::NotHeld(_) => {
                if project.root().join(state_name).exists() {
                    session::set_state_file_aside(&project, state_name)?;
                }
                released_names.push(loop_name.unwrap_or_else(|| state_name.to_string()));
            }
            _ => {}
        }
    }
    // An unknown name is an error, nothing to cancel is not: the wanted state is reached.
    if let (Some(wanted_name), true) = (&arguments.name, released_names.is_empty()) {
        return Err(UserError::usage(format!("no active loop or session review named `{wanted_name}`"))
            .with_step("list all: `tribunal loop status`"));
    }
    if context.wants_json {
        return status::print_status(arguments.name.as_deref(), context);
    }
    if released_names.is_empty() {
        writeln!(wrapped_stdout(), "nothing to cancel; list all loops with `{} loop status`", context.program_name())?;
    } else {
        for released_name in &released_names {
            writeln!(wrapped_stdout(), "✓ {}: session released; its changes are kept", escape_line(released_name))?;
        }
    }
    Ok(0)
}
