//! Tracks what a command line has established so far: the directory it changed to and the variables it set.
//!
//! A word may have several expansions (`for x in a b`). A variable that was never set has no expansion: it is ambiguous,
//! because it may be empty.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use crate::{
    places::{Map, Path},
    shell::{DOLLAR, TILDE, Word},
};

/// Marks an unknown value inside an expansion that may be empty.
const DOUBT: char = '\u{6}';
/// Marks a new directory inside a temporary one.
const FRESH: char = '\u{7}';
/// Marks an unknown value that is certainly not empty: `${X:?}`.
const SOME: char = '\u{8}';
/// The limit on expansions per word and on variables: more expansions count as ambiguous, and more variables are not recorded.
const MOST: usize = 32;
/// The limit on the length of an expansion; no path is longer. Without it `x=$x$x` would double the text each time.
const LONGEST: usize = 4_096;

/// Where an expansion of a word points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A path that the words alone determine.
    At(Path),
    /// Inside a new temporary directory.
    Fresh,
    /// The path begins with a variable that may be empty, or with an unknown home directory.
    Doubtful,
    /// The path is not known, but it cannot be the root or the home directory by an empty variable.
    Somewhere,
}

/// The state of a simulated shell at one point of a command line.
#[derive(Clone, Debug)]
pub(crate) struct Scene<'m> {
    pub map: &'m Map,
    pub cwd: Option<Path>,
    /// Whether the working directory is a new temporary one, whose path is not known.
    fresh: bool,
    vars: BTreeMap<String, Vec<String>>,
}

impl<'m> Scene<'m> {
    pub fn of(map: &'m Map) -> Scene<'m> {
        Scene { map, cwd: map.cwd.clone(), fresh: false, vars: BTreeMap::new() }
    }

    pub fn set(&mut self, name: &str, value: &Word) {
        let readings = self.readings(value);
        self.set_all(name, readings);
    }

    /// Sets the variable of a loop: it has the expansions of all words together.
    pub fn set_each(&mut self, name: &str, values: &[Word]) {
        let readings: Vec<String> =
            values.iter().take(MOST + 1).flat_map(|value| self.readings(value)).collect();
        self.set_all(name, readings);
    }

    fn set_all(&mut self, name: &str, readings: Vec<String>) {
        // A known name is always updated; otherwise an outdated value would stay and mislead the check.
        if self.vars.len() < MOST || self.vars.contains_key(name) {
            let readings = if readings.len() > MOST { vec![DOUBT.to_string()] } else { readings };
            self.vars.insert(name.to_string(), readings);
        }
    }

    /// Follows a `cd`; without a destination it leads home.
    pub fn go(&mut self, to: Option<&Word>) {
        let place = match to {
            Some(word) => self.places(word).into_iter().next(),
            None => self.map.home.clone().map(Place::At),
        };
        // If the destination has several expansions, only the first one is followed.
        self.fresh = place == Some(Place::Fresh);
        self.cwd = match place {
            Some(Place::At(path)) => Some(path),
            _ => None,
        };
    }

    /// Whether the working directory is temporary, so that no lasting work is in it.
    pub fn in_scratch(&self) -> bool {
        self.fresh || self.cwd.as_ref().is_some_and(|cwd| self.map.in_scratch(cwd))
    }

    /// All locations that a word may point to.
    pub fn places(&self, word: &Word) -> Vec<Place> {
        self.readings(word).iter().map(|reading| self.place(reading)).collect()
    }

    /// The location of one expansion.
    pub fn place(&self, reading: &str) -> Place {
        match reading.chars().next() {
            // `$(mktemp -d)/..` leaves the temporary directory, and where to is not known.
            Some(FRESH) if reading.split('/').any(|part| part == "..") => Place::Doubtful,
            Some(FRESH) => Place::Fresh,
            Some(DOUBT) => Place::Doubtful,
            Some(SOME) => Place::Somewhere,
            _ if !reading.starts_with('/') && self.fresh => Place::Fresh,
            _ => Path::of(reading, self.cwd.as_ref()).map_or(Place::Somewhere, Place::At),
        }
    }

    /// All texts that a word may expand to.
    pub fn readings(&self, word: &Word) -> Vec<String> {
        let mut readings = vec![String::new()];
        let mut rest = word.0.as_str();
        if let Some(after) = rest.strip_prefix(TILDE) {
            // `~name` is the home directory of another user, which is not known here.
            let named = !after.is_empty() && !after.starts_with('/');
            let home = self.map.home.as_ref().filter(|_| !named);
            readings = vec![home.map_or(DOUBT.to_string(), full)];
            rest = after;
        }
        while let Some((before, after)) = rest.split_once(DOLLAR) {
            readings.iter_mut().for_each(|reading| reading.push_str(before));
            // The lexer writes a variable as a mark and `{NAME}`, and a command substitution as a mark and `(COMMANDS)`.
            let close = if after.starts_with('(') { ')' } else { '}' };
            let (inner, after) = after.split_once(close).unwrap_or((after, ""));
            let values = self.value(inner, after);
            // Each variable multiplies the expansions. Beyond the limits the word counts as ambiguous instead of using up
            // memory.
            let longest = |all: &[String]| all.iter().map(String::len).max().unwrap_or(0);
            if readings.len() * values.len() > MOST || longest(&readings) + longest(&values) > LONGEST {
                return vec![DOUBT.to_string()];
            }
            readings = readings
                .iter()
                .flat_map(|reading| values.iter().map(move |value| reading.clone() + value))
                .collect();
            rest = after;
        }
        readings.iter_mut().for_each(|reading| reading.push_str(rest));
        readings
    }

    /// Expands the inside of a substitution, `{NAME` or `(COMMANDS`, as far as its result is known without running anything.
    fn value(&self, inner: &str, after: &str) -> Vec<String> {
        let doubt = || vec![DOUBT.to_string()];
        let known = |path: Option<&Path>| path.map_or_else(doubt, |path| vec![full(path)]);
        if let Some(commands) = inner.strip_prefix('(') {
            // Only commands whose output is certain are understood.
            let words: Vec<&str> = commands.split_whitespace().collect();
            return match words.as_slice() {
                ["mktemp", ..] => vec![FRESH.to_string()],
                ["pwd", ..] => known(self.cwd.as_ref()),
                ["git", "rev-parse", "--show-toplevel"] => known(Some(&self.map.root)),
                _ => doubt(),
            };
        }
        // What follows the name is a modifier such as `:-default` or `%suffix`, and it makes the value unknown.
        let inner = inner.strip_prefix('{').unwrap_or(inner);
        let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
        let (name, how) = inner.split_at(end);
        match name {
            _ if self.vars.contains_key(name) && how.is_empty() => {
                self.vars.get(name).cloned().unwrap_or_default()
            }
            _ if how.starts_with(":?") || how.starts_with('?') => vec![SOME.to_string()],
            "HOME" => known(self.map.home.as_ref()),
            "PWD" => known(self.cwd.as_ref()),
            "CLAUDE_PROJECT_DIR" => known(Some(&self.map.root)),
            // This is a path below the temporary directory, and not everything in it.
            "TMPDIR" | "TMP" | "TEMP" if after.starts_with('/') && after.contains(char::is_alphanumeric) => {
                vec![FRESH.to_string()]
            }
            _ => doubt(),
        }
    }
}

fn full(path: &Path) -> String {
    alloc::format!("/{}", path.0.join("/"))
}
