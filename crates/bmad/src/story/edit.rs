//! Changes a story's file: its status, the box of a task, the list of files, what a review leaves to do. Only the intended
//! bytes change; everything else keeps its line endings, tabs and spaces.
//!
//! Every change is read again before it is returned: if the file would not say what was intended, or anything else would
//! differ, nothing is changed and the reason is given. Doing the same twice changes nothing the second time. Whether a status
//! may follow another is decided by the board.

use super::{Dialect, FollowUp, FollowUpKind, Story, record, status, tasks};
use crate::{
    keys::StoryStatus,
    page::{Page, Section, spliced, without_comments},
    problem::rules,
    specs::SpecStatus,
    yaml,
};

/// Why a file stays as it is, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub why: String,
    pub todo: String,
}

impl Refused {
    fn new(why: impl Into<String>, todo: impl Into<String>) -> Refused {
        Refused { why: why.into(), todo: todo.into() }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.why, self.todo)
    }
}

impl std::error::Error for Refused {}

/// An item that a review leaves to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFollowUp {
    pub kind: FollowUpKind,
    /// The text on one line; line breaks become spaces.
    pub text: String,
    /// The place in the code, as `file:line`.
    pub place: Option<String>,
    /// Whether it is ticked at once, as deferred items are.
    pub done: bool,
}

type Edit = (std::ops::Range<usize>, String);

/// Sets the status in the body, in the front matter, or in both where both have one.
pub fn set_status(text: &str, to: StoryStatus) -> Result<String, Refused> {
    let page = Page::of(text);
    let front = page.front_matter().map(yaml::parse).transpose().map_err(|broken| {
        Refused::new(format!("the front matter cannot be read: {}", broken.what), "mend it and try again")
    })?;
    let mut edits: Vec<Edit> = Vec::new();
    let at = page.front.clone().map_or(0, |range| range.start);
    let in_front = front.as_ref().and_then(|front| front.get("status"));
    if let (Some(front), Some(node)) = (&front, in_front) {
        // A spec has its own names for the states, and its tools stop at a name that they do not know.
        let word = if is_spec(front) { SpecStatus::from(to).as_str() } else { to.as_str() };
        edits.extend(front_edit(text, at, node, NewStatus { status: to, word })?);
    }
    let body = status::in_body(&page);
    match body.as_slice() {
        [] if in_front.is_none() => edits.push(new_status(&page, to.as_str())),
        [] => {}
        // Two statuses that contradict each other: replacing both would hide a mistake that only the user can resolve.
        [first, others @ ..] => {
            if let Some(other) = others.iter().find(|other| other.line.status != first.line.status) {
                let why = format!(
                    "lines {} and {} both have a status, and not the same",
                    first.line.line, other.line.line
                );
                return Err(Refused::new(why, "take one of them out"));
            }
            // A status that already has the value keeps its spelling.
            for spot in body.iter().filter(|spot| spot.line.status != Some(to)) {
                edits.push(body_edit(text, spot, to.as_str())?);
            }
        }
    }
    let new = spliced(text, &edits);
    checked(text, new, |before, after| {
        let is = after.status.as_ref().and_then(|line| line.status);
        // Some states of a board have no name of their own in a spec.
        let as_spec = after.status.as_ref().and_then(|line| line.spec) == Some(SpecStatus::from(to));
        // The status is what was meant to change, so it is made equal before the rest is compared.
        before.status = after.status.clone();
        let differ = after.problems.iter().any(|problem| problem.rule == rules::STORY_STATUS_DIFFERS);
        (is == Some(to) || as_spec) && !differ
    })
}

/// Whether front matter belongs to a spec, which has other names for states: `bmad-build-auto` stops at `review`. A type
/// counts only if there is a status as well.
fn is_spec(front: &yaml::Node) -> bool {
    const OWN: [&str; 4] =
        ["review_loop_iteration", "followup_review_recommended", "route", "baseline_revision"];
    const TYPES: [&str; 4] = ["feature", "bugfix", "refactor", "chore"];
    let said = |key: &str| front.get(key).and_then(yaml::Node::text).map(str::trim);
    let word = said("status").and_then(SpecStatus::parse);
    let only_specs = matches!(word, Some(SpecStatus::Draft | SpecStatus::InReview | SpecStatus::Blocked));
    let typed = said("type").is_some_and(|own| TYPES.contains(&own)) && said("status").is_some();
    only_specs || typed || OWN.iter().any(|key| front.get(key).is_some())
}

