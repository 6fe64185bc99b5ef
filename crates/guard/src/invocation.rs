//! Finds the program that a call really runs, behind `sudo`, `env`, `xargs` and similar wrappers, and reads its options.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use crate::shell::{ShellWord, parse_assignment};

/// Programs that run another one: their name, the letters of their options that take a value, and the number of operands they
/// take for themselves.
const WRAPPERS: [(&str, &str, usize); 23] = [
    ("sudo", "uCghprtTUDR", 0),
    ("doas", "uC", 0),
    ("env", "uCS", 0),
    ("nohup", "", 0),
    ("nice", "n", 0),
    ("ionice", "cn", 0),
    ("timeout", "ks", 1),
    ("gtimeout", "ks", 1),
    ("stdbuf", "ioe", 0),
    ("time", "fo", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("exec", "a", 0),
    ("setsid", "", 0),
    ("xargs", "nIPdLsaE", 0),
    ("caffeinate", "tw", 0),
    ("unbuffer", "", 0),
    ("busybox", "", 0),
    ("strace", "oePpsS", 0),
    ("taskset", "", 1),
    ("chrt", "", 1),
    ("flock", "wE", 1),
    ("watch", "n", 0),
];
/// The limit on nested wrappers; no sensible command line has more.
const MAX_WRAPPERS: usize = 8;

/// Shells that run the script they are given.
pub(crate) const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ksh", "ash", "fish"];

/// A program by its name without a directory, and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct ProgramInvocation<'c> {
    pub program: String,
    pub args: &'c [ShellWord],
}

impl<'c> ProgramInvocation<'c> {
    /// Looks through wrappers for the program that runs in the end. `None` means that nothing runs, or that there are too many
    /// wrappers to look through.
    pub fn from_words(remaining_words: &'c [ShellWord]) -> Option<ProgramInvocation<'c>> {
        let mut remaining_words = remaining_words;
        for _ in 0..MAX_WRAPPERS {
            let (program_word, args) = remaining_words.split_first()?;
            let program_path = program_word.to_plain_text();
            let program = program_path.rsplit('/').next().unwrap_or_default().to_string();
            let Some((_, valued_options, own_operands)) =
                WRAPPERS.iter().find(|(wrapper_name, ..)| *wrapper_name == program)
            else {
                return Some(ProgramInvocation { program, args });
            };
            // `command -v rm` only asks where the program is.
            if program == "command" && args.first().is_some_and(|argument| argument.0.eq_ignore_ascii_case("-v")) {
                return None;
            }
            remaining_words = skip_options(args, valued_options).get(*own_operands..)?;
            // `env A=b program` sets variables between its options and the program.
            let assignment_count =
                remaining_words.iter().take_while(|argument| parse_assignment(argument).is_some()).count();
            remaining_words = remaining_words.get(assignment_count..)?;
        }
        None
    }

    pub fn parse_options(&self) -> CommandOptions<'c> {
        CommandOptions::parse(self.args)
    }

    /// The script that a shell gets as an argument.
    pub fn inline_script(&self) -> Option<String> {
        if self.program == "eval" {
            return Some(self.args.iter().map(ShellWord::to_plain_text).collect::<Vec<_>>().join(" "));
        }
        if !SHELLS.contains(&self.program.as_str()) && self.program != "su" {
            return None;
        }
        let is_command_flag = |argument: &ShellWord| {
            argument.0.starts_with('-') && !argument.0.starts_with("--") && argument.0.contains('c')
        };
        let flag_index = self.args.iter().position(is_command_flag)?;
        // A `-c` after the name of a script file belongs to that script.
        let earlier_arguments = self.args.get(..flag_index)?;
        if self.program != "su" && earlier_arguments.iter().any(|argument| !argument.0.starts_with(['-', '+'])) {
            return None;
        }
        self.args.get(flag_index + 1).map(ShellWord::to_plain_text)
    }

