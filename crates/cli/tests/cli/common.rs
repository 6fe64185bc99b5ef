//! A project in a temporary directory, and the binary run in it as the user would run it.

use std::{
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::LazyLock,
};

use regex::Regex;
use serde_json::Value;
use tribunal_engine::ids::Hash;

/// The case of a shell script that confirms every repair as a judge. What it says about others is ignored.
pub const CONFIRM_REPAIRS: &str = r#"*/judge*) echo '{"verdicts": [
    {"id": "F1", "verdict": "VALID"}, {"id": "F2", "verdict": "VALID"}, {"id": "F3", "verdict": "VALID"},
    {"id": "C1", "verdict": "VALID"}, {"id": "C2", "verdict": "VALID"}, {"id": "C3", "verdict": "VALID"}
]}'; exit;;"#;

pub const TRIBUNAL: &str = env!("CARGO_BIN_EXE_tribunal");
pub const PRD: &str = "_bmad-output/planning-artifacts/prd.md";

/// Reviewers raise one finding in round 1, and a fixer fixes it.
pub const FIXING_SCRIPT: &str = "tasks:
  - task: 'round-1/review/*'
    steps: [{findings: [{severity: high, category: test, description: fast is vague, quote: It shall be fast.}]}]
  - task: '*/review/*'
    steps: [{findings: []}]
  - task: '*/fix/*'
    fix: [{match: fast, replace: It shall be fast., with: It answers in 200 ms., description: number}]
";

pub struct Sandbox {
    /// Contains the project and, beside it, the user's home directory.
    temp_dir: tempfile::TempDir,
    root: PathBuf,
    /// Whether the project's commands are trusted before they run, as after the user's first approval.
    trusts_commands: bool,
}

