//! Finds the entries of a board, in every shape that is known.
//!
//! | shape | |
//! | --- | --- |
//! | BMAD's own | `development_status: {1-1-x: done}` |
//! | with fields | `development_status: {1-1-x: {status: done, owner: …}}` |
//! | nested | `epics: {epic-1: {status: …, stories: {1-1-x: {status: …}}}}` |
//! | lists | `stories: [{id: 1-1, key: x, status: done}]` |
//!
//! What stands elsewhere in the file is not about progress.

use std::ops::Range;

use super::DEVELOPMENT_KEY;
use crate::{
    keys::{BoardKey, slugify},
    states::StateMeaning,
    yaml::{YamlContent, YamlEntry, YamlNode},
};

/// An entry as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShapedEntry {
    pub key_text: String,
    pub role: EntryRole,
    pub state_text: String,
    /// The bytes of the state; `None` where it cannot be replaced.
    pub state_span: Option<Range<usize>>,
    pub line: usize,
    pub column: usize,
    pub state_line: usize,
    pub state_column: usize,
    /// The list that it stands in, told by which of the entries were found there; `None` in a mapping.
    pub list: Option<Range<usize>>,
}

/// Where an entry begins.
#[derive(Clone, Copy)]
struct TextPosition {
    line: usize,
    column: usize,
}

/// What the place of an entry says about its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryRole {
    /// The key decides.
    ByKey,
    Epic,
    Story,
    Retrospective,
}

const EPIC_COLLECTIONS: [&str; 4] = ["epics", "waves", "phases", "milestones"];
const STORY_COLLECTIONS: [&str; 7] =
    ["stories", "user_stories", "story_list", "tracks", "subtracks", "sub_tracks", "story"];
/// Collections that only contain others.
const GROUPS: [&str; 3] = ["sprints", "sprint", "current_sprint"];
const RETRO_KEYS: [&str; 3] = ["retrospective", "retrospectives", "retro"];
const STATE_FIELDS: [&str; 3] = ["status", "state", "story_status"];
const ID_FIELDS: [&str; 9] = ["id", "key", "story_id", "epic_id", "story", "epic", "number", "name", "title"];

/// Finds all entries, in the order of the file. `None` if the file has no shape that is known.
pub(super) fn find_entries(root_node: &YamlNode) -> Option<Vec<ShapedEntry>> {
    let mut entries = Vec::new();
    if let Some(status_node) = root_node.get(DEVELOPMENT_KEY) {
        walk_collection(status_node, EntryRole::ByKey, &mut entries);
        add_stray_entries(root_node, &mut entries);
        let is_collection = matches!(status_node.content, YamlContent::Mapping(_) | YamlContent::Sequence(_));
        return is_collection.then_some(entries);
    }
    // Milestones are a summary where there is anything more detailed.
    walk_known_keys(root_node, &|collection_name| collection_name != "milestones", &mut entries);
    if entries.is_empty() {
        walk_known_keys(root_node, &|_| true, &mut entries);
    }
    entries.sort_by_key(|entry| entry.line);
    (!entries.is_empty()).then_some(entries)
}

/// Adds entries beside `development_status`: lines that lost their indentation, and further sections such as `phase_2_status`.
fn add_stray_entries(root_node: &YamlNode, entries: &mut Vec<ShapedEntry>) {
    // A key that is in the list already, for example through an alias, is not another entry.
    let known_keys: Vec<String> = entries.iter().map(|entry| entry.key_text.clone()).collect();
    let is_numbered_entry = |entry: &YamlEntry| {
        let is_state = entry.value.scalar_text().is_some_and(|text| StateMeaning::parse(text).is_some());
        let is_key = match BoardKey::parse(&entry.key) {
            Some(BoardKey::Story(story)) => story.story_number().is_some(),
            Some(BoardKey::Epic(epic)) => epic.as_number().is_some(),
            Some(BoardKey::Retrospective(_)) | None => false,
        };
        is_state && is_key && !known_keys.contains(&entry.key)
    };
    for entry in root_node.entries().iter().filter(|entry| entry.key != DEVELOPMENT_KEY) {
        if is_numbered_entry(entry) {
            add_member(entry, EntryRole::ByKey, entries);
        }
        for inner_entry in entry.value.entries().iter().filter(|inner_entry| is_numbered_entry(inner_entry)) {
            add_member(inner_entry, EntryRole::ByKey, entries);
        }
    }
    entries.sort_by_key(|entry| entry.line);
}

