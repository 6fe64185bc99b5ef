//! `tribunal man [--dir DIR]`: the manual pages, generated from the same texts as `--help`.

use std::{
    fs, io,
    io::{Write, stdout},
    path::PathBuf,
};

use clap::{Command, CommandFactory};

use crate::{
    context::CommandContext,
    user_errors::{EXIT_ENVIRONMENT, UserError},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tribunal man | man -l -\n  tribunal man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// Write all pages to this directory instead of printing the main page
    #[arg(long)]
    dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &ManArguments, context: &CommandContext) -> Result<u8, UserError> {
    let mut root_command = crate::CliArguments::command();
    // Without building, clap has not propagated global options and display names to subcommands.
    root_command.build();
    let Some(typed_dir) = &arguments.dir else {
        stdout().write_all(&render_page(&root_command)?)?;
        return Ok(0);
    };
    let output_dir = context.resolve_path(typed_dir);
    let write_result = fs::create_dir_all(&output_dir).and_then(|()| write_pages(&root_command, &output_dir));
    let page_count = write_result.map_err(|cause| {
        UserError::new(EXIT_ENVIRONMENT, format!("cannot write the pages to {}: {cause}", typed_dir.display()))
            .with_step("choose a writable directory: `tribunal man --dir DIR`")
    })?;
    writeln!(
        stdout(),
        "wrote {page_count} pages to {}; read one with `man {}/tribunal.1`",
        typed_dir.display(),
        typed_dir.display()
    )?;
    Ok(0)
}

fn render_page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page_bytes = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page_bytes)?;
    Ok(page_bytes)
}

/// Writes the page of a command and of all its visible subcommands, and returns their number.
fn write_pages(command: &Command, output_dir: &std::path::Path) -> io::Result<usize> {
    let page_name = command.get_display_name().unwrap_or_else(|| command.get_name());
    fs::write(output_dir.join(format!("{page_name}.1")), render_page(command)?)?;
    let mut page_count = 1;
    // clap adds a `help` subcommand to every level, which needs no page.
    for subcommand in
        command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set() && subcommand.get_name() != "help")
    {
        page_count += write_pages(subcommand, output_dir)?;
    }
    Ok(page_count)
}
