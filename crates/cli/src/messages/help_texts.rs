//! The examples and exit codes of every command: one table that feeds `--help` and the manual pages.
//!
//! `-h` stays short and does not show them. The rows are in [`table`]; what an option does is said where it is defined.

mod table;

use std::{ffi::OsString, fmt::Write};

use clap::{Command, CommandFactory};

use self::table::COMMAND_HELP;
use crate::messages::user_errors::{
    EXIT_ENVIRONMENT, EXIT_HALTED, EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_NEGATIVE, EXIT_USAGE,
};

/// What the help of one command ends with.
#[derive(Debug)]
pub(crate) struct CommandHelp {
    /// The names of the command and its parents without `tribunal`; empty for `tribunal` itself.
    command_path: &'static str,
    pub examples: [CommandExample; 2],
    exit_codes: ExitCodes,
}

/// A command line that can be copied, and what it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandExample {
    pub purpose: &'static str,
    pub command_line: &'static str,
}

/// Which exit codes a command can return. Any command can meet a bug, wrong usage and a failing disk.
#[derive(Clone, Copy, Debug)]
enum ExitCodes {
    /// The command answers or changes something, and nothing in its result is bad.
    Answer,
    /// It can also come to a negative result, which is described here.
    Check(&'static str),
    /// It can find that the environment is not fit for use, which is described here.
    Diagnosis(&'static str),
    /// It works on runs, which can end in every way.
    Run,
    /// It shows how a run ended, and returns that.
    Report,
    /// It stands for all commands.
    Every,
    /// It never fails.
    Hook,
}

/// An exit code and when it is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExitMeaning {
    pub code: u8,
    pub meaning: &'static str,
}

/// Every exit code, with what it means if a command has no words of its own for it.
const EXIT_TABLE: [ExitMeaning; 7] = [
    ExitMeaning { code: 0, meaning: "success" },
    ExitMeaning { code: EXIT_INTERNAL, meaning: "internal error (a bug in Tribunal)" },
    ExitMeaning { code: EXIT_USAGE, meaning: "wrong usage or settings" },
    ExitMeaning { code: EXIT_NEGATIVE, meaning: "waiting for you, or a check failed" },
    ExitMeaning { code: EXIT_HALTED, meaning: "halted by a limit" },
    ExitMeaning { code: EXIT_ENVIRONMENT, meaning: "an agent or the environment failed" },
    ExitMeaning { code: EXIT_INTERRUPTED, meaning: "interrupted; the state is saved" },
];

impl ExitCodes {
    /// Lists the codes in the order of the table.
    fn list_meanings(self) -> Vec<ExitMeaning> {
        let listed_codes: &[u8] = match self {
            ExitCodes::Answer | ExitCodes::Diagnosis(_) => &[0, EXIT_INTERNAL, EXIT_USAGE, EXIT_ENVIRONMENT],
            ExitCodes::Check(_) => &[0, EXIT_INTERNAL, EXIT_USAGE, EXIT_NEGATIVE, EXIT_ENVIRONMENT],
            ExitCodes::Run | ExitCodes::Every => {
                &[0, EXIT_INTERNAL, EXIT_USAGE, EXIT_NEGATIVE, EXIT_HALTED, EXIT_ENVIRONMENT, EXIT_INTERRUPTED]
            }
            ExitCodes::Report => &[0, EXIT_INTERNAL, EXIT_USAGE, EXIT_NEGATIVE, EXIT_HALTED, EXIT_ENVIRONMENT],
            ExitCodes::Hook => &[0],
        };
        let own_meaning = |code: u8| match (self, code) {
            (ExitCodes::Check(meaning), EXIT_NEGATIVE) | (ExitCodes::Diagnosis(meaning), EXIT_ENVIRONMENT) => {
                Some(meaning)
            }
            (ExitCodes::Run, 0) => Some("resolved, or nothing to do"),
            (ExitCodes::Run, EXIT_NEGATIVE) => Some("waiting for you: a decision, or open findings without fixes"),
            (ExitCodes::Report, 0) => Some("everything is done, or the run is still running"),
            (ExitCodes::Report, EXIT_NEGATIVE) => Some("something waits for you, or a story failed"),
            (ExitCodes::Hook, _) => Some("always, so that a session is never blocked by an error"),
            _ => None,
        };
        let listed_rows = EXIT_TABLE.iter().filter(|row| listed_codes.contains(&row.code));
        listed_rows
            .map(|row| ExitMeaning { code: row.code, meaning: own_meaning(row.code).unwrap_or(row.meaning) })
            .collect()
    }
}

impl CommandHelp {
    /// Finds the help of a command by its full name: `tribunal board move`.
    pub fn find_by_name(full_name: &str) -> Option<&'static CommandHelp> {
        let command_path = full_name.strip_prefix("tribunal")?.trim_start();
        COMMAND_HELP.iter().find(|command_help| command_help.command_path == command_path)
    }

