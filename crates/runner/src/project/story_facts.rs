//! Reads what the files of a project and git say about a story. What an agent says plays no part in it.

use std::{collections::BTreeSet, fs, path::Path};

use tribunal_bmad::{
    board::{self, BoardEntry, BoardEntryState},
    config,
    keys::StoryKey,
    project_files::ProjectFiles,
    specs::{self, SpecStatus},
    states::StoryStatus,
    story::{self, Story, StoryTask},
    story_files::{self, StoryFile},
};
use tribunal_engine::text::truncate_chars;
use tribunal_workflows::{
    development::{
        check_scripts::is_test_name,
        checks::CommandLine,
        parking::name_files,
        test_functions::{TestFunction, TestLanguage, find_test_functions, normalize_test},
        workspace::{PathChange, WorkspaceState},
    },
    story::facts::{ExcusedCriterion, StageFact, StoryFacts, StoryFileFacts, StoryName, StoryStage, TaskFact},
};

use crate::project::{Project, project_files::ProjectDirectory, subject::is_plain_path};

/// The most of a reason why there is no test that is shown.
const MAX_EXCUSE_CHARS: usize = 200;

/// The longest test that is searched for the criteria that it names.
const MAX_TEST_BYTES: u64 = 1 << 20;
/// The most lines of a new story that are kept because they name files, and the most characters of one.
const MAX_NAMING_LINES: usize = 200;
const MAX_LINE_CHARS: usize = 300;
/// Files and directories that decide what hooks, pipelines and agents run.
const CONTROL_FILES: [&str; 33] = [
    ".github/workflows/",
    ".gitlab-ci.yml",
    ".circleci/",
    "azure-pipelines.yml",
    "Jenkinsfile",
    ".husky/",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".githooks/",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Taskfile.yml",
    "tox.ini",
    "noxfile.py",
    // What later agents are told, and what Tribunal itself runs.
    "tribunal.yaml",
    "tribunal.yml",
    "CLAUDE.md",
    "AGENTS.md",
    "GEMINI.md",
    ".claude/",
    ".codex/",
    ".agents/",
    ".cursor/",
    ".gemini/",
    ".opencode/",
    ".github/copilot-instructions.md",
    "_bmad/",
    ".bmad/",
    "bmad/",
    ".gitattributes",
    ".mcp.json",
];

/// A tree of files in which a story was worked on.
#[expect(missing_debug_implementations, reason = "it has a function")]
pub struct ObservedTree<'a> {
    pub root: &'a Path,
    /// What differs from the commit that the work began with.
    pub work: WorkspaceState,
    /// Reads a file as it was in that commit.
    pub read_base: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    /// The commands that check the work.
    pub check_commands: &'a [CommandLine],
}

/// Where a story is: its entry on the board, and its file.
pub(crate) struct LocatedStory {
    pub entry: Option<BoardEntry>,
    pub file: Option<StoryFile>,
}

/// Finds a story on its board and among the files of the project.
pub(crate) fn locate_story(project_files: &ProjectDirectory, story: &StoryName) -> LocatedStory {
    let config = config::read_config(project_files);
    let board = story.board.as_ref().and_then(|board_path| {
        let board_text = project_files.read_file(board_path).ok().flatten()?;
        Some(board::read_board(board_path, &board_text))
    });
    let found = board
        .as_ref()
        .and_then(|board| board.stories().find(|(key, entry)| key.as_str() == story.key || entry.raw_key == story.key));
    let story_files = story_files::find_story_files(project_files, &config.folders, board.as_ref());
    let story_key = found.map(|(key, _)| key.clone()).or_else(|| StoryKey::parse(&story.key));
    let file = story_key.and_then(|key| story_files.find_file(&key, board.as_ref()).cloned());
    LocatedStory { entry: found.map(|(_, entry)| entry.clone()), file }
}

