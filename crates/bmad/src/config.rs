//! A project's BMAD settings: where its documents are, who works on it and in which language, and which file set each value.
//!
//! Every era has `_bmad/bmm/config.yaml`; late eras have four TOML files that override it. No folder is checked for its
//! existence: BMAD may still have to create it. Tribunal's own settings are read elsewhere.

use std::collections::BTreeMap;

use tribunal_json::{Serialize, schemars};

use crate::{
    problem::FileProblem,
    project_files::{self, ProjectFiles},
    toml_tree,
    yaml::{self, YamlContent, YamlError, YamlNode},
};

/// The path of the settings file that every era has.
pub const CONFIG_PATH: &str = "_bmad/bmm/config.yaml";

/// The folder that BMAD writes to if its settings do not name one.
pub const OUTPUT_FOLDER: &str = "_bmad-output";

/// The directories in which BMAD may be installed, today's first.
pub const ROOTS: [&str; 3] = ["_bmad", ".bmad", "bmad"];

/// How many names in braces are expanded for one value: a file can be made to refer to itself without end.
const MAX_EXPANSIONS: usize = 32;

/// The keys whose value is a folder.
const FOLDER_KEYS: [&str; 9] = [
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
pub fn normalize_folder(written_folder: &str) -> &str {
    let written_folder = written_folder.trim();
    let written_folder = written_folder
        .strip_prefix("{project-root}")
        .map_or(written_folder, |relative| relative.trim_start_matches('/'));
    written_folder.trim_start_matches("./").trim_end_matches('/')
}

/// The folders of a project's documents, relative to its root, with `/` and none at the end. Empty means the root itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ProjectFolders {
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

impl Default for ProjectFolders {
    fn default() -> ProjectFolders {
        ProjectFolders {
            output: OUTPUT_FOLDER.into(),
            planning: format!("{OUTPUT_FOLDER}/planning-artifacts"),
            implementation: format!("{OUTPUT_FOLDER}/implementation-artifacts"),
            knowledge: "docs".into(),
            tests: format!("{OUTPUT_FOLDER}/test-artifacts"),
        }
    }
}

/// Which file set a value, and in which line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct BmadConfigOrigin {
    pub path: String,
    pub line: usize,
}

/// The settings of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct BmadConfig {
    pub folders: ProjectFolders,
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
    pub said: BTreeMap<String, BmadConfigOrigin>,
    #[serde(skip)]
    pub problems: Vec<FileProblem>,
}

impl BmadConfig {
    /// Where a key was set, in whichever module; `None` if it has its default.
    pub fn origin(&self, setting_key: &str) -> Option<&BmadConfigOrigin> {
        self.find_qualified_name(setting_key).and_then(|qualified| self.said.get(qualified))
    }

    /// A key's value as it was written: BMAD's method wins over its core, and its core over other modules.
    pub fn value(&self, setting_key: &str) -> Option<&str> {
        self.find_qualified_name(setting_key).and_then(|qualified| self.values.get(qualified)).map(String::as_str)
    }

    fn find_qualified_name(&self, setting_key: &str) -> Option<&str> {
        let in_module = |module: &str| {
            let name = format!("{module}.{setting_key}");
            self.values.get_key_value(&name).map(|(name, _)| name.as_str())
        };
        in_module("bmm").or_else(|| in_module("core")).or_else(|| {
            let all_names = self.values.keys().map(String::as_str);
            all_names.into_iter().find(|name| name.split_once('.').is_some_and(|(_, key_part)| key_part == setting_key))
        })
    }
}

/// The directory in which BMAD is installed: the first that has something only its installer writes.
pub fn find_bmad_root(project_files: &dyn ProjectFiles) -> Option<&'static str> {
    let installer_marks = ["_config/", "_cfg/", "config.toml"];
    ROOTS.into_iter().find(|bmad_root| {
        let entry_names = project_files.list_names(bmad_root);
        let contains_name = |name: &str| entry_names.iter().any(|existing_name| existing_name == name);
        // `bmad/` may be an ordinary directory of the project; one that holds a module with its settings is not.
        installer_marks.into_iter().any(contains_name)
            || ["bmm", "core"].into_iter().any(|module| {
                contains_name(&format!("{module}/"))
                    && project_files
                        .list_names(&format!("{bmad_root}/{module}"))
                        .iter()
                        .any(|name| name == "config.yaml")
            })
    })
}

