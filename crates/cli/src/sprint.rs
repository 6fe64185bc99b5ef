//! The sprint as a tree: epics and stories with their states, progress and open findings, and the next step with its reason.
//!
//! Everything is read from files and the journal; nothing is run and nothing is written here.

use std::{collections::BTreeMap, fmt::Write};

use schemars::JsonSchema;
use serde::Serialize;
use tribunal_bmad::{
    board::{
        ActionItem, Board, State,
        next::{self, What},
    },
    commands::{self, Command, Step},
    documents::{self, Kind},
    keys::{EpicStatus, Key, RetroStatus, StoryKey, StoryStatus},
    problem::{Problem, Weight},
    retro, shelf, story,
};
use tribunal_core::{ids::RunId, subject::Subject, text::count, view::RunView};
use tribunal_report::{Screen, Style, escaped};

use crate::bmad::{self, Bmad};

/// How many problems are shown one by one.
const MOST_PROBLEMS: usize = 3;

/// The board with what is known about every story.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Sprint {
    /// The path of the board.
    pub board: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub stories: usize,
    pub done: usize,
    pub epics: Vec<EpicRow>,
    /// Promises of retrospectives that are not kept yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub action_items: Vec<ActionItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EpicRow {
    pub epic: u32,
    /// The state; none if the board has no line for the epic, or one without a known state.
    pub state: Option<EpicStatus>,
    pub stories: Vec<StoryRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrospective: Option<RetroStatus>,
    /// The verdict in the retrospective's document, in late eras.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StoryRow {
    pub key: StoryKey,
    /// The state; none if the board's word for it is not known.
    pub state: Option<StoryStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub tasks: usize,
    pub tasks_done: usize,
    /// The status in the story's file if it differs from the board: `blocked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// The number of follow-ups that reviews left in the story's file.
    pub follow_ups: usize,
    /// The number of open findings in the last runs over its file and its change.
    pub findings: u32,
    /// Those runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunId>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NextStep {
    pub what: What,
    pub key: Key,
    pub reason: String,
    /// The prompt that makes an agent do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The reason why there is no command, and what to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// Reads the sprint. `None` if the project has no board. `run_views` are the project's runs, oldest first.
pub(crate) fn look(bmad: &Bmad, views: &[&RunView]) -> Option<Sprint> {
    let misplaced: Vec<Problem> = bmad.misplaced().cloned().collect();
    // A board in a directory that we may not use is not the one that agents work on.
    if !misplaced.is_empty() {
        return Some(empty(bmad.board_path(), misplaced));
    }
    let Some(board) = &bmad.board else {
        // A file that cannot be opened is shown as a problem of an empty sprint, not as a missing board.
        let problems = bmad.problems.clone();
        return (!problems.is_empty()).then(|| empty(bmad.board_path(), problems));
    };
    // Rows of a board that could not be read would all be wrong.
    if !board.readable {
        return Some(empty(board.path.clone(), board.problems.clone()));
    }
    let rows: Vec<StoryRow> =
        board.stories().map(|(key, entry)| row(bmad, key, entry.state, views)).collect();
    let done = rows.iter().filter(|row| row.state == Some(StoryStatus::Done)).count();
    let stories = rows.len();
    let mut epics: Vec<EpicRow> = board.epics().into_iter().map(|epic| epic_row(board, epic)).collect();
    // Verdicts come from the retrospectives' documents; the board only has their states.
    for (epic, verdict) in verdicts(bmad) {
        epics
            .iter_mut()
            .filter(|row| row.epic == epic)
            .for_each(|row| row.verdict = Some(verdict.to_string()));
    }
    // Stories whose epic the board does not list cannot be placed in the tree.
    for row in rows {
        if let Some(epic) = epics.iter_mut().find(|epic| epic.epic == row.key.epic) {
            epic.stories.push(row);
        }
    }
    Some(Sprint {
        board: board.path.clone(),
        project: board.project.clone(),
        stories,
        done,
        epics,
        action_items: board.open_action_items().cloned().collect(),
        next: next_step(bmad, board),
        problems: board.problems.clone(),
    })
}

/// A sprint with nothing but problems.
fn empty(board: String, problems: Vec<Problem>) -> Sprint {
    Sprint {
        board,
        project: None,
        stories: 0,
        done: 0,
        epics: Vec::new(),
        action_items: Vec::new(),
        next: None,
        problems,
    }
}

fn epic_row(board: &Board, epic: u32) -> EpicRow {
    let retrospective = match board.entry(&Key::Retrospective(epic)).and_then(|entry| entry.state) {
        Some(State::Retrospective(state)) => Some(state),
        _ => None,
    };
    EpicRow { epic, state: next::epic_state(board, epic), stories: Vec::new(), retrospective, verdict: None }
}

