//! Reads the files of real projects and compares what was read with what people read in them. `cargo xtask bmad --corpus DIR`
//! runs it; the files themselves are not part of this repository.
//!
//! `boards.txt` and `stories.txt` are the labels, by path and line: which line is an epic (E), a story (S), a retrospective (R) or
//! something else (O), and in which state; where a criterion begins; how long the paths of a file list are. They were written by
//! reading the files, before the readers were changed; a fifth of them was written a second time, by others, and agreed.
#![expect(clippy::print_stdout, reason = "the counts are what the command is for")]

mod labels;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::trees::InstalledTree;
use labels::{BoardLabels, StoryLabels, parse_boards, parse_stories};
use tribunal_bmad::{
    board::{self, Board, BoardEntry, BoardEntryState, edit, next_action},
    check::{self, CheckInput},
    config, documents, epics,
    keys::BoardKey,
    layout,
    problem::ProblemWeight,
    project_files::ProjectFiles,
    states::{EpicStatus, ParkedState, RetroStatus, StoryStatus},
    story, story_files,
};

const BOARD_LABELS: &str = include_str!("boards.txt");
const STORY_LABELS: &str = include_str!("stories.txt");
/// The variable that says where the corpus is.
const CORPUS_VARIABLE: &str = "TRIBUNAL_BMAD_CORPUS";

/// A project of the corpus.
fn open_project(corpus: &Path, project_name: &str) -> InstalledTree {
    InstalledTree { name: project_name.to_string(), root: corpus.join(project_name) }
}

fn corpus_dir() -> PathBuf {
    let directory = std::env::var(CORPUS_VARIABLE).unwrap_or_else(|_| panic!("{CORPUS_VARIABLE} is not set"));
    PathBuf::from(directory).join("bmad")
}

/// A number of right answers among all, with the wrong ones by name.
#[derive(Default)]
struct Score {
    right: usize,
    total: usize,
    wrong: Vec<String>,
}

impl Score {
    fn add(&mut self, is_right: bool, describe: impl FnOnce() -> String) {
        self.total += 1;
        if is_right {
            self.right += 1;
        } else {
            self.wrong.push(describe());
        }
    }

    /// Prints the score and says whether it reaches a percentage.
    fn report(&self, name: &str, required_percent: f64) -> bool {
        let percent = 100.0 * self.right as f64 / self.total.max(1) as f64;
        let holds = percent >= required_percent;
        let mark = if holds { "ok" } else { "TOO FEW" };
        println!(
            "{name:<28} {:>6} of {:>6}  {percent:>6.2} %  at least {required_percent} %  {mark}",
            self.right, self.total
        );
        self.wrong.iter().for_each(|wrong| println!("    {wrong}"));
        holds
    }
}

/// The code that the labels have for a state.
fn state_code(board_entry: &BoardEntry) -> char {
    match board_entry.state {
        None => '?',
        Some(BoardEntryState::Story(StoryStatus::Backlog) | BoardEntryState::Epic(EpicStatus::Backlog)) => 'b',
        Some(BoardEntryState::Story(StoryStatus::ReadyForDev)) => 'r',
        Some(BoardEntryState::Story(StoryStatus::InProgress) | BoardEntryState::Epic(EpicStatus::InProgress)) => 'i',
        Some(BoardEntryState::Story(StoryStatus::Review)) => 'v',
        Some(BoardEntryState::Retrospective(RetroStatus::Optional)) => 'o',
        Some(BoardEntryState::Parked(ParkedState::Blocked)) => 'k',
        Some(BoardEntryState::Parked(ParkedState::Deferred)) => 'f',
        Some(BoardEntryState::Parked(ParkedState::Dropped)) => 'x',
        Some(
            BoardEntryState::Story(StoryStatus::Done)
            | BoardEntryState::Epic(EpicStatus::Done)
            | BoardEntryState::Retrospective(RetroStatus::Done),
        ) => 'd',
    }
}

fn kind_code(board_key: &BoardKey) -> char {
    match board_key {
        BoardKey::Epic(_) => 'E',
        BoardKey::Story(_) => 'S',
        BoardKey::Retrospective(_) => 'R',
    }
}

fn describe_entries(board: &Board) -> BTreeSet<(usize, char, char)> {
    board.entries.iter().map(|entry| (entry.line, kind_code(&entry.key), state_code(entry))).collect()
}

