//! Epics and their stories, from one `epics.md` or from a folder of parts, and the requirements that they cover.
//!
//! Headings are read as BMAD's own planner reads them: `## Epic 1: …` up to the third level, `### Story 1.2: …` from the
//! second to the fourth, in any case, never in code. A story belongs to the epic that its number names, even if it is written
//! elsewhere. Whether the stories are on the board is not known here.

mod requirements;

use std::{collections::BTreeMap, ops::Range};

use serde::Serialize;

pub use requirements::{Coverage, Requirement, ids_in, inventory};

use crate::{
    keys::{Number, StoryKey, slug},
    page::{Line, Page, plain},
    problem::{Problem, rules},
    story,
};

/// All epics of a project, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Epics {
    pub epics: Vec<Epic>,
    /// The requirements inventory of the file: `FR1: …`, `NFR2: …`.
    pub requirements: Vec<Requirement>,
    /// Which epic covers which requirement, by the file's own map.
    pub coverage: Vec<Coverage>,
    pub problems: Vec<Problem>,
}

/// One epic of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Epic {
    pub number: u32,
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
    pub number: Number,
    pub title: String,
    pub path: String,
    pub line: usize,
    /// The key with the slug of the title. Agents of older eras wrote boards themselves, so compare the number first.
    pub key: StoryKey,
    pub criteria: Vec<String>,
    /// The requirements that it names: `FR1`, `NFR2`.
    pub requirements: Vec<String>,
}

impl Epics {
    pub fn stories(&self) -> impl Iterator<Item = &EpicStory> {
        self.epics.iter().flat_map(|epic| &epic.stories)
    }
}

/// Reads the files of the plan, in their order.
pub fn read(files: &[(&str, &str)]) -> Epics {
    let mut gathered = Gathered::default();
    for (path, text) in files {
        gathered.file(path, &Page::of(text));
    }
    gathered.whole()
}

