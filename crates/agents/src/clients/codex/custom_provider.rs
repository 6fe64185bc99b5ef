//! Whether the client's own settings name another provider: the client is then signed in by other means and does not
//! report it.

/// The provider without any configuration.
const DEFAULT_PROVIDER: &str = "openai";

/// Whether the settings name a provider other than the default one.
pub(super) fn names_custom_provider(settings_toml: &str) -> bool {
    provider_name(settings_toml).is_some_and(|provider_name| provider_name != DEFAULT_PROVIDER)
}

/// The address of the provider that the settings name, if they have one.
pub(super) fn find_base_url(settings_toml: &str) -> Option<String> {
    let provider_name = provider_name(settings_toml)?;
    let table_headers =
        [format!("[model_providers.{provider_name}]"), format!("[model_providers.\"{provider_name}\"]")];
    let lines = settings_toml.lines().map(str::trim);
    let mut table_lines = lines
        .skip_while(|settings_line| !table_headers.iter().any(|header| settings_line.starts_with(header.as_str())))
        .skip(1)
        .take_while(|settings_line| !settings_line.starts_with('['));
    table_lines.find_map(|settings_line| read_text_value(settings_line, "base_url"))
}

fn provider_name(settings_toml: &str) -> Option<String> {
    // Keys after the first table header belong to that table.
    let mut top_lines =
        settings_toml.lines().map(str::trim).take_while(|settings_line| !settings_line.starts_with('['));
    top_lines.find_map(|settings_line| read_text_value(settings_line, "model_provider"))
}

/// The value of a line `key = "value"`; `None` if it is empty.
fn read_text_value(settings_line: &str, key_name: &str) -> Option<String> {
    let value_text = settings_line.strip_prefix(key_name)?.trim_start().strip_prefix('=')?.trim_start();
    let quote_mark = value_text.chars().next().filter(|character| matches!(character, '"' | '\''))?;
    let value_text = value_text[1..].split(quote_mark).next()?;
    (!value_text.is_empty()).then(|| value_text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_custom_provider_outside_of_tables_counts() {
        assert!(names_custom_provider("model_provider = \"mine\"\n[model_providers.mine]\n"));
        for settings_toml in [
            "",
            "model_provider = \"openai\"\n",
            "model_provider = \"\"\n",
            "[profiles.x]\nmodel_provider = \"mine\"\n",
        ] {
            assert!(!names_custom_provider(settings_toml), "{settings_toml}");
        }
    }

    #[test]
    fn the_address_is_that_of_the_named_provider() {
        let settings_toml = "model_provider = \"mine\" # own\n[model_providers.other]\nbase_url = \"http://other\"\n\
             [model_providers.mine]\nname = \"m\"\nbase_url = 'http://mine/v1'\n";
        assert_eq!(find_base_url(settings_toml).as_deref(), Some("http://mine/v1"));
        assert_eq!(find_base_url(&settings_toml.replace("\"mine\"", "\"third\"")), None);
        assert_eq!(find_base_url(""), None);
    }
}
