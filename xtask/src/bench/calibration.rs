//! What this machine takes for three fixed things, so that limits on times can be multiples of them.
//!
//! A limit in milliseconds fails on a slow machine and hides a regression on a fast one. A multiple of something that is measured
//! in the same run, right before and after the rows that use it, does neither. The limits were milliseconds once; each was
//! divided by what its unit takes on a machine with two slow cores: `/bin/true` 0.50 ms of CPU time and 0.56 of wall time, git
//! 1.2, the loop 8.5. Only the limit of `--version` is stricter than what it was.

use std::fmt;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::binary_runs::{children_cpu_ms, find_median};
use super::table::BenchTime;

/// The kernel counts the CPU time of programs in hundredths of a second, so it takes many starts to measure one.
const PROCESS_STARTS: u32 = 200;
const GIT_STARTS: u32 = 80;
const LOOP_RUNS: u32 = 20;
const LOOP_BUFFER_BYTES: usize = 64 << 10;
const LOOP_PASSES: u32 = 40;
const NANOSECONDS_PER_MS: f64 = 1e6;

/// What a time is a multiple of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalibrationUnit {
    /// Fork and exec of `/bin/true`: what the kernel and the loader take for any program.
    Process,
    /// One start of git in a repository: what a step costs that asks git one question.
    Git,
    /// A fixed loop of computing, in this program and built without optimising, as `cargo xtask` is.
    Cpu,
}

/// The unit of a time, and the most that the time may be in it.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimit {
    pub unit: CalibrationUnit,
    pub most: Option<f64>,
}

impl CalibrationUnit {
    pub const fn at_most(self, most: f64) -> TimeLimit {
        TimeLimit { unit: self, most: Some(most) }
    }

    /// For rows that are only shown.
    pub const fn without_limit(self) -> TimeLimit {
        TimeLimit { unit: self, most: None }
    }
}

impl fmt::Display for CalibrationUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Process => "/bin/true",
            Self::Git => "git start",
            Self::Cpu => "fixed loop",
        })
    }
}

/// What one unit takes, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitTimes {
    pub cpu_ms: f64,
    pub wall_ms: f64,
}

impl UnitTimes {
    fn mean_with(self, other: UnitTimes) -> UnitTimes {
        UnitTimes { cpu_ms: (self.cpu_ms + other.cpu_ms) / 2.0, wall_ms: (self.wall_ms + other.wall_ms) / 2.0 }
    }
}

/// What all units take at the moment.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    pub process: UnitTimes,
    pub git: UnitTimes,
    pub cpu: UnitTimes,
}

impl Calibration {
    pub fn measure_now() -> Result<Calibration> {
        let directory = TempDir::new()?;
        let new_git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.args(arguments).current_dir(directory.path());
            command
        };
        ensure!(new_git(&["init", "--quiet"]).status().context("there is no git")?.success(), "`git init` failed");
        Ok(Calibration {
            process: time_starts(PROCESS_STARTS, || Command::new(Path::new("/bin/true")))?,
            git: time_starts(GIT_STARTS, || new_git(&["rev-parse", "--git-dir"]))?,
            cpu: time_fixed_loop()?,
        })
    }

    /// The mean of two measurements, since a machine may become busy in between.
    pub fn mean_with(self, other: Calibration) -> Calibration {
        Calibration {
            process: self.process.mean_with(other.process),
            git: self.git.mean_with(other.git),
            cpu: self.cpu.mean_with(other.cpu),
        }
    }

    /// How many of these units a time is: CPU time is compared with CPU time, wall time with wall time.
    pub fn find_multiple(&self, time: BenchTime, unit: CalibrationUnit) -> f64 {
        let unit_times = match unit {
            CalibrationUnit::Process => self.process,
            CalibrationUnit::Git => self.git,
            CalibrationUnit::Cpu => self.cpu,
        };
        match time {
            BenchTime::Cpu(ms) => ms / unit_times.cpu_ms,
            BenchTime::Wall(ms) => ms / unit_times.wall_ms,
        }
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            (CalibrationUnit::Process, self.process),
            (CalibrationUnit::Git, self.git),
            (CalibrationUnit::Cpu, self.cpu),
        ];
        for (index, (unit, times)) in units.into_iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{unit} {:.2} ms (wall {:.2})", times.cpu_ms, times.wall_ms)?;
        }
        Ok(())
    }
}

