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

/// Our commands without the hidden ones, which not every shell's generator leaves out.
fn shown() -> Command {
    let all = crate::Arguments::command();
    let below = all.get_subcommands().filter(|below| !below.is_hide_set());
    Command::new("tribunal").version(VERSION).args(all.get_arguments()).subcommands(below)
}
