//! Installs Tribunal's hooks into the file of any client, and removes them again.
//!
//! Nothing here does I/O: texts come in, changed texts go out, and the caller reads and writes the files. Everything
//! that is not ours stays byte for byte. A file of an unknown form, or an entry of ours that was edited, is reported
//! with its line and left alone. Whether a client then runs the hooks is its own decision; see [`HookFile`] and the
//! fields of [`InstalledHooks`].

mod hook_command;
#[cfg(test)]
mod tests;

use hook_command::{CommandOwner, find_command_owner};

pub use hook_command::HookProgram;

use super::{HookClient, HookEvent};
pub use crate::clients::hooks::HookFile;
use crate::jsonc::{
    self, EditRefusal, JsoncChange, JsoncDocument, JsoncEdit, JsoncNode, JsoncProblem, JsoncValue, PathStep,
};

/// The events that a client has, with its own name for each.
pub fn supported_events(hook_client: HookClient) -> Vec<(HookEvent, &'static str)> {
    let named_event = |hook_event| Some((hook_event, hook_client.hooks.event_name(hook_event)?));
    HookEvent::ALL.into_iter().filter_map(named_event).collect()
}

/// Why a file is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallProblem {
    pub file_problem: JsoncProblem,
    /// Whether an entry of ours was edited; otherwise the file has an unknown form.
    pub is_ours: bool,
}

impl InstallProblem {
    fn at_byte(file_text: &str, byte_offset: usize, message: impl Into<String>) -> InstallProblem {
        let (line, column) = jsonc::line_and_column(file_text, byte_offset);
        InstallProblem { file_problem: JsoncProblem { line, column, message: message.into() }, is_ours: false }
    }

    fn from(refusal: EditRefusal) -> InstallProblem {
        // Both mean that the edit was not proven to be safe. The user cannot do anything with the difference.
        let unsafe_change = || JsoncProblem { line: 1, column: 1, message: "this file cannot be edited safely".into() };
        let file_problem = match refusal {
            EditRefusal::Unreadable(file_problem) => file_problem,
            EditRefusal::Misplaced | EditRefusal::Unverified => unsafe_change(),
        };
        InstallProblem { file_problem, is_ours: false }
    }
}

/// A file with our hooks in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledHooks {
    /// The text of the file; unchanged if there was nothing to do.
    pub file_text: String,
    pub added_events: Vec<HookEvent>,
    /// Events whose hooks started another program, or were written by another version.
    pub updated_events: Vec<HookEvent>,
    /// Something in the file that is not JSON. Measured: neither Claude Code nor Codex reads such a file at all.
    pub non_json: Option<JsoncProblem>,
    /// The line of the switch by which no hooks run at all.
    pub disabled_hooks_line: Option<usize>,
}

/// Puts our hooks into a file, except for events whose hooks already run from another file.
pub fn install_hooks(
    hook_client: HookClient,
    file_text: Option<&str>,
    hook_program: &HookProgram,
    events_elsewhere: &[HookEvent],
) -> Result<InstalledHooks, InstallProblem> {
    let file_text = file_text.unwrap_or("{}\n");
    let (hook_document, installed_entries) = read_entries(hook_client, file_text)?;
    // All changes are collected first and applied at once, so that their paths stay valid.
    let mut jsonc_changes = Vec::new();
    let (mut added_events, mut updated_events, mut new_members) = (Vec::new(), Vec::new(), Vec::new());
    let hooks_node = hook_document.root.get("hooks");
    for (hook_event, event_name) in
        supported_events(hook_client).into_iter().filter(|(hook_event, _)| !events_elsewhere.contains(hook_event))
    {
        let wanted_command = hook_program.command_line(hook_client, hook_event);
        let mut event_entries =
            installed_entries.iter().filter(|event_entry| event_entry.hook_event == hook_event).peekable();
        // The event has no hook of ours. The client may already have a list for it, to which a group is appended.
        if event_entries.peek().is_none() {
            added_events.push(hook_event);
            let new_group = hook_client.hooks.hook_entry(hook_event, wanted_command.clone());
            match hooks_node.and_then(|hooks_node| hooks_node.get(event_name)) {
                Some(_) => jsonc_changes.push(JsoncChange {
                    path: vec![key_step("hooks"), key_step(event_name)],
                    edit: JsoncEdit::AppendItems(vec![new_group]),
                }),
                None => new_members.push((event_name.to_string(), JsoncValue::List(vec![new_group]))),
            }
        }
        // The program has moved or the command has another form: only the command is replaced, so that the user's own
        // timeout stays.
        for event_entry in event_entries.filter(|event_entry| event_entry.command != wanted_command) {
            updated_events.push(hook_event);
            let change_path = [event_entry.json_path(), vec![key_step("command")]].concat();
            jsonc_changes.push(JsoncChange {
                path: change_path,
                edit: JsoncEdit::Replace(JsoncValue::from_text(&wanted_command)),
            });
        }
    }
    // New lists are added in one change, because two changes of the same object would overlap.
    if !new_members.is_empty() {
        jsonc_changes.push(add_event_lists(hooks_node, new_members));
    }
    let new_text = jsonc::edit_document(file_text, &jsonc_changes).map_err(InstallProblem::from)?;
    let disabled_hooks_line = find_off_switch(hook_client, file_text, &hook_document);
    Ok(InstalledHooks {
        file_text: new_text,
        added_events,
        updated_events,
        non_json: hook_document.non_json,
        disabled_hooks_line,
    })
}

