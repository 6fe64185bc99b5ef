//! Whether a step of a story did what it should: from files and git alone.
//!
//! An agent's words, its ticks and its file list are claims. They are compared with what changed since the commit that the work began
//! with; the board and the story's own files are bookkeeping and prove nothing.

use alloc::{
    collections::BTreeSet,
    format,
    string::{String, ToString},
    vec::Vec,
};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::story::facts::{StoryFacts, StoryFileFacts, StoryName, StoryStage};
use tribunal_engine::text::{format_count, truncate_chars};

/// The most names that one problem lists.
const MAX_NAMES: usize = 5;

/// What a story must have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoryMilestone {
    /// Its file is written.
    Written,
    /// The work is done and can be reviewed.
    Developed,
}

/// How strict the rules are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct VerificationRules {
    /// Criteria without a test only cause a remark.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub tolerates_untested: bool,
}

/// Why a step does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum StoryProblem {
    /// There is no file of the story.
    NoFile,
    /// The file has no acceptance criteria.
    NoCriteria,
    /// The file has no tasks.
    NoTasks,
    /// The front matter of the file cannot be read: what the story owes could be lost with it.
    BrokenFrontMatter { why: String },
    /// Nothing but bookkeeping has changed.
    NothingChanged,
    /// Tasks are not ticked.
    OpenTasks { open: u32, first: String },
    /// Tasks are ticked, and the file list is empty.
    NoFileList,
    /// The file list names files that do not exist.
    MissingFiles { paths: Vec<String> },
    /// The file list names files that did not change.
    UnchangedFiles { paths: Vec<String> },
    /// Criteria have neither a test nor a reason why not.
    UntestedCriteria { numbers: Vec<u32> },
    /// The story's file does not say that the work is finished.
    StatusBehind { status: String, expected: StoryStage },
    /// The workflow itself says why it stopped.
    SelfBlocked { why: String },
    /// The board was moved back.
    BoardMovedBack { from: StoryStage, to: StoryStage },
    /// The entry of the board is gone.
    NotOnBoard,
    /// A check fails.
    CheckFailed { detail: String },
    /// The user's commit hook refuses the work.
    HookRefused { detail: String },
    /// Something about the work must not land like this.
    Questionable { detail: String },
    /// A review found it, and could not resolve it.
    ReviewFinding { detail: String },
}

impl StoryProblem {
    /// Describes the problem as a sentence without a full stop, for users and for the next agent.
    pub fn describe(&self) -> String {
        match self {
            StoryProblem::NoFile => "there is no story file".to_string(),
            StoryProblem::NoCriteria => "the story file has no acceptance criteria".to_string(),
            StoryProblem::NoTasks => "the story file has no tasks".to_string(),
            StoryProblem::BrokenFrontMatter { why } => format!("the front matter of the story cannot be read: {why}"),
            StoryProblem::NothingChanged => {
                "nothing was changed since the work began, apart from the story's own files".to_string()
            }
            StoryProblem::OpenTasks { open, first } => {
                format!("{} not ticked, the first: {}", format_count(*open, "task"), truncate_chars(first, 120))
            }
            StoryProblem::NoFileList => "tasks are ticked, but the file list is empty".to_string(),
            StoryProblem::MissingFiles { paths } => {
                format!("the file list names files that do not exist: {}", join_names(paths))
            }
            StoryProblem::UnchangedFiles { paths } => {
                format!("the file list names files that did not change: {}", join_names(paths))
            }
            StoryProblem::UntestedCriteria { numbers } => {
                let names: Vec<String> = numbers.iter().map(|number| format!("AC{number}")).collect();
                format!("no test and no reason for {}", join_names(&names))
            }
            StoryProblem::StatusBehind { status, expected } => match status.as_str() {
                "" => format!("the story file has no status (expected {expected})"),
                status => format!("the story file says `{status}` (expected {expected})"),
            },
            StoryProblem::SelfBlocked { why } => format!("the workflow stopped: {why}"),
            StoryProblem::BoardMovedBack { from, to } => format!("the board was moved back from {from} to {to}"),
            StoryProblem::NotOnBoard => "the story is no longer on the board".to_string(),
            StoryProblem::CheckFailed { detail }
            | StoryProblem::Questionable { detail }
            | StoryProblem::ReviewFinding { detail } => detail.clone(),
            StoryProblem::HookRefused { detail } => format!("the commit hook refused the work: {detail}"),
        }
    }
}

