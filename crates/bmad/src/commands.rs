//! What an agent is told to run a step of BMAD's method: a slash command, or a prompt that names the file to read first.
//!
//! The command is taken from the files that exist, never from what an era should have: updates stay unfinished, and modules
//! come and go. Only Claude Code gets a slash command, since it is known to run one without a terminal; every other client
//! gets a prompt. Codex keeps its prompts in the user's home directory, where nothing is searched.

use tribunal_json::{Serialize, schemars};

use crate::{
    csv,
    layout::{BmadLayout, EntryPointKind, Era},
    project_files::{self, ProjectFiles},
    steps::WorkflowName,
};

pub use crate::steps::BmadStep;

/// How a step is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum StepCommand {
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

impl StepCommand {
    /// The whole prompt with its subject, such as a story's file or an epic; `None` if the step cannot be run.
    pub fn to_prompt(&self, subject: &str) -> Option<String> {
        let subject = subject.trim();
        match self {
            StepCommand::Slash { text: slash_command, .. } if subject.is_empty() => Some(slash_command.clone()),
            StepCommand::Slash { text: slash_command, .. } => Some(format!("{slash_command} {subject}")),
            StepCommand::Text { prompt: prompt_text, .. } if subject.is_empty() => Some(prompt_text.clone()),
            StepCommand::Text { prompt: prompt_text, .. } => Some(format!("{prompt_text}\n\n{subject}")),
            StepCommand::Missing { .. } => None,
        }
    }
}

/// How a client, by Tribunal's name for it (`claude-code`, `codex`), runs a step in this project.
pub fn find_command(
    layout: &BmadLayout,
    step: BmadStep,
    client_name: &str,
    project_files: &dyn ProjectFiles,
) -> StepCommand {
    let finder = CommandFinder { layout, project_files, is_claude: matches!(client_name, "claude" | "claude-code") };
    let known_names = step
        .workflow_names()
        .iter()
        .filter(|workflow_name| workflow_name.only_era.is_none_or(|era| layout.era == Some(era)));
    known_names
        .into_iter()
        .find_map(|workflow_name| finder.build_command(workflow_name))
        .unwrap_or_else(|| explain_missing(layout, step, client_name))
}

/// Explains why a step cannot be run, and what to do: the reason depends on the era and on the installed modules.
fn explain_missing(layout: &BmadLayout, step: BmadStep, client_name: &str) -> StepCommand {
    let known_workflows = step
        .workflow_names()
        .iter()
        .filter(|workflow_name| workflow_name.only_era.is_none_or(|era| layout.era == Some(era)));
    let mut known_names: Vec<&str> = known_workflows.map(|workflow_name| workflow_name.workflow).collect();
    // Late names repeat earlier ones, and each should be named once.
    known_names.dedup();
    let by_installer = |reason: String| {
        let instead = format!("run BMAD's installer for {client_name} (`npx bmad-method install`)");
        StepCommand::Missing { why: reason, instead, by_installer: true }
    };
    let with_alternative = |reason: &str, instead: &str| StepCommand::Missing {
        why: reason.to_string(),
        instead: instead.to_string(),
        by_installer: false,
    };
    // The arms go from the general reason to the special ones; the installer helps in every other case.
    match (step, layout.era) {
        _ if layout.root.is_none() => by_installer("BMAD is not installed here".to_string()),
        (BmadStep::CreateStory, Some(Era::D)) => with_alternative(
            "this version of BMAD does not write stories in advance",
            "run dev-story, which plans its own, or install the older workflows (`npx bmad-method install --shims`)",
        ),
        (BmadStep::Trace | BmadStep::TestDesign, _) if !layout.has_module("tea") => with_alternative(
            "the module `tea` is not installed",
            "install it with `npx bmad-method install --modules bmm,tea`",
        ),
        (BmadStep::TechSpec, Some(Era::C2 | Era::C3)) => {
            with_alternative("quick-dev writes its own spec in this version of BMAD", "run quick-dev instead")
        }
        _ => by_installer(format!("no workflow named {} found", known_names.join(" or "))),
    }
}

/// Looks up the entry points of a step in one project.
struct CommandFinder<'a> {
    layout: &'a BmadLayout,
    project_files: &'a dyn ProjectFiles,
    is_claude: bool,
}

