//! What the rules work on: the texts of the documents, epics, stories and existing paths. Everything is read once.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use super::{CheckInput, CheckSummary};
use crate::{
    board::{Board, BoardEntry, BoardEntryState},
    commands::{self, BmadStep, StepCommand},
    config,
    documents::{DocumentKind, ProjectDocument, ProjectDocuments},
    epics::{self, EpicsDocument},
    keys::StoryKey,
    layout::{BmadLayout, Era},
    problem::FileProblem,
    project_files::{self, ProjectFiles},
    states::StoryStatus,
    story::{self, Story},
    story_files,
};

/// The text of a document with its path.
pub(super) struct DocumentText {
    pub path: String,
    pub text: String,
    pub kind: DocumentKind,
}

/// The file of a story.
pub(super) struct StoryDocument {
    pub path: String,
    pub text: String,
    pub story: Story,
    /// Whether it is a spec of `bmad-build`, which has states of its own.
    pub is_spec: bool,
}

/// Everything that the rules compare.
pub(super) struct CheckMaterial<'a> {
    pub project_files: &'a dyn ProjectFiles,
    pub layout: &'a BmadLayout,
    pub config: &'a config::BmadConfig,
    pub documents: &'a ProjectDocuments,
    pub board: Option<&'a Board>,
    pub board_path: &'a str,
    /// The texts of PRD, architecture, UX and epics that count, with their parts.
    pub texts: Vec<DocumentText>,
    pub epics: EpicsDocument,
    pub stories: Vec<StoryDocument>,
    /// The problems that came up while reading.
    pub problems: Vec<FileProblem>,
    mentions: StoryMentions<'a>,
    lookup_cache: RefCell<MaterialCache>,
}

/// Where stories are mentioned.
#[derive(Default)]
struct StoryMentions<'a> {
    entries: BTreeMap<&'a StoryKey, &'a BoardEntry>,
    /// The numbers of stories that have a file.
    names_with_file: BTreeSet<String>,
}

/// Lookups that were already done, since rules ask for the same paths and commands again and again.
#[derive(Default)]
struct MaterialCache {
    directory_names: BTreeMap<String, BTreeSet<String>>,
    step_commands: BTreeMap<BmadStep, String>,
}

impl<'a> CheckMaterial<'a> {
    /// Reads all texts of a project once.
    pub fn gather(check_input: &CheckInput<'a>) -> CheckMaterial<'a> {
        let mut check_material = CheckMaterial {
            project_files: check_input.project_files,
            layout: check_input.layout,
            config: check_input.config,
            documents: check_input.documents,
            // A board that cannot be read says nothing about any story.
            board: check_input.board.filter(|board| board.is_readable),
            board_path: check_input.board_path,
            texts: Vec::new(),
            epics: EpicsDocument::default(),
            stories: Vec::new(),
            problems: Vec::new(),
            mentions: StoryMentions::default(),
            lookup_cache: RefCell::default(),
        };
        check_material.mentions.entries = check_material.board.into_iter().flat_map(Board::stories).collect();
        for kind in [DocumentKind::Prd, DocumentKind::Architecture, DocumentKind::Ux, DocumentKind::Epics] {
            // Several files with epics are one plan; of other documents the first one counts.
            let count = if kind == DocumentKind::Epics { usize::MAX } else { 1 };
            let documents = check_input.documents.of_kind(kind).take(count);
            for document_path in documents.flat_map(ProjectDocument::paths) {
                let document_text = project_files::read_or_report(
                    check_material.project_files,
                    document_path,
                    &mut check_material.problems,
                );
                check_material.texts.extend(document_text.map(|document_text| DocumentText {
                    path: document_path.to_string(),
                    text: document_text,
                    kind,
                }));
            }
        }
        let epic_parts: Vec<(&str, &str)> = check_material
            .texts_of_kind(DocumentKind::Epics)
            .map(|document| (document.path.as_str(), document.text.as_str()))
            .collect();
        check_material.epics = epics::read_epics(&epic_parts);
        check_material.problems.extend(std::mem::take(&mut check_material.epics.problems));
        check_material.gather_stories();
        check_material
    }

    fn gather_stories(&mut self) {
        let story_files = story_files::find_story_files(self.project_files, &self.config.folders, self.board);
        // What is in an archive is no longer worked on.
        let mut story_paths: Vec<(String, bool)> = story_files
            .all()
            .filter(|story_file| !story_file.is_archived)
            .map(|story_file| (story_file.path.clone(), story_file.is_spec))
            .collect();
        // Stories come first, so that a spec of the same story does not replace one.
        story_paths.sort_by_key(|(_, is_spec)| *is_spec);
        for (story_path, is_spec) in story_paths {
            let Some(story_text) = project_files::read_or_report(self.project_files, &story_path, &mut self.problems)
            else {
                continue;
            };
            let mut story = story::read_story(&story_path, &story_text);
            // Reports are named after their story, too, but have none of these.
            if story.status.is_none() && story.tasks.is_empty() && story.criteria.is_empty() {
                continue;
            }
            let problems = std::mem::take(&mut story.problems);
            // A spec follows other rules than a story, so only the problems of its own reader count.
            let own_problems =
                if is_spec { crate::specs::read_spec(&story_path, &story_text).problems } else { problems };
            self.problems.extend(own_problems);
            self.mentions.names_with_file.extend(story.key.as_ref().map(StoryKey::lookup_name));
            self.stories.push(StoryDocument { path: story_path, text: story_text, story, is_spec });
        }
    }

    pub fn texts_of_kind(&self, kind: DocumentKind) -> impl Iterator<Item = &DocumentText> {
        self.texts.iter().filter(move |document_text| document_text.kind == kind)
    }

    /// The board's entry for a story, by its key.
    pub fn board_entry(&self, story_key: &StoryKey) -> Option<&'a BoardEntry> {
        self.mentions.entries.get(story_key).copied()
    }

