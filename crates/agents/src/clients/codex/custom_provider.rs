//! Whether the client's own settings name another provider: the client is then signed in by other means and does not
//! report it.

/// The provider without any configuration.
const DEFAULT_PROVIDER: &str = "openai";

/// Whether the settings name a provider other than the default one.
pub(super) fn names_custom_provider(settings_toml: &str) -> bool {
    // Keys after the first table header belong to that table.
    let top_lines = settings_toml.lines().map(str::trim).take_while(|settings_line| !settings_line.starts_with('['));
    let provider_values = top_lines
        .filter_map(|settings_line| settings_line.strip_prefix("model_provider")?.trim_start().strip_prefix('='));
    let mut provider_names = provider_values
        .map(|provider_value| provider_value.trim().trim_matches('"'))
        .filter(|provider_name| !provider_name.is_empty());
    provider_names.next().is_some_and(|provider_name| provider_name != DEFAULT_PROVIDER)
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
}
