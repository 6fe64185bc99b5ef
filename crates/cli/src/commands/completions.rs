//! `tribunal completions SHELL`: what a shell needs to complete our commands.

use std::io::{Write, stdout};

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::{build_info::VERSION, messages::user_errors::UserError};

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArguments {
    /// Shell to print completions for
    shell: Shell,
}

pub(crate) fn run(arguments: &CompletionsArguments) -> Result<u8, UserError> {
    let mut completion_script = Vec::new();
    clap_complete::generate(arguments.shell, &mut build_visible_command(), "tribunal", &mut completion_script);
    stdout().write_all(&completion_script)?;
    Ok(0)
}

/// Builds the command tree without its hidden commands, since some shells' generators do not leave those out
/// themselves.
fn build_visible_command() -> Command {
    // `Command` has no way to remove a subcommand, so a new root takes over what is visible.
    let full_command = crate::CliArguments::command();
    let subcommand = full_command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    Command::new("tribunal").version(VERSION).args(full_command.get_arguments()).subcommands(subcommand)
}
