//! `tribunal hook EVENT`: what a client asks at certain moments of a session that a person has open.
//!
//! It always exits with 0 and always answers with JSON: any other exit code could trap a session or break a tool call. What is
//! wrong is said on standard error, and the session goes on as if nobody had been asked. It does as little as possible on the
//! way: no arguments parser, no settings beyond its own, no journal where no state file asks for one.

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

/// What `hook` is told on its command line; here only for the help pages, since nothing may fail before it answers.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The moment
    #[arg(value_parser = HookEvent::ALL.map(HookEvent::word))]
    event: String,
    /// Whose session it is
    #[arg(long, default_value = HookClient::words().remove(0), value_parser = PossibleValuesParser::new(HookClient::words()))]
    client: String,
}

/// Compiling the masks takes a moment: only where somebody's words go into the journal.
fn masked(text: &str) -> String {
    if text.is_empty() { String::new() } else { masker().mask(text).into_owned() }
}

/// More than this no client says.
const LONGEST: u64 = 256 << 20;

/// One call of a hook.
struct Call {
    client: HookClient,
    event: HookEvent,
    input: Input,
    project: Project,
    settings: HookSettings,
}

/// Answers, if this is a call of a hook and not of its help.
pub(crate) fn enter(typed: &[OsString]) -> Option<ExitCode> {
    let words: Vec<String> = typed.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let at = command_at(&words)?;
    if words[at] != "hook" || words.iter().any(|word| matches!(word.as_str(), "-h" | "--help")) {
        return None;
    }
    // What stands before the command's name is for all commands.
    let rest: Vec<String> = words[..at].iter().chain(&words[at + 1..]).cloned().collect();
    let answer = std::panic::catch_unwind(AssertUnwindSafe(|| answer(&rest))).unwrap_or_else(|_| {
        say("something broke that never should; the session goes on");
        "{}\n".to_string()
    });
    let mut out = stdout().lock();
    let _ = out.write_all(answer.as_bytes()).and_then(|()| out.flush());
    Some(ExitCode::SUCCESS)
}

/// Where the command's name stands: whatever else is wrong with the line, a hook answers.
fn command_at(words: &[String]) -> Option<usize> {
    let mut at = 0;
    loop {
        match words.get(at)?.as_str() {
            "-C" | "--project" | "--color" => at += 2,
            flag if flag.starts_with('-') => at += 1,
            _ => return Some(at),
        }
    }
}

/// The same through the parser: it is never reached, since [`enter`] comes first.
pub(crate) fn run(arguments: &Arguments) -> u8 {
    let said = answer(&[arguments.event.clone(), "--client".into(), arguments.client.clone()]);
    let _ = stdout().write_all(said.as_bytes());
    0
}

/// On standard error, which clients show in their logs.
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
    drop(bytes);
    let answer = match input {
        // An agent of a run of ours answers for itself; its tasks are what they are.
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

/// What holds here. A slip in the settings keeps nobody from anything.
fn settings(project: &Project) -> HookSettings {
    hooks_of(project.root(), &Given::from_environment()).unwrap_or_else(|complaint| {
        say(&complaint.to_string());
        HookSettings::default()
    })
}

/// What was said on the command line.
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
            match word.split_once('=') {
                Some((_, value)) => Ok(value.to_string()),
                None => words.next().cloned().ok_or_else(|| format!("{flag} needs a value")),
            }
        };
        match word.split('=').next().unwrap_or_default() {
            "--client" => client = Some(value("--client")?.parse()?),
            "-C" | "--project" => project = Some(PathBuf::from(value("--project")?)),
            "--color" => drop(value("--color")?),
            "--json" => {}
            flag if flag.starts_with('-') => say(&format!("{flag} is not known here")),
            _ if event.is_none() => event = Some(word.parse()?),
            _ => say(&format!("{word} is not known here")),
        }
    }
    // The first client of the registry need not be named.
    let client = client.or_else(|| HookClient::all().next()).ok_or("whose session? Name it: --client")?;
    let event = event.ok_or_else(|| {
        format!("which moment? For instance: tribunal hook stop --client {}", client.word())
    })?;
    Ok(Parsed { event, client, project })
}

/// The folder of the project that has a state file, nearest first; else the project around.
fn project(named: Option<&Path>, input: &Input) -> Project {
    let here = std::env::current_dir().unwrap_or_default();
    let given = project_variables().filter_map(|name| std::env::var_os(name).map(PathBuf::from));
    let given = given.into_iter().find(|dir| dir.is_absolute());
    let said = Some(PathBuf::from(&input.cwd)).filter(|dir| dir.is_absolute());
    let folder = match named {
        Some(named) => return Project::at(here.join(named)),
        None => given.or(said).unwrap_or(here),
    };
    // From there up to the root of the project around it; what lies above is somebody else's.
    let around = Project::around(&folder);
    let has_one = |folder: &&Path| {
        [file::OURS, file::THEIRS].iter().any(|name| folder.join(name).symlink_metadata().is_ok())
    };
    let mut within = folder.ancestors().take_while(|folder| folder.starts_with(around.root()));
    let found = within.find(has_one).map(Project::at);
    found.unwrap_or(around)
}

impl Call {
    fn answer(&self) -> Answer {
        // Who does not say which session it is cannot be told from any other.
        if self.input.session.is_empty() {
            return Answer::Allow { say: None };
        }
        match self.event {
            HookEvent::Stop => self.stop(),
            // Who works for a session is never held for it.
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
