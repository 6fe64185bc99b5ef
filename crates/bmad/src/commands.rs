//! What an agent is told to run a step of BMAD's method: a slash command, or a prompt that names the file to read first.
//!
//! The command is taken from the files that exist, never from what an era should have: updates stay unfinished, and modules
//! come and go. Only Claude Code gets a slash command, since it is known to run one without a terminal; every other client
//! gets a prompt. Codex keeps its prompts in the user's home directory, where nothing is searched.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    csv,
    layout::{Entries, Era, Layout},
    shelf::{self, Shelf},
};

/// A step of BMAD's method that can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    Brainstorming,
    Research,
    ProductBrief,
    Prd,
    Ux,
    Architecture,
    Epics,
    TestDesign,
    Readiness,
    SprintPlanning,
    SprintStatus,
    CreateStory,
    DevStory,
    CodeReview,
    Retrospective,
    Trace,
    Party,
    TechSpec,
    QuickDev,
    CorrectCourse,
    DocumentProject,
    ProjectContext,
}

/// One name that a step has had: the workflow, the argument behind it, and the only era in which the name means this step.
struct Name {
    workflow: &'static str,
    extra: &'static str,
    only: Option<Era>,
}

const fn name(workflow: &'static str) -> Name {
    Name { workflow, extra: "", only: None }
}

const fn late(workflow: &'static str, extra: &'static str) -> Name {
    Name { workflow, extra, only: Some(Era::D) }
}

