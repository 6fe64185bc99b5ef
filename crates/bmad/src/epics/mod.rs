//! Epics and their stories, from one `epics.md` or from a folder of parts, and the requirements that they cover.
//!
//! Headings are read as BMAD's own planner reads them: `## Epic 1: …` up to the third level, `### Story 1.2: …` from the
//! second to the fourth, in any case, never in code. A story belongs to the epic that its number names, even if it is written
//! elsewhere. Whether the stories are on the board is not known here.

mod headings;
mod requirements;

use std::{collections::BTreeMap, ops::Range};

use tribunal_engine::text::truncate_chars;
use tribunal_json::Serialize;

pub use requirements::{Requirement, RequirementCoverage, find_requirement_ids, read_inventory};

use crate::{
    epic_id::EpicId,
    keys::{StoryKey, StoryNumber, slugify},
    markdown::{MarkdownLine, MarkdownPage, normalize_title},
    problem::{FileProblem, rules},
    story,
};
use headings::{EpicsHeading, parse_heading};

/// All epics of a project, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EpicsDocument {
    pub epics: Vec<Epic>,
    /// The requirements inventory of the file: `FR1: …`, `NFR2: …`.
    pub requirements: Vec<Requirement>,
    /// Which epic covers which requirement, by the file's own map.
    pub coverage: Vec<RequirementCoverage>,
    pub problems: Vec<FileProblem>,
}

/// One epic of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Epic {
    pub number: EpicId,
    pub title: String,
    pub path: String,
    pub line: usize,
    pub goal: String,
    /// The requirements that it covers by its own text: `FR1`, `NFR2`.
    pub requirements: Vec<String>,
    /// Whether it is only named in the list of epics and not worked out yet.
    pub only_listed: bool,
    pub stories: Vec<EpicStory>,
}

/// One story of an epic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EpicStory {
    pub number: StoryNumber,
    pub title: String,
    pub path: String,
    pub line: usize,
    /// The key with the slug of the title. Agents of older eras wrote boards themselves, so compare the number first.
    pub key: StoryKey,
    pub criteria: Vec<String>,
    /// The requirements that it names: `FR1`, `NFR2`.
    pub requirements: Vec<String>,
    /// The stories that it says it depends on.
    pub depends_on: Vec<StoryNumber>,
    /// How complex it says it is: `M`, `5 points`.
    pub complexity: Option<String>,
}

impl EpicsDocument {
    pub fn stories(&self) -> impl Iterator<Item = &EpicStory> {
        self.epics.iter().flat_map(|epic| &epic.stories)
    }
}

/// Reads the files of the plan, in their order.
pub fn read_epics(epic_files: &[(&str, &str)]) -> EpicsDocument {
    let mut epics_reader = EpicsReader::default();
    for (epics_path, epics_text) in epic_files {
        epics_reader.read_file(epics_path, &MarkdownPage::parse(epics_text));
    }
    epics_reader.into_epics()
}

/// The epics while the files are read. Stories are kept apart until all files are read, since an epic may follow its stories.
#[derive(Default)]
struct EpicsReader {
    epics: BTreeMap<EpicId, Epic>,
    stories: BTreeMap<EpicId, Vec<EpicStory>>,
    requirements: Vec<Requirement>,
    coverage: Vec<RequirementCoverage>,
    problems: Vec<FileProblem>,
}