/// Reads what is known about a story.
pub fn read_facts(story: &StoryName, observed: ObservedTree<'_>) -> StoryFacts {
    let project_files = ProjectDirectory::open_project(&Project::from_root(observed.root));
    let LocatedStory { entry, file: story_file } = locate_story(&project_files, story);
    let live_file = story_file.filter(|story_file| !story_file.is_archived);
    let mut file = live_file.and_then(|story_file| read_file(&project_files, &story_file));
    if let Some(file) = &mut file {
        match (observed.read_base)(&file.path) {
            Some(base_bytes) => add_base_facts(file, &String::from_utf8_lossy(&base_bytes)),
            None => file.naming_lines = list_naming_lines(&project_files, &file.path),
        }
    }
    let changed_tests = list_tests(observed.root, &observed.work);
    let criteria = file.as_ref().map(|file| file.criteria.clone()).unwrap_or_default();
    let TestedCriteria { numbers: tested_criteria, unread } = find_tested(&observed, &changed_tests, &criteria);
    let remarks = describe_unread(&unread);
    let existing_files = file.iter().flat_map(|file| &file.files).filter(|path| exists(observed.root, path)).cloned();
    StoryFacts {
        board: entry.as_ref().map(board_fact),
        existing_files: existing_files.collect(),
        changed_controls: list_controls(&observed),
        file,
        changed_tests,
        tested_criteria,
        work: observed.work,
        merged_into: None,
        remarks,
    }
}

/// Adds what the file said when the work began.
fn add_base_facts(file: &mut StoryFileFacts, base_text: &str) {
    let base_story = story::read_story(&file.path, base_text);
    file.files_before = base_story.files.iter().map(|listed| normalize_path(&listed.text)).collect();
    // Only the user can say that what was owed is done: an agent may have ticked or removed it.
    for action in base_story.links.operator_actions {
        if !file.owed.contains(&action) {
            file.owed.push(action);
        }
    }
}

/// Lists the lines of a new story that may name files.
fn list_naming_lines(project_files: &ProjectDirectory, path: &str) -> Vec<String> {
    let story_text = project_files.read_file(path).ok().flatten().unwrap_or_default();
    let may_name_file = |line: &&str| {
        let is_inner =
            |(index, _): (usize, &str)| index > 0 && line[index + 1..].starts_with(|c: char| c.is_alphanumeric());
        line.contains('/') || line.match_indices('.').any(is_inner)
    };
    let lines = story_text.lines().map(str::trim).filter(may_name_file);
    lines.map(|line| truncate_chars(line, MAX_LINE_CHARS)).take(MAX_NAMING_LINES).collect()
}

fn board_fact(entry: &BoardEntry) -> StageFact {
    let stage = match entry.state {
        Some(BoardEntryState::Story(status)) => Some(to_stage(status)),
        _ => None,
    };
    StageFact { stage, word: entry.raw_state.clone() }
}

pub(crate) fn to_stage(status: StoryStatus) -> StoryStage {
    match status {
        StoryStatus::Backlog => StoryStage::Backlog,
        StoryStatus::ReadyForDev => StoryStage::ReadyForDev,
        StoryStatus::InProgress => StoryStage::InProgress,
        StoryStatus::Review => StoryStage::Review,
        StoryStatus::Done => StoryStage::Done,
    }
}

pub(crate) fn to_status(stage: StoryStage) -> StoryStatus {
    match stage {
        StoryStage::Backlog => StoryStatus::Backlog,
        StoryStage::ReadyForDev => StoryStatus::ReadyForDev,
        StoryStage::InProgress => StoryStatus::InProgress,
        StoryStage::Review => StoryStatus::Review,
        StoryStage::Done => StoryStatus::Done,
    }
}

fn read_file(project_files: &ProjectDirectory, story_file: &StoryFile) -> Option<StoryFileFacts> {
    let story_text = project_files.read_file(&story_file.path).ok().flatten()?;
    let parsed = story::read_story(&story_file.path, &story_text);
    let criteria: Vec<u32> = parsed.criteria.iter().map(|criterion| criterion.number).collect();
    let excused_criteria = criteria.iter().filter_map(|number| find_excuse(&story_text, *number)).collect();
    let (status, blocked_by) = match story_file.is_spec {
        true => read_spec_status(&story_file.path, &story_text),
        false => (read_status(&parsed), None),
    };
    let mut tasks = Vec::new();
    collect_tasks(&parsed.tasks, &[], &mut tasks);
    Some(StoryFileFacts {
        path: story_file.path.clone(),
        status,
        is_spec: story_file.is_spec,
        blocked_by,
        broken_front_matter: parsed.find_broken_front_matter().map(ToString::to_string),
        tasks,
        criteria,
        excused_criteria,
        owed: parsed.links.operator_actions.clone(),
        files: parsed.files.iter().map(|file| normalize_path(&file.text)).collect(),
        files_before: Vec::new(),
        naming_lines: Vec::new(),
    })
}

fn read_status(parsed: &Story) -> Option<StageFact> {
    let status_line = parsed.status.as_ref()?;
    Some(StageFact { stage: status_line.status.map(to_stage), word: status_line.said.clone() })
}

