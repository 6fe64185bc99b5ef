//! Asking a client what it is and who is signed in. Nothing that is asked here costs anything.
//!
//! Each question has a short time limit and runs in an empty folder, so that nothing of the project is seen or run.

use std::{ffi::OsString, path::Path, time::Duration};

use tribunal_agents::clients::{Client, Said, SignIn, Version, read_sign_in, read_version};
use tribunal_supervise::{Command, Deadlines, How, Output, own_program, run};

/// How a client is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// It could be used, as far as it can be told.
    Unsure {
        why: String,
    },
    NotThere,
    /// The project names the program, and nobody has trusted it: it was not started.
    Untrusted,
    /// It does not even say what version it is.
    Broken {
        why: String,
    },
    TooOld,
    NotSignedIn,
}

impl State {
    pub fn word(&self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Unsure { .. } => "unsure",
            State::NotThere => "not installed",
            State::Untrusted => "not trusted",
            State::Broken { .. } => "does not work",
            State::TooOld => "too old",
            State::NotSignedIn => "not signed in",
        }
    }
}

/// What a client said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probed {
    pub state: State,
    pub version: Option<Version>,
    /// By what, and whether a plan pays.
    pub signed_in: Option<(String, bool)>,
}

impl Probed {
    pub fn unasked(state: State) -> Probed {
        Probed { state, version: None, signed_in: None }
    }
}

/// How clients are asked.
#[derive(Clone, Debug)]
pub(super) struct Manner<'a> {
    /// An empty one.
    pub folder: &'a Path,
    pub limit: Duration,
    /// Names of the client's variables that are set.
    pub set: Vec<&'static str>,
    /// Its own settings name a provider of which its sign-in command knows nothing.
    pub provider: Option<String>,
}

pub(super) async fn probe(client: &Client, program: &Path, manner: &Manner<'_>) -> Probed {
    let broken = |why| Probed::unasked(State::Broken { why });
    let said = match ask(program, client.version_args, manner).await {
        Ok(said) => said,
        Err(why) => return broken(why),
    };
    let Some(version) = read_version(&said.stdout).or_else(|| read_version(&said.stderr)) else {
        return broken(format!("{} names no version", client.version_args.join(" ")));
    };
    let probed = |state, signed_in| Probed { state, version: Some(version), signed_in };
    if version < client.minimum {
        return probed(State::TooOld, None);
    }
    let question = client.sign_in_args.join(" ");
    match ask(program, client.sign_in_args, manner).await {
        Err(why) => probed(State::Unsure { why: format!("{question}: {why}") }, None),
        Ok(said) => {
            let said = Said { code: said.code, stdout: &said.stdout, stderr: &said.stderr };
            match read_sign_in(client, said, &manner.set) {
                SignIn::In { how, subscription } => probed(State::Ready, Some((how, subscription))),
                SignIn::Out => match &manner.provider {
                    Some(how) => {
                        probed(State::Unsure { why: format!("it asks a provider of its own: {how}") }, None)
                    }
                    None => probed(State::NotSignedIn, None),
                },
                SignIn::Unknown => {
                    probed(State::Unsure { why: format!("{question} does not say who is signed in") }, None)
                }
            }
        }
    }
}

/// What a program printed.
#[derive(Debug)]
pub(super) struct Heard {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

pub(super) async fn ask(program: &Path, args: &[&str], manner: &Manner<'_>) -> Result<Heard, String> {
    let switched_off = ["DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"];
    let command = Command {
        program: program.as_os_str().to_owned(),
        args: args.iter().map(OsString::from).collect(),
        folder: manner.folder.to_path_buf(),
        env: switched_off.map(|name| (name.to_string(), OsString::from("1"))).into(),
        without: Vec::new(),
        input: Vec::new(),
        deadlines: Deadlines { total: manner.limit, idle: manner.limit },
        grace: Duration::from_millis(200),
        output: Output { flood: 1 << 20, seen: None },
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
