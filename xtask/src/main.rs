//! `cargo xtask`: the maintenance commands of this repository.
//!
//! This file starts cargo, prints and decides exit codes; the rules are in the library beside it. A new command is a row in
//! [`COMMANDS`] and a function.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command line")]

mod bench;
mod bmad;
mod clients;
mod fuzz;
mod scratch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

/// The environment variable that tells test programs how many tests to run at once.
const THREADS: &str = "RUST_TEST_THREADS";

/// The exit code for failed checks; the next one is for wrong usage.
const FAILED: u8 = 1;
const MISUSED: u8 = 2;

/// One command of `cargo xtask`.
struct Chore {
    name: &'static str,
    about: &'static str,
    run: fn(&[OsString]) -> Result<u8>,
}

const COMMANDS: &[Chore] = &[
    Chore {
        name: "test",
        about: "tidy, format, lints and all tests; further arguments go to `cargo test`",
        run: test,
    },
    Chore { name: "tidy", about: "the rules on architecture, sizes and texts alone", run: tidy },
    Chore {
        name: "style",
        about: "sizes, names and structure of the code as figures; --list names the places behind them; of another checkout: DIR",
        run: style,
    },
    Chore {
        name: "bench",
        about: "the figures people feel against their limits; names of some of them, else all",
        run: bench::run,
    },
    Chore {
        name: "court",
        about: "the simulated court: what the rules come to with agents whose errors are known; --seed N, --runs N",
        run: court,
    },
    Chore {
        name: "clients",
        about: "the tests with real agent clients and a scripted model; --install-only, names of some of them",
        run: clients::run,
    },
    Chore {
        name: "bmad",
        about: "the tests with trees of real BMAD versions; --install-only, names of some of them",
        run: bmad::run,
    },
    Chore {
        name: "fuzz",
        about: "random bytes against every reader of files and answers: --seconds N or --runs N, --build-only, names of some",
        run: fuzz::run,
    },
    Chore { name: "help", about: "this list", run: help },
];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next().unwrap_or_default();
    let rest: Vec<OsString> = arguments.collect();
    // The usual help flags are accepted, too.
    let name = if name == "--help" || name == "-h" { OsString::from("help") } else { name };

    let Some(chore) = COMMANDS.iter().find(|chore| name == chore.name) else {
        if name.is_empty() {
            eprint!("xtask: which command?\n\n{}", list());
        } else {
            eprint!("xtask: there is no command `{}`\n\n{}", name.display(), list());
        }
        return ExitCode::from(MISUSED);
    };
    match (chore.run)(&rest) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("xtask {}: {error:#}", chore.name);
            ExitCode::from(FAILED)
        }
    }
}

fn list() -> String {
    // The names are padded to the longest one, so that the descriptions form a column.
    let rows = COMMANDS.iter().map(|chore| format!("  cargo xtask {:<7} {}\n", chore.name, chore.about));
    rows.collect()
}

fn help(_: &[OsString]) -> Result<u8> {
    print!("{}", list());
    Ok(0)
}

fn tidy(arguments: &[OsString]) -> Result<u8> {
    if !arguments.is_empty() {
        eprintln!("xtask tidy: takes no arguments");
        return Ok(MISUSED);
    }
    let breaches = xtask::tidy::check(&xtask::root())?;
    for breach in &breaches {
        eprintln!("{breach}");
    }
    match breaches.len() {
        // Success prints nothing, as with other linters.
        0 => return Ok(0),
        1 => eprintln!("tidy: 1 breach"),
        many => eprintln!("tidy: {many} breaches"),
    }
    Ok(FAILED)
}

