//! Measures what a stop costs the user who waits for it: `tribunal hook stop`, for sessions of any size, compared with a hook
//! that makes the same decision in bash, jq and perl, over the same files in the same run.
//!
//! The loop keeps no journal, so that both hooks write the same file and neither waits for the disk; the cost of a journal is
//! measured separately. The sessions are generated once into `target/bench`, and only their last prompt is far from the end,
//! which is the worst case for reading backwards. Wall times are medians; CPU times come from the kernel, for many starts at
//! once.

mod sessions;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::BuiltPrograms;
use super::binary_runs::{children_cpu_ms, find_median, median_fsync_ms};
use super::calibration::{CalibrationUnit, TimeLimit};
use super::table::{BenchFigure, BenchRow, BenchTime};

const WALL_LIMIT: TimeLimit = CalibrationUnit::Process.at_most(9.0);
const CPU_LIMIT: TimeLimit = CalibrationUnit::Process.at_most(6.0);
const NO_LIMIT: TimeLimit = CalibrationUnit::Process.without_limit();
const MEMORY_LIMIT: BenchFigure = BenchFigure::Megabytes(20.0);

/// The hooks alternate, so that a machine that is busy for a while affects both.
const TURN_COUNT: u32 = 5;
const SHORT_TURN_COUNT: u32 = 2;
const OWN_RUNS_PER_TURN: u32 = 30;
const BASH_RUNS_PER_TURN: u32 = 4;

const BASH_HOOK: &str = include_str!("stop.sh");
const STATE_FILE: &str = ".claude/ralph-loop.local.md";
const JOURNAL_LABEL: &str = "stop hook with a journal, syncs apart (wall)";
const SESSION_ID: &str = "5745e48a-069b-4256-b0f9-b1c83ddda295";

/// A session that wants to stop: its directory, what its client sends, and what the session has to do.
struct StopScenario<'a> {
    project_dir: &'a Path,
    input_path: PathBuf,
    /// The state file, written again before each stop; `None` if it belongs to Tribunal and changes.
    state_text: Option<String>,
    /// How often the hooks alternate.
    turn_count: u32,
}

/// The measured times of one hook.
#[derive(Default)]
struct HookTimes {
    wall_times: Vec<f64>,
    total_cpu: f64,
    run_count: u32,
}

impl HookTimes {
    fn median_wall(&self) -> Result<f64> {
        find_median(self.wall_times.clone()).context("nothing was measured")
    }

    fn mean_cpu(&self) -> f64 {
        self.total_cpu / f64::from(self.run_count.max(1))
    }
}

