//! Turns errors of the command line into our own form. Parsing the command line itself is left to clap.

use std::{
    ffi::OsString,
    io::{Write, stdout},
};

use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue, Error, ErrorKind},
};

use crate::{
    build,
    complaint::{Complaint, USAGE},
    documents,
};

/// Answers a command line that does not run anything: help, the version, or an error.
pub(crate) fn answer(error: &Error, typed: &[OsString]) -> Result<u8, Complaint> {
    match error.kind() {
        ErrorKind::DisplayVersion if wants_json(typed) => {
            documents::print(&build::facts())?;
            Ok(0)
        }
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            error.print()?;
            stdout().flush()?;
            Ok(0)
        }
        // A user who types no command at all sees which ones there are.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if !wants_json(typed) => {
            error.print()?;
            Ok(USAGE)
        }
        _ => Err(complaint(error, &command(typed))),
    }
}

/// Returns whether the answer goes to a program. This is used only if the command line could not be parsed.
// Behind `--` everything is a file name.
pub(crate) fn wants_json(typed: &[OsString]) -> bool {
    typed.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// The command that was probably meant, for the hint: `tribunal inspect findings`.
fn command(typed: &[OsString]) -> String {
    let all = crate::Arguments::command();
    let mut below = &all;
    let mut name = "tribunal".to_string();
    // Words that are no subcommand, such as values of options, are skipped.
    for word in typed.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(found) = below.find_subcommand(word) {
            below = found;
            name = format!("{name} {word}");
        }
    }
    name
}

/// Builds our error from clap's.
fn complaint(error: &Error, command: &str) -> Complaint {
    let mut complaint = Complaint::usage(what(error));
    let known = texts(error, ContextKind::ValidValue);
    if !known.is_empty() {
        complaint = complaint.why(format!("There are {}.", known.join(", ")));
    }
    // Clap suggests similar names under several kinds.
    for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
        if let [near, ..] = texts(error, kind).as_slice() {
            complaint = complaint.todo(format!("did you mean `{near}`?"));
        }
    }
    if error.kind() == ErrorKind::MissingRequiredArgument {
        let usage = texts(error, ContextKind::Usage).concat();
        complaint = complaint.todo(format!("type: {}", usage.trim_start_matches("Usage:").trim()));
    }
    complaint.todo(format!("see what can be typed: {command} --help"))
}

/// Describes what is wrong, in our words.
fn what(error: &Error) -> String {
    let first = |kind| texts(error, kind).into_iter().next().unwrap_or_default();
    let argument = first(ContextKind::InvalidArg);
    let value = first(ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            format!("there is no command `{}`", first(ContextKind::InvalidSubcommand))
        }
        ErrorKind::UnknownArgument if !argument.starts_with('-') => {
            format!("`{argument}` is one word too many")
        }
        ErrorKind::UnknownArgument => format!("there is no option `{argument}` here"),
        ErrorKind::InvalidValue if value.is_empty() => format!("`{argument}` wants a value"),
        ErrorKind::InvalidValue => format!("`{value}` is no value for `{argument}`"),
        ErrorKind::ValueValidation => {
            let cause =
                std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("`{value}` is no value for `{argument}`{cause}")
        }
        ErrorKind::MissingRequiredArgument => {
            format!("something is missing: {}", texts(error, ContextKind::InvalidArg).join(" "))
        }
        ErrorKind::ArgumentConflict => {
            let others = texts(error, ContextKind::PriorArg);
            match others.as_slice() {
                [] => format!("`{argument}` cannot be used like this"),
                // Clap reports a repeated argument as a conflict with itself.
                [same] if *same == argument => format!("`{argument}` can be given only once"),
                others => format!("`{argument}` cannot be used together with `{}`", others.join("`, `")),
            }
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a command is missing".to_string()
        }
        // Rare errors keep clap's own words.
        _ => {
            let text = error.to_string();
            text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_string()
        }
    }
}

/// The texts that clap attached to an error under one kind.
fn texts(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        Some(ContextValue::StyledStr(text)) => vec![text.to_string()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn said(words: &[&str]) -> String {
        let typed: Vec<OsString> = [&["tribunal"], words].concat().iter().map(OsString::from).collect();
        let error = crate::Arguments::try_parse_from(&typed).unwrap_err();
        match answer(&error, &typed) {
            Err(complaint) => complaint.to_string(),
            Ok(code) => panic!("{words:?}: {code}"),
        }
    }

    #[test]
    fn every_slip_says_what_is_wrong_and_what_to_type() {
        let slips: [&[&str]; 9] = [
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
        let all: Vec<String> =
            slips.iter().map(|words| format!("$ tribunal {}\n{}", words.join(" "), said(words))).collect();
        insta::assert_snapshot!(all.join("\n"), @r"
        $ tribunal reviw plan.md
        [!] there is no command `reviw`
            1. did you mean `review`?
            2. see what can be typed: tribunal --help

        $ tribunal review
        [!] something is missing: <PATHS>...
            1. type: tribunal review <PATHS>...
            2. see what can be typed: tribunal review --help

        $ tribunal review plan.md --teir 2
        [!] there is no option `--teir` here
            1. did you mean `--tier`?
            2. see what can be typed: tribunal review --help

        $ tribunal review plan.md --level
        [!] `--level <LEVEL>` wants a value
            There are minimal, dual, full.
            1. see what can be typed: tribunal review --help

        $ tribunal review plan.md --level huge
        [!] `huge` is no value for `--level <LEVEL>`
            There are minimal, dual, full.
            1. see what can be typed: tribunal review --help

        $ tribunal log --round two
        [!] `two` is no value for `--round <N>`: invalid digit found in string
            1. see what can be typed: tribunal log --help

        $ tribunal log --prompts --sent
        [!] `--prompts` cannot be used together with `--sent`
            1. see what can be typed: tribunal log --help

        $ tribunal status one two
        [!] `two` is one word too many
            1. see what can be typed: tribunal status --help

        $ tribunal inspect --json
        [!] a command is missing
            1. see what can be typed: tribunal inspect --help
        ");
    }
}
