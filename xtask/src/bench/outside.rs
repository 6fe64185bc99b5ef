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

use super::Built;
use super::table::{Figure, Row};

/// The kernel counts the CPU time of programs in hundredths of a second, so it takes many starts to measure one.
const TICK_MS: f64 = 10.0;
const STARTS: u32 = 100;
const REVIEWS: u32 = 20;
const SYNCS: usize = 50;

/// The CPU time of all children that were waited for, in milliseconds.
pub fn children() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("only Linux says what children took")?;
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    // After the name, fields 14 and 15 are the user and system time of the children.
    let ticks = fields.split_whitespace().skip(13).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? * TICK_MS)
}

/// The CPU time of one start, as the mean of many.
fn cost(times: u32, start: impl Fn() -> Command) -> Result<f64> {
    let before = children()?;
    for _ in 0..times {
        // Each start needs a fresh command, because a command keeps its streams.
        let mut command = start();
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        if !status.success() {
            bail!("{command:?} ended: {status}");
        }
    }
    Ok((children()? - before) / f64::from(times))
}

pub fn start(built: &Built) -> Result<Vec<Row>> {
    let folder = TempDir::new()?;
    let project = folder.path().join("demo");
    // The demo project gives `status` a journal to read.
    cost(1, || {
        let mut demo = built.tribunal();
        demo.args(["demo", "--dir"]).arg(&project);
        demo
    })?;
    let version = cost(STARTS, || {
        let mut command = built.tribunal();
        command.arg("--version");
        command
    })?;
    let status = cost(STARTS, || {
        let mut command = built.tribunal();
        command.arg("status").current_dir(&project);
        command
    })?;
    Ok(vec![
        Row::new("start-up: --version", Figure::Ms(version), Figure::Ms(3.0)),
        Row::new("start-up: status", Figure::Ms(status), Figure::Ms(10.0)),
    ])
}

pub fn many_runs(built: &Built) -> Result<Vec<Row>> {
    let folder = TempDir::new()?;
    let home = folder.path().join(".tribunal");
    built.measures(&["many-runs", &home.to_string_lossy()])?;
    let spent = cost(5, || {
        let mut command = built.tribunal();
        command.arg("runs").current_dir(folder.path());
        command
    })?;
    Ok(vec![Row::new("list of 1,000 runs", Figure::Ms(spent), Figure::Ms(200.0))])
}

/// Measures the wall time from the end of an agent to the next effect: the agent records its own end, and the journal records
/// when the next effect was started. One commit lies in between; the time that the disk needs for it is measured separately.
pub fn handoff(built: &Built) -> Result<Vec<Row>> {
    let folder = TempDir::new()?;
    let (root, ends) = (folder.path(), folder.path().join("ends"));
    let agent = built.program("stamping-agent");
    fs::write(root.join("plan.md"), "# Plan\n\nNothing to see.\n")?;
    fs::write(
        root.join("tribunal.yaml"),
        format!(
            "tier: 0\nagents: {{use: [stamping], stamping: {{driver: command, argv: [{agent:?}, {ends:?}]}}}}\n\
             tasks: {{required_issues: 0}}\n"
        ),
    )?;
    let tribunal = || {
        let mut command = built.tribunal();
        // The trust of this bench must not be mixed with what the user of this machine has trusted.
        command.current_dir(root).env("XDG_STATE_HOME", root.join("state"));
        command
    };
    cost(1, || {
        let mut command = tribunal();
        command.args(["trust", "--yes"]);
        command
    })?;
    let mut waits = Vec::new();
    let mut spent = children()?;
    for _ in 0..REVIEWS {
        let review = tribunal().args(["review", "plan.md", "--json"]).output()?;
        if !review.status.success() {
            bail!("the review failed: {}", String::from_utf8_lossy(&review.stderr));
        }
        // The file with the ends is read after each review and removed, because the keys repeat.
        waits.extend(waits_of(&String::from_utf8(review.stdout)?, &ends)?);
        fs::remove_file(&ends)?;
    }
    spent = (children()? - spent) / f64::from(REVIEWS);
    let (wait, sync) = (median(waits).context("no agent ended")?, fsync(root)?);
    Ok(vec![
        Row::new(
            "agent's end to the next effect: median (wall)",
            Figure::Ms((wait - sync).max(0.0)),
            Figure::Ms(10.0),
        ),
        Row::free("  and the disk's part of it, one fsync (wall)", Figure::Ms(sync)),
        Row::free("a whole review with one agent", Figure::Ms(spent)),
    ])
}

/// The milliseconds from the end of each agent to the next effect.
fn waits_of(journal: &str, ends: &Path) -> Result<Vec<f64>> {
    let ends = fs::read_to_string(ends).context("no agent noted its end")?;
    let ends: BTreeMap<&str, f64> = ends
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(task, nanos)| Ok((task, nanos.parse::<f64>()? / 1e6)))
        .collect::<Result<_>>()?;
    let entries: Vec<Value> = journal.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let mut waits = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let ended = entry["key"].as_str().and_then(|key| ends.get(key));
        // The effect that follows the reply in the journal is the one that the reply has caused.
        let next = entries[index..].iter().find(|next| next["kind"] == "effect_started");
        if let (Some(ended), Some(next), "effect_finished") =
            (ended, next, entry["kind"].as_str().unwrap_or_default())
        {
            waits.push(next["at"]["wall_ms"].as_f64().context("an entry without a time")? - ended);
        }
    }
    Ok(waits)
}

/// The time that this disk needs to make a page durable, as the median of several tries.
pub fn fsync(folder: &Path) -> Result<f64> {
    let mut file = File::create(folder.join("sync"))?;
    let mut times = Vec::new();
    for _ in 0..SYNCS {
        // Without new data there would be nothing to make durable.
        file.write_all(&[7; 4096])?;
        let start = Instant::now();
        file.sync_all()?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    median(times).context("nothing was written")
}

pub fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}
