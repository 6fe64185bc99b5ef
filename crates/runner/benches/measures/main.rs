//! Measures what can only be measured from inside, for `cargo xtask bench`: `measures NAME [FOLDER]` prints lines of a name,
//! a tab and a number.
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
    match arguments.as_slice() {
        ["agents", count] => processes::run_idle_agents(count.parse()?),
        ["overhead"] => processes::measure_overhead(),
        ["sandbox"] => processes::measure_sandbox(),
        ["at-once"] => processes::measure_parallel_agents(),
        ["replay"] => journals::measure_replay(),
        ["many-runs", directory] => journals::create_many_runs(Path::new(directory)),
        ["masking"] => texts::measure_masking(),
        ["loops"] => texts::measure_loop_detection(),
        // `cargo test --benches` only checks that it starts.
        [] => Ok(()),
        unknown => Err(format!("there is no measure {unknown:?}").into()),
    }
}

fn print_figure(figure_name: &str, value: f64) -> BenchResult<()> {
    Ok(writeln!(stdout(), "{figure_name}\t{value}")?)
}
