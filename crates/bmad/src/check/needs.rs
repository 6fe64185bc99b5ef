//! What a step needs before it can be run, which of that is missing, and which step would provide it.
//!
//! BMAD's order: analysis is optional, then PRD, UX where the product has a user interface, architecture, epics with their
//! stories, readiness, the sprint plan, and then story by story. The user decides what to do: run the other step first,
//! continue anyway, or leave it.

use super::{
    Missing, Suggestion,
    material::{Material, joined},
    papers,
};
use crate::{
    board::State,
    commands::Step,
    documents::Kind,
    keys::{StoryKey, StoryStatus},
    layout::Era,
    problem::{Problem, rules},
};

/// One thing that a step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Document(Kind),
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
fn needs(material: &Material<'_>, step: Step) -> Vec<Need> {
    const PRD: Need = Need::Document(Kind::Prd);
    const ARCHITECTURE: Need = Need::Document(Kind::Architecture);
    const EPICS: Need = Need::Document(Kind::Epics);
    const DUE: Need = Need::StoryAt(&[StoryStatus::ReadyForDev, StoryStatus::InProgress]);
    // An unknown era is treated like the ones that write story files, since most do.
    let creates = material.creates() || material.layout.era.is_none();
    match step {
        Step::Ux | Step::Architecture => vec![PRD],
        Step::Epics | Step::TestDesign => vec![PRD, ARCHITECTURE],
        Step::Readiness => vec![PRD, ARCHITECTURE, EPICS, Need::Stories],
        // Era D judges readiness while it plans.
        Step::SprintPlanning if material.layout.era == Some(Era::D) => {
            vec![PRD, ARCHITECTURE, EPICS, Need::Stories]
        }
        Step::SprintPlanning => vec![PRD, ARCHITECTURE, EPICS, Need::Stories, Need::Readiness],
        Step::SprintStatus => vec![Need::Board],
        Step::CreateStory => vec![EPICS, Need::Board, Need::StoryAt(&[StoryStatus::Backlog])],
        Step::DevStory if creates => vec![Need::Board, DUE, Need::StoryFile],
        Step::CodeReview if creates => vec![Need::Board, Need::StoryAt(&[StoryStatus::Review])],
        Step::Retrospective => vec![Need::Board, Need::StoryAt(&[StoryStatus::Done])],
        Step::DevStory | Step::Trace => vec![Need::Plan],
        Step::CorrectCourse => vec![PRD, EPICS],
        // These steps can run at any time; they are listed so that a new step does not slip through.
        Step::Brainstorming
        | Step::Research
        | Step::ProductBrief
        | Step::Prd
        | Step::CodeReview
        | Step::Party
        | Step::TechSpec
        | Step::QuickDev
        | Step::DocumentProject
        | Step::ProjectContext => Vec::new(),
    }
}

/// Something that is missing, and the step that provides it.
struct Gap {
    missing: Missing,
    maker: Step,
    why: String,
    /// Whether that step can run at once, without what it usually needs.
    at_once: bool,
}

/// Checks the needs of a step: what is missing, and which step to run first.
pub(super) fn check(
    material: &Material<'_>,
    step: Step,
    problems: &mut Vec<Problem>,
) -> (Vec<Missing>, Option<Suggestion>) {
    let gaps = gaps(material, step);
    // The plan may be complete and still be judged not ready; then the advice is to check it again.
    let refused = problems.iter().any(|problem| problem.rule == rules::READINESS_NOT_READY);
    remarks(material, step, problems);
    let suggestion = match gaps.first() {
        Some(gap) => Some(first_of_all(material, gap)),
        None if refused && is_built_on_the_plan(step) => Some(Suggestion {
            step: Step::Readiness.as_str(),
            command: material.how(Step::Readiness),
            why: "the plan was judged not ready".into(),
        }),
        None => None,
    };
    (gaps.into_iter().map(|gap| gap.missing).collect(), suggestion)
}

fn is_built_on_the_plan(step: Step) -> bool {
    matches!(step, Step::SprintPlanning | Step::CreateStory | Step::DevStory)
}

fn gaps(material: &Material<'_>, step: Step) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = Vec::new();
    for need in needs(material, step) {
        // Without a board there are no stories on it: the board is what is missing.
        let follows = matches!(need, Need::Stories | Need::StoryAt(_) | Need::StoryFile);
        if follows && !gaps.is_empty() {
            continue;
        }
        gaps.extend(gap(material, need));
    }
    gaps
}

/// The first step to run: a missing document may itself need others.
fn first_of_all(material: &Material<'_>, gap: &Gap) -> Suggestion {
    let (mut step, mut why) = (gap.maker, gap.why.clone());
    // Each round goes one step back; the number of steps bounds the loop, should the table ever contain a cycle.
    for _ in Step::ALL.iter().filter(|_| !gap.at_once) {
        let Some(before) = gaps(material, step).into_iter().next().filter(|gap| gap.maker != step) else {
            break;
        };
        (step, why) = (before.maker, before.why);
    }
    Suggestion { step: step.as_str(), command: material.how(step), why }
}

