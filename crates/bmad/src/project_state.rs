//! How far a project has come: clean, planning, active or legacy, by the documents that it has, and what to do next.
//!
//! Documents are found by `documents`; whether they are any good is not checked here.

use tribunal_json::{Serialize, schemars};

use crate::{
    board,
    commands::BmadStep,
    config::BmadConfig,
    documents::{self, DocumentKind, ProjectDocuments},
    help::{self, WorkflowGraph},
    layout::{BmadLayout, Era},
    problem::FileProblem,
    project_files::{self, ProjectFiles},
    story_files,
    workflow_paths::{self, WorkflowProgress},
};

/// How far a project has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProjectState {
    /// Nothing is planned yet: choose a tier and begin.
    Clean,
    /// There are plans and no board: continue from them, or start again.
    Planning,
    /// Work has begun: resume.
    Active,
    /// The files are of an older BMAD, or contradict the project: review them first.
    Legacy,
}

impl ProjectState {
    pub fn as_str(self) -> &'static str {
        match self {
            ProjectState::Clean => "clean",
            ProjectState::Planning => "planning",
            ProjectState::Active => "active",
            ProjectState::Legacy => "legacy",
        }
    }
}

/// A document that a step of the method has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct StepDocument {
    pub step: BmadStep,
    pub path: String,
}

/// A workflow that could run now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct NextWorkflow {
    /// BMAD's name for the workflow.
    pub workflow: String,
    /// Tribunal's name for it; `None` if it is no step that Tribunal runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<BmadStep>,
    pub required: bool,
}

/// The state of a project with the evidence for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectSurvey {
    pub state: ProjectState,
    /// What was found, one sentence each.
    pub reasons: Vec<String>,
    /// The documents in the order of the method.
    pub documents: Vec<StepDocument>,
    /// The optional workflows, then the first required one.
    pub next_workflows: Vec<NextWorkflow>,
    /// What to do next, for the user.
    pub advice: String,
    pub problems: Vec<FileProblem>,
}

/// Detects the state of a project and what can run next.
pub fn survey_project(project_files: &dyn ProjectFiles, layout: &BmadLayout, config: &BmadConfig) -> ProjectSurvey {
    let mut problems = Vec::new();
    let all_documents = documents::find_documents(project_files, &config.folders);
    problems.extend(all_documents.problems.iter().cloned());
    let step_documents = planning_documents(&all_documents);
    let mut detector = StateDetector { project_files, layout, config, reasons: Vec::new(), has_board: false };
    let state = detector.detect_state(&step_documents, &mut problems);
    let mut reasons = std::mem::take(&mut detector.reasons);
    if reasons.is_empty() {
        reasons.push("no BMAD documents found".into());
    }
    let runnable = match state {
        ProjectState::Clean | ProjectState::Planning => {
            find_next_workflows(project_files, layout, config, &step_documents, &mut problems)
        }
        // Where there is a board, the board says what is next.
        ProjectState::Active if detector.has_board => Vec::new(),
        ProjectState::Active => find_next_workflows(project_files, layout, config, &step_documents, &mut problems),
        ProjectState::Legacy => Vec::new(),
    };
    let advice_text = suggest_action(state, layout, &runnable);
    ProjectSurvey { state, reasons, documents: step_documents, next_workflows: runnable, advice: advice_text, problems }
}

/// Collects the evidence for a state while it is detected.
struct StateDetector<'a> {
    project_files: &'a dyn ProjectFiles,
    layout: &'a BmadLayout,
    config: &'a BmadConfig,
    reasons: Vec<String>,
    has_board: bool,
}

