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

use super::Built;
use super::outside::{children, fsync, median};
use super::table::{Figure, Row};

/// The limits that the documentation promises.
const WALL: Figure = Figure::Ms(5.0);
const CPU: Figure = Figure::Ms(3.0);
const MEMORY: Figure = Figure::Mb(20.0);

/// The hooks alternate, so that a machine that is busy for a while affects both.
const TURNS: u32 = 5;
const OURS_A_TURN: u32 = 30;
const THEIRS_A_TURN: u32 = 4;

const SCRIPT: &str = include_str!("stop.sh");
const STATE: &str = ".claude/ralph-loop.local.md";
const SESSION: &str = "5745e48a-069b-4256-b0f9-b1c83ddda295";

/// A session that wants to stop: its directory, what its client sends, and what the session has to do.
struct Stop<'a> {
    folder: &'a Path,
    said: PathBuf,
    /// The state file, written again before each stop; `None` if it belongs to Tribunal and changes.
    state: Option<String>,
}

/// The measured times of one hook.
#[derive(Default)]
struct Took {
    walls: Vec<f64>,
    cpu: f64,
    times: u32,
}

impl Took {
    fn wall(&self) -> Result<Figure> {
        median(self.walls.clone()).map(Figure::Ms).context("nothing was measured")
    }

    fn cpu(&self) -> Figure {
        Figure::Ms(self.cpu / f64::from(self.times.max(1)))
    }
}

impl Stop<'_> {
    /// Restores the state, so that each stop is the same.
    fn again(&self) -> Result<()> {
        let written = self.state.as_ref().map(|state| fs::write(self.folder.join(STATE), state));
        Ok(written.transpose().map(|_| ())?)
    }

    fn command(&self, start: &dyn Fn() -> Command) -> Result<Command> {
        let mut command = start();
        command.current_dir(self.folder).stdin(File::open(&self.said)?).stderr(Stdio::null());
        Ok(command)
    }

    fn answer(&self, start: &dyn Fn() -> Command) -> Result<Value> {
        self.again()?;
        let output = self.command(start)?.output()?;
        ensure!(output.status.success(), "the hook ended: {}", output.status);
        serde_json::from_slice(&output.stdout).context("the hook's answer is not JSON")
    }

    fn measure(&self, start: &dyn Fn() -> Command, times: u32, took: &mut Took) -> Result<()> {
        let before = children()?;
        for _ in 0..times {
            self.again()?;
            let mut command = self.command(start)?;
            command.stdout(Stdio::null());
            // Only the process itself is timed; preparing its input is not.
            let begin = Instant::now();
            let status = command.status()?;
            took.walls.push(begin.elapsed().as_secs_f64() * 1000.0);
            ensure!(status.success(), "the hook ended: {status}");
        }
        took.cpu += children()? - before;
        took.times += times;
        Ok(())
    }

    /// The peak memory of the hook or of a program that it starts; `None` if this machine has no GNU time.
    fn memory(&self, start: &dyn Fn() -> Command) -> Result<Option<f64>> {
        let mut time = Command::new("time");
        time.args(["-q", "-f", "%M", "-o"]).arg(self.folder.join("memory"));
        self.counted(time, start)?
            .then(|| {
                let said = fs::read_to_string(self.folder.join("memory"))?;
                Ok(said.trim().parse::<f64>()? / 1024.0)
            })
            .transpose()
    }

    /// The number of processes including the hook itself; `None` if there is no strace.
    fn processes(&self, start: &dyn Fn() -> Command) -> Result<Option<f64>> {
        let traced = self.traced("clone,clone3,fork,vfork", start)?;
        // A call that another process interrupts has two lines, and its result is on the second.
        let is_new = |line: &&str| !line.contains("CLONE_THREAD") && !line.contains("unfinished");
        let is_done = |line: &&str| line.contains("= ") && !line.contains("= -1");
        Ok(traced.map(|text| 1.0 + text.lines().filter(is_new).filter(is_done).count() as f64))
    }

    /// The number of times the hook waits for the disk.
    fn syncs(&self, start: &dyn Fn() -> Command) -> Result<Option<f64>> {
        let traced = self.traced("fsync,fdatasync", start)?;
        Ok(traced.map(|text| text.lines().filter(|line| line.contains("sync(")).count() as f64))
    }

    /// Returns what strace reports about these calls.
    fn traced(&self, calls: &str, start: &dyn Fn() -> Command) -> Result<Option<String>> {
        let path = self.folder.join("strace");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-e", &format!("trace={calls}"), "-o"]).arg(&path);
        Ok(if self.counted(strace, start)? { Some(fs::read_to_string(path)?) } else { None })
    }

    /// Runs the hook under another program. The result is false if that program is missing or may not run here.
    fn counted(&self, mut by: Command, start: &dyn Fn() -> Command) -> Result<bool> {
        self.again()?;
        let hook = start();
        by.arg(hook.get_program()).args(hook.get_args()).current_dir(self.folder);
        // The environment of the hook must reach it through the wrapper.
        for (name, value) in hook.get_envs() {
            match value {
                Some(value) => by.env(name, value),
                None => by.env_remove(name),
            };
        }
        by.stdin(File::open(&self.said)?).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(by.status().is_ok_and(|status| status.success()))
    }
}

