//! What the board and the plan say about a sprint: the open stories, and what they depend on.

use std::collections::BTreeMap;

use tribunal_bmad::{
    board::{Board, BoardEntry, BoardEntryState},
    documents::{DocumentKind, ProjectDocuments},
    epic_id::EpicId,
    epics::{Epic, EpicsDocument},
    keys::{self, BoardKey, StoryKey},
    project_files::ProjectFiles,
    retrospective::{self, RetroVerdict},
    states::{ParkedState, RetroStatus},
    story::{self, Story},
};
use tribunal_engine::ids::Hash;
use tribunal_workflows::sprint::{
    facts::{EpicLesson, EpicVerdict, MAX_LISTED_STORIES, OpenStory, SprintFacts, TwinLines},
    plan_changes::{EpicOutline, StoryOutline},
};

use crate::project::{bmad_project::BmadProject, story_facts};

/// The most action items of a retrospective that are read.
const MAX_ACTION_ITEMS: usize = 50;
/// The most story files that are named because they cannot be read.
const MAX_REMARKS: usize = 10;

/// Reads the open stories in the order of the board.
pub fn read_sprint(bmad: &BmadProject) -> SprintFacts {
    let Some(board) = &bmad.board else { return SprintFacts::default() };
    let found_documents = bmad.find_documents();
    let epics = bmad.read_epics_among(&found_documents);
    let (done, open): (Vec<_>, Vec<_>) =
        board.stories().partition(|(_, entry)| entry.state.is_some_and(BoardEntryState::is_over));
    let (mut open_stories, mut remarks) = (Vec::new(), Vec::new());
    for (key, entry) in open.iter().take(MAX_LISTED_STORIES) {
        let story_file = read_story_file(bmad, key);
        remarks.extend(story_file.as_ref().and_then(describe_broken_front_matter));
        let needs = read_needs(board, read_dependencies(story_file.as_ref(), &epics, key));
        open_stories.push(describe_story(entry, needs));
    }
    remarks.truncate(MAX_REMARKS);
    let open_retrospectives = list_open_retrospectives(board);
    SprintFacts {
        open_count: open.len() as u32,
        done_count: done.len() as u32,
        open: open_stories,
        done: Vec::new(),
        gone: Vec::new(),
        finished_epics: list_finished_epics(board, &open_retrospectives),
        open_retrospectives: open_retrospectives.into_iter().map(ToString::to_string).collect(),
        lessons: read_lessons(bmad, &found_documents),
        remarks,
    }
}

/// Describes an open story as the board has it, with what it needs.
fn describe_story(entry: &BoardEntry, needs: OpenStory) -> OpenStory {
    OpenStory {
        key: entry.raw_key.clone(),
        epic: entry.epic.as_ref().map(ToString::to_string).unwrap_or_default(),
        stage: match entry.state {
            Some(BoardEntryState::Story(status)) => Some(story_facts::to_stage(status)),
            _ => None,
        },
        word: entry.raw_state.clone(),
        is_deferred: entry.state == Some(BoardEntryState::Parked(ParkedState::Deferred)),
        twin_lines: entry.twin_line.map(|twin_line| TwinLines {
            first_line: to_line_number(entry.line),
            second_line: to_line_number(twin_line),
        }),
        ..needs
    }
}

fn to_line_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

fn read_story_file(bmad: &BmadProject, key: &StoryKey) -> Option<Story> {
    let story_path = bmad.find_story_file(key)?;
    let story_text = bmad.project_files.read_file(&story_path).ok().flatten()?;
    Some(story::read_story(&story_path, &story_text))
}

/// Says that the front matter of a story cannot be read: the plan of the story is refused for it.
fn describe_broken_front_matter(story: &Story) -> Option<String> {
    let problem = story.find_broken_front_matter()?;
    Some(format!("the front matter of a story could not be read, so it is not begun: {problem}"))
}

/// The plan in outline, for a comparison with a later one.
pub fn read_outline(bmad: &BmadProject) -> Vec<EpicOutline> {
    let to_outline = |epic: Epic| EpicOutline {
        epic: epic.number.to_string(),
        title: epic.title,
        stories: epic
            .stories
            .into_iter()
            .map(|story| StoryOutline {
                number: story.number.to_string(),
                title: story.title.clone(),
                text: Hash::digest_of([story.criteria, story.requirements].concat().join("\n").as_bytes()),
            })
            .collect(),
    };
    bmad.read_epics().epics.into_iter().map(to_outline).collect()
}

/// The epics whose retrospective has not been held.
fn list_open_retrospectives(board: &Board) -> Vec<&EpicId> {
    let open_retros = board.entries.iter().filter_map(|entry| match (&entry.key, entry.state) {
        (BoardKey::Retrospective(epic), Some(BoardEntryState::Retrospective(RetroStatus::Optional))) => Some(epic),
        _ => None,
    });
    open_retros.collect()
}

