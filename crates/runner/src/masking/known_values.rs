//! Secrets whose values are known: those of environment variables and of the settings of clients.

use std::path::Path;

use serde_json::Value;

use super::{MAX_KNOWN_VALUE, MIN_KNOWN_VALUE, Masker, assignments};

/// Files in the home directory in which clients keep credentials or the variables that they set.
const CLIENT_FILES: [&str; 9] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".gemini/.env",
    ".local/share/opencode/auth.json",
    ".config/opencode/opencode.json",
];
/// A longer file is not read: no settings are this long.
const MAX_CLIENT_FILE_BYTES: u64 = 1 << 20;

/// Reads the values in the settings of clients, with the names they stand under. A file that cannot be read has none.
pub fn read_client_values(home_dir: &Path) -> Vec<(String, String)> {
    let mut named_values = Vec::new();
    for file_name in CLIENT_FILES {
        let file_path = home_dir.join(file_name);
        if !std::fs::metadata(&file_path).is_ok_and(|file| file.is_file() && file.len() <= MAX_CLIENT_FILE_BYTES) {
            continue;
        }
        let file_text = std::fs::read_to_string(&file_path).unwrap_or_default();
        match serde_json::from_str(&file_text) {
            Ok(json_value) => collect_json_values("", &json_value, &mut named_values),
            Err(_) => named_values.extend(file_text.lines().flat_map(read_assigned_values)),
        }
    }
    named_values
}

fn collect_json_values(name: &str, json_value: &Value, named_values: &mut Vec<(String, String)>) {
    match json_value {
        Value::String(text) => named_values.push((to_variable_name(name), text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect_json_values(name, item, named_values)),
        Value::Object(fields) => {
            fields.iter().for_each(|(field_name, field)| collect_json_values(field_name, field, named_values));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Reads the values of a line such as `KEY = "value"`, `KEY=value` or `env = { A = "x", B = "y" }`.
fn read_assigned_values(line: &str) -> Vec<(String, String)> {
    let assignments = line.split(['{', ',', '}']).filter_map(|part| {
        let (name, value) = part.split_once('=')?;
        let (name, value) = (name.trim().trim_matches('"'), value.trim().trim_matches(['"', '\'']));
        (!name.is_empty() && !value.is_empty()).then(|| (to_variable_name(name), value.to_string()))
    });
    assignments.collect()
}

/// Turns `accessToken` into `access_Token`, so that its words can be told apart.
fn to_variable_name(name: &str) -> String {
    let mut variable_name = String::with_capacity(name.len() + 4);
    let mut was_lower_case = false;
    for character in name.chars() {
        if was_lower_case && character.is_ascii_uppercase() {
            variable_name.push('_');
        }
        was_lower_case = character.is_ascii_lowercase();
        variable_name.push(if character == '-' { '_' } else { character });
    }
    variable_name
}

/// The variables that hold secrets, by their names or by the shapes of their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SecretVariables {
    /// All of them.
    pub names: Vec<String>,
    /// Those with the password of a database or a message queue. No client needs them to reach its model.
    pub service_names: Vec<String>,
}

/// Finds the variables that hold secrets.
pub(crate) fn find_secret_variables(
    masker: &Masker,
    environment: impl IntoIterator<Item = (String, String)>,
) -> SecretVariables {
    let mut secret_variables = SecretVariables::default();
    for (variable, value) in environment {
        let is_web_address = ["http://", "https://", "socks"].iter().any(|scheme| value.starts_with(scheme));
        if find_url_password(&value).is_some() && !is_web_address {
            secret_variables.service_names.push(variable.clone());
        }
        if is_secret_variable(&variable) || masker.mask(&value) != value {
            secret_variables.names.push(variable);
        }
    }
    secret_variables
}

/// Finds the password in a value such as `postgres://user:password@host/name`.
fn find_url_password(value: &str) -> Option<&str> {
    let (scheme, address) = value.split_once("://")?;
    let authority = address.split(['/', '?', '#']).next()?;
    let (user_part, _) = authority.rsplit_once('@')?;
    let (_, password) = user_part.split_once(':')?;
    let is_scheme =
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (is_scheme && !password.is_empty()).then_some(password)
}

/// Returns the values to search for, each without a line end.
pub(super) fn known_patterns<'a>(environment: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut patterns = Vec::new();
    for (variable, value) in environment {
        let value = value.trim();
        // The password of a URL is a secret under any name of the variable, also without the URL around it.
        if let Some(password) = find_url_password(value).filter(|password| password.len() >= MIN_KNOWN_VALUE) {
            patterns.push(password.to_owned());
        }
        // Short or trivial values would mask ordinary text everywhere.
        if !is_secret_variable(variable)
            || value.len() < MIN_KNOWN_VALUE
            || assignments::is_number(value)
            || assignments::is_path(value)
            || ["true", "false"].iter().any(|literal| value.eq_ignore_ascii_case(literal))
        {
            continue;
        }
        if value.contains('\n') {
            // A value of several lines is printed line by line. Short lines say too little, and the marker lines of a key are
            // public.
            let lines = value.lines().map(str::trim);
            let telling_lines =
                lines.filter(|value_line| value_line.len() >= 2 * MIN_KNOWN_VALUE && !value_line.starts_with("-----"));
            patterns.extend(telling_lines.map(str::to_owned));
        } else {
            patterns.push(value.to_owned());
        }
        // In JSON, such as the output of a client, the value is escaped.
        let escaped = escape_json(value);
        if escaped != value {
            patterns.push(escaped);
        }
    }
    let mut pieces: Vec<String> = patterns.iter().flat_map(|pattern| split_known_value(pattern)).collect();
    pieces.sort();
    pieces.dedup();
    pieces
}

fn is_secret_variable(variable: &str) -> bool {
    const SECRET_WORDS: [&str; 10] =
        ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "CREDENTIALS", "APIKEY", "PASSPHRASE"];
    variable
        .split('_')
        .any(|name_part| SECRET_WORDS.iter().any(|secret_word| name_part.eq_ignore_ascii_case(secret_word)))
}

fn escape_json(value: &str) -> String {
    let mut escaped_text = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '"' | '\\' => escaped_text.extend(['\\', character]),
            '\n' => escaped_text.push_str("\\n"),
            '\r' => escaped_text.push_str("\\r"),
            '\t' => escaped_text.push_str("\\t"),
            _ => escaped_text.push(character),
        }
    }
    escaped_text
}

