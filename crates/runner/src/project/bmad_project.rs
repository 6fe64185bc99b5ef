//! A project's BMAD files: layout, settings, board, stories. A project without BMAD has none of them.

use tribunal_bmad::{
    board::{self, Board},
    config::{self, BmadConfig},
    deferred_work,
    documents::{self, DocumentKind, ProjectDocument, ProjectDocuments},
    epics::{self, EpicsDocument},
    keys::StoryKey,
    layout::{self, BmadLayout},
    problem::{FileProblem, ProblemWeight},
    project_files::{self, ProjectFiles},
    story_files::{self, StoryFiles},
};

use crate::project::{Project, project_files::ProjectDirectory};

/// The BMAD part of a project.
#[derive(Debug)]
pub struct BmadProject {
    pub project_files: ProjectDirectory,
    pub layout: BmadLayout,
    pub config: BmadConfig,
    /// The board; `None` if there is none, or none that can be opened.
    pub board: Option<Board>,
    pub story_files: StoryFiles,
    /// Why files could not be opened.
    pub problems: Vec<FileProblem>,
}

impl BmadProject {
    pub fn read_project(project: &Project) -> BmadProject {
        let project_files = ProjectDirectory::open_project(project);
        let layout = layout::read_layout(&project_files);
        let config = config::read_config(&project_files);
        let mut problems = Vec::new();
        // The first place that has a board wins.
        let board = board::candidate_paths(&config.folders).into_iter().find_map(|board_path| {
            let board_text = project_files::read_or_report(&project_files, &board_path, &mut problems)?;
            Some(board::read_board(&board_path, &board_text))
        });
        let mut board = board;
        if let Some(board) = &mut board {
            board.problems.extend(find_other_board(&project_files, &config, &board.path));
        }
        let story_files = story_files::find_story_files(&project_files, &config.folders, board.as_ref());
        BmadProject { project_files, layout, config, board, story_files, problems }
    }

    /// Uses another version of the board, for instance that of a branch.
    pub fn replace_board(&mut self, board_text: &str) {
        let board_path = self.board_path();
        let board = board::read_board(&board_path, board_text);
        self.story_files = story_files::find_story_files(&self.project_files, &self.config.folders, Some(&board));
        self.board = Some(board);
    }

    /// The path of the board, or where one would be written.
    pub fn board_path(&self) -> String {
        self.board.as_ref().map_or_else(
            || join_path(&self.config.folders.implementation, board::BOARD_FILE),
            |board| board.path.clone(),
        )
    }

    /// Problems with the directories that BMAD is set to, such as one outside the project. Tribunal then looks in the default
    /// directory, where BMAD's workflows do not work.
    pub fn misplaced_folders(&self) -> impl Iterator<Item = &FileProblem> {
        self.config
            .problems
            .iter()
            .filter(|problem| problem.rule == "config-folder" && problem.weight == ProblemWeight::Error)
    }

    /// Directories of plans, settings and skills, which no story's change is about.
    pub fn bookkeeping_folders(&self) -> Vec<String> {
        let mut all_folders = self.document_folders();
        all_folders.extend(self.layout.root.clone());
        all_folders.extend(self.layout.clients.iter().map(|client_layout| client_layout.folder.clone()));
        // An empty path would cover the whole project.
        all_folders.retain(|folder| !folder.is_empty());
        all_folders
    }

    /// The folders of plans, stories and boards.
    pub fn document_folders(&self) -> Vec<String> {
        let folders = &self.config.folders;
        let all_folders = [&folders.output, &folders.planning, &folders.implementation];
        all_folders.into_iter().filter(|folder| !folder.is_empty()).cloned().collect()
    }

    /// Finds the documents of the project. That lists all of its folders for documents.
    pub fn find_documents(&self) -> ProjectDocuments {
        documents::find_documents(&self.project_files, &self.config.folders)
    }

    /// Reads all files with epics as one plan.
    pub fn read_epics(&self) -> EpicsDocument {
        self.read_epics_among(&self.find_documents())
    }

    /// Reads those of the documents that have epics as one plan.
    pub fn read_epics_among(&self, found_documents: &ProjectDocuments) -> EpicsDocument {
        let paths = found_documents.of_kind(DocumentKind::Epics).flat_map(ProjectDocument::paths);
        let read_file = |path: &str| Some((path.to_string(), self.project_files.read_file(path).ok().flatten()?));
        let texts: Vec<(String, String)> = paths.filter_map(read_file).collect();
        let parts: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        epics::read_epics(&parts)
    }

    /// The path of a story's file.
    pub fn find_story_file(&self, story_key: &StoryKey) -> Option<String> {
        self.story_files.find_file(story_key, self.board.as_ref()).map(|story_file| story_file.path.clone())
    }

    /// The path at which a story's file would be written.
    pub fn new_story_path(&self, story_key: &StoryKey) -> String {
        join_path(&self.config.folders.implementation, &format!("{story_key}.md"))
    }

    /// The path of the ledger of deferred work, whether it exists or not.
    pub fn ledger_path(&self) -> String {
        join_path(&self.config.folders.implementation, deferred_work::LEDGER_FILE)
    }

    /// The client whose commands are shown: the first one that has any.
    pub fn command_client(&self) -> &str {
        match self.layout.clients.first().map(|client| client.name.as_str()) {
            // The shared `agents` directory is what Codex reads.
            Some("agents") => "codex",
            Some(client_name) => client_name,
            None => "claude-code",
        }
    }
}

/// Reports a second board: agents may work with either.
fn find_other_board(project_files: &ProjectDirectory, config: &BmadConfig, board_path: &str) -> Option<FileProblem> {
    let other_paths = board::candidate_paths(&config.folders).into_iter().filter(|path| path != board_path);
    let other_path =
        other_paths.into_iter().find(|path| project_files.read_file(path).is_ok_and(|text| text.is_some()))?;
    let problem =
        FileProblem::warning("board-second", board_path, format!("this board is used, but there is also {other_path}"));
    Some(problem.with_reason("Agents may work with either of them.").with_advice("remove the one that is out of date"))
}

/// Joins a directory and a name.
fn join_path(folder: &str, file_name: &str) -> String {
    if folder.is_empty() { file_name.to_string() } else { format!("{folder}/{file_name}") }
}
