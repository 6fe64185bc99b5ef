//! Turns errors of the command line into our own form. Parsing the command line itself is left to clap.

use std::{
    ffi::OsString,
    io::{Write, stdout},
};

use clap::{
    Command,
    error::{ContextKind, ContextValue, Error, ErrorKind},
};

use crate::{
    build_info,
    messages::{
        help_texts::build_cli_command,
        json_documents,
        user_errors::{EXIT_USAGE, UserError},
    },
    settings::nearest_name,
};

/// Answers a command line that does not run anything: help, the version, or an error.
pub(crate) fn answer_parse_error(parse_error: &Error, typed_arguments: &[OsString]) -> Result<u8, UserError> {
    match parse_error.kind() {
        ErrorKind::DisplayVersion if has_json_flag(typed_arguments) => {
            json_documents::print_document(&build_info::build_facts())?;
            Ok(0)
        }
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            parse_error.print()?;
            stdout().flush()?;
            Ok(0)
        }
        // A user who types no command at all sees which ones there are.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if !has_json_flag(typed_arguments) => {
            parse_error.print()?;
            Ok(EXIT_USAGE)
        }
        _ => {
            let cli_command = build_cli_command();
            Err(to_user_error(parse_error, &TypedCommand::from_arguments(&cli_command, typed_arguments)))
        }
    }
}

/// Returns whether the answer goes to a program. This is used only if the command line could not be parsed.
pub(crate) fn has_json_flag(typed_arguments: &[OsString]) -> bool {
    // Behind `--` everything is a file name.
    typed_arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

/// The command that was probably meant: `tribunal inspect findings`.
struct TypedCommand<'a> {
    command: &'a Command,
    full_name: String,
}

impl TypedCommand<'_> {
    fn from_arguments<'a>(cli_command: &'a Command, typed_arguments: &[OsString]) -> TypedCommand<'a> {
        let mut typed_command = TypedCommand { command: cli_command, full_name: "tribunal".to_string() };
        // Words that are no subcommand, such as values of options and the word `help`, are skipped.
        for argument in typed_arguments.iter().skip(1).filter_map(|argument| argument.to_str()) {
            if let Some(subcommand) = typed_command.command.find_subcommand(argument) {
                typed_command =
                    TypedCommand { command: subcommand, full_name: format!("{} {argument}", typed_command.full_name) };
            }
        }
        typed_command
    }

    /// The subcommand whose name is nearest to a misspelt one.
    fn nearest_subcommand(&self, typed_name: &str) -> Option<&str> {
        let visible_commands = self.command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
        nearest_name(typed_name, &visible_commands.map(Command::get_name).collect::<Vec<_>>())
    }
}

/// Builds our error from clap's.
fn to_user_error(parse_error: &Error, typed_command: &TypedCommand<'_>) -> UserError {
    let command_name = typed_command.full_name.as_str();
    let mut user_error = UserError::usage(describe_parse_error(parse_error, command_name));
    // Clap suggests similar names under several kinds.
    for context_kind in [ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
        if let [suggestion, ..] = context_texts(parse_error, context_kind).as_slice() {
            user_error = user_error.with_step(format!("did you mean `{suggestion}`?"));
        }
    }
    // For commands clap lists the least similar name first, and for `tribunal help COMMAND` it suggests nothing.
    if parse_error.kind() == ErrorKind::InvalidSubcommand && user_error.steps.is_empty() {
        let typed_names = context_texts(parse_error, ContextKind::InvalidSubcommand);
        let suggestion = typed_names.first().and_then(|typed_name| typed_command.nearest_subcommand(typed_name));
        if let Some(suggestion) = suggestion {
            user_error = user_error.with_step(format!("did you mean `{suggestion}`?"));
        }
    }
    let lacks_paths =
        || context_texts(parse_error, ContextKind::InvalidArg).iter().any(|name| name.starts_with("<PATHS>"));
    match parse_error.kind() {
        // The usage line names only files, but a change can be reviewed as well.
        ErrorKind::MissingRequiredArgument if command_name == "tribunal review" && lacks_paths() => {
            user_error = user_error
                .with_step("review files: `tribunal review FILE...`")
                .with_step("review uncommitted changes: `tribunal review --work-tree`")
                .with_step("review a range of commits: `tribunal review --diff RANGE`");
        }
        ErrorKind::MissingRequiredArgument => {
            let usage_line = context_texts(parse_error, ContextKind::Usage).concat();
            user_error = user_error.with_step(format!("usage: `{}`", usage_line.trim_start_matches("Usage:").trim()));
        }
        _ => {}
    }
    let help_topic = match parse_error.kind() {
        ErrorKind::InvalidSubcommand
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "all commands",
        _ => "more information",
    };
    user_error.with_step(format!("for {help_topic}, try `{command_name} --help`"))
}

