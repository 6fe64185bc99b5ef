//! Asks a client for its version and who is signed in. Nothing that is asked here costs anything.
//!
//! Each question has a short timeout and runs in an empty directory, so that nothing of the project is seen or run.

use std::{
    env,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::future::join_all;
use tribunal_agents::clients::{AgentClient, ClientVersion, SignInOutput, SignInStatus, find_version, probe_variables};
use tribunal_engine::text::truncate_chars;
use tribunal_json::{Node, ToJson};
use tribunal_supervise::{Deadlines, ExitReason, KeeperSetup, OutputLimits, ProcessCommand, run_process};

use crate::clients::{
    installed_clients::{InstalledClient, describe_custom_provider, keys_in_env},
    programs::{EnvLookup, ProgramProblem},
};

/// Long enough for a client on a machine that is busy with other work. One that hangs delays the run by this long.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(20);

/// The state of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientState {
    Ready,
    /// The client can probably be used.
    Unsure {
        reason: String,
    },
    /// The client is signed in to a provider of its own, which it does not report.
    OtherProvider {
        reason: String,
    },
    /// There is no program that could be started.
    Unstartable {
        problem: ProgramProblem,
    },
    /// The project names the program, and the user has not trusted it: it was not started.
    Untrusted,
    /// The client does not even report its version.
    Broken {
        reason: String,
    },
    TooOld,
    NotSignedIn,
}

impl fmt::Display for ClientState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.state_name())
    }
}

impl ToJson for ClientState {
    fn to_node(&self) -> Node<'_> {
        self.state_name().to_node()
    }
}

tribunal_json::serialize_by_json!(ClientState);

impl ClientState {
    /// Returns whether it makes sense to give the client work.
    pub fn can_work(&self) -> bool {
        matches!(self, ClientState::Ready | ClientState::Unsure { .. } | ClientState::OtherProvider { .. })
    }

    /// Returns whether the program does not exist at all.
    pub fn is_missing(&self) -> bool {
        matches!(self, ClientState::Unstartable { problem: ProgramProblem::NotFound { .. } })
    }

    fn state_name(&self) -> &'static str {
        match self {
            ClientState::Ready => "ready",
            ClientState::Unsure { .. } | ClientState::OtherProvider { .. } => "unsure",
            ClientState::Unstartable { problem: ProgramProblem::NotFound { .. } } => "not installed",
            ClientState::Unstartable { .. } => "cannot be started",
            ClientState::Untrusted => "not trusted",
            ClientState::Broken { .. } => "does not work",
            ClientState::TooOld => "too old",
            ClientState::NotSignedIn => "not signed in",
        }
    }
}

/// What a client reported about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbeResult {
    pub state: ClientState,
    pub version: Option<ClientVersion>,
    /// What the user is signed in with, and whether a plan pays.
    pub sign_in: Option<(String, bool)>,
}

impl ProbeResult {
    pub fn without_answer(state: ClientState) -> ProbeResult {
        ProbeResult { state, version: None, sign_in: None }
    }
}

/// How clients are asked.
#[derive(Clone, Debug)]
pub(crate) struct ProbeOptions<'a> {
    /// An empty directory.
    pub directory: &'a Path,
    pub timeout: Duration,
    /// Names of the client's key variables that are set.
    pub keys_in_env: Vec<&'static str>,
    /// A provider in the client's own settings, about which its sign-in command knows nothing.
    pub custom_provider: Option<String>,
}

