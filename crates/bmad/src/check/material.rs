//! What the rules work on: the texts of the documents, epics, stories and existing paths. Everything is read once.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use super::{Input, LookedAt};
use crate::{
    board::{Board, Entry, State},
    commands::{self, Command, Step},
    config,
    documents::{Document, Documents, Kind},
    epics::{self, Epics},
    keys::{Number, StoryKey, StoryStatus},
    layout::{Era, Layout},
    problem::Problem,
    shelf::{self, Shelf},
    story::{self, Story},
};

/// The text of a document with its path.
pub(super) struct Text {
    pub path: String,
    pub text: String,
    pub kind: Kind,
}

/// The file of a story.
pub(super) struct File {
    pub path: String,
    pub text: String,
    pub story: Story,
    /// Whether it is a spec of `bmad-build`, which has states of its own.
    pub is_spec: bool,
}

/// Everything that the rules compare.
pub(super) struct Material<'a> {
    pub shelf: &'a dyn Shelf,
    pub layout: &'a Layout,
    pub config: &'a config::Config,
    pub documents: &'a Documents,
    pub board: Option<&'a Board>,
    pub board_path: &'a str,
    /// The texts of PRD, architecture, UX and epics that count, with their parts.
    pub texts: Vec<Text>,
    pub epics: Epics,
    pub stories: Vec<File>,
    /// The problems that came up while reading.
    pub problems: Vec<Problem>,
    stated: Stated<'a>,
    asked: RefCell<Asked>,
}

/// Where stories are mentioned.
#[derive(Default)]
struct Stated<'a> {
    entries: BTreeMap<&'a StoryKey, &'a Entry>,
    /// The numbers of stories that have a file.
    written: BTreeSet<Number>,
}

/// Lookups that were already done, since rules ask for the same paths and commands again and again.
#[derive(Default)]
struct Asked {
    folders: BTreeMap<String, BTreeSet<String>>,
    commands: BTreeMap<Step, String>,
}

impl<'a> Material<'a> {
    /// Reads all texts of a project once.
    pub fn gather(input: &Input<'a>) -> Material<'a> {
        let mut material = Material {
            shelf: input.shelf,
            layout: input.layout,
            config: input.config,
            documents: input.documents,
            // A board that cannot be read says nothing about any story.
            board: input.board.filter(|board| board.readable),
            board_path: input.board_path,
            texts: Vec::new(),
            epics: Epics::default(),
            stories: Vec::new(),
            problems: Vec::new(),
            stated: Stated::default(),
            asked: RefCell::default(),
        };
        material.stated.entries = material.board.into_iter().flat_map(Board::stories).collect();
        for kind in [Kind::Prd, Kind::Architecture, Kind::Ux, Kind::Epics] {
            let Some(document) = input.documents.first(kind) else { continue };
            for path in document.paths() {
                let text = shelf::read(material.shelf, path, &mut material.problems);
                material.texts.extend(text.map(|text| Text { path: path.to_string(), text, kind }));
            }
        }
        let parts: Vec<(&str, &str)> =
            material.of(Kind::Epics).map(|text| (text.path.as_str(), text.text.as_str())).collect();
        material.epics = epics::read(&parts);
        material.problems.extend(std::mem::take(&mut material.epics.problems));
        material.gather_stories();
        material
    }

    fn gather_stories(&mut self) {
        // Stories come first, so that a spec with the same path does not replace one.
        let kinds = [(Kind::Story, false), (Kind::StorySpec, true)];
        let found = kinds.into_iter().flat_map(|(kind, is_spec)| {
            self.documents.of(kind).map(move |document| (document.path.clone(), is_spec))
        });
        let mut paths: Vec<(String, bool)> = found.collect();
        paths.extend(self.elsewhere().into_iter().map(|path| (path, false)));
        let mut seen = BTreeSet::new();
        for (path, is_spec) in paths {
            if story::key_of(&path).is_none() || !seen.insert(path.clone()) {
                continue;
            }
            let Some(text) = shelf::read(self.shelf, &path, &mut self.problems) else { continue };
            let mut story = story::read(&path, &text);
            // Reports are named after their story, too, but have none of these.
            if story.status.is_none() && story.tasks.is_empty() && story.criteria.is_empty() {
                continue;
            }
            let problems = std::mem::take(&mut story.problems);
            // A spec follows other rules than a story, so only the problems of its own reader count.
            let own = if is_spec { crate::specs::spec(&path, &text).problems } else { problems };
            self.problems.extend(own);
            self.stated.written.extend(story.key.as_ref().map(StoryKey::number));
            self.stories.push(File { path, text, story, is_spec });
        }
    }

    /// The stories in the folder that the board names, if that folder was not searched yet.
    fn elsewhere(&self) -> Vec<String> {
        let said = self.board.and_then(|board| board.story_location.as_deref());
        // The board is a file of the project and could name any path.
        let Some(folder) = said.map(config::folder).filter(|folder| is_inside(folder)) else {
            return Vec::new();
        };
        if folder.is_empty() || folder == self.config.folders.implementation {
            return Vec::new();
        }
        let names = self.shelf.names(folder).into_iter().filter(|name| name.ends_with(".md"));
        names.map(|name| joined(folder, &name)).collect()
    }

    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Text> {
        self.texts.iter().filter(move |text| text.kind == kind)
    }

    /// The board's entry for a story, by its key.
    pub fn entry(&self, key: &StoryKey) -> Option<&'a Entry> {
        self.stated.entries.get(key).copied()
    }