/// Collects the verdicts of retrospectives; of two about one epic the newer one counts.
fn verdicts(bmad: &Bmad) -> BTreeMap<u32, &'static str> {
    let found = documents::find(&bmad.shelf, &bmad.config.folders);
    let mut verdicts = BTreeMap::new();
    for document in found.of(Kind::Retro) {
        let text = shelf::read(&bmad.shelf, &document.path, &mut Vec::new()).unwrap_or_default();
        let retro = retro::read(&document.path, &text);
        if let (Some(epic), Some(verdict)) = (retro.epic, retro.verdict) {
            // Documents come newest first.
            verdicts.entry(epic).or_insert(verdict.as_str());
        }
    }
    verdicts
}

/// Makes the row of one story from its file, the board and its runs.
fn row(bmad: &Bmad, key: &StoryKey, state: Option<State>, views: &[&RunView]) -> StoryRow {
    let file = bmad.story_file(key);
    // A file that cannot be read has no tasks; `validate` says why.
    let text = file.as_ref().and_then(|file| shelf::read(&bmad.shelf, file, &mut Vec::new()));
    let story = text.map(|text| story::read(file.as_deref().unwrap_or_default(), &text)).unwrap_or_default();
    let (tasks_done, tasks) = story.progress();
    let follow_ups = story.open_follow_ups().count();
    let (findings, runs) = file.as_deref().map(|file| open_findings(file, views)).unwrap_or_default();
    let state = match state {
        Some(State::Story(state)) => Some(state),
        _ => None,
    };
    // The file's status is shown only if it differs from the board, or if it is not a known status.
    let other = story.status.filter(|line| line.status.is_none() || line.status != state);
    let says = other.map(|line| line.said);
    StoryRow { key: key.clone(), state, file, tasks, tasks_done, says, follow_ups, findings, runs }
}

/// Counts open findings of the last run over the file and of the last run over a change for it. Older runs are out of date.
fn open_findings(file: &str, views: &[&RunView]) -> (u32, Vec<RunId>) {
    let is_file =
        |subject: &Subject| matches!(subject, Subject::Document { path, section: None } if path == file);
    let is_change =
        |subject: &Subject| subject.change().is_some_and(|change| change.story.as_deref() == Some(file));
    let last = |is_meant: &dyn Fn(&Subject) -> bool| {
        views
            .iter()
            .rev()
            .find(|view| view.settings.as_ref().is_some_and(|settings| is_meant(&settings.subject)))
    };
    let mut open = 0;
    let mut runs = Vec::new();
    for view in [last(&is_file), last(&is_change)].into_iter().flatten() {
        let counts = view.counts();
        // Blocked findings wait for the user, so they are open from the story's point of view.
        open += counts.open + counts.blocked;
        runs.extend(view.run.clone());
    }
    (open, runs)
}

/// Finds the next step with the command that does it.
fn next_step(bmad: &Bmad, board: &Board) -> Option<NextStep> {
    let command = |step: Step| commands::of(&bmad.layout, step, bmad.client(), &bmad.shelf);
    // Without an installed workflow for new stories, suggesting one would be useless. Without BMAD nothing is known about it.
    let creates = !matches!(command(Step::CreateStory), Command::Missing { .. }) || bmad.layout.era.is_none();
    let next = next::next(board, creates)?;
    let step = match next.what {
        What::CreateStory => Step::CreateStory,
        What::Develop => Step::DevStory,
        What::Review => Step::CodeReview,
        What::Retrospective => Step::Retrospective,
    };
    let about = match &next.key {
        Key::Story(story) => bmad.story_file(story).unwrap_or_else(|| story.number().to_string()),
        other => other.epic().to_string(),
    };
    let command = command(step);
    let instead = match &command {
        Command::Missing { why, instead, .. } => Some(format!("{why}; {instead}")),
        _ => None,
    };
    Some(NextStep {
        what: next.what,
        key: next.key,
        reason: next.reason,
        command: command.prompt(&about),
        instead,
    })
}

