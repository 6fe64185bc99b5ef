//! The file of a story, in the form of every era: its key and title, status, acceptance criteria, tasks, changed files and
//! what a review left to do. Specs of late eras (`spec-3-2-x.md`) are read the same way.
//!
//! Reading takes what it finds and reports what is odd; it never refuses a file. Changing a file is the job of [`edit`]. What
//! the board says about the story is not known here.

mod criteria;
pub mod edit;
mod record;
mod status;
mod tasks;

use schemars::JsonSchema;
use serde::Serialize;
use tribunal_core::finding::Severity;

pub use criteria::{Criterion, criteria, is_story};
pub(crate) use criteria::{among, is_label, is_ours};
pub use status::{Place, StatusLine};
pub use tasks::Task;

use crate::{
    keys::{Number, StoryKey, StoryStatus, slug},
    page::Page,
    problem::{Problem, rules},
    yaml,
};

/// A text from a file with its line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Said {
    pub text: String,
    pub line: usize,
}

/// The content of a story's file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Story {
    /// The key, from the file's name or from the title.
    pub key: Option<StoryKey>,
    /// The title without `Story 1.2:`.
    pub title: Option<Said>,
    pub status: Option<StatusLine>,
    pub tasks: Vec<Task>,
    pub criteria: Vec<Criterion>,
    /// The paths under `File List`.
    pub files: Vec<Said>,
    pub follow_ups: Vec<FollowUp>,
    /// The outcome of the last review in the file, as written: `Approve`, `Changes Requested`, `Blocked`.
    pub outcome: Option<Said>,
    /// The commit at which the work began.
    pub baseline: Option<String>,
    pub depends_on: Vec<String>,
    pub closes_deferred: Vec<String>,
    pub problems: Vec<Problem>,
}

/// Something that a review left to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FollowUp {
    pub dialect: Dialect,
    pub done: bool,
    /// The kind; `None` if the item does not state one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<FollowUpKind>,
    pub text: String,
    /// The place in the code: `file:line`, or only a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    pub line: usize,
}

/// How a review writes what is left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// `### Review Follow-ups (AI)`: `- [ ] [AI-Review][High] …`.
    AiReview,
    /// `### Review Findings`: `- [ ] [Review][Patch] …`, from 6.2.1 on.
    Findings,
}

/// What kind of work a follow-up is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FollowUpKind {
    Severity(Severity),
    /// The user has to decide how to solve it.
    Decision,
    Patch,
    /// Known, and left for later.
    Defer,
    /// A kind that is not known here, as it is written.
    Other(String),
}

impl FollowUpKind {
    pub fn parse(said: &str) -> FollowUpKind {
        let said = said.trim();
        match said.to_ascii_lowercase().as_str() {
            "decision" | "decision-needed" | "decision_needed" => FollowUpKind::Decision,
            "patch" => FollowUpKind::Patch,
            "defer" | "deferred" => FollowUpKind::Defer,
            "med" => FollowUpKind::Severity(Severity::Medium),
            word => Severity::parse(word)
                .map_or_else(|| FollowUpKind::Other(said.to_string()), FollowUpKind::Severity),
        }
    }
}

impl Story {
    /// The number of tasks and subtasks that are ticked, and of all.
    pub fn progress(&self) -> (usize, usize) {
        let mut done = 0;
        let mut all = 0;
        tasks::walk(&self.tasks, &mut |task| {
            all += 1;
            done += usize::from(task.done);
        });
        (done, all)
    }

    /// What a review left to do and is not ticked.
    pub fn open_follow_ups(&self) -> impl Iterator<Item = &FollowUp> {
        self.follow_ups.iter().filter(|item| !item.done)
    }
}

/// Reads a story's file. The path is only used for the file's name and for problems.
pub fn read(path: &str, text: &str) -> Story {
    let page = Page::of(text);
    let mut problems = Vec::new();
    let front = front(path, &page, &mut problems);
    let title = title(&page, front.as_ref());
    // The number is taken from the whole title, before it is cut off.
    let numbered = title.as_ref().and_then(|said| numbered(&said.text));
    let title = title.map(|said| Said { text: bare(&said.text).to_string(), ..said });
    // The file's name is what BMAD's workflows look for, so it wins over the title.
    let key = key_of(path).or_else(|| from_title(numbered, title.as_ref()));
    let list = |name: &str| front.as_ref().and_then(|front| front.get(name)).map(scalars).unwrap_or_default();
    let one = |name: &str| list(name).into_iter().next();
    let mut story = Story {
        status: status::read(path, &page, front.as_ref(), &mut problems),
        tasks: tasks::read(&page),
        criteria: criteria::found(&page),
        files: record::files(&page),
        follow_ups: record::follow_ups(&page),
        outcome: record::outcome(&page),
        // Early eras call the commit `baseline_commit`, late ones `baseline_revision`.
        baseline: one("baseline_commit").or_else(|| one("baseline_revision")),
        depends_on: list("depends_on"),
        closes_deferred: list("closes_deferred"),
        key,
        title,
        problems,
    };
    story.problems.extend(oddities(path, &page, &story, numbered));
    story
}

/// The front matter; broken front matter becomes a problem.
fn front(path: &str, page: &Page<'_>, problems: &mut Vec<Problem>) -> Option<yaml::Node> {
    match yaml::parse(page.front_matter()?) {
        Ok(node) => Some(node),
        Err(broken) => {
            let problem = Problem::warning(
                "front-matter-broken",
                path,
                format!("in the front matter: {}", broken.what),
            )
            // The front matter begins behind the first mark, so its lines are one further down in the file.
            .at(broken.line.map_or(1, |line| line + 1))
            .why("nothing of it is read, and the file's status cannot be changed")
            .todo("mend it, or take the front matter out");
            problems.push(broken.column.into_iter().fold(problem, Problem::column));
            None
        }
    }
}

