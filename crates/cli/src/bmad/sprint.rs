//! The sprint as a tree: epics and stories with their states, progress and open findings, and the next step with its reason.
//!
//! Everything is read from files and the journal; nothing is run and nothing is written here.

use std::{collections::BTreeMap, fmt::Write};

use tribunal_bmad::{
    board::{ActionItem, Board, BoardEntry, BoardEntryState, next_action},
    documents::{self, DocumentKind},
    epic_id::EpicId,
    keys::{BoardKey, StoryKey},
    problem::{FileProblem, ProblemWeight},
    project_files, retrospective,
    states::{EpicStatus, ParkedState, RetroStatus, StoryStatus},
    story,
};
use tribunal_engine::{ids::RunId, text::format_count};
use tribunal_json::{Serialize, schemars};
use tribunal_report::{Screen, TextStyle, escape_line};
use tribunal_runner::Project;
use tribunal_workflows::{findings::subject::Subject, runs::view::RunView, sprint::selection::SprintForecast};

use super::{
    sprint_forecast::{describe_forecast, read_outlook},
    sprint_next::{SprintNextStep, find_next_step},
    sprint_runs::SprintRuns,
};
use crate::bmad::{self, BmadProject};

/// How many problems are shown one by one.
const MAX_SHOWN_PROBLEMS: usize = 3;

/// The board with what is known about every story.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SprintTree {
    /// The path of the board.
    pub board: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub stories: usize,
    pub done: usize,
    pub epics: Vec<EpicRow>,
    /// Action items of retrospectives that are still open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub action_items: Vec<ActionItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<SprintNextStep>,
    /// The stories that `tribunal sprint` would develop, in this order, and why; and those that it would leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<SprintForecast>,
    /// What to know about stories before a sprint starts, one line each: front matter that cannot be read, work on another branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<FileProblem>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct EpicRow {
    /// The epic; none for stories that belong to none.
    pub epic: Option<EpicId>,
    /// The state; none if the board has no line for the epic, or one without a known state.
    pub state: Option<EpicStatus>,
    pub stories: Vec<StoryRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrospective: Option<RetroStatus>,
    /// The verdict in the retrospective's document, in late eras.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct StoryRow {
    pub key: StoryKey,
    /// The state; none if the board's word for it is not known.
    pub state: Option<StoryStatus>,
    /// Why nothing is done about it, if the board says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked: Option<ParkedState>,
    /// The board's word where it is no state that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_state: Option<String>,
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

/// Reads the sprint. `None` if the project has no board.
pub(crate) fn read_sprint(project: &Project, sprint_runs: &SprintRuns<'_>) -> Option<SprintTree> {
    let bmad_project = &BmadProject::read_project(project);
    let misplaced_problems: Vec<FileProblem> = bmad_project.misplaced_folders().cloned().collect();
    // BMAD then keeps its board elsewhere; one in the default directory is not what agents work on.
    if !misplaced_problems.is_empty() {
        return Some(empty_sprint(bmad_project.board_path(), misplaced_problems));
    }
    let Some(board) = &bmad_project.board else {
        // A file that cannot be opened is shown as a problem of an empty sprint, not as a missing board.
        let problems = bmad_project.problems.clone();
        return (!problems.is_empty()).then(|| empty_sprint(bmad_project.board_path(), problems));
    };
    // Rows of a board that could not be read would all be wrong.
    if !board.is_readable {
        return Some(empty_sprint(board.path.clone(), board.problems.clone()));
    }
    let story_rows: Vec<(Option<EpicId>, StoryRow)> = board
        .stories()
        .map(|(story_key, board_entry)| {
            let story_row = make_story_row(bmad_project, story_key, board_entry, &sprint_runs.run_views);
            (board_entry.epic.clone(), story_row)
        })
        .collect();
    let done_stories = story_rows.iter().filter(|(_, story_row)| story_row.state == Some(StoryStatus::Done)).count();
    let story_count = story_rows.len();
    let mut epic_rows: Vec<EpicRow> = board.epic_ids().into_iter().map(|epic| make_epic_row(board, epic)).collect();
    if story_rows.iter().any(|(epic, _)| epic.is_none()) {
        epic_rows.push(EpicRow { epic: None, state: None, stories: Vec::new(), retrospective: None, verdict: None });
    }
    // Verdicts come from the retrospectives' documents; the board only has their states.
    for (epic, verdict) in read_verdicts(bmad_project) {
        epic_rows
            .iter_mut()
            .filter(|epic_row| epic_row.epic == Some(EpicId::from(epic)))
            .for_each(|epic_row| epic_row.verdict = Some(verdict.to_string()));
    }
    // Every story has its epic here: an epic counts as one of the board's even if only its stories have lines.
    for (epic, story_row) in story_rows {
        if let Some(epic_row) = epic_rows.iter_mut().find(|epic_row| epic_row.epic == epic) {
            epic_row.stories.push(story_row);
        }
    }
    let outlook = read_outlook(project, bmad_project, sprint_runs);
    Some(SprintTree {
        board: board.path.clone(),
        project: board.project.clone(),
        stories: story_count,
        done: done_stories,
        epics: epic_rows,
        action_items: board.open_action_items().cloned().collect(),
        next: find_next_step(bmad_project, board, sprint_runs),
        forecast: outlook.forecast,
        remarks: outlook.remarks,
        problems: board.problems.clone(),
    })
}

