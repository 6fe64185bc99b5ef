//! Reads command lines as far as it takes to see which programs and files they name. Quotes are ignored, so what is quoted counts as well.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::slice;

/// Words before a command that are not the command.
const PREFIXES: [&str; 15] =
    ["!", "if", "then", "else", "elif", "do", "while", "until", "{", "exec", "time", "nohup", "command", "npx", "eval"];
/// Programs that run another one, after options of their own.
const WRAPPERS: [&str; 16] = [
    "env",
    "nice",
    "ionice",
    "timeout",
    "stdbuf",
    "setsid",
    "taskset",
    "chrt",
    "sudo",
    "doas",
    "xvfb-run",
    "unbuffer",
    "exec",
    "time",
    "command",
    "caffeinate",
];
/// Their options that have a value in the next word.
const VALUE_OPTIONS: [&str; 8] = ["-u", "--unset", "-C", "--chdir", "-a", "-g", "-s", "--signal"];
/// The most variants of a command with different values of its variables.
const MAX_VARIANTS: usize = 64;

/// How scripts name the directory in which they are, or that of the project. Longer forms come first.
const OWN_DIRECTORIES: [&str; 12] = [
    "$(cd \"$(dirname \"$0\")\" && pwd)",
    "$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)",
    "$(cd $(dirname $0) && pwd)",
    "$(dirname \"$0\")",
    "$(dirname $0)",
    "$(dirname \"${BASH_SOURCE[0]}\")",
    "${BASH_SOURCE%/*}",
    "${0%/*}",
    "$(git rev-parse --show-toplevel)",
    "$(pwd)",
    "${PWD}",
    "$PWD",
];

/// Joins the words of a quoted value that is assigned: `FLAGS="-q -x"`.
fn join_quoted_values<'l>(words: impl Iterator<Item = &'l str>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut open_quote: Option<char> = None;
    for word in words {
        match (open_quote, joined.last_mut()) {
            (Some(quote), Some(last)) => {
                last.push(' ');
                last.push_str(word);
                open_quote = open_quote.filter(|_| !word.ends_with(quote));
            }
            _ => {
                let value = split_assignment(word).map_or("", |(_, value)| value);
                open_quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
                open_quote = open_quote.filter(|quote| value.len() == 1 || !value.ends_with(*quote));
                joined.push(word.to_string());
            }
        }
    }
    joined
}

/// Splits a line for a shell into simple commands.
pub(super) fn split_shell_line(line: &str) -> Vec<Vec<String>> {
    let split_words = |part: &str| -> Vec<String> {
        // An input redirection stands for itself, even without spaces.
        let spaced_part = part.replace('<', " < ");
        let words = join_quoted_values(spaced_part.split_whitespace());
        words.iter().map(|word| word.trim_matches(['"', '\'']).to_string()).collect()
    };
    let line = OWN_DIRECTORIES.iter().fold(line.replace("\\\n", " "), |line, form| line.replace(form, "."));
    line.split(['\n', ';', '&', '|', '(', ')', '`']).map(split_words).collect()
}

/// Puts the values of variables into simple commands, as far as the line itself says them: `S=check.sh; sh $S`,
/// `for t in ci/*.sh; do sh $t; done`. A command in which a variable has several values is there several times.
pub(super) fn expand_variables(commands: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for words in commands {
        if let [word, name, keyword, listed @ ..] = words.as_slice()
            && (word.as_str(), keyword.as_str()) == ("for", "in")
        {
            values.entry(name).or_default().extend(listed.iter().map(String::as_str));
        }
        for (name, value) in words.iter().filter_map(|word| split_assignment(word)) {
            values.entry(name).or_default().push(value.trim_matches(['"', '\'']));
        }
    }
    commands.iter().flat_map(|words| expand_command(words, &values)).collect()
}