impl StopScenario<'_> {
    /// Restores the state, so that each stop is the same.
    fn reset_state(&self) -> Result<()> {
        let write_result = self.state_text.as_ref().map(|state| fs::write(self.project_dir.join(STATE_FILE), state));
        Ok(write_result.transpose().map(|_| ())?)
    }

    fn build_command(&self, new_command: &dyn Fn() -> Command) -> Result<Command> {
        let mut command = new_command();
        command.current_dir(self.project_dir).stdin(File::open(&self.input_path)?).stderr(Stdio::null());
        Ok(command)
    }

    fn run_for_answer(&self, new_command: &dyn Fn() -> Command) -> Result<Value> {
        self.reset_state()?;
        let output = self.build_command(new_command)?.output()?;
        ensure!(output.status.success(), "the hook ended: {}", output.status);
        serde_json::from_slice(&output.stdout).context("the hook's answer is not JSON")
    }

    fn measure_runs(
        &self,
        new_command: &dyn Fn() -> Command,
        run_count: u32,
        hook_times: &mut HookTimes,
    ) -> Result<()> {
        let cpu_before = children_cpu_ms()?;
        for _ in 0..run_count {
            self.reset_state()?;
            let mut command = self.build_command(new_command)?;
            command.stdout(Stdio::null());
            // Only the process itself is timed; preparing its input is not.
            let start_time = Instant::now();
            let status = command.status()?;
            hook_times.wall_times.push(start_time.elapsed().as_secs_f64() * 1000.0);
            ensure!(status.success(), "the hook ended: {status}");
        }
        hook_times.total_cpu += children_cpu_ms()? - cpu_before;
        hook_times.run_count += run_count;
        Ok(())
    }

    /// The peak memory of the hook or of a program that it starts; `None` if this machine has no GNU time.
    fn peak_memory(&self, new_command: &dyn Fn() -> Command) -> Result<Option<f64>> {
        let mut time_command = Command::new("time");
        time_command.args(["-q", "-f", "%M", "-o"]).arg(self.project_dir.join("memory"));
        self.run_under(time_command, new_command)?
            .then(|| {
                let memory_text = fs::read_to_string(self.project_dir.join("memory"))?;
                Ok(memory_text.trim().parse::<f64>()? / 1024.0)
            })
            .transpose()
    }

    /// The number of processes including the hook itself; `None` if there is no strace.
    fn count_processes(&self, new_command: &dyn Fn() -> Command) -> Result<Option<f64>> {
        let trace_text = self.trace_calls("clone,clone3,fork,vfork", new_command)?;
        // A call that another process interrupts has two lines, and its result is on the second.
        let is_new = |line: &&str| !line.contains("CLONE_THREAD") && !line.contains("unfinished");
        let is_done = |line: &&str| line.contains("= ") && !line.contains("= -1");
        Ok(trace_text.map(|text| 1.0 + text.lines().filter(is_new).filter(is_done).count() as f64))
    }

    /// The number of times the hook waits for the disk.
    fn count_syncs(&self, new_command: &dyn Fn() -> Command) -> Result<Option<f64>> {
        let trace_text = self.trace_calls("fsync,fdatasync", new_command)?;
        Ok(trace_text.map(|text| text.lines().filter(|line| line.contains("sync(")).count() as f64))
    }

    /// Returns what strace reports about these calls.
    fn trace_calls(&self, call_names: &str, new_command: &dyn Fn() -> Command) -> Result<Option<String>> {
        let trace_path = self.project_dir.join("strace");
        let mut strace_command = Command::new("strace");
        strace_command.args(["-f", "-qq", "-e", &format!("trace={call_names}"), "-o"]).arg(&trace_path);
        Ok(if self.run_under(strace_command, new_command)? { Some(fs::read_to_string(trace_path)?) } else { None })
    }

    /// Runs the hook under another program. The result is false if that program is missing or may not run here.
    fn run_under(&self, mut wrapper: Command, new_command: &dyn Fn() -> Command) -> Result<bool> {
        self.reset_state()?;
        let hook_command = new_command();
        wrapper.arg(hook_command.get_program()).args(hook_command.get_args()).current_dir(self.project_dir);
        // The environment of the hook must reach it through the wrapper.
        for (name, value) in hook_command.get_envs() {
            match value {
                Some(value) => wrapper.env(name, value),
                None => wrapper.env_remove(name),
            };
        }
        wrapper.stdin(File::open(&self.input_path)?).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(wrapper.status().is_ok_and(|status| status.success()))
    }
}