/// Reads the status of a spec, and why its workflow stopped.
fn read_spec_status(spec_path: &str, spec_text: &str) -> (Option<StageFact>, Option<String>) {
    let spec = specs::read_spec(spec_path, spec_text);
    let condition = spec
        .result
        .as_ref()
        .and_then(|result| result.blocking_condition.as_ref())
        .map(|condition| condition.text.clone());
    let Some(status) = spec.status else { return (None, None) };
    let stage = match status {
        SpecStatus::Draft => Some(StoryStage::Backlog),
        SpecStatus::ReadyForDev => Some(StoryStage::ReadyForDev),
        SpecStatus::InProgress => Some(StoryStage::InProgress),
        SpecStatus::InReview => Some(StoryStage::Review),
        SpecStatus::Done => Some(StoryStage::Done),
        SpecStatus::Blocked => None,
    };
    let blocked_by =
        (status == SpecStatus::Blocked).then(|| condition.unwrap_or_else(|| "it gives no reason".to_string()));
    (Some(StageFact { stage, word: status.as_str().to_string() }), blocked_by)
}

/// Flattens tasks; a subtask serves what its task serves.
fn collect_tasks(tasks: &[StoryTask], inherited: &[u32], collected: &mut Vec<TaskFact>) {
    for task in tasks {
        let criteria = if task.criteria.is_empty() { inherited.to_vec() } else { task.criteria.clone() };
        collected.push(TaskFact { text: task.text.clone(), done: task.done, criteria: criteria.clone() });
        collect_tasks(&task.subtasks, &criteria, collected);
    }
}

/// Finds a line of the story that says why a criterion has no test: `AC3: no test: only a text changes`.
fn find_excuse(story_text: &str, number: u32) -> Option<ExcusedCriterion> {
    let line = story_text.lines().find(|line| {
        let lower_line = line.to_lowercase();
        (lower_line.contains("no test") || lower_line.contains("not testable")) && names_criterion(line, number)
    })?;
    let line = line.trim_start_matches(|character: char| character.is_whitespace() || "-*+".contains(character));
    Some(ExcusedCriterion { number, line: truncate_chars(line.trim_end(), MAX_EXCUSE_CHARS) })
}

/// Whether a text names a criterion: `AC1`, `AC-1`, `ac_1`, `AC #1`.
fn names_criterion(text: &str, number: u32) -> bool {
    let lower_text = text.to_lowercase();
    lower_text.match_indices("ac").any(|(index, _)| {
        let is_word_start = !lower_text[..index].ends_with(|character: char| character.is_ascii_alphanumeric());
        let after_word = lower_text[index + 2..].trim_start_matches(['-', '_', ' ', '#', ':']);
        let digits_end = after_word.find(|character: char| !character.is_ascii_digit()).unwrap_or(after_word.len());
        is_word_start && after_word[..digits_end].parse() == Ok(number)
    })
}

/// A path of the file list as git names it.
fn normalize_path(path: &str) -> String {
    path.strip_prefix("./").unwrap_or(path).to_string()
}

fn exists(root: &Path, path: &str) -> bool {
    is_plain_path(path.trim_end_matches('/')) && fs::symlink_metadata(root.join(path)).is_ok()
}

/// Lists the changed files that are tests, by their names or because they contain some.
fn list_tests(root: &Path, work: &WorkspaceState) -> Vec<String> {
    let is_left = |change: PathChange| change != PathChange::Deleted;
    let changed = work.changed.iter().filter(|change| is_left(change.change)).map(|change| change.path.clone());
    changed
        .filter(|path| is_test_name(path) || read_text(root, path).is_some_and(|text| text.contains("#[test]")))
        .collect()
}

fn read_text(root: &Path, path: &str) -> Option<String> {
    if !is_plain_path(path) {
        return None;
    }
    let file_path = root.join(path);
    let metadata = fs::symlink_metadata(&file_path).ok().filter(|metadata| metadata.is_file())?;
    (metadata.len() <= MAX_TEST_BYTES).then(|| fs::read_to_string(&file_path).ok())?
}

/// The criteria that tests name.
struct TestedCriteria {
    numbers: Vec<u32>,
    /// Tests of a language that no rule reads, which name some of them.
    unread: Vec<String>,
}

