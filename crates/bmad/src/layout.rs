//! Which era of BMAD is installed, by its version and by its files, and through which entry points clients run it.
//!
//! The version names the era. The files are checked as well, and a disagreement is reported: its usual cause is an update
//! that was not finished. Which command runs a step is not decided here but in `commands`, from the files that exist.

use std::fmt;

use tribunal_json::{Serialize, schemars};

use crate::{
    config,
    manifest::{self, InstallManifest, InstalledModule},
    problem::{FileProblem, rules},
    project_files::{self, ProjectFiles},
};

/// The layouts that BMAD has had; each keeps other files in other places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
pub enum Era {
    /// 6.0 alpha: a tree of commands, `workflow-status`.
    A,
    /// 6.0 beta to 6.0.4: flat commands, `bmad-help.csv`.
    B,
    /// 6.1: skills that point to workflows in `_bmad`.
    C1,
    /// 6.2 and 6.3: workflows inside the skills.
    C2,
    /// 6.4 to 6.10: settings in TOML, skills that can be customized.
    C3,
    /// 6.11 and later: `bmad-build` instead of stories written ahead.
    D,
}

impl Era {
    /// The versions that the era stands for.
    pub fn version_range(self) -> &'static str {
        match self {
            Era::A => "6.0 alpha",
            Era::B => "6.0 beta to 6.0.x",
            Era::C1 => "6.1",
            Era::C2 => "6.2 and 6.3",
            Era::C3 => "6.4 to 6.10",
            Era::D => "6.11 and later",
        }
    }

    /// The era of a version; `None` for every major version but 6.
    pub fn from_version(version: &str) -> Option<Era> {
        // Manifests also say `v6.1.0` and `=6.1.0`.
        let version = version.trim().trim_start_matches(['v', '=']);
        let (numbers, tag) = version.split_once(['-', '+']).unwrap_or((version, ""));
        let mut numbers = numbers.split('.').map(|digits| digits.parse::<u32>().ok());
        let (major, minor) = (numbers.next()??, numbers.next().unwrap_or(Some(0))?);
        match (major, minor) {
            (6, 0) if tag.to_lowercase().starts_with("alpha") => Some(Era::A),
            (6, 0) => Some(Era::B),
            (6, 1) => Some(Era::C1),
            (6, 2 | 3) => Some(Era::C2),
            (6, 4..=10) => Some(Era::C3),
            (6, _) => Some(Era::D),
            _ => None,
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self:?}")
    }
}

/// How the entry points of a client are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EntryPointKind {
    /// `commands/bmad/bmm/workflows/dev-story.md`.
    CommandTree,
    /// `commands/bmad-bmm-dev-story.md`.
    Commands,
    /// `skills/bmad-dev-story/SKILL.md`.
    Skills,
}

/// The entry points that one client finds, or all clients that share a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ClientEntryPoints {
    /// `claude`, `opencode`, `gemini`; or `agents` for the directory that codex, opencode, gemini and others share.
    pub name: String,
    pub entries: EntryPointKind,
    pub folder: String,
    /// The number of BMAD's entry points.
    pub count: usize,
}

/// How BMAD is installed in a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct BmadLayout {
    /// `_bmad`; in early alphas `.bmad` or `bmad`; `None` if BMAD is not installed here.
    pub root: Option<String>,
    pub era: Option<Era>,
    pub version: Option<String>,
    pub by_version: Option<Era>,
    pub by_files: Option<Era>,
    /// What was found, one sentence each.
    pub reasons: Vec<String>,
    pub clients: Vec<ClientEntryPoints>,
    pub modules: Vec<InstalledModule>,
    /// Whether workflows of earlier versions are installed beside those of era D.
    pub shims: bool,
    /// Whether the project has files of BMAD 4.
    pub v4: bool,
    #[serde(skip)]
    pub problems: Vec<FileProblem>,
}

impl BmadLayout {
    pub fn has_module(&self, module_name: &str) -> bool {
        self.modules.iter().any(|module| module.name == module_name)
    }
}

