//! `tribunal completions SHELL`: what a shell needs to complete our commands.

use std::io::{Write, stdout};

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::{build::VERSION, complaint::Complaint};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "For instance:\n  tribunal completions bash > ~/.local/share/bash-completion/completions/tribunal"
)]
pub(crate) struct Arguments {
    /// The shell that reads them
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<u8, Complaint> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut shown(), "tribunal", &mut text);
    stdout().write_all(&text)?;
    Ok(0)
}

/// Builds the command tree without its hidden commands, since some shells' generators do not leave those out
/// themselves.
fn shown() -> Command {
    // `Command` has no way to remove a subcommand, so a new root takes over what is visible.
    let all = crate::Arguments::command();
    let below = all.get_subcommands().filter(|below| !below.is_hide_set());
    Command::new("tribunal").version(VERSION).args(all.get_arguments()).subcommands(below)
}
