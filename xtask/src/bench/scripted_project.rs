//! What benchmarks with an instant agent have in common: a project in a git repository, the process that works in it as the kernel sees
//! it, and the programs that this process starts.
//!
//! The agents are programs of the test kit. Each one appends when it began and when it ended to the file of stamps.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

use super::BuiltPrograms;

/// The kernel counts the CPU time of programs in hundredths of a second.
const CLOCK_TICK_MS: f64 = 10.0;
const BYTES_PER_PAGE: f64 = 4096.0;
const BYTES_PER_MEGABYTE: f64 = 1_048_576.0;
const KILOBYTES_PER_MEGABYTE: f64 = 1024.0;
/// The length of a stamp: two times of 19 digits, a space and the end of the line.
const STAMP_BYTES: u64 = 40;
const NANOSECONDS_PER_MS: f64 = 1e6;

/// An agent of the test kit.
#[derive(Clone, Copy)]
pub(super) struct ScriptedAgent<'a> {
    pub program_name: &'a str,
    /// What follows the file of stamps on its command line.
    pub further_args: &'a [String],
}

/// A file of a project that is committed before anything starts.
pub(super) struct ProjectFile {
    pub path: String,
    pub text: String,
}

impl ProjectFile {
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> ProjectFile {
        ProjectFile { path: path.into(), text: text.into() }
    }
}

/// When an agent worked, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionTimes {
    pub began_ms: f64,
    pub ended_ms: f64,
}

/// What a process had used when it was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessUsage {
    pub cpu_ms: f64,
    /// The part of the thread that writes and syncs the journal.
    pub journal_cpu_ms: f64,
    pub resident_mb: f64,
    /// The most memory that it had until then.
    pub peak_mb: f64,
    /// How many agents had ended.
    pub session_count: u64,
}

impl ProcessUsage {
    /// The CPU time without the journal.
    pub fn own_cpu_ms(self) -> f64 {
        self.cpu_ms - self.journal_cpu_ms
    }
}

/// A process that was looked at until it ended.
pub(super) struct WatchedProcess {
    pub status: ExitStatus,
    pub samples: Vec<ProcessUsage>,
}

impl WatchedProcess {
    pub fn last_sample(&self) -> Result<ProcessUsage> {
        self.samples.last().copied().context("the process was never seen")
    }

    /// The first sample after so many agents had ended.
    pub fn sample_after(&self, session_count: u64) -> Result<ProcessUsage> {
        let found_sample = self.samples.iter().find(|sample| sample.session_count >= session_count);
        found_sample.copied().with_context(|| format!("the process was not seen after {session_count} sessions"))
    }
}

/// The programs that a process has started, without itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartedPrograms {
    pub git: usize,
    /// Neither git nor the agent.
    pub others: usize,
}

/// A project with an agent that notes its times.
pub(super) struct ScriptedProject {
    directory: TempDir,
}

impl ScriptedProject {
    /// Creates a repository with one commit and trusts its agent.
    pub fn create(
        built: &BuiltPrograms,
        agent: ScriptedAgent<'_>,
        project_files: &[ProjectFile],
    ) -> Result<ScriptedProject> {
        let project = ScriptedProject { directory: TempDir::new()? };
        fs::create_dir_all(project.root_dir())?;
        // The sandbox opens only what is there.
        fs::write(project.stamps_path(), "")?;
        project.write_file(&ProjectFile::new("tribunal.yaml", project.settings_text(built, agent)))?;
        project_files.iter().try_for_each(|project_file| project.write_file(project_file))?;
        for arguments in [
            &["init", "--quiet", "--initial-branch=main"][..],
            // Runs that land commits need a name as well.
            &["config", "user.name", "Bench"],
            &["config", "user.email", "bench@localhost"],
            &["add", "--all"],
            &["commit", "--quiet", "--message=Begin"],
        ] {
            run_checked(Command::new("git").current_dir(project.root_dir()).args(arguments))?;
        }
        run_checked(&mut project.tribunal_command(built, &["trust", "--yes"]))?;
        Ok(project)
    }

    fn settings_text(&self, built: &BuiltPrograms, agent: ScriptedAgent<'_>) -> String {
        let (agent_program, stamps_path) = (built.agent_path(agent.program_name), self.stamps_path());
        let further_args: String = agent.further_args.iter().map(|argument| format!(", {argument:?}")).collect();
        format!(
            "agents: {{use: [scripted], scripted: {{driver: command, argv: [{agent_program:?}, {stamps_path:?}{further_args}]}}}}\n\
             sandbox: {{write: [{stamps_path:?}]}}\n"
        )
    }

    fn write_file(&self, project_file: &ProjectFile) -> Result<()> {
        let file_path = self.root_dir().join(&project_file.path);
        if let Some(parent_dir) = file_path.parent() {
            fs::create_dir_all(parent_dir)?;
        }
        fs::write(&file_path, &project_file.text).with_context(|| format!("cannot write {}", file_path.display()))
    }

