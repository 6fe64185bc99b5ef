//! A project in a temporary directory, and the binary run in it as the user would run it.

use std::{
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tribunal_core::ids::Hash;

pub const TRIBUNAL: &str = env!("CARGO_BIN_EXE_tribunal");
pub const PRD: &str = "_bmad-output/planning-artifacts/prd.md";

pub struct Sandbox {
    /// Contains the project and, beside it, the user's home directory.
    folder: tempfile::TempDir,
    root: PathBuf,
    /// Whether the project's commands are trusted before they run, as after the user's first approval.
    trusting: bool,
}

pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        fs::create_dir(&root).unwrap();
        Sandbox { folder, root, trusting: true }
    }

    /// Returns the sandbox of a user who has trusted nothing yet.
    pub fn wary(mut self) -> Sandbox {
        self.trusting = false;
        self
    }

    /// The user's home directory, which belongs to no project.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The bundled demo project. Its agent is replaced by the scripted agent of the test kit, run as a plain command.
    pub fn demo() -> Sandbox {
        let sandbox = Sandbox::new();
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
        for file in ["demo/court.yaml", "_bmad/bmm/config.yaml", PRD] {
            sandbox.write(file, &fs::read_to_string(demo.join(file)).unwrap());
        }
        let script = sandbox.path("demo/court.yaml");
        let argv = format!("[{:?}, {:?}]", scripted_agent(), script);
        sandbox.write(
            "tribunal.yaml",
            &format!(
                "agents: {{use: [scripted], scripted: {{driver: command, argv: {argv}}}}}\n\
                 verify: [\"! grep -n 'TBD' {PRD}\"]\n"
            ),
        );
        sandbox
    }

    /// A one-page document and an agent that plays `script`.
    pub fn scripted(script: &str) -> Sandbox {
        let sandbox = Sandbox::new();
        sandbox.write("plan.md", "# Plan\n\n## Goals\n\nIt shall be fast.\n\n## Risks\n\nNone.\n");
        sandbox.write("script.yaml", script);
        sandbox.write(
            "tribunal.yaml",
            "tier: 0\n\
             agents: {use: [scripted], scripted: {driver: replay, script: script.yaml}}\n\
             tasks: {retry_after: 0, required_issues: 0}\n",
        );
        sandbox
    }

    /// A one-page document and a shell script as the agent; the agent answers with what the script prints.
    pub fn with_agent(script: &str) -> Sandbox {
        let sandbox = Sandbox::scripted("");
        sandbox.write("agent.sh", script);
        let path = sandbox.path("agent.sh");
        sandbox.write(
            "tribunal.yaml",
            &format!(
                "tier: 0\nagents: {{use: [mine], mine: {{driver: command, argv: [sh, {path:?}]}}}}\n\
                 tasks: {{retry_after: 0, required_issues: 0}}\n"
            ),
        );
        sandbox
    }

    /// Appends a line to the settings.
    pub fn set(&self, line: &str) {
        let settings = self.read("tribunal.yaml");
        self.write("tribunal.yaml", &format!("{settings}{line}\n"));
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.root().join(file)
    }

    pub fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let runs = args.iter().any(|arg| arg.as_ref() == "review" || arg.as_ref() == "resume");
        if self.trusting && runs {
            // Settings that cannot be read have nothing to trust; the command under test reports them.
            let _ = self.bare(&["trust", "--yes"]).output().unwrap();
        }
        self.bare(args)
    }

    fn bare<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = self.wrapped(TRIBUNAL);
        command.args(args);
        command
    }

    /// Builds a command for any program in the project, with the sandbox's home directory.
    pub fn wrapped(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root())
            .env_remove("NO_COLOR")
            .env_remove("TRIBUNAL_FAULT")
            // The tests may themselves run inside a session of a client.
            .env_remove("CLAUDE_CODE_SESSION_ID")
            .env_remove("CLAUDE_PROJECT_DIR")
            .env_remove("CODEX_SESSION_ID")
            .env_remove("CODEX_THREAD_ID")
            .stdin(Stdio::null());
        self.at_home(&mut command);
        command
    }

    /// Sets the home directory, so that nothing of the user who runs the tests is read or written.
    pub fn at_home(&self, command: &mut Command) {
        command
            .env("HOME", self.home())
            .env("XDG_STATE_HOME", self.home().join("state"))
            .env("XDG_CONFIG_HOME", self.home().join("config"));
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Runs a command with `--json` and parses its output as one document.
    pub fn json(&self, args: &[&str]) -> Value {
        let ran = self.run(&[args, &["--json"]].concat());
        serde_json::from_str(&ran.out).unwrap_or_else(|cause| panic!("{cause}: {}{}", ran.out, ran.err))
    }

    /// Runs a command with `--json` and parses each line of its output as an event.
    pub fn events(&self, args: &[&str]) -> Vec<Value> {
        self.run(&[args, &["--json"]].concat()).events()
    }

    /// Replaces what differs from run to run: the project's path and the run ids.
    pub fn normal(&self, text: &str) -> String {
        let mut text = text.replace(&self.root().display().to_string(), "[project]");
        for run in self.runs() {
            text = text.replace(&run, "[run]");
        }
        text
    }

    pub fn runs(&self) -> Vec<String> {
        let ran = self.run(&["runs", "--json"]);
        let document: Value = serde_json::from_str(&ran.out).unwrap_or_default();
        let runs = document["runs"].as_array().cloned().unwrap_or_default();
        runs.iter().filter_map(|run| run["run"].as_str().map(String::from)).collect()
    }

    pub fn last_run(&self) -> String {
        self.runs().pop().unwrap()
    }

    /// Returns temporary files that were left behind in the project.
    pub fn litter(&self) -> Vec<PathBuf> {
        let mut litter = Vec::new();
        let mut folders = vec![self.root().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(folder).unwrap().flatten() {
                if item.file_type().unwrap().is_dir() {
                    folders.push(item.path());
                } else if item.file_name().to_string_lossy().starts_with(".tribunal-") {
                    litter.push(item.path());
                }
            }
        }
        litter
    }
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub fn events(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|cause| panic!("{cause}: {line}"));
        self.out.lines().map(parse).collect()
    }
}

/// Writes an executable program. Another process writes the file: a test that is just starting a process would share our
/// descriptor for a moment, and a file that is open for writing cannot be executed.
pub fn write_program(path: &Path, text: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{}", path.display());
}

/// Copies the binary to another name. Another process copies it, for the same reason as in [`write_program`].
pub fn copy_tribunal(path: &Path) {
    assert!(Command::new("cp").arg(TRIBUNAL).arg(path).status().unwrap().success(), "{}", path.display());
}

/// Takes the lock of a run as another process would, with `lock_text` in it.
pub fn hold(sandbox: &Sandbox, run: &str, says: &str) -> fs::File {
    let name = format!(".tribunal/locks/{}.lock", Hash::of(format!("run {run}").as_bytes()).short());
    let file = fs::File::open(sandbox.path(&name)).unwrap();
    file.lock().unwrap();
    fs::write(sandbox.path(&name), says).unwrap();
    file
}

/// Returns the path of the scripted agent. It is built with the workspace; `cargo test -p tribunal` alone does not build it.
pub fn scripted_agent() -> PathBuf {
    let path = Path::new(TRIBUNAL).with_file_name("scripted-agent");
    assert!(path.is_file(), "{} is missing: run `cargo build -p tribunal-testkit` first", path.display());
    path
}
