//! `cargo xtask`: the chores of this repository, one word each.
//!
//! This file starts cargo, prints and decides exit codes; the rules it applies are in the library beside it. A new
//! chore is a row in [`COMMANDS`] and a function.
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

/// How many tests run at once, for the test programs themselves.
const THREADS: &str = "RUST_TEST_THREADS";

/// What is given back to the shell.
const FAILED: u8 = 1;
const MISUSED: u8 = 2;

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
        [root] if !root.to_string_lossy().starts_with('-') => PathBuf::from(root),
        _ => {
            eprintln!("xtask style: takes --list and the root of another checkout, nothing else");
            return Ok(MISUSED);
        }
    };
    let style = xtask::style::measure(&root)?;
    let rows = style.rows();
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
    let mut code = step("tidy", || tidy(&[]))?;
    if code == 0 {
        code = tool_step(&["fmt", "--all", "--check"])?;
    }
    if code == 0 {
        code = tool_step(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    }
    if code == 0 {
        let fixed = ["test", "--workspace", "--locked"].map(OsString::from);
        let scratch = scratch::in_memory();
        code = command_step(&[&fixed, arguments].concat(), &mut test_cargo(scratch.as_ref()))?;
    }
    Ok(code)
}

fn court(arguments: &[OsString]) -> Result<u8> {
    let fixed = ["run", "--release", "--quiet", "--package", "tribunal-testkit", "--bin", "court", "--"];
    let status = cargo().args(fixed).args(arguments).status().context("cannot start cargo")?;
    match status.code() {
        Some(code) => Ok(u8::try_from(code).unwrap_or(FAILED)),
        None => bail!("the court was ended: {status}"),
    }
}

/// A step with a part of cargo that is installed separately, and left out where it is not.
fn tool_step(arguments: &[&str]) -> Result<u8> {
    let tool = arguments.first().copied().unwrap_or_default();
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
            Some(code) => Ok(u8::try_from(code).unwrap_or(FAILED)),
            None => bail!("cargo was ended: {status}"),
        }
    })
}

/// Runs one step between a heading and the time it took.
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
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(xtask::root());
    cargo
}

/// The same for tests: their files in memory where that can be, and twice as many at once as there are cores, since many of
/// them wait for processes. Whoever has set either has the last word.
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
