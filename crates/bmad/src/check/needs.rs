//! What a step needs before it can be run, which of that is missing, and which step would provide it.
//!
//! BMAD's order: analysis is optional, then PRD, UX where the product has a user interface, architecture, epics with their
//! stories, readiness, the sprint plan, and then story by story. The user decides what to do: run the other step first,
//! continue anyway, or leave it.

use super::{
    MissingDocument, StepSuggestion,
    material::{CheckMaterial, join_path},
    planning_documents,
};
use crate::{
    board::BoardEntryState,
    commands::BmadStep,
    documents::DocumentKind,
    epic_id::EpicId,
    keys::StoryKey,
    layout::Era,
    problem::{FileProblem, rules},
    states::StoryStatus,
};

/// One thing that a step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepNeed {
    Document(DocumentKind),
    /// A readiness verdict, whichever it is: its meaning is judged elsewhere.
    Readiness,
    /// Epics with stories, or a spec of late eras.
    Plan,
    Stories,
    Board,
    /// A story on the board in one of these states.
    StoryAt(&'static [StoryStatus]),
    /// The file of the story that is developed next.
    StoryFile,
}

/// What a step needs, in the order in which it would be provided.
fn needs_of_step(check_material: &CheckMaterial<'_>, step: BmadStep) -> Vec<StepNeed> {
    const PRD: StepNeed = StepNeed::Document(DocumentKind::Prd);
    const ARCHITECTURE: StepNeed = StepNeed::Document(DocumentKind::Architecture);
    const EPICS: StepNeed = StepNeed::Document(DocumentKind::Epics);
    const DUE: StepNeed = StepNeed::StoryAt(&[StoryStatus::ReadyForDev, StoryStatus::InProgress]);
    // An unknown era is treated like the ones that write story files, since most do.
    let creates_story_files = check_material.creates_story_files() || check_material.layout.era.is_none();
    match step {
        BmadStep::Ux | BmadStep::Architecture => vec![PRD],
        BmadStep::Epics | BmadStep::TestDesign => vec![PRD, ARCHITECTURE],
        BmadStep::Readiness => vec![PRD, ARCHITECTURE, EPICS, StepNeed::Stories],
        // Era D judges readiness while it plans.
        BmadStep::SprintPlanning if check_material.layout.era == Some(Era::D) => {
            vec![PRD, ARCHITECTURE, EPICS, StepNeed::Stories]
        }
        BmadStep::SprintPlanning => vec![PRD, ARCHITECTURE, EPICS, StepNeed::Stories, StepNeed::Readiness],
        BmadStep::SprintStatus => vec![StepNeed::Board],
        BmadStep::CreateStory => vec![EPICS, StepNeed::Board, StepNeed::StoryAt(&[StoryStatus::Backlog])],
        BmadStep::DevStory if creates_story_files => vec![StepNeed::Board, DUE, StepNeed::StoryFile],
        BmadStep::CodeReview if creates_story_files => {
            vec![StepNeed::Board, StepNeed::StoryAt(&[StoryStatus::Review])]
        }
        BmadStep::Retrospective => vec![StepNeed::Board, StepNeed::StoryAt(&[StoryStatus::Done])],
        BmadStep::DevStory | BmadStep::Trace => vec![StepNeed::Plan],
        BmadStep::CorrectCourse => vec![PRD, EPICS],
        // These steps can run at any time; they are listed so that a new step does not slip through.
        BmadStep::Brainstorming
        | BmadStep::Research
        | BmadStep::ProductBrief
        | BmadStep::Prd
        | BmadStep::CodeReview
        | BmadStep::Party
        | BmadStep::TechSpec
        | BmadStep::QuickDev
        | BmadStep::DocumentProject
        | BmadStep::ProjectContext
        | BmadStep::ForgeIdea
        | BmadStep::Prfaq
        | BmadStep::Elicitation
        | BmadStep::Lenses
        | BmadStep::Walkthrough
        | BmadStep::EndToEndTests
        | BmadStep::Customize
        | BmadStep::Help => Vec::new(),
    }
}

/// Something that is missing, and the step that provides it.
struct StepGap {
    missing: MissingDocument,
    maker_step: BmadStep,
    reason: String,
    /// Whether that step can run at once, without what it usually needs.
    is_immediate: bool,
}

/// Checks the needs of a step: what is missing, and which step to run first.
pub(super) fn check_needs(
    check_material: &CheckMaterial<'_>,
    step: BmadStep,
    problems: &mut Vec<FileProblem>,
) -> (Vec<MissingDocument>, Option<StepSuggestion>) {
    let found_gaps = find_gaps(check_material, step);
    // The plan may be complete and still be judged not ready; then the advice is to check it again.
    let is_judged_not_ready = problems.iter().any(|problem| problem.rule == rules::READINESS_NOT_READY);
    add_remarks(check_material, step, problems);
    let suggestion = match found_gaps.first() {
        Some(step_gap) => Some(suggest_first_step(check_material, step_gap)),
        None if is_judged_not_ready && builds_on_plan(step) => Some(StepSuggestion {
            step: BmadStep::Readiness.as_str(),
            command: check_material.command_for_step(BmadStep::Readiness),
            why: "the readiness report says that the plan is not ready".into(),
        }),
        None => None,
    };
    (found_gaps.into_iter().map(|step_gap| step_gap.missing).collect(), suggestion)
}