fn style(arguments: &[OsString]) -> Result<u8> {
    let list = arguments.iter().any(|argument| argument == "--list");
    let root = match arguments.iter().filter(|argument| *argument != "--list").collect::<Vec<_>>()[..] {
        [] => xtask::root(),
        // A mistyped flag must not be taken for a directory.
        [root] if !root.to_string_lossy().starts_with('-') => PathBuf::from(root),
        _ => {
            eprintln!("xtask style: takes --list and the root of another checkout, nothing else");
            return Ok(MISUSED);
        }
    };
    let style = xtask::style::measure(&root)?;
    let rows = style.rows();
    // All labels get the width of the longest one, so that the values form a column.
    let width = rows.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
    for (label, value) in rows {
        println!("{label:<width$}  {value}");
    }
    if list {
        let shared: Vec<String> =
            style.most_shared_names(20).into_iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("\nnames that functions share most: {}", shared.join(", "));
        for place in style.tuple_parameters.iter() {
            println!("tuple parameter: {}:{} {}", place.path, place.line, place.name);
        }
        for place in style.patched_marks.iter() {
            println!("`patched` mark: {}:{} {}", place.path, place.line, place.name);
        }
        for circle in &style.circles {
            println!("circle of {} files: {}", circle.files.len(), circle.files.join(" "));
        }
    }
    Ok(0)
}

fn test(arguments: &[OsString]) -> Result<u8> {
    // The fast checks come first: a formatting error should not have to wait for the tests.
    let mut code = step("tidy", || tidy(&[]))?;
    if code == 0 {
        code = tool_step(&["fmt", "--all", "--check"])?;
    }
    if code == 0 {
        code = tool_step(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    }
    if code == 0 {
        // The directory in memory must live until the tests have ended; dropping it removes it.
        let fixed = ["test", "--workspace", "--locked"].map(OsString::from);
        let scratch = scratch::in_memory();
        code = command_step(&[&fixed, arguments].concat(), &mut test_cargo(scratch.as_ref()))?;
    }
    Ok(code)
}

fn court(arguments: &[OsString]) -> Result<u8> {
    // The court runs thousands of reviews, so it is built with optimisation.
    let fixed = ["run", "--release", "--quiet", "--package", "tribunal-testkit", "--bin", "court", "--"];
    let status = cargo().args(fixed).args(arguments).status().context("cannot start cargo")?;
    // Without an exit code the process was ended by a signal.
    match status.code() {
        Some(code) => Ok(u8::try_from(code).unwrap_or(FAILED)),
        None => bail!("the court was ended: {status}"),
    }
}

/// Runs a part of cargo that is installed separately; if it is not installed, the step is skipped.
fn tool_step(arguments: &[&str]) -> Result<u8> {
    let tool = arguments.first().copied().unwrap_or_default();
    // Asking for the version is the cheapest way to see whether the component is installed.
    let version = cargo().args([tool, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        eprintln!("==> cargo {tool} is not installed: left out (rustup component add rustfmt clippy)");
        return Ok(0);
    }
    cargo_step(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
}

fn cargo_step(arguments: &[OsString]) -> Result<u8> {
    command_step(arguments, &mut cargo())
}

fn command_step(arguments: &[OsString], cargo: &mut Command) -> Result<u8> {
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    step(&format!("cargo {}", words.join(" ")), || {
        let status = cargo.args(arguments).status().context("cannot start cargo")?;
        match status.code() {
            // An exit code beyond one byte cannot be passed on, so it becomes a plain failure.
            Some(code) => Ok(u8::try_from(code).unwrap_or(FAILED)),
            None => bail!("cargo was ended: {status}"),
        }
    })
}

/// Runs one step and prints a heading before it and its duration after it.
fn step(heading: &str, run: impl FnOnce() -> Result<u8>) -> Result<u8> {
    eprintln!("==> {heading}");
    let start = Instant::now();
    let code = run()?;
    let seconds = start.elapsed().as_secs_f64();
    match code {
        0 => eprintln!("    ok in {seconds:.1} s"),
        code => eprintln!("    failed in {seconds:.1} s: {heading} (exit code {code})"),
    }
    Ok(code)
}

/// The cargo that started us, in the root of the workspace.
fn cargo() -> Command {
    // Cargo sets this variable for the programs it runs; it names the exact toolchain in use.
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(xtask::root());
    cargo
}

/// Cargo for running tests: it keeps their files in memory where possible, and runs twice as many tests at once as there are
/// cores, because many of them wait for processes. Values that the user has set take precedence.
fn test_cargo(scratch: Option<&TempDir>) -> Command {
    let mut cargo = cargo();
    if let Some(scratch) = scratch {
        cargo.env("TMPDIR", scratch.path());
    }
    if std::env::var_os(THREADS).is_none() {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        cargo.env(THREADS, (cores * 2).to_string());
    }
    cargo
}