/// The change that adds the lists of new events to the object with the hooks, or creates that object with them.
fn add_event_lists(hooks_node: Option<&JsoncNode>, event_lists: Vec<(String, JsoncValue)>) -> JsoncChange {
    match hooks_node {
        Some(_) => JsoncChange { path: vec![key_step("hooks")], edit: JsoncEdit::AddMembers(event_lists) },
        None => JsoncChange {
            path: Vec::new(),
            edit: JsoncEdit::AddMembers(vec![("hooks".into(), JsoncValue::Map(event_lists))]),
        },
    }
}

/// Finds the line of the switch by which no hooks run at all; `None` if hooks run.
fn find_off_switch(hook_client: HookClient, file_text: &str, hook_document: &JsoncDocument) -> Option<usize> {
    let switch_node = hook_client.hooks.off_switch().and_then(|switch_key| hook_document.root.get(switch_key));
    let active_switch = switch_node.filter(|switch_node| switch_node.to_value() == JsoncValue::Flag(true));
    active_switch.map(|active_switch| jsonc::line_and_column(file_text, active_switch.span.start).0)
}

/// The events at which our hooks run because of this file.
pub fn installed_events(hook_client: HookClient, file_text: &str) -> Result<Vec<HookEvent>, InstallProblem> {
    let (hook_document, installed_entries) = read_entries(hook_client, file_text)?;
    // The client does not read such a file.
    if hook_document.non_json.is_some() {
        return Ok(Vec::new());
    }
    Ok(HookEvent::ALL
        .into_iter()
        .filter(|hook_event| installed_entries.iter().any(|installed_entry| installed_entry.hook_event == *hook_event))
        .collect())
}

/// The programs that our hooks in this file start, in the order of the file.
pub fn installed_programs(hook_client: HookClient, file_text: &str) -> Result<Vec<HookProgram>, InstallProblem> {
    let (_, installed_entries) = read_entries(hook_client, file_text)?;
    let program_of = |installed_entry: &InstalledEntry| {
        HookProgram::from_command(&installed_entry.command, hook_client, installed_entry.hook_event)
    };
    Ok(installed_entries.iter().filter_map(program_of).collect())
}

/// A file without our hooks. Groups and lists that become empty are removed as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UninstalledHooks {
    /// The remaining text; `None` if nothing is left in the file.
    pub remaining_text: Option<String>,
    pub removed_count: usize,
}

