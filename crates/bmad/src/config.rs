//! A project's BMAD settings: where its documents are, who works on it and in which language, and which file set each value.
//!
//! Every era has `_bmad/bmm/config.yaml`; late eras have four TOML files that override it. No folder is checked for its
//! existence: BMAD may still have to create it. Tribunal's own settings are read elsewhere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    problem::Problem,
    shelf::{self, Shelf},
    toml_tree,
    yaml::{self, Broken, Form, Node},
};

/// The path of the settings file that every era has.
pub const CONFIG_PATH: &str = "_bmad/bmm/config.yaml";

/// The folder that BMAD writes to if its settings do not name one.
pub const OUTPUT_FOLDER: &str = "_bmad-output";

/// The directories in which BMAD may be installed, today's first.
pub const ROOTS: [&str; 3] = ["_bmad", ".bmad", "bmad"];

/// How many names in braces are expanded for one value: a file can be made to refer to itself without end.
const NAMES: usize = 32;

/// The keys whose value is a folder.
const FOLDERS: [&str; 9] = [
    "output_folder",
    "planning_artifacts",
    "implementation_artifacts",
    "project_knowledge",
    "test_artifacts",
    "sprint_artifacts",
    "dev_ephemeral_location",
    "dev_story_location",
    "tech_docs",
];

/// A folder in its normal form, relative to the project's root unless it was written as an absolute path. Early eras write
/// `{project-root}/_bmad-output`, later ones `_bmad-output`. Empty means the root itself.
pub fn folder(said: &str) -> &str {
    let said = said.trim();
    let said = said.strip_prefix("{project-root}").map_or(said, |rest| rest.trim_start_matches('/'));
    said.trim_start_matches("./").trim_end_matches('/')
}

/// The folders of a project's documents, relative to its root, with `/` and none at the end. Empty means the root itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Folders {
    pub output: String,
    /// PRD, architecture, epics.
    pub planning: String,
    /// The board and the stories.
    pub implementation: String,
    /// The project's documentation.
    pub knowledge: String,
    /// The documents of the test architect.
    pub tests: String,
}

impl Default for Folders {
    fn default() -> Folders {
        Folders {
            output: OUTPUT_FOLDER.into(),
            planning: format!("{OUTPUT_FOLDER}/planning-artifacts"),
            implementation: format!("{OUTPUT_FOLDER}/implementation-artifacts"),
            knowledge: "docs".into(),
            tests: format!("{OUTPUT_FOLDER}/test-artifacts"),
        }
    }
}

/// Which file set a value, and in which line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Origin {
    pub path: String,
    pub line: usize,
}

/// The settings of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Config {
    pub folders: Folders,
    pub project_name: Option<String>,
    pub user_name: Option<String>,
    /// The language in which agents speak to the user.
    pub communication_language: Option<String>,
    /// The language in which documents are written.
    pub document_language: Option<String>,
    /// beginner, intermediate or expert.
    pub skill_level: Option<String>,
    /// Every value as it was written, by its qualified key: `bmm.planning_artifacts`, `core.user_name`.
    pub values: BTreeMap<String, String>,
    /// Where each value was set last.
    pub said: BTreeMap<String, Origin>,
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

impl Config {
    /// Where a key was set, in whichever module; `None` if it has its default.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.find(key).and_then(|name| self.said.get(name))
    }

    /// A key's value as it was written: BMAD's method wins over its core, and its core over other modules.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.find(key).and_then(|name| self.values.get(name)).map(String::as_str)
    }

    fn find(&self, key: &str) -> Option<&str> {
        let of = |module: &str| {
            let name = format!("{module}.{key}");
            self.values.get_key_value(&name).map(|(name, _)| name.as_str())
        };
        of("bmm").or_else(|| of("core")).or_else(|| {
            let others = self.values.keys().map(String::as_str);
            others.into_iter().find(|name| name.split_once('.').is_some_and(|(_, last)| last == key))
        })
    }
}