fn join_names(names: &[String]) -> String {
    let mut shown = names.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMES {
        shown.push_str(&format!(" and {} more", names.len() - MAX_NAMES));
    }
    shown
}

/// What the rules say about a story.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoryVerdict {
    /// Why the step does not count; empty if it does.
    pub problems: Vec<StoryProblem>,
    /// What does not speak against the work, but the user should know, one line each.
    pub remarks: Vec<String>,
}

/// Applies the rules. `board_before` is the stage of the board before the step.
pub fn verify_story(
    story: &StoryName,
    facts: &StoryFacts,
    milestone: StoryMilestone,
    board_before: Option<StoryStage>,
    rules: VerificationRules,
) -> StoryVerdict {
    let mut verdict = StoryVerdict::default();
    check_board(story, facts, board_before, &mut verdict);
    let Some(file) = &facts.file else {
        // In late eras the workflow writes its own spec; without one there is only the work itself.
        verdict.problems.push(StoryProblem::NoFile);
        if milestone == StoryMilestone::Developed {
            check_changes(story, facts, None, &mut verdict);
        }
        return verdict;
    };
    if let Some(why) = &file.broken_front_matter {
        verdict.problems.push(StoryProblem::BrokenFrontMatter { why: why.clone() });
    }
    match milestone {
        StoryMilestone::Written => {
            if file.criteria.is_empty() {
                verdict.problems.push(StoryProblem::NoCriteria);
            }
            if file.tasks.is_empty() {
                verdict.problems.push(StoryProblem::NoTasks);
            }
            check_status(file, StoryStage::ReadyForDev, &mut verdict);
        }
        StoryMilestone::Developed => {
            check_changes(story, facts, Some(file), &mut verdict);
            check_tasks(story, facts, file, &mut verdict);
            check_criteria(facts, file, rules, &mut verdict);
            check_status(file, StoryStage::Review, &mut verdict);
        }
    }
    verdict
}

/// Refuses another file than the one by which the work is measured. The rules read what they find first, and an agent may have written it.
pub fn find_replaced_file(expected_path: Option<&str>, facts: &StoryFacts) -> Option<StoryProblem> {
    let (expected_path, found_path) = (expected_path?, facts.file.as_ref()?.path.as_str());
    (found_path != expected_path).then(|| StoryProblem::Questionable {
        detail: format!("the story's file is {expected_path}: put it back there, and remove {found_path}"),
    })
}

fn check_board(story: &StoryName, facts: &StoryFacts, board_before: Option<StoryStage>, verdict: &mut StoryVerdict) {
    let stage_now = facts.board.as_ref().and_then(|fact| fact.stage);
    match (board_before, stage_now) {
        (Some(_), None) if story.board.is_some() && facts.board.is_none() => {
            verdict.problems.push(StoryProblem::NotOnBoard);
        }
        (Some(from), Some(to)) if to < from => verdict.problems.push(StoryProblem::BoardMovedBack { from, to }),
        // Only a verified story is done, and then the board is moved by us.
        (Some(from), Some(StoryStage::Done)) if from != StoryStage::Done => {
            verdict.remarks.push(String::from("the agent moved the board to done; that does not count"));
        }
        _ => {}
    }
}

/// Something of the product must have changed.
fn check_changes(story: &StoryName, facts: &StoryFacts, file: Option<&StoryFileFacts>, verdict: &mut StoryVerdict) {
    let own_path = file.map(|file| file.path.as_str());
    let is_work = |path: &str| !story.is_bookkeeping(path) && own_path != Some(path);
    // Beyond the listed ones there are more changes, and not all of them are bookkeeping.
    let is_listed_whole = facts.work.changed.len() as u32 >= facts.work.changed_count;
    if is_listed_whole && !facts.work.changed.iter().any(|change| is_work(&change.path)) {
        verdict.problems.push(StoryProblem::NothingChanged);
    }
}

