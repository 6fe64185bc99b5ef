//! `_bmad/bmm/config.yaml`.

use serde::Deserialize;

/// Where the file stands in a project.
pub const CONFIG_PATH: &str = "_bmad/bmm/config.yaml";

/// What we need of it; everything else is left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Config {
    #[serde(default)]
    output_folder: Option<String>,
}

/// A value and what was wrong on the way to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub config: Config,
    pub problem: Option<String>,
}

impl Config {
    pub fn parse(text: &str) -> Parsed {
        if text.trim().is_empty() {
            return Parsed::default();
        }
        match serde_saphyr::from_str(text) {
            Ok(config) => Parsed { config, problem: None },
            Err(cause) => Parsed { config: Config::default(), problem: Some(cause.to_string()) },
        }
    }

    /// Relative to the project's root, unless it was written as an absolute path. Early eras write
    /// `{project-root}/_bmad-output`, later ones `_bmad-output`.
    pub fn output_folder(&self) -> &str {
        let said = self.output_folder.as_deref().unwrap_or("_bmad-output").trim();
        let said = said.strip_prefix("{project-root}/").unwrap_or(said);
        let said = said.trim_start_matches("./").trim_end_matches('/');
        if said.is_empty() || said == "{project-root}" { "_bmad-output" } else { said }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_folder_is_found_in_every_era() {
        for (line, folder) in [
            ("output_folder: \"{project-root}/_bmad-output\"", "_bmad-output"),
            ("output_folder: _bmad-output", "_bmad-output"),
            ("output_folder: ./docs/out/", "docs/out"),
            ("output_folder: /srv/out", "/srv/out"),
            ("project_name: x", "_bmad-output"),
            ("", "_bmad-output"),
        ] {
            assert_eq!(Config::parse(line).config.output_folder(), folder, "{line}");
        }
    }

    #[test]
    fn a_broken_file_is_named_and_the_defaults_hold() {
        let parsed = Config::parse("output_folder: [\n");
        assert!(parsed.problem.is_some());
        assert_eq!(parsed.config.output_folder(), "_bmad-output");
    }
}
