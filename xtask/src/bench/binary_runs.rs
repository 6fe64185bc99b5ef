//! Measures the program from outside: how soon it answers, and how soon it continues after an agent has ended.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use super::BuiltPrograms;
use super::table::{BenchFigure, BenchRow};

/// The kernel counts the CPU time of programs in hundredths of a second, so it takes many starts to measure one.
const CLOCK_TICK_MS: f64 = 10.0;
const START_COUNT: u32 = 100;
const REVIEW_COUNT: u32 = 20;
const SYNC_COUNT: usize = 50;

/// The CPU time of all children that were waited for, in milliseconds.
pub fn children_cpu_ms() -> Result<f64> {
    let stat_line = fs::read_to_string("/proc/self/stat").context("only Linux says what children took")?;
    let fields = stat_line.rsplit_once(')').map_or("", |(_, fields)| fields);
    // After the name, fields 14 and 15 are the user and system time of the children.
    let ticks = fields.split_whitespace().skip(13).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? * CLOCK_TICK_MS)
}

/// The CPU time of one start, as the mean of many.
fn mean_cpu_ms(repetitions: u32, new_command: impl Fn() -> Command) -> Result<f64> {
    let cpu_before = children_cpu_ms()?;
    for _ in 0..repetitions {
        let mut command = new_command();
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        // A start that fails may be fast and would spoil the mean.
        if !status.success() {
            bail!("{command:?} ended: {status}");
        }
    }
    Ok((children_cpu_ms()? - cpu_before) / f64::from(repetitions))
}

pub fn measure_start(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let directory = TempDir::new()?;
    let project = directory.path().join("demo");
    // The demo project gives `status` a journal to read.
    mean_cpu_ms(1, || {
        let mut demo_command = built.tribunal_command();
        demo_command.args(["demo", "--dir"]).arg(&project);
        demo_command
    })?;
    let version_ms = mean_cpu_ms(START_COUNT, || {
        let mut command = built.tribunal_command();
        command.arg("--version");
        command
    })?;
    let status_ms = mean_cpu_ms(START_COUNT, || {
        let mut command = built.tribunal_command();
        command.arg("status").current_dir(&project);
        command
    })?;
    Ok(vec![
        BenchRow::new("start-up: --version", BenchFigure::Milliseconds(version_ms), BenchFigure::Milliseconds(3.0)),
        BenchRow::new("start-up: status", BenchFigure::Milliseconds(status_ms), BenchFigure::Milliseconds(10.0)),
    ])
}

pub fn measure_many_runs(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let directory = TempDir::new()?;
    let state_dir = directory.path().join(".tribunal");
    built.run_measures(&["many-runs", &state_dir.to_string_lossy()])?;
    let cpu_ms = mean_cpu_ms(5, || {
        let mut command = built.tribunal_command();
        command.arg("runs").current_dir(directory.path());
        command
    })?;
    Ok(vec![BenchRow::new("list of 1,000 runs", BenchFigure::Milliseconds(cpu_ms), BenchFigure::Milliseconds(200.0))])
}

/// Measures the wall time from the end of an agent to the next effect: the agent records its own end, and the journal records
/// when the next effect was started. One commit lies in between; the time that the disk needs for it is measured separately.
pub fn measure_handoff(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let directory = TempDir::new()?;
    let (project_root, ends_path) = (directory.path(), directory.path().join("ends"));
    let agent_program = built.program_path("stamping-agent");
    fs::write(project_root.join("plan.md"), "# Plan\n\nNothing to see.\n")?;
    fs::write(
        project_root.join("tribunal.yaml"),
        format!(
            "tier: 0\nagents: {{use: [stamping], stamping: {{driver: command, argv: [{agent_program:?}, {ends_path:?}]}}}}\n\
             tasks: {{required_issues: 0}}\n"
        ),
    )?;
    let new_command = || {
        let mut command = built.tribunal_command();
        // The trust of this bench must not be mixed with what the user of this machine has trusted.
        command.current_dir(project_root).env("XDG_STATE_HOME", project_root.join("state"));
        command
    };
    mean_cpu_ms(1, || {
        let mut command = new_command();
        command.args(["trust", "--yes"]);
        command
    })?;
    let mut wait_times = Vec::new();
    let mut cpu_ms = children_cpu_ms()?;
    for _ in 0..REVIEW_COUNT {
        let review = new_command().args(["review", "plan.md", "--json"]).output()?;
        if !review.status.success() {
            bail!("the review failed: {}", String::from_utf8_lossy(&review.stderr));
        }
        // The file with the ends is read after each review and removed, because the keys repeat.
        wait_times.extend(find_waits(&String::from_utf8(review.stdout)?, &ends_path)?);
        fs::remove_file(&ends_path)?;
    }
    cpu_ms = (children_cpu_ms()? - cpu_ms) / f64::from(REVIEW_COUNT);
    let (median_wait, sync_ms) = (find_median(wait_times).context("no agent ended")?, median_fsync_ms(project_root)?);
    Ok(vec![
        BenchRow::new(
            "agent's end to the next effect: median (wall)",
            BenchFigure::Milliseconds((median_wait - sync_ms).max(0.0)),
            BenchFigure::Milliseconds(10.0),
        ),
        BenchRow::without_limit("  and the disk's part of it, one fsync (wall)", BenchFigure::Milliseconds(sync_ms)),
        BenchRow::without_limit("a whole review with one agent", BenchFigure::Milliseconds(cpu_ms)),
    ])
}

/// The milliseconds from the end of each agent to the next effect.
fn find_waits(journal: &str, ends_path: &Path) -> Result<Vec<f64>> {
    let ends_text = fs::read_to_string(ends_path).context("no agent noted its end")?;
    let agent_ends: BTreeMap<&str, f64> = ends_text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(task, nanoseconds)| Ok((task, nanoseconds.parse::<f64>()? / 1e6)))
        .collect::<Result<_>>()?;
    let entries: Vec<Value> = journal.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let mut wait_times = Vec::new();
    for (entry_index, entry) in entries.iter().enumerate() {
        let end_ms = entry["key"].as_str().and_then(|key| agent_ends.get(key));
        // The effect that follows the reply in the journal is the one that the reply has caused.
        let next_effect = entries[entry_index..].iter().find(|later_entry| later_entry["kind"] == "effect_started");
        if let (Some(end_ms), Some(next_effect), "effect_finished") =
            (end_ms, next_effect, entry["kind"].as_str().unwrap_or_default())
        {
            wait_times.push(next_effect["at"]["wall_ms"].as_f64().context("an entry without a time")? - end_ms);
        }
    }
    Ok(wait_times)
}

/// The time that this disk needs to make a page durable, as the median of several tries.
pub fn median_fsync_ms(directory: &Path) -> Result<f64> {
    let mut sync_file = File::create(directory.join("sync"))?;
    let mut sync_times = Vec::new();
    for _ in 0..SYNC_COUNT {
        // Without new data there would be nothing to make durable.
        sync_file.write_all(&[7; 4096])?;
        let start_time = Instant::now();
        sync_file.sync_all()?;
        sync_times.push(start_time.elapsed().as_secs_f64() * 1000.0);
    }
    find_median(sync_times).context("nothing was written")
}

pub fn find_median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}
