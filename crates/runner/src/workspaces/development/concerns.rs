//! Finds what is questionable about work that is about to land, from the commits alone: lost files, added secrets, deleted tests, and
//! what its story has lost. [`tribunal_workflows::development::concerns`] says what follows from it.

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    fs,
};

use tribunal_bmad::story::{self, Story, StoryTask};
use tribunal_engine::ids::CommitId;
use tribunal_workflows::development::{
    commits::Integrate,
    concerns::{Additions, LandingConcern, find_removed, names_path},
    workspace::PathChange,
};

use super::{
    DevelopmentWorkspace, WorkspaceError,
    contents::TreeDifference,
    integrate::list_changes,
    user_repository::{UserRepository, split_paths},
};
use crate::{
    git::object_reader::{ObjectKind, ObjectReader},
    masking::Masker,
    project::{story_facts::is_test_name, subject::is_plain_path},
};

/// Longer files are not searched for secrets: they are data.
const MAX_SEARCHED_BYTES: u64 = 1 << 20;
/// The longest commit that is read, and the longest story of a commit.
const MAX_COMMIT_BYTES: u64 = 16 << 20;
const MAX_STORED_STORY_BYTES: u64 = 64 << 20;
/// The longest story or plan that is read.
const MAX_NAMING_BYTES: u64 = 4 << 20;
/// What git writes as the mode of a file or a link, whose content is its target; other modes are submodules.
const FILE_MODES: [&str; 3] = ["100644", "100755", "120000"];

/// Work that is about to land.
pub(super) struct WorkInspection<'a> {
    pub repository: &'a UserRepository,
    pub workspace: &'a DevelopmentWorkspace,
    pub request: &'a Integrate,
    pub masker: &'a Masker,
    objects: RefCell<ObjectReader<'a>>,
    /// The commits of the work, once they are known.
    commits: OnceCell<Vec<CommitId>>,
    /// What they change, once that is known.
    changes: OnceCell<Vec<TreeDifference>>,
}

/// How work relates to a commit of its branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkStanding {
    /// The branch has it.
    Landed,
    /// It follows the commit with which it began.
    Follows,
    Unrelated,
}