/// The line of the story that comes next.
fn next_story_line(board: &Board) -> Option<usize> {
    let next = next_action::find_next_action(board, true)?;
    match &next.key {
        BoardKey::Story(_) => board.find_entry(&next.key).map(|entry| entry.line),
        _ => None,
    }
}

fn score_board(path: &str, labels: &BoardLabels, board: &Board, scores: &mut Scores) {
    let (found, expected) = (describe_entries(board), labels.entries());
    let known_lines: BTreeSet<(usize, char)> = found.iter().map(|(line, kind, _)| (*line, *kind)).collect();
    for (line, kind, _) in &expected {
        scores.keys.add(known_lines.contains(&(*line, *kind)), || format!("{path}:{line} {kind}"));
    }
    let next_is_right = next_story_line(board) == labels.next_line;
    scores.boards.add(found == expected && next_is_right, || {
        let missing: Vec<_> = expected.difference(&found).take(3).collect();
        let extra: Vec<_> = found.difference(&expected).take(3).collect();
        format!("{path}: missing {missing:?}, not there {extra:?}, next {:?}", next_story_line(board))
    });
}

/// Moves every entry of a board once and compares the bytes.
fn score_edits(path: &str, board_text: &str, board: &Board, score: &mut Score) {
    for board_entry in board.entries.iter().filter(|entry| entry.state.is_some()) {
        let Some(target) =
            BoardEntryState::all_for(&board_entry.key).into_iter().find(|target| Some(*target) != board_entry.state)
        else {
            continue;
        };
        let moved = edit::move_entry(board_text, &board_entry.key, target, edit::MoveMode::Forced);
        let Ok(moved) = moved else {
            // A value that is not a plain word on one line is refused, and nothing is changed.
            continue;
        };
        let changed_lines: BTreeSet<usize> = moved.moves.iter().map(|board_move| board_move.line).collect();
        let other_lines = |text: &str| -> Vec<String> {
            let lines = text.split_inclusive('\n').enumerate();
            let is_other = |index: usize| !changed_lines.iter().any(|line| index + 1 >= *line && index < line + 12);
            lines.filter(|(index, _)| is_other(*index)).map(|(_, line)| line.to_string()).collect()
        };
        let is_exact = other_lines(board_text) == other_lines(&moved.board_text)
            && board_text.lines().count() == moved.board_text.lines().count();
        score.add(is_exact, || format!("{path}: {}", board_entry.key));
    }
}

fn score_story(path: &str, labels: &StoryLabels, story_text: &str, scores: &mut Scores) {
    let story = story::read_story(path, story_text);
    if let Some(expected) = &labels.criteria {
        let found: BTreeSet<usize> = story.criteria.iter().map(|criterion| criterion.line).collect();
        for line in expected.union(&found) {
            let is_right = expected.contains(line) && found.contains(line);
            scores.criteria.add(is_right, || {
                let what = if expected.contains(line) { "not found" } else { "is none" };
                format!("{path}:{line} {what}")
            });
        }
    }
    if let Some(expected) = &labels.files {
        let found: BTreeSet<(usize, usize)> =
            story.files.iter().map(|file| (file.line, file.text.chars().count())).collect();
        let lines: Vec<&str> = story_text.lines().collect();
        // A path that is listed twice is read once.
        let is_repeated = |(line, length): &(usize, usize)| {
            story.files.iter().any(|file| {
                file.text.chars().count() == *length
                    && lines.get(line - 1).is_some_and(|text| text.contains(&file.text))
            })
        };
        for entry in expected.union(&found) {
            let is_right = expected.contains(entry) && (found.contains(entry) || is_repeated(entry));
            scores.paths.add(is_right, || {
                let what = if expected.contains(entry) { "not found" } else { "is none" };
                let read: Vec<&str> =
                    story.files.iter().filter(|file| file.line == entry.0).map(|file| file.text.as_str()).collect();
                format!("{path}:{} length {} {what}; read {read:?}", entry.0, entry.1)
            });
        }
    }
    let status_line = story.status.as_ref().map(|status| status.line);
    scores.statuses.add(labels.status_line == status_line, || {
        format!("{path}: status on {status_line:?}, not {:?}", labels.status_line)
    });
    let title_line = story.title.as_ref().map(|title| title.line);
    scores.titles.add(labels.title_line == title_line, || {
        format!("{path}: title on {title_line:?}, not {:?}", labels.title_line)
    });
    if let Some((total, ticked)) = labels.tasks {
        let (found_ticked, found_total) = story.task_progress();
        scores.tasks.add((total, ticked) == (found_total, found_ticked), || {
            format!("{path}: {found_ticked} of {found_total} tasks, not {ticked} of {total}")
        });
    }
}

