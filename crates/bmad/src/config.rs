//! `_bmad/bmm/config.yaml`: where it stands, and how its eras spell a folder.
//!
//! Its keys are read by the settings of the binary, which knows lines and origins; what the values mean is known here.

/// Where the file stands in a project.
pub const CONFIG_PATH: &str = "_bmad/bmm/config.yaml";

/// Where BMAD writes when its settings say nothing.
pub const OUTPUT_FOLDER: &str = "_bmad-output";

/// A folder as it is meant, relative to the project's root unless it was written as an absolute path. Early eras write
/// `{project-root}/_bmad-output`, later ones `_bmad-output`. Empty: the root itself.
pub fn folder(said: &str) -> &str {
    let said = said.trim();
    let said = said.strip_prefix("{project-root}").map_or(said, |rest| rest.trim_start_matches('/'));
    said.trim_start_matches("./").trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_understood_in_every_era() {
        for (said, meant) in [
            ("{project-root}/_bmad-output", "_bmad-output"),
            ("_bmad-output", "_bmad-output"),
            ("./docs/out/", "docs/out"),
            ("/srv/out", "/srv/out"),
            (" {project-root} ", ""),
            ("", ""),
        ] {
            assert_eq!(folder(said), meant, "{said}");
        }
    }
}
