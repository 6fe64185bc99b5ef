//! What a command line has said about itself so far: the folder it went to and the variables it set.
//!
//! A word may have several readings (`for x in a b`). A variable that nobody set is no reading but a doubt.

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

/// Stands in a reading for what is not known: it may be empty.
const DOUBT: char = '\u{6}';
/// A new folder in a temporary one.
const FRESH: char = '\u{7}';
/// Not known, but not empty: `${X:?}`.
const SOME: char = '\u{8}';
/// More readings than this are a doubt, and more variables are forgotten.
const MOST: usize = 32;
/// No path is longer. `x=$x$x` doubles it each time.
const LONGEST: usize = 4_096;

/// Where a reading leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    At(Path),
    /// Somewhere temporary.
    Fresh,
    /// It begins with a variable that may be empty, or with a home nobody knows.
    Doubtful,
    /// Not known, and not the worst.
    Somewhere,
}

#[derive(Clone, Debug)]
pub(crate) struct Scene<'m> {
    pub map: &'m Map,
    pub cwd: Option<Path>,
    /// The folder it went to is a new temporary one.
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

    /// Of a loop over these words.
    pub fn set_each(&mut self, name: &str, values: &[Word]) {
        let readings: Vec<String> =
            values.iter().take(MOST + 1).flat_map(|value| self.readings(value)).collect();
        self.set_all(name, readings);
    }

    fn set_all(&mut self, name: &str, readings: Vec<String>) {
        if self.vars.len() < MOST || self.vars.contains_key(name) {
            let readings = if readings.len() > MOST { vec![DOUBT.to_string()] } else { readings };
            self.vars.insert(name.to_string(), readings);
        }
    }

    pub fn go(&mut self, to: Option<&Word>) {
        let place = match to {
            Some(word) => self.places(word).into_iter().next(),
            None => self.map.home.clone().map(Place::At),
        };
        self.fresh = place == Some(Place::Fresh);
        self.cwd = match place {
            Some(Place::At(path)) => Some(path),
            _ => None,
        };
    }

    /// In a temporary folder: nobody's work is there.
    pub fn in_scratch(&self) -> bool {
        self.fresh || self.cwd.as_ref().is_some_and(|cwd| self.map.in_scratch(cwd))
    }

    pub fn places(&self, word: &Word) -> Vec<Place> {
        self.readings(word).iter().map(|reading| self.place(reading)).collect()
    }

    pub fn place(&self, reading: &str) -> Place {
        match reading.chars().next() {
            Some(FRESH) if reading.split('/').any(|part| part == "..") => Place::Doubtful,
            Some(FRESH) => Place::Fresh,
            Some(DOUBT) => Place::Doubtful,
            Some(SOME) => Place::Somewhere,
            _ if !reading.starts_with('/') && self.fresh => Place::Fresh,
            _ => Path::of(reading, self.cwd.as_ref()).map_or(Place::Somewhere, Place::At),
        }
    }

    /// All that a word may come to.
    pub fn readings(&self, word: &Word) -> Vec<String> {
        let mut readings = vec![String::new()];
        let mut rest = word.0.as_str();
        if let Some(after) = rest.strip_prefix(TILDE) {
            let named = !after.is_empty() && !after.starts_with('/');
            let home = self.map.home.as_ref().filter(|_| !named);
            readings = vec![home.map_or(DOUBT.to_string(), full)];
            rest = after;
        }
        while let Some((before, after)) = rest.split_once(DOLLAR) {
            readings.iter_mut().for_each(|reading| reading.push_str(before));
            let close = if after.starts_with('(') { ')' } else { '}' };
            let (inner, after) = after.split_once(close).unwrap_or((after, ""));
            let values = self.value(inner, after);
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

    /// Of `{NAME` or `(COMMANDS`.
    fn value(&self, inner: &str, after: &str) -> Vec<String> {
        let doubt = || vec![DOUBT.to_string()];
        let known = |path: Option<&Path>| path.map_or_else(doubt, |path| vec![full(path)]);
        if let Some(commands) = inner.strip_prefix('(') {
            let words: Vec<&str> = commands.split_whitespace().collect();
            return match words.as_slice() {
                ["mktemp", ..] => vec![FRESH.to_string()],
                ["pwd", ..] => known(self.cwd.as_ref()),
                ["git", "rev-parse", "--show-toplevel"] => known(Some(&self.map.root)),
                _ => doubt(),
            };
        }
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
            // Something in the temporary folder, and not all that is in there.
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
