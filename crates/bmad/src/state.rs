//! How far a project has come: clean, planning, active or legacy, by the documents that it has, and what to do next.
//!
//! Documents are found by `documents`; whether they are any good is not checked here.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    board,
    commands::Step,
    config::Config,
    documents::{self, Documents, Kind},
    help::{self, Help},
    layout::{Era, Layout},
    paths::{self, Progress},
    problem::Problem,
    shelf::{self, Shelf},
};

/// How far a project has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nothing is planned yet: choose a tier and begin.
    Clean,
    /// There are plans and no board: continue from them, or start again.
    Planning,
    /// Work has begun: resume.
    Active,
    /// The files are of an older BMAD, or contradict the project: review them first.
    Legacy,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            State::Clean => "clean",
            State::Planning => "planning",
            State::Active => "active",
            State::Legacy => "legacy",
        }
    }
}

/// A document that a step of the method has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Document {
    pub step: Step,
    pub path: String,
}

/// A workflow that could run now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Next {
    /// BMAD's name for the workflow.
    pub workflow: String,
    /// Tribunal's name for it; `None` if it is no step that Tribunal runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    pub required: bool,
}

/// The state of a project with the evidence for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub state: State,
    /// What was found, one sentence each.
    pub reasons: Vec<String>,
    /// The documents in the order of the method.
    pub documents: Vec<Document>,
    /// The optional workflows, then the first required one.
    pub next: Vec<Next>,
    /// What to do next, for the user.
    pub todo: String,
    pub problems: Vec<Problem>,
}

/// Detects the state of a project and what can run next.
pub fn read(shelf: &dyn Shelf, layout: &Layout, config: &Config) -> Found {
    let mut problems = Vec::new();
    let all = documents::find(shelf, &config.folders);
    problems.extend(all.problems.iter().cloned());
    let documents = documents(&all);
    let mut seen = Seen { shelf, layout, config, reasons: Vec::new(), board: false };
    let state = seen.state(&documents, &mut problems);
    let mut reasons = std::mem::take(&mut seen.reasons);
    if reasons.is_empty() {
        reasons.push("there are no documents of the method".into());
    }
    let next = match state {
        State::Clean | State::Planning => next(shelf, layout, config, &documents, &mut problems),
        // Where there is a board, the board says what is next.
        State::Active if seen.board => Vec::new(),
        State::Active => next(shelf, layout, config, &documents, &mut problems),
        State::Legacy => Vec::new(),
    };
    let todo = todo(state, layout, &next);
    Found { state, reasons, documents, next, todo, problems }
}

/// Collects the evidence for a state while it is detected.
struct Seen<'a> {
    shelf: &'a dyn Shelf,
    layout: &'a Layout,
    config: &'a Config,
    reasons: Vec<String>,
    board: bool,
}