/// The epics whose stories are all done, and whose retrospective has not been held.
fn list_finished_epics(board: &Board, open_retrospectives: &[&EpicId]) -> Vec<String> {
    let is_finished = |epic: &EpicId| {
        let mut stories = board.stories_of(epic).peekable();
        stories.peek().is_some() && stories.all(|(_, entry)| entry.state.is_some_and(BoardEntryState::is_over))
    };
    open_retrospectives.iter().filter(|epic| is_finished(epic)).map(ToString::to_string).collect()
}

/// What the retrospectives in the project say, in the order of the epics; of several for one epic the last one.
fn read_lessons(bmad: &BmadProject, found_documents: &ProjectDocuments) -> Vec<EpicLesson> {
    let mut lessons: BTreeMap<u32, EpicLesson> = BTreeMap::new();
    for document in found_documents.of_kind(DocumentKind::Retro) {
        let Some(text) = bmad.project_files.read_file(&document.path).ok().flatten() else { continue };
        if let Some(epic) = retrospective::read_retrospective(&document.path, &text).epic {
            // Documents come newest first.
            lessons.entry(epic).or_insert_with(|| read_lesson(&epic.to_string(), &document.path, &text));
        }
    }
    lessons.into_values().collect()
}

/// Reads what a retrospective says about its epic.
pub(crate) fn read_lesson(epic: &str, path: &str, document_text: &str) -> EpicLesson {
    let retro = retrospective::read_retrospective(path, document_text);
    EpicLesson {
        epic: epic.to_string(),
        verdict: retro.verdict.map(|verdict| match verdict {
            RetroVerdict::Accepted => EpicVerdict::Accepted,
            RetroVerdict::AcceptedWithOpenItems => EpicVerdict::AcceptedWithOpenItems,
            RetroVerdict::Rejected => EpicVerdict::Rejected,
        }),
        action_items: retro.action_items.into_iter().take(MAX_ACTION_ITEMS).map(|item| item.text).collect(),
    }
}

/// What a story says it depends on: its own file counts before the plan. `None` if neither says anything.
fn read_dependencies(story_file: Option<&Story>, epics: &EpicsDocument, key: &StoryKey) -> Option<Vec<String>> {
    if story_file.is_some_and(|story| story.links.depends_on_nothing) {
        return Some(Vec::new());
    }
    let stated = story_file.map(|story| &story.links.depends_on);
    if let Some(stated) = stated.filter(|stated| !stated.is_empty()) {
        return Some(stated.clone());
    }
    let number = key.story_number()?;
    let planned = epics.stories().find(|story| story.number == *number)?;
    let stated: Vec<String> = planned.depends_on.iter().map(ToString::to_string).collect();
    Some(stated).filter(|stated| !stated.is_empty())
}

/// What a story needs, as keys of the board, and what of it is not on the board.
fn read_needs(board: &Board, stated: Option<Vec<String>>) -> OpenStory {
    let Some(stated) = stated else { return OpenStory::default() };
    let (mut depends_on, mut unknown_needs) = (Vec::new(), Vec::new());
    for name in stated.iter().flat_map(|stated| stated.split([',', ';'])).map(str::trim) {
        let is_none = matches!(name.to_lowercase().as_str(), "" | "none" | "n/a" | "-" | "null");
        match resolve_name(board, name) {
            _ if is_none => {}
            needed if needed.is_empty() => unknown_needs.push(name.to_string()),
            needed => depends_on.extend(needed),
        }
    }
    OpenStory { depends_on: Some(depends_on), unknown_needs, ..OpenStory::default() }
}

/// The keys on the board that a name stands for: a story by number, key or slug, or all stories of an epic.
fn resolve_name(board: &Board, name: &str) -> Vec<String> {
    let lower_name = name.to_lowercase();
    let short_name = lower_name.strip_prefix("story").unwrap_or(&lower_name).trim_matches([' ', ':', '-', '#']);
    let same_key = board.stories().find(|(_, entry)| entry.raw_key.to_lowercase() == short_name);
    if let Some((_, entry)) = same_key {
        return vec![entry.raw_key.clone()];
    }
    let all_keys: Vec<&StoryKey> = board.stories().map(|(key, _)| key).collect();
    if let [key] = keys::match_stories(short_name, all_keys.iter().copied()).as_slice() {
        let found = board.stories().find(|(board_key, _)| board_key == key);
        return found.map(|(_, entry)| entry.raw_key.clone()).into_iter().collect();
    }
    let epic_name = short_name.strip_prefix("epic").unwrap_or(short_name).trim_matches([' ', ':', '-', '#']);
    let epic = EpicId::parse(epic_name);
    epic.iter().flat_map(|epic| board.stories_of(epic)).map(|(_, entry)| entry.raw_key.clone()).collect()
}
