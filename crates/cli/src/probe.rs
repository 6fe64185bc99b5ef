//! Asks a client for its version and who is signed in. Nothing that is asked here costs anything.
//!
//! Each question has a short timeout and runs in an empty directory, so that nothing of the project is seen or run.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::future::join_all;
use serde::{Serialize, Serializer};
use tribunal_agents::clients::{
    AgentClient, AgentFacts, SignIn, StatusOutput, Version, quieting_variables, read_version,
};
use tribunal_core::{settings::Settings, text::cut};
use tribunal_supervise::{Command, Deadlines, How, Output, own_program, run};

use crate::{
    clients::{Present, keys_set, on_path},
    complaint::{Complaint, ENVIRONMENT},
};

/// Before a run the user should not wait long for an answer.
const SOON: Duration = Duration::from_secs(5);

/// The state of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// The client can probably be used.
    Unsure {
        why: String,
    },
    /// The client is signed in to a provider of its own, which it does not report.
    Elsewhere {
        why: String,
    },
    NotThere,
    /// The project names the program, and the user has not trusted it: it was not started.
    Untrusted,
    /// The client does not even report its version.
    Broken {
        why: String,
    },
    TooOld,
    NotSignedIn,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.word())
    }
}

impl State {
    /// Returns whether it makes sense to give the client work.
    pub fn can_work(&self) -> bool {
        matches!(self, State::Ready | State::Unsure { .. } | State::Elsewhere { .. })
    }

    fn word(&self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Unsure { .. } | State::Elsewhere { .. } => "unsure",
            State::NotThere => "not installed",
            State::Untrusted => "not trusted",
            State::Broken { .. } => "does not work",
            State::TooOld => "too old",
            State::NotSignedIn => "not signed in",
        }
    }
}

/// What a client reported about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probed {
    pub state: State,
    pub version: Option<Version>,
    /// What the user is signed in with, and whether a plan pays.
    pub signed_in: Option<(String, bool)>,
}

impl Probed {
    pub fn unasked(state: State) -> Probed {
        Probed { state, version: None, signed_in: None }
    }
}

/// How clients are asked.
#[derive(Clone, Debug)]
pub(crate) struct Manner<'a> {
    /// An empty directory.
    pub folder: &'a Path,
    pub limit: Duration,
    /// Names of the client's key variables that are set.
    pub set: Vec<&'static str>,
    /// A provider in the client's own settings, about which its sign-in command knows nothing.
    pub provider: Option<String>,
}

/// Asks a client for its version and its sign-in.
pub(crate) async fn probe(client: AgentClient, program: &Path, manner: &Manner<'_>) -> Probed {
    let broken = |why| Probed::unasked(State::Broken { why });
    let said = match ask(program, client.agent.version_args, manner).await {
        Ok(said) => said,
        Err(why) => return broken(why),
    };
    // Some clients print their version on standard error.
    let Some(version) = read_version(&said.stdout).or_else(|| read_version(&said.stderr)) else {
        let last = last_line(&said.stderr, &said.stdout);
        let code = said.code.filter(|code| *code != 0).map(|code| format!(", exit code {code}"));
        let asked = client.agent.version_args.join(" ");
        return broken(format!("{asked} names no version{}{last}", code.unwrap_or_default()));
    };
    let probed = |state, signed_in| Probed { state, version: Some(version), signed_in };
    // The sign-in command of an old client may not exist or may mean something else.
    if version < client.agent.minimum {
        return probed(State::TooOld, None);
    }
    let question = client.agent.sign_in_args.join(" ");
    match ask(program, client.agent.sign_in_args, manner).await {
        // A client that has a version but no working sign-in command may still work.
        Err(why) => probed(State::Unsure { why: format!("{question}: {why}") }, None),
        Ok(said) => {
            let said = StatusOutput { stdout: &said.stdout, stderr: &said.stderr };
            match client.read_sign_in(said, &manner.set) {
                SignIn::In { how, subscription } => probed(State::Ready, Some((how, subscription))),
                SignIn::Out => match &manner.provider {
                    // Whether that provider accepts the client shows only when it is used.
                    Some(how) => {
                        let why =
                            format!("it asks a provider of its own ({how}), which it says nothing about");
                        probed(State::Elsewhere { why }, None)
                    }
                    None => probed(State::NotSignedIn, None),
                },
                SignIn::Unknown => {
                    let last = last_line(said.stderr, said.stdout);
                    let why = format!("{question} does not say who is signed in{last}");
                    probed(State::Unsure { why }, None)
                }
            }
        }
    }
}

/// The last line that the client printed, to be appended to a sentence.
fn last_line(stderr: &str, stdout: &str) -> String {
    let mut lines = stderr.lines().chain(stdout.lines()).map(str::trim);
    lines.rfind(|line| !line.is_empty()).map(|line| format!(": {}", cut(line, 120))).unwrap_or_default()
}