/// Every task must be ticked, and the file list must fit the changes.
fn check_tasks(story: &StoryName, facts: &StoryFacts, file: &StoryFileFacts, verdict: &mut StoryVerdict) {
    let open_tasks: Vec<&str> = file.tasks.iter().filter(|task| !task.done).map(|task| task.text.as_str()).collect();
    if let Some(first) = open_tasks.first() {
        verdict.problems.push(StoryProblem::OpenTasks { open: open_tasks.len() as u32, first: (*first).to_string() });
    }
    if file.is_spec {
        return;
    }
    let has_ticks = file.tasks.iter().any(|task| task.done);
    if has_ticks && file.files.is_empty() {
        verdict.problems.push(StoryProblem::NoFileList);
        return;
    }
    let changed: BTreeSet<&str> = facts.work.changed.iter().map(|change| change.path.as_str()).collect();
    let is_whole = facts.work.changed.len() as u32 >= facts.work.changed_count;
    let has_changed = |path: &str| {
        // A directory in the list stands for what is in it.
        changed.contains(path)
            || path.ends_with('/') && changed.iter().any(|changed_path| changed_path.starts_with(path))
    };
    let listed_work = || file.files.iter().filter(|path| !story.is_bookkeeping(path) && **path != file.path);
    let unchanged: Vec<String> = listed_work().filter(|path| is_whole && !has_changed(path)).cloned().collect();
    let exists = |path: &String| facts.existing_files.contains(path);
    let missing: Vec<String> = unchanged.iter().filter(|path| !exists(path)).cloned().collect();
    let is_earlier_work = |path: &String| file.files_before.contains(path);
    let untouched: Vec<String> = unchanged.into_iter().filter(|path| exists(path) && !is_earlier_work(path)).collect();
    if !missing.is_empty() {
        verdict.problems.push(StoryProblem::MissingFiles { paths: missing });
    }
    if !untouched.is_empty() {
        verdict.problems.push(StoryProblem::UnchangedFiles { paths: untouched });
    }
    let listed: BTreeSet<&str> = file.files.iter().map(String::as_str).collect();
    let is_listed = |path: &str| {
        listed.contains(path)
            || listed.iter().any(|listed_path| listed_path.ends_with('/') && path.starts_with(*listed_path))
    };
    let unlisted: Vec<String> = changed
        .iter()
        .filter(|path| !story.is_bookkeeping(path) && **path != file.path && !is_listed(path))
        .map(|path| (*path).to_string())
        .collect();
    if !unlisted.is_empty() {
        verdict.remarks.push(format!("changed, but not in the file list: {}", join_names(&unlisted)));
    }
}

/// Every criterion needs a test that names it, a ticked task about tests while tests changed, or a reason.
fn check_criteria(facts: &StoryFacts, file: &StoryFileFacts, rules: VerificationRules, verdict: &mut StoryVerdict) {
    let is_covered_by_task = |number: u32| {
        let is_about_tests = |text: &str| text.to_lowercase().contains("test");
        !facts.changed_tests.is_empty()
            && file.tasks.iter().any(|task| task.done && task.criteria.contains(&number) && is_about_tests(&task.text))
    };
    let is_tested = |number: u32| facts.tested_criteria.contains(&number) || is_covered_by_task(number);
    let mut untested: Vec<u32> = file.criteria.iter().copied().filter(|number| !is_tested(*number)).collect();
    for excused in file.excused_criteria.iter().filter(|excused| untested.contains(&excused.number)) {
        verdict.remarks.push(format!("AC{} has no test; the story says: {}", excused.number, excused.line));
    }
    untested.retain(|number| !file.excused_criteria.iter().any(|excused| excused.number == *number));
    if untested.is_empty() {
        return;
    }
    let problem = StoryProblem::UntestedCriteria { numbers: untested };
    if rules.tolerates_untested || file.is_spec {
        verdict.remarks.push(problem.describe());
    } else {
        verdict.problems.push(problem);
    }
}