/// Finds the criteria that are named by a test function that is new or changed and asserts something: in its name, in its strings or
/// directly above it. In a language that no rule reads, the file has to name them.
fn find_tested(observed: &ObservedTree<'_>, tests: &[String], criteria: &[u32]) -> TestedCriteria {
    let (mut naming_texts, mut unread) = (Vec::new(), Vec::new());
    for path in tests {
        let Some(text) = read_text(observed.root, path) else { continue };
        let Some(language) = TestLanguage::from_path(path) else {
            if criteria.iter().any(|number| text.lines().any(|line| names_criterion(line, *number))) {
                unread.push(path.clone());
            }
            naming_texts.push(text);
            continue;
        };
        let is_new =
            observed.work.changed.iter().any(|change| change.path == *path && change.change == PathChange::Added);
        let base_bytes = if is_new { None } else { (observed.read_base)(path) }.unwrap_or_default();
        let base_functions = find_test_functions(language, &String::from_utf8_lossy(&base_bytes));
        let known_tests: BTreeSet<TestIdentity> = base_functions.iter().map(identify_test).collect();
        let functions = find_test_functions(language, &text).into_iter();
        let counted = functions.filter(|function| {
            !function.is_skipped && function.assertions > 0 && !known_tests.contains(&identify_test(function))
        });
        naming_texts.extend(counted.map(|function| function.naming_text()));
    }
    let is_named =
        |number: &u32| naming_texts.iter().any(|text| text.lines().any(|line| names_criterion(line, *number)));
    TestedCriteria { numbers: criteria.iter().copied().filter(is_named).collect(), unread }
}

/// What makes a test the same as before.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct TestIdentity {
    name: String,
    above: String,
    body: String,
}

fn identify_test(function: &TestFunction) -> TestIdentity {
    let (name, above) = (function.name.clone(), function.above.clone());
    TestIdentity { name, above, body: normalize_test(function) }
}

fn describe_unread(unread: &[String]) -> Vec<String> {
    match unread {
        [] => Vec::new(),
        unread => vec![format!(
            "no rule reads tests like {}, so it is enough that they name a criterion somewhere",
            name_files(unread)
        )],
    }
}

/// Lists the changed files that decide what checks, hooks and pipelines run.
fn list_controls(observed: &ObservedTree<'_>) -> Vec<String> {
    let is_control = |path: &str| {
        let file_name = path.rsplit('/').next().unwrap_or(path);
        CONTROL_FILES.iter().any(|control| match control.strip_suffix('/') {
            Some(_) => path.starts_with(control),
            None => file_name == *control,
        })
    };
    let is_script = |path: &str| {
        let scripts = observed.check_commands.iter().flat_map(CommandLine::list_scripts);
        scripts.into_iter().any(|script| script.matches_path(path)) && !path.ends_with("package.json")
    };
    let changed = observed.work.changed.iter().map(|change| change.path.as_str());
    let controls = changed.filter(|path| is_control(path) || is_script(path) || has_other_scripts(observed, path));
    controls.map(ToString::to_string).collect()
}

/// Whether the scripts of a `package.json` differ from what they were.
fn has_other_scripts(observed: &ObservedTree<'_>, path: &str) -> bool {
    if path != "package.json" && !path.ends_with("/package.json") {
        return false;
    }
    let read_scripts = |bytes: Option<Vec<u8>>| {
        let package: serde_json::Value = serde_json::from_slice(&bytes?).ok()?;
        package.get("scripts").cloned()
    };
    let new_bytes = read_text(observed.root, path).map(String::into_bytes);
    read_scripts((observed.read_base)(path)) != read_scripts(new_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_are_named_in_many_ways() {
        for text in ["// AC1: it logs in", "def test_ac_1_login():", "it('AC-1 logs in')", "AC #1", "(ac1)"] {
            assert!(names_criterion(text, 1), "{text}");
        }
        for text in ["AC12", "mac1", "backlog 1", "1", "AC", "ACx1"] {
            assert!(!names_criterion(text, 1), "{text}");
        }
    }

    #[test]
    fn tests_are_known_by_their_names() {
        for path in ["tests/login.rs", "src/login.test.ts", "login_spec.rb", "a/test_login.py", "src/LoginTest.java"] {
            assert!(is_test_name(path), "{path}");
        }
        for path in ["src/login.rs", "src/contest.rs", "docs/test-plan.md", "tests", "latest/a.rs"] {
            assert!(!is_test_name(path), "{path}");
        }
    }

    #[test]
    fn a_reason_names_its_criterion() {
        let story_text = "### Completion Notes\n- AC2: no test: only the wording changes\n- AC3 is done\n";
        let excused = find_excuse(story_text, 2).unwrap();
        assert_eq!((excused.number, excused.line.as_str()), (2, "AC2: no test: only the wording changes"));
        assert_eq!(find_excuse(story_text, 3), None);
    }
}