#[derive(Debug)]
pub struct CommandOutput {
    pub exit_code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        let temp_dir = tempfile::tempdir().unwrap();
        let root = temp_dir.path().join("project");
        fs::create_dir(&root).unwrap();
        Sandbox { temp_dir, root, trusts_commands: true }
    }

    /// Returns the sandbox of a user who has trusted nothing yet.
    pub fn without_trust(mut self) -> Sandbox {
        self.trusts_commands = false;
        self
    }

    /// The user's home directory, which belongs to no project.
    pub fn home_dir(&self) -> PathBuf {
        self.temp_dir.path().join("home")
    }

    /// The bundled demo project. Its agent is replaced by the scripted agent of the test kit, run as a plain command.
    pub fn with_demo() -> Sandbox {
        let sandbox = Sandbox::new();
        let demo_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
        for demo_file in ["demo/court.yaml", "_bmad/bmm/config.yaml", PRD] {
            sandbox.write_file(demo_file, &fs::read_to_string(demo_dir.join(demo_file)).unwrap());
        }
        let script_path = sandbox.path_of("demo/court.yaml");
        let argv = format!("[{:?}, {:?}]", scripted_agent_path(), script_path);
        sandbox.write_file(
            "tribunal.yaml",
            &format!(
                "agents: {{use: [scripted], scripted: {{driver: command, argv: {argv}}}}}\n\
                 verify: [\"! grep -n 'TBD' {PRD}\"]\n"
            ),
        );
        sandbox
    }

    /// A one-page document and an agent that plays `script`.
    pub fn with_script(script: &str) -> Sandbox {
        let sandbox = Sandbox::new();
        sandbox.write_file("plan.md", "# Plan\n\n## Goals\n\nIt shall be fast.\n\n## Risks\n\nNone.\n");
        sandbox.write_file("script.yaml", script);
        sandbox.write_file(
            "tribunal.yaml",
            "tier: 0\n\
             agents: {use: [scripted], scripted: {driver: replay, script: script.yaml}}\n\
             tasks: {retry_after: 0, required_issues: 0}\n",
        );
        sandbox
    }

    /// A one-page document and a shell script as the agent; the agent answers with what the script prints.
    pub fn with_shell_agent(script: &str) -> Sandbox {
        let sandbox = Sandbox::with_script("");
        sandbox.write_file("agent.sh", script);
        let agent_path = sandbox.path_of("agent.sh");
        sandbox.write_file(
            "tribunal.yaml",
            &format!(
                "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {agent_path:?}]}}}}\n\
                 tasks: {{retry_after: 0, required_issues: 0}}\n"
            ),
        );
        sandbox
    }

    /// Appends a line to the settings.
    pub fn append_setting(&self, settings_line: &str) {
        let settings = self.read_file("tribunal.yaml");
        self.write_file("tribunal.yaml", &format!("{settings}{settings_line}\n"));
    }

    pub fn root_dir(&self) -> &Path {
        &self.root
    }

    pub fn path_of(&self, relative_path: &str) -> PathBuf {
        self.root_dir().join(relative_path)
    }

    pub fn write_file(&self, relative_path: &str, file_text: &str) {
        let file_path = self.path_of(relative_path);
        fs::create_dir_all(file_path.parent().unwrap()).unwrap();
        fs::write(file_path, file_text).unwrap();
    }

    pub fn read_file(&self, relative_path: &str) -> String {
        fs::read_to_string(self.path_of(relative_path)).unwrap()
    }

    pub fn tribunal_command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let has_word = |word: &str| args.iter().any(|arg| arg.as_ref() == word);
        let runs_loop = has_word("loop") && has_word("run") && !has_word("--in-session");
        let starts_run = has_word("review") || has_word("resume") || has_word("sprint") || runs_loop;
        if self.trusts_commands && starts_run {
            // Settings that cannot be read have nothing to trust; the command under test reports them.
            let _ = self.untrusted_command(&["trust", "--yes"]).output().unwrap();
        }
        self.untrusted_command(args)
    }

    fn untrusted_command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = self.isolated_command(TRIBUNAL);
        command.args(args);
        command
    }

    /// Builds a command for any program in the project, with the sandbox's home directory.
    pub fn isolated_command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root_dir())
            .env_remove("NO_COLOR")
            .env_remove("TRIBUNAL_FAULT")
            // The tests may themselves run inside a session of a client.
            .env_remove("CLAUDE_CODE_SESSION_ID")
            .env_remove("CLAUDE_PROJECT_DIR")
            .env_remove("CODEX_SESSION_ID")
            .env_remove("CODEX_THREAD_ID")
            .stdin(Stdio::null());
        self.set_home_env(&mut command);
        command
    }

    /// Sets the home directory, so that nothing of the user who runs the tests is read or written.
    pub fn set_home_env(&self, command: &mut Command) {
        command
            .env("HOME", self.home_dir())
            .env("XDG_STATE_HOME", self.home_dir().join("state"))
            .env("XDG_CONFIG_HOME", self.home_dir().join("config"))
            .env("XDG_CACHE_HOME", self.home_dir().join("cache"))
            // Scripts of agents tell the test what happens through files. Tests of the sandbox itself remove this.
            .env("TRIBUNAL_SANDBOX__WRITE", format!("[{:?}]", self.temp_dir.path()));
    }

    pub fn run_tribunal(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::from_output(self.tribunal_command(args).output().unwrap())
    }

    /// Runs a command with `--json` and parses its output as one document.
    pub fn run_json(&self, args: &[&str]) -> Value {
        let output = self.run_tribunal(&[args, &["--json"]].concat());
        serde_json::from_str(&output.stdout)
            .unwrap_or_else(|parse_error| panic!("{parse_error}: {}{}", output.stdout, output.stderr))
    }

    /// Runs a command with `--json` and parses each line of its output as an event.
    pub fn run_events(&self, args: &[&str]) -> Vec<Value> {
        self.run_tribunal(&[args, &["--json"]].concat()).parse_events()
    }

    /// Replaces what differs from run to run: the project's path, the run ids and the times.
    pub fn normalize_output(&self, normalized: &str) -> String {
        let mut normalized = hide_times(&normalized.replace(&self.root_dir().display().to_string(), "[project]"));
        for run_id in self.run_ids() {
            normalized = normalized.replace(&run_id, "[run]");
        }
        normalized
    }

    pub fn run_ids(&self) -> Vec<String> {
        let output = self.run_tribunal(&["runs", "--json"]);
        let document: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
        let run_summaries = document["runs"].as_array().cloned().unwrap_or_default();
        run_summaries.iter().filter_map(|run_summary| run_summary["run"].as_str().map(String::from)).collect()
    }

    pub fn last_run_id(&self) -> String {
        self.run_ids().pop().unwrap()
    }

    /// Returns temporary files that were left behind in the project.
    pub fn temporary_leftovers(&self) -> Vec<PathBuf> {
        let mut leftovers = Vec::new();
        let mut directories = vec![self.root_dir().to_path_buf()];
        while let Some(directory) = directories.pop() {
            for dir_entry in fs::read_dir(directory).unwrap().flatten() {
                if dir_entry.file_type().unwrap().is_dir() {
                    directories.push(dir_entry.path());
                } else if dir_entry.file_name().to_string_lossy().starts_with(".tribunal-") {
                    leftovers.push(dir_entry.path());
                }
            }
        }
        leftovers
    }
}