impl StateDetector<'_> {
    /// Detects the state. The strongest evidence comes first: a board, the status file, legacy files, documents.
    fn detect_state(&mut self, documents: &[StepDocument], problems: &mut Vec<FileProblem>) -> ProjectState {
        self.has_board = self.find_board();
        if self.has_board {
            return ProjectState::Active;
        }
        // Without a board, the status file of the alphas shows the progress.
        if let Some(state) = self.detect_by_status_file(problems) {
            return state;
        }
        if self.is_legacy() {
            return ProjectState::Legacy;
        }
        for document in documents {
            self.reasons.push(format!("`{}` exists, but there is no board", document.path));
        }
        let story_count = self.count_story_files();
        if story_count > 0 {
            let noun = if story_count == 1 { "story file" } else { "story files" };
            self.reasons.push(format!("{story_count} {noun}, but there is no board"));
        }
        if self.reasons.is_empty() { ProjectState::Clean } else { ProjectState::Planning }
    }

    fn count_story_files(&self) -> usize {
        let story_files = story_files::find_story_files(self.project_files, &self.config.folders, None);
        story_files.all().filter(|story_file| !story_file.is_archived).count()
    }

    /// Whether there is a board, with a reason for it.
    fn find_board(&mut self) -> bool {
        let found_board = board::candidate_paths(&self.config.folders).into_iter().find_map(|board_path| {
            let board_text = self.project_files.read_file(&board_path).ok().flatten()?;
            Some((board_path, board_text))
        });
        let Some((board_path, board_text)) = found_board else { return false };
        let board = board::read_board(&board_path, &board_text);
        let story_count = board.stories().count();
        // The board reports its own problems. Even a broken board means that work has begun.
        self.reasons.push(match (board.is_readable, story_count) {
            (false, _) => format!("`{board_path}` exists but cannot be read"),
            (true, 1) => format!("`{board_path}` has 1 story"),
            (true, story_count) => format!("`{board_path}` has {story_count} stories"),
        });
        true
    }

    /// Detects the state by the status file of early alphas. It counts while it belongs to this era and the files that it
    /// names exist.
    fn detect_by_status_file(&mut self, problems: &mut Vec<FileProblem>) -> Option<ProjectState> {
        let (status_path, status_file) = read_status_file(self.project_files, self.config, problems)?;
        if self.layout.era.is_some_and(|era| era > Era::A) {
            self.reasons.push(format!("`{status_path}` is from an early alpha, but the installed BMAD is not"));
            return Some(ProjectState::Legacy);
        }
        // A file that is gone means that the status file no longer describes this project.
        let missing_file = status_file.progress_items.iter().find_map(|(workflow_id, progress)| match progress {
            WorkflowProgress::Done(written_file) if !path_exists(self.project_files, written_file) => {
                Some((workflow_id, written_file))
            }
            _ => None,
        });
        if let Some((workflow_id, written_file)) = missing_file {
            self.reasons
                .push(format!("`{status_path}` says that {workflow_id} wrote `{written_file}`, which does not exist"));
            return Some(ProjectState::Legacy);
        }
        let done_count = status_file
            .progress_items
            .iter()
            .filter(|(_, progress)| matches!(progress, WorkflowProgress::Done(_)))
            .count();
        self.reasons.push(format!(
            "`{status_path}` says that {done_count} of {} workflows are done",
            status_file.progress_items.len()
        ));
        Some(ProjectState::Active)
    }

    /// Whether the project belongs to an older BMAD, with a reason for it.
    fn is_legacy(&mut self) -> bool {
        if self.layout.v4 && self.layout.root.is_none() {
            self.reasons.push("found `.bmad-core` (BMAD 4)".into());
            return true;
        }
        if let Some(bmad_root) = self.layout.root.as_deref().filter(|bmad_root| *bmad_root != "_bmad") {
            self.reasons.push(format!("BMAD is installed in `{bmad_root}`, as in early alphas"));
            return true;
        }
        false
    }
}

