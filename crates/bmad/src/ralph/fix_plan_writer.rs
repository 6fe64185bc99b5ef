//! Writes a project's stories into a fix plan: a section for each epic, an item with a box for each story.
//!
//! An existing plan is edited, not replaced: ticks, items that are no stories, and all other lines stay as they are. What Tribunal
//! writes itself is the line of a story, with its mark ([`super::fix_plan_marks`]), and the line below it. Writing the same
//! stories twice gives the same bytes. Where the stories and the plan come from is the caller's business.

use std::{collections::BTreeSet, ops::Range};

use tribunal_json::{Serialize, schemars};

use super::{
    fix_plan_marks::{MarkedText, StoryMark, split_mark, story_plan_name},
    fix_plan_stories::{DETAIL_LABELS, FixPlanEpic, FixPlanStory},
};
use crate::{
    board::BoardEntryState,
    keys::slugify,
    markdown::{MarkdownLine, MarkdownLineKind, MarkdownPage, apply_edits},
    problem::FileProblem,
    states::ParkedState,
    story::{count_indent, parse_checkbox, title_number},
};

/// What a new plan begins with.
const NEW_PLAN_HEAD: &str = "# Fix plan\n\nA ticked box means that the story is implemented and tested. `tribunal loop plan` \
                             adds new stories and keeps everything else.\n";
/// The level of the headings of epics in a plan that has none yet.
const EPIC_LEVEL: usize = 2;

/// A plan after it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFixPlan {
    pub text: String,
    pub changes: FixPlanChanges,
}

/// What is different from the plan before. Stories have the names that the plan gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FixPlanChanges {
    /// Stories that were not in the plan.
    pub new: Vec<String>,
    pub changed: Vec<ChangedPlanStory>,
    /// Stories that the project does not have any more. Their items are kept.
    pub vanished: Vec<String>,
    /// Stories on which the board says that no work is done.
    pub parked: Vec<ParkedPlanStory>,
    /// How many stories are ticked.
    pub done: u32,
    /// How many stories are not ticked.
    pub open: u32,
}

/// A story whose text has changed since the plan was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ChangedPlanStory {
    pub story: String,
    pub title_changed: bool,
    pub criteria_changed: bool,
    /// Whether its box is ticked; the tick may be about the old text.
    pub done: bool,
}

/// A story that is blocked, deferred or dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ParkedPlanStory {
    pub story: String,
    pub state: ParkedState,
    /// Whether the plan has an item for it from before; if not, it gets none.
    pub in_plan: bool,
}

impl ChangedPlanStory {
    /// Says which parts have changed.
    pub fn describe_parts(&self) -> &'static str {
        match (self.title_changed, self.criteria_changed) {
            (true, true) => "the title and the acceptance criteria",
            (true, false) => "the title",
            (false, _) => "the acceptance criteria",
        }
    }
}

/// Writes stories into a plan, whose text is empty if there is none yet. The path only names the file in the problem.
pub fn write_fix_plan(
    old_text: &str,
    epics: &[FixPlanEpic],
    plan_path: &str,
) -> Result<WrittenFixPlan, Box<FileProblem>> {
    let base_text = match old_text {
        blank_text if blank_text.trim().is_empty() => NEW_PLAN_HEAD.to_string(),
        complete_text if complete_text.ends_with('\n') => complete_text.to_string(),
        cut_text => format!("{cut_text}{}", MarkdownPage::parse(cut_text).line_ending()),
    };
    let mut written = compose_plan(&base_text, epics);
    // Items inside an open code block or comment would not be found the next time, and be written again and again.
    if compose_plan(&written.text, epics).text != written.text {
        let problem = FileProblem::error("fix-plan-open-block", plan_path, "stories cannot be added to this plan");
        return Err(Box::new(
            problem
                .with_reason("They would stand inside a code block or a comment, where no loop finds them.")
                .with_advice("close all code blocks and comments in the file"),
        ));
    }
    if written.text == base_text && !old_text.trim().is_empty() {
        written.text = old_text.to_string();
    }
    Ok(written)
}

