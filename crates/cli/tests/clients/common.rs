//! A test project, a scripted model server, and the real clients pointed at it.

use std::{
    env, fs,
    io::{BufRead, BufReader, Lines},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tribunal_testkit::model::{ModelApi, ModelServer, Scenario, ScenarioRule, claude_env, codex_env};

use crate::sandbox::{CommandOutput, Sandbox};

/// One of the clients that have a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    Claude,
    Codex,
}

impl Client {
    pub const ALL: [Client; 2] = [Client::Claude, Client::Codex];

    /// Returns the name by which settings know the client.
    pub fn agent_name(self) -> &'static str {
        match self {
            Client::Claude => "claude-code",
            Client::Codex => "codex",
        }
    }

    /// Returns the protocol that the client speaks with a model.
    pub fn model_api(self) -> ModelApi {
        match self {
            Client::Claude => ModelApi::Messages,
            Client::Codex => ModelApi::Responses,
        }
    }

    pub fn program_path(self) -> PathBuf {
        let program_name = match self {
            Client::Claude => "claude",
            Client::Codex => "codex",
        };
        let clients_dir = env::var_os("TRIBUNAL_CLIENTS").map(PathBuf::from);
        let clients_dir = clients_dir
            .unwrap_or_else(|| panic!("TRIBUNAL_CLIENTS does not say where the clients are: cargo xtask clients"));
        clients_dir.join(program_name).join("node_modules/.bin").join(program_name)
    }
}

/// Turns each function into a test with every client.
macro_rules! with_each_client {
    ($($name:ident),+ $(,)?) => {
        mod claude {
            $(
                #[test]
                #[ignore = "needs the real clients: cargo xtask clients"]
                fn $name() {
                    super::$name($crate::common::Client::Claude);
                }
            )+
        }
        mod codex {
            $(
                #[test]
                #[ignore = "needs the real clients: cargo xtask clients"]
                fn $name() {
                    super::$name($crate::common::Client::Codex);
                }
            )+
        }
    };
}
pub(crate) use with_each_client;

pub const PLAN_TEXT: &str = "# Plan\n\n## Goals\n\nIt shall be fast.\n\n## Risks\n\nNone.\n";
pub const VAGUE_SENTENCE: &str = "It shall be fast.";
pub const CLEAR_SENTENCE: &str = "It answers in 200 ms.";

pub struct ClientTestbed {
    pub sandbox: Sandbox,
    pub server: ModelServer,
    variables: Vec<(String, String)>,
}

impl ClientTestbed {
    /// Creates a project with a one-page document that is reviewed by these clients.
    pub fn new(clients: &[Client], rules: impl IntoIterator<Item = ScenarioRule>) -> ClientTestbed {
        let server = ModelServer::start(Scenario::new(rules)).unwrap();
        let sandbox = Sandbox::new();
        let variables = client_variables(&sandbox.home_dir(), server.address());
        let agent_names: Vec<&str> = clients.iter().map(|client| client.agent_name()).collect();
        sandbox.write_file("plan.md", PLAN_TEXT);
        sandbox.write_file(
            "tribunal.yaml",
            &format!(
                "tier: 0\nagents: {{use: [{}]}}\n\
                 tasks: {{retry_after: 0, required_issues: 0, reviewer_timeout: 120, fixer_timeout: 120}}\n",
                agent_names.join(", ")
            ),
        );
        ClientTestbed { sandbox, server, variables }
    }

    /// Points the clients at a port on which no server listens.
    pub fn point_at_dead_port(&mut self) {
        // The server of this address is dropped at once, so the port was free a moment ago and is closed now.
        let dead_address = ModelServer::start(Scenario::default()).unwrap().address();
        self.variables = client_variables(&self.sandbox.home_dir(), dead_address);
    }

    /// Removes variables from the environment of everything that is started.
    pub fn remove_variables(&mut self, names: &[&str]) {
        self.variables.retain(|(name, _)| !names.contains(&name.as_str()));
    }

