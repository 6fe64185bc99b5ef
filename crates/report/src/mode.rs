//! How much of a run is shown.

use std::fmt;

/// How much of a run is shown: from the ending alone to every single effect. The user can change it while a run is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Only warnings and the ending.
    Silent,
    /// One line per stage.
    Summary,
    /// Events as they happen.
    #[default]
    Streaming,
    /// Also what agents report while they work, and every effect with its key.
    Verbose,
}

impl Mode {
    pub const ALL: [Mode; 4] = [Mode::Silent, Mode::Summary, Mode::Streaming, Mode::Verbose];

    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Silent => "silent",
            Mode::Summary => "summary",
            Mode::Streaming => "streaming",
            Mode::Verbose => "verbose",
        }
    }

    /// Parses a mode as settings and arguments spell it.
    pub fn parse(word: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.as_str() == word)
    }

    /// Returns the next, more detailed mode; after the last one the first.
    pub fn next(self) -> Mode {
        // The variants are declared in the order of `ALL`, so the discriminant is the index.
        Mode::ALL[(self as usize + 1) % Mode::ALL.len()]
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_found_by_its_name_and_follows_another() {
        for mode in Mode::ALL {
            assert_eq!(Mode::parse(mode.as_str()), Some(mode));
        }
        assert_eq!(Mode::parse("loud"), None);
        let mut walked = vec![Mode::Silent];
        for _ in 1..4 {
            walked.push(walked[walked.len() - 1].next());
        }
        assert_eq!(walked, Mode::ALL);
        assert_eq!(Mode::Verbose.next(), Mode::Silent);
    }
}