/// The mean CPU time of a start, and the median of its wall times: the kernel does not say what a single start took.
fn time_starts(start_count: u32, new_command: impl Fn() -> Command) -> Result<UnitTimes> {
    let mut wall_times = Vec::new();
    let cpu_before = children_cpu_ms()?;
    for _ in 0..start_count {
        let mut command = new_command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let start_time = Instant::now();
        let status = command.status().with_context(|| format!("{command:?} cannot be started"))?;
        wall_times.push(start_time.elapsed().as_secs_f64() * 1000.0);
        ensure!(status.success(), "{command:?} ended: {status}");
    }
    let cpu_ms = (children_cpu_ms()? - cpu_before) / f64::from(start_count);
    create_unit_times(cpu_ms, wall_times)
}

/// The kernel brings the CPU time of a thread up to date only now and then, so that of a single loop is not known either.
fn time_fixed_loop() -> Result<UnitTimes> {
    let buffer: Vec<u8> = (0..LOOP_BUFFER_BYTES).map(|index| (index % 251) as u8).collect();
    let mut wall_times = Vec::new();
    let cpu_before = read_thread_cpu_ms();
    for _ in 0..LOOP_RUNS {
        let start_time = Instant::now();
        black_box(hash_repeatedly(black_box(&buffer)));
        wall_times.push(start_time.elapsed().as_secs_f64() * 1000.0);
    }
    // A kernel that does not count so finely leaves the median of the wall times: a loop is so short that it is seldom interrupted.
    let total_cpu_ms = read_thread_cpu_ms().zip(cpu_before).map(|(after, before)| after - before);
    let cpu_ms = total_cpu_ms.map(|total_ms| total_ms / f64::from(LOOP_RUNS));
    create_unit_times(cpu_ms.or_else(|| find_median(wall_times.clone())).unwrap_or_default(), wall_times)
}

/// FNV-1a: one multiplication for each byte, and nothing that a machine could do at once.
fn hash_repeatedly(buffer: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for _ in 0..LOOP_PASSES {
        for byte in buffer {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// The CPU time of this thread so far, which the scheduler counts in nanoseconds.
fn read_thread_cpu_ms() -> Option<f64> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = statistics.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / NANOSECONDS_PER_MS)
}

fn create_unit_times(cpu_ms: f64, wall_times: Vec<f64>) -> Result<UnitTimes> {
    let wall_ms = find_median(wall_times).context("nothing was timed")?;
    // Every row is divided by them.
    ensure!(cpu_ms > 0.0 && wall_ms > 0.0, "the calibration took no time: the kernel does not count CPU time");
    Ok(UnitTimes { cpu_ms, wall_ms })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn sample_calibration() -> Calibration {
        let unit_times = |cpu_ms, wall_ms| UnitTimes { cpu_ms, wall_ms };
        Calibration { process: unit_times(0.5, 1.0), git: unit_times(2.0, 4.0), cpu: unit_times(10.0, 12.0) }
    }

    #[test]
    fn a_time_is_compared_with_the_same_kind_of_time() {
        let find = |time, unit| sample_calibration().find_multiple(time, unit);
        assert_eq!(find(BenchTime::Cpu(5.0), CalibrationUnit::Process), 10.0);
        assert_eq!(find(BenchTime::Wall(5.0), CalibrationUnit::Process), 5.0);
        assert_eq!(find(BenchTime::Cpu(5.0), CalibrationUnit::Git), 2.5);
        assert_eq!(find(BenchTime::Cpu(5.0), CalibrationUnit::Cpu), 0.5);
    }

    #[test]
    fn two_measurements_count_equally() {
        let (sample, busy_times) = (sample_calibration(), UnitTimes { cpu_ms: 1.5, wall_ms: 3.0 });
        let mean = sample.mean_with(Calibration { process: busy_times, ..sample });
        assert_eq!((mean.process, mean.git), (UnitTimes { cpu_ms: 1.0, wall_ms: 2.0 }, sample.git));
    }

    #[test]
    fn the_fixed_loop_is_fixed() {
        assert_eq!(hash_repeatedly(b"tribunal"), hash_repeatedly(b"tribunal"));
        assert_ne!(hash_repeatedly(b"tribunal"), hash_repeatedly(b"tribunam"));
    }

    #[test]
    fn no_time_at_all_is_no_calibration() {
        assert!(create_unit_times(0.0, vec![1.0]).is_err());
        assert!(create_unit_times(1.0, Vec::new()).is_err());
    }
}