pub fn measure_hook(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let directory = TempDir::new()?;
    let project_dir = directory.path();
    fs::create_dir(project_dir.join(".claude"))?;
    fs::write(project_dir.join("stop.sh"), BASH_HOOK)?;
    let own_command = || {
        let mut command = built.tribunal_command();
        command.args(["hook", "stop"]);
        for name in ["CLAUDE_PROJECT_DIR", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "TRIBUNAL_RUN"] {
            command.env_remove(name);
        }
        command
    };
    let script_path = project_dir.join("stop.sh");
    let bash_command = || {
        let mut command = Command::new("bash");
        command.arg(&script_path);
        command
    };
    // Without these tools only our own hook is measured.
    let has_bash_tools = ["bash", "jq", "perl", "tac"].map(is_installed).iter().all(|is_present| *is_present);
    let bash_hook = has_bash_tools.then_some(&bash_command as &dyn Fn() -> Command);
    // Before anything is timed, both hooks must make the right decision; a wrong answer may be fast.
    let promise_stop =
        StopScenario::new(project_dir, Path::new("none"), Some("Done. <promise>ALL  TESTS\nPASS</promise>"))?;
    for hook in [Some(&own_command as &dyn Fn() -> Command), bash_hook].into_iter().flatten() {
        let answer = promise_stop.run_for_answer(hook)?;
        ensure!(answer["decision"] != "block", "who keeps a promise may stop: {answer}");
    }
    let mut rows = Vec::new();
    let turn_count = if built.is_short() { SHORT_TURN_COUNT } else { TURN_COUNT };
    let session_sizes = if built.is_short() { &sessions::SESSION_SIZES[..1] } else { &sessions::SESSION_SIZES };
    for size in session_sizes {
        let session_path = sessions::session_file(&built.bench_dir(), *size)?;
        for has_answer in [true, false] {
            let answer = has_answer.then_some(sessions::LAST_ANSWER);
            let stop = StopScenario { turn_count, ..StopScenario::new(project_dir, &session_path, answer)? };
            let scenario_name = format!("{}, answer {}", size.name, answer_label(has_answer));
            let scenario_rows = stop.compare_hooks(&scenario_name, &own_command, bash_hook);
            rows.extend(scenario_rows.unwrap_or_else(|error| vec![BenchRow::from_failure(&scenario_name, &error)]));
        }
    }
    let journal_rows = measure_with_journal(project_dir, &own_command, built);
    rows.extend(journal_rows.unwrap_or_else(|error| vec![BenchRow::from_failure(JOURNAL_LABEL, &error)]));
    if !has_bash_tools {
        rows.push(BenchRow::from_note("stop hook in bash, jq and perl", "not compared: one of them is not here"));
    }
    Ok(rows)
}

fn answer_label(has_answer: bool) -> &'static str {
    if has_answer { "given" } else { "looked for" }
}

fn is_installed(program_name: &str) -> bool {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search_path).any(|path_dir| path_dir.join(program_name).is_file())
}

