//! What a client says of itself when it is asked: its version, and whether somebody is signed in.
//!
//! Pure: whoever asks runs the program and hands in what it printed.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Whether somebody is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignIn {
    In {
        /// By what, in words.
        how: String,
        /// A plan pays: what the client calls cost is what it would have been by the token.
        subscription: bool,
    },
    Out,
    /// It did not say anything that could be understood.
    Unknown,
}

/// What a client answered when it was asked who is signed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusOutput<'a> {
    pub stdout: &'a str,
    pub stderr: &'a str,
}

/// The first thing in it that looks like one: `2.1.325 (Claude Code)`, `codex-cli 0.166.0-alpha.2`.
pub fn read_version(said: &str) -> Option<Version> {
    said.split(|c: char| c.is_whitespace() || c == 'v' || c == '(' || c == '"').find_map(version)
}

fn version(word: &str) -> Option<Version> {
    let mut parts = word.splitn(3, '.');
    let (major, minor, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let patch: &str = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
    Some(Version(major.parse().ok()?, minor.parse().ok()?, patch.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_clients_print_them() {
        for (said, version) in [
            ("2.1.325 (Claude Code)\n", Some(Version(2, 1, 325))),
            ("codex-cli 0.166.0\n", Some(Version(0, 166, 0))),
            ("codex-cli 0.167.0-alpha.3", Some(Version(0, 167, 0))),
            ("WARNING: proceeding\ncodex-cli 0.166.0", Some(Version(0, 166, 0))),
            ("v1.0.102", Some(Version(1, 0, 102))),
            ("1.18", None),
            ("", None),
            ("a.b.c 1..2", None),
        ] {
            assert_eq!(read_version(said), version, "{said}");
        }
        assert!(Version(2, 10, 0) > Version(2, 9, 9));
    }
}
