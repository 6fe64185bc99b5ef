//! Which era of BMAD is installed, by its version and by its files, and through which entry points clients run it.
//!
//! The version names the era. The files are checked as well, and a disagreement is reported: its usual cause is an update
//! that was not finished. Which command runs a step is not decided here but in `commands`, from the files that exist.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    config,
    manifest::{self, Manifest, Module},
    problem::{Problem, rules},
    shelf::{self, Shelf},
};

/// The layouts that BMAD has had; each keeps other files in other places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
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
    pub fn versions(self) -> &'static str {
        match self {
            Era::A => "6.0 alpha",
            Era::B => "6.0 beta to 6.0.x",
            Era::C1 => "6.1",
            Era::C2 => "6.2 and 6.3",
            Era::C3 => "6.4 to 6.10",
            Era::D => "6.11 and later",
        }
    }

    /// The era of a version; `None` for versions before the first era and after the last known one.
    pub fn of_version(version: &str) -> Option<Era> {
        // Manifests also say `v6.1.0` and `=6.1.0`.
        let version = version.trim().trim_start_matches(['v', '=']);
        let (numbers, tag) = version.split_once(['-', '+']).unwrap_or((version, ""));
        let mut numbers = numbers.split('.').map(|number| number.parse::<u32>().ok());
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
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// How the entry points of a client are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Entries {
    /// `commands/bmad/bmm/workflows/dev-story.md`.
    CommandTree,
    /// `commands/bmad-bmm-dev-story.md`.
    Commands,
    /// `skills/bmad-dev-story/SKILL.md`.
    Skills,
}

/// The entry points that one client finds, or all clients that share a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Client {
    /// `claude`, `opencode`, `gemini`; or `agents` for the directory that codex, opencode, gemini and others share.
    pub name: String,
    pub entries: Entries,
    pub folder: String,
    /// The number of BMAD's entry points.
    pub count: usize,
}

/// How BMAD is installed in a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Layout {
    /// `_bmad`; in early alphas `.bmad` or `bmad`; `None` if BMAD is not installed here.
    pub root: Option<String>,
    pub era: Option<Era>,
    pub version: Option<String>,
    pub by_version: Option<Era>,
    pub by_files: Option<Era>,
    /// What was found, one sentence each.
    pub reasons: Vec<String>,
    pub clients: Vec<Client>,
    pub modules: Vec<Module>,
    /// Whether workflows of earlier versions are installed beside those of era D.
    pub shims: bool,
    /// Whether the project has files of BMAD 4.
    pub v4: bool,
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

impl Layout {
    pub fn has_module(&self, name: &str) -> bool {
        self.modules.iter().any(|module| module.name == name)
    }
}

/// The directories of entry points: which client looks there, the path, and whether it holds skills or commands.
const PLACES: [(&str, &str, bool); 8] = [
    ("claude", ".claude/skills", true),
    ("claude", ".claude/commands", false),
    ("agents", ".agents/skills", true),
    ("opencode", ".opencode/skills", true),
    ("opencode", ".opencode/command", false),
    ("opencode", ".opencode/commands", false),
    ("gemini", ".gemini/skills", true),
    ("gemini", ".gemini/commands", false),
];

/// Detects how BMAD is installed. A project without BMAD gives an empty layout, with a problem if it has BMAD 4.
pub fn read(shelf: &dyn Shelf) -> Layout {
    let mut layout = Layout { v4: !shelf.names(".bmad-core").is_empty(), ..Layout::default() };
    layout.clients = clients(shelf);
    if layout.v4 {
        layout.reasons.push("`.bmad-core` is there: BMAD 4".into());
    }
    // A project with BMAD 4 only has nothing that could be read, but the user should know why.
    let Some(root) = config::root(shelf) else {
        if layout.v4 {
            let what = "this is BMAD 4, whose files are not read";
            let problem = Problem::warning("layout-v4", ".bmad-core", what);
            layout.problems.push(problem.todo("install BMAD 6 beside it: npx bmad-method install"));
        }
        return layout;
    };
    layout.root = Some(root.to_string());
    let manifest = manifest_of(shelf, root, &mut layout);
    layout.version = manifest.version.clone();
    layout.modules = manifest.modules;
    layout.shims = manifest.shims;
    // The manifest's problems come before those of the comparison, in the order of reading.
    layout.problems.extend(manifest.problems);
    let path = manifest_path(shelf, root);
    by_version(&mut layout, &path);
    layout.by_files = by_files(shelf, root, &layout.clients, &mut layout.reasons);
    // The version decides where it is known: files of an old era often stay behind after an update.
    layout.era = layout.by_version.or(layout.by_files);
    let read_from = ManifestPlace { path: &path, line: manifest.line };
    disagreement(&mut layout, root, &read_from);
    layout
}

