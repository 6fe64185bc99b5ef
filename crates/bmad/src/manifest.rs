//! `_bmad/_config/manifest.yaml`: which BMAD is installed, with which modules, for which clients.
//!
//! Early eras list modules by name, later ones with their versions. What the version means is decided by `layout`.

use tribunal_json::{Serialize, schemars};

use crate::{
    problem::{FileProblem, rules},
    yaml,
};

/// The content of the manifest, as the installer wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallManifest {
    pub version: Option<String>,
    /// The line of the version, for problems about it.
    pub version_line: Option<usize>,
    pub modules: Vec<InstalledModule>,
    /// The clients that BMAD was installed for, by the installer's names: `claude-code`.
    pub clients: Vec<String>,
    /// Whether the workflows of earlier versions were installed beside the new ones.
    pub shims: bool,
    pub problems: Vec<FileProblem>,
}

/// A module of BMAD and its version, where the manifest states one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct InstalledModule {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Reads the manifest. A broken manifest gives a problem, and the era is then detected by the files alone.
pub fn read_manifest(manifest_path: &str, yaml_text: &str) -> InstallManifest {
    let mut manifest = InstallManifest::default();
    let root_node = match yaml::parse_yaml(yaml_text) {
        Ok(root_node) => root_node,
        Err(parse_error) => {
            let mut problem = FileProblem::error("manifest-broken", manifest_path, parse_error.message)
                .with_reason("The version was guessed from the installed files.")
                .with_advice("run BMAD's installer again: `npx bmad-method install`");
            problem.line = parse_error.line;
            problem.column = parse_error.column;
            manifest.problems.push(problem);
            return manifest;
        }
    };
    let node_text = |node: Option<&yaml::YamlNode>| node.and_then(yaml::YamlNode::scalar_text).map(str::to_string);
    let installation = root_node.get("installation");
    // The first alphas have the version at the top level.
    let version_node = installation.and_then(|node| node.get("version")).or_else(|| root_node.get("version"));
    manifest.version_line = version_node.map(|node| node.line);
    manifest.version = node_text(version_node).filter(|version| !version.trim().is_empty());
    manifest.shims =
        node_text(installation.and_then(|node| node.get("installShims"))).is_some_and(|shims| shims == "true");
    // A module is a name in early eras and a mapping in later ones.
    for module_node in root_node.get("modules").map(yaml::YamlNode::items).unwrap_or_default() {
        let module_name = node_text(Some(module_node)).or_else(|| node_text(module_node.get("name")));
        let version = node_text(module_node.get("version")).filter(|version| version != "null");
        match module_name {
            Some(module_name) => manifest.modules.push(InstalledModule { name: module_name, version }),
            None => manifest.problems.push(
                FileProblem::warning("manifest-module", manifest_path, "module without a name; ignored")
                    .at_line(module_node.line),
            ),
        }
    }
    let client_nodes = root_node.get("ides").map(yaml::YamlNode::items).unwrap_or_default();
    manifest.clients = client_nodes.iter().filter_map(yaml::YamlNode::scalar_text).map(str::to_string).collect();
    if manifest.version.is_none() {
        manifest.problems.push(
            FileProblem::warning(
                rules::MANIFEST_NO_VERSION,
                manifest_path,
                "the manifest does not say which version of BMAD is installed",
            )
            .with_reason("The version was guessed from the installed files.")
            .with_advice("run BMAD's installer again: `npx bmad-method install`"),
        );
    }
    manifest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn render_manifest(yaml_text: &str) -> String {
        let manifest = read_manifest("m.yaml", yaml_text);
        let modules: Vec<String> = manifest
            .modules
            .iter()
            .map(|module| format!("{} {}", module.name, module.version.as_deref().unwrap_or("-")))
            .collect();
        let problems: String = manifest.problems.iter().map(|problem| format!(" [{problem}]")).collect();
        let version = manifest.version.as_deref().unwrap_or("-");
        format!("{version}|{}|{}|{}{problems}", modules.join(","), manifest.clients.join(","), manifest.shims)
    }

    #[test]
    fn modules_are_names_or_maps() {
        let yaml_text =
            "installation:\n  version: 6.0.0-alpha.22\nmodules:\n  - core\n  - bmm\nides:\n  - claude-code\n";
        assert_eq!(render_manifest(yaml_text), "6.0.0-alpha.22|core -,bmm -|claude-code|false");
        let yaml_text = "installation:\n  version: 6.10\n  installShims: true\nmodules:\n  - name: core\n    version: 6.10.0\n\
            \x20 - name: tea\n    version: null\nides: []\n";
        assert_eq!(render_manifest(yaml_text), "6.10|core 6.10.0,tea -||true");
    }

    #[test]
    fn a_missing_version_and_broken_yaml_are_reported() {
        let no_version = " [m.yaml: the manifest does not say which version of BMAD is installed]";
        assert_eq!(render_manifest(""), format!("-|||false{no_version}"));
        assert_eq!(render_manifest("- a\n"), format!("-|||false{no_version}"));
        assert_eq!(
            render_manifest("version: 1\nmodules:\n  - {x: 1}\n"),
            "1|||false [m.yaml:3: module without a name; ignored]"
        );
        assert!(render_manifest("a: [\n").contains("[m.yaml:1:4: invalid YAML"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(installation:|version:|modules:|  - |name:|\\{|\\[|x|\n| ){0,30}") {
            read_manifest("m.yaml", &text);
        }
    }
}
