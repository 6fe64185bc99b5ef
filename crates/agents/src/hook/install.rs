//! Installs Tribunal's hooks into the file of any client, and removes them again.
//!
//! Nothing here does I/O: texts come in, changed texts go out, and the caller reads and writes the files. Everything
//! that is not ours stays byte for byte. A file of an unknown form, or an entry of ours that was edited, is reported
//! with its line and left alone. Whether a client then runs the hooks is its own decision; see [`HookFile`] and the
//! fields of [`InstalledHooks`].

mod command;
#[cfg(test)]
mod tests;

use command::{Whose, whose};

pub use command::Program;

use super::{HookClient, HookEvent};
pub use crate::clients::hooks::Home;
use crate::jsonc::{self, Change, Document, Node, Problem, Refusal, Step, Tree, What};

/// The events that a client has, with its own name for each.
pub fn moments(client: HookClient) -> Vec<(HookEvent, &'static str)> {
    let moment = |event| Some((event, client.hooks.event_name(event)?));
    HookEvent::ALL.into_iter().filter_map(moment).collect()
}

/// Why a file is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub problem: Problem,
    /// Whether an entry of ours was edited; otherwise the file has an unknown form.
    pub is_ours: bool,
}

impl Trouble {
    fn at(text: &str, byte: usize, what: impl Into<String>) -> Trouble {
        let (line, column) = jsonc::place(text, byte);
        Trouble { problem: Problem { line, column, what: what.into() }, is_ours: false }
    }

    fn from(refusal: Refusal) -> Trouble {
        // Both mean that the edit was not proven to be safe. The user cannot do anything with the difference.
        let unsure = || Problem { line: 1, column: 1, what: "it cannot be changed safely".into() };
        let problem = match refusal {
            Refusal::Broken(problem) => problem,
            Refusal::Misplaced | Refusal::Unsure => unsure(),
        };
        Trouble { problem, is_ours: false }
    }
}

/// A file with our hooks in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// The text of the file; unchanged if there was nothing to do.
    pub text: String,
    pub added: Vec<HookEvent>,
    /// Events whose hooks started another program, or were written by another version.
    pub updated: Vec<HookEvent>,
    /// Something in the file that is not JSON. Measured: neither Claude Code nor Codex reads such a file at all.
    pub loose: Option<Problem>,
    /// The line of the switch by which no hooks run at all.
    pub switched_off: Option<usize>,
}

/// Puts our hooks into a file, except for events whose hooks already run from another file.
pub fn set(
    client: HookClient,
    text: Option<&str>,
    program: &Program,
    elsewhere: &[HookEvent],
) -> Result<Set, Trouble> {
    let text = text.unwrap_or("{}\n");
    let (document, entries) = entries(client, text)?;
    // All changes are collected first and applied at once, so that their paths stay valid.
    let mut changes = Vec::new();
    let (mut added, mut updated, mut members) = (Vec::new(), Vec::new(), Vec::new());
    let hooks = document.root.get("hooks");
    for (event, name) in moments(client).into_iter().filter(|(event, _)| !elsewhere.contains(event)) {
        let wanted = program.command(client, event);
        let mut there = entries.iter().filter(|entry| entry.event == event).peekable();
        // The event has no hook of ours. The client may already have a list for it, to which a group is appended.
        if there.peek().is_none() {
            added.push(event);
            let group = client.hooks.entry(event, wanted.clone());
            match hooks.and_then(|hooks| hooks.get(name)) {
                Some(_) => {
                    changes.push(Change { at: vec![key("hooks"), key(name)], what: What::Push(vec![group]) })
                }
                None => members.push((name.to_string(), Tree::List(vec![group]))),
            }
        }
        // The program has moved or the command has another form: only the command is replaced, so that the user's own
        // timeout stays.
        for entry in there.filter(|entry| entry.command != wanted) {
            updated.push(event);
            let at = [entry.way(), vec![key("command")]].concat();
            changes.push(Change { at, what: What::Put(Tree::text(&wanted)) });
        }
    }
    // New lists are added in one change, because two changes of the same object would overlap.
    if !members.is_empty() {
        changes.push(match hooks {
            Some(_) => Change { at: vec![key("hooks")], what: What::Add(members) },
            None => Change { at: Vec::new(), what: What::Add(vec![("hooks".into(), Tree::Map(members))]) },
        });
    }
    let new = jsonc::edit(text, &changes).map_err(Trouble::from)?;
    let switch = client.hooks.off_switch().and_then(|switch| document.root.get(switch));
    let off = switch.filter(|off| off.tree() == Tree::Flag(true));
    let switched_off = off.map(|off| jsonc::place(text, off.span.start).0);
    Ok(Set { text: new, added, updated, loose: document.loose, switched_off })
}