impl EpicsReader {
    /// Reads one file: its headings, and the text below each.
    fn read_file(&mut self, epics_path: &str, markdown: &MarkdownPage<'_>) {
        let found_headings: Vec<(usize, EpicsHeading<'_>)> = markdown
            .lines
            .iter()
            .enumerate()
            .filter_map(|(index, line)| parse_heading(line).map(|heading| (index, heading)))
            .collect();
        let list_ranges = find_epic_lists(markdown);
        // The text under a heading ends at the next of our headings, or at any heading of its level or above.
        let section_ends: BTreeMap<usize, usize> =
            markdown.sections().into_iter().map(|section| (section.heading_index, section.line_range.end)).collect();
        let mut current_epic = None;
        for (heading_position, (index, heading)) in found_headings.iter().enumerate() {
            let next_heading_index = found_headings
                .get(heading_position + 1)
                .map_or(markdown.lines.len(), |(next_heading_index, _)| *next_heading_index);
            let body_end =
                section_ends.get(index).map_or(next_heading_index, |section_end| next_heading_index.min(*section_end));
            let body = EpicSectionBody {
                path: epics_path,
                markdown,
                heading_index: *index,
                line_range: index + 1..body_end.max(index + 1),
            };
            match heading {
                EpicsHeading::Epic(epic_number, title) => {
                    self.add_epic(
                        epic_number.clone(),
                        title,
                        list_ranges.iter().any(|list_range| list_range.contains(index)),
                        &body,
                    );
                    current_epic = Some(epic_number.clone());
                }
                EpicsHeading::Story(story_number, title) => {
                    self.add_story(story_number.clone(), title, current_epic.as_ref(), &body);
                }
                EpicsHeading::Malformed => self.report_malformed_heading(&body),
            }
        }
        requirements::gather_requirements(epics_path, markdown, &mut self.requirements, &mut self.coverage);
    }

    /// Adds an epic, or merges it with the entry of the same number.
    fn add_epic(&mut self, epic_number: EpicId, epic_title: &str, is_listed: bool, body: &EpicSectionBody<'_, '_>) {
        let mut epic = Epic {
            number: epic_number.clone(),
            title: epic_title.to_string(),
            path: body.path.to_string(),
            line: body.heading_line(),
            goal: body.read_goal(),
            requirements: body.requirement_ids(),
            only_listed: is_listed,
            stories: Vec::new(),
        };
        let Some(known_epic) = self.epics.get_mut(&epic_number) else {
            self.epics.insert(epic_number, epic);
            return;
        };
        match (known_epic.only_listed, is_listed) {
            // The list of epics knows which requirements an epic covers, the epic itself knows the rest.
            (true, false) => {
                epic.requirements = merge_ids(epic.requirements, &known_epic.requirements);
                if epic.goal.is_empty() {
                    epic.goal = std::mem::take(&mut known_epic.goal);
                }
                *known_epic = epic;
            }
            // The list may also come after the epics; then it only adds requirements.
            (false, true) => {
                known_epic.requirements = merge_ids(std::mem::take(&mut known_epic.requirements), &epic.requirements)
            }
            // Plans repeat the heading of an epic, for example above a table of its stories.
            _ if is_same_title(&known_epic.title, epic_title) => {
                known_epic.requirements = merge_ids(std::mem::take(&mut known_epic.requirements), &epic.requirements)
            }
            _ => {
                let message =
                    format!("duplicate epic {epic_number} (first at {}:{})", known_epic.path, known_epic.line);
                let problem = FileProblem::warning("epic-twice", body.path, message).at_line(body.heading_line());
                self.problems
                    .push(problem.with_reason("The stories of both are merged.").with_advice("renumber one of them"));
            }
        }
    }

    /// Adds a story to the epic that its number names.
    fn add_story(
        &mut self,
        story_number: StoryNumber,
        story_title: &str,
        current_epic: Option<&EpicId>,
        body: &EpicSectionBody<'_, '_>,
    ) {
        let epic_stories = self.stories.entry(story_number.epic.clone()).or_default();
        // BMAD's planner goes by the number, so the story is kept and the mismatch is reported.
        if let Some(current_epic) = current_epic.filter(|current_epic| **current_epic != story_number.epic) {
            let message = format!("story {story_number} is listed under epic {current_epic}");
            let problem = FileProblem::warning("story-elsewhere", body.path, message).at_line(body.heading_line());
            let reason = format!("By its number it belongs to epic {}.", story_number.epic);
            self.problems.push(problem.with_reason(reason).with_advice("move it or renumber it"));
        }
        let title_slug = slugify(story_title);
        if title_slug.is_empty() {
            let message = format!("story {story_number} has no title");
            let problem = FileProblem::warning("story-no-title", body.path, message).at_line(body.heading_line());
            self.problems.push(
                problem.with_reason("Its key and its file are named after the title.").with_advice("add a title"),
            );
        }
        epic_stories.push(EpicStory {
            key: StoryKey::from_number(story_number.clone(), title_slug),
            number: story_number,
            title: story_title.to_string(),
            path: body.path.to_string(),
            line: body.heading_line(),
            criteria: body.read_criteria(),
            requirements: body.requirement_ids(),
            depends_on: body.read_dependencies(),
            complexity: body.find_field(&COMPLEXITY_LABELS).map(|value| truncate_chars(value, MAX_COMPLEXITY_CHARS)),
        });
    }

    fn report_malformed_heading(&mut self, body: &EpicSectionBody<'_, '_>) {
        let heading_text = body.markdown.lines[body.heading_index].text.trim();
        let problem = FileProblem::warning(
            "epics-heading-unread",
            body.path,
            format!("heading {heading_text:?} is neither an epic nor a story"),
        );
        let advice = "write `## Epic 1: Title` or `### Story 1.2: Title`";
        self.problems.push(
            problem.at_line(body.heading_line()).with_reason("Everything under it is ignored.").with_advice(advice),
        );
    }

    /// Assembles the epics, and reports duplicates, gaps and epics without a heading.
    fn into_epics(mut self) -> EpicsDocument {
        for (epic_number, stories) in &mut self.stories {
            report_duplicates(stories, &mut self.problems);
            report_number_gaps(stories, &mut self.problems);
            let Some(first_story) = stories.first().filter(|_| !self.epics.contains_key(epic_number)) else {
                continue;
            };
            let message = format!("story {} belongs to epic {epic_number}, which has no heading", first_story.number);
            let problem = FileProblem::warning("epic-missing", &first_story.path, message).at_line(first_story.line);
            // Stories without a heading of their epic still count: the missing epic gets an entry without a title.
            self.problems.push(problem.with_advice(format!("add `## Epic {epic_number}: Title` above it")));
            let (epics_path, line) = (first_story.path.clone(), first_story.line);
            let untitled = Epic { path: epics_path, line, ..Epic::untitled(epic_number.clone()) };
            self.epics.insert(epic_number.clone(), untitled);
        }
        // Missing epics are only known once the epics without a heading have been added.
        self.report_missing_epics();
        for (epic_number, epic) in &mut self.epics {
            epic.stories = self.stories.remove(epic_number).unwrap_or_default();
            if epic.stories.is_empty() {
                let message = format!("epic {epic_number} has no stories");
                let problem = FileProblem::warning(rules::EPIC_EMPTY, &epic.path, message).at_line(epic.line);
                self.problems.push(problem.with_advice("add `### Story …` under it"));
            }
        }
        let EpicsReader { epics, requirements, coverage, problems, .. } = self;
        EpicsDocument { epics: epics.into_values().collect(), requirements, coverage, problems }
    }

    fn report_missing_epics(&mut self) {
        let mut previous_number: u32 = 0;
        // Only plain numbers have gaps: an inserted epic 5.5 follows epic 5.
        let numbered_epics = self.epics.iter().filter_map(|(epic, entry)| Some((epic.as_number()?, entry)));
        for (epic_number, epic) in numbered_epics {
            if epic_number > previous_number.saturating_add(1) {
                let message =
                    format!("gap in the epic numbers: epic {previous_number} is followed by epic {epic_number}");
                let message =
                    if previous_number == 0 { format!("the first epic is number {epic_number}") } else { message };
                let problem = FileProblem::warning(rules::EPIC_NUMBER_MISSING, &epic.path, message).at_line(epic.line);
                self.problems.push(problem.with_advice("check whether an epic is missing"));
            }
            previous_number = epic_number;
        }
    }
}

impl Epic {
    fn untitled(epic_number: EpicId) -> Epic {
        Epic {
            number: epic_number,
            title: String::new(),
            path: String::new(),
            line: 1,
            goal: String::new(),
            requirements: Vec::new(),
            only_listed: false,
            stories: Vec::new(),
        }
    }
}

/// Reports a number that occurs twice. With the same title it is one story, as BMAD's planner has it, and the copy is left
/// out.
fn report_duplicates(stories: &mut Vec<EpicStory>, problems: &mut Vec<FileProblem>) {
    let mut first_places: BTreeMap<StoryNumber, (String, usize, String)> = BTreeMap::new();
    stories.retain(|story| {
        let Some((first_path, first_line, first_slug)) = first_places.get(&story.number) else {
            let first_place = (story.path.clone(), story.line, story.key.slug_text().to_string());
            first_places.insert(story.number.clone(), first_place);
            return true;
        };
        if first_slug == story.key.slug_text() {
            return false;
        }
        let message = format!("duplicate story {} (first at {first_path}:{first_line})", story.number);
        let problem = FileProblem::warning("story-twice", &story.path, message).at_line(story.line);
        problems.push(
            problem
                .with_reason("The number alone does not identify either of them.")
                .with_advice("renumber one of them"),
        );
        true
    });
}

/// Reports numbers that are missing within an epic.
fn report_number_gaps(stories: &[EpicStory], problems: &mut Vec<FileProblem>) {
    // Stories may stand in any order; gaps are a matter of their numbers.
    let mut sorted_stories: Vec<&EpicStory> = stories.iter().collect();
    sorted_stories.sort_by_key(|story| &story.number);
    let mut previous_number: u32 = 0;
    for story in sorted_stories {
        // Split stories such as `2.6a` and `2.6b` share a number, which is no gap.
        let story_position = story.number.number;
        if story_position > previous_number.saturating_add(1) {
            let message = match previous_number {
                0 => format!("the first story of epic {} is story {}", story.number.epic, story.number),
                _ => format!(
                    "gap in the story numbers: story {}.{previous_number} is followed by story {}",
                    story.number.epic, story.number
                ),
            };
            let problem = FileProblem::warning(rules::STORY_NUMBER_MISSING, &story.path, message).at_line(story.line);
            problems.push(problem.with_advice("check whether a story is missing"));
        }
        previous_number = story_position;
    }
}

/// Whether two headings name the same epic: one may be shorter, or have none of the title.
fn is_same_title(first_title: &str, second_title: &str) -> bool {
    let (first_slug, second_slug) = (slugify(first_title), slugify(second_title));
    first_slug.starts_with(&second_slug) || second_slug.starts_with(&first_slug)
}

fn merge_ids(mut own_ids: Vec<String>, other_ids: &[String]) -> Vec<String> {
    let new_ids: Vec<String> =
        other_ids.iter().filter(|requirement_id| !own_ids.contains(requirement_id)).cloned().collect();
    own_ids.extend(new_ids);
    own_ids
}

const DEPENDENCY_LABELS: [&str; 5] = ["dependencies", "depends on", "prerequisites", "blocked by", "depends_on"];
const COMPLEXITY_LABELS: [&str; 7] =
    ["complexity", "estimate", "estimated effort", "effort", "story points", "points", "size"];
const MAX_COMPLEXITY_CHARS: usize = 40;

/// The text below a heading.
struct EpicSectionBody<'p, 't> {
    path: &'p str,
    markdown: &'p MarkdownPage<'t>,
    heading_index: usize,
    line_range: Range<usize>,
}

impl<'t> EpicSectionBody<'_, 't> {
    fn heading_line(&self) -> usize {
        self.markdown.lines[self.heading_index].number
    }