impl<'a> StopScenario<'a> {
    /// Creates a stop that the client reports with the last answer or without it.
    fn new(project_dir: &'a Path, session_path: &Path, answer: Option<&str>) -> Result<StopScenario<'a>> {
        let mut hook_input = json!({
            "session_id": SESSION_ID, "transcript_path": session_path, "cwd": project_dir, "hook_event_name": "Stop",
            "permission_mode": "default", "stop_hook_active": false, "background_tasks": [],
        });
        if let Some(answer) = answer {
            hook_input["last_assistant_message"] = answer.into();
        }
        let input_path = project_dir.join("said.json");
        fs::write(&input_path, hook_input.to_string())?;
        let state_text = format!(
            "---\nactive: true\niteration: 1\nmax_iterations: 50\ncompletion_promise: \"ALL TESTS PASS\"\n\
             session_id: \"{SESSION_ID}\"\n---\n\nMake *all* [tests] pass.\n"
        );
        Ok(StopScenario { project_dir, input_path, state_text: Some(state_text), turn_count: TURN_COUNT })
    }

    fn compare_hooks(
        &self,
        scenario_name: &str,
        own_command: &dyn Fn() -> Command,
        bash_command: Option<&dyn Fn() -> Command>,
    ) -> Result<Vec<BenchRow>> {
        for hook in [Some(own_command), bash_command].into_iter().flatten() {
            let answer = self.run_for_answer(hook)?;
            let reason = answer["reason"].as_str().unwrap_or_default();
            let is_sent_back = answer["decision"] == "block" && reason.starts_with("Make *all* [tests] pass.");
            ensure!(is_sent_back, "{scenario_name}: the session should have been sent back: {answer}");
        }
        // The slower hook runs less often in each turn, so that the whole does not take too long.
        let (mut own_times, mut bash_times) = (HookTimes::default(), HookTimes::default());
        for _ in 0..self.turn_count {
            self.measure_runs(own_command, OWN_RUNS_PER_TURN, &mut own_times)?;
            if let Some(bash_command) = bash_command {
                self.measure_runs(bash_command, BASH_RUNS_PER_TURN, &mut bash_times)?;
            }
        }
        let mut rows = vec![
            BenchRow::from_time(
                &format!("stop hook, {scenario_name} (wall)"),
                BenchTime::Wall(own_times.median_wall()?),
                WALL_LIMIT,
            ),
            BenchRow::from_time("  CPU", BenchTime::Cpu(own_times.mean_cpu()), CPU_LIMIT),
        ];
        rows.push(match self.peak_memory(own_command)? {
            Some(megabytes) => BenchRow::new("  memory", BenchFigure::Megabytes(megabytes), MEMORY_LIMIT),
            None => BenchRow::from_note("  memory", "not measured: there is no GNU time"),
        });
        rows.push(match self.count_processes(own_command)? {
            Some(count) => BenchRow::new("  processes", BenchFigure::Count(count), BenchFigure::Count(1.0)),
            None => BenchRow::from_note("  processes", "not counted: there is no strace"),
        });
        if let Some(bash_command) = bash_command {
            let (wall_time, cpu_time) =
                (BenchTime::Wall(bash_times.median_wall()?), BenchTime::Cpu(bash_times.mean_cpu()));
            rows.push(BenchRow::from_time("  bash + jq + perl (wall)", wall_time, NO_LIMIT));
            rows.push(BenchRow::from_time("  bash + jq + perl: CPU", cpu_time, NO_LIMIT));
            rows.extend(self.peak_memory(bash_command)?.map(|megabytes| {
                BenchRow::without_limit("  bash + jq + perl: memory", BenchFigure::Megabytes(megabytes))
            }));
            let count = self.count_processes(bash_command)?;
            rows.extend(
                count.map(|count| BenchRow::without_limit("  bash + jq + perl: processes", BenchFigure::Count(count))),
            );
        }
        Ok(rows)
    }
}

/// Measures the same with a loop of Tribunal: each refusal is in the journal before it is sent. The time of the disk is counted
/// separately.
fn measure_with_journal(
    project_dir: &Path,
    own_command: &dyn Fn() -> Command,
    built: &BuiltPrograms,
) -> Result<Vec<BenchRow>> {
    fs::remove_file(project_dir.join(STATE_FILE))?;
    let mut start_command = built.tribunal_command();
    start_command.args([
        "loop",
        "run",
        "--in-session",
        "--session",
        SESSION_ID,
        "--max-iterations",
        "1000",
        "--promise",
        "DONE",
    ]);
    let start_status = start_command
        .args(["-p", "Make *all* [tests] pass."])
        .current_dir(project_dir)
        .stdout(Stdio::null())
        .status()?;
    ensure!(start_status.success(), "no loop can be started: {start_status}");
    // With this value the client has no cap on refusals, so that every stop is refused.
    let uncapped_command = || {
        let mut command = own_command();
        command.env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0");
        command
    };
    let stop = StopScenario {
        state_text: None,
        turn_count: if built.is_short() { SHORT_TURN_COUNT } else { TURN_COUNT },
        ..StopScenario::new(project_dir, Path::new("none"), Some(sessions::LAST_ANSWER))?
    };
    let mut hook_times = HookTimes::default();
    for _ in 0..stop.turn_count {
        stop.measure_runs(&uncapped_command, OWN_RUNS_PER_TURN, &mut hook_times)?;
    }
    let answer = stop.run_for_answer(&uncapped_command)?;
    ensure!(answer["decision"] == "block", "the session should have been sent back: {answer}");
    // The syncs are counted and their time subtracted, because it depends on the disk alone.
    let sync_ms = median_fsync_ms(project_dir)?;
    let Some(sync_count) = stop.count_syncs(&uncapped_command)? else {
        return Ok(vec![BenchRow::from_note(JOURNAL_LABEL, "not measured: there is no strace to count syncs")]);
    };
    let own_wall_ms = (hook_times.median_wall()? - sync_count * sync_ms).max(0.0);
    Ok(vec![
        BenchRow::from_time(JOURNAL_LABEL, BenchTime::Wall(own_wall_ms), WALL_LIMIT),
        BenchRow::from_time("  CPU", BenchTime::Cpu(hook_times.mean_cpu()), CPU_LIMIT),
        BenchRow::without_limit("  syncs", BenchFigure::Count(sync_count)),
        BenchRow::from_time("  and what one of them takes here (wall)", BenchTime::Wall(sync_ms), NO_LIMIT),
    ])
}