/// A sprint with nothing but problems.
fn empty_sprint(board_path: String, problems: Vec<FileProblem>) -> SprintTree {
    SprintTree {
        board: board_path,
        project: None,
        stories: 0,
        done: 0,
        epics: Vec::new(),
        action_items: Vec::new(),
        next: None,
        forecast: None,
        remarks: Vec::new(),
        problems,
    }
}

fn make_epic_row(board: &Board, epic: EpicId) -> EpicRow {
    let retro_entry = board.find_entry(&BoardKey::Retrospective(epic.clone()));
    let retrospective = match retro_entry.and_then(|board_entry| board_entry.state) {
        Some(BoardEntryState::Retrospective(retro_state)) => Some(retro_state),
        _ => None,
    };
    EpicRow {
        state: next_action::epic_state(board, &epic),
        epic: Some(epic),
        stories: Vec::new(),
        retrospective,
        verdict: None,
    }
}

/// Collects the verdicts of retrospectives; of two about one epic the newer one counts.
fn read_verdicts(bmad_project: &BmadProject) -> BTreeMap<u32, &'static str> {
    let found_documents = documents::find_documents(&bmad_project.project_files, &bmad_project.config.folders);
    let mut epic_verdicts = BTreeMap::new();
    for document in found_documents.of_kind(DocumentKind::Retro) {
        let document_text = project_files::read_or_report(&bmad_project.project_files, &document.path, &mut Vec::new())
            .unwrap_or_default();
        let retro_page = retrospective::read_retrospective(&document.path, &document_text);
        if let (Some(epic_number), Some(retro_verdict)) = (retro_page.epic, retro_page.verdict) {
            // Documents come newest first.
            epic_verdicts.entry(epic_number).or_insert(retro_verdict.as_str());
        }
    }
    epic_verdicts
}

/// Makes the row of one story from its file, the board and its runs.
fn make_story_row(
    bmad_project: &BmadProject,
    story_key: &StoryKey,
    board_entry: &BoardEntry,
    run_views: &[&RunView],
) -> StoryRow {
    let story_file = bmad_project.find_story_file(story_key);
    // A file that cannot be read has no tasks; `validate` says why.
    let story_text = story_file
        .as_ref()
        .and_then(|story_file| project_files::read_or_report(&bmad_project.project_files, story_file, &mut Vec::new()));
    let parsed_story = story_text
        .map(|story_text| story::read_story(story_file.as_deref().unwrap_or_default(), &story_text))
        .unwrap_or_default();
    let (tasks_done, tasks) = parsed_story.task_progress();
    let follow_ups = parsed_story.open_follow_ups().count();
    let (findings, runs) =
        story_file.as_deref().map(|story_file| count_open_findings(story_file, run_views)).unwrap_or_default();
    let (state, parked) = match board_entry.state {
        Some(BoardEntryState::Story(state)) => (Some(state), None),
        Some(BoardEntryState::Parked(parked)) => (None, Some(parked)),
        _ => (None, None),
    };
    // The file's status is shown only if it differs from the board, or if it is not a known status.
    let other_status =
        parsed_story.status.filter(|status_line| status_line.status.is_none() || status_line.status != state);
    let file_status = other_status.map(|status_line| status_line.said);
    StoryRow {
        key: story_key.clone(),
        state,
        parked,
        unknown_state: Some(board_entry.raw_state.clone())
            .filter(|word| board_entry.state.is_none() && !word.is_empty()),
        file: story_file,
        tasks,
        tasks_done,
        says: file_status,
        follow_ups,
        findings,
        runs,
    }
}