fn builds_on_plan(step: BmadStep) -> bool {
    matches!(step, BmadStep::SprintPlanning | BmadStep::CreateStory | BmadStep::DevStory)
}

fn find_gaps(check_material: &CheckMaterial<'_>, step: BmadStep) -> Vec<StepGap> {
    let mut found_gaps: Vec<StepGap> = Vec::new();
    for step_need in needs_of_step(check_material, step) {
        // Without a board there are no stories on it: the board is what is missing.
        let depends_on_others = matches!(step_need, StepNeed::Stories | StepNeed::StoryAt(_) | StepNeed::StoryFile);
        if depends_on_others && !found_gaps.is_empty() {
            continue;
        }
        found_gaps.extend(find_gap(check_material, step_need));
    }
    found_gaps
}

/// The first step to run: a missing document may itself need others.
fn suggest_first_step(check_material: &CheckMaterial<'_>, step_gap: &StepGap) -> StepSuggestion {
    let (mut step, mut reason) = (step_gap.maker_step, step_gap.reason.clone());
    // Each round goes one step back; the number of steps bounds the loop, should the table ever contain a cycle.
    for _ in BmadStep::ALL.iter().filter(|_| !step_gap.is_immediate) {
        let Some(earlier_gap) =
            find_gaps(check_material, step).into_iter().next().filter(|step_gap| step_gap.maker_step != step)
        else {
            break;
        };
        (step, reason) = (earlier_gap.maker_step, earlier_gap.reason);
    }
    StepSuggestion { step: step.as_str(), command: check_material.command_for_step(step), why: reason }
}

/// The gap for a need; `None` if the need is met.
fn find_gap(check_material: &CheckMaterial<'_>, step_need: StepNeed) -> Option<StepGap> {
    let make_gap = |document_name: &str, missing_path: String, maker_step: BmadStep, reason: &str| {
        let missing = MissingDocument { document: document_name.to_string(), path: missing_path };
        Some(StepGap { missing, maker_step, reason: reason.to_string(), is_immediate: false })
    };
    let project_folders = &check_material.config.folders;
    match step_need {
        StepNeed::Document(kind) => find_document_gap(check_material, kind),
        StepNeed::Stories => {
            let missing_path = check_material.documents.epics().map(|epics| epics.path.clone()).unwrap_or_default();
            let is_missing = check_material.epics.stories().next().is_none();
            is_missing.then(|| make_gap("stories", missing_path, BmadStep::Epics, "the epics have no stories"))?
        }
        StepNeed::Plan => {
            let plans = [
                DocumentKind::Epics,
                DocumentKind::Spec,
                DocumentKind::TechSpec,
                DocumentKind::Story,
                DocumentKind::StorySpec,
            ];
            let has_plan = plans.iter().any(|kind| check_material.documents.first_of_kind(*kind).is_some());
            let missing_path = join_path(&project_folders.planning, "epics.md");
            (!has_plan).then(|| {
                make_gap("epics", missing_path, BmadStep::Epics, "there are no epics, specs or stories to build from")
            })?
        }
        StepNeed::Readiness => {
            let is_judged =
                planning_documents::read_readiness(check_material).is_some_and(|(_, reading)| reading.stated.is_some());
            let missing_path = join_path(&project_folders.planning, "implementation-readiness-report-DATE.md");
            let reason = "the plan has no readiness verdict yet";
            (!is_judged).then(|| make_gap("readiness report", missing_path, BmadStep::Readiness, reason))?
        }
        StepNeed::Board => {
            let missing_path = check_material.board_path.to_string();
            let reason = "there is no usable sprint board";
            check_material.board.is_none().then(|| make_gap("board", missing_path, BmadStep::SprintPlanning, reason))?
        }
        StepNeed::StoryAt(wanted_states) => {
            let is_missing = stories_in_state(check_material, wanted_states).is_empty();
            is_missing.then(|| {
                let state_names: Vec<&str> = wanted_states.iter().map(|state| state.as_str()).collect();
                let (maker_step, reason) = step_towards(check_material, wanted_states);
                let document_name = format!("story in state {}", state_names.join(" or "));
                make_gap(&document_name, check_material.board_path.to_string(), maker_step, reason)
            })?
        }
        StepNeed::StoryFile => find_story_file_gap(check_material),
    }
}

/// The gap for the story that is developed next, if it has no file. The step that writes the file can run at once.
fn find_story_file_gap(check_material: &CheckMaterial<'_>) -> Option<StepGap> {
    // A story in progress is developed before the next one is started.
    let due_stories = stories_in_state(check_material, &[StoryStatus::InProgress]);
    let due_stories = if due_stories.is_empty() {
        stories_in_state(check_material, &[StoryStatus::ReadyForDev])
    } else {
        due_stories
    };
    let story_key = due_stories.into_iter().next()?;
    let is_missing = !check_material.has_story_file(story_key);
    let missing_path = join_path(&check_material.config.folders.implementation, &format!("{story_key}.md"));
    is_missing.then(|| StepGap {
        missing: MissingDocument { document: "story".to_string(), path: missing_path },
        maker_step: BmadStep::CreateStory,
        reason: "the next story has no file".to_string(),
        is_immediate: true,
    })
}