/// The refusal for a line whose text is no status: the text is a user's sentence, and it stays.
fn no_status(said: &str) -> Refused {
    let all: Vec<&str> = StoryStatus::ALL.into_iter().map(StoryStatus::as_str).collect();
    let said: String = said.chars().take(80).collect();
    Refused::new(
        format!("the status line says `{said}`, which is no status"),
        format!("write one of {} there", all.join(", ")),
    )
}

/// The edit that replaces the status word in the body, and nothing around it.
fn body_edit(text: &str, spot: &status::Spot, word: &str) -> Result<Edit, Refused> {
    if !spot.bytes.is_empty() {
        return Ok((spot.bytes.clone(), word.to_string()));
    }
    if !spot.line.said.is_empty() {
        return Err(no_status(&spot.line.said));
    }
    // An empty status gets spaces around it only where there are none yet.
    let is_blank = |next: Option<char>| next.is_none_or(char::is_whitespace);
    let before = if is_blank(text[..spot.bytes.start].chars().next_back()) { "" } else { " " };
    let behind = if is_blank(text[spot.bytes.end..].chars().next()) { "" } else { " " };
    Ok((spot.bytes.clone(), format!("{before}{word}{behind}")))
}

/// A status and its name in this front matter: a spec has names of its own.
struct NewStatus {
    status: StoryStatus,
    word: &'static str,
}

/// The edit that replaces the status word in the front matter; `None` if it already says so.
fn front_edit(text: &str, at: usize, node: &yaml::Node, new: NewStatus) -> Result<Option<Edit>, Refused> {
    let odd =
        || Refused::new("the status in the front matter is no plain word", "write it as `status: done`");
    if matches!(node.form, yaml::Form::Nothing) {
        return Err(Refused::new(
            "the front matter has `status:` and nothing behind it",
            "write a status there",
        ));
    }
    let said = node.text().ok_or_else(odd)?;
    // The value may continue behind the word, as in `in-progress, see Bob`; only the word is replaced.
    let known = status::word(said).ok_or_else(|| no_status(said))?;
    if said.get(known).and_then(StoryStatus::parse) == Some(new.status) {
        return Ok(None);
    }
    let span = node.span.clone().ok_or_else(odd)?;
    let (start, end) = (at + span.start, at + span.end);
    // A value over several lines or through an alias has no bytes of its own.
    let old = text.get(start..end).filter(|old| !old.contains('\n')).ok_or_else(odd)?;
    let within = status::word(old).ok_or_else(odd)?;
    Ok(Some((start + within.start..start + within.end, new.word.to_string())))
}

/// The edit that inserts a status under the title, as the template has it; otherwise at the top.
fn new_status(page: &Page<'_>, word: &str) -> Edit {
    let end = page.line_end();
    // A later heading of the first level is not the title.
    let first = page.lines.iter().position(|line| line.heading().is_some());
    let is_title = |at: &usize| page.lines[*at].heading().is_some_and(|(level, _)| level == 1);
    if let Some(title) = first.filter(is_title) {
        return insertion(page, title + 1, &[format!("{end}Status: {word}")]);
    }
    let top =
        page.lines.iter().position(|line| line.kind != crate::page::Kind::Front).unwrap_or(page.lines.len());
    let gap = if page.lines.get(top).is_none_or(crate::page::Line::is_blank) { "" } else { end };
    let (range, new) = insertion(page, top, &[format!("Status: {word}")]);
    (range, format!("{new}{gap}"))
}

/// Ticks a task, or removes the tick.
pub fn tick(text: &str, task: &str, done: bool) -> Result<String, Refused> {
    let page = Page::of(text);
    let read = tasks::read(&page);
    let mut line = None;
    let mut all = 0;
    tasks::walk(&read, &mut |one| {
        all += 1;
        if one.id == task {
            line = Some(one.line);
        }
    });
    let line = line.ok_or_else(|| {
        Refused::new(format!("there is no task {task}; the story has {all}"), "see them: tribunal story KEY")
    })?;
    let new = ticked(text, &page, line, done)?;
    // The task is made equal in the old reading; everything else must then be the same.
    checked(text, new, |before, after| {
        let mut is = false;
        tasks::walk_mut(&mut before.tasks, &mut |one| {
            if one.id == task {
                one.done = done;
            }
        });
        tasks::walk(&after.tasks, &mut |one| is |= one.id == task && one.done == done);
        is
    })
}