/// The status file of early alphas and its path.
fn read_status_file(
    project_files: &dyn ProjectFiles,
    config: &BmadConfig,
    problems: &mut Vec<FileProblem>,
) -> Option<(String, workflow_paths::WorkflowStatusFile)> {
    // The file is in the folder for plans or in the one for all output.
    let folders = [&config.folders.planning, &config.folders.output];
    let status_path = folders
        .map(|directory| join_path(directory, workflow_paths::STATUS_FILE))
        .into_iter()
        .find(|status_path| path_exists(project_files, status_path))?;
    let yaml_text = project_files::read_or_report(project_files, &status_path, problems)?;
    let status_file = workflow_paths::read_workflow_status(&status_path, &yaml_text);
    problems.extend(status_file.problems.iter().cloned());
    Some((status_path, status_file))
}

fn path_exists(project_files: &dyn ProjectFiles, checked_path: &str) -> bool {
    let (directory, wanted_name) = checked_path.rsplit_once('/').unwrap_or(("", checked_path));
    project_files.list_names(directory).iter().any(|existing_name| existing_name.trim_end_matches('/') == wanted_name)
}

fn join_path(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_string() } else { format!("{directory}/{name}") }
}

/// The step that writes each kind of document; other kinds do not belong to planning.
const DOCUMENT_STEPS: [(DocumentKind, BmadStep); 10] = [
    (DocumentKind::Research, BmadStep::Research),
    (DocumentKind::ProductBrief, BmadStep::ProductBrief),
    (DocumentKind::Prd, BmadStep::Prd),
    (DocumentKind::Ux, BmadStep::Ux),
    (DocumentKind::Architecture, BmadStep::Architecture),
    (DocumentKind::Epics, BmadStep::Epics),
    (DocumentKind::TestDesign, BmadStep::TestDesign),
    (DocumentKind::Readiness, BmadStep::Readiness),
    (DocumentKind::TechSpec, BmadStep::TechSpec),
    (DocumentKind::Spec, BmadStep::TechSpec),
];

/// The planning documents that exist and are not empty: the first one of each step, in the order of the method.
pub fn planning_documents(all_documents: &ProjectDocuments) -> Vec<StepDocument> {
    let mut step_documents: Vec<StepDocument> = Vec::new();
    for (kind, step) in DOCUMENT_STEPS {
        let first_written = all_documents.of_kind(kind).find(|document| !document.empty);
        if let Some(first_written) =
            first_written.filter(|_| step_documents.iter().all(|document| document.step != step))
        {
            step_documents.push(StepDocument { step, path: first_written.path.clone() });
        }
    }
    step_documents
}

/// The next workflows: by the status file and its track where they exist, otherwise by the list of workflows and the
/// documents.
fn find_next_workflows(
    project_files: &dyn ProjectFiles,
    layout: &BmadLayout,
    config: &BmadConfig,
    documents: &[StepDocument],
    problems: &mut Vec<FileProblem>,
) -> Vec<NextWorkflow> {
    let Some(bmad_root) = &layout.root else { return Vec::new() };
    // A track is specific to the project, so it wins over the general list.
    if let Some(candidates) = next_on_track(project_files, bmad_root, config, problems) {
        return candidates;
    }
    let help_path = join_path(bmad_root, help::HELP_PATH);
    let Some(csv_text) = project_files::read_or_report(project_files, &help_path, problems) else {
        return next_without_list(documents);
    };
    let graph: WorkflowGraph = help::read_help(&help_path, &csv_text);
    problems.extend(graph.problems.iter().cloned());
    let is_done = |workflow: &help::HelpWorkflow| {
        workflow.step().is_some_and(|step| documents.iter().any(|document| document.step == step))
    };
    // An optional action of a workflow, such as `validate`, is no step of its own.
    let is_main_action = |workflow: &&help::HelpWorkflow| workflow.action.is_empty() || workflow.required;
    let candidates = graph.next_workflows(is_done).into_iter().filter(is_main_action);
    // The list of 6.1 still has the names of earlier commands; its skills have shorter ones.
    let current_name = |workflow_id: &str| match (layout.era, workflow_id.strip_prefix("bmad-bmm-")) {
        (Some(Era::C1), Some(short_name)) => format!("bmad-{short_name}"),
        _ => workflow_id.to_string(),
    };
    candidates
        .map(|workflow| NextWorkflow {
            workflow: current_name(&workflow.id),
            step: workflow.step(),
            required: workflow.required,
        })
        .collect()
}

