//! Measures a headless loop of many iterations from outside: the time between two agents, our own CPU time, the memory.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::BuiltPrograms;
use super::binary_runs::find_median;
use super::calibration::CalibrationUnit;
use super::scripted_project::{ProjectFile, ScriptedAgent, ScriptedProject};
use super::table::{BenchFigure, BenchRow, BenchTime};

const ITERATIONS: u32 = 10_000;
const SHORT_ITERATIONS: u32 = 50;
/// The length of the loop whose programs are counted.
const COUNTED_ITERATIONS: u32 = 20;
const SHORT_COUNTED_ITERATIONS: u32 = 5;
/// How often the process is looked at.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// The memory after a tenth of the iterations is compared with that at the end. A short loop needs half of them to get to know
/// its own code.
const EARLY_PART: usize = 10;
const SHORT_EARLY_PART: usize = 2;
const COUNT_LABEL: &str = "loop: programs started for one iteration besides agent and git";

pub fn measure_headless_loop(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let iterations = if built.is_short() { SHORT_ITERATIONS } else { ITERATIONS };
    let project = create_project(built, iterations)?;
    let max_iterations = (iterations + 10).to_string();
    let watched = project.watch_command(built, &loop_arguments(&max_iterations), SAMPLE_INTERVAL)?;
    ensure!(watched.status.success(), "the loop ended: {}", watched.status);
    let waits = project.read_waits()?;
    ensure!(waits.len() + 1 == iterations as usize, "{} of {iterations} iterations were seen", waits.len() + 1);
    let last_sample = watched.last_sample()?;
    let early_part = if built.is_short() { SHORT_EARLY_PART } else { EARLY_PART };
    let early_sample = watched.samples.get(watched.samples.len() / early_part).copied().unwrap_or(last_sample);
    Ok(vec![
        BenchRow::from_time(
            "loop: an agent's end to the next one's start, median (wall)",
            BenchTime::Wall(find_median(waits).context("no agent ended")?),
            CalibrationUnit::Process.at_most(18.0),
        ),
        BenchRow::from_note("  ralph, by the same measure", "0.3 to 251 ms"),
        BenchRow::from_time(
            "loop: our CPU for one iteration, without writing the journal",
            BenchTime::Cpu(last_sample.own_cpu_ms() / f64::from(iterations)),
            CalibrationUnit::Process.at_most(10.0),
        ),
        BenchRow::from_time(
            "  and for writing and syncing the journal",
            BenchTime::Cpu(last_sample.journal_cpu_ms / f64::from(iterations)),
            CalibrationUnit::Process.without_limit(),
        ),
        BenchRow::from_result(COUNT_LABEL, count_programs(built)),
        BenchRow::from_note("  bmalph, by the same measure", "286"),
        BenchRow::new(
            "loop: growth of the memory after the first iterations",
            BenchFigure::Megabytes((last_sample.resident_mb - early_sample.resident_mb).max(0.0)),
            BenchFigure::Megabytes(8.0),
        ),
        BenchRow::without_limit("  and the memory at the end", BenchFigure::Megabytes(last_sample.resident_mb)),
    ])
}

/// Counts the programs that an iteration starts besides its agent and git, in a short loop.
fn count_programs(built: &BuiltPrograms) -> Result<BenchRow> {
    let iterations = if built.is_short() { SHORT_COUNTED_ITERATIONS } else { COUNTED_ITERATIONS };
    let project = create_project(built, iterations)?;
    let max_iterations = (iterations + 10).to_string();
    Ok(match project.count_programs(built, &loop_arguments(&max_iterations), 0)? {
        None => BenchRow::without_strace(COUNT_LABEL),
        Some(started) => BenchRow::new(
            COUNT_LABEL,
            BenchFigure::Count(started.others as f64 / f64::from(iterations)),
            BenchFigure::Count(2.0),
        ),
    })
}

/// Creates a project with an agent that counts iterations.
fn create_project(built: &BuiltPrograms, iterations: u32) -> Result<ScriptedProject> {
    let further_args = [iterations.to_string()];
    let agent = ScriptedAgent { program_name: "looping-agent", further_args: &further_args };
    ScriptedProject::create(built, agent, &[ProjectFile::new("progress.txt", "nothing yet\n")])
}

fn loop_arguments(max_iterations: &str) -> Vec<&str> {
    let mut arguments = vec!["loop", "run", "-p", "Count.", "--max-iterations", max_iterations, "--quiet"];
    arguments.extend(["--set", "limits.calls_per_hour=100000", "--set", "limits.max_tokens=1000000000"]);
    arguments.extend(["--set", "limits.max_runtime_minutes=600"]);
    arguments
}
