//! `_bmad/_config/manifest.yaml`: which BMAD is installed, with which modules, for which clients.
//!
//! Early eras list modules by name, later ones with their versions. What the version means is decided by `layout`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    problem::{Problem, rules},
    yaml,
};

/// The content of the manifest, as the installer wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    pub version: Option<String>,
    /// The line of the version, for problems about it.
    pub line: Option<usize>,
    pub modules: Vec<Module>,
    /// The clients that BMAD was installed for, by the installer's names: `claude-code`.
    pub clients: Vec<String>,
    /// Whether the workflows of earlier versions were installed beside the new ones.
    pub shims: bool,
    pub problems: Vec<Problem>,
}

/// A module of BMAD and its version, where the manifest states one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Module {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Reads the manifest. A broken manifest gives a problem, and the era is then detected by the files alone.
pub fn read(path: &str, text: &str) -> Manifest {
    let mut manifest = Manifest::default();
    let tree = match yaml::parse(text) {
        Ok(tree) => tree,
        Err(broken) => {
            let mut problem = Problem::error("manifest-broken", path, broken.what)
                .why("which version of BMAD this is was told by its files alone")
                .todo("run BMAD's installer again");
            problem.line = broken.line;
            problem.column = broken.column;
            manifest.problems.push(problem);
            return manifest;
        }
    };
    let said = |node: Option<&yaml::Node>| node.and_then(yaml::Node::text).map(str::to_string);
    let installation = tree.get("installation");
    // The first alphas have the version at the top level.
    let version = installation.and_then(|node| node.get("version")).or_else(|| tree.get("version"));
    manifest.line = version.map(|node| node.line);
    manifest.version = said(version).filter(|version| !version.trim().is_empty());
    manifest.shims =
        said(installation.and_then(|node| node.get("installShims"))).is_some_and(|shims| shims == "true");
    // A module is a name in early eras and a mapping in later ones.
    for item in tree.get("modules").map(yaml::Node::items).unwrap_or_default() {
        let name = said(Some(item)).or_else(|| said(item.get("name")));
        let version = said(item.get("version")).filter(|version| version != "null");
        match name {
            Some(name) => manifest.modules.push(Module { name, version }),
            None => manifest.problems.push(
                Problem::warning("manifest-module", path, "a module without a name was passed over")
                    .at(item.line),
            ),
        }
    }
    let ides = tree.get("ides").map(yaml::Node::items).unwrap_or_default();
    manifest.clients = ides.iter().filter_map(yaml::Node::text).map(str::to_string).collect();
    if manifest.version.is_none() {
        manifest.problems.push(
            Problem::warning(
                rules::MANIFEST_NO_VERSION,
                path,
                "it does not say which version of BMAD is installed",
            )
            .why("the version was told by the files that are there")
            .todo("run BMAD's installer again"),
        );
    }
    manifest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(text: &str) -> String {
        let manifest = read("m.yaml", text);
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
        let text =
            "installation:\n  version: 6.0.0-alpha.22\nmodules:\n  - core\n  - bmm\nides:\n  - claude-code\n";
        assert_eq!(drawn(text), "6.0.0-alpha.22|core -,bmm -|claude-code|false");
        let text = "installation:\n  version: 6.10\n  installShims: true\nmodules:\n  - name: core\n    version: 6.10.0\n\
            \x20 - name: tea\n    version: null\nides: []\n";
        assert_eq!(drawn(text), "6.10|core 6.10.0,tea -||true");
    }

    #[test]
    fn what_is_missing_or_broken_is_said() {
        let no = " [m.yaml: it does not say which version of BMAD is installed]";
        assert_eq!(drawn(""), format!("-|||false{no}"));
        assert_eq!(drawn("- a\n"), format!("-|||false{no}"));
        assert_eq!(
            drawn("version: 1\nmodules:\n  - {x: 1}\n"),
            "1|||false [m.yaml:3: a module without a name was passed over]"
        );
        assert!(drawn("a: [\n").contains("[m.yaml:1:4: this is no YAML"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(installation:|version:|modules:|  - |name:|\\{|\\[|x|\n| ){0,30}") {
            read("m.yaml", &text);
        }
    }
}
