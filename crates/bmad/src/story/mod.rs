//! The file of a story, in the form of every era: its key and title, status, acceptance criteria, tasks, changed files and
//! what a review left to do. Specs of late eras (`spec-3-2-x.md`) are read the same way.
//!
//! Reading takes what it finds and reports what is odd; it never refuses a file. Changing a file is the job of [`edit`]. What
//! the board says about the story is not known here.

mod agent_record;
mod criteria;
pub mod edit;
mod file_list;
mod limits;
mod links;
mod status;
mod tasks;

use tribunal_json::{Serialize, schemars};
use tribunal_workflows::findings::finding::Severity;

pub use criteria::{Criterion, is_story_file, read_criteria};
pub(crate) use criteria::{criteria_in_lines, is_criteria_label, is_criteria_title};
pub use limits::read_limits;
pub use links::StoryLinks;
pub use status::{StatusPlace, StoryStatusLine};
pub use tasks::StoryTask;
pub(crate) use tasks::{count_indent, parse_checkbox};

use crate::{
    keys::{StoryKey, StoryNumber, slugify},
    markdown::MarkdownPage,
    problem::{FileProblem, rules},
    states::StoryStatus,
    yaml,
};

/// A text from a file with its line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct LocatedText {
    pub text: String,
    pub line: usize,
}

/// The rule about front matter that cannot be read.
const BROKEN_FRONT_MATTER: &str = "front-matter-broken";

/// The content of a story's file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Story {
    /// The key, from the file's name or from the title.
    pub key: Option<StoryKey>,
    /// The title without `Story 1.2:`.
    pub title: Option<LocatedText>,
    pub status: Option<StoryStatusLine>,
    pub tasks: Vec<StoryTask>,
    pub criteria: Vec<Criterion>,
    /// The paths under `File List`.
    pub files: Vec<LocatedText>,
    pub follow_ups: Vec<FollowUp>,
    /// The outcome of the last review in the file, as written: `Approve`, `Changes Requested`, `Blocked`.
    pub outcome: Option<LocatedText>,
    /// The commit at which the work began.
    pub baseline: Option<String>,
    #[serde(flatten)]
    pub links: StoryLinks,
    pub problems: Vec<FileProblem>,
}

/// Something that a review left to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FollowUp {
    pub dialect: ReviewDialect,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReviewDialect {
    /// `### Review Follow-ups (AI)`: `- [ ] [AI-Review][High] …`.
    AiReview,
    /// `### Review Findings`: `- [ ] [Review][Patch] …`, from 6.2.1 on.
    Findings,
}

/// What kind of work a follow-up is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FollowUpKind {
    Severity(Severity),
    /// The user has to decide how to solve it.
    Decision,
    Patch,
    /// The problem is known and left for later.
    Defer,
    /// A kind that is not known here, as it is written.
    Other(String),
}

impl FollowUpKind {
    pub fn parse(kind_text: &str) -> FollowUpKind {
        let kind_text = kind_text.trim();
        match kind_text.to_ascii_lowercase().as_str() {
            "decision" | "decision-needed" | "decision_needed" => FollowUpKind::Decision,
            "patch" => FollowUpKind::Patch,
            "defer" | "deferred" => FollowUpKind::Defer,
            severity_name => Severity::parse(severity_name)
                .map_or_else(|| FollowUpKind::Other(kind_text.to_string()), FollowUpKind::Severity),
        }
    }
}

impl Story {
    /// The number of tasks and subtasks that are ticked, and of all.
    pub fn task_progress(&self) -> (usize, usize) {
        let mut done_count = 0;
        let mut total_count = 0;
        tasks::visit_tasks(&self.tasks, &mut |task| {
            total_count += 1;
            done_count += usize::from(task.done);
        });
        (done_count, total_count)
    }

    /// The problem of front matter that cannot be read; what the story depends on and what it owes is lost with it.
    pub fn find_broken_front_matter(&self) -> Option<&FileProblem> {
        self.problems.iter().find(|problem| problem.rule == BROKEN_FRONT_MATTER)
    }