impl CommandFinder<'_> {
    fn build_command(&self, workflow_name: &WorkflowName) -> Option<StepCommand> {
        if self.is_claude
            && let Some((slash_command, workflow_file)) = self.find_slash_command(workflow_name.workflow)
        {
            // Some steps share a workflow in late eras and differ only by this argument.
            let slash_command = [slash_command.as_str(), workflow_name.argument].join(" ").trim_end().to_string();
            return Some(StepCommand::Slash { text: slash_command, file: workflow_file });
        }
        // Without a slash command the agent is told to read the workflow itself.
        let (workflow_file, engine_file) = self.find_workflow_file(workflow_name.workflow)?;
        let argument_note = match workflow_name.argument {
            "" => String::new(),
            argument => format!(" It was called with `{argument}`."),
        };
        // Workflows in YAML are run by an engine of their own, which the agent has to read first.
        let prompt = match engine_file {
            Some(engine_file) => format!(
                "Run the BMAD workflow {}. First read all of {engine_file}, which explains how to run a workflow. Then use it to run \
                 {workflow_file}, which is its workflow-config.{argument_note}",
                workflow_name.workflow
            ),
            None => format!(
                "Run the BMAD workflow {}. First read all of {workflow_file}, then do exactly what it says.{argument_note}",
                workflow_name.workflow
            ),
        };
        Some(StepCommand::Text { prompt, file: workflow_file })
    }

    /// What Claude Code has to be given, and the file that defines it.
    fn find_slash_command(&self, workflow_id: &str) -> Option<(String, String)> {
        let claude_clients = self.layout.clients.iter().filter(|client| client.name == "claude");
        claude_clients
            .filter_map(|client| match client.entries {
                EntryPointKind::Skills => {
                    let (entry_name, skill_file) = self.find_skill(workflow_id, &client.folder)?;
                    Some((format!("/{entry_name}"), skill_file))
                }
                EntryPointKind::Commands => {
                    let entry_names = self.project_files.list_names(&client.folder);
                    let is_listed = |entry_name: &String| {
                        entry_names.iter().any(|name| name.strip_suffix(".md") == Some(entry_name))
                    };
                    let entry_name = self.candidate_names(workflow_id).into_iter().find(is_listed)?;
                    Some((format!("/{entry_name}"), format!("{}/{entry_name}.md", client.folder)))
                }
                EntryPointKind::CommandTree => self.find_in_command_tree(workflow_id, &client.folder),
            })
            .next()
    }

    /// A skill's name and its file.
    fn find_skill(&self, workflow_id: &str, directory: &str) -> Option<(String, String)> {
        let skill_files = self.candidate_names(workflow_id).into_iter().map(|entry_name| {
            let skill_file = format!("{directory}/{entry_name}/SKILL.md");
            (entry_name, skill_file)
        });
        skill_files.into_iter().find(|(_, skill_file)| project_files::is_readable(self.project_files, skill_file))
    }

    /// The names that an entry point may have: `bmad-dev-story`, in earlier eras `bmad-bmm-dev-story`. Modules of later
    /// versions in earlier trees repeat the prefix: `bmad-tea-bmad-testarch-trace`.
    fn candidate_names(&self, workflow_id: &str) -> Vec<String> {
        let modules = ["bmm", "tea"].into_iter().chain(self.layout.modules.iter().map(|module| module.name.as_str()));
        // The method and the test architect come first; the others follow in the order of the manifest.
        let with_module = modules
            .flat_map(|module| [format!("bmad-{module}-{workflow_id}"), format!("bmad-{module}-bmad-{workflow_id}")]);
        std::iter::once(format!("bmad-{workflow_id}")).chain(with_module).collect()
    }

    /// Finds a command in the tree of the first era, `bmad/MODULE/workflows/NAME.md`.
    fn find_in_command_tree(&self, workflow_id: &str, directory: &str) -> Option<(String, String)> {
        let mut module_names: Vec<String> = self.project_files.list_names(directory);
        // The method's own commands come before those of another module with the same name.
        module_names.sort_by_key(|module_name| match module_name.as_str() {
            "bmm/" => 0,
            "core/" => 1,
            _ => 2,
        });
        module_names.iter().filter_map(|module_name| module_name.strip_suffix('/')).find_map(|module_name| {
            let command_file = format!("{directory}/{module_name}/workflows/{workflow_id}.md");
            project_files::is_readable(self.project_files, &command_file)
                .then(|| (format!("/bmad:{module_name}:workflows:{workflow_id}"), command_file))
        })
    }

    /// The file to read first, and the engine that runs it, where the file needs one.
    fn find_workflow_file(&self, workflow_id: &str) -> Option<(String, Option<String>)> {
        let skill_clients = self.layout.clients.iter().filter(|client| client.entries == EntryPointKind::Skills);
        // The directory that all other clients share is meant for them; Claude's own serves as well.
        let shared_clients = skill_clients.clone().filter(|client| client.name != "claude");
        let first_skill =
            shared_clients.chain(skill_clients).find_map(|client| self.find_skill(workflow_id, &client.folder));
        if let Some((_, skill_file)) = first_skill {
            return Some((skill_file, None));
        }
        let bmad_root = self.layout.root.as_deref()?;
        let workflow_path = self.find_in_manifest(workflow_id, bmad_root)?;
        // Only YAML workflows need the engine, and only early eras have it.
        let engine_file = format!("{bmad_root}/core/tasks/workflow.xml");
        let engine_file = Some(engine_file).filter(|engine_file| {
            workflow_path.ends_with(".yaml") && project_files::is_readable(self.project_files, engine_file)
        });
        Some((workflow_path, engine_file))
    }

    /// Finds the workflow's file in the manifest, if that file exists: manifests list more than was installed.
    fn find_in_manifest(&self, workflow_id: &str, bmad_root: &str) -> Option<String> {
        let manifest_paths =
            ["_config", "_cfg"].map(|directory| format!("{bmad_root}/{directory}/workflow-manifest.csv"));
        let csv_text = manifest_paths.iter().find_map(|path| self.project_files.read_file(path).ok().flatten())?;
        let csv_table = csv::parse_csv(&csv_text);
        let (header_row, rows) = csv_table.rows.split_first()?;
        let find_column = |name: &str| header_row.iter().position(|heading| heading.trim() == name);
        let (name_column, path_column) = (find_column("name")?, find_column("path")?);
        rows.iter()
            .filter(|row| row.get(name_column).is_some_and(|name| name.trim() == workflow_id))
            .filter_map(|row| row.get(path_column))
            .map(|path| path.trim().trim_start_matches("{project-root}/").to_string())
            // A manifest may list files of a module that was removed.
            .find(|path| project_files::is_readable(self.project_files, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{layout, project_files::InMemoryFiles};

    fn manifest_with_version(version: &str) -> String {
        format!("installation:\n  version: {version}\nmodules:\n  - core\n  - bmm\n")
    }

    fn render_commands(files: &[(&str, &str)], steps: &[BmadStep]) -> String {
        let project_files = InMemoryFiles::from_files(files.iter().copied());
        let layout = layout::read_layout(&project_files);
        let mut lines = Vec::new();
        for step in steps {
            for client in ["claude-code", "codex"] {
                let rendered = match find_command(&layout, *step, client, &project_files) {
                    StepCommand::Slash { text, .. } => text,
                    StepCommand::Text { prompt, .. } => prompt,
                    StepCommand::Missing { why: reason, instead, .. } => format!("none: {reason}; {instead}"),
                };
                lines.push(format!("{step} {client}: {rendered}"));
            }
        }
        lines.join("\n")
    }

    const MANIFEST_PATH: &str = "_bmad/_config/manifest.yaml";
    const WORKFLOWS: &str = "_bmad/_config/workflow-manifest.csv";
    const DEV: &str = "_bmad/bmm/workflows/4-implementation/dev-story/workflow.yaml";

    #[test]
    fn a_step_is_run_by_an_installed_entry_point() {
        let manifest = format!(
            "name,description,module,path\n\"dev-story\",\"d\",\"bmm\",\"{DEV}\"\n\"prd\",\"d\",\"bmm\",\"gone.md\"\n"
        );
        let steps = [BmadStep::DevStory, BmadStep::Party, BmadStep::CreateStory];
        let era_a = render_commands(
            &[
                (MANIFEST_PATH, &manifest_with_version("6.0.0-alpha.22")),
                (WORKFLOWS, &manifest),
                (DEV, ""),
                ("_bmad/core/tasks/workflow.xml", ""),
                (".claude/commands/bmad/zzz/workflows/dev-story.md", ""),
                (".claude/commands/bmad/bmm/workflows/dev-story.md", ""),
                (".claude/commands/bmad/core/workflows/party-mode.md", ""),
            ],
            &steps,
        );
        let era_b = render_commands(
            &[
                (MANIFEST_PATH, &manifest_with_version("6.0.4")),
                (WORKFLOWS, &manifest),
                (DEV, ""),
                (".claude/commands/bmad-bmm-dev-story.md", ""),
                (".claude/commands/bmad-party-mode.md", ""),
                (".claude/commands/bmad-tea-bmad-testarch-trace.md", ""),
            ],
            &[BmadStep::DevStory, BmadStep::Party, BmadStep::Trace, BmadStep::Prd],
        );
        let era_c = render_commands(
            &[
                (MANIFEST_PATH, &manifest_with_version("6.10.0")),
                (".claude/skills/bmad-dev-story/SKILL.md", ""),
                (".claude/skills/bmad-sprint-planning/SKILL.md", ""),
                (".agents/skills/bmad-dev-story/SKILL.md", ""),
                (".claude/skills/bmad-build-auto/SKILL.md", ""),
            ],
            &[BmadStep::DevStory, BmadStep::SprintStatus, BmadStep::Trace],
        );
        let era_d = render_commands(
            &[
                (MANIFEST_PATH, &manifest_with_version("6.12.0")),
                (".claude/skills/bmad-build-auto/SKILL.md", ""),
                (".claude/skills/bmad-dev-story/SKILL.md", ""),
                (".claude/skills/bmad-sprint-planning/SKILL.md", ""),
                (".claude/skills/bmad-retrospective/SKILL.md", ""),
            ],
            &[
                BmadStep::DevStory,
                BmadStep::CreateStory,
                BmadStep::SprintStatus,
                BmadStep::Readiness,
                BmadStep::Retrospective,
            ],
        );
        let not_installed = render_commands(&[], &[BmadStep::DevStory]);
        insta::assert_snapshot!([era_a, era_b, era_c, era_d, not_installed].join("\n\n"));
    }

    #[test]
    fn a_step_is_known_by_the_names_of_every_era() {
        for (step_name, step) in [
            ("prd", BmadStep::Prd),
            ("bmad-create-prd", BmadStep::Prd),
            ("/bmad:bmm:workflows:create-prd", BmadStep::Prd),
            ("/bmad-bmm-check-implementation-readiness", BmadStep::Readiness),
            ("sprint-planning", BmadStep::SprintPlanning),
            ("bmad-build-auto", BmadStep::DevStory),
            ("bmad-build", BmadStep::QuickDev),
            ("document-project", BmadStep::DocumentProject),
            ("project-context", BmadStep::ProjectContext),
            ("bmad-review", BmadStep::Lenses),
            ("/bmad-walkthrough", BmadStep::Walkthrough),
            ("bmad-checkpoint-preview", BmadStep::Walkthrough),
            ("bmad-qa-generate-e2e-tests", BmadStep::EndToEndTests),
        ] {
            assert_eq!(BmadStep::from_name(step_name), Some(step), "{step_name}");
        }
        assert_eq!(BmadStep::from_name("cook"), None);
        for step in BmadStep::ALL {
            assert_eq!(BmadStep::from_name(step.as_str()), Some(step));
        }
    }

    #[test]
    fn a_prompt_names_its_subject() {
        let slash = StepCommand::Slash { text: "/x".into(), file: "f".into() };
        assert_eq!(slash.to_prompt(" a.md "), Some("/x a.md".into()));
        assert_eq!(slash.to_prompt(""), Some("/x".into()));
        let text_command = StepCommand::Text { prompt: "Read f.".into(), file: "f".into() };
        assert_eq!(text_command.to_prompt("Story file: a.md"), Some("Read f.\n\nStory file: a.md".into()));
        let missing = StepCommand::Missing { why: String::new(), instead: String::new(), by_installer: false };
        assert_eq!(missing.to_prompt("x"), None);
    }
}