    fn body_lines(&self) -> &[MarkdownLine<'t>] {
        self.markdown.lines.get(self.line_range.clone()).unwrap_or_default()
    }

    /// The text before the next heading, except for the line of covered requirements.
    fn read_goal(&self) -> String {
        let lines = self.body_lines().iter().take_while(|line| line.heading().is_none());
        let goal_lines =
            lines.filter(|line| line.is_prose() && split_ids_label(line.text).is_none()).map(|line| line.text.trim());
        let goal_text = goal_lines.collect::<Vec<_>>().join("\n");
        // A rule `---` between sections is no part of the goal.
        let goal_text = goal_text.trim().trim_end_matches('-').trim();
        let labelled_goal = goal_text
            .split_once(':')
            .filter(|(label, _)| matches!(normalize_title(label).as_str(), "goal" | "epic goal"));
        labelled_goal.map_or(goal_text, |(_, after_label)| after_label.trim_start_matches('*').trim()).to_string()
    }

    fn requirement_ids(&self) -> Vec<String> {
        let mut found_ids = Vec::new();
        let mut seen_ids = std::collections::BTreeSet::new();
        let heading_line_itself = self.markdown.lines.get(self.heading_index);
        for line in heading_line_itself.into_iter().chain(self.body_lines()).filter(|line| line.is_prose()) {
            found_ids.extend(
                find_requirement_ids(line.text)
                    .into_iter()
                    .filter(|requirement_id| seen_ids.insert(requirement_id.clone())),
            );
        }
        found_ids
    }

