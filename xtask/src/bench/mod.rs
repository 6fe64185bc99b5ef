//! `cargo xtask bench`: measures what users notice and compares it with limits.
//!
//! The figures are CPU time as the kernel counts it, so that a busy machine does not change them, except where latency matters.
//! What only the product's own code can measure is in the bench `measures` of `tribunal-runner`; here the program is used from
//! outside, as users do.

mod copies;
mod hook;
mod outside;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{FAILED, MISUSED, cargo};
use table::{Figure, Row};

/// A benchmark with its name.
struct Bench {
    name: &'static str,
    run: fn(&Built) -> Result<Vec<Row>>,
}

const BENCHES: &[Bench] = &[
    Bench { name: "start", run: outside::start },
    Bench { name: "overhead", run: overhead },
    Bench { name: "handoff", run: outside::handoff },
    Bench { name: "hook", run: hook::hook },
    Bench { name: "copies", run: copies::copies },
    Bench { name: "at-once", run: at_once },
    Bench { name: "replay", run: replay },
    Bench { name: "runs", run: outside::many_runs },
    Bench { name: "masking", run: masking },
    Bench { name: "loops", run: loops },
];

/// The programs to measure.
struct Built {
    /// The directory that contains `tribunal` and the agents of the test kit.
    folder: PathBuf,
    debug: bool,
}

pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let debug = arguments.iter().any(|argument| argument == "--debug");
    // Every argument except the flag is the name of a benchmark.
    let named: Vec<&OsString> = arguments.iter().filter(|argument| *argument != "--debug").collect();
    if let Some(unknown) = named.iter().find(|name| !BENCHES.iter().any(|bench| **name == bench.name)) {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        eprintln!("xtask bench: there is no `{}`, only {}", unknown.display(), known.join(", "));
        return Ok(MISUSED);
    }
    let built = build(debug)?;
    let mut over = 0;
    for bench in
        BENCHES.iter().filter(|bench| named.is_empty() || named.iter().any(|name| *name == bench.name))
    {
        let rows = (bench.run)(&built).with_context(|| format!("`{}` cannot be measured", bench.name))?;
        for row in rows {
            over += usize::from(!row.holds());
            println!("{row}");
        }
    }
    // Limits apply to optimised programs only, so a debug run never fails because of them.
    if debug {
        println!("built without optimising: these figures say only that they can be taken");
        return Ok(0);
    }
    Ok(if over == 0 { 0 } else { FAILED })
}

fn build(debug: bool) -> Result<Built> {
    let mut build = cargo();
    // Building is not part of any measurement, so it happens once before all of them.
    build.args(["build", "--quiet", "--locked", "-p", "tribunal", "-p", "tribunal-testkit"]);
    if !debug {
        build.arg("--release");
    }
    if !build.status().context("cannot start cargo")?.success() {
        bail!("the programs to measure cannot be built");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = xtask::root().join(target).join(if debug { "debug" } else { "release" });
    Ok(Built { folder, debug })
}

impl Built {
    fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn tribunal(&self) -> Command {
        let mut command = Command::new(self.program("tribunal"));
        // A kill point from the environment would end the program in the middle of a measurement.
        command.env_remove("TRIBUNAL_FAULT").env("NO_COLOR", "1");
        command
    }

    /// The directory for files that take long to create and can be used again.
    fn bench_folder(&self) -> PathBuf {
        self.folder.with_file_name("bench")
    }

    /// Runs the bench of `tribunal-runner` and returns its values by name.
    fn measures(&self, words: &[&str]) -> Result<Vec<(String, f64)>> {
        let mut bench = cargo();
        bench.args(["bench", "--quiet", "--locked", "-p", "tribunal-runner", "--bench", "measures"]);
        if self.debug {
            bench.args(["--profile", "dev"]);
        }
        let output = bench.arg("--").args(words).stderr(std::process::Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("`measures {}` failed", words.join(" "));
        }
        let text = String::from_utf8(output.stdout)?;
        // Each measurement is a line of name and value, separated by a tab; other lines are ignored.
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        lines.map(|(name, value)| Ok((name.to_owned(), value.parse()?))).collect()
    }
}

/// Finds the value of this name.
fn value(values: &[(String, f64)], name: &str) -> Result<f64> {
    let found = values.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| *value).with_context(|| format!("nothing was said about `{name}`"))
}

fn overhead(built: &Built) -> Result<Vec<Row>> {
    let values = built.measures(&["overhead"])?;
    let cpu =
        Row::new("agent process: our CPU for one", Figure::Ms(value(&values, "overhead")?), Figure::Ms(5.0));
    // The number of started programs needs strace, which many machines do not have.
    let execs = match value(&values, "execs") {
        Ok(execs) => Row::new("agent process: programs executed", Figure::Count(execs), Figure::Count(2.0)),
        Err(_) => Row::note("agent process: programs executed", "not counted: there is no strace"),
    };
    Ok(vec![cpu, execs])
}

fn at_once(built: &Built) -> Result<Vec<Row>> {
    let values = built.measures(&["at-once"])?;
    Ok(vec![
        Row::new(
            "1,000 agents at once: our memory",
            Figure::Mb(value(&values, "at-once")?),
            Figure::Mb(150.0),
        ),
        Row::free("1,000 agents at once: our CPU for one", Figure::Ms(value(&values, "at-once-cpu")?)),
    ])
}

fn replay(built: &Built) -> Result<Vec<Row>> {
    let spent = value(&built.measures(&["replay"])?, "replay")?;
    Ok(vec![Row::new(
        "replay of 100,000 events (store, view, history)",
        Figure::Ms(spent),
        Figure::Ms(1000.0),
    )])
}

fn masking(built: &Built) -> Result<Vec<Row>> {
    let speed = value(&built.measures(&["masking"])?, "masking")?;
    Ok(vec![Row::at_least("masking", Figure::MbPerSecond(speed), Figure::MbPerSecond(100.0))])
}

fn loops(built: &Built) -> Result<Vec<Row>> {
    let spent = value(&built.measures(&["loops"])?, "loops")?;
    Ok(vec![Row::new("loop check of two outputs of 1 MB, the worst", Figure::Ms(spent), Figure::Ms(50.0))])
}