/// Counts open findings of the last run over the file and of the last run over a change for it. Older runs are out of date.
fn count_open_findings(story_file: &str, run_views: &[&RunView]) -> (u32, Vec<RunId>) {
    let is_file =
        |subject: &Subject| matches!(subject, Subject::Document { path, section: None } if path == story_file);
    let is_change =
        |subject: &Subject| subject.code_change().is_some_and(|change| change.story.as_deref() == Some(story_file));
    let last_run = |is_wanted: &dyn Fn(&Subject) -> bool| {
        run_views.iter().rev().find(|run_view| run_view.review_order().is_some_and(|order| is_wanted(&order.subject)))
    };
    let mut open_count = 0;
    let mut run_ids = Vec::new();
    for run_view in [last_run(&is_file), last_run(&is_change)].into_iter().flatten() {
        let counts = run_view.finding_counts();
        // Blocked findings wait for the user, so they are open from the story's point of view.
        open_count += counts.open + counts.blocked;
        run_ids.extend(run_view.run_id.clone());
    }
    (open_count, run_ids)
}

/// Draws the sprint for users.
pub(crate) fn draw_sprint(sprint: &SprintTree, screen: &Screen) -> String {
    let mut rendered = String::new();
    let name_suffix =
        sprint.project.as_deref().map(|project_name| format!(" {}", escape_line(project_name))).unwrap_or_default();
    let title = format!("sprint{name_suffix}");
    if sprint.epics.is_empty() {
        let _ = writeln!(rendered, "{} · {}", screen.paint(TextStyle::Bold, &title), escape_line(&sprint.board));
        draw_sprint_footer(&mut rendered, sprint, screen);
        return rendered;
    }
    // The helper only appends an `s`.
    let done_text = format!("{} of {} done", sprint.done, format_count(to_u32(sprint.stories), "story"));
    let done_text = done_text.replace("storys", "stories");
    let _ =
        writeln!(rendered, "{} · {done_text} · {}", screen.paint(TextStyle::Bold, &title), escape_line(&sprint.board));
    let max_key_columns = sprint
        .epics
        .iter()
        .flat_map(|epic_row| &epic_row.stories)
        .map(|story_row| story_row.key.to_string().chars().count())
        .max();
    // Very long keys would push everything else off the screen.
    let key_columns = max_key_columns.unwrap_or(0).min(48);
    for (row_index, epic_row) in sprint.epics.iter().enumerate() {
        let is_last = row_index + 1 == sprint.epics.len();
        let (branch_mark, trunk_mark) = if is_last { ("└─", "   ") } else { ("├─", "│  ") };
        let state_name = epic_row.state.map_or("no state", EpicStatus::as_str);
        let state_text = screen.paint(epic_style(epic_row.state), state_name);
        let _ = match &epic_row.epic {
            Some(epic) => writeln!(rendered, "{branch_mark} epic {epic} · {state_text}"),
            None => writeln!(rendered, "{branch_mark} without an epic"),
        };
        let verdict_text = epic_row.verdict.as_deref().map(|verdict| format!(" · {verdict}")).unwrap_or_default();
        let retro_line =
            epic_row.retrospective.map(|retro_state| format!("retrospective · {retro_state}{verdict_text}"));
        let leaf_count = epic_row.stories.len() + usize::from(retro_line.is_some());
        let story_lines = epic_row.stories.iter().map(|story_row| draw_story_line(story_row, key_columns, screen));
        for (leaf_index, leaf_line) in story_lines.chain(retro_line).enumerate() {
            let branch_mark = if leaf_index + 1 == leaf_count { "└─" } else { "├─" };
            let _ = writeln!(rendered, "{trunk_mark}{branch_mark} {leaf_line}");
        }
    }
    draw_sprint_footer(&mut rendered, sprint, screen);
    rendered
}

