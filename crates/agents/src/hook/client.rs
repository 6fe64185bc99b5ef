//! The clients of the registry that have hooks.

use std::{cmp::Ordering, fmt, str::FromStr};

use crate::clients::{CLIENTS, CodingClient, hooks::ClientHooks};

/// A client whose sessions call our hooks.
#[derive(Clone, Copy)]
pub struct HookClient {
    pub registry_row: &'static CodingClient,
    pub hooks: &'static dyn ClientHooks,
}

impl HookClient {
    pub fn all() -> impl Iterator<Item = HookClient> {
        CLIENTS.iter().filter_map(HookClient::from_client)
    }

    fn from_client(coding_client: &'static CodingClient) -> Option<HookClient> {
        coding_client
            .session_hooks
            .map(|session_hooks| HookClient { registry_row: coding_client, hooks: session_hooks })
    }

    /// The ids of all of them, in order.
    pub fn all_ids() -> Vec<&'static str> {
        HookClient::all().map(HookClient::client_id).collect()
    }

    pub fn client_id(self) -> &'static str {
        self.registry_row.id
    }

    fn registry_position(self) -> Option<usize> {
        CLIENTS.iter().position(|known_client| known_client == self.registry_row)
    }
}

impl fmt::Debug for HookClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.client_id())
    }
}

impl PartialEq for HookClient {
    fn eq(&self, other_client: &HookClient) -> bool {
        self.registry_row == other_client.registry_row
    }
}

impl Eq for HookClient {}

impl PartialOrd for HookClient {
    fn partial_cmp(&self, other_client: &HookClient) -> Option<Ordering> {
        Some(self.cmp(other_client))
    }
}

/// Clients are ordered as in the registry.
impl Ord for HookClient {
    fn cmp(&self, other_client: &HookClient) -> Ordering {
        self.registry_position().cmp(&other_client.registry_position())
    }
}

impl FromStr for HookClient {
    type Err = String;

    fn from_str(client_name: &str) -> Result<HookClient, String> {
        let is_named = |hook_client: &HookClient| {
            hook_client.client_id() == client_name || hook_client.registry_row.aliases.contains(&client_name)
        };
        HookClient::all()
            .find(is_named)
            .ok_or_else(|| format!("unknown client `{client_name}` (known: {})", HookClient::all_ids().join(", ")))
    }
}

/// A client by its id, for tests.
#[cfg(test)]
pub(crate) fn test_hook_client(client_id: &str) -> HookClient {
    client_id.parse().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_id_parses_back_and_an_unknown_one_lists_the_known_ones() {
        for known_client in HookClient::all() {
            assert_eq!(known_client.client_id().parse(), Ok(known_client));
        }
        assert_eq!("claude".parse(), Ok(test_hook_client("claude-code")));
        let parse_error = "unknown-client".parse::<HookClient>().unwrap_err();
        assert_eq!(
            parse_error,
            format!("unknown client `unknown-client` (known: {})", HookClient::all_ids().join(", "))
        );
    }

    #[test]
    fn the_refusal_cap_of_each_client() {
        let refusal_cap = |client_id: &str, variable_value: Option<&str>| {
            let find_variable = |variable_name: &str| {
                variable_value.filter(|_| variable_name == "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").map(String::from)
            };
            test_hook_client(client_id).hooks.refusal_cap(&find_variable)
        };
        let claude_cap = |variable_value| refusal_cap("claude-code", variable_value);
        assert_eq!([claude_cap(None), claude_cap(Some("3")), claude_cap(Some("0"))], [Some(8), Some(3), None]);
        assert_eq!([claude_cap(Some("")), claude_cap(Some("-1")), claude_cap(Some("many"))], [Some(8); 3]);
        for other_client in ["codex", "copilot", "gemini"] {
            assert_eq!(refusal_cap(other_client, Some("0")), Some(8), "{other_client} does not know that variable");
        }
    }
}
