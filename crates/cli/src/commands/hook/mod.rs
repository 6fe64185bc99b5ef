//! `tribunal hook EVENT`: answers what a client asks at certain points of a session that the user has open.
//!
//! The hook always exits with 0 and always answers with JSON: any other exit code could trap a session or break a
//! tool call. Problems are reported on standard error, and the session goes on as if there were no hook. The hook
//! does as little as possible on the way: no argument parser, no settings beyond its own, and no journal unless a
//! state file asks for one.

mod moments;
mod steps;
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
    hook::{Answer, HookClient, HookEvent, Input},
};
use tribunal_report::escaped;
use tribunal_runner::{Project, session::file};

use crate::{
    context::masker,
    settings::{Given, HookSettings, hooks_of},
};

/// The arguments of `hook`, declared for the help pages only: a parser could fail before there is an answer.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The moment
    #[arg(value_parser = HookEvent::ALL.map(HookEvent::word))]
    event: String,
    /// Whose session it is
    #[arg(long, default_value = HookClient::words().remove(0), value_parser = PossibleValuesParser::new(HookClient::words()))]
    client: String,
}

/// Masks secrets. Compiling the patterns takes a moment, so this is called only for text that goes into the journal.
fn masked(text: &str) -> String {
    if text.is_empty() { String::new() } else { masker().mask(text).into_owned() }
}

/// No client sends more than this; the limit keeps a broken one from filling the memory.
const LONGEST: u64 = 256 << 20;

/// One call of the hook, with everything its answer depends on.
struct Call {
    client: HookClient,
    event: HookEvent,
    input: Input,
    project: Project,
    settings: HookSettings,
}

/// Answers if this is a call of the hook, and returns `None` for any other command and for the hook's help.
pub(crate) fn enter(typed: &[OsString]) -> Option<ExitCode> {
    // A lossy conversion is enough: the names that matter are ASCII, and a hook must not fail on the rest.
    let words: Vec<String> = typed.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let at = command_at(&words)?;
    if words[at] != "hook" || words.iter().any(|word| matches!(word.as_str(), "-h" | "--help")) {
        return None;
    }
    // Global options may stand before the command's name, so they are parsed together with the hook's own.
    let rest: Vec<String> = words[..at].iter().chain(&words[at + 1..]).cloned().collect();
    // Even a panic must end in an answer, or the client would wait or report a broken hook.
    let answer = std::panic::catch_unwind(AssertUnwindSafe(|| answer(&rest))).unwrap_or_else(|_| {
        say("something broke that never should; the session goes on");
        "{}\n".to_string()
    });
    let mut out = stdout().lock();
    // The client may have gone away already, and then there is no place to report an error to.
    let _ = out.write_all(answer.as_bytes()).and_then(|()| out.flush());
    Some(ExitCode::SUCCESS)
}

/// Finds the command's name without a parser, because the hook answers even if the rest of the line is wrong.
fn command_at(words: &[String]) -> Option<usize> {
    let mut at = 0;
    loop {
        match words.get(at)?.as_str() {
            // These options take a value in the next argument.
            "-C" | "--project" | "--color" => at += 2,
            flag if flag.starts_with('-') => at += 1,
            _ => return Some(at),
        }
    }
}

/// Answers through the argument parser. This is not reached in practice, since [`answer_if_hook`] comes first.
pub(crate) fn run(arguments: &Arguments) -> u8 {
    let said = answer(&[arguments.event.clone(), "--client".into(), arguments.client.clone()]);
    let _ = stdout().write_all(said.as_bytes());
    0
}

/// Writes a message to standard error, which clients show in their logs.
fn say(text: &str) {
    let _ = writeln!(stderr(), "tribunal hook: {}", escaped(text));
}

fn answer(words: &[String]) -> String {
    let Parsed { event, client, project: named } = match parse(words) {
        Ok(parsed) => parsed,
        Err(why) => {
            say(&why);
            return "{}\n".to_string();
        }
    };
    let mut bytes = Vec::new();
    let read = stdin().lock().take(LONGEST).read_to_end(&mut bytes);
    let input = read.map_err(|cause| cause.to_string()).and_then(|_| Input::read(client, event, &bytes));
    // The raw input can be large, and it is not needed while the answer is worked out.
    drop(bytes);
    let answer = match input {
        // Agents of Tribunal's own runs are never held: their tasks end on their own terms.
        Ok(_) if std::env::var_os("TRIBUNAL_RUN").is_some() => Answer::Allow { say: None },
        Ok(input) => {
            let project = project(named.as_deref(), &input);
            let settings = settings(&project);
            let call = Call { client, event, input, project, settings };
            call.answer()
        }
        Err(why) => {
            say(&format!("what the client said cannot be read: {why}"));
            Answer::Allow { say: None }
        }
    };
    answer.render(client, event)
}