/// The directories of entry points: which client looks there, the path, and whether it holds skills or commands.
const ENTRY_POINT_DIRS: [(&str, &str, bool); 20] = [
    ("claude", ".claude/skills", true),
    ("claude", ".claude/commands", false),
    ("agents", ".agents/skills", true),
    ("opencode", ".opencode/skills", true),
    ("opencode", ".opencode/command", false),
    ("opencode", ".opencode/commands", false),
    ("gemini", ".gemini/skills", true),
    ("gemini", ".gemini/commands", false),
    ("cline", ".cline/skills", true),
    ("qwen", ".qwen/skills", true),
    ("kiro", ".kiro/skills", true),
    ("agent", ".agent/skills", true),
    ("trae", ".trae/skills", true),
    // 6.3 also had directories of their own for these.
    ("github", ".github/skills", true),
    ("cursor", ".cursor/skills", true),
    ("windsurf", ".windsurf/skills", true),
    ("roo", ".roo/skills", true),
    ("kilocode", ".kilocode/skills", true),
    ("augment", ".augment/skills", true),
    ("crush", ".crush/skills", true),
];

/// Detects how BMAD is installed. A project without BMAD gives an empty layout, with a problem if it has BMAD 4.
pub fn read_layout(project_files: &dyn ProjectFiles) -> BmadLayout {
    let mut layout = BmadLayout { v4: !project_files.list_names(".bmad-core").is_empty(), ..BmadLayout::default() };
    layout.clients = find_clients(project_files);
    if layout.v4 {
        layout.reasons.push("found `.bmad-core` (BMAD 4)".into());
    }
    // A project with BMAD 4 only has nothing that could be read, but the user should know why.
    let Some(bmad_root) = config::find_bmad_root(project_files) else {
        if layout.v4 {
            let message = "BMAD 4 is not supported; its files are ignored";
            let problem = FileProblem::warning("layout-v4", ".bmad-core", message);
            layout.problems.push(problem.with_advice("install BMAD 6 alongside it: `npx bmad-method install`"));
        }
        return layout;
    };
    layout.root = Some(bmad_root.to_string());
    let manifest = load_manifest(project_files, bmad_root, &mut layout);
    layout.version = manifest.version.clone();
    layout.modules = manifest.modules;
    layout.shims = manifest.shims;
    // The manifest's problems come before those of the comparison, in the order of reading.
    layout.problems.extend(manifest.problems);
    let manifest_file = find_manifest_path(project_files, bmad_root);
    detect_by_version(&mut layout, &manifest_file);
    layout.by_files = detect_by_files(project_files, bmad_root, &layout.clients, &mut layout.reasons);
    // The version decides where it is known: files of an old era may stay behind after an update.
    layout.era = layout.by_version.or(layout.by_files);
    let read_from = ManifestLocation { path: &manifest_file, line: manifest.version_line };
    report_disagreements(&mut layout, bmad_root, &read_from);
    layout
}

/// The manifest's path: early alphas have `_cfg`, later ones `_config`.
fn find_manifest_path(project_files: &dyn ProjectFiles, root: &str) -> String {
    let names = project_files.list_names(root);
    let directory = if names.iter().any(|name| name == "_cfg/") && !names.iter().any(|name| name == "_config/") {
        "_cfg"
    } else {
        "_config"
    };
    format!("{root}/{directory}/manifest.yaml")
}

fn load_manifest(project_files: &dyn ProjectFiles, root: &str, layout: &mut BmadLayout) -> InstallManifest {
    let manifest_file = find_manifest_path(project_files, root);
    match project_files::read_or_report(project_files, &manifest_file, &mut layout.problems) {
        Some(manifest_text) => manifest::read_manifest(&manifest_file, &manifest_text),
        None => {
            // A manifest that exists and cannot be read has its own problem already.
            if layout.problems.is_empty() {
                let message = "manifest not found, although BMAD's directory exists";
                layout.problems.push(
                    FileProblem::warning(rules::MANIFEST_MISSING, &manifest_file, message)
                        .with_reason("The version was guessed from the installed files.")
                        .with_advice("run BMAD's installer again: `npx bmad-method install`"),
                );
            }
            InstallManifest::default()
        }
    }
}

fn detect_by_version(layout: &mut BmadLayout, manifest_file: &str) {
    let Some(version) = &layout.version else { return };
    layout.by_version = Era::from_version(version);
    match layout.by_version {
        Some(era) => layout.reasons.push(format!("version {version} belongs to era {era} ({})", era.version_range())),
        None => {
            layout.reasons.push(format!("version {version} belongs to no known era"));
            let problem = FileProblem::warning(
                "layout-unknown-version",
                manifest_file,
                format!("BMAD {version} is not known to this version of Tribunal"),
            );
            layout.problems.push(
                problem
                    .with_reason("Tribunal treats it as the era that its files match and ignores anything newer.")
                    .with_advice("check for a newer version of Tribunal"),
            );
        }
    }
}

