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
use tribunal_testkit::model::{Api, Rule, Scenario, Server, claude_env, codex_home};

use crate::sandbox::{Ran, Sandbox};

/// One of the clients that have a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    Claude,
    Codex,
}

impl Client {
    pub const ALL: [Client; 2] = [Client::Claude, Client::Codex];

    /// Returns the name by which settings know the client.
    pub fn agent(self) -> &'static str {
        match self {
            Client::Claude => "claude-code",
            Client::Codex => "codex",
        }
    }

    /// Returns the protocol that the client speaks with a model.
    pub fn api(self) -> Api {
        match self {
            Client::Claude => Api::Messages,
            Client::Codex => Api::Responses,
        }
    }

    pub fn program(self) -> PathBuf {
        let name = match self {
            Client::Claude => "claude",
            Client::Codex => "codex",
        };
        let folder = env::var_os("TRIBUNAL_CLIENTS").map(PathBuf::from);
        let folder = folder.unwrap_or_else(|| {
            panic!("TRIBUNAL_CLIENTS does not say where the clients are: cargo xtask clients")
        });
        folder.join(name).join("node_modules/.bin").join(name)
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

pub const PLAN: &str = "# Plan\n\n## Goals\n\nIt shall be fast.\n\n## Risks\n\nNone.\n";
pub const VAGUE: &str = "It shall be fast.";
pub const CLEAR: &str = "It answers in 200 ms.";

pub struct Bench {
    pub sandbox: Sandbox,
    pub server: Server,
    variables: Vec<(String, String)>,
}

impl Bench {
    /// Creates a project with a one-page document that is reviewed by these clients.
    pub fn new(clients: &[Client], rules: impl IntoIterator<Item = Rule>) -> Bench {
        let server = Server::start(Scenario::new(rules)).unwrap();
        let sandbox = Sandbox::new();
        let variables = variables(&sandbox.home(), server.address());
        let names: Vec<&str> = clients.iter().map(|client| client.agent()).collect();
        sandbox.write("plan.md", PLAN);
        sandbox.write(
            "tribunal.yaml",
            &format!(
                "tier: 0\nagents: {{use: [{}]}}\n\
                 tasks: {{retry_after: 0, required_issues: 0, reviewer_timeout: 120, fixer_timeout: 120}}\n",
                names.join(", ")
            ),
        );
        Bench { sandbox, server, variables }
    }

    /// Points the clients at a port on which no server listens.
    pub fn desert(&mut self) {
        // The server of this address is dropped at once, so the port was free a moment ago and is closed now.
        let gone = Server::start(Scenario::default()).unwrap().address();
        self.variables = variables(&self.sandbox.home(), gone);
    }

    /// Removes variables from the environment of everything that is started.
    pub fn forget(&mut self, names: &[&str]) {
        self.variables.retain(|(name, _)| !names.contains(&name.as_str()));
    }

    pub fn give(&mut self, variables: &[(&str, &str)]) {
        let given = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        self.variables.extend(given);
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(arguments);
        self.surround(&mut command);
        command
    }

    /// Builds a command that starts the client itself in the project, as the user would.
    pub fn client(&self, client: Client) -> Command {
        let mut command = Command::new(client.program());
        command.current_dir(self.sandbox.root()).stdin(Stdio::null());
        self.surround(&mut command);
        command
    }

    /// Replaces the environment of the process that runs the tests, which may be a client itself.
    fn surround(&self, command: &mut Command) {
        let ours = ["CLAUDE", "ANTHROPIC", "CODEX", "OPENAI", "MCP"];
        for (name, _) in env::vars_os() {
            if ours.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        for (name, value) in &self.variables {
            command.env(name, value);
        }
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// Reviews the plan and expects success.
    pub fn review(&self) -> Ran {
        self.expect(&["review", "plan.md"], 0)
    }

    /// Reviews without fixers and expects that findings are left for the user.
    pub fn look(&self) -> Ran {
        self.expect(&["review", "--no-fix", "plan.md"], 3)
    }

    /// Replaces text in the settings.
    pub fn settle(&self, old: &str, new: &str) {
        let settings = self.sandbox.read("tribunal.yaml");
        assert!(settings.contains(old), "{settings}");
        self.sandbox.write("tribunal.yaml", &settings.replace(old, new));
    }

    pub fn expect(&self, arguments: &[&str], code: i32) -> Ran {
        let ran = self.run(arguments);
        let asked: Vec<_> = self.server.tally().unscripted().iter().map(|asked| asked.last.clone()).collect();
        assert_eq!(ran.code, Some(code), "{}\n{}\nnobody knew what to say to: {asked:#?}", ran.out, ran.err);
        ran
    }

    /// Starts a command with JSON events and returns once an event matches.
    pub fn start(&self, arguments: &[&str], until: impl Fn(&Value) -> bool) -> Started {
        let mut command = self.command(&[arguments, &["--json"]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut events = lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        assert!(events.any(|event| until(&event)), "it ended before that happened");
        Started { child, lines }
    }

    /// Reads the journal of the last run.
    pub fn journal(&self) -> Vec<Value> {
        self.sandbox.events(&["log", &self.sandbox.last_run()])
    }

    /// Finds the reply of the effect with this key.
    pub fn reply(&self, key: &str) -> Value {
        let journal = self.journal();
        let fits = |entry: &&Value| entry["kind"] == "effect_finished" && entry["key"] == key;
        let found = journal.iter().find(fits);
        let keys: Vec<&Value> = journal.iter().filter_map(|entry| entry.get("key")).collect();
        found.unwrap_or_else(|| panic!("no `{key}` among {keys:?}"))["reply"].clone()
    }

    /// Lists every finding of the last run as `id status`.
    pub fn findings(&self) -> Vec<String> {
        let document = self.sandbox.json(&["findings"]);
        let all = document["findings"].as_array().unwrap().iter();
        all.map(|finding| format!("{} {}", word(finding, "id"), word(finding, "status"))).collect()
    }

    /// Returns the prompts for which the scenario has no rule.
    pub fn unscripted(&self) -> Vec<String> {
        self.server.tally().unscripted().iter().map(|request| request.last.clone()).collect()
    }
}

pub fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// A command that is running, and the rest of its output.
pub struct Started {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Started {
    /// Waits until the command has ended.
    pub fn end(mut self) -> Option<i32> {
        // Reading to the end comes first: a full pipe would keep the command from ending.
        self.lines.by_ref().for_each(drop);
        self.child.wait().unwrap().code()
    }

    pub fn is_at_work(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Asks the command to end in good order.
    pub fn terminate(self) -> Option<i32> {
        let id = Pid::from_child(&self.child);
        kill_process(id, Signal::TERM).unwrap();
        self.end()
    }

    /// Kills the command, as a loss of power would: no process gets the chance to clean up.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn variables(home: &Path, server: SocketAddr) -> Vec<(String, String)> {
    fs::create_dir_all(home.join("tmp")).unwrap();
    let mut variables = claude_env(server, home);
    variables.extend(codex_home(server, home).unwrap());
    variables.push(("PATH".to_string(), search_path()));
    variables
}

/// Builds a search path with the clients before everything else.
fn search_path() -> String {
    let folders = Client::ALL.map(|client| client.program().parent().unwrap().to_path_buf());
    let others = env::var_os("PATH").unwrap_or_default();
    let all = folders.into_iter().chain(env::split_paths(&others));
    env::join_paths(all).unwrap().into_string().unwrap()
}

/// Finds a program of the test kit. It is built with the workspace; `cargo test -p tribunal` alone does not build it.
pub fn helper(name: &str) -> PathBuf {
    let path = Path::new(crate::sandbox::TRIBUNAL).with_file_name(name);
    assert!(path.is_file(), "{} is missing: run `cargo build -p tribunal-testkit` first", path.display());
    path
}

/// Finds processes of this machine whose command line contains these words.
pub fn running(words: &str) -> Vec<String> {
    processes("cmdline", words)
}

/// Finds clients with this home directory, which no other test shares.
pub fn clients_at(home: &Path) -> Vec<String> {
    processes("environ", &format!("HOME={} ", home.display()))
}

/// Returns the command lines of processes whose file in `/proc` contains these words.
fn processes(file: &str, words: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name != own && name.bytes().all(|letter| letter.is_ascii_digit())
    });
    // A process that ends while it is read counts as not running.
    let read = |path: PathBuf| fs::read(path).map(|text| String::from_utf8_lossy(&text).replace('\0', " "));
    let fitting =
        numbers.filter(|entry| read(entry.path().join(file)).is_ok_and(|text| text.contains(words)));
    fitting.filter_map(|entry| read(entry.path().join("cmdline")).ok()).collect()
}
