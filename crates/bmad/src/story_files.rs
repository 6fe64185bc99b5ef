//! Finds the files of stories, wherever a project keeps them.
//!
//! Stories are in the folder for implementation artifacts or below it, in folders that earlier versions and users have, and where
//! the board or the settings say. What is in an archive is told apart. Only names are looked at, so thousands of stories cost
//! nothing but listings.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    board::Board,
    config::{self, ProjectFolders},
    keys::StoryKey,
    project_files::ProjectFiles,
    story,
};

/// Folders that are looked at besides those of the settings.
const OTHER_FOLDERS: [&str; 6] = [
    "docs/implementation-artifacts",
    "docs/sprint-artifacts",
    "docs/stories",
    "docs/epics",
    "stories",
    "_bmad-output/implementation-artifacts",
];
const MAX_DEPTH: usize = 8;
/// The most names that are looked at.
const MAX_NAMES: usize = 200_000;

/// The file of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryFile {
    pub path: String,
    pub key: StoryKey,
    /// A spec of late eras: `spec-1-2-log-in.md`.
    pub is_spec: bool,
    pub is_archived: bool,
}

/// All files of stories of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoryFiles {
    files: Vec<StoryFile>,
    /// The positions of the files by what their stories are looked up by.
    by_name: BTreeMap<String, Vec<usize>>,
}

impl StoryFiles {
    /// All files, sorted by the keys of their stories.
    pub fn all(&self) -> impl Iterator<Item = &StoryFile> {
        self.files.iter()
    }

    /// Finds the file of a story: by its key, or by its number with another title, if there is only one such file and it belongs
    /// to no other story of the board. A story's own file comes before a spec, and both before what is in an archive.
    pub fn find_file(&self, story_key: &StoryKey, board: Option<&Board>) -> Option<&StoryFile> {
        let positions = self.by_name.get(&story_key.lookup_name())?;
        let candidates = || positions.iter().map(|position| &self.files[*position]);
        let rank = |file: &&StoryFile| (file.is_archived, file.is_spec);
        if let Some(exact_file) = candidates().filter(|file| file.key == *story_key).min_by_key(rank) {
            return Some(exact_file);
        }
        let is_other_story =
            |file: &StoryFile| board.is_some_and(|board| board.stories().any(|(board_key, _)| *board_key == file.key));
        // Titles change after a file is created; the number stays. Two candidates are ambiguous, and then none is taken.
        let best_rank = candidates().map(|file| rank(&file)).min()?;
        let mut best_files = candidates().filter(|file| rank(file) == best_rank && !is_other_story(file));
        let first_file = best_files.next();
        first_file.filter(|_| best_files.next().is_none())
    }
}

/// Finds all files of stories.
pub fn find_story_files(
    project_files: &dyn ProjectFiles,
    folders: &ProjectFolders,
    board: Option<&Board>,
) -> StoryFiles {
    let mut finder = StoryFileFinder {
        project_files,
        board_keys: board.into_iter().flat_map(Board::stories).map(|(key, _)| key.as_str().to_lowercase()).collect(),
        names_left: MAX_NAMES,
        seen_folders: BTreeSet::new(),
        files: Vec::new(),
    };
    for folder in search_folders(folders, board) {
        finder.search_folder(&folder, MAX_DEPTH);
    }
    // The project's own documentation and its root have many other files.
    finder.search_documentation(&folders.knowledge, MAX_DEPTH);
    finder.search_folder("", 0);
    let mut files = finder.files;
    files.sort_by(|first, second| (&first.key, &first.path).cmp(&(&second.key, &second.path)));
    let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (position, file) in files.iter().enumerate() {
        by_name.entry(file.key.lookup_name()).or_default().push(position);
    }
    StoryFiles { files, by_name }
}

/// The folders that are searched with all that is below them.
fn search_folders(folders: &ProjectFolders, board: Option<&Board>) -> Vec<String> {
    let mut search_folders = vec![folders.implementation.clone(), folders.output.clone()];
    if let Some(board) = board {
        let board_folder = board.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        search_folders.push(board_folder.to_string());
        // The board is a file of the project, so its location may not lead out of it.
        let story_location =
            board.story_location.as_deref().map(config::normalize_folder).filter(|location| {
                !location.starts_with('/') && !location.split('/').any(|path_part| path_part == "..")
            });
        search_folders.extend(story_location.map(String::from));
    }
    search_folders.extend(OTHER_FOLDERS.map(String::from));
    // An empty path is the whole project.
    search_folders.retain(|folder| !folder.is_empty());
    search_folders
}