/// The directory in which BMAD is installed: the first that has something only its installer writes.
pub fn root(shelf: &dyn Shelf) -> Option<&'static str> {
    let marks = ["_config/", "_cfg/", "config.toml"];
    ROOTS.into_iter().find(|root| {
        let names = shelf.names(root);
        let has = |name: &str| names.iter().any(|there| there == name);
        // `bmad/` may be an ordinary directory of the project; one that holds a module with its settings is not.
        marks.into_iter().any(has)
            || ["bmm", "core"].into_iter().any(|module| {
                has(&format!("{module}/"))
                    && shelf.names(&format!("{root}/{module}")).iter().any(|name| name == "config.yaml")
            })
    })
}

/// Reads all settings files of a project. Without BMAD the defaults apply.
pub fn read(shelf: &dyn Shelf) -> Config {
    let mut layers = Layers { root: shelf.root().map(String::from), ..Layers::default() };
    if let Some(root) = root(shelf) {
        layers.yaml_of(shelf, root);
        layers.toml_of(shelf, root);
    }
    layers.config()
}

/// The settings while they are read; later files win.
#[derive(Default)]
struct Layers {
    config: Config,
    /// The absolute path of the project's root.
    root: Option<String>,
    /// The values of the YAML files, for those skills that read nothing else.
    yaml: BTreeMap<String, (String, Origin)>,
}

impl Layers {
    /// Reads the YAML files: core first, then every module, the method last, since each module's file repeats the core's
    /// keys.
    fn yaml_of(&mut self, shelf: &dyn Shelf, root: &str) {
        let mut modules: Vec<String> = shelf
            .names(root)
            .into_iter()
            .filter_map(|name| Some(name.strip_suffix('/')?.to_string()))
            .collect();
        let rank = |module: &str| match module {
            "core" => 0,
            "bmm" => 2,
            _ => 1,
        };
        // These directories belong to the installer, not to a module.
        modules.retain(|module| !module.starts_with('_') && module != "custom" && module != "scripts");
        modules.sort_by(|a, b| (rank(a), a).cmp(&(rank(b), b)));
        for module in modules {
            // The user's own file comes second, so that it wins over the team's.
            for name in ["config.yaml", "config.user.yaml"] {
                let path = format!("{root}/{module}/{name}");
                let Some(text) = shelf::read(shelf, &path, &mut self.config.problems) else { continue };
                match yaml::parse(&text) {
                    Ok(tree) => self.take(&module, &path, &tree),
                    Err(broken) => self.broken(&path, &broken),
                }
            }
        }
        let told = self.config.values.iter().filter_map(|(name, value)| {
            Some((name.clone(), (value.clone(), self.config.said.get(name)?.clone())))
        });
        self.yaml = told.collect();
    }

    /// Reads the TOML files: the installer's for the team and for one user, then what users have set over it.
    fn toml_of(&mut self, shelf: &dyn Shelf, root: &str) {
        for path in toml_paths(root) {
            let Some(text) = shelf::read(shelf, &path, &mut self.config.problems) else { continue };
            // A broken line costs only itself: the rest of the file is still used.
            let (tree, broken) = toml_tree::parse(&text);
            broken.iter().for_each(|broken| self.broken(&path, broken));
            if let Some(core) = tree.get("core") {
                self.take("core", &path, core);
            }
            for module in tree.get("modules").map(Node::entries).unwrap_or_default() {
                self.take(&module.key, &path, &module.value);
            }
        }
    }

    fn broken(&mut self, path: &str, broken: &Broken) {
        let mut problem = Problem::error("config-broken", path, broken.what.clone())
            .why("what it sets is not known")
            .todo("repair the line, or run BMAD's installer again");
        problem.line = broken.line;
        problem.column = broken.column;
        self.config.problems.push(problem);
    }

    fn take(&mut self, module: &str, path: &str, tree: &Node) {
        if !matches!(tree.form, Form::Map(_) | Form::Nothing) {
            let what = "keys and values are expected here";
            self.config.problems.push(Problem::error("config-no-keys", path, what).at(tree.line));
        }
        for entry in tree.entries() {
            let value = match &entry.value.form {
                Form::Scalar(text) => text.clone(),
                Form::List(_) | Form::Map(_) if FOLDERS.contains(&entry.key.as_str()) => {
                    let what = format!("`{}` is no folder, and was passed over", entry.key);
                    self.config.problems.push(Problem::error("config-folder", path, what).at(entry.line));
                    continue;
                }
                // Other lists and tables mean nothing to us, and a key without a value sets nothing.
                _ => continue,
            };
            // Each module's file repeats the core's keys; they stay the core's, or one setting would have several values.
            let owner = if CORE.contains(&entry.key.as_str()) { "core" } else { module };
            let name = format!("{owner}.{}", entry.key);
            let origin = Origin { path: path.to_string(), line: entry.line };
            self.config.said.insert(name.clone(), origin);
            self.config.values.insert(name, value);
        }
    }