    /// Whether this era writes stories into files before they are developed.
    pub fn creates_story_files(&self) -> bool {
        match self.layout.era {
            // Era D plans its own stories, unless the older workflows were installed beside it.
            Some(Era::D) => self.layout.shims,
            Some(_) => true,
            None => false,
        }
    }

    /// Whether a story has a file, under any slug.
    pub fn has_story_file(&self, story_key: &StoryKey) -> bool {
        self.mentions.names_with_file.contains(&story_key.lookup_name())
    }

    /// The files of the stories that would be developed now.
    pub fn due_story_paths(&self) -> BTreeSet<&str> {
        let due_files = self.stories.iter().filter(|story_file| self.is_due(story_file));
        due_files.map(|story_file| story_file.path.as_str()).collect()
    }

    fn is_due(&self, story_file: &StoryDocument) -> bool {
        let board_state = story_file
            .story
            .key
            .as_ref()
            .and_then(|story_key| self.board_entry(story_key))
            .map(|board_line| board_line.state);
        // The board decides where it has an entry; otherwise the file's own status counts.
        let story_state = match board_state {
            Some(Some(BoardEntryState::Story(story_state))) => Some(story_state),
            Some(_) => None,
            None => story_file.story.status.as_ref().and_then(|status| status.status),
        };
        matches!(story_state, Some(StoryStatus::ReadyForDev | StoryStatus::InProgress))
    }

    /// Whether a file or directory exists at a path.
    pub fn path_exists(&self, checked_path: &str) -> bool {
        let Some(checked_path) = normalize_path(checked_path) else { return false };
        if checked_path.is_empty() {
            return true;
        }
        let (directory, wanted_name) = checked_path.rsplit_once('/').unwrap_or(("", checked_path.as_str()));
        // The cache is filled by directory, since one listing answers for all of its files.
        let mut cache = self.lookup_cache.borrow_mut();
        let entry_names = cache
            .directory_names
            .entry(directory.to_string())
            .or_insert_with(|| self.project_files.list_names(directory).into_iter().collect());
        entry_names.contains(wanted_name) || entry_names.contains(&format!("{wanted_name}/"))
    }

    /// What to type or to do for a step.
    pub fn command_for_step(&self, step: BmadStep) -> String {
        self.lookup_cache.borrow_mut().step_commands.entry(step).or_insert_with(|| self.describe_command(step)).clone()
    }

    /// The problem of a step that cannot be run here, with or without its documents.
    pub fn missing_step_problem(&self, step: BmadStep) -> Option<FileProblem> {
        let bmad_root = self.layout.root.as_deref()?;
        match self.find_step_command(step) {
            StepCommand::Missing { why: reason, instead, .. } => {
                let message = format!("{step} cannot be run here: {reason}");
                Some(FileProblem::error("step-not-installed", bmad_root, message).with_advice(instead))
            }
            _ => None,
        }
    }

    fn find_step_command(&self, step: BmadStep) -> StepCommand {
        // Commands are shown for Claude Code if its files are there, or if no client is known; otherwise for Codex.
        let has_claude = self.layout.clients.iter().any(|client| client.name == "claude");
        let client_name = if has_claude || self.layout.clients.is_empty() { "claude-code" } else { "codex" };
        commands::find_command(self.layout, step, client_name, self.project_files)
    }

    fn describe_command(&self, step: BmadStep) -> String {
        match self.find_step_command(step) {
            StepCommand::Slash { text: slash_command, .. } => slash_command,
            StepCommand::Text { prompt, .. } => prompt,
            StepCommand::Missing { instead, .. } => instead,
        }
    }

    pub fn summarize(&self) -> CheckSummary {
        let is_no_story =
            |document: &&ProjectDocument| !matches!(document.kind, DocumentKind::Story | DocumentKind::StorySpec);
        CheckSummary {
            era: self.layout.era.map(|era| era.to_string()),
            version: self.layout.version.clone(),
            planning: self.config.folders.planning.clone(),
            implementation: self.config.folders.implementation.clone(),
            documents: self.documents.found.iter().filter(is_no_story).count(),
            epics: self.epics.epics.len(),
            stories: self.stories.len(),
            on_board: self.board.map(|board| board.stories().count()),
        }
    }
}

pub(super) fn join_path(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_string() } else { format!("{directory}/{name}") }
}

/// Whether a path is relative and does not leave the project.
pub(super) fn is_inside_project(checked_path: &str) -> bool {
    !checked_path.starts_with(['/', '~'])
        && checked_path.as_bytes().get(1) != Some(&b':')
        && normalize_path(checked_path).is_some()
}

/// A path without `.` and `..`; `None` if it leaves the project.
pub(super) fn normalize_path(raw_path: &str) -> Option<String> {
    let mut components: Vec<&str> = Vec::new();
    for component in raw_path.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                components.pop()?;
            }
            component => components.push(component),
        }
    }
    Some(components.join("/"))
}

/// The directory of a file.
pub(super) fn parent_directory(file_path: &str) -> &str {
    file_path.rsplit_once('/').map_or("", |(directory, _)| directory)
}
