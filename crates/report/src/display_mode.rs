//! How much of a run is shown.

use std::fmt;

/// How much of a run is shown: from the ending alone to every single effect. The user can change it while a run is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DisplayMode {
    /// Only warnings, waits for usage limits and the ending.
    Silent,
    /// One line per stage.
    Summary,
    /// Events as they happen.
    #[default]
    Streaming,
    /// Also every effect with its key. Beside the live view, what agents report while they work gets lines only in this mode.
    Verbose,
}

impl DisplayMode {
    pub const ALL: [DisplayMode; 4] =
        [DisplayMode::Silent, DisplayMode::Summary, DisplayMode::Streaming, DisplayMode::Verbose];

    pub fn as_str(self) -> &'static str {
        match self {
            DisplayMode::Silent => "silent",
            DisplayMode::Summary => "summary",
            DisplayMode::Streaming => "streaming",
            DisplayMode::Verbose => "verbose",
        }
    }

    /// Parses a mode as settings and arguments spell it.
    pub fn parse_name(mode_name: &str) -> Option<DisplayMode> {
        DisplayMode::ALL.into_iter().find(|mode| mode.as_str() == mode_name)
    }

    /// Returns the next, more detailed mode; after the last one the first.
    pub fn next_mode(self) -> DisplayMode {
        // The variants are declared in the order of `ALL`, so the discriminant is the index.
        DisplayMode::ALL[(self as usize + 1) % DisplayMode::ALL.len()]
    }
}

impl fmt::Display for DisplayMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_found_by_its_name_and_follows_another() {
        for mode in DisplayMode::ALL {
            assert_eq!(DisplayMode::parse_name(mode.as_str()), Some(mode));
        }
        assert_eq!(DisplayMode::parse_name("loud"), None);
        let mut visited_modes = vec![DisplayMode::Silent];
        for _ in 1..4 {
            visited_modes.push(visited_modes[visited_modes.len() - 1].next_mode());
        }
        assert_eq!(visited_modes, DisplayMode::ALL);
        assert_eq!(DisplayMode::Verbose.next_mode(), DisplayMode::Silent);
    }
}