pub fn hook(built: &Built) -> Result<Vec<Row>> {
    let folder = TempDir::new()?;
    let root = folder.path();
    fs::create_dir(root.join(".claude"))?;
    fs::write(root.join("stop.sh"), SCRIPT)?;
    let ours = || {
        let mut command = built.tribunal();
        command.args(["hook", "stop"]);
        for name in ["CLAUDE_PROJECT_DIR", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "TRIBUNAL_RUN"] {
            command.env_remove(name);
        }
        command
    };
    let script = root.join("stop.sh");
    let theirs = || {
        let mut command = Command::new("bash");
        command.arg(&script);
        command
    };
    // Without these tools only our own hook is measured.
    let there = ["bash", "jq", "perl", "tac"].map(is_there).iter().all(|there| *there);
    let others = there.then_some(&theirs as &dyn Fn() -> Command);
    // Before anything is timed, both hooks must make the right decision; a wrong answer may be fast.
    let promised = Stop::new(root, Path::new("none"), Some("Done. <promise>ALL  TESTS\nPASS</promise>"))?;
    for hook in [Some(&ours as &dyn Fn() -> Command), others].into_iter().flatten() {
        let answer = promised.answer(hook)?;
        ensure!(answer["decision"] != "block", "who keeps a promise may stop: {answer}");
    }
    let mut rows = Vec::new();
    for size in sessions::SIZES {
        let session = sessions::file(&built.bench_folder(), size)?;
        for given in [true, false] {
            let answer = given.then_some(sessions::LAST);
            let stop = Stop::new(root, &session, answer)?;
            rows.extend(stop.compare(&format!("{}, answer {}", size.name, how(given)), &ours, others)?);
        }
    }
    rows.extend(journal(root, &ours, built)?);
    if !there {
        rows.push(Row::note("stop hook in bash, jq and perl", "not compared: one of them is not here"));
    }
    Ok(rows)
}

fn how(given: bool) -> &'static str {
    if given { "given" } else { "looked for" }
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