    /// What a review left to do and is not ticked.
    pub fn open_follow_ups(&self) -> impl Iterator<Item = &FollowUp> {
        self.follow_ups.iter().filter(|item| !item.done)
    }
}

/// Reads a story's file. The path is only used for the file's name and for problems.
pub fn read_story(story_path: &str, story_text: &str) -> Story {
    let markdown = MarkdownPage::parse(story_text);
    let mut problems = Vec::new();
    let front_matter = read_front_matter(story_path, &markdown, &mut problems);
    let title = find_title(&markdown, front_matter.as_ref());
    // The number is taken from the whole title, before it is cut off.
    let number_in_title = title.as_ref().and_then(|located_title| title_number(&located_title.text));
    let title = title.map(|located_title| LocatedText {
        text: title_without_number(&located_title.text).to_string(),
        ..located_title
    });
    // The file's name is what BMAD's workflows look for, so it wins over the title.
    let story_key = key_from_path(story_path).or_else(|| key_from_title(number_in_title.clone(), title.as_ref()));
    let text_of = |field_name: &str| {
        let field_node = front_matter.as_ref().and_then(|front_matter| front_matter.get(field_name));
        field_node.map(scalar_texts).unwrap_or_default().into_iter().next()
    };
    let status = status::read_status(story_path, &markdown, front_matter.as_ref(), &mut problems);
    let is_over = status.as_ref().is_some_and(|status| status.status >= Some(StoryStatus::Review));
    let mut story = Story {
        status,
        tasks: tasks::read_tasks(&markdown),
        criteria: criteria::find_criteria(&markdown),
        files: file_list::read_file_list(&markdown, is_over),
        follow_ups: agent_record::read_follow_ups(&markdown),
        outcome: agent_record::read_outcome(&markdown),
        // Early eras call the commit `baseline_commit`, late ones `baseline_revision`.
        baseline: text_of("baseline_commit").or_else(|| text_of("baseline_revision")),
        links: links::read_links(&markdown, front_matter.as_ref()),
        key: story_key,
        title,
        problems,
    };
    story.problems.extend(find_oddities(story_path, &markdown, &story, number_in_title.as_ref()));
    story
}

/// The front matter; broken front matter becomes a problem.
fn read_front_matter(
    story_path: &str,
    markdown: &MarkdownPage<'_>,
    problems: &mut Vec<FileProblem>,
) -> Option<yaml::YamlNode> {
    let Some(front_text) = markdown.front_matter() else {
        problems.extend(find_unclosed_front_matter(story_path, markdown));
        return None;
    };
    match yaml::parse_yaml(front_text) {
        Ok(front_node) => Some(front_node),
        Err(parse_error) => {
            let problem = FileProblem::warning(
                BROKEN_FRONT_MATTER,
                story_path,
                format!("{} (in the front matter)", parse_error.message),
            )
            // The front matter begins behind the first mark, so its lines are one further down in the file.
            .at_line(parse_error.line.map_or(1, |line| line + 1))
            .with_reason("Tribunal ignores the front matter and cannot change the status of the file.")
            .with_advice("fix the YAML or remove the front matter");
            problems.push(parse_error.column.into_iter().fold(problem, FileProblem::at_column));
            None
        }
    }
}

/// The problem of front matter without an end. A rule above a text is no front matter: a field has to follow it.
fn find_unclosed_front_matter(story_path: &str, markdown: &MarkdownPage<'_>) -> Option<FileProblem> {
    let (first_line, later_lines) = markdown.lines.split_first()?;
    let next_text = later_lines.iter().find(|line| !line.is_blank())?.text;
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|character| character.is_ascii_alphanumeric() || "_-".contains(character))
    };
    let has_field = next_text
        .split_once(':')
        .is_some_and(|(name, value)| is_name(name) && (value.trim().is_empty() || value.starts_with([' ', '\t'])));
    (first_line.text.trim_end() == "---" && has_field).then(|| {
        FileProblem::warning(BROKEN_FRONT_MATTER, story_path, "the front matter has no second `---`")
            .at_line(first_line.number)
            .with_reason("Tribunal ignores what it says.")
            .with_advice("close it with a line `---`")
    })
}