/// Asks a client for its version and its sign-in.
pub(crate) async fn probe_client(client: AgentClient, program_path: &Path, options: &ProbeOptions<'_>) -> ProbeResult {
    let broken_client = |reason| ProbeResult::without_answer(ClientState::Broken { reason });
    let output = match run_program(program_path, client.facts.version_args, options).await {
        Ok(output) => output,
        Err(reason) => return broken_client(reason),
    };
    // Some clients print their version on standard error.
    let Some(version) = find_version(&output.stdout).or_else(|| find_version(&output.stderr)) else {
        let last_output = last_output_line(&output.stderr, &output.stdout);
        let exit_code_text =
            output.exit_code.filter(|exit_code| *exit_code != 0).map(|exit_code| format!(", exit code {exit_code}"));
        let version_command = client.facts.version_args.join(" ");
        return broken_client(format!(
            "`{version_command}` printed no version{}{last_output}",
            exit_code_text.unwrap_or_default()
        ));
    };
    let with_version = |state, signed_in| ProbeResult { state, version: Some(version), sign_in: signed_in };
    // The sign-in command of an old client may not exist or may mean something else.
    if version < client.facts.minimum_version {
        return with_version(ClientState::TooOld, None);
    }
    let sign_in_command = client.facts.sign_in_args.join(" ");
    match run_program(program_path, client.facts.sign_in_args, options).await {
        // A client that has a version but no working sign-in command may still work.
        Err(reason) => with_version(ClientState::Unsure { reason: format!("`{sign_in_command}`: {reason}") }, None),
        Ok(output) => {
            let sign_in_output = SignInOutput { stdout: &output.stdout, stderr: &output.stderr };
            match client.read_sign_in(sign_in_output, &options.keys_in_env) {
                SignInStatus::SignedIn { method: sign_in_means, is_subscription: subscription } => {
                    with_version(ClientState::Ready, Some((sign_in_means, subscription)))
                }
                SignInStatus::SignedOut => match &options.custom_provider {
                    // Whether that provider accepts the client shows only when it is used.
                    Some(provider_text) => {
                        let reason =
                            format!("it uses a custom provider ({provider_text}) and does not report its sign-in");
                        with_version(ClientState::OtherProvider { reason }, None)
                    }
                    None => with_version(ClientState::NotSignedIn, None),
                },
                SignInStatus::Unknown => {
                    let last_output = last_output_line(sign_in_output.stderr, sign_in_output.stdout);
                    let reason = format!("`{sign_in_command}` does not report whether you are signed in{last_output}");
                    with_version(ClientState::Unsure { reason }, None)
                }
            }
        }
    }
}

/// The last line that the client printed, to be appended to a sentence.
fn last_output_line(stderr: &str, stdout: &str) -> String {
    let mut output_lines = stderr.lines().chain(stdout.lines()).map(str::trim);
    output_lines
        .rfind(|output_line| !output_line.is_empty())
        .map(|output_line| format!(": {}", truncate_chars(output_line, 120)))
        .unwrap_or_default()
}

/// What a program printed.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub exit_code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a program with the given arguments in the empty directory.
pub(crate) async fn run_program(
    program_path: &Path,
    arguments: &[&str],
    options: &ProbeOptions<'_>,
) -> Result<ProgramOutput, String> {
    let command = ProcessCommand {
        program: program_path.as_os_str().to_owned(),
        args: arguments.iter().map(OsString::from).collect(),
        working_dir: options.directory.to_path_buf(),
        // Clients must neither update themselves nor report home while they are asked.
        extra_env: probe_variables().map(|variable_name| (variable_name.to_string(), OsString::from("1"))).collect(),
        removed_env: Vec::new(),
        stdin_bytes: Vec::new(),
        deadlines: Deadlines { total: options.timeout, idle: options.timeout, grace: Duration::from_millis(200) },
        // A megabyte is far more than any of these answers.
        output_limits: OutputLimits { max_stream_bytes: 1 << 20, ..OutputLimits::default() },
        sandbox: None,
        keeper: KeeperSetup::of_own_program(),
        stop_signal: None,
    };
    let finished_process = run_process(command).await.map_err(|error| error.to_string())?;
    let exit_code = match finished_process.exit_reason {
        ExitReason::Exited(exit_code) => Some(exit_code),
        ExitReason::Killed(_) => None,
        ExitReason::TimedOut | ExitReason::Silent => {
            return Err(format!("no answer within {} s", options.timeout.as_secs()));
        }
        ExitReason::Flooded => return Err("too much output".to_string()),
        ExitReason::Stopped | ExitReason::Lost => return Err("it was stopped".to_string()),
    };
    Ok(ProgramOutput {
        exit_code,
        stdout: finished_process.stdout.to_text(),
        stderr: finished_process.stderr.to_text(),
    })
}