/// Visits the collections that a mapping has under a known name.
fn walk_known_keys(mapping_node: &YamlNode, is_wanted: &dyn Fn(&str) -> bool, entries: &mut Vec<ShapedEntry>) {
    for entry in mapping_node.entries().iter().filter(|entry| is_wanted(&entry.key)) {
        let collection_name = entry.key.to_lowercase().replace('-', "_");
        if GROUPS.contains(&collection_name.as_str()) {
            match &entry.value.content {
                YamlContent::Sequence(items) => items.iter().for_each(|item| walk_known_keys(item, is_wanted, entries)),
                _ => walk_known_keys(&entry.value, is_wanted, entries),
            }
        } else if EPIC_COLLECTIONS.contains(&collection_name.as_str()) {
            walk_collection(&entry.value, EntryRole::Epic, entries);
        } else if STORY_COLLECTIONS.contains(&collection_name.as_str()) {
            walk_collection(&entry.value, EntryRole::Story, entries);
        }
    }
}

/// Visits the members of a collection.
fn walk_collection(collection: &YamlNode, role: EntryRole, entries: &mut Vec<ShapedEntry>) {
    match &collection.content {
        YamlContent::Mapping(members) => members.iter().for_each(|member| add_member(member, role, entries)),
        YamlContent::Sequence(items) => walk_list(items, role, entries),
        YamlContent::Null | YamlContent::Scalar(_) => {}
    }
}

/// Visits the items of a list.
fn walk_list(items: &[YamlNode], role: EntryRole, entries: &mut Vec<ShapedEntry>) {
    let first_position = entries.len();
    items.iter().for_each(|item| add_item(item, role, entries));
    let list = first_position..entries.len();
    // What stands in a list within this one has been marked already.
    for entry in entries.iter_mut().skip(first_position).filter(|entry| entry.list.is_none()) {
        entry.list = Some(list.clone());
    }
}

/// Adds `key: state` or `key: {status: …}`.
fn add_member(member: &YamlEntry, role: EntryRole, entries: &mut Vec<ShapedEntry>) {
    match &member.value.content {
        YamlContent::Scalar(_) | YamlContent::Null => {
            entries.push(make_entry(
                member.key.clone(),
                role,
                TextPosition { line: member.line, column: member.column },
                &member.value,
            ));
        }
        YamlContent::Mapping(_) => {
            match find_state_field(&member.value) {
                Some(state_node) => entries.push(make_entry(
                    member.key.clone(),
                    role,
                    TextPosition { line: member.line, column: member.column },
                    state_node,
                )),
                // A group without a state of its own: `epic-1: {1-1-x: done}`.
                None if role == EntryRole::ByKey => walk_collection(&member.value, role, entries),
                None => {}
            }
            add_direct_stories(&member.value, entries);
            walk_inner(&member.value, &member.key, entries);
        }
        YamlContent::Sequence(_) => walk_collection(&member.value, EntryRole::Story, entries),
    }
}

/// Adds the stories that stand beside the state of their epic: `epic-1: {status: done, 1-1-x: done}`.
fn add_direct_stories(epic_node: &YamlNode, entries: &mut Vec<ShapedEntry>) {
    let is_story = |entry: &&YamlEntry| {
        let is_numbered =
            matches!(BoardKey::parse(&entry.key), Some(BoardKey::Story(story)) if story.story_number().is_some());
        is_numbered && !entries.iter().any(|known_entry| known_entry.line == entry.line)
    };
    let direct_stories: Vec<&YamlEntry> = epic_node.entries().iter().filter(is_story).collect();
    for story in direct_stories {
        add_member(story, EntryRole::Story, entries);
    }
}