    pub fn exit_meanings(&self) -> Vec<ExitMeaning> {
        self.exit_codes.list_meanings()
    }

    /// Renders what `--help` shows below the options. The headings look like those of clap.
    fn render_sections(&self, command: &Command) -> String {
        let heading_style = *command.get_styles().get_header();
        let mut rendered = format!("{heading_style}Examples:{heading_style:#}\n");
        for (index, CommandExample { purpose, command_line }) in self.examples.iter().enumerate() {
            let gap = if index > 0 { "\n" } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(rendered, "{gap}  # {purpose}\n  {command_line}\n");
        }
        let _ = write!(rendered, "\n{heading_style}Exit codes:{heading_style:#}");
        for ExitMeaning { code, meaning } in self.exit_meanings() {
            let _ = write!(rendered, "\n  {code:<3}  {meaning}");
        }
        rendered
    }
}

/// Builds the command line's grammar with examples and exit codes in the help of every command.
pub(crate) fn build_cli_command() -> Command {
    add_sections(crate::CliArguments::command(), "tribunal", &|_| true)
}

/// Builds the grammar for a command line: only the commands whose names were typed have examples and exit codes.
pub(crate) fn build_typed_command(typed_arguments: &[OsString]) -> Command {
    let is_typed = |name: &str| typed_arguments.iter().any(|argument| argument == name);
    add_sections(crate::CliArguments::command(), "tribunal", &is_typed)
}