impl Step {
    /// All steps in the order of the method; the ones beside it come last.
    pub const ALL: [Step; 22] = [
        Step::Brainstorming,
        Step::Research,
        Step::ProductBrief,
        Step::Prd,
        Step::Ux,
        Step::Architecture,
        Step::Epics,
        Step::TestDesign,
        Step::Readiness,
        Step::SprintPlanning,
        Step::SprintStatus,
        Step::CreateStory,
        Step::DevStory,
        Step::CodeReview,
        Step::Retrospective,
        Step::Trace,
        Step::Party,
        Step::TechSpec,
        Step::QuickDev,
        Step::CorrectCourse,
        Step::DocumentProject,
        Step::ProjectContext,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Step::Brainstorming => "brainstorming",
            Step::Research => "research",
            Step::ProductBrief => "product-brief",
            Step::Prd => "prd",
            Step::Ux => "ux",
            Step::Architecture => "architecture",
            Step::Epics => "epics",
            Step::TestDesign => "test-design",
            Step::Readiness => "readiness",
            Step::SprintPlanning => "sprint-planning",
            Step::SprintStatus => "sprint-status",
            Step::CreateStory => "create-story",
            Step::DevStory => "dev-story",
            Step::CodeReview => "code-review",
            Step::Retrospective => "retrospective",
            Step::Trace => "trace",
            Step::Party => "party",
            Step::TechSpec => "tech-spec",
            Step::QuickDev => "quick-dev",
            Step::CorrectCourse => "correct-course",
            Step::DocumentProject => "document-project",
            Step::ProjectContext => "project-context",
        }
    }

    /// The step of a name: Tribunal's own or that of its workflow in any era, so `bmad-create-prd`, `create-prd` and `prd`
    /// are one.
    pub fn named(said: &str) -> Option<Step> {
        let said = said.trim().trim_start_matches('/');
        // Entry points of the first era have colons: `/bmad:bmm:workflows:create-prd`.
        let said = said.rsplit(':').next().unwrap_or(said);
        let said = said.strip_prefix("bmad-").unwrap_or(said);
        let said = said.strip_prefix("bmm-").unwrap_or(said);
        let is_own =
            |step: &Step| step.names().iter().any(|name| name.only.is_none() && name.workflow == said);
        // Tribunal's own names win: `sprint-planning` is also what era D calls other steps.
        Step::ALL
            .into_iter()
            .find(|step| step.as_str() == said)
            .or_else(|| Step::ALL.into_iter().find(is_own))
            .or_else(|| (said == "build-auto").then_some(Step::DevStory))
            .or_else(|| (said == "build").then_some(Step::QuickDev))
    }

    /// The names that its workflow has had, today's name first.
    fn names(self) -> &'static [Name] {
        // The order matters: the first name that has an entry point is used.
        const BRAINSTORMING: &[Name] = &[name("brainstorming")];
        const RESEARCH: &[Name] = &[name("deep-recon"), name("research"), name("domain-research")];
        const BRIEF: &[Name] = &[name("product-brief"), name("create-product-brief")];
        const PRD: &[Name] = &[name("prd"), name("create-prd")];
        const UX: &[Name] = &[name("ux"), name("create-ux-design")];
        const ARCHITECTURE: &[Name] = &[name("architecture"), name("create-architecture")];
        const EPICS: &[Name] = &[name("create-epics-and-stories")];
        const TEST_DESIGN: &[Name] = &[name("testarch-test-design")];
        const READINESS: &[Name] =
            &[name("check-implementation-readiness"), late("sprint-planning", "readiness")];
        const PLANNING: &[Name] = &[name("sprint-planning")];
        const STATUS: &[Name] = &[name("sprint-status"), late("sprint-planning", "status")];
        const STORY: &[Name] = &[name("create-story")];
        const DEV: &[Name] = &[late("build-auto", ""), name("dev-story")];
        const REVIEW: &[Name] = &[name("code-review")];
        const RETRO: &[Name] = &[late("retrospective", "-H"), name("retrospective")];
        const TRACE: &[Name] = &[name("testarch-trace")];
        const PARTY: &[Name] = &[name("party-mode")];
        const TECH_SPEC: &[Name] = &[name("quick-spec"), name("create-tech-spec"), name("spec")];
        const QUICK: &[Name] = &[late("build", ""), name("quick-dev")];
        const COURSE: &[Name] = &[name("correct-course")];
        const DOCUMENT: &[Name] = &[name("document-project"), late("project-context", "")];
        const CONTEXT: &[Name] = &[name("project-context"), name("generate-project-context")];
        match self {
            Step::Brainstorming => BRAINSTORMING,
            Step::Research => RESEARCH,
            Step::ProductBrief => BRIEF,
            Step::Prd => PRD,
            Step::Ux => UX,
            Step::Architecture => ARCHITECTURE,
            Step::Epics => EPICS,
            Step::TestDesign => TEST_DESIGN,
            Step::Readiness => READINESS,
            Step::SprintPlanning => PLANNING,
            Step::SprintStatus => STATUS,
            Step::CreateStory => STORY,
            Step::DevStory => DEV,
            Step::CodeReview => REVIEW,
            Step::Retrospective => RETRO,
            Step::Trace => TRACE,
            Step::Party => PARTY,
            Step::TechSpec => TECH_SPEC,
            Step::QuickDev => QUICK,
            Step::CorrectCourse => COURSE,
            Step::DocumentProject => DOCUMENT,
            Step::ProjectContext => CONTEXT,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a step is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Command {
    /// A slash command such as `/bmad-dev-story`, defined by this file.
    Slash { text: String, file: String },
    /// A prompt for a client without slash commands; it names this file.
    Text { prompt: String, file: String },
    /// The step cannot be run here.
    Missing {
        why: String,
        instead: String,
        /// Whether the advice is to run BMAD's installer without further options.
        #[serde(skip)]
        by_installer: bool,
    },
}

impl Command {
    /// The whole prompt with its subject, such as a story's file or an epic; `None` if the step cannot be run.
    pub fn prompt(&self, about: &str) -> Option<String> {
        let about = about.trim();
        match self {
            Command::Slash { text, .. } if about.is_empty() => Some(text.clone()),
            Command::Slash { text, .. } => Some(format!("{text} {about}")),
            Command::Text { prompt, .. } if about.is_empty() => Some(prompt.clone()),
            Command::Text { prompt, .. } => Some(format!("{prompt}\n\n{about}")),
            Command::Missing { .. } => None,
        }
    }
}

/// How a client, by Tribunal's name for it (`claude-code`, `codex`), runs a step in this project.
pub fn of(layout: &Layout, step: Step, client: &str, shelf: &dyn Shelf) -> Command {
    let finder = Finder { layout, shelf, claude: matches!(client, "claude" | "claude-code") };
    let names = step.names().iter().filter(|name| name.only.is_none_or(|era| layout.era == Some(era)));
    names.into_iter().find_map(|name| finder.command(name)).unwrap_or_else(|| missing(layout, step, client))
}

/// Explains why a step cannot be run, and what to do: the reason depends on the era and on the installed modules.
fn missing(layout: &Layout, step: Step, client: &str) -> Command {
    let names = step.names().iter().filter(|name| name.only.is_none_or(|era| layout.era == Some(era)));
    let mut names: Vec<&str> = names.map(|name| name.workflow).collect();
    // Late names repeat earlier ones, and each should be named once.
    names.dedup();
    let by_installer = |why: String| {
        let instead = format!("run BMAD's installer for {client}: npx bmad-method install");
        Command::Missing { why, instead, by_installer: true }
    };
    let otherwise = |why: &str, instead: &str| Command::Missing {
        why: why.to_string(),
        instead: instead.to_string(),
        by_installer: false,
    };
    // The arms go from the general reason to the special ones; the installer helps in every other case.
    match (step, layout.era) {
        _ if layout.root.is_none() => by_installer("BMAD is not installed here".to_string()),
        (Step::CreateStory, Some(Era::D)) => otherwise(
            "this BMAD writes no stories ahead",
            "dev-story plans its own; or install the older workflows: npx bmad-method install --shims",
        ),
        (Step::Trace | Step::TestDesign, _) if !layout.has_module("tea") => otherwise(
            "the module `tea` is not installed",
            "add it: npx bmad-method install --modules bmm,tea",
        ),
        (Step::TechSpec, Some(Era::C2 | Era::C3)) => {
            otherwise("quick-dev writes its own spec in this BMAD", "quick-dev")
        }
        _ => by_installer(format!("nothing here is called {}", names.join(" or "))),
    }
}

/// Looks up the entry points of a step in one project.
struct Finder<'a> {
    layout: &'a Layout,
    shelf: &'a dyn Shelf,
    claude: bool,
}

