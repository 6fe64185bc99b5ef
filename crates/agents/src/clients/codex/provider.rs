//! Whether the client's own settings name another provider: the client is then signed in by other means and does not
//! report it.

/// The provider without any configuration.
const OWN: &str = "openai";

/// Whether the settings name a provider other than the default one.
pub(super) fn named_in(settings: &str) -> bool {
    // Only what comes before the first table is about the client itself.
    let top = settings.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    let said = top.filter_map(|line| line.strip_prefix("model_provider")?.trim_start().strip_prefix('='));
    let mut names = said.map(|value| value.trim().trim_matches('"')).filter(|name| !name.is_empty());
    names.next().is_some_and(|name| name != OWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_provider_at_the_top_counts() {
        assert!(named_in("model_provider = \"mine\"\n[model_providers.mine]\n"));
        for settings in [
            "",
            "model_provider = \"openai\"\n",
            "model_provider = \"\"\n",
            "[profiles.x]\nmodel_provider = \"mine\"\n",
        ] {
            assert!(!named_in(settings), "{settings}");
        }
    }
}
