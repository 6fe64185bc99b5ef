//! Which era of BMAD is installed, told by its version and by its files, and through which entry points clients run it.
//!
//! The version names the era; the files are looked at as well, and where the two disagree that is said: a half-done update is
//! the usual cause. Which command runs a step is not decided here, but from what is there, by `commands`.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    config,
    manifest::{self, Manifest, Module},
    problem::{Problem, rules},
    shelf::{self, Shelf},
};

/// The layouts BMAD has had, each with other files in other places.
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
    /// The versions it stands for.
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

    /// The era of a version; none: before the first, or of a future that is not known.
    pub fn of_version(version: &str) -> Option<Era> {
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

/// How entry points are laid out.
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

/// What one client, or all that share a folder, would find.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Client {
    /// `claude`, `opencode`, `gemini`; `agents`: the folder that codex, opencode, gemini and others share.
    pub name: String,
    pub entries: Entries,
    pub folder: String,
    /// How many entry points of BMAD there are.
    pub count: usize,
}

/// How BMAD is installed in a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Layout {
    /// `_bmad`, of early alphas `.bmad` or `bmad`; none: BMAD is not installed here.
    pub root: Option<String>,
    pub era: Option<Era>,
    pub version: Option<String>,
    pub by_version: Option<Era>,
    pub by_files: Option<Era>,
    /// What was seen, one sentence each.
    pub reasons: Vec<String>,
    pub clients: Vec<Client>,
    pub modules: Vec<Module>,
    /// Workflows of earlier versions were installed beside those of era D.
    pub shims: bool,
    /// Something of BMAD 4 is there.
    pub v4: bool,
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

impl Layout {
    pub fn has_module(&self, name: &str) -> bool {
        self.modules.iter().any(|module| module.name == name)
    }
}

/// Folders of entry points: who looks there, where, and whether skills or commands.
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

pub fn read(shelf: &dyn Shelf) -> Layout {
    let mut layout = Layout { v4: !shelf.names(".bmad-core").is_empty(), ..Layout::default() };
    layout.clients = clients(shelf);
    if layout.v4 {
        layout.reasons.push("`.bmad-core` is there: BMAD 4".into());
    }
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
    layout.problems.extend(manifest.problems);
    let path = manifest_path(shelf, root);
    by_version(&mut layout, &path);
    layout.by_files = by_files(shelf, root, &layout.clients, &mut layout.reasons);
    layout.era = layout.by_version.or(layout.by_files);
    let read_from = ManifestPlace { path: &path, line: manifest.line };
    disagreement(&mut layout, root, &read_from);
    layout
}

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

/// Told by what only one era has, the newest first: updates leave old files behind more often than they bring new ones.
fn by_files(shelf: &dyn Shelf, root: &str, clients: &[Client], reasons: &mut Vec<String>) -> Option<Era> {
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

    type Sign<'a> = (Era, &'a dyn Fn() -> Option<String>);
    let signs: [Sign<'_>; 11] = [
        (Era::D, &|| skill("bmad-build-auto/").or_else(|| skill("bmad-build/"))),
        (Era::D, &|| in_root("render/")),
        (Era::C3, &|| in_root("config.toml")),
        (Era::C1, &|| in_root("bmm/workflows/4-implementation/dev-story/workflow.md")),
        (Era::C2, &|| skill("bmad-dev-story/workflow.md")),
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

/// Where the manifest says its version.
struct ManifestPlace<'p> {
    path: &'p str,
    line: Option<usize>,
}

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
        // This says it all.
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
        if names.iter().any(|name| name == "bmad/") {
            let folder = format!("{folder}/bmad");
            let count = tree_size(shelf, &folder);
            clients.push(client(Entries::CommandTree, folder, count));
        }
    }
    clients.retain(|client| client.count > 0);
    clients
}

fn is_entry(name: &str) -> bool {
    name.starts_with("bmad-")
}

/// `bmad/MODULE/KIND/NAME.md`.
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

    /// The files that make each era what it is.
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