/// The events at which our hooks run because of this file.
pub fn present(client: HookClient, text: &str) -> Result<Vec<HookEvent>, Trouble> {
    let (document, entries) = entries(client, text)?;
    // The client does not read such a file.
    if document.loose.is_some() {
        return Ok(Vec::new());
    }
    Ok(HookEvent::ALL.into_iter().filter(|event| entries.iter().any(|entry| entry.event == *event)).collect())
}

/// A file without our hooks. Groups and lists that become empty are removed as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// The remaining text; `None` if nothing is left in the file.
    pub text: Option<String>,
    pub removed: usize,
}

/// Removes our hooks from a file.
pub fn clear(client: HookClient, text: &str) -> Result<Cleared, Trouble> {
    let (document, entries) = entries(client, text)?;
    let mut changes = Vec::new();
    if let Some(hooks) = document.root.get("hooks").filter(|_| !entries.is_empty()) {
        let mut events = Vec::new();
        // From the inside out: a group whose hooks are all ours goes as a whole, then a list whose groups all go,
        // then the object itself.
        for (index, event) in hooks.items().iter().enumerate() {
            let at = vec![key("hooks"), Step::At(index)];
            let ours: Vec<&Entry> = entries.iter().filter(|entry| entry.list == index).collect();
            let groups = emptied(&event.value, &at, &ours, &mut changes);
            match groups.len() == event.value.items().len() && !groups.is_empty() {
                true => events.push(index),
                false => remove(at, groups, &mut changes),
            }
        }
        match events.len() == hooks.items().len() {
            true => {
                let index = document.root.items().iter().position(|item| item.key == "hooks");
                remove(Vec::new(), index.into_iter().collect(), &mut changes);
            }
            false => remove(vec![key("hooks")], events, &mut changes),
        }
    }
    let new = jsonc::edit(text, &changes).map_err(Trouble::from)?;
    // A file that was empty before our hooks were removed stays as it is.
    let is_empty = !entries.is_empty() && new.trim_start_matches('\u{feff}').trim() == "{}";
    Ok(Cleared { text: (!is_empty).then_some(new), removed: entries.len() })
}

/// Finds the groups of a list that contain only our hooks. From the other groups, ours are removed.
fn emptied(list: &Node, at: &[Step], ours: &[&Entry], changes: &mut Vec<Change>) -> Vec<usize> {
    let mut groups = Vec::new();
    for (index, group) in list.items().iter().enumerate() {
        let gone: Vec<usize> =
            ours.iter().filter(|entry| entry.group == index).map(|entry| entry.index).collect();
        match gone.len() == group.value.get("hooks").map_or(0, |hooks| hooks.items().len())
            && !gone.is_empty()
        {
            true => groups.push(index),
            false => remove([at, &[Step::At(index), key("hooks")]].concat(), gone, changes),
        }
    }
    groups
}

fn remove(at: Vec<Step>, gone: Vec<usize>, changes: &mut Vec<Change>) {
    if !gone.is_empty() {
        changes.push(Change { at, what: What::Remove(gone) });
    }
}

/// One of our commands in a file.
#[derive(Debug)]
struct Entry {
    event: HookEvent,
    command: String,
    /// The positions of the list, of the group in it, and of the entry in the group.
    list: usize,
    group: usize,
    index: usize,
}

impl Entry {
    fn way(&self) -> Vec<Step> {
        let [list, group, index] = [self.list, self.group, self.index].map(Step::At);
        vec![key("hooks"), list, group, key("hooks"), index]
    }
}

