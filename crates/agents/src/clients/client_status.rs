//! What a client says about itself when it is asked: its version, and whether the user is signed in.
//!
//! Nothing here does I/O: the caller runs the program and hands in what it printed.

use std::fmt;

/// The version of a client: major, minor and patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientVersion(pub u32, pub u32, pub u32);

impl fmt::Display for ClientVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Whether the user is signed in to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignInStatus {
    SignedIn {
        /// How the user is signed in, in words.
        method: String,
        /// Whether a plan pays. The cost that the client reports is then only what the tokens would have cost.
        is_subscription: bool,
    },
    SignedOut,
    /// The output could not be understood.
    Unknown,
}

/// What a client printed when it was asked who is signed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignInOutput<'a> {
    pub stdout: &'a str,
    pub stderr: &'a str,
}

/// Finds the first version in a text: `2.1.325 (Claude Code)`, `codex-cli 0.166.0-alpha.2`.
pub fn find_version(version_output: &str) -> Option<ClientVersion> {
    // A leading `v` counts as a separator, too: `v1.0.102`.
    version_output
        .split(|character: char| character.is_whitespace() || character == 'v' || character == '(' || character == '"')
        .find_map(parse_version)
}

fn parse_version(version_text: &str) -> Option<ClientVersion> {
    let mut version_parts = version_text.splitn(3, '.');
    let (major, minor, patch_text) = (version_parts.next()?, version_parts.next()?, version_parts.next()?);
    // A suffix such as `-alpha.2` is ignored: a pre-release has the flags of its version.
    let patch_digits: &str =
        &patch_text[..patch_text.find(|character: char| !character.is_ascii_digit()).unwrap_or(patch_text.len())];
    Some(ClientVersion(major.parse().ok()?, minor.parse().ok()?, patch_digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_clients_print() {
        for (version_output, expected) in [
            ("2.1.325 (Claude Code)\n", Some(ClientVersion(2, 1, 325))),
            ("codex-cli 0.166.0\n", Some(ClientVersion(0, 166, 0))),
            ("codex-cli 0.167.0-alpha.3", Some(ClientVersion(0, 167, 0))),
            ("WARNING: proceeding\ncodex-cli 0.166.0", Some(ClientVersion(0, 166, 0))),
            ("v1.0.102", Some(ClientVersion(1, 0, 102))),
            ("1.18", None),
            ("", None),
            ("a.b.c 1..2", None),
        ] {
            assert_eq!(find_version(version_output), expected, "{version_output}");
        }
        assert!(ClientVersion(2, 10, 0) > ClientVersion(2, 9, 9));
    }
}
