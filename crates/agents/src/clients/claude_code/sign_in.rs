//! Reads what `claude auth status` prints: a JSON object.

use serde::Deserialize;

use crate::clients::status::{SignIn, StatusOutput};

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

/// Parses the sign-in status.
pub(super) fn read(said: StatusOutput<'_>) -> SignIn {
    // Warnings may be printed before and after the object.
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
    // Over another provider (Bedrock, Vertex) no plan pays, even if the user has one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_says_who_is_signed_in_as_an_object() {
        let read = |stdout| read(StatusOutput { stdout, stderr: "" });
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
}