/// The manifest's path: early alphas have `_cfg`, later ones `_config`.
fn manifest_path(shelf: &dyn Shelf, root: &str) -> String {
    let names = shelf.names(root);
    let folder = if names.iter().any(|name| name == "_cfg/") && !names.iter().any(|name| name == "_config/") {
        "_cfg"
    } else {
        "_config"
    };
    format!("{root}/{folder}/manifest.yaml")
}

fn manifest_of(shelf: &dyn Shelf, root: &str, layout: &mut Layout) -> Manifest {
    let path = manifest_path(shelf, root);
    match shelf::read(shelf, &path, &mut layout.problems) {
        Some(text) => manifest::read(&path, &text),
        None => {
            // A manifest that exists and cannot be read has its own problem already.
            if layout.problems.is_empty() {
                let what = "there is no manifest, though BMAD's folder is there";
                layout.problems.push(
                    Problem::warning(rules::MANIFEST_MISSING, &path, what)
                        .why("the version was told by the files that are there")
                        .todo("run BMAD's installer again"),
                );
            }
            Manifest::default()
        }
    }
}

fn by_version(layout: &mut Layout, path: &str) {
    let Some(version) = &layout.version else { return };
    layout.by_version = Era::of_version(version);
    match layout.by_version {
        Some(era) => layout.reasons.push(format!("version {version} is of era {era} ({})", era.versions())),
        None => {
            layout.reasons.push(format!("version {version} is of no era that is known"));
            let problem = Problem::warning(
                "layout-unknown-version",
                path,
                format!("BMAD {version} is not known to this version of Tribunal"),
            );
            layout.problems.push(
                problem
                    .why("it is treated as the era whose files it has; what is new in it is not seen")
                    .todo("look for a newer Tribunal"),
            );
        }
    }
}

/// Detects the era by files that only one era has, the newest first: an update leaves old files behind more often than it
/// brings new ones too early.
fn by_files(shelf: &dyn Shelf, root: &str, clients: &[Client], reasons: &mut Vec<String>) -> Option<Era> {
    // A path with a slash at the end means a directory; a file of the same name does not count.
    let has = |path: &str| {
        let (folder, name) = path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", path));
        let folders = path.ends_with('/');
        shelf.names(folder).iter().any(|there| match there.strip_suffix('/') {
            Some(there) => folders && there == name,
            None => !folders && there == name,
        })
    };
    let skills: Vec<&str> = clients
        .iter()
        .filter(|client| client.entries == Entries::Skills)
        .map(|client| client.folder.as_str())
        .collect();
    let skill = |path: &str| skills.iter().map(|folder| format!("{folder}/{path}")).find(|path| has(path));
    let in_root = |path: &str| Some(format!("{root}/{path}")).filter(|path| has(path));
    let workflow_xml = || in_root("core/tasks/workflow.xml");
    let commands = |entries: Entries| {
        clients.iter().find(|client| client.entries == entries).map(|client| client.folder.clone())
    };

    // The order is the rule: the first sign that is found decides, so each later era comes before the ones it may be mixed
    // with.
    type Sign<'a> = (Era, &'a dyn Fn() -> Option<String>);
    let signs: [Sign<'_>; 11] = [
        (Era::D, &|| skill("bmad-build-auto/").or_else(|| skill("bmad-build/"))),
        (Era::D, &|| in_root("render/")),
        (Era::C3, &|| in_root("config.toml")),
        (Era::C1, &|| in_root("bmm/workflows/4-implementation/dev-story/workflow.md")),
        (Era::C2, &|| skill("bmad-dev-story/workflow.md")),
        // The skill manifest of C2 also exists in C1, whose engine is still there.
        (Era::C2, &|| in_root("_config/skill-manifest.csv").filter(|_| workflow_xml().is_none())),
        (Era::A, &|| in_root("bmm/workflows/workflow-status/")),
        (Era::A, &|| in_root("_cfg/")),
        (Era::B, &|| in_root("_config/bmad-help.csv").filter(|_| workflow_xml().is_some())),
        (Era::A, &|| commands(Entries::CommandTree)),
        (Era::B, &|| commands(Entries::Commands).filter(|_| workflow_xml().is_some())),
    ];
    let found = signs.iter().find_map(|(era, sign)| sign().map(|seen| (*era, seen)));
    match &found {
        Some((era, seen)) => {
            let seen = seen.trim_end_matches('/');
            reasons.push(format!("`{seen}` is there, and nothing of a later era: era {era}"));
        }
        None => reasons.push(format!("nothing in `{root}` tells its era")),
    }
    found.map(|(era, _)| era)
}

