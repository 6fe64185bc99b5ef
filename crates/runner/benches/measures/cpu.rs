//! CPU time and memory of this process, from `/proc`.

use std::fs;

use crate::BenchResult;

/// The kernel counts in hundredths of a second towards programs, regardless of its own clock.
const TICK_MS: f64 = 10.0;

/// CPU time so far, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    pub own_ms: f64,
    /// The time of children that were waited for, and of their children.
    pub children_ms: f64,
}

impl CpuTime {
    pub fn measure_now() -> BenchResult<CpuTime> {
        let stat = fs::read_to_string("/proc/self/stat")?;
        // The second field is the program's name and may contain anything, so counting starts after it.
        let (_, fields) = stat.rsplit_once(')').ok_or("/proc/self/stat has another form")?;
        let ticks: Vec<f64> = fields.split_whitespace().skip(11).take(4).map(str::parse).collect::<Result<_, _>>()?;
        let [user, system, children_user, children_system] = ticks[..] else {
            return Err("/proc/self/stat is too short".into());
        };
        Ok(CpuTime { own_ms: (user + system) * TICK_MS, children_ms: (children_user + children_system) * TICK_MS })
    }

    pub fn time_since(self, earlier: CpuTime) -> CpuTime {
        CpuTime { own_ms: self.own_ms - earlier.own_ms, children_ms: self.children_ms - earlier.children_ms }
    }
}

/// The most memory this process ever had, in megabytes.
pub fn peak_memory() -> BenchResult<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes / 1024.0)
}
