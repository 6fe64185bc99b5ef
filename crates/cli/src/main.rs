//! The `tribunal` binary: it turns arguments into exit codes and connects the parts in between.
//!
//! Every command has one file in `commands`; `settings` reads `tribunal.yaml`; every error that the user can meet is a
//! [`messages::user_errors::UserError`]. Nothing is decided here, and nothing is shown here that `report` could show.

mod bmad;
mod build_info;
mod clients;
mod commands;
mod context;
mod demo_project;
mod messages;
mod preflight;
mod runs;
mod settings;
mod terminal;
mod trust;

use std::{ffi::OsString, io::Write, panic::AssertUnwindSafe, process::ExitCode};

use clap::{FromArgMatches, Parser, ValueEnum};
use tribunal_report::escape_json;

use crate::{
    commands::CliCommand,
    context::CommandContext,
    messages::{
        help_texts, usage_errors,
        user_errors::{self, UserError},
    },
    runs::engine,
};

/// Review and fix documents and code with panels of AI agents; every finding has checked evidence.
#[derive(Debug, Parser)]
#[command(name = "tribunal", version = build_info::VERSION, long_version = build_info::long_version(), max_term_width = 100)]
struct CliArguments {
    #[command(subcommand)]
    command: CliCommand,

    /// Print JSON: one document, or one journal event per line for commands that start runs.
    #[arg(long, global = true)]
    json: bool,

    /// When to use colors.
    #[arg(long, global = true, value_enum, default_value_t = ColourChoice::Auto, value_name = "WHEN")]
    color: ColourChoice,

    /// Project directory; by default, Tribunal searches for it from the current directory upwards.
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    project: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ColourChoice {
    Auto,
    Always,
    Never,
}

fn main() -> ExitCode {
    // The keeper and the hook are this same binary. They are entered before clap, because they start often and must be quick.
    if let Some(keeper_exit) = tribunal_supervise::enter_keeper() {
        return keeper_exit;
    }
    let typed_arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(hook_exit) = commands::hook::answer_if_hook(&typed_arguments) {
        return hook_exit;
    }
    let arguments = match parse_arguments(&typed_arguments) {
        Ok(arguments) => arguments,
        Err(parse_error) => {
            return to_exit_code(
                usage_errors::answer_parse_error(&parse_error, &typed_arguments),
                usage_errors::has_json_flag(&typed_arguments),
            );
        }
    };
    // The context cannot be built in a missing directory, and that error already has to respect `--json`.
    let json_output = arguments.json;
    let command_context = match CommandContext::new(arguments.project, json_output, arguments.color) {
        Ok(command_context) => command_context,
        Err(user_error) => return print_error(&user_error, json_output),
    };
    // A panic is a bug. Its message was printed by the panic hook; the journal is kept, and the exit code says it was a bug.
    match std::panic::catch_unwind(AssertUnwindSafe(|| commands::run_command(arguments.command, &command_context))) {
        Ok(result) => {
            let program_name = command_context.program_name();
            to_exit_code(result.map_err(|user_error| user_error.with_program_name(program_name)), json_output)
        }
        Err(panic_payload) => {
            // One panic comes from a library that cannot start a thread, which is not a bug of ours.
            let thread_error = engine::thread_panic_error(&*panic_payload);
            let user_error = thread_error.unwrap_or_else(|| user_errors::internal_error("unexpected internal error"));
            print_error(&user_error.with_program_name(command_context.program_name()), json_output)
        }
    }
}

fn parse_arguments(typed_arguments: &[OsString]) -> Result<CliArguments, clap::Error> {
    let mut cli_command = help_texts::build_typed_command(typed_arguments);
    let mut matches = cli_command.try_get_matches_from_mut(typed_arguments)?;
    CliArguments::from_arg_matches_mut(&mut matches).map_err(|parse_error| parse_error.format(&mut cli_command))
}

fn to_exit_code(command_result: Result<u8, UserError>, json_output: bool) -> ExitCode {
    match command_result {
        Ok(exit_code) => ExitCode::from(exit_code),
        Err(user_error) => print_error(&user_error, json_output),
    }
}

/// Prints an error on standard error and, for programs, as JSON on standard output. A closed pipe is not an error: the
/// reader has seen enough.
fn print_error(user_error: &UserError, json_output: bool) -> ExitCode {
    if user_error.is_closed_pipe() {
        return ExitCode::SUCCESS;
    }
    // If even standard error is gone, the exit code still tells what happened.
    let _ = write!(std::io::stderr(), "{}", context::stderr_screen().wrap_block(&user_error.to_string()));
    if json_output {
        let _ = writeln!(std::io::stdout(), "{}", escape_json(&user_error.to_json().to_string()));
    }
    ExitCode::from(user_error.exit_code)
}