/// Detects the era by files that tell it from the others. Signs of the newest eras come first, since an update may leave old
/// files behind.
fn detect_by_files(
    project_files: &dyn ProjectFiles,
    root: &str,
    clients: &[ClientEntryPoints],
    reasons: &mut Vec<String>,
) -> Option<Era> {
    let path_exists = |checked_path: &str| is_path_listed(project_files, checked_path);
    let skill_directories: Vec<&str> = clients
        .iter()
        .filter(|client| client.entries == EntryPointKind::Skills)
        .map(|client| client.folder.as_str())
        .collect();
    let find_skill_path = |relative_path: &str| {
        skill_directories
            .iter()
            .map(|directory| format!("{directory}/{relative_path}"))
            .find(|checked_path| path_exists(checked_path))
    };
    let find_in_root =
        |relative_path: &str| Some(format!("{root}/{relative_path}")).filter(|checked_path| path_exists(checked_path));
    let workflow_xml = || find_in_root("core/tasks/workflow.xml");
    let find_entry_directory = |entries: EntryPointKind| {
        clients.iter().find(|client| client.entries == entries).map(|client| client.folder.clone())
    };

    // The order is the rule: the first sign that is found decides.
    type EraSign<'a> = (Era, &'a dyn Fn() -> Option<String>);
    let signs: [EraSign<'_>; 11] = [
        (Era::D, &|| find_skill_path("bmad-build-auto/").or_else(|| find_skill_path("bmad-build/"))),
        (Era::D, &|| find_in_root("render/")),
        (Era::C3, &|| find_in_root("config.toml")),
        (Era::C1, &|| find_in_root("bmm/workflows/4-implementation/dev-story/workflow.md")),
        (Era::C2, &|| find_skill_path("bmad-dev-story/workflow.md")),
        // The skill manifest of C2 also exists in C1, whose engine is still there.
        (Era::C2, &|| find_in_root("_config/skill-manifest.csv").filter(|_| workflow_xml().is_none())),
        (Era::A, &|| find_in_root("bmm/workflows/workflow-status/")),
        (Era::A, &|| find_in_root("_cfg/")),
        (Era::B, &|| find_in_root("_config/bmad-help.csv").filter(|_| workflow_xml().is_some())),
        (Era::A, &|| find_entry_directory(EntryPointKind::CommandTree)),
        (Era::B, &|| find_entry_directory(EntryPointKind::Commands).filter(|_| workflow_xml().is_some())),
    ];
    let first_match = signs.iter().find_map(|(era, sign)| sign().map(|found_path| (*era, found_path)));
    match &first_match {
        Some((era, found_path)) => {
            let found_path = found_path.trim_end_matches('/');
            reasons.push(format!("found `{found_path}` and nothing from a later era, so this is era {era}"));
        }
        None => reasons.push(format!("nothing in `{root}` identifies the era")),
    }
    first_match.map(|(era, _)| era)
}

/// Whether a path exists. A path with a slash at the end means a directory; a file of the same name does not count.
fn is_path_listed(project_files: &dyn ProjectFiles, checked_path: &str) -> bool {
    let (directory, wanted_name) = checked_path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", checked_path));
    let is_directory = checked_path.ends_with('/');
    project_files.list_names(directory).iter().any(|existing_name| match existing_name.strip_suffix('/') {
        Some(existing_name) => is_directory && existing_name == wanted_name,
        None => !is_directory && existing_name == wanted_name,
    })
}

/// Where the manifest states its version.
struct ManifestLocation<'p> {
    path: &'p str,
    line: Option<usize>,
}

/// Reports a version that does not match the files, an unknown era and an outdated root directory.
fn report_disagreements(layout: &mut BmadLayout, root: &str, manifest_location: &ManifestLocation<'_>) {
    let manifest_file = manifest_location.path;
    if let (Some(era_by_version), Some(era_by_files)) = (layout.by_version, layout.by_files)
        && era_by_version != era_by_files
    {
        let version = layout.version.as_deref().unwrap_or_default();
        let message = format!(
            "version {version} belongs to era {era_by_version}, but the files are from era {era_by_files} ({})",
            era_by_files.version_range()
        );
        let mut problem = FileProblem::warning("layout-disagrees", manifest_file, message)
            .with_reason("This looks like an unfinished update. Tribunal uses the commands that are installed.")
            .with_advice("run BMAD's installer again for the clients you use: `npx bmad-method install`");
        problem.line = manifest_location.line;
        layout.problems.push(problem);
    }
    if layout.era.is_none() {
        // This problem covers the ones about the manifest, which would only repeat it.
        layout
            .problems
            .retain(|problem| ![rules::MANIFEST_MISSING, rules::MANIFEST_NO_VERSION].contains(&problem.rule));
        let message = "cannot tell which version of BMAD is installed, neither by its manifest nor by its files";
        let problem = FileProblem::warning("layout-unknown", manifest_file, message)
            .with_reason("Tribunal does not know which commands run its workflows.");
        layout.problems.push(problem.with_advice("run BMAD's installer again: `npx bmad-method install`"));
    }
    if root != "_bmad" {
        let message = format!("BMAD is installed in `{root}`, which only early alphas used");
        let problem = FileProblem::warning("layout-legacy-root", root, message);
        layout.problems.push(problem.with_advice("update it: `npx bmad-method install`"));
    }
}