/// Finds the stories whose boxes were ticked and have not been counted on the board, by their names in the plan.
pub fn find_new_ticks(plan_text: &str) -> BTreeSet<String> {
    let items = find_story_items(&MarkdownPage::parse(plan_text));
    let marked_names = items.iter().filter(|item| item.mark.is_some()).map(|item| item.story.as_str());
    // An agent may have written an item twice; the story is done when all of them are ticked.
    let is_new_tick = |name: &&str| {
        let mut own_items = items.iter().filter(|item| item.mark.is_some() && item.story == *name);
        own_items.all(|item| item.is_done && !item.mark.as_ref().is_some_and(|mark| mark.is_counted))
    };
    marked_names.filter(is_new_tick).map(String::from).collect()
}

/// An item of the old plan that stands for a story.
#[derive(Clone, Debug)]
struct StoryItem {
    story: String,
    line_index: usize,
    indent: usize,
    is_done: bool,
    box_range: Range<usize>,
    text: String,
    mark: Option<StoryMark>,
    /// The index of the heading above the item among all headings.
    heading: Option<usize>,
}

/// Finds the items of stories: those with a mark, and those that begin like `Story 1.2:`.
fn find_story_items(page: &MarkdownPage<'_>) -> Vec<StoryItem> {
    let mut items = Vec::new();
    let mut heading_count: usize = 0;
    for (line_index, line) in page.lines.iter().enumerate() {
        heading_count += usize::from(line.heading().is_some());
        let Some(checkbox_item) = parse_checkbox(line) else { continue };
        let MarkedText { text, mark } = split_mark(checkbox_item.text);
        let Some(story) = mark.as_ref().map(|mark| mark.story.clone()).or_else(|| find_story_name(&text)) else {
            continue;
        };
        items.push(StoryItem {
            story,
            line_index,
            indent: checkbox_item.indent,
            is_done: checkbox_item.done,
            box_range: checkbox_item.box_range.0..checkbox_item.box_range.1,
            text,
            mark,
            heading: heading_count.checked_sub(1),
        });
    }
    items
}

/// The name of the story in an item without a mark, as other tools write it. Other text about a story is none.
fn find_story_name(item_text: &str) -> Option<String> {
    let (label, _) = item_text.split_once(':')?;
    let label = label.trim_matches(['*', '_', ' ']);
    let is_label = label.split_whitespace().count() == 2;
    title_number(label).filter(|_| is_label).map(|number| number.to_string().replace('.', "-"))
}

/// A heading with the lines below it.
struct PlanHeading<'t> {
    title: &'t str,
    level: usize,
    line_index: usize,
    /// The lines up to the next heading.
    own_lines: Range<usize>,
    /// The line behind everything that is below the heading, deeper headings included.
    end_index: usize,
}

fn list_headings<'t>(page: &MarkdownPage<'t>) -> Vec<PlanHeading<'t>> {
    let sections = page.sections();
    let next_indexes = sections.iter().skip(1).map(|section| section.heading_index).chain([page.lines.len()]);
    let headings = sections.iter().zip(next_indexes).map(|(section, next_index)| PlanHeading {
        title: section.title,
        level: section.level,
        line_index: section.heading_index,
        own_lines: section.heading_index + 1..next_index,
        end_index: section.line_range.end,
    });
    headings.collect()
}

fn compose_plan(base_text: &str, epics: &[FixPlanEpic]) -> WrittenFixPlan {
    let page = MarkdownPage::parse(base_text);
    let mut composer = PlanComposer {
        items: find_story_items(&page),
        headings: list_headings(&page),
        line_ending: page.line_ending(),
        page,
        edits: Vec::new(),
        new_sections: Vec::new(),
        changes: FixPlanChanges::default(),
    };
    composer.report_vanished(epics);
    for position in 0..epics.len() {
        composer.place_epic(epics, position);
    }
    composer.insert_sections();
    let PlanComposer { mut edits, changes, .. } = composer;
    edits.sort_by_key(|edit| (edit.range.start, edit.rank));
    let edits: Vec<(Range<usize>, String)> = edits.into_iter().map(|edit| (edit.range, edit.text)).collect();
    WrittenFixPlan { text: apply_edits(base_text, &edits), changes }
}