    fn config(mut self) -> Config {
        let said = |key: &str, config: &Config| config.value(key).map(str::to_string);
        self.config.project_name = said("project_name", &self.config);
        self.config.user_name = said("user_name", &self.config);
        self.config.communication_language = said("communication_language", &self.config);
        self.config.document_language = said("document_output_language", &self.config);
        self.config.skill_level = said("user_skill_level", &self.config);
        self.folders();
        self.disagreements();
        self.config
    }

    fn folders(&mut self) {
        let output = self.folder(&["output_folder"], OUTPUT_FOLDER.to_string());
        let under = |folder: &str, name: &str| match folder {
            "" => name.to_string(),
            folder => format!("{folder}/{name}"),
        };
        // Before there were two folders for artifacts, plans were in the output folder and stories in one of their own.
        let early = self.config.value("planning_artifacts").is_none()
            && ["dev_story_location", "dev_ephemeral_location", "sprint_artifacts"]
                .iter()
                .any(|key| self.config.value(key).is_some());
        let planning = if early { output.clone() } else { under(&output, "planning-artifacts") };
        let planning = self.folder(&["planning_artifacts"], planning);
        // The names of the folder for stories, today's first.
        let stories =
            ["implementation_artifacts", "sprint_artifacts", "dev_ephemeral_location", "dev_story_location"];
        let implementation = self.folder(&stories, under(&output, "implementation-artifacts"));
        let knowledge = self.folder(&["project_knowledge", "tech_docs"], "docs".into());
        let tests = self.folder(&["test_artifacts"], under(&output, "test-artifacts"));
        self.config.folders = Folders { output, planning, implementation, knowledge, tests };
    }

    /// The first of these keys that names a folder inside the project. A folder that cannot be used is reported, and the
    /// default applies.
    fn folder(&mut self, keys: &[&str], default: String) -> String {
        // The keys are the names of one setting through the eras, today's first.
        let Some(key) = keys.iter().find(|key| self.config.value(key).is_some()) else { return default };
        let said = self.config.value(key).unwrap_or_default().to_string();
        match self.meant(&said) {
            Ok(folder) => folder,
            Err(why) => {
                let problem = match self.config.origin(key) {
                    Some(origin) => Problem::error("config-folder", &origin.path, "").at(origin.line),
                    None => Problem::error("config-folder", CONFIG_PATH, ""),
                };
                let what = format!("`{key}` is `{said}`, and {why}");
                self.config.problems.push(
                    Problem { what, ..problem }
                        .why(format!("Tribunal looks in `{default}`, and BMAD's workflows do not"))
                        .todo("name a folder inside the project, as {project-root}/NAME"),
                );
                default
            }
        }
    }