impl Seen<'_> {
    /// Detects the state. The strongest evidence comes first: a board, the status file, legacy files, documents.
    fn state(&mut self, documents: &[Document], problems: &mut Vec<Problem>) -> State {
        self.board = self.has_board();
        if self.board {
            return State::Active;
        }
        // Without a board, the status file of the alphas shows the progress.
        if let Some(state) = self.by_status(problems) {
            return state;
        }
        if self.is_old() {
            return State::Legacy;
        }
        for document in documents {
            self.reasons.push(format!("`{}` is there, and no board", document.path));
        }
        if documents.is_empty() { State::Clean } else { State::Planning }
    }

    /// Whether there is a board, with a reason for it.
    fn has_board(&mut self) -> bool {
        let path = under(&self.config.folders.implementation, board::FILE);
        let Ok(Some(text)) = self.shelf.read(&path) else { return false };
        let board = board::read(&path, &text);
        let stories = board.stories().count();
        // The board reports its own problems. Even a broken board means that work has begun.
        self.reasons.push(match (board.readable, stories) {
            (false, _) => format!("`{path}` is there and cannot be read"),
            (true, 1) => format!("`{path}` has 1 story"),
            (true, stories) => format!("`{path}` has {stories} stories"),
        });
        true
    }

    /// Detects the state by the status file of early alphas. It counts while it belongs to this era and the files that it
    /// names exist.
    fn by_status(&mut self, problems: &mut Vec<Problem>) -> Option<State> {
        let (path, status) = status(self.shelf, self.config, problems)?;
        if self.layout.era.is_some_and(|era| era > Era::A) {
            self.reasons.push(format!("`{path}` is of an early alpha, and BMAD is not"));
            return Some(State::Legacy);
        }
        // A file that is gone means that the status file no longer describes this project.
        let gone = status.items.iter().find_map(|(id, progress)| match progress {
            Progress::Done(file) if !is_there(self.shelf, file) => Some((id, file)),
            _ => None,
        });
        if let Some((id, file)) = gone {
            self.reasons.push(format!("`{path}` says that {id} wrote `{file}`, and it is not there"));
            return Some(State::Legacy);
        }
        let done = status.items.iter().filter(|(_, progress)| matches!(progress, Progress::Done(_))).count();
        self.reasons.push(format!("`{path}` says that {done} of {} workflows are done", status.items.len()));
        Some(State::Active)
    }

    /// Whether the project belongs to an older BMAD, with a reason for it.
    fn is_old(&mut self) -> bool {
        if self.layout.v4 && self.layout.root.is_none() {
            self.reasons.push("`.bmad-core` is there: BMAD 4".into());
            return true;
        }
        if let Some(root) = self.layout.root.as_deref().filter(|root| *root != "_bmad") {
            self.reasons.push(format!("BMAD stands in `{root}`, as in early alphas"));
            return true;
        }
        // Earlier versions kept their boards in these directories.
        let old = ["docs", "docs/sprint-artifacts", "docs/stories", "_bmad-output"];
        let old = old.into_iter().map(|folder| under(folder, board::FILE));
        let own = under(&self.config.folders.implementation, board::FILE);
        // The configured board is where it should be, even if it is one of those directories.
        match old.into_iter().find(|path| *path != own && is_there(self.shelf, path)) {
            Some(path) => {
                self.reasons.push(format!("`{path}` is a board, and the settings say `{own}`"));
                true
            }
            None => false,
        }
    }
}

/// The status file of early alphas and its path.
fn status(
    shelf: &dyn Shelf,
    config: &Config,
    problems: &mut Vec<Problem>,
) -> Option<(String, paths::Status)> {
    // Alphas wrote the file to either folder, depending on the version.
    let folders = [&config.folders.planning, &config.folders.output];
    let path =
        folders.map(|folder| under(folder, paths::STATUS)).into_iter().find(|path| is_there(shelf, path))?;
    let text = shelf::read(shelf, &path, problems)?;
    let status = paths::status(&path, &text);
    problems.extend(status.problems.iter().cloned());
    Some((path, status))
}

fn is_there(shelf: &dyn Shelf, path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    shelf.names(folder).iter().any(|there| there.trim_end_matches('/') == name)
}

fn under(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") }
}

/// The step that writes each kind of document; other kinds do not belong to planning.
const STEPS: [(Kind, Step); 10] = [
    (Kind::Research, Step::Research),
    (Kind::ProductBrief, Step::ProductBrief),
    (Kind::Prd, Step::Prd),
    (Kind::Ux, Step::Ux),
    (Kind::Architecture, Step::Architecture),
    (Kind::Epics, Step::Epics),
    (Kind::TestDesign, Step::TestDesign),
    (Kind::Readiness, Step::Readiness),
    (Kind::TechSpec, Step::TechSpec),
    (Kind::Spec, Step::TechSpec),
];

/// The planning documents that exist and are not empty: the first one of each step, in the order of the method.
pub fn documents(all: &Documents) -> Vec<Document> {
    let mut found: Vec<Document> = Vec::new();
    for (kind, step) in STEPS {
        let first = all.of(kind).find(|document| !document.empty);
        if let Some(first) = first.filter(|_| found.iter().all(|document| document.step != step)) {
            found.push(Document { step, path: first.path.clone() });
        }
    }
    found
}