/// The first heading of the first level, otherwise the title in the front matter.
fn find_title(markdown: &MarkdownPage<'_>, front_matter: Option<&yaml::YamlNode>) -> Option<LocatedText> {
    let find_heading = |is_title: &dyn Fn(usize, &str) -> bool| {
        markdown.lines.iter().find_map(|line| {
            let (level, title) = line.heading()?;
            is_title(level, title).then(|| LocatedText { text: title.to_string(), line: line.number })
        })
    };
    let heading = find_heading(&|level, title| level == 1 && !title.is_empty());
    // Without a title, the file begins with the heading of its story: `## Story 1.6: …`.
    let heading = heading.or_else(|| find_heading(&|level, title| level == 2 && title_number(title).is_some()));
    heading.or_else(|| {
        let title_node = front_matter?.get("title")?;
        let title_text = title_node.scalar_text().map(str::trim).filter(|title_text| !title_text.is_empty())?;
        Some(LocatedText { text: title_text.to_string(), line: title_node.line + 1 })
    })
}

/// Splits `Story 1.2: Log in` into its number and its title.
fn split_story_number(title: &str) -> Option<(StoryNumber, &str)> {
    // `get` gives nothing where byte 5 is inside a character, as in `Straße`.
    let after_word =
        title.get(..5).filter(|first_word| first_word.eq_ignore_ascii_case("story")).map(|_| &title[5..])?;
    let after_word = after_word.trim_start();
    let number_end = after_word
        .find(|character: char| !(character.is_ascii_alphanumeric() || character == '.' || character == '-'))
        .unwrap_or(after_word.len());
    let (number_text, after_number) = after_word.split_at(number_end);
    // `Story 1.2. Log in` and `Story 1.2 - Log in` have a mark behind the number.
    let story_number = StoryNumber::parse(&number_text.trim_end_matches(['.', '-']).to_ascii_lowercase())?;
    Some((story_number, after_number.trim_start_matches([':', '-', '–', '—', ' ', '\t'])))
}

/// The number in a title such as `Story 1.2: Log in`.
pub(crate) fn title_number(title: &str) -> Option<StoryNumber> {
    split_story_number(title).map(|(story_number, _)| story_number)
}

fn title_without_number(title: &str) -> &str {
    split_story_number(title)
        .map(|(_, bare_title)| bare_title)
        .filter(|bare_title| !bare_title.is_empty())
        .unwrap_or(title)
}

/// The key in `1-2-log-in.md`, `spec-1-2-log-in.md` or `story-1-2-log-in.md`.
pub fn key_from_path(story_path: &str) -> Option<StoryKey> {
    let file_name = story_path.rsplit(['/', '\\']).next().unwrap_or(story_path);
    let file_stem = file_name.strip_suffix(".md").unwrap_or(file_name);
    let file_stem = file_stem.strip_suffix(".story").unwrap_or(file_stem);
    let key_text = file_stem.strip_prefix("spec-").or_else(|| file_stem.strip_prefix("story-")).unwrap_or(file_stem);
    StoryKey::parse(key_text).filter(|story_key| story_key.story_number().is_some())
}

fn key_from_title(story_number: Option<StoryNumber>, title: Option<&LocatedText>) -> Option<StoryKey> {
    let title_slug = slugify(&title?.text);
    story_number.filter(|_| !title_slug.is_empty()).map(|number| StoryKey::from_number(number, title_slug))
}

