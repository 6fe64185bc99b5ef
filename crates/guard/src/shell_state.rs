//! Tracks what a command line has established so far: the directory it changed to and the variables it set.
//!
//! A word may have several expansions (`for x in a b`). A variable that was never set is ambiguous, because it may be empty.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use crate::{
    paths::{LexicalPath, PathBoundaries},
    shell::{DOLLAR_MARK, ShellWord, TILDE_MARK},
};

/// Marks an unknown value inside an expansion that may be empty.
const AMBIGUOUS_MARK: char = '\u{6}';
/// Marks a new directory inside a temporary one.
const TEMP_DIR_MARK: char = '\u{7}';
/// Marks an unknown value that is certainly not empty: `${X:?}`.
const NONEMPTY_MARK: char = '\u{8}';
/// The limit on expansions per word and on variables: more expansions count as ambiguous, and more variables are not recorded.
const MAX_EXPANSIONS: usize = 32;
/// The limit on the length of an expansion; no path is longer. Without it `x=$x$x` would double the text each time.
const MAX_EXPANSION_BYTES: usize = 4_096;

/// Where an expansion of a word points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WordLocation {
    /// A path that the words alone determine.
    Known(LexicalPath),
    /// Inside a new temporary directory.
    Temporary,
    /// The path begins with a variable that may be empty, or with an unknown home directory.
    Ambiguous,
    /// The path is not known, but it cannot be the root or the home directory by an empty variable.
    Unknown,
}

/// The state of a simulated shell at one point of a command line.
#[derive(Clone, Debug)]
pub(crate) struct ShellState<'m> {
    pub boundaries: &'m PathBoundaries,
    pub working_dir: Option<LexicalPath>,
    /// Whether the working directory is a new temporary one, whose path is not known.
    in_temp_dir: bool,
    variables: BTreeMap<String, Vec<String>>,
}