/// Loads the settings of hooks. A mistake in them is reported and the defaults are used, so that it cannot block a
/// session.
fn settings(project: &Project) -> HookSettings {
    hooks_of(project.root(), &Given::from_environment()).unwrap_or_else(|complaint| {
        say(&complaint.to_string());
        HookSettings::default()
    })
}

/// What the command line of a hook says.
struct Parsed {
    event: HookEvent,
    client: HookClient,
    project: Option<PathBuf>,
}

fn parse(words: &[String]) -> Result<Parsed, String> {
    let (mut event, mut client, mut project) = (None, None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = |flag: &str| -> Result<String, String> {
            // Both `--client NAME` and `--client=NAME` are accepted, as the real parser would.
            match word.split_once('=') {
                Some((_, value)) => Ok(value.to_string()),
                None => words.next().cloned().ok_or_else(|| format!("{flag} needs a value")),
            }
        };
        match word.split('=').next().unwrap_or_default() {
            "--client" => client = Some(value("--client")?.parse()?),
            "-C" | "--project" => project = Some(PathBuf::from(value("--project")?)),
            "--color" => drop(value("--color")?),
            // The flag is for all commands; hooks answer in JSON anyway.
            "--json" => {}
            // Unknown arguments are reported and skipped: a newer client's extra flag must not break the hook.
            flag if flag.starts_with('-') => say(&format!("{flag} is not known here")),
            _ if event.is_none() => event = Some(word.parse()?),
            _ => say(&format!("{word} is not known here")),
        }
    }
    // The first client of the registry is the default.
    let client = client.or_else(|| HookClient::all().next()).ok_or("whose session? Name it: --client")?;
    let event = event.ok_or_else(|| {
        format!("which moment? For instance: tribunal hook stop --client {}", client.word())
    })?;
    Ok(Parsed { event, client, project })
}

/// Finds the project: the nearest directory with a state file, else the project around the working directory.
fn project(named: Option<&Path>, input: &Input) -> Project {
    let here = std::env::current_dir().unwrap_or_default();
    let given = project_variables().filter_map(|name| std::env::var_os(name).map(PathBuf::from));
    // Relative paths are ignored, since it is not known what they are relative to.
    let given = given.into_iter().find(|dir| dir.is_absolute());
    let said = Some(PathBuf::from(&input.cwd)).filter(|dir| dir.is_absolute());
    let folder = match named {
        Some(named) => return Project::at(here.join(named)),
        // The client's own variable is the most reliable, then its input; the process may run anywhere.
        None => given.or(said).unwrap_or(here),
    };
    // The search ends at the root of the enclosing project: what lies above it belongs to another one.
    let around = Project::around(&folder);
    let has_one = |folder: &&Path| {
        // A link counts as it is, even if its target is missing; the state file's reader reports that.
        [file::OURS, file::THEIRS].iter().any(|name| folder.join(name).symlink_metadata().is_ok())
    };
    let mut within = folder.ancestors().take_while(|folder| folder.starts_with(around.root()));
    let found = within.find(has_one).map(Project::at);
    found.unwrap_or(around)
}

impl Call {
    fn answer(&self) -> Answer {
        // Without a session id this session cannot be told from any other one.
        if self.input.session.is_empty() {
            return Answer::Allow { say: None };
        }
        match self.event {
            HookEvent::Stop => self.stop(),
            // A sub-agent works for a session and is never held in its place.
            HookEvent::SubagentStop => Answer::Allow { say: None },
            HookEvent::SessionStart => self.session_start(),
            HookEvent::SessionEnd => self.session_end(),
            HookEvent::PreToolUse => self.pre_tool_use(),
            HookEvent::PostToolUse => self.post_tool_use(),
            HookEvent::PreCompact => self.pre_compact(),
            HookEvent::UserPromptSubmit => self.user_prompt_submit(),
        }
    }

    fn stale_after(&self) -> Duration {
        self.settings.stale_after
    }
}
