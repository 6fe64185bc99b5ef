//! The clients that are known, and how to tell from what they print whether they can be used.
//!
//! Pure: whoever asks runs the program and hands in what it said. Whether a client is wanted, and which one is taken, is
//! decided elsewhere.

use std::fmt;

use serde::Deserialize;
use tribunal_core::settings::DriverSpec;

/// A coding client that has a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// As settings call it.
    pub id: &'static str,
    pub name: &'static str,
    /// Looked for on the path, unless settings say otherwise.
    pub program: &'static str,
    /// Below it, flags are missing that its driver cannot do without.
    pub minimum: Version,
    pub vendor: &'static str,
    pub version_args: &'static [&'static str],
    /// Asks it whether somebody is signed in.
    pub sign_in_args: &'static [&'static str],
    /// What to do when it is not there.
    pub install: &'static str,
    /// What to do when nobody is signed in.
    pub sign_in: &'static str,
    /// Variables that sign it in by themselves.
    pub keys: &'static [Variable],
    /// What its driver makes of it: a word, and how.
    pub can: &'static [(&'static str, &'static str)],
}

/// A variable that signs a client in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: &'static str,
    /// A plan pays, not the token.
    pub subscription: bool,
}

/// A client that is known but has no driver yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub id: &'static str,
    pub name: &'static str,
    pub program: &'static str,
}

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

const fn key(name: &'static str, subscription: bool) -> Variable {
    Variable { name, subscription }
}

/// In the order in which they are taken where nothing is set.
pub const CLIENTS: &[Client] = &[
    Client {
        id: "claude-code",
        name: "Claude Code",
        program: "claude",
        minimum: Version(2, 1, 118),
        vendor: "anthropic",
        version_args: &["--version"],
        sign_in_args: &["auth", "status"],
        install: "npm install -g @anthropic-ai/claude-code",
        sign_in: "claude auth login",
        keys: &[
            key("ANTHROPIC_API_KEY", false),
            key("ANTHROPIC_AUTH_TOKEN", false),
            key("CLAUDE_CODE_OAUTH_TOKEN", true),
        ],
        can: &[
            (
                "reviewers read only",
                "no tool that writes or runs anything is offered, beside MCP servers you set",
            ),
            ("fixers write", "files in the private copy; no commands unless allowed"),
            ("answer form", "--json-schema"),
            ("sessions", "--resume, --fork-session"),
            ("sizes", "haiku, sonnet, opus"),
            ("tools", "allow, in its own words"),
            ("servers", "--mcp-config"),
            ("cost", "in dollars, by list price"),
        ],
    },
    Client {
        id: "codex",
        name: "Codex",
        program: "codex",
        minimum: Version(0, 147, 0),
        vendor: "openai",
        version_args: &["--version"],
        sign_in_args: &["login", "status"],
        install: "npm install -g @openai/codex",
        sign_in: "codex login",
        keys: &[key("CODEX_API_KEY", false)],
        can: &[
            ("reviewers read only", "its sandbox, read-only, beside MCP servers you set"),
            ("fixers write", "its sandbox, the private copy only, no network"),
            ("answer form", "--output-schema"),
            ("sessions", "exec resume, exec fork"),
            ("servers", "-c mcp_servers"),
            ("cost", "tokens only"),
        ],
    },
];

/// Known by name, for people who look for them.
pub const WITHOUT_DRIVER: &[Known] = &[
    known("gemini", "Gemini CLI", "gemini"),
    known("opencode", "OpenCode", "opencode"),
    known("copilot", "GitHub Copilot CLI", "copilot"),
    known("cursor", "Cursor Agent", "cursor-agent"),
];

const fn known(id: &'static str, name: &'static str, program: &'static str) -> Known {
    Known { id, name, program }
}

/// The client behind a driver; none: it has none.
pub fn of(driver: &DriverSpec) -> Option<&'static Client> {
    let id = match driver {
        DriverSpec::Command { .. } | DriverSpec::Replay { .. } => return None,
        DriverSpec::ClaudeCode(_) => "claude-code",
        DriverSpec::Codex(_) => "codex",
    };
    CLIENTS.iter().find(|client| client.id == id)
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

/// What a client answered when it was asked who is signed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said<'a> {
    /// None: it was ended, or by a signal.
    pub code: Option<i32>,
    pub stdout: &'a str,
    pub stderr: &'a str,
}