/// Reads all settings files of a project. Without BMAD the defaults apply.
pub fn read_config(project_files: &dyn ProjectFiles) -> BmadConfig {
    let mut layers =
        BmadConfigLayers { project_root: project_files.root_path().map(String::from), ..BmadConfigLayers::default() };
    if let Some(bmad_root) = find_bmad_root(project_files) {
        layers.read_yaml_files(project_files, bmad_root);
        layers.read_toml_files(project_files, bmad_root);
    }
    layers.into_config()
}

/// The settings while they are read; later files win.
#[derive(Default)]
struct BmadConfigLayers {
    config: BmadConfig,
    /// The absolute path of the project's root.
    project_root: Option<String>,
    /// The values of the YAML files, for those skills that read nothing else.
    yaml_values: BTreeMap<String, (String, BmadConfigOrigin)>,
}

impl BmadConfigLayers {
    /// Reads the YAML files: core first, then every module, the method last, since each module's file repeats the core's
    /// keys.
    fn read_yaml_files(&mut self, project_files: &dyn ProjectFiles, bmad_root: &str) {
        let mut modules: Vec<String> = project_files
            .list_names(bmad_root)
            .into_iter()
            .filter_map(|entry_name| Some(entry_name.strip_suffix('/')?.to_string()))
            .collect();
        let module_rank = |module: &str| match module {
            "core" => 0,
            "bmm" => 2,
            _ => 1,
        };
        // These directories belong to the installer, not to a module.
        modules.retain(|module| !module.starts_with('_') && module != "custom" && module != "scripts");
        modules.sort_by(|left, right| (module_rank(left), left).cmp(&(module_rank(right), right)));
        for module in modules {
            // The user's own file comes second, so that it wins over the team's.
            for file_name in ["config.yaml", "config.user.yaml"] {
                let config_path = format!("{bmad_root}/{module}/{file_name}");
                let Some(yaml_text) =
                    project_files::read_or_report(project_files, &config_path, &mut self.config.problems)
                else {
                    continue;
                };
                match yaml::parse_yaml(&yaml_text) {
                    Ok(root_node) => self.merge_values(&module, &config_path, &root_node),
                    Err(parse_error) => self.report_parse_error(&config_path, &parse_error),
                }
            }
        }
        let yaml_settings = self.config.values.iter().filter_map(|(setting_name, value)| {
            Some((setting_name.clone(), (value.clone(), self.config.said.get(setting_name)?.clone())))
        });
        self.yaml_values = yaml_settings.collect();
    }

    /// Reads the TOML files: the installer's for the team and for one user, then what users have set over it.
    fn read_toml_files(&mut self, project_files: &dyn ProjectFiles, bmad_root: &str) {
        for config_path in toml_paths(bmad_root) {
            let Some(toml_text) = project_files::read_or_report(project_files, &config_path, &mut self.config.problems)
            else {
                continue;
            };
            // A broken line costs only itself: the rest of the file is still used.
            let (root_node, parse_errors) = toml_tree::parse_toml(&toml_text);
            parse_errors.iter().for_each(|parse_error| self.report_parse_error(&config_path, parse_error));
            if let Some(core_table) = root_node.get("core") {
                self.merge_values("core", &config_path, core_table);
            }
            for module in root_node.get("modules").map(YamlNode::entries).unwrap_or_default() {
                self.merge_values(&module.key, &config_path, &module.value);
            }
        }
    }

    fn report_parse_error(&mut self, config_path: &str, parse_error: &YamlError) {
        let mut problem = FileProblem::error("config-broken", config_path, parse_error.message.clone())
            .with_reason("Some settings could not be read.")
            .with_advice("fix the line, or run BMAD's installer again: `npx bmad-method install`");
        problem.line = parse_error.line;
        problem.column = parse_error.column;
        self.config.problems.push(problem);
    }

    fn merge_values(&mut self, module: &str, config_path: &str, root_node: &YamlNode) {
        if !matches!(root_node.content, YamlContent::Mapping(_) | YamlContent::Null) {
            let message = "expected keys and values";
            self.config
                .problems
                .push(FileProblem::error("config-no-keys", config_path, message).at_line(root_node.line));
        }
        for entry in root_node.entries() {
            let value = match &entry.value.content {
                YamlContent::Scalar(scalar) => scalar.clone(),
                YamlContent::Sequence(_) | YamlContent::Mapping(_) if FOLDER_KEYS.contains(&entry.key.as_str()) => {
                    let message = format!("`{}` is not a directory path; ignored", entry.key);
                    self.config
                        .problems
                        .push(FileProblem::error("config-folder", config_path, message).at_line(entry.line));
                    continue;
                }
                // Other lists and tables mean nothing to us, and a key without a value sets nothing.
                _ => continue,
            };
            // Each module's file repeats the core's keys; they stay the core's, or one setting would have several values.
            let owner = if CORE_KEYS.contains(&entry.key.as_str()) { "core" } else { module };
            let qualified = format!("{owner}.{}", entry.key);
            let origin = BmadConfigOrigin { path: config_path.to_string(), line: entry.line };
            self.config.said.insert(qualified.clone(), origin);
            self.config.values.insert(qualified, value);
        }
    }

