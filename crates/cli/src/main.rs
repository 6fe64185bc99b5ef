//! The `tribunal` binary: arguments in, exit codes out, and the wires between them.
//!
//! One command, one file in `commands`; what people write in `tribunal.yaml` is read in `settings`; every error a person can
//! meet is a [`complaint::Complaint`]. Nothing is decided here and nothing is shown here that `report` could show.

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
    let json = arguments.json;
    let context = match Context::new(arguments.project, json, arguments.color) {
        Ok(context) => context,
        Err(complaint) => return complain(&complaint, json),
    };
    // A panic is a bug; it has been printed. What was recorded is kept, and the exit code is the one for bugs.
    match std::panic::catch_unwind(AssertUnwindSafe(|| commands::run(arguments.command, &context))) {
        Ok(result) => finish(result, json),
        Err(panic) => {
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

/// Says what is wrong on standard error and, for programs, on standard output. A closed pipe is nobody's fault.
fn complain(complaint: &Complaint, json: bool) -> ExitCode {
    if complaint.is_closed_pipe() {
        return ExitCode::SUCCESS;
    }
    let _ = write!(std::io::stderr(), "{complaint}");
    if json {
        let _ = writeln!(std::io::stdout(), "{}", escaped_json(&complaint.json().to_string()));
    }
    ExitCode::from(complaint.exit)
}
