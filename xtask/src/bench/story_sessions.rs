//! Measures the sessions of a story from outside: the time between two agents, our own CPU time, the programs that are started.
//!
//! The agent changes a file and never finishes the story, so that there is one session after the other until the limit.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::BuiltPrograms;
use super::binary_runs::find_median;
use super::calibration::CalibrationUnit;
use super::scripted_project::{ProjectFile, ScriptedAgent, ScriptedProject};
use super::sprint_stories::count_git_of_story;
use super::table::{BenchFigure, BenchRow, BenchTime};

/// The most sessions that a step may have.
const SESSIONS: u32 = 20;
/// The exit code of a story that waits for the user.
const WAITING_CODE: i32 = 3;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);
const ARTIFACTS: &str = "_bmad-output/implementation-artifacts";
const STORY_TEXT: &str = "# Story 1.1: Count\n\nStatus: ready-for-dev\n\n## Acceptance Criteria\n\n1. It counts.\n\n## Tasks\n\n\
                          - [ ] Count (AC: 1)\n";
const BOARD_TEXT: &str = "development_status:\n  epic-1: in-progress\n  1-1-count: ready-for-dev\n";

pub fn measure_story(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let project = create_project(built)?;
    let max_cycles = format!("sprint.max_cycles={SESSIONS}");
    let watched = project.watch_command(built, &story_arguments(&max_cycles), SAMPLE_INTERVAL)?;
    ensure!(watched.status.code() == Some(WAITING_CODE), "the story ended: {}", watched.status);
    let waits = project.read_waits()?;
    ensure!(waits.len() + 1 == SESSIONS as usize, "{} of {SESSIONS} sessions were seen", waits.len() + 1);
    // The start of the program and the clone belong to no session.
    let (first_sample, last_sample) = (watched.sample_after(1)?, watched.last_sample()?);
    let used_cpu_ms = last_sample.own_cpu_ms() - first_sample.own_cpu_ms();
    Ok(vec![
        BenchRow::from_time(
            "story: an agent's end to the next one's start, median (wall)",
            BenchTime::Wall(find_median(waits).context("no agent ended")?),
            CalibrationUnit::Git.at_most(8.0),
        ),
        BenchRow::from_time(
            "story: our CPU for one session, without writing the journal",
            BenchTime::Cpu(used_cpu_ms / f64::from(SESSIONS - 1)),
            CalibrationUnit::Process.at_most(10.0),
        ),
        count_programs(built)?,
        count_git_of_story(built)?,
        BenchRow::from_note("  bmad-loop, for a story", "17"),
    ])
}

/// Counts the programs that a session starts besides its agent and git.
fn count_programs(built: &BuiltPrograms) -> Result<BenchRow> {
    const LABEL: &str = "story: programs started for one session besides agent and git";
    let project = create_project(built)?;
    let max_cycles = format!("sprint.max_cycles={SESSIONS}");
    Ok(match project.count_programs(built, &story_arguments(&max_cycles), WAITING_CODE)? {
        None => BenchRow::without_strace(LABEL),
        Some(started) => BenchRow::new(
            LABEL,
            BenchFigure::Count(started.others as f64 / f64::from(SESSIONS)),
            BenchFigure::Count(4.0),
        ),
    })
}

/// Creates a project with one story and an agent that never finishes it.
fn create_project(built: &BuiltPrograms) -> Result<ScriptedProject> {
    let further_args = [String::from("1000")];
    let agent = ScriptedAgent { program_name: "looping-agent", further_args: &further_args };
    let project_files = [
        ProjectFile::new(format!("{ARTIFACTS}/sprint-status.yaml"), BOARD_TEXT),
        ProjectFile::new(format!("{ARTIFACTS}/1-1-count.md"), STORY_TEXT),
        ProjectFile::new("progress.txt", "nothing yet\n"),
    ];
    ScriptedProject::create(built, agent, &project_files)
}

fn story_arguments(max_cycles: &str) -> Vec<&str> {
    let mut arguments = vec!["sprint", "1.1", "--review", "off", "--set", max_cycles, "--quiet"];
    arguments.extend(["--set", "limits.calls_per_hour=100000", "--set", "limits.max_tokens=1000000000"]);
    arguments
}