/// The next workflows on the track of an early alpha; `None` if the project has no status file or no track.
fn next_on_track(
    project_files: &dyn ProjectFiles,
    bmad_root: &str,
    config: &BmadConfig,
    problems: &mut Vec<FileProblem>,
) -> Option<Vec<NextWorkflow>> {
    // The problems of the status file are reported by the detection of the state.
    let (_, status_file) = read_status_file(project_files, config, &mut Vec::new())?;
    let track_file = status_file.path_file.rsplit('/').next().filter(|track_file| !track_file.is_empty())?;
    let track_path = format!("{bmad_root}/{}/{track_file}", workflow_paths::PATHS_DIR);
    let yaml_text = project_files::read_or_report(project_files, &track_path, problems)?;
    let track = workflow_paths::read_track(&track_path, &yaml_text);
    problems.extend(track.problems.iter().cloned());
    let runnable = track.next_workflows(&status_file);
    Some(
        runnable
            .iter()
            .map(|workflow| NextWorkflow {
                workflow: workflow.id.clone(),
                step: BmadStep::from_name(&workflow.id).or_else(|| step_from_folder(&workflow.file)),
                required: workflow.need == workflow_paths::WorkflowNeed::Required,
            })
            .collect(),
    )
}

/// The step of `…/check-implementation-readiness/workflow.md`: the directory has the workflow's name where the id differs.
fn step_from_folder(workflow_file: &str) -> Option<BmadStep> {
    let directory = workflow_file.rsplit('/').nth(1)?;
    BmadStep::from_name(directory).or_else(|| BmadStep::from_name(&format!("testarch-{directory}")))
}

/// The method without a list: early alphas before their status file exists.
fn next_without_list(documents: &[StepDocument]) -> Vec<NextWorkflow> {
    const METHOD: [(BmadStep, bool); 7] = [
        (BmadStep::ProductBrief, false),
        (BmadStep::Prd, true),
        (BmadStep::Ux, false),
        (BmadStep::Architecture, true),
        (BmadStep::Epics, true),
        (BmadStep::Readiness, true),
        (BmadStep::SprintPlanning, true),
    ];
    let mut next_workflows = Vec::new();
    for (step, required) in METHOD {
        if documents.iter().any(|document| document.step == step) {
            continue;
        }
        next_workflows.push(NextWorkflow { workflow: step.as_str().into(), step: Some(step), required });
        if required {
            break;
        }
    }
    next_workflows
}

