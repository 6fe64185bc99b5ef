//! The clients of the registry that have hooks.

use std::{cmp::Ordering, fmt, str::FromStr};

use crate::clients::{CLIENTS, Client, hooks::ClientHooks};

/// A client whose sessions call our hooks.
#[derive(Clone, Copy)]
pub struct HookClient {
    pub client: &'static Client,
    pub hooks: &'static dyn ClientHooks,
}

impl HookClient {
    pub fn all() -> impl Iterator<Item = HookClient> {
        CLIENTS.iter().filter_map(HookClient::of)
    }

    fn of(client: &'static Client) -> Option<HookClient> {
        client.hooks.map(|hooks| HookClient { client, hooks })
    }

    /// The ids of all of them, in order.
    pub fn words() -> Vec<&'static str> {
        HookClient::all().map(HookClient::word).collect()
    }

    pub fn word(self) -> &'static str {
        self.client.id
    }

    fn position(self) -> Option<usize> {
        CLIENTS.iter().position(|client| client == self.client)
    }
}

impl fmt::Debug for HookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl PartialEq for HookClient {
    fn eq(&self, other: &HookClient) -> bool {
        self.client == other.client
    }
}

impl Eq for HookClient {}

impl PartialOrd for HookClient {
    fn partial_cmp(&self, other: &HookClient) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Clients are ordered as in the registry.
impl Ord for HookClient {
    fn cmp(&self, other: &HookClient) -> Ordering {
        self.position().cmp(&other.position())
    }
}

impl FromStr for HookClient {
    type Err = String;

    fn from_str(word: &str) -> Result<HookClient, String> {
        let means = |client: &HookClient| client.word() == word || client.client.aliases.contains(&word);
        HookClient::all()
            .find(means)
            .ok_or_else(|| format!("there is no client `{word}`, only {}", HookClient::words().join(", ")))
    }
}

/// A client by its id, for tests.
#[cfg(test)]
pub(crate) fn hook_client(id: &str) -> HookClient {
    id.parse().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_understood_again_and_another_is_named_with_those_that_are() {
        for client in HookClient::all() {
            assert_eq!(client.word().parse(), Ok(client));
        }
        assert_eq!("claude".parse(), Ok(hook_client("claude-code")));
        let client = "unknown-client".parse::<HookClient>().unwrap_err();
        assert_eq!(
            client,
            format!("there is no client `unknown-client`, only {}", HookClient::words().join(", "))
        );
    }

    #[test]
    fn a_client_is_patient_for_so_long() {
        let cap = |id: &str, env: Option<&str>| {
            let cap =
                |name: &str| env.filter(|_| name == "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").map(String::from);
            hook_client(id).hooks.refusal_cap(&cap)
        };
        let claude = |env| cap("claude-code", env);
        assert_eq!([claude(None), claude(Some("3")), claude(Some("0"))], [Some(8), Some(3), None]);
        assert_eq!([claude(Some("")), claude(Some("-1")), claude(Some("many"))], [Some(8); 3]);
        for other in ["codex", "copilot", "gemini"] {
            assert_eq!(cap(other, Some("0")), Some(8), "{other} does not know that variable");
        }
    }
}