/// The next workflows: by the status file and its track where they exist, otherwise by the list of workflows and the
/// documents.
fn next(
    shelf: &dyn Shelf,
    layout: &Layout,
    config: &Config,
    documents: &[Document],
    problems: &mut Vec<Problem>,
) -> Vec<Next> {
    let Some(root) = &layout.root else { return Vec::new() };
    // A track is specific to the project, so it wins over the general list.
    if let Some(next) = on_path(shelf, root, config, problems) {
        return next;
    }
    let path = under(root, help::HELP_PATH);
    let Some(text) = shelf::read(shelf, &path, problems) else { return built_in(documents) };
    let help: Help = help::read(&path, &text);
    problems.extend(help.problems.iter().cloned());
    let is_done = |workflow: &help::Workflow| {
        workflow.step().is_some_and(|step| documents.iter().any(|document| document.step == step))
    };
    // An optional action of a workflow, such as `validate`, is no step of its own.
    let own = |workflow: &&help::Workflow| workflow.action.is_empty() || workflow.required;
    let next = help.next(is_done).into_iter().filter(own);
    // The list of 6.1 still has the names of earlier commands; its skills have shorter ones.
    let named = |id: &str| match (layout.era, id.strip_prefix("bmad-bmm-")) {
        (Some(Era::C1), Some(rest)) => format!("bmad-{rest}"),
        _ => id.to_string(),
    };
    next.map(|workflow| Next {
        workflow: named(&workflow.id),
        step: workflow.step(),
        required: workflow.required,
    })
    .collect()
}

/// The next workflows on the track of an early alpha; `None` if the project has no status file or no track.
fn on_path(shelf: &dyn Shelf, root: &str, config: &Config, problems: &mut Vec<Problem>) -> Option<Vec<Next>> {
    // The problems of the status file are reported by the detection of the state.
    let (_, status) = status(shelf, config, &mut Vec::new())?;
    let name = status.path.rsplit('/').next().filter(|name| !name.is_empty())?;
    let path = format!("{root}/{}/{name}", paths::PATHS);
    let text = shelf::read(shelf, &path, problems)?;
    let track = paths::read(&path, &text);
    problems.extend(track.problems.iter().cloned());
    let next = track.next(&status);
    Some(
        next.iter()
            .map(|stop| Next {
                workflow: stop.id.clone(),
                step: Step::named(&stop.id).or_else(|| by_folder(&stop.file)),
                required: stop.need == paths::Need::Required,
            })
            .collect(),
    )
}

/// The step of `…/check-implementation-readiness/workflow.md`: the directory has the workflow's name where the id differs.
fn by_folder(file: &str) -> Option<Step> {
    let folder = file.rsplit('/').nth(1)?;
    Step::named(folder).or_else(|| Step::named(&format!("testarch-{folder}")))
}

/// The method without a list: early alphas before their status file exists.
fn built_in(documents: &[Document]) -> Vec<Next> {
    const METHOD: [(Step, bool); 7] = [
        (Step::ProductBrief, false),
        (Step::Prd, true),
        (Step::Ux, false),
        (Step::Architecture, true),
        (Step::Epics, true),
        (Step::Readiness, true),
        (Step::SprintPlanning, true),
    ];
    let mut next = Vec::new();
    for (step, required) in METHOD {
        if documents.iter().any(|document| document.step == step) {
            continue;
        }
        next.push(Next { workflow: step.as_str().into(), step: Some(step), required });
        if required {
            break;
        }
    }
    next
}