#[derive(Default)]
struct Scores {
    boards: Score,
    keys: Score,
    edits: Score,
    story_files: Score,
    criteria: Score,
    paths: Score,
    statuses: Score,
    titles: Score,
    tasks: Score,
    quiet_projects: Score,
}

/// Validates a project and reports its errors, and how loud it is.
fn score_validation(name: &str, project: &InstalledTree, score: &mut Score) {
    let layout = layout::read_layout(project);
    let config = config::read_config(project);
    let found_board = board::candidate_paths(&config.folders).into_iter().find_map(|board_path| {
        let board_text = project.read_file(&board_path).ok().flatten()?;
        Some(board::read_board(&board_path, &board_text))
    });
    let documents = documents::find_documents(project, &config.folders);
    let board_path = found_board.as_ref().map_or_else(String::new, |board| board.path.clone());
    let report = check::check_project(
        &CheckInput {
            project_files: project,
            layout: &layout,
            config: &config,
            board: found_board.as_ref(),
            board_path: &board_path,
            documents: &documents,
        },
        None,
    );
    let errors: Vec<String> = report
        .problems
        .iter()
        .filter(|problem| problem.weight == ProblemWeight::Error)
        .map(|problem| format!("{} {problem}", problem.rule))
        .collect();
    score.add(errors.is_empty(), || format!("{name}: {}", errors.join("; ")));
}

fn list_files(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        match entry.path().is_dir() {
            true => list_files(&entry.path(), found),
            false => found.push(entry.path()),
        }
    }
}

/// Reads every file with every reader: none may panic.
fn read_everything(directory: &Path) -> usize {
    let mut file_paths = Vec::new();
    list_files(directory, &mut file_paths);
    for file_path in &file_paths {
        let Ok(file_text) = fs::read_to_string(file_path) else { continue };
        let path_text = file_path.to_string_lossy();
        story::read_story(&path_text, &file_text);
        board::read_board(&path_text, &file_text);
        epics::read_epics(&[(&path_text, &file_text)]);
    }
    file_paths.len()
}

#[test]
#[ignore = "needs the files of real projects; `cargo xtask bmad --corpus DIR` runs it"]
fn the_corpus_is_read_as_people_read_it() {
    let corpus = corpus_dir();
    let mut scores = Scores::default();
    for (path, labels) in parse_boards(BOARD_LABELS) {
        let board_text = fs::read_to_string(corpus.join(&path)).unwrap();
        let board = board::read_board(&path, &board_text);
        score_board(&path, &labels, &board, &mut scores);
        score_edits(&path, &board_text, &board, &mut scores.edits);
    }
    for (path, labels) in parse_stories(STORY_LABELS) {
        let story_text = fs::read_to_string(corpus.join(&path)).unwrap();
        score_story(&path, &labels, &story_text, &mut scores);
        let (project_name, inner_path) = path.split_once('/').unwrap();
        let project = open_project(&corpus, project_name);
        let config = config::read_config(&project);
        let found = story_files::find_story_files(&project, &config.folders, None);
        // Plans are named by their date.
        let is_plan = path.contains("/plans/");
        if labels.is_story() && !is_plan {
            let is_found = found.all().any(|file| file.path == inner_path);
            scores.story_files.add(is_found, || path.clone());
        }
    }
    let mut project_names: Vec<String> =
        fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    project_names.sort();
    for project_name in &project_names {
        let project = open_project(&corpus, project_name);
        score_validation(project_name, &project, &mut scores.quiet_projects);
    }
    println!("{} files read by all readers", read_everything(&corpus));
    let holds = [
        scores.boards.report("boards wholly right", 95.0),
        scores.keys.report("keys known", 99.0),
        scores.edits.report("edits byte-exact", 100.0),
        scores.story_files.report("story files found", 100.0),
        scores.criteria.report("criteria", 99.0),
        scores.paths.report("paths of file lists", 99.5),
        scores.titles.report("titles", 95.0),
        scores.statuses.report("statuses", 85.0),
        scores.tasks.report("tasks", 80.0),
        scores.quiet_projects.report("projects without errors", 100.0),
    ];
    assert!(holds.iter().all(|holds| *holds), "a bar is missed");
}