impl<'m> ShellState<'m> {
    pub fn new(boundaries: &'m PathBoundaries) -> ShellState<'m> {
        ShellState {
            boundaries,
            working_dir: boundaries.working_dir.clone(),
            in_temp_dir: false,
            variables: BTreeMap::new(),
        }
    }

    pub fn set_variable(&mut self, variable_name: &str, value_word: &ShellWord) {
        let expansions = self.expand_word(value_word);
        self.store_expansions(variable_name, expansions);
    }

    /// Sets the variable of a loop: it has the expansions of all words together.
    pub fn set_loop_variable(&mut self, variable_name: &str, value_words: &[ShellWord]) {
        let expansions: Vec<String> =
            value_words.iter().take(MAX_EXPANSIONS + 1).flat_map(|value_word| self.expand_word(value_word)).collect();
        self.store_expansions(variable_name, expansions);
    }

    fn store_expansions(&mut self, variable_name: &str, expansions: Vec<String>) {
        // A known name is always updated; otherwise an outdated value would stay and mislead the check.
        if self.variables.len() < MAX_EXPANSIONS || self.variables.contains_key(variable_name) {
            let expansions =
                if expansions.len() > MAX_EXPANSIONS { vec![AMBIGUOUS_MARK.to_string()] } else { expansions };
            self.variables.insert(variable_name.to_string(), expansions);
        }
    }

    /// Follows a `cd`; without a destination it leads home.
    pub fn change_dir(&mut self, destination: Option<&ShellWord>) {
        let location = match destination {
            Some(destination_word) => self.locate_word(destination_word).into_iter().next(),
            None => self.boundaries.home_dir.clone().map(WordLocation::Known),
        };
        // If the destination has several expansions, only the first one is followed.
        self.in_temp_dir = location == Some(WordLocation::Temporary);
        self.working_dir = match location {
            Some(WordLocation::Known(known_path)) => Some(known_path),
            _ => None,
        };
    }

    /// Whether the working directory is temporary, so that no lasting work is in it.
    pub fn is_in_scratch(&self) -> bool {
        self.in_temp_dir
            || self.working_dir.as_ref().is_some_and(|current_dir| self.boundaries.is_in_scratch(current_dir))
    }

    /// All locations that a word may point to.
    pub fn locate_word(&self, word: &ShellWord) -> Vec<WordLocation> {
        self.expand_word(word).iter().map(|expansion| self.locate_expansion(expansion)).collect()
    }

    /// The location of one expansion.
    pub fn locate_expansion(&self, expansion: &str) -> WordLocation {
        match expansion.chars().next() {
            // `$(mktemp -d)/..` leaves the temporary directory, and where to is not known.
            Some(TEMP_DIR_MARK) if expansion.split('/').any(|part| part == "..") => WordLocation::Ambiguous,
            Some(TEMP_DIR_MARK) => WordLocation::Temporary,
            Some(AMBIGUOUS_MARK) => WordLocation::Ambiguous,
            Some(NONEMPTY_MARK) => WordLocation::Unknown,
            _ if !expansion.starts_with('/') && self.in_temp_dir => WordLocation::Temporary,
            _ => LexicalPath::resolve(expansion, self.working_dir.as_ref())
                .map_or(WordLocation::Unknown, WordLocation::Known),
        }
    }

    /// All texts that a word may expand to.
    pub fn expand_word(&self, word: &ShellWord) -> Vec<String> {
        let mut expansions = vec![String::new()];
        let mut remaining_text = word.0.as_str();
        if let Some(text_after) = remaining_text.strip_prefix(TILDE_MARK) {
            // `~name` is the home directory of another user, which is not known here.
            let is_other_user = !text_after.is_empty() && !text_after.starts_with('/');
            let home_dir = self.boundaries.home_dir.as_ref().filter(|_| !is_other_user);
            expansions = vec![home_dir.map_or(AMBIGUOUS_MARK.to_string(), to_absolute_text)];
            remaining_text = text_after;
        }
        while let Some((literal_text, text_after)) = remaining_text.split_once(DOLLAR_MARK) {
            expansions.iter_mut().for_each(|expansion| expansion.push_str(literal_text));
            // The lexer writes a variable as a mark and `{NAME}`, and a command substitution as a mark and `(COMMANDS)`.
            let closing_char = if text_after.starts_with('(') { ')' } else { '}' };
            let (substitution, text_after) = text_after.split_once(closing_char).unwrap_or((text_after, ""));
            let values = self.expand_substitution(substitution, text_after);
            // Each variable multiplies the expansions. Beyond the limits the word counts as ambiguous instead of using up
            // memory.
            let longest_text = |texts: &[String]| texts.iter().map(String::len).max().unwrap_or(0);
            if expansions.len() * values.len() > MAX_EXPANSIONS
                || longest_text(&expansions) + longest_text(&values) > MAX_EXPANSION_BYTES
            {
                return vec![AMBIGUOUS_MARK.to_string()];
            }
            expansions = expansions
                .iter()
                .flat_map(|expansion| values.iter().map(move |value| expansion.clone() + value))
                .collect();
            remaining_text = text_after;
        }
        expansions.iter_mut().for_each(|expansion| expansion.push_str(remaining_text));
        expansions
    }

    /// Expands the inside of a substitution, `{NAME` or `(COMMANDS`, as far as its result is known without running anything.
    fn expand_substitution(&self, substitution: &str, text_after: &str) -> Vec<String> {
        let ambiguous = || vec![AMBIGUOUS_MARK.to_string()];
        let known_or_ambiguous = |known_path: Option<&LexicalPath>| {
            known_path.map_or_else(ambiguous, |known_path| vec![to_absolute_text(known_path)])
        };
        if let Some(command_text) = substitution.strip_prefix('(') {
            // Only commands whose output is certain are understood.
            let command_words: Vec<&str> = command_text.split_whitespace().collect();
            return match command_words.as_slice() {
                ["mktemp", ..] => vec![TEMP_DIR_MARK.to_string()],
                ["pwd", ..] => known_or_ambiguous(self.working_dir.as_ref()),
                ["git", "rev-parse", "--show-toplevel"] => known_or_ambiguous(Some(&self.boundaries.project_root)),
                _ => ambiguous(),
            };
        }
        // What follows the name is a modifier such as `:-default` or `%suffix`; it makes the value of a variable that the script
        // has set unknown.
        let variable_text = substitution.strip_prefix('{').unwrap_or(substitution);
        let name_end = variable_text
            .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
            .unwrap_or(variable_text.len());
        let (variable_name, modifier) = variable_text.split_at(name_end);
        match variable_name {
            _ if self.variables.contains_key(variable_name) && modifier.is_empty() => {
                self.variables.get(variable_name).cloned().unwrap_or_default()
            }
            _ if modifier.starts_with(":?") || modifier.starts_with('?') => vec![NONEMPTY_MARK.to_string()],
            "HOME" => known_or_ambiguous(self.boundaries.home_dir.as_ref()),
            "PWD" => known_or_ambiguous(self.working_dir.as_ref()),
            "CLAUDE_PROJECT_DIR" => known_or_ambiguous(Some(&self.boundaries.project_root)),
            // This is a path below the temporary directory, and not everything in it.
            "TMPDIR" | "TMP" | "TEMP" if text_after.starts_with('/') && text_after.contains(char::is_alphanumeric) => {
                vec![TEMP_DIR_MARK.to_string()]
            }
            _ => ambiguous(),
        }
    }
}

fn to_absolute_text(lexical_path: &LexicalPath) -> String {
    alloc::format!("/{}", lexical_path.0.join("/"))
}