fn find_clients(project_files: &dyn ProjectFiles) -> Vec<ClientEntryPoints> {
    let mut clients = Vec::new();
    for (name, directory, holds_skills) in ENTRY_POINT_DIRS {
        let entry_names = project_files.list_names(directory);
        let make_client = |entries: EntryPointKind, directory: String, count: usize| ClientEntryPoints {
            name: name.into(),
            entries,
            folder: directory,
            count,
        };
        if holds_skills {
            let count = entry_names
                .iter()
                .filter(|entry_name| is_bmad_entry_point(entry_name) && entry_name.ends_with('/'))
                .count();
            clients.push(make_client(EntryPointKind::Skills, directory.into(), count));
            continue;
        }
        let count = entry_names
            .iter()
            .filter(|entry_name| is_bmad_entry_point(entry_name) && !entry_name.ends_with('/'))
            .count();
        clients.push(make_client(EntryPointKind::Commands, directory.into(), count));
        // A tree of commands may lie beside flat commands; both are counted.
        if entry_names.iter().any(|entry_name| entry_name == "bmad/") {
            let tree_directory = format!("{directory}/bmad");
            let count = count_command_tree(project_files, &tree_directory);
            clients.push(make_client(EntryPointKind::CommandTree, tree_directory, count));
        }
    }
    // An empty directory of entry points belongs to another tool.
    clients.retain(|client| client.count > 0);
    clients
}

fn is_bmad_entry_point(entry_name: &str) -> bool {
    entry_name.starts_with("bmad-")
}