impl<'a> WorkInspection<'a> {
    pub fn new(
        repository: &'a UserRepository,
        workspace: &'a DevelopmentWorkspace,
        request: &'a Integrate,
        masker: &'a Masker,
    ) -> WorkInspection<'a> {
        let objects = RefCell::new(repository.object_reader());
        let (commits, changes) = (OnceCell::new(), OnceCell::new());
        WorkInspection { repository, workspace, request, masker, objects, commits, changes }
    }

    /// Compares the work with where its branch is.
    pub fn compare_with(&self, tip: &CommitId) -> Result<WorkStanding, WorkspaceError> {
        let Integrate { expected, commit, .. } = self.request;
        // The work of a story is a single commit, and then its own text says everything.
        if tip == expected && self.read_parents(commit)? == [expected.clone()] {
            let _ = self.commits.set(vec![commit.clone()]);
            return Ok(WorkStanding::Follows);
        }
        let range = format!("{tip}..{commit}");
        let listed = self.repository.query_text(["rev-list", "--parents", &range])?;
        if listed.is_empty() {
            return Ok(WorkStanding::Landed);
        }
        // A way from the work to where it began ends with a commit that has no other commit in between.
        let follows = listed.lines().any(|line| line.split(' ').skip(1).any(|parent| parent == expected.as_str()));
        if tip == expected {
            let commits = listed.lines().filter_map(|line| line.split(' ').next()).map(CommitId::new);
            let _ = self.commits.set(commits.collect());
        }
        Ok(if follows { WorkStanding::Follows } else { WorkStanding::Unrelated })
    }

    fn read_parents(&self, commit: &CommitId) -> Result<Vec<CommitId>, WorkspaceError> {
        let commit_bytes = self.objects.borrow_mut().read(ObjectKind::Commit, commit.as_str(), MAX_COMMIT_BYTES)?;
        let commit_bytes = commit_bytes.unwrap_or_default();
        let commit_text = String::from_utf8_lossy(&commit_bytes);
        let headers = commit_text.lines().take_while(|line| !line.is_empty());
        Ok(headers.filter_map(|line| line.strip_prefix("parent ")).map(CommitId::new).collect())
    }

    /// Lists what the work changes.
    pub fn list_changes(&self) -> Result<&[TreeDifference], WorkspaceError> {
        if let Some(changes) = self.changes.get() {
            return Ok(changes);
        }
        let changes = list_changes(self.repository, &self.request.expected, &self.request.commit)?;
        Ok(self.changes.get_or_init(|| changes))
    }

    fn list_commits(&self) -> Result<&[CommitId], WorkspaceError> {
        if let Some(commits) = self.commits.get() {
            return Ok(commits);
        }
        let range = format!("{}..{}", self.request.expected, self.request.commit);
        let listed = self.repository.query_text(["rev-list", &range])?;
        Ok(self.commits.get_or_init(|| listed.lines().map(CommitId::new).collect()))
    }

    /// Lists what is questionable and was not accepted.
    pub fn find_concerns(&self) -> Result<Vec<LandingConcern>, WorkspaceError> {
        let gate = &self.request.gate;
        if gate.is_open {
            return Ok(Vec::new());
        }
        let changes = self.list_changes()?;
        let base_story = gate.story.as_deref().and_then(|path| self.read_base_story(path));
        let mut concerns = self.find_lost_files(changes, base_story.as_deref())?;
        concerns.extend(self.find_secrets(changes)?);
        if let (Some(path), Some(base_text)) = (gate.story.as_deref(), base_story.as_deref()) {
            concerns.extend(self.find_story_losses(path, base_text));
        }
        concerns.retain(|concern| !gate.accepted.contains(concern));
        Ok(concerns)
    }

    /// Finds deleted files. One whose content is elsewhere now has moved.
    fn find_lost_files(
        &self,
        changes: &[TreeDifference],
        base_story: Option<&str>,
    ) -> Result<Vec<LandingConcern>, WorkspaceError> {
        let is_deleted = |change: &&TreeDifference| {
            change.change == PathChange::Deleted && !self.workspace.record.is_own_file(&change.path)
        };
        let deleted: Vec<&TreeDifference> = changes.iter().filter(is_deleted).collect();
        if deleted.is_empty() {
            return Ok(Vec::new());
        }
        let moved = self.list_moved_files()?;
        let gate = &self.request.gate;
        let mut naming_texts = vec![gate.naming_text.clone()];
        naming_texts.extend(base_story.map(String::from));
        naming_texts.extend(gate.naming_files.iter().filter_map(|path| self.read_base_story(path)));
        let lost = deleted.into_iter().filter_map(|change| {
            let path = self.workspace.shown_path(&change.path);
            if let Some(new_path) = moved.get(&change.path) {
                // A test that no runner finds any more is gone.
                let is_hidden = is_test_name(&path) && !is_test_name(&self.workspace.shown_path(new_path));
                return is_hidden.then_some(LandingConcern::DeletedTest { path });
            }
            let is_named = naming_texts.iter().any(|text| names_path(text, &path));
            match (is_named, is_test_name(&path)) {
                (false, _) => Some(LandingConcern::LostFile { path }),
                (true, true) => Some(LandingConcern::DeletedTest { path }),
                (true, false) => None,
            }
        });
        Ok(lost.collect())
    }

    /// Lists the files that the work has renamed, with their new paths.
    fn list_moved_files(&self) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, WorkspaceError> {
        let Integrate { expected, commit, .. } = self.request;
        let (old, new) = (expected.as_str(), commit.as_str());
        let arguments = ["diff-tree", "-r", "-M", "--diff-filter=R", "--name-status", "-z", old, new];
        let output = self.repository.query(arguments)?;
        // The form is: R087<nul>old path<nul>new path<nul>
        let words = split_paths(&output);
        Ok(words.chunks_exact(3).map(|words| (words[1].clone(), words[2].clone())).collect())
    }

    /// Finds secrets in changed files, and in what earlier commits of the work have of them.
    fn find_secrets(&self, changes: &[TreeDifference]) -> Result<Vec<LandingConcern>, WorkspaceError> {
        let is_file = |mode: &str| FILE_MODES.contains(&mode);
        let mut new_objects: BTreeMap<String, SearchedFile> = BTreeMap::new();
        for change in changes.iter().filter(|change| is_file(&change.file_mode)) {
            let path = self.workspace.shown_path(&change.path);
            new_objects.insert(change.object_id.clone(), SearchedFile { path, is_past: false });
        }
        for (object_id, path) in self.list_past_objects()? {
            let path = self.workspace.shown_path(&path);
            new_objects.entry(object_id).or_insert(SearchedFile { path, is_past: true });
        }
        let old_objects: BTreeSet<String> = changes
            .iter()
            .filter(|change| is_file(&change.old_mode))
            .map(|change| change.old_object_id.clone())
            .collect();
        new_objects.retain(|object_id, _| !old_objects.contains(object_id));
        let mut concerns = self.find_secret_names(changes);
        let mut suspicious = Vec::new();
        self.read_texts(new_objects.keys(), &mut |object_id, text| {
            // Most files have none; only then the old texts are worth reading.
            if !self.masker.find_added_kinds(std::iter::empty(), text).is_empty() {
                suspicious.push((object_id.to_string(), text.to_string()));
            }
        })?;
        if suspicious.is_empty() {
            return Ok(concerns);
        }
        let mut old_texts = Vec::new();
        self.read_texts(old_objects.iter(), &mut |_, text| old_texts.push(text.to_string()))?;
        for (object_id, text) in suspicious {
            let Some(file) = new_objects.get(&object_id) else { continue };
            for kind in self.masker.find_added_kinds(old_texts.iter().map(String::as_str), &text) {
                let (path, kind) = (file.path.clone(), kind.to_string());
                concerns.push(LandingConcern::AddedSecret { path, kind, only_in_history: file.is_past });
            }
        }
        Ok(concerns)
    }

    /// Finds secrets in the names of new files.
    fn find_secret_names(&self, changes: &[TreeDifference]) -> Vec<LandingConcern> {
        let new_files = changes.iter().filter(|change| change.change == PathChange::Added);
        let named = new_files.flat_map(|change| {
            let path = self.workspace.shown_path(&change.path);
            let kinds = self.masker.find_added_kinds(std::iter::empty(), &path);
            let shown_path = self.masker.mask(&path).into_owned();
            kinds.into_iter().map(move |kind| (shown_path.clone(), kind.to_string()))
        });
        named.map(|(path, kind)| LandingConcern::AddedSecret { path, kind, only_in_history: false }).collect()
    }

    /// Lists the files that commits of the work have, besides those of the last one.
    fn list_past_objects(&self) -> Result<Vec<(String, Vec<u8>)>, WorkspaceError> {
        let Integrate { expected, commit, .. } = self.request;
        let mut objects = Vec::new();
        for past_commit in self.list_commits()?.iter().filter(|past_commit| *past_commit != commit) {
            let changes = list_changes(self.repository, expected, past_commit)?;
            let files = changes.into_iter().filter(|change| FILE_MODES.contains(&change.file_mode.as_str()));
            objects.extend(files.map(|change| (change.object_id, change.path)));
        }
        Ok(objects)
    }

    /// Reads the texts of objects. What is long or no text is left out.
    fn read_texts<'o>(
        &self,
        object_ids: impl Iterator<Item = &'o String>,
        take_text: &mut dyn FnMut(&str, &str),
    ) -> Result<(), WorkspaceError> {
        let mut objects = self.objects.borrow_mut();
        for object_id in object_ids {
            let content = objects.read(ObjectKind::Blob, object_id, MAX_SEARCHED_BYTES)?;
            // A token is ASCII, however the rest of a text is encoded.
            if let Some(content) = content.filter(|content| !content.contains(&0)) {
                take_text(object_id, &String::from_utf8_lossy(&content));
            }
        }
        Ok(())
    }

    /// Finds the criteria and tasks that the story had on the branch and does not have in the work.
    fn find_story_losses(&self, path: &str, base_text: &str) -> Vec<LandingConcern> {
        // A file that is gone is a lost file.
        let Some(work_text) = self.read_work_story(path) else { return Vec::new() };
        let (base, work) = (story::read_story(path, base_text), story::read_story(path, &work_text));
        let criteria =
            |story: &Story| -> Vec<String> { story.criteria.iter().map(|criterion| criterion.text.clone()).collect() };
        let tasks = |story: &Story| {
            let mut texts = Vec::new();
            collect_texts(&story.tasks, &mut texts);
            texts
        };
        let removed_criteria = find_removed_texts(&criteria(&base), &criteria(&work), Additions::Refused).into_iter();
        let removed_tasks = find_removed_texts(&tasks(&base), &tasks(&work), Additions::Accepted).into_iter();
        removed_criteria
            .map(|text| LandingConcern::RemovedCriterion { text: self.masker.mask(&text).into_owned() })
            .chain(removed_tasks.map(|text| LandingConcern::RemovedTask { text: self.masker.mask(&text).into_owned() }))
            .collect()
    }

    /// Reads a file of the project as the branch has it. One that git ignores is read in the user's checkout, where no agent writes.
    fn read_base_story(&self, path: &str) -> Option<String> {
        self.read_blob(&self.request.expected, path).or_else(|| match self.workspace.is_in_place() {
            true => None,
            false => read_plain_file(&self.workspace.record.project_root, path),
        })
    }

    fn read_work_story(&self, path: &str) -> Option<String> {
        let read_ignored = || read_plain_file(&self.workspace.agent_dir(), path);
        self.read_blob(&self.request.commit, path).or_else(read_ignored)
    }

    fn read_blob(&self, commit: &CommitId, path: &str) -> Option<String> {
        let object_name = format!("{commit}:{}{path}", self.workspace.record.prefix);
        let bytes = self.objects.borrow_mut().read(ObjectKind::Blob, &object_name, MAX_STORED_STORY_BYTES).ok()??;
        String::from_utf8(bytes).ok()
    }
}

/// A file in which secrets are searched.
struct SearchedFile {
    path: String,
    /// Whether only an earlier commit of the work has this content.
    is_past: bool,
}

fn find_removed_texts(before: &[String], after: &[String], additions: Additions) -> Vec<String> {
    let after: Vec<&str> = after.iter().map(String::as_str).collect();
    find_removed(before.iter().map(String::as_str), &after, additions)
}

fn collect_texts(tasks: &[StoryTask], texts: &mut Vec<String>) {
    for task in tasks {
        texts.push(task.text.clone());
        collect_texts(&task.subtasks, texts);
    }
}

fn read_plain_file(directory: &std::path::Path, path: &str) -> Option<String> {
    if !is_plain_path(path) {
        return None;
    }
    let file_path = directory.join(path);
    let is_short = |metadata: &fs::Metadata| metadata.is_file() && metadata.len() <= MAX_NAMING_BYTES;
    fs::symlink_metadata(&file_path).ok().filter(is_short)?;
    fs::read_to_string(&file_path).ok()
}