    /// The text behind one of these labels: `**Dependencies:** Story 1.1`.
    fn find_field(&self, labels: &[&str]) -> Option<&'t str> {
        let fields = self.body_lines().iter().filter(|line| line.is_prose()).filter_map(|line| {
            let field_text = line.text.trim_start_matches(['-', '*', '+', '>', ' ', '\t']);
            let (label, value) = field_text.split_once(':')?;
            let value = value.trim_matches(['*', '_', ' ', '\t']);
            (labels.contains(&normalize_title(label).as_str()) && !value.is_empty()).then_some(value)
        });
        fields.into_iter().next()
    }

    /// The numbers of stories behind the label of dependencies.
    fn read_dependencies(&self) -> Vec<StoryNumber> {
        let field_text = self.find_field(&DEPENDENCY_LABELS).unwrap_or_default();
        let words = field_text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '.'));
        words.filter_map(|word| StoryNumber::parse(&word.trim_matches('.').to_ascii_lowercase())).collect()
    }

    /// The acceptance criteria below their label or heading.
    fn read_criteria(&self) -> Vec<String> {
        let own_lines = self.body_lines();
        let is_start = |line: &MarkdownLine<'_>| {
            story::is_criteria_label(line) || line.heading().is_some_and(|(_, title)| story::is_criteria_title(title))
        };
        // Without a label the text of a story is a description, not a list of criteria.
        let Some(label_index) = own_lines.iter().position(is_start) else { return Vec::new() };
        let following_lines = &own_lines[label_index + 1..];
        // Another label in bold ends the criteria: `**Technical Notes:**`. Steps of Given/When/Then are bold, too, but have
        // no colon.
        let ends_criteria = |line: &MarkdownLine<'_>| {
            line.heading().is_some_and(|(level, _)| level <= 4)
                || line.is_prose() && line.text.starts_with("**") && line.text.trim_end().ends_with(":**")
                || line.is_prose() && line.text.trim_end() == "---"
        };
        let criteria_end = following_lines.iter().position(ends_criteria).unwrap_or(following_lines.len());
        story::criteria_in_lines(&following_lines[..criteria_end]).into_iter().map(|criterion| criterion.text).collect()
    }
}

/// The text behind a label such as `**FRs covered:**`.
fn split_ids_label(line_text: &str) -> Option<&str> {
    let (label, after_label) = line_text.split_once(':')?;
    let label = normalize_title(label);
    (label.starts_with("fr") || label.starts_with("requirements")).then_some(after_label)
}

/// The line ranges of `## Epic List`, where epics are only named.
fn find_epic_lists(markdown: &MarkdownPage<'_>) -> Vec<Range<usize>> {
    let sections = markdown.sections().into_iter();
    sections.filter(|section| normalize_title(section.title) == "epic list").map(|section| section.line_range).collect()
}

#[cfg(test)]
mod tests;