/// Counts the files of `bmad/MODULE/KIND/NAME.md`.
fn count_command_tree(project_files: &dyn ProjectFiles, directory: &str) -> usize {
    let list_directories = |directory: &str| -> Vec<String> {
        let names = project_files.list_names(directory).into_iter().filter(|name| name.ends_with('/'));
        names.map(|name| format!("{directory}/{}", name.trim_end_matches('/'))).collect()
    };
    let kind_directories = list_directories(directory).into_iter().flat_map(|module| list_directories(&module));
    kind_directories
        .map(|kind_directory| {
            project_files.list_names(&kind_directory).iter().filter(|name| !name.ends_with('/')).count()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project_files::InMemoryFiles;

    fn manifest_with_version(version: &str) -> String {
        format!("installation:\n  version: {version}\nmodules:\n  - name: bmm\n    version: {version}\n")
    }

    /// The files that are typical of each era.
    fn files_of_era(era: Era) -> Vec<(&'static str, &'static str)> {
        let mut files = match era {
            Era::A => vec![
                ("_bmad/core/tasks/workflow.xml", ""),
                ("_bmad/bmm/workflows/workflow-status/workflow.yaml", ""),
                (".claude/commands/bmad/bmm/workflows/dev-story.md", ""),
            ],
            Era::B => vec![
                ("_bmad/core/tasks/workflow.xml", ""),
                ("_bmad/_config/bmad-help.csv", ""),
                (".claude/commands/bmad-bmm-dev-story.md", ""),
            ],
            Era::C1 => vec![
                ("_bmad/bmm/workflows/4-implementation/dev-story/workflow.md", ""),
                ("_bmad/_config/skill-manifest.csv", ""),
                (".claude/skills/bmad-dev-story/SKILL.md", ""),
            ],
            Era::C2 => vec![
                ("_bmad/_config/skill-manifest.csv", ""),
                (".claude/skills/bmad-dev-story/SKILL.md", ""),
                (".claude/skills/bmad-dev-story/workflow.md", ""),
            ],
            Era::C3 => vec![
                ("_bmad/config.toml", ""),
                ("_bmad/_config/skill-manifest.csv", ""),
                (".claude/skills/bmad-dev-story/SKILL.md", ""),
            ],
            Era::D => vec![("_bmad/config.toml", ""), (".claude/skills/bmad-build-auto/SKILL.md", "")],
        };
        files.push(("_bmad/bmm/config.yaml", ""));
        files
    }

    #[test]
    fn versions_name_their_era() {
        for (version, era) in [
            ("6.0.0-alpha.7", Some(Era::A)),
            ("6.0.0-alpha.23", Some(Era::A)),
            ("6.0.0-Beta.0", Some(Era::B)),
            ("6.0.4", Some(Era::B)),
            ("v6.1.0", Some(Era::C1)),
            ("6.2.0", Some(Era::C2)),
            ("6.3.0", Some(Era::C2)),
            ("6.4.1-next.3", Some(Era::C3)),
            ("6.10", Some(Era::C3)),
            ("6.11.1-next.24", Some(Era::D)),
            ("6.40.0", Some(Era::D)),
            ("4.44.3", None),
            ("7.0.0", None),
            ("new", None),
            ("", None),
        ] {
            assert_eq!(Era::from_version(version), era, "{version}");
        }
    }

    #[test]
    fn every_era_is_told_by_its_files_alone_and_by_its_version() {
        for (era, version) in [
            (Era::A, "6.0.0-alpha.22"),
            (Era::B, "6.0.4"),
            (Era::C1, "6.1.0"),
            (Era::C2, "6.3.0"),
            (Era::C3, "6.10.0"),
            (Era::D, "6.12.0"),
        ] {
            let mut project_files = InMemoryFiles::from_files(files_of_era(era));
            assert_eq!(read_layout(&project_files).by_files, Some(era));
            project_files.insert_file("_bmad/_config/manifest.yaml", &manifest_with_version(version));
            let layout = read_layout(&project_files);
            assert_eq!((layout.era, layout.by_version), (Some(era), Some(era)));
            assert_eq!(layout.problems, [], "{era}");
            assert!(layout.has_module("bmm") && !layout.has_module("tea"));
        }
    }

    fn render_layout(files: &[(&str, &str)]) -> String {
        let layout = read_layout(&InMemoryFiles::from_files(files.iter().copied()));
        let render_era = |era: Option<Era>| era.map_or("-".into(), |era| era.to_string());
        let mut lines = vec![format!(
            "{} in {}, version {}, files {}, v4 {}",
            render_era(layout.era),
            layout.root.as_deref().unwrap_or("-"),
            render_era(layout.by_version),
            render_era(layout.by_files),
            layout.v4
        )];
        lines.extend(layout.reasons.iter().map(|reason| format!("  {reason}")));
        lines.extend(
            layout
                .clients
                .iter()
                .map(|client| format!("  {} {:?} {} {}", client.name, client.entries, client.folder, client.count)),
        );
        lines.extend(layout.problems.iter().map(|problem| format!("  {:?} {problem}", problem.weight)));
        lines.join("\n")
    }

    #[test]
    fn a_layout_that_disagrees_is_unknown_or_is_missing_is_explained() {
        const M: &str = "_bmad/_config/manifest.yaml";
        let layouts = [
            render_layout(&[]),
            render_layout(&[("README.md", "")]),
            render_layout(&[(".bmad-core/core-config.yaml", "")]),
            render_layout(&[
                (M, &manifest_with_version("6.12.0")),
                ("_bmad/config.toml", ""),
                (".claude/skills/bmad-dev-story/SKILL.md", ""),
            ]),
            render_layout(&[
                (M, &manifest_with_version("7.1.0")),
                ("_bmad/config.toml", ""),
                (".agents/skills/bmad-build/SKILL.md", ""),
            ]),
            render_layout(&[(M, "")]),
            render_layout(&[("_bmad/bmm/config.yaml", "")]),
            render_layout(&[
                ("bmad/_cfg/manifest.yaml", &manifest_with_version("6.0.0-alpha.7")),
                (".claude/commands/bmad/bmm/workflows/dev-story.md", ""),
                (".claude/commands/bmad/bmm/agents/dev.md", ""),
            ]),
        ];
        insta::assert_snapshot!(layouts.join("\n"));
    }

    #[test]
    fn the_entry_points_of_every_client_are_found() {
        let rendered = render_layout(&[
            (".claude/skills/bmad-dev-story/SKILL.md", ""),
            (".claude/skills/mine/SKILL.md", ""),
            (".claude/commands/mine.md", ""),
            (".agents/skills/bmad-help/SKILL.md", ""),
            (".opencode/command/bmad-help.md", ""),
            (".gemini/commands/bmad-help.toml", ""),
        ]);
        insta::assert_snapshot!(rendered);
    }
}
