//! Measures the wall time from the end of an agent to the next effect: the agent records its own end, and the journal records
//! when the next effect was started. One commit lies in between; the time that the disk needs for it is measured separately.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::BuiltPrograms;
use super::binary_runs::{children_cpu_ms, find_median, median_fsync_ms};
use super::calibration::CalibrationUnit;
use super::table::{BenchRow, BenchTime};

const REVIEW_COUNT: u32 = 20;
const SHORT_REVIEW_COUNT: u32 = 5;

/// A project without a repository, and an agent that notes its end. The file that it writes is outside of the project, because
/// a change inside would be one that Tribunal has to report; and the agent may write it only because the settings say so.
struct HandoffProject {
    directory: TempDir,
}

impl HandoffProject {
    fn create(built: &BuiltPrograms) -> Result<HandoffProject> {
        let project = HandoffProject { directory: TempDir::new()? };
        let (project_root, ends_path) = (project.directory.path().join("project"), project.ends_path());
        fs::create_dir(&project_root)?;
        // The sandbox opens only what is there.
        fs::write(&ends_path, "")?;
        fs::write(project_root.join("plan.md"), "# Plan\n\nNothing to see.\n")?;
        let agent_program = built.agent_path("stamping-agent");
        let settings_text = format!(
            "tier: 0\nagents: {{use: [stamping], stamping: {{driver: command, argv: [{agent_program:?}, {ends_path:?}]}}}}\n\
             tasks: {{required_issues: 0}}\nsandbox: {{write: [{ends_path:?}]}}\n"
        );
        fs::write(project_root.join("tribunal.yaml"), settings_text)?;
        let trusted = project.run_command(built.tribunal_command().args(["trust", "--yes"]))?;
        ensure!(trusted.status.success(), "the agent cannot be trusted: {}", String::from_utf8_lossy(&trusted.stderr));
        Ok(project)
    }

    fn ends_path(&self) -> std::path::PathBuf {
        self.directory.path().join("ends")
    }

    fn run_command(&self, command: &mut Command) -> Result<Output> {
        command.current_dir(self.directory.path().join("project")).stdin(Stdio::null());
        // The trust of this bench must not be mixed with what the user of this machine has trusted.
        Ok(command.env("XDG_STATE_HOME", self.directory.path().join("state")).output()?)
    }

    /// Runs a review, and returns how long each of its agents waited for the next effect.
    fn run_review(&self, built: &BuiltPrograms) -> Result<Vec<f64>> {
        // The keys of the agents are the same in every review.
        fs::write(self.ends_path(), "")?;
        let review = self.run_command(built.tribunal_command().args(["review", "plan.md", "--json"]))?;
        let journal_text = String::from_utf8(review.stdout)?;
        let entries: Vec<Value> = journal_text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        if !review.status.success() {
            bail!("the review failed: {}", describe_failure(&entries, &String::from_utf8_lossy(&review.stderr)));
        }
        find_waits(&entries, &self.ends_path())
    }
}

pub fn measure_handoff(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let project = HandoffProject::create(built)?;
    let review_count = if built.is_short() { SHORT_REVIEW_COUNT } else { REVIEW_COUNT };
    let mut wait_times = Vec::new();
    let cpu_before = children_cpu_ms()?;
    for _ in 0..review_count {
        wait_times.extend(project.run_review(built)?);
    }
    let cpu_ms = (children_cpu_ms()? - cpu_before) / f64::from(review_count);
    let median_wait = find_median(wait_times).context("no agent ended")?;
    let sync_ms = median_fsync_ms(project.directory.path())?;
    Ok(vec![
        BenchRow::from_time(
            "agent's end to the next effect: median (wall)",
            BenchTime::Wall((median_wait - sync_ms).max(0.0)),
            CalibrationUnit::Process.at_most(18.0),
        ),
        BenchRow::from_time(
            "  and the disk's part of it, one fsync (wall)",
            BenchTime::Wall(sync_ms),
            CalibrationUnit::Process.without_limit(),
        ),
        BenchRow::from_time(
            "a whole review with one agent",
            BenchTime::Cpu(cpu_ms),
            CalibrationUnit::Process.without_limit(),
        ),
    ])
}

/// Says why a review failed: the last entry of its journal knows it; what was printed for people may be a note about something
/// else.
fn describe_failure(entries: &[Value], error_output: &str) -> String {
    let detail = entries.iter().rev().find_map(|entry| entry["detail"].as_str());
    detail.unwrap_or(error_output.trim()).to_owned()
}

/// The milliseconds from the end of each agent to the next effect.
fn find_waits(entries: &[Value], ends_path: &Path) -> Result<Vec<f64>> {
    let ends_text = fs::read_to_string(ends_path).context("no agent noted its end")?;
    let agent_ends: BTreeMap<&str, f64> = ends_text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(task, nanoseconds)| Ok((task, nanoseconds.parse::<f64>()? / 1e6)))
        .collect::<Result<_>>()?;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wait_lasts_until_the_effect_after_the_reply() {
        let directory = TempDir::new().unwrap();
        let ends_path = directory.path().join("ends");
        fs::write(&ends_path, "round-1/review/a 1000000000\n").unwrap();
        let entry = |kind, key, wall_ms| json!({"kind": kind, "key": key, "at": {"wall_ms": wall_ms}});
        let entries = [
            entry("effect_started", "round-1/review/a", 900),
            entry("effect_finished", "round-1/review/a", 1003),
            entry("boundary", "round-1", 1004),
            entry("effect_started", "round-1/tracker", 1005),
        ];
        assert_eq!(find_waits(&entries, &ends_path).unwrap(), [5.0]);
    }

    #[test]
    fn the_journal_says_why_a_review_failed() {
        let entries = [json!({"kind": "run_started"}), json!({"kind": "run_parked", "detail": "no reviewer answered"})];
        assert_eq!(describe_failure(&entries, "note: something"), "no reviewer answered");
        assert_eq!(describe_failure(&[], "error: no such file\n"), "error: no such file");
    }
}