/// Describes what is wrong, in our words.
fn describe_parse_error(parse_error: &Error, command_name: &str) -> String {
    let first_text = |context_kind| context_texts(parse_error, context_kind).into_iter().next().unwrap_or_default();
    let argument_text = first_text(ContextKind::InvalidArg);
    let invalid_argument = argument_name(&argument_text);
    let invalid_value = first_text(ContextKind::InvalidValue);
    let known_values = match context_texts(parse_error, ContextKind::ValidValue).as_slice() {
        [] => String::new(),
        known_values => format!(" (one of {})", known_values.join(", ")),
    };
    match parse_error.kind() {
        ErrorKind::InvalidSubcommand => {
            format!("unknown command `{}`", first_text(ContextKind::InvalidSubcommand))
        }
        ErrorKind::UnknownArgument if !argument_text.starts_with('-') => {
            format!("unexpected argument `{argument_text}`")
        }
        ErrorKind::UnknownArgument => format!("unknown option `{argument_text}`"),
        ErrorKind::InvalidValue if invalid_value.is_empty() => {
            format!("`{invalid_argument}` requires a value{known_values}")
        }
        ErrorKind::InvalidValue => format!("invalid value `{invalid_value}` for `{invalid_argument}`{known_values}"),
        ErrorKind::ValueValidation => {
            let cause_text =
                std::error::Error::source(parse_error).map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("invalid value `{invalid_value}` for `{invalid_argument}`{cause_text}")
        }
        ErrorKind::MissingRequiredArgument => {
            let missing_arguments = context_texts(parse_error, ContextKind::InvalidArg);
            let argument_names: Vec<&str> = missing_arguments.iter().map(|argument| argument_name(argument)).collect();
            format!("missing argument `{}`", argument_names.join("`, `"))
        }
        ErrorKind::ArgumentConflict => {
            let prior_arguments = context_texts(parse_error, ContextKind::PriorArg);
            match prior_arguments.as_slice() {
                [] => format!("`{invalid_argument}` cannot be used like this"),
                // Clap reports a repeated argument as a conflict with itself.
                [same_argument] if *same_argument == argument_text => {
                    format!("`{invalid_argument}` cannot be used more than once")
                }
                prior_arguments => {
                    let prior_names: Vec<&str> = prior_arguments.iter().map(|prior| argument_name(prior)).collect();
                    format!("`{invalid_argument}` cannot be used with `{}`", prior_names.join("`, `"))
                }
            }
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            format!("`{command_name}` requires a command")
        }
        // Rare errors keep clap's own words.
        _ => {
            let error_text = parse_error.to_string();
            error_text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_string()
        }
    }
}

/// The name of an argument without its value: `--level` for `--level <LEVEL>`, and `<PATHS>` for `<PATHS>...`.
fn argument_name(argument_text: &str) -> &str {
    argument_text.split(' ').next().unwrap_or_default().trim_end_matches("...")
}

