//! `tribunal man [--dir DIR]`: the manual pages, generated from the same texts as `--help`.

use std::{
    fs, io,
    io::{Write, stdout},
    path::{Path, PathBuf},
};

use clap::Command;
use roff::{Roff, bold, roman};

use crate::{
    context::CommandContext,
    messages::{
        help_texts::{CommandExample, CommandHelp, ExitMeaning, build_cli_command},
        user_errors::{EXIT_ENVIRONMENT, UserError},
    },
};

/// The name of the main page.
const PROGRAM_NAME: &str = "tribunal";

#[derive(Debug, clap::Args)]
pub(crate) struct ManArguments {
    /// Write all pages to this directory instead of printing the main page
    #[arg(long)]
    dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &ManArguments, context: &CommandContext) -> Result<u8, UserError> {
    let mut root_command = build_cli_command();
    // Without building, clap has not propagated global options and display names to subcommands.
    root_command.build();
    let Some(typed_dir) = &arguments.dir else {
        stdout().write_all(&render_page(&root_command, PROGRAM_NAME)?)?;
        return Ok(0);
    };
    let output_dir = context.resolve_path(typed_dir);
    let write_result =
        fs::create_dir_all(&output_dir).and_then(|()| write_pages(&root_command, PROGRAM_NAME, &output_dir));
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

/// Renders a page: the sections that clap knows, and between them those of the table of help texts.
fn render_page(command: &Command, full_name: &str) -> io::Result<Vec<u8>> {
    let mut page_bytes = Vec::new();
    let page = clap_mangen::Man::new(command.clone());
    page.render_title(&mut page_bytes)?;
    page.render_name_section(&mut page_bytes)?;
    page.render_synopsis_section(&mut page_bytes)?;
    page.render_description_section(&mut page_bytes)?;
    page.render_options_section(&mut page_bytes)?;
    if visible_subcommands(command).next().is_some() {
        page.render_subcommands_section(&mut page_bytes)?;
    }
    if let Some(command_help) = CommandHelp::find_by_name(full_name) {
        render_help_sections(command_help).to_writer(&mut page_bytes)?;
    }
    if command.get_version().is_some() {
        page.render_version_section(&mut page_bytes)?;
    }
    Ok(page_bytes)
}

/// Renders EXIT STATUS and EXAMPLES, in the order that manual pages have them.
fn render_help_sections(command_help: &CommandHelp) -> Roff {
    let mut sections = Roff::new();
    sections.control("SH", ["EXIT STATUS"]);
    for ExitMeaning { code, meaning } in command_help.exit_meanings() {
        sections.control("TP", []).text([bold(code.to_string())]).text([roman(meaning)]);
    }
    sections.control("SH", ["EXAMPLES"]);
    for CommandExample { purpose, command_line } in command_help.examples {
        sections.control("PP", []).text([roman(format!("{purpose}:"))]);
        // Without filling, the command stays on one line.
        sections.control("RS", ["4"]).control("nf", []).text([bold(command_line)]).control("fi", []).control("RE", []);
    }
    sections
}

/// The subcommands that get a page. Clap adds a `help` subcommand to every level, which needs none.
fn visible_subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set() && subcommand.get_name() != "help")
}

/// Writes the page of a command and of all its visible subcommands, and returns their number.
fn write_pages(command: &Command, full_name: &str, output_dir: &Path) -> io::Result<usize> {
    let page_name = full_name.replace(' ', "-");
    fs::write(output_dir.join(format!("{page_name}.1")), render_page(command, full_name)?)?;
    let mut page_count = 1;
    for subcommand in visible_subcommands(command) {
        page_count += write_pages(subcommand, &format!("{full_name} {}", subcommand.get_name()), output_dir)?;
    }
    Ok(page_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_examples_and_exit_codes() {
        let mut root_command = build_cli_command();
        root_command.build();
        let directory = tempfile::tempdir().unwrap();
        let page_count = write_pages(&root_command, PROGRAM_NAME, directory.path()).unwrap();
        let pages: Vec<PathBuf> =
            fs::read_dir(directory.path()).unwrap().map(|dir_entry| dir_entry.unwrap().path()).collect();
        assert_eq!(pages.len(), page_count);
        for page in pages {
            let page_text = fs::read_to_string(&page).unwrap();
            for heading in [".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", ".SH \"EXIT STATUS\"", ".SH EXAMPLES"] {
                assert!(page_text.contains(heading), "{}: {heading}\n{page_text}", page.display());
            }
            assert!(!page_text.contains("EXTRA"), "{}", page.display());
        }
        let page_text = fs::read_to_string(directory.path().join("tribunal-board-move.1")).unwrap();
        assert!(page_text.contains("tribunal board move 1\\-2\\-log\\-in review"), "{page_text}");
    }
}