    /// Resolves a written path to one below the project's root, or says why that is impossible.
    fn meant(&self, said: &str) -> Result<String, String> {
        let whole = self.filled(said.trim(), &mut { NAMES })?;
        // Some installers write the absolute path of the project instead of `{project-root}`.
        let named = self.root.as_deref().and_then(|root| whole.strip_prefix(root));
        let named = named.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let inside = whole.strip_prefix("{project-root}").or(named).unwrap_or(&whole);
        let is_rooted = inside.len() < whole.len();
        let windows = inside.as_bytes().get(1) == Some(&b':');
        // A cloned project must not make us read outside of it, so an absolute path or a drive letter is refused.
        if (inside.starts_with('/') && !is_rooted) || inside.starts_with('~') || windows {
            return Err("that is an absolute path".into());
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in inside.split(['/', '\\']) {
            match part {
                "" | "." => {}
                ".." if parts.pop().is_none() => return Err("that leads out of the project".into()),
                ".." => {}
                part => parts.push(part),
            }
        }
        Ok(parts.join("/"))
    }

    /// Expands names in braces; `{project-root}` stays, and only at the front.
    fn filled(&self, said: &str, left: &mut usize) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = said;
        while let Some(start) = rest.find('{') {
            let Some(end) = rest[start..].find('}').map(|end| start + end) else { break };
            out.push_str(&rest[..start]);
            let name = &rest[start + 1..end];
            rest = &rest[end + 1..];
            if name == "project-root" || name == "project_root" {
                if !out.is_empty() {
                    return Err("`{project-root}` stands in its middle".into());
                }
                out.push_str("{project-root}");
                continue;
            }
            let value =
                self.config.value(name).ok_or_else(|| format!("nothing says what `{{{name}}}` is"))?;
            // A value that names itself would expand without end.
            *left = left.checked_sub(1).ok_or_else(|| format!("`{{{name}}}` stands for itself"))?;
            let value = self.filled(value.trim(), left)?;
            let value = value.trim_end_matches('/');
            // A folder behind another one is meant below it, even if it is written as starting at the root.
            let value = if out.is_empty() { value } else { folder(value) };
            out.push_str(value);
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Reports folders that differ between the files: late skills read the TOML files, while others of the same tree still
    /// read the YAML file.
    fn disagreements(&mut self) {
        for key in ["output_folder", "planning_artifacts", "implementation_artifacts", "project_knowledge"] {
            let Some(name) = self.config.find(key).map(str::to_string) else { continue };
            let (Some((old, before)), Some(new), Some(origin)) =
                (self.yaml.get(&name), self.config.values.get(&name), self.config.said.get(&name))
            else {
                continue;
            };
            if folder(old) != folder(new) {
                let what = format!("`{key}` is `{new}` here and `{old}` in {}:{}", before.path, before.line);
                let problem = Problem::warning("config-disagrees", &origin.path, what)
                    .at(origin.line)
                    .why("some of BMAD's skills read the one file and some the other; this one counts here")
                    .todo("say the same in both");
                self.config.problems.push(problem);
            }
        }
    }
}

/// Keys of the core that the installer repeats in every module's file.
const CORE: [&str; 5] =
    ["user_name", "communication_language", "document_output_language", "output_folder", "project_name"];

/// The four TOML files of late eras, the weakest first.
pub(crate) fn toml_paths(root: &str) -> [String; 4] {
    ["config.toml", "config.user.toml", "custom/config.toml", "custom/config.user.toml"]
        .map(|name| format!("{root}/{name}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shelf::Kept;

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

    fn drawn(files: &[(&str, &str)]) -> String {
        let config = read(&Kept::with(files.iter().copied()));
        let Folders { output, planning, implementation, knowledge, tests } = &config.folders;
        let problems: String = config.problems.iter().map(|problem| format!("\n{problem}")).collect();
        format!("{output}|{planning}|{implementation}|{knowledge}|{tests}{problems}")
    }

    #[test]
    fn folders_are_found_in_every_era() {
        const A: &str =
            "planning_artifacts: \"{project-root}/out/plans\"\noutput_folder: \"{project-root}/out\"\n";
        const B: &str = "planning_artifacts: \"{output_folder}/plans\"\noutput_folder: out\n";
        let all = [
            ("nothing at all", drawn(&[])),
            ("A", drawn(&[(CONFIG_PATH, A)])),
            ("B", drawn(&[(CONFIG_PATH, B)])),
            ("core alone", drawn(&[("_bmad/core/config.yaml", "output_folder: ./here/\n")])),
            ("the root", drawn(&[(CONFIG_PATH, "output_folder: '{project-root}'\n")])),
            (
                "before two folders",
                drawn(&[(
                    ".bmad/bmm/config.yaml",
                    "output_folder: '{project-root}/docs'\ndev_story_location: '{project-root}/docs/stories'\n",
                )]),
            ),
            (
                "four layers",
                drawn(&[
                    (CONFIG_PATH, "implementation_artifacts: one\noutput_folder: out\n"),
                    (
                        "_bmad/config.toml",
                        "[core]\noutput_folder = \"out\"\n[modules.bmm]\nimplementation_artifacts = \"one\"\n",
                    ),
                    ("_bmad/config.user.toml", "[modules.bmm]\nplanning_artifacts = \"two\"\n"),
                    (
                        "_bmad/custom/config.toml",
                        "[modules.bmm]\nplanning_artifacts = \"three\"\nproject_knowledge = \"k\"\n",
                    ),
                    (
                        "_bmad/custom/config.user.toml",
                        "\n[modules.bmm]\nproject_knowledge = \"k/../know\"\n[modules.tea]\ntest_artifacts = \"{output_folder}/t\"\n",
                    ),
                ]),
            ),
        ];
        let all: Vec<String> = all.iter().map(|(name, drawn)| format!("{name}: {drawn}")).collect();
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn what_cannot_be_meant_is_said_and_the_default_kept() {
        let all: Vec<String> = [
            "output_folder: /srv/out\n",
            "output_folder: ../out\n",
            "output_folder: ~/out\n",
            "output_folder: 'C:\\out'\n",
            "planning_artifacts: '{nowhere}/x'\n",
            "planning_artifacts: '{planning_artifacts}/x'\n",
            "planning_artifacts: 'a/{project-root}'\n",
            "planning_artifacts: [a]\nimplementation_artifacts:\n",
            "a: 1\na: 2\n",
            "- a\n",
            "just words\n",
        ]
        .iter()
        .map(|text| drawn(&[(CONFIG_PATH, text)]))
        .chain([drawn(&[(
            "_bmad/config.toml",
            "[core]\noutput_folder = out\n[modules.bmm]\nplanning_artifacts = \"p\"\n",
        )])])
        .chain([drawn(&[
            (CONFIG_PATH, "implementation_artifacts: '{project-root}/one'\n"),
            ("_bmad/custom/config.toml", "[modules.bmm]\nimplementation_artifacts = \"two\"\n"),
        ])])
        .collect();
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn every_value_knows_where_it_was_said() {
        let config = read(&Kept::with([
            ("_bmad/core/config.yaml", "user_name: A\n"),
            (
                CONFIG_PATH,
                "# top\nuser_name: B\nuser_skill_level: expert\ndocument_output_language: Klingon\n",
            ),
            ("_bmad/config.user.toml", "[core]\nuser_name = \"C\"\n"),
            ("_bmad/cis/config.yaml", "own_key: 3.50\n"),
        ]));
        assert_eq!(config.user_name.as_deref(), Some("C"));
        assert_eq!(config.skill_level.as_deref(), Some("expert"));
        assert_eq!(config.document_language.as_deref(), Some("Klingon"));
        assert_eq!(config.value("own_key"), Some("3.50"));
        let at = |key: &str| config.origin(key).map(|origin| format!("{}:{}", origin.path, origin.line));
        assert_eq!(at("user_name").as_deref(), Some("_bmad/config.user.toml:2"));
        assert_eq!(at("user_skill_level").as_deref(), Some("_bmad/bmm/config.yaml:3"));
        assert_eq!(at("project_knowledge"), None);
        assert_eq!(config.problems, []);
    }

    #[test]
    fn a_folder_that_is_only_called_bmad_is_not_bmad_s() {
        assert_eq!(root(&Kept::with([("bmad/README.md", ""), ("_bmad/notes.txt", "")])), None);
        assert_eq!(root(&Kept::with([("bmad/_cfg/manifest.yaml", "")])), Some("bmad"));
        assert_eq!(
            root(&Kept::with([("bmad/core/config.yaml", ""), ("_bmad/config.toml", "")])),
            Some("_bmad")
        );
    }

    proptest! {
        #[test]
        fn any_value_gives_a_folder_inside_the_project(said in "[a-c{}./~\\\\_ -]{0,24}|\\{project-root\\}/[a-c./]{0,9}") {
            let text = format!("[core]\noutput_folder = '{said}'\n");
            let config = read(&Kept::with([("_bmad/config.toml", text.as_str())]));
            for folder in [&config.folders.output, &config.folders.planning, &config.folders.tests] {
                prop_assert!(!folder.starts_with('/') && !folder.split('/').any(|part| part == ".."), "{folder}");
            }
        }
    }
}