struct StoryFileFinder<'a> {
    project_files: &'a dyn ProjectFiles,
    /// The keys on the board, for files that are named after a key of words.
    board_keys: BTreeSet<String>,
    names_left: usize,
    seen_folders: BTreeSet<String>,
    files: Vec<StoryFile>,
}

impl StoryFileFinder<'_> {
    fn search_folder(&mut self, folder: &str, depth: usize) {
        for subfolder in self.add_files(folder) {
            if depth > 0 {
                self.search_folder(&subfolder, depth - 1);
            }
        }
    }

    /// Searches a folder with other documents: only folders that are named after stories or epics can have any.
    fn search_documentation(&mut self, folder: &str, depth: usize) {
        if folder.is_empty() || self.seen_folders.contains(folder) {
            return;
        }
        for subfolder in self.list_names(folder).1 {
            let name = file_name(&subfolder).to_lowercase();
            if ["stor", "epic", "sprint", "artifact"].iter().any(|word| name.contains(word)) {
                self.search_folder(&subfolder, depth);
            } else if depth > 0 {
                self.search_documentation(&subfolder, depth - 1);
            }
        }
    }

    /// Adds the stories of one folder and returns its subfolders.
    fn add_files(&mut self, folder: &str) -> Vec<String> {
        if !self.seen_folders.insert(folder.to_string()) {
            return Vec::new();
        }
        let (file_paths, subfolders) = self.list_names(folder);
        let new_files: Vec<StoryFile> =
            file_paths.into_iter().filter_map(|file_path| self.make_story_file(file_path)).collect();
        self.files.extend(new_files);
        subfolders
    }

    fn make_story_file(&self, file_path: String) -> Option<StoryFile> {
        let name = file_name(&file_path);
        let file_stem = name.strip_suffix(".md")?;
        if is_report_name(file_stem) {
            return None;
        }
        let key = story::key_from_path(&file_path).or_else(|| {
            // `US-12-pay.md` is the file of `US-12`.
            let lower_stem = file_stem.to_lowercase();
            let prefix_ends = lower_stem.match_indices(['-', '_', '.']).map(|(index, _)| index);
            let mut prefix_ends: Vec<usize> = prefix_ends.chain([lower_stem.len()]).collect();
            prefix_ends.reverse();
            let key_end = prefix_ends.into_iter().find(|end| self.board_keys.contains(&lower_stem[..*end]))?;
            StoryKey::parse(file_stem.get(..key_end)?)
        })?;
        Some(StoryFile {
            is_spec: name.starts_with("spec-"),
            is_archived: is_archived(&file_path),
            key,
            path: file_path,
        })
    }

    /// The files and the subfolders of a folder, as paths.
    fn list_names(&mut self, folder: &str) -> (Vec<String>, Vec<String>) {
        let join = |name: &str| if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") };
        let names: Vec<String> = self.project_files.list_names(folder).into_iter().take(self.names_left).collect();
        self.names_left -= names.len();
        let is_visible = |name: &&String| !name.starts_with('.') && name.as_str() != "node_modules/";
        let (subfolders, files): (Vec<&String>, Vec<&String>) =
            names.iter().filter(is_visible).partition(|name| name.ends_with('/'));
        (
            files.into_iter().map(|name| join(name)).collect(),
            subfolders.into_iter().map(|name| join(name.trim_end_matches('/'))).collect(),
        )
    }
}

fn file_name(file_path: &str) -> &str {
    file_path.rsplit('/').next().unwrap_or(file_path)
}

/// Whether a file is about a story without being it: a review of it, a report, a note with a date.
fn is_report_name(file_stem: &str) -> bool {
    const REPORT_ENDINGS: [&str; 12] = [
        "validation-report",
        ".validation",
        "code-review",
        "review-report",
        "completion-report",
        ".completion",
        "-completion",
        "test-report",
        "qa-report",
        ".context",
        "-retrospective",
        "-retro",
    ];
    let lower_stem = file_stem.to_lowercase();
    // A date behind the name does not matter: `1-2-x-validation-report-2026-01-02`.
    let undated =
        lower_stem.trim_end_matches(|character: char| character.is_ascii_digit() || "-_.".contains(character));
    REPORT_ENDINGS.iter().any(|ending| lower_stem.ends_with(ending) || undated.ends_with(ending))
        || crate::keys::starts_with_date(&lower_stem)
}

