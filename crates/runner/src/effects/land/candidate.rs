//! Finds the patch of a landing and decides whether it may land: which files it may change, and that it does not gut them.
//!
//! Nothing here looks at the current texts of the user's files; those are merged in [`super`].

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use tribunal_engine::{
    files::{FilePart, FileSizeLimit, PatchRefusal},
    ids::Hash,
};
use tribunal_workflows::development::checks::CheckSpec;

use crate::{
    effects::EffectContext,
    git,
    landing::checkpoints::{CheckpointKey, CheckpointStore},
    project::{
        SETTINGS_FILE, SHORT_SETTINGS_FILE,
        subject::{find_link_on_path, is_plain_path},
    },
    workspaces::{TaskWorkspace, agent_file_names, hash_changes},
};

/// From this many lines on, a patch that leaves less than a third of them is not a fix.
const MIN_GUTTABLE_LINES: usize = 4;

/// What is to land, and how.
pub(in crate::effects) struct LandingRequest {
    pub checkpoint_key: CheckpointKey,
    pub patch: Hash,
    pub limits: LandingLimits,
    /// Only tell what would change.
    pub is_preview: bool,
    /// Parts of the patch that do not land.
    pub without: Vec<FilePart>,
}

/// What a patch has to comply with.
pub(in crate::effects) struct LandingLimits {
    /// Files that may change; a directory with a `/` at its end allows new files in it.
    pub allowed: Vec<String>,
    pub size_limit: FileSizeLimit,
    pub checks: Vec<CheckSpec>,
}

/// A patch that may land.
pub(in crate::effects) struct LandingCandidate {
    pub workspace: TaskWorkspace,
    pub(super) patched_files: Vec<PatchedFile>,
    /// Where the texts before and after every landing are stored, and under which key this one is.
    pub(super) checkpoints: CheckpointStore,
    pub(super) checkpoint_key: CheckpointKey,
    /// Parts of the patch that do not land.
    pub(super) without: Vec<FilePart>,
}

impl LandingCandidate {
    pub fn file_paths(&self) -> impl Iterator<Item = String> {
        self.patched_files.iter().map(|file| file.relative_path.clone())
    }
}

/// One file of a patch: as it was when the workspace was created (`None` if it did not exist), and as the fixer left it.
pub(super) struct PatchedFile {
    pub relative_path: String,
    pub real_path: PathBuf,
    pub base_text: Option<String>,
    pub fixer_text: String,
    pub executable: bool,
}

/// Finds the attempt whose changes are those that the fixer answered for.
pub(in crate::effects) fn find_patch_workspace(task_dir: &Path, patch_id: &Hash) -> Option<TaskWorkspace> {
    let attempts = fs::read_dir(task_dir).ok()?.flatten().map(|attempt| attempt.path());
    let attempt_dirs = attempts.filter(|attempt_path| attempt_path.extension().is_none());
    let complete_workspaces = attempt_dirs.map(TaskWorkspace::from_directory).filter(TaskWorkspace::is_complete);
    let matching = complete_workspaces.filter(|workspace| {
        workspace.changed_files().is_ok_and(|changed_files| hash_changes(&changed_files) == *patch_id)
    });
    // Two attempts may have the same result; the later one started from the newer text.
    matching.max_by_key(|workspace| {
        workspace.directory().file_name().and_then(|dir_name| dir_name.to_str()?.parse::<u32>().ok())
    })
}

