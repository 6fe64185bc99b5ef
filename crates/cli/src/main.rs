//! The `tribunal` binary: it turns arguments into exit codes and connects the parts in between.
//!
//! Every command has one file in `commands`; `settings` reads `tribunal.yaml`; every error that the user can meet is a
//! [`user_errors::UserError`]. Nothing is decided here, and nothing is shown here that `report` could show.

mod agent_session;
mod bmad;
mod build;
mod clients;
mod commands;
mod complaint;
mod context;
mod demo_project;
mod detach;
mod documents;
mod probe;
mod running;
mod settings;
mod several;
mod sprint;
mod terminal;
mod trust;
mod trust_item;
mod usage;
mod view;

use std::{ffi::OsString, io::Write, panic::AssertUnwindSafe, process::ExitCode};

use clap::{Parser, ValueEnum};
use tribunal_report::escaped_json;

use crate::{commands::Command, complaint::Complaint, context::Context};

/// Panels of reviewers and fixers over your documents and code, with every finding proved.
#[derive(Debug, Parser)]
#[command(name = "tribunal", version = build::VERSION, long_version = build::long_version(), max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Answer in JSON: one document, or one journal event a line for commands that run.
    #[arg(long, global = true)]
    json: bool,

    /// When to use colour.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    color: Colour,

    /// The project's folder; else it is looked for from here upwards.
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    project: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

fn main() -> ExitCode {
    // The keeper and the hook are this same binary. They are entered before clap, because they start often and must be quick.
    if let Some(done) = tribunal_supervise::enter_keeper() {
        return done;
    }
    let typed: Vec<OsString> = std::env::args_os().collect();
    if let Some(answered) = commands::hook::enter(&typed) {
        return answered;
    }
    let arguments = match Arguments::try_parse_from(&typed) {
        Ok(arguments) => arguments,
        Err(error) => return finish(usage::answer(&error, &typed), usage::wants_json(&typed)),
    };
    // The context cannot be built in a missing directory, and that error already has to respect `--json`.
    let json = arguments.json;
    let context = match Context::new(arguments.project, json, arguments.color) {
        Ok(context) => context,
        Err(complaint) => return complain(&complaint, json),
    };
    // A panic is a bug. Its message was printed by the panic hook; the journal is kept, and the exit code says it was a bug.
    match std::panic::catch_unwind(AssertUnwindSafe(|| commands::run(arguments.command, &context))) {
        Ok(result) => finish(result, json),
        Err(panic) => {
            // One panic comes from a library that cannot start a thread, which is not a bug of ours.
            let known = running::is_about_threads(&*panic);
            complain(&known.unwrap_or_else(|| complaint::bug("something broke that never should")), json)
        }
    }
}

fn finish(result: Result<u8, Complaint>, json: bool) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(complaint) => complain(&complaint, json),
    }
}

/// Prints an error on standard error and, for programs, as JSON on standard output. A closed pipe is not an error: the
/// reader has seen enough.
fn complain(complaint: &Complaint, json: bool) -> ExitCode {
    if complaint.is_closed_pipe() {
        return ExitCode::SUCCESS;
    }
    // If even standard error is gone, the exit code still tells what happened.
    let _ = write!(std::io::stderr(), "{complaint}");
    if json {
        let _ = writeln!(std::io::stdout(), "{}", escaped_json(&complaint.json().to_string()));
    }
    ExitCode::from(complaint.exit)
}
