//! `cargo xtask bench`: measures what users notice and compares it with limits.
//!
//! The figures are CPU time as the kernel counts it, so that a busy machine does not change them, except where latency matters.
//! What only the product's own code can measure is in the bench `measures` of `tribunal-runner`; here the program is used from
//! outside, as users do.

mod binary_runs;
mod headless_loop;
mod hook;
mod scripted_project;
mod sprint_stories;
mod story_sessions;
mod table;
mod workspaces;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{FAILURE_CODE, USAGE_CODE, cargo_command};
use table::{BenchFigure, BenchRow};

/// A benchmark with its name.
struct BenchEntry {
    name: &'static str,
    run: fn(&BuiltPrograms) -> Result<Vec<BenchRow>>,
}

const BENCH_ENTRIES: &[BenchEntry] = &[
    BenchEntry { name: "start", run: binary_runs::measure_start },
    BenchEntry { name: "overhead", run: measure_overhead },
    BenchEntry { name: "sandbox", run: measure_sandbox },
    BenchEntry { name: "handoff", run: binary_runs::measure_handoff },
    BenchEntry { name: "loop", run: headless_loop::measure_headless_loop },
    BenchEntry { name: "story", run: story_sessions::measure_story },
    BenchEntry { name: "sprint", run: sprint_stories::measure_sprint },
    BenchEntry { name: "hook", run: hook::measure_hook },
    BenchEntry { name: "copies", run: workspaces::measure_workspaces },
    BenchEntry { name: "at-once", run: measure_many_agents },
    BenchEntry { name: "replay", run: measure_replay },
    BenchEntry { name: "runs", run: binary_runs::measure_many_runs },
    BenchEntry { name: "masking", run: measure_masking },
    BenchEntry { name: "similarity", run: measure_loop_check },
];

/// The programs to measure, and how.
struct BuiltPrograms {
    /// The directory that contains `tribunal` and the agents of the test kit.
    programs_dir: PathBuf,
    is_debug: bool,
    /// The length of the sprint, if it was chosen.
    story_count: Option<u32>,
}

/// What was typed after `cargo xtask bench`.
#[derive(Debug, Default)]
struct BenchArguments {
    is_debug: bool,
    story_count: Option<u32>,
    bench_names: Vec<OsString>,
}

impl BenchArguments {
    fn parse_words(words: &[OsString]) -> Result<BenchArguments> {
        let mut parsed = BenchArguments::default();
        let mut remaining_words = words.iter();
        while let Some(word) = remaining_words.next() {
            if word == "--debug" {
                parsed.is_debug = true;
            } else if word == "--stories" {
                let typed_count = remaining_words.next().and_then(|count| count.to_str()?.parse::<u32>().ok());
                // There is nothing to measure between the stories of a sprint with one.
                let story_count = typed_count.filter(|count| *count > 1);
                parsed.story_count = Some(story_count.context("--stories needs a number from 2 on")?);
            } else {
                // Everything else is the name of a benchmark.
                parsed.bench_names.push(word.clone());
            }
        }
        Ok(parsed)
    }
}

pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let BenchArguments { is_debug, story_count, bench_names } = BenchArguments::parse_words(arguments)?;
    if let Some(unknown_bench) =
        bench_names.iter().find(|bench_name| !BENCH_ENTRIES.iter().any(|bench| **bench_name == *bench.name))
    {
        let known_names: Vec<&str> = BENCH_ENTRIES.iter().map(|bench| bench.name).collect();
        eprintln!("xtask bench: there is no `{}`, only {}", unknown_bench.display(), known_names.join(", "));
        return Ok(USAGE_CODE);
    }
    let built = BuiltPrograms { programs_dir: build_programs(is_debug)?, is_debug, story_count };
    let mut exceeded_count = 0;
    for bench in BENCH_ENTRIES
        .iter()
        .filter(|bench| bench_names.is_empty() || bench_names.iter().any(|bench_name| *bench_name == *bench.name))
    {
        let rows = (bench.run)(&built).with_context(|| format!("`{}` cannot be measured", bench.name))?;
        for row in rows {
            exceeded_count += usize::from(!row.is_within_limit());
            println!("{row}");
        }
    }
    // Limits apply to optimised programs only, so a debug run never fails because of them.
    if is_debug {
        println!("built without optimising: these figures say only that they can be taken");
        return Ok(0);
    }
    Ok(if exceeded_count == 0 { 0 } else { FAILURE_CODE })
}

/// Builds the programs, and returns their directory.
fn build_programs(is_debug: bool) -> Result<PathBuf> {
    let mut build_command = cargo_command();
    // Building is not part of any measurement, so it happens once before all of them.
    build_command.args(["build", "--quiet", "--locked", "-p", "tribunal", "-p", "tribunal-testkit"]);
    if !is_debug {
        build_command.arg("--release");
    }
    if !build_command.status().context("cannot start cargo")?.success() {
        bail!("the programs to measure cannot be built");
    }
    let target_dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    Ok(xtask::workspace_root().join(target_dir).join(if is_debug { "debug" } else { "release" }))
}

