//! `tribunal man [--dir DIR]`: the manual pages, generated from the same texts as `--help`.

use std::{
    fs, io,
    io::{Write, stdout},
    path::PathBuf,
};

use clap::{Command, CommandFactory};

use crate::{
    complaint::{Complaint, ENVIRONMENT},
    context::Context,
};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "For instance:\n  tribunal man | man -l -\n  tribunal man --dir ~/.local/share/man/man1"
)]
pub(crate) struct Arguments {
    /// Write all pages into this folder; else the main page is printed
    #[arg(long)]
    dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let mut command = crate::Arguments::command();
    // Without building, clap has not propagated global options and display names to subcommands.
    command.build();
    let Some(dir) = &arguments.dir else {
        stdout().write_all(&page(&command)?)?;
        return Ok(0);
    };
    let folder = context.path(dir);
    let written = fs::create_dir_all(&folder).and_then(|()| write_all(&command, &folder));
    let written = written.map_err(|cause| {
        Complaint::new(ENVIRONMENT, format!("the pages could not be written into {}: {cause}", dir.display()))
            .todo("name a folder that can be written: tribunal man --dir DIR")
    })?;
    writeln!(
        stdout(),
        "{written} pages are in {}; read one: man {}/tribunal.1",
        dir.display(),
        dir.display()
    )?;
    Ok(0)
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    Ok(text)
}

/// Writes the page of a command and of all its visible subcommands, and returns their number.
fn write_all(command: &Command, folder: &std::path::Path) -> io::Result<usize> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    fs::write(folder.join(format!("{name}.1")), page(command)?)?;
    let mut written = 1;
    // clap adds a `help` subcommand to every level, which needs no page.
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        written += write_all(below, folder)?;
    }
    Ok(written)
}