/// What a program printed.
#[derive(Debug)]
pub(crate) struct Heard {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a program with the given arguments in the empty directory.
pub(crate) async fn ask(program: &Path, args: &[&str], manner: &Manner<'_>) -> Result<Heard, String> {
    let command = Command {
        program: program.as_os_str().to_owned(),
        args: args.iter().map(OsString::from).collect(),
        folder: manner.folder.to_path_buf(),
        // Clients must neither update themselves nor report home while they are asked.
        env: quieting_variables().map(|name| (name.to_string(), OsString::from("1"))).collect(),
        without: Vec::new(),
        input: Vec::new(),
        deadlines: Deadlines { total: manner.limit, idle: manner.limit },
        grace: Duration::from_millis(200),
        // A megabyte is far more than any of these answers.
        output: Output { flood: 1 << 20, ..Output::default() },
        keeper: own_program(),
        hold: Vec::new(),
        stop: None,
    };
    let ended = run(command).await.map_err(|error| error.to_string())?;
    let code = match ended.how {
        How::Exited(code) => Some(code),
        How::Killed(_) => None,
        How::TimedOut | How::Silent => {
            return Err(format!("no answer within {} s", manner.limit.as_secs()));
        }
        How::Flooded => return Err("it prints without end".to_string()),
        How::Stopped | How::Lost => return Err("it was ended".to_string()),
    };
    Ok(Heard { code, stdout: ended.stdout.text(), stderr: ended.stderr.text() })
}

/// Asks the installed clients that show no sign-in whether the user is signed in after all: with a keychain, for instance, or
/// through a cloud provider.
pub(crate) fn ask_sign_in(present: &mut [Present]) {
    let Some((runtime, folder)) = quiet() else { return };
    let variable = |name: &str| env::var_os(name);
    let asked = present.iter().map(|present| async {
        let path = present.path.as_deref().filter(|_| present.signed_in.is_none())?;
        let set = keys_set(present.client, &variable);
        let manner = Manner { folder: folder.path(), limit: SOON, set, provider: None };
        probe(present.client, path, &manner).await.signed_in.map(|(how, _)| how)
    });
    let found = runtime.block_on(join_all(asked));
    for (present, how) in present.iter_mut().zip(found) {
        // What shows without asking is more precise than the client's own words.
        present.signed_in = present.signed_in.take().or(how);
    }
}

/// Fails if a client of these runs is too old for the flags that it is given. What cannot be determined is no reason to stop.
pub(crate) fn require_versions<'a>(
    runs: impl Iterator<Item = (&'a Path, &'a Settings)>,
) -> Result<(), Complaint> {
    // Several agents may share one program, which is asked once.
    let mut programs: BTreeMap<PathBuf, AgentClient> = BTreeMap::new();
    for (root, settings) in runs {
        for agent in settings.agents.iter().chain(&settings.reserves) {
            let Some(spec) = agent.driver.client() else { continue };
            // A journal may come from a build with other clients; none of ours may silently replace a missing one.
            let client = AgentClient::find(spec.client.as_str()).map_err(|unknown| {
                Complaint::usage(format!("agent `{}`: {unknown}", agent.name))
                    .why("Nothing was started.")
                    .todo("name another agent (agents.use), then let the run take the settings as they are now: tribunal resume --reload")
            })?;
            let program = spec.program.as_deref().unwrap_or(client.program);
            if let Some(path) = found(root, program, &|name| env::var_os(name)) {
                programs.insert(path, client);
            }
        }
    }
    // Without a runtime or a temporary directory the check is skipped; the run itself reports such problems.
    let Some((runtime, folder)) = quiet().filter(|_| !programs.is_empty()) else { return Ok(()) };
    let manner = Manner { folder: folder.path(), limit: SOON, set: Vec::new(), provider: None };
    let asked = programs.iter().map(|(path, client)| async {
        let said = ask(path, client.agent.version_args, &manner).await.ok()?;
        read_version(&said.stdout).or_else(|| read_version(&said.stderr))
    });
    let versions = runtime.block_on(join_all(asked));
    for ((path, client), version) in programs.iter().zip(versions) {
        if let Some(version) = version.filter(|version| *version < client.agent.minimum) {
            let (name, AgentFacts { minimum, install, .. }) = (client.name, client.agent);
            return Err(Complaint::new(
                ENVIRONMENT,
                format!("{name} {version} is too old: {minimum} is needed"),
            )
            .why(format!("It is {}. Nothing was started.", path.display()))
            .todo(format!("bring it up to date: {install}")));
        }
    }
    Ok(())
}

/// Finds the program of a client. A program that is named by a path is relative to the project.
pub(crate) fn found(
    root: &Path,
    program: &str,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    match program.contains('/') {
        true => on_path(&root.join(program).display().to_string(), variable),
        false => on_path(program, variable),
    }
}

/// A runtime and an empty directory to ask clients in.
fn quiet() -> Option<(tokio::runtime::Runtime, tempfile::TempDir)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    Some((runtime, tempfile::tempdir().ok()?))
}

#[cfg(test)]
mod tests {
    use tribunal_core::{
        client::ClientSpec,
        settings::{AgentSpec, DriverSpec},
    };

    use super::*;

    #[test]
    fn a_client_that_only_the_journal_knows_is_an_error() {
        let mut settings = tribunal_testkit::samples::settings();
        settings.agents =
            vec![AgentSpec::new("theirs", DriverSpec::Client(ClientSpec::new("client-of-tomorrow")))];
        let pinned = serde_json::to_value(&settings).unwrap();
        let settings: Settings = serde_json::from_value(pinned).unwrap();
        let complaint = require_versions([(Path::new("."), &settings)].into_iter()).unwrap_err();
        assert_eq!(complaint.exit, 2);
        assert!(complaint.to_string().contains("agent `theirs`: there is no client `client-of-tomorrow`"));
    }
}
