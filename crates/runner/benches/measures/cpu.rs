//! CPU time and memory of this process, from `/proc`.

use std::fs;

use crate::Outcome;

/// The kernel counts in hundredths of a second towards programs, regardless of its own clock.
const TICK_MS: f64 = 10.0;

/// CPU time so far, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    pub own: f64,
    /// The time of children that were waited for, and of their children.
    pub children: f64,
}

impl Cpu {
    pub fn now() -> Outcome<Cpu> {
        let stat = fs::read_to_string("/proc/self/stat")?;
        // The second field is the program's name and may contain anything, so counting starts after it.
        let (_, fields) = stat.rsplit_once(')').ok_or("/proc/self/stat has another form")?;
        let ticks: Vec<f64> =
            fields.split_whitespace().skip(11).take(4).map(str::parse).collect::<Result<_, _>>()?;
        let [user, system, children_user, children_system] = ticks[..] else {
            return Err("/proc/self/stat is too short".into());
        };
        Ok(Cpu { own: (user + system) * TICK_MS, children: (children_user + children_system) * TICK_MS })
    }

    pub fn since(self, earlier: Cpu) -> Cpu {
        Cpu { own: self.own - earlier.own, children: self.children - earlier.children }
    }
}

/// The most memory this process ever had, in megabytes.
pub fn peak_memory() -> Outcome<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes / 1024.0)
}