impl BuiltPrograms {
    fn program_path(&self, program_name: &str) -> PathBuf {
        self.programs_dir.join(program_name)
    }

    fn tribunal_command(&self) -> Command {
        let mut command = Command::new(self.program_path("tribunal"));
        // A build with kill points would obey this variable and end in the middle of a measurement.
        command.env_remove("TRIBUNAL_FAULT").env("NO_COLOR", "1");
        command
    }

    /// The directory for files that take long to create and can be used again.
    fn bench_dir(&self) -> PathBuf {
        self.programs_dir.with_file_name("bench")
    }

    /// Runs the bench of `tribunal-runner` and returns its values by name.
    fn run_measures(&self, bench_args: &[&str]) -> Result<Vec<(String, f64)>> {
        let mut bench_command = cargo_command();
        bench_command.args(["bench", "--quiet", "--locked", "-p", "tribunal-runner", "--bench", "measures"]);
        if self.is_debug {
            bench_command.args(["--profile", "dev"]);
        }
        let output = bench_command.arg("--").args(bench_args).stderr(std::process::Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("`measures {}` failed", bench_args.join(" "));
        }
        let output_text = String::from_utf8(output.stdout)?;
        // Each measurement is a line of name and value, separated by a tab; other lines are ignored.
        let lines = output_text.lines().filter_map(|line| line.split_once('\t'));
        lines.map(|(measure_name, value)| Ok((measure_name.to_owned(), value.parse()?))).collect()
    }
}

/// Finds the value of this name.
fn find_value(values: &[(String, f64)], measure_name: &str) -> Result<f64> {
    let named_value = values.iter().find(|(known_name, _)| known_name == measure_name);
    named_value.map(|(_, value)| *value).with_context(|| format!("nothing was said about `{measure_name}`"))
}

fn measure_sandbox(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let delay_ms = find_value(&built.run_measures(&["sandbox"])?, "sandbox")?;
    let (measured, limit) = (BenchFigure::Milliseconds(delay_ms), BenchFigure::Milliseconds(1.0));
    Ok(vec![BenchRow::new("agent process: delay by the sandbox", measured, limit)])
}

fn measure_overhead(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let values = built.run_measures(&["overhead"])?;
    let cpu_row = BenchRow::new(
        "agent process: our CPU for one",
        BenchFigure::Milliseconds(find_value(&values, "overhead")?),
        BenchFigure::Milliseconds(5.0),
    );
    // The number of started programs needs strace, which many machines do not have.
    let execs_row = match find_value(&values, "execs") {
        Ok(exec_count) => {
            BenchRow::new("agent process: programs executed", BenchFigure::Count(exec_count), BenchFigure::Count(2.0))
        }
        Err(_) => BenchRow::from_note("agent process: programs executed", "not counted: there is no strace"),
    };
    Ok(vec![cpu_row, execs_row])
}

fn measure_many_agents(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let values = built.run_measures(&["at-once"])?;
    Ok(vec![
        BenchRow::new(
            "1,000 agents at once: our memory",
            BenchFigure::Megabytes(find_value(&values, "at-once")?),
            BenchFigure::Megabytes(150.0),
        ),
        BenchRow::without_limit(
            "1,000 agents at once: our CPU for one",
            BenchFigure::Milliseconds(find_value(&values, "at-once-cpu")?),
        ),
    ])
}

fn measure_replay(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let cpu_ms = find_value(&built.run_measures(&["replay"])?, "replay")?;
    Ok(vec![BenchRow::new(
        "replay of 100,000 events (store, view, history)",
        BenchFigure::Milliseconds(cpu_ms),
        BenchFigure::Milliseconds(1000.0),
    )])
}

fn measure_masking(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let mb_per_second = find_value(&built.run_measures(&["masking"])?, "masking")?;
    Ok(vec![BenchRow::at_least("masking", BenchFigure::MbPerSecond(mb_per_second), BenchFigure::MbPerSecond(150.0))])
}

fn measure_loop_check(built: &BuiltPrograms) -> Result<Vec<BenchRow>> {
    let cpu_ms = find_value(&built.run_measures(&["loops"])?, "loops")?;
    Ok(vec![BenchRow::new(
        "loop check of two outputs of 1 MB, the worst",
        BenchFigure::Milliseconds(cpu_ms),
        BenchFigure::Milliseconds(50.0),
    )])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_the_sprint_is_not_taken_for_a_name() {
        let parse = |words: &[&str]| BenchArguments::parse_words(&words.iter().map(OsString::from).collect::<Vec<_>>());
        let parsed = parse(&["sprint", "--stories", "500", "--debug"]).unwrap();
        assert_eq!((parsed.bench_names.len(), parsed.story_count, parsed.is_debug), (1, Some(500), true));
        for wrong_words in [&["--stories"][..], &["--stories", "1"], &["--stories", "sprint"]] {
            assert!(parse(wrong_words).is_err(), "{wrong_words:?}");
        }
    }
}