/// Removes our hooks from a file.
pub fn uninstall_hooks(hook_client: HookClient, file_text: &str) -> Result<UninstalledHooks, InstallProblem> {
    let (hook_document, installed_entries) = read_entries(hook_client, file_text)?;
    let mut jsonc_changes = Vec::new();
    if let Some(hooks_node) = hook_document.root.get("hooks").filter(|_| !installed_entries.is_empty()) {
        let mut emptied_events = Vec::new();
        // From the inside out: a group whose hooks are all ours goes as a whole, then a list whose groups all go,
        // then the object itself.
        for (list_index, event_item) in hooks_node.items().iter().enumerate() {
            let list_path = vec![key_step("hooks"), PathStep::Index(list_index)];
            let own_entries: Vec<&InstalledEntry> =
                installed_entries.iter().filter(|installed_entry| installed_entry.list_index == list_index).collect();
            let emptied_groups = find_emptied_groups(&event_item.value, &list_path, &own_entries, &mut jsonc_changes);
            match emptied_groups.len() == event_item.value.items().len() && !emptied_groups.is_empty() {
                true => emptied_events.push(list_index),
                false => push_removal(list_path, emptied_groups, &mut jsonc_changes),
            }
        }
        match emptied_events.len() == hooks_node.items().len() {
            true => {
                let hooks_index = hook_document.root.items().iter().position(|root_item| root_item.key == "hooks");
                push_removal(Vec::new(), hooks_index.into_iter().collect(), &mut jsonc_changes);
            }
            false => push_removal(vec![key_step("hooks")], emptied_events, &mut jsonc_changes),
        }
    }
    let new_text = jsonc::edit_document(file_text, &jsonc_changes).map_err(InstallProblem::from)?;
    // A file without our hooks stays, even if there is nothing in it.
    let is_empty = !installed_entries.is_empty() && new_text.trim_start_matches('\u{feff}').trim() == "{}";
    Ok(UninstalledHooks { remaining_text: (!is_empty).then_some(new_text), removed_count: installed_entries.len() })
}

/// Finds the groups of a list that contain only our hooks. From the other groups, ours are removed.
fn find_emptied_groups(
    list_node: &JsoncNode,
    list_path: &[PathStep],
    own_entries: &[&InstalledEntry],
    jsonc_changes: &mut Vec<JsoncChange>,
) -> Vec<usize> {
    let mut emptied_groups = Vec::new();
    for (group_index, group_item) in list_node.items().iter().enumerate() {
        let removed_indexes: Vec<usize> = own_entries
            .iter()
            .filter(|installed_entry| installed_entry.group_index == group_index)
            .map(|installed_entry| installed_entry.entry_index)
            .collect();
        match removed_indexes.len() == group_item.value.get("hooks").map_or(0, |group_hooks| group_hooks.items().len())
            && !removed_indexes.is_empty()
        {
            true => emptied_groups.push(group_index),
            false => push_removal(
                [list_path, &[PathStep::Index(group_index), key_step("hooks")]].concat(),
                removed_indexes,
                jsonc_changes,
            ),
        }
    }
    emptied_groups
}

fn push_removal(container_path: Vec<PathStep>, removed_indexes: Vec<usize>, jsonc_changes: &mut Vec<JsoncChange>) {
    if !removed_indexes.is_empty() {
        jsonc_changes.push(JsoncChange { path: container_path, edit: JsoncEdit::RemoveItems(removed_indexes) });
    }
}

/// One of our commands in a file.
#[derive(Debug)]
struct InstalledEntry {
    hook_event: HookEvent,
    command: String,
    /// The positions of the list, of the group in it, and of the entry in the group.
    list_index: usize,
    group_index: usize,
    entry_index: usize,
}

impl InstalledEntry {
    fn json_path(&self) -> Vec<PathStep> {
        let [list_step, group_step, entry_step] =
            [self.list_index, self.group_index, self.entry_index].map(PathStep::Index);
        vec![key_step("hooks"), list_step, group_step, key_step("hooks"), entry_step]
    }
}

