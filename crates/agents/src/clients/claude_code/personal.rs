//! Selects what is taken from the user's own settings of the client: how it signs in, reaches its provider and
//! chooses a model.
//!
//! Nothing else is taken. A permission or an additional directory in the user's settings would let a fixer out of its
//! workspace. The caller reads the file; it is only filtered here.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Settings that name a program to sign in with, a way to sign in, or models.
const KEPT: &[&str] = &[
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
const NOT_FROM_SETTINGS: &[&str] = &["CLAUDE_CONFIG_DIR", "HOME", "PATH"];

/// The settings that were taken.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Personal {
    /// Variables that the client would set for itself. They may be secrets and therefore belong in an environment,
    /// never in a file.
    pub env: BTreeMap<String, String>,
    pub settings: Map<String, Value>,
}

impl Personal {
    /// Filters the text of the settings file. A file that cannot be read counts as empty.
    pub fn of(text: &str) -> Personal {
        let Ok(Value::Object(all)) = serde_json::from_str(text) else { return Personal::default() };
        let variables = all.get("env").and_then(Value::as_object);
        let env = variables.into_iter().flatten().filter_map(|(name, value)| {
            // Numbers and booleans are legal values here and stand for their text.
            let value = match value {
                Value::String(value) => value.clone(),
                Value::Number(value) => value.to_string(),
                Value::Bool(value) => value.to_string(),
                _ => return None,
            };
            // A name with `=` or a NUL byte would corrupt the environment of the process.
            let usable = !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
            (usable && !NOT_FROM_SETTINGS.contains(&name.as_str())).then(|| (name.clone(), value))
        });
        let env = env.collect();
        let settings = all.into_iter().filter(|(name, _)| KEPT.contains(&name.as_str())).collect();
        Personal { env, settings }
    }

    /// The model that the user chose for their own sessions. The variable takes precedence over the setting, as in
    /// the client itself.
    pub fn model(&self) -> Option<&str> {
        let variable = self.env.get("ANTHROPIC_MODEL").map(String::as_str);
        let setting = self.settings.get("model").and_then(Value::as_str);
        variable.into_iter().chain(setting).find(|model| !model.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_signs_in_is_taken_and_what_permits_is_not() {
        let text = json!({
            "apiKeyHelper": "get-key",
            "model": "opus",
            "env": {
                "ANTHROPIC_BASE_URL": "http://localhost", "ANTHROPIC_LOG": 1, "LIST": ["no"], "PATH": "/theirs", "A=B": "no"
            },
            "permissions": {"allow": ["Edit"], "additionalDirectories": ["/"], "defaultMode": "bypassPermissions"},
            "hooks": {}, "sandbox": {}, "enabledPlugins": {}, "outputStyle": "x", "statusLine": {},
        });
        let personal = Personal::of(&text.to_string());
        assert_eq!(Value::from(personal.settings), json!({"apiKeyHelper": "get-key", "model": "opus"}));
        let env: Vec<_> = personal.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(env, ["ANTHROPIC_BASE_URL=http://localhost", "ANTHROPIC_LOG=1"]);
    }

    #[test]
    fn the_person_s_model_is_the_variable_s_then_the_setting_s() {
        for (text, model) in [
            (r#"{"model": "opus", "env": {"ANTHROPIC_MODEL": "mine"}}"#, Some("mine")),
            (r#"{"model": "opus", "env": {"ANTHROPIC_MODEL": ""}}"#, Some("opus")),
            (r#"{"model": " "}"#, None),
            (r#"{"model": 7}"#, None),
            ("{", None),
            ("[]", None),
            ("", None),
        ] {
            assert_eq!(Personal::of(text).model(), model, "{text}");
        }
    }
}