    fn into_config(mut self) -> BmadConfig {
        let setting_text = |setting_key: &str, config: &BmadConfig| config.value(setting_key).map(str::to_string);
        self.config.project_name = setting_text("project_name", &self.config);
        self.config.user_name = setting_text("user_name", &self.config);
        self.config.communication_language = setting_text("communication_language", &self.config);
        self.config.document_language = setting_text("document_output_language", &self.config);
        self.config.skill_level = setting_text("user_skill_level", &self.config);
        self.resolve_folders();
        self.report_disagreements();
        self.config
    }

    fn resolve_folders(&mut self) {
        let output = self.resolve_folder(&["output_folder"], OUTPUT_FOLDER.to_string());
        let subdirectory = |directory: &str, name: &str| match directory {
            "" => name.to_string(),
            directory => format!("{directory}/{name}"),
        };
        // Before there were two folders for artifacts, plans were in the output folder and stories in one of their own.
        let is_early_layout = self.config.value("planning_artifacts").is_none()
            && ["dev_story_location", "dev_ephemeral_location", "sprint_artifacts"]
                .iter()
                .any(|setting_key| self.config.value(setting_key).is_some());
        let planning = if is_early_layout { output.clone() } else { subdirectory(&output, "planning-artifacts") };
        let planning = self.resolve_folder(&["planning_artifacts"], planning);
        // The names of the folder for stories, today's first.
        let story_keys =
            ["implementation_artifacts", "sprint_artifacts", "dev_ephemeral_location", "dev_story_location"];
        let implementation = self.resolve_folder(&story_keys, subdirectory(&output, "implementation-artifacts"));
        let knowledge = self.resolve_folder(&["project_knowledge", "tech_docs"], "docs".into());
        let tests = self.resolve_folder(&["test_artifacts"], subdirectory(&output, "test-artifacts"));
        self.config.folders = ProjectFolders { output, planning, implementation, knowledge, tests };
    }

    /// The folder that is set by the first of these keys with a value. A folder that cannot be used is reported, and the
    /// default applies.
    fn resolve_folder(&mut self, keys: &[&str], default: String) -> String {
        // The keys are the names of one setting through the eras, today's first.
        let Some(setting_key) = keys.iter().find(|setting_key| self.config.value(setting_key).is_some()) else {
            return default;
        };
        let written_folder = self.config.value(setting_key).unwrap_or_default().to_string();
        match self.resolve_path(&written_folder) {
            Ok(resolved) => resolved,
            Err(reason) => {
                let problem = match self.config.origin(setting_key) {
                    Some(origin) => FileProblem::error("config-folder", &origin.path, "").at_line(origin.line),
                    None => FileProblem::error("config-folder", CONFIG_PATH, ""),
                };
                let message = format!("`{setting_key}` is `{written_folder}`, which {reason}");
                self.config.problems.push(
                    FileProblem { what: message, ..problem }
                        .with_reason(format!("Tribunal uses `{default}` instead, but BMAD's workflows do not."))
                        .with_advice("use a directory inside the project: `{project-root}/NAME`"),
                );
                default
            }
        }
    }

    /// Resolves a written path to one below the project's root, or says why that is impossible.
    fn resolve_path(&self, written_path: &str) -> Result<String, String> {
        let expanded = self.expand_names(written_path.trim(), &mut { MAX_EXPANSIONS })?;
        // A file may have the absolute path of the project instead of `{project-root}`.
        let below_root = self.project_root.as_deref().and_then(|project_root| expanded.strip_prefix(project_root));
        let below_root =
            below_root.filter(|below_directory| below_directory.is_empty() || below_directory.starts_with('/'));
        let relative = expanded.strip_prefix("{project-root}").or(below_root).unwrap_or(&expanded);
        let is_rooted = relative.len() < expanded.len();
        let has_drive_letter = relative.as_bytes().get(1) == Some(&b':');
        // A cloned project must not make us read outside of it, so an absolute path or a drive letter is refused.
        if (relative.starts_with('/') && !is_rooted) || relative.starts_with('~') || has_drive_letter {
            return Err("is an absolute path".into());
        }
        let mut components: Vec<&str> = Vec::new();
        for component in relative.split(['/', '\\']) {
            match component {
                "" | "." => {}
                ".." if components.pop().is_none() => return Err("is outside the project".into()),
                ".." => {}
                component => components.push(component),
            }
        }
        Ok(components.join("/"))
    }