/// Asks the installed clients that show no sign-in whether the user is signed in after all: with a keychain, for instance, or
/// through a cloud provider.
pub(crate) fn ask_sign_in(found_clients: &mut [InstalledClient]) {
    let Some((runtime, directory)) = probe_environment() else { return };
    let env_variable = |variable_name: &str| env::var_os(variable_name);
    let sign_in_probes = found_clients.iter().map(|found_client| async {
        let program_path = found_client.program_path.as_deref().filter(|_| found_client.sign_in.is_none())?;
        let keys_set_here = keys_in_env(found_client.client, &env_variable);
        let options = ProbeOptions {
            directory: directory.path(),
            timeout: PROBE_TIMEOUT,
            keys_in_env: keys_set_here,
            custom_provider: None,
        };
        probe_client(found_client.client, program_path, &options).await.sign_in.map(|(sign_in_means, _)| sign_in_means)
    });
    let sign_ins = runtime.block_on(join_all(sign_in_probes));
    for (found_client, sign_in_means) in found_clients.iter_mut().zip(sign_ins) {
        // What shows without asking is more precise than the client's own words.
        found_client.sign_in = found_client.sign_in.take().or(sign_in_means);
    }
}

/// A client's program, under the name by which an agent's settings or the search path know it.
#[derive(Clone, Debug)]
pub(crate) struct ClientProgram {
    pub client: AgentClient,
    pub program: String,
    pub located: Result<PathBuf, ProgramProblem>,
    /// The agents that use it.
    pub agent_names: Vec<String>,
    /// A program that the project names is not started before the user has trusted it.
    pub is_trusted: bool,
}

/// A client's program, and what it reported about itself.
#[derive(Clone, Debug)]
pub(crate) struct ProbedClient {
    pub program: ClientProgram,
    pub probed: ProbeResult,
}

/// Asks all of these programs at the same time. What cannot be started, or is not trusted, is not asked.
pub(crate) fn probe_programs(
    env_variable: EnvLookup<'_>,
    programs: Vec<ClientProgram>,
    timeout: Duration,
) -> Vec<ProbedClient> {
    let environment = probe_environment();
    let ask_program = |program: &ClientProgram| match (&program.located, &environment) {
        (Err(problem), _) => Err(ClientState::Unstartable { problem: problem.clone() }),
        (Ok(_), _) if !program.is_trusted => Err(ClientState::Untrusted),
        // Without a runtime or a temporary directory nothing is known; the run itself reports such problems.
        (Ok(_), None) => {
            Err(ClientState::Unsure { reason: "it could not be asked: there is no temporary directory".to_string() })
        }
        (Ok(program_path), Some((_, directory))) => {
            let options = ProbeOptions {
                directory: directory.path(),
                timeout,
                keys_in_env: keys_in_env(program.client, env_variable),
                custom_provider: describe_custom_provider(program.client, env_variable),
            };
            Ok((program.client, program_path.clone(), options))
        }
    };
    let questions: Vec<_> = programs.iter().map(ask_program).collect();
    let answers = questions.iter().map(|question| async {
        match question {
            Ok((client, program_path, options)) => probe_client(*client, program_path, options).await,
            Err(state) => ProbeResult::without_answer(state.clone()),
        }
    });
    let answers = join_all(answers);
    let probe_results = match &environment {
        Some((runtime, _)) => runtime.block_on(answers),
        // No question needs the runtime then.
        None => futures_util::FutureExt::now_or_never(answers).unwrap_or_default(),
    };
    programs.into_iter().zip(probe_results).map(|(program, probed)| ProbedClient { program, probed }).collect()
}

/// Asks git for its version; `None` if it does not answer.
pub(crate) fn ask_git_version(git_path: &Path, timeout: Duration) -> Option<String> {
    let (runtime, directory) = probe_environment()?;
    let options = ProbeOptions { directory: directory.path(), timeout, keys_in_env: Vec::new(), custom_provider: None };
    let version_output = runtime.block_on(run_program(git_path, &["--version"], &options)).ok()?;
    find_version(&version_output.stdout).map(|version| version.to_string())
}

/// A runtime and an empty directory to ask clients in.
fn probe_environment() -> Option<(tokio::runtime::Runtime, tempfile::TempDir)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    Some((runtime, tempfile::tempdir().ok()?))
}
