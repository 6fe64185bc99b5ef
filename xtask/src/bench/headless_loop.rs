//! Measures a headless loop of many iterations from outside: the time between two agents, our own CPU time, the memory.

use std::fs;
use std::path::Path;
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
/// How often the process is looked at.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// The memory after the first part of the iterations is compared with that at the end.
const EARLY_PART: usize = 10;
const BYTES_PER_MEGABYTE: f64 = 1_048_576.0;

/// What a process had used when it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
struct ProcessUsage {
    cpu_ms: f64,
    resident_mb: f64,
}

pub fn measure_headless_loop(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let iterations = if built.is_debug { DEBUG_ITERATIONS } else { ITERATIONS };
    let directory = TempDir::new()?;
    let (project_root, stamps_path) = (directory.path().join("project"), directory.path().join("stamps"));
    prepare_project(built, &project_root, &stamps_path, iterations)?;
    let new_command = || {
        let mut command = built.tribunal_command();
        command
            .current_dir(&project_root)
            .env("XDG_STATE_HOME", directory.path().join("state"))
            .env("XDG_CACHE_HOME", directory.path().join("cache"));
        command
    };
    run_checked(new_command().args(["trust", "--yes"]))?;
    let mut loop_process = new_command()
        .args(["loop", "run", "-p", "Count.", "--max-iterations", &(iterations + 10).to_string()])
        .args(["--set", "limits.calls_per_hour=100000", "--set", "limits.max_tokens=1000000000"])
        .args(["--set", "limits.max_runtime_minutes=600", "--quiet"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let mut samples = Vec::new();
    let status = loop {
        samples.extend(sample_process(loop_process.id()));
        if let Some(status) = loop_process.try_wait()? {
            break status;
        }
        thread::sleep(SAMPLE_INTERVAL);
    };
    ensure!(status.success(), "the loop ended: {status}");
    let waits = find_waits(&stamps_path)?;
    ensure!(waits.len() + 1 == iterations as usize, "{} of {iterations} iterations were seen", waits.len() + 1);
    let last_sample = samples.last().copied().context("the process was never seen")?;
    let early_sample = samples.get(samples.len() / EARLY_PART).copied().unwrap_or(last_sample);
    Ok(vec![
        BenchRow::new(
            "loop: an agent's end to the next one's start, median (wall)",
            BenchFigure::Milliseconds(find_median(waits).context("no agent ended")?),
            BenchFigure::Milliseconds(10.0),
        ),
        BenchRow::new(
            "loop: our CPU for one iteration",
            BenchFigure::Milliseconds(last_sample.cpu_ms / f64::from(iterations)),
            BenchFigure::Milliseconds(5.0),
        ),
        BenchRow::new(
            "loop: growth of the memory from a tenth of the iterations to the end",
            BenchFigure::Megabytes((last_sample.resident_mb - early_sample.resident_mb).max(0.0)),
            BenchFigure::Megabytes(8.0),
        ),
        BenchRow::without_limit("  and the memory at the end", BenchFigure::Megabytes(last_sample.resident_mb)),
    ])
}

fn prepare_project(built: &BuiltPrograms, project_root: &Path, stamps_path: &Path, iterations: u32) -> Result<()> {
    fs::create_dir_all(project_root)?;
    let agent_program = built.program_path("looping-agent");
    fs::write(
        project_root.join("tribunal.yaml"),
        format!(
            "agents: {{use: [looping], looping: {{driver: command, argv: [{agent_program:?}, {stamps_path:?}, \
             \"{iterations}\"]}}}}\n"
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
    let fields: Vec<&str> = stat_line.rsplit_once(')')?.1.split_whitespace().collect();
    // After the name, fields 12 and 13 are the user and system time of the process itself.
    let ticks: f64 = fields.get(11..13)?.iter().filter_map(|field| field.parse::<f64>().ok()).sum();
    let memory_text = fs::read_to_string(format!("/proc/{process_id}/statm")).ok()?;
    let resident_pages: f64 = memory_text.split_whitespace().nth(1)?.parse().ok()?;
    // A process that has ended and was not waited for yet has no memory any more.
    (resident_pages > 0.0).then(|| ProcessUsage {
        cpu_ms: ticks * CLOCK_TICK_MS,
        resident_mb: resident_pages * 4096.0 / BYTES_PER_MEGABYTE,
    })
}

/// The milliseconds between the end of each agent and the start of the next one.
fn find_waits(stamps_path: &Path) -> Result<Vec<f64>> {
    let stamps_text = fs::read_to_string(stamps_path).context("no agent noted its times")?;
    let stamps: Vec<(f64, f64)> = stamps_text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(began, ended)| Ok((began.parse::<f64>()? / 1e6, ended.parse::<f64>()? / 1e6)))
        .collect::<Result<_>>()?;
    Ok(stamps.windows(2).map(|pair| pair[1].0 - pair[0].1).collect())
}

fn find_median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