/// What to do next, in one sentence.
fn todo(state: State, layout: &Layout, next: &[Next]) -> String {
    let required = next.iter().find(|next| next.required).map(|next| next.workflow.as_str());
    match (state, required) {
        // Without BMAD nothing can be planned, so this comes before the states; legacy files need advice of their own.
        _ if layout.root.is_none() && state != State::Legacy => {
            "install BMAD to plan with it: npx bmad-method install; reviews work without it".into()
        }
        (State::Clean, Some(next)) => {
            format!("choose a tier, then begin; {next} is the first that is required")
        }
        (State::Clean, None) => "choose a tier, then begin".into(),
        (State::Planning, Some(next)) => format!("go on with {next}, or begin anew"),
        (State::Planning, None) => "go on from the documents, or begin anew".into(),
        (State::Active, _) => "resume: tribunal status".into(),
        (State::Legacy, _) => "look it over, then clean up or resume: npx bmad-method install".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config, layout, shelf::Kept};

    fn drawn(files: &[(&str, &str)]) -> String {
        let shelf = Kept::with(files.iter().copied());
        let config = config::read(&shelf);
        let found = read(&shelf, &layout::read(&shelf), &config);
        let next = found
            .next
            .iter()
            .map(|next| format!("{}{}", next.workflow, if next.required { "!" } else { "" }));
        let problems: String = found.problems.iter().map(|problem| format!("\n  {problem}")).collect();
        format!(
            "{}: {}\n  next {}\n  {}{problems}",
            found.state.as_str(),
            found.reasons.join("; "),
            next.collect::<Vec<_>>().join(" "),
            found.todo
        )
    }

    const A: (&str, &str) = ("_bmad/_config/manifest.yaml", "installation:\n  version: 6.0.0-alpha.22\n");
    const C: (&str, &str) = ("_bmad/_config/manifest.yaml", "installation:\n  version: 6.10.0\n");
    const BOARD: &str = "_bmad-output/implementation-artifacts/sprint-status.yaml";
    const STATUS: &str = "_bmad-output/planning-artifacts/bmm-workflow-status.yaml";
    const HELP: (&str, &str) = (
        "_bmad/_config/bmad-help.csv",
        "module,skill,display-name,action,phase,preceded-by,followed-by,required\n\
         M,bmad-product-brief,B,,1-analysis,,,false\nM,bmad-prd,P,,2-planning,,,true\nM,bmad-ux,U,,2-planning,,,false\n\
         M,bmad-create-story,V,validate,3-x,,,false\nM,bmad-architecture,A,,3-x,,,true\n",
    );

    #[test]
    fn a_project_is_clean_planning_active_or_legacy() {
        let plan = |name: &str| format!("_bmad-output/planning-artifacts/{name}");
        let prd = plan("prd.md");
        let x = "# X\nwords\n";
        let run = plan("prds/prd-x-2026-01-01/prd.md");
        let shard = plan("epics/epic-1.md");
        let path = "_bmad/bmm/workflows/workflow-status/paths/method-greenfield.yaml";
        let track = "phases:\n  - phase: 2\n    workflows:\n      - {id: prd, required: true}\n\
            \x20     - {id: implementation-readiness, required: true, exec: 'x/check-implementation-readiness/workflow.md'}\n";
        let all = [
            drawn(&[]),
            drawn(&[A]),
            drawn(&[C, HELP]),
            drawn(&[C, HELP, (&prd, x)]),
            drawn(&[
                C,
                HELP,
                (&run, x),
                (&shard, "## Epic 1: A\n### Story 1.1: B\n"),
                (&plan("architecture.md"), ""),
            ]),
            drawn(&[C, (BOARD, "development_status:\n  epic-1: backlog\n  1-1-a: done\n")]),
            drawn(&[C, (BOARD, "a: [\n"), (&prd, x)]),
            drawn(&[
                A,
                (STATUS, &format!("workflow_path: {path}\nworkflow_status:\n  prd: \"{prd}\"\n")),
                (&prd, x),
                (path, track),
            ]),
            drawn(&[A, (STATUS, "workflow_status:\n  prd: docs/gone.md\n")]),
            drawn(&[C, (STATUS, "workflow_status:\n  prd: required\n")]),
            drawn(&[(".bmad-core/x.yaml", "")]),
            drawn(&[("bmad/_cfg/manifest.yaml", "")]),
            drawn(&[C, ("docs/sprint-status.yaml", "")]),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }
}