/// Ticks an item that a review left, by its line; the same item in the review's own list is ticked with it.
pub fn tick_follow_up(text: &str, line: usize, done: bool) -> Result<String, Refused> {
    let page = Page::of(text);
    let before = record::follow_ups(&page);
    let Some(item) = before.iter().find(|item| item.line == line) else {
        let why = format!("nothing that a review left stands on line {line}");
        return Err(Refused::new(why, "see what is left: tribunal story KEY"));
    };
    let mut edits = Vec::new();
    for line in record::lines_of(&page, item) {
        edits.extend(tick_edit(&page, line, done)?);
    }
    let new = spliced(text, &edits);
    checked(text, new, |before, after| {
        before.follow_ups.iter_mut().filter(|item| item.line == line).for_each(|item| item.done = done);
        after.follow_ups.iter().any(|item| item.line == line && item.done == done)
    })
}

fn ticked(text: &str, page: &Page<'_>, line: usize, done: bool) -> Result<String, Refused> {
    let edit = tick_edit(page, line, done)?;
    Ok(spliced(text, edit.as_slice()))
}

/// The edit for one box; `None` if it already has that state.
fn tick_edit(page: &Page<'_>, line: usize, done: bool) -> Result<Option<Edit>, Refused> {
    let gone = || Refused::new(format!("line {line} has no box"), "read the file again");
    let at = page.lines.get(line.saturating_sub(1)).ok_or_else(gone)?;
    let item = tasks::boxed(at).ok_or_else(gone)?;
    let mark = if done { "x" } else { " " };
    Ok((item.done != done).then(|| (item.inside.0..item.inside.1, mark.to_string())))
}

/// Adds files to the list; files that it already has are left out. A missing list is created where the template has it.
pub fn add_files(text: &str, files: &[&str]) -> Result<String, Refused> {
    let page = Page::of(text);
    let known = record::files(&page);
    let section = record::file_section(&page);
    let listed = section.as_ref().map(|section| &page.lines[section.lines.clone()]).unwrap_or_default();
    let mut new: Vec<&str> = Vec::new();
    for file in files {
        // A path that could not be read back from the list is refused before anything is written.
        let odd = file.trim() != *file || file.is_empty() || file.contains(['\n', '\r', '`']);
        if odd || file.contains("://") {
            return Err(Refused::new(
                format!("{file:?} is no path that a list can hold"),
                "name a file of the project",
            ));
        }
        // A name without an extension is no recognizable path, so the lines are compared as well.
        let is_there = known.iter().any(|said| said.text == *file)
            || listed.iter().any(|line| record::names(line, file));
        if !is_there && !new.contains(file) {
            new.push(file);
        }
    }
    if new.is_empty() {
        return Ok(text.to_string());
    }
    let edit = match section {
        Some(section) => in_list(&page, &section, &new),
        None => new_list(&page, &new),
    };
    checked(text, spliced(text, &[edit]), |before, after| {
        // The new files must be read back at the end of the list, in their order.
        let added = after.files.split_off(before.files.len().min(after.files.len()));
        added.iter().map(|said| said.text.as_str()).eq(new.iter().copied())
    })
}

/// The edit that adds files behind the last one, in its style.
fn in_list(page: &Page<'_>, section: &Section<'_>, files: &[&str]) -> Edit {
    let lines = &page.lines[section.lines.clone()];
    let last = lines.iter().rposition(|line| record::file_of(line).is_some());
    let (at, lead, quoted) = match last.and_then(|last| Some((last, lines.get(last)?))) {
        Some((last, line)) => {
            // Indentation, bullet and backticks are taken from the last file of the list.
            let item = line.text.trim_start_matches([' ', '\t']);
            let indent = &line.text[..line.text.len() - item.len()];
            let bullet = item.chars().next().filter(|c| matches!(c, '-' | '*' | '+')).unwrap_or('-');
            (section.lines.start + last + 1, format!("{indent}{bullet} "), line.text.contains('`'))
        }
        None => {
            // Without files, the new ones follow the heading or a remark that there are none.
            let filled = lines.iter().take_while(|line| line.heading().is_none()).enumerate();
            let said = filled.filter(|(_, line)| !line.is_blank()).map(|(index, _)| index + 1).last();
            let at = section.lines.start + said.unwrap_or(0);
            return insertion(page, at, &with_gap(page, at, listed(files, "- ", false)));
        }
    };
    insertion(page, at, &listed(files, &lead, quoted))
}

fn listed(files: &[&str], lead: &str, quoted: bool) -> Vec<String> {
    // A path with a space cannot be read back without backticks.
    let one = |file: &&str| match quoted || record::bare_path(file) != Some(file) {
        true => format!("{lead}`{file}`"),
        false => format!("{lead}{file}"),
    };
    files.iter().map(one).collect()
}