/// What to do next, in one sentence.
fn suggest_action(state: ProjectState, layout: &BmadLayout, upcoming: &[NextWorkflow]) -> String {
    let required_workflow = upcoming
        .iter()
        .find(|next_workflow| next_workflow.required)
        .map(|next_workflow| next_workflow.workflow.as_str());
    match (state, required_workflow) {
        // Without BMAD nothing can be planned, so this comes before the states; legacy files need advice of their own.
        _ if layout.root.is_none() && state != ProjectState::Legacy => {
            "install BMAD to plan with it: `npx bmad-method install` (reviews work without it)".into()
        }
        (ProjectState::Clean, Some(required_workflow)) => {
            format!("choose a tier, then start; the first required workflow is {required_workflow}")
        }
        (ProjectState::Clean, None) => "choose a tier, then start".into(),
        (ProjectState::Planning, Some(required_workflow)) => {
            format!("continue with {required_workflow}, or start over")
        }
        (ProjectState::Planning, None) => "continue from the documents, or start over".into(),
        (ProjectState::Active, _) => "continue the sprint: `tribunal status`".into(),
        (ProjectState::Legacy, _) => {
            "check the old files, then remove them or update BMAD: `npx bmad-method install`".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config, layout, project_files::InMemoryFiles};

    fn render_survey(files: &[(&str, &str)]) -> String {
        let project_files = InMemoryFiles::from_files(files.iter().copied());
        let config = config::read_config(&project_files);
        let survey = survey_project(&project_files, &layout::read_layout(&project_files), &config);
        let next = survey
            .next_workflows
            .iter()
            .map(|next| format!("{}{}", next.workflow, if next.required { "!" } else { "" }));
        let problems: String = survey.problems.iter().map(|problem| format!("\n  {problem}")).collect();
        format!(
            "{}: {}\n  next {}\n  {}{problems}",
            survey.state.as_str(),
            survey.reasons.join("; "),
            next.collect::<Vec<_>>().join(" "),
            survey.advice
        )
    }

    const ERA_A_MANIFEST: (&str, &str) = ("_bmad/_config/manifest.yaml", "installation:\n  version: 6.0.0-alpha.22\n");
    const ERA_C_MANIFEST: (&str, &str) = ("_bmad/_config/manifest.yaml", "installation:\n  version: 6.10.0\n");
    const BOARD: &str = "_bmad-output/implementation-artifacts/sprint-status.yaml";
    const STATUS: &str = "_bmad-output/planning-artifacts/bmm-workflow-status.yaml";
    const HELP_FILE: (&str, &str) = (
        "_bmad/_config/bmad-help.csv",
        "module,skill,display-name,action,phase,preceded-by,followed-by,required\n\
         M,bmad-product-brief,B,,1-analysis,,,false\nM,bmad-prd,P,,2-planning,,,true\nM,bmad-ux,U,,2-planning,,,false\n\
         M,bmad-create-story,V,validate,3-x,,,false\nM,bmad-architecture,A,,3-x,,,true\n",
    );

    #[test]
    fn a_project_is_clean_planning_active_or_legacy() {
        let planning_path = |name: &str| format!("_bmad-output/planning-artifacts/{name}");
        let prd_path = planning_path("prd.md");
        let short_document = "# X\nwords\n";
        let run_path = planning_path("prds/prd-x-2026-01-01/prd.md");
        let shard_path = planning_path("epics/epic-1.md");
        let track_path = "_bmad/bmm/workflows/workflow-status/paths/method-greenfield.yaml";
        let track_text = "phases:\n  - phase: 2\n    workflows:\n      - {id: prd, required: true}\n\
            \x20     - {id: implementation-readiness, required: true, exec: 'x/check-implementation-readiness/workflow.md'}\n";
        let projects = [
            render_survey(&[]),
            render_survey(&[ERA_A_MANIFEST]),
            render_survey(&[ERA_C_MANIFEST, HELP_FILE]),
            render_survey(&[ERA_C_MANIFEST, HELP_FILE, (&prd_path, short_document)]),
            render_survey(&[
                ERA_C_MANIFEST,
                HELP_FILE,
                (&run_path, short_document),
                (&shard_path, "## Epic 1: A\n### Story 1.1: B\n"),
                (&planning_path("architecture.md"), ""),
            ]),
            render_survey(&[ERA_C_MANIFEST, (BOARD, "development_status:\n  epic-1: backlog\n  1-1-a: done\n")]),
            render_survey(&[ERA_C_MANIFEST, (BOARD, "a: [\n"), (&prd_path, short_document)]),
            render_survey(&[
                ERA_A_MANIFEST,
                (STATUS, &format!("workflow_path: {track_path}\nworkflow_status:\n  prd: \"{prd_path}\"\n")),
                (&prd_path, short_document),
                (track_path, track_text),
            ]),
            render_survey(&[ERA_A_MANIFEST, (STATUS, "workflow_status:\n  prd: docs/gone.md\n")]),
            render_survey(&[ERA_C_MANIFEST, (STATUS, "workflow_status:\n  prd: required\n")]),
            render_survey(&[(".bmad-core/x.yaml", "")]),
            render_survey(&[("bmad/_cfg/manifest.yaml", "")]),
            render_survey(&[ERA_C_MANIFEST, ("docs/sprint-status.yaml", "")]),
        ];
        insta::assert_snapshot!(projects.join("\n"));
    }
}