/// Returns the patch with the files it may change, or the reason why it may not land.
pub(super) fn find_candidate(
    context: &EffectContext,
    request: &LandingRequest,
    workspace: TaskWorkspace,
) -> io::Result<Result<LandingCandidate, PatchRefusal>> {
    let changed_files = workspace.changed_files()?;
    if changed_files.is_empty() {
        return Ok(Err(PatchRefusal::Lost { detail: "the fix changes nothing".to_string() }));
    }
    let mut outside_paths = Vec::new();
    let original_paths = workspace.original_paths()?;
    // What a build leaves behind in ignored places is not part of a fix.
    // Only new files are asked about: a tracked file counts even if a pattern ignores it.
    let ignored_paths = git::find_ignored(
        context.project.root(),
        changed_files.keys().filter(|relative_path| !original_paths.contains(*relative_path)),
    );
    for relative_path in changed_files.keys().filter(|relative_path| !ignored_paths.contains(*relative_path)) {
        let is_new = !original_paths.contains(relative_path);
        // All outside paths are collected first, so that the fixer learns about all of them at once.
        if !is_plain_path(relative_path)
            || !(request.limits.allowed.contains(relative_path)
                || is_new && may_create_file(relative_path, &request.limits.allowed))
        {
            outside_paths.push(relative_path.clone());
        }
    }
    if !outside_paths.is_empty() {
        return Ok(Err(PatchRefusal::Outside { files: outside_paths }));
    }
    let mut patched_files = Vec::new();
    for (relative_path, current_hash) in
        changed_files.into_iter().filter(|(relative_path, _)| !ignored_paths.contains(relative_path))
    {
        if current_hash.is_none() {
            return Ok(Err(PatchRefusal::Lost { detail: format!("the fix deleted {relative_path}") }));
        }
        match read_patched_file(context, &workspace, relative_path, &original_paths)? {
            Ok(patched_file) => patched_files.push(patched_file),
            Err(refusal) => return Ok(Err(refusal)),
        }
    }
    if patched_files.is_empty() {
        // All changed files are ignored ones, so nothing of the patch would land.
        return Ok(Err(PatchRefusal::Lost { detail: "the fix changes only ignored files".to_string() }));
    }
    if let Some(refusal) = find_oversized_file(&patched_files, request.limits.size_limit)
        .or_else(|| find_added_secret(context, &patched_files))
    {
        return Ok(Err(refusal));
    }
    // A new file that does not land is not created.
    let is_left_out = |file: &PatchedFile| {
        file.base_text.is_none() && request.without.iter().any(|part| part.path == file.relative_path)
    };
    patched_files.retain(|file| !is_left_out(file));
    if patched_files.is_empty() {
        return Ok(Err(PatchRefusal::Lost { detail: "nothing is left of the fix".to_string() }));
    }
    let checkpoints = CheckpointStore::for_run(&context.project, &context.run_id);
    let (checkpoint_key, without) = (request.checkpoint_key.clone(), request.without.clone());
    Ok(Ok(LandingCandidate { workspace, patched_files, checkpoints, checkpoint_key, without }))
}

/// Refuses a patch that makes a file too large.
fn find_oversized_file(patched_files: &[PatchedFile], size_limit: FileSizeLimit) -> Option<PatchRefusal> {
    patched_files.iter().find_map(|file| {
        let max_bytes = size_limit.max_bytes(file.base_text.as_ref().map(|base_text| base_text.len() as u64));
        let bytes = file.fixer_text.len() as u64;
        (bytes > max_bytes).then(|| PatchRefusal::TooLarge { file: file.relative_path.clone(), bytes, max_bytes })
    })
}

/// Refuses a patch that adds a secret. One that was in any of the files before may be moved.
fn find_added_secret(context: &EffectContext, patched_files: &[PatchedFile]) -> Option<PatchRefusal> {
    let base_texts = || patched_files.iter().filter_map(|file| file.base_text.as_deref());
    patched_files.iter().find_map(|file| {
        let kinds = context.masker.find_added_kinds(base_texts(), &file.fixer_text);
        (!kinds.is_empty()).then(|| PatchRefusal::AddsSecret {
            file: file.relative_path.clone(),
            kinds: kinds.into_iter().map(str::to_string).collect(),
        })
    })
}

