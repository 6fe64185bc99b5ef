//! Measures the sessions of a story from outside: the time between two agents, our own CPU time, the programs that are started.
//!
//! The agent changes a file and never finishes the story, so that there is one session after the other until the limit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::BuiltPrograms;
use super::headless_loop::{ProcessUsage, find_median, read_waits, run_checked, sample_process};
use super::table::{BenchFigure, BenchRow};

/// The most sessions that a step may have.
const SESSIONS: u32 = 20;
/// The exit code of a story that waits for the user.
const WAITING_CODE: i32 = 3;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);
const STORY_TEXT: &str = "# Story 1.1: Count\n\nStatus: ready-for-dev\n\n## Acceptance Criteria\n\n1. It counts.\n\n## Tasks\n\n\
                          - [ ] Count (AC: 1)\n";

pub fn measure_story(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let project = StoryProject::create(built)?;
    let mut story_process = project.story_command(built.tribunal_command()).spawn()?;
    let (mut first_sample, mut last_sample) = (None, None);
    let status = loop {
        last_sample = sample_process(story_process.id()).or(last_sample);
        // The start of the program and the clone belong to no session.
        let has_stamp = || fs::metadata(project.stamps_path()).is_ok_and(|metadata| metadata.len() > 0);
        if first_sample.is_none() && has_stamp() {
            first_sample = last_sample;
        }
        if let Some(status) = story_process.try_wait()? {
            break status;
        }
        thread::sleep(SAMPLE_INTERVAL);
    };
    ensure!(status.code() == Some(WAITING_CODE), "the story ended: {status}");
    let waits = read_waits(&project.stamps_path())?;
    ensure!(waits.len() + 1 == SESSIONS as usize, "{} of {SESSIONS} sessions were seen", waits.len() + 1);
    let (first_sample, last_sample) = first_sample.zip(last_sample).context("the process was never seen")?;
    let cpu_ms = |sample: ProcessUsage| sample.cpu_ms - sample.journal_cpu_ms;
    Ok(vec![
        BenchRow::new(
            "story: an agent's end to the next one's start, median (wall)",
            BenchFigure::Milliseconds(find_median(waits).context("no agent ended")?),
            BenchFigure::Milliseconds(10.0),
        ),
        BenchRow::new(
            "story: our CPU for one session, without writing the journal",
            BenchFigure::Milliseconds((cpu_ms(last_sample) - cpu_ms(first_sample)) / f64::from(SESSIONS - 1)),
            BenchFigure::Milliseconds(5.0),
        ),
        count_programs(built)?,
        BenchRow::from_note("  bmad-loop, for a story", "17"),
    ])
}

/// Counts the programs that a session starts besides its agent and git.
fn count_programs(built: &BuiltPrograms) -> Result<BenchRow> {
    const LABEL: &str = "story: programs started for one session besides agent and git";
    if Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return Ok(BenchRow::from_note(LABEL, "not measured: there is no `strace` here"));
    }
    let project = StoryProject::create(built)?;
    let trace_path = project.directory.path().join("trace");
    let mut traced_command = Command::new("strace");
    traced_command.args(["-f", "-qq", "-e", "trace=execve", "-o"]).arg(&trace_path);
    let tribunal_command = built.tribunal_command();
    traced_command.arg(tribunal_command.get_program()).env_remove("TRIBUNAL_FAULT").env("NO_COLOR", "1");
    project.story_command(traced_command).status()?;
    let trace_text = fs::read_to_string(&trace_path)?;
    let started_programs = trace_text
        .lines()
        .filter(|line| line.contains("execve(") && line.ends_with("= 0"))
        .filter(|line| !line.contains("/git\", [") && !line.contains("looping-agent\", ["));
    // The first one is the story itself.
    let program_count = started_programs.count().saturating_sub(1);
    Ok(BenchRow::new(LABEL, BenchFigure::Count(program_count as f64 / f64::from(SESSIONS)), BenchFigure::Count(4.0)))
}

/// A project with one story and an agent that never finishes it.
struct StoryProject {
    directory: TempDir,
}

impl StoryProject {
    fn create(built: &BuiltPrograms) -> Result<StoryProject> {
        let project = StoryProject { directory: TempDir::new()? };
        prepare_project(built, &project.root(), &project.stamps_path())?;
        run_checked(project.set_directories(&mut built.tribunal_command()).args(["trust", "--yes"]))?;
        Ok(project)
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    fn stamps_path(&self) -> PathBuf {
        self.directory.path().join("stamps")
    }

    fn set_directories<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .current_dir(self.root())
            .env("XDG_STATE_HOME", self.directory.path().join("state"))
            .env("XDG_CACHE_HOME", self.directory.path().join("cache"))
    }

    /// Adds the arguments that run the story to a command that begins with the program.
    fn story_command(&self, mut command: Command) -> Command {
        let max_cycles = format!("sprint.max_cycles={SESSIONS}");
        self.set_directories(&mut command)
            .args(["sprint", "1.1", "--review", "off", "--set", &max_cycles, "--quiet"])
            .args(["--set", "limits.calls_per_hour=100000", "--set", "limits.max_tokens=1000000000"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

fn prepare_project(built: &BuiltPrograms, project_root: &Path, stamps_path: &Path) -> Result<()> {
    let artifacts_dir = project_root.join("_bmad-output/implementation-artifacts");
    fs::create_dir_all(&artifacts_dir)?;
    // The sandbox opens only what is there.
    fs::write(stamps_path, "")?;
    let agent_program = built.program_path("looping-agent");
    fs::write(
        project_root.join("tribunal.yaml"),
        format!(
            "agents: {{use: [looping], looping: {{driver: command, argv: [{agent_program:?}, {stamps_path:?}, \"1000\"]}}}}\n\
             sandbox: {{write: [{stamps_path:?}]}}\n"
        ),
    )?;
    fs::write(
        artifacts_dir.join("sprint-status.yaml"),
        "development_status:\n  epic-1: in-progress\n  1-1-count: ready-for-dev\n",
    )?;
    fs::write(artifacts_dir.join("1-1-count.md"), STORY_TEXT)?;
    fs::write(project_root.join("progress.txt"), "nothing yet\n")?;
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["-c", "user.name=Bench", "-c", "user.email=bench@localhost", "commit", "--quiet", "--message=Begin"],
    ] {
        run_checked(Command::new("git").current_dir(project_root).args(arguments))?;
    }
    Ok(())
}
