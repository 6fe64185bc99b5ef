//! Finds what is questionable about work that is about to land, from the commits alone: lost files, added secrets, deleted tests, and
//! what its story has lost. [`tribunal_workflows::development::concerns`] says what follows from it.

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    fs,
};

use tribunal_engine::ids::{CommitId, TreeId};
use tribunal_workflows::development::{
    check_scripts::{is_test_name, loses_test_name},
    commits::Integrate,
    concerns::{LandingConcern, names_path},
    parking::name_files,
    test_functions::{TestLanguage, find_test_functions},
    weakened_tests::{FewerAssertions, TestChanges, TestFile, compare_tests},
    workspace::PathChange,
};

use super::{
    DevelopmentWorkspace, WorkspaceError,
    during_work::CommitDuringWork,
    git_listings::TreeDifference,
    integrate::list_changes,
    reverted_commits::{RevertedCommit, RevertedFile, find_taken_back},
    story_losses::find_story_losses,
    user_repository::{UserRepository, split_paths},
};
use crate::{
    git::{
        WORK_TIMEOUT,
        object_reader::{ObjectKind, ObjectReader},
    },
    masking::Masker,
    project::subject::is_plain_path,
};

/// Longer files are not searched for secrets: they are data.
const MAX_SEARCHED_BYTES: u64 = 1 << 20;
/// The longest commit that is read, and the longest story of a commit.
const MAX_COMMIT_BYTES: u64 = 16 << 20;
const MAX_STORED_STORY_BYTES: u64 = 64 << 20;
/// The longest story or plan that is read.
const MAX_NAMING_BYTES: u64 = 4 << 20;
/// The settings of a project.
const SETTINGS_FILES: [&str; 2] = ["tribunal.yaml", "tribunal.yml"];
/// What git writes as the mode of a file or a link, whose content is its target; other modes are submodules.
const FILE_MODES: [&str; 3] = ["100644", "100755", "120000"];