/// Where the manifest states its version.
struct ManifestPlace<'p> {
    path: &'p str,
    line: Option<usize>,
}

/// Reports a version that does not match the files, an unknown era and an outdated root directory.
fn disagreement(layout: &mut Layout, root: &str, manifest: &ManifestPlace<'_>) {
    let path = manifest.path;
    if let (Some(said), Some(seen)) = (layout.by_version, layout.by_files)
        && said != seen
    {
        let version = layout.version.as_deref().unwrap_or_default();
        let what = format!(
            "version {version} is of era {said}, and the files are those of era {seen} ({})",
            seen.versions()
        );
        let mut problem = Problem::warning("layout-disagrees", path, what)
            .why("an update that was not finished looks like this; commands are taken from what is there")
            .todo("run BMAD's installer again for the clients you use");
        problem.line = manifest.line;
        layout.problems.push(problem);
    }
    if layout.era.is_none() {
        // This problem covers the ones about the manifest, which would only repeat it.
        layout
            .problems
            .retain(|problem| ![rules::MANIFEST_MISSING, rules::MANIFEST_NO_VERSION].contains(&problem.rule));
        let what = "BMAD is installed, and neither its version nor its files tell which one";
        let problem = Problem::warning("layout-unknown", path, what)
            .why("which commands run its workflows is not known");
        layout.problems.push(problem.todo("run BMAD's installer again"));
    }
    if root != "_bmad" {
        let what = format!("BMAD stands in `{root}`, where only early alphas put it");
        let problem = Problem::warning("layout-legacy-root", root, what);
        layout.problems.push(problem.todo("bring it up to date: npx bmad-method install"));
    }
}

fn clients(shelf: &dyn Shelf) -> Vec<Client> {
    let mut clients = Vec::new();
    for (name, folder, skills) in PLACES {
        let names = shelf.names(folder);
        let client = |entries: Entries, folder: String, count: usize| Client {
            name: name.into(),
            entries,
            folder,
            count,
        };
        if skills {
            let count = names.iter().filter(|name| is_entry(name) && name.ends_with('/')).count();
            clients.push(client(Entries::Skills, folder.into(), count));
            continue;
        }
        let count = names.iter().filter(|name| is_entry(name) && !name.ends_with('/')).count();
        clients.push(client(Entries::Commands, folder.into(), count));
        // A tree of commands may lie beside flat commands; both are counted.
        if names.iter().any(|name| name == "bmad/") {
            let folder = format!("{folder}/bmad");
            let count = tree_size(shelf, &folder);
            clients.push(client(Entries::CommandTree, folder, count));
        }
    }
    // An empty directory of entry points belongs to another tool.
    clients.retain(|client| client.count > 0);
    clients
}