/// The texts of a scalar, or of a list of scalars.
pub(crate) fn scalar_texts(node: &yaml::YamlNode) -> Vec<String> {
    let all_scalars = node.scalar_text().into_iter().chain(node.items().iter().filter_map(yaml::YamlNode::scalar_text));
    all_scalars.map(|scalar| scalar.trim().to_string()).filter(|scalar| !scalar.is_empty()).collect()
}

/// Finds what does not fit together within one story.
fn find_oddities(
    story_path: &str,
    markdown: &MarkdownPage<'_>,
    story: &Story,
    number_in_title: Option<&StoryNumber>,
) -> Vec<FileProblem> {
    let mut problems = Vec::new();
    let title_line = story.title.as_ref().map_or(1, |title| title.line);
    let number_in_name = story.key.as_ref().and_then(StoryKey::story_number);
    if let (Some(named_number), Some(titled_number)) = (number_in_name, number_in_title)
        && named_number != titled_number
    {
        let message = format!("the title says story {titled_number}, but the file name says {named_number}");
        problems.push(
            FileProblem::warning("story-number-differs", story_path, message)
                .at_line(title_line)
                .with_advice("rename one of them"),
        );
    }
    // Whether this is an error depends on the step that needs the story; here it is a warning.
    if story.criteria.is_empty() {
        problems.push(
            FileProblem::warning(rules::STORY_NO_CRITERIA, story_path, "no acceptance criteria")
                .with_reason("Nothing defines when the story is done.")
                .with_advice("add them under `## Acceptance Criteria`"),
        );
    }
    if let Some(line) = markdown.lines.iter().find(|line| line.is_prose() && has_placeholder(line.text)) {
        let message = format!("unfilled template placeholder: {}", line.text.trim());
        problems.push(
            FileProblem::note("story-placeholder", story_path, message).at_line(line.number).with_advice("fill it in"),
        );
    }
    find_task_oddities(story_path, story, &mut problems);
    problems
}

/// Whether a line has a placeholder such as `{{role}}`. The name of the model does not count: it is filled in when the work
/// is done.
fn has_placeholder(line_text: &str) -> bool {
    let in_braces = line_text.split_once("{{").and_then(|(_, after_braces)| after_braces.split_once("}}"));
    in_braces.is_some_and(|(placeholder_name, _)| !placeholder_name.contains("agent_model"))
}

/// Finds tasks that name unknown criteria, are ticked too early, or are open in a finished story.
fn find_task_oddities(story_path: &str, story: &Story, problems: &mut Vec<FileProblem>) {
    let known_criteria: std::collections::BTreeSet<u32> =
        story.criteria.iter().map(|criterion| criterion.number).collect();
    let mut first_open_line = None;
    // Only the first open task is reported: one is enough to show that the status is wrong.
    tasks::visit_tasks(&story.tasks, &mut |task| {
        if !task.done && first_open_line.is_none() {
            first_open_line = Some(task.line);
        }
        for criterion_number in
            task.criteria.iter().filter(|criterion_number| !known_criteria.contains(criterion_number))
        {
            let message =
                format!("task {} refers to acceptance criterion {criterion_number}, which does not exist", task.id);
            problems.push(FileProblem::warning("task-unknown-criterion", story_path, message).at_line(task.line));
        }
        if task.done && task.subtasks.iter().any(|subtask| !subtask.done) {
            let message = format!("task {} is ticked, but not all of its subtasks are", task.id);
            let reason = "Ticked tasks count as done.";
            problems.push(
                FileProblem::warning("task-ticked-early", story_path, message).at_line(task.line).with_reason(reason),
            );
        }
    });
    let story_state = story.status.as_ref().and_then(|status| status.status);
    if let (Some(line), Some(story_state @ (StoryStatus::Review | StoryStatus::Done))) = (first_open_line, story_state)
    {
        let message = format!("the story is in state {story_state}, but this task is not ticked");
        problems.push(
            FileProblem::warning("story-open-task", story_path, message)
                .at_line(line)
                .with_advice("finish the task or tick it"),
        );
    }
}

#[cfg(test)]
mod tests;