fn expand_command(words: &[String], values: &BTreeMap<&str, Vec<&str>>) -> Vec<Vec<String>> {
    let mut variants: Vec<Vec<String>> = vec![Vec::new()];
    for word in words {
        let choices: Vec<String> = match expand_word(word, values) {
            Some(choices) => choices,
            // What is left of `$(…)` and of unknown variables.
            None => vec![strip_variable(word).unwrap_or_else(|| word.trim_matches('$').to_string())],
        };
        variants = variants
            .into_iter()
            .flat_map(|variant| {
                choices.iter().map(move |choice| [variant.as_slice(), slice::from_ref(choice)].concat())
            })
            .take(MAX_VARIANTS)
            .collect();
    }
    variants
}

/// Replaces the first known variable in a word, as in `./$f` and `${dir}/check.sh`; `None` if there is none.
fn expand_word(word: &str, values: &BTreeMap<&str, Vec<&str>>) -> Option<Vec<String>> {
    let (before, after) = word.split_once('$')?;
    let (name, rest) = match after.strip_prefix('{') {
        Some(braced) => braced.split_once('}')?,
        None => {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            after.split_at(end)
        }
    };
    let known_values = values.get(name).filter(|_| is_variable_name(name))?;
    Some(known_values.iter().map(|value| [before, value, rest].concat()).collect())
}

/// Leaves out a variable that stands for a directory: `$DIR/ci/check.sh`. The rest of the path tells enough.
fn strip_variable(word: &str) -> Option<String> {
    let (name, rest) = word.strip_prefix('$')?.split_once('/')?;
    is_variable_name(name.trim_matches(['{', '}'])).then(|| ["./", rest].concat())
}

fn split_assignment(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(name, _)| is_variable_name(name))
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the program of a simple command with its arguments, without what stands before it.
pub(super) fn skip_prefixes(words: &[String]) -> &[String] {
    let mut rest = words;
    loop {
        let Some(word) = rest.first() else { return rest };
        let name = word.rsplit('/').next().unwrap_or(word);
        if split_assignment(word).is_some() {
            rest = &rest[1..];
        } else if WRAPPERS.contains(&name) {
            rest = skip_options(&rest[1..]);
        } else if PREFIXES.contains(&name) {
            rest = &rest[1..];
        } else {
            return rest;
        }
    }
}

/// Skips options, their values, and numbers such as the duration of `timeout`.
fn skip_options(words: &[String]) -> &[String] {
    let mut rest = words;
    while let Some(word) = rest.first() {
        let has_value = VALUE_OPTIONS.contains(&word.as_str());
        if !word.starts_with('-') && !word.starts_with(|c: char| c.is_ascii_digit()) {
            break;
        }
        rest = &rest[rest.len().min(if has_value { 2 } else { 1 })..];
    }
    rest
}

/// Whether a text has the form of a pattern, in which `*` stands for any characters and `?` for one.
pub(super) fn matches_pattern(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let (mut text_index, mut pattern_index) = (0, 0);
    // Where the last star was, and how much of the text it stands for.
    let mut last_star: Option<(usize, usize)> = None;
    while text_index < text.len() {
        match pattern.get(pattern_index) {
            Some(b'*') => {
                last_star = Some((pattern_index, text_index));
                pattern_index += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[text_index] => {
                text_index += 1;
                pattern_index += 1;
            }
            _ => match last_star {
                Some((star_index, matched_to)) => {
                    last_star = Some((star_index, matched_to + 1));
                    text_index = matched_to + 1;
                    pattern_index = star_index + 1;
                }
                None => return false,
            },
        }
    }
    pattern[pattern_index..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn patterns_match_as_in_shells() {
        for (text, pattern, expected) in [
            ("check.sh", "*.sh", true),
            ("check.sh", "c?eck.*", true),
            ("check.sh", "check.sh*", true),
            ("check.shx", "*.sh", false),
            ("a.b.sh", "a*.sh", true),
            ("", "*", true),
            ("a", "", false),
        ] {
            assert_eq!(matches_pattern(text, pattern), expected, "{text} {pattern}");
        }
    }

    #[test]
    fn commands_with_many_values_are_bounded() {
        let line = format!("for t in {}; do sh $t $t $t; done", "a b c d e f g h i j ".repeat(20));
        let commands = expand_variables(&split_shell_line(&line));
        assert!(commands.len() <= MAX_VARIANTS + 2, "{}", commands.len());
    }
}