    /// Whether this era writes stories into files before they are developed.
    pub fn creates(&self) -> bool {
        match self.layout.era {
            // Era D plans its own stories, unless the older workflows were installed beside it.
            Some(Era::D) => self.layout.shims,
            Some(_) => true,
            None => false,
        }
    }

    /// Whether a story has a file, under any slug.
    pub fn is_written(&self, number: Number) -> bool {
        self.stated.written.contains(&number)
    }

    /// The files of the stories that would be developed now.
    pub fn due(&self) -> BTreeSet<&str> {
        let due = self.stories.iter().filter(|file| self.is_due(file));
        due.map(|file| file.path.as_str()).collect()
    }

    fn is_due(&self, file: &File) -> bool {
        let on_board = file.story.key.as_ref().and_then(|key| self.entry(key)).map(|entry| entry.state);
        // The board decides where it has an entry; otherwise the file's own status counts.
        let state = match on_board {
            Some(Some(State::Story(state))) => Some(state),
            Some(_) => None,
            None => file.story.status.as_ref().and_then(|status| status.status),
        };
        matches!(state, Some(StoryStatus::ReadyForDev | StoryStatus::InProgress))
    }

    /// Whether a file or directory exists at a path.
    pub fn is_there(&self, path: &str) -> bool {
        let Some(path) = straight(path) else { return false };
        if path.is_empty() {
            return true;
        }
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path.as_str()));
        // The cache is filled by directory, since one listing answers for all of its files.
        let mut asked = self.asked.borrow_mut();
        let names = asked
            .folders
            .entry(folder.to_string())
            .or_insert_with(|| self.shelf.names(folder).into_iter().collect());
        names.contains(name) || names.contains(&format!("{name}/"))
    }

    /// What to type or to do for a step.
    pub fn how(&self, step: Step) -> String {
        self.asked.borrow_mut().commands.entry(step).or_insert_with(|| self.told(step)).clone()
    }

    /// The problem of a step that cannot be run here, with or without its documents.
    pub fn uninstalled(&self, step: Step) -> Option<Problem> {
        let root = self.layout.root.as_deref()?;
        match self.command(step) {
            Command::Missing { why, instead, .. } => {
                let what = format!("{step} cannot be run here: {why}");
                Some(Problem::error("step-not-installed", root, what).todo(instead))
            }
            _ => None,
        }
    }

    fn command(&self, step: Step) -> Command {
        // Claude's commands are the shortest to type, so they are shown where they exist.
        let claude = self.layout.clients.iter().any(|client| client.name == "claude");
        let client = if claude || self.layout.clients.is_empty() { "claude-code" } else { "codex" };
        commands::of(self.layout, step, client, self.shelf)
    }

    fn told(&self, step: Step) -> String {
        match self.command(step) {
            Command::Slash { text, .. } => text,
            Command::Text { prompt, .. } => prompt,
            Command::Missing { instead, .. } => instead,
        }
    }

    pub fn looked_at(&self) -> LookedAt {
        let others = |document: &&Document| !matches!(document.kind, Kind::Story | Kind::StorySpec);
        LookedAt {
            era: self.layout.era.map(|era| era.to_string()),
            version: self.layout.version.clone(),
            planning: self.config.folders.planning.clone(),
            implementation: self.config.folders.implementation.clone(),
            documents: self.documents.found.iter().filter(others).count(),
            epics: self.epics.epics.len(),
            stories: self.stories.len(),
            on_board: self.board.map(|board| board.stories().count()),
        }
    }
}

pub(super) fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") }
}

/// Whether a path is relative and does not leave the project.
pub(super) fn is_inside(path: &str) -> bool {
    !path.starts_with(['/', '~']) && path.as_bytes().get(1) != Some(&b':') && straight(path).is_some()
}

/// A path without `.` and `..`; `None` if it leaves the project.
pub(super) fn straight(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The directory of a file.
pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