impl<'a> Stop<'a> {
    /// Creates a stop that the client reports with the last answer or without it.
    fn new(folder: &'a Path, session: &Path, answer: Option<&str>) -> Result<Stop<'a>> {
        let mut said = json!({
            "session_id": SESSION, "transcript_path": session, "cwd": folder, "hook_event_name": "Stop",
            "permission_mode": "default", "stop_hook_active": false, "background_tasks": [],
        });
        if let Some(answer) = answer {
            said["last_assistant_message"] = answer.into();
        }
        let path = folder.join("said.json");
        fs::write(&path, said.to_string())?;
        let state = format!(
            "---\nactive: true\niteration: 1\nmax_iterations: 50\ncompletion_promise: \"ALL TESTS PASS\"\n\
             session_id: \"{SESSION}\"\n---\n\nMake *all* [tests] pass.\n"
        );
        Ok(Stop { folder, said: path, state: Some(state) })
    }

    fn compare(
        &self,
        name: &str,
        ours: &dyn Fn() -> Command,
        theirs: Option<&dyn Fn() -> Command>,
    ) -> Result<Vec<Row>> {
        for hook in [Some(ours), theirs].into_iter().flatten() {
            let answer = self.answer(hook)?;
            let reason = answer["reason"].as_str().unwrap_or_default();
            let is_sent_back =
                answer["decision"] == "block" && reason.starts_with("Make *all* [tests] pass.");
            ensure!(is_sent_back, "{name}: the session should have been sent back: {answer}");
        }
        // The slower hook runs less often in each turn, so that the whole does not take too long.
        let (mut us, mut them) = (Took::default(), Took::default());
        for _ in 0..TURNS {
            self.measure(ours, OURS_A_TURN, &mut us)?;
            if let Some(theirs) = theirs {
                self.measure(theirs, THEIRS_A_TURN, &mut them)?;
            }
        }
        let mut rows = vec![
            Row::new(&format!("stop hook, {name} (wall)"), us.wall()?, WALL),
            Row::new("  CPU", us.cpu(), CPU),
        ];
        rows.push(match self.memory(ours)? {
            Some(mb) => Row::new("  memory", Figure::Mb(mb), MEMORY),
            None => Row::note("  memory", "not measured: there is no GNU time"),
        });
        rows.push(match self.processes(ours)? {
            Some(count) => Row::new("  processes", Figure::Count(count), Figure::Count(1.0)),
            None => Row::note("  processes", "not counted: there is no strace"),
        });
        if let Some(theirs) = theirs {
            rows.push(Row::free("  bash + jq + perl (wall)", them.wall()?));
            rows.push(Row::free("  bash + jq + perl: CPU", them.cpu()));
            rows.extend(
                self.memory(theirs)?.map(|mb| Row::free("  bash + jq + perl: memory", Figure::Mb(mb))),
            );
            let count = self.processes(theirs)?;
            rows.extend(count.map(|count| Row::free("  bash + jq + perl: processes", Figure::Count(count))));
        }
        Ok(rows)
    }
}

/// Measures the same with a loop of Tribunal: each refusal is in the journal before it is sent. The time of the disk is counted
/// separately.
fn journal(root: &Path, ours: &dyn Fn() -> Command, built: &Built) -> Result<Vec<Row>> {
    fs::remove_file(root.join(STATE))?;
    let mut begin = built.tribunal();
    begin.args(["loop", "start", "--session", SESSION, "--max-iterations", "1000", "--promise", "DONE"]);
    let begun = begin.arg("Make *all* [tests] pass.").current_dir(root).stdout(Stdio::null()).status()?;
    ensure!(begun.success(), "no loop can be started: {begun}");
    // With this value the client never stops asking, so that every stop is refused.
    let patient = || {
        let mut command = ours();
        command.env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0");
        command
    };
    let stop = Stop { state: None, ..Stop::new(root, Path::new("none"), Some(sessions::LAST))? };
    let mut took = Took::default();
    for _ in 0..TURNS {
        stop.measure(&patient, OURS_A_TURN, &mut took)?;
    }
    let answer = stop.answer(&patient)?;
    ensure!(answer["decision"] == "block", "the session should have been sent back: {answer}");
    // The syncs are counted and their time subtracted, because it depends on the disk alone.
    let sync = fsync(root)?;
    let (Figure::Ms(wall), Some(syncs)) = (took.wall()?, stop.syncs(&patient)?) else {
        return Ok(vec![Row::note(
            "stop hook with a journal",
            "not measured: there is no strace to count syncs",
        )]);
    };
    Ok(vec![
        Row::new(
            "stop hook with a journal, syncs apart (wall)",
            Figure::Ms((wall - syncs * sync).max(0.0)),
            WALL,
        ),
        Row::new("  CPU", took.cpu(), CPU),
        Row::free("  syncs", Figure::Count(syncs)),
        Row::free("  and what one of them takes here (wall)", Figure::Ms(sync)),
    ])
}
