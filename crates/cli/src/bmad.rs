//! A project's BMAD files as commands need them: layout, settings, board. A project without BMAD has none of them.

use std::collections::BTreeMap;

use tribunal_bmad::{
    board::{self, Board},
    config::{self, Config},
    keys::{self, Key, StoryKey},
    layout::{self, Layout},
    problem::{Problem, Weight},
    shelf::{self, Shelf},
};
use tribunal_report::escaped;
use tribunal_runner::{Project, shelf::Folder};

use crate::{
    complaint::{Complaint, NEGATIVE},
    settings::nearest,
};

/// The BMAD part of a project.
#[derive(Debug)]
pub(crate) struct Bmad {
    pub shelf: Folder,
    pub layout: Layout,
    pub config: Config,
    /// The board; `None` if there is none, or none that can be opened.
    pub board: Option<Board>,
    /// Paths of story files by the key of their story.
    stories: BTreeMap<String, String>,
    /// Why files could not be opened.
    pub problems: Vec<Problem>,
}

impl Bmad {
    pub fn of(project: &Project) -> Bmad {
        let shelf = Folder::at(project);
        let layout = layout::read(&shelf);
        let config = config::read(&shelf);
        let mut problems = Vec::new();
        // The first place that has a board wins.
        let board = board_places(&config).into_iter().find_map(|path| {
            let text = shelf::read(&shelf, &path, &mut problems)?;
            Some(board::read(&path, &text))
        });
        let stories = story_files(&shelf, &config, board.as_ref());
        Bmad { shelf, layout, config, board, stories, problems }
    }

    /// The path of the board, or where one would be written.
    pub fn board_path(&self) -> String {
        self.board.as_ref().map_or_else(
            || below(&self.config.folders.implementation, board::FILE),
            |board| board.path.clone(),
        )
    }

    /// Directories that BMAD uses but Tribunal may not: what is in their place is not what agents work on.
    pub fn misplaced(&self) -> impl Iterator<Item = &Problem> {
        self.config
            .problems
            .iter()
            .filter(|problem| problem.rule == "config-folder" && problem.weight == Weight::Error)
    }

    /// The board, or the error that says why there is none.
    pub fn require_board(&self) -> Result<&Board, Complaint> {
        let misplaced: Vec<Problem> = self.misplaced().cloned().collect();
        if !misplaced.is_empty() {
            return Err(unusable(&misplaced));
        }
        match &self.board {
            Some(board) if board.readable => Ok(board),
            Some(board) => Err(unusable(&board.problems)),
            None if !self.problems.is_empty() => Err(unusable(&self.problems)),
            None => Err(Complaint::usage(format!("there is no {} in this project", board::FILE))
                .why(format!("It was looked for in {}.", board_places(&self.config).join(" and ")))
                .todo("run BMAD's sprint planning, or name the project's folder with -C")),
        }
    }

    /// Finds the key that the user typed: as the board spells it, as a number, or as a file name.
    pub fn key(&self, typed: &str) -> Result<Key, Complaint> {
        let board = self.require_board()?;
        // An exact key wins, even if it is also a part of another one.
        if let Some(key) = Key::parse(typed).filter(|key| board.entry(key).is_some()) {
            return Ok(key);
        }
        let stories: Vec<&StoryKey> = board.stories().map(|(story, _)| story).collect();
        match keys::meant(typed, stories.iter().copied()).as_slice() {
            [story] => Ok(Key::Story((*story).clone())),
            [] => Err(self.unknown(typed, board)),
            several => {
                let named: Vec<String> = several.iter().map(ToString::to_string).collect();
                Err(Complaint::usage(format!("`{typed}` could be {}", named.join(" or ")))
                    .todo("type the whole key"))
            }
        }
    }

    fn unknown(&self, typed: &str, board: &Board) -> Complaint {
        // All keys of the board are candidates, not only stories.
        let all: Vec<String> = board.entries.iter().map(|entry| entry.key.to_string()).collect();
        let near = nearest(typed, &all.iter().map(String::as_str).collect::<Vec<_>>());
        let complaint = Complaint::usage(format!("there is no `{typed}` in {}", board.path));
        match near {
            Some(near) => complaint.todo(format!("did you mean {near}?")),
            None => complaint.todo("see its stories: tribunal status"),
        }
    }