/// Adds the sections to a command and to those subcommands that want them.
fn add_sections(command: Command, full_name: &str, wants_sections: &dyn Fn(&str) -> bool) -> Command {
    let sections = CommandHelp::find_by_name(full_name).map(|command_help| command_help.render_sections(&command));
    // Hidden commands have no row: they are not for users.
    let command = match sections {
        Some(sections) => command.after_long_help(sections),
        None => command,
    };
    let subcommand_names: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    subcommand_names.iter().filter(|name| wants_sections(name)).fold(command, |command, name| {
        command.mut_subcommand(name, |it| add_sections(it, &format!("{full_name} {name}"), wants_sections))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Calls `visit` for every command that users see, with its full name.
    fn visit_commands(command: &Command, full_name: &str, visit: &mut dyn FnMut(&Command, &str)) {
        visit(command, full_name);
        for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
            visit_commands(subcommand, &format!("{full_name} {}", subcommand.get_name()), visit);
        }
    }

    /// Splits a command line as a shell does, as far as the examples need it. Several commands are separated by pipes.
    fn split_example(command_line: &str) -> Vec<Vec<String>> {
        let (mut commands, mut current_word, mut quote) = (vec![Vec::new()], String::new(), None);
        for character in command_line.chars().chain([' ']) {
            match (character, quote) {
                ('"' | '\'', None) => quote = Some(character),
                (_, Some(open_quote)) if character == open_quote => quote = None,
                (' ', None) if current_word == "|" => {
                    commands.push(Vec::new());
                    current_word.clear();
                }
                (' ', None) if !current_word.is_empty() => {
                    commands.last_mut().unwrap().push(std::mem::take(&mut current_word));
                }
                (' ', None) => {}
                _ => current_word.push(character),
            }
        }
        assert_eq!(quote, None, "{command_line}");
        // What is redirected is no argument.
        for words in &mut commands {
            let redirection = words.iter().position(|word| word == ">" || word == "<").unwrap_or(words.len());
            words.truncate(redirection);
        }
        commands
    }

    #[test]
    fn every_command_has_two_examples_that_parse_and_its_exit_codes() {
        let cli_command = build_cli_command();
        let mut visited_paths = BTreeSet::new();
        visit_commands(&cli_command, "tribunal", &mut |_, full_name| {
            let command_help =
                CommandHelp::find_by_name(full_name).unwrap_or_else(|| panic!("no help texts for `{full_name}`"));
            visited_paths.insert(command_help.command_path);
            for CommandExample { purpose, command_line } in command_help.examples {
                assert!(!purpose.is_empty() && !purpose.ends_with('.'), "{full_name}: {purpose}");
                // A command that is wrapped on a terminal of 80 columns cannot be copied.
                assert!(command_line.len() <= 76, "{full_name}: `{command_line}` is too long");
                let commands = split_example(command_line);
                let own_commands: Vec<&Vec<String>> =
                    commands.iter().filter(|words| words.first().is_some_and(|word| word == "tribunal")).collect();
                assert!(
                    own_commands.iter().any(|words| words.join(" ").starts_with(full_name)),
                    "{full_name}: `{command_line}` is an example of another command"
                );
                for words in own_commands {
                    let parse_result = cli_command.clone().try_get_matches_from(words);
                    assert!(parse_result.is_ok(), "{command_line}: {}", parse_result.unwrap_err());
                }
            }
            let listed_codes: Vec<u8> = command_help.exit_meanings().iter().map(|row| row.code).collect();
            let table_codes: Vec<u8> = EXIT_TABLE.iter().map(|row| row.code).collect();
            assert!(listed_codes.contains(&0) && listed_codes.is_sorted(), "{full_name}: {listed_codes:?}");
            assert!(listed_codes.iter().all(|code| table_codes.contains(code)), "{full_name}: {listed_codes:?}");
        });
        let unused_rows: Vec<&str> = COMMAND_HELP
            .iter()
            .map(|command_help| command_help.command_path)
            .filter(|command_path| !visited_paths.contains(command_path))
            .collect();
        assert_eq!((unused_rows, visited_paths.len()), (Vec::new(), COMMAND_HELP.len()));
    }

    #[test]
    fn runs_end_with_codes_that_are_listed_for_commands_that_work_on_runs() {
        let listed_codes: Vec<u8> = ExitCodes::Run.list_meanings().iter().map(|row| row.code).collect();
        for reason_row in tribunal_engine::reason::REASON_TABLE {
            assert!(listed_codes.contains(&reason_row.exit_code), "{reason_row:?}");
        }
    }

    #[test]
    fn the_long_help_ends_with_the_sections_and_the_short_help_does_not_have_them() {
        let mut cli_command = build_cli_command();
        cli_command.build();
        visit_commands(&cli_command.clone(), "tribunal", &mut |command, full_name| {
            if command.get_name() == "help" || full_name.contains(" help") {
                return;
            }
            let long_help = command.clone().render_long_help().to_string();
            let command_help = CommandHelp::find_by_name(full_name).unwrap();
            for CommandExample { purpose, command_line } in command_help.examples {
                assert!(long_help.contains(&format!("  # {purpose}\n  {command_line}\n")), "{full_name}: {long_help}");
            }
            let last_meaning = command_help.exit_meanings().pop().unwrap();
            let last_line = format!("  {:<3}  {}", last_meaning.code, last_meaning.meaning);
            assert!(long_help.trim_end().ends_with(&last_line), "{full_name}: {long_help}");
            assert!(!command.clone().render_help().to_string().contains("Examples:"), "{full_name}");
        });
    }
}
