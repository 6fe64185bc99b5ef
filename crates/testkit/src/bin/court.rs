//! `cargo xtask court [--seed N] [--runs N]`: runs the simulated court and prints its table and bars. Exit code 1 means that a
//! bar is missed, 2 that the arguments are not understood.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command line")]

use std::process::ExitCode;

use tribunal_testkit::court::{ALLOWED_RATES, VARIANTS, calibrate, check_bars, render_table};

const USAGE: &str = "usage: cargo xtask court [--seed N] [--runs N]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((seed, runs)) = parse_arguments(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    println!("simulated court: {runs} runs per column, seed {seed}\n");
    let calibration = calibrate(seed, runs);
    let rows: Vec<_> = VARIANTS.iter().map(|variant| (*variant, variant.run_many(seed, runs))).collect();
    println!("{}", render_table(&calibration, &rows));
    let bars = check_bars(&rows, ALLOWED_RATES);
    for bar in &bars {
        println!("{bar}");
    }
    if bars.iter().all(|bar| bar.holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse_arguments(arguments: &[String]) -> Option<(u64, u64)> {
    let (mut seed, mut runs) = (1, 10_000);
    for argument_pair in arguments.chunks(2) {
        let [name, value] = argument_pair else { return None };
        match name.as_str() {
            "--seed" => seed = value.parse().ok()?,
            "--runs" => runs = value.parse().ok().filter(|runs| *runs > 0)?,
            _ => return None,
        }
    }
    Some((seed, runs))
}
