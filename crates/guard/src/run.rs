//! Finds the program that a call really runs, behind `sudo`, `env`, `xargs` and similar wrappers, and reads its options.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use crate::shell::{Word, assignment};

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
const MOST: usize = 8;

/// Shells that run the script they are given.
pub(crate) const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ksh", "ash", "fish"];

/// A program by its name without a directory, and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Run<'c> {
    pub program: String,
    pub args: &'c [Word],
}

impl<'c> Run<'c> {
    /// Looks through wrappers for the program that runs in the end. `None` means that nothing runs.
    pub fn of(words: &'c [Word]) -> Option<Run<'c>> {
        let mut words = words;
        for _ in 0..MOST {
            let (first, args) = words.split_first()?;
            let plain = first.plain();
            let program = plain.rsplit('/').next().unwrap_or_default().to_string();
            let Some((_, valued, own)) = WRAPPERS.iter().find(|(name, ..)| *name == program) else {
                return Some(Run { program, args });
            };
            // `command -v rm` only asks where the program is.
            if program == "command" && args.first().is_some_and(|word| word.0.eq_ignore_ascii_case("-v")) {
                return None;
            }
            words = behind_options(args, valued).get(*own..)?;
            // `env A=b program` sets variables between its options and the program.
            let sets = words.iter().take_while(|word| assignment(word).is_some()).count();
            words = words.get(sets..)?;
        }
        None
    }

    pub fn options(&self) -> Options<'c> {
        Options::of(self.args)
    }

    /// The script that a shell gets as an argument.
    pub fn script(&self) -> Option<String> {
        if self.program == "eval" {
            return Some(self.args.iter().map(Word::plain).collect::<Vec<_>>().join(" "));
        }
        if !SHELLS.contains(&self.program.as_str()) && self.program != "su" {
            return None;
        }
        let is_c = |word: &Word| word.0.starts_with('-') && !word.0.starts_with("--") && word.0.contains('c');
        let at = self.args.iter().position(is_c)?;
        // A `-c` after the name of a script file belongs to that script.
        let before = self.args.get(..at)?;
        if self.program != "su" && before.iter().any(|word| !word.0.starts_with(['-', '+'])) {
            return None;
        }
        self.args.get(at + 1).map(Word::plain)
    }

    /// Whether this is a shell or another interpreter that runs a script from its standard input.
    pub fn runs_its_input(&self) -> bool {
        let program = self.program.as_str();
        let interpreter = ["python", "python3", "perl", "ruby", "node", "php"].contains(&program);
        if !interpreter && !SHELLS.contains(&program) {
            return false;
        }
        if self.script().is_some() {
            return false;
        }
        match self.args.first().map(|word| word.0.as_str()) {
            None | Some("-" | "/dev/stdin") => true,
            Some(_) if interpreter => false,
            // `bash -s -- --yes` reads its input; without such a flag the first operand is a script file.
            Some(_) => {
                let reads = self.args.iter().any(|word| matches!(word.0.as_str(), "-s" | "-" | "/dev/stdin"));
                reads || self.args.iter().all(|word| word.0.starts_with('-'))
            }
        }
    }
}

/// Skips the leading options of a wrapper, with their values.
fn behind_options<'c>(mut words: &'c [Word], valued: &str) -> &'c [Word] {
    while let Some((first, rest)) = words.split_first() {
        let text = first.0.as_str();
        if text == "--" {
            return rest;
        }
        if !text.starts_with('-') || text.len() < 2 {
            break;
        }
        let mut letters = text.chars().skip(1);
        // Only a single letter takes the next word; in `-n10` the value is attached.
        let takes = letters.next().is_some_and(|letter| valued.contains(letter)) && letters.next().is_none();
        words = if takes { rest.get(1..).unwrap_or_default() } else { rest };
    }
    words
}

/// The arguments of a program, sorted into options and operands.
#[derive(Debug, Default)]
pub(crate) struct Options<'c> {
    /// The letters of all short options.
    pub short: String,
    /// The long options, with their values if they have any: `force`, `output=x`.
    pub long: Vec<String>,
    pub operands: Vec<&'c Word>,
}

impl<'c> Options<'c> {
    pub fn of(args: &'c [Word]) -> Options<'c> {
        let mut options = Options::default();
        let mut over = false;
        for word in args {
            match word.0.strip_prefix('-').filter(|_| !over) {
                // After `--` every argument is an operand, even with a leading dash. A lone `-` is one, too: it means a
                // standard stream.
                Some("-") => over = true,
                Some(name) if !name.is_empty() => match name.strip_prefix('-') {
                    Some(long) => options.long.push(long.to_string()),
                    None => options.short.push_str(name),
                },
                _ => options.operands.push(word),
            }
        }
        options
    }

    /// Whether one of the short letters or long names is given.
    pub fn has(&self, short: &[char], long: &[&str]) -> bool {
        self.short.contains(short) || self.long.iter().any(|given| long.contains(&given.as_str()))
    }

    /// The operands as plain texts, without shell marks.
    pub fn plain(&self) -> Vec<String> {
        self.operands.iter().map(|word| word.plain()).collect()
    }
}

/// Finds the value of an option: `-o FILE`, `-oFILE`, `--output FILE`, `--output=FILE`.
pub(crate) fn value_of(args: &[Word], short: &str, long: &str) -> Option<Word> {
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let text = word.0.as_str();
        if text == "--" {
            return None;
        }
        if text == short || text == long {
            return words.next().cloned();
        }
        if let Some(value) = text.strip_prefix(long).and_then(|value| value.strip_prefix('=')) {
            return Some(Word(value.to_string()));
        }
        if let Some(value) = text.strip_prefix(short).filter(|_| !text.starts_with("--") && !short.is_empty())
        {
            return Some(Word(value.to_string()));
        }
    }
    None
}