/// The edit that creates the list at the end of `Dev Agent Record`; without that section, before what reviews add behind it.
fn new_list(page: &Page<'_>, files: &[&str]) -> Edit {
    let mut lines = listed(files, "- ", false);
    let heading = |lines: &mut Vec<String>, title: &str| {
        lines.splice(0..0, [title.to_string(), String::new()]);
    };
    if let Some(record) = page.section(|title| title == "dev agent record") {
        heading(&mut lines, &format!("{} File List", "#".repeat((record.level + 1).min(6))));
        let at = trimmed_end(page, record.lines.start, record.lines.end);
        return insertion(page, at, &with_gap(page, at, lines));
    }
    heading(&mut lines, "### File List");
    heading(&mut lines, "## Dev Agent Record");
    let behind =
        page.section(|title| title.starts_with("change log") || title.starts_with("senior developer review"));
    let end = behind.map_or(page.lines.len(), |section| section.heading);
    let at = trimmed_end(page, 0, end);
    insertion(page, at, &with_gap(page, at, lines))
}

/// Adds what a review leaves to do, in its dialect; an item that already exists, ticked or not, is not added again.
pub fn add_follow_ups(text: &str, dialect: Dialect, items: &[NewFollowUp]) -> Result<String, Refused> {
    let page = Page::of(text);
    let mut known = record::follow_ups(&page);
    let mut lines = Vec::new();
    for item in items {
        // Each line is read back first, so that an item is compared in the form in which it will be found later.
        let (line, read) = readable(dialect, item)?;
        if !known.iter().any(|other| other.text == read.text && other.place == read.place) {
            known.push(read);
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return Ok(text.to_string());
    }
    let count = lines.len();
    let edit = follow_up_edit(&page, dialect, lines);
    checked(text, spliced(text, &[edit]), |before, after| {
        // Old items are kept in the comparison; the rest must be exactly the new ones, in their order.
        let old = |item: &FollowUp| before.follow_ups.iter().any(|other| same(other, item));
        let (old, new): (Vec<FollowUp>, Vec<FollowUp>) =
            std::mem::take(&mut after.follow_ups).into_iter().partition(old);
        after.follow_ups = old;
        let wanted = &known[known.len() - count..];
        new.len() == count
            && new.iter().zip(wanted).all(|(new, wanted)| same(new, wanted) && new.dialect == dialect)
    })
}

fn same(one: &FollowUp, other: &FollowUp) -> bool {
    one.text == other.text && one.place == other.place && one.kind == other.kind
}

/// The edit that adds items behind the last one of their section; a missing section is created at the end of the tasks.
fn follow_up_edit(page: &Page<'_>, dialect: Dialect, mut lines: Vec<String>) -> Edit {
    let (start, title) = match dialect {
        Dialect::AiReview => ("review follow", "Review Follow-ups (AI)"),
        Dialect::Findings => ("review finding", "Review Findings"),
    };
    if let Some(section) = page.section(|title| title.starts_with(start)) {
        let inside = &page.lines[section.lines.clone()];
        let last = inside.iter().rposition(|line| tasks::boxed(line).is_some());
        let at = section.lines.start + last.map_or(0, |last| last + 1);
        let lines = if last.is_some() { lines } else { with_gap(page, at, lines) };
        return insertion(page, at, &lines);
    }
    let section = page.sections().into_iter().find(|section| tasks::is_tasks(section.title));
    let (level, from, end) = match &section {
        Some(section) => ((section.level + 1).min(6), section.lines.start, section.lines.end),
        // The section comes before what agents write about their work; without any of that, at the end.
        None => {
            let own = ["dev notes", "dev agent record", "change log", "senior developer review"];
            let next = page.section(|title| own.iter().any(|start| title.starts_with(start)));
            let level = if tasks::items(page).is_empty() { 3 } else { 2 };
            (level, 0, next.map_or(page.lines.len(), |section| section.heading))
        }
    };
    lines.splice(0..0, [format!("{} {title}", "#".repeat(level)), String::new()]);
    // Beside a section with that name, tasks elsewhere would no longer be read as tasks.
    if section.is_none() && level == 3 {
        lines.splice(0..0, ["## Tasks / Subtasks".to_string(), String::new()]);
    }
    let at = trimmed_end(page, from, end);
    insertion(page, at, &with_gap(page, at, lines))
}

/// The line for an item that can be read back as intended. A place that cannot be goes into the text: the finding matters
/// more than its form.
fn readable(dialect: Dialect, item: &NewFollowUp) -> Result<(String, FollowUp), Refused> {
    let line = written(dialect, item);
    let read = |line: &str| {
        let read = record::item(line)?;
        (!read.text.is_empty() && read.kind.as_ref() == Some(&item.kind)).then_some(read)
    };
    if let Some(read) = read(&line).filter(|read| item.place.is_none() || read.place == item.place) {
        return Ok((line, read));
    }
    let place = item.place.as_deref().map(str::trim).filter(|place| !place.is_empty());
    let told = place.map(|place| format!("{} ({place})", item.text)).filter(|_| !item.text.trim().is_empty());
    // Brackets in the text would be read as tags or places.
    let text = told.unwrap_or_else(|| item.text.clone()).replace('[', "(").replace(']', ")");
    let plain = written(dialect, &NewFollowUp { text, place: None, ..item.clone() });
    let found = read(&plain).map(|read| (plain, read));
    found.ok_or_else(|| {
        let why = format!("{line:?} would not be read again as it is meant");
        Refused::new(why, "say it in plain words, and the place as file:line")
    })
}

fn written(dialect: Dialect, item: &NewFollowUp) -> String {
    // The text must stay on one line and must not open a comment that would hide the rest of the file.
    let box_ = if item.done { "[x]" } else { "[ ]" };
    let text: Vec<&str> = item.text.split_whitespace().collect();
    let text = without_comments(&text.join(" "));
    let place = item.place.as_ref().map(|place| format!(" [{place}]")).unwrap_or_default();
    let tag = match dialect {
        Dialect::AiReview => "AI-Review",
        Dialect::Findings => "Review",
    };
    format!("- {box_} [{tag}][{}] {}{place}", item.kind.label(), text)
}

/// The index behind the last line that is not blank.
fn trimmed_end(page: &Page<'_>, from: usize, end: usize) -> usize {
    let inside = page.lines.get(from..end).unwrap_or_default();
    from + inside.iter().rposition(|line| !line.is_blank()).map_or(0, |last| last + 1)
}

/// The lines with a blank line before them, if the line before is not blank.
fn with_gap(page: &Page<'_>, at: usize, mut lines: Vec<String>) -> Vec<String> {
    if at.checked_sub(1).and_then(|before| page.lines.get(before)).is_some_and(|line| !line.is_blank()) {
        lines.insert(0, String::new());
    }
    lines
}

/// The edit that inserts whole lines before a line; the last line of the file gets the line ending that it lacks.
fn insertion(page: &Page<'_>, index: usize, lines: &[String]) -> Edit {
    let end = page.line_end();
    let at = page.lines.get(index).map_or(page.text.len(), |line| line.start);
    let open = at == page.text.len() && !page.text.is_empty() && !page.text.ends_with('\n') && index > 0;
    let mut new = lines.join(end);
    if open {
        new.insert_str(0, end);
    } else {
        new.push_str(end);
    }
    (at..at, new)
}

/// Returns the new text if it says what was intended and is otherwise the same as the old one. `accept_changes` makes the two
/// readings equal where they are meant to differ, and returns whether the intended change is there.
fn checked(
    old: &str,
    new: String,
    meant: impl FnOnce(&mut Story, &mut Story) -> bool,
) -> Result<String, Refused> {
    let mut before = super::read("", old);
    let mut after = super::read("", &new);
    let is_meant = meant(&mut before, &mut after);
    if is_meant && bare(before) == bare(after) {
        return Ok(new);
    }
    Err(Refused::new(
        "the changed file would not say what was meant",
        "change it by hand; its form is too unusual",
    ))
}

/// A story without line numbers, which may move, and without problems, which contain line numbers.
fn bare(mut story: Story) -> Story {
    story.problems.clear();
    tasks::walk_mut(&mut story.tasks, &mut |task| task.line = 0);
    story.criteria.iter_mut().for_each(|one| one.line = 0);
    story.files.iter_mut().chain(&mut story.title).chain(&mut story.outcome).for_each(|said| said.line = 0);
    story.follow_ups.iter_mut().for_each(|one| one.line = 0);
    story.status.iter_mut().for_each(|status| status.line = 0);
    story
}

/// The name of a kind, for users and files.
impl FollowUpKind {
    pub fn label(&self) -> String {
        match self {
            FollowUpKind::Decision => "Decision".into(),
            FollowUpKind::Patch => "Patch".into(),
            FollowUpKind::Defer => "Defer".into(),
            FollowUpKind::Other(word) => word.clone(),
            FollowUpKind::Severity(severity) => {
                let word = severity.as_str();
                let first = word.chars().next().map(|c| c.to_ascii_uppercase());
                first.into_iter().chain(word.chars().skip(1)).collect()
            }
        }
    }
}
