//! `cargo xtask`: the maintenance commands of this repository.
//!
//! This file starts cargo, prints and decides exit codes; the rules are in the library beside it. A new command is a row in
//! [`COMMANDS`] and a function.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command line")]

mod bench;
mod bmad;
mod clients;
mod fuzz;
mod memory_dir;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

/// The environment variable that tells test programs how many tests to run at once.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// The exit code for failed checks; the next one is for wrong usage.
const FAILURE_CODE: u8 = 1;
const USAGE_CODE: u8 = 2;

/// One command of `cargo xtask`.
struct XtaskCommand {
    name: &'static str,
    about: &'static str,
    run: fn(&[OsString]) -> Result<u8>,
}

const COMMANDS: &[XtaskCommand] = &[
    XtaskCommand {
        name: "test",
        about: "tidy, format, lints and all tests; with --busy only the tests, three times under load; others go to `cargo test`",
        run: run_tests,
    },
    XtaskCommand { name: "tidy", about: "the rules on architecture, sizes and texts alone", run: run_tidy },
    XtaskCommand {
        name: "style",
        about: "sizes, names and structure of the code as figures; --list names the places behind them; of another checkout: DIR",
        run: print_style,
    },
    XtaskCommand {
        name: "bench",
        about: "the figures people feel against their limits; names of some, else all but `build`; --small, --stories N of the sprint",
        run: bench::run,
    },
    XtaskCommand {
        name: "court",
        about: "the simulated court: what the rules come to with agents whose errors are known; --seed N, --runs N",
        run: run_court,
    },
    XtaskCommand {
        name: "crash",
        about: "kills runs of every kind at every journal event and resumes them; damages their journals; --random N",
        run: run_crash_sweep,
    },
    XtaskCommand {
        name: "clients",
        about: "the tests with real agent clients and a scripted model; --install-only, names of some of them",
        run: clients::run,
    },
    XtaskCommand {
        name: "bmad",
        about: "the tests with trees of real BMAD versions; --install-only, names of some of them",
        run: bmad::run,
    },
    XtaskCommand {
        name: "fuzz",
        about: "random bytes against every reader of files and answers: --seconds N or --runs N, --build-only, names of some",
        run: fuzz::run,
    },
    XtaskCommand { name: "help", about: "this list", run: print_help },
];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let command_name = arguments.next().unwrap_or_default();
    let remaining_args: Vec<OsString> = arguments.collect();
    // The usual help flags are accepted, too.
    let command_name =
        if command_name == "--help" || command_name == "-h" { OsString::from("help") } else { command_name };

    let Some(xtask_command) = COMMANDS.iter().find(|xtask_command| command_name == xtask_command.name) else {
        if command_name.is_empty() {
            eprint!("xtask: which command?\n\n{}", format_commands());
        } else {
            eprint!("xtask: there is no command `{}`\n\n{}", command_name.display(), format_commands());
        }
        return ExitCode::from(USAGE_CODE);
    };
    match (xtask_command.run)(&remaining_args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("xtask {}: {error:#}", xtask_command.name);
            ExitCode::from(FAILURE_CODE)
        }
    }
}

fn format_commands() -> String {
    // The names are padded to the longest one, so that the descriptions form a column.
    let rows = COMMANDS
        .iter()
        .map(|xtask_command| format!("  cargo xtask {:<7} {}\n", xtask_command.name, xtask_command.about));
    rows.collect()
}

fn print_help(_: &[OsString]) -> Result<u8> {
    print!("{}", format_commands());
    Ok(0)
}

fn run_tidy(arguments: &[OsString]) -> Result<u8> {
    if !arguments.is_empty() {
        eprintln!("xtask tidy: takes no arguments");
        return Ok(USAGE_CODE);
    }
    let breaches = xtask::tidy::check_repository(&xtask::workspace_root())?;
    for breach in &breaches {
        eprintln!("{breach}");
    }
    match breaches.len() {
        // Success prints nothing, as with other linters.
        0 => return Ok(0),
        1 => eprintln!("tidy: 1 breach"),
        breach_count => eprintln!("tidy: {breach_count} breaches"),
    }
    Ok(FAILURE_CODE)
}