fn is_entry(name: &str) -> bool {
    name.starts_with("bmad-")
}

/// Counts the files of `bmad/MODULE/KIND/NAME.md`.
fn tree_size(shelf: &dyn Shelf, folder: &str) -> usize {
    let folders = |folder: &str| -> Vec<String> {
        let names = shelf.names(folder).into_iter().filter(|name| name.ends_with('/'));
        names.map(|name| format!("{folder}/{}", name.trim_end_matches('/'))).collect()
    };
    let kinds = folders(folder).into_iter().flat_map(|module| folders(&module));
    kinds.map(|kind| shelf.names(&kind).iter().filter(|name| !name.ends_with('/')).count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shelf::Kept;

    fn manifest(version: &str) -> String {
        format!("installation:\n  version: {version}\nmodules:\n  - name: bmm\n    version: {version}\n")
    }

    /// The files that are typical of each era.
    fn files(era: Era) -> Vec<(&'static str, &'static str)> {
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
            assert_eq!(Era::of_version(version), era, "{version}");
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
            let mut shelf = Kept::with(files(era));
            assert_eq!(read(&shelf).by_files, Some(era));
            shelf.put("_bmad/_config/manifest.yaml", &manifest(version));
            let layout = read(&shelf);
            assert_eq!((layout.era, layout.by_version), (Some(era), Some(era)));
            assert_eq!(layout.problems, [], "{era}");
            assert!(layout.has_module("bmm") && !layout.has_module("tea"));
        }
    }

    fn drawn(files: &[(&str, &str)]) -> String {
        let layout = read(&Kept::with(files.iter().copied()));
        let era = |era: Option<Era>| era.map_or("-".into(), |era| era.to_string());
        let mut lines = vec![format!(
            "{} in {}, version {}, files {}, v4 {}",
            era(layout.era),
            layout.root.as_deref().unwrap_or("-"),
            era(layout.by_version),
            era(layout.by_files),
            layout.v4
        )];
        lines.extend(layout.reasons.iter().map(|reason| format!("  {reason}")));
        lines.extend(layout.clients.iter().map(|client| {
            format!("  {} {:?} {} {}", client.name, client.entries, client.folder, client.count)
        }));
        lines.extend(layout.problems.iter().map(|problem| format!("  {:?} {problem}", problem.weight)));
        lines.join("\n")
    }

    #[test]
    fn what_disagrees_is_unknown_or_is_not_there_is_explained() {
        const M: &str = "_bmad/_config/manifest.yaml";
        let all = [
            drawn(&[]),
            drawn(&[("README.md", "")]),
            drawn(&[(".bmad-core/core-config.yaml", "")]),
            drawn(&[
                (M, &manifest("6.12.0")),
                ("_bmad/config.toml", ""),
                (".claude/skills/bmad-dev-story/SKILL.md", ""),
            ]),
            drawn(&[
                (M, &manifest("7.1.0")),
                ("_bmad/config.toml", ""),
                (".agents/skills/bmad-build/SKILL.md", ""),
            ]),
            drawn(&[(M, "")]),
            drawn(&[("_bmad/bmm/config.yaml", "")]),
            drawn(&[
                ("bmad/_cfg/manifest.yaml", &manifest("6.0.0-alpha.7")),
                (".claude/commands/bmad/bmm/workflows/dev-story.md", ""),
                (".claude/commands/bmad/bmm/agents/dev.md", ""),
            ]),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }

    #[test]
    fn every_client_s_entry_points_are_seen() {
        let found = drawn(&[
            (".claude/skills/bmad-dev-story/SKILL.md", ""),
            (".claude/skills/mine/SKILL.md", ""),
            (".claude/commands/mine.md", ""),
            (".agents/skills/bmad-help/SKILL.md", ""),
            (".opencode/command/bmad-help.md", ""),
            (".gemini/commands/bmad-help.toml", ""),
        ]);
        insta::assert_snapshot!(found);
    }
}
