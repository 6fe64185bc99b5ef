//! Measures the cost of an agent's process, and how many of them one of our processes can hold.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{sync::Notify, task::JoinSet};
use tribunal_supervise::{Deadlines, ExitReason, OutputCallback, OutputLimits, ProcessCommand, SandboxRules};

use crate::{
    BenchResult,
    cpu::{CpuTime, peak_memory},
    print_figure,
};

const RULES: usize = 40;
/// Enough for a busy machine; none of these agents takes a second.
const PATIENCE: Duration = Duration::from_secs(300);

/// The only place where this bench starts agents.
async fn run_agent(
    argv: &[&str],
    directory: &Path,
    sandbox: Option<SandboxRules>,
    on_output: Option<OutputCallback>,
) -> BenchResult<()> {
    let (program, arguments) = argv.split_first().ok_or("no program")?;
    let process_end = tribunal_supervise::run_process(ProcessCommand {
        program: program.into(),
        args: arguments.iter().map(Into::into).collect(),
        working_dir: directory.to_path_buf(),
        extra_env: BTreeMap::new(),
        removed_env: Vec::new(),
        stdin_bytes: b"a prompt\n".to_vec(),
        deadlines: Deadlines { total: PATIENCE, idle: PATIENCE, grace: Duration::from_secs(1) },
        output_limits: OutputLimits { on_stdout: on_output, ..OutputLimits::default() },
        sandbox,
        keeper: tribunal_supervise::KeeperSetup::of_own_program(),
        stop_signal: None,
    })
    .await?;
    match process_end.exit_reason {
        ExitReason::Exited(0) => Ok(()),
        how => Err(format!("{argv:?} ended: {how:?}").into()),
    }
}