/// What an edit does. Edits at the same place are applied in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PlanEditRank {
    /// It adds the line below an item.
    Detail,
    NewItem,
    Replacement,
    NewSection,
}

struct PlanEdit {
    range: Range<usize>,
    rank: PlanEditRank,
    text: String,
}

/// A section for an epic that the plan has no heading for.
struct NewPlanSection {
    /// The line before which it is written.
    line_index: usize,
    text: String,
}

/// The edits of a plan while they are collected.
struct PlanComposer<'t> {
    page: MarkdownPage<'t>,
    items: Vec<StoryItem>,
    headings: Vec<PlanHeading<'t>>,
    line_ending: &'static str,
    edits: Vec<PlanEdit>,
    new_sections: Vec<NewPlanSection>,
    changes: FixPlanChanges,
}

impl PlanComposer<'_> {
    /// Reports items with a mark whose stories are gone. Their lines stay: they may have notes of the user.
    fn report_vanished(&mut self, epics: &[FixPlanEpic]) {
        let known_names: BTreeSet<String> =
            epics.iter().flat_map(|epic| &epic.stories).map(|story| story_plan_name(&story.key)).collect();
        let marked_items = self.items.iter().filter(|item| item.mark.is_some());
        let vanished_names: BTreeSet<&String> =
            marked_items.map(|item| &item.story).filter(|name| !known_names.contains(*name)).collect();
        self.changes.vanished = vanished_names.into_iter().cloned().collect();
    }

    /// Updates the items of an epic's stories and adds those that are missing.
    fn place_epic(&mut self, epics: &[FixPlanEpic], position: usize) {
        let epic = &epics[position];
        let heading = self.find_heading(epic);
        // The items for which the section has no neighbour yet.
        let mut first_items = String::new();
        for (story_index, story) in epic.stories.iter().enumerate() {
            let name = story_plan_name(&story.key);
            let known_item = self.find_item(&name).cloned();
            if let Some(BoardEntryState::Parked(state)) = story.state {
                let in_plan = known_item.is_some();
                self.changes.parked.push(ParkedPlanStory { story: name.clone(), state, in_plan });
                if !in_plan {
                    continue;
                }
            }
            let Some(known_item) = known_item else {
                self.changes.new.push(name);
                self.count_story(story.is_done());
                let item_text = self.render_item(story);
                match heading.and_then(|heading| self.find_neighbour_offset(&epic.stories, story_index, heading)) {
                    Some(offset) => self.push_edit(offset..offset, PlanEditRank::NewItem, item_text),
                    None => first_items.push_str(&item_text),
                }
                continue;
            };
            self.update_item(&known_item, story);
            self.update_detail(&known_item, story);
        }
        match heading {
            _ if first_items.is_empty() => {}
            Some(heading) => self.append_to_section(heading, &first_items),
            None => self.add_section(epics, position, &first_items),
        }
    }

    fn find_heading(&self, epic: &FixPlanEpic) -> Option<usize> {
        self.headings.iter().position(|heading| epic.has_heading(heading.title))
    }

    /// The item of a story. One with a mark wins over a line that only reads like one.
    fn find_item(&self, story_name: &str) -> Option<&StoryItem> {
        let own_items = || self.items.iter().filter(|item| item.story == story_name);
        own_items().find(|item| item.mark.is_some()).or_else(|| own_items().next())
    }

    fn count_story(&mut self, is_done: bool) {
        if is_done {
            self.changes.done += 1;
        } else {
            self.changes.open += 1;
        }
    }

    fn push_edit(&mut self, range: Range<usize>, rank: PlanEditRank, text: String) {
        self.edits.push(PlanEdit { range, rank, text });
    }

    /// The offset of a line's first byte, or the end of the text behind the last line.
    fn line_offset(&self, line_index: usize) -> usize {
        self.page.lines.get(line_index).map_or(self.page.text.len(), |line| line.start_offset)
    }

    fn is_blank_line(&self, line_index: usize) -> bool {
        self.page.lines.get(line_index).is_none_or(MarkdownLine::is_blank)
    }

    fn render_item(&self, story: &FixPlanStory) -> String {
        let is_done = story.is_done();
        let (box_text, ending) = (if is_done { "x" } else { " " }, self.line_ending);
        let mut item_text =
            format!("- [{box_text}] {} {}{ending}", story.item_title(), story.to_mark(is_done).to_comment());
        if let Some(detail_line) = story.detail_line() {
            item_text.push_str(&format!("  {detail_line}{ending}"));
        }
        item_text
    }

    /// Where a new story goes beside the stories of its epic that the section has: behind the last one before it, else before
    /// the first one after it.
    fn find_neighbour_offset(&self, stories: &[FixPlanStory], story_index: usize, heading: usize) -> Option<usize> {
        let item_of = |story: &FixPlanStory| {
            self.find_item(&story_plan_name(&story.key)).filter(|item| item.heading == Some(heading))
        };
        let earlier_item = stories[..story_index].iter().rev().find_map(item_of);
        let later_item = || stories[story_index + 1..].iter().find_map(item_of);
        earlier_item
            .map(|item| self.line_offset(self.item_end(item)))
            .or_else(|| later_item().map(|item| self.line_offset(item.line_index)))
    }

    /// The line behind an item and everything that is indented below it.
    fn item_end(&self, item: &StoryItem) -> usize {
        let mut end_index = item.line_index + 1;
        for (line_index, line) in self.page.lines.iter().enumerate().skip(end_index) {
            if line.is_blank() {
                continue;
            }
            if line.kind != MarkdownLineKind::Code && count_indent(line.text) <= item.indent {
                break;
            }
            end_index = line_index + 1;
        }
        end_index
    }

    /// Brings the line of a story up to date. A tick is never taken back, and words of others stay as long as the title does.
    fn update_item(&mut self, item: &StoryItem, story: &FixPlanStory) {
        let is_done = item.is_done || story.is_done();
        let (new_title, new_mark) = (story.item_title(), story.to_mark(is_done));
        let title_changed = match &item.mark {
            Some(mark) => mark.title_fingerprint != new_mark.title_fingerprint,
            None => !slugify(&item.text).starts_with(&slugify(&new_title)),
        };
        let criteria_changed =
            item.mark.as_ref().is_some_and(|mark| mark.criteria_fingerprint != new_mark.criteria_fingerprint);
        self.count_story(is_done);
        if title_changed || criteria_changed {
            let story = new_mark.story.clone();
            self.changes.changed.push(ChangedPlanStory { story, title_changed, criteria_changed, done: is_done });
        }
        if !title_changed && item.mark.as_ref() == Some(&new_mark) && item.is_done == is_done {
            return;
        }
        let line = self.page.lines[item.line_index];
        let text_before = |offset: usize| &line.text[..offset - line.start_offset];
        let line_start = match is_done && !item.is_done {
            true => format!("{}x", text_before(item.box_range.start)),
            false => text_before(item.box_range.end).to_string(),
        };
        let item_text = if title_changed { &new_title } else { &item.text };
        let new_line = format!("{line_start}] {item_text} {}", new_mark.to_comment());
        let line_range = line.start_offset..line.start_offset + line.text.len();
        self.push_edit(line_range, PlanEditRank::Replacement, new_line);
    }

    /// Brings the line below the item up to date. Only a line that begins with one of our labels is ours.
    fn update_detail(&mut self, item: &StoryItem, story: &FixPlanStory) {
        let item_line = self.page.lines[item.line_index].text;
        let indent_text = &item_line[..item_line.len() - item_line.trim_start_matches([' ', '\t']).len()];
        let wanted_line = story.detail_line().map(|detail_line| format!("{indent_text}  {detail_line}"));
        let is_own_line = |line: &MarkdownLine<'_>| {
            let text = line.text.trim_start();
            line.is_prose() && DETAIL_LABELS.iter().any(|label| text.starts_with(label))
        };
        let next_index = item.line_index + 1;
        let own_line = self.page.lines.get(next_index).copied().filter(is_own_line);
        match (own_line, wanted_line) {
            (Some(line), Some(wanted_line)) if line.text != wanted_line => {
                let line_range = line.start_offset..line.start_offset + line.text.len();
                self.push_edit(line_range, PlanEditRank::Replacement, wanted_line);
            }
            (Some(line), None) => {
                let line_range = line.start_offset..self.line_offset(next_index + 1);
                self.push_edit(line_range, PlanEditRank::Replacement, String::new());
            }
            (None, Some(wanted_line)) => {
                let offset = self.line_offset(next_index);
                self.push_edit(offset..offset, PlanEditRank::Detail, format!("{wanted_line}{}", self.line_ending));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    /// Adds items to a section that has none of this epic's stories.
    fn append_to_section(&mut self, heading: usize, items_text: &str) {
        let own_lines = self.headings[heading].own_lines.clone();
        let last_line = own_lines.clone().rev().find(|line_index| !self.is_blank_line(*line_index));
        let end_index = last_line.map_or(own_lines.start, |line_index| line_index + 1);
        // Items follow a list directly; other text is kept apart by a blank line.
        let is_list_line =
            |line_text: &str| [" ", "\t", "- ", "* ", "+ "].iter().any(|start| line_text.starts_with(start));
        let follows_list = last_line.is_some_and(|line_index| is_list_line(self.page.lines[line_index].text));
        let text_before = if follows_list { "" } else { self.line_ending };
        let text_behind = if self.is_blank_line(end_index) { "" } else { self.line_ending };
        let offset = self.line_offset(end_index);
        self.push_edit(offset..offset, PlanEditRank::NewItem, format!("{text_before}{items_text}{text_behind}"));
    }

    /// Adds a section behind that of the epic before it, else before that of the epic after it, else at the end.
    fn add_section(&mut self, epics: &[FixPlanEpic], position: usize, items_text: &str) {
        let find_heading = |epic: &FixPlanEpic| self.find_heading(epic);
        let earlier_heading = epics[..position].iter().rev().find_map(find_heading);
        let later_heading = epics[position + 1..].iter().find_map(find_heading);
        let (line_index, level) = match (earlier_heading, later_heading) {
            (Some(heading), _) => (self.headings[heading].end_index, self.headings[heading].level),
            (None, Some(heading)) => (self.headings[heading].line_index, self.headings[heading].level),
            (None, None) => (self.page.lines.len(), EPIC_LEVEL),
        };
        let title = epics[position].section_title();
        let text = format!("{} {title}{1}{1}{items_text}", "#".repeat(level), self.line_ending);
        self.new_sections.push(NewPlanSection { line_index, text });
    }

    /// Turns the new sections into edits, with one blank line around each.
    fn insert_sections(&mut self) {
        let mut new_sections = std::mem::take(&mut self.new_sections);
        new_sections.sort_by_key(|section| section.line_index);
        for group in new_sections.chunk_by(|first, second| first.line_index == second.line_index) {
            let line_index = group[0].line_index;
            let texts: Vec<&str> = group.iter().map(|section| section.text.as_str()).collect();
            let is_separated =
                line_index.checked_sub(1).is_none_or(|previous_index| self.is_blank_line(previous_index));
            let text_before = if is_separated { "" } else { self.line_ending };
            let text_behind = if line_index == self.page.lines.len() { "" } else { self.line_ending };
            let text = format!("{text_before}{}{text_behind}", texts.join(self.line_ending));
            let offset = self.line_offset(line_index);
            self.push_edit(offset..offset, PlanEditRank::NewSection, text);
        }
    }
}

#[cfg(test)]
mod tests;