    pub fn add_variables(&mut self, variables: &[(&str, &str)]) {
        let new_variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        self.variables.extend(new_variables);
    }

    pub fn tribunal_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.tribunal_command(arguments);
        // Real clients have to work with the sandbox as it is for users.
        command.env_remove("TRIBUNAL_SANDBOX__WRITE");
        self.set_environment(&mut command);
        command
    }

    /// Builds a command that starts the client itself in the project, as the user would.
    pub fn client_command(&self, client: Client) -> Command {
        let mut command = Command::new(client.program_path());
        command.current_dir(self.sandbox.root_dir()).stdin(Stdio::null());
        self.set_environment(&mut command);
        command
    }

    /// Replaces the environment of the process that runs the tests, which may be a client itself.
    fn set_environment(&self, command: &mut Command) {
        let client_prefixes = ["CLAUDE", "ANTHROPIC", "CODEX", "OPENAI", "MCP"];
        for (name, _) in env::vars_os() {
            if client_prefixes.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        for (name, value) in &self.variables {
            command.env(name, value);
        }
    }

    pub fn run_tribunal(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::from_output(self.tribunal_command(arguments).output().unwrap())
    }

    /// Reviews the plan and expects success.
    pub fn review_plan(&self) -> CommandOutput {
        self.run_expecting(&["review", "plan.md"], 0)
    }

    /// Reviews without fixers and expects that findings are left for the user.
    pub fn review_without_fixing(&self) -> CommandOutput {
        self.run_expecting(&["review", "--no-fix", "plan.md"], 3)
    }

    /// Replaces text in the settings.
    pub fn replace_in_settings(&self, old_text: &str, new_text: &str) {
        let settings = self.sandbox.read_file("tribunal.yaml");
        assert!(settings.contains(old_text), "{settings}");
        self.sandbox.write_file("tribunal.yaml", &settings.replace(old_text, new_text));
    }

    pub fn run_expecting(&self, arguments: &[&str], expected_code: i32) -> CommandOutput {
        let command_output = self.run_tribunal(arguments);
        let unscripted_requests: Vec<_> =
            self.server.request_log().unscripted().iter().map(|request| request.last_text.clone()).collect();
        assert_eq!(
            command_output.exit_code,
            Some(expected_code),
            "{}\n{}\nno rule answers: {unscripted_requests:#?}",
            command_output.stdout,
            command_output.stderr
        );
        command_output
    }

    /// Starts a command with JSON events and returns once an event matches.
    pub fn start_until(&self, arguments: &[&str], is_awaited: impl Fn(&Value) -> bool) -> StartedCommand {
        let mut command = self.tribunal_command(&[arguments, &["--json"]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut output_lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut events =
            output_lines.by_ref().map(|output_line| serde_json::from_str::<Value>(&output_line.unwrap()).unwrap());
        assert!(events.any(|event| is_awaited(&event)), "it ended before that happened");
        StartedCommand { child, output_lines }
    }

    /// Reads the journal of the last run.
    pub fn last_journal(&self) -> Vec<Value> {
        self.sandbox.run_events(&["log", &self.sandbox.last_run_id()])
    }

    /// Finds the reply of the effect with this key.
    pub fn find_reply(&self, effect_key: &str) -> Value {
        let run_journal = self.last_journal();
        let is_reply =
            |journal_entry: &&Value| journal_entry["kind"] == "effect_finished" && journal_entry["key"] == effect_key;
        let reply_entry = run_journal.iter().find(is_reply);
        let known_keys: Vec<&Value> = run_journal.iter().filter_map(|journal_entry| journal_entry.get("key")).collect();
        reply_entry.unwrap_or_else(|| panic!("no `{effect_key}` among {known_keys:?}"))["reply"].clone()
    }

    /// Lists every finding of the last run as `id status`.
    pub fn list_findings(&self) -> Vec<String> {
        let document = self.sandbox.run_json(&["findings"]);
        let all_findings = document["findings"].as_array().unwrap().iter();
        all_findings.map(|finding| format!("{} {}", str_field(finding, "id"), str_field(finding, "status"))).collect()
    }

    /// Returns the prompts for which the scenario has no rule.
    pub fn unscripted_prompts(&self) -> Vec<String> {
        self.server.request_log().unscripted().iter().map(|request| request.last_text.clone()).collect()
    }
}

pub fn str_field<'a>(value: &'a Value, field_name: &str) -> &'a str {
    value[field_name].as_str().unwrap_or_default()
}

