//! Reads what `claude auth status` prints: a JSON object.

use crate::clients::client_status::{SignInOutput, SignInStatus};
use tribunal_json::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaudeAuthStatus {
    logged_in: bool,
    #[serde(default)]
    auth_method: String,
    #[serde(default)]
    api_provider: String,
    #[serde(default)]
    subscription_type: Option<String>,
}

/// Parses the sign-in status.
pub(super) fn parse_sign_in(status_output: SignInOutput<'_>) -> SignInStatus {
    // Warnings may be printed before and after the object.
    let status_json = status_output
        .stdout
        .find('{')
        .zip(status_output.stdout.rfind('}'))
        .and_then(|(object_start, object_end)| status_output.stdout.get(object_start..=object_end));
    let Some(auth_status) = status_json.and_then(|json_text| serde_json::from_str::<ClaudeAuthStatus>(json_text).ok())
    else {
        return SignInStatus::Unknown;
    };
    if !auth_status.logged_in {
        return SignInStatus::SignedOut;
    }
    // Over another provider (Bedrock, Vertex) no plan pays, even if the user has one.
    let is_first_party = auth_status.api_provider.is_empty() || auth_status.api_provider == "firstParty";
    let plan_name = auth_status.subscription_type.filter(|plan_name| !plan_name.is_empty());
    let is_subscription = is_first_party
        && (plan_name.is_some() || matches!(auth_status.auth_method.as_str(), "claude.ai" | "oauth_token"));
    let method = match (plan_name, is_first_party) {
        (Some(plan_name), _) => format!("{}, {plan_name}", auth_status.auth_method),
        (None, true) => auth_status.auth_method,
        (None, false) => auth_status.api_provider,
    };
    SignInStatus::SignedIn { method, is_subscription }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_in_status_is_read_from_the_printed_object() {
        let parse_stdout = |stdout| parse_sign_in(SignInOutput { stdout, stderr: "" });
        let signed_in =
            |method: &str, is_subscription| SignInStatus::SignedIn { method: method.into(), is_subscription };
        assert_eq!(
            parse_stdout(r#"{"loggedIn": false, "authMethod": "none", "apiProvider": "firstParty"}"#),
            SignInStatus::SignedOut
        );
        assert_eq!(
            parse_stdout(
                r#"{"loggedIn": true, "authMethod": "claude.ai", "apiProvider": "firstParty", "subscriptionType": "max"}"#
            ),
            signed_in("claude.ai, max", true)
        );
        assert_eq!(
            parse_stdout(r#"{"loggedIn": true, "authMethod": "api_key", "apiProvider": "firstParty"}"#),
            signed_in("api_key", false)
        );
        assert_eq!(
            parse_stdout(r#"{"loggedIn": true, "authMethod": "third_party", "apiProvider": "bedrock"}"#),
            signed_in("bedrock", false)
        );
        assert_eq!(parse_stdout("error: unknown command 'auth'"), SignInStatus::Unknown);
        assert_eq!(parse_stdout(""), SignInStatus::Unknown);
    }
}