fn print_style(arguments: &[OsString]) -> Result<u8> {
    let lists_places = arguments.iter().any(|argument| argument == "--list");
    let checkout_root = match arguments.iter().filter(|argument| *argument != "--list").collect::<Vec<_>>()[..] {
        [] => xtask::workspace_root(),
        // A mistyped flag must not be taken for a directory.
        [checkout_root] if !checkout_root.to_string_lossy().starts_with('-') => PathBuf::from(checkout_root),
        _ => {
            eprintln!("xtask style: takes --list and the root of another checkout, nothing else");
            return Ok(USAGE_CODE);
        }
    };
    let figures = xtask::style::measure_repository(&checkout_root)?;
    let figure_rows = figures.to_rows();
    // All labels get the width of the longest one, so that the values form a column.
    let label_width = figure_rows.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
    for (label, value) in figure_rows {
        println!("{label:<label_width$}  {value}");
    }
    if lists_places {
        let shared_names: Vec<String> =
            figures.most_shared_names(20).into_iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("\nnames that functions share most: {}", shared_names.join(", "));
        for place in figures.tuple_parameters.iter() {
            println!("tuple parameter: {}:{} {}", place.path, place.line, place.name);
        }
        for place in figures.patched_marks.iter() {
            println!("`patched` mark: {}:{} {}", place.path, place.line, place.name);
        }
        for arrow in figures.arrows_back() {
            println!("import against the order of directories: {} → {}", arrow.path, arrow.imported_folder);
        }
        for place in &figures.kind_mentions {
            println!("mention of a kind: {}:{} {}", place.path, place.line, place.name);
        }
        for cycle in &figures.import_cycles {
            println!("circle of {} files: {}", cycle.files.len(), cycle.files.join(" "));
        }
    }
    Ok(0)
}

