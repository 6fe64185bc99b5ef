//! Selects what is taken from the user's own settings of the client: its variables, and how it signs in, reaches its
//! provider and chooses a model.
//!
//! No other setting is taken. A permission or an additional directory in the user's settings would let a fixer out of
//! its workspace. The caller reads the file; it is only filtered here.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Settings that name a program to sign in with, a way to sign in, or models.
const INHERITED_SETTINGS: &[&str] = &[
    "apiKeyHelper",
    "availableModels",
    "awsAuthRefresh",
    "awsCredentialExport",
    "forceLoginGatewayUrl",
    "forceLoginMethod",
    "forceLoginOrgUUID",
    "gcpAuthRefresh",
    "model",
    "modelOverrides",
    "proxyAuthHelper",
];

/// Variables by which the program and its files are found before any settings are read.
const EXCLUDED_VARIABLES: &[&str] = &["CLAUDE_CONFIG_DIR", "HOME", "PATH"];

/// The settings that were taken.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ClaudeUserSettings {
    /// Variables that the client would set for itself. They may be secrets and therefore belong in an environment,
    /// never in a file.
    pub env: BTreeMap<String, String>,
    pub settings: Map<String, Value>,
}

impl ClaudeUserSettings {
    /// Filters the text of the settings file. A text that is no JSON object counts as empty.
    pub fn from_json(settings_json: &str) -> ClaudeUserSettings {
        let Ok(Value::Object(all_settings)) = serde_json::from_str(settings_json) else {
            return ClaudeUserSettings::default();
        };
        let variables = all_settings.get("env").and_then(Value::as_object);
        let environment = variables.into_iter().flatten().filter_map(|(variable_name, variable_value)| {
            // Numbers and booleans are legal values here and stand for their text.
            let value_text = match variable_value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => return None,
            };
            // A name with `=` or a NUL byte would corrupt the environment of the process.
            let is_usable =
                !variable_name.is_empty() && !variable_name.contains(['=', '\0']) && !value_text.contains('\0');
            (is_usable && !EXCLUDED_VARIABLES.contains(&variable_name.as_str()))
                .then(|| (variable_name.clone(), value_text))
        });
        let environment = environment.collect();
        let settings = all_settings
            .into_iter()
            .filter(|(setting_name, _)| INHERITED_SETTINGS.contains(&setting_name.as_str()))
            .collect();
        ClaudeUserSettings { env: environment, settings }
    }

    /// The model that the user chose for their own sessions. The variable takes precedence over the setting, as in
    /// the client itself.
    pub fn model(&self) -> Option<&str> {
        let model_variable = self.env.get("ANTHROPIC_MODEL").map(String::as_str);
        let model_setting = self.settings.get("model").and_then(Value::as_str);
        model_variable.into_iter().chain(model_setting).find(|model_name| !model_name.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sign_in_settings_are_taken_and_permissions_are_not() {
        let settings_json = json!({
            "apiKeyHelper": "get-key",
            "model": "opus",
            "env": {
                "ANTHROPIC_BASE_URL": "http://localhost", "ANTHROPIC_LOG": 1, "LIST": ["no"], "PATH": "/theirs", "A=B": "no"
            },
            "permissions": {"allow": ["Edit"], "additionalDirectories": ["/"], "defaultMode": "bypassPermissions"},
            "hooks": {}, "sandbox": {}, "enabledPlugins": {}, "outputStyle": "x", "statusLine": {},
        });
        let user_settings = ClaudeUserSettings::from_json(&settings_json.to_string());
        assert_eq!(Value::from(user_settings.settings), json!({"apiKeyHelper": "get-key", "model": "opus"}));
        let variables: Vec<_> = user_settings
            .env
            .iter()
            .map(|(variable_name, variable_value)| format!("{variable_name}={variable_value}"))
            .collect();
        assert_eq!(variables, ["ANTHROPIC_BASE_URL=http://localhost", "ANTHROPIC_LOG=1"]);
    }

    #[test]
    fn the_model_variable_takes_precedence_over_the_model_setting() {
        for (settings_json, expected_model) in [
            (r#"{"model": "opus", "env": {"ANTHROPIC_MODEL": "mine"}}"#, Some("mine")),
            (r#"{"model": "opus", "env": {"ANTHROPIC_MODEL": ""}}"#, Some("opus")),
            (r#"{"model": " "}"#, None),
            (r#"{"model": 7}"#, None),
            ("{", None),
            ("[]", None),
            ("", None),
        ] {
            assert_eq!(ClaudeUserSettings::from_json(settings_json).model(), expected_model, "{settings_json}");
        }
    }
}
