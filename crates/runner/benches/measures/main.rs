//! Measures what can only be measured from inside, for `cargo xtask bench`: `measures [--short] NAME [DIRECTORY]` prints lines of
//! a name, a tab and a number. With `--short` everything is measured a few times only, to show that it can be.
//!
//! CPU time is that of this process, or of the children it waited for, as the kernel counts it. Limits and the table are in
//! `xtask`.

mod cpu;
mod journals;
mod processes;
mod texts;

use std::{
    error::Error,
    io::{Write, stdout},
    path::Path,
    process::ExitCode,
};

/// How much of everything is measured.
#[derive(Clone, Copy)]
struct MeasureSizes {
    idle_agents: usize,
    parallel_agents: usize,
    journal_events: usize,
    journal_runs: usize,
    masked_texts: usize,
    compared_pairs: usize,
    /// The size of the texts that are masked and compared.
    text_bytes: usize,
}

const FULL_SIZES: MeasureSizes = MeasureSizes {
    idle_agents: 200,
    parallel_agents: 1_000,
    journal_events: 100_000,
    journal_runs: 1_000,
    masked_texts: 50,
    compared_pairs: 5,
    text_bytes: 1 << 20,
};

const SHORT_SIZES: MeasureSizes = MeasureSizes {
    idle_agents: 20,
    parallel_agents: 50,
    journal_events: 1_000,
    journal_runs: 50,
    masked_texts: 10,
    compared_pairs: 1,
    text_bytes: 64 << 10,
};

type BenchResult<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    // Agents are started as in the product: with a keeper, which is this very program.
    if let Some(outcome) = tribunal_supervise::enter_keeper() {
        return outcome;
    }
    match run_measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "measures: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run_measure() -> BenchResult<()> {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|measure_name| measure_name != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (sizes, arguments) = match arguments.as_slice() {
        ["--short", arguments @ ..] => (SHORT_SIZES, arguments),
        arguments => (FULL_SIZES, arguments),
    };
    match arguments {
        ["agents", count] => processes::run_idle_agents(count.parse()?),
        ["overhead"] => processes::measure_overhead(sizes.idle_agents),
        ["sandbox"] => processes::measure_sandbox(sizes.idle_agents),
        ["at-once"] => processes::measure_parallel_agents(sizes.parallel_agents),
        ["replay"] => journals::measure_replay(sizes.journal_events),
        ["many-runs", directory] => journals::create_many_runs(Path::new(directory), sizes.journal_runs),
        ["masking"] => texts::measure_masking(sizes),
        ["loops"] => texts::measure_loop_detection(sizes),
        // `cargo test --benches` only checks that it starts.
        [] => Ok(()),
        unknown => Err(format!("there is no measure {unknown:?}").into()),
    }
}

fn print_figure(figure_name: &str, value: f64) -> BenchResult<()> {
    Ok(writeln!(stdout(), "{figure_name}\t{value}")?)
}