/// A heading that means something to the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Heading<'t> {
    Epic(u32, &'t str),
    Story(Number, &'t str),
    /// The heading begins like one of ours and cannot be read.
    Suspect,
}

/// The epics while the files are read. Stories are kept apart until all files are read, since an epic may follow its stories.
#[derive(Default)]
struct Gathered {
    epics: BTreeMap<u32, Epic>,
    stories: BTreeMap<u32, Vec<EpicStory>>,
    requirements: Vec<Requirement>,
    coverage: Vec<Coverage>,
    problems: Vec<Problem>,
}

impl Gathered {
    /// Reads one file: its headings, and the text below each.
    fn file(&mut self, path: &str, page: &Page<'_>) {
        let found: Vec<(usize, Heading<'_>)> = page
            .lines
            .iter()
            .enumerate()
            .filter_map(|(index, line)| heading(line).map(|heading| (index, heading)))
            .collect();
        let listed = listed(page);
        // The text under a heading ends at the next of our headings, or at any heading of its level or above.
        let ends: BTreeMap<usize, usize> =
            page.sections().into_iter().map(|section| (section.heading, section.lines.end)).collect();
        let mut under = None;
        for (place, (index, heading)) in found.iter().enumerate() {
            let next = found.get(place + 1).map_or(page.lines.len(), |(next, _)| *next);
            let end = ends.get(index).map_or(next, |end| next.min(*end));
            let body = Body { path, page, heading: *index, lines: index + 1..end.max(index + 1) };
            match heading {
                Heading::Epic(number, title) => {
                    self.epic(*number, title, listed.iter().any(|range| range.contains(index)), &body);
                    under = Some(*number);
                }
                Heading::Story(number, title) => self.story(*number, title, under, &body),
                Heading::Suspect => self.suspect(&body),
            }
        }
        requirements::gather(path, page, &mut self.requirements, &mut self.coverage);
    }

    /// Adds an epic, or merges it with the entry of the same number.
    fn epic(&mut self, number: u32, title: &str, is_listed: bool, body: &Body<'_, '_>) {
        let mut epic = Epic {
            number,
            title: title.to_string(),
            path: body.path.to_string(),
            line: body.line(),
            goal: body.goal(),
            requirements: body.requirements(),
            only_listed: is_listed,
            stories: Vec::new(),
        };
        let Some(known) = self.epics.get_mut(&number) else {
            self.epics.insert(number, epic);
            return;
        };
        match (known.only_listed, is_listed) {
            // The list of epics knows which requirements an epic covers, the epic itself knows the rest.
            (true, false) => {
                epic.requirements = joined(epic.requirements, &known.requirements);
                if epic.goal.is_empty() {
                    epic.goal = std::mem::take(&mut known.goal);
                }
                *known = epic;
            }
            // The list may also come after the epics; then it only adds requirements.
            (false, true) => {
                known.requirements = joined(std::mem::take(&mut known.requirements), &epic.requirements)
            }
            _ => {
                let what = format!("epic {number} stands at {}:{} already", known.path, known.line);
                let problem = Problem::error("epic-twice", body.path, what).at(body.line());
                self.problems.push(
                    problem.why("its stories are taken together").todo("give one of them another number"),
                );
            }
        }
    }

    /// Adds a story to the epic that its number names.
    fn story(&mut self, number: Number, title: &str, under: Option<u32>, body: &Body<'_, '_>) {
        let stories = self.stories.entry(number.epic).or_default();
        // BMAD's planner goes by the number, so the story is kept and the mismatch is reported.
        if let Some(under) = under.filter(|under| *under != number.epic) {
            let what = format!("story {number} stands under epic {under}");
            let problem = Problem::warning("story-elsewhere", body.path, what).at(body.line());
            let why = format!("it counts for epic {}, as its number says", number.epic);
            self.problems.push(problem.why(why).todo("move it, or give it another number"));
        }
        let slug = slug(title);
        if slug.is_empty() {
            let what = format!("story {number} has no title");
            let problem = Problem::warning("story-no-title", body.path, what).at(body.line());
            self.problems
                .push(problem.why("its key and its file are named after the title").todo("write one"));
        }
        stories.push(EpicStory {
            number,
            title: title.to_string(),
            path: body.path.to_string(),
            line: body.line(),
            key: StoryKey { epic: number.epic, number: number.number, letter: number.letter, slug },
            criteria: body.criteria(),
            requirements: body.requirements(),
        });
    }

    fn suspect(&mut self, body: &Body<'_, '_>) {
        let text = body.page.lines[body.heading].text.trim();
        let problem = Problem::warning(
            "epics-heading-unread",
            body.path,
            format!("{text:?} names no epic and no story"),
        );
        let todo = "write `## Epic 1: Title` or `### Story 1.2: Title`";
        self.problems.push(problem.at(body.line()).why("what stands under it is overlooked").todo(todo));
    }

    /// Assembles the epics, and reports duplicates, gaps and epics without a heading.
    fn whole(mut self) -> Epics {
        for (number, stories) in &mut self.stories {
            twice(stories, &mut self.problems);
            gaps(stories, &mut self.problems);
            let Some(first) = stories.first().filter(|_| !self.epics.contains_key(number)) else { continue };
            let what = format!("story {} belongs to epic {number}, which has no heading", first.number);
            let problem = Problem::error("epic-missing", &first.path, what).at(first.line);
            // Stories without a heading of their epic still count: the missing epic gets an entry without a title.
            self.problems.push(problem.todo(format!("write `## Epic {number}: Title` above it")));
            let (path, line) = (first.path.clone(), first.line);
            self.epics.insert(*number, Epic { path, line, ..Epic::nameless(*number) });
        }
        // Missing epics are only known once the epics without a heading have been added.
        self.missing_epics();
        for (number, epic) in &mut self.epics {
            epic.stories = self.stories.remove(number).unwrap_or_default();
            if epic.stories.is_empty() {
                let what = format!("epic {number} has no stories");
                let problem = Problem::warning(rules::EPIC_EMPTY, &epic.path, what).at(epic.line);
                self.problems.push(problem.todo("write `### Story …` under it"));
            }
        }
        let Gathered { epics, requirements, coverage, problems, .. } = self;
        Epics { epics: epics.into_values().collect(), requirements, coverage, problems }
    }

    fn missing_epics(&mut self) {
        let mut before: u32 = 0;
        for (number, epic) in &self.epics {
            if *number > before.saturating_add(1) {
                let what = format!("after epic {before} comes epic {number}");
                let what = if before == 0 { format!("the first epic is {number}") } else { what };
                let problem = Problem::warning(rules::EPIC_NUMBER_MISSING, &epic.path, what).at(epic.line);
                self.problems.push(problem.todo("see whether one was lost"));
            }
            before = *number;
        }
    }
}

impl Epic {
    fn nameless(number: u32) -> Epic {
        Epic {
            number,
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
fn twice(stories: &mut Vec<EpicStory>, problems: &mut Vec<Problem>) {
    let mut first: BTreeMap<Number, (String, usize, String)> = BTreeMap::new();
    stories.retain(|story| {
        let Some((path, line, slug)) = first.get(&story.number) else {
            first.insert(story.number, (story.path.clone(), story.line, story.key.slug.clone()));
            return true;
        };
        let what = format!("story {} stands at {path}:{line} already", story.number);
        let problem = Problem::error("story-twice", &story.path, what).at(story.line);
        problems.push(problem.why("two stories cannot share a key").todo("give one of them another number"));
        *slug != story.key.slug
    });
}

/// Reports numbers that are missing within an epic.
fn gaps(stories: &[EpicStory], problems: &mut Vec<Problem>) {
    // Stories may stand in any order; gaps are a matter of their numbers.
    let mut sorted: Vec<&EpicStory> = stories.iter().collect();
    sorted.sort_by_key(|story| story.number);
    let mut before: u32 = 0;
    for story in sorted {
        // Split stories such as `2.6a` and `2.6b` share a number, which is no gap.
        let number = story.number.number;
        if number > before.saturating_add(1) {
            let what = match before {
                0 => format!("the first story of epic {} is {}", story.number.epic, story.number),
                _ => format!("after story {}.{before} comes {}", story.number.epic, story.number),
            };
            let problem = Problem::warning(rules::STORY_NUMBER_MISSING, &story.path, what).at(story.line);
            problems.push(problem.todo("see whether one was lost"));
        }
        before = number;
    }
}

fn joined(mut own: Vec<String>, others: &[String]) -> Vec<String> {
    let new: Vec<String> = others.iter().filter(|id| !own.contains(id)).cloned().collect();
    own.extend(new);
    own
}

/// The text below a heading.
struct Body<'p, 't> {
    path: &'p str,
    page: &'p Page<'t>,
    heading: usize,
    lines: Range<usize>,
}

impl<'t> Body<'_, 't> {
    fn line(&self) -> usize {
        self.page.lines[self.heading].number
    }

    fn lines(&self) -> &[Line<'t>] {
        self.page.lines.get(self.lines.clone()).unwrap_or_default()
    }

    /// The text before the next heading, except for the line of covered requirements.
    fn goal(&self) -> String {
        let lines = self.lines().iter().take_while(|line| line.heading().is_none());
        let said = lines
            .filter(|line| line.is_prose() && ids_label(line.text).is_none())
            .map(|line| line.text.trim());
        let goal = said.collect::<Vec<_>>().join("\n");
        // A rule `---` between sections is no part of the goal.
        let goal = goal.trim().trim_end_matches('-').trim();
        let bare =
            goal.split_once(':').filter(|(label, _)| matches!(plain(label).as_str(), "goal" | "epic goal"));
        bare.map_or(goal, |(_, rest)| rest.trim_start_matches('*').trim()).to_string()
    }

    fn requirements(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        let own = self.page.lines.get(self.heading);
        for line in own.into_iter().chain(self.lines()).filter(|line| line.is_prose()) {
            found.extend(ids_in(line.text).into_iter().filter(|id| seen.insert(id.clone())));
        }
        found
    }

    /// The acceptance criteria below their label or heading.
    fn criteria(&self) -> Vec<String> {
        let lines = self.lines();
        let is_start = |line: &Line<'_>| {
            story::is_label(line) || line.heading().is_some_and(|(_, title)| story::is_ours(title))
        };
        // Without a label the text of a story is a description, not a list of criteria.
        let Some(from) = lines.iter().position(is_start) else { return Vec::new() };
        let rest = &lines[from + 1..];
        // Another label in bold ends the criteria: `**Technical Notes:**`. Steps of Given/When/Then are bold, too, but have
        // no colon.
        let ends = |line: &Line<'_>| {
            line.heading().is_some_and(|(level, _)| level <= 4)
                || line.is_prose() && line.text.starts_with("**") && line.text.trim_end().ends_with(":**")
                || line.is_prose() && line.text.trim_end() == "---"
        };
        let end = rest.iter().position(ends).unwrap_or(rest.len());
        story::among(&rest[..end]).into_iter().map(|criterion| criterion.text).collect()
    }
}

/// The text behind a label such as `**FRs covered:**`.
fn ids_label(text: &str) -> Option<&str> {
    let (label, rest) = text.split_once(':')?;
    let label = plain(label);
    (label.starts_with("fr") || label.starts_with("requirements")).then_some(rest)
}

/// The line ranges of `## Epic List`, where epics are only named.
fn listed(page: &Page<'_>) -> Vec<Range<usize>> {
    let sections = page.sections().into_iter();
    sections.filter(|section| plain(section.title) == "epic list").map(|section| section.lines).collect()
}

/// Parses `## Epic 1: Title` and `### Story 1.2: Title` as BMAD's planner matches them.
fn heading<'t>(line: &Line<'t>) -> Option<Heading<'t>> {
    if !line.is_prose() {
        return None;
    }
    let text = line.text.trim_start_matches('#');
    // The planner also accepts `##Epic 5` without a space, which is no heading in Markdown.
    let level = line.text.len() - text.len();
    if !(1..=6).contains(&level) {
        return None;
    }
    let text = text.trim_start().trim_start_matches(['*', '_']);
    let word = |word: &str| {
        let rest = text
            .get(..word.len())
            .filter(|start| start.eq_ignore_ascii_case(word))
            .map(|_| &text[word.len()..])?;
        rest.starts_with([' ', '\t']).then(|| rest.trim_start())
    };
    let (found, rest, levels) = match (word("epic"), word("story")) {
        (Some(rest), _) => (epic_heading(rest), rest, 1..=3),
        // Deeper headings are parts of a story, and the first level is the document's title.
        (_, Some(rest)) => (story_heading(rest), rest, 2..=4),
        _ => return None,
    };
    match found {
        Some(found) if levels.contains(&level) => Some(found),
        // `Epic List` and `Story points` are ordinary headings; `Epic N`, `Story 1` and `Story {{N}}.{{M}}` are mistakes.
        _ => {
            let slip = rest.starts_with(|c: char| c.is_ascii_digit() || c == '{' || c == '[');
            let slip = slip || rest.starts_with("N:") || rest.starts_with("X:") || rest.starts_with("N.");
            slip.then_some(Heading::Suspect)
        }
    }
}

fn epic_heading(rest: &str) -> Option<Heading<'_>> {
    let (number, rest) = digits(rest)?;
    (!rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
        .then(|| Heading::Epic(number, titled(rest)))
}

fn story_heading(rest: &str) -> Option<Heading<'_>> {
    let (epic, rest) = digits(rest)?;
    let (number, rest) = digits(rest.strip_prefix('.')?)?;
    let letter = rest.chars().next().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase());
    // A split story has a letter behind its number: `1.2a`.
    let rest = if letter.is_some() { &rest[1..] } else { rest };
    let number = Number { epic, number, letter };
    (!rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
        .then(|| Heading::Story(number, titled(rest)))
}

fn digits(text: &str) -> Option<(u32, &str)> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    text[..text.len() - rest.len()].parse().ok().map(|number| (number, rest))
}

fn titled(rest: &str) -> &str {
    let title = rest.trim().trim_end_matches('#').trim_end();
    let title = title.trim_start_matches([':', '-', '–', '—', '*', '_', ' ', '\t']);
    title.trim_end_matches(['*', '_', ' '])
}

#[cfg(test)]
mod tests;
