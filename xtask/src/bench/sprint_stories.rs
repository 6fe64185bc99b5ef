//! Measures a sprint of many stories from outside: the time and our own CPU time for an agent session, the programs that a story
//! starts, and whether the memory grows with the number of stories.
//!
//! The agent finishes every story in its only session, so that a session includes everything that a story needs: its plan, its clone, its
//! verification and its commit. `--stories N` measures a longer sprint.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::BuiltPrograms;
use super::binary_runs::find_median;
use super::calibration::CalibrationUnit;
use super::scripted_project::{ProjectFile, ScriptedAgent, ScriptedProject, SessionTimes, list_waits};
use super::table::{BenchFigure, BenchRow, BenchTime};

const STORIES: u32 = 20;
const SHORT_STORIES: u32 = 4;
/// The length of the sprint whose programs are counted.
const COUNTED_STORIES: u32 = 5;
/// Each git process costs milliseconds, in large repositories many more. A row that raises the limit says why.
const MAX_GIT_PROCESSES: f64 = 32.0;
/// The memory after this story is compared with that at the end.
const EARLY_STORY: u32 = 10;
const LARGE_FILES: u32 = 20_000;
const DEVELOPING_AGENT: ScriptedAgent<'_> = ScriptedAgent { program_name: "developing-agent", further_args: &[] };
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);
const ARTIFACTS: &str = "_bmad-output/implementation-artifacts";
const SPRINT_ARGUMENTS: [&str; 10] = [
    "sprint",
    "--review",
    "off",
    "--quiet",
    "--set",
    "limits.calls_per_hour=100000",
    "--set",
    "limits.max_tokens=1000000000",
    "--set",
    "limits.max_runtime_minutes=600",
];
/// The effects that consist of git and of checks.
const EXTERNAL_EFFECTS: [&str; 7] =
    ["open_workspace", "close_workspace", "checks", "commit", "rebase", "integrate", "read_change"];

pub fn measure_sprint(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let story_count = built.story_count.unwrap_or(if built.is_short() { SHORT_STORIES } else { STORIES });
    let project = create_project(built, story_count)?;
    let watched = project.watch_command(built, &SPRINT_ARGUMENTS, SAMPLE_INTERVAL)?;
    ensure!(watched.status.success(), "the sprint ended: {}", watched.status);
    let sessions = project.read_sessions()?;
    ensure!(sessions.len() == story_count as usize, "{} sessions for {story_count} stories", sessions.len());
    let commit_count = count_commits(&project)?;
    ensure!(commit_count == story_count + 1, "{commit_count} commits for {story_count} stories");
    let waits = list_waits(&sessions);
    let wait_count = f64::from(story_count - 1);
    let own_wait_ms = (waits.iter().sum::<f64>() - sum_external_effects(built, &project, &sessions)?) / wait_count;
    // The start of the program belongs to no session.
    let (first_sample, last_sample) = (watched.sample_after(1)?, watched.last_sample()?);
    let early_story = EARLY_STORY.min(story_count / 2).max(1);
    let early_sample = watched.sample_after(u64::from(early_story))?;
    let mut rows = vec![
        BenchRow::from_time(
            "sprint: an agent's end to the next one's start, median (wall)",
            BenchTime::Wall(find_median(waits).context("no agent ended")?),
            CalibrationUnit::Git.without_limit(),
        ),
        BenchRow::from_time(
            "sprint: our part of it without git and checks, mean (wall)",
            BenchTime::Wall(own_wait_ms.max(0.0)),
            CalibrationUnit::Cpu.at_most(12.0),
        ),
        BenchRow::from_note("  bmad-loop, for one session", "1.0 s"),
        BenchRow::from_time(
            "sprint: our CPU for one session, without writing the journal",
            BenchTime::Cpu((last_sample.own_cpu_ms() - first_sample.own_cpu_ms()) / wait_count),
            CalibrationUnit::Cpu.at_most(12.0),
        ),
    ];
    rows.extend(count_programs(built)?);
    rows.extend([
        BenchRow::without_limit(
            &format!("sprint: peak of the memory until story {early_story}"),
            BenchFigure::Megabytes(early_sample.peak_mb),
        ),
        BenchRow::without_limit(
            &format!("sprint: peak of the memory until the end, {story_count} stories"),
            BenchFigure::Megabytes(last_sample.peak_mb),
        ),
        BenchRow::new(
            "sprint: growth of the memory in between",
            BenchFigure::Megabytes((last_sample.peak_mb - early_sample.peak_mb).max(0.0)),
            BenchFigure::Megabytes(8.0),
        ),
    ]);
    Ok(rows)
}

/// Counts the programs that a story starts besides its agent, in a short sprint.
fn count_programs(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    const LABEL: &str = "sprint: programs started for one story besides agent and git";
    let project = create_project(built, COUNTED_STORIES)?;
    let Some(started) = project.count_programs(built, &SPRINT_ARGUMENTS, 0)? else {
        return Ok(vec![BenchRow::without_strace(LABEL)]);
    };
    let per_story = |count: usize| BenchFigure::Count(count as f64 / f64::from(COUNTED_STORIES));
    Ok(vec![
        BenchRow::new(LABEL, per_story(started.others), BenchFigure::Count(4.0)),
        limit_git_processes("sprint", started.git as f64 / f64::from(COUNTED_STORIES)),
        BenchRow::from_note("  bmad-loop, for a story", "17, with worktrees 40"),
    ])
}

fn limit_git_processes(bench_name: &str, count: f64) -> BenchRow {
    let label = format!("{bench_name}: git processes for one story, at most {MAX_GIT_PROCESSES}");
    BenchRow::new(&label, BenchFigure::Count(count), BenchFigure::Count(MAX_GIT_PROCESSES))
}

