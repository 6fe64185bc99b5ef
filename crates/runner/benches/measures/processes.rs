//! Measures the cost of an agent's process, and how many of them one of our processes can hold.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, task::JoinSet};
use tribunal_supervise::{Command, Deadlines, How, OnOutput, Output};

use crate::{
    Outcome,
    cpu::{Cpu, peak_memory},
    say,
};

const TRIVIAL: usize = 200;
const AT_ONCE: usize = 1_000;
/// Enough for a busy machine; none of these agents takes a second.
const PATIENCE: Duration = Duration::from_secs(300);

/// The only place where this bench starts agents.
async fn run(argv: &[&str], folder: &Path, seen: Option<OnOutput>) -> Outcome<()> {
    let (program, args) = argv.split_first().ok_or("no program")?;
    let ended = tribunal_supervise::run(Command {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        folder: folder.to_path_buf(),
        env: BTreeMap::new(),
        without: Vec::new(),
        input: b"a prompt\n".to_vec(),
        deadlines: Deadlines { total: PATIENCE, idle: PATIENCE },
        grace: Duration::from_secs(1),
        output: Output { seen, ..Output::default() },
        keeper: tribunal_supervise::own_program(),
        hold: Vec::new(),
        stop: None,
    })
    .await?;
    match ended.how {
        How::Exited(0) => Ok(()),
        how => Err(format!("{argv:?} ended: {how:?}").into()),
    }
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    tribunal_supervise::allow_many_files();
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Runs this many agents that do nothing, one after the other.
pub fn agents(count: usize) -> Outcome<()> {
    let folder = std::env::temp_dir();
    runtime()?.block_on(async {
        for _ in 0..count {
            run(&["true"], &folder, None).await?;
        }
        Ok(())
    })
}

/// Measures all CPU time that is spent on an agent that does nothing, without what it spends itself, and how many programs are
/// executed for it.
pub fn overhead() -> Outcome<()> {
    let before = Cpu::now()?;
    for _ in 0..TRIVIAL {
        let status = process::Command::new("true").stdin(process::Stdio::null()).status()?;
        if !status.success() {
            return Err("`true` failed".into());
        }
    }
    let plain = Cpu::now()?.since(before);
    let before = Cpu::now()?;
    agents(TRIVIAL)?;
    let ours = Cpu::now()?.since(before);
    say("overhead", (ours.own + ours.children - plain.children) / TRIVIAL as f64)?;
    match execs(10)? {
        Some(execs) => say("execs", execs),
        None => Ok(()),
    }
}

/// Counts executed programs with strace; `None` where there is no strace.
fn execs(agents: u32) -> Outcome<Option<f64>> {
    let log = tempfile::NamedTempFile::new()?;
    let traced = process::Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=execve", "-o"])
        .arg(log.path())
        .arg(std::env::current_exe()?)
        .args(["agents", &agents.to_string()])
        .status();
    if !traced.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let text = fs::read_to_string(log.path())?;
    let done = text.lines().filter(|line| line.contains("execve(") && line.ends_with(" = 0"));
    // One of them is the measured program itself.
    Ok(Some((done.count() as f64 - 1.0) / f64::from(agents)))
}

/// Starts a thousand agents that all wait at one gate, and measures our memory once all have passed it. The memory of their
/// keepers is not included.
pub fn at_once() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let gate = folder.path().join("gate");
    if !process::Command::new("mkfifo").arg(&gate).status()?.success() {
        return Err("no gate".into());
    }
    let before = Cpu::now()?;
    let outcome = runtime()?.block_on(all_at_once(folder.path().to_path_buf(), gate));
    outcome?;
    let spent = Cpu::now()?.since(before);
    say("at-once", peak_memory()?)?;
    say("at-once-cpu", spent.own / AT_ONCE as f64)
}

async fn all_at_once(folder: PathBuf, gate: PathBuf) -> Outcome<()> {
    let arrived = Arc::new(AtomicUsize::new(0));
    let all_here = Arc::new(Notify::new());
    let mut agents = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (arrived, all_here, folder) = (arrived.clone(), all_here.clone(), folder.clone());
        let seen: OnOutput = Box::new(move |_| {
            if arrived.fetch_add(1, Ordering::Relaxed) + 1 == AT_ONCE {
                all_here.notify_one();
            }
        });
        agents.spawn(async move {
            let wait = "read prompt; echo here; read line < gate; exit 0";
            run(&["sh", "-c", wait], &folder, Some(seen)).await.map_err(|problem| problem.to_string())
        });
    }
    tokio::time::timeout(PATIENCE, all_here.notified()).await?;
    // An agent that arrives late still finds the gate open: it is held until all have passed.
    let mut open = fs::OpenOptions::new().read(true).write(true).open(&gate)?;
    // One line per agent, and empty ones: shells read byte by byte, all from one pipe.
    let lines = "\n".repeat(AT_ONCE);
    let writer = tokio::task::spawn_blocking(move || open.write_all(lines.as_bytes()).map(|()| open));
    while let Some(ended) = agents.join_next().await {
        ended??;
    }
    drop(writer.await??);
    Ok(())
}