fn new_runtime() -> BenchResult<tokio::runtime::Runtime> {
    tribunal_supervise::raise_file_limit();
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Runs this many agents that do nothing, one after the other.
pub fn run_idle_agents(count: usize) -> BenchResult<()> {
    let directory = std::env::temp_dir();
    new_runtime()?.block_on(async {
        for _ in 0..count {
            run_agent(&["true"], &directory, None, None).await?;
        }
        Ok(())
    })
}

/// Measures all CPU time that is spent on an agent that does nothing, without what it spends itself, and how many programs are
/// executed for it.
pub fn measure_overhead(agent_count: usize) -> BenchResult<()> {
    let cpu_before = CpuTime::measure_now()?;
    for _ in 0..agent_count {
        let status = process::Command::new("true").stdin(process::Stdio::null()).status()?;
        if !status.success() {
            return Err("`true` failed".into());
        }
    }
    let plain_ms = CpuTime::measure_now()?.time_since(cpu_before);
    let cpu_before = CpuTime::measure_now()?;
    run_idle_agents(agent_count)?;
    let agent_ms = CpuTime::measure_now()?.time_since(cpu_before);
    print_figure("overhead", (agent_ms.own_ms + agent_ms.children_ms - plain_ms.children_ms) / agent_count as f64)?;
    match count_execs(10)? {
        Some(execs) => print_figure("execs", execs),
        None => Ok(()),
    }
}

/// Measures by how much a sandbox delays an agent: the difference of the medians with and without one. The rules are as many as a
/// developer has, with its caches and the files of its client.
pub fn measure_sandbox(agent_count: usize) -> BenchResult<()> {
    let temp_dir = tempfile::tempdir()?;
    let mut writable_paths = Vec::new();
    for number in 0..RULES {
        let path = temp_dir.path().join(number.to_string());
        fs::create_dir(&path)?;
        writable_paths.push(path);
    }
    let rules = SandboxRules { writable_paths, ..SandboxRules::default() };
    let (mut plain_times, mut sandboxed_times) = (Vec::new(), Vec::new());
    new_runtime()?.block_on(async {
        // They alternate, so that both see the same machine.
        for _ in 0..agent_count {
            for (sandbox, times) in [(None, &mut plain_times), (Some(rules.clone()), &mut sandboxed_times)] {
                let started_at = Instant::now();
                run_agent(&["true"], temp_dir.path(), sandbox, None).await?;
                times.push(started_at.elapsed().as_secs_f64() * 1000.0);
            }
        }
        BenchResult::Ok(())
    })?;
    print_figure("sandbox", difference_of_medians(plain_times, sandboxed_times))
}

/// Returns the difference of the medians.
fn difference_of_medians(mut first: Vec<f64>, mut second: Vec<f64>) -> f64 {
    first.sort_by(f64::total_cmp);
    second.sort_by(f64::total_cmp);
    second[second.len() / 2] - first[first.len() / 2]
}

/// Counts executed programs with strace; `None` where there is no strace.
fn count_execs(agent_count: u32) -> BenchResult<Option<f64>> {
    let log = tempfile::NamedTempFile::new()?;
    let traced = process::Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=execve", "-o"])
        .arg(log.path())
        .arg(std::env::current_exe()?)
        .args(["agents", &agent_count.to_string()])
        .status();
    if !traced.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let trace_text = fs::read_to_string(log.path())?;
    let traced_execs = trace_text.lines().filter(|line| line.contains("execve(") && line.ends_with(" = 0"));
    // One of them is the measured program itself.
    Ok(Some((traced_execs.count() as f64 - 1.0) / f64::from(agent_count)))
}

/// Starts many agents that all wait at one gate, and measures our memory once all have passed it. The memory of their
/// keepers is not included.
pub fn measure_parallel_agents(agent_count: usize) -> BenchResult<()> {
    let directory = tempfile::tempdir()?;
    let gate = directory.path().join("gate");
    if !process::Command::new("mkfifo").arg(&gate).status()?.success() {
        return Err("no gate".into());
    }
    let cpu_before = CpuTime::measure_now()?;
    let outcome = new_runtime()?.block_on(run_parallel_agents(agent_count, directory.path().to_path_buf(), gate));
    outcome?;
    let spent = CpuTime::measure_now()?.time_since(cpu_before);
    print_figure("at-once-agents", agent_count as f64)?;
    print_figure("at-once", peak_memory()?)?;
    print_figure("at-once-cpu", spent.own_ms / agent_count as f64)
}

async fn run_parallel_agents(agent_count: usize, directory: PathBuf, gate: PathBuf) -> BenchResult<()> {
    let arrived = Arc::new(AtomicUsize::new(0));
    let all_arrived = Arc::new(Notify::new());
    let mut agents = JoinSet::new();
    for _ in 0..agent_count {
        let (arrived, all_arrived, directory) = (arrived.clone(), all_arrived.clone(), directory.clone());
        let on_output: OutputCallback = Box::new(move |_| {
            if arrived.fetch_add(1, Ordering::Relaxed) + 1 == agent_count {
                all_arrived.notify_one();
            }
            ControlFlow::Continue(())
        });
        agents.spawn(async move {
            let wait = "read prompt; echo here; read line < gate; exit 0";
            run_agent(&["sh", "-c", wait], &directory, None, Some(on_output))
                .await
                .map_err(|problem| problem.to_string())
        });
    }
    tokio::time::timeout(PATIENCE, all_arrived.notified()).await?;
    // An agent that arrives late still finds the gate open: it is held until all have passed.
    let mut gate_open = fs::OpenOptions::new().read(true).write(true).open(&gate)?;
    // One line per agent, and empty ones: shells read byte by byte, all from one pipe.
    let lines = "\n".repeat(agent_count);
    let writer = tokio::task::spawn_blocking(move || gate_open.write_all(lines.as_bytes()).map(|()| gate_open));
    while let Some(ended) = agents.join_next().await {
        ended??;
    }
    drop(writer.await??);
    Ok(())
}