/// Draws what follows the tree: promises, problems and the next step.
fn draw_sprint_footer(rendered: &mut String, sprint: &SprintTree, screen: &Screen) {
    for action_item in &sprint.action_items {
        let owner_text = action_item.owner.as_deref().map(|owner| format!(" ({owner})")).unwrap_or_default();
        let text_line = format!("action item: {}{owner_text} · {}", action_item.action, action_item.status);
        let _ = writeln!(rendered, "{}", screen.fit_text(0, &escape_line(&text_line)));
    }
    // Notes are left to `validate`.
    let shown_problems = sprint.problems.iter().filter(|problem| problem.weight > ProblemWeight::Note);
    for problem in shown_problems.clone().take(MAX_SHOWN_PROBLEMS) {
        rendered.push_str(&bmad::draw_problem(problem));
    }
    let more_problems = shown_problems.count().saturating_sub(MAX_SHOWN_PROBLEMS);
    if more_problems > 0 {
        let _ = writeln!(
            rendered,
            "warning: {} on the board; list them: `{} validate`",
            format_count(to_u32(more_problems), "more problem"),
            screen.program_name
        );
    }
    for remark in sprint.remarks.iter().take(MAX_SHOWN_PROBLEMS) {
        let _ = writeln!(rendered, "{}", screen.wrap_hanging(0, 2, &escape_line(&format!("note: {remark}"))));
    }
    let more_remarks = sprint.remarks.len().saturating_sub(MAX_SHOWN_PROBLEMS);
    if more_remarks > 0 {
        let more_text = format_count(to_u32(more_remarks), "more note");
        let _ = writeln!(rendered, "note: {more_text}; list them: `{} sprint --dry-run`", screen.program_name);
    }
    match &sprint.next {
        Some(next_step) => {
            let _ = writeln!(rendered, "next: {}", escape_line(&next_step.describe_step()));
            for command_line in next_step.list_commands(&screen.program_name) {
                let _ = writeln!(rendered, "      {}", escape_line(&command_line));
            }
        }
        None if sprint.stories > 0 => {
            let is_over = |story_row: &&StoryRow| {
                story_row.state == Some(StoryStatus::Done) || story_row.parked == Some(ParkedState::Dropped)
            };
            let all_stories = sprint.epics.iter().flat_map(|epic_row| &epic_row.stories);
            let open_count = all_stories.filter(|story_row| !is_over(story_row)).count();
            let _ = match open_count {
                0 => writeln!(rendered, "next: nothing; everything on the board is done"),
                _ => writeln!(
                    rendered,
                    "next: nothing can be started; {open_count} of the stories are blocked, deferred or have no known state"
                ),
            };
        }
        None => {}
    }
    if let Some(forecast_line) = sprint.forecast.as_ref().and_then(describe_forecast) {
        let _ = writeln!(rendered, "{}", screen.wrap_text(6, &escape_line(&forecast_line)));
    }
}

/// Draws the line of one story.
fn draw_story_line(story_row: &StoryRow, key_columns: usize, screen: &Screen) -> String {
    let unknown_name = story_row.unknown_state.as_ref().map(|word| format!("{}?", escape_line(word)));
    let known_name = story_row.state.map(StoryStatus::as_str).or_else(|| story_row.parked.map(ParkedState::as_str));
    let state_name = known_name.or(unknown_name.as_deref()).unwrap_or("no state");
    let mut line_parts = Vec::new();
    // Only a story between backlog and done must have a file.
    let wants_file =
        matches!(story_row.state, Some(state) if state > StoryStatus::Backlog && state < StoryStatus::Done);
    if story_row.file.is_none() && wants_file {
        line_parts.push("no file".to_string());
    } else if story_row.tasks > 0 {
        line_parts.push(format!("{} of {} done", story_row.tasks_done, format_count(to_u32(story_row.tasks), "task")));
    }
    if let Some(file_status) = &story_row.says {
        line_parts.push(format!("its file says {}", escape_line(file_status)));
    }
    if story_row.follow_ups > 0 {
        line_parts.push(format_count(to_u32(story_row.follow_ups), "follow-up"));
    }
    if story_row.findings > 0 {
        line_parts.push(format!("{} open", format_count(story_row.findings, "finding")));
    }
    let story_key = story_row.key.to_string();
    let painted_state = screen.paint(story_style(story_row.state), &format!("{state_name:<13}"));
    let story_text = format!("{:<key_columns$}  {painted_state}  {}", escape_line(&story_key), line_parts.join(" · "));
    story_text.trim_end().to_string()
}

fn to_u32(large_count: usize) -> u32 {
    u32::try_from(large_count).unwrap_or(u32::MAX)
}

fn story_style(state: Option<StoryStatus>) -> TextStyle {
    match state {
        Some(StoryStatus::Done) => TextStyle::Success,
        Some(StoryStatus::Backlog) => TextStyle::Dim,
        Some(StoryStatus::ReadyForDev) => TextStyle::Plain,
        Some(StoryStatus::InProgress | StoryStatus::Review) => TextStyle::Bold,
        None => TextStyle::Failure,
    }
}

fn epic_style(state: Option<EpicStatus>) -> TextStyle {
    match state {
        Some(EpicStatus::Done) => TextStyle::Success,
        Some(EpicStatus::InProgress) => TextStyle::Bold,
        Some(EpicStatus::Backlog) => TextStyle::Dim,
        None => TextStyle::Failure,
    }
}
