//! How much of a run is shown.

use std::fmt;

/// From nothing but the ending to every single effect. Can be changed while a run is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Warnings and the ending.
    Silent,
    /// One line a stage.
    Summary,
    /// What happens, as it happens.
    #[default]
    Streaming,
    /// Also what agents say they are doing, and every effect by its key.
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

    /// As settings and arguments spell it.
    pub fn parse(word: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.as_str() == word)
    }

    /// The one after it, and after the last the first.
    pub fn next(self) -> Mode {
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