/// Reads the entries of a file in Claude Code's form: lists of groups by event, each with a list of commands.
fn read_entries(
    hook_client: HookClient,
    file_text: &str,
) -> Result<(JsoncDocument, Vec<InstalledEntry>), InstallProblem> {
    let hook_document =
        jsonc::read_document(file_text).map_err(|file_problem| InstallProblem { file_problem, is_ours: false })?;
    let unknown_form =
        |jsonc_node: &JsoncNode, message: String| InstallProblem::at_byte(file_text, jsonc_node.span.start, message);
    if !hook_document.root.is_map() {
        return Err(unknown_form(&hook_document.root, "expected a JSON object".into()));
    }
    let mut installed_entries = Vec::new();
    let Some(hooks_node) = hook_document.root.get("hooks") else {
        return Ok((hook_document, installed_entries));
    };
    if !hooks_node.is_map() {
        return Err(unknown_form(hooks_node, "`hooks` is not an object".into()));
    }
    for (list_index, event_item) in hooks_node.items().iter().enumerate() {
        let event_name = &event_item.key;
        if !event_item.value.is_list() {
            return Err(unknown_form(&event_item.value, format!("`hooks.{event_name}` is not an array")));
        }
        // Every deviation from the known form is an error: an edit of a file that is not understood could break it.
        for (group_index, group_item) in event_item.value.items().iter().enumerate() {
            let command_list = group_item.value.get("hooks").filter(|command_list| command_list.is_list());
            let command_list = command_list.ok_or_else(|| {
                unknown_form(&group_item.value, format!("this entry of `hooks.{event_name}` has no `hooks` array"))
            })?;
            for (entry_index, entry_item) in command_list.items().iter().enumerate() {
                if !entry_item.value.is_map() {
                    return Err(unknown_form(
                        &entry_item.value,
                        format!("this hook for `{event_name}` is not an object"),
                    ));
                }
                // Hooks of other kinds have no command.
                let Some(command_text) = entry_item.value.get("command").and_then(JsoncNode::as_text) else {
                    continue;
                };
                let hook_event = match find_command_owner(command_text, hook_client) {
                    CommandOwner::Foreign => continue,
                    // A command of ours under another event would answer the wrong question, so it counts as edited.
                    CommandOwner::Ours(owner_event) if is_event_name(hook_client, owner_event, event_name) => {
                        owner_event
                    }
                    CommandOwner::Ours(_) | CommandOwner::Changed => {
                        let install_problem =
                            unknown_form(&entry_item.value, format!("Tribunal's hook for `{event_name}` was edited"));
                        return Err(InstallProblem { is_ours: true, ..install_problem });
                    }
                };
                installed_entries.push(InstalledEntry {
                    hook_event,
                    command: command_text.to_string(),
                    list_index,
                    group_index,
                    entry_index,
                });
            }
        }
    }
    Ok((hook_document, installed_entries))
}

fn is_event_name(hook_client: HookClient, hook_event: HookEvent, event_name: &str) -> bool {
    supported_events(hook_client)
        .iter()
        .any(|(known_event, known_name)| *known_event == hook_event && *known_name == event_name)
}

fn key_step(key_name: &str) -> PathStep {
    PathStep::Key(key_name.to_string())
}

/// Renders the whole file: it is written where we may write, and shown to the user where we may not.
pub fn render_hook_file(hook_client: HookClient, hook_program: &HookProgram) -> String {
    jsonc::render_pretty(&build_hook_tree(hook_client, hook_program))
}

fn build_hook_tree(hook_client: HookClient, hook_program: &HookProgram) -> JsoncValue {
    let event_lists = supported_events(hook_client).into_iter().map(|(hook_event, event_name)| {
        let hook_entry = hook_client.hooks.hook_entry(hook_event, hook_program.command_line(hook_client, hook_event));
        (event_name.to_string(), JsoncValue::List(vec![hook_entry]))
    });
    hook_client.hooks.hook_document(JsoncValue::Map(event_lists.collect()))
}

/// Whether a file of our own has the expected content, for this or any other program.
pub fn check_own_file(hook_client: HookClient, file_text: &str) -> Result<(), InstallProblem> {
    let own_document =
        jsonc::read_document(file_text).map_err(|file_problem| InstallProblem { file_problem, is_ours: true })?;
    // Both sides are reduced to the same program, so that an installation under another path is accepted.
    match neutralize_program(own_document.root.to_value(), hook_client)
        == neutralize_program(build_hook_tree(hook_client, &HookProgram::ByName), hook_client)
    {
        true => Ok(()),
        false => {
            let message = "this file belongs to Tribunal, but was edited";
            Err(InstallProblem {
                is_ours: true,
                ..InstallProblem::at_byte(file_text, own_document.root.span.start, message)
            })
        }
    }
}

/// Replaces every command of ours by the one that starts the program by its name.
fn neutralize_program(jsonc_tree: JsoncValue, hook_client: HookClient) -> JsoncValue {
    match jsonc_tree {
        JsoncValue::Text(text_value) => match find_command_owner(&text_value, hook_client) {
            CommandOwner::Ours(owner_event) => {
                JsoncValue::Text(HookProgram::ByName.command_line(hook_client, owner_event))
            }
            CommandOwner::Foreign | CommandOwner::Changed => JsoncValue::Text(text_value),
        },
        JsoncValue::List(child_items) => JsoncValue::List(
            child_items.into_iter().map(|child_item| neutralize_program(child_item, hook_client)).collect(),
        ),
        JsoncValue::Map(members) => JsoncValue::Map(
            members
                .into_iter()
                .map(|(member_key, member_value)| (member_key, neutralize_program(member_value, hook_client)))
                .collect(),
        ),
        scalar_value => scalar_value,
    }
}