/// Reads the entries of a file in Claude Code's form: lists of groups by event, each with a list of commands.
fn entries(client: HookClient, text: &str) -> Result<(Document, Vec<Entry>), Trouble> {
    let document = jsonc::read(text).map_err(|problem| Trouble { problem, is_ours: false })?;
    let unknown = |node: &Node, what: String| Trouble::at(text, node.span.start, what);
    if !document.root.is_map() {
        return Err(unknown(&document.root, "the file is no object".into()));
    }
    let mut entries = Vec::new();
    let Some(hooks) = document.root.get("hooks") else { return Ok((document, entries)) };
    if !hooks.is_map() {
        return Err(unknown(hooks, "`hooks` is no object".into()));
    }
    for (list, event) in hooks.items().iter().enumerate() {
        let name = &event.key;
        if !event.value.is_list() {
            return Err(unknown(&event.value, format!("`hooks.{name}` is no list")));
        }
        // Every deviation from the known form is an error: an edit of a file that is not understood could break it.
        for (group, item) in event.value.items().iter().enumerate() {
            let commands = item.value.get("hooks").filter(|commands| commands.is_list());
            let commands = commands.ok_or_else(|| {
                unknown(&item.value, format!("this entry of `hooks.{name}` has no list `hooks`"))
            })?;
            for (index, item) in commands.items().iter().enumerate() {
                if !item.value.is_map() {
                    return Err(unknown(&item.value, format!("this hook of `{name}` is no object")));
                }
                // Hooks of other kinds have no command.
                let Some(command) = item.value.get("command").and_then(Node::text) else { continue };
                let event = match whose(command, client) {
                    Whose::Others => continue,
                    // A command of ours under another event would answer the wrong question, so that it counts as
                    // edited.
                    Whose::Ours(event) if is_called(client, event, name) => event,
                    Whose::Ours(_) | Whose::Changed => {
                        let trouble =
                            unknown(&item.value, format!("Tribunal's hook of `{name}` was changed"));
                        return Err(Trouble { is_ours: true, ..trouble });
                    }
                };
                entries.push(Entry { event, command: command.to_string(), list, group, index });
            }
        }
    }
    Ok((document, entries))
}

fn is_called(client: HookClient, event: HookEvent, name: &str) -> bool {
    moments(client).iter().any(|(known, called)| *known == event && *called == name)
}

fn key(name: &str) -> Step {
    Step::Key(name.to_string())
}

/// Renders the whole file: it is written where we may write, and shown to the user where we may not.
pub fn whole(client: HookClient, program: &Program) -> String {
    jsonc::pretty(&tree(client, program))
}

fn tree(client: HookClient, program: &Program) -> Tree {
    let hooks = moments(client).into_iter().map(|(event, name)| {
        let entry = client.hooks.entry(event, program.command(client, event));
        (name.to_string(), Tree::List(vec![entry]))
    });
    client.hooks.document(Tree::Map(hooks.collect()))
}

/// Whether a file of our own has the expected content, for this or any other program.
pub fn check_own(client: HookClient, text: &str) -> Result<(), Trouble> {
    let document = jsonc::read(text).map_err(|problem| Trouble { problem, is_ours: true })?;
    // Both sides are reduced to the same program, so that an installation under another path is accepted.
    match neutral(document.root.tree(), client) == neutral(tree(client, &Program::Named), client) {
        true => Ok(()),
        false => {
            let what = "Tribunal's own file was changed";
            Err(Trouble { is_ours: true, ..Trouble::at(text, document.root.span.start, what) })
        }
    }
}

/// Replaces every command of ours by the one that starts the program by its name.
fn neutral(tree: Tree, client: HookClient) -> Tree {
    match tree {
        Tree::Text(text) => match whose(&text, client) {
            Whose::Ours(event) => Tree::Text(Program::Named.command(client, event)),
            Whose::Others | Whose::Changed => Tree::Text(text),
        },
        Tree::List(items) => Tree::List(items.into_iter().map(|item| neutral(item, client)).collect()),
        Tree::Map(items) => {
            Tree::Map(items.into_iter().map(|(key, item)| (key, neutral(item, client))).collect())
        }
        plain => plain,
    }
}