/// Work that is about to land.
pub(super) struct WorkInspection<'a> {
    pub repository: &'a UserRepository,
    pub workspace: &'a DevelopmentWorkspace,
    pub request: &'a Integrate,
    pub masker: &'a Masker,
    objects: RefCell<ObjectReader<'a>>,
    /// The tree of the work, once it is known.
    tree: OnceCell<TreeId>,
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
        let (tree, commits, changes) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        WorkInspection { repository, workspace, request, masker, objects, tree, commits, changes }
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
        let mut headers = commit_text.lines().take_while(|line| !line.is_empty());
        if let (true, Some(tree)) =
            (*commit == self.request.commit, headers.next().and_then(|line| line.strip_prefix("tree ")))
        {
            let _ = self.tree.set(TreeId::new(tree));
        }
        Ok(headers.filter_map(|line| line.strip_prefix("parent ")).map(CommitId::new).collect())
    }

    /// Refuses work that differs from what has passed the checks in other files than those of our own bookkeeping.
    pub fn refuse_unverified(&self) -> Result<(), WorkspaceError> {
        let Some(verified) = &self.request.verified else { return Ok(()) };
        let commit = &self.request.commit;
        if self.tree.get().is_none() {
            self.read_parents(commit)?;
        }
        // What was written into a verified tree is a tree that has nothing else.
        if self.tree.get() == Some(verified.current_tree()) {
            return Ok(());
        }
        let mut others = self.workspace.list_differences(verified.tree.as_str(), commit.as_str())?;
        others.retain(|path| !verified.own_paths.contains(path));
        if others.is_empty() {
            return Ok(());
        }
        let (commit, others) = (commit.short_hex(), name_files(&others));
        Err(WorkspaceError::new_refusal(format!(
            "commit {commit} is not what has passed the checks; it differs in {others}"
        )))
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
        let naming_texts = self.list_naming_texts(base_story.as_deref());
        let is_named = |path: &str| naming_texts.iter().any(|text| names_path(text, path));
        let mut concerns = self.find_reverted(changes, &naming_texts)?;
        concerns.extend(self.find_commits_during_work(&self.request.expected)?);
        let reverted_paths: Vec<String> = concerns.iter().flat_map(list_reverted_paths).cloned().collect();
        let mut lost = self.find_lost_files(changes, &is_named)?;
        lost.retain(|concern| !matches!(concern, LandingConcern::LostFile { path } if reverted_paths.contains(path)));
        concerns.extend(lost);
        concerns.extend(self.find_secrets(changes)?);
        let changed_paths = changes.iter().map(|change| self.workspace.shown_path(&change.path));
        let settings = changed_paths.filter(|path| SETTINGS_FILES.contains(&path.as_str()) && !is_named(path));
        concerns.extend(settings.map(|path| LandingConcern::ChangedSettings { path }));
        concerns.extend(self.find_weakened_tests(changes, &is_named)?);
        if let Some(path) = gate.story.as_deref() {
            // What this run has written itself is measured by what it wrote first.
            let measured_text = base_story.or_else(|| self.read_created_story(path));
            // A file that is gone is a lost file.
            if let (Some(base_text), Some(work_text)) = (measured_text, self.read_work_story(path)) {
                concerns.extend(find_story_losses(path, &base_text, &work_text, self.masker));
            }
        }
        concerns.retain(|concern| !gate.accepted.contains(concern));
        Ok(concerns)
    }

    /// Finds commits on the branch that appeared while an agent worked in the checkout.
    pub fn find_commits_during_work(&self, tip: &CommitId) -> Result<Vec<LandingConcern>, WorkspaceError> {
        let mut concerns = Vec::new();
        for CommitDuringWork { commit, subject, is_agents, before, .. } in self.workspace.read_commits_during_work()? {
            // The user may have taken it off the branch since.
            if self.repository.is_true(["merge-base", "--is-ancestor", commit.as_str(), tip.as_str()])? {
                let subject = self.masker.mask(&subject).into_owned();
                let before = before.unwrap_or_else(|| self.workspace.base_commit().clone());
                concerns.push(LandingConcern::CommitDuringWork { commit, subject, is_agents, before });
            }
        }
        concerns.retain(|concern| !self.request.gate.accepted.contains(concern));
        Ok(concerns)
    }

    /// Lists the texts that say what the work is to do, as they were before it.
    fn list_naming_texts(&self, base_story: Option<&str>) -> Vec<String> {
        let gate = &self.request.gate;
        let mut naming_texts = vec![gate.naming_text.clone()];
        naming_texts.extend(base_story.map(String::from));
        naming_texts.extend(gate.naming_files.iter().filter_map(|path| self.read_base_story(path)));
        naming_texts
    }

    /// Finds commits of the branch that the work takes back.
    fn find_reverted(
        &self,
        changes: &[TreeDifference],
        naming_texts: &[String],
    ) -> Result<Vec<LandingConcern>, WorkspaceError> {
        let gate = &self.request.gate;
        let own_paths = self.request.verified.iter().flat_map(|verified| &verified.own_paths);
        let aside: Vec<&String> = own_paths.chain(&self.request.mergeable).chain(&gate.story).collect();
        let is_aside = |path: &[u8]| {
            let shown_path = self.workspace.shown_path(path);
            self.workspace.record.is_own_file(path) || aside.iter().any(|own_path| **own_path == shown_path)
        };
        let is_named = |path: &Vec<u8>| {
            let path = self.workspace.shown_path(path);
            naming_texts.iter().any(|text| names_path(text, &path))
        };
        let names_commit = |commit: &CommitId| {
            let start: String = commit.as_str().chars().take(7).collect();
            naming_texts.iter().any(|text| text.contains(&start))
        };
        let taken_back = find_taken_back(self.repository, &self.request.expected, changes, is_aside)?;
        let shown = |path: &Vec<u8>| self.workspace.shown_path(path);
        let (commits, named): (Vec<RevertedCommit>, Vec<RevertedCommit>) = taken_back
            .commits
            .into_iter()
            .filter(|reverted| !names_commit(&reverted.commit))
            .partition(|reverted| !reverted.paths.iter().any(is_named));
        // A task that names one file of a commit asks for that file alone.
        let with_named = named.into_iter().flat_map(|RevertedCommit { commit, paths, .. }| {
            paths.into_iter().map(move |path| RevertedFile { path, commit: commit.clone() })
        });
        let single_files = taken_back.files.into_iter().chain(with_named);
        let commits = commits.into_iter().map(|reverted| LandingConcern::RevertedCommit {
            commit: reverted.commit,
            subject: self.masker.mask(&reverted.subject).into_owned(),
            paths: reverted.paths.iter().map(shown).collect(),
        });
        let files = single_files.filter(|file| !is_named(&file.path));
        let files = files.map(|file| LandingConcern::RestoredFile { path: shown(&file.path), commit: file.commit });
        Ok(commits.chain(files).collect())
    }

    /// Finds tests that the work removes, empties or skips, in files that the task does not name, and tests that assert less.
    fn find_weakened_tests(
        &self,
        changes: &[TreeDifference],
        is_named: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<LandingConcern>, WorkspaceError> {
        let has_deleted = changes.iter().any(|change| change.change == PathChange::Deleted);
        let moved = if has_deleted { self.list_moved_files()? } else { BTreeMap::new() };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for change in changes {
            let path = self.workspace.shown_path(&change.path);
            // Only Rust has tests in any file; elsewhere a function may have a name like one.
            let language = TestLanguage::from_path(&path);
            let Some(language) = language.filter(|known| *known == TestLanguage::Rust || is_test_name(&path)) else {
                continue;
            };
            let read_file = |mode: &str, object_id: &String| -> Result<Option<TestFile>, WorkspaceError> {
                let mut file = None;
                if FILE_MODES[..2].contains(&mode) {
                    self.read_texts(std::iter::once(object_id), &mut |_, text| {
                        let functions = find_test_functions(language, text);
                        file = Some(TestFile { path: path.clone(), functions });
                    })?;
                }
                Ok(file)
            };
            // Tests that are deleted with their file are lost files; those of a file that has moved may not be where it is now.
            let is_left = change.change == PathChange::Modified || moved.contains_key(&change.path);
            if is_left && !is_named(&path) {
                before.extend(read_file(&change.old_mode, &change.old_object_id)?);
            }
            if change.change != PathChange::Deleted {
                after.extend(read_file(&change.file_mode, &change.object_id)?);
            }
        }
        let TestChanges { weakened, fewer } = compare_tests(&before, &after);
        let fewer = fewer.into_iter().map(|FewerAssertions { path, name, before, after }| {
            LandingConcern::FewerAssertions { path, name, before, after }
        });
        Ok(weakened.into_iter().map(LandingConcern::WeakenedTests).chain(fewer).collect())
    }

    /// Reads the story as this run has written it.
    fn read_created_story(&self, path: &str) -> Option<String> {
        let tree = self.request.gate.created.as_ref()?;
        let control_git = self.workspace.control_git();
        let mut objects = ObjectReader::new(|| control_git.new_command(), WORK_TIMEOUT);
        let object_name = format!("{tree}:{}{path}", self.workspace.record.prefix);
        let bytes = objects.read(ObjectKind::Blob, &object_name, MAX_STORED_STORY_BYTES).ok()??;
        String::from_utf8(bytes).ok()
    }

    /// Finds deleted files. One whose content is elsewhere now has moved.
    fn find_lost_files(
        &self,
        changes: &[TreeDifference],
        is_named: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<LandingConcern>, WorkspaceError> {
        let is_deleted = |change: &&TreeDifference| {
            change.change == PathChange::Deleted && !self.workspace.record.is_own_file(&change.path)
        };
        let deleted: Vec<&TreeDifference> = changes.iter().filter(is_deleted).collect();
        if deleted.is_empty() {
            return Ok(Vec::new());
        }
        let moved = self.list_moved_files()?;
        let lost = deleted.into_iter().filter_map(|change| {
            let path = self.workspace.shown_path(&change.path);
            if let Some(new_path) = moved.get(&change.path) {
                // A test that no runner finds any more is gone.
                let is_hidden = loses_test_name(&path, &self.workspace.shown_path(new_path));
                return is_hidden.then_some(LandingConcern::DeletedTest { path });
            }
            match (is_named(&path), is_test_name(&path)) {
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

fn list_reverted_paths(concern: &LandingConcern) -> &[String] {
    match concern {
        LandingConcern::RevertedCommit { paths, .. } => paths,
        _ => &[],
    }
}

/// A file in which secrets are searched.
struct SearchedFile {
    path: String,
    /// Whether only an earlier commit of the work has this content.
    is_past: bool,
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