fn is_archived(file_path: &str) -> bool {
    const ARCHIVE_NAMES: [&str; 8] =
        ["archive", "archived", "archives", "_archive", "_archived", "old", "backup", "deprecated"];
    let folder = file_path.rsplit_once('/').map_or("", |(folder, _)| folder);
    folder.split('/').any(|segment| ARCHIVE_NAMES.iter().any(|name| segment.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{board::read_board, project_files::InMemoryFiles};

    fn folders() -> ProjectFolders {
        ProjectFolders {
            output: "out".into(),
            implementation: "out/impl".into(),
            knowledge: "docs".into(),
            ..ProjectFolders::default()
        }
    }

    fn find_all(paths: &[&str], board_text: &str) -> StoryFiles {
        let files = InMemoryFiles::from_files(paths.iter().map(|path| (*path, "x")));
        let board = read_board("out/impl/sprint-status.yaml", board_text);
        find_story_files(&files, &folders(), Some(&board).filter(|_| !board_text.is_empty()))
    }

    #[test]
    fn stories_are_found_at_any_depth_and_nothing_else_is() {
        let found = find_all(
            &[
                "out/impl/1-1-a.md",
                "out/impl/stories/epic-1/1-2-b.md",
                "out/impl/Story/2/2-1/2-1-c.md",
                "out/impl/stories/archived/1-3-old.md",
                "docs/stories/3-1-d.md",
                "docs/archive/v4/stories/epic-4/4.1.e.md",
                "docs/sprint-artifacts/story-5.1.md",
                "docs/guides/1-1-intro.md",
                "out/impl/1-1-a.validation-report.md",
                "out/impl/1-1-code-review.md",
                "out/impl/2026-05-02-notes.md",
                "out/impl/epic-1-retro-2026-01-01.md",
                "out/impl/.hidden/9-9-x.md",
                "6-1-root.md",
            ],
            "",
        );
        let shown: Vec<String> = found
            .all()
            .map(|file| format!("{}{}", file.path, if file.is_archived { " (archived)" } else { "" }))
            .collect();
        assert_eq!(
            shown,
            [
                "out/impl/1-1-a.md",
                "out/impl/stories/epic-1/1-2-b.md",
                "out/impl/stories/archived/1-3-old.md (archived)",
                "out/impl/Story/2/2-1/2-1-c.md",
                "docs/stories/3-1-d.md",
                "docs/archive/v4/stories/epic-4/4.1.e.md (archived)",
                "docs/sprint-artifacts/story-5.1.md",
                "6-1-root.md",
            ]
        );
    }

    #[test]
    fn a_story_is_found_by_its_key_or_by_its_number() {
        let board_text = "development_status:\n  1-1-a: done\n  1-2-new-title: done\n  CORE-001: done\n  2-1-x: done\n  2-1-y: done\n";
        let found = find_all(
            &[
                "out/impl/1-1-a.md",
                "out/impl/spec-1-1-a.md",
                "out/impl/deep/1-2-old-title.md",
                "out/impl/CORE-001-pay.md",
                "out/impl/2-1-x.md",
            ],
            board_text,
        );
        let board = read_board("out/impl/sprint-status.yaml", board_text);
        let find_path = |key_text: &str| {
            let key = StoryKey::parse(key_text).unwrap();
            found.find_file(&key, Some(&board)).map(|file| file.path.clone())
        };
        assert_eq!(find_path("1-1-a").as_deref(), Some("out/impl/1-1-a.md"));
        assert_eq!(find_path("1-2-new-title").as_deref(), Some("out/impl/deep/1-2-old-title.md"));
        assert_eq!(find_path("CORE-001").as_deref(), Some("out/impl/CORE-001-pay.md"));
        assert_eq!(find_path("2-1-y"), None, "the file belongs to another story");
        assert_eq!(find_path("9-9-z"), None);
    }
}