/// Draws the sprint for users.
pub(crate) fn draw(sprint: &Sprint, screen: &Screen) -> String {
    let mut out = String::new();
    let name = sprint.project.as_deref().map(|name| format!(" {}", escaped(name))).unwrap_or_default();
    let head = format!("sprint{name}");
    if sprint.epics.is_empty() {
        let _ = writeln!(out, "{} · {}", screen.paint(Style::Bold, &head), escaped(&sprint.board));
        draw_rest(&mut out, sprint, screen);
        return out;
    }
    // The helper only appends an `s`.
    let done = format!("{} of {} done", sprint.done, count(number(sprint.stories), "story"));
    let done = done.replace("storys", "stories");
    let _ = writeln!(out, "{} · {done} · {}", screen.paint(Style::Bold, &head), escaped(&sprint.board));
    let wide = sprint
        .epics
        .iter()
        .flat_map(|epic| &epic.stories)
        .map(|row| row.key.to_string().chars().count())
        .max();
    // Very long keys would push everything else off the screen.
    let wide = wide.unwrap_or(0).min(48);
    for (index, epic) in sprint.epics.iter().enumerate() {
        let last = index + 1 == sprint.epics.len();
        let (branch, trunk) = if last { ("└─", "   ") } else { ("├─", "│  ") };
        let state = epic.state.map_or("no state", EpicStatus::as_str);
        let _ =
            writeln!(out, "{branch} epic {} · {}", epic.epic, screen.paint(epic_style(epic.state), state));
        let verdict = epic.verdict.as_deref().map(|verdict| format!(" · {verdict}")).unwrap_or_default();
        let retro = epic.retrospective.map(|state| format!("retrospective · {state}{verdict}"));
        let leaves = epic.stories.len() + usize::from(retro.is_some());
        let rows = epic.stories.iter().map(|row| story_line(row, wide, screen));
        for (index, line) in rows.chain(retro).enumerate() {
            let branch = if index + 1 == leaves { "└─" } else { "├─" };
            let _ = writeln!(out, "{trunk}{branch} {line}");
        }
    }
    draw_rest(&mut out, sprint, screen);
    out
}

/// Draws what follows the tree: promises, problems and the next step.
fn draw_rest(out: &mut String, sprint: &Sprint, screen: &Screen) {
    for item in &sprint.action_items {
        let owner = item.owner.as_deref().map(|owner| format!(" ({owner})")).unwrap_or_default();
        let line = format!("promised: {}{owner} · {}", item.action, item.status);
        let _ = writeln!(out, "{}", screen.fit(0, &escaped(&line)));
    }
    // Notes are left to `validate`.
    let shown = sprint.problems.iter().filter(|problem| problem.weight > Weight::Note);
    for problem in shown.clone().take(MOST_PROBLEMS) {
        out.push_str(&bmad::draw(problem));
    }
    let more = shown.count().saturating_sub(MOST_PROBLEMS);
    if more > 0 {
        let _ = writeln!(out, "[W] {more} more problems on the board; see them: {} validate", screen.program);
    }
    match &sprint.next {
        Some(next) => {
            let line = format!("{} {}: {}", next.what.as_str(), next.key, next.reason);
            let _ = writeln!(out, "next: {}", escaped(&line));
            let first = next.command.as_deref().or(next.instead.as_deref()).unwrap_or_default();
            for line in first.lines().filter(|line| !line.is_empty()) {
                let _ = writeln!(out, "      {}", escaped(line));
            }
        }
        None if sprint.stories > 0 => out.push_str("next: nothing; everything on the board is done\n"),
        None => {}
    }
}

/// Draws the line of one story.
fn story_line(row: &StoryRow, wide: usize, screen: &Screen) -> String {
    let state = row.state.map_or("no state", StoryStatus::as_str);
    let mut parts = Vec::new();
    // Only a story between backlog and done must have a file.
    let wants_file =
        matches!(row.state, Some(state) if state > StoryStatus::Backlog && state < StoryStatus::Done);
    if row.file.is_none() && wants_file {
        parts.push("no file".to_string());
    } else if row.tasks > 0 {
        parts.push(format!("{} of {} done", row.tasks_done, count(number(row.tasks), "task")));
    }
    if let Some(says) = &row.says {
        parts.push(format!("its file says {}", escaped(says)));
    }
    if row.follow_ups > 0 {
        parts.push(count(number(row.follow_ups), "follow-up"));
    }
    if row.findings > 0 {
        parts.push(format!("{} open", count(row.findings, "finding")));
    }
    let key = row.key.to_string();
    let painted = screen.paint(story_style(row.state), &format!("{state:<13}"));
    let line = format!("{:<wide$}  {painted}  {}", escaped(&key), parts.join(" · "));
    line.trim_end().to_string()
}

fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn story_style(state: Option<StoryStatus>) -> Style {
    match state {
        Some(StoryStatus::Done) => Style::Good,
        Some(StoryStatus::Backlog) => Style::Dim,
        Some(StoryStatus::ReadyForDev) => Style::Plain,
        Some(StoryStatus::InProgress | StoryStatus::Review) => Style::Bold,
        None => Style::Bad,
    }
}

fn epic_style(state: Option<EpicStatus>) -> Style {
    match state {
        Some(EpicStatus::Done) => Style::Good,
        Some(EpicStatus::InProgress) => Style::Bold,
        Some(EpicStatus::Backlog) => Style::Dim,
        None => Style::Bad,
    }
}