impl Finder<'_> {
    fn command(&self, name: &Name) -> Option<Command> {
        if self.claude
            && let Some((text, file)) = self.slash(name.workflow)
        {
            // Some steps share a workflow in late eras and differ only by this argument.
            let text = [text.as_str(), name.extra].join(" ").trim_end().to_string();
            return Some(Command::Slash { text, file });
        }
        // Without a slash command the agent is told to read the workflow itself.
        let (file, engine) = self.file(name.workflow)?;
        let extra = match name.extra {
            "" => String::new(),
            extra => format!(" It was called with `{extra}`."),
        };
        // Workflows in YAML are run by an engine of their own, which the agent has to read first.
        let prompt = match engine {
            Some(engine) => format!(
                "Run the BMAD workflow {}. Read {engine} first, all of it: it says how a workflow is run. Then run {file} \
                 with it, which is its workflow-config.{extra}",
                name.workflow
            ),
            None => format!(
                "Run the BMAD workflow {}. Read {file} first, all of it, and do exactly what it says.{extra}",
                name.workflow
            ),
        };
        Some(Command::Text { prompt, file })
    }

    /// What Claude Code has to be given, and the file that defines it.
    fn slash(&self, workflow: &str) -> Option<(String, String)> {
        let own = self.layout.clients.iter().filter(|client| client.name == "claude");
        own.filter_map(|client| match client.entries {
            Entries::Skills => {
                let (stem, file) = self.skill(workflow, &client.folder)?;
                Some((format!("/{stem}"), file))
            }
            Entries::Commands => {
                let names = self.shelf.names(&client.folder);
                let has = |stem: &String| names.iter().any(|name| name.strip_suffix(".md") == Some(stem));
                let stem = self.stems(workflow).into_iter().find(has)?;
                Some((format!("/{stem}"), format!("{}/{stem}.md", client.folder)))
            }
            Entries::CommandTree => self.in_tree(workflow, &client.folder),
        })
        .next()
    }

    /// A skill's name and its file.
    fn skill(&self, workflow: &str, folder: &str) -> Option<(String, String)> {
        let files = self.stems(workflow).into_iter().map(|stem| {
            let file = format!("{folder}/{stem}/SKILL.md");
            (stem, file)
        });
        files.into_iter().find(|(_, file)| shelf::has(self.shelf, file))
    }

    /// The names that an entry point may have: `bmad-dev-story`, in earlier eras `bmad-bmm-dev-story`. Modules of later
    /// versions in earlier trees repeat the prefix: `bmad-tea-bmad-testarch-trace`.
    fn stems(&self, workflow: &str) -> Vec<String> {
        let modules =
            ["bmm", "tea"].into_iter().chain(self.layout.modules.iter().map(|module| module.name.as_str()));
        // The method and the test architect come first; the others follow in the order of the manifest.
        let prefixed = modules.flat_map(|module| {
            [format!("bmad-{module}-{workflow}"), format!("bmad-{module}-bmad-{workflow}")]
        });
        std::iter::once(format!("bmad-{workflow}")).chain(prefixed).collect()
    }

    /// Finds a command in the tree of the first era, `bmad/MODULE/workflows/NAME.md`.
    fn in_tree(&self, workflow: &str, folder: &str) -> Option<(String, String)> {
        let mut modules: Vec<String> = self.shelf.names(folder);
        // The method's own commands come before those of another module with the same name.
        modules.sort_by_key(|module| match module.as_str() {
            "bmm/" => 0,
            "core/" => 1,
            _ => 2,
        });
        modules.iter().filter_map(|module| module.strip_suffix('/')).find_map(|module| {
            let file = format!("{folder}/{module}/workflows/{workflow}.md");
            shelf::has(self.shelf, &file).then(|| (format!("/bmad:{module}:workflows:{workflow}"), file))
        })
    }

    /// The file to read first, and the engine that runs it, where the file needs one.
    fn file(&self, workflow: &str) -> Option<(String, Option<String>)> {
        let folders = self.layout.clients.iter().filter(|client| client.entries == Entries::Skills);
        // The directory that all other clients share is meant for them; Claude's own serves as well.
        let shared = folders.clone().filter(|client| client.name != "claude");
        let any = shared.chain(folders).find_map(|client| self.skill(workflow, &client.folder));
        if let Some((_, file)) = any {
            return Some((file, None));
        }
        let root = self.layout.root.as_deref()?;
        let path = self.in_manifest(workflow, root)?;
        // Only YAML workflows need the engine, and only early eras have it.
        let engine = format!("{root}/core/tasks/workflow.xml");
        let engine = Some(engine).filter(|engine| path.ends_with(".yaml") && shelf::has(self.shelf, engine));
        Some((path, engine))
    }

    /// Finds the workflow's file in the manifest, if that file exists: manifests list more than was installed.
    fn in_manifest(&self, workflow: &str, root: &str) -> Option<String> {
        let paths = ["_config", "_cfg"].map(|folder| format!("{root}/{folder}/workflow-manifest.csv"));
        let text = paths.iter().find_map(|path| self.shelf.read(path).ok().flatten())?;
        let table = csv::parse(&text);
        let (head, rows) = table.rows.split_first()?;
        let column = |name: &str| head.iter().position(|there| there.trim() == name);
        let (name, path) = (column("name")?, column("path")?);
        rows.iter()
            .filter(|row| row.get(name).is_some_and(|name| name.trim() == workflow))
            .filter_map(|row| row.get(path))
            .map(|path| path.trim().trim_start_matches("{project-root}/").to_string())
            // A manifest may list files of a module that was removed.
            .find(|path| shelf::has(self.shelf, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{layout, shelf::Kept};

    fn version(version: &str) -> String {
        format!("installation:\n  version: {version}\nmodules:\n  - core\n  - bmm\n")
    }

    fn drawn(files: &[(&str, &str)], steps: &[Step]) -> String {
        let shelf = Kept::with(files.iter().copied());
        let layout = layout::read(&shelf);
        let mut lines = Vec::new();
        for step in steps {
            for client in ["claude-code", "codex"] {
                let said = match of(&layout, *step, client, &shelf) {
                    Command::Slash { text, .. } => text,
                    Command::Text { prompt, .. } => prompt,
                    Command::Missing { why, instead, .. } => format!("none: {why}; {instead}"),
                };
                lines.push(format!("{step} {client}: {said}"));
            }
        }
        lines.join("\n")
    }

    const M: &str = "_bmad/_config/manifest.yaml";
    const WORKFLOWS: &str = "_bmad/_config/workflow-manifest.csv";
    const DEV: &str = "_bmad/bmm/workflows/4-implementation/dev-story/workflow.yaml";

    #[test]
    fn a_step_is_run_by_what_is_there() {
        let manifest = format!(
            "name,description,module,path\n\"dev-story\",\"d\",\"bmm\",\"{DEV}\"\n\"prd\",\"d\",\"bmm\",\"gone.md\"\n"
        );
        let steps = [Step::DevStory, Step::Party, Step::CreateStory];
        let a = drawn(
            &[
                (M, &version("6.0.0-alpha.22")),
                (WORKFLOWS, &manifest),
                (DEV, ""),
                ("_bmad/core/tasks/workflow.xml", ""),
                (".claude/commands/bmad/zzz/workflows/dev-story.md", ""),
                (".claude/commands/bmad/bmm/workflows/dev-story.md", ""),
                (".claude/commands/bmad/core/workflows/party-mode.md", ""),
            ],
            &steps,
        );
        let b = drawn(
            &[
                (M, &version("6.0.4")),
                (WORKFLOWS, &manifest),
                (DEV, ""),
                (".claude/commands/bmad-bmm-dev-story.md", ""),
                (".claude/commands/bmad-party-mode.md", ""),
                (".claude/commands/bmad-tea-bmad-testarch-trace.md", ""),
            ],
            &[Step::DevStory, Step::Party, Step::Trace, Step::Prd],
        );
        let c = drawn(
            &[
                (M, &version("6.10.0")),
                (".claude/skills/bmad-dev-story/SKILL.md", ""),
                (".claude/skills/bmad-sprint-planning/SKILL.md", ""),
                (".agents/skills/bmad-dev-story/SKILL.md", ""),
                (".claude/skills/bmad-build-auto/SKILL.md", ""),
            ],
            &[Step::DevStory, Step::SprintStatus, Step::Trace],
        );
        let d = drawn(
            &[
                (M, &version("6.12.0")),
                (".claude/skills/bmad-build-auto/SKILL.md", ""),
                (".claude/skills/bmad-dev-story/SKILL.md", ""),
                (".claude/skills/bmad-sprint-planning/SKILL.md", ""),
                (".claude/skills/bmad-retrospective/SKILL.md", ""),
            ],
            &[Step::DevStory, Step::CreateStory, Step::SprintStatus, Step::Readiness, Step::Retrospective],
        );
        let none = drawn(&[], &[Step::DevStory]);
        insta::assert_snapshot!([a, b, c, d, none].join("\n\n"));
    }

    #[test]
    fn a_step_is_known_by_the_names_of_every_era() {
        for (said, step) in [
            ("prd", Step::Prd),
            ("bmad-create-prd", Step::Prd),
            ("/bmad:bmm:workflows:create-prd", Step::Prd),
            ("/bmad-bmm-check-implementation-readiness", Step::Readiness),
            ("sprint-planning", Step::SprintPlanning),
            ("bmad-build-auto", Step::DevStory),
            ("bmad-build", Step::QuickDev),
            ("document-project", Step::DocumentProject),
            ("project-context", Step::ProjectContext),
        ] {
            assert_eq!(Step::named(said), Some(step), "{said}");
        }
        assert_eq!(Step::named("cook"), None);
        for step in Step::ALL {
            assert_eq!(Step::named(step.as_str()), Some(step));
        }
    }

    #[test]
    fn a_prompt_names_what_it_is_about() {
        let slash = Command::Slash { text: "/x".into(), file: "f".into() };
        assert_eq!(slash.prompt(" a.md "), Some("/x a.md".into()));
        assert_eq!(slash.prompt(""), Some("/x".into()));
        let text = Command::Text { prompt: "Read f.".into(), file: "f".into() };
        assert_eq!(text.prompt("Story file: a.md"), Some("Read f.\n\nStory file: a.md".into()));
        let missing = Command::Missing { why: String::new(), instead: String::new(), by_installer: false };
        assert_eq!(missing.prompt("x"), None);
    }
}