impl CommandOutput {
    pub fn from_output(output: Output) -> CommandOutput {
        CommandOutput {
            exit_code: output.status.code(),
            stdout: without_sandbox_lines(&String::from_utf8_lossy(&output.stdout)),
            stderr: without_sandbox_lines(&String::from_utf8_lossy(&output.stderr)),
        }
    }

    pub fn parse_events(&self) -> Vec<Value> {
        let parse_event =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|parse_error| panic!("{parse_error}: {line}"));
        self.stdout.lines().map(parse_event).collect()
    }
}

/// Elapsed times and clocks (`0:07`, `1:02:03`, `0:07.123`), what is left of a time limit (`3 h 59 min`), and dates. A place in a
/// file like `plan.md:5:10` is none of them.
static TIMES: LazyLock<[(Regex, &str); 3]> = LazyLock::new(|| {
    [
        (Regex::new(r"(?m)(^|[ (])\d{1,2}:\d\d(:\d\d)?(\.\d{3})?\b").unwrap(), "${1}[time]"),
        (Regex::new(r"(?m)(^|[ (])\d+ h \d+ min\b").unwrap(), "${1}[time]"),
        (Regex::new(r"(?m)(^|[ (])\d{4}-\d\d-\d\d\b").unwrap(), "${1}[date]"),
    ]
});

/// Replaces times, because how long something takes must not decide a test: the machine may be busy. The tests of
/// `crates/report` prove with given times that they are drawn right.
pub fn hide_times(text: &str) -> String {
    let hide_pattern = |text: String, (pattern, placeholder): &(Regex, &str)| {
        let hidden_text = pattern.replace_all(&text, *placeholder);
        hidden_text.into_owned()
    };
    TIMES.iter().fold(text.to_string(), hide_pattern)
}

#[test]
fn times_are_hidden_and_places_in_files_are_not() {
    let times =
        "night · 0:07\n  (1 check, 12:34), 1:02:03 of 2:00:00\n3 h 59 min, $10.00\n2026-11-15 03:57  done\n0:00.016 x";
    let hidden = "night · [time]\n  (1 check, [time]), [time] of [time]\n[time], $10.00\n[date] [time]  done\n[time] x";
    assert_eq!(hide_times(times), hidden);
    let others = "plan.md:5:10: `a` (line 5), 240 min, 1:1: no value, epic-1-retro-2026-01-02.md, run plan-12:30";
    assert_eq!(hide_times(others), others);
}

/// Writes an executable program. Another process writes the file: a test that is just starting a process would share our
/// descriptor for a moment, and a file that is open for writing cannot be executed.
pub fn write_program(program_path: &Path, program_text: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(program_path).stdin(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    child.stdin.take().unwrap().write_all(program_text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{}", program_path.display());
}

/// Copies the binary to another name. Another process copies it, for the same reason as in [`write_program`].
pub fn copy_tribunal(target_path: &Path) {
    assert!(Command::new("cp").arg(TRIBUNAL).arg(target_path).status().unwrap().success(), "{}", target_path.display());
}

/// Takes the lock of a run as another process would, with `lock_text` in it.
pub fn hold_run_lock(sandbox: &Sandbox, run_id: &str, lock_text: &str) -> fs::File {
    let lock_name = format!(".tribunal/locks/{}.lock", Hash::digest_of(format!("run {run_id}").as_bytes()).short_hex());
    let lock_file = fs::File::open(sandbox.path_of(&lock_name)).unwrap();
    lock_file.lock().unwrap();
    fs::write(sandbox.path_of(&lock_name), lock_text).unwrap();
    lock_file
}

/// Returns the path of the scripted agent. It is built with the workspace; `cargo test -p tribunal` alone does not build it.
pub fn scripted_agent_path() -> PathBuf {
    let agent_path = Path::new(TRIBUNAL).with_file_name("scripted-agent");
    assert!(agent_path.is_file(), "{} is missing: run `cargo build -p tribunal-testkit` first", agent_path.display());
    agent_path
}

/// Removes the lines that say what the kernel enforces: they depend on the machine.
pub fn without_sandbox_lines(output_text: &str) -> String {
    const MARKS: [&str; 3] = ["agents write only in their workspaces", "no sandbox: ", "not prevented by this kernel"];
    if output_text.starts_with('{') {
        return output_text.to_string();
    }
    let lines = output_text.split_inclusive('\n');
    lines.filter(|line| !MARKS.iter().any(|mark| line.contains(mark))).collect()
}