/// The texts that clap attached to an error under one kind.
fn context_texts(parse_error: &Error, context_kind: ContextKind) -> Vec<String> {
    match parse_error.get(context_kind) {
        Some(ContextValue::String(context_text)) => vec![context_text.clone()],
        Some(ContextValue::Strings(several_texts)) => several_texts.clone(),
        Some(ContextValue::StyledStr(context_text)) => vec![context_text.to_string()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_text_for(command_words: &[&str]) -> String {
        let typed_arguments: Vec<OsString> =
            [&["tribunal"], command_words].concat().iter().map(OsString::from).collect();
        let parse_error = crate::parse_arguments(&typed_arguments).unwrap_err();
        match answer_parse_error(&parse_error, &typed_arguments) {
            Err(user_error) => user_error.to_string(),
            Ok(exit_code) => panic!("{command_words:?}: {exit_code}"),
        }
    }

    #[test]
    fn every_usage_error_names_the_problem_and_the_next_command() {
        let wrong_commands: [&[&str]; 9] = [
            &["reviw", "plan.md"],
            &["review"],
            &["review", "plan.md", "--teir", "2"],
            &["review", "plan.md", "--level"],
            &["review", "plan.md", "--level", "huge"],
            &["log", "--round", "two"],
            &["log", "--prompts", "--sent"],
            &["status", "one", "two"],
            &["inspect", "--json"],
        ];
        let error_texts: Vec<String> = wrong_commands
            .iter()
            .map(|command_words| format!("$ tribunal {}\n{}", command_words.join(" "), error_text_for(command_words)))
            .collect();
        insta::assert_snapshot!(error_texts.join("\n"), @"
        $ tribunal reviw plan.md
        error: unknown command `reviw`
          1. did you mean `review`?
          2. for all commands, try `tribunal --help`

        $ tribunal review
        error: missing argument `<PATHS>`
          1. review files: `tribunal review FILE...`
          2. review uncommitted changes: `tribunal review --work-tree`
          3. review a range of commits: `tribunal review --diff RANGE`
          4. for more information, try `tribunal review --help`

        $ tribunal review plan.md --teir 2
        error: unknown option `--teir`
          1. did you mean `--tier`?
          2. for more information, try `tribunal review --help`

        $ tribunal review plan.md --level
        error: `--level` requires a value (one of minimal, dual, full)
          help: for more information, try `tribunal review --help`

        $ tribunal review plan.md --level huge
        error: invalid value `huge` for `--level` (one of minimal, dual, full)
          help: for more information, try `tribunal review --help`

        $ tribunal log --round two
        error: invalid value `two` for `--round`: invalid digit found in string
          help: for more information, try `tribunal log --help`

        $ tribunal log --prompts --sent
        error: `--prompts` cannot be used with `--sent`
          help: for more information, try `tribunal log --help`

        $ tribunal status one two
        error: unexpected argument `two`
          help: for more information, try `tribunal status --help`

        $ tribunal inspect --json
        error: `tribunal inspect` requires a command
          help: for all commands, try `tribunal inspect --help`
        ");
    }

    #[test]
    fn help_for_a_misspelt_command_suggests_the_right_one() {
        for (command_words, message, suggestion, help_command) in [
            (&["help", "reviw"][..], "unknown command `reviw`", Some("review"), "tribunal --help"),
            (&["help", "board", "moov"], "unknown command `moov`", Some("move"), "tribunal board --help"),
            (&["board", "moov"], "unknown command `moov`", Some("move"), "tribunal board --help"),
            (&["help", "inspect", "setings"], "unknown command `setings`", Some("settings"), "tribunal inspect --help"),
            // Hidden commands are not suggested.
            (&["help", "play-scripts"], "unknown command `play-scripts`", None, "tribunal --help"),
        ] {
            let error_text = error_text_for(command_words);
            assert!(error_text.starts_with(&format!("error: {message}\n")), "{error_text}");
            assert!(error_text.contains(&format!("try `{help_command}`")), "{error_text}");
            let suggestion_text = suggestion.map(|suggestion| format!("did you mean `{suggestion}`?"));
            assert_eq!(error_text.contains("did you mean"), suggestion.is_some(), "{error_text}");
            assert!(suggestion_text.is_none_or(|text| error_text.contains(&text)), "{error_text}");
        }
    }

    #[test]
    fn help_shows_nested_commands() {
        for command_words in [["help", "board", "move"], ["board", "help", "move"], ["board", "move", "--help"]] {
            let typed_arguments: Vec<OsString> =
                ["tribunal"].iter().chain(&command_words).map(OsString::from).collect();
            let parse_error = crate::parse_arguments(&typed_arguments).unwrap_err();
            assert_eq!(parse_error.kind(), ErrorKind::DisplayHelp, "{command_words:?}");
            assert!(parse_error.to_string().contains("Usage: tribunal board move"), "{parse_error}");
        }
    }

    #[test]
    fn a_review_of_nothing_names_everything_that_can_be_reviewed() {
        let error_text = error_text_for(&["review"]);
        assert!(error_text.starts_with("error: missing argument `<PATHS>`\n"), "{error_text}");
        for command in ["review FILE...", "review --work-tree", "review --diff RANGE", "review --help"] {
            assert!(error_text.contains(&format!("`tribunal {command}`")), "{command}: {error_text}");
        }
        // Another mistake is not answered with this list.
        assert!(!error_text_for(&["review", "plan.md", "--level"]).contains("--work-tree"));
    }
}