/// The gap for a document that is missing, empty or only a template.
fn find_document_gap(check_material: &CheckMaterial<'_>, document_kind: DocumentKind) -> Option<StepGap> {
    let (document_name, file_name) = match document_kind {
        DocumentKind::Architecture => ("architecture", "architecture.md"),
        DocumentKind::Epics => ("epics", "epics.md"),
        DocumentKind::Ux => ("UX design", "ux-design-specification.md"),
        _ => ("PRD", "prd.md"),
    };
    // Era D keeps each run of a planning workflow in a folder of its own.
    let is_late_era = check_material.layout.era == Some(Era::D);
    let file_name = match document_kind {
        DocumentKind::Prd if is_late_era => "prds/prd-PROJECT-DATE/prd.md",
        DocumentKind::Architecture if is_late_era => "architecture/architecture-PROJECT-DATE/ARCHITECTURE-SPINE.md",
        DocumentKind::Ux if is_late_era => "ux-designs/ux-PROJECT-DATE/DESIGN.md",
        _ => file_name,
    };
    let (missing_path, reason) = match check_material.documents.first_of_kind(document_kind) {
        None => (
            join_path(&check_material.config.folders.planning, file_name),
            format!("there is no {document_name} document yet"),
        ),
        Some(existing) if existing.empty && existing.sharded.is_empty() => {
            (existing.path.clone(), format!("the {document_name} document is empty"))
        }
        Some(existing) if planning_documents::is_template(check_material, existing) => {
            (existing.path.clone(), format!("the {document_name} document is still the unfilled template"))
        }
        Some(_) => return None,
    };
    let missing = MissingDocument { document: document_name.to_string(), path: missing_path };
    Some(StepGap { missing, maker_step: planning_documents::maker_step(document_kind), reason, is_immediate: false })
}

fn stories_in_state<'a>(check_material: &CheckMaterial<'a>, wanted_states: &[StoryStatus]) -> Vec<&'a StoryKey> {
    let is_wanted = |state: Option<BoardEntryState>| match state {
        Some(BoardEntryState::Story(state)) => wanted_states.contains(&state),
        _ => false,
    };
    let board_stories = check_material.board.map(|board| board.stories()).into_iter().flatten();
    board_stories.filter(|(_, board_entry)| is_wanted(board_entry.state)).map(|(story_key, _)| story_key).collect()
}

/// The step that brings a story to one of these states, and why.
fn step_towards(check_material: &CheckMaterial<'_>, wanted_states: &[StoryStatus]) -> (BmadStep, &'static str) {
    let has_story_at = |state: StoryStatus| !stories_in_state(check_material, &[state]).is_empty();
    let is_wanted = |state: StoryStatus| wanted_states.contains(&state);
    // A story is done after its review, so a story at review is the nearest one.
    if is_wanted(StoryStatus::Done) {
        return if has_story_at(StoryStatus::Review) {
            (BmadStep::CodeReview, "no story is done yet")
        } else {
            (BmadStep::DevStory, "no story is done yet")
        };
    }
    if is_wanted(StoryStatus::Review) {
        return (BmadStep::DevStory, "no story is waiting for review");
    }
    if is_wanted(StoryStatus::ReadyForDev) && has_story_at(StoryStatus::Backlog) {
        return (BmadStep::CreateStory, "no story is ready for development yet");
    }
    (BmadStep::SprintPlanning, "the board has no story for this step")
}

/// Remarks that may interest the user before the step and do not keep it from running.
fn add_remarks(check_material: &CheckMaterial<'_>, step: BmadStep, problems: &mut Vec<FileProblem>) {
    let needs_ux = matches!(step, BmadStep::Architecture | BmadStep::Epics | BmadStep::Readiness);
    if needs_ux
        && let Some(prd_document) = check_material.documents.prd().filter(|_| check_material.documents.ux().is_none())
    {
        problems.push(
            FileProblem::note("ux-missing", &prd_document.path, "no UX design found")
                .with_reason("It is only needed if the product has a user interface.")
                .with_advice(format!("if it has one: {}", check_material.command_for_step(BmadStep::Ux))),
        );
    }
    if step == BmadStep::Retrospective
        && let Some(board) = check_material.board
    {
        // An epic without stories is no reason to wait.
        let has_open_story = |epic: &EpicId| {
            let is_over = |state: Option<BoardEntryState>| state.is_some_and(BoardEntryState::is_over);
            board.stories_of(epic).any(|(_, board_entry)| !is_over(board_entry.state))
        };
        if !board.epic_ids().is_empty() && board.epic_ids().iter().all(has_open_story) {
            let message = "every epic still has unfinished stories";
            let problem = FileProblem::warning("retrospective-early", &board.path, message);
            problems.push(problem.with_reason("A retrospective covers a complete epic."));
        }
    }
}
