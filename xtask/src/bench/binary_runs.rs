//! Measures the program from outside: how soon it answers.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use super::calibration::CalibrationUnit;
use super::table::{BenchRow, BenchTime};
use super::{BuiltPrograms, find_value};

/// The kernel counts the CPU time of programs in hundredths of a second, so it takes many starts to measure one.
const CLOCK_TICK_MS: f64 = 10.0;
const START_COUNT: u32 = 100;
const LIST_COUNT: u32 = 5;
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
    let version_row = mean_cpu_ms(START_COUNT, || {
        let mut command = built.tribunal_command();
        command.arg("--version");
        command
    });
    let status_row = mean_cpu_ms(START_COUNT, || {
        let mut command = built.tribunal_command();
        command.arg("status").current_dir(&project);
        command
    });
    Ok([("start-up: --version", version_row, 2.5), ("start-up: status", status_row, 20.0)]
        .map(|(label, cpu_ms, most)| create_start_row(label, cpu_ms, most))
        .into())
}

/// A start is compared with that of the smallest program there is.
fn create_start_row(label: &str, cpu_ms: Result<f64>, most: f64) -> BenchRow {
    let row =
        cpu_ms.map(|cpu_ms| BenchRow::from_time(label, BenchTime::Cpu(cpu_ms), CalibrationUnit::Process.at_most(most)));
    BenchRow::from_result(label, row)
}

pub fn measure_many_runs(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let directory = TempDir::new()?;
    let state_dir = directory.path().join(".tribunal");
    let run_count = find_value(&built.run_measures(&["many-runs", &state_dir.to_string_lossy()])?, "many-runs")?;
    let cpu_ms = mean_cpu_ms(LIST_COUNT, || {
        let mut command = built.tribunal_command();
        command.arg("runs").current_dir(directory.path());
        command
    })?;
    let limit = CalibrationUnit::Cpu.at_most(24.0);
    Ok(vec![BenchRow::from_time(&format!("list of {run_count} runs"), BenchTime::Cpu(cpu_ms), limit)])
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