/// Counts the git processes of a story that is run on its own, with everything before and after it.
pub(super) fn count_git_of_story(built: &BuiltPrograms) -> Result<BenchRow> {
    let project = create_project(built, 1)?;
    let arguments = [&["sprint", "1.1"], &SPRINT_ARGUMENTS[1..]].concat();
    Ok(match project.count_programs(built, &arguments, 0)? {
        None => BenchRow::without_strace("story: git processes for one story"),
        Some(started) => limit_git_processes("story", started.git as f64),
    })
}

/// Measures a story in a large repository with a check of one second: without a fresh clone of what lands, and with one.
pub fn measure_large_story(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let file_count = if built.is_short() { LARGE_FILES / 20 } else { LARGE_FILES };
    let mut seconds = Vec::new();
    for has_fresh_clone in [false, true] {
        let mut project_files = list_project_files(1);
        // What the check makes is ignored, so that the directory has more than a fresh clone has.
        project_files.push(ProjectFile::new(".gitignore", "build/\n"));
        let large_files = (0..file_count).map(|number| {
            ProjectFile::new(format!("data/{}/{number}.txt", number / 100), format!("file {number}\n").repeat(20))
        });
        project_files.extend(large_files);
        let project = ScriptedProject::create(built, DEVELOPING_AGENT, &project_files)?;
        let fresh_clone = format!("workspace.fresh_clone={has_fresh_clone}");
        let checks = "checks=[sleep 1; mkdir -p build; date > build/stamp]";
        let further_args = ["--set", &fresh_clone, "--set", checks];
        let arguments = [&["sprint", "1.1"], &SPRINT_ARGUMENTS[1..], &further_args].concat();
        let started_at = Instant::now();
        let status =
            project.tribunal_command(built, &arguments).stderr(Stdio::null()).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "the story ended: {status}");
        seconds.push(started_at.elapsed().as_secs_f64());
    }
    let label = format!("large: a story over {file_count} files with a check of 1 s (wall)");
    Ok(vec![
        BenchRow::without_limit(&label, BenchFigure::Seconds(seconds[0])),
        BenchRow::without_limit(
            "large: what the fresh clone adds to it (wall)",
            BenchFigure::Seconds(seconds[1] - seconds[0]),
        ),
    ])
}

/// Creates a project with so many stories in one epic, and an agent that finishes each of them in one session.
fn create_project(built: &BuiltPrograms, story_count: u32) -> Result<ScriptedProject> {
    ScriptedProject::create(built, DEVELOPING_AGENT, &list_project_files(story_count))
}

fn list_project_files(story_count: u32) -> Vec<ProjectFile> {
    let mut board_text = String::from("development_status:\n  epic-1: in-progress\n");
    let mut project_files = Vec::new();
    for number in 1..=story_count {
        board_text.push_str(&format!("  1-{number}-count: ready-for-dev\n"));
        project_files.push(ProjectFile::new(format!("{ARTIFACTS}/1-{number}-count.md"), story_text(number)));
    }
    project_files.push(ProjectFile::new(format!("{ARTIFACTS}/sprint-status.yaml"), board_text));
    project_files
}

/// The file list comes last, because the agent appends to it.
fn story_text(number: u32) -> String {
    format!(
        "# Story 1.{number}: Count\n\nStatus: ready-for-dev\n\n## Acceptance Criteria\n\n1. It counts.\n\n## Tasks / Subtasks\n\n\
         - [ ] Count, with a test (AC: 1)\n\n## Dev Agent Record\n\n### File List\n\n"
    )
}

fn count_commits(project: &ScriptedProject) -> Result<u32> {
    let output = Command::new("git").current_dir(project.root_dir()).args(["rev-list", "--count", "main"]).output()?;
    String::from_utf8(output.stdout)?.trim().parse().context("git does not say how many commits there are")
}

/// Sums up how long git and checks worked between the first and the last agent, in milliseconds.
fn sum_external_effects(built: &BuiltPrograms, project: &ScriptedProject, sessions: &[SessionTimes]) -> Result<f64> {
    let (Some(first_session), Some(last_session)) = (sessions.first(), sessions.last()) else { return Ok(0.0) };
    let runs_text = read_output(built, project, &["runs", "--json"])?;
    let runs_document: Value = serde_json::from_str(&runs_text)?;
    let mut external_ms = 0.0;
    for run_row in runs_document["runs"].as_array().context("no runs are listed")? {
        let run_id = run_row["run"].as_str().context("a run without an id")?;
        let journal_text = read_output(built, project, &["log", run_id, "--json"])?;
        let entries: Vec<Value> = journal_text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let mut begun_effects: BTreeMap<String, f64> = BTreeMap::new();
        for entry in &entries {
            let effect_name = format!("{} {}", entry["key"], entry["segment"]);
            let wall_ms = entry["at"]["wall_ms"].as_f64().context("an entry without a time")?;
            let is_external = EXTERNAL_EFFECTS.iter().any(|name| entry["effect"]["effect"] == *name);
            if entry["kind"] == "effect_started" && is_external && wall_ms >= first_session.ended_ms.floor() {
                begun_effects.insert(effect_name, wall_ms);
            } else if entry["kind"] == "effect_finished" && wall_ms <= last_session.began_ms.ceil() {
                external_ms += begun_effects.remove(&effect_name).map_or(0.0, |begun_ms| wall_ms - begun_ms);
            }
        }
    }
    Ok(external_ms)
}

fn read_output(built: &BuiltPrograms, project: &ScriptedProject, arguments: &[&str]) -> Result<String> {
    let output = project.tribunal_command(built, arguments).output()?;
    ensure!(output.status.success(), "`tribunal {}` failed: {}", arguments.join(" "), output.status);
    Ok(String::from_utf8(output.stdout)?)
}
