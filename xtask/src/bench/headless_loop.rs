//! Measures a headless loop of many iterations from outside: the time between two agents, our own CPU time, the memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

use super::BuiltPrograms;
use super::table::{BenchFigure, BenchRow};

/// The kernel counts the CPU time of programs in hundredths of a second.
const CLOCK_TICK_MS: f64 = 10.0;
const ITERATIONS: u32 = 10_000;
const DEBUG_ITERATIONS: u32 = 50;
/// The length of the loop whose programs are counted.
const COUNTED_ITERATIONS: u32 = 20;
/// How often the process is looked at.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// The memory after the first part of the iterations is compared with that at the end.
const EARLY_PART: usize = 10;
const BYTES_PER_MEGABYTE: f64 = 1_048_576.0;

/// What a process had used when it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessUsage {
    pub cpu_ms: f64,
    /// The part of the thread that writes and syncs the journal.
    pub journal_cpu_ms: f64,
    resident_mb: f64,
}

pub fn measure_headless_loop(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let iterations = if built.is_debug { DEBUG_ITERATIONS } else { ITERATIONS };
    let project = LoopProject::create(built, iterations)?;
    let mut loop_process = project.loop_command(built.tribunal_command()).spawn()?;
    let mut samples = Vec::new();
    let status = loop {
        samples.extend(sample_process(loop_process.id()));
        if let Some(status) = loop_process.try_wait()? {
            break status;
        }
        thread::sleep(SAMPLE_INTERVAL);
    };
    ensure!(status.success(), "the loop ended: {status}");
    let waits = project.find_waits()?;
    ensure!(waits.len() + 1 == iterations as usize, "{} of {iterations} iterations were seen", waits.len() + 1);
    let last_sample = samples.last().copied().context("the process was never seen")?;
    let early_sample = samples.get(samples.len() / EARLY_PART).copied().unwrap_or(last_sample);
    Ok(vec![
        BenchRow::new(
            "loop: an agent's end to the next one's start, median (wall)",
            BenchFigure::Milliseconds(find_median(waits).context("no agent ended")?),
            BenchFigure::Milliseconds(10.0),
        ),
        BenchRow::from_note("  ralph, by the same measure", "0.3 to 251 ms"),
        BenchRow::new(
            "loop: our CPU for one iteration, without writing the journal",
            BenchFigure::Milliseconds((last_sample.cpu_ms - last_sample.journal_cpu_ms) / f64::from(iterations)),
            BenchFigure::Milliseconds(5.0),
        ),
        BenchRow::without_limit(
            "  and for writing and syncing the journal",
            BenchFigure::Milliseconds(last_sample.journal_cpu_ms / f64::from(iterations)),
        ),
        count_programs(built)?,
        BenchRow::from_note("  bmalph, by the same measure", "286"),
        BenchRow::new(
            "loop: growth of the memory from a tenth of the iterations to the end",
            BenchFigure::Megabytes((last_sample.resident_mb - early_sample.resident_mb).max(0.0)),
            BenchFigure::Megabytes(8.0),
        ),
        BenchRow::without_limit("  and the memory at the end", BenchFigure::Megabytes(last_sample.resident_mb)),
    ])
}

/// Counts the programs that an iteration starts besides its agent and git, in a short loop.
fn count_programs(built: &BuiltPrograms) -> Result<BenchRow> {
    const LABEL: &str = "loop: programs started for one iteration besides agent and git";
    if Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return Ok(BenchRow::from_note(LABEL, "not measured: there is no `strace` here"));
    }
    let project = LoopProject::create(built, COUNTED_ITERATIONS)?;
    let trace_path = project.directory.path().join("trace");
    let mut traced_command = Command::new("strace");
    traced_command.args(["-f", "-qq", "-e", "trace=execve", "-o"]).arg(&trace_path);
    let tribunal_command = built.tribunal_command();
    traced_command.arg(tribunal_command.get_program()).env_remove("TRIBUNAL_FAULT").env("NO_COLOR", "1");
    run_checked(&mut project.loop_command(traced_command))?;
    let trace_text = fs::read_to_string(&trace_path)?;
    let started_programs = trace_text
        .lines()
        // A program that is looked for in several directories is started once.
        .filter(|line| line.contains("execve(") && line.ends_with("= 0"))
        .filter(|line| !line.contains("/git\", [") && !line.contains("looping-agent\", ["));
    // The first one is the loop itself.
    let program_count = started_programs.count().saturating_sub(1);
    Ok(BenchRow::new(
        LABEL,
        BenchFigure::Count(program_count as f64 / f64::from(COUNTED_ITERATIONS)),
        BenchFigure::Count(2.0),
    ))
}

/// A project with an agent that counts iterations.
struct LoopProject {
    directory: TempDir,
    iterations: u32,
}

impl LoopProject {
    fn create(built: &BuiltPrograms, iterations: u32) -> Result<LoopProject> {
        let project = LoopProject { directory: TempDir::new()?, iterations };
        prepare_project(built, &project.root(), &project.stamps_path(), iterations)?;
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

    /// Adds the arguments that run the loop to a command that begins with the program.
    fn loop_command(&self, mut command: Command) -> Command {
        self.set_directories(&mut command)
            .args(["loop", "run", "-p", "Count.", "--max-iterations", &(self.iterations + 10).to_string()])
            .args(["--set", "limits.calls_per_hour=100000", "--set", "limits.max_tokens=1000000000"])
            .args(["--set", "limits.max_runtime_minutes=600", "--quiet"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    fn find_waits(&self) -> Result<Vec<f64>> {
        read_waits(&self.stamps_path())
    }
}

/// Reads the milliseconds between the end of each agent and the start of the next one.
pub(super) fn read_waits(stamps_path: &Path) -> Result<Vec<f64>> {
    let stamps_text = fs::read_to_string(stamps_path).context("no agent noted its times")?;
    let stamps: Vec<(f64, f64)> = stamps_text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(began, ended)| Ok((began.parse::<f64>()? / 1e6, ended.parse::<f64>()? / 1e6)))
        .collect::<Result<_>>()?;
    Ok(stamps.windows(2).map(|pair| pair[1].0 - pair[0].1).collect())
}

fn prepare_project(built: &BuiltPrograms, project_root: &Path, stamps_path: &Path, iterations: u32) -> Result<()> {
    fs::create_dir_all(project_root)?;
    // The sandbox opens only what is there.
    fs::write(stamps_path, "")?;
    let agent_program = built.program_path("looping-agent");
    fs::write(
        project_root.join("tribunal.yaml"),
        format!(
            "agents: {{use: [looping], looping: {{driver: command, argv: [{agent_program:?}, {stamps_path:?}, \
             \"{iterations}\"]}}}}\nsandbox: {{write: [{stamps_path:?}]}}\n"
        ),
    )?;
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

pub(super) fn run_checked(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Looks at a process; `None` if it has ended.
pub(super) fn sample_process(process_id: u32) -> Option<ProcessUsage> {
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
        resident_mb: resident_pages * 4096.0 / BYTES_PER_MEGABYTE,
    })
}

/// Reads the user and system time from a line of `stat`: the fields 12 and 13 after the name.
fn read_cpu_ms(stat_line: &str) -> Option<f64> {
    let fields: Vec<&str> = stat_line.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11..13)?.iter().filter_map(|field| field.parse::<f64>().ok()).sum();
    Some(ticks * CLOCK_TICK_MS)
}

pub(super) fn find_median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