    /// Expands names in braces; `{project-root}` stays, and only at the front.
    fn expand_names(&self, written_text: &str, expansions_left: &mut usize) -> Result<String, String> {
        let mut expanded = String::new();
        let mut remaining_text = written_text;
        while let Some(start) = remaining_text.find('{') {
            let Some(end) = remaining_text[start..].find('}').map(|end| start + end) else { break };
            expanded.push_str(&remaining_text[..start]);
            let name = &remaining_text[start + 1..end];
            remaining_text = &remaining_text[end + 1..];
            if name == "project-root" || name == "project_root" {
                if !expanded.is_empty() {
                    return Err("has `{project-root}` in the middle".into());
                }
                expanded.push_str("{project-root}");
                continue;
            }
            let value = self.config.value(name).ok_or_else(|| format!("uses `{{{name}}}`, which is not set"))?;
            // A value that names itself would expand without end.
            *expansions_left =
                expansions_left.checked_sub(1).ok_or_else(|| format!("uses `{{{name}}}`, which refers to itself"))?;
            let value = self.expand_names(value.trim(), expansions_left)?;
            let value = value.trim_end_matches('/');
            // A folder behind another one is meant below it, even if it is written as starting at the root.
            let value = if expanded.is_empty() { value } else { normalize_folder(value) };
            expanded.push_str(value);
        }
        expanded.push_str(remaining_text);
        Ok(expanded)
    }

    /// Reports folders that differ between the files: late skills read the TOML files, while others of the same tree still
    /// read the YAML file.
    fn report_disagreements(&mut self) {
        for setting_key in ["output_folder", "planning_artifacts", "implementation_artifacts", "project_knowledge"] {
            let Some(qualified) = self.config.find_qualified_name(setting_key).map(str::to_string) else {
                continue;
            };
            let (Some((yaml_value, yaml_origin)), Some(toml_value), Some(origin)) = (
                self.yaml_values.get(&qualified),
                self.config.values.get(&qualified),
                self.config.said.get(&qualified),
            ) else {
                continue;
            };
            if normalize_folder(yaml_value) != normalize_folder(toml_value) {
                let message = format!(
                    "`{setting_key}` is `{toml_value}` here, but `{yaml_value}` in {}:{}",
                    yaml_origin.path, yaml_origin.line
                );
                let problem = FileProblem::warning("config-disagrees", &origin.path, message)
                    .at_line(origin.line)
                    .with_reason("Some of BMAD's skills read this file and some the other. Tribunal uses this one.")
                    .with_advice("set the same value in both files");
                self.config.problems.push(problem);
            }
        }
    }
}

/// Keys of the core that the installer repeats in every module's file.
const CORE_KEYS: [&str; 5] =
    ["user_name", "communication_language", "document_output_language", "output_folder", "project_name"];