/// Splits a value into pieces of limited length; a short remainder stays with the piece before it.
fn split_known_value(value: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut remaining_value = value;
    while remaining_value.len() > MAX_KNOWN_VALUE + MIN_KNOWN_VALUE {
        let (piece, after_piece) = remaining_value.split_at(remaining_value.floor_char_boundary(MAX_KNOWN_VALUE));
        pieces.push(piece.to_owned());
        remaining_value = after_piece;
    }
    pieces.push(remaining_value.to_owned());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_a_url_in_any_variable_is_masked_everywhere() {
        let masker = Masker::new([("DATABASE_URL", "postgres://app:hunter2secret@db.internal:5432/app?sslmode=on")]);
        assert_eq!(masker.mask("the password is hunter2secret, right?"), "the password is [masked:env], right?");
        assert_eq!(masker.mask("see db.internal:5432/app"), "see db.internal:5432/app");
        for harmless in ["https://example.com/a:b@c", "postgres://app@db/app", "C://x", "a:b@c"] {
            assert_eq!(find_url_password(harmless), None, "{harmless}");
        }
    }

    #[test]
    fn variables_are_found_by_the_shape_of_their_values() {
        let environment = [
            ("DATABASE_URL", "postgres://app:hunter2secret@db/app"),
            ("QUEUE", "amqp://u:p4ssw0rd@mq"),
            ("HTTPS_PROXY", "http://me:p4ssw0rd@proxy:3128"),
            ("DEPLOY", &format!("gh{}_{}", "p", "x1".repeat(18))),
            ("API_KEY", "anything at all"),
            ("PATH", "/usr/bin:/bin"),
            ("COMMIT", "9f8c2f2bb1a4a1d0a3b0c4d5e6f708192a3b4c5d"),
        ];
        let environment = environment.map(|(name, value)| (name.to_string(), value.to_string()));
        let found = find_secret_variables(&Masker::new([]), environment);
        assert_eq!(found.service_names, ["DATABASE_URL", "QUEUE"]);
        assert_eq!(found.names, ["DATABASE_URL", "QUEUE", "HTTPS_PROXY", "DEPLOY", "API_KEY"]);
    }

    #[test]
    fn values_in_the_settings_of_clients_are_known() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".claude")).unwrap();
        std::fs::create_dir_all(home.path().join(".codex")).unwrap();
        let claude_json = r#"{"env": {"GATEWAY_TOKEN": "plain-gateway-words"}, "model": "some-model-name"}"#;
        std::fs::write(home.path().join(".claude/settings.json"), claude_json).unwrap();
        std::fs::write(home.path().join(".codex/auth.json"), r#"{"tokens": {"refreshToken": "plain-refresh-words"}}"#)
            .unwrap();
        let codex_toml =
            "model = \"other-model-name\"\n[mcp.x]\nenv = { DB_PASSWORD = \"plain-db-words\", A = \"b\" }\n";
        std::fs::write(home.path().join(".codex/config.toml"), codex_toml).unwrap();
        let values = read_client_values(home.path());
        let masker = Masker::new(values.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let text = "plain-gateway-words plain-refresh-words plain-db-words some-model-name other-model-name";
        let masked = masker.mask(text).replace("[masked:env]", "*");
        assert_eq!(masked, "* * * some-model-name other-model-name");
    }
}