/// A command that is running, and the rest of its output.
pub struct StartedCommand {
    child: Child,
    output_lines: Lines<BufReader<ChildStdout>>,
}

impl StartedCommand {
    /// Waits until the command has ended.
    pub fn wait_for_end(mut self) -> Option<i32> {
        // Reading to the end comes first: a full pipe would keep the command from ending.
        self.output_lines.by_ref().for_each(drop);
        self.child.wait().unwrap().code()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Asks the command to end in good order.
    pub fn terminate(self) -> Option<i32> {
        let process_id = Pid::from_child(&self.child);
        kill_process(process_id, Signal::TERM).unwrap();
        self.wait_for_end()
    }

    /// Kills the command, as a loss of power would: no process gets the chance to clean up.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn client_variables(home_dir: &Path, server: SocketAddr) -> Vec<(String, String)> {
    fs::create_dir_all(home_dir.join("tmp")).unwrap();
    let mut variables = claude_env(server, home_dir);
    variables.extend(codex_env(server, home_dir).unwrap());
    variables.push(("PATH".to_string(), build_search_path()));
    variables
}

/// Builds a search path with the clients before everything else.
fn build_search_path() -> String {
    let client_dirs = Client::ALL.map(|client| client.program_path().parent().unwrap().to_path_buf());
    let inherited_path = env::var_os("PATH").unwrap_or_default();
    let all_dirs = client_dirs.into_iter().chain(env::split_paths(&inherited_path));
    env::join_paths(all_dirs).unwrap().into_string().unwrap()
}

/// Finds a program of the test kit. It is built with the workspace; `cargo test -p tribunal` alone does not build it.
pub fn helper_program(program_name: &str) -> PathBuf {
    let program_path = Path::new(crate::sandbox::TRIBUNAL).with_file_name(program_name);
    assert!(
        program_path.is_file(),
        "{} is missing: run `cargo build -p tribunal-testkit` first",
        program_path.display()
    );
    program_path
}

/// Finds processes of this machine whose command line contains these words.
pub fn find_running(command_words: &str) -> Vec<String> {
    find_processes("cmdline", command_words)
}

/// Finds clients with this home directory, which no other test shares.
pub fn clients_with_home(home_dir: &Path) -> Vec<String> {
    find_processes("environ", &format!("HOME={} ", home_dir.display()))
}

/// Returns the command lines of processes whose file in `/proc` contains these words.
fn find_processes(proc_file: &str, words: &str) -> Vec<String> {
    let own_pid = std::process::id().to_string();
    let proc_entries = fs::read_dir("/proc").unwrap().flatten();
    let process_dirs = proc_entries.filter(|dir_entry| {
        let name = dir_entry.file_name().to_string_lossy().into_owned();
        name != own_pid && name.bytes().all(|byte| byte.is_ascii_digit())
    });
    // A process that ends while it is read counts as not running.
    let read_proc_file =
        |path: PathBuf| fs::read(path).map(|file_bytes| String::from_utf8_lossy(&file_bytes).replace('\0', " "));
    let matching_dirs = process_dirs.filter(|dir_entry| {
        read_proc_file(dir_entry.path().join(proc_file)).is_ok_and(|file_text| file_text.contains(words))
    });
    matching_dirs.filter_map(|dir_entry| read_proc_file(dir_entry.path().join("cmdline")).ok()).collect()
}
