//! What a client says about itself when it is asked: its version, and whether the user is signed in.
//!
//! Nothing here does I/O: the caller runs the program and hands in what it printed.

use std::fmt;

/// The version of a client: major, minor and patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Whether the user is signed in to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignIn {
    In {
        /// How the user is signed in, in words.
        how: String,
        /// Whether a plan pays. The cost that the client reports is then only what the tokens would have cost.
        subscription: bool,
    },
    Out,
    /// The output could not be understood.
    Unknown,
}

/// What a client printed when it was asked who is signed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusOutput<'a> {
    pub stdout: &'a str,
    pub stderr: &'a str,
}

/// Finds the first version in a text: `2.1.325 (Claude Code)`, `codex-cli 0.166.0-alpha.2`.
pub fn read_version(said: &str) -> Option<Version> {
    // A leading `v` counts as a separator, too: `v1.0.102`.
    said.split(|c: char| c.is_whitespace() || c == 'v' || c == '(' || c == '"').find_map(version)
}

fn version(word: &str) -> Option<Version> {
    let mut parts = word.splitn(3, '.');
    let (major, minor, rest) = (parts.next()?, parts.next()?, parts.next()?);
    // A suffix such as `-alpha.2` is ignored: a pre-release has the flags of its version.
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
