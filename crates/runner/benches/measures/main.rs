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

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    // Agents are started as in the product: with a keeper, which is this very program.
    if let Some(done) = tribunal_supervise::enter_keeper() {
        return done;
    }
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let _ = writeln!(std::io::stderr(), "measures: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Outcome<()> {
    // Cargo adds `--bench`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["agents", count] => processes::agents(count.parse()?),
        ["overhead"] => processes::overhead(),
        ["at-once"] => processes::at_once(),
        ["replay"] => journals::replay(),
        ["many-runs", folder] => journals::many_runs(Path::new(folder)),
        ["masking"] => texts::masking(),
        ["loops"] => texts::loops(),
        // `cargo test --benches` only checks that it starts.
        [] => Ok(()),
        other => Err(format!("there is no measure {other:?}").into()),
    }
}

fn say(name: &str, value: f64) -> Outcome<()> {
    Ok(writeln!(stdout(), "{name}\t{value}")?)
}