/// Whether somebody is signed in. `set` are the names of those of its [keys](Client::keys) that are set and not empty.
pub fn read_sign_in(client: &Client, said: Said<'_>, set: &[&str]) -> SignIn {
    let by_variable = client.keys.iter().find(|key| set.contains(&key.name));
    // A client's status command may not look at a variable that its work does look at.
    if let Some(key) = by_variable {
        return SignIn::In { how: key.name.to_string(), subscription: key.subscription };
    }
    match client.id {
        "claude-code" => claude(said),
        "codex" => codex(said),
        _ => SignIn::Unknown,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaudeStatus {
    logged_in: bool,
    #[serde(default)]
    auth_method: String,
    #[serde(default)]
    api_provider: String,
    #[serde(default)]
    subscription_type: Option<String>,
}

fn claude(said: Said<'_>) -> SignIn {
    // Whatever is printed around it.
    let object = said
        .stdout
        .find('{')
        .zip(said.stdout.rfind('}'))
        .and_then(|(start, end)| said.stdout.get(start..=end));
    let Some(status) = object.and_then(|text| serde_json::from_str::<ClaudeStatus>(text).ok()) else {
        return SignIn::Unknown;
    };
    if !status.logged_in {
        return SignIn::Out;
    }
    let own = status.api_provider.is_empty() || status.api_provider == "firstParty";
    let plan = status.subscription_type.filter(|plan| !plan.is_empty());
    let subscription =
        own && (plan.is_some() || matches!(status.auth_method.as_str(), "claude.ai" | "oauth_token"));
    let how = match (plan, own) {
        (Some(plan), _) => format!("{}, {plan}", status.auth_method),
        (None, true) => status.auth_method,
        (None, false) => status.api_provider,
    };
    SignIn::In { how, subscription }
}

/// It says so in words, on standard error.
fn codex(said: Said<'_>) -> SignIn {
    let mut lines = said.stderr.lines().chain(said.stdout.lines()).map(str::trim);
    lines
        .find_map(|line| {
            let folded = line.to_lowercase();
            if folded.starts_with("not logged in") {
                Some(SignIn::Out)
            } else if folded.starts_with("logged in using chatgpt") {
                Some(SignIn::In { how: "ChatGPT".to_string(), subscription: true })
            } else if folded.starts_with("logged in") || folded.starts_with("api key configured") {
                // What follows may be a part of the key.
                let how = line.split(" - ").next().unwrap_or(line).to_string();
                Some(SignIn::In { how, subscription: false })
            } else {
                None
            }
        })
        .unwrap_or(SignIn::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(id: &str) -> &'static Client {
        CLIENTS.iter().find(|client| client.id == id).unwrap()
    }

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

    #[test]
    fn claude_says_who_is_signed_in_as_an_object() {
        let read =
            |stdout| read_sign_in(client("claude-code"), Said { code: Some(0), stdout, stderr: "" }, &[]);
        let signed_in = |how: &str, subscription| SignIn::In { how: how.into(), subscription };
        assert_eq!(
            read(r#"{"loggedIn": false, "authMethod": "none", "apiProvider": "firstParty"}"#),
            SignIn::Out
        );
        assert_eq!(
            read(
                r#"{"loggedIn": true, "authMethod": "claude.ai", "apiProvider": "firstParty", "subscriptionType": "max"}"#
            ),
            signed_in("claude.ai, max", true)
        );
        assert_eq!(
            read(r#"{"loggedIn": true, "authMethod": "api_key", "apiProvider": "firstParty"}"#),
            signed_in("api_key", false)
        );
        assert_eq!(
            read(r#"{"loggedIn": true, "authMethod": "third_party", "apiProvider": "bedrock"}"#),
            signed_in("bedrock", false)
        );
        assert_eq!(read("error: unknown command 'auth'"), SignIn::Unknown);
        assert_eq!(read(""), SignIn::Unknown);
    }

    #[test]
    fn codex_says_it_in_words_and_shows_no_key() {
        let read = |stderr| read_sign_in(client("codex"), Said { code: Some(1), stdout: "", stderr }, &[]);
        assert_eq!(read("WARNING: proceeding, even though\nNot logged in\n"), SignIn::Out);
        let SignIn::In { how, subscription } = read("Logged in using an API key - sk-test***1234") else {
            panic!()
        };
        assert_eq!((how.as_str(), subscription), ("Logged in using an API key", false));
        let SignIn::In { how, .. } = read("API key configured - ***\nAuthentication is checked later.")
        else {
            panic!()
        };
        assert_eq!(how, "API key configured");
        assert!(matches!(read("Logged in using ChatGPT"), SignIn::In { subscription: true, .. }));
        assert_eq!(read("Segmentation fault"), SignIn::Unknown);
    }

    #[test]
    fn a_variable_signs_in_whatever_the_client_says() {
        let said = Said { code: Some(1), stdout: "", stderr: "Not logged in" };
        let found = read_sign_in(client("codex"), said, &["CODEX_API_KEY"]);
        assert_eq!(found, SignIn::In { how: "CODEX_API_KEY".into(), subscription: false });
        assert_eq!(read_sign_in(client("codex"), said, &["ANTHROPIC_API_KEY"]), SignIn::Out);
        let found = read_sign_in(client("claude-code"), Said::default(), &["CLAUDE_CODE_OAUTH_TOKEN"]);
        assert_eq!(found, SignIn::In { how: "CLAUDE_CODE_OAUTH_TOKEN".into(), subscription: true });
    }

    #[test]
    fn every_driver_of_a_vendor_has_its_client() {
        for client in CLIENTS {
            let driver: DriverSpec =
                serde_json::from_value(serde_json::json!({"driver": client.id})).unwrap();
            assert_eq!(of(&driver), Some(client));
            assert_eq!(crate::driver::vendor(&driver), client.vendor);
        }
    }
}