    /// Directories of plans, settings and skills, which no story's change is about.
    pub fn bookkeeping(&self) -> Vec<String> {
        let folders = &self.config.folders;
        let mut all = vec![folders.output.clone(), folders.planning.clone(), folders.implementation.clone()];
        all.extend(self.layout.root.clone());
        all.extend(self.layout.clients.iter().map(|client| client.folder.clone()));
        // An empty path would cover the whole project.
        all.retain(|folder| !folder.is_empty());
        all
    }

    /// The path of a story's file: named by its key, as a spec of late eras, or by its number with another title, if there is
    /// only one such file and it belongs to no other story.
    pub fn story_file(&self, key: &StoryKey) -> Option<String> {
        let is_another_s = |other: &StoryKey| {
            self.board.as_ref().is_some_and(|board| board.entry(&Key::Story(other.clone())).is_some())
        };
        let of_number = |(name, _): &(&String, &String)| {
            let other = StoryKey::parse(name);
            other.is_some_and(|other| other.number() == key.number() && !is_another_s(&other))
        };
        // Titles change after a file is created; the number stays. Two candidates are ambiguous, and then none is taken.
        let only = || {
            let mut found = self.stories.iter().filter(of_number);
            let first = found.next().map(|(_, file)| file);
            first.filter(|_| found.next().is_none())
        };
        self.stories.get(&key.to_string()).or_else(only).cloned()
    }

    /// The path at which a story's file would be written.
    pub fn story_path(&self, key: &StoryKey) -> String {
        below(&self.config.folders.implementation, &format!("{key}.md"))
    }

    /// The client whose commands are shown: the first one that has any.
    pub fn client(&self) -> &str {
        match self.layout.clients.first().map(|client| client.name.as_str()) {
            // The shared `agents` directory is what Codex reads.
            Some("agents") => "codex",
            Some(name) => name,
            None => "claude-code",
        }
    }
}

/// Collects story files by the key in their names: beside the board, in a directory of their own below it, or where the board
/// says they are. A story's own file replaces a spec of it.
fn story_files(shelf: &Folder, config: &Config, board: Option<&Board>) -> BTreeMap<String, String> {
    let own = &config.folders.implementation;
    let said = board.and_then(|board| board.story_location.as_deref()).map(config::folder);
    // The board is a file of the project, so its location may not lead out of it.
    let inside = said.filter(|said| !said.starts_with('/') && !said.split('/').any(|part| part == ".."));
    let mut folders = vec![own.clone(), below(own, "stories")];
    folders.extend(inside.filter(|said| !said.is_empty()).map(String::from));
    let mut files = BTreeMap::new();
    // Later insertions win: a story's own file over a spec, and an earlier directory over a later one.
    for prefix in ["spec-", ""] {
        for folder in folders.iter().rev() {
            for name in shelf.names(folder) {
                let key = name.strip_suffix(".md").and_then(|name| name.strip_prefix(prefix));
                if let Some(key) = key.filter(|key| StoryKey::parse(key).is_some()) {
                    files.insert(key.to_string(), below(folder, &name));
                }
            }
        }
    }
    files
}

/// The places of a board: the directory of all eras, and the one that some early alphas used.
fn board_places(config: &Config) -> Vec<String> {
    let mut places =
        vec![below(&config.folders.implementation, board::FILE), below(&config.folders.output, board::FILE)];
    places.dedup();
    places
}

/// Joins a directory and a name.
fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") }
}

/// The error for a board that the user has to repair first.
fn unusable(problems: &[Problem]) -> Complaint {
    let Some(problem) = problems.first() else { return Complaint::new(NEGATIVE, "the board cannot be used") };
    let complaint = Complaint::new(NEGATIVE, problem.to_string()).why(problem.why.clone());
    if problem.todo.is_empty() { complaint } else { complaint.todo(problem.todo.clone()) }
}

/// Draws a problem: `[!] path:line:column: message`, with the reason and the remedy below it.
pub(crate) fn draw(problem: &Problem) -> String {
    let mark = match problem.weight {
        Weight::Error => "[!]",
        Weight::Warning => "[W]",
        Weight::Note => "[i]",
    };
    let mut out = format!("{mark} {}\n", escaped(&problem.to_string()));
    for line in [&problem.why, &problem.todo].into_iter().filter(|line| !line.is_empty()) {
        out.push_str(&format!("    {}\n", escaped(line)));
    }
    out
}