/// The story's own status must have come as far as its stage. A spec is finished when its workflow says so.
fn check_status(file: &StoryFileFacts, expected: StoryStage, verdict: &mut StoryVerdict) {
    if let Some(why) = &file.blocked_by {
        verdict.problems.push(StoryProblem::SelfBlocked { why: why.clone() });
        return;
    }
    let stage = file.status.as_ref().and_then(|fact| fact.stage);
    if stage.is_none_or(|stage| stage < expected) {
        let status = file.status.as_ref().map(|fact| fact.word.clone()).unwrap_or_default();
        verdict.problems.push(StoryProblem::StatusBehind { status, expected });
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::{
        development::workspace::{PathChange, WorkspaceChange, WorkspaceState},
        story::facts::{ExcusedCriterion, StageFact, TaskFact},
    };

    fn story() -> StoryName {
        StoryName {
            key: "1-2-log-in".into(),
            title: "Log in".into(),
            board: Some("out/sprint-status.yaml".into()),
            bookkeeping: vec!["out".into()],
        }
    }

    fn fact(stage: StoryStage) -> Option<StageFact> {
        Some(StageFact { stage: Some(stage), word: stage.to_string() })
    }

    fn changed(paths: &[&str]) -> WorkspaceState {
        let changes = paths.iter().map(|path| WorkspaceChange { path: (*path).into(), change: PathChange::Modified });
        WorkspaceState { changed: changes.collect(), changed_count: paths.len() as u32, ..WorkspaceState::default() }
    }

    fn task(text: &str, done: bool, criteria: &[u32]) -> TaskFact {
        TaskFact { text: text.into(), done, criteria: criteria.to_vec() }
    }

    /// A story that was developed as it should be.
    fn good_facts() -> StoryFacts {
        StoryFacts {
            board: fact(StoryStage::Review),
            file: Some(StoryFileFacts {
                path: "out/1-2-log-in.md".into(),
                status: fact(StoryStage::Review),
                tasks: vec![task("Write the form", true, &[1]), task("Test it", true, &[2])],
                criteria: vec![1, 2],
                files: vec!["src/login.rs".into(), "tests/login.rs".into()],
                ..StoryFileFacts::default()
            }),
            work: changed(&["out/1-2-log-in.md", "src/login.rs", "tests/login.rs"]),
            changed_tests: vec!["tests/login.rs".into()],
            tested_criteria: vec![1],
            existing_files: vec!["src/login.rs".into(), "tests/login.rs".into()],
            ..StoryFacts::default()
        }
    }

    fn verify(facts: &StoryFacts) -> Vec<String> {
        let board_before = Some(StoryStage::InProgress);
        let milestone = StoryMilestone::Developed;
        let verdict = verify_story(&story(), facts, milestone, board_before, VerificationRules::default());
        verdict.problems.iter().map(StoryProblem::describe).collect()
    }

    #[test]
    fn honest_work_is_verified() {
        assert_eq!(verify(&good_facts()), [""; 0]);
    }

    /// Each rule refuses the one thing that it is for.
    #[test]
    fn every_lie_is_noticed() {
        type Lie = fn(&mut StoryFacts, &mut StoryFileFacts);
        let lies: [(Lie, &str); 13] = [
            (
                |facts, file| {
                    facts.work = changed(&["out/1-2-log-in.md", "out/sprint-status.yaml"]);
                    file.files.clear();
                    file.tasks.clear();
                    file.criteria.clear();
                },
                "nothing was changed since the work began, apart from the story's own files",
            ),
            (|_, file| file.tasks[0].done = false, "1 task not ticked, the first: Write the form"),
            (|_, file| file.files.clear(), "tasks are ticked, but the file list is empty"),
            (
                |_, file| file.files.push("src/ghost.rs".into()),
                "the file list names files that do not exist: src/ghost.rs",
            ),
            (
                |facts, file| {
                    file.files.push("src/old.rs".into());
                    facts.existing_files.push("src/old.rs".into());
                },
                "the file list names files that did not change: src/old.rs",
            ),
            (|facts, _| facts.tested_criteria.clear(), "no test and no reason for AC1"),
            (|facts, _| facts.changed_tests.clear(), "no test and no reason for AC2"),
            (
                |_, file| file.status = fact(StoryStage::InProgress),
                "the story file says `in-progress` (expected review)",
            ),
            (|_, file| file.status = None, "the story file has no status (expected review)"),
            (
                |_, file| file.broken_front_matter = Some("1-2.md:2: unclosed bracket".into()),
                "the front matter of the story cannot be read: 1-2.md:2: unclosed bracket",
            ),
            (|_, file| file.blocked_by = Some("intent gap".into()), "the workflow stopped: intent gap"),
            (
                |facts, _| facts.board = fact(StoryStage::Backlog),
                "the board was moved back from in-progress to backlog",
            ),
            (|facts, _| facts.board = None, "the story is no longer on the board"),
        ];
        for (lie, expected) in lies {
            let mut facts = good_facts();
            let mut file = facts.file.take().unwrap();
            lie(&mut facts, &mut file);
            facts.file = Some(file);
            assert_eq!(verify(&facts), [expected]);
        }
        let without_file = StoryFacts { file: None, ..good_facts() };
        assert_eq!(verify(&without_file), ["there is no story file"]);
    }

    #[test]
    fn another_file_of_the_story_is_refused() {
        let facts = good_facts();
        assert_eq!(find_replaced_file(None, &facts), None);
        assert_eq!(find_replaced_file(Some("out/1-2-log-in.md"), &facts), None);
        let problem = find_replaced_file(Some("out/stories/1-2-log-in.md"), &facts).unwrap();
        let expected = "the story's file is out/stories/1-2-log-in.md: put it back there, and remove out/1-2-log-in.md";
        assert_eq!(problem.describe(), expected);
        // A file that is missing is a problem of its own.
        let without_file = StoryFacts { file: None, ..good_facts() };
        assert_eq!(find_replaced_file(Some("out/1-2-log-in.md"), &without_file), None);
    }

    #[test]
    fn a_reason_or_a_tolerant_rule_replaces_a_test() {
        let mut facts = good_facts();
        facts.tested_criteria.clear();
        let tolerant = VerificationRules { tolerates_untested: true };
        let verdict = verify_story(&story(), &facts, StoryMilestone::Developed, None, tolerant);
        assert_eq!((verdict.problems.len(), verdict.remarks.len()), (0, 1));
        let line = String::from("AC1: no test: only a text changes");
        facts.file.as_mut().unwrap().excused_criteria.push(ExcusedCriterion { number: 1, line });
        let verdict = verify_story(&story(), &facts, StoryMilestone::Developed, None, VerificationRules::default());
        assert_eq!(verdict.problems, []);
        assert_eq!(verdict.remarks, ["AC1 has no test; the story says: AC1: no test: only a text changes"]);
    }

    #[test]
    fn unlisted_changes_are_only_a_remark() {
        let mut facts = good_facts();
        facts.work = changed(&["src/login.rs", "tests/login.rs", "src/extra.rs"]);
        let milestone = StoryMilestone::Developed;
        let verdict = verify_story(&story(), &facts, milestone, None, VerificationRules::default());
        assert_eq!(verdict.problems, []);
        assert_eq!(verdict.remarks, ["changed, but not in the file list: src/extra.rs"]);
    }

    #[test]
    fn a_new_story_file_needs_criteria_tasks_and_its_status() {
        let mut facts = good_facts();
        let verify_written = |facts: &StoryFacts| {
            let milestone = StoryMilestone::Written;
            let verdict = verify_story(&story(), facts, milestone, None, VerificationRules::default());
            verdict.problems.iter().map(StoryProblem::describe).collect::<Vec<_>>()
        };
        assert_eq!(verify_written(&facts), [""; 0]);
        let file = facts.file.as_mut().unwrap();
        (file.criteria, file.tasks, file.status) = (Vec::new(), Vec::new(), fact(StoryStage::Backlog));
        assert_eq!(
            verify_written(&facts),
            [
                "the story file has no acceptance criteria",
                "the story file has no tasks",
                "the story file says `backlog` (expected ready-for-dev)"
            ]
        );
    }
}