    /// Whether this is a shell or another interpreter that runs a script from its standard input.
    pub fn reads_script_from_stdin(&self) -> bool {
        let program = self.program.as_str();
        let is_interpreter = ["python", "python3", "perl", "ruby", "node", "php"].contains(&program);
        if !is_interpreter && !SHELLS.contains(&program) {
            return false;
        }
        if self.inline_script().is_some() {
            return false;
        }
        match self.args.first().map(|argument| argument.0.as_str()) {
            None | Some("-" | "/dev/stdin") => true,
            Some(_) if is_interpreter => false,
            // `bash -s -- --yes` reads its input; without such a flag the first operand is a script file.
            Some(_) => {
                let names_stdin =
                    self.args.iter().any(|argument| matches!(argument.0.as_str(), "-s" | "-" | "/dev/stdin"));
                names_stdin || self.args.iter().all(|argument| argument.0.starts_with('-'))
            }
        }
    }
}

/// Skips the leading options of a wrapper, with their values.
fn skip_options<'c>(mut remaining_words: &'c [ShellWord], valued_options: &str) -> &'c [ShellWord] {
    while let Some((first_word, following_words)) = remaining_words.split_first() {
        let word_text = first_word.0.as_str();
        if word_text == "--" {
            return following_words;
        }
        if !word_text.starts_with('-') || word_text.len() < 2 {
            break;
        }
        let mut option_letters = word_text.chars().skip(1);
        // Only a single letter takes the next word; in `-n10` the value is attached.
        let takes_next_word = option_letters.next().is_some_and(|letter| valued_options.contains(letter))
            && option_letters.next().is_none();
        remaining_words = if takes_next_word { following_words.get(1..).unwrap_or_default() } else { following_words };
    }
    remaining_words
}

/// The arguments of a program, sorted into options and operands.
#[derive(Debug, Default)]
pub(crate) struct CommandOptions<'c> {
    /// The letters of all short options.
    pub short_letters: String,
    /// The long options, with their values if they have any: `force`, `output=x`.
    pub long_options: Vec<String>,
    pub operands: Vec<&'c ShellWord>,
}

impl<'c> CommandOptions<'c> {
    pub fn parse(arguments: &'c [ShellWord]) -> CommandOptions<'c> {
        let mut options = CommandOptions::default();
        let mut options_ended = false;
        for argument in arguments {
            match argument.0.strip_prefix('-').filter(|_| !options_ended) {
                // After `--` every argument is an operand, even with a leading dash. A lone `-` is one, too: it means a
                // standard stream.
                Some("-") => options_ended = true,
                Some(option_name) if !option_name.is_empty() => match option_name.strip_prefix('-') {
                    Some(long_name) => options.long_options.push(long_name.to_string()),
                    None => options.short_letters.push_str(option_name),
                },
                _ => options.operands.push(argument),
            }
        }
        options
    }

    /// Whether one of the short letters or long names is given.
    pub fn has_any(&self, short_names: &[char], long_names: &[&str]) -> bool {
        self.short_letters.contains(short_names)
            || self.long_options.iter().any(|given_option| long_names.contains(&given_option.as_str()))
    }

    /// The operands as plain texts, without shell marks.
    pub fn operand_texts(&self) -> Vec<String> {
        self.operands.iter().map(|operand| operand.to_plain_text()).collect()
    }
}

/// Finds the value of an option: `-o FILE`, `-oFILE`, `--output FILE`, `--output=FILE`.
pub(crate) fn find_option_value(arguments: &[ShellWord], short_name: &str, long_name: &str) -> Option<ShellWord> {
    let mut remaining_words = arguments.iter();
    while let Some(argument) = remaining_words.next() {
        let argument_text = argument.0.as_str();
        if argument_text == "--" {
            return None;
        }
        if argument_text == short_name || argument_text == long_name {
            return remaining_words.next().cloned();
        }
        if let Some(option_value) =
            argument_text.strip_prefix(long_name).and_then(|after_name| after_name.strip_prefix('='))
        {
            return Some(ShellWord(option_value.to_string()));
        }
        if let Some(option_value) = argument_text
            .strip_prefix(short_name)
            .filter(|_| !argument_text.starts_with("--") && !short_name.is_empty())
        {
            return Some(ShellWord(option_value.to_string()));
        }
    }
    None
}