/// The first heading of the first level, otherwise the title in the front matter.
fn title(page: &Page<'_>, front: Option<&yaml::Node>) -> Option<Said> {
    let heading = page.lines.iter().find_map(|line| {
        let (level, title) = line.heading()?;
        (level == 1 && !title.is_empty()).then(|| Said { text: title.to_string(), line: line.number })
    });
    heading.or_else(|| {
        let node = front?.get("title")?;
        let text = node.text().map(str::trim).filter(|text| !text.is_empty())?;
        Some(Said { text: text.to_string(), line: node.line + 1 })
    })
}

/// Splits `Story 1.2: Log in` into its number and its title.
fn cut_number(title: &str) -> Option<(Number, &str)> {
    // `get` gives nothing where byte 5 is inside a character, as in `Stör`.
    let rest = title.get(..5).filter(|word| word.eq_ignore_ascii_case("story")).map(|_| &title[5..])?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-')).unwrap_or(rest.len());
    let (said, behind) = rest.split_at(end);
    // `Story 1.2. Log in` and `Story 1.2 - Log in` have a mark behind the number.
    let number = Number::parse(&said.trim_end_matches(['.', '-']).to_ascii_lowercase())?;
    Some((number, behind.trim_start_matches([':', '-', '–', '—', ' ', '\t'])))
}

fn numbered(title: &str) -> Option<Number> {
    cut_number(title).map(|(number, _)| number)
}

fn bare(title: &str) -> &str {
    cut_number(title).map(|(_, rest)| rest).filter(|rest| !rest.is_empty()).unwrap_or(title)
}

/// The key in `1-2-log-in.md`, `spec-1-2-log-in.md` or `story-1-2-log-in.md`.
pub fn key_of(path: &str) -> Option<StoryKey> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = name.strip_suffix(".md").unwrap_or(name);
    let bare = stem.strip_prefix("spec-").or_else(|| stem.strip_prefix("story-")).unwrap_or(stem);
    StoryKey::parse(bare)
}

fn from_title(number: Option<Number>, title: Option<&Said>) -> Option<StoryKey> {
    let Number { epic, number, letter } = number?;
    let slug = slug(&title?.text);
    (!slug.is_empty()).then_some(StoryKey { epic, number, letter, slug })
}

/// The texts of a scalar, or of a list of scalars.
pub(crate) fn scalars(node: &yaml::Node) -> Vec<String> {
    let own = node.text().into_iter().chain(node.items().iter().filter_map(yaml::Node::text));
    own.map(|text| text.trim().to_string()).filter(|text| !text.is_empty()).collect()
}

/// Finds what does not fit together within one story.
fn oddities(path: &str, page: &Page<'_>, story: &Story, numbered: Option<Number>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let titled = story.title.as_ref().map_or(1, |title| title.line);
    if let (Some(key), Some(number)) = (&story.key, numbered)
        && key.number() != number
    {
        let what = format!("the title says story {number}, the file's name {}", key.number());
        problems
            .push(Problem::warning("story-number-differs", path, what).at(titled).todo("rename one of them"));
    }
    // Whether this is an error depends on the step that needs the story; here it is a warning.
    if story.criteria.is_empty() {
        problems.push(
            Problem::warning(rules::STORY_NO_CRITERIA, path, "there are no acceptance criteria")
                .why("nothing says when the story is done")
                .todo("write them under `## Acceptance Criteria`"),
        );
    }
    if let Some(line) = page.lines.iter().find(|line| line.is_prose() && is_placeholder(line.text)) {
        let what = format!("a placeholder of the template is left: {}", line.text.trim());
        problems.push(Problem::note("story-placeholder", path, what).at(line.number).todo("fill it in"));
    }
    task_oddities(path, story, &mut problems);
    problems
}

/// Whether a line has a placeholder such as `{{role}}`. The name of the model does not count: it is filled in when the work
/// is done.
fn is_placeholder(line: &str) -> bool {
    let inside = line.split_once("{{").and_then(|(_, rest)| rest.split_once("}}"));
    inside.is_some_and(|(name, _)| !name.contains("agent_model"))
}

/// Finds tasks that name unknown criteria, are ticked too early, or are open in a finished story.
fn task_oddities(path: &str, story: &Story, problems: &mut Vec<Problem>) {
    let known: std::collections::BTreeSet<u32> =
        story.criteria.iter().map(|criterion| criterion.number).collect();
    let mut open = None;
    // Only the first open task is reported: one is enough to show that the status is wrong.
    tasks::walk(&story.tasks, &mut |task| {
        if !task.done && open.is_none() {
            open = Some(task.line);
        }
        for number in task.criteria.iter().filter(|number| !known.contains(number)) {
            let what = format!("task {} names acceptance criterion {number}; there is none", task.id);
            problems.push(Problem::warning("task-unknown-criterion", path, what).at(task.line));
        }
        if task.done && task.subtasks.iter().any(|sub| !sub.done) {
            let what = format!("task {} is ticked, and not all of its subtasks are", task.id);
            let why = "what is ticked counts as done";
            problems.push(Problem::warning("task-ticked-early", path, what).at(task.line).why(why));
        }
    });
    let state = story.status.as_ref().and_then(|status| status.status);
    if let (Some(line), Some(state @ (StoryStatus::Review | StoryStatus::Done))) = (open, state) {
        let what = format!("the story is at {state}, and this task is not ticked");
        problems.push(
            Problem::warning("story-open-task", path, what).at(line).todo("finish the task, or tick it"),
        );
    }
}

#[cfg(test)]
mod tests;
