//! `tribunal hook EVENT`: answers what a client asks at certain points of a session that the user has open.
//!
//! The hook always exits with 0 and always answers with JSON: any other exit code could trap a session or break a
//! tool call. Problems are reported on standard error, and the session goes on as if there were no hook. The hook
//! does as little as possible on the way: no argument parser, no settings beyond its own, and no journal unless a
//! state file asks for one.

mod session_events;
mod step_hooks;
mod stop;
mod tools;

use std::{
    ffi::OsString,
    io::{Read, Write, stderr, stdin, stdout},
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::builder::PossibleValuesParser;
use tribunal_agents::{
    clients::project_variables,
    hook::{HookAnswer, HookClient, HookEvent, HookInput},
};
use tribunal_report::escape_line;
use tribunal_runner::{Project, session::state_file};

use crate::{
    clients::enclosing_run::find_enclosing_run,
    context::env_masker,
    settings::{HookSettings, SettingSources, resolve_hook_settings},
};

/// The arguments of `hook`, declared for the help pages only: a parser could fail before there is an answer.
#[derive(Debug, clap::Args)]
pub(crate) struct HookArguments {
    /// Event to answer
    #[arg(value_parser = HookEvent::ALL.map(HookEvent::name))]
    event: String,
    /// Client whose session it is
    #[arg(long, default_value = HookClient::all_ids().remove(0), value_parser = PossibleValuesParser::new(HookClient::all_ids()))]
    client: String,
}

/// Masks secrets. Compiling the patterns takes a moment, so this is called only for text that goes into the journal.
fn mask_text(raw_text: &str) -> String {
    if raw_text.is_empty() { String::new() } else { env_masker().mask(raw_text).into_owned() }
}

/// Input beyond this is not read, so that a broken client cannot fill the memory.
const MAX_INPUT_BYTES: u64 = 256 << 20;

/// One call of the hook, with everything its answer depends on.
struct HookCall {
    client: HookClient,
    event: HookEvent,
    hook_input: HookInput,
    project: Project,
    settings: HookSettings,
}

/// Answers if this is a call of the hook, and returns `None` for any other command and for the hook's help.
pub(crate) fn answer_if_hook(raw_arguments: &[OsString]) -> Option<ExitCode> {
    // A lossy conversion is enough: the names that matter are ASCII, and a hook must not fail on the rest.
    let arguments: Vec<String> =
        raw_arguments.iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let command_index = find_command_index(&arguments)?;
    if arguments[command_index] != "hook"
        || arguments.iter().any(|argument| matches!(argument.as_str(), "-h" | "--help"))
    {
        return None;
    }
    // Global options may stand before the command's name, so they are parsed together with the hook's own.
    let hook_arguments: Vec<String> =
        arguments[..command_index].iter().chain(&arguments[command_index + 1..]).cloned().collect();
    // Even a panic must end in an answer, or the client would wait or report a broken hook.
    let rendered_answer =
        std::panic::catch_unwind(AssertUnwindSafe(|| answer_call(&hook_arguments))).unwrap_or_else(|_| {
            log_message("internal error; the session continues");
            "{}\n".to_string()
        });
    let mut output = stdout().lock();
    // The client may have gone away already, and then there is no place to report an error to.
    let _ = output.write_all(rendered_answer.as_bytes()).and_then(|()| output.flush());
    Some(ExitCode::SUCCESS)
}

/// Finds the command's name without a parser, because the hook answers even if the rest of the line is wrong.
fn find_command_index(arguments: &[String]) -> Option<usize> {
    let mut index = 0;
    loop {
        match arguments.get(index)?.as_str() {
            // These options take a value in the next argument.
            "-C" | "--project" | "--color" => index += 2,
            flag if flag.starts_with('-') => index += 1,
            _ => return Some(index),
        }
    }
}

/// Answers through the argument parser. This is not reached in practice, since [`answer_if_hook`] comes first.
pub(crate) fn run(arguments: &HookArguments) -> u8 {
    let rendered_answer = answer_call(&[arguments.event.clone(), "--client".into(), arguments.client.clone()]);
    let _ = stdout().write_all(rendered_answer.as_bytes());
    0
}

/// Writes a message to standard error, which clients show in their logs.
fn log_message(message: &str) {
    let _ = writeln!(stderr(), "tribunal hook: {}", escape_line(message));
}

fn answer_call(arguments: &[String]) -> String {
    let HookCommandLine { event, client, project_dir: named_dir } = match parse_command_line(arguments) {
        Ok(command_line) => command_line,
        Err(reason) => {
            log_message(&reason);
            return "{}\n".to_string();
        }
    };
    let mut input_bytes = Vec::new();
    let read_result = stdin().lock().take(MAX_INPUT_BYTES).read_to_end(&mut input_bytes);
    let input =
        read_result.map_err(|cause| cause.to_string()).and_then(|_| HookInput::parse(client, event, &input_bytes));
    // The raw input can be large, and it is not needed while the answer is worked out.
    drop(input_bytes);
    let answer = match input {
        // Agents of Tribunal's own runs are never held: their tasks end on their own terms. An agent that clears its environment
        // must not be able to speak for a session of the user either.
        Ok(_) if std::env::var_os("TRIBUNAL_RUN").is_some() || find_enclosing_run().is_some() => {
            HookAnswer::Allow { user_message: None }
        }
        Ok(input) => {
            let project = find_project(named_dir.as_deref(), &input);
            let settings = load_hook_settings(&project);
            let hook_call = HookCall { client, event, hook_input: input, project, settings };
            hook_call.answer_event()
        }
        Err(reason) => {
            log_message(&format!("cannot read the input of the client: {reason}"));
            HookAnswer::Allow { user_message: None }
        }
    };
    answer.render(client, event)
}

/// Loads the settings of hooks. A mistake in them is reported and the defaults are used, so that it cannot block a
/// session.
fn load_hook_settings(project: &Project) -> HookSettings {
    resolve_hook_settings(project.root(), &SettingSources::from_environment()).unwrap_or_else(|user_error| {
        log_message(&user_error.to_string());
        HookSettings::default()
    })
}

/// What the command line of a hook says.
struct HookCommandLine {
    event: HookEvent,
    client: HookClient,
    project_dir: Option<PathBuf>,
}

fn parse_command_line(arguments: &[String]) -> Result<HookCommandLine, String> {
    let (mut event, mut client, mut project_dir) = (None, None, None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut take_value = |flag: &str| -> Result<String, String> {
            // Both `--client NAME` and `--client=NAME` are accepted, as the real parser would.
            match argument.split_once('=') {
                Some((_, value)) => Ok(value.to_string()),
                None => arguments.next().cloned().ok_or_else(|| format!("{flag} requires a value")),
            }
        };
        match argument.split('=').next().unwrap_or_default() {
            "--client" => client = Some(take_value("--client")?.parse()?),
            "-C" | "--project" => project_dir = Some(PathBuf::from(take_value("--project")?)),
            "--color" => drop(take_value("--color")?),
            // The flag is for all commands; hooks answer in JSON anyway.
            "--json" => {}
            // Unknown arguments are reported and skipped: they must not keep the hook from answering.
            flag if flag.starts_with('-') => log_message(&format!("unexpected option {flag}")),
            _ if event.is_none() => event = Some(argument.parse()?),
            _ => log_message(&format!("unexpected argument {argument}")),
        }
    }
    // The first client of the registry is the default.
    let client = client.or_else(|| HookClient::all().next()).ok_or("missing client; pass `--client NAME`")?;
    let event = event
        .ok_or_else(|| format!("missing event; for example: `tribunal hook stop --client {}`", client.client_id()))?;
    Ok(HookCommandLine { event, client, project_dir })
}

/// Finds the project: the nearest directory with a state file, else the project around the working directory.
fn find_project(named_dir: Option<&Path>, hook_input: &HookInput) -> Project {
    let working_dir = std::env::current_dir().unwrap_or_default();
    let client_dirs =
        project_variables().filter_map(|variable_name| std::env::var_os(variable_name).map(PathBuf::from));
    // Relative paths are ignored, since it is not known what they are relative to.
    let client_dir = client_dirs.into_iter().find(|dir| dir.is_absolute());
    let input_dir = Some(PathBuf::from(&hook_input.working_dir)).filter(|dir| dir.is_absolute());
    let directory = match named_dir {
        Some(named_dir) => return Project::from_root(working_dir.join(named_dir)),
        // The client's own variable is the most reliable, then its input; the process may run anywhere.
        None => client_dir.or(input_dir).unwrap_or(working_dir),
    };
    // The search ends at the root of the enclosing project: what lies above it belongs to another one.
    let enclosing_project = Project::find_around(&directory);
    let has_state_file = |directory: &&Path| {
        // A link counts as it is, even if its target is missing; the state file's reader reports that.
        [state_file::OWN_STATE_FILE, state_file::RALPH_STATE_FILE]
            .iter()
            .any(|file_name| directory.join(file_name).symlink_metadata().is_ok())
    };
    let mut project_ancestors =
        directory.ancestors().take_while(|ancestor| ancestor.starts_with(enclosing_project.root()));
    let bound_project = project_ancestors.find(has_state_file).map(Project::from_root);
    bound_project.unwrap_or(enclosing_project)
}

impl HookCall {
    fn answer_event(&self) -> HookAnswer {
        // Without a session id this session cannot be told from any other one.
        if self.hook_input.session_id.is_empty() {
            return HookAnswer::Allow { user_message: None };
        }
        match self.event {
            HookEvent::Stop => self.handle_stop(),
            // A sub-agent works for a session and is never held in its place.
            HookEvent::SubagentStop => HookAnswer::Allow { user_message: None },
            HookEvent::SessionStart => self.handle_session_start(),
            HookEvent::SessionEnd => self.handle_session_end(),
            HookEvent::PreToolUse => self.handle_pre_tool_use(),
            HookEvent::PostToolUse => self.handle_post_tool_use(),
            HookEvent::PreCompact => self.handle_pre_compact(),
            HookEvent::UserPromptSubmit => self.handle_user_prompt(),
        }
    }

    fn stale_age(&self) -> Duration {
        self.settings.stale_after
    }
}