/// Adds one item of a list.
fn add_item(item: &YamlNode, role: EntryRole, entries: &mut Vec<ShapedEntry>) {
    // `- 1-1-x` names a story without its state.
    if let Some(name) = item.scalar_text() {
        let is_story = matches!(BoardKey::parse(name), Some(BoardKey::Story(story)) if story.story_number().is_some());
        if is_story && role != EntryRole::Epic {
            let no_state =
                YamlNode { line: item.line, column: item.column, ..YamlNode::from_content(YamlContent::Null) };
            entries.push(make_entry(
                name.to_string(),
                role,
                TextPosition { line: item.line, column: item.column },
                &no_state,
            ));
        }
        return;
    }
    let Some(key_text) = item_key(item) else {
        // An item with a state and without a name is about nothing.
        if find_state_field(item).is_some() {
            return;
        }
        // `- 1-1-x: done`
        walk_collection(item, role, entries);
        return;
    };
    if let Some(state_node) = find_state_field(item) {
        entries.push(make_entry(
            key_text.clone(),
            role,
            TextPosition { line: item.line, column: item.column },
            state_node,
        ));
    }
    walk_inner(item, &key_text, entries);
}

/// Visits what is inside of an entry: the stories of an epic, and its retrospective.
fn walk_inner(entry_node: &YamlNode, key_text: &str, entries: &mut Vec<ShapedEntry>) {
    walk_known_keys(entry_node, &|_| true, entries);
    let is_retro = |inner: &&YamlEntry| {
        RETRO_KEYS.contains(&inner.key.as_str())
            || RETRO_KEYS.iter().any(|name| inner.key.ends_with(&format!("-{name}")))
    };
    for inner in entry_node.entries().iter().filter(is_retro) {
        let state_node = find_state_field(&inner.value).or_else(|| inner.value.scalar_text().map(|_| &inner.value));
        entries.extend(state_node.map(|state_node| {
            make_entry(
                key_text.to_string(),
                EntryRole::Retrospective,
                TextPosition { line: inner.line, column: inner.column },
                state_node,
            )
        }));
    }
}

fn find_state_field(entry_node: &YamlNode) -> Option<&YamlNode> {
    let find_field = |field_name: &&str| {
        let entry = entry_node.entries().iter().find(|entry| entry.key.eq_ignore_ascii_case(field_name));
        entry.map(|entry| &entry.value)
    };
    STATE_FIELDS.iter().find_map(find_field).filter(|state_node| state_node.scalar_text().is_some())
}

/// The key of an item: its id, followed by its words where the id is only a number.
fn item_key(item: &YamlNode) -> Option<String> {
    let text_of = |field_name: &str| item.get(field_name).and_then(YamlNode::scalar_text).map(str::trim);
    let id_text = ID_FIELDS.iter().find_map(|field_name| text_of(field_name)).filter(|id_text| !id_text.is_empty())?;
    let is_number =
        |text: &str| text.chars().all(|character| character.is_ascii_digit() || matches!(character, '-' | '.'));
    let words = text_of("key").or_else(|| text_of("slug")).filter(|words| !is_number(words) && *words != id_text);
    Some(match words {
        Some(words) if is_number(id_text) && id_text.contains(['-', '.']) => {
            format!("{}-{words}", id_text.replace('.', "-"))
        }
        _ => id_text.to_string(),
    })
}

fn make_entry(key_text: String, role: EntryRole, position: TextPosition, state_node: &YamlNode) -> ShapedEntry {
    let key_text = match role {
        EntryRole::ByKey => key_text,
        // A title as the only name of an epic becomes words that can be typed.
        _ if key_text.contains(char::is_whitespace) => slugify(&key_text),
        _ => key_text,
    };
    ShapedEntry {
        key_text,
        role,
        state_text: state_node.scalar_text().unwrap_or_default().to_string(),
        state_span: state_node.span.clone(),
        line: position.line,
        column: position.column,
        state_line: state_node.line,
        state_column: state_node.column,
        list: None,
    }
}