/// The four TOML files of late eras, the weakest first.
pub(crate) fn toml_paths(bmad_root: &str) -> [String; 4] {
    ["config.toml", "config.user.toml", "custom/config.toml", "custom/config.user.toml"]
        .map(|name| format!("{bmad_root}/{name}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::project_files::InMemoryFiles;

    #[test]
    fn a_folder_is_understood_in_every_era() {
        for (written_folder, expected) in [
            ("{project-root}/_bmad-output", "_bmad-output"),
            ("_bmad-output", "_bmad-output"),
            ("./docs/out/", "docs/out"),
            ("/srv/out", "/srv/out"),
            (" {project-root} ", ""),
            ("", ""),
        ] {
            assert_eq!(normalize_folder(written_folder), expected, "{written_folder}");
        }
    }

    fn render_folders(files: &[(&str, &str)]) -> String {
        let config = read_config(&InMemoryFiles::from_files(files.iter().copied()));
        let ProjectFolders { output, planning, implementation, knowledge, tests } = &config.folders;
        let problems: String = config.problems.iter().map(|problem| format!("\n{problem}")).collect();
        format!("{output}|{planning}|{implementation}|{knowledge}|{tests}{problems}")
    }

    #[test]
    fn folders_are_found_in_every_era() {
        const A: &str = "planning_artifacts: \"{project-root}/out/plans\"\noutput_folder: \"{project-root}/out\"\n";
        const B: &str = "planning_artifacts: \"{output_folder}/plans\"\noutput_folder: out\n";
        let cases = [
            ("nothing at all", render_folders(&[])),
            ("A", render_folders(&[(CONFIG_PATH, A)])),
            ("B", render_folders(&[(CONFIG_PATH, B)])),
            ("core alone", render_folders(&[("_bmad/core/config.yaml", "output_folder: ./here/\n")])),
            ("the root", render_folders(&[(CONFIG_PATH, "output_folder: '{project-root}'\n")])),
            (
                "before two folders",
                render_folders(&[(
                    ".bmad/bmm/config.yaml",
                    "output_folder: '{project-root}/docs'\ndev_story_location: '{project-root}/docs/stories'\n",
                )]),
            ),
            (
                "four layers",
                render_folders(&[
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
        let cases: Vec<String> = cases.iter().map(|(name, rendered)| format!("{name}: {rendered}")).collect();
        insta::assert_snapshot!(cases.join("\n"));
    }

    #[test]
    fn an_impossible_folder_is_reported_and_the_default_is_kept() {
        let rendered_cases: Vec<String> = [
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
        .map(|text| render_folders(&[(CONFIG_PATH, text)]))
        .chain([render_folders(&[(
            "_bmad/config.toml",
            "[core]\noutput_folder = out\n[modules.bmm]\nplanning_artifacts = \"p\"\n",
        )])])
        .chain([render_folders(&[
            (CONFIG_PATH, "implementation_artifacts: '{project-root}/one'\n"),
            ("_bmad/custom/config.toml", "[modules.bmm]\nimplementation_artifacts = \"two\"\n"),
        ])])
        .collect();
        insta::assert_snapshot!(rendered_cases.join("\n"));
    }

    #[test]
    fn every_value_knows_which_file_set_it() {
        let config = read_config(&InMemoryFiles::from_files([
            ("_bmad/core/config.yaml", "user_name: A\n"),
            (CONFIG_PATH, "# top\nuser_name: B\nuser_skill_level: expert\ndocument_output_language: Klingon\n"),
            ("_bmad/config.user.toml", "[core]\nuser_name = \"C\"\n"),
            ("_bmad/cis/config.yaml", "own_key: 3.50\n"),
        ]));
        assert_eq!(config.user_name.as_deref(), Some("C"));
        assert_eq!(config.skill_level.as_deref(), Some("expert"));
        assert_eq!(config.document_language.as_deref(), Some("Klingon"));
        assert_eq!(config.value("own_key"), Some("3.50"));
        let origin_of =
            |setting_key: &str| config.origin(setting_key).map(|origin| format!("{}:{}", origin.path, origin.line));
        assert_eq!(origin_of("user_name").as_deref(), Some("_bmad/config.user.toml:2"));
        assert_eq!(origin_of("user_skill_level").as_deref(), Some("_bmad/bmm/config.yaml:3"));
        assert_eq!(origin_of("project_knowledge"), None);
        assert_eq!(config.problems, []);
    }

    #[test]
    fn a_folder_that_is_only_named_bmad_is_not_an_installation() {
        assert_eq!(find_bmad_root(&InMemoryFiles::from_files([("bmad/README.md", ""), ("_bmad/notes.txt", "")])), None);
        assert_eq!(find_bmad_root(&InMemoryFiles::from_files([("bmad/_cfg/manifest.yaml", "")])), Some("bmad"));
        assert_eq!(
            find_bmad_root(&InMemoryFiles::from_files([("bmad/core/config.yaml", ""), ("_bmad/config.toml", "")])),
            Some("_bmad")
        );
    }

    proptest! {
        #[test]
        fn any_value_gives_a_folder_inside_the_project(said in "[a-c{}./~\\\\_ -]{0,24}|\\{project-root\\}/[a-c./]{0,9}") {
            let text = format!("[core]\noutput_folder = '{said}'\n");
            let config = read_config(&InMemoryFiles::from_files([("_bmad/config.toml", text.as_str())]));
            for folder in [&config.folders.output, &config.folders.planning, &config.folders.tests] {
                prop_assert!(!folder.starts_with('/') && !folder.split('/').any(|part| part == ".."), "{folder}");
            }
        }
    }
}