/// A new file may be created in a directory that is named, or among tests, but never one that configures tools.
pub(super) fn may_create_file(relative_path: &str, allowed: &[String]) -> bool {
    let (directory, file_name) = relative_path.rsplit_once('/').unwrap_or((".", relative_path));
    let path_parts: Vec<&str> = relative_path.split('/').collect();
    // Hidden files configure tools, too: `.github`, `.env`, `.npmrc`.
    let is_hidden = path_parts.iter().any(|part| part.starts_with('.'));
    let is_tool_config = [SETTINGS_FILE, SHORT_SETTINGS_FILE].contains(&file_name)
        || agent_file_names().any(|config_name| config_name == file_name || config_name == path_parts[0]);
    let is_among_tests = path_parts[..path_parts.len() - 1]
        .iter()
        .any(|part| matches!(*part, "test" | "tests" | "spec" | "specs" | "__tests__"));
    let directory = format!("{directory}/");
    let is_in_allowed_directory = allowed.contains(&directory);
    let allows_new_files = allowed.iter().any(|entry| entry.ends_with('/'));
    !is_hidden && !is_tool_config && (is_in_allowed_directory || allows_new_files && is_among_tests)
}

/// Reads one file of the patch, or tells why it may not land.
fn read_patched_file(
    context: &EffectContext,
    workspace: &TaskWorkspace,
    relative_path: String,
    original_paths: &BTreeSet<String>,
) -> io::Result<Result<PatchedFile, PatchRefusal>> {
    let patched_path = workspace.tree_dir().join(&relative_path);
    let metadata = fs::symlink_metadata(&patched_path)?;
    if !metadata.is_file() {
        return Ok(Err(PatchRefusal::Lost {
            detail: format!("the fix replaced {relative_path} with something that is not a regular file"),
        }));
    }
    // A file that did not exist has no base; asking for one would be an error.
    let base_text = if original_paths.contains(&relative_path) { workspace.read_base(&relative_path)? } else { None };
    let base_text = match base_text.map(String::from_utf8).transpose() {
        Ok(base_text) => base_text,
        Err(_) => return Ok(Err(PatchRefusal::Lost { detail: format!("{relative_path} is not valid UTF-8") })),
    };
    let Ok(fixer_text) = String::from_utf8(fs::read(patched_path)?) else {
        return Ok(Err(PatchRefusal::Lost {
            detail: format!("{relative_path} is no longer valid UTF-8 after the fix"),
        }));
    };
    let fixer_text = match &base_text {
        Some(base_text) => keep_line_ends(base_text, fixer_text),
        None => fixer_text,
    };
    // A patch that leaves less than a third of a text is not a fix.
    if let Some((lines_before, lines_after)) =
        base_text.as_deref().and_then(|base_text| detect_gutting(base_text, &fixer_text))
    {
        return Ok(Err(PatchRefusal::Gutted { before: lines_before, after: lines_after }));
    }
    let real_path = context.project.tree_root().join(&relative_path);
    if let Some(link) = find_link_on_path(context.project.tree_root(), &relative_path) {
        let detail = format!("{relative_path} is behind a symlink ({link})");
        return Ok(Err(PatchRefusal::Lost { detail }));
    }
    let is_executable_file = is_executable(&metadata);
    Ok(Ok(PatchedFile { relative_path, real_path, base_text, fixer_text, executable: is_executable_file }))
}

/// Returns the number of lines before and after, if most of them would be gone.
pub(in crate::effects) fn detect_gutting(base_text: &str, new_text: &str) -> Option<(u32, u32)> {
    let count_filled_lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let (lines_before, lines_after) = (count_filled_lines(base_text), count_filled_lines(new_text));
    let is_gutted = lines_before > 0
        && (lines_after == 0 || (lines_before >= MIN_GUTTABLE_LINES && lines_after * 3 < lines_before));
    is_gutted.then_some((lines_before as u32, lines_after as u32))
}

pub(super) fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o100 != 0
}

/// Restores the line ends of the base text: an agent that changes them has not fixed anything.
fn keep_line_ends(base_text: &str, text: String) -> String {
    let count_line_ends = |text: &str| (text.matches('\n').count(), text.matches("\r\n").count());
    match (count_line_ends(base_text), count_line_ends(&text)) {
        // Only a base with uniform line ends decides; with mixed ones it is not known which are meant.
        ((base_ends, base_crlf), (new_ends, new_crlf))
            if base_crlf > 0 && base_ends == base_crlf && new_ends != new_crlf =>
        {
            text.replace("\r\n", "\n").replace('\n', "\r\n")
        }
        ((_, 0), (_, 1..)) => text.replace("\r\n", "\n"),
        _ => text,
    }
}