    pub fn root_dir(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    fn stamps_path(&self) -> PathBuf {
        self.directory.path().join("stamps")
    }

    /// Builds a command of the program in this project.
    pub fn tribunal_command(&self, built: &BuiltPrograms, arguments: &[&str]) -> Command {
        let mut command = built.tribunal_command();
        self.set_directories(command.args(arguments));
        command
    }

    /// Keeps what the program stores away from what the user of this machine has.
    fn set_directories(&self, command: &mut Command) {
        command
            .current_dir(self.root_dir())
            .env("XDG_STATE_HOME", self.directory.path().join("state"))
            .env("XDG_CACHE_HOME", self.directory.path().join("cache"))
            .stdin(Stdio::null());
    }

    /// Runs a command of the program, and looks at its process until it ends.
    pub fn watch_command(
        &self,
        built: &BuiltPrograms,
        arguments: &[&str],
        sample_interval: Duration,
    ) -> Result<WatchedProcess> {
        let mut command = self.tribunal_command(built, arguments);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut samples = Vec::new();
        loop {
            let session_count = fs::metadata(self.stamps_path())?.len() / STAMP_BYTES;
            samples.extend(sample_process(process.id()).map(|sample| ProcessUsage { session_count, ..sample }));
            if let Some(status) = process.try_wait()? {
                return Ok(WatchedProcess { status, samples });
            }
            thread::sleep(sample_interval);
        }
    }

    /// Runs a command of the program under strace, and counts the programs that it starts; `None` if there is no strace.
    pub fn count_programs(
        &self,
        built: &BuiltPrograms,
        arguments: &[&str],
        expected_code: i32,
    ) -> Result<Option<StartedPrograms>> {
        // It may be there and have no permission to trace anything, as in some containers.
        let mut trial_command = Command::new("strace");
        trial_command.args(["-f", "-o", "/dev/null", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
        if !trial_command.status().is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let trace_path = self.directory.path().join("trace");
        let mut traced_command = Command::new("strace");
        traced_command.args(["-f", "-qq", "-e", "trace=execve", "-o"]).arg(&trace_path);
        traced_command.arg(built.program_path("tribunal")).args(arguments);
        traced_command.env_remove("TRIBUNAL_FAULT").env("NO_COLOR", "1").stdout(Stdio::null()).stderr(Stdio::null());
        self.set_directories(&mut traced_command);
        let status = traced_command.status()?;
        ensure!(status.code() == Some(expected_code), "the traced command ended: {status}");
        let trace_text = fs::read_to_string(&trace_path)?;
        // A program that is looked for in several directories is started once.
        let started: Vec<&str> =
            trace_text.lines().filter(|line| line.contains("execve(") && line.ends_with("= 0")).collect();
        let git = started.iter().filter(|line| line.contains("/git\", [")).count();
        let agents = started.iter().filter(|line| line.contains("-agent\", [")).count();
        // The first one is the command itself.
        let others = started.len().saturating_sub(git + agents + 1);
        Ok(Some(StartedPrograms { git, others }))
    }

    /// Reads when the agents worked.
    pub fn read_sessions(&self) -> Result<Vec<SessionTimes>> {
        let stamps_text = fs::read_to_string(self.stamps_path()).context("no agent noted its times")?;
        let to_ms = |nanoseconds: &str| -> Result<f64> { Ok(nanoseconds.parse::<f64>()? / NANOSECONDS_PER_MS) };
        stamps_text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(began, ended)| Ok(SessionTimes { began_ms: to_ms(began)?, ended_ms: to_ms(ended)? }))
            .collect()
    }

    /// Reads the milliseconds between the end of each agent and the start of the next one.
    pub fn read_waits(&self) -> Result<Vec<f64>> {
        Ok(list_waits(&self.read_sessions()?))
    }
}

/// The milliseconds between the end of each agent and the start of the next one.
pub(super) fn list_waits(sessions: &[SessionTimes]) -> Vec<f64> {
    sessions.windows(2).map(|pair| pair[1].began_ms - pair[0].ended_ms).collect()
}

fn run_checked(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Looks at a process; `None` if it has ended.
fn sample_process(process_id: u32) -> Option<ProcessUsage> {
    let stat_line = fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?;
    let threads = fs::read_dir(format!("/proc/{process_id}/task")).ok()?.flatten();
    let thread_stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    let journal_stats = thread_stats.filter(|stat_line| stat_line.contains("(journal)"));
    let memory_text = fs::read_to_string(format!("/proc/{process_id}/statm")).ok()?;
    let resident_pages: f64 = memory_text.split_whitespace().nth(1)?.parse().ok()?;
    // A process that has ended and was not waited for yet has no memory any more.
    (resident_pages > 0.0).then(|| ProcessUsage {
        cpu_ms: read_cpu_ms(&stat_line).unwrap_or_default(),
        journal_cpu_ms: journal_stats.filter_map(|stat_line| read_cpu_ms(&stat_line)).sum(),
        resident_mb: resident_pages * BYTES_PER_PAGE / BYTES_PER_MEGABYTE,
        peak_mb: read_peak_mb(process_id).unwrap_or_default(),
        session_count: 0,
    })
}

/// Reads the user and system time from a line of `stat`: the fields 12 and 13 after the name.
fn read_cpu_ms(stat_line: &str) -> Option<f64> {
    let fields: Vec<&str> = stat_line.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11..13)?.iter().filter_map(|field| field.parse::<f64>().ok()).sum();
    Some(ticks * CLOCK_TICK_MS)
}

fn read_peak_mb(process_id: u32) -> Option<f64> {
    let status_text = fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    let peak_line = status_text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = peak_line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes / KILOBYTES_PER_MEGABYTE)
}