/// The gap for a need; `None` if the need is met.
fn gap(material: &Material<'_>, need: Need) -> Option<Gap> {
    let made = |document: &str, path: String, maker: Step, why: &str| {
        let missing = Missing { document: document.to_string(), path };
        Some(Gap { missing, maker, why: why.to_string(), at_once: need == Need::StoryFile })
    };
    let folders = &material.config.folders;
    match need {
        Need::Document(kind) => document(material, kind),
        Need::Stories => {
            let path = material.documents.epics().map(|epics| epics.path.clone()).unwrap_or_default();
            let none = material.epics.stories().next().is_none();
            none.then(|| made("stories", path, Step::Epics, "the epics have no stories"))?
        }
        Need::Plan => {
            let plans = [Kind::Epics, Kind::Spec, Kind::TechSpec, Kind::Story, Kind::StorySpec];
            let has = plans.iter().any(|kind| material.documents.first(*kind).is_some());
            let path = joined(&folders.planning, "epics.md");
            (!has).then(|| made("epics", path, Step::Epics, "nothing says what is to be built"))?
        }
        Need::Readiness => {
            let stated = papers::readiness_of(material).is_some_and(|(_, reading)| reading.stated.is_some());
            let path = joined(&folders.planning, "implementation-readiness-report-DATE.md");
            let why = "nobody has judged whether the plan can be built";
            (!stated).then(|| made("readiness report", path, Step::Readiness, why))?
        }
        Need::Board => {
            let path = material.board_path.to_string();
            let why = "there is no board that says how far the stories are";
            material.board.is_none().then(|| made("board", path, Step::SprintPlanning, why))?
        }
        Need::StoryAt(states) => {
            let none = stories_at(material, states).is_empty();
            none.then(|| {
                let words: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
                let (maker, why) = towards(material, states);
                let document = format!("story at {}", words.join(" or "));
                made(&document, material.board_path.to_string(), maker, why)
            })?
        }
        Need::StoryFile => {
            // A story in progress is developed before the next one is started.
            let due = stories_at(material, &[StoryStatus::InProgress]);
            let due = if due.is_empty() { stories_at(material, &[StoryStatus::ReadyForDev]) } else { due };
            let key = due.into_iter().min_by_key(|key| key.number())?;
            let none = !material.is_written(key.number());
            let path = joined(&folders.implementation, &format!("{key}.md"));
            none.then(|| made("story", path, Step::CreateStory, "the story has no file"))?
        }
    }
}

/// The gap for a document that is missing, empty or only a template.
fn document(material: &Material<'_>, kind: Kind) -> Option<Gap> {
    let (name, file) = match kind {
        Kind::Architecture => ("architecture", "architecture.md"),
        Kind::Epics => ("epics", "epics.md"),
        Kind::Ux => ("UX design", "ux-design-specification.md"),
        _ => ("PRD", "prd.md"),
    };
    // Era D keeps each run of a planning workflow in a folder of its own.
    let late = material.layout.era == Some(Era::D);
    let file = match kind {
        Kind::Prd if late => "prds/prd-PROJECT-DATE/prd.md",
        Kind::Architecture if late => "architecture/architecture-PROJECT-DATE/ARCHITECTURE-SPINE.md",
        Kind::Ux if late => "ux-designs/ux-PROJECT-DATE/DESIGN.md",
        _ => file,
    };
    let (path, why) = match material.documents.first(kind) {
        None => (joined(&material.config.folders.planning, file), format!("there is no {name}")),
        Some(there) if there.empty && there.sharded.is_empty() => {
            (there.path.clone(), format!("the {name} is empty"))
        }
        Some(there) if papers::is_template(material, there) => {
            (there.path.clone(), format!("the {name} is only its template"))
        }
        Some(_) => return None,
    };
    let missing = Missing { document: name.to_string(), path };
    Some(Gap { missing, maker: papers::maker(kind), why, at_once: false })
}

fn stories_at<'a>(material: &Material<'a>, states: &[StoryStatus]) -> Vec<&'a StoryKey> {
    let is_at = |state: Option<State>| match state {
        Some(State::Story(state)) => states.contains(&state),
        _ => false,
    };
    let all = material.board.map(|board| board.stories()).into_iter().flatten();
    all.filter(|(_, entry)| is_at(entry.state)).map(|(key, _)| key).collect()
}

/// The step that brings a story to one of these states, and why.
fn towards(material: &Material<'_>, states: &[StoryStatus]) -> (Step, &'static str) {
    let has = |state: StoryStatus| !stories_at(material, &[state]).is_empty();
    let at = |state: StoryStatus| states.contains(&state);
    // A story is done after its review, so a story at review is the nearest one.
    if at(StoryStatus::Done) {
        return if has(StoryStatus::Review) {
            (Step::CodeReview, "no story is done")
        } else {
            (Step::DevStory, "no story is done")
        };
    }
    if at(StoryStatus::Review) {
        return (Step::DevStory, "no story waits for a review");
    }
    if at(StoryStatus::ReadyForDev) && has(StoryStatus::Backlog) {
        return (Step::CreateStory, "no story is written yet");
    }
    (Step::SprintPlanning, "the board has no story left for it")
}

/// Remarks that may interest the user before the step and do not keep it from running.
fn remarks(material: &Material<'_>, step: Step, problems: &mut Vec<Problem>) {
    let ux = matches!(step, Step::Architecture | Step::Epics | Step::Readiness);
    if ux && let Some(prd) = material.documents.prd().filter(|_| material.documents.ux().is_none()) {
        problems.push(
            Problem::note("ux-missing", &prd.path, "there is no UX design")
                .why("it is needed only where people see something of the product")
                .todo(format!("if they do: {}", material.how(Step::Ux))),
        );
    }
    if step == Step::Retrospective
        && let Some(board) = material.board
    {
        // An epic without stories is no reason to wait.
        let open = |epic: &u32| {
            let mut own = board.stories().filter(|(key, _)| key.epic == *epic).peekable();
            let is_done = |state: Option<State>| state == Some(State::Story(StoryStatus::Done));
            own.peek().is_some() && own.any(|(_, entry)| !is_done(entry.state))
        };
        if !board.epics().is_empty() && board.epics().iter().all(open) {
            let what = "no epic has all of its stories done";
            let problem = Problem::warning("retrospective-early", &board.path, what);
            problems.push(problem.why("a retrospective looks back on a whole epic"));
        }
    }
}