fn run_tests(arguments: &[OsString]) -> Result<u8> {
    if let [flag, arguments @ ..] = arguments
        && flag == "--busy"
    {
        return run_tests_under_load(arguments);
    }
    // The fast checks come first: a formatting error should not have to wait for the tests.
    let mut exit_code = run_step("tidy", || run_tidy(&[]))?;
    if exit_code == 0 {
        exit_code = run_tool_step(&["fmt", "--all", "--check"])?;
    }
    if exit_code == 0 {
        exit_code = run_tool_step(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    }
    if exit_code == 0 {
        exit_code = run_workspace_tests(arguments)?;
    }
    Ok(exit_code)
}

fn run_workspace_tests(arguments: &[OsString]) -> Result<u8> {
    // The directory in memory must live until the tests have ended; dropping it removes it.
    let fixed_args = ["test", "--workspace", "--locked"].map(OsString::from);
    let scratch_dir = memory_dir::create_memory_dir();
    run_command_step(&[&fixed_args, arguments].concat(), &mut test_cargo_command(scratch_dir.as_ref()))
}

/// How often the tests run under load, and how many threads make it.
const LOADED_ROUNDS: usize = 3;
const LOAD_THREADS: usize = 4;

/// Runs all tests several times beside threads that keep the processors busy. A test that depends on how long something takes, or on
/// the order in which parallel processes get on, fails here sooner than elsewhere.
fn run_tests_under_load(arguments: &[OsString]) -> Result<u8> {
    // The build needs no load.
    let exit_code = run_workspace_tests(&[OsString::from("--no-run")])?;
    if exit_code != 0 {
        return Ok(exit_code);
    }
    let tests_have_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..LOAD_THREADS {
            scope.spawn(|| {
                while !tests_have_ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let mut rounds = (0..LOADED_ROUNDS).map(|_| run_workspace_tests(arguments));
        let failed_round = rounds.find(|outcome| !matches!(outcome, Ok(0)));
        tests_have_ended.store(true, Ordering::Relaxed);
        failed_round.unwrap_or(Ok(0))
    })
}

/// Runs the crash tests that take too long for every change. The programs of the test kit are built first: the tests start them.
/// `--random N` tries N random kills and damages of each kind of run instead.
fn run_crash_sweep(arguments: &[OsString]) -> Result<u8> {
    let (random_count, test_filter, arguments) = match arguments {
        [flag, random_count, others @ ..] if flag == "--random" => {
            (random_count.clone(), "random_damages_at_random_kills", others)
        }
        arguments => (OsString::from("0"), "crash", arguments),
    };
    let build_args = ["test", "--workspace", "--test", "cli", "--no-run", "--locked"].map(OsString::from);
    let test_args = ["test", "--workspace", "--test", "cli", "--locked", "--", "--ignored", "--nocapture", test_filter];
    let scratch_dir = memory_dir::create_memory_dir();
    match run_command_step(&build_args, &mut test_cargo_command(scratch_dir.as_ref()))? {
        0 => {
            let test_args = [&test_args.map(OsString::from), arguments].concat();
            let mut test_command = test_cargo_command(scratch_dir.as_ref());
            run_command_step(&test_args, test_command.env("TRIBUNAL_CRASH_RANDOM", random_count))
        }
        exit_code => Ok(exit_code),
    }
}

fn run_court(arguments: &[OsString]) -> Result<u8> {
    // The court runs thousands of reviews, so it is built with optimisation.
    let fixed_args = ["run", "--release", "--quiet", "--package", "tribunal-testkit", "--bin", "court", "--"];
    let status = cargo_command().args(fixed_args).args(arguments).status().context("cannot start cargo")?;
    // Without an exit code the process was ended by a signal.
    match status.code() {
        Some(code) => Ok(u8::try_from(code).unwrap_or(FAILURE_CODE)),
        None => bail!("the court was ended: {status}"),
    }
}

/// Runs a part of cargo that is installed separately; if it is not installed, the step is skipped.
fn run_tool_step(arguments: &[&str]) -> Result<u8> {
    let tool_name = arguments.first().copied().unwrap_or_default();
    // Asking for the version is the cheapest way to see whether the component is installed.
    let version_status =
        cargo_command().args([tool_name, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version_status.is_ok_and(|status| status.success()) {
        eprintln!("==> cargo {tool_name} is not installed: left out (rustup component add rustfmt clippy)");
        return Ok(0);
    }
    run_cargo_step(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
}

fn run_cargo_step(arguments: &[OsString]) -> Result<u8> {
    run_command_step(arguments, &mut cargo_command())
}

fn run_command_step(arguments: &[OsString], cargo_process: &mut Command) -> Result<u8> {
    let argument_texts: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    run_step(&format!("cargo {}", argument_texts.join(" ")), || {
        let status = cargo_process.args(arguments).status().context("cannot start cargo")?;
        match status.code() {
            // An exit code beyond one byte cannot be passed on, so it becomes a plain failure.
            Some(code) => Ok(u8::try_from(code).unwrap_or(FAILURE_CODE)),
            None => bail!("cargo was ended: {status}"),
        }
    })
}

/// Runs one step and prints a heading before it and its duration after it.
fn run_step(heading: &str, step_action: impl FnOnce() -> Result<u8>) -> Result<u8> {
    eprintln!("==> {heading}");
    let start_time = Instant::now();
    let exit_code = step_action()?;
    let seconds = start_time.elapsed().as_secs_f64();
    match exit_code {
        0 => eprintln!("    ok in {seconds:.1} s"),
        exit_code => eprintln!("    failed in {seconds:.1} s: {heading} (exit code {exit_code})"),
    }
    Ok(exit_code)
}

/// The cargo that started us, in the root of the workspace.
fn cargo_command() -> Command {
    // Cargo sets this variable for the programs it runs; it names the exact toolchain in use.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(xtask::workspace_root());
    command
}

/// Cargo for running tests: it keeps their files in memory where possible, and runs twice as many tests at once as there are
/// cores, because many of them wait for processes. Values that the user has set take precedence.
fn test_cargo_command(scratch_dir: Option<&TempDir>) -> Command {
    let mut command = cargo_command();
    if let Some(scratch_dir) = scratch_dir {
        command.env("TMPDIR", scratch_dir.path());
    }
    if std::env::var_os(THREADS_VARIABLE).is_none() {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        command.env(THREADS_VARIABLE, (cores * 2).to_string());
    }
    command
}
